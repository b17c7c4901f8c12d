"""WitnessShift, the default, beside TCPU: time of a fit and of each further target, as ratios within one run.

    python benchmarks/witness.py [--output benchmarks/results/witness.csv]

Both get the same tables in the same run, turn and turn about: a source of so many rows, a third of them labelled, and a
target of as many. With π unknown the witness asks MixturePrior, and TCPU asks KM2. A fit pays for all targets; a target
costs the witness a score for each of its rows, and TCPU the kernel's sums with all rows of the source. A ratio is the
median of the rounds' ratios, the witness's time over TCPU's. TCPU uses all cores; where other work runs beside it, its
threads wait for each other, and OMP_NUM_THREADS=1 gives ratios that hold.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import priorshift as ps
from priorshift import threads

SIZES = ((2000, 10), (2000, 30))  # rows of the source and of the target, features
PRIOR = 0.2
ROUNDS = 5


def problem(rows: int, features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X and y of a source of the paper's synthetic population, and a target."""
    rng = np.random.default_rng(0)
    positives = rows // 3
    shares = np.repeat([1.0, PRIOR, 0.6], [positives, rows - positives, rows])
    drawn = rng.normal(size=(2 * rows, features)) + (rng.random((2 * rows, 1)) < shares[:, None])
    return drawn[:rows], np.repeat([1, 0], [positives, rows - positives]), drawn[rows:]


def seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(rows: int, features: int, known: bool) -> dict[str, Any]:
    X, y, target = problem(rows, features)
    prior = PRIOR if known else None
    made = {"witness": ps.WitnessShift(prior, random_state=0), "tcpu": ps.TCPU(prior, random_state=0)}
    fits: dict[str, list[float]] = {name: [] for name in made}
    targets: dict[str, list[float]] = {name: [] for name in made}
    order = np.random.default_rng(0)
    for estimator in made.values():  # a round to warm up
        estimator.fit(X, y).estimate(target)
    for _ in range(ROUNDS):
        for name in order.permutation(list(made)):
            fits[name].append(seconds(lambda name=name: made[name].fit(X, y)))
            targets[name].append(seconds(lambda name=name: made[name].estimate(target)))

    def ratio(times: dict[str, list[float]]) -> float:
        return median(w / t for w, t in zip(times["witness"], times["tcpu"], strict=True))

    return {
        "rows": rows,
        "features": features,
        "source_prior": "known" if known else "unknown",
        "threads": threads.available(),
        "witness_fit_seconds": f"{median(fits['witness']):.3f}",
        "tcpu_fit_seconds": f"{median(fits['tcpu']):.3f}",
        "fit_ratio": f"{ratio(fits):.2f}",
        "witness_target_seconds": f"{median(targets['witness']):.3f}",
        "tcpu_target_seconds": f"{median(targets['tcpu']):.3f}",
        "target_ratio": f"{ratio(targets):.2f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "witness.csv")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for rows, features in SIZES:
        for known in (True, False):
            lines.append(measure(rows, features, known))
            print(" ".join(f"{key}={value}" for key, value in lines[-1].items()), flush=True)
    with args.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
