"""Samples that are read in batches: the same rows as when they are read at once, from any row on, in bounded memory."""

import gzip
import io
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from priorshift.errors import InputError
from priorshift.io.chunks import Chunks
from priorshift.io.files import Piped
from priorshift.io.readers import read_table
from priorshift.io.tables import join_tables

ROWS = 1000


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "row": np.arange(ROWS, dtype=float),
            "x": rng.normal(size=ROWS).round(6),
            "level": rng.choice(list("abc"), ROWS),
            "w": rng.random(ROWS).round(4),
        }
    )


@pytest.fixture
def numbers(frame):
    return frame[["row", "x", "w"]]


def all_forms(frame, folder):
    """One sample as everything that can be read in batches."""
    half = len(frame) // 2
    frame.to_parquet(folder / "groups.parquet", row_group_size=170)
    frame.to_parquet(folder / "one.parquet")
    frame.to_csv(folder / "plain.csv", index=False)
    frame.to_csv(folder / "packed.tsv.gz", index=False, sep="\t")
    (folder / "parts").mkdir()
    frame.iloc[:half].to_parquet(folder / "parts" / "part-0.parquet", index=False)
    frame.iloc[half:].to_parquet(folder / "parts" / "part-1.parquet", index=False)
    frame.iloc[:0].to_parquet(folder / "parts" / "part-2.parquet", index=False)
    (folder / "parts" / "_SUCCESS").touch()
    frame.iloc[half:].to_csv(folder / "rest.csv", index=False)
    pieces = [frame.iloc[k : k + 130] for k in range(0, len(frame), 130)]
    return {
        "row groups": folder / "groups.parquet",
        "one row group": str(folder / "one.parquet"),
        "CSV": folder / "plain.csv",
        "TSV, gzipped": folder / "packed.tsv.gz",
        "a folder": folder / "parts",
        "a list of files": [folder / "parts" / "part-0.parquet", folder / "rest.csv"],
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "arrow": pa.Table.from_pandas(frame, preserve_index=False),
        "tables": pieces,
        "a generator": (piece for piece in pieces),
        "an iterable": Again(pieces),
        "record batches": pa.Table.from_pandas(frame, preserve_index=False).to_batches(max_chunksize=90),
        "a reader of record batches": pa.Table.from_pandas(frame, preserve_index=False).to_reader(max_chunksize=90),
        "pandas in chunks": pd.read_csv(io.StringIO(frame.to_csv(index=False)), chunksize=90),
        "a pipe": Piped("-", frame.to_csv(index=False).encode()),
        "batches": Chunks.from_source(frame, "target", extra=["w"], rows_per_chunk=64),
    }


class Again:
    def __init__(self, pieces):
        self.pieces = pieces

    def __iter__(self):
        return iter(self.pieces)


FORMS = [
    "row groups", "one row group", "CSV", "TSV, gzipped", "a folder", "a list of files", "pandas", "polars", "arrow", "tables",
    "a generator", "a reader of record batches", "pandas in chunks", "record batches", "an iterable", "a pipe", "batches",
]  # fmt: skip


ONCE = ["a generator", "a reader of record batches", "pandas in chunks"]


def as_frame(tables):
    """What tables hold, whichever kind they are."""
    table = join_tables(list(tables), "all")
    cells = table.values.T if not table.cells else table.cells
    made = dict(zip(table.columns, cells, strict=True))
    return pd.DataFrame(made | {name: column.astype(float) for name, column in table.extra.items()})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mixed", [False, True])
def test_batches_hold_the_rows_of_the_sample_in_order(form, mixed, frame, tmp_path):
    frame = frame if mixed else frame.drop(columns="level")
    batches = Chunks.from_source(all_forms(frame, tmp_path)[form], "target", extra=["w"], rows_per_chunk=64)
    read = list(batches)
    assert all(bool(batch.cells) == mixed for batch in read)
    assert all(1 <= len(batch) <= 64 for batch in read)
    pd.testing.assert_frame_equal(as_frame(read), frame[[c for c in frame if c != "w"] + ["w"]])


