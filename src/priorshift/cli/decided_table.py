"""The table that `adapt` writes: the target's file with two more columns, posterior and decision of each row."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.arrays import Floats, Mask
from priorshift.errors import InputError
from priorshift.input.csv_text import add_columns

COLUMNS = ("posterior", "decision")
_TEXT = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")


def check_output(output: str, target: str, inputs: Sequence[str | None]) -> None:
    """Before any work: can the copy be written, and would it overwrite one of the inputs?"""
    kinds = [next((kind for kind in (_TEXT, _PARQUET) if Path(path).suffix.lower() in kind), None)
             for path in (output, target)]  # fmt: skip
    if kinds[0] is None or (kinds[1] is not None and kinds[0] != kinds[1]):
        wanted = kinds[1] or (*_TEXT, *_PARQUET)
        raise InputError(f"--output {output} must end in {' or '.join(wanted)}, as the target does; name it so.")
    if not Path(output).absolute().parent.is_dir():
        raise InputError(f"--output {output} lies in a folder that does not exist; make it first.")
    if Path(output).is_dir():
        raise InputError(f"--output {output} is a folder; name a file.")
    for path in inputs:
        if path and Path(output).exists() and Path(path).exists() and Path(output).samefile(path):
            raise InputError(f"--output {output} is one of the tables that are read; name another file.")


def check_names(names: Sequence[str], target: str) -> None:
    """The two columns must be new."""
    for column in COLUMNS:
        if column in names:
            raise InputError(f"{target} has a column {column!r} already; rename it, since the output adds one.")


def write_decided_table(output: str, target: str, posterior: Floats, decision: Mask) -> None:
    """Write beside the wanted file, then rename: all of it or nothing."""
    with tempfile.TemporaryDirectory(dir=Path(output).absolute().parent) as folder:
        draft = Path(folder) / Path(output).name
        if Path(target).suffix.lower() in _PARQUET:
            _write_parquet(draft, Path(target), (posterior, decision.astype(np.int8)))
        else:
            cells = [f"{p:.6g}" for p in posterior], [str(int(positive)) for positive in decision]
            add_columns(Path(target), draft, dict(zip(COLUMNS, cells, strict=True)))
        os.replace(draft, output)


def _write_parquet(draft: Path, target: Path, columns: Sequence[Any]) -> None:
    import pyarrow
    from pyarrow import parquet

    table: Any = parquet.read_table(target)
    for name, column in zip(COLUMNS, columns, strict=True):
        table = table.append_column(name, pyarrow.array(column))
    parquet.write_table(table, draft)
