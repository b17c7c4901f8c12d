"""The confidence distribution of R = (1−π′)/(1−π), and what it says of π′ = 1 − (1−π)R."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtr

from priorshift.arrays import Floats

_ANY_RATIO = 1e100  # above every ratio, and its square a number
_LEAST_TAIL = 1e-300  # of a test, about the smallest number


class ConfidenceCurve(ABC):
    """How sure one can be that R ≤ r, for every r from 0 on: the confidence with which a test rejects all larger R."""

    @property
    @abstractmethod
    def is_known(self) -> bool:  # numpydoc ignore=RT01
        """Whether the error of R is known."""

    @abstractmethod
    def __call__(self, r: ArrayLike, keep: ArrayLike = 1.0, most: float = _ANY_RATIO) -> Floats:
        """Compute the confidence that keep·R ≤ r, where keep·R lies in [0, most].

        An estimate outside that range counts as the nearer end, as in :func:`priorshift.inference.intervals.delta`.

        Parameters
        ----------
        r : array-like
            Where.
        keep : array-like
            1 − π, where keep·R = 1 − π′ is meant.
        most : float
            The largest value that can be.

        Returns
        -------
        ndarray
            Never falling in `r`.
        """

    def interval(
        self, source_prior: ArrayLike, confidence: float, weights: Floats | None = None
    ) -> tuple[float, float]:
        """Compute the two quantiles of π′ = 1 − (1−π)R, inside [0, 1].

        Parameters
        ----------
        source_prior : float or array-like
            π, or the values that it can have.
        confidence : float
            Of the interval.
        weights : ndarray or None
            Probabilities of those values; None is equal ones.

        Returns
        -------
        low, high : float
            (0, 1) where the error of R is not known.
        """
        if not self.is_known:
            return 0.0, 1.0
        keep, tail = 1 - np.asarray(source_prior, dtype=float), (1 - confidence) / 2

        def at_least(target: float) -> float:  # numpydoc ignore=GL08
            return float(np.average(self(1 - target, keep, 1.0), weights=weights))

        def quantile(level: float) -> float:  # numpydoc ignore=GL08
            return float(brentq(lambda target: at_least(target) - level, 0.0, 1.0))

        low = quantile(1 - tail) if at_least(0.0) > 1 - tail else 0.0
        high = quantile(tail) if at_least(1.0) < tail else 1.0
        return low, high


@dataclass(frozen=True)
class FiellerCurve(ConfidenceCurve):
    """The curve of a ratio of two estimates, by Fieller's test.

    With R̂ = N/D it is Student's distribution function of t(r) = (rD − N)/√Var(N − rD). Where D is
    poorly known it does not reach 1: what is missing is the confidence that R is arbitrarily large.

    Attributes
    ----------
    ratio : float
        R̂.
    variance : float
        Var(N)/D², the square of R̂'s standard error where that is all that is known.
    covariance, denominator_variance : float
        Cov(N, D)/D² and Var(D)/D².
    freedom : float
        Student's degrees of freedom.

    Examples
    --------
    >>> from priorshift.inference.confidence_curve import FiellerCurve
    >>> curve = FiellerCurve(ratio=0.5, variance=0.05**2)
    >>> curve([0.4, 0.5, 0.6]).round(3)
    array([0.023, 0.5  , 0.977])
    >>> low, high = curve.interval(source_prior=0.2, confidence=0.95)  # 0.6 ± 1.96 · 0.8 · 0.05
    >>> print(f"{low:.3f} to {high:.3f}")
    0.522 to 0.678
    """

    ratio: float
    variance: float
    covariance: float = 0.0
    denominator_variance: float = 0.0
    freedom: float = float("inf")

    @property
    def is_known(self) -> bool:  # numpydoc ignore=RT01
        """Whether all of its numbers are."""
        return bool(np.isfinite(astuple(self)[:-1]).all() and not np.isnan(self.freedom))

    def __call__(self, r: ArrayLike, keep: ArrayLike = 1.0, most: float = _ANY_RATIO) -> Floats:
        r, keep = np.asarray(r, dtype=float), np.asarray(keep, dtype=float)
        estimate = np.clip(keep * self.ratio, 0.0, most)

        def t(x: Floats | float) -> Floats:
            variance = keep**2 * self.variance - 2 * keep * x * self.covariance + x * x * self.denominator_variance
            spread = np.sqrt(np.maximum(variance, 0.0))
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(x == estimate, 0.0, (x - estimate) / spread)

        # t has one turning point at most; beyond it, where the test would accept again, the curve stays level
        level = np.clip(t(np.clip(r, 0.0, most)), t(0.0), t(most))
        return np.where(r < 0, 0.0, stdtr(self.freedom, level))


@dataclass(frozen=True, eq=False)
class TabulatedCurve(ConfidenceCurve):
    """The curve of a test that was made at many r, each with a statistic of its own.

    Attributes
    ----------
    ratios : ndarray
        r, rising from 0.
    level : ndarray
        Normal quantile of the confidence that R ≤ r.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.inference.confidence_curve import TabulatedCurve
    >>> r = np.linspace(0, 2, 101)
    >>> curve = TabulatedCurve.from_tests(r, statistic=(0.5 - r) / 0.05, freedom=np.full(101, np.inf))
    >>> curve([0.4, 0.5, 0.6]).round(3)
    array([0.023, 0.5  , 0.977])
    >>> print(round(curve.mean(0.2), 3))  # of π′ = 1 − 0.8·R
    0.6
    """

    ratios: Floats
    level: Floats

    @classmethod
    def from_tests(cls, ratios: Floats, statistic: Floats, freedom: Floats) -> TabulatedCurve:
        """Make the curve of Student's tests.

        Parameters
        ----------
        ratios : ndarray
            r, rising from 0.
        statistic : ndarray
            Of the test of each r; it falls where the test can tell.
        freedom : ndarray
            Degrees of freedom.

        Returns
        -------
        TabulatedCurve
            Level where the statistic does not fall: what cannot be told from a smaller R.
        """
        nearer = stdtr(freedom, -np.abs(statistic))  # the tail that does not cancel
        tail = ndtri(np.maximum(nearer, _LEAST_TAIL))
        return cls(ratios, np.maximum.accumulate(np.where(statistic > 0, tail, -tail)))

    @property
    def is_known(self) -> bool:  # numpydoc ignore=RT01
        """Whether all levels are numbers."""
        return bool(np.isfinite(self.level).all())

    @cached_property
    def _interpolated(self) -> PchipInterpolator:
        return PchipInterpolator(self.ratios, self.level)

    def _level(self, r: ArrayLike) -> Floats:
        return np.asarray(self._interpolated(np.clip(r, 0.0, self.ratios[-1])))

    def __call__(self, r: ArrayLike, keep: ArrayLike = 1.0, most: float = _ANY_RATIO) -> Floats:
        r, kept = np.asarray(r, dtype=float), np.maximum(np.asarray(keep, dtype=float), 1e-12)
        first, last = self._level(0.0), self._level(most / kept)
        beyond = np.maximum(first, 0.0) + np.minimum(last, 0.0)  # an estimate outside counts as the nearer end
        return np.where(r < 0, 0.0, ndtr(self._level(np.clip(r, 0.0, most) / kept) - beyond))

    def quantiles(self, confidence: float) -> tuple[float, float]:
        """Compute the interval of R itself.

        Parameters
        ----------
        confidence : float
            Of the interval.

        Returns
        -------
        low, high : float
            The upper end is infinite where no ratio is rejected as too large.
        """
        z = float(ndtri((1 + confidence) / 2))
        beyond = max(float(self.level[0]), 0.0)

        def crossing(level: float) -> float:  # numpydoc ignore=GL08
            return float(brentq(lambda r: float(self._level(r)) - beyond - level, 0.0, self.ratios[-1]))

        low = crossing(-z) if self.level[0] - beyond < -z and self.level[-1] - beyond > -z else 0.0
        high = crossing(z) if self.level[-1] - beyond > z else float("inf")
        return low, high

    def mean(self, source_prior: ArrayLike, weights: Floats | None = None) -> float:
        """Compute the mean of π′ = 1 − (1−π)R among its values in [0, 1], as sure as the curve is of each.

        Where R is well known that is 1 − (1−π)R̂; where it is not, the middle of what is left, not an end of it.

        Parameters
        ----------
        source_prior : float or array-like
            π, or the values that it can have.
        weights : ndarray or None
            Probabilities of those values; None is equal ones.

        Returns
        -------
        float
        """
        keep = np.maximum(1 - np.atleast_1d(np.asarray(source_prior, dtype=float)), 1e-12)[:, None]
        r = np.minimum(np.append(self.ratios, _ANY_RATIO), 1 / keep)
        level = self._level(r)
        mass = _between(level)
        middles = 1 - keep * (r[:, 1:] + r[:, :-1]) / 2
        total = mass.sum(axis=1)
        # a curve that is level tells nothing, unless it is so for want of smaller numbers
        tells = (level[:, 0] < level[:, -1]) | (np.abs(level[:, 0]) >= -ndtri(_LEAST_TAIL))
        nearest = np.where(tells, np.where(level[:, 0] > 0, 1.0, 0.0), 0.5)
        inside = np.where(total > 0, (mass * middles).sum(axis=1) / np.where(total > 0, total, 1.0), nearest)
        return float(np.average(inside, weights=weights))

    def probabilities(self, edges: Floats, source_prior: ArrayLike, weights: Floats | None = None) -> Floats:
        """Compute how sure one can be that π′ lies in steps of [0, 1], as it is somewhere there.

        Parameters
        ----------
        edges : ndarray
            Of the steps, rising from 0 to 1.
        source_prior : float or array-like
            π, or the values that it can have.
        weights : ndarray or None
            Probabilities of those values; None is equal ones.

        Returns
        -------
        ndarray of shape (steps,)
            Their sum is 1, and their mean that of :meth:`mean`.
        """
        keep = np.maximum(1 - np.atleast_1d(np.asarray(source_prior, dtype=float)), 1e-12)[:, None]
        level = self._level((1 - edges[::-1]) / keep)
        mass = _between(level)[:, ::-1]
        total = mass.sum(axis=1, keepdims=True)
        nearest = np.zeros(mass.shape[1])
        nearest[-1 if level[0, 0] > 0 else 0] = 1.0
        inside = np.where(total > 0, mass / np.where(total > 0, total, 1.0), nearest)
        return np.asarray(np.average(inside, axis=0, weights=weights))


def _between(level: Floats) -> Floats:
    """The normal probability between neighbouring levels, never falling along the last axis."""
    low, high = level[..., :-1], level[..., 1:]
    upper = low > 0  # the difference of upper tails, where lower ones would cancel
    return np.asarray(ndtr(np.where(upper, -low, high)) - ndtr(np.where(upper, -high, low)))
