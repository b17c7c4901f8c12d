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
        check_has(estimate, "evidence", "an estimate", "estimate_prior")
        if np.isnan(estimate.raw):
            raise InputError("There is no estimate to draw: the separation is not positive. See estimate.separation.")
        if not has_objective(estimate):
            raise InputError(f"{estimate.method} has no objective to draw. Use plots.displays_of for every method.")
        gamma = np.linspace(min(0.0, estimate.raw), max(1.0, estimate.raw), 401)
        return cls(gamma, estimate.excess(gamma), estimate.value, estimate.interval, truth)

    def _texts(self) -> tuple[str, str]:
        """Return the estimate and its interval as text; the second is empty where there is no interval."""
        ends = self.interval
        if ends is None:
            return format_prior(self.value), ""
        value, low, high = (format_prior(v, ends.width) for v in (self.value, ends.low, ends.high))
        return value, f"{interval_label(ends.confidence)} {low} to {high}"

    @property
    def description(self) -> str:
        value, ends = self._texts()
        text = f"The objective of TCPU is lowest at a target prior of {value}{ends and f' ({ends})'}."
        return text if self.truth is None else f"{text} The truth is {self.truth:.3f}."

    def draw(self, ax: Any) -> None:
        ax.plot(self.gamma, self.excess, color="black", linewidth=1.5)
        if self.interval is not None:
            ax.axvspan(self.interval.low, self.interval.high, **self.band_style(BLUE))
        label = ", ".join(filter(None, self._texts()))
        ax.axvline(self.value, color=BLUE, linewidth=1.5, label=f"estimate {label}")
        if self.truth is not None:
            ax.axvline(self.truth, color=ORANGE, linewidth=1.5, linestyle="--", label=f"truth {self.truth:.3f}")
        ax.set(xlim=self.gamma[[0, -1]], ylim=(0, float(self.excess.max()) * 1.05 or 1.0))
        ax.set(xlabel="target prior γ", ylabel="objective above its minimum")
        self.legend(ax, 1)


def has_objective(estimate: PriorEstimate) -> bool:
    """Return whether an estimate is the minimum of an objective."""
    return bool(np.isfinite([estimate.raw, estimate.separation]).all() and estimate.evidence is None)


@dataclass(eq=False, repr=False)
class DistanceDisplay(Display):
    """KM's distance d(λ) against the prior 1 − 1/λ, with its slope, the thresholds and the estimate."""

    prior: Floats
    distance: Floats  # to the hull of all rows
    slope: Floats
    thresholds: dict[str, float]  # slope at which each rule reads off its prior
    rule: str  # in use
    value: float
    title: ClassVar[str] = "How many positives can be removed"

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate) -> DistanceDisplay:
        return cls.from_estimator(evidence_of(estimate, KM2, "distance curve", "KM2LS"))

    @classmethod
    def from_estimator(cls, km: KM2, *, prior: ArrayLike | None = None) -> DistanceDisplay:
        curve = km.curve(prior)
        return cls(curve.prior, curve.distance, curve.slope, dict(curve.thresholds), km.rule, km.prior_)

    @property
    def description(self) -> str:
        slopes = ", ".join(f"{slope:.3g} by {rule}" for rule, slope in self.thresholds.items())
        return (
            f"Distance between the sample without its positives and the hull of all rows, and its slope, for priors "
            f"from {self.prior[0]:.2f} to {self.prior[-1]:.2f}. The estimate is the prior where the slope passes a "
            f"threshold ({slopes}): {self.value:.3f} by {self.rule}."
        )

    def draw(self, ax: Any) -> None:
        ax.plot(self.prior, self.distance, color="black", linewidth=1.5, label="distance")
        ax.set(xlabel="prior 1 − 1/λ", ylabel="distance d(λ) to the hull")
        right = ax.twinx()
        right.plot(self.prior, self.slope, color=GREY, linewidth=1.5, linestyle="-.", label="slope d′(λ)")
        for rule, slope in self.thresholds.items():
            colour, dash = (BLUE, "-") if rule == self.rule else (ORANGE, "--")
            right.axhline(slope, color=colour, linewidth=1, linestyle=dash, label=f"threshold of {rule}")
        right.set(ylabel="slope", ylim=(0, None))
        ax.set_ylim(0)
        ax.axvline(self.value, color=BLUE, linewidth=1.5, linestyle=":", label=f"{self.rule}: {self.value:.3f}")
        lines = [*ax.get_lines(), *right.get_lines()]
        self.legend(ax, handles=lines)


