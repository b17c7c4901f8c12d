"""Differentially private release: noise that hides any one row, and how much of it a budget (ε, δ) needs.

Two samples are neighbours if they differ in one row; so the number of rows is public. A release consists of one vector
of sums over rows, to which independent normal noise is added once. Let Δ, the sensitivity, be the largest Euclidean
distance that replacing one row can move this vector. Then the release is (ε, δ)-private if and only if

    Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ) ≤ δ

with σ the noise's standard deviation (the analytic Gaussian mechanism; Balle and Wang 2018). Whatever is computed from
a release afterwards is as private as the release.

Counts: a row that is replaced leaves one group and enters another, in each of K repetitions, so Δ² = 2K. Moments: with
c = z·z′ of the two rows' random features, which have length 1,

    ‖z − z′‖² + ½‖zzᵀ − z′z′ᵀ‖² = (2 − 2c) + (1 − c²) = 4 − (1 + c)² ≤ 4,

so that the sum of z together with that of zzᵀ/√2 has Δ = 2, as the sum of z has alone: second moments cost nothing.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import replace
from math import exp, expm1, floor, log2, log10, sqrt
from typing import Any, Self, TypeVar

import numpy as np
from scipy.special import log_ndtr, ndtri

from priorshift.arrays import Floats
from priorshift.embedding.moments import FeatureMoments
from priorshift.errors import InputError, PrivacyWarning
from priorshift.io.files import Fields
from priorshift.io.parameters import check_settings, is_number
from priorshift.scores.counts import GROUPS, ScoreCounts
from priorshift.sketch.container import Saveable
from priorshift.warning_records import warn

Budget = tuple[float | None, float | None]  # epsilon and delta; None and None without noise

MOMENTS_SENSITIVITY = 2.0  # of the sums of z and of zzᵀ/√2
# smallest and largest ε and δ, between which the noise is computed to nine digits
_EPSILON_RANGE, _DELTA_RANGE = (1e-6, 1e3), (1e-15, 1.0)
_GRID_DIGITS = 20  # binary digits of the noise that are kept: further digits of floats reveal how a sum was computed
_FILE_TOLERANCE = 1e-6  # relative amount by which noise in a file may be too small, for another machine's rounding
_MARGIN = 1e-8  # relative amount by which noise is larger than needed, for rounding in its computation
_LARGE_NOISE = 0.1  # standard deviation of a share, or squared length of a mean's noise, above which to warn


class Summary(Saveable):
    """A sketch or a histogram: numbers that summarise a sample, perhaps with noise that hides its rows."""

    epsilon: float | None  # budget of a private release; None without noise
    delta: float | None

    @abstractmethod
    def with_noise(self, epsilon: float, delta: float, random_state: Any) -> Self:
        """Return a copy with the noise of an (ε, δ)-private release."""

    def merged_budget(self, other: Summary) -> Budget:
        """Return the budget of two disjoint samples together: the larger ε and δ, since a row is in one of them.

        Raises InputError if only one of them is private.
        """
        if (self.epsilon is None) != (other.epsilon is None):
            raise InputError("one of the two is private and the other is not; release both, or merge them first.")
        if self.epsilon is None or self.delta is None or other.epsilon is None or other.delta is None:
            return None, None
        return max(self.epsilon, other.epsilon), max(self.delta, other.delta)

    @property
    def privacy_text(self) -> str:
        """The budget in words, for the summary's description; empty without noise."""
        return "" if self.epsilon is None else f", private (epsilon {self.epsilon:g}, delta {self.delta:g})"


_Summary = TypeVar("_Summary", bound=Summary)


def release(
    summary: _Summary, epsilon: float, delta: float, random_state: int | np.random.Generator | None = None
) -> _Summary:
    """Add noise that hides any one row: a differentially private sketch or histogram to be shared.

    It is (ε, δ)-private with respect to the replacement of one row, so the number of rows is public. An estimate
    includes the noise in its interval. Two releases of the same rows together need the sum of their budgets.

    What was fixed before is not private: the score model reveals something of the rows that it was fitted to, and the
    first sketch of those that fixed its columns and scale. Release samples that the model was not fitted to, and
    sketches made ``like`` one of public rows or of another party. The noise of a sketch grows with its number of
    features; use few, such as 256.

    Experimental: this function may change.

    Parameters
    ----------
    summary : Sketch or Histogram
        Summary of a sample, not yet private.
    epsilon, delta : float
        Privacy budget. Smaller values hide more and leave less precision. δ must be far below one over the number of
        rows.
    random_state : int, Generator or None
        Source of the noise. None, the default, draws from the operating system. A seed is for tests only: whoever knows
        it can remove the noise.

    Returns
    -------
    Sketch or Histogram
        A new summary of the same kind.

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift.experimental import release
    >>> from priorshift.sketch import Histogram, ScoreModel
    >>> s = ps.simulate.gaussian(source_prior=0.2, target_prior=0.6, shared=False, random_state=0)
    >>> model = ScoreModel.fit(s.positive, s.unlabeled, random_state=0)
    >>> P, U, T = (Histogram.from_sample(rows, model) for rows in (s.positive, s.unlabeled, s.target))
    >>> shared = release(T, epsilon=1, delta=1e-6, random_state=0)
    >>> print(shared)
    histogram of 2000 rows by a score model of 333 positives, private (epsilon 1, delta 1e-06)
    >>> print(ps.estimate_prior(P, U, shared, source_prior=0.2))
    target prior 0.606, 95% interval 0.574 to 0.637 (Witness, source prior 0.2)
    """
    if not isinstance(summary, Summary):
        raise InputError(f"release takes a Sketch or a Histogram, but got {type(summary).__name__}; make one first.")
    return summary.with_noise(epsilon, delta, random_state)


