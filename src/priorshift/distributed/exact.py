"""Exact sums over kernel matrices as a graph of tasks: each takes two blocks of rows, and no one holds a matrix.

A task gives the row sums and the column sums of its block of K(X, Y), as :mod:`priorshift.embedding.tiles` does; those
of one strip are added up a tree. Blocks have a size of their own, so the answer does not depend on how a collection is
cut.

TCPU with every pair of rows, for middle sizes: rows that one machine can hold, and n² pairs that take many.

The estimator runs here, with all that it checks and warns of; its kernel sums are computed by a cluster, whose workers
read the rows again from the collections. So no row is held by one worker alone, and the answer is that of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from operator import add, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.api import estimate_from_tables, read_three
from priorshift.arrays import Floats
from priorshift.distributed.collections import Blocks, Parts, in_graph, is_distributed, no_rows, read_part
from priorshift.distributed.reduction import Outcome, compute, import_dask, together, tree
from priorshift.embedding import tiles
from priorshift.errors import InputError, PriorShiftWarning
from priorshift.io.chunk_parts import AnyTable, ColumnSelection, joined, length
from priorshift.io.row_metadata import RowMetadata
from priorshift.io.scaling import Rows
from priorshift.io.weights import read_weights
from priorshift.kernels import Kernel
from priorshift.methods.tcpu import TCPU
from priorshift.results import PriorEstimate
from priorshift.sketch.row_reader import RowReader
from priorshift.warning_records import record_warnings

Weights = tuple[Floats | None, Floats | None]


def kernel_sums(
    kernel: Kernel, X: Any, Y: Any = None, *, weights: tuple[Any, Any] = (None, None), client: Any = None
) -> tuple[Floats, Floats]:
    """Compute the row sums and the column sums of K(X, Y), exactly, on a cluster.

    Rows stay where they are; two blocks of them meet on one worker, and only sums come back.

    Parameters
    ----------
    kernel : Kernel
        Such as ``kernels.Gaussian(2.0)``.
    X, Y : Dask Array, DataFrame or Bag, list of Delayed tables, or table
        Numbers, used as they are. `Y` left out is `X`, at half the cost.
    weights : two array-likes or None
        What the rows of X and of Y count, where it is not the same.
    client : distributed.Client or None
        Who computes; None is the current client where there is one, and else Dask's scheduler on this machine.

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
    >>> from priorshift import distributed, kernels
    >>> X = da.from_array(np.array([[0.0], [0.0], [9.0]]), chunks=(2, 1))
    >>> rows, columns = distributed.kernel_sums(kernels.Gaussian(1.0), X)
    >>> rows.round(6).tolist()
    [2.0, 2.0, 1.0]
    """
    if not hasattr(kernel, "tile"):
        raise InputError(f"kernel is {kernel!r}, but a kernel is expected, such as kernels.Gaussian(2.0).")
    x, layout = Blocks.read(X, "X", client=client)
    y = None if Y is None else Blocks.read(Y, "Y", layout, client)[0]
    sizes = sum(x.rows), sum((y or x).rows)
    v, w = (
        None if of is None else read_weights(of, rows, f"the weights of {name}")
        for of, rows, name in zip(weights, sizes, "XY", strict=True)
    )
    nothing = np.zeros(layout.width), np.ones(layout.width)
    return sums_of_blocks(kernel, x, y, nothing, (v, v if Y is None else w), client=client)


def sums_of_blocks(
    kernel: Kernel,
    X: Blocks,
    Y: Blocks | None,
    scale: tuple[Floats, Floats],
    weights: Weights = (None, None),
    *,
    dtype: np.dtype[Any] = tiles.DOUBLE,
    client: Any = None,
) -> tuple[Floats, Floats]:
    """Row and column sums of K(X, Y), of rows that are seen through a shift and a factor for each column."""
    join = import_dask().delayed(together, pure=False)
    how = in_graph(Outcome((kernel, *scale, dtype)))
    symmetric, to = Y is None, X if Y is None else Y
    v, w = X.split(weights[0]), to.split(weights[1])
    of_rows: list[list[Any]] = [[] for _ in X.blocks]
    of_columns: list[list[Any]] = of_rows if symmetric else [[] for _ in to.blocks]
    for i, x in enumerate(X.blocks):
        for j, y in enumerate(to.blocks):
            if symmetric and j < i:
                continue  # its mirror image is there
            same = symmetric and i == j
            both = join(_sums_within, how, x, v[i]) if same else join(_sums_between, how, x, y, v[i], w[j])
            of_rows[i].append(join(itemgetter(0), both))
            if not same:
                of_columns[j].append(join(itemgetter(1), both))
    strips = of_rows if symmetric else of_rows + of_columns
    sums = compute([tree(strip, add) for strip in strips], client)
    rows = np.concatenate(sums[: len(of_rows)])
    return rows, rows if symmetric else np.concatenate(sums[len(of_rows) :])


def _sums_between(how: Any, x: NDArray[Any], y: NDArray[Any], v: Any, w: Any) -> tuple[Floats, Floats]:
    kernel, shift, factor, dtype = how
    X, Y = Rows(x, shift, factor), Rows(y, shift, factor)
    return tiles.kernel_sums(kernel, X, Y, dtype=dtype, weights=(v, w))


def _sums_within(how: Any, x: NDArray[Any], v: Any) -> tuple[Floats, Floats]:
    kernel, shift, factor, dtype = how
    return tiles.kernel_sums(kernel, Rows(x, shift, factor), dtype=dtype, weights=(v, v))


@dataclass(frozen=True, eq=False)
class Gathered:
    """A sample whose rows are here, and can be read by workers too.

    Attributes
    ----------
    parts : Parts
        As workers read it.
    rows : list of int
        Of each part.
    table : Table or MixedTable
        All of it.
    """

    parts: Parts
    rows: list[int]
    table: AnyTable


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Kernel sums of a source and a target, computed where their rows lie.

    Attributes
    ----------
    source : sequence of Gathered
        Samples in the order in which the estimator has their rows.
    target : Gathered
        The target.
    reader : RowReader
        How rows become numbers, which it centres and does not scale.
    client : distributed.Client or None
        Who computes.
    """

    source: Sequence[Gathered]
    target: Gathered
    reader: RowReader
    client: Any = None

    def __str__(self) -> str:
        return "dask"

    def __call__(
        self,
        kernel: Kernel,
        X: Rows,
        Y: Rows | None = None,
        *,
        dtype: np.dtype[Any],
        weights: Weights,
    ) -> tuple[Floats, Floats]:
        x, y = self._blocks(X), None if Y is None else self._blocks(Y)
        scale = X.shift - self.reader.scaling.shift, X.factor  # the estimator's, of rows that the reader has centred
        return sums_of_blocks(kernel, x, y, scale, weights, dtype=dtype, client=self.client)

    def _blocks(self, rows: Rows) -> Blocks:
        """An estimator's rows of the source are positions in all of it; those of the target are the whole target."""
        if rows.index is None:
            return Blocks.of(*self._target_matrices)
        start, stop = int(rows.index[0]), int(rows.index[-1]) + 1
        if stop - start != len(rows):
            raise ValueError("rows of the source that do not follow each other are not known to the cluster.")
        return Blocks.of(*self._source_matrices, start, stop)

    @cached_property
    def _source_matrices(self) -> tuple[list[Any], list[int]]:
        matrices = [matrix for sample in self.source for matrix in sample.parts.outcomes(_numbers, self.reader)]
        return matrices, [count for sample in self.source for count in sample.rows]

    @cached_property
    def _target_matrices(self) -> tuple[list[Any], list[int]]:
        return self.target.parts.outcomes(_numbers, self.reader), self.target.rows


