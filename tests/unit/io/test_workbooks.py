"""Excel workbooks, read and written: compared with openpyxl, as other programs write them, and hostile ones."""

import io
import random
import time
import tracemalloc
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from openpyxl.styles.numbers import is_date_format, is_timedelta_format

from priorshift.app.uploads import Limits
from priorshift.errors import InputError
from priorshift.io import workbook_parts, workbook_writer
from priorshift.io.readers import read_table
from priorshift.io.workbook_parts import Workbook
from priorshift.io.workbook_writer import write_workbook
from priorshift.io.workbooks import WorkbookSize, add_workbook_columns, measure_workbook, write_sheet_as_text

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


# Compared with openpyxl


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


@pytest.mark.parametrize("seed", range(5))
def test_what_openpyxl_writes_is_read_as_openpyxl_reads_it(tmp_path, seed):
    rng, path = random.Random(seed), tmp_path / "t.xlsx"
    book = openpyxl.Workbook()
    for _ in range(60):
        book.active.append([random_value(rng) for _ in range(8)])
    for row in book.active:
        for cell in row:
            cell.data_type = "s" if cell.data_type == "f" else cell.data_type
    book.save(path)
    expected = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
    expected = [list(row) for row in expected if any(value is not None for value in row)]
    assert [row + [None] * (8 - len(row)) for row in read_rows(path)] == expected


@pytest.mark.parametrize("seed", range(5))
def test_openpyxl_reads_what_is_written(tmp_path, seed):
    rng, path = random.Random(seed), tmp_path / "t.xlsx"
    rows = [[random_value(rng) for _ in range(8)] for _ in range(60)]
    write_workbook(path, rows, title="a & 'b'")
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["a & 'b'"]
    for row, expected in zip(book.active.iter_rows(values_only=True, max_col=8), rows, strict=True):
        assert list(row) == expected
    assert [row + [None] * (8 - len(row)) for row in read_rows(path)] == [
        row for row in rows if any(v is not None for v in row)
    ]


FORMATS = [
    "General", "0.00", "#,##0;[Red]-#,##0", '0 "days"', "0.00E+00", "yyyy-mm-dd", "d/m/yy", "mmm", "h:mm AM/PM", "mm:ss",
    "[$-409]d mmm yyyy;@", "[h]:mm:ss", "[mm]:ss", '"h"0', r"\d0", "[Blue]0", "m/d/yy h:mm", '#,##0 "kr";d', "@",
    "yyyy\u5e74m\u6708", "ss.000", "General;d",
]  # fmt: skip


@pytest.mark.parametrize("code", FORMATS)
def test_kinds_of_formats_are_those_of_openpyxl(code):
    kind = workbook_parts._kind_of_format(code)
    assert (kind != workbook_parts._NUMBER) == bool(is_date_format(code))
    assert (kind == workbook_parts._DURATION) == bool(is_timedelta_format(code))


def test_a_letter_as_wide_as_a_space_is_no_day():
    assert workbook_parts._kind_of_format("_-* #,##0_d") == workbook_parts._NUMBER  # openpyxl 3.1.2 reads a date


def test_pandas_reads_what_is_written(tmp_path):
    frame = pd.DataFrame({"a": [1.5, np.nan, 3], "b": ["x", np.nan, "z"], "c": pd.date_range("2024-01-31", periods=3)})
    rows = [list(frame), *([*row[:2], row[2].to_pydatetime()] for row in frame.itertuples(index=False))]
    write_workbook(tmp_path / "t.xlsx", rows)
    pd.testing.assert_frame_equal(pd.read_excel(tmp_path / "t.xlsx"), frame, check_dtype=False)


def test_the_same_rows_give_the_same_bytes(tmp_path):
    for name in ("a.xlsx", "b.xlsx"):
        write_workbook(tmp_path / name, [["a"], [1]])
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()


