"""How far answers are from the truth, how often their intervals hold it, and how wide these are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Answer = tuple[float, float, float]


def answer(estimate: Any) -> Answer:
    """The value and the two ends of its interval."""
    return estimate.value, estimate.interval.low, estimate.interval.high


def accuracy(answers: Sequence[Answer], truth: float, of: str = "") -> dict[str, float | None]:
    """Figures of repeated answers, their names followed by `of`; a missing value counts as an error of 1."""
    value, low, high = np.array(answers, dtype=float).T
    off = value - truth
    there = np.isfinite(off)
    figures = {
        "error": np.where(there, np.abs(off), 1.0).mean(),
        "bias": off[there].mean() if there.any() else np.nan,
        "sd": off[there].std(ddof=1) if there.sum() > 1 else np.nan,
        "coverage": np.mean((low <= truth) & (truth <= high)),
        "width": np.mean(high - low),
    }
    return {f"{name}{of}": round(float(v), 6) if np.isfinite(v) else None for name, v in figures.items()}
