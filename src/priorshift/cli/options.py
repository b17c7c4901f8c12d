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
from priorshift.formatting import parse_number, parse_prior, shell_option

_Parsed = TypeVar("_Parsed")

BOLD, RED, GREEN, YELLOW = "1", "31", "32", "33"
TABLES, ROWS, POPULATIONS = "tables", "columns with a meaning", "what is known about the populations"
METHOD, OUTPUT = "method", "output"
METHODS = ("auto", "witness", "tcpu", "km2-ls", "drpu")
SETTINGS = (  # parameters of estimators
    "source_prior", "scenario", "kernel", "bandwidth", "statistic", "interval", "standardize", "confidence",
    "random_state",
)  # fmt: skip
SCHEMAS = ("estimate", "diagnose", "report", "adapt", "sketch", "demo")
COMPLETIONS = {  # where shells look for completion scripts; zsh in every folder of $fpath
    "bash": "~/.local/share/bash-completion/completions/priorshift",
    "zsh": "~/.zfunc/_priorshift",
    "fish": "~/.config/fish/completions/priorshift.fish",
}
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
    with suppress(ValueError):
        positives, rows = (int(count) for count in text.split("/"))
        if 0 <= positives <= rows > 0:
            return {"positives": positives, "rows": rows}
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a survey result; pass the number of positives/rows, such as 37/250"
    )


def bandwidth(text: str) -> str | float:
    """Parse the bandwidth of a kernel: a number, or the name of a rule, which the estimator checks."""
    with suppress(ValueError):
        return float(text)
    return text


def positive_integer(text: str) -> int:
    """Parse a whole number from 1 on."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


OPTIONS: dict[str, dict[str, Any]] = {
    # tables
    "--positive": {"metavar": "FILE", "help": "labelled positives of the source population"},
    "--unlabeled": {"metavar": "FILE", "help": "unlabelled sample of the source population"},
    "--source": {"metavar": "FILE", "help": "positive and unlabelled rows in one table, with --label-column"},
    "--label-column": {"metavar": "NAME",
        "help": "column of --source with two values, such as 0 and 1; the larger one marks the positives (for words, "
        "see --positive-label)"},
    "--positive-label": {"metavar": "VALUE", "help": "value of --label-column that means positive, such as fraud"},
    "--target": {"metavar": "FILE", "required": True, "nargs": "+",
        "help": "unlabelled sample of the target population; several files are several targets. One of the tables may "
        "be -, standard input"},
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
    "--source-prior": {"metavar": "PRIOR", "type": prior,
        "help": "share of positives in the source population: a number such as 0.2 or 20%%, a range such as 0.1-0.2, "
        "or 0-0.1 if it is at most 0.1 (default: estimated)"},
    "--source-prior-counts": {"metavar": "POSITIVES/ROWS", "dest": "source_prior", "type": survey_counts,
        "help": "result of a survey of the source population, such as 37/250, in place of --source-prior; the "
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
        "help": "bandwidth of the kernel: a number or a rule; rules of --method tcpu: dimension (default), median, "
        "variance; of km2-ls: search (default)"},
    "--statistic": {"choices": ("unbiased", "plug-in"),
        "help": "form of the estimator; plug-in is the paper's (--method tcpu; default: unbiased)"},
    "--interval": {"choices": ("delta", "bootstrap", "paper-bound", "sharp-bound"),
        "help": "kind of interval (--method tcpu; default: delta)"},
    "--threshold": {"metavar": "PRIOR", "type": number,
        "help": "a share of positives that matters, such as one above which you would act; the result says how certain "
        "it is that the target prior lies above or below it (default: the source prior)"},
    "--cost-ratio": {"metavar": "NUMBER", "type": number,
        "help": "cost of a missed positive, where a false alarm costs 1 (default: 1)"},
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
    "--features": {"metavar": "NUMBER", "type": int, "help": "number of random features (default: 512)"},
    "--no-standardize": {"dest": "standardize", "action": "store_const", "const": False,
        "help": "do not centre columns or divide them by their standard deviation"},
    "--confidence": {"metavar": "LEVEL", "type": number, "help": "confidence level of the interval (default: 0.95)"},
    "--random-state": {"metavar": "SEED", "type": int, "default": 0, "help": "seed of random numbers (default: 0)"},
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
    "--port": {"metavar": "N", "type": int, "default": 0, "help": "port to listen on (default: a free port)"},
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
                parent.add_argument(*_FLAGS.get(name, (name,)), **OPTIONS[name] | changes.get(name, {}))

    def error(self, message: str) -> NoReturn:
        """Print one sentence on stderr and exit with code 2."""
        self.exit(2, f"{colored('priorshift:', RED, sys.stderr)} {printable(message)} (see {self.prog} --help).\n")

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
