"""The argument parser and the options: help in groups with examples, and one sentence about wrong use.

Options are described statically, so that help loads no estimator; a test compares them with the estimators' parameters.
Colours are used on a terminal only, and they only repeat what the words say. ``NO_COLOR`` turns them off and
``FORCE_COLOR`` on; ``TERM=dumb`` turns them off, and so does a Windows console that is not known to support them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, NoReturn, TextIO, TypeVar

from priorshift.errors import InputError
from priorshift.formatting import parse_number, parse_prior, shell_option, shorten

_Parsed = TypeVar("_Parsed")

BOLD, RED, GREEN, YELLOW = "1", "31", "32", "33"
TABLES, ROWS, POPULATIONS = "tables", "columns with a meaning", "what is known about the populations"
METHOD, OUTPUT = "method", "output"
METHODS = ("auto", "witness", "tcpu", "km2-ls", "drpu")
SETTINGS = (  # parameters of estimators
    "source_prior", "label_error", "scenario", "kernel", "bandwidth", "statistic", "interval", "standardize",
    "confidence", "random_state",
)  # fmt: skip
SCHEMAS = ("estimate", "diagnose", "report", "adapt", "sketch", "watch", "demo")
COMPLETIONS = {  # where shells look for completion scripts; zsh in every folder of $fpath
    "bash": "~/.local/share/bash-completion/completions/priorshift",
    "zsh": "~/.zfunc/_priorshift",
    "fish": "~/.config/fish/completions/priorshift.fish",
}
_LONGEST_VALUE = 200  # characters of a value in a message about wrong use; paths may be long
_WINDOWS = ("WT_SESSION", "ANSICON", "ConEmuANSI", "TERM")  # variables that Windows consoles with colours set


def number(text: str) -> float:
    """Parse a number with either decimal mark, or a percentage."""
    return _parse(parse_number, text)


def prior(text: str) -> float | tuple[float, float]:
    """Parse a prior, such as 0.2 or 20%, or a range, such as 0.1-0.2 or 10-20%."""
    return _parse(parse_prior, text)


def _parse(parse: Callable[[str], _Parsed], text: str) -> _Parsed:
    """Parse the value of an option; an error has the message that argparse prints."""
    try:
        return parse(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error).removesuffix(".")) from None  # argparse adds a hint


def survey_counts(text: str) -> dict[str, int]:
    """Parse the counts of a survey, POSITIVES/ROWS, such as 37/250, as {"positives": 37, "rows": 250}."""
    return _counts(text, "a survey result; pass the number of positives/rows, such as 37/250")


def checked_counts(text: str) -> dict[str, int]:
    """Parse the counts of checked labelled rows, WRONG/ROWS, such as 3/50, as {"positives": 3, "rows": 50}."""
    return _counts(text, "a result of checked labels; pass the number of wrong/checked rows, such as 3/50")


def _counts(text: str, expected: str) -> dict[str, int]:
    """Parse two counts, such as 37/250, as {"positives": 37, "rows": 250}; an error says what is `expected`."""
    with suppress(ValueError):
        positives, rows = (int(count) for count in text.split("/"))
        if 0 <= positives <= rows > 0:
            return {"positives": positives, "rows": rows}
    raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")


class ByClass(dict[str, Any]):
    """Values of an option by class, from NAME=VALUE, one for each class."""


def file_by_class(text: str) -> str | ByClass:
    """Parse FILE, or NAME=FILE for the file of a class; a file whose name has an equals sign is a file if it exists."""
    name, mark, file = text.partition("=")
    if not mark or os.path.exists(text):
        return text
    if not name.strip() or not file:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be read; expected a file, or NAME=FILE, such as flu=flu.csv")
    return ByClass({name.strip(): file})


def prior_by_class(text: str) -> Any:
    """Parse a prior or a range, or NAME=PRIOR for that of a class, which may also be a survey's counts."""
    return _by_class(text, lambda value: survey_counts(value) if "/" in value else prior(value))


