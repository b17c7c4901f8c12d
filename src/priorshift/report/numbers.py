"""Numbers and user text on a page.

A number is written as ``<data value="0.5905062685864876" data-key="/estimate/value">0.591</data>``: the exact value,
its JSON pointer in the result's ``to_dict()``, and what a reader sees. A step of a pointer that starts with # counts
the entries of a mapping from 0 on, where their names are the user's. User text is escaped and shortened; characters
that are invisible or change the direction of writing are shown by their code.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from markupsafe import Markup, escape

from priorshift.formatting import decimals, format_fixed, format_p, format_p_cell, format_short, range_decimals
from priorshift.results import EMPTY_WIDTH, PriorEstimate

_LONGEST, _SHOWN = 80, 60  # longest name that is shown whole, and characters that are shown of a longer one
_LONGEST_PROSE = 900  # characters of a sentence, which may quote three names
_INVISIBLE = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164, 0xFFA0,
           *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}  # fmt: skip
_EMOJI_PARTS = "\u200d\ufe0f"  # joiner and colour selector, harmless after an emoji
_HIDDEN_CATEGORIES = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


def is_hidden(character: str) -> bool:
    """Return whether a character alone would be invisible, or would change the text around it."""
    code = ord(character)
    is_noncharacter = (code & 0xFFFE) == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    return code in _INVISIBLE or is_noncharacter or unicodedata.category(character) in _HIDDEN_CATEGORIES


def plain(text: Any) -> str:
    """Return user text without markup: hidden characters by their code, long text cut and followed by its length."""
    shown, note = _cut(str(text), _LONGEST, _SHOWN)
    return "".join(f"[{character}]" if hidden else character for character, hidden in _characters(shown)) + note


def name(text: Any) -> Markup:
    """Return a name by the user as HTML, isolated from the direction of the text around it, and shortened if long."""
    shown, note = _cut(str(text), _LONGEST, _SHOWN)
    return Markup("<bdi>{}</bdi>{}").format(_visible(shown), note)


def prose(text: Any) -> Markup:
    """Return a sentence of the library, which may quote user text, as HTML, and shortened if very long."""
    shown, note = _cut(str(text), _LONGEST_PROSE, _LONGEST_PROSE)
    return _visible(shown) + note


def code(text: Any) -> Markup:
    """Return a shell command or a call in Python as HTML, line by line."""
    return Markup("\n").join(prose(line) for line in str(text).split("\n"))


def _cut(text: str, longest: int, shown: int) -> tuple[str, str]:
    """Cut a text of more than `longest` characters to `shown` ones; return it, and a note of its length or ""."""
    if len(text) <= longest:
        return text, ""
    return text[:shown], f"… ({len(text):,} characters)"


def _visible(text: str) -> Markup:
    """Return a text as escaped HTML, with the codes of hidden characters in elements of class "code"."""
    marked = Markup('<span class="code">{}</span>')
    parts = [marked.format(code) if hidden else escape(code) for code, hidden in _characters(text)]
    return Markup("").join(parts)


def _characters(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each character and False, or for a hidden one its code, such as U+200B, and True.

    The joiner and the colour selector of emoji count as hidden only where they do not follow an emoji.
    """
    previous = " "
    for character in text:
        follows_emoji = previous in _EMOJI_PARTS or unicodedata.category(previous) in ("So", "Sk")  # symbols
        hidden = is_hidden(character) and not (character in _EMOJI_PARTS and follows_emoji)
        yield f"U+{ord(character):04X}" if hidden else character, hidden
        previous = " " if hidden else character


_DATA = Markup('<data value="{}" data-key="{}">{}</data>')


