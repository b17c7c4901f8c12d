"""TCPU's whole mathematics: a function of the 3 × 3 Gram matrix of the means of P, U and T.

With a = μ_U − μ_P and b = μ_T − μ_P, label shift says b = Ra with R = (1−π′)/(1−π).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from priorshift.embeddings import P, T, U
from priorshift.kernels import Matrix


def numerator(gram: Matrix) -> Matrix:
    """N = ⟨μ_U − μ_P, μ_T − μ_P⟩ of one Gram matrix or a stack of them."""
    return np.asarray(gram[..., U, T] - gram[..., P, U] - gram[..., P, T] + gram[..., P, P])


def separation(gram: Matrix) -> Matrix:
    """D = ‖μ_U − μ_P‖² of one Gram matrix or a stack of them."""
    return np.asarray(gram[..., U, U] - 2 * gram[..., P, U] + gram[..., P, P])


class Projection(NamedTuple):
    """Target prior (unclipped), ratio of negative shares R, separation ‖a‖²."""

    raw: float
    ratio: float
    separation: float


def project(gram: Matrix, source_prior: float) -> Projection:
    """Project b on a: R = ⟨a, b⟩/⟨a, a⟩ = (1−π′)/(1−π), π̂′ = 1 − (1−π)R (the paper's Lemma 2).

    Parameters
    ----------
    gram : ndarray of shape (3, 3)
        Gram matrix of the means of P, U and T; ⟨μ_T, μ_T⟩ is not needed.
    source_prior : float
        π.

    Examples
    --------
    Along a line with the positives at 1 and the negatives at 0, a population's mean is its prior.

    >>> import numpy as np
    >>> from priorshift.projection import project
    >>> means = np.array([1.0, 0.2, 0.5])  # P, U with π = 0.2, T with π′ = 0.5
    >>> round(project(np.outer(means, means), source_prior=0.2).raw, 12)
    0.5
    """
    N, D = float(numerator(gram)), float(separation(gram))
    R = N / D if D else float("nan")
    return Projection(1 - (1 - source_prior) * R, R, D)


def objective(gram: Matrix, source_prior: float, gamma: ArrayLike) -> NDArray[np.float64]:
    """The paper's objective L(γ) = ‖Δ − γa‖² with Δ = μ_U − πμ_P − (1−π)μ_T (its equation 3).

    `gram` must hold ⟨μ_T, μ_T⟩. With unbiased entries L estimates a squared distance without bias and can
    fall below zero.
    """
    w = np.array([-source_prior, 1.0, -(1 - source_prior)])[:, None] - np.outer([-1.0, 1.0, 0.0], np.ravel(gamma))
    return np.einsum("jg,jk,kg->g", w, gram, w).reshape(np.shape(gamma))
