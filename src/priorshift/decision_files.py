"""Decisions on the rows of a target, and a copy of its file with posterior and decision, for the shell and the app."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from priorshift.adapt import Decisions
from priorshift.arrays import Floats, Index, Mask
from priorshift.class_decisions import ClassDecisions, decide_classes
from priorshift.class_priors import ClassPriors
from priorshift.errors import InputError
from priorshift.io.csv_text import add_columns
from priorshift.io.files import PARQUET, TEXT, WORKBOOKS, FileVersion, Piped, atomic_write, check_unchanged, kind
from priorshift.io.readers import read_table
from priorshift.io.row_metadata import MetadataColumns, metadata_arguments
from priorshift.io.tables import Table
from priorshift.io.targets import rows_by_value
from priorshift.io.workbooks import add_workbook_columns, write_sheet_as_text
from priorshift.methods.multiclass import MulticlassShift
from priorshift.problem import Problem
from priorshift.results import PriorEstimate
from priorshift.shifted_classifier import ShiftedClassifier

ADDED_COLUMNS = ("posterior", "decision")
DecidedColumns = Mapping[str, NDArray[Any]]  # further columns by name: posteriors, and the decision, which is the last


def logistic(*, scale: bool = True) -> Any:
    """Return an unfitted logistic regression; `scale` standardises the columns first."""
    return make_pipeline(StandardScaler(with_mean=scale, with_std=scale), LogisticRegression(max_iter=1000))


def fit_to_problem(shifted: ShiftedClassifier, problem: Problem) -> None:
    """Fit a shifted classifier to the source of a problem; refuse metadata that its prior estimator cannot use."""
    estimator: Any = shifted.prior_estimator
    if isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    source = shifted.source_of(problem)
    metadata_arguments(estimator, source.metadata)  # a frozen estimator is not fitted again, so check it here
    shifted.fit_source(source)


@dataclass(frozen=True)
class DecidedTarget:
    """A target's estimate, None if its prior was given, and the decisions on its rows."""

    estimate: PriorEstimate | None
    target_prior: float
    decisions: Decisions


def decide_targets(
    shifted: ShiftedClassifier,
    problem: Problem,
    priors: Mapping[str, PriorEstimate | float] | None = None,
    **rule: float | None,
) -> tuple[Floats, Mask, dict[str, DecidedTarget]]:
    """Return the posterior and decision of each row of all targets, in the order of the targets, and each target's.

    The classifier is adapted to each target in turn, by `priors` or else by an estimate. A target whose prior is NaN is
    not decided: its posteriors are NaN. `rule` is that of `ShiftedClassifier.decide`, for each target by itself.
    """
    posteriors, is_positive, decided = [], [], {}
    for name, sample in problem.targets.items():
        rows, metadata = sample.data, sample.metadata
        prior = None if priors is None else priors[name]
        if prior is not None and not np.isfinite(prior.value if isinstance(prior, PriorEstimate) else prior):
            posteriors.append(np.full(len(rows), np.nan))
            is_positive.append(np.zeros(len(rows), dtype=bool))
            continue
        if prior is None:
            shifted.adapt(rows, audit=metadata.audit, weights=metadata.weights, groups=metadata.groups)
        else:
            shifted.adapt_to(prior)
        decisions = shifted.decide(rows, **rule)  # type: ignore[arg-type]
        posteriors.append(shifted.predict_proba(rows)[:, 1])
        is_positive.append(decisions.is_positive)
        decided[name] = DecidedTarget(shifted.estimate_, shifted.target_prior_, decisions)
    return np.concatenate(posteriors), np.concatenate(is_positive), decided


@dataclass(frozen=True)
class DecidedClasses:
    """The estimated shares of the classes in a target, and the decisions on its rows."""

    priors: ClassPriors
    decisions: ClassDecisions


def decide_class_targets(
    shift: MulticlassShift,
    problem: Problem,
    priors: Mapping[str, ClassPriors],
    costs: Mapping[str, float] | None = None,
) -> tuple[DecidedColumns, dict[str, DecidedClasses]]:
    """Decide on the rows of all targets by a fitted estimator and the estimated shares of each target, by name.

    Return a column of the posterior of each class and one of decisions, with the rows in the order of the targets, and
    the decisions on each target. `costs` are those of `decide_classes`.
    """
    equal = {str(name): 1 / len(shift.classes_) for name in shift.classes_}
    decided = {}
    for name, sample in problem.targets.items():
        base = shift.posteriors(sample.data, equal)
        decided[name] = DecidedClasses(priors[name], decide_classes(base, priors[name], costs))
    posteriors = np.concatenate([one.decisions.posteriors for one in decided.values()])
    decisions = np.concatenate([one.decisions.names for one in decided.values()])
    *added, last = class_columns(shift.classes_)
    return {**dict(zip(added, posteriors.T, strict=True)), last: decisions}, decided


