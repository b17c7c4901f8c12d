"""The front door: three tables in, one estimate out.

The door for many targets: one fit, an estimate each, and how surely they differ; or stratum by stratum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.base import clone

from priorshift.arrays import Floats
from priorshift.errors import DuplicateRowsWarning, InputError
from priorshift.inference.joint import JointRatios, RatioInfluence, largest_normal
from priorshift.inference.strata import Members, pooled
from priorshift.io.estimators import audit_for, check_estimator, rows_for, shared_for, told_for
from priorshift.io.loader import as_samples, reader
from priorshift.io.observations import comparable_ids, row_codes
from priorshift.io.row_metadata import Columns, RowMetadata
from priorshift.io.tables import Table, match_columns
from priorshift.io.targets import JoinedTargets, frame_library, name_of, read_targets, split_table
from priorshift.io.weights import effective_size
from priorshift.methods import registry as methods
from priorshift.prior_estimates import PriorEstimates
from priorshift.problem import check_sizes, check_source_apart
from priorshift.results import Interval, PriorEstimate
from priorshift.sketch.estimation import estimate_at_any_size, is_summary, needs_batches, open_samples
from priorshift.sketch.sketch import Sketch
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
    settings = {"source_prior": source_prior, "scenario": scenario, "confidence": confidence,
                "random_state": random_state, "standardize": standardize}  # fmt: skip
    if stream is not None and not isinstance(stream, bool):
        raise InputError(f"stream is {stream!r}, but it must be True, False or None.")
    samples = positive, unlabeled, target
    drop = [drop] if isinstance(drop, str) else list(drop)
    told = RowMetadata(shared, audit, weights, groups).checked(drop)
    large = encoder is not None and any(map(needs_batches, samples))  # without an encoder all rows are looked at
    if any(map(is_summary, samples)) or (large if stream is None else stream):
        return estimate_without_rows(
            lambda chosen: make_estimator(chosen, settings), method, *samples, told=told, drop=drop, encoder=encoder
        )
    estimator = make_estimator(method, settings)
    return estimate_from_tables(estimator, *read_three(positive, unlabeled, target, told, drop, encoder), told=told)


def estimate_without_rows(
    make: Callable[[Any], Any],
    method: Any,
    positive: Any,
    unlabeled: Any,
    target: Any,
    *,
    told: RowMetadata,
    drop: Sequence[str] = (),
    encoder: Any = "auto",
) -> PriorEstimate:
    """Estimate from sketches, from histograms, or from rows that are read in batches.

    Parameters
    ----------
    make : callable
        Makes the estimator of a method.
    method : str or estimator
        As in `estimate_prior`; beside a sketch "auto" is "tcpu", which a sketch can answer.
    positive, unlabeled, target : object
        As in `estimate_prior`.
    told : RowMetadata
        What is known of rows.
    drop : sequence of str
        Columns that are not features.
    encoder : {"auto"}, None or transformer
        As in `estimate_prior`.

    Returns
    -------
    PriorEstimate
    """
    samples = open_samples(positive, unlabeled, target)
    if isinstance(method, str) and method == "auto" and any(isinstance(one, Sketch) for one in samples):
        method = "tcpu"
    estimator = make(method)
    _check_batches(told, encoder)
    return estimate_at_any_size(estimator, *samples, drop=drop, weights=told.weights)


def _check_batches(told: RowMetadata, encoder: Any) -> None:
    """Refuse what needs all rows at once."""
    reader(encoder)  # refuses what is none
    if encoder is None:
        raise InputError(
            "encoder=None cannot be had where rows are read in batches, which encode what is no number; leave it out "
            "or pass tables that fit into memory with stream=False."
        )
    needs = {name: getattr(told, name) for name in ("shared", "audit", "groups")}
    needs["encoder"] = None if isinstance(encoder, str) else encoder
    for name, value in needs.items():
        if value is not None:
            raise InputError(
                f"{name} needs all rows at once, but these are read in batches or are no rows; leave it out, or pass "
                "tables that fit into memory with stream=False."
            )


def read_three(
    positive: Any, unlabeled: Any, target: Any, told: RowMetadata, drop: Sequence[str], encoder: Any
) -> tuple[Table, Table, Table]:
    """Read three samples, and make numbers of them.

    Parameters
    ----------
    positive, unlabeled, target : array-like, data frame, or path of a CSV or Parquet file
        As in `estimate_prior`.
    told : RowMetadata
        What is known of their rows.
    drop : sequence of str
        Columns that are no features.
    encoder : {"auto"}, None or transformer
        As in `estimate_prior`.

    Returns
    -------
    unlabeled, positive, target : Table
    """
    read = reader(encoder)
    tables = [
        read(unlabeled, "unlabeled", **told.of_source(drop)),
        read(positive, "positive", **told.of_source(drop)),
        read(target, "target", **told.of_target(drop)),
    ]
    of_unlabeled, of_positive, of_target = as_samples(tables, drop, encoder)
    return of_unlabeled, of_positive, of_target


def estimate_from_tables(
    estimator: Any, unlabeled: Table, positive: Table, target: Table, *, told: RowMetadata | None = None
) -> PriorEstimate:
    """Estimate from tables that were read before, whose columns agree.

    Parameters
    ----------
    estimator : estimator
        Of a target prior; it is fitted.
    unlabeled, positive, target : Table
        The three samples.
    told : RowMetadata or None
        What is known of their rows; columns of it are set aside.

    Returns
    -------
    PriorEstimate
    """
    check_sizes(**{target.name: len(target.values)})
    fitted, asked = fit_tables(estimator, unlabeled, positive, target, told=told)
    estimate: PriorEstimate = fitted.estimate(rows_for(fitted, target), **asked)
    return with_columns(estimate, unlabeled)


def fit_tables(
    estimator: Any, unlabeled: Table, positive: Table, target: Table, *, told: RowMetadata | None = None
) -> tuple[Any, dict[str, Any]]:
    """Fit an estimator to the source.

    Parameters
    ----------
    estimator : estimator
        Of a target prior; it is fitted.
    unlabeled, positive, target : Table
        The three samples; of the target only what stands beside its features is read.
    told : RowMetadata or None
        What is known of their rows; columns of it are set aside.

    Returns
    -------
    estimator : estimator
        Fitted.
    arguments : dict
        Further arguments of its `estimate`, each with an entry for every row of the target.
    """
    X, y, arguments, asked = source_of_tables(estimator, unlabeled, positive, target, told=told)
    return estimator.fit(rows_for(estimator, X), y, **arguments), asked


def source_of_tables(
    estimator: Any, unlabeled: Table, positive: Table, target: Table, *, told: RowMetadata | None = None
) -> tuple[Table, NDArray[np.intp], dict[str, Any], dict[str, Any]]:
    """Make of tables what `fit` and `estimate` take.

    Parameters
    ----------
    estimator : estimator
        Of a target prior.
    unlabeled, positive, target : Table
        As in `fit_tables`.
    told : RowMetadata or None
        As in `fit_tables`.

    Returns
    -------
    X : Table
        All rows of the source.
    y : ndarray of int
        1 for the positives.
    arguments, asked : dict
        Further arguments of `fit` and of `estimate`.
    """
    told = (told or RowMetadata()).with_implied_groups(unlabeled, positive)
    samples = unlabeled, positive, target
    X, y, known = join_source(unlabeled, positive, told.shared)
    # one without a scenario, KM2-LS, does not use the unlabelled rows
    if known is None and getattr(estimator, "scenario", None) == "case-control":
        warn_of_shared_rows(X, y)
    (audit, audit_T), (weights, weights_T), (groups, groups_T) = (
        told.read_audit(*samples),
        told.read("weights", *samples),
        told.read("groups", *samples),
    )
    asked = audit_for(estimator, audit_T) | told_for(estimator, weights_T, groups_T, implied=told.implied)
    arguments = audit_for(estimator, audit) | told_for(estimator, weights, groups, implied=told.implied)
    return X, y, shared_for(estimator, known) | arguments, asked


def with_columns(estimate: PriorEstimate, unlabeled: Table) -> PriorEstimate:
    """Add what was done with each column, where some were encoded.

    Parameters
    ----------
    estimate : PriorEstimate
        Of any target.
    unlabeled : Table
        By which the columns were encoded.

    Returns
    -------
    PriorEstimate
    """
    if unlabeled.origin is None or not isinstance(estimate, PriorEstimate):
        return estimate
    return replace(estimate, details={**estimate.details, "columns": unlabeled.origin.columns})


def join_source(unlabeled: Table, positive: Table, shared: str | None) -> tuple[Table, NDArray[np.intp], Any]:
    """Put the two source tables together, as `fit` takes them.

    Parameters
    ----------
    unlabeled, positive : Table
        With the same columns.
    shared : None, "identical" or str
        As in `estimate_prior`.

    Returns
    -------
    X : Table
        All rows.
    y : ndarray of int
        1 for the positives.
    known : None, "identical" or ndarray
        What is known of shared rows, as `fit` takes it.
    """
    check_sizes(**{table.name: len(table.values) for table in (positive, unlabeled)})
    check_source_apart(positive.values, unlabeled.values)
    values = np.concatenate([positive.values, unlabeled.values])
    X = Table("the positive and unlabeled rows", values, unlabeled.columns, origin=unlabeled.origin)
    y = np.repeat([1, 0], [len(positive.values), len(unlabeled.values)])
    if shared is None or shared == "identical":
        return X, y, shared
    ids = [comparable_ids(table.aside[shared]) for table in (positive, unlabeled)]
    if not np.isin(ids[0], ids[1]).any():
        warn(
            f"No id of column {shared!r} stands in both source tables, so no row is taken as shared; check them, "
            "or leave shared out.",
            DuplicateRowsWarning,
        )
    return X, y, np.concatenate(ids)


def warn_of_shared_rows(X: Table, y: NDArray[np.intp]) -> None:
    """Ask about positives that are found again: most of them in an otherwise distinct sample are hardly chance.

    Parameters
    ----------
    X : Table
        Positives, then unlabelled rows.
    y : ndarray of int
        1 for the positives.
    """
    m = int(y.sum())
    codes = row_codes(X.values)
    if len(np.unique(codes[m:])) < 0.9 * (len(codes) - m):
        return  # discrete data repeat themselves
    again = int(np.isin(codes[:m], codes[m:]).sum())
    if again > m / 2:
        warn(
            f"{again} of {m} positive rows also stand in the unlabeled table. If they are the same observations, pass "
            "shared='identical' or the name of an id column; otherwise the estimate and its interval are off.",
            DuplicateRowsWarning,
        )


def make_estimator(method: Any, settings: Mapping[str, Any]) -> Any:
    """Make the estimator of a method.

    Parameters
    ----------
    method : str or estimator
        As in `estimate_prior`.
    settings : mapping
        Its parameters by their names; None is not given.

    Returns
    -------
    estimator
        Not fitted, and nobody else's.
    """
    settings = {name: value for name, value in settings.items() if value is not None}
    if isinstance(method, type) or hasattr(method, "fit"):
        check_estimator("method", method, ("estimate",), "the name of a method or an estimator")
        for name in settings:
            raise InputError(f"{name} was passed beside an estimator as method; set it in the estimator.")
        return clone(method)
    chosen = methods.choose(method)
    for name in chosen.missing(settings):
        raise InputError(f"method={chosen.name!r} uses no {name}; leave it out.")
    return chosen.estimator(**settings)


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
    settings = {"source_prior": source_prior, "scenario": scenario, "confidence": confidence,
                "random_state": random_state, "standardize": standardize}  # fmt: skip
    for name, column in (("by", by), ("stratify", stratify)):
        if column is not None and not isinstance(column, str):
            raise InputError(f"{name} is {type(column).__name__}, but it must be the name of a column; pass that.")
    drop = [drop] if isinstance(drop, str) else list(drop)
    told = RowMetadata(shared, audit, weights, groups).checked(drop, by=by, stratify=stratify)
    library, read = frame_library(targets, unlabeled, positive), reader(encoder)
    if stratify is not None:
        _check_strata(stratify, by, targets, told)
        tables = [
            read(unlabeled, "unlabeled", **told.of_source(drop, aside=[stratify])),
            read(positive, "positive", **told.of_source(drop, aside=[stratify])),
            read(targets, "target", **told.of_target(drop, aside=[stratify])),
        ]
        made = estimate_strata(
            lambda prior: make_estimator(method, settings | {"source_prior": prior}),
            *as_samples(tables, drop, encoder),
            by=stratify,
            source_prior=source_prior,
            told=told,
        )
        return replace(made, frame=library)
    if isinstance(source_prior, Mapping):
        raise InputError("source_prior is a mapping, which is of strata; pass stratify, or one prior of the source.")
    estimator = make_estimator(method, settings)
    of_unlabeled, of_positive, named = read_several(positive, unlabeled, targets, by, told, drop, encoder)
    made = estimate_targets(estimator, of_unlabeled, of_positive, named, by=by, told=told)
    return replace(made, frame=library)


def read_several(
    positive: Any, unlabeled: Any, targets: Any, by: str | None, told: RowMetadata, drop: Sequence[str], encoder: Any
) -> tuple[Table, Table, list[tuple[str, Table]]]:
    """Read a source and several targets, and make numbers of them.

    Parameters
    ----------
    positive, unlabeled, targets : array-like, data frame, or path of a CSV or Parquet file
        As in `estimate_priors`.
    by : str or None
        As in `estimate_priors`.
    told : RowMetadata
        What is known of their rows.
    drop : sequence of str
        Columns that are no features.
    encoder : {"auto"}, None or transformer
        As in `estimate_priors`.

    Returns
    -------
    unlabeled, positive : Table
    targets : list of (str, Table)
        With their names.
    """
    for name in ("audit", "weights", "groups"):
        columns = getattr(told, name)
        if isinstance(columns, Mapping) and "target" in columns:
            raise InputError(
                f"{name} holds values of 'target', but there are several; put them in a column of the targets and pass "
                "its name."
            )
    read, aside = reader(encoder), [] if by is None else [by]
    named = read_targets(read, targets, by, told.of_target(drop, aside=aside))
    of_source = told.of_source([*drop, *aside])
    source = [read(unlabeled, "unlabeled", **of_source), read(positive, "positive", **of_source)]
    of_unlabeled, of_positive, *several = as_samples([*source, *(table for _, table in named)], drop, encoder)
    split = split_table(several[0], by) if by else [(name, t) for (name, _), t in zip(named, several, strict=True)]
    return of_unlabeled, of_positive, split


def _check_strata(stratify: str, by: str | None, targets: Any, told: RowMetadata) -> None:
    if by is not None:
        raise InputError("by and stratify cannot be combined; estimate the targets one by one, each with stratify.")
    if told.audit is not None:
        raise InputError("audit and stratify cannot be combined; estimate the strata one by one.")
    for name in ("weights", "groups"):
        if isinstance(getattr(told, name), Mapping):
            raise InputError(
                f"{name} is a mapping, but with stratify it must be the name of a column; put it into the tables."
            )
    if isinstance(targets, (Mapping, list, tuple)):
        raise InputError(f"stratify={stratify!r} is for one target, but targets holds {len(targets)}; pass one table.")


def estimate_targets(
    estimator: Any,
    unlabeled: Table,
    positive: Table,
    targets: Sequence[tuple[str, Table]],
    *,
    by: str | None = None,
    told: RowMetadata | None = None,
) -> PriorEstimates:
    """Estimate from tables that were read before.

    Parameters
    ----------
    estimator : estimator
        Of a target prior; it is fitted.
    unlabeled, positive : Table
        The source.
    targets : sequence of (str, Table)
        With their names.
    by : str or None
        The column that told them apart.
    told : RowMetadata or None
        What is known of their rows; columns of it are set aside.

    Returns
    -------
    PriorEstimates
    """
    unlabeled, positive, joined = join_targets(unlabeled, positive, targets, told)
    fitted, asked = fit_tables(estimator, unlabeled, positive, joined.table, told=told)
    estimates, influences, said = {}, [], WarningsByName("target")
    for name, rows in joined.rows.items():
        own = {key: column[rows] for key, column in asked.items()}
        with said.collect(name):
            estimate, influence = _estimated(fitted, joined.part(name), own)
        estimates[name] = with_columns(estimate, unlabeled)
        influences.append(influence)
    said.issue()
    return compared(estimates, influences, getattr(fitted, "confidence", float("nan")), by)


def compared(
    estimates: dict[str, PriorEstimate],
    influences: Sequence[RatioInfluence | None],
    confidence: float,
    by: str | None = None,
) -> PriorEstimates:
    """Put estimates of several targets of one source together, with what they have in common.

    Parameters
    ----------
    estimates : dict of str to PriorEstimate
        By the targets' names.
    influences : sequence of RatioInfluence or None
        What each rests on; where one is not known there is no band, and no difference.
    confidence : float
        Of the band as a whole.
    by : str or None
        The column that told them apart.

    Returns
    -------
    PriorEstimates
    """
    known = [influence for influence in influences if influence is not None]
    if len(known) < len(influences):
        return PriorEstimates(estimates, by=by)
    joint = JointRatios.from_influences(
        known, float(np.mean([estimate.source_prior for estimate in estimates.values()]))
    )
    band = _band(estimates, known, joint.single_confidence(confidence), confidence)
    return PriorEstimates(estimates, joint, band, by=by)


def join_targets(
    unlabeled: Table, positive: Table, targets: Sequence[tuple[str, Table]], told: RowMetadata | None
) -> tuple[Table, Table, JoinedTargets]:
    """Put several targets into one table, with the columns of the source.

    Parameters
    ----------
    unlabeled, positive : Table
        The source.
    targets : sequence of (str, Table)
        With their names.
    told : RowMetadata or None
        What is known of their rows.

    Returns
    -------
    unlabeled, positive : Table
    targets : JoinedTargets
    """
    for _, table in targets:
        _check_rows(table)
    unlabeled, positive, *tables = match_columns([unlabeled, positive, *(table for _, table in targets)])
    if told is not None:  # what no target has is missing, as it is for one
        anywhere = {key for table in tables for key in table.aside}
        tables = [
            replace(full, aside={key: column for key, column in full.aside.items() if key in anywhere})
            for full in map(told.completed, tables)
        ]
    joined = JoinedTargets.of([(name, table) for (name, _), table in zip(targets, tables, strict=True)])
    return unlabeled, positive, joined


def estimate_strata(
    make: Callable[[Any], Any],
    unlabeled: Table,
    positive: Table,
    target: Table,
    *,
    by: str,
    source_prior: Any = None,
    told: RowMetadata | None = None,
) -> PriorEstimates:
    """Estimate each stratum from its own source, and the whole target from all.

    Parameters
    ----------
    make : callable
        Makes an estimator, given the source prior.
    unlabeled, positive, target : Table
        The three samples, with the same columns, and that of the strata set aside.
    by : str
        Its name.
    source_prior : float, (low, high), distribution, estimator, mapping or None
        Of all strata, or of each.
    told : RowMetadata or None
        What is known of their rows; columns of it are set aside.

    Returns
    -------
    PriorEstimates
        With `pooled`.
    """
    told = (told or RowMetadata()).with_implied_groups(unlabeled, positive)
    samples = (target, unlabeled, positive)
    parts = {table.name: dict(split_table(table, by, f"{table.name}, stratum")) for table in samples}
    strata = list(dict.fromkeys(stratum for tables in parts.values() for stratum in tables))
    for name, tables in parts.items():
        for stratum in strata:
            if stratum not in tables:
                raise InputError(
                    f"{name} has no row of stratum {stratum!r} (column {by!r}), which another table has; leave the "
                    "stratum out everywhere, or join it to another."
                )
            _check_rows(tables[stratum])
    priors = _priors_of(source_prior, strata)
    estimates, influences, members, weights, said = {}, [], [], [], WarningsByName("stratum")
    for stratum in strata:
        T, U, P = (tables[stratum] for tables in parts.values())
        with said.collect(stratum):
            fitted, asked = fit_tables(make(priors[stratum]), U, P, T, told=told)
            estimate, influence = _estimated(fitted, T, asked)
        estimates[stratum] = with_columns(estimate, unlabeled)
        influences.append(influence)
        members.append(_members(fitted, U, P, T, told))
        weights.append(asked.get("weights", np.ones(len(T.values))))
    said.issue()
    confidence = next((e.interval.confidence for e in estimates.values() if e.interval is not None), float("nan"))
    common = not isinstance(source_prior, Mapping)
    shares, worth = _stratum_shares(weights, [who.target for who in members])
    whole = pooled([*estimates.values()], influences, confidence, shares, worth, common_prior=common, members=members)
    known = [influence for influence in influences if influence is not None]
    band = None
    if len(known) == len(influences):
        single = float(2 * ndtr(largest_normal(np.eye(len(known)), confidence)) - 1)
        band = _band(estimates, known, single, confidence)
    return PriorEstimates(estimates, band=band, by=by, pooled=whole)


def _members(fitted: Any, unlabeled: Table, positive: Table, target: Table, told: RowMetadata) -> Members:
    """Groups and ids of a stratum's rows, and the observations of the source that they are."""
    source, none = (positive, unlabeled), np.empty(0, dtype=str)
    of_source, of_target = (none if read is None else read for read in told.read("groups", unlabeled, positive, target))
    names, layout = of_source, getattr(fitted, "_layout", None)
    observation = None if layout is None or not len(of_source) else layout.groups.find(of_source)
    if told.shared not in (None, "identical", told.groups):
        ids = np.concatenate([comparable_ids(table.aside[told.shared]) for table in source])
        names = np.concatenate([names, np.char.add("id ", ids)])  # no group is meant by the same word
        observation = None if observation is None else np.tile(observation, 2)
    return Members(names, of_target, observation)


