"""Pictures of the curve that a method reads its prior from: TCPU's objective, KM's distance, DRPU's ratio of shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.methods.drpu import DRPU
from priorshift.plots.display import (
    BLUE,
    GREY,
    ORANGE,
    Display,
    band_style,
    check_has,
    format_prior,
    interval_label,
    legend_above,
)
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
            raise InputError("there is no estimate to draw: the separation is not positive; see estimate.separation.")
        if not has_objective(estimate):
            raise InputError(
                f"{estimate.method} has no objective to draw; use plots.displays_of, which draws every method."
            )
        gamma = np.linspace(min(0.0, estimate.raw), max(1.0, estimate.raw), 401)
        return cls(gamma, estimate.excess(gamma), estimate.value, estimate.interval, truth)

    def _estimate_and_interval(self) -> tuple[str, str]:
        if self.interval is None:
            return format_prior(self.value), ""
        value, low, high = (
            format_prior(v, self.interval.width) for v in (self.value, self.interval.low, self.interval.high)
        )
        return value, f"{low} to {high}"

    @property
    def description(self) -> str:
        value, ends = self._estimate_and_interval()
        text = f"The objective of TCPU is lowest at a target prior of {value}"
        if self.interval is not None:
            text += f"; its {interval_label(self.interval.confidence)} is {ends}"
        return f"{text}." + ("" if self.truth is None else f" The truth is {self.truth:.3f}.")

    def draw(self, ax: Any) -> None:
        ax.plot(self.gamma, self.excess, color="black", linewidth=1.5)
        value, ends = self._estimate_and_interval()
        label = f"estimate {value}"
        if self.interval is not None:
            label += f", {interval_label(self.interval.confidence)} {ends}"
            ax.axvspan(self.interval.low, self.interval.high, **band_style(BLUE))
        ax.axvline(self.value, color=BLUE, linewidth=1.5, label=label)
        if self.truth is not None:
            ax.axvline(self.truth, color=ORANGE, linewidth=1.5, linestyle="--", label=f"truth {self.truth:.3f}")
        ax.set_xlim(self.gamma[0], self.gamma[-1])
        ax.set_ylim(0, float(self.excess.max()) * 1.05 or 1.0)
        ax.set_xlabel("target prior γ")
        ax.set_ylabel("objective above its minimum")
        legend_above(ax, 1)


def has_objective(estimate: PriorEstimate) -> bool:
    """Tell whether an estimate is the minimum of an objective."""
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
        ax.set_xlabel("prior 1 − 1/λ")
        ax.set_ylabel("distance d(λ) to the hull")
        right = ax.twinx()
        right.plot(self.prior, self.slope, color=GREY, linewidth=1.5, linestyle="-.", label="slope d′(λ)")
        for rule, slope in self.thresholds.items():
            colour, dash = (BLUE, "-") if rule == self.rule else (ORANGE, "--")
            right.axhline(slope, color=colour, linewidth=1, linestyle=dash, label=f"threshold of {rule}")
        right.set_ylabel("slope")
        right.set_ylim(0)
        ax.set_ylim(0)
        ax.axvline(self.value, color=BLUE, linewidth=1.5, linestyle=":", label=f"{self.rule}: {self.value:.3f}")
        lines = [*ax.get_lines(), *right.get_lines()]
        ax.legend(lines, [line.get_label() for line in lines], loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2,
                  frameon=False, fontsize="small")  # fmt: skip


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
        source = estimator.share_curve()
        least = estimator.least_share_
        other = None if target is None else RatioOfShares.from_curve(estimator.share_curve(target), least)
        return cls(RatioOfShares.from_curve(source, least), other, least)

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
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1.05)
        ax.set_xlabel("share of positives above the threshold")
        ax.set_ylabel("share of the sample over it")
        legend_above(ax, 2)


def evidence_of(estimate: PriorEstimate, kind: type[Evidence], content: str, method: str) -> Evidence:
    """Return what a picture of an estimate is drawn from, or refuse an estimate by another method."""
    check_has(estimate, "evidence", "an estimate", "estimate_prior")
    if isinstance(estimate.evidence, kind):
        return estimate.evidence
    raise InputError(f"an estimate by {estimate.method} has no {content} to draw; pass one by {method}.")
