"""Picture of the estimates of several targets side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.formatting import decimals
from priorshift.io.targets import are_iso_dates
from priorshift.plots.display import BLUE, Display, check_has, interval_label, printable, tick_label
from priorshift.results import PriorEstimate

_MAX_TICKS = 12
_MAX_TICK_LETTERS = 45  # of all tick labels that are written horizontally
_SHORT_NAME = 16  # letters of a slanted tick label
_RARE = 0.5  # priors up to this are drawn on an axis that ends below 1
_MAX_LISTED = 6  # targets in the description


@dataclass(eq=False, repr=False)
class SeriesDisplay(Display):
    """Estimates of several targets, with their intervals and the simultaneous band."""

    names: tuple[str, ...]  # in the order of time where they are ISO dates, else in their own
    values: Floats  # one per target
    ends: Floats  # of the intervals, one row per target; NaN where there is none
    band: Floats | None  # ends of the simultaneous intervals
    confidence: float  # of intervals and band
    by: str = "target"  # column that distinguishes the targets
    title: ClassVar[str] = "The targets side by side"

    @classmethod
    def from_estimates(cls, estimates: Mapping[str, PriorEstimate]) -> SeriesDisplay:
        """Take the numbers of several estimates, given by the names of their targets."""
        check_has(estimates, "items", "a mapping of names to estimates", "estimate_priors")
        for estimate in estimates.values():
            check_has(estimate, "interval", "a mapping of names to estimates", "estimate_priors")
        if not estimates:
            raise InputError("There is no estimate to draw. Pass one or more, by their targets' names.")
        names = sorted(estimates) if are_iso_dates(list(estimates)) else list(estimates)
        intervals = [estimates[name].interval for name in names]
        ends = np.array([(np.nan, np.nan) if i is None else (i.low, i.high) for i in intervals])
        levels = [interval.confidence for interval in intervals if interval is not None]
        confidence = levels[0] if levels else float("nan")
        bands = getattr(estimates, "band", None)  # simultaneous intervals, which only PriorEstimates has
        band = np.array([(bands[name].low, bands[name].high) for name in names]) if bands else None
        # a target that the source prior leaves open has an interval, and no single number
        values = np.array([np.nan if estimates[name].is_left_open else estimates[name].value for name in names])
        by = getattr(estimates, "by", None) or "target"
        return cls(tuple(names), values, ends, band, confidence, by)

    @property
    def is_dated(self) -> bool:
        """Whether the names are dates, to be drawn on a time axis."""
        return are_iso_dates(list(self.names))

    @property
    def description(self) -> str:
        """Text alternative of the picture: the estimates of the first targets with their intervals, and their range."""
        # decimals that the narrowest interval requires; without intervals, the smallest value
        widths = self.values if np.isnan(self.ends).all() else self.ends[:, 1] - self.ends[:, 0]
        digits = max((decimals(width) for width in widths if np.isfinite(width)), default=3)
        parts = []
        for name, value, (low, high) in list(zip(self.names, self.values, self.ends, strict=True))[:_MAX_LISTED]:
            ends = f" ({low:.{digits}f} to {high:.{digits}f})" if np.isfinite(low) else ""
            is_open = np.isfinite(low) and high - low < 1  # the interval of no estimate is [0, 1]
            number = f"{value:.{digits}f}" if np.isfinite(value) else "open" if is_open else "none"
            parts.append(f"{printable(name)} {number}{ends}")
        interval = f", with its {interval_label(self.confidence)}" if np.isfinite(self.confidence) else ""
        more = f" and {len(self.names) - _MAX_LISTED} more" if len(self.names) > _MAX_LISTED else ""
        text = f"Target prior of each target{interval}: {', '.join(parts)}{more}"
        finite = self.values[np.isfinite(self.values)]
        if len(finite) > 1:
            text += f". They lie between {finite.min():.{digits}f} and {finite.max():.{digits}f}"
        return f"{text}."

    def draw(self, ax: Any) -> None:
        """Draw the estimates, their intervals and the simultaneous band, on a time axis where the names are dates."""
        positions = np.array(self.names, dtype="datetime64[D]") if self.is_dated else np.arange(len(self.names))
        if self.band is not None:
            label = f"all at once, {100 * self.confidence:g}%"
            if self.is_dated and len(self.names) > 1:
                ax.fill_between(positions, *self.band.T, facecolor=(BLUE, 0.15), edgecolor=BLUE, linestyle=":",
                                linewidth=0.8, label=label)  # fmt: skip
            else:
                ax.vlines(positions, *self.band.T, color=BLUE, alpha=0.35, linewidth=8, label=label)
        has_interval = np.isfinite(self.ends[:, 0])
        if has_interval.any():
            label = interval_label(self.confidence)
            ax.vlines(positions[has_interval], *self.ends[has_interval].T, color=BLUE, linewidth=1.5, label=label)
        style = "o-" if self.is_dated else "o"
        ax.plot(positions, self.values, style, color=BLUE, markersize=4, linewidth=1, label="estimate")
        step = 1 + (len(self.names) - 1) // _MAX_TICKS
        names = self.names[::step]
        is_crowded = sum(map(len, names)) > _MAX_TICK_LETTERS
        slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if is_crowded else {}
        ax.set_xticks(positions[::step], [tick_label(name, _SHORT_NAME) for name in names], **slanted)
        if not self.is_dated:
            ax.set_xlim(-0.5, len(self.names) - 0.5)
        ends = self.ends if self.band is None else self.band
        highest = float(np.nanmax([0.0, *self.values, *ends.ravel()]))
        top = 1.0 if highest > _RARE or highest == 0 else 1.2 * highest  # lower where the class is rare
        ax.set(xlabel=tick_label(self.by), ylabel="target prior", ylim=(0, top))
        self.legend(ax, 3)
