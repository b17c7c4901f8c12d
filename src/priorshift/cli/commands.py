"""The commands: what each is called, its help, examples and options, and the function that runs it.

Nothing here loads numpy or an estimator, so that help and complaints about wrong use come at once.
"""

from __future__ import annotations

import argparse
from itertools import takewhile
from typing import Any

from priorshift.cli.options import (
    METHOD,
    OUTPUT,
    POPULATIONS,
    TABLES,
    add,
    add_estimator,
    add_tables,
    bandwidth,
    number,
    positive_integer,
)
from priorshift.cli.parser import Parser
from priorshift.version import __version__

_THREE = "--positive positive.csv --unlabeled unlabeled.csv --target target.csv --source-prior 0.2"
_FORMATS = "Tables are CSV, TSV or Parquet files with the same columns."
SCHEMAS = ("estimate", "diagnose", "report", "adapt", "sketch", "demo")
COMPLETIONS = {  # where shells look for completion scripts; zsh in every folder of $fpath
    "bash": "~/.local/share/bash-completion/completions/priorshift",
    "zsh": "~/.zfunc/_priorshift",
    "fish": "~/.config/fish/completions/priorshift.fish",
}


def parse(words: list[str]) -> argparse.Namespace:
    """Parse the words of a command line; wrong use ends the program with one sentence."""
    everything = parser()
    if not words:
        everything.error("name a command, such as demo or estimate")
    if words[0] == "experiment":  # has a parser of its own, with its own --help
        words = ["experiment", "--", *words[1:]]
    before = list(takewhile(lambda word: word.startswith("-"), words))
    everything.refuse_unknown(before)
    command = everything.commands.get(words[len(before)]) if len(before) < len(words) else None
    if command is not None:
        command.refuse_unknown(words[len(before) + 1 :])
    return everything.parse_args(words, argparse.Namespace(typed=["priorshift", *words]))


def parser() -> Parser:
    """Return the parser of all commands, in the order in which a user meets them."""
    everything = Parser(
        prog="priorshift",
        description="Estimate how common the positive class is in a new, unlabelled population, from labelled "
        "positives and unlabelled rows of an old one.",
        notes=(
            "priorshift COMMAND --help describes a command. Results go to stdout, as JSON with --json; warnings and "
            "errors go to stderr. The exit code is 0, 2 for wrong use or unusable data (the message says what to do), "
            "or 130 if the command was interrupted.",
        ),
        examples=(
            ("try it on bundled data", "priorshift demo"),
            ("estimate the share of positives in target.csv, where it is about 20% in the source",
             f"priorshift estimate {_THREE}"),
            ("check whether the estimate can be trusted", f"priorshift diagnose {_THREE}"),
            ("write a report", f"priorshift report {_THREE} -o report.html"),
        ),
    )  # fmt: skip
    everything.add_argument("--version", action="version", version=f"priorshift {__version__}")
    commands = everything.add_subparsers(required=True, metavar="COMMAND", title="commands")
    for define in (_demo, _estimate, _diagnose, _report, _app, _adapt, _sketch, _schema, _completion, _experiment):
        define(commands)
    everything.set_defaults(parser=everything)
    return everything


def _usage(name: str, more: str = "") -> str:
    return (
        f"priorshift {name} --positive FILE --unlabeled FILE --target FILE {more}...\n"
        f"       priorshift {name} --source FILE --label-column NAME --target FILE {more}..."
    )


def _demo(commands: Any) -> None:
    command = commands.add_parser(
        "demo",
        help="estimate on bundled data with a simulated shift, compare with the truth, and write a report",
        description="Estimate on data that come with scikit-learn, with a simulated shift, compare with the truth, and "
        "write a report, demo.html.",
        examples=(
            ("an estimate, the truth and a report", "priorshift demo"),
            ("another random sample, with a figure", "priorshift demo --seed 7 --plot demo.png"),
        ),
    )
    add(command, METHOD, "--confidence", "--random-state")
    add(command, OUTPUT, "--json", "--plot")
    reports = command.group(OUTPUT).add_mutually_exclusive_group()
    reports.add_argument("--report", metavar="FILE", help="report to write (default: demo.html, or none with --json)")
    reports.add_argument("--no-report", action="store_true", help="do not write a report")
    command.set_defaults(run="small_commands:run_demo")


def _estimate(commands: Any) -> None:
    command = commands.add_parser(
        "estimate",
        usage=_usage("estimate"),
        help="estimate the target prior from your tables",
        description="Estimate the share of positives in the target population, the target prior, with an interval.",
        notes=(
            f"{_FORMATS} A sample may also be a folder of Parquet files, or a file that priorshift sketch has written.",
        ),
        examples=(
            ("three tables; about 20% of the source population are positive", f"priorshift estimate {_THREE}"),
            ("one source table with a column of labels; the source prior is known roughly",
             "priorshift estimate --source source.csv --label-column labeled --target target.csv "
             "--source-prior 0.1-0.3 --json"),
            ("several months compared with the same source",
             "priorshift estimate --positive positive.csv --unlabeled unlabeled.csv --target jan.csv feb.csv mar.csv "
             "--source-prior 0.2 --output series.csv --plot series.png"),
            ("a target from a pipe, by the paper's method",
             "zcat target.csv.gz | priorshift estimate --positive positive.csv --unlabeled unlabeled.csv --target - "
             "--method tcpu"),
        ),
    )  # fmt: skip
    add_tables(command, several=True, streamed=True, strata=True)
    add_estimator(command)
    add(command, OUTPUT, "--json", "--plot", "--output")
    command.set_defaults(run="estimate:run")


