"""The rules of a monitor for the share of positives: has it changed, and is it above or below a level?

Each rule keeps the wealth of bets against "all is well" (:mod:`priorshift.monitoring.evidence`).

- *Change* bets on the rank of each unit among all units before it, which is uniform if nothing changes
  (:mod:`priorshift.monitoring.ranks`). The bets are the likelihood ratio of a change of the share by δ: with κ the part
  of the earlier units that came after the change, (1 + δs)/(1 + κδs).
- *Level* bets on the mean of s/(1 + (ℓ−π)s), the score at the level ℓ, being above the largest mean that a share of at
  most ℓ can have, where the errors of the source are accounted for once.

A rule of ranks looks at its evidence several times within a batch, and the evidence of the batch is the largest: at
the end of a large batch alone it would be far beyond its limit or far below it, and alarms much rarer than stated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from priorshift.arrays import Floats
from priorshift.inference.confidence_curve import FiellerCurve
from priorshift.monitoring.evidence import add_bets, allowed_bets, log_mean, log_sum, start_weight
from priorshift.monitoring.model import MonitorModel
from priorshift.monitoring.ranks import count_ranks, sequential_ranks, to_levels
from priorshift.monitoring.reference import Reference

_SHIFTS = 0.0025 * 2.0 ** np.arange(9)  # changes of the share that bets are made for, from 0.0025 to 0.64
SHAPE_BINS = 200  # of the rank of a unit's score
_DILUTIONS = 33  # values of κ, from 0 to 1, for which bets are tabulated
_MOST_STARTS = 48  # of bets on a change; neighbours are merged when there are more
_LARGEST_POWER = 0.95  # of a bet on one unit, at most
# part of the probability of a false alarm of the level rule that is spent on the errors of the source: more than half,
# since those errors remain, while evidence from batches grows. Chosen on the study monitor_quiet: with one half, 0.4%
# of its runs with a source prior of 0.1 had an alarm, and 1.2% of those with 0.01
SOURCE_SHARE = 0.75
_LEAST_DENSITY = 0.05  # of a share relative to the source: an estimated one may be negative


def score_at(scores: Floats, share: float, source_prior: float) -> Floats:
    """Return (f_P − f_N)/f at a given share, from s = (f_P − f_N)/f_U; f = f_U·(1 + (share − π)s)."""
    return np.asarray(scores / np.maximum(1 + (share - source_prior) * scores, _LEAST_DENSITY))


@dataclass(eq=False)
class Starts:
    """Bets on a change at each batch; those on neighbouring batches are merged as time passes."""

    batch: NDArray[np.int64]  # number of the first batch after the change, shape (starts,)
    before: Floats  # units before the change, the reference included
    counts: Floats  # units from this start to the next, at each level, shape (starts, levels)
    log_wealth: Floats  # for each change δ, shape (starts, changes)

    @classmethod
    def none(cls, levels: int, changes: int) -> Starts:
        """Return no start."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, levels)), np.empty((0, changes)))

    def __len__(self) -> int:
        return len(self.batch)

    def check(self, pool: Floats) -> None:
        """Raise ValueError unless there is one value of each kind for each start, all of them finite and possible.

        `pool` are the units of the reference at each level.
        """
        kinds = (self.batch, self.before, self.counts, self.log_wealth)
        if any(len(kind) != len(self) or not np.isfinite(kind).all() for kind in kinds) or (self.counts < 0).any():
            raise ValueError
        units = float(pool.sum() + self.counts.sum())
        if not ((self.before >= 0) & (self.before <= units)).all():
            raise ValueError

    def add(self, batch: int, before: float) -> None:
        """Add a start with the wealth 1 for each change."""
        self.batch, self.before = np.append(self.batch, batch), np.append(self.before, before)
        self.counts = np.concatenate([self.counts, np.zeros((1, self.counts.shape[1]))])
        self.log_wealth = np.concatenate([self.log_wealth, np.zeros((1, self.log_wealth.shape[1]))])

    @property
    def by_start(self) -> Floats:
        """Logarithm of the mean wealth of each start."""
        return log_mean(self.log_wealth)

    def merge_closest(self, now: float) -> None:
        """Merge the two neighbouring starts that are closest, relative to their age in units."""
        k = int(np.argmin(np.diff(self.before) / np.maximum(now - self.before[:-1], 1.0)))
        first, second = self.by_start[k : k + 2]
        leader = k if first > second else k + 1
        self.batch[k], self.before[k] = self.batch[leader], self.before[leader]
        self.counts[k] += self.counts[k + 1]
        self.log_wealth[k] = np.logaddexp(self.log_wealth[k], self.log_wealth[k + 1])
        self.batch, self.before = np.delete(self.batch, k + 1), np.delete(self.before, k + 1)
        self.counts, self.log_wealth = np.delete(self.counts, k + 1, axis=0), np.delete(self.log_wealth, k + 1, axis=0)


