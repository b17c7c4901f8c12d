"""What random features of a sample add up to: all that its mean embedding and the error of it are made of.

Sums over rows merge by addition, so rows may come in any order, in parts and from several places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsyrk

from priorshift import threads
from priorshift.arrays import Floats
from priorshift.embedding.random_features import RandomFeatures

_LANE_BYTES = 2**28  # of second moments that are added up side by side
_EVEN = 1e-9  # of a sum of squares: what rounding leaves of the difference to that of equal weights

Weighted = tuple[Floats, Floats | None]  # rows, and what each counts; None is 1


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over the rows of a sample, with z the random features of a row and w what it counts.

    Attributes
    ----------
    rows : int
        How many there are.
    weight, squares : float
        Σ w and Σ w².
    total, squared_total : ndarray of shape (D,)
        Σ w z and Σ w² z.
    product : ndarray of shape (D, D)
        Σ w² z zᵀ.
    noise : float
        Standard deviation of what was added to each of `total`, so that no row shows; it is that of each entry of one
        triangle of `product` too, and √2 times it on the diagonal.
    """

    rows: int
    weight: float
    squares: float
    total: Floats
    squared_total: Floats
    product: Floats
    noise: float = 0.0

    @classmethod
    def of(cls, features: RandomFeatures, parts: Iterable[Weighted]) -> Moments:
        """Of rows that come in parts, on all cores, with memory for a few blocks of them."""
        D = features.size
        lanes = [_Lane(features) for _ in range(max(1, min(threads.available(), _LANE_BYTES // (8 * D * D))))]
        busy: list[Future[None] | None] = [None] * len(lanes)
        with threads.one_blas_thread(), ThreadPoolExecutor(len(lanes)) as pool:
            for number, (rows, weights) in enumerate(_cut(parts, features.block)):
                at = number % len(lanes)
                if (before := busy[at]) is not None:
                    before.result()
                busy[at] = pool.submit(lanes[at].add, rows, weights)
            for one in busy:
                if one is not None:
                    one.result()
        made = lanes[0].moments()
        for lane in lanes[1:]:
            made += lane.moments()
        return made

    def __add__(self, other: Moments) -> Moments:
        """Of both samples together."""
        return Moments(
            self.rows + other.rows,
            self.weight + other.weight,
            self.squares + other.squares,
            self.total + other.total,
            self.squared_total + other.squared_total,
            self.product + other.product,
            float(np.hypot(self.noise, other.noise)),
        )

    @property
    def mean(self) -> Floats:
        """μ, the mean embedding."""
        return self.total / self.weight

    @property
    def own(self) -> float:
        """Σ mass² of the rows: what their pairs with themselves count."""
        return self.squares / self.weight**2

    @property
    def is_weighted(self) -> bool:
        """Whether some row counts anything but 1."""
        return not self.rows == self.weight == self.squares

    @property
    def is_even(self) -> bool:
        """Whether every row counts the same."""
        return abs(self.rows * self.own - 1) < _EVEN

    @property
    def size(self) -> float:
        """Rows of equal weight that it is worth."""
        return float(self.rows) if self.is_even else 1 / self.own


class _Lane:
    """Sums that one thread adds to at a time."""

    def __init__(self, features: RandomFeatures) -> None:
        D = features.size
        self.features, self.room = features, features.room(features.block)  # new room for every block takes long
        self.rows, self.weight, self.squares = 0, 0.0, 0.0
        self.total, self.squared_total = np.zeros(D), np.zeros(D)
        self.product = np.zeros((D, D), order="F")

    def add(self, rows: Floats, weights: Floats | None) -> None:
        z = self.features.map(rows, self.room)
        self.rows += len(rows)
        if weights is None:
            total = z.sum(axis=0)
            self.weight += len(rows)
            self.squares += len(rows)
            self.total += total
            self.squared_total += total
        else:
            self.weight += float(weights.sum())
            self.squares += float(weights @ weights)
            self.total += weights @ z
            z *= weights[:, None]
            self.squared_total += weights @ z
        # half the work of zᵀz: one triangle, in place
        self.product = dsyrk(1.0, z.T, beta=1.0, c=self.product, overwrite_c=True)

    def moments(self) -> Moments:
        upper = np.triu(self.product, 1)
        product = upper + upper.T
        np.fill_diagonal(product, np.diagonal(self.product))
        return Moments(self.rows, self.weight, self.squares, self.total, self.squared_total, product)


def _cut(parts: Iterable[Weighted], block: int) -> Iterator[Weighted]:
    for rows, weights in parts:
        for k in range(0, len(rows), block):
            at = slice(k, k + block)
            yield rows[at], None if weights is None else weights[at]
