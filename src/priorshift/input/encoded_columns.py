"""What each column of a table is, as the sample decided that an encoding was fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from priorshift.arrays import Floats
from priorshift.input.fields import Fields
from priorshift.input.levels import Levels
from priorshift.input.mixed import Cells, is_missing
from priorshift.input.tables import LARGEST

_DAY = np.timedelta64(1, "D")
_PLURALS = {"number": "numbers", "category": "categories", "date": "dates"}
_STORED = {"number": "median gaps", "date": "median gaps", "category": "kept rare", "left out": ""}  # of each kind
_LONGEST = 60  # characters of a name in the line
_NO_LEVELS = Levels((), 0)


@dataclass(frozen=True)
class EncodedColumn:
    """What was done with one column."""

    name: str
    kind: str  # "number", "category", "date" or "left out"
    became: str
    missing: float  # share of the rows that it was fitted on
    median: float = 0.0  # of a number or a date, in days
    gaps: bool = False  # whether one of them was missing
    levels: Levels = _NO_LEVELS  # of a category

    @classmethod
    def of(cls, name: str, cells: Cells, min_frequency: int) -> EncodedColumn:
        """Decided by the cells of one sample."""
        empty = is_missing(cells)
        missing = float(empty.mean())
        if empty.all():
            return cls(name, "left out", "nothing", missing)
        if cells.dtype == object:
            levels = Levels.of(cells, min_frequency)
            return cls(name, "category", str(levels), missing, levels=levels)
        kind = "date" if cells.dtype.kind == "M" else "number"
        median, gaps = float(np.nanmedian(in_days(cells))), bool(empty.any())
        became = "itself" if kind == "number" else "days, sine and cosine of the time of the year"
        if gaps:
            day = np.datetime64(0, "D") + np.timedelta64(int(median), "D") if kind == "date" else None
            became += f", median {f'{median:.4g}' if day is None else day} where missing; and whether it is missing"
        return cls(name, kind, became, missing, median, gaps)

    @property
    def is_quantity(self) -> bool:
        """Whether it is a number, or becomes one: days."""
        return self.kind in ("number", "date")

    def to_header(self) -> dict[str, Any]:
        """All that encoding needs, in words and numbers, as JSON can hold them.

        Names of rare levels are not among it: they change no number, and may tell of a single person.
        """
        made: dict[str, Any] = {"name": self.name, "kind": self.kind, "became": self.became, "missing": self.missing}
        if self.is_quantity:
            made |= {"median": self.median, "gaps": self.gaps}
        if self.kind == "category":
            made |= {"kept": list(self.levels.kept), "rare": self.levels.rares}
        return made

    @classmethod
    def from_header(cls, header: Any) -> EncodedColumn:
        """What `to_header` gave, checked, since it may be someone else's."""
        kind = header.get("kind") if isinstance(header, dict) else None
        known = kind if isinstance(kind, str) and kind in _STORED else "left out"  # which has the fewest fields
        fields = Fields(header, f"name kind became missing {_STORED[known]}", "an encoded column")
        if kind != known:
            raise fields.refused(f"its kind is {str(kind)[:40]!r}")
        made = fields.text("name"), known, fields.text("became"), fields.number("missing", 0, 1)
        if known == "category":
            levels = Levels(fields.texts("kept"), fields.whole("rare"))
            if not levels.names:
                raise fields.refused("it has no level")
            return cls(*made, levels=levels)
        if known == "left out":
            return cls(*made)
        return cls(*made, fields.number("median", -LARGEST, LARGEST), fields.flag("gaps"))


@dataclass(frozen=True)
class EncodingSummary:
    """What was done with each column; it prints as a table.

    Examples
    --------
    >>> from priorshift import TableEncoder
    >>> print(TableEncoder(min_frequency=1).fit([[1.5, "a"], [None, "b"], [2.5, "a"]]).summary_)
    column  kind      missing  became
    0       number    33.3%    itself, median 2 where missing; and whether it is missing
    1       category  0%       2 levels
    """

    columns: tuple[EncodedColumn, ...]

    def __str__(self) -> str:
        rows = [("column", "kind", "missing", "became")]
        rows += [(c.name, c.kind, f"{100 * c.missing:.3g}%", c.became) for c in self.columns]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)

    def line(self) -> str:
        """One line: how many columns of each kind, with the names of all but the numbers."""
        parts = []
        for kind in ("number", "category", "date", "left out"):
            names = [_cut(c.name) for c in self.columns if c.kind == kind]
            if names:
                told = f"{len(names)} {kind if len(names) == 1 else _PLURALS.get(kind, kind)}"
                parts.append(told if kind == "number" else f"{told} ({', '.join(names)})")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Give plain words and numbers, by the names of the columns.

        Returns
        -------
        dict
            With "kind", "became" and "missing" for each.
        """
        return {c.name: {"kind": c.kind, "became": c.became, "missing": round(c.missing, 4)} for c in self.columns}


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def in_days(cells: Cells) -> Floats:
    """Numbers as they are and dates in days, with NaN."""
    if cells.dtype.kind != "M":
        return cells
    return np.where(np.isnat(cells), np.nan, (cells - np.datetime64(0, "us")) / _DAY).astype(np.float64)
