"""Threads: how many to use, work that is dealt to them, and no threads of the BLAS library under them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import joblib
import threadpoolctl

_SERIAL_ROWS = 4096  # up to which threads cost more than they save

_T = TypeVar("_T")
_S = TypeVar("_S")
_alone: ContextVar[bool] = ContextVar("whether this thread works alone", default=False)


def available() -> int:
    """Count the cores this process may use, by its affinity and its container, or fewer by OMP_NUM_THREADS.

    Within `alone` it is one.

    Returns
    -------
    int
        At least 1.
    """
    if _alone.get():
        return 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(_cores(), int(asked)) if asked.isdigit() and int(asked) > 0 else _cores()


@contextmanager
def alone() -> Iterator[None]:
    """Work on the thread that calls, within the context: others do the like, each with a part of the work."""
    token = _alone.set(True)
    try:
        with one_blas_thread():
            yield
    finally:
        _alone.reset(token)


def in_threads(work: Callable[[_T], _S], of: Iterable[_T], rows: int) -> list[_S]:
    """Do some work on each of several things, on several threads where there are enough rows.

    Parameters
    ----------
    work : callable
        Of one thing; its answer must not depend on who else is at work.
    of : iterable
        The things.
    rows : int
        That the work is about.

    Returns
    -------
    list
        The answers, in the order of the things; they do not depend on how many threads there are.
    """
    items = list(of)
    workers = min(available(), len(items))
    if workers == 1 or rows <= _SERIAL_ROWS:
        return [work(item) for item in items]
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))


@cache
def _cores() -> int:
    """Found once: asking the container takes as long as a small tile."""
    return int(joblib.cpu_count())


_lock = threading.Lock()
_inside = 0  # how many contexts are open, in all threads
_limits: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS on the thread that calls it, within the context.

    The limit belongs to the whole process, so the first to enter sets it and the last to leave lifts it.
    """
    global _inside, _limits
    with _lock:
        if not _inside:
            _limits = _blas().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _release()
                _limits.restore_original_limits()
                _release()


def _release() -> None:
    """Let any thread set OpenBLAS's limits; newer threadpoolctl heeds only the one that set them first."""
    release = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


@cache
def _blas() -> threadpoolctl.ThreadpoolController:
    """Found once: looking for the BLAS libraries of a process takes milliseconds."""
    return threadpoolctl.ThreadpoolController()
