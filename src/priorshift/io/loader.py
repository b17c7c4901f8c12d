"""The three samples as numbers: read, matched, encoded by the unlabelled one, and looked at before they are used."""

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
from priorshift.io.estimators import check_estimator
from priorshift.io.mixed_tables import MixedTable, as_frame, read_columns, read_mixed
from priorshift.io.tables import Table, check_dropped, check_finite, match_columns, read_table
from priorshift.warning_records import warn

Reader = Callable[..., Table | MixedTable]  # as read_table


def reader(encoder: Any) -> Reader:
    """How tables are read for an encoder: as numbers alone for None, else with columns of every kind."""
    if encoder is None:
        return read_table
    if isinstance(encoder, str):
        if encoder != "auto":
            raise InputError(f"encoder is {encoder!r}, but it must be 'auto', None or a transformer.")
        return read_columns
    check_estimator("encoder", encoder, ("transform",), "'auto', None or a transformer")
    return read_mixed


def as_samples(tables: Sequence[Table | MixedTable], drop: Sequence[str], encoder: Any) -> list[Table]:
    """Unlabelled and positive table and one target or more, as `reader` read them, as numbers with the same columns.

    Where all are numbers already they stay as they are; else ``"auto"`` is a :class:`TableEncoder`.
    """
    check_dropped(tables, drop)
    if all(isinstance(table, Table) for table in tables):
        made = match_columns([table for table in tables if isinstance(table, Table)])
        _of_each_target(made, warn_of_columns)
    else:
        mixed = [MixedTable.of(table) if isinstance(table, Table) else table for table in tables]
        matched = match_columns(mixed)
        made = _built_in(matched) if isinstance(encoder, str) else _by_transformer(matched, encoder)
    _of_each_target(made, warn_of_samples)
    return made


def _of_each_target(tables: Sequence[Any], look: Callable[[Sequence[Any]], None]) -> None:
    """Look at the source with each target; what is the same for several is said once."""
    unlabeled, positive, *targets = tables
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for target in targets:
            look([unlabeled, positive, target])
    for message, category in dict.fromkeys((str(one.message), one.category) for one in caught):
        warn(message, category)


def _built_in(tables: Sequence[MixedTable]) -> list[Table]:
    encoder = TableEncoder().fit(tables[0])
    fitting = [encoder.fitting(table) for table in tables]
    _of_each_target(fitting, lambda samples: warn_of_columns(samples, encoder.kinds))
    _of_each_target(fitting, lambda samples: warn_of_levels(samples, encoder))
    _of_each_target(fitting, lambda samples: warn_of_shares(samples, encoder.kinds))
    made = [encoder.table(table) for table in fitting]
    for table in made:
        check_finite(table)
    return made


def _by_transformer(tables: Sequence[MixedTable], encoder: Any) -> list[Table]:
    """By a transformer of scikit-learn's kind, which is fitted on the unlabelled rows."""
    fitted, name = clone(encoder), type(encoder).__name__
    frames = [as_frame(table) for table in tables]
    made: list[Table] = []
    for table, frame in zip(tables, frames, strict=True):
        try:
            if not made:
                fitted = fitted.fit(frame)
            numbers = fitted.transform(frame)
        except (TypeError, ValueError, AttributeError, NotImplementedError) as error:
            said = str(error).split("\n")[0].rstrip(".")
            raise InputError(f"the encoder {name} cannot take {table.name} ({said}); mend one of the two.") from error
        if issparse(numbers):
            numbers = numbers.toarray()  # type: ignore[attr-defined]
        try:
            read = read_table(numbers, f"what {name} made of {table.name}")
        except InputError as error:
            raise InputError(
                f"{str(error).split(';')[0]}; an encoder must give a number for every cell: put another one after it, "
                f"as in make_pipeline({name}(), SimpleImputer())."
            ) from None
        if len(read.values) != len(table):
            raise InputError(
                f"the encoder {name} made {len(read.values)} rows of the {len(table)} of {table.name}; pass one that "
                "keeps rows."
            )
        made.append(replace(read, aside=table.aside, dropped=table.dropped))
    names = _names_out(fitted, made[0].width)
    made = match_columns([table if table.columns else replace(table, columns=names) for table in made])
    made = [replace(encoded, name=table.name) for encoded, table in zip(made, tables, strict=True)]
    _of_each_target(made, warn_of_columns)
    return made


def _names_out(encoder: Any, width: int) -> tuple[str, ...] | None:
    try:
        names = tuple(str(name) for name in encoder.get_feature_names_out())
    except (AttributeError, ValueError, NotImplementedError):
        return None
    return names if len(names) == width == len(set(names)) else None
