"""The efficient witness h_r of a ratio r, as a function of p-values, and its mean over positives.

It is the function h with the smallest variance of R̂ if R = r (:mod:`priorshift.scores.ratio_test` has the formula),
and depends on a row through ρ = f_P/f_U alone.
"""

from __future__ import annotations

import numpy as np

from priorshift.arrays import Floats
from priorshift.scores import mixture

_LEAST_COUNT = 5.0  # smallest density of p-values in a bin, in rows of U


def density_ratio(prior: Floats, weights: Floats, rows: float) -> Floats:
    """Return ρ = f_P/f_U = 1/f_U in each bin of p-values, shape (repeats, bins).

    `prior` and `weights` are π and w of the mixture in each repetition; `rows` is the effective size of U.
    """
    f_U = prior[:, None] + (1 - prior[:, None]) * mixture.density(weights)
    return np.asarray(1 / np.maximum(f_U, _LEAST_COUNT / rows))


def efficient_witness(density_ratio: Floats, ratios: Floats, sizes: tuple[float, float, float]) -> Floats:
    """Return the efficient witness h_r in each bin, shape (repeats, ratios, bins), scaled to |h| ≤ 1.

    `density_ratio` is ρ, shape (repeats, bins); `sizes` are the effective sizes of P, U and T. With c_T = 1/n′,
    c_P = (1−r)²/m and c_U = r²/n, h_r = (1 − ρ)/(c_T((1−r)ρ + r) + c_P ρ + c_U).
    """
    rho, r = density_ratio[:, None, :], np.asarray(ratios, dtype=float)
    m, n, t = sizes
    c_T, c_P, c_U = 1 / t, ((1 - r) ** 2 / m)[:, None], (r**2 / n)[:, None]
    # (1−r)ρ + r is a density, so it is not negative, whatever r is
    h = (1 - rho) / (c_T * np.maximum((1 - r)[:, None] * rho + r[:, None], 0) + c_P * rho + c_U)
    h /= np.abs(h).max(axis=(0, 2), keepdims=True)
    return np.asarray(h)


def mean_over_ranks(h: Floats, positives: int, tie_shares: Floats) -> Floats:
    """Return E_P h, the mean of h over the ranks that a new positive can have among `positives`.

    Without ties all ranks 0 to `positives` are equally likely; `tie_shares` is what ties change. `h` has shape
    (repeats, functions, bins); the means have shape (repeats, functions, 1).
    """
    attainable = mixture.bins((np.arange(positives + 1) + 0.5) / (positives + 1))
    counts = np.bincount(attainable, minlength=mixture.BINS)
    return np.asarray((h @ counts)[:, :, None] / (positives + 1) + h @ tie_shares[:, :, None])


def tie_shares(counts: Floats) -> Floats:
    """Return the share of positives that ties add to each bin of the p-values, shape (repeats, bins); 0 without ties.

    `counts` are the numbers of positives in each bin, by their ranks among themselves. Positives with equal scores have
    the p-value of their middle rank, and so has a new positive with that score.
    """
    positives = round(float(counts[0].sum()))
    without_ties = mixture.histogram(np.arange(1, positives + 1) / (positives + 1))
    return np.asarray((counts - without_ties) / positives)
