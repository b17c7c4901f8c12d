"""`priorshift report`: a page of the answer, and of whether it may be believed."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any

from priorshift.cli.diagnose import diagnosed
from priorshift.cli.output import check_writable, print_json, print_result, print_verdict
from priorshift.diagnosis.diagnosis import Diagnosis
from priorshift.report.page import check_ending, check_extra, write


def check_page(option: str, path: str, inputs: tuple[str | None, ...] = ()) -> None:
    """Before any work: can the page be made and written?"""
    check_ending(path, option)
    check_writable(option, path, inputs)
    check_extra()


def run(args: argparse.Namespace) -> None:
    """Write the report and print the answer."""
    check_page("--output", args.page, (args.positive, args.unlabeled, args.source, *args.target))
    found: Any = diagnosed(args, or_estimated=True)
    write(found, args.page, title=args.title, command=shlex.join(args.typed))
    if args.json:
        print_json(found.to_dict())
        print(f"priorshift: report: {args.page}", file=sys.stderr)
        return
    if isinstance(found, Diagnosis):
        print_verdict(found)
    else:
        print_result(found)
    print(f"report: {args.page} (open it in a browser)")
