"""Measure the coverage of intervals when KM2 estimates the source prior; they allow for its variance, not its bias.

Synthetic data and priors are those of `coverage`; each source serves six targets.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import priorshift as ps
from experiments.studies.coverage import SOURCE_PRIORS, TARGET_PRIORS
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_REPETITIONS = {200: 400, 2000: 100}
_SEED = 2026


def measure(rows: int, shared_rows: bool, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    rng = np.random.default_rng([_SEED, rows, shared_rows, round(1000 * source_prior)])
    priors, errors = [], []
    draws: dict[float, list[tuple[float, ...]]] = {target: [] for target in TARGET_PRIORS}
    for _ in range(repetitions):
        s = ps.simulate.gaussian(source_prior, 0.5, rows, rows, shared=shared_rows, random_state=rng)
        tcpu = ps.TCPU(ps.KM2(standardize=False), standardize=False).fit(s.X, s.y, shared=s.ids)
        priors.append(tcpu.prior_estimator_.prior_)
        for target in TARGET_PRIORS:
            T = ps.simulate.gaussian(source_prior, target, 10, rows, random_state=rng).target
            estimate = tcpu.estimate(T)
            errors.append(estimate.details["source_prior_standard_error"])
            draws[target].append((estimate.raw, estimate.standard_error, target in estimate.interval))
    prior_figures = {
        "source_prior_bias": np.mean(priors) - source_prior,
        "source_prior_sd": np.std(priors, ddof=1),
        "source_prior_standard_error": np.mean(errors),
    }
    lines = []
    for target, values in draws.items():
        raw, error, covered = np.array(values, dtype=float).T
        figures = {**prior_figures, "bias": raw.mean() - target, "sd": raw.std(ddof=1)}
        figures |= {"standard_error": error.mean(), "coverage": covered.mean()}
        lines.append({"target_prior": target, **{name: round(float(v), 4) for name, v in figures.items()}})
    return lines


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = []
    for n, pi in product(_REPETITIONS, SOURCE_PRIORS):
        some = [line for line in lines if (line["rows"], line["source_prior"]) == (n, pi)]
        names = ("source_prior_bias", "source_prior_sd", "source_prior_standard_error")
        bias, sd, error = (np.mean([line[name] for line in some]) for name in names)
        covered = [100 * line["coverage"] for line in some]
        ends = f"{min(covered):.0f}% to {max(covered):.0f}%"
        rows.append((f"{n}", f"{pi}", f"{bias:+.3f}", f"{sd:.3f}", f"{error:.3f}", ends))
    header = ("rows", "π", "bias of KM2's π̂", "its standard deviation", "its standard error")
    return {"coverage_km2": markdown_table((*header, "coverage of π′, lowest to highest"), rows)}


_GRID = tuple(
    {"rows": n, "shared_rows": shared, "source_prior": pi, "target_prior": target, "repetitions": _REPETITIONS[n]}
    for n, shared, pi, target in product(_REPETITIONS, (False, True), SOURCE_PRIORS, TARGET_PRIORS)
)
_UNIT = ("rows", "shared_rows", "source_prior", "repetitions")
TRIAL = Trial("coverage_km2", "Coverage of the intervals, source prior by KM2", _GRID, _UNIT, measure, texts)
