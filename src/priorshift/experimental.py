"""Experimental features that may still change: private releases, and exact kernel sums on a cluster.

Each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from priorshift.distributed.exact import kernel_sums
    from priorshift.sketch.private import release

__all__ = ["kernel_sums", "release"]

_DEFINED_IN = {"kernel_sums": "priorshift.distributed.exact", "release": "priorshift.sketch.private"}


def __getattr__(name: str) -> Any:
    """Import an experimental name when it is first used (PEP 562)."""
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_DEFINED_IN[name]), name)
