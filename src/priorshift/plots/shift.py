"""How far the ratio of negatives is from 1, where nothing has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from priorshift.plots.display import BLUE, GREY, WIDTH, Display, expect, legend_above, number
from priorshift.result import Interval

if TYPE_CHECKING:
    from priorshift.diagnosis.diagnosis import Diagnosis


@dataclass(eq=False, repr=False)
class ShiftDisplay(Display):
    """The ratio of negatives R with its interval, beside 1, where nothing has changed.

    Attributes
    ----------
    ratio : float
        R̂; NaN where there is none.
    interval : Interval
        Of R; its upper end can be infinite.
    p_value : float
        Of no shift.

    Examples
    --------
    >>> from priorshift import Interval
    >>> from priorshift.plots import ShiftDisplay
    >>> display = ShiftDisplay(0.5, Interval(0.44, 0.57, 0.95, "witness"), 3e-19).plot()
    >>> print(display.description)
    The share of negatives in the target over that in the source is 0.500, 95% interval 0.440 to 0.570; 1 would be no
    shift.
    """

    ratio: float
    interval: Interval
    p_value: float
    title: ClassVar[str] = "Has the share changed"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> ShiftDisplay:
        """Take the numbers of a diagnosis.

        Parameters
        ----------
        diagnosis : Diagnosis
            What is drawn.

        Returns
        -------
        ShiftDisplay
        """
        expect(diagnosis, "shift_test", "a diagnosis", "diagnose")
        test = diagnosis.shift_test
        return cls(test.ratio, test.interval, test.p_value)

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        if not np.isfinite(self.ratio):
            return "The ratio of negatives in target and source cannot be told from these tables."
        ratio, low, high = self._said
        return (
            f"The share of negatives in the target over that in the source is {ratio}, "
            f"{100 * self.interval.confidence:g}% interval {low} to {high}; 1 would be no shift."
        )

    @property
    def _said(self) -> tuple[str, str, str]:
        """The ratio and the ends of its interval."""
        ratio, low, high = (number(n, self.interval.width) for n in (self.ratio, self.interval.low, self.interval.high))
        return ratio, low, high

    @property
    def size(self) -> tuple[float, float]:  # numpydoc ignore=RT01
        """Width and height in inches that suit it."""
        return WIDTH, 1.6

    def draw(self, ax: Any) -> None:
        """Draw it on Axes, and remember nothing.

        Parameters
        ----------
        ax : matplotlib Axes
            Where.
        """
        low, high = self.interval.low, self.interval.high
        right = max(end for end in (low, high, self.ratio, 1.0) if np.isfinite(end)) * 1.15 + 0.05
        ax.axvline(1.0, color=GREY, linestyle="--", linewidth=1.5, label="no shift")
        said = f"{100 * self.interval.confidence:g}% interval"
        ax.hlines(0, low, min(high, right), color=BLUE, linewidth=3, label=said)
        if np.isfinite(self.ratio):
            ax.plot(self.ratio, 0, "o", color=BLUE, label=f"estimate {self._said[0]}")
        ax.set_xlim(min(0.0, 1.15 * self.ratio) if np.isfinite(self.ratio) else 0.0, right)
        ax.set_yticks([])
        ax.set_xlabel("R, share of negatives in target over source")
        legend_above(ax, 3)
