"""KM's distance to the hull of all rows, and its slope.

TCPU's objective, which is lowest at the estimate.

DRPU's ratio of shares, whose lowest point is the prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.methods.drpu import DRPU
from priorshift.plots.display import BLUE, GREY, ORANGE, Display, band, expect, legend_above, number
from priorshift.results import Interval, PriorEstimate
from priorshift.scores.level_sets import ShareCurve
from priorshift.scores.scored_source import LevelSetEvidence
from priorshift.source_prior.km import KM2


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


@dataclass(eq=False, repr=False)
class RatioOfShares:
    """The ratio of shares of one sample, over the share of positives.

    Attributes
    ----------
    share, ratio : ndarray
        Of positives above each threshold, and the sample's share over it.
    at, prior : float
        Its lowest trusted point.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.plots import RatioOfShares
    >>> from priorshift.scores.level_sets import SampleScores, ShareCurve
    >>> positive, population = np.array([2.0, 3.0]), np.array([0.0, 1.0, 2.5, 4.0])
    >>> curve = ShareCurve.from_scores(SampleScores.from_rows(positive), SampleScores.from_rows(population))
    >>> RatioOfShares.of(curve, least=0.4).prior
    0.5
    """

    share: Floats
    ratio: Floats
    at: float
    prior: float

    @classmethod
    def of(cls, curve: ShareCurve, least: float) -> RatioOfShares:
        """Read off the prior where more than `least` of the positives lie above.

        Parameters
        ----------
        curve : ShareCurve
            Shares above each threshold.
        least : float
            Share of positives.

        Returns
        -------
        RatioOfShares
        """
        best = curve.smallest(least)
        return cls(curve.positive, curve.population / curve.positive, best.positive, best.ratio)


@dataclass(eq=False, repr=False)
class LevelSetsDisplay(Display):
    """DRPU's ratio of shares against the share of positives, for the source population and a target.

    Each prior is the lowest point of its curve on the right of the dotted line, where enough positives lie above the
    threshold to trust it.

    Attributes
    ----------
    source : RatioOfShares
        Of the population.
    target : RatioOfShares or None
        Of a target.
    least_share : float
        Of positives above a threshold that is trusted.

    Examples
    --------
    >>> import priorshift as ps
    >>> from sklearn.linear_model import LogisticRegression
    >>> from priorshift.plots import LevelSetsDisplay
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=600, n_target=300, random_state=0)
    >>> drpu = ps.DRPU(model=LogisticRegression(), random_state=0).fit(s.X, s.y, shared=s.ids)
    >>> display = LevelSetsDisplay.from_estimator(drpu).plot()
    >>> display.source.prior == drpu.source_prior_
    True
    """

    source: RatioOfShares
    target: RatioOfShares | None
    least_share: float
    title: ClassVar[str] = "Where positives are purest"

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate) -> LevelSetsDisplay:
        """Take the numbers of an estimate.

        Parameters
        ----------
        estimate : PriorEstimate
            By DRPU.

        Returns
        -------
        LevelSetsDisplay
        """
        expect(estimate, "evidence", "an estimate", "estimate_prior")
        seen = estimate.evidence
        if not isinstance(seen, LevelSetEvidence):
            raise InputError(f"an estimate by {estimate.method} has no level sets to draw; pass one by DRPU.")
        least = seen.least_share
        return cls(RatioOfShares.of(seen.source, least), RatioOfShares.of(seen.target, least), least)

    @classmethod
    def from_estimator(cls, estimator: DRPU, target: Any = None) -> LevelSetsDisplay:
        """Take the numbers of a fitted estimator.

        Parameters
        ----------
        estimator : DRPU
            Fitted.
        target : array-like, data frame, PriorEstimate or None
            Rows of a target, or what the estimator said of them; None draws the source alone.

        Returns
        -------
        LevelSetsDisplay
        """
        if isinstance(target, PriorEstimate):
            return cls.from_estimate(target)
        source = estimator.share_curve()
        least = estimator.least_share_
        other = None if target is None else RatioOfShares.of(estimator.share_curve(target), least)
        return cls(RatioOfShares.of(source, least), other, least)

    @property
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""
        words = (
            "Share of a sample over the share of positives above each threshold; its lowest point is the prior: "
            f"{self.source.prior:.3f} of the source"
        )
        if self.target is not None:
            words += f", {self.target.prior:.3f} of the target"
        return f"{words}. Thresholds with {self.least_share:.2f} of the positives above them are trusted."

    def draw(self, ax: Any) -> None:
        """Draw it on Axes, and remember nothing.

        Parameters
        ----------
        ax : matplotlib Axes
            Where.
        """
        for name, colour, style, curve in (("source", GREY, "s--", self.source), ("target", BLUE, "o-", self.target)):
            if curve is not None:
                ax.plot(curve.share, curve.ratio, style[1:], color=colour, linewidth=1.5)
                ax.plot(curve.at, curve.prior, style, color=colour, label=f"{name} prior {curve.prior:.3f}")
        trusted = f"trusted above {self.least_share:.2f}"
        ax.axvline(self.least_share, color="black", linestyle=":", linewidth=1, label=trusted)
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1.05)
        ax.set_xlabel("share of positives above the threshold")
        ax.set_ylabel("share of the sample over it")
        legend_above(ax, 2)
