"""R: the page "From R" runs and prints what it shows, and the tests of the R package pass.

`RETICULATE_PYTHON` names the Python that R uses, if not the one of these tests. `make test-r` makes one.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "from-r.md"
BLOCK = re.compile(r"^```r\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
MARK = "=== block"
pytestmark = pytest.mark.slow


def blocks():
    """R code of the page, and the output below it; None where none is shown."""
    return [(code, output or None) for code, output in BLOCK.findall(PAGE.read_text(encoding="utf-8"))]


def run_r(arguments, folder, library):
    python = os.environ.get("RETICULATE_PYTHON", sys.executable)
    environment = {
        "R_LIBS": str(library), "RETICULATE_PYTHON": python, "PYTHONPATH": str(ROOT / "src"), "LC_ALL": "C.UTF-8",
        "PYTHONWARNINGS": "ignore", "MPLBACKEND": "agg",
    }  # fmt: skip
    return subprocess.run(
        arguments, cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=600
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library of R with the package of this repository; skips if R or Python cannot be used."""
    if not shutil.which("Rscript"):
        pytest.skip("Rscript is not installed")
    folder = tmp_path_factory.mktemp("r")
    needed = "for (p in c('reticulate', 'tibble', 'testthat')) library(p, character.only = TRUE)"
    if (tried := run_r(["Rscript", "-e", needed], folder, folder)).returncode:
        pytest.skip(f"an R package is not installed: {tried.stderr.strip()[-300:]}")
    usable = (
        "stopifnot(reticulate::py_numpy_available(TRUE)); for (p in c('pandas', 'priorshift')) reticulate::import(p)"
    )
    if (tried := run_r(["Rscript", "-e", usable], folder, folder)).returncode:
        pytest.skip(f"reticulate cannot use this Python (make test-r makes one): {tried.stderr.strip()[-300:]}")
    shutil.copytree(ROOT / "r", folder / "source")
    installed = run_r(["R", "CMD", "INSTALL", "--no-docs", f"--library={folder}", "source"], folder, folder)
    assert installed.returncode == 0, installed.stderr
    return folder


def test_every_block_of_the_page_is_r_or_output_or_a_command():
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"^```(\w+)", text, re.MULTILINE)) == {"r", "text", "console"}
    assert len(blocks()) == text.count("```r\n") > 10
    assert len([output for _, output in blocks() if output]) == text.count("```text\n")


def test_the_page_prints_what_it_shows(library, tmp_path):
    marked = [f'cat("\\n{MARK}\\n")\n{code}' for code, _ in blocks()]
    (tmp_path / "page.R").write_text("options(width = 100)\n" + "\n".join(marked), encoding="utf-8")
    done = run_r(["Rscript", "page.R"], tmp_path, library)
    assert done.returncode == 0, done.stderr
    printed = [re.sub(r" +$", "", part, flags=re.MULTILINE).strip("\n") for part in done.stdout.split(MARK)[1:]]
    for (code, output), got in zip(blocks(), printed, strict=True):
        assert output is None or got == output.strip("\n"), code
    assert (tmp_path / "sensitivity.png").stat().st_size > 10_000


def test_the_tests_of_the_r_package_pass(library, tmp_path):
    shutil.copytree(ROOT / "r" / "tests", tmp_path / "tests")
    done = run_r(["Rscript", "testthat.R"], tmp_path / "tests", library)
    assert done.returncode == 0, done.stdout
    assert "FAIL 0 | WARN 0 | SKIP 0" in done.stdout
