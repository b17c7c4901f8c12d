"""Exact kernel sums on a cluster, and the rows of samples for an estimate that uses them.

Rows are cut into blocks of one size, so that the result does not depend on how a collection is partitioned. Each task
takes two blocks of rows and returns the row sums and the column sums of its block of K(X, Y), as
:mod:`priorshift.embedding.tiles` does; the sums of one strip are added up a tree.

An estimate is for samples that fit into the memory of one machine, while the n² pairs take many. The estimator runs
here, with all its checks and warnings; its kernel sums are computed by the cluster, whose workers read the rows again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import add, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.distributed.collections import Outcome, Parts, compute, delayed_combine, in_graph, tree
from priorshift.embedding import tiles
from priorshift.errors import InputError, PriorShiftWarning
from priorshift.io.chunks import read_chunk
from priorshift.io.readers import read_numeric_table
from priorshift.io.sample_size import read_weights
from priorshift.io.scaling import Rows
from priorshift.io.tables import ColumnSelection, Table, join_tables, match_columns
from priorshift.kernels import Kernel
from priorshift.sketch.design import RowReader
from priorshift.warning_records import record_warnings

BLOCK = 16_384  # rows: two blocks are a second or two of kernel values, and a few megabytes to send


@dataclass(frozen=True, eq=False)
class Blocks:
    """The rows of a sample as matrices of `BLOCK` rows."""

    blocks: list[Any]  # Delayed outcomes of matrices
    rows: list[int]  # number of rows of each block

    @classmethod
    def from_matrices(
        cls, matrices: Sequence[Any], rows: Sequence[int], start: int = 0, stop: int | None = None
    ) -> Blocks:
        """Cut the rows from `start` to `stop` (by default the end) of consecutive matrices into blocks.

        `matrices` are the Delayed outcomes of matrices, `rows` their numbers of rows.
        """
        ends = np.cumsum(rows)  # position after the last row of each matrix
        stop = int(ends[-1]) if stop is None else stop
        edges = [*range(start, stop, BLOCK), stop]
        blocks = []
        for low, high in pairwise(edges):
            # the block lies in the matrices from `first` to `last`
            first, last = np.searchsorted(ends, (low, high - 1), "right").tolist()
            before = int(ends[first]) - rows[first]  # rows before the first of these matrices
            blocks.append(delayed_combine(partial(_cut, low - before, high - before), *matrices[first : last + 1]))
        return cls(blocks, np.diff(edges).tolist())

    @classmethod
    def read(cls, sample: Any, name: str, layout: Table | None = None, client: Any = None) -> tuple[Blocks, Table]:
        """Read a sample of numbers as blocks, with the columns of `layout` or, if None, its own.

        Returns the blocks and the layout, a table with columns and no rows.
        """
        parts = Parts.from_sample(sample, name)
        if parts.shape is not None:
            rows, width = parts.shape
            own_layout = Table(name, np.empty((0, width)))
        else:
            results = compute(parts.map(_layout_and_rows), client)  # None for a part without rows
            nonempty = [result for result in results if result is not None]
            if not nonempty:
                raise parts.no_rows()
            own_layout = nonempty[0][0]
            rows = [0 if result is None else result[1] for result in results]
        layout = own_layout if layout is None else layout
        return cls.from_matrices(parts.map(_read_matrix, layout), rows), layout

    def split(self, values: Floats | None) -> list[Any]:
        """Split an array with one number for each row into Delayed outcomes, one per block; None stays None in each."""
        if values is None:
            return [in_graph(Outcome(None))] * len(self.rows)
        return [in_graph(Outcome(part)) for part in np.split(values, np.cumsum(self.rows)[:-1])]


def _cut(start: int, stop: int, *matrices: NDArray[Any] | None) -> NDArray[Any]:
    """Return the rows from `start` to `stop` of consecutive matrices; that of a part without rows is None."""
    nonempty = [matrix for matrix in matrices if matrix is not None]
    joined = nonempty[0] if len(nonempty) == 1 else np.concatenate(nonempty)
    return joined[start:stop]


def _layout_and_rows(part: Any, name: str) -> tuple[Table, int]:
    """Return the layout of a part, a table with its columns and without rows, and its number of rows."""
    table = read_numeric_table(part, name)
    return replace(table, values=table.values[:0]), len(table.values)


def _read_matrix(part: Any, name: str, layout: Table) -> NDArray[Any]:
    """Read a part of the sample `name` as a matrix, with its columns in the order of `layout`."""
    return match_columns([layout, read_numeric_table(part, name)])[1].values


def kernel_sums(
    kernel: Kernel, X: Any, Y: Any = None, *, weights: tuple[Any, Any] = (None, None), client: Any = None
) -> tuple[Floats, Floats]:
    """Compute the row sums and the column sums of K(X, Y), exactly, on a cluster.

    Rows stay where they are; two blocks of them are brought together on one worker, and only sums are returned.

    Experimental: this function may change.

    Parameters
    ----------
    kernel : Kernel
        Kernel, such as ``kernels.Gaussian(2.0)``.
    X, Y : Dask Array, DataFrame or Bag, list of Delayed tables, or table
        Numbers, used unscaled. Without `Y` it is `X`, at half the cost.
    weights : two array-likes or None
        Weights of the rows of X and of Y. Default: equal.
    client : distributed.Client or None
        Client that computes. None is the current client if there is one, else Dask's scheduler on this machine.

    Returns
    -------
    rows : ndarray
        Σ_j weight_j k(x_i, y_j) at every row of X.
    columns : ndarray
        Σ_i weight_i k(x_i, y_j) at every row of Y.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from priorshift import experimental, kernels
    >>> X = da.from_array(np.array([[0.0], [0.0], [9.0]]), chunks=(2, 1))
    >>> rows, columns = experimental.kernel_sums(kernels.Gaussian(1.0), X)
    >>> rows.round(6).tolist()
    [2.0, 2.0, 1.0]
    """
    if not hasattr(kernel, "tile"):
        raise InputError(f"kernel is {kernel!r}, but a kernel is expected, such as kernels.Gaussian(2.0).")
    blocks_X, layout = Blocks.read(X, "X", client=client)
    blocks_Y = None if Y is None else Blocks.read(Y, "Y", layout, client)[0]
    weights_X, weights_Y = weights
    if weights_X is not None:
        weights_X = read_weights(weights_X, sum(blocks_X.rows), "the weights of X")
    if weights_Y is not None:
        weights_Y = read_weights(weights_Y, sum((blocks_Y or blocks_X).rows), "the weights of Y")
    both_weights = (weights_X, weights_X if Y is None else weights_Y)
    unscaled = np.zeros(layout.width), np.ones(layout.width)
    return sums_of_blocks(kernel, blocks_X, blocks_Y, unscaled, both_weights, client=client)


def sums_of_blocks(
    kernel: Kernel,
    X: Blocks,
    Y: Blocks | None,
    scale: tuple[Floats, Floats],
    weights: tiles.Weights = (None, None),
    *,
    dtype: np.dtype[Any] = tiles.DOUBLE,
    client: Any = None,
) -> tuple[Floats, Floats]:
    """Compute the weighted row and column sums of K(X, Y) or, if Y is None, of K(X, X), on a cluster.

    `scale` holds the shift and the factor of each column, `weights` those of the rows of X and of Y (None for equal
    weights), and `dtype` is the type of kernel values.
    """
    settings = in_graph(Outcome((kernel, *scale, dtype)))
    is_symmetric, columns = Y is None, X if Y is None else Y
    row_weights, column_weights = X.split(weights[0]), columns.split(weights[1])
    # Delayed sums to add up for each block of rows and of columns; with symmetry, column sums are row sums too
    row_sums: list[list[Any]] = [[] for _ in X.blocks]
    column_sums: list[list[Any]] = row_sums if is_symmetric else [[] for _ in columns.blocks]
    for i, x in enumerate(X.blocks):
        for j, y in enumerate(columns.blocks):
            if is_symmetric and j < i:
                continue  # the transposed block is computed
            if is_symmetric and j == i:
                both_sums = delayed_combine(_block_sums, settings, x, row_weights[i])
            else:
                both_sums = delayed_combine(_block_sums, settings, x, row_weights[i], y, column_weights[j])
                column_sums[j].append(delayed_combine(itemgetter(1), both_sums))
            row_sums[i].append(delayed_combine(itemgetter(0), both_sums))
    block_sums = row_sums if is_symmetric else row_sums + column_sums
    sums = compute([tree(block, add) for block in block_sums], client)
    rows = np.concatenate(sums[: len(row_sums)])
    return rows, rows if is_symmetric else np.concatenate(sums[len(row_sums) :])


def _block_sums(
    settings: Any, x: NDArray[Any], x_weights: Any, y: NDArray[Any] | None = None, y_weights: Any = None
) -> tuple[Floats, Floats]:
    """Compute the row and column sums of K(x, y), one block of the kernel matrix; without `y`, of K(x, x).

    `settings` are the kernel, the shift and factor of each column, and the type of kernel values.
    """
    kernel, shift, factor, dtype = settings
    if y is None:
        return tiles.kernel_sums(kernel, Rows(x, shift, factor), dtype=dtype, weights=(x_weights, x_weights))
    weights = (x_weights, y_weights)
    return tiles.kernel_sums(kernel, Rows(x, shift, factor), Rows(y, shift, factor), dtype=dtype, weights=weights)


@dataclass(frozen=True, eq=False)
class GatheredSample:
    """A sample whose rows are on this machine, and can be read by workers too."""

    parts: Parts  # as workers read it
    rows: list[int]  # number of rows of each part
    table: Table  # all rows


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Kernel sums of a source and a target, computed where their rows are; the "device" of an estimator."""

    source: Sequence[GatheredSample]  # P and U, in the order in which the estimator has their rows
    target: GatheredSample
    reader: RowReader  # which centres columns and does not scale them

    def __str__(self) -> str:
        """Return the name of the device in the details of an estimate."""
        return "dask"

    def __call__(
        self, kernel: Kernel, X: Rows, Y: Rows | None = None, *, dtype: np.dtype[Any], weights: tiles.Weights
    ) -> tuple[Floats, Floats]:
        """Compute row and column sums on the cluster, as :func:`priorshift.embedding.tiles.kernel_sums` does."""
        blocks_Y = None if Y is None else self._blocks(Y)
        scale = X.shift - self.reader.scaling.shift, X.factor  # workers' rows are already centred by the reader
        return sums_of_blocks(kernel, self._blocks(X), blocks_Y, scale, weights, dtype=dtype)

    def _blocks(self, rows: Rows) -> Blocks:
        """Return an estimator's rows as blocks on the cluster.

        `rows.index` is a range of consecutive rows of the source, P before U; for the target it is None.
        """
        samples = [self.target] if rows.index is None else self.source
        matrices = [matrix for sample in samples for matrix in sample.parts.map(_read_numbers, self.reader)]
        counts = [count for sample in samples for count in sample.rows]
        if rows.index is None:  # the whole target
            return Blocks.from_matrices(matrices, counts)
        return Blocks.from_matrices(matrices, counts, int(rows.index[0]), int(rows.index[-1]) + 1)