# Cells as programs write them


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("<c><v>1.5</v></c>", 1.5), ('<c t="n"><v> 2E1 </v></c>', 20.0), ('<c t="b"><v>1</v></c>', True),
        ('<c t="str"><f>A1&amp;""</f><v>x</v></c>', "x"), ('<c t="e"><v>#N/A</v></c>', "#N/A"),
        ('<c t="inlineStr"><is><r><t>x</t></r><r><rPr><b/></rPr><t xml:space="preserve"> y</t></r></is></c>', "x y"),
        ('<c t="inlineStr"><is><t>x</t><rPh sb="0" eb="1"><t>phonetic</t></rPh></is></c>', "x"),
        ('<c t="inlineStr"><is><t>a_x000D_b_x005F_x0041__xD800_</t></is></c>', "a\rb_x0041__xD800_"),
        ('<c t="d"><v>2024-02-03T04:05:06Z</v></c>', datetime(2024, 2, 3, 4, 5, 6)),
        ('<c t="d"><v>06:00:00</v></c>', timedelta(hours=6)), ("<c><v>12345678901234567</v></c>", 12345678901234567),
        ('<x:c t="str" xmlns:x="y"><x:v>z</x:v></x:c>', "z"),
    ],
)  # fmt: skip
def test_cells(tmp_path, cell, value):
    path = workbook(tmp_path / "t.xlsx", lambda _: cells_of(cell))
    [_, [read], _] = read_rows(path)
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize(
    "cell", ["<c/>", "<c><v/></c>", '<c t="s"><v></v></c>', '<c t="str"><v> </v></c>', "<z><v>1</v></z>"]
)
def test_cells_without_a_value_are_empty(tmp_path, cell):
    assert read_rows(workbook(tmp_path / "t.xlsx", lambda _: cells_of(cell))) == [["a"], [7]]


@pytest.mark.parametrize(
    "cell",
    [
        "<c><v>x</v></c>", "<c><v>nan</v></c>", "<c><v>1e999</v></c>", "<c><v>1_000</v></c>", "<c><v>\u0661</v></c>",
        '<c t="b"><v>2</v></c>', '<c t="z"><v>2</v></c>', '<c t="d"><v>soon</v></c>', '<c t="s"><v>0</v></c>',
'<c s="99"><v>1</v></c>', '<c s="-1"><v>1</v></c>', '<c s="x"><v>1</v></c>', "<c><v>1</v><v>2</v></c>",
        f"<c><v>{'1' * 10_000}</v></c>", "<c><v>1</c>", "<a>" * 200,
    ],
)  # fmt: skip
def test_cells_that_excel_would_not_write_are_refused(tmp_path, cell):
    refused(workbook(tmp_path / "t.xlsx", lambda _: cells_of(cell)))


@pytest.mark.parametrize(
    ("number", "days", "value"),
    [
        (14, 1, datetime(1900, 1, 1)), (14, 59, datetime(1900, 2, 28)), (14, 61, datetime(1900, 3, 1)),
        (22, 45351.25, datetime(2024, 2, 29, 6)), (30, 45351, datetime(2024, 2, 29)), (20, 0.75, timedelta(hours=18)),
        (20, 45351.75, datetime(2024, 2, 29, 18)), (50, 45351, datetime(2024, 2, 29)), (71, 0.5, timedelta(hours=12)), (46, 1.5, timedelta(hours=36)), (2, 45351, 45351),
        (14, 0, datetime(1899, 12, 31)),
    ],
)  # fmt: skip
def test_numbers_with_the_format_of_a_date(tmp_path, number, days, value):
    def change(styles):
        return styles.replace(b'numFmtId="164" fontId', b'numFmtId="%d" fontId' % number)

    path = workbook(tmp_path / "t.xlsx", change, STYLES)
    sheet = cells_of(f'<c s="1"><v>{days}</v></c>')
    assert read_rows(rewrite(path, {SHEET: lambda _: sheet}))[1] == [value]
    if number == 14 and days > 60:  # the same number in a workbook that counts from 1904 is 1462 days later
        for date1904 in (b"1", b"true"):
            later = workbook(tmp_path / "later.xlsx", change, STYLES)
            start = b'<workbookPr date1904="%s"/><sheets>' % date1904
            rewrite(later, {SHEET: lambda _: sheet, BOOK: lambda book, start=start: book.replace(b"<sheets>", start)})
            assert read_rows(later)[1] == [value + timedelta(days=1462)]


