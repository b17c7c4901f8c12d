"""What embeddings ask of a kernel.

It is asked in three ways: ``kernel(X, Y)`` gives the plain matrix, ``kernel.paired(X, Y)`` the values k(x_i, y_i), and
``strip`` with ``tile`` are the fast route of :mod:`priorshift.embedding.tiles`: a strip is prepared once and used in
many tiles, and a tile holds E with ``k(x_i, y_j) = w_i E_ij w_j``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index


@dataclass(frozen=True, eq=False)
class Strip:
    """Consecutive rows made ready for tiles.

    Attributes
    ----------
    rows : ndarray of shape (rows, features)
        Scaled.
    weights : ndarray of shape (rows,)
        The weights w.
    reach : float
        The largest exponent, of rows that are not far out.
    far : ndarray of int or None
        Which rows are: each is zero in `rows` and has the weight 1.
    outliers : ndarray of shape (far rows, features) or None
        What they are, in double precision.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.kernels import Laplace
    >>> strip = Laplace(1.0).strip(np.eye(3), np.dtype(float))
    >>> strip.first(2).whole()
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """

    rows: NDArray[Any]
    weights: NDArray[Any]
    reach: float
    far: Index | None = None
    outliers: Floats | None = None

    def whole(self) -> NDArray[Any]:
        """Give all rows as they are.

        Returns
        -------
        ndarray of shape (rows, features)
        """
        if self.far is None:
            return self.rows
        rows = self.rows.astype(np.float64)
        rows[self.far] = self.outliers
        return rows

    def first(self, count: int) -> Strip:
        """Give the first rows alone.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        Strip
        """
        far, outliers = self.far, self.outliers
        if far is not None and outliers is not None:
            kept = int(np.searchsorted(far, count))
            far, outliers = (far[:kept], outliers[:kept]) if kept else (None, None)
        return Strip(self.rows[:count], self.weights[:count], self.reach, far, outliers)


class Kernel(Protocol):
    """What embeddings ask of a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.kernels import Gaussian, Kernel
    >>> kernel: Kernel = Gaussian(2.0)
    >>> kernel.name, kernel.bandwidth, kernel.bound
    ('gaussian', 2.0, 1.0)
    >>> kernel.paired(np.zeros((1, 3)), np.ones((1, 3))).round(3)
    array([0.687])
    """

    bound: ClassVar[float]  # M = sup k(x, x)
    nonnegative: ClassVar[bool]
    stationary: ClassVar[bool]  # whether k(x, x) is the same for every x

    @property
    def name(self) -> str:  # numpydoc ignore=RT01
        """What results call it."""

    @property
    def bandwidth(self) -> float | None:  # numpydoc ignore=RT01
        """h; None where there is none."""

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """Compute k(x_i, y_j) for all pairs of rows.

        Parameters
        ----------
        X, Y : ndarray of shape (rows, features)

        Returns
        -------
        ndarray of shape (rows of X, rows of Y)
        """

    def paired(self, X: Floats, Y: Floats) -> Floats:
        """Compute k(x_i, y_i), row by row.

        Parameters
        ----------
        X, Y : ndarray of shape (rows, features)

        Returns
        -------
        ndarray of shape (rows,)
        """

    def strip(self, X: Floats, dtype: np.dtype[Any]) -> Strip:
        """Prepare consecutive rows, once for many tiles.

        Parameters
        ----------
        X : ndarray of shape (rows, features)
        dtype : dtype
            Of the tiles.

        Returns
        -------
        Strip
        """

    def tile(self, A: Strip, B: Strip, out: NDArray[Any]) -> bool:
        """Fill `out` with E, k(x_i, y_j) = w_i E_ij w_j, or with k itself.

        Parameters
        ----------
        A, B : Strip
            Of the rows x_i and y_j.
        out : ndarray of shape (rows of A, rows of B)

        Returns
        -------
        bool
            Whether the strips' weights still have to be applied.
        """
