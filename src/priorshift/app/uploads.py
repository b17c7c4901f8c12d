"""How much the app takes on: rows, bytes, memory, time and waiting jobs; and what a file holds, before it is read.

Files that users bring: received piece by piece into the private folder, under names of ours, within limits."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field
from io import BufferedWriter
from pathlib import Path

from starlette.requests import ClientDisconnect

from priorshift.app.middleware import RefusedError
from priorshift.errors import InputError
from priorshift.io.csv_text import open_text, refusing
from priorshift.io.files import text_or_parquet
from priorshift.io.parquet import row_groups, text_sizes

_CHUNK = 1 << 20  # bytes that are unpacked at a time
_ROWS = 256  # and rows: a cell may be large
_GIB = 1 << 30


def _most_memory() -> int:
    """Three quarters of the machine's, where it tells; 8 GiB at most."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 * _GIB
    return min(8 * _GIB, there * 3 // 4)


@dataclass(frozen=True)
class Limits:
    """What the app takes on.

    Attributes
    ----------
    rows, bytes : int
        Of a file; its bytes as they were sent, and as they are unpacked.
    cells : int
        Of a Parquet file, whose few bytes may stand for many cells.
    seconds : float
        Of a job.
    memory : int
        Bytes of the process that works, where the system can hold it to that.
    files, all_bytes : int
        That are kept at a time.
    waiting : int
        Jobs in the queue.
    results : int
        Of finished jobs, that are kept.
    silence : float
        Seconds after which an upload that sends nothing is given up.
    """

    rows: int = 1_000_000
    bytes: int = 500_000_000
    cells: int = 100_000_000
    seconds: float = 1800.0
    memory: int = field(default_factory=_most_memory)
    files: int = 24
    all_bytes: int = 4_000_000_000
    waiting: int = 8
    results: int = 5
    silence: float = 30.0

    def check_file(self, path: Path, name: str) -> None:
        """Refuse a file that holds more than is allowed, from its outline or piece by piece, in little memory."""
        with refusing(name):
            text = text_or_parquet(path, name)
            if text is None:
                columns, groups = row_groups(path, name)
                rows, cells = sum(groups), sum(groups) * len(columns)
                self._check(name, rows, "rows", self.rows)
                self._check(name, cells, "cells", self.cells)
                done = 0
                for size in text_sizes(path, name, _ROWS):
                    done += size
                    self._check(name, done, "bytes when unpacked", self.bytes)
                return
            done = lines = 0
            with open_text(text) as file:
                while chunk := file.buffer.read(_CHUNK):
                    done += len(chunk)
                    lines += max(chunk.count(b"\n"), chunk.count(b"\r"))
                    self._check(name, done, "bytes when unpacked", self.bytes)
                    self._check(name, lines - 1, "rows", self.rows)

    def _check(self, name: str, found: int, what: str, most: int) -> None:
        if found > most:
            raise InputError(
                f"{name} has more than {most:,} {what}, the most that this page takes; take a random part of its rows, "
                "or use priorshift estimate on the command line, which reads files of any size."
            )


_LONGEST_NAME = 120
InUse = Callable[[], Collection[str]]  # files that a job needs
_ENDING = re.compile(r"(\.[a-z0-9]{1,10}){1,2}$")


@dataclass
class Upload:
    """A file, under its own name and under ours."""

    id: str
    name: str
    path: Path
    page: str = ""  # that brought it
    bytes: int = 0
    complete: bool = False


def clean_name(name: str) -> str:
    """What a file is called on the page: the last part of a path, of characters that can be seen."""
    last = re.split(r"[/\\]", name)[-1]
    seen = "".join(letter for letter in last if letter.isprintable()).strip()
    return seen[-_LONGEST_NAME:] or "unnamed"


class Uploads:
    """The files that are kept.

    Parameters
    ----------
    folder : Path
        Where.
    limits : Limits
        How many, and how large.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self._kept: dict[str, Upload] = {}

    def __getitem__(self, key: str) -> Upload:
        found = self._kept.get(key)
        if found is None or not found.complete:
            raise RefusedError(410, "A file is no longer here, to make room for later ones; choose it again.")
        return found

    async def receive(
        self, name: str, pieces: AsyncIterator[bytes], told: int | None, in_use: InUse, page: str = ""
    ) -> Upload:
        """Keep what comes, all of it or nothing; `told` is how much that is said to be."""
        upload = self._begin(name, page)
        self._make_room(upload, told or 0, in_use)
        self._kept[upload.id] = upload
        try:
            with _new_file(upload.path) as into:
                await self._write(upload, pieces, into.write, in_use)
        except BaseException as error:
            self.drop(upload.id)
            if isinstance(error, ClientDisconnect):
                raise RefusedError(400, f"{upload.name} was not sent to its end; choose it again.") from None
            if isinstance(error, TimeoutError):
                raise RefusedError(408, f"Nothing more came of {upload.name}; choose it again.") from None
            if isinstance(error, OSError):
                raise RefusedError(
                    507, f"{upload.name} cannot be kept ({error.strerror}); make room on the disk."
                ) from None
            raise
        upload.complete = True
        return upload

    def keep(self, name: str, content: str, in_use: InUse, page: str = "") -> Upload:
        """Keep a text of our own."""
        upload = self._begin(name, page)
        self._make_room(upload, len(content), in_use)
        with _new_file(upload.path) as into:
            upload.bytes, upload.complete = into.write(content.encode()), True
        self._kept[upload.id] = upload
        return upload

    def drop(self, key: str) -> None:
        """Delete a file, if it is there."""
        upload = self._kept.pop(key, None)
        if upload is not None:
            upload.path.unlink(missing_ok=True)

    def leave(self, page: str, in_use: InUse) -> None:
        """Delete the files of a page that was closed; those that a job still holds are the first to give way."""
        theirs, needed = {key: upload for key, upload in self._kept.items() if upload.page == page}, in_use()
        self._kept = {**theirs, **self._kept}
        for key, upload in theirs.items():
            if upload.complete and key not in needed:
                self.drop(key)

    def _begin(self, name: str, page: str) -> Upload:
        key, shown = secrets.token_hex(8), clean_name(name)
        ending = _ENDING.search(shown.lower())
        return Upload(key, shown, self.folder / f"{key}{ending[0] if ending else ''}", page)

    async def _write(
        self, upload: Upload, pieces: AsyncIterator[bytes], write: Callable[[bytes], object], in_use: InUse
    ) -> None:
        while True:
            try:
                piece = await asyncio.wait_for(anext(pieces), self.limits.silence)
            except StopAsyncIteration:
                return
            self._make_room(upload, upload.bytes + len(piece), in_use)
            write(piece)
            upload.bytes += len(piece)

    def _make_room(self, upload: Upload, size: int, in_use: InUse) -> None:
        """Refuse what is too large; else drop the oldest files that no job waits for until there is room."""
        limits = self.limits
        if size > limits.bytes:
            raise RefusedError(
                413,
                f"{upload.name} is larger than {limits.bytes:,} bytes, the most that this page takes; take a random "
                "part of its rows, or use priorshift estimate on the command line, which reads files of any size.",
            )
        others = [one for one in self._kept.values() if one is not upload]
        while len(others) >= limits.files or sum(one.bytes for one in others) + size > limits.all_bytes:
            needed = in_use()
            idle = next((one for one in others if one.complete and one.id not in needed), None)
            if idle is None:
                raise RefusedError(
                    413, f"There is no room for {upload.name} beside the other files; wait until these are done."
                )
            others.remove(idle)
            self.drop(idle.id)


def _new_file(path: Path) -> BufferedWriter:
    """Open a file that only its owner can read."""
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600), "wb")