@pytest.mark.parametrize("days", ["-1", "1e9", "1e300"])
def test_a_date_that_excel_cannot_show_is_missing(tmp_path, days):
    path = workbook(tmp_path / "t.xlsx", lambda _: cells_of(f'<c s="1"><v>{days}</v></c>'))
    assert read_rows(path) == [["a"], [7]]


@pytest.mark.parametrize(
    ("cell", "is_refused"),
    [
        ("<c><f>1+1</f></c>", True), ("<c><f>1+1</f><v/></c>", True), ('<c t="str"><f>A1</f></c>', True),
        ("<c><f>1+1</f><v>2</v></c>", False), ('<c t="str"><f>""</f><v></v></c>', False), ("<c><v>2</v></c>", False),
    ],
)  # fmt: skip
def test_formulas_without_values_are_refused(tmp_path, cell, is_refused):
    """A formula whose value is an empty text has a value."""
    path = workbook(tmp_path / "t.xlsx", lambda _: cells_of(cell, "<c><v>3</v></c>"))
    if is_refused:
        with pytest.raises(InputError, match="formulas without values"):
            read_table(path, "t")
    else:
        assert read_table(path, "t").values.ravel().tolist()[-2:] == [3.0, 7.0]


def test_names_of_parts_may_differ_in_case_and_be_absolute(tmp_path):
    path = with_texts(
        tmp_path / "t.xlsx",
        sheet_of(b'<row><c t="s"><v>0</v></c></row><row><c><v>1</v></c></row>'),
        "<si><t>a</t></si>",
    )
    rels = "xl/_rels/workbook.xml.rels"
    for old, new in ((b'"t.xml"', b'"/xl/t.xml"'), (b"/xl/t.xml", b"T.XML"), (b"worksheets/", b"worksheets\\")):
        rewrite(path, {rels: lambda part, old=old, new=new: part.replace(old, new)})
        assert read_table(path, "t").columns == ("a",)


def test_sheets_that_are_charts_are_left_out(tmp_path):
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, 2], [3, 4]):
        book.active.append(row)
    book.create_chartsheet("chart").add_chart(openpyxl.chart.BarChart())
    book.create_sheet("empty")["C7"].font = openpyxl.styles.Font(bold=True)
    book.save(tmp_path / "t.xlsx")
    assert read_table(tmp_path / "t.xlsx", "t").values.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(InputError, match="no sheet 'chart'; its sheets are 'Sheet', 'empty'"):
        add_workbook_columns(tmp_path / "t.xlsx", tmp_path / "o.xlsx", {}, "chart")
    with pytest.raises(InputError, match="no cells in sheet 'empty'"):
        add_workbook_columns(tmp_path / "t.xlsx", tmp_path / "o.xlsx", {}, "empty")


def rels(*added: str):
    """Return a change of a workbook's relations: these are added."""
    return lambda part: part.replace(b"</Relationships>", "".join(added).encode() + b"</Relationships>")


LENIENT = {
    "a sheet without a relation": {BOOK: lambda book: book.replace(b"</sheets>", b'<sheet name="old"/></sheets>')},
    "a sheet whose relation is missing": {
        BOOK: lambda book: book.replace(b"</sheets>", b'<sheet name="old" r:id="rId9"/></sheets>')
    },
    "a sheet whose part is missing": {
        BOOK: lambda book: book.replace(b"</sheets>", b'<sheet name="old" r:id="rId9"/></sheets>'),
        "xl/_rels/workbook.xml.rels": rels(f'<Relationship Id="rId9" Type="{OFFICE}/worksheet" Target="old.xml"/>'),
    },
    "styles without a part": {"xl/_rels/workbook.xml.rels": lambda part: part.replace(b"styles.xml", b"none.xml")},
    "texts without a part": {
        "xl/_rels/workbook.xml.rels": rels(f'<Relationship Id="rId9" Type="{OFFICE}/sharedStrings" Target="t.xml"/>')
    },
    "two relations to the workbook": {
        "_rels/.rels": rels(f'<Relationship Id="rId9" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>')
    },
    "styles elsewhere": {
        "xl/_rels/workbook.xml.rels": lambda part: rels(
            f'<Relationship Id="rId9" Type="{OFFICE}/styles" Target="styles.xml"/>'
        )(part.replace(b'Target="styles.xml"', b'Target="http://a.example/styles.xml" TargetMode="External"'))
    },
}  # fmt: skip


