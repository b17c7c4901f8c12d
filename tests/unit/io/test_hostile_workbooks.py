"""Excel workbooks that take long, become large or are damaged: limits of the app, and what is refused."""

import io
import time
import zipfile

import openpyxl
import pytest
from workbooks import (
    BOOK,
    NAMESPACE,
    OFFICE,
    SHEET,
    STYLES,
    cells_of,
    refused,
    rels,
    rewrite,
    sheet_of,
    size_of,
    with_references,
    with_texts,
    workbook,
)

from priorshift.app.uploads import Limits
from priorshift.errors import InputError
from priorshift.io.readers import read_table
from priorshift.io.workbooks import WorkbookSize


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


@pytest.mark.parametrize("part", [SHEET, "xl/t.xml"])
def test_elements_besides_cells_are_limited(tmp_path, part):
    row, text = b"<row><c><v>1</v></c></row>", "<si><t>a</t></si>"
    if part == SHEET:
        path = with_texts(
            tmp_path / "t.xlsx",
            sheet_of(row).replace(b"</worksheet>", b"<mergeCell/>" * 1_100_000 + b"</worksheet>"),
            text,
        )
    else:
        path = with_texts(tmp_path / "t.xlsx", sheet_of(row), f"<si>{'<r/>' * 1_100_000}</si>")
    with pytest.raises(InputError, match="save its sheet as CSV"):
        Limits().check_file(path, "t.xlsx")


@pytest.mark.parametrize(("n_items", "is_refused"), [(2, False), (8, True)])
def test_a_cell_may_have_a_few_elements(tmp_path, n_items, is_refused):
    """A cell with its value and its row has three; a limit on all elements would refuse large tables."""
    row = b"<row><c><v>1</v>" + (b"<extLst>" + b"<x/>" * n_items + b"</extLst>") + b"</c></row>"
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


def two_cases(book: bytes) -> bytes:
    """Add a further sheet, which is related to the same part by another name."""
    return book.replace(b"</sheets>", b'<sheet name="two" r:id="rId7"/></sheets>')


def repeated_sheets(count: int, name: str = "S"):
    """Return a change of the workbook: all its sheets are the same part."""

    def change(book: bytes) -> bytes:
        start, end = book.index(b"<sheet "), book.index(b"</sheets>")
        sheets = [book[start:end].replace(b'name="Sheet"', f'name="{name}{k}"'.encode()) for k in range(count)]
        return book[:start] + b"".join(sheets) + book[end:]

    return change


def attribute(text: bytes):
    """Return a change of a sheet: an attribute of its first element."""
    return lambda sheet: sheet.replace(b"<sheetData", b"<sheetData " + text)


def distinct(pattern: str, count: int) -> bytes:
    """Return a text for each of many numbers."""
    return "".join(pattern.format(k) for k in range(count)).encode()


