"""Evidence against a hypothesis that grows over time: bets whose expected payoff is one if the hypothesis is true.

A bet on a batch pays e ≥ 0 with E e ≤ 1 under the hypothesis, whatever came before (an e-value). There are two ways to
add up bets over time t = 1, 2, … (Shin, Ramdas and Rinaldo 2024):

- V_t = (V_{t−1} + ω_t)·e_t with Σ ω_t = 1 ever exceeds 1/α with probability at most α;
- M_t = (M_{t−1} + 1)·e_t takes at least A batches on average to exceed A.

Both find a change that began at any time, since a bet starts at each. Logarithms are used throughout.

A bet on a batch is a product of bets on its rows, so evidence may be looked at anywhere within a batch: stopping there
keeps both promises, since bets start with a batch only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from priorshift.arrays import Floats

_LEAST_PAYOFF = 0.05  # smallest factor of a bet on one observation, so that no observation ends it
_SPEEDS = np.geomspace(1e-3, 1.0, 15)  # of bets on a mean, relative to the largest that is allowed
LEAST_LOG = -700.0  # of a wealth: a smaller one is 0, and its logarithm is stored as this


def start_weight(t: int) -> float:
    """Return ω_t = 1/(t(t+1)), the share of the evidence that bets on a change at batch t, 1 for the first."""
    return 1.0 / (t * (t + 1))


def add_bets(log_wealth: Floats, log_payoff: Floats, log_new: float) -> Floats:
    """Return the logarithm of (wealth + new)·payoff, for each bet."""
    return np.maximum(np.logaddexp(log_wealth, log_new) + log_payoff, LEAST_LOG)


def log_sum(log_wealth: Floats) -> Floats:
    """Return the logarithm of the total wealth of all bets; those of each batch or part are a row, the last axis."""
    largest = np.max(log_wealth, axis=-1, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(shift + np.log(np.exp(log_wealth - shift[..., None]).sum(axis=-1)))


def log_mean(log_wealth: Floats) -> Floats:
    """Return the logarithm of the mean wealth of all bets, the last axis."""
    return np.asarray(log_sum(log_wealth) - np.log(log_wealth.shape[-1]))


def allowed_bets(sizes: Floats, low: float, high: float) -> Floats:
    """Return those sizes of bets 1 + size·x that pay at least a little for every x from `low` to `high`."""
    return sizes[(1 + sizes * low >= _LEAST_PAYOFF) & (1 + sizes * high >= _LEAST_PAYOFF)]


def mean_bounds(
    sums: Floats, masses: Floats, low: float, high: float, alpha: float, counts: Floats | None = None
) -> tuple[float, float]:
    """Return bounds of a mean of numbers in [low, high], each of which is wrong with probability at most α/2.

    By inverting bets (Waudby-Smith and Ramdas 2024): a mean m is excluded if bets 1 + λ·Σ(x − m) on each unit, averaged
    over sizes λ, earn more than 2/α. Valid for any distribution and any number of independent units. `sums` and
    `masses` are Σx and Σ1 of each unit, or weighted sums; `counts` says how often each unit occurs.
    """
    times = np.ones(len(sums)) if counts is None else counts
    total = float(masses @ times)
    if total <= 0 or high <= low:
        return low, high
    largest = float(masses.max())
    average = float(np.clip(sums @ times / total, low, high))

    def earnings(m: float, sign: int) -> float:
        """Return the logarithm of the earnings of bets that the mean is above m, or for sign −1 below m."""
        size = (1 - _LEAST_PAYOFF) / max(largest * (m - low if sign > 0 else high - m), 1e-300)
        return float(log_mean(np.log1p(sign * size * _SPEEDS[:, None] * (sums - m * masses)[None, :]) @ times))

    limit = float(np.log(2 / alpha))
    return _bound(earnings, average, low, limit, 1), _bound(earnings, average, high, limit, -1)


def _bound(earnings: Callable[[float, int], float], average: float, end: float, limit: float, sign: int) -> float:
    """Return the mean between the average and an end of the range at which bets earn just the limit."""
    near = end + 1e-9 * (average - end)  # at the end itself a bet could be of any size
    if earnings(near, sign) <= limit:
        return end
    return float(brentq(lambda m: earnings(m, sign) - limit, near, average, xtol=1e-12 + 1e-6 * abs(end - average)))
