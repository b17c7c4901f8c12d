"""Mean embeddings of three samples: their 3 × 3 Gram matrix and how well it is known.

The samples are P (labelled positives), U (the source population) and T (the target), in this order
everywhere. Estimators, intervals and tests see an :class:`Embeddings` and never learn whether exact tiles
or a random sample of pairs made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import NO_PAIRS, Floats, Index, Pairs
from priorshift.embedding.tiles import kernel_sums, weighted_kernel_sums
from priorshift.input.observations import PriorInfluence
from priorshift.input.scaling import Rows
from priorshift.input.source import Source
from priorshift.kernels import Kernel

P, U, T = 0, 1, 2
Statistic = Literal["unbiased", "plug-in"]

_BLOCK = 4096  # rows whose bootstrap counts are multiplied at a time
# _SYMMETRIC[k, q] is the symmetric matrix with ones at (k, q) and (q, k), and 2 at (k, k): the change of the
# Gram matrix when the mean of sample k moves along the mean of sample q.
_SYMMETRIC = np.einsum("kj,ql->kqjl", np.eye(3), np.eye(3)) + np.einsum("kl,qj->kqjl", np.eye(3), np.eye(3))


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Gram matrix of the means of P, U and T, and the covariance of its entries.

    Attributes
    ----------
    gram : ndarray of shape (3, 3)
        ⟨μ_j, μ_k⟩ by the statistic asked for. ⟨μ_T, μ_T⟩ is NaN unless it was asked for.
    plug_in : ndarray of shape (3, 3)
        The same with every pair kept; the finite-sample bounds hold for it.
    parts : ndarray of shape (parts, 3, 3, 3, 3)
        Covariance of the entries of `gram`, as a sum of independent parts.
    freedom : ndarray of shape (parts,)
        Degrees of freedom of each part's estimate.
    sizes : tuple of three int
        Rows in P, U and T.
    shared : int
        Pairs of a row of P and a row of U that are the same observation.
    kernel : Kernel
        The kernel that made them.
    prior_covariance, prior_variance : ndarray of shape (3, 3), float
        Covariance of the entries of `gram` with an estimate of the source prior from the same rows, and that
        estimate's variance; zero where the prior is known.
    """

    gram: Floats
    plug_in: Floats
    parts: Floats
    freedom: Floats
    sizes: tuple[int, int, int]
    shared: int
    kernel: Kernel
    prior_covariance: Floats = field(default_factory=lambda: np.zeros((3, 3)))
    prior_variance: float = 0.0

    def variance(self, A: Floats) -> tuple[float, float]:
        """Variance of Σ A_jk ⟨μ_j, μ_k⟩ for a symmetric `A`, and its Satterthwaite degrees of freedom."""
        if A[T, T] != 0 and np.isnan(self.gram[T, T]):
            raise ValueError("the norm of the target's mean was not computed; embed with target_norm=True.")
        each = np.einsum("jk,pjklm,lm->p", A, self.parts, A)
        total = max(float(each.sum()), 0.0)
        if not (0 < total < np.inf):
            return total, np.inf
        return total, 1 / float(((each / total) ** 2 / self.freedom).sum())


