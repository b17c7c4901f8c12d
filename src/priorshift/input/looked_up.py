"""The column of an audit: the true class of some rows, looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from priorshift.arrays import Floats, Index, Mask
from priorshift.errors import InputError
from priorshift.input.beside_rows import one_for_each

LEAST = 10  # labels, and clusters of them, below which a share is a guess
MISSING = ("", "nan", "none", "null", "na", "<na>", "nat")
_CLASSES = {"1": True, "0": False, "true": True, "false": False}


@dataclass(frozen=True, eq=False)
class Audit:
    """Rows whose true class was looked up.

    Attributes
    ----------
    index : ndarray of int
        Where they stand in the sample; drawn at random.
    positive : ndarray of bool
        Whether each is positive.

    Examples
    --------
    >>> from priorshift.audit import read_audit
    >>> audit = read_audit(["1", "", "0", "0", "", "0", "1", "0", "0", "0", "0", "0"], rows=12)
    >>> audit.index, int(audit.positive.sum())
    (array([ 0,  2,  3,  5,  6,  7,  8,  9, 10, 11]), 2)
    """

    index: Index
    positive: Mask

    def __len__(self) -> int:
        return len(self.index)


def read_audit(values: Any, rows: int, name: str = "audit") -> Audit:
    """Read the column of an audit: 1 or 0 where the class was looked up, nothing where it was not.

    Parameters
    ----------
    values : array-like
        One entry for each row: 1 or True for a positive, 0 or False for a negative, which may be text; NaN, None or
        empty text for a row that was not looked up. A list, an array or a column of any data frame.
    rows : int
        Of the sample.
    name : str
        What messages call it.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from priorshift.audit import read_audit
    >>> audit = read_audit([1, 0, None, 0, 1, 0, 0, None, 0, 1, 0, 0], rows=12)
    >>> len(audit), int(audit.positive.sum())
    (10, 3)
    """
    return as_audit(read_classes(values, rows, name), name)


def as_audit(classes: Floats, name: str = "audit") -> Audit:
    """1, 0 or NaN for each row, of which enough were looked up."""
    index = np.flatnonzero(~np.isnan(classes))
    if len(index) < LEAST:
        raise InputError(f"{name} has {len(index)} rows with a class, but at least {LEAST} are needed; look up more.")
    return Audit(index, np.asarray(classes[index] == 1))


def read_classes(values: Any, rows: int, name: str) -> Floats:
    """A column of an audit in numbers: 1, 0, and NaN where nothing was looked up."""
    if np.ma.isMaskedArray(values):
        mask, values = np.ma.getmaskarray(values), np.ma.getdata(values).astype(object)
        values[mask] = None
    column = one_for_each(values, rows, name, "one entry for each row, empty where the class was not looked up")
    if column.dtype.kind not in "biuf":
        column = np.array([_read(value) for value in column.tolist()], dtype=float)
        strange = np.isinf(column)
    else:
        strange = ~np.isnan(column) & (column != 0) & (column != 1)
    if strange.any():
        row = int(strange.argmax())
        got = np.asarray(values).reshape(-1)[row]
        got = got.item() if isinstance(got, np.generic) else got
        raise InputError(
            f"{name} holds {got!r} in row {row} (counting from 0), but 1 for a positive, 0 for a negative or nothing "
            "for a class that was not looked up is expected; write it so."
        )
    return np.asarray(column, dtype=float)


def _read(value: Any) -> float:
    """1, 0, NaN for nothing, or infinity for anything else."""
    text = str(value).strip().lower()
    if text in MISSING:
        return float("nan")
    if text in _CLASSES:
        return float(_CLASSES[text])
    try:
        number = float(text)
    except ValueError:
        return float("inf")
    return number if number in (0, 1) else float("inf")
