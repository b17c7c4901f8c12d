"""Test of every ratio from rows: means of the functions h of :mod:`priorshift.scores.ratio_test` over samples.

A mean is weighted by the mass of rows, which sums to 1, and Var(E h) = Σ (mass·(h − E h))², where the terms of one
observation (copies, shared rows, groups) are added up before they are squared. 1/n becomes Σ mass².
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from priorshift.arrays import Floats, Index
from priorshift.problem import Source, Target
from priorshift.scores import mixture, ratio_test
from priorshift.scores.counts import CountWitness, ScoreCounts
from priorshift.scores.cross_fitting import Repetition
from priorshift.scores.mixture import Bins
from priorshift.scores.ratio_test import LARGEST_RATIO, RatioTest, TriedRatios, WitnessMeans, WitnessMoments, unbiased
from priorshift.scores.scored_source import ScoredSource
from priorshift.threads import map_in_threads

_BLOCK = 2**21  # values of h in memory at a time
_COUNTED = 20_000  # rows of the source above which counts are faster
_LEAST_LEFT = 1e-3  # least share of a variance that remains when common groups cancel


@dataclass(frozen=True, eq=False)
class Influence:
    """Influence of rows on R̂, to first order and with the noise of the scores."""

    source: Floats  # of each observation of the source, including rows of the target that belong to it
    target: Floats  # of each other row of the target
    own_variance: float  # variance of R̂ due to `target`; plus the squares of `source`, the variance of the test
    freedom: float  # Satterthwaite's degrees of freedom


@dataclass(frozen=True)
class VarianceParts:
    """Variance of R̂ by samples; they add up to `total` if no observation is in two samples."""

    positive: float  # due to P alone, with the noise of the scores
    unlabeled: float  # due to U alone, likewise
    target: float  # due to T alone
    total: float
    noise: float  # share of noise in h, 0 to 1


@dataclass(frozen=True, eq=False)
class Witness:
    """Scored source that tests ratios for any target."""

    scored: ScoredSource
    source: Source
    density_ratio: Floats  # ρ, shape (repeats, bins)
    population: Bins  # bins of the p-values of U, shape (repeats, rows)
    positive: Bins  # bins of the p-values of P
    folds: int  # folds of the cross-fitting

    @classmethod
    def from_scores(cls, scored: ScoredSource, source: Source, prior: Floats, weights: Floats) -> Witness:
        """Build the witness from scores, and from `prior` π and `weights` w of the mixture in each repetition."""

        def own_bins(repetition: Repetition) -> Bins:
            """Return the bins of the p-values of P among itself."""
            return mixture.bins(scored.ranks(repetition.positive, repetition.positive))

        positive = np.stack(map_in_threads(own_bins, scored.repetitions, len(source.labeled)))
        density_ratio = ratio_test.density_ratio(prior, weights, source.U.size)
        folds = len(scored.repetitions[0].models)
        return cls(scored, source, density_ratio, mixture.bins(scored.p_values), positive, folds)

    def test(self, p_values: Floats, target: Target, least: float = 0.0) -> RatioTest:
        """Test R = r at many ratios r, from `least` on, for a target with p-values of shape (repeats, rows).

        From counts, which is faster, if rows of the source are many, and all rows have equal weights and no groups.
        """
        if self._counts is not None and target.is_iid and not (target.source_observation >= 0).any():
            return self._counts.test(ScoreCounts.from_bins(mixture.bins(p_values)), least)
        sample = self._sample(p_values, target)
        return RatioTest.run(lambda ratios: self._try_ratios(ratios, sample), least)

    @cached_property
    def _counts(self) -> CountWitness | None:
        """The same witness from counts, which is faster for many rows; None if rows differ in weight or are grouped."""
        source, censored = self.source, self.source.scenario == "censoring"
        is_ungrouped = source.observation.max() + 1 == len(source.observation)
        is_iid = source.weights is None and is_ungrouped and (censored or not len(source.shared))
        if len(source.labeled) < _COUNTED or not is_iid:
            return None
        P, U = ScoreCounts.from_bins(self.positive), ScoreCounts.from_bins(self.population)
        return CountWitness(self.density_ratio, P, U, P.rows, self.folds, censored=censored)

    def function(self, ratios: Floats, size: float) -> Floats:
        """Return h_r in each bin, shape (repeats, ratios, bins), centred to E_P h = 0.

        `size` is the effective size of the target, for which h_r is best.
        """
        h = ratio_test.efficient_witness(self.density_ratio, ratios, (self.source.P.size, self.source.U.size, size))
        h -= self._positive_means(h)
        return np.asarray(h)

    @cached_property
    def tie_shares(self) -> Floats:
        """Share of positives that ties add to each bin, shape (repeats, bins); 0 if rows of P differ in weight."""
        if self.scored.positive_mass is not None:
            return np.zeros((len(self.positive), mixture.BINS))
        return ratio_test.tie_shares(np.stack([np.bincount(b, minlength=mixture.BINS) for b in self.positive]))

    def _positive_means(self, h: Floats) -> Floats:
        """Return E_P h in each repetition, shape (repeats, functions, 1): over all ranks, or over rows if weighted.

        `h` are values in the bins, shape (repeats, functions, bins).
        """
        if self.scored.positive_mass is None:
            return ratio_test.mean_over_ranks(h, self.positive.shape[1], self.tie_shares)
        means = [h[k][:, bins] @ self.source.P.mass for k, bins in enumerate(self.positive)]
        return np.stack(means)[:, :, None]

    def positive_mean(self, h: Floats) -> Floats:
        """Return E_P h of functions of the bins, shape (functions, bins), averaged over repetitions."""
        repeated = np.broadcast_to(h, (len(self.positive), *h.shape))
        return np.asarray(self._positive_means(repeated).mean(axis=(0, 2)))

    def noise_share(self, h: Floats) -> float:
        """Return the share of noise of the scores in the variance in U of a function h, shape (repeats, bins)."""
        mass, n = self.source.U.mass, self.source.U.size
        values = _average(h[:, None], self.population)  # of each row
        variance = ((values * values) @ mass - (values @ mass) ** 2) * unbiased(n)
        single_variance = _mean_variance(h[:, None], self.population, mass) * unbiased(n)
        return float(ratio_test.noise_share(single_variance, variance, len(h), self.folds)[0])

    def influence(self, ratio: float, p_values: Floats, target: Target, least: float = 0.0) -> Influence:
        """Return the influence of rows on the estimate `ratio`, with the function h that is best for it.

        R̂ = N/D, so its influence is that on N − rD = E_T h − r·E_U h − (1−r)·E_P h, over D. `least` is the smallest
        possible ratio.
        """
        r, sample = np.clip([ratio], least, LARGEST_RATIO), self._sample(p_values, target)
        h = self.function(r, target.size)
        means = RowMeans(self, h, sample)
        tried = ratio_test.try_ratios(r, h, self.density_ratio, means, self.folds)
        # √inflation adds the noise of the scores to the source's influence
        factor, D = np.sqrt(tried.inflation), tried.denominator[0]
        source_influence, target_influence = means.source_influence(-factor * r, -factor * (1 - r)), means.of_T
        if sample.with_source is not None:  # target rows of the source's observations count with these
            source_influence = source_influence + target_influence @ sample.with_source.T
            target_influence = np.where(target.source_observation >= 0, 0.0, target_influence)
        own_variance = max(float(tried.variance[0]) - float(_sum_of_squares(source_influence)[0]), 0.0) / D**2
        # the only line of each is that of the only ratio
        return Influence(source_influence[0] / D, target_influence[0] / D, own_variance, float(tried.freedom[0]))

    def variance_parts(self, ratio: float, p_values: Floats, target: Target) -> VarianceParts:
        """Return the variance of the estimate `ratio` by samples, with the function h that is best for it."""
        tried = self._try_ratios(np.clip([ratio], 0.0, LARGEST_RATIO), self._sample(p_values, target))
        variance, D, inflation = float(tried.variance[0]), tried.denominator[0], float(tried.inflation[0])
        from_T, from_U, from_P = (float(part) for part in tried.parts[:, 0] / D**2)
        return VarianceParts(inflation * from_P, inflation * from_U, from_T, variance / float(D) ** 2, inflation - 1)

    def _sample(self, p_values: Floats, target: Target) -> _RowSample:
        """Return what all tests of a target use: bins of its p-values, and matrices that sum over observations."""
        source, with_source = self.source, None
        rows = np.flatnonzero(target.source_observation >= 0)  # rows of observations of the source; −1 means none
        if len(rows):
            shape = (int(source.observation.max()) + 1, len(target))
            with_source = csr_array((np.ones(len(rows)), (target.source_observation[rows], rows)), shape=shape)
        groups = _grouping(source.observation), _grouping(target.observation)
        observations = source.P.observations, source.U.observations, target.observations
        return _RowSample(mixture.bins(p_values), target, *groups, with_source, observations)

    def _try_ratios(self, ratios: Floats, sample: _RowSample) -> TriedRatios:
        """Test R = r for each of `ratios`, in blocks of ratios whose values of h at all rows fit into memory."""
        block = max(1, _BLOCK // (len(self.source.labeled) + sample.bins.shape[1]))
        tried = []
        for k in range(0, len(ratios), block):
            r = ratios[k : k + block]
            h = self.function(r, sample.target.size)
            tried.append(ratio_test.try_ratios(r, h, self.density_ratio, RowMeans(self, h, sample), self.folds))
        return TriedRatios.join(tried)


@dataclass(frozen=True, eq=False)
class _RowSample:
    """Target, and matrices that add up the rows of each observation; None if each row is its own observation."""

    bins: Bins  # of the target's p-values, shape (repeats, rows)
    target: Target
    source_groups: csr_array | None  # shape (observations, rows) of the source
    target_groups: csr_array | None  # shape (observations, rows) of the target
    # the target's rows in observations of the source, shape (observations of the source, target rows); None if none is
    with_source: csr_array | None
    observations: tuple[float, float, float]  # effective observations of P, U and T


class RowMeans(WitnessMeans):
    """Means of functions h over rows, with the influence of each row: shape (functions, rows)."""

    def __init__(self, witness: Witness, h: Floats, sample: _RowSample) -> None:
        """Compute the means in P, U and T of functions h of the bins, shape (repeats, functions, bins).

        `of_P`, `of_U` and `of_T` are h at each row less its mean, shape (functions, rows of the sample).
        """
        self.source, self.sample, self.repeats = witness.source, sample, len(h)
        self.tie_shares = witness.tie_shares
        self.sizes = witness.source.P.size, witness.source.U.size, sample.target.size
        self.observations, self.has_shared_groups = sample.observations, sample.with_source is not None
        self.of_P, self.of_U = _average(h, witness.positive), _average(h, witness.population)
        self.of_T = _average(h, sample.bins)
        # these two calls subtract the means from of_P and of_U, in place
        self.positive = _moments(self.of_P, h, witness.positive, self.source.P.mass)
        self.population = _moments(self.of_U, h, witness.population, self.source.U.mass)
        self.target_mean = self.of_T @ sample.target.mass
        self.of_T -= self.target_mean[:, None]

    def variances(self, factor_P: Floats, factor_U: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the variances of E_P h, E_U h and E_T h; `of_P`, `of_U`, `of_T` become influences, in place.

        The influence of a row on a mean is mass·(h − E h), times √(n/(n−1)) and √`factor_P` or √`factor_U`.
        """
        source, sample = self.source, self.sample
        self.of_P *= np.sqrt(factor_P)[:, None]
        self.of_U *= np.sqrt(factor_U)[:, None]
        masses = source.P.mass, source.U.mass, sample.target.mass
        for values, mass, count in zip((self.of_P, self.of_U, self.of_T), masses, self.observations, strict=True):
            values *= mass * np.sqrt(unbiased(count))
        groups = sample.source_groups
        self.var_P = _sum_of_squares(self.of_P, groups if groups is None else groups[:, source.positive])
        self.var_U = _sum_of_squares(self.of_U, groups if groups is None else groups[:, source.population])
        if sample.target_groups is not None and source.groups is not None:  # variance with groups over that without
            self.group_effect = self.var_U / np.maximum(_sum_of_squares(self.of_U), 1e-300)
        return self.var_P, self.var_U, _sum_of_squares(self.of_T, sample.target_groups)

    def source_variance(self, weight_U: Floats, weight_P: Floats) -> Floats:
        """Return the variance of weight_U·E_U h + weight_P·E_P h for each function h.

        P and U are independent unless they share rows or groups.
        """
        if self.sample.source_groups is None and not len(self.source.shared):
            return np.asarray(weight_U**2 * self.var_U + weight_P**2 * self.var_P)
        return _sum_of_squares(self.source_influence(weight_U, weight_P))

    def source_influence(self, weight_U: Floats, weight_P: Floats) -> Floats:
        """Return the influence of each observation of the source on weight_U·E_U h + weight_P·E_P h.

        The weights have shape (functions,), the influence (functions, observations).
        """
        influence = np.zeros((len(weight_U), len(self.source.labeled)))
        influence[:, self.source.population] += weight_U[:, None] * self.of_U
        influence[:, self.source.positive] += weight_P[:, None] * self.of_P
        groups = self.sample.source_groups
        return influence if groups is None else np.asarray(influence @ groups.T)

    def with_shared_groups(self, r: Floats, variance: Floats, inflation: Floats) -> Floats:
        """Return the variance of N − rD, less twice the covariance of E_T h with r·E_U h + (1−r)·E_P h.

        The covariance comes from groups in source and target; a small share of the variance always remains.
        """
        # the target's influence by observation of the source
        by_observation = self.of_T @ self.sample.with_source.T  # type: ignore[union-attr]
        covariance = np.einsum("ij,ij->i", by_observation, self.source_influence(r, 1 - r))
        return np.maximum(variance - 2 * np.sqrt(inflation) * covariance, _LEAST_LEFT * variance)


