"""What users pass besides plain CSV files: gzip, pipes, standard input, Parquet, sparse matrices, tensors, wide tables."""

import gzip
import io
import json
import os
import sys
import threading
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from pyarrow import parquet

import priorshift as ps
from priorshift.cli import main
from priorshift.errors import InputError
from priorshift.io import readers as parquet_files
from priorshift.io.readers import read_numeric_table, read_table
from priorshift.io.tables import ColumnSelection, Table, check_dropped, match_columns

SAMPLE = ps.simulate.gaussian(0.2, 0.6, 200, 200, dimension=3, shared=False, random_state=0)
TABLES = {"positive": SAMPLE.positive, "unlabeled": SAMPLE.unlabeled, "target": SAMPLE.target}


def as_csv(X, separator=","):
    text = pd.DataFrame(X, columns=list("abc")).to_csv(index=False, sep=separator, float_format="%.17g")
    return text.replace(".", ",") if separator == ";" else text


@pytest.fixture
def files(tmp_path):
    """Arguments that name the three tables."""
    arguments = {}
    for name, X in TABLES.items():
        (tmp_path / f"{name}.csv").write_text(as_csv(X))
        arguments[f"--{name}"] = str(tmp_path / f"{name}.csv")
    return arguments


@pytest.fixture
def answer(capsys):
    """Run `priorshift estimate` for its answer, or for its sentence."""

    def run(arguments, command="estimate"):
        given = [part for pair in arguments.items() for part in pair]
        code = main([command, *given, "--method", "tcpu", "--source-prior", "0.2", "--json"])
        said = capsys.readouterr()
        assert code == 0 or (code == 2 and said.err.count("\n") == 1 and not said.out), said
        return json.loads(said.out) if code == 0 else said.err

    return run


@pytest.fixture
def stdin(monkeypatch):
    """Set what comes through standard input."""

    def set_content(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return set_content


def write_later(path, content, pause=0.0):
    """Open a pipe, wait, and write into it."""

    def write():
        with open(path, "wb") as pipe:
            time.sleep(pause)
            pipe.write(content)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    return writer


# ---- one problem in every dress


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.txt.gz", "t.CSV.GZ"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_a_gzipped_file_is_read_whatever_its_name_says(name, separator, files, answer, tmp_path):
    plain = answer(files)
    (tmp_path / name).write_bytes(gzip.compress(as_csv(SAMPLE.target, separator).encode()))
    assert answer(files | {"--target": str(tmp_path / name)}) == plain


def test_a_file_that_was_unpacked_and_kept_its_name_is_read(files, answer, tmp_path):
    plain = answer(files)
    (tmp_path / "t.csv.gz").write_text(as_csv(SAMPLE.target))
    assert answer(files | {"--target": str(tmp_path / "t.csv.gz")}) == plain


@pytest.mark.parametrize("which", TABLES)
@pytest.mark.parametrize("packed", [False, True])
def test_one_table_may_come_through_standard_input(which, packed, files, answer, stdin):
    plain = answer(files)
    content = as_csv(TABLES[which]).encode()
    stdin(gzip.compress(content) if packed else content)
    assert answer(files | {f"--{which}": "-"}) == plain


def test_two_tables_cannot_come_through_standard_input(files, answer, stdin):
    stdin(as_csv(SAMPLE.target).encode())
    said = answer(files | {"--unlabeled": "-", "--target": "-"})
    assert "--unlabeled and --target are both standard input (-)" in said


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "--target (standard input) is empty; pass a file with a header and at least two rows"),
        (b"PAR1...", "is a Parquet file, but a pipe is read as CSV text; pass the file's own path"),
        (b"a,b,c\n1,2\n", "--target (standard input) has 2 cells in line 2, but 3 in its first line"),
        ("a,b,c\n1,2,3\n".encode("utf-16"), "--target (standard input) is UTF-16 text"),
        (gzip.compress(b"a,b,c\n1,2,3\n" * 9, mtime=0)[:20], "--target (standard input) is a damaged gzip file"),
    ],
)
def test_what_comes_through_standard_input_is_checked_like_a_file(content, sentence, files, answer, stdin):
    stdin(content)
    assert sentence in answer(files | {"--target": "-"})


@pytest.mark.parametrize("there", [False, True])
def test_closed_standard_input_is_a_sentence(there, files, answer, monkeypatch):
    closed = io.TextIOWrapper(io.BytesIO())
    closed.close()
    monkeypatch.setattr(sys, "stdin", closed if there else None)
    assert "--target is standard input (-), which is closed; pass a file" in answer(files | {"--target": "-"})


