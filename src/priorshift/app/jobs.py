"""The jobs that the worker process does: read the columns of a file, describe the use of columns, estimate.

Each takes an order, which came as JSON, and returns an answer that can be sent as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from priorshift import report
from priorshift.app.settings import ROLES, Settings, translate_message, with_file_names
from priorshift.app.uploads import Limits
from priorshift.decision_files import check_names, decide, fit_to_problem, logistic, write_decided_table
from priorshift.diagnosis.diagnose import diagnose_all_targets, diagnose_target, problem_columns
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.diagnosis.verdict import TABLE_WARNINGS
from priorshift.errors import InputError
from priorshift.inference.prior_knowledge import read_prior
from priorshift.io.cells import as_dates, is_missing
from priorshift.io.readers import read_table
from priorshift.io.row_metadata import MetadataColumns
from priorshift.io.targets import rows_by_value
from priorshift.loading import load_problem
from priorshift.problem import Problem
from priorshift.progress import track_progress
from priorshift.shifted_classifier import ShiftedClassifier
from priorshift.warning_records import WarningRecord, record_warnings

REPORT, RESULT, DECISIONS = "report.html", "result.json", "decisions.csv"
STEPS = {  # names of the library's steps, and what the page calls them
    "read": "Reading the files",
    "WitnessShift": "Learning to distinguish positives",
    "MixturePrior": "Estimating the share in the old population",
    "KM2": "Estimating the share in the old population",
    "diagnose": "Checking whether the number can be trusted",
    "decide": "Deciding on each row of the new population",
    "write": "Writing the report",
}


@dataclass(frozen=True)
class Order:
    """A job: files by role, with the user's names of them, settings, and the folder of the results."""

    paths: dict[str, Path]
    names: dict[str, str]
    settings: Settings
    folder: Path

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Order:
        """Read an order from JSON values."""
        paths = {role: Path(file["path"]) for role, file in content["files"].items()}
        names = {role: file["name"] for role, file in content["files"].items()}
        return cls(paths, names, Settings.from_json(content.get("settings", {})), Path(content["folder"]))

    def translate(self, message: str) -> str:
        """Translate a message of the library into the terms of the page."""
        return translate_message(message, self.paths, self.names)

    def with_names(self, diagnosis: Diagnosis) -> Diagnosis:
        """Replace stored paths in the reasons of a verdict by the user's file names: a report may be forwarded."""
        verdict = diagnosis.verdict
        reasons = tuple(with_file_names(reason, self.paths, self.names) for reason in verdict.reasons)
        return replace(diagnosis, verdict=replace(verdict, reasons=reasons))

    def load(self, limits: Limits) -> tuple[Problem, list[WarningRecord]]:
        """Load the problem of the three files, and the warnings about its tables; refuse files beyond the limits."""
        for role, path in self.paths.items():
            limits.check_file(path, f"{role} ({path})")
        positive, unlabeled, target = (self.paths[role] for role in ROLES)
        several, options = self.settings.by is not None, self.settings.input_options()
        with record_warnings(*TABLE_WARNINGS, show=True) as records:
            problem = load_problem(
                positive=positive, unlabeled=unlabeled, target=target, several=several, options=options
            )
        return problem, records


def look(order: Order, limits: Limits) -> dict[str, Any]:
    """Return the number of rows of one file, and name, kind and share of missing cells of each column."""
    [(role, path)] = order.paths.items()
    limits.check_file(path, f"{role} ({path})")
    table = read_table(path, role).as_cells()
    columns = [
        {"name": table.label(k), "kind": _kind(cells), "missing": float(is_missing(cells).mean())}
        for k, cells in enumerate(table.cells)
    ]
    return {"rows": len(table), "columns": columns, "named": table.columns is not None}


def columns(order: Order, limits: Limits) -> dict[str, Any]:
    """Return how each column of the three files is used, and warnings about columns ("odd")."""
    problem, records = order.load(limits)
    messages = [order.translate(message) for _, message in records]
    return {"columns": [use.to_dict() for use in problem_columns(problem)], "odd": list(dict.fromkeys(messages))}


