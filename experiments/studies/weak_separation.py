"""Measure intervals where positives are hard to distinguish from the population, given that an interval is shown.

60 positives, 1000 unlabelled and 1000 target rows, the source prior known. "Synthetic" is normal in two columns; its
classes are 2/noise standard deviations apart. The real sets get normal noise in every standardised column: 2 or 5
standard deviations. The limit of the separation and those of a plain yes were chosen on populations such as
"Synthetic". One of them, at least 200 positives for a plain yes, was chosen on other draws of "Synthetic" and of
Banknote than those measured here. An interval is shown where the status is not "no estimate"; "yes" is the verdict of
`diagnose`, and is wrong where the interval misses.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np

import priorshift as ps
from experiments import sampling
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table

SETS = ("Synthetic", "Banknote", "Diabetes", "Waveform", "Yeast")
NOISES = (2.0, 5.0)  # standard deviations; of "Synthetic", the classes are 1 and 0.4 apart: 2/noise
PRIORS = (0.1, 0.3, 0.6)
TARGETS = (0.05, 0.3, 0.6, 0.9)
_SIZES = (60, 1000, 1000)
_REPETITIONS = 300


def _samples(dataset: str, noise: float, pi: float, target: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw P, U and T."""
    shares = (1.0, pi, target)
    drawn = []
    data = None if dataset == "Synthetic" else sampling.load_dataset(dataset)
    X = None if data is None else sampling.standardize(data.X, data.X)
    for size, share in zip(_SIZES, shares, strict=True):
        is_positive = rng.random(size) < share
        if data is None or X is None:
            drawn.append(rng.normal(size=(size, 2)) + np.sqrt(2) / noise * is_positive[:, None])
            continue
        positive, negative = np.flatnonzero(data.y), np.flatnonzero(~data.y)
        rows = np.where(is_positive, rng.choice(positive, size), rng.choice(negative, size))
        drawn.append(X[rows] + noise * rng.normal(size=(size, X.shape[1])))
    return drawn


def measure(dataset: str, noise: float, repetitions: int) -> list[Line]:
    """Return the line of one unit."""
    shown, covers, widths, yes, wrong = 0, 0, 0.0, 0, 0
    for seed in range(repetitions):
        rng = np.random.default_rng((SETS.index(dataset), round(10 * noise), seed))
        pi, target = float(rng.choice(PRIORS)), float(rng.choice(TARGETS))
        P, U, T = _samples(dataset, noise, pi, target, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)
            estimate = ps.estimate_prior(P, U, T, source_prior=pi, random_state=seed)
            if estimate.status == "no estimate":
                continue
            holds = target in estimate.interval
            shown, covers, widths = shown + 1, covers + holds, widths + estimate.interval.width
            if ps.diagnose(P, U, T, source_prior=pi, random_state=seed).verdict.answer == "yes":
                yes, wrong = yes + 1, wrong + (not holds)
    width = round(widths / shown, 4) if shown else None
    return [{"shown": shown, "covers": int(covers), "width": width, "yes": yes, "yes_wrong": int(wrong)}]


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows, totals = [], np.zeros(4, dtype=int)
    for line in sorted(lines, key=lambda line: (SETS.index(line["dataset"]), line["noise"])):
        share = f"{line['covers'] / line['shown']:.0%}" if line["shown"] else ""
        width = "" if line["width"] is None else f"{line['width']:.2f}"
        shown = f"{line['shown']} of {line['repetitions']}"
        rows.append(
            (line["dataset"], f"{line['noise']:g}", shown, share, width, f"{line['yes_wrong']} of {line['yes']}")
        )
        if line["dataset"] != "Synthetic":
            totals += [line["shown"], line["covers"], line["yes"], line["yes_wrong"]]
    shown, covers, yes, wrong = totals.tolist()
    verdicts = f"{wrong} of {yes} plain yes are wrong" if yes else "no verdict is a plain yes"
    header = ("set", "noise", "shown", "coverage", "width", "yes, but wrong")
    return {
        "weak-separation": markdown_table(header, rows),
        "weak-separation-covers": f"{covers} of {shown} intervals contain the true value, and {verdicts}",
    }


_GRID = tuple(
    {"dataset": dataset, "noise": noise, "repetitions": _REPETITIONS} for dataset, noise in product(SETS, NOISES)
)
TRIAL = Trial(
    "weak_separation",
    "Positives that are hard to distinguish from the population",
    _GRID,
    ("dataset", "noise", "repetitions"),
    measure,
    texts,
    quotes=("weak-separation", "weak-separation-covers"),
)
