"""Rows under named columns: aligned for a terminal, or in Markdown for a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_NEGATIVE = re.compile(r"(?<![\w.`])-(?=\d)")


def aligned(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Every column is as wide as its widest entry."""
    cells = [list(names), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def markdown(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A minus before a number is written as the sign that pages of the library have."""
    rows = [[_NEGATIVE.sub("−", cell) for cell in row] for row in rows]
    lines = ["|" + "".join(f" {cell} |" if cell else " |" for cell in row) for row in (names, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(names), *lines[1:]])