def cost_by_class(text: str) -> Any:
    """Parse a cost ratio, or NAME=NUMBER for that of a class."""
    return _by_class(text, number) if "=" in text else number(text)


def counts_by_class(text: str) -> dict[str, Any]:
    """Parse the counts of a survey, POSITIVES/ROWS, or NAME=POSITIVES/ROWS or NAME=ROWS for those of a class."""
    return _by_class(text, _count_of_class) if "=" in text else survey_counts(text)


def _count_of_class(text: str) -> int | dict[str, int]:
    """Parse the rows of a class in a survey of all classes, or its POSITIVES/ROWS in a survey of its own."""
    return int(text) if text.isdecimal() else survey_counts(text)


def checked_by_class(text: str) -> dict[str, Any]:
    """Parse the counts of checked labelled rows, WRONG/ROWS, or NAME=WRONG/ROWS for those of a class."""
    return _by_class(text, checked_counts) if "=" in text else checked_counts(text)


def _by_class(text: str, parse: Callable[[str], Any]) -> Any:
    """Parse NAME=VALUE as a value by class, and text without an equals sign as a prior."""
    name, mark, value = text.partition("=")
    if not mark:
        return prior(text)
    if not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} has no class before the equals sign; expected NAME=VALUE")
    return ByClass({name.strip(): parse(value)})


class StoreByClass(argparse.Action):
    """Store the value of an option, or collect its values by class, given as NAME=VALUE once for each class."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Store or add a value; refuse a class that is given twice, and values with and without a class."""
        stored = getattr(namespace, self.dest, None)
        if stored is not None and isinstance(stored, ByClass) != isinstance(values, ByClass):
            raise argparse.ArgumentError(self, "give every value a class, as in NAME=VALUE, or pass one without")
        if isinstance(values, ByClass):
            [name] = values
            if stored is not None and name in stored:
                raise argparse.ArgumentError(self, f"the class {name!r} is given twice; pass it once")
            values = ByClass({**(stored or {}), **values})
        elif stored is not None:
            name, quantity = "/".join(self.option_strings), self.dest.replace("_", " ")
            parser.error(
                f"{name} is given more than once, or together with another {quantity}; pass one value, or name the "
                f"class of each, as in {name} NAME=VALUE"
            )
        setattr(namespace, self.dest, values)


def bandwidth(text: str) -> str | float:
    """Parse the bandwidth of a kernel: a number with either decimal mark, or the name of a rule.

    The estimator checks the name. A comma that may separate thousands is refused.
    """
    with suppress(ValueError):
        return float(text)
    return number(text) if re.fullmatch(r"[\d\s.,+-]+", text) else text


def integer(text: str) -> int:
    """Parse a whole number."""
    with suppress(ValueError):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, such as 10")


