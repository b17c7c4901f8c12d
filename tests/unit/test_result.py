"""How an answer reads."""

import re

import numpy as np
import pytest

import priorshift as ps
from priorshift.formatting import decimals


def estimate(value, low, high, **more):
    interval = None if low is None else ps.Interval(low, high, 0.95, "delta")
    given = dict(value=value, raw=value, interval=interval, standard_error=0.1, source_prior=0.2, negative_ratio=1.0,
                 separation=0.1, method="TCPU", sizes=(9, 9, 9))  # fmt: skip
    return ps.PriorEstimate(**given | more)


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (0.00123, 0.00081, 0.00164, "target prior 0.00123, 95% interval 0.00081 to 0.00164 ("),
        (0.3, 0.25, 0.35, "target prior 0.300, 95% interval 0.250 to 0.350 ("),
        (0.3, 0.295, 0.305, "target prior 0.300, 95% interval 0.295 to 0.305 ("),
        (0.99987, 0.99981, 0.99993, "target prior 0.99987, 95% interval 0.99981 to 0.99993 ("),
        (0.0, 0.0, 0.00021, "target prior 0.00000, 95% interval 0.00000 to 0.00021 ("),
        (np.nan, 0.0, 1.0, "no estimate of the target prior, 95% interval 0.000 to 1.000 ("),
        (0.00042, None, None, "target prior 0.00042 ("),
        (0.42, None, None, "target prior 0.420 ("),
        (0.0, 0.0, 0.0, "target prior 0.000, 95% interval 0.000 to 0.000 ("),
    ],
)
def test_a_rare_class_gets_the_digits_that_its_interval_deserves(value, low, high, words):
    assert str(estimate(value, low, high)).startswith(words)


def left_open(low, high, **more):
    details = {"negative_ratio_interval": [0.5, 0.6], "source_prior_range": [0.02, 0.41]} | more
    return estimate(0.35, low, high, negative_ratio=0.55, source_prior_by="MixturePrior", details=details)


def test_what_the_source_prior_leaves_open_is_a_range_and_the_ratio():
    assert str(left_open(0.12, 0.58)) == (
        "target prior 0.120 to 0.580 with 95% confidence; ratio of negatives 0.550, 0.500 to 0.600 "
        "(TCPU, source prior 0.02 to 0.41 by MixturePrior)"
    )
    assert str(left_open(0.0, 0.58)).startswith("target prior at most 0.580 with 95% confidence; ratio")
    assert str(left_open(0.0, 1.0)).startswith("target prior 0.000 to 1.000 with 95% confidence; ratio")


@pytest.mark.parametrize(
    ("low", "high", "more"),
    [
        (0.25, 0.44, {}),  # narrow
        (0.2, 0.8, {"negative_ratio_interval": [0.2, 0.9]}),  # R itself is poorly known
        (0.2, 0.8, {"negative_ratio_interval": None}),  # no estimate
        (0.2, 0.8, {"negative_ratio_interval": [0.5, float("inf")]}),
        (0.2, 0.8, {"negative_ratio_interval": [0.5, None]}),  # from JSON
        (0.2, 0.8, {"audit": {"target": {}}}),  # the audit of the target decides
        (0.2, 0.8, {"source_prior_range": None}),  # a known source prior
    ],
)
def test_other_wide_intervals_are_not_due_to_the_source_prior(low, high, more):
    found = left_open(low, high, **more)
    assert not found.is_left_open and str(found).startswith("target prior 0.350, 95% interval")


def test_the_ratio_of_negatives_too():
    def ratio(value, low, high):
        return str(ps.NegativeRatio(value, 0.1, ps.Interval(low, high, 0.9, "delta"), 0.1, (9, 9, 9)))

    assert ratio(0.99877, 0.99836, 0.99919) == "ratio of negatives 0.99877, 90% interval 0.99836 to 0.99919"
    assert ratio(0.5, 0.4, np.inf) == "ratio of negatives 0.500, 90% interval 0.400 to inf"
    assert ratio(0.5, 0.45, 0.55) == "ratio of negatives 0.500, 90% interval 0.450 to 0.550"


def test_the_ends_as_printed_tell_the_width_to_a_tenth():
    rng = np.random.default_rng(0)
    for width in 10 ** rng.uniform(-8, -2, 300):
        low = rng.uniform(0, 1 - width)
        low_said, high_said = map(
            float, re.search(r"interval (\S+) to (\S+)", str(estimate(low, low, low + width))).groups()
        )
        assert high_said - low_said == pytest.approx(width, rel=0.1 + 1e-6)
        assert decimals(width) == decimals(width * 1.0001) or np.log10(width) % 1 > 0.999


def test_a_table_of_targets_shows_the_ratio_where_the_source_prior_leaves_them_open():
    estimates = ps.PriorEstimates({"a": left_open(0.12, 0.58), "b": left_open(0.25, 0.44)})
    header, first, second = str(estimates).splitlines()
    assert header.endswith("ratio of negatives") and "0.550, 0.500 to 0.600" in first
    assert "open" in first and "0.350" in second
    display = ps.plots.targets.SeriesDisplay.from_estimates(estimates)
    assert np.isnan(display.values[0]) and display.values[1] == 0.35
    assert "a open (0.120 to 0.580)" in display.description
