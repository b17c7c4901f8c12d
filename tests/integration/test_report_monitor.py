"""The page on a monitor: its latest state, alarms, last batches, and what the promises mean."""

import re
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from browser import Overheard, browser, html_errors, needs_browser, needs_validator, serious_violations

import priorshift as ps
from priorshift import report
from priorshift.errors import InputError
from priorshift.report.numbers import look_up

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


def table(share, count, seed, move=0.0, **columns):
    rng = np.random.default_rng(seed)
    positive = rng.random(count) < share
    rows = rng.normal(size=(count, 3)) + 1.5 * positive[:, None] + [0, 0, move]
    return pd.DataFrame(rows, columns=["age", "pulse", "weight"]).assign(**columns)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("monitor") / "fitted"
    ps.Monitor(0.2, level=0.5, run_length=200).fit_samples(table(1.0, 200, 0), table(0.2, 1000, 1)).save(path)
    return path


@pytest.fixture(scope="module")
def monitor(fitted):
    """A quiet day, an empty one, a changed share, and rows that changed in another way."""
    monitor = ps.Monitor.load(fitted)
    for day, (share, count, move) in enumerate([(0.2, 400, 0), (0.2, 0, 0), (0.7, 400, 0), (0.7, 400, 2)]):
        monitor.update(table(share, count, 10 + day, move), name=f"2026-11-0{day + 1}")
    return monitor


@pytest.fixture(scope="module")
def page(monitor):
    return report.render(monitor)


def text_of(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page.split("</head>")[1]))


def test_the_latest_state_and_every_alarm_are_on_the_page(monitor, page):
    last, text = monitor.points[-1], text_of(page)
    assert last.broke_assumption and "do not trust the estimates" in text
    assert f"In batch 2026-11-04, about {100 * last.value:.0f}% are positive" in text
    messages = [alarm.message for point in monitor.points for alarm in point.alarms]
    assert len(messages) >= 3
    shown = text.replace("&#39;", "'")
    assert all(message in shown for message in messages)
    assert "2026-11-02" in text  # the empty batch, in the table


def test_a_quiet_monitor_says_so(fitted):
    monitor = ps.Monitor.load(fitted)
    assert "There is no batch yet" in report.render(monitor)
    monitor.update(table(0.2, 400, 10), name="monday")
    text = text_of(report.render(monitor, title="Ward 3"))
    assert "Latest batch: no alarm" in text and "No alarm so far" in text and text.strip().startswith("Skip")
    assert "Ward 3" in text


def test_the_promises_are_those_of_the_settings(fitted):
    monitor = ps.Monitor.load(fitted).restart(level=(0.05, 0.3), false_alarm=0.02, run_length=3000, reference=20)
    text = text_of(report.render(monitor))
    for words in ("once in 3,000 batches", "at most 2%", "below 5% or above 30%", "the first 20 batches"):
        assert words in text
    assert "No level was set" in text_of(report.render(ps.Monitor.load(fitted).restart(level=None)))


def test_numbers_of_the_page_are_those_of_the_points(monitor, page):
    record = {"points": [point.to_dict() for point in monitor.points]}
    found = re.findall(r'<data value="([^"]+)" data-key="([^"]+)"', page)
    assert len(found) > 15
    for value, key in found:
        assert look_up(record, key) == pytest.approx(float(value))


def test_series_have_a_part_each(tmp_path):
    unlabeled = table(0.2, 1000, 1, region=np.repeat(["north", "south"], 500))
    monitor = ps.Monitor(0.2, by="region", run_length=200).fit_samples(table(1.0, 200, 0), unlabeled)
    for day in range(2):
        rows = [
            table(share, 400, 10 + day, region=name) for name, share in (("north", 0.2), ("south", 0.2 + 0.5 * day))
        ]
        monitor.update(pd.concat(rows), name=f"day {day}")
    text = text_of(report.render(monitor))
    assert "1 of 2 series has an alarm" in text and "south: The share of positives has changed" in text
    assert text.count("Share of positives in each batch, the latest first") == 2
    assert "all series together" in text


def test_many_batches_stay_small_and_quick(fitted):
    monitor = ps.Monitor.load(fitted)
    point = monitor.update(table(0.7, 400, 10), name="first")
    assert point.alarms
    for k in range(2000):
        monitor._series[""].points.append(replace(point, name=f"batch {k}"))
    report.render(monitor)  # imports
    started = time.perf_counter()
    page = report.render(monitor)
    assert time.perf_counter() - started < 5.0
    assert len(page) < 400_000 and "batch 1999" in page and "batch 1900" not in page
    assert "the last 50 of 2,001 batches" in page


def test_hostile_names_are_text(fitted, tmp_path):
    monitor = ps.Monitor.load(fitted)
    monitor.update(table(0.7, 400, 10), name="<script>alert(1)</script>\u202e")
    page = report.render(monitor)
    assert "<script" not in page and "\u202e" not in page


def test_a_page_is_written_as_html_or_refused(monitor, page, tmp_path):
    monitor.report(tmp_path / "page.html", command="priorshift watch --model fitted --state state.json")
    written = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert written.startswith("<!doctype html>") and "priorshift watch --model" in written
    with pytest.raises(InputError, match=r"\.html"):
        monitor.report(tmp_path / "page.txt")
    with pytest.raises(InputError, match="not fitted"):
        ps.Monitor().report(tmp_path / "page.html")
    assert report.render(monitor) == page  # the same monitor gives the same text


def test_a_page_is_written_as_pdf(monitor, tmp_path):
    pytest.importorskip("weasyprint")
    monitor.report(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


@needs_validator
def test_the_page_is_valid(page, tmp_path):
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    assert html_errors(tmp_path / "page.html") == []


@needs_browser
def test_in_a_browser_nothing_is_wrong(page, tmp_path):
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    with browser() as chromium:
        opened = chromium.new_page(viewport={"width": 360, "height": 800})
        heard = Overheard(opened)
        opened.goto((tmp_path / "page.html").as_uri())
        assert serious_violations(opened) == []
        assert opened.evaluate("document.documentElement.scrollWidth") <= 360
        assert heard.errors == [] and heard.outside == []
