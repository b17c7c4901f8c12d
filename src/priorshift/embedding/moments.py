"""What random features of a sample add up to: all that its mean embedding and the error of it are made of.

Sums over rows merge by addition, so rows may come in any order, in parts and from several places.

Embeddings of three samples from the moments of their random features alone: no row is needed.

With M the means of P, U and T, of shape (3, D), a row z of sample k moves ⟨μ_k, μ_q⟩ by mass·(z·μ_q − ⟨μ_k, μ_q⟩). That
is affine in z, so the squares of what all rows move add up to a function of Σ w², Σ w² z and Σ w² z zᵀ. What the pair
of a row with itself counts, which the unbiased statistic leaves out, is taken by its mean over the rows.

Under censoring the population is P and U together: a row of P stands in both samples, so that it has pairs with itself
in the cross term too, and moves both means at once.

Moments may hold noise of a known variance, so that no row shows. It lengthens means, by what is known and taken off
again; it makes the Gram matrix less sure, which is a part of its covariance; and the spread of rows is known less well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk

from priorshift import threads
from priorshift.arrays import Floats
from priorshift.embedding.gram import Embeddings, P, Statistic, T, U, gram_covariance
from priorshift.embedding.random_features import RandomFeatures

_LANE_BYTES = 2**28  # of second moments that are added up side by side
_EVEN = 1e-9  # of a sum of squares: what rounding leaves of the difference to that of equal weights

Weighted = tuple[Floats, Floats | None]  # rows, and what each counts; None is 1


@dataclass(frozen=True, eq=False)
class FeatureMoments:
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
    def from_rows(cls, features: RandomFeatures, parts: Iterable[Weighted]) -> FeatureMoments:
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

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        """Of both samples together."""
        return FeatureMoments(
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

    def moments(self) -> FeatureMoments:
        upper = np.triu(self.product, 1)
        product = upper + upper.T
        np.fill_diagonal(product, np.diagonal(self.product))
        return FeatureMoments(self.rows, self.weight, self.squares, self.total, self.squared_total, product)


def _cut(parts: Iterable[Weighted], block: int) -> Iterator[Weighted]:
    for rows, weights in parts:
        for k in range(0, len(rows), block):
            at = slice(k, k + block)
            yield rows[at], None if weights is None else weights[at]


def embed_moments(
    features: RandomFeatures,
    positive: FeatureMoments,
    unlabeled: FeatureMoments,
    target: FeatureMoments,
    statistic: Statistic = "unbiased",
    *,
    censoring: bool = False,
) -> Embeddings:
    """Embeddings as rows would make them; with `censoring` the population is P and U together.

    `unlabeled` are the unlabelled rows in either case.
    """
    population = unlabeled + positive if censoring else unlabeled
    samples = positive, population, target
    M = np.stack([sample.mean for sample in samples])
    of_P, of_U, of_T = noise = [
        _noise_in_means(of, samples, where)
        for of, where in ((positive, (P, U) if censoring else (P,)), (unlabeled, (U,)), (target, (T,)))
    ]
    H = np.sum([np.outer(each, each) for each in noise], axis=0)  # covariance of the means' noise, of each coordinate
    plug_in = M @ M.T - features.size * H
    own = np.diag([sample.own for sample in samples])
    if censoring:  # Σ mass in P · mass in U
        own[P, U] = own[U, P] = positive.squares / (positive.weight * population.weight)
    if statistic == "plug-in":
        own[:] = 0.0

    values = {
        P: [_Values(positive, own[P], of_P)],
        U: [_Values(unlabeled, own[U], of_U)],
        T: [_Values(target, own[T], of_T)],
    }
    if censoring:  # of the rows of U those of P alone have a pair with themselves in P
        values[U] = [
            _Values(positive, np.array([own[P, P], own[U, U], 0.0]), of_P),
            _Values(unlabeled, own[U] * (0, 1, 0), of_U),
        ]
    moved = {k: _centred(parts, M, samples[k]) for k, parts in values.items()}
    squares = [np.sum([rows.products(rows) for rows in parts], axis=0) for parts in moved.values()]
    products = {(P, U): moved[P][0].products(moved[U][0])} if censoring else {}
    gram = (plug_in - own) / (1 - own)
    parts, freedom = gram_covariance(squares, products, [sample.size for sample in samples])
    if H.any():
        parts = np.concatenate([parts, _noise_covariance(gram, H, features.size)[None]])
        freedom = np.append(freedom, np.inf)  # it is known
    return Embeddings(
        gram,
        plug_in,
        parts,
        freedom,
        (positive.rows, population.rows, target.rows),
        positive.rows if censoring else 0,
        features,
        is_even=all(sample.is_even for sample in samples),
    )


def _noise_in_means(of: FeatureMoments, samples: Sequence[FeatureMoments], where: Sequence[int]) -> Floats:
    """Standard deviation of what noise of some rows does to each coordinate of the means they are in."""
    return np.array([of.noise / sample.weight if k in where else 0.0 for k, sample in enumerate(samples)])


def _noise_covariance(gram: Floats, H: Floats, size: int) -> Floats:
    """Covariance of the entries of (M + η)(M + η)ᵀ − DH, where the columns of η are independent and normal with H."""
    G = not_negative(gram)
    first = np.einsum("ac,bd->abcd", H, G + size / 2 * H)  # the second term is of η ηᵀ
    first = first + first.transpose(1, 0, 3, 2)
    return np.asarray(first + first.transpose(0, 1, 3, 2))


def not_negative(A: Floats) -> Floats:
    """The symmetric matrix nearest to A that is negative in no direction."""
    values, vectors = np.linalg.eigh(A)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


class _Values(NamedTuple):
    """The three means at rows, (Mz − own)/(1 − own), without what the pairs of a row with itself count.

    `noise` is what that of the rows does to each coordinate of the three means.
    """

    of: FeatureMoments
    own: Floats
    noise: Floats

    @property
    def in_common(self) -> Floats:
        """What noise that is in both adds to the inner products of the rows' mean with the three means."""
        return len(self.of.total) * self.noise * self.of.noise / self.of.weight

    def mean(self, M: Floats) -> Floats:
        return (M @ self.of.mean - self.in_common - self.own) / (1 - self.own)


