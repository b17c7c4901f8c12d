"""Functions that users call: each builds a :class:`~priorshift.problem.Problem` and estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtr
from sklearn.base import clone

from priorshift.arrays import Floats
from priorshift.base import PUEstimator, TargetPriorEstimator
from priorshift.class_priors import ClassPriors
from priorshift.class_priors_by_target import ClassPriorsByTarget
from priorshift.class_source import REST, name_classes
from priorshift.distributed.class_streams import (
    estimate_classes_from_summaries,
    estimate_classes_of_sketched_targets,
)
from priorshift.distributed.exact import gather
from priorshift.distributed.summaries import check_weights, estimate_streams, refuse_fixed_settings, sketch_like_first
from priorshift.errors import ApproximationWarning, InputError
from priorshift.inference.class_knowledge import read_dirichlet, read_label_errors
from priorshift.inference.joint import JointRatios, Members, RatioInfluence, largest_normal, pooled
from priorshift.inference.joint_mixtures import JointMixtures
from priorshift.inference.prior_knowledge import read_label_error
from priorshift.io.parameters import check_estimator
from priorshift.io.readers import is_distributed
from priorshift.io.row_metadata import Columns, metadata_arguments
from priorshift.io.sample_size import check_sizes, effective_size
from priorshift.io.targets import rows_by_value, target_name
from priorshift.loading import InputOptions, load_problem
from priorshift.methods import registry
from priorshift.methods.multiclass import MulticlassShift
from priorshift.methods.tcpu import TCPU
from priorshift.methods.witness_shift import WitnessShift
from priorshift.prior_estimates import PriorEstimates
from priorshift.problem import Problem, Sample, Source
from priorshift.results import Interval, PriorEstimate
from priorshift.sketch.histogram import estimate_from_histograms
from priorshift.sketch.sketch import estimate_from_sketches
from priorshift.warning_records import WarningsByName, warn


def estimate_prior(
    positive: Any,
    unlabeled: Any,
    target: Any,
    *,
    method: Any = "auto",
    source_prior: Any = None,
    label_error: Any = None,
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
    missing: Sequence[Any] = (),
    columns: Mapping[str, str] | None = None,
    sheet: str | Mapping[str, str] | None = None,
    stream: bool | None = None,
    rest: bool = True,
) -> Any:
    """Estimate the share of positives, or of each of several classes, in the target population.

    Parameters
    ----------
    positive, unlabeled, target : array-like, data frame, path, sketch or histogram
        Confirmed positives and an unlabelled sample of the source population, and an unlabelled sample of the target
        population. Columns are matched by name if they have names. A path is that of a CSV, Excel or Parquet file, a
        sketch or a histogram (:mod:`priorshift.sketch`). A list of files, a folder of Parquet files, an iterator of
        tables and a Dask collection are streamed. If several classes are labelled, `positive` is a mapping of their
        names to samples; see :class:`MulticlassShift`.
    method : {"auto", "witness", "tcpu", "km2-ls", "drpu"} or estimator
        Method of estimation. Default "auto": :class:`WitnessShift`, which had the smallest error in the library's
        studies. An estimator such as ``TCPU(0.2, kernel="laplace")`` has its own settings; then leave out
        `source_prior`, `label_error`, `scenario`, `confidence`, `random_state` and `standardize`.
    source_prior : float, (low, high), distribution, estimator or None
        Share of positives in the source population: a number, a range such as (0.1, 0.2), or a distribution such as
        ``scipy.stats.beta(37.5, 213.5)``. Default None: estimated, by :class:`MixturePrior` for "auto" and "witness"
        and by :class:`KM2` for "tcpu". For several classes, a mapping of their names to these, the counts of a survey
        or a Dirichlet distribution; see :class:`MulticlassShift`.
    label_error : float, (low, high), distribution, mapping or None
        Share of the labelled rows that are not positive: a number such as 0.05, a range such as (0.02, 0.1), or a
        distribution such as ``scipy.stats.beta(3.5, 47.5)`` if 3 of 50 labelled rows that were checked at random are
        wrong. For several classes, the share of the rows of a class that are of the rest: one for all, or a mapping of
        classes, also to a mapping of the true classes. For "auto", "witness" and "tcpu". Default None: no errors.
    scenario : {"case-control", "censoring"} or None
        "case-control" (default): the unlabelled rows are a sample of the whole population. "censoring": they are what
        is left of it after some positives were labelled.
    confidence : float or None
        Confidence level of the interval. Default 0.95.
    random_state : int, Generator or None
        Seed of everything random. TCPU with a known prior and its default interval uses no random numbers.
    standardize : bool or None
        Whether to scale every column by the mean and spread of the unlabelled source sample. Default True. The target
        is never scaled by its own statistics, which would remove the shift.
    shared : None, "identical" or name of an id column
        How to recognise positives that are also rows of the unlabelled sample, if there are any.
    drop : sequence of str
        Columns that are not features.
    audit : None, name of a column or mapping
        True classes of some unlabelled rows, of some rows of the target, or of both, drawn at random: the name of a
        column of one or both tables, with 1, 0 and empty cells; or the columns themselves, ``{"unlabeled": values,
        "target": values}``. With named classes, the cells hold a class or "rest". For :class:`WitnessShift` and
        :class:`MulticlassShift`.
    weights : None, name of a column or mapping
        Sample weights: the name of a column of one or more tables (rows of the others have equal weights), or the
        columns themselves, ``{"positive": values, "unlabeled": values, "target": values}``, with ``{"positive": {class
        name: values}}`` for classes. For :class:`WitnessShift`, :class:`TCPU` and :class:`MulticlassShift`.
    groups : None, name of a column or mapping
        Groups of rows that are not independent, such as patients: the name of a column of all three tables, which may
        also be that of `shared`, or the columns themselves. Groups of the same name are one group in all tables.
    encoder : {"auto"}, None or transformer
        Encoding of categories, dates and missing cells. Default "auto": :class:`TableEncoder`, if there is something to
        encode. None refuses everything but numbers. A scikit-learn transformer, such as skrub's ``TableVectorizer()``,
        is fitted on the unlabelled rows alone.
    missing : sequence of values
        Values that mean "no value", such as -9999 or "unknown", in all tables, in addition to empty cells and, in CSV
        files, the words NA, N/A, NaN, null, <NA> and NaT, and among numbers and dates also none, ? and a point.
    columns : mapping of str to str, or None
        Columns that are not what they seem: "category" for codes that look like numbers, "day-first" or "month-first"
        for dates such as 03/04/2020.
    sheet : str, mapping or None
        Sheet of Excel workbooks with several sheets: one name for all, or a mapping such as ``{"positive": "cases",
        "unlabeled": "survey", "target": "survey 2024"}``. The name of a class stands for its table.
    stream : bool or None
        Whether samples are read in chunks, in constant memory: "auto" and "witness" then fit their scores to some of
        the rows and count all of them (for several classes, average functions of the scores over all of them), "tcpu"
        uses random features. Copies of rows are not detected, and `shared`, `audit`, `groups`, `missing`, `columns` and
        an `encoder` are not supported. Default: only for files above 1 GB.
    rest : bool
        Whether there may be rows of other classes than the labelled ones. Default True. False is for several classes,
        and then `unlabeled` is None.

    Returns
    -------
    PriorEstimate or ClassPriors
        Estimate with its interval, which prints as one line. If `positive` is a mapping of classes, a mapping of their
        names, and of "rest", to estimates, which prints as a table.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=500, n_target=500, shared=False, random_state=1)
    >>> print(ps.estimate_prior(s.positive, s.unlabeled, s.target, source_prior=0.2, random_state=0))
    target prior 0.631, 95% interval 0.569 to 0.693 (Witness, source prior 0.2)

    Several labelled classes:

    >>> s = ps.simulate.gaussian_classes({"flu": 0.2, "covid": 0.3}, {"flu": 0.5, "covid": 0.1}, random_state=0)
    >>> known = {"flu": 0.2, "covid": (0.25, 0.35)}
    >>> print(ps.estimate_prior(s.classes, s.unlabeled, s.target, source_prior=known, random_state=0))
    class  rows  estimate    95% interval     all at once  source prior
    flu     200     0.501  0.450 to 0.552  0.440 to 0.562           0.2
    covid   200     0.146  0.057 to 0.227  0.045 to 0.236           0.3
    rest            0.353  0.271 to 0.453  0.263 to 0.466           0.5
    """
    options = InputOptions.from_arguments(
        shared=shared, audit=audit, weights=weights, groups=groups, drop=drop, encoder=encoder, missing=missing,
        columns=columns, sheet=sheet, stream=stream,
    )  # fmt: skip
    settings = {"source_prior": source_prior, "label_error": label_error, "scenario": scenario,
                "confidence": confidence, "random_state": random_state, "standardize": standardize}  # fmt: skip
    estimator, rest = choose_estimator(method, settings, positive, rest)
    problem = load_problem(positive=positive, unlabeled=unlabeled, target=target, rest=rest, options=options)
    is_auto = isinstance(method, str) and method == "auto"
    if problem.class_names:
        return estimate_classes(problem, estimator, is_auto=is_auto)
    return estimate_target(problem, estimator, is_auto=is_auto)


def estimate_priors(
    positive: Any,
    unlabeled: Any,
    targets: Any,
    *,
    by: str | None = None,
    stratify: str | None = None,
    method: Any = "auto",
    source_prior: Any = None,
    label_error: Any = None,
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
    missing: Sequence[Any] = (),
    columns: Mapping[str, str] | None = None,
    sheet: str | Mapping[str, str] | None = None,
    rest: bool = True,
) -> Any:
    """Estimate the share of positives, or of each of several classes, in several targets, with one fit to the source.

    Parameters
    ----------
    positive, unlabeled : array-like, data frame, or path of a CSV, Excel or Parquet file
        As in :func:`estimate_prior`; `positive` may be a mapping of classes to samples.
    targets : mapping, sequence or table
        Unlabelled samples of the target populations, independent of each other: a mapping of names to tables; a
        sequence of tables or files, named by their files or else by numbers from 0 on; or one table, with `by` or
        `stratify`. With several classes, samples may be sketches.
    by : str or None
        Column of the one table of targets, of text, numbers or dates: the rows of each value are a target. It is not a
        feature, and may be in the source tables too.
    stratify : str or None
        Column of all three tables, with one target: each stratum is estimated from the positives and unlabelled rows of
        that stratum, and the whole target from all of them (``pooled``). Not for a mapping of classes.
    source_prior : float, (low, high), distribution, estimator, mapping or None
        As in :func:`estimate_prior`; with `stratify`, also a mapping of strata to these.
    label_error : float, (low, high), distribution, mapping or None
        As in :func:`estimate_prior`; with `stratify`, a number.
    confidence : float or None
        Confidence level of each interval, of the simultaneous band and of each difference. Default 0.95.
    audit, weights, groups : None, name of a column or mapping
        As in :func:`estimate_prior`, but a mapping has no "target". A group in two targets or strata, such as a patient
        in two months, makes them dependent.
    method, scenario, random_state, standardize, shared, drop, encoder, missing, columns, sheet : object
        As in :func:`estimate_prior`.
    rest : bool
        As in :func:`estimate_prior`.

    Returns
    -------
    PriorEstimates or ClassPriorsByTarget
        Mapping of names to estimates that prints as a table, with a simultaneous band, differences and a test of
        equality; without these for methods that have no standard error (KM2-LS, DRPU). If `positive` is a mapping of
        classes, a mapping of targets to :class:`ClassPriors`.

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
    mar     300     0.175  0.095 to 0.258  0.076 to 0.277
    >>> print(estimates.equality_test())
    equal priors: χ² = 2.6 on 2 degrees of freedom, p = 0.274
    """
    options = InputOptions.from_arguments(
        shared=shared, audit=audit, weights=weights, groups=groups, drop=drop, encoder=encoder, missing=missing,
        columns=columns, sheet=sheet, by=by, stratify=stratify,
    )  # fmt: skip
    settings = {"source_prior": source_prior, "label_error": label_error, "scenario": scenario,
                "confidence": confidence, "random_state": random_state, "standardize": standardize}  # fmt: skip
    if isinstance(positive, Mapping):
        if stratify is not None:
            raise InputError("stratify is not supported with a mapping of classes; estimate the strata one by one.")
        estimator, rest = choose_estimator(method, settings, positive, rest)
        problem = load_problem(
            positive=positive, unlabeled=unlabeled, target=targets, several=True, rest=rest, options=options
        )
        return estimate_classes_of_targets(problem, estimator, is_auto=isinstance(method, str) and method == "auto")
    if isinstance(source_prior, Mapping):
        if stratify is None:
            raise InputError("source_prior is a mapping of strata, but stratify is None; pass stratify, or one prior.")
        # an estimator takes one prior: here the first of the mapping, if it has any; `estimate_strata` sets the others
        priors = [*source_prior.values(), None]
        settings["source_prior"] = priors[0]
    estimator, _ = choose_estimator(method, settings, positive, rest)
    problem = load_problem(positive=positive, unlabeled=unlabeled, target=targets, several=True, options=options)
    if stratify is not None:
        return estimate_strata(problem, estimator, source_prior)
    return estimate_targets(problem, estimator)


def make_estimator(method: Any, settings: Mapping[str, Any]) -> Any:
    """Return a new, unfitted estimator: that of a named method, or a clone of the estimator that is passed as `method`.

    `settings` are parameters of the estimator by name, None for its default; an estimator that is passed has its own.
    """
    settings = {name: value for name, value in settings.items() if value is not None}
    if isinstance(method, type) or hasattr(method, "fit"):
        check_estimator("method", method, ("estimate",), "the name of a method or an estimator")
        if isinstance(method, MulticlassShift):
            raise InputError(
                "method is MulticlassShift, which is for at least two labelled classes; pass positive={class: sample}."
            )
        if settings:
            first, *_ = settings
            raise InputError(f"{first} was passed together with an estimator as method; set it in the estimator.")
        return clone(method)
    named = registry.choose(method)
    for name in settings:
        if name not in named.options:
            raise InputError(f"method={named.name!r} uses no {name}; leave it out.")
    return named.estimator(**settings)


def make_class_estimator(method: Any, settings: Mapping[str, Any]) -> MulticlassShift:
    """Return a new, unfitted estimator for several labelled classes; the arguments are those of `make_estimator`."""
    settings = {name: value for name, value in settings.items() if value is not None}
    if isinstance(method, type) or hasattr(method, "fit"):
        if not isinstance(method, MulticlassShift):
            name = method.__name__ if isinstance(method, type) else type(method).__name__
            raise InputError(
                f"method is {name}, which is for one labelled class; pass 'witness', 'tcpu' or a MulticlassShift."
            )
        if settings:
            first, *_ = settings
            raise InputError(f"{first} was passed together with an estimator as method; set it in the estimator.")
        estimator: MulticlassShift = clone(method)
        return estimator
    named = registry.choose(method).name
    if named not in ("witness", "tcpu"):
        raise InputError(f"method={named!r} is for one labelled class; pass 'witness' or 'tcpu' for several.")
    return MulticlassShift(**settings, method="tcpu" if named == "tcpu" else "witness")


def choose_estimator(method: Any, settings: Mapping[str, Any], positive: Any, rest: bool) -> tuple[Any, bool]:
    """Return a new, unfitted estimator for positives or a mapping of classes, and whether there is a rest."""
    names = tuple(name_classes(positive)) if isinstance(positive, Mapping) else ()
    if not isinstance(rest, bool):
        raise InputError(f"rest is {rest!r}, but True or False is expected.")
    if len(names) < 2:
        check_one_class(rest=rest)
        return make_estimator(method, one_class_settings(settings, names)), True
    estimator = make_class_estimator(method, {**settings, "rest": None if rest else False})
    estimator.check_classes(names)
    return estimator, estimator.rest


def check_one_class(*, rest: bool, in_shell: bool = False) -> None:
    """Refuse settings that need several labelled classes."""
    several = "--positive NAME=FILE for each" if in_shell else "positive={class: sample, …}"
    if not rest:
        option = "--no-rest" if in_shell else "rest=False"
        raise InputError(f"{option} needs at least two labelled classes; pass {several}, or leave it out.")


def one_class_settings(settings: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return settings in which a source prior or a label error of the one class is its value.

    They may be mappings of the class, or those of several classes that also have the rest.
    """
    chosen = dict(settings)
    alpha = read_dirichlet(settings.get("source_prior"), names) if names else None
    if alpha is not None:
        chosen["source_prior"] = stats.beta(*alpha)
    for setting in ("source_prior", "label_error"):
        stated = chosen.get(setting)
        if not names or not isinstance(stated, Mapping):
            continue
        by_name = {target_name(name): value for name, value in stated.items()}
        if list(by_name) != list(names):
            raise InputError(
                f"{setting} has {', '.join(map(repr, by_name)) or 'no class'}, but the labelled class is "
                f"{names[0]!r}; correct it."
            )
        value = by_name[names[0]]
        if setting == "label_error" and isinstance(value, Mapping):  # all wrong rows are of the rest
            errors = read_label_errors({names[0]: value}, names, rest=True)
            value = value[REST] if errors.cells else None
        chosen[setting] = value
    return chosen


