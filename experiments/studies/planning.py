"""Compare the interval widths that a pilot predicts with those of samples of other sizes.

A pilot of `rows` rows in each sample predicts the width of the interval at other sizes. As many samples of those
sizes are drawn, and their mean width is compared with the prediction. Synthetic populations have ten normal columns,
in each of which the class means differ by 1 or, overlapping, by ½. Rows of a table are drawn without replacement, so
the samples are smaller.

With π known the rule was chosen on the synthetic lines, and the tables are an independent check. With π unknown all
lines were used to choose it, so there is no independent check.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from experiments.sampling import Rows, load_dataset
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift import MixturePrior
from priorshift.diagnosis.identification import DiagnosisInput
from priorshift.diagnosis.planning import SAMPLES, Planning, planning
from priorshift.errors import PriorShiftWarning
from priorshift.inference.prior_knowledge import DistributionPrior, PointPrior, PriorKnowledge
from priorshift.methods.witness_shift import TargetFit
from priorshift.problem import Source
from priorshift.scores.scored_source import ScoredSource
from priorshift.scores.witness import Witness

_DISTANCE = {"Synthetic": 1.0, "overlapping": 0.5}  # of the class means
_TIMES = ((0.5, 0.5, 0.5), (2.0, 2.0, 2.0), (8.0, 8.0, 8.0), (8.0, 1.0, 1.0), (1.0, 8.0, 1.0), (1.0, 1.0, 8.0))
_TIMES_OF_TABLES = ((0.5, 0.5, 0.5), (2.0, 2.0, 2.0), (4.0, 1.0, 1.0), (1.0, 4.0, 1.0), (1.0, 1.0, 4.0))
_CLOSE = 0.15
_SEED = 2031

Times = tuple[float, float, float]


def _times(dataset: str) -> tuple[Times, ...]:
    return _TIMES if dataset in _DISTANCE else _TIMES_OF_TABLES


def _draw(
    dataset: str, sizes: tuple[int, int, int], priors: tuple[float, float], rng: np.random.Generator
) -> tuple[Rows, Rows, Rows]:
    """Draw P, U and T; U and T have the given priors, up to rounding to whole rows."""
    positives = [sizes[0], round(priors[0] * sizes[1]), round(priors[1] * sizes[2])]
    negatives = [size - k for size, k in zip(sizes, positives, strict=True)]
    if dataset in _DISTANCE:
        samples = [
            np.concatenate([rng.normal(size=(k, 10)) + _DISTANCE[dataset], rng.normal(size=(j, 10))])
            for k, j in zip(positives, negatives, strict=True)
        ]
        return samples[0], samples[1], samples[2]
    data = load_dataset(dataset)
    pools = [iter(rng.permutation(np.flatnonzero(data.y == side))) for side in (True, False)]
    rows = [
        data.X[[next(pool) for pool, count in zip(pools, counts, strict=True) for _ in range(count)]]
        for counts in zip(positives, negatives, strict=True)
    ]
    return rows[0], rows[1], rows[2]


def _plan(samples: tuple[Rows, Rows, Rows], prior: float | None, rng: np.random.Generator) -> Planning:
    """Return the planning of an estimate with this source prior; None estimates π from the rows."""
    P, U, T = samples
    y = np.repeat([1, 0], [len(P), len(U)])
    source = Source.from_labels(np.concatenate([P, U]), y, scenario="case-control", standardize=True)
    target = source.layout.read(T)
    scored = ScoredSource.fit(source, None, repeats=5, folds=5, rng=rng)
    witness = Witness.from_scores(scored, source.without_rows(), *scored.mixture)
    values = scored.target_p_values(target)
    test = witness.test(values, target)
    if prior is None:
        found = MixturePrior(random_state=0).fit_scores(source, scored)
        known: PriorKnowledge = DistributionPrior(found.prior_distribution_)
    else:
        known = PointPrior(prior)
    fit: Any = TargetFit(target, None, test, values, known, witness)  # type: ignore[arg-type]
    return planning(DiagnosisInput(source, fit, prior_from_rows=prior is None))


def measure(
    dataset: str, rows: int, known: bool, source_prior: float, target_prior: float, repetitions: int
) -> list[Line]:
    """Return the lines of one unit."""
    seeds = np.random.SeedSequence((_SEED, rows, known, round(1000 * source_prior), round(1000 * target_prior)))
    rng = np.random.default_rng(seeds)
    prior, priors = source_prior if known else None, (source_prior, target_prior)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorShiftWarning)
        pilots = [_plan(_draw(dataset, (rows, rows, rows), priors, rng), prior, rng) for _ in range(repetitions)]
        lines = []
        for times in _times(dataset):
            m, n, t = (round(k * rows) for k in times)
            predicted = np.array([pilot.predict(positive=m, unlabeled=n, target=t) for pilot in pilots])
            drawn = [_plan(_draw(dataset, (m, n, t), priors, rng), prior, rng).width for _ in range(repetitions)]
            width = float(np.mean(drawn))
            times_of = {f"{name}_times": k for name, k in zip(SAMPLES, times, strict=True)}
            figures = {
                "width": width,
                "width_spread": np.std(drawn),
                "pilot_width": np.mean([pilot.width for pilot in pilots]),
                "predicted": predicted.mean(),
                "predicted_spread": predicted.std(),
                "ratio": predicted.mean() / width,
                "pilots_close": np.mean(np.abs(predicted / width - 1) <= _CLOSE),
            }
            lines.append(times_of | {name: round(float(figure), 6) for name, figure in figures.items()})
    return lines


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    rows = []
    for dataset, known in dict.fromkeys((line["dataset"], line["known"]) for line in lines):
        some = [line for line in lines if (line["dataset"], line["known"]) == (dataset, known)]
        ratio = np.array([line["ratio"] for line in some])
        worst = some[int(np.abs(np.log(ratio)).argmax())]
        close = np.abs(ratio - 1) <= _CLOSE
        pilots = np.mean([line["pilots_close"] for line in some])
        at = f"π = {worst['source_prior']:g}, π′ = {worst['target_prior']:g}, " + " × ".join(
            f"{worst[f'{name}_times']:g}" for name in SAMPLES
        )
        rows.append((
            f"{dataset}, {some[0]['rows']} rows", "known" if known else "unknown", f"{len(some)}",
            f"{ratio.mean():.2f}", f"{int(close.sum())} of {len(some)}", f"{worst['ratio']:.2f} ({at})",
            f"{100 * pilots:.0f}%",
        ))  # fmt: skip
    header = ("pilot", "π", "cells", "mean ratio", "within 15%", "worst ratio", "single pilots within 15%")
    return {"planning": markdown_table(header, rows)}


def _units() -> list[Line]:
    units = []
    for dataset, rows, known, sources, targets, repetitions in (
        ("Synthetic", 500, True, (0.05, 0.3, 0.7, 0.9), (0.1, 0.6), 12),
        ("overlapping", 1000, True, (0.05, 0.3, 0.7), (0.1, 0.6), 12),
        ("Waveform", 300, True, (0.1, 0.3, 0.7), (0.2, 0.6), 12),
        ("Spambase", 300, True, (0.1, 0.3, 0.7), (0.2, 0.6), 12),
        ("Synthetic", 500, False, (0.1, 0.3, 0.7), (0.6,), 6),
        ("overlapping", 1000, False, (0.3, 0.7), (0.6,), 6),
        ("Waveform", 300, False, (0.3,), (0.6,), 6),
    ):
        for pi in sources:
            for target in targets:
                units.append({"dataset": dataset, "rows": rows, "known": known, "source_prior": pi,
                              "target_prior": target, "repetitions": repetitions})  # fmt: skip
    return units


_GRID = tuple(
    unit | {f"{name}_times": k for name, k in zip(SAMPLES, times, strict=True)}
    for unit in _units()
    for times in _times(unit["dataset"])
)
_UNIT = ("dataset", "rows", "known", "source_prior", "target_prior", "repetitions")
TRIAL = Trial(
    "planning",
    "Widths that a pilot predicts, and those at other sizes",
    _GRID,
    _UNIT,
    measure,
    texts,
    small_values={"rows": 60},
)
