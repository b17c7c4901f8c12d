"""Kill `priorshift watch` at random moments, and check that its state is always the one before or after a batch.

    python tests/support/watch_kills.py FOLDER [--moments 200] [--seed 0]

A process adds batches one after the other, as a daily job does, and is killed (SIGKILL) at a random moment; the next
one starts with the same command again. States and log are compared with those of a run that nobody killed.
"""

import argparse
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

import priorshift as ps
import priorshift.cli.watch  # before processes are started, so that they are not killed during the import
from priorshift.cli import main

BATCHES = 12
PRIOR = 0.2


def rows(count, share, seed):
    rng = np.random.default_rng(seed)
    positive = rng.random(count) < share
    return pd.DataFrame(rng.normal(size=(count, 2)) + 1.5 * positive[:, None], columns=["a", "b"])


def prepare(folder):
    """Write a model and the files of batches."""
    ps.Monitor(PRIOR, level=0.5).fit_samples(rows(60, 1, 0), rows(200, PRIOR, 1)).save(folder / "fitted")
    (folder / "batches").mkdir()
    for k in range(BATCHES):
        rows(50, PRIOR, 10 + k).to_csv(folder / "batches" / f"{k:02d}.csv", index=False)


def watch(folder, state, log):
    """Add the batches by one command for each, from the last one in the state on, as a job that is repeated does."""
    counted = len(ps.Monitor.load(folder / "fitted", state).points) if state.exists() else 0
    for file in sorted((folder / "batches").iterdir())[max(counted - 1, 0) :]:
        words = ["--model", folder / "fitted", "--state", state, "--log", log, "--metrics", f"{log}.prom"]
        assert main(["watch", *map(str, words), "--target", str(file)]) in (0, 3, 4)


def start(folder, state, log):
    """Start a process that adds all batches, and return its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            os.dup2(nowhere.fileno(), 2)
            watch(folder, state, log)
        code = 0
    finally:
        os._exit(code)


def check(folder, state, log, expected, least):
    """Check a state and a log that a killed process left, and return the number of batches in the state."""
    points = ps.Monitor.load(folder / "fitted", state).points if state.exists() else []
    assert points == expected[: len(points)], "the state is not one of the run that nobody killed"
    assert len(points) >= least, "a batch was lost"
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    names = [json.loads(line)["batch"] for line in lines]
    assert names == [point.name for point in points[: len(names)]], "the log has other batches than the state"
    return len(points)


def run(folder, moments, seed):
    """Kill at this many moments, and return how often and what was found."""
    prepare(folder)
    state, log = folder / "quiet.json", folder / "quiet.jsonl"
    started = time.monotonic()
    child = start(folder, state, log)
    assert os.waitpid(child, 0)[1] == 0
    duration = time.monotonic() - started
    expected = ps.Monitor.load(folder / "fitted", state).points
    assert len(expected) == BATCHES
    rng = np.random.default_rng(seed)
    killed = completed = torn = 0
    while killed < moments:
        own, own_log = folder / f"{completed}.json", folder / f"{completed}.jsonl"
        least = check(folder, own, own_log, expected, 0)
        child = start(folder, own, own_log)
        time.sleep(rng.uniform(0, 4 * duration / BATCHES))
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        check(folder, own, own_log, expected, least)
        torn += own_log.exists() and not own_log.read_bytes().endswith(b"\n")
        if os.WIFSIGNALED(status):
            killed += 1
        else:
            assert os.WEXITSTATUS(status) == 0
            assert own.read_bytes() == state.read_bytes() and own_log.read_bytes() == log.read_bytes()
            completed += 1
    own, own_log = folder / f"{completed}.json", folder / f"{completed}.jsonl"
    assert os.waitpid(start(folder, own, own_log), 0)[1] == 0
    assert own.read_bytes() == state.read_bytes() and own_log.read_bytes() == log.read_bytes()
    return {"killed": killed, "completed_series": completed + 1, "batches_each": BATCHES, "torn_logs": torn}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    sys.stdout.write(json.dumps(run(args.folder, args.moments, args.seed)) + "\n")
