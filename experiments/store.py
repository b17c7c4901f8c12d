"""Store results as JSON lines; after a killed run, complete lines are kept and an incomplete last one is removed."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from priorshift.errors import InputError


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read all complete lines of a file; none if it does not exist."""
    if not path.exists():
        return []
    lines = []
    for number, text in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if not isinstance(line, dict):
            raise InputError(f"Line {number} of {path} is not a result. Correct or remove it.")
        lines.append(line)
    return lines


class Store:
    """A file of results to which one process at a time appends lines.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from experiments.store import Store, read_lines
    >>> with TemporaryDirectory() as folder, Store(Path(folder) / "x.jsonl") as store:
    ...     store.append([{"seed": 1}, {"seed": 2}])
    ...     len(read_lines(store.path))
    2
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self._lock()
            text = path.read_bytes()
            complete = text.rfind(b"\n") + 1
            if not b'{"experiment":'.startswith(text[complete:][:14]):
                raise InputError(f"The last line of {path} is not a result. Correct or remove it.")
            if complete < len(text):  # an earlier process was killed while it wrote
                os.ftruncate(self._file, complete)
            self.lines = read_lines(path)
        except BaseException:
            os.close(self._file)
            raise

    def append(self, lines: Iterable[dict[str, Any]]) -> None:
        """Append all lines, or none if the disk is full."""
        text = "".join(
            json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n" for line in lines
        ).encode()
        size = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, text)
            if written < len(text):
                os.write(self._file, text[written:])
        except OSError as error:
            os.ftruncate(self._file, size)
            raise InputError(
                f"Cannot write {self.path}: {error.strerror}. Completed lines are saved: run again to continue."
            ) from None

    def _lock(self) -> None:
        with contextlib.suppress(ImportError):  # on Windows the user has to avoid two runs at once
            import fcntl

            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(f"Another run is writing {self.path}. Wait for it or stop it.") from None

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
