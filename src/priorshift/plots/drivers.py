"""The columns that tell the positives from the population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from priorshift.numerals import percent
from priorshift.plots.display import BLUE, GREY, Display, bars_size, expect, label, legend_above, shown

if TYPE_CHECKING:
    from priorshift.diagnosis.diagnosis import Diagnosis

_COLUMNS = 12  # drawn of many
_SAID = 5  # in words


@dataclass(eq=False, repr=False)
class DriversDisplay(Display):
    """The columns that tell positives from the population, the most important first.

    Attributes
    ----------
    names : tuple of str
        Columns, with the level of a category in brackets.
    importance : tuple of float
        Share of what the score rests on, 0 to 1.
    difference : tuple of float
        Mean of the positives less that of the population, in the population's standard deviations.

    Examples
    --------
    >>> from priorshift.plots import DriversDisplay
    >>> display = DriversDisplay(("age", "region (north)"), (0.7, 0.2), (1.1, -0.4)).plot()
    >>> print(display.description)
    What the score rests on: age 70% (higher among positives, by 1.10 standard deviations), region (north) 20% (lower,
    by 0.40).
    """

    names: tuple[str, ...]
    importance: tuple[float, ...]
    difference: tuple[float, ...]
    title: ClassVar[str] = "What tells the positives apart"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> DriversDisplay:
        """Take the numbers of a diagnosis.

        Parameters
        ----------
        diagnosis : Diagnosis
            What is drawn; of many columns the most important.

        Returns
        -------
        DriversDisplay
        """
        expect(diagnosis, "drivers", "a diagnosis", "diagnose")
        drivers = diagnosis.drivers[:_COLUMNS]
        names = tuple(d.name if d.level is None else f"{d.name} ({d.level})" for d in drivers)
        return cls(names, tuple(d.importance for d in drivers), tuple(d.difference for d in drivers))

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        if not self.names:
            return "No column tells the positives from the population."
        said: list[str] = []
        for name, share, by in list(zip(self.names, self.importance, self.difference, strict=True))[:_SAID]:
            unit = "" if said else " standard deviations"
            where = ("higher" if by > 0 else "lower") + ("" if said else " among positives")
            said.append(f"{shown(name)} {percent(share)} ({where}, by {abs(by):.2f}{unit})")
        more = f" and {len(self.names) - _SAID} more" if len(self.names) > _SAID else ""
        return f"What the score rests on: {', '.join(said)}{more}."

    @property
    def size(self) -> tuple[float, float]:  # numpydoc ignore=RT01
        """Width and height in inches that suit it."""
        return bars_size(len(self.names), 1.2)

    def draw(self, ax: Any) -> None:
        """Draw it on Axes, and remember nothing.

        Parameters
        ----------
        ax : matplotlib Axes
            Where.
        """
        at, higher = np.arange(len(self.names))[::-1], np.array(self.difference) > 0
        importance = 100 * np.array(self.importance)
        for those, colour, hatch, said in (
            (higher, BLUE, None, "higher among positives"),
            (~higher, GREY, "////", "lower among positives"),
        ):
            if those.any():
                ax.barh(at[those], importance[those], color=colour, hatch=hatch, edgecolor="black", linewidth=0.6,
                        label=said)  # fmt: skip
        ax.set_yticks(at, [label(name) for name in self.names])
        ax.set_xlim(0)
        ax.set_xlabel("share of the score, in %")
        if self.names:
            legend_above(ax, 1)
