"""Tables: named columns of numbers, or of cells that are not numbers yet, and columns that are not features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Mask
from priorshift.errors import InputError
from priorshift.formatting import shorten
from priorshift.io.cells import Cells, as_number, as_text, is_missing, join_cells
from priorshift.warning_records import FormatNotice, list_names, warn

LARGEST = 1e150  # squares of larger values overflow
COLUMN_KINDS = ("category", "day-first", "month-first")
_CELLS_PER_CHUNK = 1 << 22  # so that a table of many columns has fewer rows in each chunk


@dataclass(frozen=True)
class CellRules:
    """What a user states about cells: further values that mean "no value", and the kinds of some columns."""

    missing: tuple[str, ...] = ()  # values as text, such as "-9999" or "unknown"
    kinds: Mapping[str, str] = field(default_factory=dict)  # by column, one of COLUMN_KINDS

    @classmethod
    def from_arguments(cls, missing: Any, columns: Any) -> CellRules:
        """Build and check the rules from the arguments `missing`, one value or several, and `columns`, a mapping."""
        if isinstance(missing, (str, int, float)):
            missing = (missing,)
        if columns is not None and not isinstance(columns, Mapping):
            raise InputError(
                f"columns is {type(columns).__name__}, but it must be a mapping such as {{'region': 'category'}}."
            )
        for name, kind in (columns or {}).items():
            if kind not in COLUMN_KINDS:
                expected = ", ".join(map(repr, COLUMN_KINDS))
                raise InputError(f"columns has {kind!r} for column {name!r}, but it must be one of {expected}.")
        return cls(tuple(as_text(value) for value in missing), dict(columns or {}))

    def is_missing(self, cells: Cells) -> Mask:
        """Return a mask of the cells that hold one of the values in `missing`; dates never do."""
        if cells.dtype == object:
            words = {value.lower() for value in self.missing}
            return np.array([cell is not None and cell.lower() in words for cell in cells], dtype=bool)
        found = np.zeros(len(cells), dtype=bool)
        if cells.dtype.kind == "f":
            for value in self.missing:
                number = as_number(value)
                if number is not None:  # a column in single precision holds a rounded number
                    found |= (cells == number) | (cells == np.float64(np.float32(number)))
        return found


NO_RULES = CellRules()


@dataclass(frozen=True)
class ColumnSelection:
    """Which columns of a table are not features, how cells are read, and how many rows at a time when streaming."""

    extra: tuple[str, ...] = ()  # read, but not as features; every table must have them
    drop: tuple[str, ...] = ()  # not read; a table need not have them
    optional: tuple[str, ...] = ()  # as `extra`, but a table need not have them
    rows_per_chunk: int = 65_536
    rules: CellRules = NO_RULES
    sheet: str | None = None  # of a workbook; None is its only sheet

    def split(self, columns: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
        """Split the column names of a table into features, columns that are read but not as features, and dropped ones.

        Each list is in the order of the table.
        """
        columns = [column for k, column in enumerate(columns) if not is_row_names(k, column)]
        drop, not_features = set(self.drop), {*self.extra, *self.optional}
        dropped = [column for column in columns if column in drop]
        extra = [column for column in columns if column in not_features and column not in drop]
        features = [column for column in columns if column not in not_features and column not in drop]
        return features, extra, dropped

    def chunk_rows(self, width: int) -> int:
        """Return how many rows of a table with `width` columns are read at a time."""
        return max(1, min(self.rows_per_chunk, _CELLS_PER_CHUNK // max(width, 1)))


@dataclass(frozen=True, eq=False)
class Origin:
    """Which original column each column of an encoded table comes from."""

    original_column: NDArray[np.intp]  # for each encoded column, the position of the column that it comes from
    own_scale: NDArray[np.bool_]  # for each encoded column, whether it keeps its scale, such as the 0 or 1 of a level
    columns: dict[str, Any] = field(default_factory=dict)  # name of each original column: how it was encoded
    line: str = ""  # the content of `columns` in words, in one line


@dataclass(frozen=True, eq=False)
class Table:
    """A named table: a matrix of finite numbers, or columns of cells that need an encoder."""

    name: str
    values: NDArray[Any]  # of shape (rows, features), or (rows, 0) where `cells` holds the features
    columns: tuple[str, ...] | None = None  # names of the features; None for an array
    extra: dict[str, NDArray[Any]] = field(default_factory=dict)  # columns that are not features: ids, weights, labels
    dropped: tuple[str, ...] = ()  # names of the columns that were not read
    origin: Origin | None = None  # of columns that were encoded
    cells: tuple[Cells, ...] = ()  # one array for each feature; empty where `values` holds the features
    native: Any = None  # the features as the user passed them, a frame or an array; None for a file

    @classmethod
    def from_cells(
        cls, name: str, cells: Sequence[Cells], columns: tuple[str, ...] | None = None, **other_fields: Any
    ) -> Table:
        """Build a table from one array of cells for each feature; it becomes a matrix if every cell is a number."""
        if all(column.dtype.kind == "f" and not np.isnan(column).any() for column in cells):
            return check_finite(cls(name, np.column_stack(cells), columns, **other_fields))
        table = cls(name, np.empty((len(cells[0]), 0)), columns, cells=tuple(cells), **other_fields)
        for k, column in enumerate(cells):
            if column.dtype.kind == "f" and np.isinf(column).any():
                where = table.place(int(np.isinf(column).argmax()), k)
                raise InputError(f"{name} contains infinity (inf) in {where}; replace it by a number or an empty cell.")
        return table

    def __len__(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.cells) or self.values.shape[1]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features; empty if they have none."""
        return self.columns or ()

    def column_name(self, k: int) -> str:
        """Return the name of feature `k`; if features have no names, its number `k` as text."""
        return self.columns[k] if self.columns else str(k)

    def column(self, k: int) -> str:
        """Return how messages call feature `k`: "column 'age'", or "column 3" if features have no names."""
        return f"column {shorten(self.columns[k])!r}" if self.columns else f"column {k}"

    def place(self, row: int, k: int) -> str:
        """Return how messages call the cell of feature `k` in a row: "row 7 (counting from 0), column 'age'"."""
        return f"row {row} (counting from 0), {self.column(k)}"

    def as_cells(self) -> Table:
        """Return the table with its features in `cells` instead of `values`, as encoders take them."""
        if self.cells:
            return self
        cells = tuple(column.astype(np.float64) for column in self.values.T)
        return replace(self, values=np.empty((len(self), 0)), cells=cells)

    def select(self, order: Sequence[int]) -> Table:
        """Return the table with only the features at the positions `order`, in that order; features must have names."""
        columns = tuple(self.column_name(k) for k in order)
        if not self.cells:
            return replace(self, values=self.values[:, order], columns=columns)
        native = self.native
        if native is not None:
            native = nw.to_native(nw.from_native(native, eager_only=True).select(*columns))
        return replace(self, cells=tuple(self.cells[k] for k in order), columns=columns, native=native)

    def without(self, drop: Iterable[str]) -> Table:
        """Return the table without the features named in `drop`, if it has them."""
        columns, drop = self.columns or (), set(drop)
        dropped = [column for column in columns if column in drop]
        if not dropped:
            return self
        selected = self.select([k for k, column in enumerate(columns) if column not in drop])
        return replace(selected, dropped=(*self.dropped, *dropped))

    def take(self, rows: Any, name: str | None = None) -> Table:
        """Return some of the rows, by positions, a slice or a mask, under another name if one is passed."""
        native = self.native
        if isinstance(native, np.ndarray):
            native = native[rows]
        elif native is not None:
            is_mask = isinstance(rows, np.ndarray) and rows.dtype.kind == "b"  # narwhals takes positions instead
            native = nw.to_native(nw.from_native(native, eager_only=True)[np.flatnonzero(rows) if is_mask else rows])
        return replace(
            self,
            name=self.name if name is None else name,
            values=self.values[rows],
            extra={key: column[rows] for key, column in self.extra.items()},
            cells=tuple(cells[rows] for cells in self.cells),
            native=native,
        )


