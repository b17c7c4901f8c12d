"""The state of a monitor in a file: JSON with a checksum, written as a whole, and by one process at a time."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from priorshift.errors import InputError
from priorshift.io.files import atomic_write

_FORMAT = "priorshift monitor state"
_VERSION = 1
_LARGEST = 256 << 20  # bytes


def write_state(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Write a state; after a crash the file is the old one or the new one."""
    text = json.dumps(state, allow_nan=False, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    lines = ["{", f'"format":{json.dumps(_FORMAT)},"version":{_VERSION},"sha256":"{digest}",', f'"state":{text}', "}\n"]
    with atomic_write(path) as draft:
        draft.write_text("\n".join(lines), encoding="utf-8")


def read_state(path: str | os.PathLike[str]) -> Any:
    """Read a state that `write_state` wrote, and check that it is complete."""
    damaged = InputError(f"{path} is damaged or was changed; restore it from a backup.")
    try:
        file = Path(path)
        if file.stat().st_size > _LARGEST:
            raise InputError(f"{path} is larger than any state of a monitor; pass the file that watch --state wrote.")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}); check the path.") from None
    except UnicodeDecodeError:
        raise damaged from None
    except ValueError:  # a null character
        raise InputError(f"{path!r} is not a path; pass that of the file that watch --state wrote.") from None
    first, header, content, end = (*text.split("\n", 3), "", "", "")[:4]
    try:
        stored = json.loads(f"{first}{header.removesuffix(',')}}}")  # without the state, which is checked first
    except (ValueError, RecursionError):
        stored = None
    if not isinstance(stored, dict) or stored.get("format") != _FORMAT:
        raise InputError(f"{path} is not the state of a monitor; pass the file that watch --state wrote.")
    if stored.get("version") != _VERSION:
        raise InputError(
            f"{path} has version {str(stored.get('version'))[:20]}, but this priorshift reads version {_VERSION}; "
            "install a newer version."
        )
    state = content.removeprefix('"state":')
    if end != "}\n" or hashlib.sha256(state.encode()).hexdigest() != stored.get("sha256"):
        raise damaged
    try:
        return parse_state(state)
    except (ValueError, RecursionError):
        raise damaged from None


def parse_state(text: str | bytes) -> Any:
    """Return the values in JSON text; raise ValueError if it is damaged or has a number that is not finite."""
    return json.loads(text, parse_float=_finite_number, parse_constant=_finite_number)


def _finite_number(text: str) -> float:
    """Return the number in a text, such as 1e300; raise ValueError for 1e999 and NaN."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Keep other processes from changing a state; refuse at once if one is doing so.

    The lock is that of a file next to it, which the system releases when the process ends, however it ends.
    """
    lock = Path(f"{os.path.realpath(path)}.lock")  # of the file itself, also if the path is a link to it
    busy = InputError(f"another process is changing {path}; try again when it has finished.")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"Cannot write {lock}: {error.strerror or error}. No file was changed.") from None
    try:
        try:
            _lock(descriptor)
        except OSError:
            raise busy from None
        yield
    finally:
        os.close(descriptor)  # which also releases the lock


def _lock(descriptor: int) -> None:
    """Lock an open file, or raise OSError at once."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
