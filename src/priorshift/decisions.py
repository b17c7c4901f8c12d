"""A copy of the target's file with two more columns: the posterior of each row, and the decision."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError
from priorshift.kernels import Matrix

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


def write_decisions(output: str, target: str, posterior: Matrix, decision: NDArray[np.bool_]) -> None:
    """Write beside the wanted file, then rename: all of it or nothing."""
    write = _parquet if Path(target).suffix.lower() in _PARQUET else _text
    with tempfile.TemporaryDirectory(dir=Path(output).absolute().parent) as folder:
        made = Path(folder) / Path(output).name
        write(made, Path(target), posterior, decision)
        os.replace(made, output)


def _text(made: Path, target: Path, posterior: Matrix, decision: NDArray[np.bool_]) -> None:
    with target.open(encoding="utf-8-sig", newline="") as file:
        first = next(line for line in file if line.strip())
        separator = max(",;\t", key=first.count)
        file.seek(0)
        rows = [row for row in csv.reader(file, delimiter=separator, skipinitialspace=True) if any(map(str.strip, row))]
    header = len(rows) > len(posterior)
    with made.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        if header:
            writer.writerow([*rows[0], *COLUMNS])
        for row, p, positive in zip(rows[header:], posterior, decision, strict=True):
            writer.writerow([*row, f"{p:.6g}", int(positive)])


def _parquet(made: Path, target: Path, posterior: Matrix, decision: NDArray[np.bool_]) -> None:
    import pyarrow
    from pyarrow import parquet

    table: Any = parquet.read_table(target)
    for name, column in zip(COLUMNS, (posterior, decision.astype(np.int8)), strict=True):
        table = table.append_column(name, pyarrow.array(column))
    parquet.write_table(table, made)
