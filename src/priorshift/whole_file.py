"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from priorshift.errors import InputError


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A draft beside the wanted file, which takes its place once it is complete; a link to it stays a link.

    Parameters
    ----------
    path : str or path
        Of the wanted file.

    Yields
    ------
    Path
        Of the draft.
    """
    try:
        file = Path(os.path.realpath(path))
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            draft = Path(folder) / file.name
            yield draft
            if file.exists():
                shutil.copymode(file, draft)
            os.replace(draft, file)
    except OSError as error:  # whose own file name would be the draft's
        raise InputError(f"{path} cannot be written ({error.strerror or error}); nothing was.") from None
