"""The command line of the experiments: list, run, table, figure, compare, features.

python -m experiments run uci            what is missing of it; killed at any moment, it goes on where it was
priorshift experiment table uci --json   the same, from anywhere inside the repository
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from experiments.grids import EXPERIMENTS, Experiment, small
from priorshift.errors import InputError

HOME = Path(__file__).parent
RESULTS = HOME / "results" / "paper"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0, or 2 with one sentence."""
    args = _parser().parse_args(arguments)
    try:
        args.run(args)
    except InputError as error:
        print(f"priorshift: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"priorshift: {error.filename or 'a file'} cannot be used ({error.strerror or error}).", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("priorshift: interrupted; what was done is kept: run again to go on.", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="priorshift experiment", description="The paper's experiments.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    lists = commands.add_parser("list", help="what there is, and how much of it is done")
    lists.set_defaults(run=_list)
    runs = commands.add_parser("run", help="make what is missing of an experiment")
    runs.set_defaults(run=_run)
    runs.add_argument("name", help="an experiment, or all")
    runs.add_argument("--methods", metavar="NAMES", help="some of its methods, separated by commas")
    runs.add_argument("--repetitions", metavar="N", type=int, help="fewer or more than the paper's 20")
    runs.add_argument("--processes", metavar="N", type=int, help="as many as there are cores, by default")
    tables = commands.add_parser("table", help="errors, beside the published ones where there are any")
    tables.set_defaults(run=_table)
    figures = commands.add_parser("figure", help="draw an experiment, or one of the paper's figures 1 and 2")
    figures.set_defaults(run=_figure)
    for command in (tables, figures):
        command.add_argument("name", help="an experiment" + ", 1 or 2" * (command is figures) + ", or all")
    tables.add_argument("--json", action="store_true", help="rows as JSON")
    figures.add_argument("--output", metavar="FOLDER", type=Path, default=HOME / "figures", help="where to draw")
    compare = commands.add_parser("compare", help="the page that sets our figures beside the published ones")
    compare.set_defaults(run=_compare)
    compare.add_argument("--output", metavar="FILE", type=Path, default=HOME / "COMPARISON.md", help="the page")
    features = commands.add_parser("features", help="the paper's image features, where torchvision can download")
    features.set_defaults(run=_features)
    features.add_argument("--output", metavar="FOLDER", type=Path, required=True, help="becomes PRIORSHIFT_DATA")
    for command in (runs, tables, figures):
        command.add_argument("--smoke", action="store_true", help="a small part, in a folder of its own")
    for command in (lists, runs, tables, figures, compare):
        command.add_argument("--results", metavar="FOLDER", type=Path, default=RESULTS, help="where the lines are")
    return parser


def _asked(args: argparse.Namespace) -> list[Experiment]:
    """The experiments by their name, or the small part of each; then results and pictures have their own folder."""
    if args.name != "all" and args.name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {args.name!r}; there are {', '.join(EXPERIMENTS)} and all.")
    found = [e for e in EXPERIMENTS.values() if args.name in (e.name, "all")]
    if not args.smoke:
        return found
    if args.results == RESULTS:
        args.results = Path(tempfile.gettempdir()) / "priorshift-smoke"
    return [small(e) for e in found]


def _list(args: argparse.Namespace) -> None:
    from experiments.tables import progress

    for experiment in EXPERIMENTS.values():
        done = progress(experiment, args.results)
        print(f"{experiment.name:14} {experiment.title}")
        print(f"{'':14} " + ", ".join(f"{method} {share:.0%}" for method, share in done.items()))


def _run(args: argparse.Namespace) -> None:
    from experiments.runner import run

    for option in ("repetitions", "processes"):
        if getattr(args, option) is not None and getattr(args, option) < 1:
            raise InputError(f"--{option} is {getattr(args, option)}, but it must be at least 1.")
    for experiment in _asked(args):
        methods = experiment.methods if args.methods is None else tuple(args.methods.split(","))
        unknown = [m for m in methods if not any(m in e.methods for e in EXPERIMENTS.values())]
        if unknown:
            raise InputError(f"{experiment.name} has no method {unknown[0]!r}; it has {', '.join(experiment.methods)}.")
        methods = tuple(m for m in methods if m in experiment.methods)
        if not methods:
            continue
        made = run(
            experiment,
            args.results / f"{experiment.name}.jsonl",
            methods=methods,
            repetitions=args.repetitions,
            processes=args.processes,
        )
        print(f"{experiment.name}: {made} new lines")


def _table(args: argparse.Namespace) -> None:
    from experiments.tables import table, words

    rows = [row for experiment in _asked(args) for row in table(experiment, args.results)]
    if not rows:
        raise InputError(f"there are no lines of {args.name} yet; run 'priorshift experiment run {args.name}'.")
    print(json.dumps(rows, ensure_ascii=False, allow_nan=False) if args.json else words(rows))


def _figure(args: argparse.Namespace) -> None:
    from experiments.figures import PAPER, draw_experiment

    if args.smoke and args.output == HOME / "figures":
        args.output = Path(tempfile.gettempdir()) / "priorshift-smoke"
    args.output.mkdir(parents=True, exist_ok=True)
    if args.name in PAPER or args.name == "all":
        for name, draw in PAPER.items():
            if args.name in (name, "all"):
                print(draw(args.output))
    if args.name not in PAPER:
        for experiment in _asked(args):
            if args.name == "all" and not (args.results / f"{experiment.name}.jsonl").exists():
                continue
            for path in draw_experiment(experiment, args.results, args.output):
                print(path)


def _compare(args: argparse.Namespace) -> None:
    from experiments.compare import page

    text = page(args.results)
    draft = args.output.with_name(f".{args.output.name}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(args.output)
    print(args.output)


def _features(args: argparse.Namespace) -> None:
    from experiments.features import write_features

    write_features(args.output)


if __name__ == "__main__":
    sys.exit(main())
