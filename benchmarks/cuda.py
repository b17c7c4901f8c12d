"""Kernel sums on a GPU: pairs a second beside tiled torch and beside the limit of its exponential unit, and errors.

    python benchmarks/cuda.py

It needs a GPU; results are printed and appended to benchmarks/results/cuda.jsonl. Times are of the device, the median
of several runs after a first one; the time of a whole estimate is of the clock, of which the transfer of rows is said
apart. A relative error is the largest of 256 rows and 256 columns, against double precision.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import priorshift as ps
from priorshift.embedding.triton_sums import fused_sums

RESULTS = Path(__file__).parent / "results" / "cuda.jsonl"
_EXPONENTIALS = 16  # a clock and multiprocessor
_SIZES = {10: 262_144, 30: 262_144, 128: 131_072, 512: 65_536}
_TILE = 8192


def timed(work: Callable[[], Any], runs: int) -> float:
    """Seconds of the device."""
    work()
    seconds = []
    for _ in range(runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        seconds.append(start.elapsed_time(end) / 1000)
    return statistics.median(seconds)


def tiled(X: torch.Tensor, Y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What one would write: single precision, a tile after the other; rows are scaled by 1/(√2 h)."""
    rows, columns = (torch.zeros(len(Z), dtype=torch.float64, device=X.device) for Z in (X, Y))
    x, y = (X**2).sum(dim=1), (Y**2).sum(dim=1)
    for i in range(0, len(X), _TILE):
        for j in range(0, len(Y), _TILE):
            at, to = slice(i, i + _TILE), slice(j, j + _TILE)
            k = torch.exp(2 * X[at] @ Y[to].T - x[at, None] - y[None, to])
            rows[at] += k.sum(dim=1)
            columns[to] += k.sum(dim=0)
    return rows, columns


