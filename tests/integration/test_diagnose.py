"""The door of doubt: what it says of tables whose truth is known, what it refuses, on the shell too."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import priorshift as ps
from priorshift.cli import main
from priorshift.diagnosis.diagnosis import Diagnoses, holm_adjusted
from priorshift.diagnosis.identification import DiagnosisInput
from priorshift.diagnosis.shift_tests import shift_test
from priorshift.errors import ColumnWarning, InputError, PriorShiftWarning
from priorshift.warning_records import record_warnings, warn

pytestmark = pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
PARTS = ("shift_test", "label_shift_test", "identification", "sensitivity", "planning")
COLUMNS = ["age", "dose", "weight", "score"]


def tables(rows=900, target_prior=0.6, distance=1.6, seed=0, **more):
    s = ps.simulate.gaussian(
        0.3, target_prior, rows, rows, dimension=4, distance=distance, shared=False, random_state=seed, **more
    )
    return [pd.DataFrame(X, columns=COLUMNS) for X in (s.positive, s.unlabeled, s.target)]


@pytest.fixture(scope="module")
def sound():
    return ps.diagnose(*tables(), source_prior=0.3, random_state=0)


def test_sound_tables_may_be_published(sound):
    assert sound.verdict.answer == "yes" and not sound.verdict.reasons
    assert str(sound).startswith("May I publish this number? Yes")
    assert 0.6 in sound.estimate.interval
    assert sound.shift_test.p_value < 1e-6 and sound.shift_test.ratio == sound.estimate.negative_ratio
    assert sound.label_shift_test.p_value > 0.05 and not sound.label_shift_test.moved_columns
    assert sound.identification.level == "prior" and not sound.identification.contradicted


def test_the_estimate_is_that_of_the_front_door(sound):
    alone = ps.estimate_prior(*tables(), source_prior=0.3, random_state=0)
    assert sound.estimate == alone


def test_the_page_answers_every_question_in_few_lines(sound):
    page = str(sound)
    assert all(
        question in page for question in ("Is there a shift?", "Is it label shift?", "Do the tables determine it?")
    )
    assert all(question in page for question in ("What would change it?", "What would narrow it?"))
    assert page.count("\n") < 50 and max(map(len, page.splitlines()[1:])) <= 120
    assert str(sound.estimate) in page


def test_all_of_it_is_json_and_says_the_same_each_time(sound):
    plain = json.loads(json.dumps(sound.to_dict(), allow_nan=False))
    assert set(plain) == {"verdict", "estimate", *PARTS, "next_steps", "drivers", "columns", "settings"}
    assert plain["shift_test"]["p_value"] == sound.shift_test.p_value
    assert plain["identification"]["ratio_low"] == sound.identification.ratio_low
    again = ps.diagnose(*tables(), source_prior=0.3, random_state=0)
    assert again.to_dict() == sound.to_dict()


def test_each_part_prints_in_lines_that_a_page_holds(sound):
    parts = ("verdict", "shift_test", "label_shift_test", "identification", "sensitivity", "planning")
    for part in (*(getattr(sound, name) for name in parts), sound.planning.required(0.05), sound):
        assert max(map(len, str(part).splitlines())) <= 100
    for name in parts:
        part = getattr(sound, name)
        assert str(part).split() == part.text.split()
    assert max(map(len, sound.verdict.text.splitlines())) > 100


def test_tables_are_left_as_they_are():
    given = tables(rows=200)
    before = [table.copy() for table in given]
    ps.diagnose(*given, source_prior=0.3, random_state=0)
    for table, was in zip(given, before, strict=True):
        pd.testing.assert_frame_equal(table, was)


def test_a_column_that_drifted_is_named_and_forbids_the_number():
    positive, unlabeled, target = tables()
    target["dose"] += 0.8
    found = ps.diagnose(positive, unlabeled, target, source_prior=0.3, random_state=0)
    assert found.verdict.answer == "no" and "'dose'" in found.verdict.reasons[0]
    assert found.label_shift_test.columns[0].name == "dose"
    assert found.label_shift_test.p_value < 0.01


def test_a_target_of_another_world_is_refused_and_a_shifted_one_forbids_the_number():
    positive, unlabeled, target = tables(rows=400)
    with pytest.raises(InputError, match="without a value in common"):
        ps.diagnose(positive, unlabeled, target + 500, source_prior=0.3, random_state=0)
    found = ps.diagnose(positive, unlabeled, target + 3, source_prior=0.3, random_state=0)
    assert found.verdict.answer == "no"


def test_a_prior_that_the_tables_exclude_forbids_the_number():
    found = ps.diagnose(*tables(), source_prior=0.8, random_state=0)
    assert found.verdict.answer == "no" and found.identification.contradicted
    assert "contradicts the tables" in found.verdict.reasons[0]
    assert "contradicts" in str(found.identification)
    low, high = found.identification.range_from_tables
    assert low < 0.3 < high < 0.8 and 0.3 < found.identification.largest_prior < 0.8


@pytest.mark.parametrize("source_prior", [0.001, 0.05, (0.0, 0.1)])
def test_tables_cannot_contradict_a_prior_below_the_bound(source_prior):
    """All rows that look like positives may be negatives: only an upper bound of π is identified."""
    identification = ps.diagnose(*tables(), source_prior=source_prior, random_state=0).identification
    assert not identification.contradicted
    assert "at most" in str(identification) and "contradicts" not in str(identification)


def test_classes_that_overlap_leave_a_band():
    found = ps.diagnose(*tables(distance=0.5), random_state=0)
    identified = found.identification
    assert found.verdict.answer == "with care" and identified.level == "ratio"
    assert identified.variance_from_prior > 0.5 and identified.overlap > 0.1
    assert (identified.target_low, identified.target_high) == (
        found.estimate.interval.low,
        found.estimate.interval.high,
    )
    assert any("do not determine the source prior" in reason for reason in found.verdict.reasons)
    known = ps.diagnose(*tables(distance=0.5), source_prior=0.3, random_state=0).identification
    assert known.level == "prior" and known.variance_from_prior == 0
    assert (known.ratio, known.ratio_low) == (identified.ratio, identified.ratio_low)


def test_a_range_and_a_distribution_of_the_prior_are_knowledge():
    narrow = ps.diagnose(*tables(rows=400), source_prior=stats.beta(300, 700), random_state=0).identification
    wide = ps.diagnose(*tables(rows=400), source_prior=(0.05, 0.6), random_state=0).identification
    assert narrow.given and wide.given and narrow.level == "prior" and wide.level == "ratio"
    assert wide.source_prior_range == (0.05, 0.6)
    # an even range of width w has the variance w²/12
    of_prior = (wide.ratio * 0.55) ** 2 / 12
    assert wide.variance_from_prior == pytest.approx(
        of_prior / (of_prior + (0.675 * _ratio_error(rows=400)) ** 2), rel=1e-9
    )


def _ratio_error(rows):
    positive, unlabeled, target = (table.to_numpy() for table in tables(rows=rows))
    X, y = np.vstack([positive, unlabeled]), np.repeat([1, 0], [len(positive), len(unlabeled)])
    return ps.WitnessShift(0.3, random_state=0).fit(X, y).negative_ratio(target).standard_error


def test_positives_like_the_population_tell_nothing():
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(rows, 3)) for rows in (20, 40, 40)]
    found = ps.diagnose(*samples, source_prior=0.3, random_state=3)
    assert found.identification.level == "nothing" and found.verdict.answer == "no"
    assert "hardly be distinguished" in found.verdict.reasons[0]


def test_what_was_odd_about_the_tables_is_a_reason_for_care_said_once():
    given = tables(rows=300)
    given[2] = pd.concat([given[2]] + [given[2].iloc[:60]] * 2, ignore_index=True)
    found = ps.diagnose(*given, source_prior=0.3, random_state=0)
    assert found.verdict.answer == "with care"
    assert [reason for reason in found.verdict.reasons if "copies of others" in reason] == [found.verdict.reasons[-1]]


def test_a_target_that_is_the_source_forbids_the_number():
    positive, unlabeled, _ = tables(rows=300)
    found = ps.diagnose(positive, unlabeled, unlabeled, source_prior=0.3, random_state=0)
    assert found.verdict.answer == "no"
    assert any("are also in" in reason for reason in found.verdict.reasons)


def test_an_audit_that_contradicts_the_tables_needs_care():
    """Its interval needs no assumption about the tables, so they do not forbid it."""
    positive, unlabeled, target = tables(rows=400)
    looked_up = np.where(np.arange(len(target)) < 60, 0.0, np.nan)
    found = ps.diagnose(positive, unlabeled, target.assign(truth=looked_up), source_prior=0.3, audit="truth")
    assert found.verdict.answer == "with care" and "without the audit" in str(found)
    assert any("contradicts" in reason or "disagrees" in reason for reason in found.verdict.reasons)


def test_two_rows_tell_nothing():
    positive, unlabeled, target = tables(rows=300)
    found = ps.diagnose(positive, unlabeled, target[:2], source_prior=0.3, random_state=0)
    assert found.verdict.answer == "no"
    assert "could not be tested" in " ".join(found.verdict.reasons) and np.isnan(found.label_shift_test.p_value)


def test_no_shift_is_rejected_one_time_in_twenty_in_tiny_targets_too():
    """Five rows of a class of one in twenty: by themselves they would often have no spread at all."""
    rng = np.random.default_rng(0)

    def rows(n, prior):
        return rng.normal(size=(n, 3)) + 2.0 * (rng.random(n) < prior)[:, None]

    X, y = np.vstack([rows(100, 1.0), rows(600, 0.05)]), np.repeat([1, 0], [100, 600])
    witness = ps.WitnessShift(0.05, random_state=0).fit(X, y)
    p = []
    for _ in range(200):
        seen = witness.fit_target(witness.read_target(rows(5, 0.05)))
        p.append(shift_test(DiagnosisInput(None, seen)).p_value)
    assert np.mean(np.array(p) < 0.05) < 0.25  # a target of five has one positive or more in 23 of 100
    assert np.mean(np.array(p) < 0.001) < 0.15


def test_few_positives_are_a_guess():
    positive, unlabeled, target = tables(rows=400)
    found = ps.diagnose(positive[:12], unlabeled, target, source_prior=0.3, random_state=0)
    assert any("12 positives" in reason for reason in found.verdict.reasons)


def test_a_threshold_is_what_is_concluded_on():
    found = ps.diagnose(*tables(rows=400), source_prior=0.3, threshold=0.4, random_state=0)
    assert found.sensitivity.conclusion.threshold == 0.4 and found.sensitivity.conclusion.side == "above"
    with pytest.raises(InputError, match="threshold is 2"):
        ps.diagnose(*tables(rows=100), source_prior=0.3, threshold=2)


@pytest.mark.parametrize("method", ["tcpu", ps.TCPU(0.3)])
def test_what_is_asked_is_asked_of_the_default(method):
    with pytest.raises(InputError, match="WitnessShift"):
        ps.diagnose(*tables(rows=100), method=method)


def test_another_scenario_comes_with_the_estimator():
    positive, unlabeled, target = tables(rows=400)
    censored = ps.WitnessShift(0.5, scenario="censoring", random_state=0)
    found = ps.diagnose(positive, unlabeled, target, method=censored)
    alone = ps.estimate_prior(positive, unlabeled, target, method=censored)
    assert found.estimate == alone


def test_weights_groups_and_categories():
    rng = np.random.default_rng(0)
    given = tables(rows=400)
    for name, table in zip("put", given, strict=True):
        table["ward"] = [f"{name}{k // 2}" for k in range(len(table))]
        table["weight"] = rng.choice([1.0, 2.0], len(table))
        table["region"] = rng.choice(["north", "south"], len(table), p=[0.9, 0.1] if name == "t" else [0.5, 0.5])
    found = ps.diagnose(*given, source_prior=0.3, groups="ward", weights="weight", random_state=0)
    assert found.label_shift_test.columns[0].name == "region" and found.verdict.answer == "no"
    assert "age" in [column.name for column in found.label_shift_test.columns]


@pytest.mark.parametrize("part", [*PARTS, "variants", None])
def test_every_part_has_a_picture(sound, part):
    plt = pytest.importorskip("matplotlib.pyplot")
    ax = sound.plot(part)
    try:
        assert ax.get_xlabel()
        if part == "shift_test":
            x = [float(line.get_xdata()[0]) for line in ax.get_lines()]
            assert x == [1.0, sound.shift_test.ratio]
        if part == "label_shift_test":
            lengths = [bar.get_width() for bar in ax.patches]
            assert lengths == [column.moved for column in sound.label_shift_test.columns]
        if part == "sensitivity":
            line = next(line for line in ax.get_lines() if line.get_label() == "target prior")
            assert list(line.get_ydata()) == [point.value for point in sound.sensitivity.source_priors]
        if part == "planning":
            line = next(line for line in ax.get_lines() if line.get_label() == "all three")
            assert line.get_ydata()[1] == sound.planning.expected_width
        assert part is not None or len(ax.figure.axes) == 6
    finally:
        plt.close("all")


def test_a_part_that_is_none(sound):
    with pytest.raises(InputError, match="part"):
        sound.plot("colour")


@pytest.fixture(scope="module")
def months():
    positive, unlabeled, target = tables(rows=400)
    drifted = tables(rows=400, seed=1)[2]
    drifted["age"] += 1.0
    both = pd.concat([target.assign(month="2024-01"), drifted.assign(month="2024-02")], ignore_index=True)
    return positive, unlabeled, both


def test_several_targets_have_a_verdict_each(months):
    found = ps.diagnose_targets(*months, by="month", source_prior=0.3, random_state=0)
    assert isinstance(found, Diagnoses) and list(found) == ["2024-01", "2024-02"]
    assert [found[name].verdict.answer for name in found] == ["yes", "no"]
    rows = found.to_frame()
    assert list(rows["publish"]) == ["yes", "no"]
    p = rows["label_shift_p_value"].to_numpy()
    np.testing.assert_allclose(rows["label_shift_adjusted_p_value"], [max(p[0], 2 * p[1]), 2 * p[1]])
    assert "2024-02: A change in prevalence does not explain" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)
    estimates = ps.estimate_priors(*months, by="month", source_prior=0.3, random_state=0)
    assert [found[name].estimate for name in found] == list(estimates.values())


def test_one_wrecked_target_among_many_is_seen():
    positive, unlabeled, _ = tables(rows=300)
    weeks = {f"w{k}": tables(rows=60, seed=k)[2] for k in range(12)}
    weeks["w7"] = weeks["w7"] * 3 + 5
    weeks["w9"] = weeks["w9"][:3]
    found = ps.diagnose_targets(positive, unlabeled, weeks, source_prior=0.3, random_state=0)
    assert found["w7"].verdict.answer == "no" and "adjusted for 12 targets" in found["w7"].verdict.reasons[0]
    assert found["w7"].label_shift_test.resamples > found["w0"].label_shift_test.resamples
    assert "none" in str(found).splitlines()[10]
    assert sum(found[week].verdict.answer == "no" for week in weeks) <= 3  # w7, w9 and chance


def test_what_is_odd_about_one_target_is_not_held_against_another():
    positive, unlabeled, target = tables(rows=300)
    found = ps.diagnose_targets(
        positive, unlabeled, {"new": target, "old": unlabeled}, source_prior=0.3, random_state=0
    )
    assert [found[name].verdict.answer for name in ("new", "old")] == ["yes", "no"]
    assert any("are also in" in reason for reason in found["old"].verdict.reasons)


def test_a_p_value_that_does_not_exist_is_none_of_them():
    assert holm_adjusted([0.01, float("nan"), 0.03]) == [0.02, pytest.approx(float("nan"), nan_ok=True), 0.03]


def test_on_the_shell(months, tmp_path, capsys):
    paths = []
    for name, table in zip(("positive", "unlabeled", "target"), months, strict=True):
        path = tmp_path / f"{name}.csv"
        table.to_csv(path, index=False)
        paths += [f"--{name}", str(path)]
    assert main(["diagnose", *paths, "--source-prior", "0.3", "--drop", "month", "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert one["verdict"]["answer"] in ("with care", "no") and set(PARTS) < set(one)
    written = tmp_path / "months.csv"
    assert main(["diagnose", *paths, "--source-prior", "0.3", "--by", "month", "--output", str(written)]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].split()[:2] == ["month", "publish?"]
    with written.open() as file:
        assert [row["publish"] for row in csv.DictReader(file)] == ["yes", "no"]
    picture = tmp_path / "picture.svg"
    few = ["--drop", "month", "--threshold", "0.5"]
    assert main(["diagnose", *paths, "--source-prior", "0.3", *few, "--plot", str(picture)]) == 0
    assert "May I publish this number?" in capsys.readouterr().out and picture.exists()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--drop", "month", "--output", "x.csv"], "--output is for several targets"),
        (["--by", "month", "--plot", "x.png"], "--plot is for one target"),
        (["--drop", "month", "--threshold", "7"], "threshold is 7"),
        (["--drop", "month", "--method", "tcpu"], "--method is not an option of priorshift diagnose"),
    ],
)
def test_wrong_use_of_the_shell_is_one_sentence(months, tmp_path, capsys, monkeypatch, more, sentence):
    monkeypatch.chdir(tmp_path)
    paths = []
    for name, table in zip(("positive", "unlabeled", "target"), months, strict=True):
        table.iloc[:40].to_csv(f"{name}.csv", index=False)
        paths += [f"--{name}", f"{name}.csv"]
    try:
        code = main(["diagnose", *paths, "--source-prior", "0.3", *more])
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert code == 2 and sentence in said.err and said.out == ""
    assert not list(tmp_path.glob("x.*"))


def test_what_is_overheard_is_said_all_the_same():
    with record_warnings(ColumnWarning, show=True) as odd:
        with pytest.warns(ColumnWarning, match="a column"):
            warn("a column", ColumnWarning)
        with pytest.warns(PriorShiftWarning, match="something else"):
            warn("something else", PriorShiftWarning)
    with pytest.warns(ColumnWarning, match="later"):
        warn("later", ColumnWarning)
    assert odd == [(ColumnWarning, "a column")]
