"""The efficient witness: the ratio R = (1−π′)/(1−π) as precisely as the scores allow.

Label shift says E_T h = (1−R)·E_P h + R·E_U h for every function h, so each h is a witness of R: R = N/D with
N = E_T h − E_P h and D = E_U h − E_P h. TCPU takes h = μ_U − μ_P in the space of a kernel. The variance of N − rD is
c_T Var_T h + c_P Var_P h + c_U Var_U h with c_T = 1/n′, c_P = (1−r)²/m, c_U = r²/n, and the h that makes the variance
of R̂ smallest is, by Cauchy and Schwarz,

    h_r = (f_U − f_P)/(c_T f_T + c_P f_P + c_U f_U) = (1 − ρ)/(c_T((1−r)ρ + r) + c_P ρ + c_U),     ρ = f_P/f_U.

It depends on a row through ρ alone, and on the scale of the p-value v (uniform for positives) ρ = 1/f_U(v), of which
the mixture gives a decreasing fit. An error of ρ costs precision, never validity: every h is valid.

Each r is tested with the witness that is best if R = r. The positives' p-values are ranks, so that E_P h is known, and
their noise enters through the ranks: to first order with the influence of a mean over P. The scores were fitted to the
rows that they are averaged over, if never to a row itself; what two rows do to each other's scores does not vanish
where the scores are mostly noise. This second-order part of the variance is that of the first order times the share of
noise in h, which is seen in how much h differs between repetitions.

Rows need not count alike: a mean is over their mass, which sums to 1, and Var(E h) = Σ (mass·(h − E h))², where what
rows of one observation do (copies, shared rows, groups) is added up before it is squared. 1/n becomes Σ mass².
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from priorshift.arrays import Floats, Index
from priorshift.io.weights import effective_size
from priorshift.problem import Source, Target
from priorshift.scores import mixture
from priorshift.scores.counts import CountWitness, ScoreCounts
from priorshift.scores.ratio_test import (
    LARGEST,
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
from priorshift.scores.scored_source import ScoredSource

_BLOCK = 2**21  # values of h held at a time
_COUNTED = 20_000  # rows of the source from which on it pays to count them
_LEAST_LEFT = 1e-3  # of a variance, where groups that stand in source and target cancel out


@dataclass(frozen=True, eq=False)
class _Linearized:
    """TriedRatios, and what their variance is made of.

    What each row of U, P and T does to its mean of h, 1 + noise, and the variances of N − rD that T, U and P make by
    themselves, without the noise.
    """

    tests: TriedRatios
    population: Floats
    positive: Floats
    target: Floats
    second: Floats
    parts: Floats


@dataclass(frozen=True, eq=False)
class Influence:
    """What R̂ rests on, to first order and with the noise of the scores.

    Attributes
    ----------
    source : ndarray of shape (observations,)
        How much each observation of the source moves R̂, with those rows of the target that belong to it.
    target : ndarray of shape (rows,)
        How much each other row of the target does.
    own_variance : float
        Of R̂, from these; with the squares of `source` it adds up to the variance that the test uses.
    freedom : float
        Satterthwaite's degrees of freedom.
    """

    source: Floats
    target: Floats
    own_variance: float
    freedom: float


@dataclass(frozen=True)
class VarianceParts:
    """What the variance of R̂ is made of.

    Attributes
    ----------
    positive, unlabeled, target : float
        The variances that P, U and T make by themselves; those of the source with the noise of the scores. Where no
        observation is in two samples, they add up to `total`.
    total : float
        Of R̂, as the test has it.
    noise : float
        The share of noise in h, 0 to 1.
    """

    positive: float
    unlabeled: float
    target: float
    total: float
    noise: float


@dataclass(frozen=True, eq=False)
class Witness:
    """What a scored source needs to test ratios for any target.

    Attributes
    ----------
    scored : ScoredSource
        P-values of U in every repetition.
    source : Source
        Which rows are P, U and one observation.
    density_ratio : ndarray of shape (repeats, bins)
        ρ.
    population, positive : ndarray of shape (repeats, rows)
        The bins of the p-values.
    """

    scored: ScoredSource
    source: Source
    density_ratio: Floats
    population: NDArray[np.intp]
    positive: NDArray[np.intp]

    @classmethod
    def from_scores(cls, scored: ScoredSource, source: Source, prior: Floats, weights: Floats) -> Witness:
        """From π and w of the mixture in each repetition."""
        own = np.stack([scored.ranks(r.positive, r.positive) for r in scored.repetitions])
        ratio = density_ratio_of((prior, weights), source.effective_sizes[1])
        return cls(scored, source, ratio, mixture.bins(scored.p_values), mixture.bins(own))

    def test(self, values: Floats, target: Target) -> RatioTest:
        """Test every ratio; `values` are the target's p-values, of shape (repeats, rows)."""
        alike = self._counted is not None and target.is_even and not (target.of_source >= 0).any()
        if self._counted is not None and alike:
            return self._counted.test(_counts(mixture.bins(values)))
        sample = self._sample(values, target)
        return RatioTest.of(lambda ratios: self._tests(ratios, sample))

    @cached_property
    def _counted(self) -> CountWitness | None:
        """The same from counts, which is faster for many rows; None where rows are not all alike."""
        source, censored = self.source, self.source.scenario == "censoring"
        alike = source.weights is None and self._together is None and (censored or not len(source.shared))
        if len(source.labeled) < _COUNTED or not alike:
            return None
        m, folds = self.positive.shape[1], len(self.scored.repetitions[0].models)
        return CountWitness(
            self.density_ratio, _counts(self.positive), _counts(self.population), m, folds, censored=censored
        )

    def noise_share(self, h: Floats) -> float:
        """The share of h's variance among U that is noise of the scores; a function of the bins in each repetition."""
        variance = _variance(_averaged(h[:, None], self.population), self.source.population_mass)
        variance *= unbiased(self.source.effective_sizes[1])
        return float(self._noise(h[:, None], variance)[0])

    def positive_mean(self, h: Floats) -> Floats:
        """Of functions of the bins, shape (h, bins), the mean over repetitions: known from the ranks."""
        same = np.broadcast_to(h, (len(self.positive), *h.shape))
        return np.asarray(self._mean_of_positives(same).mean(axis=(0, 2)))

    def _sample(self, values: Floats, target: Target) -> _TargetSample:
        return _TargetSample(mixture.bins(values), target, _together(target.observation), self._with_source(target))

    def _with_source(self, target: Target) -> csr_array | None:
        """Which rows of the target belong to which observation of the source; None where none does."""
        rows = np.flatnonzero(target.of_source >= 0)
        if not len(rows):
            return None
        shape = (int(self.source.observation.max()) + 1, len(target))
        return csr_array((np.ones(len(rows)), (target.of_source[rows], rows)), shape=shape)

    def _tests(self, ratios: Floats, sample: _TargetSample) -> TriedRatios:
        size = max(1, _BLOCK // (len(self.source.labeled) + sample.bins.shape[1]))
        blocks = [ratios[k : k + size] for k in range(0, len(ratios), size)]
        return reduce(TriedRatios.joined, (self._block(block, sample) for block in blocks))

    def influence(self, ratio: float, values: Floats, target: Target) -> Influence:
        """How rows move the estimate `ratio`, by the witness that is best for it; the other arguments are `test`'s."""
        r, sample = _within(ratio), self._sample(values, target)
        made = self._linearized(r, sample)
        _, _, (V,), (D,), (freedom,), _ = made.tests.made
        source = self._of_observations(-np.sqrt(made.second) * r, -np.sqrt(made.second) * (1 - r), made)
        own = made.target
        if sample.with_source is not None:
            source = source + own @ sample.with_source.T
            own = np.where(target.of_source >= 0, 0.0, own)
        variance = max(float(V) - float(_sum_of_squares(source)[0]), 0.0) / D**2
        return Influence(source[0] / D, own[0] / D, variance, float(freedom))

    def variance_parts(self, ratio: float, values: Floats, target: Target) -> VarianceParts:
        """What the variance of the estimate `ratio` is made of, by the witness that is best for it."""
        made = self._linearized(_within(ratio), self._sample(values, target))
        _, _, (V,), (D,), _, _ = made.tests.made
        (from_T,), (from_U,), (from_P,) = made.parts / D**2
        second = float(made.second[0])
        return VarianceParts(
            second * float(from_P), second * float(from_U), float(from_T), float(V) / float(D) ** 2, second - 1
        )

    def function(self, ratios: Floats, size: float) -> Floats:
        """h_r in each bin, shape (repeats, ratios, bins), for a target that is worth `size` rows; E_P h is 0."""
        h = best_function(self.density_ratio, ratios, (*self.source.effective_sizes, size))
        h -= self._mean_of_positives(h)  # known from the ranks
        return np.asarray(h)

    def _of_observations(self, u: Floats, p: Floats, made: _Linearized) -> Floats:
        """What each observation of the source does to u·E_U h + p·E_P h."""
        influence, together = self._source_influence(u, p, made.population, made.positive), self._together
        return influence if together is None else np.asarray(influence @ together.T)

    def _block(self, r: Floats, sample: _TargetSample) -> TriedRatios:
        return self._linearized(r, sample).tests

    def _linearized(self, r: Floats, sample: _TargetSample) -> _Linearized:
        source = self.source
        mass_P, mass_U, mass_T = source.positive_mass, source.population_mass, sample.target.mass
        (_, n), t = source.effective_sizes, sample.target.size
        h = self.function(r, t)
        of_T, of_U, of_P = (_averaged(h, b) for b in (sample.bins, self.population, self.positive))
        N, D = of_T @ mass_T, of_U @ mass_U
        # if R = r, T has that variance too: few rows of it may hold none of a rare class
        squares = (1 - r) * ((of_P * of_P) @ mass_P) + r * ((of_U * of_U) @ mass_U)
        supposed = squares - ((1 - r) * (of_P @ mass_P) + r * D) ** 2
        of_T -= N[:, None]
        of_U -= D[:, None]
        of_P -= (of_P @ mass_P)[:, None]
        # the law of P's p-values is known, and few of them may miss where h is large
        seen = np.mean([_variance(h[k][:, b], mass_P) for k, b in enumerate(self.positive)], axis=0)
        of_P *= np.sqrt(widening(h.var(axis=2).mean(axis=0), seen))[:, None]
        # nor may a handful of U that happen to be alike; the mixture says how unlike they can be
        seen = np.mean([_variance(h[k][:, b], mass_U) for k, b in enumerate(self.population)], axis=0)
        noise = self._noise(h, (of_U * of_U) @ mass_U * unbiased(n))
        of_U *= np.sqrt(widening(expected_variance(h, self.density_ratio), seen))[:, None]
        second = 1 + noise
        observations = sample.observations, *self._observations
        for x, mass, count in zip((of_T, of_U, of_P), (mass_T, mass_U, mass_P), observations, strict=True):
            x *= mass * np.sqrt(unbiased(count))

        # what the rows of an observation do is added up; of U and of P by themselves, and then of the whole source
        together = self._together
        var_U, var_P = self._grouped(of_U, source.population, together), self._grouped(of_P, source.positive, together)
        floor = supposed / t
        from_T = np.maximum(_sum_of_squares(of_T if sample.groups is None else of_T @ sample.groups.T), floor)
        if sample.groups is not None and source.groups is not None:
            # the floor is of rows; a group's may differ from it as much as those of U do
            effect = var_U / np.maximum(_sum_of_squares(of_U), 1e-300)
            from_T = np.maximum(from_T, floor * np.maximum(effect, 1.0))
        parts = np.stack([from_T, r**2 * var_U, (1 - r) ** 2 * var_P])
        from_source = second * self._source_variance(r, 1 - r, of_U, of_P, parts[1] + parts[2])
        V = from_T + from_source
        if sample.with_source is not None:
            S = self._source_influence(r, 1 - r, of_U, of_P)
            S = S if together is None else S @ together.T
            both = V - 2 * np.sqrt(second) * np.einsum("ij,ij->i", of_T @ sample.with_source.T, S)
            V = np.maximum(both, _LEAST_LEFT * V)
        # copies make D less sure; that shared rows make it surer is not counted on
        each = var_U + var_P
        one = np.ones_like(r)
        of_D = np.maximum(self._source_variance(one, -one, of_U, of_P, each), each)
        tests = TriedRatios.of(r, N, D, V, parts, np.array(observations), second * of_D)
        return _Linearized(tests, of_U, of_P, of_T, second, parts)

    def _mean_of_positives(self, h: Floats) -> Floats:
        """Over the ranks that a further positive could have, or where they count differently, over those of P."""
        if self.scored.positive_mass is not None:
            own = [h[k][:, b] @ self.source.positive_mass for k, b in enumerate(self.positive)]
            return np.stack(own)[:, :, None]
        return mean_over_ranks(h, self.positive.shape[1])

    @staticmethod
    def _grouped(x: Floats, rows: Index, together: csr_array | None) -> Floats:
        """The sum of squares over observations of one sample of the source."""
        return _sum_of_squares(x if together is None else x @ together[:, rows].T)

    @property  # not cached: a sparse matrix could not be stored plainly
    def _together(self) -> csr_array | None:
        return _together(self.source.observation)

    @cached_property
    def _observations(self) -> tuple[float, float]:
        """Of U and of P."""
        return self.source.effective_population, self.source.effective_positives

    def _source_variance(self, u: Floats, p: Floats, of_U: Floats, of_P: Floats, apart: Floats) -> Floats:
        """Of u·E_U h + p·E_P h; `apart` is it where each row is its own observation."""
        together = self._together
        if together is None and not len(self.source.shared):
            return apart
        influence = self._source_influence(u, p, of_U, of_P)
        return _sum_of_squares(influence if together is None else influence @ together.T)

    def _source_influence(self, u: Floats, p: Floats, of_U: Floats, of_P: Floats) -> Floats:
        """Of every row of the source; under censoring a labelled row is in P and in U at once."""
        influence = np.zeros((len(u), len(self.source.labeled)))
        influence[:, self.source.population] += u[:, None] * of_U
        influence[:, self.source.positive] += p[:, None] * of_P
        return influence

    def _noise(self, h: Floats, variance: Floats) -> Floats:
        """The share of h's variance among U that is noise of the scores, 0 to 1."""
        mass = self.source.population_mass
        each = np.mean([_variance(h[k][:, b], mass) for k, b in enumerate(self.population)], axis=0)
        each *= unbiased(self.source.effective_sizes[1])
        return noise_share(each, variance, len(h), len(self.scored.repetitions[0].models))


def _counts(bins: NDArray[np.intp]) -> ScoreCounts:
    return ScoreCounts.from_bins(bins, np.empty((len(bins), 0)))


def _within(ratio: float) -> Floats:
    """The ratio, or the nearest that is tested."""
    return np.array([min(max(ratio, 0.0), LARGEST)])


def _averaged(h: Floats, bins: NDArray[np.intp]) -> Floats:
    """h of each row, the mean over repetitions, shape (ratios, rows)."""
    total = h[0][:, bins[0]]
    for k in range(1, len(h)):
        total += h[k][:, bins[k]]
    return np.asarray(total / len(h))


@dataclass(frozen=True, eq=False)
class _TargetSample:
    """A target's bins, which of its rows are one observation, and which belong to one of the source."""

    bins: NDArray[np.intp]
    target: Target
    groups: csr_array | None
    with_source: csr_array | None

    @cached_property
    def observations(self) -> float:
        return effective_size(self.target.mass, self.target.observation)


def _variance(x: Floats, mass: Floats) -> Floats:
    return np.asarray((x * x) @ mass - (x @ mass) ** 2)


def _together(observation: Index) -> csr_array | None:
    """Which rows are one observation, as a matrix that adds them up; None where each row is its own."""
    count = int(observation.max()) + 1
    if count == len(observation):
        return None
    rows = np.arange(len(observation))
    return csr_array((np.ones(len(rows)), (observation, rows)), shape=(count, len(rows)))


def _sum_of_squares(x: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", x, x))
