"""Measure coverage on tables with few distinct rows, whose scores are tied, and how often label shift is rejected.

Tables of one, two or three binary columns, of one ordinal column with six levels, and of an ordinal and a binary one. P
has a quarter of the rows of U and of T; π is known, and label shift holds. The draws are too few to measure the level
of the label-shift test; `few_values_level` has more.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import priorshift as ps
from experiments.diagnosis_tests import LEVEL, RESAMPLES
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.diagnosis.identification import DiagnosisInput
from priorshift.diagnosis.shift_tests import label_shift_test
from priorshift.problem import Source

BINARY = ((0.7, 0.3), (0.6, 0.35), (0.75, 0.5))  # probability of a 1 for positives and negatives, by column
TABLES = ("1 binary", "2 binary", "3 binary", "ordinal", "ordinal and binary")
PRIORS = ((0.3, 0.6), (0.2, 0.5), (0.5, 0.2), (0.1, 0.4))  # of source and target, in turn
_REPETITIONS = {1000: 400, 30_000: 40}


def _draw(table: str, prior: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows of a table."""
    is_positive = rng.random(size) < prior
    ordinal = np.clip(np.round(rng.normal(np.where(is_positive, 3.2, 2.0), 1.0)), 0, 5)
    binary = [rng.random(size) < np.where(is_positive, *probabilities) for probabilities in BINARY]
    if table.endswith(" binary") and table[0].isdigit():
        return np.column_stack(binary[: int(table[0])]).astype(float)
    return np.column_stack([ordinal] if table == "ordinal" else [ordinal, binary[1]]).astype(float)


def draw_samples(table: str, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw the rows of P, U and T."""
    rng, (pi, target) = np.random.default_rng((TABLES.index(table), rows, seed)), PRIORS[seed % len(PRIORS)]
    return _draw(table, 1.0, rows // 4, rng), _draw(table, pi, rows, rng), _draw(table, target, rows, rng)


def measure(table: str, rows: int, repetitions: int) -> list[Line]:
    """Return the line of one unit."""
    covers, errors, widths, rejected = [], [], [], []
    for seed in range(repetitions):
        pi, target = PRIORS[seed % len(PRIORS)]
        P, U, T = draw_samples(table, rows, seed)
        X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
        source = Source.from_labels(X, y, scenario="case-control", standardize=True)
        witness = ps.WitnessShift(pi, random_state=seed).fit_source(source)
        fit = witness.fit_target(witness.read_target(T))
        estimate = fit.estimate
        covers.append(target in estimate.interval)
        errors.append(estimate.value - target)
        widths.append(estimate.interval.width)
        inputs = DiagnosisInput(source, fit, rng=np.random.default_rng(seed))
        rejected.append(label_shift_test(inputs, resamples=RESAMPLES).p_value <= LEVEL)
    figures = {"coverage": covers, "bias": errors, "width": widths, "rejected": rejected}
    return [{name: round(float(np.mean(values)), 4) for name, values in figures.items()}]


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = []
    for table, size in product(TABLES, _REPETITIONS):
        for line in (line for line in lines if (line["table"], line["rows"]) == (table, size)):
            rates = f"{line['coverage']:.1%}", f"{line['bias']:+.4f}", f"{line['width']:.3f}", f"{line['rejected']:.1%}"
            rows.append((table, f"{size:,}", str(line["repetitions"]), *rates))
    header = ("columns", "rows", "draws", "coverage", "bias", "width", "label shift rejected")
    return {"few-values": markdown_table(header, rows)}


_GRID = tuple(
    {"table": table, "rows": rows, "repetitions": repetitions}
    for table, (rows, repetitions) in product(TABLES, _REPETITIONS.items())
)
TRIAL = Trial(
    "few_values",
    "Tables with few distinct rows",
    _GRID,
    ("table", "rows", "repetitions"),
    measure,
    texts,
    quotes=("few-values",),
)
