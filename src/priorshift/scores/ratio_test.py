"""The efficient witness h of a ratio r, and the test of R = r at many r by it: one formula for rows and for counts.

Label shift says E_T h = (1−R)·E_P h + R·E_U h for every function h of a row, so each h is a witness of R: R = N/D with
N = E_T h − E_P h and D = E_U h − E_P h. TCPU uses h = μ_U − μ_P in the space of a kernel. The variance of N − rD is
c_T Var_T h + c_P Var_P h + c_U Var_U h with c_T = 1/n′, c_P = (1−r)²/m, c_U = r²/n, and the h that minimises the
variance of R̂ is, by the Cauchy–Schwarz inequality,

    h_r = (f_U − f_P)/(c_T f_T + c_P f_P + c_U f_U) = (1 − ρ)/(c_T((1−r)ρ + r) + c_P ρ + c_U),     ρ = f_P/f_U.

It depends on a row through ρ alone, and on the scale of the p-value v (uniform for positives) ρ = 1/f_U(v), which is
estimated by the mixture's decreasing density. An error of ρ costs precision, not validity: every h is valid.

Each r is tested with the h that is best if R = r. The p-values of positives are ranks, so that E_P h is known, and
their noise enters through the ranks: to first order with the influence of a mean over P. Scores are cross-fitted, but
what two rows do to each other's scores does not vanish if the scores are mostly noise. This second-order part of the
variance is the first-order part times the share of noise in h, which is estimated from the differences of h between
repetitions.

R̂ is only shown if D is clearly positive (:data:`LEAST_SEPARATION`), and D̂ is then too large on average: where it is
close to the limit, tests that ignore this reject the true R too often. So each test is conditional on it. With s the
statistic of N − rD, S that of D and c their correlation, S − c·s is independent of s, and given its value the limit on
S is a limit on s: a normal distribution that is cut off there, whatever the true D is (Lee et al. 2016).

Means of h and their errors come from rows (:mod:`priorshift.scores.witness`) or from counts of p-values
(:mod:`priorshift.scores.counts`), as :class:`WitnessMeans`; everything after that is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from priorshift.arrays import Floats
from priorshift.errors import WeakSeparationWarning
from priorshift.inference.confidence_curve import LARGEST_LEVEL, TabulatedCurve
from priorshift.scores import mixture
from priorshift.warning_records import warn

_COARSE = np.concatenate([np.linspace(0, 0.9, 25), [0.92, 0.94, 0.96, 0.98, 0.99, 0.995]])  # r/(1 + r)
_FINE = np.linspace(-6, 6, 25)  # standard errors around R̂
LARGEST_RATIO = float(_COARSE[-1] / (1 - _COARSE[-1]))  # largest r that is tested
_LEAST_COUNT = 5.0  # smallest density of p-values in a bin, in rows of U
LEAST_SEPARATION = 2.5  # standard errors of D below which P and U may be the same population
_SWAPPED = 5.0  # standard errors of the opposite sign that cannot be chance
_LARGEST_SEPARATION = 1e3  # standard errors, beyond which a message does not give their number
_LARGEST_WIDENING = 1e12  # of a variance; anything smaller is rounding error


@dataclass(frozen=True, eq=False)
class RatioTest:
    """The test of R = r at many r."""

    curve: TabulatedCurve  # the confidence that R ≤ r, given that the samples were found separable
    error: Floats  # √Var(N − rD)/D at the ratios of the curve: the standard error of R̂ if R = r; infinite if D ≤ 0
    ratio: float  # R̂, where the statistic is zero; NaN if it is zero nowhere
    ratio_error: float  # standard error of R̂; NaN if there is no R̂
    separation: float  # D over its standard error, for the h of R̂
    is_separable: bool  # whether P can be distinguished from U

    @classmethod
    def run(cls, try_ratios: Callable[[Floats], TriedRatios], least: float = 0.0) -> RatioTest:
        """Test ratios on a coarse grid, and then on a finer one around R̂; `try_ratios` tests given ratios.

        `least` is the smallest possible ratio: below 0 if labels may be wrong, so that T may be richer in positives
        than P.
        """
        grid = _COARSE / (1 - _COARSE)
        if least < 0:
            least = max(least, -LARGEST_RATIO)
            grid = np.concatenate([[least], -grid[(grid > 0) & (grid < -least)][::-1], grid])
        coarse = try_ratios(grid)
        test = coarse.result()
        if not np.isfinite(test.ratio):
            return test
        error = float(np.interp(test.ratio, test.curve.ratios, test.error))
        if not np.isfinite(error):
            return test
        fine = test.ratio + error * _FINE
        fine = np.setdiff1d(fine[fine > grid[0]], test.curve.ratios)  # those that were not yet tested
        return TriedRatios.join([coarse, try_ratios(fine)]).result() if len(fine) else test


@dataclass(frozen=True, eq=False)
class TriedRatios:
    """N − rD and its variance at some ratios r; the last axis of every array is that of the ratios."""

    ratios: Floats
    difference: Floats  # N − rD
    variance: Floats  # of the difference
    denominator: Floats  # D
    freedom: Floats  # Satterthwaite's degrees of freedom of the variance
    separation: Floats  # D over its standard error
    correlation: Floats  # of D and N − rD
    inflation: Floats  # 1 + the share of noise in h, by which variances of the source are multiplied
    parts: Floats  # variances of the difference due to T, U and P alone (3, ratios), without the inflation

    @classmethod
    def join(cls, tried: list[TriedRatios]) -> TriedRatios:
        """Join the results for several sets of ratios, in increasing order of the ratios."""
        order = np.argsort(np.concatenate([part.ratios for part in tried]), kind="stable")
        joined = {}
        for field in fields(cls):
            values = np.concatenate([getattr(part, field.name) for part in tried], axis=-1)
            joined[field.name] = values[..., order]
        return cls(**joined)

    def result(self) -> RatioTest:
        """Return the test: R̂, where N − rD is zero, and the differences N − rD in units of their standard errors."""
        r, D = self.ratios, self.denominator
        ratio = _root(r, self.difference, D)
        is_finite = bool(np.isfinite(ratio))
        nearest = (
            min(max(ratio, float(r[0])), float(r[-1])) if is_finite else 1.0
        )  # the ratio at which errors are interpolated
        spread = np.sqrt(self.variance)
        error = np.where(D > 0, spread / np.where(D > 0, D, 1.0), np.inf)  # the inner `where` avoids a division by 0
        ratio_error = float(np.interp(nearest, r, error)) if is_finite else float("nan")
        separation = float(np.interp(nearest, r, self.separation))
        is_separable = bool(separation > LEAST_SEPARATION and is_finite)
        curve = TabulatedCurve.from_tests(r, self.difference / spread, self.freedom)
        if is_separable:
            level = _given_separation(curve.level, separation - LEAST_SEPARATION, self.correlation)
            curve = TabulatedCurve(r, np.maximum.accumulate(level))
        return RatioTest(curve, error, ratio, ratio_error, separation, is_separable)


@dataclass(frozen=True, eq=False)
class WitnessMoments:
    """Moments of functions h in a sample, one number for each function."""

    mean: Floats
    square: Floats  # E h²
    variance: Floats  # of h, which is the mean over repetitions of a function h_k
    single_variance: Floats  # of h_k, averaged over repetitions k
    privacy_variance: Floats | float = 0.0  # variance of the mean due to noise that was added to counts


class WitnessMeans(ABC):
    """Means of functions h in P, U and T, and their errors."""

    positive: WitnessMoments
    population: WitnessMoments
    target_mean: Floats
    sizes: tuple[float, float, float]  # effective rows of P, U and T
    observations: tuple[float, float, float]  # effective observations of P, U and T
    repeats: int  # repetitions that can be compared; 1 if rows were not counted in pairs of repetitions
    target_privacy_variance: Floats | float = 0.0  # variance of the mean in T due to noise that was added to counts
    privacy_covariance: Floats | float = 0.0  # covariance of the means in P and U due to that noise
    tie_shares: Floats  # of P, as in :func:`tie_shares`; shape (repeats, bins)
    has_shared_groups: bool = False  # whether groups are in the source and in the target
    group_effect: Floats | float = 1.0  # design effect of groups in T, if they are like those of U

    @abstractmethod
    def variances(self, factor_P: Floats, factor_U: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the variances of the means in P, U and T; must be called before the methods below.

        Variances of h in P and U are multiplied by `factor_P` and `factor_U`, one number for each function.
        """

    @abstractmethod
    def source_variance(self, weight_U: Floats, weight_P: Floats) -> Floats:
        """Return the variance of weight_U·E_U h + weight_P·E_P h for each function h."""

    def with_shared_groups(self, r: Floats, variance: Floats, inflation: Floats) -> Floats:
        """Return the `variance` of N − rD, corrected for groups that are in the source and in the target; none here."""
        return variance


