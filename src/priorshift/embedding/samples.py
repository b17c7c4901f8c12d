"""A sample as a mean embedding sees it: rows, what each counts, and which of them are one observation.

A mean embedding is μ = Σ mass·φ(x). P, U and T have one numbering of observations, so that a group that stands in two
samples is known in both.

Pairs of two rows of one observation, which an unbiased statistic leaves out: their sums, and what they count.

Of a row alone in its observation it is the pair with itself, the diagonal; of a shared row its pair in P and U; of a
group of g rows all g² pairs.

Bootstrap samples as counts: how often each row of P, U and T is drawn."""

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


@dataclass(frozen=True, eq=False)
class EmbeddedSample:
    """Rows of one of the three samples.

    Attributes
    ----------
    rows : Rows
        Scaled.
    mass : ndarray
        What each row counts in a mean; the sum is 1.
    observation : ndarray of int
        A number for each row, the same for rows of one observation, here and in the other samples.
    """

    rows: Rows
    mass: Floats
    observation: Index

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def even(cls, rows: Rows, first: int = 0) -> EmbeddedSample:
        """Rows that count the same, each an observation of its own, numbered from `first` on."""
        n = len(rows)
        return cls(rows, np.full(n, 1 / n), np.arange(first, first + n))

    @cached_property
    def weights(self) -> Floats | None:
        """The masses, times the number of rows; None where all are the same."""
        return None if np.ptp(self.mass) == 0 else self.mass * len(self)

    @cached_property
    def numbers(self) -> Index:
        """The observations, in the order in which they appear."""
        if self._is_rising:
            return self.observation
        numbers, first = np.unique(self.observation, return_index=True)
        return np.asarray(numbers[np.argsort(first, kind="stable")])

    @property
    def is_separable(self) -> bool:
        """Whether each row is its own observation."""
        return len(self.numbers) == len(self)

    @property
    def is_even(self) -> bool:
        """Whether each row counts the same, and is its own observation."""
        return self.weights is None and self.is_separable

    @cached_property
    def size(self) -> float:
        """Observations of equal weight that it is worth."""
        return float(len(self)) if self.is_even else effective_size(self.mass, self._codes)

    @property
    def unbiased(self) -> float:
        """What the spread of its observations about their mean is too small by: √(n/(n−1)), n that count the same."""
        return float(np.sqrt(self.size / max(self.size - 1, 1)))

    def take(self, index: Index) -> EmbeddedSample:
        """Some of its rows, which keep their mass."""
        rows = replace(self.rows, index=index if self.rows.index is None else self.rows.index[index])
        return EmbeddedSample(rows, self.mass[index], self.observation[index])

    def together(self, values: Floats) -> tuple[Index, Floats]:
        """Observations, rising, and sums of `values` over the rows of each; of shape (rows, columns)."""
        if self._is_rising:
            return self.observation, values
        if self.is_separable:
            order = np.argsort(self.observation, kind="stable")
            return self.observation[order], values[order]
        numbers = np.sort(self.numbers)
        sums = [np.bincount(self._codes, column, len(numbers)) for column in values.T]
        return numbers, np.stack(sums, axis=1)

    @cached_property
    def _is_rising(self) -> bool:
        """Whether observations are numbered in the order of the rows, each its own: nothing to sort."""
        return bool((np.diff(self.observation) > 0).all())

    @cached_property
    def _codes(self) -> Index:
        """Of each row, the rank of its observation's number."""
        return np.asarray(np.unique(self.observation, return_inverse=True)[1].reshape(-1))


_CELLS = 2**19  # of the rows that are paired at a time: 4 MB
_LEAST_PAIRS = 256
_LARGE = 2**12  # pairs of one group, from which on tiles are faster
_BLOCK = 4096  # rows of a diagonal looked at together


@dataclass(frozen=True, eq=False)
class OwnPairs:
    """Sums at each row of a sample X over the rows of a sample Y that are the same observation.

    Attributes
    ----------
    sums : ndarray
        Σ mass·k(x, y).
    mass : ndarray
        Σ mass.
    """

    sums: Floats
    mass: Floats

    def averaged(self, mass: Floats) -> OwnPairs:
        """The same for every row of X that has any, by what the rows count."""
        has = self.mass > 0
        share = mass[has] / mass[has].sum()
        sums, own = np.zeros(len(has)), np.zeros(len(has))
        sums[has], own[has] = share @ self.sums[has], share @ self.mass[has]
        return OwnPairs(sums, own)


