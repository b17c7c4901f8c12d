"""Streams that cannot take what is printed, and names of files that are hard to print: never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import priorshift as ps
from priorshift.cli import main

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-c", "import sys; from priorshift.cli import main; sys.exit(main())"]
posix = pytest.mark.skipif(sys.platform == "win32", reason="no POSIX shell, signals or names")


def program(*words, shell="", **settings):
    """Run the program, with its streams redirected by `shell`."""
    command = ["sh", "-c", f'exec "$@" {shell}', "sh", *PROGRAM, *words] if shell else [*PROGRAM, *words]
    return subprocess.run(command, capture_output=True, timeout=60, **settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three tables with a category, which a note on stderr describes."""
    folder = tmp_path_factory.mktemp("tables")
    s = ps.simulate.gaussian(0.2, 0.6, 200, 200, dimension=2, shared=False, random_state=0)
    for name in ("positive", "unlabeled", "target"):
        rows = [f"{x},{y},{'mf'[k % 2]}" for k, (x, y) in enumerate(getattr(s, name).tolist())]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,sex", *rows]) + "\n")
    return folder


def words(folder, *targets, command="estimate"):
    source = ["--positive", str(folder / "positive.csv"), "--unlabeled", str(folder / "unlabeled.csv")]
    return [command, *source, "--source-prior", "0.2", "--target", *targets]


def copies(folder, to, *names):
    """Return the paths of copies of the target with other names."""
    for name in names:
        (to / name).write_bytes((folder / "target.csv").read_bytes())
    return [str(to / name) for name in names]


# ---- names


def test_targets_may_be_called_as_a_missing_value_is(folder, tmp_path, capsys):
    targets = copies(folder, tmp_path, "NA.csv", "null.csv")
    assert main([*words(folder, *targets), "--output", str(tmp_path / "table.csv")]) == 0
    assert "\nNA " in capsys.readouterr().out
    assert [line.partition(",")[0] for line in (tmp_path / "table.csv").read_text().split()] == ["target", "NA", "null"]


def test_a_target_called_na_can_be_the_reference(folder, tmp_path):
    targets = copies(folder, tmp_path, "NA.csv", "b.csv")
    estimates = ps.estimate_priors(
        str(folder / "positive.csv"), str(folder / "unlabeled.csv"), targets, source_prior=0.2
    )
    [difference] = estimates.differences(reference="NA")
    assert (difference.first, difference.second) == ("NA", "b")


@posix
def test_names_that_are_not_utf_8_are_escaped_in_tables_and_text(folder, tmp_path):
    try:
        targets = copies(folder, tmp_path, os.fsdecode(b"t\xff.csv"), "b.csv")
    except OSError:
        pytest.skip("the file system refuses such names")
    table, figure = tmp_path / os.fsdecode(b"o\xff.csv"), tmp_path / os.fsdecode(b"o\xff.png")
    ended = program(*words(folder, *targets), "--output", str(table), "--plot", str(figure))
    assert ended.returncode == 0, ended.stderr
    assert "\nt\\udcff,200," in table.read_text(encoding="utf-8") and figure.exists()


@posix
def test_a_path_that_is_not_utf_8_is_escaped_in_text_and_json(folder, tmp_path):
    path = str(tmp_path / os.fsdecode(b"o\xff.csv"))
    typed = [*words(folder, str(folder / "target.csv"), command="adapt"), "-o", path, "--classifier", "logistic"]
    ended = program(*typed, "--json")
    if b"cannot be written" in ended.stderr:
        pytest.skip("the file system refuses such names")
    assert json.loads(ended.stdout)["output"] == path


# ---- encodings


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_help_is_printed_in_any_encoding(encoding):
    ended = program("sketch", "--help", env={**os.environ, "PYTHONIOENCODING": encoding})
    assert ended.returncode == 0
    assert "the delta of differential privacy" in ended.stdout.decode(encoding)


def test_a_result_is_readable_in_a_small_encoding(folder, tmp_path):
    targets = copies(folder, tmp_path, "π.csv", "🎉.csv")
    ended = program(*words(folder, *targets), env={**os.environ, "PYTHONIOENCODING": "cp1252"})
    assert ended.returncode == 0, ended.stderr
    text = ended.stdout.decode("cp1252")
    assert "\npi " in text and "chi² = " in text and r"\U0001f389" in text


def test_json_is_the_same_in_any_encoding(folder, tmp_path):
    targets = copies(folder, tmp_path, "π.csv", "🎉.csv")
    ended = program(*words(folder, *targets), "--json", env={**os.environ, "PYTHONIOENCODING": "cp1252"})
    assert list(json.loads(ended.stdout.decode("cp1252"))["targets"]) == ["π", "🎉"]


# ---- closed, full and broken streams


