"""Mean embeddings by random features: μ = Σ mass·z(x) is a vector, and its value at a row is z(x)·μ.

Linear in rows, a block at a time, on all cores or a GPU. Blocks are added up in their order, so the answer does not
depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from priorshift import threads
from priorshift.arrays import Floats
from priorshift.embedding.device import import_cuda
from priorshift.embedding.random_features import RandomFeatures
from priorshift.input.scaling import Rows

_GPU_CELLS = 2**26  # features held at a time on a GPU: half a gigabyte
_AHEAD = 4  # blocks for each thread, whose answers may wait to be added up
Answer = TypeVar("Answer")


def feature_mean(features: RandomFeatures, rows: Rows, mass: Floats, device: str = "cpu") -> Floats:
    """Σ mass·z(x), a vector of D numbers."""
    total = np.zeros(features.size)
    if device == "cpu":
        for part in _over(features, len(rows), lambda at: mass[at] @ features.map(rows[at])):
            total += part
        return total
    for at, z in _on_gpu(features, rows, device):
        total += (z.new_tensor(mass[at]) @ z).cpu().numpy()
    return total


def feature_values(features: RandomFeatures, rows: Rows, means: Floats, device: str = "cpu") -> Floats:
    """z(x)·μ at each row, shape (rows, means); `means` is of shape (means, D)."""
    if device == "cpu":
        return np.concatenate(list(_over(features, len(rows), lambda at: features.map(rows[at]) @ means.T)))
    return np.concatenate([(z @ z.new_tensor(means.T)).cpu().numpy() for _, z in _on_gpu(features, rows, device)])


def replicated_means(
    features: RandomFeatures, rows: Rows, mass: Floats, counts: NDArray[np.uint8], device: str = "cpu"
) -> Floats:
    """Σ count·mass·z(x) for each column of the counts, shape (replicates, D)."""
    total = np.zeros((counts.shape[1], features.size))
    if device != "cpu":
        for at, z in _on_gpu(features, rows, device):
            total += (z.new_tensor((counts[at] * mass[at, None]).T) @ z).cpu().numpy()
        return total
    for part in _over(features, len(rows), lambda at: (counts[at] * mass[at, None]).T @ features.map(rows[at])):
        total += part
    return total


def _over(features: RandomFeatures, rows: int, work: Callable[[slice], Answer]) -> Iterator[Answer]:
    """What is made of each block, in the order of the blocks, on several threads."""
    blocks = list(features.blocks(rows))
    workers = min(threads.available(), len(blocks))
    if workers == 1:
        yield from map(work, blocks)
        return
    left = iter(blocks)
    with threads.one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        while some := list(islice(left, _AHEAD * workers)):
            yield from pool.map(work, some)


def _on_gpu(features: RandomFeatures, rows: Rows, device: str) -> Iterator[tuple[slice, Any]]:
    """Slices of rows, and their features on a GPU in double precision."""
    torch = import_cuda(device)
    frequencies = torch.as_tensor(features.frequencies, device=device)
    step = max(1, _GPU_CELLS // features.size)
    for k in range(0, len(rows), step):
        at = slice(k, k + step)
        phase = torch.as_tensor(rows[at], dtype=torch.float64, device=device) @ frequencies
        yield at, torch.cat([torch.cos(phase), torch.sin(phase)], dim=1) / np.sqrt(features.size / 2)