def own_pairs(
    kernel: Kernel, X: EmbeddedSample, Y: EmbeddedSample, dtype: np.dtype[Any] = DOUBLE
) -> tuple[OwnPairs, OwnPairs] | None:
    """Of X in Y and of Y in X; None where they have no observation in common."""
    same = X is Y
    if same and X.is_separable:
        of_X = OwnPairs(X.mass * _diagonal(kernel, X), X.mass)
        return of_X, of_X
    common = X.numbers if same else np.intersect1d(X.numbers, Y.numbers, assume_unique=True)
    if not len(common):
        return None
    at_X, at_Y = (OwnPairs(np.zeros(len(one)), np.zeros(len(one))) for one in (X, Y))
    x, y = _Members.of(X, common), _Members.of(Y, common)
    pairs = x.count * y.count
    most = max(_LEAST_PAIRS, _CELLS // X.rows.X.shape[1])
    large = pairs > min(most, _LARGE)
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
    """Σ mass·k(x, y) at each row of X over all rows of Y, and the other way round."""
    if isinstance(kernel, RandomFeatures):
        means = [feature_mean(kernel, one.rows, one.mass)[None] for one in (X, Y)]
        of_X, of_Y = (feature_values(kernel, a.rows, mean)[:, 0] for a, mean in ((X, means[1]), (Y, means[0])))
        return of_X, of_Y
    weights = len(X) * X.mass, len(Y) * Y.mass
    by_row, by_column = kernel_sums(kernel, X.rows, None if same else Y.rows, dtype=dtype, weights=weights)
    return by_row / len(Y), by_column / len(X)


@dataclass(frozen=True, eq=False)
class _Members:
    """Which rows of a sample each of some observations has: `count` of them in `order` from `start` on."""

    order: Index
    start: Index
    count: Index

    @classmethod
    def of(cls, sample: EmbeddedSample, numbers: Index) -> _Members:
        order = np.argsort(sample.observation, kind="stable")
        ranked = sample.observation[order]
        start = np.searchsorted(ranked, numbers, "left")
        return cls(order, start, np.searchsorted(ranked, numbers, "right") - start)

    def rows(self, g: int) -> Index:
        return self.order[self.start[g] : self.start[g] + self.count[g]]


def _diagonal(kernel: Kernel, X: EmbeddedSample) -> Floats:
    """k(x, x) at each row."""
    if kernel.stationary:
        one = X.rows[:1]
        return np.full(len(X), kernel.paired(one, one)[0])
    blocks = (X.rows[k : k + _BLOCK] for k in range(0, len(X), _BLOCK))
    return np.concatenate([kernel.paired(block, block) for block in blocks])


_BLOCK = 4096  # rows whose counts are multiplied at a time


def draw_counts(
    samples: Sequence[EmbeddedSample], source: int, replicates: int, rng: np.random.Generator
) -> list[NDArray[np.uint8]]:
    """How often each row of each sample is drawn, shape (rows, replicates); observations below `source` are its own."""
    p, u, t = (s.numbers for s in samples)
    drawn = np.zeros((max(int(numbers.max()) for numbers in (p, u, t)) + 1, replicates), np.uint8)
    for numbers in (u, t[t >= source], p[~np.isin(p, u)]):
        drawn[numbers] = _draws(len(numbers), replicates, rng)
    return [drawn[s.observation] for s in samples]


def over_rows(values: Floats, counts: NDArray[np.uint8], of: Callable[[Floats], Floats]) -> Floats:
    """Σ value·of(count) over the rows, for each replicate."""
    blocks = (slice(i, i + _BLOCK) for i in range(0, len(values), _BLOCK))
    total = np.zeros(counts.shape[1])
    for block in blocks:
        total += values[block] @ of(counts[block].astype(np.float64))
    return total


def _draws(n: int, replicates: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """How often each of n is drawn in n draws with replacement, for each replicate: shape (n, replicates)."""
    counts = np.empty((n, replicates), np.uint8)
    for b in range(replicates):
        counts[:, b] = np.bincount(rng.integers(0, n, n), minlength=n) if n else 0
    return counts
