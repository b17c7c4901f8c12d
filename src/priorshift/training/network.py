"""A trained network as plain arrays: predicting needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats

_ROWS = 8192  # evaluated together


@dataclass(frozen=True, eq=False)
class Network:
    """Weights and biases of dense layers with ReLU between them; batch normalisation is folded in."""

    layers: tuple[tuple[Floats, Floats], ...]

    def __call__(self, X: NDArray[Any]) -> Floats:
        """One number for each row."""
        return np.concatenate([self._forward(X[k : k + _ROWS]) for k in range(0, len(X), _ROWS)])

    def _forward(self, X: NDArray[Any]) -> Floats:
        h = np.asarray(X, dtype=np.float64)
        for number, (weight, bias) in enumerate(self.layers):
            h = (np.maximum(h, 0.0) if number else h) @ weight + bias
        return h[:, 0]
