"""The interval on a line from 0 to 1, as a small graphic whose letters keep their size on every screen.

The pictures of a page: SVG by :mod:`priorshift.plots`, with a text alternative; as many as the page can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup

from priorshift import plots
from priorshift.diagnosis.diagnosis import Diagnosis
from priorshift.errors import InputError
from priorshift.report.numbers import is_told
from priorshift.results import PriorEstimate

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


_MOST = 16  # of one page, which stays small and is drawn in seconds
_ORDER = ("rests", "scores", "label_shift", "sensitivity", "variants", "planning")  # what is left out last comes first


@dataclass(frozen=True)
class Picture:
    """A picture as it stands in a page.

    Attributes
    ----------
    svg : Markup
        The drawing.
    description : str
        What it shows, in sentences.
    """

    svg: Markup
    description: str


@dataclass
class Pictures:
    """The pictures of one target, or of several together; what is None is not shown.

    Attributes
    ----------
    rests : list of Picture
        What the estimate rests on.
    scores, label_shift, sensitivity, variants, planning, drivers, series : Picture or None
        Each by its part.
    """

    rests: list[Picture] = field(default_factory=list)
    scores: Picture | None = None
    label_shift: Picture | None = None
    sensitivity: Picture | None = None
    variants: Picture | None = None
    planning: Picture | None = None
    drivers: Picture | None = None
    series: Picture | None = None


def of_estimate(estimate: PriorEstimate, name: str, targets: int = 1) -> Pictures:
    """Draw what an estimate rests on.

    Parameters
    ----------
    estimate : PriorEstimate
        Of any method.
    name : str
        By which ids of the drawings are told apart.
    targets : int
        How many share the page.

    Returns
    -------
    Pictures
    """
    shown = [d for d in plots.displays_of(estimate)][: max(_MOST // targets, 0)]
    return Pictures(rests=[_drawn(display, f"{name}-rests{k}") for k, display in enumerate(shown)])


def of_diagnosis(found: Diagnosis, name: str, targets: int = 1) -> Pictures:
    """Draw a diagnosed target.

    Parameters
    ----------
    found : Diagnosis
        Of one target.
    name : str
        By which ids of the drawings are told apart.
    targets : int
        How many share the page.

    Returns
    -------
    Pictures
    """
    made = Pictures()
    for part in _ORDER[: _MOST // targets]:
        if part == "rests":
            made.rests = [_drawn(d, f"{name}-rests{k}") for k, d in enumerate(_resting(found.estimate))]
        else:
            setattr(made, part, _of_part(part, found, name))
    if targets == 1:
        made.drivers = of_drivers(found, name)
    return made


def of_drivers(found: Diagnosis, name: str) -> Picture | None:
    """Draw the columns that tell positives from the population.

    Parameters
    ----------
    found : Diagnosis
        Whose drivers are those of all targets.
    name : str
        By which ids of the drawing are told apart.

    Returns
    -------
    Picture or None
        None where there are none.
    """
    return _made(lambda: plots.DriversDisplay.from_diagnosis(found), f"{name}-drivers") if found.drivers else None


def of_series(estimates: Mapping[str, PriorEstimate]) -> Picture | None:
    """Draw several estimates.

    Parameters
    ----------
    estimates : PriorEstimates
        By their names.

    Returns
    -------
    Picture or None
    """
    return _made(lambda: plots.SeriesDisplay.from_estimates(estimates), "series")


def _resting(estimate: PriorEstimate) -> Iterator[Any]:
    """Without the scores, which have a part of their own."""
    return (d for d in plots.displays_of(estimate) if not isinstance(d, plots.ScoresDisplay))


def _of_part(part: str, found: Diagnosis, name: str) -> Picture | None:
    there = {
        "label_shift": found.label_shift_test.columns,
        "sensitivity": found.sensitivity.source_priors,
        "variants": found.sensitivity.variants,
        "planning": found.planning.reason is None,
    }
    if not there.get(part, True):
        return None
    drawn: dict[str, Callable[[], Any]] = {
        "scores": lambda: plots.ScoresDisplay.from_estimate(found.estimate),
        "label_shift": lambda: plots.LabelShiftDisplay.from_diagnosis(found),
        "sensitivity": lambda: plots.SensitivityDisplay.from_diagnosis(found),
        "variants": lambda: plots.VariantsDisplay.from_diagnosis(found),
        "planning": lambda: plots.PlanningDisplay.from_diagnosis(found),
    }
    return _made(drawn[part], f"{name}-{part}")


def _made(display: Callable[[], Any], name: str) -> Picture | None:
    """None where there is nothing to draw."""
    try:
        return _drawn(display(), name)
    except InputError:
        return None


def _drawn(display: Any, name: str) -> Picture:
    return Picture(Markup(plots.svg(display, name=name)), display.description)
