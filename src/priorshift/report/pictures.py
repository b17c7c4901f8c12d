"""The pictures of a page: SVG by :mod:`priorshift.plots`, with a text alternative; as many as the page can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from priorshift import plots
from priorshift.diagnosis.diagnosis import Diagnosis
from priorshift.errors import InputError
from priorshift.result import PriorEstimate

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
