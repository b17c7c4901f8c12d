"""The parts of an Excel workbook (.xlsx): which sheets it has, and where their cells, texts and formats are.

What Excel would not write is refused with a reason: document types, unknown compression, rows and cells out of order.
Parts that are not needed may be missing.
"""

from __future__ import annotations

import posixpath
import re
import zlib
from collections.abc import Callable, Iterator
from functools import cached_property
from os import SEEK_END
from pathlib import Path
from typing import Any, TypeVar
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from priorshift.io.workbook_cells import (
    BOOK,
    RELATIONS,
    STYLES,
    Elements,
    PartReader,
    SharedStrings,
    SheetCells,
    Structure,
)
from priorshift.io.workbook_values import BUILT_IN, NUMBER, WorkbookError, kind_of_format, whole_number

# what a damaged file may raise, besides WorkbookError
DAMAGE = (
    BadZipFile, LookupError, ValueError, OSError, EOFError, NotImplementedError, RuntimeError, OverflowError,
    zlib.error, expat.ExpatError,
)  # fmt: skip

_BLOCK = 1 << 16  # bytes that are parsed at a time
_LONGEST_TAG = 1 << 24  # bytes of a tag or comment, which are in memory at once
_MOST_NAMES = 10_000  # different names of elements and attributes in a part; the parser stores each
_LONGEST_NAMES = 1_000_000  # characters of these names
_TAIL = 200 + (1 << 16)  # bytes at an archive's end that say where the list of its parts is, with the longest comment
_LARGEST_DIRECTORY = 1 << 22  # bytes of the list of an archive's parts
_AnyReader = TypeVar("_AnyReader", bound=PartReader)


def open_archive(path: Path) -> ZipFile:
    """Open an archive; refuse one whose list of parts, which is read at once, is larger than that of any workbook."""
    with path.open("rb") as file:
        file.seek(-min(path.stat().st_size, _TAIL), SEEK_END)
        tail = file.read()
    # the records at the end of the list, usual and of large archives: their beginning, and where they state its size
    for signature, start, end in ((b"PK\5\6", 12, 16), (b"PK\6\6", 40, 48)):
        for found in re.finditer(re.escape(signature), tail):
            stated = tail[found.start() + start : found.start() + end]
            is_elsewhere = stated == b"\xff" * 4  # in the other record
            if int.from_bytes(stated, "little") > _LARGEST_DIRECTORY and not is_elsewhere:
                raise WorkbookError("it has too many parts")
    return ZipFile(path)


