"""Measure how soon a monitor reports a change of the share, next to rules that see every label.

Classes are as in `monitor_quiet`, or further apart, and the share is 0.1 before the change. The rules: ours; the same
rule with the labels in place of the scores, which also has to learn the share before the change; a CUSUM chart of the
labels that knows the shares before and after, with the limit log 1000 that guarantees the same average run length as
ours, and with the lower limit that just has it; and "the 95% interval of this batch excludes that of the last one",
which has no stated rate of false alarms.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from experiments.monitored_series import draw_labels, information, population, start_series
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.monitoring.rules import ChangeRule

_SHARE = 0.1
_RUN_LENGTH = 1000.0
_MOST = 1000  # batches after the change
_SOURCE = (2000, 20_000)  # positives and unlabelled rows


def measure(distance: float, rows: int, change: int, shift: float, repetitions: int) -> list[Line]:
    """Return the line of one unit: the median delay of each rule, and alarms before the change."""
    delays: dict[str, list[float]] = {name: [] for name in ("ours", "labels", "stated", "cusum", "last")}
    early = dict.fromkeys(delays, 0)
    limit = cusum_limit(rows, _SHARE, _SHARE + shift)
    for run in range(repetitions):
        rng = np.random.default_rng([2828, run, rows, change, round(1e4 * shift)])
        sample = population(_SHARE, True, 0, distance)
        series = start_series(sample.draw_source(*_SOURCE, False, rng), None, _RUN_LENGTH)
        by_label = _label_rule(draw_labels(_SOURCE[1], _SHARE, False, rng))
        at: dict[str, int] = {}
        charts, last = {"stated": 0.0, "cusum": 0.0}, (-np.inf, np.inf)
        for number in range(change + _MOST):
            labels = draw_labels(rows, _SHARE + shift * (number >= change), False, rng)
            batch = sample.draw_batch(labels, False, rng)
            mean, variance = batch.mean_and_variance()
            interval = mean - 1.96 * np.sqrt(variance), mean + 1.96 * np.sqrt(variance)
            ratio = _log_ratio(labels.sum(), rows, _SHARE, _SHARE + shift)
            charts = {name: max(chart, 0.0) + ratio for name, chart in charts.items()}
            rules = {"ours": (series.change, batch.units.scores), "labels": (by_label, labels + 0.0)}
            alarms = {
                name: name not in at and rule.update(scores, number, rng) >= np.log(_RUN_LENGTH)
                for name, (rule, scores) in rules.items()
            }
            alarms |= {
                "stated": charts["stated"] >= np.log(_RUN_LENGTH),
                "cusum": charts["cusum"] >= limit,
                "last": interval[0] > last[1] or interval[1] < last[0],
            }
            last = interval
            for name, rings in alarms.items():
                if rings and number < change:
                    early[name] += 1
                    if name in charts:
                        charts[name] = 0.0
                    elif name in rules:
                        rules[name][0].restart()
                elif rings and name not in at:
                    at[name] = number - change + 1
            if len(at) == len(delays):
                break
        for name, found in delays.items():
            found.append(at.get(name, np.inf))
    line: Line = {"information": round(information(_SHARE, distance), 3)}
    line |= {name: float(min(np.median(found), _MOST + 1)) for name, found in delays.items()}
    return [line | {f"early_{name}": count / repetitions for name, count in early.items()}]


def _label_rule(labels: NDArray[np.bool_]) -> ChangeRule:
    """Return our rule with labels in place of scores: their score at the share is (y − share)/(share(1 − share))."""
    counts = np.array([np.sum(~labels), np.sum(labels)], dtype=float)
    rule = ChangeRule(np.array([0.5]), counts)
    scores = np.array([-1 / (1 - _SHARE), 1 / _SHARE])
    ranks = (np.arange(200) + 0.5) / 200
    shape = scores[(ranks > counts[0] / counts.sum()).astype(int)]
    rule.set_shape(shape - shape.mean())
    return rule


def _log_ratio(positives: float, rows: int, before: float, after: float) -> float:
    """Return the log-likelihood ratio of a batch."""
    return float(positives * np.log(after / before) + (rows - positives) * np.log((1 - after) / (1 - before)))


@lru_cache
def cusum_limit(rows: int, before: float, after: float) -> float:
    """Return the limit of a CUSUM chart whose average run length is the stated one, by simulation."""
    rng, chains, steps = np.random.default_rng(0), 400, 5 * int(_RUN_LENGTH)
    positives = rng.binomial(rows, before, size=(steps, chains))
    ratios = positives * np.log(after / before) + (rows - positives) * np.log((1 - after) / (1 - before))
    low, high = 0.0, 12.0
    for _ in range(12):
        limit = (low + high) / 2
        state, alarms = np.zeros(chains), 0
        for ratio in ratios:
            state = np.maximum(state, 0.0) + ratio
            rings = state >= limit
            alarms += int(rings.sum())
            state[rings] = 0.0
        low, high = (limit, high) if steps * chains / max(alarms, 1) < _RUN_LENGTH else (low, limit)
    return high


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    header = (
        "information", "rows of a batch", "change at batch", "change of the share", "monitor", "same rule with labels",
        "CUSUM of labels, limit log 1000", "with the same run length", "monitor over the former",
        "interval excludes the last", "its alarms before",
    )  # fmt: skip
    rows = [
        (f"{line['information']:.0%}", str(line["rows"]), str(line["change"]),
         f"{100 * line['shift']:g} points", _batches(line["ours"]),
         _batches(line["labels"]), _batches(line["stated"]), _batches(line["cusum"]),
         f"{line['ours'] / line['stated']:.1f}",
         _batches(line["last"]), f"{line['early_last']:.0f}")
        for line in lines
    ]  # fmt: skip
    return {"monitor-delay": markdown_table(header, rows)}


def _batches(delay: float) -> str:
    """Return a delay as text."""
    return f"over {_MOST}" if delay > _MOST else f"{delay:g}"


_KEYS = ("distance", "rows", "change", "shift", "repetitions")
TRIAL = Trial(
    "monitor_delay",
    "How soon a monitor reports a change",
    tuple(
        {"distance": distance, "rows": rows, "change": change, "shift": shift, "repetitions": 25}
        for distance in (0.6, 1.0)
        for rows in (200, 2000)
        for change in (20, 500)
        for shift in (0.05, 0.02, 0.01, 0.005)
    ),
    _KEYS,
    measure,
    texts,
    quotes=("monitor-delay",),
    slow=True,
)
