"""The front door: three tables in, one estimate out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from priorshift.drpu import DRPU
from priorshift.errors import InputError, SharedRowsWarning, warn
from priorshift.estimator import check_sizes
from priorshift.km_ls import KM2LS
from priorshift.mixture_shift import MixtureShift
from priorshift.parameters import check_choice
from priorshift.result import PriorEstimate
from priorshift.shared_rows import comparable_ids, row_codes
from priorshift.tables import Table, check_dropped, match_columns, read_table
from priorshift.tcpu import TCPU

METHODS = ("auto", "mixture", "tcpu", "km2-ls", "drpu")


def estimate_prior(
    positive: Any,
    unlabeled: Any,
    target: Any,
    *,
    method: Any = "auto",
    source_prior: Any = None,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = None,
    standardize: bool = True,
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
        `random_state` and `standardize` alone.
    source_prior : float, estimator or None
        Share of positives in the source population, if it is known; None estimates it: "auto" and "mixture" by
        :class:`MixturePrior`, "tcpu" by :class:`KM2`.
    confidence : float
        Of the interval.
    random_state : int, Generator or None
        Decides everything random. (TCPU with a known prior and its default interval draws nothing.)
    standardize : bool
        Scale every column by the mean and spread of the unlabelled source sample; columns are rarely on one
        scale. The target is never scaled by itself: that would remove the shift.
    shared : None, "identical" or name of an id column
        Whether some positives are also rows of the unlabelled sample, and how to recognise them.
    drop : sequence of str
        Columns that are not features.

    Returns
    -------
    PriorEstimate

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=500, n_target=500, shared=False, random_state=1)
    >>> print(ps.estimate_prior(s.positive, s.unlabeled, s.target, source_prior=0.2))
    target prior 0.607, 95% interval 0.549 to 0.675 (TCPU, source prior 0.2)
    """
    estimator = _estimator(method, source_prior, confidence, random_state, standardize)
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
    """The same for tables already read, whose columns agree."""
    check_sizes(**{target.name: len(target.values)})
    # KM2-LS has no scenario: it does not use the unlabelled rows
    X, y, told = join_source(unlabeled, positive, shared, ask=getattr(estimator, "scenario", None) == "case-control")
    estimate: PriorEstimate = estimator.fit(X, y, **told).estimate(target)
    return estimate


def join_source(
    unlabeled: Table, positive: Table, shared: str | None, *, ask: bool
) -> tuple[Table, NDArray[np.intp], dict[str, Any]]:
    """X and y as `fit` takes them, and what it is told of shared rows; `ask` warns where nobody told."""
    check_sizes(**{table.name: len(table.values) for table in (positive, unlabeled)})
    if positive.values.shape == unlabeled.values.shape and np.array_equal(positive.values, unlabeled.values):
        raise InputError(
            f"positive and unlabeled are the same {len(positive.values)} rows, so positives cannot be told from the "
            "population; pass the labelled positives and a sample of the whole population."
        )
    values = np.concatenate([positive.values, unlabeled.values])
    X = Table("the positive and unlabeled rows", values, unlabeled.columns)
    y = np.repeat([1, 0], [len(positive.values), len(unlabeled.values)])
    told: dict[str, Any] = {}
    if shared == "identical":
        told["shared"] = "identical"
    elif shared is not None:
        ids = [comparable_ids(table.aside[shared]) for table in (positive, unlabeled)]
        told["shared"] = np.concatenate(ids)
        if not np.isin(ids[0], ids[1]).any():
            warn(
                f"No id of column {shared!r} stands in both source tables, so no row is taken as shared; check them, "
                "or leave shared out.",
                SharedRowsWarning,
            )
    elif ask:
        _warn_of_shared_rows(values, len(positive.values))
    return X, y, told


def _estimator(method: Any, source_prior: Any, confidence: float, random_state: Any, standardize: bool) -> Any:
    if hasattr(method, "estimate") and hasattr(method, "fit") and not isinstance(method, type):
        given = {"source_prior": source_prior is not None, "confidence": confidence != 0.95}
        given |= {"random_state": random_state is not None, "standardize": standardize is not True}
        for name in (name for name, passed in given.items() if passed):
            raise InputError(f"{name} was passed beside an estimator as method; set it in the estimator.")
        return clone(method)
    check_choice("method", method, METHODS)
    if method == "km2-ls":
        if source_prior is not None:
            raise InputError("method='km2-ls' uses no source_prior; leave it out.")
        return KM2LS(confidence=confidence, random_state=random_state, standardize=standardize)
    if method == "auto":
        method = "mixture" if source_prior is None else "tcpu"
    chosen = {"mixture": MixtureShift, "drpu": DRPU, "tcpu": TCPU}[method]
    return chosen(source_prior, confidence=confidence, random_state=random_state, standardize=standardize)


def _warn_of_shared_rows(X: NDArray[Any], m: int) -> None:
    """Most positives found again in an otherwise distinct sample are hardly there by chance: ask."""
    codes = row_codes(X)
    if len(np.unique(codes[m:])) < 0.9 * (len(X) - m):
        return  # discrete data repeat themselves
    found = int(np.isin(codes[:m], codes[m:]).sum())
    if found > m / 2:
        warn(
            f"{found} of {m} positive rows also stand in the unlabeled table. If they are the same observations, pass "
            "shared='identical' or the name of an id column; otherwise the estimate and its interval are off.",
            SharedRowsWarning,
        )
