"""Numbers of a page: each is looked up in the result's own dictionary and says where it stands there.

A number is written as ``<data value="0.5905062685864876" data-key="/estimate/value">0.591</data>``: the value as it is,
its JSON pointer, and what a reader sees. A step of a pointer that begins with # counts the entries of a mapping from 0
on, where their names are the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from priorshift.numerals import p_cell, p_words, short, written
from priorshift.result import decimals, range_decimals

_DATA = Markup('<data value="{}" data-key="{}">{}</data>')


def look_up(record: Any, pointer: str) -> Any:
    """Find what a pointer points to.

    Parameters
    ----------
    record : dict
        What ``to_dict`` gives.
    pointer : str
        Steps with a slash before each.

    Returns
    -------
    object
        None where there is nothing.

    Examples
    --------
    >>> from priorshift.report.numbers import look_up
    >>> look_up({"targets": {"may": {"value": 0.5}}, "sizes": [1, 2]}, "/targets/#0/value")
    0.5
    """
    for step in pointer.split("/")[1:]:
        if isinstance(record, Mapping):
            record = list(record.values())[int(step[1:])] if step.startswith("#") else record.get(step)
        elif isinstance(record, (list, tuple)):
            record = record[int(step.removeprefix("#"))]
        else:
            return None
    return record


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of a result, or of a part of it.

    Attributes
    ----------
    record : dict
        What ``to_dict`` gives.
    at : str
        The pointer of the part.
    """

    record: dict[str, Any]
    at: str = ""

    def under(self, *steps: object) -> Numbers:
        """Numbers of a part."""
        return Numbers(self.record, "".join([self.at, *(f"/{step}" for step in steps)]))

    def value(self, pointer: str) -> Any:
        """What stands there; None where there is nothing."""
        return look_up(self.record, f"{self.at}/{pointer}")

    def share(self, pointer: str, width: float | None = None, sign: str = "") -> Markup:
        """With as many decimals as a width asks for."""
        return self._shown(pointer, lambda v: written(v, decimals(abs(v) if width is None else width), sign))

    def fixed(self, pointer: str, digits: int = 2, sign: str = "") -> Markup:
        """With so many decimals."""
        return self._shown(pointer, lambda v: written(v, digits, sign))

    def short(self, pointer: str, digits: int = 3) -> Markup:
        """With so many digits."""
        return self._shown(pointer, lambda v: short(v, digits))

    def ends(self, pointer: str) -> Markup:
        """From where to where, with as many decimals as tell the two apart."""
        low, high = (self.value(f"{pointer}/{k}") for k in (0, 1))
        digits = range_decimals(low, high)
        return Markup("{} to {}").format(self.fixed(f"{pointer}/0", digits), self.fixed(f"{pointer}/1", digits))

    def confidence(self, pointer: str) -> Markup:
        """Of a hundred, and never rounded to more than it is."""
        return self._shown(pointer, lambda v: f"{100 * v:.6g}%")

    def percent(self, pointer: str) -> Markup:
        """Of a hundred."""
        return self._shown(pointer, lambda v: f"{100 * v:.3g}%" if 0 < v < 0.1 else f"{100 * v:.0f}%")

    def out_of(self, pointer: str, base: int) -> Markup:
        """Of so many."""
        return self._shown(pointer, lambda v: f"{base * v:,.0f}")

    def count(self, pointer: str) -> Markup:
        """A whole number."""
        return self._shown(pointer, lambda v: f"{v:,.0f}")

    def p(self, pointer: str) -> Markup:
        """A p-value, with its sign before it."""
        return self._shown(pointer, p_words, "no p-value")

    def _shown(self, pointer: str, write: Callable[[Any], str], none: str = "none") -> Markup:
        value = self.value(pointer)
        if value is None or isinstance(value, str):
            return Markup('<span class="none">{}</span>').format(none)
        return _DATA.format(repr(value), f"{self.at}/{pointer}", write(value))


def bare(value: float, digits: int = 3, sign: str = "") -> Markup:
    """Write a number that the result's dictionary does not have.

    Parameters
    ----------
    value : float
        As it is.
    digits : int
        Decimals.
    sign : str
        "+" shows it always.

    Returns
    -------
    Markup
    """
    return Markup('<data value="{}">{}</data>').format(repr(value), written(value, digits, sign))


def bare_p(value: float) -> Markup:
    """Write a p-value that the result's dictionary does not have, for a table.

    Parameters
    ----------
    value : float
        As it is.

    Returns
    -------
    Markup
    """
    return Markup('<data value="{}">{}</data>').format(repr(value), p_cell(value, 4))
