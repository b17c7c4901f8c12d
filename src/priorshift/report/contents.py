"""What a page shows of each kind of result: its numbers, pictures and parts, by the names that templates have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.input.column_uses import ColumnUse
from priorshift.input.targets import are_iso_dates
from priorshift.prior_estimates import PriorEstimates
from priorshift.report import pictures
from priorshift.report.answer import is_told
from priorshift.report.made import python_call
from priorshift.report.numbers import Numbers
from priorshift.result import PriorEstimate

_MOST_PARTS = 40  # targets that have a part of their own
_LIMITS = {"most_columns": 500, "most_differences": 200}  # lines of a table
_ALL_PAIRS = 5  # targets of which every two are compared
_GRAVEST = {"no": 0, "with care": 1, "yes": 2}


def contents(result: PriorEstimate | PriorEstimates | Diagnosis | Diagnoses) -> tuple[str, dict[str, Any]]:
    """Gather what a page shows.

    Parameters
    ----------
    result : PriorEstimate, PriorEstimates, Diagnosis or Diagnoses
        What is shown.

    Returns
    -------
    template : str
        Its name.
    shown : dict
        What the template takes.
    """
    n = Numbers(result.to_dict())
    common: dict[str, Any] = {"result": result, "n": n, "settings": {}, "call": None, "diagnosed_at_all": False}
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
        "pictures": pictures.of_estimate(estimate, "e"),
        "columns": _encoded_columns(estimate),
    }


def _of_diagnosis(found: Diagnosis) -> dict[str, Any]:
    return _made(found, several=False) | {"pictures": pictures.of_diagnosis(found, "d")}


def _of_estimates(several: PriorEstimates, n: Numbers) -> dict[str, Any]:
    first = next(iter(several.values()))
    parts = [
        _part(k, name, e, n, pictures.of_estimate(e, f"e{k}", len(several)))
        for k, (name, e) in enumerate(several.items())
        if k < _MOST_PARTS
    ]
    return _differences(several) | {
        "method": first.method,
        "pictures": pictures.Pictures(series=pictures.of_series(several)),
        "parts": parts,
        "columns": _encoded_columns(first),
        **_run_of(list(several.values()), n),
    }


def _of_diagnoses(several: Diagnoses, n: Numbers) -> dict[str, Any]:
    first = max(several.values(), key=lambda d: len(d.drivers))
    answers: list[str] = [d.verdict.answer for d in several.values()]
    shown = _with_parts(answers)
    parts = []
    for k, (name, d) in enumerate(several.items()):
        if k in shown:
            part = _part(k, name, d, n, pictures.of_diagnosis(d, f"d{k}", len(several)))
            p = part["n"].value("label_shift_adjusted_p_value")
            parts.append(part | {"p": float("nan") if p is None else p})
    together = pictures.Pictures(series=pictures.of_series(several.estimates), drivers=pictures.of_drivers(first, "d"))
    return (
        _made(first, several=True)
        | _differences(several.estimates)
        | {
            "pictures": together,
            "parts": parts,
            "first": first,
            **_run_of([d.estimate for d in several.values()], n, "estimate"),
            "counts": {answer: answers.count(answer) for answer in _GRAVEST},
        }
    )


def _with_parts(answers: list[str]) -> set[int]:
    """Some targets of every answer, and then the gravest."""
    of_each = {answer: [k for k, one in enumerate(answers) if one == answer] for answer in _GRAVEST}
    fair = _MOST_PARTS // len(_GRAVEST)
    some, others = ([k for those in of_each.values() for k in those[part]] for part in (slice(fair), slice(fair, None)))
    return set((some + others)[:_MOST_PARTS])


def _run_of(estimates: list[PriorEstimate], n: Numbers, *steps: str) -> dict[str, Numbers | None]:
    """Where the lowest and the highest share stand, of those that can be told."""
    told = [(estimate.value, k) for k, estimate in enumerate(estimates) if is_told(estimate)]
    low, high = (min(told)[1], max(told)[1]) if told else (None, None)
    return {
        name: None if k is None else n.under("targets", f"#{k}", *steps) for name, k in (("low", low), ("high", high))
    }


def _part(k: int, name: str, result: PriorEstimate | Diagnosis, n: Numbers, shown: pictures.Pictures) -> dict[str, Any]:
    return {"target": name, "d": result, "n": n.under("targets", f"#{k}"), "pictures": shown}


def _made(found: Diagnosis, *, several: bool) -> dict[str, Any]:
    return {
        "method": found.estimate.method,
        "settings": found.settings,
        "call": python_call(found.settings, several=several),
        "diagnosed_at_all": True,
    }


def _encoded_columns(estimate: PriorEstimate) -> tuple[ColumnUse, ...]:
    """What an estimate knows of columns: those that were encoded."""
    told: Mapping[str, Any] = estimate.details.get("columns", {})
    return tuple(
        ColumnUse(name, "left out" if c["kind"] == "left out" else "feature", c["kind"], c["became"], c["missing"])
        for name, c in told.items()
    )


def _differences(estimates: PriorEstimates) -> dict[str, Any]:
    """Of all pairs where targets are few, else of each target and the one before it."""
    if estimates.joint is None or len(estimates) < 2:
        return {"differences": (), "differences_title": ""}
    in_order = len(estimates) > _ALL_PAIRS or are_iso_dates(list(estimates))
    title = "Each target against the one before it" if in_order else "Every target against every other"
    return {"differences": estimates.differences(consecutive=in_order), "differences_title": title}
