"""Threads: how many to use, work that is dealt to them, and no threads of the BLAS library under them."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar

import joblib
import threadpoolctl

_SERIAL_ROWS = 4096  # up to which threads cost more than they save
_AHEAD = 4  # things that are in memory at a time, and one more

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


def map_in_threads(work: Callable[[_T], _S], of: Iterable[_T], rows: int) -> list[_S]:
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


def map_in_order(work: Callable[[_T], _S], of: Iterable[_T]) -> Iterator[_S]:
    """Do some work on things that come one after the other, several at a time, each on a thread of its own.

    Parameters
    ----------
    work : callable
        Of one thing; its answer must not depend on who else is at work.
    of : iterable
        The things; it is walked over on the thread that asks, a few things ahead.

    Yields
    ------
    object
        The answers, in the order of the things.
    """
    workers, items = min(available(), _AHEAD), iter(of)
    first = list(islice(items, 2))
    if workers == 1 or len(first) < 2:  # one thing may have all threads
        yield from map(work, chain(first, items))
        return

    def _by_itself(item: _T) -> _S:
        with alone():
            return work(item)

    waiting: deque[Future[_S]] = deque()
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        try:
            for item in chain(first, items):
                waiting.append(pool.submit(_by_itself, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()


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