def estimate_target(problem: Problem, estimator: Any, *, is_auto: bool = False) -> PriorEstimate:
    """Estimate the prior of the only target of a problem.

    `is_auto` says that the user did not choose a method, so that TCPU may replace `estimator` for sketches.
    """
    if problem.kind != "rows":
        return _estimate_from_summaries(problem, estimator, is_auto)
    fitted = fit_source(problem, estimator)
    if isinstance(fitted, TargetPriorEstimator):
        estimate = fitted.estimate_target(fitted.target_of(problem.target))
    else:
        estimate = _estimate_by_rows(fitted, problem.target)
    return with_columns(problem, estimate)


def estimate_classes(problem: Problem, estimator: Any, *, is_auto: bool = False) -> ClassPriors:
    """Estimate the shares of the named classes of a problem in its only target; `is_auto` is as in `estimate_target`.

    One class is the problem of positives and unlabelled rows.
    """
    if len(problem.class_names) == 1:
        estimate = estimate_target(problem, estimator, is_auto=is_auto)
        return ClassPriors.from_binary(problem.class_names[0], estimate, problem.frame)
    if problem.kind != "rows":
        return replace(estimate_classes_from_summaries(problem, estimator, is_auto=is_auto), frame=problem.frame)
    fitted = fit_source(problem, estimator)
    return with_columns_of_classes(problem, fitted.estimate_target(fitted.target_of(problem.target)))


