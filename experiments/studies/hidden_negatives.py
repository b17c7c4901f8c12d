"""Measure intervals of π′ with an unknown source prior if some negatives look exactly like positives.

A share of the negatives is drawn from the law of the positives, and the others are normal, at a distance of 2 standard
deviations (the classes overlap little: AUC 0.92) or of 1 (AUC 0.76). Such data cannot be distinguished from those of a
larger source prior: π + (1−π)·share instead of π, and no hidden negatives. So the interval either contains what both
priors imply for the target, or is wrong for one of them.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np

import priorshift as ps
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

DISTANCES = (1.0, 2.0)
SHARES = (0.0, 0.15, 0.3, 0.5)
PRIORS = (0.05, 0.3, 0.7)
TARGETS = (0.2, 0.6)
SIZES = (800, 20_000)  # rows of U and of T; P has a fifth of them, at least 200
_COLUMNS = 4
_REPETITIONS = {800: 40, 20_000: 10}


def measure(distance: float, rows: int, hidden: float, source_prior: float, repetitions: int) -> list[Line]:
    """Return the line of one unit."""
    covers, widths, bounds = [], [], []
    for seed in range(repetitions):
        rng, target = np.random.default_rng((seed, rows)), TARGETS[seed % 2]

        def draw(size: int, prior: float, rng: np.random.Generator = rng) -> np.ndarray:
            looks_positive = (rng.random(size) < prior) | (rng.random(size) < hidden)
            return np.asarray(rng.normal(size=(size, _COLUMNS)) + distance / 2 * looks_positive[:, None])

        P, U, T = draw(max(rows // 5, 200), 1.0), draw(rows, source_prior), draw(rows, target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)
            estimate = ps.estimate_prior(P, U, T, random_state=seed)
        covers.append(target in estimate.interval)
        widths.append(estimate.interval.width)
        bounds.append(source_prior <= estimate.details["source_prior_range"][1])
    figures = {"coverage": np.mean(covers), "width": np.mean(widths), "below_upper_end": np.mean(bounds)}
    return [{name: round(float(value), 4) for name, value in figures.items()}]


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the text that documents quote."""
    rows = []
    for distance, size, hidden in product(DISTANCES, SIZES, SHARES):
        some = [x for x in lines if (x["distance"], x["rows"], x["hidden"]) == (distance, size, hidden)]
        cells = [f"{line['coverage']:.0%} ({line['width']:.2f})" for line in some]
        rows.append((f"{distance:g}", f"{size:,}", f"{hidden:.0%}", *cells))
    header = ("distance", "rows", "hidden", *(f"π = {prior:g}" for prior in PRIORS))
    return {"hidden-negatives": markdown_table(header, rows)}


_GRID = tuple(
    {"distance": distance, "rows": rows, "hidden": hidden, "source_prior": prior, "repetitions": _REPETITIONS[rows]}
    for distance, rows, hidden, prior in product(DISTANCES, SIZES, SHARES, PRIORS)
)
TRIAL = Trial(
    "hidden_negatives",
    "Negatives that look exactly like positives",
    _GRID,
    ("distance", "rows", "hidden", "source_prior", "repetitions"),
    measure,
    texts,
    quotes=("hidden-negatives",),
)
