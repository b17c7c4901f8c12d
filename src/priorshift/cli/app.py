"""`priorshift app`: a page in the browser, for those who type no commands."""

from __future__ import annotations

import argparse
from typing import Any

from priorshift.app.uploads import Limits
from priorshift.errors import InputError


def add_command(commands: Any) -> None:
    """Add it to the parser."""
    command = commands.add_parser(
        "app",
        help="open a page in the browser: choose files, press a button, read the report",
        description="Serve a page on this computer where files are chosen and the report is read. Nothing leaves the "
        "computer, and what was uploaded is deleted when the app ends (Ctrl-C).",
        examples=(
            ("open the page", "priorshift app"),
            (
                "at a port of your choice, for a browser that you open yourself",
                "priorshift app --port 8000 --no-browser",
            ),
        ),
    )
    add = command.add_argument
    add("--port", metavar="N", type=int, default=0, help="where to listen (default: a free port)")
    add("--no-browser", action="store_true", help="print the address, and open no browser")
    add("--max-rows", metavar="N", type=_count, help=f"of a file (default: {Limits.rows:,})")
    add("--max-bytes", metavar="N", type=_count, help=f"of a file, packed or unpacked (default: {Limits.bytes:,})")
    add("--time-limit", metavar="SECONDS", type=_count, help=f"of a job (default: {Limits.seconds:g})")
    add("--host", metavar="ADDRESS", default="127.0.0.1",
        help="where to listen; any but this computer's own 127.0.0.1 needs --expose-to-network")  # fmt: skip
    add("--expose-to-network", action="store_true",
        help="listen at --host, so that everybody who can reach this computer and has the address can use the app and "
        "read what is uploaded, and whoever listens on the way can too: there is no encryption")  # fmt: skip
    command.set_defaults(run=_run)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def _run(args: argparse.Namespace) -> None:
    from priorshift.app.serve import serve

    if not 0 <= args.port < 65536:
        raise InputError(f"--port {args.port} is no port; pass a number from 1 to 65535, or leave it out.")
    given = {"rows": args.max_rows, "bytes": args.max_bytes, "seconds": args.time_limit}
    limits = Limits(**{name: value for name, value in given.items() if value is not None})
    where = {"host": args.host, "port": args.port, "exposed": args.expose_to_network}
    serve(limits, _announce, **where, browser=not args.no_browser)
    print("priorshift app has ended; what was uploaded is deleted.")


def _announce(address: str) -> None:
    print(f"priorshift app: {address}")
    print("Open this address in a browser. Ctrl-C ends the app and deletes what was uploaded.", flush=True)
