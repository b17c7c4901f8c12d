"""Exact sums over kernel matrices that are never stored: one tile at a time, all cores, bounded memory.

A tile of K(X, Y) gives its row sums and its column sums in the same pass: the mean embedding of Y at the rows of X and
that of X at the rows of Y. Sums over tiles are in double precision whatever the tile's type. How the work is cut
depends only on the size of the problem, so the answer does not depend on the number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift import threads
from priorshift.arrays import Floats
from priorshift.io.scaling import Rows
from priorshift.kernels import Kernel
from priorshift.kernels.kernel import Strip

# A tile of 1152 × 384 values (3.5 MB) stays in the last-level cache, and its four numpy calls are long enough
# (0.1 to 0.5 ms) for threads not to wait on the interpreter's lock. Blocks of rows begin where strips of columns
# do, which the symmetric case relies on.
_COLUMNS = 384
_ROWS = 3 * _COLUMNS
_CACHE = 2**24  # bytes of prepared column strips to keep in memory; a larger sample prepares them again
_PARTS = 16  # largest number of parts of row blocks, each with its own column sums
_COLUMN_SUMS = 2**22  # largest number of column sums in all parts (32 MB), unless two parts alone have more
_SERIAL_PAIRS = 2**21  # below this many pairs (3 ms of work), starting threads costs more than it saves

DOUBLE = np.dtype(np.float64)
Weights = tuple[Floats | None, Floats | None]  # of the rows of X and of Y; None for equal weights
_EQUAL: Weights = (None, None)
Counts = NDArray[Any]  # how often each row was drawn in each replicate, shape (rows, replicates)


def kernel_sums(
    kernel: Kernel, X: Rows, Y: Rows | None = None, *, dtype: np.dtype[Any] = DOUBLE, weights: Weights = _EQUAL
) -> tuple[Floats, Floats]:
    """Compute row and column sums of K(X, Y); without `Y`, of the symmetric K(X, X), at half the cost.

    Returns Σ_j weight_j k(x_i, y_j) and Σ_i weight_i k(x_i, y_j), in the symmetric case the same array. `weights` of
    the rows of X and Y should be about 1, so that no digit is lost; `dtype` is the type of the tiles.

    A task writes only to its own parity of `row_sums` and its own part of `column_sums` (see `_Plan`).
    """
    symmetric = Y is None
    Y = X if Y is None else Y
    plan = _Plan(kernel, X, Y, symmetric, dtype)
    row_sums = np.zeros((2, len(X)))
    column_sums = np.zeros((len(plan.parts), len(Y)))
    ones = np.ones(_ROWS, dtype)
    X_weights, Y_weights = (None if w is None else w.astype(dtype) for w in weights)

    def task(part: int, parity: int) -> None:
        """Add the sums of the tiles of one part and parity; a tile E has k(x_i, y_j) = v_i E_ij w_j."""
        for at, to, A, B, E in plan.tiles(part, parity):
            has_weights = kernel.tile(A, B, E)
            v, w = (A.weights, B.weights) if has_weights else (ones[: len(E)], ones[: E.shape[1]])
            row_sums[parity, at] += v.astype(np.float64) * (E @ (w if Y_weights is None else w * Y_weights[to]))
            above = plan.rows_above(at, to)
            if above:
                weighted_v = v if X_weights is None else v * X_weights[at]
                column_sums[part, to] += w.astype(np.float64) * (weighted_v[:above] @ E[:above])

    plan.run(task, len(X) * len(Y))
    rows, columns = row_sums.sum(axis=0), column_sums.sum(axis=0)
    if symmetric:  # the row sums are of the upper triangle, the column sums of its mirror image
        rows += columns
        return rows, rows
    return rows, columns


def weighted_kernel_sums(
    kernel: Kernel, X: Rows, W: Counts, Y: Rows | None = None, V: Counts | None = None, *, weights: Weights = _EQUAL
) -> Floats:
    """Compute Σ_ij w_ib v_jb k(x_i, y_j) for every column b of the counts; without `Y`, that of the symmetric K(X, X).

    All B bootstrap replicates share one pass over the kernel values. The counts `W` and `V` have the shapes
    (len(X), B) and (len(Y), B). `weights`, as in `kernel_sums`, multiply the counts of every replicate.
    """
    symmetric = Y is None
    if Y is None or V is None:
        Y, V = X, W
    plan = _Plan(kernel, X, Y, symmetric, DOUBLE)
    sums = np.zeros((len(plan.parts), 2, W.shape[1]))

    def task(part: int, parity: int) -> None:
        """Add the sums of the tiles of one part and parity; a tile E has k(x_i, y_j) = E_ij times strip weights."""
        for at, to, A, B, E in plan.tiles(part, parity):
            has_weights = kernel.tile(A, B, E)
            left, right = W[at].astype(np.float64), V[to].astype(np.float64)
            for counts, w, rows in ((left, weights[0], at), (right, weights[1], to)):
                if w is not None:
                    counts *= w[rows][:, None]
            if has_weights:
                left *= A.weights[:, None]
                right *= B.weights[:, None]
            if symmetric:  # rows above the diagonal's square also stand for their mirror image
                left[: plan.rows_above(at, to)] *= 2
            sums[part, parity] += np.einsum("ib,ib->b", left, E @ right)

    plan.run(task, len(X) * len(Y) * W.shape[1])
    return np.asarray(sums.sum(axis=(0, 1)))


class _Plan:
    """The division of K(X, Y) into tasks.

    Blocks of rows are assigned in turn to at most 16 parts, so that a triangle's long and short rows mix, and strips
    of columns are odd or even. A part and a parity are a task: it adds up row sums of its part's rows for its parity
    and column sums for its part, which no other task touches.

    In the symmetric case a block takes the columns from its own first row on, and of a column strip that
    crosses it only the rows down to the strip's square on the diagonal. Rows above that square also count for
    their mirror image.
    """

    def __init__(self, kernel: Kernel, X: Rows, Y: Rows, symmetric: bool, dtype: np.dtype[Any]) -> None:
        """Divide the rows of X into blocks and parts, and those of Y into strips, prepared here if they are few."""
        self.kernel, self.X, self.Y, self.symmetric, self.dtype = kernel, X, Y, symmetric, dtype
        # a quarter of the rows, rounded up to whole strips: at least four blocks, if there are enough rows
        quarter = -(-len(X) // (4 * _COLUMNS)) * _COLUMNS
        blocks = _slices(len(X), min(_ROWS, quarter))
        parts = min(_PARTS, len(blocks), max(2, _COLUMN_SUMS // len(Y)))
        self.parts = [blocks[k::parts] for k in range(parts)]
        self.columns = _slices(len(Y), _COLUMNS)
        self.thread = threading.local()
        fits_cache = len(Y) * Y.X.shape[1] * dtype.itemsize <= _CACHE
        self.prepared = {to.start: self._column_strip(to) for to in self.columns} if fits_cache else {}

    def tiles(self, part: int, parity: int) -> Iterator[tuple[slice, slice, Strip, Strip, NDArray[Any]]]:
        """Yield the tiles of a task: rows `at` and columns `to`, their strips, and a buffer that a thread reuses."""
        if not hasattr(self.thread, "buffer"):
            self.thread.buffer = np.empty(_ROWS * _COLUMNS, self.dtype)
        buffer = self.thread.buffer
        for at in self.parts[part]:
            A = self.kernel.strip(self.X[at], self.dtype)
            for to in self.columns[parity::2]:
                if self.symmetric and to.start < at.start:
                    continue  # below the diagonal: the mirror image of another tile
                B = self.prepared.get(to.start) or self._column_strip(to)
                stop = min(at.stop, to.stop) if self.symmetric else at.stop
                height, width = stop - at.start, to.stop - to.start
                strip = A if stop == at.stop else A.first(height)
                yield slice(at.start, stop), to, strip, B, buffer[: height * width].reshape(height, width)

    def rows_above(self, at: slice, to: slice) -> int:
        """Count the rows of a tile above the square on the diagonal; all of them without symmetry."""
        return (min(at.stop, to.start) if self.symmetric else at.stop) - at.start

    def run(self, task: Callable[[int, int], None], work: int) -> None:
        """Run all tasks, on several threads where there is enough `work`, in kernel values."""
        tasks = list(product(range(len(self.parts)), (0, 1)))
        workers = min(len(tasks), threads.available())
        if workers == 1 or work < _SERIAL_PAIRS:
            for part, parity in tasks:
                task(part, parity)
            return
        with threads.one_blas_thread(), ThreadPoolExecutor(workers) as pool:
            list(pool.map(task, *zip(*tasks, strict=True)))

    def _column_strip(self, to: slice) -> Strip:
        """Prepare a strip whose transpose is contiguous, which the matrix product reads fastest."""
        strip = self.kernel.strip(self.Y[to], self.dtype)
        return replace(strip, rows=np.asfortranarray(strip.rows))


def _slices(n: int, step: int) -> list[slice]:
    """Cut n rows into slices of `step` rows; the last may be shorter."""
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
