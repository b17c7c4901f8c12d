"""Jobs that wait for their turn, and the thread that gives them to the process that works, one after the other."""

from __future__ import annotations

import secrets
import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from priorshift.app.middleware import RefusedError
from priorshift.app.uploads import Limits
from priorshift.app.worker import Worker

_READY = 120.0  # seconds that a process may take to begin, on a busy machine
_HEARTBEAT = 0.1  # seconds after which a job that runs is looked at again
_REMEMBERED = 200  # finished jobs whose answers can be asked for
_DIED = (
    "The work was ended from outside, most likely because memory ran out; use fewer rows or columns and run it again."
)
_LATE = (
    "The work took longer than {}, the most that this page allows; use fewer rows, or start priorshift app with a "
    "larger --time-limit."
)
OVER = ("done", "refused", "cancelled")


@dataclass
class Task:
    """A job, and where it stands."""

    id: str
    order: dict[str, Any]
    uses: tuple[str, ...]  # the files that it needs
    page: str = ""  # that waits for it
    state: str = "waiting"  # running, done, refused, cancelled
    answer: dict[str, Any] | None = None
    sentence: str | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    now: str | None = None  # the name of the last step, which may be within another
    begun: float | None = None
    ended: float | None = None
    unwanted: bool = False

    @property
    def kind(self) -> str:
        return str(self.order["kind"])

    @property
    def folder(self) -> Path:
        return Path(self.order["folder"])

    @property
    def seconds(self) -> float:
        return 0.0 if self.begun is None else (self.ended or time.monotonic()) - self.begun

    def note(self, step: dict[str, Any]) -> None:
        """A step of the work, of which several belong under one name."""
        self.now = step["name"]
        known = next((one for one in self.steps if one["name"] == step["name"]), None)
        if known is None:
            self.steps.append(step)
        else:
            known.update(step)

    def end(self, state: str, sentence: str | None = None) -> None:
        self.state, self.sentence, self.ended = state, sentence, time.monotonic()


class Tasks:
    """The queue.

    Parameters
    ----------
    folder : Path
        Where results go, in a folder for each job.
    limits : Limits
        How many wait, how long one runs, and how many results are kept.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self._tasks: dict[str, Task] = {}
        self._changed = threading.Condition()
        self._closing = False
        self._worker: Worker | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True, name="priorshift queue")
        self._thread.start()

    def add(
        self, kind: str, files: dict[str, Any], settings: dict[str, Any], uses: tuple[str, ...], page: str = ""
    ) -> Task:
        """Let a job wait for its turn."""
        key = secrets.token_hex(8)
        with self._changed:
            waiting = [task for task in self._tasks.values() if task.state == "waiting" and task.kind == kind]
            if len(waiting) >= (self.limits.files if kind == "look" else self.limits.waiting):
                raise RefusedError(503, "Too many jobs are waiting; try again when some are done.")
            folder = self.folder / key
            if kind == "run":
                folder.mkdir(mode=0o700)
            order = {"kind": kind, "files": files, "settings": settings, "folder": str(folder)}
            task = self._tasks[key] = Task(key, order, uses, page)
            self._forget()
            self._changed.notify_all()
        return task

    def cancel(self, key: str) -> None:
        """End a job that waits or runs; one that is over stays as it is."""
        with self._changed:
            task = self[key]
            if task.state == "waiting":
                task.end("cancelled")
            task.unwanted = True

    def leave(self, page: str) -> None:
        """End the jobs of a page that nobody looks at any more."""
        with self._changed:
            for task in self._line():
                if task.page == page:
                    self.cancel(task.id)

    def __getitem__(self, key: str) -> Task:
        if key not in self._tasks:
            raise RefusedError(410, "That job is no longer known; run it again.")
        return self._tasks[key]

    def story(self, key: str) -> dict[str, Any]:
        """Where a job stands, for the page."""
        with self._changed:
            task = self[key]
            return {
                "id": task.id, "kind": task.kind, "state": task.state, "sentence": task.sentence, "answer": task.answer,
                "steps": [dict(step) for step in task.steps], "now": task.now, "seconds": round(task.seconds, 1),
                "ahead": self._line().index(task) if task.state == "waiting" else 0,
            }  # fmt: skip

    @property
    def in_use(self) -> set[str]:
        """Files that a job waits for or works on."""
        with self._changed:
            return {key for task in self._tasks.values() if task.state not in OVER for key in task.uses}

    @property
    def worker_pid(self) -> int | None:
        worker = self._worker
        return worker.pid if worker else None

    def close(self) -> None:
        """End what runs, and the process."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(10)

    def _line(self) -> list[Task]:
        """Jobs that are not over, in their order: the one that runs, then looks at files, which are short."""
        open_tasks = [task for task in self._tasks.values() if task.state not in OVER]
        return sorted(open_tasks, key=lambda task: (task.state != "running", task.kind == "run"))

    def _forget(self) -> None:
        """Old results, and of very old jobs everything."""
        over = [task for task in self._tasks.values() if task.state in OVER]
        runs = [task for task in over if task.kind == "run"]
        old = {task.id for task in [*runs[: -self.limits.results], *over[:-_REMEMBERED]]}
        for key in old:
            shutil.rmtree(self._tasks.pop(key).folder, ignore_errors=True)

    def _serve(self) -> None:
        """What the thread does, until it is closed."""
        while True:
            worker = self._living_worker()
            with self._changed:
                while not self._closing and not self._line():
                    self._changed.wait()
                if self._closing:
                    break
                task = self._line()[0]
                task.state, task.begun = "running", time.monotonic()
            if worker is None or not worker.is_alive:
                worker = self._living_worker()
            if worker is not None:
                self._work(worker, task)
            else:
                self._end(task, "refused", "The process that works cannot be started; start priorshift app again.")
        if self._worker is not None:
            self._worker.kill()

    def _living_worker(self) -> Worker | None:
        """The process, another one if it has died."""
        if self._worker is not None and not self._worker.is_alive:
            self._worker.kill()
            self._worker = None
        if self._worker is None:
            try:
                self._worker = Worker(self.limits)
            except OSError:  # too many processes, say
                return None
            until, said = time.monotonic() + _READY, None
            while said is None and time.monotonic() < until and not self._closing:
                said = self._worker.hear(_HEARTBEAT)
            if not said or "ready" not in said:
                self._worker.kill()
                self._worker = None
        return self._worker

    def _work(self, worker: Worker, task: Task) -> None:
        worker.ask(task.order)
        until = time.monotonic() + self.limits.seconds
        while task.state == "running":
            said = worker.hear(_HEARTBEAT) or {}
            with self._changed:
                if "step" in said:
                    task.note(said["step"])
                elif "answer" in said:
                    task.answer = said["answer"]
            if "answer" in said:
                self._end(task, "done")
            elif "refused" in said:
                if "leaves" in said:
                    worker.kill()
                self._end(task, "refused", said["refused"])
            elif "dead" in said:
                self._end(task, "refused", _DIED)
            elif task.unwanted or self._closing:
                worker.kill()
                self._end(task, "cancelled")
            elif time.monotonic() > until:
                worker.kill()
                self._end(task, "refused", _LATE.format(_in_words(self.limits.seconds)))

    def _end(self, task: Task, state: str, sentence: str | None = None) -> None:
        with self._changed:
            task.end(state, sentence)
            if state != "done":
                shutil.rmtree(task.folder, ignore_errors=True)


def _in_words(seconds: float) -> str:
    return f"{seconds / 60:.3g} minutes" if seconds >= 120 else f"{seconds:g} seconds"
