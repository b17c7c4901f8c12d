"""Functions of a row for which label shift is tested: of all columns at once, of each column, and of the score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index, Mask
from priorshift.input.scaling import Rows
from priorshift.input.source import Source
from priorshift.input.tables import Table
from priorshift.scores import mixture

_SCALES = (0.3, 1.0)  # c of the kernels exp(−c‖x−y‖²/p); 1 is TCPU's
_LANDMARKS = 256
_LEAST_LONG = 1e-6  # of the longest axis: what single precision can tell of a shorter one is rounding
_COSINES = 5  # of the p-value
_OF_COLUMN = (2, 3, 4)  # cosines of the rank in a column, beside its value
_FAR = 8.0  # standard deviations
_KNOTS = 1000  # of a distribution function


@dataclass(frozen=True, eq=False)
class KernelFeatures:
    """A mean of Gaussian kernels on the span of landmarks, on rows as the scores' models take them.

    With all rows as landmarks it is the kernel itself; a few hundred leave hardly anything of it out (Nyström), and
    unlike random features they need no seed.

    Attributes
    ----------
    landmarks : ndarray of shape (landmarks, columns)
        Rows of P, U and T, as many of each as its share of all rows.
    axes : ndarray of shape (landmarks, features)
        What makes orthonormal coordinates of the kernel's values at the landmarks, the longest axis first.
    """

    landmarks: Floats
    axes: Floats

    @classmethod
    def of(cls, rows: Sequence[Rows | Floats], prepare: Callable[[Floats], Floats]) -> KernelFeatures:
        """Of some samples."""
        total = sum(map(len, rows))
        landmarks = np.concatenate([prepare(x[evenly(len(x), round(_LANDMARKS * len(x) / total))]) for x in rows])
        length, axes = np.linalg.eigh(_kernel(landmarks, landmarks).astype(np.float64))
        kept = np.flatnonzero(length > _LEAST_LONG * length[-1])[::-1]
        return cls(landmarks, axes[:, kept] / np.sqrt(length[kept]))

    def values(self, prepared: Floats) -> NDArray[np.float32]:
        """The kernel at the landmarks."""
        return _kernel(prepared, self.landmarks)

    def __call__(self, prepared: Floats, axes: int | None = None) -> NDArray[np.float32]:
        """Coordinates of rows, on the longest axes alone where their number is given."""
        return np.asarray(self.values(prepared) @ self.axes[:, :axes].astype(np.float32))


def evenly(rows: int, most: int) -> Index:
    """Positions of at most so many rows, at least one, in even steps."""
    count = min(rows, max(most, 1))
    return np.asarray((np.arange(count) + 0.5) * rows / count, dtype=np.intp)


def _kernel(X: Floats, Y: Floats) -> NDArray[np.float32]:
    """In single precision: label shift holds for every function of a row, a rounded one too."""
    x, y = X.astype(np.float32), Y.astype(np.float32)
    squares = np.einsum("ij,ij->i", x, x)[:, None] + np.einsum("ij,ij->i", y, y)
    squares -= 2 * x @ y.T
    squares = np.maximum(squares, 0) / -x.shape[1]
    return np.asarray(sum(np.exp(np.float32(scale) * squares) for scale in _SCALES) / np.float32(len(_SCALES)))


def cosines_of_p_value() -> Floats:
    """cos(kπv) in each bin of the p-value v, shape (features, bins); their mean is 0 where v is uniform."""
    middle = (np.arange(mixture.BINS) + 0.5) / mixture.BINS
    return np.asarray(np.cos(np.pi * np.outer(np.arange(1, _COSINES + 1), middle)))


@dataclass(frozen=True, eq=False)
class ColumnFeatures:
    """Of each column its value in standard deviations of U, and cosines of its rank among U.

    Attributes
    ----------
    column : ndarray of int
        The user's column that each feature is of.
    is_value : ndarray of bool
        Whether a feature is the value itself, or one of the levels of a category.
    encoded : ndarray of int
        The column of the encoded table that each feature is of.
    spread : ndarray
        Standard deviations of the encoded columns among U; 0 where they are left out.
    knots : list of ndarray or None
        Values of each encoded column, in order; None for one that has no ranks.
    """

    column: Index
    is_value: Mask
    encoded: Index
    spread: Floats
    knots: Sequence[Floats | None]

    @classmethod
    def of(cls, source: Source, population: Floats) -> ColumnFeatures:
        """From the scaled rows of U."""
        origin, width = source.table.origin, population.shape[1]
        mass = source.population_mass
        centred = population - mass @ population
        spread = np.where(source.scaling.factor != 0, np.sqrt(mass @ centred**2), 0.0)
        of = np.arange(width) if origin is None else origin.of
        has_ranks = np.ones(width, dtype=bool) if origin is None else ~origin.own_scale
        knots: list[Floats | None] = []
        column, value, encoded = [], [], []
        for k in range(width):
            if spread[k] == 0:
                knots.append(None)
                continue
            knots.append(_knots(population[:, k], mass) if has_ranks[k] else None)
            features = 1 + len(_OF_COLUMN) * has_ranks[k]
            column += [of[k]] * features
            encoded += [k] * features
            value += [True] + [False] * (features - 1)
        return cls(np.array(column, dtype=np.intp), np.array(value, dtype=bool), np.array(encoded), spread, knots)

    def __call__(self, rows: Floats) -> Floats:
        made: list[NDArray[np.float64]] = []
        for k, knots in enumerate(self.knots):
            if self.spread[k] == 0:
                continue
            made.append(np.clip(rows[:, k] / self.spread[k], -_FAR, _FAR))
            if knots is not None:
                below = np.searchsorted(knots, rows[:, k], "left") + np.searchsorted(knots, rows[:, k], "right")
                made += [np.cos(np.pi * order * below / (2 * len(knots))) for order in _OF_COLUMN]
        return np.stack(made, axis=1)


def column_names(table: Table, encoded: Index) -> tuple[list[str], list[str | None]]:
    """Names of the user's columns; and of each encoded column, which level it is, None where the name says all."""
    names = list(table.columns) if table.columns else [f"column {k}" for k in range(table.width)]
    if table.origin is None:
        return names, [None] * len(encoded)
    of, of_encoded = table.origin.of, names
    names = list(table.origin.columns)
    if len(names) <= of.max():  # two columns of one name
        names = [f"column {k}" for k in range(int(of.max()) + 1)]
    several = np.bincount(of, minlength=len(names)) > 1
    return names, [of_encoded[k] if several[of[k]] else None for k in encoded]


def _knots(values: Floats, mass: Floats) -> Floats:
    """As many values as a distribution function needs, each of the same mass."""
    order = np.argsort(values, kind="stable")
    if len(values) <= _KNOTS and np.ptp(mass) == 0:
        return np.asarray(values[order])
    middle = np.cumsum(mass[order]) - mass[order] / 2
    at = (np.arange(_KNOTS) + 0.5) / _KNOTS
    return np.asarray(values[order][np.minimum(np.searchsorted(middle, at), len(values) - 1)])
