"""The page of a result: its numbers, what it is made of, and that nothing of the user's data acts in it."""

import html
import json
import re
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from browser import Overheard, browser, html_errors, needs_browser, needs_validator, serious_violations

import priorshift as ps
from priorshift import report
from priorshift.cli import main
from priorshift.errors import InputError, MissingExtraError, PriorShiftWarning
from priorshift.experimental import release
from priorshift.io.column_checks import ColumnUse
from priorshift.report.contents import prior_status
from priorshift.report.numbers import is_hidden, look_up
from priorshift.report.provenance import python_call
from priorshift.sketch import Histogram, ScoreModel
from priorshift.warning_records import suppress_warnings

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

MOST_BYTES, MOST_SECONDS = 1_500_000, 5.0


def tables(rows=300, prior=0.3, target_prior=0.5, distance=2.0, seed=0, names=("age", "dose", "marker")):
    rng = np.random.default_rng(seed)

    def sample(n, share):
        ill = rng.random(n) < share
        return pd.DataFrame(rng.normal(size=(n, 3)) + distance * ill[:, None] * [1, 0.5, 0], columns=list(names))

    return [sample(rows // 3, 1.0), sample(rows, prior), sample(rows, target_prior)]


def mixed(seed=0, rows=300):
    """Categories, dates, missing cells, weights, groups, an audit, an id and a column that is left out."""
    rng = np.random.default_rng(seed)
    made = tables(rows, seed=seed)
    for k, table in enumerate(made):
        n = len(table)
        high = table["age"].to_numpy() > 1
        table["ward"] = np.where(rng.random(n) < 0.3 + 0.4 * high, "north", "south")
        table["seen"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, n), unit="D")
        table.loc[rng.random(n) < 0.1, "dose"] = np.nan
        table["weight"] = rng.choice([1.0, 2.0], n)
        table["patient"] = [f"{k}-{row // 2}" for row in range(n)]
        table["note"] = "free text"
    return made


@pytest.fixture(scope="module")
def results():
    """A result of every kind, and every answer."""
    P, U, T = tables()
    rng = np.random.default_rng(0)
    drifted = T.assign(marker=T["marker"] + 1.5)
    months = pd.concat([T.assign(month="2024-01"), drifted.assign(month="2024-02")], ignore_index=True)
    looked_up = np.where(np.arange(len(T)) < 60, rng.random(len(T)) < 0.5, np.nan)
    with_weights = {"weights": "weight", "groups": "patient", "drop": ["note"]}
    known = {"source_prior": 0.3, "random_state": 0}
    rng = np.random.default_rng(0)
    alike = [rng.normal(size=(rows, 3)) for rows in (20, 40, 40)]
    with suppress_warnings(PriorShiftWarning):
        nothing = ps.diagnose(*alike, source_prior=0.3, random_state=3)
        two_rows = ps.diagnose(P, U, T[:2], **known)
        few = ps.estimate_prior(P[:12], U, T, **known)
        hull = ps.estimate_prior(P, U, T, method="km2-ls", random_state=0)
    estimate = ps.estimate_prior(P, U, T, **known)
    nan = float("nan")
    return {
        "yes": ps.diagnose(P, U, T, **known),
        "with care": ps.diagnose(P, U, T, source_prior=(0.05, 0.6), random_state=0),
        "no": ps.diagnose(P, U, drifted, **known),
        "nothing": nothing,
        "two rows": two_rows,
        "audit": ps.diagnose(P, U, T.assign(truth=looked_up), audit="truth", **known),
        "mixed": ps.diagnose(*mixed(), **with_weights, **known),
        "range": ps.diagnose(P, U, T, source_prior=(0.2, 0.4), threshold=0.4, random_state=0),
        "months": ps.diagnose_targets(P, U, months, by="month", **known),
        "estimate": estimate,
        "none": replace(estimate, value=nan, raw=nan, standard_error=nan, negative_ratio=nan, status="no estimate"),
        "few": few,
        "tcpu": ps.estimate_prior(P, U, T, method="tcpu", source_prior=0.3),
        "km2-ls": hull,
        "no interval": replace(hull, interval=None, standard_error=float("nan")),
        "estimates": ps.estimate_priors(P, U, months, by="month", **known),
        "one target": ps.estimate_priors(P, U, {"may": T}, **known),
        "strata": ps.estimate_priors(*(t.drop(columns=["note", "patient", "weight"]) for t in mixed(rows=600)),
                                     stratify="ward", **known),
    }  # fmt: skip


KINDS = ("yes", "with care", "no", "nothing", "two rows", "audit", "mixed", "range", "months", "estimate", "none", "few",
         "tcpu", "km2-ls", "no interval", "estimates", "one target", "strata")  # fmt: skip


@pytest.fixture(scope="module")
def pages(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, result in results.items():
        made[name] = folder / f"{name.replace(' ', '-')}.html"
        result.report(made[name])
    return made


@pytest.fixture(scope="module")
def chromium():
    with browser() as opened:
        yield opened


class _Data(HTMLParser):
    """Numbers of a page: where they stand in the result, as they are, and as they are shown."""

    def __init__(self, text):
        super().__init__()
        self.found, self._open = [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "data":
            self._open = [dict(attributes), ""]

    def handle_data(self, data):
        if self._open:
            self._open[1] += data

    def handle_endtag(self, tag):
        if tag == "data":
            attributes, text = self._open
            self.found.append((attributes.get("data-key"), attributes["value"], text))
            self._open = None


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_the_page_are_those_of_the_result(results, pages, kind):
    record = json.loads(json.dumps(results[kind].to_dict(), allow_nan=False))
    numbers = [one for one in _Data(pages[kind].read_text()).found if one[0] is not None]
    assert len(numbers) >= 3
    for key, value, text in numbers:
        exact = look_up(record, key)
        assert float(value) == exact, key
        shown = re.sub(r"^p [=<] |^< |,|%$", "", text).replace("−", "-")
        scale = 100 if text.endswith("%") else 1
        if text.startswith(("p <", "< ")):
            assert exact < float(shown)
        elif not _is_out_of(text, exact):
            digits = len(shown.partition(".")[2].partition("e")[0])
            slack = max(0.51 * 10.0**-digits, 0.006 * abs(scale * exact))
            assert float(shown) == pytest.approx(scale * exact, abs=slack), (key, text)


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_and_its_sentences_write_numbers_in_one_way(pages, kind):
    seen = _seen(pages[kind].read_text())
    assert re.findall(r"\d+ %", seen) == [] and re.findall(r"(?<![\w.])-[\d.]+", seen) == []


def test_p_values_of_differences_are_never_0():
    rng = np.random.default_rng(0)
    targets = {
        name: rng.normal(size=(400, 2)) + 3 * (rng.random((400, 1)) < prior) for name, prior in (("a", 0.1), ("b", 0.9))
    }
    P, U = rng.normal(size=(200, 2)) + 3, rng.normal(size=(400, 2)) + 3 * (rng.random((400, 1)) < 0.3)
    several = ps.estimate_priors(P, U, targets, source_prior=0.3, random_state=0)
    page = report.render(several)
    assert page.count(">&lt; 0.0001</data>") == 2 and ">0.0000<" not in page
    assert "< 0.001     < 0.001" in str(several.differences())


def _is_out_of(text, exact):
    """Whether a share is said as so many of a hundred, or of more."""
    return any(f"{base * exact:,.0f}" == text for base in (100, 1000, 10_000, 100_000, 1_000_000))


def test_the_answer_stands_first_and_in_plain_words(results, pages):
    page = _words(pages["yes"])
    low, high = (
        round(100 * end) for end in (results["yes"].estimate.interval.low, results["yes"].estimate.interval.high)
    )
    value = round(100 * results["yes"].estimate.value)
    assert (
        f"About {value} of 100 in the target population are positive; between {low} and {high}, with 95% confidence."
        in page
    )
    assert (
        page.index("About")
        < page.index("May I publish this number? Yes, with its interval")
        < page.index("Can I believe it?")
        < page.index("What to do next")
        < page.index("What the estimate is based on")
    )
    for kind in ("nothing", "two rows", "none"):
        assert "cannot be estimated from these tables" in _words(pages[kind])


def test_a_rare_class_is_said_of_more_than_a_hundred(results):
    rare = ps.PriorEstimate(
        0.0042, 0.0042, ps.Interval(0.0031, 0.0055, 0.95, "delta"), 0.0006, 0.2, 1.2, 0.1, "TCPU", (9, 9, 9)
    )
    page = html.unescape(re.sub(r"<[^>]+>", "", report.render(rare)))
    assert "About 42 of 10,000" in page and "between 31 and 55" in page


@pytest.mark.parametrize("kind", ["yes", "with care", "no", "nothing", "two rows", "audit", "mixed"])
def test_the_verdict_its_reasons_and_what_to_do_next_are_on_the_page(results, pages, kind):
    found, page = results[kind], _words(pages[kind])
    answer = {"yes": "Yes, with its interval", "with care": "With care", "no": "No"}[found.verdict.answer]
    assert f"May I publish this number? {answer}" in page
    for sentence in (*found.verdict.reasons, *found.next_steps):
        assert " ".join(sentence.split()) in page
    for column in found.columns:
        assert column.name in page
    for driver in found.drivers:
        assert driver.name in page


def test_a_refuted_assumption_is_called_so(pages):
    assert "rejected" in _words(pages["no"]) and "'marker'" in _words(pages["no"])
    assert "does not hold" in _words(pages["nothing"])
    assert "not contradicted" in _words(pages["yes"])
    assert "left open" in _words(pages["with care"])


def test_several_targets_have_a_table_and_a_part_each(results, pages):
    page = _words(pages["months"])
    assert "2 targets of one source: the shares of positives range from" in page and "they differ (p" in page
    assert "Of 2 numbers, 1 may be published and 1 must not be published." in page
    text = pages["months"].read_text()
    assert text.count('<details class="target">') == 2
    assert "Do they differ?" in page and "2024-01" in page and "2024-02" in page
    assert "before the estimates are restricted to [0, 1]" in page
    low, high = sorted(d.estimate.value for d in results["months"].values())
    for kind in ("months", "estimates"):
        assert f"shares of positives range from {low:.3f} to {high:.3f}" in _words(pages[kind])


def test_the_reasons_of_a_no_are_not_folded(results, pages):
    [(month, refused)] = [(name, d) for name, d in results["months"].items() if d.verdict.answer == "no"]
    text = pages["months"].read_text()
    unfolded = _seen(re.sub(r"<details.*?</details>", "", text[: text.index("<h2>All targets</h2>")], flags=re.DOTALL))
    assert f"{month}: " in unfolded
    for reason in refused.verdict.reasons:
        assert " ".join(reason.split()) in unfolded


def test_the_picture_of_targets_has_the_source_prior_and_the_threshold(results):
    P, U, T = tables()
    halves = {"a": T[:150], "b": T[150:]}
    with suppress_warnings(PriorShiftWarning):
        page = report.render(ps.diagnose_targets(P, U, halves, source_prior=0.3, threshold=0.4, random_state=0))
    series = page[page.index("<svg") : page.index("</svg>")]
    assert ">source prior 0.3<" in series and ">threshold 0.4<" in series


def test_assumptions_are_folded_unless_they_are_in_doubt(pages):
    def folds(kind):
        text = pages[kind].read_text()
        return re.findall(r"<details( open)?><summary><h3>", text[: text.index("<h2>What to do next")])

    assert folds("yes") == [""] * 5
    assert folds("no").count(" open") == 1 and "rejected" in pages["no"].read_text()
    assert re.search(r"<h2>Method and versions</h2>\s*<details><summary>", pages["yes"].read_text())


def test_captions_do_not_repeat_the_numbers_of_tables(results, pages):
    for kind in ("months", "yes"):
        captions = re.findall(r"<figcaption>(.*?)</figcaption>", pages[kind].read_text(), re.DOTALL)
        assert captions and not [c for c in captions if c.startswith(("Target prior of each", "Share of the score"))]
    low = min(d.estimate.interval.low for d in results["months"].values())
    assert f"{low:.3f}" not in re.search(r"<figcaption>.*?</figcaption>", pages["months"].read_text())[0]


def test_of_many_targets_some_of_every_answer_have_a_part():
    from priorshift.report.contents import _shown_in_full

    answers = ["no"] * 60 + ["yes"] * 3 + ["with care"] * 50
    shown = [answers[k] for k in _shown_in_full(answers)]
    assert len(shown) == 40 and shown.count("yes") == 3 and shown.count("no") > shown.count("with care") >= 13
    assert _shown_in_full(["yes"] * 5) == set(range(5))


def test_only_a_prior_above_the_bound_is_contradicted(results):
    found = results["yes"]
    told = found.identification

    def status(base, **changes):
        return prior_status(replace(found, identification=replace(base, **changes)))

    assert status(told) == ("yes", "not contradicted by the tables")
    assert status(told, source_prior=told.range_from_tables[0] / 2)[0] == "yes"
    assert status(told, contradicted=True)[0] == "no"


def test_the_estimate_and_the_ratio_it_comes_of_are_told_apart_in_words(results):
    def page(**changes):
        return _seen(report.render(replace(results["estimate"], **changes)))

    assert "restricted to" not in page(value=0.5, raw=0.5) and "mean of the possible" not in page(value=0.5, raw=0.5)
    assert "R = 0.505, and 0.500 as the mean of the possible values in [0, 1]" in page(value=0.5, raw=0.505)
    assert "R = −0.020, restricted to [0, 1]: 0.010" in page(value=0.01, raw=-0.02)
    assert "0.500 together with the audited rows of the target" in page(
        value=0.5, raw=0.505, details={"audit": {"target": {}}}
    )


def test_a_page_of_private_samples_says_that_noise_was_added():
    P, U, T = tables()
    model = ScoreModel.fit(P, U, random_state=0)
    counts = [Histogram.from_sample(one, model) for one in (P, U, T)]
    counts[2] = release(counts[2], 3, 1e-6)  # a release from a seed is not private
    page = _seen(report.render(ps.estimate_prior(*counts, source_prior=0.3)))
    assert "Noise was added to the shared summaries" in page and "target with ε = 3 and δ = 1e-06" in page
    assert "the tables themselves, with all rows" in page


def test_settings_are_written_as_people_do(results):
    page = _seen(report.render(replace(results["mixed"], settings={"drop": ["patient id", "visit_date"]})))
    assert "drop patient id, visit_date" in page
    page = _seen(report.render(results["tcpu"]))
    assert f"bandwidth {results['tcpu'].details['bandwidth']:.4g} " in page


def test_what_was_not_told_or_not_read_is_not_said(pages):
    mixed, plain = _words(pages["mixed"]), _words(pages["yes"])
    assert "independently as you stated" in mixed and "independently assumed" in plain
    assert re.search(r"positives \(effective sample size \d+\)", mixed) and "effective sample size" not in plain
    assert "nothing, as you asked Method and versions" in mixed  # nothing stands where missing cells are told


def test_a_page_without_a_title_has_one_of_ours(results):
    ours = report.render(results["yes"])
    for title in ("", "  "):
        assert report.render(results["yes"], title=title) == ours


def test_a_page_is_named_as_one(results, tmp_path):
    for name in ("x.txt", "x", "x.html.gz"):
        with pytest.raises(InputError, match=r"\.html"):
            results["estimate"].report(tmp_path / name)
    assert not list(tmp_path.iterdir())
    results["estimate"].report(tmp_path / "x.HTM")


def test_an_estimate_says_that_nobody_looked_and_how_to(pages):
    for kind in ("estimate", "tcpu", "no interval", "estimates", "strata"):
        page = _words(pages[kind])
        assert "Not checked yet" in page and "priorshift diagnose" in page


def test_how_it_was_made_is_told(results, pages):
    page = _words(pages["yes"])
    for word in (f"priorshift {ps.__version__}", f"numpy {np.__version__}", "seed 0", "source prior 0.3"):
        assert word in page
    assert "ps.diagnose(positive, unlabeled, target, source_prior=0.3, random_state=0)" in page
    assert "ps.diagnose_targets(positive, unlabeled, targets, source_prior=0.3, random_state=0, by='month')" in _words(
        pages["months"]
    )
    assert "source_prior=(0.2, 0.4)" in _words(pages["range"]) and "threshold=0.4" in _words(pages["range"])
    assert "weights='weight', groups='patient', drop=['note']" in _words(pages["mixed"])


def test_the_call_on_the_page_gives_the_same_again(results):
    P, U, T = tables()
    names = {"positive": P, "unlabeled": U, "target": T}
    *before, call = python_call(results["range"].settings, several=False).split("\n")
    exec("\n".join(before), names)
    assert eval(call, names).to_dict() == results["range"].to_dict()


def test_the_same_result_gives_the_same_bytes(results, pages):
    for kind in ("yes", "estimates"):
        assert report.render(results[kind]) == pages[kind].read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_is_one_file_without_script(pages, kind):
    text = pages[kind].read_text()
    assert len(text.encode()) < MOST_BYTES
    assert text.count("<style>") == 1 and text.count("<main") == 1 and text.count("<h1>") == 1
    assert not re.search(r"<script|\son\w+=|style=|javascript:|@import|https?://(?!www\.w3\.org)", text)
    levels = [int(level) for level in re.findall(r"<h(\d)>", text)]
    assert all(b <= a + 1 for a, b in pairwise(levels))
    for table in re.findall(r"<table.*?</table>", text, re.DOTALL):
        assert "<caption>" in table and 'scope="' in table
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))


def test_the_page_is_made_quickly(results):
    start = time.process_time()
    report.render(results["yes"])
    assert time.process_time() - start < MOST_SECONDS


def test_many_targets_and_columns_stay_small(results):
    P, U, T = tables(rows=60)
    many = {f"t{k}": T for k in range(80)}
    series = ps.estimate_priors(P, U, many, source_prior=0.3, random_state=0)
    start = time.process_time()
    page = report.render(series)
    assert len(page.encode()) < MOST_BYTES and time.process_time() - start < MOST_SECONDS
    assert page.count('<details class="target">') == 40 and "The other 40" in page
    found = results["yes"]
    columns = tuple(ColumnUse(f"c{k}", "feature", "number", "itself", 0.0) for k in range(3000))
    wide = replace(found, columns=columns)
    page = report.render(wide)
    assert len(page.encode()) < MOST_BYTES and "of which 500 are shown" in page


def test_a_file_is_written_whole_or_not_at_all(results, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("before")
    with pytest.raises(InputError, match=r"report needs"):
        report.write("a string", page)
    with pytest.raises(InputError, match="Cannot write"):
        results["estimate"].report(tmp_path / "nowhere" / "page.html")
    assert page.read_text() == "before" and list(tmp_path.iterdir()) == [page]
    results["estimate"].report(page, title="A title", command="priorshift report …")
    assert "A title" in page.read_text() and "priorshift report …" in page.read_text()


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_extra_is_one_sentence(results, tmp_path, monkeypatch, capsys, package):
    from priorshift.report import page

    page._environment.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf'needs {package}, .* pip install "priorshift\[report\]"'):
        results["estimate"].report(tmp_path / "page.html")
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    assert f"report: none (a report needs {package}" in capsys.readouterr().out
    assert main(["demo", "--report", "x.html"]) == 2
    assert not list(tmp_path.iterdir())


@needs_browser
@pytest.mark.parametrize("kind", KINDS)
def test_in_a_browser_nothing_is_wrong(chromium, pages, kind):
    screens = ((390, "dark"), (1280, "light"))
    for width, scheme in screens if kind in ("yes", "nothing", "mixed", "months", "strata") else screens[:1]:
        context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page = context.new_page()
        browser_log = Overheard(page)
        page.goto(pages[kind].as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert serious_violations(page) == []
        assert browser_log.errors == [] and browser_log.outside == []
        context.close()


_TEXTS = """() => [...document.querySelectorAll("svg")].map((svg) =>
  [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim()).map((text) => {
    const box = text.getBoundingClientRect(), matrix = text.getScreenCTM();
    const size = parseFloat(getComputedStyle(text).fontSize) * Math.hypot(matrix.a, matrix.b);
    return { words: text.textContent, size, left: box.left, right: box.right, top: box.top, bottom: box.bottom };
  }))"""


@needs_browser
@pytest.mark.parametrize("kind", ["yes", "no", "mixed", "months", "range", "strata", "tcpu", "km2-ls"])
def test_words_of_pictures_are_legible_and_apart_on_a_phone(chromium, pages, kind):
    page = chromium.new_page(viewport={"width": 360, "height": 800})
    page.goto(pages[kind].as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    pictures = page.evaluate(_TEXTS)
    page.close()
    assert pictures and min(text["size"] for texts in pictures for text in texts) >= 10
    for texts in pictures:
        assert all(text["left"] >= 0 and text["right"] <= 360 for text in texts)
        for k, one in enumerate(texts):
            for other in texts[k + 1 :]:
                width = min(one["right"], other["right"]) - max(one["left"], other["left"])
                height = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
                assert width < 1 or height < 4, (one["words"], other["words"])  # lines of text may touch


@needs_browser
def test_nothing_sticks_out_of_the_column_and_wide_tables_cast_a_shadow(chromium, pages):
    for width in (360, 768, 1280):
        page = chromium.new_page(viewport={"width": width, "height": 800})
        page.goto(pages["months"].as_uri())
        right = "selector => Math.max(...[...document.querySelectorAll(selector)].map(e => e.getBoundingClientRect().right))"
        assert page.evaluate(right, ".scroll, figure, p") <= page.evaluate(right, "main")
        assert "linear-gradient" in page.evaluate("getComputedStyle(document.querySelector('.scroll')).backgroundImage")
        page.close()


@needs_browser
def test_on_paper_heads_of_tables_are_repeated_and_stay_with_their_rows(chromium, pages):
    page = chromium.new_page()
    page.goto(pages["yes"].as_uri())
    page.emulate_media(media="print")
    style = "([selector, name]) => getComputedStyle(document.querySelector(selector))[name]"
    assert page.evaluate(style, ["thead", "display"]) == "table-header-group"
    for selector in ("h2", "h3", "thead", "caption", "summary"):
        assert page.evaluate(style, [selector, "breakAfter"]) == "avoid", selector
    assert page.evaluate(style, ["tr", "breakInside"]) == page.evaluate(style, ["figure", "breakInside"]) == "avoid"
    page.close()


@needs_browser
def test_on_paper_folds_are_open_and_letters_are_black(chromium, pages):
    page = chromium.new_page(color_scheme="dark")
    page.goto(pages["yes"].as_uri())
    page.emulate_media(media="print")
    fold = "document.querySelector('details .folded')"
    page.wait_for_function(
        f"{fold}.checkVisibility({{contentVisibilityAuto: true}}) && {fold}.getBoundingClientRect().height > 20",
        timeout=5000,
    )
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    page.emulate_media(media="screen")
    assert page.evaluate("getComputedStyle(document.body).color") != "rgb(0, 0, 0)"
    page.close()


MARKUP = (
    "<script>document.title='run'</script>", "<img src=x onerror=document.title='run'>", "</style><script>alert(1)</script>",
    "<svg onload=alert(1)>", "</title><h1>", "--><b>", "<!--", "]]>", "&lt;b&gt;&amp;", "'\"><i>", "javascript:alert(1)",
    "=cmd|' /C calc'!A0", "+1+1", "-2", "@SUM(A1)", "{{7*7}}", "{% raise %}", "${7*7}", "$x$", "$\\frac{a}{b}$", "#{7}",
    "\\", "\\\\server\\share", "C:\\temp\\new", "expression(alert(1))", "url(//example.org/x)", "a;background:red",
    "%s%n%x", "../../etc/passwd", "'; DROP TABLE t; --", "a\nb", "a\tb", "a\rb", " lead", "\u202eabc", "a\u2066b\u2069",
    "\u200bzero width", "\ufeffmark", "a\u0000b", "\u0007bell", "\u001b[31mred", "\u0085next", "\u2028line", "\ufffe",
    "😀", "👩‍👩‍👧", "🏳️‍🌈", "عربي", "עברית", "日本語", "Ａ", "e\u0301" * 5, "Z" + "\u0335" * 30, "x" * 10_000,
    "<" * 5000, "ß" * 300, "NaN", "None", "__proto__", "constructor", "on click=\"x\"",
)  # fmt: skip


def hostile():
    """200 names: those above, and pieces of them put together."""
    rng = np.random.default_rng(0)
    made = list(MARKUP)
    while len(made) < 200:
        parts = rng.choice(len(MARKUP), 3)
        made.append("".join(MARKUP[k][:40] for k in parts) + f"·{len(made)}")
    return list(dict.fromkeys(made))


@pytest.fixture(scope="module")
def hostile_pages(tmp_path_factory):
    """Every name is a column, a level, a target or a title of some page."""
    folder, names, made = tmp_path_factory.mktemp("hostile"), hostile(), []
    rng = np.random.default_rng(0)
    assert len(names) == 200

    def sample(n, share, columns):
        ill = rng.random(n) < share
        numbers = {name: rng.normal(size=n) + ill * (k % 3) for k, name in enumerate(columns)}
        levels = {f"level {k}": rng.choice(names[k * 20 : k * 20 + 6], n) for k in range(3)}
        return pd.DataFrame(numbers | levels)

    for k in range(0, 200, 50):
        columns = [name for name in names[k : k + 50] if name.strip()]
        P, U, T = sample(60, 1.0, columns), sample(160, 0.3, columns), sample(150, 0.5, columns)
        T[columns[0]] += 3  # a column that moved is named in sentences
        found = ps.diagnose(P, U, T, source_prior=0.3, random_state=0)
        made.append(folder / f"columns{k}.html")
        found.report(made[-1], title=names[k], command=f"priorshift report --title {names[k + 1]}")
    P, U, T = tables(rows=90)
    named = [name for name in names if name.strip()][:20]
    series = ps.diagnose_targets(P, U, {name: T for name in named[:3]}, source_prior=0.3, random_state=0)
    made.append(folder / "targets.html")
    series.report(made[-1])
    many = ps.estimate_priors(P, U, {name: T for name in named}, source_prior=0.3, random_state=0)
    made.append(folder / "estimates.html")
    many.report(made[-1], title=named[-1])
    return made


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_hostile_names_are_shown_as_what_they_are(hostile_pages):
    for page in hostile_pages:
        text = page.read_text()
        assert len(text.encode()) < MOST_BYTES
        assert not [c for c in set(text) - set("\n\u200d\ufe0f") if is_hidden(c)]  # of which emoji are made
        assert (
            "<script" not in text
            and "<img" not in text
            and ">49<" not in text
            and "(10,000 characters)" in "".join(one.read_text() for one in hostile_pages)
        )
    assert "{{7*7}}" in hostile_pages[0].read_text() and "&lt;script&gt;" in hostile_pages[0].read_text()


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@needs_validator
def test_pages_are_valid_with_hostile_names_too(pages, hostile_pages):
    assert html_errors(*pages.values(), *hostile_pages) == []


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@needs_browser
def test_nothing_of_hostile_names_runs(chromium, hostile_pages):
    for path in hostile_pages:
        page = chromium.new_page(viewport={"width": 390, "height": 800})
        browser_log, dialogs = Overheard(page), []
        page.on("dialog", lambda dialog, seen=dialogs: (seen.append(dialog.message), dialog.dismiss()))
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
        assert page.title() != "run" and dialogs == []
        assert browser_log.errors == [] and browser_log.outside == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert (
            page.evaluate("document.querySelectorAll('script, img, iframe, object, [onload], [onerror]').length") == 0
        )
        shown = page.evaluate("document.body.innerText")
        if path.name == "columns0.html":
            assert "<img src=x onerror=document.title='run'>" in shown and "=cmd|' /C calc'!A0" in shown
            assert "U+202E" in shown and "U+0000" in shown and "👩‍👩‍👧" in shown and "{{7*7}}" in shown
        page.close()


def test_half_a_character_is_named_and_the_page_is_written(results, tmp_path):
    P, U, T = tables(rows=60)
    series = ps.estimate_priors(P, U, {"a\ud800b": T}, source_prior=0.3, random_state=0)
    series.report(tmp_path / "page.html", title="x\udfff", command="priorshift report \ud801")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert all(code in page for code in ("a\\ud800b", "[U+DFFF]", "U+D801"))  # names of targets are escaped when read


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    P, U, T = tables()
    P.to_csv("p.csv", index=False)
    U.to_csv("u.csv", index=False)
    T.assign(month=np.where(np.arange(len(T)) % 2, "may", "june")).to_csv("t.csv", index=False)
    return ["--positive", "p.csv", "--unlabeled", "u.csv", "--target", "t.csv", "--source-prior", "0.3"]


def test_on_the_shell_one_target(files, capsys, tmp_path):
    assert main(["report", *files, "--drop", "month", "-o", "page.html", "--title", "My <title>"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("May I publish this number? Yes") and said[1].startswith("target prior 0.")
    assert said[-1] == "report: page.html (open it in a browser)"
    page = _words(tmp_path / "page.html")
    assert "My <title>" in page
    assert f"priorshift report {' '.join(files)} --drop month -o page.html --title 'My <title>'" in page
    assert main(["report", *files, "--drop", "month", "-o", "page.html", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["verdict"]["answer"] == "yes" and "report: page.html" in said.err


def test_on_the_shell_several_targets_and_samples_without_rows(files, capsys, tmp_path):
    assert main(["report", *files, "--by", "month", "-o", "page.html"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[:2] == ["month", "publish?"]
    assert "Do they differ?" in _words(tmp_path / "page.html")
    tables()[2].to_csv("t.csv", index=False)
    assert main(["report", *files, "--stream", "-o", "batches.html"]) == 0
    assert "Not checked yet" in _words(tmp_path / "batches.html")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["-o", "page.txt"], "must end in .html"),
        (["-o", "no/page.html"], "does not exist"),
        ([], "-o/--output"),
        (["--by", "month", "--stream", "-o", "page.html"], "--stream is for one --target"),
    ],
)
def test_wrong_use_of_the_shell_is_one_sentence(files, capsys, tmp_path, more, sentence):
    before = set(tmp_path.iterdir())
    try:
        code = main(["report", *files, *more])
    except SystemExit as stop:
        code = stop.code
    assert code == 2 and sentence in capsys.readouterr().err
    assert set(tmp_path.iterdir()) == before


def test_a_pdf_without_its_packages_is_one_sentence(results, files, tmp_path, monkeypatch, capsys):
    before = set(tmp_path.iterdir())
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    with pytest.raises(MissingExtraError, match=r'needs weasyprint, .* pip install "priorshift\[pdf\]"'):
        results["estimate"].report(tmp_path / "page.pdf")
    assert main(["report", *files, "--drop", "month", "-o", "page.pdf"]) == 2
    assert 'pip install "priorshift[pdf]"' in capsys.readouterr().err and set(tmp_path.iterdir()) == before


def test_a_pdf_without_pango_is_one_sentence(results, tmp_path, monkeypatch):
    class Broken:
        def find_spec(self, name, *_):
            if name == "weasyprint":
                raise OSError("cannot load library 'libgobject-2.0-0'")

    monkeypatch.delitem(sys.modules, "weasyprint", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(MissingExtraError, match="needs the library Pango"):
        results["estimate"].report(tmp_path / "page.pdf")
    assert not list(tmp_path.iterdir())


def test_a_report_is_written_as_a_pdf(results, files, tmp_path, capsys):
    pytest.importorskip("weasyprint", exc_type=ImportError)
    assert main(["report", *files, "--drop", "month", "-o", "page.pdf"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "report: page.pdf"
    written = (tmp_path / "page.pdf").read_bytes()
    assert written.startswith(b"%PDF-") and len(written) < MOST_BYTES
    results["months"].report(tmp_path / "months.PDF")
    first = (tmp_path / "months.PDF").read_bytes()
    results["months"].report(tmp_path / "months.PDF")
    assert (tmp_path / "months.PDF").read_bytes() == first  # the same result gives the same bytes


def test_the_demo_writes_its_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    said = capsys.readouterr().out
    assert "report: demo.html (open it in a browser)" in said
    page = tmp_path / "demo.html"
    assert page.stat().st_size < MOST_BYTES and "How many of the new tumours are malignant?" in page.read_text()
    assert len(re.findall(r"^  priorshift ", said, re.MULTILINE)) == 3
    page.unlink()
    assert main(["demo", "--json"]) == 0
    assert main(["demo", "--no-report"]) == 0
    assert "report:" not in capsys.readouterr().out and not page.exists()
    assert main(["demo", "--json", "--report", "mine.html"]) == 0
    with_page = json.loads(capsys.readouterr().out)
    assert (tmp_path / "mine.html").exists()
    assert main(["demo", "--json", "--no-report"]) == 0
    assert json.loads(capsys.readouterr().out) == with_page


def _words(page):
    """What a reader sees, in one line."""
    return _seen(page.read_text())


def _seen(page):
    text = re.sub(r"<svg.*?</svg>|<style>.*?</style>|<head>.*?</head>", " ", page, flags=re.DOTALL)
    text = re.sub(r"</?(?:bdi|data|strong|em|span|code|b)\b[^>]*>", "", text)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_several_classes_have_a_page_of_their_own(tmp_path):
    shares = {"a": 0.2, "<b>": 0.3}
    s = ps.simulate.gaussian_classes(shares, {"a": 0.5, "<b>": 0.1}, n_source=400, n_target=400, random_state=0)
    found = ps.MulticlassShift(shares, random_state=0).fit(s.X, s.y).estimate(s.target)
    page = report.render(found)
    assert "How common is each class in the target?" in page and "&lt;b&gt;" in page and "<b>" not in page
    assert page.count("<svg") == 2 and "f<sub>T</sub>" in page and "π′ = 1 − (1 − π)" not in page
    for estimate in found.values():
        assert f"{estimate.value:.3f}" in page
    path = tmp_path / "classes.html"
    found.report(path, title="Subtypes")
    assert "<title>Subtypes" in path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def class_tables():
    shares = {"a": 0.2, "<i>": 0.3}
    s = ps.simulate.gaussian_classes(shares, {"a": 0.5, "<i>": 0.1}, n_source=400, n_target=400, random_state=0)
    return s, shares


def test_a_diagnosis_of_classes_is_a_page_with_its_verdict_and_tests(class_tables):
    s, shares = class_tables
    found = ps.diagnose(s.classes, s.unlabeled, s.target, source_prior=shares, random_state=0)
    page, seen = report.render(found), _seen(report.render(found))
    assert "May I publish these shares?" in seen and "The target has no class of its own" in seen
    assert found.label_shift_test.text in seen and "&lt;i&gt;" in page and "<i>" not in page
    *before, call = python_call(found.settings, several=False, of_classes=True).split("\n")
    names = {"classes": s.classes, "unlabeled": s.unlabeled, "target": s.target}
    exec("\n".join(before), names)
    assert eval(call, names).to_dict() == found.to_dict() and "source_prior={'a': 0.2, '<i>': 0.3}" in seen
    record = found.to_dict()
    for value, pointer in re.findall(r'<data value="([^"]+)" data-key="([^"]+)">', page):
        assert look_up(record, pointer) == pytest.approx(float(value), rel=1e-12), pointer


def test_classes_in_several_targets_are_one_page(class_tables):
    s, shares = class_tables
    targets = {"2023": s.target[:200], "2024": s.target[200:]}
    found = ps.diagnose_targets(s.classes, s.unlabeled, targets, source_prior=shares, random_state=0)
    for result, question in ((found, "p of no new class"), (found.estimates, "were not checked")):
        page = report.render(result)
        seen, record = _seen(page), result.to_dict()
        assert "How common is each class in the targets?" in seen and question in seen
        assert "2 targets of one source, 3 classes" in seen and page.count("<svg") == 3  # one of each class
        assert "Share of a in each target" in seen and "Share of positives" not in seen
        for value, pointer in re.findall(r'<data value="([^"]+)" data-key="([^"]+)">', page):
            assert look_up(record, pointer) == pytest.approx(float(value), rel=1e-12), pointer


def test_the_call_of_a_diagnosis_of_classes_has_ranges_and_other_settings():
    settings = {"source_prior": {"a": [0.1, 0.2], "b": "scipy.stats.beta(2, 8)"}, "random_state": 0}
    lines = python_call(settings, several=True, of_classes=True).split("\n")
    assert lines[0] == "import scipy.stats" and "{'a': (0.1, 0.2), 'b': scipy.stats.beta(2, 8)}" in lines[-1]
    assert lines[-1].startswith("ps.diagnose_targets(classes, unlabeled, targets, ")
    lines = python_call({"rest": False, "repeats": 5, "random_state": 0}, several=False, of_classes=True).split("\n")
    assert lines[1].startswith("estimator = ps.MulticlassShift(") and "rest=False" in lines[1]
    assert lines[-1] == "ps.diagnose(classes, None, target, method=estimator)"
