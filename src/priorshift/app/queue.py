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
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from priorshift.app.uploads import DISK_FULL, Limits, Upload, is_disk_full
from priorshift.errors import InputError
from priorshift.progress import listen_to_progress

_READY = 120.0  # seconds that a process may take to start, on a busy machine
_HEARTBEAT = 0.1  # seconds between two checks of a running job
_REMEMBERED = 200  # finished jobs whose status can be asked for
_DIED = "The work was ended from outside, probably because memory ran out. Use fewer rows or columns."
_LATE = "The work took longer than {}, the limit of this app. Use fewer rows, or set a larger --time-limit."
LONG = ("run", "watch")  # kinds of jobs that have results
OVER = ("done", "failed", "cancelled")  # states of a job that is over


@dataclass
class Task:
    """A job and its state."""

    id: str
    kind: str  # look, columns, run or watch: a key of `jobs.WORK`
    order: dict[str, Any]  # JSON values that are sent to the worker
    upload_ids: set[str]  # of the files that it needs
    folder: Path  # folder of its results
    page: str = ""  # the browser tab that waits for it
    state: str = "waiting"  # then running, and one of OVER
    answer: dict[str, Any] | None = None
    message: str | None = None
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)  # progress of each step, by name
    current_step: str | None = None  # name of the last step that began, which may be part of another one
    started_at: float | None = None  # by time.monotonic, as in the next line
    ended_at: float | None = None
    is_cancelled: bool = False  # by the user; the thread of the queue ends the job


class TaskQueue:
    """Jobs in the order of their turn; a thread gives them to the worker, one after the other."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        """Start the thread that gives jobs to the worker; results are stored in folders below `folder`."""
        self.folder, self.limits = folder, limits
        self.worker: Worker | None = None
        self._tasks: dict[str, Task] = {}
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, daemon=True, name="priorshift queue")
        self._thread.start()

    def add(self, kind: str, files: Mapping[str, Upload], settings: dict[str, Any], page: str = "") -> Task:
        """Add a job of a kind (look, columns, run or watch) to the queue; answer 503 if too many are waiting.

        `files` are the uploads by role, `settings` those of the form, `page` is the browser tab that waits for it.
        """
        key = secrets.token_hex(8)
        stored_files = {role: {"path": str(file.path), "name": file.name} for role, file in files.items()}
        order = {"kind": kind, "files": stored_files, "settings": settings, "folder": str(self.folder / key)}
        task = Task(key, kind, order, {file.id for file in files.values()}, self.folder / key, page)
        max_waiting = self.limits.files if kind == "look" else self.limits.waiting
        with self._changed:
            waiting = [other for other in self._tasks.values() if other.state == "waiting" and other.kind == kind]
            if len(waiting) >= max_waiting:
                raise HTTPException(503, "Too many jobs are waiting. Try again when some are done.")
            if kind in LONG:
                task.folder.mkdir(mode=0o700)
            self._tasks[key] = task
            self._remove_old()
            self._changed.notify_all()
        return task

    def cancel(self, key: str) -> None:
        """Cancel a job by its key: at once if it waits, soon if it runs; one that is over stays as it is."""
        with self._changed:
            task = self[key]
            if task.state == "waiting":
                self._end(task, "cancelled")
            task.is_cancelled = True

    def cancel_page(self, page: str) -> None:
        """Cancel the waiting and running jobs of a browser tab, `page`, that was closed."""
        with self._changed:
            for task in self._open_tasks():
                if task.page == page:
                    self.cancel(task.id)

    def __getitem__(self, key: str) -> Task:
        """Return a job by its key; answer 410 (Gone) if it is no longer stored."""
        if key not in self._tasks:
            raise HTTPException(410, "This job is no longer known. Run it again.")
        return self._tasks[key]

    def status(self, key: str) -> dict[str, Any]:
        """Return the state of a job as JSON values for the page; "ahead" counts the jobs before it."""
        with self._changed:
            task = self[key]
            seconds = 0.0 if task.started_at is None else (task.ended_at or time.monotonic()) - task.started_at
            return {
                "id": task.id, "kind": task.kind, "state": task.state, "message": task.message, "answer": task.answer,
                "steps": list(task.steps.values()), "now": task.current_step, "seconds": round(seconds, 1),
                "ahead": self._open_tasks().index(task) if task.state == "waiting" else 0,
            }  # fmt: skip

    @property
    def in_use(self) -> set[str]:
        """The ids of the uploads that a waiting or running job needs."""
        with self._changed:
            return {upload_id for task in self._open_tasks() for upload_id in task.upload_ids}

    def close(self) -> None:
        """End the running job, the thread and the worker."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(10)

    def _open_tasks(self) -> list[Task]:
        """Return the jobs that are not over, in their order: the running one, then short ones, then estimates."""
        open_tasks = [task for task in self._tasks.values() if task.state not in OVER]
        return sorted(open_tasks, key=lambda task: (task.state != "running", task.kind in LONG))  # False comes first

    def _remove_old(self) -> None:
        """Delete the oldest jobs that are over, with their results, beyond the limits on results and on jobs."""
        over = [task for task in self._tasks.values() if task.state in OVER]  # oldest first
        runs = [task for task in over if task.kind in LONG]
        old_tasks = runs[: -self.limits.results] + over[:-_REMEMBERED]
        for key in {task.id for task in old_tasks}:
            shutil.rmtree(self._tasks.pop(key).folder, ignore_errors=True)

    def _serve(self) -> None:
        """Give one job after the other to the worker until the queue is closed; runs in the queue's thread."""
        while True:
            self._living_worker()  # so that it is ready for the next job
            with self._changed:
                while not self._closing and not self._open_tasks():
                    self._changed.wait()
                if self._closing:
                    break
                task = self._open_tasks()[0]
                task.state, task.started_at = "running", time.monotonic()
            worker = self._living_worker()  # it may have died since
            if worker is not None:
                self._work(worker, task)
            else:
                self._end(task, "failed", "The worker process cannot be started. Start priorshift app again.")
        if self.worker is not None:
            self.worker.kill()

    def _living_worker(self) -> Worker | None:
        """Return the running worker, started anew if it has died; None if it cannot be started."""
        if self.worker is not None and not self.worker.process.is_alive():
            self.worker.kill()
            self.worker = None
        if self.worker is None:
            try:
                self.worker = Worker(self.limits)
            except Exception:  # too many processes or threads, for example; the queue must go on
                return None
            deadline, reply = time.monotonic() + _READY, None
            while reply is None and time.monotonic() < deadline and not self._closing:
                reply = self.worker.receive(_HEARTBEAT)
            if not reply or "ready" not in reply:
                self.worker.kill()
                self.worker = None
        return self.worker

    def _work(self, worker: Worker, task: Task) -> None:
        """Send a job to the worker, and process its replies until the job is done, failed, cancelled or too late."""
        worker.send(task.order)
        deadline = time.monotonic() + self.limits.seconds
        while task.state == "running":
            reply = worker.receive(_HEARTBEAT) or {}
            if "step" in reply:
                step = reply["step"]
                with self._changed:
                    task.current_step = step["name"]
                    task.steps[step["name"]] = step
            if "answer" in reply:
                task.answer = reply["answer"]
                self._end(task, "done")
            elif "error" in reply:
                if "exits" in reply:  # the process is about to end
                    worker.kill()
                self._end(task, "failed", reply["error"])
            elif task.is_cancelled or self._closing:
                worker.kill()
                self._end(task, "cancelled")
            elif time.monotonic() > deadline:
                worker.kill()
                limit = self.limits.seconds
                duration = f"{limit / 60:.3g} minutes" if limit >= 120 else f"{limit:g} seconds"
                self._end(task, "failed", _LATE.format(duration))

    def _end(self, task: Task, state: str, message: str | None = None) -> None:
        """Set the final state of a job, one of OVER; delete its results unless it is done."""
        with self._changed:
            task.state, task.message, task.ended_at = state, message, time.monotonic()
            if state != "done":
                shutil.rmtree(task.folder, ignore_errors=True)


