"""Cross-fitted scores: how much each row looks like a labelled positive, by a model that has not seen it.

Rows are dealt to folds, rows of one observation to the same fold; a row is scored by the model that was fitted without
its fold. Rows of a target are dealt to the models at random and not averaged over them, so that their noise is that of
source rows; a row of a group that the source has too goes to the model that has not seen it. The whole is repeated with
other folds (and other random features), and each repetition keeps its scores.

The model is kernel ridge regression of "labelled" (1) against "population" (−1), both of weight one half, with a
Gaussian kernel exp(−c‖x−y‖²/p) by random Fourier features; c and the ridge are chosen by cross-validation. A
scikit-learn classifier can take its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from priorshift.arrays import Floats, Index, Mask
from priorshift.errors import InputError
from priorshift.input.estimators import check_estimator, seeded
from priorshift.input.source import Source

_FREQUENCIES = 100
_SCALES = (0.1, 0.3, 0.5, 1.0)  # c of the kernel
_RIDGES = (1e-3, 1e-2, 1e-1)
_BLOCK = 8192  # rows whose features are held together
_SCORES = ("decision_function", "predict_proba", "predict")  # of a model, the first that it has

Model = Callable[[Floats], Floats]  # rows -> scores


@dataclass(frozen=True, eq=False)
class Repetition:
    """Scores of the two source samples, and the models of the folds for a target; the fold of each observation."""

    positive: Floats
    population: Floats
    models: tuple[Model, ...]
    fold: Index

    def target(self, rows: Floats, of_source: Index, rng: np.random.Generator) -> Floats:
        """Each row by one of the models, dealt at random unless its group is an observation of the source."""
        fold = rng.permutation(np.arange(len(rows)) % len(self.models))
        known = of_source >= 0
        fold[known] = self.fold[of_source[known]]
        scores = np.empty(len(rows))
        for k, model in enumerate(self.models):
            scores[fold == k] = model(rows[fold == k])
        return scores


def cross_fit(
    rows: Floats, source: Source, model: Any, repeats: int, folds: int, rng: np.random.Generator
) -> tuple[Repetition, ...]:
    """Fit and score `repeats` times; the ridge regression is tuned once."""
    observation = source.observation
    positives = len(np.unique(observation[source.positive]))
    others = len(np.setdiff1d(observation, observation[source.positive]))
    folds = min(folds, positives, max(others, 2))
    chosen: tuple[float, float] | None = None
    repetitions = []
    for _ in range(repeats):
        fold = source.deal(folds, rng)
        if model is not None:
            repetitions.append(_by_model(rows, source, model, fold, folds, rng))
            continue
        frequencies = rng.normal(size=(rows.shape[1], _FREQUENCIES))
        repetition, chosen = _by_ridge(rows, source, fold, folds, frequencies, chosen)
        repetitions.append(repetition)
    return tuple(repetitions)


def _by_ridge(
    X: Floats,
    source: Source,
    fold: Index,
    folds: int,
    frequencies: Floats,
    chosen: tuple[float, float] | None,
) -> tuple[Repetition, tuple[float, float]]:
    """The regression of smallest cross-validated error among all settings, or with the one that was chosen."""
    best_error, best = np.inf, None
    for scale in _SCALES if chosen is None else (chosen[0],):
        features = _Features(frequencies * np.sqrt(2 * scale / X.shape[1]))
        parts = [_moments(X, source, fold == k, features) for k in range(folds)]
        gram, moment = sum(part[0] for part in parts), sum(part[1] for part in parts)
        for ridge in _RIDGES if chosen is None else (chosen[1],):
            models = []
            for left_out, its_moment in parts:
                A = gram - left_out
                A[np.diag_indices_from(A)] += ridge * (1 - 1 / folds)
                models.append(_Ridge(features, cho_solve(cho_factor(A, check_finite=False), moment - its_moment)))
            scores = [_held_out(X, rows, fold, models) for rows in (source.positive, source.population)]
            error = float(source.positive_mass @ (scores[0] - 1) ** 2 + source.population_mass @ (scores[1] + 1) ** 2)
            if error < best_error:
                best_error, best = error, (_repetition(scores, models, source, fold), (scale, ridge))
    if best is None:  # infinite or no numbers
        raise InputError("the score cannot be fitted: its error is not a number; rescale the features.")
    return best


@dataclass(frozen=True)
class _Features:
    """cos and sin of random projections, and a constant."""

    frequencies: Floats

    def __call__(self, rows: Floats) -> Floats:
        D = self.frequencies.shape[1]
        made = np.ones((len(rows), 2 * D + 1))
        # with t = tan(a/2), cos a = 2/(1+t²) − 1 and sin a = 2t/(1+t²): one slow function in place of two
        t = np.tan(rows @ (self.frequencies / 2))
        twice = (2 / np.sqrt(D)) / (1 + t * t)
        np.subtract(twice, 1 / np.sqrt(D), out=made[:, :D])
        np.multiply(twice, t, out=made[:, D : 2 * D])
        return made


@dataclass(frozen=True)
class _Ridge:
    features: _Features
    beta: Floats

    def __call__(self, rows: Floats) -> Floats:
        return np.concatenate([np.empty(0), *(self.features(block) @ self.beta for block in _blocks(rows))])


def _moments(X: Floats, source: Source, inside: Mask, features: _Features) -> tuple[Floats, Floats]:
    """Weighted Gram matrix and moment with the label of the rows of a fold."""
    size = 2 * features.frequencies.shape[1] + 1
    gram, moment = np.zeros((size, size)), np.zeros(size)
    samples = (source.positive, source.positive_mass, 0.5), (source.population, source.population_mass, -0.5)
    for rows, mass, half in samples:
        here = inside[rows]
        for block, weight in zip(_blocks(X[rows[here]]), _blocks(mass[here]), strict=True):
            F = features(block)
            if source.is_even:
                gram += abs(half) * weight[0] * (F.T @ F)
                moment += half * weight[0] * F.sum(axis=0)
            else:
                gram += abs(half) * (F.T @ (weight[:, None] * F))
                moment += half * (weight @ F)
    return gram, moment


def _held_out(X: Floats, rows: Index, fold: Index, models: list[Any]) -> Floats:
    scores = np.empty(len(rows))
    for k, model in enumerate(models):
        inside = fold[rows] == k
        scores[inside] = model(X[rows[inside]])
    return scores


def _by_model(X: Floats, source: Source, model: Any, fold: Index, folds: int, rng: np.random.Generator) -> Repetition:
    """A scikit-learn model, fitted to tell labelled (1) from population rows (0)."""
    models: list[Any] = []
    takes_weights = has_fit_parameter(model, "sample_weight")  # one that does not is less precise, not less valid
    for k in range(folds):
        P, U = (rows[fold[rows] != k] for rows in (source.positive, source.population))
        y, rows = np.repeat([1, 0], [len(P), len(U)]), np.concatenate([P, U])
        weights = {"sample_weight": source.weights[rows]} if takes_weights and source.weights is not None else {}
        models.append(ModelScore(seeded(clone(model), rng).fit(X[rows], y, **weights)))
    scores = [_held_out(X, rows, fold, models) for rows in (source.positive, source.population)]
    return _repetition(scores, models, source, fold)


def _repetition(scores: list[Floats], models: list[Any], source: Source, fold: Index) -> Repetition:
    of_observation = np.empty(int(source.observation.max()) + 1, dtype=np.intp)
    of_observation[source.observation] = fold
    return Repetition(scores[0], scores[1], tuple(models), of_observation)


def check_model(model: Any) -> None:
    """Refuse what is no estimator that can score rows."""
    score = next((name for name in _SCORES if hasattr(model, name)), _SCORES[-1])
    check_estimator("model", model, (score,), "None or an estimator")


@dataclass(frozen=True)
class ModelScore:
    """What orders the rows, of a fitted scikit-learn model; larger for positives."""

    model: Any

    def __call__(self, rows: Floats) -> Floats:
        if not len(rows):
            return np.empty(0)
        name = next(name for name in _SCORES if hasattr(self.model, name))
        scores = np.asarray(getattr(self.model, name)(rows), dtype=np.float64)
        if name == "predict_proba" and scores.shape == (len(rows), 2):
            scores = scores[:, 1]
        if scores.shape != (len(rows),) or not np.isfinite(scores).all():
            raise InputError(
                f"{type(self.model).__name__} gave scores of shape {scores.shape} for {len(rows)} rows, or some that "
                "are not finite; one number for each row is expected, larger for positives."
            )
        return scores


def _blocks(rows: Floats) -> list[Floats]:
    return [rows[k : k + _BLOCK] for k in range(0, len(rows), _BLOCK)]
