"""Running a study: what is missing, in parallel, written by one process as it comes."""

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
from tqdm import tqdm

import priorshift as ps
from experiments.store import Store
from experiments.study import Line, Study, Unit
from priorshift.errors import InputError, PriorShiftWarning

VERSIONS = f"{ps.__version__} numpy {np.__version__} py {platform.python_version()}"


def run(
    study: Study,
    path: Path,
    *,
    methods: tuple[str, ...] | None = None,
    repetitions: int | None = None,
    processes: int | None = None,
) -> int:
    """Make the lines that are missing in `path`; how many were made."""
    made = 0
    with Store(path) as store:
        done = {study.key(line) for line in store.lines}
        todo = [unit for unit in study.units(methods, repetitions) if not unit.wanted <= done]
        with tqdm(total=len(todo), desc=study.name, unit="unit", leave=False, disable=None) as bar:
            for lines in _results(todo, 1 if study.alone else processes or joblib.cpu_count()):
                new = [line for line in lines if study.key(line) not in done]
                store.append({"experiment": study.name, **line, "versions": VERSIONS} for line in new)
                done.update(map(study.key, new))
                made += len(new)
                bar.update()
    return made


def run_unit(unit: Unit) -> list[Line]:
    """Its lines, without what has no value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorShiftWarning)
        return [{name: value for name, value in line.items() if value is not None} for line in unit.work()]


def _results(todo: list[Unit], processes: int) -> Iterator[list[Line]]:
    """As they come; no more units are under way than there are processes, so an end is an end."""
    if processes == 1:
        yield from map(run_unit, todo)
        return
    queue = iter(todo)
    # fresh interpreters: a forked one would keep the results' lock when this process is killed
    context = multiprocessing.get_context("spawn")
    with (
        _environment(OMP_NUM_THREADS="1"),
        ProcessPoolExecutor(processes, context, initializer=_leave_with, initargs=(os.getpid(),)) as pool,
    ):
        under_way: set[Future[list[Line]]] = {pool.submit(run_unit, u) for u in islice(queue, processes)}
        try:
            while under_way:
                finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                under_way |= {pool.submit(run_unit, unit) for unit in islice(queue, len(finished))}
                for future in finished:
                    yield future.result()
        except BrokenProcessPool:
            raise InputError(
                "a process of the run was killed, perhaps for memory; what was done is kept: run again to go on, with "
                "fewer --processes."
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """A process has one core: threads under it would only wait for each other."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _leave_with(parent: int) -> None:
    """End when the process that wants the results is gone: killed, it cannot say so."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
