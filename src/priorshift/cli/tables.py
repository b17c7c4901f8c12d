"""The tables that a command is given: three files, or two of them in one."""

from __future__ import annotations

import argparse
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from priorshift.errors import InputError
from priorshift.input.labels import read_labels
from priorshift.input.tables import Table, check_dropped, match_columns, read_table


def add_tables(command: argparse.ArgumentParser) -> None:
    """Options that name the tables and their columns."""
    add = command.add_argument
    add("--positive", metavar="FILE", help="labelled positives of the source population")
    add("--unlabeled", metavar="FILE", help="unlabelled sample of the source population")
    add("--source", metavar="FILE", help="both of them in one table, with --label-column")
    add("--label-column", metavar="NAME", help="column of --source: the larger of its two values means positive")
    add("--target", metavar="FILE", required=True, help="unlabelled sample of the target population")
    add("--id-column", metavar="NAME", help="rows with the same id in both source tables are the same observation")
    add("--audit-column", metavar="NAME",
        help="of the unlabelled table, the target or both: 1 or 0 where the class was looked up, else empty; of "
        "--method witness")  # fmt: skip
    add("--identical-rows", action="store_true", help="rows with the same values are the same observation")
    add("--drop", metavar="NAME", action="append", default=[], help="a column that is not a feature (may be repeated)")


def scenario(args: argparse.Namespace) -> str:
    """That of the tables, given or by default."""
    return getattr(args, "scenario", "case-control")


def shared_rows(args: argparse.Namespace) -> str | None:
    """What the options say of shared rows, as `estimate_prior` takes it."""
    return "identical" if args.identical_rows else args.id_column


def read_tables(args: argparse.Namespace) -> list[Table]:
    """Unlabelled, positive and target table, with the same columns."""
    if args.id_column and args.identical_rows:
        raise InputError("--id-column and --identical-rows both say which rows are shared; give one of them.")
    if scenario(args) == "censoring" and (args.id_column or args.identical_rows):
        raise InputError(
            "under --scenario censoring the shared rows are known; leave --id-column and --identical-rows out."
        )
    named = {"--id-column": args.id_column, "--label-column": args.label_column, "--audit-column": args.audit_column}
    for option, column in named.items():
        if column is not None and column in args.drop:
            raise InputError(f"{option} and --drop name the same column, {column!r}; it must be one of them.")
    if args.audit_column and args.audit_column in (args.id_column, args.label_column):
        raise InputError(
            f"--audit-column names the column {args.audit_column!r}, which has another use already; they must differ."
        )
    if args.label_column and not args.source:
        raise InputError("--label-column is a column of --source; pass --source, or leave it out.")
    aside = [args.id_column] if args.id_column else []
    audit = [args.audit_column] if args.audit_column else []
    if args.source:
        if args.positive or args.unlabeled:
            raise InputError("--source holds positives and unlabelled rows; leave --positive and --unlabeled out.")
        if not args.label_column:
            raise InputError("--source needs --label-column, the column that says which rows are labelled positive.")
        if args.label_column in aside:
            raise InputError("--label-column and --id-column name the same column; they must differ.")
        source = read_table(args.source, "--source", [*aside, args.label_column], args.drop, audit)
        positive, unlabeled = _split(source, args.label_column)
    else:
        if not (args.positive and args.unlabeled):
            raise InputError("pass --positive and --unlabeled, or --source with --label-column.")
        positive = read_table(args.positive, "--positive", aside, args.drop, audit)
        unlabeled = read_table(args.unlabeled, "--unlabeled", aside, args.drop, audit)
    elsewhere = [name for name in (args.id_column, args.label_column) if name]
    target = read_table(args.target, "--target", drop=[*args.drop, *elsewhere], optional=audit)
    check_dropped([positive, unlabeled, target], args.drop)
    return match_columns([unlabeled, positive, target])


def _split(source: Table, label_column: str) -> tuple[Table, Table]:
    """Labelled positives and unlabelled rows of one table."""
    labels = source.aside[label_column]
    if labels.dtype.kind in "OUT":
        words = np.char.lower(labels.astype(str))
        with suppress(ValueError):
            labels = words == "true" if set(words) <= {"true", "false"} else words.astype(float)
    labeled, _ = read_labels(labels, len(labels), f"column {label_column!r} of {source.name}")

    def part(rows: Any, name: str) -> Table:
        aside = {key: column[rows] for key, column in source.aside.items()}
        return replace(source, name=f"{name} ({source.name})", values=source.values[rows], aside=aside)

    return part(labeled, "positive"), part(~labeled, "unlabeled")
