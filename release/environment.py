"""An empty environment, where nothing of the repository is on the path."""

from __future__ import annotations

import os
import subprocess
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OF_THIS_ONE = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}


class Environment:
    """A virtual environment of its own, with a folder of its own to work in."""

    def __init__(self, folder: Path) -> None:
        self._bin = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
        self.desk = folder / "desk"
        self.desk.mkdir(parents=True)
        self._variables = {name: value for name, value in os.environ.items() if name not in _OF_THIS_ONE}
        venv.create(folder / "environment", with_pip=True)

    def install(self, *what: str | Path) -> None:
        """Install by pip, and see that nothing is in conflict."""
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)
        self.run("python", "-m", "pip", "check", "--disable-pip-version-check")

    def run(self, command: str, *arguments: str | Path) -> str:
        """What a command of the environment prints; an end with what it said if it fails."""
        ended = subprocess.run(
            [self._bin / command, *arguments], cwd=self.desk, env=self._variables, capture_output=True, text=True
        )
        if ended.returncode:
            said = " ".join(map(str, (command, *arguments)))
            raise SystemExit(f"{said} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    @contextmanager
    def started(self, command: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on, with its output to read; it is ended when the work with it is done."""
        going = subprocess.Popen(
            [self._bin / command, *arguments], cwd=self.desk, env=self._variables, stdout=subprocess.PIPE, text=True
        )
        with going:
            try:
                yield going
            finally:
                going.terminate()
