"""Marks all tests of this folder, so that one run can have its slow tests and every test of the other folders."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:  # of every folder
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.unit)
