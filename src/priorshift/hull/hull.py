"""Distance from a moving point to a convex hull in the kernel's feature space, and its exact slope.

The points are φ(x_1), …, φ(x_N), with Gram matrix K. The moving point is u(λ) = λμ_U + (1−λ)μ_P, that is λa + p in
weights on the points, and d(λ) is its distance to the hull: d² = min (u−v)ᵀK(u−v) over the simplex of weights v.

On a face (the weights in a set F free, all others zero) everything is closed form: with Z = K_FF⁻¹[Ka, Kp, 1]_F the
best weights are v_F = λZ₀ + Z₁ − ηZ₂, η such that they add up to one, and they are linear in λ. So the search for
the face and the search for the λ at which the slope d′(λ) = ⟨a, w⟩/‖w‖, w = u − v, passes a given value go together:
solve on the face, move λ, drop what is negative, add what pulls, all at once (block principal pivoting). Where that
cycles, an active-set method that never lets d grow finishes the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from priorshift.arrays import Floats, Index, Mask
from priorshift.hull.bordered import Faces

_PATIENCE = 6  # passes of pivoting without fewer infeasible points, before it is taken to cycle
_PASSES = 60
_DESCENTS = 2000
_ROUNDING = 4e-12  # of ⟨a, a⟩: the gap that rounding leaves
_COARSEST = 100  # points; a smaller level would not be worth its overhead


@dataclass(frozen=True, eq=False)
class NearestPoint:
    """The nearest point of the hull to u(λ).

    Attributes
    ----------
    ratio : float
        λ.
    weights : ndarray of shape (N,)
        v, of the nearest point.
    distance, slope : float
        d(λ) and d′(λ).
    curvature : float
        ‖Πa‖², with Π the projection across the face; d″ = (curvature − slope²)/d.
    gap : float
        gᵀv − min g with g = K(v−u): ½d² is this far from its minimum at most.
    residual, across : ndarray of shape (N,)
        ⟨w, φ(x)⟩ and ⟨Πa, φ(x)⟩ at every point.
    converged : bool
        Whether the gap is within what was asked for.
    """

    ratio: float
    weights: Floats
    distance: float
    slope: float
    curvature: float
    gap: float
    residual: Floats
    across: Floats
    converged: bool


class Hull:
    """The hull of all points, and a line through two of its points.

    Parameters
    ----------
    K : ndarray of shape (N, N)
        Gram matrix of the points, positive definite.
    p, a : ndarray of shape (N,)
        Weights of μ_P and of μ_U − μ_P.
    """

    def __init__(self, K: Floats, p: Floats, a: Floats) -> None:
        self.K, self.p, self.a = K, p, a
        self.Ka, self.Kp = K @ a, K @ p
        self.aKa, self.aKp, self.pKp = float(a @ self.Ka), float(a @ self.Kp), float(p @ self.Kp)
        self.right = np.stack([self.Ka, self.Kp, np.ones(len(K))], axis=1)
        self.whole = _Level(self, None)
        self.first = (p + a) > 0  # where μ_U has weight: the face that is right at λ = 1

    @property
    def separation(self) -> float:
        """‖a‖, the slope that d(λ) approaches."""
        return sqrt(max(self.aKa, 0.0))

    def project(self, ratio: float, *, tolerance: float = 2e-4, start: Mask | None = None) -> NearestPoint:
        """Nearest point of the hull to u(`ratio`); its gap is at most tolerance·d², and what rounding leaves."""
        free = self.first if start is None else start
        found = self.whole.pivot(ratio, free, tolerance=tolerance)
        return found if found is not None else self.whole.descend(ratio, free, tolerance)

    def where_slope_passes(self, slope: float, *, most: float = 100.0, tolerance: float | None = None) -> NearestPoint:
        """The λ between 1 and `most` at which d′ passes `slope`; `most` itself where it never does.

        Coarse to fine: v is at first allowed only on the points of a fixed random subset (u stays whole), and each
        level starts from the last one's λ and face. Without a `tolerance` for the gap, it is what makes 1 − 1/λ exact
        to 1e-4.
        """
        N = len(self.K)
        ratio, free = 1.3, self.first
        order = np.random.default_rng(0).permutation(N)  # any order will do
        for size in (N // 27, N // 9, N // 3):
            points = np.sort(order[:size])
            if size < _COARSEST or not free[points].any():
                continue
            found = _Level(self, points).pivot(ratio, free[points], slope=slope, most=most)
            if found is not None:
                ratio, free = found.ratio, np.zeros(N, dtype=bool)
                free[points] = found.weights > 0
        found = self.whole.pivot(ratio, free, slope=slope, tolerance=tolerance, most=most)
        return found if found is not None else self._bracket(slope, ratio, free, most, tolerance)

    def _bracket(self, slope: float, ratio: float, free: Mask, most: float, tolerance: float | None) -> NearestPoint:
        """The same root where pivoting cycles: whole solves at a few λ, each chosen by the face's closed form."""
        low, high = 1.0, most
        at = self.whole.descend(ratio, free, tolerance or 1e-5)
        for _ in range(60):
            low, high = (at.ratio, high) if at.slope < slope else (low, at.ratio)
            guess = _bounded(
                at.ratio + _step(slope, at.distance**2, at.slope * at.distance, at.curvature), at.ratio, most
            )
            if not low < guess < high:
                guess = min(1 + sqrt(max(low - 1, 1e-4) * (high - 1)), most)
            if abs(guess - at.ratio) <= 1e-4 * at.ratio**2:
                break
            at = self.whole.descend(guess, at.weights > 0, tolerance or 1e-5)
        return at


