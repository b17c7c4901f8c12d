"""Colours, on a terminal alone. They repeat what the words say, so that nothing is lost without them.

``NO_COLOR`` turns them off and ``FORCE_COLOR`` on, where they are set to anything; ``TERM=dumb`` turns them off, and so
does a Windows console that does not say that it understands them.

The parser of commands: help with examples, options in groups, and of wrong use a sentence with what was meant."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, NoReturn, TextIO

from priorshift.formatting import shell_option

BOLD, RED, GREEN, YELLOW = "1", "31", "32", "33"
ANSWERS = {"yes": GREEN, "with care": YELLOW, "no": RED}
_WINDOWS = ("WT_SESSION", "ANSICON", "ConEmuANSI", "TERM")  # set by consoles that understand colours


def wanted(stream: TextIO | None) -> bool:
    """Whether what is written there may be coloured."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    if stream is None or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return False
    return os.name != "nt" or any(map(os.environ.get, _WINDOWS))


def painted(text: str, colour: str, stream: TextIO | None = None) -> str:
    """The text in a colour where its stream, by default stdout, may have it."""
    return f"\033[{colour}m{text}\033[0m" if text and wanted(stream or sys.stdout) else text


def printable(text: str) -> str:
    """Text of which no character steers the terminal or turns the line around, whatever a file's names hold."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else _named(c) for c in text)


def in_a_line(text: str) -> str:
    """The same, which does not end the line either."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _named(character: str) -> str:
    """Joiners, which emoji are made of, as they are; others as Python writes them."""
    return character if character in "\u200c\u200d" else ascii(character)[1:-1]


TABLES, ROWS, KNOWN = "the tables", "what is known of rows", "what is known of the populations"
METHOD, OUTPUT = "the method", "the output"

Example = tuple[str, str]  # what it is for, and the command


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help whose second column leaves room for the longest name of a command, which Python 3.11 does not see."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._action_max_length = 14


class Parser(argparse.ArgumentParser):
    """An argument parser whose help ends in examples, and who says what is wrong in one sentence.

    `words`, beside argparse's own parameters, are paragraphs that stand below the options, and `examples` below them.
    """

    def __init__(
        self,
        *,
        description: str | None = None,
        words: Sequence[str] = (),
        examples: Sequence[Example] = (),
        **named: Any,
    ) -> None:
        self.examples = tuple(examples)
        self._titled: dict[str, Any] = {}
        width = max(shutil.get_terminal_size().columns - 2, 40)  # as argparse wraps the options
        below = [_filled(paragraph, width) for paragraph in words]
        if examples:
            below.append("\n".join(["examples:", *(_shown(example, width) for example in examples)]))
        named["formatter_class"] = _Help
        named["epilog"] = "\n\n".join(below) or None
        super().__init__(description=description and _filled(description, width), **named)

    @property
    def options(self) -> list[argparse.Action]:
        """All that it takes."""
        return list(self._actions)

    def group(self, title: str) -> Any:
        """The options that answer one of the user's questions, in the order in which they are first asked for."""
        if title not in self._titled:
            self._titled[title] = self.add_argument_group(title)
        return self._titled[title]

    @property
    def commands(self) -> dict[str, Parser]:
        """Parsers of its commands, by their names."""
        return next((a.choices for a in self._get_positional_actions() if isinstance(a.choices, dict)), {})

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{painted('priorshift:', RED, sys.stderr)} {printable(message)} (see {self.prog} --help).\n")

    def refuse_strangers(self, words: Sequence[str]) -> None:
        """Refuse options that the command does not have, and words that no option stands before.

        argparse would first ask for the options that are missing, which those may be, misspelt.
        """
        words = list(takewhile(lambda word: word != "--", words))
        if words and not words[0].startswith("-") and not self._get_positional_actions():
            option = shell_option("--target", words[0])
            such = f"name what it is, such as {option}" if self._knows("--target") else "leave it out"
            self.error(f"no option stands before {words[0]!r}; {such}")
        for word in words:
            if _is_option(word) and not self._knows(word):
                option = word.split("=")[0]
                self.error(f"{option} is no option of {self.prog}{self._meant(option)}")

    def _meant(self, option: str) -> str:
        """The option that has the word among its own, or is spelt most like it."""
        long = [known for known in self._option_string_actions if known.startswith("--")]
        word = option.strip("-")
        named = [known for known in long if word in known.strip("-").split("-")]
        return _meant(f"--{word}", long) if len(named) != 1 else f"; did you mean {named[0]}?"

    def _knows(self, word: str) -> bool:
        option = word.split("=")[0]
        if word.startswith("--"):
            return any(known.startswith(option) for known in self._option_string_actions)  # short for it
        return option in self._option_string_actions or word[:2] in self._option_string_actions

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = action.choices
        if choices is None or value in choices:
            return
        if isinstance(choices, dict):
            self.error(f"{value!r} is no command{_meant(value, choices) or f'; there are {_listed(choices)}'}")
        else:
            meant = _meant(value, map(str, choices))
            raise argparse.ArgumentError(action, f"{value!r} is none of {_listed(choices)}{meant}")


def _meant(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _listed(choices: Iterable[Any]) -> str:
    return ", ".join(map(str, choices))


def _is_option(word: str) -> bool:
    """As argparse sees it: neither standard input, nor a negative number, nor a text with spaces."""
    with suppress(ValueError):
        float(word)
        return False
    return len(word) > 1 and word.startswith("-") and " " not in word


def _shown(example: Example, width: int) -> str:
    """What it is for, and below it the command, in lines that fit the terminal, options beside their values."""
    what, command = example
    lines = ["   "]
    for part in re.split(r" (?=--?\w|> )", command):
        if len(lines[-1]) + len(part) + 3 > width:
            lines.append("       ")
        lines[-1] += f" {part}"
    return _filled(f"{what}:", width, "  ") + "\n" + " \\\n".join(lines)


def _filled(text: str, width: int, indent: str = "") -> str:
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
