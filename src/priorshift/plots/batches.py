"""Picture of a monitor: the share in each batch over time, with what it is compared with and the alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.errors import InputError, InputTypeError
from priorshift.formatting import format_percent
from priorshift.io.targets import are_iso_dates
from priorshift.plots.display import BLUE, GREY, ORANGE, Display, interval_label, printable, tick_label

if TYPE_CHECKING:
    from priorshift.monitoring.points import MonitorPoint

_MANY = 60  # batches, above which intervals are drawn as bands
_MOST_DRAWN = 400  # points of a band or line, about one for each pixel; of more batches, neighbours are drawn together
_MAX_PANELS = 12  # series in one picture
_MAX_TICK_LETTERS = 32  # of all labels of an axis with names
_MAX_LISTED = 5  # alarms in the description
_MOST_MARKS = 150  # places for alarms of one rule
_MARKS = {"level": ("^", ORANGE), "change": ("D", ORANGE), "assumption": ("X", "black")}


@dataclass(frozen=True)
class AlarmMark:
    """An alarm: the number of its batch, its rule, and the number of the first batch after the likely change."""

    batch: int
    rule: str
    since: int | None


@dataclass(frozen=True, eq=False)
class SeriesPanel:
    """Batches of one series, in the order in which they are drawn."""

    name: str
    points: tuple[MonitorPoint, ...]
    start: float | None  # share in the reference
    levels: tuple[float, ...] = ()  # thresholds of the share

    @classmethod
    def from_points(
        cls, name: str, points: Sequence[MonitorPoint], share: float | None, levels: Sequence[float]
    ) -> SeriesPanel:
        """Put the batches of one series in the order of time, if they have times.

        `share` is that of the reference; if the first batches are the reference, theirs replaces it.
        """
        first = [point for point in points if point.status == "reference"]
        return cls(name, tuple(sorted(points, key=_time_key(points))), _mean_share(first) or share, tuple(levels))

    @cached_property
    def positions(self) -> NDArray[Any]:
        """Places of the batches on the horizontal axis: times, or whole numbers."""
        times = _read_times(self.points)
        return np.arange(len(self.points)) if times is None else times

    @cached_property
    def values(self) -> Floats:
        """Estimate of each batch; NaN where there is none."""
        return np.array([np.nan if point.value is None else point.value for point in self.points])

    def ends(self, kind: str) -> Floats:
        """Ends of the intervals of one kind, "interval" or "all_time", shape (batches, 2); NaN where there is none."""
        intervals = [getattr(point, kind) for point in self.points]
        return np.array([(np.nan, np.nan) if i is None else (i.low, i.high) for i in intervals]).reshape(-1, 2)

    @cached_property
    def alarms(self) -> list[AlarmMark]:
        """Alarms of the series."""
        numbers = {point.name: k for k, point in enumerate(self.points)}
        alarms = [(k, self.points[k].alarms[j]) for k, j in new_alarms(self.points)]
        return [AlarmMark(k, alarm.rule, numbers.get(alarm.since or "")) for k, alarm in alarms]

    @cached_property
    def broken(self) -> NDArray[np.bool_]:
        """Whether each batch carries the alarm that label shift no longer holds."""
        return np.array([point.broke_assumption for point in self.points], dtype=bool)

    @property
    def starts(self) -> list[int]:
        """Numbers of the first batches after likely changes, without those that an acknowledgement has set aside."""
        trusted = np.flatnonzero(~self.broken)
        last = -1 if not len(trusted) else int(trusted[-1])  # the alarm of label shift was acknowledged before it
        found = [mark for mark in self.alarms if mark.rule == "change"]
        found = [mark for mark in found if not self.broken[mark.batch] or mark.batch > last]
        return sorted({mark.since for mark in found if mark.since is not None})

    @property
    def references(self) -> list[tuple[int, int, float]]:
        """What batches are compared with: first batch, last batch and share.

        At first that is the reference; after a change, the mean of the batches since then.
        """
        edges = [0, *self.starts, len(self.points) - 1]
        since = pairwise([*self.starts, len(self.points)])  # the batch that starts the next change is not included
        shares = [self.start, *(_mean_share(self.points[start:end]) for start, end in since)]
        parts = [(*ends, share) for ends, share in zip(pairwise(edges), shares, strict=True) if share is not None]
        return [(first, last, share) for first, last, share in parts if last > first]


def new_alarms(points: Sequence[MonitorPoint]) -> list[tuple[int, int]]:
    """Return the number of the batch of each alarm of a series, and the place of the alarm among those of that batch.

    An alarm that persists until it is acknowledged counts once.
    """
    found, broken = [], None
    for k, point in enumerate(points):
        found += [(k, j) for j, alarm in enumerate(point.alarms) if alarm.rule != "assumption" or alarm.since != broken]
        broken = next((alarm.since for alarm in point.alarms if alarm.rule == "assumption"), None)
    return found


def _mean_share(points: Sequence[MonitorPoint]) -> float | None:
    """Return the mean estimate of some batches, weighted by their rows; None if there is none."""
    known = [point for point in points if point.value is not None]
    if not known:
        return None
    return float(np.average([point.value or 0.0 for point in known], weights=[point.rows for point in known]))


def _read_times(points: Sequence[MonitorPoint]) -> NDArray[np.datetime64] | None:
    """Return the times of batches, or their names where these are ISO dates; None if they have no times."""
    texts = [point.name if point.time is None else point.time for point in points]
    if are_iso_dates(texts):
        return np.array(texts, dtype="datetime64[us]")
    try:
        times = [datetime.fromisoformat(text) for text in texts]
    except ValueError:
        return None
    naive = [time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None) for time in times]
    return np.array(naive, dtype="datetime64[us]")


def _time_key(points: Sequence[MonitorPoint]) -> Any:
    """Return a function by which batches are put in the order of time; without times, in that of arrival."""
    times = _read_times(points)
    places = {point.name: (k if times is None else times[k]) for k, point in enumerate(points)}
    return lambda point: places[point.name]


@dataclass(eq=False, repr=False)
class BatchesDisplay(Display):
    """The share in each batch with both intervals, the reference, the levels, and the alarms; a panel per series."""

    panels: tuple[SeriesPanel, ...]
    left_out: int = 0  # series that are not drawn
    title: ClassVar[str] = "The share of positives over time"

    @classmethod
    def from_monitor(cls, monitor: Any, series: str | Sequence[str] | None = None) -> BatchesDisplay:
        """Take the batches of a monitor, or of a sequence of points, and of these only the `series` that are named."""
        points = getattr(monitor, "points", monitor)
        if not isinstance(points, (list, tuple)) or not all(hasattr(point, "all_time") for point in points):
            raise InputTypeError(
                f"This picture needs a Monitor or a list of its points, but got {type(monitor).__name__}. Pass a "
                "fitted Monitor."
            )
        if not points:
            raise InputError("There is no batch to draw. Add one with Monitor.update.")
        by_series: dict[str, list[MonitorPoint]] = {}
        for point in points:
            by_series.setdefault(point.series, []).append(point)
        names = list(by_series)
        if series is not None:
            names = [series] if isinstance(series, str) else list(series)
            unknown = [name for name in names if name not in by_series]
            if unknown:
                raise InputError(
                    f"There is no series {unknown[0]!r}. The series are {', '.join(map(repr, by_series))}."
                )
        elif len(names) > _MAX_PANELS:  # those with alarms first
            names.sort(key=lambda name: not any(point.alarms for point in by_series[name]))
        level = getattr(monitor, "level", None)
        levels = [value for value in (level if isinstance(level, (list, tuple)) else [level]) if value is not None]
        share = monitor.model_.prior.value if hasattr(monitor, "model_") else None
        panels = [SeriesPanel.from_points(name, by_series[name], share, levels) for name in names[:_MAX_PANELS]]
        return cls(tuple(panels), max(len(names) - _MAX_PANELS, 0))

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches: the panels are one below the other."""
        return self.width, self.height if len(self.panels) == 1 else 1.2 + 1.5 * len(self.panels)

    @property
    def description(self) -> str:
        """Text alternative: the last estimate of each series, and its alarms."""
        return " ".join(self._describe(panel) for panel in self.panels) + self._left_out_text

    @property
    def caption(self) -> str:
        """What to look for: alarms, and where the reference changes."""
        text = "Share of positives in each batch. The dark interval is that of one batch; the light one holds for all "
        text += "batches at once. After a change, the reference is the mean since then."
        if any(len(panel.points) > _MOST_DRAWN for panel in self.panels):
            text += " Neighbouring batches are averaged; alarms are at their own batch."
        return text + self._left_out_text

    @property
    def _left_out_text(self) -> str:
        """Sentence about series that are not drawn; empty if there is none."""
        return f" {self.left_out} more series are not drawn." if self.left_out else ""

    def _describe(self, panel: SeriesPanel) -> str:
        """Describe one series in two or three sentences."""
        label = f"Series {printable(panel.name)}: " if panel.name else ""
        text = f"{label}{len(panel.points)} batches"
        last = next((point for point in reversed(panel.points) if point.value is not None), None)
        if last is not None and last.value is not None:
            text += f"; the share in the last one, {printable(last.name)}, is {format_percent(last.value)}"
            if last.interval is not None:
                text += f" ({format_percent(last.interval.low)} to {format_percent(last.interval.high)})"
        for level in panel.levels:
            text += f"; the level is {level:.3g}"
        shown = panel.alarms[-_MAX_LISTED:]
        if not shown:
            return f"{text}. No alarm."
        names = ", ".join(f"{mark.rule} at {printable(panel.points[mark.batch].name)}" for mark in shown)
        count = len(panel.alarms)
        others = ", of which the last are" if count > len(shown) else ""
        return f"{text}. {count} alarm{'s' if count > 1 else ''}{others}: {names}."

    def make_axes(self, figure: Any) -> Any:
        """Add one Axes for each series, one below the other."""
        axes = figure.subplots(len(self.panels), sharex=len({_is_dated(panel) for panel in self.panels}) == 1)
        return axes if len(self.panels) > 1 else [axes]

    def draw(self, ax: Any) -> None:
        """Draw each series on its Axes; the legend is above the first."""
        axes = [ax] if hasattr(ax, "figure") else list(ax)
        if len(axes) < len(self.panels):
            raise InputError(f"There are {len(self.panels)} series, but {len(axes)} Axes. Pass series= to choose one.")
        handles: dict[str, Any] = {}
        for panel, one in zip(self.panels, axes, strict=False):
            _draw_panel(panel, one)
            for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
            if panel.name:
                one.text(0.01, 0.96, tick_label(panel.name), transform=one.transAxes, va="top", weight="bold")
        self.legend(axes[0], 2, handles=list(handles.values()), labels=list(handles))


