"""How long the default and TCPU take, and how much memory: tables in memory, and Parquet files read in batches.

    python benchmarks/any_size.py [--folder FOLDER] [--only memory|files]

Each measurement is a process of its own, so that its peak memory is its own; up to a million rows the median of three
is reported. All rows have ten columns; in memory, P and U together have as many rows as T, and in files each of the
three has that many. "a further target" is a target of an estimator that was fitted before. Files are written once and
stay in the folder. Results are printed and written to benchmarks/results/any_size.jsonl. The plan extrapolates the rate
of the largest files.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "any_size.jsonl"
_PRIORS = {"positive": 1.0, "unlabeled": 0.2, "target": 0.6}
_BLOCK = 500_000  # rows that are written at a time
_RUNS = 3  # of which the median is told, up to
_SOON = 1_000_000  # rows
_IN_MEMORY = ("in memory", "a further target")
_WORK = """
import json, resource, sys, time
import numpy as np
import priorshift as ps
from priorshift.errors import WeakSeparationWarning
samples, settings, files = json.loads(sys.argv[1])
if not files:
    samples = [np.load(path) for path in samples]
estimate, arguments = ps.estimate_prior, samples  # imports the library, which is not timed
if settings.pop("fitted", False):
    positive, unlabeled, target = samples
    labels = np.repeat([1, 0], [len(positive), len(unlabeled)])
    fitted = ps.WitnessShift(random_state=0, **settings).fit(np.concatenate([positive, unlabeled]), labels)
    estimate, arguments, settings = fitted.estimate, [target], {}
else:
    settings["random_state"] = 0
start, cpu = time.perf_counter(), time.process_time()
found = estimate(*arguments, **settings)
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


def measure_memory(folder: Path, say: Callable[[dict[str, Any]], None]) -> None:
    """Measure tables in memory; P and U together have as many rows as the target."""
    for rows in (10_000, 100_000, _SOON):
        for prior in ({"source_prior": 0.2}, {}):
            say(measured(_IN_MEMORY[0], rows, arrays(folder, rows), prior, files=False))
    fitted = {"source_prior": 0.2, "fitted": True}
    say(measured(_IN_MEMORY[1], _SOON, arrays(folder, _SOON), fitted, files=False))


def measure_files(folder: Path, most: int, say: Callable[[dict[str, Any]], None]) -> None:
    """Measure Parquet files of a tenth of `most` rows and of `most` rows, and extrapolate their rate."""
    methods = {"default": {}, "default, π known": {"source_prior": 0.2}}
    methods["tcpu"] = {"source_prior": 0.2, "method": "tcpu"}
    for name, settings in methods.items():
        made = []
        for rows in (most // 10, most):
            options = {**settings, "stream": True}
            made.append(measured(f"Parquet, {name}", rows, parquet(folder, rows), options, files=True))
            say(made[-1])
        rate = 3 * most / made[1]["seconds"]
        fixed = (10 * made[0]["seconds"] - made[1]["seconds"]) / 9  # seconds that do not depend on the rows
        say({
            "task": f"plan, {name}", "ratio": round(made[1]["seconds"] / made[0]["seconds"], 2),
            "fixed_seconds": round(fixed, 2),
            "rows_per_second": round(rate), "hours_for_1e9_rows": round(1e9 / rate / 3600, 2),
            "days_for_1e12_rows_on_100_machines": round(1e12 / rate / 86400 / 100, 2),
        })  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where the files are kept; a temporary one, by default")
    parser.add_argument("--most", type=int, default=10_000_000, help="rows of the largest files")
    parser.add_argument("--only", choices=("memory", "files"), help="measure a part, and keep the lines of the other")
    args = parser.parse_args()
    lines: list[dict[str, Any]] = []
    kept = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()] if args.only else []

    def say(line: dict[str, Any]) -> None:
        lines.append(line)
        print(line, flush=True)

    with tempfile.TemporaryDirectory() as own:
        folder = args.folder or Path(own)
        if args.only != "files":
            measure_memory(folder, say)
        if args.only != "memory":
            measure_files(folder, args.most, say)
    in_memory = [line for line in kept if line["task"] in _IN_MEMORY]
    in_files = [line for line in kept if line["task"] not in _IN_MEMORY]
    lines = (in_memory if args.only == "files" else []) + lines + (in_files if args.only == "memory" else [])
    RESULTS.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
