"""What pictures of an estimate are drawn from: counts and shares, never a row.

A source seen through its scores: what the source prior is read from, and what every target is compared with.

Are the labelled positives and the population swapped? What the scores of P and U tell about it.

The population holds the positives, U = πP + (1−π)N, so every set of rows that P has is in U too, at π times its share:
κ = inf U(A)/P(A) ≥ π. The other way round nothing is promised: rows that only negatives are like are in U and not in
P, inf P(A)/U(A) = 0 where the classes can be told apart. With the two tables swapped it is the reverse: P has rows that
U lacks altogether, and all of U's are in P.

The sets looked at are the rows of the highest scores, of which P holds a share a, and of the lowest, of which U does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from priorshift.arrays import Floats, Mask
from priorshift.errors import InconsistentInputWarning
from priorshift.problem import Source, Target
from priorshift.scores import mixture
from priorshift.scores.cross_fitting import FIT_ROWS, Repetition, cross_fit
from priorshift.scores.level_sets import ShareCurve
from priorshift.scores.mixture import p_values
from priorshift.threads import map_in_threads
from priorshift.warning_records import warn

_CELLS = 30  # of a score, about
_TAILS = (0.01, 0.99)  # of a sample, outside of which a score may lie in the outermost cell
_LOOKED_AT = 20_000  # scores of a sample that say where its tails are
_BLOCK = 2**15  # scores looked at together: they fit into a processor's cache
_ALIKE = 1e-6  # the range of scores, over their size, below which they do not differ
_STEPS = np.array([1.0, 2.0, 2.5, 5.0, 10.0])  # times a power of ten: cells that begin at round numbers


@dataclass(frozen=True)
class ScoreCells:
    """Cells of equal width of a score; the outermost two hold what lies beyond.

    They begin at multiples of a round number, so that no edge is the score of a row.

    Attributes
    ----------
    first : int
        The multiple at which the lowest begins.
    step : float
        Their width.
    count : int
        How many there are.
    """

    first: int
    step: float
    count: int

    @classmethod
    def from_scores(cls, positive: Floats, population: Floats) -> ScoreCells:
        """From tail to tail of both samples.

        Examples
        --------
        >>> import numpy as np
        >>> from priorshift.scores.scored_source import ScoreCells
        >>> ScoreCells.from_scores(np.linspace(0, 1, 101), np.linspace(-1, 0, 101)).edges[[0, -1]]
        array([-1.,  1.])
        """
        tails = [np.quantile(s[:: 1 + len(s) // _LOOKED_AT], _TAILS) for s in (positive, population)]
        low, high = float(np.min(tails)), float(np.max(tails))
        least = _ALIKE * (max(abs(low), abs(high)) or 1.0)
        if high - low < least:  # all rows score the same
            low, high = low - least, high + least
        width = (high - low) / _CELLS
        power = 10.0 ** np.floor(np.log10(width))
        step = float(_STEPS[np.searchsorted(_STEPS, width / power * (1 - 1e-12))] * power)
        first = int(np.floor(low / step))
        return cls(first, step, max(int(np.ceil(high / step)) - first, 1))

    @property
    def edges(self) -> Floats:
        """Where they begin, and where the last one ends."""
        return np.asarray(self.step * np.arange(self.first, self.first + self.count + 1), dtype=np.float64)

    def shares(self, scores: Floats, mass: Floats | None = None) -> Floats:
        """The share of a sample in each, by the mass of its rows; None is the same of all."""
        held = np.zeros(self.count)
        for at in range(0, len(scores), _BLOCK):
            block = slice(at, at + _BLOCK)
            cell = np.clip(np.floor(scores[block] / self.step) - self.first, 0, self.count - 1).astype(np.intp)
            held += np.bincount(cell, None if mass is None else mass[block], self.count)
        return held / held.sum()


@dataclass(frozen=True, eq=False)
class SourceScores:
    """How the score is spread in P and U, on average over repetitions.

    Attributes
    ----------
    cells : ScoreCells
        Of the score.
    positive, population : ndarray of shape (cells,)
        Shares.
    """

    cells: ScoreCells
    positive: Floats
    population: Floats

    @classmethod
    def from_repetitions(
        cls, repetitions: Sequence[Repetition], positive_mass: Floats, population_mass: Floats
    ) -> SourceScores:
        """Of cross-fitted scores, by what each row counts."""
        cells = ScoreCells.from_scores(repetitions[0].positive, repetitions[0].population)
        positive = np.mean([cells.shares(r.positive, positive_mass) for r in repetitions], axis=0)
        population = np.mean([cells.shares(r.population, population_mass) for r in repetitions], axis=0)
        return cls(cells, positive, population)


@dataclass(frozen=True, eq=False)
class ScoreShares:
    """How the score is spread in the three samples.

    Attributes
    ----------
    edges : ndarray of shape (cells + 1,)
        Of the cells.
    positive, population, target : ndarray of shape (cells,)
        Shares of P, U and T.
    """

    edges: Floats
    positive: Floats
    population: Floats
    target: Floats


@dataclass(frozen=True, eq=False)
class WitnessEvidence:
    """What pictures of :class:`priorshift.WitnessShift` are drawn from.

    Attributes
    ----------
    source, target : ndarray of shape (repeats, bins)
        How many rows of U and of T have p-values in each bin of :mod:`priorshift.scores.mixture`.
    priors, weights : ndarray of shape (repeats,) and (repeats, components)
        π and w of the largest mixture that the source's p-values allow.
    scores : ScoreShares or None
        None where scores were not kept, since rows were counted as they came by.
    """

    source: Floats
    target: Floats
    priors: Floats
    weights: Floats
    scores: ScoreShares | None


@dataclass(frozen=True, eq=False)
class LevelSetEvidence:
    """What pictures of :class:`priorshift.DRPU` are drawn from.

    Attributes
    ----------
    source, target : ShareCurve
        Shares above each threshold, beside those of the positives.
    least_share : float
        Of positives above a threshold that is trusted.
    """

    source: ShareCurve
    target: ShareCurve
    least_share: float


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
    def fit(cls, source: Source, rows: Floats) -> Preparation:
        """By the spread of the population; `rows` are all of the source, scaled."""
        encoded = source.table.origin is not None
        return cls.from_population(rows[source.population], used=source.scaling.factor != 0, encoded=encoded)

    @classmethod
    def from_population(cls, population: Floats, *, used: Mask, encoded: bool) -> Preparation:
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
    positive_size: float
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
        device: str = "cpu",
    ) -> ScoredSource:
        """Fit the scores; `model` None is the ridge regression of :mod:`priorshift.scores.cross_fitting`."""
        seed = int(rng.integers(2**62))
        rows = source.rows[:]
        prepare = Preparation.fit(source, rows)
        made = cross_fit(prepare(rows), source, model, repeats, folds, rng, fit_rows=fit_rows, device=device)
        return cls.from_repetitions(source, prepare, made, seed)

    @classmethod
    def from_repetitions(
        cls, source: Source, prepare: Preparation, repetitions: tuple[Repetition, ...], seed: int
    ) -> ScoredSource:
        """With scores that were fitted before."""
        (m, n), own = source.effective_sizes, source.positive_mass
        alike = bool(np.ptp(own) < 1e-9 * own[0] and m > len(own) - 0.5)  # then a rank is a count
        mass = None if alike else own
        values = np.stack(
            map_in_threads(lambda r: p_values(r.positive, r.population, mass, m), repetitions, len(source.labeled))
        )
        counts = np.stack([mixture.histogram(v, n * source.population_mass) for v in values])
        spread = SourceScores.from_repetitions(repetitions, own, source.population_mass)
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

        values, shares = zip(*map_in_threads(seen, range(len(dealt)), len(prepared)), strict=True)
        spread = ScoreShares(source.cells.edges, source.positive, source.population, np.mean(shares, axis=0))
        return ScoredTarget(np.stack(values), spread)

    def ranks(self, positive: Floats, scores: Floats) -> Floats:
        """The p-values of scores of one repetition."""
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
_SURE = 0.95
_NOTHING = 0.01  # share of U that is like P, below which it is none


@dataclass(frozen=True)
class Inclusion:
    """How much of the one sample is in the other, at most and at least.

    Attributes
    ----------
    found : float
        Share of the population that is like the positives, by the set that has least of it.
    most : float
        What it is at most: the least of bounds of 95%.
    reverse : float
        What the share of the positives that is like the population is at least.
    """

    found: float
    most: float
    reverse: float

    @classmethod
    def from_scores(cls, scored: ScoredSource) -> Inclusion:
        """From cross-fitted scores; repetitions are averaged, not added, since they have the same rows."""
        reverse = np.stack([p_values(-r.population, -r.positive) for r in scored.repetitions])
        (k, n), (j, m) = ((_highest(values), values.shape[1]) for values in (scored.p_values, reverse))
        most = stats.beta.ppf(_SURE, k + 1, np.maximum(n - k, 1e-9)) / _SHARES
        least = np.where(j > 0, stats.beta.ppf(1 - _SURE, np.maximum(j, 1e-9), m - j + 1), 0.0) / _SHARES
        return cls(float((k / n / _SHARES).min()), float(most.min()), float(least.min()))

    @property
    def looks_swapped(self) -> bool:
        """Whether U has nothing of what P is, while P has more of U than U can have of P."""
        return self.found < _NOTHING and self.reverse > self.most


def _highest(values: Floats) -> Floats:
    """How many p-values lie in the highest part, for each share."""
    return np.asarray((values[:, :, None] > 1 - _SHARES).sum(axis=1).mean(axis=0))


def warn_if_swapped(scored: ScoredSource) -> None:
    """Ask whether positives and population were swapped, where they look so.

    Parameters
    ----------
    scored : ScoredSource
        Scores of both.
    """
    told = Inclusion.from_scores(scored)
    if told.looks_swapped:
        warn(
            f"Positives and unlabelled rows look swapped: at least {told.reverse:.1%} of the positives are like the "
            f"unlabelled rows, but at most {told.most:.1%} of the unlabelled rows are like the positives, though they "
            "are a sample of the population that holds them. Check which table is which.",
            InconsistentInputWarning,
        )