class Workbook:
    """An open workbook: the names of its sheets, and their cells."""

    def __init__(self, archive: ZipFile) -> None:
        """Read which sheets a workbook has."""
        self._archive = archive
        self._parts: dict[str, ZipInfo] = {}  # by names without upper case, which do not matter
        for entry in archive.infolist():
            self._parts[entry.filename.replace("\\", "/").lstrip("/").casefold()] = entry
        if "mimetype" in self._parts:
            raise WorkbookError("it is a document of another kind")
        book = self._related(self._relations(""), "officeDocument")
        if book is None:
            raise WorkbookError("it has no workbook part")
        if book.endswith(".bin"):
            raise WorkbookError("it is a binary workbook (.xlsb)")
        relations = self._relations(book)
        self._shared_strings = self._related(relations, "sharedStrings")
        self._styles = self._related(relations, "styles")
        elements = self._elements(book, BOOK)
        self._counts_from_1904 = any(
            attributes.get("date1904") in ("1", "true") for name, attributes in elements if name == "workbookPr"
        )
        self._sheets: dict[str, str] = {}  # parts by the names of sheets
        for name, attributes in elements:
            kind, part = relations.get(attributes.get("id", ""), ("", ""))
            if name == "sheet" and kind == "worksheet" and part.casefold() in self._parts:  # others are charts
                if attributes["name"] in self._sheets:
                    raise WorkbookError("two of its sheets have the same name")
                self._sheets[attributes["name"]] = part
        if not self._sheets:
            raise WorkbookError("it has no sheets with cells")
        if len(self._sheets) > len({part.casefold() for part in self._sheets.values()}):
            raise WorkbookError("two of its sheets are the same part of the file")

    @property
    def sheets(self) -> list[str]:
        """Names of the sheets."""
        return list(self._sheets)

    def read_shared_strings(self, check: Callable[[SharedStrings], None] | None = None) -> SharedStrings:
        """Read the texts that cells refer to by number; call `check` after each block of bytes."""
        strings = SharedStrings()
        return strings if self._shared_strings is None else self._read(self._shared_strings, strings, check)

    def read_sheet(
        self,
        name: str,
        texts: list[str | None],
        *,
        check: Callable[[SheetCells], None] | None = None,
        count_only: bool = False,
    ) -> SheetCells:
        """Read the cells of a sheet, which refer to `texts`; call `check` after each block of bytes.

        If `count_only`, cells are read and counted, but not stored.
        """
        cells = SheetCells(texts, self._formats, counts_from_1904=self._counts_from_1904, count_only=count_only)
        return self._read(self._sheets[name], cells, check)

    @cached_property
    def _formats(self) -> list[int]:
        """The kind of each cell format, such as DATE."""
        kinds, formats = dict(BUILT_IN), []
        if self._styles is not None:
            for name, attributes in self._elements(self._styles, STYLES):
                if name in ("numFmt", "xf"):
                    number = whole_number(attributes.get("numFmtId", "0"))
                    if name == "numFmt":
                        kinds[number] = kind_of_format(attributes.get("formatCode", ""))
                    else:
                        formats.append(number)
        return [kinds.get(number, NUMBER) for number in formats]

    def _relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Return what a part, or with "" the workbook, relates to: kind and name of another part, by id."""
        folder, file = posixpath.split(part)
        path = posixpath.join(folder, "_rels", f"{file}.rels")
        relations = {}
        if path.casefold() in self._parts:
            for name, attributes in self._elements(path, RELATIONS):
                if name == "Relationship" and attributes.get("TargetMode") != "External":
                    kind, target = attributes["Type"].rpartition("/")[2], attributes["Target"].replace("\\", "/")
                    part_name = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
                    relations[attributes["Id"]] = kind, part_name
        return relations

    def _related(self, relations: dict[str, tuple[str, str]], kind: str) -> str | None:
        """Return the first existing part of a kind that is related; None if there is none."""
        parts = (part for one, part in relations.values() if one == kind and part.casefold() in self._parts)
        return next(parts, None)

    def _elements(self, part: str, structure: Structure) -> list[tuple[str, dict[str, str]]]:
        """Return name and attributes of the elements of a part that belong to its structure."""
        return self._read(part, Elements(structure), None).elements

    def _read(self, part: str, reader: _AnyReader, check: Callable[[_AnyReader], None] | None) -> _AnyReader:
        """Let a reader handle a part of the archive, call `check` after each block of bytes, and return the reader."""
        for _ in self._parse(part, reader):
            if check is not None:
                check(reader)
        return reader

    def _parse(self, part: str, reader: PartReader) -> Iterator[None]:
        """Parse a part of the archive; yield after each block of bytes."""
        entry = self._parts[part.casefold()]
        if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise WorkbookError("it is compressed in an unusual way")
        names: dict[str, str] = {}
        parser = expat.ParserCreate(intern=names)
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_document_type
        parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
        parser.CharacterDataHandler = reader.text
        n_bytes = n_pending = n_names = 0
        with self._archive.open(entry) as file:
            # an unfinished tag is parsed again with the next block, which is therefore as long
            while block := file.read(max(_BLOCK, n_pending)):
                parser.Parse(block, False)
                n_bytes += len(block)
                n_pending = n_bytes - parser.CurrentByteIndex
                if n_pending > _LONGEST_TAG:
                    raise WorkbookError("its XML has a very long tag")
                if len(names) > n_names:
                    n_names = len(names)
                    if n_names > _MOST_NAMES or sum(map(len, names)) > _LONGEST_NAMES:
                        raise WorkbookError("its XML has too many different names")
                yield
            parser.Parse(b"", True)
        yield


def _refuse_document_type(*_: Any) -> None:
    """Refuse a document type, few bytes of which can stand for many."""
    raise WorkbookError("its XML has a document type")
