"""The file format of sketches, score models and histograms: a JSON header, then plain arrays.

Nothing in a file is ever executed, so a file from someone else can be read without trusting them. A file is, in order:

====================  ==================================================================================================
bytes                 what
====================  ==================================================================================================
16                    ``priorshift file`` and a line feed, in ASCII
8                     the length of the header in bytes, L, an unsigned little-endian integer
L                     the header: one JSON object in UTF-8, padded with spaces so that L is a multiple of 8
1 to 8 per number     the arrays, back to back in the order of the header's list, each in C order (the last index runs
                      fastest), little-endian
32                    SHA-256 of every byte before it
====================  ==================================================================================================

The header's object has exactly these keys: ``"format"``, the number 2; ``"kind"``, a word such as ``"sketch"``;
``"priorshift"``, the version of the library that wrote the file; ``"header"``, an object with what the kind needs; and
``"arrays"``, a list of objects with ``"name"`` (unique), ``"dtype"`` and ``"shape"`` (a list of whole numbers; ``[]``
is a single number). A dtype is ``"<f8"``, a float of 64 bits; ``"<i8"``, a signed integer of 64 bits; or ``"|u1"``,
``"<u2"`` or ``"<u4"``, an unsigned one of 8, 16 or 32 bits. Integers are written in the smallest unsigned type that
holds all of an array, and in ``"<i8"`` if none does. All numbers are finite, in the header and in the arrays. A later
format keeps the magic line, the length, ``"format"`` and the checksum at the end, so that every reader can tell a newer
file from a damaged one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError
from priorshift.io.files import MAGIC, Fields, atomic_write
from priorshift.version import __version__

CHECKPOINT = "checkpoint"  # the kind of a file that holds a sketch or histogram of the first rows

_FORMAT = 2
_ITEM_BYTES = {"|u1": 1, "<u2": 2, "<u4": 4, "<i8": 8, "<f8": 8}  # size of a number, by its dtype
_LENGTH_BYTES = 8  # size of the field that holds the header's length
_CHECKSUM_BYTES = 32
_MAX_HEADER_BYTES = 64 << 20  # far more than the levels of any table
# memory in bytes that parsing takes at most for each of these characters of a header, besides the text itself
_PARSED_BYTES = {",": 60, "[": 90, "{": 130, ":": 160}
_MEMORY_FACTOR = 10  # parsing a header may take this many times the size of the file
_MIN_MEMORY = 1 << 20  # bytes of memory that any file may take
_MAX_DEPTH = 32  # of nested lists and objects
# a bracket, or a string with the brackets in it; also an unterminated string, so that none is scanned twice
_BRACKET_OR_STRING = re.compile(rb'[\[\]{}]|"(?:[^"\\]++|\\.?)*+"?', re.DOTALL)
_MAX_AXES = 8
_BLOCK_BYTES = 1 << 20  # read or checked at a time
_HEADER_KEYS = {"format", "kind", "priorshift", "header", "arrays"}


@dataclass(frozen=True, eq=False)
class Contents:
    """The contents of a file, read and checked."""

    kind: str  # such as "sketch"
    header: dict[str, Any]  # JSON values
    arrays: dict[str, NDArray[Any]]  # float64 or int64, by their names in the file


class Saveable(ABC):
    """An object that can be saved to a file and loaded from it."""

    KIND: ClassVar[str]  # as in the file

    def __init_subclass__(cls) -> None:
        """Register the class for `load`, under the kind of its files."""
        if "KIND" in vars(cls):
            _CLASSES[cls.KIND] = cls

    @abstractmethod
    def to_contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the header, JSON values by key, and the arrays by name, of the file that `save` writes."""

    @classmethod
    @abstractmethod
    def from_contents(cls, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build the object from the header and the arrays of a file, which is not trusted; check them."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to a file, which holds numbers and no rows. An existing file is replaced.

        Parameters
        ----------
        path : str or path
            Path of the file.
        """
        write(path, self.KIND, *self.to_contents())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load from a file that `save` wrote. Its contents are checked, and nothing in it is executed.

        Parameters
        ----------
        path : str or path
            Path of the file.

        Returns
        -------
        Sketch, ScoreModel or Histogram
            An object of this class.
        """
        loaded: Self = _load(path, {cls.KIND: cls})
        return loaded


_CLASSES: dict[str, type[Saveable]] = {}  # by their kind in a file


def load(path: str | os.PathLike[str]) -> Any:
    """Load a sketch, a score model or a histogram from a file.

    Parameters
    ----------
    path : str or path
        Path of a file that `save` of one of them wrote.

    Returns
    -------
    Sketch, ScoreModel or Histogram

    Examples
    --------
    >>> import tempfile
    >>> from priorshift.sketch import Sketch, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Sketch.from_sample([[1.0, 2.0], [3.0, 5.0], [2.0, 2.0]], features=64).save(f"{folder}/a.sketch")
    ...     print(load(f"{folder}/a.sketch"))
    sketch of 3 rows: 64 random features of a gaussian kernel, bandwidth 1, 2 columns
    """
    return _load(path, _CLASSES)


def _load(path: str | os.PathLike[str], classes: Mapping[str, type[Saveable]]) -> Any:
    """Load an object of one of the `classes`, given by the kinds of their files; errors name the path."""
    contents = read(path, tuple(classes))
    try:
        return classes[contents.kind].from_contents(contents.header, contents.arrays)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def check_arrays(
    arrays: Mapping[str, NDArray[Any]],
    shapes: Mapping[str, tuple[int, ...]],
    fields: Fields,
    integers: Sequence[str] = (),
) -> None:
    """Raise InputError if arrays of a file have other names, shapes or types than expected.

    `shapes` are the expected shapes by name. The arrays named in `integers` hold integers, all others floats. `fields`
    is the header that the arrays belong to, which messages name.
    """
    if arrays.keys() != shapes.keys():
        raise fields.refused(f"it has the arrays {sorted(arrays)} where {sorted(shapes)} are expected")
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise fields.refused(f"its {name!r} has the shape {arrays[name].shape}, not {shape}")
        if arrays[name].dtype.kind != ("i" if name in integers else "f"):
            raise fields.refused(f"its {name!r} holds numbers of the type {arrays[name].dtype}")


def write(
    path: str | os.PathLike[str],
    kind: str,
    header: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    *,
    private: bool = False,
) -> None:
    """Write a header and arrays as a file of this `kind`, in the module's format, completely or not at all.

    A `private` file can be read by its owner alone.
    """
    stored = {name: _to_stored(array, name) for name, array in arrays.items()}
    entries = [{"name": name, "dtype": a.dtype.str, "shape": list(a.shape)} for name, a in stored.items()]
    metadata = {"format": _FORMAT, "kind": kind, "priorshift": __version__, "header": header, "arrays": entries}
    text = json.dumps(metadata, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the arrays begin at a multiple of 8
    parts: list[bytes | memoryview] = [MAGIC, len(text).to_bytes(_LENGTH_BYTES, "little"), text]
    parts += [_as_bytes(array) for array in stored.values()]
    digest = hashlib.sha256()
    with atomic_write(path, private=private) as temporary, temporary.open("wb") as file:
        for part in parts:
            digest.update(part)
            file.write(part)
        file.write(digest.digest())


def read(path: str | os.PathLike[str], kinds: Sequence[str]) -> Contents:
    """Read a file of one of these `kinds`, such as "sketch"; raise InputError if it violates the format anywhere."""
    try:
        if not Path(path).exists():
            raise InputError(f"{str(path)[:200]!r} does not exist; check the path.")
        if not Path(path).is_file():
            raise InputError(f"{path} is a folder, a pipe or a device; pass a file that priorshift saved.")
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            metadata = _read_header(file, size, f"{path}")
            arrays = _read_arrays(file, size, metadata, kinds, f"{path}")
            return Contents(metadata["kind"], metadata["header"], arrays)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}); check its permissions.") from None


