"""DRPU's ratio of shares, whose lowest point is the prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from priorshift.arrays import Floats
from priorshift.drpu import DRPU
from priorshift.errors import InputError
from priorshift.plots.display import BLUE, GREY, Display, expect, legend_above
from priorshift.result import PriorEstimate
from priorshift.scores.evidence import LevelSetEvidence
from priorshift.scores.level_sets import ShareCurve


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
    >>> curve = ShareCurve.of(SampleScores.of(positive), SampleScores.of(population))
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
