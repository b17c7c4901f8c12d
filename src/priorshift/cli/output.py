"""What commands leave behind: JSON on stdout, a picture or a table in a file, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from priorshift.cli.writable import check_writable
from priorshift.errors import InputError
from priorshift.whole_file import whole_file

PICTURES = (".png", ".svg", ".pdf")


def print_json(result: dict[str, Any]) -> None:
    """One line."""
    print(json.dumps(result, ensure_ascii=False, allow_nan=False))


def check_picture(path: str | None) -> None:
    """Before any work: can the picture be written at all?"""
    if path is None:
        return
    if Path(path).suffix.lower() not in PICTURES:
        raise InputError(f"--plot {path} must end in {', '.join(PICTURES)}; name the picture so.")
    check_writable("--plot", path)
    try:
        import matplotlib
    except ImportError:
        raise InputError('--plot needs matplotlib; run pip install "priorshift[plot]".') from None
    matplotlib.use("agg")


def check_table(path: str | None, inputs: Sequence[str]) -> None:
    """Before any work: can the table be written, and would it overwrite one of the inputs?"""
    if path is None:
        return
    if Path(path).suffix.lower() != ".csv":
        raise InputError(f"--output {path} must end in .csv; name the table so.")
    check_writable("--output", path, inputs)


def write_table(path: str | None, text: str) -> None:
    """Write the table, all of it or nothing."""
    if path is None:
        return
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="")


def write_picture(path: str | None, draw: Callable[[], Any]) -> None:
    """Draw the picture and write it, all of it or nothing."""
    if path is None:
        return
    figure = draw().figure
    with whole_file(path) as draft:
        figure.savefig(draft, dpi=150, format=Path(path).suffix[1:].lower())  # a link may point to another ending
