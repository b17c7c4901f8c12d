"""Compute the limit of precision with known π: the estimate by the default's test with the true ρ = f_P/f_U.

For the paper's synthetic data, log f₊/f₋ of a row x with p columns is Σx − p/2, so that ρ = 1/(π + (1−π)f₋/f₊). It is
not available in practice; the additional error of a method is the cost of learning ρ. The notation is that of
`priorshift.scores.witness`: h is a fixed function of a row here, so N and D are differences of means over T, U and P.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtri

from priorshift.results import Interval

LIMIT = "Limit"
_CONFIDENCE = 0.95


class LimitEstimate(NamedTuple):
    """π̂′ and its interval, clipped to [0, 1]."""

    value: float
    interval: Interval


def efficiency_limit(
    X: NDArray[np.float64], y: NDArray[np.intp], ids: NDArray[np.intp], target: NDArray[np.float64], source_prior: float
) -> LimitEstimate:
    """Estimate π′ where the test statistic is zero; the interval holds every r around it that is not rejected.

    Rows of P and U with the same number in `ids` are one observation.
    """
    P, U, T = (_density_ratio(rows, source_prior) for rows in (X[y == 1], X[y == 0], target))
    observation = np.unique(np.concatenate([ids[y == 1], ids[y == 0]]), return_inverse=True)[1]
    most = 1 / (1 - source_prior)  # the ratio of a target without positives

    def test(r: float) -> tuple[float, float, float]:
        """Return N − rD, its standard error, and D."""
        c_T, c_P, c_U = 1 / len(T), (1 - r) ** 2 / len(P), r**2 / len(U)
        of_P, of_U, of_T = ((1 - rho) / (c_T * ((1 - r) * rho + r) + c_P * rho + c_U) for rho in (P, U, T))
        N, D = of_T.mean() - of_P.mean(), of_U.mean() - of_P.mean()
        source = np.concatenate([(1 - r) * (of_P - of_P.mean()) / len(P), r * (of_U - of_U.mean()) / len(U)])
        variance = of_T.var() / len(T) + np.sum(np.bincount(observation, source) ** 2)
        return N - r * D, float(np.sqrt(variance)), D

    def statistic(r: float) -> float:
        gap, error, _ = test(r)
        return gap / error

    def end(level: float, step: float) -> float:
        """Step from R̂ to the first r at which the statistic equals `level`; near r = 0 it is not monotone."""
        r = R
        while (statistic(r) - level) * step > 0:
            after = min(max(r + step, 0.0), most)
            if (statistic(after) - level) * step < 0:
                return float(brentq(lambda x: statistic(x) - level, *sorted((r, after))))
            if after == r:
                break
            r = after
        return r

    first, last = statistic(0.0), statistic(most)
    R = 0.0 if first <= 0 else most if last >= 0 else float(brentq(statistic, 0.0, most))
    _, error, D = test(R)
    z = float(ndtri((1 + _CONFIDENCE) / 2))
    ratios = (R, end(-z, error / D / 2), end(z, -error / D / 2))
    value, low, high = (min(max(1 - (1 - source_prior) * r, 0.0), 1.0) for r in ratios)
    return LimitEstimate(value, Interval(low, high, _CONFIDENCE, "limit"))


def _density_ratio(rows: NDArray[np.float64], source_prior: float) -> NDArray[np.float64]:
    log_ratio = rows.sum(axis=1) - rows.shape[1] / 2
    return np.asarray(1 / (source_prior + (1 - source_prior) * np.exp(-log_ratio)))
