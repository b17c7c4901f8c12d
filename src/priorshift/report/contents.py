"""Contents of a page: the answer and its verdict, the status of each assumption, tables, pictures and provenance."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from math import isfinite, isnan
from typing import Any

from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.diagnosis.verdict import DOUBTED, REFUTED
from priorshift.io.column_checks import ColumnUse
from priorshift.io.targets import are_iso_dates
from priorshift.prior_estimates import PriorEstimates
from priorshift.report import pictures
from priorshift.report.numbers import Numbers, is_informative
from priorshift.results import PriorEstimate
from priorshift.version import __version__

_DENOMINATORS = (100, 1_000, 10_000, 100_000, 1_000_000)
_MIN_COUNT, _MIN_WIDTH = 5, 3  # of a share and of an interval, in units of the denominator


@dataclass(frozen=True)
class Badge:
    """A verdict as it is shown."""

    tone: str  # "yes", "care", "no" or "open", for its colour
    mark: str  # for those who do not see the colour
    question: str
    words: str


BADGES = {
    "yes": Badge("yes", "✓", "May I publish this number?", "Yes, with its interval"),
    "with care": Badge("care", "!", "May I publish this number?", "With care"),
    "no": Badge("no", "✕", "May I publish this number?", "No"),
    "no estimate": Badge("no", "✕", "May I publish this number?", "No, the tables cannot answer this"),
    "not judged": Badge("open", "?", "May I publish this number?", "Not checked yet"),
}


def denominator(estimate: PriorEstimate) -> int:
    """Choose the N of "about k of N", large enough that neither the share nor its interval is rounded away."""
    sizes = [estimate.value / _MIN_COUNT, (1 - estimate.value) / _MIN_COUNT]
    if estimate.interval is not None:
        sizes += [estimate.interval.width / _MIN_WIDTH]
    smallest = min((size for size in sizes if isfinite(size) and size > 0), default=1.0)
    return next((one for one in _DENOMINATORS if one * smallest >= 1), _DENOMINATORS[-1])


Status = tuple[str, str]  # tone of a badge, and words


def label_shift_status(found: Diagnosis, p_value: float) -> Status:
    """Return the status of label shift; the p-value is adjusted where there are several targets."""
    if isnan(p_value):
        return "care", "could not be tested"
    if p_value <= REFUTED:
        return "no", "rejected"
    if p_value <= DOUBTED or found.label_shift_test.clearly_moved_columns:
        return "care", "in doubt"
    return "yes", "not contradicted"


def separation_status(found: Diagnosis) -> Status:
    """Return the status of the separation of positives from the population."""
    return ("no", "does not hold") if found.identification.level == "nothing" else ("yes", "holds")


def prior_status(found: Diagnosis) -> Status:
    """Return what is known of the source prior."""
    told = found.identification
    if told.contradicted:
        return "no", "contradicted by the tables"
    if told.level == "ratio" or (told.level == "nothing" and not told.given):
        return "care", "left open"
    if told.level == "nothing":
        return "open", "cannot be checked"
    if not told.given:
        return "yes", "identified by the tables"
    low, high = (told.source_prior,) * 2 if told.source_prior_by == "given" else told.source_prior_range
    if high < told.range_from_tables[0] or low > told.range_from_tables[1]:
        return "care", "not contradicted, but outside the range from the tables alone"
    return "yes", "agrees with the tables"


def rows_status(found: Diagnosis) -> Status:
    """Return whether random sampling was stated or is assumed."""
    stated = {"weights", "groups", "shared", "scenario"} & set(found.settings)
    return "open", "as you stated" if stated else "assumed"


_MAX_PARTS = 40  # targets that are shown in full
_LIMITS = {"most_columns": 500, "most_differences": 200}  # lines of a table
_ALL_PAIRS = 5  # largest number of targets of which all pairs are compared
_ANSWERS = {"no": 0, "with care": 1, "yes": 2}


def contents(result: PriorEstimate | PriorEstimates | Diagnosis | Diagnoses) -> tuple[str, dict[str, Any]]:
    """Return the name of the template of a result, and the values that it takes."""
    n = Numbers(result.to_dict())
    common: dict[str, Any] = {"result": result, "n": n, "settings": {}, "call": None, "is_diagnosis": False}
    if isinstance(result, PriorEstimate):
        template, own = "estimate", _of_estimate(result)
    elif isinstance(result, Diagnosis):
        template, own = "diagnosis", _of_diagnosis(result)
    elif isinstance(result, PriorEstimates):
        template, own = "estimates", _of_estimates(result, n)
    else:
        template, own = "diagnoses", _of_diagnoses(result, n)
    return template, common | _LIMITS | own


def _of_estimate(estimate: PriorEstimate) -> dict[str, Any]:
    return {
        "method": estimate.method,
        "pictures": pictures.draw_estimate(estimate, "e"),
        "columns": _encoded_columns(estimate),
    }


def _of_diagnosis(found: Diagnosis) -> dict[str, Any]:
    return _provenance(found, several=False) | {"pictures": pictures.draw_diagnosis(found, "d")}


def _of_estimates(several: PriorEstimates, n: Numbers) -> dict[str, Any]:
    first = next(iter(several.values()))
    parts = [
        _part(k, name, e, n, pictures.draw_estimate(e, f"e{k}", len(several)))
        for k, (name, e) in enumerate(several.items())
        if k < _MAX_PARTS
    ]
    return _differences(several) | {
        "method": first.method,
        "pictures": pictures.Pictures(series=pictures.draw_series(several)),
        "parts": parts,
        "columns": _encoded_columns(first),
        **_range_of(list(several.values()), n),
    }


def _of_diagnoses(several: Diagnoses, n: Numbers) -> dict[str, Any]:
    first = max(several.values(), key=lambda d: len(d.drivers))
    answers: list[str] = [d.verdict.answer for d in several.values()]
    shown = _shown_in_full(answers)
    parts = []
    for k, (name, d) in enumerate(several.items()):
        if k in shown:
            part = _part(k, name, d, n, pictures.draw_diagnosis(d, f"d{k}", len(several)))
            p = part["n"].value("label_shift_adjusted_p_value")
            parts.append(part | {"p": float("nan") if p is None else p})
    together = pictures.Pictures(
        series=pictures.draw_series(several.estimates), drivers=pictures.draw_drivers(first, "d")
    )
    return (
        _provenance(first, several=True)
        | _differences(several.estimates)
        | {
            "pictures": together,
            "parts": parts,
            "first": first,
            **_range_of([d.estimate for d in several.values()], n, "estimate"),
            "counts": {answer: answers.count(answer) for answer in _ANSWERS},
        }
    )


def _shown_in_full(answers: list[str]) -> set[int]:
    """Choose targets to show in full: some of every answer, then the most serious."""
    of_each = {answer: [k for k, one in enumerate(answers) if one == answer] for answer in _ANSWERS}
    fair = _MAX_PARTS // len(_ANSWERS)
    some, others = ([k for those in of_each.values() for k in those[part]] for part in (slice(fair), slice(fair, None)))
    return set((some + others)[:_MAX_PARTS])


def _range_of(estimates: list[PriorEstimate], n: Numbers, *steps: str) -> dict[str, Numbers | None]:
    """Return where the lowest and the highest informative estimate are."""
    told = [(estimate.value, k) for k, estimate in enumerate(estimates) if is_informative(estimate)]
    low, high = (min(told)[1], max(told)[1]) if told else (None, None)
    return {
        name: None if k is None else n.under("targets", f"#{k}", *steps) for name, k in (("low", low), ("high", high))
    }


def _part(k: int, name: str, result: PriorEstimate | Diagnosis, n: Numbers, shown: pictures.Pictures) -> dict[str, Any]:
    return {"target": name, "d": result, "n": n.under("targets", f"#{k}"), "pictures": shown}


def _provenance(found: Diagnosis, *, several: bool) -> dict[str, Any]:
    return {
        "method": found.estimate.method,
        "settings": found.settings,
        "call": python_call(found.settings, several=several),
        "is_diagnosis": True,
    }


def _encoded_columns(estimate: PriorEstimate) -> tuple[ColumnUse, ...]:
    """Return the columns that an estimate knows of: those that were encoded."""
    told: Mapping[str, Any] = estimate.details.get("columns", {})
    return tuple(
        ColumnUse(name, "left out" if c["kind"] == "left out" else "feature", c["kind"], c["became"], c["missing"])
        for name, c in told.items()
    )


def _differences(estimates: PriorEstimates) -> dict[str, Any]:
    """Compare all pairs where targets are few, else each target with the one before it."""
    if estimates.joint is None or len(estimates) < 2:
        return {"differences": (), "differences_title": ""}
    in_order = len(estimates) > _ALL_PAIRS or are_iso_dates(list(estimates))
    title = "Each target against the one before it" if in_order else "Every target against every other"
    return {"differences": estimates.differences(consecutive=in_order), "differences_title": title}


_PACKAGES = ("numpy", "scipy", "scikit-learn")
_CALL_SETTINGS = ("source_prior", "confidence", "random_state", "standardize", "shared", "audit", "weights", "groups",
                  "drop", "threshold", "by")  # fmt: skip
_ESTIMATOR_SETTINGS = ("source_prior", "confidence", "random_state", "standardize")


def versions() -> dict[str, str]:
    """Return the versions of the packages that computed a result."""
    return {"priorshift": __version__, "Python": platform.python_version()} | {
        name: version(name) for name in _PACKAGES
    }


def python_call(settings: dict[str, Any], *, several: bool) -> str:
    """Write the call that gives the same diagnosis of the same tables."""
    others = {name: value for name, value in settings.items() if name not in _CALL_SETTINGS}
    lines, call = ["import priorshift as ps"], {name: settings[name] for name in _CALL_SETTINGS if name in settings}
    if others:
        own = {name: call.pop(name) for name in _ESTIMATOR_SETTINGS if name in call}
        lines.append(f"estimator = ps.WitnessShift({_arguments(_ordered(own | others))})")
    if str(settings.get("source_prior", "")).startswith("scipy.stats."):
        lines.insert(0, "import scipy.stats")
    function, tables = ("diagnose_targets", "targets") if several else ("diagnose", "target")
    arguments = [f"positive, unlabeled, {tables}", *(["method=estimator"] if others else [])]
    arguments += [_arguments(call)] if call else []
    return "\n".join([*lines, f"ps.{function}({', '.join(arguments)})"])


def setting(value: Any, digits: int | None = None) -> str:
    """Write the value of a setting for people."""
    if value is None or isinstance(value, bool):
        return {None: "not given", True: "yes", False: "no"}[value]
    if isinstance(value, (list, tuple)):
        return ", ".join(setting(part, digits) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {setting(part, digits)}" for name, part in value.items())
    return f"{value:.{digits}g}" if isinstance(value, float) and digits is not None else str(value)


def _ordered(settings: dict[str, Any]) -> dict[str, Any]:
    """Put the source prior first and the seed last."""
    first = {name: settings[name] for name in ("source_prior",) if name in settings}
    last = {name: settings[name] for name in ("random_state",) if name in settings}
    return first | {name: value for name, value in settings.items() if name not in (first | last)} | last


def _arguments(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_python_value(name, value)}" for name, value in settings.items())


def _python_value(name: str, value: Any) -> str:
    if name == "source_prior" and isinstance(value, list):
        return repr(tuple(value))
    if isinstance(value, dict):  # values that were passed are not kept
        return "{" + ", ".join(f"{key!r}: …" for key in value) + "}"
    if isinstance(value, str) and name in ("source_prior", "random_state", "model"):
        return value  # what Python shows of an object
    return repr(value)
