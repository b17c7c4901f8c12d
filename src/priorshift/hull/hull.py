"""The distance of a moving point to the convex hull of points in a feature space, and where its slope passes a value.

The points have the Gram matrix K. The moving point is u(λ) = λμ_U + (1−λ)μ_P, that is λa + p in weights on the points.
The weights v of its nearest point in the hull minimise d² = (u−v)ᵀK(u−v) over the simplex. On a face of the simplex
(the weights in a set F free, all others zero) all is closed form: with Z = K_FF⁻¹[Ka, Kp, 1]_F the best weights are
v_F = λZ₀ + Z₁ − ηZ₂, with η such that they add up to one; they are linear in λ.

The search for the face of the nearest point and the search for the λ at which the slope d′(λ) = ⟨a, w⟩/‖w‖, w = u − v,
passes a given value go together: solve on the face, move λ, drop negative weights and add points with a negative
gradient, all at once (block principal pivoting). Where that cycles, an active-set method that never lets d grow
finishes the work.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import partial
from math import inf, sqrt

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular

from priorshift.arrays import Floats, Index, Mask

_COARSEST = 100  # points; restricting the search to fewer would not pay
_COARSE_GAP = 1e-3  # of a coarse search, relative to d²
_ROUNDS = 8  # searches on the points of lowest gradient, before all points are used
_PRIOR_ACCURACY = 1e-4  # of the prior 1 − 1/λ; its derivative is 1/λ², so λ may be off by this times λ²
_LEAST_STEP = 1e-4  # smallest λ − 1; a smaller one could not grow by as much as a step must for the search to go on
_PATIENCE = 6  # pivoting passes without fewer infeasible points, after which it is taken to cycle
_SHORT_PATIENCE = 3  # the same, where groups of points are used instead of a slow search
_PASSES = 60
_DESCENTS = 2000
_ROUNDING = 4e-12  # gap that rounding leaves, relative to ⟨a, a⟩
_solve_lower = partial(solve_triangular, lower=True, check_finite=False)


@dataclass(frozen=True, eq=False)
class NearestPoint:
    """The nearest point of the hull to u(λ)."""

    ratio: float  # λ
    weights: Floats  # v, shape (N,)
    derivative: Floats  # of v with respect to λ, on its face
    distance: float  # d(λ)
    slope: float  # d′(λ)
    curvature: float  # ‖Πa‖², with Π the projection orthogonal to the face; d″ = (curvature − slope²)/d
    converged: bool  # whether gᵀv − min g with g = K(v−u), the gap of ½d² to its minimum, is within the tolerance


class PivotingCycles(Exception):  # noqa: N818 - it is handled, and never reaches a user
    """Pivoting cycles in a hull with more points than the slow search may use."""


class Hull:
    """The convex hull of N points, and the line u(λ) = λμ_U + (1−λ)μ_P through μ_P and μ_U."""

    def __init__(self, K: Floats, p: Floats, a: Floats, at_rows: Floats | None = None) -> None:
        """Compute the products of the points with the line u(λ) = λμ_U + (1−λ)μ_P = λa + p, which all searches use.

        K is the positive definite Gram matrix of the points; p and a are the weights of μ_P and of μ_U − μ_P on them.
        Where the points are not the rows, `at_rows` holds ⟨φ(x), point⟩, of shape (rows, points).
        """
        self.K, self.p, self.a, self.at_rows = K, p, a, at_rows
        Ka, Kp = K @ a, K @ p
        # right-hand sides of the linear systems for the weights on a face, shape (N, 3)
        self.right = np.stack([Ka, Kp, np.ones(len(K))], axis=1)
        self.aa, self.ap, self.pp = float(a @ Ka), float(a @ Kp), float(p @ Kp)
        self.separation = sqrt(max(self.aa, 0.0))  # ‖a‖, the slope that d(λ) approaches
        self.first_face = (p + a) > 0  # points on which μ_U has weight: the face of the nearest point at λ = 1
        # whether a and p are weights on these points, which gives d² without cancellation; not after `restrict`
        self.contains_line = True
        self.most_descended: int | None = None  # points up to which the slow search is allowed; None: any number

    def restrict(self, points: Index) -> Hull:
        """Return the hull of the points with these numbers; the moving point u(λ) = λa + p stays the same."""
        part = copy(self)
        # a and p are not weights on these points; only the products of `right` are valid
        part.K, part.right, part.contains_line = self.K[np.ix_(points, points)], self.right[points], False
        return part

    def values(self, weights: Floats) -> Floats:
        """Compute ⟨f, φ(x)⟩ at all rows x, for f = Σ weight·point, with φ the kernel's feature map."""
        # without `at_rows` the points are the rows
        return _symmetric_product(self.K, weights) if self.at_rows is None else self.at_rows @ weights

    def project(self, ratio: float, *, tolerance: float = 2e-4, start: Mask | None = None) -> NearestPoint:
        """Find the nearest point of the hull to u(λ) = λμ_U + (1−λ)μ_P at λ = `ratio`.

        Half of its squared distance d² exceeds the minimum by at most tolerance·d² and rounding. `start` marks the
        points with which the search begins; by default those on which μ_U has weight.
        """
        free = self.first_face if start is None else start
        nearest = self._pivot(ratio, free, tolerance)
        return nearest if nearest is not None else self._descend(ratio, free, tolerance)

    def find_slope(self, slope: float, *, largest: float = 100.0, tolerance: float | None = None) -> NearestPoint:
        """Find the λ from 1 to `largest` at which the distance d(λ) of u(λ) to the hull has the slope d′ = `slope`.

        Returns the nearest point of the hull at that λ, or at `largest` where the slope stays lower. The search is
        coarse to fine: the nearest point is first sought in fixed random subsets of the points, each search starting
        from the λ and face of the last; then in the points of lowest gradient, until no other point has a lower one.
        Without a `tolerance` for the gap of ½d², it is the one that makes 1 − 1/λ exact to 1e-4.
        """
        N = len(self.K)
        ratio, v = 1.3, np.maximum(self.p + self.a, 0.0)  # λ, and the weights of the nearest point
        order = np.random.default_rng(0).permutation(N)  # any order will do
        for size in (N // 27, N // 9):
            points = np.sort(order[:size])
            if size < _COARSEST or not v[points].any():  # too few points, or no face to start from
                continue
            part = self.restrict(points).find_slope_from(ratio, v[points] > 0, slope, largest, _COARSE_GAP)
            ratio, v = part.ratio, np.zeros(N)
            v[points] = part.weights
        for _ in range(_ROUNDS if N >= 9 * _COARSEST else 0):
            size = max(N // 4, 2 * int(np.count_nonzero(v)))
            if 2 * size > N:  # restricting the search would not pay
                break
            gradient, _, _ = self._gradient(ratio, v)
            points = np.union1d(np.argpartition(gradient, size)[:size], np.flatnonzero(v))
            part = self.restrict(points).find_slope_from(ratio, v[points] > 0, slope, largest, tolerance)
            ratio, v, derivative = part.ratio, np.zeros(N), np.zeros(N)
            v[points], derivative[points] = part.weights, part.derivative
            nearest = self._nearest_point(ratio, v, derivative, part.curvature, tolerance)
            if nearest.converged:  # no other point has a lower gradient
                return nearest
            v = nearest.weights
        return self.find_slope_from(ratio, v > 0, slope, largest, tolerance)

    def find_slope_from(
        self, ratio: float, free: Mask, slope: float, largest: float, tolerance: float | None
    ) -> NearestPoint:
        """Find the λ from 1 to `largest` at which the slope d′ of the distance d(λ) of u(λ) to the hull is `slope`.

        The search starts from λ = `ratio` and the face of the points marked by `free`. Returns the nearest point of the
        hull at that λ. Without a `tolerance` for the gap of ½d², it follows from the accuracy of 1 − 1/λ.
        """
        nearest = self._pivot(ratio, free, tolerance, slope, largest)
        if nearest is not None:
            return nearest
        # pivoting cycles: whole solves at a few λ, each chosen by the face's closed form
        low, high = 1.0, largest  # bracket of λ; d′ grows with λ
        nearest = self._descend(ratio, free, tolerance or 1e-5)
        for _ in range(60):
            ratio, distance = nearest.ratio, nearest.distance
            if nearest.slope < slope:
                low = ratio
            else:
                high = ratio
            guess = _next_ratio(ratio, slope, distance**2, nearest.slope * distance, nearest.curvature, largest)
            if not low < guess < high:  # bisect λ − 1 on a logarithmic scale
                guess = min(1 + sqrt(max(low - 1, 1e-4) * (high - 1)), largest)
            if abs(guess - ratio) <= _PRIOR_ACCURACY * ratio**2:
                break
            nearest = self._descend(guess, nearest.weights > 0, tolerance or 1e-5)
        return nearest

    def _pivot(
        self, ratio: float, free: Mask, tolerance: float | None, slope: float | None = None, largest: float = inf
    ) -> NearestPoint | None:
        """Find the nearest point of the hull to u(λ) at λ = `ratio` by block principal pivoting.

        A face is a set of points with free weights; all other weights are zero. Each pass solves on a face, in closed
        form, and then drops its points of negative weight and adds those of lower gradient. `free` is the first face.
        Where a `slope` is given, each pass also moves λ towards the one with the slope d′ = `slope`, up to `largest`.
        Returns None if pivoting cycles, or reaches a face that is empty or singular.
        """
        most_passes = _PATIENCE if self.most_descended is None else _SHORT_PATIENCE
        fewest, patience = inf, most_passes
        faces = FaceSolver(self.K, self.right)
        for _ in range(_PASSES):
            Z = faces.solve(free) if free.any() else None
            if Z is None:  # the face is empty or singular, and has no closed form
                return None
            face = _Face(self, Z)
            ratio_step = 0.0
            if slope is not None:
                # d² and ⟨a, u − v⟩ at this λ, from their polynomials on the face
                (i0, i1), (s0, s1, s2) = face.inner, face.squared
                squared, inner = max(s0 + ratio * (s1 + ratio * s2), 0.0), i0 + ratio * i1
                new_ratio = _next_ratio(ratio, slope, squared, inner, face.curvature, largest)
                ratio_step, ratio = new_ratio - ratio, new_ratio
            v = ratio * face.v1 + face.v0
            g, squared, inner = self._gradient(ratio, v)
            slack = self._slack(ratio, squared, inner, face.curvature, tolerance)
            # Optimal: weights are positive on the face, and no point outside has a lower gradient. Half of the allowed
            # gap is left for rounding, by which the gradients of points on the face differ.
            infeasible = np.where(free, v <= 0, g < g[free].mean() - slack / 2)
            count = int(np.count_nonzero(infeasible))
            if count == 0 and abs(ratio_step) <= _PRIOR_ACCURACY * ratio**2:
                return self._nearest_point(ratio, v, face.v1, face.curvature, tolerance)
            if count < fewest:
                fewest, patience = count, most_passes
            elif count > 0:  # with none, only λ still moves, which is no cycle
                patience -= 1
            if not patience:
                return None
            free = free ^ infeasible
        return None

    def _descend(self, ratio: float, free: Mask, tolerance: float) -> NearestPoint:
        """Find the nearest point of the hull to u(λ) at λ = `ratio` by an active-set method; d never grows, so it ends.

        It starts from equal weights on the points marked by `free`. Each step adds the points of lowest gradient, many
        at once if the distance d then shrinks. Raises PivotingCycles where there are more points than allowed.
        """
        if self.most_descended is not None and len(self.K) > self.most_descended:
            raise PivotingCycles
        faces = FaceSolver(self.K, self.right)
        added = most_added = max(1, len(self.K) // 20)  # points to add at a time
        v = free / np.count_nonzero(free)
        g, squared, _ = self._gradient(ratio, v)
        for _ in range(_DESCENTS):
            level = float(g @ v)  # the gradient of all points on the face, if v is the best point of it
            if level - g.min() <= tolerance * max(squared, 0.0) + _ROUNDING * self.aa:
                break
            free = v > 0
            lower = np.flatnonzero(~free & (g < level))
            wider = free.copy()
            wider[lower[np.argsort(g[lower])[:added]]] = True  # with the points of lowest gradient
            nearer = self._minimize_on_face(faces, ratio, v, wider, squared)
            if nearer is not None:
                v, g, squared = nearer
                added = min(2 * added, most_added)
            elif added == 1:
                break  # rounding prevents further progress
            else:
                added = max(1, added // 4)
        Z = faces.solve(v > 0)
        if Z is None:  # a singular face has no closed form: a derivative of 0 and the largest curvature
            return self._nearest_point(ratio, v, np.zeros(len(v)), self.aa, tolerance)
        face = _Face(self, Z)
        return self._nearest_point(ratio, v, face.v1, face.curvature, tolerance)

    def _minimize_on_face(
        self, faces: FaceSolver, ratio: float, v: Floats, free: Mask, squared: float
    ) -> tuple[Floats, Floats, float] | None:
        """Find the nearest point to u(λ) on the face `free`, or on a face of it, if it is nearer than the weights v.

        `squared` is the squared distance d² of v. Returns the weights, gradient and d² of the nearest point, or None.
        Negative weights are dropped all at once; where that does not help (`careful`), one step at a time with a ratio
        test.
        """
        for careful in (False, True):
            weights, face = v, free.copy()
            for _ in range(2 * len(v) if careful else 20):
                Z = faces.solve(face) if face.any() else None
                if Z is None:
                    break
                line = _Face(self, Z)
                best = ratio * line.v1 + line.v0
                leaving = face & (best <= 0)
                if not leaving.any():
                    weights = best
                    break
                if careful:  # as far towards the best point as no weight turns negative; those that reach zero leave
                    step = float(np.min(weights[leaving] / (weights[leaving] - best[leaving])))
                    weights = np.where(face, weights + step * (best - weights), 0.0)
                    leaving &= weights <= 1e-14
                    weights = np.where(leaving, 0.0, np.maximum(weights, 0.0))
                face &= ~leaving
            if weights.min() < 0 or weights is v:  # nothing was found
                continue
            weights = weights / weights.sum()
            g, new_squared, _ = self._gradient(ratio, weights)
            if new_squared < squared:
                return weights, g, new_squared
        return None

    def _gradient(self, ratio: float, v: Floats) -> tuple[Floats, float, float]:
        """Compute the gradient g = K(v − u) of ½d² with respect to the weights v, d² = ‖u − v‖², and ⟨a, u − v⟩.

        v are weights of a point of the hull, and u = λa + p, at λ = `ratio`, are those of the moving point.
        """
        Ka, Kp = self.right[:, 0], self.right[:, 1]
        g = _symmetric_product(self.K, v) - ratio * Ka - Kp
        inner = ratio * self.aa + self.ap - float(v @ Ka)
        if self.contains_line:  # d² is wᵀKw from w and Kw = −g, where nothing cancels
            return g, float((v - ratio * self.a - self.p) @ g), inner
        norm = ratio**2 * self.aa + 2 * ratio * self.ap + self.pp
        return g, norm - float(v @ (ratio * Ka + Kp)) + float(v @ g), inner

    def _slack(self, ratio: float, squared: float, inner: float, curvature: float, tolerance: float | None) -> float:
        """Compute the allowed gap of ½d² to its minimum, at λ = `ratio`.

        It is tolerance·d² and rounding; without a tolerance, the one that leaves 1 − 1/λ exact to about 1e-4. `squared`
        is d² and `inner` is ⟨a, u − v⟩, so that the slope d′ is inner/d; `curvature` is d·d″ + d′².
        """
        squared = max(squared, 0.0)
        if not tolerance:
            tolerance = 1e-8
            slope = inner / sqrt(squared) if squared > 0 else 0.0
            if slope > 0:  # an error of the slope is divided by d″
                second_derivative = max(curvature - slope**2, 0.0) / sqrt(squared)
                tolerance = min(1e-3, max(_PRIOR_ACCURACY * second_derivative * ratio**2 / slope, 1e-8))
        return tolerance * squared + _ROUNDING * self.aa

    def _nearest_point(
        self, ratio: float, v: Floats, derivative: Floats, curvature: float, tolerance: float | None
    ) -> NearestPoint:
        """Return the point of the hull with weights v as the nearest one to the moving point u(λ) = λa + p.

        λ is `ratio`, `derivative` is dv/dλ, and `curvature` is the second derivative of ½d² in λ, d the distance of v
        from u(λ). The point has converged if the gap gᵀv − min g, by which ½d² can exceed its minimum, is allowed.
        """
        g, squared, inner = self._gradient(ratio, v)  # gradient of ½d² in v, d², and ⟨a, u − v⟩ = d·d′
        allowed_gap = self._slack(ratio, squared, inner, curvature, tolerance)
        distance = sqrt(max(squared, 0.0))
        slope = inner / distance if distance > 0 else 0.0
        converged = float(g @ v - g.min()) <= 1.01 * allowed_gap  # 1 % for rounding: the solver stops at the same gap
        # weights below 0 are rounding errors
        return NearestPoint(ratio, np.maximum(v, 0.0), derivative, distance, slope, curvature, converged)


class _Face:
    """The nearest point to u(λ) with free weights of either sign on a face F, from Z = K_FF⁻¹[Ka, Kp, 1]_F."""

    def __init__(self, hull: Hull, Z: Floats) -> None:
        """Compute the best weights v = λ·v1 + v0, and ⟨a, u − v⟩ and d² = ‖u − v‖² as polynomials of λ.

        `inner` and `squared` hold their coefficients, lowest power of λ first.
        """
        s = Z.sum(axis=0)
        # multiples of Z[:, 2] = K_FF⁻¹1 make the weights v1 add up to 0 and v0 to 1
        self.v1, self.v0 = Z[:, 0] - s[0] / s[2] * Z[:, 2], Z[:, 1] - (s[1] - 1) / s[2] * Z[:, 2]
        # on the face Kv = c − η, with c = Ku = λKa + Kp and η the multiplier of Σv = 1, so d² = u·c − v·c − η;
        # c·v and η are polynomials of λ
        (a1, p1), (a0, p0) = self.v1 @ hull.right[:, :2], self.v0 @ hull.right[:, :2]
        curvature = hull.aa - float(a1)  # ‖Πa‖², with Π the projection orthogonal to the face
        self.curvature = max(curvature, 0.0)
        self.inner = hull.ap - float(a0), curvature
        constant = hull.pp - float(p0 + (s[1] - 1) / s[2])
        self.squared = constant, 2 * hull.ap - float(a0 + p1 + s[0] / s[2]), curvature


def _next_ratio(ratio: float, slope: float, squared: float, inner: float, curvature: float, largest: float) -> float:
    """Find the λ near `ratio` with the slope d′(λ) = `slope`, where d²(ratio+h) = squared + 2h·inner + h²·curvature.

    λ − 1 changes at most about threefold in a step, and λ stays below `largest` and away from 1.
    """
    new = inf  # where the face's slope never reaches `slope`
    if curvature > slope**2:
        # d² = lowest + (inner + h·curvature)²/curvature; solve d′ = slope for h
        lowest = max(squared - inner**2 / curvature, 0.0)
        new = ratio + (slope * sqrt(lowest / (1 - slope**2 / curvature)) - inner) / curvature
    excess = max(ratio - 1, _LEAST_STEP)  # λ − 1
    return min(1 + min(max(new - 1, 0.3 * excess, _LEAST_STEP), 3 * excess), largest)


def _symmetric_product(K: Floats, v: Floats) -> Floats:
    """Compute K v for a symmetric K: from the rows where v is not zero, if these are few, or else from half of K."""
    F = np.flatnonzero(v)
    if 3 * len(F) < len(v):
        return np.asarray(v[F] @ K[F])
    return np.asarray(blas.dsymv(1.0, K.T, v))  # reads one triangle of K


class FaceSolver:
    """Solver of K_FF Z = right_F for faces F that change little from one to the next.

    A face near the last factorised one is solved through the Schur complement: rows that were added and rows that were
    removed border the Cholesky factor L, and their columns are stored for the faces that follow.
    """

    def __init__(self, K: Floats, right: Floats) -> None:
        """Store K and the right-hand sides, shape (N, columns); nothing is factorised yet."""
        self.K, self.right = K, right
        self.F: Index = np.empty(0, dtype=np.intp)  # the factorised face; empty before the first

    def solve(self, free: Mask) -> Floats | None:
        """Solve K_FF Z_F = right_F for the face F marked by `free`; Z is zero outside it. None where it is singular."""
        Z = self._solve_bordered(free) if len(self.F) else None
        if Z is None and self._factorize(free):
            Z = self._solve_bordered(free)
        return Z

    def _factorize(self, free: Mask) -> bool:
        """Compute the Cholesky factor of K_FF for the face F marked by `free`; False where K_FF is singular.

        A small ridge is added to the diagonal where the factorisation needs one.
        """
        F = np.flatnonzero(free)
        first, last, diagonal = int(F[0]), int(F[-1]) + 1, np.arange(len(F))
        for ridge in (0.0, 1e-7, 1e-5, 1e-3):
            # contiguous rows are copied much faster
            block = self.K[first:last, first:last].copy() if last - first == len(F) else self.K[np.ix_(F, F)]
            block = block.T  # symmetric, so its transpose is the column-major copy that LAPACK works in
            block[diagonal, diagonal] += ridge
            L, failed = lapack.dpotrf(block, lower=1, clean=0, overwrite_a=1)
            if not failed:
                # `inside` is the face as a mask, `place` the position of each of its points in F, t = L⁻¹ right_F
                self.F, self.L, self.inside, self.place = F, L, free.copy(), np.cumsum(free) - 1
                self.t = _solve_lower(L, self.right[F])
                self.column: dict[int, int] = {}  # column of W of each bordering row
                self.W = np.empty((len(F), 0), order="F")  # L⁻¹ times the bordering columns
                self.gram = np.empty((0, 0))  # WᵀW
                return True
        return False

    def _solve_bordered(self, free: Mask) -> Floats | None:
        """Solve K_FF Z_F = right_F for the face F marked by `free`, by bordering the factorised face self.F.

        None where a new factor is cheaper, or the border is singular. A point that was added borders the factorised
        matrix LLᵀ with its column of K, one that was removed with a unit vector, which makes its weight zero. With
        W = L⁻¹ border and t = L⁻¹ right, the Schur complement of the border is S = (K of the added points, else 0) −
        WᵀW.
        """
        added, removed = np.flatnonzero(free & ~self.inside), np.flatnonzero(self.inside & ~free)
        border = [*added.tolist(), *removed.tolist()]
        new = np.array([i for i in border if i not in self.column], dtype=np.intp)
        if len(border) > len(self.F) // 2 or 4 * len(new) > np.count_nonzero(free):
            return None
        if len(new):
            self._extend_border(new)
        Z = np.zeros(self.right.shape)
        if not border:
            Z[self.F] = _solve_lower(self.L, self.t, trans="T")
            return Z
        columns = np.array([self.column[i] for i in border])
        k = len(added)  # the added points come first in the border
        S = -self.gram[np.ix_(columns, columns)]
        S[:k, :k] += self.K[np.ix_(added, added)]
        right = np.zeros((len(columns), self.right.shape[1]))
        right[:k] = self.right[added]
        W = self.W[:, columns]
        # y are the weights of the added points, then the multipliers of the removed ones
        _, _, y, failed = lapack.dsysv(S, right - W.T @ self.t, lower=1)
        if failed:
            return None
        Z[self.F] = _solve_lower(self.L, self.t - W @ y, trans="T")
        Z[removed] = 0.0
        Z[added] = y[:k]
        return Z

    def _extend_border(self, new: Index) -> None:
        """Add a column L⁻¹b to W, and to WᵀW, for each new bordering point; L is the Cholesky factor of the face F.

        b is a unit vector for a point inside the factorised face, and the point's column of K for one outside it.
        """
        border = np.zeros((len(self.F), len(new)), order="F")
        leaving = self.inside[new]  # whether each is removed from the face, not added to it
        border[self.place[new[leaving]], np.flatnonzero(leaving)] = 1.0
        border[:, ~leaving] = self.K[np.ix_(self.F, new[~leaving])]
        new_W = _solve_lower(self.L, border)
        cross = self.W.T @ new_W
        self.gram = np.block([[self.gram, cross], [cross.T, new_W.T @ new_W]])
        self.column |= {int(i): self.W.shape[1] + k for k, i in enumerate(new)}
        self.W = np.asfortranarray(np.concatenate([self.W, new_W], axis=1))
