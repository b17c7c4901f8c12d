"""Intervals of differences and ratios of shares: closed forms, and averages over cases by simulation."""

import numpy as np
import pytest
from scipy.special import ndtri

from priorshift.inference.contrasts import difference_interval, ratio_interval

V = np.array([[0.0004, -0.0001], [-0.0001, 0.0009]])
Z = float(ndtri(0.975))


def test_a_difference_with_one_case_is_normal():
    b, w = np.array([0.5, 0.2]), np.array([[1.0, -1.0]])
    error = np.sqrt(V[0, 0] + V[1, 1] - 2 * V[0, 1])
    assert difference_interval(w, b, V, 0.95) == pytest.approx((0.3 - Z * error, 0.3 + Z * error))
    assert difference_interval(w, np.array([0.99, 0.0]), 100 * V, 0.95)[1] == 1.0


@pytest.mark.parametrize("shares", [(0.5, 0.2), (0.05, 0.4), (0.3, 0.3)])
def test_a_ratio_with_one_case_is_fiellers(shares):
    """The roots of (y² − z²V_yy)ρ² − 2(xy − z²V_xy)ρ + x² − z²V_xx."""
    x, y = shares
    roots = np.roots([y**2 - Z**2 * V[1, 1], -2 * (x * y - Z**2 * V[0, 1]), x**2 - Z**2 * V[0, 0]])
    found = ratio_interval(np.array([shares]), V[None], 0.95)
    np.testing.assert_allclose(found, np.sort(roots), rtol=1e-8)
    assert found[0] < x / y < found[1]


def test_a_ratio_has_no_upper_end_if_the_second_share_may_be_zero_and_the_lower_end_zero_if_the_first_may_be():
    assert ratio_interval(np.array([[0.5, 0.01]]), V[None], 0.95)[1] == np.inf
    low, high = ratio_interval(np.array([[0.01, 0.5]]), V[None], 0.95)
    assert low == 0 and 0.02 < high < 0.2
    assert ratio_interval(np.array([[-0.2, 0.5]]), V[None], 0.95)[0] == 0


def test_cases_are_averaged():
    """The confidence in a ratio is the mean of those of the cases, here by draws of a case and of its error."""
    rng = np.random.default_rng(0)
    shares = np.array([[0.5, 0.2], [0.4, 0.3], [0.45, 0.25]])
    low, high = ratio_interval(shares, np.stack([V] * 3), 0.9)
    errors = rng.multivariate_normal(np.zeros(2), V, 200_000)
    for end, level in ((low, 0.05), (high, 0.95)):
        # the share of cases and errors in which the ratio that leaves no residual is at most `end`
        residual = shares[:, 0] - end * shares[:, 1]
        noise = errors[:, 0] - end * errors[:, 1]
        assert (noise[:, None] >= residual).mean() == pytest.approx(level, abs=0.003)


def test_the_ratio_of_two_precise_shares_is_their_ratio():
    assert ratio_interval(np.array([[0.3, 0.6]]), 1e-20 * V[None], 0.95) == pytest.approx((0.5, 0.5))
