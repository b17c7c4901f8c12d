"""Pictures of a diagnosis: whether the share of positives changed, and which columns are involved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from priorshift.formatting import format_fixed, format_p, format_percent
from priorshift.plots.display import BLUE, GREY, ORANGE, Display, format_prior, interval_label, printable
from priorshift.results import Interval

if TYPE_CHECKING:
    from priorshift.diagnosis.diagnosis import Diagnosis

_MAX_COLUMNS = 12  # drawn
_MAX_DRIVERS, _MAX_MOVES = 5, 3  # columns that a description lists
_LEVEL = 0.05  # of significance


@dataclass(eq=False, repr=False)
class ShiftDisplay(Display):
    """Ratio of negatives R with its interval, next to 1, the value without a shift."""

    ratio: float  # NaN where there is none
    interval: Interval  # of R; its upper end can be infinite
    p_value: float  # of the hypothesis of no shift
    title: ClassVar[str] = "Has the share changed"
    height = 1.8

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> ShiftDisplay:
        """Take the ratio R of negatives (target over source), its interval and its test from a diagnosis."""
        test = diagnosis.shift_test
        return cls(test.ratio, test.interval, test.p_value)

    @property
    def description(self) -> str:
        """Text alternative of the picture: the ratio of negatives R and its interval."""
        if not np.isfinite(self.ratio):
            return "The ratio of negatives in target and source cannot be estimated from these tables."
        interval = self.interval
        ratio, low, high = (format_prior(end, interval.width) for end in (self.ratio, interval.low, interval.high))
        return (
            f"The share of negatives in the target, divided by that in the source, is {ratio} "
            f"({interval_label(interval.confidence)} {low} to {high}); 1 means no shift."
        )

    def draw(self, ax: Any) -> None:
        """Draw the ratio of negatives with its interval on a horizontal axis, and a line at 1, no shift."""
        low, high = self.interval.low, self.interval.high
        largest = max(value for value in (low, high, self.ratio, 1.0) if np.isfinite(value))
        left, right = 0.0, 1.15 * largest + 0.05  # ends of the axis
        ax.axvline(1.0, color=GREY, linestyle="--", linewidth=1.5, label="no shift")
        label = interval_label(self.interval.confidence)
        ax.hlines(0, low, min(high, right), color=BLUE, linewidth=3, label=label)
        if np.isfinite(self.ratio):
            ax.plot(self.ratio, 0, "o", color=BLUE, label=f"estimate {format_prior(self.ratio, self.interval.width)}")
            left = min(0.0, 1.15 * self.ratio)
        ax.set_xlim(left, right)
        ax.set_yticks([])
        ax.set_xlabel("R, share of negatives in target over source")
        self.legend(ax, 2)


@dataclass(eq=False, repr=False)
class LabelShiftDisplay(Display):
    """Change of each column's mean that a change of the prior does not explain."""

    names: tuple[str, ...]  # of columns, the most significant first
    moved: tuple[float, ...]  # change in standard deviations
    is_significant: tuple[bool, ...]
    p_value: float  # of label shift; NaN where it could not be tested
    by_chance: tuple[float, ...] = ()  # size of a change that chance alone exceeds in 5% of cases, in any column
    title: ClassVar[str] = "What a change of the share does not explain"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> LabelShiftDisplay:
        """Take the unexplained changes of at most twelve columns, the most significant ones, from a diagnosis."""
        test = diagnosis.label_shift_test
        columns = test.columns[:_MAX_COLUMNS]
        names, moved = tuple(column.name for column in columns), tuple(column.moved for column in columns)
        is_significant = tuple(column.p_value < _LEVEL for column in columns)
        return cls(names, moved, is_significant, test.p_value, tuple(column.by_chance for column in columns))

    @property
    def description(self) -> str:
        """Text alternative of the picture: the largest unexplained changes of columns, and the test of label shift."""
        names = [printable(name) for name in self.names]
        moves = [f"{name} {format_fixed(moved, 2, '+')}" for name, moved in zip(names, self.moved, strict=True)]
        more = f" and {len(moves) - _MAX_MOVES} more" if len(moves) > _MAX_MOVES else ""
        significant = [name for name, is_clear in zip(names, self.is_significant, strict=True) if is_clear]
        return (
            "Changes of column means that a change of the prior does not explain, in standard deviations: "
            f"{', '.join(moves[:_MAX_MOVES]) or 'none'}{more}. More than chance: {', '.join(significant) or 'none'}. "
            f"Test of label shift: {self._p_text}."
        )

    @property
    def caption(self) -> str:
        """What to look for: bars beyond the band of chance."""
        band = " If only the share had changed, all columns together would stay inside the light bands in 95% of cases."
        return (
            f"Change of each column’s mean that a change of the share does not explain.{band if self.by_chance else ''}"
        )

    @property
    def _p_text(self) -> str:
        """The p-value of the test of label shift as text."""
        return format_p(self.p_value) if np.isfinite(self.p_value) else "not tested"

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches, which grow with the number of columns."""
        return self.rows_size(len(self.names), 1.4)

    def draw(self, ax: Any) -> None:
        """Draw a bar for each column, the most significant on top, over its band of chance; hatch significant ones."""
        heights, bar = self.label_rows(ax, self.names)
        clear, moved = np.array(self.is_significant, dtype=bool), np.array(self.moved, dtype=float)
        styles = (
            (~clear, {"color": GREY, "label": None}),
            (clear, {"color": ORANGE, "edgecolor": "black", "hatch": "////", "label": "more than chance"}),
        )
        for columns, style in styles:
            if columns.any():
                ax.barh(heights[columns], moved[columns], bar, zorder=2, **style)
        if self.by_chance:
            ends = np.array(self.by_chance, dtype=float)
            ax.hlines(heights, -ends, ends, color=BLUE, alpha=0.3, linewidth=16, zorder=1, label="95% by chance")
        ax.vlines(np.zeros(len(heights)), heights - bar / 2, heights + bar / 2, color="black", linewidth=1, zorder=3)
        ax.set_xlabel("change in standard deviations")
        self.legend(ax, 2, title=f"label shift: {self._p_text}")


@dataclass(eq=False, repr=False)
class DriversDisplay(Display):
    """Columns that distinguish positives from the population, the most important first."""

    names: tuple[str, ...]  # of columns, with the level of a category in brackets
    importance: tuple[float, ...]  # share of the score, 0 to 1
    difference: tuple[float, ...]  # of the positives' mean from the population's, in its standard deviations
    title: ClassVar[str] = "What distinguishes the positives"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> DriversDisplay:
        """Take at most twelve columns that distinguish positives, the most important ones, from a diagnosis."""
        drivers = diagnosis.drivers[:_MAX_COLUMNS]
        names = tuple(d.name if d.level is None else f"{d.name} ({d.level})" for d in drivers)
        return cls(names, tuple(d.importance for d in drivers), tuple(d.difference for d in drivers))

    @property
    def description(self) -> str:
        """Text alternative of the picture: the most important columns, with share of the score and difference."""
        if not self.names:
            return "No column distinguishes the positives from the population."
        columns = [
            f"{printable(name)} {format_percent(share)} ({format_fixed(difference, 2, '+')})"
            for name, share, difference in zip(self.names, self.importance, self.difference, strict=True)
        ]
        more = f" and {len(columns) - _MAX_DRIVERS} more" if len(columns) > _MAX_DRIVERS else ""
        heading = "Share of the score by column (positives minus population, in standard deviations)"
        return f"{heading}: {', '.join(columns[:_MAX_DRIVERS])}{more}."

    @property
    def caption(self) -> str:
        """What to look for: the longest bars."""
        return "The longer the bar, the more the column distinguishes positives from the population."

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches, which grow with the number of columns."""
        return self.rows_size(len(self.names), 1.3)

    def draw(self, ax: Any) -> None:
        """Draw each column's share of the score as a horizontal bar, hatched where positives have a lower mean."""
        heights, bar = self.label_rows(ax, self.names)
        percentages, is_higher = 100 * np.array(self.importance), np.array(self.difference) > 0
        styles = (
            (is_higher, {"color": BLUE, "hatch": None, "label": "higher among positives"}),
            (~is_higher, {"color": GREY, "hatch": "////", "label": "lower among positives"}),
        )
        for columns, style in styles:
            if columns.any():
                ax.barh(heights[columns], percentages[columns], bar, edgecolor="black", linewidth=0.6, **style)
        ax.set(xlim=(0, None), xlabel="share of the score, in %")
        if self.names:
            self.legend(ax, 1)
