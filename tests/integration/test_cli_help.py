"""What a new user types, sees and gets wrong: help, its examples, what was meant, colours on a terminal alone."""

import contextlib
import gzip
import io
import itertools
import os
import re
import shlex
import sys
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from priorshift.cli import main
from priorshift.cli import options as colours
from priorshift.cli.options import METHOD, OUTPUT, POPULATIONS, ROWS, TABLES
from priorshift.cli.parser import parser

COMMANDS = parser().commands
EXAMPLES = [(name, k) for name, command in COMMANDS.items() for k in range(len(command.examples))]
RUN = [(name, k) for name, k in EXAMPLES if name in ("estimate", "diagnose", "report", "adapt", "sketch", "watch")]


def said_by(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    said = capsys.readouterr()
    return stop.value.code, said.out, said.err


def typed(name, k):
    """The command of an example, as a shell splits it, and what comes through a pipe before it."""
    before, _, command = COMMANDS[name].examples[k][1].rpartition("|")
    given = shlex.split(command.split(" > ")[0])
    assert given[:2] == ["priorshift", name]
    return given[1:], before.split()


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "experiment"])
@pytest.mark.parametrize("columns", [70, 80, 140])
def test_every_command_has_help_with_examples_as_wide_as_the_terminal(name, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, err = said_by([name, "--help"], capsys)
    assert code == 0 and err == ""
    assert 2 <= len(COMMANDS[name].examples) <= 4
    below = out[out.index("examples:") :]
    assert all(len(line) < columns for line in below.splitlines())
    lines = below.replace("\\\n", " ").splitlines()
    shown = [shlex.split(line) for line in lines if line.startswith("    ")]  # as they can be copied and pasted
    assert shown == [shlex.split(example) for _, example in COMMANDS[name].examples]


@pytest.mark.parametrize(("name", "k"), EXAMPLES)
def test_examples_are_understood(name, k):
    args = parser().parse_args(typed(name, k)[0])
    module, function = args.run.split(":")
    assert callable(getattr(import_module(f"priorshift.cli.{module}"), function))


def test_help_of_all_names_every_command_and_the_exit_codes(capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, _ = said_by(["--help"], capsys)
    assert code == 0 and all(re.search(rf"^    {name} ", out, re.M) for name in COMMANDS)
    assert "exit code is 0 on success, 2 for wrong use" in " ".join(out.split())
    for _, example in parser().examples:
        parser().parse_args(shlex.split(example)[1:])


@pytest.mark.parametrize("name", ["estimate", "diagnose", "adapt"])
def test_options_stand_in_groups_by_the_question_that_they_answer(name, capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    _, out, _ = said_by([name, "--help"], capsys)
    titles = [TABLES, ROWS, POPULATIONS, METHOD, OUTPUT]
    at = [out.index(f"\n{title}:\n") for title in titles]
    assert at == sorted(at)
    parts = dict(zip(titles, (out[a:b] for a, b in zip(at, [*at[1:], None], strict=True)), strict=True))
    for title, options in (
        (TABLES, ("--positive", "--unlabeled", "--target", "--drop")),
        (ROWS, ("--id-column", "--weight-column")),
        (POPULATIONS, ("--source-prior", "--scenario")),
        (METHOD, ("--confidence", "--random-state")),
        (OUTPUT, ("--json", "--output")),
    ):
        assert all(re.search(rf"^  (-\w( \w+)?, )?{option}\b", parts[title], re.M) for option in options), title
    everything = re.findall(r"^  (?:-\w, )?(?:-\w \w+, )?(--?[\w-]+)", out, re.M)
    assert len(everything) == len(set(everything))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that examples name."""
    folder = tmp_path_factory.mktemp("examples")
    rng = np.random.default_rng(0)

    def rows(count, prior):
        return pd.DataFrame(rng.normal(size=(count, 3)) + 2 * (rng.random((count, 1)) < prior), columns=list("abc"))

    positive, unlabeled = rows(60, 1), rows(200, 0.2)
    samples = {"positive": positive, "unlabeled": unlabeled, "target": rows(150, 0.5)}
    samples |= {name: rows(120, 0.5) for name in ("jan", "feb", "mar")}
    samples |= {name: rows(120, 0.2) for name in ("today", "history/first", "history/second")}
    samples |= {"flu": rows(60, 1), "covid": rows(60, 0) * [1, -1, 1] - 2}
    samples["source"] = pd.concat([positive.assign(labeled=1), unlabeled.assign(labeled=0)])
    samples["months"] = pd.concat([samples[name].assign(month=name) for name in ("jan", "feb")])
    (folder / "history").mkdir()
    for name, frame in samples.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    (folder / "target.csv.gz").write_bytes(gzip.compress((folder / "target.csv").read_bytes(), mtime=0))
    return folder


@pytest.mark.parametrize(("name", "k"), RUN)
@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_examples_run(name, k, folder, capsys, monkeypatch):
    """In their order, since one may read what another wrote."""
    if name == "report":
        pytest.importorskip("jinja2")
    monkeypatch.chdir(folder)
    for earlier in range(k if name in ("sketch", "watch") else 0):
        main(typed(name, earlier)[0])
    arguments, before = typed(name, k)
    if before:
        assert before[0] == "zcat"
        unpacked = io.BytesIO(gzip.decompress((folder / before[1]).read_bytes()))
        monkeypatch.setattr("sys.stdin", SimpleNamespace(closed=False, buffer=unpacked))
    if name == "adapt" and "logistic" not in arguments and "flu=flu.csv" not in arguments:
        arguments += ["--classifier", "logistic"]  # a network takes long
    if name == "watch" and k == 0:
        (folder / "fitted").unlink(missing_ok=True)
    written = [word for option, word in itertools.pairwise(arguments) if option in ("-o", "--output", "--plot")]
    for file in written:
        (folder / file).unlink(missing_ok=True)
    capsys.readouterr()
    assert main(arguments) == 0
    assert capsys.readouterr().out
    assert all((folder / file).stat().st_size > 0 for file in written)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("", "name a command, such as demo or estimate (see priorshift --help)."),
        ("estimat --target t.csv", "'estimat' is not a command; did you mean estimate? (see priorshift --help)."),
        ("--versoin", "--versoin is not an option of priorshift; did you mean --version? (see priorshift --help)."),
        ("estimate --postive p.csv", "--postive is not an option of priorshift estimate; did you mean --positive?"),
        ("estimate --unlabelled=u.csv --target t", "--unlabelled is not an option of priorshift estimate; did you mean --unlabeled?"),
        ("estimate --target t.csv --prior 0.2", "--prior is not an option of priorshift estimate; did you mean --source-prior?"),
        ("diagnose -target t.csv", "-target is not an option of priorshift diagnose; did you mean --target?"),
        ("demo --qqq", "--qqq is not an option of priorshift demo (see priorshift demo --help)."),
        ("estimate p.csv u.csv t.csv", "there is no option before 'p.csv'; name the option, such as --target p.csv"),
        ("demo p.csv", "there is no option before 'p.csv'; remove it"),
        ("estimate --target t --method tcup", "argument --method: 'tcup' is not one of auto, witness, tcpu, km2-ls, drpu; did you mean tcpu?"),
        ("schema estimates", "argument NAME: 'estimates' is not one of estimate, diagnose, report, adapt, sketch, watch, demo; did you mean estimate?"),
        ("completion csh", "argument SHELL: 'csh' is not one of bash, zsh, fish"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_answered_by_what_was_meant(typed, meant, capsys):
    code, out, err = said_by(typed.split(), capsys)
    assert code == 2 and out == ""
    assert err.startswith(f"priorshift: {meant}") and err.endswith("--help).\n") and err.count("\n") == 1


def test_a_word_that_belongs_to_no_command_is_answered_by_all_of_them(capsys):
    _, _, err = said_by(["data.csv"], capsys)
    assert err.startswith(f"priorshift: 'data.csv' is not a command; the commands are {', '.join(COMMANDS)} (see")


def test_values_that_look_like_options_and_options_cut_short_are_understood(capsys):
    """A negative number, standard input, what follows --; --tar for --target."""
    assert main(["estimate", "--tar=t.csv", "--bandwidth", "-1", "--positive", "-", "--unlab", "u.csv"]) == 2
    assert "--bandwidth belongs to --method" in capsys.readouterr().err


# ---- colours


class Terminal(SimpleNamespace):
    def isatty(self):
        return True


@pytest.fixture
def _plain_environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.usefixtures("_plain_environment")
@pytest.mark.parametrize(
    ("environment", "on_a_terminal", "in_a_pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
    ],
    ids=["nothing set", "NO_COLOR", "NO_COLOR empty", "FORCE_COLOR", "both", "dumb"],
)
def test_colours_are_for_terminals_and_heed_the_environment(
    environment, on_a_terminal, in_a_pipe, monkeypatch, tmp_path
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with open(tmp_path / "pipe", "w") as pipe:
        assert (colours.use_colors(Terminal()), colours.use_colors(pipe)) == (on_a_terminal, in_a_pipe)


@pytest.mark.usefixtures("_plain_environment")
def test_windows_consoles_must_say_that_they_understand_colours(monkeypatch):
    monkeypatch.setattr(colours, "os", SimpleNamespace(name="nt", environ={}))
    assert not colours.use_colors(Terminal())
    monkeypatch.setattr(colours, "os", SimpleNamespace(name="nt", environ={"WT_SESSION": "x"}))
    assert colours.use_colors(Terminal())
    assert not colours.use_colors(None)


def on_a_terminal(arguments, monkeypatch):
    """What a command writes to a terminal, stdout and stderr."""
    pty = pytest.importorskip("pty")
    said = []
    for stream in ("stdout", "stderr"):
        ours, theirs = pty.openpty()
        with open(theirs, "w") as terminal, monkeypatch.context() as patch:
            patch.setattr(sys, stream, terminal)
            with contextlib.suppress(SystemExit):
                main(arguments)
        os.set_blocking(ours, False)
        text = b""
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:  # all was read
            pass
        os.close(ours)
        said.append(text.decode().replace("\r\n", "\n"))
    return said


CODES = re.compile(r"\x1b\[\d*m")


@pytest.mark.usefixtures("_plain_environment")
@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_on_a_terminal_the_number_is_bold_and_in_a_pipe_the_words_are_the_same(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    for name, k, shown in (
        ("estimate", 0, r"^\x1b\[1mtarget prior [\d.]+, 95% interval [\d.]+ to [\d.]+\x1b\[0m \(Witness"),
        ("estimate", 2, r"^jan +120\x1b\[1m +[\d.]+ +[\d.]+ to [\d.]+\x1b\[0m +[\d.]+ to [\d.]+$"),
        ("diagnose", 0, r"^May I publish this number\? \x1b\[3[123]m(Yes|With care|No)\x1b\[0m[.,][^\x1b]*\x1b\[1mtarget prior"),
        ("diagnose", 2, r"^jan +\x1b\[3[123]m(yes|with care|no)\x1b\[0m\x1b\[1m +[\d.]+ +[\d.]+ to [\d.]+\x1b\[0m +"),
    ):  # fmt: skip
        arguments, _ = typed(name, k)
        out, _ = on_a_terminal(arguments, monkeypatch)
        assert re.search(shown, out, re.M), out
        capsys.readouterr()
        assert main(arguments) == 0
        piped = capsys.readouterr().out
        assert "\x1b" not in piped and CODES.sub("", out) == piped


@pytest.mark.usefixtures("_plain_environment")
def test_json_has_no_colours_even_where_they_are_forced(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FORCE_COLOR", "1")
    arguments, _ = typed("estimate", 0)
    assert main([*arguments, "--json"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert main(arguments) == 0
    assert "\x1b[1m" in capsys.readouterr().out


@pytest.mark.usefixtures("_plain_environment")
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["estimat"], "\x1b[31mpriorshift:\x1b[0m 'estimat' is not a command"),
        (["estimate", "--target", "nowhere.csv"], "\x1b[31mpriorshift:\x1b[0m pass --positive"),
        (["estimate", "--positive", "positive.csv", "--unlabeled", "unlabeled.csv", "--target", "unlabeled.csv"],
         "\x1b[33mpriorshift: warning:\x1b[0m "),
    ],
    ids=["of the parser", "of the library", "warning"],
)  # fmt: skip
def test_refusals_are_red_and_warnings_yellow_on_a_terminal(arguments, shown, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    _, err = on_a_terminal(arguments, monkeypatch)
    assert shown in err
    with contextlib.suppress(SystemExit):
        main(arguments)
    piped = capsys.readouterr().err
    assert "\x1b" not in piped and CODES.sub("", shown) in piped


def test_names_that_would_steer_a_terminal_are_shown_as_what_they_are(folder, tmp_path, capsys):
    target = pd.read_csv(folder / "months.csv")
    target["month"] = target["month"].map({"jan": "\x1b]0;owned\x07jan", "feb": "feb\u202egpj"})
    target.to_csv(tmp_path / "t.csv", index=False)
    files = ["--positive", str(folder / "positive.csv"), "--unlabeled", str(folder / "unlabeled.csv")]
    given = [*files, "--target", str(tmp_path / "t.csv"), "--by", "month", "--source-prior", "0.2"]
    assert main(["estimate", *given]) == 0
    said = capsys.readouterr().out
    assert "\\x1b]0;owned\\x07jan" in said and "feb\\u202egpj" in said
    assert not set("\x1b\x07\u202e") & set(said)
    for name, frame in (("p", "positive"), ("u", "unlabeled")):
        made = pd.read_csv(folder / f"{frame}.csv")
        made["\x1b[31mred\u202e\n" + "x" * 500] = np.resize(["a", "b"], len(made))
        made.to_csv(tmp_path / f"{name}.csv", index=False)
    given = ["--positive", str(tmp_path / "p.csv"), "--unlabeled", str(tmp_path / "u.csv"), "--source-prior", "0.2"]
    assert main(["estimate", *given, "--target", str(tmp_path / "u.csv")]) == 0
    [said] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("priorshift: columns: ")]
    assert said.endswith("xxx…)") and len(said) < 200
    assert "(\\x1b[31mred\\u202e\\nxxx" in said and said.isprintable()
    assert colours.printable("π′ 日本 👩\u200d⚕️\tx\n") == "π′ 日本 👩\u200d⚕️\tx\n"


# ---- options that are repeated


@pytest.mark.parametrize(
    ("command", "option", "first", "second"),
    [
        ("estimate", "--positive", "p.csv", "q.csv"),
        ("estimate", "--unlabeled", "u.csv", "v.csv"),
        ("estimate", "--source-prior", "0.2", "0.3"),
        ("estimate", "--source-prior-counts", "1/5", "2/5"),
        ("estimate", "--seed", "1", "2"),
        ("estimate", "--method", "tcpu", "tcpu"),
        ("estimate", "--output", "a.csv", "b.csv"),
        ("adapt", "--target", "t.csv", "s.csv"),
        ("adapt", "--top", "3", "4"),
        ("sketch", "--like", "a", "b"),
        ("app", "--port", "1", "2"),
    ],
)
def test_an_option_that_takes_one_value_is_refused_if_it_is_repeated(command, option, first, second, capsys):
    code, out, err = said_by([command, option, first, option, second], capsys)
    assert code == 2 and out == "" and err.count("\n") == 1
    assert f"{option} is given more than once" in err


def test_an_option_is_repeated_under_any_of_its_names(capsys):
    typed = ["estimate", "--target", "t.csv", "--random-state", "1", "--seed", "2"]
    assert "--random-state/--seed is given more than once" in said_by(typed, capsys)[2]
    assert "is given more than once" in said_by(["report", "-o", "a.html", "--output=b.html"], capsys)[2]


def test_repeated_targets_are_joined():
    typed = ["estimate", "--target", "a.csv", "b.csv", "--json", "--target", "c.csv", "--drop", "x", "--drop", "y"]
    for _ in range(2):  # nothing is left of an earlier call
        args = parser().parse_args(typed)
        assert args.target == ["a.csv", "b.csv", "c.csv"] and args.drop == ["x", "y"]


def test_options_without_values_may_be_repeated():
    assert parser().parse_args(["estimate", "--target", "t.csv", "--json", "--json"]).json
