"""How an answer reads."""

import re

import numpy as np
import pytest

import priorshift as ps
from priorshift.formatting import decimals
from priorshift.inference.joint import JointRatios
from priorshift.inference.prior_knowledge import PointPrior, RangePrior
from priorshift.plots.targets import SeriesDisplay


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
    assert str(left_open(0.0, 1.0)).startswith("no estimate of the target prior, 95% interval 0.000 to 1.000 (")


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
    display = SeriesDisplay.from_estimates(estimates)
    assert np.isnan(display.values[0]) and display.values[1] == 0.35
    assert "a open (0.120 to 0.580)" in display.description


def test_one_estimate_as_numbers_and_as_a_frame():
    found = left_open(0.12, 0.58)
    numbers = found.numbers()
    assert numbers["value"] == 0.35 and (numbers["low"], numbers["high"]) == (0.12, 0.58)
    assert (numbers["negative_ratio_low"], numbers["source_prior_high"]) == (0.5, 0.41)
    assert all(isinstance(number, float) for number in numbers.values())
    frame = found.to_frame()
    assert len(frame) == 1 and frame["method"][0] == "TCPU" and frame["low"][0] == 0.12


def test_results_render_as_html_in_a_notebook_and_escape_names():
    estimates = ps.PriorEstimates({"<b>a": left_open(0.12, 0.58), "b": left_open(0.25, 0.44)})
    html = estimates._repr_html_()
    assert html.startswith("<table>") and "&lt;b&gt;a" in html and "<b>a" not in html
    single = left_open(0.12, 0.58)._repr_html_()
    assert "ratio of negatives" in single and "<table>" in single
    ratio = ps.NegativeRatio(0.5, 0.1, ps.Interval(0.4, 0.6, 0.95, "delta"), 0.1, (9, 9, 9))
    assert "0.500" in ratio._repr_html_()


def test_ratios_of_prevalences_hold_by_fieller():
    """The delta method agrees where both priors are well known; a first prior that may be 0 leaves the ratio open."""

    def joint(ratios, error):
        n = len(ratios)
        return JointRatios(
            np.array(ratios), error**2 * np.eye(n), np.full(n, 1e6), PointPrior(0.2), 0.2, np.zeros(n), 0.0,
            np.full(n, error**2), np.full(n, 1e6),
        )  # fmt: skip

    ratio, interval = joint([1.0, 0.5], 0.001).prevalence_ratio(0, 1, 0.95)  # priors 0.2 and 0.6
    error = 3 * 0.8 * 0.001 * np.hypot(1 / 0.6, 1 / 0.2)
    assert ratio == pytest.approx(3) and (interval.low, interval.high) == pytest.approx(
        (3 - 1.96 * error, 3 + 1.96 * error), abs=1e-3
    )
    _, open_interval = joint([1.2, 0.5], 0.1).prevalence_ratio(0, 1, 0.95)  # 0.04 ± 0.08 and 0.6
    assert open_interval.high == np.inf and 0 < open_interval.low < 15
    ratio, unknown = joint([1.3, 1.24], 0.1).prevalence_ratio(0, 1, 0.95)
    assert np.isnan(ratio) and (unknown.low, unknown.high) == (0, np.inf)


def test_ratios_of_prevalences_cover():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(400):
        R = np.array([(1 - 0.1) / 0.8, (1 - 0.3) / 0.8]) + 0.03 * rng.normal(size=2)
        joint = JointRatios(
            R, 0.03**2 * np.eye(2), np.full(2, 1e6), PointPrior(0.2), 0.2, np.zeros(2), 0.0, np.full(2, 9e-4),
            np.full(2, 1e6),
        )  # fmt: skip
        covered += 3 in joint.prevalence_ratio(0, 1, 0.95)[1]
    assert 0.92 <= covered / 400 <= 0.98


@pytest.mark.parametrize(
    ("pi", "priors", "known"),
    [
        (0.4, (0.02, 0.2), (0.2, 0.6)),
        (0.4, (0.1, 0.2), (0.2, 0.6)),
        (0.4, (0.2, 0.02), (0.3, 0.5)),
        (0.2, (0.3, 0.5), None),
    ],
)
def test_ratios_of_prevalences_cover_for_a_range_of_source_priors(pi, priors, known):
    """Where a part of the range would make a prior negative, that part is impossible."""
    rng, covered = np.random.default_rng(0), 0
    knowledge = PointPrior(pi) if known is None else RangePrior(*known)
    for _ in range(300):
        R = (1 - np.array(priors)) / (1 - pi) + 0.02 * rng.normal(size=2)
        joint = JointRatios(
            R, 4e-4 * np.eye(2), np.full(2, 1e6), knowledge, knowledge.value, np.zeros(2), 0.0, np.full(2, 4e-4),
            np.full(2, 1e6),
        )  # fmt: skip
        covered += priors[1] / priors[0] in joint.prevalence_ratio(0, 1, 0.95)[1]
    assert covered / 300 >= 0.92
