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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from priorshift.arrays import Floats
from priorshift.embedding import P, T, U
from priorshift.embedding.gpu_sums import (
    Device,
    counts_to_gpu,
    gpu_kernel_sums,
    gpu_sum_over_rows,
    gpu_weighted_kernel_sums,
)
from priorshift.embedding.random_features import RandomFeatures, bootstrap_means, feature_mean, feature_values
from priorshift.embedding.samples import EmbeddedSample, SelfPairs, draw_counts, draw_pairs, self_pairs, sum_over_rows
from priorshift.embedding.tiles import kernel_sums, weighted_kernel_sums
from priorshift.errors import InputError
from priorshift.io.observations import PriorInfluence
from priorshift.kernels import Kernel
from priorshift.problem import Source, Target

Statistic = Literal["unbiased", "plug-in"]
Block = tuple[int, int]  # two of P, U and T
Influence = PriorInfluence | None  # of the rows on an estimate of the source prior; None where it is known
_Entry = TypeVar("_Entry")

_SOURCE_BLOCKS = ((P, P), (U, U), (P, U))
_TARGET_BLOCKS = ((P, T), (U, T))
_PAIRS_AT_A_TIME = 2**15  # whose kernel values are computed together
_ROUNDING = 1e-12  # share of a sample's mass that counts as zero
# _SYMMETRIC[k, q] is the symmetric matrix with ones at (k, q) and (q, k), and 2 at (k, k): the change of the
# Gram matrix when the mean of sample k moves along the mean of sample q.
_SYMMETRIC = np.einsum("kj,ql->kqjl", np.eye(3), np.eye(3)) + np.einsum("kl,qj->kqjl", np.eye(3), np.eye(3))


def numerator(gram: Floats) -> Floats:
    """Compute N = ⟨μ_U − μ_P, μ_T − μ_P⟩ of one Gram matrix ⟨μ_j, μ_k⟩ or a stack of them, shape (…, 3, 3)."""
    return np.asarray(gram[..., U, T] - gram[..., P, U] - gram[..., P, T] + gram[..., P, P])


def separation(gram: Floats) -> Floats:
    """Compute D = ‖μ_U − μ_P‖² of one Gram matrix ⟨μ_j, μ_k⟩ or a stack of them, shape (…, 3, 3)."""
    return np.asarray(gram[..., U, U] - 2 * gram[..., P, U] + gram[..., P, P])


def ratio(gram: Floats) -> float:
    """Compute R = ⟨a, b⟩/⟨a, a⟩ with a = μ_U − μ_P and b = μ_T − μ_P; NaN where a = 0. ⟨μ_T, μ_T⟩ is not needed."""
    N, D = float(numerator(gram)), float(separation(gram))
    return N / D if D else float("nan")


def target_prior(gram: Floats, source_prior: float, purity: float = 1.0) -> float:
    """Compute the target prior π̂′ = q − (q−π)R, not clipped, from the Gram matrix of the means (paper's Lemma 2).

    `purity` is q, the share of positives among the labelled rows, which is 1 in the paper.
    """
    return purity - (purity - source_prior) * ratio(gram)


