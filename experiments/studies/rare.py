"""Measure the error with rare positives in many rows: the witness with π known and unknown, and TCPU with π known.

The data are the paper's synthetic populations, P and U disjoint; U and T have the same number of rows, and each fit
serves three targets. TCPU is used up to 10,000 rows, since its sums over pairs would dominate the time above.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import priorshift as ps
from experiments.accuracy import Answer, accuracy, answer
from experiments.sampling import gaussian_sample, gaussian_source
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_PRIORS = (0.01, 0.001)
_POSITIVES = (300, 3000)
_REPETITIONS = {10_000: 20, 100_000: 8}
_MOST_OF_TCPU = 10_000
_SHIFTS = (0.4, 1.0, 3.0)  # π′/π
_METHODS = {"": "Witness, π known", "_unknown": "Witness, π unknown", "_tcpu": "TCPU, π known"}
_SEED = 2029


def _targets(source_prior: float) -> list[float]:
    return [round(shift * source_prior, 6) for shift in _SHIFTS]


def measure(rows: int, positives: int, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    targets = _targets(source_prior)
    answers: dict[tuple[float, str], list[Answer]] = {key: [] for key in product(targets, _METHODS)}
    for seed in range(repetitions):
        rng = np.random.default_rng((_SEED, rows, positives, round(1e6 * source_prior), seed))
        X, y = gaussian_source(positives, rows, source_prior, rng)
        witness = ps.WitnessShift(random_state=seed).fit(X, y)
        tcpu = ps.TCPU(source_prior, standardize=False).fit(X, y) if rows <= _MOST_OF_TCPU else None
        for target in targets:
            T = gaussian_sample(rows, target, rng)
            if tcpu:
                answers[target, "_tcpu"].append(answer(tcpu.estimate(T)))
            for method, prior in (("", source_prior), ("_unknown", None)):
                answers[target, method].append(answer(witness.set_params(source_prior=prior).estimate(T)))
    lines: dict[float, Line] = {target: {"target_prior": target} for target in targets}
    for (target, method), some in answers.items():
        lines[target] |= accuracy(some, target, method) if some else {}
    return list(lines.values())


def texts(lines: list[Line]) -> dict[str, str]:
    """Tabulate means over the three targets; single coverages would rest on too few repetitions."""
    rows = []
    for n, m, pi in product(_REPETITIONS, _POSITIVES, _PRIORS):
        some = [line for line in lines if (line["rows"], line["positives"], line["source_prior"]) == (n, m, pi)]
        cells = [f"{n}", f"{m}", f"{pi:g}"]
        for method in _METHODS:
            found = [[x[f"{name}{method}"] for name in _FIGURES] for x in some if f"error{method}" in x]
            error, width, covered = np.mean(found, axis=0) if found else (np.nan,) * 3
            cells.append(f"{error:.5f}, {width:.5f}, {100 * covered:.0f}%" if found else "")
        rows.append(cells)
    header = [f"{words}: mean error, width, coverage" for words in _METHODS.values()]
    return {"rare": markdown_table(("rows", "positives", "π", *header), rows)}


_FIGURES = ("error", "width", "coverage")
_GRID = tuple(
    {"rows": n, "positives": m, "source_prior": pi, "target_prior": target, "repetitions": _REPETITIONS[n]}
    for n, m, pi in product(_REPETITIONS, _POSITIVES, _PRIORS)
    for target in _targets(pi)
)
_UNIT = ("rows", "positives", "source_prior", "repetitions")
TRIAL = Trial(
    "rare", "Rare positives in many rows", _GRID, _UNIT, measure, texts, small_values={"rows": 1000, "positives": 100}
)
