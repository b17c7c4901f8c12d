"""The nearest point of a convex hull to a moving point, and where the distance's slope passes a value.

The weights v of the nearest point minimise (u−v)ᵀK(u−v) over the simplex. On a face of the simplex (the weights in a
set F free, all others zero) everything is closed form: with Z = K_FF⁻¹[Ka, Kp, 1]_F the best weights for u = λa + p are
v_F = λZ₀ + Z₁ − ηZ₂, with η such that they add up to one; they are linear in λ.

The search for the face of the nearest point and the search for the λ at which the slope d′(λ) = ⟨a, w⟩/‖w‖, w = u − v,
passes a given value go together: solve on the face, move λ, drop negative weights and add points with a negative
gradient, all at once (block principal pivoting). Where that cycles, an active-set method that never lets d grow
finishes the work.

A face near the last factorised one is solved through the Schur complement: rows that were added and rows that were
removed border the Cholesky factor, and their columns are kept for the faces that follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular

from priorshift.arrays import Floats, Index, Mask

_LEAST_STEP = 1e-4  # smallest λ − 1; a smaller one could not grow by as much as a step must for the search to go on
_PATIENCE = 6  # pivoting passes without fewer infeasible points, after which it is taken to cycle
_PASSES = 60
_DESCENTS = 2000
_ROUNDING = 4e-12  # gap that rounding leaves, relative to ⟨a, a⟩


class LineProducts(NamedTuple):
    """⟨a, a⟩, ⟨a, μ_P⟩ and ⟨μ_P, μ_P⟩, with a = μ_U − μ_P."""

    aa: float
    ap: float
    pp: float

    def squared_norm(self, ratio: float) -> float:
        """Compute ⟨u, u⟩ of u = λa + μ_P."""
        return ratio**2 * self.aa + 2 * ratio * self.ap + self.pp


@dataclass(frozen=True, eq=False)
class NearestPoint:
    """The nearest point of the hull to u(λ)."""

    ratio: float  # λ
    weights: Floats  # v, shape (N,)
    derivative: Floats  # of v with respect to λ, on its face
    distance: float  # d(λ)
    slope: float  # d′(λ)
    curvature: float  # ‖Πa‖², with Π the projection orthogonal to the face; d″ = (curvature − slope²)/d
    gap: float  # gᵀv − min g with g = K(v−u): ½d² is at most this far from its minimum
    converged: bool  # whether the gap is within the tolerance


class HullProjection:
    """The projection of u(λ) on the hull of all points, or of some of them.

    K is the Gram matrix of the points, `right` has the columns Ka, Kp and ones at them, and `u` holds a and p as
    weights on the points, where these are all points.
    """

    def __init__(self, K: Floats, right: Floats, means: LineProducts, u: tuple[Floats, Floats] | None = None) -> None:
        self.K, self.right, self.means, self.u = K, right, means, u

    def restrict(self, points: Index) -> HullProjection:
        """Restrict the hull to some of the points; u stays the same."""
        return HullProjection(self.K[np.ix_(points, points)], self.right[points], self.means)

    def project(self, ratio: float, free: Mask, tolerance: float) -> NearestPoint:
        """Find the nearest point to u(λ), starting from the face `free`."""
        nearest = self.pivot(ratio, free, tolerance=tolerance)
        return nearest if nearest is not None else self.descend(ratio, free, tolerance)

    def find_slope(self, slope: float, ratio: float, free: Mask, most: float, tolerance: float | None) -> NearestPoint:
        """Find the λ up to `most` at which d′ passes `slope`, starting from a λ and a face."""
        nearest = self.pivot(ratio, free, slope=slope, tolerance=tolerance, most=most)
        if nearest is not None:
            return nearest
        # pivoting cycles: whole solves at a few λ, each chosen by the face's closed form
        low, high = 1.0, most
        at = self.descend(ratio, free, tolerance or 1e-5)
        for _ in range(60):
            low, high = (at.ratio, high) if at.slope < slope else (low, at.ratio)
            new = at.ratio + _step(slope, at.distance**2, at.slope * at.distance, at.curvature)
            guess = _limit_step(new, at.ratio, most)
            if not low < guess < high:
                guess = min(1 + sqrt(max(low - 1, 1e-4) * (high - 1)), most)
            if abs(guess - at.ratio) <= 1e-4 * at.ratio**2:
                break
            at = self.descend(guess, at.weights > 0, tolerance or 1e-5)
        return at

    def pivot(
        self,
        ratio: float,
        free: Mask,
        *,
        slope: float | None = None,
        tolerance: float | None = None,
        most: float = inf,
    ) -> NearestPoint | None:
        """Do block principal pivoting, with λ moving along where a slope is given; None if it cycles."""
        fewest, patience = inf, _PATIENCE
        faces = FaceSolver(self.K, self.right)
        for _ in range(_PASSES):
            Z = faces.solve(free) if free.any() else None
            if Z is None:
                return None
            face = _FaceSolution(self.right, Z, self.means)
            moved = 0.0
            if slope is not None:
                new = _limit_step(ratio + face.step(ratio, slope), ratio, most)
                moved, ratio = new - ratio, new
            v = face.weights(ratio)
            g = self.gradient(ratio, v)
            squared, inner = self.moments(ratio, v, g)
            slack = self.slack(ratio, squared, inner, face.curvature, tolerance)
            wrong = np.where(free, v <= 0, g < g[free].mean() - slack / 2)
            count = int(np.count_nonzero(wrong))
            if not count and abs(moved) <= 1e-4 * ratio**2:
                return self.nearest_point(ratio, v, face.v1, g, face.curvature, slack)
            if count < fewest:
                fewest, patience = count, _PATIENCE
            elif count:
                patience -= 1
                if not patience:
                    return None
            free = free ^ wrong
        return None

    def descend(self, ratio: float, free: Mask, tolerance: float) -> NearestPoint:
        """Run an active-set method that moves many points at once; d never grows, so it ends."""
        faces = FaceSolver(self.K, self.right)
        most = max(1, len(self.K) // 20)
        bulk = most
        v = free / np.count_nonzero(free)
        g = self.gradient(ratio, v)
        squared, _ = self.moments(ratio, v, g)
        for _ in range(_DESCENTS):
            level = float(g @ v)
            slack = tolerance * max(squared, 0.0) + _ROUNDING * self.means.aa
            if level - g.min() <= slack:
                break
            free = v > 0
            lower = np.flatnonzero(~free & (g < level))
            wider = free.copy()
            wider[lower[np.argsort(g[lower])[:bulk]]] = True
            moved = self._settle(faces, ratio, v, wider, squared)
            if moved is not None:
                v, g, squared = moved
                bulk = min(2 * bulk, most)
            elif bulk == 1:
                break  # rounding prevents further progress
            else:
                bulk = max(1, bulk // 4)
        Z = faces.solve(v > 0)
        if Z is None:
            return self.nearest_point(ratio, v, np.zeros(len(v)), g, self.means.aa, slack)
        face = _FaceSolution(self.right, Z, self.means)
        return self.nearest_point(ratio, v, face.v1, g, face.curvature, slack)

    def _settle(
        self, faces: FaceSolver, ratio: float, v: Floats, free: Mask, squared: float
    ) -> tuple[Floats, Floats, float] | None:
        """Find the best point of the face `free`, or of a face of it, if it is nearer than v.

        Negative weights are dropped in bulk; where that does not help, one step at a time with a ratio test.
        """
        for careful in (False, True):
            at, on = v, free.copy()
            for _ in range(2 * len(v) if careful else 20):
                Z = faces.solve(on) if on.any() else None
                if Z is None:
                    break
                z1, z0 = _best_line(Z, Z.sum(axis=0))
                z = ratio * z1 + z0
                below = on & (z <= 0)
                if not below.any():
                    at = z
                    break
                if careful:  # as far towards z as no weight turns negative; those that reach zero leave
                    reach = float(np.min(at[below] / (at[below] - z[below])))
                    at = np.where(on, at + reach * (z - at), 0.0)
                    below &= at <= 1e-14
                    at = np.where(below, 0.0, np.maximum(at, 0.0))
                on &= ~below
            if at.min() < 0 or at is v:
                continue
            at = at / at.sum()
            g = self.gradient(ratio, at)
            new, _ = self.moments(ratio, at, g)
            if new < squared:
                return at, g, new
        return None

    def gradient(self, ratio: float, v: Floats) -> Floats:
        """Compute g = K(v − u) at the points."""
        return symmetric_product(self.K, v) - ratio * self.right[:, 0] - self.right[:, 1]

    def moments(self, ratio: float, v: Floats, g: Floats) -> tuple[float, float]:
        """Compute d² and ⟨a, w⟩; on all points d² is wᵀKw from w and Kw = −g, where nothing cancels."""
        inner = ratio * self.means.aa + self.means.ap - float(v @ self.right[:, 0])
        if self.u is not None:
            a, p = self.u
            return float((v - ratio * a - p) @ g), inner
        c = ratio * self.right[:, 0] + self.right[:, 1]
        return self.means.squared_norm(ratio) - float(v @ c) + float(v @ g), inner

    def slack(self, ratio: float, squared: float, inner: float, curvature: float, tolerance: float | None) -> float:
        """Compute the allowed gap; without a tolerance, the one that leaves 1 − 1/λ exact to 1e-4."""
        squared = max(squared, 0.0)
        slope = inner / sqrt(squared) if squared > 0 else 0.0
        relative = tolerance or _root_tolerance(ratio, squared, slope, curvature)
        return relative * squared + _ROUNDING * self.means.aa

    def nearest_point(
        self, ratio: float, v: Floats, derivative: Floats, g: Floats, curvature: float, slack: float
    ) -> NearestPoint:
        squared, inner = self.moments(ratio, v, g)
        distance = sqrt(max(squared, 0.0))
        slope = inner / distance if distance > 0 else 0.0
        gap = float(g @ v - g.min())
        v = np.maximum(v, 0.0)
        return NearestPoint(ratio, v, derivative, distance, slope, curvature, gap, gap <= 1.01 * slack)


class _FaceSolution:
    """The best point of a face (not necessarily inside it) as a function of λ, from Z = K_FF⁻¹[Ka, Kp, 1]_F."""

    def __init__(self, right: Floats, Z: Floats, means: LineProducts) -> None:
        s = Z.sum(axis=0)
        self.v1, self.v0 = _best_line(Z, s)
        # c·v with c = Ku = λKa + Kp is a polynomial of λ, and so is η; on the face Kv = c − η, so d² = u·c − v·c − η
        (a1, p1), (a0, p0) = self.v1 @ right[:, :2], self.v0 @ right[:, :2]
        self.curvature = max(means.aa - float(a1), 0.0)
        self._inner = means.ap - float(a0), means.aa - float(a1)
        self._squared = (
            means.pp - float(p0 + (s[1] - 1) / s[2]),
            2 * means.ap - float(a0 + p1 + s[0] / s[2]),
            means.aa - float(a1),
        )

    def weights(self, ratio: float) -> Floats:
        return np.asarray(ratio * self.v1 + self.v0)

    def step(self, ratio: float, slope: float) -> float:
        """Find h with d′(λ+h) = slope on the face; ∞ if there is none."""
        (i0, i1), (s0, s1, s2) = self._inner, self._squared
        return _step(slope, max(s0 + ratio * (s1 + ratio * s2), 0.0), i0 + ratio * i1, self.curvature)


def _best_line(Z: Floats, s: Floats) -> tuple[Floats, Floats]:
    """Return v1 and v0 of the best weights v = λ·v1 + v0, with sums 0 and 1; `s` holds the sums of Z's columns."""
    return Z[:, 0] - s[0] / s[2] * Z[:, 2], Z[:, 1] - (s[1] - 1) / s[2] * Z[:, 2]


