"""The upper bound of the source prior: it holds whatever the negatives look like, and excludes much larger priors."""

import numpy as np
import pytest

from priorshift.problem import Source
from priorshift.scores.scored_source import ScoredSource, largest_prior

ERROR = 0.01


def scored(positive, unlabeled, seed):
    X = np.concatenate([positive, unlabeled])
    source = Source.from_labels(
        X, np.arange(len(X)) < len(positive), shared=None, scenario="case-control", standardize=True
    )
    return ScoredSource.fit(source, None, 2, 5, np.random.default_rng(seed))


def samples(prior, hidden, distance, rows, rng):
    """Two normal columns; a share `hidden` of the negatives has the law of the positives."""
    is_positive = rng.random(rows) < prior
    looks_positive = is_positive | (rng.random(rows) < hidden)
    unlabeled = rng.normal(size=(rows, 2)) + distance * looks_positive[:, None]
    return rng.normal(size=(rows // 5, 2)) + distance, unlabeled


@pytest.mark.parametrize(("prior", "hidden", "distance"), [(0.05, 0.3, 2.0), (0.3, 0.0, 2.0), (0.7, 0.5, 1.0)])
def test_the_bound_holds_and_is_close(prior, hidden, distance):
    """Of 15 draws none is expected to be above; the bound exceeds the share that looks positive by sampling error."""
    bounds = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        bounds.append(largest_prior(scored(*samples(prior, hidden, distance, 1500, rng), seed), ERROR))
    looks_positive = prior + (1 - prior) * hidden
    assert min(bounds) > prior
    assert sum(bound > looks_positive for bound in bounds) >= 14
    if distance == 2.0:
        assert np.mean(bounds) < 1.8 * looks_positive


def test_a_bound_is_at_most_one_and_needs_no_separation():
    rng = np.random.default_rng(0)
    same = rng.normal(size=(200, 2)), rng.normal(size=(300, 2))
    assert largest_prior(scored(*same, 0), ERROR) == 1.0
    constant = np.ones((50, 1)), np.concatenate([np.ones((40, 1)), np.zeros((60, 1))])
    assert 0.3 < largest_prior(scored(*constant, 0), ERROR) <= 1.0
