"""Checks of columns and samples before an estimate, and what was done with each column.

A few rows with a code for missing values, such as 9999, make up the whole spread of their column, so that a
standardised column is zero for all others. Heavy tails do so too, but their largest values are not repeated and leave
no gap.

Label shift says that the target is made of the source's two classes in other proportions. What it cannot have, then, is
a value that the source lacks; and a column that numbers the rows belongs to no class. None of these checks changes the
estimate, and each is silent where chance could explain what it sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Mask
from priorshift.errors import ColumnWarning, InconsistentInputWarning
from priorshift.formatting import drop_hint
from priorshift.io.cells import is_missing, is_missing_value
from priorshift.io.encoding import TableEncoder
from priorshift.io.observations import row_codes
from priorshift.io.row_metadata import MetadataColumns
from priorshift.io.tables import Table
from priorshift.warning_records import warn


class FarValueWarning(ColumnWarning):
    """A value so far from all others of its column that it may be a code for a missing one."""


_FALLS = 10.0  # times that the spread is smaller without the value
_GAP = 10.0  # spreads of the rest, between the value and the next one
_TAIL = 0.005  # of the rest at either end, which its spread leaves out: another code may be among them
_VALUES = 10  # that the rest has at least: below, a column is no measurement
_ROWS = 20_000  # that a spread is taken from


def warn_of_far_values(table: Table) -> None:
    """Name each column that holds such a value, the value, and in how many rows."""
    for number, column in enumerate(table.values.T):
        for value in (column.max(), column.min()) if len(column) else ():
            rows = int(np.count_nonzero(column == value))
            distance = _distance(column, value, rows)
            if distance:
                warn(
                    f"In {table.name}, {table.column(number)} holds {value:.10g} in {rows} row{'s'[: rows > 1]}, "
                    f"{distance:.0f} spreads from the rest; a code for a missing value? Leave these rows out, or "
                    "write what is known.",
                    FarValueWarning,
                )


def _distance(column: Floats, value: float, rows: int) -> float:
    """Of the column's end from the rest, in spreads of the rest; 0 where it does not stand out."""
    repeated = 2 <= rows < len(column) / 2 and abs(value) > 1  # 0 and 1 are ends of shares
    if not (repeated or (rows == 1 and _is_nines(value))):
        return 0.0
    rest = column[column != value].astype(np.float64)
    next_one = rest.max() if value > rest[0] else rest.min()
    some = np.sort(rest[:: max(1, len(rest) // _ROWS)])
    cut = int(_TAIL * len(some))
    inner = some[cut : len(some) - cut]
    spread = float(inner.std())
    far = abs(float(value) - next_one) > _GAP * spread and float(column.std(dtype=np.float64)) > _FALLS * spread
    measured = far and len(np.unique(inner)) >= _VALUES
    return abs(float(value) - float(np.median(inner))) / spread if measured else 0.0


def _is_nines(value: float) -> bool:
    """999, −9999 and the like, which even once is no measurement."""
    return abs(value) >= 999 and float(value).is_integer() and set(str(int(abs(value)))) == {"9"}


_CHANCE = 1e-4  # below which something is not put down to chance
_MOST = 0.5  # share of a sample
_ALL = 0.95  # but for a few
_LEAST_PRIOR = 0.02  # that a source is credited with
_FEW = 10  # rows of a sample, below which nothing is said of it
_GROSS = 0.2  # excess of a share
_ERRORS = 5  # standard errors of it


def warn_of_columns(tables: Sequence[Table], kinds: Sequence[str] | None = None) -> None:
    """Tell of columns of the unlabelled, positive and target sample that number rows or cannot be of one law.

    Parameters
    ----------
    tables : sequence of three tables
        Unlabelled, positive and target rows with the same columns.
    kinds : sequence of str or None
        What each column is; None: all are numbers.
    """
    for k in range(tables[0].width):
        kind = kinds[k] if kinds else "number"
        if kind in ("number", "date"):
            U, P, T = (_column(table, k) for table in tables)
            said = _trouble(U, P, T, kind)
            if said:
                where, out = tables[0].column(k), _way_out(tables[0], k)
                warn(f"{where[0].upper()}{where[1:]} {said}; {out}, or check how it was made.", ColumnWarning)


def _way_out(table: Table, k: int) -> str:
    name = table.columns and table.columns[k]
    return f"leave it out {drop_hint(name)}" if name else "leave it out"


def _trouble(U: Floats, P: Floats, T: Floats, kind: str) -> str | None:
    """What is wrong with a column, if anything."""
    if min(len(U), len(T)) < _FEW:
        return None
    if kind == "number" and numbers_rows([U, P, T]):
        return (
            f"looks like an id: whole numbers, from {U.min():.12g} to {U.max():.12g}, of which no two rows of a sample "
            "share one. It belongs to no class and spoils the estimate"
        )
    source = np.concatenate([U, P])
    if T.min() > source.max() or T.max() < source.min():
        ends = [_shown(end, kind) for end in (T.min(), T.max(), source.min(), source.max())]
        return (
            f"runs from {ends[0]} to {ends[1]} in the target and from {ends[2]} to {ends[3]} in the source, without a "
            "value in common, which label shift does not allow"
        )
    same = [float(np.mean(values == T[0])) for values in (U, P) if len(values)]
    if T.min() == T.max() and max(same) < _MOST:
        return (
            f"is {_shown(T[0], kind)} in every row of the target but in only {same[0]:.1%} of the unlabelled source "
            "rows, which label shift hardly allows"
        )
    return None


def _column(table: Table, k: int) -> Floats:
    """The values that are there; dates in microseconds."""
    cells = table.values[:, k] if table.is_numeric else table.cells[k]
    if cells.dtype.kind == "M":
        return cells[~np.isnat(cells)].astype(np.int64).astype(np.float64)
    cells = cells.astype(np.float64)
    return np.asarray(cells[~np.isnan(cells)])


def _shown(value: float, kind: str) -> str:
    return str(np.datetime64(int(value), "us").astype("datetime64[D]")) if kind == "date" else f"{value:.6g}"


def numbers_rows(samples: Sequence[Floats]) -> bool:
    """Whether a column counts rows: whole numbers that never repeat, in a range where chance would repeat them.

    Of n independent draws from any distribution on r whole numbers, no two agree with a probability of at most about
    exp(−n²/2r): the uniform one repeats least. Or they stand in order, which n values do by chance in 2 of n! cases.

    Parameters
    ----------
    samples : sequence of ndarray
        The column in each sample.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.io.column_checks import numbers_rows
    >>> rng = np.random.default_rng(0)
    >>> numbers_rows([rng.permutation(5000)[:500]]), numbers_rows([rng.integers(5000, size=500)])
    (True, False)
    """
    log_chance, ordered = 0.0, True
    for values in samples:
        if len(values) < 2:
            continue
        if (values != np.round(values)).any() or len(np.unique(values)) < len(values):
            return False
        n, r = len(values), values.max() - values.min() + 1
        log_chance -= n * (n - 1) / (2 * r)
        ordered = ordered and bool((np.diff(values) > 0).all() or (np.diff(values) < 0).all())
    return bool(log_chance < np.log(_CHANCE)) or ordered


def warn_of_levels(tables: Sequence[Table], encoder: TableEncoder) -> None:
    """Tell of levels and missing cells that the unlabelled sample lacks.

    Parameters
    ----------
    tables : sequence of three Table
        Unlabelled, positive and target rows, in the encoder's form.
    encoder : TableEncoder
        Fitted on the first.
    """
    U, P, T = tables
    for k, kind in enumerate(encoder.kinds):
        if kind == "left out":
            continue
        of_positive, of_target = (_new_cells(table, encoder, k) for table in (P, T))
        level, rows = _commonest([level for level in of_target if level not in set(of_positive)])
        # without a shift, the chance that all rows of a level fall into the target; any of them may be the commonest
        if rows and len(set(of_target)) * (len(T) / (len(U) + len(T))) ** rows < _CHANCE:
            warn(
                f"{rows} of {len(T)} rows ({rows / len(T):.1%}) of {T.name} have {level} in {T.column(k)}, and none of "
                "the source has, which label shift does not allow; check how the column was made, or drop it.",
                ColumnWarning,
            )
        level, rows = _commonest(of_positive)
        # the population must have it too, at π times the share of the positives that do
        if rows and (1 - _LEAST_PRIOR * rows / len(P)) ** len(U) < _CHANCE:
            warn(
                f"{rows} of {len(P)} rows ({rows / len(P):.1%}) of {P.name} have {level} in {P.column(k)}, but none of "
                f"the {len(U)} of {U.name} has, a sample of a population that holds such positives; check how the "
                "column was made, or drop it.",
                ColumnWarning,
            )


def _new_cells(table: Table, encoder: TableEncoder, k: int) -> list[str]:
    """What stands in rows of a table, in words, and not in the sample that the encoder was fitted on."""
    if encoder.kinds[k] == "category":
        return ["no value" if level is None else repr(level) for level in encoder.unseen(table, k)]
    return ["no value"] * int(is_missing(table.cells[k]).sum()) * (not encoder.has_gaps(k))


def _commonest(levels: Sequence[str]) -> tuple[str, int]:
    if not levels:
        return "", 0
    names, counts = np.unique(np.array(levels, dtype=object), return_counts=True)
    return str(names[counts.argmax()]), int(counts.max())


def warn_of_shares(tables: Sequence[Table], kinds: Sequence[str]) -> None:
    """Tell of a category that is constant in the target, and of missing cells, more than the source's classes allow.

    Parameters
    ----------
    tables : sequence of three Table
        Unlabelled, positive and target rows, in the encoder's form.
    kinds : sequence of str
        What each column is.
    """
    T = tables[2]
    for k, kind in enumerate(kinds):
        if kind == "left out" or min(map(len, tables)) < _FEW:
            continue
        columns = [table.cells[k] for table in tables]
        said = [("no value", [is_missing(cells) for cells in columns])]
        there = {cell for cell in columns[2] if cell is not None} if kind == "category" else set()
        if len(there) == 1:
            (level,) = there
            said.append((repr(level), [cells == level for cells in columns]))
        for what, rows in said:
            shares = [float(found.mean()) for found in rows]
            # what the source lacks altogether is told by `warn_of_levels`
            if max(shares[:2]) > 0 and is_beyond(*rows):
                warn(
                    f"{shares[2]:.1%} of the rows of {T.name} have {what} in {T.column(k)}, but {shares[0]:.1%} of the "
                    f"unlabelled source rows and {shares[1]:.1%} of the positives, which label shift allows only "
                    f"where most of the source is positive; {_way_out(T, k)}, or check how it was made.",
                    ColumnWarning,
                )


def is_beyond(unlabeled: Mask, positive: Mask, target: Mask) -> bool:
    """Whether a share in the target is far beyond that of either class of the source, for any source prior up to 1/2.

    Of the negatives the share is (u − πp)/(1 − π), at most max(u, 2u − p) for such π; the target's lies between the
    classes.

    Parameters
    ----------
    unlabeled, positive, target : ndarray of bool
        Which rows of each sample have it.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.io.column_checks import is_beyond
    >>> u, p = np.arange(200) < 60, np.arange(100) < 10
    >>> is_beyond(u, p, np.arange(300) < 150), is_beyond(u, p, np.arange(300) < 290)
    (False, True)
    """
    u, p, t = (float(rows.mean()) for rows in (unlabeled, positive, target))
    of_u, of_p, of_t = (_error(rows) for rows in (unlabeled, positive, target))
    return all(
        t - most > max(_GROSS, _ERRORS * float(np.hypot(error, of_t)))
        for most, error in ((u, of_u), (p, of_p), (2 * u - p, float(np.hypot(2 * of_u, of_p))))
    )


def _error(rows: Mask) -> float:
    """The standard error of a share, which is not 0 where no row has it or all do."""
    n = len(rows)
    share = (rows.sum() + 1) / (n + 2)
    return float(np.sqrt(share * (1 - share) / n))


def warn_of_samples(tables: Sequence[Table]) -> None:
    """Tell of a target that is one of the source samples once more, or holds most of its rows.

    Parameters
    ----------
    tables : sequence of three Table
        Unlabelled, positive and target rows.
    """
    unlabeled, positive, target = tables
    for other, share, words in (
        (unlabeled, _MOST, "so both seem to be samples of one population"),
        (positive, _ALL, "so the target seems to hold the labelled positives"),
    ):
        again = _found_again(other.values, target.values)
        if again > share * len(target.values):
            warn(
                f"{again} of {len(target.values)} rows of {target.name} also stand in {other.name}, {words}; pass a "
                "sample of the new one as target.",
                InconsistentInputWarning,
            )


def _found_again(X: Floats, T: Floats) -> int:
    """Rows of T that stand in X too; 0 where they are few, or rows of X repeat themselves."""
    if len(T) < 2:
        return 0
    if X.shape == T.shape and np.array_equal(np.sort(X, axis=0), np.sort(T, axis=0)):
        return len(T)
    if any(np.isin(T[:, k], X[:, k]).mean() <= _MOST for k in range(T.shape[1])):
        return 0  # rows that differ in a column are others; this is cheaper to see
    codes = row_codes(np.concatenate([X, T]))
    if len(np.unique(codes[: len(X)])) < 0.9 * len(X):
        return 0  # discrete data
    return int(np.isin(codes[len(X) :], codes[: len(X)]).sum())


_USES = {
    "shared": ("id", "tells which rows are one observation"),
    "groups": ("group", "tells which rows belong together"),
    "weights": ("weight", "tells what each row stands for"),
    "audit": ("audit", "tells the class of rows that were looked up"),
}


@dataclass(frozen=True)
class ColumnUse:
    """What was done with a column.

    Attributes
    ----------
    name : str
        The column's, or its number where it has no name.
    use : {"feature", "constant", "left out", "id", "group", "weight", "audit", "target", "label", "dropped"}
        What it was used for. A constant column and one without a value are no features.
    kind : {"number", "category", "date", "text", "not read"}
        What it holds.
    became : str
        What was made of it, in words.
    missing : float
        The share of cells without a value: of a feature among the unlabelled rows, of another column among the rows of
        all tables that have it; NaN where it was not read.
    """

    name: str
    use: str
    kind: str
    became: str
    missing: float

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers and text.

        Returns
        -------
        dict
        """
        return vars(self) | {"missing": None if np.isnan(self.missing) else self.missing}


def column_uses(
    positive: Table, unlabeled: Table, targets: Sequence[Table], stated: MetadataColumns, by: str | None = None
) -> tuple[ColumnUse, ...]:
    """Return what is done with each column: features first, then what is known of rows, then what was dropped."""
    tables = unlabeled, positive, *targets
    return (*_features(unlabeled), *_row_columns(tables, stated, by), *_dropped(tables, by))


def _features(table: Table) -> Iterator[ColumnUse]:
    flat = (table.values == table.values[:1]).all(axis=0) if len(table.values) else np.zeros(table.width, dtype=bool)
    if table.origin is None:
        for k in range(table.width):
            name = table.columns[k] if table.columns else str(k)
            yield _feature(name, "number", "itself", 0.0, bool(flat[k]))
        return
    for k, (name, column) in enumerate(table.origin.columns.items()):
        own = table.origin.of == k
        yield _feature(name, column["kind"], column["became"], column["missing"], bool(own.any() and flat[own].all()))


def _feature(name: str, kind: str, became: str, missing: float, flat: bool) -> ColumnUse:
    if kind == "left out":
        return ColumnUse(name, "left out", "not read", "nothing: it has no value in the unlabelled rows", missing)
    if flat:
        return ColumnUse(name, "constant", kind, "nothing: it is the same in all unlabelled rows", missing)
    return ColumnUse(name, "feature", kind, became, missing)


def _row_columns(tables: Sequence[Table], stated: MetadataColumns, by: str | None) -> Iterator[ColumnUse]:
    uses: dict[str, list[tuple[str, str]]] = {}
    for part, use_and_words in _USES.items():
        column = getattr(stated, part)
        if isinstance(column, str) and not (part == "shared" and column == "identical"):
            uses.setdefault(column, []).append(use_and_words)
    for name in dict.fromkeys(name for table in tables for name in table.extra):
        use = uses.get(name) or [
            ("target", "tells the targets apart") if name == by else ("label", "tells which rows are labelled positive")
        ]
        kind, missing = _kind_and_missing([table.extra[name] for table in tables if name in table.extra])
        yield ColumnUse(name, use[0][0], kind, ", and ".join(words for _, words in use), missing)


def _dropped(tables: Sequence[Table], by: str | None) -> Iterator[ColumnUse]:
    for name in dict.fromkeys(name for table in tables for name in table.dropped if name != by):
        yield ColumnUse(name, "dropped", "not read", "nothing, as you asked", float("nan"))


def _kind_and_missing(columns: Sequence[NDArray[Any]]) -> tuple[str, float]:
    """What cells hold, and how many of them nothing."""
    values = [value for column in columns for value in column.tolist()]
    nothing = [is_missing_value(value) for value in values]
    kinds = {type(value) for value, no in zip(values, nothing, strict=True) if not no}
    kind = "text" if str in kinds else "date" if any(column.dtype.kind == "M" for column in columns) else "number"
    return kind, float(np.mean(nothing)) if nothing else 0.0
