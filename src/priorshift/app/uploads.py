"""Uploaded files, and the limits of the app.

Files are received piece by piece into the private folder, under names of ours. What a file contains is checked against
the limits before it is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import errno
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedWriter
from itertools import dropwhile
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from priorshift.errors import InputError
from priorshift.io.csv_text import Source, explain_errors, has_only_numbers, open_text
from priorshift.io.files import WORKBOOKS, kind, text_or_parquet
from priorshift.io.readers import row_groups, text_columns, text_sizes
from priorshift.io.workbooks import WorkbookSize, measure_workbook, workbook_bytes

_CHUNK = 1 << 20  # bytes that are decompressed at a time
_SEPARATORS = (b",", b";", b"\t")
_TEXT_CELLS = "cells that are not all numbers"
# elements of XML in the sheets and texts of a workbook, unless there are at most as many for each of its cells
_MOST_ELEMENTS, _ELEMENTS_OF_CELL = 1_000_000, 10
# bytes of those parts of a workbook that expand to more than so many times their size, as hardly any table does
_MOST_COMPRESSED_BYTES, _MOST_COMPRESSION = 50_000_000, 200
_GIB = 1 << 30
_MAX_NAME = 120
_ENDING = re.compile(r"(\.[a-z0-9]{1,10}){1,2}$")
DISK_FULL = "There is no space left on the disk for temporary files. Free some disk space, and try again."
_TOO_LARGE = (
    "take a random subsample of its rows, or use priorshift estimate on the command line, which reads files of any size"
)


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error says that the disk, or the user's share of it, is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _max_memory() -> int:
    """Return three quarters of the machine's memory but at most 8 GiB, in bytes; 4 GiB if it is unknown."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 * _GIB
    return min(8 * _GIB, physical * 3 // 4)


@dataclass(frozen=True)
class Limits:
    """The limits of the app."""

    rows: int = 1_000_000  # of a file
    bytes: int = 500_000_000  # of a file, as it was sent and as it is decompressed
    columns: int = 10_000  # of a file
    cells: int = 100_000_000  # of a file of numbers; a Parquet file stores many of them in few bytes
    text_cells: int = 20_000_000  # that are not numbers; each takes about 60 bytes of memory
    line_bytes: int = 10_000_000  # of CSV text
    seconds: float = 1800.0  # of a job
    memory: int = field(default_factory=_max_memory)  # bytes of the worker, where the system can enforce it
    files: int = 24  # stored at the same time
    all_bytes: int = 4_000_000_000  # of all stored files
    waiting: int = 8  # jobs in the queue
    results: int = 5  # stored results of finished jobs
    silence: float = 30.0  # seconds without data after which an upload is aborted

    def check_file(self, path: Path, name: str) -> None:
        """Refuse a file beyond the limits, before it is read into memory; `name` is its name in the message.

        A Parquet file is checked by its metadata and the lengths of its distinct texts; CSV text and Excel files are
        checked chunk by chunk.
        """
        with explain_errors(name):
            text = text_or_parquet(path, name)  # None for Parquet and Excel files
            if text is not None:
                self._check_text(text, name)
            elif kind(path) == WORKBOOKS:
                self._check_workbook(path, name)
            else:
                self._check_parquet(path, name)

    def check_columns(self, name: str, columns: int) -> None:
        """Refuse a file with too many columns."""
        self._check(name, columns, "columns", self.columns, "remove columns that are not features")

    def _check_text(self, text: Source, name: str) -> None:
        """Refuse CSV text beyond the limits; marks in quotes count as if they separated cells."""
        n_bytes = n_lines = line_bytes = 0
        n_marks = dict.fromkeys(_SEPARATORS, 0)
        with open_text(text) as file:
            while chunk := file.buffer.read(_CHUNK):
                n_bytes += len(chunk)
                n_lines += max(chunk.count(b"\n"), chunk.count(b"\r"))
                line_end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
                line_bytes = len(chunk) - line_end - 1 + (line_bytes if line_end < 0 else 0)
                for mark in n_marks:
                    n_marks[mark] += chunk.count(mark)
                self._check(name, n_bytes, "bytes when decompressed", self.bytes)
                self._check(name, line_bytes, "bytes in a line", self.line_bytes, "check whether it is a table")
                self._check(name, n_lines - 1, "rows", self.rows)  # less the header
                self._check(name, max(n_marks.values()), "cells", self.cells)
        self.check_columns(name, self._header_columns(text, name))
        n_cells = n_lines + max(n_marks.values())
        if n_cells > self.text_cells and not has_only_numbers(text, name):
            self._check(name, n_cells, _TEXT_CELLS, self.text_cells)

    def _header_columns(self, text: Source, name: str) -> int:
        """Return the largest number of columns that the header of CSV text may have; quoted names may have lines."""

        def limited(lines: Iterable[str]) -> Iterator[str]:
            """Yield lines, until they are too long for a header."""
            length = 0
            for line in lines:
                length += len(line)
                self._check(name, length, "bytes in a line", self.line_bytes, "check whether it is a table")
                yield line

        columns = [1]
        for mark in _SEPARATORS:
            with open_text(text) as file, contextlib.suppress(csv.Error):  # of a name that is too long to be read
                lines = limited(dropwhile(str.isspace, file))
                columns.append(len(next(csv.reader(lines, delimiter=mark.decode()), [])))
        return max(columns)

    def _check_workbook(self, path: Path, name: str) -> None:
        """Refuse an Excel file beyond the limits."""
        parts = workbook_bytes(path, name)
        self._check(name, sum(n_bytes for n_bytes, _ in parts), "bytes when decompressed", self.bytes)
        expanding = sum(n_bytes for n_bytes, compressed in parts if n_bytes > _MOST_COMPRESSION * compressed)
        unit = f"bytes in parts that expand to over {_MOST_COMPRESSION} times their size"
        self._check(name, expanding, unit, _MOST_COMPRESSED_BYTES, "save it again in Excel")

        def check(size: WorkbookSize) -> None:
            self._check(name, size.rows - 1, "rows", self.rows)  # less the header
            self.check_columns(name, size.columns)
            self._check(name, size.cells, "cells", self.text_cells)
            self._check(name, size.characters, "characters in its cells", self.bytes)
            if size.elements > _ELEMENTS_OF_CELL * size.cells:
                self._check(
                    name, size.elements, "XML elements other than cells", _MOST_ELEMENTS, "save its sheet as CSV"
                )

        measure_workbook(path, name, check)

    def _check_parquet(self, path: Path, name: str) -> None:
        """Refuse a Parquet file beyond the limits."""
        columns, rows_of_groups = row_groups(path, name)
        n_rows = sum(rows_of_groups)
        self._check(name, n_rows, "rows", self.rows)
        self.check_columns(name, len(columns))
        self._check(name, n_rows * len(columns), "cells", self.cells)
        texts = text_columns(path, name)
        self._check(name, n_rows * len(texts), _TEXT_CELLS, self.text_cells)
        self._check(name, sum(texts.values()), "bytes when decompressed", self.bytes)
        n_bytes = 0
        for part_bytes in text_sizes(path, name, list(texts)):
            n_bytes += part_bytes
            self._check(name, n_bytes, "bytes when decompressed", self.bytes)

    def _check(self, name: str, value: int, unit: str, limit: int, remedy: str = _TOO_LARGE) -> None:
        """Raise InputError if a file has more rows, cells or bytes (`value`, `unit`) than its limit."""
        if value > limit:
            raise InputError(f"{name} has more than {limit:,} {unit}, the limit of this app; {remedy}.")


@dataclass
class Upload:
    """A stored file."""

    id: str
    name: str  # as the user calls it
    path: Path  # under a name of ours
    page: str = ""  # the browser tab that sent it
    bytes: int = 0
    complete: bool = False


def display_name(name: str) -> str:
    """Return the name of a file for the page: the last part of its path, without invisible characters."""
    last = re.split(r"[/\\]", name)[-1]
    visible = "".join(letter for letter in last if letter.isprintable()).strip()
    return visible[-_MAX_NAME:] or "unnamed"


class Uploads:
    """The stored files, in a private folder and within limits."""

    def __init__(self, folder: Path, limits: Limits, in_use: Callable[[], Collection[str]]) -> None:
        """Store files in `folder`; `in_use` returns the ids of files that a job needs."""
        self.folder, self.limits = folder, limits
        self._in_use = in_use
        self._files: dict[str, Upload] = {}

    def __getitem__(self, key: str) -> Upload:
        """Return a complete upload; answer 410 (Gone) if it was deleted."""
        upload = self._files.get(key)
        if upload is None or not upload.complete:
            raise HTTPException(410, "A file was deleted to make space for later ones. Choose it again.")
        return upload

    async def receive(self, name: str, pieces: AsyncIterator[bytes], declared_size: int, page: str = "") -> Upload:
        """Store a file that arrives in pieces, from the browser tab `page`; if anything fails, nothing is stored.

        `declared_size` is its size in bytes according to the request, 0 if unknown.
        """
        upload = self._add(name, declared_size, page)
        name = upload.name
        try:
            with new_file(upload.path) as file:
                await self._write(upload, pieces, file)
        except BaseException as error:
            self.delete(upload.id)
            if isinstance(error, ClientDisconnect):
                raise HTTPException(400, f"{name} was not sent completely. Choose it again.") from None
            if isinstance(error, TimeoutError):
                raise HTTPException(408, f"The upload of {name} stalled. Choose it again.") from None
            if isinstance(error, OSError):
                remedy = "Free some disk space" if is_disk_full(error) else "Choose it again"
                raise HTTPException(507, f"{name} cannot be stored: {error.strerror}. {remedy}.") from None
            raise
        upload.complete = True
        return upload

    def add_text(self, name: str, content: str, page: str = "") -> Upload:
        """Store a text that the app itself provides, such as the example."""
        upload = self._add(name, len(content), page)
        try:
            with new_file(upload.path) as file:
                upload.bytes = file.write(content.encode())
        except OSError:
            self.delete(upload.id)
            raise
        upload.complete = True
        return upload

    def delete(self, key: str) -> None:
        """Delete an uploaded file by its id, if it exists."""
        upload = self._files.pop(key, None)
        if upload is not None:
            upload.path.unlink(missing_ok=True)

    def delete_page(self, page: str) -> None:
        """Delete the files of a browser tab that was closed; those that a job still needs are the first to go later."""
        closed = {key: upload for key, upload in self._files.items() if upload.page == page}
        self._files = {**closed, **self._files}  # `_make_space` deletes them first
        needed = self._in_use()
        for key, upload in closed.items():
            if upload.complete and key not in needed:
                self.delete(key)

    def _add(self, name: str, size: int, page: str) -> Upload:
        """Register an empty upload under a random file name with the ending of its own, and make space for it.

        `size` is its expected size in bytes.
        """
        key, shown_name = secrets.token_hex(8), display_name(name)
        match = _ENDING.search(shown_name.lower())
        upload = Upload(key, shown_name, self.folder / f"{key}{match[0] if match else ''}", page)
        self._make_space(upload, size)
        self._files[key] = upload
        return upload

    async def _write(self, upload: Upload, pieces: AsyncIterator[bytes], file: BufferedWriter) -> None:
        """Write the pieces to the file as they arrive; a pause longer than the limit raises TimeoutError."""
        while True:
            try:
                piece = await asyncio.wait_for(anext(pieces), self.limits.silence)
            except StopAsyncIteration:
                return
            self._make_space(upload, upload.bytes + len(piece))
            file.write(piece)
            upload.bytes += len(piece)

    def _make_space(self, upload: Upload, size: int) -> None:
        """Refuse a file of more bytes than allowed; delete the oldest files that no job needs until `size` fits."""
        limits = self.limits
        if size > limits.bytes:
            excess = f"is larger than {limits.bytes:,} bytes, the limit of this app"
            raise HTTPException(413, f"{upload.name} {excess}; {_TOO_LARGE}.")
        others = [other for other in self._files.values() if other is not upload]  # oldest first
        while len(others) >= limits.files or sum(other.bytes for other in others) + size > limits.all_bytes:
            needed = self._in_use()
            idle = [other for other in others if other.complete and other.id not in needed]
            if not idle:
                raise HTTPException(413, f"There is no space for {upload.name}. Wait until the running jobs are done.")
            others.remove(idle[0])  # the oldest
            self.delete(idle[0].id)


def new_file(path: Path) -> BufferedWriter:
    """Create a file that only its owner can read, and open it for writing."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)  # O_BINARY exists on Windows only
    return os.fdopen(os.open(path, flags, 0o600), "wb")
