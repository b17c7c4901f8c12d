"""Posterior of the prior π of a population, given the p-values of its rows.

On the scale z = Φ⁻¹(v) positives are standard normal, and negatives are modelled as one normal N(−d, s²), or two with
s = 1: the bi-normal model of ROC curves. Then v has the density r = π + (1−π)g with a tabulated g, and a row with
p-value v among m positives and n rows of the population is one of the latter with probability nr/(m + nr) (the
likelihood of the two samples when the distribution of positives' scores is unknown; Qin 1998).

The shape of g has a prior: half of it on one normal with log s ~ N(0, 0.1²), half on two; d is uniform from 1 to 5, and
its density decreases below 1. π has Jeffreys' prior Beta(½, ½), which is fair to rare and to frequent positives.

With more rows the uncertainty of the shape shrinks, but the shape may be wrong: a share h of the negatives may score
exactly like positives, which no number of rows can show. Then the model's π exceeds the true one,
1 − π_model = (1−π)(1−h), and δ = −log(1−h) does not depend on π. :func:`allow_hidden_negatives` gives δ a distribution
that does not shrink with the number of rows, so that neither does the interval of π.

If a share ε of the labelled rows are negatives, p-values are ranks among a mixture: with u the rank among positives and
G the distribution of u for negatives, v = (1−ε)u + εG(u). Then v has the density κ + (1−κ)g̃ in the population, where g̃
is the density of v for negatives, and κ = π/(1−ε): all of the above holds for κ and g̃ in place of π and g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtr, ndtri

from priorshift.arrays import Floats
from priorshift.inference.prior_knowledge import PiecewiseUniform

# edges of bins of the p-values, narrower near 0, where negatives are
_EDGES = np.concatenate([np.geomspace(1e-3, 0.1, 12), np.linspace(0, 1, 41)])
_DISTANCES = np.concatenate([np.arange(0.2, 3.0, 0.2), np.arange(3.0, 5.1, 0.5)])  # d
_LOG_SPREADS = np.array([-0.2, -0.1, 0.0, 0.1, 0.2])  # log s
_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the first of two normals
_GRID = np.linspace(-9.0, 9.0, 2001)  # of z, between which distributions are interpolated
# steps of π: fine near the ends
_COARSE = np.concatenate([[0, 0.001, 0.003, 0.006, 0.0125, 0.0175], np.arange(0.025, 0.98, 0.01), [0.985, 0.9925, 1.0]])
_FINE_STEPS = 60
_RESOLVED = 8  # steps over which a posterior must spread
_ZOOMS = 4  # refinements of the steps, enough for a hundred million rows
_LEVELS = np.linspace(0, 1, 34)[1:-1]  # quantiles of the posterior at which a target's likelihood is computed
_LEAST_WEIGHT = 1e-4  # least weight of a model in the likelihood of a target
_OUTER = 1e-4  # tail probability of the coarse posterior that the fine steps leave out
_TRUTHS = 16  # pairs of a prior and a model that are assumed as the truth
_EXPECTED_STEPS = 80  # steps of π
_TAIL = 1e-3  # tail probability of the posterior beyond which no truth is assumed


@dataclass(frozen=True, eq=False)
class _Shapes:
    """All models of the density g of negatives' p-values."""

    edges: Floats  # of the bins of p-values, between possible values of ranks
    widths: Floats  # of the bins
    density: Floats  # g, shape (models, bins)
    log_prior: Floats  # log of each model's prior probability
    overlap: Floats  # 1 − AUC of each model's negatives


