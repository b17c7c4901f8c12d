"""The default of an earlier commit against today's: error, interval and time on the same draws.

    PRIORSHIFT_DATA=folder python benchmarks/before.py c2f7b0a [--draws 2]

The paper's UCI sets, source priors 0.05 to 0.9 and target priors 0.05 to 0.95, π known and unknown. The
earlier commit is checked out into a temporary folder. Results are printed and written to benchmarks/results/before.csv.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "before.csv"
SETS = ("Banknote", "Diabetes", "Segment", "Spambase", "Vehicle", "Waveform", "Yeast")
PRIORS = ((0.05, 0.3), (0.1, 0.5), (0.2, 0.05), (0.5, 0.2), (0.5, 0.8), (0.8, 0.4), (0.9, 0.95))


def answers(draws: int) -> None:
    """A line of JSON for each draw, by whatever priorshift is imported."""
    import priorshift as ps

    warnings.simplefilter("ignore")
    for name in SETS:
        data = ps.datasets.load_table(name)
        for source, target in PRIORS:
            for seed in range(draws):
                s = ps.simulate.shift_labels(data.X, data.y, source, target, random_state=seed)
                truth = float(s.target_labels.mean())
                for known in (True, False):
                    start = time.perf_counter()
                    found = ps.WitnessShift(source if known else None, random_state=0)
                    e = found.fit(s.X, s.y, shared=s.ids).estimate(s.target)
                    low, high = e.interval.low, e.interval.high
                    print(
                        json.dumps(
                            [
                                [name, source, target, seed, known],
                                [
                                    abs(e.value - truth),
                                    float(low <= truth <= high),
                                    high - low,
                                    time.perf_counter() - start,
                                ],
                            ]
                        ),
                        flush=True,
                    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("commit")
    parser.add_argument("--draws", type=int, default=2)
    asked = parser.parse_args()
    if asked.commit == "here":
        return answers(asked.draws)
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(folder) / "earlier"
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", earlier, asked.commit], check=True)
        try:
            runs = [
                subprocess.Popen(
                    [sys.executable, __file__, "here", "--draws", str(asked.draws)],
                    env={**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"},
                    stdout=subprocess.PIPE, text=True, cwd=folder,
                )
                for tree in (earlier, ROOT)
            ]  # fmt: skip
            before, after = ({str(k): v for k, v in map(json.loads, run.stdout)} for run in runs)
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", earlier], check=True)
    lines = [("source_prior", "draws", "what", "before", "after")]
    for known in (True, False):
        keys = [k for k in before if k.endswith(f"{known}]")]
        was, now = (np.array([answers[k] for k in keys]) for answers in (before, after))
        for at, what in enumerate(("mean error", "coverage", "mean width", "median seconds")):
            mean = np.median if "median" in what else np.mean
            pair = (round(float(mean(x[:, at])), 5) for x in (was, now))
            lines.append(("known" if known else "unknown", len(keys), what, *pair))
        lines.append(
            (lines[-1][0], len(keys), "largest change of an error", "", round(np.abs(was - now)[:, 0].max(), 5))
        )
    for line in lines:
        print(*line)
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
    return None


if __name__ == "__main__":
    main()
