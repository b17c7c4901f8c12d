"""The one file format of sketches, score models and histograms: a header of words and numbers, then plain arrays.

Nothing in a file is ever run, so a file from someone else can be read without trusting them. A file is, in this order:

====================  ==================================================================================================
bytes                 what
====================  ==================================================================================================
16                    ``priorshift file`` and a line feed, in ASCII
8                     the length of the header in bytes, L, an unsigned little-endian integer
L                     the header: one JSON object in UTF-8, filled up with spaces so that L is a multiple of 8
8 for each number     the arrays, back to back in the order of the header's list, each in C order (the last index runs
                      fastest), little-endian
32                    SHA-256 of every byte before it
====================  ==================================================================================================

The header's object has exactly these keys: ``"format"``, the number 1; ``"kind"``, a word such as ``"sketch"``;
``"priorshift"``, the version of the library that wrote the file; ``"header"``, an object with what the kind needs; and
``"arrays"``, a list of objects with ``"name"`` (each its own), ``"dtype"`` (``"<f8"``, a float of 64 bits, or
``"<i8"``, a signed integer of 64 bits) and ``"shape"`` (a list of whole numbers; ``[]`` is a single number). All
numbers are finite, in the header and in the arrays. A later format keeps the magic line, the length, ``"format"`` and
the checksum at the end, so that every reader can tell a newer file from a damaged one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError
from priorshift.io.files import atomic_write
from priorshift.version import __version__

UNFINISHED = "unfinished work"  # the kind of a sketch that is still growing

_MAGIC = b"priorshift file\n"
_FORMAT = 1
_LENGTH = 8  # bytes of the header's length
_DIGEST = 32
_LONGEST_HEADER = 64 << 20  # bytes: far more than the levels of any table
# bytes of memory that a value of a header takes at most beside its text, by the mark that comes with it
_TAKEN = {",": 60, "[": 90, "{": 130, ":": 160}
_TIMES = 10  # the size of a file is the memory that reading it may take
_AT_LEAST = 1 << 20  # bytes of memory that any file may take
_DEEPEST = 32  # lists within lists
# a bracket, or a string with the brackets in it; also one without an end, so that none is begun twice
_BRACKET_OR_STRING = re.compile(rb'[\[\]{}]|"(?:[^"\\]++|\\.?)*+"?', re.DOTALL)
_DEEPER = dict.fromkeys(b"[{", 1) | dict.fromkeys(b"]}", -1)
_MOST_AXES = 8
_BLOCK = 1 << 20  # bytes looked at together
_KEYS = {"format", "kind", "priorshift", "header", "arrays"}

_Made = TypeVar("_Made")


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file holds.

    Attributes
    ----------
    kind : str
        Such as "sketch".
    header : dict
        Words and numbers.
    arrays : dict
        Of float64 and int64, by name.
    """

    kind: str
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write a file, whole or not at all.

    Parameters
    ----------
    path : str or path
        A file that is there already is replaced.
    kind : str
        Such as "sketch".
    header : dict
        What JSON can hold, without NaN.
    arrays : dict
        Of numbers, by name; floats are kept as float64, integers as int64.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from priorshift.sketch import container
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     container.write(f"{folder}/a.sketch", "sketch", {"rows": 2}, {"mean": np.array([0.5, 2.0])})
    ...     contents = container.read(f"{folder}/a.sketch", ["sketch"])
    >>> contents.header, contents.arrays["mean"]
    ({'rows': 2}, array([0.5, 2. ]))
    """
    kept = {name: _plain(array, name) for name, array in arrays.items()}
    listed = [{"name": name, "dtype": a.dtype.str, "shape": list(a.shape)} for name, a in kept.items()]
    about = {"format": _FORMAT, "kind": kind, "priorshift": __version__, "header": header, "arrays": listed}
    text = json.dumps(about, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the arrays begin at a multiple of 8
    parts: list[bytes | memoryview] = [_MAGIC, len(text).to_bytes(_LENGTH, "little"), text]
    parts += [_bytes_of(array) for array in kept.values()]
    digest = hashlib.sha256()
    with atomic_write(path) as draft, draft.open("wb") as file:
        for part in parts:
            digest.update(part)
            file.write(part)
        file.write(digest.digest())


def read(path: str | os.PathLike[str], kinds: Sequence[str], name: str = "") -> Contents:
    """Read a file that :func:`write` wrote; everything that is wrong with it is refused with a sentence.

    Parameters
    ----------
    path : str or path
        Of the file.
    kinds : sequence of str
        Those that are expected.
    name : str
        What messages call it, beside its path.

    Returns
    -------
    Contents
    """
    said = f"{name} ({path})" if name else f"{path}"
    try:
        with _opened(Path(path), said) as file:
            size = os.fstat(file.fileno()).st_size
            about = _read_about(file, size, said)
            return Contents(about["kind"], about["header"], _read_arrays(file, size, about, kinds, said))
    except OSError as error:
        raise InputError(f"{said} cannot be read ({error.strerror or error}); check its permissions.") from None


def load(path: str | os.PathLike[str], makers: Mapping[str, Callable[[Contents], _Made]]) -> _Made:
    """Read a file, and make of it what its kind says; what is wrong with it is said of its path.

    Parameters
    ----------
    path : str or path
        Of the file.
    makers : mapping
        Of the kinds that are expected to what makes something of the contents.

    Returns
    -------
    object
        What the maker of the file's kind made.
    """
    contents = read(path, tuple(makers))
    try:
        return makers[contents.kind](contents)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def is_saved(path: Any) -> bool:
    """Whether it is the path of a file that begins like one of ours; whether it is whole, `read` finds out.

    Parameters
    ----------
    path : object
        Anything.

    Returns
    -------
    bool
    """
    try:
        if not (isinstance(path, (str, os.PathLike)) and Path(path).is_file()):
            return False
        with Path(path).open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except (OSError, ValueError):
        return False


def _plain(array: NDArray[Any], name: str) -> NDArray[Any]:
    """In the form that it has in a file."""
    numbers = np.asarray(array)
    made = np.ascontiguousarray(numbers.astype("<f8" if numbers.dtype.kind == "f" else "<i8", casting="safe"))
    if not _is_finite(made):
        raise InputError(f"{name!r} holds a number that is not finite, so it cannot be saved; look for overflow.")
    return made.reshape(numbers.shape)


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _is_finite(array: NDArray[Any]) -> bool:
    flat = array.reshape(-1)
    return all(bool(np.isfinite(flat[k : k + _BLOCK // 8]).all()) for k in range(0, len(flat), _BLOCK // 8))


def _opened(path: Path, said: str) -> BinaryIO:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"{said} does not exist; check the path.") from None
    except ValueError:  # a zero in it
        raise InputError(f"{str(path)[:40]!r} is not a path; pass the path of a saved file.") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{said} is a folder, but a file that priorshift saved is expected; name a file in it.")
    if not stat.S_ISREG(mode):
        raise InputError(f"{said} is a pipe or a device, but a file that priorshift saved is expected; pass a file.")
    return path.open("rb")


def _read_about(file: BinaryIO, size: int, said: str) -> dict[str, Any]:
    """The header, after the checksum of the whole file, which is read block by block."""
    begin = file.read(len(_MAGIC))
    if begin != _MAGIC:
        what = "is empty" if not begin else "is not a file that priorshift saved"
        table = ": it is a Parquet file" if begin.startswith(b"PAR1") else ""
        raise InputError(f"{said} {what}{table}; pass a file that save() or priorshift sketch wrote.")
    length = int.from_bytes(file.read(_LENGTH), "little")
    start = len(_MAGIC) + _LENGTH
    if size < start + _DIGEST or length > size - start - _DIGEST:
        raise _damaged(said, "it is shorter than it says")
    if _checksum(file, size) != _stored_checksum(file, size):
        raise _damaged(said, "its checksum does not fit")
    if length > _LONGEST_HEADER:
        raise _damaged(said, f"its header has {length} bytes, more than {_LONGEST_HEADER}")
    file.seek(start)
    about = _parsed(file.read(length), size, said)
    written = about.get("format")
    if isinstance(written, int) and written > _FORMAT:
        raise InputError(
            f"{said} is written in format {str(written)[:40]}, but this version of priorshift ({__version__}) reads "
            f"format {_FORMAT}; install a newer one."
        )
    if about.keys() != _KEYS or written is not _FORMAT:
        raise _damaged(said, "its header lacks something, or has something besides")
    if not all(isinstance(about[key], str) for key in ("kind", "priorshift")) or not isinstance(about["header"], dict):
        raise _damaged(said, "its header is of another make")
    return about


def _checksum(file: BinaryIO, size: int) -> bytes:
    digest, left = hashlib.sha256(), size - _DIGEST
    file.seek(0)
    while left and (block := file.read(min(left, _BLOCK))):
        digest.update(block)
        left -= len(block)
    return digest.digest()


def _stored_checksum(file: BinaryIO, size: int) -> bytes:
    file.seek(size - _DIGEST)
    return file.read(_DIGEST)


def _parsed(text: bytes, size: int, said: str) -> dict[str, Any]:
    """The header's object; no NaN, no infinity, no key twice, not too deep and not of too many values for the file."""

    def refuse(_: str) -> Any:
        raise ValueError

    def number(digits: str) -> float:
        made = float(digits)
        return made if math.isfinite(made) else refuse(digits)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        return made if len(made) == len(pairs) else refuse("")

    not_json = _damaged(said, "its header is not the JSON that it should be")
    try:
        words = text.decode("utf-8")
    except UnicodeDecodeError:
        raise not_json from None
    if _memory(words) > max(_TIMES * size, _AT_LEAST):
        raise _damaged(said, "its header has more values than a file of its size can have")
    if _is_too_deep(text):
        raise _damaged(said, "its header is too deeply nested")
    try:
        about = json.loads(words, parse_constant=refuse, parse_float=number, object_pairs_hook=once)
    except ValueError:
        raise not_json from None
    if not isinstance(about, dict):
        raise _damaged(said, "its header is not a JSON object")
    return about


