"""The command line. (argparse: it is enough, everybody has it, and it needs no dependency.)

Results go to stdout, in JSON with ``--json``; warnings go to stderr. Wrong use ends with one sentence and
exit code 2, and leaves no file half written.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from priorshift import __version__, intervals, kernels, simulate
from priorshift.errors import InputError, PriorShiftWarning
from priorshift.estimate import METHODS, estimate_from_tables
from priorshift.km_ls import KM2LS
from priorshift.labels import read_labels
from priorshift.tables import Table, check_dropped, match_columns, read_table
from priorshift.tcpu import TCPU

# settings of TCPU alone, with what they are when nobody sets them
_TCPU_ONLY = {
    "source_prior": None,
    "scenario": "case-control",
    "kernel": "gaussian",
    "bandwidth": "dimension",
    "statistic": "unbiased",
    "interval": "delta",
}
_PICTURES = (".png", ".svg", ".pdf")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, or 2 for wrong use or unusable data."""
    parser = _parser()
    args = parser.parse_args(arguments)
    try:
        with _warnings_as_sentences():
            args.run(args)
    except InputError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename or 'a file'} cannot be used ({error.strerror or error}).")
    except MemoryError:
        return _fail("the data do not fit into memory; use fewer rows.")
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written.", 130)
    return 0


