import re
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from browser import Overheard, browser, html_errors, needs_browser, needs_validator

import priorshift as ps
from priorshift import plots
from priorshift.errors import InputError, MissingExtraError
from priorshift.plots.curves import ObjectiveDisplay
from priorshift.plots.display import BLUE, GREY, ORANGE, printable
from priorshift.plots.samples import PlaneDisplay
from priorshift.plots.sensitivity import VariantsDisplay
from priorshift.plots.shift import DriversDisplay, LabelShiftDisplay
from priorshift.plots.targets import SeriesDisplay

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a$b$c", r"\frac{$x$}", "x" * 10_000, "nul\0byte",
    "bidi\u202eabc\u2066", "emoji 😀👩‍💻", "=cmd()", "\"double\" & 'single'", "]]>", "日本語の列", "العمر", "lone \ud800",
    "line\nbreak\ttab", "", " ", "\uffff\ufffe", "&amp;", "url(#clip)", "-->",
)  # fmt: skip


def drivers(names=("age", "region (north)")):
    shares = tuple(1 / (k + 2) for k in range(len(names)))
    return DriversDisplay(tuple(names), shares, tuple((-1.0) ** k for k in range(len(names))))


@pytest.fixture(scope="module")
def displays():
    """Pictures with markers, hatches, clip paths, two axes and names."""
    s = ps.simulate.gaussian(0.2, 0.6, 200, 100, random_state=0)
    shift = ps.WitnessShift(0.2, repeats=1, random_state=0).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    tcpu = ps.TCPU(0.2).fit(s.X, s.y, shared=s.ids)
    series = {name: tcpu.estimate(s.target[k * 20 : (k + 2) * 20]) for k, name in enumerate(("<north>", "so&uth"))}
    ends = np.array([0.5, 0.3]), np.array([0.7, 0.45])
    return {
        **plots.displays_of(shift),
        "objective": ObjectiveDisplay.from_estimate(tcpu.estimate(s.target), truth=0.6),
        "series": SeriesDisplay.from_estimates(series),
        "variants": VariantsDisplay(("a", "b"), np.array([0.6, 0.4]), *ends, (False, True), (0.5, 0.7)),
        "unexplained": LabelShiftDisplay(HOSTILE[:3], (0.5, -0.1, 0.2), (True, False, False), 0.01),
        "plane": PlaneDisplay.from_samples(s.positive, s.unlabeled, s.target),
        "drivers": drivers(HOSTILE),
    }


@pytest.fixture(scope="module")
def fragments(displays):
    return {name: plots.svg(display, name=name) for name, display in displays.items()}


def page(fragments):
    body = "\n".join(f"<figure>{text}</figure>" for text in fragments)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Pictures</title>'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'"></head>'
        f"<body><main><h1>Pictures</h1>{body}</main></body></html>"
    )


def test_identifiers_are_unique_in_a_page_and_every_reference_has_one(fragments):
    seen = []
    for name, text in fragments.items():
        root = ElementTree.fromstring(text)
        own = [e.attrib["id"] for e in root.iter() if "id" in e.attrib]
        assert all(identifier.startswith(f"{name}-") for identifier in own)
        inside = re.findall(r"url\(#([^)]+)\)", " ".join(v for e in root.iter() for v in e.attrib.values()))
        inside += [e.attrib["href"][1:] for e in root.iter() if "href" in e.attrib]
        assert set(inside) <= set(own) and inside
        seen += own
    assert len(seen) == len(set(seen))


def test_nothing_but_shapes_and_words_is_inside(fragments):
    allowed = {"svg", "title", "desc", "g", "defs", "path", "use", "text", "tspan", "clipPath", "rect", "pattern"}
    for text in fragments.values():
        root = ElementTree.fromstring(text)
        assert {e.tag.removeprefix(SVG) for e in root.iter()} <= allowed
        attributes = {key for e in root.iter() for key in e.attrib}
        assert not {key for key in attributes if key.startswith("on") or key in ("style", "class") or ":" in key}
        assert text.startswith("<svg ") and "<?xml" not in text and "DOCTYPE" not in text and "metadata" not in text
        assert all(e.attrib["href"].startswith("#") for e in root.iter() if "href" in e.attrib)


def test_ink_is_that_of_the_page_and_the_width_that_of_its_place(fragments):
    for text in fragments.values():
        root = ElementTree.fromstring(text)
        assert root.attrib["width"] == "100%" and "height" not in root.attrib
        assert len(root.attrib["viewBox"].split()) == 4
        colours = {e.attrib[k].lower() for e in root.iter() for k in ("fill", "stroke") if k in e.attrib}
        plain = {one for one in colours if one.startswith("#")}
        assert "currentcolor" in colours and plain <= {colour.lower() for colour in (BLUE, GREY, ORANGE)}