def join_tables(tables: Sequence[Table], name: str) -> Table:
    """Concatenate the rows of tables with the same features; the result has the `extra` columns that all of them have.

    A column of numbers in one table and text in another becomes text.
    """
    if len(tables) == 1:
        return replace(tables[0], name=name)
    if any(table.cells for table in tables):
        tables = [table.as_cells() for table in tables]
    matched = match_columns(tables)
    shared = [key for key in matched[0].extra if all(key in table.extra for table in matched)]
    extra = {key: np.concatenate([table.extra[key] for table in matched]) for key in shared}
    values = np.concatenate([table.values for table in matched])
    columns = enumerate(zip(*(table.cells for table in matched), strict=True))
    cells = tuple(join_cells(parts, name, matched[0].column_name(k)) for k, parts in columns)
    return replace(matched[0], name=name, values=values, extra=extra, cells=cells, native=None)


def match_columns(tables: Sequence[Table]) -> list[Table]:
    """Return the tables with their features in the order of the first table that has names.

    Refuse tables whose names differ. Tables without names must have the same number of features.
    """
    first = tables[0]
    named = next((table for table in tables if table.columns), first)
    expected = dict.fromkeys(named.columns or ())  # a set in the order of the names
    differences = [_difference(table, named) for table in tables if table.columns]
    if any(differences):
        received = "; ".join(filter(None, differences))
        if not len(named):  # the columns of a fit
            raise InputError(f"{received}, compared with {named.name}; pass the columns that it has.")
        raise InputError(
            f"Compared with {named.name}, {received}. Pass the same columns, or say what the others are: not features "
            "(drop=[…], --drop), weights, groups, audited classes or ids (--weight-column, --group-column, "
            "--audit-column, --id-column), or names of targets (by=…, --by)."
        )
    matched = []
    for table in tables:
        if table.columns and table.columns != named.columns:
            position = {column: k for k, column in enumerate(table.columns)}
            table = table.select([position[column] for column in expected])
        if table.width != first.width:
            widths = f"{table.name} has {table.width} features but {first.name} has {first.width}"
            raise InputError(f"{widths}; pass the same columns in the same order.")
        matched.append(table)
    return matched


