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
from priorshift.inference.confidence_curve import ConfidenceCurve, FiellerCurve
from priorshift.kernels import Gaussian, bandwidth_from_gamma
from priorshift.scores import mixture
from priorshift.scores.mixture import p_values
from priorshift.scores.ratio_test import RatioTest
from priorshift.scores.scored_source import ScoredSource
from priorshift.scores.witness import Witness

_CLEAR = 3.0  # standard errors beyond which two estimates of the same quantity differ by more than chance
_FACTORS = {0.25: "a quarter of", 0.5: "half of", 2.0: "twice", 4.0: "four times"}  # the default bandwidth
_REPEATS, _FOLDS = 2, 3  # of the cross-fitting of the linear score
_RIDGE, _TOLERANCE = 0.01, 1e-3  # of the linear score: ridge penalty per row, and tolerance of the solver
_LEFT_OUT_SHARE = 0.01  # share of the observations of a sample that is left out, besides a single one
_LEAST_OBSERVATIONS = 2  # that must remain in each sample
MOST_ROWS, _LEAST_ROWS = 1000, 300  # bounds on the rows of a subsample: a projection takes a fortieth of a second
_MANY_COLUMNS = 20  # beyond which a subsample has fewer rows, so that it does not take longer
_DISTANCE_ROWS = 500  # target rows from which a kernel distance is computed
_NO_SEPARATION = 1e-12  # relative to the Gram matrix: a separation below this is rounding error
_NAN = float("nan")


@dataclass(frozen=True)
class Variant:
    """An estimate of the target prior with one thing changed."""

    name: str  # what was changed
    ratio: float = _NAN  # R̂; NaN where there is no estimate, then with the interval [0, 1]
    value: float = _NAN  # π̂′
    low: float = 0.0
    high: float = 1.0
    moved: float = _NAN  # π̂′ minus that of the reference, the first variant of its kind
    error: float = _NAN  # standard error of `moved`; NaN where the difference is not due to chance

    @property
    def is_clear(self) -> bool:
        """Whether the difference is more than chance: under label shift, variant and reference estimate the same π′."""
        # a comparison with a NaN error is False
        return bool(abs(self.moved) > _CLEAR * self.error)


def _variant(
    inputs: DiagnosisInput,
    name: str,
    ratio: float,
    curve: ConfidenceCurve,
    reference: Variant | None = None,
    influence: Floats | None = None,
) -> Variant:
    """Return the variant with the estimate `ratio` of R and its curve, compared with `reference` if there is one.

    `influence` is the influence of each observation on the difference of the two R̂, whose squares add up to the
    variance of the difference; None where the difference is not due to chance.
    """
    if reference is not None and not np.isfinite(ratio):
        return Variant(name)
    value, low, high = inputs.target_prior(ratio, curve)
    difference = 0.0 if reference is None else value - reference.value
    negatives = inputs.purity - inputs.fit.estimate.source_prior  # π̂′ = q − (q−π)R̂
    error = _NAN if influence is None else negatives * float(np.sqrt(influence @ influence))
    return Variant(name, ratio, value, low, high, difference, error)


@dataclass(frozen=True, eq=False)
class Projection:
    """An estimate R̂ of the ratio of negatives by projection of μ_T − μ_P on μ_U − μ_P in a kernel's space."""

    ratio: float  # R̂
    curve: FiellerCurve  # confidence distribution of R
    influence: Floats  # of each observation on R̂, by its number
    length: float  # ‖μ_U − μ_P‖


