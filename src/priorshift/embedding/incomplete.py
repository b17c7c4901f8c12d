"""Incomplete U-statistics: the Gram matrix of the three means from a random sample of pairs.

The paper suggests it for large data (its discussion, after Schrab et al. 2022). Each of the five blocks of
the kernel matrix that the estimate needs is averaged over the same number of pairs, drawn uniformly among
pairs of two different observations. The cost is that of the pairs, whatever the number of rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from priorshift.embedding.gram import Embeddings, P, SourceEmbedding, T, U
from priorshift.errors import InputError
from priorshift.input.observations import PriorInfluence
from priorshift.input.scaling import Rows

_BLOCKS = ((P, P), (U, U), (P, U), (P, T), (U, T), (T, T))
_BLOCK_OF = np.array([[0, 2, 3], [2, 1, 4], [3, 4, 5]])  # number in _BLOCKS of each entry of the Gram matrix
_CHUNK = 2**15  # pairs evaluated at a time


def embed_pairs(
    source: SourceEmbedding,
    target: Rows,
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
    kernel, shared, rows = source.kernel, source.shared, (source.positive, source.unlabeled, target)
    sizes = tuple(len(r) for r in rows)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    observation = np.arange(starts[-1])
    observation[starts[U] + shared[:, 1]] = shared[:, 0]  # a shared row of U is its row of P
    gram = np.full((3, 3), np.nan)
    each = np.zeros((starts[-1], len(_BLOCKS)))
    squares = np.zeros(len(_BLOCKS))
    same = shared[:, 0] * sizes[U] + shared[:, 1]
    for number, (j, k) in enumerate(_BLOCKS):
        if (j, k) == (T, T) and not target_norm:
            continue
        left = rng.integers(0, sizes[j], pairs)
        right = rng.integers(0, sizes[k] - (j == k), pairs)
        right += (j == k) & (right >= left)  # two different rows
        if (j, k) == (P, U):
            different = ~np.isin(left * sizes[U] + right, same)
            left, right = left[different], right[different]
            if not len(left):
                raise InputError(
                    f"all {pairs} sampled pairs of a positive and an unlabeled row are one observation twice; raise "
                    "pairs, or leave it out to use all."
                )
        values = np.concatenate(
            [
                kernel.paired(rows[j][left[at : at + _CHUNK]], rows[k][right[at : at + _CHUNK]])
                for at in range(0, len(left), _CHUNK)
            ]
        )
        gram[j, k] = gram[k, j] = values.mean()
        z = (values - values.mean()) / len(values)
        squares[number] = (z**2).sum()
        for row, start in ((left, starts[j]), (right, starts[k])):
            each[:, number] += np.bincount(observation[row + start], z, len(each))
    covariance = each.T @ each - np.diag(squares)
    parts = covariance[_BLOCK_OF[:, :, None, None], _BLOCK_OF][None]
    unknown = np.full((3, 3), np.nan)  # a plug-in statistic has no incomplete form
    freedom = np.array([min(sizes) - 1.0])
    made = Embeddings(gram, unknown, parts, freedom, (sizes[P], sizes[U], sizes[T]), len(shared), kernel)
    if prior is None:
        return made
    moves = np.zeros(len(each))
    np.add.at(moves, observation[: starts[T]], np.concatenate([prior.positive, prior.unlabeled]))
    return replace(made, prior_covariance=(moves @ each)[_BLOCK_OF], prior_variance=float(moves @ moves))