class _Level:
    """The program with v allowed on some points only (u stays whole); with all of them, the program itself."""

    def __init__(self, hull: Hull, points: Index | None) -> None:
        self.hull, self.points = hull, points
        self.K = hull.K if points is None else np.ascontiguousarray(hull.K[np.ix_(points, points)])
        self.right = hull.right if points is None else hull.right[points]

    def pivot(
        self,
        ratio: float,
        free: Mask,
        *,
        slope: float | None = None,
        tolerance: float | None = None,
        most: float = inf,
    ) -> NearestPoint | None:
        """Block principal pivoting, with λ moving along where a slope is wanted; None if it cycles."""
        fewest, patience = inf, _PATIENCE
        faces = Faces(self.K, self.right)
        for _ in range(_PASSES):
            Z = faces.solve(free) if free.any() else None
            if Z is None:
                return None
            face = _Face(self, Z, free)
            step = 0.0
            if slope is not None:
                new = _bounded(ratio + _step(slope, *face.moments(ratio), face.curvature), ratio, most)
                step, ratio = new - ratio, new
            v, g, level, squared, slope_here = face.at(ratio)
            slack = (tolerance or _root_tolerance(ratio, squared, slope_here, face.curvature)) * squared
            slack += _ROUNDING * self.hull.aKa
            wrong = np.where(free, v <= 0, g < level - slack / 2)
            count = int(np.count_nonzero(wrong))
            if not count and abs(step) <= 1e-4 * ratio**2:
                return face.result(ratio, slack)
            if count < fewest:
                fewest, patience = count, _PATIENCE
            elif count:
                patience -= 1
                if not patience:
                    return None
            free = free ^ wrong
        return None

    def descend(self, ratio: float, free: Mask, tolerance: float) -> NearestPoint:
        """Active set with moves in bulk; d never grows, so it ends."""
        faces = Faces(self.K, self.right)
        most = max(1, len(self.K) // 20)
        bulk = most
        v = free / np.count_nonzero(free)
        g = self._pulls(ratio, v)
        squared = self.squared(ratio, v, g)
        for _ in range(_DESCENTS):
            level = float(g @ v)
            slack = tolerance * max(squared, 0.0) + _ROUNDING * self.hull.aKa
            if level - g.min() <= slack:
                break
            free = v > 0
            pull = np.flatnonzero(~free & (g < level))
            wider = free.copy()
            wider[pull[np.argsort(g[pull])[:bulk]]] = True
            moved = self._settle(faces, ratio, v, wider, squared)
            if moved is not None:
                v, g, squared = moved
                bulk = min(2 * bulk, most)
            elif bulk == 1:
                break  # rounding has the last word
            else:
                bulk = max(1, bulk // 4)
        free = v > 0
        Z = faces.solve(free)
        across = self.hull.Ka if Z is None else _Face(self, Z, free).across
        return self.nearest_point(ratio, v, g, squared, float(self.hull.a @ across), across, slack)

    def _settle(
        self, faces: Faces, ratio: float, v: Floats, free: Mask, squared: float
    ) -> tuple[Floats, Floats, float] | None:
        """The best point of the face `free`, or of one below it, if it is nearer than v.

        Negative weights are dropped in bulk; where that brings nothing nearer, one step at a time with a ratio test.
        """
        for careful in (False, True):
            at, on = v, free.copy()
            for _ in range(2 * len(v) if careful else 20):
                Z = faces.solve(on) if on.any() else None
                if Z is None:
                    break
                z1, z0 = _line(Z, Z.sum(axis=0))
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
            g = self._pulls(ratio, at)
            new = self.squared(ratio, at, g)
            if new < squared:
                return at, g, new
        return None

    def squared(self, ratio: float, v: Floats, g: Floats) -> float:
        """d². On all points as wᵀKw from w and Kw = −g, where nothing cancels."""
        h = self.hull
        if self.points is None:
            return float((v - ratio * h.a - h.p) @ g)
        u_u = ratio**2 * h.aKa + 2 * ratio * h.aKp + h.pKp
        return u_u - float(v @ (ratio * self.right[:, 0] + self.right[:, 1])) + float(v @ g)

    def _pulls(self, ratio: float, v: Floats) -> Floats:
        """g = K(v − u) at the level's points."""
        return self.K @ v - ratio * self.right[:, 0] - self.right[:, 1]

    def nearest_point(
        self, ratio: float, v: Floats, g: Floats, squared: float, curvature: float, across: Floats, slack: float
    ) -> NearestPoint:
        distance = sqrt(max(squared, 0.0))
        inner = ratio * self.hull.aKa + self.hull.aKp - float(v @ self.right[:, 0])
        gap = float(g @ v - g.min())
        slope = inner / distance if distance > 0 else 0.0
        return NearestPoint(ratio, v, distance, slope, curvature, gap, -g, across, gap <= 1.01 * slack)


class _Face:
    """The best point of a face (not necessarily inside it) as a function of λ."""

    def __init__(self, level: _Level, Z: Floats, free: Mask) -> None:
        self.level, self.free = level, free
        KZ = level.K @ Z
        s = Z.sum(axis=0)
        self.v1, self.v0 = _line(Z, s)
        Kv1, Kv0 = _line(KZ, s)
        self.g1, self.g0 = Kv1 - level.right[:, 0], Kv0 - level.right[:, 1]
        self.curvature = max(level.hull.aKa - float(level.right[:, 0] @ self.v1), 0.0)
        self.across = -self.g1  # ⟨a − v1, φ(x)⟩

    def moments(self, ratio: float) -> tuple[float, float]:
        """d² and ⟨a, w⟩ at λ."""
        v, g = ratio * self.v1 + self.v0, ratio * self.g1 + self.g0
        h = self.level.hull
        return self.level.squared(ratio, v, g), ratio * h.aKa + h.aKp - float(v @ self.level.right[:, 0])

    def at(self, ratio: float) -> tuple[Floats, Floats, float, float, float]:
        """v, g, the level of g on the face, d² and the slope."""
        v, g = ratio * self.v1 + self.v0, ratio * self.g1 + self.g0
        squared, inner = self.moments(ratio)
        slope = inner / sqrt(squared) if squared > 0 else 0.0
        return v, g, float(g[self.free].mean()), max(squared, 0.0), slope

    def result(self, ratio: float, slack: float) -> NearestPoint:
        v, g, _, squared, _ = self.at(ratio)
        return self.level.nearest_point(ratio, np.maximum(v, 0.0), g, squared, self.curvature, self.across, slack)


def _line(Z: Floats, s: Floats) -> tuple[Floats, Floats]:
    """v1 and v0 of the best weights v = λ·v1 + v0, whose sums are 0 and 1; `s` holds the sums of Z's columns."""
    return Z[:, 0] - s[0] / s[2] * Z[:, 2], Z[:, 1] - (s[1] - 1) / s[2] * Z[:, 2]


def _step(slope: float, squared: float, inner: float, curvature: float) -> float:
    """h with d′(λ+h) = slope on a face, where d²(λ+h) = d² + 2h⟨a, w⟩ + h²·curvature; ∞ if there is none."""
    if curvature <= slope**2:
        return inf
    lowest = max(squared - inner**2 / curvature, 0.0)
    return (slope * sqrt(lowest / (1 - slope**2 / curvature)) - inner) / curvature


def _bounded(new: float, ratio: float, most: float) -> float:
    """λ − 1 changes by no more than threefold in a step, and λ stays below its limit."""
    return min(1 + min(max(new - 1, 0.3 * (ratio - 1)), 3 * (ratio - 1)), most)


def _root_tolerance(ratio: float, squared: float, slope: float, curvature: float) -> float:
    """Gap, relative to d², that leaves 1 − 1/λ exact to about 1e-4: an error of the slope is divided by d″."""
    if not squared > 0 or not slope > 0:
        return 1e-8
    bend = max(curvature - slope**2, 0.0) / sqrt(squared)
    return min(1e-3, max(1e-4 * bend * ratio**2 / slope, 1e-8))
