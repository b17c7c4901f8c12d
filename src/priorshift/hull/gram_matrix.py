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
from dataclasses import dataclass, replace
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

_SCORE_ROWS = 500  # rows of each sample from which it is estimated how much a row looks like a positive
_LABELED_GROUPS = 10  # one group in ten is of labelled rows, on which the mean of the negatives has no weight
_ROWS, _COLUMNS = 2048, 64  # about this much of the kernel matrix is computed at a time, to fit a core's cache
_WIDTHS = np.logspace(-1, 1, 5)  # bandwidths that are tried, in units of the median distance
_BLOCK, _WIDE = 128, 1024  # rows and columns of a tile, which a core's own cache holds
_SORTED_ROWS = 600  # rows up to which all pairs are sorted; with more, this many rows give limits around the median
_BRACKET = np.linspace(0.42, 0.58, 9)  # quantiles that bracket it: four standard errors on each side
_MEDIAN_ROWS = 4000  # rows that the median distance is computed from at most
_TYPICAL_ROWS = 100  # rows that give a typical distance
_NOTHING = np.float32(-100)  # exponent of a negligible kernel value; smaller ones are slow to compute with
_LARGEST = float(np.finfo(np.float32).max)
_DIGITS = 1e8  # ratio of squared norms to distances, up to which their difference has single precision
_LOG2_E = log2(e)
_FAR = 500.0  # exponent above which a product is inaccurate, so that the kernel's own tiles are used
RIDGE = 1e-8  # makes faces with repeated rows solvable; 1e-7 to 1e-11 move a prior by less than 0.001


