"""Measure the bias and coverage of weighted estimates from samples drawn with known, unequal probabilities.

There are four features, two of which depend on the class. A row of U or T is drawn with a probability that increases or
decreases with the first feature, so that the class shares and the rows of each class differ from the population's.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
from numpy.typing import NDArray

import priorshift as ps
from experiments.accuracy import Answer, accuracy, answer
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_REPETITIONS = 60
_TILTS = {"U": (0.7, 0.0), "T": (0.0, 0.7), "U and T, opposite ways": (0.7, -0.7), "P, U and T": (0.7, 0.7)}
_PRIORS = ((0.1, (0.05, 0.6)), (0.5, (0.2, 0.9)))
_ROWS = {"positive": 500, "unlabeled": 2000, "target": 2000}
_METHODS = {
    "witness": "Witness, π known",
    "unknown": "Witness, π unknown",
    "tcpu": "TCPU, π known",
    "plain": "Witness without weights",
}
_SEED = 2032

Rows = tuple[NDArray[np.float64], NDArray[np.float64]]


def draw(rows: int, share: float, tilt: float, rng: np.random.Generator) -> Rows:
    """Draw rows, and return them with their weights, the inverse probabilities of being drawn."""
    found: list[Rows] = []
    while sum(len(X) for X, _ in found) < rows:
        positive = rng.random(4 * rows) < share
        X = rng.normal(size=(4 * rows, 4))
        X[positive, :2] += 1.2
        probability = 0.08 + 0.92 / (1 + np.exp(-2 * tilt * X[:, 0]))
        drawn = rng.random(4 * rows) < probability
        found.append((X[drawn], 1 / probability[drawn]))
    X, weights = (np.concatenate(part)[:rows] for part in zip(*found, strict=True))
    return X, weights if tilt else np.ones(rows)


def measure(tilted: str, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    targets, (of_U, of_T) = dict(_PRIORS)[source_prior], _TILTS[tilted]
    of_P = 0.7 if tilted.startswith("P") else 0.0
    answers: dict[tuple[float, str], list[Answer]] = {key: [] for key in product(targets, _METHODS)}
    for seed in range(repetitions):
        rng = np.random.default_rng((_SEED, list(_TILTS).index(tilted), round(100 * source_prior), seed))
        P, w_P = draw(_ROWS["positive"], 1.0, of_P, rng)
        U, w_U = draw(_ROWS["unlabeled"], source_prior, of_U, rng)
        X, y, weights = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)]), np.concatenate([w_P, w_U])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)
            witness = ps.WitnessShift(random_state=seed).fit(X, y, weights=weights)
            tcpu = ps.TCPU(source_prior).fit(X, y, weights=weights)
            plain = ps.WitnessShift(source_prior, random_state=seed).fit(X, y)
            for target in targets:
                T, w_T = draw(_ROWS["target"], target, of_T, rng)
                estimates = {
                    "witness": witness.set_params(source_prior=source_prior).estimate(T, weights=w_T),
                    "unknown": witness.set_params(source_prior=None).estimate(T, weights=w_T),
                    "tcpu": tcpu.estimate(T, weights=w_T),
                    "plain": plain.estimate(T),
                }
                for method, estimate in estimates.items():
                    answers[target, method].append(answer(estimate))
    lines: dict[float, Line] = {target: {"target_prior": target} for target in targets}
    for (target, method), some in answers.items():
        lines[target] |= accuracy(some, target, f"_{method}")
    return list(lines.values())


def texts(lines: list[Line]) -> dict[str, str]:
    """Tabulate means over the priors; for the bias, the mean of its absolute value."""
    rows = []
    for tilted in _TILTS:
        some = [line for line in lines if line["tilted"] == tilted]
        cells = [tilted]
        for method in _METHODS:
            bias = np.mean([abs(line[f"bias_{method}"]) for line in some])
            covered = [100 * line[f"coverage_{method}"] for line in some]
            cells.append(f"{bias:.3f}, {np.mean(covered):.1f}% ({min(covered):.0f} to {max(covered):.0f})")
        rows.append(cells)
    header = [f"{words}: bias, coverage" for words in _METHODS.values()]
    return {"weighted": markdown_table(("drawn unequally", *header), rows)}


_GRID = tuple(
    {"tilted": tilted, "source_prior": pi, "target_prior": target, "repetitions": _REPETITIONS}
    for tilted, (pi, targets) in product(_TILTS, _PRIORS)
    for target in targets
)
_UNIT = ("tilted", "source_prior", "repetitions")
TRIAL = Trial("weighted", "Samples drawn with unequal probabilities", _GRID, _UNIT, measure, texts, slow=True)
