"""What label shift leaves unexplained: the residual e(r) = E_T φ − (1−r)·E_P φ − r·E_U φ of features φ of a row.

Under label shift e(R) is noise, for every φ. With b = E_T φ − E_P φ and a = E_U φ − E_P φ it is b − r·a. Least squares
would estimate r too small, since a is noisy too. Divided by what noise contributes,

    λ = min over r of ‖b − r·a‖²/E‖noise of (b − r·a)‖²

is consistent (limited information maximum likelihood), and its distribution hardly depends on the size of a. It is the
smallest root of det(M − λN) = 0 with the 2 × 2 Gram matrices M of (b, a) and N of their noise. The null distribution of
λ comes from resamples: the a that fits R̂ best, shrunk by its noise, plus resampled noise.

The noise is resampled by random signs. A mean E φ = Σ mass·φ(x) errs by a sum of independent terms mass·(φ(x) − E φ),
one for each observation; with random signs before them the sum has the distribution of the error. All features and
all tests use the same signs, so that what they have in common is kept. Rows of one observation have one sign, in
whichever samples they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index
from priorshift.io.weights import effective_size
from priorshift.problem import Source, Target

Signs = NDArray[np.int8]  # shape (resamples, observations)
_BLOCK_VALUES = 2**22  # signs and features in memory at a time
_LARGEST_RATIO = 1e3  # of either sign
_CLEAR_DIRECTION = 3.0  # times its noise that ‖a‖² must exceed before the direction of a is trusted
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """The mass of each row of a sample, and the number of its observation, common to all samples."""

    mass: Floats
    observation: Index

    @property
    def size(self) -> float:
        """Effective number of observations, at least two."""
        codes = np.unique(self.observation, return_inverse=True)[1].reshape(-1)
        return max(effective_size(self.mass, codes), 2.0)


Samples = tuple[WeightedSample, WeightedSample, WeightedSample]  # P, U and T


def weighted_samples(source: Source, target: Target) -> Samples:
    """Return P, U and T; a row of the target whose group is in the source is an observation of the source."""
    number = source.observation
    of_target = np.where(target.of_source >= 0, target.of_source, target.observation + int(number.max()) + 1)
    return (
        WeightedSample(source.positive_mass, number[source.positive]),
        WeightedSample(source.population_mass, number[source.population]),
        WeightedSample(target.mass, of_target),
    )


def random_signs(samples: Samples, resamples: int, rng: np.random.Generator) -> Signs:
    """Draw a sign for each observation in each resample."""
    observations = 1 + max(int(sample.observation.max()) for sample in samples)
    signs = rng.integers(0, 2, size=(resamples, observations), dtype=np.int8)
    signs *= 2
    signs -= 1
    return signs


@dataclass(frozen=True, eq=False)
class FeatureMean:
    """The mean of features over a sample, and its error in each resample."""

    value: Floats  # shape (features,)
    noise: Floats  # shape (resamples, features)
    size: float  # effective number of observations

    @classmethod
    def resample(cls, sample: WeightedSample, signs: Signs, features: Callable[[slice], Floats]) -> FeatureMean:
        """Compute the mean and its resampled errors by blocks of rows; `features` returns those of some rows."""
        value: Any = 0.0
        noise: Any = 0.0
        sign_sums = np.zeros(len(signs))
        block = max(1, _BLOCK_VALUES // len(signs))
        for first in range(0, len(sample.mass), block):
            rows = slice(first, first + block)
            phi, mass = features(rows), sample.mass[rows]
            # single precision: six digits of the noise are enough
            weights = signs[:, sample.observation[rows]] * mass.astype(np.float32)
            value = value + mass @ phi
            noise = noise + (weights @ phi.astype(np.float32)).astype(np.float64)
            sign_sums += weights.sum(axis=1)
        size = sample.size
        return cls(value, (noise - sign_sums[:, None] * value) * np.sqrt(size / (size - 1)), size)

    def select(self, features: Any, scale: Floats | float = 1.0) -> FeatureMean:
        """Return some of the features, multiplied by `scale`."""
        return FeatureMean(self.value[features] * scale, self.noise[:, features] * scale, self.size)

    def project(self, matrix: Floats) -> FeatureMean:
        """Return the means of linear combinations of the features."""
        return FeatureMean(self.value @ matrix, self.noise @ matrix, self.size)


FeatureMeans = tuple[FeatureMean, FeatureMean, FeatureMean]  # of P, U and T


def inverse_noise(means: FeatureMeans, ratio: float) -> Floats:
    """Return one over the standard deviation of each feature's residual at a ratio; 0 for a constant feature."""
    P, U, T = means
    spread = np.sqrt(((T.noise - (1 - ratio) * P.noise - ratio * U.noise) ** 2).mean(axis=0))
    return np.where(spread > 0, 1 / np.maximum(spread, _TINY), 0.0)