@posix
@pytest.mark.parametrize("shell", ["2>&-", "2>/dev/full"])
def test_a_result_survives_an_unusable_stderr(shell, folder):
    if "full" in shell and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    ended = program(*words(folder, str(folder / "target.csv")), shell=shell)
    assert ended.returncode == 0
    assert ended.stdout.startswith(b"target prior ") and ended.stdout.count(b"\n") == 1


@posix
@pytest.mark.parametrize("shell", ["2>&-", "2>/dev/full", ">&- 2>&-"])
def test_an_error_keeps_its_exit_code_and_out_of_stdout(shell, folder):
    for wrong in (["estimat"], words(folder, "no.csv")):
        ended = program(*wrong, shell=shell)
        assert (ended.returncode, ended.stdout) == (2, b"")


@posix
def test_files_are_written_whole_with_all_streams_closed(folder, tmp_path):
    """Without care, a file would be opened under the number of a stream, and messages be written into it."""
    targets = copies(folder, tmp_path, "a.csv", "b.csv")
    table = tmp_path / "table.csv"
    ended = program(*words(folder, *targets), "--output", str(table), shell="<&- >&- 2>&-")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert [line.partition(",")[0] for line in table.read_text().split()] == ["target", "a", "b"]


@posix
@pytest.mark.parametrize("typed", [["--version"], ["--help"], ["schema", "report"]], ids=" ".join)
def test_a_reader_that_has_ended_is_no_error(typed):
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONUNBUFFERED": "" if typed == ["schema", "report"] else "1"}
    ended = subprocess.run([*PROGRAM, *typed], stdout=writing, stderr=subprocess.PIPE, env=environment, timeout=60)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


@posix
@pytest.mark.parametrize("typed", ["--version", "--help"])
def test_a_full_disk_is_one_sentence(typed):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    ended = program(typed, shell=">/dev/full")
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"priorshift: cannot write the output: ") and ended.stderr.count(b"\n") == 1


@posix
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["estimate", "schema"])
def test_a_full_disk_is_one_sentence_also_at_the_end_of_a_command(command, unbuffered, folder):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    typed = ["schema", "report"] if command == "schema" else words(folder, str(folder / "target.csv"))
    ended = program(*typed, shell=">/dev/full", env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith(b"priorshift: cannot write the output: No space left")


# ---- a file behind standard input


@posix
@pytest.mark.parametrize(("command", "path", "sign"), [("estimate", "/dev/stdin", "<"), ("adapt", "/dev/fd/9", "9<")])
def test_a_file_behind_a_number_is_read_like_a_pipe(command, path, sign, folder, tmp_path):
    if not os.path.isdir("/dev/fd"):
        pytest.skip("no /dev/fd")
    output = tmp_path / "o.csv"
    typed = words(folder, path, command=command)
    typed += ["--classifier", "logistic", "-o", str(output)] if command == "adapt" else []
    ended = program(*typed, shell=f"{sign}'{folder / 'target.csv'}'")
    assert ended.returncode == 0 and ended.stdout.startswith(b"target prior "), ended.stderr
    if command == "adapt":
        assert output.read_text().startswith("a,b,sex,posterior,decision\n")


@posix
@pytest.mark.parametrize("path", ["-", "/dev/stdin"])
def test_a_file_behind_standard_input_is_not_overwritten(path, folder, tmp_path):
    [target] = copies(folder, tmp_path, "t.csv")
    typed = [*words(folder, path, command="adapt"), "--classifier", "logistic", "-o", target]
    ended = program(*typed, shell=f"<'{target}'")
    assert ended.returncode == 2 and b"is one of the tables that are read; name another file." in ended.stderr
    assert Path(target).read_bytes() == (folder / "target.csv").read_bytes()


# ---- the studies

INTERRUPTING = """
import os, runpy, signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["experiments", "list"]
runpy.run_module("experiments", run_name="__main__")
"""


def python(code):
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)


@posix
@pytest.mark.parametrize("module", ["priorshift.cli.streams", "numpy", "experiments.studies"])
def test_an_interrupt_while_the_studies_are_loaded_ends_with_one_line(module):
    ended = python(INTERRUPTING.format(module=module))
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr.startswith("priorshift: ") and ended.stderr.count("\n") == 1


@posix
def test_an_interrupt_while_the_options_of_the_studies_are_parsed_ends_with_one_line():
    code = (
        "import argparse, os, runpy, signal, sys\n"
        "argparse.ArgumentParser.parse_args = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['experiments', 'list']; runpy.run_module('experiments', run_name='__main__')"
    )
    ended = python(code)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr.startswith("priorshift: ") and ended.stderr.count("\n") == 1


def test_the_studies_need_no_package_that_only_shows_progress():
    ended = python("import sys; sys.modules['tqdm'] = None; import experiments.runner")
    assert ended.returncode == 0, ended.stderr
