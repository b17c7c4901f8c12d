"""How much the app takes on: rows, bytes, memory, time and waiting jobs; and what a file holds, before it is read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from priorshift.errors import InputError
from priorshift.input.csv_text import open_text, refusing
from priorshift.input.files import text_or_parquet
from priorshift.input.parquet import row_groups, text_sizes

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
