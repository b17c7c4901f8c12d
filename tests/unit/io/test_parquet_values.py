"""Parquet files with values that pyarrow reads but cannot convert, or that contradict their own metadata."""

import datetime

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.io.chunks import Chunks
from priorshift.io.readers import read_table, text_sizes

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
DAYS = [datetime.datetime(2024, 1, 1) + datetime.timedelta(days=k) for k in range(6)]


def written(column, folder):
    parquet.write_table(pyarrow.table({"x": np.arange(float(len(column))), "t": column}), folder / "table.parquet")
    return folder / "table.parquet"


def read_both(path):
    return read_table(path, "target"), Chunks.from_source(path, "target").first()


def test_times_with_a_time_zone_are_read(tmp_path):
    path = written(pyarrow.array(DAYS, pyarrow.timestamp("us", tz="Europe/Berlin")), tmp_path)
    for table in read_both(path):
        assert table.cells[1].dtype == np.dtype("datetime64[us]")
        np.testing.assert_array_equal(np.diff(table.cells[1]), np.timedelta64(1, "D"))


def wrong_columns():
    offsets = pyarrow.py_buffer(np.arange(7, dtype=np.int32).tobytes())
    not_utf8 = pyarrow.Array.from_buffers(pyarrow.string(), 6, [None, offsets, pyarrow.py_buffer(b"\xff" * 6)])
    yield pytest.param(pyarrow.array([2**31 - 1] * 6, pyarrow.int32()).view(pyarrow.date32()), id="date out of range")
    yield pytest.param(not_utf8, id="not UTF-8")


@pytest.mark.parametrize("column", list(wrong_columns()))
def test_a_value_that_cannot_be_converted_is_a_sentence(column, tmp_path):
    path = written(column, tmp_path)
    for read in (lambda: read_table(path, "target"), lambda: Chunks.from_source(path, "target").first()):
        with pytest.raises(InputError, match=r"'t' of target.* cannot be read .*; correct or drop the column"):
            read()


def test_a_dictionary_that_is_too_short_is_damage(tmp_path, monkeypatch):
    path = written(pyarrow.array(list("abcabc")), tmp_path)
    assert sum(text_sizes(path, "target", ["t"])) == 6
    short = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 5]), pyarrow.array(["a", "b"]), safe=False)
    batch = pyarrow.record_batch([short], names=["t"])
    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", lambda *args, **options: iter([batch]))
    with pytest.raises(InputError, match="damaged Parquet"):
        list(text_sizes(path, "target", ["t"]))


def test_fewer_rows_than_the_file_says_are_damage(tmp_path, monkeypatch):
    path = written(pyarrow.array(list("abcabc")), tmp_path)
    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", lambda *args, **options: iter(()))
    with pytest.raises(InputError, match="damaged Parquet"):
        Chunks.from_source(path, "target").sample(3, np.random.default_rng(0))


@pytest.mark.parametrize("with_text", [False, True])
def test_the_missing_integer_of_r_is_missing_however_the_file_is_read(tmp_path, with_text):
    """Of 32-bit integers, as for data frames; with or without text in another column."""
    numbers = pyarrow.array([1, -(2**31), 3, 4, 5, 6], pyarrow.int32())
    columns = {"n": numbers} | ({"t": list("abcabc")} if with_text else {"t": np.arange(6.0)})
    parquet.write_table(pyarrow.table(columns), tmp_path / "table.parquet")
    for table in read_both(tmp_path / "table.parquet"):
        np.testing.assert_array_equal(table.as_cells().cells[0], [1, np.nan, 3, 4, 5, 6])
