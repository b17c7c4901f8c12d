"""Problems that carry their answer: the same points stacked into U and T, so that label shift holds exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ExactProblem:
    positive: np.ndarray
    unlabeled: np.ndarray
    target: np.ndarray
    source_prior: float
    target_prior: float

    @property
    def X(self) -> np.ndarray:
        return np.concatenate([self.positive, self.unlabeled])

    @property
    def y(self) -> np.ndarray:
        return np.repeat([1, 0], [len(self.positive), len(self.unlabeled)])


def stacked(positives: np.ndarray, negatives: np.ndarray, copies: tuple[int, int, int, int]) -> ExactProblem:
    """U holds copies[0] times the positives and copies[1] times the negatives, T copies[2] and copies[3] times."""
    i, j, s, t = copies
    k_pos, k_neg = len(positives), len(negatives)
    unlabeled = np.concatenate([positives] * i + [negatives] * j)
    target = np.concatenate([positives] * s + [negatives] * t)
    return ExactProblem(
        positives, unlabeled, target, i * k_pos / (i * k_pos + j * k_neg), s * k_pos / (s * k_pos + t * k_neg)
    )


def random_problem(seed: int = 0, features: int = 3, copies: tuple[int, int, int, int] = (1, 3, 2, 1)) -> ExactProblem:
    """On a grid, where equal rows may be chance, so that every one of them counts."""
    rng = np.random.default_rng(seed)
    positives, negatives = rng.normal(size=(7, features)) + 1.5, rng.normal(size=(5, features))
    return stacked(np.round(2 * positives) / 2, np.round(2 * negatives) / 2, copies)
