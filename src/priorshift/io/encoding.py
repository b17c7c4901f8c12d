"""TableEncoder: categories, dates and missing cells of a table as numbers.

A column of text becomes a column of 0 and 1 for each level, the rare levels together; a column of numbers or dates
stays one, with a further column where cells are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from priorshift.arrays import Floats, Mask
from priorshift.errors import ColumnWarning, InputError
from priorshift.formatting import drop_hint
from priorshift.io.cells import Cells, as_date, as_dates, as_number, as_text, is_missing
from priorshift.io.header_fields import Fields
from priorshift.io.readers import read_table
from priorshift.io.tables import LARGEST, Origin, Table, match_columns
from priorshift.warning_records import warn

MISSING = "(missing)"  # the level of a cell without value
RARE = "(rare)"


@dataclass(frozen=True)
class Levels:
    """Levels with a column of their own, and rare ones, which share one with all that were never seen.

    Where no level is rare there is no such column, and a level that was never seen is 0 everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.io.encoding import Levels
    >>> levels = Levels.of(np.array(["a", "b", "a", None], dtype=object), 2)
    >>> levels
    Levels(kept=('a',), rares=2, rare=('(missing)', 'b'))
    >>> levels.encode(np.array(["a", "b", "new"], dtype=object))
    array([[1., 0.],
           [0., 1.],
           [0., 1.]])
    """

    kept: tuple[str, ...]
    rares: int
    rare: tuple[str, ...] = ()  # their names, where they are known

    @classmethod
    def of(cls, cells: Cells, least: int) -> Levels:
        """From a column of text; a level of fewer than `least` rows is rare."""
        levels, counts = np.unique(named(cells), return_counts=True)
        rare = tuple(levels[counts < least].tolist())
        return cls(tuple(levels[counts >= least].tolist()), len(rare), rare)

    @property
    def known(self) -> tuple[str, ...]:
        """All that were seen, in the order of the alphabet."""
        return tuple(sorted((*self.kept, *self.rare)))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return (*self.kept, RARE) if self.rares else self.kept

    def __str__(self) -> str:
        kept, rare = len(self.kept), self.rares
        together = f" and {rare} rare one{'s' * (rare != 1)} together" * bool(rare)
        return f"{kept} level{'s' * (kept != 1)}{together}"

    def is_new(self, cells: Cells) -> Mask:
        """Which cells of a column of text hold a level that was never seen."""
        known = frozenset(self.known)
        return np.array([level not in known for level in named(cells)], dtype=bool)

    def encode(self, cells: Cells) -> Floats:
        """The columns of 0 and 1."""
        place = {level: k for k, level in enumerate(self.kept)}
        together = len(self.kept)
        made = np.zeros((len(cells), together + 1))
        made[np.arange(len(cells)), [place.get(level, together) for level in named(cells)]] = 1
        return made[:, : len(self.names)]


def named(cells: Cells) -> Cells:
    """A column of text whose missing cells are a level like any other."""
    return np.array([MISSING if cell is None else cell for cell in cells], dtype=object)


_DAY = np.timedelta64(1, "D")
_PLURALS = {"number": "numbers", "category": "categories", "date": "dates"}
_STORED = {"number": "median gaps", "date": "median gaps", "category": "kept rare", "left out": ""}  # of each kind
_LONGEST = 60  # characters of a name in the line
_NO_LEVELS = Levels((), 0)


@dataclass(frozen=True)
class EncodedColumn:
    """What was done with one column."""

    name: str
    kind: str  # "number", "category", "date" or "left out"
    became: str
    missing: float  # share of the rows that it was fitted on
    median: float = 0.0  # of a number or a date, in days
    gaps: bool = False  # whether one of them was missing
    levels: Levels = _NO_LEVELS  # of a category

    @classmethod
    def of(cls, name: str, cells: Cells, min_frequency: int) -> EncodedColumn:
        """Decided by the cells of one sample."""
        empty = is_missing(cells)
        missing = float(empty.mean())
        if empty.all():
            return cls(name, "left out", "nothing", missing)
        if cells.dtype == object:
            levels = Levels.of(cells, min_frequency)
            return cls(name, "category", str(levels), missing, levels=levels)
        kind = "date" if cells.dtype.kind == "M" else "number"
        median, gaps = float(np.nanmedian(in_days(cells))), bool(empty.any())
        became = "itself" if kind == "number" else "days, sine and cosine of the time of the year"
        if gaps:
            day = np.datetime64(0, "D") + np.timedelta64(int(median), "D") if kind == "date" else None
            became += f", median {f'{median:.4g}' if day is None else day} where missing; and whether it is missing"
        return cls(name, kind, became, missing, median, gaps)

    @property
    def is_quantity(self) -> bool:
        """Whether it is a number, or becomes one: days."""
        return self.kind in ("number", "date")

    def to_header(self) -> dict[str, Any]:
        """All that encoding needs, in words and numbers, as JSON can hold them.

        Names of rare levels are not among it: they change no number, and may tell of a single person.
        """
        made: dict[str, Any] = {"name": self.name, "kind": self.kind, "became": self.became, "missing": self.missing}
        if self.is_quantity:
            made |= {"median": self.median, "gaps": self.gaps}
        if self.kind == "category":
            made |= {"kept": list(self.levels.kept), "rare": self.levels.rares}
        return made

    @classmethod
    def from_header(cls, header: Any) -> EncodedColumn:
        """What `to_header` gave, checked, since it may be someone else's."""
        kind = header.get("kind") if isinstance(header, dict) else None
        known = kind if isinstance(kind, str) and kind in _STORED else "left out"  # which has the fewest fields
        fields = Fields(header, f"name kind became missing {_STORED[known]}", "an encoded column")
        if kind != known:
            raise fields.refused(f"its kind is {str(kind)[:40]!r}")
        made = fields.text("name"), known, fields.text("became"), fields.number("missing", 0, 1)
        if known == "category":
            levels = Levels(fields.texts("kept"), fields.whole("rare"))
            if not levels.names:
                raise fields.refused("it has no level")
            return cls(*made, levels=levels)
        if known == "left out":
            return cls(*made)
        return cls(*made, fields.number("median", -LARGEST, LARGEST), fields.flag("gaps"))


