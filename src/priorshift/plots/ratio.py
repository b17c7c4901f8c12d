"""How far the ratio of negatives is from 1, where nothing has changed.

How wide the interval would be with more rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from priorshift.arrays import Floats
from priorshift.plots.display import BLUE, GREY, ORANGE, WIDTH, Display, expect, legend_above, number, say_instead
from priorshift.results import Interval

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


if TYPE_CHECKING:
    from priorshift.diagnosis.diagnosis import Diagnosis

_FACTORS = (0.5, 1.0, 2.0, 4.0, 8.0)
_STYLES = {"positive": ("o-", ORANGE), "unlabeled": ("s:", GREY), "target": ("^-.", BLUE)}
_NAMES = {"positive": "positives alone", "unlabeled": "unlabelled alone", "target": "target alone"}


@dataclass(eq=False, repr=False)
class PlanningDisplay(Display):
    """How wide the interval would be with more rows of each sample, and of all.

    Attributes
    ----------
    factors : ndarray
        Times the rows that there are.
    widths : dict of str to ndarray
        Of the interval, where "positive", "unlabeled" or "target" alone has so many rows; NaN where nothing can be
        planned.
    together : ndarray
        Where all three have.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.plots import PlanningDisplay
    >>> factors = np.array([0.5, 1.0, 2.0])
    >>> alone = {name: 0.1 / factors**0.1 for name in ("positive", "unlabeled", "target")}
    >>> display = PlanningDisplay(factors, alone, 0.1 / factors**0.5).plot()
    >>> print(display.description)
    The interval is expected to be 0.1 wide. With 2 times the rows it would be 0.0933 wide for positives alone, 0.0933
    for unlabelled alone, 0.0933 for target alone, and 0.0707 for all three.
    """

    factors: Floats
    widths: dict[str, Floats]
    together: Floats
    title: ClassVar[str] = "What more rows would buy"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> PlanningDisplay:
        """Take the numbers of a diagnosis.

        Parameters
        ----------
        diagnosis : Diagnosis
            What is drawn.

        Returns
        -------
        PlanningDisplay
        """
        expect(diagnosis, "planning", "a diagnosis", "diagnose")
        plan = diagnosis.planning

        def _width(factor: float, names: tuple[str, ...]) -> float:
            return plan.predict(**{name: max(2, round(factor * plan.sizes[name])) for name in names})

        widths = {name: np.array([_width(k, (name,)) for k in _FACTORS]) for name in _STYLES}
        return cls(np.array(_FACTORS), widths, np.array([_width(k, tuple(_STYLES)) for k in _FACTORS]))

    @property
    def is_empty(self) -> bool:  # numpydoc ignore=RT01
        """Whether nothing can be planned."""
        return not np.isfinite(self.together).all()

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        if self.is_empty:
            return "Nothing can be planned from these tables."
        now = float(np.interp(1.0, self.factors, self.together))
        alone = [
            f"{self.widths[name][-1]:.3g}{' wide' * (k == 0)} for {said}"
            for k, (name, said) in enumerate(_NAMES.items())
        ]
        return (
            f"The interval is expected to be {now:.3g} wide. With {self.factors[-1]:g} times the rows it would be "
            f"{', '.join(alone)}, and {self.together[-1]:.3g} for all three."
        )

    def draw(self, ax: Any) -> None:
        """Draw it on Axes, and remember nothing.

        Parameters
        ----------
        ax : matplotlib Axes
            Where.
        """
        if self.is_empty:
            say_instead(ax, self.description)
        for name, (style, colour) in _STYLES.items():
            ax.plot(self.factors, self.widths[name], style, color=colour, markersize=4, label=_NAMES[name])
        ax.plot(self.factors, self.together, "k--", label="all three")
        ax.set_xscale("log", base=2)
        ax.set_xticks(self.factors, [f"× {k:g}" for k in self.factors])
        ax.set_ylim(0)
        ax.set_xlabel("rows")
        ax.set_ylabel("width of the interval")
        legend_above(ax)
