"""Points of a series as its state stores them: columns, in a third of the space and time of an object for each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, overload

from priorshift.monitoring.points import RULES, Alarm, MonitorPoint
from priorshift.results import Interval

_DIGITS = 7  # of stored numbers
_TEXTS = ("name", "status", "digest")
_TEXTS_OR_NONE = ("time", "method")
_NUMBERS = ("value", "low", "high", "all_time_low", "all_time_high", "mean", "variance")
_SHARES = ("value", "low", "high", "all_time_low", "all_time_high")
_MOST_ALARMS = 8  # of a point: one of each rule, and one that lasts
_COLUMNS = (*_TEXTS, *_TEXTS_OR_NONE, *_NUMBERS, "rows")


def round_number(x: float) -> float:
    """Return a number as the state stores it, so that points are the same before and after they were stored."""
    return float(f"{x:.{_DIGITS}g}")


def round_interval(interval: Interval) -> Interval:
    """Return an interval with ends as the state stores them."""
    return Interval(round_number(interval.low), round_number(interval.high), interval.confidence, interval.method)


class StoredPoints(Sequence[MonitorPoint]):
    """The points of one series, stored as columns; a point is built when it is asked for."""

    def __init__(self, series: str, confidence: float, limits: Mapping[str, float]) -> None:
        """Start without any point; `confidence` is that of all intervals, and `limits` are those of all rules."""
        self.series, self.confidence, self.limits = series, confidence, dict(limits)
        self.columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self.evidence: dict[str, list[float | None]] = {}  # of each rule
        self.alarms: dict[int, tuple[Alarm, ...]] = {}  # by the number of the point

    def __len__(self) -> int:
        return len(self.columns["name"])

    @overload
    def __getitem__(self, index: int) -> MonitorPoint: ...
    @overload
    def __getitem__(self, index: slice) -> list[MonitorPoint]: ...
    def __getitem__(self, index: int | slice) -> MonitorPoint | list[MonitorPoint]:
        """Return the point of a number, or those of a slice."""
        if isinstance(index, slice):
            return [self[k] for k in range(len(self))[index]]
        index = range(len(self))[index]
        name, status, digest, time, method, value, low, high, first, last, mean, variance, rows = (
            column[index] for column in self.columns.values()
        )
        found = {rule: column[index] for rule, column in self.evidence.items()}
        evidence = {rule: x for rule, x in found.items() if x is not None}
        return MonitorPoint(
            name, rows, value,
            None if method is None else Interval(low, high, self.confidence, method),
            None if first is None else Interval(first, last, self.confidence, "all time"),
            evidence, dict(self.limits) if evidence else {},
            self.alarms.get(index, ()), status, self.series, time, mean, variance, digest,
        )  # fmt: skip

    def __setitem__(self, index: int, point: MonitorPoint) -> None:
        """Replace the point of a number."""
        index = range(len(self))[index]
        for column, value in zip(self.columns.values(), _values(point), strict=True):
            column[index] = value
        for rule in point.evidence:
            self.evidence.setdefault(rule, [None] * len(self))
        for rule, column in self.evidence.items():
            column[index] = point.evidence.get(rule)
        self.alarms.pop(index, None)
        if point.alarms:
            self.alarms[index] = point.alarms

    def append(self, point: MonitorPoint) -> None:
        """Add a point."""
        for column in (*self.columns.values(), *self.evidence.values()):
            column.append(None)
        self[-1] = point

    def pop(self) -> None:
        """Remove the last point."""
        self.alarms.pop(len(self) - 1, None)
        for column in (*self.columns.values(), *self.evidence.values()):
            column.pop()

    @property
    def rows(self) -> list[int]:
        """Number of rows of each batch."""
        return self.columns["rows"]

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Name and digest of each batch."""
        return list(zip(self.columns["name"], self.columns["digest"], strict=True))

    def number(self, name: str) -> int | None:
        """Return the number of the point of a batch; None if there is none."""
        return _find(self.columns["name"], name)

    def same_rows(self, digest: str) -> MonitorPoint | None:
        """Return the first point with the same rows; None if there is none."""
        number = _find(self.columns["digest"], digest)
        return None if number is None else self[number]

    def to_state(self) -> dict[str, Any]:
        """Return the columns for JSON; alarms that several points share are stored once."""
        texts: dict[Alarm, int] = {}
        numbers = [texts.setdefault(alarm, len(texts)) for several in self.alarms.values() for alarm in several]
        points = [k for k, several in self.alarms.items() for _ in several]
        return {
            **self.columns,
            "evidence": self.evidence,
            "alarms": {"texts": [asdict(alarm) for alarm in texts], "points": points, "numbers": numbers},
        }

    def set_state(self, stored: Any) -> None:
        """Set the points to what `to_state` returned; raise ValueError if they are damaged."""
        _check_columns(stored, set(self.limits))
        texts, points = _read_alarms(stored["alarms"]), range(len(stored["name"]))
        self.columns = {name: stored[name] for name in _COLUMNS}
        self.evidence = stored["evidence"]
        alarms: dict[int, list[Alarm]] = {}
        for point, number in zip(stored["alarms"]["points"], stored["alarms"]["numbers"], strict=True):
            if point not in points or not 0 <= number < len(texts):
                raise ValueError
            alarms.setdefault(point, []).append(texts[number])
        if any(len(several) > _MOST_ALARMS for several in alarms.values()):
            raise ValueError
        self.alarms = {point: tuple(several) for point, several in alarms.items()}


