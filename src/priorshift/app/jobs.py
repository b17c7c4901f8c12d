"""The jobs that the worker process does: read the columns of a file, describe the use of columns, estimate.

Each takes an order, which came as JSON, and returns an answer that can be sent as JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from sklearn.frozen import FrozenEstimator

from priorshift import report
from priorshift.app.settings import Settings, translate_message, with_file_names
from priorshift.app.uploads import Limits
from priorshift.app.watching import WatchOrder, watch
from priorshift.class_priors import ClassPriors
from priorshift.decision_files import (
    check_names,
    class_columns,
    decide_class_targets,
    decide_targets,
    decided_columns,
    fit_to_problem,
    logistic,
    order_of_file,
    write_decided_table,
)
from priorshift.diagnosis.class_targets import diagnose_classes, diagnose_classes_of_targets
from priorshift.diagnosis.classes import ClassDiagnosis
from priorshift.diagnosis.diagnose import diagnose_all_targets, diagnose_target
from priorshift.diagnosis.diagnosis import Diagnosis
from priorshift.diagnosis.provenance import problem_columns
from priorshift.diagnosis.verdict import TABLE_WARNINGS
from priorshift.errors import InputError
from priorshift.formatting import decimals, format_fixed
from priorshift.inference.prior_knowledge import read_prior
from priorshift.io.cells import find_date_orders, is_missing
from priorshift.io.readers import read_table
from priorshift.loading import load_problem
from priorshift.methods.multiclass import MulticlassShift
from priorshift.problem import Problem
from priorshift.progress import track_progress
from priorshift.report.contents import BADGES, CLASS_BADGES
from priorshift.report.numbers import is_informative
from priorshift.results import PriorEstimate
from priorshift.shifted_classifier import ShiftedClassifier
from priorshift.warning_records import WarningRecord, record_warnings

DiagnosisOfTarget = TypeVar("DiagnosisOfTarget", Diagnosis, ClassDiagnosis)
REPORT, RESULT, DECISIONS = "report.html", "result.json", "decisions.csv"
STEPS = {  # names of the library's steps, and what the page calls them
    "read": "Reading the files",
    "WitnessShift": "Learning to distinguish positives",
    "MulticlassShift": "Learning to distinguish the classes",
    "MixturePrior": "Estimating the share in the old population",
    "KM2": "Estimating the share in the old population",
    "diagnose": "Checking whether the number can be trusted",
    "decide": "Deciding on each row of the new population",
    "write": "Writing the report",
}


@dataclass(frozen=True)
class Order:
    """The input of a job: files by role (positive, unlabeled, target), settings, and the folder of the results."""

    paths: dict[str, Path]  # where the uploads are stored
    names: dict[str, str]  # what the user calls them
    settings: Settings
    folder: Path

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Order:
        """Read an order from JSON values: {"files": {role: {"path", "name"}}, "settings", "folder"}."""
        paths = {role: Path(file["path"]) for role, file in content["files"].items()}
        names = {role: file["name"] for role, file in content["files"].items()}
        return cls(paths, names, Settings.from_json(content.get("settings", {})), Path(content["folder"]))

    def translate(self, message: str) -> str:
        """Rewrite a message of the library in the terms of the page, with the user's names of the files."""
        message = message.replace(f"{self.folder}{os.sep}", "")
        return translate_message(message, self.paths, self.names, self.settings.class_names)

    def with_names(self, diagnosis: DiagnosisOfTarget) -> DiagnosisOfTarget:
        """Replace stored paths in the reasons of a verdict by the user's file names: a report may be forwarded."""
        verdict, classes = diagnosis.verdict, self.settings.class_names
        reasons = tuple(with_file_names(reason, self.paths, self.names, classes) for reason in verdict.reasons)
        return replace(diagnosis, verdict=replace(verdict, reasons=reasons))

    def load(self, limits: Limits) -> tuple[Problem, list[WarningRecord]]:
        """Load the samples, and record warnings about their tables; refuse files beyond the limits."""
        for role, path in self.paths.items():
            limits.check_file(path, f"{role} ({path})")
        settings, positive = self.settings, self.paths["positive"]
        classes = {name: self.paths[role] for role, name in settings.class_names.items()}
        with record_warnings(*TABLE_WARNINGS, show=True) as records:
            problem = load_problem(
                positive=classes or positive, unlabeled=self.paths.get("unlabeled"), target=self.paths["target"],
                several=settings.by is not None, rest=settings.rest, options=settings.input_options(),
            )  # fmt: skip
        return problem, records


