"""How wide an interval will be with other numbers of rows, predicted from a pilot.

On the scale of the p-values the pilot's mixture gives the distributions of P, U and T: f_P = 1, f_U = 1/ρ and
f_T = 1 − R + R·f_U. So the witness h_r that is best for other sizes, its D and its variances are sums over the bins,
and with them the expected statistic of the test of every r; the interval inverts these tests, as the pilot's own does.
It is averaged over the distribution of R̂, since an end that is clipped at 0 or 1 makes it shorter.

What the bins do not contain comes from the pilot's own test. What averaging over repetitions saves, and what groups
cost, is the factor between its variances and those of the bins, assumed to be the same at other sizes. The share q of
h's variance that is noise of the scores, for which the test adds q times the variance of the source, falls with more
rows: its odds q/(1−q) as 1/m + 1/n does. That scores improve with more rows is not counted on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, roots_hermitenorm

from priorshift.arrays import Floats
from priorshift.inference.confidence_curve import TabulatedCurve
from priorshift.inference.prior_knowledge import Case
from priorshift.methods.witness_shift import TargetFit

_COARSE = np.linspace(0, 0.98, 30)  # tested ratios, as r/(1 + r)
_FINE = np.linspace(-7, 7, 57)  # more tested ratios, in standard errors around R̂
_NODES, _WEIGHTS = (np.asarray(x) for x in roots_hermitenorm(5))  # Gauss–Hermite quadrature over R̂
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_STEPS, _REFINEMENTS = 65, 4  # points of a grid of π′, and times it is refined, in the search for an end
_MOST_NOISE = 0.95  # share of h, beyond which its odds are unreliable

Sizes = tuple[float, float, float]  # m, n and n′


@dataclass(frozen=True, eq=False)
class WidthModel:
    """A pilot study, from which widths at other sizes are predicted."""

    population: Floats  # f_U, shape (repeats, bins), with mean 1
    ratio: float  # R at which widths are predicted
    sizes: Sizes  # effective rows of P, U and T
    observations: Sizes  # effective observations, for degrees of freedom
    noise: float  # q, the share of h's variance that is noise of the scores
    factors: Sizes = (1.0, 1.0, 1.0)  # the pilot's variances of P, U and T over those of the bins

    @classmethod
    def fit(cls, fit: TargetFit, ratio: float) -> WidthModel:
        """Build the model from a pilot, whose R̂ must be finite; `ratio` is the R at which widths are predicted."""
        witness, target, source = fit.witness, fit.target, fit.witness.source
        parts = witness.variance_parts(fit.test.ratio, fit.p_values, target)
        density = 1 / witness.density_ratio
        density = density / density.mean(axis=1, keepdims=True)
        sizes = source.P.size, source.U.size, target.size
        observation_mass = np.bincount(target.observation, target.mass)
        effective_T = float(1 / (observation_mass @ observation_mass))
        observations = source.P.observations, source.U.observations, effective_T
        noise = min(max(parts.noise, 0.0), _MOST_NOISE)
        # variances of P, U and T as the bins alone predict them, and as the pilot's test observed them
        from_bins = cls(density, max(fit.test.ratio, 0.0), sizes, observations, noise)
        predicted = np.array(from_bins.variances(sizes))
        # rows common to P and U are correlated, so that the variances of both add up to more or less: scale them
        correction = max(parts.total - parts.target, 0.0) / max(parts.positive + parts.unlabeled, 1e-300)
        observed = np.array([correction * parts.positive, correction * parts.unlabeled, parts.target])
        # a part that is zero, such as that of P where R is 1, has no factor of its own
        has_factor = (predicted > 1e-9 * predicted.sum()) & (observed > 0)
        typical = float(observed[has_factor].sum() / predicted[has_factor].sum()) if has_factor.any() else 1.0
        least = 1e-12 * max(float(predicted.sum()), 1e-300)  # avoids a division by zero
        factors = np.where(has_factor, observed / np.maximum(predicted, least), typical)
        factor_P, factor_U, factor_T = factors.tolist()
        return cls(density, max(ratio, 0.0), sizes, observations, noise, (factor_P, factor_U, factor_T))

    def variances(self, sizes: Sizes) -> Sizes:
        """Return the contributions of P, U and T to the variance of R̂ at these sizes."""
        r = np.array([self.ratio])
        var_P, var_U, var_T = self.parts(r, sizes, self.moments(r, sizes), self.ratio)[:, 0].tolist()
        return var_P, var_U, var_T

    def width(self, sizes: Sizes, cases: Sequence[Case], confidence: float) -> float:
        """Return the expected width of the interval of π′ at these sizes, averaged over the distribution of R̂.

        `cases` are values of π and q with their weights; the interval is the union over the cases.
        """
        error = float(np.sqrt(sum(self.variances(sizes))))
        fine = self.ratio + error * _FINE
        r = np.unique(np.concatenate([_COARSE / (1 - _COARSE), fine[fine > 0]]))
        moments = self.moments(r, sizes)
        observations = np.array(self.observations) * np.array(sizes) / np.array(self.sizes)
        degrees = np.maximum(observations - 1, 1)[:, None]
        widths = []
        for node in _NODES:  # values of R̂, in standard errors from R
            R = self.ratio + error * float(node)
            parts = self.parts(r, sizes, moments, max(R, 0.0))
            V = np.maximum(parts.sum(axis=0), 1e-300)
            # Satterthwaite's degrees of freedom
            freedom = V**2 / np.maximum((parts**2 / degrees).sum(axis=0), 1e-300)
            curve = TabulatedCurve.from_tests(r, (R - r) / np.sqrt(V), np.maximum(freedom, 1.0))
            ends = [_interval(curve, case, confidence) for case in cases]
            widths.append(max(high for _, high in ends) - min(low for low, _ in ends))
        return float(_WEIGHTS @ np.array(widths))

    def moments(self, r: Floats, sizes: Sizes) -> Floats:
        """Return E_P h, E_U h, E_P h² and E_U h² of each h_r, shape (4, repeats, ratios)."""
        m, n, t = sizes
        # h_r = (1 − ρ)/(((1−r)ρ + r)/t + (1−r)²ρ/m + r²/n) with ρ = f_P/f_U, axes (repeats, ratios, bins)
        density_U, rho = self.population[:, None, :], 1 / self.population[:, None, :]
        weight_P, weight_U = ((1 - r) ** 2 / m)[:, None], (r**2 / n)[:, None]
        h = (1 - rho) / (np.maximum((1 - r)[:, None] * rho + r[:, None], 0) / t + weight_P * rho + weight_U)
        h /= np.abs(h).max(axis=(0, 2), keepdims=True)  # its scale does not matter
        # f_P is 1 on the scale of the p-values, so that means over bins are means in P
        weighted, bins = density_U * h, h.shape[2]
        square_P, square_U = (np.einsum("ijk,ijk->ij", values, h) / bins for values in (h, weighted))
        return np.stack([h.mean(axis=2), weighted.mean(axis=2), square_P, square_U])

    def parts(self, r: Floats, sizes: Sizes, moments: Floats, ratio: float) -> Floats:
        """Return the contributions of P, U and T to the variance of (N − rD)/D, if R is `ratio`, shape (3, ratios).

        N = E_T h_r − E_P h_r and D = E_U h_r − E_P h_r for each ratio r, so that N/D estimates R. `moments` are those
        of the functions h_r.
        """
        (m, n, t), (mean_P, mean_U, square_P, square_U) = sizes, moments
        # the variance of h in mixtures (1−R)·P + R·U: in P, in U, in T if R is `ratio`, and in T if R is r
        shares_of_U: Sequence[Floats | float] = (0.0, 1.0, ratio, r)
        variances = []
        for R in shares_of_U:
            squares = (1 - R) * square_P + R * square_U
            variances.append((squares - ((1 - R) * mean_P + R * mean_U) ** 2).mean(axis=0))
        var_P, var_U, var_T = variances[0], variances[1], np.maximum(variances[2], variances[3])  # as in the test
        # noise of the scores: its odds fall as 1/m + 1/n does
        m0, n0, _ = self.sizes
        odds = self.noise / (1 - self.noise) * (1 / m + 1 / n) / (1 / m0 + 1 / n0)
        q = odds / (1 + odds)
        D_squared = np.maximum((mean_U - mean_P).mean(axis=0), 1e-150) ** 2
        parts = np.stack([(1 + q) * (1 - r) ** 2 * var_P / m, (1 + q) * r**2 * var_U / n, var_T / t])
        return np.asarray(np.maximum(parts / D_squared, 0.0) * np.array(self.factors)[:, None])


def _interval(curve: TabulatedCurve, case: Case, confidence: float) -> tuple[float, float]:
    """Return the interval of π′ = q − (q−π)R, to a millionth, from the curve of R and values of π and q.

    The weights of the values sum to 1; the curve is interpolated linearly.
    """
    priors, weights, q = np.atleast_1d(case.source_prior), case.weights, case.purity
    weights = np.ones(1) if weights is None else weights / weights.sum()
    factor = np.maximum(q - priors, 1e-12)
    # Levels are normal quantiles of the confidence that R ≤ r, and 0 at the estimate. If it lies outside [0, 1] for π′,
    # from R = (q−1)/(q−π) to q/(q−π), levels are shifted so that it is at the nearer end.
    at_smallest, at_largest = (np.interp(end / factor, curve.ratios, curve.level) for end in (q - 1, q))
    shift = np.maximum(at_smallest, 0.0) + np.minimum(at_largest, 0.0)

    def confidence_above(target: Floats) -> Floats:
        """Return the confidence that π′ is at least `target`, which decreases with it."""
        level = np.interp((q - target[:, None]) / factor, curve.ratios, curve.level)
        return np.asarray(ndtr(level - shift) @ weights)

    def end(level: float, default: float) -> float:
        """Return the π′ at which that confidence falls to `level`; `default` where it never crosses it."""
        low, high = 0.0, 1.0
        for _ in range(_REFINEMENTS):
            grid = np.linspace(low, high, _STEPS)
            below = np.flatnonzero(confidence_above(grid) <= level)
            if not len(below) or below[0] == 0:
                return default
            low, high = float(grid[below[0] - 1]), float(grid[below[0]])
        return (low + high) / 2

    tail = (1 - confidence) / 2
    return end(1 - tail, 0.0), end(tail, 1.0)
