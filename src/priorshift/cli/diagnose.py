"""`priorshift diagnose`: whether the estimate from a user's tables may be believed."""

from __future__ import annotations

import argparse
from typing import Any

from priorshift.api import estimate_target, estimator_for
from priorshift.cli.inputs import has_several, make_estimator, read_problem
from priorshift.cli.output import check_figure, check_table, print_json, print_result, write_figure, write_table
from priorshift.diagnosis.diagnose import diagnose_all_targets, diagnose_target
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.diagnosis.verdict import TABLE_WARNINGS
from priorshift.errors import InputError
from priorshift.results import PriorEstimate
from priorshift.warning_records import record_warnings


def diagnosed(args: argparse.Namespace, *, or_estimated: bool = False) -> Diagnosis | Diagnoses | PriorEstimate:
    """Load the problem that the options name, and diagnose it; without rows, it may be estimated instead."""
    estimator = make_estimator(args)
    with record_warnings(*TABLE_WARNINGS, show=True) as records:
        problem = read_problem(args)
    if or_estimated and problem.kind != "rows":
        return estimate_target(problem, estimator_for(problem, estimator, args.method))
    solve: Any = diagnose_all_targets if has_several(args) else diagnose_target
    return solve(problem, estimator, threshold=args.threshold, records=records)


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
    return write_figure(args.plot, found.plot)  # type: ignore[union-attr]
