"""The command line. (argparse: it is enough, everybody has it, and it needs no dependency.)

Results go to stdout, in JSON with ``--json``; warnings go to stderr. Wrong use ends with one sentence and
exit code 2, and leaves no file half written.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from priorshift import __version__, progress
from priorshift.cli import adapt, demo, diagnose, estimate, experiment, sketch
from priorshift.errors import InputError, PriorShiftWarning


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, or 2 for wrong use or unusable data."""
    parser = _parser()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["experiment"]:  # has a command line of its own, with its own --help
        given[1:] = ["--", *given[1:]]
    args = parser.parse_args(given)
    try:
        with _warnings_as_sentences(), progress.shown(True):
            return args.run(args) or 0
    except InputError as error:
        return _fail(str(error))
    except BrokenPipeError:  # whoever read our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _fail(f"{error.filename or 'a file'} cannot be used ({error.strerror or error}).")
    except MemoryError:
        return _fail("the data do not fit into memory; use fewer rows.")
    except KeyboardInterrupt as stop:
        return _fail(str(stop) or "interrupted; nothing was written.", 130)


def _fail(message: str, code: int = 2) -> int:
    print(f"priorshift: {message}", file=sys.stderr)
    return code


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports wrong use in one sentence, like everything else."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"priorshift: {message} (see {self.prog} --help).\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="priorshift",
        description="Estimate how common the positive class is in a new, unlabelled population.",
        epilog="Try 'priorshift demo'.",
    )
    parser.add_argument("--version", action="version", version=f"priorshift {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for room in (demo, estimate, diagnose, adapt, sketch, experiment):
        room.add_command(commands)
    return parser


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """The library's warnings as sentences on stderr, without the line of code that Python adds."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PriorShiftWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
            if issubclass(category, PriorShiftWarning):
                print(f"priorshift: warning: {message}", file=sys.stderr)
            else:
                usual(message, category, *rest, **named)

        warnings.showwarning = show
        yield
