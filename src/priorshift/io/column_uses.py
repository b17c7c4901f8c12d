"""What was done with each column of the tables: a feature and what it became, or no feature and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.io.cells import is_missing_value
from priorshift.io.row_metadata import MetadataColumns
from priorshift.io.tables import Table

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
