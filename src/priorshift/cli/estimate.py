"""`priorshift estimate`: the target prior from a user's tables."""

from __future__ import annotations

import argparse
from typing import Any

from sklearn.base import clone

from priorshift.api import estimate_from_tables, estimate_strata, estimate_targets, estimate_without_rows
from priorshift.cli.inputs import make_estimator, read_many_tables, read_stratified_tables, read_tables, told
from priorshift.cli.output import check_figure, check_table, print_json, print_result, write_figure, write_table
from priorshift.errors import InputError
from priorshift.io.files import is_pipe
from priorshift.plots import displays_of
from priorshift.results import PriorEstimate
from priorshift.sketch.estimation import is_summary, needs_batches


def run(args: argparse.Namespace) -> None:
    """Estimate the target prior and print it."""
    check_figure(args.plot)
    if has_no_rows(args):
        estimate = estimated_without_rows(args)
        return print_json(estimate.to_dict()) if args.json else print_result(estimate)
    if args.stratify is not None or args.by is not None or len(args.target) > 1:
        return _run_many(args)
    if args.output is not None:
        raise InputError("--output is for several targets; pass more files as --target, --by or --stratify.")
    [args.target] = args.target
    estimator = make_estimator(args)
    estimate = estimate_from_tables(estimator, *read_tables(args), told=told(args))
    if args.json:
        print_json(estimate.to_dict())
    else:
        print_result(estimate)
    return write_figure(args.plot, lambda: _draw(estimate))


def _draw(estimate: PriorEstimate) -> Any:
    displays = list(displays_of(estimate).values())
    if not displays:
        raise InputError("there is no estimate to draw; remove --plot.")
    return displays[-1].plot().ax_


def has_no_rows(args: argparse.Namespace) -> bool:
    """Whether a sample is a sketch or a histogram, or a file that is read in batches."""
    samples = args.positive, args.unlabeled, *args.target
    return bool(args.stream or any(map(is_summary, samples)) or any(map(needs_batches, samples)))


def estimated_without_rows(args: argparse.Namespace) -> PriorEstimate:
    """From sketches and histograms, or from files that are read in batches."""
    several = args.stratify is not None or args.by is not None or len(args.target) > 1
    piped = [one for one in (args.positive, args.unlabeled, *args.target) if one == "-" or is_pipe(one)]
    for option, given in (
        ("--plot", args.plot),
        ("--source", args.source),
        ("--output", args.output),
        ("standard input or a pipe", piped),
        ("several targets", several),
    ):
        if given:
            raise InputError(
                f"{option} cannot be had where rows are read in batches or are not there at all; leave it out, or pass "
                "tables that fit into memory."
            )
    if not (args.positive and args.unlabeled):
        raise InputError("pass --positive and --unlabeled, each a file, a sketch or a histogram.")

    def _make(method: str) -> Any:
        args.method = method
        return make_estimator(args)

    return estimate_without_rows(
        _make,
        args.method,
        args.positive,
        args.unlabeled,
        args.target[0],
        told=told(args),
        drop=args.drop,
        encoder=None if args.encoder == "none" else args.encoder,
    )


def _run_many(args: argparse.Namespace) -> None:
    check_table(args.output, [f for f in (args.positive, args.unlabeled, args.source, *args.target) if f])
    estimator = make_estimator(args)
    if args.stratify is not None:
        tables = read_stratified_tables(args)
        estimates = estimate_strata(lambda _: clone(estimator), *tables, by=args.stratify, told=told(args))
    else:
        unlabeled, positive, targets = read_many_tables(args)
        estimates = estimate_targets(estimator, unlabeled, positive, targets, by=args.by, told=told(args))
    if args.json:
        print_json(estimates.to_dict())
    else:
        print_result(estimates)
    write_table(args.output, estimates.to_csv())
    write_figure(args.plot, estimates.plot)
