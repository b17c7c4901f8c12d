"""What to do next: with numbers, the most useful first, and never against the verdict."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import priorshift as ps
from priorshift.diagnosis.verdict import useful_width
from priorshift.errors import PriorShiftWarning
from priorshift.warning_records import suppress_warnings


def tables(rows=400, prior=0.3, target_prior=0.5, distance=2.0, seed=0):
    rng = np.random.default_rng(seed)

    def sample(n, share):
        ill = rng.random(n) < share
        return pd.DataFrame(rng.normal(size=(n, 3)) + distance * ill[:, None] * [1, 0.5, 0], columns=["a", "b", "c"])

    return [sample(rows // 3, 1.0), sample(rows, prior), sample(rows, target_prior)]


def steps(samples, **settings):
    with suppress_warnings(PriorShiftWarning):
        found = ps.diagnose(*samples, **{"source_prior": 0.3, "random_state": 0} | settings)
    assert 1 <= len(found.next_steps) <= 4
    assert all(step[0].isupper() and step[-1] in ".?" for step in found.next_steps)
    if found.verdict.answer == "no":
        assert not any("ublish" in step for step in found.next_steps)
    assert found.to_dict()["next_steps"] == list(found.next_steps)
    return found, found.next_steps


def test_a_sound_number_is_published_with_its_interval():
    found, said = steps(tables())
    assert found.verdict.answer == "yes" and said[0].startswith("Publish the estimate with its interval")
    assert "What to do next?" in str(found) and "Publish the estimate" in str(found)


def test_what_looking_up_rows_would_buy_is_what_planning_foresees():
    found, said = steps(tables())
    (audit,) = [step for step in said if step.startswith("Look up")]
    labels, then = re.search(r"classes of (\d+) .* is then ([\d.]+) instead", audit).groups()
    assert float(then) == pytest.approx(found.planning.predict_audit(target=int(labels)), rel=0.05)


def test_an_open_source_prior_is_to_be_found_from_outside():
    found, said = steps(tables(), source_prior=(0.05, 0.6))
    assert found.identification.level == "ratio" and "publish the range" in said[0]
    assert any(step.startswith("Find the source prior") for step in said)


def test_columns_that_moved_are_looked_at_first():
    positive, unlabeled, target = tables()
    found, said = steps([positive, unlabeled, target.assign(c=target["c"] + 1.5)])
    assert found.verdict.answer == "no" and said[0].startswith("Check 'c'")
    assert any("without any of these assumptions" in step for step in said)
    assert not any(step.startswith("Add target rows") for step in said)


def test_rows_to_look_at_are_numbered_as_in_a_file():
    positive, unlabeled, target = tables()
    target.iloc[40:80] = [4.0, -4.0, 4.0]
    found, _ = steps([positive, unlabeled, target])
    unnamed = replace(found.label_shift_test, p_value=0.001, columns=(), rows=(40, 79))
    said = replace(found, label_shift_test=unnamed).next_steps
    assert any(step.startswith("Check rows 41 and 80 of the target") for step in said)


def test_a_prior_that_contradicts_the_tables_is_checked_and_so_is_the_scenario():
    found, said = steps(tables(), source_prior=0.9)
    assert found.identification.contradicted
    assert said[0].startswith("Check the source prior 0.9") and "censoring" in said[1]


def test_few_positives_say_how_many_more():
    positive, *others = tables()
    _, said = steps([positive[:12], *others])
    assert any(step.startswith("Label at least 8 more positives") for step in said)


def test_classes_that_are_alike_need_other_columns():
    rng = np.random.default_rng(0)
    alike = [rng.normal(size=(n, 3)) for n in (20, 40, 400)]
    found, said = steps(alike, random_state=3)
    assert found.identification.level == "nothing"
    assert said[0].startswith("Add columns")
    (audit,) = [step for step in said if step.startswith("Look up")]
    assert int(re.search(r"about (\d+) random rows", audit)[1]) == ps.audit.audit_size(0.2, 0.5, rows=400)


def test_an_audited_target_is_not_told_to_be_audited():
    positive, unlabeled, target = tables()
    rng = np.random.default_rng(0)
    looked_up = np.where(np.arange(len(target)) < 100, rng.random(len(target)) < 0.5, np.nan)
    _, said = steps([positive, unlabeled, target.assign(truth=looked_up)], audit="truth")
    assert not any("rows of the target" in step for step in said)


def test_planning_foresees_one_audit_at_a_time():
    found, _ = steps(tables())
    with pytest.raises(ps.errors.InputError, match="unlabeled or target"):
        found.planning.predict_audit()
    with pytest.raises(ps.errors.InputError, match="unlabeled or target"):
        found.planning.predict_audit(unlabeled=10, target=10)


def test_a_column_that_should_not_be_there_is_left_out_first():
    samples = [table.assign(row=np.arange(len(table)) + 1000.0 * k) for k, table in enumerate(tables())]
    found, said = steps(samples)
    named = [reason for reason in found.verdict.reasons if "--drop" in reason]
    assert named and f"Before anything else: {named[0]}" in said[:2]


def test_a_target_of_the_labelled_positives_or_of_few_rows_is_no_answer():
    positive, unlabeled, target = tables()
    found, _ = steps([positive, unlabeled, positive])
    assert found.verdict.answer == "no"
    assert any("the target seems to hold the labelled positives" in reason for reason in found.verdict.reasons)
    few, _ = steps([positive, unlabeled, target.iloc[:25]])
    assert few.verdict.answer != "yes" and any("the target has 25 rows" in reason for reason in few.verdict.reasons)


@pytest.mark.parametrize(
    ("low", "high", "source_prior", "is_useful"),
    [
        (0.0, 0.39, 0.3, False),  # a true prior of 0.06 was called publishable so
        (0.02, 0.05, 0.03, True),
        (0.0, 0.02, 0.2, True),  # whatever it is, the class has become much rarer
        (0.001, 0.008, 0.004, False),
        (0.3, 0.7, 0.5, True),
        (0.2, 0.75, 0.5, False),
        (0.93, 0.97, 0.9, True),
    ],
)
def test_auseful_width_depends_on_the_prevalence(low, high, source_prior, is_useful):
    interval = ps.Interval(low, high, 0.95, "witness")
    assert (interval.width <= useful_width(interval, source_prior)) == is_useful


def test_a_wide_interval_of_a_rare_class_gets_no_plain_yes():
    found, _ = steps(tables(rows=200, target_prior=0.05, distance=1.2, seed=1))
    assert found.estimate.interval.high < 0.5 and found.verdict.answer == "with care"
    assert any("wide for a prevalence of this size" in reason for reason in found.verdict.reasons)


def test_an_audit_is_asked_for_only_where_it_is_feasible_and_gains_something():
    positive, unlabeled, target = tables()
    found, said = steps([positive, unlabeled, target.assign(c=target["c"] + 1.5)])
    labels, width = re.search(r"about (\d+) random rows .* width (\d\.\d+)", " ".join(said)).groups()
    assert int(labels) <= len(target) / 2 and float(width) <= found.estimate.interval.width + 0.01
    few = target.assign(c=target["c"] + 1.5).head(60)
    _, said = steps([positive, unlabeled, few])
    assert not any(step.startswith("Look up") for step in said)
