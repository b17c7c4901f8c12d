"""How wide the interval would be with more rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from priorshift.arrays import Floats
from priorshift.plots.display import BLUE, GREY, ORANGE, Display, expect, legend_above, say_instead

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
