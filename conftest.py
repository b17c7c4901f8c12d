"""Where an extra (torch, Triton for a GPU, Dask, the report, the app) is not installed, what needs it is left out.

Pictures are drawn without windows, and closed after each test and example.
"""

import os
import sys
from importlib.util import find_spec

import pytest

os.environ.setdefault("MPLBACKEND", "agg")
collect_ignore = [] if find_spec("torch") else ["src/priorshift/methods/nnpu.py"]
collect_ignore += [] if find_spec("triton") else ["src/priorshift/embedding/triton_sums.py"]
collect_ignore += [] if find_spec("dask") else ["src/priorshift/distributed"]
collect_ignore += [] if find_spec("jinja2") else ["src/priorshift/report"]
collect_ignore += [] if find_spec("starlette") else ["src/priorshift/app"]
collect_ignore += ["docs/conf.py", "docs/_extensions"]  # which Sphinx runs


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
