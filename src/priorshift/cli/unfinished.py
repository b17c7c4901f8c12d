"""Work that was interrupted: kept beside the wanted file, and gone on from when the same command is given again.

What is kept is a sketch of the first rows, with the settings and the files, as they were, that it is of. It is never
thrown away for another command: what does not fit is refused.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from priorshift.errors import InputError
from priorshift.input.fields import Fields
from priorshift.sketch import Histogram, Sketch, container

_SECONDS = 30.0  # between two times that it is kept

Made = Sketch | Histogram


def files_as_they_are(files: Sequence[Path]) -> list[list[Any]]:
    """Path, size and time of each, by which it is seen whether one has changed."""
    told = [(file.resolve(), file.stat()) for file in files]
    return [[str(path), about.st_size, about.st_mtime_ns] for path, about in told]


@dataclass(frozen=True)
class Unfinished:
    """Where work is kept, and what it is of."""

    path: str
    files: list[list[Any]]  # none where rows come through a pipe, which cannot be gone on with
    settings: dict[str, Any]  # None where one was not given
    load: Callable[[container.Contents], Made]

    def resume(self) -> Made | None:
        """What was kept of the same work, which stderr is told of; None where nothing was."""
        if not os.path.lexists(self.path):
            return None
        try:
            found = container.read(self.path, [container.UNFINISHED])
        except InputError as error:
            why = str(error).split(";")[0]
            raise InputError(
                f"{why}; unfinished work is kept there, so move it away, or name another --output."
            ) from None
        fields = Fields(found.header, "files settings made", f"unfinished work in {self.path}")
        if other := self._difference(fields.source):
            raise InputError(
                f"{self.path} holds unfinished work of another command ({other}); give that one again to go on with "
                "it, or remove the file to begin anew."
            )
        made = self.load(container.Contents(container.UNFINISHED, fields.source["made"], found.arrays))
        print(f"priorshift: going on after {len(made):,} rows, which {self.path} has kept.", file=sys.stderr)
        return made

    def finish(self, growing: Iterator[Made], before: Made | None) -> Made:
        """The whole, from what was made before on; what is made is kept every now and then."""
        made, kept = before, time.monotonic()
        try:
            for made in growing:
                if self.files and time.monotonic() - kept >= _SECONDS:
                    self._keep(made)
                    kept = time.monotonic()
        except KeyboardInterrupt:
            if made is None or not self.files:
                raise
            self._keep(made)
            raise KeyboardInterrupt(
                f"interrupted after {len(made):,} rows, which {self.path} keeps; give the same command again to go on."
            ) from None
        if made is None:
            raise InputError("there are no rows; pass files that have some.")  # which reading them says before
        return made

    def remove(self) -> None:
        """Leave nothing behind, once the wanted file is there."""
        Path(self.path).unlink(missing_ok=True)

    def _keep(self, made: Made) -> None:
        header, arrays = made.to_contents()
        container.write(
            self.path, container.UNFINISHED, {"files": self.files, "settings": self.settings, "made": header}, arrays
        )

    def _difference(self, was: dict[str, Any]) -> str | None:
        """In what other work differs from this, if it does."""
        if was["files"] != self.files:
            return "of other files, or of files that have changed since"
        if not isinstance(was["settings"], dict) or was["settings"].keys() != self.settings.keys():
            return "of another version"
        for option, value in self.settings.items():
            before = was["settings"][option]
            if before != value:
                return f"--{option.replace('_', '-')} was {'not given' if before in (None, []) else before}"
        return None
