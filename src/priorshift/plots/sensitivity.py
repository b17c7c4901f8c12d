"""Pictures of a diagnosis: what is known of the source prior, and how the estimate depends on choices and on rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from priorshift.arrays import Floats
from priorshift.plots.display import BLUE, GREY, ORANGE, Display, format_prior, interval_label, printable

if TYPE_CHECKING:
    from priorshift.diagnosis.diagnosis import Diagnosis

_ESTIMATOR_NAMES = {"largest": "largest possible"}
_INFLUENTIAL_ROWS = re.compile(r"without the (\d+) most influential (\w+ rows)")
_FACTORS = (0.5, 1.0, 2.0, 4.0, 8.0)  # multiples of the present rows
_STYLES = {"positive": ("o-", ORANGE), "unlabeled": ("s:", GREY), "target": ("^-.", BLUE)}
_SAMPLES = {"positive": "positives alone", "unlabeled": "unlabelled alone", "target": "target alone"}


@dataclass(eq=False, repr=False)
class IdentificationDisplay(Display):
    """Source prior: the range that the tables leave open, estimates from the same rows, and the given value."""

    range_from_tables: tuple[float, float]  # with 95% confidence
    estimators: dict[str, float]
    source_prior: float | None  # given value, or the middle of the given range; None if estimated
    given_range: tuple[float, float] | None  # equal ends for a single value; None if estimated
    title: ClassVar[str] = "What is known of the source prior"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> IdentificationDisplay:
        """Take what is known of the source prior from a diagnosis."""
        part = diagnosis.identification
        source_prior = part.source_prior if part.given else None
        given_range = part.source_prior_range if part.given else None
        return cls(part.range_from_tables, dict(part.estimators), source_prior, given_range)

    @property
    def description(self) -> str:
        """Text alternative of the picture: ranges and estimates of the source prior."""
        low, high = self.range_from_tables
        ends = f"{format_prior(low, high - low)} to {format_prior(high, high - low)}"
        sentences = [f"From the tables alone, the source prior could be {ends}."]
        finite = {name: value for name, value in self.estimators.items() if np.isfinite(value)}
        estimates = [f"{_ESTIMATOR_NAMES.get(name, name)} {value:.3f}" for name, value in finite.items()]
        if estimates:
            sentences.append(f"Estimates: {', '.join(estimates)}.")
        if self.source_prior is not None and self.given_range is not None:
            low, high = self.given_range
            ends = f" ({low:.3g} to {high:.3g})" if low < high else ""
            sentences.append(f"The given source prior is {self.source_prior:.3g}{ends}.")
        return " ".join(sentences)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches, which grow with the number of estimators."""
        return self.rows_size(1 + len(self.estimators), 1.2)

    def draw(self, ax: Any) -> None:
        """Draw the range from the tables, a point for each estimator, and the given value with its range."""
        names = ["the tables", *(_ESTIMATOR_NAMES.get(name, name) for name in self.estimators)]
        heights, _ = self.label_rows(ax, names)
        ax.hlines(heights[0], *self.range_from_tables, color=BLUE, linewidth=3, label="95% range from the tables")
        ax.plot(list(self.estimators.values()), heights[1:], "o", color=BLUE)
        if self.source_prior is not None and self.given_range is not None:
            ax.axvspan(*self.given_range, **self.band_style(ORANGE))
            label = f"given: {self.source_prior:.3g}"
            ax.axvline(self.source_prior, color=ORANGE, linestyle="--", linewidth=1.5, label=label)
        ax.set(xlim=(0, 1), xlabel="source prior")
        self.legend(ax, 1)