def try_ratios(r: Floats, h: Floats, density_ratio: Floats, means: WitnessMeans, folds: int) -> TriedRatios:
    """Test ratios r by functions h of shape (repeats, ratios, bins), given their means in P, U and T.

    E_P h is 0, so N = E_T h and D = E_U h. `density_ratio` is ρ in each bin, shape (repeats, bins).
    """
    P, U, target_mean = means.positive, means.population, means.target_mean
    _, n, t = means.sizes
    # variance of h in T if R = r, since few rows of it may contain none of a rare class: T = (1−r)P + rU
    expected_T = (1 - r) * P.square + r * U.square - ((1 - r) * P.mean + r * U.mean) ** 2
    noise = noise_share(U.single_variance * unbiased(n), U.variance * unbiased(n), means.repeats, folds)
    # few rows may miss where h is large, or be equal by chance. P's p-values are uniform but for ties, and U's have the
    # mixture's density 1/ρ relative to P's: observed variances are widened to what these distributions imply
    law_P = np.maximum(1 / mixture.BINS + means.tie_shares, 0.0)[:, None, :]
    expected_P = _variance_by_bins(h, law_P).mean(axis=0)
    expected_U = _variance_by_bins(h, law_P / density_ratio[:, None, :]).mean(axis=0)
    factor_P = np.clip(expected_P / np.maximum(P.single_variance, 1e-300), 1.0, _LARGEST_WIDENING)
    factor_U = np.clip(expected_U / np.maximum(U.single_variance, 1e-300), 1.0, _LARGEST_WIDENING)
    var_P, var_U, var_T = means.variances(factor_P, factor_U)

    floor = expected_T / t  # variance of the mean in T if R = r, without groups
    var_T = np.maximum(np.maximum(var_T, floor), floor * np.maximum(means.group_effect, 1.0))
    parts = np.stack([var_T, r**2 * var_U, (1 - r) ** 2 * var_P])
    inflation = 1 + noise
    # V = Var(N − rD), N − rD = E_T h − r·E_U h − (1−r)·E_P h
    V = var_T + inflation * means.source_variance(r, 1 - r)
    if means.has_shared_groups:
        V = means.with_shared_groups(r, V, inflation)
    privacy_variance = means.target_privacy_variance + r**2 * U.privacy_variance + (1 - r) ** 2 * P.privacy_variance
    V = V + (privacy_variance + 2 * r * (1 - r) * means.privacy_covariance)
    # D = E_U h − E_P h. Copies increase its error; that shared rows decrease it is not relied on
    independent, ones = var_U + var_P, np.ones_like(r)
    var_D = inflation * np.maximum(means.source_variance(ones, -ones), independent)
    var_D = var_D + U.privacy_variance + P.privacy_variance
    # Cov(D, N − rD) = −Cov(E_U h − E_P h, r·E_U h + (1−r)·E_P h), by Cov(a, b) = (Var(a + b) − Var(a − b))/4
    covariance = -inflation * (means.source_variance(r + 1, -r) - means.source_variance(r - 1, 2 - r)) / 4
    correlation = np.clip(covariance / np.sqrt(np.maximum(V * var_D, 1e-300)), -1.0, 1.0)

    # Satterthwaite's rule: (Σ parts)²/Σ(parts²/(observations − 1))
    observations_P, observations_U, observations_T = means.observations
    observations = np.array([observations_T, observations_U, observations_P], dtype=float)  # in the order of the parts
    one_less = np.maximum(observations - 1, 1)[:, None]
    freedom = parts.sum(axis=0) ** 2 / np.maximum((parts**2 / one_less).sum(axis=0), 1e-300)
    separation = U.mean / np.sqrt(np.maximum(var_D, 1e-300))
    variance, freedom = np.maximum(V, 1e-300), np.maximum(freedom, 1.0)
    difference = target_mean - r * U.mean
    return TriedRatios(r, difference, variance, U.mean, freedom, separation, correlation, inflation, parts)


