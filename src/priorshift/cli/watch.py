"""`priorshift watch`: fit a monitor once, then add one batch after the other to its state, with alarms as exit codes.

The state is locked from reading to writing and written as a whole before any other file. A process that is killed
leaves the state before or after its batch; the same command then completes what is missing.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from priorshift.cli.inputs import estimator_settings, standard_input
from priorshift.cli.options import RED, colored, printable
from priorshift.cli.output import check_writable, print_json, print_note
from priorshift.errors import InputError
from priorshift.io.files import is_pipe, kind, read_pipe
from priorshift.io.readers import read_table
from priorshift.io.tables import ColumnSelection
from priorshift.io.targets import escape_name
from priorshift.loading import LabeledTable, split_labeled
from priorshift.monitoring import Monitor, MonitorPoint
from priorshift.monitoring.outputs import SeriesLog, write_metrics
from priorshift.monitoring.state_file import locked
from priorshift.progress import track_progress
from priorshift.report.page import ENDINGS, check_extra, check_pdf_extra, is_pdf

ALARM, BROKEN = 3, 4  # exit codes
_SECONDS = 2.0  # between two states that a replay writes
_RULES = ("level", "false_alarm", "run_length", "reference", "confidence")
_COLUMNS = {"weights": "weight_column", "groups": "group_column", "audit": "audit_column", "by": "by"}
_OF_SOURCE = (
    "positive", "unlabeled", "source", "label_column", "positive_label", "source_prior", "scenario", "series", "drop",
    "random_state", *_COLUMNS.values(),
)  # fmt: skip
_OF_BATCH = ("state", "target", "name", "time", "replay", "acknowledge", "metrics", "log", "chart", "report")
_PHRASES = {  # of messages for Python, and what the shell has in their place
    "replace=True": "--replace", "reference=20": "--reference 20", "pass series=[…]": "pass --series",
    "(low, high)": "LOW-HIGH",
    "compared with the sample that fixed the columns; pass the columns that it has.":
        "compared with the source; pass its columns, or fit the model with --drop for columns that are no features.",
    "pass a file that save() or priorshift sketch wrote.": "pass the model that watch wrote when it was fitted.",
}  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run `priorshift watch`: fit a model, add a batch, replay a history or acknowledge a broken assumption."""
    with _in_terms_of_the_shell():
        if args.positive or args.unlabeled or args.source:
            _fit(args)
            return 0
        files = _check_batches(args)
        with locked(args.state):
            return _watch(args, files)


@contextmanager
def _in_terms_of_the_shell() -> Iterator[None]:
    """Raise errors with options in place of Python's parameters."""
    try:
        yield
    except InputError as error:
        setting, _, rest = str(error).partition(" is ")
        message = f"--{setting.replace('_', '-')} is {rest}" if setting in _RULES else str(error)
        for phrase, option in _PHRASES.items():
            message = message.replace(phrase, option)
        raise InputError(message) from None


# ---- the model


def _fit(args: argparse.Namespace) -> None:
    """Fit a monitor to the source, and save it as the model."""
    _refuse(args, _OF_BATCH, "is for batches, which follow in a command without the source")
    _check_columns(args)
    if args.source and (args.positive or args.unlabeled):
        raise InputError("--source contains positive and unlabelled rows; remove --positive and --unlabeled.")
    if bool(args.source) != bool(args.label_column):
        raise InputError("--source and --label-column belong together; pass both, or --positive and --unlabeled.")
    if not args.source and not (args.positive and args.unlabeled):
        raise InputError("pass --positive and --unlabeled, or --source with --label-column.")
    check_writable("--model", args.model, [args.positive, args.unlabeled, args.source])
    if os.path.exists(args.model) and not args.replace:
        raise InputError(
            f"--model {args.model} exists; leave the source out to add a batch with it, or pass --replace to fit it "
            "again, which needs a new --state."
        )
    columns = {name: getattr(args, option) for name, option in _COLUMNS.items()}
    settings = {name: value for name, value in estimator_settings(args).items() if name != "confidence"}
    drop = [*args.drop, *([args.label_column] if args.label_column else [])]
    monitor = Monitor(**settings, **_rules(args), **columns, series=args.series or None, drop=drop)
    monitor.fit_samples(*_read_source(args))
    monitor.save(args.model)
    lines = [f"{monitor.model_}, written to {args.model}.", *_level_notes(monitor)]
    if not args.json:
        print(printable("\n".join(lines)))
        return
    for line in lines:
        print_note(line)
    positive, unlabeled = monitor.model_.source.sizes
    print_json({
        "kind": "model", "model": monitor.model_.fingerprint, "positive": positive, "unlabeled": unlabeled,
        "alarm_shares": monitor.alarm_shares, "path": args.model,
    })  # fmt: skip


