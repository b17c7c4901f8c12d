"""Small files that would take long, or become large: they are refused, or read in little time."""

import io
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import priorshift as ps
from priorshift.errors import InputError
from priorshift.formatting import parse_number, parse_prior
from priorshift.io.chunks import check_distinct_files
from priorshift.io.csv_text import ColumnReading
from priorshift.io.readers import read_table

openpyxl = pytest.importorskip("openpyxl")
from priorshift.app.fields import read_value
from priorshift.app.settings import translate_message
from priorshift.app.uploads import Limits
from priorshift.io.workbooks import workbook_size, write_workbook

NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def workbook(path: Path, change, part: str = "xl/worksheets/sheet1.xml", **more: bytes) -> Path:
    """Write a workbook, a part of which is changed by a function of its bytes, with more parts."""
    write_workbook(path, [["a", "b"], *[[k, k / 2] for k in range(20)]])
    content = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)) if name == part else old.read(name))
        for name, text in more.items():
            new.writestr(f"xl/{name}.xml", text)
    path.write_bytes(content.getvalue())
    return path


def workbook_of_references(path: Path, numbers, cell="c") -> Path:
    """Write a workbook whose cells refer to stored texts of 1, 1000 and 3 characters; None is a cell without value."""
    texts = "".join(f"<si><t>{'x' * length}</t></si>" for length in (1, 1000, 3))
    values = ["" if number is None else f"<v>{number}</v>" for number in numbers]
    cells = "".join(f'<row><{cell} t="s">{value}</{cell}><c><v>3.5</v></c></row>' for value in values)
    sheet = f'<worksheet xmlns="{NAMESPACE}"><sheetData>{cells}</sheetData></worksheet>'.encode()
    stored = f'<sst xmlns="{NAMESPACE}">{texts}</sst>'.encode()
    return workbook(path, lambda _: sheet, sharedStrings=stored)


def sheet_of(rows: bytes) -> bytes:
    """Return a sheet with these rows."""
    return f'<worksheet xmlns="{NAMESPACE}"><sheetData>'.encode() + rows + b"</sheetData></worksheet>"


@pytest.mark.parametrize("number", [b"1000000000000000", b"1e15", b"1e400"])
def test_a_row_with_a_huge_number_is_refused(tmp_path, number):
    """The rows before it would be read as empty rows."""
    path = workbook(tmp_path / "t.xlsx", lambda sheet: sheet.replace(b'<row r="1"', b'<row r="%s"' % number))
    with pytest.raises(InputError, match=r"rows|damaged"):
        read_table(path, "t")
    with pytest.raises(InputError, match=r"rows|damaged"):
        Limits().check_file(path, "t.xlsx")


