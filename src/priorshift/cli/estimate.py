"""`priorshift estimate`: estimate the target prior from tables."""

from __future__ import annotations

import argparse
from typing import Any

from priorshift.api import estimate_strata, estimate_target, estimate_targets
from priorshift.cli.inputs import has_several, input_files, make_estimator, read_problem
from priorshift.cli.output import check_figure, check_table, print_json, print_result, write_figure, write_table
from priorshift.errors import InputError
from priorshift.plots import displays_of
from priorshift.prior_estimates import PriorEstimates
from priorshift.results import PriorEstimate


def run(args: argparse.Namespace) -> None:
    """Estimate the target prior and print it."""
    check_figure(args.plot)
    several = has_several(args)
    if several:
        check_table(args.output, input_files(args))
    elif args.output is not None:
        raise InputError("--output is for several targets; pass --by, --stratify or more files, or remove it.")
    estimator, problem = make_estimator(args), read_problem(args)
    if args.plot and problem.kind != "rows":
        raise InputError("--plot needs rows in memory; remove it, or pass tables that fit into memory.")
    result: PriorEstimate | PriorEstimates
    if args.stratify is not None:
        result = estimate_strata(problem, estimator)
    elif several:
        result = estimate_targets(problem, estimator)
    else:
        result = estimate_target(problem, estimator, is_auto=args.method == "auto")
    print_json(result.to_dict()) if args.json else print_result(result)
    if isinstance(result, PriorEstimates):
        write_table(args.output, result.to_csv())
        return write_figure(args.plot, result.plot)
    return write_figure(args.plot, lambda: _draw(result))


def _draw(estimate: PriorEstimate) -> Any:
    displays = list(displays_of(estimate).values())
    if not displays:
        raise InputError("there is no estimate to draw; remove --plot.")
    return displays[-1].plot().ax_