@pytest.mark.parametrize("name", LENIENT)
def test_parts_that_are_not_needed_may_be_missing(tmp_path, name):
    path = rewrite(workbook(tmp_path / "t.xlsx"), LENIENT[name])
    assert read_table(path, "t").values.tolist() == [[k, k / 2] for k in range(20)]
    Limits().check_file(path, "t.xlsx")


def test_external_relations_are_not_looked_up(tmp_path):
    """A part of the same name is not what they mean."""
    external = rels(f'<Relationship Id="rId0" Type="{OFFICE}/sharedStrings" Target="t.xml" TargetMode="External"/>')
    path = with_texts(tmp_path / "t.xlsx", cells_of('<c t="s"><v>0</v></c>'), "<si><t>x</t></si>")
    rewrite(
        path,
        {
            "xl/_rels/workbook.xml.rels": lambda part: external(
                part.replace(b'Id="rId3"', b'Id="rId3" TargetMode="External"')
            )
        },
    )
    refused(path)


@pytest.mark.parametrize(
    ("part", "change", "reason"),
    [
        (SHEET, lambda sheet: sheet.replace(b'r="B3"', b'r="A3"'), "cells are out of order in row 3"),
        (SHEET, lambda sheet: sheet.replace(b'r="B3"', b'r="B4"'), "cells are out of order in row 3"),
        (SHEET, lambda sheet: sheet.replace(b'<row r="3"', b'<row r="2"'), "rows are out of order after row 2"),
        (SHEET, lambda sheet: sheet.replace(b'<row r="3"', b'<row r="1048577"'), "more than 1,048,576 rows"),
        (SHEET, lambda sheet: sheet.replace(b'r="B3"', b'r="XFE3"'), "more than 16,384 columns"),
        (SHEET, lambda sheet: sheet.replace(b'r="B3"', b'r="B3" t="e1"'), "the value '0.5' in row 3 does not fit its type 'e1'"),
        (SHEET, lambda sheet: sheet.replace(b'r="B3"', b'r="B3" s="4"'), "a cell of row 3 has format 4, which the file does not"),
        (SHEET, lambda sheet: sheet.replace(b"<worksheet", b"<!DOCTYPE x><worksheet"), "its XML has a document type"),
        (SHEET, lambda sheet: sheet[:200], "it is damaged"),
        (BOOK, lambda book: book.replace(b"<sheet ", b"<tab "), "it is damaged|it has no sheets"),
        (BOOK, lambda book: book.replace(b"<sheets>", b"<sheets/><tabs>").replace(b"</sheets>", b"</tabs>"), "it has no sheets"),
        ("_rels/.rels", lambda part: part.replace(b"workbook.xml", b"other.xml"), "it has no workbook part"),
        ("mimetype", None, "it is a document of another kind"),
        ("xl/workbook.bin", None, "binary workbook"),
    ],
)  # fmt: skip
def test_the_message_says_why_a_workbook_cannot_be_read(tmp_path, part, change, reason):
    path = workbook(tmp_path / "t.xlsx", change, part) if change else workbook(tmp_path / "t.xlsx")
    if part == "xl/workbook.bin":
        rewrite(path, {"_rels/.rels": lambda rels: rels.replace(b"workbook.xml", b"workbook.bin")})
    if not change:
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(part, "x")
    refused(path, rf"cannot be read as an Excel workbook \(\.xlsx\), because .*({reason}).*; save it again")


def test_a_workbook_with_a_password_is_no_damaged_one(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4000))
    refused(tmp_path / "t.xlsx", "has a password, or is an .xls file")


def test_a_sheet_that_has_only_formulas_without_values_is_not_skipped(tmp_path):
    book = openpyxl.Workbook()
    book.active["A1"] = "=1+1"
    notes = book.create_sheet("notes")
    for row in (["a", "b"], [1, 2], [3, 4]):
        notes.append(row)
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(InputError, match="has the sheets 'Sheet', 'notes'; name one"):
        read_table(tmp_path / "t.xlsx", "t")