def _to_stored(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Convert an array to little-endian numbers in C order, in a type of the format; refuse those that are not finite.

    Floats become float64, integers the smallest type that holds them.
    """
    numbers, dtype = np.asarray(array), "<f8"
    if numbers.dtype.kind != "f":
        numbers = numbers.astype(np.int64, casting="safe")
        low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
        unsigned = [name for name in ("|u1", "<u2", "<u4") if low >= 0 and high <= np.iinfo(name).max]
        dtype = unsigned[0] if unsigned else "<i8"
    stored = np.ascontiguousarray(numbers.astype(dtype))
    if not _is_finite(stored):
        raise InputError(f"{name!r} holds a number that is not finite, so it cannot be saved; look for overflow.")
    return stored.reshape(numbers.shape)


def _as_bytes(array: NDArray[Any]) -> memoryview:
    """Return the memory of a contiguous array as bytes, without a copy."""
    return array.reshape(-1).view(np.uint8).data


def _is_finite(array: NDArray[Any]) -> bool:
    """Check that all numbers are finite, block by block, to save memory."""
    numbers, step = array.reshape(-1), _BLOCK_BYTES // 8  # at most 8 bytes for each number
    return all(bool(np.isfinite(numbers[k : k + step]).all()) for k in range(0, len(numbers), step))


def _read_header(file: BinaryIO, size: int, name: str) -> dict[str, Any]:
    """Read and check the header of a file of `size` bytes, after checking the checksum of the whole file.

    Leaves the file at the start of the arrays. `name` is the file's name in messages.
    """
    magic = file.read(len(MAGIC))
    if magic != MAGIC:
        problem = "is not a file that priorshift saved" if magic else "is empty"
        hint = ": it is a Parquet file" if magic.startswith(b"PAR1") else ""
        raise InputError(f"{name} {problem}{hint}; pass a file that save() or priorshift sketch wrote.")
    length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    start = len(MAGIC) + _LENGTH_BYTES
    if size < start + _CHECKSUM_BYTES or length > size - start - _CHECKSUM_BYTES:
        raise _damaged(name, "it is shorter than it says")
    _check_checksum(file, size, name)
    if length > _MAX_HEADER_BYTES:
        raise _damaged(name, f"its header has {length} bytes, more than {_MAX_HEADER_BYTES}")
    file.seek(start)
    metadata = _parse_header(file.read(length), size, name)
    version = metadata.get("format")
    if isinstance(version, int) and version > _FORMAT:
        reason = f"{name} is written in format {str(version)[:40]}, but priorshift {__version__} reads format {_FORMAT}"
        raise InputError(f"{reason}; install a newer version.")
    if type(version) is int and 0 < version < _FORMAT:  # no released version wrote an earlier format
        raise InputError(f"{name} is written in format {version}, which is no longer read; write the file again.")
    if metadata.keys() != _HEADER_KEYS or type(version) is not int or version != _FORMAT:  # 2.0 equals 2
        raise _damaged(name, "its header has missing or unknown keys")
    types = {"kind": str, "priorshift": str, "header": dict}
    if not all(isinstance(metadata[key], expected) for key, expected in types.items()):
        raise _damaged(name, "its header has values of the wrong type")
    return metadata


def _check_checksum(file: BinaryIO, size: int, name: str) -> None:
    """Raise InputError unless a file of `size` bytes ends with the SHA-256 of all bytes before it."""
    digest, remaining = hashlib.sha256(), size - _CHECKSUM_BYTES
    file.seek(0)
    while remaining and (block := file.read(min(remaining, _BLOCK_BYTES))):
        digest.update(block)
        remaining -= len(block)
    if digest.digest() != file.read(_CHECKSUM_BYTES):
        raise _damaged(name, "its checksum does not match")


def _parse_header(text: bytes, size: int, name: str) -> dict[str, Any]:
    """Parse the header of a file of `size` bytes: JSON without NaN, infinity or duplicate keys.

    Memory and depth are bounded before parsing, so that a malicious file cannot exhaust them.
    """

    def parse_number(digits: str) -> float:
        """Convert a number, or the constant NaN or Infinity; refuse those that are not finite."""
        number = float(digits)
        if not math.isfinite(number):
            raise ValueError
        return number

    def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Build a JSON object from keys and values; refuse duplicate keys."""
        values = dict(pairs)
        if len(values) < len(pairs):
            raise ValueError
        return values

    not_json = _damaged(name, "its header is not valid JSON")
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError:
        raise not_json from None
    # an upper bound of the memory that parsing takes, from the number of brackets, commas and colons
    memory = 2 * sys.getsizeof(decoded) + sum(cost * decoded.count(mark) for mark, cost in _PARSED_BYTES.items())
    if memory > max(_MEMORY_FACTOR * size, _MIN_MEMORY):
        raise _damaged(name, "its header has more values than a file of its size can have")
    if _is_too_deep(text):
        raise _damaged(name, "its header is too deeply nested")
    try:
        metadata = json.loads(
            decoded, parse_constant=parse_number, parse_float=parse_number, object_pairs_hook=build_object
        )
    except ValueError:
        raise not_json from None
    if not isinstance(metadata, dict):
        raise _damaged(name, "its header is not a JSON object")
    return metadata


def _is_too_deep(text: bytes) -> bool:
    """Check whether brackets are nested too deeply; done before parsing, which takes memory for each level."""
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text):  # brackets inside strings do not count
        first = text[match.start()]  # a bracket, or the quote of a string
        if first in b"[{":
            depth += 1
        elif first in b"]}":
            depth -= 1
        if depth > _MAX_DEPTH:
            return True
    return False


