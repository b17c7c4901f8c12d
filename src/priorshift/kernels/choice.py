"""Choice of the kernel by its name and a rule for the bandwidth, or from a user's own kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.io.parameters import check_bandwidth, check_choice
from priorshift.io.scaling import Rows
from priorshift.kernels.kernel import PAIRED_ROWS, Energy, FromFunction, Gaussian, Kernel, Laplace

_MEDIAN_ROWS = 1000  # rows from which a median distance is taken: about half a million pairs
_KERNELS: dict[str, type[Any]] = {"gaussian": Gaussian, "laplace": Laplace, "energy": Energy}
KERNELS = tuple(_KERNELS)
BANDWIDTHS = ("dimension", "median", "variance")


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
    if kernel not in ("gaussian", "laplace"):
        raise InputError(f"gamma has no meaning for the kernel {kernel!r}; only 'gaussian' and 'laplace' have one.")
    return float(1 / np.sqrt(2 * gamma)) if kernel == "gaussian" else float(1 / gamma)


def make_kernel(kernel: Any, bandwidth: str | float, rows: Rows | Floats, features: int) -> Kernel:
    """Build the kernel; a rule for the bandwidth is applied to rows of the population sample.

    "dimension" is the paper's τ = 1/p, "median" the median distance between rows, "variance" the median of those
    that are not zero, whose multiples are compared later.
    """
    if not isinstance(kernel, str):
        return _own_kernel(kernel, bandwidth, rows)
    check_choice("kernel", kernel, KERNELS)
    kind = _KERNELS[kernel]
    rules = f"{', '.join(map(repr, BANDWIDTHS[:-1]))} or {BANDWIDTHS[-1]!r}"
    if isinstance(bandwidth, str) and bandwidth not in BANDWIDTHS:
        raise InputError(f"bandwidth is {bandwidth!r}, but it must be a positive number or one of {rules}.")
    if kind is Energy:
        if bandwidth != "dimension":
            raise InputError(f"bandwidth is {bandwidth!r}, but the kernel 'energy' has none; leave it out.")
        return Energy()
    if not isinstance(bandwidth, str):
        return kind(check_bandwidth(bandwidth, rules))
    if bandwidth == "dimension":
        return kind(bandwidth_from_gamma(1 / features, kernel))
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), _MEDIAN_ROWS)).astype(int)]
    distances = cdist(some, some, kind.metric)[np.triu_indices(len(some), 1)]
    if bandwidth == "variance":
        distances = distances[distances > 0]
    h = float(np.median(distances)) if distances.size else 0.0
    if h == 0:
        raise InputError(
            f"bandwidth={bandwidth!r} gives 0, because at least half of the pairs of source rows are identical; "
            "pass a number or bandwidth='dimension'."
        )
    return kind(h)


def _own_kernel(kernel: Any, bandwidth: str | float, rows: Rows | Floats) -> Kernel:
    if isinstance(kernel, type) or not callable(kernel):
        raise InputError(
            f"kernel is {kernel!r}, but it must be one of {', '.join(map(repr, KERNELS))}, a kernel such as "
            "kernels.Laplace(3.0), or a function k(X, Y)."
        )
    if bandwidth != "dimension":  # the default: the kernel has its own
        raise InputError(f"bandwidth is {bandwidth!r}, but a kernel object has its own; set it there.")
    needed = ("paired", "strip", "tile", "name", "bandwidth", "bound", "nonnegative", "stationary")
    if not all(hasattr(kernel, name) for name in needed):
        kernel = FromFunction(kernel)
    if isinstance(kernel, FromFunction):
        kernel.check_symmetry(rows[: min(len(rows), PAIRED_ROWS)])
    elif kernel.bandwidth is not None or isinstance(kernel, (Gaussian, Laplace)):
        check_bandwidth(kernel.bandwidth, "of a kernel that has none, None")
    return kernel