@pytest.mark.parametrize("form", FORMS)
def test_reading_goes_on_from_any_row(form, numbers, tmp_path):
    source = all_forms(numbers, tmp_path)
    reads = {}
    for start in (0, 1, 63, 64, 170, 171, 510, 999, 1000, 5000):
        if form in ONCE and start:
            source = {form: (piece for piece in [numbers])}
        batches = Chunks.from_source(source[form], "target", extra=["w"], rows_per_chunk=64)
        reads[start] = list(batches.after(start))
        rows = np.concatenate([np.empty(0), *(batch.values[:, 0] for batch in reads[start])])
        np.testing.assert_array_equal(rows, np.arange(start, ROWS))
    if form not in ONCE:  # from the end of a batch on they are the batches that they were
        begins = np.cumsum([0, *(len(batch) for batch in reads[0])])
        again = list(Chunks.from_source(source[form], "target", extra=["w"], rows_per_chunk=64).after(int(begins[3])))
        assert [len(batch) for batch in again] == [len(batch) for batch in reads[0][3:]]
        assert [batch.name for batch in again] == [batch.name for batch in reads[0][3:]]


@pytest.mark.parametrize("form", FORMS)
def test_a_sample_of_all_rows_is_all_rows(form, frame, tmp_path):
    batches = Chunks.from_source(all_forms(frame, tmp_path)[form], "target", extra=["w"], rows_per_chunk=64)
    pd.testing.assert_frame_equal(
        as_frame([batches.sample(5000, np.random.default_rng(0))]), frame[["row", "x", "level", "w"]]
    )
    assert sum(map(len, batches)) == ROWS


