"""Tabulate the results of the default method for documents: its error, and the coverage of its intervals.

Errors are compared with those of the paper's methods. Coverage is tabulated by overlap and by source prior, over the
default's lines of five experiments. The overlap is the default's own estimate, 1 − AUC of its scores. A line with the
verdict "nothing" has the interval [0, 1], which always covers; the share of such lines is a column of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np

import priorshift as ps
from experiments.efficiency_limit import LIMIT
from experiments.grids import EXPERIMENTS
from experiments.methods import LABEL, WITNESS_TRUE
from experiments.study import Line
from experiments.text_tables import markdown_table

QUOTED = ("default", "coverage_by_overlap", "coverage_by_prior")
_EXPERIMENTS = ("disjoint", "keel", "unseen", "high", "wide")
_EDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 1.0)
_LOW = 0.5  # the largest source prior of the rows "all up to"
_HEADER = ("draws", "coverage of π′", "mean width", "called nothing", "mean error of π̂′", "mean error of π̂")


def texts(results: Path) -> dict[str, str]:
    """Return the table of errors, and, if the default has lines, both tables of coverage."""
    return {"default": _error_table(results)} | _coverage_tables(results)


def _coverage_tables(results: Path) -> dict[str, str]:
    lines = [
        line
        for name in _EXPERIMENTS
        for line in EXPERIMENTS[name].lines(results)
        if line["method"] == LABEL[ps.WitnessShift]
    ]
    if not lines:
        return {}
    by_overlap = {
        _range_label(low, high): [x for x in lines if low <= x.get("overlap", np.nan) < high]
        for low, high in pairwise(_EDGES)
    }
    priors = sorted({line["source_prior"] for line in lines})
    by_prior = {f"{pi:g}": [x for x in lines if x["source_prior"] == pi] for pi in priors}
    by_prior[f"all up to {_LOW:g}"] = [x for x in lines if x["source_prior"] <= _LOW]
    by_prior[f"all above {_LOW:g}"] = [x for x in lines if x["source_prior"] > _LOW]
    tables = (("overlap", by_overlap), ("π", by_prior))
    return {
        name: markdown_table((first, *_HEADER), [(label, *_figures(some)) for label, some in groups.items()])
        for name, (first, groups) in zip(QUOTED[1:], tables, strict=True)
    }


def _range_label(low: float, high: float) -> str:
    return f"below {high:g}" if low == _EDGES[0] else f"from {low:g}" if high == _EDGES[-1] else f"{low:g} to {high:g}"


def _figures(lines: list[Line]) -> Iterable[str]:
    """Return the cells of one row, in the order of `_HEADER`."""
    if not lines:
        return ("0", *("" for _ in _HEADER[1:]))
    low, high = np.array([line["interval"] for line in lines]).T
    target, value, prior, prior_estimate = (
        np.array([line[name] for line in lines])
        for name in ("target_prior", "estimate", "source_prior", "source_estimate")
    )
    nothing = np.mean([line["verdict"] == "nothing" for line in lines])
    return (
        f"{len(lines)}",
        f"{100 * np.mean((low <= target) & (target <= high)):.1f}%",
        f"{np.mean(high - low):.3f}",
        f"{100 * nothing:.1f}%",
        f"{np.mean(np.abs(value - target)):.4f}",
        f"{np.mean(np.abs(prior_estimate - prior)):.4f}",
    )


def _error_table(results: Path) -> str:
    """Tabulate mean errors of the default and of the paper's methods; empty where a method lacks a cell."""
    methods = {
        "TCPU": "TCPU (π by KM2, the paper)",
        LABEL[ps.KM2LS]: LABEL[ps.KM2LS],
        LABEL[ps.WitnessShift]: LABEL[ps.WitnessShift],
        "TCPU-true": "TCPU, π known",
        WITNESS_TRUE: f"{LABEL[ps.WitnessShift]}, π known",
        LIMIT: "the limit, π known",
    }
    rows = []
    for label, name in (
        ("synthetic, the paper's protocol", "synthetic"),
        ("UCI, the paper's protocol", "uci"),
        ("UCI, P and U disjoint, standardised by the source", "disjoint"),
        ("ten KEEL sets, the same", "keel"),
        ("thirteen further KEEL sets, the same", "unseen"),
        ("synthetic and UCI data at π = 0.7 and 0.9, the same", "high"),
        ("synthetic, UCI and KEEL data at π from 0.01 to 0.95", "wide"),
    ):
        experiment = EXPERIMENTS[name]
        complete = len(experiment.sources) * len(experiment.targets)
        cells = experiment.table(results)
        errors = [[cell["mean_abs_error"] for cell in cells if cell["method"] == method] for method in methods]
        rows.append((label, *(f"{np.mean(e):.4f}" if len(e) == complete else "" for e in errors)))
    return markdown_table(("", *methods.values()), rows)
