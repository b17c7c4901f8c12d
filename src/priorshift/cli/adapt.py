"""`priorshift adapt`: the target's rows, decided by a classifier that fits its prior."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from priorshift.adapt import shifted_threshold
from priorshift.cli.decided_table import check_names, check_output, write_decided_table
from priorshift.cli.options import add_options, add_output, check_torch, given, make_estimator, number
from priorshift.cli.output import print_json
from priorshift.cli.tables import add_tables, read_tables, scenario, told
from priorshift.errors import MissingExtraError
from priorshift.estimate import join_source, warn_of_shared_rows
from priorshift.nnpu import NNPUClassifier
from priorshift.prior_knowledge import read_prior
from priorshift.result import decimals
from priorshift.shifted_classifier import ShiftedClassifier


def add_command(commands: Any) -> None:
    """Add it to the parser."""
    command = commands.add_parser(
        "adapt",
        help="classify the rows of the target by a classifier that fits its prior",
        description="Write the target's table with two more columns: the posterior probability of being positive in "
        "the target population, and the decision (1: positive).",
        epilog="Tables are CSV, TSV or Parquet files with the same columns.",
    )
    add = command.add_argument
    add("--output", metavar="FILE", required=True, help="the table to write, of the target's kind")
    add("--classifier", choices=("nnpu", "logistic"),
        help="nnpu, the default where torch is installed, or logistic, which is linear and needs nothing")  # fmt: skip
    add("--target-prior", metavar="PRIOR", type=number, help="share of positives in the target, if it is known")
    add_tables(command)
    add_options(command)
    add_output(command)
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
    settings = given(args)
    scale = settings.get("standardize", True)
    known = read_prior(settings["source_prior"]).value if "source_prior" in settings else None
    if args.target_prior is not None:
        shifted_threshold(0.5, args.target_prior)  # refused before the work rather than after it
    classifier: Any = make_pipeline(StandardScaler(with_mean=scale, with_std=scale), LogisticRegression(max_iter=1000))
    if _is_network(args.classifier):
        classifier = NNPUClassifier(known, scenario=scenario(args), standardize=scale)  # type: ignore[arg-type]
    _, estimator = make_estimator(args, optional=("source_prior",))  # the classifier has use for it
    shifted = ShiftedClassifier(classifier, estimator, source_prior=known, random_state=args.random_state)
    unlabeled, positive, target = read_tables(args)
    features = target.columns or () if target.origin is None else target.origin.columns
    check_names([*features, *target.dropped, *target.aside], args.target)
    rows, samples = told(args), (unlabeled, positive, target)
    audit, weights, groups = rows.read_audit(*samples), rows.read("weights", *samples), rows.read("groups", *samples)
    X, y, shared = join_source(unlabeled, positive, rows.shared)
    if shared is None and scenario(args) == "case-control":
        warn_of_shared_rows(X, y)
    shifted.fit(X, y, shared, audit[0], weights[0], groups[0])
    if args.target_prior is None:
        shifted.adapt(target, audit[1], weights[1], groups[1])
    else:
        shifted.adapt_to(args.target_prior)
    p = shifted.predict_proba(target)[:, 1]
    decided = shifted.predict(target) == 1
    write_decided_table(args.output, args.target, p, decided)
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
    print(shifted.estimate_ or f"target prior {_share(shifted.target_prior_)} (given)")
    print(f"threshold on the source posterior: {_share(shifted.threshold_)}")
    print(f"decided positive: {int(decided.sum())} of {len(p)} rows; written to {args.output}")