def estimate_classes_of_targets(problem: Problem, estimator: Any, *, is_auto: bool = False) -> ClassPriorsByTarget:
    """Estimate the shares of the named classes of a problem in all its targets, with one fit to the source.

    `is_auto` is as in `estimate_target`.
    """
    if len(problem.class_names) == 1:
        [name] = problem.class_names
        estimates = estimate_targets(problem, estimator)
        results = {target: ClassPriors.from_binary(name, estimate) for target, estimate in estimates.items()}
        return ClassPriorsByTarget(results, by=problem.by, frame=problem.frame)
    if problem.kind != "rows":
        return estimate_classes_of_sketched_targets(problem, estimator, is_auto=is_auto)
    fitted, warnings, results, mixtures = fit_source(problem, estimator), WarningsByName("target"), {}, []
    groups: dict[str, int] = {}
    for name, target in problem.targets.items():
        with warnings.collect(name):
            priors, mixture = fitted.estimate_jointly(fitted.target_of(target), groups)
        results[name] = with_columns_of_classes(problem, priors)
        mixtures.append(mixture)
    warnings.issue()
    is_audited = any(priors.audited is not None for priors in results.values())  # then the tables are not all
    joint = None if is_audited else JointMixtures.from_mixtures(mixtures)
    return ClassPriorsByTarget(results, joint=joint, by=problem.by, frame=problem.frame)