def class_columns(classes: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the columns that decisions on several classes add to a target's file."""
    return (*(f"posterior_{name}" for name in classes), "decision")


def order_of_file(
    target: str | Path | Piped,
    by: str | None,
    rows: int,
    sheet: str | None = None,
    version: FileVersion | None = None,
) -> Index:
    """Return the position of each row of a target's file among the rows in the order of the targets, by column `by`.

    `sheet` is that of a workbook, and `version` that of the file when its rows were read.
    """
    if by is None:
        return np.arange(rows)
    with check_unchanged(version):
        table = read_table(target, "target", replace(MetadataColumns().selection((), [by]), sheet=sheet))
    rows_of_targets = np.concatenate(list(rows_by_value(table, by).values()))
    return np.argsort(rows_of_targets)  # inverse of the permutation


def check_names(target: Table, name: str, added: Sequence[str] = ADDED_COLUMNS) -> None:
    """Refuse a target that already has one of the columns to be added; `name` is that of its file."""
    features = target.origin.columns if target.origin is not None else target.columns or ()
    present = [*features, *target.dropped, *target.extra]
    for column in added:
        if column in present:
            raise InputError(f"{name} has a column {column!r} already; rename it, since the output adds one.")


def decided_columns(posterior: Floats, decision: Mask) -> DecidedColumns:
    """Return the columns that decisions on positives add to a target's file."""
    return dict(zip(ADDED_COLUMNS, (posterior, decision.astype(np.int8)), strict=True))


def write_decided_table(
    output: str | Path,
    target: str | Path | Piped,
    columns: DecidedColumns,
    *,
    safe: bool = False,
    sheet: str | None = None,
    version: FileVersion | None = None,
) -> int:
    """Write a copy of the target's file with posteriors and decision; return how many cells look like formulas.

    `columns` are in the order of the file's rows. The name of the output decides whether a Parquet or Excel file is
    copied in its format or as text. Where the first column, a posterior, is NaN, cells of text are empty. `safe`
    escapes text that a spreadsheet would take for a formula. `sheet` is that of a workbook. If `version` is that of the
    file from which the decisions were computed, a file that has changed since is refused, because its rows may be
    others.
    """
    text = target.content if isinstance(target, Piped) else Path(target)
    is_parquet = isinstance(text, Path) and kind(text) == PARQUET
    with atomic_write(output) as draft, check_unchanged(version):
        if isinstance(text, Path) and kind(text) == WORKBOOKS and kind(output) == TEXT:
            text = write_sheet_as_text(text, draft.with_name("as_text.csv"), sheet)
        elif isinstance(text, Path) and kind(text) == WORKBOOKS:
            add_workbook_columns(text, draft, _cells(columns, None, lambda value: value), sheet)
            return 0
        if isinstance(text, Path) and is_parquet:
            if kind(output) == PARQUET:
                _write_parquet(draft, text, columns)
                return 0
            text = _write_as_text(text, draft.with_name("as_text.csv"))
        cells = _cells(columns, "", lambda value: f"{value:.6g}" if isinstance(value, float) else str(value))
        packed = Path(output).suffix.lower() == ".gz"
        return add_columns(text, draft, cells, packed=packed, safe=safe, blank_rows=is_parquet)


def _cells(columns: DecidedColumns, empty: Any, write: Callable[[Any], Any]) -> dict[str, list[Any]]:
    """Return the cells of each column as `write` gives them; those of rows without a decision are `empty`."""
    first, *_ = columns.values()
    is_decided = np.isfinite(first).tolist()
    return {
        name: [write(value) if known else empty for value, known in zip(values.tolist(), is_decided, strict=True)]
        for name, values in columns.items()
    }


def _write_parquet(draft: Path, target: Path, columns: DecidedColumns) -> None:
    """Write a copy of the Parquet file `target`, with added columns by name, to the file `draft`."""
    import pyarrow
    from pyarrow import parquet

    table: Any = parquet.read_table(target)
    for name, column in columns.items():
        table = table.append_column(name, pyarrow.array(column))
    parquet.write_table(table, draft)


def _write_as_text(target: Path, text: Path) -> Path:
    """Write the Parquet file `target` as CSV to `text`, without nested and binary columns, and return `text`."""
    import pyarrow.csv
    from pyarrow import parquet, types

    table: Any = parquet.read_table(target)
    unsupported = [field.name for field in table.schema if types.is_nested(field.type) or types.is_binary(field.type)]
    pyarrow.csv.write_csv(table.drop_columns(unsupported), text)
    return text
