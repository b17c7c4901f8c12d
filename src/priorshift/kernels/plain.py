"""Kernels without a faster route: a tile is the plain matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.kernels.kernel import Strip

PAIRED_ROWS = 64  # of a function that only knows matrices: so many times more work than pairs


class _PlainKernel:
    """Strips that are the rows themselves. (Distances need exact differences near zero.)"""

    def strip(self, X: Floats, dtype: np.dtype[Any]) -> Strip:
        return Strip(X, np.ones(len(X), dtype), 0.0)

    def tile(self, A: Strip, B: Strip, out: NDArray[Any]) -> bool:
        out[...] = self(A.rows, B.rows)  # type: ignore[operator]
        return False


@dataclass(frozen=True)
class Laplace(_PlainKernel):
    """Laplace kernel k(x, y) = exp(−‖x − y‖₁ / h), scikit-learn's ``laplacian`` with gamma = 1/h.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.kernels import Laplace
    >>> Laplace(bandwidth=3.0)(np.array([[0.0, 0.0]]), np.array([[1.0, -2.0]])).round(4)
    array([[0.3679]])
    """

    bandwidth: float
    name: ClassVar[str] = "laplace"
    stationary: ClassVar[bool] = True
    metric: ClassVar[Any] = "cityblock"
    bound: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        return np.exp(cdist(X, Y, "cityblock") / -self.bandwidth)

    def paired(self, X: Floats, Y: Floats) -> Floats:
        return np.exp(np.abs(X - Y).sum(axis=1) / -self.bandwidth)

    def squared(self) -> Laplace:
        """Give the kernel whose values are the squares of these.

        Returns
        -------
        Laplace
            Of the bandwidth h/2.
        """
        return Laplace(self.bandwidth / 2)


@dataclass(frozen=True)
class Energy(_PlainKernel):
    """Kernel of the energy distance, k(x, y) = −‖x − y‖; it has no bandwidth.

    It is positive definite on differences of means, and only those are ever used. It is unbounded,
    so the finite-sample bounds of the paper do not apply to it.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.kernels import Energy
    >>> Energy()(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[-5.]])
    """

    bandwidth: None = None
    name: ClassVar[str] = "energy"
    stationary: ClassVar[bool] = True
    metric: ClassVar[Any] = "euclidean"
    bound: ClassVar[float] = np.inf
    nonnegative: ClassVar[bool] = False

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        return -cdist(X, Y)

    def paired(self, X: Floats, Y: Floats) -> Floats:
        return -np.sqrt(((X - Y) ** 2).sum(axis=1))


@dataclass(frozen=True)
class FromFunction(_PlainKernel):
    """A kernel of your own: a function k(X, Y) that gives the matrix of all pairs of rows, such as scikit-learn's.

    Nothing is known of its bound, so the finite-sample bounds do not apply. It must be symmetric and give the same
    answer from several threads at once.

    Attributes
    ----------
    function : callable
        Of two matrices of rows; returns an array of shape (rows of X, rows of Y).

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.kernels import FromFunction
    >>> FromFunction(lambda X, Y: X @ Y.T)(np.array([[2.0]]), np.array([[3.0], [4.0]]))
    array([[6., 8.]])
    """

    function: Callable[[Floats, Floats], Any]
    bandwidth: ClassVar[None] = None
    bound: ClassVar[float] = np.inf
    nonnegative: ClassVar[bool] = False
    stationary: ClassVar[bool] = False

    @property
    def name(self) -> str:  # numpydoc ignore=RT01
        """The function's name."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        try:
            values = np.asarray(self.function(X, Y), dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the kernel {self.name} cannot be used ({error}); a matrix of numbers is expected."
            ) from error
        if values.shape != (len(X), len(Y)) or not np.isfinite(values).all():
            raise InputError(
                f"the kernel {self.name} gave an array of shape {values.shape} for {len(X)} and {len(Y)} rows, or "
                f"values that are not finite; a finite number for each pair, shape {(len(X), len(Y))}, is expected."
            )
        return values

    def paired(self, X: Floats, Y: Floats) -> Floats:
        blocks = (slice(k, k + PAIRED_ROWS) for k in range(0, len(X), PAIRED_ROWS))
        return np.concatenate([np.empty(0), *(np.diagonal(self(X[block], Y[block])) for block in blocks)])

    def check_symmetry(self, rows: Floats) -> None:
        """Refuse a function that is no kernel, as far as a few rows show it.

        Parameters
        ----------
        rows : ndarray of shape (rows, features)
            Some of the source.
        """
        values = self(rows, rows)
        if not np.allclose(values, values.T, rtol=1e-6, atol=1e-9 * float(np.abs(values).max())):
            raise InputError(f"the kernel {self.name} is not symmetric: k(x, y) and k(y, x) must be the same number.")
