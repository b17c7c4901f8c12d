"""Rows of a class, as many as are asked for: synthetic ones, or those of a real set with a little noise.

Rows of a real set are drawn with replacement, and moved by a tenth of a standard deviation, so that no two are alike.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from priorshift import datasets

Rows = NDArray[np.float64]
_JITTER = 0.1  # standard deviations of the noise


@cache
def _standardized(name: str) -> tuple[Rows, Rows]:
    data = datasets.load_table(name)
    X = data.X[:, data.X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[~data.y], X[data.y]


def rows_of(data: str, label: int, count: int, rng: np.random.Generator) -> Rows:
    """Positives (1) or negatives (0) of "gaussian", the paper's synthetic data, or of a table by its name."""
    if data == "gaussian":
        return rng.normal(size=(count, 10)) + label
    own = _standardized(data)[label]
    return own[rng.integers(len(own), size=count)] + _JITTER * rng.normal(size=(count, own.shape[1]))


def mixed(data: str, prior: float, count: int, rng: np.random.Generator) -> Rows:
    """A sample of a population with that share of positives."""
    labels = rng.random(count) < prior
    return np.where(labels[:, None], rows_of(data, 1, count, rng), rows_of(data, 0, count, rng))
