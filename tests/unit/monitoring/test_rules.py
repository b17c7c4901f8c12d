"""The rules of a monitor: what they may not do if nothing changes, and what they see."""

import numpy as np
import pytest

from priorshift.io.tables import Table
from priorshift.monitoring.assumption_rule import RANK_BINS, AssumptionRule, gap_free_functions
from priorshift.monitoring.model import MonitorModel
from priorshift.monitoring.reference import Reference
from priorshift.monitoring.rules import ChangeRule, LevelRule, Starts, mean_at, score_at, share_bounds

PRIOR = 0.2


def rows(share, count, rng):
    return rng.normal(size=(count, 3)) + 1.2 * (rng.random(count) < share)[:, None]


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    tables = Table("positive", rows(1.0, 300, rng)), Table("unlabeled", rows(PRIOR, 1500, rng))
    return MonitorModel.fit(*tables, PRIOR)


def batch(model, share, count, rng):
    return model.score_rows(Table("batch", rows(share, count, rng)))


def test_the_score_at_a_share_is_the_ratio_of_densities():
    f_P, f_N, pi, share = np.array([0.1, 0.5, 0.4]), np.array([0.6, 0.3, 0.1]), 0.2, 0.7
    f_U, f = pi * f_P + (1 - pi) * f_N, share * f_P + (1 - share) * f_N
    assert score_at((f_P - f_N) / f_U, share, pi) == pytest.approx((f_P - f_N) / f)


def test_every_bet_of_the_change_rule_has_the_mean_payoff_one(model):
    rule = ChangeRule.from_reference(model.reference)
    rule.complete_reference(PRIOR, PRIOR)
    assert np.exp(rule._tables).mean(axis=2) == pytest.approx(1)
    assert len(rule.shifts) > 8 and (rule.shifts < 0).any() and (rule.shifts > 0).any()


def test_no_bet_of_the_assumption_rule_has_a_mean_payoff_above_one(model):
    rule = AssumptionRule.from_reference(model.reference, model.reference)
    assert np.exp(rule._payoffs(rule.pool, 0.0)).mean(axis=3) == pytest.approx(1)
    careful = np.exp(rule._payoffs(rule.pool, 0.5)).mean(axis=3)
    assert (careful < 1).all() and (careful > 0.9).all()


def test_functions_without_a_gap_have_the_mean_zero_in_every_mixture_of_the_classes():
    # the exact distributions of P, U, the units so far and a batch on 20 levels, and a fine grid of ranks in each level
    rng = np.random.default_rng(1)
    P, U = rng.dirichlet(np.ones(20), size=3), rng.dirichlet(np.full(20, 3.0), size=3)
    pool, batch = 0.7 * U + 0.3 * P, 0.2 * U + 0.8 * P
    q, error = gap_free_functions(1e9 * pool, 100 * P, 400 * U)
    ends = np.concatenate([np.zeros((3, 1)), np.cumsum(pool, axis=1)], axis=1)
    for k in range(3):
        inside = ends[k, :-1, None] + np.diff(ends[k])[:, None] * (np.arange(20_000) + 0.5) / 20_000
        values = q[k][:, np.minimum((inside * RANK_BINS).astype(int), RANK_BINS - 1)].mean(axis=2)
        assert np.abs(values @ np.stack([P[k] - U[k], batch[k], pool[k]], axis=1)).max() < 1e-4
        spread = [values**2 @ share - (values @ share) ** 2 for share in (P[k], U[k])]
        assert error[k] == pytest.approx(np.sqrt(spread[0] / 100 + spread[1] / 400), rel=1e-3)


def largest_evidence(model, prior, share, size, batches, rng):
    """Return the largest evidence of the assumption rule in batches, the share of which changes after 20."""
    rule = AssumptionRule.from_reference(model.reference, model.reference)
    pools = [batch(model, k, 20_000, rng).features for k in (0.0, 1.0)]
    evidence = []
    for number in range(batches):
        is_positive = rng.random(size) < (prior if number < 20 else share)
        features = np.concatenate([pools[k][rng.integers(20_000, size=np.sum(is_positive == k))] for k in (0, 1)])
        evidence.append(rule.update(rng.permutation(features), rng))
    return max(evidence)


