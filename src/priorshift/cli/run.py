"""Run a parsed command: errors and warnings become sentences on stderr, and Ctrl-C ends with one line."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from priorshift import progress
from priorshift.cli import INTERRUPTED
from priorshift.cli.parser import RED, YELLOW, colored, printable
from priorshift.errors import InputError, PriorShiftWarning


def run(args: argparse.Namespace, *, as_program: bool = False) -> int:
    """Run the command that was parsed and return the exit code."""
    module, function = args.run.split(":")
    command = getattr(import_module(f"priorshift.cli.{module}"), function)
    with _interrupts(as_program) as received, _warnings_as_sentences(), progress.shown(True):
        try:
            code = command(args) or 0
            print(end="", flush=True)
            return code
        except BaseException as error:
            if received and not isinstance(error, KeyboardInterrupt):  # such as an import that Ctrl-C made fail
                return _fail(INTERRUPTED, 130)
            return _failure(error)


def _failure(error: BaseException) -> int:
    """Print what went wrong and return the exit code; what is a defect of ours is raised."""
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
