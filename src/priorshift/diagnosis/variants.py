"""The estimate with one thing changed: another bandwidth, a linear score, without a column, without single rows.

Other bandwidths, and the estimate without a column, are those of R by projection in a kernel's space, on a random
subsample where there are many rows; that is cheaper than new scores.

Rows are left out by observation: those of P with what they share with U, those in U alone, and those of T. The scores
stay, and everything after them is computed again: ranks among the remaining positives, and the test. Ranks need no
scores: a p-value is an increasing function of the score, ties included, so rows can be ranked by their p-values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier

from priorshift.arrays import Floats, Index, Mask
from priorshift.diagnosis.columns import Column
from priorshift.diagnosis.parts import DiagnosisInput
from priorshift.embedding.gram import SourceEmbedding, ratio, separation
from priorshift.embedding.samples import EmbeddedSample
from priorshift.formatting import format_fixed
from priorshift.inference import intervals
from priorshift.inference.confidence_curve import ConfidenceCurve, FiellerCurve, TabulatedCurve
from priorshift.kernels import Gaussian, bandwidth_from_gamma
from priorshift.problem import Source, Target
from priorshift.result_tables import to_plain
from priorshift.scores import mixture
from priorshift.scores.mixture import p_values
from priorshift.scores.ratio_test import RatioTest
from priorshift.scores.scored_source import ScoredSource
from priorshift.scores.witness import Witness

_CLEAR = 3.0  # standard errors, beyond which two estimates of one number differ by more than chance
_FACTORS = {0.25: "a quarter of", 0.5: "half of", 2.0: "twice", 4.0: "four times"}  # the default bandwidth
_REPEATS, _FOLDS = 2, 3  # of the linear score
_RIDGE, _TOLERANCE = 0.01, 1e-3  # of the linear score, the ridge per row
_LEFT_OUT_SHARE = 0.01  # of the observations of a sample, besides a single one
_LEAST_OBSERVATIONS = 2  # that must remain
_MOST_ROWS, _LEAST_ROWS = 1000, 300  # of a subsample: a projection takes a fortieth of a second
_MANY_COLUMNS = 20  # beyond which a subsample has fewer rows, so that it does not take longer
_DISTANCE_ROWS = 500  # whose shift is measured
_NO_SEPARATION = 1e-12  # relative to the kernel: what rounding leaves of a separation that is zero


@dataclass(frozen=True)
class Variant:
    """An estimate with one thing changed."""

    name: str  # what was changed
    ratio: float  # R̂; NaN where there is no estimate, then with the interval [0, 1]
    value: float  # π̂′
    low: float
    high: float
    moved: float = 0.0  # π̂′ minus that of the first variant of its kind
    error: float = float("nan")  # standard error of the difference; NaN where it is not due to chance

    @property
    def is_clear(self) -> bool:
        """Whether the difference is more than chance: under label shift both estimate the same."""
        return bool(abs(self.moved) > _CLEAR * self.error)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON."""
        return to_plain(vars(self))

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a table: name, π̂′, its interval, and the difference."""
        if np.isnan(self.value):
            return self.name, "none", "", ""
        moved = format_fixed(self.moved, 3, "+") + (f" ± {self.error:.3f}" if np.isfinite(self.error) else "")
        return self.name, f"{self.value:.3f}", f"{self.low:.3f} to {self.high:.3f}", moved


def _variant(
    inputs: DiagnosisInput,
    name: str,
    ratio: float,
    curve: ConfidenceCurve,
    reference: Variant | None = None,
    influence: Floats | None = None,
) -> Variant:
    """Return a variant compared with `reference`; `influence` is the difference of what each observation does to R̂."""
    value, low, high = inputs.target_prior(ratio, curve)
    if reference is None:
        return Variant(name, ratio, value, low, high)
    error = float("nan")
    if influence is not None:
        error = (1 - inputs.fit.estimate.source_prior) * float(np.sqrt(influence @ influence))
    return Variant(name, ratio, value, low, high, value - reference.value, error)


def _no_estimate(name: str) -> Variant:
    nan = float("nan")
    return Variant(name, nan, nan, 0.0, 1.0, nan)


@dataclass(frozen=True, eq=False)
class Projection:
    """R̂ by projection in a kernel's space."""

    ratio: float
    curve: FiellerCurve
    influence: Floats  # of each observation on R̂
    length: float  # ‖μ_U − μ_P‖


