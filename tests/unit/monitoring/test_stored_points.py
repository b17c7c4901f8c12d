"""Points of a series as its state stores them."""

import copy
import json
from dataclasses import replace

import pytest

from priorshift import Interval
from priorshift.monitoring import Alarm, MonitorPoint
from priorshift.monitoring.stored_points import StoredPoints, round_number

LIMITS = {"above": 40.0, "change": 1000.0, "assumption": 1000.0}
BROKEN = Alarm("assumption", "The rows no longer follow label shift.", "b")
CHANGED = Alarm("change", "The share has changed.", "b", 0.1, Interval(0.05, 0.15, 0.95, "difference"))


def points():
    """Points of each kind: of the reference, empty, with evidence, with alarms, and without an estimate."""
    intervals = {"interval": Interval(0.1, 0.3, 0.9, "witness"), "all_time": Interval(0.0, 0.5, 0.9, "all time")}
    moments = {"mean": 0.12, "variance": 0.003, "series": "north"}
    evidence = {"evidence": {"above": 0.0, "change": 2.5, "assumption": 1e299}, "limits": dict(LIMITS)}
    return [
        MonitorPoint("a", 10, 0.2, **intervals, **moments, status="reference", digest="00", time="noon"),
        MonitorPoint("nothing", 0, status="empty", series="north", alarms=(BROKEN,)),
        MonitorPoint("b", 10, 0.2, **intervals, **moments, **evidence, alarms=(BROKEN, CHANGED), digest="01"),
        MonitorPoint("c", 1, None, None, intervals["all_time"], **moments, **evidence, status="no estimate", digest="02"),
    ]  # fmt: skip


def store(many, series="north", confidence=0.9):
    found = StoredPoints(series, confidence, LIMITS)
    for point in many:
        found.append(point)
    return found


def stored():
    return json.loads(json.dumps(store(points()).to_state(), allow_nan=False))


def read(columns, series="north", confidence=0.9):
    found = StoredPoints(series, confidence, LIMITS)
    found.set_state(columns)
    return found


@pytest.mark.parametrize("count", range(5))
def test_points_are_the_same_after_they_were_stored(count):
    found = store(points()[:count])
    again = read(json.loads(json.dumps(found.to_state(), allow_nan=False)))
    assert list(found) == list(again) == again[:] == points()[:count]


def test_points_are_replaced_removed_and_found():
    found = store(points())
    found[1] = replace(points()[2], name="new", alarms=())
    assert found[1] == replace(points()[2], name="new", alarms=()) and found[2] == points()[2]
    found.pop()
    found.append(points()[0])
    assert [point.name for point in found] == ["a", "new", "b", "a"] and found[-1] == points()[0]
    assert found.number("b") == 2 and found.number("nothing") is None and found.same_rows("01").name == "new"
    with pytest.raises(IndexError):
        found[4]


def test_an_alarm_that_many_points_carry_is_stored_once():
    many = [MonitorPoint(str(k), 0, status="empty", alarms=(BROKEN,)) for k in range(1000)]
    found = store(many, "", 0.95)
    assert len(json.dumps(found.to_state())) < 150 * len(many)
    assert list(read(found.to_state(), "", 0.95)) == many


def test_stored_numbers_have_seven_digits():
    assert [round_number(x) for x in (0.123456789, 1e-300 / 3, 999.9999999, 0.0)] == [0.1234568, 3.333333e-301, 1000, 0]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("name", 1),
        ("rows", "10"),
        ("rows", True),
        ("value", "0.2"),
        ("low", float("nan")),
        ("time", 1),
        ("digest", None),
    ],
)
def test_values_of_a_wrong_type_are_refused(column, value):
    columns = stored()
    columns[column][2] = value
    with pytest.raises(ValueError):
        read(columns)


def test_columns_that_are_missing_shorter_or_unknown_are_refused():
    changes = [lambda c: c.pop("mean"), lambda c: c["mean"].pop(), lambda c: c.update(more=[]),
               lambda c: c["evidence"].update(sideways=[1.0] * 4)]  # fmt: skip
    for change in changes:
        columns = copy.deepcopy(stored())
        change(columns)
        with pytest.raises(ValueError):
            read(columns)
