"""Read numbers that people type, and write numbers, options and paragraphs for messages, tables, pictures and reports.

A minus is written as the sign − of axes, a percentage has no space before its sign, and no p-value is written as 0.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from math import floor, isnan, log10
from textwrap import TextWrapper

from priorshift.errors import InputError

_MAX_DECIMALS = 12
_SMALLEST_P = 1e-4  # smallest p-value that sentences state
_LINE_WIDTH = 100
_LONGEST_NUMBER = 100  # letters of a number that people type


def parse_number(text: str) -> float:
    """Parse a number with either decimal mark, or a percentage: 0.045, 0,045, 4.5% and 4,5% are the same.

    A comma before three digits, as in 1,000, could also separate thousands, and is refused.
    """
    _refuse_long(text)
    digits = text.strip().removesuffix("%").strip()
    whole, comma, decimals = digits.partition(",")
    is_ambiguous = len(decimals) == 3 and whole.strip("+-") != "0"
    with suppress(ValueError):
        if not comma or (decimals.isdecimal() and not is_ambiguous):
            value = float(f"{whole}.{decimals}" if comma else digits)
            # 12.3% is 0.123, and not 0.12300000000000001
            return float(f"{value / 100:.15g}") if text.strip().endswith("%") else value
    raise InputError(f"{text!r} cannot be read; expected a number such as 0.045, 0,045 or 4.5%.")


def parse_prior(text: str) -> float | tuple[float, float]:
    """Parse a prior, such as 0.2 or 20%, or a range, such as 0.1-0.2 or 10-20%.

    A dash may also belong to an exponent (1e-3-0.1).
    """
    _refuse_long(text)
    number = None
    with suppress(InputError):
        number = parse_number(text)
    if number is not None:
        if 1 < number <= 100 and "%" not in text:
            raise InputError(f"{text!r} is above 1, but a share is expected; write {number:g}% or {number / 100:g}.")
        return number
    unit = "%" if text.strip().endswith("%") else ""
    for position, letter in enumerate(text):
        if letter in "-–":  # try each dash as the separator
            low, high = text[:position].strip(), text[position + 1 :].strip()
            with suppress(InputError):
                return parse_number(low if low.endswith("%") else low + unit), parse_number(high)
    raise InputError(
        f"{text!r} cannot be read; expected a number such as 0.2, a range such as 0.1-0.2, or 0-0.2 for at most 0.2."
    )


def _refuse_long(text: str) -> None:
    """Raise InputError for a text that is too long for a number, before time is spent on it."""
    if len(text) > _LONGEST_NUMBER:
        raise InputError(f"{text[:20]!r}… has {len(text)} letters, but a number such as 0.045 or 4.5% is expected.")


def decimals(width: float) -> int:
    """Return how many decimals show two significant digits of an interval's width, or of a share; three to twelve."""
    if not 0 < width < 0.01:
        return 3
    return min(1 - floor(log10(width)), _MAX_DECIMALS)


def range_decimals(low: float, high: float) -> int:
    """Return how many decimals distinguish the ends of a range: two significant digits of its width, at least two."""
    width = high - low
    if not 0 < width < 0.1:
        return 2
    return min(1 - floor(log10(width)), _MAX_DECIMALS)


def format_range(low: float, high: float, spec: str = ".3g") -> str:
    """Format a range of shares for a sentence: "0.1 to 0.2", or "at most 0.2" if it starts at 0."""
    if low <= 0:
        return f"at most {high:{spec}}"
    return f"at least {low:{spec}}" if high >= 1 else f"{low:{spec}} to {high:{spec}}"


def format_fixed(value: float, digits: int, sign: str = "") -> str:
    """Format a number with fixed decimals and a typographic minus; what rounds to 0 has no minus. `sign` may be "+"."""
    return f"{value:{sign}z.{digits}f}".replace("-", "−")


def format_short(value: float, digits: int = 2, sign: str = "") -> str:
    """Format a number with `digits` significant digits; `sign` may be "+"."""
    text = f"{value:{sign}.{digits}g}"
    # only the sign of the number becomes a typographic minus, not that of an exponent, as in 1e-05
    return f"−{text[1:]}" if text.startswith("-") else text


def format_percent(share: float) -> str:
    """Format a share as a percentage, with one decimal below 1%."""
    return f"{100 * share:.1f}%" if 0 < share < 0.0095 else f"{100 * share:.0f}%"


def format_p(p: float, digits: int = 2) -> str:
    """Format a p-value for a sentence, as in "p = 0.031"."""
    return f"p < {_SMALLEST_P:g}" if p < _SMALLEST_P else f"p = {p:.{digits}g}"


def format_p_cell(p: float, digits: int = 3) -> str:
    """Format a p-value for a table, as in "0.031" or "< 0.001"; "none" for NaN."""
    if isnan(p):
        return "none"
    smallest = 10.0**-digits
    return f"< {smallest:g}" if p < smallest else f"{p:.{digits}f}"


def shorten(text: str, length: int = 80) -> str:
    """Shorten each word of a text that is longer than `length` characters, such as a number of thousands of digits."""
    return re.sub(rf"\S{{{length + 1},}}", lambda match: f"{match[0][: length // 2]}…{match[0][-length // 4 :]}", text)


def shell_option(option: str, value: str) -> str:
    """Format an option and its value for a shell; a value that begins with "-" needs "="."""
    quoted = shlex.quote(value)
    return f"{option}={quoted}" if value.startswith("-") else f"{option} {quoted}"


def drop_hint(column: str) -> str:
    """Format the options that drop a column, in Python and in the shell."""
    return f"(drop=[{column!r}], {shell_option('--drop', column)})"


def wrap_lines(text: str, indent: str = "") -> str:
    """Wrap each line of a text at spaces, with an indent; further lines of a list item ("- ") are indented more."""
    wrapper = TextWrapper(_LINE_WIDTH, initial_indent=indent, break_long_words=False, break_on_hyphens=False)
    lines = []
    for line in text.splitlines():
        wrapper.subsequent_indent = indent + "  " if line.startswith("- ") else indent
        lines.append(wrapper.fill(line))
    return "\n".join(lines)
