"""Scores of a source: p-values of its rows, their distribution, and whether P and U look swapped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from priorshift.arrays import Floats, Folds, Mask, Scores
from priorshift.errors import InconsistentInputWarning
from priorshift.io.row_hashes import content_codes
from priorshift.io.sample_size import RowMass
from priorshift.io.scaling import Rows
from priorshift.problem import Source, Target
from priorshift.scores import mixture
from priorshift.scores.cross_fitting import (
    FIT_ROWS,
    SINGLE_ROWS,
    Repetition,
    Ridge,
    choose_score_device,
    cross_fit,
    has_large_ties,
    scores_by_fold,
)
from priorshift.scores.level_sets import ShareCurve
from priorshift.scores.mixture import p_values
from priorshift.threads import available, map_in_threads
from priorshift.warning_records import warn

_CELLS = 30  # approximate number of cells
_TAILS = (0.01, 0.99)  # quantiles between which cells are placed
_TAIL_ROWS = 20_000  # scores from which the quantiles are computed
_BLOCK = 2**15  # rows or scores processed together, which fit into the cache
_EQUAL = 1e-6  # range of scores, relative to their size, below which they are equal
_STEPS = np.array([1.0, 2.0, 2.5, 5.0, 10.0])  # widths of cells, times a power of ten


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """Cells of equal width for a histogram of scores; the outermost two include everything beyond."""

    first: int  # lower edge of the first cell, in widths
    step: float  # width of a cell
    count: int
    edges: Floats  # shape (count + 1,)

    @classmethod
    def from_scores(cls, positive: Scores, population: Scores) -> ScoreCells:
        """Choose cells of a round width for the range of the scores of both samples, without their tails."""
        # quantiles of every k-th score, which is enough and fast
        tails = [np.quantile(scores[:: 1 + len(scores) // _TAIL_ROWS], _TAILS) for scores in (positive, population)]
        low, high = float(np.min(tails)), float(np.max(tails))
        least_range = _EQUAL * (max(abs(low), abs(high)) or 1.0)
        if high - low < least_range:  # all scores are equal
            low, high = low - least_range, high + least_range
        width = (high - low) / _CELLS
        power = 10.0 ** np.floor(np.log10(width))
        # the next round number of 1, 2, 2.5, 5 or 10 times a power of ten; 1 − 1e-12 forgives rounding
        step = float(_STEPS[np.searchsorted(_STEPS, width / power * (1 - 1e-12))] * power)
        first = int(np.floor(low / step))
        count = max(int(np.ceil(high / step)) - first, 1)
        return cls(first, step, count, np.asarray(step * np.arange(first, first + count + 1), dtype=np.float64))

    def shares(self, scores: Scores, mass: Floats | None = None) -> Floats:
        """Return the share of a sample's scores in each cell, shape (count,); `mass` None means rows of equal mass."""
        total = np.zeros(self.count)
        for start in range(0, len(scores), _BLOCK):
            block = slice(start, start + _BLOCK)
            cell = np.clip(np.floor(scores[block] / self.step) - self.first, 0, self.count - 1).astype(np.intp)
            total += np.bincount(cell, None if mass is None else mass[block], self.count)
        return total / total.sum()


@dataclass(frozen=True, eq=False)
class SourceScores:
    """Shares of P and U in cells of the score, averaged over repetitions."""

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
    """Data for the plots of :class:`priorshift.WitnessShift`."""

    source: Floats  # rows of U in each bin of p-values, shape (repeats, bins)
    target: Floats  # rows of T in each bin of p-values
    priors: Floats  # π of the mixture with the largest π, in each repetition
    weights: Floats  # w of that mixture, shape (repeats, components)
    scores: ScoreShares | None  # None if rows were only counted


@dataclass(frozen=True, eq=False)
class LevelSetEvidence:
    """Data for the plots of :class:`priorshift.DRPU`."""

    source: ShareCurve  # shares of population and positives above each threshold
    target: ShareCurve
    least_share: float  # least share of positives above a threshold


_FAR = 8.0  # standard deviations of the population at which values are clipped
_PREDICTED = (0.02, 0.98)  # range of priors for predicted posteriors, which are constant at 0 and 1


