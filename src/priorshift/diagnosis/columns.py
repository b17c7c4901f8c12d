"""Which columns drifted, and which columns distinguish the positives from the population.

Label shift holds for each column alone, with one ratio R for all. A column that drifted moves the R that fits all of
them, so that the others seem to drift too; so the worst columns are excluded from R step by step, and then all are
judged by the R of the others. P-values are adjusted for the number of columns by Westfall and Young's step-down: by the
largest statistic of those not yet rejected, in the same resamples.

The importance of a column comes from the witness function h = 1 − f_P/f_U of R = 1, up to a factor, in the rows of U.
Its linear part is Σ β_j x_j, by regression on the encoded columns x_j, and the importance of a user's column is the
variance of its own terms, which are several for a category. Two columns with the same information share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from priorshift.arrays import Floats, Index, Mask
from priorshift.diagnosis.residuals import (
    ColumnFeatures,
    FeatureMeans,
    Gram,
    feature_blocks,
    fit_ratio,
    inverse_noise,
    smallest_root,
)
from priorshift.formatting import format_fixed, format_p, format_percent
from priorshift.io.tables import Table
from priorshift.problem import Source
from priorshift.result_tables import to_plain
from priorshift.scores.mixture import Bins
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
    by_chance: float  # |moved| that chance alone exceeds, in any of the columns, with a probability of 5%

    def __str__(self) -> str:
        """Return the column, how far it moved, and the p-value."""
        column = f"{self.name} ({self.level})" if self.level else self.name
        return f"{column}: {format_fixed(self.moved, 2, '+')} standard deviations, {format_p(self.p_value)}"


def column_shifts(means: FeatureMeans, features: ColumnFeatures, table: Table) -> tuple[ColumnShift, ...]:
    """Test every column of the user for a drift beyond label shift; the largest statistics come first.

    `means` are the means of `features` in P, U and T, with resamples. A column has several features: its value, or one
    for each level of a category, and cosines of its rank.
    """
    # column_index: for each feature, the position of its column in `column_numbers`
    column_numbers, column_index = np.unique(features.column, return_inverse=True)
    if not len(column_numbers):
        return ()
    included = np.ones(len(column_numbers), dtype=bool)  # columns that R̂ is estimated from
    ratio = 1.0
    for _ in range(_ROUNDS):  # exclude the most drifted columns, until the others fit one R or half are excluded
        statistic, null, _, _, ratio = _test_columns(means, column_index, features.is_value, included, ratio)
        p_values = _step_down_p_values(statistic[included], null[:, included])
        rejected = np.flatnonzero(included)[p_values <= _LEVEL]
        if not len(rejected) or 2 * (included.sum() - 1) < len(included):
            break
        may_exclude = int(included.sum() - len(included) / 2)  # at least half of the columns stay
        count = max(1, min(round(_SHARE * len(rejected)), may_exclude))
        most_drifted = rejected[np.argsort(-statistic[rejected])][:count]
        included[most_drifted] = False
    statistic, null, moves, by_chance, _ = _test_columns(means, column_index, features.is_value, included, ratio)
    p_values = _step_down_p_values(statistic, null)
    names, levels = _column_names(table, features.encoded)
    shifts = []
    for k in np.argsort(-statistic, kind="stable"):
        values = np.flatnonzero((column_index == k) & features.is_value)  # features of the column, without cosines
        top = values[np.argmax(np.abs(moves[values]))]  # the level that moved most
        name = names[column_numbers[k]]
        shifts.append(
            ColumnShift(
                name, float(moves[top]), levels[top], float(statistic[k]), float(p_values[k]), float(by_chance[top])
            )
        )
    return tuple(shifts)


@dataclass(frozen=True, eq=False)
class _ScaledMeans:
    """b = E_T φ − E_P φ and a = E_U φ − E_P φ of features φ, scaled to equal noise, and their errors in resamples.

    There may be many features, so that the errors are computed for a part of them at a time.
    """

    means: FeatureMeans  # not scaled
    scale: Floats
    b: Floats
    a: Floats
    noise: Gram  # mean products of the errors of b and a, of each feature

    @classmethod
    def build(cls, means: FeatureMeans, ratio: float) -> _ScaledMeans:
        """Scale the features to equal noise of b − r·a at a ratio r."""
        P, U, T = means
        scale = inverse_noise(means, ratio)
        scaled = cls(
            means, scale, (T.value - P.value) * scale, (U.value - P.value) * scale, Gram(*np.empty((3, len(scale))))
        )
        for part in feature_blocks(len(scale)):
            b, a = scaled.errors(part)
            for mean_product, product in zip(scaled.noise, (b * b, a * b, a * a), strict=True):
                mean_product[part] = product.mean(axis=0)
        return scaled

    def errors(self, part: slice) -> tuple[Floats, Floats]:
        """Return the errors of b and of a of some features in each resample, shape (resamples, features)."""
        P, U, T = (mean.noise[:, part] for mean in self.means)
        return (T - P) * self.scale[part], (U - P) * self.scale[part]

    def null_ratios(self, R: float, null_a: Floats, in_fit: Mask, noise: Gram) -> Floats:
        """Return the R̂ of each resample under label shift, b = R·a, by the features in the fit; shape (resamples, 1).

        `noise` is the sum of the mean products over these features.
        """
        products = np.zeros((3, len(self.means[0].noise)))  # ⟨b, b⟩, ⟨a, b⟩ and ⟨a, a⟩
        for part in feature_blocks(len(self.scale)):
            used = in_fit[part]
            error_b, error_a = (error[:, used] for error in self.errors(part))
            a = null_a[part][used]
            products += Gram.from_vectors(R * a + error_b, a + error_a)
        return np.asarray(smallest_root(Gram(*products), noise)[1])[:, None]

    def null_squares(self, R: float, null_a: Floats, null_R: Floats, part: slice) -> Floats:
        """Return the squared residual b − R̂·a of some features in each resample, over its variance."""
        P, U, T = self.means
        noise_b, noise_a = self.errors(part)
        # the variance of a resample is the mean over all other resamples …
        mean_variance = Gram(*(mean_product[part] for mean_product in self.noise)).residual_square(null_R)
        variance = mean_variance + (mean_variance - (noise_b - null_R * noise_a) ** 2) / (len(null_R) - 1)
        # … changed as its own sample variance would be, as in Student's statistic: a few outlying rows make it noisy
        for mean, coefficient in ((P, 1 - null_R), (U, null_R), (T, 1.0)):
            noise_squares = (mean.noise[:, part] * self.scale[part]) ** 2
            variance = variance + coefficient**2 * (noise_squares.mean(axis=0) - noise_squares) / (mean.size - 1)
        residual = R * null_a[part] + noise_b - null_R * (null_a[part] + noise_a)
        return np.asarray(residual**2 / np.maximum(variance, np.maximum(_LEAST_VARIANCE * mean_variance, _TINY)))


def _test_columns(
    means: FeatureMeans, column_index: Index, is_value: Mask, included: Mask, ratio: float
) -> tuple[Floats, Floats, Floats, Floats, float]:
    """Test all columns by the residuals b − R̂·a of their features, at the R̂ that fits the included columns best.

    b = E_T φ − E_P φ and a = E_U φ − E_P φ of the features φ. `column_index` is the column of each feature, `is_value`
    whether it is no cosine, and `ratio` a previous R̂, at which features are scaled to equal noise. Return the statistic
    of each column, those of resamples (resamples × columns), the move of each feature in its own units, the size of it
    that chance alone exceeds anywhere with a probability of 5%, and R̂.
    """
    scaled = _ScaledMeans.build(means, ratio)
    in_fit = included[column_index]  # whether a feature takes part in the estimate of R
    noise_in_fit = Gram(*(float(mean_product[in_fit].sum()) for mean_product in scaled.noise))
    _, R, fitted_a = fit_ratio(scaled.b * in_fit, scaled.a * in_fit, noise_in_fit)
    null_a = np.where(in_fit, fitted_a, scaled.a)  # denoised in the features that R̂ was fitted to
    null_R = scaled.null_ratios(R, null_a, in_fit, noise_in_fit)
    # the statistic of a column is the weighted sum over its features of squared residuals over their variance
    weights = _membership(column_index, np.where(is_value, 1.0, _SHAPE_WEIGHT))
    null, largest = np.zeros((len(null_R), weights.shape[1])), np.zeros(len(null_R))
    for part in feature_blocks(len(is_value)):
        null_squares = scaled.null_squares(R, null_a, null_R, part)
        columns = np.unique(column_index[part])
        null[:, columns] += null_squares @ weights[part][:, columns]
        # the largest resampled move of any column, in squared standard errors
        largest = np.maximum(largest, null_squares[:, is_value[part]].max(axis=1, initial=0.0))
    squares = (scaled.b - R * scaled.a) ** 2 / np.maximum(scaled.noise.residual_square(R), _TINY)
    statistic, null = _normal_scores(squares @ weights, null)
    clipped, units = np.clip(R, 0.0, _LARGEST_RATIO), np.where(scaled.scale > 0, scaled.scale, 1.0)
    moves = (scaled.b - clipped * scaled.a) / units
    errors = np.sqrt(np.maximum(scaled.noise.residual_square(clipped), 0.0)) / units
    return statistic, null, moves, np.quantile(np.sqrt(largest), 1 - _LEVEL) * errors, R


def _normal_scores(statistic: Floats, null: Floats) -> tuple[Floats, Floats]:
    """Standardise the cube roots of statistics and of their resamples, which are about normal (Wilson and Hilferty).

    `null` has shape (resamples, statistics). Mean and variance are those of all resamples for a statistic, and of all
    other resamples for a resample: with its own value, the largest of a few hundred would seem smaller than it is.
    """
    roots, count = np.cbrt(null), len(null)
    total, squares = roots.sum(axis=0), (roots**2).sum(axis=0)
    scores = []
    for root, own_root, other_count in ((np.cbrt(statistic), np.zeros(1), count), (roots, roots, count - 1)):
        mean = (total - own_root) / other_count
        variance = (squares - np.square(own_root)) / other_count - mean**2
        scores.append(np.asarray((root - mean) / np.sqrt(np.maximum(variance, _TINY))))
    return scores[0], scores[1]


def _step_down_p_values(statistic: Floats, null: Floats) -> Floats:
    """Return Westfall and Young's step-down p-values of statistics, given those of resamples (resamples × statistics).

    Each statistic is compared with the largest of each resample among those that are not above it, so that p-values
    are adjusted for their number; they never fall from the largest statistic to the smallest.
    """
    order = np.argsort(-statistic, kind="stable")
    # for each resample and rank, the largest resampled statistic of this and all later ranks
    largest = np.maximum.accumulate(null[:, order[::-1]], axis=1)[:, ::-1]
    p_values = (1 + (largest >= statistic[order]).sum(axis=0)) / (len(null) + 1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(p_values)
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

    The witness function h of R = 1, in each row of U, is regressed on the encoded columns x_j. The importance of a
    user's column is the variance of Σ β_j x_j over its encoded columns, as a share of the sum over all columns.
    """
    U, P = source.rows[source.population], source.rows[source.positive]
    mass_U, mass_P = source.U.mass, source.P.mass  # each sums to 1
    mean = mass_U @ U
    spread = np.sqrt(mass_U @ (U - mean) ** 2)
    used = np.flatnonzero((source.scaling.factor != 0) & (spread > 0))  # encoded columns that scores depend on
    if not len(used):
        return ()
    h_by_bin = witness.function(np.ones(1), float(len(source.population)))[:, 0]
    h = mean_over_repeats(h_by_bin, witness.population)
    # regression on about FIT_ROWS rows, in even steps
    step = max(1, len(U) // FIT_ROWS)
    X = np.clip((U - mean)[::step][:, used] / spread[used], -CLIP, CLIP)
    weight = mass_U[::step] / mass_U[::step].sum()
    terms = (X - weight @ X) * regression(X, h[::step], weight)
    # sum the terms of each user's column; `column_index` is the position in `column_numbers` of each encoded column
    column_numbers, column_index = np.unique(_user_columns(source.table)[used], return_inverse=True)
    variance = weight @ (terms @ _membership(column_index, np.ones(len(used)))) ** 2
    importance = variance / variance.sum() if variance.sum() > 0 else variance
    difference = (mass_P @ P - mean)[used] / spread[used]
    names, levels = _column_names(source.table, used)
    leading = []
    for k in np.argsort(-importance, kind="stable")[:MOST_COLUMNS]:
        encoded = np.flatnonzero(column_index == k)
        top = encoded[np.argmax(np.abs(difference[encoded]))]  # the level that differs most
        name, level = names[column_numbers[k]], levels[top]
        if level is not None and level.startswith(name):  # "colour = red" becomes "red", and "day (month)" "month"
            level = level.removeprefix(name)
            is_category = level.startswith(" = ")
            level = level.removeprefix(" = ") if is_category else level.removeprefix(" (").removesuffix(")")
        leading.append(Driver(name, level or None, float(difference[top]), float(importance[k])))
    return tuple(leading)


def _membership(column_index: Index, weights: Floats) -> csr_array:
    """Return the sparse matrix (features × columns) by which sums over the features of each column are products.

    `column_index` is the column of each feature, and each column has a feature. A dense matrix would take memory in
    proportion to the square of the number of columns.
    """
    features = np.arange(len(column_index))
    return csr_array((weights, (features, column_index)))


def _user_columns(table: Table) -> Index:
    """Return for each encoded column of a table the number of the user's column that it comes from."""
    return np.arange(table.width) if table.origin is None else table.origin.original_column


def _column_names(table: Table, encoded: Index) -> tuple[list[str], list[str | None]]:
    """Return the names of all columns of the user, and those of the encoded columns with the numbers `encoded`.

    The latter are None for an encoded column that is the only one of its user's column.
    """
    encoded_names = list(table.columns) if table.columns else [f"column {k}" for k in range(table.width)]
    if table.origin is None:
        return encoded_names, [None] * len(encoded)
    column_of, names = _user_columns(table), list(table.origin.columns)
    if len(names) <= column_of.max():  # two columns have the same name
        names = [f"column {k}" for k in range(int(column_of.max()) + 1)]
    is_split = np.bincount(column_of, minlength=len(names)) > 1  # whether a user's column was encoded by several
    return names, [encoded_names[k] if is_split[column_of[k]] else None for k in encoded]


class Column(NamedTuple):
    """A column of the user, and the encoded columns that it became."""

    name: str
    encoded: Index  # numbers of the encoded columns that are used


def leading_columns(source: Source, slopes: Floats) -> tuple[Column, ...]:
    """Return at most ten columns of the user that the witness function h depends on most, the strongest first.

    `slopes` are the coefficients of h in its regression on all encoded columns, each of unit spread. A user's column
    that was encoded by several counts with the sum of their squared slopes.
    """
    table, column_of = source.table, _user_columns(source.table)
    used = np.flatnonzero(source.scaling.factor)  # unused columns have factor 0
    squares = np.bincount(column_of[used], np.abs(slopes[used]) ** 2, int(column_of.max()) + 1)
    user_names = [] if table.origin is None else list(table.origin.columns)
    columns = []
    for k in np.argsort(-squares, kind="stable")[:MOST_COLUMNS]:
        encoded = used[column_of[used] == k]
        if len(encoded):
            name = f"column {user_names[k]!r}" if user_names else table.column(int(k))
            columns.append(Column(name, encoded))
    return tuple(columns)


def mean_over_repeats(h: Floats, bins: Bins) -> Floats:
    """Return h at each row, averaged over repetitions, from its values in bins, shape (repeats, bins).

    `bins` are the bins of the rows in each repetition, shape (repeats, rows).
    """
    return np.asarray(np.mean([h[k][bins[k]] for k in range(len(h))], axis=0))


def regression(X: Floats, y: Floats, mass: Floats) -> Floats:
    """Return the slopes of y on columns of about unit spread, by weighted ridge regression; `mass` sums to 1."""
    X, y = X - mass @ X, y - mass @ y  # centred, so that no intercept is needed
    root = np.sqrt(mass)
    Z, y = root[:, None] * X, root * y
    rows, columns = Z.shape
    penalty = _RIDGE * max(float(np.einsum("ij,ij->", Z, Z)) / columns, 1e-12)
    # the slopes are (ZᵀZ + penalty)⁻¹Zᵀy = Zᵀ(ZZᵀ + penalty)⁻¹y; the smaller matrix is inverted
    if columns <= rows:
        return np.asarray(np.linalg.solve(Z.T @ Z + penalty * np.eye(columns), Z.T @ y))
    return np.asarray(Z.T @ np.linalg.solve(Z @ Z.T + penalty * np.eye(rows), y))
