"""The scripts by which shells complete, in a real bash; zsh and fish look at theirs where they are installed."""

import shutil
import subprocess
import sys

import pytest

from priorshift.cli import main
from priorshift.cli.parser import parser
from priorshift.methods import registry as methods

SHELLS = ("bash", "zsh", "fish")


def script(shell, capsys):
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return said.out


@pytest.fixture
def complete(capsys, tmp_path):
    """What bash offers for the last of some words, in a folder with files of several kinds."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    (tmp_path / "completion.sh").write_text(script("bash", capsys))
    work = tmp_path / "work"
    (work / "parts").mkdir(parents=True)
    for name in ("t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.png", "t.xlsx", "with space.csv"):
        (work / name).touch()

    def _complete(*words):
        code = (
            'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
            'eval "$(complete -p priorshift | sed "s/.* -F \\([^ ]*\\) .*/\\1/")"; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        command = [bash, "--norc", "-c", code, "bash", str(tmp_path / "completion.sh"), "priorshift", *words]
        run = subprocess.run(command, cwd=work, capture_output=True, text=True, check=True)
        assert run.stderr == ""
        return set(run.stdout.splitlines()) - {""}

    return _complete


def test_bash_completes_commands_options_and_choices(complete):
    assert complete("") >= set(parser().commands)
    assert complete("es") == {"estimate"}
    assert complete("estimate", "--source-p") == {"--source-prior", "--source-prior-counts"}
    assert complete("estimate", "--method", "") == set(methods.names())
    assert complete("estimate", "--target", "t.csv", "--method", "t") == {"tcpu"}
    assert complete("schema", "d") == {"diagnose", "demo"}
    assert complete("completion", "") == set(SHELLS)


def test_bash_completes_files_by_what_an_option_reads(complete):
    tables = {"t.csv", "t.tsv", "t.csv.gz", "t.parquet", "with space.csv", "parts"}
    for option in ("--positive", "--unlabeled", "--source", "--target"):
        assert complete("estimate", option, "") == tables
    assert complete("estimate", "--target", "t.csv", "t.p") == {"t.parquet"}
    assert complete("estimate", "--plot", "t") == {"t.png"}
    assert "t.xlsx" in complete("sketch", "--like", "t")
    assert complete("adapt", "--output", "par") == {"parts"}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_has_all_commands_options_and_choices(shell, capsys):
    made = script(shell, capsys)
    for name, command in parser().commands.items():
        assert name in made
        for option in command.options:
            assert all(word.lstrip("-") in made for word in option.option_strings)
            assert all(str(choice) in made for choice in option.choices or ())


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_understands_its_script(shell, capsys, tmp_path):
    made = script(shell, capsys)
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    (tmp_path / "script").write_text(made)
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True, capture_output=True)


def test_without_shtab_a_sentence_names_the_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)  # importing it fails
    assert main(["completion", "bash"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert "shtab" in said.err and 'pip install "priorshift[completion]"' in said.err


def test_help_says_for_each_shell_where_the_script_belongs(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["completion", "--help"])
    said = capsys.readouterr().out
    for shell in SHELLS:
        assert f"priorshift completion {shell} > ~/." in said
