"""The columns that tell the positives from the population.

The columns that a change of the prior does not explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from priorshift.formatting import p_words, percent, written
from priorshift.plots.display import BLUE, GREY, ORANGE, Display, bars_size, expect, label, legend_above, shown

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


if TYPE_CHECKING:
    from priorshift.diagnosis.diagnosis import Diagnosis

_COLUMNS = 12  # drawn of many
_NOT_SHOWN = 3  # in words
_LEVEL = 0.05


@dataclass(eq=False, repr=False)
class LabelShiftDisplay(Display):
    """How far the mean of each column has moved beyond what a change of the prior explains.

    Attributes
    ----------
    names : tuple of str
        Columns, those that stand out most first.
    moved : tuple of float
        By how much, in standard deviations.
    stands_out : tuple of bool
        Whether that is more than chance.
    p_value : float
        Of label shift; NaN where it could not be tested.

    Examples
    --------
    >>> from priorshift.plots import LabelShiftDisplay
    >>> display = LabelShiftDisplay(("region", "age"), (0.6, -0.1), (True, False), 0.002).plot()
    >>> print(display.description)
    Moves of column means that a change of the prior does not explain, in standard deviations: region +0.60, age −0.10.
    More than chance: region. Label shift has p = 0.002.
    """

    names: tuple[str, ...]
    moved: tuple[float, ...]
    stands_out: tuple[bool, ...]
    p_value: float
    title: ClassVar[str] = "What a change of the share does not explain"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> LabelShiftDisplay:
        """Take the numbers of a diagnosis.

        Parameters
        ----------
        diagnosis : Diagnosis
            What is drawn; of many columns those that stand out most.

        Returns
        -------
        LabelShiftDisplay
        """
        expect(diagnosis, "label_shift_test", "a diagnosis", "diagnose")
        test = diagnosis.label_shift_test
        columns = test.columns[:_COLUMNS]
        moved = tuple(column.moved for column in columns)
        return cls(tuple(c.name for c in columns), moved, tuple(c.p_value < _LEVEL for c in columns), test.p_value)

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        said = [f"{shown(name)} {written(moved, 2, '+')}" for name, moved in zip(self.names, self.moved, strict=True)]
        more = f" and {len(said) - _NOT_SHOWN} more" if len(said) > _NOT_SHOWN else ""
        out = [shown(name) for name, is_out in zip(self.names, self.stands_out, strict=True) if is_out]
        tested = f"Label shift has {p_words(self.p_value)}." if np.isfinite(self.p_value) else "It could not be tested."
        return (
            "Moves of column means that a change of the prior does not explain, in standard deviations: "
            f"{', '.join(said[:_NOT_SHOWN]) or 'none'}{more}. More than chance: {', '.join(out) or 'none'}. {tested}"
        )

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
        at = np.arange(len(self.names))
        bars = ax.barh(at, self.moved[::-1], color=[ORANGE if out else GREY for out in self.stands_out[::-1]])
        for bar, out in zip(bars, self.stands_out[::-1], strict=True):
            bar.set_hatch("////" if out else None)
            bar.set_edgecolor("black" if out else GREY)
        ax.axvline(0.0, color="black", linewidth=1)
        ax.set_yticks(at, [label(name) for name in self.names[::-1]])
        ax.set_xlabel("move in standard deviations")
        p = f"label shift: {p_words(self.p_value)}" if np.isfinite(self.p_value) else "label shift: not tested"
        more = "; hatched: more than chance" if any(self.stands_out) else ""
        ax.set_title(f"{p}{more}", fontsize="small", loc="left")
