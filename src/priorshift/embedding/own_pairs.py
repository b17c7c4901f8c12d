"""Pairs of two rows of one observation, which an unbiased statistic leaves out: their sums, and what they count.

Of a row alone in its observation it is the pair with itself, the diagonal; of a shared row its pair in P and U; of a
group of g rows all g² pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.embedding.feature_sums import feature_mean, feature_values
from priorshift.embedding.random_features import RandomFeatures
from priorshift.embedding.sample import Sample
from priorshift.embedding.tiles import DOUBLE, kernel_sums
from priorshift.kernels import Kernel

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


def own_pairs(kernel: Kernel, X: Sample, Y: Sample, dtype: np.dtype[Any] = DOUBLE) -> tuple[OwnPairs, OwnPairs] | None:
    """Of X in Y and of Y in X; None where they have no observation in common."""
    same = X is Y
    if same and X.is_apart:
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


def _all_pairs(kernel: Kernel, X: Sample, Y: Sample, same: bool, dtype: np.dtype[Any]) -> tuple[Floats, Floats]:
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
    def of(cls, sample: Sample, numbers: Index) -> _Members:
        order = np.argsort(sample.observation, kind="stable")
        ranked = sample.observation[order]
        start = np.searchsorted(ranked, numbers, "left")
        return cls(order, start, np.searchsorted(ranked, numbers, "right") - start)

    def rows(self, g: int) -> Index:
        return self.order[self.start[g] : self.start[g] + self.count[g]]


def _diagonal(kernel: Kernel, X: Sample) -> Floats:
    """k(x, x) at each row."""
    if kernel.stationary:
        one = X.rows[:1]
        return np.full(len(X), kernel.paired(one, one)[0])
    blocks = (X.rows[k : k + _BLOCK] for k in range(0, len(X), _BLOCK))
    return np.concatenate([kernel.paired(block, block) for block in blocks])
