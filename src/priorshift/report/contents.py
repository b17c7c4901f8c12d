"""Contents of a page: verdict, status of each assumption, tables, pictures with text alternatives, and provenance."""

from __future__ import annotations

import platform
from collections.abc import Sequence
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
from priorshift.plots.targets import SeriesDisplay
from priorshift.prior_estimates import PriorEstimates
from priorshift.report.numbers import Numbers, is_informative
from priorshift.results import PriorEstimate
from priorshift.version import __version__

_DENOMINATORS = (100, 1_000, 10_000, 100_000, 1_000_000)
_MIN_COUNT, _MIN_WIDTH = 5, 3  # smallest count of "k of N", and width of its interval, in units of 1/N
_MAX_PARTS = 40  # targets that are shown in full
_LIMITS = {"most_columns": 500, "most_differences": 200, "most_refused": 8}  # largest numbers of lines
_ALL_PAIRS = 5  # largest number of targets for which all pairs are compared
_ANSWERS = {"no": 0, "with care": 1, "yes": 2}  # the most serious first
_LEFT, _WIDTH = 4.0, 92.0  # start and width of the axis, in percent of the graphic
# possible distances of ticks
_TICK_STEPS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2)
_INTERVALS = 5  # between ticks
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
    """Choose the N of "about k of N": the smallest power of ten that shows both the share and its interval.

    Neither k nor N - k should be below 5, nor the interval narrower than 3 of N.
    """
    units = [estimate.value / _MIN_COUNT, (1 - estimate.value) / _MIN_COUNT]  # 1/N should not be larger than these
    if estimate.interval is not None:
        units.append(estimate.interval.width / _MIN_WIDTH)
    smallest_unit = min((unit for unit in units if isfinite(unit) and unit > 0), default=1.0)
    for N in _DENOMINATORS:
        if N * smallest_unit >= 1:
            return N
    return _DENOMINATORS[-1]


Status = tuple[str, str]  # tone of a badge, and words


def label_shift_status(diagnosis: Diagnosis, p_value: float) -> Status:
    """Return the tone and words of the status of label shift.

    `p_value` is that of its test, adjusted for the number of targets; NaN if there was no test.
    """
    if isnan(p_value):
        return "care", "could not be tested"
    if p_value <= REFUTED:
        return "no", "rejected"
    if p_value <= DOUBTED or diagnosis.label_shift_test.clearly_moved_columns:
        return "care", "in doubt"
    return "yes", "not contradicted"


def prior_status(diagnosis: Diagnosis) -> Status:
    """Return the tone and words of the status of the source prior: whether the tables agree with it."""
    identification = diagnosis.identification
    if identification.contradicted:
        return "no", "contradicted by the tables"
    if identification.level == "ratio" or (identification.level == "nothing" and not identification.given):
        return "care", "left open"
    if identification.level == "nothing":
        return "open", "cannot be checked"
    if not identification.given:
        return "yes", "identified by the tables"
    return "yes", "not contradicted by the tables"


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
        """Compute the positions of an estimate on an axis from 0 to 1, or to a smaller end if everything is near 0."""
        interval = estimate.interval
        values = (estimate.value, interval.high if interval else np.nan, estimate.source_prior)
        largest = max((value for value in values if not isnan(value)), default=1)
        # the smallest step of ticks with which the axis ends 15% above the largest value, or at 1
        step = min(step for step in _TICK_STEPS if _INTERVALS * step >= min(1.15 * largest, 1.0))
        top = _INTERVALS * step

        def position(value: float) -> float | None:
            """Return the position of a share in percent of the width, or None outside the axis (also for NaN)."""
            return round(_LEFT + _WIDTH * value / top, 3) if 0 <= value <= top else None

        tick_values = np.round(np.arange(0, top + step / 2, step), 6)
        ticks = tuple((float(position(tick) or _LEFT), f"{tick:g}") for tick in tick_values if tick <= top)
        low, high = (None, None) if interval is None else (position(interval.low), position(min(interval.high, top)))
        value = position(estimate.value) if is_informative(estimate) else None
        return cls(value, low, high, position(estimate.source_prior), ticks)