@dataclass(eq=False)
class ChangeRule:
    """Has the share changed? Bets on the ranks of the units' scores."""

    edges: Floats  # between levels of a unit's score
    pool: Floats  # units of the reference at each level
    shape: Floats | None = None  # score at each rank, centred; None until the reference is complete
    origin: int = 0  # number of the first batch of the reference
    starts: Starts = field(default_factory=lambda: Starts.none(0, 0))

    @classmethod
    def from_reference(cls, reference: Reference) -> ChangeRule:
        """Build the rule with the source as the reference."""
        return cls(reference.score_edges, reference.score_counts.copy())

    def add_to_reference(self, scores: Floats) -> None:
        """Count the units of a batch of the reference period."""
        self.pool = self.pool + np.bincount(to_levels(scores, self.edges), minlength=len(self.pool))

    def complete_reference(self, base_share: float, source_prior: float) -> None:
        """Fix the bets for the reference, whose share of positives is about `base_share`."""
        values = score_at(self._level_values, base_share, source_prior)
        cumulative = np.cumsum(self.pool) / self.pool.sum()
        ranks = (np.arange(SHAPE_BINS) + 0.5) / SHAPE_BINS
        shape = values[np.minimum(np.searchsorted(cumulative, ranks), len(values) - 1)]
        self.set_shape(shape - shape.mean())

    def set_shape(self, shape: Floats) -> None:
        """Fix the bets: the derivative of the log-likelihood in the share at each rank, whose mean is 0."""
        self.shape = shape
        for cached in ("shifts", "_tables"):  # computed without the shape, when a state was loaded
            vars(self).pop(cached, None)
        self.starts = Starts.none(len(self.pool), len(self.shifts))

    @property
    def mean_score(self) -> float:
        """Mean score of the reference."""
        return float(self.pool @ self._level_values / self.pool.sum())

    @property
    def _level_values(self) -> Floats:
        """A score for each level: the middle between its edges."""
        ends = np.concatenate([self.edges[:1], self.edges, self.edges[-1:]])
        return np.asarray((ends[1:] + ends[:-1]) / 2)

    @cached_property
    def shifts(self) -> Floats:
        """Changes δ of the share that are bet on; smaller ones than usual if the share is close to 0 or 1."""
        shape = np.zeros(1) if self.shape is None else self.shape
        usual = allowed_bets(np.concatenate([-_SHIFTS[::-1], _SHIFTS]), float(shape.min()), float(shape.max()))
        return usual if usual.size else np.array([-0.5, 0.5]) / float(np.abs(shape).max())

    @cached_property
    def _tables(self) -> Floats:
        """Logarithm of the payoff of each bet at each rank, shape (dilutions, changes, rank bins)."""
        kappa = np.linspace(0, 1, _DILUTIONS)[:, None, None]
        gain = self.shifts[None, :, None] * (0.0 if self.shape is None else self.shape)
        payoff = (1 + gain) / (1 + kappa * gain)
        return np.log(payoff / payoff.mean(axis=2, keepdims=True))

    def update(self, scores: Floats, batch: int, rng: np.random.Generator) -> float:
        """Bet on the units of a batch, and return the logarithm of the largest evidence within it."""
        pool = self.pool + self.starts.counts.sum(axis=0)
        levels, before = to_levels(scores, self.edges), float(pool.sum())
        ranks = sequential_ranks(levels[None], pool[None], rng)
        self.starts.add(batch, before)
        self.starts.counts[-1] += np.bincount(levels, minlength=len(pool))
        middle = before + len(scores) / 2
        kappa = (middle - self.starts.before) / max(middle, 1.0)  # part of the earlier units that is after the change
        counts = np.cumsum(count_ranks(ranks, SHAPE_BINS)[0][0], axis=0)  # up to the end of each part of the batch
        payoffs = self._tables @ counts.T  # shape (dilutions, changes, parts)
        payoffs = payoffs[np.rint(kappa * (_DILUTIONS - 1)).astype(int)]
        log_wealth = self.starts.log_wealth + np.moveaxis(payoffs, 2, 0)
        self.starts.log_wealth = log_wealth[-1]
        evidence = float(log_sum(log_mean(log_wealth)).max())
        if len(self.starts) > _MOST_STARTS:
            self.starts.merge_closest(before + len(scores))
        return evidence

    @property
    def evidence(self) -> float:
        """Logarithm of the evidence of a change after the last batch."""
        return float(log_sum(self.starts.by_start))

    @property
    def likely_start(self) -> int:
        """Number of the first batch after the most likely change."""
        return int(self.starts.batch[np.argmax(self.starts.by_start)])

    def restart(self) -> None:
        """Start again with the units since the likely change as the reference."""
        self.origin = self.likely_start
        self.pool = self.starts.counts[self.starts.batch >= self.origin].sum(axis=0)
        self.starts = Starts.none(len(self.pool), len(self.shifts))

    def restart_from(self, origin: int, pool: Floats) -> None:
        """Start again with an earlier reference: the batch at which it began, and its units at each level."""
        self.origin, self.pool = origin, pool
        self.starts = Starts.none(len(pool), len(self.shifts))