@dataclass(frozen=True, eq=False)
class SourceEmbedding:
    """The source side, computed once and used for every target: rows of P and U and their kernel sums."""

    kernel: Kernel
    positive: Rows
    unlabeled: Rows
    shared: Pairs
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, source: Source, kernel: Kernel, precision: str = "float64") -> SourceEmbedding:
        """P and U of a source, seen through the kernel; tiles are of the type `precision`."""
        positive, population = (replace(source.rows, index=rows) for rows in (source.positive, source.population))
        return cls(kernel, positive, population, source.shared, np.dtype(precision))

    @cached_property
    def sums(self) -> dict[tuple[int, int], Floats]:
        """sums[j, k]: Σ k(x, y) over the rows y of sample k, at each row x of sample j."""
        pp, _ = kernel_sums(self.kernel, self.positive, dtype=self.dtype)
        uu, _ = kernel_sums(self.kernel, self.unlabeled, dtype=self.dtype)
        pu, up = kernel_sums(self.kernel, self.positive, self.unlabeled, dtype=self.dtype)
        return {(P, P): pp, (U, U): uu, (P, U): pu, (U, P): up}

    def embed(
        self,
        target: Rows,
        statistic: Statistic = "unbiased",
        *,
        target_norm: bool = False,
        prior: PriorInfluence | None = None,
    ) -> Embeddings:
        """Exact embeddings, from every pair of rows; ⟨μ_T, μ_T⟩ only with `target_norm`.

        `prior` says how the rows move an estimate of the source prior, where it is one.
        """
        rows = (self.positive, self.unlabeled, target)
        sums = dict(self.sums)
        for k in (P, U):
            sums[k, T], sums[T, k] = kernel_sums(self.kernel, rows[k], target, dtype=self.dtype)
        if target_norm:
            sums[T, T], _ = kernel_sums(self.kernel, target, dtype=self.dtype)
        else:
            sums[T, T] = np.zeros(len(target))
        sizes = np.array([len(r) for r in rows])
        plug_in = np.array([[sums[j, k].sum() / sizes[j] / sizes[k] for k in range(3)] for j in range(3)])
        gram = plug_in
        counts = {(j, k): np.full(sizes[j], float(sizes[k])) for j, k in sums}
        if statistic == "unbiased":
            for (j, k), (at, same) in self._skipped(rows).items():
                sums[j, k] = sums[j, k] - np.bincount(at, same, sizes[j])
                counts[j, k] -= np.bincount(at, minlength=sizes[j])
            gram = np.array([[sums[j, k].sum() / counts[j, k].sum() for k in range(3)] for j in range(3)])
        if not target_norm:
            plug_in[T, T] = gram[T, T] = np.nan
        # a row all of whose pairs are skipped says nothing: it has the mean's value, and no influence
        values = [
            np.stack(
                [np.where(counts[j, k] > 0, sums[j, k] / np.maximum(counts[j, k], 1), gram[j, k]) for k in range(3)],
                axis=1,
            )
            for j in range(3)
        ]
        influence = [(v - v.mean(axis=0)) / np.sqrt(n * (n - 1)) for v, n in zip(values, sizes, strict=True)]
        parts, freedom = _covariance(influence, self.shared)
        made = Embeddings(
            gram, plug_in, parts, freedom, (int(sizes[P]), int(sizes[U]), int(sizes[T])), len(self.shared), self.kernel
        )
        if prior is None:
            return made
        moves = [q @ influence[k] for k, q in enumerate(prior.of_observations(self.shared))]
        covariance = np.einsum("kq,kqab->ab", np.stack(moves), _SYMMETRIC[:2])
        return replace(made, prior_covariance=covariance, prior_variance=prior.variance(self.shared))

    def bootstrap(
        self,
        target: Rows,
        statistic: Statistic,
        replicates: int,
        rng: np.random.Generator,
        prior: PriorInfluence | None = None,
    ) -> tuple[NDArray[np.float64], Floats]:
        """Gram matrices of `replicates` bootstrap samples, shape (replicates, 3, 3); ⟨μ_T, μ_T⟩ is NaN.

        Beside them, how far each replicate moves an estimated source prior, to first order.

        Rows are drawn as counts, so one pass over the kernel values serves every replicate. A shared row is
        drawn once for both of its samples. Two draws of one observation are a pair that the unbiased
        statistic skips, as it skips the diagonal.
        """
        rows = (self.positive, self.unlabeled, target)
        weights = [np.empty((len(r), replicates), np.uint8) for r in rows]
        weights[U][:] = _draws(len(rows[U]), replicates, rng)
        weights[T][:] = _draws(len(rows[T]), replicates, rng)
        alone = np.setdiff1d(np.arange(len(rows[P])), self.shared[:, 0])
        weights[P][self.shared[:, 0]] = weights[U][self.shared[:, 1]]
        weights[P][alone] = _draws(len(alone), replicates, rng)
        skipped = self._skipped(rows) if statistic == "unbiased" else {}
        pairs = {(P, P): None, (U, U): None, (P, U): self.shared, (P, T): NO_PAIRS, (U, T): NO_PAIRS}
        gram = np.full((replicates, 3, 3), np.nan)
        for (j, k), shared in pairs.items():
            if j == k:
                sums = weighted_kernel_sums(self.kernel, rows[j], weights[j])
            else:
                sums = weighted_kernel_sums(self.kernel, rows[j], weights[j], rows[k], weights[k])
            w, v = weights[j], weights[k]
            count = w.sum(axis=0, dtype=np.float64) * v.sum(axis=0, dtype=np.float64)
            if (j, k) in skipped:
                at, values = skipped[j, k]
                other = at if shared is None else shared[:, 1]
                for block in (slice(i, i + _BLOCK) for i in range(0, len(at), _BLOCK)):
                    both = w[at[block]].astype(np.float64) * v[other[block]]
                    sums -= values[block] @ both
                    count -= both.sum(axis=0)
            with np.errstate(invalid="ignore", divide="ignore"):  # no row of a tiny sample drawn: NaN
                gram[:, j, k] = gram[:, k, j] = sums / count
        moved = np.zeros(replicates)
        if prior is not None:
            for q, w in ((prior.positive, weights[P]), (prior.unlabeled, weights[U])):
                for block in (slice(i, i + _BLOCK) for i in range(0, len(q), _BLOCK)):
                    moved += q[block] @ (w[block] - 1.0)
        return gram, moved

    def _skipped(self, rows: Sequence[Rows]) -> dict[tuple[int, int], tuple[Index, Floats]]:
        """Pairs that are one observation with itself: for each block, the rows they stand in and k there."""
        skipped = {}
        for k in range(3):
            skipped[k, k] = (np.arange(len(rows[k])), self._diagonal(rows[k]))
        if len(self.shared):
            p, u = self.shared.T
            values = self.kernel.paired(rows[P][p], rows[U][u])
            skipped[P, U], skipped[U, P] = (p, values), (u, values)
        return skipped

    def _diagonal(self, rows: Rows) -> Floats:
        """k(x, x) at each row."""
        if self.kernel.stationary:
            one = rows[:1]
            return np.full(len(rows), self.kernel.paired(one, one)[0])
        blocks = (rows[k : k + _BLOCK] for k in range(0, len(rows), _BLOCK))
        return np.concatenate([self.kernel.paired(block, block) for block in blocks])


