import csv

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from priorshift.errors import InputError
from priorshift.io.csv_text import add_columns
from priorshift.io.readers import read_table
from priorshift.io.tables import ColumnSelection


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
    path.write_text("1,7\n3,4\n")
    table = read_table(path, "t")
    assert table.columns is None
    np.testing.assert_array_equal(table.values, [[1, 7], [3, 4]])


def test_csv_with_truth_values_and_text_set_aside(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('id,flag,x,note\nA,true,1,hello\nB,FALSE,2,"a, b"\n')
    table = read_table(path, "t", ColumnSelection(extra=["id"], drop=["note", "absent"]))
    assert table.columns == ("flag", "x")
    assert table.dropped == ("note",)
    np.testing.assert_array_equal(table.values, [[1, 1], [0, 2]])
    assert table.extra["id"].tolist() == ["A", "B"]


def test_names_are_asked_of_a_file_that_has_none(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,2\n3,4\n")
    with pytest.raises(InputError, match=r"no header.*'id'"):
        read_table(path, "t", ColumnSelection(extra=["id"]))
    with pytest.raises(InputError, match=r"column 'id'"):
        read_table([[1, 2]], "t", ColumnSelection(extra=["id"]))


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
    with pytest.raises(TypeError, match=r"string, a number"):
        read_table(np.array([[{}, 1]], dtype=object), "t")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    import sys

    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r"priorshift\[parquet\]"):
        read_table(path, "t")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_table_is_written_in_the_dialect_that_it_was_read_in(separator, tmp_path):
    """Cells with the separator, quotes, a line break or letters of any alphabet come out as they went in."""
    rows = [
        ["who", "a", "b"],
        [f"Ann{separator} the first", "1", "2.5"],
        ['said "no"', "3", "-4e1"],
        ["two\nlines", "5", "6"],
        ["Zażółć, gęślą; jaźń", "7", "8"],
    ]
    path, output = tmp_path / "t.csv", tmp_path / "out.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator).writerows([*rows[:3], [], *rows[3:]])  # and a blank line
    read = read_table(path, "t", ColumnSelection(extra=["who"]))
    np.testing.assert_array_equal(read.values, [[1, 2.5], [3, -40], [5, 6], [7, 8]])
    assert read.extra["who"].tolist() == [row[0] for row in rows[1:]]
    add_columns(path, output, {"p": ["0.1", "0.2", "0.3", "0.4"], "d": ["0", "1", f"x{separator}y", "1"]})
    with output.open(encoding="utf-8", newline="") as file:
        written = list(csv.reader(file, delimiter=separator))
    added = [["p", "d"], ["0.1", "0"], ["0.2", "1"], ["0.3", f"x{separator}y"], ["0.4", "1"]]
    assert written == [[*row, *more] for row, more in zip(rows, added, strict=True)]
    again = read_table(output, "t", ColumnSelection(extra=["who", "d"]))
    assert again.extra["who"].tolist() == read.extra["who"].tolist()
    np.testing.assert_array_equal(again.values[:, :2], read.values)


def test_a_table_without_a_header_gets_none(tmp_path):
    path, output = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text("1;2\n3;4\n")
    add_columns(path, output, {"p": ["0.5", "0.25"]})
    assert output.read_text() == "1;2;0.5\n3;4;0.25\n"


def test_separators_inside_quotes_do_not_decide_the_dialect(tmp_path):
    path, output = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text('"height, cm, barefoot";"weight"\n1;2\n3;4\n')
    table = read_table(path, "t")
    assert table.columns == ("height, cm, barefoot", "weight")
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])
    add_columns(path, output, {"p": ["0.5", "0.25"]})
    assert read_table(output, "t").columns == ("height, cm, barefoot", "weight", "p")


def test_lines_of_spaces_are_blank_wherever_they_stand(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("  \na,b\n1,2\n   \n3,4\n  \n")
    np.testing.assert_array_equal(read_table(path, "t").values, [[1, 2], [3, 4]])


def test_named_tables_are_matched_with_each_other_beside_one_without_names():
    s = ps.simulate.gaussian(0.2, 0.6, 300, 300, dimension=2, shared=False, random_state=0)
    P, T = (pd.DataFrame(rows * [1, 5], columns=["a", "b"]) for rows in (s.positive, s.target))
    U = s.unlabeled * [1, 5]
    plain = ps.estimate_prior(P, U, T, source_prior=0.2, random_state=0)
    assert ps.estimate_prior(P, U, T[["b", "a"]], source_prior=0.2, random_state=0) == plain
    with pytest.raises(InputError, match=r"'a'.*'x'"):
        ps.estimate_prior(P, U, T.rename(columns={"a": "x"}), source_prior=0.2)


def test_numbers_as_text_are_labels_and_a_missing_one_is_named():
    s = ps.simulate.gaussian(0.3, 0.6, 100, 100, random_state=0)
    plain = ps.TCPU(0.3).fit(s.X, s.y).estimate(s.target)
    for text in (pd.Series(s.y).astype(str), s.y.astype(str)):
        assert ps.TCPU(0.3).fit(s.X, text).estimate(s.target) == plain
    with pytest.raises(InputError, match=r"masked"):
        ps.TCPU(0.3).fit(s.X, pd.array([True, *[False] * (len(s.y) - 2), pd.NA], dtype="boolean"))
    shifted = ps.ShiftedClassifier(LogisticRegression(), ps.TCPU(0.3))
    with pytest.warns(ps.errors.LabelOrderWarning):
        shifted.fit(s.X, pd.Series(s.y).astype(str))
    assert shifted.classes_.tolist() == ["0", "1"]


R_MISSING = -(2**31)  # how R stores a missing integer, which arrives here through reticulate


@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_a_missing_integer_of_r_is_a_missing_cell(kind):
    rows = np.array([[1, 2], [R_MISSING, 4], [5, 6]], dtype=np.int32)
    columns = {"visits": rows[:, 0], "age": rows[:, 1]}
    source = {"pandas": pd.DataFrame(columns), "polars": pl.DataFrame(columns), "array": rows}[kind]
    visits, age = read_table(source, "target").cells
    assert visits.tolist()[::2] == [1, 5] and np.isnan(visits[1]) and age.tolist() == [2, 4, 6]


def test_the_same_number_is_a_value_where_r_cannot_have_written_it():
    rows = np.array([[1.0, 2.0], [R_MISSING, 4.0]])
    assert read_table(rows, "target").values.min() == R_MISSING
    assert read_table(rows.astype(np.int64), "target").values.min() == R_MISSING
