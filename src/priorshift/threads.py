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
_AHEAD = 4  # most items that `map_in_order` processes at a time

_T = TypeVar("_T")
_S = TypeVar("_S")
_alone: ContextVar[bool] = ContextVar("whether this thread works alone", default=False)


def available() -> int:
    """Return the number of cores that this process may use, or OMP_NUM_THREADS if that is smaller.

    Within `alone` it is one.
    """
    if _alone.get():
        return 1
    requested = os.environ.get("OMP_NUM_THREADS", "")
    return min(_cores(), int(requested)) if requested.isdigit() and int(requested) > 0 else _cores()


@contextmanager
def alone() -> Iterator[None]:
    """Use only the calling thread within the context, because other threads do the other parts of the work."""
    token = _alone.set(True)
    try:
        with one_blas_thread():
            yield
    finally:
        _alone.reset(token)


def map_in_threads(work: Callable[[_T], _S], of: Iterable[_T], rows: int) -> list[_S]:
    """Return the function's result for each item, in order, using several threads if there are many rows."""
    items = list(of)
    workers = min(available(), len(items))
    if workers == 1 or rows <= _SERIAL_ROWS:
        return [work(item) for item in items]
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))


def map_in_order(work: Callable[[_T], _S], of: Iterable[_T]) -> Iterator[_S]:
    """Yield the function's result for each item of an iterator, in order, with a few items in threads ahead."""
    workers, items = min(available(), _AHEAD), iter(of)
    first = list(islice(items, 2))
    if workers == 1 or len(first) < 2:  # a single item may use all threads
        yield from map(work, chain(first, items))
        return

    def _by_itself(item: _T) -> _S:
        """Process one item on one thread."""
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
            for future in waiting:
                future.cancel()


@cache
def _cores() -> int:
    """Return the number of cores, counted once: that takes as long as a small computation."""
    return int(joblib.cpu_count())


_lock = threading.Lock()
_inside = 0  # number of open contexts of `one_blas_thread`, in all threads
_limits: Any = None  # threadpoolctl's limiter, while one is open


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread within the context.

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
    """Allow any thread to set OpenBLAS's limits; newer threadpoolctl accepts only the one that set them first."""
    release = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


@cache
def _blas() -> threadpoolctl.ThreadpoolController:
    """Return a controller of the BLAS libraries, found once, since that takes milliseconds."""
    return threadpoolctl.ThreadpoolController()