def exact(X: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:
    """Row sums in double precision."""
    total = torch.zeros(len(X), dtype=torch.float64, device=X.device)
    for j in range(0, len(Y), 16384):
        y = Y[j : j + 16384]
        total += torch.exp(2 * X @ y.T - (X**2).sum(dim=1)[:, None] - (y**2).sum(dim=1)[None]).sum(dim=1)
    return total


def sums(p: int, n: int, limit: float) -> dict[str, Any]:
    """Row and column sums of n × n pairs."""
    generator = torch.Generator("cuda").manual_seed(p)
    X, Y = (torch.randn(n, p, generator=generator, device="cuda", dtype=torch.float64) / np.sqrt(p) for _ in range(2))
    Y += 0.3 / np.sqrt(p)  # k = exp(−‖x−y‖²/p) of standard normal rows
    scale = np.sqrt(2 * np.log2(np.e))
    x, y = X * scale, Y * scale
    of_x, of_y = -(x**2).sum(dim=1) / 2, -(y**2).sum(dim=1) / 2
    rows, columns = fused_sums(x, y, of_x, of_y)
    some = torch.arange(0, n, n // 256, device="cuda")
    errors = [float(((made[some] - told) / told).abs().max())
              for made, told in ((rows, exact(X[some], Y)), (columns, exact(Y[some], X)))]  # fmt: skip
    seconds = timed(lambda: fused_sums(x, y, of_x, of_y), 7)
    part = min(n, 65_536)
    plain = timed(lambda: tiled(X[:part].float(), Y[:part].float()), 3) / part**2 * n**2
    return {
        "task": "row and column sums", "features": p, "rows": n, "pairs_per_second": n * n / seconds,
        "over_tiled_torch": plain / seconds, "of_the_limit": n * n / seconds / limit, "error": max(errors),
    }  # fmt: skip


def whole(rows: int) -> dict[str, Any]:
    """TCPU with its interval, from arrays of the host."""
    rng = np.random.default_rng(0)
    labels = rng.random((2, rows)) < np.array([[0.2], [0.6]])
    U, T = (rng.normal(size=(rows, 10)) + one[:, None] for one in labels)
    P = rng.normal(size=(rows, 10)) + 1
    X, y = np.concatenate([P, U]), np.repeat([1, 0], rows)
    ps.TCPU(0.2, device="cuda").fit(X[:: rows // 1000], y[:: rows // 1000]).estimate(T[:1000])
    start = time.perf_counter()
    fitted = ps.TCPU(0.2, device="cuda").fit(X, y)
    middle = time.perf_counter()
    found = fitted.estimate(T)
    end = time.perf_counter()
    moved = time.perf_counter()
    for one in (P, U, T):
        torch.as_tensor(one, device="cuda")
    torch.cuda.synchronize()
    return {
        "task": "TCPU with its interval", "features": 10, "rows": 3 * rows, "fit_seconds": middle - start,
        "estimate_seconds": end - middle, "transfer_seconds": time.perf_counter() - moved, "estimate": found.raw,
        "standard_error": found.standard_error,
    }  # fmt: skip


def million() -> dict[str, Any]:
    """A million rows by a million."""
    generator = torch.Generator("cuda").manual_seed(0)
    X, Y = (torch.randn(10**6, 10, generator=generator, device="cuda", dtype=torch.float64) / 2 for _ in range(2))
    of_x, of_y = -(X**2).sum(dim=1) / 2, -(Y**2).sum(dim=1) / 2
    return {
        "task": "sums of a million by a million", "features": 10, "rows": 10**6,
        "seconds": timed(lambda: fused_sums(X, Y, of_x, of_y), 3),
    }  # fmt: skip


def both(task: str, rows: int, work: Callable[[str], Any]) -> dict[str, Any]:
    """The same work by the cores of this machine and by its GPU, data and answer on the host: the median of five."""
    seconds = {}
    for where in ("cpu", "cuda"):
        work(where)  # what is done once
        runs = []
        for _ in range(5):
            start = time.perf_counter()
            work(where)
            runs.append(time.perf_counter() - start)
        seconds[where] = statistics.median(runs)
    return {
        "task": task, "features": 10, "rows": rows, "cpu_seconds": seconds["cpu"], "seconds": seconds["cuda"],
        "ratio": seconds["cpu"] / seconds["cuda"],
    }  # fmt: skip


def bootstrap(rows: int) -> dict[str, Any]:
    """500 replicates of TCPU's bootstrap, all pairs."""
    s = ps.simulate.gaussian(0.2, 0.6, n_source=2 * rows, n_target=rows, shared=False, random_state=0)

    def work(device: str) -> None:
        ps.TCPU(0.2, interval="bootstrap", device=device, random_state=0).fit(s.X, s.y).estimate(s.target)

    return both("TCPU with 500 bootstrap replicates", len(s.X) + rows, work)


def scores(rows: int) -> dict[str, Any]:
    """The scores of a sample, five repetitions."""
    rng = np.random.default_rng(0)
    model = ps.sketch.ScoreModel.fit(rng.normal(size=(5000, 10)) + 1, rng.normal(size=(5000, 10)), use_km2=False)
    X = rng.normal(size=(rows, 10))
    return both("a histogram of scores", rows, lambda device: ps.sketch.Histogram.from_sample(X, model, device=device))


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("benchmarks/cuda.py: torch sees no GPU here.")
    device = torch.cuda.get_device_properties(0)
    clock = torch.cuda.clock_rate() * 1e6  # as it is while it works, in Hz
    busy = torch.randn(8192, 8192, device="cuda")
    for _ in range(20):
        busy @ busy
    clock = max(clock, torch.cuda.clock_rate() * 1e6)
    limit = device.multi_processor_count * _EXPONENTIALS * clock
    of_sums = [sums(p, n, limit) for p, n in _SIZES.items()]
    for made in (*of_sums, million(), whole(500_000), bootstrap(20_000), scores(2_000_000)):
        line = {"device": device.name, "limit": limit} | made
        print(line, flush=True)
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
