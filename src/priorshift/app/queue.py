"""The queue of jobs, and the one process that does them: jobs go in and answers come out as JSON.

The worker process can be killed at any moment, by us or by the system, and another one is started. It does not outlive
the server.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import secrets
import shutil
import signal
import sys
import threading
import time
import traceback
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from priorshift.app.middleware import RefusedError
from priorshift.app.uploads import Limits
from priorshift.errors import InputError
from priorshift.progress import listen_to_progress

_READY = 120.0  # seconds that a process may take to start, on a busy machine
_HEARTBEAT = 0.1  # seconds between two looks at a running job
_REMEMBERED = 200  # finished jobs whose status can be asked for
_DIED = (
    "The work was ended from outside, most likely because memory ran out. Use fewer rows or columns and run it again."
)
_LATE = (
    "The work took longer than {}, the limit of this app. Use fewer rows, or a larger --time-limit for priorshift app."
)
OVER = ("done", "failed", "cancelled")


@dataclass
class Task:
    """A job and its state."""

    id: str
    order: dict[str, Any]
    uses: tuple[str, ...]  # the files that it needs
    page: str = ""  # the browser tab that waits for it
    state: str = "waiting"  # running, done, failed, cancelled
    answer: dict[str, Any] | None = None
    message: str | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    now: str | None = None  # the last step, which may be part of another one
    begun: float | None = None
    ended: float | None = None
    unwanted: bool = False

    @property
    def kind(self) -> str:
        return str(self.order["kind"])

    @property
    def folder(self) -> Path:
        return Path(self.order["folder"])

    def add_step(self, step: dict[str, Any]) -> None:
        """Record progress, under the name of its step."""
        self.now = step["name"]
        known = next((one for one in self.steps if one["name"] == step["name"]), None)
        if known is None:
            self.steps.append(step)
        else:
            known.update(step)

    def end(self, state: str, message: str | None = None) -> None:
        self.state, self.message, self.ended = state, message, time.monotonic()


class TaskQueue:
    """Jobs in the order of their turn; a thread gives them to the worker, one after the other."""

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
        """Add a job to the queue."""
        key = secrets.token_hex(8)
        with self._changed:
            waiting = [task for task in self._tasks.values() if task.state == "waiting" and task.kind == kind]
            if len(waiting) >= (self.limits.files if kind == "look" else self.limits.waiting):
                raise RefusedError(503, "Too many jobs are waiting. Try again when some are done.")
            folder = self.folder / key
            if kind == "run":
                folder.mkdir(mode=0o700)
            order = {"kind": kind, "files": files, "settings": settings, "folder": str(folder)}
            task = self._tasks[key] = Task(key, order, uses, page)
            self._remove_old()
            self._changed.notify_all()
        return task

    def cancel(self, key: str) -> None:
        """Cancel a job that waits or runs; one that is over stays as it is."""
        with self._changed:
            task = self[key]
            if task.state == "waiting":
                task.end("cancelled")
            task.unwanted = True

    def cancel_page(self, page: str) -> None:
        """Cancel the jobs of a page that was closed."""
        with self._changed:
            for task in self._open_tasks():
                if task.page == page:
                    self.cancel(task.id)

    def __getitem__(self, key: str) -> Task:
        if key not in self._tasks:
            raise RefusedError(410, "This job is no longer known. Run it again.")
        return self._tasks[key]

    def status(self, key: str) -> dict[str, Any]:
        """Return the state of a job, for the page."""
        with self._changed:
            task = self[key]
            seconds = 0.0 if task.begun is None else (task.ended or time.monotonic()) - task.begun
            return {
                "id": task.id, "kind": task.kind, "state": task.state, "message": task.message, "answer": task.answer,
                "steps": [dict(step) for step in task.steps], "now": task.now, "seconds": round(seconds, 1),
                "ahead": self._open_tasks().index(task) if task.state == "waiting" else 0,
            }  # fmt: skip

    @property
    def in_use(self) -> set[str]:
        """The files that a waiting or running job needs."""
        with self._changed:
            return {key for task in self._tasks.values() if task.state not in OVER for key in task.uses}

    @property
    def worker_pid(self) -> int | None:
        worker = self._worker
        return worker.pid if worker else None

    def close(self) -> None:
        """End the running job and the worker."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(10)

    def _open_tasks(self) -> list[Task]:
        """Return jobs that are not over in their order: the running one, then the short ones that look at files."""
        open_tasks = [task for task in self._tasks.values() if task.state not in OVER]
        return sorted(open_tasks, key=lambda task: (task.state != "running", task.kind == "run"))

    def _remove_old(self) -> None:
        """Delete old results, and forget very old jobs."""
        over = [task for task in self._tasks.values() if task.state in OVER]
        runs = [task for task in over if task.kind == "run"]
        old = {task.id for task in [*runs[: -self.limits.results], *over[:-_REMEMBERED]]}
        for key in old:
            shutil.rmtree(self._tasks.pop(key).folder, ignore_errors=True)

    def _serve(self) -> None:
        """Do jobs until the queue is closed; runs in the thread."""
        while True:
            worker = self._living_worker()
            with self._changed:
                while not self._closing and not self._open_tasks():
                    self._changed.wait()
                if self._closing:
                    break
                task = self._open_tasks()[0]
                task.state, task.begun = "running", time.monotonic()
            if worker is None or not worker.is_alive:
                worker = self._living_worker()
            if worker is not None:
                self._work(worker, task)
            else:
                self._end(task, "failed", "The worker process cannot be started. Start priorshift app again.")
        if self._worker is not None:
            self._worker.kill()

    def _living_worker(self) -> Worker | None:
        """Return the worker, a new one if it has died, or None if none can be started."""
        if self._worker is not None and not self._worker.is_alive:
            self._worker.kill()
            self._worker = None
        if self._worker is None:
            try:
                self._worker = Worker(self.limits)
            except OSError:  # too many processes, for example
                return None
            until, reply = time.monotonic() + _READY, None
            while reply is None and time.monotonic() < until and not self._closing:
                reply = self._worker.receive(_HEARTBEAT)
            if not reply or "ready" not in reply:
                self._worker.kill()
                self._worker = None
        return self._worker

    def _work(self, worker: Worker, task: Task) -> None:
        """Give a job to the worker and wait until it is over."""
        worker.send(task.order)
        until = time.monotonic() + self.limits.seconds
        while task.state == "running":
            reply = worker.receive(_HEARTBEAT) or {}
            with self._changed:
                if "step" in reply:
                    task.add_step(reply["step"])
                elif "answer" in reply:
                    task.answer = reply["answer"]
            if "answer" in reply:
                self._end(task, "done")
            elif "error" in reply:
                if "exits" in reply:
                    worker.kill()
                self._end(task, "failed", reply["error"])
            elif "died" in reply:
                self._end(task, "failed", _DIED)
            elif task.unwanted or self._closing:
                worker.kill()
                self._end(task, "cancelled")
            elif time.monotonic() > until:
                worker.kill()
                limit = self.limits.seconds
                words = f"{limit / 60:.3g} minutes" if limit >= 120 else f"{limit:g} seconds"
                self._end(task, "failed", _LATE.format(words))

    def _end(self, task: Task, state: str, message: str | None = None) -> None:
        with self._changed:
            task.end(state, message)
            if state != "done":
                shutil.rmtree(task.folder, ignore_errors=True)


