"""The pytest plugin of mutation.py, for both of its stages; the instrumented code also calls it, in any process."""

from __future__ import annotations

import functools
import json
import os
from typing import Any

_REACHED, _REPORTS, _SELECTION, _STARTED = (
    os.environ.get(f"MUTATION_{name}") for name in ("REACHED", "REPORTS", "SELECTION", "STARTED")
)
_CURRENT = "PYTEST_CURRENT_TEST"  # set by pytest, and inherited by child processes
_seen: set[tuple[int, str]] = set()
_caches: list[Any] = []


def _append(path: str, line: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.close(file)


def reached(number: int) -> None:
    """Record that the current test reaches a function."""
    key = number, os.environ.get(_CURRENT, "")
    if _REACHED and key not in _seen:
        _seen.add(key)
        _append(_REACHED, json.dumps(key))


def pytest_configure() -> None:
    """Keep the caches of the repository's functions, so that each test can start with empty ones."""
    original = functools.lru_cache

    def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
        if callable(maxsize):
            return lru_cache()(maxsize)

        def decorate(function: Any) -> Any:
            cached = original(maxsize, typed)(function)
            if getattr(function, "__code__", decorate.__code__).co_filename.startswith(os.getcwd()):
                _caches.append(cached)
            return cached

        return decorate

    if _REACHED:
        functools.lru_cache = lru_cache  # type: ignore[assignment]


def pytest_collectstart(collector: Any) -> None:
    """Attribute what the constants of a test file reach to that file."""
    os.environ[_CURRENT] = f"{collector.nodeid} (setup)"


def pytest_collection_finish() -> None:
    os.environ.pop(_CURRENT, None)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Run the selected tests only, by the order of their files: tests of one file share fixtures."""
    if _SELECTION:
        with open(_SELECTION, encoding="utf-8") as file:
            selected = dict.fromkeys(json.load(file))
        files = {test.split("::")[0]: place for place, test in enumerate(selected)}
        items[:] = [item for item in items if item.nodeid in selected]
        items.sort(key=lambda item: files[item.nodeid.split("::")[0]])


def pytest_runtest_logstart(nodeid: str) -> None:
    for cache in _caches:
        cache.cache_clear()
    if _STARTED:
        _append(_STARTED, nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    if _REPORTS and "PYTEST_XDIST_WORKER" not in os.environ:
        _append(_REPORTS, json.dumps([report.nodeid, report.outcome, report.duration]))
