"""The Gram matrix of KM: the median distance, the search for the bandwidth, and the matrix itself.

Squared distances are computed by one matrix product for each block of rows, and are shared by the median and the five
bandwidths. Single precision is enough for these; the matrix itself is in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import e, log2
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.kernels import Gaussian

_WIDTHS = np.logspace(-1, 1, 5)  # of the median distance
_BLOCK, _WIDE = 128, 1024  # rows and columns of a tile, which a core's own cache holds
_SORTED = 600  # rows up to which all pairs are sorted; of more, so many bracket the median
_BRACKET = np.linspace(0.42, 0.58, 9)  # quantiles that bracket it: four standard errors on each side
_MOST = 4000  # rows that the median distance is computed from at most
_TYPICAL = 100  # rows that give a typical distance
_NOTHING = np.float32(-100)  # exponent of a negligible kernel value; smaller ones are slow to compute with
_LARGEST = float(np.finfo(np.float32).max)
_DIGITS = 1e8  # ratio of squared norms to distances, up to which their difference has single precision
_LOG2_E = log2(e)
_FAR = 500.0  # exponent above which a product is inaccurate, so that the kernel's own tiles are used
RIDGE = 1e-8  # keeps faces with repeated rows solvable; 1e-7 to 1e-11 move a prior by less than 0.001


class KernelBlocks:
    """The Gaussian kernel matrix of all rows, computed block by block on demand."""

    def __init__(self, rows: Floats, bandwidth: float) -> None:
        self.rows, self.kernel = rows, Gaussian(bandwidth)
        scaled = rows * (np.sqrt(_LOG2_E) / bandwidth)
        half = np.einsum("ij,ij->i", scaled, scaled) / 2
        self.factors = None if half.max() > _FAR else _with_norms(scaled, scaled, -half)

    def fill(self, at: slice, to: slice, block: Floats) -> Floats:
        """Fill a block with the kernel of the rows `at` and the rows `to`, and return it."""
        if self.factors is not None:
            left, right = self.factors
            return np.asarray(np.exp2(np.dot(left[at], right[:, to], out=block), out=block))
        A, B = (self.kernel.strip(self.rows[part], block.dtype) for part in (at, to))
        if self.kernel.tile(A, B, block):
            block *= A.weights[:, None]
            block *= B.weights
        return block


def gram_matrix(rows: Floats, bandwidth: float) -> Floats:
    """Compute the Gaussian kernel matrix of all rows, with a ridge on its diagonal."""
    blocks, every = KernelBlocks(rows, bandwidth), slice(None)
    K = np.empty((len(rows), len(rows)))
    for at in range(0, len(rows), _BLOCK):
        part = slice(at, at + _BLOCK)
        blocks.fill(part, every, K[part])
    K.flat[:: len(K) + 1] = 1 + RIDGE
    return K


def _with_norms(X: Floats, Y: Floats, norms: Floats) -> tuple[Floats, Floats]:
    """Return two matrices whose product is x·y + norm(x) + norm(y)."""
    one = np.ones(len(norms))
    return np.column_stack([X, norms, one]), np.asfortranarray(np.column_stack([Y, one, norms])).T


def search_bandwidth(rows: Floats, p: Floats, u: Floats, *, unbiased: bool = False) -> float:
    """Find the bandwidth, of five multiples of the median distance, under which ‖μ_U − μ_P‖ is largest.

    `p` and `u` are the masses of the rows in the means. With few rows the noise of the means favours a narrow kernel;
    `unbiased` leaves out the pairs of a row with itself.
    """
    middle = median_distance(rows)
    if middle == 0:
        raise InputError(
            "at least half of the pairs of rows are identical, so KM finds no bandwidth; pass a known source_prior, or "
            "KM2(bandwidth=…) as source_prior."
        )
    scaled = rows / middle
    if unbiased:
        weights = np.stack([p, u], axis=1)
        themselves = weights.T @ weights
        products = (mean_products(scaled, weights, _WIDTHS) - themselves) / (1 - themselves)
        separations = products[:, 0, 0] + products[:, 1, 1] - 2 * products[:, 0, 1]
    else:
        separations = mean_products(scaled, (u - p)[:, None], _WIDTHS)[:, 0, 0]
    return float(_WIDTHS[int(np.argmax(separations))] * middle)


def median_distance(rows: Floats) -> float:
    """Compute the median of the n × n matrix of distances of at most 4000 rows, with the n zeros on its diagonal."""
    rows = _spread(rows, _MOST)
    n = len(rows)
    middle = [(n * n - 1) // 2, n * n // 2]  # the same where n² is odd
    if n > _SORTED:
        entries = _entries(rows, middle)
        if entries is not None:
            return float(np.sqrt(entries).mean())
    pairs = pdist(rows, "sqeuclidean")
    pairs.partition([max(k - n, 0) // 2 for k in middle])
    return float(np.mean([np.sqrt(pairs[(k - n) // 2]) if k >= n else 0.0 for k in middle]))


def _entries(rows: Floats, ranks: list[int]) -> Floats | None:
    """Find entries of the matrix of squared distances by their ranks, near the middle and to seven digits.

    Some rows give limits around them: entries below are counted, and only those between two limits are sorted.
    None where the entries are not between the limits, or zero.
    """
    limits = np.quantile(pdist(_spread(rows, _SORTED), "sqeuclidean"), _BRACKET).clip(0, _LARGEST).astype(np.float32)
    below = np.zeros(len(limits), dtype=np.intp)
    for tile in _squared_distances(rows):
        below += tile.times * np.array([np.count_nonzero(tile.values < limit) for limit in limits])
    cell = int(np.searchsorted(below, ranks[0], side="right"))
    if not 0 < cell < len(limits) or limits[0] == 0:
        return None
    low, high = limits[cell - 1], limits[cell]
    between = [np.repeat(v[(v >= low) & (v < high)], times) for _, _, v, times in _squared_distances(rows)]
    values = np.concatenate(between)
    places = [rank - int(below[cell - 1]) for rank in ranks]
    if places[-1] >= len(values):
        return None
    return np.asarray(np.partition(values, places)[places], dtype=float)


def mean_products(rows: Floats, weights: Floats, widths: Floats) -> Floats:
    """Compute inner products of Σ wᵢφ(xᵢ), for the columns w of the weights, under each bandwidth, to six digits."""
    sums = np.zeros((len(widths), weights.shape[1], weights.shape[1]))
    factors = (-_LOG2_E / 2 / widths**2).astype(np.float32)
    short = weights.astype(np.float32)
    kernel = np.empty((_BLOCK, _WIDE), dtype=np.float32)
    for tile in _squared_distances(rows):
        values = kernel.reshape(-1)[: tile.values.size].reshape(tile.values.shape)
        for k, factor in enumerate(factors):
            np.multiply(tile.values, factor, out=values)
            np.exp2(np.maximum(values, _NOTHING, out=values), out=values)
            sums[k] += tile.times * (weights[tile.at].T @ (values @ short[tile.to]))
    return np.asarray((sums + sums.transpose(0, 2, 1)) / 2)  # what is right of the diagonal, and its mirror image


class _Tile(NamedTuple):
    """Squared distances of the rows `at` and `to`; off the diagonal they also count for their mirror image."""

    at: slice
    to: slice
    values: NDArray[np.float32]
    times: int


def _squared_distances(rows: Floats) -> Iterator[_Tile]:
    """Yield the upper half of the matrix, tile by tile: first the square on the diagonal, then what is right of it."""
    norms = np.einsum("ij,ij->i", rows, rows)
    typical = float(np.median(pdist(_spread(rows, _TYPICAL), "sqeuclidean")))
    left, right = _with_norms(-2 * rows, rows, norms)
    n, far = len(rows), norms.max() > _DIGITS * typical
    for first in range(0, n, _BLOCK):
        at = slice(first, min(first + _BLOCK, n))
        for to in (at, *(slice(k, min(k + _WIDE, n)) for k in range(at.stop, n, _WIDE))):
            squared = cdist(rows[at], rows[to], "sqeuclidean") if far else np.dot(left[at], right[:, to])
            short = np.clip(squared, 0.0, _LARGEST, out=squared).astype(np.float32)
            yield _Tile(at, to, short, 1 if to is at else 2)


def _spread(rows: Floats, most: int) -> Floats:
    """Select at most `most` rows, evenly spread."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]
