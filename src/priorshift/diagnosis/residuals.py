"""What label shift leaves unexplained: the residual e(r) = E_T φ − (1−r)·E_P φ − r·E_U φ of features φ.

Under label shift e(R) is noise, for every φ. With b = E_T φ − E_P φ and a = E_U φ − E_P φ it is b − r·a. Least squares
would take r too small, since a has noise too; divided by what noise makes of it,

    λ = min over r of ‖b − r·a‖²/E‖noise of (b − r·a)‖²,

the smallest root of det(M − λN) = 0 with the 2 × 2 Gram matrices M of (b, a) and N of their noise, it is consistent
(limited information maximum likelihood), and its law hardly depends on how large a is. What λ would be if label shift
held is seen in resamples: the best a that R̂ allows, shortened by its noise, and noise by random signs.

Means of features, and how far off chance may put them: a random sign for each observation.

A mean E φ = Σ mass·φ(x) is off by a sum of independent parts mass·(φ(x) − E φ), one for each observation. With random
signs before these parts the sum is distributed as the error is, and the same signs serve every function of the rows:
what two means, or two tests, have in common they keep. Rows of one observation have one sign, in whichever samples
they stand."""

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

_MOST = 1e3  # the largest ratio either way
_SURE = 3.0  # times its noise that ‖a‖² must be to say where a points
_TINY = 1e-300


class Gram(NamedTuple):
    """⟨b, b⟩, ⟨a, b⟩ and ⟨a, a⟩, numbers or one for each resample."""

    bb: Any
    ab: Any
    aa: Any

    @classmethod
    def of(cls, b: Floats, a: Floats) -> Gram:
        return cls(*(np.einsum("...i,...i->...", x, y) for x, y in ((b, b), (a, b), (a, a))))

    def at(self, r: Any) -> Any:
        """‖b − r·a‖²."""
        return self.bb - 2 * r * self.ab + r * r * self.aa


def smallest(M: Gram, N: Gram) -> tuple[Any, Any]:
    """λ, and the r that it stands at; 0 instead of a negative one, unless a is mostly noise and may point anywhere."""
    A = max(N.bb * N.aa - N.ab**2, _TINY)
    B = M.bb * N.aa + M.aa * N.bb - 2 * M.ab * N.ab
    C = np.maximum(M.bb * M.aa - M.ab**2, 0.0)
    # of the two forms of the smaller root, the one that does not cancel
    root = 2 * C / np.maximum(B + np.sqrt(np.maximum(B * B - 4 * A * C, 0.0)), _TINY)
    r = np.clip((M.ab - root * N.ab) / np.maximum(M.aa - root * N.aa, _TINY), -_MOST, _MOST)
    none = (r < 0) & (M.aa > _SURE * N.aa)
    return np.where(none, M.bb / max(N.bb, _TINY), root), np.where(none, 0.0, r)


@dataclass(frozen=True, eq=False)
class Residual:
    """The residual of some features.

    Attributes
    ----------
    b, a : ndarray of shape (features,)
        E_T φ − E_P φ and E_U φ − E_P φ.
    noise_b, noise_a : ndarray of shape (resamples, features)
        By how much they are off.
    statistic, ratio : float
        λ and R̂.
    supposed : ndarray of shape (features,)
        a if label shift holds; that of the resamples, without noise.
    """

    b: Floats
    a: Floats
    noise_b: Floats
    noise_a: Floats
    statistic: float
    ratio: float
    supposed: Floats

    @classmethod
    def of(cls, positive: Mean, population: Mean, target: Mean) -> Residual:
        b, a = target.value - positive.value, population.value - positive.value
        found = cls(b, a, target.noise - positive.noise, population.noise - positive.noise, np.nan, np.nan, a)
        statistic, ratio = smallest(Gram.of(b, a), found.noise)
        R, N = float(ratio), found.noise
        e, of_e, with_e = b - R * a, max(float(N.at(R)), _TINY), N.ab - R * N.aa
        nearest = a - with_e / of_e * e
        left = 1 - (N.aa - with_e**2 / of_e) / max(float(nearest @ nearest), _TINY)
        return replace(found, statistic=float(statistic), ratio=R, supposed=nearest * np.sqrt(max(left, 0.0)))

    @cached_property
    def noise(self) -> Gram:
        """Of b and a, the mean over resamples."""
        return Gram(*(float(np.mean(x)) for x in Gram.of(self.noise_b, self.noise_a)))

    @property
    def is_known(self) -> bool:
        """Whether there is noise to compare with."""
        return bool(np.isfinite(self.statistic) and self.noise.at(self.ratio) > _TINY)

    def resampled(self) -> Floats:
        """λ of every resample."""
        M = Gram.of(self.ratio * self.supposed + self.noise_b, self.supposed + self.noise_a)
        return np.asarray(smallest(M, self.noise)[0])

    def distance(self, most: float) -> float:
        """‖e‖², unbiased, at the r from 0 to `most` where it is least: how far T lies from the line through P and U."""
        M, N = Gram.of(self.b, self.a), self.noise
        sure = Gram(M.bb - N.bb, M.ab - N.ab, M.aa - N.aa)
        return float(sure.at(np.clip(sure.ab / sure.aa, 0.0, most) if sure.aa > 0 else 0.0))

    @property
    def vector(self) -> Floats:
        """e(R̂)."""
        return self.b - self.ratio * self.a

    @property
    def separation(self) -> float:
        """‖a‖², unbiased."""
        return float(self.a @ self.a - self.noise.aa)


