"""Compare CPU time, memory and estimates of the main calls between two source trees, in one run.

    python benchmarks/compare_trees.py OLD/src NEW/src [--repeats 3] [--calls workbooks] [--output FILE.csv]

Each call runs in a process of its own, with one thread, in the old tree and the new one in turn. A process makes the
call twice and times the second, so that imports do not count; of all repeats the smallest CPU time counts, and the
smallest peak of memory, which includes the inputs. `--calls` selects the calls whose names contain a text.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import priorshift as ps
from priorshift.io.workbook_writer import write_workbook

ROLES = ("positive", "unlabeled", "target")
# samples in memory or files: rows of source and target, columns, kind of file
INPUTS: dict[str, tuple[int, int, int, str]] = {
    "few": (1_000, 500, 10, "npy"),
    "medium": (2_000, 1_000, 10, "npy"),
    "small": (6_000, 3_000, 10, "npy"),
    "large": (60_000, 30_000, 10, "npy"),
    "huge": (500_000, 500_000, 10, "npy"),
    "csv": (6_000, 3_000, 10, "csv"),
    "parquet": (500_000, 500_000, 10, "parquet"),
    "wide parquet": (600, 300, 2_500, "parquet"),
    "workbook": (20_000, 10_000, 20, "xlsx"),
    "large workbook": (80_000, 40_000, 20, "xlsx"),
}
_KNOWN = "ps.estimate_prior(*samples, source_prior=0.2, random_state=0)"
_UNKNOWN = "ps.estimate_prior(*samples, random_state=0)"
_STREAM = "ps.estimate_prior(*samples, source_prior=0.2, stream=True, random_state=0)"
CALLS = {
    "default, π unknown, 9,000 rows": ("small", _UNKNOWN),
    "default, π known, 9,000 rows of CSV": ("csv", _KNOWN),
    "default, π unknown, 90,000 rows": ("large", _UNKNOWN),
    "default, π known, 1,000,000 rows": ("huge", _KNOWN),
    "default, π unknown, 1,000,000 rows": ("huge", _UNKNOWN),
    "TCPU, π known, 9,000 rows": ("small", "ps.estimate_prior(*samples, method='tcpu', source_prior=0.2)"),
    "KM2, 2,000 rows": ("medium", "ps.KM2(random_state=0).fit(*labeled(samples[:2]))"),
    "diagnose, π known, 1,500 rows": ("few", "ps.diagnose(*samples, source_prior=0.2, random_state=0).estimate"),
    "streaming, π known, 9,000 rows of CSV": ("csv", _STREAM),
    "streaming, π known, 1,000,000 rows of Parquet": ("parquet", _STREAM),
    "default, π known, 2,500 columns of Parquet": ("wide parquet", _KNOWN),
    "workbooks, π known, 30,000 × 20 cells": ("workbook", _KNOWN),
    "workbooks, π known, 120,000 × 20 cells": ("large workbook", _KNOWN),
}
CODE = """
import json, resource, sys, time, warnings
import numpy as np
import priorshift as ps
warnings.simplefilter("ignore")
call, *paths = sys.argv[1:]
samples = [np.load(path) if path.endswith(".npy") else path for path in paths]
def labeled(parts):
    return np.concatenate(parts), np.repeat([1, 0], [len(part) for part in parts])
call = compile(call, "call", "eval")
eval(call)
start = time.process_time()
result = eval(call)
seconds = time.process_time() - start
is_km = hasattr(result, "prior_")
value, error = (result.prior_, result.standard_error_) if is_km else (result.value, result.standard_error)
megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([seconds, megabytes, float(value), float(error)]))
"""


def write_inputs(folder: Path, name: str) -> list[Path]:
    """Write the three samples of an entry of INPUTS to files, unless they exist; return their paths."""
    n_source, n_target, n_columns, kind = INPUTS[name]
    paths = [folder / f"{name} {role}.{kind}" for role in ROLES]
    if not paths[0].exists():
        sample = ps.simulate.gaussian(
            0.2, 0.5, n_source=n_source, n_target=n_target, dimension=n_columns, shared=False, random_state=1
        )  # fmt: skip
        for path, role in zip(paths, ROLES, strict=True):
            write_rows(path, getattr(sample, role))
    return paths


def write_rows(path: Path, rows: np.ndarray) -> None:
    """Write rows to a file of the kind that its name ends with."""
    columns = [f"c{k}" for k in range(rows.shape[1])]
    if path.suffix == ".npy":
        np.save(path, rows)
    elif path.suffix == ".csv":
        np.savetxt(path, rows, delimiter=",", header=",".join(columns), comments="")
    elif path.suffix == ".xlsx":
        write_workbook(path, [columns, *rows.round(4).tolist()])
    else:
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.table(dict(zip(columns, rows.T, strict=True))), path)


def run(tree: str, call: str, paths: list[Path]) -> list[float]:
    """Return CPU seconds, peak of memory in MB, estimate and standard error of a call with the package in `tree`."""
    environment = os.environ | {"PYTHONPATH": tree, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CODE, call, *map(str, paths)]
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    numbers: list[float] = json.loads(process.stdout.splitlines()[-1])
    return numbers


def compare(name: str, folder: Path, trees: tuple[str, str], repeats: int) -> dict[str, Any]:
    """Run a call in both trees in turn, and return a line of the table."""
    inputs, call = CALLS[name]
    paths = write_inputs(folder, inputs)
    runs = [[run(tree, call, paths) for tree in trees] for _ in range(repeats)]
    old, new = ([min(pair[k][part] for pair in runs) for part in (0, 1)] for k in (0, 1))
    return {
        "call": name,
        "old_seconds": f"{old[0]:.3f}", "new_seconds": f"{new[0]:.3f}", "ratio": f"{new[0] / old[0]:.2f}",
        "old_megabytes": f"{old[1]:.0f}", "new_megabytes": f"{new[1]:.0f}",
        "old_estimate": f"{runs[0][0][2]:.5f}", "new_estimate": f"{runs[0][1][2]:.5f}",
        "standard_error": f"{runs[0][0][3]:.5f}",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--calls", default="")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name in CALLS:
            if args.calls in name:
                lines.append(compare(name, Path(folder), (args.old, args.new), args.repeats))
                print(" ".join(f"{key}={value}" for key, value in lines[-1].items()), flush=True)
    if args.output:
        with args.output.open("w", newline="") as file:
            writer = csv.DictWriter(file, lines[0])
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
