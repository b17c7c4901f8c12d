"""The answer in plain words: out of how many it is said, and what the verdict is called.

How assumptions came out, each in a word or two, and in a tone.

What a page shows of each kind of result: its numbers, pictures and parts, by the names that templates have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Any

from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.diagnosis.verdict import DOUBTED, REFUTED
from priorshift.io.column_uses import ColumnUse
from priorshift.io.targets import are_iso_dates
from priorshift.prior_estimates import PriorEstimates
from priorshift.report import pictures
from priorshift.report.numbers import Numbers, is_told
from priorshift.report.provenance import python_call
from priorshift.results import PriorEstimate

_BASES = (100, 1_000, 10_000, 100_000, 1_000_000)
_LEAST, _LEAST_WIDTH = 5, 3  # that a share, and the width of an interval, are said as


@dataclass(frozen=True)
class Badge:
    """A verdict as it is shown.

    Attributes
    ----------
    tone : {"yes", "care", "no", "open"}
        For its colour.
    mark : str
        A sign that is no colour.
    question, words : str
        What was asked, and the answer.
    """

    tone: str
    mark: str
    question: str
    words: str


BADGES = {
    "yes": Badge("yes", "✓", "May I publish this number?", "Yes, with its interval"),
    "with care": Badge("care", "!", "May I publish this number?", "With care"),
    "no": Badge("no", "✕", "May I publish this number?", "No"),
    "not told": Badge("no", "✕", "May I publish this number?", "No, the tables do not tell it"),
    "not judged": Badge("open", "?", "May I publish this number?", "Nobody has looked yet"),
}


def base(estimate: PriorEstimate) -> int:
    """Choose of how many a share is said, so that neither it nor its interval is rounded away.

    Parameters
    ----------
    estimate : PriorEstimate
        With a value.

    Returns
    -------
    int
        100, or more for what is rare.

    Examples
    --------
    >>> from priorshift import Interval, PriorEstimate
    >>> from priorshift.report.contents import base
    >>> def made(value, low, high):
    ...     interval = Interval(low, high, 0.95, "delta")
    ...     return PriorEstimate(value, value, interval, 0.01, 0.2, 1.0, 0.1, "TCPU", (50, 50, 50))
    >>> base(made(0.52, 0.43, 0.62)), base(made(0.004, 0.0021, 0.0057))
    (100, 10000)
    """
    sizes = [estimate.value / _LEAST, (1 - estimate.value) / _LEAST]
    if estimate.interval is not None:
        sizes += [estimate.interval.width / _LEAST_WIDTH]
    smallest = min((size for size in sizes if isfinite(size) and size > 0), default=1.0)
    return next((made for made in _BASES if made * smallest >= 1), _BASES[-1])


Status = tuple[str, str]  # its tone, as of a verdict, and its words


def label_shift_status(found: Diagnosis, p_value: float) -> Status:
    """Say whether label shift stands.

    Parameters
    ----------
    found : Diagnosis
        With its test.
    p_value : float
        Of the test, adjusted where there are several targets.

    Returns
    -------
    tone, words : str
    """
    if isnan(p_value):
        return "care", "could not be tested"
    if p_value <= REFUTED:
        return "no", "refuted"
    if p_value <= DOUBTED or found.label_shift_test.clearly_moved_columns:
        return "care", "in doubt"
    return "yes", "not contradicted"


def apart_status(found: Diagnosis) -> Status:
    """Say whether positives can be told from the population.

    Parameters
    ----------
    found : Diagnosis
        With its identification.

    Returns
    -------
    tone, words : str
    """
    return ("no", "does not hold") if found.identification.level == "nothing" else ("yes", "holds")


def prior_status(found: Diagnosis) -> Status:
    """Say what is known of the source prior.

    Parameters
    ----------
    found : Diagnosis
        With its identification.

    Returns
    -------
    tone, words : str
    """
    told = found.identification
    if told.contradicted:
        return "no", "contradicted by the tables"
    if told.level == "ratio" or (told.level == "nothing" and not told.given):
        return "care", "left open"
    if told.level == "nothing":
        return "open", "not to be checked"
    if not told.given:
        return "yes", "told by the tables"
    low, high = (told.source_prior,) * 2 if told.source_prior_by == "given" else told.source_prior_range
    if high < told.range_from_tables[0] or low > told.range_from_tables[1]:
        return "care", "not contradicted, but outside of what the tables alone leave"
    return "yes", "agrees with the tables"


def rows_status(found: Diagnosis) -> Status:
    """Say by whom it is known that rows were drawn at random.

    Parameters
    ----------
    found : Diagnosis
        With its settings.

    Returns
    -------
    tone, words : str
    """
    told = {"weights", "groups", "shared", "scenario"} & set(found.settings)
    return "open", "as you told" if told else "taken for granted"


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
        "pictures": pictures.draw_estimate(estimate, "e"),
        "columns": _encoded_columns(estimate),
    }


def _of_diagnosis(found: Diagnosis) -> dict[str, Any]:
    return _made(found, several=False) | {"pictures": pictures.draw_diagnosis(found, "d")}


def _of_estimates(several: PriorEstimates, n: Numbers) -> dict[str, Any]:
    first = next(iter(several.values()))
    parts = [
        _part(k, name, e, n, pictures.draw_estimate(e, f"e{k}", len(several)))
        for k, (name, e) in enumerate(several.items())
        if k < _MOST_PARTS
    ]
    return _differences(several) | {
        "method": first.method,
        "pictures": pictures.Pictures(series=pictures.draw_series(several)),
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
            part = _part(k, name, d, n, pictures.draw_diagnosis(d, f"d{k}", len(several)))
            p = part["n"].value("label_shift_adjusted_p_value")
            parts.append(part | {"p": float("nan") if p is None else p})
    together = pictures.Pictures(
        series=pictures.draw_series(several.estimates), drivers=pictures.draw_drivers(first, "d")
    )
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
