"""Does the interval of the default cover the target prior when the source prior is not known?

The paper's synthetic data and grid, c = 0.5, rows shared between P and U as in the paper; one fit serves four targets.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import priorshift as ps
from experiments.columns import markdown
from experiments.grids import PRIORS, TARGETS
from experiments.study import Line, Trial

_ROWS = (200, 2000)


def _answers(rows: int, pi: float, seed: int) -> list[tuple[float, ...]]:
    """(π̂, its error, π̂′, its error, low, high) for each target."""
    rng = np.random.default_rng((rows, round(1000 * pi), seed))
    s = ps.simulate.gaussian(pi, 0.5, rows, 2, random_state=rng)
    shift = ps.MixtureShift(random_state=seed).fit(s.X, s.y, shared=s.ids)
    prior = shift.prior_estimator_
    answers = []
    for target in TARGETS:
        labels = rng.random(rows) < target
        answer = shift.estimate(rng.normal(size=(rows, 10)) + labels[:, None])
        ends = answer.interval
        answers.append((prior.prior_, prior.standard_error_, answer.raw, answer.standard_error, ends.low, ends.high))
    return answers


def measure(rows: int, source_prior: float, repetitions: int) -> list[Line]:
    answers = np.array([_answers(rows, source_prior, seed) for seed in range(repetitions)])
    lines = []
    for k, target in enumerate(TARGETS):
        prior, prior_error, raw, error, low, high = answers[:, k].T
        figures = {"coverage": np.mean((low <= target) & (target <= high)), "width": np.mean(high - low)}
        figures |= {"bias": np.mean(raw - target), "sd": np.std(raw), "standard_error": np.mean(error)}
        figures |= {"prior_bias": np.mean(prior - source_prior), "prior_sd": np.std(prior)}
        figures["prior_standard_error"] = np.mean(prior_error)
        lines.append({"target_prior": target, **{name: round(float(v), 4) for name, v in figures.items()}})
    return lines


def texts(lines: list[Line]) -> dict[str, str]:
    rows = []
    for n in _ROWS:
        values = 100 * np.array([line["coverage"] for line in lines if line["rows"] == n])
        rows.append((f"{n}", *(f"{value:.1f}%" for value in (values.mean(), values.min(), values.max()))))
    return {"coverage_mixture": markdown(("rows", "mean", "lowest", "highest"), rows)}


_GRID = tuple(
    {"rows": rows, "source_prior": pi, "target_prior": target, "repetitions": 100}
    for rows, pi, target in product(_ROWS, PRIORS, TARGETS)
)
_UNIT = ("rows", "source_prior", "repetitions")
TRIAL = Trial(
    "coverage_mixture", "Coverage of the default's interval, source prior unknown", _GRID, _UNIT, measure, texts
)