def _difference(table: Table, expected: Table) -> str:
    """Return which features a table lacks or has in addition, compared with another; "" if they are the same."""
    present, wanted = set(table.names), set(expected.names)
    missing = [column for column in expected.names if column not in present]
    unexpected = [column for column in table.names if column not in wanted]
    lacks = f"lacks {list_names(missing)}" if missing else ""
    has = f"also has {list_names(unexpected)}" if unexpected else ""
    differs = " and ".join(filter(None, (lacks, has)))
    return f"{table.name} {differs}" if differs else ""


def check_dropped(tables: Sequence[Table], drop: Iterable[str]) -> None:
    """Refuse a name in `drop` that is not a column of any table: it may be misspelt."""
    _check_known(tables, drop, {column for table in tables for column in table.dropped}, "to drop")


def check_stated(tables: Sequence[Table], kinds: Iterable[str]) -> None:
    """Refuse a column whose kind is stated but that is not a feature of any table: it may be misspelt."""
    _check_known(tables, kinds, {column for table in tables for column in table.names}, "whose kind is stated")


def _check_known(tables: Sequence[Table], names: Iterable[str], known: Collection[str], purpose: str) -> None:
    """Refuse a name that is not `known`, a column that no table has for its `purpose`."""
    for name in names:
        if name not in known:
            first, columns = tables[0].name, list_names(tables[0].columns or ("unnamed",))
            raise InputError(f"no table has a column {name!r} {purpose}; the columns of {first} are {columns}.")


def check_columns(name: str, columns: Sequence[str], required: Iterable[str]) -> None:
    """Refuse a table (`name` in messages) with unnamed or repeated columns, or without one of the `required` ones.

    Row names are not used, with a warning.
    """
    for k, column in enumerate(columns):
        if is_row_names(k, column):
            warn(
                "The first column has no name and was not used, as if it held row names, which R (row.names = TRUE) "
                "and pandas (index=True) write; give it a name if it is a feature.",
                FormatNotice,
            )
        elif not column:
            raise InputError(f"{name} has no name for column {k + 1}; name every column in the first line.")
    repeated = sorted(column for column, times in Counter(columns).items() if times > 1)
    if repeated:
        raise InputError(
            f"{name} has more than one column named {list_names(repeated)}; give every column its own name."
        )
    for column in required:
        if column not in columns:
            raise InputError(f"{name} has no column {column!r}; its columns are {list_names(columns)}.")


