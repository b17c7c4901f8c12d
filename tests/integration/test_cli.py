import csv
import gzip
import json
import os
import re
import subprocess
import sys
from argparse import ArgumentTypeError
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from exact_problems import random_problem

import priorshift as ps
from priorshift.cli import main
from priorshift.cli.options import bandwidth, number, prior
from priorshift.errors import InputError


def write(path, X, names, **more):
    with path.open("w", newline="") as file:
        columns = [*X.T.tolist(), *more.values()]
        csv.writer(file).writerows([[*names, *more], *zip(*columns, strict=True)])
    return str(path)


@pytest.fixture
def sample():
    return ps.simulate.gaussian(0.2, 0.6, 300, 300, dimension=3, random_state=0)


@pytest.fixture
def files(sample, tmp_path):
    """The three tables, with an id column in the source ones and the target's columns in another order."""
    return [
        "--positive", write(tmp_path / "p.csv", sample.positive, "abc", id=sample.positive_ids),
        "--unlabeled", write(tmp_path / "u.csv", sample.unlabeled, "abc", id=sample.unlabeled_ids),
        "--target", write(tmp_path / "t.csv", sample.target[:, ::-1], "cba"),
        "--source-prior", "0.2",
    ]  # fmt: skip


def test_three_tables_give_the_estimate_of_the_library(files, sample, capsys):
    assert main(["estimate", *files, "--id-column", "id", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    told = ps.WitnessShift(0.2, random_state=0).fit(sample.X, sample.y, shared=sample.ids).estimate(sample.target)
    assert said["raw"] == pytest.approx(told.raw, rel=1e-9)
    assert said["interval"]["low"] == pytest.approx(told.interval.low, rel=1e-9)
    assert main(["estimate", *files, "--id-column", "id", "--method", "tcpu", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    told = ps.TCPU(0.2, standardize=True).fit(sample.X, sample.y, shared=sample.ids).estimate(sample.target)
    assert said["raw"] == pytest.approx(told.raw, rel=1e-12)
    assert said["interval"]["low"] == pytest.approx(told.interval.low, rel=1e-9)
    assert said["details"]["shared_rows"] == told.details["shared_rows"]


def test_words_by_default_and_warnings_on_stderr(files, capsys):
    assert main(["estimate", *files, "--drop", "id"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("target prior 0.") and said.out.count("\n") == 1
    assert said.err.startswith("priorshift: warning: ") and "pass shared='identical'" in said.err


def test_one_source_table_with_a_label_column(files, sample, tmp_path, capsys):
    main(["estimate", *files, "--id-column", "id", "--json"])
    separate = json.loads(capsys.readouterr().out)
    for labels in (sample.y, np.where(sample.y, "True", "False")):
        source = write(tmp_path / "s.csv", sample.X, "abc", id=sample.ids, labeled=labels)
        one = ["--source", source, "--label-column", "labeled", *files[4:], "--id-column", "id", "--json"]
        assert main(["estimate", *one]) == 0
        assert json.loads(capsys.readouterr().out) == separate


@pytest.mark.parametrize(
    ("values", "positive"),
    [
        (("fraud", "ok"), "fraud"),
        (("fraud", ""), "fraud"),
        (("0", "1"), "0"),
        (("0.0", "1.0"), "0"),
        (("no", "yes"), "no"),
    ],
)
def test_the_value_of_the_label_column_that_means_positive(files, sample, tmp_path, capsys, values, positive):
    main(["estimate", *files, "--id-column", "id", "--json"])
    separate = json.loads(capsys.readouterr().out)
    source = write(tmp_path / "s.csv", sample.X, "abc", id=sample.ids, state=np.where(sample.y, *values))
    one = ["--source", source, "--label-column", "state", *files[4:], "--id-column", "id", "--json"]
    assert main(["estimate", *one, "--positive-label", positive]) == 0
    assert json.loads(capsys.readouterr().out) == separate
    assert main(["estimate", *one, "--positive-label", "nothing like it"]) == 2
    assert re.match(
        r"priorshift: --positive-label is 'nothing like it', but column 'state' of --source .* holds .*; pass one of them",
        capsys.readouterr().err,
    )


def test_a_positive_label_is_one_of_a_column_and_asked_for_where_words_are_found(files, sample, tmp_path, capsys):
    assert main(["estimate", *files, "--positive-label", "fraud"]) == 2
    assert "--positive-label is a value of --label-column; pass that too" in capsys.readouterr().err
    source = write(tmp_path / "s.csv", sample.X, "abc", state=np.where(sample.y, "fraud", "ok"))
    assert main(["estimate", "--source", source, "--label-column", "state", *files[4:]]) == 2
    assert "--positive-label" in capsys.readouterr().err


def test_censoring_scenario(files, sample, tmp_path, capsys):
    source = write(tmp_path / "s.csv", sample.X, "abc", labeled=sample.y)
    options = ["--scenario", "censoring", "--no-standardize", "--json"]
    assert main(["estimate", "--source", source, "--label-column", "labeled", *files[4:], *options]) == 0
    witness = ps.WitnessShift(0.2, scenario="censoring", standardize=False, random_state=0)
    told = witness.fit(sample.X, sample.y).estimate(sample.target)
    assert json.loads(capsys.readouterr().out)["raw"] == pytest.approx(told.raw, rel=1e-9)
    options += ["--method", "tcpu"]
    assert main(["estimate", "--source", source, "--label-column", "labeled", *files[4:], *options]) == 0
    told = ps.TCPU(0.2, scenario="censoring", standardize=False).fit(sample.X, sample.y).estimate(sample.target)
    assert json.loads(capsys.readouterr().out)["raw"] == pytest.approx(told.raw, rel=1e-12)


def test_options_reach_the_estimator(files, sample, capsys):
    options = ["--kernel", "laplace", "--bandwidth", "2.5", "--statistic", "plug-in", "--interval", "bootstrap"]
    assert (
        main(
            [
                "estimate",
                *files,
                *options,
                "--method",
                "tcpu",
                "--confidence",
                "0.8",
                "--identical-rows",
                "--drop",
                "id",
                "--json",
            ]
        )
        == 0
    )
    said = json.loads(capsys.readouterr().out)
    assert said["details"]["kernel"] == "laplace" and said["details"]["bandwidth"] == 2.5
    assert said["details"]["statistic"] == "plug-in"
    assert said["interval"]["method"] == "bootstrap" and said["interval"]["confidence"] == 0.8


def test_picture_is_written_whole(files, tmp_path):
    picture = tmp_path / "picture.png"
    assert main(["estimate", *files, "--id-column", "id", "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert not [p for p in tmp_path.iterdir() if p.is_dir()]  # no temporary folder is left


def test_demo_covers_the_truth_and_draws(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    picture = tmp_path / "demo.svg"
    assert main(["demo", "--json", "--plot", str(picture)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["interval"]["low"] <= said["truth"] <= said["interval"]["high"]
    assert picture.read_text().startswith("<?xml")
    assert main(["demo"]) == 0
    assert "target prior 0." in capsys.readouterr().out


def test_no_estimate_is_null_in_json(tmp_path, capsys):
    rng = np.random.default_rng(0)
    U = rng.normal(size=(20, 3))
    tables = {"positive": U[::-1], "unlabeled": U, "target": rng.normal(size=(9, 3))}
    arguments = [x for k, X in tables.items() for x in (f"--{k}", write(tmp_path / f"{k}.csv", X, "abc"))]
    assert main(["estimate", *arguments, "--method", "tcpu", "--source-prior", "0.2", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["value"] is None
    assert "every prior in [0, 1] is possible" in said.err
    assert main(["estimate", *arguments, "--source-prior", "0.2", "--json"]) == 0
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert answer["status"] == "no estimate" and (answer["interval"]["low"], answer["interval"]["high"]) == (0, 1)
    assert "20 unlabelled rows" in said.err


def test_command_runs_as_a_program_with_version_and_help(tmp_path):
    script = [sys.executable, "-c", "import sys; from priorshift.cli import main; sys.exit(main())"]
    version = subprocess.run([*script, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.strip() == f"priorshift {ps.__version__}"
    nothing = subprocess.run(script, capture_output=True, text=True)
    assert nothing.returncode == 2
    assert nothing.stderr.count("\n") == 1


def test_an_interrupt_ends_with_a_sentence(files, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("priorshift.cli.estimate.estimate_target", interrupted)
    assert main(["estimate", *files, "--drop", "id"]) == 130
    assert capsys.readouterr().err == "priorshift: interrupted; no file was written.\n"


def test_exact_problem_through_files(tmp_path, capsys):
    problem = random_problem()
    arguments = []
    for name in ("positive", "unlabeled", "target"):
        arguments += [f"--{name}", write(tmp_path / f"{name}.csv", getattr(problem, name), "abc")]
    prior = repr(problem.source_prior)
    assert (
        main(["estimate", *arguments, "--source-prior", prior, "--method", "tcpu", "--statistic", "plug-in", "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["raw"] == pytest.approx(problem.target_prior, abs=1e-12)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_without_a_source_prior_the_witness_answers_with_its_own_picture(files, sample, tmp_path, capsys):
    picture = tmp_path / "m.png"
    assert main(["estimate", *files[:6], "--id-column", "id", "--json", "--plot", str(picture)]) == 0
    answer = json.loads(capsys.readouterr().out)
    told = ps.WitnessShift(random_state=0).fit(sample.X, sample.y, shared=sample.ids).estimate(sample.target)
    assert answer["method"] == "Witness" and answer["value"] == pytest.approx(told.value, abs=1e-6)
    assert picture.stat().st_size > 5000
    assert main(["estimate", *files[:6], "--method", "witness", "--kernel", "laplace"]) == 2


@pytest.mark.parametrize(
    ("option", "value", "takers"),
    [
        ("--kernel", "laplace", "tcpu"),
        ("--kernel", "gaussian", "tcpu"),  # its default
        ("--interval", "delta", "tcpu"),
        ("--statistic", "plug-in", "tcpu"),
        ("--bandwidth", "2", "tcpu or km2-ls"),
    ],
)
@pytest.mark.parametrize("command", ["estimate", "adapt"])
def test_an_option_of_another_method_does_not_choose_the_method(
    files, tmp_path, capsys, command, option, value, takers
):
    output = ["--output", str(tmp_path / "o.csv"), "--classifier", "logistic"] if command == "adapt" else []
    assert main([command, *files, "--drop", "id", option, value, *output]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"priorshift: {option} belongs to --method {takers}; add that, or remove {option}.\n"


def test_tcpu_without_a_source_prior_asks_km2(files, sample, capsys):
    assert main(["estimate", *files[:6], "--id-column", "id", "--json", "--method", "tcpu"]) == 0
    said = capsys.readouterr()
    answer = json.loads(said.out)
    tcpu = ps.TCPU(standardize=True).fit(sample.X, sample.y, shared=sample.ids)
    assert answer["source_prior"] == pytest.approx(tcpu.prior_estimator_.prior_, abs=1e-6)
    assert answer["source_prior_by"] == "KM2"
    assert "was estimated by KM2" in said.err


def test_km2_ls_by_name_with_its_own_picture(files, tmp_path, capsys):
    picture = tmp_path / "curve.svg"
    arguments = ["estimate", *files[:6], "--drop", "id", "--method", "km2-ls", "--plot", str(picture)]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["method"] == "KM2-LS"
    assert picture.exists()
    for option, value in (("--kernel", "laplace"), ("--source-prior", "0.2"), ("--scenario", "censoring")):
        assert main([*arguments, option, value]) == 2
        assert f"{option} does not apply to --method km2-ls; remove it." in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_drpu_by_name_with_its_own_picture(files, tmp_path, capsys, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(ps.DRPU.__init__, "__kwdefaults__", {**ps.DRPU.__init__.__kwdefaults__, "max_epochs": 3})
    picture = tmp_path / "levels.png"
    assert main(["estimate", *files, "--method", "drpu", "--drop", "id", "--plot", str(picture), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["method"] == "DRPU" and said["source_prior"] == 0.2 and said["separation"] is None
    assert picture.stat().st_size > 5000


def test_options_that_a_method_does_not_have(files, capsys):
    assert main(["estimate", *files, "--method", "drpu", "--kernel", "laplace"]) == 2
    assert "--kernel does not apply to --method drpu; remove it." in capsys.readouterr().err


def adapted(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_adapt_writes_the_target_with_posterior_and_decision(files, sample, tmp_path, capsys):
    output = tmp_path / "decided.csv"
    command = ["adapt", *files, "--id-column", "id", "--classifier", "logistic", "--output", str(output)]
    assert main([*command, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    rows = adapted(output)
    assert list(rows[0]) == ["c", "b", "a", "posterior", "decision"]
    np.testing.assert_array_equal([[float(r[k]) for k in "abc"] for r in rows], sample.target)
    p, decision = (np.array([float(r[k]) for r in rows]) for k in ("posterior", "decision"))
    np.testing.assert_array_equal(p > 0.5, decision == 1)
    assert (said["decided_positive"], said["rows"]) == (decision.sum(), len(decision))
    assert said["estimate"]["details"]["mean"] == said["target_prior"]
    assert said["threshold"] == 0.5  # of the column that is written
    assert said["true_positives"] == pytest.approx(p[decision == 1].sum(), rel=1e-4)
    assert sample.target_labels[decision == 1].sum() <= said["true_positives_interval"][1]
    assert (decision == sample.target_labels).mean() > 0.75  # three features: 0.81 is the best possible
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "those with the largest posteriors, down to 0.5: about" in printed and "written to" in printed


def test_adapt_decides_by_a_rule_that_suits_rare_positives_for_each_month(files, sample, tmp_path, capsys):
    months = np.where(np.arange(len(sample.target)) % 3, "b", "a").tolist()
    target = write(tmp_path / "m.csv", sample.target, "abc", month=months)
    output = tmp_path / "decided.csv"
    command = ["adapt", *files[:4], "--target", target, *files[6:], "--drop", "id", "--classifier", "logistic"]
    assert main([*command, "--by", "month", "--top", "20", "--json", "--output", str(output)]) == 0
    said = json.loads(capsys.readouterr().out)
    rows = adapted(output)
    assert [row["month"] for row in rows] == months  # in the order of the file
    assert said["by"] == "month" and {name: t["decided_positive"] for name, t in said["targets"].items()} == {
        "a": 20,
        "b": 20,
    }
    for name, found in said["targets"].items():
        p, decision = (np.array([float(r[k]) for r in rows if r["month"] == name]) for k in ("posterior", "decision"))
        assert decision.sum() == 20 and p[decision == 1].min() == pytest.approx(found["threshold"], rel=1e-4)
        assert p[decision == 0].max() <= found["threshold"] * (1 + 1e-4)
    assert main([*command, "--by", "month", "--top", "20", "--recall", "0.5", "--output", str(output)]) == 2
    assert "--top and --recall exclude each other" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_the_exit_code_can_follow_the_verdict(files, sample, tmp_path, capsys):
    diagnose = ["diagnose", *files, "--drop", "id"]
    assert main([*diagnose, "--fail-on", "no"]) == 0
    moved = write(tmp_path / "m.csv", sample.target + np.array([0, 0, 2.0]), "abc")
    diagnose[diagnose.index("--target") + 1] = moved
    assert main(diagnose) == 0  # a verdict alone is no failure
    capsys.readouterr()
    assert main([*diagnose, "--fail-on", "no", "--json"]) == 3
    captured = capsys.readouterr()
    assert json.loads(captured.out)["verdict"]["answer"] == "no" and "--fail-on no" in captured.err
    # a method without a status has no estimate where the value is missing
    rng, nothing = np.random.default_rng(3), ["--source-prior", "0.2", "--method", "tcpu"]
    for name, rows in (("positive", 12), ("unlabeled", 40), ("target", 40)):  # noise, with a negative separation
        nothing += [f"--{name}", write(tmp_path / f"{name}.csv", rng.normal(size=(rows, 3)), "abc")]
    assert main(["estimate", *nothing]) == 0
    assert main(["estimate", *nothing, "--fail-on", "no"]) == 3


@pytest.mark.parametrize("text", ["0.2", "0,2", "20%", "20 %", "20,0%"])
def test_shares_may_have_a_decimal_comma_or_be_percentages(text):
    assert number(text) == 0.2


def test_ranges_of_shares_may_be_percentages():
    assert prior("10-20%") == prior("10%-20%") == prior("0,1-0,2") == (0.1, 0.2) and prior("1e-3-0.1") == (0.001, 0.1)
    for text in ("1,000", "a half", "4,5,6"):
        with pytest.raises((ValueError, ArgumentTypeError)):
            number(text)


def test_adapt_to_a_known_prior_keeps_every_column(files, sample, tmp_path, capsys):
    """Columns that are no features come along as they are; the target may be separated by semicolons."""
    names = [f"patient {k}" for k in range(len(sample.target))]
    target = tmp_path / "t2.csv"
    lines = [f"{n};{';'.join(map(str, row))}" for n, row in zip(names, sample.target.tolist(), strict=True)]
    target.write_text("who;a;b;c\n\n" + "\n".join(lines) + "\n")
    output = tmp_path / "decided.tsv"
    command = ["adapt", *files[:4], "--target", str(target), *files[6:], "--drop", "who", "--drop", "id"]
    assert main([*command, "--classifier", "logistic", "--target-prior", "0.6", "--output", str(output)]) == 0
    assert "target prior 0.600 (given)" in capsys.readouterr().out
    first, *rest = output.read_text().splitlines()
    assert first == "who;a;b;c;posterior;decision" and len(rest) == len(names)
    assert rest[7].startswith("patient 7;")
    assert main([*command, "--classifier", "logistic", "--target-prior", "0.00123", "--output", str(output)]) == 0
    assert capsys.readouterr().out.startswith("target prior 0.0012 (given)\ndecided positive: ")


def test_adapt_with_nnpu_and_parquet(sample, tmp_path, capsys, monkeypatch):
    pytest.importorskip("torch")
    import pyarrow
    from pyarrow import parquet

    quick = {**ps.NNPUClassifier.__init__.__kwdefaults__, "max_epochs": 3}
    monkeypatch.setattr(ps.NNPUClassifier.__init__, "__kwdefaults__", quick)
    paths = []
    for name, X in (("positive", sample.positive), ("unlabeled", sample.unlabeled), ("target", sample.target)):
        parquet.write_table(pyarrow.table(dict(zip("abc", X.T, strict=True))), tmp_path / f"{name}.parquet")
        paths += [f"--{name}", str(tmp_path / f"{name}.parquet")]
    output = tmp_path / "out.parquet"
    assert main(["adapt", *paths, "--source-prior", "0.2", "--identical-rows", "--output", str(output)]) == 0
    made = parquet.read_table(output)
    assert made.column_names == ["a", "b", "c", "posterior", "decision"]
    assert made.num_rows == len(sample.target)


@pytest.fixture
def _without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it fails


@pytest.mark.usefixtures("_without_torch")
def test_adapt_without_torch_takes_the_logistic_classifier_and_says_so(files, tmp_path, capsys):
    by_default, asked = tmp_path / "one.csv", tmp_path / "two.csv"
    command = ["adapt", *files, "--id-column", "id", "--output"]
    assert main([*command, str(by_default)]) == 0
    said = capsys.readouterr().err
    assert "classifier is logistic" in said and 'pip install "priorshift[torch]"' in said and said.count("\n") == 1
    assert main([*command, str(asked), "--classifier", "logistic"]) == 0
    assert capsys.readouterr().err == ""
    assert by_default.read_bytes() == asked.read_bytes()


@pytest.mark.usefixtures("_without_torch")
def test_a_network_without_torch_is_refused_at_once_in_the_terms_of_the_shell(files, tmp_path, capsys):
    missing = ["--positive", "nowhere.csv", "--unlabeled", "nowhere.csv", "--target", "nowhere.csv"]  # read later
    output = tmp_path / "o.csv"
    assert main(["adapt", *missing, "--classifier", "nnpu", "--output", str(output)]) == 2
    said = capsys.readouterr().err
    assert "--classifier nnpu needs torch" in said and "--classifier logistic" in said and said.count("\n") == 1
    assert main(["estimate", *missing, "--method", "drpu"]) == 2
    said = capsys.readouterr().err
    assert "--method drpu needs torch" in said and "another method" in said and said.count("\n") == 1
    assert not output.exists()


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("x.parquet", "must end in .csv or .tsv or .txt, as the target does"),
        ("x.png", "must end in .csv or .tsv or .txt"),
        ("nowhere/x.csv", "is in a folder that does not exist"),
        ("folder.csv", "is a folder; name a file"),
        ("t.csv", "is one of the tables that are read; name another file"),
    ],
)
def test_adapt_refuses_what_it_cannot_write(files, tmp_path, capsys, output, message):
    (tmp_path / "folder.csv").mkdir()
    assert main(["adapt", *files, "--drop", "id", "--output", str(tmp_path / output)]) == 2
    assert message in capsys.readouterr().err


def test_adapt_refuses_columns_of_its_own_name_and_leaves_nothing(files, sample, tmp_path, capsys):
    target = write(tmp_path / "t3.csv", sample.target, "abc", decision=sample.target_labels.astype(int))
    command = ["adapt", *files[:4], "--target", target, *files[6:], "--drop", "decision", "--drop", "id"]
    before = set(tmp_path.iterdir())
    assert main([*command, "--classifier", "logistic", "--output", str(tmp_path / "out.csv")]) == 2
    assert "has a column 'decision' already; rename it" in capsys.readouterr().err
    assert set(tmp_path.iterdir()) == before


def test_adapt_reads_what_estimate_reads(files, sample, tmp_path, capsys):
    """A first line of spaces, quotes after a space, CRLF, a byte order mark, no end of line."""
    rows = "\r\n".join(", ".join(map(str, row)) for row in sample.target.tolist())
    target = tmp_path / "t4.csv"
    target.write_bytes(b"\xef\xbb\xbf" + f'  \r\n"a", "b", "c"\r\n{rows}'.encode())
    command = ["adapt", *files[:4], "--target", str(target), *files[6:], "--drop", "id", "--classifier", "logistic"]
    assert main([*command, "--target-prior", "0.5", "--output", str(tmp_path / "o.csv")]) == 0
    written = (tmp_path / "o.csv").read_bytes().decode().split("\r\n")
    assert written.pop() == "" and written[0] == '"a", "b", "c",posterior,decision'  # its lines as they were
    assert [line.rsplit(",", 2)[0] for line in written[1:]] == rows.split("\r\n")


def test_adapt_never_overwrites_a_source_table(files, tmp_path, capsys):
    before = (tmp_path / "p.csv").read_bytes()
    assert main(["adapt", *files, "--drop", "id", "--output", str(tmp_path / "p.csv")]) == 2
    assert "is one of the tables that are read" in capsys.readouterr().err
    assert (tmp_path / "p.csv").read_bytes() == before


def test_adapt_refuses_a_bad_prior_before_the_work(files, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("priorshift.cli.inputs.read_problem", lambda args: pytest.fail("read"))
    assert main(["adapt", *files, "--target-prior", "1.5", "--output", str(tmp_path / "o.csv")]) == 2
    assert "target_prior is 1.5, but it must be a number from 0 to 1" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_adapt_options_reach_both_estimators(files, tmp_path, capsys, monkeypatch):
    pytest.importorskip("torch")
    made = []

    class Watched(ps.ShiftedClassifier):
        def fit_source(self, *args, **named):
            made.append(self)
            raise InputError("seen")

    monkeypatch.setattr("priorshift.cli.adapt.ShiftedClassifier", Watched)
    rest = ["--drop", "id", "--output", str(tmp_path / "o.csv"), "--no-standardize"]
    assert main(["adapt", *files, *rest, "--scenario", "censoring"]) == 2
    assert main(["adapt", *files, *rest, "--method", "km2-ls"]) == 2
    assert main(["adapt", *files, *rest, "--classifier", "logistic"]) == 2
    first, second, third = made
    assert first.classifier.scenario == first.prior_estimator.scenario == "censoring"
    assert not (first.classifier.standardize or first.prior_estimator.standardize)
    assert (
        first.classifier.source_prior
        == second.classifier.source_prior
        == second.source_prior
        == third.source_prior
        == 0.2
    )
    assert type(second.prior_estimator).__name__ == "KM2LS" and not third.classifier[0].with_std


def test_a_closed_pipe_is_no_error(files):
    command = [
        sys.executable,
        "-c",
        f"import sys; from priorshift.cli import main; sys.exit(main({['estimate', *files, '--drop', 'id']!r}))",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait() in (0, 120) and "cannot be used" not in said and "Traceback" not in said


STRANGERS = """
from pathlib import Path
from types import SimpleNamespace
Path({marker!r}).write_text("executed")
def main(arguments): return 0
"""


@pytest.mark.parametrize("installed", [False, True], ids=["of a checkout", "installed without one"])
def test_experiments_of_a_stranger_are_never_executed(installed, tmp_path):
    """A folder that looks like a checkout, and is the working directory: only our own experiments may run."""
    marker, folder = tmp_path / "marker", tmp_path / "work"
    (folder / "experiments").mkdir(parents=True)
    (folder / "src" / "priorshift").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    for name in ("__init__.py", "grids.py", "__main__.py", "command_line.py"):
        (folder / "experiments" / name).write_text(STRANGERS.format(marker=str(marker)))
    # as `python -c` does, and as an unlucky PYTHONPATH would, with the folder on the path
    elsewhere = f"small_commands._CHECKOUT = __import__('pathlib').Path({str(tmp_path)!r});" if installed else ""
    code = f"import sys; from priorshift.cli import main, small_commands; {elsewhere} sys.exit(main(['experiment', 'list']))"
    path = os.pathsep.join([str(Path(ps.__file__).parents[1]), str(folder)])
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert not marker.exists()
    if installed:
        assert (
            run.returncode == 2 and "the experiments are part of the repository and not of the installed" in run.stderr
        )
    else:
        assert run.returncode == 0 and len(run.stdout.splitlines()) > 3, run.stderr


# ---- many targets


@pytest.fixture
def months(tmp_path):
    """Source files, a file for each of three months, and one file of all."""
    rng = np.random.default_rng(0)

    def rows(count, prior):
        return rng.normal(size=(count, 3)) + 2 * (rng.random(count) < prior)[:, None]

    made = {name: rows(150, prior) for name, prior in (("jan", 0.2), ("feb", 0.2), ("mar", 0.7))}
    P, U = rows(80, 1), rows(300, 0.3)
    column = np.repeat(list(made), 150)
    return SimpleNamespace(
        source=[
            "--positive", write(tmp_path / "p.csv", P, "abc"), "--unlabeled", write(tmp_path / "u.csv", U, "abc"),
            "--source-prior", "0.3", "--method", "tcpu",
        ],
        files=[write(tmp_path / f"{name}.csv", X, "abc") for name, X in made.items()],
        one=write(tmp_path / "all.csv", np.concatenate(list(made.values())), "abc", month=column),
        expected=ps.estimate_priors(P, U, made, source_prior=0.3, method="tcpu"),
        strata=[
            "--positive", write(tmp_path / "sp.csv", P, "abc", region=np.arange(80) % 2),
            "--unlabeled", write(tmp_path / "su.csv", U, "abc", region=np.arange(300) % 2),
            "--target", write(tmp_path / "st.csv", made["jan"], "abc", region=np.arange(150) % 2),
        ],
    )  # fmt: skip


def test_several_targets_print_a_table_and_write_it(months, tmp_path, capsys):
    table, picture = tmp_path / "table.csv", tmp_path / "series.png"
    output = ["--output", str(table), "--plot", str(picture)]
    assert main(["estimate", *months.source, "--target", *months.files, *output]) == 0
    said = capsys.readouterr().out
    assert said == f"{months.expected}\n{months.expected.equality_test()}\n"
    assert table.read_text() == months.expected.to_csv()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert not [p for p in tmp_path.iterdir() if p.is_dir()]


def test_one_file_with_a_column_of_months_gives_the_same(months, capsys):
    assert main(["estimate", *months.source, "--target", *months.files, "--json"]) == 0
    several = json.loads(capsys.readouterr().out)
    assert main(["estimate", *months.source, "--target", months.one, "--by", "month", "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert one.pop("by") == "month" and several.pop("by") is None and one == several
    assert several["targets"]["mar"]["value"] == months.expected["mar"].value


def test_gzipped_files_are_called_as_others_and_two_of_one_name_are_refused(months, tmp_path, capsys):
    packed = tmp_path / "2024-12.csv.gz"
    packed.write_bytes(gzip.compress(Path(months.files[0]).read_bytes()))
    assert main(["estimate", *months.source, "--target", str(packed), months.files[1], "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["targets"]) == ["2024-12", "feb"]
    assert main(["estimate", *months.source, "--target", str(packed), str(packed)]) == 2
    assert "two targets are called '2024-12'; rename one of the files." in capsys.readouterr().err


def test_one_target_prints_what_it_always_did(months, capsys):
    assert main(["estimate", *months.source, "--target", months.files[2]]) == 0
    assert capsys.readouterr().out == f"{months.expected['mar']}\n"


def test_strata_print_the_whole_as_well(months, tmp_path, capsys):
    options = [*months.source[4:], "--stratify", "region"]
    table = tmp_path / "strata.csv"
    assert main(["estimate", *months.strata, *options, "--output", str(table)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("region") and said[-1].startswith("all") and len(said) == 4
    assert [line.split(",")[0] for line in table.read_text().splitlines()] == ["target", "0", "1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--by", "month"], "--by is for one --target, but 3 files are given"),
        (["--stratify", "region"], "--stratify is for one --target, but 3 files are given"),
        (["--output", "table.txt"], "--output table.txt must end in .csv"),
        (["--output", "nowhere/table.csv"], "is in a folder that does not exist"),
        (["--plot", "series.gif"], "--plot series.gif must end in .png"),
    ],
)
def test_wrong_use_of_many_targets_is_a_sentence(options, message, months, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert main(["estimate", *months.source, "--target", *months.files, *options]) == 2
    said = capsys.readouterr()
    assert said.out == "" and message in said.err and said.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_wrong_use_with_one_target_is_a_sentence(months, tmp_path, capsys):
    def refused(message, *options):
        assert main(["estimate", *options]) == 2
        said = capsys.readouterr()
        assert said.out == "" and message in said.err and said.err.count("\n") == 1

    one = [*months.source, "--target", months.one]
    refused("--output is for several targets", *one, "--drop", "month", "--output", str(tmp_path / "table.csv"))
    refused("is one of the tables that are read", *one, "--by", "month", "--output", months.one)
    refused("is a folder; name a file", *one, "--by", "month", "--output", str(folder_named(tmp_path, "x.csv")))
    refused("has no column 'week'", *one, "--by", "week")
    refused("--by and --drop name the same column, 'month'", *one, "--by", "month", "--drop", "month")
    refused("--by and --id-column name the same column, 'month'", *one, "--by", "month", "--id-column", "month")
    with pytest.raises(SystemExit, match="2"):
        main(["estimate", *one, "--by", "month", "--stratify", "month"])
    assert "--stratify: not allowed with argument --by" in capsys.readouterr().err
    refused("has no column 'month'", *one, "--stratify", "month")


def folder_named(parent, name):
    (parent / name).mkdir()
    return parent / name


# ---- files that are too large for memory


@pytest.fixture
def _everything_is_large(monkeypatch):
    monkeypatch.setattr("priorshift.loading.LARGE", 1)


@pytest.mark.usefixtures("_everything_is_large")
def test_a_large_file_is_read_at_once_where_the_options_ask_for_it(files, capsys):
    """--encoder none, which streaming does not have, reads all rows; so does --no-stream."""
    arguments = ["estimate", *files, "--drop", "id", "--json"]
    estimates = {}
    for options in ((), ("--stream",), ("--no-stream",), ("--encoder", "none"), ("--no-stream", "--encoder", "none")):
        assert main([*arguments, *options]) == 0
        estimates[options] = json.loads(capsys.readouterr().out)
    assert estimates[()] == estimates["--stream",]
    assert estimates["--no-stream",] == estimates["--encoder", "none"] == estimates["--no-stream", "--encoder", "none"]
    assert estimates[()]["details"] != estimates["--no-stream",]["details"]


@pytest.mark.parametrize(
    ("options", "option"),
    [
        (["--encoder", "none"], "--encoder none"),
        (["--id-column", "id"], "--id-column"),
        (["--identical-rows"], "--identical-rows"),
        (["--group-column", "id"], "--group-column"),
        (["--audit-column", "a"], "--audit-column"),
    ],
)
def test_what_streaming_lacks_is_named_as_the_shell_calls_it(files, options, option, capsys):
    drop = [] if "id" in options else ["--drop", "id"]
    assert main(["estimate", *files, "--stream", *drop, *options]) == 2
    said = capsys.readouterr().err
    assert option in said and "--no-stream" in said and "stream=" not in said and said.count("\n") == 1


@pytest.mark.parametrize("options", [["--by", "a"], ["--stratify", "a"], ["--plot", "p.png"]])
def test_streaming_is_for_one_target_without_a_figure(files, options, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["estimate", *files, "--drop", "id", "--stream", *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("command", ["estimate", "adapt"])
def test_an_interval_with_nearly_every_prior_comes_with_a_warning(command, files, sample, tmp_path, capsys):
    target = write(tmp_path / "two.csv", sample.target[:2, ::-1], "cba")
    words = [*files[:5], target, *files[6:], "--id-column", "id"]
    words += ["--classifier", "logistic", "-o", str(tmp_path / "o.csv")] if command == "adapt" else []
    assert main([command, *words]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("no estimate of the target prior")
    assert re.search(
        r"warning: The interval, 0\.\d+ to 1\.\d+, contains nearly every prior, so there is no estimate from \d+ "
        r"positive, \d+ unlabelled and 2 target rows\. Add rows",
        said.err,
    )
    assert main(["estimate", *files, "--id-column", "id"]) == 0
    assert "nearly every prior" not in capsys.readouterr().err


def test_each_of_several_targets_with_a_wide_interval_is_named(files, sample, tmp_path, capsys):
    target = write(tmp_path / "two.csv", sample.target[:2, ::-1], "cba")
    assert main(["estimate", *files, "--target", target, "--id-column", "id"]) == 0
    said = capsys.readouterr().err
    assert said.count("nearly every prior") == 1 and "The interval of target 'two', " in said


def test_a_bandwidth_may_have_a_decimal_comma():
    assert bandwidth("1,5") == bandwidth("1.5") == 1.5
    assert bandwidth("1e-3") == 1e-3 and bandwidth("median") == "median"


def test_the_package_is_a_program():
    ended = subprocess.run([sys.executable, "-m", "priorshift", "--version"], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"priorshift {ps.__version__}\n", "")
