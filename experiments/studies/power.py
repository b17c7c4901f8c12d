"""Measure the power of the tests of a diagnosis against a change of the prior and against positives that moved.

The data are the paper's synthetic data, P and U from one pool; target positives come from N(a + g, I), the paper's
violation of label shift.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import priorshift as ps
from experiments.diagnosis_tests import FittedDiagnosis, p_values, rejection_rates
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_ROWS = (200, 2000)
_SOURCE_PRIORS = (0.2, 0.5)
_VIOLATIONS = (0.1, 0.2, 0.3, 0.5, 0.7)
_MOVED = (0.01, 0.02, 0.05, 0.1, 0.2)  # changes of the prior, without violation
_TARGETS = (0.2, 0.5, 0.8)  # with violation
_REPETITIONS = 100
_SEED = 2033


def _cases(source_prior: float) -> tuple[tuple[float, float], ...]:
    """Return the pairs of π′ and g."""
    moved = ((round(source_prior + step, 2), 0.0) for step in _MOVED)
    return (*moved, *product(_TARGETS, _VIOLATIONS))


def measure(rows: int, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    found: dict[tuple[float, float], list[dict[str, float]]] = {case: [] for case in _cases(source_prior)}
    for seed in range(repetitions):
        rng = np.random.default_rng((_SEED, rows, round(1000 * source_prior), seed))
        s = ps.simulate.gaussian(source_prior, 0.5, rows, 2, random_state=rng)
        fitted = FittedDiagnosis.fit(s.X, s.y, s.ids, seed)
        for prior, violation in found:
            labels = rng.random(rows) < prior
            T = rng.normal(size=(rows, 10)) + (1 + violation) * labels[:, None]
            found[prior, violation].append(p_values(*fitted.tests(T, seed)))
    return [{"target_prior": prior, "violation": g} | rejection_rates(p) for (prior, g), p in found.items()]


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    by_g, by_step = [], []
    for n, pi in product(_ROWS, _SOURCE_PRIORS):
        its = [x for x in lines if (x["rows"], x["source_prior"]) == (n, pi)]
        shifts = {x["target_prior"]: x for x in its if x["violation"] == 0}
        by_step.append((f"{n}", f"{pi:g}", *(f"{shifts[round(pi + step, 2)]['shift']:.0%}" for step in _MOVED)))
        for target in _TARGETS:
            at = {x["violation"]: x for x in its if x["target_prior"] == target and x["violation"] > 0}
            by_g.append((f"{n}", f"{pi:g}", f"{target:g}", *(f"{at[g]['label_shift']:.0%}" for g in _VIOLATIONS)))
    return {
        "power_shift": markdown_table(("rows", "π", *(f"π′ = π + {step:g}" for step in _MOVED)), by_step),
        "power_label_shift": markdown_table(("rows", "π", "π′", *(f"g = {g:g}" for g in _VIOLATIONS)), by_g),
    }


_GRID = tuple(
    {"rows": rows, "source_prior": pi, "target_prior": prior, "violation": g, "repetitions": _REPETITIONS}
    for rows, pi in product(_ROWS, _SOURCE_PRIORS)
    for prior, g in _cases(pi)
)
TRIAL = Trial(
    "power",
    "What the tests of a diagnosis see",
    _GRID,
    ("rows", "source_prior", "repetitions"),
    measure,
    texts,
    quotes=("power_shift", "power_label_shift"),
    slow=True,
)
