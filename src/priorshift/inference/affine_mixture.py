"""The target as an affine mixture of samples, f_T = Σ b_s f_s with Σ b_s = 1, and the shares of classes that follow.

The samples are those of the labelled classes and, last, the base: the unlabelled source population or, if every class
is labelled, one of the classes. If sample s consists of the classes in the shares W_sj, the share of class j in the
target is θ_j = Σ_s b_s W_sj. A labelled class without errors consists of itself, and the source population of its
classes in the shares π_j, so that with K labelled classes and a rest 0

    θ_k = b_k + R π_k,   θ_0 = R π_0,   R = b_base = π′_0/π_0.

R and the b_k need no π. With one class, R = (1−π′)/(1−π).

Label shift says E_T h = Σ b_s E_s h for every function h of a row, so a vector of as many functions as there are
labelled classes determines b: with M_s = E_s h − E_base h, b = M⁻¹(E_T h − E_base h), and b_base = 1 − Σ b. Whether
the functions are efficient (:mod:`priorshift.scores.class_scores`) or those of a kernel, errors are computed here.

A hypothesis b is tested by g(b) = E_T h − Σ b_s E_s h, which has mean 0 under it and a variance V(b) that is quadratic
in b: with ψ_s(i) the influence of observation i of the source on E_s h, the source contributes
Σ_i (Σ_s b_s ψ_s(i))(Σ_s b_s ψ_s(i))ᵀ, which includes observations in several samples. A share θ = w·b is tested at
each value with the variance that it would have: an interval contains the values that are not rejected, and becomes wide
where samples are hardly distinguishable.

Functions that were learnt from the samples, although by cross-fitting, have noise that rows of one sample have in
common. As in :mod:`priorshift.scores.ratio_test`, this increases the variance that comes from the source by the share
of noise in the variance of h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import fdtrc, stdtr

from priorshift.arrays import Floats, Index

_LEAST_VARIANCE = 1e-300


@dataclass(frozen=True, eq=False)
class SampleValues:
    """Values of the functions h at the rows of a sample."""

    h: Floats  # shape (rows, functions)
    mass: Floats  # of each row; the sum is 1
    observation: Index  # number of each row's observation; samples of the source have one numbering
    size: float  # effective number of observations

    def influence(self) -> tuple[Index, Floats]:
        """Return the distinct numbers of observations and their influence on the mean of h, (observations, functions).

        The influence of a row is mass·(h − mean), times √(n/(n−1)); that of an observation is the sum over its rows.
        """
        correction = np.sqrt(self.size / max(self.size - 1, 1.0))
        values = (correction * self.mass)[:, None] * (self.h - self.mass @ self.h)
        numbers, first, code = np.unique(self.observation, return_index=True, return_inverse=True)
        if len(numbers) == len(values):
            return numbers, values[first]
        code = code.reshape(-1)
        return numbers, np.stack([np.bincount(code, column, len(numbers)) for column in values.T], axis=1)


@dataclass(frozen=True, eq=False)
class Influence:
    """Influence of each observation of the source and the target on the coefficients b̂."""

    numbers: Index  # of observations, distinct
    values: Floats  # shape (observations, samples)

    @classmethod
    def from_parts(cls, parts: Sequence[tuple[Index, Floats]], errors: Floats) -> Influence:
        """Add up numbers and influences on g of several samples; `errors`, (samples, functions), turns g into b̂."""
        numbers, code = np.unique(np.concatenate([part for part, _ in parts]), return_inverse=True)
        values = np.concatenate([values for _, values in parts]) @ errors.T
        summed = [np.bincount(code.reshape(-1), column, len(numbers)) for column in values.T]
        return cls(numbers, np.stack(summed, axis=1))


@dataclass(frozen=True, eq=False)
class AffineMixture:
    """Estimated coefficients b of f_T = Σ b_s f_s, and what their errors are computed from; the base is last."""

    coefficients: Floats  # b̂, shape (samples,); the sum is 1
    means: Floats  # E_s h, shape (samples, functions)
    second_moments: Floats  # E_s hhᵀ, shape (samples, functions, functions)
    target_mean: Floats  # E_T h, shape (functions,)
    target_variance: Floats  # variance of E_T h, shape (functions, functions)
    # sums over observations of ψ_s ψ_tᵀ, shape (samples, samples, functions, functions)
    source_covariance: Floats
    target_covariance: Floats  # of E_T h with E_s h, due to common groups, shape (samples, functions, functions)
    sizes: Floats  # effective observations of the samples and, last, of the target
    noise: Floats  # covariance of the noise of h in the base, shape (functions, functions); 0 for fixed functions
    influence: Influence | None = None  # of observations on the coefficients; kept only to compare targets
    target_rows: float | None = None  # effective number of rows of the target; None if each is an observation

    @classmethod
    def from_values(
        cls,
        samples: Sequence[SampleValues],
        target: SampleValues,
        noise: Floats | None = None,
        *,
        keep_influence: bool = False,
    ) -> AffineMixture:
        """Estimate the coefficients from the values of h at the rows of all samples and of the target.

        Numbers of observations of the target are those of the source where they are the same, and others elsewhere.
        `noise` is the covariance of the noise of functions that were learnt from the samples.
        """
        means = np.stack([sample.mass @ sample.h for sample in samples])
        second_moments = np.stack([sample.h.T @ (sample.mass[:, None] * sample.h) for sample in samples])
        target_mean = target.mass @ target.h
        differences = (means[:-1] - means[-1]).T  # M
        contrasts = np.linalg.solve(differences, target_mean - means[-1])
        influences = [sample.influence() for sample in samples]
        functions = means.shape[1]
        covariance = np.zeros((len(samples), len(samples), functions, functions))
        for s in range(len(samples)):
            for t in range(s, len(samples)):
                covariance[s, t] = _common_products(influences[s], influences[t], same=s == t)
                covariance[t, s] = covariance[s, t].T
        of_target = target.influence()
        with_target = np.stack([_common_products(of_target, influence) for influence in influences])
        sizes = np.array([sample.size for sample in (*samples, target)])
        coefficients, influence = np.append(contrasts, 1 - contrasts.sum()), None
        if keep_influence:
            parts = [(numbers, -b * values) for b, (numbers, values) in zip(coefficients, influences, strict=True)]
            influence = Influence.from_parts([*parts, of_target], _to_all(np.linalg.inv(differences)))
        return cls(
            coefficients=coefficients,
            influence=influence,
            means=means,
            second_moments=second_moments,
            target_mean=target_mean,
            target_variance=of_target[1].T @ of_target[1],
            source_covariance=covariance,
            target_covariance=with_target,
            sizes=sizes,
            noise=np.zeros((functions, functions)) if noise is None else noise,
            target_rows=1 / float((target.mass**2).sum()),
        )

    @cached_property
    def inverse(self) -> Floats:
        """M⁻¹, which turns g into the error of the contrasts b_s, s ≠ base; shape (samples − 1, functions)."""
        return np.asarray(np.linalg.inv((self.means[:-1] - self.means[-1]).T))

    def variance(self, coefficients: Floats) -> Floats:
        """Return the variance V(b) of g(b), shape (…, functions, functions), for `coefficients` (…, samples)."""
        b = np.asarray(coefficients)
        share = np.trace(np.linalg.solve(self._base_variance, self.noise)) / len(self.noise)
        source = (1 + min(float(share), 1.0)) * np.einsum("...s,...t,stij->...ij", b, b, self.source_covariance)
        cross = np.einsum("...s,sij->...ij", b, self.target_covariance)
        return np.asarray(self.target_variance + source - cross - np.swapaxes(cross, -1, -2))

    @property
    def _base_variance(self) -> Floats:
        """Covariance of h in the base, shape (functions, functions)."""
        mean = self.means[-1]
        return np.asarray(self.second_moments[-1] - np.outer(mean, mean))

    def noise_share(self, directions: Floats) -> Floats:
        """Return the share of noise in the variance of u·h in the base, from 0 to 1, for u of (cases, functions)."""
        noise, variance = (
            np.einsum("ci,ij,cj->c", directions, matrix, directions) for matrix in (self.noise, self._base_variance)
        )
        return np.minimum(noise / np.maximum(variance, _LEAST_VARIANCE), 1.0)

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of b̂, shape (samples, samples), which has rank samples − 1."""
        return self._contrast_covariance(self.coefficients)

    def common_covariance(self, coefficients: Floats) -> Floats:
        """Return the covariance of b̂ with the `coefficients` of another target by the same functions.

        It has shape (samples, samples), and is due to the source, which both have in common.
        """
        errors = _to_all(self.inverse)
        source = np.einsum("s,t,stij->ij", self.coefficients, coefficients, self.source_covariance)
        return np.asarray(errors @ source @ errors.T)

    def _contrast_covariance(self, coefficients: Floats) -> Floats:
        """Return the covariance of b̂ if b were `coefficients`, shape (…, samples, samples)."""
        errors = _to_all(self.inverse)
        return np.asarray(errors @ self.variance(coefficients) @ errors.T)

    def share(self, composition: ArrayLike) -> Floats:
        """Return θ = w·b̂ for shares w of a class in each sample, shape (…, samples)."""
        return np.asarray(np.asarray(composition) @ self.coefficients)

    def standard_error(self, composition: ArrayLike) -> Floats:
        """Return the standard error of θ = w·b̂ for w of shape (…, samples)."""
        w = np.asarray(composition, dtype=float)
        return np.sqrt(np.maximum(np.einsum("...s,st,...t->...", w, self.covariance, w), 0.0))

    def curve(self, composition: ArrayLike) -> ShareCurve:
        """Return the confidence distribution of θ = w·b for shares w of a class in each sample.

        `composition` has shape (samples,), or (cases, samples) for several cases.
        """
        return ShareCurve(self, np.atleast_2d(np.asarray(composition, dtype=float)))

    def region_statistic(self, coefficients: ArrayLike) -> Floats:
        """Return g(b)ᵀV(b)⁻¹g(b), about χ² with as many degrees of freedom as functions if b are the coefficients.

        `coefficients` have shape (…, samples), and the statistic (…).
        """
        b = np.asarray(coefficients, dtype=float)
        g = self.target_mean - b @ self.means
        return np.asarray((g * np.linalg.solve(self.variance(b), g[..., None])[..., 0]).sum(axis=-1))

    def p_value(self, coefficients: ArrayLike) -> Floats:
        """Return the p-value of the hypothesis that b are the coefficients; a joint region is where it is not small.

        Hotelling's correction for variances from few observations: F with the smallest sample's degrees of freedom.
        """
        functions, freedom = self.means.shape[1], max(float(self.sizes.min()) - 1, 1.0)
        least = max(freedom - functions + 1, 1.0)
        return np.asarray(fdtrc(functions, least, self.region_statistic(coefficients) * least / (functions * freedom)))