def _draws(n: int, replicates: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """How often each of n rows is drawn in n draws with replacement, for each replicate: shape (n, replicates)."""
    counts = np.empty((n, replicates), np.uint8)
    for b in range(replicates):
        counts[:, b] = np.bincount(rng.integers(0, n, n), minlength=n) if n else 0
    return counts


def _covariance(influence: Sequence[Floats], shared: Pairs) -> tuple[Floats, Floats]:
    """Covariance of the Gram matrix's entries from the influence of each row.

    A row x of sample k moves ⟨μ_k, μ_q⟩ by `influence` (μ_q(x) − mean)/n_k. Rows are independent, so the squares of
    their influences add up; a row in both P and U has one influence, the sum of two, whence the cross term.
    """
    parts = [np.einsum("qr,qab,rcd->abcd", v.T @ v, _SYMMETRIC[k], _SYMMETRIC[k]) for k, v in enumerate(influence)]
    freedom = [len(v) - 1.0 for v in influence]
    if len(shared):
        p, u = influence[P][shared[:, 0]], influence[U][shared[:, 1]]
        cross = np.einsum("qr,qab,rcd->abcd", p.T @ u, _SYMMETRIC[P], _SYMMETRIC[U])
        parts.append(cross + np.einsum("abcd->cdab", cross))
        freedom.append(freedom[P])
    return np.array(parts), np.array(freedom)
