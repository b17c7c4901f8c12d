"""`priorshift estimate`, `diagnose`, `report` and `adapt`: what they read, compute, print and write."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.adapt import check_rule, shifted_threshold
from priorshift.api import estimate_strata, estimate_target, estimate_targets
from priorshift.cli import inputs, output
from priorshift.decision_files import (
    DecidedTarget,
    check_names,
    decide_targets,
    fit_to_problem,
    logistic,
    order_of_file,
    write_decided_table,
)
from priorshift.diagnosis.diagnose import diagnose_all_targets, diagnose_target
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.diagnosis.verdict import TABLE_WARNINGS
from priorshift.errors import InputError
from priorshift.formatting import decimals
from priorshift.inference.prior_knowledge import read_prior
from priorshift.io.csv_text import dialect_of
from priorshift.io.files import PARQUET, TEXT, WORKBOOKS, Piped, atomic_write, is_pipe, kind
from priorshift.io.workbooks import write_workbook
from priorshift.methods.nnpu import NNPUClassifier
from priorshift.plots import displays_of
from priorshift.prior_estimates import PriorEstimates
from priorshift.report.page import write
from priorshift.results import EMPTY_WIDTH, PriorEstimate
from priorshift.shifted_classifier import ShiftedClassifier
from priorshift.warning_records import record_warnings

FAILED = 3  # exit code if a verdict is as bad as --fail-on
_FAILING = {"no": ("no", "no estimate"), "care": ("no", "no estimate", "with care", "few positives")}


def run(args: argparse.Namespace) -> int:
    """Run `priorshift estimate`: estimate the target prior of one or several targets, or of strata, and print it."""
    _check_outputs(args)
    estimator, problem = inputs.make_estimator(args), inputs.read_problem(args)
    if args.plot and problem.kind != "rows":
        raise InputError("--plot needs rows in memory; remove it, or pass tables that fit into memory.")
    if args.stratify is not None:
        return _show(args, estimate_strata(problem, estimator))
    if inputs.has_several(args):
        return _show(args, estimate_targets(problem, estimator))
    return _show(args, estimate_target(problem, estimator, is_auto=args.method == "auto"))


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
    write(result, args.page, title=args.title, command=shlex.join(args.typed))
    if args.json:
        output.print_json(result.to_dict())
        output.print_note(f"report: {args.page}")
        return _exit_code(args, result)
    if isinstance(result, Diagnosis):
        output.print_verdict(result.verdict)
    output.print_result(result.estimate if isinstance(result, Diagnosis) else result)
    print(f"report: {output.describe_report(args.page)}")
    return _exit_code(args, result)


def _status(estimate: PriorEstimate) -> str | None:
    """Return the status of an estimate; without a value, or with nearly every prior possible, there is no estimate."""
    is_empty = estimate.interval is not None and estimate.interval.width > EMPTY_WIDTH
    return "no estimate" if np.isnan(estimate.value) or is_empty else estimate.status


def _exit_code(args: argparse.Namespace, result: PriorEstimate | PriorEstimates | Diagnosis | Diagnoses) -> int:
    """Return 3 if the verdict, or without a diagnosis the status, of a target is as bad as --fail-on; otherwise 0."""
    results: list[Any] = list(result.values()) if isinstance(result, (PriorEstimates, Diagnoses)) else [result]
    answers = [one.verdict.answer if isinstance(one, Diagnosis) else _status(one) for one in results]
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
    if not inputs.has_several(args):
        raise InputError("--output is for several targets; pass more files as --target, or --by, or remove it.")
    output.check_writable("--output", args.output, inputs.input_files(args), (".csv", ".xlsx"))


def _show(args: argparse.Namespace, result: PriorEstimate | PriorEstimates | Diagnosis | Diagnoses) -> int:
    """Print the result, write the table (--output) and the figure (--plot) if requested, and return the exit code."""
    if args.json:
        output.print_json(result.to_dict())
    else:
        output.print_result(result)
    if args.output is not None and isinstance(result, (PriorEstimates, Diagnoses)):
        _write_table(args, result)
    if args.plot is None:
        return _exit_code(args, result)
    if isinstance(result, PriorEstimate):
        displays = list(displays_of(result).values())
        if not displays:
            raise InputError("there is no estimate to draw; remove --plot.")
        output.write_figure(args.plot, displays[-1].plot().ax_)  # of the two by WitnessShift, the mixture
    elif not isinstance(result, Diagnoses):  # --plot with several diagnoses was refused before
        output.write_figure(args.plot, result.plot())
    return _exit_code(args, result)


def _write_table(args: argparse.Namespace, result: PriorEstimates | Diagnoses) -> None:
    """Write the table of several targets as a workbook, or as CSV with the separator and decimal mark of the target."""
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


def _diagnose(args: argparse.Namespace, *, needs_rows: bool = True) -> Diagnosis | Diagnoses | PriorEstimate:
    """Load the tables and diagnose their estimate; `needs_rows=False` only estimates if rows are not in memory."""
    estimator = inputs.make_estimator(args)
    with record_warnings(*TABLE_WARNINGS, show=True) as records:
        problem = inputs.read_problem(args)
    if problem.kind != "rows" and not needs_rows:
        return estimate_target(problem, estimator, is_auto=args.method == "auto")
    diagnose: Any = diagnose_all_targets if inputs.has_several(args) else diagnose_target
    result: Diagnosis | Diagnoses = diagnose(problem, estimator, threshold=args.threshold, records=records)
    return result


def run_adapt(args: argparse.Namespace) -> None:
    """Run `priorshift adapt`: write the target's table with the posterior and the decision of each row."""
    _check_copy(args)
    settings = inputs.estimator_settings(args)
    source_prior = read_prior(settings["source_prior"]).value if "source_prior" in settings else None
    rule = {name: getattr(args, name) for name in ("cost_ratio", "top", "precision", "recall")}
    check_rule(**{f"--{name.replace('_', '-')}": value for name, value in rule.items()})
    if args.target_prior is not None:
        shifted_threshold(0.5, args.target_prior)  # raises InputError for an impossible prior, before any work
    classifier = _classifier(args, source_prior, settings.get("standardize", True))
    estimator = inputs.make_estimator(args, optional=("source_prior",))  # the classifier uses it in any case
    shifted = ShiftedClassifier(classifier, estimator, source_prior=source_prior, random_state=args.random_state)
    problem = inputs.read_problem(args)
    for sample in problem.targets.values():
        check_names(sample.data, str(args.target[0]))
    fit_to_problem(shifted, problem)
    priors = None if args.target_prior is None else dict.fromkeys(problem.targets, args.target_prior)
    posterior, decision, decided = decide_targets(shifted, problem, priors, **rule)
    sheet = inputs.target_sheet(args)
    in_file = order_of_file(args.target[0], args.by, len(posterior), sheet)
    n_formulas = write_decided_table(
        args.output, args.target[0], posterior[in_file], decision[in_file], safe=args.safe_csv, sheet=sheet
    )
    if n_formulas:
        advice = "add --safe-csv if the copy is for a spreadsheet"
        output.print_note(f"{n_formulas} cells of {args.output} look like formulas, as in the target; {advice}.")
    if args.json:
        _print_decided(decided, shifted.source_prior_, args)
        return
    for name, target in decided.items():
        if name:
            print(f"{name}:")
        if target.estimate is None:
            print(f"target prior {_format_share(target.target_prior)} (given)")
        else:
            output.print_result(target.estimate)
            used = _format_share(target.target_prior)
            if used != _format_share(target.estimate.value):
                print(f"decisions use a target prior of {used}, the mean of all that are possible")
        print(target.decisions)
    print(f"written to {args.output}")


