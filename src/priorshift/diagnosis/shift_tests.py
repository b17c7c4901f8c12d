"""Is there a shift? Is it label shift? Two tests, neither of which needs the source prior.

If R = 1, target and population have one distribution, and E_T h = E_U h for every h: the shift test compares two
means, of the h that is best at R = 1. Rows of the target are scored by the same cross-fitted models, so that no row is
scored by a model that was fitted to it. The influence of rows of U on each other's scores adds to the variance: half of
the share of noise in h, according to simulations (`experiments/studies/type_one.py`); tests of other ratios count all
of it, which is conservative where positives are few.

The label-shift test decides whether the target is a mixture of the positives and the population at all, by the residual
(:mod:`priorshift.diagnosis.residuals`) of two kinds of features: a Gaussian kernel of the rows, which detects many
kinds of drift, and cosines of the score's p-value, which detect a drift of few rows along the score. The smaller of
their p-values is judged in the same resamples. The features hardly depend on the seed, and where the p-value is small
there are more resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtr
from scipy.stats import rankdata

from priorshift.arrays import Floats
from priorshift.diagnosis.columns import ColumnShift, column_shifts, mean_over_repeats
from priorshift.diagnosis.identification import DiagnosisInput, TextReport
from priorshift.diagnosis.residuals import (
    Gram,
    Residual,
    ResidualFeatures,
    Samples,
    WeightedSample,
    inverse_noise,
    random_signs,
    weighted_samples,
)
from priorshift.formatting import format_p
from priorshift.results import Interval
from priorshift.scores import mixture
from priorshift.scores.ratio_test import LEAST_SEPARATION
from priorshift.threads import one_blas_thread

RESAMPLES = 999
_LEVEL, _STRICT_LEVEL = 0.05, 0.01  # of significance
_POOL_BELOW = 100  # observations of a target below which the variance is pooled with that of U
_LEAST_VARIANCE = 1e-3  # of a difference of means, as a share of the sum of their variances
_NOISE_COUNTED = 0.5  # part of the noise of the scores that enters the variance, according to simulations (see above)
_LEAST_OBSERVATIONS = 5.0  # of a sample: four have only eight patterns of signs
_SHOWN_ROWS = 10
_BLOCK_ROWS = 4096
_LARGEST_RATIO = 10.0
_NAN = float("nan")


@dataclass(frozen=True)
class ShiftTest(TextReport):
    """The test of R = (1−π′)/(1−π) = 1, and the interval of R.

    With many rows every difference is significant, so the ratio and its interval come first: R = 0.9 means that the
    share of negatives is a tenth lower than in the source, whatever π is. The interval is that of tests that are more
    conservative with few rows: it may contain 1 where the p-value is below 5%. The interval decides whether a change is
    clear, here and in conclusions (`Conclusion.side`).
    """

    statistic: float  # (E_T h − E_U h) over its standard error; positive where the target has more negatives
    p_value: float  # two-sided, by Student's distribution
    ratio: float  # R̂; NaN where the positives cannot be distinguished from the population
    interval: Interval
    freedom: float  # degrees of freedom
    separation: float  # of P from U over its standard error; below LEAST_SEPARATION, R says nothing

    @property
    def is_clear(self) -> bool:
        """Whether the share of positives changed: the interval of R does not contain 1."""
        return not self.interval.low <= 1 <= self.interval.high

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON; a number that does not exist is None."""
        record = super().to_dict()
        record["interval"] = {name: record["interval"][name] for name in ("low", "high", "confidence")}
        return record

    @property
    def text(self) -> str:
        """Sentences of this part, a line for each topic, not wrapped."""
        if not self.separation > LEAST_SEPARATION:  # also where it is NaN
            return "The positives can hardly be distinguished from the population, so a shift cannot be detected."
        interval = f"{100 * self.interval.confidence:g}% interval {self.interval.low:.2f} to {self.interval.high:.2f}"
        ratio = f"The share of negatives in the target is R = {self.ratio:.2f} times that in the source ({interval})."
        if not self.is_clear and self.p_value <= 1 - self.interval.confidence:  # the interval is more conservative
            return f"{ratio} It contains 1, so a shift is not established."
        return f"{ratio} Test of no shift (R = 1): {format_p(self.p_value)}."


