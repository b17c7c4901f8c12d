"""Which columns drifted, and which columns distinguish the positives from the population.

Label shift holds for each column alone, with one ratio R for all. A column that drifted moves the R that fits all of
them, so that the others seem to drift too; so the worst columns are excluded from R step by step, and then all are
judged by the R of the others. P-values are adjusted for the number of columns by Westfall and Young's step-down: by the
largest statistic of those not yet rejected, in the same resamples.

The importance of a column comes from h = 1 − f_P/f_U, the witness of R = 1 up to a factor, in the rows of U. Its
linear part is Σ β_j x_j, by the regression of h on the columns, and the importance is the variance of the column's own
term; the levels of one category are one term. Two columns with the same information share their importance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from priorshift.arrays import Floats, Index, Mask
from priorshift.diagnosis.residuals import ColumnFeatures, FeatureMeans, Gram, Residual, inverse_noise, smallest_root
from priorshift.formatting import format_fixed, format_p, format_percent
from priorshift.io.tables import Table
from priorshift.problem import Source
from priorshift.result_tables import to_plain
from priorshift.scores.witness import Witness

MOST_COLUMNS = 10  # largest number of columns that are listed
FIT_ROWS = 5000  # rows that a regression uses, about
CLIP = 8.0  # standard deviations at which values are clipped, as in scores
_LEVEL = 0.05  # below which a column is excluded from R
_ROUNDS = 12  # largest number of rounds in which columns are excluded
_SHARE = 0.1  # share of the rejected columns that one round excludes
_SHAPE_WEIGHT = 0.2  # of a cosine of the rank; a mean moves more often than a shape
_LEAST_VARIANCE = 0.01  # of a resample, as a share of the mean variance
_LARGEST_RATIO = 10.0  # R̂ at which moves are reported; at a larger one the noise of U would dominate
_RIDGE = 1e-3  # of a regression, for collinear columns
_TINY = 1e-300


@dataclass(frozen=True)
class ColumnShift:
    """What label shift leaves unexplained in one column."""

    name: str
    moved: float  # change of its mean, or of a level's share, beyond label shift, in standard deviations of U
    level: str | None  # level or encoded column that moved most, if the column was encoded by several
    statistic: float  # about standard normal; large where mean or shape moved
    p_value: float  # adjusted for the number of columns

    def __str__(self) -> str:
        """Return the column, how far it moved, and the p-value."""
        column = f"{self.name} ({self.level})" if self.level else self.name
        return f"{column}: {format_fixed(self.moved, 2, '+')} standard deviations, {format_p(self.p_value)}"


def column_shifts(means: FeatureMeans, features: ColumnFeatures, table: Table) -> tuple[ColumnShift, ...]:
    """Test every column for a drift beyond label shift; the largest statistics come first.

    `means` are the means of `features` in P, U and T, with resamples; a column has one or more features.
    """
    numbers, code = np.unique(features.column, return_inverse=True)  # `code` is the index in `numbers` of each feature
    code, is_value = code.reshape(-1), features.is_value
    if not len(numbers):
        return ()
    included = np.ones(len(numbers), dtype=bool)  # columns that R̂ is estimated from
    ratio = 1.0
    for _ in range(_ROUNDS):  # exclude the most drifted columns, until the others fit one R or half are excluded
        statistic, null, _, ratio = _test_columns(means, code, is_value, included, ratio)
        p = _step_down_p_values(statistic[included], null[:, included])
        rejected = np.flatnonzero(included)[p <= _LEVEL]
        if not len(rejected) or 2 * (included.sum() - 1) < len(included):
            break
        count = max(1, min(round(_SHARE * len(rejected)), int(included.sum() - len(included) / 2)))
        included[rejected[np.argsort(-statistic[rejected])][:count]] = False
    statistic, null, moves, _ = _test_columns(means, code, is_value, included, ratio)
    p = _step_down_p_values(statistic, null)
    names, levels = _column_names(table, features.encoded)
    shifts = []
    for k in np.argsort(-statistic, kind="stable"):
        values = np.flatnonzero((code == k) & is_value)
        top = values[np.argmax(np.abs(moves[values]))]  # the level that moved most
        shifts.append(ColumnShift(names[numbers[k]], float(moves[top]), levels[top], float(statistic[k]), float(p[k])))
    return tuple(shifts)


def _test_columns(
    means: FeatureMeans, code: Index, is_value: Mask, included: Mask, ratio: float
) -> tuple[Floats, Floats, Floats, float]:
    """Test all columns at the R̂ that fits the included ones, with b = μ_T − μ_P and a = μ_U − μ_P of the features.

    `code` is the column of each feature, and `ratio` a previous R̂, at which features are scaled to equal noise. Return
    the statistic of each column, those of resamples (resamples × columns), the move of each feature, and R̂.
    """
    P, U, T = means
    scale = inverse_noise(means, ratio)
    is_included = included[code]  # of each feature, whether its column is included
    fitted = Residual.fit(*(mean.select(slice(None), scale * is_included) for mean in means))
    whole = Residual.fit(*(mean.select(slice(None), scale) for mean in means))
    R = fitted.ratio
    # second moments of the noise of each feature, from which its variance at any ratio follows
    pairs = (whole.noise_b, whole.noise_b), (whole.noise_a, whole.noise_b), (whole.noise_a, whole.noise_a)
    N = Gram(*((x * y).mean(axis=0) for x, y in pairs))
    residual = whole.b - R * whole.a
    # resamples under label shift; the a of an excluded column takes no part in the fit, so it is not denoised
    null_a = np.where(is_included, fitted.null_a, whole.a)
    b, a = R * null_a + whole.noise_b, null_a + whole.noise_a
    _, r = smallest_root(Gram.from_vectors(b[:, is_included], a[:, is_included]), fitted.noise)
    resampled_R = r[:, None]
    # the variance of a resample is the mean over all other resamples …
    noise = N.residual_square(resampled_R)
    variance = noise + (noise - (whole.noise_b - resampled_R * whole.noise_a) ** 2) / (len(resampled_R) - 1)
    # … changed as its own sample variance would be, as in Student's statistic: a few outlying rows make it noisy
    for mean, coefficient in ((P, 1 - resampled_R), (U, resampled_R), (T, 1.0)):
        squares = (mean.noise * scale) ** 2
        variance = variance + coefficient**2 * (squares.mean(axis=0) - squares) / (mean.size - 1)
    resampled = (b - resampled_R * a) ** 2 / np.maximum(variance, np.maximum(_LEAST_VARIANCE * noise, _TINY))
    # the statistic of a column is the weighted sum over its features of squared residuals over their variance
    weights = np.zeros((len(code), len(included)))
    weights[np.arange(len(code)), code] = np.where(is_value, 1.0, _SHAPE_WEIGHT)
    statistic = residual**2 / np.maximum(N.residual_square(R), _TINY) @ weights
    moves = (whole.b - np.clip(R, 0.0, _LARGEST_RATIO) * whole.a) / np.where(scale > 0, scale, 1.0)
    return *_normal_scores(statistic, resampled @ weights), moves, R


def _normal_scores(statistic: Floats, null: Floats) -> tuple[Floats, Floats]:
    """Standardise the cube roots of statistics and resamples, which are about normal (Wilson and Hilferty).

    Mean and variance are those of the resamples: all of them for the statistic, all others for a resample.
    """
    roots, count = np.cbrt(null), len(null)
    total, squares = roots.sum(axis=0), (roots**2).sum(axis=0)
    scores = []
    # with its own value included, the largest of a few hundred resamples would seem smaller than it is
    for root, own_root, other_count in ((np.cbrt(statistic), np.zeros(1), count), (roots, roots, count - 1)):
        mean = (total - own_root) / other_count
        variance = (squares - np.square(own_root)) / other_count - mean**2
        scores.append(np.asarray((root - mean) / np.sqrt(np.maximum(variance, _TINY))))
    return scores[0], scores[1]


def _step_down_p_values(statistic: Floats, null: Floats) -> Floats:
    """Return Westfall and Young's step-down p-values of statistics, given those of resamples (resamples × statistics).

    Each is compared with the largest resampled one of those not above it; p-values never fall along that order.
    """
    order = np.argsort(-statistic, kind="stable")
    largest = np.maximum.accumulate(null[:, order[::-1]], axis=1)[:, ::-1]
    p = (1 + (largest >= statistic[order]).sum(axis=0)) / (len(null) + 1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(p)
    return adjusted


@dataclass(frozen=True)
class Driver:
    """A column that distinguishes positives from the population."""

    name: str
    level: str | None  # level or encoded column that differs most, if the column was encoded by several
    difference: float  # mean of P minus mean of U, of the column or that level, in standard deviations of U
    importance: float  # the column's share of the score, from 0 to 1

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON."""
        return to_plain(vars(self))

    def __str__(self) -> str:
        """Return the column, its importance and its difference."""
        column = f"{self.name} ({self.level})" if self.level else self.name
        difference = f"positives differ by {format_fixed(self.difference, 2, '+')} standard deviations"
        return f"{column}: {format_percent(self.importance)} of the score, {difference}"


