"""What commands write: told before the work whether it can be, whole or not at all, and where a link points."""

import os

import numpy as np
import pandas as pd
import pytest

import priorshift as ps
from priorshift.cli import main
from priorshift.cli.output import check_writable
from priorshift.decision_files import decide_targets, decided_columns, write_decided_table
from priorshift.errors import InputError
from priorshift.io.files import FileVersion, atomic_write, check_unchanged

SAMPLE = ps.simulate.gaussian(0.2, 0.6, 100, 100, dimension=2, shared=False, random_state=0)
WRITERS = {"--plot": "o.png", "--output": "o.csv"}


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command that has the option, with a path for it; its exit code and what it said on stderr."""

    def run(option, path):
        arguments = []
        for name in ("positive", "unlabeled", "target"):
            pd.DataFrame(getattr(SAMPLE, name), columns=list("ab")).to_csv(tmp_path / f"{name}.csv", index=False)
            arguments += [f"--{name}", str(tmp_path / f"{name}.csv")]
        command = {"--plot": ["estimate", "--method", "tcpu"],
                   "--output": ["adapt", "--method", "tcpu", "--classifier", "logistic"]}[option]  # fmt: skip
        code = main([*command, *arguments, "--source-prior", "0.2", option, str(path)])
        return code, capsys.readouterr().err

    return run


@pytest.fixture(params=WRITERS)
def option(request):
    return request.param


@pytest.fixture
def no_work(monkeypatch):
    """Nothing may be read before the refusal."""
    monkeypatch.setattr("priorshift.cli.inputs.read_problem", lambda _: pytest.fail("tables were read"))


def refuse_access(monkeypatch, *paths):
    """These cannot be written to, whoever runs the tests (root may write anywhere)."""
    allowed = os.access
    refused = {str(path) for path in paths}
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) not in refused and allowed(path, mode))


@pytest.mark.usefixtures("no_work")
def test_a_folder_that_cannot_be_written_to_is_named_before_the_work(option, run, tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    closed.mkdir()
    refuse_access(monkeypatch, closed)
    code, said = run(option, closed / WRITERS[option])
    assert code == 2 and said.count("\n") == 1
    assert f"{option} {closed / WRITERS[option]} is in {closed}, which cannot be written to" in said
    assert not list(closed.iterdir())


@pytest.mark.usefixtures("no_work")
def test_permissions_of_the_file_system_are_heeded(option, run, tmp_path):
    closed, kept = tmp_path / "closed", tmp_path / WRITERS[option]
    closed.mkdir(mode=0o500)
    if os.access(closed, os.W_OK):
        pytest.skip("who runs the tests may write anywhere")
    assert "which cannot be written to" in run(option, closed / WRITERS[option])[1]
    kept.write_text("kept")
    kept.chmod(0o400)
    assert "already exists and is read-only" in run(option, kept)[1]


@pytest.mark.usefixtures("no_work")
def test_a_read_only_file_is_not_overwritten(option, run, tmp_path, monkeypatch):
    kept = tmp_path / WRITERS[option]
    kept.write_text("kept")
    refuse_access(monkeypatch, kept)
    code, said = run(option, kept)
    assert code == 2 and "already exists and is read-only" in said
    assert kept.read_text() == "kept"


@pytest.mark.usefixtures("no_work")
def test_pipes_and_devices_are_not_written_to(option, run, tmp_path):
    os.mkfifo(tmp_path / WRITERS[option])
    code, said = run(option, tmp_path / WRITERS[option])
    assert code == 2 and "is a pipe or a device" in said
    link = tmp_path / f"link_{WRITERS[option]}"
    link.symlink_to("/dev/null")
    assert "is a pipe or a device" in run(option, link)[1]


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("points_to", "sentence"),
    [
        ("nowhere/o.csv", "is in a folder that does not exist"),
        (".", "is a folder; name a file"),
        ("itself", "is a link that leads back to itself; name a file"),
    ],
)
def test_links_that_lead_nowhere_are_refused(option, points_to, sentence, run, tmp_path):
    link = tmp_path / WRITERS[option]
    link.symlink_to(link if points_to == "itself" else tmp_path / points_to)
    code, said = run(option, link)
    assert code == 2 and sentence in said and link.is_symlink()


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_what_is_no_path_is_refused(option, name, run, tmp_path):
    code, said = run(option, tmp_path / (name + WRITERS[option]))
    assert code == 2 and "cannot be written; name another file" in said


def test_the_file_that_a_link_points_to_is_replaced_and_the_link_stays(option, run, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real", tmp_path / WRITERS[option]
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    assert run(option, link)[0] == 0
    assert link.is_symlink() and real.stat().st_mode & 0o777 == 0o640
    assert real.read_bytes().startswith(b"\x89PNG" if option == "--plot" else b"a,b,posterior,decision\n")
    assert os.listdir(tmp_path / "elsewhere") == ["real"]


def test_a_link_to_a_file_that_is_not_there_yet_makes_it(option, run, tmp_path):
    link = tmp_path / WRITERS[option]
    link.symlink_to(tmp_path / "new")
    assert run(option, link)[0] == 0
    assert link.is_symlink() and (tmp_path / "new").stat().st_size > 1000


def test_a_link_to_an_input_is_an_input(run, tmp_path):
    (tmp_path / "o.csv").symlink_to(tmp_path / "unlabeled.csv")
    code, said = run("--output", tmp_path / "o.csv")
    assert code == 2 and "is one of the tables that are read; name another file" in said
    assert len(pd.read_csv(tmp_path / "unlabeled.csv")) == len(SAMPLE.unlabeled)


def test_a_disk_that_is_full_is_a_sentence_about_the_file_that_was_named(option, run, tmp_path, monkeypatch):
    path = tmp_path / WRITERS[option]
    path.write_text("kept")

    def full(source, *_):
        raise OSError(28, "No space left on device", str(source))

    monkeypatch.setattr(os, "replace", full)
    code, said = run(option, path)
    assert code == 2 and f"Cannot write {path}: No space left on device." in said
    assert path.read_text() == "kept"
    assert {p.name for p in tmp_path.iterdir()} == {path.name, "positive.csv", "unlabeled.csv", "target.csv"}


def test_a_draft_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("kept")

    def fail():
        with atomic_write(str(path)) as draft:
            draft.write_text("half")
            raise RuntimeError("while it was written")

    with pytest.raises(RuntimeError, match=r"written"):
        fail()
    assert path.read_text() == "kept" and os.listdir(tmp_path) == ["t.csv"]
    with atomic_write(str(path)) as draft:
        draft.write_text("whole")
    assert path.read_text() == "whole" and os.listdir(tmp_path) == ["t.csv"]


def test_a_bare_name_is_a_file_of_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_writable("--output", "t.csv")
    with atomic_write("t.csv") as draft:
        draft.write_text("x")
    assert (tmp_path / "t.csv").read_text() == "x"
    with pytest.raises(InputError, match=r"--output t\.csv"):
        check_writable("--output", "t.csv", [None, str(tmp_path / "t.csv")])


def test_the_mean_posterior_is_that_of_the_file(run, tmp_path):
    """What is written is what was computed: rows in their order, decisions at one half."""
    assert run("--output", tmp_path / "o.csv")[0] == 0
    made = pd.read_csv(tmp_path / "o.csv", dtype=str).map(float)
    np.testing.assert_array_equal(made[["a", "b"]], SAMPLE.target)
    np.testing.assert_array_equal(made["posterior"] > 0.5, made["decision"] == 1)


# ---- a target that changes between the two times that adapt reads it


def write_rows(path, rows):
    """Write rows as a table with a column of months, in the format of the path's ending."""
    frame = pd.DataFrame(rows, columns=list("ab")).assign(month=np.resize(["jan", "feb"], len(rows)))
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_csv(path, index=False)


