"""Test the default on 200 hard problems: it should return a value, an interval and a correct verdict for each.

The samples are tiny, unseparated, one-dimensional, discrete, duplicated, heavy-tailed, or have constant columns or huge
values; the priors are random. "holds" states whether the interval covers the truth.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import priorshift as ps
from experiments.methods import verdict
from experiments.study import Line, Trial

_VERDICTS = {
    "estimate": "an estimate",
    "few positives": "a guess from few positives",
    "nothing": "nothing",
}
KINDS = (
    "tiny",
    "unseparated",
    "one column",
    "discrete",
    "duplicated",
    "heavy tails",
    "constant columns",
    "huge values",
)


def problem(kind: str, rng: np.random.Generator) -> tuple[Any, ...]:
    """Draw P, U, T and the two priors."""
    pi, target = rng.uniform(0.1, 0.6), rng.uniform(0.05, 0.95)
    small = kind == "tiny"
    m, n, n_target = (int(rng.integers(*(low if small else high))) for low, high in
                      (((2, 12), (15, 80)), ((6, 40), (40, 300)), ((5, 40), (40, 300))))  # fmt: skip
    p = 1 if kind == "one column" else int(rng.integers(2, 8))
    distance = (
        0.0 if kind == "unseparated" and rng.random() < 0.5 else rng.uniform(0.2, 0.5 if kind == "unseparated" else 3)
    )

    def draw(labels: np.ndarray) -> np.ndarray:
        noise = rng.standard_cauchy((len(labels), p)) if kind == "heavy tails" else rng.normal(size=(len(labels), p))
        X = noise + distance * labels[:, None]
        if kind == "discrete":
            X = np.round(X)
        if kind == "constant columns":
            X[:, ::2] = 3.7
        return np.repeat(X[: max(2, len(X) // 3)], 3, axis=0) if kind == "duplicated" else X

    scale = rng.bit_generator.state  # the same scale for all three samples
    samples = []
    for size, prior in ((m, 1.0), (n, pi), (n_target, target)):
        labels = rng.random(size) < prior
        if kind == "huge values":
            after = rng.bit_generator.state
            rng.bit_generator.state = scale
            factor, shift = 10.0 ** rng.integers(-20, 20), 10.0 ** rng.integers(0, 5)
            rng.bit_generator.state = after
            samples.append((rng.normal(size=(size, p)) + distance * labels[:, None] + shift) * factor)
        else:
            samples.append(draw(labels))
    return (*samples, pi, target)


def measure(number: int) -> list[Line]:
    """Return the lines of one unit."""
    kind = KINDS[number % len(KINDS)]
    rng = np.random.default_rng((7, number))
    P, U, T, pi, target = problem(kind, rng)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimate = ps.estimate_prior(P, U, T, random_state=number)
    others = [w for w in caught if not issubclass(w.category, ps.errors.PriorShiftWarning)]
    low, high = estimate.interval.low, estimate.interval.high
    line = {"kind": kind, "positives": len(P), "unlabeled": len(U), "target": len(T)}
    figures = {"source_prior": pi, "target_prior": target, "value": estimate.value, "low": low, "high": high}
    line |= {name: round(float(value), 4) for name, value in figures.items()}
    line |= {"verdict": verdict(estimate), "warnings": len(caught) - len(others), "other_warnings": len(others)}
    return [line | {"holds": bool(low <= target <= high)}]


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    parts = []
    for name, words in _VERDICTS.items():
        holds = [line["holds"] for line in lines if line["verdict"] == name]
        if holds:
            parts.append(f"{np.mean(holds):.1%} of {len(holds)} called {words}")
    return {"hard": "the interval held in " + ", ".join(parts)}


_GRID = tuple({"number": number} for number in range(200))
TRIAL = Trial("hard", "200 hard problems for the default", _GRID, ("number",), measure, texts)
