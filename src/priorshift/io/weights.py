"""Weights of rows: what each row stands for, such as the inverse of its probability to be drawn.

Everything here is a mean or a sum over rows. With weights a mean is Σ w x/Σ w, and n rows are worth
(Σ w)²/Σ w² of equal weights (Kish 1965); rows of one group are one where they are counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.errors import InputError
from priorshift.io.parameters import check_per_row

_WIDEST = 1e9  # ratio of the largest to the smallest weight
_EXTREME = 1e70  # above which, and below one over which, sums of squares of weights may leave the floats
_LEAST_SIZE = 2.0  # rows that a weighted sample must be worth


def read_weights(values: Any, rows: int, name: str = "weights") -> Floats:
    """Read the weights of a sample: a positive number for each row."""
    weights = weights_of_part(values, rows, name)
    check_weights(weights, name)
    return weights


def check_weights(weights: Floats, name: str) -> None:
    """Refuse weights by which some rows, or almost all of them, count for nothing."""
    if weights.max() > _WIDEST * weights.min():
        raise InputError(
            f"{name} range from {weights.min():.3g} to {weights.max():.3g}, so that some rows would count for nothing; "
            "trim them, or check their unit."
        )
    if len(weights) >= _LEAST_SIZE:
        check_effective_size(name, len(weights), effective_size(weights))


def check_effective_size(name: str, rows: int, size: float) -> None:
    """Refuse weights that leave too small an effective sample size."""
    if size < _LEAST_SIZE - 1e-9:
        raise InputError(
            f"{name}: the effective sample size is {size:.2f} of {rows} rows, but at least {_LEAST_SIZE:.0f} is "
            "needed; trim the largest weights, or check how they were made."
        )


def weights_of_part(values: Any, rows: int, name: str = "weights") -> Floats:
    """Read the weights of some rows of a sample, as `read_weights` does, but for what can only be said of all rows."""
    plain = np.ma.filled(values, np.nan) if np.ma.isMaskedArray(values) else values
    column = check_per_row(plain, rows, name, "one number for each row")
    if column.dtype.kind in "biuf":
        weights = column.astype(np.float64)
    else:
        weights = np.array([_number(value, row, name) for row, value in enumerate(column.tolist())])
    wrong = ~(np.isfinite(weights) & (weights > 0))
    if wrong.any():
        row = int(wrong.argmax())
        do = "leave the row out" if weights[row] == 0 or np.isnan(weights[row]) else "correct it"
        raise InputError(
            f"{name} holds {weights[row]:g} in row {row} (counting from 0), but every row needs a positive number; "
            f"{do}."
        )
    extreme = (weights > _EXTREME) | (weights < 1 / _EXTREME)
    if extreme.any():
        row = int(extreme.argmax())
        raise InputError(
            f"{name} holds {weights[row]:g} in row {row} (counting from 0), but weights lie between {1 / _EXTREME:g} "
            f"and {_EXTREME:g}; only their ratios count, so divide all of them by one number."
        )
    return weights


def effective_size(weights: Floats, observation: Index | None = None) -> float:
    """(Σ W)²/Σ W², where W are the sums of weights over observations.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.io.weights import effective_size
    >>> effective_size(np.ones(10)), effective_size(np.ones(10), np.arange(10) // 2)
    (10.0, 5.0)
    """
    total = weights if observation is None else np.bincount(observation, weights)
    return float(total.sum() ** 2 / (total @ total))


def mass_of(weights: Floats | None, copies: Index) -> Floats:
    """What each row counts in a mean, of copies one; the sum is 1."""
    each = (1.0 if weights is None else weights) / copies
    return np.asarray(each / each.sum())


def distinct_size(mass: Floats, copies: Index) -> float:
    """Rows of equal weight, no two alike, that a sample is worth."""
    return float(1 / (copies * mass**2).sum())


def design_effect(influence: Floats, observation: Index, copies: Index) -> float:
    """How much larger a variance is than that of independent rows of which copies are one; no smaller, which is noise.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.io.weights import design_effect
    >>> design_effect(np.array([1.0, 1.0, -1.0, -1.0]), np.array([0, 0, 1, 1]), copies=np.ones(4, dtype=int))
    2.0
    """
    together, apart = np.bincount(observation, influence), float(copies @ influence**2)
    return max(1.0, float(together @ together) / apart) if apart > 0 else 1.0


def _number(value: Any, row: int, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        got = "nothing" if value is None or not str(value).strip() or str(value) == "<NA>" else repr(value)
        raise InputError(
            f"{name} holds {got} in row {row} (counting from 0), but every row needs a positive number; fill it in, or "
            "leave the row out."
        ) from None
