"""Measure the width and coverage of the default's interval by the number of labelled positives.

U and T have 5000 rows each, and P has separate rows; each fit serves two targets, with π known and with π unknown. The
populations are synthetic, and those of three tables.
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

_ROWS = 5000
_POSITIVES = (20, 50, 100, 300, 1000, 3000)
_TARGETS = {0.05: (0.02, 0.3), 0.2: (0.1, 0.6), 0.5: (0.2, 0.8), 0.9: (0.5, 0.97)}  # π: the two of π′
_DATA = ("gaussian", "Waveform", "Spambase", "Diabetes")
_REPETITIONS = 10
_QUOTED = (20, 100, 1000)  # numbers of positives in the quoted sentence
_SEED = 2033


def measure(data: str, rows: int, positives: int, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    targets = _TARGETS[source_prior]
    answers: dict[tuple[float, bool], list[Answer]] = {key: [] for key in product(targets, (True, False))}
    for seed in range(repetitions):
        rng = np.random.default_rng(
            (_SEED, zlib.crc32(data.encode()), rows, positives, round(1000 * source_prior), seed)
        )
        P, U = resample_class(data, 1, positives, rng), resample_mixture(data, source_prior, rows, rng)
        shift = ps.WitnessShift(random_state=seed).fit(np.concatenate([P, U]), np.repeat([1, 0], [positives, rows]))
        for target in targets:
            T = resample_mixture(data, target, rows, rng)
            for known in (True, False):
                estimate = shift.set_params(source_prior=source_prior if known else None).estimate(T)
                answers[target, known].append(answer(estimate))
    return [{"target_prior": t, "known": known, **accuracy(some, t)} for (t, known), some in answers.items()]


def texts(lines: list[Line]) -> dict[str, str]:
    """Tabulate the mean and the largest width over sets and targets, and the coverage."""
    rows = []
    for known, m in product((True, False), _POSITIVES):
        some = [line for line in lines if (line["known"], line["positives"]) == (known, m)]
        cells = ["known" if known else "unknown", f"{m}"]
        for pi in _TARGETS:
            width = [line["width"] for line in some if line["source_prior"] == pi]
            cells.append(f"{np.mean(width):.3f} ({max(width):.3f})" if width else "")
        rows.append([*cells, f"{100 * np.mean([line['coverage'] for line in some]):.1f}%" if some else ""])
    header = ("π", "labelled positives", *(f"width at π = {pi:g}" for pi in _TARGETS), "coverage")
    return {"positives": markdown_table(header, rows), "positives-widths": _sentence(lines)}


def _sentence(lines: list[Line]) -> str:
    """Return the mean widths at source priors up to 0.5, as a sentence."""

    def widths(known: bool) -> list[str]:
        some = [x for x in lines if x["known"] == known and x["source_prior"] <= 0.5]
        return [f"{np.mean([x['width'] for x in some if x['positives'] == m]):.2f}" for m in _QUOTED]

    (few, some, many), (a, b, c) = widths(True), widths(False)
    return (
        f"{_QUOTED[0]} make an interval {few} wide, {_QUOTED[1]} one of {some}, {_QUOTED[2]} one of {many}; with π "
        f"unknown {a}, {b} and {c}"
    )


_GRID = tuple(
    {
        "data": data, "rows": _ROWS, "positives": m, "source_prior": pi, "repetitions": _REPETITIONS,
        "target_prior": target, "known": known,
    }
    for data, m, pi in product(_DATA, _POSITIVES, _TARGETS)
    for target, known in product(_TARGETS[pi], (True, False))
)  # fmt: skip
_UNIT = ("data", "rows", "positives", "source_prior", "repetitions")
TRIAL = Trial(
    "positives",
    "The default's interval by the number of labelled positives",
    _GRID,
    _UNIT,
    measure,
    texts,
    quotes=("positives", "positives-widths"),
    small_values={"rows": 300},
)
