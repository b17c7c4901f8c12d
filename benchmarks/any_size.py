"""How long the default and TCPU take, and how much memory: tables in memory, and Parquet files read in batches.

    python benchmarks/any_size.py [--folder FOLDER]

Each measurement is a process of its own, so that its peak memory is its own; up to a million rows the median of three
is told. P, U and T have as many rows, of ten columns. Files are made once and stay in the folder. Results are printed,
and written to benchmarks/results/any_size.jsonl. The plan to more rows is what the rate of ten million says, on paper.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "any_size.jsonl"
_PRIORS = {"positive": 1.0, "unlabeled": 0.2, "target": 0.6}
_BLOCK = 500_000  # rows that are written at a time
_RUNS = 3  # of which the median is told, up to
_SOON = 1_000_000  # rows
_WORK = """
import json, resource, sys, time
import numpy as np
import priorshift as ps
from priorshift.errors import WeakSeparationWarning
samples, settings, files = json.loads(sys.argv[1])
if not files:
    samples = [np.load(path) for path in samples]
start, cpu = time.perf_counter(), time.process_time()
found = ps.estimate_prior(*samples, random_state=0, **settings)
print(json.dumps({
    "seconds": round(time.perf_counter() - start, 2), "cpu_seconds": round(time.process_time() - cpu, 2),
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "value": round(found.value, 5),
    "low": round(found.interval.low, 5), "high": round(found.interval.high, 5)}))
"""


def rows_of(prior: float, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Of the paper's synthetic population."""
    return rng.normal(size=(rows, 10)) + (rng.random(rows) < prior)[:, None]


def parquet(folder: Path, rows: int) -> list[str]:
    """The three files, made where they are not there."""
    import pyarrow
    from pyarrow import parquet as pq

    paths = []
    for number, (name, prior) in enumerate(_PRIORS.items()):
        path = folder / f"{name}-{rows}.parquet"
        paths.append(str(path))
        if path.exists():
            continue
        rng, writer, draft = np.random.default_rng((rows, number)), None, path.with_suffix(".draft")
        for at in range(0, rows, _BLOCK):
            X = rows_of(prior, min(_BLOCK, rows - at), rng)
            table = pyarrow.table({f"x{k}": column for k, column in enumerate(X.T)})
            writer = writer or pq.ParquetWriter(draft, table.schema, compression="none")
            writer.write_table(table, row_group_size=100_000)
        writer.close()
        draft.rename(path)
    return paths


def arrays(folder: Path, rows: int) -> list[str]:
    """The same as arrays."""
    paths = []
    for number, (name, prior) in enumerate(_PRIORS.items()):
        paths.append(str(folder / f"{name}-{rows}.npy"))
        np.save(
            paths[-1], rows_of(prior, rows // (2 if name != "target" else 1), np.random.default_rng((rows, number)))
        )
    return paths


def measured(task: str, rows: int, samples: list[str], settings: dict[str, Any], *, files: bool) -> dict[str, Any]:
    asked = json.dumps([samples, settings, files])
    found = []
    for _ in range(_RUNS if rows <= _SOON else 1):
        done = subprocess.run([sys.executable, "-c", _WORK, asked], capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return {"task": task, "rows": rows, **settings, **sorted(found, key=lambda one: one["seconds"])[len(found) // 2]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where the files are kept; a temporary one, by default")
    parser.add_argument("--most", type=int, default=10_000_000, help="rows of the largest files")
    args = parser.parse_args()
    lines = []

    def say(line: dict[str, Any]) -> None:
        lines.append(line)
        print(line, flush=True)

    with tempfile.TemporaryDirectory() as own:
        folder = args.folder or Path(own)
        for rows in (10_000, 100_000, 1_000_000):  # of the source, P and U together, and of the target
            for prior in ({"source_prior": 0.2}, {}):
                say(measured("in memory", rows, arrays(folder, rows), prior, files=False))
        methods = {"default": {}, "default, π known": {"source_prior": 0.2}}
        methods["tcpu"] = {"source_prior": 0.2, "method": "tcpu"}
        for name, settings in methods.items():
            made = []
            for rows in (args.most // 10, args.most):
                made.append(
                    measured(f"Parquet, {name}", rows, parquet(folder, rows), {**settings, "stream": True}, files=True)
                )
                say(made[-1])
            rate = 3 * args.most / made[1]["seconds"]
            fixed = (
                10 * made[0]["seconds"] - made[1]["seconds"]
            ) / 9  # whatever the rows are: the score is fitted to some
            say({
                "task": f"plan, {name}", "ratio": round(made[1]["seconds"] / made[0]["seconds"], 2),
                "fixed_seconds": round(fixed, 2),
                "rows_per_second": round(rate), "hours_for_1e9_rows": round(1e9 / rate / 3600, 2),
                "days_for_1e12_rows_on_100_machines": round(1e12 / rate / 86400 / 100, 2),
            })  # fmt: skip
    RESULTS.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
