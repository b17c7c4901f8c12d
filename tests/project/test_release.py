"""Metadata and contents of the distributions. `make release-check` also installs them in new environments and runs them."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from release.contents import HOME, PACKAGE, sdist_problems, wheel_problems

import priorshift as ps

PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
USER_EXTRAS = ("plot", "report", "pdf", "app", "completion", "parquet", "dask", "torch")


def requirements(*extras):
    """Return the requirements of the project and of some extras, by name."""
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in EXTRAS[extra])]
    return {one.name.lower(): one for one in map(Requirement, lines) if one.name != "priorshift"}


def read(name):
    return (HOME / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build a wheel and an sdist of the working tree, without a network."""
    pytest.importorskip("hatchling", reason="hatchling, which builds distributions, is not installed")
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=HOME, check=True, capture_output=True, timeout=120)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def test_a_wheel_contains_the_package_and_nothing_else(built):
    wheel, _ = built
    assert wheel_problems(wheel) == []
    names = zipfile.ZipFile(wheel).namelist()
    for ending in ("py.typed", "report/templates/style.css", "report/templates/page.html", "schemas/estimate.json"):
        assert f"priorshift/{ending}" in names
    assert {"index.html", "app.css", "app.js"} <= {name.rpartition("app/page/")[2] for name in names}
    assert not [name for name in names if re.search(r"(^|/)(tests?|\.ci|docs|experiments|release)/|conftest", name)]


def test_a_missing_page_and_a_foreign_file_in_a_wheel_are_reported(built, tmp_path):
    wheel, _ = built
    damaged = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(damaged, "w") as new:
        for name in old.namelist():
            if not name.endswith("templates/style.css"):
                new.writestr(name, old.read(name))
        new.writestr("tests/test_x.py", "")
    assert wheel_problems(damaged) == [
        "priorshift/report/templates/style.css is missing",
        "tests/test_x.py should not be there",
    ]


def test_an_sdist_contains_what_the_tests_need_and_no_generated_files(built, tmp_path):
    _, sdist = built
    assert sdist_problems(sdist) == []
    damaged = tmp_path / sdist.name
    with tarfile.open(damaged, "w:gz") as new:
        for name in (".ci/run", "docs/__pycache__/x.pyc"):
            new.add(__file__, f"priorshift-0.1.0/{name}")
    problems = sdist_problems(damaged)
    assert {".ci/run should not be there", "docs/__pycache__/x.pyc should not be there"} < set(problems)
    assert {"LICENSE is missing", "tests is missing"} < set(problems)


def test_a_wheel_has_the_metadata_of_the_project(built):
    wheel, _ = built
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    assert (metadata["Name"], metadata["Version"]) == ("priorshift", ps.__version__)
    assert (metadata["License-Expression"], metadata.get_all("License-File")) == ("BSD-3-Clause", ["LICENSE"])
    assert SpecifierSet(metadata["Requires-Python"]) == SpecifierSet(PROJECT["requires-python"])
    assert set(metadata.get_all("Provides-Extra")) == set(EXTRAS)
    assert metadata.get_payload().strip() == read("README.md").strip()
    required = [one for one in metadata.get_all("Requires-Dist") if "extra ==" not in one]
    assert {Requirement(one).name for one in required} == set(requirements())


def test_the_version_is_the_same_in_all_files():
    version = Version(ps.__version__)
    assert str(version) == ps.__version__
    assert f"\nVersion: {ps.__version__}\n" in read("r/DESCRIPTION")
    newest = re.findall(r"^## (.+)$", read("CHANGELOG.md"), re.M)[0]
    assert newest == ("Unreleased" if version.is_devrelease else ps.__version__)
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(read("CITATION.cff"))["version"] == ps.__version__
    assert yaml.safe_load(read("recipe/recipe.yaml"))["context"]["version"] == ps.__version__


def test_a_citation_has_the_required_fields():
    """`make release-check` validates the whole schema."""
    cited = pytest.importorskip("yaml").safe_load(read("CITATION.cff"))
    assert cited["cff-version"] == "1.2.0" and cited["license"] == PROJECT["license"]
    for work in (cited, cited["preferred-citation"]):
        assert work["title"] and work["type"] and all(set(author) for author in work["authors"])
    assert set(cited["keywords"]) == set(PROJECT["keywords"])


