"""P, U and T with fewer rows, seen through kernels: what is asked often enough that all pairs would be too many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.embedding.gram import Embeddings, SourceEmbedding, ratio, separation
from priorshift.embedding.samples import EmbeddedSample
from priorshift.inference import intervals
from priorshift.inference.confidence_curve import FiellerCurve
from priorshift.kernels import Gaussian, bandwidth_from_gamma
from priorshift.problem import Source, Target

_ROWS = 1000  # of a sample: a projection takes a fortieth of a second
_COLUMNS = 20  # beyond which rows are fewer, so that it does not take longer
_LEAST_ROWS = 300
_DISTANCE_ROWS = 500  # whose shift is measured
_NO_SEPARATION = 1e-12  # of the kernel's scale: what rounding leaves of a separation that is zero


@dataclass(frozen=True, eq=False)
class Projection:
    """R̂ of one kernel, how sure it is, and how each observation moves it; `length` is ‖μ_U − μ_P‖."""

    ratio: float
    curve: FiellerCurve
    influence: Floats
    length: float


@dataclass(frozen=True, eq=False)
class Thinned:
    """Rows of P, U and T, drawn at random where there are many.

    Attributes
    ----------
    samples : tuple of three EmbeddedSample
        P, U and T, with one numbering of observations.
    features : int
        Columns that are not left out; those that one column was encoded by count as one.
    observations : int
        Numbers below this are those of the source.
    """

    samples: tuple[EmbeddedSample, EmbeddedSample, EmbeddedSample]
    features: int
    observations: int

    @classmethod
    def of(cls, source: Source, target: Target, rng: np.random.Generator) -> Thinned:
        """Draw the rows; an InputError says that those of the target are one observation."""
        width = max(int(np.count_nonzero(source.scaling.factor)), 1)
        most = max(int(_ROWS * min(1.0, (_COLUMNS / width) ** 0.5)), _LEAST_ROWS)
        whole = SourceEmbedding.from_source(source, Gaussian(1.0))  # of which the samples alone are used
        P, U, T = (_some(s, most, rng) for s in (whole.positive, whole.unlabeled, whole.sample(target)))
        return cls((P, U, T), source.scaling.features, whole.observations)

    @property
    def sizes(self) -> tuple[int, int, int]:
        P, U, T = self.samples
        return len(P), len(U), len(T)

    def kernel(self, factor: float = 1.0, fewer: int = 0) -> Gaussian:
        """The default kernel, its bandwidth times a factor, for so many columns less."""
        return Gaussian(factor * bandwidth_from_gamma(1 / max(self.features - fewer, 1)))

    @cached_property
    def whole(self) -> Projection | None:
        """R with the default bandwidth and all columns."""
        return self.project()

    def project(self, factor: float = 1.0, without: Index | None = None) -> Projection | None:
        """Estimate R with a multiple of the default bandwidth, or without some columns; None where P is like U."""
        P, U, T = self.samples if without is None else (_without(s, without) for s in self.samples)
        kernel = self.kernel(factor, 0 if without is None else 1)
        made = SourceEmbedding(kernel, P, U, 0, self.observations, "float64").embed(T)
        D = float(separation(made.gram))
        if not _NO_SEPARATION * float(np.nanmax(np.abs(made.gram))) < D:
            return None
        return Projection(ratio(made.gram), intervals.curve(made), self._together(made), float(np.sqrt(D)))

    def _together(self, embeddings: Embeddings) -> Floats:
        total = np.zeros(max(int(s.observation.max()) for s in self.samples) + 1)
        for sample, moved in zip(self.samples, intervals.ratio_influence(embeddings), strict=True):
            total += np.bincount(sample.observation, moved, len(total))
        return total

    def moved_distance(self, shift: Floats) -> float:
        """‖μ_T′ − μ_T‖ where T′ is T with `shift` added to each scaled row; the rows' own noise is left out."""
        T = self.samples[2]
        T = T.take(np.arange(0, len(T), 1 + len(T) // _DISTANCE_ROWS))
        rows, kernel = T.rows[:], self.kernel()
        there = kernel(rows, rows + shift)
        here = kernel(rows, rows)
        pairs = T.mass[:, None] * T.mass * (T.observation[:, None] != T.observation)
        total = float(pairs.sum())
        if not total > 0:
            return float("nan")
        return float(np.sqrt(max(2 * float((pairs * (here - there)).sum()) / total, 0.0)))


def _some(sample: EmbeddedSample, most: int, rng: np.random.Generator) -> EmbeddedSample:
    if len(sample) <= most:
        return sample
    taken = sample.take(np.sort(rng.choice(len(sample), most, replace=False)))
    return EmbeddedSample(taken.rows, taken.mass / taken.mass.sum(), taken.observation)


def _without(sample: EmbeddedSample, columns: Index) -> EmbeddedSample:
    factor = sample.rows.factor.copy()
    factor[columns] = 0.0
    return EmbeddedSample(replace(sample.rows, factor=factor), sample.mass, sample.observation)