def seed(text: str) -> int:
    """Parse a seed of random numbers."""
    number = integer(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is negative, but a seed is a whole number from 0 on")
    return number


def alarm_level(text: str) -> float | tuple[float, float | None]:
    """Parse the level of an alarm: a share, or a range outside of which there is an alarm; 0.02-1 has no upper end."""
    stated = prior(text)
    low, high = stated if isinstance(stated, tuple) else (0.0, stated)
    if low == 0:
        return high
    return low, None if high == 1 else high


def reference_batches(text: str) -> str | int:
    """Parse the reference of a monitor: "source", or a number of batches."""
    return text if text == "source" else positive_integer(text)


def positive_integer(text: str) -> int:
    """Parse a whole number from 1 on."""
    with suppress(ValueError):
        if int(text) >= 1:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")


OPTIONS: dict[str, dict[str, Any]] = {
    # tables
    "--positive": {"metavar": "FILE", "type": file_by_class, "action": StoreByClass,
        "help": "labelled positives of the source population"},
    "--unlabeled": {"metavar": "FILE", "help": "unlabelled sample of the source population"},
    "--source": {"metavar": "FILE", "help": "positive and unlabelled rows in one table, with --label-column"},
    "--label-column": {"metavar": "NAME",
        "help": "column of --source with two values, such as 0 and 1; the larger one marks the positives (for words, "
        "see --positive-label)"},
    "--positive-label": {"metavar": "VALUE", "help": "value of --label-column that means positive, such as fraud"},
    "--unlabeled-label": {"metavar": "VALUE",
        "help": "value of --label-column in unlabelled rows, besides empty cells; the other values are classes"},
    "--target": {"metavar": "FILE", "required": True, "nargs": "+", "action": "extend",
        "help": "unlabelled sample of the target population; several files are several targets (may be repeated). One "
        "of the tables may be -, standard input"},
    "--by": {"metavar": "NAME", "help": "column of a single --target: the rows of each value are one target"},
    "--stratify": {"metavar": "NAME",
        "help": "column of all tables: estimate each stratum separately and combine them for the whole target"},
    "--drop": {"metavar": "NAME", "action": "append", "default": [],
        "help": "column that is not a feature (may be repeated)"},
    "--missing": {"metavar": "VALUE", "action": "append", "default": [],
        "help": "value that means no value, such as -9999 or unknown, besides NA and empty cells (may be repeated)"},
    "--category": {"metavar": "NAME", "action": "append", "default": [],
        "help": "column of codes that look like numbers, to be read as categories (may be repeated)"},
    "--day-first": {"metavar": "NAME", "action": "append", "default": [],
        "help": "column of dates with the day first, such as 03/04/2020 for 3 April (may be repeated)"},
    "--month-first": {"metavar": "NAME", "action": "append", "default": [],
        "help": "column of dates with the month first, such as 04/03/2020 for 3 April (may be repeated)"},
    "--sheet": {"metavar": "NAME", "action": "append", "default": [],
        "help": "sheet of the Excel files, or ROLE=NAME for one of them, such as target=2024 (may be repeated)"},
    "--encoder": {"choices": ("auto", "none"), "default": "auto",
        "help": "auto (default) encodes categories, dates and missing cells as numbers; none accepts numbers only"},
    "--stream": {"action": argparse.BooleanOptionalAction,
        "help": "read all files in chunks, or all of them whole (default: in chunks if one is too large for memory)"},
    "files": {"metavar": "FILE", "nargs": "*",
        "help": "CSV, TSV or Parquet files of one sample, or a folder of Parquet files; - is standard input"},
    # columns with a meaning
    "--id-column": {"metavar": "NAME", "help": "rows with the same id in both source tables are the same observation"},
    "--identical-rows": {"action": "store_true",
        "help": "rows with the same values in both source tables are the same observation"},
    "--group-column": {"metavar": "NAME",
        "help": "column of all tables whose value is the same in rows that belong together, such as those of one "
        "patient; may be the same column as --id-column"},
    "--weight-column": {"metavar": "NAME",
        "help": "sample weights, in the tables that have them (--method witness or tcpu)"},
    "--audit-column": {"metavar": "NAME",
        "help": "column of the unlabelled table, the target or both: 1 or 0 where the true class was looked up, "
        "otherwise empty (--method witness)"},
    # what is known about the populations
    "--source-prior": {"metavar": "PRIOR", "type": prior_by_class, "action": StoreByClass,
        "help": "share of positives in the source population: a number such as 0.2 or 20%%, a range such as 0.1-0.2, "
        "or 0-0.1 if it is at most 0.1 (default: estimated)"},
    "--source-prior-counts": {"metavar": "POSITIVES/ROWS", "dest": "source_prior", "type": counts_by_class,
        "action": StoreByClass,
        "help": "result of a survey of the source population, such as 37/250, in place of --source-prior; the "
        "interval includes its error (--method witness or tcpu)"},
    "--no-rest": {"dest": "has_rest", "action": "store_false",
        "help": "every class is labelled: there are no rows of other classes, and no --unlabeled"},
    "--label-error": {"metavar": "SHARE", "type": prior_by_class, "action": StoreByClass,
        "help": "share of the labelled rows that are not positive: a number such as 0.05 or 5%%, or a range such as "
        "0.02-0.1; with several classes, of each class or, as NAME=SHARE, of one (--method witness or tcpu; default: "
        "0)"},
    "--label-error-counts": {"metavar": "WRONG/ROWS", "dest": "label_error", "type": checked_by_class,
        "action": StoreByClass,
        "help": "result of checking labelled rows, drawn at random, such as 3/50 if 3 of 50 are not positive, in place "
        "of --label-error; the interval includes its error (--method witness or tcpu)"},
    "--target-prior": {"metavar": "PRIOR", "type": number,
        "help": "share of positives in the target population, if known (default: estimated)"},
    "--scenario": {"choices": ("case-control", "censoring"),
        "help": "case-control: unlabelled rows are a sample of the whole population; censoring: they are what is left "
        "after some positives were labelled (default: case-control)"},
    # method
    "--method": {"choices": METHODS, "default": "auto", "help": "estimator (default: auto, which is witness)"},
    "--kernel": {"choices": ("gaussian", "laplace", "energy"), "help": "kernel (--method tcpu; default: gaussian)"},
    "--bandwidth": {"metavar": "WIDTH", "type": bandwidth,
        "help": "bandwidth of the kernel: a number or a rule; rules of --method tcpu: dimension (default), median, "
        "variance; of km2-ls: search (default)"},
    "--statistic": {"choices": ("unbiased", "plug-in"),
        "help": "form of the estimator; plug-in is the paper's (--method tcpu; default: unbiased)"},
    "--interval": {"choices": ("delta", "bootstrap", "paper-bound", "sharp-bound"),
        "help": "kind of interval (--method tcpu; default: delta)"},
    "--threshold": {"metavar": "PRIOR", "type": number,
        "help": "a share of positives that matters, such as one above which you would act; the result says how certain "
        "it is that the target prior lies above or below it (default: the source prior)"},
    "--cost-ratio": {"metavar": "NUMBER", "type": cost_by_class, "action": StoreByClass,
        "help": "cost of a missed positive, where a false alarm costs 1 (default: 1); for several classes NAME=NUMBER, "
        "the cost of an error on a row of this class (may be repeated)"},
    "--top": {"metavar": "N", "type": positive_integer,
        "help": "decide that the N rows with the highest probability are positive, for example as many as can be "
        "followed up"},
    "--precision": {"metavar": "SHARE", "type": number,
        "help": "decide positive for as many rows as possible, of which this share is expected to be positive"},
    "--recall": {"metavar": "SHARE", "type": number,
        "help": "decide positive for as few rows as are expected to include this share of all positives"},
    "--classifier": {"choices": ("nnpu", "logistic"),
        "help": "nnpu (default if torch is installed), or logistic, which is linear and needs no torch"},
    "--like": {"metavar": "FILE",
        "help": "first sketch, whose columns, encoding, scale and random features are used; or a score model, by "
        "which rows are counted"},
    "--features": {"metavar": "NUMBER", "type": integer, "help": "number of random features (default: 512)"},
    "--no-standardize": {"dest": "standardize", "action": "store_const", "const": False,
        "help": "do not centre columns or divide them by their standard deviation"},
    "--confidence": {"metavar": "LEVEL", "type": number, "help": "confidence level of the interval (default: 0.95)"},
    "--random-state": {"metavar": "SEED", "type": seed, "default": 0, "help": "seed of random numbers (default: 0)"},
    # monitoring
    "--model": {"metavar": "FILE", "required": True,
        "help": "model of the source; the command with the source writes it, and those with batches read it"},
    "--state": {"metavar": "FILE",
        "help": "state of the series, a small JSON file without rows; it is created by the first batch"},
    "--replay": {"metavar": "PATH", "nargs": "+", "action": "extend",
        "help": "files of a history, or a folder, whose tables are read in the order of their names; an interrupted "
        "replay continues"},
    "--name": {"metavar": "TEXT", "help": "name of the batch (default: the name of its file without the ending)"},
    "--time": {"metavar": "TEXT", "help": "time of the batch, for charts and the log"},
    "--replace": {"action": "store_true",
        "help": "replace the batch of this name or, with the source, the model; without this, the same rows are "
        "ignored and others refused"},
    "--acknowledge": {"action": "store_true",
        "help": "acknowledge that label shift failed, so that later batches no longer exit with code 4; alone, or "
        "before a batch is added"},
    "--series": {"metavar": "NAME", "nargs": "+", "action": "extend", "default": [],
        "help": "values of --by (default: those in the unlabelled rows)"},
    "--level": {"metavar": "SHARE", "type": alarm_level,
        "help": "alarm if the share is above this level, such as 0.05 or 5%%; or outside a range, such as 0.02-0.05; "
        "0.02-1 is an alarm below 0.02 (default: none)"},
    "--false-alarm": {"metavar": "SHARE", "type": number,
        "help": "probability that --level ever raises a false alarm, however long it runs, at most 0.5 "
        "(default: 0.05)"},
    "--run-length": {"metavar": "BATCHES", "type": number,
        "help": "average number of batches until a false alarm of a change, and of a broken assumption (default: "
        "1000)"},
    "--reference": {"metavar": "BATCHES", "type": reference_batches,
        "help": "compare later batches with this many first ones, or with the source (default: source)"},
    "--metrics": {"metavar": "FILE", "help": "write the last batch as metrics for Prometheus (.prom)"},
    "--chart": {"metavar": "FILE", "help": "draw the batches so far with their alarms (.svg or .png)"},
    "--log": {"metavar": "FILE", "help": "append a line of JSON for each batch and series (.jsonl)"},
    # output
    "--json": {"action": "store_true", "help": "print the result as JSON (see priorshift schema)"},
    "--plot": {"metavar": "FILE", "help": "write a figure of the estimate (.png, .svg or .pdf)"},
    "--output": {"metavar": "FILE", "help": "write the table of several targets or strata (.csv or .xlsx)"},
    "--fail-on": {"choices": ("no", "care"),
        "help": "exit with code 3 if a verdict is \"no\" (--fail-on no), or if it is \"no\" or \"with care\" (--fail-on"
        " care); by default the exit code does not depend on the verdict"},
    "--title": {"metavar": "TEXT", "help": "heading of the report"},
    "--report": {"metavar": "FILE", "help": "report to write (default: demo.html, or none with --json)"},
    "--no-report": {"action": "store_true", "help": "do not write a report"},
    "--safe-csv": {"action": "store_true",
        "help": "put an apostrophe before cells that a spreadsheet would take for a formula"},
    "--epsilon": {"metavar": "NUMBER", "type": number, "help": "add noise for differential privacy (with --delta)"},
    "--delta": {"metavar": "NUMBER", "type": number,
        "help": "the δ of differential privacy; choose it far smaller than 1/(number of rows)"},
    "name": {"metavar": "NAME", "choices": SCHEMAS,
        "help": f"command: {', '.join(SCHEMAS)} (sketch always prints JSON)"},
    "shell": {"metavar": "SHELL", "choices": tuple(COMPLETIONS), "help": " or ".join(COMPLETIONS)},
    "rest": {"nargs": argparse.REMAINDER, "help": "see priorshift experiment --help"},
    # app
    "--port": {"metavar": "N", "type": integer, "default": 0, "help": "port to listen on (default: a free port)"},
    "--no-browser": {"action": "store_true", "help": "print the address and do not open a browser"},
    "--max-rows": {"metavar": "N", "type": positive_integer,
        "help": "largest number of rows in a file (default: 1,000,000)"},
    "--max-bytes": {"metavar": "N", "type": positive_integer,
        "help": "largest size of a file, compressed or not (default: 500,000,000)"},
    "--time-limit": {"metavar": "SECONDS", "type": positive_integer, "help": "longest time of a job (default: 1800)"},
    "--host": {"metavar": "ADDRESS", "default": "127.0.0.1",
        "help": "address to listen on; any but this computer's own 127.0.0.1 needs --expose-to-network"},
    "--expose-to-network": {"action": "store_true",
        "help": "listen on --host: everyone who can reach this computer and has the address can use the app and read "
        "uploaded files, and so can anyone on the network between, because the connection is not encrypted"},
}  # fmt: skip
# names of options that have several
_FLAGS = {"--output": ("-o", "--output"), "--random-state": ("--random-state", "--seed")}


def use_colors(stream: TextIO | None) -> bool:
    """Return whether text written to the stream may be coloured, by environment variables and the kind of terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    if stream is None or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return False
    return os.name != "nt" or any(os.environ.get(name) for name in _WINDOWS)


def colored(text: str, color: str, stream: TextIO | None = None) -> str:
    """Return the text in a colour, an ANSI code such as RED, if its stream (default stdout) supports colours."""
    return f"\033[{color}m{text}\033[0m" if text and use_colors(stream or sys.stdout) else text


def printable(text: str) -> str:
    """Escape characters that control a terminal or reverse a line; keep line ends, tabs and the joiners of emoji."""
    escaped = ""
    for character in text:
        # Unicode's categories of control characters, invisible format characters and lone surrogates
        is_hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs") and character not in "\n\t\u200c\u200d"
        escaped += ascii(character)[1:-1] if is_hidden else character
    return escaped


def printable_line(text: str) -> str:
    """Return a message as one line: escape line ends too, which names of files may contain."""
    return printable(text).replace("\n", "\\n")


class StoreOnce(argparse.Action):
    """Store the value of an option that must not be repeated, because only the last value would count.

    It is the default; an option that may be repeated states another action, such as "append" or "extend".
    """

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Store the values, or end with an error if the option was given before."""
        given: set[str] = namespace.__dict__.setdefault("given", set())  # options that were given so far
        name = "/".join(self.option_strings)
        if name in given:
            parser.error(f"{name} is given more than once, but takes one value; pass it once")
        given.add(name)
        setattr(namespace, self.dest, values)


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help whose second column leaves space for the longest name of a command, which Python 3.11 ignores."""

    def __init__(self, *args: Any, **named: Any) -> None:
        """Set the width of the first column in characters, which is a private attribute of argparse."""
        super().__init__(*args, **named)
        self._action_max_length = 14


class Parser(argparse.ArgumentParser):
    """An argument parser whose help ends with notes and examples, and whose errors are one sentence."""

    def __init__(
        self, description: str = "", notes: str = "", examples: Iterable[tuple[str, str]] = (), **named: Any
    ) -> None:
        """Create a parser; `examples` are pairs of purpose and command, and `named` go to ArgumentParser."""
        self.examples = tuple(examples)
        width = max(shutil.get_terminal_size().columns - 2, 40)  # as argparse wraps the options
        epilog = [_fill(notes, width)] if notes else []
        if self.examples:
            formatted = [_format_example(purpose, command, width) for purpose, command in self.examples]
            epilog.append("\n".join(["examples:", *formatted]))
        super().__init__(
            description=_fill(description, width), epilog="\n\n".join(epilog), formatter_class=_Help, **named
        )
        self.options = self._actions  # including positional arguments
        self.commands: dict[str, Parser] = {}  # subparsers by name

    def add_options(self, title: str, names: str, changes: Mapping[str, dict[str, Any]]) -> None:
        """Add a group of options; `names` are keys of OPTIONS, separated by spaces, or by | if they exclude each other.

        `changes` are arguments of `add_argument` that replace those of OPTIONS, by option.
        """
        group = self.add_argument_group(title)
        for alternatives in names.split():
            parent = group.add_mutually_exclusive_group() if "|" in alternatives else group
            for name in alternatives.split("|"):
                action: dict[str, Any] = {"action": StoreOnce} if name.startswith("-") else {}
                parent.add_argument(*_FLAGS.get(name, (name,)), **action | OPTIONS[name] | changes.get(name, {}))

    def error(self, message: str) -> NoReturn:
        """Print one sentence on stderr and exit with code 2; long values in it are shortened."""
        message = printable(shorten(message, _LONGEST_VALUE))
        self.exit(2, f"{colored('priorshift:', RED, sys.stderr)} {message} (see {self.prog} --help).\n")

    def refuse_unknown(self, words: Sequence[str]) -> None:
        """End with an error for an unknown option, or for a value without an option, among the words of a command.

        argparse would report missing options first, of which one may only be misspelt.
        """
        words = list(takewhile(lambda word: word != "--", words))
        if words and not words[0].startswith("-") and not self._get_positional_actions():
            option = shell_option("--target", words[0])
            advice = f"name the option, such as {option}" if self._knows("--target") else "remove it"
            self.error(f"there is no option before {words[0]!r}; {advice}")
        for word in words:
            if _is_option(word) and not self._knows(word):
                option = word.split("=")[0]
                self.error(f"{option} is not an option of {self.prog}{_suggest(option, self._option_string_actions)}")

    def _knows(self, word: str) -> bool:
        """Return whether a word such as --name, --name=value or -oFILE starts with a known option."""
        option = word.split("=")[0]
        if word.startswith("--"):
            return any(known.startswith(option) for known in self._option_string_actions)  # may be abbreviated
        return option in self._option_string_actions or word[:2] in self._option_string_actions

    def _get_option_tuples(self, option_string: str) -> Any:
        """Return the options that a word may abbreviate; overrides argparse's method.

        Of --unlabeled and --unlabeled-label, --unlab means the shorter one, of which the other is an extension.
        """
        found = super()._get_option_tuples(option_string)
        names = [option[1] for option in found]
        shortest = min(names, key=len, default="")
        if all(name.startswith(shortest) for name in names):
            return [option for option in found if option[1] == shortest]
        return found

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise ArgumentError for a value that is not a choice, with a suggestion; overrides argparse's method."""
        if action.choices is None or value in action.choices:
            return
        choices, suggestion = ", ".join(action.choices), _suggest(value, action.choices)
        if isinstance(action.choices, dict):  # the subparsers
            self.error(f"{value!r} is not a command{suggestion or f'; the commands are {choices}'}")
        raise argparse.ArgumentError(action, f"{value!r} is not one of {choices}{suggestion}")


def _suggest(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean NAME?" for a misspelt word, where NAME is one of `known`; "" if no name is similar.

    NAME is the only name that has the word as a part between hyphens, or else the one with the most similar spelling.
    """
    bare_word = word.strip("-")
    by_option = {f"--{name.strip('-')}": name for name in known}  # all names in one form, to compare them
    similar = [option for option in by_option if bare_word in option.split("-")]
    if len(similar) != 1:
        similar = get_close_matches(f"--{bare_word}", by_option, n=1)
    return f"; did you mean {by_option[similar[0]]}?" if similar else ""


def _is_option(word: str) -> bool:
    """Return whether argparse takes the word for an option: not -, a negative number or a text with spaces."""
    with suppress(ValueError):
        float(word)
        return False
    return len(word) > 1 and word.startswith("-") and " " not in word


def _format_example(purpose: str, command: str, width: int) -> str:
    """Return an example for the help: its purpose and, below it, the command, wrapped to `width` before an option."""
    lines = ["   "]
    for part in re.split(r" (?=--?\w|> )", command):
        if len(lines[-1]) + len(part) + 3 > width:
            lines.append("       ")
        lines[-1] += f" {part}"
    return _fill(f"{purpose}:", width, "  ") + "\n" + " \\\n".join(lines)


def _fill(text: str, width: int, indent: str = "") -> str:
    """Wrap a text to a width, with all lines indented, and no break at hyphens, which options contain."""
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