def _is_dated(panel: SeriesPanel) -> bool:
    """Return whether the batches of a series have times."""
    return panel.positions.dtype.kind == "M"


def _draw_panel(panel: SeriesPanel, ax: Any) -> None:
    """Draw one series on its Axes."""
    x, interval, all_time = panel.positions, panel.ends("interval"), panel.ends("all_time")
    confidence = next((point.interval.confidence for point in panel.points if point.interval), 0.95)
    _draw_intervals(ax, x, all_time, 0.15, 6.0, f"all time, {100 * confidence:g}%")
    _draw_intervals(ax, x, interval, 0.4, 1.5, interval_label(confidence))
    places, [values] = _thin_means(x, panel.values[:, None])
    ax.plot(places, values, "o-" if len(x) <= _MANY else "-", color=BLUE, markersize=3.5, linewidth=1, label="estimate")
    for k, (first, last, share) in enumerate(panel.references):
        ends = x[[first, last]]
        ax.plot(ends, [share, share], color="black", linestyle=":", linewidth=1.5, label="" if k else "reference")
    for k, level in enumerate(panel.levels):
        ax.axhline(level, color=ORANGE, linestyle="--", linewidth=1.5, label="" if k else "level")
    _draw_alarms(ax, panel)
    ax.set_ylim(*_limits(panel, interval, all_time))
    ax.yaxis.set_major_formatter(lambda share, _: f"{round(100 * share, 6):g}%")
    ax.set_ylabel("share")
    _label_axis(ax, panel)


