"""Load and fit a user's own estimator, named ``package.module:Class``.

It is created without arguments, except ``random_state`` if it has that parameter, and fitted by ``fit(X, y)``, or
``fit(X, y, shared=ids)`` if it has that parameter. Its ``estimate(X_target)`` returns a number or a `PriorEstimate`.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from priorshift.errors import InputError


def is_custom(name: str) -> bool:
    """Return whether the name is one of a user's class rather than of a method of the tables."""
    return ":" in name


def load_class(name: str) -> type:
    """Import the class and check that it can be used as an estimator."""
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise InputError(f"{name!r} is not the name of a class; write package.module:Class.")
    try:
        loaded = getattr(importlib.import_module(module), attribute, None)
    except Exception as error:  # a user's module may raise anything
        raise InputError(
            f"{name}: {module} cannot be imported ({type(error).__name__}: {error}); run where Python finds it."
        ) from error
    if loaded is None:
        raise InputError(f"{name}: {module} has no {attribute}; check its spelling.")
    missing = [method for method in ("fit", "estimate") if not callable(getattr(loaded, method, None))]
    if not isinstance(loaded, type) or missing:
        what = f"has no {' and no '.join(missing)}" if missing else "is not a class"
        raise InputError(f"{name} {what}; a class with fit(X, y) and estimate(X_target) is expected.")
    try:
        inspect.signature(loaded).bind()
        inspect.signature(loaded.fit).bind(None, None, None)
        inspect.signature(loaded.estimate).bind(None, None)
    except TypeError as error:
        raise InputError(
            f"{name} cannot be called as Class(), fit(X, y) and estimate(X_target) ({error}); give the rest defaults."
        ) from None
    return loaded


def create(name: str, seed: int) -> Any:
    """Return an unfitted estimator of the class."""
    loaded = load_class(name)
    return loaded(random_state=seed) if "random_state" in inspect.signature(loaded).parameters else loaded()


def fit(estimator: Any, X: Any, y: Any, ids: Any) -> Any:
    """Fit the estimator, with shared rows if its `fit` has the parameter, and return it, whatever `fit` returns."""
    parameters = inspect.signature(estimator.fit).parameters
    estimator.fit(X, y, **({"shared": ids} if "shared" in parameters else {}))
    return estimator