def test_empty_rows_are_limited_in_all_sheets_together(tmp_path):
    """Forty sheets refer to one part, whose only row says that a million empty ones precede it."""
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    link = f'<Relationship Id="rE" Type="{office}/worksheet" Target="/xl/worksheets/e.xml"/></Relationships>'
    sheets = "".join(f'<sheet xmlns:r="{office}" name="s{k}" sheetId="{k}" r:id="rE"/>' for k in range(9, 49))
    more = {"worksheets/e": sheet_of(b'<row r="1000000"/>')}
    path = workbook(
        tmp_path / "t.xlsx",
        lambda book: book.replace(b"</sheets>", sheets.encode() + b"</sheets>"),
        "xl/workbook.xml",
        **more,
    )
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["xl/_rels/workbook.xml.rels"] = parts["xl/_rels/workbook.xml.rels"].replace(
        b"</Relationships>", link.encode()
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    start = time.process_time()
    with pytest.raises(InputError, match="rows"):
        read_table(path, "t")
    assert time.process_time() - start < 20  # twenty times as long, if every sheet were read


def test_limits_count_columns_in_lower_case(tmp_path):
    rows = b"".join(b'<row><c r="xfd%d"><v>1</v></c></row>' % k for k in range(1, 41))
    path = workbook(tmp_path / "t.xlsx", lambda _: sheet_of(rows))
    assert workbook_size(path, "t", 10**6)[:3] == (40, 16_384, 40 * 16_384)


def test_limits_count_what_precedes_a_malformed_end_in_any_part(tmp_path):
    rows = b"".join(b'<row><c r="XFD%d"><v>1</v></c></row>' % k for k in range(1, 41))
    path = workbook(tmp_path / "t.xlsx", lambda sheet: sheet, **{"x/s": sheet_of(rows) + b"<bad"})
    assert workbook_size(path, "t", 10**6)[:3] == (40, 16_384, 40 * 16_384)


@pytest.mark.parametrize(
    "rows", [b'<row><z r="XFD1"><v>1</v></z></row>', b"<row><z><v>1</v></z>" + b"<y/>" * 16_383 + b"</row>"]
)
def test_limits_count_children_of_rows_as_cells_whatever_their_names(tmp_path, rows):
    path = workbook(tmp_path / "t.xlsx", lambda _: sheet_of(rows * 40))
    assert workbook_size(path, "t", 10**6)[:3] == (40, 16_384, 40 * 16_384)


@pytest.mark.parametrize("place", ["ZZZ1", "XFE1", "\u017f\u017f\u017f1", "1", "A", "A\u0661", "$A$1"])
def test_cells_at_places_that_excel_does_not_have_are_refused(tmp_path, place):
    row = f'<row><c r="A1"><v>1</v></c><c r="{place}"><v>1</v></c></row>'.encode()
    path = workbook(tmp_path / "t.xlsx", lambda _: sheet_of(row * 5))
    for read in (lambda: read_table(path, "t"), lambda: workbook_size(path, "t", 10**6)):
        with pytest.raises(InputError, match="damaged"):
            read()


def test_limits_count_texts_of_cells_of_any_name(tmp_path):
    path = workbook_of_references(tmp_path / "t.xlsx", [1] * 30, cell="z")
    assert workbook_size(path, "t", 20_000)[3] == 30_000


@pytest.mark.parametrize(
    ("part", "element"),
    [
        ("xl/styles.xml", b"<xf/>"), ("[Content_Types].xml", b'<Default Extension="x" ContentType="y"/>'),
        ("xl/workbook.xml", b"<definedName/>"), ("xl/worksheets/sheet1.xml", b"<mergeCell/>"),
    ],
)  # fmt: skip
def test_other_elements_of_a_workbook_are_limited(tmp_path, part, element):
    def change(content):
        start = content.index(b">", content.index(b"<", content.index(b"?>") + 2 if b"?>" in content else 0)) + 1
        return content[:start] + element * 300_001 + content[start:]

    path = workbook(tmp_path / "t.xlsx", change, part)
    with pytest.raises(InputError, match="save its sheet as CSV"):
        Limits().check_file(path, "t.xlsx")


@pytest.mark.parametrize("text", ["<si/>", "<si>" + "<r/>" * 100 + "</si>"])
def test_stored_texts_that_no_cell_refers_to_are_limited(tmp_path, text):
    stored = f'<sst xmlns="{NAMESPACE}">{text * (400_000 // text.count("/"))}</sst>'.encode()
    path = workbook(tmp_path / "t.xlsx", lambda sheet: sheet, sharedStrings=stored)
    with pytest.raises(InputError, match="save its sheet as CSV"):
        workbook_size(path, "t", 10**6)


def test_elements_within_a_cell_are_limited(tmp_path):
    row = b'<row><c r="A1" t="inlineStr"><is>' + b"<r/>" * 400_000 + b"</is></c></row>"
    path = workbook(tmp_path / "t.xlsx", lambda _: sheet_of(row))
    with pytest.raises(InputError, match="save its sheet as CSV"):
        workbook_size(path, "t", 10**6)


def test_a_sheet_with_many_distinct_texts_is_read(tmp_path):
    write_workbook(tmp_path / "t.xlsx", [["a", "b"], *[[f"text {k % 7}", k] for k in range(2000)]])
    Limits().check_file(tmp_path / "t.xlsx", "t.xlsx")
    assert len(read_table(tmp_path / "t.xlsx", "t")) == 2000


@pytest.mark.parametrize("number", [b"1", b"0"])
def test_a_row_whose_number_does_not_increase_is_refused(tmp_path, number):
    """openpyxl leaves it out, so that rows of a file would be missing."""
    path = workbook(tmp_path / "t.xlsx", lambda sheet: sheet.replace(b'<row r="5"', b'<row r="%s"' % number))
    with pytest.raises(InputError, match="damaged"):
        read_table(path, "t")
    with pytest.raises(InputError, match="damaged"):
        Limits().check_file(path, "t.xlsx")


def test_one_very_long_tag_takes_no_time(tmp_path):
    """The parser begins again at its start with each further block."""
    attribute = b' note="' + b"x" * 60_000_000 + b'"'
    path = workbook(tmp_path / "t.xlsx", lambda sheet: sheet.replace(b"<sheetData", b"<sheetData" + attribute))
    start = time.process_time()
    with pytest.raises(InputError, match="damaged"):
        Limits().check_file(path, "t.xlsx")
    assert time.process_time() - start < 5


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_workbook_that_is_compressed_as_excel_never_does_is_refused(tmp_path, compression):
    path = workbook(tmp_path / "t.xlsx", lambda sheet: sheet)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    for read in (lambda: read_table(path, "t"), lambda: workbook_size(path, "t", 10**6)):
        with pytest.raises(InputError, match="damaged"):
            read()


def test_many_unfinished_formulas_take_no_time(tmp_path):
    comment = b"<!--" + b"<f" * 200_000 + b"-->"
    path = workbook(tmp_path / "t.xlsx", lambda sheet: sheet.replace(b"<sheetData>", comment + b"<sheetData>"))
    start = time.process_time()
    assert len(read_table(path, "t")) == 20
    assert time.process_time() - start < 2  # minutes, if the time were quadratic


def test_spaces_without_a_separator_take_no_time(tmp_path):
    (tmp_path / "t.csv").write_text("a,b" + " " * 80_000 + "x\n" + "1,2\n" * 50)
    start = time.process_time()
    assert read_table(tmp_path / "t.csv", "t").width == 2
    assert time.process_time() - start < 2


def test_a_tab_next_to_a_comma_is_no_separator(tmp_path):
    (tmp_path / "t.csv").write_text("a,\tb;c\n1,\t2\n3,\t4\n")
    assert read_table(tmp_path / "t.csv", "t").columns == ("a", "b;c")


@pytest.mark.parametrize("entity", ["a" * 10, "<row><c><v>1</v></c></row>"])
def test_a_workbook_with_entities_is_refused(tmp_path, entity):
    declared = f'<!DOCTYPE x [<!ENTITY e "{entity}">]>'.encode()
    root = b"<worksheet"

    def change(sheet):
        assert root in sheet
        return sheet.replace(root, b"<!--" + b" " * 100_000 + b"-->" + declared + root, 1)

    path = workbook(tmp_path / "t.xlsx", change)
    for read in (lambda: read_table(path, "t"), lambda: workbook_size(path, "t", 10**6)):
        with pytest.raises(InputError, match="damaged"):
            read()


def test_limits_count_rows_and_cells_of_any_prefix_and_without_places(tmp_path):
    row = b"<x:row>" + b"<x:c><x:v>1</x:v></x:c>" * 300 + b"</x:row>"
    sheet = f'<x:worksheet xmlns:x="{NAMESPACE}"><x:sheetData>'.encode() + row * 40 + b"</x:sheetData></x:worksheet>"
    path = workbook(tmp_path / "t.xlsx", lambda _: sheet)
    assert workbook_size(path, "t", 10**6) == (40, 300, 12_000, 0)
    for limits, what in (
        (Limits(columns=200), "columns"),
        (Limits(rows=30), "rows"),
        (Limits(text_cells=10**4), "cells"),
    ):
        with pytest.raises(InputError, match=what):
            limits.check_file(path, "t.xlsx")


@pytest.mark.parametrize(
    ("cell", "is_refused"),
    [
        (b'<c r="A2"><f>1+1</f></c>', True), (b'<c r="A2"><f>1+1</f><v/></c>', True),
        (b'<c r="A2"><f>1+1</f><v>2</v></c>', False), (b'<c r="A2"><v>2</v></c>', False),
    ],
)  # fmt: skip
def test_formulas_without_values_are_refused(tmp_path, cell, is_refused):
    sheet = (
        (
            f'<worksheet xmlns="{NAMESPACE}"><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row>'
            '<row r="2">'
        ).encode()
        + cell
        + b'</row><row r="3"><c r="A3"><v>3</v></c></row></sheetData></worksheet>'
    )
    path = workbook(tmp_path / "t.xlsx", lambda _: sheet)
    if is_refused:
        with pytest.raises(InputError, match="formulas without values"):
            read_table(path, "t")
    else:
        assert read_table(path, "t").values.tolist() == [[2.0], [3.0]]


def test_long_names_are_cut_in_messages(tmp_path):
    (tmp_path / "t.csv").write_text("a" * 100_000 + ",b\n" + "1,2\n" * 5)
    with pytest.raises(InputError, match="lacks 'x'") as raised:
        ps.estimate_prior(np.ones((5, 1)), pd.DataFrame({"x": range(5)}), tmp_path / "t.csv", source_prior=0.2)
    assert len(str(raised.value)) < 1000


def test_limits_count_a_text_as_often_as_cells_refer_to_it(tmp_path):
    path = workbook_of_references(tmp_path / "t.xlsx", [0] + 20 * [1] + 5 * [2])
    assert workbook_size(path, "t", 20_000) == (26, 2, 52, 1 + 20 * 1000 + 5 * 3)
    assert workbook_size(path, "t", 10**6)[3] == 0  # a bound of it is below the limit, so it is not counted
    with pytest.raises(InputError, match="characters in its cells"):
        Limits(bytes=19_000).check_file(path, "t.xlsx")
    Limits(bytes=30_000).check_file(path, "t.xlsx")


def test_a_reference_to_a_text_that_is_not_there_is_refused(tmp_path):
    for number in ("999", "x", "-1", "9" * 400):
        path = workbook_of_references(tmp_path / "t.xlsx", [0, number])
        with pytest.raises(InputError, match="damaged"):
            workbook_size(path, "t", 100)


def test_cells_without_a_reference_and_parts_that_look_like_texts_do_not_matter(tmp_path):
    path = workbook_of_references(tmp_path / "t.xlsx", [None, "", " 1 ", 1])
    assert workbook_size(path, "t", 10)[3] == 2000
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/decoy.xml", "<a>" + "<si/>" * 10 + "</a>")
    assert workbook_size(path, "t", 10)[3] == 2000


def test_equal_texts_of_a_column_are_one_text():
    column = ColumnReading.from_cells([" " + "x" * 10_000] * 50).column
    assert len({id(text) for text in column}) == 1


def test_a_style_with_an_impossible_number_is_a_sentence(tmp_path):
    change = lambda styles: styles.replace(b'numFmtId="0"', b'numFmtId="9999999999"')  # noqa: E731
    with pytest.raises(InputError, match="damaged"):
        read_table(workbook(tmp_path / "t.xlsx", change, "xl/styles.xml"), "t")


@pytest.mark.parametrize("parse", [parse_number, parse_prior, lambda text: read_value(text)])
def test_long_texts_are_no_numbers_and_take_no_time(parse):
    start = time.process_time()
    with pytest.raises(InputError) as refused:
        parse("-" * 4_000_000 + "%")
    assert time.process_time() - start < 1 and len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "part",
    ["pass missing=[", "pass columns={'a': 'day-first'} or 'month-first' (", " (drop=['a'], --drop ", " (drop=['"],
)
def test_the_app_translates_long_messages_in_no_time(part):
    start = time.process_time()
    message = translate_message(part * 100_000, {}, {})
    assert len(message) < 10_000
    assert time.process_time() - start < 1  # minutes, if the time were quadratic


