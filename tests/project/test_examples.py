"""The gallery: each script runs by itself in seconds, leaves nothing behind, and shows what its text says."""

import runpy
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from priorshift.errors import InconsistentInputWarning, PrivacyWarning, WeakSeparationWarning

pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

EXAMPLES = Path(__file__).parents[2] / "examples"
MOST_WORK = 150.0  # processor time of a script over that of `_reference_work`; they take 10 to 120 times as long


def _reference_work():
    """Return the processor time of fixed work, which takes longer on a busy machine, as the scripts do."""
    rng, began = np.random.default_rng(0), time.process_time()
    for _ in range(10):
        rows = rng.normal(size=(1000, 10))
        products = rows @ rows.T
        np.sort(np.exp(-np.add.outer(products.diagonal(), products.diagonal()) + 2 * products), axis=1)
    return time.process_time() - began


def _new_hospital(of):
    found, by_tenth, by_fifth = of["checked"].values()
    assert found.verdict.answer == "yes" and of["truth"] in found.estimate.interval
    assert by_fifth.verdict.answer == "no" and of["truth"] not in by_fifth.estimate.interval
    assert {column.name for column in by_fifth.label_shift_test.moved_columns} & {*of["LENGTHS"], *of["AREAS"]}
    errors = [abs(each.estimate.value - of["truth"]) for each in (found, by_tenth, by_fifth)]
    assert by_tenth.verdict.answer == "yes" and errors == sorted(errors)
    assert 20_000 < of["page_size"] < 1_500_000


def _fraud_by_month(of):
    estimates, truth = of["estimates"], of["truth"]
    assert of["held"](estimates) >= 11 > of["held"](of["ignored"])
    assert all(share in estimates.band[month] for month, share in truth.items())
    adjusted = {d.second: d.adjusted_p_value for d in of["against_january"]}
    assert {month for month, p in adjusted.items() if p < 0.05} == {"2025-08", "2025-09"}
    assert estimates.equality_test().p_value < 0.01
    assert 0.5 < of["clairvoyant"] / of["width"] < 1
    assert (round(800 * of["january"].low), round(800 * of["january"].high)) == (0, 12)


def _presence_only(of):
    truth, gone, found = of["truth"], of["left"].mean(), of["found"]
    assert truth in of["weighted"].interval and truth not in of["unweighted"].interval
    assert of["true_ratio"] in of["ratio"].interval
    assert found.verdict.answer == "with care" and gone not in found.estimate.interval
    assert of["found_warmer"].verdict.answer == "no" and truth in of["found_warmer"].estimate.interval
    assert [column.name for column in of["found_warmer"].label_shift_test.moved_columns] == ["temperature"]
    assert of["audited"].verdict.answer == "with care" and gone in of["audited"].estimate.interval
    assert {warning.category for warning in of["said"]} == {InconsistentInputWarning}


def _desert_survey(of):
    truth, found, later, near = of["grows"].mean(), of["diagnosis"], of["later"], of["near"]
    assert truth > 1.8 * of["share"] and found.estimate.value < 0.1 and truth not in found.estimate.interval
    assert found.label_shift_test.p_value < 0.001 and of["true_ratio"] not in of["ratio"].interval
    assert (of["means"]["new"] < of["means"]["old"]).sum() >= 14
    assert {each.verdict.answer for each in of["tried"].values()} == {"no"}
    assert not any(truth in each.estimate.interval for each in of["tried"].values())
    assert set(later["verdict"]) == {"no"} and len(later) == 3 and later["holds"].sum() == 1
    assert truth in of["audited"].interval
    assert {warning.category for warning in of["said"]} == {InconsistentInputWarning}
    assert (near["verdict"] == "with care").sum() == 3 and near["holds"].all() and len(near) == 4


def test_the_extract_of_the_desert_survey_is_whole():
    import pandas as pd

    survey = pd.read_csv(EXAMPLES / "data" / "portal_winter_plants.csv.gz")
    assert len(survey) == 14 * 24 * 16 and not survey.duplicated(["year", "plot", "quadrat"]).any()
    assert survey["year"].nunique() == 14 and survey.shape[1] == 3 + 16 and (survey >= 0).all(axis=None)
    assert "CC0" in (EXAMPLES / "data" / "SOURCES.md").read_text(encoding="utf-8")


def _season(of):
    cost, accuracy = of["costs"].mean(), of["accuracies"].mean()
    assert of["held"] >= 11
    assert 0.75 < cost["adapted"] / cost["as in April"] < 0.85
    assert 0 <= cost["adapted"] - cost["share known"] < 0.01 and accuracy["adapted"] > accuracy["as in April"]
    gain = of["costs"]["as in April"] - of["costs"]["adapted"]
    assert max(abs(gain[["Apr", "Nov"]])) < 0.01 < min(gain[["Jan", "Feb", "May", "Jun", "Jul", "Aug", "Dec"]])
    assert of["of_mild"].interval.high < of["SHARES"][-1]
    assert (of["as_ever"].verdict.answer, of["found"].verdict.answer) == ("yes", "no")


