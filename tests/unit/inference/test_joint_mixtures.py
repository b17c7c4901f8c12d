"""Joint errors of targets that are mixtures of the same samples, against sums over observations."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from priorshift.inference.affine_mixture import AffineMixture, Influence, SampleValues
from priorshift.inference.class_knowledge import LabelErrors, SourceShares
from priorshift.inference.composition import Composition
from priorshift.inference.joint_mixtures import JointMixtures
from priorshift.inference.prior_knowledge import PointPrior, RangePrior

PRIORS = (PointPrior(0.2), PointPrior(0.3))


def values(rng, rows, mean, observation):
    mass = rng.dirichlet(5 * np.ones(rows))
    return SampleValues(rng.normal(size=(rows, 2)) + mean, mass, np.asarray(observation), float(rows))


def mixtures(rng, common=0):
    """Two targets of one source; the first `common` rows of both are observations of the source."""
    means = np.array([[2.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    samples = [values(rng, 60, mean, np.arange(60) + 60 * k) for k, mean in enumerate(means)]
    found = []
    for first in (1000, 2000):
        numbers = np.r_[np.arange(common), np.arange(first, first + 80 - common)]
        target = values(rng, 80, [0.6, 0.8], numbers)
        found.append(AffineMixture.from_values(samples, target, keep_influence=True))
    return found


@pytest.mark.parametrize("common", [0, 10])
def test_the_influence_of_observations_adds_up_to_the_covariance(common):
    """The covariance comes from V(b), with its cross terms, and the influence from the observations themselves."""
    for mixture in mixtures(np.random.default_rng(0), common):
        influence = mixture.influence
        np.testing.assert_allclose(influence.values.T @ influence.values, mixture.covariance, atol=1e-12)
        np.testing.assert_allclose(influence.values.sum(axis=1), 0, atol=1e-12)  # the coefficients add up to 1
        assert len(np.unique(influence.numbers)) == len(influence.numbers)


def test_the_covariance_of_two_targets_is_that_of_common_observations():
    first, second = mixtures(np.random.default_rng(0), common=10)
    joint = JointMixtures.from_mixtures([first, second])
    expected = np.zeros((3, 3))
    for number, row in zip(first.influence.numbers, first.influence.values, strict=True):
        for other in second.influence.values[second.influence.numbers == number]:
            expected += np.outer(row, other)
    np.testing.assert_allclose(joint.covariance[0, 1], expected, atol=1e-12)
    change, covariance = joint.contrast(0, 1)
    np.testing.assert_allclose(change, second.coefficients - first.coefficients)
    np.testing.assert_allclose(covariance, first.covariance + second.covariance - expected - expected.T, atol=1e-12)
    alone = JointMixtures.from_mixtures([first, replace(second, influence=None)])
    assert not alone.covariance[0, 1].any()


def test_the_difference_of_a_class_with_known_and_uncertain_composition():
    joint = JointMixtures.from_mixtures(mixtures(np.random.default_rng(1)))
    rng = np.random.default_rng(0)

    def composition(*priors):
        return Composition.with_rest(SourceShares(priors, (False, False)), LabelErrors(), rng)

    known = composition(*PRIORS)
    estimate, (low, high), error, p = joint.difference(0, 1, known, 0, 0.9)
    change, covariance = joint.contrast(0, 1)
    w = np.array([1.0, 0.0, 0.2])
    assert estimate == pytest.approx(w @ change) and error == pytest.approx(np.sqrt(w @ covariance @ w))
    assert (low, high) == pytest.approx((estimate - ndtri(0.95) * error, estimate + ndtri(0.95) * error))
    assert joint.difference(1, 0, known, 0, 0.9)[0] == pytest.approx(-estimate)
    level = joint.difference(0, 1, known, 0, 1 - p)[1]  # the interval of confidence 1 − p just excludes 0
    assert min(map(abs, level)) == pytest.approx(0, abs=1e-6)
    ranges = composition(RangePrior(0.1, 0.6), PRIORS[1])
    wide = joint.difference(0, 1, ranges, 0, 0.9)[1]
    ends = [joint.difference(0, 1, composition(PointPrior(end), PRIORS[1]), 0, 0.9)[1] for end in (0.1, 0.6)]
    assert wide == pytest.approx((min(ends[0][0], ends[1][0]), max(ends[0][1], ends[1][1])))


def test_equality_of_two_targets_is_one_quadratic_form():
    joint = JointMixtures.from_mixtures(mixtures(np.random.default_rng(2)))
    change, covariance = joint.contrast(0, 1)
    test = joint.equality()
    assert test.freedom == 2
    assert test.statistic == pytest.approx(change[:2] @ np.linalg.solve(covariance[:2, :2], change[:2]))
    same = JointMixtures(np.stack([joint.coefficients[0]] * 2), joint.covariance)
    assert same.equality().p_value == 1


def test_influences_of_one_observation_are_added():
    parts = [(np.array([3, 1]), np.array([[1.0], [2.0]])), (np.array([1]), np.array([[5.0]]))]
    influence = Influence.from_parts(parts, np.array([[2.0], [-2.0]]))
    assert influence.numbers.tolist() == [1, 3] and influence.values.tolist() == [[14.0, -14.0], [2.0, -2.0]]
