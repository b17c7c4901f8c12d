"""The columns that a change of the prior does not explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from priorshift.numerals import p_words, written
from priorshift.plots.display import GREY, ORANGE, Display, bars_size, expect, label, shown

if TYPE_CHECKING:
    from priorshift.diagnosis.diagnosis import Diagnosis

_COLUMNS = 12  # drawn of many
_SAID = 3  # in words
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
        more = f" and {len(said) - _SAID} more" if len(said) > _SAID else ""
        out = [shown(name) for name, is_out in zip(self.names, self.stands_out, strict=True) if is_out]
        tested = f"Label shift has {p_words(self.p_value)}." if np.isfinite(self.p_value) else "It could not be tested."
        return (
            "Moves of column means that a change of the prior does not explain, in standard deviations: "
            f"{', '.join(said[:_SAID]) or 'none'}{more}. More than chance: {', '.join(out) or 'none'}. {tested}"
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