def shift_test(inputs: DiagnosisInput) -> ShiftTest:
    """Test R = 1 with the witness function h that is best at R = 1: under the hypothesis, E_T h = E_U h."""
    fit = inputs.fit
    h = fit.witness.function(np.ones(1), fit.target.size)[:, 0]  # shape (repeats, bins)
    _, sample_U, sample_T = weighted_samples(fit.witness.source, fit.target)
    # bins of the p-values of rows, shape (repeats, rows); the witness stores those of the source, not of a target
    bins_U, bins_T = fit.witness.population, mixture.bins(fit.p_values)
    T = _MeanOfH.measure(sample_T, mean_over_repeats(h, bins_T))
    U = _MeanOfH.measure(sample_U, mean_over_repeats(h, bins_U))
    noise_factor = 1 + _NOISE_COUNTED * fit.witness.noise_share(h)
    (var_T, var_U), freedom = _variances(T, U, noise_factor)
    freedom = max(float(freedom), 1.0)
    # If both samples have the same groups, their errors cancel, and the estimated variance may be near 0 or negative.
    # The limit keeps a small difference from being significant then; 1e-300 avoids a division by zero.
    total = var_T + var_U
    variance = max(total - 2 * _covariance(T, U, var_T, var_U), _LEAST_VARIANCE * total, 1e-300)
    statistic = float((T.value - U.value) / np.sqrt(variance))
    p_value = min(1.0, 2 * float(stdtr(freedom, -abs(statistic))))
    low, high = fit.test.curve.quantiles(inputs.confidence) if fit.test.curve.is_known else (0.0, float("inf"))
    interval = Interval(low, high, inputs.confidence, "witness")
    return ShiftTest(statistic, p_value, fit.test.ratio, interval, freedom, fit.test.separation)


class _MeanOfH(NamedTuple):
    """The mean of a function h over the rows of a sample, and quantities that its variance is computed from."""

    value: float
    terms: Floats  # contribution Σ mass·(h − mean) of each observation to the error of the mean, by its number
    square_sum: float  # of the terms
    correction: float  # Bessel's factor of the variance
    observations: float  # effective number
    spread: float  # variance of h among rows
    mass_squares: float  # Σ mass²
    is_grouped: bool  # whether some observations have several rows
    design_effect: float  # factor by which groups enlarge the variance

    @classmethod
    def measure(cls, sample: WeightedSample, h: Floats) -> _MeanOfH:
        """Compute the mean, and what its variance is computed from, of the values `h` at the rows of a sample."""
        mass, observations = sample.mass, sample.size
        mean = float(mass @ h)
        terms = np.asarray(np.bincount(sample.observation, mass * (h - mean)), dtype=np.float64)
        square_sum, correction = float(terms @ terms), observations / (observations - 1)
        spread, mass_squares = float(mass @ (h - mean) ** 2), float(mass @ mass)
        is_grouped = len(np.unique(sample.observation)) < len(h)
        row_variance = spread * mass_squares  # of the mean, if rows were independent
        design_effect = correction * square_sum / row_variance if is_grouped and row_variance > 0 else 1.0
        return cls(mean, terms, square_sum, correction, observations, spread, mass_squares, is_grouped, design_effect)


def _variances(T: _MeanOfH, U: _MeanOfH, noise_factor: float) -> tuple[tuple[float, float], float]:
    """Return the variances of the means of h in T and in U, and the degrees of freedom of their difference.

    `noise_factor` enlarges the variance of U, since its rows influence each other's scores.
    """
    if T.observations >= _POOL_BELOW:  # each from its own rows (Welch), with Satterthwaite's degrees of freedom
        var_T, var_U = T.square_sum * T.correction, U.square_sum * U.correction * noise_factor
        satterthwaite_denominator = var_T**2 / (T.observations - 1) + var_U**2 / (U.observations - 1)
        return (var_T, var_U), (var_T + var_U) ** 2 / max(satterthwaite_denominator, 1e-300)
    # A small target may by chance have no row of a rare class, and its own variance would be too small.
    # So the variance of rows is pooled over both samples, with their effective numbers of rows.
    rows_T, rows_U = 1 / T.mass_squares, 1 / U.mass_squares
    spread = (rows_T * T.spread + rows_U * U.spread) / max(rows_T + rows_U - 2, 1.0)
    # rows of its few groups may by chance look independent, so its design effect is at least that of U
    effect_T = max(T.design_effect, U.design_effect) if T.is_grouped else T.design_effect
    var_T = spread * T.mass_squares * effect_T
    var_U = spread * U.mass_squares * U.design_effect * noise_factor
    return (var_T, var_U), T.observations + U.observations - 2  # only observations, not their rows, are independent


def _covariance(T: _MeanOfH, U: _MeanOfH, var_T: float, var_U: float) -> float:
    """Return the covariance of the means of h in T and in U: c_T·c_U·Σ t_i·u_i over the observations i in both.

    t_i and u_i are the terms of an observation, which has the same number in both samples. The factors make the squared
    terms of each sample add up to its variance: c_T² = var_T/Σ t_i², c_U² = var_U/Σ u_i².
    """
    c_T = np.sqrt(var_T / T.square_sum) if T.square_sum > 0 else 0.0
    c_U = np.sqrt(var_U / U.square_sum) if U.square_sum > 0 else 0.0
    common = min(len(T.terms), len(U.terms))  # later numbers are in one sample only
    return float(T.terms[:common] @ U.terms[:common]) * float(c_T * c_U)


