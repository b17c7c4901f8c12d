"""`priorshift adapt`: decide on the target's rows by a classifier that is adapted to the target prior."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from priorshift.adapt import shifted_threshold
from priorshift.cli.inputs import check_torch, estimator_settings, input_files, make_estimator, read_problem
from priorshift.cli.output import check_writable, print_json, print_result
from priorshift.decisions import check_names, decide, fit_to_problem, logistic, write_decided_table
from priorshift.errors import InputError, MissingExtraError
from priorshift.formatting import decimals
from priorshift.inference.prior_knowledge import read_prior
from priorshift.io.files import PARQUET, TEXT, is_pipe, kind
from priorshift.methods.nnpu import NNPUClassifier
from priorshift.shifted_classifier import ShiftedClassifier


def check_output(output: str, target: str, inputs: Sequence[str | None]) -> None:
    """Refuse, before any work, a copy that cannot be written or would overwrite one of the inputs."""
    written, read = kind(output), TEXT if target == "-" or is_pipe(target) else kind(target)
    if written is None or (read is not None and written != read):
        endings = read or (*TEXT, *PARQUET)
        raise InputError(f"--output {output} must end in {' or '.join(endings)}, as the target does; rename it.")
    check_writable("--output", output, inputs)


def _share(value: float) -> str:
    """Format a share that may be close to 0 or to 1."""
    return f"{value:.{decimals(min(value, 1 - value))}f}"


def _is_network(classifier: str | None) -> bool:
    """Return whether to use nnPU, by choice or because torch is installed; tell the user if it is not."""
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


def run(args: argparse.Namespace) -> None:
    """Write the target's table with the posterior and the decision of each row."""
    check_output(args.output, args.target[0], input_files(args))
    if args.safe_csv and kind(args.output) == PARQUET:
        raise InputError("--safe-csv does not apply to Parquet files, which contain no formulas; remove it.")
    settings = estimator_settings(args)
    scale = settings.get("standardize", True)
    known = read_prior(settings["source_prior"]).value if "source_prior" in settings else None
    if args.target_prior is not None:
        shifted_threshold(0.5, args.target_prior)  # refused before the work rather than after it
    classifier: Any = logistic(scale=scale)
    if _is_network(args.classifier):
        classifier = NNPUClassifier(known, scenario=args.scenario or "case-control", standardize=scale)
    estimator = make_estimator(args, optional=("source_prior",))  # the classifier has use for it
    shifted = ShiftedClassifier(classifier, estimator, source_prior=known, random_state=args.random_state)
    problem = read_problem(args)
    target = problem.target.data
    check_names(target, str(args.target[0]))
    fit_to_problem(shifted, problem)
    if args.target_prior is None:
        metadata = problem.target.metadata
        shifted.adapt(target, audit=metadata.audit, weights=metadata.weights, groups=metadata.groups)
    else:
        shifted.adapt_to(args.target_prior)
    p, decided = decide(shifted, target)
    formulas = write_decided_table(args.output, args.target[0], p, decided, safe=args.safe_csv)
    if formulas:
        print(
            f"priorshift: {formulas} cells of {args.output} look like formulas, as in the target; add --safe-csv if "
            "the copy is for a spreadsheet.",
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
