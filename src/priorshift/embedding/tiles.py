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
    """Compute the weighted row sums and column sums of the kernel matrix K(X, Y), without storing it.

    Returns Σ_j w_j k(x_i, y_j) at each row of X and Σ_i v_i k(x_i, y_j) at each row of Y, for the `weights` v and w of
    the rows of X and Y. These should be about 1, so that no digit is lost; None stands for weights of 1. Without `Y` it
    is X, at half the cost, and both sums are the same array. `dtype` is the type of the tiles.
    """
    symmetric = Y is None
    Y = X if Y is None else Y
    plan = _Plan(kernel, X, Y, symmetric, dtype)
    # threads do not collide: a task writes only to its own parity of row_sums and its own part of column_sums
    row_sums = np.zeros((2, len(X)))
    column_sums = np.zeros((len(plan.parts), len(Y)))
    ones = np.ones(_ROWS, dtype)
    X_weights, Y_weights = (None if array is None else array.astype(dtype) for array in weights)

    def task(part: int, parity: int) -> None:
        """Add the sums of the tiles of one part and parity; a tile E has k(x_i, y_j) = a_i E_ij b_j."""
        for rows, columns, A, B, E, above in plan.tiles(part, parity):
            has_weights = kernel.tile(A, B, E)  # else a and b are 1
            a, b = (A.weights, B.weights) if has_weights else (ones[: len(E)], ones[: E.shape[1]])
            weighted_b = b if Y_weights is None else b * Y_weights[columns]
            row_sums[parity, rows] += a.astype(np.float64) * (E @ weighted_b)
            if above:  # the first rows of the tile, which enter the column sums
                weighted_a = a if X_weights is None else a * X_weights[rows]
                column_sums[part, columns] += b.astype(np.float64) * (weighted_a[:above] @ E[:above])

    plan.run(task, len(X) * len(Y))
    total_rows, total_columns = row_sums.sum(axis=0), column_sums.sum(axis=0)
    if symmetric:  # the row sums are of the upper triangle, the column sums of its mirror image
        total_rows += total_columns
        return total_rows, total_rows
    return total_rows, total_columns


def weighted_kernel_sums(
    kernel: Kernel,
    X: Rows,
    X_counts: Counts,
    Y: Rows | None = None,
    Y_counts: Counts | None = None,
    *,
    weights: Weights = _EQUAL,
) -> Floats:
    """Compute Σ_ij v_i c_ib w_j d_jb k(x_i, y_j) for each bootstrap replicate b, in one pass over the kernel values.

    `X_counts` c and `Y_counts` d are how often each row was drawn in each replicate, shape (rows, replicates);
    `weights` are v, one for each row of X, and w, one for each row of Y, with None for weights of 1. Without `Y` the
    second sample is the first, at half the cost.
    """
    symmetric = Y is None
    if Y is None or Y_counts is None:
        Y, Y_counts = X, X_counts
    plan = _Plan(kernel, X, Y, symmetric, DOUBLE)
    X_weights, Y_weights = weights
    sums = np.zeros((len(plan.parts), 2, X_counts.shape[1]))  # each task writes to its own part and parity

    def task(part: int, parity: int) -> None:
        """Add the sums of the tiles of one part and parity; a tile E has k(x_i, y_j) = a_i E_ij b_j."""
        for rows, columns, A, B, E, above in plan.tiles(part, parity):
            has_weights = kernel.tile(A, B, E)  # else a and b are 1
            left, right = X_counts[rows].astype(np.float64), Y_counts[columns].astype(np.float64)
            if X_weights is not None:
                left *= X_weights[rows][:, None]
            if Y_weights is not None:
                right *= Y_weights[columns][:, None]
            if has_weights:
                left *= A.weights[:, None]
                right *= B.weights[:, None]
            if symmetric:  # rows above the diagonal's square also stand for their mirror image
                left[:above] *= 2
            sums[part, parity] += np.einsum("ib,ib->b", left, E @ right)

    plan.run(task, len(X) * len(Y) * X_counts.shape[1])
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
        height = min(_ROWS, -(-len(X) // (4 * _COLUMNS)) * _COLUMNS)
        blocks = [slice(k, min(k + height, len(X))) for k in range(0, len(X), height)]
        parts = min(_PARTS, len(blocks), max(2, _COLUMN_SUMS // len(Y)))
        self.parts = [blocks[k::parts] for k in range(parts)]
        self.columns = [slice(k, min(k + _COLUMNS, len(Y))) for k in range(0, len(Y), _COLUMNS)]
        self.thread = threading.local()
        fits_cache = len(Y) * Y.X.shape[1] * dtype.itemsize <= _CACHE
        # prepared strips by their first column; empty if they are prepared anew for each block of rows
        self.prepared = {columns.start: self._column_strip(columns) for columns in self.columns} if fits_cache else {}

    def tiles(self, part: int, parity: int) -> Iterator[tuple[slice, slice, Strip, Strip, NDArray[Any], int]]:
        """Yield each tile of a task: slices of rows and columns, their strips, a buffer for its values, and a count.

        The buffer is reused for the thread's next tile. The count is that of the tile's first rows that enter the
        column sums: all of them, or, in the symmetric case, where tiles only cover the upper triangle of K, those
        above the square on the diagonal, which stand for their mirror image.
        """
        if not hasattr(self.thread, "buffer"):
            self.thread.buffer = np.empty(_ROWS * _COLUMNS, self.dtype)
        buffer = self.thread.buffer
        for rows in self.parts[part]:
            A = self.kernel.strip(self.X[rows], self.dtype)
            for columns in self.columns[parity::2]:
                if self.symmetric and columns.start < rows.start:
                    continue  # below the diagonal: the mirror image of another tile
                B = self.prepared.get(columns.start) or self._column_strip(columns)
                stop = min(rows.stop, columns.stop) if self.symmetric else rows.stop
                height, width = stop - rows.start, columns.stop - columns.start
                above = min(stop, columns.start) - rows.start if self.symmetric else height
                strip = A if stop == rows.stop else A.first(height)
                values = buffer[: height * width].reshape(height, width)
                yield slice(rows.start, stop), columns, strip, B, values, above

    def run(self, task: Callable[[int, int], None], work: int) -> None:
        """Call ``task(part, parity)`` for all parts and parities, in threads if `work`, in kernel values, is large."""
        tasks = list(product(range(len(self.parts)), (0, 1)))
        workers = min(len(tasks), threads.available())
        if workers == 1 or work < _SERIAL_PAIRS:
            for part, parity in tasks:
                task(part, parity)
            return
        with threads.one_blas_thread(), ThreadPoolExecutor(workers) as pool:
            list(pool.map(task, *zip(*tasks, strict=True)))

    def _column_strip(self, columns: slice) -> Strip:
        """Prepare the strip of these rows of Y, stored so that the matrix product reads its transpose fastest."""
        strip = self.kernel.strip(self.Y[columns], self.dtype)
        return replace(strip, rows=np.asfortranarray(strip.rows))
