"""Contents of a page: verdict, status of each assumption, tables, pictures with text alternatives, and provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, isnan
from typing import Any

from priorshift import plots
from priorshift.class_priors import ClassPriors
from priorshift.class_priors_by_target import ClassPriorsByTarget
from priorshift.class_source import REST
from priorshift.diagnosis.class_targets import ClassDiagnoses
from priorshift.diagnosis.classes import ClassDiagnosis
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.diagnosis.verdict import DOUBTED, REFUTED
from priorshift.io.column_checks import ColumnUse
from priorshift.io.targets import are_iso_dates
from priorshift.plots.targets import SeriesDisplay
from priorshift.prior_estimates import PriorEstimates
from priorshift.report.numbers import Numbers, is_informative
from priorshift.report.pictures import Pictures, draw, draw_diagnosis, draw_drivers, draw_estimate
from priorshift.report.provenance import python_call
from priorshift.results import PriorEstimate

Result = (
    PriorEstimate | PriorEstimates | ClassPriors | ClassPriorsByTarget | Diagnosis | Diagnoses | ClassDiagnosis
    | ClassDiagnoses
)  # fmt: skip

_DENOMINATORS = (100, 1_000, 10_000, 100_000, 1_000_000)
_MIN_COUNT, _MIN_WIDTH = 5, 3  # smallest count of "k of N", and width of its interval, in units of 1/N
_MAX_PARTS = 40  # targets that are shown in full
_LIMITS = {"most_columns": 500, "most_differences": 200, "most_refused": 8}  # largest numbers of lines
_ALL_PAIRS = 5  # largest number of targets for which all pairs are compared
_MAX_SERIES = 8  # classes whose shares in several targets are drawn
_ANSWERS = {"no": 0, "with care": 1, "yes": 2}  # the most serious first

# tone of a verdict, for its colour; a mark for those who do not see the colour; words
BADGES = {
    "yes": ("yes", "✓", "Yes, with its interval"),
    "with care": ("care", "!", "With care"),
    "no": ("no", "✕", "No"),
    "no estimate": ("no", "✕", "No, the tables cannot answer this"),
    "not judged": ("open", "?", "Not checked yet"),
}
CLASS_BADGES = BADGES | {"yes": ("yes", "✓", "Yes, with their intervals")}


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
    tone, words = status_of_test(p_value)
    if tone == "yes" and diagnosis.label_shift_test.clearly_moved_columns:
        return "care", "in doubt"
    return tone, words


def status_of_test(p_value: float | None) -> Status:
    """Return the tone and words of the status of an assumption by the p-value of its test; NaN or None without one."""
    if p_value is None or isnan(p_value):
        return "care", "could not be tested"
    if p_value <= REFUTED:
        return "no", "rejected"
    if p_value <= DOUBTED:
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


def contents(result: Result) -> tuple[str, dict[str, Any]]:
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
    if isinstance(result, (ClassPriors, ClassDiagnosis)):
        return "classes", common | _classes_contents(result, numbers)
    if isinstance(result, (ClassPriorsByTarget, ClassDiagnoses)):
        return "class_targets", common | _class_targets_contents(result, numbers)
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
    series = draw(plots.displays_of(estimates)["series"], "series")
    return common | {"pictures": Pictures(series=series), "parts": parts}


def _classes_contents(result: ClassPriors | ClassDiagnosis, numbers: Numbers) -> dict[str, Any]:
    """Return the template's variables for a page on the shares of several classes in one target."""
    diagnosis = result if isinstance(result, ClassDiagnosis) else None
    part = _class_part("", result, numbers, "c")
    common = _class_provenance(part["priors"], diagnosis, several=False)
    return common | {"part": part, "differences": part["priors"].differences() if part["priors"].band else []}