def objective(gram: Floats, source_prior: float, gamma: ArrayLike, purity: float = 1.0) -> NDArray[np.float64]:
    """Compute the paper's objective L(γ) = ‖Δ − γa‖² with Δ = qμ_U − πμ_P − (q−π)μ_T (its equation 3, where q = 1).

    `gram` must hold ⟨μ_T, μ_T⟩. With unbiased entries L estimates a squared distance without bias, and can be negative.
    """
    # coefficients of μ_P, μ_U and μ_T in Δ − γa, shape (3, number of γ)
    delta = np.array([-source_prior, purity, -(purity - source_prior)])
    weights = delta[:, None] - np.outer([-1.0, 1.0, 0.0], np.ravel(gamma))
    return np.einsum("jg,jk,kg->g", weights, gram, weights).reshape(np.shape(gamma))


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
        """Compute the influence of each row of P, U and T on Σ A_jk ⟨μ_j, μ_k⟩, for a symmetric 3 × 3 `A`."""
        if self.influence is None:
            raise ValueError("only embeddings of all rows know the influence of single rows.")
        # a row of sample k moves μ_k, which is in row k and in column k of the Gram matrix
        return [2 * influence @ A[k] for k, influence in enumerate(self.influence)]

    def variance(self, A: Floats) -> tuple[float, float]:
        """Compute the variance of Σ A_jk ⟨μ_j, μ_k⟩ for a symmetric `A`, and its Satterthwaite degrees of freedom."""
        if A[T, T] != 0 and np.isnan(self.gram[T, T]):
            raise ValueError("the norm of the target's mean was not computed; embed with target_norm=True.")
        part_variances = np.einsum("jk,pjklm,lm->p", A, self.parts, A)
        total = max(float(part_variances.sum()), 0.0)
        if not (0 < total < np.inf):  # zero, infinite or NaN
            return total, np.inf
        return total, 1 / float(((part_variances / total) ** 2 / self.freedom).sum())


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
        """Build the embedding of a source's samples P and U; kernel sums are computed when they are first used.

        `precision` is the type of the kernel values, `device` where they are computed.
        """
        P_rows, U_rows = source.positive, source.population  # numbers of the rows in the source
        positive = EmbeddedSample(replace(source.rows, index=P_rows), source.P.mass, source.observation[P_rows])
        population = EmbeddedSample(replace(source.rows, index=U_rows), source.U.mass, source.observation[U_rows])
        observations = int(source.observation.max()) + 1
        return cls(kernel, positive, population, len(source.shared), observations, precision, device)

    @property
    def feature_device(self) -> str:
        """Device of random features and bootstrap sums: a `device` that is a function only computes `kernel_sums`."""
        return self.device if isinstance(self.device, str) else "cpu"

    def sample(self, target: Target) -> EmbeddedSample:
        """Return the target's rows as a sample, with one numbering of observations for source and target.

        Groups that are also in the source keep the source's numbers, and other observations get numbers above those.
        `target.source_observation` is the number in the source of each row's group, −1 where the source lacks it.
        """
        # number in the source of each observation of the target: the largest over its rows
        source_number = np.full(int(target.observation.max()) + 1, -1)
        np.maximum.at(source_number, target.observation, target.source_observation)
        number = np.where(source_number < 0, self.observations + np.arange(len(source_number)), source_number)
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
        if not isinstance(self.kernel, RandomFeatures):
            return []
        samples = (self.positive, self.unlabeled)
        return [feature_mean(self.kernel, sample.rows, sample.mass, self.feature_device) for sample in samples]

    @cached_property
    def source_self_pairs(self) -> list[list[SelfPairs | None]]:
        """The part of `source_sums[j][k]` from self-pairs, that is from the rows of sample k of the same observation.

        None where the two samples have no observation in common.
        """
        own_pairs = self._self_pairs((self.positive, self.unlabeled), _SOURCE_BLOCKS)
        return [[own_pairs.get((j, k)) for k in (P, U)] for j in (P, U)]

    def embed(
        self,
        target: EmbeddedSample,
        statistic: Statistic = "unbiased",
        *,
        target_norm: bool = False,
        prior: Influence = None,
    ) -> Embeddings:
        """Compute the Gram matrix of the means of P, U and T and its covariance, from all pairs or random features.

        The "unbiased" statistic leaves out self-pairs, the pairs of two rows of one observation; "plug-in" does not.
        ⟨μ_T, μ_T⟩ is only computed with `target_norm`. `prior` is the influence of the rows on an estimate of the
        source prior, for its covariance with the matrix; None where the prior is not estimated.
        """
        samples = (self.positive, self.unlabeled, target)
        blocks = (*_TARGET_BLOCKS, (T, T)) if target_norm else _TARGET_BLOCKS
        # sums[j, k] is μ_k at each row of sample j, and pair_mass[j, k] the mass of the pairs in it
        sums = {(T, T): np.zeros(len(target))} | _by_block(self.source_sums) | self._row_sums(samples, blocks)
        pair_mass = {(j, k): np.ones(len(samples[j])) for j, k in sums}
        plug_in = np.array([[samples[j].mass @ sums[j, k] for k in range(3)] for j in range(3)])
        gram = plug_in.copy()
        if statistic == "unbiased":
            for (j, k), own in (_by_block(self.source_self_pairs) | self._self_pairs(samples, blocks)).items():
                if isinstance(self.kernel, RandomFeatures) and samples[j].is_ungrouped and samples[k].is_ungrouped:
                    own = own.averaged(samples[j].mass)  # as in sketches, which have no rows
                sums[j, k] = sums[j, k] - own.sums
                pair_mass[j, k] -= own.mass
            for j, k in sums:
                gram[j, k] = (samples[j].mass @ sums[j, k]) / (samples[j].mass @ pair_mass[j, k])
        if not target_norm:
            plug_in[T, T] = gram[T, T] = np.nan
        influence = _influence(samples, sums, pair_mass, gram)
        parts, freedom = _covariance(influence, samples)
        mean_covariance = np.zeros((3, 3))  # of the prior with the inner products of mean j (row) and mean k (column)
        if prior is not None:
            prior_influence = prior.of_observations(max(int(s.observation.max()) for s in samples) + 1)
            rows = zip(samples, influence, strict=True)
            mean_covariance = np.stack([prior_influence[s.observation] @ values for s, values in rows])
        return Embeddings(
            gram, plug_in, parts, freedom, (len(self.positive), len(self.unlabeled), len(target)), self.shared,
            self.kernel, prior_covariance=np.einsum("kq,kqab->ab", mean_covariance, _SYMMETRIC),
            prior_variance=0.0 if prior is None else prior.variance,
            influence=influence, is_iid=all(sample.is_iid for sample in samples),
        )  # fmt: skip

    def embed_pairs(
        self, target: EmbeddedSample, pairs: int, rng: Generator, *, target_norm: bool = False, prior: Influence = None
    ) -> Embeddings:
        """Compute the Gram matrix of the means of P, U and T and its covariance from `pairs` random pairs per entry.

        This is an incomplete U-statistic (Schrab et al. 2022); no pair is of two rows of one observation. The
        covariance is that of the complete statistic plus that of drawing the pairs: with z the centred contribution of
        a pair, it is Σ (sum of z over the pairs of an observation)² − Σ z², the variance estimator for dyadic data (two
        pairs are dependent when they share an observation). A pair drawn twice counts as two, which errs on the safe
        side.
        """
        samples = (self.positive, self.unlabeled, target)
        blocks = (*_SOURCE_BLOCKS, *_TARGET_BLOCKS, (T, T))
        block_of = np.array([[0, 2, 3], [2, 1, 4], [3, 4, 5]])  # number of the block at each entry of the matrix
        gram = np.full((3, 3), np.nan)
        # sums of z over the pairs of every observation, and of z² over all pairs, in each block
        by_observation = np.zeros((max(int(s.observation.max()) for s in samples) + 1, len(blocks)))
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
                by_observation[:, number] += np.bincount(observation, z, len(by_observation))
        covariance = by_observation.T @ by_observation - np.diag(squares)
        parts = covariance[block_of[:, :, None, None], block_of][None]  # one part, from blocks to entries
        freedom = np.array([max(min(s.size for s in samples) - 1, _ROUNDING)])
        with_prior = np.zeros(len(blocks))  # covariance of each block with the estimate of the prior
        if prior is not None:
            with_prior = prior.of_observations(len(by_observation)) @ by_observation
        plug_in = np.full((3, 3), np.nan)  # a plug-in statistic has no incomplete form
        return Embeddings(
            gram, plug_in, parts, freedom, (len(self.positive), len(self.unlabeled), len(target)), self.shared,
            self.kernel, prior_covariance=with_prior[block_of],
            prior_variance=0.0 if prior is None else prior.variance, is_iid=all(sample.is_iid for sample in samples),
        )  # fmt: skip

    def bootstrap(
        self, target: EmbeddedSample, statistic: Statistic, replicates: int, rng: Generator, prior: Influence = None
    ) -> tuple[NDArray[np.float64], Floats]:
        """Compute Gram matrices of bootstrap samples, shape (replicates, 3, 3), with NaN for ⟨μ_T, μ_T⟩.

        Also returns the first-order change of an estimated source prior in each replicate, from its influence `prior`;
        zero where that is None.

        Observations are drawn as counts, so one pass over the kernel values serves every replicate. An observation in
        several samples is drawn once for all of them. Two draws of one observation are a self-pair, which the unbiased
        statistic omits.
        """
        samples = (self.positive, self.unlabeled, target)
        counts: list[Any] = list(draw_counts(samples, self.observations, replicates, rng))
        sum_up: Callable[..., Floats] = sum_over_rows
        if self.feature_device != "cpu" and not isinstance(self.kernel, RandomFeatures):
            counts, sum_up = [counts_to_gpu(c, self.feature_device) for c in counts], gpu_sum_over_rows
        own_pairs: dict[Block, SelfPairs] = {}
        if statistic == "unbiased":
            own_pairs = _by_block(self.source_self_pairs) | self._self_pairs(samples, _TARGET_BLOCKS)
        # Σ count·mass over the rows of each sample, for each replicate
        totals = [sum_up(s.mass, c) for s, c in zip(samples, counts, strict=True)]
        gram = np.full((replicates, 3, 3), np.nan)
        for (j, k), sums in self._bootstrap_products(samples, counts).items():
            mass, pair_mass = samples[j].mass, totals[j] * totals[k]
            if (j, k) in own_pairs:  # count², since the rows of an observation are drawn equally often
                own = own_pairs[j, k]
                sums -= sum_up(mass * own.sums, counts[j], power=2)
                pair_mass = pair_mass - sum_up(mass * own.mass, counts[j], power=2)
            with np.errstate(invalid="ignore", divide="ignore"):  # no row of a tiny sample drawn: NaN
                gram[:, j, k] = gram[:, k, j] = sums / np.where(pair_mass > _ROUNDING, pair_mass, 0.0)
        prior_change = np.zeros(replicates)
        if prior is not None:
            for influence, drawn in ((prior.positive, counts[P]), (prior.unlabeled, counts[U])):
                prior_change += sum_up(influence, drawn) - influence.sum()
        return gram, prior_change

    def _bootstrap_products(self, samples: Sequence[EmbeddedSample], counts: Sequence[Any]) -> dict[Block, Floats]:
        """Compute Σ mass·count·mass·count·k(x, y) over all pairs of rows, for each block (j, k) and each replicate.

        `counts` are how often each row of P, U and T was drawn, each of shape (rows, replicates).
        """
        blocks = (*_SOURCE_BLOCKS, *_TARGET_BLOCKS)
        if isinstance(self.kernel, RandomFeatures):
            means = [
                bootstrap_means(self.kernel, s.rows, s.mass, c, self.feature_device)
                for s, c in zip(samples, counts, strict=True)
            ]
            return {(j, k): np.einsum("bd,bd->b", means[j], means[k]) for j, k in blocks}
        products = {}
        for j, k in blocks:
            X, Y = samples[j], samples[k]
            Y_rows, Y_counts = (None, None) if j == k else (Y.rows, counts[k])  # None for the same as X
            arguments, weights = (self.kernel, X.rows, counts[j], Y_rows, Y_counts), (X.weights, Y.weights)
            if self.feature_device == "cpu":
                sums = weighted_kernel_sums(*arguments, weights=weights)
            else:
                sums = gpu_weighted_kernel_sums(*arguments, weights=weights, device=self.feature_device)
            products[j, k] = sums / (len(X) * len(Y))  # weights are masses times the number of rows
        return products

    def _row_sums(self, samples: Sequence[EmbeddedSample], blocks: Sequence[Block]) -> dict[Block, Floats]:
        """Compute μ_k(x) = Σ mass·k(x, y) over the rows y of sample k, at each row x of sample j, as entry (j, k).

        Each of `blocks` gives the entries (j, k) and (k, j). `samples` are P, U and, where a block has it, T.
        """
        sums = {}
        if isinstance(self.kernel, RandomFeatures):
            targets = samples[T:]
            target_means = [feature_mean(self.kernel, t.rows, t.mass, self.feature_device) for t in targets]
            means = np.stack([*self.source_means, *target_means])
            both_orders = {*blocks, *((k, j) for j, k in blocks)}
            for j, sample in enumerate(samples):
                others = sorted(k for i, k in both_orders if i == j)
                values = feature_values(self.kernel, sample.rows, means[others], self.feature_device)
                sums.update({(j, k): values[:, column] for column, k in enumerate(others)})
            return sums
        dtype = np.dtype(self.precision)
        for j, k in blocks:
            X, Y = samples[j], samples[k]
            Y_rows, weights = None if X is Y else Y.rows, (X.weights, Y.weights)
            if callable(self.device):
                rows, columns = self.device(self.kernel, X.rows, Y_rows, dtype=dtype, weights=weights)
            elif self.device == "cpu":
                rows, columns = kernel_sums(self.kernel, X.rows, Y_rows, dtype=dtype, weights=weights)
            else:
                rows, columns = gpu_kernel_sums(self.kernel, X.rows, Y_rows, weights=weights, device=self.device)
            sums[j, k], sums[k, j] = rows / len(Y), columns / len(X)  # weights are masses times the number of rows
        return sums

    def _self_pairs(self, samples: Sequence[EmbeddedSample], blocks: Sequence[Block]) -> dict[Block, SelfPairs]:
        """Compute the sums over self-pairs, the pairs of two rows of one observation, for each block (j, k) and (k, j).

        Blocks of two samples without a common observation are left out.
        """
        own_pairs = {}
        for j, k in blocks:
            at_both = self_pairs(self.kernel, samples[j], samples[k], np.dtype(self.precision))
            if at_both is not None:
                own_pairs[j, k], own_pairs[k, j] = at_both
        return own_pairs


