"""How a result was made: the versions that made it, and the call that makes it again."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

from priorshift.version import __version__

_PACKAGES = ("numpy", "scipy", "scikit-learn")
_OF_CALL = ("source_prior", "confidence", "random_state", "standardize", "shared", "audit", "weights", "groups", "drop",
            "threshold", "by")  # fmt: skip
_OF_ESTIMATOR = ("source_prior", "confidence", "random_state", "standardize")


def versions() -> dict[str, str]:
    """List what computed it.

    Returns
    -------
    dict
        Names and versions.
    """
    return {"priorshift": __version__, "Python": platform.python_version()} | {
        name: version(name) for name in _PACKAGES
    }


def python_call(settings: dict[str, Any], *, several: bool) -> str:
    """Write the call that gives the same diagnosis of the same tables.

    Parameters
    ----------
    settings : dict
        Of a diagnosis.
    several : bool
        Whether there are several targets.

    Returns
    -------
    str

    Examples
    --------
    >>> from priorshift.report.provenance import python_call
    >>> print(python_call({"source_prior": [0.1, 0.2], "random_state": 0, "scenario": "censoring"}, several=False))
    import priorshift as ps
    estimator = ps.WitnessShift(source_prior=(0.1, 0.2), scenario='censoring', random_state=0)
    ps.diagnose(positive, unlabeled, target, method=estimator)
    """
    others = {name: value for name, value in settings.items() if name not in _OF_CALL}
    lines, of_call = ["import priorshift as ps"], {name: settings[name] for name in _OF_CALL if name in settings}
    if others:
        own = {name: of_call.pop(name) for name in _OF_ESTIMATOR if name in of_call}
        lines.append(f"estimator = ps.WitnessShift({_arguments(_ordered(own | others))})")
    if str(settings.get("source_prior", "")).startswith("scipy.stats."):
        lines.insert(0, "import scipy.stats")
    door, tables = ("diagnose_targets", "targets") if several else ("diagnose", "target")
    arguments = [f"positive, unlabeled, {tables}", *(["method=estimator"] if others else [])]
    arguments += [_arguments(of_call)] if of_call else []
    return "\n".join([*lines, f"ps.{door}({', '.join(arguments)})"])


def setting(value: Any, digits: int | None = None) -> str:
    """Write the value of a setting as people do.

    Parameters
    ----------
    value : object
        Plain values, lists and dictionaries of such.
    digits : int or None
        Of numbers that are not whole; None shows all.

    Returns
    -------
    str

    Examples
    --------
    >>> from priorshift.report.provenance import setting
    >>> setting(["patient id", "visit_date"]), setting({"bandwidth": 2.06122682}, 4), setting(None), setting(True)
    ('patient id, visit_date', 'bandwidth: 2.061', 'not given', 'yes')
    """
    if value is None or isinstance(value, bool):
        return {None: "not given", True: "yes", False: "no"}[value]
    if isinstance(value, (list, tuple)):
        return ", ".join(setting(part, digits) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {setting(part, digits)}" for name, part in value.items())
    return f"{value:.{digits}g}" if isinstance(value, float) and digits is not None else str(value)


def _ordered(settings: dict[str, Any]) -> dict[str, Any]:
    """The source prior first and the seed last."""
    first = {name: settings[name] for name in ("source_prior",) if name in settings}
    last = {name: settings[name] for name in ("random_state",) if name in settings}
    return first | {name: value for name, value in settings.items() if name not in (first | last)} | last


def _arguments(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_written(name, value)}" for name, value in settings.items())


def _written(name: str, value: Any) -> str:
    if name == "source_prior" and isinstance(value, list):
        return repr(tuple(value))
    if isinstance(value, dict):  # values that were passed are not kept
        return "{" + ", ".join(f"{key!r}: …" for key in value) + "}"
    if isinstance(value, str) and name in ("source_prior", "random_state", "model"):
        return value  # what Python shows of an object
    return repr(value)
