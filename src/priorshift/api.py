"""The functions that users call: build a :class:`~priorshift.problem.Problem`, and estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.base import clone

from priorshift.arrays import Floats
from priorshift.base import PUEstimator, TargetPriorEstimator
from priorshift.distributed.collections import is_distributed
from priorshift.distributed.summaries import estimate_collections
from priorshift.errors import ApproximationWarning, InputError
from priorshift.inference.joint import JointRatios, Members, RatioInfluence, largest_normal, pooled
from priorshift.io.parameters import check_estimator
from priorshift.io.row_metadata import Columns, metadata_arguments
from priorshift.io.sample_checks import check_sizes
from priorshift.io.targets import rows_by_value, target_name
from priorshift.io.weights import effective_size
from priorshift.loading import InputOptions, load_problem
from priorshift.methods import registry
from priorshift.methods.tcpu import TCPU
from priorshift.methods.witness_shift import WitnessShift
from priorshift.prior_estimates import PriorEstimates
from priorshift.problem import Problem, Sample, Source
from priorshift.results import Interval, PriorEstimate
from priorshift.sketch.estimation import (
    count_streams,
    estimate_from_histograms,
    estimate_from_sketches,
    open_streams,
    refuse_fixed_settings,
    sketch_like_first,
    sketch_streams,
)
from priorshift.warning_records import WarningsByName, warn


def estimate_prior(
    positive: Any,
    unlabeled: Any,
    target: Any,
    *,
    method: Any = "auto",
    source_prior: Any = None,
    scenario: str | None = None,
    confidence: float | None = None,
    random_state: int | np.random.Generator | None = None,
    standardize: bool | None = None,
    shared: str | None = None,
    drop: Sequence[str] = (),
    audit: Columns = None,
    weights: Columns = None,
    groups: Columns = None,
    encoder: Any = "auto",
    stream: bool | None = None,
) -> PriorEstimate:
    """Estimate the share of positives in the target population.

    Parameters
    ----------
    positive, unlabeled, target : array-like, data frame, path, sketch or histogram
        Confirmed positives and an unlabelled sample of the source population, and an unlabelled sample of the
        target population. Columns are matched by name where there are names. A path is that of a CSV or Parquet file,
        of a sketch or of a histogram (:mod:`priorshift.sketch`); a sample may also be a list of files, a folder of
        Parquet files, or an iterator of tables, which are then read in batches.
    method : {"auto", "witness", "tcpu", "km2-ls", "drpu"} or estimator
        "auto" is :class:`WitnessShift` ("witness"), of the smallest error in the library's studies (see the guide). An
        estimator, such as ``TCPU(0.2, kernel="laplace")``, keeps its own settings; then leave `source_prior`,
        `scenario`, `confidence`, `random_state` and `standardize` out.
    source_prior : float, (low, high), distribution, estimator or None
        Share of positives in the source population, if it is known, exactly or roughly: a range such as
        (0.1, 0.2), or a distribution such as ``scipy.stats.beta(37.5, 213.5)``. None estimates it: "auto" and "witness"
        by :class:`MixturePrior`, "tcpu" by :class:`KM2`.
    scenario : {"case-control", "censoring"} or None
        Whether unlabelled rows are a sample of the whole population, which None takes them for, or what was left of it
        after some positives were labelled.
    confidence : float or None
        Of the interval; None is 0.95.
    random_state : int, Generator or None
        Decides everything random. (TCPU with a known prior and its default interval draws nothing.)
    standardize : bool or None
        Scale every column by the mean and spread of the unlabelled source sample, which None does; columns are rarely
        on one scale. The target is never scaled by itself: that would remove the shift.
    shared : None, "identical" or name of an id column
        Whether some positives are also rows of the unlabelled sample, and how to recognise them.
    drop : sequence of str
        Columns that are not features.
    audit : None, name of a column or mapping
        Classes of some unlabelled rows, of some rows of the target, or of both, drawn at random and looked up: the name
        of a column that stands in one of the two tables or in both, with 1, 0 and empty cells; or such columns
        themselves, ``{"unlabeled": values, "target": values}``. Of :class:`WitnessShift`.
    weights : None, name of a column or mapping
        What each row stands for, such as a survey's weights: the name of a column in one of the tables or more (rows
        of the others count alike), or such columns themselves, ``{"unlabeled": values, "target": values}``, where
        "positive" can stand too. Of :class:`WitnessShift` and :class:`TCPU`.
    groups : None, name of a column or mapping
        Which rows belong together, such as a patient's: the name of a column of all three tables, which may be that of
        `shared` too, or such columns themselves. A group that stands in two tables is one group.
    encoder : {"auto"}, None or transformer
        What makes numbers of categories, dates and missing cells. "auto" is :class:`TableEncoder`, where there is
        something to encode; None refuses what is not numbers. A transformer of scikit-learn's kind, such as skrub's
        ``TableVectorizer()``, is fitted on the unlabelled rows alone.
    stream : bool or None
        Whether samples are read in batches, in memory that does not grow with them: "auto" and "witness" then fit their
        scores to some of the rows and count all of them, "tcpu" uses random features. Copies of rows are not looked
        for, and `shared`, `audit`, `groups` and an `encoder` need all rows at once. None does so where a file would
        take more than 1 GB of memory.

    Returns
    -------
    PriorEstimate
        Which prints as one line.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=500, n_target=500, shared=False, random_state=1)
    >>> print(ps.estimate_prior(s.positive, s.unlabeled, s.target, source_prior=0.2, random_state=0))
    target prior 0.631, 95% interval 0.569 to 0.693 (Witness, source prior 0.2)
    """
    options = InputOptions.from_arguments(
        shared=shared, audit=audit, weights=weights, groups=groups, drop=drop, encoder=encoder, stream=stream
    )
    settings = {"source_prior": source_prior, "scenario": scenario, "confidence": confidence,
                "random_state": random_state, "standardize": standardize}  # fmt: skip
    estimator = make_estimator(method, settings)
    problem = load_problem(positive=positive, unlabeled=unlabeled, target=target, options=options)
    return estimate_target(problem, estimator_for(problem, estimator, method))


def estimate_priors(
    positive: Any,
    unlabeled: Any,
    targets: Any,
    *,
    by: str | None = None,
    stratify: str | None = None,
    method: Any = "auto",
    source_prior: Any = None,
    scenario: str | None = None,
    confidence: float | None = None,
    random_state: int | np.random.Generator | None = None,
    standardize: bool | None = None,
    shared: str | None = None,
    drop: Sequence[str] = (),
    audit: Columns = None,
    weights: Columns = None,
    groups: Columns = None,
    encoder: Any = "auto",
) -> PriorEstimates:
    """Estimate the share of positives in several target populations, with one fit to the source.

    Parameters
    ----------
    positive, unlabeled : array-like, data frame, or path of a CSV or Parquet file
        As in :func:`estimate_prior`.
    targets : mapping, sequence or table
        Unlabelled samples of the target populations, independent of each other: a mapping of names to tables; a
        sequence of tables or files, which are called by their file names without suffix, or else by numbers from 0 on;
        or one table, with `by` or `stratify`.
    by : str or None
        A column of the one table of targets, of text, numbers or dates: the rows of each value are a target. It is no
        feature, and may stand in the source tables too.
    stratify : str or None
        A column of all three tables, with one target: each stratum is estimated by itself, from the positives and
        unlabelled rows of that stratum, and the whole target from all of them (``pooled``).
    method : str or estimator
        As in :func:`estimate_prior`.
    source_prior : float, (low, high), distribution, estimator, mapping or None
        As in :func:`estimate_prior`; with `stratify`, also a mapping of strata to these.
    scenario : {"case-control", "censoring"} or None
        As in :func:`estimate_prior`.
    confidence : float or None
        Of each interval, of the band as a whole and of each difference; None is 0.95.
    random_state : int, Generator or None
        As in :func:`estimate_prior`, and so are the next three.
    standardize : bool or None
    shared : None, "identical" or name of an id column
    drop : sequence of str
    audit : None, name of a column or mapping
        As in :func:`estimate_prior`; a column may stand in some or all targets, while a mapping has classes of the
        unlabelled rows alone.
    weights, groups : None, name of a column or mapping
        As in :func:`estimate_prior`, but that a mapping has no "target"; a group that stands in two targets, such as a
        patient in two months, makes them dependent, and so it does two strata.
    encoder : {"auto"}, None or transformer
        As in :func:`estimate_prior`.

    Returns
    -------
    PriorEstimates
        A mapping of names to estimates that prints as a table, with a band for all at once, differences and a test of
        equality. Of methods that tell no error (KM2-LS, DRPU), estimates alone.

    Examples
    --------
    >>> import pandas as pd
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.2, n_source=1000, n_target=900, dimension=5, shared=False, random_state=0)
    >>> target = pd.DataFrame(s.target, columns=list("abcde")).assign(month=["jan", "feb", "mar"] * 300)
    >>> source = [pd.DataFrame(rows, columns=list("abcde")) for rows in (s.positive, s.unlabeled)]
    >>> estimates = ps.estimate_priors(*source, target, by="month", source_prior=0.2, random_state=0)
    >>> print(estimates)
    month  rows  estimate    95% interval     all at once
    jan     300     0.176  0.096 to 0.254  0.078 to 0.271
    feb     300     0.113  0.034 to 0.190  0.016 to 0.207
    mar     300     0.176  0.095 to 0.258  0.076 to 0.277
    >>> print(estimates.equality_test())
    equal priors: χ² = 2.6 on 2 degrees of freedom, p = 0.274
    """
    options = InputOptions.from_arguments(
        shared=shared, audit=audit, weights=weights, groups=groups, drop=drop, encoder=encoder, by=by, stratify=stratify
    )
    settings = {"source_prior": source_prior, "scenario": scenario, "confidence": confidence,
                "random_state": random_state, "standardize": standardize}  # fmt: skip
    if isinstance(source_prior, Mapping) and stratify is None:
        raise InputError("source_prior is a mapping, which is of strata; pass stratify, or one prior of the source.")
    first = next(iter(source_prior.values()), None) if isinstance(source_prior, Mapping) else source_prior
    estimator = make_estimator(method, settings | {"source_prior": first})
    problem = load_problem(positive=positive, unlabeled=unlabeled, target=targets, several=True, options=options)
    if stratify is not None:
        return estimate_strata(problem, estimator, source_prior)
    return estimate_targets(problem, estimator)


def make_estimator(method: Any, settings: Mapping[str, Any]) -> Any:
    """Return a new, unfitted estimator of a method, or a clone of the estimator that is passed as one."""
    settings = {name: value for name, value in settings.items() if value is not None}
    if isinstance(method, type) or hasattr(method, "fit"):
        check_estimator("method", method, ("estimate",), "the name of a method or an estimator")
        for name in settings:
            raise InputError(f"{name} was passed together with an estimator as method; set it in the estimator.")
        return clone(method)
    chosen = registry.choose(method)
    for name in settings:
        if name not in chosen.options:
            raise InputError(f"method={chosen.name!r} uses no {name}; leave it out.")
    return chosen.estimator(**settings)


def estimator_for(problem: Problem, estimator: Any, method: Any) -> Any:
    """Return the estimator, or where "auto" meets sketches, TCPU, the only method that can use them."""
    if not (problem.kind == "moments" and isinstance(method, str) and method == "auto"):
        return estimator
    warn(
        "The samples are sketches, which only TCPU can use, so method='auto' is 'tcpu' here. Pass method='tcpu', or "
        "histograms of a ScoreModel for the default method.",
        ApproximationWarning,
    )
    tcpu = registry.choose("tcpu").estimator
    names = ("source_prior", "scenario", "confidence", "random_state", "standardize")
    return tcpu(**{name: getattr(estimator, name) for name in names})


def estimate_target(problem: Problem, estimator: Any) -> PriorEstimate:
    """Estimate the prior of the only target of a problem."""
    if problem.kind != "rows":
        return _estimate_from_summaries(problem, estimator)
    fitted = fit_source(problem, estimator)
    if isinstance(fitted, TargetPriorEstimator):
        return with_columns(problem, fitted.estimate_target(fitted.target_of(problem.target)))
    return with_columns(problem, _estimate_by_rows(fitted, problem.target))


def _estimate_from_summaries(problem: Problem, estimator: Any) -> PriorEstimate:
    """Estimate without holding rows: from histograms, from sketches, or from samples that are streamed."""
    samples = {"positive": problem.positive.data, "unlabeled": problem.unlabeled.data, "target": problem.target.data}
    kinds = {sample.kind for sample in (problem.positive, problem.unlabeled, problem.target)}
    weights, drop = problem.columns.weights, problem.drop
    if {"counts", "moments"} <= kinds:
        raise InputError("sketches and histograms are for different methods; pass three of one kind.")
    if kinds != {"chunks"}:
        refuse_fixed_settings(estimator, drop)
    elif not isinstance(estimator, (TCPU, WitnessShift)):
        raise InputError(
            f"{type(estimator).__name__} needs all rows in memory; pass tables that fit there, or use the default "
            "method or TCPU."
        )
    if "moments" in kinds:
        return estimate_from_sketches(estimator, **sketch_like_first(samples, weights))
    if weights is not None and not isinstance(estimator, TCPU):
        raise InputError("rows that are counted cannot be weighted; use method='tcpu', or rows in memory.")
    if "counts" in kinds:
        return estimate_from_histograms(estimator, **samples)
    if any(map(is_distributed, samples.values())):
        return estimate_collections(estimator, samples, drop, weights)
    streams = open_streams(samples, drop, weights if isinstance(weights, str) else None)
    if isinstance(estimator, TCPU):
        return estimate_from_sketches(estimator, **sketch_streams(estimator, streams, drop, weights))
    return estimate_from_histograms(estimator, **count_streams(estimator, streams, drop))


def fit_source(problem: Problem, estimator: Any) -> Any:
    """Fit an estimator, ours or one that a user brings, to the source of a problem."""
    if isinstance(estimator, PUEstimator):
        return estimator.fit_source(estimator.source_of(problem))
    source = Source.from_samples(problem.positive, problem.unlabeled, scenario="case-control", standardize=False)
    arguments = metadata_arguments(estimator, source.metadata)
    return estimator.fit(source.table.values, source.labeled.astype(int), **arguments)


def _estimate_by_rows(fitted: Any, target: Sample) -> PriorEstimate:
    """Estimate by an estimator that a user brings, which takes arrays."""
    estimate: PriorEstimate = fitted.estimate(target.data.values, **metadata_arguments(fitted, target.metadata))
    return estimate


def _estimate_jointly(fitted: Any, target: Sample) -> tuple[PriorEstimate, RatioInfluence | None]:
    """Estimate the prior of a target, and what its error has in common with that of other targets."""
    if isinstance(fitted, TargetPriorEstimator):
        return fitted.estimate_jointly(fitted.target_of(target))
    return _estimate_by_rows(fitted, target), None


def with_columns(problem: Problem, estimate: PriorEstimate) -> PriorEstimate:
    """Add to an estimate what became of each column, where columns were encoded."""
    if problem.encoded_columns is None or not isinstance(estimate, PriorEstimate):
        return estimate
    return replace(estimate, details={**estimate.details, "columns": problem.encoded_columns})


def estimate_targets(problem: Problem, estimator: Any) -> PriorEstimates:
    """Estimate the priors of all targets of a problem, with one fit to the source."""
    fitted = fit_source(problem, estimator)
    estimates, influences, warnings = {}, [], WarningsByName("target")
    for name, target in problem.targets.items():
        with warnings.collect(name):
            estimate, influence = _estimate_jointly(fitted, target)
        estimates[name] = with_columns(problem, estimate)
        influences.append(influence)
    warnings.issue()
    confidence = getattr(fitted, "confidence", float("nan"))
    return replace(compare_targets(estimates, influences, confidence, problem.by), frame=problem.frame)


def compare_targets(
    estimates: dict[str, PriorEstimate],
    influences: Sequence[RatioInfluence | None],
    confidence: float,
    by: str | None = None,
) -> PriorEstimates:
    """Combine estimates of several targets of one source; without all influences there is no band and no difference."""
    known = [influence for influence in influences if influence is not None]
    if len(known) < len(influences):
        return PriorEstimates(estimates, by=by)
    joint = JointRatios.from_influences(
        known, float(np.mean([estimate.source_prior for estimate in estimates.values()]))
    )
    band = _band(estimates, known, joint.single_confidence(confidence), confidence)
    return PriorEstimates(estimates, joint, band, by=by)


def estimate_strata(problem: Problem, estimator: Any, source_prior: Any = None) -> PriorEstimates:
    """Estimate each stratum from its own source, and the whole target from all strata."""
    strata = _split_strata(problem)
    priors = _strata_priors(source_prior, list(strata))
    estimates, influences, members, weights, warnings = {}, [], [], [], WarningsByName("stratum")
    for stratum, part in strata.items():
        own = clone(estimator) if priors[stratum] is None else clone(estimator).set_params(source_prior=priors[stratum])
        with warnings.collect(stratum):
            fitted = fit_source(part, own)
            estimate, influence = _estimate_jointly(fitted, part.target)
        estimates[stratum] = with_columns(problem, estimate)
        influences.append(influence)
        members.append(_members(fitted, part))
        weighted = part.target.metadata.weights
        weights.append(np.ones(len(part.target)) if weighted is None else weighted)
    warnings.issue()
    confidence = next((e.interval.confidence for e in estimates.values() if e.interval is not None), float("nan"))
    shares, size = _stratum_shares(weights, [member.target for member in members])
    common = not isinstance(source_prior, Mapping)
    whole = pooled([*estimates.values()], influences, confidence, shares, size, common_prior=common, members=members)
    known = [influence for influence in influences if influence is not None]
    band = None
    if len(known) == len(influences):
        single = float(2 * ndtr(largest_normal(np.eye(len(known)), confidence)) - 1)
        band = _band(estimates, known, single, confidence)
    return PriorEstimates(estimates, band=band, by=problem.by, pooled=whole, frame=problem.frame)


def _split_strata(problem: Problem) -> dict[str, Problem]:
    """Split a problem by the column of its strata, each of which all samples must have."""
    by = str(problem.by)
    samples = {"target": problem.target, "unlabeled": problem.unlabeled, "positive": problem.positive}
    rows = {role: rows_by_value(sample.data, by) for role, sample in samples.items()}
    strata = list(dict.fromkeys(stratum for parts in rows.values() for stratum in parts))
    split: dict[str, dict[str, Sample]] = {stratum: {} for stratum in strata}
    for role, sample in samples.items():
        for stratum in strata:
            if stratum not in rows[role]:
                raise InputError(
                    f"{sample.data.name} has no row of stratum {stratum!r} (column {by!r}), which another table has; "
                    "leave the stratum out everywhere, or join it to another."
                )
            part = sample.take(rows[role][stratum], f"{sample.data.name}, stratum {stratum!r}")
            check_sizes(**{part.data.name: len(part)})
            split[stratum][role] = part
    return {
        stratum: Problem(parts["positive"], parts["unlabeled"], {"": parts["target"]}, problem.columns, problem.drop)
        for stratum, parts in split.items()
    }


def _strata_priors(source_prior: Any, strata: Sequence[str]) -> dict[str, Any]:
    """Return what is known of π in each stratum."""
    if not isinstance(source_prior, Mapping):
        return dict.fromkeys(strata, source_prior)
    given = {target_name(stratum): prior for stratum, prior in source_prior.items()}
    missing, strange = [s for s in strata if s not in given], [s for s in given if s not in strata]
    if missing or strange:
        what = f"lacks {', '.join(map(repr, missing))}" if missing else f"has {', '.join(map(repr, strange))} besides"
        raise InputError(f"source_prior {what}; pass one prior for each stratum: {', '.join(map(repr, strata))}.")
    return given


def _members(fitted: Any, stratum: Problem) -> Members:
    """Return the groups and ids of a stratum's rows, and the observations of the source that they are."""
    none = np.empty(0, dtype=str)
    P, U = stratum.positive.metadata, stratum.unlabeled.metadata
    groups = none if P.groups is None or U.groups is None else np.concatenate([P.groups, U.groups])
    of_target = stratum.target.metadata.groups
    layout = getattr(fitted, "_layout", None)
    names, observation = groups, None if layout is None or not len(groups) else layout.groups.find(groups)
    if P.ids is not None and U.ids is not None and stratum.columns.shared != stratum.columns.groups:
        ids = np.concatenate([P.ids, U.ids])
        names = np.concatenate([names, np.char.add("id ", ids)])  # so that no group has the same name
        observation = None if observation is None else np.tile(observation, 2)
    return Members(names, none if of_target is None else of_target, observation)


def _stratum_shares(weights: Sequence[Floats], groups: Sequence[NDArray[np.str_]]) -> tuple[Floats, float]:
    """Return the share of each stratum in the target, and the effective sample size; empty groups are none."""
    totals = np.array([w.sum() for w in weights])
    names = np.concatenate(groups)
    group = np.unique(names, return_inverse=True)[1].reshape(-1) if len(names) else None
    return totals / totals.sum(), effective_size(np.concatenate(weights), group)


def _band(
    estimates: Mapping[str, PriorEstimate], influences: Sequence[RatioInfluence], single: float, confidence: float
) -> dict[str, Interval]:
    """Return the interval of each estimate at the confidence `single`, so that all cover with `confidence`."""
    band = {}
    for (name, estimate), influence in zip(estimates.items(), influences, strict=True):
        interval = influence.interval(single, estimate.value)
        band[name] = replace(interval, confidence=confidence, method="simultaneous")
    return band
