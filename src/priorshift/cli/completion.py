"""`priorshift completion`: the script by which a shell completes commands, options, choices and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from priorshift.cli.output import PICTURES
from priorshift.cli.parser import OUTPUT, Parser
from priorshift.errors import MissingExtraError
from priorshift.io.files import PARQUET, TEXT
from priorshift.report.page import ENDINGS

# Where shells look for such scripts by themselves; zsh in every folder of $fpath.
_FILES = {
    "bash": "~/.local/share/bash-completion/completions/priorshift",
    "zsh": "~/.zfunc/_priorshift",
    "fish": "~/.config/fish/completions/priorshift.fish",
}
_TABLES = (*TEXT, *(f"{ending}.gz" for ending in TEXT), *PARQUET)
_ENDINGS = {
    "positive": _TABLES,
    "unlabeled": _TABLES,
    "source": _TABLES,
    "target": _TABLES,
    "plot": PICTURES,
    "page": ENDINGS,
    "report": ENDINGS,
}


def add_command(commands: Any) -> None:
    """Add it to the parser."""
    command = commands.add_parser(
        "completion",
        help="print the script by which your shell completes commands, options and files",
        description="Print the script by which a shell completes commands, options, choices and files (with the extra "
        "completion). Begin a new shell afterwards.",
        examples=[(f"in {shell}", f"priorshift completion {shell} > {file}") for shell, file in _FILES.items()],
    )
    command.group(OUTPUT).add_argument("shell", metavar="SHELL", choices=tuple(_FILES), help=" or ".join(_FILES))
    command.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    print(script(args.parser, args.shell))


def script(parser: Parser, shell: str) -> str:
    """What the shell is to read."""
    try:
        import shtab
    except ImportError:
        raise MissingExtraError(
            'completion needs shtab, which is not installed; run pip install "priorshift[completion]".'
        ) from None
    for option in _files(parser):
        endings = _ENDINGS.get(option.dest)
        option.complete = shtab.glob(*(f"*{ending}" for ending in endings)) if endings else shtab.FILE
    made: str = shtab.complete(parser, shell)
    return made


def _files(parser: Parser) -> Iterator[Any]:
    """Options of all commands that name a file."""
    for command in parser.commands.values():
        yield from (option for option in command.options if option.metavar == "FILE")