def shares_above(statistics: Floats) -> Floats:
    """For each statistic the share of all, itself included, that are as large: a p-value among resamples."""
    ranked = np.sort(statistics)
    return np.asarray((len(ranked) - np.searchsorted(ranked, statistics, side="left")) / len(ranked))


Signs = NDArray[np.int8]  # shape (resamples, observations)
_VALUES = 2**22  # signs and features held at a time


@dataclass(frozen=True, eq=False)
class Observed:
    """What each row of a sample counts, and which observation it is, with one numbering for all samples."""

    mass: Floats
    observation: Index

    @property
    def size(self) -> float:
        """Observations of equal weight that it is worth, two at least."""
        codes = np.unique(self.observation, return_inverse=True)[1].reshape(-1)
        return max(effective_size(self.mass, codes), 2.0)


def observed(source: Source, target: Target) -> tuple[Observed, Observed, Observed]:
    """P, U and T; a row of the target whose group the source has is an observation of the source."""
    number = source.observation
    of_target = np.where(target.of_source >= 0, target.of_source, target.observation + int(number.max()) + 1)
    return (
        Observed(source.positive_mass, number[source.positive]),
        Observed(source.population_mass, number[source.population]),
        Observed(target.mass, of_target),
    )


def random_signs(samples: tuple[Observed, ...], resamples: int, rng: np.random.Generator) -> Signs:
    """A sign for each observation in each resample."""
    observations = 1 + max(int(sample.observation.max()) for sample in samples)
    signs = rng.integers(0, 2, size=(resamples, observations), dtype=np.int8)
    signs *= 2
    signs -= 1
    return signs


@dataclass(frozen=True, eq=False)
class Mean:
    """A mean of features, and by how much it is off in each resample.

    Attributes
    ----------
    value : ndarray of shape (features,)
        E φ.
    noise : ndarray of shape (resamples, features)
        With mean zero.
    size : float
        Observations of equal weight that the mean is of.
    """

    value: Floats
    noise: Floats
    size: float

    @classmethod
    def of(cls, sample: Observed, signs: Signs, features: Callable[[slice], Floats]) -> Mean:
        """Block by block; `features` gives those of some rows."""
        value: Any = 0.0
        noise: Any = 0.0
        own = np.zeros(len(signs))
        block = max(1, _VALUES // len(signs))
        for first in range(0, len(sample.mass), block):
            rows = slice(first, first + block)
            phi, mass = features(rows), sample.mass[rows]
            # single precision: what is off by chance need not be known to more than six digits
            weights = signs[:, sample.observation[rows]] * mass.astype(np.float32)
            value = value + mass @ phi
            noise = noise + (weights @ phi.astype(np.float32)).astype(np.float64)
            own += weights.sum(axis=1)
        size = sample.size
        return cls(value, (noise - own[:, None] * value) * np.sqrt(size / (size - 1)), size)

    def take(self, features: Any, scale: Floats | float = 1.0) -> Mean:
        """Some of the features, times `scale`."""
        return Mean(self.value[features] * scale, self.noise[:, features] * scale, self.size)

    def through(self, matrix: Floats) -> Mean:
        """Other features, linear in these."""
        return Mean(self.value @ matrix, self.noise @ matrix, self.size)
