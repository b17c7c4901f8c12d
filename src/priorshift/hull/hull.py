"""Distance from a moving point to a convex hull in the kernel's feature space, and its exact slope.

The points are φ(x_1), …, φ(x_N), with Gram matrix K. The moving point is u(λ) = λμ_U + (1−λ)μ_P, that is λa + p in
weights on the points, and d(λ) is its distance to the hull: d² = min (u−v)ᵀK(u−v) over the simplex of weights v.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from priorshift.arrays import Floats, Index, Mask
from priorshift.hull.faces import Level, Means, NearestPoint, product

_COARSEST = 100  # points; a smaller level would not be worth its overhead
_ROUGHLY = 1e-3  # the gap of a coarse level, relative to d²
_ROUNDS = 8  # working sets, before all points are taken


class Hull:
    """The hull of all points, and a line through two of its points.

    Parameters
    ----------
    K : ndarray of shape (N, N)
        Gram matrix of the points, positive definite.
    p, a : ndarray of shape (N,)
        Weights of μ_P and of μ_U − μ_P.
    at_rows : ndarray of shape (rows, N) or None
        What the points are at the rows, ⟨φ(x), point⟩, where they are no rows themselves.
    """

    def __init__(self, K: Floats, p: Floats, a: Floats, at_rows: Floats | None = None) -> None:
        self.K, self.p, self.a, self.at_rows = K, p, a, at_rows
        self.Ka, self.Kp = K @ a, K @ p
        self.means = Means(float(a @ self.Ka), float(a @ self.Kp), float(p @ self.Kp))
        self.whole = Level(K, np.stack([self.Ka, self.Kp, np.ones(len(K))], axis=1), self.means, (a, p))
        self.first = (p + a) > 0  # where μ_U has weight: the face that is right at λ = 1

    @property
    def separation(self) -> float:
        """‖a‖, the slope that d(λ) approaches."""
        return sqrt(max(self.means.aa, 0.0))

    def values(self, weights: Floats) -> Floats:
        """⟨f, φ(x)⟩ at all rows, with f a combination of the points."""
        return product(self.K, weights) if self.at_rows is None else self.at_rows @ weights

    def residual(self, at: NearestPoint) -> Floats:
        """⟨w, φ(x)⟩ at all rows, w = u − v."""
        return self.values(at.ratio * self.a + self.p - at.weights)

    def across(self, at: NearestPoint) -> Floats:
        """⟨Πa, φ(x)⟩ at all rows, with Π the projection across the face."""
        return self.values(self.a - at.turn)

    def project(self, ratio: float, *, tolerance: float = 2e-4, start: Mask | None = None) -> NearestPoint:
        """Nearest point of the hull to u(`ratio`); its gap is at most tolerance·d², and what rounding leaves."""
        return self.whole.project(ratio, self.first if start is None else start, tolerance)

    def where_slope_passes(self, slope: float, *, most: float = 100.0, tolerance: float | None = None) -> NearestPoint:
        """The λ between 1 and `most` at which d′ passes `slope`; `most` itself where it never does.

        Coarse to fine: v is at first allowed only on the points of a fixed random subset (u stays whole), and each
        level starts from the last one's λ and face. Then on those that pull most, until no other point does. Without
        a `tolerance` for the gap, it is what makes 1 − 1/λ exact to 1e-4.
        """
        N = len(self.K)
        ratio, v = 1.3, np.maximum(self.p + self.a, 0.0)
        order = np.random.default_rng(0).permutation(N)  # any order will do
        for size in (N // 27, N // 9):
            points = np.sort(order[:size])
            if size < _COARSEST or not v[points].any():
                continue
            part = self.whole.at(points).where_slope_passes(slope, ratio, v[points] > 0, most, _ROUGHLY)
            ratio, v = part.ratio, np.zeros(N)
            v[points] = part.weights
        for _ in range(_ROUNDS if N >= 9 * _COARSEST else 0):
            size = max(N // 4, 2 * int(np.count_nonzero(v)))
            if 2 * size > N:
                break
            pulls = self.whole.pulls(ratio, v)
            points = np.union1d(np.argpartition(pulls, size)[:size], np.flatnonzero(v))
            part = self.whole.at(points).where_slope_passes(slope, ratio, v[points] > 0, most, tolerance)
            found = self._whole(part, points, tolerance)
            if found.converged:
                return found
            ratio, v = found.ratio, found.weights
        return self.whole.where_slope_passes(slope, ratio, v > 0, most, tolerance)

    def _whole(self, part: NearestPoint, points: Index, tolerance: float | None) -> NearestPoint:
        """What was found on some points, seen from all: it has converged if no other point pulls."""
        v, turn = np.zeros(len(self.K)), np.zeros(len(self.K))
        v[points], turn[points] = part.weights, part.turn
        g = self.whole.pulls(part.ratio, v)
        slack = self.whole.slack(part.ratio, *self.whole.moments(part.ratio, v, g), part.curvature, tolerance)
        return self.whole.nearest_point(part.ratio, v, turn, g, part.curvature, slack)