@dataclass(frozen=True)
class ResidualTest:
    """The test of the residual of one kind of features."""

    statistic: float = _NAN  # λ: the squared residual over what noise contributes to it
    p_value: float = _NAN  # NaN where there is nothing to compare with
    ratio: float = _NAN  # R̂ that minimises λ


@dataclass(frozen=True)
class LabelShiftTest(TextReport):
    """The test of label shift, with the columns and rows that contradict it."""

    statistic: float  # the smaller p-value of `kernel` and `score`
    p_value: float  # share of resamples in which it is at least as small
    kernel: ResidualTest  # of the rows, by a Gaussian kernel
    score: ResidualTest  # of the scores
    violation: float  # ‖e‖, the size of the residual in the kernel's space without noise; 0 where noise explains it
    violation_squared: float  # its unbiased square, which may be negative
    separation: float  # ‖μ_U − μ_P‖ in the same space, which a change of R by 1 corresponds to
    columns: tuple[ColumnShift, ...]  # those that moved most beyond label shift first
    rows: tuple[int, ...]  # of the target, from 0, where it exceeds most what label shift explains
    resamples: int
    reason: str = ""  # why there is no p-value

    @property
    def moved_columns(self) -> tuple[ColumnShift, ...]:
        """Columns whose adjusted p-value is at most 5%."""
        return tuple(column for column in self.columns if column.p_value <= _LEVEL)

    @property
    def clearly_moved_columns(self) -> tuple[ColumnShift, ...]:
        """Columns whose adjusted p-value is at most 1%, which count even if the test of all columns is silent."""
        return tuple(column for column in self.columns if column.p_value <= _STRICT_LEVEL)

    @property
    def text(self) -> str:
        """Sentences of this part, a line for each topic, not wrapped."""
        if self.reason:
            return f"Label shift cannot be tested: {self.reason}"
        by_kind = f"rows {format_p(self.kernel.p_value)}, scores {format_p(self.score.p_value)}"
        rejected = self.p_value <= _LEVEL
        verdict = "Label shift does not hold" if rejected else "Label shift is not contradicted"
        lines = [f"{verdict}: {format_p(self.p_value)} ({by_kind})."]
        moved_columns = self.moved_columns if rejected else self.clearly_moved_columns
        if moved_columns:
            columns = "; ".join(map(str, moved_columns[:5]))
            lines.append(f"Columns that moved more than a change in prevalence explains: {columns}.")
        if rejected and self.rows:
            lines.append(f"The largest excess is at {numbered(self.rows)}.")
        return "\n".join(lines)


def numbered(rows: Sequence[int]) -> str:
    """Name rows of the target, given from 0 on, by their numbers in a file, from 1 on."""
    numbers = [str(row + 1) for row in rows]
    names = f"rows {', '.join(numbers[:-1])} and {numbers[-1]}" if len(numbers) > 1 else f"row {numbers[0]}"
    return f"{names} of the target (counting from 1, without the header)"


def label_shift_test(
    inputs: DiagnosisInput, *, resamples: int = RESAMPLES, retest_below: float = 0.0, retest_resamples: int = 0
) -> LabelShiftTest:
    """Test label shift of the target, unless P, U or T has too few observations.

    A p-value of at most `retest_below` is computed again with `retest_resamples`, if these are more than `resamples`.
    """
    samples = weighted_samples(inputs.source, inputs.fit.target)
    for name, sample in zip(("positive", "unlabelled", "target"), samples, strict=True):
        if sample.size < _LEAST_OBSERVATIONS - 1e-9:  # the size may have a rounding error
            size, needed = f"{sample.size:.1f} observations", f"at least {_LEAST_OBSERVATIONS:.0f} are needed"
            reason = f"the effective size of the {name} sample is {size}, but {needed}."
            return LabelShiftTest(
                statistic=_NAN, p_value=_NAN, kernel=ResidualTest(), score=ResidualTest(), violation=_NAN,
                violation_squared=_NAN, separation=_NAN, columns=(), rows=(), resamples=resamples, reason=reason,
            )  # fmt: skip
    with one_blas_thread():
        features = ResidualFeatures.fit(inputs)
        test = _test_residuals(inputs, features, samples, resamples)
        if test.p_value <= retest_below and retest_resamples > resamples:
            test = _test_residuals(inputs, features, samples, retest_resamples)
    return test