REFUSED = {
    "a very long tag": (SHEET, attribute(b'note="' + b"x" * 40_000_000 + b'"')),
    "one part by names in two cases": (BOOK, two_cases),
    "long names of elements": (SHEET, lambda _: sheet_of(distinct("<a{}" + "x" * 48_000 + "/>", 1000))),
    "long names of attributes": (SHEET, lambda _: sheet_of(distinct("<a b{}" + "x" * 48_000 + '="1"/>', 1000))),
    "a long text": (SHEET, lambda _: cells_of('<c t="str"><v>' + "\U0001f600" * 32_768 + "</v></c>")),
    "a very long text": (SHEET, lambda _: cells_of(f'<c t="str"><v>{"x" * 40_000_000}</v></c>')),
    "a long text of codes": (SHEET, lambda _: cells_of(f'<c t="str"><v>{"_x0041_" * 32_768}</v></c>')),
    "a long text of many pieces": (
        SHEET,
        lambda _: cells_of('<c t="inlineStr"><is>' + "<r><t>x</t></r>" * 1_000_000 + "</is></c>"),
    ),
    "long names of sheets": (BOOK, repeated_sheets(2000, "\U0001f600" * 6_000)),
    "long formats": (
        STYLES,
        lambda styles: styles.replace(
            b"<numFmts",
            b"<numFmts>%s</numFmts><numFmts"
            % (distinct('<numFmt numFmtId="{}" formatCode="' + "0" * 6_000 + '"/>', 2000)),
        ),
    ),
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
    "long attributes that are not used": (
        STYLES, lambda styles: styles.replace(b'<xf numFmtId="165"', b'<xf note="%s" numFmtId="165"' % (b"x" * 15_000_000))
    ),
    "a long list of places": (SHEET, lambda sheet: sheet.replace(
        b"</sheetData>", b'</sheetData><conditionalFormatting sqref="' + b"A1 B2 " * 500_000 + b'"/>'
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
    if change is two_cases:
        added = f'<Relationship Id="rId7" Type="{OFFICE}/worksheet" Target="worksheets/SHEET1.xml"/>'
        rewrite(path, {"xl/_rels/workbook.xml.rels": rels(added)})
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


@pytest.mark.parametrize("blank", [" ", "\u2003", "\n"])
def test_blank_texts_that_cells_share_take_no_time(tmp_path, blank):
    """Each text is looked at once, not once for each cell."""
    rows = b'<row><c t="str"><v>a</v></c></row>' + b'<row><c t="s"><v>0</v></c><c><v>1</v></c></row>' * 100_000
    path = with_texts(tmp_path / "t.xlsx", sheet_of(rows), f"<si><t>{blank * 32_000}</t></si>")
    start = time.process_time()
    assert size_of(path).columns == 2
    assert time.process_time() - start < 5


def test_a_part_that_expands_to_very_many_times_its_size_is_refused_by_the_app(tmp_path):
    path = workbook(tmp_path / "t.xlsx", lambda _: sheet_of(b"<row>" + b"<c/>" * 13_000_000 + b"</row>"))
    start = time.process_time()
    with pytest.raises(InputError, match="bytes in parts that expand to over 200 times their size"):
        Limits().check_file(path, "t.xlsx")
    assert time.process_time() - start < 0.5


def test_parts_that_expand_are_counted_together(tmp_path):
    pad = b"<a/>" * 6_000_000
    changes = {
        BOOK: lambda book: book.replace(b"<sheets>", pad + b"<sheets>"),
        STYLES: lambda styles: styles.replace(b"<numFmts", pad + b"<numFmts"),
        "_rels/.rels": lambda part: part.replace(b"</Relationships>", pad + b"</Relationships>"),
    }
    path = rewrite(workbook(tmp_path / "t.xlsx"), changes)
    with pytest.raises(InputError, match="bytes in parts that expand to over 200 times their size"):
        Limits().check_file(path, "t.xlsx")


def test_numbers_of_formats_are_short(tmp_path):
    """They are kept, each with its number."""
    refused(workbook(tmp_path / "t.xlsx", lambda _: cells_of(f'<c s="{" " * 150_000}0"><v>1</v></c>')))


def test_an_archive_with_very_many_parts_is_refused_at_once(tmp_path):
    path = workbook(tmp_path / "t.xlsx")
    content = path.read_bytes()
    end = content.rindex(b"PK\5\6")
    many = b"PK\1\2\x14\0\x14" + bytes(39)
    size = int.from_bytes(content[end + 12 : end + 16], "little") + 200_000 * len(many)
    path.write_bytes(
        content[:end] + many * 200_000 + content[end : end + 12] + size.to_bytes(4, "little") + content[end + 16 :]
    )
    start = time.process_time()
    refused(path, "it has too many parts")
    (tmp_path / "t.csv").write_bytes(path.read_bytes())
    refused(tmp_path / "t.csv", "binary file")
    assert time.process_time() - start < 1


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
