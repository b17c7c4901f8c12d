"""Pictures of estimates and diagnoses, drawn with matplotlib or written as SVG.

Modules are imported when one of their names is used, since most programs draw nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from priorshift.plots.display import BLUE, GREY, ORANGE, Display, svg
    from priorshift.plots.functions import (
        class_shares,
        displays_of,
        distance_curve,
        label_shift,
        level_sets,
        mixture,
        monitor,
        objective,
        series,
        simplex,
    )

__all__ = ["BLUE", "GREY", "ORANGE", "Display", "class_shares", "displays_of", "distance_curve", "label_shift",
           "level_sets", "mixture", "monitor", "objective", "series", "simplex", "svg"]  # fmt: skip
_DISPLAY = ("BLUE", "GREY", "ORANGE", "Display", "svg")  # defined in that module, others in `functions`


def __getattr__(name: str) -> Any:
    """Import the module that defines a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'display' if name in _DISPLAY else 'functions'}"), name)


def __dir__() -> list[str]:
    """Return the names of the module, with those that are not imported yet."""
    return sorted({*globals(), *__all__})
