"""Measure the error of the source prior from few labelled positives, with and without KM2.

P and U are disjoint; U has a thousand rows, or fewer if a table has too few of a class. The priors from 0.01 to 0.95
are the same for all numbers of labels. Three rules use the same scores: `MixturePrior` as it is, which allows for KM2
being uninformative at any π; the same without this allowance; and without KM2.
"""

from __future__ import annotations

import zlib
from itertools import product

import numpy as np
from scipy import stats

import priorshift as ps
from experiments.accuracy import Answer, accuracy
from experiments.sampling import class_counts, load_dataset, standardize
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.datasets import IMAGES, OPENML
from priorshift.inference.prior_knowledge import PiecewiseUniform

_DISTANCE = {"Gaussians, apart": 1.0, "Gaussians, overlapping": 0.4}  # of the means, in each of ten columns
_SETS = (*_DISTANCE, *OPENML, *IMAGES)
_LABELS = (12, 25, 50, 100)
_PRIORS = (0.01, 0.05, 0.2, 0.5, 0.8, 0.95)
_ROWS = 1000
_SEED = 2041
_RULES = {"asked": "KM2 asked", "believed": "KM2 always believed", "alone": "without KM2"}


def _draw(dataset: str, labels: int, prior: float, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw X and y, and return them with the share of positives in U."""
    rng = np.random.default_rng((_SEED, zlib.crc32(dataset.encode()), labels, round(1000 * prior), seed))
    if dataset in _DISTANCE:
        k, n = class_counts(prior, _ROWS, _ROWS, _ROWS)
        classes = np.repeat([1, 0], [labels + k, n])
        X = rng.normal(size=(len(classes), 10)) + _DISTANCE[dataset] * classes[:, None]
        P, U = X[:labels], X[labels:]
    else:
        data = load_dataset(dataset)
        positives, negatives = (rng.permutation(data.X[data.y == label]) for label in (True, False))
        P, rest = np.split(positives, [min(labels, len(positives) // 2)])
        k, n = class_counts(prior, len(rest), len(negatives), _ROWS)
        U = np.concatenate([rest[:k], negatives[:n]])
    return standardize(np.concatenate([P, U]), U), np.repeat([1, 0], [len(P), len(U)]), k / len(U)


def _answer(found: PiecewiseUniform, share: float) -> Answer:
    """Return the estimate of π and its interval minus the share in U, which varies by less than a row."""
    low, high = found.ppf([0.025, 0.975])
    return found.mean() - share, float(low) - share, float(high) - share


def measure(dataset: str, labels: int, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
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
    """Return the texts that documents quote."""
    rows = []
    for labels, (name, low) in product(_LABELS, (("0.01 to 0.2", True), ("0.5 to 0.95", False))):
        some = [x for x in lines if x["labels"] == labels and (x["source_prior"] < 0.3) == low]
        cells = [
            f"{np.mean([x[f'error_{rule}'] for x in some]):.3f}, {np.mean([x[f'coverage_{rule}'] for x in some]):.0%}"
            for rule in _RULES
        ]
        rows.append((str(labels), name, *cells))
    return {"few_labels": markdown_table(("labelled positives", "π", *_RULES.values()), rows)}


_GRID = tuple(
    {"dataset": name, "labels": labels, "source_prior": prior, "repetitions": 2}
    for name, labels, prior in product(_SETS, _LABELS, _PRIORS)
)
_UNIT = ("dataset", "labels", "source_prior", "repetitions")
TRIAL = Trial("few_labels", "Error of the source prior from few labelled positives", _GRID, _UNIT, measure, texts)
