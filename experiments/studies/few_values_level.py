"""Measure the level of the label-shift test on the tables of `few_values`, in many draws, from counts.

A single binary column is left out: its two distinct rows leave nothing to test.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from experiments.counted_test import counted_p_value
from experiments.diagnosis_tests import LEVEL
from experiments.studies.few_values import TABLES, draw_samples
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_TABLES = TABLES[1:]
_ROWS = (1000, 30_000)
_REPETITIONS = 2000


def measure(table: str, rows: int, repetitions: int) -> list[Line]:
    """Return the line of one unit."""
    p_values = [counted_p_value(draw_samples(table, rows, k), np.random.default_rng(k)) for k in range(repetitions)]
    counts = np.histogram(p_values, np.linspace(0, 1, 11))[0]
    rejected = float(np.mean(np.array(p_values) <= LEVEL))
    return [{"rejected": round(rejected, 4), "histogram": counts.tolist()}]


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rejected = {(line["table"], line["rows"]): f"{line['rejected']:.1%}" for line in lines}
    rows = [(table, *(rejected[table, size] for size in _ROWS)) for table in _TABLES]
    return {"few-values-level": markdown_table(("columns", *(f"{size:,} rows" for size in _ROWS)), rows)}


TRIAL = Trial(
    "few_values_level",
    "Level of the label-shift test with few distinct rows",
    tuple({"table": t, "rows": rows, "repetitions": _REPETITIONS} for t, rows in product(_TABLES, _ROWS)),
    ("table", "rows", "repetitions"),
    measure,
    texts,
    quotes=("few-values-level",),
)
