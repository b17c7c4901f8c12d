import numpy as np
import pytest

from priorshift.adapt import shifted_posterior, shifted_threshold
from priorshift.errors import InputError

PRIORS = [0.1, 0.2, 0.5, 0.8]


def population(prior, n, rng):
    y = rng.random(n) < prior
    return rng.normal(size=(n, 2)) + y[:, None], y


def posterior(X, prior):
    """P(Y=1|x) for N(0, I) against N(1, I) in two dimensions."""
    return 1 / (1 + (1 - prior) / prior * np.exp(1 - X.sum(axis=1)))


@pytest.mark.parametrize("source", PRIORS)
@pytest.mark.parametrize("target", PRIORS)
def test_corrected_posterior_is_the_targets(source, target):
    X, _ = population(target, 200, np.random.default_rng(0))
    np.testing.assert_allclose(
        shifted_posterior(posterior(X, source), source, target), posterior(X, target), rtol=1e-12
    )


@pytest.mark.parametrize("source", PRIORS)
@pytest.mark.parametrize("target", PRIORS)
def test_threshold_is_where_the_corrected_posterior_is_one_half(source, target):
    threshold = shifted_threshold(source, target)
    assert shifted_posterior(threshold, source, target) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("source", PRIORS)
@pytest.mark.parametrize("target", PRIORS)
def test_simulation_decides_for_our_threshold_and_against_the_printed_one(source, target):
    X, y = population(target, 200_000, np.random.default_rng(1))
    p = posterior(X, source)

    def accuracy(threshold):
        return np.mean((p > threshold) == y)

    printed = (1 - source) * target / ((1 - target) * source + (1 - source) * target)
    ours = accuracy(shifted_threshold(source, target))
    if source == target:
        assert ours == accuracy(0.5) == accuracy(printed)
        return
    # ours is the Bayes rule of the target; 200,000 rows know a difference of accuracies to 0.001
    assert ours > accuracy(0.5)
    assert ours > accuracy(printed) + 0.01


def test_priors_at_the_ends_decide_for_everything():
    assert shifted_threshold(0.2, 1.0) == 0
    assert shifted_threshold(0.2, 0.0) == 1
    np.testing.assert_array_equal(shifted_posterior([0.0, 0.3, 1.0], 0.2, 1.0), [1, 1, 1])
    np.testing.assert_array_equal(shifted_posterior([0.0, 0.3, 1.0], 0.2, 0.0), [0, 0, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shifted_threshold(0, 0.5), "source_prior is 0, but it must be a number strictly between 0 and 1"),
        (lambda: shifted_threshold(0.5, 1.5), "target_prior is 1.5, but it must be a number from 0 to 1"),
        (lambda: shifted_posterior([0.5, 1.5], 0.2, 0.5), r"p holds numbers outside \[0, 1\] or NaN; pass posterior"),
        (lambda: shifted_posterior([np.nan], 0.2, 0.5), "p holds numbers outside"),
    ],
)
def test_what_is_no_probability_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
