"""Temporary folders that only this user can read, which are deleted at the end.

If the process was killed, its folder is deleted by the next one that creates a folder at the same place: a lock, which
the system releases when its owner dies, shows which folders are left over.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK = "lock"  # name of the file in a folder that its owner has locked, and then written to
_GRACE = 60.0  # seconds in which a new folder may not have its lock yet


@contextmanager
def temporary_folder(prefix: str, parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Create a temporary folder whose name begins with `prefix`, and delete it when the context ends.

    `parent` is the folder in which it is created, the system's temporary folder by default. Folders there with the same
    prefix are deleted if they are this user's and their process has ended.
    """
    parent = Path(tempfile.gettempdir() if parent is None else parent)
    _remove_leftovers(parent, prefix)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True) as folder:
        lock = os.open(Path(folder, _LOCK), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            with suppress(OSError):  # a file system without locks, whose folders are never taken for left over
                _take_lock(lock, wait=True)
                os.write(lock, b"1")
            yield Path(folder)
        finally:
            os.close(lock)


def _remove_leftovers(parent: Path, prefix: str) -> None:
    """Delete folders of this user whose process was killed; links are not followed."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(prefix):
                continue
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                is_ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_ours and is_folder and _is_left_over(Path(entry.path), status.st_mtime):
                    shutil.rmtree(entry.path, ignore_errors=True)  # which refuses a link


def _is_left_over(folder: Path, modified: float) -> bool:
    """Return whether no process holds the lock of a folder, which was last modified at a Unix time, in seconds."""
    is_old = time.time() - modified > _GRACE
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return is_old
    try:
        _take_lock(lock, wait=False)
        return is_old or os.fstat(lock).st_size > 0  # an owner that is about to take its lock has written nothing yet
    except OSError:
        return False
    finally:
        os.close(lock)


def _take_lock(lock: int, *, wait: bool) -> None:
    """Lock a file descriptor; unless `wait`, raise OSError if another process holds the lock."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        mode = msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK  # type: ignore[attr-defined, unused-ignore]
        msvcrt.locking(lock, mode, 1)  # type: ignore[attr-defined, unused-ignore]
        return
    fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
