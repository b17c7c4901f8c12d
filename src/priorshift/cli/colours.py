"""Colours, on a terminal alone. They repeat what the words say, so that nothing is lost without them.

``NO_COLOR`` turns them off and ``FORCE_COLOR`` on, where they are set to anything; ``TERM=dumb`` turns them off, and so
does a Windows console that does not say that it understands them.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from typing import TextIO

BOLD, RED, GREEN, YELLOW = "1", "31", "32", "33"
ANSWERS = {"yes": GREEN, "with care": YELLOW, "no": RED}
_WINDOWS = ("WT_SESSION", "ANSICON", "ConEmuANSI", "TERM")  # set by consoles that understand colours


def wanted(stream: TextIO | None) -> bool:
    """Whether what is written there may be coloured."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    if stream is None or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return False
    return os.name != "nt" or any(map(os.environ.get, _WINDOWS))


def painted(text: str, colour: str, stream: TextIO | None = None) -> str:
    """The text in a colour where its stream, by default stdout, may have it."""
    return f"\033[{colour}m{text}\033[0m" if text and wanted(stream or sys.stdout) else text


def printable(text: str) -> str:
    """Text of which no character steers the terminal or turns the line around, whatever a file's names hold."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else _named(c) for c in text)


def in_a_line(text: str) -> str:
    """The same, which does not end the line either."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _named(character: str) -> str:
    """Joiners, which emoji are made of, as they are; others as Python writes them."""
    return character if character in "\u200c\u200d" else ascii(character)[1:-1]