@dataclass(frozen=True, eq=False)
class Preparation:
    """Preparation of rows for the models: used columns, scaled to unit spread on average, as the kernel assumes.

    Values far outside are clipped: label shift holds for every function of the rows, and the random features of a
    distant point are noise.
    """

    used: Mask  # columns that are used
    spread: float  # root of the mean variance of the columns, by which values are divided
    far: float = _FAR  # absolute value at which they are then clipped

    @classmethod
    def fit(cls, population: Floats | Rows, *, used: Mask, encoded: bool) -> Preparation:
        """Compute the spread of scaled rows of the population; `encoded` if some columns are levels of a category."""
        sizes, means, variances = [], [], []  # of blocks of rows
        for start in range(0, len(population), _BLOCK):
            block = population[start : start + _BLOCK]
            sizes.append(len(block))
            means.append(block.mean(axis=0))
            variances.append(block.var(axis=0))
        between = (means - np.average(means, axis=0, weights=sizes)) ** 2
        variance = np.average(variances + between, axis=0, weights=sizes)
        spread = float(np.sqrt(variance.mean())) or 1.0
        # levels of a category vary little, so numbers next to them exceed the average spread
        return cls(used, spread, _FAR / spread if encoded else _FAR)

    def __call__(self, rows: Floats | Rows, *, single: bool = False) -> NDArray[Any]:
        """Return the used columns of the rows, scaled and clipped, in single or double precision."""
        prepared = np.empty((len(rows), int(self.used.sum())), np.float32 if single else np.float64)
        is_used = slice(None) if self.used.all() else self.used  # a slice needs no copy

        def fill(start: int) -> None:
            """Prepare one block of rows."""
            block = slice(start, start + _BLOCK)
            with np.errstate(over="ignore"):  # large values are clipped
                prepared[block] = np.clip(rows[block][:, is_used] / self.spread, -self.far, self.far)

        map_in_threads(fill, range(0, len(rows), _BLOCK), min(len(rows), _BLOCK))
        return prepared


@dataclass(frozen=True, eq=False)
class ScoredTarget:
    """The p-values of a target's rows, shape (repeats, rows), and the distribution of its scores."""

    p_values: Floats
    scores: ScoreShares


def _divide(repeats: int, rows: int, workers: int) -> list[tuple[int, slice]]:
    """Divide the scoring of rows among threads; return the number of the repetition and the rows of each task.

    Repetitions that would leave a thread without work at the end are divided into parts of the rows. The others are
    not, since each task sorts the scores of the positives.
    """
    edges = np.linspace(0, rows, workers + 1).astype(int).tolist()
    parts = [slice(start, end) for start, end in pairwise(edges)]
    whole = repeats - repeats % workers
    tasks = [(k, slice(0, rows)) for k in range(whole)]
    return tasks + [(k, part) for k in range(whole, repeats) for part in parts]


