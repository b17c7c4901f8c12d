"""Numbers in the form's fields, as people type them: read by the command line's parser, and shown as they were read.

The fields of shares are in percent, so that 4,5 and 4.5% are the share 0.045.
"""

from __future__ import annotations

from math import ceil, log10
from typing import Any

from priorshift.errors import InputError
from priorshift.formatting import parse_number, parse_prior

_UNKNOWN = "if you do not know it, choose “I do not know”"
# fields of shares: what messages call them, and an example
_SHARES = {
    "value": ("share of positives in the old population", f"20; {_UNKNOWN}"),
    "low": ("lower end of the range", "10"),
    "high": ("upper end of the range", "30"),
    "confidence": ("confidence of the interval", "95"),
    "threshold": ("share that matters", "10"),
    "level": ("share above which there is an alarm", "5"),
    "precision": ("wanted share of the rows decided positive that have it", "80"),
    "recall": ("wanted share found of all rows that have it", "90"),
}
_CLASS_SHARE = ("share of a class in the old population", "20, or a range such as 10-30; empty if you do not know it")
_INCLUDE_ALL = ("precision", "recall")  # shares that may be 100%
# fields of whole numbers: what messages call them, and the least possible one
_COUNTS = {
    "positives": ("number of people who had it", 0),
    "rows": ("number of people examined", 1),
    "top": ("number of rows to decide positive", 1),
    "seed": ("seed", 0),
}
_RATIO = "cost of a missed one must be a number of false alarms above 0, such as 20"
_LARGEST_SEED = 2**32 - 1


def is_class_share(field: str) -> bool:
    """Return whether a field holds the share of a class in the old population."""
    return field.endswith("-share")


class FieldError(InputError):
    """A field of the form has a value that cannot be used; `field` is its name."""

    def __init__(self, field: str, message: str) -> None:
        """Store the name of the field, at which the page shows the message."""
        super().__init__(message)
        self.field = field


def read_share(field: str, value: Any) -> float:
    """Return the share in a field: a number from 0 to 1, or a text in percent."""
    name, example = _CLASS_SHARE if is_class_share(field) else _SHARES[field]
    share = _number(value, unit="%")
    if share is None or not (0 < share < 1 or (share == 1 and field in _INCLUDE_ALL)):
        raise FieldError(field, f"the {name} must be a number between 0 and 100%, such as {example}.")
    return share


def read_value(value: Any, field: str = "value") -> float | tuple[float, float]:
    """Return the share of the old population: a number, or a range, which the same field may hold as well (10-20)."""
    if isinstance(value, str) and _number(value) is None:
        try:
            ends = parse_prior(_in_percent(value))
        except InputError:
            ends = 0.0
        if isinstance(ends, tuple):
            return read_range(*ends, field=field)
    return read_share(field, value)


def read_range(low: Any, high: Any, field: str = "low") -> tuple[float, float]:
    """Return the range of the share of the old population; an empty lower end is 0."""
    low, high = 0.0 if low == "" else _number(low, unit="%"), _number(high, unit="%")
    if low is None or high is None or not 0 <= low < high < 1:
        raise FieldError(
            "high" if high is None and field == "low" else field,
            f"the {_CLASS_SHARE[0] if is_class_share(field) else _SHARES['value'][0]} must be a range between 0 and "
            "100%, the lower end first, such as 10 to 30, or 0 to 10 for at most 10.",
        )
    return low, high


def read_count(field: str, value: Any) -> int:
    """Return the whole number in a field."""
    name, least = _COUNTS[field]
    count = _number(value)
    largest = _LARGEST_SEED if field == "seed" else 2**53
    if count is None or not least <= count <= largest or not float(count).is_integer():
        until = f"to {_LARGEST_SEED:,}" if field == "seed" else "on"
        raise FieldError(field, f"the {name} must be a whole number from {least} {until}.")
    return int(count)


def read_ratio(value: Any) -> float:
    """Return the cost of a missed positive in units of that of a false alarm."""
    ratio = _number(value)
    if ratio is None or not 0 < ratio < float("inf"):
        raise FieldError("cost_ratio", f"the {_RATIO}.")
    return ratio


def show_share(share: float | tuple[float, float]) -> str:
    """Write a share, or a range of shares, in percent and as a number: "4.5% = 0.045"."""
    ends = share if isinstance(share, tuple) else (share,)
    return f"{' to '.join(f'{100 * end:.10g}%' for end in ends)} = {' to '.join(f'{end:.10g}' for end in ends)}"


def show_field(field: str, text: str) -> str:
    """Say how the text in a field is read, or what is wrong with it; nothing of a whole number."""
    try:
        if field == "value" or is_class_share(field):
            return _show_typed(text, read_value(text, field))
        if field == "low":  # unlike other shares, it may be 0
            return show_share(0.0) if _number(text, unit="%") == 0 else _show_typed(text, read_share(field, text))
        if field in _SHARES:
            return _show_typed(text, read_share(field, text))
        if field in _COUNTS:
            read_count(field, text)
        elif field == "cost_ratio":
            return f"{read_ratio(text):.10g} false alarms"
        return ""
    except FieldError as error:
        message = str(error)
        return message[:1].upper() + message[1:]


def _show_typed(text: str, share: float | tuple[float, float]) -> str:
    """Write the share that was typed; if it is below 1% without a sign, say what to write for the number in 100.

    Whoever writes 0.22 may mean 22 in 100. It is used as it is, since things can be that rare.
    """
    shown, largest = show_share(share), max(share) if isinstance(share, tuple) else share
    if "%" in text or largest >= 0.01:
        return shown
    base = max(1000, 10 ** min(ceil(-log10(largest)), 15))
    return (
        f"{shown}, about {base * largest:.0f} in {base:,}. For {1e4 * largest:.10g} in 100 write {1e4 * largest:.10g}."
    )


def _number(value: Any, unit: str = "") -> float | None:
    """Return a number of JSON as it is, and one that was typed in a unit, "%" or ""; None for anything else."""
    if isinstance(value, str):
        try:
            return parse_number(_in_percent(value) if unit else value)
        except InputError:
            return None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer of several hundred digits
        return None


def _in_percent(text: str) -> str:
    """Add the sign to a text in percent that has none."""
    return text if text.strip().endswith("%") else f"{text}%"
