"""Measure how many rows the score has to be fitted to when there are many more; π is known.

P, U and T have 100,000 rows each; the score is fitted to a subsample of P and U, and all rows are scored. The result is
the standard error of R̂ divided by that of the largest subsample, on the same rows. It needs few repetitions, since both
are estimated from all rows.
"""

from __future__ import annotations

import zlib
from itertools import product

import numpy as np

import priorshift as ps
from experiments.sampling import resample_class, resample_mixture
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_ROWS = 100_000
_FIT_ROWS = (1000, 2000, 5000, 10_000, 20_000, 50_000)
_PRIORS = ((0.01, 0.05), (0.2, 0.6), (0.5, 0.2), (0.9, 0.5), (0.95, 0.99))
_DATA = ("gaussian", "Waveform", "Spambase", "Segment")
_SEED = 2031


def measure(data: str, rows: int, source_prior: float, target_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    errors = np.empty((repetitions, len(_FIT_ROWS)))
    for seed in range(repetitions):
        rng = np.random.default_rng((_SEED, zlib.crc32(data.encode()), round(1000 * source_prior), seed))
        P = resample_class(data, 1, rows, rng)
        U, T = (resample_mixture(data, prior, rows, rng) for prior in (source_prior, target_prior))
        X, y = np.concatenate([P, U]), np.repeat([1, 0], rows)
        for k, fit_rows in enumerate(_FIT_ROWS):
            fitted = ps.WitnessShift(source_prior, fit_rows=fit_rows, random_state=seed).fit(X, y)
            errors[seed, k] = fitted.negative_ratio(T).standard_error
    mean = errors.mean(axis=0)
    return [
        {"fit_rows": some, "standard_error": round(float(e), 7), "over_most": round(float(e / mean[-1]), 4)}
        for some, e in zip(_FIT_ROWS, mean, strict=True)
    ]


def texts(lines: list[Line]) -> dict[str, str]:
    """Tabulate the mean and the maximum over priors, for each data set."""
    rows = []
    for data in _DATA:
        cells = [data]
        for fit_rows in _FIT_ROWS[:-1]:
            found = [x["over_most"] for x in lines if (x["data"], x["fit_rows"]) == (data, fit_rows)]
            cells.append(f"{np.mean(found):.3f} ({max(found):.3f})" if found else "")
        rows.append(cells)
    return {"fit_rows": markdown_table(("set", *(f"{rows:,} rows" for rows in _FIT_ROWS[:-1])), rows)}


_GRID = tuple(
    {"data": data, "rows": _ROWS, "source_prior": pi, "target_prior": target, "fit_rows": fit_rows, "repetitions": 1}
    for data, (pi, target) in product(_DATA, _PRIORS)
    for fit_rows in _FIT_ROWS
)
_UNIT = ("data", "rows", "source_prior", "target_prior", "repetitions")
TRIAL = Trial(
    "fit_rows", "How many rows the score is fitted to", _GRID, _UNIT, measure, texts, small_values={"rows": 800}
)
