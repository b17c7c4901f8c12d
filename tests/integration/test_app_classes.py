"""The app with several classes: a file of each, their shares, the answer and its files, and what is refused."""

import csv
import io
import json
import shlex

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("jinja2")

import pandas as pd
from test_app import HOST, KEYS, LIMITS, Client, Direct

import priorshift as ps
from priorshift.app.access import AccessMiddleware
from priorshift.app.fields import show_field
from priorshift.app.routes import PUBLIC, Site
from priorshift.app.settings import Settings
from priorshift.cli import main
from priorshift.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
SHARES = {"flu": 0.2, "covid": 0.1}
CLASSES = {"positive": {"name": " flu ", "share": "20"}, "positive-2": {"name": "covid", "share": 0.1}}
FILES = {"positive": "flu.csv", "positive-2": "covid.csv", "unlabeled": "old.csv", "target": "new.csv"}


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian_classes(SHARES, {"flu": 0.1, "covid": 0.4}, dimension=3, random_state=1)


@pytest.fixture(scope="module")
def contents(sample):
    """The text of each file by role; the new population has months."""
    rows = {"positive": sample.classes["flu"], "positive-2": sample.classes["covid"], "unlabeled": sample.unlabeled}
    frames = {role: pd.DataFrame(X, columns=["age", "dose", "score"]) for role, X in rows.items()}
    target = pd.DataFrame(sample.target, columns=["age", "dose", "score"])
    frames["target"] = target.assign(month=np.resize(["jan", "feb"], len(target)))
    return {role: frame.to_csv(index=False).encode() for role, frame in frames.items()}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp("app"), LIMITS)
    app = AccessMiddleware(site.application(), KEYS, [HOST], public=PUBLIC)
    yield Client(Direct(app))
    site.tasks.close()


@pytest.fixture(scope="module")
def files(client, contents):
    return client.bring(contents, FILES)


@pytest.fixture(scope="module")
def story(client, files):
    story = client.run(files, {"classes": CLASSES, "rest": True, "drop": ["month"]})
    assert story["state"] == "done", story
    return story


def test_the_answer_is_that_of_the_library(client, story, sample):
    answer, [verdict] = story["answer"], story["answer"]["verdicts"]
    expected = ps.diagnose(sample.classes, sample.unlabeled, sample.target, source_prior=SHARES, random_state=0)
    assert verdict["question"] == "May I publish these shares?" and answer["classes"] == ["flu", "covid"]
    assert [one["class"] for one in verdict["shares"]] == ["flu", "covid", "rest"]
    for one in verdict["shares"]:
        estimate = expected.estimate[one["class"]]
        assert abs(float(one["share"].rstrip("%")) - 100 * estimate.value) <= 0.5
    assert [one["source"] for one in verdict["shares"]] == ["20%", "10%", "70%"]
    assert any("share of flu in the old population: 20% = 0.2" in words for words in answer["entered"])
    result = client.result(story, "result.json").json()
    assert result["verdict"]["answer"] == expected.verdict.answer
    assert result["estimate"]["classes"]["flu"]["raw"] == pytest.approx(expected.estimate["flu"].raw, abs=1e-6)
    page = client.result(story, "report").text
    assert "How common is each class in the target?" in page and "priorshift report --positive flu=flu.csv" in page


def test_every_row_has_the_posterior_of_each_class_and_a_decision(client, story, contents):
    rows = list(csv.DictReader(io.StringIO(client.result(story, "decisions.csv").text)))
    columns = ["posterior_flu", "posterior_covid", "posterior_rest"]
    assert list(rows[0])[-4:] == [*columns, "decision"] and len(rows) == 1000
    for row in rows[::50]:
        posteriors = [float(row[column]) for column in columns]
        assert sum(posteriors) == pytest.approx(1, abs=1e-4)
        assert row["decision"] == ["flu", "covid", "rest"][int(np.argmax(posteriors))]
    decisions = story["answer"]["decisions"]
    assert [one["class"] for one in decisions] == ["flu", "covid", "rest"] and story["answer"]["undecided"] is None
    assert sum(one["rows"] for one in decisions) == pytest.approx(1000)
    assert sum(one["decided"] for one in decisions) == 1000


