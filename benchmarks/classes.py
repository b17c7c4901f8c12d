"""Several classes and a rest beside the binary default: how many times as long, and how much memory, within one run.

    OMP_NUM_THREADS=1 python benchmarks/classes.py [--output benchmarks/results/classes.csv]

All samples have the same number of rows and ten columns: with five classes these are seven samples, and with one class
three. Each measurement is a process of its own, so that its peak memory is its own, and both are measured in turn.
Seconds are those of the processor, without imports, for a fit and one target; seconds, and the ratio of five classes to
the binary default, are medians over rounds. The peak includes the rows themselves (`input_mb`) and the libraries.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

CLASSES, FEATURES = 5, 10
MEASURED = ((10_000, True, 3), (50_000, True, 1), (10_000, False, 1))  # rows of each sample, priors known, rounds
_WORK = """
import json, resource, sys, time, warnings
import numpy as np
import priorshift as ps
from priorshift.errors import PriorShiftWarning
warnings.simplefilter("ignore", PriorShiftWarning)
classes, rows, features, known = json.loads(sys.argv[1])
source = {f"class {k}": 0.5 / classes for k in range(classes)}
target = {f"class {k}": (k + 1) / (classes + 1) / classes for k in range(classes)}
s = ps.simulate.gaussian_classes(source, target, n_class=rows, n_source=rows, n_target=rows, dimension=features,
                                 random_state=0)
prior = source if known else None
positive = s.classes
if classes == 1:
    [positive] = s.classes.values()
    prior = 0.5 if known else None
ps.estimate_prior  # imports the library, which is not timed
few = {name: sample[:50] for name, sample in s.classes.items()} if classes > 1 else positive[:50]
ps.estimate_prior(few, s.unlabeled[:50], s.target[:50], source_prior=prior, random_state=0)
start = time.process_time()
ps.estimate_prior(positive, s.unlabeled, s.target, source_prior=prior, random_state=0)
print(json.dumps({
    "seconds": time.process_time() - start,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "input": (classes + 2) * rows * features * 8 / 2**20,
}))
"""


def run(classes: int, rows: int, known: bool) -> dict[str, float]:
    """Return seconds and memory of one estimate in a process of its own."""
    command = [sys.executable, "-c", _WORK, json.dumps([classes, rows, FEATURES, known])]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(found.stdout.splitlines()[-1]))


def measure(rows: int, known: bool, rounds: int) -> dict[str, Any]:
    """Return the line of one size."""
    found = [(run(1, rows, known), run(CLASSES, rows, known)) for _ in range(rounds)]
    ratio = median(several["seconds"] / one["seconds"] for one, several in found)
    line: dict[str, Any] = {
        "rows_each": rows, "features": FEATURES, "source_prior": "known" if known else "unknown", "classes": CLASSES
    }  # fmt: skip
    for name, results in zip(("binary", "classes"), zip(*found, strict=True), strict=True):
        line[f"{name}_seconds"] = f"{median(result['seconds'] for result in results):.2f}"
        line[f"{name}_peak_mb"] = f"{median(result['peak'] for result in results):.0f}"
        line[f"{name}_input_mb"] = f"{results[0]['input']:.0f}"
    return line | {"ratio": f"{ratio:.2f}"}


def main() -> None:
    """Measure all sizes, print the lines and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default=Path(__file__).parent / "results" / "classes.csv", type=Path)
    args = parser.parse_args()
    lines = []
    for rows, known, rounds in MEASURED:
        lines.append(measure(rows, known, rounds))
        print(", ".join(f"{name} {value}" for name, value in lines[-1].items()), flush=True)
        with args.output.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
