"""The test of a ratio R = r by its best witness: what it is made of, whether rows or counts of rows are at hand.

The mathematics is told in :mod:`priorshift.scores.witness`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from priorshift.arrays import Floats
from priorshift.errors import WeakSeparationWarning
from priorshift.scores import mixture
from priorshift.warning_records import warn

_COARSE = np.concatenate([np.linspace(0, 0.9, 25), [0.92, 0.94, 0.96, 0.98, 0.99, 0.995]])  # r/(1 + r)
_FINE = np.linspace(-6, 6, 25)  # standard errors around R̂
LARGEST = float(_COARSE[-1] / (1 - _COARSE[-1]))  # r that is tested
_LEAST_COUNT = 5.0  # rows of U that a density of p-values must be worth
LEAST_SEPARATION = 1.645  # standard errors of the separation, below which P and U may be alike
_SWAPPED = 5.0  # of the other sign, beyond which it is no chance
_FAR = 1e4  # that is said of it, at most
_WIDEST = 1e12  # times that a variance is made larger; one that is smaller still is rounding


@dataclass(frozen=True, eq=False)
class RatioTest:
    """The test of R = r at many r.

    Attributes
    ----------
    ratios : ndarray of shape (tests,)
        r, rising.
    statistic : ndarray
        (N − rD)/√Var(N − rD), which falls in r where the samples are apart.
    error : ndarray
        √Var(N − rD)/D, the standard error of R̂ if R = r; infinite where D is not positive.
    freedom : ndarray
        Satterthwaite's degrees of freedom.
    ratio : float
        R̂, where the statistic is zero; NaN where it is nowhere.
    separation : float
        D over its standard error, for the witness of R̂.
    """

    ratios: Floats
    statistic: Floats
    error: Floats
    freedom: Floats
    ratio: float
    separation: float

    @classmethod
    def of(cls, tests: Callable[[Floats], TriedRatios]) -> RatioTest:
        """Test ratios everywhere, and more of them around R̂; `tests` makes those of any ratios."""
        coarse = tests(_COARSE / (1 - _COARSE))
        test = coarse.result()
        error = float(np.interp(test.ratio, test.ratios, test.error)) if np.isfinite(test.ratio) else np.inf
        fine = test.ratio + error * _FINE if np.isfinite(error) else np.empty(0)
        fine = np.setdiff1d(fine[fine > 0], test.ratios)
        return coarse.joined(tests(fine)).result() if len(fine) else test

    @property
    def ratio_error(self) -> float:
        """The standard error of R̂; NaN where there is none."""
        at = min(max(self.ratio, 0.0), float(self.ratios[-1]))
        return float(np.interp(at, self.ratios, self.error)) if np.isfinite(self.ratio) else float("nan")

    @property
    def is_separable(self) -> bool:
        """Whether P can be told from U."""
        return bool(self.separation > LEAST_SEPARATION and np.isfinite(self.ratio))


@dataclass(frozen=True, eq=False)
class TriedRatios:
    """Rows of one array: r, N − rD, its variance, D, degrees of freedom, D over its standard error."""

    made: Floats

    @classmethod
    def of(
        cls, r: Floats, N: Floats, D: Floats, variance: Floats, parts: Floats, observations: Floats, of_D: Floats
    ) -> TriedRatios:
        """From the variance of N − rD and its `parts` from T, U and P, of so many observations; `of_D` is D's own."""
        one_less = np.maximum(observations - 1, 1)[:, None]
        freedom = parts.sum(axis=0) ** 2 / np.maximum((parts**2 / one_less).sum(axis=0), 1e-300)
        apart = D / np.sqrt(np.maximum(of_D, 1e-300))
        return cls(np.stack([r, N - r * D, np.maximum(variance, 1e-300), D, np.maximum(freedom, 1.0), apart]))

    def joined(self, other: TriedRatios) -> TriedRatios:
        made = np.concatenate([self.made, other.made], axis=1)
        return TriedRatios(made[:, np.argsort(made[0], kind="stable")])

    def result(self) -> RatioTest:
        r, S, V, D, freedom, apart = self.made
        ratio = _root(r, S, D)
        at = min(max(ratio, 0.0), float(r[-1])) if np.isfinite(ratio) else 1.0
        spread = np.sqrt(V)
        error = np.where(D > 0, spread / np.where(D > 0, D, 1.0), np.inf)
        return RatioTest(r, S / spread, error, freedom, ratio, float(np.interp(at, r, apart)))