def _read_arrays(
    file: BinaryIO, size: int, metadata: dict[str, Any], kinds: Sequence[str], name: str
) -> dict[str, NDArray[Any]]:
    """Read the arrays that the header describes, from a file of `size` bytes whose kind must be one of `kinds`.

    That the arrays' sizes add up to the bytes in the file is checked before memory is allocated.
    """
    if metadata["kind"] not in kinds:
        kind, expected = metadata["kind"][:40], " or ".join(f"a {kind}" for kind in kinds)
        printable = kind if kind.isprintable() else ascii(kind)
        raise InputError(f"{name} holds a {printable}, but {expected} is expected; pass another file.")
    available = size - file.tell() - _CHECKSUM_BYTES
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {}  # dtype and shape of each array, in the order of the file
    impossible = _damaged(name, "its header describes an impossible array")
    if not isinstance(metadata["arrays"], list):
        raise impossible
    for entry in metadata["arrays"]:
        if not _describes_array(entry, available) or entry["name"] in shapes:
            raise impossible
        shapes[entry["name"]] = entry["dtype"], tuple(entry["shape"])
    declared = sum(_ITEM_BYTES[dtype] * math.prod(shape) for dtype, shape in shapes.values())  # bytes
    if declared != available:
        raise _damaged(name, f"its header declares {declared} bytes of arrays, but {available} are present")
    arrays = {}
    for key, (dtype, shape) in shapes.items():
        array = np.empty(shape, dtype=dtype)
        if array.size and file.readinto(_as_bytes(array)) != array.nbytes:  # type: ignore[attr-defined]
            raise _damaged(name, "it is shorter than it says")
        if not _is_finite(array):
            raise _damaged(name, f"its array {key[:40]!r} holds a number that is not finite")
        # in the machine's byte order
        arrays[key] = array.astype(np.float64 if array.dtype.kind == "f" else np.int64, copy=False)
    return arrays


def _describes_array(entry: Any, available: int) -> bool:
    """Check whether an entry of the header's list "arrays" describes an array that fits into the available bytes."""
    if not (isinstance(entry, dict) and entry.keys() == {"name", "dtype", "shape"} and isinstance(entry["name"], str)):
        return False
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in _ITEM_BYTES:
        return False
    if not isinstance(entry["shape"], list) or len(entry["shape"]) > _MAX_AXES:
        return False
    # `type(…) is int`, because True is an instance of int
    return all(type(length) is int and 0 <= length <= available for length in entry["shape"])


def _damaged(name: str, reason: str) -> InputError:
    """Return the error for a file that does not follow the format."""
    return InputError(f"{name} is damaged or was changed ({reason}); get it again, or write it again.")
