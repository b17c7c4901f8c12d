"""Checks of the contents of a wheel and an sdist: no file is missing, and no other file is included."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

HOME = Path(__file__).parents[1]
PACKAGE = HOME / "src" / "priorshift"
_SUFFIXES = {".py", ".typed", ".html", ".css", ".js", ".json"}  # code, type marker, templates and pages, schemas
_METADATA = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
_SDIST_ENTRIES = {  # the tests can be run from an sdist too
    "src", "tests", "docs", "experiments", "benchmarks", "release", "recipe", "conftest.py", "Makefile",
    "pyproject.toml", "constraints.txt", "constraints-oldest.txt", "PKG-INFO",
    "LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "SECURITY.md", "CONTRIBUTING.md",
}  # fmt: skip
_GENERATED = {"__pycache__", "dist", "demo.html", "demo.png"}


def wheel_problems(wheel: Path) -> list[str]:
    """Return which files a wheel lacks or should not have; it contains the package and its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    metadata = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
    package = [file for file in PACKAGE.rglob("*") if file.is_file() and file.suffix in _SUFFIXES]
    expected = {file.relative_to(PACKAGE.parent).as_posix() for file in package}
    expected |= {f"{metadata}/{name}" for name in _METADATA}
    return _problems(expected - names, "is missing") + _problems(names - expected, "should not be there")


def sdist_problems(sdist: Path) -> list[str]:
    """Return which files an sdist lacks or should not have."""
    with tarfile.open(sdist) as archive:
        paths = [Path(name).parts[1:] for name in archive.getnames()]
    entries = {parts[0] for parts in paths}
    hidden = {"/".join(parts) for parts in paths if parts[0].startswith(".")} - {".gitignore"}  # hatchling adds it
    generated = {"/".join(parts) for parts in paths if _GENERATED & set(parts)}
    return _problems(_SDIST_ENTRIES - entries, "is missing") + _problems(hidden | generated, "should not be there")


def _problems(names: set[str], problem: str) -> list[str]:
    """Return a sentence for each name, sorted."""
    return [f"{name} {problem}" for name in sorted(names)]
