"""What commands print and write: results, warnings and errors on the terminal; files as a whole or not at all.

Results in words have the estimate and its interval in bold, and the verdict of a diagnosis in its colour.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from priorshift.cli import INTERRUPTED
from priorshift.cli.parser import BOLD, GREEN, RED, YELLOW, colored, printable
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.errors import InputError, PriorShiftWarning
from priorshift.io.files import PARQUET, atomic_write, kind
from priorshift.prior_estimates import PriorEstimates
from priorshift.progress import show_progress
from priorshift.report.page import check_ending, check_extra
from priorshift.results import PriorEstimate

FIGURES = (".png", ".svg", ".pdf")
ANSWERS = {"yes": GREEN, "with care": YELLOW, "no": RED}


def run_command(args: argparse.Namespace, *, as_program: bool = False) -> int:
    """Run the parsed command and return the exit code; errors and warnings become sentences on stderr."""
    module, function = args.run.split(":")
    command = getattr(import_module(f"priorshift.cli.{module}"), function)
    with _interrupts(as_program) as received, _warnings_as_sentences(), show_progress(True):
        try:
            code = command(args) or 0
            print(end="", flush=True)
            return code
        except BaseException as error:
            if received and not isinstance(error, KeyboardInterrupt):  # such as an import that Ctrl-C made fail
                return _fail(INTERRUPTED, 130)
            return _failure(error)


def _failure(error: BaseException) -> int:
    """Print what went wrong and return the exit code; a defect of ours is raised."""
    if isinstance(error, KeyboardInterrupt):
        return _fail(str(error) or INTERRUPTED, 130)
    if isinstance(error, InputError):
        return _fail(str(error))
    if isinstance(error, MemoryError):
        return _fail("the data do not fit into memory; use fewer rows.")
    if isinstance(error, BrokenPipeError):  # whoever read our output has gone
        _discard_output()
        return 0
    if isinstance(error, OSError):
        if error.filename is None:  # it may be standard output
            _discard_output()
        return _fail(f"cannot use {error.filename or 'a file'}: {error.strerror or error}.")
    raise error


def _fail(message: str, code: int = 2) -> int:
    print(colored("priorshift:", RED, sys.stderr), printable(message), file=sys.stderr)
    return code


def _discard_output() -> None:
    """Send what cannot be printed nowhere, so that Python does not try again at exit."""
    with suppress(OSError):  # a replacement of standard output may not be a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _interrupts(as_program: bool) -> Iterator[list[int]]:
    """Raise KeyboardInterrupt on Ctrl-C during the work, so that it can clean up; yield the signals received."""
    received: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        received.append(number)
        raise KeyboardInterrupt

    if as_program:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield received
    finally:
        if as_program:  # Python's own clean-up is short, and an exception in it would only be printed
            signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """Print the library's warnings as sentences on stderr, without the line of code that Python adds."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PriorShiftWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
            if issubclass(category, PriorShiftWarning):
                print(colored("priorshift: warning:", YELLOW, sys.stderr), printable(str(message)), file=sys.stderr)
            else:
                usual(message, category, *rest, **named)

        warnings.showwarning = show
        yield


def check_writable(option: str, path: str, inputs: Sequence[str | None] = ()) -> None:
    """Refuse, before any work, a path that cannot be written or is one of the inputs; links are followed."""
    name = f"{option} {path}"
    try:
        file = Path(os.path.realpath(path))
        if file.is_symlink():
            raise InputError(f"{name} is a link that leads back to itself; name a file.")
        with suppress(FileNotFoundError, NotADirectoryError):
            file.lstat()  # raises errors that the calls below hide from Python 3.14 on
        if file.is_dir():
            raise InputError(f"{name} is a folder; name a file.")
        if not file.parent.is_dir():
            raise InputError(f"{name} is in a folder that does not exist; create the folder first.")
        if file.exists() and not file.is_file():
            raise InputError(f"{name} is a pipe or a device; name a file.")
    except (OSError, ValueError) as error:  # a name that is too long or contains a zero, or a folder without access
        if isinstance(error, InputError):
            raise
        raise InputError(f"{option} {path[:40]!r} cannot be written; name another file.") from None
    if file.exists() and not os.access(file, os.W_OK):
        raise InputError(f"{name} already exists and is read-only; name another file, or make it writable.")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise InputError(f"{name} is in {file.parent}, which cannot be written to; name a file in another folder.")
    for other in inputs:
        if other and file.exists() and Path(other).exists() and (file.samefile(other) or _is_part_of(file, other)):
            raise InputError(f"{name} is one of the tables that are read; name another file.")


