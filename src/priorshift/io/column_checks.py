"""Samples encoded as numbers, checks of their columns, and how each column was used.

Label shift means that the target is a mixture of the source's two classes in other proportions. So it cannot have a
value that the source lacks, and a column that numbers the rows belongs to no class. A column in
which both have no value in common is refused. The other checks warn, and do not change an estimate. Each is silent
where chance could explain what it finds.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from priorshift.arrays import Floats, Mask
from priorshift.errors import ColumnWarning, InconsistentInputWarning, InputError
from priorshift.formatting import drop_hint, shell_option
from priorshift.io.cells import as_text, is_missing, is_missing_value
from priorshift.io.encoding import TableEncoder
from priorshift.io.observations import common_rows
from priorshift.io.readers import read_numeric_table
from priorshift.io.row_hashes import count_distinct
from priorshift.io.row_metadata import MetadataColumns
from priorshift.io.tables import (
    Table,
    check_dropped,
    check_finite,
    check_numbers,
    check_stated,
    join_tables,
    match_columns,
)
from priorshift.warning_records import list_names, warn

_MIN_SPREAD_RATIO = 10.0  # of the standard deviations of a column with and without a far value
_MIN_GAP = 10.0  # standard deviations between a far value and the next one
_TAIL = 0.005  # share trimmed at either end before the standard deviation is computed: another code may be there
_MIN_VALUES = 10  # distinct values that a measurement has at least
_SPREAD_ROWS = 20_000  # rows that a standard deviation is computed from
_MAX_P_VALUE = 1e-4  # p-value below which chance is ruled out
_MOST = 0.5  # share of a sample
_ROUNDING = 1e-6  # relative difference of one number in single and in double precision
_NEARLY_ALL = 0.95  # share of a sample
_MIN_PRIOR = 0.02  # smallest source prior that the checks assume
_FIRST = 1000  # values of a column that are checked before the others
_MIN_ROWS = 10  # rows that a sample needs to be checked
_DENSE = 1.1  # range of ids that are given out one by one, in units of their number
_MIN_IDS = 200  # different numbers from which on a column with repeated numbers may be called an id
_MIN_OUTSIDE = 0.05  # share of a target's dates outside of the source's range below which there is no warning
# "id" as a word of its own or at the end in capitals (patientID), and other words for identifiers
_ID_NAME = re.compile(r"(?i:(^|[^a-z])(id|uuid|nr|key|identifier)([^a-z]|$))|[a-z]I[Dd]$")
_MIN_EXCESS = 0.2  # difference of shares below which there is no warning
_LABELED = "the labelled rows"  # name of the table that takes the place of a missing unlabelled sample
_MIN_ERRORS = 5  # standard errors of a difference of shares below which there is no warning


class FarValueWarning(ColumnWarning):
    """A column holds a value far from the rest; nested estimators suppress this warning alone."""


def encode_tables(
    positives: Sequence[Table],
    unlabeled: Table | None,
    targets: Sequence[Table],
    drop: Sequence[str],
    encoder: Any,
    stated_columns: Iterable[str] = (),
) -> tuple[list[Table], Table, list[Table]]:
    """Return the samples as numbers, with the same columns in the same order, and warn of suspicious columns.

    Tables of numbers stay as they are; others are encoded by a :class:`TableEncoder` ("auto"), by the user's
    transformer, or are refused (None). `positives` are the labelled samples, one for each class. If `unlabeled` is
    None, all labelled rows take its place, and the returned table has no rows. `drop` and `stated_columns` are columns
    that the user names.
    """
    # the first sample decides the columns and their encoding
    population = join_tables(positives, _LABELED) if unlabeled is None else unlabeled
    tables, n_source = [population, *positives, *targets], 1 + len(positives)
    check_dropped(tables, drop)
    check_stated(tables, stated_columns)
    if encoder is None:
        tables = [check_numbers(table) for table in tables]
    built_in = None
    if isinstance(encoder, str) and any(table.cells for table in tables):
        matched = match_columns([table.as_cells() for table in tables])
        built_in = TableEncoder().fit(matched[0])
        checked = [built_in.convert(table) for table in matched]
        encoded = [check_finite(built_in.encode_table(table)) for table in checked]
    elif encoder is None or isinstance(encoder, str):
        encoded = checked = [replace(table, native=None) for table in match_columns(tables)]
    else:
        encoded = checked = _encode_by_transformer(match_columns([table.as_cells() for table in tables]), encoder)
    kinds = [column.kind for column in built_in.summary_.columns] if built_in else ["number"] * encoded[0].width
    # `checked` are the tables before encoding, in which columns and levels have their own names
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(n_source, len(tables)):
            samples = [*checked[:n_source], checked[k]]  # unlabelled, positive, target
            warn_of_columns(samples, kinds)
            if built_in is not None:
                warn_of_levels(samples, built_in)
                warn_of_shares(samples, kinds)
            warn_of_samples(None if unlabeled is None else encoded[0], encoded[1:n_source], encoded[k])
    for message, category in dict.fromkeys((str(record.message), record.category) for record in caught):
        warn(message, category)  # once, even if it applies to several targets
    first = encoded[0].take(slice(0), "unlabeled") if unlabeled is None else encoded[0]
    return encoded[1:n_source], first, encoded[n_source:]


def _encode_by_transformer(tables: Sequence[Table], encoder: Any) -> list[Table]:
    """Encode tables by a clone of the user's transformer, fitted on the first table (the unlabelled rows)."""
    fitted, name = clone(encoder), type(encoder).__name__
    encoded: list[Table] = []
    for table in tables:
        frame = _to_frame(table)
        try:
            if not encoded:
                fitted = fitted.fit(frame)
            numbers = fitted.transform(frame)
        except (TypeError, ValueError, AttributeError, NotImplementedError) as error:
            reason = str(error).split("\n")[0].rstrip(".")
            message = f"the encoder {name} cannot encode {table.name} ({reason}); change one of them."
            raise InputError(message) from error
        if issparse(numbers):
            numbers = numbers.toarray()  # type: ignore[attr-defined]
        try:
            output = read_numeric_table(numbers, f"the output of {name} for {table.name}")
        except InputError as error:
            reason = str(error).split(";")[0]
            raise InputError(f"{reason}; add a step to it, as in make_pipeline({name}(), SimpleImputer()).") from None
        if len(output) != len(table):
            raise InputError(f"the encoder {name} returned {len(output)} rows for the {len(table)} of {table.name}.")
        encoded.append(replace(output, extra=table.extra, dropped=table.dropped))
    try:
        names = tuple(str(column) for column in fitted.get_feature_names_out())
    except (AttributeError, ValueError, NotImplementedError):
        names = ()
    if len(names) == encoded[0].width == len(set(names)):
        encoded = [table if table.columns else replace(table, columns=names) for table in encoded]
    return [replace(output, name=table.name) for output, table in zip(match_columns(encoded), tables, strict=True)]


