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

from collections.abc import Sequence
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
        """The masses times the number of rows, which are 1 on average; None where all are equal."""
        return None if np.ptp(self.mass) == 0 else self.mass * len(self)

    @cached_property
    def distinct(self) -> Index:
        """Numbers of the distinct observations, in the order in which they appear."""
        if bool((np.diff(self.observation) > 0).all()):  # increasing from row to row, so that nothing has to be sorted
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
        """Return the sample of the rows with these positions; their masses are not rescaled to the sum 1."""
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
    def _codes(self) -> Index:
        """Rank of each row's observation number among the distinct numbers in increasing order, from 0."""
        return np.asarray(np.unique(self.observation, return_inverse=True)[1].reshape(-1))


@dataclass(frozen=True, eq=False)
class SelfPairs:
    """Sums at each row x of a sample X over its self-pairs: the rows y of a sample Y that are of x's observation."""

    sums: Floats  # Σ mass·k(x, y), with the mass of y in Y
    mass: Floats  # Σ mass; zero for a row without self-pairs

    def averaged(self, mass: Floats) -> SelfPairs:
        """Replace the sums of every row of X that has self-pairs by the mean over all such rows, weighted by `mass`.

        `mass` is the mass of each row in X.
        """
        has_pairs = self.mass > 0
        share = mass[has_pairs] / mass[has_pairs].sum()
        mean_sums, mean_mass = np.zeros(len(has_pairs)), np.zeros(len(has_pairs))
        mean_sums[has_pairs], mean_mass[has_pairs] = share @ self.sums[has_pairs], share @ self.mass[has_pairs]
        return SelfPairs(mean_sums, mean_mass)