@lru_cache(maxsize=8)
def _shapes(ranked: int, bin_edges: tuple[float, ...] | None = None, label_error: float = 0.0) -> _Shapes:
    """Tabulate g of all models in bins of p-values, whose edges are rounded to lie between ranks among `ranked`.

    `label_error` is the share of negatives among the labelled rows.
    """
    wanted_edges = _EDGES if bin_edges is None else np.array(bin_edges)
    edges = np.unique(np.round(wanted_edges * (ranked + 1))) / (ranked + 1)
    widths = np.diff(edges)
    z = ndtri(edges) if not label_error else _GRID

    def density(*normals: tuple[float, float, float]) -> Floats:
        """Return the mean density in each bin of negatives, a mixture of normals with (share, distance, log spread)."""
        below = [(share, ndtr((z + distance) / np.exp(log_s))) for share, distance, log_s in normals]
        if not label_error:
            return np.asarray(sum(share * (np.diff(part) / widths) for share, part in below))
        negatives = sum(share * part for share, part in below)
        v = (1 - label_error) * ndtr(z) + label_error * negatives  # p-value at each z
        return np.asarray(np.diff(np.interp(edges, v, negatives, left=0.0, right=1.0)) / widths)

    # prior probabilities of the tabulated d and log s
    distance_prior = np.gradient(_DISTANCES) * np.minimum(_DISTANCES, 1.0)
    distance_prior /= distance_prior.sum()
    spread_prior = stats.norm.pdf(_LOG_SPREADS, scale=0.1)
    spread_prior = spread_prior / spread_prior.sum()
    g, prior, overlap = [], [], []  # of each model
    for d, distance_probability in zip(_DISTANCES, distance_prior, strict=True):  # one normal: half of the prior
        for log_s, spread_probability in zip(_LOG_SPREADS, spread_prior, strict=True):
            g.append(density((1.0, d, log_s)))
            prior.append(distance_probability * spread_probability / 2)
            overlap.append(ndtr(-d / np.hypot(1, np.exp(log_s))))  # P(negative's z > positive's z)
    one_normal = len(g)  # number of models with one normal
    for i, far in enumerate(_DISTANCES):  # two normals: the other half
        for j, near in enumerate(_DISTANCES[:i]):
            for share in _SHARES:
                g.append(density((share, far, 0.0), (1 - share, near, 0.0)))
                prior.append(distance_prior[i] * distance_prior[j])
                overlap.append(share * ndtr(-far / np.sqrt(2)) + (1 - share) * ndtr(-near / np.sqrt(2)))
    weights = np.array(prior)
    weights[one_normal:] /= 2 * weights[one_normal:].sum()
    return _Shapes(edges, widths, np.array(g), np.log(weights), np.array(overlap))


@dataclass(frozen=True, eq=False)
class PopulationCounts:
    """Counts of the p-values of a population in the bins of the models."""

    counts: Floats  # shape (repeats, bins)
    ranked: int  # number of positives among which rows are ranked
    m: float  # effective number of positives
    noise: float = 0.0  # standard deviation of the noise in each count
    edges: tuple[float, ...] | None = None  # of the bins, multiples of 1/(ranked + 1); None is those of the models
    label_error: float = 0.0  # share of negatives among the positives

    @property
    def shapes(self) -> _Shapes:
        """Models of g in the bins of the counts."""
        return _shapes(self.ranked, self.edges, self.label_error)