def test_the_start_page_and_the_citation_file_agree():
    cited = pytest.importorskip("yaml").safe_load(read("CITATION.cff"))["preferred-citation"]
    section = read("docs/index.md").split("## How to cite")[1].split("```{toctree}")[0]
    authors = " and ".join(f"{one['family-names']}, {one['given-names']}" for one in cited["authors"])
    entry = dict(re.findall(r"^  (\w+) += \{(.*)\}", section, re.M))
    expected = (cited["title"], authors, cited["collection-title"], str(cited["year"]))
    assert tuple(entry[name] for name in ("title", "author", "booktitle", "year")) == expected
    words = " ".join(section.replace("> ", "").split())
    assert f"*{cited['title']}.* {cited['collection-title']}, {cited['year']}." in words


def test_every_lower_bound_is_pinned_for_the_oldest_environment():
    lines = [line.partition("#")[0].strip() for line in read("constraints-oldest.txt").splitlines()]
    pins = {one.name.lower(): one for one in map(Requirement, filter(None, lines))}
    for name, wanted in requirements(*USER_EXTRAS, "suite").items():
        ((bound,), (pin,)) = wanted.specifier, pins[name].specifier
        assert (bound.operator, pin.operator) == (">=", "=="), name
        assert Version(pin.version) == Version(bound.version), name


FIXED = {  # the first release without the vulnerabilities that are known of older ones
    "starlette": "1.3.1", "jinja2": "3.1.6", "dask": "2026.1.1", "distributed": "2026.1.1", "torch": "2.10", "skops": "0.13",
    "pytest": "9.0.3", "playwright": "1.56",
}  # fmt: skip


@pytest.mark.parametrize("name", FIXED)
def test_no_lower_bound_allows_a_release_with_a_known_vulnerability(name):
    (bound,) = requirements(*USER_EXTRAS, "suite")[name].specifier
    assert bound.operator == ">=" and Version(bound.version) >= Version(FIXED[name])


def test_the_extras_test_and_suite_differ_by_torch_alone():
    assert {one.partition(">")[0] for one in EXTRAS["test"]} == {"priorshift[suite,torch]"}
    assert "torch" not in requirements("suite")


def test_classifiers_list_the_supported_python_versions():
    found = re.findall(r"Python :: (3\.\d+)\b", "\n".join(PROJECT["classifiers"]))
    assert found == [f"3.{minor}" for minor in range(11, 11 + len(found))]
    assert PROJECT["requires-python"] == f">={found[0]}"
    if "Typing :: Typed" in PROJECT["classifiers"]:
        assert (PACKAGE / "py.typed").exists()


def test_the_recipe_has_the_requirements_of_the_project():
    recipe = pytest.importorskip("yaml").safe_load(read("recipe/recipe.yaml"))
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    python, *run = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert {Requirement(one).name: Requirement(one).specifier for one in run} == {
        name: one.specifier for name, one in requirements().items()
    }
    names = {"matplotlib-base": "matplotlib", "dask-core": "dask", "pytorch": "torch"}  # names of conda packages
    constrained = {
        Requirement(one).name: Requirement(one).specifier for one in recipe["requirements"]["run_constraints"]
    }
    optional = {name: one.specifier for name, one in requirements(*USER_EXTRAS).items() if name not in requirements()}
    assert {names.get(name, name): bounds for name, bounds in constrained.items()} == optional
    script = PROJECT["scripts"]["priorshift"]
    assert recipe["build"]["python"]["entry_points"] == [f"priorshift = {script}"]
    assert recipe["about"]["license"] == PROJECT["license"] and (HOME / recipe["about"]["license_file"]).exists()


def test_the_readme_names_extras_and_their_lower_bounds():
    table = re.findall(r"^\| `(\w+)` \| (.*?) \|", read("README.md"), re.MULTILINE)
    rows = {name: contents for name, contents in table if name in EXTRAS}
    assert set(rows) == set(USER_EXTRAS)
    for name, contents in rows.items():
        bounds = set(re.findall(r"≥ ([\d.]+)", contents))
        assert bounds == {bound.split(">=")[1] for bound in EXTRAS[name] if ">=" in bound}, name