def _fail(message: str, code: int = 2) -> int:
    print(f"priorshift: {message}", file=sys.stderr)
    return code


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports wrong use in one sentence, like everything else."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"priorshift: {message} (see {self.prog} --help).\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="priorshift",
        description="Estimate how common the positive class is in a new, unlabelled population.",
        epilog="Try 'priorshift demo'.",
    )
    parser.add_argument("--version", action="version", version=f"priorshift {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="estimate on bundled data with a made shift, and compare with the truth")
    demo.set_defaults(run=_demo)
    estimate = commands.add_parser(
        "estimate",
        help="estimate the target prior from your tables",
        description="Estimate the share of positives in the target population.",
        epilog="Tables are CSV, TSV or Parquet files with the same numeric columns.",
    )
    estimate.set_defaults(run=_estimate)

    add = estimate.add_argument
    add("--positive", metavar="FILE", help="labelled positives of the source population")
    add("--unlabeled", metavar="FILE", help="unlabelled sample of the source population")
    add("--source", metavar="FILE", help="both of them in one table, with --label-column")
    add("--label-column", metavar="NAME", help="column of --source: the larger of its two values means positive")
    add("--target", metavar="FILE", required=True, help="unlabelled sample of the target population")
    add(
        "--source-prior",
        metavar="PRIOR",
        type=_number,
        help="share of positives in the source population, if it is known; otherwise KM2 estimates it",
    )
    add("--scenario", choices=("case-control", "censoring"), default=_TCPU_ONLY["scenario"],
        help="case-control (default): unlabelled rows are a sample of the whole population; "
        "censoring: they are its rest after some positives were labelled")  # fmt: skip
    add("--id-column", metavar="NAME", help="rows with the same id in both source tables are the same observation")
    add("--identical-rows", action="store_true", help="rows with the same values are the same observation")
    add("--drop", metavar="NAME", action="append", default=[], help="a column that is not a feature (may be repeated)")
    add("--no-standardize", action="store_true", help="do not scale columns by the source's mean and spread")
    add("--method", choices=METHODS, default="auto", help="estimator (default: auto, at present tcpu)")
    add("--kernel", choices=kernels.KERNELS, default=_TCPU_ONLY["kernel"])
    add("--bandwidth", default=_TCPU_ONLY["bandwidth"], help="a number, 'dimension' (default) or 'median'")
    add("--statistic", choices=("unbiased", "plug-in"), default=_TCPU_ONLY["statistic"], help="plug-in is the paper's")
    add(
        "--interval",
        choices=intervals.METHODS,
        default=_TCPU_ONLY["interval"],
        help="how the interval is made (default: delta)",
    )
    for command in (demo, estimate):
        command.add_argument(
            "--confidence", metavar="LEVEL", type=_number, default=0.95, help="of the interval (default: 0.95)"
        )
        command.add_argument(
            "--random-state", metavar="SEED", type=int, default=0, help="decides everything random (default: 0)"
        )
        command.add_argument("--json", action="store_true", help="print the result as JSON")
        command.add_argument("--plot", metavar="FILE", help="write a picture of the objective (.png, .svg or .pdf)")
    return parser


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _demo(args: argparse.Namespace) -> None:
    """Breast-cancer data: tumours, 20 % malignant in the source, 50 % in the target."""
    from sklearn.datasets import load_breast_cancer

    _check_picture(args.plot)
    data = load_breast_cancer()
    malignant = data.target == 0
    s = simulate.shift_labels(data.data, malignant, 0.2, 0.5, random_state=args.random_state)
    tcpu = TCPU(0.2, standardize=True, confidence=args.confidence, random_state=args.random_state)
    estimate = tcpu.fit(s.X, s.y, shared=s.ids).estimate(s.target)
    truth = float(s.target_labels.mean())
    _picture(args.plot, lambda plots: plots.objective(estimate, truth=truth))
    if args.json:
        _json({**estimate.to_dict(), "truth": truth})
        return
    print(f"Breast-cancer data, {s.X.shape[1]} features.")
    print(f"source: {len(s.positive)} tumours known to be malignant, {len(s.unlabeled)} unlabelled ones, 20% malignant")
    print(f"target: {len(s.target)} unlabelled tumours of a new population")
    print(estimate)
    print(f"truth in the target sample: {truth:.3f}")
    if args.plot:
        print(f"picture: {args.plot}")


def _estimate(args: argparse.Namespace) -> None:
    _check_picture(args.plot)
    estimator = _estimator(args)
    shared = "identical" if args.identical_rows else args.id_column
    estimate = estimate_from_tables(estimator, *_tables(args), shared=shared)
    if args.method == "km2-ls":
        _picture(args.plot, lambda plots: plots.distance_curve(estimator.prior_estimator_))
    else:
        _picture(args.plot, lambda plots: plots.objective(estimate))
    if args.json:
        _json(estimate.to_dict())
    else:
        print(estimate)


def _estimator(args: argparse.Namespace) -> TCPU | KM2LS:
    bandwidth: str | float = args.bandwidth
    with suppress(ValueError):
        bandwidth = float(args.bandwidth)
    same = {
        "standardize": not args.no_standardize,
        "confidence": args.confidence,
        "random_state": args.random_state,
    }
    if args.method != "km2-ls":
        return TCPU(
            args.source_prior,
            kernel=args.kernel,
            bandwidth=bandwidth,
            statistic=args.statistic,
            scenario=args.scenario,
            interval=args.interval,
            **same,
        )
    for option, unset in _TCPU_ONLY.items():
        if getattr(args, option) != unset:
            raise InputError(f"--{option.replace('_', '-')} has no meaning for --method km2-ls; leave it out.")
    return KM2LS(**same)


def _tables(args: argparse.Namespace) -> list[Table]:
    """Unlabelled, positive and target table, with the same columns."""
    if args.id_column and args.identical_rows:
        raise InputError("--id-column and --identical-rows both say which rows are shared; give one of them.")
    if args.scenario == "censoring" and (args.id_column or args.identical_rows):
        raise InputError(
            "under --scenario censoring the shared rows are known; leave --id-column and --identical-rows out."
        )
    for option, column in (("--id-column", args.id_column), ("--label-column", args.label_column)):
        if column is not None and column in args.drop:
            raise InputError(f"{option} and --drop name the same column, {column!r}; it must be one of them.")
    if args.label_column and not args.source:
        raise InputError("--label-column is a column of --source; pass --source, or leave it out.")
    aside = [args.id_column] if args.id_column else []
    if args.source:
        if args.positive or args.unlabeled:
            raise InputError("--source holds positives and unlabelled rows; leave --positive and --unlabeled out.")
        if not args.label_column:
            raise InputError("--source needs --label-column, the column that says which rows are labelled positive.")
        if args.label_column in aside:
            raise InputError("--label-column and --id-column name the same column; they must differ.")
        source = read_table(args.source, "--source", [*aside, args.label_column], args.drop)
        positive, unlabeled = _split(source, args.label_column)
    else:
        if not (args.positive and args.unlabeled):
            raise InputError("pass --positive and --unlabeled, or --source with --label-column.")
        positive = read_table(args.positive, "--positive", aside, args.drop)
        unlabeled = read_table(args.unlabeled, "--unlabeled", aside, args.drop)
    elsewhere = [name for name in (args.id_column, args.label_column) if name]
    target = read_table(args.target, "--target", drop=[*args.drop, *elsewhere])
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


def _json(result: dict[str, Any]) -> None:
    print(json.dumps(result, ensure_ascii=False, allow_nan=False))


def _check_picture(path: str | None) -> None:
    """Before any work: can the picture be written at all?"""
    if path is None:
        return
    if Path(path).suffix.lower() not in _PICTURES:
        raise InputError(f"--plot {path} must end in {', '.join(_PICTURES)}; name the picture so.")
    if not Path(path).absolute().parent.is_dir():
        raise InputError(f"--plot {path} lies in a folder that does not exist; make it first.")
    if Path(path).is_dir():
        raise InputError(f"--plot {path} is a folder; name a file.")
    try:
        import matplotlib
    except ImportError:
        raise InputError('--plot needs matplotlib; run pip install "priorshift[plot]".') from None
    matplotlib.use("agg")


def _picture(path: str | None, draw: Callable[[Any], Any]) -> None:
    """Draw into a temporary file beside the wanted one, then rename: all of it or nothing."""
    if path is None:
        return
    from priorshift import plots

    figure = draw(plots).figure
    with tempfile.TemporaryDirectory(dir=Path(path).absolute().parent) as folder:
        drawn = Path(folder) / Path(path).name
        figure.savefig(drawn, dpi=150)
        os.replace(drawn, path)


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """The library's warnings as sentences on stderr, without the line of code that Python adds."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PriorShiftWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
            if issubclass(category, PriorShiftWarning):
                print(f"priorshift: warning: {message}", file=sys.stderr)
            else:
                usual(message, category, *rest, **named)

        warnings.showwarning = show
        yield
