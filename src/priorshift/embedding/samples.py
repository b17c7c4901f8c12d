"""A sample as its mean embedding needs it: rows, their masses, and which rows are one observation.

A mean embedding is μ = Σ mass·φ(x). P, U and T have one numbering of observations, so that a group in two samples is
recognised in both.

An unbiased statistic leaves out self-pairs, the pairs of two rows of one observation: for a row that is an observation
of its own the diagonal, for a shared row its pair in P and U, for a group of g rows all g² pairs.

A bootstrap sample is a count for each row: how often it was drawn.

The bandwidth with the smallest expected variance of R is chosen from P and U alone. With the witness w = μ_U − μ_P and
D = E_U w − E_P w, label shift (b = Ra) reduces the influence values to ψ_U = −R(w − E_U w)/D,
ψ_P = −(1−R)(w − E_P w)/D and ψ_T = (w − E_T w)/D, and T is the mixture (1−R)P + RU. So the variance under each
bandwidth is known before there is a target, for every possible R; all targets get one kernel, and the choice cannot
favour any of them. Three things keep the choice from mistaking noise for precision. w at a row leaves out the row's own
observation, so its spread includes the noise of a witness from few rows (the degenerate part of the variance of R̂),
which small bandwidths suffer from. D is the unbiased one. And E[1/D̂²] ≈ (1 + 3 Var D̂/D²)/D², so a poorly known
separation counts against its bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index
from priorshift.embedding import P, U
from priorshift.embedding.random_features import RandomFeatures, feature_mean, feature_values
from priorshift.embedding.tiles import DOUBLE, kernel_sums
from priorshift.io.sample_size import effective_size
from priorshift.io.scaling import Rows
from priorshift.kernels import Gaussian, Kernel, Laplace

_PAIR_CELLS = 2**19  # numbers in the rows that are paired at a time: 4 MB
_LEAST_PAIRS = 256  # pairs that are computed at a time, at least
_LARGE_GROUP = 2**12  # pairs of one group, from which on tiles are faster
_BLOCK = 4096  # rows processed at a time


@dataclass(frozen=True, eq=False)
class EmbeddedSample:
    """Rows of P, U or T with their masses and observations."""

    rows: Rows  # scaled
    mass: Floats  # of each row in a mean; the sum is 1
    observation: Index  # number of each row's observation, the same numbering in all samples

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    @cached_property
    def weights(self) -> Floats | None:
        """The masses times the number of rows; None where all are equal."""
        return None if np.ptp(self.mass) == 0 else self.mass * len(self)

    @cached_property
    def distinct(self) -> Index:
        """The distinct observations, in the order in which they appear."""
        if self._is_increasing:
            return self.observation
        numbers, first = np.unique(self.observation, return_index=True)  # sorted by number
        return np.asarray(numbers[np.argsort(first, kind="stable")])

    @property
    def is_ungrouped(self) -> bool:
        """Whether each row is an observation of its own."""
        return len(self.distinct) == len(self)

    @property
    def is_iid(self) -> bool:
        """Whether all rows have equal weight and are observations of their own."""
        return self.weights is None and self.is_ungrouped

    @cached_property
    def size(self) -> float:
        """Effective sample size, in observations of equal weight."""
        return float(len(self)) if self.is_iid else effective_size(self.mass, self._codes)

    @property
    def spread_correction(self) -> float:
        """√(n/(n−1)) with the effective n, which corrects the spread of observations about their own mean."""
        return float(np.sqrt(self.size / max(self.size - 1, 1)))

    def take(self, index: Index) -> EmbeddedSample:
        """Select some rows, which keep their mass."""
        rows = replace(self.rows, index=index if self.rows.index is None else self.rows.index[index])
        return EmbeddedSample(rows, self.mass[index], self.observation[index])

    def sum_by_observation(self, values: Floats) -> tuple[Index, Floats]:
        """Return the numbers of the observations in increasing order, and the sums of `values` over the rows of each.

        `values` has the shape (rows, columns), and the sums the shape (observations, columns).
        """
        if self.is_ungrouped:
            order = np.argsort(self.observation, kind="stable")
            return self.observation[order], values[order]
        numbers = np.sort(self.distinct)
        # `_codes` are ranks: row i belongs to the observation numbers[_codes[i]]
        sums = [np.bincount(self._codes, column, len(numbers)) for column in values.T]
        return numbers, np.stack(sums, axis=1)

    @cached_property
    def _is_increasing(self) -> bool:
        """Whether the numbers of observations increase from row to row, so that nothing has to be sorted."""
        return bool((np.diff(self.observation) > 0).all())

    @cached_property
    def _codes(self) -> Index:
        """Rank of each row's observation among the distinct numbers, from 0."""
        return np.asarray(np.unique(self.observation, return_inverse=True)[1].reshape(-1))


