"""The rows that a hull is made of, and what each counts in μ_P and in μ_U."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priorshift.arrays import Floats, Index, Mask
from priorshift.input.observations import row_codes
from priorshift.input.source import Source


@dataclass(frozen=True, eq=False)
class Sample:
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
    def of(cls, source: Source) -> Sample:
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

    def take(self, at: Index) -> Sample:
        """The rows at some places, in their order."""
        return Sample(self.rows[at], self.labeled[at], self.p[at], self.u[at])

    def drawn(self, most: int, rng: np.random.Generator) -> Sample:
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
        return Sample(some.rows, some.labeled, _mass(some.p * others), _mass(some.u * others))


def _mass(counts: Floats) -> Floats:
    """The same with the sum 1; by way of the largest, so that 1/n stays what it is."""
    relative = counts / counts.max()
    return np.asarray(relative / relative.sum())
