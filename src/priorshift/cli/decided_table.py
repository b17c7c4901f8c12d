"""The table that `adapt` writes: the target's file with two more columns, posterior and decision of each row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.arrays import Floats, Mask
from priorshift.cli.writable import check_writable
from priorshift.errors import InputError
from priorshift.input.csv_text import add_columns
from priorshift.input.files import PARQUET, TEXT, Piped, is_pipe, kind
from priorshift.whole_file import whole_file

COLUMNS = ("posterior", "decision")


def check_output(output: str, target: str, inputs: Sequence[str | None]) -> None:
    """Before any work: can the copy be written, and would it overwrite one of the inputs?"""
    made, read = kind(output), TEXT if target == "-" or is_pipe(target) else kind(target)
    if made is None or (read is not None and made != read):
        wanted = read or (*TEXT, *PARQUET)
        raise InputError(f"--output {output} must end in {' or '.join(wanted)}, as the target does; name it so.")
    check_writable("--output", output, inputs)


def check_names(names: Sequence[str], target: str) -> None:
    """The two columns must be new."""
    for column in COLUMNS:
        if column in names:
            raise InputError(f"{target} has a column {column!r} already; rename it, since the output adds one.")


def write_decided_table(output: str, target: str | Piped, posterior: Floats, decision: Mask) -> None:
    """Write the copy, all of it or nothing."""
    with whole_file(output) as draft:
        if not isinstance(target, Piped) and kind(target) == PARQUET:
            _write_parquet(draft, Path(target), (posterior, decision.astype(np.int8)))
        else:
            text = target.content if isinstance(target, Piped) else Path(target)
            cells = [f"{p:.6g}" for p in posterior], [str(int(positive)) for positive in decision]
            packed = Path(output).suffix.lower() == ".gz"
            add_columns(text, draft, dict(zip(COLUMNS, cells, strict=True)), packed=packed)


def _write_parquet(draft: Path, target: Path, columns: Sequence[Any]) -> None:
    import pyarrow
    from pyarrow import parquet

    table: Any = parquet.read_table(target)
    for name, column in zip(COLUMNS, columns, strict=True):
        table = table.append_column(name, pyarrow.array(column))
    parquet.write_table(table, draft)
