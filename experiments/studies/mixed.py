"""Compare the built-in encoder with skrub's, and with the numeric columns alone, on tables with categories and gaps.

The tables are real (`experiments.mixed_tables`), P and U are disjoint, and the witness is fitted with π known and
unknown. "skrub" is its TableVectorizer with medians for missing values; "numbers" are the numeric columns, encoded by
the built-in encoder.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

import priorshift as ps
from experiments.accuracy import Answer, accuracy, answer
from experiments.mixed_tables import CONFIRMED, DEVELOPED, MADE, sample
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.io.column_checks import encode_tables
from priorshift.io.readers import read_table
from priorshift.io.tables import join_tables

PRIORS = (0.1, 0.3, 0.6)
TARGETS = (0.05, 0.2, 0.5, 0.9)
ENCODINGS = ("built-in", "skrub", "numbers")
_KNOWN = ("", "_unknown")
_REPETITIONS = 6


def _encoder(encoding: str) -> Any:
    if encoding != "skrub":
        return "auto"
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from skrub import TableVectorizer

    return make_pipeline(TableVectorizer(), SimpleImputer(strategy="median"))


def ask(P: Any, U: Any, targets: list[Any], source_prior: float, seed: int, encoder: Any = "auto") -> list[Any]:
    """Estimate each target with π known and unknown, as `estimate_prior` does, but encode and fit only once."""
    import pandas as pd

    tables = [read_table(frame, name) for frame, name in ((P, "P"), (U, "U"), (pd.concat(targets), "T"))]
    [positive], unlabeled, [together] = encode_tables(tables[:1], tables[1], tables[2:], [], encoder)
    y = np.repeat([1, 0], [len(positive), len(unlabeled)])
    witness = ps.WitnessShift(random_state=seed).fit(join_tables([positive, unlabeled], "X"), y)
    ends = np.cumsum([len(target) for target in targets])
    answers = []
    for rows in np.split(np.arange(len(together)), ends[:-1]):
        target = replace(together, values=together.values[rows])
        priors = (source_prior, None)
        answers.append([answer(witness.set_params(source_prior=prior).estimate(target)) for prior in priors])
    return answers


def measure(dataset: str, source_prior: float, encoding: str, repetitions: int) -> list[Line]:
    """Return the lines of one unit."""
    answers: dict[tuple[float, str], list[Answer]] = {key: [] for key in product(TARGETS, _KNOWN)}
    for seed in range(repetitions):
        P, U, T = sample(dataset, source_prior, TARGETS, seed)
        if encoding == "numbers":
            P, U, *T = (frame.select_dtypes("number") for frame in (P, U, *T))
        for target, found in zip(TARGETS, ask(P, U, T, source_prior, seed, _encoder(encoding)), strict=True):
            for known, one in zip(_KNOWN, found, strict=True):
                answers[target, known].append(one)
    lines: dict[float, Line] = {target: {"target_prior": target} for target in TARGETS}
    for (target, known), some in answers.items():
        lines[target] |= accuracy(some, target, known)
    return list(lines.values())


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = []
    for label, sets in (("used during development", DEVELOPED), ("held out for confirmation", CONFIRMED)):
        for name, some in [*((name, (name,)) for name in sets), (f"**mean, tables {label}**", sets)]:
            cells = [name]
            for known, encoding in product(_KNOWN, ENCODINGS):
                its = [x for x in lines if x["dataset"] in some and x["encoding"] == encoding]
                error, covered = (np.mean([x[f"{figure}{known}"] for x in its]) for figure in ("error", "coverage"))
                cells.append(f"{error:.3f} ({covered:.0%})")
            rows.append(cells)
    header = [f"{encoding}, {words}" for words in ("π known", "π unknown") for encoding in ENCODINGS]
    return {"mixed": markdown_table(("table", *header), rows)}


_GRID = tuple(
    {"dataset": name, "source_prior": pi, "encoding": encoding, "target_prior": target, "repetitions": _REPETITIONS}
    for name, pi, encoding, target in product((*DEVELOPED, *CONFIRMED), PRIORS, ENCODINGS, TARGETS)
)
_UNIT = ("dataset", "source_prior", "encoding", "repetitions")
TRIAL = Trial("mixed", "Tables with categories and gaps", _GRID, _UNIT, measure, texts, small_values={"dataset": MADE})
