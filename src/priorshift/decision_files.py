"""Decisions on the rows of a target, and a copy of its file with posterior and decision, for the shell and the app."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from priorshift.arrays import Floats, Mask
from priorshift.errors import InputError
from priorshift.io.csv_text import add_columns
from priorshift.io.files import PARQUET, Piped, atomic_write, kind
from priorshift.io.row_metadata import metadata_arguments
from priorshift.io.tables import Table
from priorshift.problem import Problem
from priorshift.shifted_classifier import ShiftedClassifier

ADDED_COLUMNS = ("posterior", "decision")


def logistic(*, scale: bool = True) -> Any:
    """Return an unfitted logistic regression; `scale` standardises the columns first."""
    return make_pipeline(StandardScaler(with_mean=scale, with_std=scale), LogisticRegression(max_iter=1000))


def fit_to_problem(shifted: ShiftedClassifier, problem: Problem) -> None:
    """Fit a shifted classifier to the source of a problem, and refuse metadata that its prior estimator cannot use."""
    estimator: Any = shifted.prior_estimator
    if isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    source = shifted.source_of(problem)
    metadata_arguments(estimator, source.metadata)
    if getattr(estimator, "scenario", None) == "case-control":
        source.warn_of_unstated_sharing()
    shifted.fit_source(source)


def decide(shifted: ShiftedClassifier, target: Table) -> tuple[Floats, Mask]:
    """Return the posterior of each row of a target, and whether it is decided positive, by an adapted classifier."""
    return shifted.predict_proba(target)[:, 1], shifted.predict(target) == 1


def check_names(target: Table, name: str) -> None:
    """Refuse a target that already has a column "posterior" or "decision"; `name` is that of its file."""
    features = target.columns or () if target.origin is None else target.origin.columns
    for column in ADDED_COLUMNS:
        if column in (*features, *target.dropped, *target.extra):
            raise InputError(f"{name} has a column {column!r} already; rename it, since the output adds one.")


def write_decided_table(
    output: str | Path, target: str | Path | Piped, posterior: Floats, decision: Mask, *, safe: bool = False
) -> int:
    """Write a copy of the target's file with posterior and decision; return how many cells look like formulas.

    The name of the output decides whether a Parquet file is copied as Parquet or as text. Where the posterior is NaN,
    cells of text are empty. `safe` escapes text that a spreadsheet would take for a formula.
    """
    is_parquet = not isinstance(target, Piped) and kind(target) == PARQUET
    text = target.content if isinstance(target, Piped) else Path(target)
    with atomic_write(output) as draft:
        if is_parquet and kind(output) == PARQUET:
            _write_parquet(draft, Path(str(target)), (posterior, decision.astype(np.int8)))
            return 0
        if is_parquet:
            text = _as_text(Path(str(target)), draft.with_name("as_text.csv"))
        posteriors, decisions = [f"{value:.6g}" for value in posterior], [str(int(value)) for value in decision]
        for row in np.flatnonzero(~np.isfinite(posterior)):
            posteriors[row] = decisions[row] = ""
        cells: dict[str, Sequence[str]] = dict(zip(ADDED_COLUMNS, (posteriors, decisions), strict=True))
        return add_columns(text, draft, cells, packed=Path(output).suffix.lower() == ".gz", safe=safe)


def _write_parquet(draft: Path, target: Path, columns: Sequence[Any]) -> None:
    """Write a copy of the Parquet file `target` with the added columns to `draft`."""
    import pyarrow
    from pyarrow import parquet

    table: Any = parquet.read_table(target)
    for name, column in zip(ADDED_COLUMNS, columns, strict=True):
        table = table.append_column(name, pyarrow.array(column))
    parquet.write_table(table, draft)


def _as_text(target: Path, text: Path) -> Path:
    """Write a Parquet file as CSV text, without nested and binary columns, and return the path of the text."""
    import pyarrow.csv
    from pyarrow import parquet, types

    table: Any = parquet.read_table(target)
    unsupported = [field.name for field in table.schema if types.is_nested(field.type) or types.is_binary(field.type)]
    pyarrow.csv.write_csv(table.drop_columns(unsupported), text)
    return text
