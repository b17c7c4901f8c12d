"""The answer in plain words: out of how many it is said, and what the verdict is called."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from priorshift.diagnosis.verdict import EMPTY
from priorshift.result import PriorEstimate

_BASES = (100, 1_000, 10_000, 100_000, 1_000_000)
_LEAST, _LEAST_WIDTH = 5, 3  # that a share, and the width of an interval, are said as


@dataclass(frozen=True)
class Badge:
    """A verdict as it is shown.

    Attributes
    ----------
    tone : {"yes", "care", "no", "open"}
        For its colour.
    mark : str
        A sign that is no colour.
    question, words : str
        What was asked, and the answer.
    """

    tone: str
    mark: str
    question: str
    words: str


BADGES = {
    "yes": Badge("yes", "✓", "May I publish this number?", "Yes, with its interval"),
    "with care": Badge("care", "!", "May I publish this number?", "With care"),
    "no": Badge("no", "✕", "May I publish this number?", "No"),
    "not told": Badge("no", "✕", "May I publish this number?", "No, the tables do not tell it"),
    "not judged": Badge("open", "?", "May I publish this number?", "Nobody has looked yet"),
}


def is_told(estimate: PriorEstimate) -> bool:
    """Say whether there is a number to say: not where nothing was estimated, nor where every prior is possible.

    Parameters
    ----------
    estimate : PriorEstimate
        Any.

    Returns
    -------
    bool
    """
    empty = estimate.interval is not None and estimate.interval.width > EMPTY
    return isfinite(estimate.value) and estimate.verdict != "nothing" and not empty


def base(estimate: PriorEstimate) -> int:
    """Choose of how many a share is said, so that neither it nor its interval is rounded away.

    Parameters
    ----------
    estimate : PriorEstimate
        With a value.

    Returns
    -------
    int
        100, or more for what is rare.

    Examples
    --------
    >>> from priorshift import Interval, PriorEstimate
    >>> from priorshift.report.answer import base
    >>> def made(value, low, high):
    ...     interval = Interval(low, high, 0.95, "delta")
    ...     return PriorEstimate(value, value, interval, 0.01, 0.2, 1.0, 0.1, "TCPU", (50, 50, 50))
    >>> base(made(0.52, 0.43, 0.62)), base(made(0.004, 0.0021, 0.0057))
    (100, 10000)
    """
    sizes = [estimate.value / _LEAST, (1 - estimate.value) / _LEAST]
    if estimate.interval is not None:
        sizes += [estimate.interval.width / _LEAST_WIDTH]
    smallest = min((size for size in sizes if isfinite(size) and size > 0), default=1.0)
    return next((made for made in _BASES if made * smallest >= 1), _BASES[-1])