def run(order: Order, limits: Limits) -> dict[str, Any]:
    """Estimate and diagnose; write report, numbers and decisions to the order's folder; return what the page shows."""
    settings, folder = order.settings, order.folder
    with track_progress("read", 1) as step:
        step()
        problem, records = order.load(limits)
    estimator = settings.estimator()
    result: Diagnosis | Diagnoses
    if settings.by is None:
        result = diagnose_target(problem, estimator, threshold=settings.threshold, records=records)
        diagnoses = {"": order.with_names(result)}
        result, headline = diagnoses[""], str(result.estimate)
    else:
        result = diagnose_all_targets(problem, estimator, threshold=settings.threshold, records=records)
        diagnoses = {name: order.with_names(diagnosis) for name, diagnosis in result.items()}
        result, headline = replace(result, results=diagnoses), f"{len(result)} targets were estimated"
    (folder / RESULT).write_text(json.dumps(result.to_dict(), ensure_ascii=False, allow_nan=False), encoding="utf-8")
    with track_progress("decide", 1) as step:
        step()
        undecided = _decide(order, estimator, problem, diagnoses)
    with track_progress("write", 1) as step:
        step()
        command = settings.command(order.names)
        report.write(result, folder / REPORT, command=command)
    unreliable, doubt = sum(diagnosis.verdict.answer == "no" for diagnosis in diagnoses.values()), None
    if unreliable:
        several = f"the estimates of {unreliable} of the {len(diagnoses)} new populations"
        which = "the estimate" if settings.by is None else several
        doubt = f"The report advises against relying on {which}, on which these decisions are based."
    return {
        "headline": headline, "undecided": undecided, "doubted": doubt, "command": command,
        "files": [name for name in (REPORT, RESULT, DECISIONS) if (folder / name).exists()],
    }  # fmt: skip


def _kind(cells: Any) -> str:
    """Return "number", "date" or "text", the kind of a column of cells."""
    if cells.dtype != object:
        return "date" if cells.dtype.kind == "M" else "number"
    return "date" if as_dates(cells) is not None and not is_missing(cells).all() else "text"


def _decide(order: Order, estimator: Any, problem: Problem, diagnoses: Mapping[str, Diagnosis]) -> str | None:
    """Write the target's file with the posterior and decision of each row; return a reason if that is impossible."""
    settings, target = order.settings, order.paths["target"]
    prior = None if settings.prior is None else read_prior(settings.source_prior).value
    shifted = ShiftedClassifier(logistic(), FrozenEstimator(estimator), source_prior=prior, random_state=settings.seed)
    parts = []
    try:
        for sample in problem.targets.values():
            check_names(sample.data, order.names["target"])
        fit_to_problem(shifted, problem)
        for name, sample in problem.targets.items():
            if np.isfinite(diagnoses[name].estimate.value):
                parts.append(decide(shifted.adapt_to(diagnoses[name].estimate), sample.data))
            else:
                # no estimate: the posterior is unknown
                parts.append((np.full(len(sample.data), np.nan), np.zeros(len(sample.data), dtype=bool)))
    except InputError as error:
        return order.translate(str(error))
    posterior, decision = (np.concatenate(column) for column in zip(*parts, strict=True))
    if not np.isfinite(posterior).any():
        return "The share cannot be estimated from these data, so no decisions can be made."
    if settings.by:  # rows are in the order of the targets; restore that of the file
        table = read_table(target, "target", MetadataColumns().selection((), [settings.by]))
        in_file = np.argsort(np.concatenate([*rows_by_value(table, settings.by).values()]))
        posterior, decision = posterior[in_file], decision[in_file]
    write_decided_table(order.folder / DECISIONS, target, posterior, decision, safe=True)
    return None


WORK = {"look": look, "columns": columns, "run": run}
