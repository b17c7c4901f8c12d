"""Format rows under named columns: aligned for a terminal, or as Markdown for a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_NEGATIVE = re.compile(r"(?<![\w.`])-(?=\d)")


def align_columns(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the rows as text; every column is as wide as its widest entry."""
    cells = [list(names), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def markdown_table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, with a minus sign (−) instead of a hyphen before numbers."""
    rows = [[_NEGATIVE.sub("−", cell) for cell in row] for row in rows]
    lines = ["|" + "".join(f" {cell} |" if cell else " |" for cell in row) for row in (names, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(names), *lines[1:]])
