"""Tables that come one after the other: a generator, or anything that can be iterated over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.errors import InputError
from priorshift.input.joined import AnyTable, joined, length
from priorshift.input.parts import Part, Skip, TablePart, Wanted, draw_of_all


@dataclass
class StreamPart:
    """Tables of any kind, each of which is a part of its own; an iterator can be read once."""

    source: Iterable[Any]
    name: str
    wanted: Wanted
    parts_of: Callable[[Any, str, Wanted], Sequence[Part]]
    rows: int | None = field(default=None, init=False)
    file: Path | None = field(default=None, init=False)
    _held: list[AnyTable] = field(default_factory=list, init=False)  # read of an iterator before it was asked for
    _once: Iterator[AnyTable] | None = field(default=None, init=False)  # what is left of an iterator
    _begun: bool = field(default=False, init=False)

    @property
    def can_repeat(self) -> bool:
        return not isinstance(self.source, Iterator)

    def batches(self, skip: Skip) -> Iterator[AnyTable]:
        for table in self._tables():
            if not skip.whole(length(table)):
                yield skip.rest_of(table)

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[AnyTable | None, int]:
        """Of an iterator, rows of its first tables, which are held until they are asked for; else of all."""
        if self.can_repeat:
            return draw_of_all((TablePart(t, t.name, self.wanted) for t in self._tables()), count, rng, spread)
        self._refuse_again()
        while sum(map(length, self._held)) < count and (table := next(self._rest(), None)) is not None:
            self._held.append(table)
        if not self._held:
            return None, 0
        first = joined(self._held, self.name)
        return TablePart(first, self.name, self.wanted).draw(count, rng, spread)

    def _tables(self) -> Iterator[AnyTable]:
        if self.can_repeat:
            yield from self._read(self.source)
            return
        self._refuse_again()
        self._begun = True
        while self._held:
            yield self._held.pop(0)
        yield from self._rest()

    def _rest(self) -> Iterator[AnyTable]:
        self._once = self._once or self._read(self.source)
        return self._once

    def _read(self, tables: Iterable[Any]) -> Iterator[AnyTable]:
        for number, table in enumerate(tables):
            if _is_row(table):
                raise InputError(
                    f"{self.name} is an iterator, which can be read only once; pass list({self.name}) for its rows, or "
                    "an iterator of tables, which are read one after the other."
                )
            name = f"table {number} of {self.name} (counting from 0)"
            for part in self.parts_of(table, name, self.wanted):
                yield from part.batches(Skip())

    def _refuse_again(self) -> None:
        if self._begun:
            raise InputError(
                f"{self.name} comes from an iterator that was read already, and it can be read only once; make a new "
                "one, or pass a list or the paths of files."
            )


def _is_row(table: Any) -> bool:
    """Whether it is a row rather than a table."""
    if isinstance(table, np.ndarray):
        return table.ndim == 1
    return isinstance(table, (list, tuple)) and bool(table) and np.isscalar(table[0]) and not isinstance(table[0], str)
