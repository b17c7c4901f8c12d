"""The parser of the command line: name, help, examples and options of each command, and the function that runs it.

Nothing here loads numpy or an estimator, so that help and messages about wrong use appear at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from priorshift.cli.options import (
    COMPLETIONS,
    METHOD,
    OPTIONS,
    OUTPUT,
    POPULATIONS,
    ROWS,
    TABLES,
    ByClass,
    Parser,
    StoreOnce,
)
from priorshift.version import __version__

_SOURCE = "--positive positive.csv --unlabeled unlabeled.csv"
_THREE = f"{_SOURCE} --target target.csv --source-prior 0.2"
_INPUTS = ("--positive FILE --unlabeled FILE --target FILE", "--source FILE --label-column NAME --target FILE")
_FORMATS = "Tables are CSV, TSV, Excel or Parquet files with the same columns."

_READ = (
    "--positive --unlabeled --source --label-column --positive-label --target --sheet --drop --missing --category "
    "--day-first --month-first --encoder"
)
_READ_CLASSES = _READ.replace("--positive-label", "--positive-label --unlabeled-label")
_COLUMNS = "--id-column|--identical-rows --group-column --weight-column --audit-column"
_PRIOR = "--source-prior --source-prior-counts --scenario"
_LABEL_ERROR = "--label-error --label-error-counts"
_METHOD = "--method --kernel --bandwidth --statistic --interval"
_COMMON = "--no-standardize --confidence --random-state"
# help of options for commands without --method, which would otherwise say which methods an option is for
_NO_METHOD = {
    name: {"help": OPTIONS[name]["help"].split(" (--method ")[0]}
    for name in ("--weight-column", "--audit-column", "--source-prior-counts", "--label-error", "--label-error-counts")
}
# help of options for commands that also take several classes
_CLASSES = {
    "--positive": {"help": f"{OPTIONS['--positive']['help']}; for several classes NAME=FILE for each, such as "
                   "flu=flu.csv (may be repeated)"},
    "--label-column": {"help": f"{OPTIONS['--label-column']['help']}; or with the names of several classes, and empty "
                       "cells or 0 in unlabelled rows"},
    "--source-prior": {"help": f"{OPTIONS['--source-prior']['help']}; for several classes NAME=PRIOR for each, such as "
                       "flu=0.1 (may be repeated)"},
    "--source-prior-counts": {"help": f"{OPTIONS['--source-prior-counts']['help']}; for several classes the rows of "
                              "each and of the rest, such as flu=30, covid=12 and rest=108, or a survey of one class, "
                              "such as flu=30/150 (may be repeated)"},
    "--audit-column": {"help": f"{OPTIONS['--audit-column']['help']}; for several classes the name of a class or rest"},
    "--label-error": {"help": f"{OPTIONS['--label-error']['help']}; as NAME:OTHER=SHARE, of one class that are of "
                      "another (may be repeated)"},
    "--label-error-counts": {"help": f"{OPTIONS['--label-error-counts']['help']}; for several classes NAME=WRONG/ROWS "
                             "or NAME:OTHER=WRONG/ROWS (may be repeated)"},
}  # fmt: skip
_TWO_CLASSES = (
    "--positive flu=flu.csv --positive covid=covid.csv --unlabeled unlabeled.csv --target target.csv "
    "--source-prior flu=0.1 --source-prior covid=0.05-0.2"
)


class Command(NamedTuple):
    """The description of a command, from which its parser is built."""

    run: str  # "module:function" in priorshift.cli
    help: str
    description: str = ""  # default: `help`
    usage: Sequence[str] = ()  # ways to call it; default: all options
    notes: str = ""
    examples: Sequence[tuple[str, str]] = ()  # purpose and command of each
    options: Mapping[str, str] = {}  # by the title of their group; those joined by | exclude each other
    changes: Mapping[str, dict[str, Any]] = {}  # arguments of add_argument that differ from OPTIONS, by option
    defaults: Mapping[str, Any] = {}  # values of options that the command does not have


COMMANDS = {
    "demo": Command(
        "small_commands:run_demo",
        "estimate on bundled data with a simulated shift, compare with the truth, and write a report",
        examples=(
            ("an estimate, the truth and a report", "priorshift demo"),
            ("another random sample, with a figure", "priorshift demo --seed 7 --plot demo.png"),
        ),
        options={METHOD: "--confidence --random-state", OUTPUT: "--json --plot --report|--no-report"},
    ),
    "estimate": Command(
        "estimate:run",
        "estimate the target prior, the share of positives in the target population, with an interval",
        usage=[f"{files} ..." for files in _INPUTS],
        notes=f"{_FORMATS} A sample may also be a folder of Parquet files, or a file that priorshift sketch wrote.",
        examples=(
            ("three tables; about 20% of the source population are positive", f"priorshift estimate {_THREE}"),
            ("one source table with a column of labels; the source prior is known roughly",
             "priorshift estimate --source source.csv --label-column labeled --target target.csv "
             "--source-prior 0.1-0.3 --json"),
            ("several months compared with the same source",
             f"priorshift estimate {_SOURCE} --target jan.csv feb.csv mar.csv --source-prior 0.2 --output series.csv "
             "--plot series.png"),
            ("several labelled classes and a rest that nobody labelled",
             f"priorshift estimate {_TWO_CLASSES}"),
        ),
        options={TABLES: f"{_READ_CLASSES} --by|--stratify --stream", ROWS: _COLUMNS,
                 POPULATIONS: f"{_PRIOR} --no-rest {_LABEL_ERROR}",
                 METHOD: f"{_METHOD} {_COMMON}", OUTPUT: "--json --plot --output --fail-on"},
        defaults={"takes_classes": True},
        changes={**_CLASSES,
                 "--output": {"help": "write the table of several targets, strata or classes (.csv or .xlsx)"},
                 "--fail-on": {"help": "exit with code 3 if there is no estimate (--fail-on no), or also if it rests "
                               "on few positives (--fail-on care); by default the exit code does not depend on it"}},
    ),
    "diagnose": Command(
        "estimate:run_diagnose",
        "check whether the estimate can be trusted, and what would improve it",
        "Test the assumptions, show what the estimate is sensitive to and how many more rows narrow its interval.",
        usage=[f"{files} ..." for files in _INPUTS],
        notes=_FORMATS,
        examples=(
            ("check the estimate from three tables", f"priorshift diagnose {_THREE}"),
            ("is the target prior certainly above 10%",
             "priorshift diagnose --source source.csv --label-column labeled --target target.csv --source-prior 0.2 "
             "--threshold 0.1 --json"),
            ("each month of one table, by its column month",
             f"priorshift diagnose {_SOURCE} --target months.csv --by month --source-prior 0.2 --output verdicts.csv"),
        ),
        options={TABLES: f"{_READ_CLASSES} --by", ROWS: _COLUMNS,
                 POPULATIONS: f"{_PRIOR} --no-rest {_LABEL_ERROR}",
                 METHOD: f"{_COMMON} --threshold", OUTPUT: "--json --plot --output --fail-on"},
        changes={**_NO_METHOD, **_CLASSES, "--output": {"help": "write the table of several targets (.csv or .xlsx)"}},
        defaults={"stream": False, "takes_classes": True},
    ),
    "report": Command(
        "estimate:run_report",
        "write a report of the estimate, whether it can be trusted, and what to do next",
        "Write one HTML file to forward or print: the answer in a sentence, whether it can be trusted, figures, how "
        "each column was used, and what to do next. It contains no script and loads nothing from a network.",
        usage=[f"{files} -o FILE.html ..." for files in _INPUTS],
        notes=f"{_FORMATS} For files written by priorshift sketch, and for files too large for memory, the report "
        "contains only the estimate.",
        examples=(
            ("a report of one target", f"priorshift report {_THREE} -o report.html"),
            ("several months, with a heading of your own",
             f"priorshift report {_SOURCE} --target months.csv --by month --source-prior 0.2 "
             "--title 'Infections by month' -o months.html"),
            ("several labelled classes and a rest that nobody labelled",
             f"priorshift report {_TWO_CLASSES} -o classes.html"),
        ),
        options={TABLES: f"{_READ_CLASSES} --by --stream", ROWS: _COLUMNS,
                 POPULATIONS: f"{_PRIOR} --no-rest {_LABEL_ERROR}",
                 METHOD: f"{_COMMON} --threshold", OUTPUT: "--json --output --title --fail-on"},
        changes={**_NO_METHOD, **_CLASSES,
                 "--output": {"dest": "page", "required": True,
                              "help": "report to write (.html, or .pdf with the extra pdf)"}},
        defaults={"takes_classes": True},
    ),
    "app": Command(
        "small_commands:run_app",
        "open a page in the browser: choose files, press a button, read the report",
        "Serve a page on this computer where you choose files and read the report. Nothing leaves the computer, and "
        "uploaded files are deleted when the app ends (Ctrl-C).",
        examples=(
            ("open the page", "priorshift app"),
            ("use a given port, and open the browser yourself", "priorshift app --port 8000 --no-browser"),
        ),
        options={"server": "--port --no-browser --max-rows --max-bytes --time-limit --host --expose-to-network"},
    ),
    "adapt": Command(
        "adapt:run",
        "classify the rows of the target by a classifier that is adapted to its prior",
        "Write the target's table with two more columns: the posterior probability of being positive in the target "
        "population, and the decision (1: positive). With several labelled classes, the columns are the posterior "
        "probability of each class and the decision, which is the class with the largest one.",
        usage=[f"{files} -o FILE ..." for files in _INPUTS],
        notes=f"{_FORMATS} The lines of the target's file are copied unchanged, so that the copy can be joined on any "
        "column; with --safe-csv, cells that a spreadsheet would take for a formula are escaped.",
        examples=(
            ("decide on each row of target.csv", f"priorshift adapt {_THREE} --output decided.csv"),
            ("the target prior is known, the classifier is linear, and the copy is for a spreadsheet",
             f"priorshift adapt {_THREE} --target-prior 0.5 --classifier logistic --safe-csv --output decided.csv"),
            ("positives are rare, and 500 rows can be followed up in each month",
             f"priorshift adapt {_SOURCE} --target months.csv --by month --top 500 --output decided.csv"),
            ("several labelled classes; a missed flu is as bad as 5 other errors",
             f"priorshift adapt {_TWO_CLASSES} --cost-ratio flu=5 --output decided.csv"),
        ),
        options={TABLES: f"{_READ_CLASSES} --by", ROWS: _COLUMNS, POPULATIONS: f"{_PRIOR} --no-rest --target-prior",
                 "decisions (at most one of these)": "--cost-ratio --top --precision --recall",
                 METHOD: f"{_METHOD} --classifier {_COMMON}", OUTPUT: "--json --output --safe-csv"},
        changes={**_CLASSES,
                 "--target": {"nargs": 1, "action": StoreOnce,
                              "help": "unlabelled sample of the target population; - is standard input"},
                 "--output": {"required": True, "help": "table to write, in the format of the target"}},
        defaults={"stream": False, "takes_classes": True},
    ),
    "sketch": Command(
        "sketch:run",
        "summarise a sample of any size in a small file, from which estimates are made without its rows",
        "Write a sketch of a sample: sums over its rows that fit in a small file. The memory needed does not grow with "
        "the number of rows. Sketch the unlabelled source sample first; then sketch each other sample with --like "
        "FIRST_SKETCH. Sketches given as FILE are merged. With --positive and --unlabeled, the command fits a score "
        "model instead, which says how much a row looks like a labelled positive. With --like SCORE_MODEL, it writes a "
        "histogram of a sample's scores.",
        usage=("FILE [FILE ...] [--like FILE] -o FILE ...", "--positive FILE --unlabeled FILE -o FILE ..."),
        notes="If it was interrupted, run the same command again to continue.",
        examples=(
            ("the unlabelled sample first; the others take its columns and scale",
             "priorshift sketch unlabeled.csv -o unlabeled.sketch"),
            ("a sample in several files", "priorshift sketch jan.csv feb.csv --like unlabeled.sketch -o target.sketch"),
            ("a score model of the source",
             f"priorshift sketch {_SOURCE} -o scores.model"),
            ("a differentially private release of a target",
             "priorshift sketch target.csv --like scores.model --epsilon 1 --delta 1e-6 -o target.counts"),
        ),
        options={TABLES: "files --positive --unlabeled --weight-column --drop",
                 METHOD: "--like --features --kernel --bandwidth --no-standardize --random-state",
                 OUTPUT: "--output --epsilon --delta"},
        changes={
            "--positive": {"help": "labelled positives, to fit a score model (with --unlabeled and no FILE)"},
            "--unlabeled": {"help": "unlabelled sample of the source population, to fit a score model"},
            "--weight-column": {"help": "sample weights"},
            "--kernel": {"choices": ("gaussian", "laplace"), "help": "kernel (default: gaussian)"},
            "--bandwidth": {"help": "bandwidth of the kernel: a number, dimension or median (default: dimension)"},
            "--random-state": {"default": None},
            "--output": {"required": True, "help": "file to write"},
        },
    ),
    "watch": Command(
        "watch:run",
        "follow the share of positives in batches over time, with alarms whose rate of false ones is stated",
        "Follow the share of positives in batches that arrive over time. A first command fits a model to the source. "
        "Then each batch gets a line with its estimate and interval, and alarms: the share has changed, it is beyond "
        "--level, or label shift no longer explains the rows.",
        usage=(
            "--model FILE --positive FILE --unlabeled FILE ...",
            "--model FILE --state FILE --target FILE [--name TEXT] ...",
            "--model FILE --state FILE --replay PATH [PATH ...] ...",
        ),
        notes="The exit code is 0 if all is quiet, 3 for an alarm, 4 if label shift no longer explains the rows (until "
        "--acknowledge), and 2 for wrong use. The options of the rules are settings of the state, to be passed with "
        "the source or with the first batch. The same batch twice counts once, and another process that changes the "
        f"state at the same time is refused. {_FORMATS}",
        examples=(
            ("fit the model once, where 2% of the source are positive",
             f"priorshift watch --model fitted {_SOURCE} --source-prior 0.02 --level 0.05"),
            ("add a batch every day",
             "priorshift watch --model fitted --state state.json --target today.csv --name 2026-11-16 --log "
             "series.jsonl --metrics share.prom"),
            ("start with the files of a history",
             "priorshift watch --model fitted --state state.json --replay history/ --json"),
        ),
        options={TABLES: "--model --positive --unlabeled --source --label-column --positive-label --target --replay "
                 "--drop",
                 ROWS: "--group-column --weight-column --audit-column --by --series", POPULATIONS: _PRIOR,
                 "rules": "--level --false-alarm --run-length --reference --confidence",
                 "batches": "--state --name --time --replace --acknowledge",
                 METHOD: "--random-state",
                 OUTPUT: "--json --metrics --log --chart --report"},
        changes={**_NO_METHOD,
                 "--target": {"required": False, "nargs": None, "action": StoreOnce,
                              "help": "rows of a batch; - is standard input"},
                 "--by": {"help": "column whose values are separate series, such as regions, which share one rate of "
                          "false alarms"},
                 "--weight-column": {"help": "sample weights of the rows of batches"},
                 "--group-column": {"help": "column whose value is the same in rows that belong together, such as "
                                    "those of one patient"},
                 "--audit-column": {"help": "column of batches: 1 or 0 where the true class was looked up, otherwise "
                                    "empty"},
                 "--confidence": {"help": "confidence level of the intervals (default: 0.95)"},
                 "--report": {"help": "write a page on the batches so far (.html or .pdf)"},
                 "--random-state": {"default": None}},
    ),
    "schema": Command(
        "small_commands:run_schema",
        "print the JSON Schema (draft 2020-12) of what a command prints with --json, with the meaning of every field",
        examples=(
            ("what does each field of an estimate mean", "priorshift schema estimate"),
            ("save it for a validator", "priorshift schema diagnose > diagnose.schema.json"),
        ),
        options={OUTPUT: "name"},
    ),
    "completion": Command(
        "small_commands:run_completion",
        "print a script with which your shell completes commands, options and files",
        notes="This needs the extra completion. Start a new shell afterwards.",
        examples=[(f"in {shell}", f"priorshift completion {shell} > {file}") for shell, file in COMPLETIONS.items()],
        options={OUTPUT: "shell"},
    ),
    "experiment": Command(
        "small_commands:run_experiment",
        "run, tabulate and plot the paper's experiments (in the repository)",
        options={METHOD: "rest"},
    ),
}  # fmt: skip


def parser() -> Parser:
    """Return the parser of the program, with a subparser for each command."""
    program = Parser(
        prog="priorshift",
        description="Estimate how common the positive class is in a new, unlabelled population, from labelled "
        "positives and unlabelled rows of an old one.",
        notes="priorshift COMMAND --help describes a command. Results go to stdout, as JSON with --json; warnings and "
        "errors go to stderr. The exit code is 0 on success, 2 for wrong use or unusable data (the message says what "
        "to do), 3 if --fail-on applies or watch raises an alarm, 4 if watch finds that label shift fails, and 130 if "
        "interrupted.",
        examples=(
            ("try it on bundled data", "priorshift demo"),
            ("estimate the share of positives in target.csv, where it is about 20% in the source",
             f"priorshift estimate {_THREE}"),
            ("check whether the estimate can be trusted", f"priorshift diagnose {_THREE}"),
            ("write a report", f"priorshift report {_THREE} -o report.html"),
        ),
    )  # fmt: skip
    program.add_argument("--version", action="version", version=f"priorshift {__version__}")
    subparsers = program.add_subparsers(required=True, metavar="COMMAND", title="commands")
    program.commands = subparsers.choices
    for name, command in COMMANDS.items():
        usage = "\n       ".join(f"priorshift {name} {arguments}" for arguments in command.usage) or None
        description = command.description or f"{command.help[0].upper()}{command.help[1:]}."
        subparser = subparsers.add_parser(
            name, usage=usage, description=description, help=command.help, notes=command.notes,
            examples=command.examples,
        )  # fmt: skip
        for title, option_names in command.options.items():
            subparser.add_options(title, option_names, command.changes)
        # values of options that some commands lack, so that all commands can be read alike
        defaults = {
            "by": None, "stratify": None, "stream": None, "method": "auto", "takes_classes": False, "has_rest": True,
            "label_error": None, "unlabeled_label": None, **command.defaults,
        }  # fmt: skip
        subparser.set_defaults(run=command.run, parser=program, **defaults)
    return program


def parse(words: list[str]) -> argparse.Namespace:
    """Parse the words of a command line, without the program's name; wrong use ends the program with one sentence.

    The result has the options of the command, `run` ("module:function" of the command), `parser` (of the program) and
    `typed` (all words of the command line).
    """
    program = parser()
    if not words:
        program.error("name a command, such as demo or estimate")
    if words[0] == "experiment":  # has a parser of its own, with its own --help
        words = ["experiment", "--", *words[1:]]
    # options of the program come before the name of the command, those of the command after it
    program_options = list(takewhile(lambda word: word.startswith("-"), words))
    program.refuse_unknown(program_options)
    after_options = words[len(program_options) :]
    if after_options and after_options[0] in COMMANDS:
        command = program.commands[after_options[0]]
        command.refuse_unknown(after_options[1:])
        for word in after_options[1:]:  # argparse takes the value -- for none, and does not check it
            if word.startswith("--") and word.endswith("=--"):
                command.error(f"{word.removesuffix('=--')} has the value --; pass another one")
    args = program.parse_args(words, argparse.Namespace(typed=["priorshift", *words]))
    settings = ("positive", "source_prior", "label_error")
    stated = [name for name in settings if isinstance(getattr(args, name, None), ByClass)]
    if stated and not args.takes_classes:
        option = f"--{stated[0].replace('_', '-')}"
        program.commands[words[0]].error(
            f"{option} NAME=VALUE is for the classes of other commands; pass {option} without a class"
        )
    return args
