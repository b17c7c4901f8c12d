"""Measure the joint estimate of several classes: error, intervals and joint region, with source priors known or not.

Beside it are the estimate by mean embeddings, separate binary estimates of each class (whose "all others" change in the
target) and, for normal classes, the estimate with the true densities. Targets have shares that are uniform on the
simplex. No setting was chosen on these sets except where the documents say so.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import priorshift as ps
from experiments.class_samples import ClassDraw, density_ratios, draw
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.inference.affine_mixture import AffineMixture, SampleValues
from priorshift.scores.class_scores import efficient_functions
from priorshift.warning_records import suppress_warnings

_SEED = 2711
_MANY = 100  # draws of the joint estimate alone, where 20 draws leave its coverage open; the first 20 are the same
_REAL = {  # labelled classes, labelled rows of each, and rows of U and T
    "Waveform": (2, 100, 1000), "Segment": (3, 100, 1000), "Vehicle": (2, 100, 1000), "MNIST": (3, 300, 2000),
    "CIFAR": (3, 300, 2000), "Fashion": (4, 300, 2000), "KEEL satimage": (3, 100, 1000),
    "KEEL texture": (5, 100, 1000), "KEEL penbased": (5, 100, 1000), "KEEL vowel": (3, 100, 1000),
}  # fmt: skip


def measure(data: str, classes: int, labeled: int, rows: int, known: bool, repetitions: int) -> list[Line]:
    """Return the line of one unit."""
    found: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray, bool]]] = {}
    for seed in range(repetitions):
        rng = np.random.default_rng((_SEED, zlib.crc32(data.encode()), classes, rows, seed))
        sample = draw(data, classes, labeled, rows, rng)
        methods: dict[str, Callable[[], Any]] = {"": partial(_joint, sample, known, "witness", seed)}
        if known and (data == "gaussian" or repetitions < _MANY):
            methods["_tcpu"] = partial(_joint, sample, known, "tcpu", seed)
            is_normal = data == "gaussian"
            methods["_limit" if is_normal else "_separate"] = partial(_limit if is_normal else _separate, sample, seed)
        for suffix, estimate in methods.items():
            with suppress_warnings(ps.errors.PriorShiftWarning):
                found.setdefault(suffix, []).append(estimate())
    line: Line = {}
    for suffix, answers in found.items():
        deviation, covered, width, in_region = (np.array(part) for part in zip(*answers, strict=True))
        line[f"error{suffix}"] = round(float(np.abs(deviation[:, :classes]).mean()), 6)
        if suffix in ("", "_tcpu"):
            line[f"coverage{suffix}"] = round(float(covered.mean()), 4)
            line[f"lowest_coverage{suffix}"] = round(float(covered.mean(axis=0).min()), 4)
            line[f"region_coverage{suffix}"] = round(float(in_region.mean()), 4)
            line[f"width{suffix}"] = round(float(width.mean()), 5)
    return [line]


def _joint(sample: ClassDraw, known: bool, method: Any, seed: int) -> tuple[Any, ...]:
    """Return deviations, whether intervals cover, their widths, and whether the joint region covers."""
    shift = ps.MulticlassShift(sample.priors if known else None, method=method, random_state=seed)
    estimates = shift.fit(sample.X, sample.y).estimate(sample.target)
    truth = sample.target_shares
    value, low, high = np.array([(e.value, e.interval.low, e.interval.high) for e in estimates.values()]).T
    in_region = estimates.contains(dict(zip(estimates, truth.tolist(), strict=True)))
    return value - truth, (low <= truth) & (truth <= high), high - low, in_region


def _separate(sample: ClassDraw, seed: int) -> tuple[Any, ...]:
    """Return the deviations of a binary estimate of each class."""
    deviations = []
    for (name, rows), share in zip(sample.classes.items(), sample.target_shares, strict=False):
        prior = sample.priors[name]
        found = ps.estimate_prior(rows, sample.unlabeled, sample.target, source_prior=prior, random_state=seed)
        deviations.append(found.value - share)
    return np.array(deviations), np.zeros(1), np.zeros(1), False


def _limit(sample: ClassDraw, seed: int) -> tuple[Any, ...]:
    """Return the deviations of the estimate with the true densities."""
    parts = [*sample.classes.values(), sample.unlabeled, sample.target]
    ratios = [density_ratios(rows, sample.source_shares) for rows in parts]
    sizes, b = np.array([float(len(rows)) for rows in parts]), np.full(len(parts) - 1, 1 / (len(parts) - 1))
    for _ in range(6):
        start, values = 0, []
        for w in ratios:
            h = efficient_functions(w, b, sizes)
            values.append(SampleValues(h, np.full(len(w), 1 / len(w)), start + np.arange(len(w)), float(len(w))))
            start += len(w)
        b = AffineMixture.from_values(values[:-1], values[-1]).coefficients
    shares = np.append(b[:-1] + b[-1] * sample.source_shares[:-1], b[-1] * sample.source_shares[-1])
    return shares - sample.target_shares, np.zeros(1), np.zeros(1), False


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the tables that documents quote."""
    real, normal, unknown, many = [], [], [], []
    for line in lines:
        coverage = f"{line['coverage']:.1%}", f"{line['region_coverage']:.1%}"
        start = (line["data"], f"{line['classes']}", f"{line['labeled']}, {line['rows']}")
        if line["data"] != "gaussian" and line["repetitions"] == _MANY:
            known = "known" if line["known"] else "unknown"
            many.append((*start, known, f"{line['error']:.4f}", *coverage, f"{line['lowest_coverage']:.1%}"))
        elif not line["known"]:
            unknown.append((*start, f"{line['error']:.4f}", *coverage, f"{line['width']:.3f}"))
        elif line["data"] == "gaussian":
            ratio = f"{line['error'] / line['error_limit']:.2f}"
            lowest = f"{line['lowest_coverage']:.1%}"
            normal.append((*start[1:], f"{line['error']:.4f}", ratio, coverage[0], lowest, coverage[1]))
        else:
            errors = (f"{line['error' + suffix]:.4f}" for suffix in ("", "_tcpu", "_separate"))
            real.append((*start, *errors, f"{line['error'] / line['error_tcpu']:.2f}", *coverage))
    sizes = "labelled rows of each, rows of U and T"
    return {
        "classes-real": markdown_table(
            ("data", "classes", sizes, "joint", "TCPU", "separate", "joint over TCPU", "coverage", "of the region"),
            real,
        ),
        "classes-normal": markdown_table(
            ("classes", sizes, "error", "over the limit", "coverage", "of the lowest class", "of the region"), normal
        ),
        "classes-unknown": markdown_table(
            ("data", "classes", sizes, "error", "coverage", "of the region", "mean width"), unknown
        ),
        "classes-coverage": markdown_table(
            ("data", "classes", sizes, "source priors", "error", "coverage", "of the region", "of the lowest class"),
            many,
        ),
    }


def _line(data: str, classes: int, labeled: int, rows: int, known: bool, repetitions: int) -> Line:
    return {
        "data": data, "classes": classes, "labeled": labeled, "rows": rows, "known": known, "repetitions": repetitions
    }  # fmt: skip


_GRID = (
    *(_line("gaussian", k, rows // 4, rows, True, 200) for k in (2, 3, 5) for rows in (500, 2000)),
    *(_line(data, *sizes, True, 20) for data, sizes in _REAL.items()),
    *(_line("gaussian", k, 500, 2000, False, 60) for k in (2, 3)),
    *(_line(data, *_REAL[data], False, 20) for data in ("Waveform", "Segment", "MNIST", "KEEL satimage")),
    *(_line("MNIST", *_REAL["MNIST"], known, _MANY) for known in (True, False)),
)
TRIAL = Trial(
    "classes",
    "Several labelled classes and a rest",
    _GRID,
    ("data", "classes", "labeled", "rows", "known", "repetitions"),
    measure,
    texts,
    quotes=("classes-real", "classes-normal", "classes-unknown", "classes-coverage"),
    small_values={"rows": 200, "labeled": 50},
)
