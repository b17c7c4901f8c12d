"""What are a few labels worth? Audits of the source and of the target, beside the tables alone and the labels alone.

On the paper's synthetic data (500 positives, 2000 unlabelled and 2000 target rows) and on two UCI sets whose classes
overlap, rows are looked up at random. Three answers are compared: by the tables without an audit, by the audited labels
without the tables (a share, with Wilson's interval), and by both. "source" is about π, "target" about π′, with π
unknown either way. "excess" is the error of both less that of the better of the two others, with its standard error;
where a sample has fewer rows than there are labels, all of it is looked up.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import priorshift as ps
from experiments import draws
from experiments.columns import markdown
from experiments.study import Line, Trial
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
    """X, which rows are labelled, the class of each, and (rows, classes) of the targets; classes fall by chance."""
    if dataset == "Synthetic":

        def made(classes: Classes) -> Rows:
            return np.asarray(rng.normal(size=(len(classes), 10)) + classes[:, None])

        labeled = np.arange(_POSITIVES + _ROWS) < _POSITIVES
        classes = labeled | (rng.random(len(labeled)) < pi)
        of_target = [rng.random(_ROWS) < target for target in TARGETS]
        return made(classes), labeled, classes, [(made(c), c) for c in of_target]
    data = draws.load(dataset)
    first, second = draws.halves(len(data.X), rng)
    positives = first[data.y[first]]
    P, rest = np.split(positives, [len(positives) // 2])
    U = _drawn(rest, first[~data.y[first]], pi, rng)
    Z = draws.standardized(data.X, data.X[U])
    T = [_drawn(second[data.y[second]], second[~data.y[second]], target, rng) for target in TARGETS]
    ids = np.concatenate([P, U])
    return Z[ids], np.arange(len(ids)) < len(P), data.y[ids], [(Z[rows], data.y[rows]) for rows in T]


def _drawn(positive: Any, negative: Any, prior: float, rng: np.random.Generator) -> Any:
    """Rows of a population of that prior, as many as there are for it."""
    n = int(0.85 * min(len(positive) / prior, len(negative) / (1 - prior)))
    n = min(n, _ROWS)
    k = min(int(rng.binomial(n, prior)), len(positive))
    return rng.permutation(np.concatenate([positive[:k], negative[: n - k]]))


def _by_labels(classes: Classes) -> tuple[float, float, float]:
    found = stats.binomtest(int(classes.sum()), len(classes))
    ends = found.proportion_ci(method="wilson")
    return found.statistic, ends.low, ends.high


def _answers(dataset: str, pi: float, seed: int) -> Floats:
    """(value, low, high) for each share, number of labels, and way to answer."""
    rng = np.random.default_rng((SETS.index(dataset), round(1000 * pi), seed))
    X, labeled, classes, targets = samples(dataset, pi, rng)
    witness = ps.WitnessShift(random_state=seed).fit(X, labeled)
    prior, scored = witness.prior_estimator_, witness.scored_
    alone = prior.prior_, *prior.interval_
    U = rng.permutation(np.flatnonzero(~labeled))
    answers = [[]]
    for labels in LABELS:
        audit = _looked_up(classes, U[:labels])
        # what MixturePrior().fit(X, labeled, audit=audit) does, without scoring the rows and asking KM2 again
        source = Source.from_labels(X, labeled, audit=audit, scenario="case-control", standardize=True)
        sample = SampleAudit.from_source(source, scored.predicted(scored.p_values))
        both = combine_with_audit(prior.prior_distribution_, sample, from_rows=True).distribution
        by_labels = _by_labels(classes[U[:labels]])
        answers[0].append((alone, by_labels, (both.mean(), *both.ppf([0.025, 0.975]))))
    for T, of_target in targets:
        answers.append([])
        order = rng.permutation(len(T))
        tables = witness.estimate(T)
        for labels in LABELS:
            both = witness.estimate(T, audit=_looked_up(of_target, order[:labels]))
            by_labels = _by_labels(of_target[order[:labels]])
            ends = ((e.value, e.interval.low, e.interval.high) for e in (tables, both))
            answers[-1].append((next(ends), by_labels, next(ends)))
    return np.array(answers)


def _looked_up(classes: Classes, rows: Any) -> Floats:
    audit = np.full(len(classes), np.nan)
    audit[rows] = classes[rows]
    return audit


def measure(dataset: str, source_prior: float, repetitions: int) -> list[Line]:
    answers = np.array([_answers(dataset, source_prior, seed) for seed in range(repetitions)])
    lines = []
    for i, (share, truth) in enumerate(zip(SHARES, (source_prior, *TARGETS), strict=True)):
        for j, labels in enumerate(LABELS):
            value, low, high = np.moveaxis(answers[:, i, j], -1, 0)  # each of shape (repetitions, ways to answer)
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
    rows = []
    for dataset, share in product(SETS, ("source", "target")):
        for labels in _TOLD:
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
        "audits": markdown(header, rows),
        "audits-near": f"in {sum(near)} of the {len(lines)} cells",
        "audits-cover": f"covers {covers.mean():.1%} on average and {covers.min():.0%} at least",
    }


_TOLD = (50, 200)  # labels
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
