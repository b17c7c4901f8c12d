"""The work of the paper's grids: one source and seed, asked about every target by some methods."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.draws import Source, draw
from experiments.methods import Fits, verdict
from priorshift.errors import InputError

if TYPE_CHECKING:
    from experiments.grids import Experiment


def run_source(experiment: Experiment, source: Source, seed: int, methods: tuple[str, ...]) -> list[dict[str, Any]]:
    """A line for each target and method."""
    drawn = draw(source, seed, experiment.protocol)
    together = Fits(drawn, source, seed)
    lines = []
    for method in methods:
        fits = Fits(drawn, source, seed) if experiment.alone else together
        for target in experiment.targets:
            violation = target.setting if experiment.varies == "g" else None
            rows = drawn.target(target.target_prior, violation or 0.0)
            start = time.perf_counter()
            answer = fits.answer(method, rows, target, experiment.varies)
            seconds = time.perf_counter() - start
            interval = getattr(answer, "interval", None)
            overlap = (getattr(answer, "details", None) or {}).get("overlap", np.nan)
            lines.append(
                {
                    "dataset": source.dataset,
                    "label_frequency": source.label_frequency,
                    "source_prior": source.source_prior,
                    "rows": source.rows,
                    "target_prior": target.target_prior,
                    "setting": target.setting,
                    "method": method,
                    "seed": seed,
                    "estimate": _short(getattr(answer, "value", answer), method),
                    "interval": interval and [_short(interval.low, method), _short(interval.high, method)],
                    "source_estimate": _short(getattr(answer, "source_prior", np.nan), method),
                    "verdict": verdict(answer),
                    "overlap": _short(overlap, method),
                    "seconds": round(seconds, 4),
                }
            )
    return lines


def _short(value: Any, method: str) -> float | None:
    """Five digits; None where there is no number."""
    try:
        return round(float(value), 5) if np.isfinite(float(value)) else None
    except (TypeError, ValueError):
        raise InputError(
            f"{method} estimates a {type(value).__name__}, but a number or a PriorEstimate is expected."
        ) from None
