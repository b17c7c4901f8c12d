"""Files that commands write: told before the work whether they can be written.

What commands leave behind: JSON on stdout, a picture or a table in a file, whole or not at all.

Results in words on stdout: the estimate and its interval bold, the answer of a diagnosis in its colour."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from priorshift.cli.parser import BOLD, GREEN, RED, YELLOW, colored, printable
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.errors import InputError
from priorshift.io.files import PARQUET, atomic_write, kind
from priorshift.prior_estimates import PriorEstimates
from priorshift.results import PriorEstimate


def check_writable(option: str, path: str, inputs: Sequence[str | None] = ()) -> None:
    """Refuse, before any work, what cannot be written, or is one of the inputs.

    Every option that names an output asks here. A link is followed, so that the file that it points to is the one.
    """
    said = f"{option} {path}"
    try:
        file = Path(os.path.realpath(path))
        if file.is_symlink():
            raise InputError(f"{said} is a link that leads back to itself; name a file.")
        with suppress(FileNotFoundError, NotADirectoryError):
            file.lstat()  # raises what the questions below keep to themselves from Python 3.14 on
        if file.is_dir():
            raise InputError(f"{said} is a folder; name a file.")
        if not file.parent.is_dir():
            raise InputError(f"{said} lies in a folder that does not exist; make it first.")
        if file.exists() and not file.is_file():
            raise InputError(f"{said} is a pipe or a device, but files are written whole or not at all; name a file.")
    except (OSError, ValueError) as error:  # a name too long, or with a zero in it, or a folder that is closed to us
        if isinstance(error, InputError):
            raise
        raise InputError(f"{option} {path[:40]!r} is not a path that can be written to; name another file.") from None
    if file.exists() and not os.access(file, os.W_OK):
        raise InputError(f"{said} is there already and is read-only; name another file, or make it writable.")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise InputError(f"{said} lies in {file.parent}, which cannot be written to; name a file in another folder.")
    for other in inputs:
        if other and file.exists() and Path(other).exists() and (file.samefile(other) or _is_part_of(file, other)):
            raise InputError(f"{said} is one of the tables that are read; name another file.")


def _is_part_of(file: Path, folder: str) -> bool:
    """Whether it is one of the Parquet files that a folder is read as."""
    return os.path.isdir(folder) and kind(file) == PARQUET and file.parent.samefile(folder)


PICTURES = (".png", ".svg", ".pdf")
ANSWERS = {"yes": GREEN, "with care": YELLOW, "no": RED}


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
    with atomic_write(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="")


def write_picture(path: str | None, draw: Callable[[], Any]) -> None:
    """Draw the picture and write it, all of it or nothing."""
    if path is None:
        return
    figure = draw().figure
    with atomic_write(path) as draft:
        figure.savefig(draft, dpi=150, format=Path(path).suffix[1:].lower())  # a link may point to another ending


def print_result(result: PriorEstimate | PriorEstimates | Diagnosis | Diagnoses) -> None:
    """Print what `str` makes of it; of several estimates also whether they are equal."""
    text = printable(str(result))
    if isinstance(result, PriorEstimates):
        text = _with_columns(text, len(result) + (result.pooled is not None), after="rows")
        if result.joint is not None and len(result) > 1:
            text += f"\n{result.equality_test()}"
    elif isinstance(result, Diagnoses):
        text = _with_columns(text, len(result), after="publish?")
    elif isinstance(result, Diagnosis):
        text = _with_answer(_with_estimate(text, result.estimate))
    else:
        text = _with_estimate(text, result)
    print(text)


def print_answer(found: Diagnosis) -> None:
    """Print whether the number may be published, and the number, in two lines."""
    print(_with_answer(str(found.verdict).partition("\n")[0]))
    print_result(found.estimate)


def _with_answer(text: str) -> str:
    return re.sub(r"(?<=^May I publish this number\? )[\w ]+", _answer, text)


def _with_estimate(text: str, estimate: PriorEstimate) -> str:
    """What stands before the brackets of its line is the number and its interval."""
    number = str(estimate).partition(" (")[0]
    return text.replace(number, colored(number, BOLD), 1)


def _answer(found: re.Match[str]) -> str:
    return colored(found[0], ANSWERS.get(found[0].strip().lower(), BOLD))


def _with_columns(text: str, count: int, after: str) -> str:
    """A table of so many rows with its answers coloured, and bold columns after one of them up to the intervals."""
    header, *rows = text.split("\n")
    start = header.rindex(after) + len(after)
    end = header.index("interval", start) + len("interval") if "interval" in header[start:] else len(header)
    for k, row in enumerate(rows[:count]):
        answer = re.sub(rf"({'|'.join(ANSWERS)})$", _answer, row[:start])
        rows[k] = answer + colored(row[start:end], BOLD) + row[end:]
    return "\n".join([header, *rows])
