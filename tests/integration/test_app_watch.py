"""The app's "Add this month's file": from the tables to a model, and from month to month by the state."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("jinja2")

from test_app import HOST, KEYS, LIMITS, OURS, Client, Direct

import priorshift as ps
from priorshift.app.access import AccessMiddleware
from priorshift.app.routes import PUBLIC, Site
from priorshift.app.watching import WatchSettings, check_files
from priorshift.errors import InputError

FOLDER = KEYS.folder


def table(share, count, seed, move=0.0):
    rng = np.random.default_rng(seed)
    positive = rng.random(count) < share
    rows = rng.normal(size=(count, 3)) + 1.5 * positive[:, None] + [0, 0, move]
    return pd.DataFrame(rows, columns=["age", "pulse", "weight"])


def csv(frame):
    return frame.to_csv(index=False).encode()


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp("app"), LIMITS)
    yield Client(Direct(AccessMiddleware(site.application(), KEYS, [HOST, "localhost:8000"], public=PUBLIC)))
    site.tasks.close()


def bring(client, contents):
    ids = {}
    for role, (name, content) in contents.items():
        path = f"/{FOLDER}/files?role={role}&name={name}&for=watch"
        answer = client.http.request("PUT", path, content=content, headers=OURS)
        assert answer.status_code == 201 and "task" not in answer.json()
        ids[role] = answer.json()["id"]
    return ids


@pytest.fixture(scope="module")
def first(client):
    """The first month, with which the model is fitted."""
    source = {"positive": ("P.csv", csv(table(1.0, 200, 0))), "unlabeled": ("U.csv", csv(table(0.2, 1000, 1)))}
    files = bring(client, {**source, "target": ("2026-10.csv", csv(table(0.2, 400, 10)))})
    story = client.run(files, {"prior": "20", "level": "50"}, "watch")
    assert story["state"] == "done", story
    return story


@pytest.fixture(scope="module")
def saved(client, first):
    return {name: client.result(first, name).content for name in ("model.priorshift", "state.json")}


def add(client, saved, frame, file="2026-11.csv", **settings):
    contents = {"model": ("model.priorshift", saved["model.priorshift"]), "target": (file, csv(frame))}
    if "state.json" in saved:
        contents["state"] = ("state.json", saved["state.json"])
    return client.run(bring(client, contents), settings, "watch")


def test_the_first_month_gives_a_model_a_state_and_a_page(client, first, saved, tmp_path):
    answer = first["answer"]
    assert answer["tone"] == "yes" and answer["lines"][0].startswith("2026-10: ") and answer["batches"] == 1
    assert answer["files"] == ["report.html", "state.json", "model.priorshift"]
    fit, add_batch = answer["command"].splitlines()
    assert "--source-prior 0.2" in fit and "--level 0.5" in add_batch and "--name 2026-10" in add_batch
    page = client.result(first, "report").text
    assert "2026-10" in page and "<script" not in page
    for name, content in saved.items():
        (tmp_path / name).write_bytes(content)
    monitor = ps.Monitor.load(tmp_path / "model.priorshift", state=tmp_path / "state.json")
    own = ps.Monitor(0.2, level=0.5).fit_samples(table(1.0, 200, 0), table(0.2, 1000, 1))
    expected = own.update(pd.read_csv(pd.io.common.BytesIO(csv(table(0.2, 400, 10)))), name="2026-10")
    assert monitor.points[0].value == pytest.approx(expected.value, abs=0.005) and monitor.level == 0.5


def test_the_next_month_goes_on_and_a_change_is_an_alarm(client, saved):
    story = add(client, saved, table(0.75, 400, 11), file="november.csv")
    answer = story["answer"]
    assert answer["tone"] == "care" and answer["batches"] == 2 and "model.priorshift" not in answer["files"]
    assert any("has changed since 'november'" in line for line in answer["lines"])
    state = json.loads(client.result(story, "state.json").text)
    assert state["format"] == "priorshift monitor state"
    drifted = add(client, saved, table(0.2, 400, 12, move=3.0))["answer"]
    assert drifted["tone"] == "no" and drifted["words"] == "Do not trust the number"


def test_a_month_is_not_counted_twice_and_can_be_corrected(client, saved):
    again = add(client, saved, table(0.2, 400, 10), file="2026-10.csv")["answer"]
    assert again["batches"] == 1 and "counted before" in again["lines"][0]
    refused = add(client, saved, table(0.2, 400, 13), name="2026-10")
    assert refused["state"] == "failed" and "corrects the one of the same name" in refused["message"]
    corrected = add(client, saved, table(0.2, 400, 13), name="2026-10", replace=True)["answer"]
    assert corrected["batches"] == 1 and corrected["lines"] != again["lines"] and "--replace" in corrected["command"]


def test_without_the_state_a_new_series_starts(client, saved):
    answer = add(client, {"model.priorshift": saved["model.priorshift"]}, table(0.2, 400, 14), level="30")["answer"]
    assert answer["batches"] == 1 and "--level 0.3" in answer["command"]


@pytest.mark.parametrize(("files", "settings", "keyword"), [
    ({"model": b"nothing"}, {}, "model.priorshift of last time"),
    ({"state": b"{}"}, {}, "state.json of last time"),
    ({"target": b"a,b\n1,2\n"}, {}, "november.csv"),
    ({}, {"prior": "20"}, "part of the model"),
    ({}, {"level": "30"}, "began with a level of 50%"),
])  # fmt: skip
def test_what_cannot_be_used_is_said_in_words_of_the_page(client, saved, files, settings, keyword):
    contents = {"model": saved["model.priorshift"], "state": saved["state.json"], "target": csv(table(0.2, 400, 15))}
    names = {"model": "model.priorshift", "state": "state.json", "target": "november.csv"}
    contents |= files
    ids = bring(client, {role: (names[role], content) for role, content in contents.items()})
    story = client.run(ids, settings, "watch")
    assert story["state"] == "failed" and keyword in story["message"], story
    assert "/" not in story["message"] and "--" not in story["message"]


@pytest.mark.parametrize(
    "settings", [{"name": 3}, {"name": "a\nb"}, {"level": "x"}, {"replace": "yes"}, {"other": 1}, 3]
)
def test_settings_that_cannot_be_meant_are_refused(settings):
    with pytest.raises(InputError):
        WatchSettings.from_json(settings)


@pytest.mark.parametrize("roles", [set(), {"target"}, {"model"}, {"positive", "unlabeled", "state", "target"}])
def test_a_choice_of_files_without_a_model_or_a_batch_is_refused(client, roles):
    with pytest.raises(InputError, match="this month"):
        check_files(roles)
    assert client.begin(dict.fromkeys(roles, "0"), {}, "watch").status_code == 422
