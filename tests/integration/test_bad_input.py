"""Bad input gets one sentence, from Python and from the command line, and leaves no file behind."""

import csv
import gzip
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from exact_problems import random_problem

import priorshift as ps
from priorshift.cli import main
from priorshift.errors import InputError
from priorshift.monitoring.state_file import read_state

PROBLEM = random_problem(copies=(2, 3, 2, 1))
GOOD = {"positive": PROBLEM.positive, "unlabeled": PROBLEM.unlabeled, "target": PROBLEM.target}


class WithoutParameters:
    """An estimator, but for scikit-learn's contract."""

    def fit(self, X, y):
        return self

    def estimate(self, X_target): ...

    def __repr__(self):
        return "a WithoutParameters"


def with_cell(X, value):
    X = X.copy()
    X[1, 2] = value
    return X


# Arrays that stand in for one of the three tables: (which, what, sentence). The same goes through a CSV file.
BAD_VALUES = [
    ("target", with_cell(PROBLEM.target, np.nan), r"contains NaN .*in row 1 \(counting from 0\), column"),
    ("positive", with_cell(PROBLEM.positive, np.inf), r"contains infinity \(inf\) in row 1 .*; replace it"),
    ("unlabeled", with_cell(PROBLEM.unlabeled, -np.inf), r"contains infinity \(inf\) in row 1"),
    ("target", with_cell(PROBLEM.target, 1e308), r"holds 1e\+308 in row 1 .*, whose square overflows; rescale"),
    ("positive", PROBLEM.positive[:1], "has 1 row"),
    ("unlabeled", PROBLEM.unlabeled[:1], "has 1 row, but at least 2 are needed"),
    ("target", PROBLEM.target[:1], "has 1 row, but at least 2 are needed"),
    ("positive", PROBLEM.unlabeled, "positive and unlabeled are the same 29 rows"),
    (
        "unlabeled",
        np.ones((9, 3)),
        "every column of the population sample is constant",
    ),
]


@pytest.mark.parametrize(("which", "table", "message"), BAD_VALUES)
def test_values_that_cannot_be_used_are_refused_by_the_function(which, table, message):
    with pytest.raises(InputError, match=message):
        ps.estimate_prior(**(GOOD | {which: table}), source_prior=0.2, encoder=None)


@pytest.mark.parametrize(("which", "table", "message"), BAD_VALUES)
def test_values_that_cannot_be_used_are_refused_by_the_command(which, table, message, tmp_path, command):
    command([*write(tmp_path, GOOD | {which: table}), "--encoder", "none"], message)


BAD_ARRAYS = [
    ([], "has 1 dimension, but rows and columns are expected"),
    (np.empty((0, 3)), r"has 0 row\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required; pass some rows"),
    (np.empty((4, 0)), r"has 0 feature\(s\) \(shape=\(4, 0\)\) while a minimum of 1 is required; pass some columns"),
    ([[1, 2, 3], [4, 5]], "has rows of different lengths"),
    ([["a", 2, 3], [4, 5, 6]], "holds 'a' in row 0 .*column 0, but a number is expected"),
    ([[None, 2, 3], [4, 5, 6]], "empty cell in row 0 .*column 0"),
    (np.zeros((3, 2)), "has 2 features but unlabeled has 3; pass the same columns in the same order"),
    (np.zeros(5), "has 1 dimension, but rows and columns are expected"),
    (np.zeros((2, 2, 2)), r"has 3 dimensions \(2 × 2 × 2\), but rows and columns are expected"),
    (np.ones((4, 3)) * 1j, "Complex data not supported: target holds complex numbers; pass real ones"),
    (np.array([["2020-01-01"] * 3] * 3, dtype="datetime64[D]"), "holds '2020-01-01.*, but a number is expected"),
    ("nowhere.csv", r"target \(nowhere.csv\) does not exist; check the path"),
    (7, "target is of type int, but a table is expected; pass a 2-D array, a list of rows, a data frame or the path"),
    (np.array(7.0), "target is of type ndarray, but a table is expected"),
    (b"a,b\n1,2\n", "target is of type bytes, but a table is expected"),
    (object(), "target is of type object, but a table is expected"),
    (np.eye, "target is of type function, but a table is expected"),
    (None, "target is None, but a table is expected; pass a 2-D array, a list of rows, a data frame or the path"),
    ({"a": [1, 2], "b": [3, 4]}, r"target is a mapping, but a table is expected; pass pandas.DataFrame\(target\)"),
    ([{"a": 1, "b": 2}, {"a": 3, "b": 4}], r"target is a list of mappings; pass pandas.DataFrame\(target\)"),
    ((row for row in [[1, 2], [3, 4]]), r"target is an iterator, which can be read only once; pass list\(target\)"),
    (map(list, [[1, 2], [3, 4]]), "target is an iterator, which can be read only once"),
    (io.StringIO("a,b\n1,2\n"), "target is an open file, but a table or a path is expected; pass the file's path"),
    ({(1, 2), (3, 4)}, "target is a set, whose rows have no order; pass a list of rows"),
]