def with_columns_of_classes(problem: Problem, priors: ClassPriors) -> ClassPriors:
    """Return shares of classes with how each column was encoded, and with the library of data frames of the input."""
    results = {name: with_columns(problem, estimate) for name, estimate in priors.items()}
    return replace(priors, results=results, frame=problem.frame)


def _estimate_from_summaries(problem: Problem, estimator: Any, is_auto: bool) -> PriorEstimate:
    """Estimate a target prior from samples that are not tables in memory.

    "counts" are histograms of scores, "moments" are sketches, "chunks" are streams of rows.
    """
    samples = {"positive": problem.positive.data, "unlabeled": problem.unlabeled.data, "target": problem.target.data}
    kinds = {sample.kind for sample in (problem.positive, problem.unlabeled, problem.target)}
    weights, drop = problem.columns.weights, problem.drop
    if {"counts", "moments"} <= kinds:
        raise InputError("sketches and histograms are for different methods; pass three of one kind.")
    if "moments" in kinds and is_auto:
        warn(
            "The samples are sketches, which only TCPU can use, so method='auto' is 'tcpu' here. Pass method='tcpu', "
            "or histograms of a ScoreModel for the default method.",
            ApproximationWarning,
        )
        names = ("source_prior", "label_error", "scenario", "confidence", "random_state", "standardize")
        estimator = TCPU(**{name: getattr(estimator, name) for name in names})
    if kinds != {"chunks"}:  # a sketch or a histogram fixes columns and scale, also for chunks
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
        check_weights(weights)
        if isinstance(estimator, TCPU) and estimator.embedding == "exact":
            tables, cluster_sums = gather(samples, drop, weights)
            options = InputOptions.from_arguments(weights=weights, drop=drop, stream=False)
            return estimate_target(load_problem(**tables, options=options), estimator.set_params(device=cluster_sums))
    return estimate_streams(estimator, samples, drop, weights)


