"""Build the wheel and the sdist, check their contents, and install and run them in new environments.

Distributions that pass are copied to ``dist``, ready to be published. Needs Python with venv and a package index.
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
_RENDER_RECIPE = (
    "import sys, rattler_build as r; r.Stage0Recipe.from_yaml(open(sys.argv[1]).read()).render(r.VariantConfig())"
)
_ASSETS = re.compile(r'(?:href|src)="([^":]+\.(?:css|js))"')


def main() -> None:
    """Run all checks in order, and exit with a message at the first that fails."""
    with tempfile.TemporaryDirectory() as folder:
        wheel, sdist = _build(Path(folder))
        _check_wheel(Environment(Path(folder) / "wheel"), wheel)
        _check_sdist(Environment(Path(folder) / "sdist"), sdist)
        (HOME / "dist").mkdir(exist_ok=True)
        for distribution in (wheel, sdist):
            print(shutil.copy(distribution, HOME / "dist"))


def _build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it; check the contents of both, and all metadata."""
    tools, output = Environment(folder / "tools"), folder / "output"
    tools.install(*_TOOLS)
    tools.run("python", "-m", "build", "--outdir", output, HOME)
    (wheel,), (sdist,) = output.glob("*.whl"), output.glob("*.tar.gz")
    if problems := wheel_problems(wheel) + sdist_problems(sdist):
        raise SystemExit("\n".join(problems))
    tools.run("twine", "check", "--strict", wheel, sdist)
    tools.run("validate-pyproject", HOME / "pyproject.toml")
    tools.run("cffconvert", "--validate", "--infile", HOME / "CITATION.cff")
    tools.run("python", "-c", _RENDER_RECIPE, HOME / "recipe" / "recipe.yaml")
    print(f"built and checked: {wheel.name}, {sdist.name}")
    return wheel, sdist


def _check_wheel(environment: Environment, wheel: Path) -> None:
    """Run the demo from the wheel without extras and with the extra report, and open the app's page."""
    environment.install(wheel)
    package = Path(environment.run("python", "-c", "import priorshift; print(priorshift.__file__)").strip())
    if HOME in package.parents:
        raise SystemExit(f"priorshift was imported from {package}, which is the repository and not the wheel")
    output = environment.run("priorshift", "demo")
    _check("report: none (" in output and 'pip install "priorshift[report]"' in output, "demo without extras", output)
    print(f"wheel: {_estimate(output)}")

    environment.install(f"{wheel}[report]")
    output = environment.run("priorshift", "demo")
    page = (environment.folder / "demo.html").read_text(encoding="utf-8")
    shares = re.findall(r"target prior (\d\.\d+)", output)
    _check(bool(shares) and shares[0] in page and "<svg" in page, "demo with a report", output)
    print(f"wheel[report]: a page of {len(page):,} characters")

    environment.install(f"{wheel}[app]")
    with environment.start("priorshift", "app", "--no-browser") as app:
        address = (app.stdout.readline() if app.stdout else "").rpartition(" ")[2].strip()
        # an address works once: it is exchanged for a cookie, and leads to the folder of the page
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address, timeout=30) as response:
            folder, page = response.geturl(), response.read().decode()
        assets = _ASSETS.findall(page)
        contents = [browser.open(folder + name, timeout=30).read() for name in assets]
        _check(len(assets) >= 2 and all(contents), "the app's page", page)
    print(f"wheel[app]: a page with {', '.join(assets)}")


def _check_sdist(environment: Environment, sdist: Path) -> None:
    """Run the demo from the sdist."""
    environment.install(sdist)
    print(f"sdist: {_estimate(environment.run('priorshift', 'demo', '--no-report'))}")


def _estimate(output: str) -> str:
    """Return the line of the demo's output that has the estimate."""
    lines = [line for line in output.splitlines() if line.startswith("target prior")]
    _check(len(lines) == 1, "demo", output)
    return lines[0]


def _check(passed: bool, what: str, output: str) -> None:
    """Exit with a message if a check has not passed."""
    if not passed:
        raise SystemExit(f"{what} is not as expected; its output:\n{output}")


if __name__ == "__main__":
    main()
