"""Measure the coverage and width of the interval for π′ by what is known of π.

Known are a range with π in its middle, a range with π at its lower end, a survey of 100 rows (a Beta distribution by
Jeffreys' rule), π itself, or nothing. One fit serves all of them. The synthetic data have 500 positives, 1500
unlabelled rows and a target of 1000 rows; the UCI sets are drawn by the disjoint protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

import priorshift as ps
from experiments.accuracy import Answer, accuracy, answer
from experiments.sampling import Source, draw, gaussian_sample, gaussian_source
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_REPETITIONS = {"Synthetic": 100, "Diabetes": 10, "Vehicle": 10}
_PRIORS = (0.1, 0.3, 0.6)
_TARGETS = (0.2, 0.7)
_SURVEYED = 100
_KINDS = {
    "known": "π itself",
    "middle": "a range, π ± 0.05",
    "end": "a range from π to π + 0.1",
    "survey": "a survey of 100 rows",
    "unknown": "nothing",
}
_SEED = 2030


def _knowledge(pi: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return the value of `source_prior` for each kind of knowledge."""
    positives = rng.binomial(_SURVEYED, pi)
    survey = stats.beta(positives + 0.5, _SURVEYED - positives + 0.5)
    return {"known": pi, "middle": (pi - 0.05, pi + 0.05), "end": (pi, pi + 0.1), "survey": survey, "unknown": None}


def _estimates(dataset: str, pi: float, seed: int) -> Iterator[tuple[tuple[float, str], Answer]]:
    rng = np.random.default_rng((_SEED, round(1000 * pi), seed))
    if dataset == "Synthetic":
        (X, y), targets = (
            gaussian_source(500, 1500, pi, rng),
            [gaussian_sample(1000, target, rng) for target in _TARGETS],
        )
    else:
        drawn = draw(Source(dataset, 0.5, pi), seed, "disjoint")
        X, y, targets = drawn.X, drawn.y, [drawn.target(target) for target in _TARGETS]
    shift = ps.WitnessShift(random_state=seed).fit(X, y)
    for (kind, prior), (target, T) in product(_knowledge(pi, rng).items(), zip(_TARGETS, targets, strict=True)):
        yield (target, kind), answer(shift.set_params(source_prior=prior).estimate(T))


def measure(dataset: str, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    answers: dict[tuple[float, str], list[Answer]] = {key: [] for key in product(_TARGETS, _KINDS)}
    for seed in range(repetitions):
        for key, given in _estimates(dataset, source_prior, seed):
            answers[key].append(given)
    return [
        {"target_prior": target, "knowledge": kind, **accuracy(some, target)}
        for (target, kind), some in answers.items()
    ]


def texts(lines: list[Line]) -> dict[str, str]:
    """Tabulate means over priors and targets; the coverage of each UCI set is over 60 draws."""
    rows = []
    for kind, words in _KINDS.items():
        cells = [words]
        for dataset in _REPETITIONS:
            some = [line for line in lines if (line["dataset"], line["knowledge"]) == (dataset, kind)]
            covered, width = (np.mean([line[name] for line in some]) for name in ("coverage", "width"))
            cells.append(f"{100 * covered:.1f}%, {width:.3f}")
        rows.append(cells)
    return {
        "knowledge": markdown_table(("what is known of π", *(f"{d}: coverage, mean width" for d in _REPETITIONS)), rows)
    }


_GRID = tuple(
    {"dataset": d, "source_prior": pi, "target_prior": target, "knowledge": kind, "repetitions": _REPETITIONS[d]}
    for d, pi, target, kind in product(_REPETITIONS, _PRIORS, _TARGETS, _KINDS)
)
_UNIT = ("dataset", "source_prior", "repetitions")
TRIAL = Trial("knowledge", "Intervals by what is known of the source prior", _GRID, _UNIT, measure, texts)
