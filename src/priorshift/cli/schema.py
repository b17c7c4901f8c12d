"""`priorshift schema`: the JSON Schema of what a command prints with ``--json``."""

from __future__ import annotations

import argparse
import json
from importlib import resources
from typing import Any

from priorshift.cli.parser import OUTPUT

NAMES = ("estimate", "diagnose", "report", "adapt", "sketch", "demo")
URN = "urn:priorshift:schema:"


def add_command(commands: Any) -> None:
    """Add it to the parser."""
    command = commands.add_parser(
        "schema",
        help="print the JSON Schema of what a command prints with --json",
        description="Print a JSON Schema (draft 2020-12) of what a command of this version prints with --json, with "
        "what every field means. It stands alone: what it refers to is inside.",
        examples=(
            ("what does each field of an estimate mean", "priorshift schema estimate"),
            ("keep it for a validator", "priorshift schema diagnose > diagnose.schema.json"),
        ),
    )
    command.group(OUTPUT).add_argument(
        "name", metavar="NAME", choices=NAMES, help=f"of the command: {', '.join(NAMES)} (sketch prints JSON always)"
    )
    command.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    print(json.dumps(schema(args.name), ensure_ascii=False, indent=2))


def schema(name: str) -> dict[str, Any]:
    """That of a command, with those that it refers to among its definitions."""
    made = _read(name)
    for urn in sorted(_others(made, set())):
        other = urn.removeprefix(URN)
        made.setdefault("$defs", {})[other] = _read(other)
    return made


def _read(name: str) -> dict[str, Any]:
    text = (resources.files("priorshift") / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    made: dict[str, Any] = json.loads(text)
    return made


def _others(part: Any, seen: set[str]) -> set[str]:
    """Names of schemas that are referred to, also by those that are referred to."""
    if isinstance(part, dict):
        urn = str(part.get("$ref", "")).partition("#")[0]
        if urn and urn not in seen:
            seen.add(urn)
            _others(_read(urn.removeprefix(URN)), seen)
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _others(inner, seen)
    return seen
