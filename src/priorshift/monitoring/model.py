"""The model of a monitor: everything that is fitted to the source once and never changes.

A row is reduced to its score s, an estimate of (f_P − f_N)/f_U: the derivative of its log-likelihood in the
share of positives, at the source population. s takes one of about a thousand values, so that the distributions of s in
P and in U are counts, and means and variances of any function of s follow from them. Other features of a row, its
columns or random projections of them, show changes that a new share of positives does not explain.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.errors import InconsistentInputWarning, InputError
from priorshift.inference.prior_knowledge import (
    PosteriorPrior,
    PriorKnowledge,
    read_prior,
)
from priorshift.io.files import Fields
from priorshift.io.tables import Table
from priorshift.monitoring.ranks import level_edges, to_levels
from priorshift.monitoring.reference import FEATURE_LEVELS, UNIT_LEVELS, Reference, Units
from priorshift.monitoring.stored_prior import prior_from_contents, prior_to_contents
from priorshift.scores import mixture, ratio_test
from priorshift.scores.counts import CountWitness, ScoreCounts, SourceCounts
from priorshift.scores.scored_source import largest_prior_by_counts
from priorshift.sketch.container import Saveable
from priorshift.sketch.histogram import Histogram
from priorshift.sketch.score_model import ScoreModel
from priorshift.source_prior.mixture_prior import MixturePrior
from priorshift.warning_records import warn

LEVELS = 512  # of s: this many quantiles of P, and as many of U
_FEATURES = 16  # columns, or combinations of more columns, besides s
_NAMED = 3  # columns of a combination that are named if there are more
_SCORES = "the scores"  # name of the first feature
_LARGEST = 1e15  # number in a stored model
_BOUND_ERROR = 0.01  # probability that the upper bound of π is too small
_SMALLEST_SHARE = 1e-3  # 1 − π that the score is divided by, at least


@dataclass(frozen=True, eq=False)
class RowScores:
    """Rows of a sample as a monitor sees them."""

    bins: NDArray[Any]  # of the p-values, shape (repeats, rows)
    levels: NDArray[np.int64]  # of s, shape (rows,)
    score: Floats  # s of each row
    features: Floats  # shape (rows, features); s is the first


@dataclass(frozen=True, eq=False)
class MonitorModel(Saveable):
    """Scores and features of rows, and the distribution of the scores in the source."""

    KIND: ClassVar[str] = "monitor model"

    scorer: ScoreModel
    positive: ScoreCounts
    unlabeled: ScoreCounts
    scenario: str
    prior: PriorKnowledge  # what is known of π
    prior_by: str  # where that comes from: "given", or the name of an estimator
    edges: Floats  # between the levels of s
    values: Floats  # s at each level, increasing
    positive_levels: Floats  # rows of P at each level
    population_levels: Floats  # rows of the population at each level
    design_effects: tuple[float, float]  # of groups on means of s in P and in the population
    projection: Floats  # of rows to features, shape (columns, features); the score is not among them
    slope: Floats  # of the features on s, which is subtracted, shape (features,)
    feature_names: tuple[str, ...]  # where a change is, in words: "the scores", then columns or several of them
    reference: Reference  # the population as units that batches are compared with

    @classmethod
    def fit(
        cls,
        positive: Table,
        unlabeled: Table,
        source_prior: Any,
        *,
        scenario: str = "case-control",
        groups: tuple[NDArray[Any] | None, NDArray[Any] | None] = (None, None),
        random_state: Any = 0,
    ) -> MonitorModel:
        """Fit the model to the source; `groups` are those of the rows of P and of the unlabelled rows."""
        rng = np.random.default_rng(random_state)
        scorer = ScoreModel.fit(
            positive, unlabeled, use_km2=source_prior is None, random_state=int(rng.integers(2**31))
        )
        P, U = (Histogram.from_sample(table, scorer).counted for table in (positive, unlabeled))
        source = SourceCounts(P, U, scorer.ranked, scorer.folds, scorer.km2_prior, scenario)
        prior, origin = _know_prior(source_prior, source)
        rows = [scorer.reader(table, table.name) for table in (positive, unlabeled)]
        if scenario == "censoring":
            rows[1] = np.concatenate([rows[1], rows[0]])
            if groups[0] is not None and groups[1] is not None:
                groups = groups[0], np.concatenate([groups[1], groups[0]])
        score_table = _score_table(source.witness, prior.value)
        bins = [mixture.bins(scorer.p_values(part)) for part in rows]
        raw = [_row_scores(score_table, part) for part in bins]
        edges = np.unique(np.concatenate([level_edges(part, LEVELS) for part in raw]))
        levels = [to_levels(part, edges) for part in raw]
        values = _level_values(np.concatenate(raw), np.concatenate(levels), edges)
        projection, names = _project_columns(scorer.reader.feature_columns(unlabeled), rng)
        scores = [values[part] for part in levels]
        gap = float(scores[0].mean() - scores[1].mean())
        slope = (rows[0].mean(axis=0) - rows[1].mean(axis=0)) @ projection / (gap if abs(gap) > 1e-9 else np.inf)
        effects = [_design_effect(part, names_) for part, names_ in zip(scores, groups, strict=True)]
        counts = [np.bincount(part, minlength=len(values)).astype(float) for part in levels]
        units = [
            Units(score, _features(score, part, projection, slope), groups=names_)
            for score, part, names_ in zip(scores, rows, groups, strict=True)
        ]
        reference = Reference.from_units(units[1], units[0].features, is_grouped=groups[1] is not None)
        return cls(
            scorer, P, U, scenario, prior, origin, edges, values, counts[0], counts[1], (effects[0], effects[1]),
            projection, slope, (_SCORES, *names), reference,
        )  # fmt: skip

    @cached_property
    def source(self) -> SourceCounts:
        """Counts of the p-values of the source."""
        scorer = self.scorer
        return SourceCounts(self.positive, self.unlabeled, scorer.ranked, scorer.folds, scorer.km2_prior, self.scenario)

    @cached_property
    def witness(self) -> CountWitness:
        """Witness that tests ratios for a target."""
        return self.source.witness

    @cached_property
    def _score_table(self) -> Floats:
        """The score in each bin of the p-values, shape (repeats, bins)."""
        return _score_table(self.witness, self.prior.value)

    @cached_property
    def fingerprint(self) -> str:
        """Hash that two models share only if they are the same."""
        header, arrays = self.to_contents()
        digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
        return digest.hexdigest()

    def score_rows(self, table: Table) -> RowScores:
        """Score the rows of a table with the columns of the source."""
        try:
            rows = self.scorer.reader(table, table.name)
        except InputError as error:  # which may name a way out that a monitor does not have
            raise InputError(str(error).replace("; in memory (stream=False), it is filled in", "")) from None
        bins = mixture.bins(self.scorer.p_values(rows))
        levels = to_levels(_row_scores(self._score_table, bins), self.edges)
        score = self.values[levels]
        return RowScores(bins, levels, score, _features(score, rows, self.projection, self.slope))

    @cached_property
    def largest_prior(self) -> float:
        """Upper bound of π by the source alone, with 99% confidence, whatever the negatives look like."""
        positive, population = (  # the largest scores first; groups count as fewer rows
            levels[::-1] / max(effect, 1.0)
            for levels, effect in zip((self.positive_levels, self.population_levels), self.design_effects, strict=True)
        )
        return largest_prior_by_counts(positive, population, _BOUND_ERROR)

    def warn_if_contradicted(self) -> None:
        """Warn of a source prior that was given and is larger than the source allows."""
        low, high = self.prior.range
        if self.prior_by == "given" and low > self.largest_prior:
            warn(
                f"The source prior ({low:.3g}{'' if low == high else ' or more'}) contradicts the source, by which it "
                f"is at most {np.ceil(1000 * self.largest_prior) / 1000:.3g}. Either it is wrong, or the labelled "
                "positives are not typical, or the scenario is wrong, or source tables are swapped. Correct it, or "
                "leave it out to estimate it.",
                InconsistentInputWarning,
            )

    def mean_errors(self, function: Floats) -> tuple[float, float, float, float]:
        """Return E_P and E_U of a function of the levels of s, and the variances of these means."""
        inflation = 1 + self._noise_share
        results = []
        for counts, effect in zip((self.positive_levels, self.population_levels), self.design_effects, strict=True):
            total = counts.sum()
            mean = float(counts @ function / total)
            variance = float(counts @ (function - mean) ** 2) / max(total - 1, 1) / total
            results.append((mean, inflation * max(effect, 1.0) * variance))
        (mean_P, var_P), (mean_U, var_U) = results
        return mean_P, mean_U, var_P, var_U

    @cached_property
    def _noise_share(self) -> float:
        """Share of noise of the scores in the variance of s in the population."""
        U = self.witness.population
        moments = U.moments(self._score_table[:, None, :])
        return float(
            ratio_test.noise_share(moments.single_variance, moments.variance, len(U.counts), self.scorer.folds)[0]
        )

    def to_contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the header and the arrays of a file."""
        parts = {"scorer": self.scorer.to_contents()}
        for name, counted in (("positive", self.positive), ("unlabeled", self.unlabeled)):
            scorer = self.scorer
            histogram = Histogram(
                counted, scorer.fingerprint, scorer.ranked, scorer.folds, scorer.km2_prior, scorer.unlabeled_rows
            )
            parts[name] = histogram.to_contents()
        prior, prior_arrays = prior_to_contents(self.prior)
        header: dict[str, Any] = {name: part[0] for name, part in parts.items()}
        header |= {
            "scenario": self.scenario, "prior": prior, "prior_by": self.prior_by,
            "design_effects": list(self.design_effects), "feature_names": list(self.feature_names[1:]),
            "is_grouped": self.reference.is_grouped,
        }  # fmt: skip
        arrays = {f"{name}/{key}": array for name, part in parts.items() for key, array in part[1].items()}
        own = {"edges": self.edges, "values": self.values, "projection": self.projection, "slope": self.slope}
        counts = {"positive_levels": self.positive_levels, "population_levels": self.population_levels}
        of_reference = ("score_counts", "feature_counts", "positive_counts")
        counts |= {name: getattr(self.reference, name) for name in of_reference}
        own |= {name: getattr(self.reference, name) for name in ("score_edges", "feature_edges")}
        arrays |= own | {name: array.astype(np.int64) for name, array in counts.items()} | prior_arrays
        return header, arrays

    @classmethod
    def from_contents(cls, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build a model from the header and the arrays of a file, and check them."""
        keys = "scorer positive unlabeled scenario prior prior_by design_effects feature_names is_grouped"
        fields = Fields(header, keys, "the monitor model")
        parts = {
            name: {key.removeprefix(f"{name}/"): array for key, array in arrays.items() if key.startswith(f"{name}/")}
            for name in ("scorer", "positive", "unlabeled")
        }
        scorer = ScoreModel.from_contents(header["scorer"], parts["scorer"])
        samples = [Histogram.from_contents(header[name], parts[name]) for name in ("positive", "unlabeled")]
        own = {key: array for key, array in arrays.items() if "/" not in key}
        prior = prior_from_contents(header["prior"], own, fields)
        # features of one column, such as those of a category, have the same name
        names = (_SCORES, *fields.texts("feature_names", distinct=False))
        levels = len(own["values"]) if "values" in own and own["values"].ndim == 1 else 0
        shapes = {
            "edges": (levels - 1,), "values": (levels,), "positive_levels": (levels,), "population_levels": (levels,),
            "projection": (scorer.reader.n_features, len(names) - 1), "slope": (len(names) - 1,),
            "score_edges": (UNIT_LEVELS - 1,), "score_counts": (UNIT_LEVELS,),
            "feature_edges": (len(names), FEATURE_LEVELS - 1), "feature_counts": (len(names), FEATURE_LEVELS),
            "positive_counts": (len(names), FEATURE_LEVELS),
        }  # fmt: skip
        for name, shape in shapes.items():
            if levels < 2 or name not in own or own[name].shape != shape:
                raise fields.refused(f"its array {name!r} is missing or has the wrong shape")
        if fields.text("scenario") not in ("case-control", "censoring"):
            raise fields.refused("its scenario is unknown")
        if (np.diff(own["values"]) <= 0).any() or (np.diff(own["edges"]) <= 0).any():
            raise fields.refused("its levels are not in order")
        for name, array in own.items():
            is_count = name.endswith(("_levels", "_counts"))
            if not (np.abs(array) <= _LARGEST).all() or (is_count and (array < 0).any()):
                raise fields.refused(f"its array {name!r} has values that are not possible")
        counted = ("positive_levels", "population_levels", "score_counts", "feature_counts", "positive_counts")
        if not all((own[name].sum(axis=-1) > 0).all() for name in counted):
            raise fields.refused("it has no rows")
        effects = fields.numbers("design_effects", 2)
        counts = {name: own[name].astype(float) for name in ("positive_levels", "population_levels")}
        reference = Reference(
            fields.flag("is_grouped"), own["score_edges"], own["score_counts"].astype(float), own["feature_edges"],
            own["feature_counts"].astype(float), own["positive_counts"].astype(float),
        )  # fmt: skip
        return cls(
            scorer, samples[0].counted, samples[1].counted, fields.text("scenario"), prior, fields.text("prior_by"),
            own["edges"], own["values"], counts["positive_levels"], counts["population_levels"],
            (float(effects[0]), float(effects[1])), own["projection"], own["slope"], names, reference,
        )  # fmt: skip

    def __str__(self) -> str:
        """Describe the model in one line."""
        m, n = self.source.sizes
        return f"monitor model of {self.scorer.reader.width} columns, fitted to {m} positive and {n} unlabelled rows"


def _project_columns(columns: list[str], rng: np.random.Generator) -> tuple[Floats, list[str]]:
    """Return a projection of rows to at most 16 features, shape (encoded columns, features), and each one in words.

    `columns` are the names of the columns that rows are encoded from. If there are many, random combinations are taken
    of what one column is encoded as, such as a category, and of neighbouring columns.
    """
    if len(columns) <= _FEATURES:
        return np.eye(len(columns)), [f"column {name!r}" for name in columns]
    names = list(dict.fromkeys(columns))
    groups = np.array_split(np.array(names, dtype=object), min(_FEATURES, len(names)))
    group_of = {name: k for k, group in enumerate(groups) for name in group}
    group = np.array([group_of[name] for name in columns])
    weights = rng.choice([-1.0, 1.0], size=len(columns)) * rng.uniform(0.5, 1.5, size=len(columns))
    projection = np.zeros((len(columns), len(groups)))
    projection[np.arange(len(columns)), group] = weights / np.sqrt(np.bincount(group))[group]
    return projection, [_name_columns(list(group)) for group in groups]


def _name_columns(names: list[str]) -> str:
    """Return in words that a change is in one of these columns."""
    shown = ", ".join(map(repr, names[:_NAMED]))
    if len(names) > _NAMED:
        return f"one of the columns {shown} and {len(names) - _NAMED} more"
    return f"column {shown}" if len(names) == 1 else f"one of the columns {shown}"


def _features(score: Floats, rows: Floats, projection: Floats, slope: Floats) -> Floats:
    """Return the features of rows: the score, and projections less their regression on the score."""
    return np.column_stack([score, rows @ projection - score[:, None] * slope])


def _know_prior(source_prior: Any, source: SourceCounts) -> tuple[PriorKnowledge, str]:
    """Return what is known of π, and where it comes from; None is estimated from the counts."""
    if source_prior is not None:
        return read_prior(source_prior), "given"
    estimator = MixturePrior(scenario=source.scenario)  # type: ignore[arg-type]
    estimator.fit_counts(source.posterior_counts, source.law, source.km2_prior, source.sizes)
    return PosteriorPrior(estimator.prior_distribution_), "MixturePrior"


def _score_table(witness: CountWitness, prior: float) -> Floats:
    """Return (f_P − f_N)/f_U = (ρ − 1)/(1 − π) in each bin of the p-values, shape (repeats, bins)."""
    return np.asarray((witness.density_ratio - 1) / max(1 - prior, _SMALLEST_SHARE))


def _row_scores(table: Floats, bins: NDArray[Any]) -> Floats:
    """Return the score of each row, the mean over repetitions."""
    total = np.zeros(bins.shape[1])
    for by_bin, row in zip(table, bins, strict=True):
        total += by_bin[row]
    return total / len(table)


def _level_values(scores: Floats, levels: NDArray[np.int64], edges: Floats) -> Floats:
    """Return a value for each level: the mean score of its rows, or the middle of the level where there is none."""
    count = np.bincount(levels, minlength=len(edges) + 1)
    total = np.bincount(levels, scores, minlength=len(edges) + 1)
    ends = np.concatenate([[scores.min()], edges, [scores.max()]])
    middles = (ends[1:] + ends[:-1]) / 2
    values = np.where(count > 0, total / np.maximum(count, 1), middles)
    step = 1e-9 * max(float(np.ptp(values)), 1e-9)  # levels stay distinct where rounding makes them equal
    return np.maximum.accumulate(values) + step * np.arange(len(values))


def _design_effect(values: Floats, groups: NDArray[Any] | None) -> float:
    """Return the variance of a mean with groups, relative to that with independent rows."""
    if groups is None or not np.ptp(values):
        return 1.0
    code = np.unique(groups, return_inverse=True)[1].reshape(-1)
    centered = values - values.mean()
    return float((np.bincount(code, centered) ** 2).sum() / (centered**2).sum())
