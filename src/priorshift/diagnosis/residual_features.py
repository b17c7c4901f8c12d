"""Features of a row for which label shift is tested: a kernel of all columns, functions of the score, single columns.

The estimator's own score has random features and is tuned on one assignment of the rows to folds, and the p-value of a
test that uses it would change with both (`experiments/studies/seeds.py`). So the test has a score of its own: ridge
regression of "labelled" (1) against "population" (−1) on the longest axes of the kernel, which need no seed. It has so
few coefficients that it can be cross-fitted many times: the folds matter little in the mean, and the ridge is tuned on
all of them. A user's own model keeps its scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index, Mask
from priorshift.diagnosis.parts import DiagnosisInput
from priorshift.diagnosis.residuals import FeatureMean, FeatureMeans, Samples, Signs
from priorshift.io.scaling import Rows
from priorshift.io.tables import Table
from priorshift.problem import Source
from priorshift.scores import mixture
from priorshift.scores.cross_fitting import FIT_ROWS, Repetition, Ridge, most_folds
from priorshift.scores.scored_source import Preparation, ScoredSource
from priorshift.scores.witness import Witness

Singles = NDArray[np.float32]
SampleRows = tuple[Rows, Rows, Rows]  # of P, U and T, scaled
_KERNEL_SCALES = (0.3, 1.0)  # c of the kernels exp(−c‖x−y‖²/p); 1 is TCPU's
_LANDMARKS = 256
_SHORTEST_AXIS = 1e-6  # of the longest: in single precision a shorter one is rounding
_SCORE_COSINES = 5  # of the p-value
_RANK_COSINES = (2, 3, 4)  # of the rank in a column, besides its value
_CLIP = 8.0  # standard deviations
_KNOTS = 1000  # of a distribution function
_REPEATS, _FOLDS = 20, 5  # of the score
_SCORE_AXES = 64
_RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0)
_BLOCK_ROWS = 4096


@dataclass(frozen=True, eq=False)
class KernelFeatures:
    """Coordinates of a mean of Gaussian kernels on the span of landmarks (Nyström).

    With all rows as landmarks it is the kernel itself; a few hundred leave out hardly anything, and unlike random
    features they need no seed.
    """

    landmarks: Floats  # rows of P, U and T, in proportion to their sizes
    axes: Floats  # maps kernel values at the landmarks to orthonormal coordinates, the longest axis first

    @classmethod
    def fit(cls, samples: Sequence[Rows | Floats], prepare: Callable[[Floats], Floats]) -> KernelFeatures:
        """Choose landmarks in even steps, and orthonormalise."""
        total = sum(map(len, samples))
        landmarks = np.concatenate(
            [prepare(x[evenly_spaced(len(x), round(_LANDMARKS * len(x) / total))]) for x in samples]
        )
        length, axes = np.linalg.eigh(_mean_kernel(landmarks, landmarks).astype(np.float64))
        long = np.flatnonzero(length > _SHORTEST_AXIS * length[-1])[::-1]
        return cls(landmarks, axes[:, long] / np.sqrt(length[long]))

    def kernel_values(self, prepared: Floats) -> Singles:
        """Return the kernel of each row with each landmark."""
        return _mean_kernel(prepared, self.landmarks)

    def coordinates(self, prepared: Floats, axes: int | None = None) -> Singles:
        """Return the orthonormal coordinates of rows, on the longest `axes` if given."""
        return np.asarray(self.kernel_values(prepared) @ self.axes[:, :axes].astype(np.float32))


def evenly_spaced(rows: int, most: int) -> Index:
    """Return positions of at most `most` rows, at least one, in even steps."""
    count = min(rows, max(most, 1))
    return np.asarray((np.arange(count) + 0.5) * rows / count, dtype=np.intp)


def _mean_kernel(X: Floats, Y: Floats) -> Singles:
    """Compute in single precision: label shift holds for every function of a row, a rounded one too."""
    x, y = X.astype(np.float32), Y.astype(np.float32)
    squares = np.einsum("ij,ij->i", x, x)[:, None] + np.einsum("ij,ij->i", y, y)
    squares -= 2 * x @ y.T
    squares = np.maximum(squares, 0) / -x.shape[1]
    total = sum(np.exp(np.float32(scale) * squares) for scale in _KERNEL_SCALES)
    return np.asarray(total / np.float32(len(_KERNEL_SCALES)))


@dataclass(frozen=True, eq=False)
class ColumnFeatures:
    """For each column its value in standard deviations of U, and cosines of its rank in U."""

    column: Index  # of each feature, the number of the user's column
    is_value: Mask  # of each feature, whether it is a value or the level of a category, and not a cosine
    encoded: Index  # of each feature, the number of the encoded column
    spread: Floats  # standard deviation of each encoded column in U; 0 where it is not used
    knots: list[Floats | None]  # of each encoded column, sorted values; None where it has no ranks

    @classmethod
    def fit(cls, source: Source, population: Floats) -> ColumnFeatures:
        """Measure the columns in the scaled rows of U."""
        origin, width = source.table.origin, population.shape[1]
        mass = source.population_mass
        centred = population - mass @ population
        spread = np.where(source.scaling.factor != 0, np.sqrt(mass @ centred**2), 0.0)
        column_of = np.arange(width) if origin is None else origin.of
        has_ranks = np.ones(width, dtype=bool) if origin is None else ~origin.own_scale
        knots: list[Floats | None] = [None] * width
        column, is_value, encoded = [], [], []
        for k in np.flatnonzero(spread != 0):
            if has_ranks[k]:
                knots[k] = _equal_mass_values(population[:, k], mass)
            features = 1 + len(_RANK_COSINES) * has_ranks[k]
            column += [column_of[k]] * features
            encoded += [k] * features
            is_value += [True] + [False] * (features - 1)
        return cls(np.array(column, dtype=np.intp), np.array(is_value, dtype=bool), np.array(encoded), spread, knots)

    def __call__(self, rows: Floats) -> Floats:
        features: list[Floats] = []
        for k in np.flatnonzero(self.spread != 0):
            features.append(np.clip(rows[:, k] / self.spread[k], -_CLIP, _CLIP))
            knots = self.knots[int(k)]
            if knots is not None:
                below = np.searchsorted(knots, rows[:, k], "left") + np.searchsorted(knots, rows[:, k], "right")
                features += [np.cos(np.pi * order * below / (2 * len(knots))) for order in _RANK_COSINES]
        return np.stack(features, axis=1)


def column_names(table: Table, encoded: Index) -> tuple[list[str], list[str | None]]:
    """Return the names of the user's columns and, for encoded columns, the level; None where the name is enough."""
    names = list(table.columns) if table.columns else [f"column {k}" for k in range(table.width)]
    if table.origin is None:
        return names, [None] * len(encoded)
    column_of, encoded_names = table.origin.of, names
    names = list(table.origin.columns)
    if len(names) <= column_of.max():  # two columns of one name
        names = [f"column {k}" for k in range(int(column_of.max()) + 1)]
    several = np.bincount(column_of, minlength=len(names)) > 1
    return names, [encoded_names[k] if several[column_of[k]] else None for k in encoded]


