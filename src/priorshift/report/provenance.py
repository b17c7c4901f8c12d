"""Provenance of a page: versions, settings in words, and the call in Python that repeats an analysis."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

from priorshift.version import __version__

_PACKAGES = ("numpy", "scipy", "scikit-learn")
_CALL_SETTINGS = ("source_prior", "label_error", "confidence", "random_state", "standardize", "shared", "audit",
                  "weights", "groups", "drop", "threshold", "by", "rest")  # fmt: skip
_ESTIMATOR_SETTINGS = ("source_prior", "label_error", "confidence", "random_state", "standardize", "rest")
_KNOWLEDGE = ("source_prior", "label_error")  # settings that can be ranges and distributions, also by class


def versions() -> dict[str, str]:
    """Return the versions of the packages that computed a result."""
    ours = {"priorshift": __version__, "Python": platform.python_version()}
    return ours | {name: version(name) for name in _PACKAGES}


def python_call(settings: dict[str, Any], *, several: bool, of_classes: bool = False) -> str:
    """Return Python code that repeats the diagnosis of the same tables, given its settings by name.

    `several` says that several targets were diagnosed, and `of_classes` that several classes were labelled.
    """
    lines = ["import priorshift as ps"]
    if any("scipy.stats." in str(settings.get(name, "")) for name in _KNOWLEDGE):
        lines.insert(0, "import scipy.stats")
    source = "positive, unlabeled"
    if of_classes:
        source = "classes, unlabeled" if settings.get("rest", True) else "classes, None"
    arguments = [f"{source}, {'targets' if several else 'target'}"]
    call = {name: settings[name] for name in _CALL_SETTINGS if name in settings}
    # settings that are no argument of the function need an estimator, which then takes all of its settings
    estimator = {name: value for name, value in settings.items() if name not in _CALL_SETTINGS}
    if estimator:
        estimator |= {name: call.pop(name) for name in _ESTIMATOR_SETTINGS if name in call}
        # the source prior first, the seed last
        ordered = sorted(estimator, key=lambda name: (name != "source_prior", name == "random_state"))
        kind = "MulticlassShift" if of_classes else "WitnessShift"
        lines.append(f"estimator = ps.{kind}({_arguments({name: estimator[name] for name in ordered})})")
        arguments.append("method=estimator")
    if call:
        arguments.append(_arguments(call))
    lines.append(f"ps.{'diagnose_targets' if several else 'diagnose'}({', '.join(arguments)})")
    return "\n".join(lines)


def setting(value: Any, digits: int | None = None) -> str:
    """Return the value of a setting as text for people; `digits` are the significant ones of a float."""
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(setting(part, digits) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {setting(part, digits)}" for name, part in value.items())
    return f"{value:.{digits}g}" if isinstance(value, float) and digits is not None else str(value)


def _arguments(settings: dict[str, Any]) -> str:
    """Return settings by name as the keyword arguments of a call in Python, "name=value, name=value"."""
    arguments = []
    for name, value in settings.items():
        text = _knowledge(value) if name in _KNOWLEDGE else repr(value)
        if isinstance(value, dict) and name not in _KNOWLEDGE:  # the values themselves are not stored
            text = "{" + ", ".join(f"{key!r}: …" for key in value) + "}"
        elif isinstance(value, str) and name in ("random_state", "model"):
            text = value  # already the repr of an object
        arguments.append(f"{name}={text}")
    return ", ".join(arguments)


def _knowledge(value: Any) -> str:
    """Return a source prior or label error as Python code: a number, a range, a distribution, or one for each class."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {_knowledge(part)}" for name, part in value.items()) + "}"
    if isinstance(value, str):
        return value  # already the repr of an object
    return repr(tuple(value) if isinstance(value, list) else value)
