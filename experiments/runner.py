"""Running an experiment: what is missing, in parallel, written by one process as it comes."""

from __future__ import annotations

import multiprocessing
import os
import platform
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import priorshift as ps
from experiments.draws import draw
from experiments.grids import EXPERIMENTS, Experiment, Unit, key, units, wanted
from experiments.methods import Fitted
from experiments.store import Store
from priorshift.errors import InputError
from priorshift.threads import available

VERSIONS = f"{ps.__version__} numpy {np.__version__} py {platform.python_version()}"


def run_unit(unit: Unit) -> list[dict[str, Any]]:
    """One source and seed: a line for each target and method."""
    experiment = EXPERIMENTS[unit.experiment]
    drawn = draw(unit.source, unit.seed, experiment.protocol)
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)
        shared = Fitted(drawn, unit.source, unit.seed)
        for method in unit.methods:
            fits = Fitted(drawn, unit.source, unit.seed) if experiment.alone else shared
            for target in experiment.targets:
                violation = target.setting if experiment.varies == "g" else None
                rows = drawn.target(target.target_prior, violation or 0.0)
                start = time.perf_counter()
                answer = fits.answer(method, rows, target, experiment.varies)
                seconds = time.perf_counter() - start
                interval = answer.interval
                line = {
                    "experiment": unit.experiment,
                    "dataset": unit.source.dataset,
                    "label_frequency": unit.source.label_frequency,
                    "source_prior": unit.source.source_prior,
                    "rows": unit.source.rows,
                    "target_prior": target.target_prior,
                    "setting": target.setting,
                    "method": method,
                    "seed": unit.seed,
                    "estimate": _short(answer.value),
                    "interval": interval and [_short(interval.low), _short(interval.high)],
                    "source_estimate": _short(answer.source_prior),
                    "verdict": answer.details.get("verdict"),
                    "seconds": round(seconds, 4),
                    "versions": VERSIONS,
                }
                lines.append({name: value for name, value in line.items() if value is not None})
    return lines


def run(
    experiment: Experiment,
    path: Path,
    *,
    methods: tuple[str, ...] | None = None,
    repetitions: int | None = None,
    processes: int | None = None,
) -> int:
    """Make the lines that are missing in `path`; how many were made."""
    made = 0
    with Store(path) as store:
        done = {key(line) for line in store.lines}
        asked = units(experiment, methods or experiment.methods, repetitions or experiment.repetitions)
        todo = [unit for unit in asked if not wanted(unit) <= done]
        with Bar(experiment.name, len(todo)) as bar:
            for lines in _results(todo, 1 if experiment.alone else processes or available()):
                new = [line for line in lines if key(line) not in done]
                store.append(new)
                done.update(map(key, new))
                made += len(new)
                bar.step()
    return made


def _results(todo: list[Unit], processes: int) -> Iterator[list[dict[str, Any]]]:
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
        under_way: set[Future[list[dict[str, Any]]]] = {pool.submit(run_unit, u) for u in islice(queue, processes)}
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


class Bar:
    """How far a run is and how long it will take, on a terminal."""

    def __init__(self, name: str, units: int) -> None:
        self.name, self.units, self.done, self.start = name, units, 0, time.monotonic()

    def __enter__(self) -> Bar:
        return self

    def step(self) -> None:
        self.done += 1
        if sys.stderr.isatty():
            left = (time.monotonic() - self.start) / self.done * (self.units - self.done)
            filled = 30 * self.done // self.units
            bar = f"[{'#' * filled}{'.' * (30 - filled)}]"
            sys.stderr.write(f"\r{self.name} {bar} {self.done}/{self.units}, {left / 60:.0f} min left \033[K")
            sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")


def _short(value: float) -> float | None:
    return round(float(value), 5) if np.isfinite(value) else None