class Worker:
    """The server's end of the pipe to the worker process."""

    def __init__(self, limits: Limits) -> None:
        """Start the worker process, with a pipe to it."""
        context = multiprocessing.get_context("spawn")
        self._pipe, remote = context.Pipe()
        self.process = context.Process(target=_run_worker, args=(remote, limits), daemon=True, name="priorshift worker")
        self.process.start()
        remote.close()

    def send(self, order: dict[str, Any]) -> None:
        """Send a job to the process; if it is dead, :meth:`receive` will return an error."""
        with suppress(OSError):
            self._pipe.send_bytes(json.dumps(order).encode())

    def receive(self, seconds: float) -> dict[str, Any] | None:
        """Return the process's next message, or None if there is none within `seconds`; an error if it is dead."""
        try:
            if not self._pipe.poll(seconds):
                return None
            reply: dict[str, Any] = json.loads(self._pipe.recv_bytes())
            return reply
        except (EOFError, OSError):
            return {"error": _DIED}

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join(5)
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
    """Do the job that `content` describes, and send its answer or error; return whether the process can go on.

    `jobs` is the module :mod:`priorshift.app.jobs`, which is imported in the worker process only.
    """

    def send_step(name: str, done: int, total: int | None) -> None:
        """Send the progress of a step of the library to the server, under the page's name for it."""
        _reply(pipe, step={"name": jobs.STEPS.get(name, name), "done": done, "of": total})

    order = jobs.ORDERS.get(content["kind"], jobs.Order).from_json(content)
    try:
        with warnings.catch_warnings(action="ignore"), listen_to_progress(send_step):
            _reply(pipe, answer=jobs.WORK[content["kind"]](order, limits))
    except InputError as error:
        _reply(pipe, error=order.translate(str(error)))
    except MemoryError:
        memory = f"{limits.memory / 2**30:.2g} GiB"
        message = f"The work needs more memory than this app may use ({memory}). Use fewer rows or columns."
        _reply(pipe, error=message, exits=True)  # so that all its memory is freed
        return False
    except Exception as error:
        if is_disk_full(error):
            _reply(pipe, error=DISK_FULL)
            return True
        traceback.print_exc(file=sys.stderr)
        message = f"An internal error occurred in priorshift ({type(error).__name__})."
        _reply(pipe, error=f"{message} Please report it, with the message in the terminal.")
    return True


def _reply(pipe: Connection, **content: Any) -> None:
    """Send a JSON object to the server; lone surrogates, which names of files can contain, are sent as they are."""
    pipe.send_bytes(json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _die_with_parent() -> None:
    """Wait until the server's process ends, and then end this one; runs in a thread."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _limit_memory(limit: int) -> None:
    """Limit the memory of the process to `limit` bytes beyond what libraries and stacks use now.

    The limit is on data, not on addresses, of which threads and BLAS reserve many that they never use.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    used = 0  # bytes of data now; where Linux does not tell, the limit includes them
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmData:"):  # in KiB
                used = 1024 * int(line.split()[1])
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would hold users' rows
    with suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = used + limit if hard == resource.RLIM_INFINITY else min(used + limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
