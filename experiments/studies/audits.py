"""Measure what an audit with few labels gains, over the tables alone and over the labels alone.

Random rows are audited on the paper's synthetic data (500 positives, 2000 unlabelled and 2000 target rows) and on two
UCI sets whose classes overlap. Three estimates are compared: from the tables without an audit, from the audited labels
without the tables (a share, with Wilson's interval), and from both. "source" is π and "target" is π′; π is unknown in
both cases. "excess" is the error of the third estimate minus that of the better of the other two, with its standard
error. If a sample has fewer rows than the number of labels, all its rows are audited.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import priorshift as ps
from experiments import sampling
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.arrays import Floats
from priorshift.inference.audit_combination import SampleAudit, combine_with_audit
from priorshift.problem import Source

SETS = ("Synthetic", "Diabetes", "Yeast")
PRIORS = (0.05, 0.2, 0.5, 0.8)
TARGETS = (0.1, 0.5)
SHARES = ("source", *(f"target {target:g}" for target in TARGETS))
LABELS = (50, 100, 200, 500)
ANSWERS = ("tables", "labels", "both")
_REPETITIONS = 30
_ROWS, _POSITIVES = 2000, 500

Rows = NDArray[np.float64]
Classes = NDArray[np.bool_]


def samples(dataset: str, pi: float, rng: np.random.Generator) -> tuple[Rows, Classes, Classes, list[Any]]:
    """Draw X, which rows are labelled, their classes, and (rows, classes) of the targets, with random class counts."""
    if dataset == "Synthetic":

        def normal_rows(classes: Classes) -> Rows:
            return np.asarray(rng.normal(size=(len(classes), 10)) + classes[:, None])

        labeled = np.arange(_POSITIVES + _ROWS) < _POSITIVES
        classes = labeled | (rng.random(len(labeled)) < pi)
        target_classes = [rng.random(_ROWS) < target for target in TARGETS]
        return normal_rows(classes), labeled, classes, [(normal_rows(c), c) for c in target_classes]
    data = sampling.load_dataset(dataset)
    first, second = sampling.split_halves(len(data.X), rng)
    positives = first[data.y[first]]
    P, rest = np.split(positives, [len(positives) // 2])
    U = _binomial_sample(rest, first[~data.y[first]], pi, rng)
    Z = sampling.standardize(data.X, data.X[U])
    T = [_binomial_sample(second[data.y[second]], second[~data.y[second]], target, rng) for target in TARGETS]
    ids = np.concatenate([P, U])
    return Z[ids], np.arange(len(ids)) < len(P), data.y[ids], [(Z[rows], data.y[rows]) for rows in T]


def _binomial_sample(positive: Any, negative: Any, prior: float, rng: np.random.Generator) -> Any:
    """Return row numbers of a sample from a population with this prior, as large as the classes allow."""
    n = int(0.85 * min(len(positive) / prior, len(negative) / (1 - prior)))
    n = min(n, _ROWS)
    k = min(int(rng.binomial(n, prior)), len(positive))
    return rng.permutation(np.concatenate([positive[:k], negative[: n - k]]))


def _from_labels(classes: Classes) -> tuple[float, float, float]:
    """Return the share of positives and Wilson's interval."""
    found = stats.binomtest(int(classes.sum()), len(classes))
    ends = found.proportion_ci(method="wilson")
    return found.statistic, ends.low, ends.high


