"""The table that `adapt` writes: whether it can be written is told before any work.

`priorshift adapt`: the target's rows, decided by a classifier that fits its prior."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from priorshift.adapt import shifted_threshold
from priorshift.cli.options import add_options, add_output, check_torch, given, make_estimator, number
from priorshift.cli.output import check_writable, print_json, print_result
from priorshift.cli.parser import KNOWN, METHOD, OUTPUT
from priorshift.cli.tables import add_tables, read_tables, scenario, told
from priorshift.decisions import check_names, decide, fit_to_tables, logistic, write_decided_table
from priorshift.errors import InputError, MissingExtraError
from priorshift.inference.prior_knowledge import read_prior
from priorshift.io.files import PARQUET, TEXT, is_pipe, kind
from priorshift.methods.nnpu import NNPUClassifier
from priorshift.results import decimals
from priorshift.shifted_classifier import ShiftedClassifier


def check_output(output: str, target: str, inputs: Sequence[str | None]) -> None:
    """Before any work: can the copy be written, and would it overwrite one of the inputs?"""
    made, read = kind(output), TEXT if target == "-" or is_pipe(target) else kind(target)
    if made is None or (read is not None and made != read):
        wanted = read or (*TEXT, *PARQUET)
        raise InputError(f"--output {output} must end in {' or '.join(wanted)}, as the target does; name it so.")
    check_writable("--output", output, inputs)


def add_command(commands: Any) -> None:
    """Add it to the parser."""
    command = commands.add_parser(
        "adapt",
        usage="priorshift adapt --positive FILE --unlabeled FILE --target FILE -o FILE ...\n"
        "       priorshift adapt --source FILE --label-column NAME --target FILE -o FILE ...",
        help="classify the rows of the target by a classifier that fits its prior",
        description="Write the target's table with two more columns: the posterior probability of being positive in "
        "the target population, and the decision (1: positive).",
        words=(
            "Tables are CSV, TSV or Parquet files with the same columns. The lines of the target's file are copied as "
            "they are, so that it can be joined on any column; cells that a spreadsheet would take for a formula stay "
            "so too, unless --safe-csv is given.",
        ),
        examples=(
            ("decide for each row of target.csv",
             "priorshift adapt --positive positive.csv --unlabeled unlabeled.csv --target target.csv "
             "--source-prior 0.2 --output decided.csv"),
            ("the target's share is known, the classifier is linear, and the copy is for a spreadsheet",
             "priorshift adapt --positive positive.csv --unlabeled unlabeled.csv --target target.csv "
             "--source-prior 0.2 --target-prior 0.5 --classifier logistic --safe-csv --output decided.csv"),
        ),
    )  # fmt: skip
    add_tables(command)
    command.group(KNOWN).add_argument(
        "--target-prior", metavar="PRIOR", type=number, help="share of positives in the target, if it is known"
    )
    command.group(METHOD).add_argument(
        "--classifier", choices=("nnpu", "logistic"),
        help="nnpu, the default where torch is installed, or logistic, which is linear and needs nothing")  # fmt: skip
    add_options(command)
    add_output(command)
    add = command.group(OUTPUT).add_argument
    add("-o", "--output", metavar="FILE", required=True, help="the table to write, of the target's kind")
    add("--safe-csv", action="store_true",
        help="put an apostrophe before cells of the copy that a spreadsheet would take for a formula")  # fmt: skip
    command.set_defaults(run=_run)


def _share(value: float) -> str:
    """Which may be close to 0 or to 1."""
    return f"{value:.{decimals(min(value, 1 - value))}f}"


def _is_network(classifier: str | None) -> bool:
    """Whether nnPU is asked for, or by default can be had; refused or said before any work."""
    if classifier == "logistic":
        return False
    try:
        check_torch("--classifier nnpu", "use --classifier logistic")
    except MissingExtraError:
        if classifier is not None:
            raise
        print(
            "priorshift: torch is not installed, so the classifier is logistic; "
            'run pip install "priorshift[torch]" for nnpu.',
            file=sys.stderr,
        )
        return False
    return True


def _run(args: argparse.Namespace) -> None:
    check_output(args.output, args.target, (args.target, args.positive, args.unlabeled, args.source))
    if args.safe_csv and kind(args.output) == PARQUET:
        raise InputError("--safe-csv is for text, but Parquet files hold no formulas; leave it out.")
    settings = given(args)
    scale = settings.get("standardize", True)
    known = read_prior(settings["source_prior"]).value if "source_prior" in settings else None
    if args.target_prior is not None:
        shifted_threshold(0.5, args.target_prior)  # refused before the work rather than after it
    classifier: Any = logistic(scale=scale)
    if _is_network(args.classifier):
        classifier = NNPUClassifier(known, scenario=scenario(args), standardize=scale)  # type: ignore[arg-type]
    _, estimator = make_estimator(args, optional=("source_prior",))  # the classifier has use for it
    shifted = ShiftedClassifier(classifier, estimator, source_prior=known, random_state=args.random_state)
    unlabeled, positive, target = read_tables(args)
    check_names(target, args.target)
    asked = fit_to_tables(shifted, unlabeled, positive, target, told(args))
    if args.target_prior is None:
        shifted.adapt(target, **asked)
    else:
        shifted.adapt_to(args.target_prior)
    p, decided = decide(shifted, target)
    formulas = write_decided_table(args.output, args.target, p, decided, safe=args.safe_csv)
    if formulas:
        print(
            f"priorshift: {formulas} cells of {args.output} begin as a formula does, as they do in the target; add "
            "--safe-csv if it is for a spreadsheet.",
            file=sys.stderr,
        )
    if args.json:
        print_json({
            "target_prior": shifted.target_prior_,
            "source_prior": shifted.source_prior_,
            "threshold": shifted.threshold_,
            "decided_positive": float(decided.mean()),
            "output": args.output,
            "estimate": shifted.estimate_ and shifted.estimate_.to_dict(),
        })  # fmt: skip
        return
    if shifted.estimate_ is None:
        print(f"target prior {_share(shifted.target_prior_)} (given)")
    else:
        print_result(shifted.estimate_)
    print(f"threshold on the source posterior: {_share(shifted.threshold_)}")
    print(f"decided positive: {int(decided.sum())} of {len(p)} rows; written to {args.output}")