@dataclass(eq=False, repr=False)
class SensitivityDisplay(Display):
    """Target prior over assumed source priors, with its interval."""

    source_priors: Floats
    values: Floats
    low: Floats
    high: Floats
    in_use: float  # source prior of the estimate
    threshold: float | None  # that the target prior is compared with; None for the source prior
    confidence: float
    plausible: tuple[float, float] = (0.0, 1.0)  # range of the source prior that is given or estimated
    title: ClassVar[str] = "What if the source prior were different"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> SensitivityDisplay:
        """Take the target priors and their intervals at several assumed source priors from a diagnosis."""
        points, conclusion = diagnosis.sensitivity.source_priors, diagnosis.sensitivity.conclusion
        priors = np.array([point.source_prior for point in points])
        values = np.array([point.value for point in points])
        low, high = np.array([point.low for point in points]), np.array([point.high for point in points])
        plausible = diagnosis.identification.source_prior_range
        return cls(
            priors, values, low, high, conclusion.source_prior, conclusion.threshold, conclusion.confidence, plausible
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is no target prior at any source prior."""
        return not np.isfinite(self.values).any()

    @property
    def description(self) -> str:
        """Text alternative of the picture: the target prior at the smallest, the used and the largest source prior."""
        if self.is_empty:
            return "The target prior cannot be estimated at any source prior."
        # target priors at the first source prior, at the one in use and at the last
        first, last = float(self.values[0]), float(self.values[-1])
        middle = float(np.interp(self.in_use, self.source_priors, self.values))
        if first == middle == last:
            change = "does not change"
        elif first <= middle <= last:
            change = "rises"
        else:
            change = "falls" if first >= middle >= last else "changes"
        text = (
            f"The target prior {change} with the assumed source prior: "
            f"{format_prior(first, middle)} at {self.source_priors[0]:.2g}, "
            f"{format_prior(middle)} at {self.in_use:.3g} (in use), "
            f"{format_prior(last, middle)} at {self.source_priors[-1]:.2g}."
        )
        return text if self.threshold is None else f"{text} The threshold is {self.threshold:g}."

    @property
    def caption(self) -> str:
        """What to look for: how steep the line is where the source prior may lie."""
        return (
            "How the estimate depends on the source prior, in the range where it may lie. The steeper the line, the "
            "more an error of the source prior matters."
        )

    def draw(self, ax: Any) -> None:
        """Draw the target prior and its interval over assumed source priors, with the one in use and the threshold."""
        if self.is_empty:
            ax.text(0.5, 0.5, self.description, transform=ax.transAxes, ha="center", va="center")
        label = interval_label(self.confidence)
        ax.fill_between(self.source_priors, self.low, self.high, **self.band_style(BLUE), label=label)
        ax.plot(self.source_priors, self.values, color=BLUE, linewidth=1.5, label="target prior")
        ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1, label="no shift")
        ax.axvline(self.in_use, color=ORANGE, linestyle="-.", linewidth=1.5, label=f"in use: {self.in_use:.3g}")
        if self.threshold is not None:
            label = f"threshold: {self.threshold:g}"
            ax.axhline(self.threshold, color="black", linestyle=":", linewidth=1.5, label=label)
        ax.set(xlim=self.x_range, ylim=self._y_range(), xlabel="assumed source prior", ylabel="target prior")
        self.legend(ax, 2)

    @property
    def x_range(self) -> tuple[float, float]:
        """Ends of the axis of source priors: from half the smallest plausible one to 1.5 times the largest."""
        low, high = min(self.plausible[0], self.in_use), max(self.plausible[1], self.in_use)
        if not 0 < high < 1:
            return 0.0, 1.0
        return max(low / 2, min(float(self.source_priors[0]), low)), min(1.5 * high, 1.0)

    def _y_range(self) -> tuple[float, float]:
        """Return the ends of the axis of target priors: all that is drawn in the range of source priors, with a margin.

        The line of no shift is included at the source prior in use.
        """
        assumed = np.linspace(*self.x_range)
        ends = [np.interp(assumed, self.source_priors, end) for end in (self.low, self.high)]
        drawn = np.concatenate([*ends, [self.in_use, self.in_use if self.threshold is None else self.threshold]])
        if not np.isfinite(drawn).any():
            return 0.0, 1.0
        low, high = float(np.nanmin(drawn)), float(np.nanmax(drawn))
        margin = 0.08 * (high - low) + 1e-6
        return max(low - margin, 0.0), min(high + margin, 1.0)


@dataclass(eq=False, repr=False)
class VariantsDisplay(Display):
    """Estimates with one choice changed, or with some rows or one column left out."""

    names: tuple[str, ...]  # what was changed
    values: Floats  # NaN where there is none
    low: Floats
    high: Floats
    is_significant: tuple[bool, ...]  # whether the estimate differs by more than chance
    interval: tuple[float, float]  # of the estimate itself
    title: ClassVar[str] = "What if one choice were different"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> VariantsDisplay:
        """Take all variants of the estimate, with the references that they are compared with, from a diagnosis."""
        part = diagnosis.sensitivity
        variants = [*part.scores, *part.rows, *part.bandwidths, *part.columns]
        values = np.array([variant.value for variant in variants])
        low, high = np.array([variant.low for variant in variants]), np.array([variant.high for variant in variants])
        names, is_significant = tuple(v.name for v in variants), tuple(v.is_clear for v in variants)
        return cls(names, values, low, high, is_significant, (part.conclusion.low, part.conclusion.high))

    @property
    def description(self) -> str:
        """Text alternative of the picture: the range of all variants, and those that differ by more than chance."""
        finite = self.values[np.isfinite(self.values)]
        if not len(finite):
            return "There is no variant of the estimate to compare it with."
        width = self.interval[1] - self.interval[0]
        least, most, low, high = (format_prior(v, width) for v in (finite.min(), finite.max(), *self.interval))
        pairs = zip(self.names, self.is_significant, strict=True)
        significant = [printable(name) for name, is_clear in pairs if is_clear]
        values = f"between {least} and {most} in {len(finite)} variants; its interval is {low} to {high}"
        clear = ", ".join(significant) or "none"
        return f"With one choice changed, the estimate is {values}. More than chance: {clear}."

    @property
    def caption(self) -> str:
        """What to look for: variants outside the interval of the estimate."""
        return "Each row is the estimate with one choice changed. The band is the interval of the estimate itself."

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches, which grow with the number of variants."""
        return self.rows_size(len(self.names), 1.4)

    def draw(self, ax: Any) -> None:
        """Draw each variant with its interval on a row of its own, over the interval of the estimate."""
        short = [_INFLUENTIAL_ROWS.sub(r"without \1 \2", name) for name in self.names]
        (heights, _), clear = self.label_rows(ax, short), np.array(self.is_significant, dtype=bool)
        ax.axvspan(*self.interval, **self.band_style(BLUE), label="interval of the estimate")
        ax.hlines(heights, self.low, self.high, color=GREY, linewidth=1.5)
        ax.plot(self.values[~clear], heights[~clear], "o", color=BLUE, markersize=5, label="with one choice changed")
        if clear.any():  # these differ by more than chance
            ax.plot(self.values[clear], heights[clear], "D", color=ORANGE, markersize=5, label="more than chance")
        ax.set_xlabel("target prior")
        self.legend(ax, 1)


@dataclass(eq=False, repr=False)
class PlanningDisplay(Display):
    """Expected width of the interval with more rows of each sample, and of all three."""

    factors: Floats  # multiples of the present rows
    widths: dict[str, Floats]  # with more rows of one sample alone; NaN where nothing can be planned
    together: Floats  # with more rows of all three
    title: ClassVar[str] = "What more rows would gain"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> PlanningDisplay:
        """Predict the width of the interval at several multiples of the sample sizes."""
        plan = diagnosis.planning

        def _widths(names: tuple[str, ...]) -> Floats:
            """Return the expected widths if the samples of these names had _FACTORS times their rows."""
            rows = [{name: max(2, round(factor * plan.sizes[name])) for name in names} for factor in _FACTORS]
            return np.array([plan.predict(**enlarged) for enlarged in rows])

        return cls(np.array(_FACTORS), {name: _widths((name,)) for name in _STYLES}, _widths(tuple(_STYLES)))

    @property
    def is_empty(self) -> bool:
        """Whether no width can be predicted, so that nothing can be planned."""
        return not np.isfinite(self.together).all()

    @property
    def description(self) -> str:
        """Text alternative of the picture: the expected width of the interval, now and with the most rows."""
        if self.is_empty:
            return "Nothing can be planned from these tables."
        present_width = float(np.interp(1.0, self.factors, self.together))
        single_widths = ", ".join(f"{self.widths[name][-1]:.3g} for {label}" for name, label in _SAMPLES.items())
        enlarged = f"With {self.factors[-1]:g} times the rows its width would be {single_widths}"
        enlarged += f", and {self.together[-1]:.3g} for all three"
        return f"The interval is expected to be {present_width:.3g} wide. {enlarged}."

    def draw(self, ax: Any) -> None:
        """Draw the expected width over multiples of the rows: a line for each sample alone, and one for all three."""
        if self.is_empty:
            ax.text(0.5, 0.5, self.description, transform=ax.transAxes, ha="center", va="center")
        for name, (style, colour) in _STYLES.items():
            ax.plot(self.factors, self.widths[name], style, color=colour, markersize=4, label=_SAMPLES[name])
        ax.plot(self.factors, self.together, "k--", label="all three")
        ax.set_xscale("log", base=2)
        ax.set_xticks(self.factors, [f"× {k:g}" for k in self.factors])
        ax.set(ylim=(0, None), xlabel="rows", ylabel="width of the interval")
        self.legend(ax)