@pytest.mark.parametrize(("share", "size"), [(0.5, 500), (0.9, 500), (0.9, 10)])
def test_the_assumption_rule_ignores_a_large_change_of_the_share(model, share, size):
    assert largest_evidence(model, PRIOR, share, size, 120, np.random.default_rng(3)) < np.log(1000)


def test_the_assumption_rule_ignores_a_fall_from_a_high_share():
    rng = np.random.default_rng(4)
    tables = Table("positive", rows(1.0, 300, rng)), Table("unlabeled", rows(0.9, 1500, rng))
    model = MonitorModel.fit(*tables, 0.9)
    assert largest_evidence(model, 0.9, 0.1, 200, 80, rng) < np.log(1000)


def test_the_evidence_of_no_change_has_the_mean_number_of_batches(model):
    # E M_t = t exactly if nothing changes; the mean over runs of bounded bets is close to it
    rng, totals = np.random.default_rng(2), []
    labels = rng.random(1500) < 0.3
    for _ in range(400):
        values = rng.permutation(labels)[:120] + 0.0  # any exchangeable numbers will do
        rule = ChangeRule(np.array([0.5]), np.array([0.0, 0.0]))
        rule.pool = np.bincount(values[:60].astype(int), minlength=2).astype(float)
        rule.set_shape(np.where(np.arange(200) < 140, -0.3, 0.7))
        for number in range(3):
            rule.update(values[60 + 20 * number : 80 + 20 * number], number, rng)
        totals.append(np.exp(rule.evidence))
    error = np.std(totals) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - 3) < 4 * error + 1e-9
    assert error < 0.5


def test_a_change_is_found_with_its_start(model):
    rng = np.random.default_rng(3)
    rule = ChangeRule.from_reference(model.reference)
    rule.complete_reference(PRIOR, PRIOR)
    for number in range(10):
        evidence = rule.update(batch(model, PRIOR, 500, rng).score, number, rng)
    assert evidence < np.log(1000)
    for number in range(10, 14):
        evidence = rule.update(batch(model, 0.35, 500, rng).score, number, rng)
    assert evidence > np.log(1000)
    assert rule.likely_start == 10
    rule.restart()
    assert rule.pool.sum() == 4 * 500 and rule.evidence == -np.inf and rule.origin == 10


def test_merged_starts_keep_their_wealth_and_their_units():
    rng = np.random.default_rng(4)
    starts = Starts(np.arange(6), 100.0 * np.arange(6), rng.integers(0, 9, (6, 4)) + 0.0, rng.normal(size=(6, 3)))
    wealth, units = np.exp(starts.log_wealth).sum(), starts.counts.sum()
    starts.merge_closest(1000.0)
    assert len(starts) == 5
    assert np.exp(starts.log_wealth).sum() == pytest.approx(wealth) and starts.counts.sum() == units


def test_a_source_without_errors_has_the_share_of_its_mean(model):
    mean_P, mean_U, _, _ = model.mean_errors(model.values)
    for share in (0.1, 0.5, 0.9):
        mean = mean_P - (mean_P - mean_U) * (1 - share) / (1 - PRIOR)
        low, high = share_bounds(model, model.values, mean, 0.95)
        assert low < share < high
    bound = mean_at(model, model.values, 0.4, 1, 0.95)
    assert share_bounds(model, model.values, bound, 0.95)[0] == pytest.approx(0.4, abs=1e-6)
    bound = mean_at(model, model.values, 0.4, -1, 0.95)
    assert share_bounds(model, model.values, bound, 0.95)[1] == pytest.approx(0.4, abs=1e-6)