def _to_frame(table: Table) -> Any:
    """Return the features of a table as the user passed them; those of a file as a data frame of pandas or polars."""
    if table.native is not None:
        return table.native
    columns = {table.column_name(k): cells for k, cells in enumerate(table.cells)}
    with suppress(ImportError):
        import pandas

        return pandas.DataFrame(columns)
    columns = {name: cells.tolist() if cells.dtype == object else cells for name, cells in columns.items()}
    with suppress(ImportError):
        import polars

        return polars.DataFrame(columns)
    raise InputError(f"an encoder needs {table.name} as a data frame; install pandas or polars, or use encoder='auto'.")


def warn_of_far_values(table: Table) -> None:
    """Warn of values so far from the rest of their column that they may be codes for missing values, such as 9999."""
    if not len(table.values):
        return
    suspects: dict[float, list[tuple[int, int, float]]] = {}  # by value: column, rows, distance in spreads
    for k, column in enumerate(map(np.ascontiguousarray, table.values.T)):  # several passes over a copy are faster
        for value in (column.max(), column.min()):
            rows = int(np.count_nonzero(column == value))
            # codes such as 999 or −9999 are suspicious even in one row; other values only if they repeat and are not
            # within [−1, 1], where many rows have an end of the range
            is_whole = abs(value) >= 999 and float(value).is_integer()
            is_code = rows == 1 and is_whole and set(str(int(abs(value)))) == {"9"}
            is_repeated = 2 <= rows < len(column) / 2 and abs(value) > 1
            distance = _distance_if_far(column, value) if is_code or is_repeated else None
            if distance:
                suspects.setdefault(float(value), []).append((k, rows, distance))
    for value, found in suspects.items():  # one warning for all bands of a raster
        k, rows, distance = found[0]
        where, shown = table.column(k), as_text(value)
        if len(found) > 1:
            where = f"{len(found)} columns ({list_names([table.column_name(k) for k, _, _ in found])})"
        shown_rows = "1 row" if rows == 1 else f"{rows} rows"
        warn(
            f"In {table.name}, {where} {'hold' if len(found) > 1 else 'holds'} {shown} in {shown_rows}, "
            f"{distance:.0f} standard deviations from the rest. If it is a code for a missing value, pass "
            f"missing=[{shown}] ({shell_option('--missing', shown)}).",
            FarValueWarning,
        )


