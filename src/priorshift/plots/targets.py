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
from priorshift.plots.display import BLUE, ORANGE, Display, check_has, interval_label, printable, tick_label
from priorshift.results import PriorEstimate

_MAX_ROWS = 24  # with a name
_MAX_TICK_LETTERS = 32  # of all labels of the axis of time
_SAME = 1e-12  # largest difference of source priors that are the same
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
    source_priors: Floats | None = None  # one per target
    threshold: float | None = None  # that the target priors are compared with
    class_name: str = ""  # of several classes, the one whose shares are drawn; empty for positives
    title: ClassVar[str] = "The targets side by side"

    @classmethod
    def from_estimates(
        cls,
        estimates: Mapping[str, PriorEstimate],
        threshold: float | None = None,
        *,
        by: str | None = None,
        class_name: str = "",
    ) -> SeriesDisplay:
        """Take the numbers of several estimates, given by the names of their targets, and a threshold of the user.

        `by` is the column that distinguishes the targets, by default that of `estimates`.
        """
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
        by = by or getattr(estimates, "by", None) or "target"
        source_priors = np.array([estimates[name].source_prior for name in names])
        return cls(tuple(names), values, ends, band, confidence, by, source_priors, threshold, class_name)

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
        subject = f"Share of {printable(self.class_name)} in" if self.class_name else "Target prior of"
        text = f"{subject} each target{interval}: {', '.join(parts)}{more}"
        finite = self.values[np.isfinite(self.values)]
        if len(finite) > 1:
            text += f". They lie between {finite.min():.{digits}f} and {finite.max():.{digits}f}"
        for name, line in self._lines().items():
            text += f". The {name} is {line:.3g}"
        return f"{text}."

    @property
    def caption(self) -> str:
        """What to look for: targets whose interval does not contain the source prior or the threshold."""
        lines = " and the ".join(self._lines())
        references = f", next to the {lines}" if lines else ""
        subject = printable(self.class_name) if self.class_name else "positives"
        return f"Share of {subject} in each {printable(self.by)}, with its interval{references}."

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches; without dates each target has a row."""
        return (self.width, self.height) if self.is_dated else self.rows_size(min(len(self.names), _MAX_ROWS), 1.6)

    def _lines(self) -> dict[str, float]:
        """Return the priors to compare the targets with: the source prior, if they have the same, and the threshold."""
        lines: dict[str, float] = {}
        priors = np.array([]) if self.source_priors is None else self.source_priors
        if len(priors) and np.isfinite(priors).all() and np.ptp(priors) < _SAME:
            lines["share in the source" if self.class_name else "source prior"] = float(priors[0])
        if self.threshold is not None:
            lines["threshold"] = self.threshold
        return lines

    def draw(self, ax: Any) -> None:
        """Draw the estimates, their intervals, the simultaneous band, the source prior and the threshold.

        Dates are drawn on a horizontal axis of time, other targets in rows.
        """
        ends = self.ends if self.band is None else self.band
        lines = self._lines()
        highest = float(np.nanmax([0.0, *self.values, *ends.ravel(), *lines.values()]))
        top = 1.0 if highest > _RARE or highest == 0 else 1.2 * highest  # lower where the class is rare
        subject = f"share of {tick_label(self.class_name)}" if self.class_name else "target prior"
        if self.is_dated:
            self._draw_dates(ax)
            ax.set(xlabel=tick_label(self.by), ylabel=subject, ylim=(0, top))
        else:
            self._draw_rows(ax)
            ax.set(xlabel=subject, xlim=(0, top))
        for name, prior in lines.items():
            colour, dash = (ORANGE, "--") if name == "threshold" else ("black", ":")
            style = {"color": colour, "linestyle": dash, "linewidth": 1.5, "label": f"{name} {prior:.3g}"}
            if self.is_dated:
                ax.axhline(prior, **style)
            else:  # next to the points only, not through the names
                heights = np.arange(len(self.names))
                ax.vlines([prior] * len(heights), heights - 0.22, heights + 0.22, **style)
        self.legend(ax, 2)

    def _draw_dates(self, ax: Any) -> None:
        """Draw the targets on an axis of time, with as many dates as fit below it."""
        positions = np.array(self.names, dtype="datetime64[D]")
        if self.band is not None and len(self.names) > 1:
            ax.fill_between(positions, *self.band.T, facecolor=(BLUE, 0.15), edgecolor=BLUE, linestyle=":",
                            linewidth=0.8, label=self._band_label)  # fmt: skip
        has_interval = np.isfinite(self.ends[:, 0])
        if has_interval.any():
            label = interval_label(self.confidence)
            ax.vlines(positions[has_interval], *self.ends[has_interval].T, color=BLUE, linewidth=1.5, label=label)
        ax.plot(positions, self.values, "o-", color=BLUE, markersize=4, linewidth=1, label="estimate")
        count = max(_MAX_TICK_LETTERS // len(self.names[0]), 1)
        step = -(-len(self.names) // count)
        ax.set_xticks(positions[::step], [tick_label(name) for name in self.names[::step]])

    def _draw_rows(self, ax: Any) -> None:
        """Draw each target in a row below its name; of many, only some are named."""
        step = -(-len(self.names) // _MAX_ROWS)
        labels = [tick_label(name) if k % step == 0 else "" for k, name in enumerate(self.names)]
        heights, _ = self.label_rows(ax, self.names, labels)
        if self.band is not None:
            ax.hlines(heights, *self.band.T, color=BLUE, alpha=0.35, linewidth=8 / step, label=self._band_label)
        has_interval = np.isfinite(self.ends[:, 0])
        if has_interval.any():
            label = interval_label(self.confidence)
            ax.hlines(heights[has_interval], *self.ends[has_interval].T, color=BLUE, linewidth=1.5, label=label)
        ax.plot(self.values, heights, "o", color=BLUE, markersize=4, label="estimate")

    @property
    def _band_label(self) -> str:
        """The name of the simultaneous intervals in the legend."""
        return f"all at once, {100 * self.confidence:g}%"
