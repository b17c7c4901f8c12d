"""TCPU's whole mathematics: a function of the 3 × 3 Gram matrix of the means of P, U and T.

With a = μ_U − μ_P and b = μ_T − μ_P, label shift says b = Ra with R = (1−π′)/(1−π).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from priorshift.arrays import Floats
from priorshift.embedding.gram import P, T, U


def numerator(gram: Floats) -> Floats:
    """N = ⟨μ_U − μ_P, μ_T − μ_P⟩ of one Gram matrix or a stack of them."""
    return np.asarray(gram[..., U, T] - gram[..., P, U] - gram[..., P, T] + gram[..., P, P])


def separation(gram: Floats) -> Floats:
    """D = ‖μ_U − μ_P‖² of one Gram matrix or a stack of them."""
    return np.asarray(gram[..., U, U] - 2 * gram[..., P, U] + gram[..., P, P])


def ratio(gram: Floats) -> float:
    """R = ⟨a, b⟩/⟨a, a⟩, the projection of b on a; NaN where a vanishes. ⟨μ_T, μ_T⟩ is not needed."""
    N, D = float(numerator(gram)), float(separation(gram))
    return N / D if D else float("nan")


def target_prior(gram: Floats, source_prior: float) -> float:
    """π̂′ = 1 − (1−π)R, not clipped (the paper's Lemma 2).

    Examples
    --------
    Along a line with the positives at 1 and the negatives at 0, a population's mean is its prior.

    >>> import numpy as np
    >>> from priorshift.embedding.projection import target_prior
    >>> means = np.array([1.0, 0.2, 0.5])  # P, U with π = 0.2, T with π′ = 0.5
    >>> round(target_prior(np.outer(means, means), source_prior=0.2), 12)
    0.5
    """
    return 1 - (1 - source_prior) * ratio(gram)


def objective(gram: Floats, source_prior: float, gamma: ArrayLike) -> NDArray[np.float64]:
    """The paper's objective L(γ) = ‖Δ − γa‖² with Δ = μ_U − πμ_P − (1−π)μ_T (its equation 3).

    `gram` must hold ⟨μ_T, μ_T⟩. With unbiased entries L estimates a squared distance without bias and can
    fall below zero.
    """
    w = np.array([-source_prior, 1.0, -(1 - source_prior)])[:, None] - np.outer([-1.0, 1.0, 0.0], np.ravel(gamma))
    return np.einsum("jg,jk,kg->g", w, gram, w).reshape(np.shape(gamma))
