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
_AHEAD = 4  # items that are processed ahead

_T = TypeVar("_T")
_S = TypeVar("_S")
_alone: ContextVar[bool] = ContextVar("whether this thread works alone", default=False)


def available() -> int:
    """Count the cores this process may use, by its affinity and its container, or fewer by OMP_NUM_THREADS.

    Within `alone` it is one.
    """
    if _alone.get():
        return 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(_cores(), int(asked)) if asked.isdigit() and int(asked) > 0 else _cores()


@contextmanager
def alone() -> Iterator[None]:
    """Use only the calling thread within the context, because other threads do other parts of the work."""
    token = _alone.set(True)
    try:
        with one_blas_thread():
            yield
    finally:
        _alone.reset(token)


def map_in_threads(work: Callable[[_T], _S], of: Iterable[_T], rows: int) -> list[_S]:
    """Apply a function to each item, on several threads where there are enough rows; results keep their order."""
    items = list(of)
    workers = min(available(), len(items))
    if workers == 1 or rows <= _SERIAL_ROWS:
        return [work(item) for item in items]
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))


def map_in_order(work: Callable[[_T], _S], of: Iterable[_T]) -> Iterator[_S]:
    """Apply a function to items of an iterator, a few ahead on several threads, and yield results in order."""
    workers, items = min(available(), _AHEAD), iter(of)
    first = list(islice(items, 2))
    if workers == 1 or len(first) < 2:  # a single item may use all threads
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
    """Count the cores once: asking the container takes as long as a small tile."""
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
    """Let any thread set OpenBLAS's limits; newer threadpoolctl accepts only the one that set them first."""
    release = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


@cache
def _blas() -> threadpoolctl.ThreadpoolController:
    """Find the BLAS libraries once, which takes milliseconds."""
    return threadpoolctl.ThreadpoolController()