def _memory(words: str) -> int:
    """Bytes that a header takes at most once it is read, told before it is: brackets take far more than their text."""
    return 2 * sys.getsizeof(words) + sum(taken * words.count(mark) for mark, taken in _TAKEN.items())


def _is_too_deep(text: bytes) -> bool:
    """Whether brackets stand too deep within each other; asked before they are read, which takes memory for each."""
    depth = 0
    for found in _BRACKET_OR_STRING.finditer(text):
        depth += _DEEPER.get(text[found.start()], 0)
        if depth > _DEEPEST:
            return True
    return False


def _read_arrays(
    file: BinaryIO, size: int, about: dict[str, Any], kinds: Sequence[str], said: str
) -> dict[str, NDArray[Any]]:
    """The arrays; that their sizes add up to the bytes that are there is seen before memory is taken."""
    if about["kind"] not in kinds:
        holds, expected = _called(about["kind"][:40]), " or ".join(map(_called, kinds))
        raise InputError(f"{said} holds {holds}, but {expected} is expected; pass another file.")
    there = size - file.tell() - _DIGEST
    forms: dict[str, tuple[str, tuple[int, ...]]] = {}
    listed: list[Any] = about["arrays"] if isinstance(about["arrays"], list) else [None]
    for one in listed:
        if not _is_form(one, there) or one["name"] in forms:
            raise _damaged(said, "its header describes an array in a way that cannot be")
        forms[one["name"]] = one["dtype"], tuple(one["shape"])
    declared = sum(8 * math.prod(shape) for _, shape in forms.values())
    if declared != there:
        raise _damaged(said, f"its header declares {declared} bytes of arrays and {there} are there")
    arrays = {}
    for name, (kind, shape) in forms.items():
        array = np.empty(shape, dtype=kind)
        if array.size and file.readinto(_bytes_of(array)) != array.nbytes:  # type: ignore[attr-defined]
            raise _damaged(said, "it is shorter than it says")
        if not _is_finite(array):
            raise _damaged(said, f"its array {name[:40]!r} holds a number that is not finite")
        arrays[name] = array.astype(kind.replace("<", "="), copy=False)
    return arrays


def _is_form(one: Any, there: int) -> bool:
    """Whether it describes an array that fits into so many bytes."""
    if not (isinstance(one, dict) and one.keys() == {"name", "dtype", "shape"} and isinstance(one["name"], str)):
        return False
    if one["dtype"] not in ("<f8", "<i8") or not isinstance(one["shape"], list) or len(one["shape"]) > _MOST_AXES:
        return False
    return all(type(length) is int and 0 <= length <= there for length in one["shape"])


def _called(kind: str) -> str:
    shown = kind if kind.isprintable() else ascii(kind)
    return shown if kind == UNFINISHED else f"a {shown}"


def _damaged(said: str, why: str) -> InputError:
    return InputError(f"{said} is damaged or was changed ({why}); get it again, or write it anew.")