@dataclass(frozen=True, eq=False)
class Subsample:
    """Rows of P, U and T, drawn at random from large samples, from which R is estimated again with changes."""

    samples: Sequence[EmbeddedSample]  # P, U and T, with one numbering of observations
    features: int  # features in use; one feature may be encoded as several columns
    observations: int  # observations of the source have numbers below this

    @classmethod
    def draw(cls, inputs: DiagnosisInput) -> Subsample:
        """Draw the rows; raise InputError if the target is a single observation, which has no variance."""
        source = inputs.source
        columns = max(int(np.count_nonzero(source.scaling.factor)), 1)  # unused columns have factor 0
        max_rows = max(int(MOST_ROWS * min(1.0, (_MANY_COLUMNS / columns) ** 0.5)), _LEAST_ROWS)
        whole = SourceEmbedding.from_source(source, Gaussian(1.0))  # only its samples are used
        samples = []
        for sample in (whole.positive, whole.unlabeled, whole.sample(inputs.fit.target)):
            if len(sample) <= max_rows:
                samples.append(sample)
                continue
            drawn = sample.take(np.sort(inputs.rng.choice(len(sample), max_rows, replace=False)))
            samples.append(replace(drawn, mass=drawn.mass / drawn.mass.sum()))  # masses sum to 1
        return cls(samples, source.scaling.features, whole.observations)

    @cached_property
    def whole(self) -> Projection | None:
        """The estimate of R with the default bandwidth and all columns; None where P cannot be separated from U."""
        return self.project()

    def project(self, bandwidth_factor: float = 1.0, left_out: Index | None = None) -> Projection | None:
        """Estimate R again with another bandwidth or without one feature; None where P cannot be separated from U.

        `bandwidth_factor` multiplies the default bandwidth; `left_out` are the encoded columns of the feature.
        """
        (P, U, T), features = self.samples, self.features
        if left_out is not None:
            column_scale, features = P.rows.factor.copy(), features - 1  # the columns are one feature
            column_scale[left_out] = 0.0  # constant columns do not change the kernel
            P, U, T = (replace(sample, rows=replace(sample.rows, factor=column_scale)) for sample in self.samples)
        kernel = Gaussian(bandwidth_factor * bandwidth_from_gamma(1 / max(features, 1)))
        source = SourceEmbedding(kernel, P, U, shared=0, observations=self.observations, precision="float64")
        embeddings = source.embed(T)
        D = float(separation(embeddings.gram))  # ‖μ_U − μ_P‖²
        if not _NO_SEPARATION * float(np.nanmax(np.abs(embeddings.gram))) < D:  # also where D is NaN
            return None
        # the influence of an observation is the sum over its rows, in all samples
        influence = np.zeros(max(int(s.observation.max()) for s in self.samples) + 1)
        for sample, row_influence in zip(self.samples, intervals.ratio_influence(embeddings), strict=True):
            influence += np.bincount(sample.observation, row_influence, len(influence))
        return Projection(ratio(embeddings.gram), intervals.curve(embeddings), influence, float(np.sqrt(D)))

    def moved_distance(self, shift: Floats) -> float:
        """Return the kernel distance ‖μ_T′ − μ_T‖, where T′ is T with `shift` added to each scaled row.

        Since T′ has the same pairs of rows at the same distances, it is √(2·E[k(x, y) − k(x, y + shift)]); the mean is
        over pairs of different observations, so that it has no bias. NaN where there are no such pairs.
        """
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
    """Return estimates by projection with other bandwidths, and without each of `columns`.

    Both start with the reference: the default bandwidth, and all columns. There are none where P cannot be separated
    from U, and no columns are left out if there is only one.
    """
    whole, default = subsample.whole, "the default bandwidth"
    if whole is None:
        return (Variant(default),), ()
    kinds = [(default, [(f"{words} {default}", subsample.project(factor)) for factor, words in _FACTORS.items()])]
    if subsample.features > 1:
        without = [(f"without {column.name}", subsample.project(left_out=column.encoded)) for column in columns]
        kinds.append(("all columns", without))
    variants: list[tuple[Variant, ...]] = []
    for reference_name, projections in kinds:
        reference = _variant(inputs, reference_name, whole.ratio, whole.curve)
        kind = [reference]
        for name, changed in projections:
            if changed is None:
                kind.append(Variant(name))
            else:
                influence = changed.influence - whole.influence
                kind.append(_variant(inputs, name, changed.ratio, changed.curve, reference, influence))
        variants.append(tuple(kind))
    return variants[0], variants[1] if len(variants) > 1 else ()


def score_variants(inputs: DiagnosisInput) -> tuple[Variant, ...]:
    """Return the estimate itself and, where it exists, the estimate with a linear score in place of the fitted one."""
    source, target, fit = inputs.source, inputs.fit.target, inputs.fit
    reference = _variant(inputs, "its own score", inputs.ratio, fit.test.curve)
    if not np.isfinite(inputs.ratio):
        return (reference,)
    total_weight = float(len(source.labeled) if source.weights is None else source.weights.sum())
    model = RidgeClassifier(alpha=_RIDGE * total_weight, solver="lsqr", tol=_TOLERANCE)
    scored = ScoredSource.fit(source, model, _REPEATS, _FOLDS, inputs.rng)
    witness = Witness.from_scores(scored, source.without_rows(), *scored.mixture)
    linear_p_values = scored.target_p_values(target)
    least = inputs.fit.prior.least_ratio
    test, influence = witness.test(linear_p_values, target, least), None
    if np.isfinite(test.ratio):  # influence of each observation on the difference of the two R̂
        linear = witness.influence(test.ratio, linear_p_values, target, least)
        fitted = fit.witness.influence(inputs.ratio, fit.p_values, target, least)
        by_observation = np.bincount(target.observation, linear.target - fitted.target)
        influence = np.concatenate([linear.source - fitted.source, by_observation])
    return reference, _variant(inputs, "a linear score", test.ratio, test.curve, reference, influence)


