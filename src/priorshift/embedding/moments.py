"""Moments of the random features of a sample, and embeddings of three samples from their moments alone.

Moments are sums over rows, so they merge by addition: rows may come in any order, in parts and from several places.

With M the means of P, U and T, of shape (3, D), a row z of sample k moves ⟨μ_k, μ_q⟩ by mass·(z·μ_q − ⟨μ_k, μ_q⟩). That
is affine in z, so the squares of all rows' influences add up to a function of Σ w², Σ w² z and Σ w² z zᵀ. The self-pair
of a row, which the unbiased statistic leaves out, is replaced by the mean self-pair of all rows.

Under censoring the population is P and U together: a row of P is in both samples, so that it has self-pairs in the
cross term too, and moves both means at once.

Moments may contain noise of a known variance that hides single rows. It lengthens the means, by a known amount that is
subtracted; it adds a part to the covariance of the Gram matrix; and it makes the spread of rows less well known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk

from priorshift import threads
from priorshift.arrays import Floats
from priorshift.embedding import P, T, U
from priorshift.embedding.gram import Embeddings, Statistic, gram_covariance
from priorshift.embedding.random_features import RandomFeatures

_THREAD_BYTES = 2**28  # memory for the second moments of all threads
_EQUAL = 1e-9  # relative rounding error in the sum of squares of equal weights

Weighted = tuple[Floats, Floats | None]  # rows, and the weight of each; None for weights of 1


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Sums over the rows of a sample, with z the D random features of a row and w its weight."""

    rows: int  # number of rows
    weight: float  # Σ w
    squares: float  # Σ w²
    total: Floats  # Σ w z, shape (D,)
    squared_total: Floats  # Σ w² z, shape (D,)
    product: Floats  # Σ w² z zᵀ, shape (D, D)
    # standard deviation of the noise in each entry of `total` and of a triangle of `product` (√2 times on its diagonal)
    noise: float = 0.0

    @classmethod
    def from_rows(cls, features: RandomFeatures, parts: Iterable[Weighted]) -> FeatureMoments:
        """Add up rows that come in parts, on all cores, with memory for a few blocks of them."""
        D = features.size
        workers = max(1, min(threads.available(), _THREAD_BYTES // (8 * D * D)))
        sums = [_Accumulator(features) for _ in range(workers)]
        running: list[Future[None]] = []  # one of each accumulator
        with threads.one_blas_thread(), ThreadPoolExecutor(workers) as pool:
            for number, (rows, weights) in enumerate(_blocks(parts, features.block)):
                at = number % workers
                if number >= workers:
                    running[at].result()
                running[at : at + 1] = [pool.submit(sums[at].add, rows, weights)]
            for future in running:
                future.result()
        return reduce(add, [accumulator.moments() for accumulator in sums])

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        """Merge two samples."""
        names = ("rows", "weight", "squares", "total", "squared_total", "product")
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return FeatureMoments(**sums, noise=float(np.hypot(self.noise, other.noise)))

    @property
    def mean(self) -> Floats:
        """μ, the mean embedding."""
        return self.total / self.weight

    @property
    def self_pair_mass(self) -> float:
        """Σ mass² of the rows: the mass of their pairs with themselves."""
        return self.squares / self.weight**2

    @property
    def is_weighted(self) -> bool:
        """Whether some row has a weight other than 1."""
        return not self.rows == self.weight == self.squares

    @property
    def has_equal_weights(self) -> bool:
        return abs(self.rows * self.self_pair_mass - 1) < _EQUAL

    @property
    def size(self) -> float:
        """Effective sample size."""
        return float(self.rows) if self.has_equal_weights else 1 / self.self_pair_mass


class _Accumulator:
    """Sums that one thread adds to at a time."""

    def __init__(self, features: RandomFeatures) -> None:
        D = features.size
        self.features, self.buffer = features, features.buffer(features.block)  # allocating for every block is slow
        self.rows, self.weight, self.squares = 0, 0.0, 0.0
        self.total, self.squared_total = np.zeros(D), np.zeros(D)
        self.product = np.zeros((D, D), order="F")

    def add(self, rows: Floats, weights: Floats | None) -> None:
        z = self.features.map(rows, self.buffer)
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


def _blocks(parts: Iterable[Weighted], size: int) -> Iterator[Weighted]:
    for rows, weights in parts:
        for k in range(0, len(rows), size):
            yield rows[k : k + size], None if weights is None else weights[k : k + size]


def embed_moments(
    features: RandomFeatures,
    positive: FeatureMoments,
    unlabeled: FeatureMoments,
    target: FeatureMoments,
    statistic: Statistic = "unbiased",
    *,
    censoring: bool = False,
) -> Embeddings:
    """Compute the embeddings that the rows would give; with `censoring` the population is P and U together."""
    population = unlabeled + positive if censoring else unlabeled
    samples = positive, population, target
    M = np.stack([sample.mean for sample in samples])
    # standard deviation that the noise of each sample's rows adds to each coordinate of the means that they are in
    P_noise, U_noise, T_noise = noise = [
        np.array([moments.noise / sample.weight if k in means else 0.0 for k, sample in enumerate(samples)])
        for moments, means in ((positive, (P, U) if censoring else (P,)), (unlabeled, (U,)), (target, (T,)))
    ]
    H = np.sum([np.outer(each, each) for each in noise], axis=0)  # covariance of the means' noise, of each coordinate
    plug_in = M @ M.T - features.size * H
    own = np.diag([sample.self_pair_mass for sample in samples])
    if censoring:  # Σ mass in P · mass in U
        own[P, U] = own[U, P] = positive.squares / (positive.weight * population.weight)
    if statistic == "plug-in":
        own[:] = 0.0

    U_rows = [(unlabeled, own[U], U_noise)]
    if censoring:  # of the rows of U, only those of P have a self-pair in P
        U_rows = [(positive, np.array([own[P, P], own[U, U], 0.0]), P_noise), (unlabeled, own[U] * (0, 1, 0), U_noise)]
    all_rows = [(positive, own[P], P_noise)], U_rows, [(target, own[T], T_noise)]
    influence = [_influence(M, sample, rows) for sample, rows in zip(samples, all_rows, strict=True)]
    squares = [np.sum([rows.products(rows) for rows in of_sample], axis=0) for of_sample in influence]
    products = {(P, U): influence[P][0].products(influence[U][0])} if censoring else {}
    gram = (plug_in - own) / (1 - own)
    parts, freedom = gram_covariance(squares, products, [sample.size for sample in samples])
    if H.any():
        parts = np.concatenate([parts, _noise_covariance(gram, H, features.size)[None]])
        freedom = np.append(freedom, np.inf)  # it is known
    sizes, shared = (positive.rows, population.rows, target.rows), positive.rows if censoring else 0
    is_iid = all(sample.has_equal_weights for sample in samples)
    return Embeddings(gram, plug_in, parts, freedom, sizes, shared, features, is_iid=is_iid)


def _noise_covariance(gram: Floats, H: Floats, size: int) -> Floats:
    """Compute the covariance of (M + η)(M + η)ᵀ − DH, where the columns of η are independent and normal with H."""
    G = _positive_semidefinite(gram)
    first = np.einsum("ac,bd->abcd", H, G + size / 2 * H)  # the second term is of η ηᵀ
    first = first + first.transpose(1, 0, 3, 2)
    return np.asarray(first + first.transpose(0, 1, 3, 2))


def _positive_semidefinite(A: Floats) -> Floats:
    """Return the positive semidefinite matrix nearest to a symmetric A."""
    values, vectors = np.linalg.eigh(A)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


class _Influence(NamedTuple):
    """Influence of rows on the inner products of their sample's mean with the three means, factor·w·(Mz − centre)."""

    moments: FeatureMoments  # of the rows
    M: Floats
    noise_product: Floats
    centre: Floats
    factor: Floats

    def products(self, other: _Influence) -> Floats:
        """Compute Σ v uᵀ over the rows, v their influence here and u that as rows of another sample."""
        first, second = self.M @ self.moments.squared_total, self.M @ self.moments.product @ self.M.T
        first = first - self.moments.squares * self.noise_product
        centred = second - np.outer(first, other.centre) - np.outer(self.centre, first)
        centred += self.moments.squares * np.outer(self.centre, other.centre)
        if self.moments.noise:
            # noise of the second moment moves vᵀ(…)v by √2·noise·‖Mᵀv‖²: one such error is added, on the safe side
            centred += np.sqrt(2) * self.moments.noise * self.M @ self.M.T
        if self.moments.noise and other is self:
            centred = _positive_semidefinite(centred)
        return self.factor[:, None] * centred * other.factor


def _influence(
    M: Floats, sample: FeatureMoments, parts: Sequence[tuple[FeatureMoments, Floats, Floats]]
) -> list[_Influence]:
    """Centre the three means at the rows of a sample, without their self-pairs: (Mz − own)/(1 − own).

    The rows come in parts: their moments, the mass of their self-pairs in each mean, and the noise in each mean.
    """
    # expected product of the noise in the rows' mean and the same noise in the three means
    products = [len(rows.total) * noise * rows.noise / rows.weight for rows, _, noise in parts]
    means = [
        (M @ rows.mean - product - own) / (1 - own) for (rows, own, _), product in zip(parts, products, strict=True)
    ]
    mean = (
        np.sum([rows.weight * value for (rows, _, _), value in zip(parts, means, strict=True)], axis=0) / sample.weight
    )
    correction = np.sqrt(sample.size / max(sample.size - 1, 1))  # for a spread about a mean of as many rows
    return [
        _Influence(rows, M, product, own + (1 - own) * mean, correction / (sample.weight * (1 - own)))
        for (rows, own, _), product in zip(parts, products, strict=True)
    ]
