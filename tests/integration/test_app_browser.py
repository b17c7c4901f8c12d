"""The whole way in a real browser: from three files to a report on the disk, with the keyboard alone too."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest
from browser import Overheard, browser, html_errors, needs_browser, needs_validator, serious_violations

expect = pytest.importorskip("playwright.sync_api").expect
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("jinja2")

import priorshift as ps

pytestmark = [needs_browser, pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")]
PATIENCE = 60_000  # milliseconds
ROLES = ("positive", "unlabeled", "target")


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """The addresses that the app prints; each works once, and the next one is printed when it is used."""
    code = "import sys; from priorshift.cli import main; sys.exit(main(['app', '--no-browser', '--max-rows', '5000']))"
    folder = tmp_path_factory.mktemp("app")
    environment = {**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
    yield (found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=20)
    assert process.returncode == 0 and "deleted" in said and not list(folder.glob("priorshift-app-*"))


@pytest.fixture(scope="module")
def chromium():
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files with an id, and months in the target; and a long one."""
    folder = tmp_path_factory.mktemp("files")
    s = ps.simulate.gaussian(0.3, 0.6, 240, 240, dimension=3, distance=2.0, shared=False, random_state=0)
    for k, (role, X) in enumerate(zip(ROLES, (s.positive, s.unlabeled, s.target), strict=True)):
        frame = pd.DataFrame(X.round(4), columns=["age", "dose", "<b>score</b>"])
        frame["patient"] = np.arange(len(frame)) + 1000 * k
        if role == "target":
            frame["month"] = np.resize(["2024-01", "2024-02"], len(frame))
        frame.to_csv(folder / f"{role}.csv", index=False)
    (folder / "ragged.csv").write_text("age,dose\n1,2\n3\n")
    return folder