def fit_source(problem: Problem, estimator: Any) -> Any:
    """Fit an estimator to the positives and unlabelled rows of a problem, and return it.

    An estimator that is not of this library gets arrays, ``fit(X, y)`` with 1 for positives, instead of a Source.
    """
    if isinstance(estimator, PUEstimator):
        is_multiclass = isinstance(estimator, MulticlassShift)
        source = estimator.class_source_of(problem) if is_multiclass else estimator.source_of(problem)
        for sample in problem.targets.values():  # before the fit, which may take long or lack a package
            estimator.check_metadata(sample.metadata)
        return estimator.fit_classes(source) if is_multiclass else estimator.fit_source(source)
    source = Source.from_samples(problem.positive, problem.unlabeled, scenario="case-control", standardize=False)
    arguments = metadata_arguments(estimator, source.metadata)
    return estimator.fit(source.table.values, source.labeled.astype(int), **arguments)


def _estimate_by_rows(fitted: Any, target: Sample) -> PriorEstimate:
    """Estimate the prior of a target by an estimator that is not of this library: it takes arrays, not a Target."""
    estimate: PriorEstimate = fitted.estimate(target.data.values, **metadata_arguments(fitted, target.metadata))
    return estimate


def _estimate_jointly(fitted: Any, target: Sample) -> tuple[PriorEstimate, RatioInfluence | None]:
    """Return the estimate of a target's prior and its influence function, None if the method has none."""
    if isinstance(fitted, TargetPriorEstimator):
        return fitted.estimate_jointly(fitted.target_of(target))
    return _estimate_by_rows(fitted, target), None


