"""Standard output and standard error of the program, which may be closed, broken, or unable to show a character.

It imports next to nothing, so that the program starts fast.
"""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import contextmanager

TYPE_CHECKING = False  # typing's own would cost an import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TextIO

# what is printed instead of characters that the encoding of a stream lacks, such as cp1252 on Windows
_REPLACEMENTS = {
    "π": "pi", "γ": "gamma", "δ": "delta", "ε": "epsilon", "λ": "lambda", "ρ": "rho", "τ": "tau", "χ": "chi",
    "−": "-", "′": "'", "≤": "<=", "≥": ">=", "→": "->", "←": "<-",
}  # fmt: skip
_READABLE = "priorshift.readable"  # name of the error handler of streams


def prepare_streams() -> None:
    """Open the null device in place of closed streams, and never fail at a character that a stream cannot encode.

    A shell closes streams by ``2>&-``. Without the null device the next opened file would get the stream's number, and
    ``print(file=None)`` would print errors on standard output.
    """
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)  # takes the number only: reading still fails with a message
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open until the program ends)
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    codecs.register_error(_READABLE, _replace)
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):  # not if it was replaced by an object of another kind
            reconfigure(errors=_READABLE)


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Return what is printed instead of the characters that cannot be encoded, and the position after them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    return "".join(_REPLACEMENTS.get(character, ascii(character)[1:-1]) for character in characters), error.end


def can_print(text: str) -> bool:
    """Return whether standard output can encode a text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


class OutputError(Exception):
    """Standard output cannot be written, for example because the disk is full."""


class _CheckedStream:
    """A stream whose errors of writing are OutputErrors, so that they are not taken for those of a file."""

    def __init__(self, stream: TextIO) -> None:
        """Wrap a stream."""
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(_unwritable(error)) from None

    def flush(self) -> None:
        """Write what is still buffered."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(_unwritable(error)) from None

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the stream."""
        return getattr(self._stream, name)


def _unwritable(error: OSError) -> str:
    """Return the message about an error of writing to standard output."""
    return f"cannot write the output: {error.strerror or error}."


@contextmanager
def checked_output() -> Iterator[None]:
    """Raise OutputError if standard output cannot be written, except for a reader that has ended (BrokenPipeError)."""
    stream: Any = sys.stdout
    sys.stdout = _CheckedStream(stream)
    try:
        yield
    finally:
        sys.stdout = stream


def print_last(text: str = "") -> int:
    """Print a text, after what is still buffered, and return the exit code: 0, or 2 with a message if this fails.

    It does not fail if the program that reads the output has ended.
    """
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        discard(sys.stdout)
    except OSError as error:
        discard(sys.stdout)
        print_error(f"priorshift: {_unwritable(error)}")
        return 2
    return 0


def print_error(*words: str, end: str = "\n") -> None:
    """Print words on standard error; a failure is ignored, since the result on standard output matters more."""
    try:
        print(*words, end=end, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that Python does not try to print the rest at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except OSError:  # the stream was replaced by an object that is not a file
        return
