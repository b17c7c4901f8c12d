"""`priorshift diagnose`: whether the estimate from a user's tables may be believed."""

from __future__ import annotations

import argparse
from typing import Any

from priorshift.cli.inputs import make_estimator, read_many_tables, read_tables, told
from priorshift.cli.output import check_figure, check_table, print_json, print_result, write_figure, write_table
from priorshift.diagnosis.diagnose import GRAVE, ODD, diagnose_from_tables, diagnose_targets_from_tables
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.errors import InputError
from priorshift.warning_records import record_warnings


def has_several(args: argparse.Namespace) -> bool:
    """Whether the options name more than one target."""
    return args.by is not None or len(args.target) > 1


def diagnosed(args: argparse.Namespace) -> Diagnosis | Diagnoses:
    """What the options ask for."""
    estimator = make_estimator(args)
    more: dict[str, Any] = {"told": told(args), "threshold": args.threshold}
    if has_several(args):
        with record_warnings(*ODD, *GRAVE, show=True) as odd:
            several = read_many_tables(args)
        return diagnose_targets_from_tables(estimator, *several, by=args.by, said=odd, **more)
    [args.target] = args.target
    with record_warnings(*ODD, *GRAVE, show=True) as odd:
        one = read_tables(args)
    return diagnose_from_tables(estimator, *one, said=odd, **more)


def run(args: argparse.Namespace) -> None:
    """Print whether the estimate can be trusted."""
    check_figure(args.plot)
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
    return write_figure(args.plot, found.plot)
