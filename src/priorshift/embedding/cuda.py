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

_KNOWN = (Gaussian, Laplace, Energy)
_MANY = 30_000  # rows, below which starting torch costs more than it saves
_LOG2_E = 1 / log(2)
_FAR = 8.0  # |x|²/2 in powers of two, above which two halves leave fewer than six digits
_FEW = 0.05  # share of rows that may be so far out; if more are, all use plain tiles
_TILE = 2**25  # values of a plain tile
_LEAST_WEIGHT = 2.0**-60  # stands for a weight of zero, since a row's own sum is needed all the same


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
        """Compute the row sums and the column sums of K(X, Y)."""


Device = str | KernelSums  # where kernel sums are computed


def choose_device(device: Device, kernel: Kernel, rows: int) -> Device:
    """Resolve the device for a kernel: "auto" is a GPU where there are many rows and torch finds one."""
    if callable(device):
        return device
    is_supported = isinstance(kernel, _KNOWN) or hasattr(kernel, "frequencies")  # random features
    resolved = resolve_device(device, worthwhile=is_supported and rows >= _MANY)
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
    """Return "cpu" or a torch device; "auto" is "cuda" if a GPU is `worthwhile` and torch finds one."""
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
    """Compute row and column sums of K(X, Y), as :func:`priorshift.embedding.tiles.kernel_sums` does."""
    torch = import_cuda(device)
    if not isinstance(kernel, _KNOWN):
        raise ValueError(f"no sums of {kernel.name!r} on a GPU; choose_device says so.")
    x = _to_device(torch, X, device)
    y = None if Y is None else _to_device(torch, Y, device)
    centre = x.mean(dim=0)
    x -= centre  # kernels do not depend on the origin; the accuracy of half precision does
    if y is not None:
        y -= centre
    v, w = (None if one is None else torch.as_tensor(one, dtype=torch.float64, device=device) for one in weights)
    w = v if Y is None else w  # weights of the rows of X and of Y
    if isinstance(kernel, Gaussian) and device.startswith("cuda"):
        rows, columns = _gaussian(torch, kernel, x, y, v, w)
    else:
        rows, columns = _tiles(torch, kernel, x, x if y is None else y, v, w)
    return rows.cpu().numpy(), columns.cpu().numpy()


def gpu_weighted_kernel_sums(
    kernel: Kernel,
    X: Rows,
    W: NDArray[Any],
    Y: Rows | None = None,
    V: NDArray[Any] | None = None,
    *,
    weights: tuple[Floats | None, Floats | None] = (None, None),
    device: str = "cuda",
) -> Floats:
    """Compute Σ_ij w_ib v_jb k(x_i, y_j), as :func:`priorshift.embedding.tiles.weighted_kernel_sums` does.

    In double precision: a tile is multiplied by the counts of all replicates at once, and the GPU's matrix product is
    then most of the work.
    """
    torch = import_cuda(device)
    if not isinstance(kernel, _KNOWN):
        raise ValueError(f"no sums of {kernel.name!r} on a GPU; choose_device says so.")
    if Y is None or V is None:
        Y, V, weights = X, W, (weights[0], weights[0])
    x, y = _to_device(torch, X, device), _to_device(torch, Y, device)
    left, right = (torch.as_tensor(counts, device=device) for counts in (W, V))
    v, w = (None if one is None else torch.as_tensor(one, dtype=torch.float64, device=device) for one in weights)

    def weighted(counts: Any, weight: Any, at: slice) -> Any:
        """Return the counts of the rows `at` in double precision, times the weight of each row."""
        values = counts[at].double()
        return values if weight is None else values * weight[at, None]

    total = torch.zeros(W.shape[1], dtype=torch.float64, device=device)
    for at in _slices(len(x)):
        of_x = weighted(left, v, at)
        for to in _slices(len(y)):
            product = _values(torch, kernel, x[at], y[to]) @ weighted(right, w, to)
            total += (of_x * product).sum(dim=0)
    return np.asarray(total.cpu().numpy())


def _slices(rows: int) -> list[slice]:
    """Cut rows into slices as long as the side of a square tile."""
    side = int(np.sqrt(_TILE))
    return [slice(k, k + side) for k in range(0, rows, side)]


