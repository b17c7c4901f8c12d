"""Measure the default's error and interval where some labelled rows are not positive, π known.

A share ε of the labelled rows is negative. Known of ε are nothing, ε itself, a range of ε ± 50%, or a check of 50
labelled rows at random (a Beta distribution by Jeffreys' rule). One fit serves all of them and two targets.
"""

from __future__ import annotations

import warnings
import zlib
from itertools import product
from typing import Any

import numpy as np

import priorshift as ps
from experiments.accuracy import Answer, accuracy, answer
from experiments.sampling import resample_class, resample_mixture
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.errors import PriorShiftWarning
from priorshift.inference.prior_knowledge import survey_prior

_ROWS, _CHECKED = 2000, 50  # of U and T, with a quarter as many labelled rows; labelled rows that are checked
_DATA = ("gaussian", "Waveform", "Spambase")
_ERRORS = (0.05, 0.1, 0.3)
_PRIORS, _TARGETS = (0.1, 0.3), (0.1, 0.6)
_KINDS = {"nothing": "nothing", "exact": "ε itself", "range": "a range, ε ± 50%", "audit": "50 checked labelled rows"}
_REPETITIONS = 60
_SEED = 2087


def _knowledge(label_error: float, wrong: int, positives: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return the value of `label_error` for each kind of knowledge; `wrong` of the labelled rows are negative."""
    found = int(rng.hypergeometric(wrong, positives - wrong, _CHECKED))
    return {
        "nothing": None,
        "exact": label_error,
        "range": (0.5 * label_error, 1.5 * label_error),
        "audit": survey_prior(found, _CHECKED),
    }


def measure(
    data: str, rows: int, label_error: float, source_prior: float, repetitions: int, *, is_known: bool = True
) -> list[Line]:
    """Return the lines of one unit; unless `is_known`, the source prior is estimated."""
    answers: dict[tuple[float, str], list[Answer]] = {key: [] for key in product(_TARGETS, _KINDS)}
    positives = rows // 4
    numbers = (_SEED, zlib.crc32(data.encode()), rows, round(1000 * label_error), round(1000 * source_prior))
    for seed in range(repetitions):
        rng = np.random.default_rng((*numbers, seed))
        wrong = int(rng.binomial(positives, label_error))
        right = resample_class(data, 1, positives - wrong, rng)
        P = np.concatenate([right, resample_class(data, 0, wrong, rng)])
        X, y = (
            np.concatenate([P, resample_mixture(data, source_prior, rows, rng)]),
            np.repeat([1, 0], [positives, rows]),
        )
        with warnings.catch_warnings():  # an estimated source prior may be open
            warnings.simplefilter("ignore", PriorShiftWarning)
            shift = ps.WitnessShift(source_prior if is_known else None, random_state=seed).fit(X, y)
        known = _knowledge(label_error, wrong, positives, rng)
        for target in _TARGETS:
            T = resample_mixture(data, target, rows, rng)
            for kind, value in known.items():
                with warnings.catch_warnings():  # without knowledge of ε the raw estimate may be outside [0, 1]
                    warnings.simplefilter("ignore", PriorShiftWarning)
                    answers[target, kind].append(answer(shift.set_params(label_error=value).estimate(T)))
    return [
        {"target_prior": target, "knowledge": kind, **accuracy(some, target)}
        for (target, kind), some in answers.items()
    ]


def texts(lines: list[Line], name: str = "label-errors") -> dict[str, str]:
    """Return the texts that documents quote: mean and largest bias, coverage and width over data sets and priors."""
    rows = []
    for label_error, (kind, words) in product(_ERRORS, _KINDS.items()):
        some = [line for line in lines if (line["label_error"], line["knowledge"]) == (label_error, kind)]
        if not some:
            continue
        bias = np.abs([line["bias"] for line in some])
        coverage, width = (np.mean([line[name] for line in some]) for name in ("coverage", "width"))
        rows.append(
            (f"{label_error:g}", words, f"{bias.mean():.3f}", f"{bias.max():.3f}", f"{coverage:.1%}", f"{width:.3f}")
        )
    header = ("ε", "known of ε", "mean absolute bias", "largest absolute bias", "coverage", "mean width")
    return {name: markdown_table(header, rows)}


def grid(repetitions: int) -> tuple[Line, ...]:
    """Return all lines of the study."""
    return tuple(
        {
            "data": data, "rows": _ROWS, "label_error": label_error, "source_prior": pi, "repetitions": repetitions,
            "target_prior": target, "knowledge": kind,
        }
        for data, label_error, pi, target, kind in product(_DATA, _ERRORS, _PRIORS, _TARGETS, _KINDS)
    )  # fmt: skip


UNIT = ("data", "rows", "label_error", "source_prior", "repetitions")
TRIAL = Trial(
    "label_errors",
    "Labelled rows that are not positive, source prior known",
    grid(_REPETITIONS),
    UNIT,
    measure,
    texts,
    quotes=("label-errors",),
    small_values={"rows": 300},
)
