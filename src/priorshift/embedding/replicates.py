"""Bootstrap samples as counts: how often each row of P, U and T is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.embedding.sample import Sample

_BLOCK = 4096  # rows whose counts are multiplied at a time


def draw_counts(
    samples: Sequence[Sample], source: int, replicates: int, rng: np.random.Generator
) -> list[NDArray[np.uint8]]:
    """How often each row of each sample is drawn, shape (rows, replicates); observations below `source` are its own."""
    p, u, t = (s.numbers for s in samples)
    drawn = np.zeros((max(int(numbers.max()) for numbers in (p, u, t)) + 1, replicates), np.uint8)
    for numbers in (u, t[t >= source], p[~np.isin(p, u)]):
        drawn[numbers] = _draws(len(numbers), replicates, rng)
    return [drawn[s.observation] for s in samples]


def over_rows(values: Floats, counts: NDArray[np.uint8], of: Callable[[Floats], Floats]) -> Floats:
    """Σ value·of(count) over the rows, for each replicate."""
    blocks = (slice(i, i + _BLOCK) for i in range(0, len(values), _BLOCK))
    total = np.zeros(counts.shape[1])
    for block in blocks:
        total += values[block] @ of(counts[block].astype(np.float64))
    return total


def _draws(n: int, replicates: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """How often each of n is drawn in n draws with replacement, for each replicate: shape (n, replicates)."""
    counts = np.empty((n, replicates), np.uint8)
    for b in range(replicates):
        counts[:, b] = np.bincount(rng.integers(0, n, n), minlength=n) if n else 0
    return counts