class _Moved(NamedTuple):
    """How much rows move the inner products of a mean with the three means, factor·w·(Mz − centre)."""

    of: FeatureMoments
    M: Floats
    in_common: Floats
    centre: Floats
    factor: Floats

    def products(self, other: _Moved) -> Floats:
        """Σ v uᵀ over the rows, with v what they move and u what they move as rows of another sample."""
        first, second = self.M @ self.of.squared_total, self.M @ self.of.product @ self.M.T
        first = first - self.of.squares * self.in_common
        centred = second - np.outer(first, other.centre) - np.outer(self.centre, first)
        centred += self.of.squares * np.outer(self.centre, other.centre)
        if self.of.noise:
            # noise of the second moment moves vᵀ(…)v by √2·noise·‖Mᵀv‖²: one such error is added, on the safe side
            centred += np.sqrt(2) * self.of.noise * self.M @ self.M.T
        if self.of.noise and other is self:
            centred = not_negative(centred)
        return self.factor[:, None] * centred * other.factor


def _centred(parts: list[_Values], M: Floats, sample: FeatureMoments) -> list[_Moved]:
    """What the rows of one sample move, which come in parts with values of their own."""
    mean = np.sum([values.of.weight * values.mean(M) for values in parts], axis=0) / sample.weight
    unbiased = np.sqrt(sample.size / max(sample.size - 1, 1))  # as of a spread about a mean of as many rows
    return [
        _Moved(one.of, M, one.in_common, one.own + (1 - one.own) * mean, unbiased / (sample.weight * (1 - one.own)))
        for one in parts
    ]
