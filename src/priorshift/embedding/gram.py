"""TCPU's whole mathematics: a function of the 3 × 3 Gram matrix of the means of P, U and T.

With a = μ_U − μ_P and b = μ_T − μ_P, label shift says b = Ra with R = (1−π′)/(1−π).

Mean embeddings of three samples: their 3 × 3 Gram matrix and how well it is known.

The samples are P (labelled positives), U (the source population) and T (the target), in this order
everywhere. Estimators, intervals and tests see an :class:`Embeddings` and never learn whether exact tiles,
random features or a random sample of pairs made it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from priorshift.arrays import Floats
from priorshift.embedding.cuda import Device, gpu_kernel_sums, gpu_weighted_kernel_sums
from priorshift.embedding.random_features import RandomFeatures, feature_mean, feature_values, replicated_means
from priorshift.embedding.samples import EmbeddedSample, OwnPairs, draw_counts, over_rows, own_pairs
from priorshift.embedding.tiles import kernel_sums, weighted_kernel_sums
from priorshift.errors import InputError
from priorshift.io.observations import PriorInfluence
from priorshift.kernels import Kernel
from priorshift.problem import Source, Target


def numerator(gram: Floats) -> Floats:
    """N = ⟨μ_U − μ_P, μ_T − μ_P⟩ of one Gram matrix or a stack of them."""
    return np.asarray(gram[..., U, T] - gram[..., P, U] - gram[..., P, T] + gram[..., P, P])


def separation(gram: Floats) -> Floats:
    """D = ‖μ_U − μ_P‖² of one Gram matrix or a stack of them."""
    return np.asarray(gram[..., U, U] - 2 * gram[..., P, U] + gram[..., P, P])


def ratio(gram: Floats) -> float:
    """R = ⟨a, b⟩/⟨a, a⟩, the projection of b on a; NaN where a vanishes. ⟨μ_T, μ_T⟩ is not needed."""
    N, D = float(numerator(gram)), float(separation(gram))
    return N / D if D else float("nan")


def target_prior(gram: Floats, source_prior: float) -> float:
    """π̂′ = 1 − (1−π)R, not clipped (the paper's Lemma 2).

    Examples
    --------
    Along a line with the positives at 1 and the negatives at 0, a population's mean is its prior.

    >>> import numpy as np
    >>> from priorshift.embedding.gram import target_prior
    >>> means = np.array([1.0, 0.2, 0.5])  # P, U with π = 0.2, T with π′ = 0.5
    >>> round(target_prior(np.outer(means, means), source_prior=0.2), 12)
    0.5
    """
    return 1 - (1 - source_prior) * ratio(gram)


def objective(gram: Floats, source_prior: float, gamma: ArrayLike) -> NDArray[np.float64]:
    """The paper's objective L(γ) = ‖Δ − γa‖² with Δ = μ_U − πμ_P − (1−π)μ_T (its equation 3).

    `gram` must hold ⟨μ_T, μ_T⟩. With unbiased entries L estimates a squared distance without bias and can
    fall below zero.
    """
    w = np.array([-source_prior, 1.0, -(1 - source_prior)])[:, None] - np.outer([-1.0, 1.0, 0.0], np.ravel(gamma))
    return np.einsum("jg,jk,kg->g", w, gram, w).reshape(np.shape(gamma))


P, U, T = 0, 1, 2
Statistic = Literal["unbiased", "plug-in"]

_NOTHING = 1e-12  # of a sample's mass: what rounding leaves of none
# _SYMMETRIC[k, q] is the symmetric matrix with ones at (k, q) and (q, k), and 2 at (k, k): the change of the
# Gram matrix when the mean of sample k moves along the mean of sample q.
_SYMMETRIC = np.einsum("kj,ql->kqjl", np.eye(3), np.eye(3)) + np.einsum("kl,qj->kqjl", np.eye(3), np.eye(3))


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Gram matrix of the means of P, U and T, and the covariance of its entries.

    Attributes
    ----------
    gram : ndarray of shape (3, 3)
        ⟨μ_j, μ_k⟩ by the statistic asked for. ⟨μ_T, μ_T⟩ is NaN unless it was asked for.
    plug_in : ndarray of shape (3, 3)
        The same with every pair kept; the finite-sample bounds hold for it.
    parts : ndarray of shape (parts, 3, 3, 3, 3)
        Covariance of the entries of `gram`, as a sum of independent parts.
    freedom : ndarray of shape (parts,)
        Degrees of freedom of each part's estimate.
    sizes : tuple of three int
        Rows in P, U and T.
    shared : int
        Pairs of a row of P and a row of U that are the same observation.
    kernel : Kernel
        The kernel that made them.
    prior_covariance, prior_variance : ndarray of shape (3, 3), float
        Covariance of the entries of `gram` with an estimate of the source prior from the same rows, and that
        estimate's variance; zero where the prior is known.
    influence : tuple of three ndarray of shape (rows, 3), or None
        How much each row of P, U and T moves the inner product of its sample's mean with each mean, scaled so that
        squares add up to variances; None of sampled pairs.
    is_even : bool
        Whether in each sample every row counts the same and is its own observation.
    """

    gram: Floats
    plug_in: Floats
    parts: Floats
    freedom: Floats
    sizes: tuple[int, int, int]
    shared: int
    kernel: Kernel
    prior_covariance: Floats = field(default_factory=lambda: np.zeros((3, 3)))
    prior_variance: float = 0.0
    influence: tuple[Floats, Floats, Floats] | None = None
    is_even: bool = True

    def moves(self, A: Floats) -> list[Floats]:
        """How much each row of P, U and T moves Σ A_jk ⟨μ_j, μ_k⟩, for a symmetric `A`."""
        if self.influence is None:
            raise ValueError("the influence of single rows is known of exact embeddings alone.")
        return [2 * v @ A[k] for k, v in enumerate(self.influence)]

    def variance(self, A: Floats) -> tuple[float, float]:
        """Variance of Σ A_jk ⟨μ_j, μ_k⟩ for a symmetric `A`, and its Satterthwaite degrees of freedom."""
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
    shared: int  # pairs of a row of P and a row of U
    observations: int  # numbers below this are those of the source
    precision: str
    device: Device = "cpu"

    @classmethod
    def from_source(
        cls, source: Source, kernel: Kernel, precision: str = "float64", device: Device = "cpu"
    ) -> SourceEmbedding:
        """P and U of a source, seen through the kernel; tiles are of the type `precision`, on a `device`."""
        positive, population = (
            EmbeddedSample(replace(source.rows, index=rows), mass, source.observation[rows])
            for rows, mass in ((source.positive, source.positive_mass), (source.population, source.population_mass))
        )
        observations = int(source.observation.max()) + 1
        return cls(kernel, positive, population, len(source.shared), observations, precision, device)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.precision)

    def sample(self, target: Target) -> EmbeddedSample:
        """The target, whose observations are those of the source where a group stands in both."""
        of_source = np.full(int(target.observation.max()) + 1, -1)
        np.maximum.at(of_source, target.observation, target.of_source)
        number = np.where(of_source < 0, self.observations + np.arange(len(of_source)), of_source)
        made = EmbeddedSample(target.rows, target.mass, number[target.observation])
        if len(made.numbers) < 2:
            raise InputError(
                f"the {len(made)} rows of {target.table.name} are of one group of the source, but at least 2 are "
                "needed to tell signal from noise; add rows, or check the groups."
            )
        return made

    @cached_property
    def source_sums(self) -> list[list[Floats]]:
        """Σ mass·k(x, y) over the rows y of sample k at each row x of sample j, P or U; lists are stored plainly."""
        found = self._sums((self.positive, self.unlabeled), ((P, P), (U, U), (P, U)))
        return [[found[j, k] for k in (P, U)] for j in (P, U)]

    @cached_property
    def source_means(self) -> list[Floats]:
        """μ_P and μ_U by random features."""
        return [self._mean(sample) for sample in (self.positive, self.unlabeled)]

    @cached_property
    def own(self) -> list[list[OwnPairs | None]]:
        """own[j][k]: what of `source_sums` is of the row's own observation; None where samples have none in common."""
        found = self._own((self.positive, self.unlabeled), ((P, P), (U, U), (P, U)))
        return [[found.get((j, k)) for k in (P, U)] for j in (P, U)]

    def embed(
        self,
        target: EmbeddedSample,
        statistic: Statistic = "unbiased",
        *,
        target_norm: bool = False,
        prior: PriorInfluence | None = None,
    ) -> Embeddings:
        """Embeddings from every pair of rows; ⟨μ_T, μ_T⟩ only with `target_norm`.

        `prior` says how the rows move an estimate of the source prior, where it is one.
        """
        samples = (self.positive, self.unlabeled, target)
        sums = {(j, k): self.source_sums[j][k] for j in (P, U) for k in (P, U)}
        sums[T, T] = np.zeros(len(target))
        sums |= self._sums(samples, ((P, T), (U, T), (T, T)) if target_norm else ((P, T), (U, T)))
        plug_in = np.array([[samples[j].mass @ sums[j, k] for k in range(3)] for j in range(3)])
        gram = plug_in
        kept = {(j, k): np.ones(len(samples[j])) for j, k in sums}
        if statistic == "unbiased":
            for (j, k), own in self._own_with(target, target_norm).items():
                if self.features is not None and samples[j].is_separable and samples[k].is_separable:
                    own = own.averaged(samples[j].mass)  # so that sketches, which know no rows, say the same
                sums[j, k] = sums[j, k] - own.sums
                kept[j, k] -= own.mass
            gram = np.array(
                [[(samples[j].mass @ sums[j, k]) / (samples[j].mass @ kept[j, k]) for k in range(3)] for j in range(3)]
            )
        if not target_norm:
            plug_in[T, T] = gram[T, T] = np.nan
        # a row all of whose pairs are skipped says nothing: it has the mean's value, and no influence
        values = [
            np.stack(
                [
                    np.where(kept[j, k] > _NOTHING, sums[j, k] / np.maximum(kept[j, k], _NOTHING), gram[j, k])
                    for k in range(3)
                ],
                axis=1,
            )
            for j in range(3)
        ]
        influence = [s.mass[:, None] * s.unbiased * (v - s.mass @ v) for s, v in zip(samples, values, strict=True)]
        parts, freedom = _covariance(influence, samples)
        sizes = len(samples[P]), len(samples[U]), len(samples[T])
        even = all(s.is_even for s in samples)
        made = Embeddings(
            gram, plug_in, parts, freedom, sizes, self.shared, self.kernel,
            influence=(influence[P], influence[U], influence[T]), is_even=even,
        )  # fmt: skip
        if prior is None:
            return made
        of_observation = prior.of_observations(max(int(s.observation.max()) for s in samples) + 1)
        moves = [of_observation[s.observation] @ v for s, v in zip(samples, influence, strict=True)]
        covariance = np.einsum("kq,kqab->ab", np.stack(moves), _SYMMETRIC)
        return replace(made, prior_covariance=covariance, prior_variance=prior.variance)

    def bootstrap(
        self,
        target: EmbeddedSample,
        statistic: Statistic,
        replicates: int,
        rng: np.random.Generator,
        prior: PriorInfluence | None = None,
    ) -> tuple[NDArray[np.float64], Floats]:
        """Gram matrices of `replicates` bootstrap samples, shape (replicates, 3, 3); ⟨μ_T, μ_T⟩ is NaN.

        Beside them, how far each replicate moves an estimated source prior, to first order.

        Observations are drawn as counts, so one pass over the kernel values serves every replicate. One that stands in
        several samples is drawn once for all of them. Two draws of one observation are a pair that the unbiased
        statistic skips, as it skips the diagonal.
        """
        samples = (self.positive, self.unlabeled, target)
        counts = draw_counts(samples, self.observations, replicates, rng)
        own = self._own_with(target, target_norm=False) if statistic == "unbiased" else {}
        totals = [over_rows(s.mass, c, lambda w: w) for s, c in zip(samples, counts, strict=True)]
        gram = np.full((replicates, 3, 3), np.nan)
        replicated = self._replicated(samples, counts)
        for j, k in ((P, P), (U, U), (P, U), (P, T), (U, T)):
            sums, mass = replicated(j, k), samples[j].mass
            kept = totals[j] * totals[k]
            if (j, k) in own:  # the rows of an observation are drawn equally often
                sums -= over_rows(mass * own[j, k].sums, counts[j], np.square)
                kept = kept - over_rows(mass * own[j, k].mass, counts[j], np.square)
            with np.errstate(invalid="ignore", divide="ignore"):  # no row of a tiny sample drawn: NaN
                gram[:, j, k] = gram[:, k, j] = sums / np.where(kept > _NOTHING, kept, 0.0)
        moved = np.zeros(replicates)
        if prior is not None:
            for q, drawn in ((prior.positive, counts[P]), (prior.unlabeled, counts[U])):
                moved += over_rows(q, drawn, lambda w: w - 1.0)
        return gram, moved

    @property
    def features(self) -> RandomFeatures | None:
        return self.kernel if isinstance(self.kernel, RandomFeatures) else None

    def _replicated(
        self, samples: Sequence[EmbeddedSample], counts: Sequence[NDArray[np.uint8]]
    ) -> Callable[[int, int], Floats]:
        """⟨μ_j, μ_k⟩ of each replicate, with every pair kept and not divided by what was drawn."""
        if self.features is not None:
            z = self.features
            means = [replicated_means(z, s.rows, s.mass, c, self._device) for s, c in zip(samples, counts, strict=True)]
            return lambda j, k: np.einsum("bd,bd->b", means[j], means[k])

        def by_pairs(j: int, k: int) -> Floats:
            X, Y = samples[j], samples[k]
            other = (None, None) if j == k else (Y.rows, counts[k])
            given, weights = (self.kernel, X.rows, counts[j], *other), (X.weights, Y.weights)
            if self.device == "cpu" or not isinstance(self.device, str):
                return weighted_kernel_sums(*given, weights=weights) / (len(X) * len(Y))
            return gpu_weighted_kernel_sums(*given, weights=weights, device=self.device) / (len(X) * len(Y))

        return by_pairs

    def _sums(
        self, samples: Sequence[EmbeddedSample], blocks: Sequence[tuple[int, int]]
    ) -> dict[tuple[int, int], Floats]:
        """μ_k at the rows of sample j and μ_j at those of k, for some (j, k)."""
        if self.features is None:
            found = {}
            for j, k in blocks:
                found[j, k], found[k, j] = self._pair_sums(samples[j], samples[k])
            return found
        means = np.stack([*self.source_means, *(self._mean(sample) for sample in samples[T:])])
        both = {*blocks, *((k, j) for j, k in blocks)}
        found = {}
        for j, sample in enumerate(samples):
            of = sorted(k for i, k in both if i == j)
            values = feature_values(self.features, sample.rows, means[of], self._device)
            found.update({(j, k): values[:, at] for at, k in enumerate(of)})
        return found

    @property
    def _device(self) -> str:
        """Where features are computed: whoever computes sums over pairs elsewhere knows nothing of them."""
        return self.device if isinstance(self.device, str) else "cpu"

    def _mean(self, sample: EmbeddedSample) -> Floats:
        if self.features is None:
            raise ValueError("a mean embedding is a vector with random features alone.")
        return feature_mean(self.features, sample.rows, sample.mass, self._device)

    def _pair_sums(self, X: EmbeddedSample, Y: EmbeddedSample) -> tuple[Floats, Floats]:
        """μ_Y at the rows of X, and μ_X at the rows of Y."""
        other, weights = None if X is Y else Y.rows, (X.weights, Y.weights)
        if callable(self.device):
            rows, columns = self.device(self.kernel, X.rows, other, dtype=self.dtype, weights=weights)
        elif self.device == "cpu":
            rows, columns = kernel_sums(self.kernel, X.rows, other, dtype=self.dtype, weights=weights)
        else:
            rows, columns = gpu_kernel_sums(self.kernel, X.rows, other, weights=weights, device=self.device)
        return rows / len(Y), columns / len(X)

    def _own_with(self, target: EmbeddedSample, target_norm: bool) -> dict[tuple[int, int], OwnPairs]:
        blocks = ((P, T), (U, T), (T, T)) if target_norm else ((P, T), (U, T))
        of_source = {(j, k): own for j, row in enumerate(self.own) for k, own in enumerate(row) if own is not None}
        return of_source | self._own((self.positive, self.unlabeled, target), blocks)

    def _own(
        self, samples: Sequence[EmbeddedSample], blocks: Sequence[tuple[int, int]]
    ) -> dict[tuple[int, int], OwnPairs]:
        own = {}
        for j, k in blocks:
            both = own_pairs(self.kernel, samples[j], samples[k], self.dtype)
            if both is not None:
                own[j, k], own[k, j] = both
        return own