def look_up(record: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer such as "/targets/#0/value", where #0 is the first entry; None if missing."""
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
    """Numbers of a result, or of a part of it, as HTML; pointers are relative to that part, without a first slash."""

    record: dict[str, Any]  # the result's to_dict()
    prefix: str = ""  # JSON pointer of the part

    def under(self, *steps: object) -> Numbers:
        """Return the numbers of a part, to which the steps of a pointer lead: keys, and indices of lists."""
        return Numbers(self.record, "/".join([self.prefix, *map(str, steps)]))

    def value(self, pointer: str) -> Any:
        """Return the exact value at a JSON pointer relative to this part, or None if there is none."""
        return look_up(self.record, f"{self.prefix}/{pointer}")

    def share(self, pointer: str, width: float | None = None, sign: str = "") -> Markup:
        """Return the share at a pointer, with the decimals that the `width` of its interval, or its own size, requires.

        `sign` "+" shows the sign of positive ones.
        """
        return self._element(
            pointer, lambda share: format_fixed(share, decimals(abs(share) if width is None else width), sign)
        )

    def fixed(self, pointer: str, digits: int = 2, sign: str = "") -> Markup:
        """Return the number at a pointer with a number of decimals; `sign` "+" shows the sign of positive ones."""
        return self._element(pointer, lambda value: format_fixed(value, digits, sign))

    def short(self, pointer: str, digits: int = 3) -> Markup:
        """Return the number at a pointer with some significant digits."""
        return self._element(pointer, lambda value: format_short(value, digits))

    def ends(self, pointer: str) -> Markup:
        """Return the pair at a pointer as a range, "low to high", with the decimals that distinguish its ends."""
        digits = range_decimals(self.value(f"{pointer}/0"), self.value(f"{pointer}/1"))
        return Markup("{} to {}").format(self.fixed(f"{pointer}/0", digits), self.fixed(f"{pointer}/1", digits))

    def confidence(self, pointer: str) -> Markup:
        """Return the confidence level at a pointer in percent; with six digits, 99.99% is not rounded up to 100%."""
        return self._element(pointer, lambda level: f"{100 * level:.6g}%")

    def percent(self, pointer: str, digits: int | None = None) -> Markup:
        """Return the share at a pointer in percent, with some decimals; None is more digits below 10%."""
        if digits is not None:
            return self._element(pointer, lambda share: f"{format_fixed(100 * share, digits)}%")
        return self._element(pointer, lambda share: f"{100 * share:.{'3g' if 0 < share < 0.1 else '0f'}}%")

    def points(self, pointer: str) -> Markup:
        """Return the difference of shares at a pointer in percentage points, with its sign."""
        return self._element(pointer, lambda change: f"{format_fixed(100 * change, 1, '+')} points")

    def out_of(self, pointer: str, base: int) -> Markup:
        """Return the share at a pointer as a count out of `base`, such as 59 out of 100."""
        return self._element(pointer, lambda share: f"{base * share:,.0f}")

    def count(self, pointer: str) -> Markup:
        """Return the whole number at a pointer, with commas between thousands."""
        return self._element(pointer, lambda count: f"{count:,.0f}")

    def p(self, pointer: str) -> Markup:
        """Return the p-value at a pointer for a sentence, as in "p = 0.03"."""
        return self._element(pointer, format_p, "no p-value")

    def p_cell(self, pointer: str) -> Markup:
        """Return the p-value at a pointer for a table, as in "0.031" or "< 0.0001"."""
        return self._element(pointer, lambda p: format_p_cell(p, 4) if p < 0.001 else f"{p:.2g}")

    def _element(self, pointer: str, format_value: Callable[[Any], str], missing: str = "none") -> Markup:
        """Return the number at a pointer as an HTML data element with a formatted text; `missing` if there is none."""
        value = self.value(pointer)
        if value is None or isinstance(value, str):
            return Markup('<span class="none">{}</span>').format(missing)
        return _DATA.format(repr(value), f"{self.prefix}/{pointer}", format_value(value))


def bare(value: float, *, is_p: bool = False) -> Markup:
    """Return a difference of priors, or with `is_p` a p-value, that is not part of the result, as a data element."""
    shown = format_p_cell(value, 4) if is_p else format_fixed(value, 3, "+")
    return Markup('<data value="{}">{}</data>').format(repr(value), shown)


def is_informative(estimate: PriorEstimate) -> bool:
    """Return whether there is a number to report: its interval is not left open, and not as wide as nearly [0, 1]."""
    is_too_wide = estimate.interval is not None and estimate.interval.width > EMPTY_WIDTH
    has_estimate = isfinite(estimate.value) and estimate.status != "no estimate"
    return has_estimate and not is_too_wide and not estimate.is_left_open
