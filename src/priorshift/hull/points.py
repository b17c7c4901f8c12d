"""The points of KM's hull: rows of a source or means of groups of rows, their Gram matrix, and its bandwidth.

The hull of many rows is approximated by few points. The rows of each sample are sorted by how much they look like
positives, ⟨μ_P, φ(x)⟩ against ⟨μ_U, φ(x)⟩, and cut into groups; the points of the hull are the means of the groups. A
mean of rows lies in the hull of the rows; μ_P and μ_U are still weights on the points, so that d(1) = 0; and the mean
of the negatives, where d begins to grow, has weights that depend on how much a row looks like a positive. All
rows enter, and no matrix of rows by rows is stored.

For the bandwidth, squared distances are computed by one matrix product for each block of rows, and are shared by the
median and the five bandwidths. Single precision is enough for these; the Gram matrix is in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import e, log2

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist, pdist

from priorshift.arrays import Floats, Index, Mask
from priorshift.embedding.tiles import kernel_sums
from priorshift.errors import InputError
from priorshift.hull.hull import Hull
from priorshift.io.observations import row_codes
from priorshift.io.sample_size import effective_size
from priorshift.io.scaling import Rows
from priorshift.kernels import Gaussian
from priorshift.problem import Source

_SCORED = 500  # rows of each sample that decide how much a row looks like a positive
_FEWER = 10  # one group in so many is of labelled rows, which the mean of the negatives has no weight on
_ROWS, _COLUMNS = 2048, 64  # about this much of the kernel matrix is computed at a time, to fit a core's cache
_WIDTHS = np.logspace(-1, 1, 5)  # of the median distance
_BLOCK, _WIDE = 128, 1024  # rows and columns of a tile, which a core's own cache holds
_SORTED = 600  # rows up to which all pairs are sorted; with more, this many bracket the median
_BRACKET = np.linspace(0.42, 0.58, 9)  # quantiles that bracket it: four standard errors on each side
_MOST = 4000  # rows that the median distance is computed from at most
_TYPICAL = 100  # rows that give a typical distance
_NOTHING = np.float32(-100)  # exponent of a negligible kernel value; smaller ones are slow to compute with
_LARGEST = float(np.finfo(np.float32).max)
_DIGITS = 1e8  # ratio of squared norms to distances, up to which their difference has single precision
_LOG2_E = log2(e)
_FAR = 500.0  # exponent above which a product is inaccurate, so that the kernel's own tiles are used
RIDGE = 1e-8  # makes faces with repeated rows solvable; 1e-7 to 1e-11 move a prior by less than 0.001


@dataclass(frozen=True, eq=False)
class HullSample:
    """Some rows of a source, with their masses in μ_P and in μ_U."""

    rows: Index  # numbers of the rows in the source
    labeled: Mask  # whether each is a labelled positive
    p: Floats  # mass of each row in μ_P; the sum is 1
    u: Floats  # mass of each row in μ_U; the sum is 1

    @classmethod
    def from_source(cls, source: Source) -> HullSample:
        """Take one row of each set of copies, with the mass of all of them."""
        p, u = np.zeros(len(source.labeled)), np.zeros(len(source.labeled))
        p[source.positive], u[source.population] = source.P.mass, source.U.mass
        rows = np.arange(len(p))
        copied = np.flatnonzero(source.copies > 1)
        if len(copied):
            # labelled and unlabelled copies stay apart: P and U only share rows that are stated to be shared
            sets = 2 * row_codes(source.table.values[copied]) + source.labeled[copied]
            _, first, code = np.unique(sets, return_index=True, return_inverse=True)
            for mass in (p, u):
                total = np.bincount(code.reshape(-1), mass[copied])
                mass[copied] = 0.0
                mass[copied[first]] = total
            rows = np.setdiff1d(rows, np.delete(copied, first))
        return cls(rows, source.labeled[rows], _normalize(p[rows]), _normalize(u[rows]))

    def take(self, at: Index) -> HullSample:
        """Select rows by their position."""
        return HullSample(self.rows[at], self.labeled[at], self.p[at], self.u[at])

    def subsample(self, most: int, rng: np.random.Generator) -> HullSample:
        """Draw at most `most` rows, up to half of them labelled."""
        if len(self.rows) <= most:
            return self
        parts = np.flatnonzero(self.labeled), np.flatnonzero(~self.labeled)
        positives = min(len(parts[0]), max(most // 2, most - len(parts[1])))
        counts = positives, most - positives
        at = np.concatenate([rng.permutation(part)[:count] for part, count in zip(parts, counts, strict=True)])
        # a row represents others of its kind: under censoring, labelled rows are part of the population
        others = np.repeat([len(part) / count for part, count in zip(parts, counts, strict=True)], counts)
        order = np.argsort(at)
        some, others = self.take(at[order]), others[order]
        return HullSample(some.rows, some.labeled, _normalize(some.p * others), _normalize(some.u * others))


def _normalize(counts: Floats) -> Floats:
    """Scale to the sum 1; dividing by the largest first keeps 1/n exact."""
    relative = counts / counts.max()
    return np.asarray(relative / relative.sum())


class RowInfluence:
    """Influence of each row on inner products with μ_P and μ_U; `observation` numbers the rows' observations."""

    def __init__(self, sample: HullSample, observation: Index) -> None:
        self.masses = sample.u, sample.p
        # each sample has its own factor n/(n−1) of a variance
        sizes = [effective_size(mass, observation) for mass in self.masses]
        self.corrections = [np.sqrt(n / max(n - 1, 1)) for n in sizes]

    def on_mean(self, f: Floats, of_population: float, of_positives: float) -> Floats:
        """Compute it for ⟨f, of_population·μ_U + of_positives·μ_P⟩, with f the values ⟨f, φ(x)⟩ at all rows."""
        (u, p), (on_U, on_P) = self.masses, self.corrections
        total = (of_population * on_U) * u * (f - u @ f)  # a row of U moves ⟨f, μ_U⟩ by mass·(f(x) − mean over U)
        total += (of_positives * on_P) * p * (f - p @ f)
        return np.asarray(total)


