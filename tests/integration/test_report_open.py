"""How a report states a target prior that an uncertain source prior leaves open."""

import re

import pytest

import priorshift as ps


@pytest.fixture(scope="module")
def tables():
    s = ps.simulate.gaussian(0.3, 0.1, n_source=2000, n_target=1000, shared=False, random_state=0)
    return s.positive, s.unlabeled, s.target


def answer(result, tmp_path):
    """The text of the report's answer."""
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    return " ".join(re.sub("<[^>]*>", "", re.search(r'<p class="answer">(.*?)</p>', page, re.S)[1]).split()), page


@pytest.mark.parametrize(
    ("source_prior", "start"), [((0.35, 0.7), "Between "), ((0, 0.6), "At most "), ((0.05, 0.95), "At most ")]
)
def test_an_open_prior_is_a_range_and_the_ratio(tables, tmp_path, source_prior, start):
    estimate = ps.estimate_prior(*tables, source_prior=source_prior, random_state=0)
    assert estimate.is_left_open
    text, page = answer(estimate, tmp_path)
    assert text.startswith(start) and "ratio of negatives" in text and "About" not in text
    assert f"{estimate.negative_ratio:.3g} times" in text
    assert "hardly distinguish" not in page and 'class="dot"' not in page


def test_a_known_prior_is_never_called_open(tables, tmp_path):
    estimate = ps.estimate_prior(*tables, source_prior=0.3, random_state=0)
    text, page = answer(estimate, tmp_path)
    assert not estimate.is_left_open and text.startswith("About ") and 'class="dot"' in page


def test_targets_that_are_left_open_have_no_range_of_estimates(tables, tmp_path):
    positive, unlabeled, target = tables
    halves = {"a": target[:500], "b": target[500:]}
    estimates = ps.estimate_priors(positive, unlabeled, halves, source_prior=(0, 0.6), random_state=0)
    text, _ = answer(estimates, tmp_path)
    assert text == "2 targets of one source."
