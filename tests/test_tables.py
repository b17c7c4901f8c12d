import numpy as np
import pandas as pd
import polars as pl
import pytest

from priorshift.errors import InputError
from priorshift.input.tables import read_table


@pytest.mark.parametrize(
    "text",
    ["a,b\n1,2.5\n3,-4e1\n", "a;b\n1;2.5\n3;-4e1\n", "a\tb\n1\t2.5\n3\t-4e1\n", '"a","b"\r\n"1","2.5"\r\n3,-4e1\r\n',
     "\ufeffa,b\n1,2.5\n3,-40\n", "a,b\n\n1,2.5\n3,-40\n\n", " a , b \n 1 , 2.5\n3,-40"],
)  # fmt: skip
def test_csv_of_every_flavour_is_read(text, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8", newline="")
    table = read_table(path, "t")
    assert table.columns == ("a", "b")
    np.testing.assert_array_equal(table.values, [[1, 2.5], [3, -40]])


def test_csv_without_header_has_no_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,2\n3,4\n")
    table = read_table(path, "t")
    assert table.columns is None
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])


def test_csv_with_truth_values_and_text_set_aside(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('id,flag,x,note\nA,true,1,hello\nB,FALSE,2,"a, b"\n')
    table = read_table(path, "t", aside=["id"], drop=["note", "absent"])
    assert table.columns == ("flag", "x")
    assert table.dropped == ("note",)
    np.testing.assert_array_equal(table.values, [[1, 1], [0, 2]])
    assert table.aside["id"].tolist() == ["A", "B"]


def test_names_are_asked_of_a_file_that_has_none(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,2\n3,4\n")
    with pytest.raises(InputError, match="has no header, so no column 'id'; add a first line with names"):
        read_table(path, "t", aside=["id"])
    with pytest.raises(InputError, match="is an array without column names, so it has no column 'id'; pass a data"):
        read_table([[1, 2]], "t", aside=["id"])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [True, False], "b": pd.array([1, 2], dtype="Int64"), "c": np.float32([0.5, 1.5])}),
        pl.DataFrame({"a": [True, False], "b": [1, 2], "c": [0.5, 1.5]}),
        pl.DataFrame({"a": [True, False], "b": [1, 2], "c": [0.5, 1.5]}).to_arrow(),
        pd.DataFrame({"a": [True, False], "b": [1, 2], "c": np.array([0.5, 1.5], dtype=object)}),
    ],
)
def test_frames_of_mixed_numeric_columns_are_read(frame):
    table = read_table(frame, "t")
    assert table.columns == ("a", "b", "c")
    np.testing.assert_array_equal(table.values, [[1, 1, 0.5], [0, 2, 1.5]])


def test_a_float_array_is_not_copied():
    X = np.zeros((3, 2))
    assert read_table(X, "t").values is X


def test_numbers_as_text_in_an_array_are_read():
    np.testing.assert_array_equal(read_table([["1", "2"], ["3", "4.5"]], "t").values, [[1, 2], [3, 4.5]])


def test_an_object_that_is_no_number_is_refused():
    with pytest.raises(TypeError, match="a cell argument must be a string or a number"):
        read_table(np.array([[{}, 1]], dtype=object), "t")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    import sys

    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r'needs pyarrow to be read; run pip install "priorshift\[parquet\]"'):
        read_table(path, "t")
