"""The built site in a real browser, from files: no error, no request to a host, nothing wider than the screen.

``make docs`` builds it; without it, or without chromium, these tests are skipped.
"""

from pathlib import Path

import pytest
from browser import Overheard, browser, needs_browser, serious_violations

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
BUILT = sorted(path for path in SITE.rglob("*.html") if not {"_static", "_modules"} & set(path.parts))
PAGES = ("index", "questions", "guide", "scenario", "source-prior", "when-not", "many-months", "paper", "benchmarks",
         "reference", "theory/intervals", "theory/witness", "api/priorshift.estimate_prior", "gallery/index")  # fmt: skip

pytestmark = [needs_browser, pytest.mark.skipif(not BUILT, reason="the site is not built: make docs")]


@pytest.fixture(scope="module")
def chromium():
    with browser() as opened:
        yield opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_open_from_files_without_errors_and_requests(chromium, scheme, width):
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    heard = Overheard(page)
    for name in PAGES:
        page.goto((SITE / f"{name}.html").as_uri())
        assert page.locator("h1").first.inner_text()
        wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, f"{name} is {wider} pixels wider than a screen of {width}"
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert heard.errors == [] and heard.outside == []
    context.close()


def test_formulas_are_drawn(chromium):
    page = chromium.new_page()
    page.goto((SITE / "theory" / "witness.html").as_uri())
    page.wait_for_selector("mjx-container svg")
    assert page.locator("mjx-container svg").count() > 20
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    page.close()


@pytest.mark.parametrize("name", sorted(p.stem for p in (SITE / "theory").glob("*.html")))
def test_no_formula_is_misspelt(chromium, name):
    page = chromium.new_page()
    page.goto((SITE / "theory" / f"{name}.html").as_uri())
    page.wait_for_function("window.MathJax?.startup?.promise")
    page.evaluate("MathJax.startup.promise")
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    page.close()


def test_a_search_finds_a_page(chromium):
    page = chromium.new_page()
    page.goto((SITE / "search.html").as_uri() + "?q=censoring")
    page.wait_for_selector("ul.search li a")
    assert page.locator("ul.search li a", has_text="Which scenario am I in?").count() >= 1
    page.close()


def test_pictures_have_a_text_alternative(chromium):
    page = chromium.new_page()
    for name in ("index", "scenario"):
        page.goto((SITE / f"{name}.html").as_uri())
        drawn = page.locator("figure.idea svg")
        assert drawn.count() >= 1
        for k in range(drawn.count()):
            named = drawn.nth(k).get_attribute("aria-labelledby").split()
            assert all(page.locator(f"#{one}").text_content() for one in named)
    page.close()


@pytest.mark.parametrize("name", ["index", "questions", "scenario", "reading"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_serious_violation_of_accessibility(chromium, name, scheme):
    context = chromium.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto((SITE / f"{name}.html").as_uri())
    assert serious_violations(page) == []
    context.close()


def test_every_link_between_built_pages_leads_to_a_place(chromium):
    """Read by the browser's own parser, in one page: links and places of all files."""
    page = chromium.new_page()
    page.goto("about:blank")
    places, wanted = {}, []
    for path in BUILT:
        found = page.evaluate(
            """text => {
                const made = new DOMParser().parseFromString(text, 'text/html');
                return [[...made.querySelectorAll('[id]')].map(e => e.id),
                        [...made.querySelectorAll('a[href]')].map(e => e.getAttribute('href'))];
            }""",
            path.read_text(encoding="utf-8"),
        )
        places[path] = set(found[0])
        wanted += [(path, link) for link in found[1]]
    page.close()
    assert len(wanted) > 1000
    for path, link in wanted:
        if ":" in link.split("/")[0] or link in ("#", ""):
            continue
        place, _, anchor = link.partition("#")
        there = (path.parent / place).resolve() if place else path
        assert there.exists(), f"{path.name}: {link}"
        if anchor and there in places:
            assert anchor in places[there], f"{path.name}: {link}"
