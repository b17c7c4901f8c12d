"""`priorshift estimate`: the target prior from a user's tables."""

from __future__ import annotations

import argparse
from typing import Any

from priorshift.cli.options import add_options, add_output, make_estimator
from priorshift.cli.output import check_picture, print_json, write_picture
from priorshift.cli.tables import add_tables, read_tables, shared_rows
from priorshift.estimate import estimate_from_tables


def add_command(commands: Any) -> None:
    """Add it to the parser."""
    command = commands.add_parser(
        "estimate",
        help="estimate the target prior from your tables",
        description="Estimate the share of positives in the target population.",
        epilog="Tables are CSV, TSV or Parquet files with the same numeric columns.",
    )
    add_tables(command)
    add_options(command)
    add_output(command, picture=True)
    command.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    check_picture(args.plot)
    method, estimator = make_estimator(args)
    estimate = estimate_from_tables(estimator, *read_tables(args), shared=shared_rows(args), audit=args.audit_column)
    if args.json:
        print_json(estimate.to_dict())
    else:
        print(estimate)
    write_picture(args.plot, lambda: method.picture(estimator, estimate))
