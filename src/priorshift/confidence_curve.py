"""The confidence distribution of R = (1−π′)/(1−π), and what it says of π′ = 1 − (1−π)R."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import stdtr

from priorshift.arrays import Floats

_ANY_RATIO = 1e100  # above every ratio, and its square a number


@dataclass(frozen=True)
class ConfidenceCurve:
    """How sure one can be that R ≤ r, for every r from 0 on: the confidence with which a test rejects all larger R.

    With R̂ = N/D it is Student's distribution function of t(r) = (rD − N)/√Var(N − rD) (Fieller's test). Where D is
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
    >>> from priorshift.confidence_curve import ConfidenceCurve
    >>> curve = ConfidenceCurve(ratio=0.5, variance=0.05**2)
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

    def __call__(self, r: ArrayLike, keep: ArrayLike = 1.0, most: float = _ANY_RATIO) -> Floats:
        """Compute the confidence that keep·R ≤ r, where keep·R lies in [0, most].

        An estimate outside that range counts as the nearer end, as it does in :func:`priorshift.intervals.delta`.

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
        if not np.isfinite(astuple(self)[:-1]).all() or np.isnan(self.freedom):
            return 0.0, 1.0
        keep, tail = 1 - np.asarray(source_prior, dtype=float), (1 - confidence) / 2

        def at_least(target: float) -> float:  # numpydoc ignore=GL08
            return float(np.average(self(1 - target, keep, 1.0), weights=weights))

        def quantile(level: float) -> float:  # numpydoc ignore=GL08
            return float(brentq(lambda target: at_least(target) - level, 0.0, 1.0))

        low = quantile(1 - tail) if at_least(0.0) > 1 - tail else 0.0
        high = quantile(tail) if at_least(1.0) < tail else 1.0
        return low, high