@pytest.mark.slow
@pytest.mark.parametrize("form", [form for form in FORMS if form not in ONCE])
def test_a_sample_is_spread_over_all_rows_and_the_same_for_a_seed(form, numbers, tmp_path):
    """The mean of the row numbers, of 60 samples of 100: off by four standard errors of simple random samples."""
    source = all_forms(numbers, tmp_path)[form]
    batches = Chunks.from_source(source, "target", drop=["x", "w"], rows_per_chunk=64)
    if form == "batches":
        batches = Chunks.from_source(Chunks.from_source(numbers, "target", drop=["x", "w"]), "target")
    rng = np.random.default_rng(0)
    drawn = [batches.sample(100, rng).values[:, 0] for _ in range(60)]
    assert all(len(np.unique(rows)) == 100 for rows in drawn)
    every = np.concatenate(drawn)
    error = np.sqrt((ROWS**2 - 1) / 12 * (1 - 100 / ROWS) / len(every))
    assert abs(every.mean() - (ROWS - 1) / 2) < 4 * error
    counts = np.histogram(every, bins=10, range=(0, ROWS))[0]
    expected = len(every) / 10
    assert ((counts - expected) ** 2 / expected).sum() < 30  # 27.9 is exceeded once in 1000 by chance
    one, two = (batches.sample(20, np.random.default_rng(7)).values for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_many_row_groups_and_many_files_are_drawn_from_evenly(tmp_path, monkeypatch):
    monkeypatch.setattr("priorshift.io.chunks._SPREAD", 8)
    frame = pd.DataFrame({"row": np.arange(4000.0)})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=20)
    (tmp_path / "parts").mkdir()
    for k in range(40):
        frame.iloc[100 * k : 100 * (k + 1)].to_parquet(tmp_path / "parts" / f"{k:03}.parquet", row_group_size=20)
    for source in (tmp_path / "t.parquet", tmp_path / "parts"):
        rows = Chunks.from_source(source, "target").sample(100, np.random.default_rng(1)).values[:, 0]
        assert len(rows) == 100
        assert len(np.unique(rows // 20)) == 8  # pieces of 20 rows that were read
        assert (np.bincount((rows // 500).astype(int), minlength=8) > 0).all()


def test_a_sample_of_a_generator_is_of_its_first_tables_which_are_read_all_the_same():
    tables = (np.arange(100 * k, 100 * (k + 1), dtype=float)[:, None] for k in range(10))
    batches = Chunks.from_source(tables, "target")
    rows = batches.sample(150, np.random.default_rng(0)).values[:, 0]
    assert len(np.unique(rows)) == 150 and rows.max() < 200 and (rows >= 100).any()
    np.testing.assert_array_equal(np.concatenate([b.values[:, 0] for b in batches]), np.arange(1000))
    assert not batches.can_repeat
    for again in (lambda: list(batches), lambda: batches.sample(5, np.random.default_rng(0))):
        with pytest.raises(InputError, match=r"iterator"):
            again()


def test_rows_are_counted_where_that_is_cheap(numbers, tmp_path):
    forms = all_forms(numbers, tmp_path)
    known = {form: Chunks.from_source(source, "target").rows for form, source in forms.items()}
    unknown = {"CSV", "TSV, gzipped", "a list of files", *ONCE, "an iterable", "a pipe"}
    assert known == {form: None if form in unknown else ROWS for form in forms}
    batches = Chunks.from_source(forms["CSV"], "target")
    batches.sample(5, np.random.default_rng(0))
    assert batches.rows == ROWS


def test_only_iterators_cannot_be_read_again(numbers, tmp_path):
    for form, source in all_forms(numbers, tmp_path).items():
        batches = Chunks.from_source(source, "target")
        assert batches.can_repeat == (form not in ONCE)
        if batches.can_repeat:
            assert sum(map(len, batches)) == sum(map(len, batches)) == ROWS


def test_wide_tables_come_in_batches_of_fewer_rows(monkeypatch):
    monkeypatch.setattr("priorshift.io.tables._CELLS_PER_CHUNK", 100)
    assert [len(batch) for batch in Chunks.from_source(np.zeros((25, 10)), "target")] == [10, 10, 5]
    assert [len(batch) for batch in Chunks.from_source(np.zeros((2, 1000)), "target")] == [1, 1]


def write(path, text):
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_quoted_cells_with_line_breaks_never_fall_apart(rows, end, tmp_path):
    lines = [f'{k},"one{end}two, ""{k}""",{k / 2}' for k in range(20)]
    path = write(tmp_path / "t.csv", end.join(["id,text,x", "", *lines[:9], "", *lines[9:]]))
    batches = Chunks.from_source(path, "target", rows_per_chunk=rows)
    whole = read_table(path, "target")
    for found in (list(batches), [batches.sample(100, np.random.default_rng(0))]):
        made = join_tables(found, "all")
        for cells, expected in zip(made.cells, whole.cells, strict=True):
            np.testing.assert_array_equal(cells, expected)
    np.testing.assert_array_equal(join_tables(list(batches.after(13)), "all").cells[0], np.arange(13.0, 20.0))


def test_a_quotation_mark_for_inches_is_no_quotation(tmp_path):
    path = write(tmp_path / "t.csv", "size,x\n" + "".join(f'{k}" pipe,{k}\n' for k in range(5000)))
    read = join_tables(list(Chunks.from_source(path, "target", rows_per_chunk=3)), "all")
    np.testing.assert_array_equal(read.cells[1], np.arange(5000.0))
    lone = write(tmp_path / "u.csv", 'size,x\n3" pipe,0\n' + "".join(f"{k},{k}\n" for k in range(1, 5000)))
    batches = list(Chunks.from_source(lone, "target", rows_per_chunk=100))
    assert max(map(len, batches)) <= 1100 and sum(map(len, batches)) == 5000


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 1000])
def test_quoted_cells_with_line_breaks_are_whole_next_to_quotation_marks_for_inches(rows, tmp_path):
    lines = [f'{k}" pipe,"one\ntwo",{k}' if k % 3 else f'{k},"one",{k}' for k in range(20)]
    path = write(tmp_path / "t.csv", "\n".join(["size,text,x", *lines]))
    made = join_tables(list(Chunks.from_source(path, "target", rows_per_chunk=rows)), "all")
    for cells, expected in zip(made.cells, read_table(path, "target").cells, strict=True):
        np.testing.assert_array_equal(cells, expected)


@pytest.mark.parametrize("rows", [1, 2, 3, 50, 1000])
def test_a_quotation_mark_that_is_not_closed_is_refused_in_batches(rows, tmp_path):
    lines = [f"{k},{k}" for k in range(3000)]
    lines[10] = '10,"10'
    path = write(tmp_path / "t.csv", "\n".join(["a,b", *lines]))
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for source in (path, packed, Piped("standard input", path.read_bytes())):
        batches = Chunks.from_source(source, "target", rows_per_chunk=rows)
        for read in (lambda b: list(b), lambda b: b.sample(5, np.random.default_rng(0)), lambda b: list(b.after(20))):
            with pytest.raises(InputError, match=r"^target \(.*\) has a quotation mark in line 12 that is not closed"):
                read(batches)


def test_empty_cells_between_tabs_are_a_row_and_blank_lines_are_none(tmp_path):
    path = write(tmp_path / "t.tsv", "a\tb\n1\t2\n\t\n\n3\t4\n  \n5\t6")
    read = join_tables(list(Chunks.from_source(path, "target", rows_per_chunk=2)), "all")
    np.testing.assert_array_equal(read.cells[0], [1, np.nan, 3, 5])
    np.testing.assert_array_equal(
        join_tables(list(Chunks.from_source(path, "target", rows_per_chunk=2).after(2)), "all").values, [[3, 4], [5, 6]]
    )


def test_a_column_that_is_text_in_one_block_and_numbers_in_another_is_text_in_the_sample(tmp_path):
    codes = ["01"] * 50 + ["A1"] * 50
    path = write(tmp_path / "t.csv", "code,x\n" + "".join(f"{code},{k}\n" for k, code in enumerate(codes)))
    batches = Chunks.from_source(path, "target", rows_per_chunk=25)
    assert {batch.cells[0].dtype.kind if batch.cells else "numbers" for batch in batches} == {
        "numbers",
        "O",
    }
    assert set(batches.sample(100, np.random.default_rng(0)).cells[0]) == {"01", "A1"}


def test_decimal_commas_are_known_from_the_first_block_on(tmp_path):
    path = write(tmp_path / "t.csv", "a;w\n1,5;0,25\n1,25;2\n" + "1,234;1,234\n" * 10)
    read = list(Chunks.from_source(path, "target", extra=["w"], rows_per_chunk=2))
    np.testing.assert_array_equal(join_tables(read, "all").values[:, 0], [1.5, 1.25] + [1.234] * 10)
    assert join_tables(read, "all").extra["w"].tolist() == ["0.25", "2"] + ["1.234"] * 10
    with pytest.raises(InputError, match=r"'3\.5' in line 5, column 'a'"):
        list(
            Chunks.from_source(write(tmp_path / "u.csv", "a;b\n1,5;1\n2,5;1\n1;1\n3.5;2\n"), "target", rows_per_chunk=2)
        )
    with pytest.raises(InputError, match=r"'3,5' in line 5, column 'a'"):
        list(
            Chunks.from_source(write(tmp_path / "v.csv", "a;b\n1.5;1\n2.5;1\n1;1\n3,5;2\n"), "target", rows_per_chunk=2)
        )


def test_what_is_wrong_in_a_file_is_said_with_its_line(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n" + "1,2\n" * 100 + "1,2,3\n" + "1,2\n" * 100)
    for look in (list, lambda batches: batches.sample(1000, np.random.default_rng(0))):
        with pytest.raises(InputError, match=r"t\.csv.*line 102"):
            look(Chunks.from_source(path, "target", rows_per_chunk=10))
    path = write(tmp_path / "u.csv", "a,b\n" + "1,2\n" * 15 + "1,inf\n")
    with pytest.raises(InputError, match=r"u\.csv.*row 10.*inf.*row 5"):
        list(Chunks.from_source(path, "target", rows_per_chunk=10))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda d: d / "none.csv", r"target \(.*none\.csv\) does not exist"),
        (lambda d: [d / "t.csv", d / "none.parquet"], r"target \(.*none\.parquet\) does not exist"),
        (lambda d: d / "empty", "is a folder without Parquet files"),
        (lambda d: [d / "t.csv", str(d / "t.csv")], r"target names .*t\.csv more than once"),
        (lambda d: d / "rows.parquet", "target has no rows"),
        (lambda d: d / "damaged.parquet", "is a damaged Parquet file"),
        (lambda d: d / "cut.csv.gz", "is a damaged gzip file"),
        (lambda d: d / "latin.csv", "is neither UTF-8 nor Windows-1252 text"),
        (lambda d: d / "head.csv", "target has no rows"),
        (lambda d: pd.DataFrame({"a": []}), "target has no rows"),
        (lambda d: iter([]), "target has no rows"),
        (lambda d: [1.0, 2.0], "target"),
        (lambda d: iter([[1.0, 2.0]]), "target is an iterator, which can be read only once"),
        (lambda d: 3, "target"),
        (lambda d: "x" * 5000, "is not a path"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_a_sentence(make, sentence, tmp_path):
    write(tmp_path / "t.csv", "a,b\n1,2\n3,5\n")
    (tmp_path / "empty").mkdir()
    pd.DataFrame({"a": np.empty(0)}).to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1" + b"x" * 100)
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 10000)
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "latin.csv").write_bytes(b"a,b\n" + b"1,2\n" * 5000 + b"1,\x81\n")
    write(tmp_path / "head.csv", "a,b\n")
    for look in (list, lambda batches: batches.sample(10, np.random.default_rng(0))):
        with pytest.raises(InputError, match=sentence):
            look(Chunks.from_source(make(tmp_path), "target"))


def test_columns_to_set_aside_must_be_there_and_optional_ones_need_not(numbers, tmp_path):
    for form, source in all_forms(numbers, tmp_path).items():
        if form == "batches":
            continue
        with pytest.raises(InputError, match=r"column 'weight'"):
            list(Chunks.from_source(source, "target", extra=["weight"]))
    for form, source in all_forms(
        numbers, tmp_path / "again" if (tmp_path / "again").mkdir() is None else None
    ).items():
        if form != "batches":
            (first, *_) = Chunks.from_source(
                source, "target", optional=["w", "v"], drop=["row", "u"], rows_per_chunk=64
            )
            assert first.columns == ("x",) and list(first.extra) == ["w"] and first.dropped == ("row",)


def test_a_damaged_row_group_is_told_where_it_is_read(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"a": np.random.default_rng(0).normal(size=5000)}),
        path,
        row_group_size=1000,
        use_dictionary=False,
        compression="zstd",
    )
    content = bytearray(path.read_bytes())
    content[20000:24000] = b"\xff" * 4000
    path.write_bytes(content)
    good = []
    with pytest.raises(InputError, match=r"t\.parquet.*damaged"):
        good.extend(Chunks.from_source(path, "target"))
    assert len(good) == 2  # which row groups come before it


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the process from /proc")
@pytest.mark.parametrize(("kind", "rows", "bound"), [("parquet", 900_000, 80), ("csv", 120_000, 30)])
def test_memory_does_not_grow_with_the_file(kind, rows, bound, tmp_path):
    """After a small file, a large one needs hardly more, in MB.

    Measured are 50 and 0. Where arrow reads a row group at once it is 113, and where the text is one block 60; arrow
    keeps what it has used before, hence the room.
    """
    rng = np.random.default_rng(0)
    small, large = tmp_path / f"small.{kind}", tmp_path / f"large.{kind}"
    few = pl.DataFrame({f"c{k}": rng.normal(size=10_000) for k in range(10)})
    if kind == "parquet":
        few.write_parquet(small)
        pq.write_table(pa.table({f"c{k}": rng.normal(size=rows) for k in range(10)}), large, row_group_size=rows)
    else:
        text = few.write_csv()
        small.write_text(text)
        large.write_text(text + (rows // 10_000 - 1) * text.split("\n", 1)[1])
    code = f"""
import numpy as np
from priorshift.io.chunks import Chunks
def megabytes(): return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20
for path in ({str(small)!r}, {str(large)!r}):
    batches = Chunks.from_source(path, "target", rows_per_chunk=10_000)
    rows, most = 0, 0
    for batch in batches:
        rows, most = rows + len(batch.values), max(most, megabytes())
    batches.sample(1000, np.random.default_rng(0))
    print(rows, max(most, megabytes()))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert (int(said[0]), int(said[2])) == (10_000, rows)
    assert float(said[3]) - float(said[1]) < bound


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="pyarrow has no such type before 16")
def test_text_that_arrow_keeps_as_views_is_drawn_from_and_read(tmp_path):
    words = ["a", "b", None, "c"] * 50
    table = pa.table({"x": np.arange(200.0), "c": pa.array(words, pa.string_view())})
    pq.write_table(table, tmp_path / "t.parquet")
    batches = Chunks.from_source(tmp_path / "t.parquet", "target")
    drawn = batches.sample(20, np.random.default_rng(0))
    assert [words[int(x)] for x in drawn.cells[0]] == drawn.cells[1].tolist()
    assert [cell for batch in batches for cell in batch.cells[1]] == words


def test_a_column_of_nothing_is_one_without_values_whatever_a_file_calls_it(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0], "c": [None, None]})
    frame.to_parquet(tmp_path / "t.parquet")
    assert pq.read_schema(tmp_path / "t.parquet").field("c").type == pa.null()
    [batch] = Chunks.from_source(tmp_path / "t.parquet", "target")
    assert batch.cells[1].tolist() == [None, None]


def test_decimals_of_many_digits_are_numbers(tmp_path):
    cells = pa.array([Decimal("1.5"), None, Decimal("-2.25")], pa.decimal256(60, 2))
    pq.write_table(pa.table({"x": cells}), tmp_path / "t.parquet")
    [batch] = Chunks.from_source(tmp_path / "t.parquet", "target")
    np.testing.assert_array_equal(batch.cells[0], [1.5, np.nan, -2.25])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty; pass a file with a header"),
        (b"\n \n", "is empty; pass a file with a header"),
        (b"PAR1" + b"\0" * 50, "is a Parquet file, but a pipe is read as CSV text"),
        (b"\x1f\x8b\x08\x00", "is a damaged gzip file"),
        (b"a\0b", "is a binary file, not text"),
    ],
    ids=["empty", "blank", "parquet", "gzip", "binary"],
)
def test_what_comes_through_a_pipe_and_is_no_text_is_refused(content, said):
    with pytest.raises(InputError, match=rf"the sample \(standard input\) {said}"):
        list(Chunks.from_source(Piped("standard input", content), "the sample"))
