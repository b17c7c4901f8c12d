"""A sample as its mean embedding needs it: rows, their masses, and which rows are one observation.

A mean embedding is μ = Σ mass·φ(x). P, U and T have one numbering of observations, so that a group in two samples is
recognised in both.

An unbiased statistic leaves out self-pairs, the pairs of two rows of one observation: for a row that is an observation
of its own the diagonal, for a shared row its pair in P and U, for a group of g rows all g² pairs.

A bootstrap sample is a count for each row: how often it was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index
from priorshift.embedding.random_features import RandomFeatures, feature_mean, feature_values
from priorshift.embedding.tiles import DOUBLE, kernel_sums
from priorshift.io.scaling import Rows
from priorshift.io.weights import effective_size
from priorshift.kernels import Kernel

_PAIR_CELLS = 2**19  # numbers in the rows that are paired at a time: 4 MB
_LEAST_PAIRS = 256
_LARGE_GROUP = 2**12  # pairs of one group, from which on tiles are faster
_BLOCK = 4096  # rows processed at a time


@dataclass(frozen=True, eq=False)
class EmbeddedSample:
    """Rows of P, U or T with their masses and observations."""

    rows: Rows  # scaled
    mass: Floats  # of each row in a mean; the sum is 1
    observation: Index  # number of each row's observation, the same numbering in all samples

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def weights(self) -> Floats | None:
        """The masses times the number of rows; None where all are equal."""
        return None if np.ptp(self.mass) == 0 else self.mass * len(self)

    @cached_property
    def distinct(self) -> Index:
        """The distinct observations, in the order in which they appear."""
        if self._is_increasing:
            return self.observation
        numbers, first = np.unique(self.observation, return_index=True)
        return np.asarray(numbers[np.argsort(first, kind="stable")])

    @property
    def is_ungrouped(self) -> bool:
        """Whether each row is an observation of its own."""
        return len(self.distinct) == len(self)

    @property
    def is_iid(self) -> bool:
        """Whether all rows have equal weight and are observations of their own."""
        return self.weights is None and self.is_ungrouped

    @cached_property
    def size(self) -> float:
        """Effective sample size, in observations of equal weight."""
        return float(len(self)) if self.is_iid else effective_size(self.mass, self._codes)

    @property
    def spread_correction(self) -> float:
        """√(n/(n−1)) with the effective n, by which the spread of observations about their mean is too small."""
        return float(np.sqrt(self.size / max(self.size - 1, 1)))

    def take(self, index: Index) -> EmbeddedSample:
        """Select some rows, which keep their mass."""
        rows = replace(self.rows, index=index if self.rows.index is None else self.rows.index[index])
        return EmbeddedSample(rows, self.mass[index], self.observation[index])

    def sum_by_observation(self, values: Floats) -> tuple[Index, Floats]:
        """Return the observations in increasing order, and the sums of `values` over the rows of each."""
        if self.is_ungrouped:
            order = np.argsort(self.observation, kind="stable")
            return self.observation[order], values[order]
        numbers = np.sort(self.distinct)
        sums = [np.bincount(self._codes, column, len(numbers)) for column in values.T]
        return numbers, np.stack(sums, axis=1)

    @cached_property
    def _is_increasing(self) -> bool:
        """Whether the numbers of observations increase from row to row, so that nothing has to be sorted."""
        return bool((np.diff(self.observation) > 0).all())

    @cached_property
    def _codes(self) -> Index:
        """Rank of each row's observation."""
        return np.asarray(np.unique(self.observation, return_inverse=True)[1].reshape(-1))


@dataclass(frozen=True, eq=False)
class SelfPairs:
    """Sums at each row of a sample X over the rows of a sample Y that are the same observation."""

    sums: Floats  # Σ mass·k(x, y)
    mass: Floats  # Σ mass

    def averaged(self, mass: Floats) -> SelfPairs:
        """Give every row of X that has self-pairs their average over such rows, weighted by `mass`."""
        has = self.mass > 0
        share = mass[has] / mass[has].sum()
        sums, own = np.zeros(len(has)), np.zeros(len(has))
        sums[has], own[has] = share @ self.sums[has], share @ self.mass[has]
        return SelfPairs(sums, own)