def _covariance(influence: Sequence[Floats], samples: Sequence[EmbeddedSample]) -> tuple[Floats, Floats]:
    """Covariance of the Gram matrix's entries from the influence of each row.

    A row x of sample k moves ⟨μ_k, μ_q⟩ by `influence` mass·(μ_q(x) − mean). Observations are independent, so the
    squares of their influences add up, each the sum over its rows; one in two samples has one influence, whence the
    cross terms.
    """
    each = [sample.together(v) for sample, v in zip(samples, influence, strict=True)]
    squares = [v.T @ v for _, v in each]
    products = {}
    for j, k in ((P, U), (P, T), (U, T)):
        (numbers, v), (others, w) = each[j], each[k]
        _, at, to = np.intersect1d(numbers, others, assume_unique=True, return_indices=True)
        if len(at):
            products[j, k] = v[at].T @ w[to]
    return gram_covariance(squares, products, [sample.size for sample in samples])


def gram_covariance(
    squares: Sequence[Floats], products: Mapping[tuple[int, int], Floats], sizes: Sequence[float]
) -> tuple[Floats, Floats]:
    """Covariance of the Gram matrix's entries, by parts, and the degrees of freedom of each.

    `squares` are sums over observations of v vᵀ, with v what each moves the inner products of its sample's mean with
    the three means by; `products` are those of two samples that have observations in common, and `sizes` what the
    samples are worth.
    """
    parts = [np.einsum("qr,qab,rcd->abcd", of, _SYMMETRIC[k], _SYMMETRIC[k]) for k, of in enumerate(squares)]
    freedom = [max(size - 1, _NOTHING) for size in sizes]
    for (j, k), of in products.items():
        cross = np.einsum("qr,qab,rcd->abcd", of, _SYMMETRIC[j], _SYMMETRIC[k])
        parts.append(cross + np.einsum("abcd->cdab", cross))
        freedom.append(freedom[j])
    return np.array(parts), np.array(freedom)
