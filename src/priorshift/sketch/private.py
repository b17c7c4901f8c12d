"""Differentially private release: noise that hides any one row, and how much of it a budget (ε, δ) needs.

Two samples are neighbours if they differ in one row; so the number of rows is public. A release consists of one vector
of sums over rows, to which independent noise is added once. Let Δ, the sensitivity, be the largest Euclidean distance
that replacing one row can move this vector. With normal noise the release is (ε, δ)-private if and only if

    Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ) ≤ δ

with σ the noise's standard deviation (the analytic Gaussian mechanism; Balle and Wang 2018). Whatever is computed from
a release afterwards is as private as the release.

Counts: a row that is replaced leaves one group and enters another, in each of K repetitions, so Δ² = 2K. Moments: with
c = z·z′ of the two rows' random features, which have length 1,

    ‖z − z′‖² + ½‖zzᵀ − z′z′ᵀ‖² = (2 − 2c) + (1 − c²) = 4 − (1 + c)² ≤ 4,

so that the sum of z together with that of zzᵀ/√2 has Δ = 2, as the sum of z has alone: second moments cost nothing.

The noise is discrete normal (Canonne, Kamath and Steinke 2020): multiples x of a grid g = 2^k with probabilities
proportional to exp(−x²/2σ²), drawn exactly, by whole random numbers alone. Noise computed in floating point is not
normal in its last digits, which can reveal the sum (Mironov 2012), nor in its tails, and no proof holds for it. σ is at
least 2²⁸ g, so that the sum over the grid that gives δ differs from the integral above by a share of about (g/σ)² times
the squared number of standard errors at which the two terms are compared, which is less than the margin on σ. Counts
are multiples of g. Moments are rounded to the grid first, which moves each of d numbers by at most g/2, so that Δ is
larger by at most g√d. The rounding errors within the sums of the moments themselves are not accounted for.
"""

from __future__ import annotations

import os
import re
import secrets
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, exp, expm1, floor, log2, log10, sqrt
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from priorshift.arrays import Floats, Mask
from priorshift.embedding.moments import FeatureMoments
from priorshift.errors import InputError, PrivacyWarning
from priorshift.io.files import Fields
from priorshift.io.parameters import check_settings, is_number
from priorshift.scores.counts import GROUPS, ScoreCounts
from priorshift.sketch.container import Saveable
from priorshift.warning_records import warn

Draw = Callable[[int, int], NDArray[np.uint64]]  # draws integers uniformly below a bound; second argument: how many

MOMENTS_SENSITIVITY = 2.0  # of the sums of z and of zzᵀ/√2, before rounding
# smallest and largest ε and δ, between which the noise is computed to nine digits
_EPSILON_RANGE, _DELTA_RANGE = (1e-6, 1e3), (1e-15, 1.0)
_GRID_DIGITS = 28  # binary digits of σ in units of the grid: its square, also for √2·σ and rounding, needs 62 bits
_MAX_ROUNDING = 1.0  # largest relative increase of σ because moments are rounded to the grid
_BATCH = 1 << 17  # numbers that are drawn at a time
_SMALL_BOUND = 256  # of integers that 16 random bits suffice for
_FILE_TOLERANCE = 1e-6  # relative amount by which noise in a file may be too small, for another machine's rounding
_MARGIN = 1e-8  # relative amount by which noise is larger than needed, for rounding in its computation
_LARGE_NOISE = 0.1  # standard deviation of a share, or squared length of a mean's noise, above which to warn
_RELEASE = re.compile("[0-9a-f]{32}")  # 128 random bits in hexadecimal


