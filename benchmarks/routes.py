"""Compare TCPU from all pairs with TCPU from random features: time and standard error on the same rows.

    python benchmarks/routes.py

P and U each have a quarter of the rows, T has half. Results are printed and written to benchmarks/results/routes.csv.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path

import numpy as np

import priorshift as ps

RESULTS = Path(__file__).parent / "results" / "routes.csv"
_ROUTES = {
    "all pairs": {"embedding": "exact"},
    "all pairs, float32": {"embedding": "exact", "precision": "float32"},
    "512 random features": {"embedding": "random-features", "features": 512},
}


def measure(rows: int, columns: int, settings: dict[str, object]) -> tuple[float, float]:
    """Return the seconds of one fit and estimate, and the standard error."""
    rng = np.random.default_rng(0)
    samples = {"P": (rows // 4, 1.0), "U": (rows // 4, 0.2), "T": (rows // 2, 0.6)}
    P, U, T = (
        rng.normal(size=(n, columns)) + np.sqrt(10 / columns) * (rng.random(n) < prior)[:, None]
        for n, prior in samples.values()
    )
    X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
    start = time.perf_counter()
    estimate = ps.TCPU(0.2, device="cpu", **settings).fit(X, y).estimate(T)
    return time.perf_counter() - start, estimate.standard_error


def main() -> None:
    """Measure every size and number of columns, and write the table."""
    lines = [("columns", "rows", "route", "seconds", "standard_error", "over_all_pairs")]
    for columns in (10, 30):
        for rows in (1000, 4000, 16_000, 64_000):
            exact = None
            for name, settings in _ROUTES.items():
                seconds, error = min(measure(rows, columns, settings) for _ in range(5 if rows < 64_000 else 2))
                exact = exact or (seconds, error)
                lines.append((columns, rows, name, round(seconds, 3), round(error, 6), round(seconds / exact[0], 3)))
                print(*lines[-1], flush=True)
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)


if __name__ == "__main__":
    main()