def with_columns(problem: Problem, estimate: PriorEstimate) -> PriorEstimate:
    """Return the estimate with ``details["columns"]``, how each column was encoded; unchanged if none was."""
    origin = problem.unlabeled.data.origin
    if origin is None or not isinstance(estimate, PriorEstimate):
        return estimate
    return replace(estimate, details={**estimate.details, "columns": origin.columns})


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
    estimates: dict[str, PriorEstimate], influences: Sequence[RatioInfluence | None], confidence: float, by: str | None
) -> PriorEstimates:
    """Combine estimates of targets of one source; `influences` are those of the estimates, in the same order.

    `by` is the column that distinguishes the targets, None if they are separate tables. Unless every target has an
    influence function, the result has no simultaneous band and no joint error.
    """
    known = [influence for influence in influences if influence is not None]
    if len(known) < len(influences):
        return PriorEstimates(estimates, by=by)
    mean_prior = float(np.mean([estimate.source_prior for estimate in estimates.values()]))
    joint = JointRatios.from_influences(known, mean_prior)
    band = _band(estimates, known, joint.single_confidence(confidence), confidence)
    return PriorEstimates(estimates, joint, band, by=by)


def estimate_strata(problem: Problem, estimator: Any, source_prior: Any = None) -> PriorEstimates:
    """Estimate the prior of each stratum from the source rows of that stratum, and of the whole target from all strata.

    `source_prior` is one prior for all strata, a mapping by stratum, or None for that of the estimator.
    """
    label_error = getattr(estimator, "label_error", None)
    if label_error is not None and not read_label_error(label_error).is_point:
        raise InputError(
            f"label_error is {read_label_error(label_error)}, but with strata it must be a number; pass the most "
            "likely one, or estimate the strata separately."
        )
    strata = _split_strata(problem)
    priors = _strata_priors(source_prior, list(strata))
    estimates, influences, members, weights, warnings = {}, [], [], [], WarningsByName("stratum")
    for name, stratum in strata.items():
        stratum_estimator = clone(estimator)
        if priors[name] is not None:
            stratum_estimator.set_params(source_prior=priors[name])
        with warnings.collect(name):
            fitted = fit_source(stratum, stratum_estimator)
            estimate, influence = _estimate_jointly(fitted, stratum.target)
        estimates[name] = with_columns(problem, estimate)
        influences.append(influence)
        members.append(_members(fitted, stratum))
        target_weights = stratum.target.metadata.weights
        weights.append(np.ones(len(stratum.target.data)) if target_weights is None else target_weights)
    warnings.issue()
    confidence = PriorEstimates(estimates).confidence
    shares, size = _stratum_shares(weights, [member.target for member in members])
    has_common_prior = not isinstance(source_prior, Mapping)
    whole = pooled(
        [*estimates.values()], influences, confidence, shares, size, common_prior=has_common_prior, members=members
    )
    known, band = [influence for influence in influences if influence is not None], None
    if len(known) == len(influences):
        # the sources of the strata differ, so their errors are independent: the confidence of each interval is that of
        # the two-sided quantile of the largest of as many independent standard normal variables
        single = float(2 * ndtr(largest_normal(np.eye(len(known)), confidence)) - 1)
        band = _band(estimates, known, single, confidence)
    return PriorEstimates(estimates, band=band, by=problem.by, pooled=whole, frame=problem.frame)


