"""What commands leave behind: JSON on stdout, a picture in a file, whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from priorshift.errors import InputError

_PICTURES = (".png", ".svg", ".pdf")


def print_json(result: dict[str, Any]) -> None:
    """One line."""
    print(json.dumps(result, ensure_ascii=False, allow_nan=False))


def check_picture(path: str | None) -> None:
    """Before any work: can the picture be written at all?"""
    if path is None:
        return
    if Path(path).suffix.lower() not in _PICTURES:
        raise InputError(f"--plot {path} must end in {', '.join(_PICTURES)}; name the picture so.")
    if not Path(path).absolute().parent.is_dir():
        raise InputError(f"--plot {path} lies in a folder that does not exist; make it first.")
    if Path(path).is_dir():
        raise InputError(f"--plot {path} is a folder; name a file.")
    try:
        import matplotlib
    except ImportError:
        raise InputError('--plot needs matplotlib; run pip install "priorshift[plot]".') from None
    matplotlib.use("agg")


def write_picture(path: str | None, draw: Callable[[], Any]) -> None:
    """Draw into a temporary file beside the wanted one, then rename: all of it or nothing."""
    if path is None:
        return
    figure = draw().figure
    with tempfile.TemporaryDirectory(dir=Path(path).absolute().parent) as folder:
        draft = Path(folder) / Path(path).name
        figure.savefig(draft, dpi=150)
        os.replace(draft, path)