def _distance_if_far(column: Floats, value: float) -> float | None:
    """Return the distance of the column's maximum or minimum from the median of the rest, in standard deviations.

    None if there is no wide gap below the maximum or above the minimum, or if the rest has too few distinct values.
    """
    rest = column[column != value].astype(np.float64)
    next_value = rest.max() if value > rest[0] else rest.min()
    sorted_rest = np.sort(rest[:: max(1, len(rest) // _SPREAD_ROWS)])  # every n-th row of a long column
    cut = int(_TAIL * len(sorted_rest))
    inner = sorted_rest[cut : len(sorted_rest) - cut]
    spread = float(inner.std())
    has_gap = abs(float(value) - next_value) > _MIN_GAP * spread
    if not has_gap or column.std(dtype=np.float64) <= _MIN_SPREAD_RATIO * spread or len(np.unique(inner)) < _MIN_VALUES:
        return None
    return abs(float(value) - float(np.median(inner))) / spread


def warn_of_columns(tables: Sequence[Table], kinds: Sequence[str]) -> None:
    """Warn of columns of numbers or dates that identify rows or contradict label shift; refuse one without overlap.

    `tables` are the unlabelled, one or more positive and the target samples; `kinds` has the kind of each column, such
    as "number".
    """
    for k, kind in enumerate(kinds):
        if kind not in ("number", "date"):
            continue
        U, *_, T = samples = [_present_values(table, k) for table in tables]
        if min(len(U), len(T)) < _MIN_ROWS:
            continue
        problem = _id_problem(tables[0].column_name(k), samples) if kind == "number" else ""
        _warn_of_column(tables[0], k, problem or _contradiction(tables, k, samples, kind))


def warn_of_source_columns(tables: Sequence[Table], encoder: TableEncoder | None) -> None:
    """Warn of columns of a source that have ids or dates: batches that follow have others.

    `tables` are the unlabelled and one or more positive samples, and `encoder` is how they are read, if not as numbers.
    """
    tables = match_columns([table.as_cells() if encoder else table for table in tables])
    kinds = ["number"] * tables[0].width
    if encoder is not None:
        tables, kinds = [encoder.convert(table) for table in tables], [x.kind for x in encoder.summary_.columns]
    for k, kind in enumerate(kinds):
        problem = ""
        if kind == "date":
            problem = (
                "has dates, and batches usually have later ones than the source, which label shift does not allow "
                "(dates such as those of births are harmless)"
            )
        elif kind == "number":
            samples = [_present_values(table, k) for table in tables]
            if len(samples[0]) >= _MIN_ROWS:
                problem = _id_problem(tables[0].column_name(k), samples)
        _warn_of_column(tables[0], k, problem)


def _warn_of_column(table: Table, k: int, problem: str) -> None:
    """Warn of a problem with column `k`, if there is one, with the advice to leave the column out."""
    if problem:
        column_name = table.column(k).replace("column", "Column", 1)
        warn(f"{column_name} {problem}; {_leave_out(table, k)}, or check how it was made.", ColumnWarning)


def _id_problem(column: str, samples: Sequence[Floats]) -> str:
    """Return how a column of numbers looks like an id, in words; "" if it does not. `samples` are its values in each.

    The unlabelled rows come first.
    """
    U = samples[0]
    if numbers_rows(samples):
        return (
            f"looks like an id: whole numbers, from {U.min():.12g} to {U.max():.12g}, that never repeat within a "
            "sample. It belongs to no class and spoils the estimate"
        )
    if numbers_persons(column, samples):
        return (
            f"looks like an id: {len(np.unique(U))} different whole numbers in {len(U)} rows. If it identifies "
            "persons or places, it belongs to no class; pass it as groups (--group-column)"
        )
    return ""


def _present_values(table: Table, k: int) -> Floats:
    """Return the values of column `k` that are not missing; dates as microseconds since 1970."""
    column = table.cells[k][~is_missing(table.cells[k])] if table.cells else table.values[:, k]
    if column.dtype.kind == "M":
        column = column.astype(np.int64)
    return column.astype(np.float64, copy=False)


def _contradiction(tables: Sequence[Table], k: int, samples: Sequence[Floats], kind: str) -> str:
    """Return how the values of column `k` contradict label shift, in words; "" if they do not.

    `samples` are its values in the tables. A target that has no value in common with the source is refused.
    """

    def show(value: float) -> str:
        """Format a number, or a date as microseconds since 1970."""
        return str(np.datetime64(int(value), "us").astype("datetime64[D]")) if kind == "date" else f"{value:.6g}"

    *source, T = samples
    source = [values for values in source if len(values)]
    low, high = min(values.min() for values in source), max(values.max() for values in source)
    if low == high:  # a constant column is not used, with a warning
        return ""
    source_range, lowest, highest = f"{show(low)} to {show(high)}", T.min(), T.max()
    if max(lowest - high, low - highest) > _ROUNDING * max(abs(lowest), abs(highest)):
        raise InputError(
            f"{tables[0].column(k)} runs from {show(lowest)} to {show(highest)} in {tables[-1].name} and from "
            f"{source_range} in the source, without a value in common, so the target cannot be a mixture of the "
            f"source's classes; {_leave_out(tables[0], k)}, or check its unit."
        )
    if kind == "date":
        is_outside = (low > T) | (high < T)
        # if both samples had one distribution, the most extreme values would come from the target alone by chance
        chance = (len(T) / (sum(map(len, source)) + len(T))) ** int(is_outside.sum())
        if is_outside.mean() >= _MIN_OUTSIDE and chance < _MAX_P_VALUE:
            return (
                f"has dates outside of the source's ({source_range}) in {is_outside.mean():.1%} of the rows of "
                f"{tables[-1].name}, which label shift does not allow"
            )
    if lowest == highest:
        shares = [float(np.mean(values == T[0])) for values in source]
        if max(shares) < _MOST:
            return (
                f"is {show(T[0])} in every row of the target but in only {shares[0]:.1%} of the "
                f"{_source_rows(tables[0])}, which label shift hardly allows"
            )
    return ""


def _source_rows(table: Table) -> str:
    """Return how messages call the rows of the first table, which is the unlabelled sample or all labelled rows."""
    return "labelled rows" if table.name == _LABELED else "unlabelled source rows"


def numbers_persons(column: str, samples: Sequence[Floats]) -> bool:
    """Return whether a column may be an id of persons or places, which several rows can share.

    `samples` are its values in each sample, the unlabelled rows first. An id has whole numbers, most of them different,
    and a name such as "patient_id", or numbers that fill their range, as numbers that are given out one by one do.
    """
    if not all(map(_are_whole, samples)):
        return False
    values = np.concatenate(samples)
    spread, least_distinct = np.ptp(values), max(_MIN_IDS, _MOST * len(values))
    if spread + 1 < least_distinct or (distinct := count_distinct(values)) < least_distinct:
        return False
    # Draws from a range of r whole numbers that fill nine tenths of it are so many that less than half of them differ.
    return bool(spread < _DENSE * distinct or _ID_NAME.search(column))


def _are_whole(values: Floats) -> bool:
    """Return whether all values are whole numbers; most columns that are not show it in their first values."""
    return all(bool((part == np.round(part)).all()) for part in (values[:_FIRST], values[_FIRST:]))


def _leave_out(table: Table, k: int) -> str:
    """Return the advice to leave out column `k`, with the options that do so if columns have names."""
    return f"leave it out {drop_hint(table.columns[k])}" if table.columns else "leave it out"


def numbers_rows(samples: Sequence[Floats]) -> bool:
    """Return whether a column numbers the rows; `samples` are its values in each sample.

    It does if the values of each sample are distinct whole numbers, and are sorted or would hardly differ by chance.
    """
    # n independent draws from r whole numbers all differ with a probability of at most about exp(−n²/2r), since the
    # uniform distribution repeats least; and n distinct values are in order by chance in 2 of n! cases.
    log_p_value, is_sorted = 0.0, True
    for values in samples:
        if len(values) < 2:
            continue
        if not _are_whole(values):
            return False
        n, r = len(values), values.max() - values.min() + 1
        if r < n or count_distinct(values) < n:
            return False
        log_p_value -= n * (n - 1) / (2 * r)
        steps = np.diff(values)
        is_sorted = is_sorted and bool((steps > 0).all() or (steps < 0).all())
    return bool(log_p_value < np.log(_MAX_P_VALUE)) or is_sorted


def warn_of_levels(tables: Sequence[Table], encoder: TableEncoder) -> None:
    """Warn of levels and missing cells that the unlabelled sample lacks and another one has in many rows.

    `tables` are the unlabelled, one or more positive and the target samples; the encoder is fitted on the first.
    """
    U, *positives, T = tables
    remedy = "check how the column was made, or drop it"
    for k, column in enumerate(encoder.summary_.columns):
        if column.kind == "left out":
            continue
        by_class, in_target = [_count_unseen(P, encoder, k) for P in positives], _count_unseen(T, encoder, k)
        in_positive = set().union(*by_class)
        # the most common level of the target that the source lacks; sorted, so that ties do not depend on the order
        level = max(sorted(in_target.keys() - in_positive), key=in_target.__getitem__, default="")
        rows = in_target[level]
        is_all_new = column.kind == "category" and in_target.total() == len(T) and not in_target.keys() & in_positive
        is_all_new = is_all_new and "no value" not in in_target
        is_constant = len(column.levels.frequent) + column.levels.rare_count == 1  # not used, with a warning
        if is_all_new and len(T) >= _MIN_ROWS and not is_constant:
            raise InputError(
                f"no value that {T.name} has in {T.column(k)}, such as {level}, occurs in the source, so the target "
                f"cannot be a mixture of the source's classes; {_leave_out(T, k)}."
            )
        # p-value: the chance that all rows of a level fall into T if U and T had the same distribution, times the
        # number of levels tested (Bonferroni)
        if rows and len(in_target) * (len(T) / (len(U) + len(T))) ** rows < _MAX_P_VALUE:
            share = f"{rows} of {len(T)} rows ({rows / len(T):.1%}) of {T.name} have {level} in {T.column(k)}"
            warn(f"{share}, and none of the source has, which label shift does not allow; {remedy}.", ColumnWarning)
        for P, counts in zip(positives, by_class, strict=True):
            level = max(sorted(counts), key=counts.__getitem__, default="")
            rows = counts[level]
            # p-value: the population has the level with probability π·(share of P) at least, so U lacks it by chance
            if rows and (1 - _MIN_PRIOR * rows / len(P)) ** len(U) < _MAX_P_VALUE:
                share = f"{rows} of {len(P)} rows ({rows / len(P):.1%}) of {P.name} have {level} in {P.column(k)}"
                warn(f"{share}, but none of the {len(U)} rows of {U.name}; {remedy}.", ColumnWarning)


def _count_unseen(table: Table, encoder: TableEncoder, k: int) -> Counter[str]:
    """Count the rows of each level of column `k` that the encoder's fitted sample lacks; "no value" is a missing cell.

    Levels are in quotation marks, as messages show them. A column of numbers or dates has no levels but "no value".
    """
    column, cells = encoder.summary_.columns[k], table.cells[k]
    if column.kind == "category":
        return Counter("no value" if level is None else repr(level) for level in column.levels.unseen(cells))
    if column.has_missing or not is_missing(cells).any():  # the fitted sample has missing cells too
        return Counter()
    return Counter({"no value": int(is_missing(cells).sum())})


def warn_of_shares(tables: Sequence[Table], kinds: Sequence[str]) -> None:
    """Warn of missing cells or a constant category that are more common in the target than label shift allows.

    `tables` are the unlabelled, one or more positive and the target samples; `kinds` has the kind of each column.
    """
    if min(map(len, tables)) < _MIN_ROWS:
        return
    T = tables[-1]
    for k, kind in enumerate(kinds):
        if kind == "left out":
            continue
        columns = [table.cells[k] for table in tables]
        suspects = [("no value", [is_missing(cells) for cells in columns])]
        levels = {cell for cell in columns[-1] if cell is not None} if kind == "category" else set()
        if len(levels) == 1:
            (level,) = levels
            suspects.append((repr(level), [cells == level for cells in columns]))
        for cell, (in_U, *in_P, in_T) in suspects:  # masks of the rows of each sample with this cell
            u, p, t = float(in_U.mean()), max(float(mask.mean()) for mask in in_P), float(in_T.mean())
            # `warn_of_levels` covers cells that the source lacks altogether
            if max(u, p) > 0 and all(is_beyond(in_U, mask, in_T) for mask in in_P):
                most = "the positives" if len(in_P) == 1 else "any labelled class"
                warn(
                    f"{t:.1%} of the rows of {T.name} have {cell} in {T.column(k)}, but {u:.1%} of the "
                    f"{_source_rows(tables[0])} and {p:.1%} of {most}, which label shift allows only where most of the "
                    f"source is positive; {_leave_out(T, k)}, or check how it was made.",
                    ColumnWarning,
                )


def is_beyond(unlabeled: Mask, positive: Mask, target: Mask) -> bool:
    """Return whether the target's share of True exceeds that of both source classes, for any source prior π ≤ 1/2.

    The masks say which rows of the unlabelled, positive and target samples have some cell.
    """
    # The share of the negatives is (u − πp)/(1 − π), at most max(u, 2u − p) for π ≤ 1/2. The excess over each bound
    # must be large, both in itself and in standard errors.
    u, p, t = float(unlabeled.mean()), float(positive.mean()), float(target.mean())
    error_u, error_p, error_t = _share_error(unlabeled), _share_error(positive), _share_error(target)
    bounds = (u, error_u), (p, error_p), (2 * u - p, float(np.hypot(2 * error_u, error_p)))  # with standard errors
    return all(t - bound > max(_MIN_EXCESS, _MIN_ERRORS * float(np.hypot(error, error_t))) for bound, error in bounds)


def _share_error(rows: Mask) -> float:
    """Return the standard error of the share of True in a mask, with one True and one False added: it is never 0."""
    share = (rows.sum() + 1) / (len(rows) + 2)
    return float(np.sqrt(share * (1 - share) / len(rows)))


def warn_of_samples(unlabeled: Table | None, positives: Sequence[Table], target: Table) -> None:
    """Warn of a target that holds most rows of the unlabelled sample, or nearly all of a class."""
    T = target.values
    if len(T) < 2:
        return
    compared = [(P, _NEARLY_ALL, "so the target seems to hold the labelled positives") for P in positives]
    if unlabeled is not None:
        compared.insert(0, (unlabeled, _MOST, "so both seem to be samples of one population"))
    for other, share, meaning in compared:
        X = other.values
        if X.shape == T.shape and all(np.array_equal(np.sort(X[:, k]), np.sort(T[:, k])) for k in range(T.shape[1])):
            common = len(T)
        else:
            common = common_rows(T, X)
        if common > share * len(T):
            warn(
                f"{common} of {len(T)} rows of {target.name} are also in {other.name}, {meaning}; pass a sample of the "
                "new population as target.",
                InconsistentInputWarning,
            )


@dataclass(frozen=True)
class ColumnUse:
    """How a column was used.

    Attributes
    ----------
    name : str
        Name of the column, or its number if it has none.
    use : {"feature", "constant", "left out", "id", "group", "weight", "audit", "target", "label", "dropped"}
        What it was used for. Constant columns and columns without a value are not features.
    kind : {"number", "category", "date", "text", "not read"}
        What it holds.
    became : str
        How it was encoded or used, in words.
    missing : float
        Share of cells without a value: of a feature among the unlabelled rows, of another column among the rows of
        all tables that have it; NaN if it was not read.
    """

    name: str
    use: str
    kind: str
    became: str
    missing: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text.

        Returns
        -------
        dict
        """
        return vars(self) | {"missing": None if np.isnan(self.missing) else self.missing}


def column_uses(
    labeled: Sequence[Table],
    unlabeled: Table,
    targets: Sequence[Table],
    metadata: MetadataColumns,
    by: str | None = None,
) -> tuple[ColumnUse, ...]:
    """Return how each column is used: features first, then metadata of rows, then dropped columns.

    `labeled` are the tables of the labelled classes. `by` is the column that names the target of each row, if there is
    one.
    """
    tables = unlabeled, *labeled, *targets
    dropped = dict.fromkeys(name for table in tables for name in table.dropped if name != by)
    not_read = [ColumnUse(name, "dropped", "not read", "nothing, as you asked", float("nan")) for name in dropped]
    return (*_feature_uses(unlabeled), *_metadata_uses(tables, metadata, by), *not_read)


def _feature_uses(table: Table) -> Iterator[ColumnUse]:
    """Yield the use of each feature of the unlabelled table; an encoded table is described by its original columns."""
    if table.origin is None:
        number: dict[str, Any] = {"kind": "number", "became": "itself", "missing": 0.0}
        columns = {table.column_name(k): number for k in range(table.width)}
        original_column = np.arange(table.width)
    else:
        columns, original_column = table.origin.columns, table.origin.original_column
    is_constant = (table.values == table.values[:1]).all(axis=0) & bool(len(table.values))
    for k, (name, column) in enumerate(columns.items()):
        encoded_is_constant = is_constant[original_column == k]  # for each column that it was encoded as
        use, kind, became = "feature", column["kind"], column["became"]
        if kind == "left out":
            use, kind, became = "left out", "not read", "nothing: it has no value in the unlabelled rows"
        elif encoded_is_constant.size and encoded_is_constant.all():
            use, became = "constant", "nothing: it is the same in all unlabelled rows"
        yield ColumnUse(name, use, kind, became, column["missing"])


_METADATA_USES = {  # field of MetadataColumns: use of the column, and the use in words
    "id_column": ("id", "identifies observations"),
    "groups": ("group", "identifies groups of rows"),
    "weights": ("weight", "weights the rows"),
    "audit": ("audit", "holds the classes of audited rows"),
}


def _metadata_uses(tables: Sequence[Table], metadata: MetadataColumns, by: str | None) -> Iterator[ColumnUse]:
    """Yield the use of each column that is not a feature; `by` is the column that names the target of each row."""
    uses: dict[str, list[tuple[str, str]]] = {}  # one column may have several uses, such as id and group
    for field_name, use_and_words in _METADATA_USES.items():
        column_name = getattr(metadata, field_name)
        if isinstance(column_name, str):
            uses.setdefault(column_name, []).append(use_and_words)
    if by is not None:
        uses.setdefault(by, [("target", "names the target of each row")])
    for name in dict.fromkeys(name for table in tables for name in table.extra):
        own_uses = uses.get(name, [("label", "marks the labelled positives")])
        columns = [table.extra[name] for table in tables if name in table.extra]
        values = [value for column in columns for value in column.tolist()]
        present = [value for value in values if not is_missing_value(value)]
        if any(type(value) is str for value in present):
            kind = "text"
        else:
            kind = "date" if any(column.dtype.kind == "M" for column in columns) else "number"
        missing = (len(values) - len(present)) / len(values) if values else 0.0
        first_use, _ = own_uses[0]
        yield ColumnUse(name, first_use, kind, ", and ".join(words for _, words in own_uses), missing)
