"""Summaries of parts, merged up a tree, so that only small things travel between machines.

Every task is a pure function of its part and of what is in the graph, so that a scheduler that loses a worker computes
again what was lost with it, and nothing else. Input errors and warnings are returned as part of an outcome until they
reach the user: a scheduler would retry a bad table, and print a traceback for each attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

from priorshift import threads
from priorshift.errors import InputError, MissingExtraError, PriorShiftWarning
from priorshift.warning_records import WarningRecord, record_warnings, warn

FAN_IN = 8  # summaries that one task merges: few enough for their sizes not to matter, and a flat tree
_RETRIES = 2  # of a task that fails for another reason than bad input, such as storage that did not respond


@dataclass(frozen=True)
class Outcome:
    """What a task returns."""

    value: Any  # None for parts without rows
    error: InputError | None = None  # why there is no value
    warnings: tuple[WarningRecord, ...] = ()

    @classmethod
    def run(cls, work: Callable[..., Any], *arguments: Any, place: str = "") -> Outcome:
        """Run some work on this thread alone; an error names the place."""
        with record_warnings(PriorShiftWarning, show=False) as warnings, threads.alone():
            try:
                value, error = work(*arguments), None
            except InputError as raised:
                value, error = None, type(raised)(f"{place}: {raised}" if place else str(raised))
        return cls(value, error, tuple(dict.fromkeys(warnings)))

    def __sizeof__(self) -> int:
        """Return the size in bytes, values included, which a scheduler cannot find out otherwise."""
        return object.__sizeof__(self) + _size(self.value)


def _size(thing: Any) -> int:
    from dask.sizeof import sizeof

    inside = getattr(thing, "__dict__", None)
    return int(sizeof(thing)) if inside is None else sum(map(_size, inside.values()))


def combine(work: Callable[..., Any], *outcomes: Outcome) -> Outcome:
    """Run some work on the values of other outcomes, unless one of them is an error."""
    error = next((one.error for one in outcomes if one.error is not None), None)
    outcome = Outcome(None, error) if error else Outcome.run(work, *(one.value for one in outcomes))
    warnings = dict.fromkeys(warning for one in (*outcomes, outcome) for warning in one.warnings)
    return replace(outcome, warnings=tuple(warnings))


def tree(outcomes: Sequence[Any], merge: Callable[[Any, Any], Any], fan_in: int = FAN_IN) -> Any:
    """Merge Delayed outcomes, neighbours first, `fan_in` at a time; return the Delayed result."""
    join = import_dask().delayed(combine, pure=False)
    level, work = list(outcomes), partial(_merge_all, merge)
    while len(level) > 1:
        level = [join(work, *level[k : k + fan_in]) for k in range(0, len(level), fan_in)]
    return level[0]


def _merge_all(merge: Callable[[Any, Any], Any], *summaries: Any) -> Any:
    """Merge several summaries; None stands for parts without rows."""
    nonempty = [one for one in summaries if one is not None]
    return reduce(merge, nonempty) if nonempty else None


def compute(outcomes: Iterable[Any], client: Any = None) -> list[Any]:
    """Return the values of Delayed outcomes, computed in one graph; raise their errors and issue their warnings."""
    if client is not None and not (hasattr(client, "submit") and hasattr(client, "gather")):
        raise InputError(f"client is of type {type(client).__name__}, but a distributed.Client is expected; pass one.")
    computed: tuple[Outcome, ...] = import_dask().compute(*outcomes, scheduler=client, retries=_RETRIES)
    for one in computed:  # before any warning, which must not hide why another one failed
        if one.error is not None:
            raise one.error
    for one in computed:
        for category, message in one.warnings:
            warn(message, category)
    return [one.value for one in computed]


def import_dask() -> Any:
    """Import Dask, or say how to install it."""
    try:
        import dask
    except ImportError:
        raise MissingExtraError(
            'ps.distributed needs dask, which is not installed; run pip install "priorshift[dask]".'
        ) from None
    return dask
