"""Build both distributions, look into them, install them into empty environments and use them there.

What has passed lies in ``dist``, ready to be published. Needs a package index and Python with venv, and nothing else.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import urllib.request
from pathlib import Path

from release.contents import HOME, sdist_problems, wheel_problems
from release.environment import Environment

_TOOLS = ("build", "twine", "validate-pyproject[all]", "cffconvert", "py-rattler-build")
_RENDERED = (
    "import sys, rattler_build as r; r.Stage0Recipe.from_yaml(open(sys.argv[1]).read()).render(r.VariantConfig())"
)
_ASSETS = re.compile(r'(?:href|src)="([^":]+\.(?:css|js))"')


def main() -> None:
    """Every check in its order; the first that fails ends it with what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        wheel, sdist = _build(Path(folder))
        _installed(Environment(Path(folder) / "wheel"), wheel)
        _from_source(Environment(Path(folder) / "sdist"), sdist)
        (HOME / "dist").mkdir(exist_ok=True)
        for made in (wheel, sdist):
            print(shutil.copy(made, HOME / "dist"))


def _build(folder: Path) -> tuple[Path, Path]:
    """Both distributions, the wheel from the sdist, with their contents and all metadata checked."""
    tools, made = Environment(folder / "tools"), folder / "made"
    tools.install(*_TOOLS)
    tools.run("python", "-m", "build", "--outdir", made, HOME)
    (wheel,), (sdist,) = made.glob("*.whl"), made.glob("*.tar.gz")
    if problems := wheel_problems(wheel) + sdist_problems(sdist):
        raise SystemExit("\n".join(problems))
    tools.run("twine", "check", "--strict", wheel, sdist)
    tools.run("validate-pyproject", HOME / "pyproject.toml")
    tools.run("cffconvert", "--validate", "--infile", HOME / "CITATION.cff")
    tools.run("python", "-c", _RENDERED, HOME / "recipe" / "recipe.yaml")
    print(f"built and looked into: {wheel.name}, {sdist.name}")
    return wheel, sdist


def _installed(environment: Environment, wheel: Path) -> None:
    """The wheel alone, with the page of a report, and with the app."""
    environment.install(wheel)
    where = Path(environment.run("python", "-c", "import priorshift; print(priorshift.__file__)").strip())
    if HOME in where.parents:
        raise SystemExit(f"priorshift was imported from {where}, which is the repository and not the wheel")
    said = environment.run("priorshift", "demo")
    _expect("report: none (" in said and 'pip install "priorshift[report]"' in said, "demo without extras", said)
    print(f"wheel: {_answer(said)}")

    environment.install(f"{wheel}[report]")
    said = environment.run("priorshift", "demo")
    page = (environment.desk / "demo.html").read_text(encoding="utf-8")
    share = re.findall(r"target prior (\d\.\d+)", said)
    _expect(bool(share) and share[0] in page and "<svg" in page, "demo with a report", said)
    print(f"wheel[report]: a page of {len(page):,} characters")

    environment.install(f"{wheel}[app]")
    with environment.started("priorshift", "app", "--no-browser") as app:
        address = (app.stdout.readline() if app.stdout else "").rpartition(" ")[2].strip()
        # an address works once: it is exchanged for a cookie, and leads to the folder of the page
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address, timeout=30) as answered:
            folder, page = answered.geturl(), answered.read().decode()
        assets = _ASSETS.findall(page)
        loaded = [browser.open(folder + name, timeout=30).read() for name in assets]
        _expect(len(assets) >= 2 and all(loaded), "the app's page", page)
    print(f"wheel[app]: a page with {', '.join(assets)}")


def _from_source(environment: Environment, sdist: Path) -> None:
    environment.install(sdist)
    said = environment.run("priorshift", "demo", "--no-report")
    print(f"sdist: {_answer(said)}")


def _answer(said: str) -> str:
    answers = [line for line in said.splitlines() if line.startswith("target prior")]
    _expect(len(answers) == 1, "demo", said)
    return answers[0]


def _expect(holds: bool, what: str, said: str) -> None:
    if not holds:
        raise SystemExit(f"{what} is not as expected; it said:\n{said}")


if __name__ == "__main__":
    main()
