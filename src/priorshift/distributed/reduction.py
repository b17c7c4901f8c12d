"""Summaries of parts, merged up a tree: what is small travels, and nothing is held on one worker alone.

Every task is a pure function of its part and of what travels in the graph, so a scheduler that loses a worker makes
again what was lost with it, and nothing else. What a part is refused for, and what is warned of it, is an outcome like
any other until it reaches the user: a scheduler would try a bad table again, and print a traceback for each try.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

from priorshift import threads
from priorshift.errors import InputError, MissingExtraError, PriorShiftWarning
from priorshift.io.parameters import check_count
from priorshift.warning_records import WarningRecord, record_warnings, warn

Merge = Callable[[Any, Any], Any]

FAN_IN = 8  # summaries that one task merges: few enough for their sizes not to matter, and a flat tree
_RETRIES = 2  # of a task that fails for another reason than bad input, such as storage that did not answer


@dataclass(frozen=True)
class Outcome:
    """What became of one part or more.

    Attributes
    ----------
    value : object
        The summary; None of parts without rows.
    refused : InputError or None
        Why there is none.
    said : tuple of (type, str)
        What was warned.
    """

    value: Any
    refused: InputError | None = None
    said: tuple[WarningRecord, ...] = ()

    @classmethod
    def of(cls, work: Callable[..., Any], *arguments: Any, place: str = "") -> Outcome:
        """Do the work, on this thread alone; an error says where it was met."""
        with record_warnings(PriorShiftWarning, show=False) as said, threads.alone():
            try:
                value, refused = work(*arguments), None
            except InputError as error:
                value, refused = None, type(error)(f"{place}: {error}" if place else str(error))
        return cls(value, refused, tuple(dict.fromkeys(said)))

    def __sizeof__(self) -> int:
        """What it is worth to a scheduler, which looks into no object but by this: a summary may have megabytes."""
        return object.__sizeof__(self) + _size(self.value)

    def open(self) -> Any:
        """The value, where the user can read what was said; or the sentence why there is none."""
        for category, message in self.said:
            warn(message, category)
        if self.refused is not None:
            raise self.refused
        return self.value


def _size(thing: Any) -> int:
    from dask.sizeof import sizeof

    inside = getattr(thing, "__dict__", None)
    return int(sizeof(thing)) if inside is None else sum(map(_size, inside.values()))


def together(work: Callable[..., Any], *outcomes: Outcome) -> Outcome:
    """The outcome of work on the values of others, unless one of them was refused."""
    refused = next((one.refused for one in outcomes if one.refused is not None), None)
    made = Outcome(None, refused) if refused else Outcome.of(work, *(one.value for one in outcomes))
    return replace(made, said=tuple(dict.fromkeys(word for one in (*outcomes, made) for word in one.said)))


def tree(outcomes: Sequence[Any], merge: Merge, fan_in: int = FAN_IN) -> Any:
    """A Delayed that merges Delayed outcomes, neighbours first, so many at a time."""
    join = import_dask().delayed(together, pure=False)
    level, work = list(outcomes), partial(_merged, merge)
    while len(level) > 1:
        level = [join(work, *level[k : k + fan_in]) for k in range(0, len(level), fan_in)]
    return level[0]


def _merged(merge: Merge, *summaries: Any) -> Any:
    """One summary of several; parts without rows have none."""
    there = [one for one in summaries if one is not None]
    return reduce(merge, there) if there else None


def compute(roots: Iterable[Any], client: Any = None) -> list[Any]:
    """The values of Delayed outcomes, all in one graph; `client` is as in `reduce_parts`."""
    if client is not None and not (hasattr(client, "submit") and hasattr(client, "gather")):
        raise InputError(f"client is of type {type(client).__name__}, but a distributed.Client is expected; pass one.")
    outcomes: tuple[Outcome, ...] = import_dask().compute(*roots, scheduler=client, retries=_RETRIES)
    for one in outcomes:  # a warning of one that is well must not hide why another is not
        if one.refused is not None:
            raise one.refused
    return [one.open() for one in outcomes]


def reduce_parts(parts: Sequence[Any], merge: Merge, *, fan_in: int = FAN_IN, client: Any = None) -> Any:
    """Merge the summaries of many parts up a tree, each where it is.

    Parameters
    ----------
    parts : sequence of Delayed or Future
        Each the summary of one part of the data: anything that `merge` takes, or None of a part without rows.
    merge : callable
        ``merge(a, b)`` is the summary of the parts of both. It must be associative, and must not change `a` or `b`.
    fan_in : int
        How many summaries are merged by one task.
    client : distributed.Client or None
        Who computes; None is the current client where there is one, and else Dask's scheduler on this machine.

    Returns
    -------
    object
        The summary of all parts, merged in their order; None if all parts were without rows.

    Examples
    --------
    >>> from dask import delayed
    >>> from priorshift.distributed import reduce_parts
    >>> reduce_parts([delayed(word) for word in ("any", "number", "of", "parts")], lambda a, b: f"{a} {b}")
    'any number of parts'
    """
    delayed = import_dask().delayed
    check_count("fan_in", fan_in, 2)
    if not parts:
        raise InputError("parts is empty, so there is nothing to merge; pass one summary at least.")
    outcome = delayed(Outcome, pure=False)
    return compute([tree([outcome(part) for part in parts], merge, fan_in)], client)[0]


def import_dask() -> Any:
    """Dask, or a sentence."""
    try:
        import dask
    except ImportError:
        raise MissingExtraError(
            'ps.distributed needs dask, which is not installed; run pip install "priorshift[dask]".'
        ) from None
    return dask
