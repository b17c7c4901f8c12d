"""Differentially private releases: noise that hides any one row, and how much of it (ε, δ) asks for.

Neighbours are two samples of which one row is another; so the number of rows is public. All that a release tells of the
rows is one vector, to which independent normal noise is added once. Let Δ be the most that one row can move it, in
Euclidean length. Then the release is (ε, δ)-private if and only if

    Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ) ≤ δ

with σ the noise's standard deviation (the analytic Gaussian mechanism; Balle and Wang 2018). Whatever is computed from
a release afterwards is as private as it is.

Of counts, a row that is replaced leaves one group and enters another, in each of K repetitions: Δ² = 2K. Of moments,
with c = z·z′ of the two rows' random features, of length 1,

    ‖z − z′‖² + ½‖zzᵀ − z′z′ᵀ‖² = (2 − 2c) + (1 − c²) = 4 − (1 + c)² ≤ 4,

so that the sum of z together with that of zzᵀ/√2 has Δ = 2, as the sum of z has by itself: second moments cost nothing.
"""

from __future__ import annotations

import os
from dataclasses import replace
from math import exp, expm1, floor, log2, log10, sqrt
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtri

from priorshift.arrays import Floats
from priorshift.embedding.moments import FeatureMoments
from priorshift.errors import InputError, PrivacyWarning
from priorshift.io.header_fields import Fields
from priorshift.io.parameters import check_random_state, is_number
from priorshift.scores.counts import GROUPS, ScoreCounts
from priorshift.warning_records import warn

Budget = tuple[float | None, float | None]  # epsilon and delta; None of what is not private

OF_MOMENTS = 2.0  # Δ of the sums of z and of zzᵀ/√2
_EPSILON, _DELTA = (1e-6, 1e3), (1e-15, 1.0)  # where the noise is computed to nine digits
_ROUNDED = 20  # binary digits of the noise that are kept: the digits of floats beyond tell how a sum was made
_STORED = 1e-6  # by which noise in a file may be less than it must be, for another machine's rounding
_MARGIN = 1e-8  # by which noise is larger than it must be, for rounding in its computation
# the standard deviation of a share, or the squared length of a mean's noise, from which on a warning speaks
_DROWNED = 0.1


def gaussian_noise(sensitivity: float, epsilon: float, delta: float) -> float:
    """Compute the least standard deviation of normal noise that makes a release (ε, δ)-private.

    Parameters
    ----------
    sensitivity : float
        Δ, the most that replacing one row moves what is released, in Euclidean length.
    epsilon, delta : float
        The budget.

    Returns
    -------
    float
        σ.

    Examples
    --------
    >>> from math import log, sqrt
    >>> from priorshift.sketch.private import gaussian_noise
    >>> print(round(gaussian_noise(1.0, epsilon=1.0, delta=1e-6), 2))
    4.22
    >>> print(round(sqrt(2 * log(1.25 / 1e-6)), 2))  # the classical bound, which holds for ε below 1
    5.3
    """
    check_budget(epsilon, delta)
    low, high = 1.0, 1.0
    while privacy_loss(low, epsilon) <= delta:
        low /= 2
    while privacy_loss(high, epsilon) > delta:
        high *= 2
    while high - low > _MARGIN * low:
        middle = (low + high) / 2
        low, high = (low, middle) if privacy_loss(middle, epsilon) <= delta else (middle, high)
    return sensitivity * high * (1 + _MARGIN)


def privacy_loss(noise: float, epsilon: float) -> float:
    """Compute the least δ of normal noise, for an ε.

    Parameters
    ----------
    noise : float
        σ/Δ.
    epsilon : float
        ε.

    Returns
    -------
    float
        δ.
    """
    half, shift = 1 / (2 * noise), epsilon * noise
    of_first, of_second = float(log_ndtr(half - shift)), float(log_ndtr(-half - shift))
    return -exp(of_first) * expm1(min(epsilon + of_second - of_first, 0.0))  # of two logs, which small ones need


def check_budget(epsilon: Any, delta: Any) -> None:
    """Refuse a budget that cannot be.

    Parameters
    ----------
    epsilon, delta : object
        As a user passes them.
    """
    if not (is_number(epsilon) and _EPSILON[0] <= epsilon <= _EPSILON[1]):
        raise InputError(
            f"epsilon is {epsilon!r}, but it must be a positive number (1e-6 to 1000); 1 is common, less hides more."
        )
    if not (is_number(delta) and _DELTA[0] <= delta < _DELTA[1]):
        raise InputError(
            f"delta is {delta!r}, but it must be a number between 0 and 1 (at least 1e-15), far below one over the "
            "number of rows; try 1e-6."
        )