def test_the_commands_on_the_page_give_the_same(client, story, contents, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for role, name in FILES.items():
        (tmp_path / name).write_bytes(contents[role])
    report, adapt = story["answer"]["command"].split("\n")
    assert main([*shlex.split(report)[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["estimate"] == client.result(story, "result.json").json()["estimate"]
    assert main(shlex.split(adapt)[1:]) == 0
    assert (tmp_path / "decisions.csv").read_text() == client.result(story, "decisions.csv").text.replace("\r\n", "\n")


def test_several_new_populations_and_unknown_shares(client, files):
    classes = {role: one | {"share": ""} for role, one in CLASSES.items()}
    story = client.run(files, {"classes": classes, "rest": True, "by": "month"})
    assert story["state"] == "done", story
    answer = story["answer"]
    assert [verdict["target"] for verdict in answer["verdicts"]] == ["jan", "feb"]
    assert answer["verdicts"][0]["shares"][0]["source"].endswith("(estimated)")
    assert len(answer["decisions"]) == 6 and {one["target"] for one in answer["decisions"]} == {"jan", "feb"}
    assert "2 targets of one source, 3 classes" in client.result(story, "report").text


def test_without_a_rest_the_old_population_is_not_needed(client, files):
    classes = {role: one | {"share": ""} for role, one in CLASSES.items()}
    needed = {role: key for role, key in files.items() if role != "unlabeled"}
    settings = {"classes": classes, "rest": False, "drop": ["month"]}
    story = client.run(needed, settings)
    assert story["state"] == "done", story
    assert [one["class"] for one in story["answer"]["verdicts"][0]["shares"]] == ["flu", "covid"]
    assert "--no-rest" in story["answer"]["command"] and "--unlabeled" not in story["answer"]["command"]
    answer = client.begin(files, settings)
    assert answer.status_code == 400 and answer.json()["message"] == "3 files are needed. Choose all of them."
    columns = client.run(needed, settings, kind="columns")["answer"]["columns"]
    assert [column["name"] for column in columns if column["use"] == "feature"] == ["age", "dose", "score"]


def test_messages_name_files_and_classes_as_the_user_does(client, files, contents):
    again = client.bring({"positive-2": contents["positive"]}, {"positive-2": "copy.csv"})
    settings = {"classes": CLASSES, "drop": ["month"]}
    story = client.run(files | again, settings)
    assert story["state"] == "failed" and "are the same 200 rows; choose different files" in story["message"]
    other = client.bring({"positive-2": b"age,weight\n1,2\n3,4\n"}, {"positive-2": "other.csv"})
    message = client.run(files | other, settings, kind="columns")["message"]
    assert "other.csv (class covid)" in message and "path" not in message and "/" not in message
    much = {role: one | {"share": "60"} for role, one in CLASSES.items()}
    message = client.run(files, {"classes": much, "drop": ["month"]})["message"]
    assert "shares of the classes in the old population add up to 1.2" in message and "source_prior" not in message


@pytest.mark.parametrize(
    ("settings", "field", "message"),
    [
        ({"classes": {**CLASSES, "positive-2": {"name": " "}}}, "positive-2-name", "needs a name"),
        ({"classes": {**CLASSES, "positive-2": {"name": "rest"}}}, "positive-2-name", "all other rows"),
        ({"classes": {**CLASSES, "positive-2": {"name": "flu"}}}, "positive-2-name", "another class"),
        ({"classes": {**CLASSES, "positive": {"name": "a", "share": "120"}}}, "positive-share", "share of a class"),
        ({"classes": {**CLASSES, "positive": {"name": "a", "share": "9-3"}}}, "positive-share", "range"),
        ({"classes": {"positive": {"name": "flu"}}}, None, "reload"),
        ({"classes": {**CLASSES, "target": {"name": "x"}}}, None, "reload"),
        ({"classes": {**CLASSES, "positive-21": {"name": "x"}}}, None, "reload"),
        ({"classes": CLASSES, "rest": "no"}, None, "reload"),
        ({"rest": False}, None, "several classes"),
        ({"classes": CLASSES, "rest": False}, None, "not used"),
        ({"classes": CLASSES, "threshold": "10"}, None, "single class"),
        ({"classes": CLASSES, "prior": {"value": "10"}}, None, "single class"),
        ({"classes": CLASSES, "rule": {"top": "10"}}, None, "single class"),
        ({"classes": CLASSES, "audit": "seen"}, None, "single class"),
    ],
)
def test_wrong_settings_are_refused_at_their_field(settings, field, message):
    with pytest.raises(InputError, match=message) as refused:
        Settings.from_json(settings)
    assert getattr(refused.value, "field", None) == field


def test_the_share_of_a_class_is_shown_as_it_is_read():
    assert show_field("positive-2-share", "4,5") == "4.5% = 0.045"
    assert show_field("positive-share", "10-30") == "10% to 30% = 0.1 to 0.3"
    assert show_field("positive-share", "lots").startswith("The share of a class in the old population must be")
    assert Settings.from_json({"classes": CLASSES}).classes["positive"].share == 0.2


def test_a_file_of_an_unknown_role_is_refused(client):
    for role in ("positive-1", "positive-99", "positive-2x", "rest"):
        assert client.put(role, b"a\n1\n").status_code == 400
