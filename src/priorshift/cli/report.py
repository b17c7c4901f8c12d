"""`priorshift report`: a page of the answer, and of whether it may be believed."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any

from priorshift.cli.diagnose import add_diagnosis, diagnosed
from priorshift.cli.estimate import estimated_without_rows, has_no_rows
from priorshift.cli.options import add_output
from priorshift.cli.output import check_writable, print_answer, print_json, print_result
from priorshift.cli.parser import OUTPUT, TABLES
from priorshift.diagnosis.diagnosis import Diagnosis
from priorshift.report.page import check_ending, check_extra, write


def add_command(commands: Any) -> None:
    """Add it to the parser."""
    command = commands.add_parser(
        "report",
        usage="priorshift report --positive FILE --unlabeled FILE --target FILE -o FILE.html ...\n"
        "       priorshift report --source FILE --label-column NAME --target FILE -o FILE.html ...",
        help="write a page of the estimate, whether to believe it, and what to do next",
        description="Write one HTML file that can be forwarded and printed: the answer in a sentence, whether it may "
        "be believed, pictures, what was done with each column, and what to do next. It has no script and asks nothing "
        "of any network.",
        words=(
            "Tables are CSV, TSV or Parquet files with the same columns. Of sketches, histograms and files that do not "
            "fit into memory the page has the estimate alone.",
        ),
        examples=(
            ("a page of one target",
             "priorshift report --positive positive.csv --unlabeled unlabeled.csv --target target.csv "
             "--source-prior 0.2 -o report.html"),
            ("a series of months, with a heading of your own",
             "priorshift report --positive positive.csv --unlabeled unlabeled.csv --target months.csv --by month "
             "--source-prior 0.2 --title 'Infections by month' -o months.html"),
        ),
    )  # fmt: skip
    add_diagnosis(command)
    command.group(TABLES).add_argument(
        "--stream",
        action="store_true",
        help="read the files in batches, whatever their size; very large ones always are",
    )
    add_output(command)
    add = command.group(OUTPUT).add_argument
    add("-o", "--output", dest="page", metavar="FILE", required=True, help="the page to write (.html)")
    add("--title", metavar="WORDS", help="heading of the page")
    # what estimates without rows look for, and a page has no use for
    command.set_defaults(run=_run, plot=None, output=None, stratify=None)


def check_page(option: str, path: str, inputs: tuple[str | None, ...] = ()) -> None:
    """Before any work: can the page be made and written?"""
    check_ending(path, option)
    check_writable(option, path, inputs)
    check_extra()


def _run(args: argparse.Namespace) -> None:
    check_page("--output", args.page, (args.positive, args.unlabeled, args.source, *args.target))
    found: Any = estimated_without_rows(args) if has_no_rows(args) else diagnosed(args)
    write(found, args.page, title=args.title, command=shlex.join(args.typed))
    if args.json:
        print_json(found.to_dict())
        print(f"priorshift: report: {args.page}", file=sys.stderr)
        return
    if isinstance(found, Diagnosis):
        print_answer(found)
    else:
        print_result(found)
    print(f"report: {args.page} (open it in a browser)")
