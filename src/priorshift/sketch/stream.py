"""The rows of a sample as numbers, in the batches that they come in, with what each row counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from priorshift.arrays import Floats
from priorshift.embedding.moments import Weighted
from priorshift.errors import InputError
from priorshift.input.batches import Batches
from priorshift.input.joined import AnyTable
from priorshift.input.tables import check_dropped
from priorshift.input.weights import weights_of_part
from priorshift.progress import RowProgress
from priorshift.sketch.rows import RowReader, without


def read_batches(sample: Any, drop: tuple[str, ...], weights: Any, name: str = "the sample") -> Batches:
    """Read a sample in batches, with a column of weights set aside.

    Parameters
    ----------
    sample : array-like, data frame, path, Batches, or iterable of such tables
        As :meth:`Sketch.of` takes it.
    drop : tuple of str
        Columns that are no features; one of them may be the column of weights.
    weights : None, str or array-like
        What rows count, or the column that says it.
    name : str
        What messages call it.

    Returns
    -------
    Batches
    """
    if not isinstance(weights, str):
        return Batches.of(sample, name, drop=drop)
    return Batches.of(sample, name, aside=[weights], drop=[column for column in drop if column != weights])


def dropped_of(samples: Mapping[str, Batches], drop: Sequence[str], names: Sequence[str]) -> list[str]:
    """Look which of the columns to drop stand in some of the samples, by their first rows.

    Parameters
    ----------
    samples : mapping of str to Batches
        By their names.
    drop : sequence of str
        Columns, each of which one sample at least must have.
    names : sequence of str
        Of the samples that are asked about.

    Returns
    -------
    list of str
    """
    if not drop:
        return []
    first = {name: without(batches.first(), drop) for name, batches in samples.items()}
    check_dropped(list(first.values()), drop)
    return [column for column in drop if any(column in first[name].dropped for name in names)]


def weights_of_each(samples: Mapping[str, Batches], weights: str) -> dict[str, str | None]:
    """Look which samples have a column of weights, by their first rows.

    Parameters
    ----------
    samples : mapping of str to Batches
        By their names; the column is set aside where it is there.
    weights : str
        The column, which one of them at least must have.

    Returns
    -------
    dict
        The column for a sample that has it, and None for one whose rows count alike.
    """
    first = {name: batches.first() for name, batches in samples.items()}
    found = {name: weights in (*table.aside, *(table.columns or ())) for name, table in first.items()}
    if not any(found.values()):
        raise InputError(f"no table has a column {weights!r}; name the column of the weights.")
    return {name: weights if there else None for name, there in found.items()}


def weighted_rows(batches: Batches, reader: RowReader, weights: Any = None, after: int = 0) -> Iterator[Weighted]:
    """Read the rows of each batch, and what they count.

    Parameters
    ----------
    batches : Batches
        Of one sample.
    reader : RowReader
        How rows become numbers.
    weights : None, str or array-like
        As in `read_batches`; an array where it is known how many rows there are.
    after : int
        Rows that are passed over.

    Yields
    ------
    rows : ndarray of shape (rows, features)
    weights : ndarray of shape (rows,) or None
    """
    of_all = None if weights is None or isinstance(weights, str) else _of_all(batches, weights)
    done = after
    with RowProgress(f"sketching {batches.name}", batches.rows) as more:
        more(after)
        for batch in batches.after(after) if after else batches:
            rows = reader(batch, batch.name)
            more(len(rows))
            if of_all is not None:
                yield rows, of_all[done : done + len(rows)]
            else:
                yield rows, _column(batch, weights, len(rows))
            done += len(rows)


def _of_all(batches: Batches, weights: Any) -> Floats:
    if batches.rows is None:
        raise InputError(
            f"weights of {batches.name} are an array, but how many rows come is not known beforehand; put them into a "
            "column, and pass its name."
        )
    return weights_of_part(weights, batches.rows)


def _column(batch: AnyTable, weights: str | None, rows: int) -> Floats | None:
    if weights is None:
        return None
    if weights not in batch.aside:
        raise InputError(
            f"{batch.name} has no column {weights!r} set aside; pass aside=[{weights!r}] to Batches.of, or the table "
            "itself."
        )
    return weights_of_part(batch.aside[weights], rows, f"the column {weights!r} of {batch.name}")
