"""How rows become numbers: as the in-memory door reads them, and the same after a trip through a file."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.preprocessing import OneHotEncoder

from priorshift.errors import ColumnWarning, InputError
from priorshift.io.encoding import TableEncoder
from priorshift.io.readers import read_table
from priorshift.io.scaling import Scaling
from priorshift.io.tables import ColumnSelection, Table
from priorshift.sketch.design import RowReader


def mixed_frame(rng, rows, levels="abcdef", gaps=0.1):
    """Numbers, dates, categories with None, durations, truth values and text that is dates."""
    days = pd.Timestamp("2020-02-29") + pd.to_timedelta(rng.integers(0, 2000, rows), unit="D")
    x = rng.normal(size=rows)
    return pd.DataFrame(
        {
            "x": np.where(rng.random(rows) < gaps, np.nan, x),
            "whole": rng.integers(-5, 5, rows),
            "flag": rng.random(rows) < 0.3,
            "when": pd.Series(days).mask(rng.random(rows) < gaps),
            "iso": pd.Series(days.strftime("%Y-%m-%d")),
            "level": pd.Series(rng.choice(list(levels), rows)).mask(rng.random(rows) < gaps, None),
            "rare": pd.Series(np.where(rng.random(rows) < 0.02, rng.choice(list("uvwxyz"), rows), "common")),
            "lasted": pd.to_timedelta(rng.integers(1, 999, rows), unit="min"),
        }
    )


def through_json(reader):
    return RowReader.from_header(json.loads(json.dumps(reader.to_header(), allow_nan=False)))


def test_numbers_are_matched_by_name_and_scaled_by_the_first_sample():
    rng = np.random.default_rng(0)
    first = pd.DataFrame({"a": rng.normal(3, 2, 50), "same": np.full(50, 7.0), "b": rng.integers(0, 9, 50)})
    reader = RowReader.fit(read_table(first, "source"))
    other = pd.DataFrame({"b": [1, 2], "same": [7.0, 7.0], "a": [0.5, -0.25]})
    expected = (other[["a", "b"]] - first[["a", "b"]].mean()) / first[["a", "b"]].std(ddof=0)
    assert reader.n_features == 2
    np.testing.assert_allclose(reader(other, "target"), expected.to_numpy(), rtol=1e-13)
    np.testing.assert_array_equal(reader(pl.DataFrame(other.to_dict("list")), "target"), reader(other, "target"))
    np.testing.assert_array_equal(reader(other[["a", "same", "b"]].to_numpy(), "target"), reader(other, "target"))


def test_without_standardising_columns_are_only_centred():
    reader = RowReader.fit(read_table([[1.0, 5.0], [3.0, 5.0]], "source"), standardize=False)
    np.testing.assert_array_equal(reader([[4.0, 6.0]], "target"), [[2.0, 1.0]])


def test_mixed_tables_are_encoded_and_scaled_as_the_in_memory_door_does():
    rng = np.random.default_rng(1)
    first, other = mixed_frame(rng, 400), mixed_frame(rng, 100, "abcxy")
    reader = RowReader.fit(read_table(first, "source"))
    encoder = TableEncoder().fit(first)
    encoded = encoder.encode_table(encoder.convert(read_table(first, "source")))
    scaling = Scaling.from_rows(encoded.values, np.arange(400), True, encoded.origin)
    expected = scaling.rows(encoder.transform(other))[np.arange(100)][:, scaling.factor != 0]
    np.testing.assert_array_equal(reader(other, "target"), expected)
    assert reader.n_features == expected.shape[1]
    assert reader.scaling.features == scaling.features == first.shape[1]


@pytest.mark.parametrize("seed", range(20))
def test_levels_are_encoded_as_scikit_learn_does(seed):
    rng = np.random.default_rng(seed)
    first = rng.choice(list("abcdefghij"), (200, 2), p=np.array([40, 30, 10, 8, 5, 3, 1, 1, 1, 1]) / 100).astype(object)
    other = rng.choice(list("abcdefghijklm"), (50, 2)).astype(object)
    least = int(rng.integers(1, 250)) if seed % 2 else 10
    one_hot = OneHotEncoder(min_frequency=least, handle_unknown="infrequent_if_exist", sparse_output=False).fit(first)
    encoder = TableEncoder(min_frequency=least).fit(first)
    np.testing.assert_array_equal(encoder.transform(other), one_hot.transform(other))


@pytest.mark.parametrize("seed", range(4))
def test_a_reader_reads_the_same_bits_after_a_trip_through_json(seed):
    rng = np.random.default_rng(seed)
    first, other = mixed_frame(rng, 300), mixed_frame(rng, 80, "abcdxyzé", gaps=0.3)
    for columns in (list(first), ["whole", "flag"], ["level"], ["when", "x"], ["rare", "iso", "lasted"]):
        reader = RowReader.fit(read_table(first[columns], "source"))
        again = through_json(reader)
        for batch in (first[columns], other[columns], other[columns[::-1]], other[columns].to_numpy(dtype=object)):
            np.testing.assert_array_equal(again(batch, "target"), reader(batch, "target"))
        assert again.fingerprint == reader.fingerprint
        assert (again.n_features, again.scaling.features) == (reader.n_features, reader.scaling.features)
        if reader.encoder is not None:
            assert str(again.encoder.summary_) == str(reader.encoder.summary_)
            assert again.encoder.get_feature_names_out().tolist() == reader.encoder.get_feature_names_out().tolist()
            assert again.encoder.get_params() == reader.encoder.get_params()


def test_rare_levels_which_may_be_of_one_person_are_not_stored():
    frame = pd.DataFrame({"who": ["common"] * 50 + ["Ada Lovelace"], "x": np.arange(51.0)})
    reader = RowReader.fit(read_table(frame, "source"))
    assert "common" in json.dumps(reader.to_header()) and "Lovelace" not in json.dumps(reader.to_header())
    np.testing.assert_array_equal(through_json(reader)(frame, "source"), reader(frame, "source"))


def test_readers_of_other_samples_columns_or_drops_have_another_fingerprint():
    rng = np.random.default_rng(2)
    first = mixed_frame(rng, 300)
    table = read_table(first, "source")
    readers = [RowReader.fit(table), RowReader.fit(table, drop=["x"]), RowReader.fit(table, standardize=False)]
    readers += [RowReader.fit(read_table(first.rename(columns={"x": "y"}), "source"))]
    readers += [RowReader.fit(read_table(first[list(first)[::-1]], "source"))]
    readers += [RowReader.fit(read_table(first.iloc[1:], "source"))]
    assert len({reader.fingerprint for reader in readers}) == len(readers)
    assert RowReader.fit(read_table(first.copy(), "again")).fingerprint == readers[0].fingerprint


def test_a_first_sample_without_categories_reads_numbers_of_any_kind_of_table():
    reader = RowReader.fit(read_table(pd.DataFrame({"a": [1.0, 3.0], "b": [2.0, 6.0]}), "source"))
    cells = np.array(["2", "1e0"], dtype=object), np.array([4.0, 2.0])
    text = Table.from_cells("target", cells, ("a", "b"))
    np.testing.assert_array_equal(reader(text, "target"), [[0.0, 0.0], [-1.0, -1.0]])


def test_a_mixed_first_sample_reads_batches_of_numbers_alone():
    first = pd.DataFrame({"code": ["1", "2", "x"] * 20, "v": np.arange(60.0)})
    reader = RowReader.fit(read_table(first, "source"))
    numbers, words = (
        pd.DataFrame({"code": [1, 2], "v": [3.0, 4.0]}),
        pd.DataFrame({"code": ["1", "2"], "v": [3.0, 4.0]}),
    )
    np.testing.assert_array_equal(reader(numbers, "target"), reader(words, "target"))


def test_missing_numbers_that_the_first_sample_does_not_know_are_refused():
    numbers = RowReader.fit(read_table(pd.DataFrame({"a": [1.0, 3.0], "b": [2.0, 6.0]}), "source"))
    with pytest.raises(InputError, match=r"row 1 .*column 'b'"):
        numbers(pd.DataFrame({"a": [1.0, 2.0], "b": [5.0, None]}), "target")
    first = pd.DataFrame({"g": list("ab") * 20, "a": np.arange(40.0)})
    with pytest.raises(InputError, match=r"row 0 .*column 'a'"):
        RowReader.fit(read_table(first, "source"))(pd.DataFrame({"g": ["a"], "a": [np.nan]}), "target")


def test_words_where_the_first_sample_has_numbers_are_refused():
    reader = RowReader.fit(read_table(pd.DataFrame({"a": [1.0, 3.0], "b": [2.0, 6.0]}), "source"))
    with pytest.raises(InputError, match=r"'low' in row 0 .*column 'a'"):
        reader(pd.DataFrame({"a": ["low", "2"], "b": [1.0, 2.0]}), "target")


def test_other_columns_are_refused_by_name_and_by_number():
    reader = RowReader.fit(read_table(pd.DataFrame({"a": [1.0, 3.0], "b": [2.0, 6.0]}), "source"))
    with pytest.raises(InputError, match=r"'b'.*'c'"):
        reader(pd.DataFrame({"a": [1.0], "c": [1.0]}), "target")
    with pytest.raises(InputError, match=r"3 features.* 2"):
        reader(np.zeros((4, 3)), "target")
    with pytest.raises(InputError, match="target contains infinity"):
        reader([[1.0, np.inf]], "target")


def test_columns_to_drop_are_left_out_of_every_batch_and_need_not_be_in_it():
    frame = pd.DataFrame({"id": ["p", "q", "r"], "a": [1.0, 2.0, 3.0]})
    read = Table("target", np.array([[9.0, 2.0]]), ("id", "a"))
    for table in (read_table(frame, "source"), read_table(frame, "source", ColumnSelection(drop=["id"]))):
        reader = RowReader.fit(table, drop=["id"])
        for batch in (frame.iloc[1:2], frame[["a"]].iloc[1:2], read, read_table(frame.iloc[1:2], "target")):
            np.testing.assert_array_equal(reader(batch, "target"), [[0.0]])
            np.testing.assert_array_equal(through_json(reader)(batch, "target"), [[0.0]])
    with pytest.raises(InputError, match=r"'idd'"):
        RowReader.fit(read_table(frame, "source"), drop=["idd"])


def test_a_column_that_varies_only_later_is_told():
    reader = RowReader.fit(read_table(pd.DataFrame({"a": [1.0, 3.0], "b": [2.0, 2.0]}), "source"))
    with pytest.warns(ColumnWarning, match=r"column 'b'"):
        rows = reader(pd.DataFrame({"a": [2.0, 2.0], "b": [2.0, 3.0]}), "target")
    assert rows.shape == (2, 1)


def test_what_the_caller_passes_stays_as_it_is():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 3)).astype(np.float32)
    kept = X.copy()
    rows = RowReader.fit(read_table(X, "source"))(X, "source")
    assert rows.dtype == np.float64
    rows[:] = 0
    np.testing.assert_array_equal(X, kept)


def _changed(header, path, value):
    """A copy of a header with another value at a path of keys."""
    made = json.loads(json.dumps(header))
    *way, last = path
    place = made
    for key in way:
        place = place[key]
    if value is KeyError:
        del place[last]
    else:
        place[last] = value
    return made


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("columns",), ["a"]), (("columns",), "abc"), (("columns",), [1, 2, 3]), (("columns",), ["x", "x", "level"]),
        (("columns",), None), (("columns",), ["x", "level", "other"]), (("width",), 0), (("width",), 2), (("width",), True),
        (("width",), "3"), (("width",), 10**30), (("drop",), None), (("drop",), [None]), (("drop",), KeyError),
        (("encoder",), None), (("encoder",), []), (("encoder",), 3), (("encoder", "columns"), []),
        (("encoder", "columns"), {}), (("encoder", "columns", 0), None), (("encoder", "columns", 0, "kind"), "category"),
        (("encoder", "columns", 0, "kind"), "picture"), (("encoder", "columns", 0, "kind"), []),
        (("encoder", "columns", 0, "median"), None), (("encoder", "columns", 0, "median"), float("nan")),
        (("encoder", "columns", 0, "median"), 10**400), (("encoder", "columns", 0, "gaps"), 1),
        (("encoder", "columns", 0, "name"), "level"), (("encoder", "columns", 0, "missing"), 2.0),
        (("encoder", "columns", 1, "kept"), [0]), (("encoder", "columns", 1, "kept"), ["a", "a"]),
        (("encoder", "columns", 1, "rare"), ["a"]), (("encoder", "columns", 1, "rare"), -1),
        (("encoder", "min_frequency"), 0), (("encoder", "min_frequency"), 1.5), (("encoder", "named"), False),
        (("encoder", "named"), None), (("shift",), []), (("shift",), None), (("shift", 0), float("inf")),
        (("shift", 0), "1"), (("shift", 0), True), (("factor",), 1.0), (("factor", 0), -1.0), (("factor", 0), 0.0),
        (("constant",), [1.0, 2.0, 3.0]), (("more",), 1),
    ],
)  # fmt: skip
def test_a_changed_header_is_refused_with_a_sentence(path, value):
    frame = mixed_frame(np.random.default_rng(4), 100)[["x", "level", "when"]]
    header = RowReader.fit(read_table(frame, "source")).to_header()
    RowReader.from_header(header)
    with pytest.raises(InputError, match=r"stored of .*damaged"):
        RowReader.from_header(_changed(header, path, value))


def test_a_header_that_is_no_object_is_refused():
    for header in (None, [], "x", 3):
        with pytest.raises(InputError, match=r"how rows are read.*damaged"):
            RowReader.from_header(header)