@dataclass(frozen=True)
class Privacy:
    """Budget and origin of the noise in a summary."""

    epsilon: float
    delta: float
    releases: frozenset[str]  # random identifier of each release that was merged, to recognise copies
    seeded: bool  # whether noise was drawn from a seed, which can be guessed, so that nothing is private

    @classmethod
    def for_release(cls, epsilon: float, delta: float, random_state: Any) -> Privacy:
        """Describe a new release, whose noise is drawn from `random_state`."""
        identifier = secrets.token_hex(16)
        return cls(float(epsilon), float(delta), frozenset([identifier]), seeded=random_state is not None)

    @classmethod
    def read(cls, fields: Fields, noise: float, sensitivity: float, rows: int) -> Privacy | None:
        """Read the header of a file, None if it is not private; refuse noise that is not that of its budget.

        `noise` is a standard deviation, perhaps of several merged releases, whose variances add up and each of which
        has at least one of the `rows`. `sensitivity` is Δ before rounding.
        """
        releases = fields.texts("releases")
        if fields.is_none("epsilon") and fields.is_none("delta") and not releases:
            return None
        epsilon, delta = fields.number("epsilon", *_EPSILON_RANGE), fields.number("delta", *_DELTA_RANGE)
        if not (1 <= len(releases) <= rows and all(map(_RELEASE.fullmatch, releases))):
            raise fields.refused("'releases' is not a list of identifiers of releases")
        smallest = gaussian_noise(sensitivity, epsilon, delta)
        largest = (1 + _MAX_ROUNDING) * gaussian_noise(sensitivity, _EPSILON_RANGE[0], _DELTA_RANGE[0])
        if not smallest * (1 - _FILE_TOLERANCE) <= noise / sqrt(len(releases)) <= largest:
            raise fields.refused(f"its noise is {noise:.4g}, which is not that of its budget")
        return cls(epsilon, delta, frozenset(releases), seeded=False)

    def merge(self, other: Privacy) -> Privacy:
        """Return the privacy of two disjoint samples together: the larger ε and δ, since a row is in one of them."""
        if self.releases & other.releases:
            raise InputError("the same private release is in both, so its rows would count twice; merge it once.")
        epsilon, delta = max(self.epsilon, other.epsilon), max(self.delta, other.delta)
        return Privacy(epsilon, delta, self.releases | other.releases, self.seeded or other.seeded)

    def __str__(self) -> str:
        """Return the budget in words, after a comma, for a summary's description."""
        kind = "not private, since its noise is from a seed" if self.seeded else "private"
        return f", {kind} (epsilon {self.epsilon:g}, delta {self.delta:g})"


class Summary(Saveable):
    """A sketch or a histogram: numbers that summarise a sample, perhaps with noise that hides its rows."""

    privacy: Privacy | None  # of a release; None without noise

    @abstractmethod
    def with_noise(self, epsilon: float, delta: float, random_state: Any) -> Self:
        """Return a copy with the noise of an (ε, δ)-private release."""

    @property
    def epsilon(self) -> float | None:
        """Budget ε of a private release; None without noise."""
        return None if self.privacy is None else self.privacy.epsilon

    @property
    def delta(self) -> float | None:
        """Budget δ of a private release; None without noise."""
        return None if self.privacy is None else self.privacy.delta

    def merged_privacy(self, other: Summary) -> Privacy | None:
        """Return the privacy of two disjoint samples together; raise InputError if only one of them is private."""
        if self.privacy is None and other.privacy is None:
            return None
        if self.privacy is None or other.privacy is None:
            raise InputError("one of the two is private and the other is not; release both, or merge them first.")
        return self.privacy.merge(other.privacy)

    def privacy_header(self) -> dict[str, Any]:
        """Return what a file stores of the privacy; raise InputError for noise from a seed, which hides nothing."""
        if self.privacy is None:
            return {"epsilon": None, "delta": None, "releases": []}
        if self.privacy.seeded:
            raise InputError(
                "the noise of this release was drawn from a seed, which can be guessed, so it cannot be saved as a "
                "private file; call release without random_state."
            )
        return {"epsilon": self.epsilon, "delta": self.delta, "releases": sorted(self.privacy.releases)}

    @property
    def privacy_text(self) -> str:
        """The budget in words, for the summary's description; empty without noise."""
        return "" if self.privacy is None else str(self.privacy)


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
        Source of the noise. None, the default, draws from the operating system. A seed is for simulations: it can be
        guessed, and whoever has it can remove the noise. A release from a seed therefore cannot be saved.

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
    >>> print(release(T, epsilon=1, delta=1e-6))
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


def privacy_details(**samples: Summary) -> dict[str, Any]:
    """Return details of an estimate from samples given by name: under "private" the budget of every private sample.

    Empty if none of them is private. A sample with noise from a seed is not, since the seed can be guessed.
    """
    budgets = {}
    for name, sample in samples.items():
        if sample.privacy is not None and not sample.privacy.seeded:
            budgets[name] = {"epsilon": sample.epsilon, "delta": sample.delta}
    return {"private": budgets} if budgets else {}


