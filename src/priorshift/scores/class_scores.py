"""Cross-fitted scores of several classes: the density ratios w_k = f_k/f_base of each row, and the efficient functions.

The model is that of :mod:`priorshift.scores.cross_fitting` with an output for each sample: ridge regression, on random
Fourier features, of which sample a row belongs to. All samples have equal weight, so that the outputs estimate the
probability q_s that a row belongs to sample s. Outputs are averaged over repetitions, and calibrated by a multinomial
logistic regression on their logarithms (Dirichlet calibration, Kull et al. 2019), which is fitted to scores by models
that had not seen the row. Then w_k = q_k/q_base.

Every vector of functions h determines the coefficients b of f_T = Σ b_s f_s. By the Cauchy–Schwarz inequality the one
of smallest variance is

    h_k = (w_k − 1)/D,   D = (Σ_s b_s w_s)/n_T + Σ_s b_s² w_s/n_s,   w_base = 1,

which depends on b, so that b is found by iteration. An error of w costs precision, not validity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from priorshift.arrays import Floats, Folds
from priorshift.class_source import ClassSource
from priorshift.errors import InputError
from priorshift.inference.affine_mixture import AffineMixture, SampleValues
from priorshift.io.parameters import check_estimator, seeded
from priorshift.problem import Target
from priorshift.scores.cross_fitting import (
    FIT_ROWS,
    SINGLE_ROWS,
    FitSample,
    assign_folds,
    fit_ridges,
    fourier_features,
)
from priorshift.scores.scored_source import Preparation
from priorshift.threads import map_in_threads

_BLOCK = 2**9  # rows whose features are in memory together
_FREQUENCIES = 250  # several classes need a finer model than one
_RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
_LEAST_SCORE = 0.01  # outputs below are noise, and may have no logarithm
_LARGEST_RATIO = 1e3  # of two densities
_PENALTY = 1e-3  # on the coefficients of the calibration
_LEAST_DENSITY = 0.01  # of the target relative to the base: an estimated density may be negative
_LEAST_FIT_ROWS = 2000  # rows of each sample to which the model is fitted, if there are many samples
# share of the differences between repetitions that is common to all; of 0, ¼, ½ and 1 the one whose intervals were
# nearest to their level on normal classes, Vehicle, MNIST, CIFAR, Fashion, Waveform and KEEL's penbased
_NOISE_FACTOR = 0.5
_NOISE_ROWS = 4000  # rows of the base from which the noise of the functions is estimated
_ITERATIONS = 6  # of the coefficients for which the functions are efficient


@dataclass(frozen=True, eq=False)
class ClassRidge:
    """Ridge regression on random features with an output for each sample."""

    frequencies: NDArray[Any]  # shape (columns, frequencies); in single precision if the model was fitted to many rows
    beta: Floats  # coefficients of `fourier_features`, shape (features, outputs)

    def __call__(self, rows: NDArray[Any]) -> Floats:
        """Return the outputs of each row, shape (rows, outputs)."""
        outputs = np.empty((len(rows), self.beta.shape[1]))
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            features = fourier_features(rows[block], self.frequencies)
            outputs[block] = features @ self.beta.astype(features.dtype)
        return outputs


@dataclass(frozen=True)
class ClassModel:
    """Probabilities of a fitted scikit-learn classifier, in the order of the samples."""

    model: Any

    def __call__(self, rows: NDArray[Any]) -> Floats:
        """Return the probability of each sample for each row, shape (rows, samples)."""
        samples = len(self.model.classes_)
        if not len(rows):  # most models refuse an empty table
            return np.empty((0, samples))
        probabilities = np.asarray(self.model.predict_proba(rows), dtype=np.float64)
        if probabilities.shape != (len(rows), samples) or not np.isfinite(probabilities).all():
            raise InputError(
                f"{type(self.model).__name__} gave probabilities of shape {probabilities.shape} for {len(rows)} rows "
                f"and {samples} samples, or some that are not finite; a finite number for each is expected."
            )
        return probabilities


def check_class_model(model: Any) -> None:
    """Raise InputError unless `model` is a classifier with probabilities."""
    check_estimator("model", model, ("predict_proba",), "None or a classifier with predict_proba")


@dataclass(frozen=True, eq=False)
class Calibration:
    """Multinomial logistic regression on the logarithms of scores."""

    center: Floats  # of the logarithms, shape (samples,)
    spread: Floats
    coefficients: Floats  # shape (samples + 1, samples); the last line is the constant

    @classmethod
    def fit(cls, scores: Sequence[Floats], masses: Sequence[Floats]) -> Calibration:
        """Fit the regression to the scores of the rows of each sample; all samples have equal weight."""
        samples = len(scores)
        features = _logarithms(np.concatenate(scores))
        label = np.repeat(np.arange(samples), [len(rows) for rows in scores])
        weight = np.concatenate(masses) / samples
        center = weight @ features
        spread = np.sqrt(weight @ (features - center) ** 2) + 1e-9  # a sample that no row resembles has no spread
        X = np.column_stack([(features - center) / spread, np.ones(len(features))])
        one_hot = np.eye(samples)[label]
        penalized = np.append(np.ones(samples), 0.0)[:, None]

        def loss(parameters: Floats) -> tuple[float, Floats]:
            """Return the penalised negative log-likelihood and its gradient."""
            B = parameters.reshape(samples + 1, samples)
            log_q = log_softmax(X @ B, axis=1)
            gradient = X.T @ (weight[:, None] * (np.exp(log_q) - one_hot)) + _PENALTY * penalized * B
            value = -weight @ log_q[np.arange(len(label)), label] + _PENALTY / 2 * float((penalized * B**2).sum())
            return float(value), gradient.ravel()

        start = np.zeros((samples + 1) * samples)
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 300, "gtol": 1e-7})
        return cls(center, spread, found.x.reshape(samples + 1, samples))

    def ratios(self, scores: Floats) -> Floats:
        """Return the density ratios w_k = q_k/q_base of rows with these scores, shape (rows, samples − 1).

        If the base is a class, it may have almost no density at a row. It is then raised to a share of the largest, so
        that the other ratios keep their proportions.
        """
        linear = (_logarithms(scores) - self.center) / self.spread @ self.coefficients[:-1] + self.coefficients[-1]
        limit = np.log(_LARGEST_RATIO)
        base = np.maximum(linear[:, -1:], linear.max(axis=1, keepdims=True) - limit)
        return np.exp(np.maximum(linear[:, :-1] - base, -limit))


def _logarithms(scores: Floats) -> Floats:
    """Return the logarithms of scores, small and negative ones raised to the smallest that is not noise."""
    return np.log(np.maximum(scores, _LEAST_SCORE))


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Density ratios of all rows of a source with several classes, and the models that score a target."""

    prepare: Preparation  # of scaled rows for the models
    models: tuple[tuple[Any, ...], ...]  # of each repetition and fold, fitted without the fold
    fold_of_observation: tuple[Folds, ...]  # in each repetition
    calibration: Calibration
    ratios: tuple[Floats, ...]  # w of the rows of each sample, shape (rows, samples − 1)
    repeated: Floats  # w of some rows of the base in each repetition, shape (repeats, rows, samples − 1)
    seed: int  # of the assignment of target rows to the models

    @classmethod
    def fit(
        cls,
        source: ClassSource,
        model: Any,
        repeats: int,
        folds: int,
        rng: np.random.Generator,
        fit_rows: int = FIT_ROWS,
    ) -> ClassScores:
        """Cross-fit scores of the source; `model` None is the ridge regression, else a scikit-learn classifier."""
        seed = int(rng.integers(2**62))
        folds = source.most_folds(folds)
        scaling, table = source.source.scaling, source.source.table
        # the spread is that of the base or, if that is a class, of all rows
        reference = scaling.rows(table.values, source.rows[-1]) if source.has_rest else scaling.rows(table.values)
        prepare = Preparation.fit(reference, used=scaling.factor != 0, encoded=table.origin is not None)
        single = model is None and len(source.source.rows) >= SINGLE_ROWS
        rows = prepare(source.source.rows, single=single)
        drawn = [
            (source.deal_folds(folds, rng), rng.normal(size=(rows.shape[1], _FREQUENCIES)).astype(rows.dtype))
            for _ in range(repeats)
        ]

        def score(fold: Folds, models: Sequence[Any]) -> tuple[tuple[Any, ...], Folds, Floats]:
            """Score the source by the models of one repetition; return models, folds of observations, and scores."""
            observation = source.source.observation
            fold_of_observation = np.empty(int(observation.max()) + 1, dtype=fold.dtype)
            fold_of_observation[observation] = fold
            return tuple(models), fold_of_observation, _scores_by_fold(rows, fold, models)

        if model is None:
            one_hot = np.eye(len(source.rows))
            fit_rows = rows_of_each_sample(fit_rows, len(source.rows))
            samples = [
                FitSample.draw(index, sample.mass, label, 1 / len(one_hot), fit_rows, rng)
                for index, sample, label in zip(source.rows, source.samples, one_hot, strict=True)
            ]
            repetitions = fit_ridges(rows, samples, drawn, folds, ClassRidge, score, _RIDGES)
        else:
            repetitions = [score(fold, _fit_classifiers(rows, source, model, fold, folds, rng)) for fold, _ in drawn]
        scores = np.mean([scored for _, _, scored in repetitions], axis=0)
        by_sample = [scores[index] for index in source.rows]
        calibration = Calibration.fit(*_subsamples(by_sample, [sample.mass for sample in source.samples], fit_rows))
        ratios = tuple(calibration.ratios(sample) for sample in by_sample)
        models, fold_of_observation, by_repetition = zip(*repetitions, strict=True)
        some = source.rows[-1][:: -(-len(source.rows[-1]) // _NOISE_ROWS)]
        repeated = np.stack([calibration.ratios(scored[some]) for scored in by_repetition])
        return cls(prepare, tuple(models), tuple(fold_of_observation), calibration, ratios, repeated, seed)

    def target_ratios(self, target: Target) -> Floats:
        """Return the density ratios of a target's rows; the seed is fixed, so a target always gets the same ones."""
        prepared, rng = self.prepare(target.rows), np.random.default_rng(self.seed)
        folds = [
            assign_folds(target.source_observation, len(models), fold, rng)
            for models, fold in zip(self.models, self.fold_of_observation, strict=True)
        ]

        return self.ratios_by_fold(prepared, folds)

    def ratios_by_fold(self, prepared: NDArray[Any], folds: Sequence[Folds]) -> Floats:
        """Return the density ratios of prepared rows by the models of their folds, given for each repetition."""

        def score(k: int) -> Floats:
            """Score the rows in repetition k."""
            return _scores_by_fold(prepared, folds[k], self.models[k])

        return self.calibration.ratios(np.mean(map_in_threads(score, range(len(folds)), len(prepared)), axis=0))

    def mixture(
        self, source: ClassSource, target: Target, ratios: Floats, *, keep_influence: bool = False
    ) -> AffineMixture:
        """Estimate the coefficients of a target with these density ratios by efficient functions."""
        sizes = np.array([*(sample.size for sample in source.samples), target.size])
        coefficients = np.full(len(source.samples), 1 / len(source.samples))
        for _ in range(_ITERATIONS):
            samples, of_target = self.values(source, target, ratios, coefficients)
            noise = self.noise(coefficients, sizes)
            mixture = AffineMixture.from_values(samples, of_target, noise, keep_influence=keep_influence)
            coefficients = mixture.coefficients
        return mixture

    def values(
        self, source: ClassSource, target: Target, ratios: Floats, coefficients: Floats
    ) -> tuple[list[SampleValues], SampleValues]:
        """Return the functions that are efficient at these coefficients, at the rows of the samples and the target."""
        sizes = np.array([*(sample.size for sample in source.samples), target.size])
        samples = []
        for k, sample in enumerate(source.samples):
            h = efficient_functions(self.ratios[k], coefficients, sizes)
            samples.append(SampleValues(h, sample.mass, sample.observation, sample.observations))
        h, observation = efficient_functions(ratios, coefficients, sizes), target_observations(source, target)
        return samples, SampleValues(h, target.mass, observation, target.observations)

    def noise(self, coefficients: Floats, sizes: Floats) -> Floats:
        """Return the covariance of the noise of h, from the differences between repetitions.

        With F folds, the fits of two repetitions differ in one row of F each, so that their difference has 2/(F−1) of
        the variance of a fit's noise. They also differ in their random features, whose noise is averaged out, hence
        `_NOISE_FACTOR`. Without repetitions the noise is not known, and is all of h.
        """
        repeats, folds = len(self.repeated), len(self.models[0])
        h = np.stack([efficient_functions(ratios, coefficients, sizes) for ratios in self.repeated])
        is_repeated = repeats > 1
        deviation = h - (h.mean(axis=0) if is_repeated else h.mean(axis=1, keepdims=True))
        flat = deviation.reshape(-1, h.shape[2])
        factor = _NOISE_FACTOR * repeats / (repeats - 1) * (folds - 1) if is_repeated else 1.0
        return np.asarray(factor * (flat.T @ flat) / len(flat))


def rows_of_each_sample(fit_rows: int, samples: int) -> int:
    """Return to how many rows of each sample the model is fitted, if it is fitted to `fit_rows` of all."""
    return max(fit_rows // samples, min(fit_rows, _LEAST_FIT_ROWS))


def efficient_functions(ratios: Floats, coefficients: Floats, sizes: Floats) -> Floats:
    """Return the efficient functions h of rows with density ratios w, shape (rows, samples − 1).

    `coefficients` are the b for which they are efficient, and `sizes` the effective sizes of the samples and, last, of
    the target.
    """
    b, n = coefficients, sizes[:-1]
    target_density = np.maximum(ratios @ b[:-1] + b[-1], _LEAST_DENSITY)
    variance = target_density / sizes[-1] + ratios @ (b[:-1] ** 2 / n[:-1]) + b[-1] ** 2 / n[-1]
    return np.asarray((ratios - 1) / (variance * sizes[-1])[:, None])


def target_observations(source: ClassSource, target: Target) -> NDArray[np.intp]:
    """Return the number of each target row's observation: that of the source where it is one of them."""
    first_free = int(source.source.observation.max()) + 1
    return np.where(target.source_observation >= 0, target.source_observation, first_free + target.observation)


def _scores_by_fold(rows: NDArray[Any], fold: Folds, models: Sequence[Any]) -> Floats:
    """Return the outputs for each row of the model of its fold, shape (rows, samples)."""
    members = [np.flatnonzero(fold == k) for k in range(len(models))]
    outputs = [model(rows[index]) for model, index in zip(models, members, strict=True)]
    scores = np.empty((len(rows), outputs[0].shape[1]))
    for index, output in zip(members, outputs, strict=True):
        scores[index] = output
    return scores


def _fit_classifiers(
    rows: Floats, source: ClassSource, model: Any, fold: Folds, folds: int, rng: np.random.Generator
) -> list[ClassModel]:
    """Fit a scikit-learn classifier of the sample of a row without each fold."""
    takes_weights = has_fit_parameter(model, "sample_weight")
    index = np.concatenate(source.rows)
    label = np.repeat(np.arange(len(source.rows)), [len(sample) for sample in source.rows])
    # all samples have the same weight
    weight = np.concatenate([sample.mass for sample in source.samples]) * len(index) / len(source.rows)
    models = []
    for k in range(folds):
        kept = fold[index] != k
        weights = {"sample_weight": weight[kept]} if takes_weights else {}
        models.append(ClassModel(seeded(clone(model), rng).fit(rows[index[kept]], label[kept], **weights)))
    return models


def _subsamples(scores: Sequence[Floats], masses: Sequence[Floats], largest: int) -> tuple[list[Floats], list[Floats]]:
    """Return evenly spaced rows of each sample, at most `largest`, with masses that sum to 1."""
    chosen_scores, chosen_masses = [], []
    for sample, mass in zip(scores, masses, strict=True):
        step = -(-len(sample) // largest)
        chosen = mass[::step]
        chosen_scores.append(sample[::step])
        chosen_masses.append(chosen / chosen.sum())
    return chosen_scores, chosen_masses
