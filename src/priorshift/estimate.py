"""The front door: three tables in, one estimate out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from priorshift import methods
from priorshift.errors import InputError, SharedRowsWarning, warn
from priorshift.input.estimators import check_estimator, rows_for, shared_for
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
) -> PriorEstimate:
    """Estimate the share of positives in the target population.

    Parameters
    ----------
    positive, unlabeled, target : array-like, data frame, or path of a CSV or Parquet file
        Confirmed positives and an unlabelled sample of the source population, and an unlabelled sample of the
        target population. Columns are matched by name where there are names.
    method : {"auto", "mixture", "tcpu", "km2-ls", "drpu"} or estimator
        "auto" is :class:`TCPU` where the source prior is given, and :class:`MixtureShift` ("mixture") where it is to be
        estimated: the smallest error in the library's studies (see the guide). An estimator, such as
        ``TCPU(0.2, kernel="laplace")``, keeps its own settings; then leave `source_prior`, `confidence`,
        `random_state` and `standardize` out.
    source_prior : float, (low, high), distribution, estimator or None
        Share of positives in the source population, if it is known, or, of TCPU, roughly known: a range such as
        (0.1, 0.2), or a distribution such as ``scipy.stats.beta(37.5, 213.5)``. None estimates it: "auto" and "mixture"
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

    Returns
    -------
    PriorEstimate
        Which prints as one line.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=500, n_target=500, shared=False, random_state=1)
    >>> print(ps.estimate_prior(s.positive, s.unlabeled, s.target, source_prior=0.2))
    target prior 0.607, 95% interval 0.549 to 0.675 (TCPU, source prior 0.2)
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
    aside = [] if shared is None or shared == "identical" else [shared]
    tables = [
        read_table(unlabeled, "unlabeled", aside, drop),
        read_table(positive, "positive", aside, drop),
        read_table(target, "target", drop=[*drop, *aside]),
    ]
    check_dropped(tables, drop)
    return estimate_from_tables(estimator, *match_columns(tables), shared=shared)


def estimate_from_tables(
    estimator: Any, unlabeled: Table, positive: Table, target: Table, *, shared: str | None = None
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

    Returns
    -------
    PriorEstimate
    """
    check_sizes(**{target.name: len(target.values)})
    X, y, known = join_source(unlabeled, positive, shared)
    # one without a scenario, KM2-LS, does not use the unlabelled rows
    if known is None and getattr(estimator, "scenario", None) == "case-control":
        warn_of_shared_rows(X, y)
    fitted = estimator.fit(rows_for(estimator, X), y, **shared_for(estimator, known))
    estimate: PriorEstimate = fitted.estimate(rows_for(estimator, target))
    return estimate


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