def _diagnose(commands: Any) -> None:
    command = commands.add_parser(
        "diagnose",
        usage=_usage("diagnose"),
        help="check whether the estimate can be trusted, and what would improve it",
        description="Test the assumptions, show what the estimate is sensitive to, and how many more rows would "
        "narrow its interval.",
        notes=(_FORMATS,),
        examples=(
            ("check the estimate from three tables", f"priorshift diagnose {_THREE}"),
            ("is the target prior certainly above 10%",
             "priorshift diagnose --source source.csv --label-column labeled --target target.csv --source-prior 0.2 "
             "--threshold 0.1 --json"),
            ("each month of one table, by its column month",
             "priorshift diagnose --positive positive.csv --unlabeled unlabeled.csv --target months.csv --by month "
             "--source-prior 0.2 --output verdicts.csv"),
        ),
    )  # fmt: skip
    add_tables(command, several=True)
    add_estimator(command, methods=False)
    add(command, METHOD, "--threshold")
    add(command, OUTPUT, "--json", "--plot", "--output")
    command.set_defaults(run="diagnose:run", method="auto")


def _report(commands: Any) -> None:
    command = commands.add_parser(
        "report",
        usage=_usage("report", "-o FILE.html "),
        help="write a report of the estimate, whether it can be trusted, and what to do next",
        description="Write one HTML file to forward or print: the answer in a sentence, whether it can be trusted, "
        "figures, what was done with each column, and what to do next. It contains no script and loads nothing from a "
        "network.",
        notes=(
            f"{_FORMATS} For sketches, histograms and files that do not fit into memory the report contains the "
            "estimate only.",
        ),
        examples=(
            ("a report of one target", f"priorshift report {_THREE} -o report.html"),
            ("several months, with a heading of your own",
             "priorshift report --positive positive.csv --unlabeled unlabeled.csv --target months.csv --by month "
             "--source-prior 0.2 --title 'Infections by month' -o months.html"),
        ),
    )  # fmt: skip
    add_tables(command, several=True, streamed=True)
    add_estimator(command, methods=False)
    add(command, METHOD, "--threshold")
    add(command, OUTPUT, "--json")
    add(command, OUTPUT, "--output", dest="page", required=True, help="report to write (.html)")
    add(command, OUTPUT, "--title")
    command.set_defaults(run="diagnose:run_report", method="auto")


def _app(commands: Any) -> None:
    command = commands.add_parser(
        "app",
        help="open a page in the browser: choose files, press a button, read the report",
        description="Serve a page on this computer where you choose files and read the report. Nothing leaves the "
        "computer, and uploaded files are deleted when the app ends (Ctrl-C).",
        examples=(
            ("open the page", "priorshift app"),
            ("use a given port, and open the browser yourself", "priorshift app --port 8000 --no-browser"),
        ),
    )
    option = command.add_argument
    option("--port", metavar="N", type=int, default=0, help="port to listen on (default: a free port)")
    option("--no-browser", action="store_true", help="print the address and do not open a browser")
    option(
        "--max-rows", metavar="N", type=positive_integer, help="largest number of rows in a file (default: 1,000,000)"
    )
    option(
        "--max-bytes",
        metavar="N",
        type=positive_integer,
        help="largest size of a file, compressed or not (default: 500,000,000)",
    )
    option("--time-limit", metavar="SECONDS", type=positive_integer, help="longest time for a job (default: 1800)")
    option(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address to listen on; any but this computer's own 127.0.0.1 needs --expose-to-network",
    )
    option(
        "--expose-to-network",
        action="store_true",
        help="listen on --host: everyone who can reach this computer and has the address can use the app and read "
        "uploaded files, and so can anyone on the network between, because the connection is not encrypted",
    )
    command.set_defaults(run="small_commands:run_app")  # fmt: skip


def _adapt(commands: Any) -> None:
    command = commands.add_parser(
        "adapt",
        usage=_usage("adapt", "-o FILE "),
        help="classify the rows of the target by a classifier that is adapted to its prior",
        description="Write the target's table with two more columns: the posterior probability of being positive in "
        "the target population, and the decision (1: positive).",
        notes=(
            f"{_FORMATS} The lines of the target's file are copied unchanged, so that the copy can be joined on any "
            "column; with --safe-csv, cells that a spreadsheet would take for a formula are escaped.",
        ),
        examples=(
            ("decide on each row of target.csv", f"priorshift adapt {_THREE} --output decided.csv"),
            ("the target prior is known, the classifier is linear, and the copy is for a spreadsheet",
             f"priorshift adapt {_THREE} --target-prior 0.5 --classifier logistic --safe-csv --output decided.csv"),
        ),
    )  # fmt: skip
    add_tables(command)
    add(command, POPULATIONS, "--target-prior")
    add(command, METHOD, "--classifier")
    add_estimator(command)
    add(command, OUTPUT, "--json")
    add(command, OUTPUT, "--output", required=True, help="table to write, in the format of the target")
    add(command, OUTPUT, "--safe-csv")
    command.set_defaults(run="adapt:run")