def self_pairs(
    kernel: Kernel, X: EmbeddedSample, Y: EmbeddedSample, dtype: np.dtype[Any] = DOUBLE
) -> tuple[SelfPairs, SelfPairs] | None:
    """Compute the sums over self-pairs at each row of X and at each row of Y; None where no observation is in both.

    A self-pair is a pair of rows, one of X and one of Y, of the same observation. All pairs of an observation with many
    of them are computed as tiles of the type `dtype`, those of observations with few pairs together as lists of pairs.
    """
    same = X is Y
    if same and X.is_ungrouped:  # the only self-pairs are (x, x)
        at_X = SelfPairs(X.mass * _diagonal(kernel, X), X.mass)
        return at_X, at_X
    common = X.distinct if same else np.intersect1d(X.distinct, Y.distinct, assume_unique=True)
    if not len(common):
        return None
    at_X, at_Y = (SelfPairs(np.zeros(len(sample)), np.zeros(len(sample))) for sample in (X, Y))
    # the rows of group g, one of the common observations, are X_order[X_start[g] : X_start[g] + X_count[g]] in X
    X_order, X_start, X_count = _members(X, common)
    Y_order, Y_start, Y_count = _members(Y, common)
    pairs = X_count * Y_count  # of each group
    chunk_pairs = max(_LEAST_PAIRS, _PAIR_CELLS // X.rows.X.shape[1])  # pairs that are computed at a time
    is_large = pairs > min(chunk_pairs, _LARGE_GROUP)
    for g in np.flatnonzero(is_large).tolist():
        left = X_order[X_start[g] : X_start[g] + X_count[g]]
        right = Y_order[Y_start[g] : Y_start[g] + Y_count[g]]
        A, B = X.take(left), Y.take(right)
        at_X.sums[left], at_Y.sums[right] = _all_pairs(kernel, A, B, same, dtype)
        at_X.mass[left], at_Y.mass[right] = B.mass.sum(), A.mass.sum()
    small = np.flatnonzero(~is_large)
    chunk = np.cumsum(pairs[small]) // chunk_pairs  # of each small group
    for groups in np.split(small, np.flatnonzero(np.diff(chunk)) + 1) if len(small) else []:
        group = np.repeat(np.arange(len(groups)), pairs[groups])  # of each pair in the chunk
        # pairs of a group are numbered from 0: pair n has the rows n // width of X and n % width of Y in the group
        number = np.arange(len(group)) - (np.cumsum(pairs[groups]) - pairs[groups])[group]
        width = Y_count[groups][group]
        left = X_order[X_start[groups][group] + number // width]
        right = Y_order[Y_start[groups][group] + number % width]
        values = kernel.paired(X.rows[left], Y.rows[right])
        for own, rows, other_mass in ((at_X, left, Y.mass[right]), (at_Y, right, X.mass[left])):
            np.add.at(own.sums, rows, other_mass * values)
            np.add.at(own.mass, rows, other_mass)
    return at_X, at_Y


def _all_pairs(
    kernel: Kernel, X: EmbeddedSample, Y: EmbeddedSample, same: bool, dtype: np.dtype[Any]
) -> tuple[Floats, Floats]:
    """Compute Σ mass·k(x, y) at each row x of X over all rows y of Y, and at each row y of Y over all rows x of X.

    `same` says that X and Y are the same rows, for which the sums take half the time. `dtype` is the type of the tiles.
    """
    if isinstance(kernel, RandomFeatures):
        means = [feature_mean(kernel, sample.rows, sample.mass)[None] for sample in (X, Y)]
        return feature_values(kernel, X.rows, means[1])[:, 0], feature_values(kernel, Y.rows, means[0])[:, 0]
    weights = len(X) * X.mass, len(Y) * Y.mass  # `kernel_sums` is most accurate with weights near 1
    row_sums, column_sums = kernel_sums(kernel, X.rows, None if same else Y.rows, dtype=dtype, weights=weights)
    return row_sums / len(Y), column_sums / len(X)


def _members(sample: EmbeddedSample, numbers: Index) -> tuple[Index, Index, Index]:
    """Return the positions of all rows sorted by observation, and where each observation of `numbers` is in them.

    The latter is two arrays: the start of each observation's rows in the sorted positions, and their number.
    """
    order = np.argsort(sample.observation, kind="stable")
    sorted_numbers = sample.observation[order]
    start = np.searchsorted(sorted_numbers, numbers, "left")
    return order, start, np.searchsorted(sorted_numbers, numbers, "right") - start


def _diagonal(kernel: Kernel, X: EmbeddedSample) -> Floats:
    """Compute k(x, x) at each row x of X."""
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
    samples: Sequence[EmbeddedSample], source_observations: int, replicates: int, rng: np.random.Generator
) -> list[NDArray[np.uint8]]:
    """Draw how often each row of P, U and T (`samples`) occurs in each bootstrap replicate.

    Returns an array of shape (rows, replicates) for each sample. Observations with a number below
    `source_observations` belong to the source. U, the observations of T that are not in the source, and those of P
    that are not in U, are resampled with replacement, each as many as they are. So an observation in two samples has
    one count, which all its rows have.
    """
    p, u, t = (s.distinct for s in samples)
    counts = np.zeros((max(int(numbers.max()) for numbers in (p, u, t)) + 1, replicates), np.uint8)
    for numbers in (u, t[t >= source_observations], p[~np.isin(p, u)]):
        n = len(numbers)
        drawn = np.zeros((replicates, n), np.uint8)
        for of_rows in drawn if n else ():
            of_rows[:] = np.bincount(rng.integers(0, n, n), minlength=n)
        counts[numbers] = drawn.T
    return [counts[s.observation] for s in samples]


def sum_over_rows(values: Floats, counts: NDArray[np.uint8], power: int = 1) -> Floats:
    """Compute Σ value·count^power over the rows, for each bootstrap replicate.

    `values` has one number for each row; `counts`, how often the row was drawn, has the shape (rows, replicates).
    """
    total = np.zeros(counts.shape[1])
    for i in range(0, len(values), _BLOCK):
        total += values[i : i + _BLOCK] @ counts[i : i + _BLOCK].astype(np.float64) ** power
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
    """Choose the bandwidth with the smallest expected standard error of the ratio R, from the samples P and U alone.

    The bandwidth of `kernel` should be of the order of a distance between rows; multiples of it are tried, from the
    widest to the narrowest. Large samples are represented by some of their rows; the variance is that of all rows.
    """
    sizes = positive.size, unlabeled.size  # of the complete samples
    positive, unlabeled = _thin(positive), _thin(unlabeled)
    rows = np.concatenate([positive.rows[:], unlabeled.rows[:]])
    observation = np.concatenate([positive.observation, unlabeled.observation])
    mass = np.zeros((len(rows), 2))  # of each row of P and U in the means of P and of U
    mass[: len(positive), P], mass[len(positive) :, U] = positive.mass, unlabeled.mass
    # mass of the rows that are other observations than row i, in P and in U
    other_mass = 1 - np.stack([np.bincount(observation, m)[observation] for m in mass.T], axis=1)
    narrowest, kernel = _NARROWEST * kernel.bandwidth, replace(kernel, bandwidth=_WIDEST * kernel.bandwidth)
    values = kernel(rows, rows)
    values[observation[:, None] == observation] = 0.0  # no self-pairs, which are two rows of one observation
    tried: list[tuple[float, float, float]] = []  # standard error, −D in units of its error, bandwidth
    while kernel.bandwidth > narrowest * (1 - 1e-9):
        witness, D = _witness(values @ mass, other_mass, mass)
        tried.append((*_expected_error(witness, D, positive, unlabeled, sizes), kernel.bandwidth))
        kernel = kernel.squared()  # the next narrower kernel, whose values are the squares of these
        np.square(values, out=values)
    errors, _, bandwidths = np.array(tried[::-1]).T  # by increasing bandwidth
    chosen = min(tried)[-1]  # the smallest error; if all are infinite, the largest D in units of its error
    return BandwidthCurve(bandwidths, errors, chosen)


def _witness(sums: Floats, other_mass: Floats, mass: Floats) -> tuple[Floats, float]:
    """Compute the witness w = μ_U − μ_P at the rows of P and then of U, and D = E_U w − E_P w, without self-pairs.

    All arguments have a line for each row and the columns P and U: `sums` are Σ mass·k over the rows of P and U that
    are other observations than the row, `other_mass` is the mass of these, and `mass` that of the row itself.
    """
    # gram[j, k] estimates ⟨μ_j, μ_k⟩
    gram = (mass.T @ sums) / np.maximum(mass.T @ other_mass, _ROUNDING)
    # a row without other observations gets its sample's mean
    sample_means = np.where(mass[:, P, None] > 0, gram[P], gram[U])
    means = np.where(other_mass > _ROUNDING, sums / np.maximum(other_mass, _ROUNDING), sample_means)
    return means[:, U] - means[:, P], float(gram[U, U] - gram[U, P] - gram[P, U] + gram[P, P])


def _expected_error(
    w: Floats, D: float, positive: EmbeddedSample, unlabeled: EmbeddedSample, sizes: tuple[float, float]
) -> tuple[float, float]:
    """Compute the expected standard error of R by the delta method, and −D in units of its own standard error.

    A bandwidth is chosen by the smallest error, and by the largest D where no error is finite: hence the minus sign.

    The variance of R̂ is averaged over R = 1/4, 1/2, 3/4 and 1. `w` is the witness μ_U − μ_P at the rows of P, then of
    U, and D = E_U w − E_P w; `sizes` are the effective sizes of the complete P and U, of which `positive` and
    `unlabeled` may be subsamples. The influence values on R are ψ_U = −R(w − E_U w)/D, ψ_P = −(1−R)(w − E_P w)/D and
    ψ_T = (w − E_T w)/D, with T = (1−R)P + RU.
    """
    w_P, w_U = w[: len(positive)], w[len(positive) :]
    # influence of each observation on the means of w over P and over U
    (P_numbers, P_influence), (U_numbers, U_influence) = (
        sample.sum_by_observation((sample.mass * sample.spread_correction * (v - sample.mass @ v))[:, None])
        for sample, v in ((positive, w_P), (unlabeled, w_U))
    )
    # variances of these means over the complete samples, and their covariance from common observations
    var_P = float((P_influence**2).sum()) * positive.size / sizes[P]
    var_U = float((U_influence**2).sum()) * unlabeled.size / sizes[U]
    _, at_P, at_U = np.intersect1d(P_numbers, U_numbers, assume_unique=True, return_indices=True)
    # not rescaled: a subsample has fewer common observations, but each has more mass
    covariance = float((P_influence[at_P] * U_influence[at_U]).sum())
    var_D = 4 * (var_P + var_U - 2 * covariance)  # D = ‖μ_U − μ_P‖² is quadratic, so its differential is twice w's
    signal = D / np.sqrt(var_D) if var_D > 0 else -np.inf
    if not signal > 0:  # also for NaN: P and U coincide
        return np.inf, -signal
    R = _RATIOS
    # moments of w over T = (1−R)P + RU
    mean = (1 - R) * (positive.mass @ w_P) + R * (unlabeled.mass @ w_U)
    square = (1 - R) * (positive.mass @ w_P**2) + R * (unlabeled.mass @ w_U**2)
    var_T = np.maximum(square - mean**2, 0.0) / sizes[U]  # for a target of U's effective size
    var_source = np.maximum(R**2 * var_U + (1 - R) ** 2 * var_P + 2 * R * (1 - R) * covariance, 0.0)
    variance = float((var_source + var_T).mean()) / D**2
    return float(np.sqrt(variance * (1 + 3 / signal**2))), -signal  # E[1/D̂²] ≈ (1 + 3 Var D̂/D²)/D²


def _thin(sample: EmbeddedSample) -> EmbeddedSample:
    """Return at most 1000 rows of a sample, evenly spaced, with their masses scaled to the sum 1."""
    if len(sample) <= _CHOICE_ROWS:
        return sample
    taken = sample.take(np.linspace(0, len(sample) - 1, _CHOICE_ROWS).astype(int))
    return replace(taken, mass=taken.mass / taken.mass.sum())
