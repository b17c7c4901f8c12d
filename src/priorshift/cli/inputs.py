"""From parsed options to an estimator and a problem: three files, or two of them in one, and several targets."""

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


def read_problem(args: argparse.Namespace) -> Problem:
    """Load the problem that the options describe, and tell on stderr how columns were encoded."""
    _check_options(args)
    _read_pipes(args)
    options = InputOptions.from_arguments(
        shared="identical" if args.identical_rows else args.id_column,
        audit=args.audit_column,
        weights=args.weight_column,
        groups=args.group_column,
        drop=args.drop,
        encoder=None if args.encoder == "none" else args.encoder,
        stream=args.stream,
        by=args.by,
        stratify=args.stratify,
        in_shell=True,
    )
    problem = load_problem(
        positive=args.positive,
        unlabeled=args.unlabeled,
        target=args.target if len(args.target) > 1 else args.target[0],
        source=LabeledTable(args.source, args.label_column, args.positive_label) if args.source else None,
        several=has_several(args),
        options=options,
    )
    origin = problem.unlabeled.data.origin if problem.kind == "rows" else None
    if origin is not None:
        line = printable(origin.line).replace("\n", "\\n").replace("\t", "\\t")
        print(f"priorshift: columns: {line}", file=sys.stderr)
    return problem


def input_files(args: argparse.Namespace) -> list[str]:
    """Return the files that are read, which must not be overwritten."""
    return [file for file in (args.positive, args.unlabeled, args.source, *args.target) if file]


def has_several(args: argparse.Namespace) -> bool:
    """Return whether there are several targets, or strata."""
    return len(args.target) > 1 or args.by is not None or args.stratify is not None


def _read_pipes(args: argparse.Namespace) -> None:
    """Replace every pipe by its content, which can be read again when the target is copied."""
    names = ("positive", "unlabeled", "source")
    given = [*((f"--{name}", getattr(args, name)) for name in names), *(("--target", file) for file in args.target)]
    twice = [option for option, path in given if path == "-"]
    if len(twice) > 1:
        raise InputError(
            f"{' and '.join(twice)} are both standard input (-), which can be read only once; pass a file for one."
        )
    args.positive, args.unlabeled, args.source, *args.target = (_read_pipe(path, option) for option, path in given)


def _read_pipe(path: str | None, option: str) -> str | Piped | None:
    if path == "-":
        return standard_input(option)
    return read_pipe(path, f"{option} ({path})") if path is not None and is_pipe(path) else path


def standard_input(option: str) -> Piped:
    """Return the content of standard input."""
    if sys.stdin is None or sys.stdin.closed:
        raise InputError(f"{option} is standard input (-), which is closed; pass a file.")
    return Piped("standard input", sys.stdin.buffer.read())


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other or lack another one."""
    files = len(args.target)
    shared = args.id_column or args.identical_rows
    wrong = (
        (args.id_column and args.identical_rows, "--id-column and --identical-rows exclude each other; remove one."),
        (args.scenario == "censoring" and shared,
         "under --scenario censoring the shared rows are known; remove --id-column and --identical-rows."),
        (args.label_column and not args.source, "--label-column is a column of --source; pass --source, or remove it."),
        (args.positive_label is not None and not args.label_column,
         "--positive-label is a value of --label-column; pass that too, or remove it."),
        (args.source and (args.positive or args.unlabeled),
         "--source contains positive and unlabelled rows; remove --positive and --unlabeled."),
        (args.source and not args.label_column,
         "--source needs --label-column, the column that says which rows are labelled positive."),
        (not args.source and not (args.positive and args.unlabeled),
         "pass --positive and --unlabeled, or --source with --label-column."),
        (args.by and args.stratify, "--by and --stratify cannot be combined; remove one."),
        (args.audit_column and args.stratify, "--audit-column and --stratify cannot be combined; remove one."),
        (args.by and files > 1, f"--by is for one --target, but {files} files are given; pass one."),
        (args.stratify and files > 1, f"--stratify is for one --target, but {files} files are given; pass one."),
        (args.stream and (args.source or has_several(args)),
         "--stream is for one --target, with --positive and --unlabeled; remove it, or the other options."),
    )  # fmt: skip
    for is_wrong, message in wrong:
        if is_wrong:
            raise InputError(message)
    _check_column_uses(args)


def _check_column_uses(args: argparse.Namespace) -> None:
    """Refuse a column with two uses; an id may also be a group."""
    options = [*(f"--{use}-column" for use in ("id", "group", "label", "audit", "weight")), "--by", "--stratify"]
    columns = {option: getattr(args, option[2:].replace("-", "_")) for option in options}
    named = [(option, column) for option, column in columns.items() if column is not None]
    for k, (option, column) in enumerate(named):
        if column in args.drop:
            raise InputError(f"{option} and --drop name the same column, {column!r}; it must be one of them.")
        for other, taken in named[:k]:
            if taken == column and (other, option) != ("--id-column", "--group-column"):
                raise InputError(f"{option} and {other} name the same column, {column!r}; they must differ.")