def test_rows_outside_the_table_and_rows_within_rows(tmp_path):
    outside = b'</sheetData><other><row r="30"><c t="str"><v>x</v></c></row></other>'
    path = workbook(tmp_path / "t.xlsx", lambda sheet: sheet.replace(b"</sheetData>", outside))
    assert read_table(path, "t").values.shape == (20, 2)
    nested = b'<row r="3"><sheetData><row r="4"/></sheetData></row>'
    refused(workbook(tmp_path / "t.xlsx", lambda _: sheet_of(nested)), "out of order")


def test_durations_are_hours_minutes_and_seconds_as_text(tmp_path):
    values = [timedelta(hours=6), timedelta(days=1, hours=12), timedelta(minutes=90, milliseconds=250)]
    write_workbook(tmp_path / "t.xlsx", [["a"], *[[value] for value in values]])
    text = write_sheet_as_text(tmp_path / "t.xlsx", tmp_path / "t.csv", None).read_text()
    assert text.splitlines() == ["a", "06:00:00", "36:00:00", "01:30:00.250000"]
    assert read_table(tmp_path / "t.xlsx", "t").values.ravel().tolist() == [0.25, 1.5, 90.25 / 1440 - 14.75 / 86_400]


@pytest.mark.parametrize("error", ["#N/A", "#DIV/0!", "#SPILL!", "#CALC!", "#GETTING_DATA"])
def test_errors_are_missing_values(tmp_path, error):
    path = workbook(tmp_path / "t.xlsx", lambda _: cells_of(f'<c t="e"><v>{error}</v></c>', "<c><v>3</v></c>"))
    table = read_table(path, "t")
    assert [None if np.isnan(value) else value for value in table.cells[0].tolist()] == [None, 3, 7]


def test_a_cell_far_to_the_right_takes_no_memory_in_other_rows(tmp_path):
    rows = b"".join(b'<row r="%d"><c r="A%d"><v>1</v></c></row>' % (k, k) for k in range(2, 20_001))
    header = b'<row r="1"><c r="A1" t="str"><v>a</v></c></row>'
    sheet = sheet_of(header + rows + b'<row r="20001"><c r="XFD20001"><v>1</v></c></row>')
    path = workbook(tmp_path / "t.xlsx", lambda _: sheet)
    tracemalloc.start()
    with pytest.raises(InputError, match="no name for column 2"):
        read_table(path, "t")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # 2.6 GB, if each row were as long as the longest


# Written cells


def test_texts_that_xml_does_not_have_are_written_by_their_code(tmp_path):
    texts = ["\0a\x0b", "a\r\nb", "_x0041_", "\ufffe", " a ", "]]>", "\x7f\x85"]
    write_workbook(tmp_path / "t.xlsx", [["a"], *[[text] for text in texts]])
    assert [value for [value] in read_rows(tmp_path / "t.xlsx")] == ["a", *texts]
    write_workbook(tmp_path / "t.xlsx", [["\ud800"], ["x" * 40_000]])
    assert read_rows(tmp_path / "t.xlsx") == [["\ufffd"], ["x" * 32_766 + "…"]]


def test_values_that_excel_cannot_store(tmp_path):
    rows = [["a", "b"], [np.inf, np.nan], [datetime(1850, 1, 2), np.float32(0.5)], [np.int64(7), np.bool_(True)]]
    write_workbook(tmp_path / "t.xlsx", rows)
    assert read_rows(tmp_path / "t.xlsx") == [["a", "b"], ["1850-01-02 00:00:00", 0.5], [7, True]]


@pytest.mark.parametrize(("day", "is_stored"), [((1900, 1, 1), False), ((1900, 2, 28), False), ((1900, 3, 1), True)])
def test_dates_before_march_1900_are_written_as_text(tmp_path, day, is_stored):
    """Excel and other programs do not agree about their numbers."""
    moment = datetime(*day)
    write_workbook(tmp_path / "t.xlsx", [["a"], [moment]])
    assert read_rows(tmp_path / "t.xlsx")[1] == [moment if is_stored else str(moment)]


def test_errors_of_the_rows_are_not_taken_for_those_of_the_archive(tmp_path):
    def rows():
        yield ["a"]
        raise RuntimeError("a bug in the caller")

    with pytest.raises(RuntimeError, match="a bug in the caller"):
        write_workbook(tmp_path / "t.xlsx", rows())


