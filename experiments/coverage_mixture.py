"""Does the interval of the default cover the target prior when the source prior is not known?

    python -m experiments.coverage_mixture [--rows 200 2000] [--repetitions 200] [--output FILE]

The paper's synthetic data and grid, c = 0.5, rows shared between P and U as in the paper. One fit serves four targets.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np

import priorshift as ps
from experiments.grids import PRIORS, TARGETS


def one(job: tuple[int, float, int]) -> list[tuple[float, ...]]:
    """(π̂, its error, π̂′, its error, low, high) for each target."""
    rows, pi, seed = job
    warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)
    rng = np.random.default_rng((rows, round(1000 * pi), seed))
    s = ps.simulate.gaussian(pi, 0.5, rows, 2, random_state=rng)
    fitted = ps.MixtureShift(random_state=seed).fit(s.X, s.y, shared=s.ids)
    answers = []
    for target in TARGETS:
        labels = rng.random(rows) < target
        answer = fitted.estimate(rng.normal(size=(rows, 10)) + labels[:, None])
        prior = fitted.prior_estimator_
        ends = answer.interval
        answers.append((prior.prior_, prior.standard_error_, answer.raw, answer.standard_error, ends.low, ends.high))
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 2000])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "coverage_mixture.csv")
    args = parser.parse_args()
    lines = []
    with ProcessPoolExecutor() as pool:
        for rows, pi in product(args.rows, PRIORS):
            jobs = [(rows, pi, seed) for seed in range(args.repetitions)]
            found = np.array(list(pool.map(one, jobs, chunksize=4)))
            for k, target in enumerate(TARGETS):
                prior, prior_error, raw, error, low, high = found[:, k].T
                line = {"rows": rows, "source_prior": pi, "target_prior": target, "repetitions": args.repetitions}
                line |= {"coverage": np.mean((low <= target) & (target <= high)), "width": np.mean(high - low)}
                line |= {"bias": np.mean(raw - target), "sd": np.std(raw), "standard_error": np.mean(error)}
                line |= {"prior_bias": np.mean(prior - pi), "prior_sd": np.std(prior)}
                line["prior_standard_error"] = np.mean(prior_error)
                lines.append({key: f"{v:.4f}" if isinstance(v, np.floating) else v for key, v in line.items()})
                print(lines[-1], flush=True)
    with args.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
