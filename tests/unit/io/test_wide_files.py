"""Files with thousands of columns: reading takes time in proportion to the number of columns."""

import time

import numpy as np
import pytest

from priorshift.io.readers import read_table
from priorshift.io.tables import ColumnSelection


def test_the_schema_of_a_parquet_file_is_not_converted_for_every_column(tmp_path, monkeypatch):
    """pyarrow converts it anew at each access, so that a file of 10,000 columns would take minutes."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({f"x{k}": np.zeros(3) for k in range(50)}), tmp_path / "wide.parquet")
    accesses = []
    schema = parquet.ParquetFile.schema_arrow
    monkeypatch.setattr(
        parquet.ParquetFile, "schema_arrow", property(lambda file: accesses.append(file) or schema.fget(file))
    )
    assert read_table(tmp_path / "wide.parquet", "target").width == 50
    assert len(accesses) < 10


def test_dropping_half_of_many_columns_compares_no_pairs_of_names():
    """20,000 columns and 10,000 names to drop: comparing all pairs would take seconds."""
    columns = [f"x{k}" for k in range(20_000)]
    selection = ColumnSelection(drop=tuple(columns[::2]))
    started = time.process_time()
    features, extra, dropped = selection.split(columns)
    assert time.process_time() - started < 0.5
    assert (features, extra, dropped) == (columns[1::2], [], columns[::2])