def test_more_rows_or_columns_than_excel_has_are_refused(tmp_path):
    for rows, what in (((["a"] for _ in range(2**20 + 1)), "1,048,576 rows"), ([["a"] * 16_385], "16,385 columns")):
        with pytest.raises(InputError, match=rf"t\.xlsx would have .*{what}.*write a \.csv file"):
            write_workbook(tmp_path / "t.xlsx", rows)


def test_a_sheet_beyond_the_size_of_an_archive_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(workbook_writer, "_MOST_BYTES", 1000)
    with pytest.raises(InputError, match="more than 2 GiB"):
        write_workbook(tmp_path / "t.xlsx", [["a"] * 1000])


# Limits


def test_the_size_of_a_workbook(tmp_path):
    path = with_references(tmp_path / "t.xlsx", [0] + 20 * [1] + 5 * [2])
    size = size_of(path)
    assert (size.rows, size.columns, size.cells, size.characters) == (26, 2, 52, 1 + 20 * 1000 + 5 * 3)
    assert size.elements == 2 + 26 * (1 + 2 + 2)
    with pytest.raises(InputError, match="characters in its cells"):
        Limits(bytes=19_000).check_file(path, "t.xlsx")
    Limits(bytes=30_000).check_file(path, "t.xlsx")


def test_cells_are_counted_in_all_sheets_together(tmp_path):
    book = openpyxl.Workbook()
    for title in ("one", "two"):
        sheet = book.create_sheet(title)
        for _ in range(50):
            sheet.append(["x", 1])
    book.save(tmp_path / "t.xlsx")
    size = size_of(tmp_path / "t.xlsx")
    assert (size.rows, size.columns, size.cells, size.characters) == (50, 2, 200, 100)
    with pytest.raises(InputError, match="199 cells"):
        Limits(text_cells=199).check_file(tmp_path / "t.xlsx", "t.xlsx")


@pytest.mark.parametrize("place", ["XFD", "xfd"])
def test_limits_count_columns(tmp_path, place):
    rows = b"".join(b'<row><c r="%s%d"><v>1</v></c></row>' % (place.encode(), k) for k in range(1, 41))
    size = size_of(workbook(tmp_path / "t.xlsx", lambda _: sheet_of(rows)))
    assert (size.rows, size.columns, size.cells) == (40, 16_384, 40 * 16_384)


