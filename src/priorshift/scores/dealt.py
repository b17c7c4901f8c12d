"""Rows dealt to models by what they hold: a row goes to the same model wherever and whenever it comes by.

So rows that are read batch by batch, in any order, on any machine, are scored by a model that has not seen them,
without a note of which rows it was fitted to; and P, U and T are compared by one and the same function of a row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index

_ODD = np.uint64(0x9E3779B97F4A7C15)  # of the golden ratio, as in splitmix64
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_DISTINCT = 0.5  # share of distinct rows, below which copies are the rule

Codes = NDArray[np.uint64]


def content_codes(rows: Floats) -> Codes:
    """A number for each row that depends on its values alone."""
    bits = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # 0.0 makes one zero of two
    code = np.zeros(len(rows), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in bits.T:
            code = _mixed(code ^ column)
    return code


def place_codes(start: int, count: int) -> Codes:
    """The same by the place of a row in its sample: for rows of which most are copies of others."""
    return _mixed(np.arange(start, start + count, dtype=np.uint64))


def mostly_copies(codes: Codes) -> bool:
    """Whether most rows are copies of others."""
    return len(np.unique(codes)) < _DISTINCT * len(codes)


def fold_of(codes: Codes, folds: int, seed: int) -> Index:
    """The fold of each row, another one with each seed."""
    with np.errstate(over="ignore"):
        return np.asarray(_mixed(codes ^ _mixed(np.uint64(seed))) % np.uint64(folds), dtype=np.intp)


def _mixed(code: Codes | np.uint64) -> Codes:
    """Every bit of the input moves every bit of the output."""
    with np.errstate(over="ignore"):
        code = np.asarray(code, dtype=np.uint64) + _ODD
        code = (code ^ (code >> np.uint64(30))) * _MIX[0]
        code = (code ^ (code >> np.uint64(27))) * _MIX[1]
        return np.asarray(code ^ (code >> np.uint64(31)))