def merged_budget(first: Budget, second: Budget) -> Budget:
    """Give the budget of two disjoint samples together: each release is as private as it was.

    Parameters
    ----------
    first, second : tuple of epsilon and delta
        None and None of what is not private.

    Returns
    -------
    tuple of epsilon and delta
    """
    (epsilon, delta), (other_epsilon, other_delta) = first, second
    if epsilon is None or delta is None or other_epsilon is None or other_delta is None:
        if (epsilon is None) != (other_epsilon is None):
            raise InputError(
                "one of the two is private and the other is not, and together they would be neither; release both, or "
                "merge first and release what comes out."
            )
        return None, None
    return max(epsilon, other_epsilon), max(delta, other_delta)


def stored_budget(fields: Fields, noise: float, sensitivity: float, rows: int) -> Budget:
    """Read the budget in a file; noise that is less than it asks for, or more than any does, is refused.

    Parameters
    ----------
    fields : Fields
        With "epsilon" and "delta".
    noise : float
        σ; of samples that were merged, the root of the sum of the squares of theirs.
    sensitivity : float
        Δ.
    rows : int
        Which may be the number of such samples.

    Returns
    -------
    tuple of epsilon and delta
    """
    if fields.is_none("epsilon") and fields.is_none("delta"):
        return None, None
    epsilon, delta = fields.number("epsilon", *_EPSILON), fields.number("delta", *_DELTA)
    least, most = gaussian_noise(sensitivity, epsilon, delta), gaussian_noise(sensitivity, _EPSILON[0], _DELTA[0])
    if not least * (1 - _STORED) <= noise <= most * sqrt(rows):
        raise fields.refused(f"its noise is {noise:.4g}, which is not that of its budget")
    return epsilon, delta


def said_of(epsilon: float | None, delta: float | None) -> str:
    """Say of a summary whether it is private.

    Parameters
    ----------
    epsilon, delta : float or None
        The budget.

    Returns
    -------
    str
    """
    return "" if epsilon is None else f", private (epsilon {epsilon:g}, delta {delta:g})"


def budgets(**samples: Any) -> dict[str, Any]:
    """Give what an estimate's details say of private samples.

    Parameters
    ----------
    **samples : Sketch or Histogram
        By their names.

    Returns
    -------
    dict
        Empty where none is private; else with "private", the budget of each one that is.
    """
    found = {
        name: {"epsilon": one.epsilon, "delta": one.delta} for name, one in samples.items() if one.epsilon is not None
    }
    return {"private": found} if found else {}


def of_counts(repeats: int) -> float:
    """Compute how far one row moves the counts of so many repetitions, at most.

    Parameters
    ----------
    repeats : int
        K.

    Returns
    -------
    float
        Δ.
    """
    return sqrt(2 * repeats)


def released_counts(counted: ScoreCounts, epsilon: float, delta: float, random_state: Any = None) -> ScoreCounts:
    """Add noise to the counts of a sample, so that no row shows.

    The bins are put together to nine groups whose widths double: noise is as large in a wide one as in a narrow one.
    Each repetition's counts add up to the number of rows again, which is public.

    Parameters
    ----------
    counted : ScoreCounts
        Of a sample.
    epsilon, delta : float
        The budget.
    random_state : int, Generator or None
        As in :meth:`priorshift.sketch.Histogram.release`.

    Returns
    -------
    ScoreCounts
        In groups, without pairs and levels.
    """
    check_budget(epsilon, delta)
    if counted.noise:
        raise InputError("the histogram is private already; release the one it was made of, with the whole budget.")
    _warn_of_delta(delta, counted.rows)
    repeats = len(counted.counts)
    sigma = gaussian_noise(of_counts(repeats), epsilon, delta)
    noisy = with_noise(counted.grouped, sigma, random_state)
    noisy += (counted.rows - noisy.sum(axis=1, keepdims=True)) / noisy.shape[1]
    share = sigma / sqrt(repeats) * sqrt(GROUPS) / 2 / counted.rows
    if share > _DROWNED:
        warn(
            f"The noise for epsilon {epsilon:g} and delta {delta:g} moves the share of {counted.rows} rows that look "
            f"positive by about {share:.2g}, so hardly anything of them is left; allow a larger epsilon, or release "
            f"{_more(counted.rows * share / _DROWNED)} rows and more.",
            PrivacyWarning,
        )
    return ScoreCounts.from_groups(counted.rows, noisy, sigma)