def _stratum_shares(weights: Sequence[Floats], groups: Sequence[NDArray[np.str_]]) -> tuple[Floats, float]:
    """The share of each stratum in the target, and how many independent rows tell it; no groups are empty."""
    of_stratum = np.array([w.sum() for w in weights])
    names = np.concatenate(groups)
    group = np.unique(names, return_inverse=True)[1].reshape(-1) if len(names) else None
    return of_stratum / of_stratum.sum(), effective_size(np.concatenate(weights), group)


def _estimated(fitted: Any, table: Table, asked: dict[str, Any]) -> tuple[PriorEstimate, RatioInfluence | None]:
    """An estimate and what it rests on."""
    asked = without_empty_audit(asked)
    if hasattr(fitted, "estimate_jointly"):
        made: tuple[PriorEstimate, RatioInfluence | None] = fitted.estimate_jointly(rows_for(fitted, table), **asked)
        return made
    return fitted.estimate(rows_for(fitted, table), **asked), None


def without_empty_audit(asked: dict[str, Any]) -> dict[str, Any]:
    """Leave out an audit of no row, which is none.

    Parameters
    ----------
    asked : dict
        Further arguments of `estimate`.

    Returns
    -------
    dict
    """
    if "audit" in asked and np.isnan(asked["audit"]).all():
        return {key: column for key, column in asked.items() if key != "audit"}
    return asked


def _band(
    estimates: Mapping[str, PriorEstimate], influences: Sequence[RatioInfluence], single: float, confidence: float
) -> dict[str, Interval]:
    """The interval of each at the confidence `single`, so that all hold with `confidence`."""
    made = {}
    for (name, estimate), influence in zip(estimates.items(), influences, strict=True):
        own = influence.interval(single, estimate.value)
        made[name] = replace(own, confidence=confidence, method="simultaneous")
    return made


def _check_rows(table: Table) -> None:
    check_sizes(**{table.name: len(table.values)})


def _priors_of(source_prior: Any, strata: Sequence[str]) -> dict[str, Any]:
    """What is known of π in each stratum."""
    if not isinstance(source_prior, Mapping):
        return dict.fromkeys(strata, source_prior)
    given = {name_of(stratum): prior for stratum, prior in source_prior.items()}
    missing, strange = [s for s in strata if s not in given], [s for s in given if s not in strata]
    if missing or strange:
        said = f"lacks {', '.join(map(repr, missing))}" if missing else f"has {', '.join(map(repr, strange))} besides"
        raise InputError(f"source_prior {said}; pass one prior for each stratum: {', '.join(map(repr, strata))}.")
    return given