def look(order: Order, limits: Limits) -> dict[str, Any]:
    """Return the number of rows of one file, and name, kind and share of missing cells of each column.

    "named" says whether the file has a header.
    """
    [(role, path)] = order.paths.items()
    limits.check_file(path, f"{role} ({path})")
    table = read_table(path, role).as_cells()
    limits.check_columns(table.name, table.width)  # names in quotes may have several lines
    columns = [
        {"name": table.column_name(k), "kind": _kind(cells), "missing": float(is_missing(cells).mean())}
        for k, cells in enumerate(table.cells)
    ]
    return {"rows": len(table), "columns": columns, "named": table.columns is not None}


def columns(order: Order, limits: Limits) -> dict[str, Any]:
    """Return how each column of the three files is used ("columns"), and warnings about columns ("odd")."""
    problem, records = order.load(limits)
    messages = [order.translate(message) for _, message in records]
    return {"columns": [use.to_dict() for use in problem_columns(problem)], "odd": list(dict.fromkeys(messages))}


def run(order: Order, limits: Limits) -> dict[str, Any]:
    """Estimate and diagnose; write report, numbers and decisions to the order's folder; return what the page shows."""
    settings, folder = order.settings, order.folder
    _begin_step("read")
    problem, records = order.load(limits)
    estimator = settings.class_estimator() if settings.classes else settings.estimator()
    result: Any
    diagnoses: dict[str, Any]
    if settings.by is None:
        result = order.with_names(_diagnose(settings, problem, estimator, records))
        doubted = "the estimate"
        diagnoses = {"": result}  # a single target is called "" in a problem
    else:
        several = _diagnose(settings, problem, estimator, records)
        diagnoses = {name: order.with_names(diagnosis) for name, diagnosis in several.items()}
        result = replace(several, results=diagnoses)
        n_unreliable = sum(diagnosis.verdict.answer == "no" for diagnosis in diagnoses.values())
        doubted = f"the estimates of {n_unreliable} of the {len(diagnoses)} new populations"
    (folder / RESULT).write_text(json.dumps(result.to_dict(), ensure_ascii=False, allow_nan=False), encoding="utf-8")
    _begin_step("decide")
    decide = _decide_classes if settings.classes else _decide
    decisions, undecided = decide(order, estimator, problem, diagnoses)
    _begin_step("write")
    command = settings.command(order.names)
    report.write(result, folder / REPORT, command=command)
    if decisions:
        command = f"{command}\n{settings.command(order.names, 'adapt')}"
    doubt = f"The report advises against relying on {doubted}, on which these decisions are based."
    is_doubted = any(diagnosis.verdict.answer == "no" for diagnosis in diagnoses.values())
    return {
        "verdicts": [_verdict(name, diagnosis) for name, diagnosis in diagnoses.items()], "entered": settings.entered,
        "classes": list(settings.class_names.values()),
        "decisions": decisions, "undecided": undecided, "doubted": doubt if is_doubted else None, "command": command,
        "files": [name for name in (REPORT, RESULT, DECISIONS) if (folder / name).exists()],
    }  # fmt: skip


def _diagnose(settings: Settings, problem: Problem, estimator: Any, records: list[WarningRecord]) -> Any:
    """Fit an estimator to the source of a problem, and diagnose its estimate of each target."""
    if settings.classes:
        of_classes: Any = diagnose_classes if settings.by is None else diagnose_classes_of_targets
        return of_classes(problem, estimator, records=records)
    diagnose: Any = diagnose_target if settings.by is None else diagnose_all_targets
    return diagnose(problem, estimator, threshold=settings.threshold, records=records)


def _verdict(name: str, diagnosis: Diagnosis | ClassDiagnosis) -> dict[str, Any]:
    """Return the verdict on one target as the page shows it above the report; the name of a single target is ""."""
    verdict, shares = diagnosis.verdict, []
    if isinstance(diagnosis, ClassDiagnosis):
        shares, badges = _shares(diagnosis.estimate), CLASS_BADGES
        parts = [f"{one['share']} {one['class']}" for one in shares]
        answer = f"Of the new population, about {', '.join(parts)}."
    else:
        answer, badges = _answer(diagnosis.estimate), BADGES
    tone, mark, words = badges[verdict.answer]
    return {
        "target": name, "question": verdict.question, "answer": answer, "tone": tone, "mark": mark, "words": words,
        "shares": shares, "reasons": list(verdict.reasons),
    }  # fmt: skip