def test_limits_count_rows_and_cells_of_any_prefix_and_without_places(tmp_path):
    row = b"<x:row>" + b"<x:c><x:v>1</x:v></x:c>" * 300 + b"</x:row>"
    sheet = f'<x:worksheet xmlns:x="{NAMESPACE}"><x:sheetData>'.encode() + row * 40 + b"</x:sheetData></x:worksheet>"
    path = workbook(tmp_path / "t.xlsx", lambda _: sheet)
    assert size_of(path) == WorkbookSize(40, 300, 12_000, 0, 2 + 40 * 601)
    for limits, what in (
        (Limits(columns=200), "columns"), (Limits(rows=30), "rows"), (Limits(text_cells=10**4), "cells"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=what):
            limits.check_file(path, "t.xlsx")


def test_cells_without_a_value_are_counted(tmp_path):
    path = workbook(tmp_path / "t.xlsx", lambda _: sheet_of(b"<row>" + b"<c/>" * 5000 + b"</row>"))
    with pytest.raises(InputError, match="4,000 cells"):
        Limits(text_cells=4000).check_file(path, "t.xlsx")


@pytest.mark.parametrize("row", [b"", b'<row r="1048576"/>', b"<row/>" * 50])
def test_rows_without_cells_are_not_counted(tmp_path, row):
    path = workbook(tmp_path / "t.xlsx", lambda sheet: sheet.replace(b"</sheetData>", row + b"</sheetData>"))
    assert size_of(path).rows == 21 and len(read_table(path, "t")) == 20


@pytest.mark.parametrize("number", [b"1000000000000000", b"1e15", b"1048577", b"-1", b"x", b"1" * 5000])
def test_a_row_with_an_impossible_number_is_refused(tmp_path, number):
    refused(workbook(tmp_path / "t.xlsx", lambda sheet: sheet.replace(b'<row r="1"', b'<row r="%s"' % number)))


@pytest.mark.parametrize("number", [b"1", b"0", b"4"])
def test_a_row_whose_number_does_not_increase_is_refused(tmp_path, number):
    refused(workbook(tmp_path / "t.xlsx", lambda sheet: sheet.replace(b'<row r="5"', b'<row r="%s"' % number)))


@pytest.mark.parametrize("place", ["ZZZ1", "XFE1", "\u017f\u017f\u017f1", "1", "A", "A\u0661", "$A$1", "A2", "a1"])
def test_cells_at_places_that_excel_does_not_have_are_refused(tmp_path, place):
    row = f'<row><c r="A1"><v>1</v></c><c r="{place}"><v>1</v></c></row>'.encode()
    refused(workbook(tmp_path / "t.xlsx", lambda _: sheet_of(row * 5)))


@pytest.mark.parametrize("number", ["999", "x", "-1", "9" * 400, "1.0", "\u0661"])
def test_a_reference_to_a_text_that_is_not_there_is_refused(tmp_path, number):
    refused(with_references(tmp_path / "t.xlsx", [0, number]))


def test_many_distinct_texts_are_read(tmp_path):
    book = openpyxl.Workbook()
    for row in (["a", "b"], *([f"text {k % 7}", k] for k in range(2000))):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    Limits().check_file(tmp_path / "t.xlsx", "t.xlsx")
    assert len(read_table(tmp_path / "t.xlsx", "t")) == 2000


# Small files that would take long, or become large


@pytest.mark.parametrize("part", [SHEET, "xl/t.xml"])
def test_elements_besides_cells_are_limited(tmp_path, part):
    row, text = b"<row><c><v>1</v></c></row>", "<si><t>a</t></si>"
    if part == SHEET:
        path = with_texts(tmp_path / "t.xlsx", sheet_of(row + b"<mergeCell/>" * 1_100_000), text)
    else:
        path = with_texts(tmp_path / "t.xlsx", sheet_of(row), f"<si>{'<r/>' * 1_100_000}</si>")
    with pytest.raises(InputError, match="save its sheet as CSV"):
        Limits().check_file(path, "t.xlsx")


@pytest.mark.parametrize(("n_items", "is_refused"), [(2, False), (8, True)])
def test_a_cell_may_have_a_few_elements(tmp_path, n_items, is_refused):
    """A cell with its value and its row has three; a limit on all elements would refuse large tables."""
    row = b"<row><c><v>1</v>" + b"<x/>" * n_items + b"</c></row>"
    path = workbook(tmp_path / "t.xlsx", lambda _: sheet_of(row * 150_000))
    if is_refused:
        with pytest.raises(InputError, match="XML elements"):
            Limits().check_file(path, "t.xlsx")
    else:
        Limits().check_file(path, "t.xlsx")


def test_a_document_type_is_refused(tmp_path):
    for entity in ("a" * 10, "<row><c><v>1</v></c></row>"):
        declared = f'<!DOCTYPE x [<!ENTITY e "{entity}">]><worksheet'.encode()
        for comment in (b"", b"<!--" + b" " * 100_000 + b"-->"):
            refused(
                workbook(
                    tmp_path / "t.xlsx", lambda sheet, start=comment + declared: sheet.replace(b"<worksheet", start, 1)
                )
            )


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_workbook_that_is_compressed_as_excel_never_does_is_refused(tmp_path, compression):
    refused(rewrite(workbook(tmp_path / "t.xlsx"), {}, compression))


def styles_of(length: int, cells: int):
    """Return a change of the styles: a number format of this length, used by this many cell formats."""

    def change(styles: bytes) -> bytes:
        styles = styles.replace(b'formatCode="yyyy\\-mm\\-dd"', b'formatCode="%s"' % (b"[" * length))
        return styles.replace(b"</cellXfs>", b'<xf numFmtId="164"/>' * cells + b"</cellXfs>")

    return change


def repeated_sheets(count: int):
    """Return a change of the workbook: all its sheets are the same part."""

    def change(book: bytes) -> bytes:
        start, end = book.index(b"<sheet "), book.index(b"</sheets>")
        sheets = [book[start:end].replace(b'name="Sheet"', b'name="S%d"' % k) for k in range(count)]
        return book[:start] + b"".join(sheets) + book[end:]

    return change


def attribute(text: bytes):
    """Return a change of a sheet: an attribute of its first element."""
    return lambda sheet: sheet.replace(b"<sheetData", b"<sheetData " + text)


def distinct(pattern: str, count: int) -> bytes:
    """Return a text for each of many numbers."""
    return "".join(pattern.format(k) for k in range(count)).encode()


REFUSED = {
    "a very long tag": (SHEET, attribute(b'note="' + b"x" * 60_000_000 + b'"')),
    "many attributes": (SHEET, attribute(distinct(' a{}=""', 200_000))),
    "many names of elements": (SHEET, lambda _: sheet_of(distinct("<a{}/>", 200_000))),
    "deep": (SHEET, lambda _: sheet_of(b"<a>" * 200_000 + b"</a>" * 200_000)),
    "many cell formats": (STYLES, styles_of(1, 200_000)),
    "sheets that are one part": (BOOK, repeated_sheets(3)),
    "many sheets that are one part": (BOOK, repeated_sheets(2000)),
    "many sheets": (BOOK, repeated_sheets(100_000)),
    "a part cut off": (SHEET, lambda sheet: sheet[:500]),
}
READ = {
    "long unclosed brackets in a format": (STYLES, styles_of(500_000, 60_000)),
    "long formulas with names": (BOOK, lambda book: book.replace(
        b"</sheets>", b"</sheets><definedNames>" + 20 * (b"<definedName>" + b"'" * 500_000 + b"</definedName>") + b"</definedNames>"
    )),
    "a long namespace": (SHEET, lambda sheet: sheet.replace(
        b"</sheetData>", b"</sheetData>" + b'<x:a xmlns:x="' + b"y" * 900_000 + b'">' + b"<x:b/>" * 50_000 + b"</x:a>"
    )),
    "unfinished formulas in a comment": (
        SHEET, lambda sheet: sheet.replace(b"<sheetData>", b"<!--" + b"<f" * 200_000 + b"--><sheetData>")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_workbooks_that_excel_would_not_write_are_refused_in_no_time(tmp_path, name):
    part, change = REFUSED[name]
    path = workbook(tmp_path / "t.xlsx", change, part)
    start = time.process_time()
    refused(path)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("name", READ)
def test_odd_workbooks_are_read_in_no_time(tmp_path, name):
    part, change = READ[name]
    path = workbook(tmp_path / "t.xlsx", change, part)
    start = time.process_time()
    Limits().check_file(path, "t.xlsx")
    assert len(read_table(path, "t")) == 20
    assert time.process_time() - start < 5


@pytest.mark.parametrize("drop", ["_rels/.rels", "xl/_rels/workbook.xml.rels", BOOK, SHEET])
def test_a_workbook_without_a_part_is_refused(tmp_path, drop):
    path, content = workbook(tmp_path / "t.xlsx"), io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(content, "w") as new:
        for name in old.namelist():
            if name != drop:
                new.writestr(name, old.read(name))
    path.write_bytes(content.getvalue())
    refused(path)


def test_a_style_with_an_impossible_number_is_a_sentence(tmp_path):
    refused(workbook(tmp_path / "t.xlsx", lambda styles: styles.replace(b'"164"', b'"%s"' % (b"9" * 40)), STYLES))


def test_many_sheets_and_long_styles_take_time_in_proportion_to_their_sizes(tmp_path):
    """Styles are read once, not once for each sheet."""
    book = openpyxl.Workbook()
    for k in range(300):
        book.create_sheet(f"S{k}")
    book.active.append(["a", "b"])
    book.active.append([1, 2])
    book.save(tmp_path / "t.xlsx")
    path = rewrite(
        tmp_path / "t.xlsx", {STYLES: lambda styles: styles.replace(b"<fonts", b"<x/>" * 300_000 + b"<fonts")}
    )
    start = time.process_time()
    Limits().check_file(path, "t.xlsx")
    assert len(read_table(path, "t")) == 1
    assert time.process_time() - start < 5
