"""Tables with few distinct rows, whose scores are tied: means over positives, coverage and the label-shift test."""

import numpy as np
import pytest

import priorshift as ps
from priorshift.diagnosis.identification import DiagnosisInput
from priorshift.diagnosis.shift_tests import label_shift_test
from priorshift.problem import Source
from priorshift.scores import mixture
from priorshift.scores.mixture import p_values
from priorshift.scores.ratio_test import mean_over_ranks, tie_shares
from priorshift.sketch import Histogram, ScoreModel


def own_counts(scores):
    return mixture.histogram(p_values(scores, scores))[None]


def expected_mean(h, probabilities, rng, draws=4000, positives=60):
    """Mean of h at the p-value of a new positive among `positives` others, all drawn from a discrete law."""
    total = 0.0
    for _ in range(draws):
        drawn = rng.choice(len(probabilities), positives + 1, p=probabilities).astype(float)
        total += h[mixture.bins(p_values(drawn[1:], drawn[:1]))[0]]
    return total / draws


def test_without_ties_every_rank_is_equally_likely():
    scores = np.random.default_rng(0).normal(size=73)
    assert not tie_shares(own_counts(scores)).any()
    h = np.random.default_rng(1).normal(size=(1, 4, mixture.BINS))
    attainable = mixture.bins((np.arange(74) + 0.5) / 74)
    np.testing.assert_allclose(
        mean_over_ranks(h, 73, np.zeros((1, mixture.BINS)))[0, :, 0], h[0][:, attainable].mean(axis=1)
    )


@pytest.mark.parametrize("probabilities", [(0.3, 0.7), (0.1, 0.2, 0.3, 0.4), (0.05,) * 20])
def test_the_mean_over_tied_positives_is_that_of_a_new_positive(probabilities):
    """On average over samples of positives, E_P h is the mean of h at the p-value of one more positive."""
    rng = np.random.default_rng(2)
    h = np.cos(3 * np.arange(mixture.BINS) / mixture.BINS)
    estimates = []
    for _ in range(1000):
        scores = rng.choice(len(probabilities), 60, p=probabilities).astype(float)
        estimates.append(mean_over_ranks(h[None, None], 60, tie_shares(own_counts(scores)))[0, 0, 0])
    assert np.mean(estimates) == pytest.approx(expected_mean(h, probabilities, rng), abs=0.03)


def binary(columns, positive, rng):
    """Rows of a few independent yes-or-no columns."""
    of_positives, of_negatives = (0.7, 0.6, 0.75)[:columns], (0.3, 0.35, 0.5)[:columns]
    chance = np.where(positive[:, None], of_positives, of_negatives)
    return (rng.random(chance.shape) < chance).astype(float)


def samples(columns, rows, seed, source_prior=0.3, target_prior=0.6):
    rng = np.random.default_rng([seed, columns, rows])
    P = binary(columns, np.ones(rows // 4, dtype=bool), rng)
    return P, *(binary(columns, rng.random(rows) < prior, rng) for prior in (source_prior, target_prior))


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_coverage_and_bias_with_few_distinct_rows(columns):
    """Twelve draws of 12,000 rows, where a bias of 0.02 would leave few intervals that cover."""
    # two repeats: rows that are equal have scores that hardly differ between them
    estimates = [
        ps.estimate_prior(*samples(columns, 12_000, seed), method=ps.WitnessShift(0.3, repeats=2, random_state=seed))
        for seed in range(12)
    ]
    assert sum(0.6 in estimate.interval for estimate in estimates) >= 10
    error = np.mean([estimate.raw - 0.6 for estimate in estimates])
    spread = np.mean([estimate.standard_error for estimate in estimates])
    assert abs(error) < 3 * spread / np.sqrt(12)


def test_rows_and_counts_agree_where_scores_are_tied():
    """Rows are counted from 20,000 on, and streams always: both use the same means over positives."""
    P, U, T = samples(2, 12_000, seed=0)
    by_rows = ps.estimate_prior(P, U, T, source_prior=0.3, random_state=0)
    model = ScoreModel.fit(P, U, random_state=0)
    by_counts = ps.estimate_prior(*(Histogram.from_sample(x, model) for x in (P, U, T)), source_prior=0.3)
    assert by_counts.raw == pytest.approx(by_rows.raw, abs=0.3 * by_rows.standard_error)
    assert by_counts.standard_error == pytest.approx(by_rows.standard_error, rel=0.05)


def label_shift_p_value(P, U, T, seed):
    """The p-value of a diagnosis, without its other parts."""
    source = Source.from_labels(
        np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)]), scenario="case-control", standardize=True
    )
    shift = ps.WitnessShift(0.3, random_state=seed).fit_source(source)
    fit = shift.fit_target(source.layout.read(T))
    inputs = DiagnosisInput(source, fit, rng=np.random.default_rng(shift.scored_.seed))
    return label_shift_test(inputs, retest_below=0.1, retest_resamples=4999).p_value


@pytest.mark.parametrize("columns", [1, 2])
def test_label_shift_is_rarely_rejected_with_few_distinct_rows(columns):
    rejected = [label_shift_p_value(*samples(columns, 1500, seed), seed) < 0.05 for seed in range(8)]
    assert sum(rejected) <= 2
