"""Tests for several classes: is it label shift, and is there a class that exists only in the target?

Under label shift the target is a mixture of the samples, f_T = Σ b_s f_s, and E_T φ − Σ b_s E_s φ is 0 for every
function φ of a row. The functions h determine b̂; further functions test the assumption. Subtract from φ the
combination of h for which

    φ⊥ = φ − Λᵀh   has the same mean c in all samples.

Then e = E_T φ⊥ − c is E_T φ − Σ b̂_s E_s φ, and it is 0 under label shift whatever b is: its error is that of the means
of φ⊥, which accounts for the error of b̂. An observation contributes Σ_s a_s ψ_s, with its influence ψ_s on the mean in
sample s and the factors a_T = 1 and a_s = −b̂_s.

The label-shift test has the coordinates φ of a kernel of the rows and of a kernel of h, as the test for one class
(:mod:`priorshift.diagnosis.residuals`). Random signs of the contributions give the distribution of ‖e‖².

A class that exists only in the target, with share ν and density f_new, gives e = ν (E_new φ⊥ − c), so that a function
φ⊥ ≤ S gives the lower bound ν ≥ e/(S − c). A good φ is large where the target has more rows than the mixture explains.
It is computed from half of the observations, and tested on the other half. It is linear in coordinates of a kernel,
whose residual e has the noise V, with the sum of two coefficients, each scaled to a noise of 1: V⁻¹e with a ridge,
which is best where e is well known, and Ve, which trusts the longest axes, where overlapping classes differ. Negative
values of φ are set to 0, and large ones are capped. These choices were made on Waveform, Segment and three normal
classes, with 2000 rows. φ is large where the untested half of a small sample has no rows by chance, and the tested half
may have none there either; so the error includes that of one more such row (chosen on Segment and two normal classes).

The statistics z of many random halves are averaged. A product of the errors of two observations enters z if they are in
different halves. Two independent splits have a quarter of all products in common, of the half that each has: z of two
splits has correlation 1/2, and the mean of z over m splits has variance (1 + 1/m)/2. If there is a new class, φ is
nearly the same in all splits and the mean has the variance of all observations instead of half of them, which is 1/2 as
well. The study `experiments/studies/new_class.py` measures levels and power.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from priorshift.arrays import Floats, Index, Mask
from priorshift.class_source import ClassSource
from priorshift.diagnosis.identification import TextReport
from priorshift.diagnosis.residuals import (
    FeatureMean,
    KernelFeatures,
    WeightedSample,
    evenly_spaced,
    random_signs,
)
from priorshift.diagnosis.shift_tests import RESAMPLES, numbered, rank_p_values
from priorshift.formatting import format_p, format_percent
from priorshift.inference.affine_mixture import SampleValues
from priorshift.methods.multiclass import MulticlassShift
from priorshift.problem import Target
from priorshift.scores.scored_source import Preparation

LEVEL = 0.05  # of significance
_MOST_ROWS = 10_000  # of each sample that are tested
_LEAST_OBSERVATIONS = 10.0  # of a sample, half of which must have a variance
_MOST_SIGNS = 10**8  # in memory: resamples times observations
_RETEST, _MORE_RESAMPLES = 0.1, 4999  # p-value below which there are more resamples
_FAR = 2.0  # standard deviations at which h is clipped before its kernel is computed
_SPLITS, _AXES, _RIDGE = 20, 64, 0.1  # of the test of a new class; the ridge is relative to the mean variance
_CAPPED = 0.1  # share of the target's rows at which φ is capped
_SHOWN_ROWS = 10
_ROW_RIDGE = 0.01  # of the function that says which rows are of a new class
_TINY = 1e-300
_NAN = float("nan")


@dataclass(frozen=True, eq=False)
class ClassTestInput:
    """The rows of all samples and of the target, which is last, and the functions h that determine b̂."""

    rows: tuple[Floats, ...]  # prepared for a kernel, shape (rows, columns) for each sample
    values: tuple[SampleValues, ...]
    target_row: Index  # number in the user's table of each row of the target
    has_rest: bool
    confidence: float
    seed: int

    @classmethod
    def build(cls, shift: MulticlassShift, source: ClassSource, target: Target) -> ClassTestInput:
        """Collect the rows of a source, with its rows, and of a target, at most 10,000 in even steps of each sample."""
        scaling, table = source.source.scaling, source.source.table
        scaled = [*(scaling.rows(table.values, rows) for rows in source.rows), target.rows]
        reference = scaled[-2] if source.has_rest else scaling.rows(table.values)
        prepare = Preparation.fit(reference, used=scaling.factor != 0, encoded=table.origin is not None)
        samples, of_target = shift.values_of(target)
        rows, values = [], []
        for sample_rows, sample in zip(scaled, (*samples, of_target), strict=True):
            chosen = evenly_spaced(len(sample_rows), _MOST_ROWS)
            rows.append(prepare(sample_rows[chosen]))
            mass, observation = sample.mass[chosen] / sample.mass[chosen].sum(), sample.observation[chosen]
            values.append(SampleValues(sample.h[chosen], mass, observation, WeightedSample(mass, observation).size))
        seed = int(np.random.default_rng(shift.random_state).integers(2**62))
        return cls(tuple(rows), tuple(values), chosen, source.has_rest, shift.confidence, seed)

    @property
    def too_few(self) -> str:
        """Why there is no test, if a sample has too few observations; empty otherwise."""
        for k, sample in enumerate(self.values):
            if sample.size < _LEAST_OBSERVATIONS - 1e-9:  # the size may have a rounding error
                name = "the target" if k == len(self.values) - 1 else "a sample of the source"
                return (
                    f"the effective size of {name} is {sample.size:.1f} observations, but at least "
                    f"{_LEAST_OBSERVATIONS:.0f} are needed."
                )
        return ""


class _Residual(NamedTuple):
    """The functions φ⊥ of features φ, from the means of features and of h in all samples and in the target."""

    Lambda: Floats  # shape (functions h, features)
    coefficients: Floats  # a: −b̂_s of the samples and, last, 1 of the target

    @classmethod
    def fit(cls, means: Floats, functions: int) -> _Residual:
        """Compute Λ and b̂ from means of shape (samples + 1, features + functions), h last."""
        contrasts = means[:-2] - means[-2]  # of the samples and the base
        of_phi, of_h = contrasts[:, :-functions], contrasts[:, -functions:]
        inverse = np.linalg.pinv(of_h)
        b = (means[-1, -functions:] - means[-2, -functions:]) @ inverse
        return cls(inverse @ of_phi, np.append(-b, [b.sum() - 1, 1.0]))

    def project(self, features: Floats) -> Floats:
        """Return φ⊥, or its mean or error, from those of (φ, h), shape (…, features + functions)."""
        functions = len(self.Lambda)
        return np.asarray(features[..., :-functions] - features[..., -functions:] @ self.Lambda)


@dataclass(frozen=True)
class ClassLabelShiftTest(TextReport):
    """The test of label shift for several classes."""

    p_value: float  # of both kinds of features; NaN where there is no test
    rows_p_value: float  # of a kernel of the rows
    scores_p_value: float  # of a kernel of the functions h
    resamples: int
    reason: str = ""  # why there is no p-value

    @property
    def text(self) -> str:
        """Sentences of this part, a line for each topic, not wrapped."""
        if self.reason:
            return f"Label shift cannot be tested: {self.reason}"
        verdict = "Label shift does not hold" if self.p_value <= LEVEL else "Label shift is not contradicted"
        by_kind = f"rows {format_p(self.rows_p_value)}, scores {format_p(self.scores_p_value)}"
        return f"{verdict}: {format_p(self.p_value)} ({by_kind})."


def class_label_shift_test(
    inputs: ClassTestInput, *, resamples: int = RESAMPLES, retest_resamples: int = _MORE_RESAMPLES
) -> ClassLabelShiftTest:
    """Test whether the target is a mixture of the samples, by functions besides those that determine the mixture.

    A small p-value is computed again with `retest_resamples`, if these are more than `resamples`.
    """
    if inputs.too_few:
        return ClassLabelShiftTest(_NAN, _NAN, _NAN, resamples, inputs.too_few)
    features, widths = _kernel_features(inputs)
    test = _test_residual(inputs, features, widths, resamples)
    more = min(retest_resamples, _MOST_SIGNS // sum(map(len, inputs.rows)))
    if test.p_value <= _RETEST and more > resamples:
        return _test_residual(inputs, features, widths, more)
    return test


def _kernel_features(inputs: ClassTestInput) -> tuple[list[Floats], tuple[int, int]]:
    """Return the coordinates of two kernels and h at the rows of each sample, and the number of coordinates of each."""
    h = np.concatenate([sample.h for sample in inputs.values])
    mass = np.concatenate([sample.mass for sample in inputs.values]) / len(inputs.values)
    center = mass @ h
    spread = np.sqrt(mass @ (h - center) ** 2)
    spread[spread == 0] = 1.0
    scores = [np.clip((sample.h - center) / spread, -_FAR, _FAR) for sample in inputs.values]
    by_kind = []
    for rows in (inputs.rows, scores):
        kernel = KernelFeatures.fit(rows, np.asarray)
        by_kind.append([kernel.coordinates(sample) for sample in rows])
    features = [
        np.concatenate([*both, sample.h], axis=1) for *both, sample in zip(*by_kind, inputs.values, strict=True)
    ]
    return features, (by_kind[0][0].shape[1], by_kind[1][0].shape[1])


def _test_residual(
    inputs: ClassTestInput, features: Sequence[Floats], widths: tuple[int, int], resamples: int
) -> ClassLabelShiftTest:
    """Compare ‖e‖² of each kernel with that of resamples, and the smaller p-value with that in the same resamples."""
    samples = [WeightedSample(sample.mass, sample.observation) for sample in inputs.values]
    signs = random_signs(samples, resamples, np.random.default_rng(inputs.seed))
    means = [
        FeatureMean.resample(sample, signs, phi.__getitem__) for sample, phi in zip(samples, features, strict=True)
    ]
    residual = _Residual.fit(np.stack([mean.value for mean in means]), inputs.values[0].h.shape[1])
    a = residual.coefficients
    e = residual.project(sum(factor * mean.value for factor, mean in zip(a, means, strict=True)))
    noise = residual.project(sum(factor * mean.noise for factor, mean in zip(a, means, strict=True)))
    both = np.concatenate([e[None], noise])  # the data, then the resamples
    p_values = []
    for part in (slice(widths[0]), slice(widths[0], None)):
        squares = np.einsum("ri,ri->r", both[:, part], both[:, part])
        p_values.append(rank_p_values(squares))
    smallest = np.min(p_values, axis=0)
    p_value = float((smallest <= smallest[0]).mean())
    return ClassLabelShiftTest(p_value, float(p_values[0][0]), float(p_values[1][0]), resamples)


@dataclass(frozen=True)
class NewClassTest(TextReport):
    """The test of whether some rows of the target are of a class that the source does not have."""

    p_value: float  # one-sided; NaN where there is no test
    statistic: float  # mean excess of the target over the mixture, in standard errors
    least_share: float  # lower bound of the share of such rows, at `confidence`; 0 where there may be none
    confidence: float
    rows: tuple[int, ...]  # of the target, from 0, that are least like the source; empty where p_value > 5%
    has_rest: bool
    reason: str = ""  # why there is no p-value

    @property
    def is_detected(self) -> bool:
        """Whether rows of the target look like no class of the source, at the level of 5%."""
        return self.p_value <= LEVEL

    @property
    def statement(self) -> str:
        """The sentence on rows that look like no class of the source, without its p-value and full stop."""
        others = "the labelled classes nor like the source's rest" if self.has_rest else "the classes of the source"
        return f"Rows of the target look like none of {others}"

    @property
    def bound(self) -> str:
        """How many rows there are at least, for a sentence; empty if the bound is 0."""
        if not self.least_share > 0:
            return ""
        return f"at least {format_percent(self.least_share)} of the target, with {100 * self.confidence:g}% confidence"

    @property
    def text(self) -> str:
        """Sentences of this part, a line for each topic, not wrapped."""
        if self.reason:
            return f"A new class cannot be tested: {self.reason}"
        if not self.is_detected:
            return f"There is no evidence of a class that exists only in the target ({format_p(self.p_value)})."
        extent = f": {self.bound}" if self.bound else ""
        lines = [f"{self.statement} ({format_p(self.p_value)}){extent}."]
        if self.rows:
            lines.append(f"Most unlike the source are {numbered(self.rows)}.")
        return "\n".join(lines)


class _Excess(NamedTuple):
    """The excess of the target in one half of the observations, of a function from the other half."""

    z: float  # over its standard error
    share: float  # e/(S − c)
    error: float  # of the share
    freedom: float  # degrees of freedom


def new_class_test(inputs: ClassTestInput, *, splits: int = _SPLITS) -> NewClassTest:
    """Test whether some region has more rows of the target than any mixture of the samples explains."""
    if inputs.too_few:
        return NewClassTest(_NAN, _NAN, 0.0, inputs.confidence, (), inputs.has_rest, inputs.too_few)
    rng = np.random.default_rng(inputs.seed)
    kernel = KernelFeatures.fit(inputs.rows, np.asarray)
    coordinates = [kernel.coordinates(rows, _AXES).astype(np.float64) for rows in inputs.rows]
    excesses = []
    for _ in range(splits):
        second = _halve(inputs.values, rng)
        for halves in (second, [~mask for mask in second]):  # the rows that are tested
            functions = _excess_functions(coordinates, inputs.values, halves)
            excesses.append(_test_excess(functions, inputs.values, halves))
    z, share, error, freedom = np.mean(excesses, axis=0)
    scale = np.sqrt(2 / (1 + 1 / splits))  # by which a mean over splits is more precise than one half
    p_value = float(stdtr(freedom, -scale * z))
    bound = float(share - stdtrit(freedom, inputs.confidence) * error / scale)
    rows: tuple[int, ...] = ()
    if p_value <= LEVEL:
        new_shares = _new_shares(coordinates, inputs.values, rng)
        highest = np.argsort(-new_shares, kind="stable")[:_SHOWN_ROWS]
        rows = tuple(int(inputs.target_row[row]) for row in highest if new_shares[row] > 0)
    least = min(max(bound, 0.0), 1.0) if p_value <= LEVEL else 0.0
    return NewClassTest(p_value, float(scale * z), least, inputs.confidence, rows, inputs.has_rest)


def _halve(values: Sequence[SampleValues], rng: np.random.Generator) -> list[Mask]:
    """Return which rows of each sample are in the second half of a random split of its observations."""
    in_second = np.zeros(1 + max(int(sample.observation.max()) for sample in values), dtype=bool)
    for sample in reversed(values):  # the labelled samples, which are the smallest, come last and are halved evenly
        members = rng.permutation(np.unique(sample.observation))
        in_second[members] = (np.arange(len(members)) + rng.integers(2)) % 2 == 1
    return [in_second[sample.observation] for sample in values]


def _excess_functions(
    coordinates: Sequence[Floats], values: Sequence[SampleValues], tested: Sequence[Mask]
) -> list[Floats]:
    """Return φ at all rows of each sample, from 0 to 1: how far the target exceeds the mixture, by untested rows."""
    features = [np.concatenate([phi, sample.h], axis=1) for phi, sample in zip(coordinates, values, strict=True)]
    masses = []
    for sample, mask in zip(values, tested, strict=True):
        mass = np.where(mask, 0.0, sample.mass)
        masses.append(mass / mass.sum())
    means = np.stack([mass @ rows for mass, rows in zip(masses, features, strict=True)])
    residual = _Residual.fit(means, values[0].h.shape[1])
    a, e = residual.coefficients, residual.project(residual.coefficients @ means)
    projected = [residual.project(rows) for rows in features]
    noise = np.zeros((len(e), len(e)))
    for factor, phi, mass, sample in zip(a, projected, masses, values, strict=True):
        centred = phi - mass @ phi
        noise += factor**2 / sample.size * (centred.T @ (mass[:, None] * centred))
    variances, axes = np.linalg.eigh(noise)
    variances = np.maximum(variances, 0.0)  # rounding
    beta = np.zeros(len(e))
    for weights in (1 / (variances + _RIDGE * variances.mean() + _TINY), variances):
        along_axes = weights * (axes.T @ e)
        beta += axes @ (along_axes / np.sqrt(max(variances @ along_axes**2, _TINY)))
    excess = [phi @ beta for phi in projected]
    cap = max(float(np.quantile(excess[-1][~tested[-1]], 1 - _CAPPED)), _TINY)
    return [np.clip(sample / cap, 0.0, 1.0) for sample in excess]


def _new_shares(coordinates: Sequence[Floats], values: Sequence[SampleValues], rng: np.random.Generator) -> Floats:
    """Estimate at each row of the target how much of its density the mixture does not explain.

    The function of the test is larger where the target has more such rows; this one where nearly all rows are of them.
    It is ridge regression of the signs of a (1 in the target, −1 in a sample with b̂_s > 0, 1 in one with b̂_s < 0),
    with weights |a|, which estimates (f_T − Σ b_s f_s)/(f_T + Σ |b_s| f_s), at rows that it was not fitted to.
    """
    features = [np.concatenate([phi, np.ones((len(phi), 1))], axis=1) for phi in coordinates]
    width, total = features[0].shape[1], np.zeros(len(features[-1]))
    for _ in range(_SPLITS):
        second = _halve(values, rng)
        for shown in (second, [~mask for mask in second]):
            masses = [np.where(mask, 0.0, sample.mass) for sample, mask in zip(values, shown, strict=True)]
            masses = [mass / mass.sum() for mass in masses]
            h_means = np.stack([mass @ sample.h for mass, sample in zip(masses, values, strict=True)])
            a = _Residual.fit(h_means, h_means.shape[1]).coefficients
            gram, moment = _ROW_RIDGE * np.eye(width), np.zeros(width)
            for factor, phi, mass in zip(a, features, masses, strict=True):
                weighted = mass[:, None] * phi
                gram += abs(factor) * phi.T @ weighted
                moment += factor * weighted.sum(axis=0)
            total += np.where(shown[-1], features[-1] @ np.linalg.solve(gram, moment), 0.0)
    return total / _SPLITS


def _test_excess(functions: Sequence[Floats], values: Sequence[SampleValues], tested: Sequence[Mask]) -> _Excess:
    """Test whether the mean of a function is larger in the target than in the mixture, on the tested rows."""
    samples = []
    for phi, sample, mask in zip(functions, values, tested, strict=True):
        mass, observation = sample.mass[mask] / sample.mass[mask].sum(), sample.observation[mask]
        size = max(sample.size * len(mass) / len(mask), 2.0)
        samples.append(SampleValues(np.column_stack([phi, sample.h])[mask], mass, observation, size))
    means = np.stack([sample.mass @ sample.h for sample in samples])
    residual = _Residual.fit(means, values[0].h.shape[1])
    projected = residual.project(means)[:, 0]
    e, c = float(residual.coefficients @ projected), float(projected[-2])
    numbers, contributions, variances = [], [], []  # of each sample
    for factor, sample in zip(residual.coefficients, samples, strict=True):
        number, influence = sample.influence()
        numbers.append(number)
        contributions.append(factor * residual.project(influence)[:, 0])
        variances.append(float(contributions[-1] @ contributions[-1]))
    by_observation = np.bincount(np.concatenate(numbers), np.concatenate(contributions))  # some are in two samples
    squares = sum(v**2 / (sample.size - 1) for v, sample in zip(variances, samples, strict=True))
    freedom = max(sum(variances) ** 2 / max(squares, _TINY), 1.0)
    largest = max(
        float(residual.project(np.column_stack([phi, sample.h])).max())
        for phi, sample in zip(functions, values, strict=True)
    )
    reach = max(largest - c, _TINY)
    shifts = [factor * reach / sample.size for factor, sample in zip(residual.coefficients, samples, strict=True)]
    one_row = float(np.sum(np.square(shifts)))  # squared error by one more row of each sample where φ is largest
    error = float(np.sqrt(max(float(by_observation @ by_observation) + one_row, _TINY)))
    return _Excess(e / error, e / reach, error / reach, freedom)
