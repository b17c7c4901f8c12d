"""What pictures of an estimate are drawn from: counts and shares, never a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from priorshift.arrays import Floats
from priorshift.scores.cross_fitting import Repetition
from priorshift.scores.level_sets import ShareCurve

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
    def of(cls, positive: Floats, population: Floats) -> ScoreCells:
        """From tail to tail of both samples.

        Examples
        --------
        >>> import numpy as np
        >>> from priorshift.scores.evidence import ScoreCells
        >>> ScoreCells.of(np.linspace(0, 1, 101), np.linspace(-1, 0, 101)).edges[[0, -1]]
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
    def of(cls, repetitions: Sequence[Repetition], positive_mass: Floats, population_mass: Floats) -> SourceScores:
        """Of cross-fitted scores, by what each row counts."""
        cells = ScoreCells.of(repetitions[0].positive, repetitions[0].population)
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