@dataclass(frozen=True, eq=False)
class ScoredSource:
    """Cross-fitted scores of P and U, and the p-values of U."""

    prepare: Preparation  # of scaled rows for the models
    repetitions: tuple[Repetition, ...]  # scores of P and U, and the models
    p_values: Floats  # ranks of U's scores among those of P, shape (repeats, rows of U)
    counts: Floats  # their histograms, shape (repeats, bins)
    sizes: tuple[int, int]  # labelled and unlabelled rows
    seed: int  # of the assignment of target rows to the models
    positive_mass: Floats | None  # mass of each row of P in ranks; None for equal masses
    positive_size: float  # effective size of P
    spread: SourceScores

    @classmethod
    def fit(
        cls, source: Source, model: Any, repeats: int, folds: int, rng: np.random.Generator, fit_rows: int = FIT_ROWS
    ) -> ScoredSource:
        """Cross-fit scores of the source; `model` None is the ridge regression of `priorshift.scores.cross_fitting`.

        `fit_rows` is the largest number of rows of P, and of U, to which the ridge regression is fitted.
        """
        seed = int(rng.integers(2**62))
        positive, population = (
            source.scaling.rows(source.table.values, index) for index in (source.positive, source.population)
        )
        used, encoded = source.scaling.factor != 0, source.table.origin is not None
        prepare = Preparation.fit(population, used=used, encoded=encoded)
        single = (
            model is None and len(source.rows) >= SINGLE_ROWS and not has_large_ties(content_codes(prepare(positive)))
        )
        # the prepared rows have no name here, so that they are freed after the fit
        repetitions = cross_fit(
            prepare(source.rows, single=single), source, model, repeats, folds, rng, fit_rows=fit_rows
        )
        return cls.from_repetitions(source, prepare, repetitions, seed)

    @classmethod
    def from_repetitions(
        cls, source: Source, prepare: Preparation, repetitions: tuple[Repetition, ...], seed: int
    ) -> ScoredSource:
        """Compute p-values of U among P, and the distributions of the scores, from each repetition's scores.

        `seed` is that of the assignment of target rows to the models.
        """
        m, n, mass_P, mass_U = source.P.size, source.U.size, source.P.mass, source.U.mass
        # with equal masses and no copies a rank is a count of positives, which is faster
        is_even = bool(np.ptp(mass_P) < 1e-9 * mass_P[0] and m > len(mass_P) - 0.5)
        mass = None if is_even else mass_P
        ranks = np.empty((len(repetitions), len(source.population)))

        def rank(k: int) -> None:
            """Compute the p-values of repetition k."""
            p_values(repetitions[k].positive, repetitions[k].population, mass, m, out=ranks[k])

        map_in_threads(rank, range(len(repetitions)), len(source.labeled))
        counts = np.stack([mixture.histogram(v, n * mass_U) for v in ranks])
        cells = ScoreCells.from_scores(repetitions[0].positive, repetitions[0].population)
        shares_P = np.mean([cells.shares(r.positive, mass_P) for r in repetitions], axis=0)
        shares_U = np.mean([cells.shares(r.population, mass_U) for r in repetitions], axis=0)
        spread = SourceScores(cells, shares_P, shares_U)
        return cls(prepare, repetitions, ranks, counts, source.sizes, seed, mass, m, spread)

    @cached_property
    def mixture(self) -> tuple[Floats, Floats]:
        """π and w of the mixture with the largest π that fits the p-values, in each repetition."""
        return mixture.fit_one(self.counts)

    @cached_property
    def _allows_single(self) -> bool:
        """Whether the rows of a target may be scored in single precision: by ridge models, if no ties are large."""
        first = self.repetitions[0]
        return isinstance(first.models[0], Ridge) and not has_large_ties(first.positive)

    def target_p_values(self, target: Target) -> Floats:
        """Return the p-values of a target's rows, shape (repeats, rows)."""
        return self.score(target).p_values

    def score(self, target: Target, device: str = "cpu") -> ScoredTarget:
        """Score the rows of a target in each repetition; the seed is fixed, so a target always gets the same scores."""
        single = len(target) >= SINGLE_ROWS and self._allows_single
        prepared, rng = self.prepare(target.rows, single=single), np.random.default_rng(self.seed)
        mass, source = target.mass, self.spread
        device = choose_score_device(device, len(target))
        workers = available() if device == "cpu" and len(target) >= SINGLE_ROWS else 1
        repeats, folds = len(self.repetitions), list[Folds]()
        ranks = np.empty((repeats, len(target)))

        def tasks() -> Iterator[tuple[int, slice]]:
            """Yield the tasks; the folds of a repetition are assigned before its first one."""
            for k, rows in _divide(repeats, len(target), workers):
                if k == len(folds):
                    folds.append(self.repetitions[k].assign_folds(target.source_observation, rng))
                yield k, rows

        def score_part(item: tuple[int, slice]) -> Floats:
            """Compute the p-values of some rows in repetition k; return their shares in the scores' cells."""
            k, rows = item
            repetition, mass_here = self.repetitions[k], mass[rows]
            scores = scores_by_fold(prepared[rows], folds[k][rows], repetition.models, device)
            self.ranks(repetition.positive, scores, out=ranks[k, rows])
            return mass_here.sum() * source.cells.shares(scores, None if target.is_iid else mass_here)

        shares = map_in_threads(score_part, tasks(), len(target))
        mean_shares = np.sum(shares, axis=0) / repeats
        spread = ScoreShares(source.cells.edges, source.positive, source.population, mean_shares)
        return ScoredTarget(ranks, spread)

    def ranks(self, positive: Scores, scores: Scores, out: Floats | None = None) -> Floats:
        """Return the p-values of `scores`: their ranks among the scores `positive` of P in the same repetition.

        They are written to `out`, if it is given.
        """
        return p_values(positive, scores, self.positive_mass, self.positive_size, out=out)

    def predicted(self, values: Floats, ratio: float = 1.0) -> Floats:
        """Return P(Y=1 | p-value) of rows, averaged over repetitions.

        `values` are p-values of shape (repeats, rows); `ratio` is R of their sample, 1 for the source.
        """
        priors, weights = self.mixture
        pi = np.clip(1 - (1 - priors) * ratio, *_PREDICTED)[:, None]  # prior of the sample
        # Bayes' rule in each bin, shape (repeats, bins); the density of positives is 1
        posterior = pi / (pi + (1 - pi) * mixture.density(weights))
        total = np.zeros(values.shape[1])
        for by_bin, row in zip(posterior, values, strict=True):
            total += by_bin[mixture.bins(row)]
        return total / len(values)


