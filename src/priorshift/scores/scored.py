"""A source seen through its scores: what the source prior is read from, and what every target is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index, Mask
from priorshift.input.observations import PriorInfluence
from priorshift.input.scaling import Rows
from priorshift.input.source import Source
from priorshift.scores import mixture
from priorshift.scores.cross_fitting import Repetition, cross_fit
from priorshift.scores.p_values import Ranks, p_values

_FAR = 8.0  # standard deviations of the population, beyond which a value is cut off
_MOST_PRIOR = 0.99  # of the population in a ratio of negatives, which would have no bound


@dataclass(frozen=True, eq=False)
class Preparation:
    """Rows as the models take them: without left-out columns, and of unit spread on average, as the kernel assumes.

    Values far outside are cut off: label shift holds for every function of the rows, and random features of a point
    that lies far from all others are noise.
    """

    used: Mask
    spread: float

    @classmethod
    def of(cls, source: Source, rows: Floats) -> Preparation:
        """By the spread of the population; `rows` are all of the source, scaled."""
        return cls(source.scaling.factor != 0, float(np.sqrt(rows[source.population].var(axis=0).mean())) or 1.0)

    def __call__(self, rows: Floats) -> Floats:
        return np.asarray(np.clip(rows[:, self.used] / self.spread, -_FAR, _FAR))


@dataclass(frozen=True, eq=False)
class Replicates:
    """Bootstrap replicates of a scored source: observations are resampled, scores are kept.

    Attributes
    ----------
    positive_weights : ndarray of shape (replicates, positives)
        How often each positive was drawn.
    counts : ndarray of shape (replicates, repeats, bins)
        Histograms of the population's p-values.
    means : ndarray of shape (replicates, repeats)
        Their means.
    moved : ndarray of shape (replicates,)
        How far the draws move another estimate of the prior, to first order; zero where no influence was given.
    """

    positive_weights: NDArray[np.uint8]
    counts: Floats
    means: Floats
    moved: Floats


@dataclass(frozen=True, eq=False)
class ScoredSource:
    """Cross-fitted scores of P and U, and the p-values of U.

    Attributes
    ----------
    prepare : Preparation
        From scaled rows to what the models take.
    repetitions : tuple of Repetition
        Scores of P and U, and the models.
    p_values : ndarray of shape (repeats, rows of U)
        Ranks of U's scores among those of P.
    counts : ndarray of shape (repeats, bins)
        Their histograms.
    sizes : tuple of two int
        Labelled and unlabelled rows.
    seed : int
        What targets are dealt to the models by, the same each time.
    """

    prepare: Preparation
    repetitions: tuple[Repetition, ...]
    p_values: Floats
    counts: Floats
    sizes: tuple[int, int]
    seed: int

    @classmethod
    def of(cls, source: Source, model: Any, repeats: int, folds: int, rng: np.random.Generator) -> ScoredSource:
        """Fit the scores; `model` None is the ridge regression of :mod:`priorshift.scores.cross_fitting`."""
        seed = int(rng.integers(2**62))
        rows = source.rows[:]
        prepare = Preparation.of(source, rows)
        repetitions = cross_fit(prepare(rows), source, model, repeats, folds, rng)
        values = np.stack([p_values(r.positive, r.population) for r in repetitions])
        return cls(prepare, repetitions, values, np.stack([*map(mixture.histogram, values)]), source.sizes, seed)

    def resample(
        self, source: Source, replicates: int, rng: np.random.Generator, influence: PriorInfluence | None
    ) -> Replicates:
        """Poisson weights for each observation; `influence` is that of the rows on another estimate of the prior."""
        observation = source.observation
        ranks = [Ranks(repetition.positive, repetition.population) for repetition in self.repetitions]
        weights = np.empty((replicates, len(source.positive)), dtype=np.uint8)
        counts = np.empty((replicates, len(ranks), mixture.BINS))
        means, moved = np.empty(counts.shape[:2]), np.zeros(replicates)
        for b in range(replicates):
            drawn = rng.poisson(1.0, int(observation.max()) + 1)
            w, w_p = (_or_ones(drawn[observation[rows]]) for rows in (source.population, source.positive))
            weights[b] = w_p
            if influence is not None:
                moved[b] = (w_p - 1) @ influence.positive + (w - 1) @ influence.unlabeled
            for r, ranked in enumerate(ranks):
                v = ranked.p_values(w_p)
                counts[b, r], means[b, r] = mixture.histogram(v, w), (w @ v) / w.sum()
        return Replicates(weights, counts, means, moved)

    def score(self, rows: Rows, rng: np.random.Generator) -> list[Floats]:
        """Scores of a target's scaled rows in each repetition."""
        prepared = self.prepare(rows[:])
        return [repetition.target(prepared, rng) for repetition in self.repetitions]

    def target_p_values(self, scores: list[Floats]) -> Floats:
        """Ranks of a target's scores among those of P, shape (repeats, rows)."""
        return np.stack([p_values(r.positive, s) for r, s in zip(self.repetitions, scores, strict=True)])

    def ratio(
        self, scores: list[Floats], observation: Index, replicates: Replicates, rng: np.random.Generator
    ) -> tuple[float, Floats, Floats]:
        """R of the joint mixture of U and a target, the mean over repetitions; its replicates; the target's histograms.

        `observation` numbers the observation that each of the target's rows is.
        """
        counts = np.stack([*map(mixture.histogram, self.target_p_values(scores))])
        pi, new, w = mixture.fit_two(self.counts, counts)
        B = len(replicates.counts)
        ranks = [Ranks(r.positive, s) for r, s in zip(self.repetitions, scores, strict=True)]
        resampled = np.empty((B, *counts.shape))
        for b in range(B):
            weights = _or_ones(rng.poisson(1.0, int(observation.max()) + 1))[observation]
            for r, ranked in enumerate(ranks):
                resampled[b, r] = mixture.histogram(ranked.p_values(replicates.positive_weights[b]), weights)
        start = mixture.warm(pi, B), mixture.warm(new, B), np.broadcast_to(w, (B, *w.shape))
        pis, news, _ = mixture.fit_two(replicates.counts, resampled, mixture.WARM, start)
        return float(_negatives(pi, new).mean()), _negatives(pis, news).mean(axis=1), counts


def _or_ones(weights: NDArray[np.intp]) -> NDArray[np.intp]:
    """Weights of a replicate; all rows once where none was drawn."""
    return weights if weights.any() else np.ones_like(weights)


def _negatives(pi: Floats, new: Floats) -> Floats:
    """(1−π′)/(1−π)."""
    return np.asarray((1 - new) / (1 - np.minimum(pi, _MOST_PRIOR)))
