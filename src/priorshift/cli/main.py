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
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import Any

from priorshift import __version__, progress
from priorshift.cli import adapt, app, completion, demo, diagnose, estimate, experiment, report, schema, sketch
from priorshift.cli.parser import RED, YELLOW, Parser, painted, printable
from priorshift.errors import InputError, PriorShiftWarning


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, 2 for wrong use or unusable data, or 130 if it was interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["experiment"]:  # has a command line of its own, with its own --help
        given[1:] = ["--", *given[1:]]
    args = _parsed(given)
    try:
        with _warnings_as_sentences(), progress.shown(True):
            code = args.run(args) or 0
        print(end="", flush=True)
        return code
    except InputError as error:
        return _fail(str(error))
    except BrokenPipeError:  # whoever read our output has gone
        _give_up_output()
        return 0
    except OSError as error:
        if error.filename is None:  # it may be standard output
            _give_up_output()
        return _fail(f"{error.filename or 'a file'} cannot be used ({error.strerror or error}).")
    except MemoryError:
        return _fail("the data do not fit into memory; use fewer rows.")
    except KeyboardInterrupt as stop:
        return _fail(str(stop) or "interrupted; nothing was written.", 130)


def parser() -> Parser:
    """The parser of all commands, in the order in which a user meets them."""
    made = Parser(
        prog="priorshift",
        description="Estimate how common the positive class is in a new, unlabelled population, from labelled "
        "positives and unlabelled rows of an old one.",
        words=(
            "priorshift COMMAND --help tells more of each. Results go to stdout, as JSON with --json; warnings go to "
            "stderr. The exit code is 0, 2 for wrong use or unusable data, with a sentence that says what to do, and "
            "130 if it was interrupted.",
        ),
        examples=(
            ("see it at work on data that come with it", "priorshift demo"),
            ("estimate the share of positives in target.csv, where it is about a fifth in the source",
             "priorshift estimate --positive positive.csv --unlabeled unlabeled.csv --target target.csv "
             "--source-prior 0.2"),
            ("ask whether that number may be believed",
             "priorshift diagnose --positive positive.csv --unlabeled unlabeled.csv --target target.csv "
             "--source-prior 0.2"),
            ("write all of it on a page",
             "priorshift report --positive positive.csv --unlabeled unlabeled.csv --target target.csv "
             "--source-prior 0.2 -o report.html"),
        ),
    )  # fmt: skip
    made.add_argument("--version", action="version", version=f"priorshift {__version__}")
    commands = made.add_subparsers(required=True, metavar="COMMAND", title="commands")
    for room in (demo, estimate, diagnose, report, app, adapt, sketch, schema, completion, experiment):
        room.add_command(commands)
    made.set_defaults(parser=made)
    return made


def _parsed(given: list[str]) -> argparse.Namespace:
    """The arguments; of what nobody knows, what may have been meant."""
    made = parser()
    if not given:
        made.error("name a command, such as demo or estimate")
    before = list(takewhile(lambda word: word.startswith("-"), given))
    made.refuse_strangers(before)
    command = made.commands.get(given[len(before)]) if len(before) < len(given) else None
    if command is not None:
        command.refuse_strangers(given[len(before) + 1 :])
    return made.parse_args(given, argparse.Namespace(typed=["priorshift", *given]))


def _fail(message: str, code: int = 2) -> int:
    print(painted("priorshift:", RED, sys.stderr), printable(message), file=sys.stderr)
    return code


def _give_up_output() -> None:
    """Let what cannot be printed go nowhere, so that Python does not try again at the end."""
    with suppress(OSError):  # what stands in for standard output may be no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """The library's warnings as sentences on stderr, without the line of code that Python adds."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PriorShiftWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
            if issubclass(category, PriorShiftWarning):
                print(painted("priorshift: warning:", YELLOW, sys.stderr), printable(str(message)), file=sys.stderr)
            else:
                usual(message, category, *rest, **named)

        warnings.showwarning = show
        yield