def _class_targets_contents(result: ClassPriorsByTarget | ClassDiagnoses, numbers: Numbers) -> dict[str, Any]:
    """Return the template's variables for a page on the shares of several classes in several targets."""
    diagnoses = result if isinstance(result, ClassDiagnoses) else None
    estimates = result if isinstance(result, ClassPriorsByTarget) else result.estimates
    answers: list[str] = [] if diagnoses is None else [d.verdict.answer for d in diagnoses.values()]
    shown = _shown_in_full(answers) if answers else set(range(_MAX_PARTS))
    by_target: Mapping[str, ClassPriors | ClassDiagnosis] = result
    parts = [
        _class_part(target, one, numbers.under("targets", f"#{k}"), f"c{k}", is_drawn=len(result) == 1)
        for k, (target, one) in enumerate(by_target.items()) if k in shown
    ]  # fmt: skip
    first = next(iter(estimates.values()))
    series = []
    for k, name in enumerate(list(first)[:_MAX_SERIES]):
        of_class = {target: priors[name] for target, priors in estimates.items()}
        display = SeriesDisplay.from_estimates(of_class, by=estimates.by, class_name=name)
        series.append((name, draw(display, f"series{k}")))
    refused = [] if diagnoses is None else [(t, d) for t, d in diagnoses.items() if d.verdict.answer == "no"]
    common = _class_provenance(first, None if diagnoses is None else next(iter(diagnoses.values())), several=True)
    return common | _compare(estimates) | {
        "estimates": estimates, "diagnoses": diagnoses, "parts": parts, "series": series, "classes": list(first),
        "publishable": publishable(answers, "sets of shares") if answers else None, "refused": refused,
    }  # fmt: skip


def _class_part(
    target: str, result: ClassPriors | ClassDiagnosis, numbers: Numbers, name: str, *, is_drawn: bool = True
) -> dict[str, Any]:
    """Return what a page shows of the classes in one target; identifiers of its drawings start with `name`."""
    diagnosis = result if isinstance(result, ClassDiagnosis) else None
    priors = result if isinstance(result, ClassPriors) else result.estimate
    displays = plots.displays_of(priors) if is_drawn else {}
    pictures = {key: draw(display, f"{name}-{key}") for key, display in displays.items()}
    return {
        "target": target, "d": diagnosis, "priors": priors, "n": numbers,
        "shares": numbers if diagnosis is None else numbers.under("estimate"), "pictures": pictures,
    }  # fmt: skip


def _class_provenance(priors: ClassPriors, diagnosis: ClassDiagnosis | None, *, several: bool) -> dict[str, Any]:
    """Return the template's variables for the rest, the method, and, of a diagnosis, the call that repeats it."""
    first, *_ = priors.values()
    common: dict[str, Any] = _method(first) | {"rest": REST if REST in priors else None}
    if diagnosis is None:
        return common
    call = python_call(diagnosis.settings, several=several, of_classes=True)
    settings = {"settings": diagnosis.settings, "columns": diagnosis.columns}
    return common | settings | {"call": call, "is_diagnosis": True}


def publishable(answers: Sequence[str], what: str = "numbers") -> str:
    """Say how many numbers may be published, as in "Of 3 numbers, 1 may be published and 2 with care."."""
    total = len(answers)
    counts = {answer: answers.count(answer) for answer in ("yes", "with care", "no") if answer in answers}
    if len(counts) == 1:
        [answer] = counts
        whole = {"yes": "All {} {} may be published.", "with care": "All {} {} may be published with care.",
                 "no": "None of the {} {} may be published."}  # fmt: skip
        return whole[answer].format(total, what)
    words = {"yes": "{} may be published", "with care": "{} with care", "no": "{} must not be published"}
    parts = [words[answer].format(count) for answer, count in counts.items()]
    return f"Of {total} {what}, {', '.join(parts[:-1])} and {parts[-1]}."


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
    series = draw(SeriesDisplay.from_estimates(diagnoses.estimates, threshold), "series")
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


def _compare(estimates: PriorEstimates | ClassPriorsByTarget) -> dict[str, Any]:
    """Return the template's variables for differences between targets, and their title.

    All pairs of few targets are compared; of many, or of dated ones, each with the one before it.
    """
    if estimates.joint is None or len(estimates) < 2:
        return {"differences": (), "differences_title": ""}
    in_order = len(estimates) > _ALL_PAIRS or are_iso_dates(list(estimates))
    title = "Each target against the one before it" if in_order else "Every target against every other"
    return {"differences": estimates.differences(consecutive=in_order), "differences_title": title}
