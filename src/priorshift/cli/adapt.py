"""`priorshift adapt`: decisions on the rows of a target, for positives or for several classes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from priorshift.adapt import check_rule, shifted_threshold
from priorshift.api import fit_source, with_columns_of_classes
from priorshift.class_decisions import read_costs
from priorshift.class_source import REST
from priorshift.cli import inputs, output
from priorshift.cli.estimate import warn_of_wide_intervals
from priorshift.cli.options import ByClass
from priorshift.decision_files import (
    ADDED_COLUMNS,
    DecidedColumns,
    DecidedTarget,
    check_names,
    class_columns,
    decide_class_targets,
    decide_targets,
    decided_columns,
    fit_to_problem,
    logistic,
    order_of_file,
    write_decided_table,
)
from priorshift.errors import InputError
from priorshift.formatting import decimals
from priorshift.inference.prior_knowledge import read_prior
from priorshift.io.files import PARQUET, TEXT, WORKBOOKS, FileVersion, is_pipe, kind
from priorshift.methods.nnpu import NNPUClassifier
from priorshift.problem import Problem
from priorshift.shifted_classifier import ShiftedClassifier

_RULES = ("cost_ratio", "top", "precision", "recall")


def run(args: argparse.Namespace) -> None:
    """Run `priorshift adapt`: write the target's table with the posterior and the decision of each row."""
    _check_copy(args)
    shifted = None
    if inputs.states_classes(args):
        _check_class_options(args)
    else:
        shifted = _shifted_classifier(args)
    # the target is read again when it is copied
    version = FileVersion.from_path(args.target[0], f"--target ({args.target[0]})")
    problem = inputs.read_problem(args)
    if shifted is None or problem.class_names:
        _decide_classes(args, problem, version)
    else:
        _decide_positives(args, problem, shifted, version)


def _decide_classes(args: argparse.Namespace, problem: Problem, version: FileVersion | None) -> None:
    """Decide to which of the named classes each row belongs."""
    _check_class_options(args)
    if len(problem.class_names) < 2:
        raise InputError(
            "decisions on named classes need at least two of them; pass --positive NAME=FILE for each, or --positive "
            "FILE for one."
        )
    estimator = inputs.make_class_estimator(args, problem.class_names)
    classes = [*problem.class_names, *([REST] if problem.rest else [])]
    read_costs(args.cost_ratio or {}, classes, "--cost-ratio")
    _check_target(args, problem, class_columns(classes))
    fitted, priors = fit_source(problem, estimator), {}
    for name, sample in problem.targets.items():
        priors[name] = with_columns_of_classes(problem, fitted.estimate_target(fitted.target_of(sample)))
    columns, decided = decide_class_targets(fitted, problem, priors, args.cost_ratio)
    _write(args, columns, version)
    if args.json:
        records: dict[str, Any] = {
            name: {"output": args.output, "classes": one.decisions.to_dict(), "estimate": one.priors.to_dict()}
            for name, one in decided.items()
        }
        output.print_json(records[""] if args.by is None else {"by": args.by, "targets": records})
        return
    for name, one in decided.items():
        if name:
            print(f"{name}:")
        output.print_result(one.priors)
        print(f"{one.decisions}")
    print(f"written to {args.output}")


def _check_class_options(args: argparse.Namespace) -> None:
    """Refuse options of decisions on positives, before any work."""
    if args.cost_ratio is not None and not isinstance(args.cost_ratio, ByClass):
        raise InputError(
            "--cost-ratio must name its class, as in --cost-ratio flu=20: the cost of an error on a row of this class, "
            "where one on others costs 1."
        )
    for name in ("top", "precision", "recall", "target_prior", "classifier"):
        if getattr(args, name) is not None:
            raise InputError(f"--{name.replace('_', '-')} is for one labelled class; remove it.")
    if args.method not in ("auto", "witness"):
        raise InputError(f"--method {args.method} has no posteriors of several classes; remove it.")


def _shifted_classifier(args: argparse.Namespace) -> ShiftedClassifier:
    """Return the unfitted classifier of positives, with its estimator; refuse wrong options before any work."""
    settings = inputs.estimator_settings(args)
    source_prior = read_prior(settings["source_prior"]).value if "source_prior" in settings else None
    check_rule(**{f"--{name.replace('_', '-')}": getattr(args, name) for name in _RULES})
    if args.target_prior is not None:
        shifted_threshold(0.5, args.target_prior)  # raises InputError for an impossible prior
    classifier = _classifier(args, source_prior, settings.get("standardize", True))
    estimator = inputs.make_estimator(args, optional=("source_prior",))  # the classifier uses it in any case
    return ShiftedClassifier(classifier, estimator, source_prior=source_prior, random_state=args.random_state)


def _decide_positives(
    args: argparse.Namespace, problem: Problem, shifted: ShiftedClassifier, version: FileVersion | None
) -> None:
    """Decide which rows are positive."""
    _check_target(args, problem, ADDED_COLUMNS)
    if args.classifier is None and find_spec("torch"):
        output.print_note("the classifier is nnpu; --classifier logistic is faster.")
    elif args.classifier is None:
        output.print_note('the classifier is logistic; for nnpu, run pip install "priorshift[torch]".')
    fit_to_problem(shifted, problem)
    priors = None if args.target_prior is None else dict.fromkeys(problem.targets, args.target_prior)
    rule = {name: getattr(args, name) for name in _RULES}
    posterior, decision, decided = decide_targets(shifted, problem, priors, **rule)
    _write(args, decided_columns(posterior, decision), version)
    warn_of_wide_intervals({name: one.estimate for name, one in decided.items() if one.estimate is not None})
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


def _check_target(args: argparse.Namespace, problem: Problem, added: tuple[str, ...]) -> None:
    """Refuse samples without rows, and a target that already has one of the columns to be added."""
    if problem.kind != "rows":
        raise InputError("adapt decides on rows, which sketches and histograms do not contain; pass three tables.")
    for sample in problem.targets.values():
        check_names(sample.data, str(args.target[0]), added)


def _write(args: argparse.Namespace, columns: DecidedColumns, version: FileVersion | None) -> None:
    """Write the copy of the target's file with further columns, whose rows are in the order of the targets."""
    sheet, first = inputs.target_sheet(args), next(iter(columns.values()))
    in_file = order_of_file(args.target[0], args.by, len(first), sheet, version)
    n_formulas = write_decided_table(
        args.output, args.target[0], {name: values[in_file] for name, values in columns.items()}, safe=args.safe_csv,
        sheet=sheet, version=version,
    )  # fmt: skip
    if n_formulas:
        advice = "add --safe-csv if the copy is for a spreadsheet"
        output.print_note(f"{n_formulas} cells of {args.output} look like formulas, as in the target; {advice}.")


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
    if args.classifier != "logistic" and find_spec("torch"):
        return NNPUClassifier(source_prior, scenario=args.scenario or "case-control", standardize=standardize)
    return logistic(scale=standardize)


def _format_share(value: float) -> str:
    """Format a share in [0, 1] with the decimals that its distance from 0 or 1 requires."""
    return f"{value:.{decimals(min(value, 1 - value))}f}"