def self_pairs(
    kernel: Kernel, X: EmbeddedSample, Y: EmbeddedSample, dtype: np.dtype[Any] = DOUBLE
) -> tuple[SelfPairs, SelfPairs] | None:
    """Compute the self-pairs at the rows of X and at those of Y; None where they have no observation in common."""
    same = X is Y
    if same and X.is_ungrouped:
        of_X = SelfPairs(X.mass * _diagonal(kernel, X), X.mass)
        return of_X, of_X
    common = X.distinct if same else np.intersect1d(X.distinct, Y.distinct, assume_unique=True)
    if not len(common):
        return None
    at_X, at_Y = (SelfPairs(np.zeros(len(one)), np.zeros(len(one))) for one in (X, Y))
    x, y = _Members.from_sample(X, common), _Members.from_sample(Y, common)
    pairs = x.count * y.count
    most = max(_LEAST_PAIRS, _PAIR_CELLS // X.rows.X.shape[1])
    large = pairs > min(most, _LARGE_GROUP)
    for g in np.flatnonzero(large).tolist():  # a large group is a sample of its own
        left, right = x.rows(g), y.rows(g)
        A, B = X.take(left), Y.take(right)
        at_X.sums[left], at_Y.sums[right] = _all_pairs(kernel, A, B, same, dtype)
        at_X.mass[left], at_Y.mass[right] = B.mass.sum(), A.mass.sum()
    small = np.flatnonzero(~large)
    chunk = np.cumsum(pairs[small]) // most
    for groups in np.split(small, np.flatnonzero(np.diff(chunk)) + 1) if len(small) else ():
        of = np.repeat(np.arange(len(groups)), pairs[groups])
        within = np.arange(len(of)) - (np.cumsum(pairs[groups]) - pairs[groups])[of]
        width = y.count[groups][of]
        left = x.order[x.start[groups][of] + within // width]
        right = y.order[y.start[groups][of] + within % width]
        values = kernel.paired(X.rows[left], Y.rows[right])
        for at, here, mass in ((at_X, left, Y.mass[right]), (at_Y, right, X.mass[left])):
            np.add.at(at.sums, here, mass * values)
            np.add.at(at.mass, here, mass)
    return at_X, at_Y


def _all_pairs(
    kernel: Kernel, X: EmbeddedSample, Y: EmbeddedSample, same: bool, dtype: np.dtype[Any]
) -> tuple[Floats, Floats]:
    """Compute Σ mass·k(x, y) at each row of X over all rows of Y, and at each row of Y over those of X."""
    if isinstance(kernel, RandomFeatures):
        means = [feature_mean(kernel, one.rows, one.mass)[None] for one in (X, Y)]
        of_X, of_Y = (feature_values(kernel, a.rows, mean)[:, 0] for a, mean in ((X, means[1]), (Y, means[0])))
        return of_X, of_Y
    weights = len(X) * X.mass, len(Y) * Y.mass
    by_row, by_column = kernel_sums(kernel, X.rows, None if same else Y.rows, dtype=dtype, weights=weights)
    return by_row / len(Y), by_column / len(X)


@dataclass(frozen=True, eq=False)
class _Members:
    """The rows of each of some observations: `count` of them in `order`, from `start` on."""

    order: Index
    start: Index
    count: Index

    @classmethod
    def from_sample(cls, sample: EmbeddedSample, numbers: Index) -> _Members:
        order = np.argsort(sample.observation, kind="stable")
        ranked = sample.observation[order]
        start = np.searchsorted(ranked, numbers, "left")
        return cls(order, start, np.searchsorted(ranked, numbers, "right") - start)

    def rows(self, g: int) -> Index:
        return self.order[self.start[g] : self.start[g] + self.count[g]]


def _diagonal(kernel: Kernel, X: EmbeddedSample) -> Floats:
    """Compute k(x, x) at each row."""
    if kernel.stationary:
        one = X.rows[:1]
        return np.full(len(X), kernel.paired(one, one)[0])
    blocks = (X.rows[k : k + _BLOCK] for k in range(0, len(X), _BLOCK))
    return np.concatenate([kernel.paired(block, block) for block in blocks])


def draw_pairs(X: EmbeddedSample, Y: EmbeddedSample, pairs: int, rng: np.random.Generator) -> tuple[Index, Index]:
    """Draw pairs of rows of two different observations, with probabilities proportional to their masses."""
    if X is Y and X.is_iid:
        left = rng.integers(0, len(X), pairs)
        right = rng.integers(0, len(X) - 1, pairs)
        return left, right + (right >= left)
    left, right = (_draw_rows(sample, pairs, rng) for sample in (X, Y))
    different = X.observation[left] != Y.observation[right]
    return left[different], right[different]


def _draw_rows(sample: EmbeddedSample, count: int, rng: np.random.Generator) -> Index:
    """Draw rows with a probability proportional to their mass."""
    if sample.weights is None:
        return rng.integers(0, len(sample), count)
    return np.minimum(np.searchsorted(np.cumsum(sample.mass), rng.random(count)), len(sample) - 1)


def draw_counts(
    samples: Sequence[EmbeddedSample], source: int, replicates: int, rng: np.random.Generator
) -> list[NDArray[np.uint8]]:
    """Draw how often each row of each sample is drawn, shape (rows, replicates).

    Observations below `source` belong to the source. Each sample draws as many observations as it has.
    """
    p, u, t = (s.distinct for s in samples)
    drawn = np.zeros((max(int(numbers.max()) for numbers in (p, u, t)) + 1, replicates), np.uint8)
    for numbers in (u, t[t >= source], p[~np.isin(p, u)]):
        n = len(numbers)
        counts = np.empty((n, replicates), np.uint8)
        for b in range(replicates):
            counts[:, b] = np.bincount(rng.integers(0, n, n), minlength=n) if n else 0
        drawn[numbers] = counts
    return [drawn[s.observation] for s in samples]


def sum_over_rows(values: Floats, counts: NDArray[np.uint8], of: Callable[[Floats], Floats]) -> Floats:
    """Compute Σ value·of(count) over the rows, for each replicate."""
    total = np.zeros(counts.shape[1])
    for i in range(0, len(values), _BLOCK):
        total += values[i : i + _BLOCK] @ of(counts[i : i + _BLOCK].astype(np.float64))
    return total
