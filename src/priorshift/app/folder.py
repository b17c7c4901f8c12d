"""A private folder for what users bring: gone at exit, and if that could not be, at the next start.

A lock that its owner holds, and that the system takes back when the owner dies, tells what was left behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX, _LOCK = "priorshift-app-", "lock"
_YOUNG = 60.0  # seconds in which a folder may not have its lock yet


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder that only this user can look into, deleted with all that is in it."""
    _remove_leftovers()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # readable by its owner alone
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        _hold(lock)
        yield folder
    finally:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def _remove_leftovers() -> None:
    """Folders of this user whose owner has died."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            about = folder.lstat()
            mine = not hasattr(os, "getuid") or about.st_uid == os.getuid()
            if mine and folder.is_dir() and not folder.is_symlink() and _is_left(folder, about.st_mtime):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path, changed: float) -> bool:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except FileNotFoundError:
        return time.time() - changed > _YOUNG
    try:
        _hold(lock)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def _hold(lock: int) -> None:
    """Take the lock, or fail at once."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        return
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
