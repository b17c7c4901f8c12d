"""Density ratios of several classes from calibrated scores."""

import numpy as np

from priorshift.scores.class_scores import Calibration


def ratios_of(probabilities):
    """Return the ratios of rows whose calibrated probabilities are these; the base is last."""
    scores, samples = np.asarray(probabilities, dtype=float), len(probabilities[0])
    # the calibration that changes nothing
    calibration = Calibration(np.zeros(samples), np.ones(samples), np.vstack([np.eye(samples), np.zeros(samples)]))
    return calibration.ratios(scores)


def test_ratios_are_those_to_the_base():
    np.testing.assert_allclose(ratios_of([[0.5, 0.2, 0.3], [0.05, 0.05, 0.9]]), [[5 / 3, 2 / 3], [1 / 18, 1 / 18]])


def test_classes_keep_their_proportions_where_the_base_has_almost_no_density():
    """A base that is a class is absent at rows of other classes."""
    calibrated = Calibration(np.zeros(3), np.ones(3), np.vstack([np.diag([1.0, 1.0, 2.0]), np.zeros(3)]))
    absent = calibrated.ratios(np.array([[2.0, 0.02, 0.01], [0.9, 0.3, 0.01]]))  # the base has 1e-4
    np.testing.assert_allclose(absent[:, 0], 1000)  # the largest ratio, of the largest class
    np.testing.assert_allclose(absent[:, 1], [10, 1000 / 3])  # in proportion to it
