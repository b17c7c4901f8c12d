"""Command line of the studies: list, run, table, figure, verify, compare, docs, features.

python -m experiments run uci            compute the missing lines; an interrupted run continues where it stopped
python -m experiments verify             compute a few lines of each study again and compare them with the stored ones
priorshift experiment table uci --json   the same commands, from any folder
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments import custom_methods
from experiments.grids import EXPERIMENTS, Experiment
from experiments.studies import STUDIES
from experiments.study import Study
from priorshift.errors import InputError

HOME = Path(__file__).parent
RESULTS = HOME / "results"
DOCUMENTS = (*sorted((HOME.parent / "docs").glob("*.md")), HOME.parent / "README.md")
_SMOKE = Path(tempfile.gettempdir()) / "priorshift-smoke"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, 1 where results differ, 2 after an error message."""
    status: int | None = 0
    try:
        args = _parser().parse_args(arguments)
        status = args.run(args)
        print(end="", flush=True)  # an error of standard output appears here, and not at exit
    except InputError as error:
        print(f"priorshift: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"priorshift: Cannot use {error.filename or 'a file'}: {error.strerror or error}.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("priorshift: Interrupted. Completed lines are saved: run again to continue.", file=sys.stderr)
        return 130
    return status or 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="priorshift experiment", description="Run the paper's experiments and the library's studies."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int | None], help: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        added.set_defaults(run=run)
        return added

    lists = command("list", _list, "list the studies and how much of each is complete")
    lists.add_argument("--names", action="store_true", help="print only the names, separated by spaces")
    runs = command("run", _run, "compute the missing lines of a study")
    tables = command("table", _table, "print the table of a study, with the published results if there are any")
    figures = command("figure", _figure, "draw an experiment, or one of the paper's figures 1 and 2")
    verifies = command("verify", _verify, "compute a few lines again and compare them with the stored ones")
    compare = command("compare", _compare, "write the page that compares our results with the published ones")
    docs = command("docs", _docs, "update the tables of the studies in the documents")
    features = command(
        "features", _features, "compute the paper's image features (needs torchvision and internet access)"
    )
    for named in (runs, tables, figures):
        named.add_argument("name", help="name of a study" + ", 1 or 2" * (named is figures) + ", or all")
    verifies.add_argument("name", nargs="?", default="all", help="name of a study, or all. Default all")
    for named in (runs, tables, figures, verifies):
        named.add_argument(
            "--smoke", action="store_true", help="use a small part of the study, in a temporary folder of results"
        )
    runs.add_argument(
        "--methods", metavar="NAMES", help="methods, separated by commas; package.module:Class is a custom one"
    )
    runs.add_argument("--repetitions", metavar="N", type=int, help="number of repetitions. Default that of the study")
    runs.add_argument("--processes", metavar="N", type=int, help="number of processes. Default the number of cores")
    tables.add_argument("--json", action="store_true", help="print the rows as JSON")
    figures.add_argument(
        "--output", metavar="FOLDER", type=Path, default=HOME / "figures", help="folder of the figures"
    )
    compare.add_argument("--output", metavar="FILE", type=Path, default=HOME / "COMPARISON.md", help="file of the page")
    docs.add_argument(
        "files", nargs="*", type=Path, default=DOCUMENTS, help="documents. Default the pages of docs and the README"
    )
    docs.add_argument("--check", action="store_true", help="write nothing; fail if a table is not up to date")
    features.add_argument(
        "--output", metavar="FOLDER", type=Path, required=True, help="folder to write to; set PRIORSHIFT_DATA to it"
    )
    verifies.add_argument("--units", metavar="N", type=int, default=1, help="units of work for each study. Default 1")
    verifies.add_argument(
        "--seconds", metavar="S", type=float, default=90.0, help="limit of a unit's CPU time. Default 90"
    )
    for reads in (lists, runs, tables, figures, verifies, compare, docs):
        reads.add_argument("--results", metavar="FOLDER", type=Path, default=RESULTS, help="folder of the results")
    return parser


def _selected_studies(args: argparse.Namespace) -> list[Study]:
    """Return the studies with the name, or their small parts, whose results are in a temporary folder by default."""
    if args.name != "all" and args.name not in STUDIES:
        raise InputError(f"Unknown study {args.name!r}. Choose one of {', '.join(STUDIES)}, or all.")
    studies = [study for study in STUDIES.values() if args.name in (study.name, "all")]
    if not args.smoke:
        return studies
    if args.results == RESULTS:
        args.results = _SMOKE
    return [study.small() for study in studies]


def _list(args: argparse.Namespace) -> None:
    if args.names:
        print(*STUDIES)
        return
    for study in STUDIES.values():
        print(f"{study.name:17}{study.title}")
        shares = study.progress(args.results).items()
        print(f"{'':17}" + ", ".join(f"{method} {share:.0%}".strip() for method, share in shares))


