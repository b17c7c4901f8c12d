"""Run the missing units of a study in parallel; one process writes the lines as they arrive."""

from __future__ import annotations

import multiprocessing
import os
import platform
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import joblib
import numpy as np

import priorshift as ps
from experiments.store import Store
from experiments.study import Line, Study, Unit
from priorshift.errors import InputError, PriorShiftWarning
from priorshift.progress import show_progress, track_progress

VERSIONS = f"{ps.__version__} numpy {np.__version__} py {platform.python_version()}"


def run(
    study: Study,
    path: Path,
    *,
    methods: tuple[str, ...] | None = None,
    repetitions: int | None = None,
    processes: int | None = None,
) -> int:
    """Compute the lines that are missing in `path` and return their number."""
    count = 0
    with Store(path) as store:
        done = {study.key(line) for line in store.lines}
        todo = [unit for unit in study.units(methods, repetitions) if not unit.wanted <= done]
        with show_progress(True), track_progress(study.name, len(todo)) as advance:
            for lines in _results(todo, 1 if study.timed else processes or joblib.cpu_count()):
                new = [line for line in lines if study.key(line) not in done]
                store.append({"experiment": study.name, **line, "versions": VERSIONS} for line in new)
                done.update(map(study.key, new))
                count += len(new)
                advance()
    return count


def run_unit(unit: Unit) -> list[Line]:
    """Return the lines of a unit, without fields that are None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorShiftWarning)
        return [{name: value for name, value in line.items() if value is not None} for line in unit.work()]


def _results(todo: list[Unit], processes: int) -> Iterator[list[Line]]:
    """Yield results as they arrive; no more units are submitted than there are processes, so stopping is immediate."""
    if processes == 1:
        yield from map(run_unit, todo)
        return
    queue = iter(todo)
    # Spawn, not fork: a forked process would keep the lock on the results if this process were killed.
    context = multiprocessing.get_context("spawn")
    with (
        _environment(OMP_NUM_THREADS="1"),
        ProcessPoolExecutor(processes, context, initializer=_exit_with_parent, initargs=(os.getpid(),)) as pool,
    ):
        running: set[Future[list[Line]]] = {pool.submit(run_unit, u) for u in islice(queue, processes)}
        try:
            while running:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(run_unit, unit) for unit in islice(queue, len(finished))}
                for future in finished:
                    yield future.result()
        except BrokenProcessPool:
            raise InputError(
                "A process of the run was killed, perhaps for lack of memory. Completed lines are saved: run again "
                "with fewer --processes to continue."
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set environment variables, here one thread for each process, and restore them."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _exit_with_parent(parent: int) -> None:
    """Exit when the parent process is gone, which cannot stop its workers when it is killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
