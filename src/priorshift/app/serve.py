"""A private folder for what users bring: gone at exit, and if that could not be, at the next start.

A lock that its owner holds, and that the system takes back when the owner dies, tells what was left behind.

From the command to the page: a free port, an address with a secret, a browser, and an end that leaves nothing."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from priorshift.app.uploads import Limits
from priorshift.errors import InputError, MissingExtraError

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


LOCAL = ("127.0.0.1", "localhost")


def serve(
    limits: Limits,
    announce: Callable[[str], None],
    *,
    host: str = LOCAL[0],
    port: int = 0,
    exposed: bool = False,
    browser: bool = True,
) -> None:
    """Serve the page until it is ended by Ctrl-C or a signal; what was uploaded is deleted then.

    Parameters
    ----------
    limits : Limits
        What is taken on.
    announce : callable
        Is given the address.
    host : str
        Where to listen.
    port : int
        0 takes a free one.
    exposed : bool
        Whether others than this machine may be listened to.
    browser : bool
        Whether to open one, where there is a display.
    """
    if host not in LOCAL and not exposed:
        raise InputError(
            f"--host {host} would let other machines reach this page and what is uploaded to it; leave it out, or add "
            "--expose-to-network if that is meant."
        )
    uvicorn = _uvicorn()
    listening = _listen(LOCAL[0] if host in LOCAL else host, port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)
    with listening, _signals_as_interrupts(), warnings.catch_warnings(), private_folder() as folder:
        warnings.filterwarnings("ignore", "resource_tracker:")  # if it is killed, another one is started
        from priorshift.app.middleware import Guard
        from priorshift.app.server import Site

        site = Site(folder, limits)
        try:
            names = LOCAL if host in LOCAL else (*LOCAL, host, socket.gethostname(), socket.getfqdn())
            hosts = [f"{name.lower()}:{port}" for name in names]
            guarded = Guard(site.application(), token, hosts, None if host in LOCAL else port)
            address = f"http://{_reached(host)}:{port}/{token}/"
            announce(address)
            if browser and _has_display():
                threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
            config = uvicorn.Config(
                guarded, log_config=None, log_level="critical", access_log=False, server_header=False, lifespan="off",
                ws="none", http="h11", loop="asyncio", timeout_graceful_shutdown=0, timeout_keep_alive=30,
            )  # fmt: skip
            with suppress(KeyboardInterrupt):
                uvicorn.Server(config).run(sockets=[listening])
        finally:
            site.close()


def _uvicorn() -> Any:
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise MissingExtraError(
            'the app needs starlette and uvicorn, which are not installed; run pip install "priorshift[app]".'
        ) from None
    return uvicorn


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(
            f"nothing can listen at {host}, port {port} ({why}); choose another --port, or leave it out for a free one."
        ) from None


def _reached(host: str) -> str:
    if host in LOCAL:
        return LOCAL[0]
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _has_display() -> bool:
    """Whether a browser would be a window; else it would take over the terminal."""
    return sys.platform in ("win32", "darwin") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Whoever ends us politely lets us clean up, before the server listens too; asking again does not stop that."""
    asked = False

    def _interrupt(number: int, frame: Any) -> None:
        nonlocal asked
        if not asked:
            asked = True
            raise KeyboardInterrupt

    names = [name for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), _interrupt) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
