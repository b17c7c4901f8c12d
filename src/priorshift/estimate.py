"""The front door: three tables in, one estimate out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from priorshift import methods
from priorshift.arrays import Floats
from priorshift.errors import InputError, SharedRowsWarning, warn
from priorshift.input.estimators import audit_for, check_estimator, rows_for, shared_for
from priorshift.input.looked_up import read_classes
from priorshift.input.observations import comparable_ids, row_codes
from priorshift.input.source import check_sizes
from priorshift.input.tables import Table, check_dropped, match_columns, read_table
from priorshift.result import PriorEstimate


def estimate_prior(
    positive: Any,
    unlabeled: Any,
    target: Any,
    *,
    method: Any = "auto",
    source_prior: Any = None,
    confidence: float | None = None,
    random_state: int | np.random.Generator | None = None,
    standardize: bool | None = None,
    shared: str | None = None,
    drop: Sequence[str] = (),
    audit: str | Mapping[str, Any] | None = None,
) -> PriorEstimate:
    """Estimate the share of positives in the target population.

    Parameters
    ----------
    positive, unlabeled, target : array-like, data frame, or path of a CSV or Parquet file
        Confirmed positives and an unlabelled sample of the source population, and an unlabelled sample of the
        target population. Columns are matched by name where there are names.
    method : {"auto", "witness", "tcpu", "km2-ls", "drpu"} or estimator
        "auto" is :class:`WitnessShift` ("witness"), of the smallest error in the library's studies (see the guide). An
        estimator, such as ``TCPU(0.2, kernel="laplace")``, keeps its own settings; then leave `source_prior`,
        `confidence`, `random_state` and `standardize` out.
    source_prior : float, (low, high), distribution, estimator or None
        Share of positives in the source population, if it is known, exactly or roughly: a range such as
        (0.1, 0.2), or a distribution such as ``scipy.stats.beta(37.5, 213.5)``. None estimates it: "auto" and "witness"
        by :class:`MixturePrior`, "tcpu" by :class:`KM2`.
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
    settings = {"source_prior": source_prior, "confidence": confidence, "random_state": random_state,
                "standardize": standardize}  # fmt: skip
    estimator = _estimator(method, {name: value for name, value in settings.items() if value is not None})
    drop = [drop] if isinstance(drop, str) else list(drop)
    if shared is not None and not isinstance(shared, str):
        raise InputError(
            f"shared is {type(shared).__name__}, but it must be None, 'identical' or the name of an id column; to pass "
            "ids themselves use TCPU().fit(X, y, shared=ids)."
        )
    if shared in drop:
        raise InputError(f"the column {shared!r} is both shared and dropped; it must be one of them.")
    if not (audit is None or isinstance(audit, str)):
        _check_audits(audit)
    aside = [] if shared is None or shared == "identical" else [shared]
    column = [audit] if isinstance(audit, str) else []
    for other, use in ((aside, "shared"), (drop, "dropped")):
        if set(column) & set(other):
            raise InputError(f"the column {audit!r} is both audit and {use}; it must be one of them.")
    tables = [
        read_table(unlabeled, "unlabeled", aside, drop, column),
        read_table(positive, "positive", aside, drop, column),
        read_table(target, "target", drop=[*drop, *aside], optional=column),
    ]
    check_dropped(tables, drop)
    return estimate_from_tables(estimator, *match_columns(tables), shared=shared, audit=audit)