def released_moments(moments: FeatureMoments, epsilon: float, delta: float, random_state: Any = None) -> FeatureMoments:
    """Add noise to the moments of a sample's random features, so that no row shows.

    Parameters
    ----------
    moments : Moments
        Of a sample, of which every row counts one.
    epsilon, delta : float
        The budget.
    random_state : int, Generator or None
        As in :meth:`priorshift.sketch.Sketch.release`.

    Returns
    -------
    Moments
    """
    check_budget(epsilon, delta)
    check_random_state(random_state)
    if moments.noise:
        raise InputError("the sketch is private already; release the one it was made of, with the whole budget.")
    if moments.is_weighted:
        raise InputError(
            "the sketch has weights, and a row of a large weight would need more noise than any bound on it tells; "
            "release a sketch without weights."
        )
    _warn_of_delta(delta, moments.rows)
    sigma, D = gaussian_noise(OF_MOMENTS, epsilon, delta), len(moments.total)
    rng = None if random_state is None else np.random.default_rng(random_state)
    total = with_noise(moments.total, sigma, rng)
    # ‖zzᵀ‖ has each entry beside the diagonal twice: √2 times as much of one triangle, which gets the same noise
    upper, diagonal = np.triu_indices(D, 1), np.diag_indices(D)
    product = np.empty((D, D))
    product[diagonal] = with_noise(moments.product[diagonal], sqrt(2) * sigma, rng)
    product[upper] = with_noise(moments.product[upper], sigma, rng)
    product.T[upper] = product[upper]
    length = sqrt(D) * sigma / moments.rows
    if length**2 > _DROWNED:
        warn(
            f"The noise for epsilon {epsilon:g} and delta {delta:g} has the length {length:.2g} beside the mean "
            f"embedding of {moments.rows} rows, which is no longer than 1, so hardly anything of them is left; allow a "
            f"larger epsilon, take fewer features, or release {_more(moments.rows * length / sqrt(_DROWNED))} rows and "
            "more.",
            PrivacyWarning,
        )
    return replace(moments, total=total, squared_total=total, product=product, noise=sigma)


def with_noise(values: Floats, sigma: float, random_state: Any = None) -> Floats:
    """Add independent normal noise to numbers, and round what comes out.

    Noise of floats is not quite normal: the last digits of a sum can tell what was added up (Mironov 2012). So sums are
    rounded to a grid, a millionth of σ, far coarser than these digits. That is no proof, as discrete noise would have.

    Parameters
    ----------
    values : ndarray
        Of any shape.
    sigma : float
        The noise's standard deviation.
    random_state : int, Generator or None
        None draws from the randomness of the operating system, which nobody can foresee.

    Returns
    -------
    ndarray
        Of the same shape.
    """
    check_random_state(random_state)
    if random_state is None:
        drawn = _system_normal(values.size).reshape(values.shape)
    else:
        drawn = np.random.default_rng(random_state).normal(size=values.shape)
    grid = 2.0 ** (floor(log2(sigma)) - _ROUNDED)
    return np.asarray(np.round((values + sigma * drawn) / grid) * grid)


def _system_normal(count: int) -> Floats:
    """Standard normal numbers, each from 64 random bits: a sign, and how far out it lies."""
    bits = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
    size = -ndtri(((bits >> np.uint64(1)).astype(float) + 0.5) / 2.0**64)
    return np.where(bits & np.uint64(1), size, -size)


def _warn_of_delta(delta: float, rows: int) -> None:
    if delta * rows >= 1:
        warn(
            f"delta is {delta:g}, but to publish one of the {rows} rows by lot has a delta of {1 / rows:.2g}; pass far "
            "less than that.",
            PrivacyWarning,
        )


def _more(rows: float) -> int:
    """A number of rows in two digits."""
    step = 10 ** max(floor(log10(rows)) - 1, 0)
    return int(-(-rows // step) * step)
