"""Rows under named columns: aligned for a terminal, or in Markdown for a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def aligned(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Every column is as wide as its widest entry."""
    cells = [list(names), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def markdown(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["|" + "".join(f" {cell} |" if cell else " |" for cell in row) for row in (names, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(names), *lines[1:]])
