"""Fields of an object that was read from a file, each checked before it is used."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from priorshift.arrays import Floats
from priorshift.errors import InputError


class Fields:
    """An object with exactly these keys, of which each is read by what it must be.

    Parameters
    ----------
    source : object
        What stood in the file.
    keys : str
        The keys, with spaces between.
    what : str
        What messages call the object.

    Examples
    --------
    >>> from priorshift.io.header_fields import Fields
    >>> Fields({"rows": 3}, "rows", "the count").whole("rows")
    3
    """

    def __init__(self, source: Any, keys: str, what: str) -> None:
        self.what = what
        expected = set(keys.split())
        if not isinstance(source, dict) or source.keys() != expected:
            got = sorted(map(str, source)) if isinstance(source, dict) else type(source).__name__
            raise self.refused(f"it has {str(got)[:80]} where {sorted(expected)} is expected")
        self.source: dict[str, Any] = source

    def refused(self, why: str) -> InputError:
        """The sentence about what is wrong."""
        return InputError(
            f"what was stored of {self.what} is damaged or was changed ({why}); get the file again, or write it anew."
        )

    def is_none(self, key: str) -> bool:
        return self.source[key] is None

    def text(self, key: str) -> str:
        return self._one(key, lambda v: isinstance(v, str), "a text")

    def flag(self, key: str) -> bool:
        return self._one(key, lambda v: isinstance(v, bool), "true or false")

    def whole(self, key: str, least: int = 0, most: int = 2**63 - 1) -> int:
        return self._one(key, lambda v: type(v) is int and least <= v <= most, f"a whole number from {least} on")

    def number(self, key: str, least: float = -math.inf, most: float = math.inf) -> float:
        span = "" if math.isinf(least) else f" from {least:g} on"
        return float(self._one(key, lambda v: _is_number(v) and least <= v <= most, f"a finite number{span}"))

    def texts(self, key: str) -> tuple[str, ...]:
        is_texts = _list_of(lambda v: isinstance(v, str))
        made = tuple(self._one(key, is_texts, "a list of texts"))
        if len(set(made)) < len(made):
            raise self.refused(f"{key!r} holds a text twice")
        return made

    def numbers(self, key: str, length: int) -> Floats:
        """A list of so many finite numbers."""
        fits = _list_of(_is_number, length)
        return np.array(self._one(key, fits, f"a list of {length} finite numbers"), dtype=np.float64)

    def parts(self, key: str) -> list[Any]:
        return self._one(key, lambda v: isinstance(v, list), "a list")

    def _one(self, key: str, fits: Callable[[Any], bool], expected: str) -> Any:
        value = self.source[key]
        if not fits(value):
            raise self.refused(f"{key!r} is not {expected}")
        return value


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return type(value) is int and abs(value) < 2**53  # a larger one may not be what its text says


def _list_of(fits: Callable[[Any], bool], length: int | None = None) -> Callable[[Any], bool]:
    def is_list(value: Any) -> bool:
        return isinstance(value, list) and length in (None, len(value)) and all(map(fits, value))

    return is_list
