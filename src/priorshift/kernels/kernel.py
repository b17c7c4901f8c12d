"""Kernels: the Gaussian one, whose tiles are matrix products, and others, whose tiles are plain kernel matrices.

A kernel is evaluated in three ways: ``kernel(X, Y)`` gives the whole matrix, ``kernel.paired(X, Y)`` the values
k(x_i, y_i), and ``strip`` with ``tile`` are the fast route of :mod:`priorshift.embedding.tiles`: a strip is prepared
once and used in many tiles, and a tile holds E with ``k(x_i, y_j) = w_i E_ij w_j``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from priorshift.arrays import Floats, Index
from priorshift.errors import InputError


@dataclass(frozen=True, eq=False)
class Strip:
    """Consecutive rows, prepared for tiles."""

    rows: NDArray[Any]  # scaled
    weights: NDArray[Any]  # w
    reach: float  # largest exponent of rows that are not far out
    far: Index | None = None  # rows that are far out, which are zero in `rows` and have the weight 1
    outliers: Floats | None = None  # their values, in double precision

    def all_rows(self) -> NDArray[Any]:
        """Return all rows, outliers included."""
        if self.far is None:
            return self.rows
        rows = self.rows.astype(np.float64)
        rows[self.far] = self.outliers
        return rows

    def first(self, count: int) -> Strip:
        """Return the strip of the first rows."""
        far, outliers = self.far, self.outliers
        if far is not None and outliers is not None:
            kept = int(np.searchsorted(far, count))
            far, outliers = (far[:kept], outliers[:kept]) if kept else (None, None)
        return Strip(self.rows[:count], self.weights[:count], self.reach, far, outliers)


class Kernel(Protocol):
    """Interface of a kernel.

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
    def name(self) -> str:
        """Name in results."""

    @property
    def bandwidth(self) -> float | None:
        """Bandwidth h; None for a kernel without one."""

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """Compute k(x_i, y_j) for all pairs of rows."""

    def paired(self, X: Floats, Y: Floats) -> Floats:
        """Compute k(x_i, y_i), row by row."""

    def strip(self, X: Floats, dtype: np.dtype[Any]) -> Strip:
        """Prepare consecutive rows, once for many tiles of the given type."""

    def tile(self, A: Strip, B: Strip, out: NDArray[Any]) -> bool:
        """Fill `out` with E, k(x_i, y_j) = w_i E_ij w_j, and return True; or with k itself, and return False."""


PAIRED_ROWS = 64  # rows of a block, of whose kernel matrix only the diagonal is used


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
        """Return the kernel whose values are the squares of these, with the bandwidth h/2."""
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
    """A kernel from a function k(X, Y) that returns the matrix of all pairs of rows, such as scikit-learn's.

    It must be symmetric and thread-safe. Its bound is not known, so the finite-sample bounds do not apply.

    Attributes
    ----------
    function : callable
        Function of two matrices of rows; returns an array of shape (rows of X, rows of Y).

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
    def name(self) -> str:
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
        """Raise InputError if the function is not symmetric on a few rows."""
        values = self(rows, rows)
        if not np.allclose(values, values.T, rtol=1e-6, atol=1e-9 * float(np.abs(values).max())):
            raise InputError(f"the kernel {self.name} is not symmetric: k(x, y) and k(y, x) must be the same number.")


_LOG2_E = 1 / log(2)
# The product x·y of a Gaussian tile is exponentiated before the norms are subtracted, so it must
# neither overflow nor lose digits: 2**1000 fits a double; in single precision an exponent of 32
# still leaves the kernel value exact to 2e-6, and typical data stay below 5.
_REACH = {np.dtype(np.float64): 1000.0, np.dtype(np.float32): 32.0}
_FEW = 4  # at most one row in so many may be too far out for that, and is treated on its own
_NOTHING = -1e4  # exponent of a kernel value that is zero in either precision


@dataclass(frozen=True)
class Gaussian:
    """Gaussian kernel k(x, y) = exp(−‖x − y‖² / (2h²)), with h the bandwidth.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.kernels import Gaussian
    >>> Gaussian(bandwidth=2.0)(np.array([[0.0]]), np.array([[2.0]])).round(4)
    array([[0.6065]])
    """

    bandwidth: float
    name: ClassVar[str] = "gaussian"
    stationary: ClassVar[bool] = True
    metric: ClassVar[Any] = "euclidean"
    bound: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        return np.exp(cdist(X, Y, "sqeuclidean") / (-2 * self.bandwidth**2))

    def paired(self, X: Floats, Y: Floats) -> Floats:
        return np.exp(((X - Y) ** 2).sum(axis=1) / (-2 * self.bandwidth**2))

    def squared(self) -> Gaussian:
        """Return the kernel whose values are the squares of these, with the bandwidth h/√2."""
        return Gaussian(float(self.bandwidth / np.sqrt(2)))

    def strip(self, X: Floats, dtype: np.dtype[Any]) -> Strip:
        rows = X * (np.sqrt(_LOG2_E) / self.bandwidth)
        half = np.einsum("ij,ij->i", rows, rows) / 2
        far = np.flatnonzero(half > _REACH[dtype] / 2)
        if not len(far):
            return Strip(rows.astype(dtype), np.exp2(-half).astype(dtype), float(half.max()))
        if len(far) > len(half) / _FEW:
            return Strip(rows, np.ones(len(half), dtype), np.inf)
        outliers = rows[far]
        rows[far] = half[far] = 0.0
        return Strip(rows.astype(dtype), np.exp2(-half).astype(dtype), float(half.max()), far, outliers)

    def tile(self, A: Strip, B: Strip, out: NDArray[Any]) -> bool:
        # exp(−‖x−y‖²/2h²) = w_x · 2^(x·y) · w_y: the norms cost nothing, since the weights enter the sums.
        # (Base 2, because numpy's exp2 is the faster of the two.)
        if A.reach + B.reach <= _REACH[out.dtype]:
            np.dot(A.rows, B.rows.T, out=out)
            _place_outliers(A, B, out)
            np.exp2(out, out=out)
            return True
        out[...] = np.exp2(cdist(A.all_rows(), B.all_rows(), "sqeuclidean") / -2)
        return False


def _place_outliers(A: Strip, B: Strip, out: NDArray[Any]) -> None:
    """Fill in the exponents of rows that are far out; two of them may be neighbours."""
    if A.far is not None and A.outliers is not None:
        out[A.far] = _exponents(A.outliers, B.rows)
    if B.far is not None and B.outliers is not None:
        out[:, B.far] = _exponents(B.outliers, A.rows).T
        if A.far is not None and A.outliers is not None:
            apart = cdist(A.outliers, B.outliers, "sqeuclidean") / -2
            out[np.ix_(A.far, B.far)] = np.maximum(apart, _NOTHING)


def _exponents(outliers: Floats, rows: NDArray[Any]) -> Floats:
    """Compute x·y − ‖x‖²/2, bounded from below."""
    half = np.einsum("ij,ij->i", outliers, outliers) / 2
    return np.maximum(outliers @ rows.T.astype(np.float64) - half[:, None], _NOTHING)
