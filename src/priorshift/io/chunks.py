"""A sample that is read in batches, in memory that does not grow with it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import IOBase
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.errors import InputError
from priorshift.io.chunk_parts import (
    ParquetPart,
    Part,
    Skip,
    StreamPart,
    TablePart,
    TextPart,
    draw_of_all,
    evenly,
    read_chunk,
)
from priorshift.io.files import PARQUET, Piped, check_text, is_pipe, kind, read_pipe, text_or_parquet
from priorshift.io.readers import frame_of
from priorshift.io.tables import ColumnSelection, Table

_SPREAD = 256  # files, or pieces of files, that a sample of rows is drawn from


class Chunks:
    """Rows of one sample, batch by batch: of files, tables in memory, or a stream of tables.

    Attributes
    ----------
    name : str
        What messages call the sample.
    rows : int or None
        How many there are, where that is known before they are read.
    can_repeat : bool
        Whether they can be read more than once; a generator cannot.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.io.chunks import Chunks
    >>> batches = Chunks.of(np.arange(10.0).reshape(5, 2), "target", rows_at_a_time=2)
    >>> [batch.values.tolist() for batch in batches.after(3)]
    [[[6.0, 7.0]], [[8.0, 9.0]]]
    """

    def __init__(self, name: str, parts: Sequence[Part]) -> None:
        self.name = name
        self.parts = parts

    @classmethod
    def of(
        cls,
        source: Any,
        name: str,
        *,
        extra: Sequence[str] = (),
        drop: Sequence[str] = (),
        optional: Sequence[str] = (),
        rows_at_a_time: int = 65_536,
    ) -> Chunks:
        """Read a sample in batches.

        Parameters
        ----------
        source : path, list of paths, folder of Parquet files, table, or iterable of tables
            A table is whatever :func:`priorshift.io.mixed_tables.read_columns` reads.
        name : str
            What messages call it.
        aside : sequence of str
            Columns that are not features; they stand in `extra` of each batch.
        drop : sequence of str
            Columns to leave out, where they are there.
        optional : sequence of str
            Columns to set aside, where they are there.
        rows_at_a_time : int
            Of a batch, at most; a table with many columns has fewer.

        Returns
        -------
        Batches
        """
        if isinstance(source, Chunks):
            return source
        selection = ColumnSelection(tuple(extra), tuple(drop), tuple(optional), rows_at_a_time)
        return cls(name, _parts_of(source, name, selection))

    @property
    def rows(self) -> int | None:
        known = [part.rows for part in self.parts]
        return None if any(rows is None for rows in known) else sum(rows for rows in known if rows is not None)

    @property
    def can_repeat(self) -> bool:
        return all(part.can_repeat for part in self.parts)

    @property
    def files(self) -> list[Path]:
        """The files that it is read from, in order; tables in memory and pipes have none."""
        return [part.file for part in self.parts if part.file is not None]

    def __iter__(self) -> Iterator[Table]:
        empty = True
        for batch in self.after(0):
            empty = False
            yield batch
        if empty:
            raise self._empty()

    def after(self, rows: int) -> Iterator[Table]:
        """What comes after the first rows, to go on with work that was interrupted.

        Where so many rows end a batch, the batches that follow are those that followed it before. What is passed over
        is not read where the files allow it.

        Parameters
        ----------
        rows : int
            That are passed over.

        Yields
        ------
        Table
        """
        skip = Skip(rows)
        for part in self.parts:
            yield from part.batches(skip)

    def sample(self, count: int, rng: np.random.Generator) -> Table:
        """Draw rows that stand for all of them, wherever they are: files are often sorted by time or by class.

        Of many files, or many pieces of a Parquet file, some are read, evenly spread. Of an iterator it is the first
        tables, which are held until they are asked for.

        Parameters
        ----------
        count : int
            How many rows at most.
        rng : numpy.random.Generator
            That says which.

        Returns
        -------
        Table
            In the order in which they stand.
        """
        chosen = evenly(len(self.parts), _SPREAD, rng)
        spread = max(1, _SPREAD // max(1, len(chosen)))
        table, _ = draw_of_all((self.parts[k] for k in chosen), count, rng, spread)
        if table is None:
            raise self._empty()
        return table

    def first(self) -> Table:
        """Some rows that come first, by which its columns are known; those of an iterator are held until asked for.

        Returns
        -------
        Table
        """
        return next(iter(self)) if self.can_repeat else self.sample(1, np.random.default_rng(0))

    def _empty(self) -> InputError:
        return InputError(f"{self.name} has no rows; pass a sample with at least two.")


def _parts_of(source: Any, name: str, selection: ColumnSelection) -> Sequence[Part]:
    """What a sample is made of."""
    if isinstance(source, Chunks):
        return source.parts
    if isinstance(source, Piped) or is_pipe(source):
        source = source if isinstance(source, Piped) else read_pipe(source, name)
        said = f"{name} ({source})"
        return [TextPart(check_text(source.content, said), said, selection)]
    if isinstance(source, (str, Path)):
        return _of_path(Path(source), name, selection)
    if isinstance(source, (list, tuple)) and source and _is_table(source[0]):
        refuse_twice(source, name)
        return [part for one in source for part in _parts_of(one, name, selection)]
    if isinstance(source, Table) or (isinstance(source, np.ndarray) and source.ndim == 2):
        return [TablePart(source, name, selection)]
    if (frame := frame_of(source, name)) is not None:
        return [TablePart(frame, name, selection)]
    if _is_stream(source):
        return [StreamPart(source, name, selection, _parts_of)]
    return [TablePart(read_chunk(source, name, selection), name, selection)]


def _of_path(path: Path, name: str, selection: ColumnSelection) -> Sequence[Part]:
    said = f"{name} ({path})"
    if os.path.isdir(path):  # which asks without complaint, also of what is no path
        files = sorted(file for file in path.iterdir() if kind(file) == PARQUET and file.name[0] not in "._")
        if not files:
            raise InputError(
                f"{said} is a folder without Parquet files; pass a folder that has some (not in folders below it), or "
                "a list of files."
            )
        return [part for file in files for part in _of_path(file, name, selection)]
    text = text_or_parquet(path, said)
    return [ParquetPart(path, said, selection) if text is None else TextPart(text, said, selection)]


def _is_table(source: Any) -> bool:
    """Whether it is a table or names one, rather than a row of one."""
    if isinstance(source, (str, Path, Piped, Table, Chunks)):
        return True
    return (isinstance(source, np.ndarray) and source.ndim == 2) or frame_of(source, "a table") is not None


def refuse_twice(sources: Sequence[Any], name: str) -> None:
    """A file that is named twice would count double."""
    paths = Counter(os.path.realpath(source) for source in sources if isinstance(source, (str, Path)))
    for path, times in paths.items():
        if times > 1:
            raise InputError(f"{name} names {path} more than once, so its rows would count twice; name each file once.")


def _is_stream(source: Any) -> bool:
    """Whether it gives tables one after the other; array-likes and lists of rows are tables themselves."""
    array_like = hasattr(source, "__array__") or hasattr(source, "__dlpack__") or hasattr(source, "toarray")
    return (
        isinstance(source, Iterable)
        and not isinstance(source, (list, tuple, dict, set, bytes, IOBase))
        and not array_like
    )
