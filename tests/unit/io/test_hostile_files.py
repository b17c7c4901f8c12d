"""Small files that would take long, or become large: they are refused, or read in little time."""

import time

import numpy as np
import openpyxl
import pandas as pd
import pytest

import priorshift as ps
from priorshift.app.fields import read_value
from priorshift.app.settings import translate_message
from priorshift.app.uploads import Limits
from priorshift.errors import InputError
from priorshift.formatting import parse_number, parse_prior
from priorshift.io.chunks import check_distinct_files
from priorshift.io.csv_text import ColumnReading
from priorshift.io.readers import read_table


def test_spaces_without_a_separator_take_no_time(tmp_path):
    (tmp_path / "t.csv").write_text("a,b" + " " * 80_000 + "x\n" + "1,2\n" * 50)
    start = time.process_time()
    assert read_table(tmp_path / "t.csv", "t").width == 2
    assert time.process_time() - start < 2


def test_a_tab_next_to_a_comma_is_no_separator(tmp_path):
    (tmp_path / "t.csv").write_text("a,\tb;c\n1,\t2\n3,\t4\n")
    assert read_table(tmp_path / "t.csv", "t").columns == ("a", "b;c")


def test_long_names_are_cut_in_messages(tmp_path):
    (tmp_path / "t.csv").write_text("a" * 100_000 + ",b\n" + "1,2\n" * 5)
    with pytest.raises(InputError, match="lacks 'x'") as raised:
        ps.estimate_prior(np.ones((5, 1)), pd.DataFrame({"x": range(5)}), tmp_path / "t.csv", source_prior=0.2)
    assert len(str(raised.value)) < 1000


def test_equal_texts_of_a_column_are_one_text():
    column = ColumnReading.from_cells([" " + "x" * 10_000] * 50).column
    assert len({id(text) for text in column}) == 1


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


@pytest.mark.parametrize("kind", ["decimal", "time", "null"])
def test_cells_that_become_objects_count_as_texts(tmp_path, kind):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    dtype = {"decimal": pyarrow.decimal128(38, 2), "time": pyarrow.time64("us"), "null": pyarrow.null()}[kind]
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