def row_variants(inputs: DiagnosisInput) -> tuple[Variant, ...]:
    """Return the estimate itself, and those without the most influential observations of P, of U and of T.

    Of each sample a single observation is left out, and then 1% of them, as far as enough remain.
    """
    fit, target, source = inputs.fit, inputs.fit.target, inputs.fit.witness.source
    reference = _variant(inputs, "all rows", inputs.ratio, fit.test.curve)
    if not np.isfinite(inputs.ratio):
        return (reference,)
    influence_on_ratio = fit.witness.influence(inputs.ratio, fit.p_values, target)
    labeled = np.zeros(len(influence_on_ratio.source), dtype=bool)  # whether an observation has a row in P
    labeled[source.observation[source.positive]] = True
    # observations of the target that are not also observations of the source
    own_target = np.bincount(target.observation, target.source_observation < 0) > 0
    samples = (
        ("positive", np.flatnonzero(labeled), influence_on_ratio.source),
        ("unlabelled", np.flatnonzero(~labeled), influence_on_ratio.source),
        ("target", np.flatnonzero(own_target), np.bincount(target.observation, influence_on_ratio.target)),
    )
    nothing = np.empty(0, dtype=np.intp)
    variants = [reference]
    for sample, observations, influence in samples:
        order = observations[np.argsort(-np.abs(influence[observations]), kind="stable")]
        for count in sorted({1, ceil(_LEFT_OUT_SHARE * len(order))}):
            if len(order) - count < _LEAST_OBSERVATIONS:
                continue
            left_out = (nothing, order[:count]) if sample == "target" else (order[:count], nothing)
            test = retest_without(inputs, *left_out)
            name = f"without the {count} most influential {sample} rows" if count > 1 else f"without one {sample} row"
            if test is None:
                variants.append(Variant(name))
            else:
                variants.append(_variant(inputs, name, test.ratio, test.curve, reference))
    return tuple(variants)


def retest_without(inputs: DiagnosisInput, left_out: Index, target_left_out: Index) -> RatioTest | None:
    """Test every ratio again without some observations; None where too few remain.

    `left_out` are observations of the source, also where they are in the target; `target_left_out` are observations of
    the target. Models are not fitted again: only ranks, counts and the test are computed anew.
    """
    witness, target = inputs.fit.witness, inputs.fit.target
    source, scored = witness.source, witness.scored
    # rows that remain, of the source and of T, and of P and U by their position in these samples
    stay = ~np.isin(source.observation, left_out)
    stay_T = ~(np.isin(target.observation, target_left_out) | np.isin(target.source_observation, left_out))
    stay_P, stay_U = stay[source.positive], stay[source.population]
    rows_P, rows_U = source.positive[stay_P], source.population[stay_U]
    observations = source.observation[rows_P], source.observation[rows_U], target.observation[stay_T]
    if any(len(np.unique(numbers)) < _LEAST_OBSERVATIONS for numbers in observations):
        return None
    # The remaining source, whose rows and observations are numbered anew; its table is not used, so it stays.
    new_row, new_in_P, new_in_U = np.cumsum(stay) - 1, np.cumsum(stay_P) - 1, np.cumsum(stay_U) - 1
    shared = source.shared[stay_P[source.shared[:, 0]] & stay_U[source.shared[:, 1]]]  # pairs of positions in P and U
    old_numbers, new_observation = np.unique(source.observation[stay], return_inverse=True)
    remaining_source = replace(
        source,
        labeled=source.labeled[stay],
        positive=new_row[rows_P],
        population=new_row[rows_U],
        shared=np.stack([new_in_P[shared[:, 0]], new_in_U[shared[:, 1]]], axis=1),
        weights=None if source.weights is None else source.weights[stay],
        groups=None if source.groups is None else source.groups[stay],
        observation=new_observation,
        copies=source.copies[stay],
    )
    # `source_observation` is -1 for rows that are not in the source: that index takes the last entry, which is -1
    new_number = np.full(int(source.observation.max()) + 2, -1)
    new_number[old_numbers] = np.arange(len(old_numbers))
    remaining_target = replace(
        target,
        rows=replace(target.rows, index=np.flatnonzero(stay_T)),
        weights=None if target.weights is None else target.weights[stay_T],
        groups=None if target.groups is None else target.groups[stay_T],
        observation=np.unique(target.observation[stay_T], return_inverse=True)[1],
        source_observation=new_number[target.source_observation[stay_T]],
        copies=target.copies[stay_T],
        audit=None,
    )
    # Ranks among the remaining positives, by the old p-values, which order rows as their scores do.
    m, n = remaining_source.P.size, remaining_source.U.size
    mass = None if scored.positive_mass is None else remaining_source.P.mass
    new_U, new_T, repetitions = [], [], []
    for k, repetition in enumerate(scored.repetitions):
        old_P = scored.ranks(repetition.positive, repetition.positive)[stay_P]
        new_U.append(p_values(old_P, scored.p_values[k][stay_U], mass, m))
        new_T.append(p_values(old_P, inputs.fit.p_values[k][stay_T], mass, m))
        scores_P, scores_U = repetition.positive[stay_P], repetition.population[stay_U]
        repetitions.append(replace(repetition, positive=scores_P, population=scores_U))
    rescored = replace(
        scored,
        repetitions=tuple(repetitions),
        p_values=np.stack(new_U),
        counts=np.stack([mixture.histogram(p, n * remaining_source.U.mass) for p in new_U]),
        sizes=remaining_source.sizes,
        positive_mass=mass,
        positive_size=m,
    )
    remaining = Witness.from_scores(rescored, remaining_source, *scored.mixture)
    return remaining.test(np.stack(new_T), remaining_target, inputs.fit.prior.least_ratio)