@dataclass(frozen=True, eq=False)
class SelfPairs:
    """Sums at each row of a sample X over the rows of a sample Y that are the same observation."""

    sums: Floats  # Σ mass·k(x, y)
    mass: Floats  # Σ mass

    def averaged(self, mass: Floats) -> SelfPairs:
        """Give every row of X that has self-pairs the average of all such rows, weighted by their `mass`."""
        has_pairs = self.mass > 0
        share = mass[has_pairs] / mass[has_pairs].sum()
        mean_sums, mean_mass = np.zeros(len(has_pairs)), np.zeros(len(has_pairs))
        mean_sums[has_pairs], mean_mass[has_pairs] = share @ self.sums[has_pairs], share @ self.mass[has_pairs]
        return SelfPairs(mean_sums, mean_mass)


def self_pairs(
    kernel: Kernel, X: EmbeddedSample, Y: EmbeddedSample, dtype: np.dtype[Any] = DOUBLE
) -> tuple[SelfPairs, SelfPairs] | None:
    """Compute the self-pairs at the rows of X and at those of Y; None where they have no observation in common.

    Self-pairs are pairs of rows of one observation. Small groups are computed together, as lists of pairs.
    """
    same = X is Y
    if same and X.is_ungrouped:  # the only pairs are (x, x)
        at_X = SelfPairs(X.mass * _diagonal(kernel, X), X.mass)
        return at_X, at_X
    common = X.distinct if same else np.intersect1d(X.distinct, Y.distinct, assume_unique=True)
    if not len(common):
        return None
    at_X, at_Y = (SelfPairs(np.zeros(len(sample)), np.zeros(len(sample))) for sample in (X, Y))
    # the rows of group g in X are x_order[x_start[g] : x_start[g] + x_count[g]]; likewise in Y
    (x_order, x_start, x_count), (y_order, y_start, y_count) = _members(X, common), _members(Y, common)
    pairs = x_count * y_count
    chunk_pairs = max(_LEAST_PAIRS, _PAIR_CELLS // X.rows.X.shape[1])  # pairs that are computed at a time
    is_large = pairs > min(chunk_pairs, _LARGE_GROUP)
    for g in np.flatnonzero(is_large).tolist():  # all pairs of a large group are computed by tiles
        left, right = x_order[x_start[g] :][: x_count[g]], y_order[y_start[g] :][: y_count[g]]
        A, B = X.take(left), Y.take(right)
        at_X.sums[left], at_Y.sums[right] = _all_pairs(kernel, A, B, same, dtype)
        at_X.mass[left], at_Y.mass[right] = B.mass.sum(), A.mass.sum()
    small = np.flatnonzero(~is_large)
    chunk = np.cumsum(pairs[small]) // chunk_pairs
    for groups in np.split(small, np.flatnonzero(np.diff(chunk)) + 1) if len(small) else ():
        group = np.repeat(np.arange(len(groups)), pairs[groups])  # of each pair
        # number of each pair in its group, from 0: row number // width of X with row number % width of Y
        number = np.arange(len(group)) - (np.cumsum(pairs[groups]) - pairs[groups])[group]
        width = y_count[groups][group]
        left = x_order[x_start[groups][group] + number // width]
        right = y_order[y_start[groups][group] + number % width]
        values = kernel.paired(X.rows[left], Y.rows[right])
        for self_sums, rows, other_mass in ((at_X, left, Y.mass[right]), (at_Y, right, X.mass[left])):
            np.add.at(self_sums.sums, rows, other_mass * values)
            np.add.at(self_sums.mass, rows, other_mass)
    return at_X, at_Y


def _all_pairs(
    kernel: Kernel, X: EmbeddedSample, Y: EmbeddedSample, same: bool, dtype: np.dtype[Any]
) -> tuple[Floats, Floats]:
    """Compute Σ mass·k(x, y) at each row of X over all rows of Y, and at each row of Y over those of X.

    `same` says that X and Y are the same rows, which takes half the time.
    """
    if isinstance(kernel, RandomFeatures):
        means = [feature_mean(kernel, sample.rows, sample.mass)[None] for sample in (X, Y)]
        return feature_values(kernel, X.rows, means[1])[:, 0], feature_values(kernel, Y.rows, means[0])[:, 0]
    weights = len(X) * X.mass, len(Y) * Y.mass
    by_row, by_column = kernel_sums(kernel, X.rows, None if same else Y.rows, dtype=dtype, weights=weights)
    return by_row / len(Y), by_column / len(X)


def _members(sample: EmbeddedSample, numbers: Index) -> tuple[Index, Index, Index]:
    """Return row numbers sorted by observation, and, for each of `numbers`, the start and count of its rows in them."""
    order = np.argsort(sample.observation, kind="stable")
    sorted_numbers = sample.observation[order]
    start = np.searchsorted(sorted_numbers, numbers, "left")
    return order, start, np.searchsorted(sorted_numbers, numbers, "right") - start


def _diagonal(kernel: Kernel, X: EmbeddedSample) -> Floats:
    """Compute k(x, x) at each row."""
    if kernel.stationary:  # k(x, x) is the same for every x
        first = X.rows[:1]
        return np.full(len(X), kernel.paired(first, first)[0])
    blocks = (X.rows[k : k + _BLOCK] for k in range(0, len(X), _BLOCK))
    return np.concatenate([kernel.paired(block, block) for block in blocks])


def draw_pairs(X: EmbeddedSample, Y: EmbeddedSample, pairs: int, rng: np.random.Generator) -> tuple[Index, Index]:
    """Draw pairs of rows of two different observations, with probabilities proportional to their masses.

    Returns the row numbers in X and in Y. Pairs of an observation with itself are dropped, so there may be fewer.
    """
    if X is Y and X.is_iid:
        left = rng.integers(0, len(X), pairs)
        right = rng.integers(0, len(X) - 1, pairs)
        return left, right + (right >= left)  # uniform over all rows but `left`
    left, right = (_draw_rows(sample, pairs, rng) for sample in (X, Y))
    different = X.observation[left] != Y.observation[right]
    return left[different], right[different]


def _draw_rows(sample: EmbeddedSample, count: int, rng: np.random.Generator) -> Index:
    """Draw row numbers with replacement, with a probability proportional to their mass."""
    if sample.weights is None:
        return rng.integers(0, len(sample), count)
    # inverse of the distribution function; rounding can leave its last value below 1
    return np.minimum(np.searchsorted(np.cumsum(sample.mass), rng.random(count)), len(sample) - 1)


def draw_counts(
    samples: Sequence[EmbeddedSample], source: int, replicates: int, rng: np.random.Generator
) -> list[NDArray[np.uint8]]:
    """Draw how often each row of P, U and T occurs in each bootstrap replicate, shape (rows, replicates) for each.

    Observations with a number below `source` belong to the source. U, the rest of T and the rest of P each draw as
    many observations as they have, so that an observation in two samples has one count. All rows of an observation
    have its count.
    """
    p, u, t = (s.distinct for s in samples)
    counts = np.zeros((max(int(numbers.max()) for numbers in (p, u, t)) + 1, replicates), np.uint8)
    for numbers in (u, t[t >= source], p[~np.isin(p, u)]):
        n = len(numbers)
        drawn = np.empty((n, replicates), np.uint8)
        for b in range(replicates):
            drawn[:, b] = np.bincount(rng.integers(0, n, n), minlength=n) if n else 0
        counts[numbers] = drawn
    return [counts[s.observation] for s in samples]


def sum_over_rows(values: Floats, counts: NDArray[np.uint8], function: Callable[[Floats], Floats]) -> Floats:
    """Compute Σ value·function(count) over the rows, for each replicate; `counts` has shape (rows, replicates)."""
    total = np.zeros(counts.shape[1])
    for i in range(0, len(values), _BLOCK):
        total += values[i : i + _BLOCK] @ function(counts[i : i + _BLOCK].astype(np.float64))
    return total


_WIDEST, _NARROWEST = 4.0, 1 / 8  # bandwidths that are tried, as multiples of the median distance
_RATIOS = np.array([0.25, 0.5, 0.75, 1.0])  # values of R over which the variance is averaged
_CHOICE_ROWS = 1000  # rows of P and of U that the choice uses at most
_ROUNDING = 1e-12  # share of a sample's mass that counts as zero


@dataclass(frozen=True, eq=False)
class BandwidthCurve:
    """Bandwidths that were tried, the expected standard error of R under each, and the best."""

    bandwidths: Floats  # increasing; each kernel is the square of the next wider one
    # root mean square over R = 1/4, 1/2, 3/4 and 1, for a target of U's effective size; infinite where P and U coincide
    standard_errors: Floats
    chosen: float  # the bandwidth with the smallest standard error


def choose_bandwidth(kernel: Gaussian | Laplace, positive: EmbeddedSample, unlabeled: EmbeddedSample) -> BandwidthCurve:
    """Choose the bandwidth with the smallest expected standard error of R, from the widest to the narrowest.

    The bandwidth of `kernel` should be of the order of a distance between rows; multiples of it are tried. Large
    samples are represented by some of their rows; the variance is that of all rows.
    """
    sizes = positive.size, unlabeled.size
    samples = _thin(positive), _thin(unlabeled)
    rows = np.concatenate([sample.rows[:] for sample in samples])
    observation = np.concatenate([sample.observation for sample in samples])
    mass = np.zeros((len(rows), 2))  # of each row of P and U in the means of P and of U
    mass[: len(samples[P]), P], mass[len(samples[P]) :, U] = samples[P].mass, samples[U].mass
    # mass of the rows that are other observations than row i, in P and in U
    other_mass = 1 - np.stack([np.bincount(observation, m)[observation] for m in mass.T], axis=1)
    narrowest, kernel = _NARROWEST * kernel.bandwidth, replace(kernel, bandwidth=_WIDEST * kernel.bandwidth)
    values = kernel(rows, rows)
    values[observation[:, None] == observation] = 0.0  # no pairs of one observation
    tried: list[tuple[float, float, float]] = []  # standard error, −D in units of its error, bandwidth
    while kernel.bandwidth > narrowest * (1 - 1e-9):
        w, D = _witness(values @ mass, other_mass, mass)
        tried.append((*_expected_error(w, D, samples, sizes), kernel.bandwidth))
        kernel = kernel.squared()  # the next narrower kernel, whose values are the squares of these
        np.square(values, out=values)
    errors, _, bandwidths = np.array(tried[::-1]).T  # by increasing bandwidth
    return BandwidthCurve(bandwidths, errors, chosen=min(tried)[-1])


def _witness(sums: Floats, other_mass: Floats, mass: Floats) -> tuple[Floats, float]:
    """Compute the witness w = μ_U − μ_P at the rows of P and U, and D = E_U w − E_P w, without self-pairs.

    The columns of all arguments are P and U: `sums` of kernel values over the rows that are other observations,
    `other_mass` of these rows, and `mass` of each row itself.
    """
    gram = (mass.T @ sums) / np.maximum(mass.T @ other_mass, _ROUNDING)
    # a row without other observations gets its sample's mean
    sample_means = np.where(mass[:, P, None] > 0, *gram)
    means = np.where(other_mass > _ROUNDING, sums / np.maximum(other_mass, _ROUNDING), sample_means)
    return means[:, U] - means[:, P], float(gram[U, U] - gram[U, P] - gram[P, U] + gram[P, P])


def _expected_error(
    w: Floats, D: float, samples: tuple[EmbeddedSample, EmbeddedSample], sizes: tuple[float, float]
) -> tuple[float, float]:
    """Compute the standard error of R by the delta method, averaged over some R, and −D in units of its own error.

    `w` is the witness at the rows of P, then of U; `sizes` are the effective sizes of the complete P and U, of which
    `samples` may be subsamples. The formulas are in the module's docstring.
    """
    witness = w[: len(samples[P])], w[len(samples[P]) :]
    influence = [
        s.sum_by_observation((s.mass * s.spread_correction * (v - s.mass @ v))[:, None])
        for s, v in zip(samples, witness, strict=True)
    ]
    # variances of the means of w over P and U, and their covariance from common observations
    var_P, var_U = (
        float((v**2).sum()) * s.size / size for (_, v), s, size in zip(influence, samples, sizes, strict=True)
    )
    _, at_P, at_U = np.intersect1d(influence[P][0], influence[U][0], assume_unique=True, return_indices=True)
    # not rescaled: a subsample has fewer common observations, but each has more mass
    covariance = float((influence[P][1][at_P] * influence[U][1][at_U]).sum())
    var_D = 4 * (var_P + var_U - 2 * covariance)
    signal = D / np.sqrt(var_D) if var_D > 0 else -np.inf
    if not signal > 0:  # also for NaN: P and U coincide
        return np.inf, -signal
    R = _RATIOS
    # moments of w over T = (1−R)P + RU
    mean, square = (
        (1 - R) * (samples[P].mass @ witness[P] ** k) + R * (samples[U].mass @ witness[U] ** k) for k in (1, 2)
    )
    var_T = np.maximum(square - mean**2, 0.0) / sizes[U]
    var_source = np.maximum(R**2 * var_U + (1 - R) ** 2 * var_P + 2 * R * (1 - R) * covariance, 0.0)
    variance = float((var_source + var_T).mean()) / D**2
    return float(np.sqrt(variance * (1 + 3 / signal**2))), -signal  # E[1/D̂²] ≈ (1 + 3 Var D̂/D²)/D²


def _thin(sample: EmbeddedSample) -> EmbeddedSample:
    """Select at most `_CHOICE_ROWS` rows, evenly from the first to the last, and scale their masses to the sum 1."""
    if len(sample) <= _CHOICE_ROWS:
        return sample
    taken = sample.take(np.linspace(0, len(sample) - 1, _CHOICE_ROWS).astype(int))
    return replace(taken, mass=taken.mass / taken.mass.sum())
