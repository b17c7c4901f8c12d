"""A monitor with many batches: size of its state and of its log, and what an update costs beyond reading the batch.

    python benchmarks/monitor_state.py [--batches 10000] [--output benchmarks/results/monitor_state.csv]

The state is built by as many updates with tiny batches. Then, as `priorshift watch` does for each batch, model and
state are loaded, a batch of 1000 rows in memory is added, the state is written, and so are the log and the metrics.
Seconds are those of the processor, which other work on the machine does not change, and of the clock; medians of five.
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import priorshift as ps
from priorshift.monitoring.outputs import SeriesLog, write_metrics

PRIOR = 0.1
ROWS = 20  # of each of the many batches
NEXT_ROWS = 1000
ROUNDS = 5


def build(batches: int, model: Path, state: Path) -> np.ndarray:
    """Write a model and a state with this many batches, and return rows for further ones."""
    sample = ps.simulate.gaussian(
        source_prior=PRIOR, target_prior=PRIOR, n_target=50_000, shared=False, random_state=0
    )  # fmt: skip
    monitor = ps.Monitor(PRIOR, level=0.5).fit_samples(sample.positive, sample.unlabeled)
    monitor.save(model)
    rng = np.random.default_rng(0)
    for k in range(batches):
        rows = sample.target[rng.integers(0, len(sample.target), ROWS)]
        monitor.update(rows, name=f"batch {k:05d}", time=f"2026-11-16T{k:05d}")
    monitor.save_state(state)
    return sample.target


def measure(batches: int, folder: Path) -> dict[str, Any]:
    model, state, log = folder / "fitted", folder / "state.json", folder / "series.jsonl"
    target = build(batches, model, state)
    SeriesLog.read(log).append(ps.Monitor.load(model, state))
    parts: dict[str, list[float]] = {part: [] for part in ("load", "update", "save", "outputs", "processor", "clock")}
    for k in range(ROUNDS):
        clock, marks = time.perf_counter(), [time.process_time()]
        monitor = ps.Monitor.load(model, state)
        marks.append(time.process_time())
        monitor.update(target[NEXT_ROWS * k : NEXT_ROWS * (k + 1)], name=f"next {k}")
        marks.append(time.process_time())
        monitor.save_state(state)
        marks.append(time.process_time())
        SeriesLog.read(log).append(monitor)
        write_metrics(monitor, folder / "share.prom")
        marks.append(time.process_time())
        for part, seconds in zip(("load", "update", "save", "outputs"), np.diff(marks), strict=True):
            parts[part].append(float(seconds))
        parts["processor"].append(marks[-1] - marks[0])
        parts["clock"].append(time.perf_counter() - clock)
    return {
        "batches": batches,
        **{f"{part}_seconds": f"{median(seconds):.3f}" for part, seconds in parts.items()},
        "state_megabytes": f"{os.path.getsize(state) / 1e6:.2f}",
        "log_megabytes": f"{os.path.getsize(log) / 1e6:.2f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[100, 10_000])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "monitor_state.csv")
    args = parser.parse_args()
    lines = []
    for batches in args.batches:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(measure(batches, Path(folder)))
        print(lines[-1], flush=True)
    with args.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
