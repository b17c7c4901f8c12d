"""CSV text as people send it: separators, decimal commas, gzip, missing cells, text."""

import gzip
import io
import warnings

import numpy as np
import pandas as pd
import pytest

from priorshift.errors import ColumnWarning, InputError
from priorshift.io.csv_text import add_columns, read_csv
from priorshift.io.readers import read_numeric_table, read_table
from priorshift.io.tables import CellRules, ColumnSelection

NAN = float("nan")


def mixed(text, **more):
    """Header and columns of a text, with missing cells and text allowed."""
    layout, columns = read_csv(text.encode(), "t", ColumnSelection(**more))
    names = [layout.header[k] for k in layout.wanted] if layout.header else range(len(columns))
    return layout.header, dict(zip(names, columns, strict=True))


def test_a_mixed_table_has_columns_of_numbers_with_nan_and_of_text_with_none():
    header, columns = mixed("age,sex,smokes\n34, male ,true\n,female,FALSE\n 51.5 ,NA,\n")
    assert header == ["age", "sex", "smokes"]
    np.testing.assert_array_equal(columns["age"], [34, NAN, 51.5])
    assert columns["sex"] == ["male", "female", None]
    np.testing.assert_array_equal(columns["smokes"], [1, 0, NAN])
    assert columns["age"].dtype == columns["smokes"].dtype == np.float64


@pytest.mark.parametrize("word", ["", "NA", "n/a", "#N/A", "NaN", "nan", "NULL", "<NA>", "NaT", "  "])
def test_what_stands_for_a_missing_cell(word):
    _, columns = mixed(f"x,who\n1,{word}\n{word},Ann\n3,{word}\n")
    np.testing.assert_array_equal(columns["x"], [1, NAN, 3])
    assert columns["who"] == [None, "Ann", None]


@pytest.mark.parametrize("word", ["none", "None", "?", "."])
def test_words_that_may_be_levels_are_missing_among_numbers_only(word):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, columns = mixed(f"x,pain,only\n1,{word},{word}\n{word},mild,{word}\n3,NA,\n")
    np.testing.assert_array_equal(columns["x"], [1, NAN, 3])
    assert columns["pain"] == [word, "mild", None]
    assert columns["only"] == [word, word, None]  # the other tables show whether it is a level
    # "none" among numbers may mean 0
    assert ["write 0" in str(warning.message) for warning in caught] == [True] * (word.lower() == "none")


def test_blank_cells_and_a_word_that_are_both_read_as_missing_are_reported():
    with pytest.warns(ColumnWarning, match="'NA' in column 'country'"):
        mixed("country,x\nDE,1\n,2\nNA,3\nFR,4\n")


def test_further_words_for_missing_values():
    _, columns = read_csv(
        b"x,who\n1,Ann\nunknown,unknown\nnone,Bob\n", "t", ColumnSelection(rules=CellRules(("unknown", "None")))
    )
    np.testing.assert_array_equal(columns[0], [1, NAN, NAN])
    assert columns[1] == ["Ann", None, "Bob"]


def test_a_column_without_any_cell_is_one_of_missing_numbers():
    _, columns = mixed("x,y\n1,\n2,NA\n")
    assert np.isnan(columns["y"]).all() and columns["y"].dtype == np.float64


def test_a_number_among_words_stays_the_text_it_was():
    assert mixed("code\n007\n1.50\nx1\n")[1]["code"] == ["007", "1.50", "x1"]


def test_columns_set_aside_stay_text_and_dropped_ones_are_not_read():
    _, columns = mixed("id,x,note,y\n 7 ,1,?,\n8,a,free text,2\n", extra=["id"], drop=["note"])
    assert columns["id"] == ["7", "8"] and columns["x"] == ["1", "a"] and "note" not in columns
    np.testing.assert_array_equal(columns["y"], [NAN, 2])


