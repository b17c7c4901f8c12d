"""Choice of the device, and exact sums over kernel matrices on a GPU.

The Gaussian kernel has a fused GPU kernel (:mod:`priorshift.embedding.triton_sums`), exact to six digits.
Other kernels, and rows so far out that two half-precision numbers are not accurate enough, use plain tiles in
double precision.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import PackageNotFoundError, version
from math import log
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.errors import InputError, MissingExtraError
from priorshift.io.scaling import Rows
from priorshift.kernels import Energy, Gaussian, Kernel, Laplace

_GPU_KERNELS = (Gaussian, Laplace, Energy)
_LEAST_ROWS = 30_000  # number of rows below which starting torch costs more than it saves
_LOG2_E = 1 / log(2)
_FAR = 8.0  # ‖x‖²/2 of a scaled row, above which two half-precision numbers leave fewer than six digits
_FAR_SHARE = 0.05  # share of rows that may be so far out; if more are, all use plain tiles
_TILE_VALUES = 2**25  # kernel values in a plain tile
_LARGEST_SQUARE = 1e5  # ‖x‖²/2 of a scaled row up to which a product of matrices leaves ten digits of a kernel value
_LEAST_WEIGHT = 2.0**-60  # replaces a weight of zero, whose logarithm is infinite


class KernelSums(Protocol):
    """A function that computes :func:`priorshift.embedding.tiles.kernel_sums` elsewhere, such as on a Dask cluster."""

    def __call__(
        self,
        kernel: Kernel,
        X: Rows,
        Y: Rows | None = None,
        *,
        dtype: np.dtype[Any],
        weights: tuple[Floats | None, Floats | None],
    ) -> tuple[Floats, Floats]:
        """Compute Σ_j w_j k(x_i, y_j) at each row of X and Σ_i v_i k(x_i, y_j) at each row of Y, for `weights` (v, w).

        Without `Y` it is X. Weights of None are weights of 1; `dtype` is the precision of the kernel values.
        """


Device = str | KernelSums  # where kernel sums are computed


def choose_device(device: Device, kernel: Kernel, rows: int) -> Device:
    """Return "cpu", a torch device or the user's function, as `device` says, for the sums of a kernel over many rows.

    "auto" is a GPU where it supports the kernel, there are at least 30,000 `rows` and torch finds one.
    """
    if callable(device):  # a function that computes the sums elsewhere
        return device
    is_supported = isinstance(kernel, _GPU_KERNELS) or hasattr(kernel, "frequencies")  # which only random features have
    resolved = resolve_device(device, worthwhile=is_supported and rows >= _LEAST_ROWS)
    if resolved != "cpu" and not is_supported:
        raise InputError(
            f"device={device!r} supports the kernels 'gaussian', 'laplace' and 'energy', not {kernel.name!r}; use "
            "device='cpu'."
        )
    return resolved


def import_cuda(device: str) -> Any:
    """Import and return torch; raise an error if it is not installed or cannot compute on the device."""
    try:
        import torch
    except ImportError:
        raise MissingExtraError(
            f'device={device!r} needs torch, which is not installed; run pip install "priorshift[torch]", or leave '
            "device out."
        ) from None
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device={device!r} was passed, but torch finds no GPU; leave device out.")
    return torch


def resolve_device(device: Any, *, worthwhile: bool) -> str:
    """Return "cpu" or the name of a torch device; "auto" is "cuda" if a GPU is `worthwhile` and torch finds one."""
    if not isinstance(device, str) or not (device in ("auto", "cpu") or device.startswith("cuda")):
        raise InputError(f"device is {device!r}, but it must be 'auto', 'cpu' or a torch GPU, such as 'cuda'.")
    if device.startswith("cuda"):
        import_cuda(device)
        return device
    if device == "cpu" or not worthwhile or importlib.util.find_spec("torch") is None or _is_without_gpu():
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _is_without_gpu() -> bool:
    """Check whether the installed torch was built without GPU support; importing torch to ask takes two seconds."""
    try:
        return version("torch").endswith("+cpu")
    except PackageNotFoundError:
        return False


def gpu_kernel_sums(
    kernel: Kernel,
    X: Rows,
    Y: Rows | None = None,
    *,
    weights: tuple[Floats | None, Floats | None] = (None, None),
    device: str = "cuda",
) -> tuple[Floats, Floats]:
    """Compute the weighted row sums and column sums of the kernel matrix K(X, Y) on a GPU, without storing it.

    `weights` are v, one for each row of X, and w, one for each row of Y; None stands for weights of 1. Returns
    Σ_j w_j k(x_i, y_j) at each row of X, and Σ_i v_i k(x_i, y_j) at each row of Y. Without `Y` it is X, and w is v.
    """
    torch = import_cuda(device)
    if not isinstance(kernel, _GPU_KERNELS):
        raise ValueError(f"no sums of {kernel.name!r} on a GPU; choose_device says so.")
    x = _to_device(torch, X, device)
    y = None if Y is None else _to_device(torch, Y, device)
    centre = x.mean(dim=0)
    x -= centre  # kernels do not depend on the origin; the accuracy of half precision does
    if y is not None:
        y -= centre
    v, w = (None if array is None else torch.as_tensor(array, dtype=torch.float64, device=device) for array in weights)
    w = v if Y is None else w
    if isinstance(kernel, Gaussian) and device.startswith("cuda"):
        row_sums, column_sums = _gaussian_sums(torch, kernel, x, y, v, w)
    else:
        row_sums, column_sums = _tiled_sums(torch, kernel, x, x if y is None else y, v, w)
    return row_sums.cpu().numpy(), column_sums.cpu().numpy()


def gpu_weighted_kernel_sums(
    kernel: Kernel,
    X: Rows,
    X_counts: Any,
    Y: Rows | None = None,
    Y_counts: Any = None,
    *,
    weights: tuple[Floats | None, Floats | None] = (None, None),
    device: str = "cuda",
) -> Floats:
    """Compute Σ_ij v_i c_ib w_j d_jb k(x_i, y_j) on a GPU for each bootstrap replicate b, in double precision.

    `X_counts` c and `Y_counts` d, arrays or tensors of the device, are how often each row was drawn in each replicate,
    shape (rows, replicates);
    `weights` are v, one for each row of X, and w, one for each row of Y, with None for weights of 1. Without `Y` the
    second sample is the first. A tile of kernel values serves all replicates at once, in a matrix product.
    """
    torch = import_cuda(device)
    if not isinstance(kernel, _GPU_KERNELS):
        raise ValueError(f"no sums of {kernel.name!r} on a GPU; choose_device says so.")
    if Y is None or Y_counts is None:
        Y, Y_counts, weights = X, X_counts, (weights[0], weights[0])
    x, y = _to_device(torch, X, device), _to_device(torch, Y, device)
    c, d = (torch.as_tensor(counts, device=device) for counts in (X_counts, Y_counts))
    v, w = (None if array is None else torch.as_tensor(array, dtype=torch.float64, device=device) for array in weights)

    def weighted(counts: Any, row_weights: Any, rows: slice) -> Any:
        """Return the counts of these rows in double precision, times the weight of each row."""
        values = counts[rows].double()
        return values if row_weights is None else values * row_weights[rows, None]

    total = torch.zeros(X_counts.shape[1], dtype=torch.float64, device=device)
    for x_rows in _slices(len(x)):
        x_weighted = weighted(c, v, x_rows)
        for y_rows in _slices(len(y)):
            product = _kernel_values(torch, kernel, x[x_rows], y[y_rows]) @ weighted(d, w, y_rows)
            total += (x_weighted * product).sum(dim=0)
    return np.asarray(total.cpu().numpy())


def counts_to_gpu(counts: NDArray[np.uint8], device: str) -> Any:
    """Copy the counts of a bootstrap to the device, where several sums use them."""
    return import_cuda(device).as_tensor(counts, device=device)


def gpu_sum_over_rows(values: Floats, counts: Any, power: int = 1) -> Floats:
    """Compute Σ value·count^power over the rows, for each replicate, as `sum_over_rows` does; counts are a tensor."""
    torch = import_cuda(str(counts.device))
    total = torch.zeros(counts.shape[1], dtype=torch.float64, device=counts.device)
    values_there = torch.as_tensor(values, dtype=torch.float64, device=counts.device)
    for rows in _slices(len(values)):
        total += values_there[rows] @ counts[rows].double() ** power
    return np.asarray(total.cpu().numpy())


def _slices(rows: int) -> list[slice]:
    """Cut the numbers of `rows` rows into consecutive slices, each as long as the side of a square tile."""
    side = int(np.sqrt(_TILE_VALUES))
    return [slice(k, k + side) for k in range(0, rows, side)]


def _to_device(torch: Any, rows: Rows, device: str) -> Any:
    """Copy rows to the device as a double-precision tensor of shape (rows, features), and scale the features there."""
    X = rows.X if rows.index is None else rows.X[rows.index]
    x, shift, factor = (
        torch.as_tensor(array, dtype=torch.float64, device=device) for array in (X, rows.shift, rows.factor)
    )
    return (x - shift) * factor


def _gaussian_sums(torch: Any, kernel: Gaussian, x: Any, y: Any, v: Any, w: Any) -> tuple[Any, Any]:
    """Compute Σ_j w_j k(x_i, y_j) at each row of x and Σ_i v_i k(x_i, y_j) at each row of y, for a Gaussian kernel.

    x and y are centred tensors on the device; y is None where it is x. v and w are the weights of their rows; None for
    weights of 1. A fused GPU kernel sums the pairs of rows near the centre, and plain tiles those with far rows.
    """
    from priorshift.embedding.triton_sums import fused_sums

    scale = np.sqrt(_LOG2_E) / kernel.bandwidth  # of scaled rows, k(x, y) = 2^(x·y − ‖x‖²/2 − ‖y‖²/2)

    def exponents(rows: Any, weights: Any) -> Any:
        """Compute −‖x‖²/2 of each scaled row x, and the same plus log₂ of the row's weight."""
        power = -((rows * scale) ** 2).sum(dim=1) / 2
        return power, power if weights is None else power + torch.log2(weights.clamp(min=_LEAST_WEIGHT))

    (x_power, x_exponent), (y_power, y_exponent) = exponents(x, v), (exponents(x, v) if y is None else exponents(y, w))
    far_x, far_y = x_power < -_FAR, y_power < -_FAR
    if max(float(far_x.double().mean()), float(far_y.double().mean())) > _FAR_SHARE:
        return _tiled_sums(torch, kernel, x, x if y is None else y, v, w)
    if y is None and not bool(far_x.any()):
        row_sums, column_sums = fused_sums(x * scale, None, x_exponent, None)
        row_sums = column_sums = _without_own_weight(row_sums, v)
        return row_sums, column_sums
    other = x if y is None else y
    near_x, near_y = ~far_x, ~far_y
    near_row_sums, near_column_sums = fused_sums(
        x[near_x] * scale, other[near_y] * scale, x_exponent[near_x], y_exponent[near_y]
    )
    row_sums, column_sums = torch.zeros_like(x_power), torch.zeros_like(y_power)
    row_sums[near_x] = _without_own_weight(near_row_sums, None if v is None else v[near_x])
    column_sums[near_y] = _without_own_weight(near_column_sums, None if w is None else w[near_y])
    # pairs that are left: far rows of x with all rows of y, and near rows of x with far rows of y
    for x_mask, y_mask in ((far_x, torch.ones_like(far_y)), (near_x, far_y)):
        if bool(x_mask.any()) and bool(y_mask.any()):
            masked_v, masked_w = None if v is None else v[x_mask], None if w is None else w[y_mask]
            more_rows, more_columns = _tiled_sums(torch, kernel, x[x_mask], other[y_mask], masked_v, masked_w)
            row_sums[x_mask] += more_rows
            column_sums[y_mask] += more_columns
    return row_sums, column_sums