_SHARES = np.array([0.05, 0.1, 0.2, 0.3, 0.5])  # of the extreme scores; smaller sets may be empty by chance
_CONFIDENCE = 0.95
_NEGLIGIBLE = 0.01  # share of U that looks like P


class Inclusion(NamedTuple):
    """Shares of U that look like P, and of P that look like U."""

    upper: float  # upper confidence bound of the share of U that looks like P
    reverse: float  # lower confidence bound of the share of P that looks like U
    looks_swapped: bool  # whether nothing in U looks like P, while P contains more of U than U can contain of P


def inclusion(scored: ScoredSource) -> Inclusion:
    """Compare P and U on sets of extreme scores.

    The population contains the positives, U = πP + (1−π)N, so U(A) ≥ π·P(A) for every set A. In the other direction
    there is no bound: if the classes are separable, inf P(A)/U(A) = 0. If the two tables are swapped it is the reverse.
    The sets are the rows with the highest scores, which include a given share of P, and those with the lowest, which
    include a given share of U. Counts are averaged over repetitions, since these have the same rows.
    """
    upper_U, share_U, _ = _shares_above([(r.positive, r.population) for r in scored.repetitions])
    _, _, lower_P = _shares_above([(r.population, r.positive) for r in scored.repetitions], sign=-1)
    return Inclusion(upper_U, lower_P, share_U < _NEGLIGIBLE and lower_P > upper_U)


def _shares_above(scores: Sequence[tuple[Scores, Scores]], sign: int = 1) -> tuple[float, float, float]:
    """Return the smallest ratio of the shares of two samples above a threshold: its upper bound, itself, a lower bound.

    `scores` are those of a reference and of a sample, in each repetition. The thresholds are quantiles of the
    reference; the ratio is the share of the sample above one, over that of the reference. The bounds are those of
    Clopper and Pearson for the share of the sample. With `sign` −1 it is the shares below a threshold.
    """

    def rows_above(pair: tuple[Scores, Scores]) -> tuple[Floats, Floats]:
        """Return the rows of the sample, and the share of the reference, above each threshold in one repetition."""
        reference, sample = pair if sign == 1 else (-pair[0], -pair[1])
        above = np.zeros(len(_SHARES))
        ranked, m = np.sort(reference), len(reference)
        p_of_ranked = p_values(ranked, ranked, in_order=True)
        first_above = np.searchsorted(p_of_ranked, 1 - _SHARES, "right")  # number in `ranked`, for each threshold
        bounds = np.concatenate([[-np.inf], ranked, [np.inf]])
        for j, first in enumerate(first_above.tolist()):
            # scores between the first one above and the one before it have p-values of their own
            is_gap_above = (first + 0.5) / (m + 1) > 1 - _SHARES[j]
            is_above = sample > bounds[first] if is_gap_above else sample >= bounds[first + 1]
            above[j] = np.count_nonzero(is_above)
        return above, (m - first_above) / m

    counted = map_in_threads(rows_above, scores, len(scores[0][0]))
    above, reference_above = (np.mean(counts, axis=0) for counts in zip(*counted, strict=True))
    # where scores are tied, all of the reference may lie below a threshold, which then says nothing
    usable = reference_above > 0
    k, n, share = above[usable], len(scores[0][1]), reference_above[usable]
    if not usable.any():
        return 1.0, 1.0, 0.0
    upper = stats.beta.ppf(_CONFIDENCE, k + 1, np.maximum(n - k, 1e-9)) / share
    lower = np.where(k > 0, stats.beta.ppf(1 - _CONFIDENCE, np.maximum(k, 1e-9), n - k + 1), 0.0) / share
    return float(upper.min()), float((k / n / share).min()), float(lower.min())