@dataclass(frozen=True, eq=False)
class HullSample:
    """Rows of a source, with their masses in the means μ_P and μ_U."""

    rows: Index  # numbers of the rows in the source
    labeled: Mask  # whether each is a labelled positive
    p: Floats  # mass of each row in μ_P; the sum is 1
    u: Floats  # mass of each row in μ_U; the sum is 1

    @classmethod
    def from_source(cls, source: Source) -> HullSample:
        """Return the distinct rows of a source: one row of each set of copies, with the mass of all of them."""
        p, u = np.zeros(len(source.labeled)), np.zeros(len(source.labeled))  # mass of each row in μ_P and in μ_U
        p[source.positive], u[source.population] = source.P.mass, source.U.mass
        copied = np.flatnonzero(source.copies > 1)
        if not len(copied):
            return cls(np.arange(len(p)), source.labeled, _normalize(p), _normalize(u))
        # labelled and unlabelled copies stay apart: P and U only share rows that are stated to be shared
        copy_sets = 2 * row_codes(source.table.values[copied]) + source.labeled[copied]
        _, first, code = np.unique(copy_sets, return_index=True, return_inverse=True)
        for mass in (p, u):
            total = np.bincount(code.reshape(-1), mass[copied])
            mass[copied] = 0.0
            mass[copied[first]] = total
        # without the other copies, whose mass is zero
        rows = np.setdiff1d(np.arange(len(p)), np.delete(copied, first))
        return cls(rows, source.labeled[rows], _normalize(p[rows]), _normalize(u[rows]))

    def take(self, index: Index) -> HullSample:
        """Return the sample of the rows at these positions; their masses are not rescaled."""
        return HullSample(self.rows[index], self.labeled[index], self.p[index], self.u[index])

    def subsample(self, count: int, rng: np.random.Generator) -> HullSample:
        """Draw `count` rows at random without replacement, up to half of them labelled; all rows, if there are fewer.

        The masses are divided by the sampling fractions of labelled and of unlabelled rows, and scaled to the sum 1.
        """
        if len(self.rows) <= count:
            return self
        labeled, unlabeled = np.flatnonzero(self.labeled), np.flatnonzero(~self.labeled)
        # half of the rows, or more if there are too few unlabelled ones
        labeled_count = min(len(labeled), max(count // 2, count - len(unlabeled)))
        unlabeled_count = count - labeled_count
        index = np.concatenate([rng.permutation(labeled)[:labeled_count], rng.permutation(unlabeled)[:unlabeled_count]])
        # inverse sampling fractions: under censoring, labelled rows are part of the population too
        index.sort()
        by_kind = len(labeled) / labeled_count, len(unlabeled) / unlabeled_count
        weights = np.where(self.labeled[index], *by_kind)
        p, u = _normalize(self.p[index] * weights), _normalize(self.u[index] * weights)
        return HullSample(self.rows[index], self.labeled[index], p, u)

    def draw_parts(self, size: int, rng: np.random.Generator) -> list[HullSample]:
        """Draw two parts of about `size` rows at random, which have no row in common if there are enough rows.

        The share of labelled rows in each part is that in the sample.
        """
        share = min(size / len(self.rows), 1.0)
        indices: list[list[Index]] = [[], []]
        for members in (np.flatnonzero(self.labeled), np.flatnonzero(~self.labeled)):
            order, count = rng.permutation(members), max(2, round(share * len(members)))
            indices[0].append(order[:count])
            indices[1].append(order[-count:])
        parts = []
        for index in map(np.concatenate, indices):
            part = self.take(np.sort(index))
            parts.append(replace(part, p=_normalize(part.p), u=_normalize(part.u)))
        return parts


def _normalize(masses: Floats) -> Floats:
    """Scale the masses of rows to the sum 1, in place; dividing by the largest first keeps 1/n exact."""
    masses /= masses.max()
    masses /= masses.sum()
    return masses


class RowInfluence:
    """Influence of each row on inner products with μ_P and μ_U."""

    def __init__(self, sample: HullSample, observation: Index) -> None:
        """Compute the variance correction √(n/(n−1)) of U and of P, with n the effective number of observations.

        `observation` is the number of each row's observation.
        """
        self.masses = sample.u, sample.p
        sizes = [effective_size(mass, observation) for mass in self.masses]
        self.corrections = [np.sqrt(n / max(n - 1, 1)) for n in sizes]

    def on_mean(self, f: Floats, U_weight: float, P_weight: float) -> Floats:
        """Compute the influence of each row on ⟨f, U_weight·μ_U + P_weight·μ_P⟩; `f` holds ⟨f, φ(x)⟩ at all rows x."""
        (u, p), (U_correction, P_correction) = self.masses, self.corrections
        # the influence of a row of U on ⟨f, μ_U⟩ is mass·(f(x) − mean over U)
        influence = (U_weight * U_correction) * u * (f - u @ f)
        influence += (P_weight * P_correction) * p * (f - p @ f)
        return np.asarray(influence)


def group_similar_rows(
    rows: Floats, sample: HullSample, bandwidth: float, count: int, rng: np.random.Generator
) -> Index:
    """Return the group number of each row: at most `count` groups of similar rows, of labelled or of unlabelled rows.

    The rows of each kind are sorted by how much they look like positives and cut into groups of nearly equal size.
    """
    P_mean, U_mean = _mean_at(rows, sample.p, bandwidth, rng), _mean_at(rows, sample.u, bandwidth, rng)
    score = P_mean / (P_mean + U_mean + 1e-300)  # how much a row looks like a positive, 0 to 1
    group, first = np.empty(len(rows), dtype=np.intp), 0
    labeled_groups = count // _LABELED_GROUPS
    for mask, groups in ((sample.labeled, max(1, labeled_groups)), (~sample.labeled, count - labeled_groups)):
        members = np.flatnonzero(mask)
        ranked = members[np.argsort(score[members], kind="stable")]
        groups = min(groups, len(members))
        group[ranked] = first + np.arange(len(members)) * groups // len(members)
        first += groups
    return group


def _mean_at(rows: Floats, mass: Floats, bandwidth: float, rng: np.random.Generator) -> Floats:
    """Estimate ⟨μ, φ(x)⟩ at all rows x, for the mean μ = Σ mass·φ, from a random sample of the rows with mass."""
    drawn = np.sort(rng.permutation(np.flatnonzero(mass))[:_SCORE_ROWS])
    shift, factor = np.zeros(rows.shape[1]), np.ones(rows.shape[1])  # the rows are scaled already
    all_rows, drawn_rows = Rows(rows, shift, factor), Rows(rows, shift, factor, drawn)
    weights = mass[drawn] / mass[drawn].mean()
    return kernel_sums(Gaussian(bandwidth), all_rows, drawn_rows, weights=(None, weights))[0] / len(drawn)


def build_hull(
    rows: Floats, p: Floats, u: Floats, group: Index | None, bandwidth: float, *, at_rows: bool = True
) -> Hull:
    """Build the convex hull of the rows, or of the means of their groups, under a Gaussian kernel.

    `p` and `u` are the masses of the rows in μ_P and μ_U. `group` holds the group number of each row, in increasing
    order; within a group, p and u are proportional. None makes each row a point. Without `at_rows`, the values of
    functions at the rows cannot be computed from groups, which saves memory.
    """
    if group is None:
        return Hull(gram_matrix(rows, bandwidth), p, u - p)
    first = np.searchsorted(group, np.arange(group[-1] + 2))  # first row of each group, and the end of the last
    mass = p + u
    share = mass / np.add.reduceat(mass, first[:-1])[group]  # of each row in its group
    means = sparse.csr_array((share, np.arange(len(group)), first))  # shape (groups, rows)
    K, values = _kernel_means(rows, means, bandwidth, at_rows=at_rows)
    K = (K + K.T) / 2
    K.flat[:: len(K) + 1] += RIDGE * means.power(2).sum(axis=1)  # the ridge of the rows' own matrix
    return Hull(K, np.add.reduceat(p, first[:-1]), np.add.reduceat(u - p, first[:-1]), values)


def _kernel_means(
    rows: Floats, means: sparse.csr_array, bandwidth: float, *, at_rows: bool
) -> tuple[Floats, Floats | None]:
    """Compute the inner products of the means of groups, and of all rows with them, in blocks that fit the cache.

    `means` has shape (groups, rows); its line for a group holds the shares of its rows, which are consecutive. The
    products with the rows, of shape (rows, groups), are None unless `at_rows`.
    """
    blocks = KernelBlocks(rows, bandwidth)
    first = means.indptr  # first row of each group, and the end of the last
    count, n = means.shape
    step = max(1, _ROWS * count // n)  # groups in a block, about _ROWS rows
    products, values = np.empty((count, count)), np.empty((n, count)) if at_rows else None
    for k in range(0, count, step):
        groups = slice(k, min(k + step, count))
        members = slice(int(first[groups.start]), int(first[groups.stop]))  # rows of these groups
        shares, part = means[groups, members], np.empty((n, groups.stop - k))
        for start in range(0, n, _COLUMNS):
            columns = slice(start, min(start + _COLUMNS, n))
            kernel = blocks.fill(members, columns, np.empty((members.stop - members.start, columns.stop - start)))
            part[columns] = (shares @ kernel).T
        products[:, groups] = means @ part
        if values is not None:
            values[:, groups] = part
    return products, values


class KernelBlocks:
    """The Gaussian kernel matrix of all rows, computed block by block on demand."""

    def __init__(self, rows: Floats, bandwidth: float) -> None:
        """Prepare two factors whose product is the exponent x·y − ‖x‖²/2 − ‖y‖²/2 of k(x, y) = 2^exponent.

        x and y are rows times √(log₂e)/bandwidth. There are no factors where rows are far from the origin.
        """
        self.rows, self.kernel = rows, Gaussian(bandwidth)
        scaled = rows * (np.sqrt(_LOG2_E) / bandwidth)
        half_norms = np.einsum("ij,ij->i", scaled, scaled) / 2
        # far from the origin the sum loses digits, so the kernel computes its blocks itself
        self.factors = None if half_norms.max() > _FAR else _factor_pairwise(scaled, scaled, -half_norms)

    def fill(self, rows: slice, columns: slice, block: Floats) -> Floats:
        """Fill `block` with k(x, y) for the rows x numbered by `rows` and y numbered by `columns`, and return it."""
        if self.factors is not None:  # k(x, y) = 2^exponent, and the product of the factors holds the exponents
            left, right = self.factors
            exponents = np.dot(left[rows], right[:, columns], out=block)
            return np.asarray(np.exp2(exponents, out=block))
        x, y = (self.kernel.strip(self.rows[part], block.dtype) for part in (rows, columns))
        lacks_weights = self.kernel.tile(x, y, block)  # then the block holds E, with k(x_i, y_j) = w_i E_ij w_j
        if lacks_weights:
            block *= x.weights[:, None]
            block *= y.weights
        return block


def gram_matrix(rows: Floats, bandwidth: float) -> Floats:
    """Compute the Gaussian kernel matrix of all rows, with a ridge on its diagonal."""
    blocks = KernelBlocks(rows, bandwidth)
    K = np.empty((len(rows), len(rows)))
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        blocks.fill(block, slice(None), K[block])
    K.flat[:: len(K) + 1] = 1 + RIDGE  # the diagonal
    return K


def _factor_pairwise(X: Floats, Y: Floats, offsets: Floats) -> tuple[Floats, Floats]:
    """Return A and B with (AB)_ij = X_i·Y_j + offsets_i + offsets_j, such as all squared distances.

    Row i of X and row i of Y belong to the same data row, which has one offset.
    """
    ones = np.ones(len(offsets))
    return np.column_stack([X, offsets, ones]), np.asfortranarray(np.column_stack([Y, ones, offsets])).T


def search_bandwidth(rows: Floats, p: Floats, u: Floats, *, unbiased: bool = False) -> float:
    """Return the bandwidth, one of five multiples of the median distance, under which ‖μ_U − μ_P‖ is largest.

    `p` and `u` are the masses of the rows in μ_P and μ_U. With few rows the noise of the means favours a narrow kernel;
    `unbiased` corrects that by leaving out the pairs of a row with itself.
    """
    median = median_distance(rows)
    if median == 0:
        raise InputError(
            "at least half of the pairs of rows are identical; pass a known source_prior, or KM2(bandwidth=…) as one."
        )
    scaled = rows / median
    if unbiased:
        weights = np.stack([p, u], axis=1)
        diagonal = weights.T @ weights  # pairs of a row with itself, whose kernel is 1
        products = (mean_products(scaled, weights, _WIDTHS) - diagonal) / (1 - diagonal)
        separations = products[:, 0, 0] + products[:, 1, 1] - 2 * products[:, 0, 1]
    else:
        separations = mean_products(scaled, (u - p)[:, None], _WIDTHS)[:, 0, 0]
    return float(_WIDTHS[int(np.argmax(separations))] * median)


def median_distance(rows: Floats) -> float:
    """Compute the median of the n × n matrix of distances of at most 4000 rows, with the n zeros on its diagonal."""
    rows = _evenly_spaced(rows, _MEDIAN_ROWS)
    n = len(rows)
    ranks = [(n * n - 1) // 2, n * n // 2]  # of the two middle entries, from 0; the same where n² is odd
    if n > _SORTED_ROWS:
        entries = _middle_entries(rows, ranks)
        if entries is not None:
            return float(np.sqrt(entries).mean())
    pairs = pdist(rows, "sqeuclidean")
    # the n zeros come first, then each pair twice: the entry of rank k is the pair of rank (k − n) // 2
    pairs.partition([max(k - n, 0) // 2 for k in ranks])
    return float(np.mean([np.sqrt(pairs[(k - n) // 2]) if k >= n else 0.0 for k in ranks]))


def _middle_entries(rows: Floats, ranks: list[int]) -> Floats | None:
    """Find the two entries with these ranks in the sorted matrix of squared distances of all rows, to seven digits.

    The ranks are neighbours near the middle. A subsample gives limits around them: entries below each limit are
    counted, and only those between two neighbouring limits are sorted. None where the entries are not between two
    neighbouring limits, or the lowest limit is zero.
    """
    sample = pdist(_evenly_spaced(rows, _SORTED_ROWS), "sqeuclidean")
    limits = np.quantile(sample, _BRACKET).clip(0, _LARGEST).astype(np.float32)
    below = np.zeros(len(limits), dtype=np.intp)
    for _, _, values, times in _squared_distances(rows):
        below += times * np.array([np.count_nonzero(values < limit) for limit in limits])
    cell = int(np.searchsorted(below, ranks[0], side="right"))  # the first limit above the entry
    if not 0 < cell < len(limits) or limits[0] == 0:
        return None
    low, high = limits[cell - 1], limits[cell]
    between = []
    for _, _, values, times in _squared_distances(rows):
        between.append(np.repeat(values[(values >= low) & (values < high)], times))
    candidates = np.concatenate(between)
    positions = [rank - int(below[cell - 1]) for rank in ranks]
    if positions[-1] >= len(candidates):  # the second one is beyond the next limit
        return None
    return np.asarray(np.partition(candidates, positions)[positions], dtype=float)


def mean_products(rows: Floats, weights: Floats, widths: Floats) -> Floats:
    """Compute the inner products ⟨μ_j, μ_k⟩ of means μ_j = Σ_i w_ij φ(x_i) under Gaussian kernels, to six digits.

    The `weights` w have shape (rows, means). Returns shape (bandwidths, means, means), for the bandwidths `widths`.
    """
    sums = np.zeros((len(widths), weights.shape[1], weights.shape[1]))
    factors = (-_LOG2_E / 2 / widths**2).astype(np.float32)  # exp(−d²/2w²) = 2^(factor·d²)
    single = weights.astype(np.float32)
    buffer = np.empty((_BLOCK, _WIDE), dtype=np.float32)
    for row_block, columns, squared, times in _squared_distances(rows):
        kernel = buffer.reshape(-1)[: squared.size].reshape(squared.shape)
        for k, factor in enumerate(factors):
            np.multiply(squared, factor, out=kernel)
            np.exp2(np.maximum(kernel, _NOTHING, out=kernel), out=kernel)
            sums[k] += times * (weights[row_block].T @ (kernel @ single[columns]))
    return np.asarray((sums + sums.transpose(0, 2, 1)) / 2)  # tiles right of the diagonal, and their mirror images


def _squared_distances(rows: Floats) -> Iterator[tuple[slice, slice, NDArray[np.float32], int]]:
    """Yield tiles of the upper half of the matrix of squared distances between all rows, in single precision.

    Each is two slices, of its rows and columns, its values, and how often it counts. For each block of rows the square
    on the diagonal comes first and counts once; the tiles to the right of it count twice, for their mirror images too.
    """
    norms = np.einsum("ij,ij->i", rows, rows)
    typical = float(np.median(pdist(_evenly_spaced(rows, _TYPICAL_ROWS), "sqeuclidean")))
    left, right = _factor_pairwise(-2 * rows, rows, norms)
    n, is_far = len(rows), norms.max() > _DIGITS * typical  # far from the origin, ‖x‖² + ‖y‖² − 2x·y loses digits
    for first in range(0, n, _BLOCK):
        block = slice(first, min(first + _BLOCK, n))
        right_tiles = [slice(k, min(k + _WIDE, n)) for k in range(block.stop, n, _WIDE)]
        for columns in [block, *right_tiles]:
            if is_far:
                squared = cdist(rows[block], rows[columns], "sqeuclidean")
            else:
                squared = np.dot(left[block], right[:, columns])
            single = np.clip(squared, 0.0, _LARGEST, out=squared).astype(np.float32)
            yield block, columns, single, 1 if columns is block else 2


def _evenly_spaced(rows: Floats, count: int) -> Floats:
    """Return at most `count` of the rows, evenly spaced from the first to the last."""
    return rows if len(rows) <= count else rows[np.linspace(0, len(rows) - 1, count).astype(int)]