class TargetEvidence:
    """Likelihood of π given a target, whose negatives have the same density g.

    If R is known, π′ = 1 − (1−π)R, and a row with p-value v among m, n and n′ rows is one of T with probability
    n′q/(m + nr + n′q), q = π′ + (1−π′)g. For a given π this is averaged over the models g, weighted by their posterior
    given the population; it is computed at quantiles of the posterior of π.
    """

    def __init__(self, source: PopulationCounts, posterior: PiecewiseUniform) -> None:
        """Weight the models by the population, at quantiles of the posterior of π; unlikely models are left out."""
        shapes = source.shapes
        self.source = source
        self.priors = np.unique(posterior.ppf(_LEVELS))
        self.counts_PU = source.counts + source.m * shapes.widths  # rows of U and P in each bin; P is uniform
        n = source.counts.sum(axis=1).mean()
        r = _population_density(self.priors, shapes.density)
        # log posterior of each model given π, up to a constant; axes: priors, models, repetitions
        log = np.log(r) @ source.counts.T - np.log(source.m + n * r) @ self.counts_PU.T + shapes.log_prior[:, None]
        weights = np.exp(log - log.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        used = weights.max(axis=(0, 2)) > _LEAST_WEIGHT
        self.density = shapes.density[used]
        # without the normalisation of the population's likelihood, which that of all three samples replaces
        self.log_weights = np.log(np.maximum(weights[:, used], 1e-300)) + np.log(self._pu_density()) @ self.counts_PU.T

    def log_likelihood(self, counts: Floats, ratio: float, shares: Floats) -> Floats:
        """Return the log-likelihood of each π in `shares` given a target, averaged over repetitions.

        `counts` are the `posterior_counts` of the target, shape (repeats, bins); `ratio` is R. The log-likelihood is
        interpolated between the tabulated priors.
        """
        target_priors = np.clip(1 - (1 - self.priors) * ratio, 1e-4, 1.0)
        q = _population_density(target_priors, self.density)  # density of the target's p-values
        n_target = counts.sum(axis=1).mean()
        # Σ n′_b log q_b − Σ (m_b + n_b + n′_b) log(m + n·r_b + n′·q_b); axes: priors, models, repetitions
        log = np.log(q) @ counts.T - np.log(self._pu_density() + n_target * q) @ (self.counts_PU + counts).T
        log += self.log_weights
        # the log of the sum over models, relative to the largest term so that nothing underflows
        largest = log.max(axis=1, keepdims=True)
        at_priors = (largest + np.log(np.exp(log - largest).sum(axis=1, keepdims=True))).mean(axis=(1, 2))
        return np.asarray(np.interp(shares, self.priors, at_priors))

    def _pu_density(self) -> Floats:
        """Return m + n·r, the rows of P and U per unit of p-value, for each π, model and bin.

        It is not stored, because it is large.
        """
        n = self.source.counts.sum(axis=1).mean()
        return np.asarray(self.source.m + n * _population_density(self.priors, self.density))


def prior_posterior(source: PopulationCounts) -> tuple[PiecewiseUniform, float]:
    """Return the posterior of π given the population, and the posterior mean of the overlap 1 − AUC.

    Both are averaged over repetitions. Steps of π are refined where the posterior has probability, until it spreads
    over at least `_RESOLVED` steps.
    """
    edges, resolved = _COARSE, False
    for _ in range(_ZOOMS):
        low, high = _posterior_on_steps(edges, source)[0].ppf([_OUTER, 1 - _OUTER])
        first, last = np.searchsorted(edges, low, "right") - 1, np.searchsorted(edges, high)
        resolved = last - first >= _RESOLVED
        if not resolved:  # too few steps to locate the ends, so one more on each side
            low, high = edges[max(first - 1, 0)], edges[min(last + 1, len(edges) - 1)]
        edges = np.unique(np.concatenate([[0.0], np.linspace(low, high, _FINE_STEPS + 1), [1.0]]))
        if resolved:
            break
    return _posterior_on_steps(edges, source)


# distribution of δ, chosen on natural tables (benchmarks/natural_tables.py)
_HIDDEN = 0.5  # largest probability that some negatives score like positives
_HIDDEN_OVERLAP = 0.07  # overlap, plus 0.005, at which the probability is half of that
_HIDDEN_MEAN = 0.25  # mean of δ where it is not 0, exponentially distributed
_LEAST_STEP = 1e-12  # of π
_REVERSED, _REVERSED_MEAN = 0.1, 0.02  # probability and mean of −δ, if the model's π is too small


def allow_hidden_negatives(posterior: PiecewiseUniform, overlap: float) -> PiecewiseUniform:
    """Return the posterior of π if some negatives may score exactly like positives.

    `posterior` is that of the model's π, 1 − π_model = (1−π)e^−δ. How probable δ > 0 is depends on the `overlap` of the
    classes: negatives that score like positives are rare where hardly any score close to them.
    """
    hidden = _HIDDEN / (1 + (_HIDDEN_OVERLAP / (overlap + 0.005)) ** 3)
    edges = np.unique(np.concatenate([posterior.edges, _COARSE]))
    edges = np.append(edges[:-1][np.diff(edges) > _LEAST_STEP], 1.0)  # without edges that differ by rounding
    prior_mass = np.diff(stats.beta.cdf(edges, 0.5, 0.5))
    likelihood = np.diff(posterior.cdf(edges)) / prior_mass  # of each step of π_model, up to a constant
    with np.errstate(divide="ignore"):
        width = np.diff(-np.log1p(-edges))  # of each step on the scale −log(1−π), on which δ is added; the last is ∞
    # mean likelihood of π_model over δ, given each π: π_model is larger than π, or smaller
    larger = _exponential_mean(likelihood[::-1], width[::-1], _HIDDEN_MEAN)[::-1]
    smaller = _exponential_mean(likelihood, width, _REVERSED_MEAN)
    mean_likelihood = (1 - _REVERSED) * ((1 - hidden) * likelihood + hidden * larger) + _REVERSED * smaller
    mass = prior_mass * mean_likelihood
    return PiecewiseUniform(edges, mass / mass.sum())


def _exponential_mean(values: Floats, width: Floats, mean: float) -> Floats:
    """Return the mean of a step function at an exponentially distributed distance before each step's middle.

    `values` and `width` are those of the steps, in order; before the first step the function is 0.
    """
    result, before = np.empty_like(values), 0.0  # the mean at the beginning of a step
    for k, (value, half) in enumerate(zip(values, width / 2, strict=True)):
        decay = np.exp(-half / mean)
        result[k] = before * decay + value * (1 - decay)
        before = result[k] * decay + value * (1 - decay)
    return result


def posterior_levels(ranked: int) -> int:
    """Return the number of bins of `posterior_counts` for p-values that are ranks among `ranked` positives."""
    return len(_shapes(ranked).widths)


def posterior_counts(values: Floats, ranked: int, weights: Floats) -> Floats:
    """Count p-values of shape (repeats, rows) in the bins of the models, with one weight for each row.

    The p-values are ranks among `ranked` positives. Returns shape (repeats, bins).
    """
    bins = posterior_levels(ranked)
    return np.stack([np.bincount(posterior_bins(v, ranked), weights, bins) for v in values])


def posterior_bins(values: Floats, ranked: int) -> NDArray[np.intp]:
    """Return the bin of the models for each p-value, a rank among `ranked` positives."""
    return np.searchsorted(_shapes(ranked).edges[1:-1], values, "right")


def _population_density(priors: Floats, density: Floats) -> Floats:
    """Return the density r = π + (1−π)g of a population's p-values, shape (priors, models, bins).

    `density` is g of the negatives, shape (models, bins).
    """
    return np.maximum(priors[:, None, None] + (1 - priors)[:, None, None] * density, 1e-12)


def expected_spreads(
    source: PopulationCounts, posterior: PiecewiseUniform, times: Sequence[tuple[float, float]]
) -> Floats:
    """Return the expected standard deviations of π's posterior if the samples were larger.

    Each pair in `times` is a factor for the number of positives and one for that of rows of the population.

    Priors and models are drawn from the posterior, each as the truth that further rows follow; the spreads of the
    posteriors given the expected counts are averaged.
    """
    shapes, n = source.shapes, source.counts.sum(axis=1).mean()
    low, high = posterior.ppf([_TAIL, 1 - _TAIL])
    edges = np.linspace(low, high, _EXPECTED_STEPS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    joint = _posterior_masses(edges, source).mean(axis=2)  # posterior of π and the model, shape (steps, models)
    # truths are at evenly spaced quantiles of the joint posterior, in flattened order
    taken = np.searchsorted(np.cumsum(joint) / joint.sum(), (np.arange(_TRUTHS) + 0.5) / _TRUTHS)
    prior_index, model_index = np.unravel_index(np.minimum(taken, joint.size - 1), joint.shape)
    # probability of each bin under each truth, shape (truths, bins)
    truth = _population_density(middles[prior_index], shapes.density)[np.arange(_TRUTHS), model_index] * shapes.widths
    spreads = []
    for positive_factor, population_factor in times:
        counts = population_factor * n * truth / truth.sum(axis=1, keepdims=True)
        larger = PopulationCounts(counts, source.ranked, positive_factor * source.m)
        mass = _posterior_masses(edges, larger).sum(axis=1)  # posterior of π under each truth, shape (steps, truths)
        mean = middles @ mass
        spreads.append(np.sqrt(np.maximum(middles**2 @ mass - mean**2, 0.0)).mean())
    return np.array(spreads)


def _posterior_on_steps(edges: Floats, source: PopulationCounts) -> tuple[PiecewiseUniform, float]:
    """Return the posterior of π on steps between `edges` of [0, 1], and the posterior mean of the overlap 1 − AUC."""
    mass = _posterior_masses(edges, source)
    overlap = float(source.shapes.overlap @ mass.sum(axis=0).mean(axis=1))
    return PiecewiseUniform(edges, mass.sum(axis=1).mean(axis=1)), overlap


def _posterior_masses(edges: Floats, source: PopulationCounts) -> Floats:
    """Return the posterior probability of each step of π and model, shape (steps, models, repeats).

    `edges` of the steps increase; probabilities sum to 1 in each repetition.
    """
    counts, m, shapes = source.counts, source.m, source.shapes
    g, log_prior = shapes.density, shapes.log_prior
    n = counts.sum(axis=1).mean()
    counts_PU = counts + m * shapes.widths  # n_b + m_b, rows of U and P in each bin; P is uniform
    priors = (edges[1:] + edges[:-1]) / 2
    prior_mass = np.diff(stats.beta.cdf(edges, 0.5, 0.5))  # Jeffreys' prior
    log = np.empty((len(priors), len(g), len(counts)))
    for k, (pi, probability) in enumerate(zip(priors, prior_mass, strict=True)):
        r = np.maximum(pi + (1 - pi) * g, 1e-12)
        if source.noise:
            log_likelihood = _noisy_log_likelihood(source, n * r)
        else:  # Σ n_b log r_b − Σ (n_b + m_b) log(m + n·r_b), for each model and repetition
            log_likelihood = np.log(r) @ counts.T - np.log(m + n * r) @ counts_PU.T
        log[k] = log_likelihood + (np.log(probability) + log_prior)[:, None]
    mass = np.exp(log - log.max(axis=(0, 1)))
    return np.asarray(mass / mass.sum(axis=(0, 1)))


def _noisy_log_likelihood(source: PopulationCounts, density: Floats) -> Floats:
    """Return the log-likelihood of counts with added noise, which are normal and can be negative.

    `density` is n·r of each model in each bin, shape (models, bins). Returns shape (models, repeats).

    Without noise the variance of a count is nr·w(m + nr)/m, with w the bin's width: Poisson noise, and noise of the
    bin's edges, which are ranks among m positives. A normal distribution with that variance has the same score as the
    likelihood above.
    """
    expected = density * source.shapes.widths
    variance = expected * (source.m + density) / source.m + source.noise**2
    residual = source.counts[:, None, :] - expected  # shape (repeats, models, bins)
    return np.asarray(-0.5 * (residual**2 / variance + np.log(variance)).sum(axis=2).T)
