"""Problems and what the code of the papers' authors answers to them, as parameters of tests.

Four of them, the smaller ones, are frozen in tests/data; the environment variable PRIORSHIFT_REFERENCE names a folder
with more of the kind (problems.npz and authors_outputs.json).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

FROZEN = Path(__file__).parents[1] / "data"


def answered(by):
    """P, U, T and the answer of each problem that has one under the name `by`."""
    named = os.environ.get("PRIORSHIFT_REFERENCE")
    folder = Path(named) if named else FROZEN
    problems = np.load(folder / ("problems.npz" if named else "authors_problems.npz"), allow_pickle=False)
    outputs = json.loads((folder / "authors_outputs.json").read_text())
    outputs = [answer for answer in outputs if answer.get(by) is not None]
    assert len(outputs) >= 4
    return [
        pytest.param(*(problems[f"{name}{answer['problem']}"] for name in "PUT"), answer, id=f"problem {answer['problem']}")
        for answer in outputs
    ]  # fmt: skip