class ShareCurve:
    """Confidence distribution of the share θ = w·b of a class, in one case or several cases of w.

    θ = t is tested with the variance at b = b̂ + d(t − θ̂), d = Cw/(w·Cw) with C the covariance of b̂: of all b with this
    share, about the one nearest to b̂.
    """

    def __init__(self, mixture: AffineMixture, composition: Floats) -> None:
        """Compute what all tests have in common; `composition` are shares w, shape (cases, samples)."""
        self.mixture, self.estimate = mixture, mixture.share(composition)
        along = composition @ mixture.covariance
        total = np.maximum((composition * along).sum(axis=1, keepdims=True), _LEAST_VARIANCE)
        self.direction = along / total
        u = (composition[:, :-1] - composition[:, -1:]) @ mixture.inverse  # θ̂ − θ = u·g
        inflation = 1 + mixture.noise_share(u)
        self._source = np.einsum("c,ci,stij,cj->cst", inflation, u, mixture.source_covariance, u)
        self._with_target = np.einsum("ci,sij,cj->cs", u, mixture.target_covariance, u)
        self._observed = np.einsum("ci,ij,cj->c", u, mixture.target_variance, u)
        self._means = u @ mixture.means.T
        self._squares = np.einsum("ci,sij,cj->cs", u, mixture.second_moments, u)
        # an estimate outside [0, 1] counts as the nearer end, so that no interval is empty
        self._outside = np.minimum(self.estimate, 0.0) + np.maximum(self.estimate - 1, 0.0)

    def variance(self, share: ArrayLike) -> tuple[Floats, Floats]:
        """Return the variance of θ̂ if θ = `share`, and its degrees of freedom by Satterthwaite's rule, for each case.

        Few rows of a target may contain none of a rare class, so the variance of E_T h is at least that in the mixture,
        if all rows were independent: how much rows of a group have in common, only the observed variance shows.
        """
        b = self.mixture.coefficients + self.direction * (np.asarray(share) - self.estimate)[:, None]
        sizes = self.mixture.sizes
        by_source = b**2 * np.einsum("css->cs", self._source)
        expected = (b * self._squares).sum(axis=1) - (b * self._means).sum(axis=1) ** 2
        by_target = np.maximum(self._observed, expected / (self.mixture.target_rows or sizes[-1]))
        total = by_target + np.einsum("cs,cst,ct->c", b, self._source, b) - 2 * (b * self._with_target).sum(axis=1)
        parts = np.concatenate([by_source, by_target[:, None]], axis=1)
        squares = (parts**2 / np.maximum(sizes - 1, 1.0)).sum(axis=1)
        freedom = parts.sum(axis=1) ** 2 / np.maximum(squares, _LEAST_VARIANCE)
        return np.maximum(total, _LEAST_VARIANCE), np.maximum(freedom, 1.0)

    def __call__(self, share: float, weights: Floats | None = None) -> float:
        """Return the confidence that θ ≤ `share`, averaged over the cases with `weights`."""
        tested = share + self._outside
        variance, freedom = self.variance(tested)
        statistic = (tested - self.estimate) / np.sqrt(variance)
        return float(np.average(stdtr(freedom, statistic), weights=weights))

    def interval(self, confidence: float, weights: Floats | None = None) -> tuple[float, float]:
        """Return the interval of θ in [0, 1] between its two quantiles, averaged over the cases with `weights`."""
        tail = (1 - confidence) / 2

        def excess(share: float, level: float) -> float:
            """Return the confidence that θ ≤ `share`, less a level."""
            return self(share, weights) - level

        low = float(brentq(excess, 0.0, 1.0, (tail,))) if excess(0.0, tail) < 0 < excess(1.0, tail) else 0.0
        high = (
            float(brentq(excess, 0.0, 1.0, (1 - tail,))) if excess(0.0, 1 - tail) < 0 < excess(1.0, 1 - tail) else 1.0
        )
        return low, high


def _to_all(inverse: Floats) -> Floats:
    """Return the matrix that turns g into the errors of all b, from that for all but the base: b_base = 1 − Σ b."""
    return np.concatenate([inverse, -inverse.sum(axis=0, keepdims=True)])


def _common_products(first: tuple[Index, Floats], second: tuple[Index, Floats], *, same: bool = False) -> Floats:
    """Return Σ v wᵀ over the observations that two samples have in common, given numbers and influences v and w."""
    if same:
        return first[1].T @ first[1]
    _, i, j = np.intersect1d(first[0], second[0], assume_unique=True, return_indices=True)
    return np.asarray(first[1][i].T @ second[1][j])
