"""Test of every ratio from counts of p-values, for any number of rows.

The best function h of :mod:`priorshift.scores.ratio_test` is the mean over repetitions of a function h_k of the bin b_k
of a row's p-value in repetition k. Its mean and its mean square in a sample,

    E h = Σ_k Σ_b h_k(b) n_k(b)/(Kn),     E h² = Σ_jk Σ_bc h_j(b) h_k(c) n_jk(b, c)/(K²n),

need the counts n_k of rows in each bin and n_jk of rows in two bins at once, and no row. Counts add up: in any order,
over files, machines and institutions. If every row is its own observation with the same weight, the test of a ratio
equals that from rows, up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.scores import mixture, ratio_test
from priorshift.scores.mixture import Bins
from priorshift.scores.posterior import PopulationCounts, posterior_counts
from priorshift.scores.ratio_test import RatioTest, TriedRatios, WitnessMeans, WitnessMoments, unbiased

_BLOCK = 2**17  # rows whose pairs of bins are counted at a time
# first bin of each group of bins. Private releases add noise to the counts of groups, not of bins: the noise of a sum
# grows with their number, and nine groups, narrow near 0, where negatives lie, are nearly as precise as all bins
# (docs/sharing.md)
STARTS = np.array([0, 1, 2, 4, 8, 16, 32, 64, 128])
GROUPS = len(STARTS)
_WIDTHS = np.diff([*STARTS, mixture.BINS])  # bins in each group
_LARGEST_NOISE = 10.0  # in standard deviations
_ROUNDING = 1e-9  # relative rounding error of a sum of noisy counts
_LEAST_VARIANCE = 1e-9  # of a function of noisy counts, whose variance can come out negative


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Counts of the p-values of a sample."""

    rows: int
    counts: Floats  # rows in each bin of the mixture, shape (repeats, bins); equal within a group if noisy
    pairs: Floats | None  # rows in two bins at once, shape (pairs of repetitions, bins, bins); None if not counted
    levels: Floats  # rows in each bin of the posterior, shape (repeats, levels); no levels if noisy
    noise: float = 0.0  # standard deviation of the noise added to each group of bins, for privacy

    @classmethod
    def from_p_values(cls, values: Floats, ranked: int) -> ScoreCounts:
        """Count p-values of shape (repeats, rows) in bins, in pairs of bins, and in the posterior's bins.

        `ranked` is the number of positives among which the p-values are ranks.
        """
        return cls.from_bins(mixture.bins(values), posterior_counts(values, ranked, np.ones(values.shape[1])))

    @classmethod
    def from_bins(cls, bins: Bins, levels: Floats | None = None) -> ScoreCounts:
        """Count rows by the bins of their p-values, shape (repeats, rows), and by bins in two repetitions at once.

        The latter give the covariance of h between repetitions. `levels` are counts in the bins that the posterior of π
        uses (:func:`posterior_counts`), shape (repeats, bins); None where no posterior is computed.
        """
        repeats, rows = bins.shape
        counts = np.stack([np.bincount(b, minlength=mixture.BINS) for b in bins]).astype(float)
        pairs = np.zeros((repeats * (repeats - 1) // 2, mixture.BINS**2))
        for start in range(0, rows, _BLOCK):
            block = bins[:, start : start + _BLOCK]
            for pair, (j, k) in enumerate(combinations(range(repeats), 2)):
                # bins b and c in repetitions j and k are counted as the number b·BINS + c
                numbers = block[j].astype(np.intp) * mixture.BINS + block[k]
                pairs[pair] += np.bincount(numbers, minlength=mixture.BINS**2)
        levels = np.empty((repeats, 0)) if levels is None else levels
        return cls(rows, counts, pairs.reshape(-1, mixture.BINS, mixture.BINS), levels)

    @classmethod
    def from_groups(cls, rows: int, grouped: Floats, noise: float) -> ScoreCounts:
        """Spread noisy counts of groups, shape (repeats, groups), evenly over the bins of each group."""
        counts = np.repeat(grouped / _WIDTHS, _WIDTHS, axis=1)
        return cls(rows, counts, None, np.empty((len(grouped), 0)), noise)

    @property
    def grouped(self) -> Floats:
        """Number of rows in each group of bins, shape (repeats, groups)."""
        return np.add.reduceat(self.counts, STARTS, axis=1)

    @property
    def adds_up(self) -> bool:
        """Whether all counts agree with the number of rows and with each other, and none is impossibly negative."""
        if self.noise:
            grouped = self.grouped
            excess = np.abs(grouped.sum(axis=1) - self.rows)  # rounding error: noise is drawn with the sum 0
            not_negative = (grouped > -_LARGEST_NOISE * self.noise).all()
            return bool(not_negative and (excess < _ROUNDING * (self.rows + self.noise)).all())
        for table in (self.counts, self.levels):  # each line is of one repetition, and counts all rows
            if (table < 0).any() or not np.allclose(table.sum(axis=1), self.rows, rtol=1e-12):
                return False
        if self.pairs is None:
            return True
        # the table of repetitions j and k has the counts of j and of k as its margins
        margins_agree = all(
            np.array_equal(table.sum(axis=1), self.counts[j]) and np.array_equal(table.sum(axis=0), self.counts[k])
            for (j, k), table in zip(combinations(range(len(self.counts)), 2), self.pairs, strict=True)
        )
        return margins_agree and not (self.pairs < 0).any()

    def merge(self, other: ScoreCounts) -> ScoreCounts:
        """Return the counts of both samples together; if one is noisy, the sum has no pairs and no levels."""
        same_levels = self.noise or other.noise or self.levels.shape == other.levels.shape
        if self.counts.shape != other.counts.shape or not same_levels:
            raise InputError("counts of different scores cannot be added; count both samples by one model.")
        pairs = None if self.pairs is None or other.pairs is None else self.pairs + other.pairs
        rows, noise = self.rows + other.rows, float(np.hypot(self.noise, other.noise))  # variances add up
        if noise:
            return ScoreCounts.from_groups(rows, self.grouped + other.grouped, noise)
        return ScoreCounts(rows, self.counts + other.counts, pairs, self.levels + other.levels)

    def moments(self, h: Floats) -> WitnessMoments:
        """Return the moments of functions h of the bins, shape (repeats, functions, bins), by the formulas above.

        h of a row is the mean over repetitions k of h_k at its bin in repetition k.
        """
        share = self.counts[:, :, None] / self.rows
        means = (h @ share)[:, :, 0]  # E h_k, shape (repeats, functions)
        single_variance = np.mean((h**2 @ share)[:, :, 0] - means**2, axis=0)
        mean, variance = means.mean(axis=0), single_variance
        if self.pairs is not None:
            # Var h = (Σ_k Var h_k + 2 Σ_{j<k} Cov(h_j, h_k))/K²
            covariances = np.zeros_like(mean)
            for (j, k), table in zip(combinations(range(len(h)), 2), self.pairs, strict=True):
                covariances += np.einsum("rb,rb->r", h[j] @ table, h[k]) / self.rows - means[j] * means[k]
            variance = (single_variance * len(h) + 2 * covariances) / len(h) ** 2
        least_variance = _LEAST_VARIANCE if self.noise else 0.0
        variance, single_variance = np.maximum(variance, least_variance), np.maximum(single_variance, least_variance)
        # variance of the mean due to noise, which sums to 0 in a repetition: so h enters less its mean over groups
        privacy_variance = self.noise**2 * h[:, :, STARTS].var(axis=2).sum(axis=0) * GROUPS / (len(h) * self.rows) ** 2
        return WitnessMoments(mean, variance + mean**2, variance, single_variance, privacy_variance)


@dataclass(frozen=True, eq=False)
class CountWitness:
    """Counts of a source, which test ratios for any target."""

    density_ratio: Floats  # ρ, shape (repeats, bins)
    positive: ScoreCounts
    population: ScoreCounts
    ranked: int  # number of positives among which p-values are ranks
    folds: int  # folds of the cross-fitting
    censored: bool = False  # whether all rows of P are among U

    @property
    def is_noisy(self) -> bool:
        """Whether noise was added to counts of the source."""
        return bool(self.positive.noise or self.population.noise)

    @cached_property
    def tie_shares(self) -> Floats:
        """Share of positives that ties add to each bin; 0 if P is noisy, or of another size than the ranked positives.

        Where P is other positives, but equally many, it makes E_P h their mean, which is valid too.
        """
        if self.positive.rows != self.ranked or self.positive.noise:
            return np.zeros_like(self.density_ratio)
        return ratio_test.tie_shares(self.positive.counts)

    def test(self, target: ScoreCounts, least: float = 0.0) -> RatioTest:
        """Test R = r at many ratios r, from `least` on, for a target whose p-values were counted by the same scores."""
        return RatioTest.run(lambda ratios: self._try_ratios(ratios, target), least)

    def _try_ratios(self, ratios: Floats, target: ScoreCounts) -> TriedRatios:
        """Test the ratios, each by its best function h of the bins, centred so that E_P h = 0."""
        P, sizes = self.positive, (self.positive.rows, self.population.rows, target.rows)
        h = ratio_test.efficient_witness(self.density_ratio, ratios, sizes)
        if self.is_noisy or target.noise:  # noisy counts are known by groups only, so h is averaged in each group
            h = np.repeat(np.add.reduceat(h, STARTS, axis=2) / _WIDTHS, _WIDTHS, axis=2)
        exact_ranks = P.rows == self.ranked  # if P is the positives that are ranked, the distribution of ranks is known
        if exact_ranks:
            h -= ratio_test.mean_over_ranks(h, P.rows, self.tie_shares)
        else:
            h -= np.einsum("krb,kb->kr", h, P.counts / P.rows)[:, :, None]  # the mean over P in each repetition
        means = _CountMeans(self, h, target, exact_ranks)
        return ratio_test.try_ratios(ratios, h, self.density_ratio, means, self.folds)


class _CountMeans(WitnessMeans):
    """Means of functions h by counts, and their errors."""

    def __init__(self, witness: CountWitness, h: Floats, target: ScoreCounts, exact_ranks: bool) -> None:
        """Compute the moments of h, shape (repeats, functions, bins), in P, U and T.

        `exact_ranks` means that E_P h is known from the distribution of ranks, without noise.
        """
        P, U = witness.positive, witness.population
        self.sizes = self.observations = P.rows, U.rows, target.rows
        self.tie_shares = witness.tie_shares
        self.repeats = 1 if U.pairs is None else len(h)
        self.positive, self.population, self._target = P.moments(h), U.moments(h), target.moments(h)
        self.target_mean, self.target_privacy_variance = self._target.mean, self._target.privacy_variance
        if exact_ranks:
            self.positive = replace(self.positive, privacy_variance=0.0)
        self._censored = witness.censored
        if self._censored:  # U contains the rows of P, and their noise
            self.privacy_covariance = self.positive.privacy_variance * P.rows / U.rows

    def variances(self, factor_P: Floats, factor_U: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the variances of E_P h, E_U h and E_T h, the first two multiplied by `factor_P` and `factor_U`."""
        P, U, (m, n, t) = self.positive, self.population, self.sizes
        self._var_P = factor_P * P.variance * unbiased(m) / m
        self._var_U = factor_U * U.variance * unbiased(n) / n
        self._covariance = np.zeros_like(self._var_P)  # of E_P h and E_U h
        if self._censored:  # rows of P are also in U: the sum over P of the influences on E_U h and on E_P h
            self._covariance = np.sqrt(factor_U * factor_P * unbiased(n) * unbiased(m)) * P.variance / n
        return self._var_P, self._var_U, self._target.variance * unbiased(t) / t

    def source_variance(self, weight_U: Floats, weight_P: Floats) -> Floats:
        """Return the variance of weight_U·E_U h + weight_P·E_P h."""
        independent = weight_U**2 * self._var_U + weight_P**2 * self._var_P
        return np.asarray(independent + 2 * weight_U * weight_P * self._covariance)


@dataclass(frozen=True, eq=False)
class SourceCounts:
    """Counts of the p-values of P and of the unlabelled rows."""

    positive: ScoreCounts
    unlabeled: ScoreCounts
    ranked: int  # number of positives among which p-values are ranks
    folds: int  # folds of the cross-fitting
    km2_prior: float  # estimate of KM2 from the rows to which the scores were fitted; NaN without one
    scenario: str = "case-control"  # the population is the unlabelled rows, or under "censoring" all rows

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of labelled and unlabelled rows."""
        return self.positive.rows, self.unlabeled.rows

    @cached_property
    def population(self) -> ScoreCounts:
        """Counts of the population sample U: unlabelled rows, and under censoring labelled rows too."""
        return self.unlabeled.merge(self.positive) if self.scenario == "censoring" else self.unlabeled

    @cached_property
    def law(self) -> tuple[Floats, Floats]:
        """π and w of the mixture with the largest π that fits the p-values, in each repetition."""
        counts = self.population.counts
        if self.population.noise:  # the mean over repetitions, which differ little, has less noise
            counts = np.broadcast_to(np.maximum(counts.mean(axis=0), 0.0), counts.shape)
        return mixture.fit_one(counts)

    @property
    def posterior_counts(self) -> PopulationCounts:
        """Counts of U's p-values, and the number of positives, from which the posterior of π is computed.

        Exact counts are in bins that were chosen for the posterior. Counts with noise, added for privacy, are known by
        groups of the mixture's bins only, so these groups are the posterior's bins.
        """
        U = self.population
        if not U.noise:
            return PopulationCounts(U.levels, self.ranked, m=float(self.ranked))
        # first rank in each group: p-values are (rank + ½)/(ranked + 1). A group without ranks can have no rows, so it
        # is left out; counts are averaged over repetitions, which reduces their noise
        ranks = np.ceil(np.array([*STARTS, mixture.BINS]) / mixture.BINS * (self.ranked + 1) - 0.5)
        edges = tuple((np.unique(ranks) / (self.ranked + 1)).tolist())
        counts = U.grouped.mean(axis=0, keepdims=True)[:, np.diff(ranks) > 0]  # shape (1, groups with ranks)
        noise = U.noise / np.sqrt(len(U.counts))  # standard deviation of the noise in a mean over repetitions
        return PopulationCounts(counts, self.ranked, float(self.ranked), noise, edges)

    @property
    def witness(self) -> CountWitness:
        """Witness that tests ratios for a target."""
        prior, weights = self.law
        density_ratio = ratio_test.density_ratio(prior, weights, self.population.rows)
        censored = self.scenario == "censoring"
        return CountWitness(density_ratio, self.positive, self.population, self.ranked, self.folds, censored)
