"""The estimate with one thing changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from priorshift.arrays import Floats
from priorshift.plots.display import (
    BLUE,
    GREY,
    ORANGE,
    Display,
    band,
    bars_size,
    expect,
    label,
    legend_above,
    number,
    shown,
)

if TYPE_CHECKING:
    from priorshift.diagnosis.diagnosis import Diagnosis

_LETTERS = 36  # of what was changed, which names a column
_ROWS = re.compile(r"without the (\d+) most influential (\w+ rows)")


@dataclass(eq=False, repr=False)
class VariantsDisplay(Display):
    """The estimate as it would be had something been chosen otherwise, or left out.

    Attributes
    ----------
    names : tuple of str
        What was changed.
    values, low, high : ndarray
        The estimate then, and its interval; NaN where there is none.
    clear : tuple of bool
        Whether it differs by more than chance.
    interval : tuple of two float
        Of the estimate with nothing changed.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.plots import VariantsDisplay
    >>> ends = np.array([0.5, 0.3]), np.array([0.7, 0.45])
    >>> names = "linear score", "without age"
    >>> display = VariantsDisplay(names, np.array([0.6, 0.4]), *ends, (False, True), (0.5, 0.7)).plot()
    >>> print(display.description)
    The estimate with one thing changed lies between 0.400 and 0.600 in 2 variants; its interval is 0.500 to 0.700.
    More than chance: without age.
    """

    names: tuple[str, ...]
    values: Floats
    low: Floats
    high: Floats
    clear: tuple[bool, ...]
    interval: tuple[float, float]
    title: ClassVar[str] = "What if one thing had been chosen otherwise"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> VariantsDisplay:
        """Take the numbers of a diagnosis.

        Parameters
        ----------
        diagnosis : Diagnosis
            What is drawn.

        Returns
        -------
        VariantsDisplay
        """
        expect(diagnosis, "sensitivity", "a diagnosis", "diagnose")
        found = diagnosis.sensitivity
        made = [v for kind in (found.scores, found.rows, found.bandwidths, found.columns) for v in kind]
        value, low, high = (np.array([getattr(v, name) for v in made]) for name in ("value", "low", "high"))
        clear = tuple(v.is_clear for v in made)
        return cls(tuple(v.name for v in made), value, low, high, clear, (found.conclusion.low, found.conclusion.high))

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        known = self.values[np.isfinite(self.values)]
        if not len(known):
            return "There is no variant of the estimate to compare it with."
        width = self.interval[1] - self.interval[0]
        least, most, low, high = (number(one, width) for one in (known.min(), known.max(), *self.interval))
        clear = [shown(name, _LETTERS) for name, is_clear in zip(self.names, self.clear, strict=True) if is_clear]
        return (
            f"The estimate with one thing changed lies between {least} and {most} in {len(known)} "
            f"variants; its interval is {low} to {high}. More than chance: {', '.join(clear) or 'none'}."
        )

    @property
    def size(self) -> tuple[float, float]:  # numpydoc ignore=RT01
        """Width and height in inches that suit it."""
        return bars_size(len(self.names), 1.4)

    def draw(self, ax: Any) -> None:
        """Draw it on Axes, and remember nothing.

        Parameters
        ----------
        ax : matplotlib Axes
            Where.
        """
        at, clear = np.arange(len(self.names))[::-1], np.array(self.clear, dtype=bool)
        ax.axvspan(*self.interval, **band(BLUE), label="interval of the estimate")
        ax.hlines(at, self.low, self.high, color=GREY, linewidth=1.5)
        ax.plot(self.values[~clear], at[~clear], "o", color=BLUE, markersize=5, label="with one thing changed")
        if clear.any():
            ax.plot(self.values[clear], at[clear], "D", color=ORANGE, markersize=5, label="more than chance")
        ax.set_yticks(at, [label(_drawn(name), _LETTERS) for name in self.names], fontsize="small")
        ax.set_xlabel("target prior")
        legend_above(ax, 1)


def _drawn(name: str) -> str:
    """What was changed, short enough to stand beside a picture without being cut."""
    of_rows = _ROWS.fullmatch(name)
    return f"without {of_rows[1]} {of_rows[2]}" if of_rows else name
