"""How much each row moves the two means μ_U and μ_P, seen through a function of the feature space."""

from __future__ import annotations

import numpy as np

from priorshift.arrays import Floats, Index, Mask


class Push:
    """First-order changes when a row counts a little more in its sample, or in both of its samples.

    With f the values ⟨f, φ(x)⟩ at all rows, a row of U moves ⟨f, μ_U⟩ by (f(x) − mean over U)/n.
    """

    def __init__(self, positive: Mask, population: Index) -> None:
        self.positive = np.flatnonzero(positive)
        self.population = population
        self.rows = len(positive)

    def line(self, f: Floats) -> Floats:
        """Of ⟨f, a⟩ with a = μ_U − μ_P."""
        return self._combined(1.0, -1.0, f)

    def point(self, ratio: float, f: Floats) -> Floats:
        """Of ⟨f, u⟩ with u = λμ_U + (1−λ)μ_P."""
        return self._combined(ratio, 1 - ratio, f)

    def _combined(self, of_population: float, of_positives: float, f: Floats) -> Floats:
        total = np.zeros(self.rows)
        for rows, factor in ((self.population, of_population), (self.positive, of_positives)):
            n = len(rows)
            # the usual n/(n−1) of a variance belongs to each sample
            total[rows] += factor * (f[rows] - f[rows].mean()) / np.sqrt(n * max(n - 1, 1))
        return total