def _answers(dataset: str, pi: float, seed: int) -> Floats:
    """Return (value, low, high) for each share, number of labels and kind of estimate."""
    rng = np.random.default_rng((SETS.index(dataset), round(1000 * pi), seed))
    X, labeled, classes, targets = samples(dataset, pi, rng)
    witness = ps.WitnessShift(random_state=seed).fit(X, labeled)
    prior, scored = witness.prior_estimator_, witness.scored_
    from_tables = prior.prior_, *prior.interval_
    U = rng.permutation(np.flatnonzero(~labeled))
    answers = [[]]
    for labels in LABELS:
        audit = _audit(classes, U[:labels])
        # the same as MixturePrior().fit(X, labeled, audit=audit), without scoring the rows and fitting KM2 again
        source = Source.from_labels(X, labeled, audit=audit, scenario="case-control", standardize=True)
        sample = SampleAudit.from_source(source, source.audit, scored.predicted(scored.p_values))
        both = combine_with_audit(prior.prior_distribution_, sample, from_rows=True).distribution
        from_labels = _from_labels(classes[U[:labels]])
        answers[0].append((from_tables, from_labels, (both.mean(), *both.ppf([0.025, 0.975]))))
    for T, target_classes in targets:
        answers.append([])
        order = rng.permutation(len(T))
        tables = witness.estimate(T)
        for labels in LABELS:
            both = witness.estimate(T, audit=_audit(target_classes, order[:labels]))
            from_labels = _from_labels(target_classes[order[:labels]])
            ends = ((e.value, e.interval.low, e.interval.high) for e in (tables, both))
            answers[-1].append((next(ends), from_labels, next(ends)))
    return np.array(answers)


def _audit(classes: Classes, rows: Any) -> Floats:
    """Return the classes of the audited rows, and nan for the others."""
    audit = np.full(len(classes), np.nan)
    audit[rows] = classes[rows]
    return audit


def measure(dataset: str, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    answers = np.array([_answers(dataset, source_prior, seed) for seed in range(repetitions)])
    lines = []
    for i, (share, truth) in enumerate(zip(SHARES, (source_prior, *TARGETS), strict=True)):
        for j, labels in enumerate(LABELS):
            value, low, high = np.moveaxis(answers[:, i, j], -1, 0)  # each of shape (repetitions, kinds of estimate)
            error, holds = np.abs(value - truth), (low <= truth) & (truth <= high)
            figures = {}
            for k, name in enumerate(ANSWERS):
                figures |= {f"{name}_error": error[:, k].mean(), f"{name}_coverage": holds[:, k].mean()}
                figures[f"{name}_width"] = (high - low)[:, k].mean()
            better = int(np.argmin(error[:, :2].mean(axis=0)))
            excess = error[:, 2] - error[:, better]
            figures |= {"excess": excess.mean(), "excess_standard_error": excess.std(ddof=1) / np.sqrt(repetitions)}
            lines.append({"share": share, "labels": labels, **{n: round(float(v), 4) for n, v in figures.items()}})
    return lines


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = []
    for dataset, share in product(SETS, ("source", "target")):
        for labels in _TABULATED:
            some = [line for line in lines if line["dataset"] == dataset and line["labels"] == labels
                    and line["share"].startswith(share)]  # fmt: skip
            means = {name: np.mean([line[name] for line in some]) for name in some[0] if name.endswith(_FIGURES)}
            errors = (f"{means[f'{name}_error']:.3f}" for name in ANSWERS)
            widths = (f"{means[f'{name}_width']:.2f} ({means[f'{name}_coverage']:.0%})" for name in ANSWERS)
            rows.append((f"{dataset}, {share}", f"{labels}", *errors, *widths))
    header = ("prior of", "labels", *(f"error, {name}" for name in ANSWERS), *(f"width, {name}" for name in ANSWERS))
    near = [line["excess"] <= 2 * line["excess_standard_error"] for line in lines]
    covers = np.array([line["both_coverage"] for line in lines])
    return {
        "audits": markdown_table(header, rows),
        "audits-near": f"in {sum(near)} of the {len(lines)} cells",
        "audits-cover": f"covers {covers.mean():.1%} on average and {covers.min():.0%} at least",
    }


_TABULATED = (50, 200)  # numbers of labels in the table
_FIGURES = ("_error", "_coverage", "_width")
_GRID = tuple(
    {"dataset": dataset, "source_prior": pi, "share": share, "labels": labels, "repetitions": _REPETITIONS}
    for dataset, pi, share, labels in product(SETS, PRIORS, SHARES, LABELS)
)
_UNIT = ("dataset", "source_prior", "repetitions")
TRIAL = Trial(
    "audits",
    "A few labels beside the tables",
    _GRID,
    _UNIT,
    measure,
    texts,
    quotes=("audits", "audits-near", "audits-cover"),
)
