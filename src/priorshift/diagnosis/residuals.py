"""The residual of label shift: what e(r) = E_T φ − (1−r)·E_P φ − r·E_U φ leaves unexplained, and its features φ.

Under label shift e(R) is noise, for every φ. With b = E_T φ − E_P φ and a = E_U φ − E_P φ it is b − r·a. Least squares
would estimate r too small, since a is noisy too. Divided by what noise contributes,

    λ = min over r of ‖b − r·a‖²/E‖noise of (b − r·a)‖²

is consistent (limited information maximum likelihood), and its distribution hardly depends on the size of a. It is the
smallest root of det(M − λN) = 0 with the 2 × 2 Gram matrices M of (b, a) and N of their noise. The null distribution of
λ comes from resamples: the a that fits R̂ best, shrunk by its noise, plus noise resampled by random signs. A mean
Σ mass·φ(x) errs by a sum of independent terms mass·(φ(x) − E φ), one for each observation; with random signs before
them the sum has the distribution of the error. All features and tests use the same signs, one for each observation.
Such a sum has the variance that the sample shows, which with few observations may be too small by chance. So the noise
of the few cosines of the score gets the tails of Student's distribution. That of the kernel and of the columns does
not: there are many of them, and such chances cancel (`experiments/studies/type_one.py`).

Features are a kernel of all columns, cosines of a score's p-value, and single columns. The estimator's own score
depends on the seed and on the folds, and so would the p-value (`experiments/studies/seeds.py`). So the test has its own
score: ridge regression of "labelled" (1) against "population" (−1) on the longest axes of the kernel, which need no
seed, cross-fitted so often that folds matter little. A user's own model keeps its scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Folds, Index, Mask
from priorshift.diagnosis.identification import DiagnosisInput
from priorshift.io.row_hashes import Codes, content_codes
from priorshift.io.sample_size import effective_size
from priorshift.io.scaling import Rows
from priorshift.problem import Source, Target
from priorshift.scores import mixture
from priorshift.scores.cross_fitting import (
    FIT_ROWS,
    Repetition,
    Ridge,
    assign_folds,
    most_folds,
)
from priorshift.scores.scored_source import Preparation, ScoredSource
from priorshift.scores.witness import Witness

Signs = NDArray[np.int8]  # shape (resamples, observations)
Singles = NDArray[np.float32]
_BLOCK_VALUES = 2**22  # signs and features in memory at a time
_BLOCK_FEATURES = 512  # whose resamples are in memory at a time
_LARGEST_RATIO = 1e3  # bound on |r|
_CLEAR_DIRECTION = 3.0  # multiple of its noise that ‖a‖² must exceed before the direction of a is trusted
_TINY = 1e-300
_KERNEL_SCALES = (0.3, 1.0)  # c of the kernels exp(−c‖x−y‖²/p); 1 is TCPU's
_LANDMARKS = 256
_SHORTEST_AXIS = 1e-6  # of the longest: in single precision a shorter one is rounding
_SCORE_COSINES = 5  # of the p-value
_RANK_COSINES = (2, 3, 4)  # of the rank in a column, besides its value
_CLIP = 8.0  # standard deviations
_KNOTS = 1000  # values by which the distribution function of a column is stored
_REPEATS, _FOLDS, _SCORE_AXES = 20, 5, 64  # cross-fitting of the score, and axes of the kernel that it uses
_RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0)  # penalties that the score chooses from
_BLOCK_ROWS = 4096
_COPIES_OF_FEW_VALUES = 50  # rows for each distinct row, from which on copies have one score in all folds


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """The masses of the rows of a sample, and the observations that they belong to."""

    mass: Floats  # of each row; the sum is 1
    observation: Index  # number of each row's observation, the same numbering in all samples

    @property
    def size(self) -> float:
        """Effective number of observations, at least two."""
        _, consecutive_numbers = np.unique(self.observation, return_inverse=True)
        return max(effective_size(self.mass, consecutive_numbers), 2.0)


Samples = Sequence[WeightedSample]  # P, U and T


def weighted_samples(source: Source, target: Target) -> Samples:
    """Return the masses of the rows of P, U and T, and their observations with one numbering for all three.

    A row of the target whose group is in the source has the number of the source's observation.
    """
    source_number = source.observation
    own_number = target.observation + int(source_number.max()) + 1
    target_number = np.where(
        target.source_observation >= 0, target.source_observation, own_number
    )  # −1 for rows not in the source
    return (
        WeightedSample(source.P.mass, source_number[source.positive]),
        WeightedSample(source.U.mass, source_number[source.population]),
        WeightedSample(target.mass, target_number),
    )


def random_signs(samples: Samples, resamples: int, rng: np.random.Generator) -> Signs:
    """Draw a sign, -1 or 1, for each observation in each resample; shape (resamples, observations)."""
    observations = 1 + max(int(sample.observation.max()) for sample in samples)
    signs = rng.integers(0, 2, size=(resamples, observations), dtype=np.int8)
    signs *= 2
    signs -= 1
    return signs


def student_factors(size: float, resamples: int, rng: np.random.Generator) -> Floats:
    """Draw factors that give the normal errors of a mean over `size` observations the tails of Student's distribution.

    Their 4(size − 1) degrees of freedom were chosen in simulations with ten and twenty positives: with size − 1, which
    is right for one cosine, the test of all cosines together is conservative.
    """
    freedom = 4 * (size - 1)
    return np.asarray(np.sqrt(freedom / rng.chisquare(freedom, resamples)))


@dataclass(frozen=True, eq=False)
class FeatureMean:
    """The mean of features over a sample, and its error in each resample."""

    value: Floats  # shape (features,)
    noise: Floats  # shape (resamples, features)
    size: float  # effective number of observations

    @classmethod
    def resample(cls, sample: WeightedSample, signs: Signs, features: Callable[[slice], Floats]) -> FeatureMean:
        """Compute the mean over a sample, and its errors if each observation's deviation had a random sign.

        `features` returns the features of a slice of the rows, shape (rows, features); rows are taken by blocks.
        """
        value: Any = 0.0
        noise = np.empty((len(signs), 0))
        sign_sums = np.zeros(len(signs))
        block = max(1, _BLOCK_VALUES // len(signs))
        for first in range(0, len(sample.mass), block):
            rows = slice(first, first + block)
            phi, mass = features(rows), sample.mass[rows]
            # single precision: six digits of the noise are enough
            weights = signs[:, sample.observation[rows]] * mass.astype(np.float32)
            value = value + mass @ phi
            if first == 0:
                noise = np.zeros((len(signs), phi.shape[1]))
            noise += weights @ phi.astype(np.float32)
            sign_sums += weights.sum(axis=1)
        size = sample.size
        for row, sign_sum in zip(noise, sign_sums, strict=True):  # a row at a time needs no second array
            row -= sign_sum * value
        noise *= np.sqrt(size / (size - 1))  # Bessel's correction
        return cls(value, noise, size)


FeatureMeans = Sequence[FeatureMean]  # of P, U and T


def inverse_noise(means: FeatureMeans, ratio: float) -> Floats:
    """Return one over the standard deviation of E_T φ − (1−r)·E_P φ − r·E_U φ of each feature φ at a ratio r.

    It is 0 for a constant feature, which has no noise.
    """
    P, U, T = means
    variance = np.empty(len(P.value))
    for part in feature_blocks(len(variance)):
        noise = T.noise[:, part] - (1 - ratio) * P.noise[:, part] - ratio * U.noise[:, part]
        variance[part] = (noise**2).mean(axis=0)
    spread = np.sqrt(variance)
    return np.where(spread > 0, 1 / np.maximum(spread, _TINY), 0.0)


def feature_blocks(count: int) -> Iterator[slice]:
    """Yield slices of so few of `count` features that the values of all resamples take little memory."""
    for first in range(0, count, _BLOCK_FEATURES):
        yield slice(first, first + _BLOCK_FEATURES)


class Gram(NamedTuple):
    """Inner products ⟨b, b⟩, ⟨a, b⟩ and ⟨a, a⟩, each a number or an array over resamples."""

    bb: Any
    ab: Any
    aa: Any

    @classmethod
    def from_vectors(cls, b: Floats, a: Floats) -> Gram:
        """Compute the inner products of vectors along the last axis, one for each of the leading axes."""
        along_last = "...i,...i->..."
        return cls(np.einsum(along_last, b, b), np.einsum(along_last, a, b), np.einsum(along_last, a, a))

    def residual_square(self, r: Any) -> Any:
        """Return ‖b − r·a‖² at a ratio r, from the inner products."""
        return self.bb - 2 * r * self.ab + r * r * self.aa


def smallest_root(M: Gram, N: Gram) -> tuple[Any, Any]:
    """Return λ = min over r of ‖b − r·a‖²/E‖noise of (b − r·a)‖², and the r of the minimum.

    M is the Gram matrix of (b, a), a number or an array over resamples each, and N that of their noise; λ is the
    smallest root of det(M − λN) = 0. A negative r is impossible and replaced by 0, with the λ of r = 0, unless a is
    mostly noise and may have any direction.
    """
    # the determinant is the quadratic Aλ² − Bλ + C
    A = max(N.bb * N.aa - N.ab**2, _TINY)
    B = M.bb * N.aa + M.aa * N.bb - 2 * M.ab * N.ab
    C = np.maximum(M.bb * M.aa - M.ab**2, 0.0)
    # the smaller root, in the form without cancellation
    root = 2 * C / np.maximum(B + np.sqrt(np.maximum(B * B - 4 * A * C, 0.0)), _TINY)
    # r minimises ‖b − r·a‖² − λ·E‖noise of (b − r·a)‖²
    r = np.clip((M.ab - root * N.ab) / np.maximum(M.aa - root * N.aa, _TINY), -_LARGEST_RATIO, _LARGEST_RATIO)
    negative = (r < 0) & (M.aa > _CLEAR_DIRECTION * N.aa)
    return np.where(negative, M.bb / max(N.bb, _TINY), root), np.where(negative, 0.0, r)


def fit_ratio(b: Floats, a: Floats, noise: Gram) -> tuple[float, float, Floats]:
    """Return λ and R̂ of features with these b and a, and a under the null hypothesis of label shift, without noise.

    `noise` is the mean Gram matrix of the errors of b and a.
    """
    statistic, ratio = smallest_root(Gram.from_vectors(b, a), noise)
    R = float(ratio)
    # a given b = R·a: its regression on the residual e, whose noise is correlated with that of a
    e, variance, covariance = b - R * a, max(float(noise.residual_square(R)), _TINY), noise.ab - R * noise.aa
    nearest = a - covariance / variance * e
    # shrunk so that its squared length has no noise: the share of signal in it
    signal = 1 - (noise.aa - covariance**2 / variance) / max(float(nearest @ nearest), _TINY)
    return float(statistic), R, np.asarray(nearest * np.sqrt(max(signal, 0.0)))


@dataclass(frozen=True, eq=False)
class Residual:
    """The residual b − R̂·a of some features, with the ratio R̂ that minimises λ."""

    b: Floats  # E_T φ − E_P φ
    a: Floats  # E_U φ − E_P φ
    noise_b: Floats  # errors of b, shape (resamples, features)
    noise_a: Floats  # errors of a
    noise: Gram  # of the errors of b and a, the mean over resamples
    statistic: float  # λ
    ratio: float  # R̂
    null_a: Floats  # a under label shift, without noise

    @classmethod
    def fit(cls, means: FeatureMeans, scale: Floats | float = 1.0) -> Residual:
        """Estimate R, and a under the null hypothesis of label shift, from the means of features in P, U and T.

        Each feature is first multiplied by its `scale`, which says how much it counts.
        """
        P, U, T = (FeatureMean(mean.value * scale, mean.noise * scale, mean.size) for mean in means)
        b, a = T.value - P.value, U.value - P.value
        noise_b, noise_a = T.noise - P.noise, U.noise - P.noise
        N = Gram(*(float(np.mean(products)) for products in Gram.from_vectors(noise_b, noise_a)))
        statistic, R, null_a = fit_ratio(b, a, N)
        return cls(b, a, noise_b, noise_a, N, statistic, R, null_a)

    def null_statistics(self) -> Floats | None:
        """Return λ of each resample under label shift, b = R̂·a plus noise; None where features have no noise."""
        if not (np.isfinite(self.statistic) and self.noise.residual_square(self.ratio) > _TINY):
            return None
        M = Gram.from_vectors(self.ratio * self.null_a + self.noise_b, self.null_a + self.noise_a)
        statistics = np.asarray(smallest_root(M, self.noise)[0])
        return statistics if np.isfinite(statistics).all() else None


@dataclass(frozen=True, eq=False)
class KernelFeatures:
    """Coordinates of a mean of Gaussian kernels on the span of a few hundred landmarks (Nyström)."""

    landmarks: Floats  # rows of P, U and T, in proportion to their sizes
    axes: Floats  # maps kernel values at the landmarks to orthonormal coordinates, the longest axis first

    @classmethod
    def fit(cls, samples: Sequence[Rows | Floats], prepare: Callable[[Floats], Floats]) -> KernelFeatures:
        """Choose landmarks in the rows of P, U and T, in even steps, and orthonormalise their kernel functions.

        `prepare` maps rows to the input of the kernel.
        """
        total, chosen = sum(map(len, samples)), []
        for rows in samples:
            chosen.append(prepare(rows[evenly_spaced(len(rows), round(_LANDMARKS * len(rows) / total))]))
        landmarks = np.concatenate(chosen)
        eigenvalues, axes = np.linalg.eigh(_mean_kernel(landmarks, landmarks).astype(np.float64))  # ascending
        long = np.flatnonzero(eigenvalues > _SHORTEST_AXIS * eigenvalues[-1])[::-1]  # the longest axis first
        return cls(landmarks, axes[:, long] / np.sqrt(eigenvalues[long]))

    def coordinates(self, prepared: Floats, axes: int | None = None) -> Singles:
        """Return the orthonormal coordinates of prepared rows, shape (rows, axes); only the longest `axes` if given."""
        return np.asarray(_mean_kernel(prepared, self.landmarks) @ self.axes[:, :axes].astype(np.float32))


def evenly_spaced(rows: int, max_rows: int) -> Index:
    """Return positions from 0 to `rows` − 1 in even steps, at most `max_rows` and at least one."""
    count = min(rows, max(max_rows, 1))
    return np.asarray((np.arange(count) + 0.5) * rows / count, dtype=np.intp)


def _mean_kernel(X: Floats, Y: Floats) -> Singles:
    """Return the mean over scales c of the kernels exp(−c‖x−y‖²/p), for all pairs of rows x of X and y of Y.

    Single precision is enough: label shift holds for every function of a row, a rounded one too.
    """
    x, y = X.astype(np.float32), Y.astype(np.float32)
    squares = np.einsum("ij,ij->i", x, x)[:, None] + np.einsum("ij,ij->i", y, y)
    squares -= 2 * x @ y.T
    squares = np.maximum(squares, 0) / -x.shape[1]  # −‖x−y‖²/p
    total = sum(np.exp(np.float32(scale) * squares) for scale in _KERNEL_SCALES)
    return np.asarray(total / np.float32(len(_KERNEL_SCALES)))


@dataclass(frozen=True, eq=False)
class ColumnFeatures:
    """For each column its value in standard deviations of U, and cosines of its rank in U."""

    column: Index  # number of the user's column, for each feature
    is_value: Mask  # whether a feature is a value or the level of a category, and not a cosine
    encoded: Index  # number of the encoded column, for each feature
    spread: Floats  # standard deviation of each encoded column in U; 0 where it is not used
    knots: dict[int, Floats]  # quantiles in U of each encoded column that has ranks, at levels in even steps

    @classmethod
    def fit(cls, source: Source, population: Floats) -> ColumnFeatures:
        """Compute spreads and quantiles of the encoded columns from `population`, the scaled rows of U."""
        origin, mass = source.table.origin, source.U.mass  # masses sum to 1
        centred = population - mass @ population
        spread = np.where(source.scaling.factor != 0, np.sqrt(mass @ centred**2), 0.0)
        used = np.flatnonzero(spread != 0)
        ranked = used if origin is None else used[~origin.own_scale[used]]  # levels of categories have no ranks
        quantile_levels = (np.arange(_KNOTS) + 0.5) / _KNOTS
        knots = {}
        for k in ranked:
            order = np.argsort(population[:, k], kind="stable")
            values = population[order, k]
            if len(order) > _KNOTS or np.ptp(mass) != 0:  # else every value is a knot
                cumulative = np.cumsum(mass[order]) - mass[order] / 2
                values = values[np.minimum(np.searchsorted(cumulative, quantile_levels), len(order) - 1)]
            knots[int(k)] = values
        features_per_column = np.where(np.isin(used, ranked), 1 + len(_RANK_COSINES), 1)
        encoded = np.repeat(used, features_per_column)
        is_value = np.diff(encoded, prepend=-1) != 0  # the first feature of a column is its value
        column = encoded if origin is None else origin.original_column[encoded]  # the user's column of each feature
        return cls(column, is_value, encoded, spread, knots)

    def __call__(self, rows: Floats) -> Floats:
        """Return the features of scaled rows, shape (rows, features): the value of each column, then its cosines."""
        features: list[Floats] = []
        for k in np.flatnonzero(self.spread != 0):
            features.append(np.clip(rows[:, k] / self.spread[k], -_CLIP, _CLIP))
            knots = self.knots.get(int(k))
            if knots is not None:
                # twice the mid-rank among the knots, so that ties count half
                rank = np.searchsorted(knots, rows[:, k], "left") + np.searchsorted(knots, rows[:, k], "right")
                features += [np.cos(np.pi * order * rank / (2 * len(knots))) for order in _RANK_COSINES]
        return np.stack(features, axis=1)


def cross_fit_kernel_score(
    inputs: DiagnosisInput, rows: Sequence[Rows], kernel: KernelFeatures
) -> tuple[Witness, Floats]:
    """Score P, U and T by cross-fitted ridge regression of the label (1 in P, −1 in U) on the kernel's longest axes.

    `rows` are the scaled rows of P, U and T. Return the witness of these scores, and the p-values of the target's rows,
    shape (repeats, rows).
    """
    source, target, scored, rng = inputs.source, inputs.fit.target, inputs.fit.witness.scored, inputs.rng
    rows_P, rows_U, _ = rows

    def features(block: Floats) -> Singles:
        """Return the coordinates of rows on the longest axes, and a constant 1 for the intercept."""
        coordinates = kernel.coordinates(scored.prepare(block), _SCORE_AXES)
        return np.concatenate([coordinates, np.ones((len(coordinates), 1), dtype=np.float32)], axis=1)

    folds = most_folds(source, _FOLDS)
    fold = np.stack([source.deal_folds(folds, rng) for _ in range(_REPEATS)])  # of each row, shape (repeats, rows)
    fold_P, fold_U = fold[:, source.positive], fold[:, source.population]
    # P and U have half of the mass each
    gram, moment = np.zeros(()), np.zeros(())
    for sample, mass, sample_fold, label in ((rows_P, source.P.mass, fold_P, 1), (rows_U, source.U.mass, fold_U, -1)):
        taken = evenly_spaced(len(sample), FIT_ROWS)
        weights = mass[taken] / mass[taken].sum()
        grams, sums = _sums_by_fold(features(sample[taken]), weights, sample_fold[:, taken], folds)
        gram, moment = gram + 0.5 * grams, moment + 0.5 * label * sums
    beta = _fit_ridge(gram, moment)
    fold_of_observation = np.empty((_REPEATS, int(source.observation.max()) + 1), dtype=fold.dtype)
    fold_of_observation[:, source.observation] = fold
    fold_T = np.stack([assign_folds(target.source_observation, folds, known, rng) for known in fold_of_observation])
    scores_P, scores_U, scores_T = _held_out_scores(rows, (fold_P, fold_U, fold_T), features, beta)
    repetitions = []
    for k in range(_REPEATS):
        models = tuple(partial(np.inner, coefficients) for coefficients in beta[k])
        repetitions.append(Repetition(scores_P[k], scores_U[k], models, fold_of_observation[k]))
    rescored = ScoredSource.from_repetitions(source, scored.prepare, tuple(repetitions), scored.seed)
    p_values = np.stack([rescored.ranks(scores_P[k], scores_T[k]) for k in range(_REPEATS)])
    return Witness.from_scores(rescored, source.without_rows(), *rescored.mixture), p_values


def _sums_by_fold(features: Singles, mass: Floats, fold: Folds, folds: int) -> tuple[Floats, Floats]:
    """Return weighted sums of products of features, and of features, over the rows of each fold of each repetition.

    `features` has shape (rows, features), `fold` (repeats, rows) and `mass` is the weight of each row. The results have
    shapes (repeats, folds, features, features) and (repeats, folds, features).
    """
    width, single_mass = features.shape[1], mass.astype(np.float32)
    grams, sums = np.empty((len(fold), folds, width, width)), np.empty((len(fold), folds, width))
    for k, fold_of_row in enumerate(fold):
        for j in range(folds):
            members = np.flatnonzero(fold_of_row == j)
            in_fold = features[members]
            weighted = in_fold * single_mass[members, None]
            grams[k, j], sums[k, j] = weighted.T @ in_fold, weighted.sum(axis=0)
    return grams, sums


def _fit_ridge(gram: Floats, moment: Floats) -> Floats:
    """Return the coefficients of ridge regression for each fold, fitted to the other folds.

    `gram` and `moment` are sums over the rows of each fold of features × features and of label × features, shapes
    (repeats, folds, features, features) and (repeats, folds, features), which is also that of the coefficients.
    """
    other_gram, other_moment = gram.sum(axis=1, keepdims=True) - gram, moment.sum(axis=1, keepdims=True) - moment
    largest, best = -np.inf, moment
    for ridge in _RIDGES:  # chosen by the held-out correlation of label and score: only the order of scores matters
        ridged = other_gram + ridge * (1 - 1 / gram.shape[1]) * np.eye(gram.shape[-1])
        beta = np.linalg.solve(ridged, other_moment[..., None])[..., 0]
        score_square = float(np.sum((gram @ beta[..., None])[..., 0] * beta))
        correlation = float(np.sum(moment * beta)) / np.sqrt(max(score_square, 1e-300))
        if correlation > largest:
            largest, best = correlation, beta
    return np.asarray(best)


def _held_out_scores(
    samples: Sequence[Rows], folds: Sequence[Folds], features: Callable[[Floats], Singles], beta: Floats
) -> list[Floats]:
    """Score the rows of each sample by the models that were fitted without their folds.

    `folds` and the scores have shape (repeats, rows) for each sample. `beta` are the coefficients of the models on
    `features` of rows, shape (repeats, folds, features).
    """
    single_beta = beta.astype(np.float32)

    def score(block: Floats) -> Singles:
        """Return the scores of some rows by all models, shape (repeats, rows, folds)."""
        return np.einsum("if,rkf->rik", features(block), single_beta, optimize=True)

    scores, codes = [], []
    for rows, fold in zip(samples, folds, strict=True):
        sample_scores, sample_codes = np.empty(fold.shape), np.empty(len(rows), dtype=np.uint64)
        for first in range(0, len(rows), _BLOCK_ROWS):
            part = slice(first, first + _BLOCK_ROWS)
            block = rows[part]
            sample_codes[part] = content_codes(block)
            sample_scores[:, part] = np.take_along_axis(score(block), fold[:, part, None], axis=2)[..., 0]
        scores.append(sample_scores)
        codes.append(sample_codes)
    _equate_copies(samples, folds, codes, scores, score)
    return scores


def _equate_copies(
    samples: Sequence[Rows],
    folds: Sequence[Folds],
    codes: Sequence[Codes],
    scores: Sequence[Floats],
    score: Callable[[Floats], Singles],
) -> None:
    """Give identical rows of all samples, which have equal `codes`, identical `scores` by the same model, in place.

    In single precision the score of a row depends on the rows that it is scored with, so that ties between samples
    would break in favour of one of them. Each row that repeats is scored once, and its copies get that score.

    If there are few distinct rows, copies also get the same score in all folds, the mean over models. Otherwise ties
    would break between folds, by the noise of the models: a fold's model has a high score for a row that is rare among
    the fold's own positives, since it was fitted to the others. What rows of P and U contribute to their own scores is
    then at most 1 in 50.
    """
    start = np.cumsum([0, *map(len, samples)])  # position of each sample's first row among all rows
    _, first_row, number, copies = np.unique(
        np.concatenate(codes), return_index=True, return_inverse=True, return_counts=True
    )
    repeated = np.flatnonzero(copies > 1)
    has_few_values = len(copies) * _COPIES_OF_FEW_VALUES <= len(number)
    for begin in range(0, len(repeated), _BLOCK_ROWS):
        chunk = repeated[begin : begin + _BLOCK_ROWS]
        line = np.full(len(copies), -1)  # line of each distinct row in `table`
        # the chunk's rows, each from the sample that has it first
        of_sample = [
            np.flatnonzero((first_row[chunk] >= start[k]) & (first_row[chunk] < start[k + 1])) for k in range(3)
        ]
        rows = np.concatenate([samples[k][first_row[chunk[own]] - start[k]] for k, own in enumerate(of_sample)])
        table = score(rows)  # shape (repeats, lines, folds)
        if has_few_values:
            table = np.broadcast_to(table.mean(axis=2, keepdims=True), table.shape)
        line[chunk[np.concatenate(of_sample)]] = np.arange(len(chunk))
        for k, fold in enumerate(folds):
            line_of_row = line[number[start[k] : start[k + 1]]]
            copied = np.flatnonzero(line_of_row >= 0)
            for repeat in range(len(fold)):
                scores[k][repeat, copied] = table[repeat, line_of_row[copied], fold[repeat, copied]]


@dataclass(frozen=True, eq=False)
class ResidualFeatures:
    """All features of the rows of P, U and T in one array, so that they are resampled with the same signs."""

    kernel: KernelFeatures
    columns: ColumnFeatures
    cosines: Floats  # functions of the p-value, shape (cosines, bins)
    cosine_means: Floats  # means of the cosines in P, which are known exactly but for ties, since p-values are ranks
    variance_factor: float  # by which the noise of the scores enlarges the variance of cosine means in P and U
    rows: Sequence[Rows]  # of P, U and T, scaled
    bins: Sequence[mixture.Bins]  # of the p-values of P, U and T, shape (repeats, rows)
    prepare: Preparation  # maps rows to the input of the kernel

    @classmethod
    def fit(cls, inputs: DiagnosisInput) -> ResidualFeatures:
        """Fit the kernel features and the columns, and a score of their own unless the user has passed a model."""
        source, fit = inputs.source, inputs.fit
        witness, p_values, prepare = fit.witness, fit.p_values, fit.witness.scored.prepare
        P = source.scaling.rows(source.table.values, source.positive)
        U = source.scaling.rows(source.table.values, source.population)
        rows = P, U, fit.target.rows
        kernel = KernelFeatures.fit(rows, prepare)
        if isinstance(witness.scored.repetitions[0].models[0], Ridge):  # the default model, not the user's
            witness, p_values = cross_fit_kernel_score(inputs, rows, kernel)
        middles = (np.arange(mixture.BINS) + 0.5) / mixture.BINS  # of the bins of p-values
        cosines = np.asarray(np.cos(np.pi * np.outer(np.arange(1, _SCORE_COSINES + 1), middles)))
        # that of the first cosine, a conservative choice: noise of the scores affects slowly varying functions most
        factor = 1 + witness.noise_share(np.tile(cosines[0], (len(p_values), 1)))
        columns, positive_means = ColumnFeatures.fit(source, U[:]), witness.positive_mean(cosines)
        if np.abs(witness.tie_shares).max() * _COPIES_OF_FEW_VALUES > 1:  # ranks that no tied row has do not count
            positive_means = np.mean([cosines[:, bins] @ source.P.mass for bins in witness.positive], axis=0)
        bins = witness.positive, witness.population, mixture.bins(p_values)
        return cls(kernel, columns, cosines, positive_means, factor, rows, bins, prepare)

    def resample(
        self, samples: Samples, signs: Signs, rng: np.random.Generator
    ) -> tuple[FeatureMeans, FeatureMeans, FeatureMeans]:
        """Return the means in P, U and T, with resamples, of kernel coordinates, cosines of the score, and columns."""
        landmarks, axes = len(self.kernel.landmarks), self.kernel.axes
        # features are in this order: kernel values at the landmarks, cosines of the score, columns
        cosines, first_column = slice(landmarks, landmarks + len(self.cosines)), landmarks + len(self.cosines)
        means = [FeatureMean.resample(sample, signs, partial(self._features, k)) for k, sample in enumerate(samples)]
        means[0].value[cosines] = self.cosine_means
        for mean in means[:2]:
            mean.noise[:, cosines] *= np.sqrt(self.variance_factor)
        for mean in means:
            mean.noise[:, cosines] *= student_factors(mean.size, len(signs), rng)[:, None]
        kernel_means, score_means, column_means = [], [], []
        for mean in means:
            value, noise, size = mean.value, mean.noise, mean.size
            kernel_means.append(FeatureMean(value[:landmarks] @ axes, noise[:, :landmarks] @ axes, size))
            score_means.append(FeatureMean(value[cosines], noise[:, cosines], size))
            column_means.append(FeatureMean(value[first_column:], noise[:, first_column:], size))
        return kernel_means, score_means, column_means

    def _features(self, sample: int, positions: slice) -> Floats:
        """Return all features of some rows of sample 0, 1 or 2 (P, U or T), shape (rows, features)."""
        block = self.rows[sample][positions]
        # the mean over repetitions of the cosines of the p-value
        cosines = np.mean([self.cosines[:, bins[positions]] for bins in self.bins[sample]], axis=0).T
        kernel = _mean_kernel(self.prepare(block), self.kernel.landmarks)
        return np.concatenate([kernel, cosines, self.columns(block)], axis=1)
