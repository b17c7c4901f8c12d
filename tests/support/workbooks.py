"""Workbooks with parts that tests choose, and what the library reads from them."""

import io
import random
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from priorshift.app.uploads import Limits
from priorshift.errors import InputError
from priorshift.io.readers import read_table
from priorshift.io.workbook_parts import Workbook
from priorshift.io.workbook_writer import write_workbook
from priorshift.io.workbooks import WorkbookSize, measure_workbook

NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
SHEET, STYLES, BOOK = "xl/worksheets/sheet1.xml", "xl/styles.xml", "xl/workbook.xml"


def rewrite(path: Path, changes: dict, compression=zipfile.ZIP_DEFLATED, **more) -> Path:
    """Change parts of a workbook by functions of their bytes, and add more parts to the folder xl."""
    content = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(content, "w", compression) as new:
        for name in old.namelist():
            new.writestr(name, changes.get(name, bytes)(old.read(name)))
        for name, text in more.items():
            new.writestr(f"xl/{name}.xml", text)
    path.write_bytes(content.getvalue())
    return path


def workbook(path: Path, change=bytes, part: str = SHEET) -> Path:
    """Write a workbook, a part of which is changed by a function of its bytes."""
    write_workbook(path, [["a", "b"], *[[k, k / 2] for k in range(20)]])
    return rewrite(path, {part: change})


def sheet_of(rows: bytes) -> bytes:
    """Return a sheet with these rows."""
    return f'<worksheet xmlns="{NAMESPACE}"><sheetData>'.encode() + rows + b"</sheetData></worksheet>"


def cells_of(*cells: str) -> bytes:
    """Return a sheet with one column "a" that has these cells, as XML, and 7 below."""
    rows = "".join(f"<row>{cell}</row>" for cell in ('<c t="str"><v>a</v></c>', *cells, "<c><v>7</v></c>"))
    return sheet_of(rows.encode())


def with_texts(path: Path, sheet: bytes, texts: str) -> Path:
    """Write a workbook with this sheet and stored texts, as XML."""
    link = f'<Relationship Id="rId3" Type="{OFFICE}/sharedStrings" Target="t.xml"/></Relationships>'.encode()
    changes = {
        SHEET: lambda _: sheet,
        "xl/_rels/workbook.xml.rels": lambda part: part.replace(b"</Relationships>", link),
    }
    write_workbook(path, [["a"], [1]])
    return rewrite(path, changes, t=f'<sst xmlns="{NAMESPACE}">{texts}</sst>')


def with_references(path: Path, numbers) -> Path:
    """Write a workbook whose cells refer to stored texts of 1, 1000 and 3 characters; None is a cell without value."""
    values = ["" if number is None else f"<v>{number}</v>" for number in numbers]
    rows = "".join(f'<row><c t="s">{value}</c><c><v>3.5</v></c></row>' for value in values)
    return with_texts(path, sheet_of(rows.encode()), "".join(f"<si><t>{'x' * k}</t></si>" for k in (1, 1000, 3)))


def size_of(path: Path) -> WorkbookSize:
    """Return the size of a whole workbook."""
    return measure_workbook(path, "t", lambda size: None)


def read_rows(path: Path, title: str | None = None) -> list[list]:
    """Return the values of a sheet's rows, by default of the first sheet."""
    with zipfile.ZipFile(path) as archive:
        book = Workbook(archive)
        return list(book.read_sheet(title or book.sheets[0], book.read_shared_strings().texts).rows())


def refused(path: Path, match: str = "cannot be read as an Excel workbook") -> None:
    """Expect that reading a workbook, and checking its limits, raise InputError."""
    for read in (lambda: read_table(path, "t"), lambda: Limits().check_file(path, "t.xlsx")):
        with pytest.raises(InputError, match=match):
            read()


def rels(*added: str):
    """Return a change of a workbook's relations: these are added."""
    return lambda part: part.replace(b"</Relationships>", "".join(added).encode() + b"</Relationships>")


def random_value(rng: random.Random):
    """Return a value as a cell may hold it."""
    moment = datetime(1900, 3, 1) + timedelta(milliseconds=rng.randrange(86_400_000 * 365 * 200))
    return rng.choice(
        [
            None, rng.randrange(-(10**6), 10**15), rng.gauss(0, 1), 10.0 ** rng.randrange(-300, 300), rng.random() < 0.5,
            moment, moment.replace(hour=0, minute=0, second=0, microsecond=0), timedelta(seconds=rng.randrange(10**6)),
            "text", "two\nlines", " <&>'\"é\u4e2d\U0001f600", "=1+1", "007",
        ]
    )  # fmt: skip
