"""Measure false alarms of a monitor if nothing changes: how often the level rule ever alarms, and how often others do.

The share is that of the source in all batches, and the level is this share, so that the level rule is at the edge of
what it may not report. Classes are normal, ten columns whose means differ by 0.6. Every run has a new source, except
that five runs in a row share one if the source prior is estimated. In runs with groups, four rows of one class are a
group.
"""

from __future__ import annotations

import numpy as np

from experiments.monitored_series import GROUP, draw_labels, population, start_series
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_BATCHES = 1000
_RUNS_PER_SOURCE = 5  # if the source prior is estimated
_RUN_LENGTH = 200.0  # stated; short, so that a run has several false alarms


def measure(
    rule: str, source_prior: float, known: bool, rows: int, positives: int, unlabeled: int, grouped: bool,
    repetitions: int,
) -> list[Line]:  # fmt: skip
    """Return the line of one unit: false alarms in all runs."""
    ever, alarms, batches = [], {"change": 0, "assumption": 0}, 0
    for run in range(repetitions):
        rng = np.random.default_rng([28, run, round(1e4 * source_prior), rows, positives, unlabeled, grouped])
        sample = population(source_prior, known, 0 if known else run // _RUNS_PER_SOURCE)
        model = sample.draw_source(positives, unlabeled, grouped, rng) if known else sample.fitted
        series = start_series(model, source_prior if rule == "level" else None, _RUN_LENGTH)
        largest, groups = -np.inf, np.arange(rows) // GROUP if grouped else None
        for number in range(_BATCHES):
            labels = draw_labels(rows, source_prior, grouped, rng)
            if rule == "level":
                levels = sample.draw_levels(labels, rng)
                largest = max(largest, series.levels["above"].update(levels, None, groups))
                continue
            batch = sample.draw_batch(labels, grouped, rng)
            if rule == "assumption":  # alone, since the change rule takes a third of the time
                order = rng.permutation(len(batch.units))
                evidence = {rule: series.assumption.update(batch.units.features[order], rng)}
            else:
                evidence = series.bet(batch, number, rng)
            for name, value in evidence.items():
                if value >= np.log(_RUN_LENGTH):
                    alarms[name] += 1
                    getattr(series, name).restart()
        ever.append(rule == "level" and largest >= series.settings.limits["above"])
        batches += _BATCHES
    if rule == "level":
        return [{"ever": float(np.mean(ever))}]
    return [{"multiple": round(batches / max(alarms[rule], 1) / _RUN_LENGTH, 3)}]


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    header = ("source prior", "", "rows of a batch", "positives, unlabelled rows", "runs", "ever above the level")
    levels = [
        (f"{line['source_prior']:g}", "known" if line["known"] else "estimated",
         f"{line['rows']}{' in groups of 4' if line['grouped'] else ''}", f"{line['positives']}, {line['unlabeled']}",
         str(line["repetitions"]), f"{line['ever']:.1%}")
        for line in lines if line["rule"] == "level"
    ]  # fmt: skip
    others: dict[tuple[str, str, str], dict[str, Line]] = {}
    for line in lines:
        size = f"{line['rows']}{' in groups of 4' if line['grouped'] else ''}"
        key = (f"{line['source_prior']:g}", size, f"{line['positives']}, {line['unlabeled']}")
        if line["rule"] != "level":
            others.setdefault(key, {})[line["rule"]] = line
    rows = [
        (*key, *(text for rule in ("change", "assumption")
                 for text in (f"{found[rule]['multiple']:.2f}", str(found[rule]["repetitions"]))))
        for key, found in others.items()
    ]  # fmt: skip
    runs = ("source prior", "rows of a batch", "positives, unlabelled rows", "change", "runs", "assumption", "runs")
    return {"monitor-level": markdown_table(header, levels), "monitor-quiet": markdown_table(runs, rows)}


_KEYS = ("rule", "source_prior", "known", "rows", "positives", "unlabeled", "grouped", "repetitions")
_SETTINGS = [
    *(("level", prior, True, 200, 500, 5000, False, 500) for prior in (0.01, 0.1, 0.5, 0.9)),
    ("level", 0.1, True, 2000, 500, 5000, False, 500),
    ("level", 0.1, True, 200, 50, 500, False, 500),
    ("level", 0.1, True, 200, 500, 5000, True, 500),
    *(("level", prior, False, 200, 500, 5000, False, 500) for prior in (0.01, 0.1, 0.5)),
    *((rule, prior, True, 200, 500, 5000, False, 500)
      for rule in ("change", "assumption") for prior in (0.01, 0.1, 0.9)),
    *((rule, 0.1, True, 200, *source, 500) for rule in ("change", "assumption")
      for source in ((50, 500, False), (500, 5000, True))),
    *((rule, 0.1, True, 2000, 500, 5000, False, 500) for rule in ("change", "assumption")),
]  # fmt: skip
TRIAL = Trial(
    "monitor_quiet",
    "False alarms of a monitor if nothing changes",
    tuple(dict(zip(_KEYS, setting, strict=True)) for setting in _SETTINGS),
    _KEYS,
    measure,
    texts,
    quotes=("monitor-level", "monitor-quiet"),
    slow=True,
)
