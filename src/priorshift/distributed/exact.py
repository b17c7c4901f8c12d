"""TCPU with every pair of rows, for middle sizes: rows that one machine can hold, and n² pairs that take many.

The estimator runs here, with all that it checks and warns of; its kernel sums are computed by a cluster, whose workers
read the rows again from the collections. So no row is held by one worker alone, and the answer is that of memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from priorshift.arrays import Floats
from priorshift.distributed.blocks import Blocks
from priorshift.distributed.parts import Parts, in_graph, is_distributed, no_rows
from priorshift.distributed.reduction import compute
from priorshift.distributed.rows import read_part
from priorshift.distributed.tile_graph import Weights, sums_of_blocks
from priorshift.errors import PriorShiftWarning, kept_back
from priorshift.estimate import estimate_from_tables, read_three
from priorshift.input.joined import AnyTable, joined, length
from priorshift.input.parts import Wanted
from priorshift.input.scaling import Rows
from priorshift.input.told import Told
from priorshift.kernels import Kernel
from priorshift.result import PriorEstimate
from priorshift.sketch.rows import RowReader
from priorshift.tcpu import TCPU


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
    told = Told(weights=weights).checked(drop)
    P, U, T = gather(samples, Wanted(drop=tuple(drop), optional=(weights,) if weights else ()), client)
    reader = RowReader.of(U.table, standardize=False)
    left_out = (*drop, weights) if weights else tuple(drop)
    estimator.set_params(device=ClusterSums((P, U), T, replace(reader, drop=left_out), client))
    return estimate_from_tables(estimator, *read_three(P.table, U.table, T.table, told, drop, "auto"), told=told)


def gather(samples: Mapping[str, Any], wanted: Wanted, client: Any) -> list[Gathered]:
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
    with kept_back(PriorShiftWarning):  # what is odd about a whole sample is said where it is whole
        return reader(part, name)
