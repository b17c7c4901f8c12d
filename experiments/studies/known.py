"""Compare the precision of the witness with that of TCPU and with the efficiency limit, π known.

The data are the paper's synthetic data with c = 0.5; each fit serves six targets. TCPU uses the unbiased statistic,
with its interval by Fieller's test; the limit is the witness's test with the true density ratio.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import priorshift as ps
from experiments.accuracy import Answer, accuracy, answer
from experiments.efficiency_limit import efficiency_limit
from experiments.grids import PRIORS
from experiments.sampling import gaussian_sample
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_REPETITIONS = {200: 500, 2000: 500}
_ROWS = tuple(_REPETITIONS)
_TARGETS = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)
_METHODS = ("", "_tcpu", "_limit")  # suffixes of the field names; the witness has none
_SEED = 2028


def measure(rows: int, shared_rows: bool, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    answers: dict[tuple[float, str], list[Answer]] = {key: [] for key in product(_TARGETS, _METHODS)}
    for seed in range(repetitions):
        rng = np.random.default_rng((_SEED, rows, shared_rows, round(1000 * source_prior), seed))
        s = ps.simulate.gaussian(source_prior, 0.5, rows, 2, shared=shared_rows, random_state=rng)
        witness = ps.WitnessShift(source_prior, random_state=seed).fit(s.X, s.y, shared=s.ids)
        tcpu = ps.TCPU(source_prior, standardize=False).fit(s.X, s.y, shared=s.ids)
        for target in _TARGETS:
            T = gaussian_sample(rows, target, rng)
            given = (witness.estimate(T), tcpu.estimate(T), efficiency_limit(s.X, s.y, s.ids, T, source_prior))
            for method, estimate in zip(_METHODS, given, strict=True):
                answers[target, method].append(answer(estimate))
    lines: dict[float, Line] = {target: {"target_prior": target} for target in _TARGETS}
    for (target, method), some in answers.items():
        lines[target] |= accuracy(some, target, method)
    return list(lines.values())


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = []
    for n in _ROWS:
        column = {
            name: np.array([line[name] for line in lines if line["rows"] == n])
            for name in ("error", "error_tcpu", "error_limit", "coverage", "width", "width_tcpu")
        }
        error, tcpu, best = (column[f"error{method}"].mean() for method in _METHODS)
        covered = 100 * column["coverage"]
        rows.append((
            f"{n}", f"{error:.4f}", f"{tcpu:.4f}", f"{best:.4f}", f"{100 * (error / best - 1):+.0f}%",
            f"{covered.mean():.1f}%", f"{covered.min():.1f}%", f"{column['width'].mean():.3f}",
            f"{column['width_tcpu'].mean():.3f}",
        ))  # fmt: skip
    header = ("rows", "mean error of Witness", "of TCPU", "of the limit", "Witness above the limit")
    more = ("coverage of Witness", "its lowest cell", "mean width of Witness", "of TCPU")
    return {"known": markdown_table((*header, *more), rows)}


_GRID = tuple(
    {"rows": rows, "shared_rows": shared, "source_prior": pi, "target_prior": target, "repetitions": _REPETITIONS[rows]}
    for rows, shared, pi, target in product(_ROWS, (False, True), PRIORS, _TARGETS)
)
_UNIT = ("rows", "shared_rows", "source_prior", "repetitions")
TRIAL = Trial("known", "The witness, TCPU and the limit, source prior known", _GRID, _UNIT, measure, texts, slow=True)
