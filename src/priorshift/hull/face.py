"""The best point of a face as a function of λ, and the λ at which the distance's slope passes a value there.

On a face (the weights in a set F free, all others zero) everything is closed form: with Z = K_FF⁻¹[Ka, Kp, 1]_F the
best weights are v_F = λZ₀ + Z₁ − ηZ₂, η such that they add up to one, and they are linear in λ.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas

from priorshift.arrays import Floats

_LEAST = 1e-4  # λ − 1; a smaller one could not grow by as much as a step must be for the search to go on


class Means(NamedTuple):
    """⟨a, a⟩, ⟨a, μ_P⟩ and ⟨μ_P, μ_P⟩, with a = μ_U − μ_P."""

    aa: float
    ap: float
    pp: float

    def squared(self, ratio: float) -> float:
        """⟨u, u⟩ of u = λa + μ_P."""
        return ratio**2 * self.aa + 2 * ratio * self.ap + self.pp


class Face:
    """The best point of a face (not necessarily inside it) as a function of λ.

    Parameters
    ----------
    right : ndarray of shape (N, 3)
        Ka, Kp and ones.
    Z : ndarray of shape (N, 3)
        K_FF⁻¹ of them, zero outside the face.
    means : Means
    """

    def __init__(self, right: Floats, Z: Floats, means: Means) -> None:
        s = Z.sum(axis=0)
        self.v1, self.v0 = line(Z, s)
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
        """h with d′(λ+h) = slope on the face; ∞ if there is none.

        d²(λ+h) = d² + 2h⟨a, w⟩ + h²·curvature.
        """
        (i0, i1), (s0, s1, s2) = self._inner, self._squared
        return step(slope, max(s0 + ratio * (s1 + ratio * s2), 0.0), i0 + ratio * i1, self.curvature)


def line(Z: Floats, s: Floats) -> tuple[Floats, Floats]:
    """v1 and v0 of the best weights v = λ·v1 + v0, whose sums are 0 and 1; `s` holds the sums of Z's columns."""
    return Z[:, 0] - s[0] / s[2] * Z[:, 2], Z[:, 1] - (s[1] - 1) / s[2] * Z[:, 2]


def step(slope: float, squared: float, inner: float, curvature: float) -> float:
    """The same from d², ⟨a, w⟩ and the curvature."""
    if curvature <= slope**2:
        return inf
    lowest = max(squared - inner**2 / curvature, 0.0)
    return (slope * sqrt(lowest / (1 - slope**2 / curvature)) - inner) / curvature


def bounded(new: float, ratio: float, most: float) -> float:
    """λ − 1 changes by no more than threefold in a step, and λ stays below its limit and off 1, where steps end."""
    beyond = max(ratio - 1, _LEAST)
    return min(1 + min(max(new - 1, 0.3 * beyond, _LEAST), 3 * beyond), most)


def root_tolerance(ratio: float, squared: float, slope: float, curvature: float) -> float:
    """Gap, relative to d², that leaves 1 − 1/λ exact to about 1e-4: an error of the slope is divided by d″."""
    if not squared > 0 or not slope > 0:
        return 1e-8
    bend = max(curvature - slope**2, 0.0) / sqrt(squared)
    return min(1e-3, max(1e-4 * bend * ratio**2 / slope, 1e-8))


def product(K: Floats, v: Floats) -> Floats:
    """K v for a symmetric K: by the rows where v is not zero, if these are few; else only half of K is read."""
    F = np.flatnonzero(v)
    return np.asarray(v[F] @ K[F] if 3 * len(F) < len(v) else blas.dsymv(1.0, K.T, v))