@pytest.mark.parametrize(("table", "message"), BAD_ARRAYS)
def test_things_that_are_no_table_are_refused(table, message):
    with pytest.raises(InputError, match=message):
        ps.estimate_prior(**(GOOD | {"target": table}), source_prior=0.2, encoder=None)


def frame_cases():
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import scipy.sparse

    return [
        (pd.DataFrame({"a": ["x", "y"], "b": 1.0}), "holds 'x' in row 0 .*column 'a', but a number is expected"),
        (
            pd.DataFrame({"a": pd.to_datetime(["2020-01-01"] * 2), "b": 1.0}),
            "holds '2020-01-01.*column 'a', but a number is expected",
        ),
        (pl.DataFrame({"a": [1.0, None], "b": [1.0, 2]}), "empty cell in row 1 .*column 'a'"),
        (pl.DataFrame({"a": [1.0, float("nan")], "b": [1.0, 2]}), "contains NaN .*in row 1 .*, column 'a'"),
        (pl.DataFrame({"a": [[1], [2]], "b": [1, 2]}), "column 'a' of .* holds cells of type List"),
        (pa.table({"a": [1.0, None], "b": [1.0, 2]}), "empty cell in row 1 .*column 'a'"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "has more than one column named 'a'; give every column"),
        (pd.DataFrame({"a": [], "b": []}, dtype=float), r"has 0 row\(s\)"),
        (
            scipy.sparse.csr_array((40_000, 10_000)),
            "is a sparse matrix of 40000 × 10000 cells, 2.98 GiB when dense, but at most 1 GiB are allowed",
        ),
    ]


@pytest.mark.parametrize(("table", "message"), frame_cases())
def test_frames_that_cannot_be_used_are_refused(table, message):
    with pytest.raises(InputError, match=message):
        ps.estimate_prior(np.eye(2), np.eye(2) + 1, table, source_prior=0.2, encoder=None)


def write(folder: Path, tables, names=("a", "b", "c")):
    """The tables as CSV files; the arguments that name them."""
    arguments = []
    for which, table in tables.items():
        path = folder / f"{which}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([names, *np.asarray(table).tolist()])
        arguments += [f"--{which}", str(path)]
    return arguments


@pytest.fixture
def command(capsys, tmp_path):
    """Run `priorshift estimate`; it must end with code 2 and one sentence, and write nothing."""

    def run(arguments, message, prior="0.2"):
        picture = tmp_path / "picture.png"
        before = sorted(tmp_path.iterdir())
        full = ["estimate", *arguments, "--source-prior", prior, "--plot", str(picture)]
        try:
            code = main(full)
        except SystemExit as stopped:  # argparse
            code = stopped.code
        said = capsys.readouterr()
        assert code == 2
        assert said.out == ""
        assert said.err.startswith("priorshift: ")
        assert said.err.count("\n") == 1
        with pytest.raises(ValueError, match=message):
            raise ValueError(said.err)
        assert sorted(tmp_path.iterdir()) == before
        assert "Traceback" not in said.err

    return run


PARQUET_HEAD = b"PAR1 and then nothing"


