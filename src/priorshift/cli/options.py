"""The options that commands share, each written once, as a static description that loads no estimator.

A test compares names, choices and defaults with the estimators' parameters.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import Any

from priorshift.cli.parser import Parser

TABLES, ROWS, POPULATIONS = "tables", "columns with a meaning", "what is known about the populations"
METHOD, OUTPUT = "method", "output"

METHODS = ("auto", "witness", "tcpu", "km2-ls", "drpu")
SETTINGS = {  # of estimators: the methods that have it
    "source_prior": ("witness", "tcpu", "drpu"),
    "scenario": ("witness", "tcpu", "drpu"),
    "kernel": ("tcpu",),
    "bandwidth": ("tcpu", "km2-ls"),
    "statistic": ("tcpu",),
    "interval": ("tcpu",),
    "standardize": METHODS[1:],
    "confidence": METHODS[1:],
    "random_state": METHODS[1:],
}


def number(text: str) -> float:
    """Read a number, or refuse in a sentence."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def prior(text: str) -> float | tuple[float, float]:
    """Read a number or a range of two numbers; a dash may also belong to an exponent."""
    with suppress(ValueError):
        return float(text)
    for dash in (k for k, letter in enumerate(text) if letter == "-"):
        with suppress(ValueError):
            return float(text[:dash]), float(text[dash + 1 :])
    raise argparse.ArgumentTypeError(f"{text!r} is neither a number such as 0.2 nor a range such as 0.1-0.2")


def survey_counts(text: str) -> dict[str, int]:
    """Read the counts of a survey, POSITIVES/ROWS."""
    with suppress(ValueError):
        positives, rows = (int(count) for count in text.split("/"))
        if 0 <= positives <= rows > 0:
            return {"positives": positives, "rows": rows}
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a survey result; pass the number of positives and of rows examined, such as 37/250"
    )


def bandwidth(text: str) -> str | float:
    """Read a number or the name of a rule, which the estimator checks."""
    with suppress(ValueError):
        return float(text)
    return text