def estimate_exactly(
    samples: Mapping[str, Any], estimator: TCPU, drop: Sequence[str], weights: str | None, client: Any
) -> PriorEstimate:
    """Estimate from all pairs of rows of "positive", "unlabeled" and "target"; the estimator is fitted."""
    told = RowMetadata(weights=weights).checked(drop)
    P, U, T = gather(samples, ColumnSelection(drop=tuple(drop), optional=(weights,) if weights else ()), client)
    reader = RowReader.of(U.table, standardize=False)
    left_out = (*drop, weights) if weights else tuple(drop)
    estimator.set_params(device=ClusterSums((P, U), T, replace(reader, drop=left_out), client))
    return estimate_from_tables(estimator, *read_three(P.table, U.table, T.table, told, drop, "auto"), told=told)


def gather(samples: Mapping[str, Any], wanted: ColumnSelection, client: Any) -> list[Gathered]:
    """Bring the rows of samples here, all in one graph."""
    parts = {name: Parts.of(sample, name) for name, sample in samples.items() if is_distributed(sample)}
    tables = iter(compute([read for one in parts.values() for read in one.outcomes(read_part, wanted)], client))
    gathered = []
    for name, sample in samples.items():
        if name not in parts:
            table = wanted.read(sample, name)
            gathered.append(Gathered(Parts(name, [in_graph(table)]), [length(table)], table))
            continue
        of_parts = list(islice(tables, len(parts[name])))
        there = [table for table in of_parts if table is not None]
        if not there:
            raise no_rows(parts[name])
        rows = [0 if table is None else length(table) for table in of_parts]
        gathered.append(Gathered(parts[name], rows, joined(there, name)))
    return gathered


def _numbers(part: Any, name: str, reader: RowReader) -> Floats:
    with record_warnings(PriorShiftWarning, show=False):  # what is odd about a whole sample is said where it is whole
        return reader(part, name)