@pytest.mark.parametrize("feature", ["1,5", "2"])
def test_numbers_set_aside_are_written_with_points_where_the_file_has_decimal_commas(feature):
    text = f"w;who;x\n1,0;a,b;{feature}\n0,25;c;3\n"
    _, (w, who, x) = read_csv(text.encode(), "t", ColumnSelection(extra=["w", "who"]))
    assert w == ["1.0", "0.25"] and who == ["a,b", "c"]
    np.testing.assert_array_equal(x, [float(feature.replace(",", ".")), 3])
    # beside decimal points, or where commas may stand between thousands, nothing is guessed
    assert mixed("w;x\n1,0;1.5\n2,0;3\n", extra=["w"])[1]["w"] == ["1,0", "2,0"]
    assert mixed("w;x\n1,000;1\n2,000;3\n", extra=["w"])[1]["w"] == ["1,000", "2,000"]


def test_where_numbers_are_expected_missing_cells_and_text_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,\n4,4\n")
    with pytest.raises(InputError, match=r"row 1 .*column 'b'"):
        read_numeric_table(path, "t")
    path.write_text("a,b\n1,x\n2,y\n")
    with pytest.raises(InputError, match=r"'x' in row 0 .*column 'b'"):
        read_numeric_table(path, "t")


def test_numbers_are_read_alike_at_once_and_cell_by_cell():
    """A column of text beside them, and a missing cell in another, lead to the other reader."""
    X = np.random.default_rng(0).normal(size=(5000, 3)) * [1, 1e-8, 1e9]
    rows = [",".join(map(repr, row)) for row in X.tolist()]
    at_once = mixed("a,b,c\n" + "\n".join(rows))[1]
    slowly = mixed("a,b,c,d,e\n" + "\n".join(f"{row},{k % 7 or ''},w{k}" for k, row in enumerate(rows)))[1]
    for k, name in enumerate("abc"):
        np.testing.assert_array_equal(at_once[name], X[:, k])
        np.testing.assert_array_equal(slowly[name], X[:, k])
    assert slowly["e"][4999] == "w4999" and np.isnan(slowly["d"][7])


@pytest.mark.parametrize("decimal", [".", ","])
def test_a_mixed_table_is_read_as_pandas_reads_it(decimal):
    """Another library as the judge, on a random table of every kind of column, with a fifth of its cells missing."""
    rng = np.random.default_rng(0)
    n = 3000
    frame = pd.DataFrame({
        "normal": rng.normal(size=n), "count": rng.integers(0, 9, n).astype(float), "tiny": rng.normal(size=n) * 1e-12,
        "word": rng.choice(["red", "dark, blue", 'said "no"', "two\nlines", "1x"], n), "whole": np.arange(n),
        "late": ["7"] * (n - 1) + ["seven"],
    })  # fmt: skip
    missing = rng.random((n, 4)) < 0.2
    frame.iloc[:, :4] = frame.iloc[:, :4].mask(missing)
    text = frame.to_csv(index=False, sep=";", decimal=decimal, na_rep="NA")
    judge = pd.read_csv(io.StringIO(text), sep=";", decimal=decimal)
    header, columns = mixed(text)
    assert header == list(judge)
    for name, column in columns.items():
        if pd.api.types.is_numeric_dtype(judge[name]):
            np.testing.assert_array_equal(column, frame[name])  # to the last digit, where pandas' reader may be off
        else:
            assert column == [None if pd.isna(cell) else cell for cell in judge[name]]


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("packed", [False, True])
def test_decimal_commas_are_read_and_written(separator, end, packed, tmp_path):
    path, output = tmp_path / ("t.csv.gz" if packed else "t.csv"), tmp_path / ("o.csv.gz" if packed else "o.csv")
    lines = [["a", "who", "b"], ["1,5", "Ann", "2"], ["-0,25", "Bob, Eve", "1e3"], ["3", "", "1,0e-1"]]
    text = ("\ufeff" + end.join(separator.join(line) for line in lines) + end).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    wanted = [[1.5, 2], [-0.25, 1000], [3, 0.1]]
    _, columns = read_csv(path, "t", ColumnSelection(extra=["who"]))
    np.testing.assert_array_equal(np.column_stack(columns[::2]), wanted)
    assert columns[1] == ["Ann", "Bob, Eve", ""]
    add_columns(path, output, {"p": ["0.125", "1", "1e-05"], "note": ["x.y", "", "z"]}, packed=packed)
    written = output.read_bytes()
    text = gzip.decompress(written) if packed else written
    layout, columns = read_csv(text, "t", ColumnSelection(extra=["who", "note"]))
    assert layout.header == ["a", "who", "b", "p", "note"]
    np.testing.assert_array_equal(np.column_stack(columns[:4:2]), wanted)
    np.testing.assert_array_equal(columns[3], [0.125, 1, 1e-5])
    assert columns[4] == ["x.y", "", "z"]
    assert b"0,125" in (gzip.decompress(written) if packed else written)


