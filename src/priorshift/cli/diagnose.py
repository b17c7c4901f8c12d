"""`priorshift diagnose`: whether the estimate from a user's tables may be believed."""

from __future__ import annotations

import argparse
from typing import Any

from priorshift.cli.options import add_options, add_output, make_estimator, number
from priorshift.cli.output import check_picture, check_table, print_json, print_result, write_picture, write_table
from priorshift.cli.parser import METHOD, OUTPUT
from priorshift.cli.tables import add_tables, read_many_tables, read_tables, told
from priorshift.diagnosis.diagnose import GRAVE, ODD, diagnose_from_tables, diagnose_targets_from_tables
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.errors import InputError
from priorshift.warning_records import record_warnings


def add_command(commands: Any) -> None:
    """Add it to the parser."""
    command = commands.add_parser(
        "diagnose",
        usage="priorshift diagnose --positive FILE --unlabeled FILE --target FILE ...\n"
        "       priorshift diagnose --source FILE --label-column NAME --target FILE ...",
        help="ask whether the estimate may be believed, what speaks against it, and what would make it surer",
        description="May I publish this number? Tests of the assumptions, what the estimate is sensitive to, and how "
        "many more rows would make it surer.",
        words=("Tables are CSV, TSV or Parquet files with the same columns.",),
        examples=(
            ("may the estimate from three tables be published",
             "priorshift diagnose --positive positive.csv --unlabeled unlabeled.csv --target target.csv "
             "--source-prior 0.2"),
            ("is the target prior above a tenth, for sure",
             "priorshift diagnose --source source.csv --label-column labeled --target target.csv --source-prior 0.2 "
             "--threshold 0.1 --json"),
            ("each month of one table, by its column month",
             "priorshift diagnose --positive positive.csv --unlabeled unlabeled.csv --target months.csv --by month "
             "--source-prior 0.2 --output verdicts.csv"),
        ),
    )  # fmt: skip
    add_diagnosis(command)
    add_output(command, picture=True)
    command.group(OUTPUT).add_argument(
        "-o", "--output", metavar="FILE", help="write the table of several targets as a CSV file"
    )
    command.set_defaults(run=_run)


def add_diagnosis(command: Any) -> None:
    """Options of what is diagnosed, and how."""
    add_tables(command, several_targets=True)
    add_options(command, only="witness")
    command.group(METHOD).add_argument(
        "--threshold", metavar="PRIOR", type=number,
        help="a target prior that matters: ask how sure it is on which side of it the target lies (default: the "
        "source's prior)")  # fmt: skip
    command.set_defaults(method="auto")


def has_several(args: argparse.Namespace) -> bool:
    """Whether the options name more than one target."""
    return args.by is not None or len(args.target) > 1


def diagnosed(args: argparse.Namespace) -> Diagnosis | Diagnoses:
    """What the options ask for."""
    _, estimator = make_estimator(args)
    more: dict[str, Any] = {"told": told(args), "threshold": args.threshold}
    if has_several(args):
        with record_warnings(*ODD, *GRAVE, show=True) as odd:
            several = read_many_tables(args)
        return diagnose_targets_from_tables(estimator, *several, by=args.by, said=odd, **more)
    [args.target] = args.target
    with record_warnings(*ODD, *GRAVE, show=True) as odd:
        one = read_tables(args)
    return diagnose_from_tables(estimator, *one, said=odd, **more)


def _run(args: argparse.Namespace) -> None:
    check_picture(args.plot)
    if has_several(args):
        check_table(args.output, [f for f in (args.positive, args.unlabeled, args.source, *args.target) if f])
        if args.plot is not None:
            raise InputError("--plot is for one target; pass one file as --target, or leave --plot out.")
    elif args.output is not None:
        raise InputError("--output is for several targets; pass more files as --target, or --by.")
    found = diagnosed(args)
    print_json(found.to_dict()) if args.json else print_result(found)
    if isinstance(found, Diagnoses):
        return write_table(args.output, found.to_csv())
    return write_picture(args.plot, found.plot)
