"""Compare the CPU time of the main calls between two source trees, in one run.

    python benchmarks/compare_trees.py OLD/src NEW/src [--repeats 3]

Each tree runs in its own process, one thread, old and new in turns; the smallest CPU time of each call counts. The
first call of each kind is not counted, so that imports are not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

CODE = """
import json, sys, tempfile, time, warnings
from pathlib import Path
import numpy as np
import priorshift as ps
warnings.simplefilter("ignore")
def sample(rows):
    return ps.simulate.gaussian(0.2, 0.5, n_source=rows, n_target=rows // 2, shared=False, random_state=1)
small, large = sample(6000), sample(60000)
three = lambda s: (s.positive, s.unlabeled, s.target)
few = [x[:500] for x in three(small)]
folder = Path(tempfile.mkdtemp())
files = []
for name, rows in zip(("p", "u", "t"), three(small)):
    files.append(folder / f"{name}.csv")
    np.savetxt(files[-1], rows, delimiter=",", header=",".join(f"c{k}" for k in range(10)), comments="")
calls = {
    "default, π unknown, 9,000 rows": lambda: ps.estimate_prior(*three(small), random_state=0),
    "default, π given, 9,000 rows, CSV": lambda: ps.estimate_prior(*files, source_prior=0.2, random_state=0),
    "default, π unknown, 90,000 rows": lambda: ps.estimate_prior(*three(large), random_state=0),
    "TCPU, π given, 9,000 rows": lambda: ps.estimate_prior(*three(small), method="tcpu", source_prior=0.2),
    "KM2, 2,000 rows": lambda: ps.KM2(max_rows=2000, random_state=0).fit(small.X, small.y),
    "diagnose, π given, 1,500 rows": lambda: ps.diagnose(*few, source_prior=0.2, random_state=0),
    "streaming, π given, 9,000 rows": lambda: ps.estimate_prior(*files, source_prior=0.2, stream=True, random_state=0),
}
times = {}
for name, call in calls.items():
    call()
    runs = []
    for _ in range(3):
        start = time.process_time(); call(); runs.append(time.process_time() - start)
    times[name] = min(runs)
print(json.dumps(times))
"""


def run(tree: str) -> dict[str, float]:
    """Return the CPU seconds of each call with the package in `tree`."""
    environment = os.environ | {"PYTHONPATH": tree, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    runs = [(run(args.old), run(args.new)) for _ in range(args.repeats)]
    print(f"{'call':38}{'old':>9}{'new':>9}{'new/old':>9}")
    for name in runs[0][0]:
        old, new = (min(pair[k][name] for pair in runs) for k in (0, 1))
        print(f"{name:38}{old:>9.3f}{new:>9.3f}{new / old:>9.2f}")


if __name__ == "__main__":
    main()
