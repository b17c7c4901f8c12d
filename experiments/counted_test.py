"""The label-shift test from counts of distinct rows: for tables with few of them, much faster than from rows.

Equal rows have equal features, so the mean of a feature is a sum over distinct rows, and the random signs of the copies
of one row add up to a binomial variable. The p-value has the distribution of that of
:func:`priorshift.diagnosis.shift_tests.label_shift_test`, if the default score is used and every row is an observation.
Only the noise of the scores is left out, which enlarges variances by a few thousandths if copies have one score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from experiments.diagnosis_tests import RESAMPLES
from priorshift.arrays import Floats
from priorshift.diagnosis.residuals import (
    _FOLDS,
    _REPEATS,
    _SCORE_AXES,
    _SCORE_COSINES,
    FeatureMean,
    KernelFeatures,
    Residual,
    _fit_ridge,
    inverse_noise,
)
from priorshift.diagnosis.shift_tests import _combine_tests
from priorshift.io.row_hashes import content_codes
from priorshift.scores import mixture
from priorshift.scores.cross_fitting import FIT_ROWS

Counts = NDArray[np.int64]  # number of copies of each distinct row
_LARGEST_RATIO = 10.0


def counted_p_value(samples: Sequence[Floats], rng: np.random.Generator, resamples: int = RESAMPLES) -> float:
    """Return the p-value of the label-shift test of rows P, U and T."""
    source = np.concatenate(samples[:2])
    scaled = [(rows - source.mean(axis=0)) / source.std(axis=0) for rows in samples]
    codes = [content_codes(rows) for rows in scaled]
    _, first, number = np.unique(np.concatenate(codes), return_index=True, return_inverse=True)
    distinct = np.concatenate(scaled)[first]
    numbers = np.split(number, np.cumsum([len(rows) for rows in samples])[:2])
    counts = [np.bincount(sample_numbers, minlength=len(distinct)) for sample_numbers in numbers]
    coordinates = KernelFeatures.fit(scaled, np.asarray).coordinates(distinct).astype(float)
    cosines = _cosines(coordinates, counts[0], counts[1], rng)
    features, axes = np.concatenate([coordinates, cosines], axis=1), coordinates.shape[1]
    means = [_resample(count, features, resamples, rng) for count in counts]
    kernel = Residual.fit([FeatureMean(m.value[:axes], m.noise[:, :axes], m.size) for m in means])
    score_means = [FeatureMean(m.value[axes:], m.noise[:, axes:], m.size) for m in means]
    scale = inverse_noise(score_means, min(max(kernel.ratio, 0.0), _LARGEST_RATIO))
    return _combine_tests([kernel, Residual.fit(score_means, scale)])[2]


def _cosines(coordinates: Floats, P: Counts, U: Counts, rng: np.random.Generator) -> Floats:
    """Return cosines of the p-value of each distinct row by the cross-fitted score, shape (distinct rows, cosines)."""
    features = np.column_stack([coordinates[:, :_SCORE_AXES], np.ones(len(P))])
    width = features.shape[1]
    gram, moment = np.zeros((_REPEATS, _FOLDS, width, width)), np.zeros((_REPEATS, _FOLDS, width))
    for count, label in ((P, 1), (U, -1)):
        fitted = rng.multivariate_hypergeometric(count, min(FIT_ROWS, int(count.sum())))
        for k in range(_REPEATS):
            mass = _split(fitted, _FOLDS, rng) / fitted.sum()
            gram[k] += 0.5 * np.einsum("jc,cf,cg->jfg", mass, features, features)
            moment[k] += 0.5 * label * mass @ features
    beta = _fit_ridge(gram, moment)
    scores = np.einsum("cf,rkf->rkc", features, beta).mean(axis=1).round(10)  # copies have one score in all folds
    size = float(P.sum())
    bins = np.stack([mixture.bins(mixture.p_values(score, score, P / size, size)) for score in scores])
    middles = (np.arange(mixture.BINS) + 0.5) / mixture.BINS
    cosines = np.cos(np.pi * np.outer(np.arange(1, _SCORE_COSINES + 1), middles))
    return np.asarray(cosines[:, bins].mean(axis=1).T)


def _split(count: Counts, folds: int, rng: np.random.Generator) -> Counts:
    """Split rows at random into folds of equal size; return the counts in each, shape (folds, distinct rows)."""
    left, parts, total = count, [], int(count.sum())
    for k in range(folds):
        parts.append(rng.multivariate_hypergeometric(left, len(range(k, total, folds))))
        left = left - parts[-1]
    return np.stack(parts)


def _resample(count: Counts, features: Floats, resamples: int, rng: np.random.Generator) -> FeatureMean:
    """Compute the means of features in a sample, and their errors with random signs of the rows."""
    size = float(count.sum())
    mean = count / size @ features
    signs = 2 * rng.binomial(count, 0.5, size=(resamples, len(count))) - count
    return FeatureMean(mean, signs / size @ (features - mean) * np.sqrt(size / (size - 1)), size)
