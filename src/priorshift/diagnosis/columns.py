"""Which columns moved beyond what a change of the share explains.

Label shift holds for each column alone, with one ratio R for all. A column that drifted moves the R that fits all of
them, so that the others would seem to have moved too; so the worst is left out of R as long as it stands out, and then
all are judged by the R of the others. The p-values are adjusted for many columns by the largest statistic among those
that are not yet rejected, in the same resamples (Westfall and Young's step-down).

Which columns tell the positives from the population: how far they differ, and what the score makes of it.

The score is looked at through h = 1 − f_P/f_U, the witness of R = 1 but for a factor, in the rows of U. Its linear part
is Σ β_j x_j, by the regression of h on the columns, and a column rests it by the variance of its own term; the terms of
the levels of one category are one. Two columns that say the same share what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from priorshift.arrays import Floats, Index, Mask
from priorshift.diagnosis.residual_features import column_names
from priorshift.diagnosis.residuals import Gram, Mean, Residual, smallest
from priorshift.diagnosis.violation import MOST_COLUMNS, regression
from priorshift.formatting import format_fixed, format_p, format_percent
from priorshift.problem import Source
from priorshift.result_tables import to_plain
from priorshift.scores.witness import Witness

_LEVEL = 0.05  # below which a column is left out of R
_ROUNDS = 12  # of leaving out
_SHARE = 0.1  # of the columns that stand out, left out in a round
_OF_SHAPE = 0.2  # what a cosine of the rank counts beside the value: a mean moves more often than a shape
_LEAST_LEFT = 0.01  # of a variance
_MOST = 10.0  # the largest ratio that a move is said at: a larger one would make of noise in a any move
_TINY = 1e-300


@dataclass(frozen=True)
class ColumnShift:
    """What label shift leaves unexplained of one column.

    Attributes
    ----------
    name : str
        The column.
    moved : float
        By how much its mean, or the share of its level, moved beyond what a change of the prior explains, in standard
        deviations of the population sample.
    level : str or None
        Of a category or an encoded column, the one that moved most.
    statistic : float
        In about standard normal units; large where the column moved in mean or shape.
    p_value : float
        Adjusted for the number of columns.
    """

    name: str
    moved: float
    level: str | None
    statistic: float
    p_value: float

    def __str__(self) -> str:
        which = f"{self.name} ({self.level})" if self.level else self.name
        return f"{which}: {format_fixed(self.moved, 2, '+')} standard deviations, {format_p(self.p_value)}"


class _Judged(NamedTuple):
    """Of every column its statistic, the same in resamples, and the residual of its features."""

    statistic: Floats
    null: Floats  # (resamples, columns)
    residual: Floats
    ratio: float


def unexplained(
    means: tuple[Mean, Mean, Mean], column: Index, is_value: Mask, names: list[str], levels: list[str | None]
) -> tuple[ColumnShift, ...]:
    """Judge every column; those that moved most stand first.

    Parameters
    ----------
    means : three Mean
        Of P, U and T.
    column, is_value : ndarray of shape (features,)
        The number of each feature's column, and whether it is a value that `moved` is said of.
    names : list of str
        Of the columns, by their numbers.
    levels : list of str or None
        What each feature is called besides; None where the column's name says all.
    """
    numbers, code = np.unique(column, return_inverse=True)
    code = code.reshape(-1)
    if not len(numbers):
        return ()
    kept = np.ones(len(numbers), dtype=bool)
    ratio = 1.0
    for _ in range(_ROUNDS):
        judged = _judge(means, code, is_value, kept, ratio)
        ratio = judged.ratio
        p = _adjusted(judged.statistic[kept], judged.null[:, kept])
        out = np.flatnonzero(kept)[p <= _LEVEL]
        if not len(out) or 2 * (kept.sum() - 1) < len(kept):
            break
        most = max(1, min(round(_SHARE * len(out)), int(kept.sum() - len(kept) / 2)))
        kept[out[np.argsort(-judged.statistic[out])][:most]] = False
    judged = _judge(means, code, is_value, kept, ratio)
    p = _adjusted(judged.statistic, judged.null)
    made = []
    for k in np.argsort(-judged.statistic, kind="stable"):
        values = np.flatnonzero((code == k) & is_value)
        most = values[np.argmax(np.abs(judged.residual[values]))]
        made.append(
            ColumnShift(
                names[numbers[k]], float(judged.residual[most]), levels[most], float(judged.statistic[k]), float(p[k])
            )
        )
    return tuple(made)


def _judge(means: tuple[Mean, Mean, Mean], code: Index, is_value: Mask, kept: Mask, ratio: float) -> _Judged:
    """By the ratio of the columns that are kept, whose features count by their noise at `ratio`."""
    P, U, T = means
    noise = T.noise - (1 - ratio) * P.noise - ratio * U.noise
    spread = np.sqrt((noise**2).mean(axis=0))
    scale = np.where(spread > 0, 1 / np.maximum(spread, _TINY), 0.0)
    inside = kept[code]
    fitted = Residual.of(*(mean.take(slice(None), scale * inside) for mean in means))
    whole = Residual.of(*(mean.take(slice(None), scale) for mean in means))
    R = fitted.ratio
    # the noise of every feature by itself, so that it is known at every ratio
    N = Gram(*((x * y).mean(axis=0) for x, y in _pairs(whole.noise_b, whole.noise_a)))
    residual = whole.b - R * whole.a
    # a of a column that is left out of R has its own noise alone
    supposed = np.where(inside, fitted.supposed, whole.a)
    b, a = R * supposed + whole.noise_b, supposed + whole.noise_a
    inner = Gram.of(b[:, inside], a[:, inside])
    _, r = smallest(inner, fitted.noise)
    at = r[:, None]
    # of a resample the noise that all others have
    variance = N.at(at) + (N.at(at) - (whole.noise_b - at * whole.noise_a) ** 2) / (len(at) - 1)
    # and, as in Student's statistic, its own: what few rows put far off they make look noisy
    for mean, factor in ((P, 1 - at), (U, at), (T, 1.0)):
        squares = (mean.noise * scale) ** 2
        variance = variance + factor**2 * (squares.mean(axis=0) - squares) / (mean.size - 1)
    resampled = (b - at * a) ** 2 / np.maximum(variance, np.maximum(_LEAST_LEFT * N.at(at), _TINY))
    together = np.zeros((len(code), len(kept)))
    together[np.arange(len(code)), code] = np.where(is_value, 1.0, _OF_SHAPE)
    statistic = residual**2 / np.maximum(N.at(R), _TINY) @ together
    said = (whole.b - np.clip(R, 0.0, _MOST) * whole.a) / np.where(scale > 0, scale, 1.0)
    return _Judged(*_normal(statistic, resampled @ together), said, R)


def _pairs(b: Floats, a: Floats) -> tuple[tuple[Floats, Floats], ...]:
    return (b, b), (a, b), (a, a)


def _normal(statistic: Floats, null: Floats) -> tuple[Floats, Floats]:
    """Cube roots of mean squares, about normal (Wilson and Hilferty), by their mean and spread in the other resamples.

    By its own as well, the largest of a few hundred would seem smaller than it is.
    """
    roots, count = np.cbrt(null), len(null)
    total, squares = roots.sum(axis=0), (roots**2).sum(axis=0)

    def standardized(root: Floats, own: Floats | float, others: int) -> Floats:
        mean = (total - own) / others
        variance = (squares - np.square(own)) / others - mean**2
        return np.asarray((root - mean) / np.sqrt(np.maximum(variance, _TINY)))

    return standardized(np.cbrt(statistic), 0.0, count), standardized(roots, roots, count - 1)


def _adjusted(statistic: Floats, null: Floats) -> Floats:
    """Step-down: each against the largest of those that are no larger than it, and no smaller than the one before."""
    order = np.argsort(-statistic, kind="stable")
    largest = np.maximum.accumulate(null[:, order[::-1]], axis=1)[:, ::-1]
    p = (1 + (largest >= statistic[order]).sum(axis=0)) / (len(null) + 1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(p)
    return adjusted


_FIT_ROWS = 5000  # of the regression
_FAR = 8.0  # standard deviations, beyond which a value is cut off, as scores do


@dataclass(frozen=True)
class Driver:
    """A column that tells positives from the population.

    Attributes
    ----------
    name : str
        The column.
    level : str or None
        Of a category or another column that was encoded by several, the one that differs most.
    difference : float
        Mean of P less mean of U, of that level, in standard deviations of U.
    importance : float
        What the column makes up of all that the score rests on, from 0 to 1.
    """

    name: str
    level: str | None
    difference: float
    importance: float

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers and text.

        Returns
        -------
        dict
        """
        return to_plain(vars(self))

    def __str__(self) -> str:
        which = f"{self.name} ({self.level})" if self.level else self.name
        off = format_fixed(self.difference, 2, "+")
        return f"{which}: {format_percent(self.importance)}, positives {off} standard deviations off"


