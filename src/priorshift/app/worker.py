"""The one process that works, and the pipe to it: orders go in and answers come out as JSON, nothing else.

It can be killed at any moment, by us or by the system, and another one is started. It does not outlive the server.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import traceback
import warnings
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from priorshift import progress
from priorshift.app.uploads import Limits
from priorshift.errors import InputError


class Worker:
    """The server's end.

    Parameters
    ----------
    limits : Limits
        What the process may use.
    """

    def __init__(self, limits: Limits) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._pipe = ours
        self._process = context.Process(target=_serve, args=(theirs, limits), daemon=True, name="priorshift worker")
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def ask(self, order: dict[str, Any]) -> None:
        """Give it work; where it is dead, :meth:`hear` will tell."""
        with suppress(OSError):
            self._pipe.send_bytes(json.dumps(order).encode())

    def hear(self, seconds: float) -> dict[str, Any] | None:
        """What it says within some time, if anything; a dead one says that it is."""
        try:
            if not self._pipe.poll(seconds):
                return None
            said: dict[str, Any] = json.loads(self._pipe.recv_bytes())
            return said
        except (EOFError, OSError):
            return {"dead": True}

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.join(5)
        self._pipe.close()


def _serve(pipe: Connection, limits: Limits) -> None:
    """The other end: one order after the other, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends us
    threading.Thread(target=_die_with_parent, daemon=True).start()
    os.umask(0o077)
    from priorshift.app import jobs as work

    _limit_memory(limits.memory)
    with suppress(EOFError, OSError):
        _say(pipe, ready=True)
        while True:
            asked = json.loads(pipe.recv_bytes())
            if not _answer(pipe, asked, limits, work):
                return


def _answer(pipe: Connection, asked: dict[str, Any], limits: Limits, work: Any) -> bool:
    """Do what is asked, and say what came of it; whether more can be asked."""

    def _listen(name: str, done: int, of: int | None) -> None:
        _say(pipe, step={"name": work.STEPS.get(name, name), "done": done, "of": of})

    order = work.Order.of(asked)
    try:
        with warnings.catch_warnings(action="ignore"), progress.heard(_listen):
            answer = work.WORK[asked["kind"]](order, limits)
        _say(pipe, answer=answer)
    except InputError as error:
        _say(pipe, refused=order.in_words(str(error)))
    except MemoryError:
        _say(
            pipe,
            refused="The work needs more memory than there is for it "
            f"({limits.memory / 2**30:.2g} GiB); use fewer rows or columns.",
            leaves=True,  # so that all it holds is given back
        )
        return False
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        _say(
            pipe,
            refused=f"Something went wrong in priorshift itself ({type(error).__name__}), and the terminal shows "
            "where; tell its makers.",
        )
    return True


def _say(pipe: Connection, **what: Any) -> None:
    pipe.send_bytes(json.dumps(what, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _limit_memory(most: int) -> None:
    """Hold the process to so many bytes beyond what it has now; what it is made of, libraries and stacks, not counted.

    The limit is on data, not on addresses, of which threads and BLAS reserve many that they never use.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would hold users' rows
    used = 0
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        used = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmData:"))
    with suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = used + most
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