def varint(number: int) -> bytes:
    """Encode a whole number as the footer of a Parquet file does."""
    number *= 2  # zigzag
    digits = []
    while number >= 128:
        digits.append(128 + number % 128)
        number //= 128
    return bytes([*digits, number])


@pytest.mark.parametrize("stated", [16_000, 20_001, 60_000])
def test_a_parquet_file_that_states_another_number_of_rows_is_refused(tmp_path, stated):
    """Rows that the file does not have would be whatever is in memory."""
    parquet = pytest.importorskip("pyarrow.parquet")
    frame = pd.DataFrame({"x": np.arange(20_000.0), "y": 1.0})
    path = tmp_path / "t.parquet"
    parquet.write_table(__import__("pyarrow").Table.from_pandas(frame), path, store_schema=False)
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    place = content.index(varint(20_000), footer)
    path.write_bytes(content[:place] + varint(stated) + content[place + 3 :])
    for read in (lambda: read_table(path, "t"), lambda: Limits().check_file(path, "t.parquet")):
        with pytest.raises(InputError, match="damaged"):
            read()
    with pytest.raises(InputError, match="damaged"):
        ps.estimate_prior(path, path, path, source_prior=0.2, stream=True)


@pytest.mark.parametrize("kind", ["decimal", "time"])
def test_cells_that_become_objects_count_as_texts(tmp_path, kind):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    dtype = {"decimal": pyarrow.decimal128(38, 2), "time": pyarrow.time64("us")}[kind]
    column = pyarrow.nulls(1000, dtype)
    parquet.write_table(pyarrow.table({"x": np.arange(1000.0), "y": column}), tmp_path / "t.parquet")
    Limits(text_cells=1000).check_file(tmp_path / "t.parquet", "t.parquet")
    with pytest.raises(InputError, match="not all numbers"):
        Limits(text_cells=999).check_file(tmp_path / "t.parquet", "t.parquet")


