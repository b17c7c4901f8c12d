"""The rule of a monitor for the assumption: does a new share of positives explain the batches?

It bets on the rank u of each unit's features among all units before it (:mod:`priorshift.monitoring.ranks`): 1 ± εq(u),
for polynomials q. If nothing changes, u is uniform and the bets are fair. If only the share changes, the units so far
and those of the batch are both mixtures of P and U, with other weights. So the mean of q(u) is the difference d of
these weights times the gap of q between P and U, and the functions q are those without such a gap. Ranks change as the
units before them do, and so do the functions.

The gap is known from samples of P and U only. An error of the gap by η moves the mean of q(u) by dη. So each q is
reduced by τ = 3|d| standard errors of its gap before it is bet on, where |d| is what the last units show beyond chance.
A smaller payoff keeps the bets valid if nothing changes, however τ is chosen. What remains of the error of a gap of few
positives is too small for bets of a size from 0.75/√m on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import legendre

from priorshift.arrays import Floats
from priorshift.monitoring.evidence import LEAST_LOG, log_mean
from priorshift.monitoring.ranks import count_ranks, sequential_ranks, to_levels
from priorshift.monitoring.reference import Reference, count_features, count_levels

RANK_BINS = 100  # of the rank of a feature
_DEGREE = 4  # of the polynomials of a rank
_CENTERS = (np.arange(RANK_BINS) + 0.5) / RANK_BINS
_POLYNOMIALS = np.stack([legendre(k)(2 * _CENTERS - 1) * np.sqrt(2 * k + 1) for k in range(1, _DEGREE + 1)])
_POLYNOMIALS -= _POLYNOMIALS.mean(axis=1, keepdims=True)
# their integrals from 0 to the ends of the bins
_INTEGRALS = np.concatenate([np.zeros((_DEGREE, 1)), np.cumsum(_POLYNOMIALS, axis=1) / RANK_BINS], axis=1)
_SIZES = np.array([0.05, 0.1, 0.2, 0.4])  # ε
_LARGEST_POWER = 0.95  # ε·(|q| + τ) at most
_ERRORS = 3.0  # standard errors of a gap that are allowed for: there are up to 68 functions
_CHANCE = 2.0  # standard errors of the mean rank of the last units that are ascribed to chance
_RECENT = 200.0  # units from which d is estimated, or those of a larger batch
_LARGEST = 50.0  # |d|, with which hardly anything is bet
_LEAST_SIZE = 0.75  # smallest ε, over √m
_CLEAR = np.log(1000)  # evidence of a column that is named in an alarm, even if that of the score is larger
_GROWTH = 1.05  # of the number of units, after which the functions are computed again


@dataclass(eq=False)
class AssumptionRule:
    """Bets on functions of ranks that a new share does not move."""

    edges: Floats  # shape (features, levels − 1)
    pool: Floats  # units so far at each level, shape (features, levels)
    positive: Floats  # units of P at each level
    population: Floats  # units of the source population at each level
    log_wealth: Floats  # shape (features, polynomials, signs · sizes)
    recent: Floats  # about the last 200 units at each level of the first feature, the score
    is_comparable: bool = True  # whether units are of the same kind as those of P and U

    @classmethod
    def from_reference(cls, reference: Reference, source: Reference) -> AssumptionRule:
        """Build the rule with a reference; `source` is that of the model, which has the counts of P and U."""
        features, levels = reference.feature_counts.shape
        return cls(
            reference.feature_edges, reference.feature_counts.copy(), source.positive_counts, source.feature_counts,
            np.full((features, _DEGREE, 2 * len(_SIZES)), -np.inf), np.zeros(levels),
            reference.is_grouped == source.is_grouped,
        )  # fmt: skip

    def add_to_reference(self, features: Floats) -> None:
        """Count the units of a batch of the reference period."""
        self.pool = self.pool + count_features(features, self.edges)

    def update(self, features: Floats, rng: np.random.Generator) -> float:
        """Bet on the units of a batch, and return the logarithm of the largest evidence within it."""
        levels = np.stack([to_levels(column, edges) for column, edges in zip(features.T, self.edges, strict=True)])
        counts, ends = count_ranks(sequential_ranks(levels, self.pool, rng), RANK_BINS)
        after = self.pool + count_levels(levels, self.pool.shape[1])
        self.recent = self.recent * max(0.0, 1 - levels.shape[1] / _RECENT) + (after - self.pool)[0]
        difference = self._difference()
        log_wealth, largest, known, start = np.logaddexp(self.log_wealth, 0.0), -np.inf, 0.0, 0
        units = float(self.pool[0].sum())
        for part, end in enumerate(ends):
            if units + start >= _GROWTH * known:
                payoffs = self._payoffs(self.pool + count_levels(levels[:, :start], self.pool.shape[1]), difference)
                known = units + start
            more = payoffs @ counts[:, part, None, :, None]
            log_wealth = np.maximum(log_wealth + more[..., 0], LEAST_LOG)
            largest, start = max(largest, float(log_mean(log_wealth.ravel()))), end
        self.log_wealth, self.pool = log_wealth, after
        return largest

    def _difference(self) -> float:
        """Return |d| between the mixtures of P and U in the last units and in all so far, beyond what chance explains.

        The mean rank of the score is compared; the variance of a polynomial of a rank is about 1. The gap between P and
        U is reduced by three standard errors, since d is relative to it.
        """
        mean_rank = _rank_means(self.pool[:1])[0, 0]
        m, n, last, total = (
            max(float(counts.sum()), 1.0)
            for counts in (self.positive[0], self.population[0], self.recent, self.pool[0])
        )
        moved = abs(float((self.recent / last - self.pool[0] / total) @ mean_rank)) - _CHANCE / np.sqrt(last)
        if moved <= 0:
            return 0.0
        gap = float((self.positive[0] / m - self.population[0] / n) @ mean_rank) - _ERRORS * np.sqrt(1 / m + 1 / n)
        return min(float(moved / gap), _LARGEST) if gap > 0 and self.is_comparable else _LARGEST

    def _payoffs(self, pool: Floats, difference: float) -> Floats:
        """Return the logarithm of the payoff of each bet at each rank among the units of a pool.

        The shape is (features, polynomials, signs · sizes, rank bins).
        """
        q, error = gap_free_functions(pool, self.positive, self.population)
        tau = (_ERRORS * difference * error)[:, :, None, None]
        largest = np.abs(q).max(axis=2)[:, :, None, None] + tau
        least = _LEAST_SIZE / np.sqrt(self.positive.sum(axis=1))[:, None, None, None]
        size = np.minimum(np.maximum(_SIZES[:, None], least), _LARGEST_POWER / np.maximum(largest, 1e-300))
        return np.concatenate([np.log1p(size * (sign * q[:, :, None, :] - tau)) for sign in (-1, 1)], axis=2)

    @property
    def evidence(self) -> float:
        """Logarithm of the evidence, after the last batch, that a change of the share does not explain the batches."""
        return float(log_mean(self.log_wealth.ravel()))

    @property
    def likely_feature(self) -> int:
        """Number of the feature with the strongest evidence; the first, the score, only if no column has clear one."""
        by_feature = self.log_wealth.max(axis=(1, 2))
        column = 1 + int(np.argmax(by_feature[1:]))
        return column if by_feature[column] > min(by_feature[0], _CLEAR) else 0

    def restart(self) -> None:
        """Start again, without evidence and without the last units, which may not be trusted."""
        self.log_wealth, self.recent = np.full_like(self.log_wealth, -np.inf), np.zeros_like(self.recent)


def gap_free_functions(pool: Floats, positive: Floats, population: Floats) -> tuple[Floats, Floats]:
    """Return functions q of a rank whose means are the same in P and U, and the standard errors of these gaps.

    A rank is one among the units of the `pool`; all counts have the shape (features, levels). The functions are
    polynomials less their projections on the one with the largest gap, shape (features, polynomials, rank bins).
    """
    means = _rank_means(pool)
    m, n = (counts.sum(axis=1)[:, None] for counts in (positive, population))
    P, U = positive / m, population / n
    gap = (means @ (P - U)[:, :, None])[..., 0]
    length = np.linalg.norm(gap, axis=1, keepdims=True)
    largest = np.divide(gap, length, out=np.zeros_like(gap), where=length > 0)
    remove = np.eye(_DEGREE) - largest[:, :, None] * largest[:, None, :]
    by_level = remove @ means
    variance = np.zeros_like(gap)
    for share, size in ((P, m), (U, n)):
        mean, square = ((values @ share[:, :, None])[..., 0] for values in (by_level, by_level**2))
        variance += np.maximum(square - mean**2, 0.0) / size
    return remove @ _POLYNOMIALS, np.sqrt(variance)


def _rank_means(pool: Floats) -> Floats:
    """Return the mean of each polynomial over the ranks of each level, among units with these counts.

    Units of one level have their ranks in random order. The shape is (features, polynomials, levels).
    """
    up_to = np.cumsum(pool, axis=1) / np.maximum(pool.sum(axis=1, keepdims=True), 1.0)
    below = np.concatenate([np.zeros((len(pool), 1)), up_to[:, :-1]], axis=1)
    ends = np.arange(RANK_BINS + 1) / RANK_BINS
    integrals = np.stack([np.interp(up_to, ends, line) - np.interp(below, ends, line) for line in _INTEGRALS], axis=1)
    width = (up_to - below)[:, None, :]
    at: NDArray[np.intp] = np.minimum((below * RANK_BINS).astype(int), RANK_BINS - 1)
    inside = np.moveaxis(_POLYNOMIALS[:, at], 0, 1)  # of levels without units
    return np.divide(integrals, width, out=inside, where=width > 1e-9)