def _equal_mass_values(values: Floats, mass: Floats) -> Floats:
    """Return sorted values of equal mass, as many as a distribution function needs."""
    order = np.argsort(values, kind="stable")
    if len(values) <= _KNOTS and np.ptp(mass) == 0:
        return np.asarray(values[order])
    middle = np.cumsum(mass[order]) - mass[order] / 2
    at = (np.arange(_KNOTS) + 0.5) / _KNOTS
    return np.asarray(values[order][np.minimum(np.searchsorted(middle, at), len(values) - 1)])


@dataclass(frozen=True)
class _LinearScore:
    """A score that is linear in the features and a constant."""

    beta: Floats

    def __call__(self, features: Floats) -> Floats:
        return features @ self.beta


def cross_fit_kernel_score(inputs: DiagnosisInput, rows: SampleRows, kernel: KernelFeatures) -> tuple[Witness, Floats]:
    """Score P, U and T by ridge regression on the longest axes; return the witness and the target's p-values."""
    source, target, scored, rng = inputs.source, inputs.fit.target, inputs.fit.witness.scored, inputs.rng

    def features(x: Floats) -> Singles:
        coordinates = kernel.coordinates(scored.prepare(x), _SCORE_AXES)
        return np.concatenate([coordinates, np.ones((len(coordinates), 1), dtype=np.float32)], axis=1)

    folds = most_folds(source, _FOLDS)
    fold_of = np.stack([source.deal_folds(folds, rng) for _ in range(_REPEATS)])
    fold_P, fold_U = fold_of[:, source.positive], fold_of[:, source.population]
    halves = (rows[0], source.positive_mass, fold_P, 0.5), (rows[1], source.population_mass, fold_U, -0.5)
    gram, moment = np.zeros(()), np.zeros(())
    for sample, mass, fold, half in halves:
        taken = evenly_spaced(len(sample), FIT_ROWS)
        grams, means = _sums_by_fold(features(sample[taken]), mass[taken] / mass[taken].sum(), fold[:, taken], folds)
        gram, moment = gram + abs(half) * grams, moment + half * means
    beta = _fit_ridge(gram, moment)
    P, U = (_held_out_scores(sample, fold, features, beta) for sample, _, fold, _ in halves)
    repetitions = []
    for k in range(_REPEATS):
        fold_of_observation = np.empty(int(source.observation.max()) + 1, dtype=np.intp)
        fold_of_observation[source.observation] = fold_of[k]
        repetitions.append(Repetition(P[k], U[k], tuple(map(_LinearScore, beta[k])), fold_of_observation))
    rescored = ScoredSource.from_repetitions(source, scored.prepare, tuple(repetitions), scored.seed)
    fold_T = np.stack([one.assign_folds(target.of_source, rng) for one in repetitions])
    T = _held_out_scores(rows[2], fold_T, features, beta)
    p_values = np.stack([rescored.ranks(one.positive, scores) for one, scores in zip(repetitions, T, strict=True)])
    return Witness.from_scores(rescored, source.without_rows(), *rescored.mixture), p_values


