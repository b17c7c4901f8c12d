"""The table that `adapt` writes: whether it can be written is told before any work."""

from __future__ import annotations

from collections.abc import Sequence

from priorshift.cli.writable import check_writable
from priorshift.errors import InputError
from priorshift.input.files import PARQUET, TEXT, is_pipe, kind


def check_output(output: str, target: str, inputs: Sequence[str | None]) -> None:
    """Before any work: can the copy be written, and would it overwrite one of the inputs?"""
    made, read = kind(output), TEXT if target == "-" or is_pipe(target) else kind(target)
    if made is None or (read is not None and made != read):
        wanted = read or (*TEXT, *PARQUET)
        raise InputError(f"--output {output} must end in {' or '.join(wanted)}, as the target does; name it so.")
    check_writable("--output", output, inputs)
