"""What is done with users' files, in the process that works: look at one, say what becomes of columns, estimate.

Each takes an order, plain words and numbers that came as JSON, and gives such an answer.
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
from priorshift.app.settings import ROLES, Settings, for_the_page, with_file_names
from priorshift.app.uploads import Limits
from priorshift.decisions import check_names, decide, fit_to_problem, logistic, write_decided_table
from priorshift.diagnosis.diagnose import diagnose_all_targets, diagnose_target, problem_columns
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.diagnosis.verdict import TABLE_WARNINGS
from priorshift.errors import InputError
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
STEPS = {  # what the library calls its work, and what a user does
    "read": "Reading the files",
    "WitnessShift": "Learning what tells positives from the others",
    "MixturePrior": "Estimating the share in the old population",
    "KM2": "Estimating the share in the old population",
    "diagnose": "Checking whether the number can be trusted",
    "decide": "Deciding each row of the new population",
    "write": "Writing the report",
}


@dataclass(frozen=True)
class Order:
    """What is to be done: files by their roles, with their own names, settings, and where results go."""

    paths: dict[str, Path]
    names: dict[str, str]
    settings: Settings
    folder: Path | None

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Order:
        files = said["files"]
        return cls(
            {role: Path(files[role]["path"]) for role in files},
            {role: files[role]["name"] for role in files},
            Settings.of(said.get("settings", {})),
            Path(said["folder"]) if said.get("folder") else None,
        )

    def in_words(self, sentence: str) -> str:
        """What the library says, as the page does."""
        return for_the_page(sentence, self.paths, self.names)

    def with_names(self, found: Diagnosis | Diagnoses) -> Diagnosis | Diagnoses:
        """Name files in reasons as the user does, since a report is forwarded."""
        if isinstance(found, Diagnoses):
            return replace(found, results={name: self._with_names(one) for name, one in found.items()})
        return self._with_names(found)

    def _with_names(self, found: Diagnosis) -> Diagnosis:
        reasons = tuple(with_file_names(said, self.paths, self.names) for said in found.verdict.reasons)
        return replace(found, verdict=replace(found.verdict, reasons=reasons))

    def check(self, limits: Limits) -> None:
        for role, path in self.paths.items():
            limits.check_file(path, f"{role} ({path})")

    def load(self) -> tuple[Problem, list[WarningRecord]]:
        """Load the problem of the three files, with the warnings that were issued."""
        positive, unlabeled, target = (self.paths[role] for role in ROLES)
        options = self.settings.input_options()
        with record_warnings(*TABLE_WARNINGS, show=True) as records:
            problem = load_problem(
                positive=positive, unlabeled=unlabeled, target=target, several=options.by is not None, options=options
            )
        return problem, records


def look(order: Order, limits: Limits) -> dict[str, Any]:
    """Rows and columns of one file."""
    order.check(limits)
    [(role, path)] = order.paths.items()
    mixed = read_table(path, role).as_cells()
    columns = [
        {"name": mixed.label(k), "kind": _kind(cells), "missing": float(is_missing(cells).mean())}
        for k, cells in enumerate(mixed.cells)
    ]
    return {"rows": len(mixed), "columns": columns, "named": mixed.columns is not None}


def columns(order: Order, limits: Limits) -> dict[str, Any]:
    """What becomes of the columns of the three files, and what looks odd about them."""
    order.check(limits)
    problem, records = order.load()
    messages = [order.in_words(message) for _, message in records]
    return {"columns": [use.to_dict() for use in problem_columns(problem)], "odd": list(dict.fromkeys(messages))}


def run(order: Order, limits: Limits) -> dict[str, Any]:
    """Estimate, and leave a report, the numbers and the decisions in the folder."""
    settings, folder = order.settings, order.folder
    if folder is None:
        raise InputError("the order has no folder for results; reload the page.")
    with track_progress("read", 1) as step:
        step()
        order.check(limits)
        problem, records = order.load()
    estimator = settings.estimator()
    solve: Any = diagnose_target if settings.by is None else diagnose_all_targets
    found: Diagnosis | Diagnoses = solve(problem, estimator, threshold=settings.threshold, records=records)
    found = order.with_names(found)
    (folder / RESULT).write_text(json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False), encoding="utf-8")
    with track_progress("decide", 1) as step:
        step()
        undecided = _decide(order, estimator, problem, found)
    with track_progress("write", 1) as step:
        step()
        command = settings.command(order.names)
        report.write(found, folder / REPORT, command=command)
    files = [name for name in (REPORT, RESULT, DECISIONS) if (folder / name).exists()]
    said = {"headline": _headline(found), "undecided": undecided, "doubted": _doubted(found)}
    return {**said, "files": files, "command": command}


def _kind(cells: Any) -> str:
    if cells.dtype != object:
        return "date" if cells.dtype.kind == "M" else "number"
    return "date" if as_dates(cells) is not None and not is_missing(cells).all() else "text"


def _decide(order: Order, estimator: Any, problem: Problem, found: Any) -> str | None:
    """Write the target with posterior and decision of each row; or return why that cannot be."""
    settings, folder = order.settings, order.folder
    try:
        for sample in problem.targets.values():
            check_names(sample.data, order.names["target"])
        shifted = ShiftedClassifier(
            logistic(), FrozenEstimator(estimator), source_prior=settings.known_prior, random_state=settings.seed
        )
        fit_to_problem(shifted, problem)
        parts = []
        for name, sample in problem.targets.items():
            estimate = found[name].estimate if settings.by else found.estimate
            if np.isfinite(estimate.value):
                parts.append(decide(shifted.adapt_to(estimate), sample.data))
            else:
                parts.append((np.full(len(sample), np.nan), np.zeros(len(sample), dtype=bool)))
    except InputError as error:
        return order.in_words(str(error))
    posterior, decision = (np.concatenate(column) for column in zip(*parts, strict=True))
    if not np.isfinite(posterior).any():
        return "The share cannot be estimated from these data, so that no row is decided."
    if settings.by:  # rows are sorted by target; the file's order is another
        selection = MetadataColumns().selection((), [settings.by])
        table = read_table(order.paths["target"], "target", selection)
        in_file = np.argsort(np.concatenate([*rows_by_value(table, settings.by).values()]))
        posterior, decision = posterior[in_file], decision[in_file]
    write_decided_table(Path(folder or ".") / DECISIONS, order.paths["target"], posterior, decision, safe=True)
    return None


def _headline(found: Diagnosis | Diagnoses) -> str:
    if isinstance(found, Diagnosis):
        return str(found.estimate)
    return f"{len(found)} targets were estimated"


def _doubted(found: Diagnosis | Diagnoses) -> str | None:
    """What is said beside the decisions where the report advises against the number that they rest on."""
    if isinstance(found, Diagnosis):
        bad = found.verdict.answer == "no"
        return "The report advises not to rely on the number that these decisions rest on." if bad else None
    bad_ones = sum(one.verdict.answer == "no" for one in found.values())
    if not bad_ones:
        return None
    return (
        f"The report advises not to rely on the numbers of {bad_ones} of the {len(found)} new populations, on which "
        "the decisions on their rows rest."
    )


WORK = {"look": look, "columns": columns, "run": run}
