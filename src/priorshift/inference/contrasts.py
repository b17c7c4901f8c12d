"""Intervals of differences and ratios of shares that are linear in estimated coefficients, θ = w·b.

What a sample consists of, w, may be uncertain: the confidence distribution of a difference or of a ratio is then
averaged over cases of w. A ratio ρ = θ_1/θ_2 is tested by θ_1 − ρθ_2 = 0, as Fieller does, so that its interval has no
upper end where θ_2 may be 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from priorshift.arrays import Floats

_LEAST_VARIANCE = 1e-300


def difference_interval(
    composition: Floats, coefficients: Floats, covariance: Floats, confidence: float
) -> tuple[float, float]:
    """Return the two quantiles, within [−1, 1], of w·b averaged over cases w, shape (cases, samples)."""
    centers = composition @ coefficients
    variances = np.einsum("cs,st,ct->c", composition, covariance, composition)
    errors = np.sqrt(np.maximum(variances, _LEAST_VARIANCE))
    tail = (1 - confidence) / 2

    def cumulative(value: float) -> float:
        """Return the probability of a difference of at most `value`."""
        return float(ndtr((value - centers) / errors).mean())

    return _crossing(cumulative, tail, -1.0, 1.0), _crossing(cumulative, 1 - tail, -1.0, 1.0)


def difference_p_value(compositions: Sequence[Floats], coefficients: Floats, covariance: Floats) -> float:
    """Return the p-value of w·b = 0 that agrees with the intervals of `difference_interval` in all `compositions`.

    It is the largest of all alternatives, each averaged over its cases; 1 if the difference may have both signs.
    """
    tails = []
    for composition in compositions:
        variances = np.einsum("cs,st,ct->c", composition, covariance, composition)
        errors = np.sqrt(np.maximum(variances, _LEAST_VARIANCE))
        tails.append(float(ndtr(-(composition @ coefficients) / errors).mean()))
    if min(tails) < 0.5 < max(tails):
        return 1.0
    return max(2 * min(tail, 1 - tail) for tail in tails)


def ratio_interval(shares: Floats, covariances: Floats, confidence: float) -> tuple[float, float]:
    """Return the interval of the ratio of two shares, first over second, averaged over cases.

    `shares` have shape (cases, 2), of which negative ones count as 0, and `covariances` (cases, 2, 2).
    """
    x, y = np.maximum(shares, 0.0).T
    V, tail = covariances, (1 - confidence) / 2

    def confidence_of(position: float) -> float:
        """Return the confidence that the ratio is at most position/(1 − position), for positions from 0 to 1."""
        u, v = 1 - position, position  # θ_1 − ρθ_2 = 0 is uθ_1 − vθ_2 = 0
        variance = u**2 * V[:, 0, 0] + v**2 * V[:, 1, 1] - 2 * u * v * V[:, 0, 1]
        return float(ndtr((v * y - u * x) / np.sqrt(np.maximum(variance, _LEAST_VARIANCE))).mean())

    low, high = (_crossing(confidence_of, level, 0.0, 1.0) for level in (tail, 1 - tail))
    return low / (1 - low) if low < 1 else float("inf"), high / (1 - high) if high < 1 else float("inf")


def _crossing(increasing: Callable[[float], float], level: float, low: float, high: float) -> float:
    """Return where a function passes a level between `low` and `high`; one of them if it does not."""
    if increasing(low) >= level:
        return low
    if increasing(high) <= level:
        return high
    return float(brentq(lambda value: increasing(value) - level, low, high))
