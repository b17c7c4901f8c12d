"""From parsed options to an estimator and tables: three files, or two of them in one, and several targets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from priorshift.cli.options import SETTINGS
from priorshift.cli.parser import printable
from priorshift.errors import InputError, MissingExtraError
from priorshift.inference.prior_knowledge import survey_prior
from priorshift.io.files import Piped, is_pipe, read_pipe
from priorshift.io.labels import read_labels
from priorshift.io.loader import as_samples, reader
from priorshift.io.mixed_tables import MixedTable
from priorshift.io.row_metadata import RowMetadata
from priorshift.io.tables import Table
from priorshift.io.targets import read_targets, split_table
from priorshift.methods import registry as methods
from priorshift.methods.drpu import DRPU
from priorshift.methods.network import import_torch


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
    """That of the tables, given or by default."""
    return args.scenario or "case-control"


def shared_rows(args: argparse.Namespace) -> str | None:
    """What the options say of shared rows, as `estimate_prior` takes it."""
    return "identical" if args.identical_rows else args.id_column


def told(args: argparse.Namespace) -> RowMetadata:
    """What the options say of rows."""
    return RowMetadata(shared_rows(args), args.audit_column, args.weight_column, args.group_column)


def read_tables(args: argparse.Namespace) -> list[Table]:
    """Unlabelled, positive and target table, with the same columns."""
    source = _read_source(args)
    target = _reader(args)(args.target, "--target", **told(args).of_target(_no_feature_of_target(args)))
    return _samples([*source, target], args)


def read_many_tables(args: argparse.Namespace) -> tuple[Table, Table, list[tuple[str, Table]]]:
    """Unlabelled and positive table, and the targets by their names."""
    if args.by is not None and len(args.target) > 1:
        raise InputError(f"--by names a column of one --target, but {len(args.target)} files are given; pass one.")
    aside = [] if args.by is None else [args.by]
    source = _read_source(args, drop=aside)
    columns = told(args).of_target(_no_feature_of_target(args), aside=aside)
    targets = args.target if args.by is None else args.target[0]
    named = read_targets(_reader(args), targets, args.by, columns, "--target")
    unlabeled, positive, *tables = _samples([*source, *(table for _, table in named)], args)
    if args.by is not None:
        return unlabeled, positive, split_table(tables[0], args.by)
    return unlabeled, positive, [(name, table) for (name, _), table in zip(named, tables, strict=True)]


def read_stratified_tables(args: argparse.Namespace) -> list[Table]:
    """Unlabelled, positive and target table, with the same columns and that of the strata set aside."""
    if len(args.target) > 1:
        raise InputError(f"--stratify is for one --target, but {len(args.target)} files are given; pass one.")
    for option, given in (("--by", args.by), ("--audit-column", args.audit_column)):
        if given:
            raise InputError(f"{option} and --stratify cannot be combined; leave one of them out.")
    source = _read_source(args, aside=[args.stratify])
    columns = told(args).of_target(_no_feature_of_target(args), aside=[args.stratify])
    target = _reader(args)(args.target[0], "--target", **columns)
    return _samples([*source, target], args)


def _encoder(args: argparse.Namespace) -> str | None:
    return None if args.encoder == "none" else args.encoder


def _reader(args: argparse.Namespace) -> Any:
    return reader(_encoder(args))


def _samples(tables: Sequence[Table | MixedTable], args: argparse.Namespace) -> list[Table]:
    """The tables as numbers; stderr says what was done with columns that were none."""
    made = as_samples(tables, args.drop, _encoder(args))
    if made[0].origin is not None:
        line = printable(made[0].origin.line).replace("\n", "\\n").replace("\t", "\\t")
        print(f"priorshift: columns: {line}", file=sys.stderr)
    return made


def _no_feature_of_target(args: argparse.Namespace) -> list[str]:
    return [*args.drop, *([args.label_column] if args.label_column else [])]


def _read_source(
    args: argparse.Namespace, aside: Sequence[str] = (), drop: Sequence[str] = ()
) -> list[Table | MixedTable]:
    """Unlabelled and positive table; further columns are set aside, or left out where they are there."""
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
    _read_pipes(args)
    read, columns = _reader(args), told(args).of_source([*args.drop, *drop], aside)
    if args.source:
        if args.positive or args.unlabeled:
            raise InputError("--source holds positives and unlabelled rows; leave --positive and --unlabeled out.")
        if not args.label_column:
            raise InputError("--source needs --label-column, the column that says which rows are labelled positive.")
        columns["aside"].append(args.label_column)
        positive, unlabeled = _split(read(args.source, "--source", **columns), args.label_column, args.positive_label)
    else:
        if not (args.positive and args.unlabeled):
            raise InputError("pass --positive and --unlabeled, or --source with --label-column.")
        positive = read(args.positive, "--positive", **columns)
        unlabeled = read(args.unlabeled, "--unlabeled", **columns)
    return [unlabeled, positive]


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


def _split(source: Table | MixedTable, label_column: str, positive_label: str | None) -> tuple[Any, ...]:
    """Labelled positives and unlabelled rows of one table."""
    labels = source.aside[label_column]
    if positive_label is not None:
        labels, positive_label = np.array([_word(label) for label in labels.tolist()]), _word(positive_label)
    elif labels.dtype.kind in "OUT":
        words = np.char.lower(labels.astype(str))
        with suppress(ValueError):
            labels = words == "true" if set(words) <= {"true", "false"} else words.astype(float)
    name = f"column {label_column!r} of {source.name}"
    labeled, _ = read_labels(labels, len(labels), name, positive_label=positive_label, parameter="--positive-label")
    return tuple(
        source.take(rows, f"{name} ({source.name})") for rows, name in ((labeled, "positive"), (~labeled, "unlabeled"))
    )


def _word(label: Any) -> str:
    """As it is written in a shell: 1 and 1.0 are one."""
    text = str(label).strip()
    with suppress(ValueError):
        return f"{float(text):.17g}"
    return text
