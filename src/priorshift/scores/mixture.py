"""Conformal p-values, and the mixture that they follow, fitted by maximum likelihood.

The p-value v of a row is the rank of its score among those of the positives: uniform for positives, whatever the score
is, and near 0 for negatives. So v has the density π + (1−π)g in the population and π′ + (1−π′)g in the target, with the
same g: π is the "proportion of true nulls" of multiple testing. Irreducibility, some scores that positives alone have,
is g(1) = 0. Here g = Σ w_k Beta(1, k), k ≥ 3, which is decreasing, convex and zero at 1; π and w maximise the
likelihood of binned values, by EM, which is concave in (π, (1−π)w).

All functions work on one histogram (bins,) or on many (…, bins).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index


def p_values(
    positive: Floats,
    scores: Floats,
    mass: Floats | None = None,
    worth: float | None = None,
    *,
    in_order: bool = False,
) -> Floats:
    """(rank + ½)/(m + 1) of each score among the positives', ties counted half.

    Where positives count differently, with a `mass` that sums to 1, m is what they are worth, and a rank m times the
    mass below. Positives `in_order` are not sorted again.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.scores.mixture import p_values
    >>> p_values(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 9.0]))
    array([0.125, 0.5  , 0.875])
    """
    if mass is None:
        ranked, m = positive if in_order else np.sort(positive), float(len(positive))
        first, end = _ranks(ranked, scores)
        below = (first + end) / 2
    else:
        order = np.argsort(positive, kind="stable")
        ranked, m = positive[order], len(positive) if worth is None else worth
        first, end = _ranks(ranked, scores)
        up_to = m * np.concatenate([[0.0], np.cumsum(mass[order])])
        below = (up_to[first] + up_to[end]) / 2
    return np.asarray((below + 0.5) / (m + 1))


def _ranks(ranked: Floats, scores: Floats) -> tuple[Index, Index]:
    """How many are below each score, and how many are not above it; the second is searched for among ties alone."""
    first = np.searchsorted(ranked, scores, "left")
    tied = np.flatnonzero(ranked[np.minimum(first, len(ranked) - 1)] == scores)
    end = first.copy()
    end[tied] = np.searchsorted(ranked, scores[tied], "right")
    return first, end


BINS = 200
_ORDERS = np.array([3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256])
_EDGES = np.linspace(0, 1, BINS + 1)
_BETA = BINS * np.diff(1 - (1 - _EDGES[:, None]) ** _ORDERS, axis=0)  # mean density in each bin
ITERATIONS = 400
_LEAST = 1e-12
_ENDS = (1e-4, 1 - 1e-4)  # of a prior: at 0 and 1 themselves EM stands still


def bins(values: Floats) -> NDArray[np.intp]:
    """The bin of each p-value."""
    return np.minimum((values * BINS).astype(np.intp), BINS - 1)


def histogram(values: Floats, weights: NDArray[Any] | None = None) -> Floats:
    """Counts of p-values in the bins."""
    return np.bincount(bins(values), weights, BINS).astype(float)


def density(weights: Floats) -> Floats:
    """g in each bin."""
    return np.asarray(weights @ _BETA.T)


def fit_one(counts: Floats, iterations: int = ITERATIONS) -> tuple[Floats, Floats]:
    """π and w of each histogram.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.scores.mixture import fit_one, histogram
    >>> rng = np.random.default_rng(0)
    >>> v = np.concatenate([rng.random(4000), rng.beta(1, 20, 6000)])
    >>> print(fit_one(histogram(v))[0].round(1))
    0.4
    """
    pi, w = _begin(counts)
    n = counts.sum(axis=-1)
    for _ in range(iterations):
        share = counts / _mixed(pi, np.maximum(density(w), _LEAST))
        w = _shares(w * (share @ _BETA), w)
        pi = np.clip(pi * share.sum(axis=-1) / n, *_ENDS)
    return pi, w


def _mixed(prior: Floats, g: Floats) -> Floats:
    """The density of a sample; it cannot vanish, since g is kept from it."""
    mixed = g * (1 - prior)[..., None]
    mixed += prior[..., None]
    return np.asarray(mixed)


def _shares(mass: Floats, before: Floats) -> Floats:
    """Of the components; as before where no negatives are left to divide."""
    total = mass.sum(axis=-1, keepdims=True)
    return np.where(total > 0, mass / np.where(total > 0, total, 1.0), before)


def _begin(counts: Floats) -> tuple[Floats, Floats]:
    shape = counts.shape[:-1]
    return np.full(shape, 0.5), np.full((*shape, len(_ORDERS)), 1 / len(_ORDERS))
