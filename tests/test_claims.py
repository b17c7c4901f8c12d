"""What the README and the guide say of coverage is what the committed figures say."""

import csv
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def coverage():
    with (ROOT / "experiments" / "results" / "coverage.csv").open() as file:
        return list(csv.DictReader(file))


def column(lines, name):
    return np.array([float(line[name]) for line in lines if line[name]])


def test_the_study_is_whole(coverage):
    assert len(coverage) == 3 * 6 * 2 * 2
    assert set(column(coverage, "repetitions")) == {500}


def test_the_default_interval_covers_in_every_setting(coverage):
    values = column(coverage, "coverage")
    assert values.min() >= 0.92
    assert 0.94 <= values.mean() <= 0.97


def test_the_bounds_never_undercover(coverage):
    for bound in ("paper-bound", "sharp-bound"):
        assert column(coverage, f"coverage_{bound}").min() >= 0.95
    assert (column(coverage, "width_sharp-bound") <= column(coverage, "width_paper-bound")).all()


def test_documents_quote_the_study(coverage):
    guide, readme = (ROOT.joinpath(*path).read_text() for path in (("docs", "guide.md"), ("README.md",)))
    for name, words in (
        ("coverage", "`delta`"),
        ("coverage_bootstrap", "`bootstrap`, 200 rows"),
        ("coverage_plug-in", "`delta` around the plug-in"),
        ("coverage_sharp-bound", "`sharp-bound`"),
        ("coverage_paper-bound", "`paper-bound`"),
    ):
        values = 100 * column(coverage, name)
        assert f"| {words} | {values.mean():.1f}% | {values.min():.1f}% | {values.max():.1f}% |" in guide
    values = 100 * column(coverage, "coverage")
    assert f"covers {values.mean():.1f}% on average and {values.min():.1f}% at least" in readme
    assert f"falls to {100 * column(coverage, 'coverage_plug-in').min():.1f}%" in readme


def test_guide_quotes_the_bias_of_the_plug_in(coverage):
    guide = (ROOT / "docs" / "guide.md").read_text()
    key = {"source_prior": "0.1", "target_prior": "0.8", "rows": "200"}
    lines = [line for line in coverage if all(line[k] == v for k, v in key.items())]
    for line in lines:
        shared = "shared" if line["shared_rows"] == "True" else "separate"
        for name, end in (("unbiased", ""), ("plug-in", "_plug-in")):
            bias, covered = float(line[f"bias{end}"]), 100 * float(line[f"coverage{end}"])
            assert f"| {shared} | {name} | {bias:+.3f} | {covered:.1f}% |" in guide
