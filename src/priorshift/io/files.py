"""Files: what a path names (CSV text, Parquet, a pipe, or something unreadable), files written atomically, and checked
fields of what a file stores.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.io.csv_text import WINDOWS, Source, empty_file_error, encoding_of, explain_errors, open_bytes
from priorshift.io.temporary_folders import temporary_folder
from priorshift.io.workbook_parts import DAMAGE, open_archive
from priorshift.warning_records import FormatNotice, warn

TEXT = (".csv", ".tsv", ".txt")
MAGIC = b"priorshift file\n"  # first bytes of a saved sketch, histogram or score model
PARQUET = (".parquet", ".pq")
WORKBOOKS = (".xlsx", ".xlsm")  # Excel's files since 2007
_SPREADSHEETS = (".xls", ".xlsb", ".ods")
_OLD_EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # first bytes of Excel's files before 2007
_DRAFTS = ".priorshift-draft-"  # beginning of the names of folders with files that are being written
_OPEN_FILES = ("/dev/fd", "/proc/self/fd")  # folders of the open files of this process, by number
_PATIENCE = 2.0  # seconds to wait for the writer of a pipe

# First bytes (in lower case) of files that are not tables, what the file is, and what to do instead.
_NOT_TABLES = (
    ((b"\xff\xfe", b"\xfe\xff"), "is UTF-16 text, which Excel calls Unicode Text", "save it as UTF-8"),
    (b"%pdf", "is a PDF document", "pass a CSV or Parquet file"),
    (b"{\\rtf", "is a document of a word processor (RTF)", "save the table as CSV text"),
    ((b"<!doctype", b"<html"), "is a web page", "download the table itself, as CSV or Parquet"),
    (b"<?xml", "is XML", "save the table as CSV text"),
    (b"version https://git-lfs", "is a pointer of Git LFS", "run git lfs pull to get the file itself"),
    (b"sep=", "begins with a line for Excel alone, sep=", "take that line out"),
)


@dataclass(frozen=True)
class Piped:
    """The content of standard input or of a pipe, which can be read only once."""

    name: str
    content: bytes

    def __str__(self) -> str:
        """Return the name, as messages show it."""
        return self.name


def kind(path: str | Path) -> tuple[str, ...] | None:
    """Return the file format that a file's name states: TEXT (also with .gz), PARQUET or WORKBOOKS; otherwise None."""
    path = Path(path)
    if path.suffix.lower() == ".gz" and Path(path.stem).suffix.lower() in TEXT:
        return TEXT
    for suffixes in (TEXT, PARQUET, WORKBOOKS):
        if path.suffix.lower() in suffixes:
            return suffixes
    return None


def text_or_parquet(path: Path, name: str) -> Source | None:
    """Return the source of a file's CSV text (the path, or the content of a pipe); None for Parquet and Excel files.

    Refuse all other files; `name` is how messages call the file.
    """
    mode = file_mode(path, name)
    if stat.S_ISDIR(mode):
        raise InputError(f"{name} is a folder, but a file is expected; pass the path of a CSV or Parquet file.")
    if is_pipe(path):
        return check_text(read_pipe(path, name).content, name)
    if not stat.S_ISREG(mode):
        raise InputError(f"{name} is a device, but a file is expected; on the command line, - is standard input.")
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise _unreadable(name, error) from None
    expected, is_zip = kind(path), head.startswith(b"PK\3\4")
    if expected == WORKBOOKS and head.startswith(_OLD_EXCEL):
        raise InputError(
            f"{name} has a password, or is an .xls file named .xlsx; open it in Excel and save it as .xlsx without one."
        )
    if path.suffix.lower() in _SPREADSHEETS or head.startswith(_OLD_EXCEL):
        raise InputError(f"{name} is a spreadsheet in a format that is not read; save it as .xlsx or CSV.")
    if is_zip and expected != WORKBOOKS and _is_spreadsheet(path):
        raise InputError(
            f"{name} is a spreadsheet with the name of another file; rename it to .xlsx, or save it as CSV."
        )
    if expected == WORKBOOKS:
        if not is_zip:
            raise InputError(
                f"{name} is a spreadsheet by its name, but not by its content; rename it, or save it again."
            )
        return None
    is_parquet = head.startswith(b"PAR1")
    if expected is None:
        ending = f"ends in {path.suffix.lower()!r}" if path.suffix else "has a name without an ending"
        raise InputError(
            f"{name} {ending}, but .csv, .tsv, .txt (also with .gz), .xlsx or .parquet is expected; convert it."
        )
    if expected == PARQUET and not is_parquet:
        raise InputError(f"{name} is named as a Parquet file, but is not one; rename it.")
    if expected == TEXT and is_parquet:
        raise InputError(f"{name} is a Parquet file with the name of a CSV file; rename it to .parquet.")
    return None if is_parquet else check_text(path, name)


