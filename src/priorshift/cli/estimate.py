"""`priorshift estimate`, `diagnose` and `report`: what they read, compute, print and write."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.api import (
    estimate_classes,
    estimate_classes_of_targets,
    estimate_strata,
    estimate_target,
    estimate_targets,
)
from priorshift.class_priors import ClassPriors
from priorshift.class_priors_by_target import ClassPriorsByTarget
from priorshift.cli import inputs, output
from priorshift.cli.output import Result
from priorshift.diagnosis.class_targets import ClassDiagnoses, diagnose_classes, diagnose_classes_of_targets
from priorshift.diagnosis.classes import ClassDiagnosis
from priorshift.diagnosis.diagnose import diagnose_all_targets, diagnose_target
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.diagnosis.verdict import TABLE_WARNINGS
from priorshift.errors import InputError, WeakSeparationWarning
from priorshift.formatting import decimals
from priorshift.io.csv_text import dialect_of
from priorshift.io.files import TEXT, WORKBOOKS, Piped, atomic_write, kind
from priorshift.io.workbook_writer import write_workbook
from priorshift.named_results import NamedResults
from priorshift.plots import class_shares, displays_of
from priorshift.prior_estimates import PriorEstimates
from priorshift.problem import Problem
from priorshift.report.page import write
from priorshift.results import EMPTY_WIDTH, PriorEstimate
from priorshift.warning_records import record_warnings, warn

FAILED = 3  # exit code if a verdict is as bad as --fail-on
UNNAMED = "options name classes, but the labelled positives have none; pass --positive NAME=FILE."
Diagnosed = Diagnosis | Diagnoses | ClassDiagnosis | ClassDiagnoses
_NO_TABLE = "--output is for several targets; pass more files as --target, or --by, or remove it."
_FAILING = {"no": ("no", "no estimate"), "care": ("no", "no estimate", "with care", "few positives")}


def run(args: argparse.Namespace) -> int:
    """Run `priorshift estimate`: estimate the target prior of one or several targets, or of strata, and print it.

    If classes are named, in the options or in a column of labels, their shares are estimated.
    """
    _check_outputs(args)
    estimator = None if inputs.states_classes(args) else inputs.make_estimator(args)
    problem = inputs.read_problem(args)
    if problem.class_names:
        return _show(args, _estimate_classes(args, problem))
    if estimator is None:
        raise InputError(UNNAMED)
    if args.output is not None and not inputs.has_several(args):
        raise InputError(_NO_TABLE)
    if args.plot and problem.kind != "rows":
        raise InputError("--plot needs rows in memory; remove it, or pass tables that fit into memory.")
    if args.stratify is not None:
        return _show(args, estimate_strata(problem, estimator))
    if inputs.has_several(args):
        return _show(args, estimate_targets(problem, estimator))
    return _show(args, estimate_target(problem, estimator, is_auto=args.method == "auto"))


def _estimate_classes(args: argparse.Namespace, problem: Problem) -> ClassPriors | ClassPriorsByTarget:
    """Estimate the shares of the named classes in one target or several."""
    if args.stratify is not None:
        raise InputError("--stratify is not supported with the names of classes; remove it.")
    if args.plot is not None and inputs.has_several(args):
        raise InputError("--plot with the names of classes is for one target; pass one file as --target, or remove it.")
    estimator = inputs.make_class_estimator(args, problem.class_names)
    if inputs.has_several(args):
        return estimate_classes_of_targets(problem, estimator, is_auto=args.method == "auto")
    return estimate_classes(problem, estimator, is_auto=args.method == "auto")


def run_diagnose(args: argparse.Namespace) -> int:
    """Run `priorshift diagnose`: print whether the estimate can be trusted."""
    _check_outputs(args)
    if inputs.has_several(args) and args.plot is not None:
        raise InputError("--plot is for one target; pass one file as --target, or remove --plot.")
    return _show(args, _diagnose(args))


def run_report(args: argparse.Namespace) -> int:
    """Run `priorshift report`: write the report and print the answer.

    Without rows in memory, as for sketches, the report contains the estimate only.
    """
    output.check_report("--output", args.page, inputs.input_files(args))
    result = _diagnose(args, needs_rows=False)
    if isinstance(result, PriorEstimate):
        warn_of_wide_intervals({"": result})
    write(result, args.page, title=args.title, command=shlex.join(args.typed))
    if args.json:
        output.print_json(result.to_dict())
        output.print_note(f"report: {args.page}")
        return _exit_code(args, result)
    if isinstance(result, (Diagnosis, ClassDiagnosis)):
        output.print_verdict(result.verdict)
        output.print_result(result.estimate)
    else:
        output.print_result(result)
    print(f"report: {output.describe_report(args.page)}")
    return _exit_code(args, result)


def _status(estimate: PriorEstimate) -> str | None:
    """Return the status of an estimate; without a value, or with nearly every prior possible, there is no estimate."""
    is_empty = estimate.interval is not None and estimate.interval.width > EMPTY_WIDTH
    return "no estimate" if np.isnan(estimate.value) or is_empty else estimate.status


def warn_of_wide_intervals(results: Mapping[str, PriorEstimate]) -> None:
    """Warn of each interval that contains nearly every prior, so that no estimate is printed; results are by target.

    If the classes cannot be distinguished, the estimator has warned of it.
    """
    for name, estimate in results.items():
        interval, ratios = estimate.interval, estimate.details.get("negative_ratio_interval")
        has_warning = estimate.status == "no estimate" or (ratios is not None and list(ratios) == [0.0, np.inf])
        if interval is None or interval.width <= EMPTY_WIDTH or has_warning:
            continue
        digits, target = decimals(interval.width), f" of target {name!r}" if name else ""
        m, n, n_target = (f"{size:,}" for size in estimate.sizes)
        warn(
            f"The interval{target}, {interval.low:.{digits}f} to {interval.high:.{digits}f}, contains nearly every "
            f"prior, so there is no estimate from {m} positive, {n} unlabelled and {n_target} target rows. Add rows, "
            "or state the source prior more exactly.",
            WeakSeparationWarning,
        )


def _exit_code(args: argparse.Namespace, result: Result) -> int:
    """Return 3 if the verdict, or without a diagnosis the status, of a target is as bad as --fail-on; otherwise 0."""
    results: list[Any] = list(result.values()) if isinstance(result, NamedResults) else [result]
    if isinstance(result, ClassPriorsByTarget):
        results = [estimate for priors in result.values() for estimate in priors.values()]
    is_diagnosed = isinstance(result, (Diagnosis, Diagnoses, ClassDiagnosis, ClassDiagnoses))
    answers = [one.verdict.answer if is_diagnosed else _status(one) for one in results]
    failing = [answer for answer in answers if answer in _FAILING.get(args.fail_on, ())]
    if failing:
        output.print_note(
            f'{len(failing)} of {len(answers)} results: "{failing[0]}", as bad as --fail-on {args.fail_on}.'
        )
    return FAILED if failing else 0


def _check_outputs(args: argparse.Namespace) -> None:
    """Raise InputError, before any work, if the figure (--plot) or the table (--output) cannot be written."""
    output.check_figure(args.plot)
    if args.output is None:
        return
    may_have_classes = inputs.states_classes(args) or (args.takes_classes and args.source and not args.positive_label)
    if not inputs.has_several(args) and not may_have_classes:
        raise InputError(_NO_TABLE)
    output.check_writable("--output", args.output, inputs.input_files(args), (".csv", ".xlsx"))


def _show(args: argparse.Namespace, result: Result) -> int:
    """Print the result, write the table (--output) and the figure (--plot) if requested, and return the exit code."""
    if isinstance(result, (PriorEstimate, PriorEstimates)):
        warn_of_wide_intervals({"": result} if isinstance(result, PriorEstimate) else result)
    if args.json:
        output.print_json(result.to_dict())
    else:
        output.print_result(result)
    if args.output is not None and isinstance(result, NamedResults):
        _write_table(args, result)
    if args.plot is None:
        return _exit_code(args, result)
    if isinstance(result, PriorEstimate):
        displays = list(displays_of(result).values())
        if not displays:
            raise InputError("there is no estimate to draw; remove --plot.")
        output.write_figure(args.plot, displays[-1].plot().ax_)  # of the two by WitnessShift, the mixture
    elif isinstance(result, (ClassPriors, ClassDiagnosis)):
        output.write_figure(args.plot, class_shares(result if isinstance(result, ClassPriors) else result.estimate))
    elif isinstance(result, (PriorEstimates, Diagnosis)):  # --plot with other results was refused before
        output.write_figure(args.plot, result.plot())
    return _exit_code(args, result)


def _write_table(args: argparse.Namespace, result: NamedResults[Any]) -> None:
    """Write the table of several results as a workbook, or as CSV with the separator and decimal mark of the target."""
    target = args.target[0]
    with atomic_write(args.output) as draft:
        if kind(args.output) == WORKBOOKS:
            records = result.records()
            write_workbook(draft, [list(records[0]), *(list(record.values()) for record in records)])
            return
        separator, decimal = ",", "."
        if isinstance(target, Piped) or kind(target) == TEXT:
            separator, decimal = dialect_of(target.content if isinstance(target, Piped) else Path(target))
        draft.write_text(result.to_csv(separator=separator, decimal=decimal), encoding="utf-8", newline="")


def _diagnose(args: argparse.Namespace, *, needs_rows: bool = True) -> Diagnosed | PriorEstimate:
    """Load the tables and diagnose their estimate; `needs_rows=False` only estimates if rows are not in memory.

    A single class is the problem of positives and unlabelled rows.
    """
    estimator = None if inputs.states_classes(args) else inputs.make_estimator(args)
    with record_warnings(*TABLE_WARNINGS, show=True) as records:
        problem = inputs.read_problem(args)
    if problem.class_names:
        estimator = inputs.make_class_estimator(args, problem.class_names)
    elif estimator is None:
        raise InputError(UNNAMED)
    if len(problem.class_names) > 1:
        if args.threshold is not None:
            raise InputError("--threshold is for one labelled class; compare the intervals with it, and remove it.")
        of_classes: Any = diagnose_classes_of_targets if inputs.has_several(args) else diagnose_classes
        found: Diagnosed = of_classes(problem, estimator, records=records)
        return found
    if problem.kind != "rows" and not needs_rows:
        return estimate_target(problem, estimator, is_auto=args.method == "auto")
    diagnose: Any = diagnose_all_targets if inputs.has_several(args) else diagnose_target
    result: Diagnosed = diagnose(problem, estimator, threshold=args.threshold, records=records)
    return result
