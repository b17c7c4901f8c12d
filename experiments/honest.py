"""Are the default's intervals honest on real draws? Its lines of five experiments, by overlap and by source prior.

The overlap is what the default itself sees of it, 1 − AUC of its scores. A line that is called "nothing" has the
interval [0, 1], which holds everything: how many those are stands beside.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np

import priorshift as ps
from experiments.columns import markdown
from experiments.grids import EXPERIMENTS
from experiments.methods import LABEL
from experiments.study import Line

QUOTED = ("honest_by_overlap", "honest_by_prior")
_EXPERIMENTS = ("disjoint", "keel", "unseen", "high", "wide")
_EDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 1.0)
_LOW = 0.5  # a source prior up to which it is called low
_HEADER = ("draws", "coverage of π′", "mean width", "called nothing", "mean error of π̂′", "mean error of π̂")


def texts(results: Path) -> dict[str, str]:
    """Both tables, of the lines that are there; nothing where there are none."""
    lines = [
        line
        for name in _EXPERIMENTS
        for line in EXPERIMENTS[name].lines(results)
        if line["method"] == LABEL[ps.WitnessShift]
    ]
    if not lines:
        return {}
    by_overlap = {
        _words(low, high): [x for x in lines if low <= x.get("overlap", np.nan) < high]
        for low, high in pairwise(_EDGES)
    }
    priors = sorted({line["source_prior"] for line in lines})
    by_prior = {f"{pi:g}": [x for x in lines if x["source_prior"] == pi] for pi in priors}
    by_prior[f"all up to {_LOW:g}"] = [x for x in lines if x["source_prior"] <= _LOW]
    by_prior[f"all above {_LOW:g}"] = [x for x in lines if x["source_prior"] > _LOW]
    tables = (("overlap", by_overlap), ("π", by_prior))
    return {
        name: markdown((first, *_HEADER), [(words, *_figures(some)) for words, some in groups.items()])
        for name, (first, groups) in zip(QUOTED, tables, strict=True)
    }


def _words(low: float, high: float) -> str:
    return f"below {high:g}" if low == _EDGES[0] else f"from {low:g}" if high == _EDGES[-1] else f"{low:g} to {high:g}"


def _figures(lines: list[Line]) -> Iterable[str]:
    if not lines:
        return ("0", *("" for _ in _HEADER[1:]))
    low, high = np.array([line["interval"] for line in lines]).T
    target, value, prior, found = (
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
        f"{np.mean(np.abs(found - prior)):.4f}",
    )
