"""`priorshift diagnose`: whether the estimate from a user's tables may be believed."""

from __future__ import annotations

import argparse
from typing import Any

from priorshift.cli.options import add_options, add_output, make_estimator, number
from priorshift.cli.output import check_picture, check_table, print_json, write_picture, write_table
from priorshift.cli.tables import add_tables, read_many_tables, read_tables, told
from priorshift.diagnosis.diagnose import GRAVE, ODD, diagnose_from_tables, diagnose_targets_from_tables
from priorshift.errors import InputError, overheard


def add_command(commands: Any) -> None:
    """Add it to the parser."""
    command = commands.add_parser(
        "diagnose",
        help="ask whether the estimate may be believed, what speaks against it, and what would make it surer",
        description="May I publish this number? Tests of the assumptions, what the estimate is sensitive to, and how "
        "many more rows would make it surer.",
        epilog="Tables are CSV, TSV or Parquet files with the same columns.",
    )
    add_tables(command, several_targets=True)
    command.add_argument(
        "--threshold", metavar="PRIOR", type=number,
        help="a target prior that matters: ask how sure it is on which side of it the target lies (default: the "
        "source's prior)")  # fmt: skip
    add_options(command, only="witness")
    add_output(command, picture=True)
    command.add_argument("--output", metavar="FILE", help="write the table of several targets as a CSV file")
    command.set_defaults(run=_run, method="auto")


def _run(args: argparse.Namespace) -> None:
    check_picture(args.plot)
    _, estimator = make_estimator(args)
    if args.by is not None or len(args.target) > 1:
        check_table(args.output, [f for f in (args.positive, args.unlabeled, args.source, *args.target) if f])
        if args.plot is not None:
            raise InputError("--plot is for one target; pass one file as --target, or leave --plot out.")
        with overheard(*ODD, *GRAVE) as odd:
            tables = read_many_tables(args)
        several = diagnose_targets_from_tables(
            estimator, *tables, by=args.by, told=told(args), threshold=args.threshold, said=odd
        )
        print_json(several.to_dict()) if args.json else print(several)
        return write_table(args.output, several.to_csv())
    if args.output is not None:
        raise InputError("--output is for several targets; pass more files as --target, or --by.")
    [args.target] = args.target
    with overheard(*ODD, *GRAVE) as odd:
        one = read_tables(args)
    found = diagnose_from_tables(estimator, *one, told=told(args), threshold=args.threshold, said=odd)
    print_json(found.to_dict()) if args.json else print(found)
    return write_picture(args.plot, found.plot)
