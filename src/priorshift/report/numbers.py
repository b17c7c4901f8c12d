"""Text of the user's data on a page: escaped, told apart from ours, and with nothing that hides in it.

A name of a column may hold markup, characters that turn the direction of writing, zeros, or ten thousand letters. All
of it is shown as what it is; nothing of it acts.

Numbers of a page: each is looked up in the result's own dictionary and says where it stands there.

A number is written as ``<data value="0.5905062685864876" data-key="/estimate/value">0.591</data>``: the value as it is,
its JSON pointer, and what a reader sees. A step of a pointer that begins with # counts the entries of a mapping from 0
on, where their names are the user's."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from markupsafe import Markup, escape

from priorshift.diagnosis.verdict import EMPTY_WIDTH
from priorshift.formatting import decimals, format_fixed, format_p, format_p_cell, format_short, range_decimals
from priorshift.results import PriorEstimate

_LONGEST, _SHOWN = 80, 60  # characters of a name, and those that are shown of a longer one
_LONGEST_PROSE = 900  # of a sentence, which may hold three names
_UNSEEN = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164, 0xFFA0,
           *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}  # fmt: skip
_OF_EMOJI = "\u200d\ufe0f"  # joins several to one sign, or asks for one in colour: no harm behind a sign
_HIDDEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


def is_hidden(character: str) -> bool:
    """Tell whether a character by itself would not be seen, or would turn or break what is around it.

    Parameters
    ----------
    character : str
        One.

    Returns
    -------
    bool

    Examples
    --------
    >>> from priorshift.report.numbers import is_hidden
    >>> [is_hidden(c) for c in ("a", "é", "\\x00", "\\u202e", "\\ud800", "\\u3164", "\\U0001f600")]
    [False, False, True, True, True, True, False]
    """
    code = ord(character)
    is_no_character = (code & 0xFFFE) == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    return code in _UNSEEN or is_no_character or unicodedata.category(character) in _HIDDEN


def plain(text: Any) -> str:
    """Write text without markup: what hides is named, what is too long is cut, with its length.

    Parameters
    ----------
    text : object
        Of the user.

    Returns
    -------
    str

    Examples
    --------
    >>> from priorshift.report.numbers import plain
    >>> plain("a\\u202eb"), len(plain("x" * 10_000))
    ('a[U+202E]b', 81)
    """
    kept, length = _cut(str(text), _LONGEST, _SHOWN)
    return "".join(f"[{_code(c)}]" if hidden else c for c, hidden in _characters(kept)) + length


def name(text: Any) -> Markup:
    """Write a name as HTML, isolated from the direction of what stands around it.

    Parameters
    ----------
    text : object
        Of the user.

    Returns
    -------
    Markup

    Examples
    --------
    >>> from priorshift.report.numbers import name
    >>> print(name("<b>\\x00"))
    <bdi>&lt;b&gt;<span class="code">U+0000</span></bdi>
    """
    kept, length = _cut(str(text), _LONGEST, _SHOWN)
    return Markup("<bdi>{}</bdi>{}").format(_visible(kept), length)


def prose(text: Any) -> Markup:
    """Write a sentence of ours that may quote the user.

    Parameters
    ----------
    text : object
        The sentence.

    Returns
    -------
    Markup
    """
    kept, length = _cut(str(text), _LONGEST_PROSE, _LONGEST_PROSE)
    return _visible(kept) + length


def code(text: Any) -> Markup:
    """Write a command or a call, whose lines stay lines.

    Parameters
    ----------
    text : object
        What can be typed again.

    Returns
    -------
    Markup
    """
    return Markup("\n").join(prose(line) for line in str(text).split("\n"))


def _cut(text: str, longest: int, shown: int) -> tuple[str, str]:
    return (text, "") if len(text) <= longest else (text[:shown], f"… ({len(text):,} characters)")


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"


def _visible(text: str) -> Markup:
    label = Markup('<span class="code">{}</span>')
    return Markup("").join(label.format(_code(c)) if hidden else escape(c) for c, hidden in _characters(text))


def _characters(text: str) -> Iterator[tuple[str, bool]]:
    """Each with whether it is to be named; of emoji all parts stay."""
    before = " "
    for character in text:
        behind_sign = before in _OF_EMOJI or unicodedata.category(before) in ("So", "Sk")
        named = is_hidden(character) and not (character in _OF_EMOJI and behind_sign)
        yield character, named
        before = " " if named else character


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
        return self._shown(pointer, lambda v: format_fixed(v, decimals(abs(v) if width is None else width), sign))

    def fixed(self, pointer: str, digits: int = 2, sign: str = "") -> Markup:
        """With so many decimals."""
        return self._shown(pointer, lambda v: format_fixed(v, digits, sign))

    def short(self, pointer: str, digits: int = 3) -> Markup:
        """With so many digits."""
        return self._shown(pointer, lambda v: format_short(v, digits))

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
        return self._shown(pointer, format_p, "no p-value")

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
    return Markup('<data value="{}">{}</data>').format(repr(value), format_fixed(value, digits, sign))


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
    return Markup('<data value="{}">{}</data>').format(repr(value), format_p_cell(value, 4))


def is_told(estimate: PriorEstimate) -> bool:
    """Say whether there is a number to say: not where nothing was estimated, nor where every prior is possible.

    Parameters
    ----------
    estimate : PriorEstimate
        Any.

    Returns
    -------
    bool
    """
    empty = estimate.interval is not None and estimate.interval.width > EMPTY_WIDTH
    return isfinite(estimate.value) and estimate.status != "no estimate" and not empty
