"""Threads: how many to use, mapping work over them, and limiting BLAS to one thread each."""

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

_SERIAL_ROWS = 4096  # rows up to which threads cost more than they save
_MAX_AHEAD = 4  # threads of `map_in_order`, which hold as many items in memory

_T = TypeVar("_T")
_S = TypeVar("_S")
_alone: ContextVar[bool] = ContextVar("whether this thread works alone", default=False)


def available() -> int:
    """Return how many threads to use: one for each core, fewer if OMP_NUM_THREADS says so, one within `alone`."""
    if _alone.get():
        return 1
    requested = os.environ.get("OMP_NUM_THREADS", "")
    has_limit = requested.isdigit() and int(requested) > 0
    return min(_cores(), int(requested)) if has_limit else _cores()


@contextmanager
def alone() -> Iterator[None]:
    """Use only the calling thread within the context, because other threads do the other parts of the work."""
    token = _alone.set(True)
    try:
        with one_blas_thread():
            yield
    finally:
        _alone.reset(token)


def map_in_threads(work: Callable[[_T], _S], items: Iterable[_T], rows: int) -> list[_S]:
    """Return the results of `work` for all items, in order; it runs in threads if each item has many `rows`.

    Threads begin with the first items while the iterator computes the next.
    """
    workers = available()
    if workers == 1 or rows <= _SERIAL_ROWS:
        return [work(item) for item in items]
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))


def map_in_order(work: Callable[[_T], _S], items: Iterable[_T]) -> Iterator[_S]:
    """Yield the results of `work` for all items, in order, while threads process the next few items.

    Items are taken from the iterator only when a thread is free, so that few of them are in memory.
    """
    workers, remaining = min(available(), _MAX_AHEAD), iter(items)
    first_two = list(islice(remaining, 2))
    if workers == 1 or len(first_two) < 2:  # a single item may use all threads
        yield from map(work, chain(first_two, remaining))
        return

    def _work_alone(item: _T) -> _S:
        """Process one item on one thread."""
        with alone():
            return work(item)

    waiting: deque[Future[_S]] = deque()
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        try:
            for item in chain(first_two, remaining):
                waiting.append(pool.submit(_work_alone, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@cache
def _cores() -> int:
    """Return the number of cores of this process; counted once, since it takes as long as a small computation."""
    return int(joblib.cpu_count())


# newer threadpoolctl lets only the thread that set OpenBLAS's limits change them; this lets any thread do it
_allow_any_thread = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", lambda force: None)
_lock = threading.Lock()
_open_contexts = 0  # number of open contexts of `one_blas_thread`, in all threads
_limits: Any = None  # threadpoolctl's limiter, while one is open


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread within the context.

    The limit belongs to the whole process, so the first to enter sets it and the last to leave lifts it.
    """
    global _open_contexts, _limits
    with _lock:
        if _open_contexts == 0:
            _limits = _blas().limit(limits=1, user_api="blas")
        _open_contexts += 1
    try:
        yield
    finally:
        with _lock:
            _open_contexts -= 1
            if _open_contexts == 0:
                _allow_any_thread(force=True)  # this thread may not be the one that set the limits
                _limits.restore_original_limits()
                _allow_any_thread(force=True)


@cache
def _blas() -> threadpoolctl.ThreadpoolController:
    """Return a controller of the BLAS libraries; searched for once, since that takes milliseconds."""
    return threadpoolctl.ThreadpoolController()