def is_row_names(position: int, column: str) -> bool:
    """Return whether a column holds row names or numbers, by its position and its name, or lack of one.

    R and pandas write a first column without a name, which pandas and R's readr read as "Unnamed: 0" and "...1".
    """
    return column.startswith("__index_level_") or (position == 0 and column in ("", "Unnamed: 0", "...1"))


class EmptyTableError(InputError):
    """A table has no rows."""

    def __init__(self, message: str, features: Sequence[str] = ()) -> None:
        """Keep the names of the features that the table has; none if they are not known."""
        super().__init__(message)
        self.features = tuple(features)


def empty_table_error(
    name: str, shape: tuple[int, ...], other_columns: Sequence[str] = (), features: Sequence[str] = ()
) -> InputError:
    """Return the error for a table without rows or features; `shape` is (rows, features).

    `other_columns` are those that are dropped or that are not features, such as ids; `features` names the others.
    """
    if not shape[1] and other_columns:
        shown = ", ".join(map(repr, other_columns[:3])) + (", …" if len(other_columns) > 3 else "")
        return InputError(
            f"{name} has no feature left, because all its columns ({shown}) are dropped or have another use; keep one."
        )
    what, missing = ("row", "rows") if shape[1] else ("feature", "columns")
    message = f"{name} has 0 {what}(s) (shape={shape}) while a minimum of 1 is required; pass some {missing}."
    return EmptyTableError(message, features) if shape[1] or not shape[0] else InputError(message)


_CACHED_VALUES = 2**16  # values that stay in the cache between two passes


def largest_size(values: NDArray[Any]) -> float:
    """Return the largest absolute value of a matrix with rows; NaN if any value is, and 0 unless values are floats."""
    if values.dtype.kind != "f" or not values.size:
        return 0.0
    step = max(1, _CACHED_VALUES // max(1, values.shape[1]))
    blocks = (values[start : start + step] for start in range(0, len(values), step))
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.abs([extreme for block in blocks for extreme in (block.min(), block.max())]).max())


def check_finite(table: Table, largest: float | None = None) -> Table:
    """Return the table unchanged; refuse an empty matrix, NaN, infinity, and numbers whose squares overflow.

    `largest` is the `largest_size` of its values, if it is already known.
    """
    name, values = table.name, table.values
    if not values.size:
        raise empty_table_error(name, values.shape, features=table.columns or ())
    largest = largest_size(values) if largest is None else largest
    if largest <= LARGEST:
        return table
    is_wrong = np.abs(values) > LARGEST if np.isfinite(largest) else ~np.isfinite(values)
    row, k = np.argwhere(is_wrong)[0]
    cell, where = values[row, k], table.place(row, k)
    if np.isnan(cell):
        raise InputError(f"{name} contains NaN in {where}; fill in the missing value or leave the row out.")
    if np.isinf(cell):
        raise InputError(f"{name} contains infinity (inf) in {where}; replace it by a number or leave the row out.")
    raise InputError(f"{name} holds {cell:.3g} in {where}, whose square overflows; rescale the column.")


def check_numbers(table: Table) -> Table:
    """Return the table unchanged; refuse one with a feature that has a missing cell or is not a column of numbers."""
    for k, cells in enumerate(table.cells):
        missing = is_missing(cells)
        if cells.dtype.kind == "f" and not missing.any():
            continue
        is_wrong = missing
        if cells.dtype == object:
            is_wrong = np.array([cell is None or as_number(cell) is None for cell in cells], dtype=bool)
        row = int(is_wrong.argmax())  # the first wrong row; row 0 if all cells are dates, or numbers written as text
        where = table.place(row, k)
        if missing[row]:
            raise InputError(f"{table.name} contains NaN or an empty cell in {where}; fill it in or leave the row out.")
        shown = repr(str(cells[row]))
        raise InputError(f"{table.name} holds {shown} in {where}, but a number is expected; encode or drop the column.")
    return table