def _find(column: list[Any], value: Any) -> int | None:
    """Return the first place of a value in a column; None if there is none."""
    return column.index(value) if value in column else None


def _values(point: MonitorPoint) -> tuple[Any, ...]:
    """Return the values of a point in the order of the columns."""
    own, common = point.interval, point.all_time
    return (
        point.name, point.status, point.digest, point.time, None if own is None else own.method, point.value,
        None if own is None else own.low, None if own is None else own.high,
        None if common is None else common.low, None if common is None else common.high,
        point.mean, point.variance, point.rows,
    )  # fmt: skip


def _check_columns(stored: Any, rules: set[str]) -> None:
    """Raise ValueError unless there are all columns, with values of their types."""
    expected = {*_COLUMNS, "evidence", "alarms"}
    is_complete = isinstance(stored, dict) and stored.keys() == expected
    if not is_complete or not (isinstance(stored["evidence"], dict) and stored["evidence"].keys() <= rules):
        raise ValueError
    types: list[tuple[Any, tuple[type, ...]]] = [(stored[name], (str,)) for name in _TEXTS]
    types += [(stored[name], (str, type(None))) for name in _TEXTS_OR_NONE]
    types += [(column, (int, float, type(None))) for column in map(stored.get, _NUMBERS)]
    types += [(column, (int, float, type(None))) for column in stored["evidence"].values()]
    for column, allowed in [*types, (stored["rows"], (int,))]:
        if not isinstance(column, list) or not set(map(type, column)) <= set(allowed):
            raise ValueError
        if len(column) != len(stored["name"]):
            raise ValueError
        if float in allowed and not all(map(math.isfinite, filter(None, column))):
            raise ValueError
        if float in allowed:
            column[:] = [value if value is None else float(value) for value in column]
        if str in allowed:
            "".join(filter(None, column)).encode()  # raises ValueError for text that cannot be written
    gaps = [[value is None for value in stored[name]] for name in ("method", "low", "high", "value")]
    common = [[value is None for value in stored[name]] for name in ("all_time_low", "all_time_high")]
    if any(column != gaps[0] for column in gaps) or common[0] != common[1]:
        raise ValueError
    if not all(0 <= rows < 2**53 for rows in stored["rows"]):
        raise ValueError
    if not all(0 <= share <= 1 for name in _SHARES for share in stored[name] if share is not None):
        raise ValueError


def _read_alarms(stored: Any) -> list[Alarm]:
    """Return alarms from what `points_to_columns` stored of them."""
    alarms = []
    for alarm in stored["texts"]:
        interval = None if alarm["interval"] is None else Interval(**alarm["interval"])
        numbers = [] if interval is None else [interval.low, interval.high, interval.confidence]
        numbers += [] if alarm["size"] is None else [alarm["size"]]
        texts = [alarm["message"], *([] if alarm["since"] is None else [alarm["since"]])]
        "".join(texts).encode()  # raises ValueError for text that cannot be written
        if alarm["rule"] not in RULES or not all(map(math.isfinite, numbers)):
            raise ValueError
        alarms.append(Alarm(**{**alarm, "interval": interval}))
    return alarms