def largest_prior(scored: ScoredSource, error: float) -> float:
    """Return an upper confidence bound of π, at the level 1 − `error`, whatever the negatives look like.

    U = πP + (1−π)N, so π ≤ U(A)/P(A) for every set A. The sets are the rows with the highest scores that include a
    given share of P; of each, Clopper and Pearson's upper bound of U(A) is divided by their lower bound of P(A), at
    levels whose errors add up to `error`. There is no such lower bound: all of U(A) may be negatives.
    """
    first = np.round((1 - _SHARES) * mixture.BINS).astype(np.intp)  # first bin of each set
    positive = np.zeros_like(scored.counts)
    for k, repetition in enumerate(scored.repetitions):
        ranks = scored.ranks(repetition.positive, repetition.positive)
        mass = scored.positive_mass
        positive[k] = mixture.histogram(ranks, None if mass is None else scored.positive_size * mass)
    # rows in each set, averaged over repetitions
    in_U, n = np.array([scored.counts[:, k:].sum(axis=1).mean() for k in first]), scored.counts.sum(axis=1).mean()
    in_P, m = np.array([positive[:, k:].sum(axis=1).mean() for k in first]), positive.sum(axis=1).mean()
    return _largest_ratio(in_U, n, in_P, m, error)


def largest_prior_by_counts(positive: Floats, population: Floats, error: float) -> float:
    """Return the upper bound of `largest_prior` from the rows of both samples at each score, the largest first."""
    in_P, in_U = np.cumsum(positive), np.cumsum(population)
    last = np.searchsorted(in_P, _SHARES * in_P[-1] * (1 - 1e-12))
    return _largest_ratio(in_U[last], in_U[-1], in_P[last], in_P[-1], error)


def largest_share(scores: Floats, sample: RowMass, others: Floats, base: RowMass, error: float) -> float:
    """Return an upper confidence bound of the share of a class in a population, as `largest_prior` does.

    `scores` are those of the rows of the class, `others` those of the population, larger for the class.
    """
    order = np.argsort(-scores, kind="stable")
    cumulative = np.cumsum(sample.mass[order])
    last = np.minimum(np.searchsorted(cumulative, _SHARES - 1e-12), len(order) - 1)
    thresholds = scores[order][last]
    in_P = sample.size * np.array([sample.mass[scores >= threshold].sum() for threshold in thresholds])
    in_U = base.size * np.array([base.mass[others >= threshold].sum() for threshold in thresholds])
    return _largest_ratio(in_U, base.size, in_P, sample.size, error)


def _largest_ratio(in_U: Floats, n: float, in_P: Floats, m: float, error: float) -> float:
    """Return the smallest of the upper bounds of U(A)/P(A), given the rows of U and of P in each set A."""
    usable = in_P > 0  # where scores are tied, a set may contain no positives
    if not usable.any():
        return 1.0
    in_U, in_P, tail = in_U[usable], np.minimum(in_P[usable], m), error / (2 * len(_SHARES))
    share_U = stats.beta.ppf(1 - tail, in_U + 1, np.maximum(n - in_U, 1e-9))
    share_P = stats.beta.ppf(tail, in_P, m - in_P + 1)
    return float(np.min(share_U / share_P, initial=1.0))


def warn_if_swapped(scored: ScoredSource) -> None:
    """Warn if positives and unlabelled rows look swapped."""
    shares = inclusion(scored)
    if shares.looks_swapped:
        warn(
            f"Positives and unlabelled rows look swapped: at least {shares.reverse:.1%} of the positives look like "
            f"unlabelled rows, but at most {shares.upper:.1%} of the unlabelled rows look like positives, although "
            "their population contains them. Check which table is which.",
            InconsistentInputWarning,
        )