def counts_sensitivity(repeats: int) -> float:
    """Return Δ of the counts: replacing a row changes two counts by 1 in each repetition, so Δ² = 2·repeats."""
    return sqrt(2 * repeats)


def moments_noise(features: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Return σ of the moments, and the grid to which they are rounded, which makes Δ and σ larger."""
    sigma = gaussian_noise(MOMENTS_SENSITIVITY, epsilon, delta)
    grid, numbers = grid_of(sigma), features + features * (features + 1) // 2  # of Σz and one triangle of Σzzᵀ
    rounding = grid * sqrt(numbers) / MOMENTS_SENSITIVITY
    if rounding > _MAX_ROUNDING:
        advice = "pass a larger one, use fewer features, or release a histogram"
        raise InputError(f"epsilon is {epsilon:g}, too small for a sketch of {features} features; {advice}.")
    return sigma * (1 + rounding), grid


def grid_of(sigma: float) -> float:
    """Return the grid of discrete noise, a power of two, so that σ is at least 2²⁸ and less than 2²⁹ times as large."""
    return float(2.0 ** (floor(log2(sigma)) - _GRID_DIGITS))


def add_noise_to_counts(counted: ScoreCounts, epsilon: float, delta: float, random_state: Any) -> ScoreCounts:
    """Add the noise of a private release to the counts of a sample.

    The bins are merged into nine groups whose widths double, since the noise is as large in a narrow group as in a wide
    one. Each repetition's counts add up to the number of rows, which is public.
    """
    check_budget(epsilon, delta)
    draw = integer_source(random_state)
    if counted.noise:
        raise InputError("the histogram is private already; release the original one, with the whole budget.")
    _warn_of_delta(delta, counted.rows)
    repeats = len(counted.counts)
    sigma = gaussian_noise(counts_sensitivity(repeats), epsilon, delta)
    noisy = add_discrete_noise(counted.grouped, sigma, min(grid_of(sigma), 1.0), draw)  # shape (repeats, groups)
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
    draw = integer_source(random_state)
    if moments.noise:
        raise InputError("the sketch is private already; release the original one, with the whole budget.")
    if moments.is_weighted:
        raise InputError("the sketch has weights, so noise would not hide its rows; release one without weights.")
    _warn_of_delta(delta, moments.rows)
    D = len(moments.total)  # random features
    sigma, grid = moments_noise(D, epsilon, delta)
    # The released vector holds zzᵀ/√2 with σ in each entry. Off the diagonal each entry of zzᵀ occurs twice, so one
    # triangle of zzᵀ has the same norm and gets σ; the diagonal gets √2·σ.
    upper, diagonal = np.triu_indices(D, 1), np.diag_indices(D)
    product = np.empty((D, D))
    product[diagonal] = add_discrete_noise(moments.product[diagonal], sqrt(2) * sigma, grid, draw)
    others = np.concatenate([moments.total, moments.product[upper]])
    total, product[upper] = np.split(add_discrete_noise(others, sigma, grid, draw), [D])
    product.T[upper] = product[upper]
    length = sqrt(D) * sigma / moments.rows  # expected length of the noise in the mean
    if length**2 > _LARGE_NOISE:
        effect = f"has the length {length:.2g}, but the mean embedding of {moments.rows} rows is no longer than 1"
        _warn_of_noise(epsilon, delta, effect, moments.rows * length / sqrt(_LARGE_NOISE))
    return replace(moments, total=total, squared_total=total, product=product, noise=sigma)


def add_discrete_noise(values: Floats, sigma: float, grid: float, draw: Draw) -> Floats:
    """Round numbers to the grid, a power of two, and add discrete normal noise with standard deviation σ.

    All is exact but the last addition, which rounds the exact sum, whatever its terms are, to a floating-point number.
    """
    noise = discrete_normal(values.size, ceil(sigma / grid), draw).reshape(values.shape)
    return np.asarray(np.rint(values / grid) * grid + noise * grid)


def discrete_normal(count: int, scale: int, draw: Draw) -> NDArray[np.int64]:
    """Draw integers x with probabilities proportional to exp(−x²/2s²), s = `scale`, exactly (Karney 2016).

    With |x| = ks + j and 0 ≤ j < s, exp(−x²/2s²) = exp(−k²/2) · exp(−j/s)^k · exp(−j²/2s²): k is drawn with
    probabilities proportional to exp(−k²/2), j uniformly, and the pair is accepted with the rest as its probability.
    """
    drawn = np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        k = _draw_multiples(min(9 * (count - done) // 4 + 64, _BATCH), draw)  # about half of them are accepted
        j = draw(scale, len(k))
        accepted = bernoulli_exp(j * j, 2 * scale * scale, draw)
        k, j = k[accepted], j[accepted]
        accepted = _all_succeed(j, scale, k, draw)
        x = k[accepted] * scale + j[accepted].astype(np.int64)
        negative = draw(2, len(x)).astype(bool)
        x = np.where(negative, -x, x)[(x > 0) | ~negative]  # zero has one sign, so that it is not drawn twice as often
        x = x[: count - done]
        drawn[done : done + len(x)] = x
        done += len(x)
    return drawn


def _draw_multiples(count: int, draw: Draw) -> NDArray[np.int64]:
    """Draw at most `count` integers k ≥ 0 with probabilities proportional to exp(−k²/2).

    The number of successes before a failure, each with probability exp(−½), is k with a probability proportional to
    exp(−k/2). It is accepted with the probability exp(−k(k−1)/2), that of k(k−1) successes.
    """
    k = np.zeros(count, dtype=np.int64)
    active = np.arange(count)
    while len(active):
        active = active[bernoulli_exp(np.ones(len(active), dtype=np.uint64), 2, draw)]
        k[active] += 1
    return k[_all_succeed(np.ones(count, dtype=np.uint64), 2, k * (k - 1), draw)]


def _all_succeed(numerator: NDArray[np.uint64], denominator: int, trials: NDArray[np.int64], draw: Draw) -> Mask:
    """Return whether all of `trials` independent trials succeed, each with probability exp(−numerator/denominator)."""
    succeeds = np.ones(len(trials), dtype=bool)
    done = 0
    while len(active := np.flatnonzero(succeeds & (trials > done))):
        succeeds[active] = bernoulli_exp(numerator[active], denominator, draw)
        done += 1
    return succeeds


def bernoulli_exp(numerator: NDArray[np.uint64], denominator: int, draw: Draw) -> Mask:
    """Return True with the probability exp(−γ), γ = numerator/denominator ≤ 1, for each numerator, exactly.

    Of trials that succeed with probabilities γ, γ/2, γ/3, …, the first k succeed with probability γ^k/k!, so that the
    number of successes before the first failure is even with probability 1 − γ + γ²/2! − … = exp(−γ).
    """
    is_even = np.ones(len(numerator), dtype=bool)
    active, trial = np.arange(len(numerator)), 1
    while len(active):
        active = active[draw(denominator, len(active)) < numerator[active]]
        if trial > 1:
            active = active[draw(trial, len(active)) == 0]
        is_even[active] ^= True
        trial += 1
    return is_even


def integer_source(random_state: Any) -> Draw:
    """Return a function that draws integers uniformly: from the operating system, unless `random_state` is given."""
    check_settings({"random_state": random_state})
    if random_state is None:
        return _system_integers
    rng = np.random.default_rng(random_state)
    return lambda bound, count: rng.integers(bound, size=count, dtype=np.uint64)


def _system_integers(bound: int, count: int) -> NDArray[np.uint64]:
    """Draw integers uniformly below `bound` from the operating system, each from 16 bits or, if it is large, 64."""
    dtype: Any = np.uint16 if bound <= _SMALL_BOUND else np.uint64
    size = np.dtype(dtype).itemsize
    numbers = 2 ** (8 * size)  # that a word can have; all but the last few have equally frequent remainders
    last = dtype(numbers - numbers % bound - 1)
    words = np.frombuffer(bytearray(os.urandom(size * count)), dtype=dtype)
    while len(too_large := np.flatnonzero(words > last)):
        words[too_large] = np.frombuffer(os.urandom(size * len(too_large)), dtype=dtype)
    return np.asarray(words % dtype(bound), dtype=np.uint64)


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
