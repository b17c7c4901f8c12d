"""A sample's p-values as counts: all that the efficient witness asks of its rows, however many there are.

The witness is a function h of a row, the mean over repetitions of a function h_k of the bin b_k of its p-value in
repetition k. Its mean and its mean square among a sample,

    E h = Σ_k Σ_b h_k(b) n_k(b)/(Kn),     E h² = Σ_jk Σ_bc h_j(b) h_k(c) n_jk(b, c)/(K²n),

need the counts n_k of rows in each bin and n_jk of rows in two bins at once, and no row. Counts add up: in any order,
over files, machines and institutions. Where every row is its own observation and counts the same, the test of a ratio
is the same as from rows, but for rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.scores import mixture
from priorshift.scores.posterior import PopulationCounts, posterior_counts
from priorshift.scores.ratio_test import (
    RatioTest,
    TriedRatios,
    best_function,
    density_ratio_of,
    expected_variance,
    mean_over_ranks,
    noise_share,
    unbiased,
    widening,
)

_BLOCK = 2**20  # rows whose pairs of bins are counted at a time
# where groups of bins begin whose counts noise is added to: narrow near 0, where negatives lie. The noise of a sum
# grows with their number, so few are better, and nine tell hardly less than all bins (docs/sharing.md has figures)
STARTS = np.array([0, 1, 2, 4, 8, 16, 32, 64, 128])
GROUPS = len(STARTS)
_WIDTHS = np.diff([*STARTS, mixture.BINS])
_FAR = 10.0  # standard deviations that no noise is away
_ROUNDED = 1e-9  # of a sum of noisy counts
_LEAST_VARIANCE = 1e-9  # of a function of noisy counts, which can be below zero; its law says how large it is


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Counts of the p-values of a sample.

    Attributes
    ----------
    rows : int
        How many there are.
    counts : ndarray of shape (repeats, bins)
        Rows in each bin of :mod:`priorshift.scores.mixture`.
    pairs : ndarray of shape (repeats·(repeats−1)/2, bins, bins) or None
        Rows in two bins at once, of each two repetitions; None where they are not told.
    levels : ndarray of shape (repeats, levels)
        Rows in each bin of :mod:`priorshift.scores.posterior`.
    noise : float
        Standard deviation of what was added to the count of each group of bins, so that no row shows. Within a group
        `counts` are even then, and there are no `levels`.
    """

    rows: int
    counts: Floats
    pairs: Floats | None
    levels: Floats
    noise: float = 0.0

    @classmethod
    def from_p_values(cls, values: Floats, ranked: int) -> ScoreCounts:
        """Count p-values of shape (repeats, rows), ranks among so many positives."""
        return cls.from_bins(mixture.bins(values), posterior_counts(values, ranked, np.ones(values.shape[1])))

    @classmethod
    def from_bins(cls, bins: NDArray[np.intp], levels: Floats) -> ScoreCounts:
        """Count bins of p-values."""
        repeats, rows = bins.shape
        counts = np.stack([np.bincount(b, minlength=mixture.BINS) for b in bins]).astype(float)
        pairs = np.zeros((repeats * (repeats - 1) // 2, mixture.BINS**2))
        for at in range(0, rows, _BLOCK):
            some = bins[:, at : at + _BLOCK]
            for number, (j, k) in enumerate(combinations(range(repeats), 2)):
                pairs[number] += np.bincount(some[j] * mixture.BINS + some[k], minlength=mixture.BINS**2)
        return cls(rows, counts, pairs.reshape(-1, mixture.BINS, mixture.BINS), levels)

    @classmethod
    def from_groups(cls, rows: int, grouped: Floats, noise: float) -> ScoreCounts:
        """Of noisy counts of groups, shape (repeats, groups)."""
        counts = np.repeat(grouped / _WIDTHS, _WIDTHS, axis=1)
        return cls(rows, counts, None, np.empty((len(grouped), 0)), noise)

    @property
    def grouped(self) -> Floats:
        """Rows in each group of bins."""
        return np.add.reduceat(self.counts, STARTS, axis=1)

    @property
    def adds_up(self) -> bool:
        """Whether every count is that of as many rows, and none is below 0 by more than noise can be."""
        if self.noise:
            grouped, far = self.grouped, _FAR * self.noise
            off = np.abs(grouped.sum(axis=1) - self.rows)
            return bool((grouped > -far).all() and (off < _ROUNDED * (self.rows + self.noise)).all())
        parts = [self.counts, self.levels, *([] if self.pairs is None else [self.pairs.reshape(len(self.pairs), -1)])]
        if any((part < 0).any() or not np.allclose(part.sum(axis=1), self.rows, rtol=1e-12) for part in parts):
            return False
        of_two = combinations(range(len(self.counts)), 2)
        return self.pairs is None or all(
            np.array_equal(n.sum(axis=1), self.counts[j]) and np.array_equal(n.sum(axis=0), self.counts[k])
            for (j, k), n in zip(of_two, self.pairs, strict=True)
        )

    def merge(self, other: ScoreCounts) -> ScoreCounts:
        """Both samples together."""
        alike = self.noise or other.noise or self.levels.shape == other.levels.shape
        if self.counts.shape != other.counts.shape or not alike:
            raise InputError("counts of different scores cannot be added; count both samples by one model.")
        pairs = None if self.pairs is None or other.pairs is None else self.pairs + other.pairs
        rows, noise = self.rows + other.rows, float(np.hypot(self.noise, other.noise))
        if noise:
            return ScoreCounts.from_groups(rows, self.grouped + other.grouped, noise)
        return ScoreCounts(rows, self.counts + other.counts, pairs, self.levels + other.levels)

    def moments(self, h: Floats) -> FeatureMoments:
        """Of the mean over repetitions of functions of the bins, shape (repeats, functions, bins).

        Of noisy counts they must be one and the same within each group.
        """
        share = self.counts[:, :, None] / self.rows
        means = (h @ share)[:, :, 0]
        each = np.mean((h**2 @ share)[:, :, 0] - means**2, axis=0)
        mean, variance = means.mean(axis=0), each
        if self.pairs is not None:
            # Var of the mean over repetitions: covariances of each two, the variances once
            of_two = combinations(range(len(h)), 2)
            both = [
                np.einsum("rb,rb->r", h[j] @ n, h[k]) / self.rows - means[j] * means[k]
                for (j, k), n in zip(of_two, self.pairs, strict=True)
            ]
            variance = (each * len(h) + 2 * sum(both, np.zeros_like(each))) / len(h) ** 2
        least = _LEAST_VARIANCE if self.noise else 0.0
        # the noise of each repetition adds up to 0, so the mean of h over the groups does not matter
        added = self.noise**2 * h[:, :, STARTS].var(axis=2).sum(axis=0) * GROUPS / (len(h) * self.rows) ** 2
        return FeatureMoments(mean, np.maximum(variance, least), np.maximum(each, least), added)


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Of functions of a row among a sample: `mean` and `variance`, the mean of the variances in `each` repetition.

    `added` is the variance that noise in the counts gives to the mean.
    """

    mean: Floats
    variance: Floats
    each: Floats
    added: Floats

    @property
    def square(self) -> Floats:
        return np.asarray(self.variance + self.mean**2)


@dataclass(frozen=True, eq=False)
class CountWitness:
    """The efficient witness of a source whose rows were counted.

    Attributes
    ----------
    density_ratio : ndarray of shape (repeats, bins)
        ρ.
    positive, population : ScoreCounts
        P and U.
    ranked : int
        Positives that p-values are ranks among.
    folds : int
        Of the scores.
    censored : bool
        Whether all rows of P are among U.
    """

    density_ratio: Floats
    positive: ScoreCounts
    population: ScoreCounts
    ranked: int
    folds: int
    censored: bool = False

    @classmethod
    def of(
        cls,
        positive: ScoreCounts,
        population: ScoreCounts,
        law: tuple[Floats, Floats],
        *,
        ranked: int,
        folds: int,
        censored: bool = False,
    ) -> CountWitness:
        """With π and w of the mixture in each repetition."""
        return cls(density_ratio_of(law, population.rows), positive, population, ranked, folds, censored)

    def test(self, target: ScoreCounts) -> RatioTest:
        """Test every ratio."""
        return RatioTest.of(lambda ratios: self._tried(ratios, target))

    def _tried(self, r: Floats, target: ScoreCounts) -> TriedRatios:
        m, n, t = self.positive.rows, self.population.rows, target.rows
        h = best_function(self.density_ratio, r, (m, n, t))
        if self.is_noisy or target.noise:
            h = np.repeat(np.add.reduceat(h, STARTS, axis=2) / _WIDTHS, _WIDTHS, axis=2)
        by_law = m == self.ranked  # the law of the ranks is known, of those that are all of P
        h -= mean_over_ranks(h, m) if by_law else self._mean_of_positives(h)
        T, U, P = (sample.moments(h) for sample in (target, self.population, self.positive))
        # if R = r, T has that variance too: few rows of it may hold none of a rare class
        supposed = (1 - r) * P.square + r * U.square - ((1 - r) * P.mean + r * U.mean) ** 2
        noise = noise_share(U.each * unbiased(n), U.variance * unbiased(n), len(h), self.folds)
        if self.population.pairs is None:
            noise = np.ones_like(noise)
        # few rows may miss where h is large, or be alike by chance: their laws say how unlike they can be
        wider_P = widening(h.var(axis=2).mean(axis=0), P.each)
        wider_U = widening(expected_variance(h, self.density_ratio), U.each)
        from_T = np.maximum(T.variance * unbiased(t), supposed) / t
        var_U = wider_U * U.variance * unbiased(n) / n
        var_P = wider_P * P.variance * unbiased(m) / m
        parts = np.stack([from_T, r**2 * var_U, (1 - r) ** 2 * var_P])
        shared = np.zeros_like(r)
        if self.censored:  # Σ over P of what a row does to E_U h and to E_P h
            shared = np.sqrt(wider_U * wider_P * unbiased(n) * unbiased(m)) * P.variance / n
        second = 1 + noise
        V = from_T + second * (parts[1] + parts[2] + 2 * r * (1 - r) * shared)
        # noise of counts; under censoring that of P is in U too
        added_P = np.zeros_like(r) if by_law else P.added
        both = added_P * m / n if self.censored else np.zeros_like(r)
        V += T.added + r**2 * U.added + (1 - r) ** 2 * added_P + 2 * r * (1 - r) * both
        of_D = second * (var_U + var_P) + U.added + added_P
        observations = np.array([t, n, m], dtype=float)
        return TriedRatios.of(r, T.mean, U.mean, V, parts, observations, of_D)

    @property
    def is_noisy(self) -> bool:
        """Whether noise was added to counts of the source."""
        return bool(self.positive.noise or self.population.noise)

    def _mean_of_positives(self, h: Floats) -> Floats:
        share = self.positive.counts / self.positive.rows
        return np.asarray(np.einsum("krb,kb->kr", h, share)[:, :, None])


@dataclass(frozen=True, eq=False)
class SourceCounts:
    """P and U as counts.

    Attributes
    ----------
    positive, unlabeled : ScoreCounts
        Labelled and unlabelled rows.
    ranked : int
        Positives that p-values are ranks among.
    folds : int
        Of the scores.
    km2_prior : float
        What KM2 says of rows that the scores were fitted to; NaN where it was not asked.
    scenario : {"case-control", "censoring"}
        Whether the unlabelled rows, or all rows, are the population.
    """

    positive: ScoreCounts
    unlabeled: ScoreCounts
    ranked: int
    folds: int
    km2_prior: float
    scenario: str = "case-control"

    @property
    def sizes(self) -> tuple[int, int]:
        """Labelled and unlabelled rows."""
        return self.positive.rows, self.unlabeled.rows

    @cached_property
    def population(self) -> ScoreCounts:
        """U."""
        return self.unlabeled.merge(self.positive) if self.scenario == "censoring" else self.unlabeled

    @cached_property
    def law(self) -> tuple[Floats, Floats]:
        """π and w of the largest mixture that the p-values allow, in each repetition."""
        counts = self.population.counts
        if self.population.noise:  # less of it is in the mean over repetitions, whose laws differ little
            counts = np.broadcast_to(np.maximum(counts.mean(axis=0), 0.0), counts.shape)
        return mixture.fit_one(counts)

    @property
    def posterior_counts(self) -> PopulationCounts:
        """What the posterior of π is made from."""
        found, m = self.population, float(self.ranked)
        if not found.noise:
            return PopulationCounts(found.levels, self.ranked, m)
        # the mean over repetitions, whose noise is smaller; bins begin between ranks, and some hold none
        ranks = np.ceil(np.array([*STARTS, mixture.BINS]) / mixture.BINS * (self.ranked + 1) - 0.5)
        edges = tuple((np.unique(ranks) / (self.ranked + 1)).tolist())
        counts = found.grouped.mean(axis=0, keepdims=True)[:, np.diff(ranks) > 0]
        return PopulationCounts(counts, self.ranked, m, found.noise / np.sqrt(len(found.counts)), edges)

    @property
    def witness(self) -> CountWitness:
        """What tests the ratio of a target."""
        censored = self.scenario == "censoring"
        return CountWitness.of(
            self.positive, self.population, self.law, ranked=self.ranked, folds=self.folds, censored=censored
        )
