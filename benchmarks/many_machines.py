"""Samples on several machines against the same rows here: what a cluster costs, and what it brings.

    OMP_NUM_THREADS=1 python benchmarks/many_machines.py [--workers 2] [--rows 2000000] [--pairs 15000] [--keep BYTES]

A local cluster of so many processes, one thread each, makes its own rows; so does the one thread here that it is
compared with, batch by batch. Times are of the clock, and of all processors together, which do not depend on what else
the machine does: their ratio tells what of each worker's time is left for the work. "Travelled" is what workers sent.
Results are printed and written to benchmarks/results/many_machines.csv.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

import priorshift as ps
from priorshift.sketch import Histogram, ScoreModel, Sketch

LINES: list[tuple[Any, ...]] = [
    ("work", "here_s", "there_s", "speed_up", "processors_here_s", "processors_there_s", "travelled_mb")
]
COLUMNS = [f"x{k}" for k in range(10)]
PART = 50_000  # rows
RESULTS = Path(__file__).parent / "results" / "many_machines.csv"


def read(seed: int, rows: int = PART, share: float = 0.3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, len(COLUMNS))) + (rng.random((rows, 1)) < share)
    return pd.DataFrame(values, columns=COLUMNS)


def sent(dask_worker: Any) -> int:
    return dask_worker.transfer_outgoing_bytes_total


def spent() -> float:
    """Seconds of the processors."""
    times = os.times()
    return times.user + times.system


def report(name: str, client: Client, there: Callable[[], Any], here: Callable[[], Any]) -> tuple[Any, Any]:
    def look() -> tuple[float, float, float]:
        return time.perf_counter(), spent() + sum(client.run(spent).values()), sum(client.run(sent).values()) / 2**20

    looks = [look()]
    of_cluster = there()
    looks.append(look())
    of_memory = here()
    looks.append(look())
    (clock, work, travelled), (clock_here, work_here, _) = np.diff(looks, axis=0)
    print(
        f"{name}: clock {clock_here:.1f} s here, {clock:.1f} s there; processors {work_here:.1f} s here, {work:.1f} s "
        f"there, ratio {work_here / work:.2f}; travelled {travelled:.1f} MB"
    )
    LINES.append((name, *(round(x, 2) for x in (clock_here, clock, clock_here / clock, work_here, work, travelled))))
    return of_cluster, of_memory


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--pairs", type=int, default=15_000, help="rows of each sample whose pairs are all summed up")
    parser.add_argument(
        "--keep", type=int, default=2**25, help="bytes of freed memory that workers keep for new arrays"
    )
    asked = parser.parse_args()
    parts = range(asked.rows // PART)
    # by default Dask's workers give back freed memory at once, so that every new array costs page faults
    kept = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), asked.keep)
    dask.config.set({"distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": 1, **kept}})
    how = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": 0}
    with LocalCluster(n_workers=asked.workers, **how) as cluster, Client(cluster) as client:
        rows = dd.from_map(read, parts, meta=read(0, 10).iloc[:0])
        first, model = Sketch.from_sample(read(0)), ScoreModel.fit(read(0, 2000, 1.0), read(0), random_state=0)
        for _ in range(2):  # every worker imports what it needs
            ps.distributed.sketch(rows.partitions[: 2 * asked.workers], like=first)
            ps.distributed.histogram(rows.partitions[: 2 * asked.workers], model)
        a, b = report(
            f"sketch of {asked.rows} rows",
            client,
            lambda: ps.distributed.sketch(rows, like=first),
            lambda: Sketch.from_sample((read(k) for k in parts), like=first),
        )
        print(f"  largest difference of a moment {np.abs(a.moments.product - b.moments.product).max() / len(a):.1g}")
        a, b = report(
            f"histogram of {asked.rows} rows",
            client,
            lambda: ps.distributed.histogram(rows, model),
            lambda: Histogram.from_sample((read(k) for k in parts), model),
        )
        print(f"  largest difference of a count {np.abs(a.counted.counts - b.counted.counts).max():.1g}")
        samples = [read(k, asked.pairs, share) for k, share in enumerate((1.0, 0.2, 0.6))]
        tcpu = {"method": "tcpu", "source_prior": 0.2}
        collections = [dd.from_pandas(sample, npartitions=4) for sample in samples]
        a, b = report(
            f"TCPU, all pairs of 3 × {asked.pairs} rows",
            client,
            lambda: ps.estimate_prior(*collections, method=ps.TCPU(0.2, embedding="exact")),
            lambda: ps.estimate_prior(*samples, **tcpu),
        )
        gaps = abs(a.value - b.value), abs(a.standard_error - b.standard_error)
        print("  differences of the estimate and of its error {:.1g}, {:.1g}".format(*gaps))
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(LINES)


if __name__ == "__main__":
    main()
