"""The estimate with one thing changed: another bandwidth, a linear score, without a column, without single rows.

Other bandwidths, and the estimate without a column, are those of R by projection in a kernel's space, on a random
subsample where there are many rows; that is cheaper than new scores.

Rows are left out by observation: those of P with what they share with U, those in U alone, and those of T. The scores
stay, and everything after them is computed again: ranks among the remaining positives, and the test. Ranks need no
scores: a p-value is an increasing function of the score, ties included, so rows can be ranked by their p-values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np
from sklearn.linear_model import RidgeClassifier

from priorshift.arrays import Floats, Index
from priorshift.diagnosis.columns import Column
from priorshift.diagnosis.identification import DiagnosisInput
from priorshift.embedding.gram import SourceEmbedding, ratio, separation
from priorshift.embedding.samples import EmbeddedSample
from priorshift.inference import intervals
from priorshift.inference.confidence_curve import ConfidenceCurve, FiellerCurve, TabulatedCurve
from priorshift.kernels import Gaussian, bandwidth_from_gamma
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


_NAN = float("nan")


@dataclass(frozen=True)
class Variant:
    """An estimate with one thing changed."""

    name: str  # what was changed
    ratio: float  # R̂; NaN where there is no estimate, then with the interval [0, 1]
    value: float  # π̂′
    low: float
    high: float
    moved: float = 0.0  # π̂′ minus that of the first variant of its kind
    error: float = _NAN  # standard error of the difference; NaN where it is not due to chance

    @property
    def is_clear(self) -> bool:
        """Whether the difference is more than chance: under label shift both estimate the same."""
        return bool(abs(self.moved) > _CLEAR * self.error)


def _variant(
    inputs: DiagnosisInput,
    name: str,
    ratio: float,
    curve: ConfidenceCurve | None,
    reference: Variant | None = None,
    influence: Floats | None = None,
) -> Variant:
    """Return a variant compared with `reference`; `influence` is the difference of their influences on R̂."""
    if curve is None or not (reference is None or np.isfinite(ratio)):
        return Variant(name, _NAN, _NAN, 0.0, 1.0, _NAN)
    value, low, high = inputs.target_prior(ratio, curve)
    moved = 0.0 if reference is None else value - reference.value
    negatives = 1 - inputs.fit.estimate.source_prior
    error = _NAN if influence is None else negatives * float(np.sqrt(influence @ influence))
    return Variant(name, ratio, value, low, high, moved, error)


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

    samples: Sequence[EmbeddedSample]  # P, U and T, with one numbering of observations
    features: int  # columns in use; columns that one column was encoded by count as one
    observations: int  # of the source, whose numbers are below this

    @classmethod
    def draw(cls, inputs: DiagnosisInput) -> Subsample:
        """Draw the rows; raise InputError where those of the target are one observation."""
        source = inputs.source
        width = max(int(np.count_nonzero(source.scaling.factor)), 1)
        most = max(int(_MOST_ROWS * min(1.0, (_MANY_COLUMNS / width) ** 0.5)), _LEAST_ROWS)
        whole = SourceEmbedding.from_source(source, Gaussian(1.0))  # only its samples are used

        samples = []
        for sample in (whole.positive, whole.unlabeled, whole.sample(inputs.fit.target)):
            if len(sample) <= most:
                samples.append(sample)
                continue
            drawn = sample.take(np.sort(inputs.rng.choice(len(sample), most, replace=False)))
            samples.append(replace(drawn, mass=drawn.mass / drawn.mass.sum()))
        return cls(samples, source.scaling.features, whole.observations)

    @cached_property
    def whole(self) -> Projection | None:
        """R with the default bandwidth and all columns."""
        return self.project()

    def project(self, factor: float = 1.0, without: Index | None = None) -> Projection | None:
        """Estimate R with `factor` times the default bandwidth or without columns; None where P is like U."""
        (P, U, T), features = self.samples, self.features
        if without is not None:
            scale, features = P.rows.factor.copy(), features - 1
            scale[without] = 0.0
            P, U, T = (replace(sample, rows=replace(sample.rows, factor=scale)) for sample in self.samples)
        kernel = Gaussian(factor * bandwidth_from_gamma(1 / max(features, 1)))
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
        rows, kernel = T.rows[:], Gaussian(bandwidth_from_gamma(1 / max(self.features, 1)))
        change = kernel(rows, rows) - kernel(rows, rows + shift)
        pairs = T.mass[:, None] * T.mass * (T.observation[:, None] != T.observation)
        total = float(pairs.sum())
        if not total > 0:
            return _NAN
        return float(np.sqrt(max(2 * float((pairs * change).sum()) / total, 0.0)))


def projection_variants(
    inputs: DiagnosisInput, subsample: Subsample, columns: Sequence[Column]
) -> tuple[tuple[Variant, ...], tuple[Variant, ...]]:
    """Estimate R by projection with the default bandwidth and others, and with all columns and without each."""
    whole = subsample.whole
    if whole is None:
        return (_variant(inputs, "the default bandwidth", _NAN, None),), ()
    bandwidths = {f"{words} the default bandwidth": subsample.project(factor) for factor, words in _FACTORS.items()}
    without = [
        (f"without {column.name}", subsample.project(without=column.numbers))
        for column in (columns if subsample.features > 1 else ())
    ]
    kinds = []
    for name, others in (("the default bandwidth", [*bandwidths.items()]), ("all columns", without)):
        variants = [_variant(inputs, name, whole.ratio, whole.curve)]
        for other_name, other in others:
            if other is None:
                variants.append(_variant(inputs, other_name, _NAN, None))
            else:
                influence = other.influence - whole.influence
                variants.append(_variant(inputs, other_name, other.ratio, other.curve, variants[0], influence))
        kinds.append(tuple(variants))
    return kinds[0], kinds[1] if subsample.features > 1 else ()


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
    test, influence = witness.test(linear_p_values, target), None
    if np.isfinite(test.ratio):
        linear = witness.influence(test.ratio, linear_p_values, target)
        fitted = fit.witness.influence(inputs.ratio, fit.p_values, target)
        by_observation = np.bincount(target.observation, linear.target - fitted.target)
        influence = np.concatenate([linear.source - fitted.source, by_observation])
    curve = TabulatedCurve.from_tests(test.ratios, test.statistic, test.freedom)
    return own, _variant(inputs, "a linear score", test.ratio, curve, own, influence)


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
            if test is None:
                variants.append(_variant(inputs, name, _NAN, None))
                continue
            curve = TabulatedCurve.from_tests(test.ratios, test.statistic, test.freedom)
            variants.append(_variant(inputs, name, test.ratio, curve, whole))
    return tuple(variants)


def retest_without(inputs: DiagnosisInput, of_source: Index, of_target: Index) -> RatioTest | None:
    """Test every ratio without some observations, with the scores as they are; None where too few rows remain."""
    witness, target = inputs.fit.witness, inputs.fit.target
    source, scored = witness.source, witness.scored
    stay = ~np.isin(source.observation, of_source)
    stay_T = ~(np.isin(target.observation, of_target) | np.isin(target.of_source, of_source))
    in_P, in_U = stay[source.positive], stay[source.population]
    samples = source.positive[in_P], source.population[in_U]
    remaining = *(source.observation[rows] for rows in samples), target.observation[stay_T]
    if any(len(np.unique(observations)) < _LEAST_OBSERVATIONS for observations in remaining):
        return None
    # the source that remains; its table stays as it is, since it is not used
    number, at_P, at_U = (np.cumsum(rows) - 1 for rows in (stay, in_P, in_U))
    shared = source.shared[in_P[source.shared[:, 0]] & in_U[source.shared[:, 1]]]
    left, renumbered = np.unique(source.observation[stay], return_inverse=True)
    less = replace(
        source,
        labeled=source.labeled[stay],
        positive=number[samples[0]],
        population=number[samples[1]],
        shared=np.stack([at_P[shared[:, 0]], at_U[shared[:, 1]]], axis=1),
        weights=None if source.weights is None else source.weights[stay],
        groups=None if source.groups is None else source.groups[stay],
        observation=renumbered.reshape(-1),
        copies=source.copies[stay],
    )
    new_number = np.full(int(source.observation.max()) + 2, -1)  # the last is that of rows that are not in the source
    new_number[left] = np.arange(len(left))
    less_T = replace(
        target,
        rows=replace(target.rows, index=np.flatnonzero(stay_T)),
        weights=None if target.weights is None else target.weights[stay_T],
        observation=np.unique(target.observation[stay_T], return_inverse=True)[1].reshape(-1),
        of_source=new_number[target.of_source[stay_T]],
        copies=target.copies[stay_T],
        groups=None if target.groups is None else target.groups[stay_T],
        audit=None,
    )
    own = np.stack([scored.ranks(r.positive, r.positive) for r in scored.repetitions])
    (m, n), mass = (less.P.size, less.U.size), None if scored.positive_mass is None else less.P.mass
    p_U = np.stack([p_values(p[in_P], u[in_U], mass, m) for p, u in zip(own, scored.p_values, strict=True)])
    p_T = np.stack([p_values(p[in_P], v[stay_T], mass, m) for p, v in zip(own, inputs.fit.p_values, strict=True)])
    old = scored.repetitions
    repetitions = tuple(replace(r, positive=r.positive[in_P], population=r.population[in_U]) for r in old)
    counts = np.stack([mixture.histogram(v, n * less.U.mass) for v in p_U])
    rescored = ScoredSource(scored.prepare, repetitions, p_U, counts, less.sizes, scored.seed, mass, m, scored.spread)
    return Witness.from_scores(rescored, less, *scored.mixture).test(p_T, less_T)