def group_similar_rows(
    rows: Floats, sample: HullSample, bandwidth: float, count: int, rng: np.random.Generator
) -> Index:
    """Assign rows to at most `count` groups of labelled or of unlabelled rows."""
    means = [_mean_at(rows, mass, bandwidth, rng) for mass in (sample.p, sample.u)]
    score = means[0] / (means[0] + means[1] + 1e-300)
    group, first = np.empty(len(rows), dtype=np.intp), 0
    for mask, parts in ((sample.labeled, max(1, count // _FEWER)), (~sample.labeled, count - count // _FEWER)):
        members = np.flatnonzero(mask)
        ranked = members[np.argsort(score[members], kind="stable")]
        group[ranked] = first + np.arange(len(members)) * min(parts, len(members)) // len(members)
        first += min(parts, len(members))
    return group


def _mean_at(rows: Floats, mass: Floats, bandwidth: float, rng: np.random.Generator) -> Floats:
    """Estimate ⟨μ, φ(x)⟩ at all rows from some of the rows that μ is the mean of."""
    some = np.sort(rng.permutation(np.flatnonzero(mass))[:_SCORED])
    zero, one = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    weights = mass[some] / mass[some].mean()
    all_rows, those = Rows(rows, zero, one), Rows(rows, zero, one, some)
    return kernel_sums(Gaussian(bandwidth), all_rows, those, weights=(None, weights))[0] / len(some)


def build_hull(rows: Floats, p: Floats, u: Floats, group: Index | None, bandwidth: float) -> Hull:
    """Build the hull of the rows, or of the means of their groups, with μ_P and μ_U in it.

    `group` holds the increasing group numbers of the rows; within a group, p and u are proportional.
    """
    if group is None:
        return Hull(gram_matrix(rows, bandwidth), p, u - p)
    first = np.searchsorted(group, np.arange(group[-1] + 2))
    mass = p + u
    share = mass / np.add.reduceat(mass, first[:-1])[group]
    means = sparse.csr_array((share, np.arange(len(group)), first))  # shape (groups, rows)
    at_rows = _kernel_means(rows, means, bandwidth)
    K = np.asarray(means @ at_rows)
    K = (K + K.T) / 2
    K.flat[:: len(K) + 1] += RIDGE * means.power(2).sum(axis=1)  # the ridge of the rows' own matrix
    return Hull(K, np.add.reduceat(p, first[:-1]), np.add.reduceat(u - p, first[:-1]), at_rows)


def _kernel_means(rows: Floats, means: sparse.csr_array, bandwidth: float) -> Floats:
    """Compute ⟨φ(x), mean of a group⟩, shape (rows, groups), from some groups and some rows at a time."""
    blocks, first = KernelBlocks(rows, bandwidth), means.indptr
    count, n = means.shape
    step = max(1, _ROWS * count // n)
    values = np.empty((n, count))
    for k in range(0, count, step):
        groups = slice(k, min(k + step, count))
        at = slice(int(first[groups.start]), int(first[groups.stop]))
        part = means[groups, at]
        for start in range(0, n, _COLUMNS):
            to = slice(start, min(start + _COLUMNS, n))
            kernel = blocks.fill(at, to, np.empty((at.stop - at.start, to.stop - start)))
            values[to, groups] = (part @ kernel).T
    return values


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
    blocks = KernelBlocks(rows, bandwidth)
    K = np.empty((len(rows), len(rows)))
    for at in range(0, len(rows), _BLOCK):
        part = slice(at, at + _BLOCK)
        blocks.fill(part, slice(None), K[part])
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
            "at least half of the pairs of rows are identical; pass a known source_prior, or KM2(bandwidth=…) as one."
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
    if n > _SORTED and (entries := _entries(rows, middle)) is not None:
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
    for _, _, values, times in _squared_distances(rows):
        below += times * np.array([np.count_nonzero(values < limit) for limit in limits])
    cell = int(np.searchsorted(below, ranks[0], side="right"))
    if not 0 < cell < len(limits) or limits[0] == 0:
        return None
    low, high = limits[cell - 1], limits[cell]
    between = [np.repeat(v[(v >= low) & (v < high)], times) for _, _, v, times in _squared_distances(rows)]
    candidates = np.concatenate(between)
    places = [rank - int(below[cell - 1]) for rank in ranks]
    if places[-1] >= len(candidates):
        return None
    return np.asarray(np.partition(candidates, places)[places], dtype=float)


def mean_products(rows: Floats, weights: Floats, widths: Floats) -> Floats:
    """Compute inner products of Σ wᵢφ(xᵢ), for the columns w of the weights, under each bandwidth, to six digits."""
    sums = np.zeros((len(widths), weights.shape[1], weights.shape[1]))
    factors = (-_LOG2_E / 2 / widths**2).astype(np.float32)
    short = weights.astype(np.float32)
    buffer = np.empty((_BLOCK, _WIDE), dtype=np.float32)
    for at, to, squared, times in _squared_distances(rows):
        kernel = buffer.reshape(-1)[: squared.size].reshape(squared.shape)
        for k, factor in enumerate(factors):
            np.multiply(squared, factor, out=kernel)
            np.exp2(np.maximum(kernel, _NOTHING, out=kernel), out=kernel)
            sums[k] += times * (weights[at].T @ (kernel @ short[to]))
    return np.asarray((sums + sums.transpose(0, 2, 1)) / 2)  # what is right of the diagonal, and its mirror image


def _squared_distances(rows: Floats) -> Iterator[tuple[slice, slice, NDArray[np.float32], int]]:
    """Yield the upper half of the matrix, tile by tile: its rows, columns, values and how often it counts.

    First comes the square on the diagonal, then what is right of it, which counts for its mirror image too.
    """
    norms = np.einsum("ij,ij->i", rows, rows)
    typical = float(np.median(pdist(_spread(rows, _TYPICAL), "sqeuclidean")))
    left, right = _with_norms(-2 * rows, rows, norms)
    n, far = len(rows), norms.max() > _DIGITS * typical
    for first in range(0, n, _BLOCK):
        at = slice(first, min(first + _BLOCK, n))
        for to in (at, *(slice(k, min(k + _WIDE, n)) for k in range(at.stop, n, _WIDE))):
            squared = cdist(rows[at], rows[to], "sqeuclidean") if far else np.dot(left[at], right[:, to])
            short = np.clip(squared, 0.0, _LARGEST, out=squared).astype(np.float32)
            yield at, to, short, 1 if to is at else 2


def _spread(rows: Floats, most: int) -> Floats:
    """Select at most `most` rows, evenly spread."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]
