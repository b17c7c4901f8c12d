"""Compare complete tables with tables in which a fifth of the cells is missing completely at random."""

from __future__ import annotations

from itertools import product

import numpy as np

from experiments.accuracy import Answer, accuracy
from experiments.mixed_tables import MADE, sample
from experiments.studies.mixed import PRIORS, TARGETS, ask
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

SETS = ("Banknote", "Diabetes", "Segment", "Spambase", "Vehicle", "Waveform", "credit_data", "wa_churn", "Titanicp")
SHARES = (0.0, 0.2)
_KNOWN = ("", "_unknown")
_REPETITIONS = 3


def measure(dataset: str, source_prior: float, missing: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    answers: dict[tuple[float, str], list[Answer]] = {key: [] for key in product(TARGETS, _KNOWN)}
    for seed in range(repetitions):
        found = ask(*sample(dataset, source_prior, TARGETS, seed, missing), source_prior, seed)
        for (target, known), one in zip(product(TARGETS, _KNOWN), (a for pair in found for a in pair), strict=True):
            answers[target, known].append(one)
    lines: dict[float, Line] = {target: {"target_prior": target} for target in TARGETS}
    for (target, known), some in answers.items():
        lines[target] |= accuracy(some, target, known)
    return list(lines.values())


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = []
    for name, some in [*((name, (name,)) for name in SETS), ("**all**", SETS)]:
        cells = [name]
        for known, share in product(_KNOWN, SHARES):
            its = [x for x in lines if x["dataset"] in some and x["missing"] == share]
            error, covered = (np.mean([x[f"{figure}{known}"] for x in its]) for figure in ("error", "coverage"))
            cells.append(f"{error:.3f} ({covered:.0%})")
        rows.append(cells)
    header = [f"{share}, {words}" for words in ("π known", "π unknown") for share in ("complete", "a fifth missing")]
    return {"missing": markdown_table(("table", *header), rows)}


_GRID = tuple(
    {"dataset": name, "source_prior": pi, "missing": share, "target_prior": target, "repetitions": _REPETITIONS}
    for name, pi, share, target in product(SETS, PRIORS, SHARES, TARGETS)
)
_UNIT = ("dataset", "source_prior", "missing", "repetitions")
TRIAL = Trial(
    "missing", "A fifth of all cells is missing", _GRID, _UNIT, measure, texts, small_values={"dataset": MADE}
)