def _sums_by_fold(F: Singles, mass: Floats, fold: Index, folds: int) -> tuple[Floats, Floats]:
    """Return Gram matrices and means of the features in each fold of each repetition."""
    width, single_mass = F.shape[1], mass.astype(np.float32)
    gram, moment = np.empty((len(fold), folds, width, width)), np.empty((len(fold), folds, width))
    for k, fold_of_row in enumerate(fold):
        for j in range(folds):
            inside = np.flatnonzero(fold_of_row == j)
            own = F[inside]
            weighted = own * single_mass[inside, None]
            gram[k, j], moment[k, j] = weighted.T @ own, weighted.sum(axis=0)
    return gram, moment


def _fit_ridge(gram: Floats, moment: Floats) -> Floats:
    """Return the coefficients for each fold, fitted to the other folds, shape (repeats, folds, features).

    The ridge maximises the correlation of label and score over all repetitions, since only the order of scores counts.
    """
    others, other_moment = gram.sum(axis=1, keepdims=True) - gram, moment.sum(axis=1, keepdims=True) - moment
    largest, best = -np.inf, moment
    for ridge in _RIDGES:
        ridged = others + ridge * (1 - 1 / gram.shape[1]) * np.eye(gram.shape[-1])
        beta = np.linalg.solve(ridged, other_moment[..., None])[..., 0]
        square = float(np.sum((gram @ beta[..., None])[..., 0] * beta))
        correlation = float(np.sum(moment * beta)) / np.sqrt(max(square, 1e-300))
        if correlation > largest:
            largest, best = correlation, beta
    return np.asarray(best)


