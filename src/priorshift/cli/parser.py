"""The argument parser: help with examples, options in groups, and one sentence about wrong use.

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
from collections.abc import Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, NoReturn, TextIO

from priorshift.formatting import shell_option

BOLD, RED, GREEN, YELLOW = "1", "31", "32", "33"
_WINDOWS = ("WT_SESSION", "ANSICON", "ConEmuANSI", "TERM")  # set by consoles that support colours

Example = tuple[str, str]  # what it is for, and the command


def use_colors(stream: TextIO | None) -> bool:
    """Return whether text written to the stream may be coloured."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    if stream is None or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return False
    return os.name != "nt" or any(map(os.environ.get, _WINDOWS))


def colored(text: str, color: str, stream: TextIO | None = None) -> str:
    """Return the text in a colour if its stream, by default stdout, supports colours."""
    return f"\033[{color}m{text}\033[0m" if text and use_colors(stream or sys.stdout) else text


def printable(text: str) -> str:
    """Escape characters that control a terminal or reverse a line; keep line ends, tabs and the joiners of emoji."""
    return "".join(
        c if c in "\n\t\u200c\u200d" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else ascii(c)[1:-1]
        for c in text
    )


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help whose second column leaves space for the longest name of a command, which Python 3.11 ignores."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._action_max_length = 14


class Parser(argparse.ArgumentParser):
    """An argument parser whose help ends with notes and examples, and whose errors are one sentence."""

    def __init__(
        self,
        *,
        description: str | None = None,
        notes: Sequence[str] = (),
        examples: Sequence[Example] = (),
        **named: Any,
    ) -> None:
        self.examples = tuple(examples)
        self._groups_by_title: dict[str, Any] = {}
        width = max(shutil.get_terminal_size().columns - 2, 40)  # as argparse wraps the options
        epilog = [_fill(paragraph, width) for paragraph in notes]
        if examples:
            epilog.append("\n".join(["examples:", *(_format_example(example, width) for example in examples)]))
        named["formatter_class"] = _Help
        named["epilog"] = "\n\n".join(epilog) or None
        super().__init__(description=description and _fill(description, width), **named)

    @property
    def options(self) -> list[argparse.Action]:
        """All options and positional arguments."""
        return list(self._actions)

    @property
    def commands(self) -> dict[str, Parser]:
        """The parsers of the commands, by name."""
        return next((a.choices for a in self._get_positional_actions() if isinstance(a.choices, dict)), {})

    def group(self, title: str) -> Any:
        """Return the group of options with this title, which is created when it is first asked for."""
        if title not in self._groups_by_title:
            self._groups_by_title[title] = self.add_argument_group(title)
        return self._groups_by_title[title]

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{colored('priorshift:', RED, sys.stderr)} {printable(message)} (see {self.prog} --help).\n")

    def refuse_unknown(self, words: Sequence[str]) -> None:
        """Refuse unknown options and values without an option.

        argparse would first report missing options, which a misspelt one may have been meant to be.
        """
        words = list(takewhile(lambda word: word != "--", words))
        if words and not words[0].startswith("-") and not self._get_positional_actions():
            option = shell_option("--target", words[0])
            advice = f"name the option, such as {option}" if self._knows("--target") else "remove it"
            self.error(f"there is no option before {words[0]!r}; {advice}")
        for word in words:
            if _is_option(word) and not self._knows(word):
                option = word.split("=")[0]
                self.error(f"{option} is not an option of {self.prog}{self._suggestion(option)}")

    def _suggestion(self, option: str) -> str:
        """Suggest the one option that contains the word, or the one that is spelt most like it."""
        long = [known for known in self._option_string_actions if known.startswith("--")]
        word = option.strip("-")
        containing = [known for known in long if word in known.strip("-").split("-")]
        return f"; did you mean {containing[0]}?" if len(containing) == 1 else _suggest(f"--{word}", long)

    def _knows(self, word: str) -> bool:
        option = word.split("=")[0]
        if word.startswith("--"):
            return any(known.startswith(option) for known in self._option_string_actions)  # may be abbreviated
        return option in self._option_string_actions or word[:2] in self._option_string_actions

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = action.choices
        if choices is None or value in choices:
            return
        known = ", ".join(map(str, choices))
        suggestion = _suggest(value, map(str, choices))
        if isinstance(choices, dict):
            self.error(f"{value!r} is not a command{suggestion or f'; the commands are {known}'}")
        raise argparse.ArgumentError(action, f"{value!r} is not one of {known}{suggestion}")


def _suggest(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _is_option(word: str) -> bool:
    """Return whether argparse takes the word for an option: not -, a negative number or a text with spaces."""
    with suppress(ValueError):
        float(word)
        return False
    return len(word) > 1 and word.startswith("-") and " " not in word


def _format_example(example: Example, width: int) -> str:
    """Return the purpose and, below it, the command in lines that fit the terminal."""
    purpose, command = example
    lines = ["   "]
    for part in re.split(r" (?=--?\w|> )", command):
        if len(lines[-1]) + len(part) + 3 > width:
            lines.append("       ")
        lines[-1] += f" {part}"
    return _fill(f"{purpose}:", width, "  ") + "\n" + " \\\n".join(lines)


def _fill(text: str, width: int, indent: str = "") -> str:
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