def _run(args: argparse.Namespace) -> None:
    from experiments.runner import run

    for option in ("repetitions", "processes"):
        if getattr(args, option) is not None and getattr(args, option) < 1:
            raise InputError(f"--{option} is {getattr(args, option)}, but it must be at least 1.")
    for study in _selected_studies(args):
        if args.name == "all" and (args.methods or args.repetitions) and not study.methods:
            continue  # trials have neither option
        count = run(
            study,
            args.results / f"{study.name}.jsonl",
            methods=args.methods and _methods(study, args.methods.split(",")),
            repetitions=args.repetitions,
            processes=args.processes,
        )
        print(f"{study.name}: {count} new lines")


def _methods(study: Study, names: list[str]) -> tuple[str, ...]:
    """Return the names that are methods of the study or custom; raise for a name that no experiment has."""
    if not study.methods:
        raise InputError(f"{study.name} has no methods to choose from. Remove --methods.")
    for name in names:
        if custom_methods.is_custom(name):
            custom_methods.load_class(name)  # raises before the run starts
        elif not any(name in experiment.methods for experiment in EXPERIMENTS.values()):
            raise InputError(f"{study.name} has no method {name!r}. Choose from {', '.join(study.methods)}.")
    return tuple(name for name in names if custom_methods.is_custom(name) or name in study.methods)


def _table(args: argparse.Namespace) -> None:
    tables = [(study, study.table(args.results)) for study in _selected_studies(args)]
    if not any(rows for _, rows in tables):
        raise InputError(f"{args.name} has no results yet. Run 'priorshift experiment run {args.name}'.")
    if args.json:
        print(json.dumps([row for _, rows in tables for row in rows], ensure_ascii=False, allow_nan=False))
    else:
        print("\n\n".join(f"{study.title}\n\n{study.format_table(rows)}" for study, rows in tables if rows))


def _figure(args: argparse.Namespace) -> None:
    from experiments.figures import PAPER, draw_experiment

    if args.smoke and args.output == HOME / "figures":
        args.output = _SMOKE
    args.output.mkdir(parents=True, exist_ok=True)
    for name, draw in PAPER.items():
        if args.name in (name, "all"):
            print(draw(args.output))
    for study in [] if args.name in PAPER else _selected_studies(args):
        if not isinstance(study, Experiment):
            if args.name != "all":
                raise InputError(f"{study.name} has no figure. Run 'priorshift experiment table {study.name}' instead.")
        elif args.name != "all" or (args.results / f"{study.name}.jsonl").exists():
            for path in draw_experiment(study, args.results, args.output):
                print(path)


def _verify(args: argparse.Namespace) -> int:
    from experiments.runner import VERSIONS
    from experiments.verify import verify

    for option in ("units", "seconds"):
        if getattr(args, option) <= 0:
            raise InputError(f"--{option} is {getattr(args, option):g}, but it must be greater than 0.")
    studies = _selected_studies(args)
    include_slow = args.name != "all" or args.smoke
    reports = []
    print(f"versions: {VERSIONS}")
    print(f"{'study':18}{'lines':>6}{'fields':>8}{'seconds':>9}  result", flush=True)
    for study in studies:
        report = verify(study, args.results, units=args.units, seconds=args.seconds, include_slow=include_slow)
        reports.append(report)
        print(report, *(f"    {difference}" for difference in report.differences), sep="\n", flush=True)
    changed = sum(bool(report.differences) for report in reports)
    compared = sum(report.lines > 0 for report in reports)
    print(f"{compared} of {len(reports)} studies compared: {compared - changed} unchanged, {changed} differ.")
    return 1 if changed else 0


def _compare(args: argparse.Namespace) -> None:
    from experiments.compare import page
    from experiments.document_tables import write_atomically

    write_atomically(args.output, page(args.results))
    print(args.output)


def _docs(args: argparse.Namespace) -> None:
    from experiments.document_tables import table_texts, update_tables

    texts = table_texts(args.results)
    for path in args.files:
        names = update_tables(path, texts, write=not args.check)
        if names and args.check:
            raise InputError(f"{path.name}: the table {names[0]} is not up to date. Run 'make docs-tables'.")
        if not args.check:
            updated, unchanged = ([n for n in names if (n in texts) == known] for known in (True, False))
            incomplete = (
                f"; not updated, since their studies are incomplete: {', '.join(unchanged)}" if unchanged else ""
            )
            print(f"{path}: {len(updated)} table{'s' * (len(updated) != 1)} updated{incomplete}")


def _features(args: argparse.Namespace) -> None:
    from experiments.image_features import write_features

    write_features(args.output)