# ---- pipes and devices


def test_a_named_pipe_is_read_once_however_slow_its_writer(files, answer, tmp_path):
    plain = answer(files)
    os.mkfifo(tmp_path / "pipe")
    writer = write_later(tmp_path / "pipe", as_csv(SAMPLE.target).encode(), pause=0.3)
    assert answer(files | {"--target": str(tmp_path / "pipe")}) == plain
    writer.join(timeout=10)
    writer = write_later(tmp_path / "pipe", b"a,b\n1,2.5\n3,4\n")
    np.testing.assert_array_equal(read_table(tmp_path / "pipe", "t").values, [[1, 2.5], [3, 4]])
    writer.join(timeout=10)


def test_what_a_shell_puts_in_place_of_a_command_is_read(files, answer):
    """As in --target <(zcat t.csv.gz), which is the path of an open pipe."""
    plain = answer(files)
    read, write = os.pipe()
    writer = write_later(write, as_csv(SAMPLE.target).encode())
    assert answer(files | {"--target": f"/dev/fd/{read}"}) == plain
    writer.join(timeout=10)
    os.close(read)


def test_a_pipe_that_nobody_writes_into_is_not_waited_for(files, answer, tmp_path, monkeypatch):
    monkeypatch.setattr("priorshift.io.files._PATIENCE", 0.1)
    os.mkfifo(tmp_path / "pipe.csv")
    sentence = "is a pipe that nobody writes into; start its writer, or pass a file"
    assert sentence in answer(files | {"--target": str(tmp_path / "pipe.csv")})
    with pytest.raises(InputError, match=sentence):
        ps.estimate_prior(SAMPLE.positive, SAMPLE.unlabeled, tmp_path / "pipe.csv")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_not_read(device, files, answer):
    sentence = "is a device, but a file is expected; on the command line, - is standard input"
    assert sentence in answer(files | {"--target": device})
    with pytest.raises(InputError, match=sentence):
        read_table(device, "t")


# ---- headers of numbers


@pytest.mark.parametrize(
    "text",
    ["0,1\n0,1\n1,0\n", "1,2,3,4\n1,2,3,4\n5,5,5,5\n0,0,0,0\n", "7,8\n0.5,9\n7,8\n", "5,6\n1,1\n2,2\n", "1,2\n",
     "2020\n15\n2021\n2019.5\n", "2019;2020\n1,5;2\n", "2001,1999\n3,4\n5,6\n"],
)  # fmt: skip
def test_a_first_line_that_looks_like_names_is_refused(text, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=r"header of numbers"):
        read_table(tmp_path / "t.csv", "t")


@pytest.mark.parametrize(
    "text",
    ["1,2\n3,1\n1,4\n", "3,4,5\n1,1,1\n5,5,5\n", "2019\n1990\n2020\n", "2,1\n0.5,3\n", "1.0,2.0\n0.5,3\n", "1,3\n0.5,3\n",
     "2020,2020\n0.5,3\n", "-1,0\n0.5,3\n", "1899,2000\n0.5,2\n"],
)  # fmt: skip
def test_a_first_line_that_may_be_a_row_is_one(text, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    table = read_table(tmp_path / "t.csv", "t")
    assert table.columns is None and len(table.values) == len(text.splitlines())


def test_adapt_scores_no_header(files, answer, tmp_path):
    np.savetxt(tmp_path / "n.csv", SAMPLE.target, delimiter=",", header="1,2,3", comments="")
    named = files | {"--target": str(tmp_path / "n.csv"), "--output": str(tmp_path / "o.csv")}
    assert "begins with 1, 2, …, a header of numbers" in answer(named | {"--classifier": "logistic"}, "adapt")
    assert not (tmp_path / "o.csv").exists()


# ---- adapt copies what it read


@pytest.mark.parametrize("way", ["standard input", "pipe", "gzip"])
def test_adapt_copies_what_can_be_read_only_once(way, files, answer, stdin, tmp_path):
    content = as_csv(SAMPLE.target, ";").encode()
    given = {"standard input": "-", "pipe": str(tmp_path / "pipe"), "gzip": str(tmp_path / "t.csv.gz")}[way]
    output = tmp_path / ("o.csv.gz" if way == "gzip" else "o.csv")
    if way == "standard input":
        stdin(content)
    elif way == "gzip":
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content))
    else:
        os.mkfifo(given)
        write_later(given, content)
    arguments = {"--output": str(output), "--classifier": "logistic", "--target-prior": "0.5"}
    answer(files | {"--target": given} | arguments, "adapt")
    made = pd.read_csv(output, sep=";", dtype=str).map(lambda cell: float(cell.replace(",", ".")))
    assert list(made) == ["a", "b", "c", "posterior", "decision"]
    np.testing.assert_array_equal(made[["a", "b", "c"]], SAMPLE.target)
    np.testing.assert_array_equal(made["posterior"] > 0.5, made["decision"] == 1)


