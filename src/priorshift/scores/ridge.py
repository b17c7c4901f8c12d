"""A score that is linear in random features: how it is made of them, and how it is computed without them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from priorshift.arrays import Floats

_BLOCK = 512  # rows whose features are held together


@dataclass(frozen=True)
class Features:
    """cos and sin of random projections, and a constant."""

    frequencies: Floats

    def __call__(self, rows: Floats) -> Floats:
        D = self.frequencies.shape[1]
        made = np.ones((len(rows), 2 * D + 1))
        for at in _blocks(len(rows)):
            # with t = tan(a/2), cos a = 2/(1+t²) − 1 and sin a = 2t/(1+t²): one slow function in place of two
            t = np.tan(rows[at] @ (self.frequencies / 2))
            twice = (2 / np.sqrt(D)) / (1 + t * t)
            np.subtract(twice, 1 / np.sqrt(D), out=made[at, :D])
            np.multiply(twice, t, out=made[at, D : 2 * D])
        return made


@dataclass(frozen=True, eq=False)
class Ridge:
    """A function of a row: Σ β_j cos(ω_j·x) + γ_j sin(ω_j·x), and a constant.

    Each pair is r cos(ω·x − φ), and cos a = 2/(1 + tan²(a/2)) − 1: one slow function for each frequency.

    Attributes
    ----------
    beta : ndarray of shape (2 × frequencies + 1,)
        β, γ and the constant, for features of norm √(1/frequencies) each.
    half : ndarray of shape (columns, frequencies)
        ω/2.
    phase : ndarray of shape (frequencies,)
        φ/2.
    twice : ndarray of shape (frequencies,)
        2r.
    constant : float
        With −Σ r.
    """

    beta: Floats
    half: Floats
    phase: Floats
    twice: Floats
    constant: float

    @classmethod
    def of(cls, features: Features, beta: Floats) -> Ridge:
        D = features.frequencies.shape[1]
        cosine, sine = beta[:D] / np.sqrt(D), beta[D : 2 * D] / np.sqrt(D)
        r = np.hypot(cosine, sine)
        return cls(beta, features.frequencies / 2, np.arctan2(sine, cosine) / 2, 2 * r, float(beta[-1] - r.sum()))

    def __call__(self, rows: Floats) -> Floats:
        scores = np.empty(len(rows))
        room = np.empty((min(_BLOCK, len(rows)), len(self.twice)))  # a new one for each block is slow to come by
        for at in _blocks(len(rows)):
            t = np.matmul(rows[at], self.half, out=room[: at.stop - at.start])
            t -= self.phase
            np.tan(t, out=t)
            t *= t
            t += 1
            np.divide(self.twice, t, out=t)
            scores[at] = t.sum(axis=1) + self.constant
        return scores


def _blocks(rows: int) -> Iterator[slice]:
    return (slice(k, min(k + _BLOCK, rows)) for k in range(0, rows, _BLOCK))