def _given_separation(level: Floats, excess: Floats | float, correlation: Floats) -> Floats:
    """Return the level Φ⁻¹(confidence that R ≤ r) of each test, given that the separation exceeds its limit.

    `level` is without this condition, `excess` is the separation less its limit, and `correlation` is that of the
    separation with the statistic s = −level. The condition is s < −level + excess/|c| where the correlation c is
    negative, and s > −level − excess/c where it is positive.
    """
    reach = excess / np.maximum(np.abs(correlation), 1e-12)
    # s is cut off above where the correlation is negative, and below where it is positive
    return np.asarray(np.where(correlation < 0, -_truncated_level(-level, reach), _truncated_level(level, reach)))


def _truncated_level(level: Floats, reach: Floats) -> Floats:
    """Return Φ⁻¹(Φ(level)/Φ(level + reach)), by the smaller of the two tails, which keeps its digits."""
    inside, log_upper_tail = log_ndtr(level + reach), log_ndtr(-level)
    with np.errstate(divide="ignore"):  # a tail of 0 is at the largest level
        log_upper = log_upper_tail + np.log1p(-np.exp(log_ndtr(-level - reach) - log_upper_tail)) - inside
    from_below = ndtri_exp(np.minimum(log_ndtr(level) - inside, 0.0))
    from_above = -ndtri_exp(np.minimum(log_upper, 0.0))
    return np.clip(np.where(level < 0, from_below, from_above), -LARGEST_LEVEL, LARGEST_LEVEL)


