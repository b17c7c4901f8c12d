"""How numbers are written where people read them: on the terminal, on pages, in pictures and in sentences.

A minus is the sign − that axes of pictures have, a percentage has no space before its sign, and a p-value is never said
to be 0.

How a column is left out, as messages say it to those who write Python and to those who type commands.

What parts of a diagnosis have in common where they are printed: no line is longer than a page is wide."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from textwrap import fill

_SMALLEST_P = 1e-4  # said in sentences


def written(value: float, digits: int, sign: str = "") -> str:  # numpydoc ignore=PR01,RT01
    """A number with so many decimals; what rounds to 0 has no minus.

    Examples
    --------
    >>> from priorshift.formatting import written
    >>> written(-0.25, 2), written(0.25, 1, "+"), written(-0.0001, 3)
    ('−0.25', '+0.2', '0.000')
    """
    return f"{value:{sign}z.{digits}f}".replace("-", "−")


def short(value: float, digits: int = 2, sign: str = "") -> str:  # numpydoc ignore=PR01,RT01
    """A number with so many digits.

    Examples
    --------
    >>> from priorshift.formatting import short
    >>> short(-0.2871), short(0.2871, 3, "+"), short(-0.000012)
    ('−0.29', '+0.287', '−1.2e-05')
    """
    text = f"{value:{sign}.{digits}g}"
    return f"−{text[1:]}" if text.startswith("-") else text


def percent(share: float) -> str:  # numpydoc ignore=PR01,RT01
    """A share, as people say it.

    Examples
    --------
    >>> from priorshift.formatting import percent
    >>> percent(0.514), percent(0.0042), percent(0.0)
    ('51%', '0.4%', '0%')
    """
    return f"{100 * share:.1f}%" if 0 < share < 0.0095 else f"{100 * share:.0f}%"


def p_words(p: float, digits: int = 2) -> str:  # numpydoc ignore=PR01,RT01
    """A p-value in a sentence, with its letter.

    Examples
    --------
    >>> from priorshift.formatting import p_words
    >>> p_words(0.0312), p_words(0.00012), p_words(1e-9)
    ('p = 0.031', 'p = 0.00012', 'p < 0.0001')
    """
    return f"p < {_SMALLEST_P:g}" if p < _SMALLEST_P else f"p = {p:.{digits}g}"


def p_cell(p: float, digits: int = 3) -> str:  # numpydoc ignore=PR01,RT01
    """A p-value in a table, with so many decimals.

    Examples
    --------
    >>> from priorshift.formatting import p_cell
    >>> p_cell(0.0312), p_cell(0.0312, 4), p_cell(1e-9), p_cell(float("nan"))
    ('0.031', '0.0312', '< 0.001', 'none')
    """
    smallest = 10.0**-digits
    return "none" if p != p else f"< {smallest:g}" if p < smallest else f"{p:.{digits}f}"


def shell_option(option: str, value: str) -> str:
    """An option and its value as they are typed, whatever the value holds."""
    quoted = shlex.quote(value)
    return f"{option}={quoted}" if value.startswith("-") else f"{option} {quoted}"


def drop_words(name: str) -> str:
    """The argument and the option that leave a column out."""
    return f"(drop=[{name!r}], {shell_option('--drop', name)})"


_WIDTH = 100


class TextReport(ABC):
    """A part that is told in words, and prints as a page."""

    @property
    @abstractmethod
    def text(self) -> str:  # numpydoc ignore=RT01
        """What it says, a line for each sentence or point, however long."""

    def __str__(self) -> str:
        return wrapped(self.text)


def wrapped(text: str, indent: str = "") -> str:
    """Break lines at the width of a page; what follows the first line of a point is indented as its words are.

    Parameters
    ----------
    text : str
        Of one line or more; one that begins with "- " is a point.
    indent : str
        Before every line.

    Returns
    -------
    str

    Examples
    --------
    >>> from priorshift.formatting import wrapped
    >>> print(wrapped("Why?\\n- " + "because " * 12 + "of that", indent="  "))
      Why?
      - because because because because because because because because because because because
        because of that
    """
    lines = []
    for line in text.splitlines():
        hang = indent + ("  " if line.startswith("- ") else "")
        lines.append(
            fill(line, _WIDTH, initial_indent=indent, subsequent_indent=hang, break_long_words=False,
                 break_on_hyphens=False)
        )  # fmt: skip
    return "\n".join(lines)
