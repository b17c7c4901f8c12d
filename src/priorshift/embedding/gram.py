"""Gram matrix of the means of P, U and T, how well it is known, and the ratio R that follows from it.

The samples are P (labelled positives), U (the source population) and T (the target), in this order everywhere. With
a = μ_U − μ_P and b = μ_T − μ_P, label shift says b = Ra with R = (1−π′)/(1−π), so that TCPU is a function of the
3 × 3 Gram matrix alone.

The blocks of the matrix come from three providers: sums over all pairs of rows (tiles on the CPU, a GPU, or a function
that computes elsewhere, such as Dask), random features, or a random sample of pairs. Moments of random features, which
need no rows, are in :mod:`priorshift.embedding.moments`. Estimators, intervals and tests only see the resulting
:class:`Embeddings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from priorshift.arrays import Floats
from priorshift.embedding import P, T, U
from priorshift.embedding.cuda import Device, gpu_kernel_sums, gpu_weighted_kernel_sums
from priorshift.embedding.random_features import RandomFeatures, bootstrap_means, feature_mean, feature_values
from priorshift.embedding.samples import EmbeddedSample, SelfPairs, draw_counts, draw_pairs, self_pairs, sum_over_rows
from priorshift.embedding.tiles import kernel_sums, weighted_kernel_sums
from priorshift.errors import InputError
from priorshift.io.observations import PriorInfluence
from priorshift.kernels import Kernel
from priorshift.problem import Source, Target

Statistic = Literal["unbiased", "plug-in"]
Block = tuple[int, int]  # two of P, U and T
Prior = PriorInfluence | None  # influence of the rows on an estimate of the source prior, where it is one
_Entry = TypeVar("_Entry")

_SOURCE_BLOCKS = ((P, P), (U, U), (P, U))
_TARGET_BLOCKS = ((P, T), (U, T))
_PAIRS_AT_A_TIME = 2**15  # whose kernel values are computed together
_ROUNDING = 1e-12  # share of a sample's mass that counts as zero
# _SYMMETRIC[k, q] is the symmetric matrix with ones at (k, q) and (q, k), and 2 at (k, k): the change of the
# Gram matrix when the mean of sample k moves along the mean of sample q.
_SYMMETRIC = np.einsum("kj,ql->kqjl", np.eye(3), np.eye(3)) + np.einsum("kl,qj->kqjl", np.eye(3), np.eye(3))


def numerator(gram: Floats) -> Floats:
    """Compute N = ⟨μ_U − μ_P, μ_T − μ_P⟩ of one Gram matrix or a stack of them."""
    return np.asarray(gram[..., U, T] - gram[..., P, U] - gram[..., P, T] + gram[..., P, P])


def separation(gram: Floats) -> Floats:
    """Compute D = ‖μ_U − μ_P‖² of one Gram matrix or a stack of them."""
    return np.asarray(gram[..., U, U] - 2 * gram[..., P, U] + gram[..., P, P])


def ratio(gram: Floats) -> float:
    """Compute R = ⟨a, b⟩/⟨a, a⟩, the projection of b on a; NaN where a vanishes. ⟨μ_T, μ_T⟩ is not needed."""
    N, D = float(numerator(gram)), float(separation(gram))
    return N / D if D else float("nan")


def target_prior(gram: Floats, source_prior: float) -> float:
    """Compute π̂′ = 1 − (1−π)R, not clipped (the paper's Lemma 2)."""
    return 1 - (1 - source_prior) * ratio(gram)


def objective(gram: Floats, source_prior: float, gamma: ArrayLike) -> NDArray[np.float64]:
    """Compute the paper's objective L(γ) = ‖Δ − γa‖² with Δ = μ_U − πμ_P − (1−π)μ_T (its equation 3).

    `gram` must hold ⟨μ_T, μ_T⟩. With unbiased entries L estimates a squared distance without bias, and can be negative.
    """
    w = np.array([-source_prior, 1.0, -(1 - source_prior)])[:, None] - np.outer([-1.0, 1.0, 0.0], np.ravel(gamma))
    return np.einsum("jg,jk,kg->g", w, gram, w).reshape(np.shape(gamma))


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Gram matrix of the means of P, U and T, and the covariance of its entries."""

    gram: Floats  # ⟨μ_j, μ_k⟩ by the chosen statistic, shape (3, 3); ⟨μ_T, μ_T⟩ is NaN unless it was computed
    plug_in: Floats  # the same from all pairs of rows; the finite-sample bounds hold for it
    parts: Floats  # covariance of the entries of `gram` as independent parts, shape (parts, 3, 3, 3, 3)
    freedom: Floats  # degrees of freedom of each part
    sizes: tuple[int, int, int]  # rows in P, U and T
    shared: int  # pairs of a row of P and a row of U that are the same observation
    kernel: Kernel
    # covariance of `gram` with an estimate of the source prior from the same rows, and that estimate's variance
    prior_covariance: Floats = field(default_factory=lambda: np.zeros((3, 3)))
    prior_variance: float = 0.0
    # influence of each row of P, U and T on the inner products of its sample's mean with the three means, each of
    # shape (rows, 3); squares add up to variances. None for a sample of pairs and for moments
    influence: tuple[Floats, Floats, Floats] | None = None
    is_iid: bool = True  # whether all rows have equal weight and are observations of their own

    def row_influence(self, A: Floats) -> list[Floats]:
        """Compute the influence of each row of P, U and T on Σ A_jk ⟨μ_j, μ_k⟩, for a symmetric `A`."""
        if self.influence is None:
            raise ValueError("only embeddings of all rows know the influence of single rows.")
        return [2 * v @ A[k] for k, v in enumerate(self.influence)]

    def variance(self, A: Floats) -> tuple[float, float]:
        """Compute the variance of Σ A_jk ⟨μ_j, μ_k⟩ for a symmetric `A`, and its Satterthwaite degrees of freedom."""
        if A[T, T] != 0 and np.isnan(self.gram[T, T]):
            raise ValueError("the norm of the target's mean was not computed; embed with target_norm=True.")
        each = np.einsum("jk,pjklm,lm->p", A, self.parts, A)
        total = max(float(each.sum()), 0.0)
        if not (0 < total < np.inf):
            return total, np.inf
        return total, 1 / float(((each / total) ** 2 / self.freedom).sum())


@dataclass(frozen=True, eq=False)
class SourceEmbedding:
    """The source side, computed once and used for every target: P and U and their kernel sums."""

    kernel: Kernel
    positive: EmbeddedSample
    unlabeled: EmbeddedSample
    shared: int  # pairs of a row of P and a row of U that are the same observation
    observations: int  # observations of the source have numbers below this
    precision: str  # type of the tiles
    device: Device = "cpu"

    @classmethod
    def from_source(
        cls, source: Source, kernel: Kernel, precision: str = "float64", device: Device = "cpu"
    ) -> SourceEmbedding:
        """Take P and U from a source."""
        positive, population = (
            EmbeddedSample(replace(source.rows, index=rows), mass, source.observation[rows])
            for rows, mass in ((source.positive, source.P.mass), (source.population, source.U.mass))
        )
        observations = int(source.observation.max()) + 1
        return cls(kernel, positive, population, len(source.shared), observations, precision, device)

    @property
    def feature_device(self) -> str:
        """Where random features are computed; a function only computes sums over pairs."""
        return self.device if isinstance(self.device, str) else "cpu"

    def sample(self, target: Target) -> EmbeddedSample:
        """Number the target's observations; groups that are also in the source keep the source's number."""
        of_source = np.full(int(target.observation.max()) + 1, -1)
        np.maximum.at(of_source, target.observation, target.of_source)
        number = np.where(of_source < 0, self.observations + np.arange(len(of_source)), of_source)
        sample = EmbeddedSample(target.rows, target.mass, number[target.observation])
        if len(sample.distinct) < 2:
            raise InputError(
                f"the {len(sample)} rows of {target.table.name} belong to one group of the source, but at least 2 "
                "observations are needed; add rows, or check the groups."
            )
        return sample

    @cached_property
    def source_sums(self) -> list[list[Floats]]:
        """μ_k at each row of sample j, for j and k of P and U (lists, because skops cannot store tuples as keys)."""
        sums = self._row_sums((self.positive, self.unlabeled), _SOURCE_BLOCKS)
        return [[sums[j, k] for k in (P, U)] for j in (P, U)]

    @cached_property
    def source_means(self) -> list[Floats]:
        """μ_P and μ_U as vectors of random features; empty for other kernels."""
        return self._feature_means((self.positive, self.unlabeled))

    @cached_property
    def source_self_pairs(self) -> list[list[SelfPairs | None]]:
        """The part of `source_sums` from the row's own observation; None where two samples have none in common."""
        pairs = self._self_pairs((self.positive, self.unlabeled), _SOURCE_BLOCKS)
        return [[pairs.get((j, k)) for k in (P, U)] for j in (P, U)]

    def embed(
        self,
        target: EmbeddedSample,
        statistic: Statistic = "unbiased",
        *,
        target_norm: bool = False,
        prior: Prior = None,
    ) -> Embeddings:
        """Embed with every pair of rows, or with random features; ⟨μ_T, μ_T⟩ only with `target_norm`."""
        samples = (self.positive, self.unlabeled, target)
        blocks = (*_TARGET_BLOCKS, (T, T)) if target_norm else _TARGET_BLOCKS
        sums = {(T, T): np.zeros(len(target))} | _by_block(self.source_sums) | self._row_sums(samples, blocks)
        plug_in = np.array([[samples[j].mass @ sums[j, k] for k in range(3)] for j in range(3)])
        gram = plug_in
        kept = {(j, k): np.ones(len(samples[j])) for j, k in sums}  # mass of the pairs that each row keeps
        if statistic == "unbiased":
            for (j, k), own in (_by_block(self.source_self_pairs) | self._self_pairs(samples, blocks)).items():
                if isinstance(self.kernel, RandomFeatures) and samples[j].is_ungrouped and samples[k].is_ungrouped:
                    own = own.averaged(samples[j].mass)  # as in sketches, which have no rows
                sums[j, k] = sums[j, k] - own.sums
                kept[j, k] -= own.mass
            gram = np.array(
                [[(samples[j].mass @ sums[j, k]) / (samples[j].mass @ kept[j, k]) for k in range(3)] for j in range(3)]
            )
        if not target_norm:
            plug_in[T, T] = gram[T, T] = np.nan
        influence = _influence(samples, sums, kept, gram)
        moves = np.zeros((3, 3))
        if prior is not None:
            of_observation = prior.of_observations(max(int(s.observation.max()) for s in samples) + 1)
            moves = np.stack([of_observation[s.observation] @ v for s, v in zip(samples, influence, strict=True)])
        estimates = (gram, plug_in, *_covariance(influence, samples))
        prior_covariance = np.einsum("kq,kqab->ab", moves, _SYMMETRIC)
        return self._embeddings(samples, prior, estimates, prior_covariance=prior_covariance, influence=influence)

    def embed_pairs(
        self, target: EmbeddedSample, pairs: int, rng: Generator, *, target_norm: bool = False, prior: Prior = None
    ) -> Embeddings:
        """Embed with `pairs` random pairs in each block: an incomplete U-statistic (Schrab et al. 2022).

        The covariance is that of the complete statistic plus that of drawing the pairs: with z the centred
        contribution of a pair, it is Σ (sum of z over the pairs of an observation)² − Σ z², the variance
        estimator for dyadic data (two pairs are dependent when they share an observation). A pair drawn twice counts as
        two, which errs on the safe side.
        """
        samples = (self.positive, self.unlabeled, target)
        blocks = (*_SOURCE_BLOCKS, *_TARGET_BLOCKS, (T, T))
        block_of = np.array([[0, 2, 3], [2, 1, 4], [3, 4, 5]])  # number of the block at each entry of the matrix
        gram = np.full((3, 3), np.nan)
        each = np.zeros((max(int(s.observation.max()) for s in samples) + 1, len(blocks)))  # of every observation
        squares = np.zeros(len(blocks))
        for number, (j, k) in enumerate(blocks if target_norm else blocks[:-1]):
            X, Y = samples[j], samples[k]
            left, right = draw_pairs(X, Y, pairs, rng)
            if not len(left):
                names = ("positive", "unlabeled", "target")
                raise InputError(
                    f"all {pairs} sampled pairs of {names[j]} and {names[k]} rows are one observation twice; raise "
                    "pairs, or leave it out to use all."
                )
            chunks = [slice(at, at + _PAIRS_AT_A_TIME) for at in range(0, len(left), _PAIRS_AT_A_TIME)]
            values = np.concatenate([self.kernel.paired(X.rows[left[at]], Y.rows[right[at]]) for at in chunks])
            gram[j, k] = gram[k, j] = values.mean()
            z = (values - values.mean()) / len(values)
            squares[number] = (z**2).sum()
            for observation in (X.observation[left], Y.observation[right]):
                each[:, number] += np.bincount(observation, z, len(each))
        covariance = each.T @ each - np.diag(squares)
        parts = covariance[block_of[:, :, None, None], block_of][None]
        freedom = np.array([max(min(s.size for s in samples) - 1, 1e-12)])
        moves = np.zeros(len(blocks)) if prior is None else prior.of_observations(len(each)) @ each
        plug_in = np.full((3, 3), np.nan)  # a plug-in statistic has no incomplete form
        return self._embeddings(samples, prior, (gram, plug_in, parts, freedom), prior_covariance=moves[block_of])

    def _embeddings(
        self, samples: Sequence[EmbeddedSample], prior: Prior, estimates: Sequence[Floats], **others: Any
    ) -> Embeddings:
        """Combine the Gram matrices, their covariance and its degrees of freedom with what is known of the samples."""
        gram, plug_in, parts, freedom = estimates
        p, u, t = (len(sample) for sample in samples)
        others["prior_variance"] = 0.0 if prior is None else prior.variance
        others["is_iid"] = all(sample.is_iid for sample in samples)
        return Embeddings(gram, plug_in, parts, freedom, (p, u, t), self.shared, self.kernel, **others)

    def bootstrap(
        self, target: EmbeddedSample, statistic: Statistic, replicates: int, rng: Generator, prior: Prior = None
    ) -> tuple[NDArray[np.float64], Floats]:
        """Compute Gram matrices of bootstrap samples, shape (replicates, 3, 3), without ⟨μ_T, μ_T⟩.

        Also returns the first-order change of an estimated source prior in each replicate.

        Observations are drawn as counts, so one pass over the kernel values serves every replicate. An observation in
        several samples is drawn once for all of them. Two draws of one observation are a pair that the unbiased
        statistic skips, as it skips the diagonal.
        """
        samples = (self.positive, self.unlabeled, target)
        counts = draw_counts(samples, self.observations, replicates, rng)
        own: dict[Block, SelfPairs] = {}
        if statistic == "unbiased":
            own = _by_block(self.source_self_pairs) | self._self_pairs(samples, _TARGET_BLOCKS)
        totals = [sum_over_rows(s.mass, c, lambda w: w) for s, c in zip(samples, counts, strict=True)]
        gram = np.full((replicates, 3, 3), np.nan)
        for (j, k), sums in self._bootstrap_products(samples, counts).items():
            mass, kept = samples[j].mass, totals[j] * totals[k]
            if (j, k) in own:  # the rows of an observation are drawn equally often
                sums -= sum_over_rows(mass * own[j, k].sums, counts[j], np.square)
                kept = kept - sum_over_rows(mass * own[j, k].mass, counts[j], np.square)
            with np.errstate(invalid="ignore", divide="ignore"):  # no row of a tiny sample drawn: NaN
                gram[:, j, k] = gram[:, k, j] = sums / np.where(kept > _ROUNDING, kept, 0.0)
        moved = np.zeros(replicates)
        if prior is not None:
            for q, drawn in ((prior.positive, counts[P]), (prior.unlabeled, counts[U])):
                moved += sum_over_rows(q, drawn, lambda w: w - 1.0)
        return gram, moved

    def _bootstrap_products(
        self, samples: Sequence[EmbeddedSample], counts: Sequence[NDArray[np.uint8]]
    ) -> dict[Block, Floats]:
        """Compute ⟨μ_j, μ_k⟩ of each replicate, from all pairs, not divided by what was drawn."""
        blocks = (*_SOURCE_BLOCKS, *_TARGET_BLOCKS)
        if isinstance(z := self.kernel, RandomFeatures):
            pairs = zip(samples, counts, strict=True)
            means = [bootstrap_means(z, s.rows, s.mass, c, self.feature_device) for s, c in pairs]
            return {(j, k): np.einsum("bd,bd->b", means[j], means[k]) for j, k in blocks}
        products = {}
        for j, k in blocks:
            X, Y = samples[j], samples[k]
            other = (None, None) if j == k else (Y.rows, counts[k])
            given, weights = (self.kernel, X.rows, counts[j], *other), (X.weights, Y.weights)
            if self.feature_device == "cpu":
                sums = weighted_kernel_sums(*given, weights=weights)
            else:
                sums = gpu_weighted_kernel_sums(*given, weights=weights, device=self.feature_device)
            products[j, k] = sums / (len(X) * len(Y))
        return products

    def _row_sums(self, samples: Sequence[EmbeddedSample], blocks: Sequence[Block]) -> dict[Block, Floats]:
        """Compute μ_k at the rows of sample j and μ_j at those of k, for some (j, k)."""
        sums = {}
        if not isinstance(self.kernel, RandomFeatures):
            for j, k in blocks:
                sums[j, k], sums[k, j] = self._pair_sums(samples[j], samples[k])
            return sums
        means = np.stack([*self.source_means, *self._feature_means(samples[T:])])
        both = {*blocks, *((k, j) for j, k in blocks)}
        for j, sample in enumerate(samples):
            others = sorted(k for i, k in both if i == j)
            values = feature_values(self.kernel, sample.rows, means[others], self.feature_device)
            sums.update({(j, k): values[:, column] for column, k in enumerate(others)})
        return sums

    def _feature_means(self, samples: Sequence[EmbeddedSample]) -> list[Floats]:
        """Compute mean embeddings as vectors of random features."""
        if not isinstance(z := self.kernel, RandomFeatures):
            return []
        return [feature_mean(z, sample.rows, sample.mass, self.feature_device) for sample in samples]

    def _pair_sums(self, X: EmbeddedSample, Y: EmbeddedSample) -> tuple[Floats, Floats]:
        """Compute μ_Y at the rows of X, and μ_X at the rows of Y, from all pairs."""
        other, weights, dtype = None if X is Y else Y.rows, (X.weights, Y.weights), np.dtype(self.precision)
        if callable(self.device):
            rows, columns = self.device(self.kernel, X.rows, other, dtype=dtype, weights=weights)
        elif self.device == "cpu":
            rows, columns = kernel_sums(self.kernel, X.rows, other, dtype=dtype, weights=weights)
        else:
            rows, columns = gpu_kernel_sums(self.kernel, X.rows, other, weights=weights, device=self.device)
        return rows / len(Y), columns / len(X)

    def _self_pairs(self, samples: Sequence[EmbeddedSample], blocks: Sequence[Block]) -> dict[Block, SelfPairs]:
        """Compute the sums over pairs of one observation, for those of the blocks that have such pairs."""
        own = {}
        for j, k in blocks:
            both = self_pairs(self.kernel, samples[j], samples[k], np.dtype(self.precision))
            if both is not None:
                own[j, k], own[k, j] = both
        return own


def _by_block(table: Sequence[Sequence[_Entry | None]]) -> dict[Block, _Entry]:
    """Return the entries of a table by row and column, without those that are None."""
    return {(j, k): entry for j, row in enumerate(table) for k, entry in enumerate(row) if entry is not None}


def _influence(
    samples: Sequence[EmbeddedSample], sums: Mapping[Block, Floats], kept: Mapping[Block, Floats], gram: Floats
) -> tuple[Floats, Floats, Floats]:
    """Compute the influence of each row of P, U and T on the inner products of its sample's mean with all means."""
    influence = []
    for j, sample in enumerate(samples):
        # a row that keeps no pair gets the mean's value, and so no influence
        means = [
            np.where(kept[j, k] > _ROUNDING, sums[j, k] / np.maximum(kept[j, k], _ROUNDING), gram[j, k])
            for k in range(3)
        ]
        values = np.stack(means, axis=1)
        influence.append(sample.mass[:, None] * sample.spread_correction * (values - sample.mass @ values))
    return influence[P], influence[U], influence[T]


def _covariance(influence: Sequence[Floats], samples: Sequence[EmbeddedSample]) -> tuple[Floats, Floats]:
    """Compute the covariance of the Gram matrix's entries from the influence of each row.

    Observations are independent, so the squares of their influences add up, each the sum over its rows; an observation
    in two samples has one influence on both, whence the cross terms.
    """
    each = [sample.sum_by_observation(v) for sample, v in zip(samples, influence, strict=True)]
    squares = [v.T @ v for _, v in each]
    products = {}
    for j, k in ((P, U), (P, T), (U, T)):
        (numbers, v), (others, w) = each[j], each[k]
        _, at, to = np.intersect1d(numbers, others, assume_unique=True, return_indices=True)
        if len(at):
            products[j, k] = v[at].T @ w[to]
    return gram_covariance(squares, products, [sample.size for sample in samples])


def gram_covariance(
    squares: Sequence[Floats], products: Mapping[Block, Floats], sizes: Sequence[float]
) -> tuple[Floats, Floats]:
    """Compute the covariance of the Gram matrix's entries, by parts, and the degrees of freedom of each.

    `squares` are sums of v vᵀ over the observations of each sample, v the influence of one on the inner products with
    the three means; `products` are those of two samples with observations in common; `sizes` are effective sizes.
    """
    parts = [np.einsum("qr,qab,rcd->abcd", square, _SYMMETRIC[k], _SYMMETRIC[k]) for k, square in enumerate(squares)]
    freedom = [max(size - 1, _ROUNDING) for size in sizes]
    for (j, k), product in products.items():
        cross = np.einsum("qr,qab,rcd->abcd", product, _SYMMETRIC[j], _SYMMETRIC[k])
        parts.append(cross + np.einsum("abcd->cdab", cross))
        freedom.append(freedom[j])
    return np.array(parts), np.array(freedom)
