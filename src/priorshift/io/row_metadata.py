"""Row metadata: which rows are shared, audited classes, weights and groups.

:class:`MetadataColumns` is what a user states, by the names of columns or by the values themselves.
:class:`RowMetadata` holds the values of one sample, which are read and checked once, here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from priorshift.arrays import Floats, Index, Mask
from priorshift.errors import InputError
from priorshift.io.labels import read_classes
from priorshift.io.observations import comparable_ids, read_groups
from priorshift.io.parameters import check_per_row
from priorshift.io.sample_size import read_weights
from priorshift.io.tables import ColumnSelection, Table

_SAMPLES = {  # samples whose values a user can pass as a mapping
    "audit": ("unlabeled", "target"),
    "weights": ("positive", "unlabeled", "target"),
    "groups": ("positive", "unlabeled", "target"),
}
# functions of values, number of rows and name in messages
_READERS: dict[str, Any] = {"audit": read_classes, "weights": read_weights, "groups": read_groups}
Columns = str | Mapping[str, Any] | None


@dataclass(frozen=True, eq=False)
class RowMetadata:
    """Metadata of the rows of a sample; None where the user states nothing."""

    audit: Floats | None = None  # 1 for a positive, 0 for a negative, NaN if not audited
    weights: Floats | None = None
    groups: NDArray[Any] | None = None  # as text
    ids: NDArray[Any] | None = None  # as text; rows with the same id are the same observation
    identical: bool = False  # rows with identical values are the same observation
    implied_groups: bool = False  # the groups are ids that several rows have; the user did not state groups

    @classmethod
    def read(
        cls,
        rows: int,
        *,
        owner: str = "",
        shared: Any = None,
        audit: Any = None,
        weights: Any = None,
        groups: Any = None,
    ) -> RowMetadata:
        """Read arrays that a user passes, with one entry per row; `owner` is their sample in messages."""
        arguments = {"audit": audit, "weights": weights, "groups": groups}
        read = {
            name: _READERS[name](values, rows, f"the {name} of {owner}" if owner else name)
            for name, values in arguments.items()
            if values is not None
        }
        if shared is None or isinstance(shared, str):
            if shared not in (None, "identical"):
                raise InputError(f"shared is {shared!r}, but it must be 'identical' or one id for each row.")
            return cls(**read, identical=shared is not None)
        return cls(**read, ids=comparable_ids(check_per_row(shared, rows, "shared", "one id for each row")))

    def take(self, rows: Index | Mask) -> RowMetadata:
        """Return the metadata of some rows."""
        columns = {name: getattr(self, name) for name in ("audit", "weights", "groups", "ids")}
        taken: dict[str, Any] = {name: None if column is None else column[rows] for name, column in columns.items()}
        return RowMetadata(**taken, identical=self.identical, implied_groups=self.implied_groups)


NO_METADATA = RowMetadata()


def join_source_metadata(positive: RowMetadata, unlabeled: RowMetadata, sizes: tuple[int, int]) -> RowMetadata:
    """Concatenate the metadata of positives and of unlabelled rows, in this order; `sizes` are their numbers of rows.

    If only one of the two has weights, rows of the other have weight 1; if only one has groups, each row of the other
    is its own group.
    """
    defaults: dict[str, Callable[[int, int], NDArray[Any]]] = {
        "audit": lambda _, rows: np.full(rows, np.nan),
        "weights": lambda _, rows: np.ones(rows),
        "groups": lambda k, rows: np.array([f"row {i} of sample {k}" for i in range(rows)]),
    }
    joined: dict[str, Any] = {}
    for name, default in defaults.items():
        columns = [getattr(positive, name), getattr(unlabeled, name)]
        if columns[0] is not None or columns[1] is not None:
            joined[name] = np.concatenate([default(k, sizes[k]) if columns[k] is None else columns[k] for k in (0, 1)])
    if positive.ids is not None and unlabeled.ids is not None:
        joined["ids"] = np.concatenate([positive.ids, unlabeled.ids])
    return RowMetadata(**joined, identical=unlabeled.identical, implied_groups=unlabeled.implied_groups)


@dataclass(frozen=True, eq=False)
class MetadataColumns:
    """Row metadata as a user states it: names of columns, or mappings from samples to values."""

    shared: str | None = None  # "identical", or the name of an id column of both source tables
    audit: Columns = None
    weights: Columns = None
    groups: Columns = None
    id_column: str | None = field(init=False)  # `shared`, unless that is "identical"
    is_empty: bool = field(init=False)  # whether the user states nothing

    def __post_init__(self) -> None:
        """Set the derived fields; the dataclass is frozen, hence object.__setattr__."""
        columns = (self.shared, self.audit, self.weights, self.groups)
        object.__setattr__(self, "is_empty", all(column is None for column in columns))
        object.__setattr__(self, "id_column", None if str(self.shared) == "identical" else self.shared)

    def check(self, drop: Sequence[str], **others: str | None) -> None:
        """Refuse values of the wrong type, and a column with two uses (`others` has more uses); ids may be groups."""
        if self.shared is not None and not isinstance(self.shared, str):
            raise InputError(
                f"shared is {type(self.shared).__name__}, but it must be None, 'identical' or the name of an id "
                "column; to pass ids themselves use TCPU().fit(X, y, shared=ids)."
            )
        for name, samples in _SAMPLES.items():
            if not isinstance(getattr(self, name), (str, type(None))):
                _check_values(name, getattr(self, name), samples)
        uses = {"shared": self.id_column, "groups": self.groups, "audit": self.audit, "weights": self.weights, **others}
        column_uses = [(use, column) for use, column in uses.items() if isinstance(column, str)]
        for k, (use, column) in enumerate(column_uses):
            # an earlier use of the same column; ids may also be groups
            other = next((o for o, c in column_uses[:k] if c == column and {o, use} != {"shared", "groups"}), None)
            other = "dropped" if column in drop else other
            if other:
                raise InputError(f"the column {column!r} is both {use} and {other}; it must be one of them.")

    def selection(self, drop: Sequence[str], extra: Sequence[str] = (), *, is_target: bool = False) -> ColumnSelection:
        """Return which columns of a table are not features: also `extra`; a target need not have the id column."""
        groups = [self.groups] if isinstance(self.groups, str) else []
        ids = [name for name in (self.id_column,) if name and name not in groups and name not in extra]
        optional = [column for column in (self.audit, self.weights) if isinstance(column, str)]
        if is_target:
            optional, ids = [*optional, *ids], []
        return ColumnSelection(extra=(*ids, *groups, *extra), optional=tuple(optional), drop=tuple(drop))

    def read(self, positive: Table, unlabeled: Table, targets: Mapping[str, Table]) -> dict[str, RowMetadata]:
        """Read the metadata of each sample; the keys are "positive", "unlabeled" and "target NAME"."""
        tables = {"positive": positive, "unlabeled": unlabeled, **{f"target {name}": t for name, t in targets.items()}}
        if self.is_empty:
            return dict.fromkeys(tables, NO_METADATA)
        read: dict[str, dict[str, Any]] = {key: {"identical": self.shared == "identical"} for key in tables}
        for name in _SAMPLES:
            if getattr(self, name) is not None:
                for key, column in self._read_column(name, tables).items():
                    read[key][name] = column
        if self.id_column is not None:
            self._read_ids(tables, read)
        return {key: RowMetadata(**columns) for key, columns in read.items()}

    def _read_ids(self, tables: Mapping[str, Table], read: Mapping[str, dict[str, Any]]) -> None:
        """Add ids to the fields of each sample in `read`; if source rows share an id, ids are groups in all samples."""
        ids = {key: comparable_ids(t.extra[self.id_column]) for key, t in tables.items() if self.id_column in t.extra}
        source = ("positive", "unlabeled")
        is_group = self.groups is None and any(len(np.unique(ids[key])) < len(ids[key]) for key in source)
        for key, values in ids.items():
            if key in source:
                read[key]["ids"] = values
            if is_group:
                read[key] |= {"groups": values, "implied_groups": True}

    def _read_column(self, name: str, tables: Mapping[str, Table]) -> dict[str, Any]:
        """Read the column `name` ("audit", "weights" or "groups") of all samples that have it."""
        stated = getattr(self, name)
        if isinstance(stated, str):
            columns = {key: table.extra[stated] for key, table in tables.items() if stated in table.extra}
            shown_names = {key: f"column {stated!r} of {tables[key].name}" for key in columns}
        else:
            keys = {"target": next(key for key in tables if key.startswith("target "))}
            columns = {keys.get(key, key): values for key, values in stated.items() if values is not None}
            shown_names = {keys.get(key, key): f"the {name} of {key}" for key in stated}
        # an audit column that only the positives have does not count
        if isinstance(stated, str) and not any(name != "audit" or key != "positive" for key in columns):
            raise InputError(f"no table has a column {stated!r}; name the column of the {name}.")
        read = {key: _READERS[name](values, len(tables[key]), shown_names[key]) for key, values in columns.items()}
        if name != "audit":
            return read
        # a sample without audited rows has no audit; positives are audited only together with unlabelled rows
        read = {key: classes for key, classes in read.items() if not np.isnan(classes).all()}
        if not set(read) - {"positive"}:
            raise InputError(f"no row of {' and '.join(shown_names.values()) or 'audit'} has a class; leave audit out.")
        if "unlabeled" not in read:
            read.pop("positive", None)
        return read


def _check_values(name: str, columns: Any, samples: Sequence[str]) -> None:
    """Refuse metadata that is not a mapping of these samples to values."""
    if not (isinstance(columns, Mapping) and columns and set(columns) <= set(samples)):
        received = f"is of type {type(columns).__name__}"
        if isinstance(columns, Mapping):
            received = f"holds {', '.join(map(repr, columns)) or 'nothing'}"
        examples = ", ".join(f'{{"{key}": values}}' for key in samples)
        raise InputError(f"{name} {received}, but it must be the name of a column, or values such as {examples}.")


def metadata_arguments(estimator: Any, metadata: RowMetadata) -> dict[str, Any]:
    """Return metadata as arguments of `fit` or `estimate`; refuse stated metadata that the estimator cannot use."""
    shared = metadata.ids if metadata.ids is not None else "identical" if metadata.identical else None
    arguments = {"shared": shared, "audit": metadata.audit, "weights": metadata.weights, "groups": metadata.groups}
    used = {}
    for name, value in arguments.items():
        if value is None:
            continue
        if has_fit_parameter(estimator, name) and getattr(estimator, f"takes_{name}", True):
            used[name] = value
        elif not (name == "shared" or (name == "groups" and metadata.implied_groups)):
            raise InputError(
                f"{type(estimator).__name__} takes no {name}; leave it out, or use WitnessShift, the default."
            )
    return used
