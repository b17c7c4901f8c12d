"""Several labelled classes on the command line: files by class, a column of labels, and what is refused."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import priorshift as ps
from priorshift.api import fit_source
from priorshift.cli import main
from priorshift.loading import InputOptions, load_problem

SOURCE, TARGET = {"flu": 0.2, "covid": 0.3}, {"flu": 0.5, "covid": 0.1}
PRIORS = ["--source-prior", "flu=0.2", "--source-prior", "covid=0.3"]


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian_classes(SOURCE, TARGET, dimension=4, random_state=0)


@pytest.fixture
def folder(sample, tmp_path, monkeypatch):
    """A file of each sample, and one of all rows of the source with a column of classes."""
    monkeypatch.chdir(tmp_path)
    frames = {name: pd.DataFrame(X, columns=list("abcd")) for name, X in sample.classes.items()}
    frames |= {"u": pd.DataFrame(sample.unlabeled, columns=list("abcd"))}
    labels = {"flu": "flu", "covid": "covid", "u": None}
    frames["source"] = pd.concat([frames[name].assign(label=label) for name, label in labels.items()])
    frames["named"] = frames["source"].fillna({"label": "unknown"})
    frames["t"] = pd.DataFrame(sample.target, columns=list("abcd"))
    frames["t2"] = frames["t"][::2]
    for name, frame in frames.items():
        frame.to_csv(f"{name}.csv", index=False)
    return tmp_path


CLASSES = ["--positive", "flu=flu.csv", "--positive", "covid=covid.csv"]
FILES = [*CLASSES, "--unlabeled", "u.csv", "--target", "t.csv"]


def estimated(capsys, *words):
    assert main(["estimate", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("method", ["auto", "tcpu"])
def test_files_by_class_give_the_estimate_of_the_library(folder, sample, capsys, method):
    found = estimated(capsys, *FILES, *PRIORS, "--method", method)
    expected = ps.estimate_prior(
        sample.classes, sample.unlabeled, sample.target, source_prior=SOURCE, method=method, random_state=0
    )
    assert list(found["classes"]) == ["flu", "covid", "rest"]
    for name, estimate in expected.items():
        assert found["classes"][name]["raw"] == pytest.approx(estimate.raw, rel=1e-9)
        assert found["classes"][name]["interval"]["low"] == pytest.approx(estimate.interval.low, rel=1e-9)


def test_classes_may_be_sketches(folder, sample, capsys):
    assert main(["sketch", "u.csv", "-o", "u.sketch"]) == 0
    for name in ("flu", "covid", "t"):
        assert main(["sketch", f"{name}.csv", "-o", f"{name}.sketch", "--like", "u.sketch"]) == 0
    capsys.readouterr()
    words = ["--positive", "flu=flu.sketch", "--positive", "covid=covid.sketch", "--unlabeled", "u.sketch"]
    found = estimated(capsys, *words, "--target", "t.sketch", *PRIORS, "--method", "tcpu")
    streamed = ps.estimate_prior(
        sample.classes, sample.unlabeled, sample.target, source_prior=SOURCE, method="tcpu", stream=True
    )
    assert found["classes"]["flu"]["raw"] == pytest.approx(streamed["flu"].raw, rel=1e-6)  # the files have rounded rows
    assert found["classes"]["rest"]["sizes"] == list(streamed["rest"].sizes)
    assert main(["estimate", *words, "--target", "t.sketch", "--method", "tcpu"]) == 2
    assert "source prior of 'flu'" in capsys.readouterr().err


def test_files_of_classes_may_be_streamed(folder, sample, capsys):
    found = estimated(capsys, *FILES, *PRIORS, "--stream")
    streamed = ps.estimate_prior(
        sample.classes, sample.unlabeled, sample.target, source_prior=SOURCE, random_state=0, stream=True
    )
    assert found["classes"]["flu"]["raw"] == pytest.approx(streamed["flu"].raw, abs=1e-6)


def test_priors_may_be_ranges_and_surveys_and_labels_may_have_errors(folder, sample, capsys):
    words = ["--source-prior", "flu=0.1-0.3", "--source-prior", "covid=30/100", "--label-error", "flu=5%"]
    found = estimated(capsys, *FILES, "--method", "tcpu", *words)
    mixed = estimated(
        capsys, *FILES, "--method", "tcpu", "--source-prior", "flu=0.2", "--source-prior-counts", "covid=30/100"
    )
    assert [mixed["classes"][name]["source_prior_by"] for name in ("flu", "covid")] == ["given", "distribution"]
    by_counts = ["--source-prior-counts", "flu=20/100", "--source-prior-counts", "covid=30/100"]
    assert estimated(capsys, *FILES, "--method", "tcpu", *by_counts)["classes"]["flu"]["source_prior_by"] == (
        "distribution"
    )
    expected = ps.estimate_prior(
        sample.classes, sample.unlabeled, sample.target, method="tcpu", random_state=0,
        source_prior={"flu": (0.1, 0.3), "covid": 0.3}, label_error={"flu": 0.05},
    )  # fmt: skip
    assert found["classes"]["flu"]["raw"] == pytest.approx(expected["flu"].raw, abs=1e-9)
    assert [found["classes"][name]["source_prior_by"] for name in ("flu", "covid")] == ["range", "distribution"]
    every = estimated(capsys, *FILES, *PRIORS, "--method", "tcpu", "--label-error", "0.05")
    none = estimated(capsys, *FILES, *PRIORS, "--method", "tcpu")
    assert every["classes"]["rest"]["raw"] > none["classes"]["rest"]["raw"]


def test_a_survey_of_all_classes_and_label_errors_between_classes(folder, sample, capsys):
    arguments = {"method": "tcpu", "random_state": 0}
    samples = sample.classes, sample.unlabeled, sample.target
    rows = {"flu": 20, "covid": 30, "rest": 50}
    words = [word for name, count in rows.items() for word in ("--source-prior-counts", f"{name}={count}")]
    found = estimated(capsys, *FILES, "--method", "tcpu", *words)
    expected = ps.estimate_prior(*samples, source_prior=rows, **arguments)
    assert found["classes"]["rest"]["interval"]["low"] == pytest.approx(expected["rest"].interval.low, rel=1e-9)
    errors = ["--label-error", "flu:covid=5%", "--label-error", "covid:rest=0.1"]
    found = estimated(capsys, *FILES, *PRIORS, "--method", "tcpu", *errors)
    by_class = {"flu": {"covid": 0.05}, "covid": 0.1}
    expected = ps.estimate_prior(*samples, source_prior=SOURCE, label_error=by_class, **arguments)
    assert found["classes"]["flu"]["raw"] == pytest.approx(expected["flu"].raw, rel=1e-9)
    counts = ["--label-error-counts", "flu=3/50", "--label-error-counts", "covid:flu=2/50"]
    found = estimated(capsys, *FILES, *PRIORS, "--method", "tcpu", *counts)
    by_class = {"flu": stats.beta(3.5, 47.5), "covid": {"flu": stats.beta(2.5, 48.5)}}
    expected = ps.estimate_prior(*samples, source_prior=SOURCE, label_error=by_class, **arguments)
    assert found["classes"]["flu"]["interval"]["low"] == pytest.approx(expected["flu"].interval.low, rel=1e-9)
    everywhere = estimated(capsys, *FILES, *PRIORS, "--method", "tcpu", "--label-error-counts", "3/50")
    expected = ps.estimate_prior(*samples, source_prior=SOURCE, label_error=stats.beta(3.5, 47.5), **arguments)
    assert everywhere["classes"]["rest"]["raw"] == pytest.approx(expected["rest"].raw, rel=1e-9)
    found = estimated(capsys, *CLASSES, "--no-rest", "--target", "t.csv", "--method", "tcpu", "--label-error",
                      "flu:covid=0.1")  # fmt: skip
    expected = ps.estimate_prior(sample.classes, None, sample.target, rest=False, method="tcpu",
                                 label_error={"flu": {"covid": 0.1}})  # fmt: skip
    assert found["classes"]["flu"]["raw"] == pytest.approx(expected["flu"].raw, rel=1e-9)


def test_an_audit_column_of_classes(folder, sample, capsys):
    truth = np.where(np.arange(len(sample.target)) < 100, sample.target_labels, "")
    pd.read_csv("t.csv").assign(truth=truth).to_csv("audited.csv", index=False)
    words = [*CLASSES, "--unlabeled", "u.csv", "--target", "audited.csv", *PRIORS, "--method", "tcpu"]
    found = estimated(capsys, *words, "--audit-column", "truth")["classes"]
    expected = ps.estimate_prior(
        sample.classes, sample.unlabeled, sample.target, source_prior=SOURCE, method="tcpu", audit={"target": truth},
        random_state=0,
    )  # fmt: skip
    assert found["flu"]["interval"]["low"] == pytest.approx(expected["flu"].interval.low, rel=1e-9)
    assert found["rest"]["details"]["audit"]["target"]["rows"] == [100, 1000]


def test_a_table_of_classes_on_stdout_and_in_a_file(folder, capsys):
    assert main(["estimate", *FILES, *PRIORS, "--output", "classes.csv"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert printed.err == "" and len(lines) == 4 and [line.split()[0] for line in lines[1:]] == ["flu", "covid", "rest"]
    with open("classes.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == ["flu", "covid", "rest"]
    assert sum(float(row["estimate"]) for row in rows) == pytest.approx(1, abs=1e-5)


def test_several_targets_are_one_table_with_a_test_of_equality(folder, capsys):
    assert main(["estimate", *CLASSES, "--unlabeled", "u.csv", "--target", "t.csv", "t2.csv", *PRIORS]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["target", "class", "estimate"] and len(lines) == 8
    assert [line.split()[:2] for line in lines[1:4]] == [["t", "flu"], ["t", "covid"], ["t", "rest"]]
    assert lines[-1].startswith("equal priors")


@pytest.mark.parametrize(
    "words", [["source.csv"], ["named.csv", "--unlabeled-label", "unknown"]], ids=["empty cells", "a value"]
)
def test_a_column_of_classes(folder, capsys, words):
    table, *option = words
    one = ["--source", table, "--label-column", "label", *option, "--target", "t.csv"]
    found = estimated(capsys, *one, *PRIORS, "--method", "tcpu")["classes"]
    separate = estimated(capsys, *FILES, *PRIORS, "--method", "tcpu")["classes"]
    for name in ("flu", "covid", "rest"):
        assert found[name]["raw"] == pytest.approx(separate[name]["raw"], abs=1e-9)


def test_without_a_rest(folder, sample, capsys):
    found = estimated(capsys, *CLASSES, "--no-rest", "--target", "t.csv", "--method", "tcpu")["classes"]
    expected = ps.estimate_prior(sample.classes, None, sample.target, rest=False, method="tcpu")
    assert found["flu"]["raw"] == pytest.approx(expected["flu"].raw, rel=1e-9) and list(found) == ["flu", "covid"]
    labeled = pd.read_csv("source.csv").dropna()
    labeled.to_csv("labeled.csv", index=False)  # two words, which would otherwise need --positive-label
    one = ["--source", "labeled.csv", "--label-column", "label", "--no-rest", "--target", "t.csv", "--method", "tcpu"]
    assert estimated(capsys, *one)["classes"]["flu"]["raw"] == pytest.approx(found["flu"]["raw"], abs=1e-9)


def test_one_named_class_is_the_binary_problem(folder, capsys):
    rest = ["--unlabeled", "u.csv", "--target", "t.csv"]
    binary = estimated(capsys, "--positive", "flu.csv", *rest, "--source-prior", "0.2")
    for prior in ("0.2", "flu=0.2"):
        named = estimated(capsys, "--positive", "flu=flu.csv", *rest, "--source-prior", prior)["classes"]
        assert named["flu"]["raw"] == binary["raw"] and named["flu"]["interval"] == binary["interval"]
        assert named["rest"]["value"] == 1 - binary["value"]


def test_a_file_with_an_equals_sign_in_its_name_is_a_file(folder, capsys):
    (folder / "a=b.csv").write_bytes((folder / "flu.csv").read_bytes())
    rest = ["--unlabeled", "u.csv", "--target", "t.csv", "--source-prior", "0.2"]
    found = estimated(capsys, "--positive", "a=b.csv", *rest)
    assert found == estimated(capsys, "--positive", "flu.csv", *rest)
    named = estimated(capsys, "--positive", "x=a=b.csv", *rest)
    assert named["classes"]["x"]["raw"] == found["raw"]


def test_the_exit_code_can_follow_the_status_of_a_class(folder, capsys):
    few = pd.read_csv("flu.csv")[:15]
    few.to_csv("few.csv", index=False)
    words = ["--positive", "flu=few.csv", "--positive", "covid=covid.csv", *FILES[4:], *PRIORS, "--method", "tcpu"]
    assert main(["estimate", *words, "--fail-on", "care"]) == 3
    assert '1 of 3 results: "few positives"' in capsys.readouterr().err
    assert main(["estimate", *FILES, *PRIORS, "--method", "tcpu", "--fail-on", "care"]) == 0


def test_a_sheet_of_each_class(folder, sample, capsys):
    with pd.ExcelWriter("book.xlsx") as book:
        for name in ("flu", "covid"):
            pd.read_csv(f"{name}.csv").to_excel(book, sheet_name=name.upper(), index=False)
    words = ["--positive", "flu=book.xlsx", "--positive", "covid=book.xlsx", *FILES[4:], *PRIORS, "--method", "tcpu"]
    found = estimated(capsys, *words, "--sheet", "flu=FLU", "--sheet", "covid=COVID")
    expected = estimated(capsys, *FILES, *PRIORS, "--method", "tcpu")
    assert found["classes"]["flu"]["raw"] == pytest.approx(expected["classes"]["flu"]["raw"], abs=1e-9)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*FILES, "--source-prior", "0.2"], "--source-prior flu=0.1"),
        ([*FILES, "--source-prior", "strep=0.2"], "'strep'"),
        ([*FILES, *PRIORS, "--sheet", "flu=FLU"], "no file is an Excel workbook; remove it"),
        ([*FILES, "--source-prior", "flu=0.2", "--source-prior", "flu=0.3"], "given twice"),
        ([*FILES, "--source-prior", "flu=0.2", "--source-prior", "0.3"], "give every value a class"),
        ([*FILES, "--source-prior", "=0.2"], "no class before"),
        ([*FILES, "--source-prior", "flu=often"], "'often' cannot be read"),
        ([*FILES, "--source-prior-counts", "flu=7"], "the rows of each of flu, covid, rest"),
        ([*FILES, "--source-prior-counts", "flu=x"], "not a survey result"),
        ([*FILES, "--label-error", "flu=0.1", "--label-error", "flu:covid=0.1"], "NAME:OTHER for all"),
        ([*FILES, "--label-error", "flu:strep=0.1"], "flu:strep"),
        ([*FILES, "--label-error-counts", "flu=3"], "checked labels"),
        ([*FILES, "--positive", "t.csv"], "give every value a class"),
        ([*FILES, "--positive", "flu=u.csv"], "given twice"),
        (["--positive", "flu.csv", "--positive", "covid.csv", *FILES[4:]], "name the class"),
        (["--positive", "=flu.csv", *FILES[4:]], "NAME=FILE"),
        (["--positive", "flu=nowhere.csv", *FILES[2:]], "nowhere.csv) does not exist"),
        (["--positive", "rest=flu.csv", *FILES[2:]], "'rest'"),
        (["--positive", "flu=covid.csv", *FILES[2:]], "the same 200 rows"),
        ([*FILES, "--no-rest"], "--unlabeled"),
        ([*CLASSES, "--target", "t.csv"], "--unlabeled"),
        ([*CLASSES, "--target", "t.csv", "--no-rest", "--label-error", "0.1"], "--no-rest"),
        (["--positive", "flu.csv", *FILES[4:], "--no-rest"], "at least two labelled classes"),
        (["--positive", "flu.csv", *FILES[4:], "--source-prior", "flu=0.1"], "have none"),
        ([*FILES, "--method", "km2-ls"], "one labelled class"),
        ([*FILES, "--method", "tcpu", "--interval", "bootstrap"], "--interval"),
        ([*FILES, "--kernel", "laplace"], "--method tcpu"),
        ([*FILES, "--stream", "--group-column", "a"], "--group-column"),
        ([*FILES, "--stratify", "a"], "--stratify"),
        ([*FILES, "--audit-column", "x"], "no table has a column 'x'"),
        ([*FILES, "t2.csv", "--plot", "a.png"], "--plot"),
        ([*FILES, "--unlabeled-label", "x"], "--label-column"),
        (["--source", "named.csv", "--label-column", "label", "--target", "t.csv"], "--unlabeled-label"),
        (["--source", "named.csv", "--label-column", "label", "--target", "t.csv", "--unlabeled-label", "x"], "'x'"),
        (["--source", "named.csv", "--label-column", "label", "--target", "t.csv", "--unlabeled-label", "unknown",
          "--positive-label", "flu"], "cannot be combined"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_sentence(folder, capsys, words, message):
    try:
        code = main(["estimate", *words])
    except SystemExit as ended:
        code = ended.code
    printed = capsys.readouterr()
    assert code == 2 and printed.out == ""
    assert message in printed.err and printed.err.startswith("priorshift: ") and printed.err.count("\n") == 1


def test_a_score_model_is_for_one_class(folder, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["sketch", *CLASSES, "--unlabeled", "u.csv", "-o", "x.model"])
    message = capsys.readouterr().err
    assert ended.value.code == 2 and "--positive without a class" in message and message.count("\n") == 1


def test_a_diagnosis_in_the_shell_is_that_of_the_library(folder, sample, capsys):
    expected = ps.diagnose(sample.classes, sample.unlabeled, sample.target, source_prior=SOURCE, random_state=0)
    assert main(["diagnose", *FILES, *PRIORS, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"]["answer"] == expected.verdict.answer
    assert found["new_class_test"]["p_value"] == pytest.approx(expected.new_class_test.p_value, rel=1e-6)
    assert found["settings"]["source_prior"] == SOURCE
    one = ["--source", "source.csv", "--label-column", "label", "--target", "t.csv"]
    assert main(["diagnose", *one, *PRIORS, "--plot", "shares.svg"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("May I publish these shares?") and "Can the classes be distinguished?" in printed
    assert "covid" in (folder / "shares.svg").read_text(encoding="utf-8")


def test_several_targets_are_diagnosed_and_reported(folder, capsys):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    frame = pd.read_csv("t.csv").assign(month=np.resize(["jan", "feb"], len(pd.read_csv("t.csv"))))
    frame.to_csv("months.csv", index=False)
    words = [*CLASSES, "--unlabeled", "u.csv", "--target", "months.csv", "--by", "month", *PRIORS]
    assert main(["diagnose", *words, "--output", "verdicts.csv", "--fail-on", "no"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["month", "class", "publish?"] and lines[1].split()[1] == "flu"
    with open("verdicts.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6 and {row["month"] for row in rows} == {"jan", "feb"}
    assert main(["report", *words, "-o", "page.html"]) == 0
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "How common is each class in the targets?" in page and "2 targets of one source, 3 classes" in page
    assert "report: page.html" in capsys.readouterr().out


def test_rows_are_decided_by_the_posteriors_of_the_library(folder, sample, capsys):
    assert main(["adapt", *FILES, *PRIORS, "-o", "decided.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    table = pd.read_csv("decided.csv")
    samples = {"positive": sample.classes, "unlabeled": sample.unlabeled, "target": sample.target}
    problem = load_problem(**samples, options=InputOptions.from_arguments())
    shift = fit_source(problem, ps.MulticlassShift(SOURCE, random_state=0))
    posteriors = shift.posteriors(sample.target, shift.estimate(sample.target))
    columns = [f"posterior_{name}" for name in shift.classes_]
    assert list(table.columns) == [*"abcd", *columns, "decision"]
    np.testing.assert_allclose(table[columns], posteriors, atol=1e-4)
    assert (table["decision"] == shift.classes_[posteriors.argmax(axis=1)]).mean() > 0.999
    for k, name in enumerate(shift.classes_):
        assert found["classes"][name]["rows"] == pytest.approx(posteriors[:, k].sum(), rel=1e-3)
        assert found["classes"][name]["decided"] == (table["decision"] == name).sum()
    assert sum(one["rows"] for one in found["classes"].values()) == pytest.approx(len(table))


def test_a_dearer_class_is_decided_more_often_and_formulas_are_escaped(folder, capsys):
    words = ["--positive", "=flu=flu.csv", *FILES[2:], "--source-prior", "covid=0.3"]
    with pytest.raises(SystemExit):
        main(["adapt", *words, "-o", "x.csv"])  # a name cannot be empty
    capsys.readouterr()
    (folder / "@flu.csv").write_bytes((folder / "flu.csv").read_bytes())
    words = ["--positive", "@flu=@flu.csv", *FILES[2:], "--source-prior", "@flu=0.2", "--source-prior", "covid=0.3"]
    assert main(["adapt", *words, "-o", "plain.csv"]) == 0
    assert "look like formulas" in capsys.readouterr().err
    assert main(["adapt", *words, "--cost-ratio", "@flu=20", "--safe-csv", "-o", "dear.csv"]) == 0
    printed = capsys.readouterr()
    assert "formulas" not in printed.err and "expected rows" in printed.out
    plain, dear = pd.read_csv("plain.csv")["decision"], pd.read_csv("dear.csv")["decision"]
    assert (dear == "'@flu").sum() > 1.1 * (plain == "@flu").sum()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["adapt", *FILES, "--top", "5", "-o", "x.csv"], "--top"),
        (["adapt", *FILES, "--cost-ratio", "5", "-o", "x.csv"], "--cost-ratio flu=20"),
        (["adapt", *FILES, "--cost-ratio", "strep=5", "-o", "x.csv"], "--cost-ratio has 'strep'"),
        (["adapt", *FILES, "--cost-ratio", "flu=0", "-o", "x.csv"], "positive number"),
        (["adapt", *FILES, "--classifier", "logistic", "-o", "x.csv"], "--classifier"),
        (["adapt", *FILES, "--target-prior", "0.5", "-o", "x.csv"], "--target-prior"),
        (["adapt", *FILES, "--method", "tcpu", "-o", "x.csv"], "posteriors"),
        (["adapt", "--positive", "flu=flu.csv", *FILES[4:], "-o", "x.csv"], "at least two"),
        (["adapt", "--positive", "flu.csv", *FILES[4:], "--cost-ratio", "flu=5", "-o", "x.csv"], "at least two"),
        (["diagnose", *FILES, "--threshold", "0.2"], "--threshold"),
        (["diagnose", "--positive", "flu.csv", *FILES[4:], "--source-prior", "flu=0.1"], "have none"),
        (["report", *FILES, "--source-prior", "0.2", "-o", "x.html"], "--source-prior flu=0.1"),
    ],
)
def test_wrong_use_of_other_commands_is_one_sentence(folder, capsys, words, message):
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and message in printed.err and printed.err.count("\n") == 1


def test_an_abbreviation_means_the_option_that_others_extend(folder, capsys):
    words = ["--positive", "flu.csv", "--unlab", "u.csv", "--target", "t.csv", "--source-prior", "0.2"]
    whole = ["--positive", "flu.csv", *FILES[4:], "--source-prior", "0.2"]
    assert estimated(capsys, *words) == estimated(capsys, *whole)
    assert np.isfinite(estimated(capsys, *whole)["raw"])


def test_the_shares_are_drawn(folder, capsys):
    assert main(["estimate", *FILES, *PRIORS, "--plot", "shares.svg"]) == 0
    assert "covid" in (folder / "shares.svg").read_text(encoding="utf-8")


def numbered(sample, codes):
    """Write a source whose labels are numbers, as a data frame with empty cells writes them (1.0)."""
    frames = [pd.DataFrame(X, columns=list("abcd")) for X in (*sample.classes.values(), sample.unlabeled)]
    labels = np.repeat(np.array(codes, dtype=object), [len(frame) for frame in frames])
    pd.concat(frames).assign(label=labels).to_csv("numbered.csv", index=False)
    return ["--source", "numbered.csv", "--label-column", "label", "--target", "t.csv", "--method", "tcpu"]


def test_whole_numbers_with_decimals_are_names_of_classes(folder, sample, capsys):
    words = numbered(sample, [1.0, 2.0, None])
    found = estimated(capsys, *words, "--source-prior", "1=0.2", "--source-prior", "2=0.3")
    assert list(found["classes"]) == ["1", "2", "rest"]


def test_two_numbers_that_may_mean_unlabelled_are_refused(folder, sample, capsys):
    words = numbered(sample, [0, 1, -1])
    assert main(["estimate", *words]) == 2
    assert "0 and -1" in capsys.readouterr().err
    found = estimated(capsys, *words, "--unlabeled-label", "-1", "--source-prior", "0=0.2", "--source-prior", "1=0.3")
    assert list(found["classes"]) == ["0", "1", "rest"]


@pytest.mark.parametrize("label", ["1", "flu"])
def test_one_label_among_empty_cells_marks_the_positives(folder, sample, capsys, label):
    pd.read_csv("source.csv").query("label != 'covid'").replace({"label": {"flu": label}}).to_csv(
        "one.csv", index=False
    )
    words = ["--label-column", "label", "--target", "t.csv", "--source-prior", "0.2", "--method", "tcpu"]
    found = estimated(capsys, "--source", "one.csv", *words)
    expected = estimated(
        capsys, "--positive", "flu.csv", "--unlabeled", "u.csv", "--target", "t.csv", "--source-prior", "0.2",
        "--method", "tcpu",
    )  # fmt: skip
    assert found["raw"] == pytest.approx(expected["raw"])


@pytest.mark.parametrize("label", ["FALSE", "-1", "no"])
def test_one_label_that_does_not_mean_positive_is_refused(folder, capsys, label):
    frame = pd.read_csv("source.csv").query("label != 'covid'").replace({"label": {"flu": label}})
    frame.to_csv("one.csv", index=False)
    assert main(["estimate", "--source", "one.csv", "--label-column", "label", "--target", "t.csv"]) == 2
    assert "expected" in capsys.readouterr().err
