"""Pictures of the curve that a method reads its prior from: TCPU's objective, KM's distance, DRPU's ratio of shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.methods.drpu import DRPU
from priorshift.plots.display import BLUE, GREY, ORANGE, Display, check_has, format_prior, interval_label
from priorshift.results import Interval, PriorEstimate
from priorshift.scores.level_sets import ShareCurve
from priorshift.scores.scored_source import LevelSetEvidence
from priorshift.source_prior.km import KM2

Evidence = TypeVar("Evidence")


@dataclass(eq=False, repr=False)
class ObjectiveDisplay(Display):
    """TCPU's objective above its minimum, L(γ) − min L, with the estimate and its interval."""

    gamma: Floats  # target priors
    excess: Floats  # objective above its minimum there
    value: float
    interval: Interval | None
    truth: float | None = None
    title: ClassVar[str] = "Which target prior fits best"

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate, *, truth: float | None = None) -> ObjectiveDisplay:
        """Evaluate TCPU's objective on a grid of target priors; `truth` is the true target prior, if known."""
        check_has(estimate, "evidence", "an estimate", "estimate_prior")
        if np.isnan(estimate.raw):
            raise InputError("There is no estimate to draw: the separation is not positive. See estimate.separation.")
        if not has_objective(estimate):
            raise InputError(f"{estimate.method} has no objective to draw. Use plots.displays_of for every method.")
        gamma = np.linspace(min(0.0, estimate.raw), max(1.0, estimate.raw), 401)
        return cls(gamma, estimate.excess(gamma), estimate.value, estimate.interval, truth)

    def _texts(self) -> tuple[str, str]:
        """Return the estimate and its interval as text, such as "0.59" and "95% interval 0.55 to 0.63", or ""."""
        interval = self.interval
        if interval is None:
            return format_prior(self.value), ""
        low, high = format_prior(interval.low, interval.width), format_prior(interval.high, interval.width)
        return format_prior(self.value, interval.width), f"{interval_label(interval.confidence)} {low} to {high}"

    @property
    def description(self) -> str:
        """Text alternative of the picture: the estimate, where TCPU's objective is lowest, and the truth if known."""
        value, interval = self._texts()
        in_brackets = f" ({interval})" if interval else ""
        text = f"The objective of TCPU is lowest at a target prior of {value}{in_brackets}."
        return text if self.truth is None else f"{text} The truth is {self.truth:.3f}."

    def draw(self, ax: Any) -> None:
        """Draw the objective, the interval as a band, and the estimate and the truth as vertical lines."""
        ax.plot(self.gamma, self.excess, color="black", linewidth=1.5)
        if self.interval is not None:
            ax.axvspan(self.interval.low, self.interval.high, **self.band_style(BLUE))
        value, interval = self._texts()
        label = f"estimate {value}, {interval}" if interval else f"estimate {value}"
        ax.axvline(self.value, color=BLUE, linewidth=1.5, label=label)
        if self.truth is not None:
            ax.axvline(self.truth, color=ORANGE, linewidth=1.5, linestyle="--", label=f"truth {self.truth:.3f}")
        top = 1.05 * float(self.excess.max())
        ax.set(xlim=self.gamma[[0, -1]], ylim=(0, top if top else 1.0))
        ax.set(xlabel="target prior γ", ylabel="objective above its minimum")
        self.legend(ax, 1)


def has_objective(estimate: PriorEstimate) -> bool:
    """Return whether an estimate is the minimum of TCPU's objective.

    Estimates by other methods store evidence, or lack an unrestricted value or a separation.
    """
    return bool(np.isfinite([estimate.raw, estimate.separation]).all() and estimate.evidence is None)


@dataclass(eq=False, repr=False)
class DistanceDisplay(Display):
    """KM's distance d(λ) against the prior 1 − 1/λ, with its slope, the thresholds and the estimate."""

    prior: Floats  # 1 − 1/λ
    distance: Floats  # d(λ), to the hull of all rows
    slope: Floats  # d′(λ)
    thresholds: dict[str, float]  # slope at which each rule reads off its prior
    rule: str  # name of the rule in use
    value: float  # estimate by that rule
    title: ClassVar[str] = "How many positives can be removed"

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate) -> DistanceDisplay:
        """Take the distance curve from an estimate whose source prior is by KM1 or KM2."""
        return cls.from_estimator(evidence_of(estimate, KM2, "distance curve", "KM2LS"))

    @classmethod
    def from_estimator(cls, km: KM2, *, prior: ArrayLike | None = None) -> DistanceDisplay:
        """Compute the distance curve of a fitted KM1 or KM2 at some priors, by default around the estimate."""
        curve = km.curve(prior)
        return cls(curve.prior, curve.distance, curve.slope, dict(curve.thresholds), km.rule, km.prior_)

    @property
    def description(self) -> str:
        """Text alternative of the picture: the range of priors, the thresholds of the slope, and the estimate."""
        slopes = ", ".join(f"{slope:.3g} by {rule}" for rule, slope in self.thresholds.items())
        return (
            f"Distance between the sample without its positives and the hull of all rows, and its slope, for priors "
            f"from {self.prior[0]:.2f} to {self.prior[-1]:.2f}. The estimate is the prior where the slope passes a "
            f"threshold ({slopes}): {self.value:.3f} by {self.rule}."
        )

    def draw(self, ax: Any) -> None:
        """Draw the distance on the left axis, its slope and the thresholds on a second axis, and the estimate."""
        ax.plot(self.prior, self.distance, color="black", linewidth=1.5, label="distance")
        ax.set(xlabel="prior 1 − 1/λ", ylabel="distance d(λ) to the hull")
        slope_ax = ax.twinx()
        slope_ax.plot(self.prior, self.slope, color=GREY, linewidth=1.5, linestyle="-.", label="slope d′(λ)")
        for rule, slope in self.thresholds.items():
            colour, dash = (BLUE, "-") if rule == self.rule else (ORANGE, "--")
            slope_ax.axhline(slope, color=colour, linewidth=1, linestyle=dash, label=f"threshold of {rule}")
        slope_ax.set(ylabel="slope", ylim=(0, None))
        ax.set_ylim(0)
        ax.axvline(self.value, color=BLUE, linewidth=1.5, linestyle=":", label=f"{self.rule}: {self.value:.3f}")
        self.legend(ax, handles=[*ax.get_lines(), *slope_ax.get_lines()])  # one legend for both axes


