"""What does a bandwidth that was chosen by the variance of R gain, and does the interval survive the choice?

π is known and TCPU is the unbiased one. Three kinds of data. The 84 UCI cells of the paper, with the draws of the study
`uci` (drawn: paper); the plug-in and the witness stand beside TCPU there. Halves are thinned to their priors exactly
then, so that errors are smaller than an interval has to allow for. The same sets with every sample drawn at random, no
row twice, of as many rows as that leaves (drawn: random): what intervals promise to cover; and so, but for the count of
positives in U and T, which is exactly what the prior says (drawn: exact), to tell what that does. And the paper's
synthetic populations over all priors, drawn at random, where classes can be so near that there is no estimate. A
quarter as many positives as rows are labelled.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import priorshift as ps
from experiments import draws
from experiments.accuracy import Answer, accuracy, answer
from experiments.columns import markdown
from experiments.draws import gaussian, gaussian_source
from experiments.grids import PRIORS, TARGETS, WIDE, WIDE_TARGETS
from experiments.study import Line, Trial
from priorshift.datasets import OPENML

_RULES = {"": "variance", "_dimension": "dimension"}  # figures of the new rule have plain names
_REPETITIONS = {200: 200, 2000: 25}  # of synthetic data
_UCI_REPETITIONS = {"paper": 20, "random": 40, "exact": 40}
_UCI_ROWS = {"Diabetes": 150, "Spambase": 1000, "Segment": 190, "Waveform": 1000, "Vehicle": 120, "Yeast": 270,
             "Banknote": 360}  # fmt: skip
_SEED = 2031
_HIGH = 0.8  # priors from here on leave P and U hardly apart

Fit = Callable[[Any], Any]


def measure(dataset: str, drawn: str, rows: int, source_prior: float, repetitions: int) -> list[Line]:
    as_paper = drawn == "paper"
    apart = partial(_apart, exact=drawn == "exact")
    draw = _synthetic if dataset == "Synthetic" else _by_paper if as_paper else apart
    answers: dict[tuple[float, str], list[Answer]] = {}
    bandwidths = []
    for seed in range(repetitions):
        fit, targets = draw(dataset, rows, source_prior, seed)
        tcpu = {
            of: fit(ps.TCPU(source_prior, bandwidth=rule, standardize=draw is apart)) for of, rule in _RULES.items()
        }
        bandwidths.append(tcpu[""].kernel_.bandwidth / tcpu["_dimension"].kernel_.bandwidth)
        witness = fit(ps.WitnessShift(source_prior, random_state=seed)) if as_paper else None
        for target, T in targets:
            given = {of: made.estimate(T) for of, made in tcpu.items()}
            if witness:
                for of, made in tcpu.items():
                    given[f"{of}_plug-in"] = made.set_params(statistic="plug-in").estimate(T)
                    made.set_params(statistic="unbiased")
                given["_witness"] = witness.estimate(T)
            for of, estimate in given.items():
                answers.setdefault((target, of), []).append(answer(estimate))
    factor = round(float(np.median(bandwidths)), 4)
    lines: dict[float, Line] = {}
    for (target, of), some in answers.items():
        line = lines.setdefault(target, {"target_prior": target, "times_dimension": factor})
        line |= accuracy(some, target, of)
        if draw is _synthetic:
            line |= _missing(some, [answers[target, rule] for rule in _RULES], target, of)
    return list(lines.values())


def _missing(some: list[Answer], of_rules: list[list[Answer]], truth: float, of: str) -> Line:
    """How often there is no estimate, and the error of those draws of which every rule has one."""
    there = np.isfinite(np.array(of_rules)[:, :, 0]).all(axis=0)
    value = np.array(some)[:, 0]
    error = float(np.abs(value - truth)[there].mean()) if there.any() else None
    return {f"missing{of}": round(float(np.isnan(value).mean()), 6), f"error_both{of}": error and round(error, 6)}


def _by_paper(dataset: str, rows: int, source_prior: float, seed: int) -> tuple[Fit, Iterator[tuple[float, Any]]]:
    drawn = draws.draw(draws.Source(dataset, 0.5, source_prior, rows), seed)
    targets = ((target, drawn.target(target)) for target in TARGETS)
    return lambda estimator: estimator.fit(drawn.X, drawn.y, shared=drawn.ids), targets


def _apart(
    dataset: str, rows: int, source_prior: float, seed: int, *, exact: bool
) -> tuple[Fit, Iterator[tuple[float, Any]]]:
    data = draws.load(dataset)
    rng = np.random.default_rng((_SEED, zlib.crc32(dataset.encode()), round(1000 * source_prior), seed))
    pools = {positive: rng.permutation(np.flatnonzero(data.y == positive)) for positive in (True, False)}

    def some(prior: float) -> Any:
        positives = round(rows * prior) if exact else rng.binomial(rows, prior)
        taken = {True: positives, False: rows - positives}
        return np.concatenate([pools[of][: taken[of]] for of in pools]), {of: pools[of][taken[of] :] for of in pools}

    P, pools[True] = np.split(pools[True], [rows // 4])
    U, pools = some(source_prior)

    def target(prior: float) -> Any:
        for pool in pools.values():
            rng.shuffle(pool)
        return data.X[some(prior)[0]]

    X, y = data.X[np.concatenate([P, U])], np.repeat([1, 0], [len(P), len(U)])
    return lambda estimator: estimator.fit(X, y), ((prior, target(prior)) for prior in TARGETS)


def _synthetic(_: str, rows: int, source_prior: float, seed: int) -> tuple[Fit, Iterator[tuple[float, Any]]]:
    rng = np.random.default_rng((_SEED, rows, round(1000 * source_prior), seed))
    X, y = gaussian_source(rows // 4, rows, source_prior, rng)
    targets = ((target, gaussian(rows, target, rng)) for target in WIDE_TARGETS)
    return lambda estimator: estimator.fit(X, y), targets


def texts(lines: list[Line]) -> dict[str, str]:
    uci = {
        drawn: [x for x in lines if x["dataset"] != "Synthetic" and x["drawn"] == drawn] for drawn in _UCI_REPETITIONS
    }
    parts = {name: [line for line in uci["paper"] if line["dataset"] == name] for name in OPENML}
    parts |= {"UCI, the paper's draws": uci["paper"], "UCI, drawn at random": uci["random"],
              "UCI, at random but for π and π′": uci["exact"]}  # fmt: skip
    for n, high in product(_REPETITIONS, (False, True)):
        some = [x for x in lines if x["dataset"] == "Synthetic" and x["rows"] == n]
        words = f"π from {_HIGH:g} on" if high else f"π below {_HIGH:g}"
        parts[f"synthetic, {n} rows, {words}"] = [x for x in some if (x["source_prior"] >= _HIGH) == high]
    rows = []
    for name, some in parts.items():
        cells = [name, f"{np.median([line['times_dimension'] for line in some]):.2f}"]
        for of in (*_RULES, "_witness"):
            found = [[line[f"{figure}{of}"] for figure in ("error", "coverage", "width")] for line in some
                     if f"error{of}" in line]  # fmt: skip
            error, covered, width = np.mean(found, axis=0) if found else (np.nan,) * 3
            cells.append(f"{error:.4f}, {100 * covered:.1f}%, {width:.3f}" if found else "")
        rows.append(cells)
    header = [f"{words}: mean error, coverage, width" for words in ('"variance"', '"dimension"', "Witness")]
    return {"bandwidth": markdown(("data", 'h, in that of "dimension"', *header), rows)}


_GRID = tuple(
    {"dataset": "Synthetic", "drawn": "random", "rows": n, "source_prior": pi, "target_prior": target,
     "repetitions": _REPETITIONS[n]}
    for n, pi, target in product(_REPETITIONS, WIDE, WIDE_TARGETS)
) + tuple(
    {"dataset": name, "drawn": drawn, "rows": 2000 if drawn == "paper" else _UCI_ROWS[name], "source_prior": pi,
     "target_prior": target, "repetitions": repetitions}
    for (drawn, repetitions), name, pi, target in product(_UCI_REPETITIONS.items(), OPENML, PRIORS, TARGETS)
)  # fmt: skip
_UNIT = ("dataset", "drawn", "rows", "source_prior", "repetitions")
TRIAL = Trial(
    "bandwidth", "TCPU with the bandwidth of least variance, source prior known", _GRID, _UNIT, measure, texts
)