class Picture(NamedTuple):
    """A drawing, which contains its text alternative, with a caption."""

    svg: Markup
    caption: str


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
    """Draw what an estimate is based on, for a page with a number of targets: the more, the fewer pictures of each.

    The identifiers of the SVG elements start with `name`.
    """
    displays = list(plots.displays_of(estimate).values())[: _MAX_PICTURES // targets]
    return Pictures(evidence=[_draw(display, f"{name}-evidence{k}") for k, display in enumerate(displays)])


def draw_diagnosis(diagnosis: Diagnosis, name: str, targets: int = 1) -> Pictures:
    """Draw a diagnosis for a page with a number of targets: the more, the fewer pictures of each.

    The identifiers of the SVG elements start with `name`.
    """
    displays = plots.displays_of(diagnosis.estimate)
    scores = displays.pop("scores", None)
    has_content = {  # whether there is something to draw, by part of the diagnosis
        "label_shift_test": bool(diagnosis.label_shift_test.columns),
        "sensitivity": bool(diagnosis.sensitivity.source_priors),
        "variants": bool(diagnosis.sensitivity.variants),
        "planning": diagnosis.planning.reason is None,
    }
    pictures, drawn = Pictures(), _ORDER[: _MAX_PICTURES // targets]
    if "evidence" in drawn:
        pictures.evidence = [_draw(d, f"{name}-evidence{k}") for k, d in enumerate(displays.values())]
    if "scores" in drawn and scores:
        pictures.scores = _draw(scores, f"{name}-scores")
    for part in drawn:
        if has_content.get(part):
            setattr(pictures, part, _draw(PARTS[part].from_diagnosis(diagnosis), f"{name}-{part}"))
    if targets == 1:
        pictures.drivers = draw_drivers(diagnosis, name)
    return pictures


def draw_drivers(diagnosis: Diagnosis, name: str) -> Picture | None:
    """Draw the columns that distinguish positives from the population; return None if there are none."""
    if not diagnosis.drivers:
        return None
    return _draw(PARTS["drivers"].from_diagnosis(diagnosis), f"{name}-drivers")


def _draw(display: plots.Display, name: str) -> Picture:
    """Draw a picture as an SVG element whose identifiers start with `name`."""
    return Picture(Markup(plots.svg(display, name=name)), display.caption)


def contents(result: PriorEstimate | PriorEstimates | Diagnosis | Diagnoses) -> tuple[str, dict[str, Any]]:
    """Return the name of the template for a result, and the values of the template's variables by name."""
    numbers = Numbers(result.to_dict())
    common: dict[str, Any] = {
        "result": result, "n": numbers, "settings": {}, "call": None, "is_diagnosis": False, **_LIMITS
    }  # fmt: skip
    if isinstance(result, PriorEstimate):
        return "estimate", common | _method(result) | {"pictures": draw_estimate(result, "e")}
    if isinstance(result, Diagnosis):
        return "diagnosis", common | _provenance(result, several=False) | {"pictures": draw_diagnosis(result, "d")}
    if isinstance(result, PriorEstimates):
        return "estimates", common | _estimates_contents(result, numbers)
    return "diagnoses", common | _diagnoses_contents(result, numbers)


def _method(estimate: PriorEstimate) -> dict[str, Any]:
    """Return the template's variables "method" and "columns", the uses of columns that the estimate records."""
    uses = []
    for name, column in estimate.details.get("columns", {}).items():
        use = "left out" if column["kind"] == "left out" else "feature"
        uses.append(ColumnUse(name, use, column["kind"], column["became"], column["missing"]))
    return {"method": estimate.method, "columns": uses}


def _estimates_contents(estimates: PriorEstimates, numbers: Numbers) -> dict[str, Any]:
    """Return the template's variables for a page on the estimates of several targets, whose `numbers` are given."""
    parts = []
    for k, (target, estimate) in enumerate(estimates.items()):
        if k < _MAX_PARTS:
            target_numbers, pictures = (
                numbers.under("targets", f"#{k}"),
                draw_estimate(estimate, f"e{k}", len(estimates)),
            )
            parts.append({"target": target, "d": estimate, "n": target_numbers, "pictures": pictures})
    all_estimates = list(estimates.values())
    common = _method(all_estimates[0]) | _compare(estimates) | _lowest_and_highest(all_estimates, numbers)
    series = _draw(plots.displays_of(estimates)["series"], "series")
    return common | {"pictures": Pictures(series=series), "parts": parts}


def publishable(answers: Sequence[str]) -> str:
    """Say how many numbers may be published, as in "Of 3 numbers, 1 may be published and 2 with care."."""
    total = len(answers)
    counts = {answer: answers.count(answer) for answer in ("yes", "with care", "no") if answer in answers}
    if len(counts) == 1:
        [answer] = counts
        whole = {"yes": "All {} numbers may be published.", "with care": "All {} numbers may be published with care.",
                 "no": "None of the {} numbers may be published."}  # fmt: skip
        return whole[answer].format(total)
    words = {"yes": "{} may be published", "with care": "{} with care", "no": "{} must not be published"}
    parts = [words[answer].format(count) for answer, count in counts.items()]
    return f"Of {total} numbers, {', '.join(parts[:-1])} and {parts[-1]}."


def _diagnoses_contents(diagnoses: Diagnoses, numbers: Numbers) -> dict[str, Any]:
    """Return the template's variables for a page on the diagnoses of several targets, whose `numbers` are given."""
    first = max(diagnoses.values(), key=lambda d: len(d.drivers))  # the first with an estimate, and so with drivers
    answers: list[str] = [diagnosis.verdict.answer for diagnosis in diagnoses.values()]
    shown, parts = _shown_in_full(answers), []
    for k, (target, diagnosis) in enumerate(diagnoses.items()):
        if k in shown:
            target_numbers, pictures = (
                numbers.under("targets", f"#{k}"),
                draw_diagnosis(diagnosis, f"d{k}", len(answers)),
            )
            p_value = target_numbers.value("label_shift_adjusted_p_value")
            p_value = float("nan") if p_value is None else p_value
            parts.append({"target": target, "d": diagnosis, "n": target_numbers, "pictures": pictures, "p": p_value})
    common = _provenance(first, several=True) | _compare(diagnoses.estimates)
    all_estimates = [diagnosis.estimate for diagnosis in diagnoses.values()]
    common |= _lowest_and_highest(all_estimates, numbers, "estimate")
    threshold = first.sensitivity.conclusion.threshold
    series = _draw(SeriesDisplay.from_estimates(diagnoses.estimates, threshold), "series")
    pictures = Pictures(series=series, drivers=draw_drivers(first, "d"))
    refused = [(target, diagnosis) for target, diagnosis in diagnoses.items() if diagnosis.verdict.answer == "no"]
    return common | {
        "pictures": pictures,
        "parts": parts,
        "first": first,
        "publishable": publishable(answers),
        "refused": refused,
    }


def _shown_in_full(answers: list[str]) -> set[int]:
    """Choose at most 40 targets to show in full, given the verdict's answer of each, and return their indices.

    The same number of every answer comes first (no, with care, yes), then the most serious of the others.
    """
    quota, first, others = _MAX_PARTS // len(_ANSWERS), [], []
    for answer in _ANSWERS:  # the most serious first
        indices = [k for k, other in enumerate(answers) if other == answer]
        first += indices[:quota]
        others += indices[quota:]
    return set((first + others)[:_MAX_PARTS])


def _lowest_and_highest(estimates: list[PriorEstimate], numbers: Numbers, *steps: str) -> dict[str, Numbers | None]:
    """Return the numbers of the lowest ("low") and highest ("high") informative estimate; None if there is none.

    `steps` lead from the record of a target to that of its estimate.
    """
    values = [(estimate.value, k) for k, estimate in enumerate(estimates) if is_informative(estimate)]
    if not values:
        return {"low": None, "high": None}
    (_, lowest), (_, highest) = min(values), max(values)
    indices = {"low": lowest, "high": highest}
    return {end: numbers.under("targets", f"#{k}", *steps) for end, k in indices.items()}


def _provenance(diagnosis: Diagnosis, *, several: bool) -> dict[str, Any]:
    """Return the template's variables for the method, the settings, and the Python call that repeats the diagnosis."""
    settings, call = diagnosis.settings, python_call(diagnosis.settings, several=several)
    return {"method": diagnosis.estimate.method, "settings": settings, "call": call, "is_diagnosis": True}


def _compare(estimates: PriorEstimates) -> dict[str, Any]:
    """Return the template's variables for differences between targets, and their title.

    All pairs of few targets are compared; of many, or of dated ones, each with the one before it.
    """
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
    """Return Python code that repeats the diagnosis of the same tables, given its settings by name.

    `several` says that several targets were diagnosed.
    """
    lines = ["import priorshift as ps"]
    if str(settings.get("source_prior", "")).startswith("scipy.stats."):
        lines.insert(0, "import scipy.stats")
    arguments = ["positive, unlabeled, targets" if several else "positive, unlabeled, target"]
    call = {name: settings[name] for name in _CALL_SETTINGS if name in settings}
    # settings that are no argument of the function need an estimator, which then takes all of its settings
    estimator = {name: value for name, value in settings.items() if name not in _CALL_SETTINGS}
    if estimator:
        estimator |= {name: call.pop(name) for name in _ESTIMATOR_SETTINGS if name in call}
        # the source prior first, the seed last
        ordered = sorted(estimator, key=lambda name: (name != "source_prior", name == "random_state"))
        lines.append(f"estimator = ps.WitnessShift({_arguments({name: estimator[name] for name in ordered})})")
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
        text = repr(tuple(value) if name == "source_prior" and isinstance(value, list) else value)
        if isinstance(value, dict):  # the values themselves are not stored
            text = "{" + ", ".join(f"{key!r}: …" for key in value) + "}"
        elif isinstance(value, str) and name in ("source_prior", "random_state", "model"):
            text = value  # already the repr of an object
        arguments.append(f"{name}={text}")
    return ", ".join(arguments)
