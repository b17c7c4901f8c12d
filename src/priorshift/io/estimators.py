"""Estimators that users bring: what they must have, how they are seeded, and what they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from priorshift.errors import InputError
from priorshift.io.tables import Table


def seeded(estimator: Any, random_state: Any) -> Any:
    """Set a number wherever an estimator has a random_state of None, so that ours decides it.

    Parameters
    ----------
    estimator : estimator
        Of scikit-learn's kind; it is changed.
    random_state : int, Generator or None
        Decides the numbers.

    Returns
    -------
    estimator
        The same one.
    """
    rng = np.random.default_rng(random_state)
    params = estimator.get_params()
    unset = [key for key, value in params.items() if key.split("__")[-1] == "random_state" and value is None]
    return estimator.set_params(**{key: int(rng.integers(2**31)) for key in sorted(unset)}) if unset else estimator


def check_estimator(name: str, estimator: Any, methods: tuple[str, ...], otherwise: str) -> None:
    """Refuse what is no estimator of scikit-learn's kind, or lacks a method.

    Parameters
    ----------
    name : str
        Of the parameter, for the message.
    estimator : object
        What was passed.
    methods : tuple of str
        Methods that it needs besides fit and get_params.
    otherwise : str
        What is expected, for the message.
    """
    if isinstance(estimator, type):
        raise InputError(
            f"{name} is the class {estimator.__name__}, but {otherwise} is expected; pass an instance, such as "
            f"{estimator.__name__}()."
        )
    needed = ("fit", "get_params", *methods)
    lacks = [method for method in needed if not hasattr(estimator, method)]
    if lacks:
        brings = "; BaseEstimator of scikit-learn brings get_params" if lacks == ["get_params"] else ""
        raise InputError(
            f"{name} is {estimator!r}, but it must be {otherwise} with {', '.join(needed)}, and it has no "
            f"{' and no '.join(lacks)}{brings}."
        )


def rows_for(estimator: Any, table: Table) -> Any:
    """The rows as an estimator takes them: ours know a table and its columns, others an array."""
    return table if getattr(estimator, "reads_tables", False) else table.values


def shared_for(estimator: Any, shared: Any) -> dict[str, Any]:
    """The argument `shared` of an estimator's fit, if something is known of shared rows and it asks."""
    return {"shared": shared} if shared is not None and has_fit_parameter(estimator, "shared") else {}


def audit_for(estimator: Any, audit: Any) -> dict[str, Any]:
    """The argument `audit` of an estimator, if something was looked up; one that cannot take it refuses it here."""
    if audit is None:
        return {}
    if not getattr(estimator, "takes_audit", has_fit_parameter(estimator, "audit")):
        raise InputError(
            f"{type(estimator).__name__} takes no audit; leave it out, or use WitnessShift, the default, which does."
        )
    return {"audit": audit}


def told_for(estimator: Any, weights: Any, groups: Any, *, implied: bool = False) -> dict[str, Any]:
    """The arguments `weights` and `groups`, where something is told; one that cannot take them refuses them here.

    Groups that are `implied`, which no user has passed, are left out then.
    """
    if implied and not has_fit_parameter(estimator, "groups"):
        groups = None
    told = {name: value for name, value in (("weights", weights), ("groups", groups)) if value is not None}
    for name in told:
        if not has_fit_parameter(estimator, name):
            raise InputError(
                f"{type(estimator).__name__} takes no {name}; leave them out, or use WitnessShift, the default, which "
                "does."
            )
    return told
