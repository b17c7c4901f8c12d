import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priorshift.scores.level_sets import SampleScores, ShareCurve, margin


def brute(positive, population, least):
    """Every set {score ≥ t}, over all thresholds that any score gives: counted row by row."""
    thresholds = np.concatenate([positive, population])[:, None]
    above, share = (positive >= thresholds).mean(axis=1), (population >= thresholds).mean(axis=1)
    trusted = above > least
    return (share[trusted] / above[trusted]).min()


def curve_of(positive, population):
    return ShareCurve.from_scores(SampleScores.from_rows(positive), SampleScores.from_rows(population))


scores = st.lists(st.integers(0, 8).map(float), min_size=1, max_size=15).map(np.array)


@given(scores, scores, st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_smallest_ratio_is_that_of_all_thresholds(positive, population, least):
    assert curve_of(positive, population).smallest(least).ratio == pytest.approx(brute(positive, population, least))


@pytest.mark.parametrize("prior", [0.1, 0.25, 0.5, 1.0])
def test_a_score_that_separates_finds_the_prior_exactly(prior):
    """Copies of the positives' scores among lower ones: every level set above them has just the share of positives."""
    positive = np.arange(10.0, 20.0)
    population = np.concatenate([np.tile(positive, round(20 * prior)), np.zeros(200 - 10 * round(20 * prior))])
    assert curve_of(positive, population).smallest(0.3).ratio == pytest.approx(prior, rel=1e-12)


def test_equal_scores_leave_only_the_trivial_bound():
    assert curve_of(np.zeros(5), np.zeros(9)).smallest(0.9).ratio == 1


def test_margin_by_hand():
    m = 50
    assert margin(m) == pytest.approx(np.sqrt(4 * (1 + np.log(25)) / 50) + np.sqrt(np.log(100) / 100), rel=1e-12)
    assert margin(28) < 1 < margin(27)


def test_standard_error_is_that_of_resampled_scores():
    rng = np.random.default_rng(0)
    positive, population = rng.normal(2, 1, 80), rng.normal(0, 1, 300)
    population[:100] += 2
    found = curve_of(positive, population).standard_error(0.5, (80, 300), 4000, np.random.default_rng(1))
    slow = [brute(rng.choice(positive, 80), rng.choice(population, 300), 0.5) for _ in range(1000)]
    # 1000 and 4000 draws know a standard deviation to 2.5 % together
    assert found == pytest.approx(np.std(slow), rel=0.1)


def test_a_share_is_known_as_well_as_by_that_many_independent_rows():
    """By a simulation: the variance of a share of groups of unequal size is that of so many independent rows."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(200), np.tile([1, 2, 3, 6], 50))
    n = len(group)

    def draw():
        values = rng.normal(size=200)[group] + rng.normal(size=n)
        return SampleScores(values, np.full(n, 1 / n), group, np.ones(n, dtype=np.intp))

    drawn = [draw() for _ in range(2000)]
    share = [np.mean(sample.values >= 0) for sample in drawn]
    # 2000 draws know a variance to 3 %
    assert 0.25 / np.var(share) == pytest.approx(np.mean([sample.effective_size(0.0) for sample in drawn]), rel=0.1)
    assert drawn[0].observations == pytest.approx(n**2 / (50 * (1 + 4 + 9 + 36)))
