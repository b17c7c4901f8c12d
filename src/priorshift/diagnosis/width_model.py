"""How wide an interval will be with other numbers of rows, from a pilot.

On the scale of the p-values the pilot's mixture says how P, U and T are distributed: f_P = 1, f_U = 1/ρ and
f_T = 1 − R + R·f_U. So the witness h_r that is best for other sizes, its D and its variances follow by sums over the
bins, and with them the expected statistic of the test of every r; the interval is the inversion of these tests, as it
is of the pilot's own. It is averaged over where R̂ may fall, since an end that is cut off at 0 or 1 makes it shorter.

What the bins do not know, the pilot's own test tells. What averaging over repetitions saves, and what groups cost, is
the factor between its variances and those of the bins, taken to be the same at other sizes. The share q of h's variance
that is noise of the scores, for which the test adds q times the variance of the source, falls with more rows: its odds
q/(1−q) as 1/m + 1/n does. That the scores themselves become better with more rows is not counted on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, roots_hermitenorm

from priorshift.arrays import Floats
from priorshift.inference.confidence_curve import TabulatedCurve
from priorshift.problem import Target
from priorshift.scores.ratio_test import RatioTest
from priorshift.scores.witness import Witness

_COARSE = np.linspace(0, 0.98, 30)  # r/(1 + r)
_FINE = np.linspace(-7, 7, 57)  # standard errors around R̂
_NODES, _WEIGHTS = (np.asarray(x) for x in roots_hermitenorm(5))  # of where R̂ may fall
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_STEPS, _REFINED = 65, 4  # of π′, where an end of an interval is looked for
_LEAST = 1e-12
_MOST_NOISE = 0.95  # of h, beyond which its odds are no number to go by

Sizes = tuple[float, float, float]  # m, n and n′


@dataclass(frozen=True, eq=False)
class WidthModel:
    """The pilot, as far as widths depend on it.

    Attributes
    ----------
    population : ndarray of shape (repeats, bins)
        f_U, whose mean over the bins is 1.
    ratio : float
        R.
    sizes : tuple of three float
        Rows that P, U and T are worth.
    observations : tuple of three float
        Of equal weight, for degrees of freedom.
    noise : float
        q.
    factors : tuple of three float
        The pilot's variances of P, U and T over those of the bins.
    """

    population: Floats
    ratio: float
    sizes: Sizes
    observations: Sizes
    noise: float
    factors: Sizes = (1.0, 1.0, 1.0)

    @classmethod
    def of(cls, witness: Witness, values: Floats, target: Target, test: RatioTest, ratio: float) -> WidthModel:
        """Read the pilot, whose R̂ must be a number; `ratio` is what R is taken to be, such as one that can be."""
        density = 1 / witness.density_ratio
        (m, n), t = witness.source.effective_sizes, target.size
        parts = witness.variance_parts(test.ratio, values, target)
        source = witness.source
        observations = source.effective_positives, source.effective_population, _observations(target)
        noise = min(max(parts.noise, 0.0), _MOST_NOISE)
        density = density / density.mean(axis=1, keepdims=True)
        alone = cls(density, max(test.ratio, 0.0), (m, n, t), observations, noise)
        made = alone.parts(np.array([alone.ratio]), (m, n, t))[:, 0]
        # what P and U have in common makes their variances add up to more or less
        common = max(parts.total - parts.target, 0.0) / max(parts.positive + parts.unlabeled, 1e-300)
        own = np.array([common * parts.positive, common * parts.unlabeled, parts.target])
        # a part that is nothing by both, such as that of P where R is 1, has no factor
        known = (made > 1e-9 * made.sum()) & (own > 0)
        typical = float(own[known].sum() / made[known].sum()) if known.any() else 1.0
        factors = np.where(known, own / np.maximum(made, _LEAST * max(float(made.sum()), 1e-300)), typical)
        p, u, t_factor = (float(f) for f in factors)
        return cls(density, max(ratio, 0.0), (m, n, t), observations, noise, (p, u, t_factor))

    def noise_at(self, sizes: Sizes) -> float:
        """q with other sizes."""
        (m, n, _), (m0, n0, _) = sizes, self.sizes
        odds = self.noise / (1 - self.noise) * (1 / m + 1 / n) / (1 / m0 + 1 / n0)
        return odds / (1 + odds)

    def parts(self, r: Floats, sizes: Sizes) -> Floats:
        """What P, U and T make of the variance of N − rD, over D², of the witness h_r; a row for each."""
        return self._parts(r, sizes, self._moments(r, sizes), self.ratio)

    def variances(self, sizes: Sizes) -> Sizes:
        """What P, U and T make of the variance of R̂."""
        p, u, t = (float(part[0]) for part in self.parts(np.array([self.ratio]), sizes))
        return p, u, t

    def width(self, sizes: Sizes, priors: Sequence[tuple[Floats, Floats]], confidence: float) -> float:
        """Of the interval of π′ that is expected, the union of those of `priors`: values of π and their weights."""
        error = float(np.sqrt(sum(self.variances(sizes))))
        fine = self.ratio + error * _FINE
        r = np.unique(np.concatenate([_COARSE / (1 - _COARSE), fine[fine > 0]]))
        moments = self._moments(r, sizes)
        grown = np.maximum(np.array(self.observations) * np.array(sizes) / np.array(self.sizes) - 1, 1)[:, None]
        widths = []
        for node in _NODES:
            R = self.ratio + error * float(node)
            parts = self._parts(r, sizes, moments, max(R, 0.0))
            V = np.maximum(parts.sum(axis=0), 1e-300)
            freedom = V**2 / np.maximum((parts**2 / grown).sum(axis=0), 1e-300)
            curve = TabulatedCurve.from_tests(r, (R - r) / np.sqrt(V), np.maximum(freedom, 1.0))
            ends = [_interval(curve, *prior, confidence) for prior in priors]
            widths.append(max(high for _, high in ends) - min(low for low, _ in ends))
        return float(_WEIGHTS @ np.array(widths))

    def _moments(self, r: Floats, sizes: Sizes) -> Floats:
        """E_P h, E_U h, E_P h² and E_U h² of each h_r, shape (4, repeats, ratios)."""
        m, n, t = sizes
        f, rho = self.population[:, None, :], 1 / self.population[:, None, :]
        c_P, c_U = ((1 - r) ** 2 / m)[:, None], (r**2 / n)[:, None]
        h = (1 - rho) / (np.maximum((1 - r)[:, None] * rho + r[:, None], 0) / t + c_P * rho + c_U)
        h /= np.abs(h).max(axis=(0, 2), keepdims=True)
        weighted = f * h
        bins = h.shape[2]
        of_P, of_U = h.mean(axis=2), weighted.mean(axis=2)
        return np.stack(
            [of_P, of_U, np.einsum("ijk,ijk->ij", h, h) / bins, np.einsum("ijk,ijk->ij", weighted, h) / bins]
        )

    def _parts(self, r: Floats, sizes: Sizes, moments: Floats, ratio: float) -> Floats:
        """If R is `ratio`."""
        (m, n, t), (of_P, of_U, square_P, square_U) = sizes, moments

        def mixed(at: Floats | float) -> Floats:
            squares = (1 - at) * square_P + at * square_U
            return np.asarray((squares - ((1 - at) * of_P + at * of_U) ** 2).mean(axis=0))

        var_T = np.maximum(mixed(ratio), mixed(r))  # as the test has it
        q = self.noise_at(sizes)
        squared = np.maximum((of_U - of_P).mean(axis=0), 1e-150) ** 2
        made = np.stack([(1 + q) * (1 - r) ** 2 * mixed(0.0) / m, (1 + q) * r**2 * mixed(1.0) / n, var_T / t])
        return np.asarray(np.maximum(made / squared, 0.0) * np.array(self.factors)[:, None])


def _interval(curve: TabulatedCurve, priors: Floats, weights: Floats, confidence: float) -> tuple[float, float]:
    """As the curve's own, to a millionth, by reading between its ratios instead of searching."""
    keep = np.maximum(1 - priors, 1e-12)
    first, last = curve.level[0], np.interp(1 / keep, curve.ratios, curve.level)
    beyond = np.maximum(first, 0.0) + np.minimum(last, 0.0)

    def sure(target: Floats) -> Floats:
        """That π′ is at least so large; it falls."""
        level = np.interp((1 - target)[:, None] / keep, curve.ratios, curve.level)
        return np.asarray(ndtr(level - beyond) @ weights)

    def end(level: float, otherwise: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(_REFINED):
            grid = np.linspace(low, high, _STEPS)
            below = np.flatnonzero(sure(grid) <= level)
            if not len(below) or below[0] == 0:
                return otherwise
            low, high = float(grid[below[0] - 1]), float(grid[below[0]])
        return (low + high) / 2

    tail = (1 - confidence) / 2
    return end(1 - tail, 0.0), end(tail, 1.0)


def _observations(target: Target) -> float:
    total = np.bincount(target.observation, target.mass)
    return float(1 / (total @ total))
