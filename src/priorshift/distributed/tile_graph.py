"""Exact sums over kernel matrices as a graph of tasks: each takes two blocks of rows, and no one holds a matrix.

A task gives the row sums and the column sums of its block of K(X, Y), as :mod:`priorshift.embedding.tiles` does; those
of one strip are added up a tree. Blocks have a size of their own, so the answer does not depend on how a collection is
cut.
"""

from __future__ import annotations

from operator import add, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.distributed.blocks import Blocks
from priorshift.distributed.parts import in_graph
from priorshift.distributed.reduction import Outcome, compute, import_dask, together, tree
from priorshift.embedding import tiles
from priorshift.errors import InputError
from priorshift.input.scaling import Rows
from priorshift.input.weights import read_weights
from priorshift.kernels import Kernel

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
