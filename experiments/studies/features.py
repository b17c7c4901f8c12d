"""Measure what random features cost: the standard error of TCPU's R̂, divided by that of all pairs.

All use the same rows: 2000 in U and in T, 500 in P. The estimate is consistent with any number of features; fewer
features make it less precise.
"""

from __future__ import annotations

import zlib
from itertools import product

import numpy as np

import priorshift as ps
from experiments.sampling import resample_class, resample_mixture
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_ROWS, _POSITIVES = 2000, 500
_FEATURES = (128, 256, 512, 1024, 2048, 4096)
_PRIORS = ((0.01, 0.05), (0.2, 0.6), (0.5, 0.2), (0.8, 0.95), (0.95, 0.5))
_DATA = ("gaussian", "Waveform", "Spambase", "Segment", "Banknote")
_LARGEST_PRIOR = 0.8  # in the table
_SEED = 2032


def measure(data: str, source_prior: float, target_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    found: dict[int, list[tuple[float, float]]] = {D: [] for D in (0, *_FEATURES)}  # 0: all pairs
    for seed in range(repetitions):
        rng = np.random.default_rng((_SEED, zlib.crc32(data.encode()), round(1000 * source_prior), seed))
        P, U, T = (
            resample_class(data, 1, _POSITIVES, rng),
            resample_mixture(data, source_prior, _ROWS, rng),
            resample_mixture(data, target_prior, _ROWS, rng),
        )
        X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
        for D, some in found.items():
            embedding = {"embedding": "random-features", "features": D} if D else {"embedding": "exact"}
            ratio = ps.KernelRatio(**embedding, random_state=seed).fit(X, y).negative_ratio(T)
            some.append((ratio.standard_error, ratio.value - (1 - target_prior) / (1 - source_prior)))
    error, off = np.array([found[D] for D in (0, *_FEATURES)]).transpose(2, 0, 1)
    known = np.isfinite(error).all(axis=0)
    error, off = np.median(error[:, known], axis=1), np.sqrt(np.median(off[:, known] ** 2, axis=1))
    return [
        {
            "features": D,
            "used": int(known.sum()),
            "standard_error": round(float(error[k]), 6),
            "over_exact": round(float(error[k] / error[0]), 4),
            "error_over_exact": round(float(off[k] / off[0]), 4),
        }
        for k, D in enumerate((0, *_FEATURES))
    ]


def texts(lines: list[Line]) -> dict[str, str]:
    """Tabulate the mean and the maximum over priors up to 0.8; above, P and U are so similar that noise dominates."""
    rows = []
    for data in _DATA:
        cells = [data]
        for D in _FEATURES:
            found = [
                x["over_exact"]
                for x in lines
                if (x["data"], x["features"]) == (data, D) and x["source_prior"] <= _LARGEST_PRIOR
            ]
            cells.append(f"{np.mean(found):.3f} ({max(found):.3f})" if found else "")
        rows.append(cells)
    return {"features": markdown_table(("set", *(f"{D} features" for D in _FEATURES)), rows)}


_GRID = tuple(
    {"data": data, "source_prior": pi, "target_prior": target, "features": D, "repetitions": 20}
    for data, (pi, target) in product(_DATA, _PRIORS)
    for D in (0, *_FEATURES)
)
_UNIT = ("data", "source_prior", "target_prior", "repetitions")
TRIAL = Trial("features", "What random features cost", _GRID, _UNIT, measure, texts)
