"""Do the intervals cover? Synthetic data with known priors, every setting of the grid, figures in a CSV file.

    python experiments/coverage.py [--repetitions 500] [--output experiments/results/coverage.csv]

Each line of the file is one setting. A setting whose line is there already is not run again, so an interrupted
study goes on where it stopped; delete the file to start anew.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # one process for each core, one thread in each

import numpy as np

import priorshift as ps

SOURCE_PRIORS = (0.1, 0.2, 0.5)
TARGET_PRIORS = (0.1, 0.2, 0.4, 0.6, 0.8, 0.95)
ROWS = (200, 2000)
BOOTSTRAP_ROWS = 200  # the bootstrap is studied at this size only, with this many replicates:
BOOTSTRAP_REPLICATES = 200
GRID = [
    {"source_prior": pi, "target_prior": pi_target, "rows": rows, "shared_rows": shared}
    for rows, shared, pi, pi_target in product(ROWS, (False, True), SOURCE_PRIORS, TARGET_PRIORS)
]
KEYS = tuple(GRID[0])


def run(cell: dict, repetitions: int, seed: int) -> dict:
    """One setting: how often each interval holds the true target prior, and how far the estimates are off."""
    pi, truth = cell["source_prior"], cell["target_prior"]
    rng = np.random.default_rng([seed, *(round(1000 * float(cell[key])) for key in KEYS)])
    draws = []
    warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)
    for _ in range(repetitions):
        s = ps.simulate.gaussian(pi, truth, cell["rows"], cell["rows"], shared=cell["shared_rows"], random_state=rng)
        tcpu = ps.TCPU(pi, n_bootstrap=BOOTSTRAP_REPLICATES, random_state=rng).fit(s.X, s.y, shared=s.ids)
        estimate = tcpu.estimate(s.target)
        draw = {
            "bias": estimate.raw - truth,
            "standard_error": estimate.standard_error,
            "coverage": truth in estimate.interval,
            "width": estimate.interval.width,
        }
        for bound in ("paper-bound", "sharp-bound"):
            interval = tcpu.set_params(interval=bound).estimate(s.target).interval
            draw[f"coverage_{bound}"] = truth in interval
            draw[f"width_{bound}"] = interval.width
        if cell["rows"] == BOOTSTRAP_ROWS:
            draw["coverage_bootstrap"] = truth in tcpu.set_params(interval="bootstrap").estimate(s.target).interval
        plug_in = tcpu.set_params(interval="delta", statistic="plug-in").estimate(s.target)
        draw |= {"bias_plug-in": plug_in.raw - truth, "coverage_plug-in": truth in plug_in.interval}
        draws.append(draw)
    column = {key: np.array([draw[key] for draw in draws], dtype=float) for key in draws[0]}
    known = np.isfinite(column["bias"])
    return {
        **cell,
        "repetitions": repetitions,
        "no_estimate": int((~known).sum()),
        "bias": column["bias"][known].mean(),
        "sd": column["bias"][known].std(ddof=1),
        **{key: values[np.isfinite(values)].mean() for key, values in column.items() if key != "bias"},
    }


FIELDS = [
    *KEYS, "repetitions", "no_estimate", "bias", "sd", "standard_error", "coverage", "width", "coverage_bootstrap",
    "bias_plug-in", "coverage_plug-in", "coverage_paper-bound", "width_paper-bound", "coverage_sharp-bound",
    "width_sharp-bound",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "coverage.csv")
    args = parser.parse_args()
    done = set()
    if args.output.exists():
        with args.output.open() as file:
            done = {tuple(row[key] for key in KEYS) for row in csv.DictReader(file)}
    todo = [cell for cell in GRID if tuple(str(cell[key]) for key in KEYS) not in done]
    new = not args.output.exists()
    with args.output.open("a", newline="") as file, ProcessPoolExecutor() as pool:
        writer = csv.DictWriter(file, FIELDS, restval="")
        if new:
            writer.writeheader()
        jobs = [pool.submit(run, cell, args.repetitions, args.seed) for cell in todo]
        for number, job in enumerate(as_completed(jobs), 1):
            line = job.result()
            writer.writerow({k: f"{v:.4f}" if isinstance(v, float) and k not in KEYS else v for k, v in line.items()})
            file.flush()
            if sys.stderr.isatty():
                print(f"\r{number} of {len(todo)} settings", end="", file=sys.stderr)
    in_grid_order(args.output)
    summarize(args.output)


def in_grid_order(path: Path) -> None:
    """Settings finish in any order; the finished file has the grid's."""
    with path.open() as file:
        lines = {tuple(line[key] for key in KEYS): line for line in csv.DictReader(file)}
    whole = path.with_suffix(".tmp")
    with whole.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(lines[tuple(str(cell[key]) for key in KEYS)] for cell in GRID)
    whole.replace(path)


def summarize(path: Path) -> None:
    with path.open() as file:
        lines = list(csv.DictReader(file))
    for name in ("coverage", "coverage_bootstrap", "coverage_plug-in", "coverage_paper-bound", "coverage_sharp-bound"):
        values = np.array([float(line[name]) for line in lines if line[name]])
        print(
            f"{name}: mean {values.mean():.3f}, from {values.min():.3f} to {values.max():.3f}, {len(values)} settings"
        )


if __name__ == "__main__":
    main()
