"""Run a monitor over real series in which the class of every row is known, and compare its alarms with the truth.

The first period is the source, divided at random: the positives of one half are the labelled positives, the other half
is unlabelled. The source prior is the share of the whole first period, or is estimated. The levels are 10 percentage
points below and above that share; the other settings are the defaults. A broken assumption is not acknowledged. For
comparison, the same rows are monitored in random orders, in which nothing changes.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp

import priorshift as ps
from experiments.dated_tables import MADE, DatedTable, load_dated
from experiments.sampling import split_halves
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.errors import PriorShiftWarning

_SERIES = {  # number of batches, title, positive class, and what happened
    "pitches": (22, "pitches of Clayton Kershaw in 2013, by game", "fastballs", "hardly changed"),
    "stops": (43, "police stops in Minneapolis in 2017, by week", "traffic stops", "fell until August, then rose"),
    "rodents": (42, "rodents trapped at Portal, 1982 to 2002, by half-year", "kangaroo rats", "large swings, then low"),
}
_ORDERS = 3  # random ones
_SEED, _MARGIN = 28, 0.1
_P_VALUE = 0.001  # below which a batch counts as one without label shift


def measure(series: str, known: bool, order: int) -> list[Line]:
    """Return the lines of one unit, one for each batch; order 0 is that of time, and others are random."""
    table = load_dated(series)
    if order:
        table = table.reorder(np.random.default_rng((_SEED, order)))
    source = np.flatnonzero(table.batch == "")
    first, second = (source[half] for half in split_halves(len(source), np.random.default_rng(_SEED)))
    prior = float(table.positive[source].mean())
    monitor = ps.Monitor(prior if known else None, level=(prior - _MARGIN, prior + _MARGIN))
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorShiftWarning)
        monitor.fit_samples(table.frame.iloc[first[table.positive[first]]], table.frame.iloc[second])
        for number, name in enumerate(dict.fromkeys(table.batch[table.batch != ""].tolist())):
            rows = np.flatnonzero(table.batch == name)
            point = monitor.update(table.frame.iloc[rows], name=name)
            line = {"batch": number, "source_prior": round(prior, 4)}
            line |= _describe(point, float(table.positive[rows].mean()))
            lines.append(line | {"p_classes": float(f"{_compare_classes(table, rows):.2g}")})
    return lines


def _describe(point: ps.MonitorPoint, truth: float) -> Line:
    """Return the figures of a batch next to its true share."""
    line: Line = {"name": point.name, "rows": point.rows, "truth": round(truth, 4)}
    line["value"] = None if point.value is None else round(point.value, 4)
    for label, interval in (("", point.interval), ("all_time_", point.all_time)):
        for end in ("low", "high"):
            line[label + end] = None if interval is None else round(getattr(interval, end), 4)
    line["alarms"] = " ".join(alarm.rule for alarm in point.alarms)
    line["since"] = next((alarm.since for alarm in point.alarms if alarm.rule == "change"), None)
    return line


def _compare_classes(table: DatedTable, rows: NDArray[np.intp]) -> float:
    """Test by the true classes if the numbers of a class differ from the first period; return the corrected p-value."""
    source = np.flatnonzero(table.batch == "")
    numbers = table.frame.select_dtypes("number").to_numpy()
    p_values = [
        ks_2samp(now[np.isfinite(now)], before[np.isfinite(before)]).pvalue
        for positive in (True, False)
        for now, before in zip(
            *(numbers[some[table.positive[some] == positive]].T for some in (rows, source)), strict=True
        )
    ]
    return min(1.0, float(np.min(p_values)) * len(p_values))


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    truths, answers = [], []
    for series, (batches, title, positive, happened) in _SERIES.items():
        its = [line for line in lines if line["series"] == series]
        in_time = {
            known: [line for line in its if not line["order"] and line["known"] == known] for known in (True, False)
        }
        for known, some in in_time.items():
            answers.append((title, "known" if known else "estimated", *_summarize(some)))
        answers.append((f"the same in {_ORDERS} random orders", "known", *_summarize([x for x in its if x["order"]])))
        shares = [line["truth"] for line in in_time[True]]
        figures = (
            f"{share:.0%}"
            for share in (in_time[True][0]["source_prior"], shares[0], min(shares), max(shares), shares[-1])
        )
        moved = sum(line["p_classes"] < _P_VALUE for line in in_time[True])
        truths.append((title, positive, str(batches), *figures, happened, f"{moved} of {batches}"))
    truth_header = (
        "series", "positive", "batches", "first period", "first batch", "lowest", "highest", "last",
        "what happened to the share", "batches without label shift",
    )  # fmt: skip
    header = ("series", "source prior", "share in the 95% interval", "in the all-time interval", "alarms of a change",
              "of the level", "of the assumption")  # fmt: skip
    return {"monitor-real-truth": markdown_table(truth_header, truths), "monitor-real": markdown_table(header, answers)}


def _summarize(lines: list[Line]) -> tuple[str, ...]:
    """Return how often the intervals of a series contain the share, and its alarms by rule."""
    covered = [
        f"{sum(line[f'{label}low'] <= line['truth'] <= line[f'{label}high'] for line in lines)} of {len(lines)}"
        for label in ("", "all_time_")
    ]
    changes, levels, broken = (
        [line for line in lines if rule in line["alarms"].split()] for rule in ("change", "level", "assumption")
    )
    right = sum(abs(line["truth"] - line["source_prior"]) > _MARGIN for line in levels)
    return (
        *covered,
        ", ".join(line["name"] for line in changes) or "none",
        f"{len(levels)}, first {levels[0]['name']}; {right} right" if levels else "none",
        f"since {broken[0]['name']}" if broken else "none",
    )


_GRID = tuple(
    {"series": series, "known": known, "order": order, "batch": batch}
    for series, (batches, *_) in _SERIES.items()
    for known, order in ((True, 0), (False, 0), *((True, order) for order in range(1, _ORDERS + 1)))
    for batch in range(batches)
)
TRIAL = Trial(
    "monitor_real",
    "A monitor on real series",
    _GRID,
    ("series", "known", "order"),
    measure,
    texts,
    quotes=("monitor-real-truth", "monitor-real"),
    small_values={"series": MADE},
)