def _sketch(commands: Any) -> None:
    command = commands.add_parser(
        "sketch",
        usage="priorshift sketch FILE [FILE ...] [--like FILE] -o FILE ...\n"
        "       priorshift sketch --positive FILE --unlabeled FILE -o FILE ...",
        help="summarise a sample of any size in a small file, from which estimates are made without its rows",
        description="Sketch a sample: a few numbers that add up over its rows, in memory that does not grow with it. "
        "Sketch the unlabelled source sample first, and the others --like it. If the files are sketches, they are "
        "merged.",
        notes=("If it was interrupted, run the same command again to continue.",),
        examples=(
            ("the unlabelled sample first; the others take its columns and scale",
             "priorshift sketch unlabeled.csv -o unlabeled.sketch"),
            ("a sample in several files",
             "priorshift sketch jan.csv feb.csv --like unlabeled.sketch -o target.sketch"),
            ("a score model, which is fitted to the source and counts rows by their score",
             "priorshift sketch --positive positive.csv --unlabeled unlabeled.csv -o scores.model"),
            ("a differentially private release of a target",
             "priorshift sketch target.csv --like scores.model --epsilon 1 --delta 1e-6 -o target.counts"),
        ),
    )  # fmt: skip
    command.group(TABLES).add_argument(
        "files", metavar="FILE", nargs="*",
        help="CSV, TSV or Parquet files of one sample, or a folder of Parquet files; - is standard input")  # fmt: skip
    add(command, TABLES, "--positive", help="with --unlabeled and no FILE: labelled positives, to fit a score model")
    add(command, TABLES, "--unlabeled", help="unlabelled sample of the source population, to fit a score model")
    add(command, TABLES, "--weight-column", help="sample weights")
    add(command, TABLES, "--drop")
    method = command.group(METHOD).add_argument
    method("--like", metavar="FILE",
           help="the first sketch, whose columns, encoding, scale and random features are used; or a score model, by "
           "which rows are counted")  # fmt: skip
    method("--features", metavar="NUMBER", type=int, help="number of random features (default: 512)")
    add(command, METHOD, "--kernel", choices=("gaussian", "laplace"), help="kernel (default: gaussian)")
    add(command, METHOD, "--bandwidth", type=bandwidth,
        help="bandwidth of the kernel: a number, dimension or median (default: dimension)")  # fmt: skip
    add(command, METHOD, "--no-standardize", help="do not scale columns by their mean and standard deviation")
    add(command, METHOD, "--random-state", default=None, help="seed of the random features (default: 0)")
    add(command, OUTPUT, "--output", required=True, help="file to write")
    output = command.group(OUTPUT).add_argument
    output("--epsilon", metavar="NUMBER", type=number, help="add noise for differential privacy (with --delta)")
    output("--delta", metavar="NUMBER", type=number, help="a probability far below one over the number of rows")
    command.set_defaults(run="sketch:run")


def _schema(commands: Any) -> None:
    command = commands.add_parser(
        "schema",
        help="print the JSON Schema of what a command prints with --json",
        description="Print a JSON Schema (draft 2020-12) of what a command of this version prints with --json, with "
        "the meaning of every field. It is self-contained.",
        examples=(
            ("what does each field of an estimate mean", "priorshift schema estimate"),
            ("save it for a validator", "priorshift schema diagnose > diagnose.schema.json"),
        ),
    )
    names = f"command: {', '.join(SCHEMAS)} (sketch always prints JSON)"
    command.group(OUTPUT).add_argument("name", metavar="NAME", choices=SCHEMAS, help=names)
    command.set_defaults(run="small_commands:run_schema")


def _completion(commands: Any) -> None:
    command = commands.add_parser(
        "completion",
        help="print a script with which your shell completes commands, options and files",
        description="Print a script with which a shell completes commands, options, choices and files (needs the extra "
        "completion). Start a new shell afterwards.",
        examples=[(f"in {shell}", f"priorshift completion {shell} > {file}") for shell, file in COMPLETIONS.items()],
    )
    shells = tuple(COMPLETIONS)
    command.group(OUTPUT).add_argument("shell", metavar="SHELL", choices=shells, help=" or ".join(shells))
    command.set_defaults(run="small_commands:run_completion")


def _experiment(commands: Any) -> None:
    command = commands.add_parser(
        "experiment", help="run, tabulate and plot the paper's experiments (in the repository)", add_help=False
    )
    command.add_argument("rest", nargs=argparse.REMAINDER)
    command.set_defaults(run="small_commands:run_experiment")
