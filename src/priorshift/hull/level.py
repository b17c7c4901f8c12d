"""The search for the face that holds the nearest point, among the points that are allowed.

The search for the face and the search for the λ at which the slope d′(λ) = ⟨a, w⟩/‖w‖, w = u − v, passes a given value
go together: solve on the face, move λ, drop what is negative, add what pulls, all at once (block principal pivoting).
Where that cycles, an active-set method that never lets d grow finishes the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from priorshift.arrays import Floats, Index, Mask
from priorshift.hull.bordered import Faces
from priorshift.hull.face import Face, Means, bounded, line, product, root_tolerance, step

_PATIENCE = 6  # passes of pivoting without fewer infeasible points, before it is taken to cycle
_PASSES = 60
_DESCENTS = 2000
_ROUNDING = 4e-12  # of ⟨a, a⟩: the gap that rounding leaves


@dataclass(frozen=True, eq=False)
class NearestPoint:
    """The nearest point of the hull to u(λ).

    Attributes
    ----------
    ratio : float
        λ.
    weights : ndarray of shape (N,)
        v, of the nearest point.
    turn : ndarray of shape (N,)
        How v changes with λ on its face.
    distance, slope : float
        d(λ) and d′(λ).
    curvature : float
        ‖Πa‖², with Π the projection across the face; d″ = (curvature − slope²)/d.
    gap : float
        gᵀv − min g with g = K(v−u): ½d² is this far from its minimum at most.
    converged : bool
        Whether the gap is within what was asked for.
    """

    ratio: float
    weights: Floats
    turn: Floats
    distance: float
    slope: float
    curvature: float
    gap: float
    converged: bool


class Level:
    """The program with v allowed on some points only (u stays whole); with all of them, the program itself.

    Parameters
    ----------
    K : ndarray of shape (N, N)
        Gram matrix of the points that are allowed.
    right : ndarray of shape (N, 3)
        Ka, Kp and ones at these.
    means : Means
    u : tuple of two ndarray or None
        a and p as weights on the points, where all are allowed.
    """

    def __init__(self, K: Floats, right: Floats, means: Means, u: tuple[Floats, Floats] | None = None) -> None:
        self.K, self.right, self.means, self.u = K, right, means, u

    def at(self, points: Index) -> Level:
        """The program on some of the points."""
        return Level(self.K[np.ix_(points, points)], self.right[points], self.means)

    def project(self, ratio: float, free: Mask, tolerance: float) -> NearestPoint:
        """The nearest point to u(λ), looked for from the face `free` on."""
        found = self.pivot(ratio, free, tolerance=tolerance)
        return found if found is not None else self.descend(ratio, free, tolerance)

    def where_slope_passes(
        self, slope: float, ratio: float, free: Mask, most: float, tolerance: float | None
    ) -> NearestPoint:
        """The λ up to `most` at which d′ passes `slope`, looked for from a λ and a face on.

        Where pivoting cycles: whole solves at a few λ, each chosen by the face's closed form.
        """
        found = self.pivot(ratio, free, slope=slope, tolerance=tolerance, most=most)
        if found is not None:
            return found
        low, high = 1.0, most
        at = self.descend(ratio, free, tolerance or 1e-5)
        for _ in range(60):
            low, high = (at.ratio, high) if at.slope < slope else (low, at.ratio)
            new = at.ratio + step(slope, at.distance**2, at.slope * at.distance, at.curvature)
            guess = bounded(new, at.ratio, most)
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
        """Block principal pivoting, with λ moving along where a slope is wanted; None if it cycles."""
        fewest, patience = inf, _PATIENCE
        faces = Faces(self.K, self.right)
        for _ in range(_PASSES):
            Z = faces.solve(free) if free.any() else None
            if Z is None:
                return None
            face = Face(self.right, Z, self.means)
            moved = 0.0
            if slope is not None:
                new = bounded(ratio + face.step(ratio, slope), ratio, most)
                moved, ratio = new - ratio, new
            v = face.weights(ratio)
            g = self.pulls(ratio, v)
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
        """Active set with moves in bulk; d never grows, so it ends."""
        faces = Faces(self.K, self.right)
        most = max(1, len(self.K) // 20)
        bulk = most
        v = free / np.count_nonzero(free)
        g = self.pulls(ratio, v)
        squared, _ = self.moments(ratio, v, g)
        for _ in range(_DESCENTS):
            level = float(g @ v)
            slack = tolerance * max(squared, 0.0) + _ROUNDING * self.means.aa
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
        Z = faces.solve(v > 0)
        if Z is None:
            return self.nearest_point(ratio, v, np.zeros(len(v)), g, self.means.aa, slack)
        face = Face(self.right, Z, self.means)
        return self.nearest_point(ratio, v, face.v1, g, face.curvature, slack)

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
                z1, z0 = line(Z, Z.sum(axis=0))
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
            g = self.pulls(ratio, at)
            new, _ = self.moments(ratio, at, g)
            if new < squared:
                return at, g, new
        return None

    def pulls(self, ratio: float, v: Floats) -> Floats:
        """g = K(v − u) at the level's points."""
        return product(self.K, v) - ratio * self.right[:, 0] - self.right[:, 1]

    def moments(self, ratio: float, v: Floats, g: Floats) -> tuple[float, float]:
        """d² and ⟨a, w⟩. On all points d² is wᵀKw from w and Kw = −g, where nothing cancels."""
        inner = ratio * self.means.aa + self.means.ap - float(v @ self.right[:, 0])
        if self.u is not None:
            a, p = self.u
            return float((v - ratio * a - p) @ g), inner
        c = ratio * self.right[:, 0] + self.right[:, 1]
        return self.means.squared(ratio) - float(v @ c) + float(v @ g), inner

    def slack(self, ratio: float, squared: float, inner: float, curvature: float, tolerance: float | None) -> float:
        """The gap that is left over; without a tolerance, what leaves 1 − 1/λ exact to 1e-4."""
        squared = max(squared, 0.0)
        slope = inner / sqrt(squared) if squared > 0 else 0.0
        relative = tolerance or root_tolerance(ratio, squared, slope, curvature)
        return relative * squared + _ROUNDING * self.means.aa

    def nearest_point(
        self, ratio: float, v: Floats, turn: Floats, g: Floats, curvature: float, slack: float
    ) -> NearestPoint:
        squared, inner = self.moments(ratio, v, g)
        distance = sqrt(max(squared, 0.0))
        slope = inner / distance if distance > 0 else 0.0
        gap = float(g @ v - g.min())
        v = np.maximum(v, 0.0)
        return NearestPoint(ratio, v, turn, distance, slope, curvature, gap, gap <= 1.01 * slack)
