"""States with a right checksum and wrong contents, and states without one, are refused in a sentence."""

import copy
import hashlib
import json

import numpy as np
import pandas as pd
import pytest

import priorshift as ps
from priorshift.errors import InputError
from priorshift.monitoring.rules import ChangeRule


def table(share, count, seed):
    rng = np.random.default_rng(seed)
    positive = rng.random(count) < share
    return pd.DataFrame(rng.normal(size=(count, 3)) + 1.5 * positive[:, None], columns=list("abc"))


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A model, and the content of a state with an alarm."""
    folder = tmp_path_factory.mktemp("stored")
    monitor = ps.Monitor(0.2, level=0.5, run_length=50).fit_samples(table(1.0, 100, 0), table(0.2, 400, 1))
    monitor.save(folder / "fitted")
    for k, share in enumerate((0.2, 0.2, 0.9)):
        monitor.update(table(share, 200, 2 + k), name=f"day {k}")
    assert monitor.points[-1].alarms
    monitor.save_state(folder / "state.json")
    return folder / "fitted", json.loads((folder / "state.json").read_text())["state"]


def seal(state, replaced="", by=""):
    """Return the text of a state with its checksum, after one replacement."""
    text = json.dumps(state, separators=(",", ":")).replace(replaced, by, 1)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{{\n"format":"priorshift monitor state","version":1,"sha256":"{digest}",\n"state":{text}\n}}\n'


def test_an_unchanged_state_is_read(stored, tmp_path):
    (tmp_path / "state.json").write_text(seal(stored[1]))
    assert len(ps.Monitor.load(stored[0], tmp_path / "state.json").points) == 3


def add_start(series, batch, before):
    """Replace the starts of the change rule by one."""
    rule = series["rules"]["change"]
    changes = len(ChangeRule(np.zeros(1), np.zeros(2), np.array(rule["shape"])).shifts)
    rule.update(batch=[batch], before=[before], counts=[[0] * len(rule["pool"])], log_wealth=[[0.0] * changes])


def test_a_possible_start_is_read(stored, tmp_path):
    state = copy.deepcopy(stored[1])
    add_start(state["series"][""], 0, 1.0)
    (tmp_path / "state.json").write_text(seal(state))
    assert len(ps.Monitor.load(stored[0], tmp_path / "state.json").points) == 3


CHANGES = {
    "a share that is a huge integer": lambda s: s["points"]["low"].__setitem__(0, 10**20),
    "a share above 1": lambda s: s["points"]["value"].__setitem__(0, 1e308),
    "an integer that no float can hold": lambda s: s["points"]["mean"].__setitem__(0, 10**400),
    "too many alarms of a point": lambda s: s["points"]["alarms"].update(points=[0] * 9, numbers=[0] * 9),
    "an alarm of a point before the first": lambda s: s["points"]["alarms"].update(points=[-1], numbers=[0]),
    "an alarm with a text before the first": lambda s: s["points"]["alarms"].update(points=[0], numbers=[-1]),
    "previous": lambda s: s.update(previous=0),
    "broken_since": lambda s: s["rules"].update(broken_since=[]),
    "broken_in beyond the features": lambda s: s["rules"].update(broken_in=99),
    "broken_in before the first feature": lambda s: s["rules"].update(broken_in=-1),
    "infinite shape": lambda s: s["rules"]["change"]["shape"].__setitem__(0, float("inf")),
    "rule of an alarm": lambda s: s["points"]["alarms"]["texts"][0].update(rule="zz"),
    "message of an alarm": lambda s: s["points"]["alarms"]["texts"][0].update(message=5),
    "number of an alarm": lambda s: s["points"]["alarms"]["texts"][0].update(size="x"),
    "name": lambda s: s["points"]["name"].__setitem__(0, "\ud800"),
    "large value": lambda s: s["points"]["value"].__setitem__(0, 10**400),
    "half an interval": lambda s: s["points"]["low"].__setitem__(0, None),
    "half an all-time interval": lambda s: s["points"]["all_time_low"].__setitem__(0, None),
    "rows": lambda s: s["points"]["rows"].__setitem__(0, 10**400),
    "batches": lambda s: s["rules"]["levels"]["above"].update(batches=10**400),
    "negative pool": lambda s: s["rules"]["change"]["pool"].__setitem__(0, -1),
    "shape": lambda s: s["rules"]["change"].update(shape=[0.0]),
    "edges": lambda s: s["rules"]["assumption"].update(edges=[[0.0]]),
    "not a number": lambda s: s["rules"]["assumption"]["log_wealth"].__setitem__(0, float("nan")),
    "start before the first unit": lambda s: add_start(s, 0, -1.0),
    "start after the last unit": lambda s: add_start(s, 0, 1e12),
    "start beyond the batches": lambda s: add_start(s, 99, 1.0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_wrong_contents(stored, tmp_path, name):
    state = copy.deepcopy(stored[1])
    CHANGES[name](state["series"][""])
    (tmp_path / "state.json").write_text(seal(state))
    with pytest.raises(InputError, match="damaged"):
        ps.Monitor.load(stored[0], tmp_path / "state.json")


def test_a_number_beyond_all_others_is_damage(stored, tmp_path):
    """JSON has no infinity, but 1e999 is read as one."""
    state = copy.deepcopy(stored[1])
    state["series"][""]["rules"]["change"]["shape"][0] = 123456.789
    (tmp_path / "state.json").write_text(seal(state, "123456.789", "1e999"))
    with pytest.raises(InputError, match="damaged"):
        ps.Monitor.load(stored[0], tmp_path / "state.json")


@pytest.mark.parametrize("setting", [{"confidence": 1.0}, {"confidence": 0.0}, {"alpha": 1.0}, {"run_length": 1e300}])
def test_wrong_settings(stored, tmp_path, setting):
    state = copy.deepcopy(stored[1])
    state["settings"] |= setting
    (tmp_path / "state.json").write_text(seal(state))
    with pytest.raises(InputError):
        ps.Monitor.load(stored[0], tmp_path / "state.json")


@pytest.mark.parametrize(
    "text",
    [
        "", "{", '{"format":"priorshift monitor state","version":1,"sha256":"x"\n}\n', "[" * 10_000,
        '{\n"format":"priorshift monitor state","version":1,"sha256":"x",\n"state":{}\n}\n',
    ],
)  # fmt: skip
def test_what_is_no_state(stored, tmp_path, text):
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(InputError, match=r"damaged|not the state"):
        ps.Monitor.load(stored[0], tmp_path / "state.json")


def test_a_name_that_is_not_utf8_is_escaped(stored, tmp_path):
    monitor = ps.Monitor.load(stored[0])
    point = monitor.update(table(0.2, 50, 9), name="bad\udcff")
    assert point.name == "bad\\udcff"
    monitor.save_state(tmp_path / "state.json")
    assert ps.Monitor.load(stored[0], tmp_path / "state.json").points == [point]


def test_a_negative_seed_is_refused():
    with pytest.raises(InputError, match="random_state"):
        ps.Monitor(0.2, random_state=-1).fit_samples(table(1.0, 50, 0), table(0.2, 100, 1))
