"""A bar on a terminal for work that takes longer than a moment; nothing in a pipe, and nothing unless asked for.

Estimators ask by ``verbose=True``, the command line by :func:`shown`; what they call inherits it. A page that draws its
own listens by :func:`heard`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Self

_PATIENCE = 2.0  # seconds before a bar appears
_wanted = ContextVar("progress is shown", default=False)
Listener = Callable[[str, int, int | None], None]  # the work's name, how many steps or rows were begun, and of how many
_listener: ContextVar[Listener | None] = ContextVar("who hears of progress", default=None)


@contextmanager
def shown(verbose: bool) -> Iterator[None]:
    """Draw bars within it, if `verbose` or if they were drawn before.

    Parameters
    ----------
    verbose : bool
        Whether to draw.
    """
    token = _wanted.set(verbose or _wanted.get())
    try:
        yield
    finally:
        _wanted.reset(token)


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """Tell a listener of every step within it, at once, whether bars are drawn or not.

    Parameters
    ----------
    listener : callable
        Is given the name of the work, the number of steps (or rows) so far, and how many there are, or None.

    Examples
    --------
    >>> from priorshift.progress import Progress, heard
    >>> with heard(print), Progress("fitting", 3) as step:
    ...     step()
    fitting 1 3
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class _Bar:
    """A line on the terminal that is drawn again and again, and gone in the end."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.drawn = False

    def __enter__(self) -> Self:
        return self

    def draw(self, line: str) -> None:  # numpydoc ignore=GL08
        if _wanted.get() and sys.stderr.isatty() and time.monotonic() - self.start > _PATIENCE:
            sys.stderr.write(f"\r{line}")
            sys.stderr.flush()
            self.drawn = True

    def tell(self, name: str, done: int, of: int | None) -> None:  # numpydoc ignore=GL08
        if (listener := _listener.get()) is not None:
            listener(name, done, of)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


class Progress(_Bar):
    """Counts steps; after two seconds, where bars are wanted and stderr is a terminal, it draws them.

    Parameters
    ----------
    name : str
        Of the work.
    steps : int
        How many there are.

    Examples
    --------
    >>> from priorshift.progress import Progress
    >>> with Progress("fitting", 3) as step:
    ...     step()
    """

    def __init__(self, name: str, steps: int) -> None:
        super().__init__()
        self.name, self.steps, self.done = name, steps, 0

    def __call__(self) -> None:
        """Begin the next step."""
        self.done += 1
        self.tell(self.name, self.done, self.steps)
        filled = 20 * (self.done - 1) // self.steps
        self.draw(f"{self.name} [{'#' * filled}{'.' * (20 - filled)}] step {self.done} of {self.steps}")


class RowProgress(_Bar):
    """Counts rows, and draws as :class:`Progress` does; how many there are need not be known.

    Parameters
    ----------
    name : str
        Of the work.
    rows : int or None
        How many there are.

    Examples
    --------
    >>> from priorshift.progress import RowProgress
    >>> with RowProgress("reading", None) as more:
    ...     more(1000)
    """

    def __init__(self, name: str, rows: int | None) -> None:
        super().__init__()
        self.name, self.rows, self.done = name, rows, 0

    def __call__(self, rows: int) -> None:
        """Count more rows.

        Parameters
        ----------
        rows : int
            How many.
        """
        self.done += rows
        self.tell(self.name, self.done, self.rows)
        self.draw(f"{self.name}: {self.done:,} {'' if self.rows is None else f'of {self.rows:,} '}rows")
