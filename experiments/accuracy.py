"""Measure the error of repeated estimates, and the coverage and width of their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Answer = tuple[float, float, float]  # the estimate and the two ends of its interval


def answer(estimate: Any) -> Answer:
    """Return the value of an estimate and the two ends of its interval."""
    return estimate.value, estimate.interval.low, estimate.interval.high


def accuracy(answers: Sequence[Answer], truth: float, suffix: str = "") -> dict[str, float | None]:
    """Return error, bias, standard deviation, coverage and mean width, each name followed by `suffix`.

    A missing estimate counts as an error of 1.
    """
    value, low, high = np.array(answers, dtype=float).T
    deviation = value - truth
    finite = np.isfinite(deviation)
    figures = {
        "error": np.where(finite, np.abs(deviation), 1.0).mean(),
        "bias": deviation[finite].mean() if finite.any() else np.nan,
        "sd": deviation[finite].std(ddof=1) if finite.sum() > 1 else np.nan,
        "coverage": np.mean((low <= truth) & (truth <= high)),
        "width": np.mean(high - low),
    }
    return {f"{name}{suffix}": round(float(v), 6) if np.isfinite(v) else None for name, v in figures.items()}
