"""Sample weights, and the effective sample size of weighted, repeated and grouped rows.

With weights a mean is Σ w x/Σ w, and the effective sample size is (Σ w)²/Σ w² (Kish 1965). Copies of a row count as one
row. Rows of one group each count, but they are one observation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.errors import InputError
from priorshift.io.parameters import check_per_row

_WIDEST = 1e9  # ratio of the largest to the smallest weight
_EXTREME = 1e70  # sums of squares of weights above it, or below its inverse, may overflow
_LEAST_SIZE = 2.0  # smallest effective sample size


def read_weights(values: Any, rows: int, name: str = "weights") -> Floats:
    """Read the weights of a sample: a positive number for each row."""
    weights = weights_of_part(values, rows, name)
    check_weights(weights, name)
    return weights


def check_weights(weights: Floats, name: str) -> None:
    """Refuse weights of which a few outweigh all others."""
    if weights.max() > _WIDEST * weights.min():
        raise InputError(
            f"{name} range from {weights.min():.3g} to {weights.max():.3g}, so some rows have no effect; trim them."
        )
    if len(weights) >= _LEAST_SIZE:
        check_effective_size(name, len(weights), effective_size(weights))


def check_effective_size(name: str, rows: int, size: float) -> None:
    """Refuse weights that leave too small an effective sample size."""
    if size < _LEAST_SIZE - 1e-9:
        raise InputError(
            f"{name}: the effective sample size is {size:.2f} of {rows} rows, but at least {_LEAST_SIZE:.0f} is "
            "needed; trim the largest weights."
        )


def weights_of_part(values: Any, rows: int, name: str = "weights") -> Floats:
    """Read the weights of some rows of a sample: a positive number for each row."""
    plain = np.ma.filled(values, np.nan) if np.ma.isMaskedArray(values) else values
    column = check_per_row(plain, rows, name, "one number for each row")
    try:
        weights = column.astype(np.float64)
    except (TypeError, ValueError):
        weights = np.array([_as_float(value) for value in column.tolist()])
    for wrong, remedy in (
        (~(np.isfinite(weights) & (weights > 0)), "leave the row out, or correct it"),
        ((weights > _EXTREME) | (weights < 1 / _EXTREME), "divide all weights by one number, since only ratios matter"),
    ):
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(
                f"{name} holds {column.tolist()[row]!r} in row {row} (counting from 0), but every row needs a positive "
                f"number from {1 / _EXTREME:g} to {_EXTREME:g}; {remedy}."
            )
    return weights


def _as_float(value: Any) -> float:
    """Return a value as a float, NaN if it is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def effective_size(weights: Floats, observation: Index | None = None) -> float:
    """Return (Σ W)²/Σ W², where W are the sums of weights over observations."""
    total = weights if observation is None else np.bincount(observation, weights)
    return float(total.sum() ** 2 / (total @ total))


def design_effect(influence: Floats, observation: Index, copies: Index) -> float:
    """Return the variance of a sum of influences over that of independent rows; at least 1, since less is noise."""
    together, apart = np.bincount(observation, influence), float(copies @ influence**2)
    return max(1.0, float(together @ together) / apart) if apart > 0 else 1.0


@dataclass(frozen=True, eq=False)
class RowMass:
    """Mass of each row of a sample in a mean, and the effective sizes that follow from it."""

    mass: Floats  # sums to 1; the copies of a row share the mass of one row
    observation: Index  # number of each row's observation
    copies: Index  # number of copies of each row, itself included
    size: float  # effective sample size; groups are not considered
    observations: float  # effective number of observations: rows of a group are one

    @classmethod
    def from_weights(cls, weights: Floats | None, observation: Index, copies: Index) -> Self:
        """Compute masses and effective sizes; weights None are equal weights."""
        each = (1.0 if weights is None else weights) / copies
        mass = np.asarray(each / each.sum())
        size = float(1 / (copies * mass**2).sum())
        return cls(mass, observation, copies, size, effective_size(mass, observation))

    def design_effect(self, values: Floats) -> float:
        """Return the factor by which groups increase the variance of the mean of these values; at least 1."""
        return design_effect(self.mass * (values - self.mass @ values), self.observation, self.copies)
