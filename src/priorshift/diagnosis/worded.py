"""What parts of a diagnosis have in common where they are printed: no line is longer than a page is wide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from textwrap import fill

_WIDTH = 100


class Worded(ABC):
    """A part that is told in words, and prints as a page."""

    @property
    @abstractmethod
    def words(self) -> str:  # numpydoc ignore=RT01
        """What it says, a line for each sentence or point, however long."""

    def __str__(self) -> str:
        return wrapped(self.words)


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
    >>> from priorshift.diagnosis.worded import wrapped
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