def estimate_from_tables(
    estimator: Any,
    unlabeled: Table,
    positive: Table,
    target: Table,
    *,
    shared: str | None = None,
    audit: str | Mapping[str, Any] | None = None,
) -> PriorEstimate:
    """Estimate from tables that were read before, whose columns agree.

    Parameters
    ----------
    estimator : estimator
        Of a target prior; it is fitted.
    unlabeled, positive, target : Table
        The three samples.
    shared : None, "identical" or str
        As in `estimate_prior`.
    audit : None, str or mapping
        As in `estimate_prior`; a column is among those set aside.

    Returns
    -------
    PriorEstimate
    """
    check_sizes(**{target.name: len(target.values)})
    X, y, known = join_source(unlabeled, positive, shared)
    # one without a scenario, KM2-LS, does not use the unlabelled rows
    if known is None and getattr(estimator, "scenario", None) == "case-control":
        warn_of_shared_rows(X, y)
    of_source, of_target = read_audits(unlabeled, positive, target, audit)
    arguments = shared_for(estimator, known) | audit_for(estimator, of_source)
    asked = audit_for(estimator, of_target)
    fitted = estimator.fit(rows_for(estimator, X), y, **arguments)
    estimate: PriorEstimate = fitted.estimate(rows_for(estimator, target), **asked)
    return estimate


def read_audits(
    unlabeled: Table, positive: Table, target: Table, audit: str | Mapping[str, Any] | None
) -> tuple[Floats | None, Floats | None]:
    """Read what was looked up.

    Parameters
    ----------
    unlabeled, positive, target : Table
        The three samples.
    audit : None, str or mapping
        As in `estimate_prior`.

    Returns
    -------
    source : ndarray or None
        A number for each positive and then each unlabelled row, as `fit` takes it; None where nothing was looked up.
    target : ndarray or None
        A number for each row of the target, as `estimate` takes it.
    """
    tables = {"positive": positive, "unlabeled": unlabeled, "target": target}
    if audit is None:
        return None, None
    if isinstance(audit, str):
        columns = {key: table.aside[audit] for key, table in tables.items() if audit in table.aside}
        if not {"unlabeled", "target"} & set(columns):
            raise InputError(
                f"neither {unlabeled.name} nor {target.name} has a column {audit!r}; name the column of the audit."
            )
        names = {key: f"column {audit!r} of {tables[key].name}" for key in columns}
    else:
        columns = {key: values for key, values in audit.items() if values is not None}
        names = {key: f"the audit of {key}" for key in columns}
    classes = {key: read_classes(columns[key], len(tables[key].values), names[key]) for key in columns}
    found = {key: column for key, column in classes.items() if not np.isnan(column).all()}
    if not {"unlabeled", "target"} & set(found):
        raise InputError(f"no row of {' and '.join(names.values()) or 'audit'} has a class; leave audit out.")
    if "unlabeled" not in found:
        return None, found["target"]
    of_positive = found.get("positive", np.full(len(positive.values), np.nan))
    return np.concatenate([of_positive, found["unlabeled"]]), found.get("target")


def _check_audits(audit: Any) -> None:
    if not (isinstance(audit, Mapping) and audit and set(audit) <= {"unlabeled", "target"}):
        got = (
            f"holds {', '.join(map(repr, audit)) or 'nothing'}"
            if isinstance(audit, Mapping)
            else f"is of type {type(audit).__name__}"
        )
        raise InputError(
            f'audit {got}, but the name of a column, or {{"unlabeled": values}}, {{"target": values}} or both are '
            "expected; pass one of them."
        )


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
    if positive.values.shape == unlabeled.values.shape and np.array_equal(positive.values, unlabeled.values):
        raise InputError(
            f"positive and unlabeled are the same {len(positive.values)} rows, so positives cannot be told from the "
            "population; pass the labelled positives and a sample of the whole population."
        )
    values = np.concatenate([positive.values, unlabeled.values])
    X = Table("the positive and unlabeled rows", values, unlabeled.columns)
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


def _estimator(method: Any, settings: dict[str, Any]) -> Any:
    if hasattr(method, "estimate") and hasattr(method, "fit") and not isinstance(method, type):
        for name in settings:
            raise InputError(f"{name} was passed beside an estimator as method; set it in the estimator.")
        check_estimator("method", method, ("estimate",), "the name of a method or an estimator")
        return clone(method)
    chosen = methods.choose(method, settings)
    for name in chosen.missing(settings):
        raise InputError(f"method={chosen.name!r} uses no {name}; leave it out.")
    return chosen.estimator(**settings)
