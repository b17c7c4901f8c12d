"""Measure the coverage of the default's intervals for π′ and for π when the source prior is unknown.

The data are the paper's synthetic populations, P and U disjoint, with one positive for every four unlabelled rows; each
fit serves four targets with as many rows as U.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import priorshift as ps
from experiments.accuracy import Answer, accuracy, answer
from experiments.sampling import gaussian_sample, gaussian_source
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_REPETITIONS = {200: 100, 2000: 100, 20_000: 25}
_PRIORS = (0.01, 0.1, 0.5, 0.9)
_TARGETS = (0.05, 0.2, 0.6, 0.95)
_SETTINGS = tuple(
    (n, pi) for n, pi in product(_REPETITIONS, _PRIORS) if n * pi > 2
)  # 2 positives in 200 rows are too few
_SEED = 2027


def measure(rows: int, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    of_prior: list[Answer] = []
    of_target: dict[float, list[Answer]] = {target: [] for target in _TARGETS}
    for seed in range(repetitions):
        rng = np.random.default_rng((_SEED, rows, round(1000 * source_prior), seed))
        shift = ps.WitnessShift(random_state=seed).fit(*gaussian_source(rows // 4, rows, source_prior, rng))
        prior = shift.prior_estimator_
        of_prior.append((prior.prior_, *prior.interval_))
        for target, answers in of_target.items():
            answers.append(answer(shift.estimate(gaussian_sample(rows, target, rng))))
    prior_figures = {f"prior_{name}": value for name, value in accuracy(of_prior, source_prior).items()}
    return [
        {"target_prior": target, **accuracy(answers, target), **prior_figures} for target, answers in of_target.items()
    ]


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = []
    for n, pi in _SETTINGS:
        some = [line for line in lines if (line["rows"], line["source_prior"]) == (n, pi)]
        covered = [100 * line["coverage"] for line in some]
        width, bias = (np.mean([line[name] for line in some]) for name in ("width", "bias"))
        prior = some[0]  # the same fits in every line
        rows.append((
            f"{n}", f"{pi:g}", f"{np.mean(covered):.1f}%", f"{min(covered):.0f}% to {max(covered):.0f}%",
            f"{width:.3f}", f"{bias:+.4f}", f"{100 * prior['prior_coverage']:.0f}%", f"{prior['prior_width']:.3f}",
            f"{prior['prior_bias']:+.4f}",
        ))  # fmt: skip
    header = ("rows", "π", "coverage of π′", "lowest to highest", "its width", "bias of π̂′")
    return {"coverage_unknown": markdown_table((*header, "coverage of π", "its width", "bias of π̂"), rows)}


_GRID = tuple(
    {"rows": n, "source_prior": pi, "target_prior": target, "repetitions": _REPETITIONS[n]}
    for (n, pi), target in product(_SETTINGS, _TARGETS)
)
_UNIT = ("rows", "source_prior", "repetitions")
TRIAL = Trial(
    "coverage_unknown", "Coverage of the default's intervals, source prior unknown", _GRID, _UNIT, measure, texts
)
