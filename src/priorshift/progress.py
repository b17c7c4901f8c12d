"""A bar on a terminal for work that takes longer than a moment; nothing in a pipe, and nothing unless asked for.

Estimators ask by ``verbose=True``, the command line by :func:`shown`; what they call inherits it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Self

_PATIENCE = 2.0  # seconds before a bar appears
_wanted = ContextVar("progress is shown", default=False)


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
        self.draw(f"{self.name}: {self.done:,} {'' if self.rows is None else f'of {self.rows:,} '}rows")
