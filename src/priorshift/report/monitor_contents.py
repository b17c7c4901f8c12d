"""Contents of a page on a monitor: the latest state, alarms, chart, last batches, settings and promises."""

from __future__ import annotations

from typing import Any, NamedTuple

from markupsafe import Markup

from priorshift import plots
from priorshift.monitoring.monitor import Monitor
from priorshift.monitoring.points import Alarm, MonitorPoint
from priorshift.plots.batches import BatchesDisplay, new_alarms
from priorshift.report.numbers import Numbers
from priorshift.report.pictures import Picture

_MOST_BATCHES, _MOST_ALARMS, _MOST_SERIES = 50, 50, 12  # lines of tables, and series with a table of batches

# tone of the latest state, for its colour; a mark for those who do not see the colour; words
_STATES = {
    "assumption": ("no", "✕", "do not trust the estimates"),
    "alarm": ("care", "!", "alarm"),
    "quiet": ("yes", "✓", "no alarm"),
    "none": ("open", "?", "no batch yet"),
}
RULES = {"level": "level", "change": "change", "assumption": "label shift"}


class NumberedPoint(NamedTuple):
    """A point of the monitor, and its numbers on the page."""

    point: MonitorPoint
    n: Numbers


class SeriesState(NamedTuple):
    """One series as the page shows it."""

    name: str
    latest: NumberedPoint
    last: list[NumberedPoint]  # most recent first
    batches: int
    alarms: list[Alarm]  # of the latest batch, without those that were acknowledged
    state: tuple[str, str, str]  # tone, mark and words


class ListedAlarm(NamedTuple):
    """An alarm with the batch that raised it."""

    point: MonitorPoint
    alarm: Alarm
    n: Numbers  # of the alarm


def monitor_contents(monitor: Monitor) -> dict[str, Any]:
    """Return the template's variables for a page on a monitor."""
    points = monitor.points
    numbers = Numbers({"points": [point.to_dict() for point in points]})
    numbered = [NumberedPoint(point, numbers.under("points", k)) for k, point in enumerate(points)]
    by_series: dict[str, list[NumberedPoint]] = {}
    for one in numbered:
        by_series.setdefault(one.point.series, []).append(one)
    series = [_series_state(name, part, name in monitor.broken_since) for name, part in by_series.items()]
    found = [
        (k, ListedAlarm(part[k].point, part[k].point.alarms[j], part[k].n.under("alarms", j)))
        for part in by_series.values()
        for k, j in new_alarms([one.point for one in part])
    ]
    alarms = [listed for _, listed in sorted(found, key=lambda one: -one[0])]  # the latest first, of all series
    return {
        "result": monitor, "n": numbers, "series": series, "shown_series": series[:_MOST_SERIES],
        "alarmed": [one for one in series if one.alarms], "state": _overall(series),
        "alarms": alarms[:_MOST_ALARMS], "n_alarms": len(alarms), "rules": RULES, "most_batches": _MOST_BATCHES,
        "picture": _draw(monitor) if points else None, "has_series": bool(by_series) and "" not in by_series,
        "settings": _settings(monitor), "method": "monitor of the share of positives", "call": None,
        "levels": _levels(monitor), "is_diagnosis": False,
    }  # fmt: skip


def _series_state(name: str, points: list[NumberedPoint], is_broken: bool) -> SeriesState:
    """Return one series as the page shows it; `is_broken` if label shift fails and that was not acknowledged."""
    latest = points[-1]
    alarms = [alarm for alarm in latest.point.alarms if is_broken or alarm.rule != "assumption"]
    state = "assumption" if is_broken else "alarm" if alarms else "quiet"
    return SeriesState(name, latest, points[: -_MOST_BATCHES - 1 : -1], len(points), alarms, _STATES[state])


def _overall(series: list[SeriesState]) -> tuple[str, str, str]:
    """Return the most serious state of all series."""
    states = [one.state for one in series] or [_STATES["none"]]
    return min(states, key=list(_STATES.values()).index)


def _draw(monitor: Monitor) -> Picture:
    """Draw the chart of the monitor."""
    display = BatchesDisplay.from_monitor(monitor)
    return Picture(Markup(plots.svg(display, name="chart")), display.caption)


def _levels(monitor: Monitor) -> list[tuple[str, float]]:
    """Return the levels of the share, each with the side on which it raises an alarm."""
    low, high = monitor.level if isinstance(monitor.level, (list, tuple)) else (None, monitor.level)
    return [(side, level) for side, level in (("below", low), ("above", high)) if level is not None]


def _settings(monitor: Monitor) -> dict[str, Any]:
    """Return the settings of a monitor for the provenance of the page."""
    names = ("level", "false_alarm", "run_length", "reference", "confidence", "scenario", "weights", "groups", "audit",
             "by", "drop", "random_state")  # fmt: skip
    settings = {name: getattr(monitor, name) for name in names}
    shown = {name: value for name, value in settings.items() if value is not None and value != () and value != []}
    shown["run_length"] = f"{monitor.run_length:g}"
    prior = f"{monitor.model_.prior} ({monitor.model_.prior_by})"
    return {"source_prior": prior, **shown, "model": monitor.model_.fingerprint}
