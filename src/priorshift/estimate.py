"""The front door: three tables in, one estimate out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from priorshift import methods
from priorshift.errors import InputError, SharedRowsWarning, warn
from priorshift.input.enough import check_sizes, check_source_apart
from priorshift.input.estimators import audit_for, check_estimator, rows_for, shared_for, told_for
from priorshift.input.observations import comparable_ids, row_codes
from priorshift.input.samples import as_samples, reader
from priorshift.input.tables import Table
from priorshift.input.told import Columns, Told
from priorshift.result import PriorEstimate
from priorshift.sketch.any_size import estimate_at_any_size, is_summary, needs_batches, open_samples
from priorshift.sketch.sketch import Sketch


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
    told = Told(shared, audit, weights, groups).checked(drop)
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
    told: Told,
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
    told : Told
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


def _check_batches(told: Told, encoder: Any) -> None:
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
    positive: Any, unlabeled: Any, target: Any, told: Told, drop: Sequence[str], encoder: Any
) -> tuple[Table, Table, Table]:
    """Read three samples, and make numbers of them.

    Parameters
    ----------
    positive, unlabeled, target : array-like, data frame, or path of a CSV or Parquet file
        As in `estimate_prior`.
    told : Told
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
    estimator: Any, unlabeled: Table, positive: Table, target: Table, *, told: Told | None = None
) -> PriorEstimate:
    """Estimate from tables that were read before, whose columns agree.

    Parameters
    ----------
    estimator : estimator
        Of a target prior; it is fitted.
    unlabeled, positive, target : Table
        The three samples.
    told : Told or None
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
    estimator: Any, unlabeled: Table, positive: Table, target: Table, *, told: Told | None = None
) -> tuple[Any, dict[str, Any]]:
    """Fit an estimator to the source.

    Parameters
    ----------
    estimator : estimator
        Of a target prior; it is fitted.
    unlabeled, positive, target : Table
        The three samples; of the target only what stands beside its features is read.
    told : Told or None
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
    estimator: Any, unlabeled: Table, positive: Table, target: Table, *, told: Told | None = None
) -> tuple[Table, NDArray[np.intp], dict[str, Any], dict[str, Any]]:
    """Make of tables what `fit` and `estimate` take.

    Parameters
    ----------
    estimator : estimator
        Of a target prior.
    unlabeled, positive, target : Table
        As in `fit_tables`.
    told : Told or None
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
    told = (told or Told()).with_implied_groups(unlabeled, positive)
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
            SharedRowsWarning,
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
            SharedRowsWarning,
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
