"""Measure how often the tests of a diagnosis reject a true null hypothesis.

Targets without violation are drawn in every repetition: from the paper's synthetic data, P and U disjoint or from one
pool, and from UCI tables, whose halves are drawn again and whose class counts are random. (With exact class counts, two
samples would be more similar than random ones.) If π′ = π, the test of a shift is included. With so many levels some
exceed their bound by chance. So a unit with such a level is drawn as often again, and all of its `draws` count.
`histogram` counts the p-values of the label shift test in tenths.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import priorshift as ps
from experiments.diagnosis_tests import FittedDiagnosis, p_values, rejection_rates
from experiments.grids import PRIORS
from experiments.sampling import binomial_sample, gaussian_sample, load_dataset, split_halves
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_REPETITIONS = 500
_HIGHEST = 0.05 + 0.029  # level above which a unit is drawn as often again: three standard errors of 500 draws
_SYNTHETIC = "Synthetic"
_TABLES = ("Spambase", "Waveform", "Segment", "Yeast")  # UCI tables with enough rows
_TABLE_ROWS, _TABLE_PRIOR = 1000, 0.5
_WIDER = (0.01, 0.05, 0.8, 0.95)
_SEED = 2032
_PRIORS = {200: (*PRIORS, 0.8, 0.9), 2000: (*PRIORS, 0.9)}
_TESTS = ("shift", "kernel", "score", "label_shift", "columns")


def _targets(dataset: str, rows: int, source_prior: float) -> tuple[float, ...]:
    if dataset != _SYNTHETIC:
        return source_prior, 0.8
    return tuple(dict.fromkeys((source_prior, 0.6) if rows > 200 else (source_prior, 0.5, 0.95)))


def _levels(source_prior: float, target_prior: float, p: list[dict[str, float]]) -> dict[str, float]:
    """Return the share of draws in which each test whose null hypothesis is true rejects."""
    rates = rejection_rates(p)
    return {test: rate for test, rate in rates.items() if test != "shift" or target_prior == source_prior}


def measure(dataset: str, rows: int, shared_rows: bool, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    targets = _targets(dataset, rows, source_prior)
    found: dict[float, list[dict[str, float]]] = {target: [] for target in targets}
    for seed in range(2 * repetitions):
        if seed == repetitions and max(max(_levels(source_prior, x, p).values()) for x, p in found.items()) <= _HIGHEST:
            break
        rng = np.random.default_rng((_SEED, rows, shared_rows, round(1000 * source_prior), seed))
        if dataset == _SYNTHETIC:
            s = ps.simulate.gaussian(source_prior, 0.5, rows, 2, shared=shared_rows, random_state=rng)
            X, y, ids = s.X, s.y, s.ids
        else:
            data = load_dataset(dataset)
            first, second = split_halves(len(data.X), rng)
            P, rest = np.split(first[data.y[first]], [int(data.y[first].sum()) // 3])
            U = binomial_sample(rest, first[~data.y[first]], source_prior, rows, rng)
            ids, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
            X = data.X[ids]
        fitted = FittedDiagnosis.fit(X, y, ids, seed)
        for target in targets:
            if dataset == _SYNTHETIC:
                T = gaussian_sample(rows, target, rng)
            else:
                T = data.X[binomial_sample(second[data.y[second]], second[~data.y[second]], target, rows, rng)]
            found[target].append(p_values(*fitted.tests(T, seed)))
    lines = []
    for target, p in found.items():
        line = {"target_prior": target, "draws": len(p)} | _levels(source_prior, target, p)
        counts = np.histogram([one["label_shift"] for one in p], np.linspace(0, 1, 11))[0]
        lines.append(line | {"histogram": counts.tolist()})
    return lines


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = []
    for words, chosen in (
        ("synthetic, 200 rows", [x for x in lines if x["dataset"] == _SYNTHETIC and x["rows"] == 200]),
        ("synthetic, 2000 rows", [x for x in lines if x["dataset"] == _SYNTHETIC and x["rows"] == 2000]),
        (f"UCI, at most {_TABLE_ROWS} rows", [x for x in lines if x["dataset"] != _SYNTHETIC]),
    ):
        cells = [words]
        for test in _TESTS:
            share = 100 * np.array([line[test] for line in chosen if test in line])
            cells.append(f"{share.mean():.1f}% ({share.min():.1f} to {share.max():.1f})")
        rows.append(cells)
    header = ("data", "is there a shift", "label shift, by the rows", "by the score", "by both", "some column named")
    return {"type_one": markdown_table(header, rows)}


_CELLS = (
    (_SYNTHETIC, 200, False, 0.05),  # ten positives; from one pool there might be fewer than five
    *((_SYNTHETIC, 2000, False, pi) for pi in _WIDER),
    *(
        (_SYNTHETIC, rows, shared, pi)
        for rows, priors in _PRIORS.items()
        for shared, pi in product((False, True), priors)
    ),
    *((name, _TABLE_ROWS, False, _TABLE_PRIOR) for name in _TABLES),
)
_GRID = tuple(
    {
        "dataset": dataset,
        "rows": rows,
        "shared_rows": shared,
        "source_prior": pi,
        "target_prior": target,
        "repetitions": _REPETITIONS,
    }
    for dataset, rows, shared, pi in _CELLS
    for target in _targets(dataset, rows, pi)
)
_UNIT = ("dataset", "rows", "shared_rows", "source_prior", "repetitions")
TRIAL = Trial(
    "type_one", "How often the tests of a diagnosis reject what is true", _GRID, _UNIT, measure, texts, slow=True
)
