"""Excel workbooks that the library writes, as it and other libraries read them."""

import random
from datetime import datetime

import numpy as np
import openpyxl
import pandas as pd
import pytest
from workbooks import random_value, read_rows

from priorshift.errors import InputError
from priorshift.io import workbook_writer
from priorshift.io.workbook_writer import write_workbook


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


def test_pandas_reads_what_is_written(tmp_path):
    frame = pd.DataFrame({"a": [1.5, np.nan, 3], "b": ["x", np.nan, "z"], "c": pd.date_range("2024-01-31", periods=3)})
    rows = [list(frame), *([*row[:2], row[2].to_pydatetime()] for row in frame.itertuples(index=False))]
    write_workbook(tmp_path / "t.xlsx", rows)
    pd.testing.assert_frame_equal(pd.read_excel(tmp_path / "t.xlsx"), frame, check_dtype=False)


def test_the_same_rows_give_the_same_bytes(tmp_path):
    for name in ("a.xlsx", "b.xlsx"):
        write_workbook(tmp_path / name, [["a"], [1]])
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()


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
