"""Series of batches for studies of a monitor: rows of normal classes, scored once, from which batches are drawn."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from priorshift.io.tables import Table
from priorshift.monitoring.batches import Batch
from priorshift.monitoring.model import MonitorModel, RowScores
from priorshift.monitoring.reference import Reference, Units
from priorshift.monitoring.series import Series
from priorshift.monitoring.settings import RuleSettings

COLUMNS, DISTANCE = 10, 0.6  # of the normal classes; the means differ by this distance in each column
POOL = 40_000  # rows of each class that batches are drawn from
GROUP = 4  # rows of a group, all of one class


class Population:
    """Rows of both classes with their scores, from which sources and batches are drawn."""

    def __init__(self, source_prior: float, known: bool, seed: int = 0, distance: float = DISTANCE) -> None:
        """Fit the scores to a large source, which no later source shares a row with."""
        rng = np.random.default_rng([seed, round(1e4 * source_prior)])
        self.source_prior = source_prior
        labels = rng.random(5000) < source_prior
        P, U = _rows(np.ones(500, dtype=bool), distance, rng), _rows(labels, distance, rng)
        self.fitted = MonitorModel.fit(
            Table("positive", P), Table("unlabeled", U), source_prior if known else None, random_state=seed
        )
        labels = [np.zeros(POOL, dtype=bool), np.ones(POOL, dtype=bool)]
        pools = [self.fitted.score_rows(Table("rows", _rows(part, distance, rng))) for part in labels]
        self._levels, self._scores, self._features = (
            np.concatenate([getattr(pool, name) for pool in pools]) for name in ("levels", "score", "features")
        )

    def draw_rows(self, labels: NDArray[np.bool_], rng: np.random.Generator) -> RowScores:
        """Draw rows of these classes."""
        index = rng.integers(POOL, size=len(labels)) + POOL * labels
        return RowScores(np.empty((0, 0)), self._levels[index], self._scores[index], self._features[index])

    def draw_levels(self, labels: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw the levels of the scores of rows of these classes."""
        return np.asarray(self._levels[rng.integers(POOL, size=len(labels)) + POOL * labels])

    def draw_source(self, positives: int, unlabeled: int, grouped: bool, rng: np.random.Generator) -> MonitorModel:
        """Return the model with the counts of a new source."""
        P = self.draw_rows(np.ones(positives, dtype=bool), rng)
        U = self.draw_rows(draw_labels(unlabeled, self.source_prior, grouped, rng), rng)
        levels = len(self.fitted.values)
        in_P, in_U = (
            Units(part.score, part.features, groups=np.arange(len(part.score)) // GROUP if grouped else None)
            for part in (P, U)
        )
        reference = Reference.from_units(in_U, in_P.features, is_grouped=grouped)
        counts = [np.bincount(part.levels, minlength=levels).astype(float) for part in (P, U)]
        effects = (1.0, float(GROUP) if grouped else 1.0)
        return replace(
            self.fitted, positive_levels=counts[0], population_levels=counts[1], design_effects=effects,
            reference=reference,
        )  # fmt: skip

    def draw_batch(self, labels: NDArray[np.bool_], grouped: bool, rng: np.random.Generator) -> Batch:
        """Draw a batch with these classes."""
        rows = self.draw_rows(labels, rng)
        groups = np.arange(len(labels)) // GROUP if grouped else None
        return Batch(rows, Units(rows.score, rows.features, groups=groups), None, None)


@lru_cache(maxsize=20)
def population(source_prior: float, known: bool, seed: int = 0, distance: float = DISTANCE) -> Population:
    """Return the population of a source prior, whose scores are fitted once."""
    return Population(source_prior, known, seed, distance)


@lru_cache
def information(share: float, distance: float) -> float:
    """Return how much a row without its label says of the share, as a part of what its label says.

    The Fisher information of the share p is E[((f_P − f_N)/f)²] without the label, and 1/(p(1 − p)) with it. The
    densities are those of the projection onto the difference of the means.
    """
    x, width = np.linspace(-10, 20, 30_001, retstep=True)
    f_N, f_P = (np.exp(-((x - mean) ** 2) / 2) / np.sqrt(2 * np.pi) for mean in (0.0, distance * np.sqrt(COLUMNS)))
    f = share * f_P + (1 - share) * f_N
    return float(share * (1 - share) * np.sum((f_P - f_N) ** 2 / np.maximum(f, 1e-300)) * width)


def draw_labels(rows: int, share: float, grouped: bool, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw the classes of rows; rows of a group have the same class."""
    if grouped:
        return np.repeat(rng.random(rows // GROUP) < share, GROUP)
    return rng.random(rows) < share


def start_series(model: MonitorModel, level: float | None, run_length: float) -> Series:
    """Start a series with the source as the reference."""
    return Series.new("", RuleSettings(None, level, 0.05, run_length, 0, 0.95, 0), model)


def _rows(labels: NDArray[np.bool_], distance: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw rows of the normal classes."""
    return np.asarray(rng.normal(size=(len(labels), COLUMNS)) + distance * labels[:, None])