def _to_device(torch: Any, rows: Rows, device: str) -> Any:
    """Move the rows to the device in double precision, and scale them there."""
    X = rows.X if rows.index is None else rows.X[rows.index]
    x, shift, factor = (
        torch.as_tensor(one, dtype=torch.float64, device=device) for one in (X, rows.shift, rows.factor)
    )
    return (x - shift) * factor


def _gaussian(torch: Any, kernel: Gaussian, x: Any, y: Any, v: Any, w: Any) -> tuple[Any, Any]:
    """Sum with the fused GPU kernel where rows are near the centre, and with tiles where they are far from it."""
    from priorshift.embedding.triton_sums import fused_sums

    scale = np.sqrt(_LOG2_E) / kernel.bandwidth

    def exponent(rows: Any, weight: Any) -> Any:
        """Compute −‖x‖²/2 of scaled rows, alone and with the logarithm of each row's weight added."""
        half = -((rows * scale) ** 2).sum(dim=1) / 2
        return half, half if weight is None else half + torch.log2(weight.clamp(min=_LEAST_WEIGHT))

    (size_x, of_x), (size_y, of_y) = exponent(x, v), (exponent(x, v) if y is None else exponent(y, w))
    far_x, far_y = size_x < -_FAR, size_y < -_FAR
    if max(float(far_x.double().mean()), float(far_y.double().mean())) > _FEW:
        return _tiles(torch, kernel, x, x if y is None else y, v, w)
    if y is None and not bool(far_x.any()):
        rows, columns = fused_sums(x * scale, None, of_x, None)
        rows = columns = _unweighted(rows, v)
        return rows, columns
    other = x if y is None else y
    near_x, near_y = ~far_x, ~far_y
    some_rows, some_columns = fused_sums(x[near_x] * scale, other[near_y] * scale, of_x[near_x], of_y[near_y])
    rows, columns = torch.zeros_like(size_x), torch.zeros_like(size_y)
    rows[near_x] = _unweighted(some_rows, None if v is None else v[near_x])
    columns[near_y] = _unweighted(some_columns, None if w is None else w[near_y])
    for at, to in ((far_x, torch.ones_like(far_y)), (near_x, far_y)):
        if bool(at.any()) and bool(to.any()):
            of_v, of_w = None if v is None else v[at], None if w is None else w[to]
            more_rows, more_columns = _tiles(torch, kernel, x[at], other[to], of_v, of_w)
            rows[at] += more_rows
            columns[to] += more_columns
    return rows, columns


def _unweighted(sums: Any, weight: Any) -> Any:
    """Divide each sum by the weight of its own row, which the fused kernel multiplied it by."""
    return sums if weight is None else sums / weight.clamp(min=_LEAST_WEIGHT)


def _tiles(torch: Any, kernel: Gaussian | Laplace | Energy, x: Any, y: Any, v: Any, w: Any) -> tuple[Any, Any]:
    """Compute row and column sums of K(x, y) in double precision, one tile after the other.

    v and w are the weights of the rows x and y; None for equal weights.
    """
    rows = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    columns = torch.zeros(len(y), dtype=torch.float64, device=x.device)
    height = max(1, min(len(x), 8192))
    width = max(1, min(len(y), _TILE // height))
    for i in range(0, len(x), height):
        at = slice(i, i + height)
        for j in range(0, len(y), width):
            to = slice(j, j + width)
            k = _values(torch, kernel, x[at], y[to])
            rows[at] += k.sum(dim=1) if w is None else k @ w[to]
            columns[to] += k.sum(dim=0) if v is None else v[at] @ k
    return rows, columns


def _values(torch: Any, kernel: Gaussian | Laplace | Energy, x: Any, y: Any) -> Any:
    """Compute k(x_i, y_j) for all pairs of rows on the device."""
    if isinstance(kernel, Laplace):
        return torch.exp(torch.cdist(x, y, p=1.0) / -kernel.bandwidth)
    # from differences, because the faster matrix product loses the distance of close rows far from the origin
    distance = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    return torch.exp(distance**2 / (-2 * kernel.bandwidth**2)) if isinstance(kernel, Gaussian) else -distance
