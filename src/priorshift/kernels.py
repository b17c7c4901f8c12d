"""Kernels k(x, y), the rules for their bandwidth, and how each one fills a tile.

A kernel is asked in three ways: ``kernel(X, Y)`` gives the plain matrix, ``kernel.paired(X, Y)`` the
values k(x_i, y_i), and ``strip`` with ``tile`` are the fast route of :mod:`priorshift.tiles`: a strip
is prepared once and used in many tiles, and a tile holds E with ``k(x_i, y_j) = w_i E_ij w_j``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from priorshift.errors import InputError
from priorshift.parameters import check_bandwidth, check_choice

Matrix = NDArray[np.float64]

_LOG2_E = float(np.log2(np.e))
# The product x·y of a Gaussian tile is exponentiated before the norms are taken off, so it must
# neither overflow nor lose digits: 2**1000 fits a double; in single precision an exponent of 32
# still leaves the kernel value exact to 2e-6, and typical data stay below 5.
_REACH = {np.dtype(np.float64): 1000.0, np.dtype(np.float32): 32.0}
_MEDIAN_ROWS = 1000  # rows from which a median distance is taken: about half a million pairs


@dataclass(frozen=True)
class Strip:
    """Consecutive rows made ready for tiles: scaled rows, the weights w, and the largest exponent."""

    rows: NDArray[Any]
    weights: NDArray[Any]
    reach: float


class SomeRows(Protocol):
    """Rows that can be counted and indexed: a matrix, or a view of one."""

    def __len__(self) -> int: ...
    def __getitem__(self, at: Any, /) -> Matrix: ...


class Kernel(Protocol):
    """What embeddings ask of a kernel."""

    name: ClassVar[str]
    bound: ClassVar[float]  # M = sup k(x, x)
    nonnegative: ClassVar[bool]

    @property
    def bandwidth(self) -> float | None: ...
    def __call__(self, X: Matrix, Y: Matrix) -> Matrix: ...
    def paired(self, X: Matrix, Y: Matrix) -> Matrix: ...
    def strip(self, X: Matrix, dtype: np.dtype[Any]) -> Strip: ...
    def tile(self, A: Strip, B: Strip, out: NDArray[Any]) -> bool: ...


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
    metric: ClassVar[Any] = "euclidean"
    bound: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True

    def __call__(self, X: Matrix, Y: Matrix) -> Matrix:
        return np.exp(cdist(X, Y, "sqeuclidean") / (-2 * self.bandwidth**2))

    def paired(self, X: Matrix, Y: Matrix) -> Matrix:
        return np.exp(((X - Y) ** 2).sum(axis=1) / (-2 * self.bandwidth**2))

    def strip(self, X: Matrix, dtype: np.dtype[Any]) -> Strip:
        rows = X * (np.sqrt(_LOG2_E) / self.bandwidth)
        half = np.einsum("ij,ij->i", rows, rows) / 2
        reach = float(half.max())
        if reach <= _REACH[dtype]:
            rows = rows.astype(dtype)
        return Strip(rows, np.exp2(-half).astype(dtype), reach)

    def tile(self, A: Strip, B: Strip, out: NDArray[Any]) -> bool:
        """Fill `out`; True if the strips' weights still have to be applied.

        exp(−‖x−y‖²/2h²) = w_x · 2^(x·y) · w_y: the norms cost nothing, since the weights enter the
        sums. (Base 2, because numpy's ``exp2`` is the faster of the two.)
        """
        if A.reach + B.reach <= _REACH[out.dtype]:
            np.dot(A.rows, B.rows.T, out=out)
            np.exp2(out, out=out)
            return True
        out[...] = np.exp2(cdist(A.rows, B.rows, "sqeuclidean") / -2)
        return False


class _DistanceKernel:
    """Kernels of a distance that are not smooth at zero: tiles are made from exact differences."""

    def strip(self, X: Matrix, dtype: np.dtype[Any]) -> Strip:
        return Strip(X, np.ones(len(X), dtype), 0.0)

    def tile(self, A: Strip, B: Strip, out: NDArray[Any]) -> bool:
        out[...] = self(A.rows, B.rows)  # type: ignore[operator]
        return False


@dataclass(frozen=True)
class Laplace(_DistanceKernel):
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
    metric: ClassVar[Any] = "cityblock"
    bound: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True

    def __call__(self, X: Matrix, Y: Matrix) -> Matrix:
        return np.exp(cdist(X, Y, "cityblock") / -self.bandwidth)

    def paired(self, X: Matrix, Y: Matrix) -> Matrix:
        return np.exp(np.abs(X - Y).sum(axis=1) / -self.bandwidth)


@dataclass(frozen=True)
class Energy(_DistanceKernel):
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
    metric: ClassVar[Any] = "euclidean"
    bound: ClassVar[float] = np.inf
    nonnegative: ClassVar[bool] = False

    def __call__(self, X: Matrix, Y: Matrix) -> Matrix:
        return -cdist(X, Y)

    def paired(self, X: Matrix, Y: Matrix) -> Matrix:
        return -np.sqrt(((X - Y) ** 2).sum(axis=1))


_KERNELS: dict[str, type[Any]] = {"gaussian": Gaussian, "laplace": Laplace, "energy": Energy}
KERNELS = tuple(_KERNELS)
BANDWIDTHS = ("dimension", "median")


def bandwidth_from_gamma(gamma: float, kernel: str = "gaussian") -> float:
    """Bandwidth h that means the same as scikit-learn's or the paper's gamma (its τ).

    Gaussian: exp(−γd²) = exp(−d²/(2h²)), so h = 1/√(2γ). Laplace: h = 1/γ.

    Examples
    --------
    >>> from priorshift.kernels import bandwidth_from_gamma
    >>> bandwidth_from_gamma(0.5)
    1.0
    """
    if not (np.isfinite(gamma) and gamma > 0):
        raise InputError(f"gamma is {gamma!r}, but it must be a positive number; pass gamma > 0.")
    if kernel not in ("gaussian", "laplace"):
        raise InputError(f"gamma has no meaning for the kernel {kernel!r}; only 'gaussian' and 'laplace' have one.")
    return float(1 / np.sqrt(2 * gamma)) if kernel == "gaussian" else float(1 / gamma)


def make_kernel(kernel: str, bandwidth: str | float, rows: SomeRows, features: int) -> Kernel:
    """Kernel by name, with its bandwidth found from the source `rows` where a rule is asked for.

    ``"dimension"`` is the paper's τ = 1/p with p the number of `features`; ``"median"`` is the median distance
    between rows.
    """
    check_choice("kernel", kernel, KERNELS)
    made = _KERNELS[kernel]
    if made is Energy:
        return Energy()
    if isinstance(bandwidth, str):
        if bandwidth not in BANDWIDTHS:
            raise InputError(
                f"bandwidth is {bandwidth!r}, but it must be a positive number or one of "
                f"{', '.join(map(repr, BANDWIDTHS))}."
            )
        if bandwidth == "dimension":
            h = bandwidth_from_gamma(1 / features, kernel)
        else:
            some = rows[np.linspace(0, len(rows) - 1, min(len(rows), _MEDIAN_ROWS)).astype(int)]
            distances = cdist(some, some, made.metric)[np.triu_indices(len(some), 1)]
            h = float(np.median(distances)) if distances.size else 0.0
            if h == 0:
                raise InputError(
                    "bandwidth='median' gives 0, because at least half of the pairs of source rows are identical; "
                    "pass a number or bandwidth='dimension'."
                )
    else:
        h = check_bandwidth(bandwidth, "a rule's name")
    return made(h)
