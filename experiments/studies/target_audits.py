"""Measure intervals from tables and an audit of the target, where label shift holds and where it does not.

Of a target of 1000 rows, 10 to 200 random rows are audited; the source has 300 positives and 1000 unlabelled rows, and
its prior is known. In the target, label shift holds ("none"), or
- "columns": all its rows are moved towards the positives, by 0.4 of the distance of the class means;
- "negatives": a quarter of its negatives are drawn from the positives;
- "positives": its positives are moved half-way to the mean of the negatives.

Three intervals are compared: from the tables without an audit, from the labels without the tables (Jeffreys'), and from
both. The truth is the share of positives in the population that the target's rows are drawn from.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

import priorshift as ps
from experiments import sampling
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.arrays import Floats

SETS = ("Synthetic", "Waveform", "Yeast")
VIOLATIONS = ("none", "columns", "negatives", "positives")
PRIORS = ((0.3, 0.1), (0.3, 0.5), (0.1, 0.3))  # of source and target
LABELS = (10, 30, 60, 200)
ANSWERS = ("tables", "labels", "both")
_SIZES = (300, 1000, 1000)  # rows of P, U and T
_REPETITIONS = 60

Rows = NDArray[np.float64]


class _Classes:
    """Rows of each class to draw from: normal, or those of a data set, drawn with replacement."""

    def __init__(self, dataset: str, rng: np.random.Generator) -> None:
        self._rng = rng
        self._rows: list[Rows] | None = None  # of negatives and positives
        if dataset != "Synthetic":
            data = sampling.load_dataset(dataset)
            X = sampling.standardize(data.X, data.X)
            self._rows = [X[~data.y], X[data.y]]
        large = [self.draw(np.full(5000, is_positive)) for is_positive in (False, True)]
        self.negative_mean, self.positive_mean = (rows.mean(axis=0) for rows in large)

    def draw(self, is_positive: Any) -> Rows:
        """Draw a row of each given class; real rows get a little noise, so that none occurs twice."""
        if self._rows is None:
            return np.asarray(self._rng.normal(size=(len(is_positive), 5)) + 0.7 * is_positive[:, None])
        negative, positive = (rows[self._rng.integers(len(rows), size=len(is_positive))] for rows in self._rows)
        drawn = np.where(is_positive[:, None], positive, negative)
        return np.asarray(drawn + 0.01 * self._rng.normal(size=drawn.shape))


def _draw_target(classes: _Classes, prior: float, violation: str, rng: np.random.Generator) -> tuple[Rows, Any]:
    """Draw the target's rows and their classes."""
    is_positive = rng.random(_SIZES[2]) < prior
    looks_positive = is_positive
    if violation == "negatives":
        looks_positive = is_positive | (rng.random(len(is_positive)) < 0.25)
    rows = classes.draw(looks_positive)
    gap = classes.positive_mean - classes.negative_mean
    if violation == "columns":
        rows = rows + 0.4 * gap
    elif violation == "positives":
        rows = rows - 0.5 * gap * is_positive[:, None]
    return rows, is_positive


def _answers(dataset: str, violation: str, priors: tuple[float, float], seed: int) -> Floats:
    """Return (value, low, high) for each number of labels and each answer."""
    rng = np.random.default_rng((SETS.index(dataset), VIOLATIONS.index(violation), PRIORS.index(priors), seed))
    classes = _Classes(dataset, rng)
    P, U = classes.draw(np.ones(_SIZES[0], dtype=bool)), classes.draw(rng.random(_SIZES[1]) < priors[0])
    T, is_positive = _draw_target(classes, priors[1], violation, rng)
    X, y = np.concatenate([P, U]), np.repeat([1, 0], _SIZES[:2])
    witness = ps.WitnessShift(priors[0], random_state=seed).fit(X, y)
    order, answers = rng.permutation(len(T)), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)
        tables = witness.estimate(T)
        for labels in LABELS:
            audit = np.full(len(T), np.nan)
            audit[order[:labels]] = is_positive[order[:labels]]
            both = witness.estimate(T, audit=audit)
            found = int(is_positive[order[:labels]].sum())
            ends = betaincinv(found + 0.5, labels - found + 0.5, [0.025, 0.975])
            of_estimates = [(e.value, e.interval.low, e.interval.high) for e in (tables, both)]
            answers.append((of_estimates[0], (found / labels, *ends), of_estimates[1]))
    return np.array(answers)


def measure(dataset: str, violation: str, source_prior: float, target_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    priors = source_prior, target_prior
    answers = np.array([_answers(dataset, violation, priors, seed) for seed in range(repetitions)])
    lines = []
    for j, labels in enumerate(LABELS):
        value, low, high = np.moveaxis(answers[:, j], -1, 0)  # each of shape (repetitions, answers)
        holds = (low <= target_prior) & (target_prior <= high)
        figures = {}
        for k, name in enumerate(ANSWERS):
            figures[f"{name}_error"] = np.abs(value - target_prior)[:, k].mean()
            figures[f"{name}_coverage"] = holds[:, k].mean()
            figures[f"{name}_width"] = (high - low)[:, k].mean()
        lines.append({"labels": labels, **{name: round(float(v), 4) for name, v in figures.items()}})
    return lines


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = []
    for violation, labels in product(VIOLATIONS, LABELS):
        some = [line for line in lines if line["violation"] == violation and line["labels"] == labels]
        means = {name: np.mean([line[name] for line in some]) for name in some[0] if name.endswith(_FIGURES)}
        errors = (f"{means[f'{name}_error']:.3f}" for name in ANSWERS)
        widths = (f"{means[f'{name}_width']:.2f} ({means[f'{name}_coverage']:.0%})" for name in ANSWERS)
        rows.append((violation, f"{labels}", *errors, *widths))
    header = ("violation", "labels", *(f"error, {name}" for name in ANSWERS), *(f"width, {name}" for name in ANSWERS))
    covers = np.array([line["both_coverage"] for line in lines])
    return {
        "target-audits": markdown_table(header, rows),
        "target-audits-cover": f"covers {covers.mean():.1%} on average and {covers.min():.0%} at least",
    }


_FIGURES = ("_error", "_coverage", "_width")
_GRID = tuple(
    {"dataset": dataset, "violation": violation, "source_prior": pi, "target_prior": target, "labels": labels,
     "repetitions": _REPETITIONS}
    for dataset, violation, (pi, target), labels in product(SETS, VIOLATIONS, PRIORS, LABELS)
)  # fmt: skip
TRIAL = Trial(
    "target_audits",
    "Audits of a target in which label shift need not hold",
    _GRID,
    ("dataset", "violation", "source_prior", "target_prior", "repetitions"),
    measure,
    texts,
    quotes=("target-audits", "target-audits-cover"),
)
