"""Excel workbooks as programs write them: their cells, formats, sheets and parts, compared with openpyxl."""

import random
import struct
import tracemalloc
import zipfile
from datetime import datetime, timedelta

import numpy as np
import openpyxl
import pytest
from openpyxl.styles.numbers import is_date_format, is_timedelta_format
from workbooks import (
    BOOK,
    OFFICE,
    SHEET,
    STYLES,
    cells_of,
    random_value,
    read_rows,
    refused,
    rels,
    rewrite,
    sheet_of,
    with_texts,
    workbook,
)

from priorshift.app.uploads import Limits
from priorshift.errors import InputError
from priorshift.io import workbook_values
from priorshift.io.readers import read_table
from priorshift.io.workbook_writer import write_workbook
from priorshift.io.workbooks import add_workbook_columns, write_sheet_as_text


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


FORMATS = [
    "General", "0.00", "#,##0;[Red]-#,##0", '0 "days"', "0.00E+00", "yyyy-mm-dd", "d/m/yy", "mmm", "h:mm AM/PM", "mm:ss",
    "[$-409]d mmm yyyy;@", "[h]:mm:ss", "[mm]:ss", '"h"0', r"\d0", "[Blue]0", "m/d/yy h:mm", '#,##0 "kr";d', "@",
    "yyyy\u5e74m\u6708", "ss.000", "General;d",
]  # fmt: skip


@pytest.mark.parametrize("code", FORMATS)
def test_kinds_of_formats_are_those_of_openpyxl(code):
    kind = workbook_values.kind_of_format(code)
    assert (kind != workbook_values.NUMBER) == bool(is_date_format(code))
    assert (kind == workbook_values.DURATION) == bool(is_timedelta_format(code))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("_-* #,##0_d", "NUMBER"), ('[=0]"";yyyy-mm-dd', "DATE"), ('[=0]"-";dd/mm/yyyy', "DATE"), ("[=0]0;yyyy", "NUMBER"),
        ("AM/PM", "TIME"), ("[$-411]ge", "DATE"), ("ee", "DATE"), ("bbbb", "DATE"), ("0.0e+00", "NUMBER"), ("", "NUMBER"),
        ('"d"', "NUMBER"), (";;;", "NUMBER"), ("h AM/PM", "TIME"), ("m/d h:mm", "DATE"),
        ("0.00 EUR", "NUMBER"), ("#,##0 kr", "NUMBER"), ("aaaa", "DATE"), ("0.0E-0", "NUMBER"), ("General", "NUMBER"),
    ],
)  # fmt: skip
def test_kinds_of_formats_that_openpyxl_does_not_know(code, kind):
    """As LibreOffice shows them, or Excel's documentation describes them."""
    assert workbook_values.kind_of_format(code) == getattr(workbook_values, kind)


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
    assert read == value and type(read) is (workbook_values.ErrorText if 't="e"' in cell else type(value))


@pytest.mark.parametrize(
    "cell",
    ["<c/>", "<c><v/></c>", '<c t="s"><v></v></c>', '<c t="str"><v> </v></c>', "<c><extLst><v>1</v></extLst></c>"],
)
def test_cells_without_a_value_are_empty(tmp_path, cell):
    assert read_rows(workbook(tmp_path / "t.xlsx", lambda _: cells_of(cell))) == [["a"], [7]]


@pytest.mark.parametrize(
    "cell",
    [
        "<c><v>x</v></c>", "<c><v>nan</v></c>", "<c><v>1e999</v></c>", "<c><v>1_000</v></c>", "<c><v>\u0661</v></c>",
        '<c t="b"><v>2</v></c>', '<c t="z"><v>2</v></c>', '<c t="d"><v>soon</v></c>', '<c t="d"><v>2020</v></c>', '<c t="s"><v>0</v></c>',
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


def alternatives(styles: bytes) -> bytes:
    """Write a format twice, as Excel does with formats that older programs do not know."""
    old = b'<numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>'
    assert old in styles
    namespace = b'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    choice, fallback = b'<mc:Choice Requires="x16r2">%s</mc:Choice>' % old, b"<mc:Fallback>%s</mc:Fallback>" % old
    return styles.replace(old, b"<mc:AlternateContent %s>%s%s</mc:AlternateContent>" % (namespace, choice, fallback))


def formats_last(styles: bytes) -> bytes:
    """Move the codes of formats to the end."""
    start, end = styles.index(b"<numFmts"), styles.index(b"</numFmts>") + len(b"</numFmts>")
    return styles[:start] + styles[end:].replace(b"</styleSheet>", styles[start:end] + b"</styleSheet>")


@pytest.mark.parametrize("change", [alternatives, formats_last])
def test_formats_at_other_places(tmp_path, change):
    path = workbook(tmp_path / "t.xlsx", change, STYLES)
    rewrite(path, {SHEET: lambda _: cells_of('<c s="1"><v>45351</v></c>')})
    assert read_rows(path)[1] == [datetime(2024, 2, 29)]


def test_a_format_without_styles_is_refused(tmp_path):
    """Its cells may be dates."""
    path = workbook(tmp_path / "t.xlsx", lambda _: cells_of('<c s="1"><v>45351</v></c>'))
    rewrite(path, {"xl/_rels/workbook.xml.rels": lambda part: part.replace(b"styles.xml", b"none.xml")})
    refused(path, "has format 1, which the file does not define")


@pytest.mark.parametrize(
    ("style", "days", "value"),
    [
        (1, -18136, datetime(1850, 5, 5)), (1, -0.5, datetime(1899, 12, 29, 12)), (3, -0.0625, timedelta(minutes=-90)),
        (1, 0.5, datetime(1899, 12, 31, 12)),
    ],
)  # fmt: skip
def test_dates_before_1900_as_other_programs_write_them(tmp_path, style, days, value):
    """pandas and LibreOffice count back from the 30th of December."""
    path = workbook(tmp_path / "t.xlsx", lambda _: cells_of(f'<c s="{style}"><v>{days}</v></c>'))
    assert read_rows(path)[1] == [value]


@pytest.mark.parametrize("days", ["-1e6", "1e9", "1e300"])
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


def test_long_names_of_sheets_are_cut_in_messages(tmp_path):
    write_workbook(tmp_path / "t.xlsx", [[None]], title="a" * 100_000)
    for name in (None, "b" * 100_000):
        with pytest.raises(InputError, match="aaa") as raised:
            add_workbook_columns(tmp_path / "t.xlsx", tmp_path / "o.xlsx", {}, name)
        assert len(str(raised.value)) < 300 + len(str(tmp_path))


def test_archives_in_the_format_of_large_ones_are_read(tmp_path):
    """Some programs always write it: a further record, and where it is, before the usual one."""
    path = workbook(tmp_path / "t.xlsx")
    content = path.read_bytes()
    end = content.rindex(b"PK\5\6")
    n_parts, size, start = struct.unpack("<HII", content[end + 10 : end + 20])
    record = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, n_parts, n_parts, size, start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)
    usual = content[end : end + 8] + b"\xff" * 12 + content[end + 20 :]
    path.write_bytes(content[:end] + record + locator + usual)
    assert read_table(path, "t").values.shape == (20, 2)
    Limits().check_file(path, "t.xlsx")
    large = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, n_parts, n_parts, 10**9, start)
    path.write_bytes(content[:end] + large + locator + usual)
    refused(path, "it has too many parts")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.gz", "t.xlsm"])
