"""TCPU with a known source prior against scikit-learn's pairwise_kernels: time ratio, error, peak memory.

    python benchmarks/tcpu.py [--output benchmarks/results/tcpu.csv]

Both sides get the same three samples, of as many rows each, in the same run, turn and turn about; times are
medians. The baseline makes the five kernel matrices that the estimate needs and sums them up, once to a single
number ("totals": the estimate alone) and once along rows and columns ("margins": what standard errors need).
Ours is fit and estimate, with standard error and interval. A ratio is the median of the rounds' ratios. Memory is
how far the peak resident size during fit and estimate exceeds the size before, in a process of its own, after a
small warm-up (Linux only).
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

import priorshift as ps
from priorshift import threads

SPEED = [(rows, features, "normal") for rows in (1000, 2000, 4000, 8000) for features in (10, 30)]
SPEED.append((8000, 30, "log-normal"))  # rows far out, on columns that are standardised, as by default
MEMORY = [(50_000, 10), (50_000, 30)]
PRIOR = 0.2
ROUNDS = 9
MEMORY_CODE = """
import json, sys
import numpy as np
import priorshift as ps

rows, features, precision = json.loads(sys.argv[1])
def problem(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * n, features))
    X[:n] += 1
    return X, np.repeat([1, 0], n), rng.normal(size=(n, features))
def megabytes(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(field))
X, y, T = problem(2000)
ps.TCPU(0.2, standardize=False, precision=precision).fit(X, y).estimate(T)
X, y, T = problem(rows)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak counts from here
before = megabytes("VmRSS")
ps.TCPU(0.2, standardize=False, precision=precision).fit(X, y).estimate(T)
print(megabytes("VmHWM") - before)
"""


def samples(rows: int, features: int, columns: str) -> list[np.ndarray]:
    """P, U and T of the paper's synthetic population, `rows` each; or the powers of e of such rows, standardised."""
    rng = np.random.default_rng(0)
    shares = (1.0, PRIOR, 0.6)
    drawn = [rng.normal(size=(rows, features)) + (rng.random((rows, 1)) < share) for share in shares]
    if columns == "normal":
        return drawn
    drawn = [np.exp(1.5 * part) for part in drawn]
    return [(part - drawn[1].mean(axis=0)) / drawn[1].std(axis=0) for part in drawn]


def baseline(P: np.ndarray, U: np.ndarray, T: np.ndarray, *, margins: bool) -> float:
    """The plug-in estimate from scikit-learn's kernel matrices."""
    gram = []
    for X, Y in ((P, P), (U, U), (P, U), (P, T), (U, T)):
        K = pairwise_kernels(X, Y, metric="rbf", gamma=1 / X.shape[1])
        gram.append((K.sum(axis=0).sum() + K.sum(axis=1).sum()) / 2 / K.size if margins else K.sum() / K.size)
        del K
    pp, uu, pu, pt, ut = gram
    return 1 - (1 - PRIOR) * (ut - pu - pt + pp) / (uu - 2 * pu + pp)


def ours(P: np.ndarray, U: np.ndarray, T: np.ndarray, precision: str) -> float:
    tcpu = ps.TCPU(PRIOR, statistic="plug-in", standardize=False, precision=precision)
    return tcpu.fit(np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])).estimate(T).raw


def speed(rows: int, features: int, columns: str) -> list[dict]:
    data = samples(rows, features, columns)
    rivals = {
        "totals": lambda: baseline(*data, margins=False),
        "margins": lambda: baseline(*data, margins=True),
        "float64": lambda: ours(*data, "float64"),
        "float32": lambda: ours(*data, "float32"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    order = np.random.default_rng(0)
    answers = {name: rival() for name, rival in rivals.items()}  # a round to warm up
    for _ in range(ROUNDS):
        for name in order.permutation(list(rivals)):
            start = time.perf_counter()
            rivals[name]()
            seconds[name].append(time.perf_counter() - start)
    middle = {name: median(values) for name, values in seconds.items()}

    def ratio(baseline: str, precision: str) -> float:
        return median(b / o for b, o in zip(seconds[baseline], seconds[precision], strict=True))

    return [
        {
            "rows_each": rows,
            "features": features,
            "columns": columns,
            "threads": threads.available(),
            "precision": precision,
            "seconds": f"{middle[precision]:.4f}",
            "sklearn_totals_seconds": f"{middle['totals']:.4f}",
            "sklearn_margins_seconds": f"{middle['margins']:.4f}",
            "ratio_totals": f"{ratio('totals', precision):.2f}",
            "ratio_margins": f"{ratio('margins', precision):.2f}",
            "relative_error": f"{abs(answers[precision] / answers['totals'] - 1):.1e}",
        }
        for precision in ("float64", "float32")
    ]


def memory(rows: int, features: int) -> list[dict]:
    lines = []
    for precision in ("float64", "float32"):
        argument = json.dumps([rows, features, precision])
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", MEMORY_CODE, argument], capture_output=True, text=True, check=True)
        lines.append(
            {
                "rows_each": rows,
                "features": features,
                "precision": precision,
                "seconds": f"{time.perf_counter() - start:.1f}",
                "peak_megabytes": f"{float(done.stdout):.1f}",
            }
        )
    return lines


FIELDS = [
    "rows_each", "features", "columns", "threads", "precision", "seconds", "sklearn_totals_seconds",
    "sklearn_margins_seconds", "ratio_totals", "ratio_margins", "relative_error", "peak_megabytes",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "tcpu.csv")
    args = parser.parse_args()
    lines = []
    for run, cases in ((speed, SPEED), (memory, MEMORY)):
        for case in cases:
            for line in run(*case):
                print(" ".join(f"{key}={value}" for key, value in line.items()), flush=True)
                lines.append(line)
    with args.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, restval="")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