def _held_out_scores(rows: Rows, fold: Index, features: Callable[[Floats], Singles], beta: Floats) -> Floats:
    """Score each row by the model of its fold, shape (repeats, rows)."""
    scores, single = np.empty(fold.shape), beta.astype(np.float32)
    for first in range(0, len(rows), _BLOCK_ROWS):
        at = slice(first, first + _BLOCK_ROWS)
        by_model = np.einsum("if,rkf->rik", features(rows[at]), single, optimize=True)
        scores[:, at] = np.take_along_axis(by_model, fold[:, at, None], axis=2)[..., 0]
    return scores


@dataclass(frozen=True, eq=False)
class ResidualFeatures:
    """All features of the rows of P, U and T in one array, so that they are resampled with the same signs."""

    kernel: KernelFeatures
    columns: ColumnFeatures
    cosines: Floats  # functions of the p-value, shape (cosines, bins)
    cosine_means: Floats  # in P, where they are known exactly, since p-values are ranks
    variance_factor: float  # by which the noise of the scores enlarges the variance of cosine means in P and U
    rows: SampleRows
    bins: tuple[Index, Index, Index]  # of the p-values of P, U and T, shape (repeats, rows)
    prepare: Preparation  # maps rows to what the kernel takes

    @classmethod
    def fit(cls, inputs: DiagnosisInput) -> ResidualFeatures:
        """Fit the kernel and the columns, and a score that depends little on the seed unless the user has a model."""
        source, fit = inputs.source, inputs.fit
        witness, p_values, prepare = fit.witness, fit.p_values, fit.witness.scored.prepare
        P, U = (source.scaling.rows(source.table.values, index) for index in (source.positive, source.population))
        rows = P, U, fit.target.rows
        kernel = KernelFeatures.fit(rows, prepare)
        if isinstance(witness.scored.repetitions[0].models[0], Ridge):
            witness, p_values = cross_fit_kernel_score(inputs, rows, kernel)
        middle = (np.arange(mixture.BINS) + 0.5) / mixture.BINS
        cosines = np.asarray(np.cos(np.pi * np.outer(np.arange(1, _SCORE_COSINES + 1), middle)))
        return cls(
            kernel,
            ColumnFeatures.fit(source, U[:]),
            cosines,
            witness.positive_mean(cosines),
            # of the first cosine, a conservative choice: noise moves rows along v, which slow functions see most
            1 + witness.noise_share(np.tile(cosines[0], (len(p_values), 1))),
            rows,
            (witness.positive, witness.population, mixture.bins(p_values)),
            prepare,
        )

    def resample(self, samples: Samples, signs: Signs) -> tuple[FeatureMeans, FeatureMeans, FeatureMeans]:
        """Return the means over P, U and T of the kernel's coordinates, of the cosines and of the columns."""
        landmarks, cosines = len(self.kernel.landmarks), len(self.cosines)
        of_score = slice(landmarks, landmarks + cosines)
        P, U, T = (FeatureMean.resample(sample, signs, self._of_sample(k)) for k, sample in enumerate(samples))
        P.value[of_score] = self.cosine_means
        for mean in (P, U):
            mean.noise[:, of_score] *= np.sqrt(self.variance_factor)
        means = P, U, T
        kernel_P, kernel_U, kernel_T = (m.select(slice(0, landmarks)).project(self.kernel.axes) for m in means)
        score_P, score_U, score_T = (m.select(of_score) for m in means)
        column_P, column_U, column_T = (m.select(slice(of_score.stop, None)) for m in means)
        return (kernel_P, kernel_U, kernel_T), (score_P, score_U, score_T), (column_P, column_U, column_T)

    def _of_sample(self, sample: int) -> Callable[[slice], Floats]:
        rows, bins = self.rows[sample], self.bins[sample]

        def features(at: slice) -> Floats:
            block = rows[at]
            cosines = np.mean([self.cosines[:, b[at]] for b in bins], axis=0).T
            kernel = self.kernel.kernel_values(self.prepare(block))
            return np.concatenate([kernel, cosines, self.columns(block)], axis=1)

        return features
