"""From parsed options to an estimator and tables: three files, or two of them in one, and several targets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from priorshift.cli.options import SETTINGS
from priorshift.cli.parser import printable
from priorshift.errors import InputError, MissingExtraError
from priorshift.inference.prior_knowledge import survey_prior
from priorshift.io.files import Piped, is_pipe, read_pipe
from priorshift.loading import InputOptions, LabeledTable, load_problem
from priorshift.methods import registry as methods
from priorshift.methods.drpu import DRPU
from priorshift.methods.network import import_torch
from priorshift.problem import Problem


def estimator_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of an estimator that were given."""
    settings = {name: getattr(args, name, None) for name in SETTINGS}
    if isinstance(settings["source_prior"], dict):
        settings["source_prior"] = survey_prior(**settings["source_prior"])
    return {name: value for name, value in settings.items() if value is not None}


def make_estimator(args: argparse.Namespace, optional: tuple[str, ...] = ()) -> Any:
    """Return the estimator; settings that it does not have are refused, unless they are `optional`."""
    settings = estimator_settings(args)
    method = methods.choose(args.method)
    for name in method.missing(settings):
        if name not in optional:
            raise InputError(_refusal(f"--{name.replace('_', '-')}", SETTINGS[name], args.method))
        del settings[name]
    if method.estimator is DRPU:
        check_torch(f"--method {method.name}", "use another method")
    return method.estimator(**settings)


def _refusal(option: str, takers: Sequence[str], method: str) -> str:
    """Say that the method does not have an option; if no method was named, which ones have it."""
    if method != "auto":
        return f"{option} does not apply to --method {method}; remove it."
    return f"{option} belongs to --method {' or '.join(takers)}; add that, or remove {option}."


def check_torch(option: str, otherwise: str) -> None:
    """Refuse before any work what cannot be trained without torch."""
    try:
        import_torch()
    except MissingExtraError:
        raise MissingExtraError(
            f'{option} needs torch, which is not installed; run pip install "priorshift[torch]", or {otherwise}.'
        ) from None


def _read_pipes(args: argparse.Namespace) -> None:
    """Put in place of every pipe what comes through it, so that it can be read again to be copied."""
    several = isinstance(args.target, list)
    given = {name: getattr(args, name) for name in ("positive", "unlabeled", "source")}
    given |= {f"target {k}": path for k, path in enumerate(args.target)} if several else {"target": args.target}
    pipes = [name for name, path in given.items() if path == "-" or is_pipe(path)]
    same = [f"--{name.split()[0]}" for name in pipes if given[name] == "-"]
    if len(same) > 1:
        raise InputError(
            f"{' and '.join(same)} are both standard input (-), which can be read only once; pass a file for one."
        )
    for name in pipes:
        path, option = given[name], name.split()[0]
        read = standard_input(f"--{option}") if path == "-" else read_pipe(path, f"--{option} ({path})")
        if name.startswith("target ") and several:
            args.target[int(name.split()[1])] = read
        else:
            setattr(args, name, read)


def standard_input(option: str) -> Piped:
    """All that comes through it."""
    if sys.stdin is None or sys.stdin.closed:
        raise InputError(f"{option} is standard input (-), which is closed; pass a file.")
    return Piped("standard input", sys.stdin.buffer.read())


def scenario(args: argparse.Namespace) -> str:
    """Return the scenario of the tables, given or by default."""
    return args.scenario or "case-control"


def read_problem(args: argparse.Namespace) -> Problem:
    """Load the problem that the options name; standard error says how columns that are not numbers were encoded."""
    _check_options(args)
    _read_pipes(args)
    options = InputOptions.from_arguments(
        shared="identical" if args.identical_rows else args.id_column,
        audit=args.audit_column,
        weights=args.weight_column,
        groups=args.group_column,
        drop=args.drop,
        encoder=None if args.encoder == "none" else args.encoder,
        stream=(args.stream or None) if hasattr(args, "stream") else False,
        by=getattr(args, "by", None),
        stratify=getattr(args, "stratify", None),
        in_shell=True,
    )
    source = LabeledTable(args.source, args.label_column, args.positive_label) if args.source else None
    target, several = args.target, has_several(args)
    if isinstance(target, list) and (len(target) == 1 and (not several or options.by or options.stratify)):
        [target] = target
    problem = load_problem(
        positive=args.positive, unlabeled=args.unlabeled, target=target, source=source, several=several, options=options
    )
    origin = problem.unlabeled.data.origin if problem.kind == "rows" else None
    if origin is not None:
        line = printable(origin.line).replace("\n", "\\n").replace("\t", "\\t")
        print(f"priorshift: columns: {line}", file=sys.stderr)
    return problem


def has_several(args: argparse.Namespace) -> bool:
    """Whether the options name more than one target, or strata."""
    several_files = isinstance(args.target, list) and len(args.target) > 1
    return bool(several_files or getattr(args, "by", None) or getattr(args, "stratify", None))


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other."""
    if args.id_column and args.identical_rows:
        raise InputError("--id-column and --identical-rows both say which rows are shared; give one of them.")
    if scenario(args) == "censoring" and (args.id_column or args.identical_rows):
        raise InputError(
            "under --scenario censoring the shared rows are known; leave --id-column and --identical-rows out."
        )
    _check_uses(args)
    if args.label_column and not args.source:
        raise InputError("--label-column is a column of --source; pass --source, or leave it out.")
    if args.positive_label is not None and not args.label_column:
        raise InputError("--positive-label is a value of --label-column; pass that too, or leave it out.")
    if args.source and (args.positive or args.unlabeled):
        raise InputError("--source holds positives and unlabelled rows; leave --positive and --unlabeled out.")
    if args.source and not args.label_column:
        raise InputError("--source needs --label-column, the column that says which rows are labelled positive.")
    if not args.source and not (args.positive and args.unlabeled):
        raise InputError("pass --positive and --unlabeled, or --source with --label-column.")
    files = args.target if isinstance(args.target, list) else [args.target]
    by, stratify = getattr(args, "by", None), getattr(args, "stratify", None)
    for option, given in (("--by", by), ("--stratify", stratify)):
        if given and len(files) > 1:
            raise InputError(f"{option} is for one --target, but {len(files)} files are given; pass one.")
    for option, given in (("--by", by), ("--audit-column", args.audit_column)):
        if given and stratify:
            raise InputError(f"{option} and --stratify cannot be combined; leave one of them out.")


def _check_uses(args: argparse.Namespace) -> None:
    """No column has two uses; an id may also be a group."""
    options = [*(f"--{use}-column" for use in ("id", "group", "label", "audit", "weight")), "--by", "--stratify"]
    columns = {option: getattr(args, option[2:].replace("-", "_"), None) for option in options}
    named = [(option, column) for option, column in columns.items() if column is not None]
    for k, (option, column) in enumerate(named):
        if column in args.drop:
            raise InputError(f"{option} and --drop name the same column, {column!r}; it must be one of them.")
        for other, taken in named[:k]:
            if taken == column and (other, option) != ("--id-column", "--group-column"):
                raise InputError(f"{option} and {other} name the same column, {column!r}; they must differ.")
