"""What a diagnosis was asked with, in plain values: enough to ask again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from priorshift.input.tables import Table
from priorshift.input.told import Told


def run_settings(
    estimator: BaseEstimator, tables: Sequence[Table], told: Told | None, threshold: float | None, by: str | None = None
) -> dict[str, Any]:
    """Give what differs from the defaults, ready for JSON.

    Parameters
    ----------
    estimator : WitnessShift
        With its parameters.
    tables : sequence of Table
        As they were read, with what was dropped.
    told : Told or None
        What is known of rows.
    threshold : float or None
        As in :func:`priorshift.diagnose`.
    by : str or None
        The column that told several targets apart.

    Returns
    -------
    dict
        By the names that :func:`priorshift.diagnose` and the estimator have for them; "random_state" is always among
        them. What is no plain value is the text that Python shows.

    Examples
    --------
    >>> from priorshift import WitnessShift
    >>> from priorshift.diagnosis.run_settings import run_settings
    >>> run_settings(WitnessShift((0.1, 0.2), random_state=0), [], None, None)
    {'random_state': 0, 'source_prior': [0.1, 0.2]}
    """
    given, usual = estimator.get_params(deep=False), type(estimator)().get_params(deep=False)
    made = {
        name: _plain(value)
        for name, value in given.items()
        if name not in ("verbose", "device") and (name == "random_state" or not _is(value, usual[name]))
    }
    rows = {} if told is None else {name: getattr(told, name) for name in ("shared", "audit", "weights", "groups")}
    dropped = list(dict.fromkeys(column for table in tables for column in table.dropped if column != by))
    more = {**rows, "drop": dropped or None, "threshold": threshold, "by": by}
    return made | {name: _plain(value) for name, value in more.items() if value is not None}


def _is(value: Any, other: Any) -> bool:
    return value is other or (isinstance(value, (int, float, str)) and bool(value == other))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):  # columns that were passed as values
        return {name: "values" for name in value}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    distribution = getattr(value, "dist", None)
    if distribution is not None and hasattr(
        distribution, "name"
    ):  # a frozen distribution, whose own text is an address
        arguments = [*map(repr, value.args), *(f"{name}={number!r}" for name, number in value.kwds.items())]
        return f"scipy.stats.{distribution.name}({', '.join(arguments)})"
    if isinstance(value, np.random.Generator):
        return "a Generator"
    return repr(value)
