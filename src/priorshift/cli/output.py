"""What commands print and write: results, notes, warnings and errors; files as a whole or not at all.

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from priorshift.class_priors import ClassPriors
from priorshift.class_priors_by_target import ClassPriorsByTarget
from priorshift.cli import INTERRUPTED
from priorshift.cli.options import BOLD, GREEN, RED, YELLOW, colored, printable, printable_line
from priorshift.cli.streams import OutputError, can_print, checked_output, discard, print_error
from priorshift.diagnosis.class_targets import ClassDiagnoses
from priorshift.diagnosis.classes import ClassDiagnosis, ClassVerdict
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.diagnosis.verdict import Verdict
from priorshift.errors import InputError, PriorShiftWarning
from priorshift.io.files import PARQUET, atomic_write, kind
from priorshift.prior_estimates import PriorEstimates
from priorshift.progress import show_progress
from priorshift.report.page import ENDINGS, check_extra, check_pdf_extra, is_pdf
from priorshift.results import PriorEstimate

Result = (
    PriorEstimate | PriorEstimates | ClassPriors | ClassPriorsByTarget | Diagnosis | Diagnoses | ClassDiagnosis
    | ClassDiagnoses
)  # fmt: skip
FIGURES = (".png", ".svg", ".pdf")
_ANSWERS = {"yes": GREEN, "with care": YELLOW, "no": RED}
_QUESTIONS = [kind.question.removesuffix("?") for kind in (Verdict, ClassVerdict)]


def run_command(args: argparse.Namespace, *, as_program: bool = False) -> int:
    """Run the parsed command and return the exit code; errors and warnings become sentences on stderr.

    `as_program` says that this process is the program, so that signals may be handled.
    """
    module, function = args.run.split(":")
    command = getattr(import_module(f"priorshift.cli.{module}"), function)
    with _interrupts(as_program) as received, _warnings_as_sentences(), show_progress(True), checked_output():
        try:
            code = command(args) or 0
            print(end="", flush=True)  # an error of standard output appears here, and not at exit
            return code
        except BaseException as error:
            return _report_failure(error, interrupted=bool(received))


def _report_failure(error: BaseException, *, interrupted: bool) -> int:
    """Print the message of an error and return the exit code; raise the error again if it is a bug.

    `interrupted` says that Ctrl-C was pressed before the error.
    """
    code = 2
    if isinstance(error, KeyboardInterrupt):
        message, code = str(error) or INTERRUPTED, 130
    elif interrupted:  # the error may be a consequence of Ctrl-C, as in an import
        message, code = INTERRUPTED, 130
    elif isinstance(error, InputError):
        message = str(error)
    elif isinstance(error, MemoryError):
        message = "the data do not fit into memory; use fewer rows."
    elif isinstance(error, BrokenPipeError):  # the program that read our output has ended
        discard(sys.stdout)
        return 0
    elif isinstance(error, OutputError):
        discard(sys.stdout)
        message = str(error)
    elif isinstance(error, OSError):
        message = f"cannot use {error.filename or 'a file'}: {error.strerror or error}."
    else:
        raise error
    print_error(colored("priorshift:", RED, sys.stderr), printable_line(message))
    return code


@contextmanager
def _interrupts(as_program: bool) -> Iterator[list[int]]:
    """Raise KeyboardInterrupt on Ctrl-C during the work, so that it can clean up; yield a list of received signals.

    Signals are handled only if this process is the program (`as_program`); otherwise the list stays empty.
    """
    received: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        """Record the signal and interrupt the main thread."""
        received.append(number)
        raise KeyboardInterrupt

    if as_program:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield received
    finally:
        if as_program:  # an exception during Python's own short clean-up would only be printed
            signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """Print the library's warnings as sentences on stderr, without the line of code that Python adds."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PriorShiftWarning)
        original = warnings.showwarning
        shown: set[str] = set()  # a warning that applies to several tables is printed once

        def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
            """Print our own warnings as sentences, and others as Python does."""
            if issubclass(category, PriorShiftWarning):
                if str(message) in shown:
                    return
                shown.add(str(message))
                print_error(colored("priorshift: warning:", YELLOW, sys.stderr), printable_line(str(message)))
            else:
                original(message, category, *rest, **named)

        warnings.showwarning = show
        yield


def check_writable(option: str, path: str, inputs: Sequence[str | None] = (), endings: Sequence[str] = ()) -> None:
    """Raise InputError, before any work, for a path that cannot be written or is one of the inputs.

    Links are followed. `option` is named in the message; `endings` are those that are allowed, all by default.
    """
    name = f"{option} {path}"
    if endings and Path(path).suffix.lower() not in endings:
        raise InputError(f"{name} must end in {' or '.join(endings)}; rename it.")
    try:
        file = Path(os.path.realpath(path))
        with suppress(FileNotFoundError, NotADirectoryError):
            file.lstat()  # raises errors that the calls below hide from Python 3.14 on
        exists = file.exists()
        problems = {  # message: whether it applies
            "is a link that leads back to itself; name a file.": file.is_symlink(),
            "is a folder; name a file.": file.is_dir(),
            "is in a folder that does not exist; create the folder first.": not file.parent.is_dir(),
            "is a pipe or a device; name a file.": exists and not file.is_file(),
            "already exists and is read-only; name another file.": exists and not os.access(file, os.W_OK),
            f"is in {file.parent}, which cannot be written to; name a file in another folder.":
                not os.access(file.parent, os.W_OK | os.X_OK),
            "is one of the tables that are read; name another file.": any(_is_part_of(file, path) for path in inputs),
        }  # fmt: skip
    except (OSError, ValueError):  # a name that is too long or contains a zero, or a folder without access
        raise InputError(f"{option} {path[:40]!r} cannot be written; name another file.") from None
    for problem, applies in problems.items():
        if applies:
            raise InputError(f"{name} {problem}")


