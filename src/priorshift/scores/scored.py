"""A source seen through its scores: what the source prior is read from, and what every target is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from priorshift.arrays import Floats, Mask
from priorshift.input.source import Source, Target
from priorshift.scores import mixture
from priorshift.scores.cross_fitting import FIT_ROWS, Repetition, cross_fit
from priorshift.scores.evidence import ScoreShares, SourceScores
from priorshift.scores.p_values import p_values
from priorshift.threads import in_threads

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
    far: float = _FAR

    @classmethod
    def of(cls, source: Source, rows: Floats) -> Preparation:
        """By the spread of the population; `rows` are all of the source, scaled."""
        encoded = source.table.origin is not None
        return cls.by(rows[source.population], used=source.scaling.factor != 0, encoded=encoded)

    @classmethod
    def by(cls, population: Floats, *, used: Mask, encoded: bool) -> Preparation:
        """By scaled rows of the population, some columns of which may be levels of a category."""
        spread = float(np.sqrt(population.var(axis=0).mean())) or 1.0
        # levels of a category vary so little that numbers beside them are far above the average
        return cls(used, spread, _FAR / spread if encoded else _FAR)

    def __call__(self, rows: Floats) -> Floats:
        with np.errstate(over="ignore"):  # of what is cut off
            return np.asarray(np.clip(rows[:, self.used] / self.spread, -self.far, self.far))


@dataclass(frozen=True, eq=False)
class ScoredTarget:
    """The p-values of a target's rows, shape (repeats, rows), and how the score is spread beside the source."""

    p_values: Floats
    scores: ScoreShares


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
    positive_mass : ndarray or None
        What each row of P counts among its ranks; None is the same for all.
    positive_worth : float
        Rows of equal weight that they are worth.
    spread : SourceScores
        How the score is spread in P and U.
    """

    prepare: Preparation
    repetitions: tuple[Repetition, ...]
    p_values: Floats
    counts: Floats
    sizes: tuple[int, int]
    seed: int
    positive_mass: Floats | None
    positive_worth: float
    spread: SourceScores

    @classmethod
    def of(
        cls,
        source: Source,
        model: Any,
        repeats: int,
        folds: int,
        rng: np.random.Generator,
        fit_rows: int = FIT_ROWS,
        device: str = "cpu",
    ) -> ScoredSource:
        """Fit the scores; `model` None is the ridge regression of :mod:`priorshift.scores.cross_fitting`."""
        seed = int(rng.integers(2**62))
        rows = source.rows[:]
        prepare = Preparation.of(source, rows)
        made = cross_fit(prepare(rows), source, model, repeats, folds, rng, fit_rows=fit_rows, device=device)
        return cls.by(source, prepare, made, seed)

    @classmethod
    def by(cls, source: Source, prepare: Preparation, repetitions: tuple[Repetition, ...], seed: int) -> ScoredSource:
        """With scores that were fitted before."""
        (m, n), own = source.worth, source.positive_mass
        alike = bool(np.ptp(own) < 1e-9 * own[0] and m > len(own) - 0.5)  # then a rank is a count
        mass = None if alike else own
        values = np.stack(
            in_threads(lambda r: p_values(r.positive, r.population, mass, m), repetitions, len(source.labeled))
        )
        counts = np.stack([mixture.histogram(v, n * source.population_mass) for v in values])
        spread = SourceScores.of(repetitions, own, source.population_mass)
        return cls(prepare, repetitions, values, counts, source.sizes, seed, mass, m, spread)

    @cached_property
    def mixture(self) -> tuple[Floats, Floats]:
        """π and w of the largest mixture that the p-values allow, in each repetition."""
        return mixture.fit_one(self.counts)

    def target_p_values(self, target: Target, device: str = "cpu") -> Floats:
        """Ranks of the scores of a target's rows among those of P, shape (repeats, rows)."""
        return self.score(target, device).p_values

    def score(self, target: Target, device: str = "cpu") -> ScoredTarget:
        """Score the rows of a target, of which ranks and shares are kept."""
        prepared, rng = self.prepare(target.rows[:]), np.random.default_rng(self.seed)
        dealt = [r.deal(target.of_source, rng) for r in self.repetitions]

        mass, source = None if target.is_even else target.mass, self.spread

        def seen(k: int) -> tuple[Floats, Floats]:
            one = self.repetitions[k]
            scores = one.target(prepared, dealt[k], device)
            return self.ranks(one.positive, scores), source.cells.shares(scores, mass)

        values, shares = zip(*in_threads(seen, range(len(dealt)), len(prepared)), strict=True)
        spread = ScoreShares(source.cells.edges, source.positive, source.population, np.mean(shares, axis=0))
        return ScoredTarget(np.stack(values), spread)

    def ranks(self, positive: Floats, scores: Floats) -> Floats:
        """The p-values of scores of one repetition."""
        return p_values(positive, scores, self.positive_mass, self.positive_worth)

    def predicted(self, values: Floats, ratio: float = 1.0) -> Floats:
        """Posteriors of rows with these p-values by the largest mixture, the mean over repetitions.

        Of U where R is 1, and else of a target of that ratio. A smaller mixture's would be about proportional.
        """
        priors, weights = self.mixture
        of_sample = np.clip(1 - (1 - priors) * ratio, *_PREDICTED)[:, None]
        posterior = of_sample / (of_sample + (1 - of_sample) * mixture.density(weights))
        return np.asarray(np.mean([p[b] for p, b in zip(posterior, mixture.bins(values), strict=True)], axis=0))
