"""Measure the coverage of intervals when rows come in groups (such as patients), with and without `groups`.

There are four features; x = class mean + √ρ·(group effect) + √(1−ρ)·noise, so that two rows of a group have correlation
ρ. All rows of a group have the same class ("patient"), or each row has its own ("row").
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

_REPETITIONS = 30
_SIZES = (5, 12)
_CORRELATIONS = (0.5, 0.9)
_CLASSES = ("patient", "row")
_PRIORS = ((0.3, (0.05, 0.6)), (0.7, (0.2, 0.9)))
_ROWS = {"positive": 480, "unlabeled": 1500, "target": 1500}
_METHODS = {
    "witness": "Witness, π known",
    "unknown": "Witness, π unknown",
    "tcpu": "TCPU, π known",
    "bootstrap": "TCPU, bootstrap",
    "ignored": "Witness, groups ignored",
    "tcpu_ignored": "TCPU, groups ignored",
}
_SEED = 2031

Rows = tuple[NDArray[np.float64], NDArray[np.intp]]


def draw(rows: int, share: float, size: int, correlation: float, classes: str, rng: np.random.Generator) -> Rows:
    """Draw rows, and the group of each."""
    groups = np.repeat(np.arange(-(-rows // size)), size)[:rows]
    count = groups[-1] + 1
    positive = (rng.random(count) < share)[groups] if classes == "patient" else rng.random(rows) < share
    effect, noise = rng.normal(size=(count, 4)), rng.normal(size=(rows, 4))
    X = np.sqrt(correlation) * effect[groups] + np.sqrt(1 - correlation) * noise
    X[positive, :2] += 1.2
    return X, groups


def measure(size: int, correlation: float, classes: str, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    targets = dict(_PRIORS)[source_prior]
    answers: dict[tuple[float, str], list[Answer]] = {key: [] for key in product(targets, _METHODS)}
    for seed in range(repetitions):
        key = (_SEED, size, round(100 * correlation), _CLASSES.index(classes), round(100 * source_prior), seed)
        rng = np.random.default_rng(key)
        P, of_P = draw(_ROWS["positive"], 1.0, size, correlation, classes, rng)
        U, of_U = draw(_ROWS["unlabeled"], source_prior, size, correlation, classes, rng)
        X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
        groups = np.concatenate([of_P, of_U + 10**6])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)
            fitted = {
                "witness": ps.WitnessShift(random_state=seed).fit(X, y, groups=groups),
                "tcpu": ps.TCPU(source_prior, random_state=seed).fit(X, y, groups=groups),
                "ignored": ps.WitnessShift(source_prior, random_state=seed).fit(X, y),
                "tcpu_ignored": ps.TCPU(source_prior).fit(X, y),
            }
            for target in targets:
                T, of_T = draw(_ROWS["target"], target, size, correlation, classes, rng)
                metadata = {"groups": of_T + 2 * 10**6}
                witness, tcpu = fitted["witness"], fitted["tcpu"]
                estimates = {
                    "witness": witness.set_params(source_prior=source_prior).estimate(T, **metadata),
                    "unknown": witness.set_params(source_prior=None).estimate(T, **metadata),
                    "tcpu": tcpu.set_params(interval="delta").estimate(T, **metadata),
                    "bootstrap": tcpu.set_params(interval="bootstrap", n_bootstrap=100).estimate(T, **metadata),
                    "ignored": fitted["ignored"].estimate(T),
                    "tcpu_ignored": fitted["tcpu_ignored"].estimate(T),
                }
                for method, estimate in estimates.items():
                    answers[target, method].append(answer(estimate))
    lines: dict[float, Line] = {target: {"target_prior": target} for target in targets}
    for (target, method), some in answers.items():
        lines[target] |= accuracy(some, target, f"_{method}")
    return list(lines.values())


def texts(lines: list[Line]) -> dict[str, str]:
    """Tabulate means over priors and over both kinds of classes."""
    rows = []
    for size, correlation in product(_SIZES, _CORRELATIONS):
        some = [line for line in lines if (line["size"], line["correlation"]) == (size, correlation)]
        cells = [f"{size}", f"{correlation:g}"]
        for method in _METHODS:
            covered = [100 * line[f"coverage_{method}"] for line in some]
            width = np.mean([line[f"width_{method}"] for line in some])
            cells.append(f"{np.mean(covered):.1f}% ({min(covered):.0f} to {max(covered):.0f}), {width:.3f}")
        rows.append(cells)
    header = [f"{words}: coverage, width" for words in _METHODS.values()]
    return {"clusters": markdown_table(("rows per group", "ρ", *header), rows)}


_GRID = tuple(
    {"size": size, "correlation": correlation, "classes": classes, "source_prior": pi, "target_prior": target,
     "repetitions": _REPETITIONS}
    for size, correlation, classes, (pi, targets) in product(_SIZES, _CORRELATIONS, _CLASSES, _PRIORS)
    for target in targets
)  # fmt: skip
_UNIT = ("size", "correlation", "classes", "source_prior", "repetitions")
TRIAL = Trial("clusters", "Intervals where rows come in groups", _GRID, _UNIT, measure, texts)
