"""Checks of the settings that users pass, and of the estimators that they provide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError
from priorshift.formatting import shorten


def is_number(value: Any) -> bool:
    """Return whether a value is a real number; True and False are not."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _is_random_state(value: Any) -> bool:
    """Return whether NumPy accepts a value as a seed; True and False do not count."""
    try:
        np.random.default_rng(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


Rule = tuple[Callable[[Any], bool], str]  # a function that says whether a value is accepted, and what is expected


def _choice(*allowed: Any) -> Rule:
    """Return the rule of a setting that must be one of the `allowed` values, which are texts, None or other objects."""
    # arrays have no single truth value for ==, so only texts are compared by it
    return (
        lambda value: any(value is choice or (isinstance(value, str) and value == choice) for choice in allowed),
        f"one of {', '.join(map(repr, allowed))}",
    )


def _count(least: int, *, optional: bool = False) -> Rule:
    """Return the rule of a setting that must be a whole number of at least `least`, or None if `optional`."""
    return (
        lambda value: (
            (value is None and optional)
            or (isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= least))
        ),
        f"a whole number of at least {least}",
    )


def _share(example: float) -> Rule:
    """Return the rule of a setting that must be a number strictly between 0 and 1, such as the `example`."""
    return lambda value: is_number(value) and 0 < value < 1, f"a number strictly between 0 and 1, such as {example}"


_PRIOR = _share(0.2)
_FLAG: Rule = (lambda value: isinstance(value, (bool, np.bool_)), "True or False")
# A setting of one name has one rule in every estimator that has it.
RULES: dict[str, Rule] = {
    "scenario": _choice("case-control", "censoring"),
    "statistic": _choice("unbiased", "plug-in"),
    "precision": _choice("float64", "float32"),
    "embedding": _choice("auto", "exact", "random-features"),
    "loss": _choice("sigmoid", "logistic"),
    "predicts": _choice("auto", "positive", "labeled"),
    "n_bootstrap": _count(20),  # 20 replicates give a standard error to within a sixth
    "pairs": _count(100, optional=True),  # a hundred pairs give a variance
    "components": _count(1, optional=True),
    "max_rows": _count(10),
    "fit_rows": _count(10),
    "repeats": _count(1),
    "folds": _count(2),
    "standardize": _FLAG,
    "use_km2": _FLAG,
    "verbose": _FLAG,
    "confidence": _share(0.95),
    "random_state": (_is_random_state, "None, a whole number from 0 on or a numpy Generator"),
}


def check_settings(settings: dict[str, Any], rules: Mapping[str, Rule] = RULES) -> None:
    """Refuse settings that break the rule for their name; names without a rule are not checked."""
    for name, value in settings.items():
        if name in rules:
            accepts, expected = rules[name]
            if not accepts(value):
                raise InputError(f"{name} is {shorten(repr(value))}, but it must be {expected}.")


def as_float(value: Any) -> float | None:
    """Return float(value), which may be NaN or infinite; None if the value is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def check_per_row(values: Any, rows: int, name: str, entry: str) -> NDArray[Any]:
    """Return values with one entry per row as an array of shape (rows,).

    Messages call the values `name` and say by `entry` what is expected, such as "one group for each row".
    """
    try:
        column = np.asarray(values)
    except (TypeError, ValueError):
        raise InputError(f"{name} has entries of different lengths; pass {entry}.") from None
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (rows,):
        raise InputError(f"{name} has shape {column.shape} but the sample has {rows} rows; pass {entry}.")
    return column


def check_prior(prior: Any, name: str = "source_prior") -> float:
    """Return a class prior as a float; refuse one that is not a number strictly between 0 and 1."""
    check_settings({name: prior}, {name: _PRIOR})
    return float(prior)


def check_number(name: str, value: Any) -> float:
    """Return a number as a float; refuse anything else. Messages call it `name`."""
    check_settings({name: value}, {name: (is_number, "a number")})
    return float(value)


def check_bandwidth(bandwidth: Any, alternatives: str) -> float:
    """Return a kernel bandwidth as a float; refuse one that is not a positive number.

    `alternatives` says in messages what else the setting may be, such as "'median'".
    """
    # squares of numbers outside this range may overflow or underflow
    if not (is_number(bandwidth) and 1e-100 < bandwidth < 1e100):
        raise InputError(
            f"bandwidth is {shorten(repr(bandwidth))}, but it must be a positive number (1e-100 to 1e100) or "
            f"{alternatives}."
        )
    return float(bandwidth)


def check_count(name: str, value: Any, least: int) -> int:
    """Return a whole number as an int; refuse anything else, and numbers below `least`."""
    check_settings({name: value}, {name: _count(least)})
    return int(value)


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse a setting that is not one of the `allowed` values, which are texts, None or other objects."""
    check_settings({name: value}, {name: _choice(*allowed)})


def is_known(source_prior: Any) -> bool:
    """Return whether the source prior is a value (number, range or distribution), not None or an estimator to fit.

    A class counts as known, so that a later check refuses it.
    """
    # scipy's distributions have a `fit` too; `ppf` distinguishes them from estimators
    is_estimator = hasattr(source_prior, "fit") and not hasattr(source_prior, "ppf")
    return source_prior is not None and (isinstance(source_prior, type) or not is_estimator)


def seeded(estimator: Any, random_state: Any) -> Any:
    """Replace each random_state that is None, of a scikit-learn estimator and its parts, by a drawn seed.

    Returns the estimator, which is modified; the seeds are drawn from the generator or seed `random_state`.
    """
    rng = np.random.default_rng(random_state)
    for key, value in sorted(estimator.get_params().items()):
        if key.split("__")[-1] == "random_state" and value is None:
            estimator.set_params(**{key: int(rng.integers(2**31))})
    return estimator


def check_estimator(name: str, estimator: Any, methods: tuple[str, ...], expected: str) -> None:
    """Refuse an object that is not an instance of a scikit-learn estimator with these `methods`.

    Messages call the object `name` and say by `expected` what it must be, such as "a classifier".
    """
    if isinstance(estimator, type):
        raise InputError(
            f"{name} is the class {estimator.__name__}, but {expected} is expected; pass an instance, such as "
            f"{estimator.__name__}()."
        )
    required = ("fit", "get_params", *methods)
    missing = [method for method in required if not hasattr(estimator, method)]
    if missing:
        raise InputError(
            f"{name} is {estimator!r}, but it must be {expected} with {', '.join(required)}, and it has no "
            f"{' and no '.join(missing)}."
        )
