"""What the cells of a column of text say: numbers, in one of the ways to write them, missing values, or words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64] | list[str] | list[str | None]

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "nat", "?", "."})  # in small letters
_WORDS = {"true": 1.0, "false": 0.0}
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?P<mark>[.,'’ \u00a0\u202f])\d{3}((?P=mark)\d{3})*([.,]\d+)?")
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234: thousands where one writes English, less than two elsewhere


@dataclass(frozen=True)
class Reading:
    """A column of cells as numbers, or as text; and its first cell of every way to write, as row and text."""

    column: Column
    comma: tuple[int, str] | None = None  # a number with a decimal comma
    point: tuple[int, str] | None = None  # a number with a decimal point
    thousands: tuple[int, str] | None = None  # a number with marks between thousands
    other: tuple[int, str] | None = None  # no number in any way of writing
    sure: bool = False  # a comma in it cannot stand between thousands

    @property
    def is_number(self) -> bool:
        """Whether every cell is a number or missing."""
        return not (self.other or self.thousands)

    @classmethod
    def of(cls, cells: Sequence[str], mixed: bool) -> Reading:
        text = "\n".join(cells)
        if "_" not in text:
            with suppress(ValueError):  # all of them at once, if all are numbers
                plain = [cell.replace(",", ".") for cell in cells] if "," in text else cells
                column = np.fromiter(map(float, plain), np.float64, len(cells))
                if not ("," in text or "." in text):
                    return cls(column)
                return cls(
                    column,
                    comma=_first(cells, lambda cell: "," in cell) if "," in text else None,
                    point=_first(cells, lambda cell: "." in cell) if "." in text else None,
                    sure="," in text and _surely_decimal(cells),
                )
        values = {cell: _value(cell, mixed) for cell in dict.fromkeys(cells)}
        number = {cell for cell, value in values.items() if value is not None}
        marked = {cell for cell in values if cell not in number and _THOUSANDS.fullmatch(cell.strip())}
        numeric = len(number) == len(values)
        words = {cell: None if _is_missing(cell) else cell.strip() for cell in values} if not numeric else {}
        return cls(
            np.fromiter(map(values.__getitem__, cells), np.float64, len(cells))
            if numeric
            else list(map(words.__getitem__, cells)),
            comma=_first(cells, lambda cell: "," in cell and cell in number),
            point=_first(cells, lambda cell: "." in cell and cell in number and not _is_missing(cell)),
            thousands=_first(cells, marked.__contains__) if marked else None,
            other=_first(cells, lambda cell: cell not in number and cell not in marked) if not numeric else None,
            sure=_surely_decimal(number),
        )


def _first(cells: Sequence[str], wanted: Callable[[str], bool]) -> tuple[int, str] | None:
    return next(((row, cell) for row, cell in enumerate(cells) if wanted(cell)), None)


def _surely_decimal(numbers: Iterable[str]) -> bool:
    return any("," in cell and not _EITHER.fullmatch(cell.strip()) for cell in numbers)


def _value(cell: str, mixed: bool) -> float | None:
    """The number that a cell is, NaN if it is missing and may be, None if it is something else."""
    number = _by_comma(cell) if "," in cell else _number(cell)
    return math.nan if number is None and mixed and _is_missing(cell) else number


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def is_number(cell: str) -> bool:
    """Whether a cell is a number, with a decimal point or a decimal comma; true and false are words."""
    return (_number(cell) is not None and cell.lower() not in _WORDS) or _by_comma(cell) is not None


def _by_comma(cell: str) -> float | None:
    """A number with a decimal comma."""
    return _number(cell.replace(",", ".")) if cell.count(",") == 1 and "." not in cell else None


def _number(cell: str) -> float | None:
    try:
        return float(cell) if "_" not in cell else None
    except ValueError:
        return _WORDS.get(cell.strip().lower())
