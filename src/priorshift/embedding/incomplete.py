"""Incomplete U-statistics: the Gram matrix of the three means from a random sample of pairs.

The paper suggests it for large data (its discussion, after Schrab et al. 2022). Each of the five blocks of
the kernel matrix that the estimate needs is averaged over the same number of pairs, drawn among pairs of two different
observations with a probability proportional to what their rows count. The cost is that of the pairs, whatever the
number of rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from priorshift.arrays import Index
from priorshift.embedding.gram import Embeddings, P, SourceEmbedding, T, U
from priorshift.embedding.samples import EmbeddedSample
from priorshift.errors import InputError
from priorshift.io.observations import PriorInfluence

_BLOCKS = ((P, P), (U, U), (P, U), (P, T), (U, T), (T, T))
_BLOCK_OF = np.array([[0, 2, 3], [2, 1, 4], [3, 4, 5]])  # number in _BLOCKS of each entry of the Gram matrix
_CHUNK = 2**15  # pairs evaluated at a time
_NAMES = ("a positive", "an unlabeled", "a target")


def embed_pairs(
    source: SourceEmbedding,
    target: EmbeddedSample,
    pairs: int,
    rng: np.random.Generator,
    *,
    target_norm: bool = False,
    prior: PriorInfluence | None = None,
) -> Embeddings:
    """Embeddings from `pairs` random pairs in each block; ⟨μ_T, μ_T⟩ only with `target_norm`.

    The covariance is that of the complete statistic plus that of drawing the pairs: with z the centred
    contribution of a pair, it is Σ (sum of z over the pairs of an observation)² − Σ z², the variance
    estimator for dyadic data (two pairs are dependent when they share an observation). A pair drawn twice counts as
    two, which errs on the safe side.
    """
    kernel, samples = source.kernel, (source.positive, source.unlabeled, target)
    gram = np.full((3, 3), np.nan)
    each = np.zeros((max(int(s.observation.max()) for s in samples) + 1, len(_BLOCKS)))  # of every observation
    squares = np.zeros(len(_BLOCKS))
    for number, (j, k) in enumerate(_BLOCKS):
        if (j, k) == (T, T) and not target_norm:
            continue
        X, Y = samples[j], samples[k]
        left, right = _draw(X, Y, pairs, rng)
        if not len(left):
            raise InputError(
                f"all {pairs} sampled pairs of {_NAMES[j]} and {_NAMES[k]} row are one observation twice; raise pairs, "
                "or leave it out to use all."
            )
        values = np.concatenate(
            [
                kernel.paired(X.rows[left[at : at + _CHUNK]], Y.rows[right[at : at + _CHUNK]])
                for at in range(0, len(left), _CHUNK)
            ]
        )
        gram[j, k] = gram[k, j] = values.mean()
        z = (values - values.mean()) / len(values)
        squares[number] = (z**2).sum()
        for of in (X.observation[left], Y.observation[right]):
            each[:, number] += np.bincount(of, z, len(each))
    covariance = each.T @ each - np.diag(squares)
    parts = covariance[_BLOCK_OF[:, :, None, None], _BLOCK_OF][None]
    unknown = np.full((3, 3), np.nan)  # a plug-in statistic has no incomplete form
    freedom = np.array([max(min(s.size for s in samples) - 1, 1e-12)])
    sizes = len(samples[P]), len(samples[U]), len(samples[T])
    even = all(s.is_even for s in samples)
    made = Embeddings(gram, unknown, parts, freedom, sizes, source.shared, kernel, is_even=even)
    if prior is None:
        return made
    moves = prior.of_observations(len(each))
    return replace(made, prior_covariance=(moves @ each)[_BLOCK_OF], prior_variance=prior.variance)


def _draw(X: EmbeddedSample, Y: EmbeddedSample, pairs: int, rng: np.random.Generator) -> tuple[Index, Index]:
    """Pairs of rows of two observations; those of one are not drawn, or left out."""
    if X is Y and X.is_even:
        left = rng.integers(0, len(X), pairs)
        right = rng.integers(0, len(X) - 1, pairs)
        return left, right + (right >= left)
    left, right = (_rows(sample, pairs, rng) for sample in (X, Y))
    different = X.observation[left] != Y.observation[right]
    return left[different], right[different]


def _rows(sample: EmbeddedSample, count: int, rng: np.random.Generator) -> Index:
    """Rows drawn with a probability proportional to their mass."""
    if sample.weights is None:
        return rng.integers(0, len(sample), count)
    return np.minimum(np.searchsorted(np.cumsum(sample.mass), rng.random(count)), len(sample) - 1)
