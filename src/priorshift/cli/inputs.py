"""From parsed options to an estimator and a problem: three files, or two of them in one, and several targets."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from priorshift import api
from priorshift.api import check_one_class
from priorshift.class_source import REST
from priorshift.cli.options import SETTINGS, ByClass, printable
from priorshift.cli.output import print_note
from priorshift.errors import InputError, MissingExtraError
from priorshift.inference.prior_knowledge import survey_prior
from priorshift.io.files import PARQUET, TEXT, Piped, is_pipe, kind, read_pipe
from priorshift.loading import InputOptions, LabeledTable, load_problem
from priorshift.methods import registry as methods
from priorshift.methods.drpu import DRPU
from priorshift.problem import Problem

_ROLES = ("positive", "unlabeled", "source", "target")


def estimator_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options that are parameters of estimators, by name, without those that were not given."""
    options = {name: getattr(args, name, None) for name in SETTINGS}
    settings = {name: value for name, value in options.items() if value is not None}
    for name in ("source_prior", "label_error"):
        stated = settings.get(name)
        if isinstance(stated, ByClass):
            settings[name] = {label: _survey(value) for label, value in stated.items()}
        elif stated is not None:
            settings[name] = _survey(stated)
    return settings


def _survey(prior: Any) -> Any:
    """Return a prior as a method takes it; {"positives": count, "rows": count} of a survey becomes a distribution."""
    return survey_prior(**prior) if isinstance(prior, dict) else prior


def states_classes(args: argparse.Namespace) -> bool:
    """Return whether the options name classes, or are for several classes."""
    options = (args.positive, args.source_prior, args.label_error, getattr(args, "cost_ratio", None))
    by_class = any(isinstance(value, ByClass) for value in options)
    return by_class or not args.has_rest or args.unlabeled_label is not None


def make_class_estimator(args: argparse.Namespace, names: Sequence[str]) -> Any:
    """Return the unfitted estimator of --method for the named classes, with the settings that were given as options."""
    if len(names) == 1:
        check_one_class(rest=args.has_rest, in_shell=True)
        return make_estimator(args, names=names)
    settings = _suitable_settings(args)
    if "interval" in settings:
        raise InputError("--interval is not supported with several labelled classes; remove it.")
    source_prior = settings.get("source_prior")
    if source_prior is not None and not isinstance(source_prior, dict):
        example = f"--source-prior {shlex.quote(names[0])}=0.1"
        raise InputError(f"with several labelled classes, every source prior names its class, as in {example}.")
    if source_prior is not None:
        _check_survey(source_prior, names)
    if isinstance(settings.get("label_error"), dict):
        settings["label_error"] = _errors_by_true_class(settings["label_error"], names)
    if "label_error" in settings and not args.has_rest and not _says_true_classes(settings["label_error"]):
        example = shlex.quote(f"{names[0]}:{names[1]}=0.1")
        raise InputError(
            f"--label-error with --no-rest must say of which class wrong rows are, as in --label-error {example}."
        )
    estimator = api.make_class_estimator(args.method, {**settings, "rest": args.has_rest})
    estimator.check_classes(names)
    return estimator


def _check_survey(source_prior: dict[str, Any], names: Sequence[str]) -> None:
    """Refuse counts of a survey of all classes that lack a class or the rest, or are mixed with other priors."""
    counted = [name for name, value in source_prior.items() if isinstance(value, int)]
    if counted and (set(source_prior) != {*names, REST} or len(counted) < len(source_prior)):
        name, count = counted[0], source_prior[counted[0]]
        stated, alone = shlex.quote(f"{name}={count}"), shlex.quote(f"{name}={count}/ROWS")
        raise InputError(
            f"--source-prior-counts {stated} is of a survey of all classes; pass the rows of each of "
            f"{', '.join((*names, REST))}, or {alone} for a survey of the class alone."
        )


