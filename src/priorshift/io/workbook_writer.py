"""Writing Excel workbooks (.xlsx) with one sheet, row by row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from priorshift.errors import InputError
from priorshift.io.cells import is_missing_value
from priorshift.io.workbook_cells import MOST_COLUMNS, MOST_ROWS
from priorshift.io.workbook_values import LONGEST_TEXT, column_letters
from priorshift.result_tables import to_plain

_SHEET = "xl/worksheets/sheet1.xml"
_MOST_BYTES = 2**31 - 2**16  # of a sheet; a larger one needs a format of archives that Excel repairs
_DAY = timedelta(days=1)
_FIRST_DAY = datetime(1899, 12, 30)  # for dates after February 1900; Excel cannot store those before 1900
_NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_DATE, _MOMENT, _DURATION = 1, 2, 3  # numbers of cell formats in _PARTS
_PARTS = {
    "[Content_Types].xml": (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPES}.sheet.main+xml"/>'
        f'<Override PartName="/{_SHEET}" ContentType="{_TYPES}.worksheet+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_TYPES}.styles+xml"/></Types>'
    ),
    "_rels/.rels": (
        f'<Relationships xmlns="{_RELATIONS}">'
        f'<Relationship Id="rId1" Type="{_KINDS}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/_rels/workbook.xml.rels": (
        f'<Relationships xmlns="{_RELATIONS}">'
        f'<Relationship Id="rId1" Type="{_KINDS}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="rId2" Type="{_KINDS}/styles" Target="styles.xml"/></Relationships>'
    ),
    "xl/styles.xml": (
        f'<styleSheet xmlns="{_NAMESPACE}"><numFmts count="3"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>'
        '<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/><numFmt numFmtId="166" formatCode="[h]:mm:ss"/>'
        '</numFmts><fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
        '<fills count="2"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill></fills>'
        '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
        '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
        '<cellXfs count="4"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
        + "".join(
            f'<xf numFmtId="{number}" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
            for number in (164, 165, 166)
        )
        + '</cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
    ),
}
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
# characters that XML does not have, and an underscore that a reader would take for the start of such a character's code
_CODED = re.compile("[\0-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
_SURROGATE = re.compile("[\ud800-\udfff]")


def write_workbook(output: Path, rows: Iterable[Sequence[Any]], title: str = "Sheet") -> None:
    """Write rows, the first of which is the header, as a workbook with one sheet; None and NaN are empty cells."""
    book = (
        f'<workbook xmlns="{_NAMESPACE}" xmlns:r="{_KINDS}"><sheets>'
        f'<sheet name={quoteattr(title)} sheetId="1" r:id="rId1"/></sheets></workbook>'
    )
    with ZipFile(output, "w", ZIP_DEFLATED) as archive:
        for part, content in {**_PARTS, "xl/workbook.xml": book}.items():
            archive.writestr(_entry(part), _XML + content)
        with archive.open(_entry(_SHEET), "w") as sheet:
            _write_sheet(sheet, rows, output.name)


def _write_sheet(sheet: IO[bytes], rows: Iterable[Sequence[Any]], name: str) -> None:
    """Write rows as the XML of a sheet; `name` is that of the workbook, for messages."""
    letters: list[str] = []
    n_bytes = sheet.write(f'{_XML}<worksheet xmlns="{_NAMESPACE}"><sheetData>'.encode())
    for number, row in enumerate(rows, 1):
        if number > MOST_ROWS or len(row) > MOST_COLUMNS:
            size = f"more than {MOST_ROWS:,} rows" if number > MOST_ROWS else f"{len(row):,} columns"
            raise InputError(f"{name} would have {size}, which Excel does not allow; write a .csv file.")
        letters += [column_letters(k) for k in range(len(letters) + 1, len(row) + 1)]
        cells = "".join(_cell(value, f"{letters[k]}{number}") for k, value in enumerate(row))
        line = f'<row r="{number}">{cells}</row>'.encode()
        n_bytes += len(line)
        if n_bytes > _MOST_BYTES:
            raise InputError(f"{name} would have a sheet of more than 2 GiB; write a .csv file.")
        sheet.write(line)
    sheet.write(b"</sheetData></worksheet>")


def _entry(part: str) -> ZipInfo:
    """Return the entry of a part in the archive, which has the same date in every workbook."""
    entry = ZipInfo(part)
    entry.compress_type = ZIP_DEFLATED
    return entry


def _cell(value: Any, place: str) -> str:
    """Return the XML of a cell at a place such as AB12; "" for an empty cell."""
    value = None if is_missing_value(value) else to_plain(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{value:d}</v></c>'
    if isinstance(value, (int, float)):
        return f'<c r="{place}"><v>{value!r}</v></c>'
    style, days = _as_days(value)
    if style:
        return f'<c r="{place}" s="{style}"><v>{days!r}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{_text(str(value))}</t></is></c>'


def _as_days(value: Any) -> tuple[int, float]:
    """Return format and number of a duration or a date; format 0 for others, also dates that Excel cannot store."""
    if isinstance(value, timedelta):
        return _DURATION, value / _DAY
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        days = (moment.replace(tzinfo=None) - _FIRST_DAY) / _DAY
        if days > 60:
            return (_DATE if days.is_integer() else _MOMENT), days
    return 0, 0.0


def _text(text: str) -> str:
    """Return a text as XML, cut to the length that Excel allows."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[: LONGEST_TEXT - 1]}…"
    return escape(_CODED.sub(lambda match: f"_x{ord(match[0]):04X}_", _SURROGATE.sub("\ufffd", text)))