def _read_numbers(part: Any, name: str, reader: RowReader) -> Floats:
    """Read a part of the sample `name` on a worker, as a matrix that `reader` encodes and centres."""
    with record_warnings(PriorShiftWarning, show=False):  # warnings are issued where the whole sample is read
        return reader(part, name)


def gather(samples: Mapping[str, Any], drop: Sequence[str], weights: Any) -> tuple[dict[str, Any], ClusterSums]:
    """Bring the rows of the samples "positive", "unlabeled" and "target" to this machine, computed in one graph.

    Returns their tables, and the cluster's kernel sums of the same rows, to be the parameter `device` of an estimator.
    `drop` are columns that are not used, and `weights` is the name of the column of weights.
    """
    selection = ColumnSelection(drop=tuple(drop), optional=(weights,) if weights else ())
    all_parts = [Parts.from_sample(sample, name, selection) for name, sample in samples.items()]
    outcomes = [outcome for parts in all_parts for outcome in parts.map(read_chunk, selection)]
    computed = iter(compute(outcomes))  # tables, sample by sample; None for a part without rows
    gathered = []
    for parts in all_parts:
        tables = [next(computed) for _ in range(len(parts))]
        nonempty = [table for table in tables if table is not None]
        if not nonempty:
            raise parts.no_rows()
        rows = [0 if table is None else len(table) for table in tables]
        gathered.append(GatheredSample(parts, rows, join_tables(nonempty, parts.name)))
    P, U, T = gathered
    reader = RowReader.fit(U.table, standardize=False)
    dropped = (*drop, weights) if weights else tuple(drop)
    sums = ClusterSums((P, U), T, replace(reader, drop=dropped))
    return dict(zip(samples, (P.table, U.table, T.table), strict=True)), sums
