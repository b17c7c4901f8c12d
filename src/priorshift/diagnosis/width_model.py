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
from priorshift.methods.witness_shift import TargetFit

_COARSE = np.linspace(0, 0.98, 30)  # r/(1 + r)
_FINE = np.linspace(-7, 7, 57)  # standard errors around R̂
_NODES, _WEIGHTS = (np.asarray(x) for x in roots_hermitenorm(5))  # of the distribution of R̂
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_STEPS, _REFINEMENTS = 65, 4  # of π′, in the search for an end of an interval
_MOST_NOISE = 0.95  # share of h, beyond which its odds are unreliable

Sizes = tuple[float, float, float]  # m, n and n′


@dataclass(frozen=True, eq=False)
class WidthModel:
    """What widths at other sizes depend on."""

    population: Floats  # f_U, shape (repeats, bins), with mean 1
    ratio: float  # R
    sizes: Sizes  # effective rows of P, U and T
    observations: Sizes  # effective observations, for degrees of freedom
    noise: float  # q
    factors: Sizes = (1.0, 1.0, 1.0)  # the pilot's variances of P, U and T over those of the bins

    @classmethod
    def fit(cls, fit: TargetFit, ratio: float) -> WidthModel:
        """Read the pilot, whose R̂ must be finite; `ratio` is the R at which widths are predicted."""
        witness, target, source = fit.witness, fit.target, fit.witness.source
        parts = witness.variance_parts(fit.test.ratio, fit.p_values, target)
        density = 1 / witness.density_ratio
        density = density / density.mean(axis=1, keepdims=True)
        m, n, t = source.P.size, source.U.size, target.size
        total = np.bincount(target.observation, target.mass)
        observations = source.P.observations, source.U.observations, float(1 / (total @ total))
        noise = min(max(parts.noise, 0.0), _MOST_NOISE)
        bins = cls(density, max(fit.test.ratio, 0.0), (m, n, t), observations, noise)
        predicted = bins.parts(np.array([bins.ratio]), (m, n, t))[:, 0]
        # what P and U have in common makes their variances add up to more or less
        common = max(parts.total - parts.target, 0.0) / max(parts.positive + parts.unlabeled, 1e-300)
        own = np.array([common * parts.positive, common * parts.unlabeled, parts.target])
        # a part that is zero by both, such as that of P where R is 1, has no factor
        known = (predicted > 1e-9 * predicted.sum()) & (own > 0)
        typical = float(own[known].sum() / predicted[known].sum()) if known.any() else 1.0
        factors = np.where(known, own / np.maximum(predicted, 1e-12 * max(float(predicted.sum()), 1e-300)), typical)
        p, u, v = (float(factor) for factor in factors)
        return cls(density, max(ratio, 0.0), (m, n, t), observations, noise, (p, u, v))

    def parts(self, r: Floats, sizes: Sizes) -> Floats:
        """Return what P, U and T contribute to the variance of (N − rD)/D of the witness h_r, a row for each."""
        return self._parts(r, sizes, self._moments(r, sizes), self.ratio)

    def variances(self, sizes: Sizes) -> Sizes:
        """Return what P, U and T contribute to the variance of R̂."""
        p, u, t = (float(part[0]) for part in self.parts(np.array([self.ratio]), sizes))
        return p, u, t

    def width(self, sizes: Sizes, priors: Sequence[tuple[Floats, Floats]], confidence: float) -> float:
        """Return the expected width of the interval of π′, the union over `priors`, each values of π with weights."""
        error = float(np.sqrt(sum(self.variances(sizes))))
        fine = self.ratio + error * _FINE
        r = np.unique(np.concatenate([_COARSE / (1 - _COARSE), fine[fine > 0]]))
        moments = self._moments(r, sizes)
        degrees = np.maximum(np.array(self.observations) * np.array(sizes) / np.array(self.sizes) - 1, 1)[:, None]
        widths = []
        for node in _NODES:
            R = self.ratio + error * float(node)
            parts = self._parts(r, sizes, moments, max(R, 0.0))
            V = np.maximum(parts.sum(axis=0), 1e-300)
            freedom = V**2 / np.maximum((parts**2 / degrees).sum(axis=0), 1e-300)
            curve = TabulatedCurve.from_tests(r, (R - r) / np.sqrt(V), np.maximum(freedom, 1.0))
            ends = [_interval(curve, *prior, confidence) for prior in priors]
            widths.append(max(high for _, high in ends) - min(low for low, _ in ends))
        return float(_WEIGHTS @ np.array(widths))

    def _moments(self, r: Floats, sizes: Sizes) -> Floats:
        """Return E_P h, E_U h, E_P h² and E_U h² of each h_r, shape (4, repeats, ratios)."""
        m, n, t = sizes
        f, rho = self.population[:, None, :], 1 / self.population[:, None, :]
        c_P, c_U = ((1 - r) ** 2 / m)[:, None], (r**2 / n)[:, None]
        h = (1 - rho) / (np.maximum((1 - r)[:, None] * rho + r[:, None], 0) / t + c_P * rho + c_U)
        h /= np.abs(h).max(axis=(0, 2), keepdims=True)
        weighted = f * h
        bins = h.shape[2]
        of_P, of_U = h.mean(axis=2), weighted.mean(axis=2)
        squares = [np.einsum("ijk,ijk->ij", x, h) / bins for x in (h, weighted)]
        return np.stack([of_P, of_U, *squares])

    def _parts(self, r: Floats, sizes: Sizes, moments: Floats, ratio: float) -> Floats:
        """Return the parts of the variance if R is `ratio`."""
        (m, n, t), (of_P, of_U, square_P, square_U) = sizes, moments

        def variance(at: Floats | float) -> Floats:
            squares = (1 - at) * square_P + at * square_U
            return np.asarray((squares - ((1 - at) * of_P + at * of_U) ** 2).mean(axis=0))

        var_T = np.maximum(variance(ratio), variance(r))  # as in the test
        m0, n0, _ = self.sizes
        odds = self.noise / (1 - self.noise) * (1 / m + 1 / n) / (1 / m0 + 1 / n0)
        q = odds / (1 + odds)
        squared = np.maximum((of_U - of_P).mean(axis=0), 1e-150) ** 2
        parts = np.stack([(1 + q) * (1 - r) ** 2 * variance(0.0) / m, (1 + q) * r**2 * variance(1.0) / n, var_T / t])
        return np.asarray(np.maximum(parts / squared, 0.0) * np.array(self.factors)[:, None])


def _interval(curve: TabulatedCurve, priors: Floats, weights: Floats, confidence: float) -> tuple[float, float]:
    """Return the curve's interval of π′ to a millionth, by interpolation instead of a search."""
    negatives = np.maximum(1 - priors, 1e-12)
    first, last = curve.level[0], np.interp(1 / negatives, curve.ratios, curve.level)
    beyond = np.maximum(first, 0.0) + np.minimum(last, 0.0)

    def confidence_above(target: Floats) -> Floats:
        """Return the confidence that π′ is at least `target`, which decreases."""
        level = np.interp((1 - target)[:, None] / negatives, curve.ratios, curve.level)
        return np.asarray(ndtr(level - beyond) @ weights)

    def end(level: float, default: float) -> float:
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
