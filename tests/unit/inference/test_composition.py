"""What samples consist of: cases of ranges and distributions, and the joint region that they give."""

import numpy as np
import pytest

import priorshift as ps
from priorshift.inference.class_knowledge import LabelErrors, SourceShares
from priorshift.inference.composition import Composition
from priorshift.inference.prior_knowledge import PointPrior, RangePrior

SHARES = {"a": 0.2, "b": 0.3}


@pytest.fixture(scope="module")
def fitted():
    s = ps.simulate.gaussian_classes(SHARES, {"a": 0.5, "b": 0.1}, random_state=0)
    return ps.MulticlassShift(SHARES, random_state=0).fit(s.X, s.y), s.target


def compose(*priors):
    shares = SourceShares(priors, (False,) * len(priors))
    return Composition.with_rest(shares, LabelErrors(), np.random.default_rng(0))


def test_cases_fill_the_box_of_two_ranges_and_reach_its_corners():
    composition = compose(RangePrior(0.1, 0.3), RangePrior(0.05, 0.2))
    pi = composition.region_cases[:, -1, :2]
    for corner in ((0.1, 0.05), (0.1, 0.2), (0.3, 0.05), (0.3, 0.2), (0.2, 0.1)):
        assert np.abs((pi - corner) / (0.2, 0.15)).max(axis=1).min() < 0.05
    assert (pi.min(axis=0) == (0.1, 0.05)).all() and np.allclose(pi.max(axis=0), (0.3, 0.2))
    np.testing.assert_allclose(composition.region_cases[:, -1].sum(axis=1), 1)
    assert compose(PointPrior(0.2), PointPrior(0.3)).region_cases.shape == (1, 3, 3)


def test_the_joint_region_of_a_range_contains_that_of_every_value_in_it(fitted):
    shift, target = fitted
    by_range = shift.set_params(source_prior={"a": (0.1, 0.4), "b": (0.2, 0.4)}).estimate(target)
    estimate = {name: one.value for name, one in by_range.items()}
    assert by_range.contains(estimate)  # it was in a gap between the regions of the two ends
    for a, b in ((0.1, 0.4), (0.25, 0.3), (0.4, 0.2), (0.17, 0.23)):
        known = shift.set_params(source_prior={"a": a, "b": b}).estimate(target)
        raw = {name: one.raw for name, one in known.items()}
        assert by_range.p_value(raw) > 0.9 < known.p_value(raw)
