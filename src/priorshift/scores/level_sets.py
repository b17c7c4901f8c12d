"""Prior of a population from the level sets of a score (Blanchard, Lee and Scott 2010; the ROC rule of DRPU).

Every set A has P(A) ≥ π·P₊(A), with equality if A contains no negatives; so the smallest P(A)/P₊(A) is the prior if
some level set of the score contains no negatives, and an upper bound otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index
from priorshift.io.sample_size import design_effect, effective_size


@dataclass(frozen=True, eq=False)
class SampleScores:
    """Scores of a sample, with the mass and the observation of each row."""

    values: Floats  # score of each row
    mass: Floats  # share of each row in the sample; the sum is 1
    observation: Index  # number of the independent observation that each row belongs to
    copies: Index  # number of copies of each row, itself included

    @classmethod
    def from_rows(cls, values: Floats) -> SampleScores:
        """Take the scores of independent rows of equal weight."""
        n = len(values)
        return cls(values, np.full(n, 1 / n), np.arange(n), np.ones(n, dtype=np.intp))

    @property
    def observations(self) -> float:
        """Effective number of independent observations, such as groups."""
        return effective_size(self.mass, self.observation)

    def effective_size(self, threshold: float) -> float:
        """Return the effective sample size for the share of scores at or above a threshold."""
        above = self.values >= threshold
        influence = self.mass * (above - self.mass @ above)  # of each row on that share
        distinct = 1 / (self.copies @ self.mass**2)  # effective number of rows, where copies count once
        return float(distinct) / design_effect(influence, self.observation, self.copies)


@dataclass(frozen=True)
class LevelSet:
    """Set of rows with a score at or above a threshold: its shares of the positives and of the population."""

    threshold: float
    positive: float  # share of the positives with a score at or above the threshold
    population: float  # share of the population

    @property
    def ratio(self) -> float:
        """Share of the population over that of the positives: an upper bound of the prior."""
        return self.population / self.positive


@dataclass(frozen=True, eq=False)
class ShareCurve:
    """Counts of positives and of the population between thresholds, highest first; the last count is below them all.

    Only the scores of positives are thresholds: between two of them the population's share alone can fall.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.scores.level_sets import SampleScores, ShareCurve
    >>> samples = np.array([2.0, 3.0]), np.array([0.0, 1.0, 2.5, 4.0])
    >>> curve = ShareCurve.from_scores(*map(SampleScores.from_rows, samples))
    >>> curve.positive, curve.population
    (array([0.5, 1. ]), array([0.25, 0.5 ]))
    >>> curve.smallest(least=0).ratio
    0.5
    """

    threshold: Floats  # decreasing, shape (thresholds,)
    positive_counts: Floats  # shape (thresholds + 1,), as the next
    population_counts: Floats

    @classmethod
    def from_scores(cls, positive: SampleScores, population: SampleScores) -> ShareCurve:
        """Count the scores of two samples between thresholds, which are the distinct scores of positives."""
        threshold = np.unique(positive.values)

        def counts(sample: SampleScores) -> Floats:
            """Return weighted counts between thresholds, from above the highest down to below the lowest."""
            interval = np.searchsorted(threshold, sample.values, side="right")
            weights = sample.mass / sample.mass.max()  # so that equal masses give exact integers
            return np.bincount(interval, weights, len(threshold) + 1)[::-1].astype(np.float64)

        return cls(threshold[::-1], counts(positive), counts(population))

    @property
    def positive(self) -> Floats:
        """Share of the positives at or above each threshold."""
        return _shares(self.positive_counts)

    @property
    def population(self) -> Floats:
        """Share of the population at or above each threshold."""
        return _shares(self.population_counts)

    def smallest(self, least: float) -> LevelSet:
        """Return the level set with the smallest ratio, with more than the share `least` of the positives."""
        k = int(np.argmin(_ratios(self.positive, self.population, least)))
        return LevelSet(float(self.threshold[k]), float(self.positive[k]), float(self.population[k]))

    def standard_error(
        self, least: float, sizes: tuple[float, float], replicates: int, rng: np.random.Generator
    ) -> float:
        """Return the bootstrap standard error of the smallest ratio, for effective `sizes` of P and of the population.

        `least` is the share of positives that a level set must exceed. Resampling scores is a multinomial draw of how
        many lie between thresholds.
        """

        def resample(counts: Floats, rows: float) -> Floats:
            """Return shares above each threshold in bootstrap samples of `rows` rows, one line for each sample."""
            return _shares(rng.multinomial(max(round(rows), 1), counts / counts.sum(), size=replicates))

        positive, population = resample(self.positive_counts, sizes[0]), resample(self.population_counts, sizes[1])
        return float(_ratios(positive, population, least).min(axis=-1).std(ddof=1))


def margin(m: float) -> float:
    """Return the margin ε = √(4·log(em/2)/m) + √(log(2m)/(2m)) of m positives, which exceeds 1 for m ≤ 27.

    Level sets with a share of positives of at most ε are too small for their ratio to be trusted.

    Examples
    --------
    >>> from priorshift.scores.level_sets import margin
    >>> round(margin(27), 3), round(margin(100), 3), round(margin(1000), 3)
    (1.002, 0.606, 0.232)
    """
    return sqrt(4 * log(e * m / 2) / m) + sqrt(log(2 * m) / (2 * m))


def _shares(counts: NDArray[Any]) -> Floats:
    """Return the share at or above each threshold from counts between thresholds, highest first."""
    total = np.cumsum(counts, axis=-1)  # the last count is below all thresholds, so the last total is that of all rows
    return np.asarray(total[..., :-1] / total[..., -1:])


def _ratios(positive: Floats, population: Floats, least: float) -> Floats:
    """Return the share of the population over that of the positives; infinite where the latter is not above `least`."""
    trusted = positive > least
    return np.where(trusted, population / np.where(trusted, positive, 1.0), np.inf)
