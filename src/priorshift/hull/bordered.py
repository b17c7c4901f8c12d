"""Linear systems on one face of a simplex after another: K_FF Z = right_F for a set F that changes a little each time.

A face near the last factorised one is solved through the Schur complement: rows that were added and rows that were
removed border the factor, and their columns are kept for the faces that follow.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack, solve_triangular

from priorshift.arrays import Floats, Index, Mask


class Faces:
    """Solver for faces of a positive definite K, with the same right-hand sides for each."""

    def __init__(self, K: Floats, right: Floats) -> None:
        self.K, self.right = K, right
        self._base: _Factor | None = None

    def solve(self, free: Mask) -> Floats | None:
        """Z of the shape of `right`, zero outside the face; None where the face is singular."""
        if self._base is not None:
            Z = self._base.solve(free)
            if Z is not None:
                return Z
        L = _cholesky(self.K, np.flatnonzero(free))
        if L is None:
            return None
        self._base = _Factor(self.K, self.right, free.copy(), L)
        return self._base.solve(free)


def _cholesky(K: Floats, F: Index) -> Floats | None:
    diagonal = np.arange(len(F))
    for ridge in (0.0, 1e-7, 1e-5, 1e-3):
        block = _block(K, F).T  # symmetric, so its transpose is the column-major copy that LAPACK works in
        block[diagonal, diagonal] += ridge
        L, failed = lapack.dpotrf(block, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return np.asarray(L)
    return None


def _block(K: Floats, F: Index) -> Floats:
    """A copy of K_FF; rows that stand together are copied much faster."""
    first, last = int(F[0]), int(F[-1]) + 1
    return K[first:last, first:last].copy() if last - first == len(F) else K[np.ix_(F, F)]


class _Factor:
    """The Cholesky factor of one face and the borders that lead to faces near it."""

    def __init__(self, K: Floats, right: Floats, inside: Mask, L: Floats) -> None:
        self.K, self.right, self.inside, self.L = K, right, inside, L
        self.F = np.flatnonzero(inside)
        self.place = np.cumsum(inside) - 1
        self.t = self._forward(right[self.F])
        self.column: dict[int, int] = {}  # of W, for each bordering row
        self.W = np.empty((len(self.F), 0), order="F")
        self.gram = np.empty((0, 0))

    def solve(self, free: Mask) -> Floats | None:
        """None where a new factor is cheaper, or the border is singular."""
        added, removed = np.flatnonzero(free & ~self.inside), np.flatnonzero(self.inside & ~free)
        border = [*added.tolist(), *removed.tolist()]
        new = np.array([i for i in border if i not in self.column], dtype=np.intp)
        if len(border) > len(self.F) // 2 or 4 * len(new) > np.count_nonzero(free):
            return None
        if len(new):
            self._extend(new)
        Z = np.zeros(self.right.shape)
        if not border:
            Z[self.F] = self._backward(self.t)
            return Z
        use = np.array([self.column[i] for i in border])
        k = len(added)
        S = -self.gram[np.ix_(use, use)]
        S[:k, :k] += self.K[np.ix_(added, added)]
        right = np.zeros((len(use), self.right.shape[1]))
        right[:k] = self.right[added]
        W = self.W[:, use]
        _, _, y, failed = lapack.dsysv(S, right - W.T @ self.t, lower=1)
        if failed:
            return None
        Z[self.F] = self._backward(self.t - W @ y)
        Z[removed] = 0.0
        Z[added] = y[:k]
        return Z

    def _extend(self, new: Index) -> None:
        border = np.zeros((len(self.F), len(new)), order="F")
        leaving = self.inside[new]
        border[self.place[new[leaving]], np.flatnonzero(leaving)] = 1.0
        border[:, ~leaving] = self.K[np.ix_(self.F, new[~leaving])]
        fresh = self._forward(border)
        cross = self.W.T @ fresh
        self.gram = np.block([[self.gram, cross], [cross.T, fresh.T @ fresh]])
        self.column |= {int(i): self.W.shape[1] + k for k, i in enumerate(new)}
        self.W = np.asfortranarray(np.concatenate([self.W, fresh], axis=1))

    def _forward(self, right: Floats) -> Floats:
        return np.asarray(solve_triangular(self.L, right, lower=True, check_finite=False))

    def _backward(self, right: Floats) -> Floats:
        return np.asarray(solve_triangular(self.L, right, lower=True, trans="T", check_finite=False))
