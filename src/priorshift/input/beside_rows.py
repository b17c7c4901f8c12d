"""What users pass beside the rows of a sample, an entry for each: weights, groups, classes that were looked up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError


def one_for_each(values: Any, rows: int, name: str, entry: str) -> NDArray[Any]:
    """An array of shape (rows,) of whatever type; `entry` is what a sentence asks for.

    Examples
    --------
    >>> from priorshift.input.beside_rows import one_for_each
    >>> one_for_each([["a"], ["b"]], 2, "groups", "one group for each row").tolist()
    ['a', 'b']
    """
    try:
        column = np.asarray(values)
    except (TypeError, ValueError):
        raise InputError(f"{name} has entries of different lengths; pass {entry}.") from None
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (rows,):
        raise InputError(f"{name} has shape {column.shape} but the sample has {rows} rows; pass {entry}.")
    return column