def _split_strata(problem: Problem) -> dict[str, Problem]:
    """Split a problem into one for each value of its column `by`; refuse a value that a sample does not have."""
    by = str(problem.by)
    samples = {"target": problem.target, "unlabeled": problem.unlabeled, "positive": problem.positive}
    rows = {role: rows_by_value(sample.data, by) for role, sample in samples.items()}
    # in the order of the target, then those that only the source has
    strata = list(rows["target"] | rows["unlabeled"] | rows["positive"])
    split: dict[str, dict[str, Sample]] = {stratum: {} for stratum in strata}
    for role, sample in samples.items():
        for stratum in strata:
            if stratum not in rows[role]:
                raise InputError(
                    f"{sample.data.name} has no row of stratum {stratum!r} (column {by!r}), which another table has; "
                    "leave the stratum out everywhere, or join it to another."
                )
            part = sample.take(rows[role][stratum], f"{sample.data.name}, stratum {stratum!r}")
            check_sizes(**{part.data.name: len(part.data)})
            split[stratum][role] = part
    return {
        stratum: Problem(
            {"": parts["positive"]}, parts["unlabeled"], {"": parts["target"]}, problem.columns, problem.drop
        )
        for stratum, parts in split.items()
    }


def _strata_priors(source_prior: Any, strata: Sequence[str]) -> dict[str, Any]:
    """Return the source prior by stratum, from one prior for all strata (None: the estimator's) or from a mapping.

    The keys of the mapping may be numbers or dates; it must have exactly the strata.
    """
    if not isinstance(source_prior, Mapping):
        return dict.fromkeys(strata, source_prior)
    by_name = {target_name(stratum): prior for stratum, prior in source_prior.items()}
    missing = [stratum for stratum in strata if stratum not in by_name]
    extra = [stratum for stratum in by_name if stratum not in strata]
    if missing or extra:
        error = f"lacks {', '.join(map(repr, missing))}" if missing else f"has {', '.join(map(repr, extra))} besides"
        raise InputError(f"source_prior {error}; pass one prior for each stratum: {', '.join(map(repr, strata))}.")
    return by_name


