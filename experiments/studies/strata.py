"""Measure the coverage of the interval of a prior that is pooled over strata.

The data are the paper's synthetic populations, with other priors in each stratum; P has 200 and U 800 rows in each. The
target has 1500 rows, whose strata are drawn with their shares, so that the shares are estimated too.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy import stats

import priorshift as ps
from experiments.sampling import gaussian_sample
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.errors import PriorShiftWarning

_SHARES = (0.5, 0.3, 0.2)
_SOURCE_PRIORS, _TARGET_PRIORS = (0.1, 0.3, 0.5), (0.05, 0.4, 0.9)
_TRUTH = float(np.dot(_SHARES, _TARGET_PRIORS))
_REPETITIONS = {"each π": 200, "a survey of each π": 200, "nothing": 60}
_SEED = 2032


def measure(known: str, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    covered, widths, errors, conditional = [], [], [], []
    for seed in range(repetitions):
        rng = np.random.default_rng((_SEED, len(known), seed))
        sizes = rng.multinomial(1500, _SHARES)
        strata = range(len(_SHARES))
        positive = np.concatenate([_stratum(k, 200, 1.0, rng) for k in strata])
        unlabeled = np.concatenate([_stratum(k, 800, _SOURCE_PRIORS[k], rng) for k in strata])
        target = np.concatenate([_stratum(k, sizes[k], _TARGET_PRIORS[k], rng) for k in strata])
        given_prior = {
            "each π": dict(enumerate(_SOURCE_PRIORS)),
            "a survey of each π": {k: _survey(rng.binomial(200, pi), 200) for k, pi in enumerate(_SOURCE_PRIORS)},
            "nothing": None,
        }[known]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PriorShiftWarning)
            estimates = ps.estimate_priors(
                *map(_frame, (positive, unlabeled, target)),
                stratify="stratum",
                source_prior=given_prior,
                random_state=seed,
            )
        interval = estimates.pooled.interval
        covered.append(_TRUTH in interval)
        conditional.append(float(np.dot(sizes, _TARGET_PRIORS)) / 1500 in interval)
        widths.append(interval.width)
        errors.append(abs(estimates.pooled.value - _TRUTH))
    return [
        {
            "coverage": round(float(np.mean(covered)), 6),
            "coverage_given_shares": round(float(np.mean(conditional)), 6),
            "width": round(float(np.mean(widths)), 6),
            "error": round(float(np.mean(errors)), 6),
        }
    ]


def _stratum(number: int, rows: int, prior: float, rng: np.random.Generator) -> np.ndarray:
    return np.column_stack([gaussian_sample(rows, prior, rng), np.full(rows, number)])


def _frame(rows: np.ndarray) -> object:
    import pandas as pd

    return pd.DataFrame(rows, columns=[*(f"x{k}" for k in range(rows.shape[1] - 1)), "stratum"])


def _survey(positives: int, rows: int) -> object:
    return stats.beta(positives + 0.5, rows - positives + 0.5)


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = [
        (
            line["known"],
            f"{line['repetitions']}",
            f"{100 * line['coverage']:.1f}%",
            f"{line['width']:.3f}",
            f"{line['error']:.4f}",
        )
        for line in lines
    ]
    return {
        "strata": markdown_table(("what is known", "draws", "coverage of the pooled π′", "width", "mean error"), rows)
    }


_GRID = tuple({"known": known, "repetitions": repetitions} for known, repetitions in _REPETITIONS.items())
TRIAL = Trial(
    "strata", "A target stratum by stratum: the pooled prior", _GRID, ("known", "repetitions"), measure, texts
)
