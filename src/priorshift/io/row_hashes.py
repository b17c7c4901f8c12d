"""Hashes of rows: equal rows have equal hashes, and 64 bits make a collision of different rows negligible.

Sorting hashes finds copies much faster than sorting rows. A hash also assigns a row to a fold, in any order of the rows
and on any machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Folds

Codes = NDArray[np.uint64]

INCREMENT = np.uint64(0x9E3779B97F4A7C15)  # constants of the hash function splitmix64
STEPS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
LAST_SHIFT = np.uint64(31)
_DISTINCT = 0.5  # share of distinct rows below which most rows are copies
_BLOCK = 8192  # rows hashed together, which fit into the cache


def content_codes(rows: NDArray[Any]) -> Codes:
    """Return a 64-bit hash of each row's values."""
    codes = np.zeros(len(rows), dtype=np.uint64)
    for k in range(0, len(rows), _BLOCK):
        block = codes[k : k + _BLOCK]
        # + 0.0 makes −0.0 and 0.0 equal
        for column in (rows[k : k + _BLOCK].T.astype(np.float64, order="C") + 0.0).view(np.uint64):
            block ^= column
            mix_bits(block)
    return codes


def place_codes(start: int, count: int) -> Codes:
    """Return 64-bit hashes of `count` row positions from `start` on, for samples of copies, whose values are equal."""
    return mix_bits(np.arange(start, start + count, dtype=np.uint64))


def mostly_copies(codes: Codes) -> bool:
    """Return whether most rows, given their hashes, are copies of others."""
    return count_distinct(codes) < _DISTINCT * len(codes)


def fold_of(codes: Codes, folds: int, seed: int) -> Folds:
    """Return the fold of each row from its hash; another seed gives another assignment."""
    mixed_seed = mix_bits(np.array([seed], dtype=np.uint64))
    return np.asarray(mix_bits(codes ^ mixed_seed) % np.uint64(folds), dtype=np.int16)


def count_distinct(values: NDArray[Any]) -> int:
    """Return the number of distinct values of a column or of hashes; sorting is faster than numpy.unique."""
    ordered = np.sort(values)
    return len(values[:1]) + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def count_common(codes: Codes, others: Codes) -> int:
    """Return how many of `codes`, each as often as it occurs, are also among the codes `others`."""
    ordered, others = np.sort(codes), np.sort(others)  # sorted queries are found faster
    place = np.minimum(np.searchsorted(others, ordered), len(others) - 1)
    return int(np.count_nonzero(others[place] == ordered))


def mix_bits(codes: Codes) -> Codes:
    """Hash 64-bit numbers by splitmix64, in place: each bit of the input affects every bit of the output."""
    shifted = np.empty_like(codes)
    codes += INCREMENT  # arrays of unsigned integers wrap around without a warning
    for shift, factor in STEPS:
        codes ^= np.right_shift(codes, shift, out=shifted)
        codes *= factor
    codes ^= np.right_shift(codes, LAST_SHIFT, out=shifted)
    return codes