def test_a_byte_order_mark_before_a_row_is_none_of_it(tmp_path):
    for text in ("\ufeff1.5,2\n3,4\n", "\ufeff\n1.5;2\n3;4\n", "\ufeff1,5;2\n3;4\n"):
        (tmp_path / "t.csv").write_text(text, encoding="utf-8")
        np.testing.assert_array_equal(read_table(tmp_path / "t.csv", "t").values, [[1.5, 2], [3, 4]])


def test_messages_name_the_first_cell_of_its_kind():
    text = "a;b\n1;2\n" + "".join(f"{k},5;{k}.25\n" for k in range(50)) + "1.000,5;2\n"
    with pytest.raises(InputError, match=r"'1\.000,5' in line 53"):
        read_csv(text.encode(), "t", ColumnSelection())
    with pytest.raises(InputError, match=r"'0,5' in line 3.*'0\.25' in line 3"):
        read_csv(text[: text.index("1.000")].encode(), "t", ColumnSelection())


def test_decimal_commas_without_a_header_are_rows():
    _, columns = mixed("1,5;2,5\n3;4,25\n")
    np.testing.assert_array_equal(np.column_stack(list(columns.values())), [[1.5, 2.5], [3, 4.25]])


BAD_NUMBERS = [
    (
        "a;b\n1,5;2\n2.5;3\n",
        r"'1,5' in line 2, column 'a', and '2.5' in line 3, column 'a'; .*decimal commas",
    ),
    ("a;b\n1,5;2.25\n2;3\n", r"'2.25' in line 2, column 'b'; .*decimal commas"),
    (
        "a;b\n1.234,5;2\n2;3\n",
        "'1.234,5' in line 2, column 'a', .*thousands",
    ),
    ('a,b\n1,2\n"1,234.5",3\n', "'1,234.5' in line 3, column 'a', .*thousands"),
    (
        "a;b\n1,5;2\n1 234 567;3\n",
        "'1 234 567' in line 3, column 'a', .*thousands",
    ),
    (
        "a;b\n1,234;2\n2;3\n",
        "holds '1,234' in line 2, column 'a', which may be a decimal comma or a mark between thous",
    ),
    ('a,b\n"12,500",2\n2,3\n', "holds '12,500' in line 2, .*decimal comma"),
]


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize(("text", "message"), BAD_NUMBERS)
def test_numbers_that_can_be_read_in_two_ways_are_refused(text, message, allowed):
    with pytest.raises(InputError, match=message):
        read_csv(text.encode(), "t", ColumnSelection())


def test_one_cell_tells_what_the_commas_of_a_file_are():
    _, columns = mixed("a;b\n1,234;0,5\n12,500;7\n")
    np.testing.assert_array_equal(columns["a"], [1.234, 12.5])