def test_columns_of_a_header_with_line_breaks_are_counted_before_the_file_is_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"a\nb",' + ",".join(f"c{k}" for k in range(200)) + "\n" + "1," * 200 + "2\n")
    with pytest.raises(InputError, match="columns"):
        Limits(columns=100).check_file(path, "t.csv")
    Limits(columns=201).check_file(path, "t.csv")
    path.write_text('5" pipe,b\n' + "1,2\n" * 1000)  # no quoted name
    Limits(columns=2, line_bytes=1000).check_file(path, "t.csv")
    path.write_text('"a' + "\n" * 2000 + '",b\n1,2\n')
    with pytest.raises(InputError, match="bytes in a line"):
        Limits(line_bytes=1000).check_file(path, "t.csv")


def test_a_file_with_two_names_is_counted_once(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    (tmp_path / "b.csv").hardlink_to(tmp_path / "a.csv")
    with pytest.raises(InputError, match="more than once"):
        check_distinct_files([tmp_path / "a.csv", tmp_path / "b.csv"], "t")


def styles_of(length: int, cells: int):
    """Return a change of the styles: a number format of this length, used by this many cell formats."""

    def change(styles: bytes) -> bytes:
        formats = b'<numFmts><numFmt numFmtId="170" formatCode="%s"/></numFmts>' % (b"[" * length)
        start = styles.index(b"<fonts")
        styles = styles[:start] + formats + styles[start:]
        start, end = styles.index(b"<cellXfs"), styles.index(b"</cellXfs>")
        return styles[:start] + b"<cellXfs>" + cells * b'<xf numFmtId="170"/>' + styles[end:]

    return change


def formula_of(length: int, count: int = 1):
    """Return a change of the workbook: named formulas of this length."""
    name = b'<definedName name="_xlnm.Print_Area" localSheetId="0">%s</definedName>' % (b"'" * length)
    names = b"</sheets><definedNames>" + count * name + b"</definedNames>"
    return lambda book: book.replace(b"<definedNames />", b"").replace(b"</sheets>", names)


def repeated_sheets(count: int):
    """Return a change of the workbook: all its sheets are the same part."""

    def change(book: bytes) -> bytes:
        start, end = book.index(b"<sheet "), book.index(b"</sheets>")
        sheets = [book[start:end].replace(b'name="Sheet"', b'name="S%d"' % k) for k in range(count)]
        return book[:start] + b"".join(sheets) + book[end:]

    return change


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("xl/styles.xml", styles_of(100_000, 1)), ("xl/styles.xml", styles_of(255, 60_000)),
        ("xl/styles.xml", styles_of(1, 70_000)), ("xl/workbook.xml", formula_of(100_000)),
        ("xl/workbook.xml", formula_of(8000, 20)),
        ("xl/workbook.xml", repeated_sheets(3)), ("xl/workbook.xml", repeated_sheets(2000)),
    ],
)  # fmt: skip
def test_formats_formulas_and_sheets_beyond_the_limits_of_excel_take_no_time(tmp_path, part, change):
    """Openpyxl would take a time that grows with the square of their lengths, or of the number of sheets."""
    path = workbook(tmp_path / "t.xlsx", change, part)
    start = time.process_time()
    with pytest.raises(InputError, match=r"damaged|1,000 sheets|65,490 cell|thousand cell|characters in long"):
        Limits().check_file(path, "t.xlsx")
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("xl/styles.xml", styles_of(60, 2000)), ("xl/workbook.xml", formula_of(1000)),
        ("xl/workbook.xml", repeated_sheets(1)),
    ],
)  # fmt: skip
def test_formats_formulas_and_sheets_within_the_limits_of_excel_are_read(tmp_path, part, change):
    path = workbook(tmp_path / "t.xlsx", change, part)
    Limits().check_file(path, "t.xlsx")
    assert len(read_table(path, "t")) == 20


