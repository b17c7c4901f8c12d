"""Kernels k(x, y), and the choice of one by its name and a rule for the bandwidth.

A kernel is evaluated in three ways: ``kernel(X, Y)`` gives the whole matrix, ``kernel.paired(X, Y)`` the values
k(x_i, y_i), and ``strip`` with ``tile`` are the fast route of :mod:`priorshift.embedding.tiles`: a strip is prepared
once and used in many tiles, and a tile holds E with ``k(x_i, y_j) = w_i E_ij w_j``. Tiles of the Gaussian kernel are
matrix products; those of other kernels are plain kernel matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.io.parameters import check_bandwidth, check_choice
from priorshift.io.scaling import Rows


@dataclass(frozen=True, eq=False)
class Strip:
    """Consecutive rows, prepared for tiles; "far" rows have a norm too large for the Gaussian kernel's fast route."""

    rows: NDArray[Any]  # scaled
    weights: NDArray[Any]  # w in k(x_i, y_j) = w_i E_ij w_j, with E the tile of two strips
    reach: float  # largest ‖x‖²/2 of scaled rows that are not far
    far: Any = ()  # increasing positions of far rows, which are zero in `rows` and have the weight 1
    outliers: Any = ()  # values of the far rows, in double precision

    def all_rows(self) -> NDArray[Any]:
        """Return the scaled rows with the values of far rows, which are zero in `rows`."""
        if not len(self.far):
            return self.rows
        rows = self.rows.astype(np.float64)
        rows[self.far] = self.outliers
        return rows

    def first(self, count: int) -> Strip:
        """Return the strip of the first `count` rows."""
        far = int(np.searchsorted(self.far, count))  # number of far rows among them; `far` is sorted
        return Strip(self.rows[:count], self.weights[:count], self.reach, self.far[:far], self.outliers[:far])


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
        """Prepare consecutive rows once, for many tiles of this type."""

    def tile(self, A: Strip, B: Strip, out: NDArray[Any]) -> bool:
        """Fill `out` with E, for which k(x_i, y_j) = w_i E_ij w_j, and return True; or with k itself, and return False.

        x_i and y_j are the rows of the strips A and B, and w are the weights of these.
        """


_PAIRED_ROWS = 64  # rows of a block in `paired` of a user's function; only the diagonal of its matrix is used


