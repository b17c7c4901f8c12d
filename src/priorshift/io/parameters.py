"""Checks of the settings that users pass, and of the estimators that they bring."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError


def check_per_row(values: Any, rows: int, name: str, entry: str) -> NDArray[Any]:
    """An array of shape (rows,) of whatever type; `entry` is what a sentence asks for.

    Examples
    --------
    >>> from priorshift.io.parameters import check_per_row
    >>> check_per_row([["a"], ["b"]], 2, "groups", "one group for each row").tolist()
    ['a', 'b']
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
    """The prior as a float, if it lies strictly between 0 and 1."""
    if not (is_number(prior) and 0 < prior < 1):
        raise InputError(f"{name} is {prior!r}, but it must be a number strictly between 0 and 1, such as 0.2.")
    return float(prior)


def check_confidence(confidence: Any) -> float:
    """The confidence level as a float, if it lies strictly between 0 and 1."""
    if not (is_number(confidence) and 0 < confidence < 1):
        raise InputError(f"confidence is {confidence!r}, but it must lie strictly between 0 and 1; try 0.95.")
    return float(confidence)


def check_number(name: str, value: Any) -> float:
    """A number as a float."""
    if not is_number(value):
        raise InputError(f"{name} is {value!r}, but it must be a number.")
    return float(value)


def check_random_state(random_state: Any) -> None:
    """None, a whole number from 0 on, or what numpy.random.default_rng takes besides."""
    try:
        if isinstance(random_state, bool):
            raise TypeError
        np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state is {random_state!r}, but it must be None, a whole number from 0 on or a numpy Generator."
        ) from None


def check_bandwidth(bandwidth: Any, otherwise: str) -> float:
    """A bandwidth whose square neither overflows nor vanishes."""
    if not (is_number(bandwidth) and 1e-100 < bandwidth < 1e100):
        raise InputError(
            f"bandwidth is {bandwidth!r}, but it must be a positive number (1e-100 to 1e100) or {otherwise}."
        )
    return float(bandwidth)


def check_count(name: str, value: Any, least: int) -> int:
    """A whole number, if it is at least that."""
    if isinstance(value, bool) or not (isinstance(value, (int, np.integer)) and value >= least):
        raise InputError(f"{name} is {value!r}, but it must be a whole number of at least {least}.")
    return int(value)


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse a setting that is none of those allowed."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in allowed):
        raise InputError(f"{name} is {value!r}, but it must be one of {', '.join(map(repr, allowed))}.")


# A setting of one name has one rule, in every estimator that has it.
CHOICES: dict[str, tuple[str, ...]] = {
    "scenario": ("case-control", "censoring"),
    "statistic": ("unbiased", "plug-in"),
    "precision": ("float64", "float32"),
    "embedding": ("auto", "exact", "random-features"),
    "loss": ("sigmoid", "logistic"),
    "predicts": ("auto", "positive", "labeled"),
}
# A spread needs 20 replicates to be known to a sixth; a sample of pairs, a hundred to have a variance.
_LEAST = {"n_bootstrap": 20, "pairs": 100, "max_rows": 10, "fit_rows": 10, "components": 1, "repeats": 1, "folds": 2}
_MAY_BE_NONE = ("pairs", "components")
_FLAGS = ("standardize", "use_km2", "verbose")


def check_settings(settings: dict[str, Any]) -> None:
    """Refuse settings of an estimator that cannot be, as far as their names tell."""
    for name, value in settings.items():
        if name in CHOICES:
            check_choice(name, value, CHOICES[name])
        elif name in _LEAST and not (value is None and name in _MAY_BE_NONE):
            check_count(name, value, _LEAST[name])
        elif name == "confidence":
            check_confidence(value)
        elif name == "random_state":
            check_random_state(value)
        elif name in _FLAGS and not isinstance(value, (bool, np.bool_)):
            raise InputError(f"{name} is {value!r}, but it must be True or False.")


def is_known(source_prior: Any) -> bool:
    """Whether it is meant as knowledge, and to be checked as that: anything but None and an estimator is.

    (A distribution of scipy that was given no parameters has a fit of its own, and is no estimator.)
    """
    is_estimator = hasattr(source_prior, "fit") and not hasattr(source_prior, "ppf")
    return source_prior is not None and (isinstance(source_prior, type) or not is_estimator)


def is_number(value: Any) -> bool:
    """A real number; True and False are none."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


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
