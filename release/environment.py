"""A new virtual environment, which cannot import anything from the repository."""

from __future__ import annotations

import os
import subprocess
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_INHERITED = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}  # variables that would make other packages importable


class Environment:
    """A virtual environment, and `folder`, in which its commands run."""

    def __init__(self, root: Path) -> None:
        """Create the environment below a folder."""
        self._bin = root / "environment" / ("Scripts" if os.name == "nt" else "bin")
        self.folder = root / "work"
        self.folder.mkdir(parents=True)
        self._variables = {name: value for name, value in os.environ.items() if name not in _INHERITED}
        venv.create(root / "environment", with_pip=True)

    def install(self, *requirements: str | Path) -> None:
        """Install requirements with pip, and check that no two packages conflict."""
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
        self.run("python", "-m", "pip", "check", "--disable-pip-version-check")

    def run(self, command: str, *arguments: str | Path) -> str:
        """Run a command of the environment and return its output; exit with that output if it fails."""
        process = subprocess.run(
            [self._bin / command, *arguments], cwd=self.folder, env=self._variables, capture_output=True, text=True
        )
        if process.returncode:
            line = " ".join(map(str, (command, *arguments)))
            raise SystemExit(f"{line} ended with {process.returncode}:\n{process.stdout}{process.stderr}")
        return process.stdout

    @contextmanager
    def start(self, command: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Start a command whose output can be read while it runs; terminate it at the end of the context."""
        process = subprocess.Popen(
            [self._bin / command, *arguments], cwd=self.folder, env=self._variables, stdout=subprocess.PIPE, text=True
        )
        with process:
            try:
                yield process
            finally:
                process.terminate()