def _by_block(table: Sequence[Sequence[_Entry | None]]) -> dict[Block, _Entry]:
    """Return the entries of a nested list by their place (row, column), without those that are None."""
    return {(j, k): entry for j, row in enumerate(table) for k, entry in enumerate(row) if entry is not None}


def _influence(
    samples: Sequence[EmbeddedSample], sums: Mapping[Block, Floats], pair_mass: Mapping[Block, Floats], gram: Floats
) -> tuple[Floats, Floats, Floats]:
    """Compute the influence of each row of P, U and T on the inner products of its sample's mean with all means.

    `sums[j, k]` are kernel sums at the rows of sample j over those of sample k, `pair_mass[j, k]` the mass of the pairs
    in them. With f_k(x) = sums/pair_mass, the influence of a row x of sample j on ⟨μ_j, μ_k⟩ is mass·(f_k(x) − mean of
    f_k), times √(n/(n−1)). Returns arrays of shape (rows, 3).
    """
    influence = []
    for j, sample in enumerate(samples):
        # a row without pairs gets the mean's value, and so no influence
        means = [
            np.where(pair_mass[j, k] > _ROUNDING, sums[j, k] / np.maximum(pair_mass[j, k], _ROUNDING), gram[j, k])
            for k in range(3)
        ]
        values = np.stack(means, axis=1)
        influence.append(sample.mass[:, None] * sample.spread_correction * (values - sample.mass @ values))
    return influence[P], influence[U], influence[T]