@dataclass(eq=False)
class LevelRule:
    """Is the share above the level, or below it? Bets on the mean of the score at the level."""

    side: int  # 1 for above, −1 for below
    function: Floats  # score at the level ℓ for each level of s, shape (levels of s,)
    bound: float  # largest mean of the function that a share up to the level can have (for −1, the smallest)
    log_wealth: Floats  # of each bet
    batches: int = 0  # so far

    @classmethod
    def from_model(
        cls, model: MonitorModel, level: float, side: int, alpha: float, bound: float | None = None
    ) -> LevelRule:
        """Build the rule; a part of α is spent on the errors of the source, once and for all batches.

        `bound` is that of an earlier rule with the same arguments; None computes it.
        """
        function = score_at(model.values, level, model.prior.value)
        if bound is None:
            bound = mean_at(model, function, level, side, 1 - 2 * SOURCE_SHARE * alpha)  # one end of the interval
        return cls(side, function, bound, np.full(len(_SHIFTS), -np.inf))

    @property
    def can_alarm(self) -> bool:
        """Whether some mean would be evidence; the source may be too uncertain for that."""
        return bool(np.isfinite(self.bound))

    def least_share(self, model: MonitorModel) -> float | None:
        """Return the share beyond which evidence grows from batch to batch; None if no share is enough.

        It is further out than the level, by the errors of the source.
        """
        mean_P, mean_U, _, _ = model.mean_errors(self.function)
        if not (self.can_alarm and mean_P > mean_U):
            return None
        prior = model.prior.value
        share = prior + (1 - prior) * (self.bound - mean_U) / (mean_P - mean_U)
        return float(share) if 0 <= share <= 1 else None

    def update(self, levels: NDArray[np.int64], weights: Floats | None, code: NDArray[np.int64] | None) -> float:
        """Bet on the rows of a batch, and return the logarithm of the evidence.

        `levels` are those of s; `code` numbers the group of each row.
        """
        self.batches += 1
        log_new = float(np.log(start_weight(self.batches)))
        if not self.can_alarm:
            self.log_wealth = add_bets(self.log_wealth, np.zeros_like(self.log_wealth), log_new)
            return self.evidence
        centered = self.side * (self.function - self.bound)
        low = float(centered.min())
        if weights is None and code is None:
            counts, values, largest = np.bincount(levels, minlength=len(centered)).astype(float), centered, 1.0
        else:
            values = centered[levels] * (1.0 if weights is None else weights)
            mass = np.ones(len(values)) if weights is None else weights
            if code is not None:
                values, mass = (np.bincount(code, part).astype(float) for part in (values, mass))
            largest, counts = float(mass.max()), np.ones(len(values))
            values = values / largest
        sizes = np.minimum(_SHIFTS * largest, _LARGEST_POWER / max(-low, 1e-300))
        payoff = np.log1p(sizes[:, None] * values[None, :]) @ counts
        self.log_wealth = add_bets(self.log_wealth, payoff, log_new)
        return self.evidence

    @property
    def evidence(self) -> float:
        """Logarithm of the evidence that the share is beyond the level."""
        return float(log_mean(self.log_wealth))

    def restart(self) -> None:
        """Start again, without evidence."""
        self.log_wealth, self.batches = np.full_like(self.log_wealth, -np.inf), 0


def share_bounds(model: MonitorModel, function: Floats, mean: float, confidence: float) -> tuple[float, float]:
    """Return the interval of the share of a population with this mean of a function of s, with the source's errors."""
    mean_P, mean_U, var_P, var_U = model.mean_errors(function)
    D = mean_U - mean_P
    if abs(D) < 1e-12:
        return 0.0, 1.0
    curve = FiellerCurve((mean - mean_P) / D, var_P / D**2, var_P / D**2, (var_P + var_U) / D**2)
    return model.prior.interval(curve, confidence)


def mean_at(model: MonitorModel, function: Floats, level: float, side: int, confidence: float) -> float:
    """Return the mean of a function of s from which on the share is surely beyond the level, but for batches' errors.

    Infinite if there is none: then the source leaves open which share such a population has.
    """
    ends = (float(function.min()), float(function.max()))

    def excess(mean: float) -> float:
        """Return by how much the bound of the share lies beyond the level."""
        low, high = share_bounds(model, function, mean, confidence)
        return low - level if side > 0 else level - high

    start, stop = ends if side > 0 else ends[::-1]
    if excess(stop) <= 0:
        return side * np.inf
    if excess(start) >= 0:
        return start
    return float(brentq(excess, *ends, xtol=1e-9 * (ends[1] - ends[0])))
