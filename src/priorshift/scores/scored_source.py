"""A source seen through its scores: p-values, how scores are spread, and whether P and U look swapped.

The population holds the positives, U = πP + (1−π)N, so every set of rows that P has is in U too, at π times its share:
κ = inf U(A)/P(A) ≥ π. The other way round nothing is certain: rows that only negatives are like are in U and not in
P, inf P(A)/U(A) = 0 where the classes can be told apart. With the two tables swapped it is the reverse: P has rows that
U lacks altogether, and all of U's are in P. The sets that are compared are the rows of the highest scores, of which P
holds a share a, and of the lowest, of which U does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from priorshift.arrays import Floats, Mask
from priorshift.errors import InconsistentInputWarning
from priorshift.problem import Source, Target
from priorshift.scores import mixture
from priorshift.scores.cross_fitting import FIT_ROWS, Repetition, choose_score_device, cross_fit, scores_by_fold
from priorshift.scores.level_sets import ShareCurve
from priorshift.scores.mixture import p_values
from priorshift.threads import map_in_threads
from priorshift.warning_records import warn

_CELLS = 30  # of a score, about
_TAILS = (0.01, 0.99)  # quantiles of a sample, beyond which a score may lie in the outermost cell
_TAIL_ROWS = 20_000  # scores of a sample that the quantiles are taken of
_BLOCK = 2**15  # scores counted together: they fit into a processor's cache
_EQUAL = 1e-6  # the range of scores, relative to their size, below which they do not differ
_STEPS = np.array([1.0, 2.0, 2.5, 5.0, 10.0])  # times a power of ten: cells that begin at round numbers


@dataclass(frozen=True)
class ScoreCells:
    """Cells of equal width of a score, from a round number on; the outermost two hold what lies beyond."""

    first: int  # the multiple of the width at which the lowest cell begins
    step: float  # their width
    count: int

    @classmethod
    def from_scores(cls, positive: Floats, population: Floats) -> ScoreCells:
        """Divide the range of both samples, without their tails."""
        tails = [np.quantile(s[:: 1 + len(s) // _TAIL_ROWS], _TAILS) for s in (positive, population)]
        low, high = float(np.min(tails)), float(np.max(tails))
        least = _EQUAL * (max(abs(low), abs(high)) or 1.0)
        if high - low < least:  # all rows score the same
            low, high = low - least, high + least
        width = (high - low) / _CELLS
        power = 10.0 ** np.floor(np.log10(width))
        step = float(_STEPS[np.searchsorted(_STEPS, width / power * (1 - 1e-12))] * power)
        first = int(np.floor(low / step))
        return cls(first, step, max(int(np.ceil(high / step)) - first, 1))

    @property
    def edges(self) -> Floats:
        """Where cells begin, and where the last one ends."""
        return np.asarray(self.step * np.arange(self.first, self.first + self.count + 1), dtype=np.float64)

    def shares(self, scores: Floats, mass: Floats | None = None) -> Floats:
        """The share of a sample in each cell, by the mass of its rows; None is the same for all."""
        held = np.zeros(self.count)
        for at in range(0, len(scores), _BLOCK):
            block = slice(at, at + _BLOCK)
            cell = np.clip(np.floor(scores[block] / self.step) - self.first, 0, self.count - 1).astype(np.intp)
            held += np.bincount(cell, None if mass is None else mass[block], self.count)
        return held / held.sum()


@dataclass(frozen=True, eq=False)
class SourceScores:
    """Shares of P and U in cells of the score, the mean over repetitions."""

    cells: ScoreCells
    positive: Floats
    population: Floats


@dataclass(frozen=True, eq=False)
class ScoreShares:
    """Shares of P, U and T in cells of the score."""

    edges: Floats  # shape (cells + 1,)
    positive: Floats
    population: Floats
    target: Floats


@dataclass(frozen=True, eq=False)
class WitnessEvidence:
    """What plots of :class:`priorshift.WitnessShift` are drawn from."""

    source: Floats  # rows of U whose p-values are in each bin, shape (repeats, bins)
    target: Floats  # and of T
    priors: Floats  # π of the largest mixture that the source's p-values allow, of each repetition
    weights: Floats  # and w, shape (repeats, components)
    scores: ScoreShares | None  # None where rows were only counted


@dataclass(frozen=True, eq=False)
class LevelSetEvidence:
    """What plots of :class:`priorshift.DRPU` are drawn from."""

    source: ShareCurve  # shares above each threshold, and those of the positives
    target: ShareCurve
    least_share: float  # of positives above a threshold that is trusted


_FAR = 8.0  # standard deviations of the population, beyond which a value is cut off
_PREDICTED = (0.02, 0.98)  # priors that posteriors are predicted for: at 0 and 1 all rows would have the same


@dataclass(frozen=True, eq=False)
class Preparation:
    """Rows as the models take them: without left-out columns, and of unit spread on average, as the kernel assumes.

    Values far outside are clipped: label shift holds for every function of the rows, and random features of a point
    that lies far from all others are noise.
    """

    used: Mask
    spread: float
    far: float = _FAR

    @classmethod
    def fit(cls, population: Floats, *, used: Mask, encoded: bool) -> Preparation:
        """Take the spread of scaled rows of the population, some columns of which may be levels of a category."""
        spread = float(np.sqrt(population.var(axis=0).mean())) or 1.0
        # levels of a category vary so little that numbers beside them are far above the average
        return cls(used, spread, _FAR / spread if encoded else _FAR)

    def __call__(self, rows: Floats) -> Floats:
        with np.errstate(over="ignore"):  # of values that are clipped
            return np.asarray(np.clip(rows[:, self.used] / self.spread, -self.far, self.far))


@dataclass(frozen=True, eq=False)
class ScoredTarget:
    """The p-values of a target's rows, shape (repeats, rows), and how its scores are spread."""

    p_values: Floats
    scores: ScoreShares


