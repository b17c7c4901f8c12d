"""How much each row moves the two means μ_U and μ_P, seen through a function of the feature space."""

from __future__ import annotations

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.input.weights import effective_size


class Push:
    """First-order changes when a row counts a little more in its sample, or in both of its samples.

    With f the values ⟨f, φ(x)⟩ at all rows, a row of U moves ⟨f, μ_U⟩ by mass·(f(x) − mean over U).

    Parameters
    ----------
    positive, population : ndarray
        What each row counts in μ_P and in μ_U; the sums are 1.
    observation : ndarray of int
        The observation that each row is.
    """

    def __init__(self, positive: Floats, population: Floats, observation: Index) -> None:
        self.positive, self.population = positive, population
        # the usual n/(n−1) of a variance belongs to each sample
        sizes = (effective_size(mass, observation) for mass in (positive, population))
        self.unbiased = [np.sqrt(n / max(n - 1, 1)) for n in sizes]

    def line(self, f: Floats) -> Floats:
        """Of ⟨f, a⟩ with a = μ_U − μ_P."""
        return self._combined(1.0, -1.0, f)

    def point(self, ratio: float, f: Floats) -> Floats:
        """Of ⟨f, u⟩ with u = λμ_U + (1−λ)μ_P."""
        return self._combined(ratio, 1 - ratio, f)

    def _combined(self, of_population: float, of_positives: float, f: Floats) -> Floats:
        of_P, of_U = self.unbiased
        total = (of_population * of_U) * self.population * (f - self.population @ f)
        total += (of_positives * of_P) * self.positive * (f - self.positive @ f)
        return np.asarray(total)
