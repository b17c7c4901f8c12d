"""Define what a study is: its lines, the units of work that compute them, and its table.

A study is one of the paper's experiments (`grids.Experiment`) or one of the library's own measurements (`Trial`, in the
folder `studies`). The runner computes its units and the store keeps their lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from experiments.store import read_lines
from experiments.text_tables import align_columns
from priorshift.errors import InputError

Line = dict[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Unit:
    """The smallest piece of work: the keys of its lines, and the function that computes them."""

    wanted: frozenset[Key]
    work: Callable[[], list[Line]]


class Study:
    """Base class of studies: what the runner and the command line need.

    ``units(methods, repetitions)`` yields its work in the order of computation; ``small()`` returns a part of it that
    runs in seconds; ``select_lines(lines)`` returns the lines that belong to its grid; ``table(results)`` returns the
    rows of its table, and ``format_table(rows)`` these rows as text under a header.
    """

    name: str
    title: str
    keys: tuple[str, ...]  # fields that identify a line; all but "setting" are required
    methods: tuple[str, ...] = ()
    timed: bool = False  # times are measured: units run one at a time
    slow: bool = False  # every unit takes minutes: `verify all` leaves it out

    def key(self, line: Line) -> Key:
        """Return the values that identify a line."""
        return tuple(line.get(name) for name in self.keys)

    def lines(self, results: Path) -> list[Line]:
        """Read the study's lines from a folder of results."""
        path = results / f"{self.name}.jsonl"
        lines = read_lines(path)
        for number, line in enumerate(lines, 1):
            if set(self.keys) - {"setting"} - set(line):
                raise InputError(f"Line {number} of {path} is not a result of this study. Remove it.")
        return self.select_lines(lines)

    def progress(self, results: Path) -> dict[str, float]:
        """Return the share of lines that exist, for each method, or in all if the study has no methods."""
        done = {self.key(line) for line in self.lines(results)}
        shares = {}
        for method in self.methods or ("",):
            wanted = [key for unit in self.units((method,) if method else None) for key in unit.wanted]
            shares[method] = sum(key in done for key in wanted) / len(wanted)
        return shares


@dataclass(frozen=True)
class Trial(Study):
    """A measurement that is repeated over a grid."""

    name: str
    title: str
    grid: tuple[Line, ...]  # the keys of each line
    unit: tuple[str, ...]  # the keys that are arguments of `measure`; the others vary within a unit
    measure: Callable[..., list[Line]]  # returns the lines of a unit, without its keys
    texts: Callable[[list[Line]], dict[str, str]]  # returns the texts that documents quote, by name
    quotes: tuple[str, ...] = ()  # the names of these texts; by default the study's name
    small_values: Line = field(default_factory=dict)  # values of keys that the small part uses instead of the grid's
    slow: bool = False

    @property
    def quoted(self) -> tuple[str, ...]:
        """Return the names of the texts that documents quote."""
        return self.quotes or (self.name,)

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.grid[0])

    def units(self, methods: tuple[str, ...] | None = None, repetitions: int | None = None) -> Iterator[Unit]:
        """Yield a unit for each combination of the unit's keys."""
        groups: dict[Key, set[Key]] = {}
        for entry in self._grid(repetitions):
            groups.setdefault(tuple(entry[name] for name in self.unit), set()).add(self.key(entry))
        for values, wanted in groups.items():
            at = dict(zip(self.unit, values, strict=True))
            yield Unit(frozenset(wanted), partial(_run_measurement, self.measure, at))

    def _grid(self, repetitions: int | None) -> tuple[Line, ...]:
        if repetitions is None:
            return self.grid
        if "seed" not in self.keys:
            raise InputError(f"The number of repetitions of {self.name} is fixed by its grid. Remove --repetitions.")
        return tuple(entry for entry in self.grid if entry["seed"] < repetitions)

    def small(self) -> Trial:
        """Return the first unit as a study of its own, with two repetitions."""
        first = [e for e in self.grid if all(e[name] == self.grid[0][name] for name in self.unit)]
        few = {"repetitions": 2} if "repetitions" in self.keys else {}
        return replace(self, grid=tuple(entry | few | self.small_values for entry in first), texts=lambda lines: {})

    def select_lines(self, lines: list[Line]) -> list[Line]:
        """Return the lines of the grid, in its order."""
        at = {self.key(line): line for line in lines}
        return [at[key] for key in map(self.key, self.grid) if key in at]

    def table(self, results: Path) -> list[Line]:
        """Return the lines, which are the rows of the table."""
        return self.lines(results)

    def format_table(self, rows: list[Line]) -> str:
        """Return the rows as text under a header, and the quoted texts if the study is complete."""
        names = [n for n in dict.fromkeys(n for row in rows for n in row) if n not in ("experiment", "versions")]
        parts = [align_columns(names, [[_format_value(row.get(name)) for name in names] for row in rows])]
        if len(rows) == len(self.grid):
            parts += self.texts(rows).values()
        else:
            parts.append(f"{len(rows)} of {len(self.grid)} lines are available.")
        return "\n\n".join(parts)


def _run_measurement(measure: Callable[..., list[Line]], at: Line) -> list[Line]:
    return [at | line for line in measure(**at)]


def _format_value(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
