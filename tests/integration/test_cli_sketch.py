"""`priorshift sketch`: the sketch of the library, from files of any size, gone on with where it was interrupted."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import priorshift as ps
from priorshift.cli import main
from priorshift.cli import sketch as command
from priorshift.io.chunks import Chunks
from priorshift.sketch import Histogram, ScoreModel, Sketch, container, histogram, load

FEATURES = ["--features", "16"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": rng.normal(size=900), "y": rng.normal(2, 3, size=900), "level": rng.choice(list("abc"), 900),
            "w": rng.random(900) + 0.5, "id": np.arange(900.0),
        }
    )  # fmt: skip


@pytest.fixture
def path(frame, tmp_path):
    frame.to_parquet(tmp_path / "t.parquet", index=False, row_group_size=250)
    return tmp_path / "t.parquet"


def run(*arguments):
    return main([str(argument) for argument in ("sketch", *arguments)])


def small_batches(monkeypatch, rows=50):
    """Chunks of a few rows, each of which is kept."""
    usual = Chunks.from_source
    monkeypatch.setattr(histogram, "_MIN_ROWS", 1)

    def of(source, name, **settings):
        return usual(source, name, **settings | {"rows_per_chunk": rows})

    monkeypatch.setattr(Chunks, "from_source", of)
    monkeypatch.setattr(command, "_SECONDS", 0.0)


def stop_after(monkeypatch, times, error=KeyboardInterrupt):
    """Let the work be interrupted after it was kept some times."""
    usual = command.Checkpoint._save
    left = [times]

    def keep(self, made):
        usual(self, made)
        left[0] -= 1
        if left[0] == 0:
            monkeypatch.setattr(command.Checkpoint, "_save", usual)
            raise error

    monkeypatch.setattr(command.Checkpoint, "_save", keep)


def assert_same(one, other):
    assert len(one) == len(other)
    assert one.design.fingerprint == other.design.fingerprint
    for name, array in one.to_contents()[1].items():
        np.testing.assert_allclose(other.to_contents()[1][name], array, rtol=1e-12, atol=1e-10)


def test_a_file_becomes_the_sketch_of_the_library(path, frame, tmp_path, capsys):
    assert run(path, "-o", tmp_path / "u.sketch", *FEATURES, "--drop", "id", "--weight-column", "w", "--seed", 3) == 0
    said = capsys.readouterr()
    made = Sketch.load(tmp_path / "u.sketch")
    assert_same(made, Sketch.from_sample(frame, drop=["id"], weights="w", features=16, random_state=3))
    assert json.loads(said.out) == {
        "kind": "sketch", "rows": 900, "columns": ["x", "y", "level"], "features": 16, "kernel": "gaussian",
        "bandwidth": made.design.features.bandwidth, "path": str(tmp_path / "u.sketch"),
    }  # fmt: skip
    assert said.err == f"priorshift: {made}, written to {tmp_path / 'u.sketch'}.\n"
    assert sorted(os.listdir(tmp_path)) == ["t.parquet", "u.sketch"]


def test_every_setting_of_a_first_sketch_is_one_of_the_command(path, frame, tmp_path):
    run(
        path,
        "-o",
        tmp_path / "u",
        "--features",
        32,
        "--kernel",
        "laplace",
        "--bandwidth",
        "median",
        "--no-standardize",
        "--drop",
        "id",
        "--drop",
        "w",
    )
    expected = Sketch.from_sample(
        frame, features=32, kernel="laplace", bandwidth="median", standardize=False, drop=["id", "w"]
    )
    assert_same(Sketch.load(tmp_path / "u"), expected)
    run(path, "-o", tmp_path / "v", "--features", 32, "--bandwidth", 2.5, "--drop", "level")
    assert Sketch.load(tmp_path / "v").design.features.bandwidth == 2.5


def test_what_the_first_sketch_drops_can_be_the_weights_of_another(path, frame, tmp_path):
    run(path, "-o", tmp_path / "u", *FEATURES, "--drop", "id", "--drop", "w")
    assert run(path, "-o", tmp_path / "t", "--like", tmp_path / "u", "--weight-column", "w") == 0
    made = Sketch.load(tmp_path / "t")
    assert_same(made, Sketch.from_sample(frame, like=Sketch.load(tmp_path / "u"), weights="w"))
    assert made.moments.weight == pytest.approx(frame["w"].sum())


def test_another_sample_is_sketched_like_the_first_one(path, frame, tmp_path, capsys):
    run(path, "-o", tmp_path / "u", *FEATURES, "--drop", "id", "--drop", "w")
    frame.iloc[:300].to_csv(tmp_path / "a.csv", index=False)
    frame.iloc[300:400].to_csv(tmp_path / "b.tsv.gz", index=False, sep="\t")
    assert run(tmp_path / "a.csv", tmp_path / "b.tsv.gz", "-o", tmp_path / "p", "--like", tmp_path / "u") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["rows"] == 400
    assert_same(Sketch.load(tmp_path / "p"), Sketch.from_sample(frame.iloc[:400], like=Sketch.load(tmp_path / "u")))


def test_sketches_are_added_up(path, frame, tmp_path, capsys):
    run(path, "-o", tmp_path / "u", *FEATURES, "--drop", "id", "--drop", "w")
    for k in range(3):
        Sketch.from_sample(frame.iloc[300 * k : 300 * (k + 1)], like=Sketch.load(tmp_path / "u")).save(
            tmp_path / f"{k}"
        )
    assert run(*(tmp_path / f"{k}" for k in range(3)), "-o", tmp_path / "all") == 0
    assert_same(Sketch.load(tmp_path / "all"), Sketch.load(tmp_path / "u"))


def test_rows_are_counted_by_a_score_model(tmp_path, capsys, monkeypatch):
    s = ps.simulate.gaussian(0.3, 0.5, n_source=300, n_target=200, shared=False, random_state=0)
    model = ScoreModel.fit(s.positive, s.unlabeled, repeats=2)
    model.save(tmp_path / "model")
    np.savetxt(tmp_path / "t.csv", s.target, delimiter=",", fmt="%.17g")
    assert run(tmp_path / "t.csv", "-o", tmp_path / "t", "--like", tmp_path / "model") == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"kind": "histogram", "rows": 200, "model": model.fingerprint, "path": str(tmp_path / "t")}
    expected = Histogram.from_sample(s.target, model)
    np.testing.assert_array_equal(load(tmp_path / "t").counted.counts, expected.counted.counts)
    small_batches(monkeypatch)
    stop_after(monkeypatch, 2)
    assert run(tmp_path / "t.csv", "-o", tmp_path / "v", "--like", tmp_path / "model") == 130
    assert run(tmp_path / "t.csv", "-o", tmp_path / "v", "--like", tmp_path / "model") == 0
    assert "continuing after 100 rows" in capsys.readouterr().err
    np.testing.assert_array_equal(load(tmp_path / "v").counted.counts, expected.counted.counts)
    assert run(tmp_path / "t", tmp_path / "v", "-o", tmp_path / "both") == 0
    assert len(load(tmp_path / "both")) == 400


@pytest.mark.parametrize("kind", ["parquet", "csv", "folder"])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_interrupted_work_goes_on_and_ends_as_if_nothing_had_happened(
    kind, times, path, frame, tmp_path, capsys, monkeypatch
):
    source = tmp_path / "t.csv" if kind == "csv" else path
    frame.to_csv(tmp_path / "t.csv", index=False)
    if kind == "folder":
        source = tmp_path / "parts"
        source.mkdir()
        for k in range(4):
            frame.iloc[225 * k : 225 * (k + 1)].to_parquet(source / f"{k}.parquet", index=False)
    small_batches(monkeypatch)
    command = (source, "-o", tmp_path / "u", *FEATURES, "--drop", "id", "--weight-column", "w")
    assert run(*command) == 0
    whole = (tmp_path / "u").read_bytes()
    os.remove(tmp_path / "u")
    capsys.readouterr()
    stop_after(monkeypatch, times)
    assert run(*command) == 130
    stopped = capsys.readouterr()
    assert not stopped.out and not (tmp_path / "u").exists()
    found = container.read(tmp_path / "u.part", ["checkpoint"]).header["summary"]["moments"]["rows"]
    assert 0 < found < 900
    assert (
        f"priorshift: interrupted after {found:,} rows, saved in {tmp_path / 'u'}.part; run the same command"
        in stopped.err
    )
    read = []
    usual = Chunks.after
    monkeypatch.setattr(Chunks, "after", lambda self, rows: read.append(rows) or usual(self, rows))
    assert run(*command) == 0
    assert f"priorshift: continuing after {found:,} rows, from {tmp_path / 'u'}.part" in capsys.readouterr().err
    assert read == [found]
    assert (tmp_path / "u").read_bytes() == whole
    assert not (tmp_path / "u.part").exists()


def test_killed_work_goes_on(path, frame, tmp_path):
    script = f"""
