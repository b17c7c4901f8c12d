"""What a page says of results at the edges: no sentence contradicts another, and no number has too few digits."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from browser import browser, needs_browser

import priorshift as ps
from priorshift import Interval, PriorEstimate, report
from priorshift.errors import PriorShiftWarning
from priorshift.plots.sensitivity import VariantsDisplay
from priorshift.report.numbers import name, plain
from priorshift.report.pictures import IntervalGraphic
from priorshift.warning_records import suppress_warnings

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


def sample(rows, share, seed, distance=2.0):
    rng = np.random.default_rng(seed)
    ill = rng.random(rows) < share
    values = rng.normal(size=(rows, 2)) + distance * ill[:, None]
    return pd.DataFrame({
        "age": values[:, 0], "dose": values[:, 1],
        "ward": rng.choice(["north", "south"], rows), "sex": rng.choice(["f", "m"], rows),
    })  # fmt: skip


@pytest.fixture(scope="module")
def found():
    P, U, T = sample(100, 1.0, 0), sample(300, 0.3, 1), sample(300, 0.5, 2)
    return ps.diagnose(P[["age"]], U[["age"]], T[["age"]], source_prior=(0.2, 0.4), random_state=0)


@pytest.fixture(scope="module", params=[12, 22], ids=["not apart", "hardly apart"])
def nothing(request):
    """Two targets of positives that are like the population."""
    with suppress_warnings(PriorShiftWarning):
        targets = {"a": sample(200, 0.3, 3), "b": sample(200, 0.3, 4)}
        source = sample(60, 0.2, request.param), sample(300, 0.2, request.param + 100)
        return ps.diagnose_targets(*source, targets, random_state=0)


@pytest.fixture(scope="module")
def strata():
    tables = [sample(rows, share, k) for k, (rows, share) in enumerate([(200, 1.0), (600, 0.3), (600, 0.5)])]
    return ps.estimate_priors(*tables, stratify="ward", source_prior=0.3, random_state=0)


def words(page):
    """What is seen of a page, without its drawings."""
    seen = re.sub(r"<(style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", seen))


def made(value=0.44, low=0.35, high=0.53, confidence=0.95, **more):
    interval = Interval(low, high, confidence, "delta")
    return replace(
        PriorEstimate(value, value, interval, 0.03, 0.2, 0.7, 0.04, "TCPU", (100, 300, 300), source_prior_by="given"),
        **more,
    )


@pytest.mark.parametrize(
    ("confidence", "said"), [(0.95, "95"), (0.975, "97.5"), (0.995, "99.5"), (0.999, "99.9"), (0.9999, "99.99")]
)
def test_a_confidence_is_never_rounded_to_more_than_it_is(confidence, said):
    page = words(report.render(made(confidence=confidence)))
    assert re.search(rf"with {said}% confidence", page)
    assert re.search(rf", {said}% interval", page)
    assert "100%" not in page


def test_a_range_and_a_distribution_of_the_source_prior_are_shown_as_given():
    of_range = made(source_prior_by="range", details={"source_prior_range": [0.15, 0.25]})
    assert "source prior 0.15 to 0.25; method" in words(report.render(of_range))
    of_survey = made(source_prior_by="distribution", details={"source_prior_standard_error": 0.025})
    assert "source prior 0.2 ± 0.025; method" in words(report.render(of_survey))
    assert "source prior 0.2, estimated by KM2; method" in words(report.render(made(source_prior_by="KM2")))


def test_what_cannot_be_told_is_not_drawn_nor_open_to_publication():
    told, untold = made(), made(low=0.0, high=1.0, status="no estimate")
    assert IntervalGraphic.from_estimate(told).value is not None and IntervalGraphic.from_estimate(untold).value is None
    page = words(report.render(untold))
    assert "May I publish this number? No, the tables cannot answer this" in page
    assert "Not checked" not in page and "not checked" not in page
    assert "Computed, but not informative: target prior 0.440" in page


def test_a_page_of_tables_that_tell_nothing_claims_nothing(nothing):
    assert {one.identification.level for one in nothing.values()} == {"nothing"}
    page = words(report.render(nothing))
    assert "range from" not in page
    assert " to none" not in page and "times what it was" not in page
    assert "identified by the tables" not in page and "left open" in page
    assert "Of 100 pairs" not in page
    assert not re.search(r"are −[\d.]+ standard errors apart", page)


def test_a_given_prior_is_not_checked_by_tables_that_tell_nothing(nothing):
    one = nothing["a"]
    given = replace(one, identification=replace(one.identification, source_prior_by="given", source_prior=0.2))
    page = words(report.render(given))
    assert "The source prior is right cannot be checked" in page


def test_no_negatives_left_are_not_a_negative_share(found):
    page = words(report.render(replace(found, shift_test=replace(found.shift_test, ratio=-0.021))))
    assert "the share of negatives is −0.021 times what it was, so there are none left" in page
    assert "none left" not in words(report.render(found))
    page = words(
        report.render(made(value=1.0, high=1.0, raw=1.016, negative_ratio=-0.02, details={"standardize": True}))
    )
    assert "−0.02 times what it was in the source, so there are none left; with" in page
    assert "standardizeyes" in page  # a row of the table of settings


def test_ends_of_a_narrow_range_are_told_apart(found):
    told = replace(
        found.identification,
        largest_prior=0.00312,
        source_prior=0.02,
        source_prior_by="given",
        contradicted=True,
    )
    assert "at most 0.0032" in told.text
    page = words(report.render(replace(found, identification=told)))
    assert "The tables alone show that it is at most 0.0031" in page
    narrow = replace(found.sensitivity.conclusion, low=0.0021, high=0.0042)
    assert re.search(r"the target prior is \d\.\d{4}", str(replace(found.sensitivity, conclusion=narrow)))


def test_a_contradicted_range_is_named_as_it_was_given():
    P, U, T = sample(150, 1.0, 0), sample(600, 0.2, 1), sample(600, 0.4, 2)
    contradicted = ps.diagnose(P, U, T, source_prior=(0.7, 0.8), random_state=0)
    assert contradicted.identification.contradicted
    assert "(0.70 to 0.80) contradicts the tables" in contradicted.verdict.reasons[0]
    assert any(step.startswith("Check the source prior 0.70 to 0.80,") for step in contradicted.next_steps)


def test_one_is_not_counted_as_several(found):
    assert "1 column " in words(report.render(found)) and "1 columns" not in words(report.render(found))
    P, U, T = sample(100, 1.0, 0), sample(300, 0.3, 1), sample(300, 0.5, 2)
    alone = ps.diagnose_targets(P, U, {"may": T}, source_prior=0.3, random_state=0)
    page = words(report.render(alone))
    assert page.count("May I publish this number?") == 2  # at the top, and in its part
    assert re.search(r"How common are positives in the targets\? About \d+ of 100 in the target population", page)
    assert "range from" not in page and "0 with care" not in page


def test_a_stratum_is_not_called_the_target_population(strata):
    page = words(report.render(strata))
    assert len(re.findall(r"of 100 in the target population", page)) == 1  # all strata together
    assert len(re.findall(r"of 100 in this stratum", page)) == 2
    assert "How common are positives in the target?" in page
    assert "this is the first, north." in page


def test_a_band_that_does_not_exist_has_no_column(strata):
    assert "all at once" in words(report.render(strata))
    assert "all at once" not in words(report.render(replace(strata, band=None)))


def test_what_was_changed_is_not_cut_beside_its_picture_nor_in_its_sentence(found):
    drawn = VariantsDisplay.from_diagnosis(found)
    labels = [tick.get_text() for tick in drawn.plot().ax_.get_yticklabels()]
    assert "without 3 unlabelled rows" in labels and not any("…" in one for one in labels)
    every = replace(drawn, is_significant=(True,) * len(drawn.names))
    assert "half of the default bandwidth" in every.description


@pytest.fixture(scope="module")
def months():
    P, U, T = (t[["age", "dose"]] for t in (sample(100, 1.0, 0), sample(300, 0.3, 1), sample(1200, 0.5, 2)))
    targets = T.assign(month=np.repeat([f"2024-{month:02d}" for month in (1, 2)], 600))
    return ps.diagnose_targets(P, U, targets, by="month", source_prior=0.3, random_state=0)


@needs_browser
def test_the_table_of_all_targets_fits_on_a_laptop_and_on_paper(months, tmp_path):
    months.report(tmp_path / "page.html")
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.goto((tmp_path / "page.html").as_uri())
        table = "document.querySelector('[aria-label=\"Estimates of all targets\"]')"
        assert page.evaluate(f"{table}.scrollWidth <= {table}.clientWidth")
        assert page.evaluate("document.documentElement.scrollWidth <= 1280")
        page.emulate_media(media="print")
        paper = round(178 / 25.4 * 96)  # A4 without its margins
        page.set_viewport_size({"width": paper, "height": 1000})
        assert page.evaluate(f"document.documentElement.scrollWidth <= {paper}")
        size = "parseFloat(getComputedStyle(document.querySelector({!r})).fontSize)"
        assert page.evaluate(f"{size.format('.otherwise')} < {size.format('.assumptions p')}")


UNSEEN = (0xAD, 0x34F, 0x115F, 0x180E, 0x200D, 0x2800, 0x3164, 0xFFA0, 0xFE0F, 0xFFF9, 0xE000, 0xE0041)


@pytest.mark.parametrize("unseen", [chr(code) for code in UNSEEN], ids=[hex(code) for code in UNSEEN])
def test_a_name_that_nobody_could_see_is_spelt_out(unseen):
    code = f"U+{ord(unseen):04X}"
    assert (
        code in name(f"age{unseen}") and name(unseen).count(code) == 1 and f"[{code}]" in plain(f"a{unseen}{unseen}b")
    )


def test_parts_of_emoji_stay_together():
    assert name("👩‍👩‍👧 🏳️‍🌈 👍🏽 ☎️") == "<bdi>👩‍👩‍👧 🏳️‍🌈 👍🏽 ☎️</bdi>"