def _test_residuals(
    inputs: DiagnosisInput, features: ResidualFeatures, samples: Samples, resamples: int
) -> LabelShiftTest:
    """Test label shift by the residuals of kernel and score, and each column, all in the same resamples."""
    signs = random_signs(samples, resamples, inputs.rng)
    kernel_means, score_means, column_means = features.resample(samples, signs, inputs.rng)
    kernel = Residual.fit(kernel_means)
    # The ratio only scales the cosines, and the test is valid with any scale: 1, no shift, where R̂ does not exist.
    ratio = inputs.fit.test.ratio
    ratio = min(max(ratio, 0.0), _LARGEST_RATIO) if np.isfinite(ratio) else 1.0
    score = Residual.fit(score_means, inverse_noise(score_means, ratio))  # scaled so that all cosines count the same
    (kernel_test, score_test), statistic, p_value = _combine_tests([kernel, score])
    violation_squared = _violation_squared(kernel)
    # ‖a‖² of a = μ_U − μ_P, less what noise contributes to it on average
    separation_squared = float(kernel.a @ kernel.a - kernel.noise.aa)
    return LabelShiftTest(
        statistic=statistic, p_value=p_value, kernel=kernel_test, score=score_test,
        violation=float(np.sqrt(max(violation_squared, 0.0))), violation_squared=violation_squared,
        separation=float(np.sqrt(max(separation_squared, 0.0))),
        columns=column_shifts(column_means, features.columns, inputs.source.table),
        rows=_rows_in_excess(features, kernel, samples[2].mass), resamples=resamples,
        reason="the rows of the samples do not vary, so there is nothing to compare." if np.isnan(p_value) else "",
    )  # fmt: skip


def _combine_tests(residuals: Sequence[Residual]) -> tuple[list[ResidualTest], float, float]:
    """Test each residual; return the tests, the smallest of their p-values, and the p-value of all tests together.

    The latter is the share of resamples in which the smallest p-value is at least as small. Both are NaN where no
    residual has noise to compare it with.
    """
    tests, p_values = [], []  # p-values of the data (first) and of each resample
    for residual in residuals:
        null = residual.null_statistics()
        if null is None:
            tests.append(ResidualTest())
            continue
        p_values.append(rank_p_values(np.concatenate([[residual.statistic], null])))
        tests.append(ResidualTest(residual.statistic, float(p_values[-1][0]), residual.ratio))
    if not p_values:
        return tests, _NAN, _NAN
    smallest = np.min(p_values, axis=0)
    return tests, float(smallest[0]), float((smallest <= smallest[0]).mean())


def _violation_squared(kernel: Residual) -> float:
    """Return the smallest ‖b − r·a‖² over ratios r, less what noise contributes to it; it may be negative.

    With b = μ_T − μ_P and a = μ_U − μ_P in the kernel's space, it is the squared distance of μ_T from the line through
    μ_P and μ_U. It is computed from the inner products bb = ⟨b, b⟩, ab = ⟨a, b⟩ and aa = ⟨a, a⟩.
    """
    observed, noise = Gram.from_vectors(kernel.b, kernel.a), kernel.noise
    signal = Gram(observed.bb - noise.bb, observed.ab - noise.ab, observed.aa - noise.aa)
    nearest = np.clip(signal.ab / signal.aa, 0.0, _LARGEST_RATIO) if signal.aa > 0 else 0.0
    return float(signal.residual_square(nearest))


def rank_p_values(statistics: Floats) -> Floats:
    """Return the p-value of each statistic: the share of all, itself included, that are at least as large."""
    return np.asarray(rankdata(-statistics, method="max") / len(statistics))


def _rows_in_excess(features: ResidualFeatures, kernel: Residual, mass: Floats) -> tuple[int, ...]:
    """Return the numbers of at most ten rows of the target where it exceeds most what label shift explains.

    The excess at a row with kernel coordinates φ is ⟨φ, e⟩ with the residual e = b − R̂·a, less the row's own
    contribution to it, mass·‖φ‖²; `mass` is that of the target's rows.
    """
    e, rows = kernel.b - kernel.ratio * kernel.a, features.rows[2]
    excess = np.empty(len(rows))
    for first in range(0, len(rows), _BLOCK_ROWS):
        block = slice(first, first + _BLOCK_ROWS)
        phi = features.kernel.coordinates(features.prepare(rows[block]))
        excess[block] = phi @ e - mass[block] * np.einsum("ij,ij->i", phi, phi)
    highest = np.argsort(-excess, kind="stable")[:_SHOWN_ROWS]
    return tuple(int(row) for row in highest if excess[row] > 0)
