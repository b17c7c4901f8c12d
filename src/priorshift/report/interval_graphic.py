"""The interval on a line from 0 to 1, as a small graphic whose letters keep their size on every screen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priorshift.report.answer import is_told
from priorshift.result import PriorEstimate

_LEFT, _WIDTH = 4.0, 92.0  # percent of the graphic
_STEPS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
_MOST_TICKS = 6


@dataclass(frozen=True)
class IntervalGraphic:
    """Where things stand, in percent of the width.

    Attributes
    ----------
    value, low, high, source : float or None
        The estimate, the ends of its interval and the source prior; None where there is none, where it lies outside, or
        where nothing can be told.
    ticks : tuple of (float, str)
        Marks of the axis and what stands below them.
    """

    value: float | None
    low: float | None
    high: float | None
    source: float | None
    ticks: tuple[tuple[float, str], ...]

    @classmethod
    def of(cls, estimate: PriorEstimate) -> IntervalGraphic:
        """From 0 to 1, or to less where all of it is near 0."""
        ends = estimate.interval
        most = max(
            (v for v in (estimate.value, ends.high if ends else np.nan, estimate.source_prior) if v == v), default=1
        )
        step = next((s for s in _STEPS if s * (_MOST_TICKS - 1) >= min(1.15 * most, 1.0)), _STEPS[-1])
        top = 1.0 if most > 0.5 else min(step * (_MOST_TICKS - 1), 1.0)
        step = 0.2 if top == 1.0 else step

        def _at(value: float) -> float | None:
            return round(_LEFT + _WIDTH * value / top, 3) if 0 <= value <= top else None

        ticks = [
            (float(_at(t) or _LEFT), f"{t:g}") for t in np.round(np.arange(0, top + step / 2, step), 6) if t <= top
        ]
        low, high = (None, None) if ends is None else (_at(ends.low), _at(min(ends.high, top)))
        value = _at(estimate.value) if is_told(estimate) else None
        return cls(value, low, high, _at(estimate.source_prior), tuple(ticks))
