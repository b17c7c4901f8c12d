"""Files of a monitor that other programs read: metrics in the text format of Prometheus, and a log of JSON lines."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from priorshift.errors import InputError
from priorshift.io.files import atomic_write
from priorshift.monitoring.monitor import Monitor
from priorshift.monitoring.points import RULES, MonitorPoint

_SIDES = ("above", "below")
_METRICS = {  # name: help
    "share": "Estimated share of positives in the last batch.",
    "share_low": "Lower end of the interval of this batch.",
    "share_high": "Upper end of the interval of this batch.",
    "share_all_time_low": "Lower end of the interval that holds for all batches at once.",
    "share_all_time_high": "Upper end of the interval that holds for all batches at once.",
    "rows": "Number of rows in the last batch.",
    "batches": "Number of batches so far.",
    "evidence": "Evidence of a rule after the last batch; it raises an alarm at its limit.",
    "evidence_limit": "Evidence at which a rule raises an alarm.",
    "alarm": "1 if a rule raised an alarm at the last batch or, for the assumption, was not acknowledged; otherwise 0.",
}


def write_metrics(monitor: Monitor, path: str | os.PathLike[str]) -> None:
    """Write the last batch of each series as gauges for Prometheus. Values that do not exist have no line."""
    samples: dict[str, list[str]] = {name: [] for name in _METRICS}
    for series, points in monitor.points_by_series.items():
        is_broken = series in monitor.broken_since
        for name, labels, value in _samples(points, is_broken=is_broken):
            text = ",".join(f'{key}="{_escape(label)}"' for key, label in {"series": series, **labels}.items())
            samples[name].append(f"priorshift_{name}{{{text}}} {value!r}")
    lines = []
    for name, text in _METRICS.items():
        if samples[name]:
            lines += [f"# HELP priorshift_{name} {text}", f"# TYPE priorshift_{name} gauge", *samples[name]]
    with atomic_write(path) as draft:
        draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _samples(points: Sequence[MonitorPoint], *, is_broken: bool) -> Iterator[tuple[str, dict[str, str], float]]:
    """Yield name, labels and value of each gauge of a series whose assumption may be broken."""
    if not points:
        return
    last = points[-1]
    is_acknowledged = last.broke_assumption and not is_broken  # after which the rule begins again
    evidence = {rule: value for rule, value in last.evidence.items() if rule != "assumption" or not is_acknowledged}
    numbers = {"share": last.value, "rows": last.rows, "batches": len(points)}
    if last.interval is not None:
        numbers |= {"share_low": last.interval.low, "share_high": last.interval.high}
    if last.all_time is not None:
        numbers |= {"share_all_time_low": last.all_time.low, "share_all_time_high": last.all_time.high}
    for name, value in numbers.items():
        if value is not None:
            yield name, {}, value
    for name, by_rule in (("evidence", evidence), ("evidence_limit", last.limits)):
        for rule, value in by_rule.items():
            yield name, {"rule": "level", "side": rule} if rule in _SIDES else {"rule": rule}, value
    raised = {alarm.rule for alarm in last.alarms} - {"assumption"} | ({"assumption"} if is_broken else set())
    for rule in RULES:
        yield "alarm", {"rule": rule}, int(rule in raised)


def _escape(label: str) -> str:
    """Escape the value of a label."""
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@dataclass
class SeriesLog:
    """A file with a line of JSON for each batch and series, in the order of the batches.

    The lines follow from the state: what a killed process did not append, the next one does. A batch that was replaced
    gets a further line.
    """

    path: Path
    size: int = 0  # bytes of complete lines
    is_torn: bool = False  # whether a killed process has left a part of a further line
    digests: dict[tuple[str, str], str] = field(default_factory=dict)  # of the last line of each series and batch

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SeriesLog:
        """Read which batches the file has; it need not exist."""
        log = cls(Path(path))
        foreign = InputError(f"{path} is not a log of priorshift watch; name another file.")
        try:
            content = log.path.read_bytes() if log.path.exists() else b""
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror or error}); name another file.") from None
        *lines, rest = content.split(b"\n")
        log.size, log.is_torn = len(content) - len(rest), bool(rest)
        if not _begins_line(rest):
            raise foreign
        for line in lines:
            try:
                series, batch, digest = _read_key(line)
                log.digests[series, batch] = digest
            except (ValueError, KeyError, TypeError, RecursionError):
                raise foreign from None
        return log

    def append(self, monitor: Monitor) -> None:
        """Append the batches that the file lacks, and those that were replaced."""
        lines: list[str] = []
        missing = [
            (k, series, self.digests.get((series, name)))
            for series, points in monitor.points_by_series.items()
            for k, (name, digest) in enumerate(points.keys)
            if self.digests.get((series, name)) != digest
        ]
        for k, series, known in sorted(missing, key=itemgetter(0)):  # in the order of the batches
            values = _log_values(monitor.points_by_series[series][k]) | {"replaced": known is not None}
            lines.append(json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n")
        if not lines and not self.is_torn:
            return
        try:
            with self.path.open("ab") as file:
                file.truncate(self.size)
                file.write("".join(lines).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(f"Cannot write {self.path}: {error.strerror or error}. The state was written.") from None


# how each line begins, around the name of the series
_FIRST, _SECOND = b'{"series": "', b'", "batch": "'
_NAME = re.compile(rb'(?:[^"\\]|\\.)*\\?', re.DOTALL)  # of a series, whose last escape may be cut
# a line as `SeriesLog.append` writes it, whose names need no escapes
_LINE = re.compile(
    rb'\{"series": "([^"\\]*)", "batch": "([^"\\]*)", "time": .*, "digest": "([^"\\]*)", "replaced": (?:true|false)\}'
)


def _begins_line(text: bytes) -> bool:
    """Return whether a text is the beginning of a line of a log, which may end anywhere."""
    if len(text) <= len(_FIRST):
        return _FIRST.startswith(text)
    name = _NAME.match(text, len(_FIRST))
    after = text[name.end() :] if name else b""
    return text.startswith(_FIRST) and (after.startswith(_SECOND) or _SECOND.startswith(after))


def _read_key(line: bytes) -> tuple[str, str, str]:
    """Return series, batch and digest of a line, which takes a tenth of the time of reading all of its values."""
    found = _LINE.fullmatch(line)
    if found is not None:
        series, batch, digest = (part.decode() for part in found.groups())
        return series, batch, digest
    values = json.loads(line)
    return values["series"], values["batch"], values["digest"]


def _log_values(point: MonitorPoint) -> dict[str, Any]:
    """Return a point as a flat object, which becomes columns in SQL."""
    own, common = point.interval, point.all_time
    change = next((alarm for alarm in point.alarms if alarm.rule == "change"), None)
    size = None if change is None else change.interval
    return {
        "series": point.series,
        "batch": point.name,
        "time": point.time,
        "rows": point.rows,
        "status": point.status,
        "value": point.value,
        "low": None if own is None else own.low,
        "high": None if own is None else own.high,
        "all_time_low": None if common is None else common.low,
        "all_time_high": None if common is None else common.high,
        **{f"evidence_{rule}": point.evidence.get(rule) for rule in (*_SIDES, "change", "assumption")},
        "alarms": [alarm.rule for alarm in point.alarms],
        "messages": [alarm.message for alarm in point.alarms],
        "change": None if change is None else change.size,
        "change_low": None if size is None else size.low,
        "change_high": None if size is None else size.high,
        "change_since": None if change is None else change.since,
        "digest": point.digest,
    }
