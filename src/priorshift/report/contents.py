"""Contents of a page: verdict, status of each assumption, tables, pictures with text alternatives, and provenance."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from math import isfinite, isnan
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from priorshift import plots
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.diagnosis.verdict import DOUBTED, REFUTED
from priorshift.io.column_checks import ColumnUse
from priorshift.io.targets import are_iso_dates
from priorshift.plots.functions import PARTS
from priorshift.prior_estimates import PriorEstimates
from priorshift.report.numbers import Numbers, is_informative
from priorshift.results import PriorEstimate
from priorshift.version import __version__

_DENOMINATORS = (100, 1_000, 10_000, 100_000, 1_000_000)
_MIN_COUNT, _MIN_WIDTH = 5, 3  # smallest count of "k of N", and width of its interval, in units of 1/N
_MAX_PARTS = 40  # targets that are shown in full
_LIMITS = {"most_columns": 500, "most_differences": 200}  # largest numbers of lines of tables
_ALL_PAIRS = 5  # largest number of targets for which all pairs are compared
_ANSWERS = {"no": 0, "with care": 1, "yes": 2}  # the most serious first
_LEFT, _WIDTH = 4.0, 92.0  # start and width of the axis, in percent of the graphic
# possible distances of ticks
_STEPS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
_MAX_TICKS = 6
_MAX_PICTURES = 16  # of one page, to keep it small and fast to draw
_ORDER = ("evidence", "scores", "label_shift_test", "sensitivity", "variants", "planning")  # most important first


# tone of a verdict, for its colour; a mark for those who do not see the colour; words
BADGES = {
    "yes": ("yes", "✓", "Yes, with its interval"),
    "with care": ("care", "!", "With care"),
    "no": ("no", "✕", "No"),
    "no estimate": ("no", "✕", "No, the tables cannot answer this"),
    "not judged": ("open", "?", "Not checked yet"),
}


def denominator(estimate: PriorEstimate) -> int:
    """Choose the N of "about k of N", large enough that neither the share nor its interval is rounded away."""
    units = [estimate.value / _MIN_COUNT, (1 - estimate.value) / _MIN_COUNT]  # upper bounds of 1/N
    if estimate.interval is not None:
        units += [estimate.interval.width / _MIN_WIDTH]
    smallest = min((unit for unit in units if isfinite(unit) and unit > 0), default=1.0)
    return next((N for N in _DENOMINATORS if N * smallest >= 1), _DENOMINATORS[-1])


Status = tuple[str, str]  # tone of a badge, and words


def label_shift_status(diagnosis: Diagnosis, p_value: float) -> Status:
    """Return the tone and words of the status of label shift; `p_value` is adjusted for the number of targets."""
    if isnan(p_value):
        return "care", "could not be tested"
    if p_value <= REFUTED:
        return "no", "rejected"
    if p_value <= DOUBTED or diagnosis.label_shift_test.clearly_moved_columns:
        return "care", "in doubt"
    return "yes", "not contradicted"


def prior_status(diagnosis: Diagnosis) -> Status:
    """Return the tone and words of the status of the source prior."""
    identification = diagnosis.identification
    if identification.contradicted:
        return "no", "contradicted by the tables"
    if identification.level == "ratio" or (identification.level == "nothing" and not identification.given):
        return "care", "left open"
    if identification.level == "nothing":
        return "open", "cannot be checked"
    if not identification.given:
        return "yes", "identified by the tables"
    prior, (least, most) = identification.source_prior, identification.range_from_tables
    is_point = identification.source_prior_by == "given"
    low, high = (prior, prior) if is_point else identification.source_prior_range
    if high < least or low > most:
        return "care", "not contradicted, but outside the range from the tables alone"
    return "yes", "agrees with the tables"


@dataclass(frozen=True)
class IntervalGraphic:
    """Positions on an axis of shares, in percent of the width; None for what is missing or lies outside."""

    value: float | None
    low: float | None
    high: float | None
    source: float | None  # source prior
    ticks: tuple[tuple[float, str], ...]  # position and label

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate) -> IntervalGraphic:
        """Compute the positions on an axis from 0 to 1, or to a smaller end where everything is near 0."""
        interval = estimate.interval
        values = (estimate.value, interval.high if interval else np.nan, estimate.source_prior)
        largest = max((value for value in values if not isnan(value)), default=1)
        step = next((s for s in _STEPS if s * (_MAX_TICKS - 1) >= min(1.15 * largest, 1.0)), _STEPS[-1])
        top = 1.0 if largest > 0.5 else min(step * (_MAX_TICKS - 1), 1.0)
        step = 0.2 if top == 1.0 else step

        def position(value: float) -> float | None:
            """Return the position of a value, or None outside the axis (also for NaN)."""
            return round(_LEFT + _WIDTH * value / top, 3) if 0 <= value <= top else None

        tick_values = np.round(np.arange(0, top + step / 2, step), 6)
        ticks = tuple((float(position(tick) or _LEFT), f"{tick:g}") for tick in tick_values if tick <= top)
        low, high = (None, None) if interval is None else (position(interval.low), position(min(interval.high, top)))
        value = position(estimate.value) if is_informative(estimate) else None
        return cls(value, low, high, position(estimate.source_prior), ticks)


class Picture(NamedTuple):
    """A drawing with its text alternative."""

    svg: Markup
    description: str


@dataclass
class Pictures:
    """Pictures of one target, or of several together; those that are None are not shown."""

    evidence: list[Picture] = field(default_factory=list)  # what the estimate is based on
    scores: Picture | None = None
    label_shift_test: Picture | None = None
    sensitivity: Picture | None = None
    variants: Picture | None = None
    planning: Picture | None = None
    drivers: Picture | None = None
    series: Picture | None = None


def draw_estimate(estimate: PriorEstimate, name: str, targets: int = 1) -> Pictures:
    """Draw an estimate for a page with some targets, fewer pictures if many; `name` starts their identifiers."""
    displays = list(plots.displays_of(estimate).values())[: _MAX_PICTURES // targets]
    return Pictures(evidence=[_draw(display, f"{name}-evidence{k}") for k, display in enumerate(displays)])


def draw_diagnosis(diagnosis: Diagnosis, name: str, targets: int = 1) -> Pictures:
    """Draw a diagnosis for a page with some targets, fewer pictures if many; `name` starts their identifiers."""
    displays, sensitivity = plots.displays_of(diagnosis.estimate), diagnosis.sensitivity
    scores = displays.pop("scores", None)
    # parts of the diagnosis, each with whether there is something to draw
    parts: dict[str, Any] = {"label_shift_test": diagnosis.label_shift_test.columns}
    parts |= {"sensitivity": sensitivity.source_priors, "variants": sensitivity.variants}
    parts["planning"] = diagnosis.planning.reason is None
    pictures, shown = Pictures(), _ORDER[: _MAX_PICTURES // targets]
    if "evidence" in shown:
        pictures.evidence = [_draw(d, f"{name}-evidence{k}") for k, d in enumerate(displays.values())]
    if "scores" in shown and scores:
        pictures.scores = _draw(scores, f"{name}-scores")
    for part, has_content in parts.items():
        if part in shown and has_content:
            setattr(pictures, part, _draw(PARTS[part].from_diagnosis(diagnosis), f"{name}-{part}"))
    if targets == 1:
        pictures.drivers = draw_drivers(diagnosis, name)
    return pictures


def draw_drivers(diagnosis: Diagnosis, name: str) -> Picture | None:
    """Draw the columns that distinguish positives from the population, if there are any."""
    return _draw(PARTS["drivers"].from_diagnosis(diagnosis), f"{name}-drivers") if diagnosis.drivers else None


def _draw(display: plots.Display, name: str) -> Picture:
    """Draw a picture whose identifiers start with `name`."""
    return Picture(Markup(plots.svg(display, name=name)), display.description)


def contents(result: PriorEstimate | PriorEstimates | Diagnosis | Diagnoses) -> tuple[str, dict[str, Any]]:
    """Return the name of the template for a result, and the values of its variables."""
    n = Numbers(result.to_dict())
    common: dict[str, Any] = {"result": result, "n": n, "settings": {}, "call": None, "is_diagnosis": False, **_LIMITS}
    if isinstance(result, PriorEstimate):
        return "estimate", common | _method(result) | {"pictures": draw_estimate(result, "e")}
    if isinstance(result, Diagnosis):
        return "diagnosis", common | _provenance(result, several=False) | {"pictures": draw_diagnosis(result, "d")}
    if isinstance(result, PriorEstimates):
        return "estimates", common | _estimates_contents(result, n)
    return "diagnoses", common | _diagnoses_contents(result, n)


def _method(estimate: PriorEstimate) -> dict[str, Any]:
    """Return the method of an estimate, and how its columns were used, as far as it is recorded."""
    columns: Mapping[str, Any] = estimate.details.get("columns", {})
    uses = tuple(
        ColumnUse(name, "left out" if c["kind"] == "left out" else "feature", c["kind"], c["became"], c["missing"])
        for name, c in columns.items()
    )
    return {"method": estimate.method, "columns": uses}


def _estimates_contents(estimates: PriorEstimates, n: Numbers) -> dict[str, Any]:
    """Return the contents of a page on the estimates of several targets."""
    parts = [
        _part(k, name, e, n, draw_estimate(e, f"e{k}", len(estimates)))
        for k, (name, e) in enumerate(estimates.items())
        if k < _MAX_PARTS
    ]
    common = _method(next(iter(estimates.values()))) | _compare(estimates) | _range_of([*estimates.values()], n)
    return common | {"pictures": _draw_series(estimates), "parts": parts}


def _diagnoses_contents(diagnoses: Diagnoses, n: Numbers) -> dict[str, Any]:
    """Return the contents of a page on the diagnoses of several targets."""
    first = max(diagnoses.values(), key=lambda d: len(d.drivers))  # without an estimate there are no drivers
    answers: list[str] = [d.verdict.answer for d in diagnoses.values()]
    shown, parts = _shown_in_full(answers), []
    for k, (name, d) in enumerate(diagnoses.items()):
        if k in shown:
            part = _part(k, name, d, n, draw_diagnosis(d, f"d{k}", len(diagnoses)))
            p = part["n"].value("label_shift_adjusted_p_value")
            parts.append(part | {"p": float("nan") if p is None else p})
    common = _provenance(first, several=True) | _compare(diagnoses.estimates)
    pictures, counts = _draw_series(diagnoses.estimates), {answer: answers.count(answer) for answer in _ANSWERS}
    pictures.drivers = draw_drivers(first, "d")
    ends = _range_of([d.estimate for d in diagnoses.values()], n, "estimate")
    return common | ends | {"pictures": pictures, "parts": parts, "first": first, "counts": counts}


def _draw_series(estimates: PriorEstimates) -> Pictures:
    """Draw the estimates of several targets side by side."""
    return Pictures(series=_draw(plots.displays_of(estimates)["series"], "series"))


def _shown_in_full(answers: list[str]) -> set[int]:
    """Choose at most 40 targets to show in full, by their index: some of every answer, then the most serious."""
    by_answer = [[k for k, answer in enumerate(answers) if answer == wanted] for wanted in _ANSWERS]
    quota = _MAX_PARTS // len(_ANSWERS)
    first = [k for targets in by_answer for k in targets[:quota]]
    others = [k for targets in by_answer for k in targets[quota:]]
    return set((first + others)[:_MAX_PARTS])


def _range_of(estimates: list[PriorEstimate], n: Numbers, *steps: str) -> dict[str, Numbers | None]:
    """Return the numbers of the lowest and the highest informative estimate; `steps` lead from a target to them."""
    values = [(estimate.value, k) for k, estimate in enumerate(estimates) if is_informative(estimate)]
    if not values:
        return {"low": None, "high": None}
    ends = {"low": min(values)[1], "high": max(values)[1]}
    return {name: n.under("targets", f"#{k}", *steps) for name, k in ends.items()}


def _part(k: int, name: str, result: PriorEstimate | Diagnosis, n: Numbers, pictures: Pictures) -> dict[str, Any]:
    """Return the variables of a template for target number k, from 0 on."""
    return {"target": name, "d": result, "n": n.under("targets", f"#{k}"), "pictures": pictures}


def _provenance(diagnosis: Diagnosis, *, several: bool) -> dict[str, Any]:
    """Return the method, the settings, and the call that repeats the diagnosis."""
    settings, call = diagnosis.settings, python_call(diagnosis.settings, several=several)
    return {"method": diagnosis.estimate.method, "settings": settings, "call": call, "is_diagnosis": True}


def _compare(estimates: PriorEstimates) -> dict[str, Any]:
    """Compare all pairs of few targets; of many, or of dated ones, each with the one before it."""
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
    ours = {"priorshift": __version__, "Python": platform.python_version()}
    return ours | {name: version(name) for name in _PACKAGES}


def python_call(settings: dict[str, Any], *, several: bool) -> str:
    """Return Python code that gives the same diagnosis of the same tables, from its settings."""
    # settings that are no argument of the function need an estimator, which then takes all of its settings
    others = {name: value for name, value in settings.items() if name not in _CALL_SETTINGS}
    lines, call = ["import priorshift as ps"], {name: settings[name] for name in _CALL_SETTINGS if name in settings}
    if others:
        estimator = others | {name: call.pop(name) for name in _ESTIMATOR_SETTINGS if name in call}
        ordered = sorted(estimator, key=lambda name: (name != "source_prior", name == "random_state"))
        lines.append(f"estimator = ps.WitnessShift({_arguments({name: estimator[name] for name in ordered})})")
    if str(settings.get("source_prior", "")).startswith("scipy.stats."):
        lines.insert(0, "import scipy.stats")
    function, tables = ("diagnose_targets", "targets") if several else ("diagnose", "target")
    arguments = [f"positive, unlabeled, {tables}", *(["method=estimator"] if others else [])]
    arguments += [_arguments(call)] if call else []
    return "\n".join([*lines, f"ps.{function}({', '.join(arguments)})"])


def setting(value: Any, digits: int | None = None) -> str:
    """Return the value of a setting as text for people; `digits` are the significant ones of a float."""
    if value is None or isinstance(value, bool):
        return {None: "not given", True: "yes", False: "no"}[value]
    if isinstance(value, (list, tuple)):
        return ", ".join(setting(part, digits) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {setting(part, digits)}" for name, part in value.items())
    return f"{value:.{digits}g}" if isinstance(value, float) and digits is not None else str(value)


def _arguments(settings: dict[str, Any]) -> str:
    """Return settings as the keyword arguments of a call in Python."""
    arguments = []
    for name, value in settings.items():
        text = repr(tuple(value) if name == "source_prior" and isinstance(value, list) else value)
        if isinstance(value, dict):  # the values themselves are not stored
            text = "{" + ", ".join(f"{key!r}: …" for key in value) + "}"
        elif isinstance(value, str) and name in ("source_prior", "random_state", "model"):
            text = value  # already the repr of an object
        arguments.append(f"{name}={text}")
    return ", ".join(arguments)
