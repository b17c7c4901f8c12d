"""Which columns moved beyond what a change of the share explains.

Label shift holds for each column alone, with one ratio R for all. A column that drifted moves the R that fits all of
them, so that the others would seem to have moved too; so the worst is left out of R as long as it stands out, and then
all are judged by the R of the others. The p-values are adjusted for many columns by the largest statistic among those
that are not yet rejected, in the same resamples (Westfall and Young's step-down).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from priorshift.arrays import Floats, Index, Mask
from priorshift.diagnosis.resampling import Mean
from priorshift.diagnosis.residual import Gram, Residual, smallest
from priorshift.numerals import p_words, written

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
        return f"{which}: {written(self.moved, 2, '+')} standard deviations, {p_words(self.p_value)}"


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
