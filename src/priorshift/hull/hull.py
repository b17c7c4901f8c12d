"""The convex hull of rows in the kernel's feature space: its points, its distance to a moving point, row influences.

The points are φ(x_1), …, φ(x_N), with Gram matrix K. The moving point is u(λ) = λμ_U + (1−λ)μ_P, that is λa + p in
weights on the points, and d(λ) is its distance to the hull: d² = min (u−v)ᵀK(u−v) over the simplex of weights v.

The hull of many rows is approximated by few points. The rows of each sample are sorted by how much they look like
positives, ⟨μ_P, φ(x)⟩ against ⟨μ_U, φ(x)⟩, and cut into groups; the points of the hull are the means of the groups. A
mean of rows lies in the hull of the rows; μ_P and μ_U are still weights on the points, so that d(1) = 0; and the mean
of the negatives, where d begins to grow, has weights that depend on how much a row looks like a positive. All
rows enter, and no matrix of rows by rows is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import sparse

from priorshift.arrays import Floats, Index, Mask
from priorshift.embedding.tiles import kernel_sums
from priorshift.hull.kernel_matrix import RIDGE, KernelBlocks, gram_matrix
from priorshift.hull.solver import HullProjection, LineProducts, NearestPoint, symmetric_product
from priorshift.io.observations import row_codes
from priorshift.io.scaling import Rows
from priorshift.io.weights import effective_size
from priorshift.kernels import Gaussian
from priorshift.problem import Source

_COARSEST = 100  # points; restricting the search to fewer would not pay
_COARSE_GAP = 1e-3  # of a coarse search, relative to d²
_ROUNDS = 8  # searches on the points of lowest gradient, before all points are used
_SCORED = 500  # rows of each sample that decide how much a row looks like a positive
_FEWER = 10  # one group in so many is of labelled rows, which the mean of the negatives has no weight on
_ROWS, _COLUMNS = 2048, 64  # about so many of the kernel's matrix are computed at a time, to fit a core's cache


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
        p[source.positive], u[source.population] = source.positive_mass, source.population_mass
        rows = np.arange(len(p))
        copied = np.flatnonzero(source.copies > 1)
        if len(copied):
            # labelled and unlabelled copies stay apart: P and U only share rows that are stated to be shared
            sets = 2 * row_codes(source.table.values[copied]) + source.labeled[copied]
            _, first, of = np.unique(sets, return_index=True, return_inverse=True)
            for mass in (p, u):
                total = np.bincount(of.reshape(-1), mass[copied])
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


class Hull:
    """The hull of all points, and the line through μ_P and μ_U.

    K is the positive definite Gram matrix of the points; p and a are the weights of μ_P and of μ_U − μ_P on them. Where
    the points are not the rows, `at_rows` holds ⟨φ(x), point⟩, of shape (rows, points).
    """

    def __init__(self, K: Floats, p: Floats, a: Floats, at_rows: Floats | None = None) -> None:
        self.K, self.p, self.a, self.at_rows = K, p, a, at_rows
        self.Ka, self.Kp = K @ a, K @ p
        self.means = LineProducts(float(a @ self.Ka), float(a @ self.Kp), float(p @ self.Kp))
        self.whole = HullProjection(K, np.stack([self.Ka, self.Kp, np.ones(len(K))], axis=1), self.means, (a, p))
        self.first = (p + a) > 0  # where μ_U has weight: the face that is right at λ = 1

    @property
    def separation(self) -> float:
        """‖a‖, the slope that d(λ) approaches."""
        return sqrt(max(self.means.aa, 0.0))

    def values(self, weights: Floats) -> Floats:
        """Compute ⟨f, φ(x)⟩ at all rows, with f a combination of the points."""
        return symmetric_product(self.K, weights) if self.at_rows is None else self.at_rows @ weights

    def residual(self, at: NearestPoint) -> Floats:
        """Compute ⟨w, φ(x)⟩ at all rows, w = u − v."""
        return self.values(at.ratio * self.a + self.p - at.weights)

    def orthogonal(self, at: NearestPoint) -> Floats:
        """Compute ⟨Πa, φ(x)⟩ at all rows, with Π the projection orthogonal to the face."""
        return self.values(self.a - at.derivative)

    def project(self, ratio: float, *, tolerance: float = 2e-4, start: Mask | None = None) -> NearestPoint:
        """Find the nearest point of the hull to u(`ratio`), with a gap of at most tolerance·d² and rounding."""
        return self.whole.project(ratio, self.first if start is None else start, tolerance)

    def find_slope(self, slope: float, *, most: float = 100.0, tolerance: float | None = None) -> NearestPoint:
        """Find the λ between 1 and `most` at which d′ passes `slope`; `most` where it never does.

        Coarse to fine: v is first restricted to fixed random subsets of the points, each search starting from the last
        one's λ and face; then to the points of lowest gradient, until no other point has a lower one. Without a
        `tolerance` for the gap, it is the one that makes 1 − 1/λ exact to 1e-4.
        """
        N = len(self.K)
        ratio, v = 1.3, np.maximum(self.p + self.a, 0.0)
        order = np.random.default_rng(0).permutation(N)  # any order will do
        for size in (N // 27, N // 9):
            points = np.sort(order[:size])
            if size < _COARSEST or not v[points].any():
                continue
            part = self.whole.restrict(points).find_slope(slope, ratio, v[points] > 0, most, _COARSE_GAP)
            ratio, v = part.ratio, np.zeros(N)
            v[points] = part.weights
        for _ in range(_ROUNDS if N >= 9 * _COARSEST else 0):
            size = max(N // 4, 2 * int(np.count_nonzero(v)))
            if 2 * size > N:
                break
            gradient = self.whole.gradient(ratio, v)
            points = np.union1d(np.argpartition(gradient, size)[:size], np.flatnonzero(v))
            part = self.whole.restrict(points).find_slope(slope, ratio, v[points] > 0, most, tolerance)
            nearest = self._extend(part, points, tolerance)
            if nearest.converged:
                return nearest
            ratio, v = nearest.ratio, nearest.weights
        return self.whole.find_slope(slope, ratio, v > 0, most, tolerance)

    def _extend(self, part: NearestPoint, points: Index, tolerance: float | None) -> NearestPoint:
        """Extend a solution on some points to all; it has converged if no other point has a lower gradient."""
        v, derivative = np.zeros(len(self.K)), np.zeros(len(self.K))
        v[points], derivative[points] = part.weights, part.derivative
        g = self.whole.gradient(part.ratio, v)
        slack = self.whole.slack(part.ratio, *self.whole.moments(part.ratio, v, g), part.curvature, tolerance)
        return self.whole.nearest_point(part.ratio, v, derivative, g, part.curvature, slack)


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of the rows, sorted by groups, with the weight of each row in the mean of its group."""

    means: sparse.csr_array  # shape (groups, rows): its product with values at the rows is their mean in each group
    first: Index  # first row of each group, and the number of rows

    @classmethod
    def from_labels(cls, group: Index, mass: Floats) -> Groups:
        """Build groups from the increasing group numbers of the rows, weighted by mass within a group."""
        first = np.searchsorted(group, np.arange(group[-1] + 2))
        share = mass / np.add.reduceat(mass, first[:-1])[group]
        return cls(sparse.csr_array((share, np.arange(len(group)), first)), first)

    def total(self, mass: Floats) -> Floats:
        """Sum over the rows of each group."""
        return np.asarray(np.add.reduceat(mass, self.first[:-1]))

    def kernel_means(self, rows: Floats, bandwidth: float) -> Floats:
        """Compute ⟨φ(x), mean of a group⟩, shape (rows, groups)."""
        blocks, n = KernelBlocks(rows, bandwidth), len(rows)
        values = np.empty((n, len(self.first) - 1))
        for some in self._parts():
            at = slice(int(self.first[some.start]), int(self.first[some.stop]))
            means = self.means[some, at]
            for start in range(0, n, _COLUMNS):
                to = slice(start, min(start + _COLUMNS, n))
                kernel = blocks.fill(at, to, np.empty((at.stop - at.start, to.stop - start)))
                values[to, some] = (means @ kernel).T
        return values

    def _parts(self) -> list[slice]:
        """Cut the groups into slices of about as many rows as are processed at a time."""
        step = max(1, _ROWS * (len(self.first) - 1) // int(self.first[-1]))
        return [slice(k, min(k + step, len(self.first) - 1)) for k in range(0, len(self.first) - 1, step)]

    def gram_matrix(self, kernel_means: Floats) -> Floats:
        """Compute the Gram matrix of the groups' means, with the ridge of the rows' own matrix."""
        K = np.asarray(self.means @ kernel_means)
        K = (K + K.T) / 2
        K.flat[:: len(K) + 1] += RIDGE * self.means.power(2).sum(axis=1)
        return K


def build_hull(rows: Floats, p: Floats, u: Floats, group: Index | None, bandwidth: float) -> Hull:
    """Build the hull of the rows, or of the means of their groups, with μ_P and μ_U in it."""
    if group is None:
        return Hull(gram_matrix(rows, bandwidth), p, u - p)
    groups = Groups.from_labels(group, p + u)  # within a group, p and u are proportional
    at_rows = groups.kernel_means(rows, bandwidth)
    return Hull(groups.gram_matrix(at_rows), groups.total(p), groups.total(u - p), at_rows)


def group_similar_rows(
    rows: Floats, labeled: Mask, masses: tuple[Floats, Floats], bandwidth: float, count: int, rng: np.random.Generator
) -> Index:
    """Assign rows to at most `count` groups of labelled or of unlabelled rows; `masses` are those in μ_P and in μ_U."""
    means = [_mean_at(rows, mass, bandwidth, rng) for mass in masses]
    score = means[0] / (means[0] + means[1] + 1e-300)
    group, first = np.empty(len(rows), dtype=np.intp), 0
    for of, parts in ((labeled, max(1, count // _FEWER)), (~labeled, count - count // _FEWER)):
        members = np.flatnonzero(of)
        ranked = members[np.argsort(score[members], kind="stable")]
        group[ranked] = first + np.arange(len(members)) * min(parts, len(members)) // len(members)
        first += min(parts, len(members))
    return group


def _mean_at(rows: Floats, mass: Floats, bandwidth: float, rng: np.random.Generator) -> Floats:
    """Estimate ⟨μ, φ(x)⟩ at all rows from some of the rows that μ is the mean of."""
    of = np.flatnonzero(mass)
    some = np.sort(rng.permutation(of)[:_SCORED])
    zero, one = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    weights = mass[some] / mass[some].mean()
    all_rows, those = Rows(rows, zero, one), Rows(rows, zero, one, some)
    return kernel_sums(Gaussian(bandwidth), all_rows, those, weights=(None, weights))[0] / len(some)


class RowInfluence:
    """Influence of each row on inner products with μ_P and μ_U, in one sample or in both.

    With f the values ⟨f, φ(x)⟩ at all rows, a row of U moves ⟨f, μ_U⟩ by mass·(f(x) − mean over U). `positive` and
    `population` are the masses of the rows in μ_P and in μ_U.
    """

    def __init__(self, positive: Floats, population: Floats, observation: Index) -> None:
        self.positive, self.population = positive, population
        # each sample has its own factor n/(n−1) of a variance
        sizes = (effective_size(mass, observation) for mass in (positive, population))
        self.correction = [np.sqrt(n / max(n - 1, 1)) for n in sizes]

    def on_direction(self, f: Floats) -> Floats:
        """Compute the influence on ⟨f, a⟩ with a = μ_U − μ_P."""
        return self._combined(1.0, -1.0, f)

    def on_point(self, ratio: float, f: Floats) -> Floats:
        """Compute the influence on ⟨f, u⟩ with u = λμ_U + (1−λ)μ_P."""
        return self._combined(ratio, 1 - ratio, f)

    def _combined(self, of_population: float, of_positives: float, f: Floats) -> Floats:
        of_P, of_U = self.correction
        total = (of_population * of_U) * self.population * (f - self.population @ f)
        total += (of_positives * of_P) * self.positive * (f - self.positive @ f)
        return np.asarray(total)
