"""`priorshift estimate`: the target prior from a user's tables."""

from __future__ import annotations

import argparse
from typing import Any

from sklearn.base import clone

from priorshift.cli.options import add_options, add_output, make_estimator
from priorshift.cli.output import check_picture, check_table, print_json, write_picture, write_table
from priorshift.cli.tables import add_tables, read_many_tables, read_stratified_tables, read_tables, told
from priorshift.errors import InputError
from priorshift.estimate import estimate_from_tables, estimate_without_rows
from priorshift.estimates import estimate_strata, estimate_targets
from priorshift.input.files import is_pipe
from priorshift.sketch.any_size import is_summary, needs_batches


def add_command(commands: Any) -> None:
    """Add it to the parser."""
    command = commands.add_parser(
        "estimate",
        help="estimate the target prior from your tables",
        description="Estimate the share of positives in the target population.",
        epilog="Tables are CSV, TSV or Parquet files with the same columns; a sample may also be a folder of Parquet "
        "files, or what priorshift sketch made of one.",
    )
    add_tables(command, several_targets=True, strata=True)
    add_options(command)
    add_output(command, picture=True)
    command.add_argument(
        "--output", metavar="FILE", help="write the table of several targets, or of strata, as a CSV file"
    )
    command.add_argument(
        "--stream",
        action="store_true",
        help="read the files in batches, whatever their size; very large ones always are",
    )
    command.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    check_picture(args.plot)
    samples = args.positive, args.unlabeled, *args.target
    if args.stream or any(map(is_summary, samples)) or any(map(needs_batches, samples)):
        return _run_without_rows(args)
    if args.stratify is not None or args.by is not None or len(args.target) > 1:
        return _run_many(args)
    if args.output is not None:
        raise InputError("--output is for several targets; pass more files as --target, --by or --stratify.")
    [args.target] = args.target
    method, estimator = make_estimator(args)
    estimate = estimate_from_tables(estimator, *read_tables(args), told=told(args))
    if args.json:
        print_json(estimate.to_dict())
    else:
        print(estimate)
    return write_picture(args.plot, lambda: method.picture(estimator, estimate))


def _run_without_rows(args: argparse.Namespace) -> None:
    """From sketches and histograms, or from files that are read in batches."""
    several = args.stratify is not None or args.by is not None or len(args.target) > 1
    piped = [one for one in (args.positive, args.unlabeled, *args.target) if one == "-" or is_pipe(one)]
    for option, given in (
        ("--plot", args.plot),
        ("--source", args.source),
        ("--output", args.output),
        ("standard input or a pipe", piped),
        ("several targets", several),
    ):
        if given:
            raise InputError(
                f"{option} cannot be had where rows are read in batches or are not there at all; leave it out, or pass "
                "tables that fit into memory."
            )
    if not (args.positive and args.unlabeled):
        raise InputError("pass --positive and --unlabeled, each a file, a sketch or a histogram.")

    def _make(method: str) -> Any:
        args.method = method
        return make_estimator(args)[1]

    estimate = estimate_without_rows(
        _make,
        args.method,
        args.positive,
        args.unlabeled,
        args.target[0],
        told=told(args),
        drop=args.drop,
        encoder=None if args.encoder == "none" else args.encoder,
    )
    if args.json:
        print_json(estimate.to_dict())
    else:
        print(estimate)


def _run_many(args: argparse.Namespace) -> None:
    check_table(args.output, [f for f in (args.positive, args.unlabeled, args.source, *args.target) if f])
    _, estimator = make_estimator(args)
    if args.stratify is not None:
        tables = read_stratified_tables(args)
        estimates = estimate_strata(lambda _: clone(estimator), *tables, by=args.stratify, told=told(args))
    else:
        unlabeled, positive, targets = read_many_tables(args)
        estimates = estimate_targets(estimator, unlabeled, positive, targets, by=args.by, told=told(args))
    if args.json:
        print_json(estimates.to_dict())
    else:
        print(estimates)
        if estimates.joint is not None and len(estimates) > 1:
            print(estimates.equality_test())
    write_table(args.output, estimates.to_csv())
    write_picture(args.plot, estimates.plot)
