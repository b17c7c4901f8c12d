"""A Parquet file that is read in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.input.joined import AnyTable
from priorshift.input.parquet import iter_frames, row_groups
from priorshift.input.parts import Skip, Wanted, at_row, drawn, evenly
from priorshift.input.tables import check_columns


@dataclass
class ParquetPart:
    """A file, whose row groups are read batch by batch, or passed over unread."""

    file: Path
    name: str
    wanted: Wanted
    can_repeat: bool = field(default=True, init=False)

    @cached_property
    def _outline(self) -> tuple[list[str], list[int]]:
        columns, groups = row_groups(self.file, self.name)
        check_columns(self.name, columns, self.wanted.aside)
        return columns, groups

    @property
    def rows(self) -> int:
        return sum(self._outline[1])

    def batches(self, skip: Skip) -> Iterator[AnyTable]:
        groups, done = self._outline[1], 0
        first = 0
        while first < len(groups) and skip.whole(groups[first]):
            done, first = done + groups[first], first + 1
        for frame in self._frames(range(first, len(groups))):
            if not skip.whole(len(frame)):
                yield skip.rest_of(self._read(frame, done))
            done += len(frame)

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[AnyTable | None, int]:
        import pyarrow

        groups = evenly(len(self._outline[1]), spread, rng)
        wanted = drawn(sum(self._outline[1][group] for group in groups), count, rng)
        if not len(wanted):
            return None, self.rows
        pieces, done = [], 0
        for frame in self._frames(groups):
            begin, end = np.searchsorted(wanted, [done, done + len(frame)])
            if end > begin:
                pieces.append(frame.take(wanted[begin:end] - done))
            done += len(frame)
        return self._read(pyarrow.concat_tables(pieces), 0), self.rows

    def _frames(self, groups: Sequence[int]) -> Iterator[Any]:
        columns = [column for column in self._outline[0] if column not in self.wanted.drop]
        return iter_frames(self.file, self.name, columns, groups, self.wanted.most_rows(len(columns)))

    def _read(self, frame: Any, row: int) -> AnyTable:
        table = self.wanted.read(frame, at_row(self.name, row))
        return replace(table, dropped=tuple(c for c in self._outline[0] if c in self.wanted.drop))
