"""Estimators that users bring: what they must have, how they are seeded, and what they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from priorshift.errors import InputError
from priorshift.io.row_metadata import RowMetadata


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


def metadata_arguments(estimator: Any, metadata: RowMetadata) -> dict[str, Any]:
    """Return what is known of rows as arguments of `fit` or `estimate`, and refuse what the estimator cannot use.

    Shared rows, and groups that the user did not state, are left out where the estimator does not ask for them.
    """
    shared = metadata.ids if metadata.ids is not None else "identical" if metadata.identical else None
    arguments = {"shared": shared, "audit": metadata.audit, "weights": metadata.weights, "groups": metadata.groups}
    taken = {}
    for name, value in arguments.items():
        if value is None:
            continue
        if has_fit_parameter(estimator, name) and getattr(estimator, f"takes_{name}", True):
            taken[name] = value
        elif not (name == "shared" or (name == "groups" and metadata.implied_groups)):
            raise InputError(
                f"{type(estimator).__name__} takes no {name}; leave it out, or use WitnessShift, the default."
            )
    return taken
