"""Measure the two tests of a diagnosis of several classes: level, and power against a class of the target alone.

In each draw the shares of the target are drawn from a uniform Dirichlet distribution, and those of the source are
known. Normal classes have unit variance and means of length 2 in orthogonal directions of ten columns, with a rest; so
the new class is as far from the others as these are from each other. Segment has three labelled classes and a rest of
three others, and Waveform two labelled classes and no rest; on these and on normal classes the test was chosen. Vehicle
has two labelled classes and a rest of one, and CIFAR-10 (features of an image network) three and a rest of six; on
these nothing was chosen. In each table each class is the new one in turn. Rows of tables are drawn with replacement,
with a little noise.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import priorshift as ps
from experiments.study import Line, Trial
from experiments.text_tables import markdown_table
from priorshift.class_source import ClassSource
from priorshift.diagnosis.class_tests import ClassTestInput, class_label_shift_test, new_class_test
from priorshift.errors import InputError

Rows = NDArray[np.float64]
Draw = tuple[Rows, NDArray[np.str_], Rows, dict[str, float] | None]  # X, y, target, source priors (None: no rest)
_DRAWS = {500: (100, 50), 2000: (120, 60)}  # by the number of rows: without and with a new class
_SHARES = (0.0, 0.05, 0.1)  # of the new class
_LEVEL = 0.05
_SEED = 2711
_FILES = {
    "Segment": "Segment.npz", "Waveform": "Waveform-5000.npz", "Vehicle": "Vehicle.npz",
    "CIFAR-10": "CIFAR10_mobilenetv2.npz",
}  # fmt: skip
_OTHERS = {"Segment": 3, "Waveform": 0, "Vehicle": 1, "CIFAR-10": 6}  # classes of the rest
_LABELED_IN_SOURCE = 0.6  # share of the labelled classes in the source, if there is a rest
_JITTER = 0.1  # standard deviation of the noise on resampled rows, in standard deviations of the column


def measure(data: str, classes: int, rows: int, labeled: int, share: float, repetitions: int) -> list[Line]:
    """Return the line of one unit: how often the tests reject, and the lower bound of the new class's share."""
    p_values, bounds = [], []
    for seed in range(repetitions):
        key = (_SEED, zlib.crc32(data.encode()), classes, rows, labeled, round(1000 * share), seed)
        rng = np.random.default_rng(key)
        X, y, target_rows, priors = _draw(data, classes, rows, labeled, share, seed, rng)
        shift = ps.MulticlassShift(priors, rest=priors is not None, random_state=seed)
        source = ClassSource.from_labels(X, y, scenario=shift.scenario, standardize=True, rest=shift.rest)
        target = shift.fit_classes(source).read_target(target_rows)
        inputs = ClassTestInput.build(shift, source, target)
        new, label_shift = new_class_test(inputs), class_label_shift_test(inputs, resamples=499, retest_resamples=0)
        p_values.append((new.p_value, label_shift.p_value))
        bounds.append(new.least_share)
    new_rejected, shift_rejected = (np.array(p_values) <= _LEVEL).mean(axis=0)
    return [{
        "new_class": float(new_rejected),
        "label_shift": float(shift_rejected),
        "bound": round(float(np.median(bounds)), 4),
        "bound_above_share": float(np.mean(np.array(bounds) > share)),
    }]  # fmt: skip


def _draw(data: str, classes: int, rows: int, labeled: int, share: float, seed: int, rng: np.random.Generator) -> Draw:
    """Draw the labelled and unlabelled rows of a source, and a target with a new class of this share."""
    names = [f"class {k}" for k in range(classes)]
    if data == "gaussian":
        draw, others = _gaussian_classes(classes + 2, rng), 1
    else:
        draw, others = _table_classes(data, seed, rng), _OTHERS[data]
    # classes by number: the labelled ones, those of the rest, and last the new one
    known = classes + others
    target_shares = np.append(rng.dirichlet(np.ones(classes + (others > 0))) * (1 - share), share)
    if others:
        rest = np.full(others, target_shares[classes] / others)
        target_shares = np.concatenate([target_shares[:classes], rest, target_shares[-1:]])
    X = [draw(np.full(labeled, k)) for k in range(classes)]
    y = [np.full(labeled, name) for name in names]
    priors = None
    if others:
        shares = np.repeat([_LABELED_IN_SOURCE / classes, (1 - _LABELED_IN_SOURCE) / others], [classes, others])
        X.append(draw(rng.choice(known, size=rows, p=shares)))
        y.append(np.full(rows, ""))
        priors = dict(zip(names, shares[:classes].tolist(), strict=True))
    target = draw(rng.choice(known + 1, size=rows, p=target_shares / target_shares.sum()))
    return np.concatenate(X), np.concatenate(y), target, priors