@pytest.mark.parametrize(("side", "quiet", "loud"), [(1, 0.2, 0.55), (-1, 0.5, 0.15)])
def test_the_level_rule_sees_a_share_beyond_the_level_and_no_other(model, side, quiet, loud):
    rng = np.random.default_rng(5)
    for share, is_loud in ((quiet, False), (loud, True)):
        rule = LevelRule.from_model(model, 0.35, side, 0.05)
        for _ in range(12):
            evidence = rule.update(batch(model, share, 300, rng).levels, None, None)
        assert (evidence > np.log(40)) == is_loud


def test_weights_and_groups_of_one_row_are_plain_rows(model):
    levels = batch(model, 0.5, 200, np.random.default_rng(6)).levels
    arguments = ((None, None), (np.ones(200), None), (None, np.arange(200)), (np.ones(200), np.arange(200)))
    evidence = [LevelRule.from_model(model, 0.3, 1, 0.05).update(levels, *each) for each in arguments]
    assert evidence == pytest.approx([evidence[0]] * 4)


def test_groups_have_less_evidence_than_independent_rows(model):
    levels = np.repeat(batch(model, 0.5, 100, np.random.default_rng(7)).levels, 4)
    alone = LevelRule.from_model(model, 0.3, 1, 0.05).update(levels, None, None)
    grouped = LevelRule.from_model(model, 0.3, 1, 0.05).update(levels, None, np.repeat(np.arange(100), 4))
    assert grouped < alone


def test_a_level_that_the_source_leaves_open_never_alarms(model):
    from dataclasses import replace

    from priorshift.inference.prior_knowledge import read_prior

    open_model = replace(model, prior=read_prior((0.0, 0.99)))
    rule = LevelRule.from_model(open_model, 0.995, 1, 0.05)
    assert not rule.can_alarm
    assert rule.update(np.full(1000, len(model.values) - 1), None, None) < 1


def test_the_assumption_rule_ignores_label_shift_and_sees_drift(model):
    rng = np.random.default_rng(8)
    shifted, drifted = (AssumptionRule.from_reference(model.reference, model.reference) for _ in range(2))
    for _ in range(10):
        quiet = shifted.update(batch(model, 0.5, 300, rng).features, rng)
        table = rows(PRIOR, 300, rng)
        table[:, 1] *= 2
        loud = drifted.update(model.score_rows(Table("batch", table)).features, rng)
    assert quiet < np.log(200) < loud
    assert model.feature_names[drifted.likely_feature] in ("the scores", "column '1'")


@pytest.mark.slow
def test_large_batches_keep_the_stated_run_length_and_do_not_make_the_rules_sleep(model):
    # looked at after each batch only, the assumption rule alarms every 300 batches instead of every 20
    rng, alarms, batches, stated = np.random.default_rng(9), {"change": 0, "assumption": 0}, 1500, 20
    assumption = AssumptionRule.from_reference(model.reference, model.reference)
    change = ChangeRule.from_reference(model.reference)
    change.complete_reference(PRIOR, PRIOR)
    pool = model.score_rows(Table("rows", rows(PRIOR, 50_000, rng)))
    assumption.pool, change.pool = np.zeros_like(assumption.pool), np.zeros_like(change.pool)
    for number in range(batches):
        drawn = rng.integers(50_000, size=2000)
        for name, evidence in (
            ("change", change.update(pool.score[drawn], number, rng)),
            ("assumption", assumption.update(pool.features[drawn], rng)),
        ):
            if evidence >= np.log(stated):
                alarms[name] += 1
                (change if name == "change" else assumption).restart()
    for count in alarms.values():
        assert 0.8 * stated < batches / count < 4 * stated


def test_a_grid_without_units_has_the_same_levels(model):
    empty = model.reference.without_units()
    assert isinstance(empty, Reference) and not empty.score_counts.any() and not empty.feature_counts.any()
    assert np.array_equal(empty.score_edges, model.reference.score_edges)