class Worker:
    """The server's end of the pipe to the worker process."""

    def __init__(self, limits: Limits) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._pipe = ours
        self._process = context.Process(
            target=_run_worker, args=(theirs, limits), daemon=True, name="priorshift worker"
        )
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def send(self, order: dict[str, Any]) -> None:
        """Give it a job; if it is dead, :meth:`receive` will say so."""
        with suppress(OSError):
            self._pipe.send_bytes(json.dumps(order).encode())

    def receive(self, seconds: float) -> dict[str, Any] | None:
        """Return what it sends within some time, or None; "died" if it is dead."""
        try:
            if not self._pipe.poll(seconds):
                return None
            reply: dict[str, Any] = json.loads(self._pipe.recv_bytes())
            return reply
        except (EOFError, OSError):
            return {"died": True}

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join(5)
        self._pipe.close()


def _run_worker(pipe: Connection, limits: Limits) -> None:
    """Do one job after the other until the pipe is closed; runs in the worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends us
    threading.Thread(target=_die_with_parent, daemon=True).start()
    os.umask(0o077)
    from priorshift.app import jobs

    _limit_memory(limits.memory)
    with suppress(EOFError, OSError):
        _reply(pipe, ready=True)
        while _answer(pipe, json.loads(pipe.recv_bytes()), limits, jobs):
            pass


def _answer(pipe: Connection, content: dict[str, Any], limits: Limits, jobs: Any) -> bool:
    """Do a job and send the answer; return whether the process can do another one."""

    def send_step(name: str, done: int, of: int | None) -> None:
        _reply(pipe, step={"name": jobs.STEPS.get(name, name), "done": done, "of": of})

    order = jobs.Order.from_json(content)
    try:
        with warnings.catch_warnings(action="ignore"), listen_to_progress(send_step):
            answer = jobs.WORK[content["kind"]](order, limits)
        _reply(pipe, answer=answer)
    except InputError as error:
        _reply(pipe, error=order.translate(str(error)))
    except MemoryError:
        memory = f"{limits.memory / 2**30:.2g} GiB"
        message = f"The work needs more memory than this app may use ({memory}). Use fewer rows or columns."
        _reply(pipe, error=message, exits=True)  # so that all its memory is freed
        return False
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        what = f"An internal error occurred in priorshift ({type(error).__name__})."
        _reply(pipe, error=f"{what} Please report it, with the message in the terminal.")
    return True


def _reply(pipe: Connection, **content: Any) -> None:
    pipe.send_bytes(json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _limit_memory(most: int) -> None:
    """Limit the memory of the process to so many bytes beyond what libraries and stacks use now.

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
