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

COLUMNS = ("posterior", "decision")


def logistic(*, scale: bool = True) -> Any:
    """The classifier that needs nothing beside scikit-learn.

    Parameters
    ----------
    scale : bool
        Whether columns are standardised before.

    Returns
    -------
    classifier
    """
    return make_pipeline(StandardScaler(with_mean=scale, with_std=scale), LogisticRegression(max_iter=1000))


def fit_to_problem(shifted: ShiftedClassifier, problem: Problem) -> None:
    """Fit a shifted classifier to the source of a problem, and refuse metadata that its prior estimator cannot use."""
    prior: Any = shifted.prior_estimator
    asked = prior.estimator if isinstance(prior, FrozenEstimator) else prior
    source = shifted.source_of(problem)
    metadata_arguments(asked, source.metadata)
    if getattr(asked, "scenario", None) == "case-control":
        source.warn_of_unstated_sharing()
    shifted.fit_source(source)


def decide(shifted: ShiftedClassifier, target: Table) -> tuple[Floats, Mask]:
    """Decide rows by a classifier that is adapted to their prior.

    Parameters
    ----------
    shifted : ShiftedClassifier
        Adapted.
    target : Table
        The rows.

    Returns
    -------
    posterior : ndarray of float
        Of being positive.
    decision : ndarray of bool
        True for positive.
    """
    return shifted.predict_proba(target)[:, 1], shifted.predict(target) == 1


def check_names(target: Table, name: str) -> None:
    """Refuse a target that has one of the two columns already.

    Parameters
    ----------
    target : Table
        As it was read.
    name : str
        Of its file.
    """
    features = target.columns or () if target.origin is None else target.origin.columns
    for column in COLUMNS:
        if column in (*features, *target.dropped, *target.extra):
            raise InputError(f"{name} has a column {column!r} already; rename it, since the output adds one.")


def write_decided_table(
    output: str | Path, target: str | Path | Piped, posterior: Floats, decision: Mask, *, safe: bool = False
) -> int:
    """Write a copy of the target's file with the two columns, all of it or nothing.

    Parameters
    ----------
    output : path
        A Parquet file can be written as text too; its name tells.
    target : path or Piped
        As it was read.
    posterior, decision : ndarray
        Of each row; where the posterior is NaN, cells of text are empty.
    safe : bool
        Whether text is for a spreadsheet, which must not take cells for formulas.

    Returns
    -------
    int
        How many cells a spreadsheet would take for formulas.
    """
    with atomic_write(output) as draft:
        is_parquet = not isinstance(target, Piped) and kind(target) == PARQUET
        if is_parquet and kind(output) == PARQUET:
            _write_parquet(draft, Path(str(target)), (posterior, decision.astype(np.int8)))
            return 0
        text = target.content if isinstance(target, Piped) else Path(target)
        if is_parquet:
            text = _as_text(Path(str(target)), draft.with_name("as_text.csv"))
        known = np.isfinite(posterior)
        cells = (
            [f"{p:.6g}" if there else "" for p, there in zip(posterior, known, strict=True)],
            [str(int(positive)) if there else "" for positive, there in zip(decision, known, strict=True)],
        )
        packed = Path(output).suffix.lower() == ".gz"
        return add_columns(text, draft, dict(zip(COLUMNS, cells, strict=True)), packed=packed, safe=safe)


def _write_parquet(draft: Path, target: Path, columns: Sequence[Any]) -> None:
    import pyarrow
    from pyarrow import parquet

    table: Any = parquet.read_table(target)
    for name, column in zip(COLUMNS, columns, strict=True):
        table = table.append_column(name, pyarrow.array(column))
    parquet.write_table(table, draft)


def _as_text(target: Path, text: Path) -> Path:
    """A Parquet file as CSV text, without columns that text has no cells for."""
    import pyarrow.csv
    from pyarrow import parquet, types

    table: Any = parquet.read_table(target)
    odd = [field.name for field in table.schema if types.is_nested(field.type) or types.is_binary(field.type)]
    pyarrow.csv.write_csv(table.drop_columns(odd), text)
    return text