def test_the_copy_of_text_is_text(files, answer, stdin, tmp_path):
    stdin(b"never read")
    said = answer(files | {"--target": "-", "--output": str(tmp_path / "o.parquet")}, "adapt")
    assert "must end in .csv or .tsv or .txt, as the target does" in said


# ---- Parquet


POOLS = []  # which must outlive what they gave


def most_of_arrow(action):
    """The most that arrow holds while something is done, in bytes, and what comes of it."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    try:
        return action(), pool.max_memory()
    finally:
        pa.set_memory_pool(before)


@pytest.mark.parametrize("group", [20_000, 400_000])
def test_parquet_is_read_by_blocks_and_by_its_wanted_columns(group, tmp_path):
    X = np.random.default_rng(0).normal(size=(400_000, 3))
    a, b, c = X.T
    table = pa.table({"a": a, "note": np.repeat("x" * 50, len(X)), "b": b, "c": c, "id": np.arange(len(X))})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=group, use_dictionary=False)
    _, whole = most_of_arrow(lambda: parquet.read_table(tmp_path / "t.parquet"))
    read, used = most_of_arrow(
        lambda: read_table(tmp_path / "t.parquet", "t", ColumnSelection(extra=["id"], drop=["note"]))
    )
    assert read.columns == ("a", "b", "c") and read.dropped == ("note",)
    np.testing.assert_array_equal(read.values, X)
    np.testing.assert_array_equal(read.extra["id"], np.arange(len(X)))
    assert used < whole / 5  # the numbers of all wanted columns alone would be a third


@pytest.mark.parametrize("columns", ["number", "mixed", "float32", "decimal", "dotted"])
def test_parquet_gives_what_the_frame_gives(columns, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "_ROWS", 3)
    k = np.arange(10)
    frame = {
        "number": pa.table({"a": k / 4, "b": k % 2 == 0, "c": k.astype(np.uint8)}),
        "mixed": pa.table({"b": k % 2 == 0, "c": k.astype(np.int64) * 2**40}),
        "float32": pa.table({"a": (k / 4).astype(np.float32), "b": (k / 3).astype(np.float32)}),
        "decimal": pa.table({"a": pa.array([f"{x}.25" for x in k]).cast(pa.decimal128(9, 2)), "b": k / 4}),
        "dotted": pa.table({"a": k / 4, "a.b": k / 3, "c.d": k / 2}),
    }[columns]
    parquet.write_table(frame, tmp_path / "t.parquet", row_group_size=4)
    read, plain = read_table(tmp_path / "t.parquet", "t"), read_table(frame, "t")
    assert read.columns == plain.columns and read.values.dtype == plain.values.dtype
    np.testing.assert_array_equal(read.values, plain.values)


def test_a_missing_cell_of_parquet_is_named_by_its_row_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "_ROWS", 3)
    cells = [1.0] * 7 + [None] + [2.0]
    parquet.write_table(pa.table({"a": cells, "s": ["x"] * 9}), tmp_path / "t.parquet", row_group_size=2)
    with pytest.raises(InputError, match=r"row 7 .*column 'a'"):
        read_numeric_table(tmp_path / "t.parquet", "t", ColumnSelection(drop=["s"]))
    with pytest.raises(InputError, match=r"'x' in row 0 .*column 's'"):
        read_numeric_table(tmp_path / "t.parquet", "t", ColumnSelection(drop=["a"]))


# ---- arrays


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dok", "lil", "bsr"])
@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_a_sparse_matrix_is_made_dense(kind, make):
    X = np.where(SAMPLE.target > 0, SAMPLE.target, 0)
    read = read_table(make(X).asformat(kind), "t").values
    np.testing.assert_array_equal(read, X)
    assert isinstance(read, np.ndarray)


def test_estimators_and_the_front_door_take_sparse_matrices():
    dense = [np.where(np.abs(X) > 0.5, X, 0) for X in TABLES.values()]
    wanted = ps.estimate_prior(*dense, source_prior=0.2, method="tcpu")
    assert ps.estimate_prior(*map(scipy.sparse.csc_array, dense), source_prior=0.2, method="tcpu") == wanted
    X, y = np.vstack(dense[:2]), np.repeat([1, 0], [len(dense[0]), len(dense[1])])
    assert ps.TCPU(0.2).fit(scipy.sparse.csr_array(X), y).estimate(scipy.sparse.csr_array(dense[2])) == wanted


def test_tensors_come_without_gradients_and_in_a_precision_that_numpy_has():
    torch = pytest.importorskip("torch")
    X = torch.tensor([[1.0, 2.5], [3.0, -4.0]])
    for tensor in (X, X.double(), X.bfloat16(), X.half(), X.clone().requires_grad_(), X.to_sparse(), X.T.contiguous().T,
                   torch.nn.Parameter(X), torch.nn.Parameter(X.bfloat16()), X.to(torch.float8_e5m2)):  # fmt: skip
        np.testing.assert_array_equal(read_table(tensor, "t").values, X.numpy())
    assert read_table(X, "t").values.dtype == np.float32
    with pytest.raises(InputError, match=r"device 'meta'"):
        read_table(X.to("meta"), "t")
    with pytest.raises(InputError, match=r"1 dimension"):
        read_table(X[0].bfloat16(), "t")


def test_a_tensor_of_another_device_is_brought_here():
    """There may be no such device where the tests run: a tensor that says so must be asked for its copy."""

    class Elsewhere:
        __module__ = "torch.somewhere"
        is_meta, is_quantized, layout, dtype = False, False, "torch.strided", "torch.float32"
        steps = ()

        def __array__(self, *_, **__):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

        def detach(self):
            self.steps += ("detach",)
            return self

        def cpu(self):
            self.steps += ("cpu",)
            return self

        def is_floating_point(self):
            return True

        def numpy(self):
            assert self.steps == ("detach", "cpu")
            return np.eye(2)

    np.testing.assert_array_equal(read_table(Elsewhere(), "t").values, np.eye(2))


def test_an_array_that_will_not_be_converted_is_a_sentence():
    class OnADevice:
        def __array__(self, *_, **__):
            raise TypeError("Implicit conversion is not allowed.\nUse .get().")

    with pytest.raises(InputError, match=r"cannot be made an array"):
        read_table(OnADevice(), "t")


# ---- wide tables


class Name(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def test_matching_columns_takes_as_many_comparisons_as_there_are_columns():
    n = 2000
    Name.compared = 0
    tables = [
        Table(which, np.arange(2.0 * n).reshape(2, n)[:, ::step], tuple(Name(f"c{k}") for k in range(n))[::step], {},
              tuple(Name(f"d{k}") for k in range(n)))
        for which, step in (("unlabeled", 1), ("target", -1))
    ]  # fmt: skip
    first, second = match_columns(tables)
    np.testing.assert_array_equal(first.values, second.values)
    with pytest.raises(InputError, match=r"'c0', 'c1'.*1992 more.*'x0'"):
        match_columns([tables[0], Table("target", np.zeros((2, n)), tuple(Name(f"x{k}") for k in range(n)))])
    check_dropped(tables, [Name(f"d{k}") for k in range(n)])
    assert Name.compared < 20 * n  # n²/2 where every name is looked for in a list


def test_ten_thousand_columns_of_a_file_take_as_long_a_column_as_one_thousand(tmp_path):
    """In processor time, the best of three; quadratic work would make it ten times as long."""
    seconds = {}
    for n in (1000, 10_000):
        path = tmp_path / f"{n}.csv"
        path.write_text("\n".join([",".join(f"c{k}" for k in range(n)), *[",".join(["0.5"] * n)] * 2]))
        frame = pd.read_csv(path)
        taken = []
        for _ in range(3):
            start = time.process_time()
            match_columns(
                [
                    read_table(path, "t", ColumnSelection(drop=["c3"])),
                    read_table(path, "u", ColumnSelection(drop=["c3"])),
                ]
            )
            taken.append(time.process_time() - start)
        seconds[n] = min(taken) / n
        assert read_table(path, "t").columns == tuple(frame.columns)
    assert seconds[10_000] < 4 * seconds[1000]
