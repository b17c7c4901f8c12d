"""Verify committed results: compute a small part of each study again and compare it field by field.

``python -m experiments verify`` takes the cheapest unit of every study, computes its lines in memory and compares them
with those in the folder of results, to the last stored digit. Times and versions are not compared.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from threadpoolctl import threadpool_limits

from experiments.runner import run_unit
from experiments.study import Key, Line, Study, Unit
from priorshift.errors import InputError

_MISSING = "missing"


@dataclass(frozen=True)
class Difference:
    """A field whose new value is not the committed one."""

    line: str  # the keys of the line
    field: str
    old: Any
    new: Any
    versions: str = "unknown versions"  # which the committed line was computed with

    @property
    def relative(self) -> float:
        """Return the largest relative difference of the numbers; infinite if they are not numbers."""
        return _relative(self.old, self.new)

    def __str__(self) -> str:
        return f"{self.line}: {self.field} {json.dumps(self.old)} -> {json.dumps(self.new)}"


@dataclass
class Report:
    """The comparison of one study."""

    study: str
    lines: int = 0
    fields: int = 0
    seconds: float = 0.0
    differences: list[Difference] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)  # reasons

    @property
    def verdict(self) -> str:
        """Return the result of the comparison as text."""
        parts = []
        if self.differences:
            largest = max(difference.relative for difference in self.differences)
            count = f"{len(self.differences)} of {self.fields} fields differ"
            versions = " and ".join(sorted({difference.versions for difference in self.differences}))
            parts.append(f"{count}, largest relative difference {largest:.2g}; lines of {versions}")
        elif self.lines:
            parts.append("unchanged")
        return "; ".join(parts + [f"skipped: {reason}" for reason in self.skipped])

    def __str__(self) -> str:
        return f"{self.study:18}{self.lines:6}{self.fields:8}{self.seconds:9.1f}  {self.verdict}"


class _TooSlow(BaseException):
    """Raised in a unit that exceeds its time limit; not an Exception, so that the unit's code does not catch it."""


def verify(study: Study, results: Path, *, units: int = 1, seconds: float = 90.0, include_slow: bool = True) -> Report:
    """Compute the cheapest `units` of a study again, for each group of methods, and compare their lines.

    A unit that takes more CPU time than `seconds` is stopped and reported as skipped, like one whose data are missing.
    """
    report = Report(study.name)
    if study.slow and not include_slow:
        report.skipped.append(f"every unit takes minutes; run 'verify {study.name} --seconds 3600'")
        return report
    committed = {study.key(line): line for line in study.lines(results)}
    if not committed:
        report.skipped.append(f"{study.name}.jsonl has no lines")
    start = time.process_time()
    for unit in cheapest(study, set(committed), units):
        try:
            with threadpool_limits(1), _time_limit(seconds):
                lines = run_unit(unit)
        except _TooSlow:
            report.skipped.append(f"{_described(study, unit)} takes more than {seconds:g} s of CPU time")
        except (InputError, ImportError) as error:
            report.skipped.append(str(error).rstrip("."))
        else:
            computed = {study.key(line): line for line in json.loads(json.dumps(lines))}
            for key in (key for key in committed if key in unit.wanted):
                _compare(study, committed[key], computed.get(key), report)
    report.seconds = time.process_time() - start
    return report


def cheapest(study: Study, committed: set[Key], number: int) -> list[Unit]:
    """Return the units with the fewest rows times repetitions, `number` of each group of methods.

    Units without a committed line are left out.
    """
    groups: dict[frozenset[str], list[Unit]] = {}
    for unit in study.units():
        if unit.wanted & committed:
            methods = frozenset(_entry(study, key).get("method", "") for key in unit.wanted) if study.methods else ()
            groups.setdefault(frozenset(methods), []).append(unit)
    return [unit for some in groups.values() for unit in sorted(some, key=lambda unit: _cost(study, unit))[:number]]


def _cost(study: Study, unit: Unit) -> float:
    entry = _entry(study, next(iter(unit.wanted)))
    return float(entry.get("rows", 1) * entry.get("repetitions", 1))


def _entry(study: Study, key: Key) -> Line:
    return dict(zip(study.keys, key, strict=True))


def _described(study: Study, unit: Unit) -> str:
    """Return the keys that all lines of the unit have in common, as text."""
    entries = [_entry(study, key) for key in unit.wanted]
    common = {n: v for n, v in entries[0].items() if v is not None and all(entry[n] == v for entry in entries)}
    return ", ".join(f"{name} {value}" for name, value in common.items())


def _compare(study: Study, old: Line, new: Line | None, report: Report) -> None:
    """Add the fields of one line, except times and versions, to the report; None if the line was not computed."""
    new = new or {}
    report.lines += 1
    described = ", ".join(
        f"{name} {value}" for name, value in _entry(study, study.key(old)).items() if value is not None
    )
    for name in dict.fromkeys([*old, *new]):
        if name in ("experiment", "versions") or "seconds" in name or name in study.keys:
            continue
        report.fields += 1
        before, after = old.get(name, _MISSING), new.get(name, _MISSING)
        if before != after:
            difference = Difference(described, name, before, after, old.get("versions", Difference.versions))
            report.differences.append(difference)


def _relative(old: Any, new: Any) -> float:
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return max(map(_relative, old, new), default=0.0)
    if old == new:
        return 0.0
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in (old, new)):
        return abs(old - new) / max(abs(old), abs(new))
    return float("inf")


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise `_TooSlow` after this CPU time, which does not depend on other processes; no limit on Windows."""
    if not hasattr(signal, "SIGPROF"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise _TooSlow

    before: Callable[..., Any] | int | None = signal.signal(signal.SIGPROF, stop)
    # again every second, since an exception in a finalizer or a callback is only printed
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