def _members(fitted: Any, stratum: Problem) -> Members:
    """Return the names (groups and ids) of a stratum's rows, by which rows of two strata are known to be dependent.

    `fitted` is the estimator of the stratum; its fit numbers the observations of the source, which a group is one of.
    """
    no_names = np.empty(0, dtype=str)
    P, U, target = stratum.positive.metadata, stratum.unlabeled.metadata, stratum.target.metadata
    names, observation = no_names, None
    if P.groups is not None and U.groups is not None:
        names = np.concatenate([P.groups, U.groups])
        layout = getattr(fitted, "_layout", None)  # an estimator that is not of this library has none
        observation = None if layout is None else layout.groups.find(names)
    if P.ids is not None and U.ids is not None and stratum.columns.shared != stratum.columns.groups:
        # a row then has two names, of the same observation; the prefix distinguishes ids from groups
        names = np.concatenate([names, np.char.add("id ", np.concatenate([P.ids, U.ids]))])
        observation = None if observation is None else np.tile(observation, 2)
    return Members(names, no_names if target.groups is None else target.groups, observation)


def _stratum_shares(weights: Sequence[Floats], groups: Sequence[NDArray[np.str_]]) -> tuple[Floats, float]:
    """Return the share of each stratum in the target's total weight, and the target's effective sample size.

    `weights` and `groups` are those of the target rows of each stratum; the groups are empty if there are none.
    """
    totals = np.array([stratum_weights.sum() for stratum_weights in weights])
    names = np.concatenate(groups)
    group_number = np.unique(names, return_inverse=True)[1].reshape(-1) if len(names) else None
    return totals / totals.sum(), effective_size(np.concatenate(weights), group_number)


def _band(
    estimates: Mapping[str, PriorEstimate], influences: Sequence[RatioInfluence], single: float, confidence: float
) -> dict[str, Interval]:
    """Return simultaneous intervals by target, in the order of `influences`.

    Each interval has the confidence `single`, chosen so that all of them together have `confidence`.
    """
    band = {}
    for (name, estimate), influence in zip(estimates.items(), influences, strict=True):
        interval = influence.interval(single, estimate.value)
        band[name] = replace(interval, confidence=confidence, method="simultaneous")
    return band
