"""Some rows of a collection, brought here: those that would be drawn from the same rows in one table.

What is fixed by a sample of rows, a scale or a model, is then the same wherever the rows lie, and however they are cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np

from priorshift.arrays import Index
from priorshift.distributed.parts import Parts, is_distributed
from priorshift.distributed.reduction import compute
from priorshift.input.batches import Batches
from priorshift.input.joined import AnyTable, joined, length, some_rows
from priorshift.input.parts import Skip, Wanted, drawn
from priorshift.input.tables import frame_of


@dataclass
class CollectionPart:
    """All rows of a collection as one part of a sample, as a table in memory is one."""

    parts: Parts
    wanted: Wanted
    client: Any = None
    can_repeat: bool = field(default=True, init=False)
    file: None = field(default=None, init=False)

    @cached_property
    def counts(self) -> list[int]:
        return self.parts.count(self.client)

    @property
    def rows(self) -> int:
        return sum(self.counts)

    def batches(self, skip: Skip) -> Iterator[AnyTable]:
        """Tables of one part after the other, for whoever wants all rows to come by here."""
        for outcome in self.parts.outcomes(read_part, self.wanted):
            (table,) = compute([outcome], self.client)
            if table is not None and not skip.whole(length(table)):
                yield skip.rest_of(table)

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[AnyTable | None, int]:
        """Rows of all parts, in one graph; `spread` is for those who read one part after the other."""
        if not min(count, self.rows):
            return None, self.rows
        rows, starts = drawn(self.rows, count, rng), np.cumsum([0, *self.counts[:-1]])
        picked = np.split(rows, np.searchsorted(rows, starts[1:]))
        each = [own - start for own, start in zip(picked, starts, strict=True)]
        outcomes = self.parts.outcomes(_pick, self.wanted, each=each)
        tables = compute([outcome for outcome, own in zip(outcomes, each, strict=True) if len(own)], self.client)
        return joined(tables, self.parts.name), self.rows


def as_batches(
    sample: Any,
    name: str,
    *,
    drop: Sequence[str] = (),
    aside: Sequence[str] = (),
    optional: Sequence[str] = (),
    client: Any,
) -> Batches:
    """A sample that is read in batches, of a collection or of a table; the columns are as in `Batches.of`."""
    if not is_distributed(sample):
        return Batches.of(sample, name, aside=aside, drop=drop, optional=optional)
    wanted = Wanted(tuple(aside), tuple(drop), tuple(optional))
    return Batches(name, [CollectionPart(Parts.of(sample, name), wanted, client)])


def read_part(part: Any, name: str, wanted: Wanted) -> AnyTable:
    """A part as a table, where it is."""
    return wanted.read(part, name)


def _pick(part: Any, name: str, wanted: Wanted, rows: Index) -> AnyTable:
    """Some rows of a part, which alone are read where it can be cut."""
    if isinstance(part, np.ndarray):
        return wanted.read(part[rows], name)
    if (frame := frame_of(part, name)) is not None:
        return wanted.read(nw.to_native(nw.from_native(frame, eager_only=True)[rows]), name)
    return some_rows(wanted.read(part, name), rows)