class Gram(NamedTuple):
    """⟨b, b⟩, ⟨a, b⟩ and ⟨a, a⟩, each a number or an array over resamples."""

    bb: Any
    ab: Any
    aa: Any

    @classmethod
    def from_vectors(cls, b: Floats, a: Floats) -> Gram:
        """Compute the inner products along the last axis."""
        return cls(*(np.einsum("...i,...i->...", x, y) for x, y in ((b, b), (a, b), (a, a))))

    def residual_square(self, r: Any) -> Any:
        """Return ‖b − r·a‖²."""
        return self.bb - 2 * r * self.ab + r * r * self.aa


def smallest_root(M: Gram, N: Gram) -> tuple[Any, Any]:
    """Return λ and its r; a negative r is replaced by 0, unless a is mostly noise and may have any direction."""
    A = max(N.bb * N.aa - N.ab**2, _TINY)
    B = M.bb * N.aa + M.aa * N.bb - 2 * M.ab * N.ab
    C = np.maximum(M.bb * M.aa - M.ab**2, 0.0)
    # of the two forms of the smaller root, the one without cancellation
    root = 2 * C / np.maximum(B + np.sqrt(np.maximum(B * B - 4 * A * C, 0.0)), _TINY)
    r = np.clip((M.ab - root * N.ab) / np.maximum(M.aa - root * N.aa, _TINY), -_LARGEST_RATIO, _LARGEST_RATIO)
    negative = (r < 0) & (M.aa > _CLEAR_DIRECTION * N.aa)
    return np.where(negative, M.bb / max(N.bb, _TINY), root), np.where(negative, 0.0, r)


@dataclass(frozen=True, eq=False)
class Residual:
    """The residual of some features, with the ratio that minimises it."""

    b: Floats  # E_T φ − E_P φ
    a: Floats  # E_U φ − E_P φ
    noise_b: Floats  # errors of b, shape (resamples, features)
    noise_a: Floats
    statistic: float  # λ
    ratio: float  # R̂
    null_a: Floats  # a under label shift, without noise

    @classmethod
    def fit(cls, positive: FeatureMean, unlabeled: FeatureMean, target: FeatureMean) -> Residual:
        """Estimate the ratio, and a under the null hypothesis."""
        b, a = target.value - positive.value, unlabeled.value - positive.value
        residual = cls(b, a, target.noise - positive.noise, unlabeled.noise - positive.noise, np.nan, np.nan, a)
        N = residual.noise
        statistic, ratio = smallest_root(Gram.from_vectors(b, a), N)
        R = float(ratio)
        e, variance, covariance = b - R * a, max(float(N.residual_square(R)), _TINY), N.ab - R * N.aa
        nearest = a - covariance / variance * e
        signal = 1 - (N.aa - covariance**2 / variance) / max(float(nearest @ nearest), _TINY)
        null_a = nearest * np.sqrt(max(signal, 0.0))
        return replace(residual, statistic=float(statistic), ratio=R, null_a=null_a)

    @cached_property
    def noise(self) -> Gram:
        """Gram matrix of the noise of b and a, the mean over resamples."""
        return Gram(*(float(np.mean(x)) for x in Gram.from_vectors(self.noise_b, self.noise_a)))

    def null_statistics(self) -> Floats | None:
        """Return λ of every resample under label shift; None where there is no noise to compare with."""
        if not (np.isfinite(self.statistic) and self.noise.residual_square(self.ratio) > _TINY):
            return None
        M = Gram.from_vectors(self.ratio * self.null_a + self.noise_b, self.null_a + self.noise_a)
        statistics = np.asarray(smallest_root(M, self.noise)[0])
        return statistics if np.isfinite(statistics).all() else None

    def squared_distance(self, largest_ratio: float) -> float:
        """Return ‖e(r)‖², unbiased, at the best r from 0 to `largest_ratio`: the distance of T from the line P–U."""
        M, N = Gram.from_vectors(self.b, self.a), self.noise
        signal = Gram(M.bb - N.bb, M.ab - N.ab, M.aa - N.aa)
        best = np.clip(signal.ab / signal.aa, 0.0, largest_ratio) if signal.aa > 0 else 0.0
        return float(signal.residual_square(best))


def rank_p_values(statistics: Floats) -> Floats:
    """Return for each statistic the share of all, itself included, that are at least as large."""
    ranked = np.sort(statistics)
    return np.asarray((len(ranked) - np.searchsorted(ranked, statistics, side="left")) / len(ranked))
