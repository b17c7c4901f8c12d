"""Compare the error and coverage of estimates from sketches and histograms with those from the rows.

TCPU is computed from all pairs and from sketches of 512 random features; the default from rows and from histograms,
whose model is fitted to a few hundred rows of each sample while the rest is only counted. π is known; P and U are
disjoint.
"""

from __future__ import annotations

import zlib
from itertools import product

import numpy as np

import priorshift as ps
from experiments.accuracy import Answer, accuracy, answer
from experiments.sampling import resample_class, resample_mixture
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.sketch import Histogram, ScoreModel, Sketch

_SIZES = {500: 100, 2000: 50}  # rows of U and of T, and repetitions
_PRIORS = (0.05, 0.2, 0.5, 0.8, 0.95)
_TARGETS = (0.1, 0.6, 0.95)
_DATA = ("gaussian", "Waveform")
_METHODS = {"_tcpu": "TCPU", "_sketch": "sketches", "_rows": "Witness", "_histogram": "histograms"}
_SEED = 2033


def measure(data: str, rows: int, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    answers: dict[tuple[float, str], list[Answer]] = {key: [] for key in product(_TARGETS, _METHODS)}
    for seed in range(repetitions):
        rng = np.random.default_rng((_SEED, zlib.crc32(data.encode()), rows, round(1000 * source_prior), seed))
        P, U = resample_class(data, 1, rows // 4, rng), resample_mixture(data, source_prior, rows, rng)
        X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
        fitted = {
            "_tcpu": ps.TCPU(source_prior, embedding="exact").fit(X, y),
            "_rows": ps.WitnessShift(source_prior, random_state=seed).fit(X, y),
        }
        first = Sketch.from_sample(U, features=512, random_state=seed)
        of_P = Sketch.from_sample(P, like=first)
        model = ScoreModel.fit(P, U, fit_rows=rows // 2, use_km2=False, random_state=seed)
        counted = [Histogram.from_sample(sample, model) for sample in (P, U)]
        for target in _TARGETS:
            T = resample_mixture(data, target, rows, rng)
            for method, estimator in fitted.items():
                answers[target, method].append(answer(estimator.estimate(T)))
            sketched = of_P, first, Sketch.from_sample(T, like=first)
            answers[target, "_sketch"].append(answer(ps.estimate_prior(*sketched, source_prior=source_prior)))
            histograms = *counted, Histogram.from_sample(T, model)
            answers[target, "_histogram"].append(answer(ps.estimate_prior(*histograms, source_prior=source_prior)))
    lines: dict[float, Line] = {target: {"target_prior": target} for target in _TARGETS}
    for (target, method), some in answers.items():
        lines[target] |= accuracy(some, target, method)
    return list(lines.values())


def texts(lines: list[Line]) -> dict[str, str]:
    """Tabulate means over data, π and π′."""
    rows = []
    for n in _SIZES:
        some = [line for line in lines if line["rows"] == n]
        cells = [f"{n}"]
        for method in _METHODS:
            error, width, covered = (np.mean([x[f"{name}{method}"] for x in some]) for name in _FIGURES)
            cells.append(f"{error:.4f}, {width:.3f}, {100 * covered:.1f}%")
        rows.append(cells)
    header = [f"{words}: error, width, coverage" for words in _METHODS.values()]
    return {"sketches": markdown_table(("rows", *header), rows)}


_FIGURES = ("error", "width", "coverage")
_GRID = tuple(
    {"data": data, "rows": rows, "source_prior": pi, "target_prior": target, "repetitions": _SIZES[rows]}
    for data, rows, pi in product(_DATA, _SIZES, _PRIORS)
    for target in _TARGETS
)
_UNIT = ("data", "rows", "source_prior", "repetitions")
TRIAL = Trial("sketches", "Answers without rows", _GRID, _UNIT, measure, texts, small_values={"rows": 300})
