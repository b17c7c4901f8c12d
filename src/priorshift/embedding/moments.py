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
    """Sums over the rows of a sample, with z the D random features, or other functions, of a row and w its weight."""

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
        """Compute the moments of rows that come in parts, on all cores, with memory for a few blocks of rows.

        Each part is a matrix of rows and the weight of each row, None for weights of 1.
        """
        D = features.size
        workers = max(1, min(threads.available(), _THREAD_BYTES // (8 * D * D)))
        accumulators = [_Accumulator(features) for _ in range(workers)]
        running: dict[int, Future[None]] = {}  # the last task of each accumulator
        with threads.one_blas_thread(), ThreadPoolExecutor(workers) as pool:
            for number, (rows, weights) in enumerate(_blocks(parts, features.block)):
                worker = number % workers
                if worker in running:
                    running[worker].result()  # an accumulator is used by one thread at a time
                running[worker] = pool.submit(accumulators[worker].add, rows, weights)
            for future in running.values():
                future.result()  # raises the task's error, if any
        moments = accumulators[0].moments()
        for accumulator in accumulators[1:]:
            moments = moments + accumulator.moments()
        return moments

    @classmethod
    def from_values(cls, z: Floats, weights: Floats | None = None) -> FeatureMoments:
        """Compute the moments of functions whose values z at the rows are given, shape (rows, D)."""
        w = np.ones(len(z)) if weights is None else weights
        weighted = w[:, None] * z
        return cls(len(z), float(w.sum()), float(w @ w), w @ z, w @ weighted, weighted.T @ weighted)

    def affine(self, A: Floats, c: Floats) -> FeatureMoments:
        """Return the moments of the functions Az + c, for moments without noise; `A` has shape (functions, D)."""
        first = A @ self.squared_total  # Σ w² Az
        product = A @ self.product @ A.T + np.outer(first, c) + np.outer(c, first) + self.squares * np.outer(c, c)
        total, squared_total = A @ self.total + self.weight * c, first + self.squares * c
        return FeatureMoments(self.rows, self.weight, self.squares, total, squared_total, product)

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        """Return the moments of the rows of both samples together; the variances of independent noise add up."""
        names = ("rows", "weight", "squares", "total", "squared_total", "product")
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return FeatureMoments(**sums, noise=float(np.hypot(self.noise, other.noise)))

    @property
    def mean(self) -> Floats:
        """Mean embedding μ = Σ w z / Σ w, shape (D,)."""
        return self.total / self.weight

    @property
    def self_pair_mass(self) -> float:
        """Σ mass² of the rows: the mass of their pairs with themselves."""
        return self.squares / self.weight**2

    @property
    def is_weighted(self) -> bool:
        """Whether some row has a weight other than 1: otherwise the numbers of rows, Σ w and Σ w² are equal."""
        return not self.rows == self.weight == self.squares

    @property
    def has_equal_weights(self) -> bool:
        """Whether all rows have the same weight, up to rounding: only then rows·Σ w² = (Σ w)²."""
        return abs(self.rows * self.self_pair_mass - 1) < _EQUAL

    @property
    def size(self) -> float:
        """Effective sample size (Σ w)²/Σ w²."""
        return float(self.rows) if self.has_equal_weights else 1 / self.self_pair_mass


class _Accumulator:
    """Sums over rows and their random features, to which one thread at a time adds blocks of rows."""

    def __init__(self, features: RandomFeatures) -> None:
        """Allocate sums of zero, and a buffer for the features of one block of rows."""
        D = features.size
        self.features, self.buffer = features, features.buffer(features.block)  # allocating for every block is slow
        self.rows, self.weight, self.squares = 0, 0.0, 0.0
        self.total, self.squared_total = np.zeros(D), np.zeros(D)
        self.product = np.zeros((D, D), order="F")

    def add(self, rows: Floats, weights: Floats | None) -> None:
        """Add a block of rows; `weights` None stands for weights of 1."""
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
            z *= weights[:, None]  # from here on w·z
            self.squared_total += weights @ z
        # adds zᵀz in place; only the upper triangle is computed, which is half the work
        self.product = dsyrk(1.0, z.T, beta=1.0, c=self.product, overwrite_c=True)

    def moments(self) -> FeatureMoments:
        """Return the sums so far, with the second moment as a full symmetric matrix."""
        upper = np.triu(self.product, 1)
        product = upper + upper.T
        np.fill_diagonal(product, np.diagonal(self.product))
        return FeatureMoments(self.rows, self.weight, self.squares, self.total, self.squared_total, product)


def _blocks(parts: Iterable[Weighted], size: int) -> Iterator[Weighted]:
    """Cut each part, rows and their weights, into blocks of at most `size` rows; weights of None stay None."""
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
    """Compute the Gram matrix of the means of P, U and T and its covariance, as `SourceEmbedding.embed` does from rows.

    With `censoring` the population is P and U together. The "unbiased" statistic leaves out self-pairs, the pairs of a
    row with itself; "plug-in" does not.
    """
    population = unlabeled + positive if censoring else unlabeled
    samples = positive, population, target
    M = np.stack([sample.mean for sample in samples])
    # standard deviation of the noise that the rows of P, U and T bring into each coordinate of the three means
    weights = np.array([sample.weight for sample in samples])
    P_noise = positive.noise / weights * (1, int(censoring), 0)
    U_noise = unlabeled.noise / weights * (0, 1, 0)
    T_noise = target.noise / weights * (0, 0, 1)
    # covariance of the noise in the three means, the same for each coordinate
    H = np.sum([np.outer(noise, noise) for noise in (P_noise, U_noise, T_noise)], axis=0)
    plug_in = M @ M.T - features.size * H  # without the expected product of the noise
    own = np.diag([sample.self_pair_mass for sample in samples])  # mass of self-pairs; their kernel value is ‖z‖² = 1
    if censoring:  # Σ mass in P · mass in U, over the rows of P
        own[P, U] = own[U, P] = positive.squares / (positive.weight * population.weight)
    if statistic == "plug-in":
        own[:] = 0.0

    U_rows = [_Rows(unlabeled, own[U], U_noise)]
    if censoring:  # of the rows of the population, only those of P have a self-pair in P
        P_in_population = _Rows(positive, np.array([own[P, P], own[U, U], 0.0]), P_noise)
        U_rows = [P_in_population, _Rows(unlabeled, own[U] * (0, 1, 0), U_noise)]
    all_rows = [_Rows(positive, own[P], P_noise)], U_rows, [_Rows(target, own[T], T_noise)]
    influence = [_influence(M, sample, parts) for sample, parts in zip(samples, all_rows, strict=True)]
    squares = [np.sum([part.products(part) for part in parts], axis=0) for parts in influence]
    products = {(P, U): influence[P][0].products(influence[U][0])} if censoring else {}  # rows of P, in both samples
    gram = (plug_in - own) / (1 - own)
    parts, freedom = gram_covariance(squares, products, [sample.size for sample in samples])
    if H.any():
        parts = np.concatenate([parts, _noise_covariance(gram, H, features.size)[None]])
        freedom = np.append(freedom, np.inf)  # the variance of the noise is known exactly
    sizes, shared = (positive.rows, population.rows, target.rows), positive.rows if censoring else 0
    is_iid = all(sample.has_equal_weights for sample in samples)
    return Embeddings(gram, plug_in, parts, freedom, sizes, shared, features, is_iid=is_iid)


def _noise_covariance(gram: Floats, H: Floats, size: int) -> Floats:
    """Compute the covariance of the entries of (M + η)(M + η)ᵀ − DH, shape (3, 3, 3, 3).

    The D = `size` columns of the noise η are independent and normal with covariance H; `gram` is MMᵀ.
    """
    G = _positive_semidefinite(gram)
    terms = np.einsum("ac,bd->abcd", H, G + size / 2 * H)  # of Mηᵀ and of ηηᵀ; the other index orders follow
    terms = terms + terms.transpose(1, 0, 3, 2)
    return np.asarray(terms + terms.transpose(0, 1, 3, 2))


def _positive_semidefinite(A: Floats) -> Floats:
    """Return the positive semidefinite matrix nearest to a symmetric A."""
    values, vectors = np.linalg.eigh(A)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


class _Rows(NamedTuple):
    """Some rows of a sample, which have the same self-pairs and the same noise."""

    moments: FeatureMoments
    own: Floats  # mass of a row's self-pairs in the means of P, U and T
    noise: Floats  # standard deviation of the noise that the rows bring into each coordinate of the three means


class _Influence(NamedTuple):
    """Influence of rows on the inner products of their sample's mean with the three means, factor·w·(Mz − centre)."""

    moments: FeatureMoments  # of the rows
    M: Floats  # the three means, shape (3, D)
    noise_product: Floats  # expected product of the noise in the rows' mean and that in each of the three means
    centre: Floats  # shape (3,)
    factor: Floats  # shape (3,)

    def products(self, other: _Influence) -> Floats:
        """Compute Σ v uᵀ over the rows, shape (3, 3): v is a row's influence, u its influence according to `other`.

        `other` is this object, or has the same rows as members of another sample.
        """
        # Σ w² Mz, and Σ w² Mz(Mz)ᵀ, with w a row's weight and z its random features
        first, second = self.M @ self.moments.squared_total, self.M @ self.moments.product @ self.M.T
        first = first - self.moments.squares * self.noise_product
        centred = second - np.outer(first, other.centre) - np.outer(self.centre, first)
        centred += self.moments.squares * np.outer(self.centre, other.centre)
        if self.moments.noise:
            # noise in the second moment changes vᵀ(…)v by √2·noise·‖Mᵀv‖²; one such error is added, to be conservative
            centred += np.sqrt(2) * self.moments.noise * self.M @ self.M.T
        if self.moments.noise and other is self:
            centred = _positive_semidefinite(centred)
        return self.factor[:, None] * centred * other.factor


def _influence(M: Floats, sample: FeatureMoments, parts: Sequence[_Rows]) -> list[_Influence]:
    """Return the influence of each part of a sample's rows on the inner products of its mean with the three means M.

    Without its self-pairs, of mass `own`, the three means at a row z are (Mz − own)/(1 − own), centred at their
    mean over the sample. `sample` has the moments of all parts together.
    """
    noise_products, total = [], np.zeros(3)
    for moments, own, noise in parts:
        # expected product of the noise in the rows' mean and the same noise in the three means
        noise_product = len(moments.total) * noise * moments.noise / moments.weight
        noise_products.append(noise_product)
        total += moments.weight * ((M @ moments.mean - noise_product - own) / (1 - own))
    mean = total / sample.weight
    correction = np.sqrt(sample.size / max(sample.size - 1, 1))  # √(n/(n−1)), for a spread about the sample's own mean
    return [
        _Influence(moments, M, noise_product, own + (1 - own) * mean, correction / (sample.weight * (1 - own)))
        for (moments, own, _), noise_product in zip(parts, noise_products, strict=True)
    ]
