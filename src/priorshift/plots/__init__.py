"""Pictures, each of which knows the numbers that it draws and says them in words, on Axes or as SVG for a page.

Rooms are opened when a name of theirs is asked for: most who import the library draw nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from priorshift.plots.display import BLUE as BLUE
    from priorshift.plots.display import GREY as GREY
    from priorshift.plots.display import ORANGE as ORANGE
    from priorshift.plots.display import Display as Display
    from priorshift.plots.distance import DistanceDisplay as DistanceDisplay
    from priorshift.plots.drivers import DriversDisplay as DriversDisplay
    from priorshift.plots.fragment import svg as svg
    from priorshift.plots.functions import distance_curve as distance_curve
    from priorshift.plots.functions import label_shift as label_shift
    from priorshift.plots.functions import level_sets as level_sets
    from priorshift.plots.functions import mixture as mixture
    from priorshift.plots.functions import objective as objective
    from priorshift.plots.functions import series as series
    from priorshift.plots.identification import IdentificationDisplay as IdentificationDisplay
    from priorshift.plots.objective_curve import ObjectiveDisplay as ObjectiveDisplay
    from priorshift.plots.of_estimate import displays_of as displays_of
    from priorshift.plots.p_values import MixtureDisplay as MixtureDisplay
    from priorshift.plots.parts import draw_parts as draw_parts
    from priorshift.plots.plane import PlaneDisplay as PlaneDisplay
    from priorshift.plots.planning import PlanningDisplay as PlanningDisplay
    from priorshift.plots.scores import ScoresDisplay as ScoresDisplay
    from priorshift.plots.sensitivity import SensitivityDisplay as SensitivityDisplay
    from priorshift.plots.shares import LevelSetsDisplay as LevelSetsDisplay
    from priorshift.plots.shares import RatioOfShares as RatioOfShares
    from priorshift.plots.shift import ShiftDisplay as ShiftDisplay
    from priorshift.plots.side_by_side import SeriesDisplay as SeriesDisplay
    from priorshift.plots.unexplained import LabelShiftDisplay as LabelShiftDisplay
    from priorshift.plots.variants import VariantsDisplay as VariantsDisplay

# no room has the name of a function: it would stand in its place
_NAMES = {
    "display": ("BLUE", "GREY", "ORANGE", "Display"),
    "distance": ("DistanceDisplay",),
    "drivers": ("DriversDisplay",),
    "fragment": ("svg",),
    "functions": ("distance_curve", "label_shift", "level_sets", "mixture", "objective", "series"),
    "identification": ("IdentificationDisplay",),
    "objective_curve": ("ObjectiveDisplay",),
    "of_estimate": ("displays_of",),
    "p_values": ("MixtureDisplay",),
    "parts": ("draw_parts",),
    "plane": ("PlaneDisplay",),
    "planning": ("PlanningDisplay",),
    "scores": ("ScoresDisplay",),
    "sensitivity": ("SensitivityDisplay",),
    "shares": ("LevelSetsDisplay", "RatioOfShares"),
    "shift": ("ShiftDisplay",),
    "side_by_side": ("SeriesDisplay",),
    "unexplained": ("LabelShiftDisplay",),
    "variants": ("VariantsDisplay",),
}
_ROOMS = {name: room for room, names in _NAMES.items() for name in names}
__all__ = sorted(_ROOMS)


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
