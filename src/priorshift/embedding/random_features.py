"""Random features: a map z of rows to R^D whose inner products are a kernel, close to a Gaussian or Laplace one.

z(x) holds cos(ω·x) and sin(ω·x) of D/2 random frequencies ω, scaled so that ‖z(x)‖ = 1 (Rahimi and Recht 2007).
k(x, y) = z(x)·z(y) is a kernel of its own, so an estimate with it is consistent for any D, and more features
only reduce its variance. A mean embedding μ = Σ mass·z(x) is a vector of D numbers with the value z(x)·μ at a row,
so that time is linear in rows.

Frequencies of a Gaussian kernel are orthogonal in blocks of as many as there are columns, which brings z(x)·z(y) closer
to the Gaussian kernel (Yu et al. 2016). Those of the Laplace kernel are independent Cauchy numbers.

Rows are mapped a block at a time, on all cores or a GPU. Blocks are added up in their order, so the answer does not
depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from priorshift import threads
from priorshift.arrays import Floats, Mask
from priorshift.embedding.gpu_sums import import_cuda
from priorshift.errors import InputError
from priorshift.io.parameters import check_count
from priorshift.io.scaling import Rows
from priorshift.kernels import Gaussian, Kernel, Laplace
from priorshift.kernels.kernel import Strip

LEAST_FEATURES = 16
# Rows of a source up to which "auto" is exact: 5·10⁹ pairs, five seconds on two cores, for the Gaussian kernel, and a
# tenth as many for the Laplace kernel, whose pairs take ten times as long. On a GPU (an H200) it is seconds for these.
_EXACT_ROWS: dict[type[Any], tuple[int, int]] = {Gaussian: (100_000, 4_000_000), Laplace: (30_000, 1_000_000)}
_CELLS = 2**17  # features held at a time: 1 MB, which stay in the cache
_GPU_CELLS = 2**26  # features held at a time on a GPU: half a gigabyte
_AHEAD = 4  # blocks for each thread that are computed before their results are added up
Buffer = tuple[Floats, Floats]  # for the features of rows, and for tangents on the way to them


@dataclass(frozen=True, eq=False)
class RandomFeatures:
    """The map z, and its kernel z(x)·z(y)."""

    kernel: Gaussian | Laplace  # the kernel that is approximated
    frequencies: Floats  # ω divided by the bandwidth, shape (columns, D/2)
    bound: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = False
    stationary: ClassVar[bool] = True

    @classmethod
    def draw(cls, kernel: Kernel, columns: int, features: int, rng: np.random.Generator) -> RandomFeatures:
        """Draw random frequencies for rows with this number of columns; `features` is D, an even number."""
        check_features(features)
        if isinstance(kernel, Gaussian):
            return cls(kernel, _orthogonal_frequencies(columns, features // 2, rng) / kernel.bandwidth)
        if isinstance(kernel, Laplace):
            return cls(kernel, rng.standard_cauchy((columns, features // 2)) / kernel.bandwidth)
        raise InputError(
            f"the kernel {kernel.name!r} has no random features; use 'gaussian', 'laplace' or embedding='exact'."
        )

    @property
    def size(self) -> int:
        """D, the number of features."""
        return 2 * self.frequencies.shape[1]

    @property
    def name(self) -> str:
        """Name in results: that of the approximated kernel, with the number of features."""
        return f"{self.kernel.name} ({self.size} random features)"

    @property
    def bandwidth(self) -> float:
        """Bandwidth of the approximated kernel."""
        return self.kernel.bandwidth

    @property
    def block(self) -> int:
        """Number of rows to map at a time."""
        return max(1, _CELLS // self.size)

    def buffer(self, rows: int) -> Buffer:
        """Allocate memory for `map` of this number of rows: for their features, and for tangents on the way to them."""
        return np.empty((rows, self.size)), np.empty((rows, self.size // 2))

    def map(self, X: Floats, buffer: Buffer | None = None) -> Floats:
        """Compute z of each row, shape (rows, D); a `buffer` for at least as many rows is overwritten and returned."""
        K = self.frequencies.shape[1]
        scale = 1 / np.sqrt(K)  # so that ‖z‖ = 1, since cos² + sin² = 1 for each of K frequencies
        z, t = (array[: len(X)] for array in buffer or self.buffer(len(X)))
        cos, sin = z[:, :K], z[:, K:]
        # with t = tan(a/2), cos a = 2/(1+t²) − 1 and sin a = 2t/(1+t²): one slow function in place of two
        np.tan(np.matmul(X, self.frequencies / 2, out=t), out=t)
        np.multiply(t, t, out=cos)
        cos += 1
        np.divide(2 * scale, cos, out=cos)
        np.multiply(cos, t, out=sin)
        cos -= scale
        return z

    def with_unused_columns(self, columns: Mask) -> RandomFeatures:
        """Return the same map for rows with more columns, of which it uses those marked True."""
        frequencies = np.zeros((len(columns), self.frequencies.shape[1]))
        frequencies[columns] = self.frequencies
        return RandomFeatures(self.kernel, frequencies)

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """Compute z(x_i)·z(y_j) for all pairs of rows."""
        return self.map(X) @ self.map(Y).T

    def paired(self, X: Floats, Y: Floats) -> Floats:
        """Compute z(x_i)·z(y_i), row by row: the mean of cos ω·(x − y), which is exactly 1 at x = y."""
        values = np.empty(len(X))
        for k in range(0, len(X), self.block):
            at = slice(k, k + self.block)
            values[at] = np.cos((X[at] - Y[at]) @ self.frequencies).mean(axis=1)
        return values

    def strip(self, X: Floats, dtype: np.dtype[Any]) -> Strip:
        """Prepare consecutive rows for `tile`: their features, with weights of 1."""
        return Strip(self.map(X).astype(dtype), weights=np.ones(len(X), dtype), reach=0.0)

    def tile(self, A: Strip, B: Strip, out: NDArray[Any]) -> bool:
        """Fill `out` with z(x_i)·z(y_j) of two prepared strips; False says that no weights have to be applied."""
        np.dot(A.rows, B.rows.T, out=out)
        return False


def check_features(features: Any) -> None:
    """Raise InputError unless the number of features is even and large enough."""
    if check_count("features", features, LEAST_FEATURES) % 2:
        raise InputError(f"features is {features}, but each frequency gives two of them; pass an even number.")


def kernel_details(kernel: Kernel) -> dict[str, Any]:
    """Return the name and bandwidth of the kernel, and whether it is exact, for the details of an estimate."""
    if isinstance(kernel, RandomFeatures):
        return kernel_details(kernel.kernel) | {"embedding": f"{kernel.size} random features"}
    return {"kernel": kernel.name, "bandwidth": kernel.bandwidth, "embedding": "exact"}


def uses_random_features(embedding: str, kernel: Kernel, rows: int, device: str, *, exact: bool = False) -> bool:
    """Decide whether to use random features, by the setting `embedding`: "random-features", "exact" or "auto".

    "auto" uses them if the source has more `rows` than exact sums are fast for, unless `exact` sums are needed.
    """
    if embedding == "random-features":
        return True
    if embedding == "exact" or exact or type(kernel) not in _EXACT_ROWS:
        return False
    cpu_limit, gpu_limit = _EXACT_ROWS[type(kernel)]
    return rows > (cpu_limit if device == "cpu" else gpu_limit)


def _orthogonal_frequencies(columns: int, count: int, rng: np.random.Generator) -> Floats:
    """Draw `count` frequencies of a Gaussian kernel with bandwidth 1, shape (columns, count) (Yu et al. 2016).

    Directions are orthogonal in blocks of as many as there are columns; lengths are those of standard normal vectors.
    """
    blocks = []
    for start in range(0, count, columns):
        width = min(columns, count - start)
        directions, _ = np.linalg.qr(rng.normal(size=(columns, width)))
        blocks.append(directions * np.sqrt(rng.chisquare(columns, width)))
    return np.concatenate(blocks, axis=1)


def feature_mean(features: RandomFeatures, rows: Rows, mass: Floats, device: str = "cpu") -> Floats:
    """Compute the mean embedding Σ mass·z(x) of rows x, a vector of D numbers; `mass` has one number for each row."""
    parts = _map_blocks(features, rows, device, lambda z, at, to_device: to_device(mass[at]) @ z)
    return np.asarray(sum(parts, start=np.zeros(features.size)))


def bootstrap_means(
    features: RandomFeatures, rows: Rows, mass: Floats, counts: NDArray[np.uint8], device: str = "cpu"
) -> Floats:
    """Compute the mean embedding Σ count·mass·z(x) of each bootstrap replicate, shape (replicates, D).

    `mass` has one number for each row; `counts`, how often a row was drawn, has the shape (rows, replicates).
    """

    def block_sums(z: Any, at: slice, to_device: Callable[[Floats], Any]) -> Any:
        """Compute the sums over the rows `at`, whose features are z."""
        return to_device((counts[at] * mass[at, None]).T) @ z

    parts = _map_blocks(features, rows, device, block_sums)
    return np.asarray(sum(parts, start=np.zeros((counts.shape[1], features.size))))


def feature_values(features: RandomFeatures, rows: Rows, means: Floats, device: str = "cpu") -> Floats:
    """Compute z(x)·μ at each row x for each of the mean embeddings μ, which are the rows of `means`, shape (means, D).

    Returns an array of shape (rows, means).
    """
    parts = _map_blocks(features, rows, device, lambda z, at, to_device: z @ to_device(means.T))
    return np.concatenate(list(parts))


def _map_blocks(
    features: RandomFeatures, rows: Rows, device: str, work: Callable[[Any, slice, Callable[[Floats], Any]], Any]
) -> Iterator[Floats]:
    """Yield ``work(z, at, to_device)`` as a numpy array for each block of rows, in their order, using all cores.

    z are the random features of the block's rows on the device, `at` is the slice of these rows, and `to_device` moves
    a numpy array to the device.
    """
    if device != "cpu":
        for at, z in _map_on_gpu(features, rows, device):
            yield work(z, at, z.new_tensor).cpu().numpy()
        return

    def task(at: slice) -> Floats:
        """Run `work` on the CPU for one block."""
        return np.asarray(work(features.map(rows[at]), at, np.asarray))

    blocks = [slice(k, min(k + features.block, len(rows))) for k in range(0, len(rows), features.block)]
    workers = min(threads.available(), len(blocks))
    if workers == 1:
        yield from map(task, blocks)
        return
    remaining = iter(blocks)
    with threads.one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        while batch := list(islice(remaining, _AHEAD * workers)):  # bounds the results held in memory
            yield from pool.map(task, batch)


def _map_on_gpu(features: RandomFeatures, rows: Rows, device: str) -> Iterator[tuple[slice, Any]]:
    """Yield consecutive slices of rows, each with the rows' random features z as a double-precision tensor on a GPU."""
    torch = import_cuda(device)
    frequencies = torch.as_tensor(features.frequencies, device=device)
    step = max(1, _GPU_CELLS // features.size)
    for k in range(0, len(rows), step):
        at = slice(k, k + step)
        phase = torch.as_tensor(rows[at], dtype=torch.float64, device=device) @ frequencies
        yield at, torch.cat([torch.cos(phase), torch.sin(phase)], dim=1) / np.sqrt(features.size / 2)