def _is_part_of(file: Path, table: str | None) -> bool:
    """Return whether a file is the table at a path, or one of the Parquet files of a folder that is read as a table.

    The path "-" is standard input, which may be a file too.
    """
    if table == "-" and file.exists():
        with suppress(OSError, ValueError, AttributeError):  # it is closed, or was replaced by an object without a file
            return os.path.samestat(file.stat(), os.fstat(sys.stdin.fileno()))
    if not table or not file.exists() or not os.path.exists(table):
        return False
    return file.samefile(table) or (os.path.isdir(table) and kind(file) == PARQUET and file.parent.samefile(table))


def check_figure(path: str | None) -> None:
    """Raise InputError, before any work, for a figure that cannot be drawn or written; None, no figure, is allowed.

    matplotlib is set to draw to files, without windows.
    """
    if path is None:
        return
    check_writable("--plot", path, endings=FIGURES)
    if not find_spec("matplotlib"):
        raise InputError('--plot needs matplotlib; run pip install "priorshift[plot]".')
    import_module("matplotlib").use("agg")


def check_report(option: str, path: str, inputs: Sequence[str] = ()) -> None:
    """Raise InputError, before any work, for a report that cannot be rendered or written."""
    check_writable(option, path, inputs, ENDINGS)
    check_extra()
    if is_pdf(path):
        check_pdf_extra()


def describe_report(path: str) -> str:
    """Return the name of a report, with what to do with it if it is a page for a browser."""
    return path if is_pdf(path) else f"{path} (open it in a browser)"


def write_figure(path: str, axes: Any) -> None:
    """Write the figure that contains the axes to a file, as a whole or not at all."""
    with atomic_write(path) as draft:
        # the format of the path, since the draft or a link may end differently
        axes.figure.savefig(draft, dpi=150, format=Path(path).suffix[1:].lower())


def print_note(message: str) -> None:
    """Print a sentence on stderr."""
    print_error(f"priorshift: {message}")


def print_json(result: dict[str, Any], indent: int | None = None) -> None:
    """Print a result as JSON, in one line by default; characters that cannot be printed are escaped."""
    text = json.dumps(result, ensure_ascii=False, allow_nan=False, indent=indent)
    print(text if can_print(text) else json.dumps(result, allow_nan=False, indent=indent))


def print_result(result: Result) -> None:
    """Print a result in words, with colours on a terminal; several estimates with a test of their equality."""
    text = printable(str(result))
    if isinstance(result, PriorEstimates):
        n_rows = len(result) if result.pooled is None else len(result) + 1  # the pooled estimate has a row too
        text = _highlight_table(text, n_rows, after="rows")
        if result.joint is not None and len(result) > 1:
            text += f"\n{result.equality_test()}"
    elif isinstance(result, Diagnoses):
        text = _highlight_table(text, len(result), after="publish?")
    elif isinstance(result, ClassDiagnoses):
        text = _highlight_table(text, sum(len(d.estimate) for d in result.values()), after="publish?")
    elif isinstance(result, ClassDiagnosis):
        shares = str(result.estimate)
        text = text.replace(shares, _highlight_table(shares, len(result.estimate), after="rows"), 1)
        text = _color_verdict(text)
    elif isinstance(result, ClassPriors):
        text = _highlight_table(text, len(result), after="rows")
    elif isinstance(result, ClassPriorsByTarget):
        text = _highlight_table(text, sum(map(len, result.values())), after="class")
        if result.joint is not None and len(result) > 1:
            text += f"\n{result.equality_test()}"
    else:
        estimate = result.estimate if isinstance(result, Diagnosis) else result
        value_with_interval = str(estimate).partition(" (")[0]
        text = text.replace(value_with_interval, colored(value_with_interval, BOLD), 1)
        text = _color_verdict(text)
    print(text)


def print_verdict(verdict: Verdict) -> None:
    """Print whether the number can be published: the first line of a verdict, with its answer in colour."""
    print(_color_verdict(str(verdict).partition("\n")[0]))


def _color_verdict(text: str) -> str:
    """Colour the answer of a verdict, which stands after its question in the first line of a text."""
    question, mark, rest = text.partition("? ")
    return question + mark + _color_answer(r"^[\w ]+", rest) if question in _QUESTIONS else text


def _color_answer(pattern: str, text: str) -> str:
    """Colour the answers (yes, with care, no) that a regular expression matches in a text."""
    return re.sub(pattern, lambda match: colored(match[0], _ANSWERS.get(match[0].strip().lower(), BOLD)), text)


def _highlight_table(text: str, n_rows: int, after: str) -> str:
    """Make the columns of estimates and intervals bold in a table of text, and colour the answers before them.

    The table has a header and `n_rows` rows, and may be followed by other lines. The columns of estimates and
    intervals follow the one whose title is `after`.
    """
    header, *lines = text.split("\n")
    start = header.rindex(after) + len(after)
    end = header.index("interval", start) + len("interval") if "interval" in header[start:] else len(header)
    for k, row in enumerate(lines[:n_rows]):
        with_answer = _color_answer(rf"({'|'.join(_ANSWERS)})$", row[:start])
        lines[k] = with_answer + colored(row[start:end], BOLD) + row[end:]
    return "\n".join([header, *lines])