@contextmanager
def opened(chromium, addresses, **settings):
    """The page; what it said and whom it asked is looked at in the end."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, **settings)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    heard = Overheard(page)
    address = next(addresses)
    page.goto(address)
    page.wait_for_selector("#limits:not(:empty)")
    folder = re.fullmatch(r"http://[^/]+(/\S{22}/)", page.url)[1]  # the secret is not in it
    yield page
    # settings that the app refuses are answered with status 422, which the browser reports
    errors = [error for error in heard.errors if "422" not in error]
    assert not errors, errors
    origin = address.split("/")[2]
    assert {url.split("/")[2] for url in heard.outside} == {origin}
    [cookie] = context.cookies()
    assert (cookie["path"], cookie["httpOnly"], cookie["sameSite"], cookie["expires"]) == (folder, True, "Strict", -1)
    assert cookie["value"] not in address
    context.close()


def choose(page, files):
    for role in ROLES:
        page.set_input_files(f"#{role}-input", files / f"{role}.csv")
    page.wait_for_selector("#read-status:not(:empty)")
    page.wait_for_function("document.querySelectorAll('.card.good').length === 3")


def leave_out(page, *columns):
    page.locator("#columns").evaluate("fold => { fold.open = true; }")  # which the page may do at the same moment
    for column in columns:
        page.get_by_role("checkbox", name=column).check()


def finished(page):
    page.wait_for_selector("#result:not([hidden]), #failed:not([hidden])")
    assert page.is_visible("#result"), page.inner_text("#failed-message")


def downloaded(page, name):
    with page.expect_download() as download:
        page.click(f"text={name}")
    assert download.value.suggested_filename == name
    return download.value.path().read_text(encoding="utf-8")


def test_from_files_to_a_report_and_again_with_another_setting(chromium, addresses, files):
    with opened(chromium, addresses) as page:
        assert not serious_violations(page) and not page.is_visible("#start")
        choose(page, files)
        problem = page.locator("#read-status.problem")
        problem.wait_for()
        assert "target.csv (new population) also has 'month'" in problem.inner_text()
        leave_out(page, "month", "patient")
        page.wait_for_selector("#read-columns:not([hidden])")
        assert page.inner_text("#read-status") == "Rows are compared by 3 columns; 2 others are not compared."
        page.click("#read-summary")
        cells = page.locator("#read-columns tbody tr").all_inner_texts()
        assert cells[2].split("\t")[:2] == ["<b>score</b>", "comparing rows"] and len(cells) == 5
        page.fill("#value", "4,5")
        expect(page.locator("#value-hint")).to_have_text("4.5% = 0.045")
        page.fill("#value", "30 %")
        assert page.is_checked("#prior-value") and not serious_violations(page)
        page.click("#rules > summary")
        page.fill("#recall", "80")
        expect(page.locator("#recall-hint")).to_have_text("80% = 0.8")
        assert page.is_checked("#rule-recall") and not serious_violations(page)
        page.click("#start")
        page.wait_for_selector("#steps li")
        assert page.evaluate("document.activeElement.id") in ("working-heading", "result-heading")
        finished(page)
        assert page.evaluate("document.activeElement.id") == "result-heading" and not page.is_visible("#working")
        assert not serious_violations(page)

        assert page.inner_text("#verdict").split("\n")[1] == "May I publish this number? Yes, with its interval"
        assert "30% = 0.3; confidence: 95% = 0.95" in page.inner_text("#entered")
        cells = page.locator("#expected tbody td").all_inner_texts()
        assert len(cells) == 4 and re.fullmatch(r"80% \(\d+% to \d+%\)", cells[3])
        is_whole = "() => { const f = document.querySelector('#report'); return f.contentDocument.documentElement.scrollHeight <= f.clientHeight }"
        page.wait_for_function(is_whole)  # no second scroll bar
        page.frame_locator("#report").locator("summary").first.click()
        page.wait_for_timeout(300)
        page.wait_for_function(is_whole)

        result = json.loads(downloaded(page, "result.json"))
        found = ps.diagnose(
            *(files / f"{role}.csv" for role in ROLES), source_prior=0.3, drop=["month", "patient"], random_state=0
        )
        assert result == json.loads(json.dumps(found.to_dict()))
        report = downloaded(page, "report.html")
        assert report.startswith("<!doctype html>") and "&lt;b&gt;score" in report
        decisions = downloaded(page, "decisions.csv").splitlines()
        assert decisions[0].endswith(",posterior,decision") and len(decisions) == 241
        share = round(100 * result["estimate"]["value"])
        frame = page.frame_locator("#report")
        assert f"{share} of 100" in frame.locator(".answer").first.inner_text()
        with page.expect_popup() as popup:
            page.click("#open")
        popup.value.wait_for_load_state()
        assert f"{share} of 100" in popup.value.inner_text("main")
        popup.value.close()

        page.click("summary:has-text('command line')")
        assert "--source-prior 0.3 --drop patient --drop month" in page.inner_text("#command")
        page.check("#prior-range")
        page.fill("#low", "10")
        page.fill("#high", "30")
        assert page.is_visible("#result-stale")
        page.click("#start")
        page.wait_for_selector("#result-stale", state="hidden")
        finished(page)
        again = json.loads(downloaded(page, "result.json"))
        assert (
            again["estimate"]["source_prior_by"] == "range"
            and again["estimate"]["sizes"] == result["estimate"]["sizes"]
        )


def test_the_example_on_a_phone_in_the_dark(chromium, addresses):
    with opened(chromium, addresses, color_scheme="dark") as page:
        page.set_viewport_size({"width": 390, "height": 800})
        page.click("#example")
        page.wait_for_selector("#read-columns:not([hidden])")
        assert page.input_value("#value") == "20" and page.input_value("#shared") == "tumour"
        assert "example-positive.csv" in downloaded_example(page) and not serious_violations(page)
        page.wait_for_timeout(400)
        page.click("#start")
        finished(page)
        result = json.loads(downloaded(page, "result.json"))
        assert result["estimate"]["interval"]["low"] < 0.5 < result["estimate"]["interval"]["high"]
        assert not serious_violations(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def downloaded_example(page):
    with page.expect_download() as download:
        page.click("#example-note a")
    assert download.value.path().read_text().startswith("tumour,mean radius")
    return download.value.suggested_filename


def test_an_error_in_a_file_stands_beside_it_and_a_job_can_be_cancelled(chromium, addresses, files):
    with opened(chromium, addresses) as page:
        page.set_input_files("#positive-input", files / "ragged.csv")
        bad = page.locator('.card.bad[data-role="positive"] .read')
        bad.wait_for()
        assert (
            "1 cell in line 3" in bad.inner_text() and "ragged.csv" in bad.inner_text() and not serious_violations(page)
        )
        choose(page, files)
        leave_out(page, "month", "patient")
        page.wait_for_selector("#read-columns:not([hidden])")
        page.check("#prior-value")
        page.click("#start")
        page.wait_for_selector("#settings-problem:not([hidden])")
        expect(page.locator("#value")).to_be_focused()
        assert not serious_violations(page)
        for field, wrong, sentence in (
            ("value", "0", "The share of positives in the old population must be a number between 0 and 100%"),
            ("value", "1,000", "The share of positives in the old population must be a number between 0 and 100%"),
            ("high", "x", "must be a range between 0 and 100%, the lower end first"),
        ):
            page.fill(f"#{field}", wrong)
            page.click("#start")
            expect(page.locator("#settings-problem")).to_contain_text(sentence)
            expect(page.locator(f"#{field}")).to_be_focused()
        for field, percent, said in (
            ("value", "0.22", "0.22% = 0.0022, about 2 in 1,000. For 22 in 100 write 22."),
            ("value", "22", "22% = 0.22"),
            ("value", "", ""),
        ):
            page.fill(f"#{field}", percent)
            expect(page.locator(f"#{field}-hint")).to_have_text(said)
        assert not serious_violations(page)
        page.check('input[value="unknown"]')
        page.click("#start")
        page.wait_for_selector("#working:not([hidden])")
        page.click("#cancel")  # at once, since the estimate takes only a second
        page.wait_for_selector("#working", state="hidden")
        assert page.evaluate("document.activeElement.id") == "start" and not page.is_visible("#result")
        assert page.inner_text("#cancelled") == "Cancelled."
        page.click("#start")
        page.wait_for_selector("#working:not([hidden])")
        assert not serious_violations(page)
        page.wait_for_selector("#working", state="hidden", timeout=60_000)
        page.click('[data-role="target"] .remove')
        page.wait_for_selector("#known", state="hidden")


def test_a_page_that_is_left_takes_its_job_with_it_and_a_reload_works(chromium, addresses, files):
    with opened(chromium, addresses) as page:
        address = page.url
        for leave in (page.reload, lambda: page.goto("about:blank")):
            choose(page, files)
            leave_out(page, "month", "patient")
            page.wait_for_selector("#read-columns:not([hidden])")
            page.wait_for_timeout(400)
            with page.expect_response(lambda answer: answer.url.endswith("/tasks")) as began:
                page.click("#start")
            task = began.value.json()["id"]
            leave()
            end = time.monotonic() + 20
            while (state := page.request.get(f"{address}tasks/{task}").json()["state"]) in ("waiting", "running"):
                assert time.monotonic() < end
                time.sleep(0.05)
            assert state == "cancelled"


def test_names_of_columns_are_text_and_nothing_else(chromium, addresses, tmp_path):
    """Markup, quotes, scripts, formulas, text from right to left, emoji and very long ones, on a phone."""
    names = [
        "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "\"' onmouseover=alert(1) x='", "=cmd()", "{{7*7}}",
        "\u202eright to left", "zero\u200bwidth", "esc\x1b[31m", "family 👩\u200d👧", "😀" * 50, "long" * 500, "a\tb", "javascript:alert(1)", "&lt;b&gt;", "${1+1}",
    ]  # fmt: skip
    rows = np.random.default_rng(0).normal(size=(60, len(names)))
    with opened(chromium, addresses) as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        page.set_viewport_size({"width": 390, "height": 800})
        for k, role in enumerate(ROLES):
            pd.DataFrame(rows[20 * k : 20 * k + 20], columns=names).to_csv(tmp_path / f"{role}.csv", index=False)
        choose(page, tmp_path)
        page.wait_for_selector("#read-columns:not([hidden])")
        page.click("#columns > summary")
        page.click("#read-summary")
        shown = page.locator("#read-columns tbody th").all_text_contents()
        marks = {"\u202e": "⟨U+202E⟩", "\u200b": "⟨U+200B⟩", "\x1b": "⟨U+001B⟩", "\t": "⟨U+0009⟩"}
        seen = ["".join(marks.get(letter, letter) for letter in name) for name in names]
        assert shown == seen == page.locator("#drop bdi").all_text_contents()
        assert page.locator("#by option").all_text_contents()[1:] == seen
        sent = page.evaluate("() => [...document.querySelectorAll('#drop input')].map((box) => box.value)")
        assert (
            sent == names == page.evaluate("() => [...document.querySelector('#by').options].map((o) => o.value)")[1:]
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= 390 and not serious_violations(page)


def test_several_targets_with_the_keyboard_alone(chromium, addresses, files):
    with opened(chromium, addresses) as page:
        choose(page, files)

        def to(place, key="Tab", most=80):
            for _ in range(most):
                if page.evaluate("(place) => document.activeElement.matches(place)", place):
                    return
                page.keyboard.press(key)
            raise AssertionError(f"{place} is not reached")

        page.keyboard.press("Tab")
        to("#positive-input")
        to("input[value='case-control']")
        to("input[name='prior']")
        page.keyboard.press("ArrowDown")
        assert page.is_checked("#prior-value")
        to("#value")
        page.keyboard.type("30")
        page.wait_for_selector("#columns[open]")  # by itself, since only the target has months
        to("#columns > summary")
        page.keyboard.press("Enter")
        assert not page.is_visible("#shared")
        page.keyboard.press("Enter")
        to("#shared")
        page.keyboard.type("patient")
        to("#by")
        page.keyboard.type("month")
        assert page.input_value("#by") == "month" and page.input_value("#shared") == "patient"
        page.wait_for_selector("#read-columns:not([hidden])")
        to("#start")
        page.keyboard.press("Enter")
        finished(page)
        result = json.loads(downloaded(page, "result.json"))
        assert list(result["targets"]) == ["2024-01", "2024-02"]
        to("#download-decisions")
        with page.expect_download() as download:
            page.keyboard.press("Enter")
        assert download.value.suggested_filename == "decisions.csv"


def test_an_address_works_once_and_another_browser_is_told_what_to_do(chromium, addresses):
    with opened(chromium, addresses) as page:
        clean = page.url
        page.goto("about:blank")
        page.goto(clean)  # as from the history
        page.wait_for_selector("#limits:not(:empty)")
    other = chromium.new_page()
    other.goto(clean)
    expect(other.locator("main")).to_have_text(
        "This browser has no access yet: open the last address that priorshift app printed."
    )
    other.close()


def test_a_page_elsewhere_cannot_read_or_send_anything(chromium, addresses, tmp_path):
    """A page of another origin, in the same browser, that knows even the address."""
    (tmp_path / "other.html").write_text("<!doctype html><title>Another page</title>")
    script = """async (address) => {
      const tried = [];
      for (const [method, path, mode] of [["GET", "about", "cors"], ["GET", "about", "no-cors"], ["POST", "example", "no-cors"],
                                          ["PUT", "files?role=target&name=t.csv", "cors"]]) {
        try {
          const options = { method, mode, credentials: "include", body: method === "GET" ? undefined : "a,b" };
          const answer = await fetch(address + path, options);
          tried.push(answer.type + " " + answer.status);
        } catch (error) { tried.push("failed"); }
      }
      const frame = document.createElement("iframe");
      frame.src = address;
      document.body.append(frame);
      await new Promise((resolve) => (frame.onload = resolve));
      return tried;
    }"""
    with opened(chromium, addresses) as own, another_server() as (other_address, received):
        for place in ((tmp_path / "other.html").as_uri(), other_address):
            page = own.context.new_page()
            page.goto(place)
            tried = page.evaluate(script, own.url)
            assert set(tried) <= {"failed", "opaque 0"}, tried
            assert not page.frames[1].url.startswith(own.url)  # it cannot be framed
            page.close()
        assert received and not any("Cookie" in headers for headers in received)


@contextmanager
def another_server():
    """A server of somebody else on another port, which browsers treat as the same site; yield what it receives."""
    received = []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            received.append(dict(self.headers))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Another page</title>")

        def log_message(self, *words):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", received
        server.shutdown()


def test_a_month_is_added_to_a_series_and_the_next_one_to_its_state(chromium, addresses, tmp_path):
    rng = np.random.default_rng(0)
    shares = {"positive": (200, 1.0), "unlabeled": (800, 0.2), "2026-10": (300, 0.2), "2026-11": (300, 0.7)}
    for name, (rows, share) in shares.items():
        ill = rng.random(rows) < share
        frame = pd.DataFrame(rng.normal(size=(rows, 3)) + 1.5 * ill[:, None], columns=["age", "dose", "score"])
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    with opened(chromium, addresses) as page:
        page.click("text=Add this month’s file")
        assert not serious_violations(page)
        page.click("#start")
        expect(page.locator("#problem")).to_contain_text("choose this month’s file", ignore_case=True)
        page.click("#first > summary")
        for role, file in (("target", "2026-10"), ("positive", "positive"), ("unlabeled", "unlabeled")):
            page.set_input_files(f"#{role}", tmp_path / f"{file}.csv")
        page.fill("#prior", "20")
        page.click("#start")
        page.wait_for_selector("#result:not([hidden]), #problem:not([hidden])")
        assert page.is_visible("#result"), page.inner_text("#problem")
        assert page.inner_text("#badge strong") == "No alarm" and not serious_violations(page)
        for name in ("state.json", "model.priorshift"):
            with page.expect_download() as download:
                page.click(f"#download-{name.split('.')[0]}")
            download.value.save_as(tmp_path / name)
        page.reload()
        for role, file in (("target", "2026-11.csv"), ("model", "model.priorshift"), ("state", "state.json")):
            page.set_input_files(f"#{role}", tmp_path / file)
        page.click("#start")
        page.wait_for_selector("#result:not([hidden]), #problem:not([hidden])")
        assert page.is_visible("#result"), page.inner_text("#problem")
        assert page.inner_text("#badge strong") == "Alarm"
        assert "has changed since '2026-11'" in page.inner_text("#lines")
        frame = page.frame_locator("#report")
        expect(frame.locator("h2").first).to_have_text("Alarms")
        assert not page.is_visible("#has-model")
        page.set_viewport_size({"width": 360, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


@needs_validator
def test_the_page_is_valid_html():
    from importlib.resources import files as resources

    page = resources("priorshift.app").joinpath("page")
    assert not html_errors(page.joinpath("index.html"), page.joinpath("watch.html"))
