"""The command line of the studies: list, run, table, figure, compare, docs, features.

python -m experiments run uci            what is missing of it; killed at any moment, it goes on where it was
priorshift experiment table uci --json   the same, from anywhere inside the repository
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments import own
from experiments.grids import EXPERIMENTS, Experiment
from experiments.studies import STUDIES
from experiments.study import Study
from priorshift.errors import InputError

HOME = Path(__file__).parent
RESULTS = HOME / "results"
DOCUMENTS = (*sorted((HOME.parent / "docs").glob("*.md")), HOME.parent / "README.md")
_SMOKE = Path(tempfile.gettempdir()) / "priorshift-smoke"


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
    parser = argparse.ArgumentParser(prog="priorshift experiment", description="The paper's experiments and ours.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], None], says: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=says)
        added.set_defaults(run=run)
        return added

    lists = command("list", _list, "what there is, and how much of it is done")
    runs = command("run", _run, "make what is missing of a study")
    tables = command("table", _table, "its figures, beside the published ones where there are any")
    figures = command("figure", _figure, "draw an experiment, or one of the paper's figures 1 and 2")
    compare = command("compare", _compare, "the page that sets our figures beside the published ones")
    docs = command("docs", _docs, "write the studies' tables into the documents anew")
    features = command("features", _features, "the paper's image features, where torchvision can download")
    for named in (runs, tables, figures):
        named.add_argument("name", help="a study" + ", 1 or 2" * (named is figures) + ", or all")
        named.add_argument("--smoke", action="store_true", help="a small part, in a folder of its own")
    runs.add_argument("--methods", metavar="NAMES", help="by commas; package.module:Class is a method of yours")
    runs.add_argument("--repetitions", metavar="N", type=int, help="fewer or more than the study's own number")
    runs.add_argument("--processes", metavar="N", type=int, help="as many as there are cores, by default")
    tables.add_argument("--json", action="store_true", help="rows as JSON")
    figures.add_argument("--output", metavar="FOLDER", type=Path, default=HOME / "figures", help="where to draw")
    compare.add_argument("--output", metavar="FILE", type=Path, default=HOME / "COMPARISON.md", help="the page")
    docs.add_argument(
        "files", nargs="*", type=Path, default=DOCUMENTS, help="the pages of docs and the README, by default"
    )
    docs.add_argument("--check", action="store_true", help="write nothing; fail where a table is not that of the lines")
    features.add_argument("--output", metavar="FOLDER", type=Path, required=True, help="becomes PRIORSHIFT_DATA")
    for reads in (lists, runs, tables, figures, compare, docs):
        reads.add_argument("--results", metavar="FOLDER", type=Path, default=RESULTS, help="where the lines are")
    return parser


def _asked(args: argparse.Namespace) -> list[Study]:
    """The studies by their name, or the small part of each; then results and pictures have their own folder."""
    if args.name != "all" and args.name not in STUDIES:
        raise InputError(f"there is no study {args.name!r}; there are {', '.join(STUDIES)} and all.")
    studies = [study for study in STUDIES.values() if args.name in (study.name, "all")]
    if not args.smoke:
        return studies
    if args.results == RESULTS:
        args.results = _SMOKE
    return [study.small() for study in studies]


def _list(args: argparse.Namespace) -> None:
    for study in STUDIES.values():
        print(f"{study.name:17}{study.title}")
        shares = study.progress(args.results).items()
        print(f"{'':17}" + ", ".join(f"{method} {share:.0%}".strip() for method, share in shares))


def _run(args: argparse.Namespace) -> None:
    from experiments.runner import run

    for option in ("repetitions", "processes"):
        if getattr(args, option) is not None and getattr(args, option) < 1:
            raise InputError(f"--{option} is {getattr(args, option)}, but it must be at least 1.")
    for study in _asked(args):
        if args.name == "all" and (args.methods or args.repetitions) and not study.methods:
            continue  # a study of its own kind has neither to choose
        made = run(
            study,
            args.results / f"{study.name}.jsonl",
            methods=args.methods and _methods(study, args.methods.split(",")),
            repetitions=args.repetitions,
            processes=args.processes,
        )
        print(f"{study.name}: {made} new lines")


def _methods(study: Study, names: list[str]) -> tuple[str, ...]:
    """Those of the names that the study has, and everybody's own; a name that no experiment has is a mistake."""
    if not study.methods:
        raise InputError(f"{study.name} has no methods to choose from; leave --methods out.")
    for name in names:
        if own.is_own(name):
            own.load(name)  # refused before the work rather than in the midst of it
        elif not any(name in experiment.methods for experiment in EXPERIMENTS.values()):
            raise InputError(f"{study.name} has no method {name!r}; it has {', '.join(study.methods)}.")
    return tuple(name for name in names if own.is_own(name) or name in study.methods)


def _table(args: argparse.Namespace) -> None:
    tables = [(study, study.table(args.results)) for study in _asked(args)]
    if not any(rows for _, rows in tables):
        raise InputError(f"there are no lines of {args.name} yet; run 'priorshift experiment run {args.name}'.")
    if args.json:
        print(json.dumps([row for _, rows in tables for row in rows], ensure_ascii=False, allow_nan=False))
    else:
        print("\n\n".join(f"{study.title}\n\n{study.words(rows)}" for study, rows in tables if rows))


def _figure(args: argparse.Namespace) -> None:
    from experiments.figures import PAPER, draw_experiment

    if args.smoke and args.output == HOME / "figures":
        args.output = _SMOKE
    args.output.mkdir(parents=True, exist_ok=True)
    for name, draw in PAPER.items():
        if args.name in (name, "all"):
            print(draw(args.output))
    for study in [] if args.name in PAPER else _asked(args):
        if not isinstance(study, Experiment):
            if args.name != "all":
                raise InputError(f"{study.name} has no figure; 'priorshift experiment table {study.name}' prints it.")
        elif args.name != "all" or (args.results / f"{study.name}.jsonl").exists():
            for path in draw_experiment(study, args.results, args.output):
                print(path)


def _compare(args: argparse.Namespace) -> None:
    from experiments.compare import page
    from experiments.documents import replace_text

    replace_text(args.output, page(args.results))
    print(args.output)


def _docs(args: argparse.Namespace) -> None:
    from experiments.documents import renew, texts

    there = texts(args.results)
    for path in args.files:
        names = renew(path, there, write=not args.check)
        if names and args.check:
            raise InputError(f"{path.name}: the table {names[0]} is not that of the lines; run 'make docs-tables'.")
        if not args.check:
            renewed, left = ([n for n in names if (n in there) == made] for made in (True, False))
            waiting = f"; left as they are, for want of lines: {', '.join(left)}" if left else ""
            print(f"{path}: {len(renewed)} table{'s' * (len(renewed) != 1)} renewed{waiting}")


def _features(args: argparse.Namespace) -> None:
    from experiments.features import write_features

    write_features(args.output)


if __name__ == "__main__":
    sys.exit(main())
