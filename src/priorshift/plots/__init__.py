"""Pictures, each of which knows the numbers that it draws and says them in words, on Axes or as SVG for a page.

Rooms are opened when a name of theirs is asked for: most who import the library draw nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from priorshift.plots.columns import DriversDisplay as DriversDisplay
    from priorshift.plots.columns import LabelShiftDisplay as LabelShiftDisplay
    from priorshift.plots.curves import DistanceDisplay as DistanceDisplay
    from priorshift.plots.curves import LevelSetsDisplay as LevelSetsDisplay
    from priorshift.plots.curves import ObjectiveDisplay as ObjectiveDisplay
    from priorshift.plots.curves import RatioOfShares as RatioOfShares
    from priorshift.plots.display import BLUE as BLUE
    from priorshift.plots.display import GREY as GREY
    from priorshift.plots.display import ORANGE as ORANGE
    from priorshift.plots.display import Display as Display
    from priorshift.plots.functions import displays_of as displays_of
    from priorshift.plots.functions import distance_curve as distance_curve
    from priorshift.plots.functions import draw_parts as draw_parts
    from priorshift.plots.functions import label_shift as label_shift
    from priorshift.plots.functions import level_sets as level_sets
    from priorshift.plots.functions import mixture as mixture
    from priorshift.plots.functions import objective as objective
    from priorshift.plots.functions import series as series
    from priorshift.plots.ratio import PlanningDisplay as PlanningDisplay
    from priorshift.plots.ratio import ShiftDisplay as ShiftDisplay
    from priorshift.plots.samples import PlaneDisplay as PlaneDisplay
    from priorshift.plots.scores import MixtureDisplay as MixtureDisplay
    from priorshift.plots.scores import ScoresDisplay as ScoresDisplay
    from priorshift.plots.source_prior import IdentificationDisplay as IdentificationDisplay
    from priorshift.plots.source_prior import SensitivityDisplay as SensitivityDisplay
    from priorshift.plots.svg_export import svg as svg
    from priorshift.plots.targets import SeriesDisplay as SeriesDisplay
    from priorshift.plots.variants import VariantsDisplay as VariantsDisplay

# no room has the name of a function: it would stand in its place
_NAMES = {
    "columns": ("DriversDisplay", "LabelShiftDisplay"),
    "curves": ("DistanceDisplay", "LevelSetsDisplay", "ObjectiveDisplay", "RatioOfShares"),
    "display": ("BLUE", "GREY", "ORANGE", "Display"),
    "functions": (
        "displays_of",
        "distance_curve",
        "draw_parts",
        "label_shift",
        "level_sets",
        "mixture",
        "objective",
        "series",
    ),
    "ratio": ("PlanningDisplay", "ShiftDisplay"),
    "samples": ("PlaneDisplay",),
    "scores": ("MixtureDisplay", "ScoresDisplay"),
    "source_prior": ("IdentificationDisplay", "SensitivityDisplay"),
    "svg_export": ("svg",),
    "targets": ("SeriesDisplay",),
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
