"""Pictures of a page: the interval on a line, and SVG by :mod:`priorshift.plots` with text alternatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup

from priorshift import plots
from priorshift.diagnosis.diagnosis import Diagnosis
from priorshift.plots.functions import PARTS
from priorshift.report.numbers import is_informative
from priorshift.results import PriorEstimate

_LEFT, _WIDTH = 4.0, 92.0  # of the axis, in percent of the graphic
_STEPS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
_MAX_TICKS = 6
_MAX_PICTURES = 16  # of one page, to keep it small and fast to draw
_ORDER = ("evidence", "scores", "label_shift_test", "sensitivity", "variants", "planning")  # the first are kept longest


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
        """Choose an axis from 0 to 1, or shorter where everything is near 0."""
        ends = estimate.interval
        values = (estimate.value, ends.high if ends else np.nan, estimate.source_prior)
        most = max((value for value in values if value == value), default=1)
        step = next((s for s in _STEPS if s * (_MAX_TICKS - 1) >= min(1.15 * most, 1.0)), _STEPS[-1])
        top = 1.0 if most > 0.5 else min(step * (_MAX_TICKS - 1), 1.0)
        step = 0.2 if top == 1.0 else step

        def _at(value: float) -> float | None:
            return round(_LEFT + _WIDTH * value / top, 3) if 0 <= value <= top else None

        at_ticks = np.round(np.arange(0, top + step / 2, step), 6)
        ticks = tuple((float(_at(tick) or _LEFT), f"{tick:g}") for tick in at_ticks if tick <= top)
        low, high = (None, None) if ends is None else (_at(ends.low), _at(min(ends.high, top)))
        value = _at(estimate.value) if is_informative(estimate) else None
        return cls(value, low, high, _at(estimate.source_prior), ticks)


@dataclass(frozen=True)
class Picture:
    """A drawing with its text alternative."""

    svg: Markup
    description: str


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
    """Draw an estimate; `name` starts the identifiers, and so many targets share the page."""
    displays = list(plots.displays_of(estimate).values())[: _MAX_PICTURES // targets]
    return Pictures(evidence=[_draw(display, f"{name}-evidence{k}") for k, display in enumerate(displays)])


def draw_diagnosis(diagnosis: Diagnosis, name: str, targets: int = 1) -> Pictures:
    """Draw a diagnosed target; `name` starts the identifiers, and so many targets share the page."""
    pictures, displays = Pictures(), plots.displays_of(diagnosis.estimate)
    scores = displays.pop("scores", None)
    has_part = {
        "label_shift_test": bool(diagnosis.label_shift_test.columns),
        "sensitivity": bool(diagnosis.sensitivity.source_priors),
        "variants": bool(diagnosis.sensitivity.variants),
        "planning": diagnosis.planning.reason is None,
    }
    for part in _ORDER[: _MAX_PICTURES // targets]:
        if part == "evidence":
            pictures.evidence = [_draw(d, f"{name}-evidence{k}") for k, d in enumerate(displays.values())]
        elif part == "scores":
            pictures.scores = _draw(scores, f"{name}-scores") if scores else None
        elif has_part[part]:
            setattr(pictures, part, _draw_part(diagnosis, part, name))
    if targets == 1:
        pictures.drivers = draw_drivers(diagnosis, name)
    return pictures


def draw_drivers(diagnosis: Diagnosis, name: str) -> Picture | None:
    """Draw the columns that distinguish positives from the population, if there are any."""
    return _draw_part(diagnosis, "drivers", name) if diagnosis.drivers else None


def draw_series(estimates: Mapping[str, PriorEstimate]) -> Picture:
    """Draw the estimates of several targets side by side."""
    return _draw(plots.displays_of(estimates)["series"], "series")


def _draw_part(diagnosis: Diagnosis, part: str, name: str) -> Picture:
    return _draw(PARTS[part].from_diagnosis(diagnosis), f"{name}-{part}")


def _draw(display: plots.Display, name: str) -> Picture:
    return Picture(Markup(plots.svg(display, name=name)), display.description)
