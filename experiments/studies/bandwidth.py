"""Measure what choosing the bandwidth by the variance of R gains, and whether the interval still covers.

π is known and TCPU uses the unbiased statistic. There are three kinds of data:

- The 84 UCI cells of the paper with the draws of the study `uci` (drawn: paper), with the plug-in statistic and the
  witness for comparison. The class counts are exactly those of the priors, so that errors are smaller than intervals
  allow for.
- The same sets with all samples drawn at random without replacement, of as many rows as that permits (drawn: random),
  which is what intervals are meant to cover; and the same with the exact numbers of positives in U and T (drawn:
  exact), to show the effect of exact counts.
- The paper's synthetic populations over all priors, drawn at random, where P and U can be so similar that there is no
  estimate.

The number of labelled positives is a quarter of the number of rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import priorshift as ps
from experiments import sampling
from experiments.accuracy import Answer, accuracy, answer
from experiments.grids import PRIORS, TARGETS, WIDE, WIDE_TARGETS
from experiments.sampling import gaussian_sample, gaussian_source
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.datasets import OPENML

_RULES = {"": "variance", "_dimension": "dimension"}  # suffix of the field names, and the rule
_REPETITIONS = {200: 200, 2000: 25}  # rows of synthetic data, and repetitions
_UCI_REPETITIONS = {"paper": 20, "random": 40, "exact": 40}
_UCI_ROWS = {"Diabetes": 150, "Spambase": 1000, "Segment": 190, "Waveform": 1000, "Vehicle": 120, "Yeast": 270,
             "Banknote": 360}  # fmt: skip
_SEED = 2031
_HIGH = 0.8  # with source priors from here on, P and U are hardly distinguishable

Fit = Callable[[Any], Any]


def measure(dataset: str, drawn: str, rows: int, source_prior: float, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    as_paper = drawn == "paper"
    disjoint = partial(_draw_disjoint, exact=drawn == "exact")
    draw = _draw_synthetic if dataset == "Synthetic" else _draw_as_paper if as_paper else disjoint
    answers: dict[tuple[float, str], list[Answer]] = {}
    bandwidths = []
    for seed in range(repetitions):
        fit, targets = draw(dataset, rows, source_prior, seed)
        tcpu = {
            suffix: fit(ps.TCPU(source_prior, bandwidth=rule, standardize=draw is disjoint))
            for suffix, rule in _RULES.items()
        }
        bandwidths.append(tcpu[""].kernel_.bandwidth / tcpu["_dimension"].kernel_.bandwidth)
        witness = fit(ps.WitnessShift(source_prior, random_state=seed)) if as_paper else None
        for target, T in targets:
            estimates = {suffix: fitted.estimate(T) for suffix, fitted in tcpu.items()}
            if witness:
                for suffix, fitted in tcpu.items():
                    estimates[f"{suffix}_plug-in"] = fitted.set_params(statistic="plug-in").estimate(T)
                    fitted.set_params(statistic="unbiased")
                estimates["_witness"] = witness.estimate(T)
            for suffix, estimate in estimates.items():
                answers.setdefault((target, suffix), []).append(answer(estimate))
    factor = round(float(np.median(bandwidths)), 4)
    lines: dict[float, Line] = {}
    for (target, suffix), some in answers.items():
        line = lines.setdefault(target, {"target_prior": target, "times_dimension": factor})
        line |= accuracy(some, target, suffix)
        if draw is _draw_synthetic:
            line |= _missing(some, [answers[target, rule] for rule in _RULES], target, suffix)
    return list(lines.values())


def _missing(some: list[Answer], by_rule: list[list[Answer]], truth: float, suffix: str) -> Line:
    """Return how often there is no estimate, and the error over the draws for which every rule has one."""
    finite = np.isfinite(np.array(by_rule)[:, :, 0]).all(axis=0)
    value = np.array(some)[:, 0]
    error = float(np.abs(value - truth)[finite].mean()) if finite.any() else None
    return {
        f"missing{suffix}": round(float(np.isnan(value).mean()), 6),
        f"error_both{suffix}": error and round(error, 6),
    }


def _draw_as_paper(dataset: str, rows: int, source_prior: float, seed: int) -> tuple[Fit, Iterator[tuple[float, Any]]]:
    drawn = sampling.draw(sampling.Source(dataset, 0.5, source_prior, rows), seed)
    targets = ((target, drawn.target(target)) for target in TARGETS)
    return lambda estimator: estimator.fit(drawn.X, drawn.y, shared=drawn.ids), targets


def _draw_disjoint(
    dataset: str, rows: int, source_prior: float, seed: int, *, exact: bool
) -> tuple[Fit, Iterator[tuple[float, Any]]]:
    data = sampling.load_dataset(dataset)
    rng = np.random.default_rng((_SEED, zlib.crc32(dataset.encode()), round(1000 * source_prior), seed))
    pools = {positive: rng.permutation(np.flatnonzero(data.y == positive)) for positive in (True, False)}

    def sample(prior: float) -> Any:
        """Return row numbers with this prior, and the rows of each class that remain."""
        positives = round(rows * prior) if exact else rng.binomial(rows, prior)
        taken = {True: positives, False: rows - positives}
        return np.concatenate([pools[label][: taken[label]] for label in pools]), {
            label: pools[label][taken[label] :] for label in pools
        }

    P, pools[True] = np.split(pools[True], [rows // 4])
    U, pools = sample(source_prior)

    def target(prior: float) -> Any:
        for pool in pools.values():
            rng.shuffle(pool)
        return data.X[sample(prior)[0]]

    X, y = data.X[np.concatenate([P, U])], np.repeat([1, 0], [len(P), len(U)])
    return lambda estimator: estimator.fit(X, y), ((prior, target(prior)) for prior in TARGETS)


def _draw_synthetic(_: str, rows: int, source_prior: float, seed: int) -> tuple[Fit, Iterator[tuple[float, Any]]]:
    rng = np.random.default_rng((_SEED, rows, round(1000 * source_prior), seed))
    X, y = gaussian_source(rows // 4, rows, source_prior, rng)
    targets = ((target, gaussian_sample(rows, target, rng)) for target in WIDE_TARGETS)
    return lambda estimator: estimator.fit(X, y), targets


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
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
    return {"bandwidth": markdown_table(("data", 'h, in that of "dimension"', *header), rows)}


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
