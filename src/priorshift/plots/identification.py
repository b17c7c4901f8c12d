"""What is known of the source prior, and by whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from priorshift.plots.display import BLUE, ORANGE, Display, band, bars_size, expect, legend_above, number

if TYPE_CHECKING:
    from priorshift.diagnosis.diagnosis import Diagnosis

_NAMES = {"largest": "largest possible"}


@dataclass(eq=False, repr=False)
class IdentificationDisplay(Display):
    """What is known of the source prior: what the tables leave open, what estimators say, what was given.

    Attributes
    ----------
    told : tuple of two float
        What the tables alone tell, with 95%.
    estimators : dict of str to float
        What estimators say of the same rows.
    source_prior : float or None
        That was given; None where none was.
    given : tuple of two float or None
        The range of it.

    Examples
    --------
    >>> from priorshift.plots import IdentificationDisplay
    >>> display = IdentificationDisplay((0.1, 0.3), {"KM2": 0.18}, 0.2, (0.15, 0.25)).plot()
    >>> display.description
    'The tables alone tell a source prior of 0.100 to 0.300. KM2 says 0.180. Given is 0.2 (0.15 to 0.25).'
    """

    told: tuple[float, float]
    estimators: dict[str, float]
    source_prior: float | None
    given: tuple[float, float] | None
    title: ClassVar[str] = "What is known of the source prior"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> IdentificationDisplay:
        """Take the numbers of a diagnosis.

        Parameters
        ----------
        diagnosis : Diagnosis
            What is drawn.

        Returns
        -------
        IdentificationDisplay
        """
        expect(diagnosis, "identification", "a diagnosis", "diagnose")
        found = diagnosis.identification
        given = (found.source_prior, found.source_prior_range) if found.given else (None, None)
        return cls(found.told_range, dict(found.estimators), *given)

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        low, high = (number(end, self.told[1] - self.told[0]) for end in self.told)
        words = [f"The tables alone tell a source prior of {low} to {high}."]
        known = {_NAMES.get(name, name): value for name, value in self.estimators.items() if np.isfinite(value)}
        words += [", ".join(f"{name} says {value:.3f}" for name, value in known.items()) + "."] if known else []
        if self.source_prior is not None and self.given is not None:
            least, most = self.given
            ends = f" ({least:.3g} to {most:.3g})" if least < most else ""
            words.append(f"Given is {self.source_prior:.3g}{ends}.")
        return " ".join(words)

    @property
    def size(self) -> tuple[float, float]:  # numpydoc ignore=RT01
        """Width and height in inches that suit it."""
        return bars_size(1 + len(self.estimators), 1.2)

    def draw(self, ax: Any) -> None:
        """Draw it on Axes, and remember nothing.

        Parameters
        ----------
        ax : matplotlib Axes
            Where.
        """
        names = ["the tables", *(_NAMES.get(name, name) for name in self.estimators)]
        at = np.arange(len(names))[::-1]
        ax.hlines(at[0], *self.told, color=BLUE, linewidth=3, label="95% of what the tables tell")
        ax.plot(list(self.estimators.values()), at[1:], "o", color=BLUE)
        if self.source_prior is not None and self.given is not None:
            ax.axvspan(*self.given, **band(ORANGE))
            said = f"given: {self.source_prior:.3g}"
            ax.axvline(self.source_prior, color=ORANGE, linestyle="--", linewidth=1.5, label=said)
        ax.set_yticks(at, names)
        ax.set_xlim(0, 1)
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.set_xlabel("source prior")
        legend_above(ax, 1)