def test_commas_within_words_decide_nothing():
    _, columns = mixed("a;b;c\n1.5;1,2;x\n2.5;1,2 and 3;y\n")
    np.testing.assert_array_equal(columns["a"], [1.5, 2.5])
    assert columns["b"] == ["1,2", "1,2 and 3"]


def test_a_name_of_two_lines_is_one_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"height\nin cm",b\n1,2\n3,x\n')
    with pytest.raises(InputError, match=r"'x' in row 1 .*column 'b'"):
        read_numeric_table(path, "t")
    path.write_text('"height\nin cm",b\n1,2\n3,4\n')
    assert read_table(path, "t").columns == ("height\nin cm", "b")


def test_a_row_too_wide_is_seen_beside_a_dropped_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,note\n1,2,x\n3,4,y,z\n")
    with pytest.raises(InputError, match=r"4 cells in line 3"):
        read_table(path, "t", ColumnSelection(drop=["note"]))


# ---- quotation marks that are not closed


OPEN_QUOTES = {  # text and the line in which the quotation mark opens
    "in a row": ('a,b\n1,x\n2,"y\n3,z\n4,w\n', 3),
    "in the first row": ('a,b\n1,"x\n2,y\n', 2),
    "in the header": ('a,"b\n1,2\n3,4\n', 1),
    "after blank lines": ('\n\na,b\n\n1,"x\n2,y\n', 5),
    "in the last row": ('a,b\n1,x\n2,"y', 3),
    "in the last row, before blank lines": ('a,b\n1,x\n2,"y\n\n\n', 3),
    "as the last character": ('a,b\n1,x\n2,"', 3),
    "among numbers": ('a,b\n1,2\n3,"4\n5,6\n', 3),
    "in the last number": ('a,b\n1,2\n3,"4\n', 3),
    "without a header": ('1,2.5\n3,"4\n5,6\n', 2),
    "after a cell with a line end": ('a,b,c\n1,"x\ny","z\n2,3,4\n', 3),
    "with a pair of quotation marks at the end": ('a,b\n1,x\n2,"y""\n3,z\n', 3),
    "before a quoted cell in a later row": ('a,b,c\n1,"Ann,5\n2,Bob,6\n3,"Carl",7\n4,Dora,8\n', 2),
    "after an inch sign": ('a,b\n5" pipe,x\n2,"y\n3,z\n', 3),
    "with other line ends": ('a,b\r\n1,x\r\n2,"y\r\n3,z\r\n', 3),
}


@pytest.mark.parametrize("case", OPEN_QUOTES)
def test_a_quotation_mark_that_is_not_closed_is_refused(case):
    text, line = OPEN_QUOTES[case]
    with pytest.raises(InputError, match=rf"^t has a quotation mark in line {line} that is not closed; close it"):
        mixed(text)


def test_a_quotation_mark_that_is_not_closed_in_a_long_file_is_refused():
    with pytest.raises(InputError, match="line 2 that is not closed within 131,072 characters"):
        mixed('a,b\n1,"x\n' + "2,y\n" * 50_000)


def test_quoted_cells_with_line_ends_are_read_also_at_the_end_of_a_file():
    for end in ("", "\n", "\r\n", "\n\n"):
        _, columns = mixed(f'a,b\n1,"x\ny"\n2,"u\n""v""\nw"{end}')
        assert columns["b"] == ["x\ny", 'u\n"v"\nw']
        _, columns = mixed(f'a,b\n1,"2\n"\n3,"4\n"{end}')
        np.testing.assert_array_equal(columns["b"], [2, 4])
    assert mixed('a,b\n"x\ny" ,1\nz, 2\n')[1]["a"] == ["x\ny", "z"]  # a space after the quotation mark


def test_quotation_marks_within_cells_are_text():
    assert mixed('a,b\n5" pipe,1\n3"x",2\n"y"z,3\n7",4')[1]["a"] == ['5" pipe', '3"x"', "yz", '7"']
