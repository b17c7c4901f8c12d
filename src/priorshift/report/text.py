"""Text of the user's data on a page: escaped, told apart from ours, and with nothing that hides in it.

A name of a column may hold markup, characters that turn the direction of writing, zeros, or ten thousand letters. All
of it is shown as what it is; nothing of it acts.
"""

from __future__ import annotations

import unicodedata
from typing import Any

from markupsafe import Markup, escape

_LONGEST, _SHOWN = 80, 60  # characters of a name, and those that are shown of a longer one
_LONGEST_PROSE = 900  # of a sentence, which may hold three names
_TURNING = {0x061C, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF}
_JOINER = 0x200D  # of emoji, which is no harm


def is_hidden(character: str) -> bool:
    """Tell whether a character would not be seen, or would turn or break what is around it.

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
    >>> [is_hidden(c) for c in ("a", "é", "\\x00", "\\u202e", "\\ud800", "\\U0001f600")]
    [False, False, True, True, True, False]
    """
    code = ord(character)
    if code == _JOINER:
        return False
    is_no_character = (code & 0xFFFE) == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    return code in _TURNING or is_no_character or unicodedata.category(character) in ("Cc", "Cs")


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
    return "".join(f"[{_code(c)}]" if is_hidden(c) else c for c in kept) + length


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
    return Markup("").join(label.format(_code(c)) if is_hidden(c) else escape(c) for c in text)