@dataclass(eq=False, repr=False)
class RatioOfShares:
    """Share of a sample above each threshold, divided by that of the positives, and its lowest trusted point."""

    share: Floats  # of positives above each threshold
    ratio: Floats  # share of the sample over that of the positives
    lowest_share: float  # share of positives at the lowest trusted point
    prior: float  # ratio at that point

    @classmethod
    def from_curve(cls, curve: ShareCurve, least: float) -> RatioOfShares:
        """Read off the prior: the smallest ratio at thresholds that at least the share `least` of positives exceed."""
        lowest = curve.smallest(least)
        return cls(curve.positive, curve.population / curve.positive, lowest.positive, lowest.ratio)


@dataclass(eq=False, repr=False)
class LevelSetsDisplay(Display):
    """DRPU's ratio of shares against the share of positives, for the source population and a target."""

    source: RatioOfShares
    target: RatioOfShares | None
    least_share: float  # of positives above a threshold that is trusted
    title: ClassVar[str] = "Where positives are purest"

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate) -> LevelSetsDisplay:
        """Take the level sets of source and target from an estimate by DRPU."""
        evidence = evidence_of(estimate, LevelSetEvidence, "level sets", "DRPU")
        least = evidence.least_share
        source, target = (RatioOfShares.from_curve(curve, least) for curve in (evidence.source, evidence.target))
        return cls(source, target, least)

    @classmethod
    def from_estimator(cls, estimator: DRPU, target: Any = None) -> LevelSetsDisplay:
        """Compute the curve of the source of a fitted DRPU, and that of `target`: its rows or its estimate, or None."""
        if isinstance(target, PriorEstimate):
            return cls.from_estimate(target)
        source_curve = estimator.share_curve()  # raises NotFittedError, so that it comes first
        least = estimator.least_share_
        target_ratio = None if target is None else RatioOfShares.from_curve(estimator.share_curve(target), least)
        return cls(RatioOfShares.from_curve(source_curve, least), target_ratio, least)

    @property
    def description(self) -> str:
        """Text alternative of the picture: the lowest ratio of source and target, which are their priors."""
        text = (
            "Share of the sample divided by the share of positives above each threshold; its lowest point is the "
            f"prior: {self.source.prior:.3f} in the source"
        )
        if self.target is not None:
            text += f", {self.target.prior:.3f} in the target"
        return f"{text}. Thresholds with at least {self.least_share:.2f} of the positives above them are trusted."

    def draw(self, ax: Any) -> None:
        """Draw the ratio of the source's share above each threshold to that of the positives, and the target's ratio.

        A sample contains its prior times the positives' share, so each ratio is at least the prior, and its lowest
        point estimates it. Ratios of small shares are mostly noise, so they are not trusted.
        """
        samples = [("source", self.source, GREY, "--", "s")]
        if self.target is not None:
            samples.append(("target", self.target, BLUE, "-", "o"))
        for name, curve, colour, line, marker in samples:
            ax.plot(curve.share, curve.ratio, line, color=colour, linewidth=1.5)
            label = f"{name} prior {curve.prior:.3f}"
            ax.plot(curve.lowest_share, curve.prior, marker + line, color=colour, label=label)
        label = f"trusted above {self.least_share:.2f}"
        ax.axvline(self.least_share, color="black", linestyle=":", linewidth=1, label=label)
        ax.set(xlim=(0, 1), ylim=(0, 1.05))
        ax.set(xlabel="share of positives above the threshold", ylabel="share of the sample / share of positives")
        self.legend(ax, 2)


def evidence_of(estimate: PriorEstimate, kind: type[Evidence], content: str, method: str) -> Evidence:
    """Return the evidence of an estimate, from which it is drawn, if it is of a class (`kind`); else raise InputError.

    `content` and `method` say in the message what is missing, and which method has it.
    """
    check_has(estimate, "evidence", "an estimate", "estimate_prior")
    if isinstance(estimate.evidence, kind):
        return estimate.evidence
    raise InputError(f"An estimate by {estimate.method} has no {content} to draw. Pass one by {method}.")
