"""The confidence distribution of R, and its intervals of π′.

All three samples lie on the line between the negatives and the positives: U at π, T at π′, and P at its purity q, the
share of positives among the labelled rows, which is 1 without label errors. R = (q−π′)/(q−π) is where T lies between P
and U, so π′ = q − (q−π)R, which is 1 − (1−π)R for q = 1. With q < 1 the target may be richer in positives than P: then
R is negative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtr

from priorshift.arrays import Floats

_ANY_RATIO = 1e100  # above every ratio, and its square is finite
_LEAST_TAIL = 1e-300  # smallest tail probability of a test, so that its normal quantile is finite
LARGEST_LEVEL = 1e7  # standard errors; a larger distance has no error to speak of
_LEAST_FACTOR = 1e-12  # smallest q − π, so that it can be divided by


def prior_from_ratio(source_prior: float, ratio: float, purity: float = 1.0) -> float:
    """Return π′ = q − (q−π)R, brought into [0, 1]; NaN if R is NaN. `purity` is q."""
    return float(np.clip(purity - (purity - source_prior) * ratio, 0.0, 1.0))


class ConfidenceCurve(ABC):
    """The confidence that R ≤ r, for every r: the confidence with which a test rejects all larger R."""

    @property
    @abstractmethod
    def is_known(self) -> bool:
        """Whether the error of R is known."""

    @abstractmethod
    def __call__(
        self, r: ArrayLike, factor: ArrayLike = 1.0, largest: ArrayLike = _ANY_RATIO, smallest: ArrayLike = 0.0
    ) -> Floats:
        """Compute the confidence that factor·R ≤ r, where factor·R is known to lie in [smallest, largest].

        With the factor q − π, the largest value q and the smallest value q − 1 that is the confidence that π′ ≥ q − r.
        An estimate outside [smallest, largest] counts as the nearer end, as in
        :func:`priorshift.inference.intervals.delta`.
        """

    def interval(
        self,
        source_prior: ArrayLike,
        confidence: float,
        weights: Floats | None = None,
        purity: ArrayLike = 1.0,
    ) -> tuple[float, float]:
        """Compute the interval of π′ = q − (q−π)R in [0, 1] between its two quantiles.

        `source_prior` is π and `purity` q, or several values of them that are averaged with `weights`. [0, 1] if the
        error is unknown.
        """
        if not self.is_known:
            return 0.0, 1.0
        q = np.asarray(purity, dtype=float)
        factor, tail = q - np.asarray(source_prior, dtype=float), (1 - confidence) / 2

        def excess(target: float, level: float) -> float:
            """Compute the confidence that π′ ≥ `target`, less a level; it falls in `target`."""
            above = self(q - target, factor, largest=q, smallest=q - 1)
            return float(np.average(above, weights=weights)) - level

        # an end of [0, 1] where the confidence there does not reach the level
        low = float(brentq(excess, 0.0, 1.0, (1 - tail,))) if excess(0.0, 1 - tail) > 0 else 0.0
        high = float(brentq(excess, 0.0, 1.0, (tail,))) if excess(1.0, tail) < 0 else 1.0
        return low, high


@dataclass(frozen=True)
class FiellerCurve(ConfidenceCurve):
    """The curve of a ratio of two estimates, by Fieller's test.

    With R̂ = N/D it is Student's distribution function of t(r) = (rD − N)/√Var(N − rD). Where D is
    poorly known it does not reach 1: what is missing is the confidence that R is arbitrarily large.
    """

    ratio: float  # R̂
    variance: float  # Var(N)/D², or the squared standard error of R̂ where that is all that is known
    covariance: float = 0.0  # Cov(N, D)/D²
    denominator_variance: float = 0.0  # Var(D)/D²
    freedom: float = float("inf")  # Student's degrees of freedom

    @property
    def is_known(self) -> bool:
        """Whether the estimate and its variances are finite; the degrees of freedom may be infinite."""
        numbers = self.ratio, self.variance, self.covariance, self.denominator_variance
        return bool(np.isfinite(numbers).all() and not np.isnan(self.freedom))

    def __call__(
        self, r: ArrayLike, factor: ArrayLike = 1.0, largest: ArrayLike = _ANY_RATIO, smallest: ArrayLike = 0.0
    ) -> Floats:
        """Compute the confidence that factor·R ≤ r, where factor·R is known to lie in [smallest, largest]."""
        r, factor = np.asarray(r, dtype=float), np.asarray(factor, dtype=float)
        lowest, highest = np.asarray(smallest, dtype=float), np.asarray(largest, dtype=float)
        estimate = np.clip(factor * self.ratio, lowest, highest)

        def t(x: Floats) -> Floats:
            """Compute Fieller's statistic of the test of factor·R = x; 0 at the estimate, even without any variance."""
            variance = factor**2 * self.variance - 2 * factor * x * self.covariance + x * x * self.denominator_variance
            spread = np.sqrt(np.maximum(variance, 0.0))
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(x == estimate, 0.0, (x - estimate) / spread)

        # t has one turning point at most; beyond it, where the test would accept again, the curve is flat
        statistic = np.clip(t(np.clip(r, lowest, highest)), t(lowest), t(highest))
        return np.where(r < lowest, 0.0, stdtr(self.freedom, statistic))