def test_colours_stand_out_from_light_and_dark_pages():
    def luminance(colour):
        parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for ink in (BLUE, GREY, ORANGE):
        for paper in ("#ffffff", "#14181d"):
            low, high = sorted((luminance(ink), luminance(paper)))
            assert (high + 0.05) / (low + 0.05) >= 3, (ink, paper)


def test_title_and_text_alternative_are_those_of_the_display(displays, fragments):
    for name, text in fragments.items():
        root = ElementTree.fromstring(text)
        said = {e.attrib["id"]: e.text for e in root if e.tag in (f"{SVG}title", f"{SVG}desc")}
        assert root.attrib["role"] == "img"
        assert said[root.attrib["aria-labelledby"]] == displays[name].title
        assert said[root.attrib["aria-describedby"]] == displays[name].description


def test_words_are_text_and_hostile_names_stay_words(fragments):
    root = ElementTree.fromstring(fragments["drivers"])
    words = [e.text for e in root.iter(f"{SVG}text")]
    for name in HOSTILE:
        assert len(printable(name)) <= 36
        assert not printable(name).strip() or printable(name) in words, name
    assert "script" not in {e.tag.removeprefix(SVG) for e in root.iter()}
    assert not re.search("[\0\u202e\u2066\ud800\uffff]", fragments["drivers"])


@pytest.mark.slow
@pytest.mark.parametrize("name", range(len(HOSTILE)))
def test_one_hostile_name_alone_neither_warns_nor_fails(name):
    text = plots.svg(drivers([HOSTILE[name]]), name="one")
    ElementTree.fromstring(text).find(f"{SVG}desc").text.index("Share of the score by column")
    assert len(text) < 10_000


def test_the_same_numbers_give_the_same_text(displays, fragments):
    for name, display in displays.items():
        assert plots.svg(display, name=name) == fragments[name]
    other = plots.svg(displays["objective"], name="other")
    assert other.replace("other-", "objective-") == fragments["objective"]


def test_settings_and_figures_of_the_caller_are_left_alone(displays, fragments):
    import matplotlib.pyplot as plt

    with matplotlib.rc_context({"font.size": 31, "axes.facecolor": "red", "svg.fonttype": "path", "text.usetex": True}):
        before, open_ = dict(matplotlib.rcParams), plt.get_fignums()
        assert plots.svg(displays["series"], name="series") == fragments["series"]
        assert dict(matplotlib.rcParams) == before and plt.get_fignums() == open_


@pytest.mark.slow
def test_threads_draw_the_same(displays, fragments):
    before = dict(matplotlib.rcParams)
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda name: plots.svg(displays[name], name=name), list(displays) * 3))
    assert drawn == list(fragments.values()) * 3
    assert dict(matplotlib.rcParams) == before


def test_drawing_as_svg_does_not_move_a_picture_that_was_drawn_before(displays):
    display = displays["objective"].plot()
    ax = display.ax_
    plots.svg(display, name="again")
    assert display.ax_ is ax


@pytest.mark.parametrize("name", ["", "1st", "a b", 'x"', "é", None, 3])
def test_a_name_that_is_no_identifier_is_refused(name):
    with pytest.raises(InputError, match=r"name is"):
        plots.svg(drivers(), name=name)


def test_what_is_no_display_is_refused():
    with pytest.raises(InputError, match="display is str"):
        plots.svg("picture", name="a")


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"priorshift\[plot\]"):
        plots.svg(drivers(), name="a")


def test_a_picture_is_light(fragments):
    assert all(len(text) < 20_000 for name, text in fragments.items() if name != "plane")


@pytest.mark.slow
@needs_validator
def test_a_page_of_pictures_is_valid(fragments, tmp_path):
    path = tmp_path / "pictures.html"
    path.write_text(page(fragments.values()), encoding="utf-8")
    assert html_errors(path) == []


@needs_browser
def test_a_browser_shows_them_under_a_strict_policy_and_runs_nothing(fragments, tmp_path):
    path = tmp_path / "pictures.html"
    path.write_text(page(fragments.values()), encoding="utf-8")
    with browser() as opened:
        tab = opened.new_page(viewport={"width": 360, "height": 700})
        heard, said = Overheard(tab), []
        tab.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        tab.goto(path.as_uri())
        boxes = [tab.locator("svg").nth(k).bounding_box() for k in range(len(fragments))]
    assert not heard.errors and not heard.outside and not said
    assert all(0 < box["width"] <= 360 and box["height"] > 40 for box in boxes)


def test_warnings_of_others_are_still_heard(displays):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plots.svg(displays["drivers"], name="a")
        warnings.warn("Glyph 1 missing from font", UserWarning, stacklevel=1)
    assert [str(one.message) for one in caught] == ["Glyph 1 missing from font"]
