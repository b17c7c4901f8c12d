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


class Progress:
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
        self.name, self.steps, self.done = name, steps, 0
        self.start = time.monotonic()
        self.drawn = False

    def __enter__(self) -> Progress:
        return self

    def __call__(self) -> None:
        """Begin the next step."""
        self.done += 1
        if _wanted.get() and sys.stderr.isatty() and time.monotonic() - self.start > _PATIENCE:
            filled = 20 * (self.done - 1) // self.steps
            sys.stderr.write(f"\r{self.name} [{'#' * filled}{'.' * (20 - filled)}] step {self.done} of {self.steps}")
            sys.stderr.flush()
            self.drawn = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
