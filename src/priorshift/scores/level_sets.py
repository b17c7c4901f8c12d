"""The prior of a population from the level sets of a score (Blanchard, Lee and Scott 2010; DRPU's ROC rule).

Every set A has P(A) ≥ π·P₊(A), with equality where A holds no negatives; so the smallest P(A)/P₊(A) is the prior where
some level set of the score is free of negatives, and an upper bound of it otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log, sqrt

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats


@dataclass(frozen=True)
class LevelSet:
    """A level set: its share of the positives, of the population, and the second over the first."""

    positive: float
    population: float

    @property
    def ratio(self) -> float:
        return self.population / self.positive


@dataclass(frozen=True, eq=False)
class ShareCurve:
    """Counts of positives and of the population between thresholds, highest first; the last count is below them all.

    Only the scores of positives are thresholds: between two of them the population's share alone can fall.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.scores.level_sets import ShareCurve
    >>> curve = ShareCurve.of(positive=np.array([2.0, 3.0]), population=np.array([0.0, 1.0, 2.5, 4.0]))
    >>> curve.positive, curve.population
    (array([0.5, 1. ]), array([0.25, 0.5 ]))
    >>> curve.smallest(least=0).ratio
    0.5
    """

    threshold: Floats
    positive_counts: NDArray[np.intp]
    population_counts: NDArray[np.intp]

    @classmethod
    def of(cls, positive: Floats, population: Floats) -> ShareCurve:
        """From two samples of scores."""
        threshold = np.unique(positive)

        def counts(scores: Floats) -> NDArray[np.intp]:
            at = np.searchsorted(threshold, scores, side="right")
            return np.bincount(at, minlength=len(threshold) + 1)[::-1]

        return cls(threshold[::-1], counts(positive), counts(population))

    @property
    def rows(self) -> tuple[int, int]:
        return int(self.positive_counts.sum()), int(self.population_counts.sum())

    @property
    def positive(self) -> Floats:
        """Share of the positives at or above each threshold."""
        return _shares(self.positive_counts)

    @property
    def population(self) -> Floats:
        """Share of the population at or above each threshold."""
        return _shares(self.population_counts)

    def smallest(self, least: float) -> LevelSet:
        """The level set of smallest ratio, among those that hold more than `least` of the positives."""
        at = int(np.argmin(_ratios(self.positive, self.population, least)))
        return LevelSet(float(self.positive[at]), float(self.population[at]))

    def standard_error(self, least: float, replicates: int, rng: np.random.Generator) -> float:
        """Of the smallest ratio, by the bootstrap: resampling scores is a multinomial draw of the counts."""

        def resample(counts: NDArray[np.intp]) -> Floats:
            total = counts.sum()
            return _shares(rng.multinomial(total, counts / total, size=replicates))

        ratios = _ratios(resample(self.positive_counts), resample(self.population_counts), least)
        return float(ratios.min(axis=-1).std(ddof=1))


def margin(m: int) -> float:
    """ε of m positives: √(4·log(em/2)/m) + √(log(2m)/(2m)), which exceeds 1 for m ≤ 27.

    Examples
    --------
    >>> from priorshift.scores.level_sets import margin
    >>> round(margin(27), 3), round(margin(100), 3), round(margin(1000), 3)
    (1.002, 0.606, 0.232)
    """
    return sqrt(4 * log(e * m / 2) / m) + sqrt(log(2 * m) / (2 * m))


def _shares(counts: NDArray[np.intp]) -> Floats:
    total = np.cumsum(counts, axis=-1)
    return np.asarray(total[..., :-1] / total[..., -1:])


def _ratios(positive: Floats, population: Floats, least: float) -> Floats:
    trusted = positive > least
    return np.where(trusted, population / np.where(trusted, positive, 1.0), np.inf)
