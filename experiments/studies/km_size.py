"""Compare KM2 on all rows, on groups of similar rows, on a subsample, and the mean over disjoint subsamples.

The data are the paper's synthetic data and two image sets (P and U by its scheme, c = 0.5), with eight priors.
"groups" is what KM2 does above its `max_rows`; "thinned" is KM2 on a subsample, drawn in proportion from both
samples, and "parts" is the mean over disjoint subsamples of that size. All rows are used if a matrix of rows by rows
is affordable.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

import priorshift as ps
from experiments.sampling import class_counts, load_dataset, stack_samples
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_SETS = ("Synthetic", "MNIST", "Fashion")
_PRIORS = (0.01, 0.05, 0.1, 0.2, 0.5, 0.7, 0.9, 0.95)
_SEEDS = {4000: 3, 10_000: 1, 40_000: 1}
_PART = {4000: 1000, 10_000: 4000, 40_000: 10_000}  # rows of a subsample, and `max_rows` of the groups
_AFFORDABLE = 10_000  # rows up to which a matrix of rows by rows is affordable
_WORDS = {"all": "all rows", "groups": "groups", "thinned": "a part of the rows", "parts": "the mean over parts"}

Rows = NDArray[np.float64]
Labels = NDArray[np.intp]


def _draw(dataset: str, rows: int, prior: float, rng: np.random.Generator) -> tuple[Rows, Labels, float]:
    """Draw X and y, and return them with the share of positives in U."""
    if dataset == "Synthetic":
        s = ps.simulate.gaussian(prior, 0.5, rows, 2, random_state=rng)
        return s.X, s.y, float(s.unlabeled_labels.mean())
    data = load_dataset(dataset)
    k, n = class_counts(prior, int(data.y.sum()), int((~data.y).sum()), rows)
    kept = np.concatenate(
        [rng.permutation(np.flatnonzero(members))[:size] for members, size in ((data.y, k), (~data.y, n))]
    )
    some = ps.simulate.label_some(data.X[kept], data.y[kept], prior, 0.5, random_state=rng)
    X, y, _ = stack_samples(some)
    return X, y, float(some.unlabeled_labels.mean())


def _parts(y: Labels, size: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Split the rows into disjoint parts, in proportion from P and U."""
    number = max(1, len(y) // size)
    places = np.empty(len(y), dtype=np.intp)
    for kind in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == kind))
        places[rows] = np.arange(len(rows)) % number
    return [np.flatnonzero(places == k) for k in range(number)]


def measure(dataset: str, rows: int, source_prior: float, seed: int) -> list[Line]:
    """Return the lines of one unit."""
    rng = np.random.default_rng((2031, _SETS.index(dataset), rows, round(1000 * source_prior), seed))
    X, y, truth = _draw(dataset, rows, source_prior, rng)
    size = _PART.get(rows, rows // 4)
    parts = _parts(y, size, rng)

    def on(some: NDArray[np.intp]) -> ps.KM2:
        return ps.KM2(max_rows=rows).fit(X[some], y[some])

    line: Line = {"total": len(y), "positives": int(y.sum()), "truth": round(truth, 5)}
    fits: dict[str, Callable[[], ps.KM2]] = {"groups": lambda: ps.KM2(max_rows=size, random_state=seed).fit(X, y)}
    fits["thinned"] = lambda: on(parts[0])
    if rows <= _AFFORDABLE:
        fits["all"] = lambda: on(np.arange(len(y)))
    for name, fit in fits.items():
        start = time.process_time()
        found = fit()
        line[f"seconds_{name}"] = round(time.process_time() - start, 3)
        line |= {name: round(found.prior_, 5), f"standard_error_{name}": round(found.standard_error_, 5)}
    if rows <= _AFFORDABLE:
        answers = [line["thinned"], *(on(part).prior_ for part in parts[1:])]
        line["parts"] = round(float(np.mean(answers)), 5)
        line["seconds_parts"] = round(line["seconds_thinned"] * len(parts), 3)
    return [line]


def texts(lines: list[Line]) -> dict[str, str]:
    """Tabulate, over sets and priors, the mean error, the difference from KM2 on all rows, and the CPU seconds."""
    rows = []
    for n, (name, words) in product(_SEEDS, _WORDS.items()):
        some = [line for line in lines if line["rows"] == n and name in line]
        if not some:
            continue
        found, truth = np.array([[line[name], line["truth"]] for line in some]).T
        high = np.array([line["source_prior"] >= 0.9 for line in some])
        off = [abs(line[name] - line["all"]) for line in some if "all" in line]
        used = f" ({_PART[n]})" if name in ("thinned", "parts") else ""
        rows.append((
            f"{n}", words + used, f"{np.abs(found - truth)[~high].mean():.3f}", f"{(found - truth)[~high].mean():+.3f}",
            f"{np.abs(found - truth)[high].mean():.3f}", f"{np.median(off):.4f}" if off and name != "all" else "",
            f"{np.median([line[f'seconds_{name}'] for line in some]):.2f}",
        ))  # fmt: skip
    header = ("rows", "KM2 on", "mean error, π ≤ 0.7", "mean bias", "mean error, π ≥ 0.9", "off all rows, median")
    return {"km_size": markdown_table((*header, "seconds, median"), rows)}


_GRID = tuple(
    {"dataset": name, "rows": rows, "source_prior": pi, "seed": seed}
    for rows, name, pi in product(_SEEDS, _SETS, _PRIORS)
    for seed in range(_SEEDS[rows])
)
_UNIT = ("dataset", "rows", "source_prior", "seed")
TRIAL = Trial(
    "km_size", "KM2 on many rows", _GRID, _UNIT, measure, texts, small_values={"rows": 400, "source_prior": 0.2}
)
