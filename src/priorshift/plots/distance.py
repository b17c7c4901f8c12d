"""KM's distance to the hull of all rows, and its slope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.km import KM2
from priorshift.plots.display import BLUE, GREY, ORANGE, Display, expect
from priorshift.result import PriorEstimate


@dataclass(eq=False, repr=False)
class DistanceDisplay(Display):
    """KM's distance d(λ) against the prior 1 − 1/λ, with its slope, the thresholds and the estimate.

    Attributes
    ----------
    prior, distance, slope : ndarray
        Priors, the distance to the hull there, and its slope.
    thresholds : dict of str to float
        The slope at which each rule reads off its prior.
    rule : str
        The rule in use.
    value : float
        Its prior.

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift.plots import DistanceDisplay
    >>> s = ps.simulate.gaussian(0.3, 0.6, n_source=150, n_target=10, random_state=0)
    >>> display = DistanceDisplay.from_estimator(ps.KM2().fit(s.X, s.y), prior=[0.1, 0.3, 0.5]).plot()
    >>> display.prior.round(1), display.rule
    (array([0.1, 0.3, 0.5]), 'KM2')
    """

    prior: Floats
    distance: Floats
    slope: Floats
    thresholds: dict[str, float]
    rule: str
    value: float
    title: ClassVar[str] = "How far positives can be taken out"

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate) -> DistanceDisplay:
        """Compute the curve of an estimate.

        Parameters
        ----------
        estimate : PriorEstimate
            By KM2-LS.

        Returns
        -------
        DistanceDisplay
        """
        expect(estimate, "evidence", "an estimate", "estimate_prior")
        if not isinstance(estimate.evidence, KM2):
            raise InputError(f"an estimate by {estimate.method} has no distance curve to draw; pass one by KM2LS.")
        return cls.from_estimator(estimate.evidence)

    @classmethod
    def from_estimator(cls, km: KM2, *, prior: ArrayLike | None = None) -> DistanceDisplay:
        """Compute the curve of a fitted estimator.

        Parameters
        ----------
        km : KM1 or KM2
            Fitted.
        prior : array-like or None
            Priors to draw the curve at; around the estimate by default.

        Returns
        -------
        DistanceDisplay
        """
        curve = km.curve(prior)
        return cls(curve.prior, curve.distance, curve.slope, dict(curve.thresholds), km.rule, km.prior_)

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        slopes = ", ".join(f"{slope:.3g} by {rule}" for rule, slope in self.thresholds.items())
        return (
            f"Distance of what is left of the sample to the hull of all rows, and its slope, for priors from "
            f"{self.prior[0]:.2f} to {self.prior[-1]:.2f}. The prior is read off where the slope passes a threshold "
            f"({slopes}): {self.value:.3f} by {self.rule}."
        )

    def draw(self, ax: Any) -> None:
        """Draw it on Axes, and remember nothing; the slope has an axis on the right.

        Parameters
        ----------
        ax : matplotlib Axes
            Where.
        """
        ax.plot(self.prior, self.distance, color="black", linewidth=1.5, label="distance")
        ax.set_xlabel("prior 1 − 1/λ")
        ax.set_ylabel("distance d(λ) to the hull")
        right = ax.twinx()
        right.plot(self.prior, self.slope, color=GREY, linewidth=1.5, linestyle="-.", label="slope d′(λ)")
        for rule, slope in self.thresholds.items():
            mine = rule == self.rule
            colour, dash = (BLUE, "-") if mine else (ORANGE, "--")
            right.axhline(slope, color=colour, linewidth=1, linestyle=dash, label=f"threshold of {rule}")
        right.set_ylabel("slope")
        right.set_ylim(0)
        ax.set_ylim(0)
        ax.axvline(self.value, color=BLUE, linewidth=1.5, linestyle=":", label=f"{self.rule}: {self.value:.3f}")
        lines = [*ax.get_lines(), *right.get_lines()]
        ax.legend(lines, [line.get_label() for line in lines], loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2,
                  frameon=False, fontsize="small")  # fmt: skip
