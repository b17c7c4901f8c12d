"""Calibrated posteriors of several classes: against known densities, and against labels that nobody saw."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import norm

import priorshift as ps
from priorshift.scores import class_posteriors
from priorshift.scores.class_posteriors import ClassPosteriors

MEANS, PRIORS = np.array([-2.0, 2.0, 0.0]), np.array([0.2, 0.3, 0.5])  # two classes and the rest


def densities(x):
    return norm.pdf(x[:, None], MEANS, 1)


def draw(rng, rows, shares):
    label = rng.choice(len(MEANS), rows, p=shares)
    return rng.normal(MEANS[label], 1), label


def samples(rng, rows, distort):
    """Ratios of two labelled samples and the source to the source, distorted, and W."""
    x = [rng.normal(MEANS[0], 1, rows), rng.normal(MEANS[1], 1, rows), draw(rng, 3 * rows, PRIORS)[0]]
    return [distort(ratios(values)) for values in x], [np.full(len(values), 1 / len(values)) for values in x]


def ratios(x):
    f = densities(x)
    return f[:, :2] / (f @ PRIORS)[:, None]


W = np.vstack([np.eye(3)[:2], PRIORS])


@pytest.mark.parametrize("power", [1.0, 0.5, 1.2], ids=["exact", "too flat", "too steep"])
def test_distorted_ratios_give_the_posteriors_of_the_densities(power):
    rng = np.random.default_rng(0)
    fitted = ClassPosteriors.fit(*samples(rng, 4000, lambda w: w**power), W, has_rest=True)
    x = np.linspace(-3.5, 3.5, 200)
    q = fitted.densities(ratios(x) ** power) * PRIORS
    truth = densities(x) * PRIORS
    error = q / q.sum(axis=1, keepdims=True) - truth / truth.sum(axis=1, keepdims=True)
    assert np.abs(error).mean() < (0.01 if power == 1 else 0.03)


def test_the_gradient_is_that_of_the_likelihood(monkeypatch):
    rng, seen = np.random.default_rng(0), []

    def spy(loss, start, **named):
        at = start + 0.1 * rng.normal(size=len(start))
        seen.append(np.abs(loss(at)[1] - approx_fprime(at, lambda z: loss(z)[0], 1e-6)).max())
        return original(loss, start, **named)

    original = class_posteriors.minimize
    monkeypatch.setattr(class_posteriors, "minimize", spy)
    with_errors = np.array([[0.9, 0.0, 0.1], [0.0, 1.0, 0.0], PRIORS])
    ClassPosteriors.fit(*samples(rng, 60, lambda w: w), with_errors, has_rest=True)
    ClassPosteriors.fit(*samples(rng, 60, lambda w: w), np.eye(3), has_rest=False)
    assert len(seen) == 2 and max(seen) < 1e-5


@pytest.mark.parametrize("rest", [True, False])
def test_posteriors_of_a_target_are_calibrated(rest):
    """Rows of all classes with a posterior near p are of the class in about the share p of cases."""
    source = {"a": 0.2, "b": 0.1} if rest else {"a": 0.6, "b": 0.4}
    target = {"a": 0.1, "b": 0.4} if rest else {"a": 0.2, "b": 0.8}
    predicted, right = [], []
    for seed in range(6):
        s = ps.simulate.gaussian_classes(source, target, dimension=4, random_state=seed)
        y = np.array(s.target_labels)
        if rest:
            shift = ps.MulticlassShift(source, random_state=0).fit(s.X, s.y)
        else:
            X, labels = np.concatenate(list(s.classes.values())), np.repeat(list(s.classes), 200)
            shift = ps.MulticlassShift(rest=False, random_state=0).fit(X, labels)
        posteriors = shift.posteriors(s.target, shift.estimate(s.target))
        np.testing.assert_allclose(posteriors.sum(axis=1), 1)
        predicted.append(posteriors.ravel())
        right.append((y[:, None] == shift.classes_).ravel())
    p, is_right = np.concatenate(predicted), np.concatenate(right)
    for low in np.arange(0, 1, 0.2):
        inside = (p >= low) & (p < low + 0.2)
        assert abs(p[inside].mean() - is_right[inside].mean()) < 0.05  # at most 0.02 by chance
