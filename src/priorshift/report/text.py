"""Text of the user's data on a page: escaped, told apart from ours, and with nothing that hides in it.

A name of a column may hold markup, characters that turn the direction of writing, zeros, or ten thousand letters. All
of it is shown as what it is; nothing of it acts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup, escape

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
    >>> from priorshift.report.text import is_hidden
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
    >>> from priorshift.report.text import plain
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
    >>> from priorshift.report.text import name
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