@dataclass(frozen=True, eq=False)
class ScoredSource:
    """Cross-fitted scores of P and U, and the p-values of U."""

    prepare: Preparation  # from scaled rows to what the models take
    repetitions: tuple[Repetition, ...]  # scores of P and U, and the models
    p_values: Floats  # ranks of U's scores among those of P, shape (repeats, rows of U)
    counts: Floats  # their histograms, shape (repeats, bins)
    sizes: tuple[int, int]  # labelled and unlabelled rows
    seed: int  # by which rows of a target are assigned to the models, the same each time
    positive_mass: Floats | None  # of each row of P among its ranks; None is the same for all
    positive_size: float  # effective rows of P
    spread: SourceScores

    @classmethod
    def fit(
        cls,
        source: Source,
        model: Any,
        repeats: int,
        folds: int,
        rng: np.random.Generator,
        fit_rows: int = FIT_ROWS,
    ) -> ScoredSource:
        """Fit the scores; `model` None is the ridge regression of :mod:`priorshift.scores.cross_fitting`."""
        seed = int(rng.integers(2**62))
        rows, encoded = source.rows[:], source.table.origin is not None
        prepare = Preparation.fit(rows[source.population], used=source.scaling.factor != 0, encoded=encoded)
        repetitions = cross_fit(prepare(rows), source, model, repeats, folds, rng, fit_rows=fit_rows)
        return cls.from_repetitions(source, prepare, repetitions, seed)

    @classmethod
    def from_repetitions(
        cls, source: Source, prepare: Preparation, repetitions: tuple[Repetition, ...], seed: int
    ) -> ScoredSource:
        """Rank scores that were fitted before."""
        (m, n), mass_P, mass_U = source.effective_sizes, source.positive_mass, source.population_mass
        even = bool(np.ptp(mass_P) < 1e-9 * mass_P[0] and m > len(mass_P) - 0.5)  # then a rank is a count
        mass = None if even else mass_P
        ranks = np.stack(
            map_in_threads(lambda r: p_values(r.positive, r.population, mass, m), repetitions, len(source.labeled))
        )
        counts = np.stack([mixture.histogram(v, n * mass_U) for v in ranks])
        cells = ScoreCells.from_scores(repetitions[0].positive, repetitions[0].population)
        shares_P = np.mean([cells.shares(r.positive, mass_P) for r in repetitions], axis=0)
        shares_U = np.mean([cells.shares(r.population, mass_U) for r in repetitions], axis=0)
        spread = SourceScores(cells, shares_P, shares_U)
        return cls(prepare, repetitions, ranks, counts, source.sizes, seed, mass, m, spread)

    @cached_property
    def mixture(self) -> tuple[Floats, Floats]:
        """π and w of the largest mixture that the p-values allow, in each repetition."""
        return mixture.fit_one(self.counts)

    def target_p_values(self, target: Target) -> Floats:
        """Ranks of the scores of a target's rows among those of P, shape (repeats, rows)."""
        return self.score(target).p_values

    def score(self, target: Target, device: str = "cpu") -> ScoredTarget:
        """Score the rows of a target, and return their ranks and shares."""
        prepared, rng = self.prepare(target.rows[:]), np.random.default_rng(self.seed)
        folds = [r.assign_folds(target.of_source, rng) for r in self.repetitions]
        mass, source = None if target.is_even else target.mass, self.spread
        device = choose_score_device(device, len(target))

        def score_once(k: int) -> tuple[Floats, Floats]:
            repetition = self.repetitions[k]
            scores = scores_by_fold(prepared, folds[k], repetition.models, device)
            return self.ranks(repetition.positive, scores), source.cells.shares(scores, mass)

        ranks, shares = zip(*map_in_threads(score_once, range(len(folds)), len(prepared)), strict=True)
        spread = ScoreShares(source.cells.edges, source.positive, source.population, np.mean(shares, axis=0))
        return ScoredTarget(np.stack(ranks), spread)

    def ranks(self, positive: Floats, scores: Floats) -> Floats:
        """The p-values of scores in a repetition where the positives have these."""
        return p_values(positive, scores, self.positive_mass, self.positive_size)

    def predicted(self, values: Floats, ratio: float = 1.0) -> Floats:
        """Posteriors of rows with these p-values by the largest mixture, the mean over repetitions.

        Of U where R is 1, and else of a target of that ratio. A smaller mixture's would be about proportional.
        """
        priors, weights = self.mixture
        of_sample = np.clip(1 - (1 - priors) * ratio, *_PREDICTED)[:, None]
        posterior = of_sample / (of_sample + (1 - of_sample) * mixture.density(weights))
        return np.asarray(np.mean([p[b] for p, b in zip(posterior, mixture.bins(values), strict=True)], axis=0))


