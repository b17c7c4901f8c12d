"""Files that commands write: told before the work whether they can be written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from priorshift.errors import InputError
from priorshift.input.files import PARQUET, kind


def check_writable(option: str, path: str, inputs: Sequence[str | None] = ()) -> None:
    """Refuse, before any work, what cannot be written, or is one of the inputs.

    Every option that names an output asks here. A link is followed, so that the file that it points to is the one.
    """
    said = f"{option} {path}"
    try:
        file = Path(os.path.realpath(path))
        if file.is_symlink():
            raise InputError(f"{said} is a link that leads back to itself; name a file.")
        with suppress(FileNotFoundError, NotADirectoryError):
            file.lstat()  # raises what the questions below keep to themselves from Python 3.14 on
        if file.is_dir():
            raise InputError(f"{said} is a folder; name a file.")
        if not file.parent.is_dir():
            raise InputError(f"{said} lies in a folder that does not exist; make it first.")
        if file.exists() and not file.is_file():
            raise InputError(f"{said} is a pipe or a device, but files are written whole or not at all; name a file.")
    except (OSError, ValueError) as error:  # a name too long, or with a zero in it, or a folder that is closed to us
        if isinstance(error, InputError):
            raise
        raise InputError(f"{option} {path[:40]!r} is not a path that can be written to; name another file.") from None
    if file.exists() and not os.access(file, os.W_OK):
        raise InputError(f"{said} is there already and is read-only; name another file, or make it writable.")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise InputError(f"{said} lies in {file.parent}, which cannot be written to; name a file in another folder.")
    for other in inputs:
        if other and file.exists() and Path(other).exists() and (file.samefile(other) or _is_part_of(file, other)):
            raise InputError(f"{said} is one of the tables that are read; name another file.")


def _is_part_of(file: Path, folder: str) -> bool:
    """Whether it is one of the Parquet files that a folder is read as."""
    return os.path.isdir(folder) and kind(file) == PARQUET and file.parent.samefile(folder)
