"""CONTRIBUTING.md is a complete map of the package."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "priorshift"


def test_the_map_names_every_module_and_no_other():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- map of src/priorshift -->(.*)<!-- end of the map -->", text, re.DOTALL)
    assert found is not None
    named = re.findall(r"^\| `([\w/]+\.py)` \| \S", found[1], re.MULTILINE)
    files = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
    assert sorted(named) == sorted(files)
    packages = re.findall(r"^\| \*\*`(\w+)/`\*\*", found[1], re.MULTILINE)
    assert sorted(packages) == sorted({file.split("/")[0] for file in files if "/" in file})
