"""Pictures of a page: drawings of results with their text alternatives, and the estimate on a line of shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isnan
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from priorshift import plots
from priorshift.diagnosis.diagnosis import Diagnosis
from priorshift.plots.functions import PARTS
from priorshift.report.numbers import is_informative
from priorshift.results import PriorEstimate

_LEFT, _WIDTH = 4.0, 92.0  # start and width of the axis, in percent of the graphic
# possible distances of ticks
_TICK_STEPS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2)
_INTERVALS = 5  # between ticks
_MAX_PICTURES = 16  # of one page, to keep it small and fast to draw
_ORDER = ("evidence", "scores", "label_shift_test", "sensitivity", "variants", "planning")  # most important first


@dataclass(frozen=True)
class IntervalGraphic:
    """Positions on an axis of shares, in percent of the width; None for what is missing or lies outside."""

    value: float | None
    low: float | None
    high: float | None
    source: float | None  # source prior
    ticks: tuple[tuple[float, str], ...]  # position and label

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate) -> IntervalGraphic:
        """Compute the positions of an estimate on an axis from 0 to 1, or to a smaller end if everything is near 0."""
        interval = estimate.interval
        values = (estimate.value, interval.high if interval else np.nan, estimate.source_prior)
        largest = max((value for value in values if not isnan(value)), default=1)
        # the smallest step of ticks with which the axis ends 15% above the largest value, or at 1
        step = min(step for step in _TICK_STEPS if _INTERVALS * step >= min(1.15 * largest, 1.0))
        top = _INTERVALS * step

        def position(value: float) -> float | None:
            """Return the position of a share in percent of the width, or None outside the axis (also for NaN)."""
            return round(_LEFT + _WIDTH * value / top, 3) if 0 <= value <= top else None

        tick_values = np.round(np.arange(0, top + step / 2, step), 6)
        ticks = tuple((float(position(tick) or _LEFT), f"{tick:g}") for tick in tick_values if tick <= top)
        low, high = (None, None) if interval is None else (position(interval.low), position(min(interval.high, top)))
        value = position(estimate.value) if is_informative(estimate) else None
        return cls(value, low, high, position(estimate.source_prior), ticks)


class Picture(NamedTuple):
    """A drawing, which contains its text alternative, with a caption."""

    svg: Markup
    caption: str


@dataclass
class Pictures:
    """Pictures of one target, or of several together; those that are None are not shown."""

    evidence: list[Picture] = field(default_factory=list)  # what the estimate is based on
    scores: Picture | None = None
    label_shift_test: Picture | None = None
    sensitivity: Picture | None = None
    variants: Picture | None = None
    planning: Picture | None = None
    drivers: Picture | None = None
    series: Picture | None = None


def draw_estimate(estimate: PriorEstimate, name: str, targets: int = 1) -> Pictures:
    """Draw what an estimate is based on, for a page with a number of targets: the more, the fewer pictures of each.

    The identifiers of the SVG elements start with `name`.
    """
    displays = list(plots.displays_of(estimate).values())[: _MAX_PICTURES // targets]
    return Pictures(evidence=[draw(display, f"{name}-evidence{k}") for k, display in enumerate(displays)])


def draw_diagnosis(diagnosis: Diagnosis, name: str, targets: int = 1) -> Pictures:
    """Draw a diagnosis for a page with a number of targets: the more, the fewer pictures of each.

    The identifiers of the SVG elements start with `name`.
    """
    displays = plots.displays_of(diagnosis.estimate)
    scores = displays.pop("scores", None)
    has_content = {  # whether there is something to draw, by part of the diagnosis
        "label_shift_test": bool(diagnosis.label_shift_test.columns),
        "sensitivity": bool(diagnosis.sensitivity.source_priors),
        "variants": bool(diagnosis.sensitivity.variants),
        "planning": diagnosis.planning.reason is None,
    }
    pictures, drawn = Pictures(), _ORDER[: _MAX_PICTURES // targets]
    if "evidence" in drawn:
        pictures.evidence = [draw(d, f"{name}-evidence{k}") for k, d in enumerate(displays.values())]
    if "scores" in drawn and scores:
        pictures.scores = draw(scores, f"{name}-scores")
    for part in drawn:
        if has_content.get(part):
            setattr(pictures, part, draw(PARTS[part].from_diagnosis(diagnosis), f"{name}-{part}"))
    if targets == 1:
        pictures.drivers = draw_drivers(diagnosis, name)
    return pictures


def draw_drivers(diagnosis: Diagnosis, name: str) -> Picture | None:
    """Draw the columns that distinguish positives from the population; return None if there are none."""
    if not diagnosis.drivers:
        return None
    return draw(PARTS["drivers"].from_diagnosis(diagnosis), f"{name}-drivers")


def draw(display: plots.Display, name: str) -> Picture:
    """Draw a picture as an SVG element whose identifiers start with `name`."""
    return Picture(Markup(plots.svg(display, name=name)), display.caption)