@dataclass(frozen=True)
class EncodingSummary:
    """What was done with each column; it prints as a table.

    Examples
    --------
    >>> from priorshift import TableEncoder
    >>> print(TableEncoder(min_frequency=1).fit([[1.5, "a"], [None, "b"], [2.5, "a"]]).summary_)
    column  kind      missing  became
    0       number    33.3%    itself, median 2 where missing; and whether it is missing
    1       category  0%       2 levels
    """

    columns: tuple[EncodedColumn, ...]

    def __str__(self) -> str:
        rows = [("column", "kind", "missing", "became")]
        rows += [(c.name, c.kind, f"{100 * c.missing:.3g}%", c.became) for c in self.columns]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)

    def line(self) -> str:
        """One line: how many columns of each kind, with the names of all but the numbers."""
        parts = []
        for kind in ("number", "category", "date", "left out"):
            names = [_cut(c.name) for c in self.columns if c.kind == kind]
            if names:
                told = f"{len(names)} {kind if len(names) == 1 else _PLURALS.get(kind, kind)}"
                parts.append(told if kind == "number" else f"{told} ({', '.join(names)})")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Give plain words and numbers, by the names of the columns.

        Returns
        -------
        dict
            With "kind", "became" and "missing" for each.
        """
        return {c.name: {"kind": c.kind, "became": c.became, "missing": round(c.missing, 4)} for c in self.columns}


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def in_days(cells: Cells) -> Floats:
    """Numbers as they are and dates in days, with NaN."""
    if cells.dtype.kind != "M":
        return cells
    return np.where(np.isnat(cells), np.nan, (cells - np.datetime64(0, "us")) / _DAY).astype(np.float64)


_FEW_LEVELS = 20  # which are never too many
_HARDLY = 2  # rows that a text stands in
_DAY = np.timedelta64(1, "D")
_YEAR = 365.2425  # days


class TableEncoder(TransformerMixin, BaseEstimator):
    """Make numbers of a table with categories, dates and missing cells.

    What a column is, is decided by the sample that it is fitted on, the unlabelled source sample:

    - Numbers and truth values stay as they are. Where that sample has missing cells, they become its median, and a
      column more says where.
    - Text, categoricals and other objects become a column of 0 and 1 for each level; rare levels are one, together
      with levels that were not there; a missing cell is a level like any other.
    - Dates become days, and sine and cosine of the time of the year; a time zone is brought to UTC. Text is a date
      where every cell is one as ISO 8601 writes it. Missing dates are as missing numbers.
    - Durations and times of the day become days.

    A column without any value is left out, with a warning. Text that most rows share with hardly another one is
    refused: it is a name or an id rather than a category.

    Parameters
    ----------
    min_frequency : int
        Rows of a level below which it is rare.

    Attributes
    ----------
    summary_ : EncodingSummary
        What is done with each column.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import pandas as pd
    >>> from priorshift import TableEncoder
    >>> source = pd.DataFrame({"age": [30, None, 50], "sex": ["f", "m", "f"]})
    >>> encoder = TableEncoder(min_frequency=1).fit(source)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age (missing)', 'sex = f', 'sex = m']
    >>> encoder.transform(source)
    array([[30.,  0.,  1.,  0.],
           [40.,  1.,  0.,  1.],
           [50.,  0.,  1.,  0.]])
    """

    def __init__(self, *, min_frequency: int = 10) -> None:
        self.min_frequency = min_frequency

    def fit(self, table: Any, y: Any = None) -> Self:
        """Decide what each column is.

        Parameters
        ----------
        table : data frame, array-like or path
            The unlabelled source sample.
        y : object
            Not used.

        Returns
        -------
        Self
            The fitted encoder.
        """
        whole = isinstance(self.min_frequency, (int, np.integer)) and not isinstance(self.min_frequency, bool)
        if not (whole and self.min_frequency >= 1):
            raise InputError(
                f"min_frequency is {self.min_frequency!r}, but it must be a whole number of rows from 1 on, such as 10."
            )
        mixed = read_table(table, "the table").as_cells()
        self.n_features_in_ = mixed.width
        if mixed.columns:
            self.feature_names_in_ = np.asarray(mixed.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        cells = [_decided(column) for column in mixed.cells]
        columns = [EncodedColumn.of(mixed.label(k), cells[k], self.min_frequency) for k in range(mixed.width)]
        if all(column.kind == "left out" for column in columns):
            raise InputError(f"no column of {mixed.name} has a value; pass columns that have some.")
        for k, column in enumerate(columns):
            if column.kind == "left out":
                warn(
                    f"Left out {mixed.column(k)}: it has no value in {mixed.name}, which decides how columns are "
                    "encoded; drop it, or find out why it is empty.",
                    ColumnWarning,
                )
        for k, column in enumerate(columns):
            if column.kind == "category":
                self._check_levels(cells[k], mixed, k)
        self._set_columns(columns)
        return self

    def transform(self, table: Any) -> Floats:
        """Encode a table with the columns that `fit` was given.

        Parameters
        ----------
        table : data frame, array-like or path
            Of any sample; columns are matched by name where there are names.

        Returns
        -------
        ndarray of shape (rows, columns)
            Finite numbers.
        """
        check_is_fitted(self, "summary_")
        return self.encode(self.fitting(read_table(table, "the table").as_cells(), "the fitted table"))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the columns that `transform` gives.

        Parameters
        ----------
        input_features : object
            Not used; the names are those of `fit`.

        Returns
        -------
        ndarray of object
        """
        check_is_fitted(self, "summary_")
        names = [self._quantity_name(k) for k in self._quantities]
        names += [f"{self._labels[k]} (missing)" for k in self._gaps]
        names += [f"{self._labels[k]} ({part} of the year)" for k in self._dates for part in ("sine", "cosine")]
        names += [f"{self._labels[k]} = {level}" for k in self._categories for level in self._levels[k].names]
        return np.asarray(names, dtype=object)

    def fitting(self, table: Table, first: str = "the unlabelled source sample") -> Table:
        """The table with every column in the form that it had when it was fitted, or a sentence about what is not.

        `first` is what the sentence calls the sample that it was fitted on.
        """
        nothing = tuple(np.empty(0) for _ in range(self.n_features_in_))
        table = match_columns([Table(first, np.empty((0, 0)), self.names, cells=nothing), table])[1]
        cells = []
        for k, (kind, column) in enumerate(zip(self._kinds, table.cells, strict=True)):
            if kind == "category":
                column = self._as_levels(column, k)
            elif kind in ("number", "date"):
                column = converted(column, kind, table, k, first)
            cells.append(column)
        return replace(table, cells=tuple(cells), native=None)

    def encode(self, table: Table) -> Floats:
        """The numbers of a table whose columns have the fitted form."""
        parts = []
        if self._quantities:
            numbers = np.column_stack([in_days(table.cells[k]) for k in self._quantities])
            gaps = np.isnan(numbers)
            parts.append(np.where(gaps, self._medians, numbers))
            parts.append(gaps[:, [k in self._gaps for k in self._quantities]])
        for k in self._dates:
            angle = 2 * np.pi * _of_year(table.cells[k])
            # a missing date lies in the middle
            parts.append(np.nan_to_num(np.column_stack([np.sin(angle), np.cos(angle)]), nan=0.0))
        parts += [self._levels[k].encode(table.cells[k]) for k in self._categories]
        return np.column_stack(parts).astype(np.float64)

    @property
    def origin(self) -> Origin:
        """Where the encoded columns come from."""
        of = [*self._quantities, *self._gaps]
        of += [k for k in self._dates for _ in range(2)]
        of += [k for k in self._categories for _ in self._levels[k].names]
        own = np.arange(len(of)) >= len(self._quantities)
        return Origin(np.array(of, dtype=np.intp), own, self.summary_.to_dict(), self.summary_.line())

    def table(self, table: Table) -> Table:
        """The encoded table, which knows where its columns come from."""
        names = tuple(self.get_feature_names_out())
        return Table(table.name, self.encode(table), names, table.extra, table.dropped, self.origin)

    def to_header(self) -> dict[str, Any]:
        """The fitted encoder in words and numbers, as JSON can hold them."""
        return {
            "min_frequency": int(self.min_frequency),
            "named": hasattr(self, "feature_names_in_"),
            "columns": [column.to_header() for column in self.summary_.columns],
        }

    @classmethod
    def from_header(cls, header: Any) -> Self:
        """The encoder that gave a header, which is checked, since it may be someone else's."""
        fields = Fields(header, "min_frequency named columns", "an encoding")
        columns = [EncodedColumn.from_header(column) for column in fields.parts("columns")]
        if all(column.kind == "left out" for column in columns):
            raise fields.refused("no column is left")
        names = [column.name for column in columns]
        if len(set(names)) < len(names):
            raise fields.refused("two columns have one name")
        made = cls(min_frequency=fields.whole("min_frequency", 1))
        made.n_features_in_ = len(columns)
        if fields.flag("named"):
            made.feature_names_in_ = np.asarray(names, dtype=object)
        made._set_columns(columns)
        return made

    def _set_columns(self, columns: Sequence[EncodedColumn]) -> None:
        self.summary_ = EncodingSummary(tuple(columns))
        self._kinds = tuple(column.kind for column in columns)
        self._labels = tuple(column.name for column in columns)
        self._quantities = tuple(k for k, column in enumerate(columns) if column.is_quantity)
        self._gaps = tuple(k for k, column in enumerate(columns) if column.gaps)
        self._dates, self._categories = (_numbers_of(self._kinds, kind) for kind in ("date", "category"))
        self._medians = np.array([columns[k].median for k in self._quantities])
        self._levels = {k: columns[k].levels for k in self._categories}

    def _check_levels(self, cells: Cells, table: Table, k: int) -> None:
        """A column most of whose texts hardly repeat is no category."""
        levels, counts = np.unique(named(cells), return_counts=True)
        alone = counts[counts <= _HARDLY].sum() / len(cells)
        if len(levels) > _FEW_LEVELS and alone > 0.5:
            raise InputError(
                f"{table.name} has {len(levels)} different texts in {table.column(k)}, such as {levels[0]!r}, and "
                f"{alone:.0%} of its rows hold one that hardly another row has, so it is a name or an id rather than a "
                f"category; drop the column{_named_drop(table, k)}, pass it as groups (--group-column) if it says "
                "which rows belong together, join its texts to fewer, or pass an encoder that reads text, such as "
                "skrub's TableVectorizer()."
            )

    def _as_levels(self, cells: Cells, k: int) -> Cells:
        """Text, also of numbers and dates; a number that a file has made of a level such as 01 is that level again."""
        if cells.dtype == object:
            return cells
        known = {as_number(level): level for level in self._levels[k].known}
        made = np.empty(len(cells), dtype=object)
        made[:] = [
            None if missing else known.get(cell, as_text(cell)) if isinstance(cell, float) else str(cell)
            for cell, missing in zip(cells.tolist(), is_missing(cells), strict=True)
        ]
        return made

    def unseen(self, table: Table, k: int) -> list[str | None]:
        """Of each row of a table whose level was not there when it was fitted, that level; None is a missing cell."""
        new = named(table.cells[k])[self._levels[k].is_new(table.cells[k])]
        return [None if level == MISSING else level for level in new]

    def has_gaps(self, k: int) -> bool:
        """Whether a column of numbers or dates had missing cells when it was fitted."""
        return k in self._gaps

    @property
    def names(self) -> tuple[str, ...] | None:
        """Of the columns that it was fitted on, where they have names."""
        return tuple(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each column is."""
        return self._kinds

    def _quantity_name(self, k: int) -> str:
        return f"{self._labels[k]} (days)" if k in self._dates else self._labels[k]


def _named_drop(table: Table, k: int) -> str:
    return f" {drop_hint(table.columns[k])}" if table.columns else ""


def _numbers_of(kinds: Sequence[str], wanted: str) -> tuple[int, ...]:
    return tuple(k for k, kind in enumerate(kinds) if kind == wanted)


def _decided(cells: Cells) -> Cells:
    """Text that is dates, as dates."""
    if cells.dtype != object or is_missing(cells).all():
        return cells
    dates = as_dates(cells)
    return cells if dates is None else dates


def converted(cells: Cells, kind: str, table: Table, k: int, first: str) -> Cells:
    """A column of another sample in the form that it has in the first one: "number" or "date"."""
    form = {"number": "f", "date": "M"}[kind]
    missing = is_missing(cells)
    if cells.dtype.kind == form:
        return cells
    if missing.all():
        return np.full(len(cells), np.nan if kind == "number" else np.datetime64("NaT", "us"))
    read = as_number if kind == "number" else as_date
    made = np.full(len(cells), np.nan) if kind == "number" else np.full(len(cells), "NaT", dtype="datetime64[us]")
    for row in np.flatnonzero(~missing):
        value = read(cells[row]) if isinstance(cells[row], str) else None
        if value is None:
            shown = repr(cells[row]) if isinstance(cells[row], str) else str(cells[row])
            otherwise = "numbers" if kind == "number" else "dates such as 2024-03-31"
            raise InputError(
                f"{table.name} holds {shown} in row {row} (counting from 0), {table.column(k)}, but {first} "
                f"has {otherwise} there{_decimal_comma(cells[row])}; write it so, leave the cell empty "
                "if it is not known, or drop the column."
            )
        made[row] = value
    return made


def _decimal_comma(cell: Any) -> str:
    """A word on what it probably is."""
    if isinstance(cell, str) and cell.count(",") == 1 and as_number(cell.replace(",", ".")) is not None:
        return ", with a decimal point"
    return ""


def _of_year(cells: Cells) -> Floats:
    """How much of its year has passed at a date, from 0 to 1; NaN where there is none."""
    begin = cells.astype("datetime64[Y]")
    passed = (cells - begin.astype("datetime64[us]")) / _DAY / _YEAR
    return np.where(np.isnat(cells), np.nan, passed).astype(np.float64)
