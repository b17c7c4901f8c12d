"""Tests of a ratio, given that P was found distinguishable from U."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr

from priorshift.errors import WeakSeparationWarning
from priorshift.scores.ratio_test import _given_separation, warn_not_separable


@pytest.mark.parametrize("correlation", [-0.95, -0.5, 0.0, 0.4, 0.9])
@pytest.mark.parametrize("separation", [-1.0, 1.0, 3.0])
def test_levels_of_the_true_ratio_are_standard_normal_among_the_separations_that_are_shown(correlation, separation):
    """s and the separation are normal with this correlation; the limit is 2, and the true separation does not matter."""
    rng, limit = np.random.default_rng(0), 2.0
    s, other = rng.normal(size=(2, 400_000))
    seen = separation + correlation * s + np.sqrt(1 - correlation**2) * other
    shown = np.flatnonzero(seen > limit)[:20_000]
    excess = seen[shown] - limit
    level = _given_separation(-s[shown], excess, np.full(len(shown), correlation))
    confidence = ndtr(level)
    for p in (0.025, 0.1, 0.5, 0.9, 0.975):
        error = 4 * np.sqrt(p * (1 - p) / len(shown))
        assert (confidence < p).mean() == pytest.approx(p, abs=error)
    if correlation == -0.95 and separation == -1.0:  # without the condition, they are not
        assert abs((ndtr(-s[shown]) < 0.025).mean() - 0.025) > 0.01


def test_a_clear_separation_changes_nothing():
    level = np.linspace(-8, 8, 81)
    np.testing.assert_allclose(_given_separation(level, 40.0, np.full(81, -0.9)), level, atol=1e-9)
    np.testing.assert_allclose(_given_separation(level, 40.0, np.full(81, 0.9)), level, atol=1e-9)


def test_levels_far_in_the_tails_stay_finite_and_ordered():
    level = np.linspace(-37, 37, 149)
    for correlation in (-0.9, 0.9):
        found = _given_separation(level, 1e-3, np.full(len(level), correlation))
        assert np.isfinite(found).all() and (np.diff(found) >= -1e-9).all()


@pytest.mark.parametrize("correlation", [-0.9, -0.05, 0.05, 0.9])
def test_levels_beyond_the_smallest_tail_stay_finite(correlation):
    """A normal tail beyond 38 standard errors is no number; far from the limit, levels are nearly what they were."""
    level = np.array([-1e7, -200.0, -46.9, 46.9, 200.0, 1e7])
    found = _given_separation(level, 77.0, np.full(len(level), correlation))
    assert np.isfinite(found).all() and (np.diff(found) > 0).all()
    is_far = np.sign(level) == np.sign(correlation)  # from where the statistic is cut off
    np.testing.assert_allclose(found[is_far], level[is_far], rtol=1e-9)


@pytest.mark.parametrize(
    ("separation", "words"),
    [
        (-0.4, "their separation is -0.4 times its standard error"),
        (-1e9, "their separation is negative, and its standard error is nearly 0"),
        (float("inf"), "their separation is positive, and its standard error is nearly 0"),
    ],
)
def test_a_separation_without_sampling_error_is_described_in_words(separation, words):
    with pytest.warns(WeakSeparationWarning) as caught:
        warn_not_separable(SimpleNamespace(separation=separation), (5, 9), "every prior is possible")
    assert f"({words}), so every prior is possible." in str(caught[0].message)
    assert ("swapped" in str(caught[0].message)) == (separation < -5)