def _billion_rows(of):
    last, peaks, plan = of["answers"][-1], of["peaks"], of["pilot"].planning
    assert all(of["TARGET_PRIOR"] in answer.interval for answer in (last, of["direct"], of["sketched"]))
    assert max(peaks[3:]) < 1.05 * min(peaks[3:])
    assert last.interval.width < of["answers"][0].interval.width
    foreseen = plan.predict(positive=len(of["P"]), unlabeled=len(of["U"]), target=len(of["T"]))
    assert foreseen == pytest.approx(last.interval.width, rel=0.15)
    assert of["off"] > last.interval.width > 5 * of["sure"]


def _three_hospitals(of):
    shared, pooled, rows = of["shared"], of["pooled"], of["in_one_place"]
    assert (shared.value, shared.interval) == (pooled.value, pooled.interval)
    assert abs(shared.value - rows.value) < 0.2 * rows.interval.width
    assert all(of["truth"] in answer.interval for answer in (shared, rows, *of["private"].values()))
    widths = [shared.interval.width, *(answer.interval.width for answer in of["private"].values())]
    assert all(less < more for less, more in pairwise(widths)) and of["private"][1].interval.width < 1.1 * widths[0]
    assert of["alone"][1].interval.width > 1.5 * of["open_counts"].interval.width
    assert {warning.category for warning in of["said"]} == {PrivacyWarning}
    assert not of["wire"].exists()


def _paper_figures(of):
    assert all(min(values) < truth < max(values) for truth, values in of["minima"].items())
    bias = {statistic: np.mean(values) - of["truth"] for statistic, values in of["estimates"].items()}
    assert bias["plug-in"] < -0.1 and abs(bias["unbiased"]) < 0.03
    draws = len(of["estimates"]["unbiased"])
    assert of["holds"]["plug-in"] < 0.5 * draws and of["holds"]["unbiased"] > 0.9 * draws


def _wide_interval(of):
    width = {name: answer.interval.width for name, answer in of["tried"].items()}
    assert {name for name, answer in of["tried"].items() if of["TRUTH"] not in answer.interval} == {"wrong π"}
    del width["wrong π"]
    assert width["10 × target"] > 0.9 * width["nothing"] > width["10 × positives"]
    assert max(width[name] for name in ("range of π", "survey of π", "source audited")) < 0.55 * width["nothing"]
    assert min(width, key=width.get) == "target audited"
    assert {name: width[name] for name in of["foreseen"]} == pytest.approx(of["foreseen"], rel=0.25)
    assert 0.8 < of["plan"].components["source_prior"] < 0.88
    assert {warning.category for warning in of["said"]} == {WeakSeparationWarning}


def _three_subtypes(of):
    shares, truth = of["shares"], {**of["new"], "rest": 1 - sum(of["new"].values())}
    assert all(share in shares[name].interval for name, share in truth.items())
    assert {name for name, covers in of["covered"].items() if not covers} == {"subtype A", "subtype B"}
    assert of["checked"].verdict.answer == "yes" and of["warned"].verdict.answer == "no"
    assert of["warned"].new_class_test.is_detected and not of["checked"].new_class_test.is_detected


def _watch_weeks(of):
    points, truth = of["monitor"].points, of["truth"]
    assert of["change"].since == "week 13" and truth[11] < truth[12]
    assert truth[12] - truth[11] in of["change"].interval
    raised = {rule: [k for k, p in enumerate(points) if rule in {alarm.rule for alarm in p.alarms}] for rule in
              ("change", "level", "assumption")}  # fmt: skip
    assert raised["change"][0] == 12 and 12 < raised["level"][0] < 20
    assert raised["assumption"] == [20, 21, 22, 23] and "'b1'" in str(of["broken"])
    covered = [share in point.interval for point, share in zip(points[:20], truth, strict=False)]
    assert sum(covered) >= 18
    assert (of["errors"][-4:] > 0).all() and of["errors"][-4:].mean() > 0.05
    assert of["again"].status == "repeated" and len(of["loaded"].points) == 24
    assert 5_000 < (of["folder"] / "state.json").stat().st_size < 200_000
    assert of["ends"].low > 0


SHOWN = {
    "new_hospital": _new_hospital,
    "fraud_by_month": _fraud_by_month,
    "presence_only": _presence_only,
    "desert_survey": _desert_survey,
    "season": _season,
    "billion_rows": _billion_rows,
    "three_hospitals": _three_hospitals,
    "paper_figures": _paper_figures,
    "wide_interval": _wide_interval,
    "three_subtypes": _three_subtypes,
    "watch_weeks": _watch_weeks,
}


def test_every_script_is_tried():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {f"plot_{name}" for name in SHOWN}


@pytest.mark.parametrize("name", SHOWN)
def test_example(name, monkeypatch, tmp_path):
    from matplotlib import pyplot as plt

    if name == "new_hospital":
        pytest.importorskip("jinja2")
    (tmp_path / "data").symlink_to(EXAMPLES / "data")  # the gallery runs a script in its folder
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    reference, began = _reference_work(), time.process_time()
    shown = runpy.run_path(str(EXAMPLES / f"plot_{name}.py"))
    seconds = time.process_time() - began
    assert seconds < MOST_WORK * max(reference, _reference_work())
    SHOWN[name](shown)
    title, underline, *_ = shown["__doc__"].strip().splitlines()
    assert underline == "=" * len(title)
    assert plt.get_fignums() and all(plt.figure(number).axes for number in plt.get_fignums())
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
