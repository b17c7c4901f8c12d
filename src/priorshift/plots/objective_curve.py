"""TCPU's objective, which is lowest at the estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.plots.display import BLUE, ORANGE, Display, band, expect, legend_above, number
from priorshift.result import Interval, PriorEstimate


@dataclass(eq=False, repr=False)
class ObjectiveDisplay(Display):
    """TCPU's objective above its minimum, L(γ) − min L, with the estimate and its interval.

    Attributes
    ----------
    gamma, excess : ndarray
        Target priors, and the objective there less its minimum.
    value : float
        The estimate.
    interval : Interval or None
        Its interval.
    truth : float or None
        The true prior, where it is known.

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift.plots import ObjectiveDisplay
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, random_state=0)
    >>> estimate = ps.TCPU(0.2).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    >>> display = ObjectiveDisplay.from_estimate(estimate, truth=0.6).plot()
    >>> print(display.description)
    The objective of TCPU is lowest at a target prior of 0.515; its 95% interval is 0.421 to 0.618. The truth is 0.600.
    """

    gamma: Floats
    excess: Floats
    value: float
    interval: Interval | None
    truth: float | None = None
    title: ClassVar[str] = "Which target prior fits best"

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate, *, truth: float | None = None) -> ObjectiveDisplay:
        """Take the numbers of an estimate.

        Parameters
        ----------
        estimate : PriorEstimate
            By TCPU.
        truth : float or None
            The true prior, where it is known.

        Returns
        -------
        ObjectiveDisplay
        """
        expect(estimate, "evidence", "an estimate", "estimate_prior")
        if np.isfinite(estimate.raw) and not has_objective(estimate):
            raise InputError(
                f"{estimate.method} has no objective to draw; plots.mixture, plots.level_sets and plots.distance_curve "
                "draw other estimators."
            )
        if np.isnan(estimate.raw):
            raise InputError("there is no estimate to draw: the separation is not positive; see estimate.separation.")
        gamma = np.linspace(min(0.0, estimate.raw), max(1.0, estimate.raw), 401)
        return cls(gamma, estimate.excess(gamma), estimate.value, estimate.interval, truth)

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        words = f"The objective of TCPU is lowest at a target prior of {self._said[0]}"
        if self.interval is not None:
            words += f"; its {100 * self.interval.confidence:g}% interval is {self._said[1]}"
        return f"{words}." + ("" if self.truth is None else f" The truth is {self.truth:.3f}.")

    @property
    def _said(self) -> tuple[str, str]:
        """The estimate and the ends of its interval."""
        if self.interval is None:
            return number(self.value), ""
        value, low, high = (number(n, self.interval.width) for n in (self.value, self.interval.low, self.interval.high))
        return value, f"{low} to {high}"

    def draw(self, ax: Any) -> None:
        """Draw it on Axes, and remember nothing.

        Parameters
        ----------
        ax : matplotlib Axes
            Where.
        """
        ax.plot(self.gamma, self.excess, color="black", linewidth=1.5)
        said, ends = f"estimate {self._said[0]}", self._said[1]
        if self.interval is not None:
            said += f", {100 * self.interval.confidence:g}% interval {ends}"
            ax.axvspan(self.interval.low, self.interval.high, **band(BLUE))
        ax.axvline(self.value, color=BLUE, linewidth=1.5, label=said)
        if self.truth is not None:
            ax.axvline(self.truth, color=ORANGE, linewidth=1.5, linestyle="--", label=f"truth {self.truth:.3f}")
        ax.set_xlim(self.gamma[0], self.gamma[-1])
        ax.set_ylim(0, float(self.excess.max()) * 1.05 or 1.0)
        ax.set_xlabel("target prior γ")
        ax.set_ylabel("objective above its minimum")
        legend_above(ax, 1)


def has_objective(estimate: PriorEstimate) -> bool:  # numpydoc ignore=PR01,RT01
    """Whether an estimate is the minimum of one."""
    return bool(np.isfinite([estimate.raw, estimate.separation]).all() and estimate.evidence is None)
