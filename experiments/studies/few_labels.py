"""The source prior from few labelled positives: what is KM2's answer worth?

P and U have no common row; U has a thousand rows, fewer where a table has not as many of a class. The priors from 0.01
to 0.95 are the same for few and for many labels. Three rules, on the same scores: `MixturePrior` as it is, which allows
for KM2's saying little whatever π is; the same without that allowance; and without KM2.
"""

from __future__ import annotations

import zlib
from itertools import product

import numpy as np
from scipy import stats

import priorshift as ps
from experiments.accuracy import Answer, accuracy
from experiments.columns import markdown
from experiments.draws import counts, load, standardized
from experiments.study import Line, Trial
from priorshift.datasets import IMAGES, OPENML
from priorshift.inference.prior_knowledge import PiecewiseUniform

_APART = {"Gaussians, apart": 1.0, "Gaussians, overlapping": 0.4}  # the means, in each of ten columns
_SETS = (*_APART, *OPENML, *IMAGES)
_LABELS = (12, 25, 50, 100)
_PRIORS = (0.01, 0.05, 0.2, 0.5, 0.8, 0.95)
_ROWS = 1000
_SEED = 2041
_RULES = {"asked": "KM2 asked", "believed": "KM2 always believed", "alone": "without KM2"}


def _draw(dataset: str, labels: int, prior: float, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """X and y, and the share of positives in U."""
    rng = np.random.default_rng((_SEED, zlib.crc32(dataset.encode()), labels, round(1000 * prior), seed))
    if dataset in _APART:
        k, n = counts(prior, _ROWS, _ROWS, _ROWS)
        classes = np.repeat([1, 0], [labels + k, n])
        X = rng.normal(size=(len(classes), 10)) + _APART[dataset] * classes[:, None]
        P, U = X[:labels], X[labels:]
    else:
        data = load(dataset)
        positives, negatives = (rng.permutation(data.X[data.y == label]) for label in (True, False))
        P, rest = np.split(positives, [min(labels, len(positives) // 2)])
        k, n = counts(prior, len(rest), len(negatives), _ROWS)
        U = np.concatenate([rest[:k], negatives[:n]])
    return standardized(np.concatenate([P, U]), U), np.repeat([1, 0], [len(P), len(U)]), k / len(U)


def _answer(found: PiecewiseUniform, share: float) -> Answer:
    """What is told of π, less its share: that differs from draw to draw by less than a row."""
    low, high = found.ppf([0.025, 0.975])
    return found.mean() - share, float(low) - share, float(high) - share


def measure(dataset: str, labels: int, source_prior: float, repetitions: int) -> list[Line]:
    answers: dict[str, list[Answer]] = {rule: [] for rule in _RULES}
    for seed in range(repetitions):
        X, y, share = _draw(dataset, labels, source_prior, seed)
        asked = ps.MixturePrior(random_state=seed).fit(X, y)
        alone = ps.MixturePrior(use_km2=False, random_state=seed).fit(X, y).prior_distribution_
        above = np.maximum(np.minimum(alone.middles, 0.4) - asked.km2_prior_, 0.0)
        found = {
            "asked": asked.prior_distribution_, "believed": alone.times(stats.t.logpdf(above / 0.07, 4)), "alone": alone
        }  # fmt: skip
        for rule, distribution in found.items():
            answers[rule].append(_answer(distribution, share))
    line: Line = {}
    for rule, of_rule in answers.items():
        line |= accuracy(of_rule, 0.0, f"_{rule}")
    return [line]


def texts(lines: list[Line]) -> dict[str, str]:
    rows = []
    for labels, (name, low) in product(_LABELS, (("0.01 to 0.2", True), ("0.5 to 0.95", False))):
        some = [x for x in lines if x["labels"] == labels and (x["source_prior"] < 0.3) == low]
        cells = [
            f"{np.mean([x[f'error_{rule}'] for x in some]):.3f}, {np.mean([x[f'coverage_{rule}'] for x in some]):.0%}"
            for rule in _RULES
        ]
        rows.append((str(labels), name, *cells))
    return {"few_labels": markdown(("labelled positives", "π", *_RULES.values()), rows)}


_GRID = tuple(
    {"dataset": name, "labels": labels, "source_prior": prior, "repetitions": 2}
    for name, labels, prior in product(_SETS, _LABELS, _PRIORS)
)
_UNIT = ("dataset", "labels", "source_prior", "repetitions")
TRIAL = Trial("few_labels", "Error of the source prior from few labelled positives", _GRID, _UNIT, measure, texts)
