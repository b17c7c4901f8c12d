"""What a study is: the lines it wants, in units of work, and how they are read.

The runner asks a study for its units and the store keeps their lines, whether it is one of the paper's grids
(`grids.Experiment`) or one of the library's own measurements (`Trial`, in the folder `studies`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from experiments.columns import aligned
from experiments.store import read_lines
from priorshift.errors import InputError

Line = dict[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Unit:
    """What is done in one go: the keys of its lines, and the work that makes them, in a process of its own."""

    wanted: frozenset[Key]
    work: Callable[[], list[Line]]


class Study:
    """What the runner and the command line ask of every study.

    ``units(methods, repetitions)`` is its work, in the order in which it is done; ``small()`` a part of it that runs in
    seconds; ``own(lines)`` those lines that belong to its grid; ``table(results)`` the rows of its table, and
    ``words(rows)`` the same as text under a header.
    """

    name: str
    title: str
    keys: tuple[str, ...]  # make a line the only one of its kind; all but "setting" are always there
    methods: tuple[str, ...] = ()
    alone: bool = False  # timed: nothing may run beside it

    def key(self, line: Line) -> Key:
        return tuple(line.get(name) for name in self.keys)

    def lines(self, results: Path) -> list[Line]:
        """The study's lines in a folder of results."""
        path = results / f"{self.name}.jsonl"
        lines = read_lines(path)
        for number, line in enumerate(lines, 1):
            if set(self.keys) - {"setting"} - set(line):
                raise InputError(f"{path} holds a line that is no result, line {number}; remove it.")
        return self.own(lines)

    def progress(self, results: Path) -> dict[str, float]:
        """The share of lines that are there, for each method, or as a whole where there are no methods."""
        done = {self.key(line) for line in self.lines(results)}
        shares = {}
        for method in self.methods or ("",):
            wanted = [key for unit in self.units((method,) if method else None) for key in unit.wanted]
            shares[method] = sum(key in done for key in wanted) / len(wanted)
        return shares


@dataclass(frozen=True)
class Trial(Study):
    """One measurement, made for each unit of a grid."""

    name: str
    title: str
    grid: tuple[Line, ...]  # an entry for each line: its keys
    unit: tuple[str, ...]  # the keys that a unit is measured at; the others vary within it
    measure: Callable[..., list[Line]]  # what a unit's lines hold besides
    texts: Callable[[list[Line]], dict[str, str]]  # what documents quote of a finished study, by name
    quotes: tuple[str, ...] = ()  # those names; the study's own by default
    tiny: Line = field(default_factory=dict)  # what its small part has in place of the grid's

    @property
    def quoted(self) -> tuple[str, ...]:
        return self.quotes or (self.name,)

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.grid[0])

    def units(self, methods: tuple[str, ...] | None = None, repetitions: int | None = None) -> Iterator[Unit]:
        groups: dict[Key, set[Key]] = {}
        for entry in self._grid(repetitions):
            groups.setdefault(tuple(entry[name] for name in self.unit), set()).add(self.key(entry))
        for values, wanted in groups.items():
            at = dict(zip(self.unit, values, strict=True))
            yield Unit(frozenset(wanted), partial(_measured, self.measure, at))

    def _grid(self, repetitions: int | None) -> tuple[Line, ...]:
        if repetitions is None:
            return self.grid
        if "seed" not in self.keys:
            raise InputError(f"{self.name} repeats as often as its grid says; leave --repetitions out.")
        return tuple(entry for entry in self.grid if entry["seed"] < repetitions)

    def small(self) -> Trial:
        first = [e for e in self.grid if all(e[name] == self.grid[0][name] for name in self.unit)]
        few = {"repetitions": 2} if "repetitions" in self.keys else {}
        return replace(self, grid=tuple(entry | few | self.tiny for entry in first), texts=lambda lines: {})

    def own(self, lines: list[Line]) -> list[Line]:
        """In the grid's order, whatever the order in which they were made."""
        at = {self.key(line): line for line in lines}
        return [at[key] for key in map(self.key, self.grid) if key in at]

    def table(self, results: Path) -> list[Line]:
        return self.lines(results)

    def words(self, rows: list[Line]) -> str:
        names = [n for n in dict.fromkeys(n for row in rows for n in row) if n not in ("experiment", "versions")]
        parts = [aligned(names, [[_plain(row.get(name)) for name in names] for row in rows])]
        if len(rows) == len(self.grid):
            parts += self.texts(rows).values()
        else:
            parts.append(f"{len(rows)} of {len(self.grid)} lines are there.")
        return "\n\n".join(parts)


def _measured(measure: Callable[..., list[Line]], at: Line) -> list[Line]:
    return [at | line for line in measure(**at)]


def _plain(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
