"""Measure the default's error and interval with few labelled positives, π known, beside the efficiency limit.

U and T have 5000 rows each, and P has separate rows; each fit serves two targets. The populations are synthetic, for
which the limit is computed, and those of three tables.
"""

from __future__ import annotations

import zlib
from itertools import product

import numpy as np

import priorshift as ps
from experiments.accuracy import Answer, accuracy, answer
from experiments.efficiency_limit import efficiency_limit
from experiments.sampling import resample_class, resample_mixture
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_ROWS = 5000
_POSITIVES = (20, 50, 200)
_TARGETS = {0.01: (0.004, 0.05), 0.1: (0.05, 0.4), 0.5: (0.2, 0.8), 0.9: (0.5, 0.97)}  # π: the two of π′
_DATA = ("gaussian", "Waveform", "Spambase", "Diabetes")
_REPETITIONS = 20
_SEED = 2051


def measure(data: str, rows: int, positives: int, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    targets = _TARGETS[source_prior]
    answers: dict[tuple[float, str], list[Answer]] = {}
    for seed in range(repetitions):
        rng = np.random.default_rng(
            (_SEED, zlib.crc32(data.encode()), rows, positives, round(1000 * source_prior), seed)
        )
        P, U = resample_class(data, 1, positives, rng), resample_mixture(data, source_prior, rows, rng)
        X, y = np.concatenate([P, U]), np.repeat([1, 0], [positives, rows])
        shift = ps.WitnessShift(source_prior, random_state=seed).fit(X, y)
        for target in targets:
            T = resample_mixture(data, target, rows, rng)
            answers.setdefault((target, ""), []).append(answer(shift.estimate(T)))
            if data == "gaussian":
                limit = efficiency_limit(X, y, np.arange(len(X)), T, source_prior)
                answers.setdefault((target, "_limit"), []).append(answer(limit))
    lines: dict[float, Line] = {target: {"target_prior": target} for target in targets}
    for (target, suffix), some in answers.items():
        lines[target] |= accuracy(some, target, suffix)
    return list(lines.values())


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = []
    for m in _POSITIVES:
        some = [line for line in lines if line["positives"] == m]
        bounded = [line for line in some if "error_limit" in line]
        if not bounded:
            continue
        error, limit = (np.mean([line[name] for line in bounded]) for name in ("error", "error_limit"))
        others = [line for line in some if "error_limit" not in line]
        coverage = [f"{np.mean([line['coverage'] for line in group]):.1%}" for group in (bounded, others)]
        width = f"{np.mean([line['width'] for line in some]):.3f}"
        rows.append((f"{m}", f"{error:.4f}", f"{limit:.4f}", f"{error / limit:.2f}", *coverage, width))
    header = ("labelled positives", "mean error, synthetic", "of the limit", "ratio", "coverage, synthetic")
    return {"few-positives": markdown_table((*header, "coverage, three tables", "mean width"), rows)}


_GRID = tuple(
    {
        "data": data, "rows": _ROWS, "positives": m, "source_prior": pi, "repetitions": _REPETITIONS,
        "target_prior": target,
    }
    for data, m, pi in product(_DATA, _POSITIVES, _TARGETS)
    for target in _TARGETS[pi]
)  # fmt: skip
_UNIT = ("data", "rows", "positives", "source_prior", "repetitions")
TRIAL = Trial(
    "few_positives",
    "Few labelled positives, source prior known, beside the limit",
    _GRID,
    _UNIT,
    measure,
    texts,
    quotes=("few-positives",),
    small_values={"rows": 300},
)