def drivers(source: Source, witness: Witness) -> tuple[Driver, ...]:
    """Name the columns that the score rests on; at most ten.

    Parameters
    ----------
    source : Source
        With its rows.
    witness : Witness
        Of its scores.

    Returns
    -------
    tuple of Driver
        The most important one first; columns that are left out are not among them.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.diagnosis.columns import drivers
    >>> from priorshift.problem import Source
    >>> from priorshift.scores.scored_source import ScoredSource
    >>> from priorshift.scores.witness import Witness
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(900, 2)), np.repeat([1, 0], [300, 600])
    >>> X[:420, 0] += 2  # all positives, and a fifth of the population
    >>> source = Source.read(X, y, None, scenario="case-control", standardize=True)
    >>> scored = ScoredSource.fit(source, None, repeats=2, folds=5, rng=rng)
    >>> first, second = drivers(source, Witness.from_scores(scored, source.without_rows(), *scored.mixture))
    >>> first.name, first.importance > 0.9 > 0.1 > second.importance
    ('column 0', True)
    """
    step = max(1, len(source.population) // _FIT_ROWS)
    U, P = (source.rows[rows] for rows in (source.population, source.positive))
    mass_P, mass = source.positive_mass, source.population_mass
    mean = mass @ U
    spread = np.sqrt(mass @ (U - mean) ** 2)
    used = np.flatnonzero((source.scaling.factor != 0) & (spread > 0))
    if not len(used):
        return ()
    h = witness.function(np.ones(1), float(len(source.population)))[:, 0]
    of_row = np.mean([h[k][bins] for k, bins in enumerate(witness.population)], axis=0)
    some = np.clip((U - mean)[::step][:, used] / spread[used], -_FAR, _FAR)
    weight = mass[::step] / mass[::step].sum()
    terms = (some - weight @ some) * regression(some, of_row[::step], weight)
    origin = source.table.origin
    of = used if origin is None else origin.of[used]
    numbers, code = np.unique(of, return_inverse=True)
    code = code.reshape(-1)
    together = np.zeros((len(used), len(numbers)))
    together[np.arange(len(used)), code] = 1.0
    variance = weight @ (terms @ together) ** 2
    share = variance / variance.sum() if variance.sum() > 0 else variance
    differs = (mass_P @ P - mean)[used] / spread[used]
    names, levels = column_names(source.table, used)
    made = []
    for k in np.argsort(-share, kind="stable")[:MOST_COLUMNS]:
        own = np.flatnonzero(code == k)
        most = own[np.argmax(np.abs(differs[own]))]
        name = names[numbers[k]]
        made.append(Driver(name, _level(name, levels[most]), float(differs[most]), float(share[k])))
    return tuple(made)


def _level(name: str, encoded: str | None) -> str | None:
    """What an encoded column is called without the name of the one that it is of."""
    if encoded is None or not encoded.startswith(name):
        return encoded
    rest = encoded.removeprefix(name)
    return (rest.removeprefix(" = ") if rest.startswith(" = ") else rest.removeprefix(" (").removesuffix(")")) or None
