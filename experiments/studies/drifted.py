"""Measure how often a diagnosis names the column that drifted, and how often another one.

The data are the paper's synthetic data, π = 0.2 and π′ = 0.5, P and U from one pool, with ten and with forty columns.
One column of the target is moved by `drift` standard deviations of a class.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import priorshift as ps
from experiments.diagnosis_tests import LEVEL, FittedDiagnosis
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_ROWS = (200, 2000)
_COLUMNS = (10, 40)
_DRIFTS = (0.0, 0.25, 0.5)
_REPETITIONS = 200
_AT = 3  # the column that drifts
_SEED = 2034


def measure(rows: int, columns: int, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    found: dict[float, list[tuple[bool, bool, bool, bool]]] = {drift: [] for drift in _DRIFTS}
    for seed in range(repetitions):
        rng = np.random.default_rng((_SEED, rows, columns, seed))
        s = ps.simulate.gaussian(0.2, 0.5, rows, rows, dimension=columns, random_state=rng)
        fitted = FittedDiagnosis.fit(s.X, s.y, s.ids, seed)
        for drift in _DRIFTS:
            T = s.target.copy()
            T[:, _AT] += drift
            _, label = fitted.tests(T, seed)
            first = label.columns[0].name == f"column {_AT}"
            named = [column.name for column in label.columns if column.p_value <= LEVEL]
            others = any(name != f"column {_AT}" for name in named)
            found[drift].append((first, first and bool(named), others, label.p_value <= LEVEL))
    lines = []
    for drift, some in found.items():
        first, named, others, rejects = (round(float(share), 4) for share in np.mean(some, axis=0))
        line = {"drift": drift, "first": first, "named_first": named, "others_named": others, "label_shift": rejects}
        lines.append(line)
    return lines


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = [
        (f"{x['rows']}", f"{x['columns']}", f"{x['drift']:g}", f"{x['first']:.0%}" if x["drift"] else "",
         f"{x['named_first']:.0%}" if x["drift"] else "", f"{x['others_named']:.0%}", f"{x['label_shift']:.0%}")
        for x in lines
    ]  # fmt: skip
    header = ("rows", "columns", "drift", "ranked first", "ranked first and named", "another one named")
    return {"drifted": markdown_table((*header, "label shift rejected"), rows)}


_GRID = tuple(
    {"rows": rows, "columns": columns, "drift": drift, "repetitions": _REPETITIONS}
    for rows, columns, drift in product(_ROWS, _COLUMNS, _DRIFTS)
)
_UNIT = ("rows", "columns", "repetitions")
TRIAL = Trial("drifted", "One column that drifted, among ten and among forty", _GRID, _UNIT, measure, texts, slow=True)