def _level_notes(monitor: Monitor) -> list[str]:
    """Return for each level in a sentence from which share on it raises an alarm."""
    low, high = monitor.level if isinstance(monitor.level, tuple) else (None, monitor.level)
    notes = []
    for side, share in monitor.alarm_shares.items():
        alarm = f"An alarm {side} {100 * (high if side == 'above' else low):g}%"
        if share is None:
            notes.append(
                f"{alarm} is not possible, since the source leaves open which shares are beyond it. Choose a less "
                "extreme level, state the source prior, or label more rows."
            )
        else:
            beyond = f"{100 * share:.3g}% or {'more' if side == 'above' else 'less'}"
            notes.append(f"{alarm} is possible for a share of about {beyond}; the closer to it, the later.")
    return notes


def _read_source(args: argparse.Namespace) -> tuple[Any, Any]:
    """Return positives and unlabelled rows, as files or, from a table with a column of labels, as tables."""
    if not args.source:
        return _open("--positive", args.positive), _open("--unlabeled", args.unlabeled)
    columns = tuple(column for column in (getattr(args, option) for option in _COLUMNS.values()) if column)
    selection = ColumnSelection(extra=(args.label_column,), optional=columns, drop=tuple(args.drop))
    table = read_table(_open("--source", args.source), "--source", selection)
    labeled = LabeledTable(table, args.label_column, args.positive_label)
    positive, unlabeled = split_labeled(table, labeled, rest=True, parameter="--positive-label")
    return positive[""], unlabeled


def _open(option: str, path: str) -> Any:
    """Return a path, or the content of a pipe or of standard input (-)."""
    if path == "-":
        return standard_input(option)
    return read_pipe(path, f"{option} ({path})") if is_pipe(path) else path


# ---- batches


def _check_batches(args: argparse.Namespace) -> dict[str, str]:
    """Check the options for batches before any work, and return the files of the batches by name."""
    _refuse(args, _OF_SOURCE, "is a setting of the model; pass it with the source, in the command that fits the model")
    if args.state is None:
        raise InputError("--state is missing; name the file of the state, which is created if it does not exist.")
    if sum([args.target is not None, bool(args.replay), args.acknowledge]) == 0:
        raise InputError("pass --target with the file of a batch, or --replay with the files of a history.")
    if args.target is not None and args.replay:
        raise InputError("--target is one batch and --replay are several; remove one of them.")
    files = _replayed(args) if args.replay else {}
    if args.target is not None:
        files = {_batch_name(args): args.target}
    written = {f"--{name}": getattr(args, name) for name in ("state", "metrics", "log", "chart", "report")}
    _check_pictures(args)
    others = [("--model", args.model)]
    for option, path in written.items():
        if path is not None:
            check_writable(option, path, list(files.values()))
            for other_option, other in others:
                if os.path.realpath(other) == os.path.realpath(path):
                    raise InputError(f"{other_option} and {option} name the same file, {path}; name another one.")
            others.append((option, path))
    return files


def _check_pictures(args: argparse.Namespace) -> None:
    """Check the endings of --chart and --report, and that their optional packages are installed."""
    for option, path, endings in (("--chart", args.chart, (".svg", ".png")), ("--report", args.report, ENDINGS)):
        if path is not None and Path(path).suffix.lower() not in endings:
            raise InputError(f"{option} {path} must end in {endings[0]} or {endings[-1]}; rename it.")
    if args.chart is not None or args.report is not None:
        check_extra()
    if args.report is not None and is_pdf(args.report):
        check_pdf_extra()


