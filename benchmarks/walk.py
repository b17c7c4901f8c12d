"""Count the distinct functions and files of the package that one call crosses.

    python benchmarks/walk.py [--verbose]

Comprehensions and lambdas are not counted. Each call is made twice, and the second one is counted, so that imports are
not. The samples are three CSV files with 10 columns; the last two rows are a Dask array and a sketch.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import priorshift as ps

ROOT = Path(ps.__file__).parent
NOT_COUNTED = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>")


def walk(call: Callable[[], Any]) -> set[tuple[str, str, int]]:
    """Return the file, the qualified name and the first line of every function that a call crosses."""
    call()
    crossed = set()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)) and not code.co_qualname.endswith(NOT_COUNTED):
            crossed.add((str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname, code.co_firstlineno))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return crossed


def calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the calls by what they show."""
    s = ps.simulate.gaussian(0.2, 0.6, n_source=500, n_target=500, shared=False, random_state=1)
    files = []
    for name, rows in (("positive", s.positive), ("unlabeled", s.unlabeled), ("target", s.target)):
        files.append(folder / f"{name}.csv")
        header = ",".join(f"c{k}" for k in range(rows.shape[1]))
        np.savetxt(files[-1], rows, delimiter=",", header=header, comments="")
    known: dict[str, Any] = {"source_prior": 0.2, "random_state": 0}
    unlabeled = ps.sketch.Sketch.from_sample(s.unlabeled)
    sketches = [ps.sketch.Sketch.from_sample(rows, like=unlabeled) for rows in (s.positive, s.target)]
    made = {
        "estimate_prior, π given": lambda: ps.estimate_prior(*files, **known),
        "estimate_prior, π unknown": lambda: ps.estimate_prior(*files, random_state=0),
        "diagnose, π given": lambda: ps.diagnose(*files, **known),
        "estimate_prior from sketches": lambda: ps.estimate_prior(
            sketches[0], unlabeled, sketches[1], method="tcpu", source_prior=0.2
        ),
    }
    try:
        import dask.array as da
    except ImportError:
        return made
    target = da.from_array(s.target, chunks=(100, s.target.shape[1]))
    return made | {"estimate_prior from a Dask array": lambda: ps.estimate_prior(*files[:2], target, **known)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verbose", action="store_true", help="name the functions of each file")
    verbose = parser.parse_args().verbose
    warnings.simplefilter("ignore")
    print(f"{'call':34}{'functions':>10}{'files':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            crossed = walk(call)
            files = sorted({file for file, _, _ in crossed})
            print(f"{name:34}{len(crossed):>10}{len(files):>7}")
            for file in files if verbose else ():
                print(f"  {file}: {', '.join(sorted(function for of, function, _ in crossed if of == file))}")


if __name__ == "__main__":
    main()