def test_many_spellings_of_a_missing_value_take_no_time(tmp_path):
    """Each is compared with a set, not with every cell."""
    spellings = [f"{' ' * (k % 90)}{chr(0x3000) * (k // 90)}NA" for k in range(8000)]
    lines = ["a,b", *[f'"{cell}",{k}' for k, cell in enumerate(spellings)], *[f",{k}" for k in range(400)], "red,1"]
    (tmp_path / "t.csv").write_text("\n".join(lines), encoding="utf-8")
    start = time.process_time()
    assert len(read_table(tmp_path / "t.csv", "t")) == 8401
    assert time.process_time() - start < 2  # a minute, if the time were quadratic


def test_columns_of_intervals_are_refused_before_they_are_read(tmp_path):
    pytest.importorskip("pyarrow")
    intervals = pd.arrays.IntervalArray.from_breaks(range(31))
    pd.DataFrame({"iv": intervals, "x": range(30)}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"column 'iv' of t\.parquet holds cells of type .*interval"):
        Limits().check_file(tmp_path / "t.parquet", "t.parquet")


def test_messages_cut_names_of_columns_and_lists_of_sheets(tmp_path):
    pd.DataFrame({"a" * 3000: [1.0, np.inf], "b": [1, 2]}).to_csv(tmp_path / "t.csv", index=False)
    book = openpyxl.Workbook()
    for k in range(200):
        book.create_sheet(f"Sheet number {k}").append([f"x{k}", 1])
    book.save(tmp_path / "t.xlsx")
    for name in ("t.csv", "t.xlsx"):
        with pytest.raises(InputError) as raised:
            read_table(tmp_path / name, "t")
        assert len(str(raised.value)) < 600
