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
from priorshift.api import read_several, read_three
from priorshift.app.settings import ROLES, Settings, for_the_page, with_file_names
from priorshift.app.uploads import Limits
from priorshift.arrays import Floats, Mask
from priorshift.decisions import check_names, decide, fit_to_tables, logistic, write_decided_table
from priorshift.diagnosis.diagnose import GRAVE, ODD, diagnose_from_tables, diagnose_targets_from_tables
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.errors import InputError
from priorshift.io.column_uses import column_uses
from priorshift.io.mixed_tables import MixedTable, as_dates, is_missing, read_columns
from priorshift.io.tables import Table
from priorshift.io.targets import JoinedTargets, rows_by_value
from priorshift.progress import track_progress
from priorshift.shifted_classifier import ShiftedClassifier
from priorshift.warning_records import record_warnings

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

    def read(self) -> tuple[Table, Table, Any]:
        """Unlabelled, positive and target table, or several targets with their names."""
        told, settings = self.settings.told(), self.settings
        positive, unlabeled, target = (self.paths[role] for role in ROLES)
        if settings.by is None:
            return read_three(positive, unlabeled, target, told, settings.drop, "auto")
        return read_several(positive, unlabeled, target, settings.by, told, settings.drop, "auto")


def look(order: Order, limits: Limits) -> dict[str, Any]:
    """Rows and columns of one file."""
    order.check(limits)
    [(role, path)] = order.paths.items()
    table = read_columns(path, role)
    mixed = table if isinstance(table, MixedTable) else MixedTable.of(table)
    columns = [
        {"name": mixed.label(k), "kind": _kind(cells), "missing": float(is_missing(cells).mean())}
        for k, cells in enumerate(mixed.cells)
    ]
    return {"rows": len(mixed), "columns": columns, "named": mixed.columns is not None}


def columns(order: Order, limits: Limits) -> dict[str, Any]:
    """What becomes of the columns of the three files, and what looks odd about them."""
    order.check(limits)
    with record_warnings(*ODD, *GRAVE, show=True) as odd:
        unlabeled, positive, target = order.read()
    if isinstance(target, list):
        target = JoinedTargets.of(target).table
    uses = column_uses(unlabeled, positive, target, order.settings.told(), by=order.settings.by)
    said = [order.in_words(message) for _, message in odd]
    return {"columns": [use.to_dict() for use in uses], "odd": list(dict.fromkeys(said))}


def run(order: Order, limits: Limits) -> dict[str, Any]:
    """Estimate, and leave a report, the numbers and the decisions in the folder."""
    settings, folder = order.settings, order.folder
    if folder is None:
        raise InputError("the order has no folder for results; reload the page.")
    with track_progress("read", 1) as step:
        step()
        order.check(limits)
        with record_warnings(*ODD, *GRAVE, show=True) as odd:
            unlabeled, positive, target = order.read()
    estimator, told = settings.estimator(), settings.told()
    about: dict[str, Any] = {"told": told, "threshold": settings.threshold, "said": odd}
    found: Diagnosis | Diagnoses
    if settings.by is None:
        found = diagnose_from_tables(estimator, unlabeled, positive, target, **about)
    else:
        found = diagnose_targets_from_tables(estimator, unlabeled, positive, target, by=settings.by, **about)
    found = order.with_names(found)
    (folder / RESULT).write_text(json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False), encoding="utf-8")
    with track_progress("decide", 1) as step:
        step()
        undecided = _decide(order, estimator, unlabeled, positive, target, found)
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


def _decide(order: Order, estimator: Any, unlabeled: Table, positive: Table, target: Any, found: Any) -> str | None:
    """Write the target with posterior and decision of each row; or why that cannot be."""
    settings, folder = order.settings, order.folder
    named = target if isinstance(target, list) else [("", target)]
    one = JoinedTargets.of(named).table if isinstance(target, list) else target
    try:
        check_names(one, order.names["target"])
        shifted = ShiftedClassifier(
            logistic(), FrozenEstimator(estimator), source_prior=settings.known_prior, random_state=settings.seed
        )
        fit_to_tables(shifted, unlabeled, positive, one, settings.told())
        parts = []
        for name, table in named:
            estimate = found[name].estimate if settings.by else found.estimate
            if np.isfinite(estimate.value):
                parts.append(decide(shifted.adapt_to(estimate), table))
            else:
                rows = len(table.values)
                parts.append((np.full(rows, np.nan), np.zeros(rows, dtype=bool)))
    except InputError as error:
        return order.in_words(str(error))
    posterior, decision = (np.concatenate(column) for column in zip(*parts, strict=True))
    if not np.isfinite(posterior).any():
        return "The share cannot be estimated from these data, so that no row is decided."
    if settings.by:
        posterior, decision = _as_they_stood(order, posterior, decision)
    write_decided_table(Path(folder or ".") / DECISIONS, order.paths["target"], posterior, decision, safe=True)
    return None


def _as_they_stood(order: Order, posterior: Floats, decision: Mask) -> tuple[Floats, Mask]:
    """Rows that were sorted by their target, in the order of the file."""
    settings, by = order.settings, str(order.settings.by)
    beside = settings.told().of_target(settings.drop, aside=[by])
    table: Any = read_columns(order.paths["target"], "target", **beside)
    rows = np.concatenate([rows for _, rows in rows_by_value(table, by)])
    before = np.argsort(rows)
    return posterior[before], decision[before]


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
