"""Values of cells in Excel workbooks (.xlsx): numbers, texts, and dates by their formats."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta

LONGEST_TEXT = 32_767  # characters of a cell in Excel
MOST_SHOWN = 20  # characters of a value in a message, or of a whole number
CODE_LENGTH = 7  # characters of a code such as _x0041_, which stands for one
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")  # a character that XML does not have, or an underscore before such a text
_LETTERS = re.compile("[A-Za-z]{1,3}")  # of a column

# Kinds of cell formats. A time shows hours alone: of a day or a duration, or of a date if there are many days
NUMBER, DATE, TIME, DURATION = range(4)
_MOST_DAYS = 1000  # in a cell with the format of a time; more are a date, from October 1902 on
# Formats that a workbook need not define, by number; 27 to 36, 50 to 58 and 71 to 81 depend on the language
BUILT_IN = {
    **dict.fromkeys((14, 15, 16, 17, 22), DATE),
    **dict.fromkeys((18, 19, 20, 21, 45, 47, *range(27, 37), *range(50, 59), *range(71, 82)), TIME),
    46: DURATION,
}  # fmt: skip
# in a format's code: quoted and escaped characters, widths and fillers, colours, conditions and languages
_LITERAL = re.compile(r'"[^"]*"?|[\\!].?|_.?|\*.?|\[(?!(?:h+|m+|s+)\])[^\]]*\]?', re.IGNORECASE | re.DOTALL)
_ELAPSED = re.compile(r"\[[hms]")
_CLOCK = re.compile("[hs]|am/pm|a/p")
_CALENDAR = re.compile("[dy]")
_OTHER_CALENDAR = re.compile("[ber]|aaa")  # years of other calendars, and a weekday
_PLACE = re.compile("[0#?]")  # of a digit, also in a format of numbers with a unit that is not quoted


class WorkbookError(ValueError):
    """The reason why a workbook cannot be read, as the end of a sentence."""


class ErrorText(str):
    """The text of a cell whose value cannot be computed, such as #DIV/0!."""


def column_letters(number: int) -> str:
    """Return the letters of a column, AB for 28."""
    letters = ""
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(65 + letter) + letters
    return letters


def column_number(letters: str) -> int:
    """Return the number of a column, 28 for AB."""
    if not _LETTERS.fullmatch(letters):
        raise WorkbookError("a cell has a place that Excel does not have")
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - 64
    return number


def whole_number(text: str) -> int:
    """Read a whole number that is not negative."""
    text = text.strip() if len(text) <= MOST_SHOWN else ""
    if not (text.isascii() and text.isdigit()):
        raise WorkbookError("a number in its XML is not a whole number")
    return int(text)


def parse_number(text: str) -> float:
    """Read a finite number, as an int if it has no decimal mark."""
    if "_" in text or not text.isascii():
        raise ValueError
    number = float(text)
    if number - number != 0:  # infinite or not a number
        raise ValueError
    return int(text) if abs(number) < 1e18 and text.strip().lstrip("+-").isdigit() else number


def text_too_long() -> WorkbookError:
    """Return the reason for a text that Excel would not write."""
    return WorkbookError(f"it has a text of more than {LONGEST_TEXT:,} characters, the most that Excel allows")


def cell_text(text: str) -> str | None:
    """Return a text without codes, or None if it is blank.

    A code stands for a character that XML does not have; a surrogate is no character.
    """

    def character(match: re.Match[str]) -> str:
        code = int(match[1], 16)
        return match[0] if 0xD800 <= code <= 0xDFFF else chr(code)

    if "_x" in text:
        text = _ESCAPED.sub(character, text)
    if len(text) > LONGEST_TEXT:
        raise text_too_long()
    return text if text.strip() else None


def kind_of_format(code: str) -> int:
    """Return the kind of a format, such as DATE, from the first section of its code that shows the number."""
    sections = _LITERAL.sub("", code).lower().replace("general", "0").split(";")
    shown = next(filter(str.strip, sections), "")  # the section of a condition such as [=0] may be empty or a text
    if _ELAPSED.search(shown):
        return DURATION
    has_time = bool(_CLOCK.search(shown))
    if _OTHER_CALENDAR.search(shown) and not _PLACE.search(shown):
        return DATE
    if _CALENDAR.search(shown) or ("m" in _CLOCK.sub("", shown) and not has_time):  # m is a minute next to h or s
        return DATE
    return TIME if has_time else NUMBER


def moment_of_days(days: float, kind: int, counts_from_1904: bool) -> datetime | timedelta | None:
    """Return the date, time of day or duration that a number of days stands for; None for a year that Python lacks.

    Excel counts from the last day of 1899, and has a 29th of February in 1900, day 60. It shows no dates before, which
    other programs write as negative numbers, counted from the 30th of December.
    """
    try:
        passed = timedelta(milliseconds=round(days * 86_400_000))
        if kind == DURATION or (kind == TIME and days < _MOST_DAYS):
            return passed
        if counts_from_1904:
            return datetime(1904, 1, 1) + passed
        return datetime(1899, 12, 31 if 0 <= days < 60 else 30) + passed
    except OverflowError:
        return None


def iso_moment(text: str) -> datetime | timedelta:
    """Read a date or a time of day in ISO 8601, without its time zone."""
    if not {":", "-"} & set(text[:100]):  # Python would read 2020 as a time
        raise ValueError
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        clock = time.fromisoformat(text)
        return timedelta(hours=clock.hour, minutes=clock.minute, seconds=clock.second, microseconds=clock.microsecond)