@dataclass(frozen=True, eq=False)
class Subsample:
    """Rows of P, U and T, drawn at random where there are many."""

    samples: tuple[EmbeddedSample, EmbeddedSample, EmbeddedSample]  # with one numbering of observations
    features: int  # columns in use; those that one column was encoded by count as one
    observations: int  # of the source, whose numbers are below this

    @classmethod
    def draw(cls, inputs: DiagnosisInput) -> Subsample:
        """Draw the rows; raise InputError where those of the target are one observation."""
        source = inputs.source
        width = max(int(np.count_nonzero(source.scaling.factor)), 1)
        most = max(int(_MOST_ROWS * min(1.0, (_MANY_COLUMNS / width) ** 0.5)), _LEAST_ROWS)
        whole = SourceEmbedding.from_source(source, Gaussian(1.0))  # only its samples are used

        def draw(sample: EmbeddedSample) -> EmbeddedSample:
            if len(sample) <= most:
                return sample
            drawn = sample.take(np.sort(inputs.rng.choice(len(sample), most, replace=False)))
            return EmbeddedSample(drawn.rows, drawn.mass / drawn.mass.sum(), drawn.observation)

        P, U, T = (draw(sample) for sample in (whole.positive, whole.unlabeled, whole.sample(inputs.fit.target)))
        return cls((P, U, T), source.scaling.features, whole.observations)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Rows of P, U and T."""
        P, U, T = self.samples
        return len(P), len(U), len(T)

    @cached_property
    def whole(self) -> Projection | None:
        """R with the default bandwidth and all columns."""
        return self.project()

    def project(self, factor: float = 1.0, without: Index | None = None) -> Projection | None:
        """Estimate R with `factor` times the default bandwidth or without columns; None where P is like U."""
        P, U, T = self.samples if without is None else (_without_columns(s, without) for s in self.samples)
        kernel = self._kernel(factor, self.features if without is None else self.features - 1)
        embeddings = SourceEmbedding(kernel, P, U, 0, self.observations, "float64").embed(T)
        D = float(separation(embeddings.gram))
        if not _NO_SEPARATION * float(np.nanmax(np.abs(embeddings.gram))) < D:
            return None
        influence = np.zeros(max(int(s.observation.max()) for s in self.samples) + 1)
        for sample, moved in zip(self.samples, intervals.ratio_influence(embeddings), strict=True):
            influence += np.bincount(sample.observation, moved, len(influence))
        return Projection(ratio(embeddings.gram), intervals.curve(embeddings), influence, float(np.sqrt(D)))

    def moved_distance(self, shift: Floats) -> float:
        """Return ‖μ_T′ − μ_T‖ without the rows' own noise, where T′ is T with `shift` added to each scaled row."""
        T = self.samples[2]
        T = T.take(np.arange(0, len(T), 1 + len(T) // _DISTANCE_ROWS))
        rows, kernel = T.rows[:], self._kernel(1.0, self.features)
        there = kernel(rows, rows + shift)
        here = kernel(rows, rows)
        pairs = T.mass[:, None] * T.mass * (T.observation[:, None] != T.observation)
        total = float(pairs.sum())
        if not total > 0:
            return float("nan")
        return float(np.sqrt(max(2 * float((pairs * (here - there)).sum()) / total, 0.0)))

    @staticmethod
    def _kernel(factor: float, features: int) -> Gaussian:
        return Gaussian(factor * bandwidth_from_gamma(1 / max(features, 1)))


def _without_columns(sample: EmbeddedSample, columns: Index) -> EmbeddedSample:
    factor = sample.rows.factor.copy()
    factor[columns] = 0.0
    return EmbeddedSample(replace(sample.rows, factor=factor), sample.mass, sample.observation)


def bandwidth_variants(inputs: DiagnosisInput, subsample: Subsample) -> tuple[Variant, ...]:
    """Estimate R by projection with the default bandwidth, which comes first, and with others."""
    others = ((f"{words} the default bandwidth", subsample.project(factor)) for factor, words in _FACTORS.items())
    return _projection_variants(inputs, "the default bandwidth", subsample.whole, others)


def column_variants(inputs: DiagnosisInput, subsample: Subsample, columns: Sequence[Column]) -> tuple[Variant, ...]:
    """Estimate R by projection with all columns, which comes first, and without each; nothing for a single column."""
    if subsample.whole is None or subsample.features < 2:
        return ()
    others = ((f"without {column.name}", subsample.project(without=column.numbers)) for column in columns)
    return _projection_variants(inputs, "all columns", subsample.whole, others)


def _projection_variants(
    inputs: DiagnosisInput, name: str, whole: Projection | None, others: Iterator[tuple[str, Projection | None]]
) -> tuple[Variant, ...]:
    if whole is None:
        return (_no_estimate(name),)
    variants = [_variant(inputs, name, whole.ratio, whole.curve)]
    for other_name, other in others:
        if other is None:
            variants.append(_no_estimate(other_name))
        else:
            influence = other.influence - whole.influence
            variants.append(_variant(inputs, other_name, other.ratio, other.curve, variants[0], influence))
    return tuple(variants)


def score_variants(inputs: DiagnosisInput) -> tuple[Variant, ...]:
    """Return the estimate itself, and with a linear score in place of the fitted one."""
    source, target, fit = inputs.source, inputs.fit.target, inputs.fit
    own = _variant(inputs, "its own score", inputs.ratio, fit.curve)
    if not np.isfinite(inputs.ratio):
        return (own,)
    total = float(len(source.labeled) if source.weights is None else source.weights.sum())
    model = RidgeClassifier(alpha=_RIDGE * total, solver="lsqr", tol=_TOLERANCE)
    scored = ScoredSource.fit(source, model, _REPEATS, _FOLDS, inputs.rng)
    witness = Witness.from_scores(scored, source.without_rows(), *scored.mixture)
    linear_p_values = scored.target_p_values(target)
    test = witness.test(linear_p_values, target)
    name = "a linear score"
    if not np.isfinite(test.ratio):
        return own, _no_estimate(name)
    linear = witness.influence(test.ratio, linear_p_values, target)
    fitted = fit.witness.influence(inputs.ratio, fit.p_values, target)
    by_observation = np.bincount(target.observation, linear.target - fitted.target)
    influence = np.concatenate([linear.source - fitted.source, by_observation])
    return own, _variant(inputs, name, test.ratio, _curve(test), own, influence)


def _curve(test: RatioTest) -> TabulatedCurve:
    return TabulatedCurve.from_tests(test.ratios, test.statistic, test.freedom)


def row_variants(inputs: DiagnosisInput) -> tuple[Variant, ...]:
    """Return the estimate itself, and without the observation, and the 1%, that move R̂ most, in P, U and T."""
    fit, target, source = inputs.fit, inputs.fit.target, inputs.fit.witness.source
    whole = _variant(inputs, "all rows", inputs.ratio, fit.curve)
    if not np.isfinite(inputs.ratio):
        return (whole,)
    moved = fit.witness.influence(inputs.ratio, fit.p_values, target)
    labeled = np.zeros(len(moved.source), dtype=bool)
    labeled[source.observation[source.positive]] = True
    own_target = np.bincount(target.observation, target.of_source < 0) > 0
    samples = (
        ("positive", np.flatnonzero(labeled), moved.source),
        ("unlabelled", np.flatnonzero(~labeled), moved.source),
        ("target", np.flatnonzero(own_target), np.bincount(target.observation, moved.target)),
    )
    none = np.empty(0, dtype=np.intp)
    variants = [whole]
    for sample, numbers, influence in samples:
        order = numbers[np.argsort(-np.abs(influence[numbers]), kind="stable")]
        for count in sorted({1, ceil(_LEFT_OUT_SHARE * len(order))}):
            if len(order) - count < _LEAST_OBSERVATIONS:
                continue
            left_out = (none, order[:count]) if sample == "target" else (order[:count], none)
            test = retest_without(inputs, *left_out)
            name = f"without the {count} most influential {sample} rows" if count > 1 else f"without one {sample} row"
            if test is None or not np.isfinite(test.ratio):
                variants.append(_no_estimate(name))
            else:
                variants.append(_variant(inputs, name, test.ratio, _curve(test), whole))
    return tuple(variants)


def retest_without(inputs: DiagnosisInput, of_source: Index, of_target: Index) -> RatioTest | None:
    """Test every ratio without some observations, with the scores as they are; None where too few rows remain."""
    witness, target = inputs.fit.witness, inputs.fit.target
    source, scored = witness.source, witness.scored
    stay = ~np.isin(source.observation, of_source)
    stay_T = ~(np.isin(target.observation, of_target) | np.isin(target.of_source, of_source))
    in_P, in_U = stay[source.positive], stay[source.population]
    remaining = (
        source.observation[source.positive[in_P]],
        source.observation[source.population[in_U]],
        target.observation[stay_T],
    )
    if any(len(np.unique(observations)) < _LEAST_OBSERVATIONS for observations in remaining):
        return None
    less, less_T = _remaining_source(source, stay), _remaining_target(target, stay_T, source, stay)
    own = np.stack([scored.ranks(r.positive, r.positive) for r in scored.repetitions])
    (m, n), mass = less.effective_sizes, None if scored.positive_mass is None else less.positive_mass
    p_U = np.stack([p_values(p[in_P], u[in_U], mass, m) for p, u in zip(own, scored.p_values, strict=True)])
    p_T = np.stack([p_values(p[in_P], v[stay_T], mass, m) for p, v in zip(own, inputs.fit.p_values, strict=True)])
    repetitions = tuple(
        replace(r, positive=r.positive[in_P], population=r.population[in_U]) for r in scored.repetitions
    )
    counts = np.stack([mixture.histogram(v, n * less.population_mass) for v in p_U])
    rescored = ScoredSource(scored.prepare, repetitions, p_U, counts, less.sizes, scored.seed, mass, m, scored.spread)
    return Witness.from_scores(rescored, less, *scored.mixture).test(p_T, less_T)


def _remaining_source(source: Source, stay: Mask) -> Source:
    """Return the source without some observations; its table is left as it is, since it is not used."""
    number = np.cumsum(stay) - 1
    in_P, in_U = stay[source.positive], stay[source.population]
    shared = source.shared[in_P[source.shared[:, 0]] & in_U[source.shared[:, 1]]]
    at_P, at_U = np.cumsum(in_P) - 1, np.cumsum(in_U) - 1
    return replace(
        source,
        labeled=source.labeled[stay],
        positive=number[source.positive[in_P]],
        population=number[source.population[in_U]],
        shared=np.stack([at_P[shared[:, 0]], at_U[shared[:, 1]]], axis=1),
        weights=None if source.weights is None else source.weights[stay],
        groups=None if source.groups is None else source.groups[stay],
        observation=np.unique(source.observation[stay], return_inverse=True)[1].reshape(-1),
        copies=source.copies[stay],
    )


def _remaining_target(target: Target, stay: Mask, source: Source, stay_source: Mask) -> Target:
    """Return the target without some observations, with the numbers of the remaining source."""
    number = np.full(int(source.observation.max()) + 2, -1)  # the last is that of rows that are not in the source
    remaining = np.unique(source.observation[stay_source])
    number[remaining] = np.arange(len(remaining))
    return replace(
        target,
        rows=replace(target.rows, index=np.flatnonzero(stay)),
        weights=None if target.weights is None else target.weights[stay],
        observation=np.unique(target.observation[stay], return_inverse=True)[1].reshape(-1),
        of_source=number[target.of_source[stay]],
        copies=target.copies[stay],
        groups=None if target.groups is None else target.groups[stay],
        audit=None,
    )
