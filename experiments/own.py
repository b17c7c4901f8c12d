"""A researcher's own estimator among the methods, named ``package.module:Class``.

It is made without arguments, but for ``random_state`` where it has that parameter, fitted by ``fit(X, y)``, or
``fit(X, y, shared=ids)`` where it takes that, and asked by ``estimate(X_target)`` for a number or a `PriorEstimate`.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from priorshift.errors import InputError


def is_own(name: str) -> bool:
    return ":" in name


def load(name: str) -> type:
    """The class that `name` names, if it is of the form that is needed."""
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise InputError(f"{name!r} names no class; write package.module:Class.")
    try:
        loaded = getattr(importlib.import_module(module), attribute, None)
    except Exception as error:  # whatever the code of a stranger does
        raise InputError(
            f"{name}: {module} cannot be imported ({type(error).__name__}: {error}); run where Python finds it."
        ) from error
    if loaded is None:
        raise InputError(f"{name}: {module} has no {attribute}; check its spelling.")
    missing = [method for method in ("fit", "estimate") if not callable(getattr(loaded, method, None))]
    if not isinstance(loaded, type) or missing:
        what = f"has no {' and no '.join(missing)}" if missing else "is no class"
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


def make(name: str, seed: int) -> Any:
    loaded = load(name)
    return loaded(random_state=seed) if "random_state" in inspect.signature(loaded).parameters else loaded()


def fit(estimator: Any, X: Any, y: Any, ids: Any) -> Any:
    """Shared rows are told to those who ask; the fitted object, whatever `fit` returns."""
    takes = inspect.signature(estimator.fit).parameters
    estimator.fit(X, y, **({"shared": ids} if "shared" in takes else {}))
    return estimator