def _batch_name(args: argparse.Namespace) -> str:
    """Return the name of the batch: --name, or the name of its file without the ending."""
    if args.name is not None:
        return str(args.name)
    if args.target == "-" or is_pipe(args.target):
        raise InputError("--name is missing, and a pipe has none; pass --name, such as a date.")
    return _stem(Path(args.target))


def _stem(path: Path) -> str:
    """Return the name of a file without the ending of a table, such as .csv or .csv.gz."""
    path = path if path.name else path.resolve()
    return escape_name(Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem)


def _replayed(args: argparse.Namespace) -> dict[str, str]:
    """Return the files of a history by the names of the batches; those of a folder in the order of their names."""
    _refuse(args, ("name", "time"), "is for one batch; batches of --replay have the names of their files")
    paths: list[Path] = []
    for path in map(Path, args.replay):
        if path.is_dir():
            tables = sorted(file for file in path.iterdir() if kind(file) and not file.name.startswith("."))
            if not tables:
                raise InputError(f"--replay {path} has no tables; name a folder with CSV, Parquet or Excel files.")
            paths += tables
        else:
            paths.append(path)
    files: dict[str, str] = {}
    for path in paths:
        name = _stem(path)
        if name in files:
            raise InputError(f"--replay has {files[name]} and {path}, both named {name!r}; rename one of them.")
        files[name] = str(path)
    return files


def _watch(args: argparse.Namespace, files: dict[str, str]) -> int:
    """Add batches to the state, write what was asked for, and return the exit code of the worst batch."""
    monitor, is_new = _load(args)
    log = None if args.log is None else SeriesLog.read(args.log)
    if is_new and log is not None and log.digests:
        raise InputError(
            f"--log {args.log} has batches, but --state {args.state} does not exist; restore the state, or name "
            "another --log to start again."
        )
    if args.acknowledge:
        if is_new:
            raise InputError(f"--acknowledge needs a state, but --state {args.state} does not exist; check its name.")
        _acknowledge(args, monitor)
    worst, is_changed = 0, args.acknowledge
    new_state = f"{args.state} did not exist, so a new state was started from {args.model}."
    if is_new and args.level is not None:
        new_state = " ".join([new_state, *_level_notes(monitor)])
    if args.replay:
        worst = max(worst, _replay(args, monitor, files))
        is_changed = False
        if is_new:
            print_note(new_state)
    else:
        for name, path in files.items():
            points = _update(args, monitor, name, _open("--target", path))
            is_changed = is_changed or is_new or any(point.status != "repeated" for point in points)
    with _explained_interrupt(args):
        if is_changed:
            monitor.save_state(args.state)
            if is_new:
                print_note(new_state)
        if not args.replay and files:  # before other files, which may be impossible to write
            worst = _show(args, monitor, next(iter(files)), points)
        if log is not None:
            log.append(monitor)
        if args.metrics is not None:
            write_metrics(monitor, args.metrics)
        if args.chart is not None and monitor.points:
            monitor.chart(args.chart)
        if args.report is not None:
            monitor.report(args.report)
    return worst


def _load(args: argparse.Namespace) -> tuple[Monitor, bool]:
    """Load the monitor with its state, and return whether the state is a new one, with the rules that were passed."""
    is_new = not os.path.lexists(args.state)
    monitor = Monitor.load(args.model, None if is_new else args.state)
    rules = _rules(args)
    if is_new and not monitor.points:
        return monitor.restart(**rules), True
    for name, value in rules.items():
        if getattr(monitor, name) != value:
            stored = getattr(monitor, name)
            option = f"--{name.replace('_', '-')}"
            raise InputError(
                f"{option} is {_rule_text(value)}, but the state was started with {_rule_text(stored)}; leave "
                f"{option} out, or start another state."
            )
    return monitor, is_new


def _rule_text(value: Any) -> str:
    """Return a setting of a rule as the shell has it."""
    if value is None:
        return "none"
    if isinstance(value, tuple):
        low, high = ("1" if end is None else f"{end:g}" for end in value)
        return f"{low}-{high}"
    return value if isinstance(value, str) else f"{value:g}"


