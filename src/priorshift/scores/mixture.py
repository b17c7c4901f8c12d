"""Conformal p-values, and a mixture model of them, fitted by maximum likelihood.

The p-value v of a row is the rank of its score among those of the positives: uniform for positives, whatever the score
is, and near 0 for negatives. So v has the density π + (1−π)g in the population and π′ + (1−π′)g in the target, with the
same g: π is the "proportion of true nulls" of multiple testing. Irreducibility (some scores occur only among positives)
means g(1) = 0. Here g = Σ w_k Beta(1, k), k ≥ 3, which is decreasing, convex and zero at 1; π and w maximise the
likelihood of binned values, by EM, which is concave in (π, (1−π)w).

All functions work on one histogram (bins,) or on many (…, bins).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Scores


def p_values(
    positive: Scores,
    scores: Scores,
    mass: Floats | None = None,
    size: float | None = None,
    *,
    in_order: bool = False,
    out: Floats | None = None,
) -> Floats:
    """Return the p-value (rank + ½)/(m + 1) of each score, its rank among the scores of m positives; ties count half.

    `positive` are the scores of the positives, `scores` those to be ranked, both one-dimensional. If positives have a
    `mass`, which sums to 1, m is their effective `size`, and a rank is m times the mass below. `in_order` means that
    the positives are already sorted; it is for positives without a mass. The p-values are written to `out`, if given.
    """
    if positive.dtype != scores.dtype:  # one of single precision
        positive, scores = positive.astype(np.float64, copy=False), scores.astype(np.float64, copy=False)
    if mass is None:
        ranked, m = positive if in_order else np.sort(positive), float(len(positive))
    else:
        order = np.argsort(positive, kind="stable")
        ranked, m = positive[order], len(positive) if size is None else size
    cumulative = None if mass is None else m * np.concatenate([[0.0], np.cumsum(mass[order])])
    count_below = _counter(ranked, len(scores))
    values = np.empty(len(scores)) if out is None else out
    for start in range(0, len(scores), _BLOCK):  # no more is in memory than a block
        block, value = scores[start : start + _BLOCK], values[start : start + _BLOCK]
        below = count_below(block)
        not_above = below.copy()  # number of positives not above each score
        # few scores are tied with a positive, and fewer with two, so only these are searched again
        tied = np.flatnonzero(ranked[np.minimum(below, len(ranked) - 1)] == block)  # −1 avoids an index beyond the last
        not_above[tied] += 1
        tied = tied[ranked[np.minimum(not_above[tied], len(ranked) - 1)] == block[tied]]
        not_above[tied] = np.searchsorted(ranked, block[tied], "right")
        if cumulative is None:
            np.divide(below + not_above, 2, out=value)
        else:
            np.divide(cumulative[below] + cumulative[not_above], 2, out=value)
    values += 0.5
    values /= m + 1
    return values


_FEW_SCORES = 10_000  # scores up to which a binary search is fast
_CELLS_PER_POSITIVE = 4
_MOST_CELLS = 2**20  # more of them take memory, but hardly less time
_STEPS = 4  # positives of a cell that are compared one by one
_BLOCK = 2**16  # scores processed together
_RANGES = (1e-100, 1e100)  # ranges of scores that are divided into cells


def _counter(ranked: Scores, total: int) -> Callable[[Scores], NDArray[np.integer[Any]]]:
    """Return a function that counts the positives below each score, as ``np.searchsorted(ranked, scores)`` does.

    `ranked` is sorted; `total` is the number of scores in all calls. Many scores are assigned to cells of equal width,
    most of which have few positives or none: this is several times as fast as a binary search.
    """
    low, high = float(ranked[0]), float(ranked[-1])
    if total <= _FEW_SCORES or not _RANGES[0] < high - low < _RANGES[1]:
        return lambda scores: np.searchsorted(ranked, scores)
    cells = min(_CELLS_PER_POSITIVE * len(ranked), _MOST_CELLS)

    def cell_of(values: Scores) -> NDArray[np.int32]:
        """Return the cell of each value, which never decreases with the value."""
        with np.errstate(over="ignore"):
            return np.clip((values - low) * (cells / (high - low)), 0, cells - 1).astype(np.int32)

    first = np.zeros(cells + 1, dtype=np.int32)  # number of positives in lower cells
    for start in range(0, len(ranked), _BLOCK):
        cell = cell_of(ranked[start : start + _BLOCK])  # in order, so from the first cell to the last
        counts = np.bincount(cell - cell[0])
        first[1 + cell[0] : 1 + cell[0] + len(counts)] += counts.astype(np.int32)
    np.cumsum(first, out=first)

    def count(scores: Scores) -> NDArray[np.int32]:
        """Count the positives below each score."""
        cell = cell_of(scores)
        below, end = first[cell], first[cell + 1]
        unclear = np.flatnonzero(below < end)  # scores whose cell has positives
        for _ in range(_STEPS):
            unclear = unclear[ranked[below[unclear]] < scores[unclear]]
            below[unclear] += 1
            unclear = unclear[below[unclear] < end[unclear]]
        below[unclear] = np.searchsorted(ranked, scores[unclear])
        return below

    return count


Bins = NDArray[np.uint8]  # bins of p-values

BINS = 200
_ORDERS = np.array([3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256])  # k of the components Beta(1, k)
_EDGES = np.linspace(0, 1, BINS + 1)
_BETA = BINS * np.diff(1 - (1 - _EDGES[:, None]) ** _ORDERS, axis=0)  # mean density, shape (bins, components)
ITERATIONS = 400
_LEAST = 1e-12  # smallest density g, so that no bin has probability 0
_ENDS = (1e-4, 1 - 1e-4)  # range of π, since EM cannot leave 0 and 1


def bins(values: Floats) -> Bins:
    """Return the bin of each p-value, 0 to BINS − 1."""
    numbers = np.empty(values.shape, dtype=np.uint8)
    np.multiply(values, BINS, out=numbers, casting="unsafe")  # cuts off to whole numbers
    return np.minimum(numbers, BINS - 1, out=numbers)


def histogram(values: Floats, weights: NDArray[Any] | None = None) -> Floats:
    """Count p-values in BINS bins of [0, 1]; `weights` of the rows count instead of 1, if they are given."""
    return np.bincount(bins(values), weights, BINS).astype(float)


def density(weights: Floats) -> Floats:
    """Return the density g = Σ w_k Beta(1, k) of negatives in each bin, for weights w of shape (…, components)."""
    return np.asarray(weights @ _BETA.T)


def fit_one(counts: Floats, iterations: int = ITERATIONS) -> tuple[Floats, Floats]:
    """Fit the mixture π + (1−π)g, g = Σ w_k Beta(1, k), to each histogram by maximum likelihood (EM).

    `counts` of p-values have shape (…, bins). Returns π, shape (…), and w, shape (…, components).
    """
    shape, n = counts.shape[:-1], counts.sum(axis=-1)
    pi, w = np.full(shape, 0.5), np.full((*shape, len(_ORDERS)), 1 / len(_ORDERS))
    for _ in range(iterations):
        mixed = np.maximum(density(w), _LEAST) * (1 - pi)[..., None]
        mixed += pi[..., None]  # density of the mixture
        counts_over_density = counts / mixed
        expected = w * (counts_over_density @ _BETA)  # number of rows of each component, up to the factor 1 − π
        total = expected.sum(axis=-1, keepdims=True)
        w = np.where(total > 0, expected / np.where(total > 0, total, 1.0), w)  # unchanged if no negatives are left
        pi = np.clip(pi * counts_over_density.sum(axis=-1) / n, *_ENDS)  # share of positives, whose density is 1
    return pi, w
