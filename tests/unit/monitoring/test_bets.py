"""Bets whose expected payoff is one."""

import numpy as np
import pytest

from priorshift.monitoring.evidence import add_bets, allowed_bets, log_mean, log_sum, mean_bounds, start_weight


def test_the_weights_of_all_starts_add_up_to_one():
    assert sum(start_weight(t) for t in range(1, 100_001)) == pytest.approx(1, abs=2e-5)


def test_sums_and_means_of_logarithms():
    values = np.array([-1000.0, -1001.0, -np.inf])
    assert log_sum(values) == pytest.approx(-1000 + np.log(1 + np.exp(-1)))
    assert log_mean(values) == pytest.approx(log_sum(values) - np.log(3))
    assert log_sum(np.array([-np.inf])) == -np.inf


def test_bets_add_up_as_their_recursion_says():
    wealth = np.array([0.0, 2.0])
    with np.errstate(divide="ignore"):
        result = add_bets(np.log(wealth), np.log([1.5, 0.5]), np.log(0.25))
    assert np.exp(result) == pytest.approx([(0 + 0.25) * 1.5, (2 + 0.25) * 0.5])


def test_allowed_bets_never_lose_everything():
    sizes = allowed_bets(np.linspace(-2, 2, 41), low=-1.0, high=4.0)
    assert sizes.size and (1 + sizes * -1.0 > 0).all() and (1 + sizes * 4.0 > 0).all()


def test_bounds_of_a_mean_contain_it_about_as_often_as_stated_even_for_rare_events():
    rng = np.random.default_rng(3)
    for share in (0.01, 0.3):
        wrong = 0
        for _ in range(300):
            positives = rng.binomial(200, share)
            low, high = mean_bounds(
                np.array([0.0, 1.0]), np.ones(2), 0, 1, 0.05, np.array([200.0 - positives, positives])
            )
            wrong += not low <= share <= high
        assert wrong <= 300 * 0.05


def test_bounds_are_not_much_wider_than_normal_ones():
    rng = np.random.default_rng(4)
    values = rng.random(2000)
    low, high = mean_bounds(values, np.ones(2000), 0, 1, 0.05)
    normal = 2 * 1.96 * values.std() / np.sqrt(2000)
    assert low < values.mean() < high
    assert normal < high - low < 2 * normal


def test_bounds_of_groups_of_equal_values_are_those_of_the_groups():
    values = np.random.default_rng(5).random(60)
    single = mean_bounds(values, np.ones(60), 0, 1, 0.05)
    assert mean_bounds(3 * values, np.full(60, 3.0), 0, 1, 0.05) == pytest.approx(single, abs=1e-5)


def test_without_observations_the_bounds_are_the_range():
    assert mean_bounds(np.empty(0), np.empty(0), -1, 2, 0.05) == (-1, 2)
