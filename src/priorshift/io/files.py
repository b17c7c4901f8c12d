"""What a path names: CSV text, a Parquet file, a pipe, or something unreadable; and files written atomically."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from priorshift.errors import InputError
from priorshift.io.csv_text import Source, open_text

TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
_PATIENCE = 2.0  # seconds until a pipe that nobody has opened for writing is given up

# What a file begins with that is not a table, whatever its name, and what to do about it.
_STRANGERS = (
    (b"\xff\xfe", "is UTF-16 text, which Excel calls Unicode Text", "save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16 text", "save it as UTF-8"),
    (b"%PDF", "is a PDF document", "pass a CSV or Parquet file"),
    (b"{\\rtf", "is a document of a word processor (RTF)", "save the table as CSV text"),
    (b"<!doctype", "is a web page", "download the table itself, as CSV or Parquet"),
    (b"<html", "is a web page", "download the table itself, as CSV or Parquet"),
    (b"<?xml", "is XML", "save the table as CSV text"),
    (b"version https://git-lfs", "is a pointer of Git LFS", "run git lfs pull to get the file itself"),
    (b"sep=", "begins with a line for Excel alone, sep=", "take that line out"),
)


@dataclass(frozen=True)
class Piped:
    """What was read of standard input or of a pipe, which can be read only once."""

    name: str
    content: bytes

    def __str__(self) -> str:
        return self.name


def kind(path: str | Path) -> tuple[str, ...] | None:
    """The endings of its kind, TEXT or PARQUET; None for a name that says neither."""
    suffix = _suffix(Path(path))
    return next((endings for endings in (TEXT, PARQUET) if suffix in endings), None)


def text_or_parquet(path: Path, name: str) -> Source | None:
    """CSV text that can be opened, or None for a Parquet file; everything else is refused."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"{name} does not exist; check the path.") from None
    except PermissionError as error:
        raise _unreadable(name, error) from None
    except (OSError, ValueError):  # a text too long for a path, or with a zero in it
        raise InputError(f"{str(path)[:40]!r} is not a path; pass a table or the path of a file.") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{name} is a folder, but a file is expected; pass the path of a CSV or Parquet file.")
    if stat.S_ISFIFO(mode):
        return check_text(read_pipe(path, name).content, name)
    if not stat.S_ISREG(mode):
        raise InputError(f"{name} is a device, but a file is expected; on the command line, - is standard input.")
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise _unreadable(name, error) from None
    suffix, expected = _suffix(path), kind(path)
    if suffix in _SPREADSHEETS or _is_spreadsheet(path, head):
        raise InputError(
            f"{name} is a spreadsheet, which is not read; save the sheet as CSV (UTF-8), or pass the data frame that "
            "pandas.read_excel makes of it."
        )
    if expected == PARQUET:
        if not head.startswith(b"PAR1"):
            raise InputError(f"{name} is not a Parquet file, whatever its name says; rename it to what it is.")
        return None
    if expected is None:
        ending = f"ends in {path.suffix.lower()!r}" if path.suffix else "has a name without an ending"
        raise InputError(
            f"{name} {ending}, but .csv, .tsv, .txt and .parquet can be read, the texts also with .gz; convert it."
        )
    if head.startswith(b"PAR1"):
        raise InputError(f"{name} is a Parquet file with the name of a CSV file; rename it to .parquet.")
    return check_text(path, name)


def check_text(source: Source, name: str) -> Source:
    """Refuse what begins like something other than CSV text."""
    try:
        with open_text(source) as file:
            head = file.buffer.read(4096)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{name} is a damaged gzip file; write it again.") from None
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for mark, what, remedy in _STRANGERS:
        if start.startswith(mark.lower()):
            raise InputError(f"{name} {what}; {remedy}.")
    if head.startswith(b"PAR1"):
        raise InputError(f"{name} is a Parquet file, but a pipe is read as CSV text; pass the file's own path.")
    if b"\0" in head:
        raise InputError(f"{name} is a binary file, not text; pass a CSV file, saved as UTF-8.")
    if not start:
        raise InputError(f"{name} is empty; pass a file with a header and at least two rows.")
    return source


def is_pipe(source: Any) -> bool:
    """Whether it is the path of a named pipe."""
    with suppress(OSError, ValueError):
        return isinstance(source, (str, Path)) and Path(source).is_fifo()
    return False


def read_pipe(path: str | Path, name: str) -> Piped:
    """Everything that comes through a named pipe; one that nobody writes into is refused instead of waited for."""
    try:
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise _unreadable(name, error) from None
    with os.fdopen(pipe, "rb", buffering=0) as file:
        until = time.monotonic() + _PATIENCE
        while not (start := file.read(1 << 16)):  # None: somebody writes, but nothing has come yet
            if start is None:
                break
            if time.monotonic() > until:
                raise InputError(f"{name} is a pipe that nobody writes into; start its writer, or pass a file.")
            time.sleep(0.01)
        os.set_blocking(pipe, True)
        return Piped(str(path), (start or b"") + file.readall())


def _suffix(path: Path) -> str:
    """The ending that tells the kind: of t.csv.gz it is .csv."""
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    return endings[0] if len(endings) == 2 and endings[1] == ".gz" and endings[0] in TEXT else path.suffix.lower()


def _is_spreadsheet(path: Path, head: bytes) -> bool:
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):  # Excel's files before 2007
        return True
    if not head.startswith(b"PK\3\4"):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.startswith("xl/") or name == "content.xml" for name in archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return False


def _unreadable(name: str, error: OSError) -> InputError:
    return InputError(f"{name} cannot be read ({error.strerror}); check its permissions.")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A draft beside the wanted file, which takes its place once it is complete; a link to it stays a link.

    Parameters
    ----------
    path : str or path
        Of the wanted file.

    Yields
    ------
    Path
        Of the draft.
    """
    try:
        file = Path(os.path.realpath(path))
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            draft = Path(folder) / file.name
            yield draft
            if file.exists():
                shutil.copymode(file, draft)
            os.replace(draft, file)
    except OSError as error:  # whose own file name would be the draft's
        raise InputError(f"{path} cannot be written ({error.strerror or error}); nothing was.") from None