def zipped(name):
    """Return an archive with one file of this name, the same bytes at any time: they are part of a test's name."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), "1,2,3")
    return content.getvalue()


BAD_FILES = [
    ("target.csv", b"", r"is empty; pass a file with a header and at least two rows"),
    ("target.csv", b"   \n\n", r"is empty; pass a file"),
    *(("target.csv", f"{blank}\n".encode(), r"is empty; pass a file") for blank in "\x1c\x85\xa0\u2028\u3000"),
    ("target.csv", b"\xef\xbb\xbf\xc2\xa0\n", r"is empty; pass a file"),
    (
        "target.csv",
        b"a\n70,5\n81,2\n",
        "has 1 name in its first line, but '70,5' in the next, two cells or a number with a",
    ),
    ("target.csv", b"a,b,c\n", "has a header but no rows; pass a file with at least two rows"),
    ("target.csv", b"a,b,c\n1,2,3\n4,5\n", "has 2 cells in line 3, but 3 in its first line"),
    ("target.csv", b"a,b,c\n1,2,3\n4,5,6,7\n", "has 4 cells in line 3, but 3 in its first line"),
    ("target.csv", b"a,b,c\n1,2,3\n4,x,6\n", "holds 'x' in row 1 .*column 'b', but a number is expected"),
    ("target.csv", b"a,b,c\n1,2,3\n4,,6\n", "empty cell in row 1 .*column 'b'"),
    ("target.csv", b"1,2,3\n4,,6\n", "a header of numbers or a row"),
    ("target.csv", b"a,b,c\n1,2,3\n4,1_000,6\n", "holds '1_000' in row 1 .*column 'b'"),
    ("target.csv", b"a,b,d\n1,2,3\n4,5,6\n", r"Compared with --unlabeled.*lacks 'c' and also has 'd'"),
    ("target.csv", b"a,b\n1,2\n4,5\n", "Compared with --unlabeled.*lacks 'c'"),
    ("target.csv", b"a,b,b\n1,2,3\n4,5,6\n", "has more than one column named 'b'"),
    ("target.csv", b"a,b,c\n1,2,3\n4,\x81,6\n", "is neither UTF-8 nor Windows-1252 text; save it as UTF-8"),
    ("target.csv", b"\x89PNG\r\n\x1a\n\0\0\0", "is a binary file, not text; pass a CSV file"),
    ("target.csv", PARQUET_HEAD, "is a Parquet file with the name of a CSV file; rename it to .parquet"),
    ("target.parquet", b"a,b,c\n1,2,3\n", "Parquet"),
    ("target.parquet", PARQUET_HEAD, "is a damaged Parquet file; write it again"),
    ("target.parquet", b"", "Parquet"),
    (
        "target.xlsx",
        b"PK",
        "is a spreadsheet",
    ),
    ("target.XLS", b"a;b\n1;2\n", "is a spreadsheet"),
    ("target.ods", b"", "is a spreadsheet"),
    ("target.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and more", "is a spreadsheet"),
    ("target.csv", zipped("xl/workbook.xml"), "is a spreadsheet"),
    ("target.txt", zipped("content.xml"), "is a spreadsheet"),
    ("target.csv", zipped("t.csv"), "is a binary file, not text"),
    ("target.csv", b"PK\3\4 and then\0 nothing", "is a binary file, not text"),
    ("target", b"a", "has a name without an ending, but .csv"),
    ("target.feather", b"ARROW1", "ends in '.feather', but .csv"),
    ("target.dta", b"<stata_dta>", "ends in '.dta', but"),
    ("target.sas7bdat", b"\0", "ends in '.sas7bdat', but"),
    ("target.sav", b"$FL2", "ends in '.sav', but"),
    ("target.json", b"[[1, 2]]", "ends in '.json', but"),
    ("target.zip", zipped("t.csv"), "ends in '.zip', but"),
    ("target.gz", gzip.compress(b"a,b,c\n1,2,3\n4,5,6\n", mtime=0), "ends in '.gz', but"),
    ("target.parquet.gz", gzip.compress(PARQUET_HEAD, mtime=0), "ends in '.gz', but"),
    ("target.csv.gz", gzip.compress(b"a,b,c\n1,2,3\n" * 99, mtime=0)[:40], "is a damaged gzip file; write it again"),
    (
        "target.csv.gz",
        gzip.compress(np.random.default_rng(0).bytes(9000).hex().encode(), mtime=0)[:-99],
        "is a damaged gzip",
    ),
    ("target.csv.gz", gzip.compress(b"", mtime=0), "is empty; pass a file"),
    ("target.csv.gz", gzip.compress(b"\x89PNG\0", mtime=0), "is a binary file, not text"),
    (
        "target.csv",
        "a,b,c\n1,2,3\n".encode("utf-16"),
        "is UTF-16 text, which Excel calls Unicode Text; save it as UTF-8",
    ),
    ("target.csv", b"\xfe\xff" + "a,b,c\n1,2,3\n".encode("utf-16-be"), "is UTF-16 text"),
    ("target.csv", b"%PDF-1.7\n", "is a PDF document; pass a CSV or Parquet file"),
    ("target.txt", b"{\\rtf1\\ansi 1,2,3}", r"is a document of a word processor \(RTF\); save the table as CSV text"),
    ("target.csv", b"\n<!DOCTYPE html>\n<html></html>", "is a web page; download the table itself, as CSV or Parquet"),
    ("target.csv", b"<HTML><table></table></HTML>", "is a web page; download the table itself"),
    ("target.csv", b"<?xml version='1.0'?>", "is XML; save the table as CSV text"),
    ("target.csv", b"version https://git-lfs.github.com/spec/v1\noid\n", "is a pointer of Git LFS; run git lfs pull"),
    ("target.csv", b"\xef\xbb\xbfsep=;\na;b;c\n1;2;3\n", "begins with a line for Excel alone, sep=; take that line"),
    ("target.csv", b"a;b;c\n1,5;2;3\n4;5.5;6\n", "either decimal commas or decimal points"),
    ("target.csv", b"a;b;c\n1.234,5;2;3\n4;5;6\n", "marks between thousands"),
    ("target.csv", b"a;b;c\n1,234;2;3\n4;5;6\n", "which may be a decimal comma or a mark between thousands"),
    (
        "target.csv",
        b"1,2,3\n4.5,5,6\n1,2,3\n",
        "begins with 1, 2, …, a header of numbers or a row",
    ),
    ("target.csv", b"2019,2020,2021\n4,5,6\n1,2,3\n", "begins with 2019, 2020, …, a header of numbers"),
    (
        "target.csv",
        b"2010,2020,2015\n4.5,5,6\n1,2,3\n",
        "begins with 2010, 2020, …, .* add a first line",
    ),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES)
def test_files_that_cannot_be_used_are_refused_by_the_command(name, content, message, tmp_path, command):
    (tmp_path / name).write_bytes(content)
    good = {k: v for k, v in GOOD.items() if k != "target"}
    command([*write(tmp_path, good), "--target", str(tmp_path / name), "--encoder", "none"], message)


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES)
def test_files_that_cannot_be_used_are_refused_by_the_function(name, content, message, tmp_path):
    import pandas as pd

    (tmp_path / name).write_bytes(content)
    good = {k: pd.DataFrame(v, columns=list("abc")) for k, v in GOOD.items()}
    with pytest.raises(InputError, match=message.replace("--", "")):
        ps.estimate_prior(**(good | {"target": tmp_path / name}), source_prior=0.2, encoder=None)


def test_a_folder_and_a_missing_file_are_refused(tmp_path, command):
    good = write(tmp_path, {k: v for k, v in GOOD.items() if k != "target"})
    command([*good, "--target", str(tmp_path)], "is a folder, but a file is expected; pass the path of a CSV")
    command([*good, "--target", str(tmp_path / "no.csv")], "does not exist; check the path")


@pytest.mark.parametrize("several", [False, True])
def test_a_path_that_leads_to_no_file_is_described(several, tmp_path, command, monkeypatch):
    good = write(tmp_path, {k: v for k, v in GOOD.items() if k != "target"})
    loop, closed = tmp_path / "loop.csv", tmp_path / "closed" / "t.csv"
    loop.symlink_to(loop)
    (tmp_path / "b.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
    more = [str(tmp_path / "b.csv")] * several
    command([*good, "--target", str(loop), *more], "is a link that leads back to itself; pass the path of a file")
    command([*good, "--target", str(tmp_path / "b.csv" / "t.csv"), *more], "does not exist; check the path")
    look = os.stat

    def refuse(path, *args, **named):
        if str(path) == str(closed):
            raise PermissionError(13, "Permission denied", str(path))
        return look(path, *args, **named)

    monkeypatch.setattr(os, "stat", refuse)  # whoever runs the tests: root may look into any folder
    message = rf"cannot be read \(Permission denied\); check the permissions of {closed.parent}"
    command([*good, "--target", str(closed), *more], message)


@pytest.mark.parametrize("prior", ["0", "1", "-1", "nan", "inf"])
def test_a_prior_that_is_none_is_refused(prior, tmp_path, command):
    command(write(tmp_path, GOOD), r"source_prior is .*, but it must be a number strictly between 0 and 1", prior)
    with pytest.raises(InputError, match=r"source_prior is .*between 0 and 1"):
        ps.estimate_prior(**GOOD, source_prior=float(prior))


@pytest.mark.parametrize("column", [[1] * 36, [0] * 36, ["maybe", "no", "yes"] * 12])
def test_label_columns_that_do_not_tell_positives_are_refused_by_the_command(column, tmp_path, command):
    path = tmp_path / "source.csv"
    with path.open("w", newline="") as file:
        cells = [[*row, label] for row, label in zip(PROBLEM.X.tolist(), column, strict=True)]
        csv.writer(file).writerows([["a", "b", "c", "labeled"], *cells])
    target = write(tmp_path, {"target": PROBLEM.target})
    command(["--source", str(path), "--label-column", "labeled", *target], "column 'labeled' of --source .* holds")
    command(
        ["--source", str(path), "--label-column", "label", *target], r"--source .* has no column 'label'; its columns"
    )
    command(["--source", str(path), *target], "--source needs --label-column")
    command(["--source", str(path), "--positive", str(path), *target], "remove --positive and --unlabeled")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kernel", "rbf"], r"argument --kernel: 'rbf' is not one of gaussian, laplace, energy"),
        (["--method", "tcpu", "--bandwidth", "-2"], "bandwidth is -2.0, but it must be a positive number"),
        (
            ["--method", "tcpu", "--bandwidth", "wide"],
            "bandwidth is 'wide'",
        ),
        (["--confidence", "2"], "confidence is 2.0"),
        (["--confidence", "high"], "argument --confidence: 'high' cannot be read; expected a number"),
        (["--id-column", "a", "--identical-rows"], "not allowed with argument --id-column"),
        (["--scenario", "censoring", "--identical-rows"], "under --scenario censoring the shared rows are known"),
        (["--id-column", "id"], "has no column 'id'; its columns are 'a', 'b', 'c'"),
        (["--drop", "z"], "no table has a column 'z' to drop"),
        (["--drop", "a", "--drop", "b", "--drop", "c"], r"has no feature left, .*'a', 'b', 'c'.*; keep one"),
        (["--seed", "9" * 5000], r"--seed: .{,300}$"),
        (["--seed", "-" + "9" * 4000], r"--seed: '-9+….{,250} is negative, but a seed is a whole number from 0 on"),
        (["--source-prior-counts", "1/" + "9" * 5000], r"'1/9+….{,250}$"),
        (["--method", "tcpu", "--bandwidth", "1,500"], "--bandwidth: '1,500' cannot be read; expected a number"),
        (["--unknown"], "--unknown is not an option of priorshift estimate"),
        (["--plot", "picture.gif"], "must end in .png"),
        (["--plot", "nowhere/picture.png"], "is in a folder that does not exist"),
        (
            ["--method", "tcpu", "--kernel", "energy", "--interval", "paper-bound"],
            "needs a bounded kernel, but 'energy' is not",
        ),
    ],
)
def test_wrong_use_of_the_command_is_one_sentence(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = write(tmp_path, GOOD)
    before = sorted(tmp_path.iterdir())
    try:
        prior = [] if "--source-prior-counts" in arguments else ["--source-prior", "0.2"]
        code = main(["estimate", *good, *prior, *arguments])
    except SystemExit as stopped:
        code = stopped.code
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    with pytest.raises(ValueError, match=message):
        raise ValueError(said.err)
    assert said.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_missing_tables_are_asked_for(tmp_path, capsys):
    arguments = write(tmp_path, GOOD)[2:]
    assert main(["estimate", *arguments, "--source-prior", "0.2"]) == 2
    assert "pass --positive and --unlabeled, or --source with --label-column" in capsys.readouterr().err


def test_no_file_is_left_when_drawing_fails(tmp_path, capsys):
    """P and U alike up to noise: an estimate that does not exist cannot be drawn."""
    rng = np.random.default_rng(0)
    U = rng.normal(size=(20, 3))
    arguments = write(tmp_path, {"positive": U[::-1], "unlabeled": U, "target": rng.normal(size=(9, 3))})
    before = sorted(tmp_path.iterdir())
    assert (
        main(["estimate", *arguments, "--method", "tcpu", "--source-prior", "0.2", "--plot", str(tmp_path / "p.png")])
        == 2
    )
    assert sorted(tmp_path.iterdir()) == before
    assert "--plot" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::priorshift.errors.FewPositivesWarning")
@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")  # few rows
def test_a_data_frames_index_is_no_feature(tmp_path):
    import pandas as pd

    pd.DataFrame(PROBLEM.target, columns=list("abc")).to_csv(tmp_path / "i.csv")
    frame = pd.DataFrame(PROBLEM.target, columns=list("abc"), index=np.arange(len(PROBLEM.target))[::-1])
    frame.to_parquet(tmp_path / "i.parquet")
    expected = ps.estimate_prior(**GOOD, source_prior=0.2, random_state=0)
    for name in ("i.csv", "i.parquet"):
        with pytest.warns(ps.errors.ColumnWarning, match="row names"):
            estimate = ps.estimate_prior(**(GOOD | {"target": tmp_path / name}), source_prior=0.2, random_state=0)
        assert estimate.negative_ratio == pytest.approx(expected.negative_ratio, nan_ok=True)


def test_a_header_of_numbers_is_not_taken_for_a_row(tmp_path, command):
    import pandas as pd

    pd.DataFrame(PROBLEM.target).to_csv(tmp_path / "n.csv", index=False)
    good = write(tmp_path, {k: v for k, v in GOOD.items() if k != "target"})
    command([*good, "--target", str(tmp_path / "n.csv")], "begins with 0, 1, …, a header of numbers or a row")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ps.TCPU(0.2, bandwidth=None).fit(PROBLEM.X, PROBLEM.y),
            "bandwidth is None, but it must be a positive",
        ),
        (
            lambda: ps.TCPU(0.2, bandwidth=1e200).fit(PROBLEM.X, PROBLEM.y),
            r"bandwidth is 1e\+200, but it must be a positive",
        ),
        (lambda: ps.TCPU(0.2, kernel=["g"]).fit(PROBLEM.X, PROBLEM.y), r"kernel is \['g'\], but it must be one of"),
        (
            lambda: ps.estimate_prior(**GOOD, source_prior=0.2, shared=[1, 2]),
            "shared is list, but it must be None, 'ident",
        ),
        (
            lambda: ps.estimate_prior(**GOOD, method=ps.TCPU(0.2), confidence=0.5),
            "confidence was passed",
        ),
        (
            lambda: ps.estimate_prior(**GOOD, method=ps.TCPU(0.2), standardize=False),
            "standardize was passed",
        ),
        (
            lambda: ps.estimate_prior(**GOOD, method=ps.TCPU),
            r"^method is the class TCPU, but the name of a method or an estimator is expected; pass an instance, such "
            r"as TCPU\(\)\.$",
        ),
        (
            lambda: ps.estimate_prior(**GOOD, method="tpcu"),
            "^method is 'tpcu', but it must be one of 'auto', 'witness'",
        ),
        (
            lambda: ps.estimate_prior(**GOOD, method=WithoutParameters()),
            "^method is a WithoutParameters.*it has no get_params",
        ),
        (
            lambda: ps.estimate_prior(**GOOD, method=ps.KM2()),
            r"^method is KM2\(\), but it must be the .* with fit, get_params, estimate, and it has no estimate\.$",
        ),
        (
            lambda: ps.estimate_prior(**GOOD, method=None),
            "^method is None, but it must be one of 'auto', 'witness'",
        ),
        (
            lambda: ps.estimate_prior(**GOOD, source_prior=0.2, shared="id", drop="id"),
            "column 'id' is both shared and dro",
        ),
        (
            lambda: ps.estimate_prior(**(GOOD | {"target": "a,b\n" * 3000}), source_prior=0.2),
            "is not a path; pass a table",
        ),
        (
            lambda: ps.estimate_prior(**(GOOD | {"target": [[10**400, 1, 2]] * 2}), source_prior=0.2),
            "too large for a float",
        ),
        (lambda: ps.required_sample_size("0.1", 0.2), "accuracy is '0.1', but it must be a number"),
        (lambda: ps.required_sample_size(0.1, 0.2, kernel_bound="x"), "kernel_bound is 'x', but it must be a number"),
        (
            lambda: ps.TCPU(0.2).fit(np.zeros((6, 1)), [1, 1, 1, 0, 0, 0], shared="identical"),
            "9 identical pairs",
        ),
        (
            lambda: ps.simulate.gaussian(0.1, 0.5, label_frequency=0.7),
            "label_frequency is 0.7, but with a source prior of",
        ),
        (lambda: ps.simulate.gaussian(0.1, 0.5, random_state=-1), "random_state is -1, but it must be"),
        (
            lambda: ps.simulate.shift_labels(np.ones((9, 1)), [1] * 9, 0.1, 0.5, random_state=True),
            "random_state is True",
        ),
        (lambda: ps.sketch.Sketch.from_sample(GOOD["target"]).save("a\0b"), r"Cannot write 'a\\x00b'"),
        (lambda: read_state("a\0b"), "is not a path; pass that of the file that watch --state wrote"),
    ],
)
def test_what_used_to_end_in_a_traceback_is_a_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--random-state", "1e3"], "'1e3' is not a whole number, such as 10"),
        (["--random-state", "9" * 5000], "is not a whole number"),
        (["--random-state", "-1"], "'-1' is negative, but a seed is a whole number from 0 on"),
        (
            ["--id-column", "a", "--drop", "a"],
            "--id-column and --drop name the same column, 'a'",
        ),
        (["--label-column", "a"], "--label-column is a column of --source"),
        (["--method", "tcpu", "--bandwidth", "1e200"], r"bandwidth is 1e\+200, but it must be a positive number"),
    ],
)
def test_more_wrong_use_of_the_command(arguments, message, tmp_path, command):
    command([*write(tmp_path, GOOD), *arguments], message)


def test_a_permission_that_is_missing_and_too_little_memory_end_with_a_sentence(tmp_path, command, monkeypatch):
    good = write(tmp_path, GOOD)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "secret.csv")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.open", refuse)
        command(good, r"cannot be read \(Permission denied\); check its permissions")
    with monkeypatch.context() as patch:
        patch.setattr("priorshift.cli.estimate.estimate_target", refuse)
        command(good, r"cannot use secret.csv: Permission denied")

    def exhausted(*_, **__):
        raise MemoryError

    monkeypatch.setattr("priorshift.cli.estimate.estimate_target", exhausted)
    command(good, "the data do not fit into memory; use fewer rows")


def test_an_empty_cell_is_named():
    with pytest.raises(InputError, match=r"row 0 .*column 0"):
        ps.estimate_prior(**(GOOD | {"target": [[None, "x", 3], [4, 5, 6]]}), source_prior=0.2, encoder=None)


@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")  # few rows
def test_warnings_point_at_the_users_line():
    with pytest.warns(ps.errors.IntervalWarning) as caught:
        ps.TCPU(0.2, interval="sharp-bound").fit(PROBLEM.X, PROBLEM.y).estimate(PROBLEM.target)
    assert {warning.filename for warning in caught} == {__file__}


def test_the_same_column_cannot_be_label_and_id(tmp_path, command):
    target = write(tmp_path, {"target": PROBLEM.target})
    source = ["--source", str(tmp_path / "target.csv"), "--label-column", "a", "--id-column", "a"]
    command([*source, *target], "--label-column and --id-column name the same column, 'a'")


def test_a_demo_with_an_impossible_seed_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["demo", "--no-report", "--seed", "-1"])
    assert "'-1' is negative" in capsys.readouterr().err


def write_summaries(paths, kind, folder):
    """Write a sketch or a histogram of each sample, and return their paths."""
    model = str(folder / "model.ps")
    fitted = (
        ["--unlabeled", paths["--unlabeled"], "--positive", paths["--positive"]]
        if kind == "histogram"
        else [paths["--unlabeled"]]
    )
    assert main(["sketch", *fitted, "-o", model]) == 0
    written = {}
    for option, path in paths.items():
        written[option] = str(folder / f"{option[2:]}.ps")
        assert main(["sketch", path, "--like", model, "-o", written[option]]) == 0
    return written


@pytest.mark.parametrize("kind", ["histogram", "sketch"])
@pytest.mark.parametrize("summaries", [("target",), ("positive", "unlabeled"), ("positive", "unlabeled", "target")])
def test_decisions_need_rows(kind, summaries, tmp_path, capsys):
    tables = write(tmp_path, GOOD)
    paths = dict(zip(tables[::2], tables[1::2], strict=True))
    written = write_summaries(paths, kind, tmp_path)
    paths |= {f"--{role}": written[f"--{role}"] for role in summaries}
    words = [word for pair in paths.items() for word in pair]
    assert main(["adapt", *words, "--source-prior", "0.2", "-o", str(tmp_path / "o.csv")]) == 2
    assert "sketches and histograms do not contain" in capsys.readouterr().err
    assert not (tmp_path / "o.csv").exists()


def test_names_of_files_do_not_break_a_message_into_lines(tmp_path, capsys):
    tables = write(tmp_path, GOOD)
    assert main(["estimate", *tables[:-1], f"{tmp_path}/no\nfile.csv", "--source-prior", "0.2"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "no\\nfile.csv) does not exist" in error


def test_a_folder_is_no_picture(tmp_path, capsys):
    (tmp_path / "folder.png").mkdir()
    assert main(["demo", "--plot", str(tmp_path / "folder.png")]) == 2
    assert "is a folder; name a file" in capsys.readouterr().err


def test_a_cell_that_never_ends_is_no_csv(tmp_path, command):
    (tmp_path / "long.csv").write_text("a,b,c\n1,2,x" + "y" * 200_000 + "\n")
    good = write(tmp_path, {k: v for k, v in GOOD.items() if k != "target"})
    command([*good, "--target", str(tmp_path / "long.csv")], r"is not a CSV file \(field larger than field limit")


@pytest.mark.parametrize("mode", ["estimate", "--stream", "adapt", "sketch"])
def test_a_quotation_mark_that_is_not_closed_ends_every_command_with_a_sentence(mode, tmp_path, capsys):
    files = write(tmp_path, GOOD)
    target = tmp_path / "target.csv"
    lines = target.read_text().splitlines(keepends=True)
    lines[4] = '"' + lines[4]
    target.write_text("".join(lines))
    output = tmp_path / "o.csv"
    commands = {
        "estimate": ["estimate", *files, "--source-prior", "0.2"],
        "--stream": ["estimate", *files, "--source-prior", "0.2", "--stream"],
        "adapt": ["adapt", *files, "--source-prior", "0.2", "--classifier", "logistic", "-o", str(output)],
        "sketch": ["sketch", str(target), "-o", str(output)],
    }
    assert main(commands[mode]) == 2
    said = capsys.readouterr()
    assert said.out == "" and not output.exists()
    assert said.err.splitlines()[-1].startswith("priorshift: ")
    assert f"({target}) has a quotation mark in line 5 that is not closed" in said.err


def test_an_array_of_records_is_refused():
    strange = np.zeros((2, 3), dtype=[("x", float), ("y", float)])
    with pytest.raises(InputError, match=r"column 0 of target"):
        ps.estimate_prior(**(GOOD | {"target": strange}), source_prior=0.2, encoder=None)


def test_bounds_need_all_pairs_of_rows():
    from priorshift.inference import intervals

    tcpu = ps.TCPU(0.2, pairs=500, random_state=0).fit(PROBLEM.X, PROBLEM.y)
    sampled = tcpu._kernel_fit.embed(tcpu.read_target(PROBLEM.target), tcpu.statistic, tcpu.pairs)
    with pytest.raises(InputError, match=r"all pairs of rows"):
        intervals.sharp_bound(sampled, 0.2, 0.95)


@pytest.mark.parametrize(
    ("command", "option"), [("estimate", "drop"), ("adapt", "scenario"), ("watch", "log"), ("demo", "plot")]
)
def test_the_value_of_two_dashes_is_refused(command, option, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, f"--{option}=--"])
    assert ended.value.code == 2 and f"--{option} has the value --" in capsys.readouterr().err