def _shares(priors: ClassPriors) -> list[dict[str, Any]]:
    """Return the share of each class, with its interval and its share of the old population, as the page shows them."""
    shares = []
    for name, estimate in priors.items():
        interval = estimate.interval
        digits = max(decimals(interval.width if interval else estimate.value) - 3, 0)
        ends = (interval.low, interval.high) if interval else ()
        source = estimate.source_prior
        origin = " (estimated)" if estimate.source_prior_by == "MixturePrior" else ""
        shares.append({
            "class": name, "share": f"{format_fixed(100 * estimate.value, digits)}%",
            "interval": " to ".join(f"{format_fixed(100 * end, digits)}%" for end in ends),
            "source": f"{format_fixed(100 * source, digits)}%{origin}" if isfinite(source) else "",
        })  # fmt: skip
    return shares


def _answer(estimate: PriorEstimate) -> str:
    """Return the estimated share of the new population in a sentence of the page."""
    interval = estimate.interval
    if interval is None or not (is_informative(estimate) or estimate.is_left_open):
        return "The share of the new population that has it cannot be estimated from these files."
    digits = max(decimals(interval.width) - 3, 0)
    value, low, high = (f"{format_fixed(100 * x, digits)}%" for x in (estimate.value, interval.low, interval.high))
    confidence = f"with {100 * interval.confidence:.6g}% confidence"
    if estimate.is_left_open:
        return f"Between {low} and {high} of the new population have it, {confidence}."
    return f"About {value} of the new population have it; between {low} and {high}, {confidence}."


def _begin_step(name: str) -> None:
    """Inform the page that a step, a key of STEPS, begins."""
    with track_progress(name, 1) as advance:
        advance()


def _kind(cells: Any) -> str:
    """Return "number", "date" or "text", the kind of a column; texts that are all dates count as "date"."""
    if cells.dtype != object:
        return "date" if cells.dtype.kind == "M" else "number"
    return "date" if find_date_orders(cells) else "text"


def _decide(
    order: Order, estimator: Any, problem: Problem, diagnoses: Mapping[str, Diagnosis]
) -> tuple[list[dict[str, Any]], str | None]:
    """Write the target's file with the posterior and decision of each row.

    Return what to expect of the decisions on each target, and None, or why there are no decisions. `estimator` is
    fitted to the source of the problem; `diagnoses` has its estimate of each target, by name.
    """
    settings, target_path = order.settings, order.paths["target"]
    source_prior = None if settings.prior is None else read_prior(settings.source_prior).value
    fitted = FrozenEstimator(estimator)
    shifted = ShiftedClassifier(logistic(), fitted, source_prior=source_prior, random_state=settings.seed)
    try:
        for sample in problem.targets.values():
            check_names(sample.data, order.names["target"])
        fit_to_problem(shifted, problem)
        estimates = {name: diagnosis.estimate for name, diagnosis in diagnoses.items()}
        posterior, decision, decided = decide_targets(shifted, problem, estimates, **settings.rule)
    except InputError as error:
        return [], order.translate(str(error))
    if not decided:
        return [], "The share cannot be estimated from these data, so no decisions can be made."
    in_file = order_of_file(target_path, settings.by, len(posterior))
    columns = decided_columns(posterior[in_file], decision[in_file])
    write_decided_table(order.folder / DECISIONS, target_path, columns, safe=True)
    return [{"target": name, **one.decisions.to_dict()} for name, one in decided.items()], None


def _decide_classes(
    order: Order, estimator: MulticlassShift, problem: Problem, diagnoses: Mapping[str, ClassDiagnosis]
) -> tuple[list[dict[str, Any]], str | None]:
    """Write the target's file with the posterior of each class and the decision; return the same as `_decide`."""
    target_path, by = order.paths["target"], order.settings.by
    try:
        for sample in problem.targets.values():
            check_names(sample.data, order.names["target"], class_columns(estimator.classes_))
    except InputError as error:
        return [], order.translate(str(error))
    priors = {name: diagnosis.estimate for name, diagnosis in diagnoses.items()}
    columns, decided = decide_class_targets(estimator, problem, priors)
    in_file = order_of_file(target_path, by, len(columns["decision"]))
    in_order = {name: values[in_file] for name, values in columns.items()}
    write_decided_table(order.folder / DECISIONS, target_path, in_order, safe=True)
    return [
        {"target": target, "class": name, **expected}
        for target, one in decided.items() for name, expected in one.decisions.to_dict().items()
    ], None  # fmt: skip


WORK = {"look": look, "columns": columns, "run": run, "watch": watch}
ORDERS = {"watch": WatchOrder}  # of kinds that are not ordered by `Order`
