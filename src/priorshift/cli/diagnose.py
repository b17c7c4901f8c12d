"""`priorshift diagnose` and `priorshift report`: whether the estimate can be trusted, printed or as a page."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any

from priorshift.api import estimate_target
from priorshift.cli.inputs import has_several, input_files, make_estimator, read_problem
from priorshift.cli.output import (
    check_figure,
    check_report,
    check_table,
    print_json,
    print_result,
    print_verdict,
    write_figure,
    write_table,
)
from priorshift.diagnosis.diagnose import diagnose_all_targets, diagnose_target
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.diagnosis.verdict import TABLE_WARNINGS
from priorshift.errors import InputError
from priorshift.problem import Problem
from priorshift.report.page import write
from priorshift.results import PriorEstimate
from priorshift.warning_records import WarningRecord, record_warnings


def run(args: argparse.Namespace) -> None:
    """Print whether the estimate can be trusted."""
    check_figure(args.plot)
    if has_several(args):
        check_table(args.output, input_files(args))
        if args.plot is not None:
            raise InputError("--plot is for one target; pass one file as --target, or remove --plot.")
    elif args.output is not None:
        raise InputError("--output is for several targets; pass more files as --target, or --by, or remove it.")
    estimator = make_estimator(args)
    result = _diagnose(args, estimator, *_load(args))
    print_json(result.to_dict()) if args.json else print_result(result)
    if isinstance(result, Diagnoses):
        return write_table(args.output, result.to_csv())
    return write_figure(args.plot, result.plot)


def run_report(args: argparse.Namespace) -> None:
    """Write the report and print the answer; without rows in memory, the report contains the estimate only."""
    check_report("--output", args.page, input_files(args))
    estimator = make_estimator(args)
    problem, records = _load(args)
    result: Diagnosis | Diagnoses | PriorEstimate
    if problem.kind == "rows":
        result = _diagnose(args, estimator, problem, records)
    else:
        result = estimate_target(problem, estimator, is_auto=args.method == "auto")
    write(result, args.page, title=args.title, command=shlex.join(args.typed))
    if args.json:
        print_json(result.to_dict())
        print(f"priorshift: report: {args.page}", file=sys.stderr)
        return
    if isinstance(result, Diagnosis):
        print_verdict(result)
    else:
        print_result(result)
    print(f"report: {args.page} (open it in a browser)")


def _load(args: argparse.Namespace) -> tuple[Problem, list[WarningRecord]]:
    """Load the problem, and record the warnings that matter to a diagnosis."""
    with record_warnings(*TABLE_WARNINGS, show=True) as records:
        return read_problem(args), records


def _diagnose(
    args: argparse.Namespace, estimator: Any, problem: Problem, records: list[WarningRecord]
) -> Diagnosis | Diagnoses:
    diagnose: Any = diagnose_all_targets if has_several(args) else diagnose_target
    result: Diagnosis | Diagnoses = diagnose(problem, estimator, threshold=args.threshold, records=records)
    return result