def _average(h: Floats, bins: Bins) -> Floats:
    """Return h of each row, averaged over repetitions, shape (functions, rows).

    `h` has shape (repeats, functions, bins), `bins` (repeats, rows).
    """
    total = h[0][:, bins[0]]
    for k in range(1, len(h)):
        total += h[k][:, bins[k]]
    return np.asarray(total / len(h))


def _moments(values: Floats, h: Floats, bins: Bins, mass: Floats) -> WitnessMoments:
    """Return the moments of functions h in a sample, and subtract the means from `values` in place.

    `values` are h at each row, shape (functions, rows); `mass` of the rows sums to 1.
    """
    mean, square = values @ mass, (values * values) @ mass
    values -= mean[:, None]
    return WitnessMoments(mean, square, (values * values) @ mass, _mean_variance(h, bins, mass))


def _mean_variance(h: Floats, bins: Bins, mass: Floats) -> Floats:
    """Return the variance of h in one repetition, averaged over repetitions, shape (functions,).

    `h` has shape (repeats, functions, bins), `bins` are those of the rows, shape (repeats, rows).
    """
    variances = []
    for k, row_bins in enumerate(bins):
        values = h[k][:, row_bins]
        variances.append((values * values) @ mass - (values @ mass) ** 2)
    return np.asarray(np.mean(variances, axis=0))


def _grouping(observation: Index) -> csr_array | None:
    """Return a matrix of shape (observations, rows) that adds up the rows of each observation; None if each has one."""
    count = int(observation.max()) + 1
    if count == len(observation):
        return None
    rows = np.arange(len(observation))
    return csr_array((np.ones(len(rows)), (observation, rows)), shape=(count, len(rows)))


def _sum_of_squares(values: Floats, groups: csr_array | None = None) -> Floats:
    """Return the sum of squares of each line of an array, after adding up the values of each group.

    `groups` has shape (groups, columns of the array); None if there are no groups.
    """
    values = values if groups is None else values @ groups.T
    return np.asarray(np.einsum("ij,ij->i", values, values))
