"""Serving the page: a free port, addresses with keys, a private folder for uploaded files, and a clean end.

The folder is deleted at exit or, if the process was killed, at the next start.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import warnings
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import uvicorn

from priorshift.app.access import AccessMiddleware, Keys
from priorshift.app.connections import BoundedConnection, ignore_exhaustion, max_connections
from priorshift.app.routes import PUBLIC, Site
from priorshift.app.uploads import Limits, new_file
from priorshift.errors import InputError
from priorshift.io.temporary_folders import temporary_folder

_REDIRECT = "open.html"  # in the private folder
LOCAL = ("127.0.0.1", "localhost")


def private_folder() -> AbstractContextManager[Path]:
    """Create a temporary folder that only this user can read, and delete it when the context ends."""
    return temporary_folder("priorshift-app-")


def serve(
    limits: Limits, announce: Callable[[str], None], *, host: str, port: int, exposed: bool, browser: bool
) -> None:
    """Serve the page until Ctrl-C or a signal; `announce` is called with its address, and with a new one after its use.

    `port` 0 chooses a free port; `exposed` allows a `host` that other machines can reach; `browser` opens the page.
    """
    is_local = host in LOCAL
    if not is_local and not exposed:
        raise InputError(
            f"--host {host} would let other machines reach this page and uploaded files; remove it, or add "
            "--expose-to-network if that is intended."
        )
    listener = _listen(LOCAL[0] if is_local else host, port)
    port = listener.getsockname()[1]
    keys = Keys(port)
    names = LOCAL if is_local else (*LOCAL, host, socket.gethostname(), socket.getfqdn())

    def address(when_used: Callable[[], None]) -> str:
        """Return an address that opens the page once."""
        return f"http://{_address_host(host)}:{port}/{keys.add(when_used)}/"

    def announce_next() -> None:
        """Announce an address, and the next one when it is used."""
        with suppress(OSError):  # the terminal may be closed
            announce(address(announce_next))

    with listener, _signals_as_interrupts(), warnings.catch_warnings(), private_folder() as folder:
        warnings.filterwarnings("ignore", "resource_tracker:")  # if the worker is killed, another one is started
        site = Site(folder, limits)
        try:
            hosts = [f"{name.lower()}:{port}" for name in names]
            application = AccessMiddleware(site.application(), keys, hosts, None if is_local else port, PUBLIC)
            announce(address(announce_next))
            if browser and _has_display():
                redirect = folder / _REDIRECT
                _write_redirect(redirect, address(partial(redirect.unlink, missing_ok=True)))
                threading.Thread(target=webbrowser.open, args=[redirect.as_uri()], daemon=True).start()
            config = uvicorn.Config(
                application, log_config=None, log_level="critical", access_log=False, server_header=False,
                lifespan="off", ws="none", http=BoundedConnection, loop="asyncio", timeout_graceful_shutdown=0,
                timeout_keep_alive=30, backlog=max_connections(),
            )  # fmt: skip
            with suppress(KeyboardInterrupt):
                asyncio.run(_run(uvicorn.Server(config), listener))
        finally:
            site.tasks.close()


async def _run(server: uvicorn.Server, listener: socket.socket) -> None:
    """Answer requests until the server is stopped."""
    asyncio.get_running_loop().set_exception_handler(ignore_exhaustion)
    await server.serve(sockets=[listener])


def _write_redirect(path: Path, address: str) -> None:
    """Write a page that leads to an address: other users can read the command line of a browser, but not this file."""
    page = f'<!doctype html><title>priorshift</title><meta http-equiv="refresh" content="0; url={escape(address)}">'
    with new_file(path) as file:
        file.write(page.encode())


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a host and port (0: any free one); raise InputError if that is impossible."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}. Correct --host or --port."
        ) from None


def _address_host(host: str) -> str:
    """Return the host part of the page's address: one that a browser can open, with IPv6 in brackets."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    if host in LOCAL:
        return LOCAL[0]
    return f"[{host}]" if ":" in host else host


def _has_display() -> bool:
    """Return whether a browser would open in a window; a text browser would take over the terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGTERM, SIGHUP or SIGINT, so that files are deleted; ignore later ones."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name)]

    def interrupt(received: int, frame: Any) -> None:
        """Ignore further signals, and interrupt the main thread."""
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    previous_handlers = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
