"""`priorshift experiment`: the studies of the checkout that the package was installed from.

They are no part of the package: they import it as a user would. Nothing is imported from the working directory or its
parents, which may be a stranger's.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from priorshift.errors import InputError

_CHECKOUT = Path(__file__).resolve().parents[3]  # of src/priorshift/cli, where the package was installed editable


def add_command(commands: Any) -> None:
    """Add it to the parser."""
    command = commands.add_parser(
        "experiment", help="run, tabulate and draw the paper's experiments (in the repository)", add_help=False
    )
    command.add_argument("rest", nargs=argparse.REMAINDER)
    command.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if not all((_CHECKOUT / part).exists() for part in ("pyproject.toml", "experiments/grids.py", "src/priorshift")):
        raise InputError(
            "the experiments are part of the repository and not of the installed package; clone it, install it from "
            "there (pip install --editable .) and run this again."
        )
    sys.path.insert(0, str(_CHECKOUT))
    main: Callable[[Sequence[str]], int] = importlib.import_module("experiments.__main__").main
    return main([word for word in args.rest if word != "--"])