def positive_integer(text: str) -> int:
    """Read a whole number from 1 on."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


OPTIONS: dict[str, dict[str, Any]] = {
    # tables
    "--positive": {"metavar": "FILE", "help": "labelled positives of the source population"},
    "--unlabeled": {"metavar": "FILE", "help": "unlabelled sample of the source population"},
    "--source": {"metavar": "FILE", "help": "positive and unlabelled rows in one table, with --label-column"},
    "--label-column": {"metavar": "NAME", "help": "column of --source whose larger value means positive"},
    "--positive-label": {"metavar": "VALUE",
        "help": "the value of --label-column that means positive, such as fraud"},
    "--target": {"metavar": "FILE", "required": True,
        "help": "unlabelled sample of the target population; one of the tables may be -, standard input"},
    "--by": {"metavar": "NAME", "help": "column of a single --target: the rows of each value are one target"},
    "--stratify": {"metavar": "NAME",
        "help": "column of all tables: estimate each stratum separately and combine them for the whole target"},
    "--drop": {"metavar": "NAME", "action": "append", "default": [],
        "help": "column that is not a feature (may be repeated)"},
    "--encoder": {"choices": ("auto", "none"), "default": "auto",
        "help": "auto (default) encodes categories, dates and missing cells as numbers; none accepts numbers only"},
    "--stream": {"action": argparse.BooleanOptionalAction,
        "help": "read the files in chunks, or never (default: only files that are too large for memory)"},
    # columns with a meaning
    "--id-column": {"metavar": "NAME", "help": "rows with the same id in both source tables are the same observation"},
    "--identical-rows": {"action": "store_true", "help": "rows with the same values are the same observation"},
    "--group-column": {"metavar": "NAME",
        "help": "rows that belong together, such as those of one patient, in all tables; may be --id-column too"},
    "--weight-column": {"metavar": "NAME",
        "help": "sample weights, in the tables that have them (--method witness or tcpu)"},
    "--audit-column": {"metavar": "NAME",
        "help": "column of the unlabelled table, the target or both: 1 or 0 where the true class was looked up, "
        "otherwise empty (--method witness)"},
    # what is known about the populations
    "--source-prior": {"metavar": "PRIOR", "type": prior,
        "help": "share of positives in the source population, if known: a number, or a range such as 0.1-0.2 "
        "(default: estimated)"},
    "--source-prior-counts": {"metavar": "POSITIVES/ROWS", "dest": "source_prior", "type": survey_counts,
        "help": "instead of --source-prior, the result of a survey of the source population, such as 37/250; the "
        "interval includes its error (--method witness or tcpu)"},
    "--target-prior": {"metavar": "PRIOR", "type": number,
        "help": "share of positives in the target population, if known (default: estimated)"},
    "--scenario": {"choices": ("case-control", "censoring"),
        "help": "case-control: unlabelled rows are a sample of the whole population; censoring: they are what is left "
        "after some positives were labelled (default: case-control)"},
    # method
    "--method": {"choices": METHODS, "default": "auto", "help": "estimator (default: auto, which is witness)"},
    "--kernel": {"choices": ("gaussian", "laplace", "energy"), "help": "kernel (--method tcpu; default: gaussian)"},
    "--bandwidth": {"metavar": "WIDTH", "type": bandwidth,
        "help": "bandwidth of the kernel: a number; for --method tcpu also dimension (default), median or variance, "
        "for km2-ls search (default)"},
    "--statistic": {"choices": ("unbiased", "plug-in"),
        "help": "form of the estimator; plug-in is the paper's (--method tcpu; default: unbiased)"},
    "--interval": {"choices": ("delta", "bootstrap", "paper-bound", "sharp-bound"),
        "help": "kind of interval (--method tcpu; default: delta)"},
    "--threshold": {"metavar": "PRIOR", "type": number,
        "help": "a target prior that matters: report how sure it is that the target prior lies above or below it "
        "(default: the source prior)"},
    "--classifier": {"choices": ("nnpu", "logistic"),
        "help": "nnpu (default where torch is installed), or logistic, which is linear and needs no torch"},
    "--no-standardize": {"dest": "standardize", "action": "store_const", "const": False,
        "help": "do not scale columns by the mean and standard deviation of the source"},
    "--confidence": {"metavar": "LEVEL", "type": number, "help": "confidence level of the interval (default: 0.95)"},
    "--random-state": {"metavar": "SEED", "type": int, "default": 0,
        "help": "seed of all random numbers (default: 0)"},
    # output
    "--json": {"action": "store_true", "help": "print the result as JSON (see priorshift schema)"},
    "--plot": {"metavar": "FILE", "help": "write a figure of the estimate (.png, .svg or .pdf)"},
    "--output": {"metavar": "FILE", "help": "write the table of several targets or strata as a CSV file"},
    "--title": {"metavar": "TEXT", "help": "heading of the report"},
    "--safe-csv": {"action": "store_true",
        "help": "put an apostrophe before cells that a spreadsheet would take for a formula"},
}  # fmt: skip
_FLAGS = {"--output": ("-o", "--output"), "--random-state": ("--random-state", "--seed")}


def add(command: Parser, title: str, *names: str, **changes: Any) -> None:
    """Add options to one group of a command; `changes` replace parts of their description."""
    for name in names:
        command.group(title).add_argument(*_FLAGS.get(name, (name,)), **OPTIONS[name] | changes)


def add_tables(command: Parser, *, several: bool = False, streamed: bool = False, strata: bool = False) -> None:
    """Add the options that name tables and their columns."""
    command.set_defaults(by=None, stratify=None, stream=None if streamed else False)  # where it has no such option
    add(command, TABLES, "--positive", "--unlabeled", "--source", "--label-column", "--positive-label")
    if several:
        more = f"{OPTIONS['--target']['help']}; several files are several targets"
        add(command, TABLES, "--target", nargs="+", help=more)
        add(command, TABLES, "--by", *(["--stratify"] if strata else []))
    else:
        add(command, TABLES, "--target", nargs=1)
    add(command, TABLES, "--drop", "--encoder", *(["--stream"] if streamed else []))
    add(command, ROWS, "--id-column", "--identical-rows", "--group-column", "--weight-column", "--audit-column")


def add_estimator(command: Parser, *, methods: bool = True) -> None:
    """Add the options of the estimator, of all `methods` or of the default one."""
    priors = command.group(POPULATIONS).add_mutually_exclusive_group()
    for name in ("--source-prior", "--source-prior-counts"):
        priors.add_argument(name, **OPTIONS[name])
    add(command, POPULATIONS, "--scenario")
    if methods:
        add(command, METHOD, "--method", "--kernel", "--bandwidth", "--statistic", "--interval")
    add(command, METHOD, "--no-standardize", "--confidence", "--random-state")