def gaussian_noise(sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the least standard deviation of normal noise that makes a release (ε, δ)-private, by bisection.

    `sensitivity` is Δ, the largest change of the released vector when one row is replaced. The search is for σ/Δ.
    """
    check_budget(epsilon, delta)
    low, high = 1.0, 1.0  # too small, and large enough, after the first two loops
    while privacy_loss(low, epsilon) <= delta:
        low /= 2
    while privacy_loss(high, epsilon) > delta:
        high *= 2
    while high - low > _MARGIN * low:
        middle = (low + high) / 2
        if privacy_loss(middle, epsilon) <= delta:
            high = middle
        else:
            low = middle
    return sensitivity * high * (1 + _MARGIN)


def privacy_loss(noise: float, epsilon: float) -> float:
    """Return the least δ for an ε, of normal noise with σ/Δ = `noise`: Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ)."""
    half, shift = 1 / (2 * noise), epsilon * noise
    log_first, log_second = float(log_ndtr(half - shift)), float(log_ndtr(-half - shift))
    # first − e^ε·second = −first·(e^(ε + log second − log first) − 1), by logarithms, since both may be tiny
    return -exp(log_first) * expm1(min(epsilon + log_second - log_first, 0.0))


def check_budget(epsilon: Any, delta: Any) -> None:
    """Raise InputError for an impossible privacy budget."""
    if not (is_number(epsilon) and _EPSILON_RANGE[0] <= epsilon <= _EPSILON_RANGE[1]):
        raise InputError(f"epsilon is {epsilon!r}, but it must be a number from 1e-6 to 1000; 1 is common.")
    if not (is_number(delta) and _DELTA_RANGE[0] <= delta < _DELTA_RANGE[1]):
        raise InputError(f"delta is {delta!r}, but it must be a number from 1e-15 to 1, far below 1/rows; try 1e-6.")


def read_budget(fields: Fields, noise: float, sensitivity: float, rows: int) -> Budget:
    """Read the budget (ε, δ) in a file; refuse noise that is too small for it, or larger than any budget needs.

    `noise` is a standard deviation, perhaps of up to `rows` merged samples, whose variances add up.
    """
    if fields.is_none("epsilon") and fields.is_none("delta"):
        return None, None
    epsilon, delta = fields.number("epsilon", *_EPSILON_RANGE), fields.number("delta", *_DELTA_RANGE)
    smallest = gaussian_noise(sensitivity, epsilon, delta)
    largest = gaussian_noise(sensitivity, _EPSILON_RANGE[0], _DELTA_RANGE[0])
    if not smallest * (1 - _FILE_TOLERANCE) <= noise <= largest * sqrt(rows):
        raise fields.refused(f"its noise is {noise:.4g}, which is not that of its budget")
    return epsilon, delta


def privacy_details(**samples: Summary) -> dict[str, Any]:
    """Return details of an estimate from samples given by name: under "private" the budget of every private sample.

    Empty if none of them is private.
    """
    budgets = {}
    for name, sample in samples.items():
        if sample.epsilon is not None:
            budgets[name] = {"epsilon": sample.epsilon, "delta": sample.delta}
    return {"private": budgets} if budgets else {}


def counts_sensitivity(repeats: int) -> float:
    """Return Δ of the counts: replacing a row changes two counts by 1 in each repetition, so Δ² = 2·repeats."""
    return sqrt(2 * repeats)


def add_noise_to_counts(counted: ScoreCounts, epsilon: float, delta: float, random_state: Any) -> ScoreCounts:
    """Add the noise of a private release to the counts of a sample.

    The bins are merged into nine groups whose widths double, since the noise is as large in a narrow group as in a wide
    one. Each repetition's counts add up to the number of rows, which is public.
    """
    check_budget(epsilon, delta)
    if counted.noise:
        raise InputError("the histogram is private already; release the original one, with the whole budget.")
    _warn_of_delta(delta, counted.rows)
    repeats = len(counted.counts)
    sigma = gaussian_noise(counts_sensitivity(repeats), epsilon, delta)
    noisy = add_gaussian_noise(counted.grouped, sigma, random_state)  # shape (repeats, groups)
    noisy += (counted.rows - noisy.sum(axis=1, keepdims=True)) / noisy.shape[1]  # counts add up to the rows again
    # standard deviation of the share of rows in about half of the groups, averaged over repetitions
    share_error = sigma / sqrt(repeats) * sqrt(GROUPS) / 2 / counted.rows
    if share_error > _LARGE_NOISE:
        effect = f"moves the share of {counted.rows} rows that look positive by about {share_error:.2g}"
        _warn_of_noise(epsilon, delta, effect, counted.rows * share_error / _LARGE_NOISE)
    return ScoreCounts.from_groups(counted.rows, noisy, sigma)


def add_noise_to_moments(moments: FeatureMoments, epsilon: float, delta: float, random_state: Any) -> FeatureMoments:
    """Add the noise of a private release to the sums of z and of zzᵀ, z being the random features of a row."""
    check_budget(epsilon, delta)
    check_settings({"random_state": random_state})
    if moments.noise:
        raise InputError("the sketch is private already; release the original one, with the whole budget.")
    if moments.is_weighted:
        raise InputError("the sketch has weights, so noise would not hide its rows; release one without weights.")
    _warn_of_delta(delta, moments.rows)
    sigma, D = gaussian_noise(MOMENTS_SENSITIVITY, epsilon, delta), len(moments.total)  # D random features
    rng = None if random_state is None else np.random.default_rng(random_state)
    total = add_gaussian_noise(moments.total, sigma, rng)
    # The released vector holds zzᵀ/√2 with σ in each entry. Off the diagonal each entry of zzᵀ occurs twice, so one
    # triangle of zzᵀ has the same norm and gets σ; the diagonal gets √2·σ.
    upper, diagonal = np.triu_indices(D, 1), np.diag_indices(D)
    product = np.empty((D, D))
    product[diagonal] = add_gaussian_noise(moments.product[diagonal], sqrt(2) * sigma, rng)
    product[upper] = add_gaussian_noise(moments.product[upper], sigma, rng)
    product.T[upper] = product[upper]
    length = sqrt(D) * sigma / moments.rows  # expected length of the noise in the mean
    if length**2 > _LARGE_NOISE:
        effect = f"has the length {length:.2g}, but the mean embedding of {moments.rows} rows is no longer than 1"
        _warn_of_noise(epsilon, delta, effect, moments.rows * length / sqrt(_LARGE_NOISE))
    return replace(moments, total=total, squared_total=total, product=product, noise=sigma)


def add_gaussian_noise(values: Floats, sigma: float, random_state: Any = None) -> Floats:
    """Add independent normal noise with standard deviation σ, and round the sums to a grid.

    Normal noise in floating point is not quite normal: the last digits of a sum can reveal the terms (Mironov 2012). So
    sums are rounded to a millionth of σ, far coarser than these digits. That is no proof, as discrete noise would have.
    """
    check_settings({"random_state": random_state})
    if random_state is None:
        normal = _system_normal(values.size).reshape(values.shape)
    else:
        normal = np.random.default_rng(random_state).normal(size=values.shape)
    grid = 2.0 ** (floor(log2(sigma)) - _GRID_DIGITS)  # a power of two, so that the division is exact
    return np.asarray(np.round((values + sigma * normal) / grid) * grid)


def _system_normal(count: int) -> Floats:
    """Draw standard normal numbers from the operating system, each from 64 bits: a sign and a magnitude."""
    bits = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
    # the upper 63 bits are a uniform number in (0, ½), whose normal quantile is negative; the last bit is the sign
    magnitude = -ndtri(((bits >> np.uint64(1)).astype(float) + 0.5) / 2.0**64)
    return np.where(bits & np.uint64(1), magnitude, -magnitude)


def _warn_of_delta(delta: float, rows: int) -> None:
    """Warn if δ ≥ 1/rows, since publishing one row at random would be as private."""
    if delta * rows >= 1:
        limit = f"publishing one of the {rows} rows at random has a delta of {1 / rows:.2g}"
        warn(f"delta is {delta:g}, but {limit}; pass a much smaller one.", PrivacyWarning)


def _warn_of_noise(epsilon: float, delta: float, effect: str, rows: float) -> None:
    """Warn that noise with this `effect` (a verb phrase) leaves hardly any information.

    `rows` is a number of rows that would suffice; the message rounds it up to two digits.
    """
    step = 10 ** max(floor(log10(rows)) - 1, 0)  # power of ten of the second digit
    warn(
        f"The noise for epsilon {epsilon:g} and delta {delta:g} {effect}, so hardly any information is left. Allow a "
        f"larger epsilon, use fewer features in a sketch, or release at least {int(-(-rows // step) * step)} rows.",
        PrivacyWarning,
    )