@dataclass(eq=False, repr=False)
class RatioOfShares:
    """Share of a sample above each threshold, divided by that of the positives, and its lowest trusted point."""

    share: Floats  # of positives above each threshold
    ratio: Floats
    at: float
    prior: float

    @classmethod
    def from_curve(cls, curve: ShareCurve, least: float) -> RatioOfShares:
        """Read off the prior where more than `least` of the positives lie above the threshold."""
        best = curve.smallest(least)
        return cls(curve.positive, curve.population / curve.positive, best.positive, best.ratio)


@dataclass(eq=False, repr=False)
class LevelSetsDisplay(Display):
    """DRPU's ratio of shares against the share of positives, for the source population and a target."""

    source: RatioOfShares
    target: RatioOfShares | None
    least_share: float  # of positives above a threshold that is trusted
    title: ClassVar[str] = "Where positives are purest"

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate) -> LevelSetsDisplay:
        evidence = evidence_of(estimate, LevelSetEvidence, "level sets", "DRPU")
        source, target = (RatioOfShares.from_curve(c, evidence.least_share) for c in (evidence.source, evidence.target))
        return cls(source, target, evidence.least_share)

    @classmethod
    def from_estimator(cls, estimator: DRPU, target: Any = None) -> LevelSetsDisplay:
        """Draw the source, and the target where its rows or its estimate are given."""
        if isinstance(target, PriorEstimate):
            return cls.from_estimate(target)
        curves = [estimator.share_curve(), *([] if target is None else [estimator.share_curve(target)])]
        source, *others = (RatioOfShares.from_curve(curve, estimator.least_share_) for curve in curves)
        return cls(source, others[0] if others else None, estimator.least_share_)

    @property
    def description(self) -> str:
        text = (
            "Share of the sample divided by the share of positives above each threshold; its lowest point is the "
            f"prior: {self.source.prior:.3f} in the source"
        )
        if self.target is not None:
            text += f", {self.target.prior:.3f} in the target"
        return f"{text}. Thresholds with at least {self.least_share:.2f} of the positives above them are trusted."

    def draw(self, ax: Any) -> None:
        for name, colour, style, curve in (("source", GREY, "s--", self.source), ("target", BLUE, "o-", self.target)):
            if curve is not None:
                ax.plot(curve.share, curve.ratio, style[1:], color=colour, linewidth=1.5)
                ax.plot(curve.at, curve.prior, style, color=colour, label=f"{name} prior {curve.prior:.3f}")
        label = f"trusted above {self.least_share:.2f}"
        ax.axvline(self.least_share, color="black", linestyle=":", linewidth=1, label=label)
        ax.set(xlim=(0, 1), ylim=(0, 1.05))
        ax.set(xlabel="share of positives above the threshold", ylabel="share of the sample over it")
        self.legend(ax, 2)


def evidence_of(estimate: PriorEstimate, kind: type[Evidence], content: str, method: str) -> Evidence:
    """Return what a picture of an estimate is drawn from, or raise InputError for another method."""
    check_has(estimate, "evidence", "an estimate", "estimate_prior")
    if isinstance(estimate.evidence, kind):
        return estimate.evidence
    raise InputError(f"An estimate by {estimate.method} has no {content} to draw. Pass one by {method}.")