def _without_own_weight(sums: Any, weights: Any) -> Any:
    """Divide the fused kernel's sum at each row by that row's own weight; None for weights of 1.

    The fused kernel multiplies every pair by both weights, but a row's sum is to have only those of the other sample.
    """
    return sums if weights is None else sums / weights.clamp(min=_LEAST_WEIGHT)


def _tiled_sums(torch: Any, kernel: Gaussian | Laplace | Energy, x: Any, y: Any, v: Any, w: Any) -> tuple[Any, Any]:
    """Compute Σ_j w_j k(x_i, y_j) at each row of x and Σ_i v_i k(x_i, y_j) at each row of y, tile by tile.

    All are double-precision tensors on one device; v and w are the weights of the rows of x and y; None for weights
    of 1.
    """
    row_sums = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    column_sums = torch.zeros(len(y), dtype=torch.float64, device=x.device)
    height = max(1, min(len(x), 8192))
    width = max(1, min(len(y), _TILE_VALUES // height))
    for i in range(0, len(x), height):
        x_rows = slice(i, i + height)
        for j in range(0, len(y), width):
            y_rows = slice(j, j + width)
            k = _kernel_values(torch, kernel, x[x_rows], y[y_rows])
            row_sums[x_rows] += k.sum(dim=1) if w is None else k @ w[y_rows]
            column_sums[y_rows] += k.sum(dim=0) if v is None else v[x_rows] @ k
    return row_sums, column_sums


def _kernel_values(torch: Any, kernel: Gaussian | Laplace | Energy, x: Any, y: Any) -> Any:
    """Compute k(x_i, y_j) for all pairs of rows of two tensors, shape (rows of x, rows of y), on their device."""
    if isinstance(kernel, Laplace):
        return torch.exp(torch.cdist(x, y, p=1.0) / -kernel.bandwidth)
    if isinstance(kernel, Gaussian):
        centre = x.mean(dim=0)
        x, y = ((rows - centre) / kernel.bandwidth for rows in (x, y))
        x_square, y_square = ((rows**2).sum(dim=1) / 2 for rows in (x, y))
        if float(torch.maximum(x_square.max(), y_square.max())) < _LARGEST_SQUARE:
            # ‖x − y‖²/2 by a matrix product, which is many times faster than by differences
            exponent = torch.addmm(-x_square[:, None] - y_square, x, y.T)
            return exponent.clamp_(max=0.0).exp_()
    # from differences, because the matrix product loses the distance of close rows far from the origin
    distance = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    return torch.exp(distance**2 / -2) if isinstance(kernel, Gaussian) else -distance