@dataclass(eq=False)
class TabulatedCurve(ConfidenceCurve):
    """The curve of tests at many r, interpolated between them."""

    ratios: Floats  # r, increasing from 0, or from a negative ratio where labels may be wrong
    level: Floats  # normal quantile Φ⁻¹ of the confidence that R ≤ r; not decreasing
    is_known: bool = field(init=False, default=False)  # whether all levels are finite
    _interpolated: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Interpolate the levels, if they are finite."""
        self.is_known = bool(np.isfinite(self.level).all())
        self._interpolated = PchipInterpolator(self.ratios, self.level) if self.is_known else None

    @classmethod
    def from_tests(cls, ratios: Floats, statistic: Floats, freedom: Floats) -> TabulatedCurve:
        """Build the curve from Student's tests of R = r at each of `ratios`, which increase.

        A large `statistic` means that R > r, so the level at r has the opposite sign. `freedom` are the degrees of
        freedom of each test. The curve is flat where the statistic does not decrease.
        """
        tail = stdtr(freedom, -np.abs(statistic))  # the smaller of the two tails, which keeps its digits
        quantile = ndtri(np.maximum(tail, _LEAST_TAIL))
        # tails that are too small for a number: the levels go on decreasing, so that the curve is not flat there
        beyond = -np.minimum(np.abs(statistic), LARGEST_LEVEL)
        quantile = np.where(tail < _LEAST_TAIL, np.minimum(quantile, beyond), quantile)
        return cls(ratios, np.maximum.accumulate(np.where(statistic > 0, quantile, -quantile)))

    def __call__(
        self, r: ArrayLike, factor: ArrayLike = 1.0, largest: ArrayLike = _ANY_RATIO, smallest: ArrayLike = 0.0
    ) -> Floats:
        """Compute the confidence that factor·R ≤ r, where factor·R is known to lie in [smallest, largest]."""
        r, divisor = np.asarray(r, dtype=float), np.maximum(np.asarray(factor, dtype=float), _LEAST_FACTOR)
        lowest, highest = np.asarray(smallest, dtype=float), np.asarray(largest, dtype=float)
        # the estimate is where the level is 0. If it lies outside the range, levels are shifted so that it is at the
        # nearer end
        shift = np.maximum(self.levels(lowest / divisor), 0.0) + np.minimum(self.levels(highest / divisor), 0.0)
        level = self.levels(np.clip(r, lowest, highest) / divisor)
        return np.where(r < lowest, 0.0, ndtr(level - shift))

    def levels(self, r: ArrayLike) -> Floats:
        """Compute the normal quantile of the confidence that R ≤ r; outside the tested ratios, that of the nearest."""
        return np.asarray(self._interpolated(np.clip(r, self.ratios[0], self.ratios[-1])))

    def quantiles(self, confidence: float) -> tuple[float, float]:
        """Compute the interval of R, from the smallest ratio that was tested, which is 0 without label errors.

        The upper end is infinite where no ratio is rejected as too large.
        """
        z, least = float(ndtri((1 + confidence) / 2)), float(self.ratios[0])
        shift = max(float(self.level[0]), 0.0)  # an estimate below the smallest ratio counts as that

        def crossing(level: float) -> float:
            """Find the r at which the normal quantile of the confidence that R ≤ r, less the shift, reaches `level`."""
            return float(brentq(lambda r: float(self._interpolated(r)) - shift - level, least, self.ratios[-1]))

        low = crossing(-z) if self.level[0] - shift < -z and self.level[-1] - shift > -z else least
        high = crossing(z) if self.level[-1] - shift > z else float("inf")
        return low, high

    def mean(self, source_prior: ArrayLike, weights: Floats | None = None, purity: ArrayLike = 1.0) -> float:
        """Compute the mean of π′ = q − (q−π)R in [0, 1] under the confidence distribution.

        Where R is well known that is q − (q−π)R̂; where it is not, the middle of the possible range, not an end of it.
        `source_prior` is π and `purity` q, or several values of them that are averaged with `weights`.
        """
        q, factor = _line(source_prior, purity)
        # shape (cases, ratios + 1), from where π′ = 1 to where π′ = 0
        r = np.clip(np.append(self.ratios, _ANY_RATIO), (q - 1) / factor, q / factor)
        level, mass = self._masses(r)
        middles = q - factor * (r[:, 1:] + r[:, :-1]) / 2  # π′ between neighbours
        total = mass.sum(axis=1)
        # a flat curve is uninformative, unless it is flat because tail probabilities underflow
        is_informative = (level[:, 0] < level[:, -1]) | (np.abs(level[:, 0]) >= -ndtri(_LEAST_TAIL))
        # where R has no confidence at all in the range, π′ is the nearer end
        nearest = np.where(is_informative, np.where(level[:, 0] > 0, 1.0, 0.0), 0.5)
        inside = np.where(total > 0, (mass * middles).sum(axis=1) / np.where(total > 0, total, 1.0), nearest)
        return float(np.average(inside, weights=weights))

    def probabilities(
        self, edges: Floats, source_prior: ArrayLike, weights: Floats | None = None, purity: ArrayLike = 1.0
    ) -> Floats:
        """Compute the confidence that π′ lies in each step between neighbouring `edges` of [0, 1]; the sum is 1.

        `source_prior` is π and `purity` q, or several values of them that are averaged with `weights`.
        """
        q, factor = _line(source_prior, purity)
        level, mass = self._masses((q - edges[::-1]) / factor)  # R = (q − π′)/(q − π), which falls in π′
        mass = mass[:, ::-1]
        total = mass.sum(axis=1, keepdims=True)
        # where R has no confidence at all in the range, π′ is in the nearer end step
        nearest = np.zeros(mass.shape[1])
        nearest[-1 if level[0, 0] > 0 else 0] = 1.0
        inside = np.where(total > 0, mass / np.where(total > 0, total, 1.0), nearest)
        return np.asarray(np.average(inside, axis=0, weights=weights))

    def _masses(self, r: Floats) -> tuple[Floats, Floats]:
        """Compute the levels Φ⁻¹(confidence that R ≤ r), and the confidence that R lies between neighbouring r.

        `r` increases along the last axis.
        """
        level = self.levels(r)
        low, high = level[..., :-1], level[..., 1:]
        is_upper = low > 0  # then upper tails are subtracted, since lower ones are near 1 and would lose digits
        return level, ndtr(np.where(is_upper, -low, high)) - ndtr(np.where(is_upper, -high, low))


def _line(source_prior: ArrayLike, purity: ArrayLike) -> tuple[Floats, Floats]:
    """Return q and q − π, each of shape (cases, 1), from numbers or arrays of shape (cases,)."""
    pi, q = np.broadcast_arrays(np.asarray(source_prior, dtype=float), np.asarray(purity, dtype=float))
    q = np.atleast_1d(q)[:, None]
    return q, np.maximum(q - np.atleast_1d(pi)[:, None], _LEAST_FACTOR)
