"""The samples of a problem as numbers: columns matched, encoded by the unlabelled sample, and checked."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scipy.sparse import issparse
from sklearn.base import clone

from priorshift.errors import InputError
from priorshift.io.column_checks import warn_of_columns, warn_of_levels, warn_of_samples, warn_of_shares
from priorshift.io.encoding import TableEncoder
from priorshift.io.parameters import check_estimator
from priorshift.io.readers import read_numeric_table
from priorshift.io.tables import Table, check_dropped, check_finite, check_numbers, match_columns
from priorshift.warning_records import warn


def check_encoder(encoder: Any) -> None:
    """Refuse an encoder that is neither "auto", None nor a transformer."""
    if isinstance(encoder, str):
        if encoder != "auto":
            raise InputError(f"encoder is {encoder!r}, but it must be 'auto', None or a transformer.")
    elif encoder is not None:
        check_estimator("encoder", encoder, ("transform",), "'auto', None or a transformer")


def encode_tables(
    positive: Table, unlabeled: Table, targets: Sequence[Table], drop: Sequence[str], encoder: Any
) -> tuple[Table, Table, list[Table]]:
    """Return the samples as numbers, with the same columns in the same order.

    Tables of numbers stay as they are; others are encoded by a :class:`TableEncoder` ("auto"), by the user's
    transformer, or are refused (None).
    """
    tables = [unlabeled, positive, *targets]  # the unlabelled sample decides the columns
    check_dropped(tables, drop)
    if encoder is None:
        for table in tables:
            check_numbers(table)
    if all(table.is_numeric for table in tables) and (encoder is None or isinstance(encoder, str)):
        encoded = [replace(table, native=None) for table in match_columns(tables)]
        _check_each_target(encoded, warn_of_columns)
    else:
        matched = match_columns([table.as_cells() for table in tables])
        encoded = _encode_built_in(matched) if isinstance(encoder, str) else _encode_by_transformer(matched, encoder)
    _check_each_target(encoded, warn_of_samples)
    return encoded[1], encoded[0], encoded[2:]


def _check_each_target(tables: Sequence[Table], check: Callable[[Sequence[Table]], None]) -> None:
    """Check the source with each target; a warning that several targets share is given once."""
    unlabeled, positive, *targets = tables
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for target in targets:
            check([unlabeled, positive, target])
    for message, category in dict.fromkeys((str(one.message), one.category) for one in caught):
        warn(message, category)


def _encode_built_in(tables: Sequence[Table]) -> list[Table]:
    encoder = TableEncoder().fit(tables[0])
    fitting = [encoder.fitting(table) for table in tables]
    _check_each_target(fitting, lambda samples: warn_of_columns(samples, encoder.kinds))
    _check_each_target(fitting, lambda samples: warn_of_levels(samples, encoder))
    _check_each_target(fitting, lambda samples: warn_of_shares(samples, encoder.kinds))
    encoded = [encoder.table(table) for table in fitting]
    for table in encoded:
        check_finite(table)
    return encoded


def _encode_by_transformer(tables: Sequence[Table], encoder: Any) -> list[Table]:
    """Encode by a scikit-learn transformer, which is fitted on the unlabelled rows."""
    fitted, name = clone(encoder), type(encoder).__name__
    frames = [as_frame(table) for table in tables]
    encoded: list[Table] = []
    for table, frame in zip(tables, frames, strict=True):
        try:
            if not encoded:
                fitted = fitted.fit(frame)
            numbers = fitted.transform(frame)
        except (TypeError, ValueError, AttributeError, NotImplementedError) as error:
            reason = str(error).split("\n")[0].rstrip(".")
            raise InputError(
                f"the encoder {name} cannot take {table.name} ({reason}); change one of the two."
            ) from error
        if issparse(numbers):
            numbers = numbers.toarray()  # type: ignore[attr-defined]
        try:
            read = read_numeric_table(numbers, f"the output of {name} for {table.name}")
        except InputError as error:
            raise InputError(
                f"{str(error).split(';')[0]}; an encoder must give a number for every cell: put another one after it, "
                f"as in make_pipeline({name}(), SimpleImputer())."
            ) from None
        if len(read) != len(table):
            raise InputError(
                f"the encoder {name} returned {len(read)} rows for the {len(table)} of {table.name}; pass one that "
                "keeps rows."
            )
        encoded.append(replace(read, extra=table.extra, dropped=table.dropped))
    names = _names_out(fitted, encoded[0].width)
    encoded = match_columns([table if table.columns else replace(table, columns=names) for table in encoded])
    encoded = [replace(made, name=table.name) for made, table in zip(encoded, tables, strict=True)]
    _check_each_target(encoded, warn_of_columns)
    return encoded


def _names_out(encoder: Any, width: int) -> tuple[str, ...] | None:
    try:
        names = tuple(str(name) for name in encoder.get_feature_names_out())
    except (AttributeError, ValueError, NotImplementedError):
        return None
    return names if len(names) == width == len(set(names)) else None


def as_frame(table: Table) -> Any:
    """Return the features as a transformer takes them: as they were passed, or a data frame of what a file holds."""
    if table.native is not None:
        return table.native
    columns = {table.label(k): cells for k, cells in enumerate(table.cells)}
    try:
        import pandas

        return pandas.DataFrame(columns)
    except ImportError:
        pass
    try:
        import polars

        return polars.DataFrame({name: c.tolist() if c.dtype == object else c for name, c in columns.items()})
    except ImportError:
        raise InputError(
            f"an encoder needs {table.name} as a data frame, for which pandas or polars must be installed; install one "
            "of them, or pass encoder='auto'."
        ) from None