def warn_not_separable(test: RatioTest, sizes: tuple[int, int], consequence: str) -> None:
    """Warn that P and U cannot be distinguished; `sizes` are their rows, `consequence` completes "so …"."""
    m, n = sizes
    separation = test.separation
    shown = f"their separation is {separation:.1f} times its standard error"
    if abs(separation) > _LARGEST_SEPARATION:  # the scores hardly vary within the samples
        sign = "negative" if separation < 0 else "positive"
        shown = f"their separation is {sign}, and its standard error is nearly 0"
    advice = "Add rows, or features that distinguish the classes"
    if separation < -_SWAPPED:
        advice = "It has the wrong sign: check whether positives and unlabelled rows are swapped"
    warn(
        f"The {m} positives cannot be distinguished from the {n} unlabelled rows ({shown}), so "
        f"{consequence}. {advice}.",
        WeakSeparationWarning,
    )


def density_ratio(prior: Floats, weights: Floats, rows: float) -> Floats:
    """Return ρ = f_P/f_U = 1/f_U in each bin of p-values, shape (repeats, bins).

    `prior` and `weights` are π and w of the mixture in each repetition; `rows` is the effective size of U.
    """
    f_U = prior[:, None] + (1 - prior[:, None]) * mixture.density(weights)
    return np.asarray(1 / np.maximum(f_U, _LEAST_COUNT / rows))