def _step(slope: float, squared: float, inner: float, curvature: float) -> float:
    """Find h with d′(λ+h) = slope, where d²(λ+h) = squared + 2h·inner + h²·curvature; ∞ if there is none."""
    if curvature <= slope**2:
        return inf
    lowest = max(squared - inner**2 / curvature, 0.0)
    return (slope * sqrt(lowest / (1 - slope**2 / curvature)) - inner) / curvature


def _limit_step(new: float, ratio: float, most: float) -> float:
    """Limit the change of λ − 1 to about threefold in a step, and keep λ below `most` and away from 1."""
    beyond = max(ratio - 1, _LEAST_STEP)
    return min(1 + min(max(new - 1, 0.3 * beyond, _LEAST_STEP), 3 * beyond), most)


def _root_tolerance(ratio: float, squared: float, slope: float, curvature: float) -> float:
    """Compute the gap, relative to d², that leaves 1 − 1/λ exact to about 1e-4: a slope's error is divided by d″."""
    if not squared > 0 or not slope > 0:
        return 1e-8
    bend = max(curvature - slope**2, 0.0) / sqrt(squared)
    return min(1e-3, max(1e-4 * bend * ratio**2 / slope, 1e-8))


def symmetric_product(K: Floats, v: Floats) -> Floats:
    """Compute K v for a symmetric K from the rows where v is not zero, if these are few; else read half of K."""
    F = np.flatnonzero(v)
    return np.asarray(v[F] @ K[F] if 3 * len(F) < len(v) else blas.dsymv(1.0, K.T, v))


