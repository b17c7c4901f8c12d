"""Measure a monitor whose batches change: false alarms for the assumption if only the share does, and delays.

The population is that of `monitor_quiet`. From batch 20 on,

- "share": the share is another one, and label shift holds. Counted are the alarms for the assumption, relative to one
  in the stated number of batches.
- "column": the share is another one or stays, and one column is moved by a part of its standard deviation. The delay is
  the number of batches up to the first alarm for the assumption.
- "level": the share is above the level. The delay is that of the rule for the level.
"""

from __future__ import annotations

import numpy as np

from experiments.monitored_series import draw_labels, population, start_series
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.monitoring.batches import Batch
from priorshift.monitoring.series import Series

_START = 20  # batches before the change
_BATCHES = {"share": 320, "column": 220, "level": 220}
_RUN_LENGTH = 200.0  # stated
_COLUMN = 3  # that is moved


def measure(
    change: str, source_prior: float, share: float, moved: float, level: float, rows: int, positives: int,
    unlabeled: int, repetitions: int,
) -> list[Line]:  # fmt: skip
    """Return the line of one unit: alarms relative to the stated number, or the median delay."""
    alarms, delays = 0, []
    for run in range(repetitions):
        rng = np.random.default_rng([29, run, round(1e4 * source_prior), round(1e4 * share), rows, positives])
        sample = population(source_prior, True)
        series = start_series(
            sample.draw_source(positives, unlabeled, False, rng), level if change == "level" else None, _RUN_LENGTH
        )
        delay = np.inf
        for number in range(_BATCHES[change]):
            is_changed = number >= _START
            batch = sample.draw_batch(draw_labels(rows, share if is_changed else source_prior, False, rng), False, rng)
            if change == "column" and is_changed:
                batch.units.features[:, 1 + _COLUMN] += moved  # the first feature is the score
            if not _alarms(series, change, batch, rng):
                continue
            alarms += is_changed
            delay = min(delay, number - _START + 1) if is_changed else delay
            if change == "share":
                series.assumption.restart()
            elif is_changed:
                break
        delays.append(delay)
    if change == "share":
        return [{"alarms": round(alarms / (repetitions * (_BATCHES[change] - _START) / _RUN_LENGTH), 3)}]
    median = float(np.median(delays))
    return [{"found": float(np.isfinite(delays).mean()), "delay": median if np.isfinite(median) else None}]


def _alarms(series: Series, change: str, batch: Batch, rng: np.random.Generator) -> bool:
    """Return whether the rule in question raises an alarm for a batch."""
    if change == "level":
        rule = series.levels["above"]
        return bool(rule.update(batch.rows.levels, None, None) >= series.settings.limits["above"])
    order = rng.permutation(len(batch.units))
    return bool(series.assumption.update(batch.units.features[order], rng) >= np.log(_RUN_LENGTH))


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    sizes = ("rows of a batch", "positives, unlabelled rows", "runs")

    def size(line: Line) -> tuple[str, str, str]:
        """Return the cells of the sizes."""
        return str(line["rows"]), f"{line['positives']}, {line['unlabeled']}", str(line["repetitions"])

    def delay(line: Line) -> str:
        """Return the median delay as text."""
        return f"{line['delay']:g}" if line.get("delay") else f"over {_BATCHES[line['change']] - _START}"

    def found(line: Line) -> str:
        """Return in which part of the runs the change was reported at all."""
        return f"{line['found']:.0%}"

    share = [
        (f"{line['source_prior']:g} → {line['share']:g}", *size(line), f"{line['alarms']:.2f}")
        for line in lines if line["change"] == "share"
    ]  # fmt: skip
    column = [
        (f"{line['source_prior']:g} → {line['share']:g}", f"{line['moved']:g}", *size(line), delay(line), found(line))
        for line in lines if line["change"] == "column"
    ]  # fmt: skip
    level = [
        (f"{line['source_prior']:g}", f"{line['level']:g}", f"{line['share']:g}", *size(line), delay(line), found(line))
        for line in lines if line["change"] == "level"
    ]  # fmt: skip
    last = ("median delay", "reported")
    return {
        "monitor-share": markdown_table(("share", *sizes, "alarms, relative to the stated number"), share),
        "monitor-column": markdown_table(("share", "moved by", *sizes, *last), column),
        "monitor-above": markdown_table(("source prior", "level", "share", *sizes, *last), level),
    }


_KEYS = ("change", "source_prior", "share", "moved", "level", "rows", "positives", "unlabeled", "repetitions")
_SETTINGS = [
    *(("share", *shares, 0.0, 0.0, 200, 500, 5000, 40)
      for shares in ((0.1, 0.2), (0.1, 0.3), (0.1, 0.9), (0.5, 0.1), (0.04, 0.2), (0.01, 0.05))),
    *(("share", 0.9, share, 0.0, 0.0, 200, 500, 5000, 40) for share in (0.1, 0.5)),
    *(("share", *shares, 0.0, 0.0, 200, 50, 500, 40) for shares in ((0.1, 0.3), (0.1, 0.9), (0.9, 0.1))),
    *(("share", 0.1, 0.9, 0.0, 0.0, 10, positives, 5000, 40) for positives in (20, 50)),
    *(("share", *shares, 0.0, 0.0, 2000, 500, 5000, 20) for shares in ((0.1, 0.3), (0.1, 0.9), (0.5, 0.1))),
    *(("column", 0.1, share, moved, 0.0, rows, 500, 5000, 40)
      for rows in (200, 2000) for share in (0.1, 0.3) for moved in (0.1, 0.3)),
    *(("level", 0.1, share, 0.0, 0.12, rows, positives, unlabeled, 40)
      for rows in (200, 2000) for positives, unlabeled in ((500, 5000), (5000, 50_000)) for share in (0.14, 0.2, 0.3)),
]  # fmt: skip
TRIAL = Trial(
    "monitor_power",
    "Monitor: changes of the share that are no reason to doubt label shift, and delays",
    tuple(dict(zip(_KEYS, setting, strict=True)) for setting in _SETTINGS),
    _KEYS,
    measure,
    texts,
    quotes=("monitor-share", "monitor-column", "monitor-above"),
    slow=True,
)
