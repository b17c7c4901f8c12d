"""A source seen through its scores: what the source prior is read from, and what every target is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from priorshift.arrays import Floats, Mask
from priorshift.input.scaling import Rows
from priorshift.input.source import Source
from priorshift.scores import mixture
from priorshift.scores.cross_fitting import Repetition, cross_fit
from priorshift.scores.p_values import p_values

_FAR = 8.0  # standard deviations of the population, beyond which a value is cut off
_PREDICTED = (0.02, 0.98)  # priors that posteriors are predicted for: at 0 and 1 all rows would be alike


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

    @cached_property
    def mixture(self) -> tuple[Floats, Floats]:
        """π and w of the largest mixture that the p-values allow, in each repetition."""
        return mixture.fit_one(self.counts)

    def target_p_values(self, rows: Rows) -> Floats:
        """Ranks of the scores of a target's scaled rows among those of P, shape (repeats, rows)."""
        prepared, rng = self.prepare(rows[:]), np.random.default_rng(self.seed)
        return np.stack([p_values(r.positive, r.target(prepared, rng)) for r in self.repetitions])

    def predicted(self, values: Floats, ratio: float = 1.0) -> Floats:
        """Posteriors of rows with these p-values by the largest mixture, the mean over repetitions.

        Of U where R is 1, and else of a target of that ratio. A smaller mixture's would be about proportional.
        """
        priors, weights = self.mixture
        of_sample = np.clip(1 - (1 - priors) * ratio, *_PREDICTED)[:, None]
        posterior = of_sample / (of_sample + (1 - of_sample) * mixture.density(weights))
        return np.asarray(np.mean([p[b] for p, b in zip(posterior, mixture.bins(values), strict=True)], axis=0))