class FaceSolver:
    """Solver of K_FF Z = right_F for faces F that change little from one to the next."""

    def __init__(self, K: Floats, right: Floats) -> None:
        self.K, self.right = K, right
        self._base: _BorderedFactor | None = None

    def solve(self, free: Mask) -> Floats | None:
        """Compute Z of the shape of `right`, zero outside the face; None where the face is singular."""
        if self._base is not None:
            Z = self._base.solve(free)
            if Z is not None:
                return Z
        L = _cholesky(self.K, np.flatnonzero(free))
        if L is None:
            return None
        self._base = _BorderedFactor(self.K, self.right, free.copy(), L)
        return self._base.solve(free)


def _cholesky(K: Floats, F: Index) -> Floats | None:
    """Compute the Cholesky factor of K_FF, with a ridge where it needs one; None where none helps."""
    diagonal = np.arange(len(F))
    for ridge in (0.0, 1e-7, 1e-5, 1e-3):
        block = _block(K, F).T  # symmetric, so its transpose is the column-major copy that LAPACK works in
        block[diagonal, diagonal] += ridge
        L, failed = lapack.dpotrf(block, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return np.asarray(L)
    return None


def _block(K: Floats, F: Index) -> Floats:
    """Copy K_FF; contiguous rows are copied much faster."""
    first, last = int(F[0]), int(F[-1]) + 1
    return K[first:last, first:last].copy() if last - first == len(F) else K[np.ix_(F, F)]


class _BorderedFactor:
    """The Cholesky factor of one face and the borders that lead to faces near it."""

    def __init__(self, K: Floats, right: Floats, inside: Mask, L: Floats) -> None:
        self.K, self.right, self.inside, self.L = K, right, inside, L
        self.F = np.flatnonzero(inside)
        self.place = np.cumsum(inside) - 1
        self.t = self._forward(right[self.F])
        self.column: dict[int, int] = {}  # column of W of each bordering row
        self.W = np.empty((len(self.F), 0), order="F")
        self.gram = np.empty((0, 0))

    def solve(self, free: Mask) -> Floats | None:
        """Compute Z through the border; None where a new factor is cheaper, or the border is singular."""
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
        """Add columns to the border."""
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
