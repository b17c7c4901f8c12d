"""Measure how much a diagnosis depends on its seed, with ten values of `random_state` for each table.

There are twelve tables, synthetic and from UCI, most under label shift, some with a mild violation: target positives,
or the first three columns of a UCI table, are moved by `violation` standard deviations. The results are the standard
deviation over the seeds of log10 of each p-value, and of the estimate and its interval's ends in standard errors.

`test` names the label shift test, since the file also has lines of an older one: those with "random features" were
computed by this study with the library at commit f983483.
"""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
from numpy.typing import NDArray

import priorshift as ps
from experiments.sampling import binomial_sample, load_dataset, split_halves
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

_TEST = "landmarks"
_SEEDS = 10
_SYNTHETIC = "Synthetic"
_DRIFTED = 3  # columns
_SEED = 2035
# data, rows, π, π′, violation
_TABLES = (
    (_SYNTHETIC, 200, 0.2, 0.5, 0.0),
    (_SYNTHETIC, 200, 0.5, 0.8, 0.0),
    (_SYNTHETIC, 200, 0.2, 0.5, 0.2),
    (_SYNTHETIC, 500, 0.05, 0.2, 0.0),
    (_SYNTHETIC, 500, 0.5, 0.5, 0.15),
    (_SYNTHETIC, 1000, 0.7, 0.3, 0.0),
    (_SYNTHETIC, 2000, 0.2, 0.6, 0.0),
    (_SYNTHETIC, 2000, 0.2, 0.2, 0.1),
    ("Yeast", 1000, 0.5, 0.5, 0.0),
    ("Spambase", 1000, 0.5, 0.8, 0.0),
    ("Waveform", 1000, 0.5, 0.8, 0.1),
    ("Segment", 1000, 0.5, 0.5, 0.1),
)
_Rows = NDArray[np.float64]


def _drawn(
    dataset: str, rows: int, source_prior: float, target_prior: float, violation: float
) -> tuple[_Rows, _Rows, _Rows]:
    rng = np.random.default_rng((_SEED, rows, round(1000 * source_prior), round(1000 * violation)))
    if dataset == _SYNTHETIC:
        s = ps.simulate.gaussian(
            source_prior, target_prior, rows, rows, violation=violation, shared=False, random_state=rng
        )
        return s.positive, s.unlabeled, s.target
    data = load_dataset(dataset)
    first, second = split_halves(len(data.X), rng)
    P, rest = np.split(first[data.y[first]], [int(data.y[first].sum()) // 3])
    U = binomial_sample(rest, first[~data.y[first]], source_prior, rows, rng)
    T = data.X[binomial_sample(second[data.y[second]], second[~data.y[second]], target_prior, rows, rng)].copy()
    T[:, :_DRIFTED] += violation * data.X[U][:, :_DRIFTED].std(axis=0)
    return data.X[P], data.X[U], T


def measure(
    test: str, dataset: str, rows: int, source_prior: float, target_prior: float, violation: float, seeds: int
) -> list[Line]:
    """Return the lines of one unit."""
    P, U, T = _drawn(dataset, rows, source_prior, target_prior, violation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diagnoses = [ps.diagnose(P, U, T, source_prior=source_prior, random_state=seed) for seed in range(seeds)]
    tests = [one.label_shift_test for one in diagnoses]
    p = {
        "label_shift": [test.p_value for test in tests],
        "kernel": [test.kernel.p_value for test in tests],
        "score": [test.score.p_value for test in tests],
        "shift": [max(one.shift_test.p_value, 1e-12) for one in diagnoses],
    }
    error = float(np.mean([one.estimate.standard_error for one in diagnoses]))
    ends = {
        "value": [one.estimate.value for one in diagnoses],
        "low": [one.estimate.interval.low for one in diagnoses],
        "high": [one.estimate.interval.high for one in diagnoses],
    }
    return [
        {f"{name}_spread": round(float(np.std(np.log10(x), ddof=1)), 4) for name, x in p.items()}
        | {f"{name}_over_error": round(float(np.std(x, ddof=1)) / error, 4) for name, x in ends.items()}
        | {
            "median_p": round(float(np.median(p["label_shift"])), 4),
            "range_p": [round(min(p["label_shift"]), 4), round(max(p["label_shift"]), 4)],
            "verdicts": dict(Counter(one.verdict.answer for one in diagnoses)),
        }
    ]


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""

    def spread(name: str) -> str:
        x = [line[name] for line in lines]
        return f"{np.median(x):.2f} (at most {max(x):.2f})"

    rows = [
        ("log10 p of label shift, by both", spread("label_shift_spread")),
        ("by the rows", spread("kernel_spread")),
        ("by the score", spread("score_spread")),
        ("log10 p of no shift", spread("shift_spread")),
        ("the estimate, in standard errors", spread("value_over_error")),
        ("the lower end of its interval", spread("low_over_error")),
        ("the upper end", spread("high_over_error")),
    ]
    return {"seeds": markdown_table(("what", "standard deviation over ten seeds, median of twelve tables"), rows)}


_NAMES = ("dataset", "rows", "source_prior", "target_prior", "violation")
_GRID = tuple({"test": _TEST} | dict(zip(_NAMES, table, strict=True)) | {"seeds": _SEEDS} for table in _TABLES)
TRIAL = Trial(
    "seeds",
    "How much of a diagnosis depends on its seed",
    _GRID,
    ("test", *_NAMES, "seeds"),
    measure,
    texts,
    small_values={"seeds": 2},
)
