"""The Gaussian kernel, whose tiles are matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from priorshift.arrays import Floats
from priorshift.kernels.kernel import Strip

_LOG2_E = 1 / log(2)
# The product x·y of a Gaussian tile is exponentiated before the norms are taken off, so it must
# neither overflow nor lose digits: 2**1000 fits a double; in single precision an exponent of 32
# still leaves the kernel value exact to 2e-6, and typical data stay below 5.
_REACH = {np.dtype(np.float64): 1000.0, np.dtype(np.float32): 32.0}
_FEW = 4  # of rows that lie too far out for that at most one in so many is treated on its own
_NOTHING = -1e4  # the exponent of a kernel value that is zero in either precision


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
        """Give the kernel whose values are the squares of these.

        Returns
        -------
        Gaussian
            Of the bandwidth h/√2.
        """
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
        out[...] = np.exp2(cdist(A.whole(), B.whole(), "sqeuclidean") / -2)
        return False


def _place_outliers(A: Strip, B: Strip, out: NDArray[Any]) -> None:
    """Exponents of rows that are far out, with their norms taken off; two of them may be neighbours."""
    if A.far is not None and A.outliers is not None:
        out[A.far] = _exponents(A.outliers, B.rows)
    if B.far is not None and B.outliers is not None:
        out[:, B.far] = _exponents(B.outliers, A.rows).T
        if A.far is not None and A.outliers is not None:
            apart = cdist(A.outliers, B.outliers, "sqeuclidean") / -2
            out[np.ix_(A.far, B.far)] = np.maximum(apart, _NOTHING)


def _exponents(outliers: Floats, rows: NDArray[Any]) -> Floats:
    """x·y − ‖x‖²/2, which may be beyond all bounds."""
    half = np.einsum("ij,ij->i", outliers, outliers) / 2
    return np.maximum(outliers @ rows.T.astype(np.float64) - half[:, None], _NOTHING)
