"""Measure the coverage and width of intervals from private samples, with noise for ε from 3 to 0.3 and δ = 10⁻⁶.

The model of the scores and the design of the sketches come from 3000 public rows, which are not in P, U and T. Either T
is private, and π is known or estimated from P and U, or all three samples are private.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np

import priorshift as ps
from experiments.accuracy import Answer, accuracy, answer
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.errors import PriorShiftWarning
from priorshift.experimental import release
from priorshift.sketch import Histogram, ScoreModel, Sketch

_PRIORS = 0.2, 0.6
_PUBLIC = 3000
_FEATURES = 256
_EPSILONS = (3.0, 1.0, 0.3)
_DELTA = 1e-6
_CASES = (("none", 0.0), *product(("target", "all"), _EPSILONS))
_SEED = 2032


def _summaries(method: str, rows: int, rng: np.random.Generator) -> list[Any]:
    """Draw P, U and T and return their sketches or histograms."""
    public, s = (ps.simulate.gaussian(*_PRIORS, n, n, shared=False, random_state=rng) for n in (_PUBLIC, rows))
    if method == "sketch":
        first = Sketch.from_sample(public.unlabeled, features=_FEATURES)
        return [Sketch.from_sample(sample, like=first) for sample in (s.positive, s.unlabeled, s.target)]
    model = ScoreModel.fit(public.positive, public.unlabeled, max_rows=1000, random_state=rng)
    return [Histogram.from_sample(sample, model) for sample in (s.positive, s.unlabeled, s.target)]


def measure(method: str, rows: int, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    rng = np.random.default_rng((_SEED, rows, len(method)))
    found: dict[tuple[str, float, bool], list[Answer]] = {}
    for _ in range(repetitions):
        plain = _summaries(method, rows, rng)
        for private, epsilon in _CASES:
            P, U, T = (
                release(one, epsilon, _DELTA, rng) if private == "all" or (private, k) == ("target", 2) else one
                for k, one in enumerate(plain)
            )
            for known in (True,) if method == "sketch" else (True, False):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", PriorShiftWarning)
                    estimate = ps.estimate_prior(
                        P, U, T,
                        method="tcpu" if method == "sketch" else "auto",
                        source_prior=_PRIORS[0] if known else None,
                    )  # fmt: skip
                found.setdefault((private, epsilon, known), []).append(answer(estimate))
    return [
        {"known": known, "private": private, "epsilon": epsilon, **accuracy(answers, _PRIORS[1])}
        for (private, epsilon, known), answers in found.items()
    ]


def texts(lines: list[Line]) -> dict[str, str]:
    """Tabulate coverage and width by ε."""
    rows = []
    for method, known, private in (
        *product(("histogram",), (True, False), ("target", "all")),
        ("sketch", True, "target"),
        ("sketch", True, "all"),
    ):
        for size in (2000, 20_000):
            cells = [method, "known" if known else "estimated", private, f"{size:,}"]
            for case in (("none", 0.0), *((private, epsilon) for epsilon in _EPSILONS)):
                (line,) = (
                    x
                    for x in lines
                    if (x["method"], x["rows"], x["known"], x["private"], x["epsilon"]) == (method, size, known, *case)
                )
                cells.append(f"{100 * line['coverage']:.1f}%, {line['width']:.3f}")
            rows.append(cells)
    head = ("summary", "π", "private", "rows", "no noise", *(f"ε = {epsilon:g}" for epsilon in _EPSILONS))
    return {"released": markdown_table(head, rows)}


_GRID = tuple(
    {"method": method, "rows": rows, "repetitions": 200, "known": known, "private": private, "epsilon": epsilon}
    for method, rows in product(("histogram", "sketch"), (2000, 20_000))
    for (private, epsilon), known in product(_CASES, (True,) if method == "sketch" else (True, False))
)
_UNIT = ("method", "rows", "repetitions")
TRIAL = Trial(
    "released", "Intervals from private samples", _GRID, _UNIT, measure, texts, small_values={"rows": 500}, slow=True
)
