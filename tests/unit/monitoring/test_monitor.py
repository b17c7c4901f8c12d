"""Monitor: batches over time, and the state that survives."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import priorshift as ps
from priorshift.errors import InputError
from priorshift.monitoring.state_file import locked, read_state, write_state

PRIOR = 0.2
COLUMNS = ["age", "pulse", "weight"]


def table(share, count, seed, **columns):
    rng = np.random.default_rng(seed)
    positive = rng.random(count) < share
    frame = pd.DataFrame(rng.normal(size=(count, 3)) + 1.5 * positive[:, None], columns=COLUMNS)
    return frame.assign(**columns), positive


@pytest.fixture(scope="module")
def source():
    return table(1.0, 200, 0)[0], table(PRIOR, 1000, 1)[0]


@pytest.fixture(scope="module")
def saved(source, tmp_path_factory):
    path = tmp_path_factory.mktemp("monitor") / "fitted"
    ps.Monitor(PRIOR, level=0.5, run_length=200).fit_samples(*source).save(path)
    return path


@pytest.fixture
def monitor(saved):
    return ps.Monitor.load(saved)


def test_a_quiet_series_has_estimates_near_the_truth_and_no_alarm(monitor):
    points = [monitor.update(table(PRIOR, 500, 10 + k)[0], name=f"day {k}") for k in range(4)]
    for point in points:
        assert abs(point.value - PRIOR) < 0.1
        assert point.all_time.low < point.interval.low < PRIOR < point.interval.high < point.all_time.high
        assert point.alarms == () and set(point.evidence) == set(point.limits) == {"above", "change", "assumption"}
    assert monitor.points == points


def test_a_loaded_model_names_what_changed_as_a_fitted_one(source, monitor):
    assert monitor.model_.feature_names == ps.Monitor(PRIOR).fit_samples(*source).model_.feature_names


def test_sorted_rows_raise_no_alarm(monitor):
    for k in range(6):
        point = monitor.update(table(PRIOR, 1000, 50 + k)[0].sort_values("age"), name=f"day {k}")
        assert point.alarms == ()


def test_names_of_batches_move_no_evidence(saved):
    one, other = ps.Monitor.load(saved), ps.Monitor.load(saved)
    for k in range(3):
        rows = table(0.3, 200, 70 + k)[0]
        assert one.update(rows, name=f"day {k}").evidence == other.update(rows, name=f"2026-11-0{k}").evidence


def test_a_change_is_reported_with_its_size_and_start(monitor):
    for k in range(3):
        monitor.update(table(PRIOR, 500, 20 + k)[0], name=f"day {k}")
    point = monitor.update(table(0.7, 500, 30)[0], name="day 3")
    alarms = {alarm.rule: alarm for alarm in point.alarms}
    assert set(alarms) == {"change", "level"}
    assert alarms["change"].since == "day 3" and 0.5 in alarms["change"].interval
    assert alarms["change"].size == pytest.approx(0.5, abs=0.1)
    assert "50%" in alarms["level"].message and "ALARM" in str(point)
    difference, interval = monitor.difference("day 0", "day 3")
    assert 0.5 in interval and difference == pytest.approx(0.5, abs=0.12)
    back = monitor.update(table(PRIOR, 500, 31)[0], name="day 4")  # compared with the new share
    assert back.alarms[0].rule == "change" and back.alarms[0].size < -0.3


def test_a_drift_breaks_the_assumption_until_it_is_acknowledged(monitor):
    frame = table(PRIOR, 800, 40)[0]
    frame["pulse"] = 3 * frame["pulse"]
    point = monitor.update(frame, name="drift")
    assert point.broke_assumption
    assert monitor.update(table(PRIOR, 100, 41)[0], name="later").broke_assumption
    assert monitor.update(frame.iloc[:0], name="nothing").broke_assumption
    monitor.acknowledge()
    assert not monitor.update(table(PRIOR, 100, 42)[0], name="after").broke_assumption


def test_a_repeated_batch_is_ignored_and_another_one_of_its_name_is_refused(monitor):
    frame = table(PRIOR, 300, 50)[0]
    first = monitor.update(frame, name="monday")
    state = monitor._to_state()
    again = monitor.update(frame[COLUMNS[::-1]], name="monday")  # in another order of columns
    assert again.status == "repeated" and again.value == first.value
    assert monitor._to_state() == state
    with pytest.raises(InputError, match="counted before"):
        monitor.update(frame.iloc[1:], name="monday")
    assert monitor._to_state() == state


def test_the_last_batch_can_be_replaced_as_if_it_had_never_been(monitor, saved):
    first, right, wrong = table(PRIOR, 300, 50)[0], table(PRIOR, 300, 51)[0], table(0.9, 300, 52)[0]
    monitor.update(first, name="monday")
    monitor.update(wrong, name="tuesday")
    replaced = monitor.update(right, name="tuesday", replace=True)
    other = ps.Monitor.load(saved)
    other.update(first, name="monday")
    assert other.update(right, name="tuesday") == replaced
    assert len(monitor.points) == 2


def test_the_same_rows_under_another_name_cause_a_warning(monitor):
    frame = table(PRIOR, 300, 56)[0]
    monitor.update(frame, name="monday")
    with pytest.warns(ps.errors.DuplicateRowsWarning, match="'monday'"):
        assert monitor.update(frame, name="tuesday").status == "ok"


def test_all_time_intervals_contain_those_of_the_batch_even_without_label_shift(monitor):
    frame = table(PRIOR, 300, 57)[0]
    frame["age"] = 100 * frame["age"]
    point = monitor.update(frame, name="cents")
    assert point.all_time.low <= point.interval.low and point.interval.high <= point.all_time.high
    assert "column 'age'" in str(point) or "the scores" in str(point)


def test_an_earlier_batch_that_is_replaced_changes_its_estimate_alone(monitor):
    right, wrong = table(PRIOR, 300, 53)[0], table(0.9, 300, 54)[0]
    monitor.update(wrong, name="monday")
    monitor.update(right, name="tuesday")
    evidence = monitor._series[""].change.evidence
    with pytest.raises(InputError, match="no batch 'sunday'"):
        monitor.update(right, name="sunday", replace=True)
    corrected = monitor.update(right.iloc[1:], name="monday", replace=True)
    assert abs(corrected.value - PRIOR) < 0.1 and [point.name for point in monitor.points] == ["monday", "tuesday"]
    assert monitor._series[""].change.evidence == evidence


@pytest.mark.parametrize("is_stored", [False, True])
def test_the_last_batch_can_be_replaced_after_an_earlier_one(monitor, saved, tmp_path, is_stored):
    right, wrong = [table(PRIOR, 300, 53 + k)[0] for k in range(3)], table(0.9, 300, 60)[0]
    for name, rows in zip(("monday", "tuesday", "wednesday"), (right[0], wrong, wrong.iloc[1:]), strict=True):
        monitor.update(rows, name=name)
    monitor.update(right[1], name="tuesday", replace=True)
    if is_stored:
        monitor.save_state(tmp_path / "state.json")
        monitor = ps.Monitor.load(saved, tmp_path / "state.json")
    replaced = monitor.update(right[2], name="wednesday", replace=True)
    other = ps.Monitor.load(saved)
    for name, rows in zip(("monday", "tuesday", "wednesday"), (right[0], wrong, right[2]), strict=True):
        point = other.update(rows, name=name)
    assert (replaced.value, replaced.evidence) == (point.value, point.evidence)  # with the first version of tuesday


def test_empty_and_tiny_batches_are_recorded(monitor):
    frame = table(PRIOR, 300, 55)[0]
    empty = monitor.update(frame.iloc[:0], name="sunday")
    assert (empty.status, empty.rows, empty.value, empty.alarms) == ("empty", 0, None, ())
    tiny = monitor.update(frame.iloc[:1], name="monday")
    assert tiny.status == "no estimate" and tiny.value is None
    assert [point.rows for point in monitor.points] == [0, 1]
    with pytest.raises(InputError, match="with rows"):
        monitor.difference("sunday", "monday")


def test_a_state_that_was_saved_goes_on_where_it_was(monitor, saved, tmp_path):
    for k in range(3):
        monitor.update(table(PRIOR, 200, 60 + k)[0], name=f"day {k}", time=f"2026-01-0{k + 1}")
    monitor.save(tmp_path / "all")
    monitor.save_state(tmp_path / "state.json")
    assert json.loads((tmp_path / "state.json").read_text())["version"] == 1
    whole, split = ps.Monitor.load(tmp_path / "all"), ps.Monitor.load(saved, state=tmp_path / "state.json")
    batch = table(0.4, 200, 70)[0]
    points = [each.update(batch, name="next") for each in (monitor, whole, split)]
    assert points[0] == points[1] == points[2]
    assert split.level == 0.5 and split.run_length == 200


def test_a_column_may_be_called_score(source, tmp_path):
    positive, unlabeled = (frame.rename(columns={"age": "score"}) for frame in source)
    ps.Monitor(PRIOR).fit_samples(positive, unlabeled).save(tmp_path / "fitted")
    assert ps.Monitor.load(tmp_path / "fitted").update(unlabeled, name="a").value == pytest.approx(PRIOR, abs=0.05)


def test_a_state_of_another_model_or_a_damaged_one_is_refused(monitor, source, tmp_path):
    monitor.save_state(tmp_path / "state.json")
    ps.Monitor(0.3).fit_samples(*source).save(tmp_path / "other")
    with pytest.raises(InputError, match="another model"):
        ps.Monitor.load(tmp_path / "other", state=tmp_path / "state.json")
    text = (tmp_path / "state.json").read_text()
    for damaged in (text[:-30], text.replace('"alpha":0.05', '"alpha":0.06'), "{}", "[", ""):
        (tmp_path / "damaged.json").write_text(damaged)
        with pytest.raises(InputError, match=r"damaged\.json"):
            read_state(tmp_path / "damaged.json")


def test_a_newer_state_is_refused_with_its_version(tmp_path):
    write_state(tmp_path / "state.json", {})
    text = (tmp_path / "state.json").read_text().replace('"version":1', '"version":2')
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(InputError, match="newer version"):
        read_state(tmp_path / "state.json")


def test_a_second_writer_is_refused(tmp_path):
    path = tmp_path / "state.json"
    with locked(path), pytest.raises(InputError, match="another process"), locked(path):
        pass
    with locked(tmp_path / "state.json"):
        pass


def test_series_share_one_budget_and_are_separate(source):
    unlabeled = source[1].assign(region=np.where(np.arange(len(source[1])) % 2, "north", "south"))
    monitor = ps.Monitor(PRIOR, by="region", run_length=200).fit_samples(source[0], unlabeled)
    frame = pd.concat([table(PRIOR, 400, 80, region="north")[0], table(0.8, 400, 81, region="south")[0]])
    points = monitor.update(frame, name="day 0")
    assert set(points) == {"north", "south"}
    assert points["north"].alarms == () and points["south"].alarms[0].rule == "change"
    assert points["north"].limits["change"] == pytest.approx(400)
    only = monitor.update(table(PRIOR, 100, 82, region="north")[0], name="day 1")
    assert only["south"].status == "empty" and only["north"].rows == 100
    with pytest.raises(InputError, match="'west'"):
        monitor.update(table(PRIOR, 100, 83, region="west")[0], name="day 2")
    with pytest.raises(InputError, match="no series"):
        monitor.difference("day 0", "day 1")


def test_the_first_batches_can_be_the_reference(source):
    monitor = ps.Monitor(PRIOR, reference=3, run_length=200).fit_samples(*source)
    points = [monitor.update(table(0.6, 400, 90 + k)[0], name=str(k)) for k in range(6)]
    assert [point.status for point in points] == ["reference"] * 3 + ["ok"] * 3
    assert all(point.alarms == () for point in points)  # 60% is what the reference has
    point = monitor.update(table(0.2, 400, 99)[0], name="changed")
    assert point.alarms[0].rule == "change" and -0.4 in point.alarms[0].interval


def test_groups_and_weights_need_a_reference_of_their_kind(source):
    with pytest.raises(InputError, match="weighted"):
        ps.Monitor(PRIOR, weights="w").fit_samples(*source)
    monitor = ps.Monitor(PRIOR, groups="patient").fit_samples(*source)
    grouped = table(PRIOR, 300, 100, patient=np.arange(300) // 3)[0]
    with pytest.raises(InputError, match="groups"):
        monitor.update(grouped, name="day 0")
    assert monitor.points == []
    with_groups = source[1].assign(patient=[f"s{k // 3}" for k in range(len(source[1]))])
    monitor = ps.Monitor(PRIOR, groups="patient").fit_samples(source[0], with_groups)
    assert monitor.update(grouped, name="day 0").alarms == ()


def test_groups_widen_the_interval_and_weights_move_the_estimate(source):
    monitor = ps.Monitor(PRIOR, groups="patient", weights="w", reference=1).fit_samples(*source)
    frame, positive = table(0.4, 400, 102)
    with pytest.raises(InputError, match="lacks the column 'w'"):
        monitor.update(frame, name="rows")
    frame = frame.assign(w=1.0)
    copies = pd.concat([frame] * 4)
    points = {
        "rows": monitor.update(frame, name="rows"),
        "copies": monitor.restart().update(copies, name="copies"),
        "groups": monitor.restart().update(copies.assign(patient=list(range(400)) * 4), name="groups"),
        "weighted": monitor.restart().update(frame.assign(w=np.where(positive, 3.0, 1.0)), name="weighted"),
    }
    width = {name: point.interval.width for name, point in points.items()}
    assert width["copies"] < width["groups"] == pytest.approx(width["rows"], rel=0.02)
    assert points["groups"].value == pytest.approx(points["rows"].value, abs=0.005)
    assert points["weighted"].value == pytest.approx(
        3 * positive.sum() / (3 * positive.sum() + (~positive).sum()), abs=0.08
    )


def test_an_audit_in_a_batch_decides_the_interval(source):
    monitor = ps.Monitor(PRIOR, audit="looked_up").fit_samples(*source)
    frame, positive = table(0.4, 400, 103)
    looked_up = np.where(np.arange(400) < 100, positive, np.nan)
    point = monitor.update(frame.assign(looked_up=looked_up), name="audited")
    assert point.interval.method == "audit" and 0.4 in point.interval


def test_fit_takes_rows_with_labels(source):
    X, y = pd.concat(source), np.repeat([1, 0], [len(part) for part in source])
    first = ps.Monitor(PRIOR).fit(X, y)
    second = ps.Monitor(PRIOR).fit_samples(*source)
    batch = table(PRIOR, 200, 110)[0]
    assert first.update(batch, name="a") == second.update(batch, name="a")


def test_an_unknown_source_prior_is_estimated_and_stored(source, tmp_path):
    monitor = ps.Monitor().fit_samples(*source)
    batch = table(PRIOR, 400, 111)[0]
    monitor.save(tmp_path / "saved")
    point = ps.Monitor.load(tmp_path / "saved").update(batch, name="a")
    assert PRIOR in point.interval
    assert monitor.update(batch, name="a") == point


@pytest.mark.parametrize(
    ("settings", "keyword"),
    [
        ({"level": 1.5}, "level"), ({"level": (0.5, 0.2)}, "smaller"), ({"false_alarm": 0}, "false_alarm"),
        ({"run_length": 0.5}, "run_length"), ({"reference": "first"}, "reference"), ({"confidence": 2}, "confidence"),
        ({"scenario": "other"}, "scenario"), ({"by": "region"}, "region"), ({"source_prior": 2}, "source_prior"),
        ({"by": "region", "series": ["a", "a"]}, "different"), ({"false_alarm": 0.9}, "false_alarm is 0.9, .* 0 and 0.5"),
        ({"run_length": np.inf}, "run_length"), ({"run_length": 1e300}, "run_length"), ({"confidence": 1e-300}, "confid"),
        ({"reference": 10**23}, "reference"), ({"random_state": 10**20}, "random_state"), ({"false_alarm": 1e-300}, "false"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(source, settings, keyword):
    with pytest.raises(InputError, match=keyword):
        ps.Monitor(**{"source_prior": PRIOR, **settings}).fit_samples(*source)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize(
    "settings",
    [
        {"false_alarm": 0.5}, {"false_alarm": 1e-12}, {"run_length": 1}, {"run_length": 1e18}, {"confidence": 1e-12},
        {"confidence": 1 - 1e-12}, {"reference": 10**18}, {"random_state": 10**18}, {"level": (1e-300, 1 - 1e-16)},
        {"source_prior": 1 - 1e-16}, {"source_prior": 0.9995}, {"source_prior": 1e-300},
    ],
)  # fmt: skip
def test_settings_at_their_limits_can_be_stored_and_read(source, tmp_path, settings):
    ps.Monitor(**{"source_prior": PRIOR, "level": 0.3, **settings}).fit_samples(*source).save(tmp_path / "model")
    ps.Monitor.load(tmp_path / "model").save_state(tmp_path / "state")
    for name in "abc":
        monitor = ps.Monitor.load(tmp_path / "model", tmp_path / "state")
        monitor.update(table(PRIOR, 50, ord(name))[0], name=name)
        monitor.save_state(tmp_path / "state")
        monitor.save(tmp_path / "all")
    assert len(ps.Monitor.load(tmp_path / "model", tmp_path / "state").points) == 3
    assert len(ps.Monitor.load(tmp_path / "all").points) == 3


def test_a_monitor_that_is_not_fitted_says_so():
    with pytest.raises(InputError, match="fit"):
        ps.Monitor().update([[1.0]], name="a")


def test_inputs_are_not_modified(monitor):
    frame = table(PRIOR, 50, 112)[0]
    before = frame.copy()
    monitor.update(frame, name="a")
    pd.testing.assert_frame_equal(frame, before)


def test_a_table_of_something_else_is_not_a_batch_without_rows(monitor, tmp_path):
    assert monitor.update(table(PRIOR, 5, 0)[0].iloc[:0], name="no rows").status == "empty"
    (tmp_path / "failed.csv").write_text("error,query timed out\n")
    other = pd.DataFrame({"error": []})
    for batch in (tmp_path / "failed.csv", other):
        with pytest.raises(InputError, match="lacks 'age'"):
            monitor.update(batch, name="failed")
    assert [point.name for point in monitor.points] == ["no rows"]


def test_a_batch_without_the_column_of_its_series_is_refused(source):
    regions = source[1].assign(region=np.where(np.arange(len(source[1])) % 2, "north", "south"))
    monitor = ps.Monitor(PRIOR, by="region").fit_samples(source[0], regions)
    with pytest.raises(InputError, match="'region', which names the series"):
        monitor.update(table(PRIOR, 100, 3)[0], name="day 0")
    changed = table(0.9, 400, 4)[0].assign(region="north")
    points = monitor.update(changed, name="day 0")
    assert points["north"].alarms[0].message.startswith("north: ") and points["south"].alarms == ()


def test_alarms_of_batches_without_label_shift_say_that_they_may_be_wrong(monitor):
    drifted = table(0.8, 600, 5)[0].assign(pulse=lambda frame: 4 * frame["pulse"])
    alarms = monitor.update(drifted, name="day 0").alarms
    assert {alarm.rule for alarm in alarms} == {"level", "change", "assumption"}
    assert ["may be wrong" in alarm.message for alarm in alarms] == [alarm.rule != "assumption" for alarm in alarms]
    honest = ps.Monitor(PRIOR, level=0.5).fit_samples(table(1.0, 200, 0)[0], table(PRIOR, 1000, 1)[0])
    assert not any("wrong" in alarm.message for alarm in honest.update(table(0.8, 600, 5)[0], name="day 0").alarms)


@pytest.mark.parametrize("is_saved", [False, True])
def test_an_acknowledged_batch_is_not_part_of_the_reference(monitor, tmp_path, is_saved):
    for k in range(4):
        monitor.update(table(PRIOR, 400, 80 + k)[0], name=f"day {k}")
    faulty = table(PRIOR, 400, 90)[0] + 6
    alarms = monitor.update(faulty, name="faulty").alarms
    assert {alarm.rule for alarm in alarms} >= {"change", "assumption"}
    if is_saved:
        monitor.save(tmp_path / "fitted")
        monitor = ps.Monitor.load(tmp_path / "fitted")
    monitor.acknowledge()
    for k in range(3):
        point = monitor.update(table(PRIOR, 400, 91 + k)[0], name=f"right {k}")
        assert not {alarm.rule for alarm in point.alarms} & {"change", "assumption"}
    point = monitor.update(table(0.6, 800, 95)[0], name="changed")
    (alarm,) = [alarm for alarm in point.alarms if alarm.rule == "change"]
    assert alarm.since == "changed" and alarm.interval.low < 0.4 < alarm.interval.high
    assert abs(alarm.size - 0.4) < 0.08 and "wrong" not in alarm.message


def test_alarms_of_a_corrected_batch_say_that_its_first_version_raised_them(monitor):
    monitor.update(table(0.9, 300, 54)[0], name="monday")
    monitor.update(table(PRIOR, 300, 53)[0], name="tuesday")
    for seed in (55, 56):
        corrected = monitor.update(table(PRIOR, 300, seed)[0], name="monday", replace=True)
        assert corrected.alarms
        for alarm in corrected.alarms:
            assert alarm.message.startswith("Raised by the first version of this batch: The ")
            assert alarm.message.count("Raised") == 1


def mixed_table(share, count, seed, gaps=True):
    """A category, a date, missing values and 16 numbers."""
    rng = np.random.default_rng(seed)
    positive = rng.random(count) < share
    frame = pd.DataFrame({f"x{k}": rng.normal(size=count) + 0.5 * positive for k in range(16)})
    frame["area"] = np.where(rng.random(count) < 0.3 + 0.3 * positive, "town", np.where(positive, "farm", "forest"))
    frame["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300, count), unit="D")
    return frame.assign(x0=frame["x0"].mask(rng.random(count) < 0.1)) if gaps else frame


@pytest.mark.filterwarnings("ignore:Column .day. has dates")
def test_a_monitor_of_mixed_columns_can_be_saved_and_loaded(tmp_path):
    monitor = ps.Monitor(0.3).fit_samples(mixed_table(1.0, 300, 0), mixed_table(0.3, 900, 1))
    monitor.save(tmp_path / "fitted")
    loaded = ps.Monitor.load(tmp_path / "fitted")
    assert loaded.model_.feature_names == monitor.model_.feature_names
    batch = mixed_table(0.3, 400, 2)
    assert loaded.update(batch, name="day 0") == monitor.update(batch, name="day 0")


@pytest.mark.filterwarnings("ignore:Column .day. has dates")
def test_a_missing_value_is_refused_with_ways_out_that_a_monitor_has():
    samples = mixed_table(1.0, 100, 0, gaps=False), mixed_table(0.3, 300, 1, gaps=False)
    monitor = ps.Monitor(0.3).fit_samples(*samples)
    with pytest.raises(InputError, match="leave the row out") as refused:
        monitor.update(mixed_table(0.3, 100, 2), name="day 0")
    assert "stream" not in str(refused.value)


@pytest.mark.parametrize(
    ("wide", "named"),
    [(False, "column 'x3'"), (True, "one of the columns ")],
)
def test_the_alarm_names_the_columns_that_changed_even_if_there_are_many(wide, named):
    def draw(share, count, seed):
        frame = mixed_table(share, count, seed, gaps=False)
        frame = frame.drop(columns=["day"]).assign(
            area=frame["area"] + (frame["x1"] > 0).map({True: " a", False: " b"})
        )
        if wide:
            noise = np.random.default_rng(seed).normal(size=(count, 24))
            return frame.join(pd.DataFrame(noise, columns=[f"z{k}" for k in range(24)]))
        return frame

    monitor = ps.Monitor(0.3).fit_samples(draw(1.0, 300, 0), draw(0.3, 1500, 1))
    faulty = draw(0.3, 1500, 2)
    if wide:
        faulty["z5"] *= 4
    else:
        faulty["x3"] *= 4
    (alarm,) = [alarm for alarm in monitor.update(faulty, name="day 0").alarms if alarm.rule == "assumption"]
    assert named in alarm.message and ("'z5'" in alarm.message or not wide)


def test_a_change_without_label_shift_has_no_size(monitor):
    faulty = table(PRIOR, 800, 70)[0] * np.array([30.0, 1.0, 1.0])
    alarms = {alarm.rule: alarm for alarm in monitor.update(faulty, name="faulty").alarms}
    assert "assumption" in alarms and alarms["change"].size is None and alarms["change"].interval is None
    assert "seems to have changed" in alarms["change"].message and "may be wrong" in alarms["change"].message


@pytest.mark.parametrize("is_stored", [False, True])
def test_corrections_do_not_change_how_many_batches_the_reference_has(saved, tmp_path, is_stored):
    monitor, empty = ps.Monitor.load(saved).restart(reference=3), table(PRIOR, 10, 0)[0].iloc[:0]
    rows = [table(PRIOR, 200, 40 + k)[0] for k in range(6)]
    for name, batch in zip("0123", (empty, *rows[:3]), strict=True):
        monitor.update(batch, name=name)
    monitor.update(rows[3], name="0", replace=True)  # which was empty
    monitor.update(empty, name="1", replace=True)  # which was part of the reference
    if is_stored:
        monitor.save_state(tmp_path / "state.json")
        monitor = ps.Monitor.load(saved, tmp_path / "state.json")
    assert monitor.update(rows[4], name="3", replace=True).status == "reference"  # the last one of it
    assert monitor.update(rows[5], name="4").status == "ok"
    assert monitor._series[""].change.pool.sum() == 600


def test_a_refused_replacement_keeps_the_last_batch(source):
    monitor = ps.Monitor(PRIOR, groups="group").fit_samples(*source)
    monitor.update(table(PRIOR, 100, 0)[0], name="0")
    with pytest.raises(InputError, match="has groups"):
        monitor.update(table(PRIOR, 100, 1)[0].assign(group=np.arange(100) // 2), name="0", replace=True)
    assert [point.name for point in monitor.points] == ["0"]


def test_a_nearly_empty_column_is_no_id(source):
    rare = [frame.assign(rare=[27.0, 28.0, 29.0, *[np.nan] * (len(frame) - 3)]) for frame in source]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ps.Monitor(PRIOR).fit_samples(*rare)


def test_later_alarms_name_the_column_in_which_label_shift_failed_first_of_all(monitor, saved, tmp_path):
    faulty = table(PRIOR, 400, 80)[0]
    faulty["pulse"] += 8
    first = monitor.update(faulty, name="day 0")
    assert first.alarms[0].rule == "assumption" and len(first.alarms) > 1
    monitor.save_state(tmp_path / "state.json")
    for series in (monitor, ps.Monitor.load(saved, tmp_path / "state.json")):
        (alarm,) = series.update(table(PRIOR, 400, 81)[0], name="day 1").alarms
        assert "since 'day 0', most clearly in column 'pulse'" in alarm.message


def test_a_source_prior_that_the_source_excludes_causes_a_warning(source):
    with pytest.warns(ps.errors.InconsistentInputWarning, match=r"source prior \(0\.8\) contradicts .* at most 0\.4"):
        ps.Monitor(0.8).fit_samples(*source)
    with pytest.warns(ps.errors.InconsistentInputWarning, match=r"\(0\.7 or more\)"):
        ps.Monitor((0.7, 0.9)).fit_samples(*source)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ps.Monitor((0.1, 0.9)).fit_samples(*source)


def test_the_bound_of_a_source_prior_is_that_of_a_diagnosis(source):
    model = ps.Monitor(PRIOR).fit_samples(*source).model_
    found = ps.diagnose(*source, table(PRIOR, 500, 3)[0], source_prior=PRIOR, random_state=0)
    assert model.largest_prior == pytest.approx(found.identification.largest_prior, abs=0.03)


def test_the_level_is_exceeded_sooner_or_later_beyond_the_share_that_is_stated(source):
    monitor = ps.Monitor(PRIOR, level=0.25).fit_samples(*source)
    share = monitor.alarm_shares["above"]
    assert 0.25 < share < 0.4

    def alarms(true_share):
        monitor.restart()
        points = [monitor.update(table(true_share, 4000, 300 + k)[0], name=f"{k}") for k in range(25)]
        return any(alarm.rule == "level" for point in points for alarm in point.alarms)

    assert alarms(share + 0.06) and not alarms(share - 0.06)
    both = ps.Monitor(PRIOR, level=(0.15, 0.25)).fit_samples(*source).alarm_shares
    assert both["below"] < 0.15 and both["above"] > share  # each side has half of the false alarms
    assert ps.Monitor(PRIOR).fit_samples(*source).alarm_shares == {}


def test_columns_of_dates_and_ids_in_files_are_warned_of(source, tmp_path):
    paths = []
    for k, frame in enumerate(source):
        day = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(len(frame)) % 300, unit="D")
        paths.append(tmp_path / f"{k}.csv")
        numbers = 9000 + np.random.default_rng(k).permutation(5000)[: len(frame)]
        frame.assign(day=day.strftime("%Y-%m-%d"), number=numbers).to_csv(paths[-1], index=False)
    with pytest.warns(ps.errors.ColumnWarning) as caught:
        ps.Monitor(PRIOR).fit_samples(*paths)
    texts = [str(warning.message) for warning in caught]
    assert any("Column 'day' has dates" in text and "--drop day" in text for text in texts)
    assert any("Column 'number' looks like an id" in text and "--drop number" in text for text in texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ps.Monitor(PRIOR, drop=["day", "number"]).fit_samples(*paths)


def test_columns_of_dates_are_warned_of():
    samples = mixed_table(1.0, 100, 0, gaps=False), mixed_table(0.3, 300, 1, gaps=False)
    with pytest.warns(ps.errors.ColumnWarning, match="Column 'day' has dates.*--drop day"):
        ps.Monitor(0.3).fit_samples(*samples)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ps.Monitor(0.3, drop=["day"]).fit_samples(*samples)


def test_an_acknowledgement_holds_if_the_last_batch_is_replaced(monitor):
    for k in range(3):
        monitor.update(table(PRIOR, 400, 30 + k)[0] + (6 if k < 2 else 0), name=f"day {k}")
    monitor.acknowledge()
    assert not monitor.broken_since
    point = monitor.update(table(PRIOR, 400, 40)[0], name="day 2", replace=True)
    assert not monitor.broken_since and not point.broke_assumption


def test_a_changed_share_of_weighted_batches_is_not_taken_for_a_violation():
    rng = np.random.default_rng(0)

    def draw(share, count):
        positive = rng.random(count) < share
        numbers = rng.normal(size=(count, 3)) + 1.2 * positive[:, None]
        frame = pd.DataFrame(numbers, columns=COLUMNS).assign(sex=rng.random(count) < 0.3 + 0.4 * positive)
        return frame.astype(float).assign(w=rng.uniform(0.5, 1.5, count))

    monitor = ps.Monitor(0.1, weights="w", reference=5, run_length=200)
    monitor.fit_samples(draw(1.0, 300).assign(w=1.0), draw(0.1, 3000).assign(w=1.0))
    points = [monitor.update(draw(0.1 if k < 8 else 0.5, 400), name=f"day {k}") for k in range(40)]
    assert not any(point.broke_assumption for point in points)