import time
from priorshift.cli import main
from priorshift.cli import sketch as command
from priorshift.io import chunks as batches
command._SECONDS = 0.0
usual = batches.Chunks.from_source.__func__
batches.Chunks.from_source = classmethod(lambda cls, source, name, **more: usual(cls, source, name, **more | dict(rows_per_chunk=20)))
keep = command.Checkpoint._save
def slow(self, made):
    keep(self, made)
    time.sleep(0.5)
command.Checkpoint._save = slow
main(["sketch", {str(path)!r}, "-o", {str(tmp_path / "u")!r}, "--features", "16", "--drop", "id"])
"""
    work = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not (tmp_path / "u.part").exists() and time.monotonic() < until:
        time.sleep(0.02)
    work.send_signal(signal.SIGKILL)
    work.wait()
    kept = container.read(tmp_path / "u.part", ["checkpoint"]).header["summary"]["moments"]["rows"]
    assert 0 < kept < 900 and not (tmp_path / "u").exists()
    assert run(path, "-o", tmp_path / "u", "--features", 16, "--drop", "id") == 0
    assert_same(Sketch.load(tmp_path / "u"), Sketch.from_sample(frame, features=16, drop=["id"]))
    assert not (tmp_path / "u.part").exists()


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (["--features", "32"], r"\(--features was 16\)"),
        (["--features", "16", "--drop", "y"], r"\(--drop was not given\)"),
        (["--features", "16", "--weight-column", "w"], r"\(--weight-column was not given\)"),
        ([], r"\(--features was 16\)"),
    ],
)
def test_unfinished_work_of_other_settings_is_refused_and_kept(other, sentence, path, tmp_path, capsys, monkeypatch):
    small_batches(monkeypatch)
    stop_after(monkeypatch, 1)
    assert run(path, "-o", tmp_path / "u", *FEATURES) == 130
    kept = (tmp_path / "u.part").read_bytes()
    capsys.readouterr()
    assert run(path, "-o", tmp_path / "u", *other) == 2
    said = capsys.readouterr().err
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(said)
    assert "u.part is the checkpoint of another command" in said and said.count("\n") == 1
    assert (tmp_path / "u.part").read_bytes() == kept


def test_unfinished_work_of_files_that_have_changed_is_refused(path, frame, tmp_path, capsys, monkeypatch):
    small_batches(monkeypatch)
    stop_after(monkeypatch, 1)
    assert run(path, "-o", tmp_path / "u", *FEATURES) == 130
    capsys.readouterr()
    frame.iloc[:800].to_parquet(path, index=False)
    assert run(path, "-o", tmp_path / "u", *FEATURES) == 2
    assert "(other files, or files that have changed since)" in capsys.readouterr().err
    os.remove(tmp_path / "u.part")
    assert run(path, "-o", tmp_path / "u", *FEATURES) == 0


def test_a_part_that_is_damaged_or_something_else_is_refused_and_kept(path, tmp_path, capsys, monkeypatch):
    (tmp_path / "u.part").write_text("my own file")
    assert run(path, "-o", tmp_path / "u", *FEATURES) == 2
    assert "u.part is not a file that priorshift saved" in capsys.readouterr().err
    assert (tmp_path / "u.part").read_text() == "my own file"
    Sketch.from_sample([[1.0], [2.0]], features=16).save(tmp_path / "u.part")
    assert run(path, "-o", tmp_path / "u", *FEATURES) == 2
    assert (
        "u.part holds a sketch, but a checkpoint is expected; the checkpoint is written there"
        in capsys.readouterr().err
    )
    assert len(Sketch.load(tmp_path / "u.part")) == 2


def test_an_interrupt_before_anything_is_done_leaves_nothing(path, tmp_path, capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Chunks, "sample", stop)
    assert run(path, "-o", tmp_path / "u") == 130
    assert "interrupted; no file was written" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["t.parquet"]


def test_empty_standard_input_is_refused_by_a_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert run("-", "-o", tmp_path / "u", *FEATURES) == 2
    assert "is empty; pass a file with a header" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--epsilon", "-1", "--delta", "1e-6", "--like", "first"], "epsilon is -1"),
        (["--epsilon", "1", "--delta", "2", "--like", "first"], "delta is 2"),
        (["--epsilon", "1e-6", "--delta", "1e-15", "--like", "first"], "too small for a sketch of 512 features"),
        (["--epsilon", "1", "--delta", "1e-6"], "--epsilon needs --like"),
        (
            ["--epsilon", "1", "--delta", "1e-6", "--like", "first", "--weight-column", "w"],
            "--weight-column .*--epsilon",
        ),
    ],
)
def test_a_privacy_budget_is_checked_before_rows_are_read(options, sentence, path, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Sketch.from_sample(path, features=512, drop=["id", "w"]).save("first")

    def fail(*args):
        raise AssertionError("rows were read")

    monkeypatch.setattr(command, "open_chunks", fail)
    assert run(path, "-o", "u", *options) == 2
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(capsys.readouterr().err)
    assert sorted(os.listdir()) == ["first", "t.parquet"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_a_checkpoint_can_be_read_by_its_owner_alone_from_its_creation_on(path, tmp_path, monkeypatch):
    small_batches(monkeypatch)
    usual, modes = container.write, []

    def watch(file, *args, **settings):
        seen = os.replace

        def replace(draft, final):
            modes.append(oct(os.stat(draft).st_mode & 0o777))
            seen(draft, final)
            modes.append(oct(os.stat(final).st_mode & 0o777))

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace)
            usual(file, *args, **settings)

    monkeypatch.setattr(container, "write", watch)
    previous = os.umask(0o022)
    try:
        stop_after(monkeypatch, 3)
        assert run(path, "-o", tmp_path / "u", *FEATURES) == 130
        assert set(modes) == {"0o600"} and len(modes) >= 6
        os.chmod(tmp_path / "u.part", 0o644)
        stop_after(monkeypatch, 1)
        assert run(path, "-o", tmp_path / "u", *FEATURES) == 130
        assert os.stat(tmp_path / "u.part").st_mode & 0o777 == 0o600
        assert run(path, "-o", tmp_path / "u", *FEATURES) == 0
        assert os.stat(tmp_path / "u").st_mode & 0o777 == 0o644  # the sketch is as other files are
    finally:
        os.umask(previous)


def test_standard_input_is_sketched_without_being_kept(frame, tmp_path, capsys, monkeypatch):
    content = io.TextIOWrapper(io.BytesIO(frame.to_csv(index=False).encode()))
    monkeypatch.setattr(sys, "stdin", content)
    small_batches(monkeypatch)
    assert run("-", "-o", tmp_path / "u", *FEATURES, "--drop", "id") == 0
    assert_same(Sketch.load(tmp_path / "u"), Sketch.from_sample(frame, features=16, drop=["id"]))
    assert os.listdir(tmp_path) == ["u"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["none.csv", "-o", "u"], r"the sample \(none\.csv\) does not exist"),
        (["t.csv", "t.csv", "-o", "u"], "more than once"),
        (["t.csv", "-o", "t.csv"], r"--output t\.csv is one of the tables that are read"),
        (["t.csv", "-o", "first", "--like", "first"], "--output first is one of the tables"),
        (["parts", "-o", "parts/a.parquet"], r"--output parts/a\.parquet is one of the tables that are read"),
        (["--positive", "t.csv", "--unlabeled", "parts", "-o", "parts/a.parquet"], r"parts/a\.parquet is one of the tables"),
        (["t.csv", "-o", "nowhere/u"], "is in a folder that does not exist"),
        (["t.csv", "-o", "."], "is a folder; name a file"),
        (["t.csv", "-o", "u", "--like", "t.csv"], r"t\.csv is not a file that priorshift saved"),
        (["t.csv", "-o", "u", "--like", "first", "--features", "32"], "--features is a setting of the first sketch, but --like has its own"),
        (["t.csv", "-o", "u", "--like", "first", "--drop", "x"], "--drop is a setting of the first sketch"),
        (["t.csv", "-o", "u", "--like", "first", "--no-standardize"], "--no-standardize is a setting"),
        (["t.csv", "first", "-o", "u"], "first is a sketch and other files are tables"),
        (["first", "first", "-o", "u"], "more than once"),
        (["first", "other", "-o", "u"], "are sketches of two designs"),
        (["first", "-o", "u", "--features", "32"], "--features is a setting of the first sketch, but merged sketches have their own"),
        (["first", "-o", "u", "--weight-column", "x"], "--weight-column does not apply when sketches are merged"),
        (["t.csv", "-", "-o", "u"], r"standard input \(-\) cannot be combined with other files"),
        (["t.csv", "-o", "u", "--weight-column", "v"], "has no column 'v'"),
        (["t.csv", "-o", "u", "--drop", "v"], "column 'v' to drop"),
        (["t.csv", "-o", "u", "--drop", "x", "--weight-column", "x"], "--weight-column and --drop name the same column, 'x'"),
        (["t.csv", "-o", "u", "--features", "1"], "features"),
        (["t.csv", "-o", "u", "--bandwidth", "wide"], "bandwidth is 'wide'"),
        (["t.csv", "-o", "u", "--features", "many"], "'many' is not a whole number"),
        (["t.csv"], "the following arguments are required: -o/--output"),
        (["words.csv", "-o", "u", "--like", "first"], "holds 'low' in row 0"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_sentence_and_leaves_nothing(options, sentence, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": [1.0, 0.0, 2.0]}).to_csv("t.csv", index=False)
    pd.DataFrame({"x": ["low", "high"], "y": [1.0, 0.0]}).to_csv("words.csv", index=False)
    os.mkdir("parts")
    pd.read_csv("t.csv").to_parquet("parts/a.parquet")
    Sketch.from_sample("t.csv", features=16).save("first")
    Sketch.from_sample("t.csv", features=18).save("other")
    before = sorted(os.listdir())
    try:
        code = run(*options)
    except SystemExit as end:
        code = end.code
    said = capsys.readouterr()
    assert code == 2 and not said.out and said.err.count("\n") == 1
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(said.err)
    assert sorted(os.listdir()) == before