def _is_part_of(file: Path, folder: str) -> bool:
    """Return whether the file is one of the Parquet files of a folder that is read as a table."""
    return os.path.isdir(folder) and kind(file) == PARQUET and file.parent.samefile(folder)


def check_figure(path: str | None) -> None:
    """Refuse, before any work, a figure that cannot be drawn or written."""
    if path is None:
        return
    if Path(path).suffix.lower() not in FIGURES:
        raise InputError(f"--plot {path} must end in {', '.join(FIGURES)}; rename it.")
    check_writable("--plot", path)
    try:
        import matplotlib
    except ImportError:
        raise InputError('--plot needs matplotlib; run pip install "priorshift[plot]".') from None
    matplotlib.use("agg")


def check_table(path: str | None, inputs: Sequence[str]) -> None:
    """Refuse, before any work, a table that cannot be written or is one of the inputs."""
    if path is None:
        return
    if Path(path).suffix.lower() != ".csv":
        raise InputError(f"--output {path} must end in .csv; rename it.")
    check_writable("--output", path, inputs)


def check_report(option: str, path: str, inputs: Sequence[str] = ()) -> None:
    """Refuse, before any work, a report that cannot be made or written."""
    check_ending(path, option)
    check_writable(option, path, inputs)
    check_extra()


def write_table(path: str | None, text: str) -> None:
    """Write a table, as a whole or not at all."""
    if path is None:
        return
    with atomic_write(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="")


def write_figure(path: str | None, draw: Callable[[], Any]) -> None:
    """Draw a figure and write it, as a whole or not at all."""
    if path is None:
        return
    figure = draw().figure
    with atomic_write(path) as draft:
        figure.savefig(draft, dpi=150, format=Path(path).suffix[1:].lower())  # a link may point to another ending


def print_json(result: dict[str, Any]) -> None:
    """Print a result as one line of JSON."""
    print(json.dumps(result, ensure_ascii=False, allow_nan=False))


def print_result(result: PriorEstimate | PriorEstimates | Diagnosis | Diagnoses) -> None:
    """Print a result in words; several estimates with a test of their equality."""
    text = printable(str(result))
    if isinstance(result, PriorEstimates):
        text = _highlight_table(text, len(result) + (result.pooled is not None), after="rows")
        if result.joint is not None and len(result) > 1:
            text += f"\n{result.equality_test()}"
    elif isinstance(result, Diagnoses):
        text = _highlight_table(text, len(result), after="publish?")
    elif isinstance(result, Diagnosis):
        text = _highlight_answer(_highlight_estimate(text, result.estimate))
    else:
        text = _highlight_estimate(text, result)
    print(text)


def print_verdict(diagnosis: Diagnosis) -> None:
    """Print whether the number can be published, and the number, in two lines."""
    print(_highlight_answer(str(diagnosis.verdict).partition("\n")[0]))
    print_result(diagnosis.estimate)


def _highlight_answer(text: str) -> str:
    return re.sub(r"(?<=^May I publish this number\? )[\w ]+", _color_answer, text)


def _color_answer(match: re.Match[str]) -> str:
    return colored(match[0], ANSWERS.get(match[0].strip().lower(), BOLD))


def _highlight_estimate(text: str, estimate: PriorEstimate) -> str:
    """Print the number and its interval, which precede the parentheses, in bold."""
    number = str(estimate).partition(" (")[0]
    return text.replace(number, colored(number, BOLD), 1)


def _highlight_table(text: str, count: int, after: str) -> str:
    """Colour the answers of a table of `count` rows, and print the columns after one, up to the intervals, in bold."""
    header, *rows = text.split("\n")
    start = header.rindex(after) + len(after)
    end = header.index("interval", start) + len("interval") if "interval" in header[start:] else len(header)
    for k, row in enumerate(rows[:count]):
        answer = re.sub(rf"({'|'.join(ANSWERS)})$", _color_answer, row[:start])
        rows[k] = answer + colored(row[start:end], BOLD) + row[end:]
    return "\n".join([header, *rows])