class _PlainKernel:
    """A kernel whose strips are the rows themselves. (Distances need exact differences near zero.)"""

    bound: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True
    stationary: ClassVar[bool] = True

    def strip(self, X: Floats, dtype: np.dtype[Any]) -> Strip:
        """Prepare consecutive rows for `tile`: as they are, with weights of 1."""
        return Strip(X, weights=np.ones(len(X), dtype), reach=0.0)

    def tile(self, A: Strip, B: Strip, out: NDArray[Any]) -> bool:
        """Fill `out` with k(x_i, y_j) of two strips of rows; False says that no weights have to be applied."""
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
    metric: ClassVar[Any] = "cityblock"  # of scipy's cdist

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """Compute k(x_i, y_j) for all pairs of rows."""
        return np.exp(cdist(X, Y, "cityblock") / -self.bandwidth)

    def paired(self, X: Floats, Y: Floats) -> Floats:
        """Compute k(x_i, y_i), row by row."""
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
    bound: ClassVar[float] = np.inf
    nonnegative: ClassVar[bool] = False

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """Compute −‖x_i − y_j‖ for all pairs of rows."""
        return -cdist(X, Y)

    def paired(self, X: Floats, Y: Floats) -> Floats:
        """Compute −‖x_i − y_i‖, row by row."""
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
        """Name of the function, or of its class where it has none."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """Compute k(x_i, y_j) for all pairs of rows, and check that the function returned such a matrix."""
        try:
            values = np.asarray(self.function(X, Y), dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError(f"the kernel {self.name} failed ({error}); it must return a matrix of numbers.") from error
        if values.shape != (len(X), len(Y)) or not np.isfinite(values).all():
            shapes = f"{values.shape}, but finite numbers of shape {(len(X), len(Y))} are expected"
            raise InputError(f"the kernel {self.name} gave an array of shape {shapes}.")
        return values

    def paired(self, X: Floats, Y: Floats) -> Floats:
        """Compute k(x_i, y_i), row by row, as the diagonals of small matrices; empty without rows."""
        values = [np.empty(0)]
        for start in range(0, len(X), _PAIRED_ROWS):
            block = slice(start, start + _PAIRED_ROWS)
            values.append(np.diagonal(self(X[block], Y[block])))
        return np.concatenate(values)


_LOG2_E = 1 / log(2)
# The product x·y of a Gaussian tile is exponentiated before the norms are subtracted, so it must
# neither overflow nor lose digits: 2**1000 fits a double; in single precision an exponent of 32
# still leaves the kernel value exact to 2e-6, and typical data stay below 5.
_REACH = {np.dtype(np.float64): 1000.0, np.dtype(np.float32): 32.0}
_FAR_ROWS = 4  # up to one row in four may be too far out for that and is treated separately; with more, all rows are
_NOTHING = -1e4  # exponent of base 2 whose power is zero in either precision


@dataclass(frozen=True)
class Gaussian(_PlainKernel):
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
    metric: ClassVar[Any] = "euclidean"

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """Compute k(x_i, y_j) for all pairs of rows."""
        return np.exp(cdist(X, Y, "sqeuclidean") / (-2 * self.bandwidth**2))

    def paired(self, X: Floats, Y: Floats) -> Floats:
        """Compute k(x_i, y_i), row by row."""
        return np.exp(((X - Y) ** 2).sum(axis=1) / (-2 * self.bandwidth**2))

    def squared(self) -> Gaussian:
        """Return the kernel whose values are the squares of these, with the bandwidth h/√2."""
        return Gaussian(float(self.bandwidth / np.sqrt(2)))

    def strip(self, X: Floats, dtype: np.dtype[Any]) -> Strip:
        """Scale rows by √(log₂e)/h, so that k(x, y) = 2^(−‖x−y‖²/2), and compute the weights w = 2^(−‖x‖²/2).

        Rows far from the origin are set aside as outliers; with many of them, an infinite `reach` excludes the fast
        route of `tile`, whose 2^(x·y) could overflow.
        """
        rows = X * (np.sqrt(_LOG2_E) / self.bandwidth)
        half_norms = np.einsum("ij,ij->i", rows, rows) / 2  # ‖x‖²/2
        far = np.flatnonzero(half_norms > _REACH[dtype] / 2)
        if len(far) > len(half_norms) / _FAR_ROWS:
            return Strip(rows, np.ones(len(half_norms), dtype), reach=np.inf)
        outliers = rows[far]
        rows[far] = half_norms[far] = 0.0
        return Strip(rows.astype(dtype), np.exp2(-half_norms).astype(dtype), float(half_norms.max()), far, outliers)

    def tile(self, A: Strip, B: Strip, out: NDArray[Any]) -> bool:
        """Fill `out` with 2^(x·y) of the scaled rows x of A and y of B, and return True: the weights are to be applied.

        Where 2^(x·y) may overflow, fill it with k(x, y) itself and return False.
        """
        # exp(−‖x−y‖²/2h²) = w_x · 2^(x·y) · w_y: the norms cost nothing, since the weights enter the sums.
        # (Base 2, because numpy's exp2 is faster than its exp.)
        if A.reach + B.reach <= _REACH[out.dtype]:
            np.dot(A.rows, B.rows.T, out=out)
            # far rows, which are zero in `rows`, have the weight 1: the exponents of their pairs contain their norms
            if len(A.far):
                out[A.far] = _exponents(A.outliers, B.rows)
            if len(B.far):
                out[:, B.far] = _exponents(B.outliers, A.rows).T
            if len(A.far) and len(B.far):  # which may be close to each other
                out[np.ix_(A.far, B.far)] = np.maximum(cdist(A.outliers, B.outliers, "sqeuclidean") / -2, _NOTHING)
            np.exp2(out, out=out)
            return True
        out[...] = np.exp2(cdist(A.all_rows(), B.all_rows(), "sqeuclidean") / -2)
        return False


def _exponents(outliers: Floats, rows: NDArray[Any]) -> Floats:
    """Compute the exponents x·y − ‖x‖²/2 for outliers x, whose weight is 1, and scaled rows y; bounded from below."""
    half_norms = np.einsum("ij,ij->i", outliers, outliers) / 2
    return np.maximum(outliers @ rows.T.astype(np.float64) - half_norms[:, None], _NOTHING)


_MEDIAN_ROWS = 1000  # rows from which a median distance is taken: about half a million pairs
_KERNELS: dict[str, type[Any]] = {"gaussian": Gaussian, "laplace": Laplace, "energy": Energy}
KERNELS = tuple(_KERNELS)
_BANDWIDTH_RULES = ("dimension", "median", "variance")


def bandwidth_from_gamma(gamma: float, kernel: str = "gaussian") -> float:
    """Compute the bandwidth h that means the same as scikit-learn's or the paper's gamma (its τ).

    Parameters
    ----------
    gamma : float
        γ > 0.
    kernel : {"gaussian", "laplace"}

    Returns
    -------
    float
        1/√(2γ) for the Gaussian kernel, since exp(−γd²) = exp(−d²/(2h²)), and 1/γ for the Laplace kernel.

    Examples
    --------
    >>> from priorshift.kernels import bandwidth_from_gamma
    >>> bandwidth_from_gamma(0.5)
    1.0
    """
    if not (np.isfinite(gamma) and gamma > 0):
        raise InputError(f"gamma is {gamma!r}, but it must be a positive number; pass gamma > 0.")
    check_choice("kernel", kernel, ("gaussian", "laplace"))
    return float(1 / np.sqrt(2 * gamma)) if kernel == "gaussian" else float(1 / gamma)


def make_kernel(kernel: Any, bandwidth: str | float, rows: Rows | Floats, features: int) -> Kernel:
    """Build the kernel by its name, or check one that a user passed; `rows` are those of the population sample.

    `bandwidth` is a number or a rule: "dimension" is the paper's τ = 1/p for p `features`, "median" the median distance
    between rows, and "variance" the median of the distances above zero, whose multiples are compared later.
    """
    if not isinstance(kernel, str):
        return _check_own_kernel(kernel, bandwidth, rows)
    check_choice("kernel", kernel, KERNELS)
    if kernel == "energy":
        if bandwidth != "dimension":  # the default
            raise InputError(f"bandwidth is {bandwidth!r}, but the kernel 'energy' has none; leave it out.")
        return Energy()
    kernel_class = _KERNELS[kernel]
    if bandwidth == "dimension":
        return kernel_class(bandwidth_from_gamma(1 / features, kernel))
    if bandwidth not in _BANDWIDTH_RULES:
        return kernel_class(check_bandwidth(bandwidth, f"one of {', '.join(map(repr, _BANDWIDTH_RULES))}"))
    subsample = rows[np.linspace(0, len(rows) - 1, min(len(rows), _MEDIAN_ROWS)).astype(int)]  # evenly spaced
    distances = cdist(subsample, subsample, kernel_class.metric)[np.triu_indices(len(subsample), 1)]  # each pair once
    if bandwidth == "variance":
        distances = distances[distances > 0]
    h = float(np.median(distances)) if distances.size else 0.0
    if h == 0:
        reason = "at least half of the pairs of source rows are identical"
        raise InputError(f"bandwidth={bandwidth!r} gives 0, because {reason}; pass a number or 'dimension'.")
    return kernel_class(h)


def _check_own_kernel(kernel: Any, bandwidth: str | float, rows: Rows | Floats) -> Kernel:
    """Check a kernel object, or a function k(X, Y) on some of the rows, that a user passed; return it as a kernel.

    `bandwidth` must be "dimension", the default, since such a kernel has its own.
    """
    if isinstance(kernel, type) or not callable(kernel):
        raise InputError(
            f"kernel is {kernel!r}, but it must be one of {', '.join(map(repr, KERNELS))}, a kernel such as "
            "kernels.Laplace(3.0), or a function k(X, Y)."
        )
    if bandwidth != "dimension":
        raise InputError(f"bandwidth is {bandwidth!r}, but a kernel object has its own; set it there.")
    members = ("paired", "strip", "tile", "name", "bandwidth", "bound", "nonnegative", "stationary")
    if not all(hasattr(kernel, name) for name in members):  # not a complete `Kernel`, so a plain function
        kernel = FromFunction(kernel)
    if isinstance(kernel, FromFunction):
        values = kernel(rows[:_PAIRED_ROWS], rows[:_PAIRED_ROWS])
        if not np.allclose(values, values.T, rtol=1e-6, atol=1e-9 * float(np.abs(values).max())):
            raise InputError(f"the kernel {kernel.name} is not symmetric: k(x, y) and k(y, x) must be equal.")
    elif kernel.bandwidth is not None or isinstance(kernel, (Gaussian, Laplace)):
        check_bandwidth(kernel.bandwidth, "None, if the kernel has none")
    return kernel
