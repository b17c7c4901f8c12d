"""Results of a monitor: a point for each batch, with its alarms."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from priorshift.formatting import format_fixed, range_decimals
from priorshift.results import Interval

RULES = ("level", "change", "assumption")


@dataclass(frozen=True)
class Alarm:
    """An alarm of one rule.

    Attributes
    ----------
    rule : {"level", "change", "assumption"}
        Rule that raised the alarm.
    message : str
        Sentence for a pager.
    since : str or None
        Name of the first batch after the likely change; None if that is not known.
    size : float or None
        Estimated change of the share, such as 0.02; None for other rules.
    interval : Interval or None
        Interval of the change.

    Examples
    --------
    >>> from priorshift import Alarm
    >>> print(Alarm("change", "The share of positives has changed since 'monday'.", since="monday", size=0.02))
    The share of positives has changed since 'monday'.
    """

    rule: str
    message: str
    since: str | None = None
    size: float | None = None
    interval: Interval | None = None

    def __str__(self) -> str:
        """Return the sentence."""
        return self.message


@dataclass(frozen=True)
class MonitorPoint:
    """One batch as a monitor sees it.

    Attributes
    ----------
    name : str
        Name of the batch.
    rows : int
        Number of its rows.
    value : float or None
        Estimated share of positives; None if there is none.
    interval : Interval or None
        Interval for this batch alone.
    all_time : Interval or None
        Interval that holds for all batches at once, however long the monitor runs.
    evidence : dict of str to float
        Evidence of each rule, which raises an alarm when it exceeds `limits`.
    limits : dict of str to float
        Evidence at which each rule raises an alarm.
    alarms : tuple of Alarm
        Empty if all is quiet.
    status : str
        "ok", "empty", "no estimate", "reference" (a batch of the reference period) or "repeated" (a batch that was
        counted before).
    series : str
        Name of the series; empty if there is only one.
    time : str or None
        Time of the batch, as it was passed.
    mean, variance : float
        Mean score of the rows and its variance, from which differences between batches are computed.
    digest : str
        Hash of the contents, by which a repeated batch is recognised.

    Examples
    --------
    >>> from priorshift import Interval
    >>> from priorshift.monitoring import MonitorPoint
    >>> print(MonitorPoint("monday", 500, 0.031, Interval(0.02, 0.045, 0.95, "witness")))
    monday: 3.1% positive, 95% interval 2.0% to 4.5% (500 rows)
    """

    name: str
    rows: int
    value: float | None = None
    interval: Interval | None = None
    all_time: Interval | None = None
    evidence: dict[str, float] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    alarms: tuple[Alarm, ...] = ()
    status: str = "ok"
    series: str = ""
    time: str | None = None
    mean: float | None = None
    variance: float | None = None
    digest: str = ""

    @property
    def broke_assumption(self) -> bool:
        """Whether label shift no longer explains the data, so that the estimate is not to be trusted."""
        return any(alarm.rule == "assumption" for alarm in self.alarms)

    @property
    def decimals(self) -> int:
        """Number of decimals of the batch's percentages: two digits of the width of its interval."""
        return 0 if self.interval is None else range_decimals(self.interval.low, self.interval.high) - 2

    @property
    def percentages(self) -> tuple[str, str, str]:
        """The share and the ends of its interval as text, with two digits of the interval's width."""
        if self.value is None or self.interval is None:
            return "none", "none", "none"
        digits = self.decimals
        shares = (self.value, self.interval.low, self.interval.high)
        value, low, high = (f"{format_fixed(100 * share, digits)}%" for share in shares)
        return value, low, high

    @property
    def _rows_text(self) -> str:
        """The number of rows in words."""
        return "1 row" if self.rows == 1 else f"{self.rows} rows"

    def __str__(self) -> str:
        """Return the batch in one line, and each alarm in a further one."""
        label = f"{self.name}, {self.series}" if self.series else self.name
        if self.value is None or self.interval is None:
            text = {"empty": "no rows"}.get(self.status, f"no estimate ({self._rows_text})")
        else:
            value, low, high = self.percentages
            text = f"{value} positive, {self.interval.confidence:.0%} interval {low} to {high}"
            text += f" ({self._rows_text})"
        notes = {"repeated": "; counted before, so ignored", "reference": "; part of the reference"}
        lines = [f"{label}: {text}{notes.get(self.status, '')}"]
        return "\n".join([*lines, *(f"ALARM: {alarm.message}" for alarm in self.alarms)])

    def to_dict(self) -> dict[str, Any]:
        """Return all values as a dictionary for JSON."""
        return asdict(self)
