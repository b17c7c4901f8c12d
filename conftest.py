"""Where an extra (torch, Triton for a GPU, Dask, the report, the app) is not installed, what needs it is left out.

Pictures are drawn without windows, and closed after each test and example. Random numbers without a seed are the same
in every run.
"""

import os
import sys
from importlib.util import find_spec

import numpy as np
import pytest

os.environ.setdefault("MPLBACKEND", "agg")
collect_ignore = [] if find_spec("torch") else ["src/priorshift/methods/nnpu.py"]
TRITON = ["src/priorshift/embedding/triton_sums.py", "src/priorshift/scores/triton_scores.py"]
collect_ignore += [] if find_spec("triton") else TRITON
collect_ignore += [] if find_spec("dask") else ["src/priorshift/distributed"]
collect_ignore += [] if find_spec("jinja2") else ["src/priorshift/report"]
collect_ignore += [] if find_spec("starlette") else ["src/priorshift/app"]
collect_ignore += ["docs/conf.py", "docs/_extensions"]  # which Sphinx runs


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture(autouse=True)
def _seed_unseeded_generators(monkeypatch):
    """Seed the generators of calls without `random_state`, each differently, so that no test fails by chance."""
    default_rng, seeds = np.random.default_rng, np.random.SeedSequence(0)
    monkeypatch.setattr(
        np.random, "default_rng", lambda seed=None: default_rng(seeds.spawn(1)[0] if seed is None else seed)
    )