def file_mode(path: str | Path, name: str) -> int:
    """Return the mode of a file, which shows its kind; refuse a path that leads to none.

    `name` is how messages call the file.
    """
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{name} does not exist; check the path.") from None
    except PermissionError as error:
        folder = Path(path).parent
        raise InputError(f"{name} cannot be read ({error.strerror}); check the permissions of {folder}.") from None
    except (OSError, ValueError) as error:  # the text is too long for a path, or contains a null character
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            raise InputError(f"{name} is a link that leads back to itself; pass the path of a file.") from None
        raise InputError(f"{str(path)[:40]!r} is not a path; pass a table or the path of a file.") from None


def check_text(source: Source, name: str) -> Source:
    """Return the source unchanged; refuse it if its first bytes show that it is not CSV text."""
    with explain_errors(name), open_bytes(source) as file:
        head = file.read(4096)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for signature, description, remedy in _NOT_TABLES:
        if start.startswith(signature):
            raise InputError(f"{name} {description}; {remedy}.")
    if head.startswith(b"PAR1"):
        raise InputError(f"{name} is a Parquet file, but a pipe is read as CSV text; pass the file's own path.")
    if b"\0" in head:
        raise InputError(f"{name} is a binary file, not text; pass a CSV file, saved as UTF-8.")
    if not start:
        raise empty_file_error(name)
    with explain_errors(name):
        encoding = encoding_of(source)
    if encoding == WINDOWS:
        warn(
            "Text that is not UTF-8 was read as Windows-1252, which older versions of Excel and R write. If levels of "
            "categories have wrong letters in the report, save the tables as UTF-8.",
            FormatNotice,
        )
    return source


def is_pipe(source: Any) -> bool:
    """Return whether a source is the path of a named pipe, or a number of an open file such as /dev/stdin or /dev/fd/9.

    A file behind such a number has a name that says nothing about its format. It is read like a pipe, as CSV text,
    unless it is a sketch or a histogram.
    """
    with suppress(OSError, ValueError):
        if not isinstance(source, (str, Path)):
            return False
        path = Path(source)
        is_number = str(path) == "/dev/stdin" or str(path.parent) in _OPEN_FILES
        return path.is_fifo() or (is_number and path.is_file() and not is_saved(path))
    return False


def read_pipe(path: str | Path, name: str) -> Piped:
    """Read a named pipe, or a file behind a number, to its end; refuse a pipe without a writer for a few seconds."""
    try:
        if not Path(path).is_fifo():
            return Piped(str(path), Path(path).read_bytes())
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise _unreadable(name, error) from None
    with os.fdopen(pipe, "rb", buffering=0) as file:
        deadline = time.monotonic() + _PATIENCE
        # b"" means that there is no writer yet; None that there is one, which has not written anything
        while (first_bytes := file.read(1 << 16)) == b"":
            if time.monotonic() > deadline:
                raise InputError(f"{name} is a pipe that nobody writes into; start its writer, or pass a file.")
            time.sleep(0.01)
        os.set_blocking(pipe, True)
        return Piped(str(path), (first_bytes or b"") + file.readall())


@dataclass(frozen=True)
class FileVersion:
    """The content of a file at one time, by which a change between two times that it is read is noticed."""

    path: Path
    name: str  # in messages
    digest: bytes | None  # None if the file cannot be read

    @classmethod
    def from_path(cls, path: str | Path, name: str) -> FileVersion | None:
        """Hash the content of a file; None if the path is not that of a regular file."""
        path = Path(path)
        with suppress(OSError, ValueError):
            if path.is_file():
                return cls(path, name, _hash_content(path))
        return None

    def check(self) -> None:
        """Refuse the file if its content has changed since."""
        if _hash_content(self.path) != self.digest:
            raise InputError(f"{self.name} was changed or deleted while it was read; run this again.") from None


@contextmanager
def check_unchanged(version: FileVersion | None) -> Iterator[None]:
    """Refuse a file that has changed since `version` was read, at the end of the context; None is not checked.

    An error in the context is probably a consequence of the change, so the change is reported instead.
    """
    try:
        yield
    except Exception:
        if version is not None:
            version.check()
        raise
    if version is not None:
        version.check()