@pytest.mark.parametrize("damage", [(6, 255), (29, 255)])
def test_damaged_archives_with_other_names_are_refused(tmp_path, name, damage):
    """Such as a version of the format that does not exist, in the list of the archive's parts."""
    place, value = damage
    content = bytearray(workbook(tmp_path / "t.xlsx").read_bytes())
    content[content.find(b"PK\1\2") + place] = value
    (tmp_path / name).write_bytes(content)
    refused(tmp_path / name, "spreadsheet|binary file|expected|but is not one|cannot be read")


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
    refused(workbook(tmp_path / "t.xlsx", lambda _: sheet_of(nested)), "an element 'sheetData' in 'row'")


@pytest.mark.parametrize(
    "inside",
    [
        "<v>5</v><extLst><x:row xmlns:x='x'><x:c r='B2'><x:v>9</x:v></x:c></x:row></extLst>",
        "<extLst><ext><is><t>0</t></is></ext></extLst><v>5</v>", "<v>5</v><extLst><c><v>1</v></c></extLst>",
        "<v><!-- 1 -->5</v>", "<v><![CDATA[5]]></v>", "<is/><v>5</v>",
    ],
)  # fmt: skip
def test_extensions_and_comments_do_not_change_a_cell(tmp_path, inside):
    assert read_rows(workbook(tmp_path / "t.xlsx", lambda _: cells_of(f"<c>{inside}</c>"))) == [["a"], [5], [7]]


@pytest.mark.parametrize(
    "row",
    [
        "<m:AlternateContent xmlns:m='m'><m:Choice><row><c><v>1</v></c></row></m:Choice></m:AlternateContent>",
        "<row><x><c><v>1</v></c></x></row>", "<row><c><x><v>1</v></x></c></row>", "<row><c><v>1<v>2</v>3</v></c></row>",
        "<row><c t='inlineStr'><is><t>1<t>2</t>3</t></is></c></row>", "<row><c><v>1</v><is><t>2</t></is></c></row>",
    ],
)  # fmt: skip
def test_elements_that_would_be_lost_are_refused(tmp_path, row):
    refused(workbook(tmp_path / "t.xlsx", lambda _: sheet_of(row.encode())))


def test_durations_are_hours_minutes_and_seconds_as_text(tmp_path):
    values = [timedelta(hours=6), timedelta(days=1, hours=12), timedelta(minutes=90, milliseconds=250)]
    write_workbook(tmp_path / "t.xlsx", [["a"], *[[value] for value in values]])
    text = write_sheet_as_text(tmp_path / "t.xlsx", tmp_path / "t.csv", None).read_text()
    assert text.splitlines() == ["a", "06:00:00", "36:00:00", "01:30:00.250000"]
    assert read_table(tmp_path / "t.xlsx", "t").values.ravel().tolist() == [0.25, 1.5, 90.25 / 1440 - 14.75 / 86_400]


@pytest.mark.parametrize("error", ["#N/A", "#DIV/0!", "#SPILL!", "#GETTING_DATA", "#ERROR!", "Err:502"])
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
    write_sheet_as_text(path, tmp_path / "t.csv", None)
    peak = tracemalloc.get_traced_memory()[1]
    assert (tmp_path / "t.csv").stat().st_size < 100_000
    tracemalloc.stop()
    assert peak < 20e6  # 2.6 GB, if each row were as long as the longest
