"""A process that answers for one peer after the other, and is ended when it takes too long."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.peers import PEERS
from benchmarks.peers.draws import Draw

LIMIT = 60.0  # seconds of the clock, for one answer

Answer = dict[str, Any]


class TimedWorker:
    """Starts a process when it is asked, and a new one after one that was ended."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        self._process: Any = None
        self._ours: Any = None

    def ask(self, draw: Draw, peer: str) -> Answer:
        """A line's answer: its value, or why there is none; and processor seconds."""
        if self._process is None:
            self._start()
        self._ours.send((draw, peer))
        try:
            size = self._ours.recv()  # the draw is made: time runs from here
            if self._ours.poll(self.limit):
                return size | self._ours.recv()
        except EOFError:
            self.stop()
            return {"value": None, "failure": "its process ended", "seconds": None}
        self.stop()
        return size | {"value": None, "failure": f"more than {self.limit:g} s", "seconds": None}

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._ours.close()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_answer_all, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()


def _answer_all(asked: Connection) -> None:
    warnings.simplefilter("ignore")  # a peer's doubts are not part of its answer
    while True:
        draw, peer = asked.recv()
        X, y, share = draw.rows()
        asked.send({"rows": len(y), "positives": int(y.sum()), "share": share})
        asked.send(answer(peer, X, y, draw.seed))


def answer(peer: str, X: Any, y: Any, seed: int) -> Answer:
    """The peer's value, cut to [0, 1] as a user would; what it raises is a failure."""
    estimate = PEERS[peer].load()
    start = time.process_time()
    try:
        raw = float(estimate(X, y, seed))
    except Exception as error:  # whatever a peer does
        return {"value": None, "failure": f"{type(error).__name__}: {str(error)[:80]}", "seconds": None}
    seconds = round(time.process_time() - start, 3)
    if raw != raw:
        return {"value": None, "failure": "not a number", "seconds": seconds}
    return {"value": round(min(max(raw, 0.0), 1.0), 5), "failure": None, "seconds": seconds}