def _draw_intervals(ax: Any, x: NDArray[Any], ends: Floats, alpha: float, width: float, label: str) -> None:
    """Draw intervals: as lines if there are few batches, as a band if there are many."""
    known = np.isfinite(ends[:, 0])
    if not known.any():
        return
    if len(x) <= _MANY:
        colour = {"color": BLUE, "alpha": alpha if width > 2 else 1.0}
        ax.vlines(x[known], *ends[known].T, linewidth=min(width, 180 / len(x)), label=label, **colour)
        return
    places, (low, high) = _thin_means(x, ends)
    ax.fill_between(places, low, high, facecolor=(BLUE, alpha), edgecolor="none", label=label)


def _thin_means(x: NDArray[Any], columns: Floats) -> tuple[NDArray[Any], Floats]:
    """Return places, and means of columns over neighbouring batches: so few that a picture stays small and legible."""
    step = -(-len(x) // _MOST_DRAWN)
    starts = np.arange(0, len(x), step)
    known = np.isfinite(columns)
    sums = np.add.reduceat(np.where(known, columns, 0.0), starts, axis=0)
    counts = np.add.reduceat(known.astype(float), starts, axis=0)
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return x[np.minimum(starts + step // 2, len(x) - 1)], means.T


def _draw_alarms(ax: Any, panel: SeriesPanel) -> None:
    """Mark alarms by their rule, changes by a line at their likely start, and batches without label shift by a band."""
    x = panel.positions
    edges = np.flatnonzero(np.diff(np.concatenate([[False], panel.broken, [False]]).astype(int)))
    for k, (start, stop) in enumerate(edges.reshape(-1, 2)):
        ax.axvspan(x[start], x[stop - 1], facecolor=(GREY, 0.25), edgecolor=GREY, linewidth=0.6, zorder=0,
                   label="" if k else "do not trust")  # fmt: skip
    for k, start in enumerate(panel.starts):
        ax.axvline(x[start], color=GREY, linestyle="-.", linewidth=1, label="" if k else "since")
    for rule, (marker, colour) in _MARKS.items():
        # of alarms that would cover each other, the first is drawn
        places = {
            mark.batch * _MOST_MARKS // len(x): mark.batch for mark in reversed(panel.alarms) if mark.rule == rule
        }
        batches = sorted(places.values())
        if batches:
            ax.plot(x[batches], np.nan_to_num(panel.values[batches]), marker, color=colour, markersize=6.5, zorder=4,
                    markeredgecolor="white", markeredgewidth=0.7, label=f"{rule} alarm")  # fmt: skip


def _limits(panel: SeriesPanel, interval: Floats, all_time: Floats) -> tuple[float, float]:
    """Return the range of the vertical axis; intervals of all time that are much wider than most are cut."""
    lines = [*panel.levels, *(share for *_, share in panel.references)]
    lows, highs = [*lines, *interval[:, 0], *panel.values], [*lines, *interval[:, 1], *panel.values]
    if np.isfinite(all_time).any():
        lows.append(float(np.nanquantile(all_time[:, 0], 0.2)))
        highs.append(float(np.nanquantile(all_time[:, 1], 0.8)))
    finite_lows, finite_highs = ([value for value in part if np.isfinite(value)] for part in (lows, highs))
    low, high = min(finite_lows, default=0.0), max(finite_highs, default=1.0)
    margin = 0.08 * max(high - low, 1e-3)
    bottom, top = max(low - margin, 0.0), min(high + margin, 1.0)
    return (0.0 if bottom < 0.35 * top else bottom), top


def _label_axis(ax: Any, panel: SeriesPanel) -> None:
    """Label the horizontal axis by dates, or by as many names of batches as fit."""
    if _is_dated(panel):
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        return
    names = [tick_label(point.name, 16) for point in panel.points]
    count = max(_MAX_TICK_LETTERS // (max(map(len, names)) + 2), 1)
    step = -(-len(names) // count)
    ax.set_xticks(np.arange(0, len(names), step), names[::step])