def _errors_by_true_class(label_error: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return label errors in which NAME:OTHER became a mapping of NAME to OTHER; names may contain a colon."""
    known = (*names, REST)
    found: dict[str, Any] = {}
    for key, share in label_error.items():
        pairs = [(name, other) for name in names for other in known if key == f"{name}:{other}"]
        if key in names or not pairs:
            found[key] = share
            continue
        [(name, other), *_] = pairs
        errors = found.setdefault(name, {})
        if not isinstance(errors, dict):
            raise InputError(f"--label-error has a share of {name!r} and one of {key!r}; pass NAME:OTHER for all.")
        errors[other] = share
    return found


def _says_true_classes(label_error: Any) -> bool:
    """Return whether label errors say of which classes the wrong rows are."""
    return isinstance(label_error, dict) and all(isinstance(errors, dict) for errors in label_error.values())


def make_estimator(args: argparse.Namespace, optional: tuple[str, ...] = (), names: Sequence[str] = ()) -> Any:
    """Return the unfitted estimator of --method, with the settings that were given as options.

    A setting that the estimator does not have raises InputError; those named in `optional` are ignored instead.
    `names` has the name of the class of the positives, if it is named.
    """
    method = methods.choose(args.method)
    settings = api.one_class_settings(_suitable_settings(args, optional), names)
    if method.estimator is DRPU:
        check_torch(f"--method {method.name}", "use another method")
    return method.estimator(**settings)


def _suitable_settings(args: argparse.Namespace, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the settings that were given as options; refuse those that --method lacks, and ignore `optional` ones."""
    settings = estimator_settings(args)
    method = methods.choose(args.method)
    for name in list(settings):
        option = f"--{name.replace('_', '-')}"
        if name in method.options:
            continue
        if name in optional:
            del settings[name]
        elif args.method != "auto":
            raise InputError(f"{option} does not apply to --method {args.method}; remove it.")
        else:
            suitable = " or ".join(other.name for other in methods.METHODS if name in other.options)
            raise InputError(f"{option} belongs to --method {suitable}; add that, or remove {option}.")
    return settings


def check_torch(option: str, otherwise: str) -> None:
    """Raise MissingExtraError if torch, which the option needs, is not installed; `otherwise` is the other remedy."""
    if not find_spec("torch"):
        raise MissingExtraError(f'{option} needs torch; run pip install "priorshift[torch]", or {otherwise}.')


def read_problem(args: argparse.Namespace) -> Problem:
    """Load the samples that the options name, and print on stderr how their columns were encoded."""
    _check_options(args)
    if args.sheet and all(kind(path) in (TEXT, PARQUET) for path in input_files(args)):
        raise InputError(f"--sheet {args.sheet[0]} names a sheet, but no file is an Excel workbook; remove it.")
    _read_pipes(args)
    options = InputOptions.from_arguments(
        shared="identical" if args.identical_rows else args.id_column, audit=args.audit_column,
        weights=args.weight_column, groups=args.group_column, drop=args.drop,
        encoder=None if args.encoder == "none" else args.encoder, missing=args.missing, columns=_column_kinds(args),
        sheet=_sheets(args.sheet, _class_names(args)), stream=args.stream, by=args.by, stratify=args.stratify,
        in_shell=True,
    )  # fmt: skip
    source = None
    if args.source:
        labels = args.positive_label, args.unlabeled_label
        source = LabeledTable(args.source, args.label_column, *labels, takes_classes=args.takes_classes)
    target = args.target if len(args.target) > 1 else args.target[0]
    problem = load_problem(
        positive=args.positive, unlabeled=args.unlabeled, target=target, source=source, several=has_several(args),
        rest=args.has_rest, options=options,
    )  # fmt: skip
    origin = problem.unlabeled.data.origin if problem.kind == "rows" else None
    if origin is not None:
        # in one line, whatever the names of the columns contain
        print_note(f"columns: {printable(origin.line)}".replace("\n", "\\n").replace("\t", "\\t"))
    return problem


def _column_kinds(args: argparse.Namespace) -> dict[str, str]:
    """Return the stated kind of each column that --category, --day-first or --month-first name."""
    stated = {"category": args.category, "day-first": args.day_first, "month-first": args.month_first}
    kinds: dict[str, str] = {}
    for stated_kind, columns in stated.items():
        for column in columns:
            if kinds.setdefault(column, stated_kind) != stated_kind:
                raise InputError(
                    f"--{kinds[column]} and --{stated_kind} name the same column, {column!r}; remove one of them."
                )
    return kinds


def _class_names(args: argparse.Namespace) -> list[str]:
    """Return the names of the classes that --positive names."""
    return list(args.positive) if isinstance(args.positive, ByClass) else []


def _sheets(words: Sequence[str], classes: Sequence[str] = ()) -> str | dict[str, str] | None:
    """Return the sheet of all Excel files, or the sheet by role or class, from the values of --sheet."""
    roles = (*_ROLES, *classes)
    by_role = {role: name for role, mark, name in (word.partition("=") for word in words) if mark and role in roles}
    plain = [word for word in words if word.partition("=")[0] not in roles or "=" not in word]
    if len(plain) > 1 or (plain and by_role):
        raise InputError(
            f"--sheet is given {len(words)} times; pass one name for all files, or ROLE=NAME for each, where ROLE is "
            f"{', '.join(roles)}."
        )
    return plain[0] if plain else by_role or None


def target_sheet(args: argparse.Namespace) -> str | None:
    """Return the sheet of the target that --sheet names, if any."""
    sheets = _sheets(args.sheet)
    return sheets.get("target") if isinstance(sheets, dict) else sheets


def input_files(args: argparse.Namespace) -> list[str]:
    """Return the files that are read, which must not be overwritten."""
    positives = args.positive.values() if isinstance(args.positive, ByClass) else [args.positive]
    return [file for file in (*positives, args.unlabeled, args.source, *args.target) if file]


def has_several(args: argparse.Namespace) -> bool:
    """Return whether the options ask for several targets, or for strata of one."""
    return len(args.target) > 1 or args.by is not None or args.stratify is not None


def _read_pipes(args: argparse.Namespace) -> None:
    """Replace each input file that is a pipe or standard input (-) by its content.

    The content can be read again when the target is copied, a pipe cannot.
    """
    by_class = args.positive if isinstance(args.positive, ByClass) else {"": args.positive}
    paths = [("--positive", path) for path in by_class.values()]
    paths += [("--unlabeled", args.unlabeled), ("--source", args.source)]
    paths += [("--target", path) for path in args.target]
    from_stdin = [option for option, path in paths if path == "-"]
    if len(from_stdin) > 1:
        raise InputError(
            f"{' and '.join(from_stdin)} are both standard input (-), which can be read once; pass a file."
        )
    tables: list[str | Piped | None] = []
    for option, path in paths:
        if path == "-":
            tables.append(standard_input(option))
        else:
            tables.append(read_pipe(path, f"{option} ({path})") if is_pipe(path) else path)
    positives, others = tables[: len(by_class)], tables[len(by_class) :]
    named = ByClass(zip(by_class, positives, strict=True))
    args.positive = named if isinstance(args.positive, ByClass) else positives[0]
    args.unlabeled, args.source, *args.target = others


def standard_input(option: str) -> Piped:
    """Read standard input to its end; `option`, whose file it is, is named in the message if it is closed."""
    if sys.stdin is None or sys.stdin.closed:
        raise InputError(f"{option} is standard input (-), which is closed; pass a file.")
    return Piped("standard input", sys.stdin.buffer.read())


def _check_options(args: argparse.Namespace) -> None:
    """Raise InputError for options that contradict each other or lack another one, and for a column with two uses."""
    split_option = "--by" if args.by else "--stratify"
    problems = {  # message: whether it applies
        "under --scenario censoring the shared rows are known; remove --id-column and --identical-rows.":
            args.scenario == "censoring" and (args.id_column or args.identical_rows),
        "--label-column is a column of --source; pass --source, or remove it.": args.label_column and not args.source,
        "--positive-label is a value of --label-column; pass that too, or remove it.":
            args.positive_label is not None and not args.label_column,
        "--source contains positive and unlabelled rows; remove --positive and --unlabeled.":
            args.source and (args.positive or args.unlabeled),
        "--source needs --label-column, which shows the rows that are labelled positive; pass it.":
            args.source and not args.label_column,
        "--unlabeled-label is a value of --label-column; pass that too, or remove it.":
            args.unlabeled_label is not None and not args.label_column,
        "--positive-label and --unlabeled-label cannot be combined; remove one.":
            args.unlabeled_label is not None and args.positive_label is not None,
        "pass --positive and --unlabeled, or --source with --label-column.":
            not args.source and not (args.positive and (args.unlabeled or not args.has_rest)),
        "--audit-column and --stratify cannot be combined; remove one.": args.audit_column and args.stratify,
        f"{split_option} is for one --target, but {len(args.target)} files are given; pass one.":
            (args.by or args.stratify) and len(args.target) > 1,
        "--stream is for one --target, with --positive and --unlabeled; remove it, or the other options.":
            args.stream and (args.source or has_several(args)),
    }  # fmt: skip
    for message, applies in problems.items():
        if applies:
            raise InputError(message)
    if isinstance(args.positive, str):
        check_one_class(rest=args.has_rest, in_shell=True)
    columns = {
        "--id-column": args.id_column, "--group-column": args.group_column, "--label-column": args.label_column,
        "--audit-column": args.audit_column, "--weight-column": args.weight_column, "--by": args.by,
        "--stratify": args.stratify,
    }  # fmt: skip
    named = [(option, column) for option, column in columns.items() if column is not None]
    dropped = [("--drop", column) for column in args.drop]
    for k, (option, column) in enumerate(named):
        for other_option, other_column in named[:k] + dropped:
            # an id may also be a group
            if other_column == column and (other_option, option) != ("--id-column", "--group-column"):
                raise InputError(f"{option} and {other_option} name the same column, {column!r}; remove one of them.")
