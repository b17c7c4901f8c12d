"""Pictures of estimates and diagnoses, drawn with matplotlib or written as SVG.

Modules are imported when one of their names is used, since most programs draw nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from priorshift.plots.display import BLUE, GREY, ORANGE, Display
    from priorshift.plots.functions import (
        displays_of,
        distance_curve,
        label_shift,
        level_sets,
        mixture,
        objective,
        series,
    )
    from priorshift.plots.svg_export import svg

__all__ = [
    "BLUE",
    "GREY",
    "ORANGE",
    "Display",
    "displays_of",
    "distance_curve",
    "label_shift",
    "level_sets",
    "mixture",
    "objective",
    "series",
    "svg",
]
_MODULES = {"BLUE": "display", "GREY": "display", "ORANGE": "display", "Display": "display", "svg": "svg_export"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'functions')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