def drivers(source: Source, witness: Witness) -> tuple[Driver, ...]:
    """Return at most ten columns that contribute most to the score, the most important first.

    The importance of a column is the share of its term in the regression of h = 1 − f_P/f_U on the columns in U.
    """
    step = max(1, len(source.population) // FIT_ROWS)
    U, P = (source.rows[rows] for rows in (source.population, source.positive))
    mass_P, mass = source.P.mass, source.U.mass  # each sums to 1
    mean = mass @ U
    spread = np.sqrt(mass @ (U - mean) ** 2)
    used = np.flatnonzero((source.scaling.factor != 0) & (spread > 0))
    if not len(used):
        return ()
    # h of the witness at R = 1, at each row of U
    h = mean_over_repeats(witness.function(np.ones(1), float(len(source.population)))[:, 0], witness.population)
    X = np.clip((U - mean)[::step][:, used] / spread[used], -CLIP, CLIP)
    weight = mass[::step] / mass[::step].sum()
    terms = (X - weight @ X) * regression(X, h[::step], weight)
    origin = source.table.origin
    numbers, code = np.unique(used if origin is None else origin.original_column[used], return_inverse=True)
    code = code.reshape(-1)
    membership = np.zeros((len(used), len(numbers)))  # 1 where an encoded column belongs to a user's column
    membership[np.arange(len(used)), code] = 1.0
    variance = weight @ (terms @ membership) ** 2
    importance = variance / variance.sum() if variance.sum() > 0 else variance
    difference = (mass_P @ P - mean)[used] / spread[used]
    names, levels = _column_names(source.table, used)
    leading = []
    for k in np.argsort(-importance, kind="stable")[:MOST_COLUMNS]:
        encoded = np.flatnonzero(code == k)
        top = encoded[np.argmax(np.abs(difference[encoded]))]
        name, level = names[numbers[k]], levels[top]
        if level is not None and level.startswith(name):  # "colour = red", or "day (month)"
            rest = level.removeprefix(name)
            rest = rest[3:] if rest.startswith(" = ") else rest.removeprefix(" (").removesuffix(")")
            level = rest or None
        leading.append(Driver(name, level, float(difference[top]), float(importance[k])))
    return tuple(leading)


def _column_names(table: Table, encoded: Index) -> tuple[list[str], list[str | None]]:
    """Return the names of the user's columns, and of each encoded column, unless it is the only one of its column."""
    names = list(table.columns) if table.columns else [f"column {k}" for k in range(table.width)]
    if table.origin is None:
        return names, [None] * len(encoded)
    column_of, encoded_names = table.origin.original_column, names
    names = list(table.origin.columns)
    if len(names) <= column_of.max():  # two columns have the same name
        names = [f"column {k}" for k in range(int(column_of.max()) + 1)]
    several = np.bincount(column_of, minlength=len(names)) > 1
    return names, [encoded_names[k] if several[column_of[k]] else None for k in encoded]


class Column(NamedTuple):
    """A column of the user, and the encoded columns that it became."""

    name: str
    numbers: Index  # of the encoded columns in use


def leading_columns(source: Source, slopes: Floats) -> tuple[Column, ...]:
    """Return at most ten columns with the largest slopes in the regression of h on all encoded columns, largest first.

    A column that was encoded by several counts with the sum of their squared slopes.
    """
    used, origin = np.flatnonzero(source.scaling.factor), source.table.origin
    column_of = np.arange(len(slopes)) if origin is None else origin.original_column
    squares = np.bincount(column_of[used], np.abs(slopes[used]) ** 2, int(column_of.max()) + 1)
    columns, names = [], [] if origin is None else list(origin.columns)
    for k in np.argsort(-squares, kind="stable")[:MOST_COLUMNS]:
        numbers = used[column_of[used] == k]
        if len(numbers):
            columns.append(Column(f"column {names[k]!r}" if names else source.table.column(int(k)), numbers))
    return tuple(columns)


def mean_over_repeats(h: Floats, bins: Index) -> Floats:
    """Return the mean over repetitions of h at each row, given h by repetition and bin, and the bins of the rows."""
    return np.asarray(np.mean([function[b] for function, b in zip(h, bins, strict=True)], axis=0))


def regression(X: Floats, y: Floats, mass: Floats) -> Floats:
    """Return the slopes of y on columns of about unit spread, by weighted ridge regression; `mass` sums to 1."""
    X, y = X - mass @ X, y - mass @ y  # centred, so that no intercept is needed
    A = X.T @ (mass[:, None] * X)
    A[np.diag_indices_from(A)] += _RIDGE * max(float(np.trace(A)) / len(A), 1e-12)
    return np.asarray(np.linalg.solve(A, X.T @ (mass * y)))