CHANGES = {
    "other rows": lambda path: write_rows(path, SAMPLE.target[::-1]),
    "more rows": lambda path: write_rows(path, np.vstack([SAMPLE.target, SAMPLE.target[:10]])),
    "fewer rows": lambda path: write_rows(path, SAMPLE.target[:-10]),
    "no file": lambda path: path.unlink(),
    "damage": lambda path: path.write_bytes(b'"'),
}


@pytest.mark.parametrize("options", [["--drop", "month"], ["--by", "month"]])
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".xlsx"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_target_that_changes_during_the_work_is_refused(change, ending, options, tmp_path, capsys, monkeypatch):
    target, output = tmp_path / f"t{ending}", tmp_path / f"o{ending}"
    write_rows(target, SAMPLE.target)
    write_rows(tmp_path / "p.csv", SAMPLE.positive)
    write_rows(tmp_path / "u.csv", SAMPLE.unlabeled)

    def decide(*args, **named):
        answer = decide_targets(*args, **named)
        CHANGES[change](target)
        return answer

    monkeypatch.setattr("priorshift.cli.adapt.decide_targets", decide)
    source = ["--positive", str(tmp_path / "p.csv"), "--unlabeled", str(tmp_path / "u.csv"), "--source-prior", "0.2"]
    words = ["adapt", *source, "--target", str(target), "--target-prior", "0.5", "--classifier", "logistic"]
    assert main([*words, *options, "-o", str(output)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.splitlines()[-1].startswith(f"priorshift: --target ({target}) was changed")
    assert not output.exists()


def test_a_target_that_is_written_again_with_the_same_content_is_not_refused(tmp_path):
    path = tmp_path / "t.csv"
    write_rows(path, SAMPLE.target)
    version = FileVersion.from_path(path, "target")
    write_rows(path, SAMPLE.target)
    with check_unchanged(version):
        pass
    assert FileVersion.from_path(tmp_path, "target") is None and FileVersion.from_path("a\0b", "target") is None


@pytest.mark.parametrize("values", [[1.5, None, 3.25], ["x", None, "y, z"], ["", None, "\n"]])
def test_rows_without_a_value_stay_in_the_copy_of_a_parquet_file_as_text(values, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"a": values}), tmp_path / "target.parquet")
    columns = decided_columns(np.array([0.25, 0.5, 0.75]), np.array([False, True, True]))
    write_decided_table(tmp_path / "o.csv", tmp_path / "target.parquet", columns)
    copy = pd.read_csv(tmp_path / "o.csv", keep_default_na=False)
    assert copy["posterior"].tolist() == [0.25, 0.5, 0.75]
    assert copy["a"].tolist() == ["" if value is None else str(value) for value in values]
