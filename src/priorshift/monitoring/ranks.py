"""Ranks of rows among all rows before them, from which exact sequential tests are made.

If all rows so far come from one population, whatever it is, the rank of a new row among them is uniform, and
independent of all earlier ranks (Vovk et al. 2003). So tests of these ranks need neither a model nor the error of a
reference sample: that error cancels. Values are compared on a fixed grid of levels, and ties are broken at random.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats

_BLOCK = 32  # rows of which all pairs are compared
_SECTION = 8192  # rows whose blocks are counted at once, which bounds the memory
_PART = 50  # units of a batch after which evidence is looked at
_MOST_PARTS = 100  # of a batch

Levels = NDArray[np.integer[Any]]


def sequential_ranks(levels: Levels, pool: Floats, rng: np.random.Generator) -> Floats:
    """Return the rank of each row among a pool and the rows before it, in (0, 1), with ties broken at random.

    `levels` are whole numbers, shape (columns, rows); `pool` has the number of earlier rows of each column at each
    level, shape (columns, levels).
    """
    columns, rows = levels.shape
    below = np.concatenate([np.zeros((columns, 1)), np.cumsum(pool, axis=1)], axis=1)
    smaller, equal = earlier_rows(levels, pool.shape[1])
    smaller = smaller + np.take_along_axis(below, levels, axis=1)
    ties = equal + np.take_along_axis(pool, levels, axis=1) + 1  # the row itself is one
    total = below[:, -1:] + np.arange(1, rows + 1)
    return np.asarray((smaller + rng.random((columns, rows)) * ties) / total)


def earlier_rows(levels: Levels, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count for each row of each column the earlier rows at lower levels, and at its own; levels are below `size`."""
    columns, rows = levels.shape
    smaller, equal = np.empty((2, columns, rows), dtype=np.int64)
    seen = np.zeros((columns, size), dtype=np.int64)  # rows of earlier sections at each level
    for start in range(0, rows, _SECTION):
        part = slice(start, min(start + _SECTION, rows))
        seen = _count_section(levels[:, part], seen, smaller[:, part], equal[:, part])
    return smaller, equal


def _count_section(
    levels: Levels, seen: NDArray[np.int64], smaller: NDArray[np.int64], equal: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count the earlier rows of a section into `smaller` and `equal`, and return `seen` with the section added."""
    (columns, rows), size = levels.shape, seen.shape[1]
    blocks = -(-rows // _BLOCK)
    cell = levels + size * (np.arange(rows) // _BLOCK + blocks * np.arange(columns)[:, None])
    counts = np.bincount(cell.ravel(), minlength=columns * blocks * size).reshape(columns, blocks, size)
    before = seen[:, None, :] + np.cumsum(counts, axis=1) - counts  # rows before each block
    below = np.cumsum(before, axis=2) - before
    padded = np.zeros((columns, blocks * _BLOCK), dtype=np.uint16)  # rows after the last are after all others
    padded[:, :rows] = levels
    places = np.ascontiguousarray(padded.reshape(-1, _BLOCK).T)  # by the place of a row in its block
    smaller_inside, equal_inside = np.zeros((2, *places.shape), dtype=np.uint8)
    for k in range(_BLOCK - 1):
        smaller_inside[k + 1 :] += places[k] < places[k + 1 :]
        equal_inside[k + 1 :] += places[k] == places[k + 1 :]
    smaller[:] = below.ravel()[cell] + smaller_inside.T.reshape(columns, -1)[:, :rows]
    equal[:] = before.ravel()[cell] + equal_inside.T.reshape(columns, -1)[:, :rows]
    return np.asarray(seen + counts.sum(axis=1))


def count_ranks(ranks: Floats, bins: int) -> tuple[Floats, NDArray[np.int64]]:
    """Count ranks in bins of equal width, in each part of a batch, and return the end of each part as well.

    `ranks` lie in (0, 1), shape (columns, units); the counts have the shape (columns, parts, bins).
    """
    columns, units = ranks.shape
    parts = min(max(units // _PART, 1), _MOST_PARTS)
    cell = np.minimum((ranks * bins).astype(int), bins - 1)
    part = (np.arange(units) * parts) // units
    cell += bins * (part + parts * np.arange(columns)[:, None])
    counts = np.bincount(cell.ravel(), minlength=columns * parts * bins).reshape(columns, parts, bins)
    return counts.astype(float), np.cumsum(np.bincount(part, minlength=parts))


def level_edges(values: Floats, levels: int) -> Floats:
    """Return edges between levels, at most `levels` − 1: quantiles of the values."""
    return np.unique(np.quantile(values, np.arange(1, levels) / levels, method="lower"))


def to_levels(values: Floats, edges: Floats) -> NDArray[np.int64]:
    """Return the level of each value: the number of edges that are not above it."""
    return np.searchsorted(edges, values, side="right")
