"""What a wheel and an sdist hold: what they need, and nothing that lay about where they were built."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

HOME = Path(__file__).parents[1]
PACKAGE = HOME / "src" / "priorshift"
_KINDS = {".py", ".typed", ".html", ".css", ".js", ".json"}  # code, that it has types, templates and pages, schemas
_ABOUT = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
_OF_SOURCE = {  # the suite runs from an sdist too
    "src", "tests", "docs", "experiments", "benchmarks", "release", "recipe", "conftest.py", "Makefile",
    "pyproject.toml", "constraints.txt", "constraints-oldest.txt", "PKG-INFO",
    "LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "SECURITY.md", "CONTRIBUTING.md",
}  # fmt: skip
_LEFT_BEHIND = {"__pycache__", "dist", "demo.html", "demo.png"}


def wheel_problems(wheel: Path) -> list[str]:
    """Files that a wheel lacks or should not have: it holds those of the package, and what is said about it."""
    with zipfile.ZipFile(wheel) as opened:
        held = set(opened.namelist())
    about = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
    package = [file for file in PACKAGE.rglob("*") if file.is_file() and file.suffix in _KINDS]
    expected = {file.relative_to(PACKAGE.parent).as_posix() for file in package}
    expected |= {f"{about}/{name}" for name in _ABOUT}
    return _said(expected - held, "is missing") + _said(held - expected, "should not be there")


def sdist_problems(sdist: Path) -> list[str]:
    """Files that an sdist lacks or should not have."""
    with tarfile.open(sdist) as opened:
        paths = [Path(name).parts[1:] for name in opened.getnames()]
    held = {parts[0] for parts in paths}
    hidden = {"/".join(parts) for parts in paths if parts[0].startswith(".")} - {".gitignore"}  # hatchling's own choice
    left = {"/".join(parts) for parts in paths if _LEFT_BEHIND & set(parts)}
    return _said(_OF_SOURCE - held, "is missing") + _said(hidden | left, "should not be there")


def _said(names: set[str], what: str) -> list[str]:
    return [f"{name} {what}" for name in sorted(names)]
