"""`diagnose` beside `estimate_prior`: how many times as long it takes, within one run.

    python benchmarks/diagnose.py [--output benchmarks/results/diagnose.csv]

5000 rows of each sample and 10 columns. Times are of the processor, of both in turn; a ratio is the median over rounds.
The resampling, 999 random signs for every observation in the test of label shift, is said apart.
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
from priorshift.diagnosis.identification import DiagnosisInput
from priorshift.diagnosis.shift_tests import RESAMPLES, label_shift_test
from priorshift.problem import Source

ROWS, FEATURES, PRIOR, ROUNDS = 5000, 10, 0.3, 7


def seconds(action: Callable[[], Any]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def measure(known: bool) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shares = np.repeat([1.0, PRIOR, 0.6], ROWS)
    drawn = rng.normal(size=(3 * ROWS, FEATURES)) + (rng.random((3 * ROWS, 1)) < shares[:, None])
    P, U, T = np.split(drawn, 3)
    settings: dict[str, Any] = {"source_prior": PRIOR if known else None, "random_state": 0}
    witness = ps.WitnessShift(PRIOR, random_state=0)
    X, y = np.concatenate([P, U]), np.repeat([1, 0], ROWS)
    source = Source.from_labels(X, y, scenario="case-control", standardize=True)
    seen = witness.fit_source(source).fit_target(witness.read_target(T))
    tasks: dict[str, Callable[[], Any]] = {
        "estimate": lambda: ps.estimate_prior(P, U, T, **settings),
        "diagnose": lambda: ps.diagnose(P, U, T, **settings),
        "resampling": lambda: label_shift_test(DiagnosisInput(source, seen, rng=np.random.default_rng(0))),
    }
    for task in tasks.values():  # a round to warm up
        task()
    times = [{name: seconds(task) for name, task in tasks.items()} for _ in range(ROUNDS)]
    made = {f"{name}_seconds": f"{median(t[name] for t in times):.2f}" for name in tasks}
    ratio = median(t["diagnose"] / t["estimate"] for t in times)
    without = median((t["diagnose"] - t["resampling"]) / t["estimate"] for t in times)
    return {
        "rows": ROWS, "features": FEATURES, "source_prior": "known" if known else "unknown", "resamples": RESAMPLES,
        **made, "ratio": f"{ratio:.1f}", "ratio_without_resampling": f"{without:.1f}",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default=Path(__file__).parent / "results" / "diagnose.csv", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [measure(known) for known in (True, False)]
    for line in lines:
        print(", ".join(f"{name} {value}" for name, value in line.items()))
    with args.output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, lines[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
