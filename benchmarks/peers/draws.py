"""The draws: seven UCI tables, features of three image sets, and two Gaussian populations.

MixturePrior's rules were looked at on the UCI tables, on other draws of them; nothing of ours was chosen on the images.
P and U have no common row. U has a thousand rows, fewer where a table has not as many of a class, and exactly the share
of positives that is asked for, but for whole rows. P is 200 positives, at most half of a table's, or 25, which is
scarce; a round has both, for each set and prior. All columns are scaled by the means and spreads of U, for every peer
alike.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from experiments.sampling import class_counts, load_dataset, standardize

from priorshift.datasets import IMAGES, OPENML

GAUSSIANS = {"Gaussians, apart": 1.0, "Gaussians, overlapping": 0.4}  # how far the means are, in each of ten columns
GROUPS = {"UCI tables": tuple(OPENML), "Image features": IMAGES, **{name: (name,) for name in GAUSSIANS}}
SETS = tuple(name for group in GROUPS.values() for name in group)
PRIORS = (0.01, 0.05, 0.2, 0.5, 0.8, 0.95)
MANY, FEW = 200, 25
ROWS = 1000
ROUNDS = 1


@dataclass(frozen=True)
class Draw:
    """One problem, by what decides its rows."""

    dataset: str
    source_prior: float
    labels: int
    seed: int

    def rows(self) -> tuple[np.ndarray, np.ndarray, float]:
        """X, y as a peer gets them, and the share of positives among the unlabelled rows."""
        name, prior = zlib.crc32(self.dataset.encode()), round(1000 * self.source_prior)
        rng = np.random.default_rng((3, name, prior, self.labels, self.seed))
        P, of_positives, of_negatives = self._classes(rng)
        U = np.concatenate([of_positives, of_negatives])
        X = standardize(np.concatenate([P, U]), U)
        return X, np.repeat([1, 0], [len(P), len(U)]), len(of_positives) / len(U)

    def _classes(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """P, and the positives and negatives of U."""
        if self.dataset in GAUSSIANS:
            k, n = class_counts(self.source_prior, ROWS, ROWS, ROWS)
            classes = np.repeat([1, 0], [self.labels + k, n])
            X = rng.normal(size=(len(classes), 10)) + GAUSSIANS[self.dataset] * classes[:, None]
            return X[: self.labels], X[self.labels : self.labels + k], X[self.labels + k :]
        data = load_dataset(self.dataset)
        positives, negatives = (rng.permutation(data.X[data.y == label]) for label in (True, False))
        P, rest = np.split(positives, [min(self.labels, len(positives) // 2)])
        k, n = class_counts(self.source_prior, len(rest), len(negatives), ROWS)
        return P, rest[:k], negatives[:n]


def grid(sets: tuple[str, ...] = SETS, rounds: int = ROUNDS) -> Iterator[Draw]:
    """Round by round, so that an unfinished run has whole rounds."""
    for seed in range(rounds):
        for labels in (MANY, FEW):
            for dataset in sets:
                for prior in PRIORS:
                    yield Draw(dataset, prior, labels, seed)