_SHARES = np.array([0.05, 0.1, 0.2, 0.3, 0.5])  # smaller sets may be empty by chance
_CONFIDENCE = 0.95
_NOTHING = 0.01  # share of U that is like P, below which it is none


@dataclass(frozen=True)
class Inclusion:
    """How much of P is in U, and how much of U in P."""

    found: float  # share of the population that is like the positives, by the set that has least of it
    most: float  # upper bound of that share: the least of bounds of 95%
    reverse: float  # lower bound of the share of the positives that is like the population

    @classmethod
    def from_scores(cls, scored: ScoredSource) -> Inclusion:
        """Count the highest p-values; repetitions are averaged, not added, since they have the same rows."""
        reverse = np.stack([p_values(-r.population, -r.positive) for r in scored.repetitions])
        (k, n), (j, m) = (
            ((values[:, :, None] > 1 - _SHARES).sum(axis=1).mean(axis=0), values.shape[1])
            for values in (scored.p_values, reverse)
        )
        most = stats.beta.ppf(_CONFIDENCE, k + 1, np.maximum(n - k, 1e-9)) / _SHARES
        least = np.where(j > 0, stats.beta.ppf(1 - _CONFIDENCE, np.maximum(j, 1e-9), m - j + 1), 0.0) / _SHARES
        return cls(float((k / n / _SHARES).min()), float(most.min()), float(least.min()))

    @property
    def looks_swapped(self) -> bool:
        """Whether U has nothing of what P is, while P has more of U than U can have of P."""
        return self.found < _NOTHING and self.reverse > self.most


def warn_if_swapped(scored: ScoredSource) -> None:
    """Warn where positives and population look swapped."""
    found = Inclusion.from_scores(scored)
    if found.looks_swapped:
        warn(
            f"Positives and unlabelled rows look swapped: at least {found.reverse:.1%} of the positives are like the "
            f"unlabelled rows, but at most {found.most:.1%} of the unlabelled rows are like the positives, though they "
            "are a sample of the population that holds them. Check which table is which.",
            InconsistentInputWarning,
        )
