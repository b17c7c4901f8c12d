"""The rows that a hull is made of, and what each counts in μ_P and in μ_U.

Rows that are alike are put together, so that the hull of many rows has few points.

The rows of each sample are sorted by how much they look like positives, ⟨μ_P, φ(x)⟩ against ⟨μ_U, φ(x)⟩, and cut into
groups; the points of the hull are the means of the groups. A mean of rows lies in the hull of the rows; μ_P and μ_U
are still weights on the points, so that d(1) = 0; and what d waits for, the mean of the negatives, has weights that
depend on how much a row looks like a positive. All rows enter, and no matrix of rows by rows is stored.

How much each row moves the two means μ_U and μ_P, seen through a function of the feature space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from priorshift.arrays import Floats, Index, Mask
from priorshift.embedding.tiles import kernel_sums
from priorshift.hull.hull import Hull
from priorshift.hull.kernel_matrix import RIDGE, KernelBlocks, gram_matrix
from priorshift.io.observations import row_codes
from priorshift.io.scaling import Rows
from priorshift.io.weights import effective_size
from priorshift.kernels import Gaussian
from priorshift.problem import Source


@dataclass(frozen=True, eq=False)
class HullSample:
    """Some rows of a source.

    Attributes
    ----------
    rows : ndarray of int
        Which.
    labeled : ndarray of bool
        Whether each is a labelled positive.
    p, u : ndarray
        What each counts in μ_P and in μ_U; the sums are 1.
    """

    rows: Index
    labeled: Mask
    p: Floats
    u: Floats

    @classmethod
    def from_source(cls, source: Source) -> HullSample:
        """One row of each set of copies, which counts for all of them."""
        p, u = np.zeros(len(source.labeled)), np.zeros(len(source.labeled))
        p[source.positive], u[source.population] = source.positive_mass, source.population_mass
        rows = np.arange(len(p))
        copied = np.flatnonzero(source.copies > 1)
        if len(copied):
            # P and U share rows only as is said
            sets = 2 * row_codes(source.table.values[copied]) + source.labeled[copied]
            _, first, of = np.unique(sets, return_index=True, return_inverse=True)
            for mass in (p, u):
                total = np.bincount(of.reshape(-1), mass[copied])
                mass[copied] = 0.0
                mass[copied[first]] = total
            rows = np.setdiff1d(rows, np.delete(copied, first))
        return cls(rows, source.labeled[rows], _mass(p[rows]), _mass(u[rows]))

    def take(self, at: Index) -> HullSample:
        """The rows at some places, in their order."""
        return HullSample(self.rows[at], self.labeled[at], self.p[at], self.u[at])

    def drawn(self, most: int, rng: np.random.Generator) -> HullSample:
        """At most so many rows at random, up to half of them labelled."""
        if len(self.rows) <= most:
            return self
        parts = np.flatnonzero(self.labeled), np.flatnonzero(~self.labeled)
        positives = min(len(parts[0]), max(most // 2, most - len(parts[1])))
        counts = positives, most - positives
        at = np.concatenate([rng.permutation(part)[:count] for part, count in zip(parts, counts, strict=True)])
        # each stands for others of its kind: under censoring, labelled rows are part of the population
        others = np.repeat([len(part) / count for part, count in zip(parts, counts, strict=True)], counts)
        order = np.argsort(at)
        some, others = self.take(at[order]), others[order]
        return HullSample(some.rows, some.labeled, _mass(some.p * others), _mass(some.u * others))


def _mass(counts: Floats) -> Floats:
    """The same with the sum 1; by way of the largest, so that 1/n stays what it is."""
    relative = counts / counts.max()
    return np.asarray(relative / relative.sum())


_SEEN = 500  # rows of each sample that tell how much a row looks like a positive
_FEWER = 10  # one group in so many is of labelled rows, which the mean of the negatives has no weight on
_ROWS, _COLUMNS = 2048, 64  # about so many of the kernel's matrix are made at a time: what a core's own cache holds


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of the rows, sorted by groups, and what each row counts in the mean of its group.

    Attributes
    ----------
    means : sparse array of shape (groups, rows)
        Its product with values at the rows is their mean in each group.
    first : ndarray of int
        The first row of each group, and the number of rows.
    """

    means: sparse.csr_array
    first: Index

    @classmethod
    def of(cls, group: Index, mass: Floats) -> Groups:
        """From the group of each row, in rising order; within a group, rows count as their masses say."""
        first = np.searchsorted(group, np.arange(group[-1] + 2))
        share = mass / np.add.reduceat(mass, first[:-1])[group]
        return cls(sparse.csr_array((share, np.arange(len(group)), first)), first)

    def total(self, mass: Floats) -> Floats:
        """The sum over the rows of each group."""
        return np.asarray(np.add.reduceat(mass, self.first[:-1]))

    def kernel_means(self, rows: Floats, bandwidth: float) -> Floats:
        """⟨φ(x), mean of a group⟩ for all rows x (rows of the result) and groups."""
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
        """Groups that stand together, of about as many rows as are worked on at a time."""
        step = max(1, _ROWS * (len(self.first) - 1) // int(self.first[-1]))
        return [slice(k, min(k + step, len(self.first) - 1)) for k in range(0, len(self.first) - 1, step)]

    def gram_matrix(self, kernel_means: Floats) -> Floats:
        """⟨mean of a group, mean of a group⟩, with the ridge that the rows' own matrix has."""
        K = np.asarray(self.means @ kernel_means)
        K = (K + K.T) / 2
        K.flat[:: len(K) + 1] += RIDGE * self.means.power(2).sum(axis=1)
        return K


def hull_of(rows: Floats, p: Floats, u: Floats, group: Index | None, bandwidth: float) -> Hull:
    """The hull of the rows, or of the means of their groups, with μ_P and μ_U on it."""
    if group is None:
        return Hull(gram_matrix(rows, bandwidth), p, u - p)
    groups = Groups.of(group, p + u)  # in a group, one is the other times a number
    at_rows = groups.kernel_means(rows, bandwidth)
    return Hull(groups.gram_matrix(at_rows), groups.total(p), groups.total(u - p), at_rows)


def alike(
    rows: Floats, labeled: Mask, masses: tuple[Floats, Floats], bandwidth: float, count: int, rng: np.random.Generator
) -> Index:
    """The group of each row: at most `count` groups, of labelled or of unlabelled rows alone.

    `masses` are what each row counts in μ_P and in μ_U.
    """
    seen = [_mean_at(rows, mass, bandwidth, rng) for mass in masses]
    likeness = seen[0] / (seen[0] + seen[1] + 1e-300)
    group, first = np.empty(len(rows), dtype=np.intp), 0
    for of, parts in ((labeled, max(1, count // _FEWER)), (~labeled, count - count // _FEWER)):
        members = np.flatnonzero(of)
        ranked = members[np.argsort(likeness[members], kind="stable")]
        group[ranked] = first + np.arange(len(members)) * min(parts, len(members)) // len(members)
        first += min(parts, len(members))
    return group


def _mean_at(rows: Floats, mass: Floats, bandwidth: float, rng: np.random.Generator) -> Floats:
    """⟨μ, φ(x)⟩ at all rows, from some of those that μ is made of."""
    of = np.flatnonzero(mass)
    some = np.sort(rng.permutation(of)[:_SEEN])
    zero, one = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    weights = mass[some] / mass[some].mean()
    all_rows, those = Rows(rows, zero, one), Rows(rows, zero, one, some)
    return kernel_sums(Gaussian(bandwidth), all_rows, those, weights=(None, weights))[0] / len(some)


class Push:
    """First-order changes when a row counts a little more in its sample, or in both of its samples.

    With f the values ⟨f, φ(x)⟩ at all rows, a row of U moves ⟨f, μ_U⟩ by mass·(f(x) − mean over U).

    Parameters
    ----------
    positive, population : ndarray
        What each row counts in μ_P and in μ_U; the sums are 1.
    observation : ndarray of int
        The observation that each row is.
    """

    def __init__(self, positive: Floats, population: Floats, observation: Index) -> None:
        self.positive, self.population = positive, population
        # the usual n/(n−1) of a variance belongs to each sample
        sizes = (effective_size(mass, observation) for mass in (positive, population))
        self.unbiased = [np.sqrt(n / max(n - 1, 1)) for n in sizes]

    def line(self, f: Floats) -> Floats:
        """Of ⟨f, a⟩ with a = μ_U − μ_P."""
        return self._combined(1.0, -1.0, f)

    def point(self, ratio: float, f: Floats) -> Floats:
        """Of ⟨f, u⟩ with u = λμ_U + (1−λ)μ_P."""
        return self._combined(ratio, 1 - ratio, f)

    def _combined(self, of_population: float, of_positives: float, f: Floats) -> Floats:
        of_P, of_U = self.unbiased
        total = (of_population * of_U) * self.population * (f - self.population @ f)
        total += (of_positives * of_P) * self.positive * (f - self.positive @ f)
        return np.asarray(total)
