"""Every public name has an example that runs and a page in the reference; every link between pages holds."""

import doctest
import inspect
import json
import re
import shlex
import types
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

import priorshift as ps
from priorshift.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = {"_build", "_generated", "api", "gallery"}  # by the build
PAGES = sorted(path for path in DOCS.rglob("*.md") if not MADE & set(path.relative_to(DOCS).parts))
DOCUMENTS = [*PAGES, *sorted(ROOT.glob("*.md")), ROOT / "experiments" / "COMPARISON.md"]


def public_names():
    """Functions and classes of the package and of the modules that it makes public, by their dotted names."""
    found = {}
    modules = {name: getattr(ps, name) for name in ps.__all__}
    for name, thing in modules.items():
        if not isinstance(thing, types.ModuleType):
            found[name] = thing
            continue
        for inner in getattr(thing, "__all__", None) or vars(thing):
            one = getattr(thing, inner)
            if inner.startswith("_") or not (inspect.isfunction(one) or inspect.isclass(one)):
                continue
            own = hasattr(thing, "__all__") or one.__module__ == thing.__name__
            if own and getattr(ps, inner, None) is not one:  # what stands at the top is no second name
                found[f"{name}.{inner}"] = one
    return found


PUBLIC = public_names()


def has_example(thing):
    """Whether a docstring has an example with something to compare; of a class, its own."""
    text = inspect.cleandoc(thing.__doc__ or "")
    return any(not example.options.get(doctest.SKIP) for example in doctest.DocTestParser().get_examples(text))


def test_there_are_few_public_names():
    constants = {"plots.BLUE", "plots.GREY", "plots.ORANGE", "storage.TYPES"}
    stable = {name for name in PUBLIC if not name.startswith("experimental.")} | constants
    assert 50 < len(stable) <= 81 and {"estimate_prior", "TCPU", "plots.svg", "errors.InputError"} <= set(PUBLIC)


WITH_EXAMPLE = sorted(name for name in PUBLIC if not name.startswith("errors."))  # which one reads, not calls


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_every_public_name_has_an_example(name):
    assert has_example(PUBLIC[name])


def test_the_reference_has_every_public_name_and_no_other():
    listed = re.findall(r"^   ([\w.]+)$", (DOCS / "reference.rst").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(PUBLIC)


def without_code(text):
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path):
    """Headings as GitHub and MyST make anchors of them."""
    text = re.sub(r"^(`{3,}).*?^\1", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"[`*]", "", heading))
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-"))
    if path.name == "paper.md":  # which includes it
        found |= anchors(ROOT / "experiments" / "COMPARISON.md")
    return found


def links(path):
    return re.findall(r"\]\(([^()\s]+(?:\([^()]*\))?[^()\s]*)\)", without_code(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_within_the_repository_hold(path):
    for link in links(path):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = unquote(link).partition("#")
        there = (path.parent / place).resolve() if place else path
        made = place.endswith(".html") or (there.parent == DOCS / "gallery")
        assert there.exists() or made, f"{link} leads nowhere"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{link}: there is no such heading"


def test_links_are_looked_at():
    assert sum(len(links(path)) for path in DOCUMENTS) > 100
    assert "values-outside-0-1" in anchors(DOCS / "reading.md")


def test_every_page_stands_in_the_table_of_contents():
    listed = set()
    for path in PAGES:
        for tree in re.findall(r"```\{toctree\}(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
            for line in tree.splitlines():
                entry = re.sub(r".*<(.*)>", r"\1", line.strip())
                if entry and not entry.startswith(":"):
                    listed.add((path.parent / entry).resolve())
    for path in PAGES:
        assert path == DOCS / "index.md" or path.with_suffix("") in listed, path


def test_ten_questions_have_short_answers_with_a_link():
    text = (DOCS / "questions.md").read_text(encoding="utf-8")
    entries = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert len(entries) == 10
    for entry in entries:
        _, answer = entry.split("\n", 1)
        assert len(answer.split()) < 60 and re.search(r"→ \[.*\]\(.*\)", answer)


def test_the_way_of_a_new_month_runs_on_the_shell_as_it_stands(tmp_path, monkeypatch, capsys):
    section = (DOCS / "storing.md").read_text(encoding="utf-8").split("## When a new month comes")[1]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    s = ps.simulate.gaussian(0.2, 0.6, n_source=500, n_target=300, shared=False, random_state=0)
    for name, rows in (("positive", s.positive), ("unlabeled", s.unlabeled), ("2026-11", s.target)):
        header = ",".join(f"x{k}" for k in range(rows.shape[1]))
        np.savetxt(tmp_path / f"{name}.csv", rows, delimiter=",", header=header, comments="")
    commands = [line.partition(" >> ") for line in block.splitlines() if not line.startswith("#")]
    assert [bool(into) for *_, into in commands] == [False, False, False, False, True]
    for command, _, _ in commands:
        program, *arguments = shlex.split(command)
        assert program == "priorshift" and main(arguments) == 0
    estimate = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert estimate["value"] == pytest.approx(0.6, abs=0.1) and estimate["source_prior"] == 0.2


def test_the_page_of_pictures_shows_what_is_drawn_for_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.syspath_prepend(str(DOCS / "_extensions"))
    from generated_pages import write_pictures

    drawn = {path.name: path.read_text(encoding="utf-8") for path in write_pictures(tmp_path / "made")}
    shown = re.findall(r"_generated/(picture-\w+\.html)", (DOCS / "pictures.md").read_text(encoding="utf-8"))
    assert set(shown) == set(drawn) and all("<svg" in text and "<desc" in text for text in drawn.values())


def test_tables_of_the_site_are_made_of_the_committed_lines(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.syspath_prepend(str(DOCS / "_extensions"))
    from generated_pages import write_tables

    made = {path.stem: path.read_text(encoding="utf-8") for path in write_tables(tmp_path / "made")}
    included = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    assert set(re.findall(r"_generated/([\w-]+)\.md", included)) == set(made)
    assert made["paper-uci"].count("\n| ") == 84 and "| Banknote | 0.1 | 0.2 |" in made["paper-uci"]
    for text in (made[name] for name in made if name != "benchmark-peers"):  # which has several tables
        rows = [row for row in text.splitlines() if row]
        assert all(row.startswith("|") for row in rows) and len(rows) > 2
