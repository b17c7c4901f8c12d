"""A bar on a terminal for work that takes longer than a moment; nothing in a pipe."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_PATIENCE = 2.0  # seconds before a bar appears


class Progress:
    """Counts steps; from the second second on, and only on a terminal, it draws them.

    Examples
    --------
    >>> from priorshift.progress import Progress
    >>> with Progress("fitting", 3) as step:
    ...     step()
    """

    def __init__(self, name: str, steps: int) -> None:
        self.name, self.steps, self.done = name, steps, 0
        self.start = time.monotonic()
        self.shown = False

    def __enter__(self) -> Progress:
        return self

    def __call__(self) -> None:
        """Begin the next step."""
        self.done += 1
        if sys.stderr.isatty() and time.monotonic() - self.start > _PATIENCE:
            filled = 20 * (self.done - 1) // self.steps
            sys.stderr.write(f"\r{self.name} [{'#' * filled}{'.' * (20 - filled)}] step {self.done} of {self.steps}")
            sys.stderr.flush()
            self.shown = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