def warn_not_separable(test: RatioTest, sizes: tuple[int, int], left: str) -> None:
    """Say that P, of so many rows, cannot be told from U, and what is left of the answer."""
    m, n = sizes
    apart = min(max(test.separation, -_FAR), _FAR)
    advice = "Add rows, or features that tell the classes apart"
    if apart < -_SWAPPED:
        advice = "It has the wrong sign: check whether positives and unlabelled rows are swapped"
    warn(
        f"The {m} positives cannot be told from the {n} unlabelled rows (their separation is {apart:.1f} times its "
        f"standard error), so {left}. {advice}.",
        WeakSeparationWarning,
    )


def density_ratio_of(law: tuple[Floats, Floats], rows: float) -> Floats:
    """ρ = 1/f_U in each bin, by π and w of the mixture in each repetition; U is worth so many rows."""
    prior, weights = law
    f = prior[:, None] + (1 - prior[:, None]) * mixture.density(weights)
    return np.asarray(1 / np.maximum(f, _LEAST_COUNT / rows))


def best_function(density_ratio: Floats, ratios: Floats, sizes: tuple[float, float, float]) -> Floats:
    """h_r in each bin for samples that are worth m, n and n′ rows, shape (repeats, ratios, bins), at most 1."""
    rho, r = density_ratio[:, None, :], np.asarray(ratios, dtype=float)
    m, n, t = sizes
    c_T, c_P, c_U = 1 / t, ((1 - r) ** 2 / m)[:, None], (r**2 / n)[:, None]
    h = (1 - rho) / (c_T * np.maximum((1 - r)[:, None] * rho + r[:, None], 0) + c_P * rho + c_U)
    h /= np.abs(h).max(axis=(0, 2), keepdims=True)
    return np.asarray(h)


def mean_over_ranks(h: Floats, positives: int) -> Floats:
    """The mean of h over the ranks that a further positive could have among so many, of each repetition."""
    attainable = mixture.bins((np.arange(positives + 1) + 0.5) / (positives + 1))
    counts = np.bincount(attainable, minlength=mixture.BINS)
    return np.asarray((h @ counts)[:, :, None] / (positives + 1))


def expected_variance(h: Floats, density_ratio: Floats) -> Floats:
    """Of h among U by the mixture's law of its p-values, the mean over repetitions."""
    f = 1 / density_ratio[:, None, :]
    f = f / f.sum(axis=2, keepdims=True)
    return np.asarray(((f * h**2).sum(axis=2) - (f * h).sum(axis=2) ** 2).mean(axis=0))


def widening(expected: Floats, seen: Floats) -> Floats:
    """By how much a variance that rows show is made larger, where they are more alike than their law says."""
    return np.clip(expected / np.maximum(seen, 1e-300), 1.0, _WIDEST)


def noise_share(each: Floats, variance: Floats, repeats: int, folds: int) -> Floats:
    """The share of h's variance among U that is noise of the scores, 0 to 1.

    `each` is the mean over repetitions of the variance in one, `variance` that of the mean over repetitions. With K
    folds, scores of two repetitions come from fits that differ in one row of K each: of the variance of a fit's noise,
    their difference has 2/(K−1).
    """
    if repeats < 2:
        return np.ones_like(variance)
    between = np.maximum(each - variance, 0.0) * repeats / (repeats - 1)  # half of a difference's variance
    return np.asarray(np.minimum(between * (folds - 1) / np.maximum(variance, 1e-300), 1.0))


def unbiased(count: float) -> float:
    """What a sum of squares about a mean of so many rows is too small by."""
    return count / max(count - 1, 1)


def _root(r: Floats, S: Floats, D: Floats) -> float:
    """Where N_r − rD_r falls through zero; beyond the ends, N/D with the witness of the nearer one."""
    falls = np.flatnonzero((S[:-1] > 0) & (S[1:] <= 0) & (D[:-1] > 0) & (D[1:] > 0))
    if len(falls):
        k = falls[0]
        ends = r[k : k + 2] + S[k : k + 2] / D[k : k + 2]  # each witness's own ratio
        weight = S[k] / (S[k] - S[k + 1])
        return float((1 - weight) * ends[0] + weight * ends[1])
    k = 0 if S[0] <= 0 else -1
    return float(r[k] + S[k] / D[k]) if D[k] > 0 else float("nan")
