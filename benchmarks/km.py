"""KM2 against the published algorithm on a dense interior-point solver (cvxopt): time ratio and difference.

    python benchmarks/km.py [--output benchmarks/results/km.csv]

The baseline is a plain reading of Ramaswamy, Scott and Tewari (2016): distances to the hull by quadratic programs
over the simplex, the slope by finite differences, and a bisection on λ until it is known to 0.04, the authors' own
stopping rule: 18 programs. Their constraints v ≥ 0 are a dense matrix, as in the published code; with a sparse one
("sparse"), which cvxopt takes as well, the same algorithm is several times faster. Both sides get the same problems
in the same run, bandwidth and kernel included. Beside it stands a solve of ours at a tolerance of 1e-10, against which
the prior is compared, and, for large problems, time and peak memory of ours alone: all rows, and, where there are more
than `max_rows`, those that look alike in groups (4000 of 10,000 rows is what MixturePrior asks for).
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from statistics import median

import numpy as np
from scipy.spatial.distance import cdist

import priorshift as ps
from priorshift.hull.gram_matrix import gram_matrix
from priorshift.hull.hull import Hull

SIZES = {500: (3, 9), 1000: (2, 9), 2000: (1, 9)}  # rows: problems, rounds of ours for each
LARGE = (
    (5_000, 10_000),
    (10_000, 10_000),
    (4_000, 4_000),
    (4_000, 1_000),
    (10_000, 4_000),
    (40_000, 10_000),
    (10**6, 10_000),
)
LARGE_CODE = """
import json, sys, time, warnings
import priorshift as ps
warnings.simplefilter("ignore")
s = ps.simulate.gaussian(0.2, 0.5, int(sys.argv[1]), 10, random_state=0)
def megabytes(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(field))
warm = ps.simulate.gaussian(0.2, 0.5, 500, 10, random_state=0)
ps.KM2(standardize=False).fit(warm.X, warm.y)
start = time.perf_counter()
km = ps.KM2(standardize=False, max_rows=int(sys.argv[2]), random_state=0).fit(s.X, s.y)
print(json.dumps([time.perf_counter() - start, megabytes("VmHWM"), km.prior_]))
"""


def published(X: np.ndarray, m: int, sparse: bool) -> float:
    """KM2 as published, on cvxopt; its constraints v ≥ 0 as a dense matrix, as published, or as a sparse one."""
    import cvxopt

    cvxopt.solvers.options.update(show_progress=False)
    N, n = len(X), len(X) - m
    distances = cdist(X, X)
    a = np.concatenate([np.full(m, -1 / m), np.full(n, 1 / n)])
    p = np.concatenate([np.full(m, 1 / m), np.zeros(n)])
    widths = np.logspace(-1, 1, 5) * np.median(distances)
    squared = distances**2
    best = max(widths, key=lambda width: a @ np.exp(squared / (-2 * width**2)) @ a)
    K = np.exp(squared / (-2 * best**2)) + 1e-8 * np.eye(N)
    G = cvxopt.spmatrix(-1.0, range(N), range(N))
    K_, G, h = cvxopt.matrix(K), G if sparse else cvxopt.matrix(G), cvxopt.matrix(0.0, (N, 1))
    ones, one = cvxopt.matrix(1.0, (1, N)), cvxopt.matrix(1.0)

    def distance(ratio: float) -> float:
        u = ratio * a + p
        solved = cvxopt.solvers.qp(K_, cvxopt.matrix(-K @ u), G, h, ones, one)
        w = u - np.array(solved["x"]).ravel()
        return float(np.sqrt(max(w @ K @ w, 0.0)))

    threshold = 0.8 * (distance(1.05) - distance(1.0)) / 0.05 + 0.2 * float(np.sqrt(a @ K @ a))
    left, right = 1.0, 8.0
    while right - left > 0.04:
        middle = (left + right) / 2
        slope = (distance(middle + 0.01) - distance(middle - 0.01)) / 0.02
        left, right = (left, middle) if slope > threshold else (middle, right)
    return 1 - 2 / (left + right)


def tight(X: np.ndarray, y: np.ndarray, width: float) -> float:
    """KM2's prior with every solve at a tolerance of 1e-10."""
    positive = y == 1
    p = positive / positive.sum()
    hull = Hull(gram_matrix(X, width), p, ~positive / (~positive).sum() - p)
    threshold = 0.8 * hull.project(1.05, tolerance=1e-10).distance / 0.05 + 0.2 * hull.separation
    return 1 - 1 / hull.find_slope(threshold, tolerance=1e-10).ratio


def compare(rows: int, problems: int, rounds: int) -> list[dict]:
    lines = []
    for seed in range(problems):
        s = ps.simulate.gaussian(0.2, 0.5, rows, 10, random_state=seed)
        X, y = s.X, s.y
        ps.KM2(standardize=False).fit(X, y)
        seconds = []
        for _ in range(rounds):
            start = time.perf_counter()
            km = ps.KM2(standardize=False).fit(X, y)
            seconds.append(time.perf_counter() - start)
        taken = []
        for sparse in (False, True):
            start = time.perf_counter()
            theirs = published(X, int(y.sum()), sparse)
            taken.append(time.perf_counter() - start)
        lines.append(
            {
                "rows": rows,
                "seed": seed,
                "seconds": f"{median(seconds):.4f}",
                "published_seconds": f"{taken[0]:.2f}",
                "ratio": f"{taken[0] / median(seconds):.0f}",
                "published_sparse_seconds": f"{taken[1]:.2f}",
                "ratio_sparse": f"{taken[1] / median(seconds):.0f}",
                "prior": f"{km.prior_:.5f}",
                "published_prior": f"{theirs:.5f}",
                "off_tight_solve": f"{abs(km.prior_ - tight(X, y, km.bandwidth_)):.1e}",
            }
        )
        print(lines[-1], flush=True)
    return lines


def large(rows: int, most: int) -> dict:
    command = [sys.executable, "-c", LARGE_CODE, str(rows), str(most)]
    seconds, peak, prior = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    line = {"rows": rows, "max_rows": most, "seconds": f"{seconds:.2f}", "prior": f"{prior:.5f}"}
    line["peak_megabytes"] = f"{peak:.0f}"
    print(line, flush=True)
    return line


FIELDS = [
    "rows", "seed", "seconds", "published_seconds", "ratio", "published_sparse_seconds", "ratio_sparse", "prior",
    "published_prior", "off_tight_solve", "max_rows", "peak_megabytes",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "km.csv")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [line for rows, (problems, rounds) in SIZES.items() for line in compare(rows, problems, rounds)]
    lines += [large(rows, most) for rows, most in LARGE]
    with args.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, restval="")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
