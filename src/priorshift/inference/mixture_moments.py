"""The mixture of samples from moments of the functions h, which add up over rows: for samples that are not in memory.

All that :class:`~priorshift.inference.affine_mixture.AffineMixture` needs of a sample is the mean of h, and the sum of
products of the rows' influences on it. The influence of a row is w/W·(h − mean), with w its weight and W the sum of all
weights, so that both follow from Σ w h, Σ w² h and Σ w² hhᵀ. Every row counts as an observation of its own.

A source consists of parts, the labelled rows of each class and the unlabelled rows. A sample is one part or, under
"censoring", the base is all parts together. Rows of a part that two samples have in common move both means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from priorshift.arrays import Floats, Mask
from priorshift.embedding.moments import FeatureMoments
from priorshift.inference.affine_mixture import AffineMixture


def parts_of_samples(classes: int, *, rest: bool, censoring: bool) -> Mask:
    """Return which parts each sample consists of, shape (samples, parts): the classes and, with a rest, the base."""
    contains = np.eye(classes + rest, dtype=bool)
    if censoring:
        contains[-1] = True
    return contains


def sum_parts(parts: Sequence[FeatureMoments], member: Mask) -> FeatureMoments:
    """Return the moments of the parts of a sample together; `member` says which they are."""
    first, *others = [part for part, is_member in zip(parts, member, strict=True) if is_member]
    return sum(others, start=first)


def mixture_from_moments(
    parts: Sequence[FeatureMoments], contains: Mask, target: FeatureMoments, noise: Floats | None = None
) -> AffineMixture:
    """Estimate the coefficients of a target as a mixture of samples, from the moments of h.

    `contains` is that of `parts_of_samples`, `noise` that of `AffineMixture`.
    """
    samples = [sum_parts(parts, member) for member in contains]
    means = np.stack([sample.mean for sample in samples])
    count, functions = means.shape
    contrasts = np.linalg.solve((means[:-1] - means[-1]).T, target.mean - means[-1])
    covariance = np.zeros((count, count, functions, functions))
    for s in range(count):
        for t in range(count):
            common = contains[s] & contains[t]
            if common.any():
                covariance[s, t] = _products(sum_parts(parts, common), samples[s], samples[t])
    return AffineMixture(
        coefficients=np.append(contrasts, 1 - contrasts.sum()),
        means=means,
        second_moments=np.stack([sample.product / sample.squares for sample in samples]),
        target_mean=target.mean,
        target_variance=_products(target, target, target),
        source_covariance=covariance,
        target_covariance=np.zeros((count, functions, functions)),
        sizes=np.array([sample.size for sample in (*samples, target)]),
        noise=np.zeros((functions, functions)) if noise is None else noise,
    )


def _products(rows: FeatureMoments, first: FeatureMoments, second: FeatureMoments) -> Floats:
    """Return Σ ψ φᵀ over some rows, whose influence is ψ on the mean of the first and φ on that of the second sample.

    As in `SampleValues.influence`, an influence is w/W·(h − mean), times √(n/(n−1)).
    """
    m, k = first.mean, second.mean
    centred = rows.product - np.outer(rows.squared_total, k) - np.outer(m, rows.squared_total)
    centred += rows.squares * np.outer(m, k)
    scale = 1.0
    for sample in (first, second):
        scale *= np.sqrt(sample.size / max(sample.size - 1, 1.0)) / sample.weight
    return np.asarray(scale * centred)