def _covariance(influence: Sequence[Floats], samples: Sequence[EmbeddedSample]) -> tuple[Floats, Floats]:
    """Compute the covariance of the Gram matrix's entries, by parts, and degrees of freedom, from rows' influences.

    The influence of an observation is the sum over its rows. Observations are independent, so the squares of their
    influences add up; an observation in two samples moves both means, which gives the cross terms. `influence` of each
    sample's rows on the inner products of its mean with the three means has shape (rows, 3).
    """
    # numbers of the observations of each sample, and their influence, shape (observations, 3)
    summed = [sample.sum_by_observation(v) for sample, v in zip(samples, influence, strict=True)]
    squares = [v.T @ v for _, v in summed]
    products = {}
    for j, k in ((P, U), (P, T), (U, T)):
        (j_numbers, v), (k_numbers, w) = summed[j], summed[k]
        _, at_j, at_k = np.intersect1d(j_numbers, k_numbers, assume_unique=True, return_indices=True)
        if len(at_j):
            products[j, k] = v[at_j].T @ w[at_k]
    return gram_covariance(squares, products, [sample.size for sample in samples])


def gram_covariance(
    squares: Sequence[Floats], products: Mapping[Block, Floats], sizes: Sequence[float]
) -> tuple[Floats, Floats]:
    """Compute the covariance of the Gram matrix's entries, by parts, and the degrees of freedom of each part.

    `squares` are sums of v vᵀ over the observations of each sample, where v is an observation's influence on the inner
    products of its sample's mean with the three means; `products` are the sums of v wᵀ over the observations that two
    samples have in common; `sizes` are effective sample sizes. Parts have the shape (3, 3, 3, 3) each.
    """
    # _SYMMETRIC[k, q] is the change of the Gram matrix when ⟨μ_k, μ_q⟩ changes by the movement of μ_k
    parts = [np.einsum("qr,qab,rcd->abcd", square, _SYMMETRIC[k], _SYMMETRIC[k]) for k, square in enumerate(squares)]
    freedom = [max(size - 1, _ROUNDING) for size in sizes]
    for (j, k), product in products.items():
        cross = np.einsum("qr,qab,rcd->abcd", product, _SYMMETRIC[j], _SYMMETRIC[k])
        parts.append(cross + np.einsum("abcd->cdab", cross))
        freedom.append(freedom[j])
    return np.array(parts), np.array(freedom)
