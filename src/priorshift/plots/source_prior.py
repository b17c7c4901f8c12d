"""What is known of the source prior, and by whom.

The target prior over assumed source priors."""

from __future__ import annotations

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
    legend_above,
    number,
    say_instead,
)

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


if TYPE_CHECKING:
    from priorshift.diagnosis.diagnosis import Diagnosis


@dataclass(eq=False, repr=False)
class SensitivityDisplay(Display):
    """The target prior over assumed source priors, with its interval.

    Attributes
    ----------
    source_priors, values, low, high : ndarray
        Assumed source priors, the target prior that follows, and the ends of its interval.
    in_use : float
        The source prior that the estimate uses.
    threshold : float or None
        That the target prior is compared with; None is the source prior.
    confidence : float
        Of the interval.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.plots import SensitivityDisplay
    >>> priors = np.linspace(0, 1, 11)
    >>> values = 1 - 0.5 * (1 - priors)
    >>> display = SensitivityDisplay(priors, values, values - 0.05, values + 0.05, 0.2, None, 0.95).plot()
    >>> print(display.description)
    The target prior rises with the source prior that is assumed: 0.500 at 0, 0.600 at 0.2 (in use), 1.000 at 1.
    """

    source_priors: Floats
    values: Floats
    low: Floats
    high: Floats
    in_use: float
    threshold: float | None
    confidence: float
    title: ClassVar[str] = "What if the source prior is another"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> SensitivityDisplay:
        """Take the numbers of a diagnosis.

        Parameters
        ----------
        diagnosis : Diagnosis
            What is drawn.

        Returns
        -------
        SensitivityDisplay
        """
        expect(diagnosis, "sensitivity", "a diagnosis", "diagnose")
        found = diagnosis.sensitivity
        names = ("source_prior", "value", "low", "high")
        priors, values, low, high = (np.array([getattr(p, name) for p in found.source_priors]) for name in names)
        asked = found.conclusion
        return cls(priors, values, low, high, asked.source_prior, asked.threshold, asked.confidence)

    @property
    def is_empty(self) -> bool:  # numpydoc ignore=RT01
        """Whether there is no target prior at any source prior."""
        return not np.isfinite(self.values).any()

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        if self.is_empty:
            return "No target prior can be told at any source prior."
        middle = float(np.interp(self.in_use, self.source_priors, self.values))
        (first, last), (low, high) = self.source_priors[[0, -1]], self.values[[0, -1]]
        is_up, is_down = low <= middle <= high, low >= middle >= high
        turn = "does not change" if is_up and is_down else "rises" if is_up else "falls" if is_down else "changes"
        words = (
            f"The target prior {turn} with the source prior that is assumed: {number(low, middle)} at {first:.2g}, "
            f"{number(middle)} at {self.in_use:.3g} (in use), {number(high, middle)} at {last:.2g}."
        )
        return words if self.threshold is None else f"{words} It is compared with {self.threshold:g}."

    def draw(self, ax: Any) -> None:
        """Draw it on Axes, and remember nothing.

        Parameters
        ----------
        ax : matplotlib Axes
            Where.
        """
        if self.is_empty:
            say_instead(ax, self.description)
        said = f"{100 * self.confidence:g}% interval"
        ax.fill_between(self.source_priors, self.low, self.high, **band(BLUE), label=said)
        ax.plot(self.source_priors, self.values, color=BLUE, linewidth=1.5, label="target prior")
        ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1, label="no shift")
        ax.axvline(self.in_use, color=ORANGE, linestyle="-.", linewidth=1.5, label=f"in use: {self.in_use:.3g}")
        if self.threshold is not None:
            said = f"threshold: {self.threshold:g}"
            ax.axhline(self.threshold, color="black", linestyle=":", linewidth=1.5, label=said)
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        ax.set_xlabel("assumed source prior")
        ax.set_ylabel("target prior")
        legend_above(ax, 3)