def efficient_witness(density_ratio: Floats, ratios: Floats, sizes: tuple[float, float, float]) -> Floats:
    """Return the efficient witness h_r in each bin, shape (repeats, ratios, bins), scaled to |h| ≤ 1.

    `density_ratio` is ρ, shape (repeats, bins); `sizes` are the effective sizes of P, U and T. With c_T = 1/n′,
    c_P = (1−r)²/m and c_U = r²/n, h_r = (1 − ρ)/(c_T((1−r)ρ + r) + c_P ρ + c_U).
    """
    rho, r = density_ratio[:, None, :], np.asarray(ratios, dtype=float)
    m, n, t = sizes
    c_T, c_P, c_U = 1 / t, ((1 - r) ** 2 / m)[:, None], (r**2 / n)[:, None]
    # (1−r)ρ + r is a density, so it is not negative, whatever r is
    h = (1 - rho) / (c_T * np.maximum((1 - r)[:, None] * rho + r[:, None], 0) + c_P * rho + c_U)
    h /= np.abs(h).max(axis=(0, 2), keepdims=True)
    return np.asarray(h)


def mean_over_ranks(h: Floats, positives: int, tie_shares: Floats) -> Floats:
    """Return E_P h, the mean of h over the ranks that a new positive can have among `positives`.

    Without ties all ranks 0 to `positives` are equally likely; `tie_shares` is what ties change. `h` has shape
    (repeats, functions, bins); the means have shape (repeats, functions, 1).
    """
    attainable = mixture.bins((np.arange(positives + 1) + 0.5) / (positives + 1))
    counts = np.bincount(attainable, minlength=mixture.BINS)
    return np.asarray((h @ counts)[:, :, None] / (positives + 1) + h @ tie_shares[:, :, None])


def tie_shares(counts: Floats) -> Floats:
    """Return the share of positives that ties add to each bin of the p-values, shape (repeats, bins); 0 without ties.

    `counts` are the numbers of positives in each bin, by their ranks among themselves. Positives with equal scores have
    the p-value of their middle rank, and so has a new positive with that score.
    """
    positives = round(float(counts[0].sum()))
    without_ties = mixture.histogram(np.arange(1, positives + 1) / (positives + 1))
    return np.asarray((counts - without_ties) / positives)


def noise_share(single_variance: Floats, variance: Floats, repeats: int, folds: int) -> Floats:
    """Return the share of h's variance in U that is noise of the scores, 0 to 1, for each function h.

    h is the mean of h_k over repetitions k; `variance` is that of h, `single_variance` the mean of those of h_k. With K
    folds, the fits of two repetitions differ in one row of K each, so their difference has 2/(K−1) of the variance of a
    fit's noise.
    """
    if repeats < 2:
        return np.ones_like(variance)  # unknown, so the largest share
    # half of the variance of the difference between two repetitions
    between = np.maximum(single_variance - variance, 0.0) * repeats / (repeats - 1)
    return np.asarray(np.minimum(between * (folds - 1) / np.maximum(variance, 1e-300), 1.0))


def _variance_by_bins(h: Floats, law: Floats) -> Floats:
    """Return the variance of h, shape (repeats, functions, bins), if a row's bin has the probabilities ∝ `law`."""
    law = law / law.sum(axis=2, keepdims=True)
    return np.asarray((law * h**2).sum(axis=2) - (law * h).sum(axis=2) ** 2)


def unbiased(count: float) -> float:
    """Return n/(n−1), the factor that makes the variance about a sample's own mean unbiased."""
    return count / max(count - 1, 1)


def _root(r: Floats, S: Floats, D: Floats) -> float:
    """Return R̂, the r at which S = N − rD falls through zero; beyond the first or last r, N/D with the h of that r.

    `r` increases; S and D are by the h of each r. NaN where D is not positive there.
    """
    falls = np.flatnonzero((S[:-1] > 0) & (S[1:] <= 0) & (D[:-1] > 0) & (D[1:] > 0))
    if len(falls):
        k = falls[0]
        ends = r[k : k + 2] + S[k : k + 2] / D[k : k + 2]  # N/D = r + S/D by the h of either neighbour
        weight = S[k] / (S[k] - S[k + 1])
        return float((1 - weight) * ends[0] + weight * ends[1])
    k = 0 if S[0] <= 0 else -1  # all of S is on one side of zero, so R̂ is beyond the first or the last r
    return float(r[k] + S[k] / D[k]) if D[k] > 0 else float("nan")