def _hash_content(path: Path) -> bytes | None:
    """Return a hash of the bytes of a file; None if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return None


def _is_spreadsheet(archive_path: Path) -> bool:
    """Return whether a zip file is a workbook of Excel (xl/) or of LibreOffice (content.xml)."""
    try:
        with open_archive(archive_path) as archive:
            return any(name.startswith("xl/") or name == "content.xml" for name in archive.namelist())
    except DAMAGE:
        return False


def _unreadable(name: str, error: OSError) -> InputError:
    """Return the error for a file that cannot be opened."""
    return InputError(f"{name} cannot be read ({error.strerror}); check its permissions.")


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces `path` when the context ends; a symbolic link stays a link.

    Its content is on disk before it replaces the file, so that after a power failure `path` is the old or the new one.
    A `private` file can be read by its owner alone, from its creation on. An error of another file, such as one that
    is read in the context, is raised unchanged.
    """
    of_other_file: OSError | None = None
    if "\0" in os.fsdecode(path):
        raise InputError(f"Cannot write {path!r}: a path has no null characters. No file was changed.")
    try:
        file = Path(os.path.realpath(path))
        with temporary_folder(_DRAFTS, file.parent) as folder:
            draft = folder / "draft" / file.name  # next to no other file, whatever its name
            draft.parent.mkdir()
            if private:
                draft.touch(mode=0o600, exist_ok=False)
            try:
                yield draft
            except OSError as error:
                is_full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None))  # which no reading can raise
                is_named = isinstance(error.filename, str)
                if not is_full and is_named and not Path(error.filename).is_relative_to(folder):
                    of_other_file = error
                raise
            if file.exists() and not private:
                shutil.copymode(file, draft)
            _write_to_disk(draft, os.O_RDWR)
            os.replace(draft, file)
        with suppress(OSError):  # Windows cannot open a folder, and some file systems cannot write one
            _write_to_disk(file.parent, os.O_RDONLY)
    except OSError as error:  # its own message would name the temporary file
        if error is of_other_file:
            raise
        raise InputError(f"Cannot write {path}: {error.strerror or error}. No file was changed.") from None


def _write_to_disk(path: Path, flags: int) -> None:
    """Wait until the system has written a file, or the names in a folder, to disk; `flags` say how it is opened."""
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Fields:
    """A stored JSON object whose keys are checked at once, and each value when a method reads it by its key."""

    def __init__(self, source: Any, keys: str, description: str) -> None:
        """Check that `source` is a dict with exactly the `keys`, a text of keys separated by spaces.

        Messages call the object by its `description`.
        """
        self.description = description
        expected = set(keys.split())
        if not isinstance(source, dict) or source.keys() != expected:
            received = sorted(map(str, source)) if isinstance(source, dict) else type(source).__name__
            raise self.refused(f"it has {str(received)[:80]} where {sorted(expected)} is expected")
        self.source: dict[str, Any] = source

    def refused(self, reason: str) -> InputError:
        """Return the error for an object that was damaged or changed, which `reason` shows."""
        damage = f"what was stored of {self.description} is damaged or was changed ({reason})"
        return InputError(f"{damage}; get the file again, or write it anew.")

    def is_none(self, key: str) -> bool:
        """Return whether the value of a key is None (null in JSON)."""
        return self.source[key] is None

    def text(self, key: str) -> str:
        """Return the value of a key, which must be a text."""
        return self._check(key, lambda value: isinstance(value, str), "a text")

    def flag(self, key: str) -> bool:
        """Return the value of a key, which must be True or False."""
        return self._check(key, lambda value: isinstance(value, bool), "true or false")

    def whole(self, key: str, minimum: int = 0, maximum: int = 2**63 - 1) -> int:
        """Return the value of a key, which must be a whole number within [minimum, maximum]."""
        expected = f"a whole number from {minimum} on"
        return self._check(key, lambda value: type(value) is int and minimum <= value <= maximum, expected)

    def number(self, key: str, minimum: float = -math.inf, maximum: float = math.inf) -> float:
        """Return the value of a key, which must be a finite number within [minimum, maximum]."""
        expected = "a finite number" if math.isinf(minimum) else f"a finite number from {minimum:g} on"
        return float(self._check(key, lambda value: _is_number(value) and minimum <= value <= maximum, expected))

    def texts(self, key: str, *, distinct: bool = True) -> tuple[str, ...]:
        """Return the value of a key, which must be a list of texts, as a tuple."""
        texts = self.parts(key)
        if not all(isinstance(text, str) for text in texts) or (distinct and len(set(texts)) < len(texts)):
            raise self.refused(f"{key!r} is not a list of {'distinct ' if distinct else ''}texts")
        return tuple(texts)

    def numbers(self, key: str, length: int) -> Floats:
        """Return the value of a key, which must be a list of `length` finite numbers, as an array."""
        numbers = self.parts(key)
        if len(numbers) != length or not all(map(_is_number, numbers)):
            raise self.refused(f"{key!r} is not a list of {length} finite numbers")
        return np.array(numbers, dtype=np.float64)

    def parts(self, key: str) -> list[Any]:
        """Return the value of a key, which must be a list; its items are not checked."""
        return self._check(key, lambda value: isinstance(value, list), "a list")

    def _check(self, key: str, is_valid: Callable[[Any], bool], expected: str) -> Any:
        """Return the value of a key, or refuse it if it is not valid; `expected` describes valid values in messages."""
        value = self.source[key]
        if not is_valid(value):
            raise self.refused(f"{key!r} is not {expected}")
        return value


def _is_number(value: Any) -> bool:
    """Return whether a value is a finite float, or an integer that a float represents exactly."""
    if isinstance(value, float):
        return math.isfinite(value)
    return type(value) is int and abs(value) < 2**53  # larger ones are rounded as floats


def is_saved(path: Any) -> bool:
    """Return whether a value is the path of a file that begins like a saved sketch, histogram or score model."""
    try:
        if not (isinstance(path, (str, os.PathLike)) and Path(path).is_file()):
            return False
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False