def _gaussian_classes(count: int, rng: np.random.Generator) -> Callable[[NDArray[np.intp]], Rows]:
    """Return a function that draws rows of normal classes, given by number, whose means have equal distances."""
    means = 2 * np.eye(count, 10)

    def draw(numbers: NDArray[np.intp]) -> Rows:
        return np.asarray(means[numbers] + rng.normal(size=(len(numbers), 10)))

    return draw


def _table_classes(data: str, seed: int, rng: np.random.Generator) -> Callable[[NDArray[np.intp]], Rows]:
    """Return a function that draws rows of a table's classes, given by number; the last one changes with the seed."""
    X, members = _read_table(data)
    order = np.roll(np.arange(len(members)), seed)

    def draw(numbers: NDArray[np.intp]) -> Rows:
        chosen = [members[order[k]][rng.integers(len(members[order[k]]))] for k in numbers]
        return np.asarray(X[chosen] + _JITTER * rng.normal(size=(len(numbers), X.shape[1])))

    return draw


@cache
def _read_table(data: str) -> tuple[Rows, list[NDArray[np.intp]]]:
    """Return the standardised columns of a table in PRIORSHIFT_DATA, and the rows of each class."""
    folder = os.environ.get("PRIORSHIFT_DATA")
    if not folder:
        raise InputError(f"PRIORSHIFT_DATA is not set; set it to the folder of {_FILES[data]}.")
    with np.load(Path(folder) / _FILES[data]) as stored:
        names = ("X", "y_raw") if "X" in stored else ("X_train", "label_train")  # tables, features of images
        X, classes = stored[names[0]].astype(np.float64), stored[names[1]]
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, [np.flatnonzero(classes == name) for name in np.unique(classes)]


def texts(lines: list[Line]) -> dict[str, str]:
    """Return the texts that documents quote."""
    header = ("data", "labelled classes", "labelled rows of each", "source and target rows")
    for test in ("new class", "label shift"):
        header += tuple(f"{test}: share {share:g}" for share in _SHARES)
    groups: dict[tuple[str, int, int, int], dict[float, Line]] = {}
    for line in lines:
        setting = (line["data"], line["classes"], line["labeled"], line["rows"])
        groups.setdefault(setting, {})[line["share"]] = line
    rows = []
    for setting, by_share in sorted(groups.items(), key=lambda group: (group[0][0] != "gaussian", group[0])):
        name = "normal classes" if setting[0] == "gaussian" else setting[0]
        cells = [
            f"{by_share[share][test]:.0%}" if share in by_share else ""
            for test in ("new_class", "label_shift")
            for share in _SHARES
        ]
        rows.append((name, *map(str, setting[1:]), *cells))
    return {"new-class": markdown_table(header, rows)}


_SETTINGS = [
    *(("gaussian", k, rows, 200, share) for k in (2, 3, 5) for rows in (500, 2000) for share in _SHARES),
    *(("gaussian", k, rows, 50, 0.0) for k in (2, 3, 5) for rows in (500, 2000)),
    *(("Segment", 3, rows, 100, share) for rows in (500, 2000) for share in _SHARES),
    *((*table, 2000, 200, share) for table in (("Waveform", 2), ("Vehicle", 2), ("CIFAR-10", 3)) for share in _SHARES),
]
_KEYS = ("data", "classes", "rows", "labeled", "share")
TRIAL = Trial(
    "new_class",
    "Tests of several classes: level, and power against a class that exists only in the target",
    tuple(
        dict(zip(_KEYS, setting, strict=True)) | {"repetitions": _DRAWS[setting[2]][setting[-1] > 0]}
        for setting in sorted(_SETTINGS, key=lambda setting: setting[2])  # the fast ones first
    ),
    (*_KEYS, "repetitions"),
    measure,
    texts,
    quotes=("new-class",),
)
