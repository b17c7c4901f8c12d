"""Progress of work that takes longer than a moment: a bar on a terminal if asked for, and nothing in a pipe.

Estimators ask for it by ``verbose=True``, the command line by :func:`show_progress`; what they call inherits it. The
app draws its own by :func:`listen_to_progress`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Listener = Callable[[str, int, int | None], None]  # receives the name, the steps or rows so far, and their total
_DELAY = 2.0  # seconds before a bar appears
_BAR_WIDTH = 20
_is_shown = ContextVar("progress is shown", default=False)
_listener: ContextVar[Listener | None] = ContextVar("listener of progress", default=None)


@contextmanager
def show_progress(verbose: bool) -> Iterator[None]:
    """Draw progress bars within this context if `verbose`, or if an outer context draws them."""
    token = _is_shown.set(verbose or _is_shown.get())
    try:
        yield
    finally:
        _is_shown.reset(token)


@contextmanager
def listen_to_progress(listener: Listener) -> Iterator[None]:
    """Report every step within this context to a listener, whether bars are drawn or not."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def track_progress(
    name: str, total: int | None, unit: Literal["step", "rows"] = "step"
) -> Iterator[Callable[..., None]]:
    """Yield a function to call when each step begins or, with their number, when rows were read (unit="rows").

    `name` is the work that is shown; `total` is the number of its steps or rows, None if it is not known.
    """
    start, done, is_drawn = time.monotonic(), 0, False

    def _advance(count: int = 1) -> None:
        """Count steps or rows, inform the listener, and redraw the bar after a delay."""
        nonlocal done, is_drawn
        done += count
        if (listener := _listener.get()) is not None:
            listener(name, done, total)
        if _is_shown.get() and sys.stderr is not None and sys.stderr.isatty() and time.monotonic() - start > _DELAY:
            sys.stderr.write(f"\r{_line(name, done, total, unit)}")
            sys.stderr.flush()
            is_drawn = True

    try:
        yield _advance
    finally:
        if is_drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def _line(name: str, done: int, total: int | None, unit: str) -> str:
    """Return the line that shows `done` of `total` rows as numbers, or steps as a bar; None is an unknown total."""
    if total is None:
        return f"{name}: {done:,} rows"
    if unit == "rows":
        return f"{name}: {done:,} of {total:,} rows"
    # the step that has just begun does not count as filled
    filled = _BAR_WIDTH * (done - 1) // total
    return f"{name} [{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] step {done} of {total}"
