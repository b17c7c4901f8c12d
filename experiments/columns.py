"""Rows under named columns: aligned for a terminal, or in Markdown for a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def aligned(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """As wide as its widest entry is every column.

    Examples
    --------
    >>> from experiments.columns import aligned
    >>> print(aligned(("data set", "π"), [("Yeast", "0.1")]))
    data set  π
    Yeast     0.1
    """
    cells = [list(names), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def markdown(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A row that ends in an empty cell stays short, as it would be written by hand."""
    lines = [_row(names), "|" + "---|" * len(names), *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)