def _rules(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the rules that were passed, by their names in Python."""
    rules = {name: getattr(args, name) for name in _RULES}
    return {name: value for name, value in rules.items() if value is not None}


def _acknowledge(args: argparse.Namespace, monitor: Monitor) -> None:
    """Acknowledge that label shift failed, and print since when, unless batches follow."""
    broken = monitor.broken_since
    monitor.acknowledge()
    for series, since in broken.items():
        where = f" in series {series!r}" if series else ""
        print_note(f"acknowledged that the rows no longer follow label shift since {since!r}{where}.")
    if not broken:
        print_note("there was nothing to acknowledge: the rows follow label shift.")
    if args.json and args.target is None and not args.replay:
        print_json({"kind": "acknowledgement", "since": broken, "path": args.state})


def _update(args: argparse.Namespace, monitor: Monitor, name: str, data: Any) -> list[MonitorPoint]:
    """Add a batch, and return its point, or one for each series."""
    result = monitor.update(data, name=name, time=args.time, replace=args.replace)
    return [result] if isinstance(result, MonitorPoint) else list(result.values())


def _replay(args: argparse.Namespace, monitor: Monitor, files: dict[str, str]) -> int:
    """Add the batches of a history, and print each; write the state now and then, and return the worst exit code."""
    worst, saved_at, repeated, added = 0, time.monotonic(), 0, 0
    is_terminal = sys.stdout is not None and sys.stdout.isatty()  # whose lines are progress enough
    with _explained_interrupt(args), track_progress("replay", len(files)) as advance:
        for name, path in files.items():
            if not is_terminal:
                advance()
            try:
                points = _update(args, monitor, name, path)
            except InputError:
                if added or args.acknowledge:
                    monitor.save_state(args.state)  # of the batches before this one
                raise
            is_repeated = all(point.status == "repeated" for point in points)
            repeated, added = repeated + is_repeated, added + (not is_repeated)
            worst = max(worst, _show(args, monitor, name, points))
            if time.monotonic() - saved_at > _SECONDS:
                monitor.save_state(args.state)
                saved_at = time.monotonic()
        monitor.save_state(args.state)
    before = f", of which {repeated} had been counted before" if repeated else ""
    print_note(f"{len(files)} batches replayed{before}; the state is in {args.state}.")
    return worst


@contextmanager
def _explained_interrupt(args: argparse.Namespace) -> Iterator[None]:
    """Say on Ctrl-C, once files may have been written, that the state is complete and what to do."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; {args.state} is whole, with the last batch or without it. Run the same command to continue."
        ) from None


def _show(args: argparse.Namespace, monitor: Monitor, name: str, points: Sequence[MonitorPoint]) -> int:
    """Print the points of a batch, and return the exit code."""
    code = BROKEN if monitor.broken_since else ALARM if any(point.alarms for point in points) else 0
    if args.json:
        shown = [point.to_dict() for point in points]
        print_json({"kind": "batch", "name": name, "exit_code": code, "points": shown})
        return code
    for point in points:
        lines = str(point).split("\nALARM: ")
        texts = [printable(line).replace("\n", "\\n").replace("\t", "\\t") for line in lines]
        print(f"\n{colored('ALARM:', RED)} ".join(texts))
    if code == BROKEN and not args.replay and not any(point.broke_assumption for point in points):
        print_note("the rows of a later batch no longer follow label shift; check the data, and pass --acknowledge.")
    return code


# ---- options


def _refuse(args: argparse.Namespace, names: Sequence[str], reason: str) -> None:
    """Raise InputError if one of the named options was passed, with the reason why it does not apply."""
    for name in names:
        if getattr(args, name) not in (None, [], False):
            raise InputError(f"--{name.replace('_', '-')} {reason}.")


def _check_columns(args: argparse.Namespace) -> None:
    """Raise InputError if two options name the same column."""
    named = [
        (f"--{option.replace('_', '-')}", getattr(args, option)) for option in (*_COLUMNS.values(), "label_column")
    ]
    named = [(option, column) for option, column in named if column is not None]
    named += [("--drop", column) for column in args.drop]
    uses: dict[str, str] = {}
    for option, column in named:
        if uses.setdefault(column, option) != option:
            raise InputError(f"{uses[column]} and {option} name the same column, {column!r}; remove one of them.")