def _print_decided(decided: Mapping[str, DecidedTarget], source_prior: float, args: argparse.Namespace) -> None:
    """Print the decisions on one target, or on several by name, as JSON."""
    records: dict[str, Any] = {}
    for name, target in decided.items():
        records[name] = {
            "target_prior": target.target_prior, "source_prior": source_prior, **target.decisions.to_dict(),
            "output": args.output, "estimate": target.estimate and target.estimate.to_dict(),
        }  # fmt: skip
    output.print_json(records[""] if args.by is None else {"by": args.by, "targets": records})


def _check_copy(args: argparse.Namespace) -> None:
    """Raise InputError, before any work, if the copy of the target cannot be written or would overwrite an input."""
    target = args.target[0]
    # endings of the target's format; a pipe is text, and a file without a known ending may be of any format
    endings = TEXT if target == "-" or is_pipe(target) else kind(target) or (*TEXT, *PARQUET)
    if endings == WORKBOOKS:
        endings = (".xlsx", *TEXT)
    output_endings = kind(args.output)
    if output_endings is None or Path(args.output).suffix.lower() not in (*endings, ".gz"):
        raise InputError(f"--output {args.output} must end in {' or '.join(endings)}, as the target does; rename it.")
    output.check_writable("--output", args.output, inputs.input_files(args))
    if args.safe_csv and output_endings in (PARQUET, WORKBOOKS):
        raise InputError("--safe-csv is for CSV files; in Excel and Parquet files text is never a formula; remove it.")


def _classifier(args: argparse.Namespace, source_prior: float | None, standardize: bool) -> Any:
    """Return the unfitted classifier of --classifier: nnPU by default if torch is installed, or logistic regression."""
    if args.classifier == "nnpu":
        inputs.check_torch("--classifier nnpu", "use --classifier logistic")
    if args.classifier != "logistic":
        if find_spec("torch"):
            if args.classifier is None:
                output.print_note("the classifier is nnpu; --classifier logistic is faster.")
            return NNPUClassifier(source_prior, scenario=args.scenario or "case-control", standardize=standardize)
        output.print_note('the classifier is logistic; for nnpu, run pip install "priorshift[torch]".')
    return logistic(scale=standardize)


def _format_share(value: float) -> str:
    """Format a share in [0, 1] with the decimals that its distance from 0 or 1 requires."""
    return f"{value:.{decimals(min(value, 1 - value))}f}"
