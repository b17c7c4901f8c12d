"""The score that label shift is tested with: one that a seed moves little.

The estimator's own score has random features and is tuned on one dealing of the rows to folds; the p-value of a test
that looks at it changes with both (`experiments/studies/seeds.py`). This one is ridge regression of "labelled" (1)
against "population" (−1) on the longest axes of the kernel, which need no seed. It has so few coefficients that it can
be cross-fitted many times: the folds matter little in the mean, and the ridge is tuned on all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index
from priorshift.diagnosis.features import KernelFeatures, evenly
from priorshift.input.scaling import Rows
from priorshift.input.source import Source, Target
from priorshift.scores.cross_fitting import FIT_ROWS, Repetition, most_folds
from priorshift.scores.scored import ScoredSource
from priorshift.scores.witness import Witness

_REPEATS, _FOLDS = 20, 5
_AXES = 64
_RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0)
_BLOCK = 4096
_Singles = NDArray[np.float32]


@dataclass(frozen=True)
class _Linear:
    """A score that is linear in the features and a constant."""

    beta: Floats

    def __call__(self, features: Floats) -> Floats:
        return features @ self.beta


def kernel_score(
    source: Source,
    target: Target,
    rows: tuple[Rows, Rows, Rows],
    kernel: KernelFeatures,
    scored: ScoredSource,
    rng: np.random.Generator,
) -> tuple[Witness, Floats]:
    """Score P, U and T.

    Parameters
    ----------
    source, target : Source, Target
        Which rows are one observation, and what they count.
    rows : three Rows
        Of P, U and T, scaled.
    kernel : KernelFeatures
        Whose longest axes are the score's features.
    scored : ScoredSource
        With the estimator's score, whose place is taken.
    rng : Generator
        Deals rows to folds.

    Returns
    -------
    witness : Witness
        Of this score.
    values : ndarray of shape (repeats, rows)
        The target's p-values.
    """

    def features(x: Floats) -> _Singles:
        made = kernel(scored.prepare(x), _AXES)
        return np.concatenate([made, np.ones((len(made), 1), dtype=np.float32)], axis=1)

    folds = most_folds(source, _FOLDS)
    dealt = np.stack([source.deal(folds, rng) for _ in range(_REPEATS)])
    of_P, of_U = dealt[:, source.positive], dealt[:, source.population]
    halves = (rows[0], source.positive_mass, of_P, 0.5), (rows[1], source.population_mass, of_U, -0.5)
    gram, moment = np.zeros(()), np.zeros(())
    for sample, mass, fold, half in halves:
        taken = evenly(len(sample), FIT_ROWS)
        of_sample = _by_fold(features(sample[taken]), mass[taken] / mass[taken].sum(), fold[:, taken], folds)
        gram, moment = gram + abs(half) * of_sample[0], moment + half * of_sample[1]
    beta = _fitted(gram, moment)
    P, U = (_scores(sample, fold, features, beta) for sample, _, fold, _ in halves)
    repetitions = tuple(
        Repetition(P[k], U[k], tuple(map(_Linear, beta[k])), _of_observations(source, dealt[k]))
        for k in range(_REPEATS)
    )
    made = ScoredSource.by(source, scored.prepare, repetitions, scored.seed)
    of_T = np.stack([one.deal(target.of_source, rng) for one in repetitions])
    T = _scores(rows[2], of_T, features, beta)
    values = np.stack([made.ranks(one.positive, scores) for one, scores in zip(repetitions, T, strict=True)])
    return Witness.of(made, source.without_rows(), *made.mixture), values


def _by_fold(F: _Singles, mass: Floats, fold: Index, folds: int) -> tuple[Floats, Floats]:
    """Gram matrices and means of the features, shapes (repeats, folds, features, features) and without the last."""
    width, of_row_mass = F.shape[1], mass.astype(np.float32)
    gram, moment = np.empty((len(fold), folds, width, width)), np.empty((len(fold), folds, width))
    for k, of_row in enumerate(fold):
        for j in range(folds):
            inside = np.flatnonzero(of_row == j)
            own = F[inside]
            weighted = own * of_row_mass[inside, None]
            gram[k, j], moment[k, j] = weighted.T @ own, weighted.sum(axis=0)
    return gram, moment


def _fitted(gram: Floats, moment: Floats) -> Floats:
    """Coefficients of each fold, fitted to the others, shape (repeats, folds, features).

    The ridge is that of the largest correlation of label and score, since only the order of the scores counts; it is
    the correlation of all repetitions, so that hardly ever another dealing of the rows finds another ridge.
    """
    others, of_others = gram.sum(axis=1, keepdims=True) - gram, moment.sum(axis=1, keepdims=True) - moment
    most, found = -np.inf, moment
    for ridge in _RIDGES:
        ridged = others + ridge * (1 - 1 / gram.shape[1]) * np.eye(gram.shape[-1])
        beta = np.linalg.solve(ridged, of_others[..., None])[..., 0]
        square = float(np.sum((gram @ beta[..., None])[..., 0] * beta))
        correlation = float(np.sum(moment * beta)) / np.sqrt(max(square, 1e-300))
        if correlation > most:
            most, found = correlation, beta
    return np.asarray(found)


def _scores(rows: Rows, fold: Index, features: Callable[[Floats], _Singles], beta: Floats) -> Floats:
    """Of each row by the model of its fold, shape (repeats, rows)."""
    made, single = np.empty(fold.shape), beta.astype(np.float32)
    for first in range(0, len(rows), _BLOCK):
        at = slice(first, first + _BLOCK)
        by_model = np.einsum("if,rkf->rik", features(rows[at]), single, optimize=True)
        made[:, at] = np.take_along_axis(by_model, fold[:, at, None], axis=2)[..., 0]
    return made


def _of_observations(source: Source, fold: Index) -> Index:
    """The fold of each observation."""
    made = np.empty(int(source.observation.max()) + 1, dtype=np.intp)
    made[source.observation] = fold
    return made
