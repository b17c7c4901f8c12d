"""Do the intervals cover when KM2 estimates the source prior? They include its sampling error and not its bias.

    python experiments/coverage_km2.py [--output experiments/results/coverage_km2.csv]

Synthetic data as in coverage.py. One source draw serves six targets. Lines of a source setting that are there already
are not run again.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # one process for each core, one thread in each

import numpy as np
from coverage import SOURCE_PRIORS, TARGET_PRIORS

import priorshift as ps

REPETITIONS = {200: 400, 2000: 100}
GRID = list(product(REPETITIONS, (False, True), SOURCE_PRIORS))  # rows, shared rows, source prior
KEYS = ("rows", "shared_rows", "source_prior")


def run(rows: int, shared: bool, pi: float, seed: int = 2026) -> list[dict]:
    warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)
    rng = np.random.default_rng([seed, rows, shared, round(1000 * pi)])
    priors, errors = [], []
    draws: dict[float, list[tuple]] = {target: [] for target in TARGET_PRIORS}
    for _ in range(REPETITIONS[rows]):
        s = ps.simulate.gaussian(pi, 0.5, rows, rows, shared=shared, random_state=rng)
        tcpu = ps.TCPU().fit(s.X, s.y, shared=s.ids)
        km2 = tcpu.prior_estimator_
        priors.append(km2.prior_)
        for target in TARGET_PRIORS:
            T = ps.simulate.gaussian(pi, target, 10, rows, random_state=rng).target
            estimate = tcpu.estimate(T)
            errors.append(estimate.details["source_prior_standard_error"])
            draws[target].append((estimate.raw, estimate.standard_error, target in estimate.interval))
    lines = []
    for target, values in draws.items():
        raw, error, covered = np.array(values, dtype=float).T
        lines.append(
            {
                "rows": rows, "shared_rows": shared, "source_prior": pi, "target_prior": target,
                "repetitions": len(raw),
                "source_prior_bias": f"{np.mean(priors) - pi:.4f}", "source_prior_sd": f"{np.std(priors, ddof=1):.4f}",
                "source_prior_standard_error": f"{np.mean(errors):.4f}",
                "bias": f"{raw.mean() - target:.4f}", "sd": f"{raw.std(ddof=1):.4f}",
                "standard_error": f"{error.mean():.4f}", "coverage": f"{covered.mean():.4f}",
            }
        )  # fmt: skip
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "coverage_km2.csv")
    args = parser.parse_args()
    lines: list[dict] = []
    if args.output.exists():
        with args.output.open() as file:
            lines = list(csv.DictReader(file))
    done = {tuple(line[key] for key in KEYS) for line in lines}
    with ProcessPoolExecutor() as pool:
        todo = [cell for cell in GRID if tuple(map(str, cell)) not in done]
        for job in as_completed([pool.submit(run, *cell) for cell in reversed(todo)]):  # the long ones first
            lines += [{key: str(value) for key, value in line.items()} for line in job.result()]
            lines.sort(
                key=lambda line: (int(line["rows"]), line["shared_rows"], line["source_prior"], line["target_prior"])
            )
            whole = args.output.with_suffix(".tmp")
            with whole.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(lines[0]))
                writer.writeheader()
                writer.writerows(lines)
            whole.replace(args.output)
    for rows in REPETITIONS:
        for pi in SOURCE_PRIORS:
            some = [line for line in lines if int(line["rows"]) == rows and float(line["source_prior"]) == pi]
            covered = [float(line["coverage"]) for line in some]
            bias = np.mean([float(line["source_prior_bias"]) for line in some])
            print(
                f"{rows} rows, source prior {pi}: KM2 off by {bias:+.3f}, "
                f"coverage {np.mean(covered):.2f} on average, from {min(covered):.2f} to {max(covered):.2f}"
            )


if __name__ == "__main__":
    main()
