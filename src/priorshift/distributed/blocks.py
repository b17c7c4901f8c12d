"""Rows of a sample as matrices of numbers, in blocks of a size of their own, made wherever they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.distributed.parts import Parts, in_graph, is_distributed, no_rows
from priorshift.distributed.reduction import Outcome, compute, import_dask, together
from priorshift.input.tables import Table, match_columns, read_table

BLOCK = 16_384  # rows: two blocks are a second or two of kernel values, and a few megabytes that travel


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows, some thousands at a time.

    Attributes
    ----------
    blocks : list of Delayed
        Outcomes of matrices.
    rows : list of int
        Of each block.
    """

    blocks: list[Any]
    rows: list[int]

    @classmethod
    def of(cls, matrices: Sequence[Any], rows: Sequence[int], start: int = 0, stop: int | None = None) -> Blocks:
        """The rows from `start` to `stop`, of Delayed outcomes of matrices that have so many `rows` each."""
        join = import_dask().delayed(together, pure=False)
        ends = np.cumsum(rows)
        stop = int(ends[-1]) if stop is None else stop
        edges = [*range(start, stop, BLOCK), stop]
        blocks = []
        for low, high in pairwise(edges):
            first, last = (int(k) for k in np.searchsorted(ends, (low, high - 1), "right"))  # which hold its ends
            before = int(ends[first]) - rows[first]
            blocks.append(join(partial(_cut, low - before, high - before), *matrices[first : last + 1]))
        return cls(blocks, np.diff(edges).tolist())

    @classmethod
    def read(cls, sample: Any, name: str, layout: Table | None = None, client: Any = None) -> tuple[Blocks, Table]:
        """The blocks of a sample of numbers, with the columns of `layout`, a table without rows; or with its own."""
        if not is_distributed(sample):
            table = read_table(sample, name)
            layout = layout or replace(table, values=table.values[:0])
            values = match_columns([layout, table])[1].values
            return cls.of([in_graph(Outcome(values))], [len(values)]), layout
        parts = Parts.of(sample, name)
        columns, rows = _look(parts, client)
        layout = layout or columns
        return cls.of(parts.outcomes(_matrix, layout), rows), layout

    def split(self, values: Floats | None) -> list[Any]:
        """One number of each row, by blocks; None where there are none."""
        if values is None:
            return [in_graph(Outcome(None))] * len(self.rows)
        return [in_graph(Outcome(part)) for part in np.split(values, np.cumsum(self.rows)[:-1])]


def _cut(start: int, stop: int, *matrices: NDArray[Any] | None) -> NDArray[Any]:
    there = [one for one in matrices if one is not None]  # a part without rows is no matrix
    return (there[0] if len(there) == 1 else np.concatenate(there))[start:stop]


def _look(parts: Parts, client: Any) -> tuple[Table, list[int]]:
    """The columns of the first rows, as a table without any, and how many rows each part has."""
    if parts.shape is not None:
        found: list[Any] = [(Table(parts.name, np.empty((0, parts.shape[1]))), rows) for rows in parts.shape[0]]
    else:
        found = compute(parts.outcomes(_columns_and_rows), client)
    rows = [0 if one is None else one[1] for one in found]
    if not any(rows):
        raise no_rows(parts)
    return next(one[0] for one in found if one is not None), rows


def _columns_and_rows(part: Any, name: str) -> tuple[Table, int]:
    table = read_table(part, name)
    return replace(table, values=table.values[:0]), len(table.values)


def _matrix(part: Any, name: str, layout: Table) -> NDArray[Any]:
    return match_columns([layout, read_table(part, name)])[1].values
