"""Row metadata: which rows are shared, audited classes, weights and groups.

:class:`MetadataColumns` is what a user states, by the names of columns or by the values themselves.
:class:`RowMetadata` holds the values of one sample, which are read and checked once, here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from priorshift.arrays import Floats, Index, Mask
from priorshift.errors import InputError
from priorshift.io.labels import REST, read_class_audit, read_classes, read_named_audit
from priorshift.io.observations import comparable_ids, read_groups
from priorshift.io.parameters import check_per_row
from priorshift.io.sample_size import read_weights
from priorshift.io.tables import ColumnSelection, Table
from priorshift.io.targets import target_name

_SAMPLES = {  # samples that have each kind of metadata; a user can pass a mapping from them to values (for named
    # classes, "positive" has a mapping from classes to values)
    "audit": ("unlabeled", "target"),
    "weights": ("positive", "unlabeled", "target"),
    "groups": ("positive", "unlabeled", "target"),
}
# functions of the values (one per row), the number of rows, and the name in messages; they return the checked values
_READERS: dict[str, Any] = {"audit": read_classes, "weights": read_weights, "groups": read_groups}
Columns = str | Mapping[str, Any] | None


@dataclass(frozen=True, eq=False)
class RowMetadata:
    """Metadata of the rows of a sample; None where the user states nothing."""

    # 1 for a positive and 0 for a negative, or the number of one of several classes; NaN if not audited
    audit: Floats | None = None
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
        """Read and check arrays that a user passes to `fit`, with one entry per row; None where there is none.

        `shared` is 'identical' or ids. `owner` is the name of the sample in messages.
        """
        arguments = {"audit": audit, "weights": weights, "groups": groups}
        read = {
            name: _READERS[name](values, rows, f"the {name} of {owner}" if owner else name)
            for name, values in arguments.items()
            if values is not None
        }
        if shared is None:
            return cls(**read)
        if isinstance(shared, str):
            if shared != "identical":
                raise InputError(f"shared is {shared!r}, but it must be 'identical' or one id for each row.")
            return cls(**read, identical=True)
        return cls(**read, ids=comparable_ids(check_per_row(shared, rows, "shared", "one id for each row")))

    @property
    def shared(self) -> Any:
        """The argument `shared` of `fit` that states the same: ids, "identical" or None."""
        return self.ids if self.ids is not None else "identical" if self.identical else None

    def take(self, rows: Index | Mask) -> RowMetadata:
        """Return the metadata of the rows at some positions, or where a mask is true."""
        columns = {name: getattr(self, name) for name in ("audit", "weights", "groups", "ids")}
        taken: dict[str, Any] = {name: None if column is None else column[rows] for name, column in columns.items()}
        return RowMetadata(**taken, identical=self.identical, implied_groups=self.implied_groups)


NO_METADATA = RowMetadata()


def join_metadata(samples: Sequence[RowMetadata], sizes: Sequence[int]) -> RowMetadata:
    """Concatenate the metadata of the samples of a source, the unlabelled one last; `sizes` are their numbers of rows.

    If only some have weights, rows of the others have weight 1; if only some have groups, each row of the others is its
    own group.
    """
    joined: dict[str, Any] = {}
    for name in _SAMPLES:
        columns = [getattr(sample, name) for sample in samples]
        if all(column is None for column in columns):
            continue
        for k, rows in enumerate(sizes):
            if columns[k] is None and name == "groups":
                columns[k] = np.array([f"row {row} of sample {k}" for row in range(rows)])
            elif columns[k] is None:
                columns[k] = np.full(rows, np.nan if name == "audit" else 1.0)
        joined[name] = np.concatenate(columns)
    ids = [sample.ids for sample in samples if sample.ids is not None]
    if len(ids) == len(samples):
        joined["ids"] = np.concatenate(ids)
    return RowMetadata(**joined, identical=samples[-1].identical, implied_groups=samples[-1].implied_groups)


@dataclass(frozen=True, eq=False)
class MetadataColumns:
    """Row metadata as a user states it: names of columns, or mappings from samples to values."""

    shared: str | None = None  # "identical", or the name of an id column of both source tables
    audit: Columns = None
    weights: Columns = None
    groups: Columns = None

    @property
    def id_column(self) -> str | None:
        """Name of the id column: `shared`, unless that is "identical"."""
        return None if str(self.shared) == "identical" else self.shared

    def check(self, drop: Sequence[str], **other_uses: str | None) -> None:
        """Refuse metadata of the wrong type, and a column with two uses, except that ids may also be groups.

        `drop` are the columns that the user drops, `other_uses` further uses and their columns (None if not used).
        """
        if self.shared is not None and not isinstance(self.shared, str):
            raise InputError(
                f"shared is {type(self.shared).__name__}, but it must be None, 'identical' or the name of an id "
                "column; to pass ids themselves use TCPU().fit(X, y, shared=ids)."
            )
        for name, samples in _SAMPLES.items():
            stated = getattr(self, name)
            if stated is not None and not isinstance(stated, str):
                _check_mapping(name, stated, samples)
        uses = {"shared": self.id_column, "groups": self.groups, "audit": self.audit, "weights": self.weights}
        first_use: dict[str, str] = {}  # by column
        for use, column in (uses | other_uses).items():
            if isinstance(column, str):
                other = "dropped" if column in drop else first_use.setdefault(column, use)
                if other != use and {other, use} != {"shared", "groups"}:
                    raise InputError(f"the column {column!r} is both {use} and {other}; it must be one of them.")

    def selection(self, drop: Sequence[str], extra: Sequence[str] = (), *, is_target: bool = False) -> ColumnSelection:
        """Return which columns of a table are dropped, and which are read but are not features.

        The latter are the columns of metadata and those in `extra`. A target need not have the id column.
        """
        required = [self.groups, *extra] if isinstance(self.groups, str) else list(extra)
        optional = [column for column in (self.audit, self.weights) if isinstance(column, str)]
        if self.id_column and self.id_column not in required:
            if is_target:
                optional.append(self.id_column)
            else:
                required.insert(0, self.id_column)
        return ColumnSelection(extra=tuple(required), optional=tuple(optional), drop=tuple(drop))

    def read(
        self, classes: Mapping[str, Table], unlabeled: Table | None, targets: Mapping[str, Table]
    ) -> dict[str, RowMetadata]:
        """Read the metadata of each sample; the keys are "positive NAME", "unlabeled" and "target NAME".

        Positives without a class name, and a single target, have an empty NAME. `unlabeled` is None if there is none.
        """
        tables = {f"positive {name}": table for name, table in classes.items()}
        if unlabeled is not None:
            tables["unlabeled"] = unlabeled
        for name, table in targets.items():
            tables[f"target {name}"] = table
        stated = [name for name in _SAMPLES if getattr(self, name) is not None]
        if self.shared is None and not stated:
            return dict.fromkeys(tables, NO_METADATA)
        fields: dict[str, dict[str, Any]] = {key: {"identical": self.shared == "identical"} for key in tables}
        for name in stated:
            for key, column in self._read_column(name, tables).items():
                fields[key][name] = column
        if self.id_column is not None:
            self._add_ids(tables, fields)
        return {key: RowMetadata(**fields_of_sample) for key, fields_of_sample in fields.items()}

    def _add_ids(self, tables: Mapping[str, Table], fields: Mapping[str, dict[str, Any]]) -> None:
        """Add the ids of the source samples to the `fields` of their RowMetadata.

        If several rows of one source sample have the same id, as the visits of a patient have, and the user states no
        groups, ids are also the groups of all samples that have them. `tables` and `fields` have the same keys.
        """
        ids = {}
        for key, table in tables.items():
            if self.id_column in table.extra:
                ids[key] = comparable_ids(table.extra[self.id_column])
        source = [key for key in tables if not key.startswith("target ")]
        are_groups = self.groups is None and any(len(np.unique(ids[key])) < len(ids[key]) for key in source)
        for key, values in ids.items():
            if key in source:
                fields[key]["ids"] = values
            if are_groups:
                fields[key] |= {"groups": values, "implied_groups": True}

    def _read_column(self, name: str, tables: Mapping[str, Table]) -> dict[str, Any]:
        """Read the metadata `name` ("audit", "weights" or "groups") of those samples that have it.

        The keys of `tables` and of the result are those of `read`.
        """
        stated = getattr(self, name)  # the name of a column, or values by sample
        columns, shown_names = {}, {}
        reader = _audit_reader(tables) if name == "audit" else _READERS[name]
        if isinstance(stated, str):
            for key, table in tables.items():
                if stated in table.extra:
                    columns[key], shown_names[key] = table.extra[stated], f"column {stated!r} of {table.name}"
            # an audit column that only the positives have does not count
            if not columns or (name == "audit" and all(map(_is_positive, columns))):
                raise InputError(f"no table has a column {stated!r}; name the column of the {name}.")
        else:
            for key, (shown, values) in _values_by_key(name, stated, list(tables)).items():
                shown_names[key] = f"the {name} of {shown}"
                if values is not None:
                    columns[key] = values
        read = {key: reader(values, len(tables[key]), shown_names[key]) for key, values in columns.items()}
        if name != "audit":
            return read
        # a sample without audited rows has no audit; positives are audited only together with unlabelled rows
        read = {key: classes for key, classes in read.items() if not np.isnan(classes).all()}
        if all(map(_is_positive, read)):
            raise InputError(f"no row of {' and '.join(shown_names.values()) or 'audit'} has a class; leave audit out.")
        return read if "unlabeled" in read else {key: read[key] for key in read if not _is_positive(key)}


def _audit_reader(keys: Collection[str]) -> Callable[[Any, int, str], Floats]:
    """Return the function that reads audits: of positives, of one named class, or of several classes.

    `keys` are those of `MetadataColumns.read`.
    """
    names = [key.removeprefix("positive ") for key in keys if _is_positive(key)]
    if len(names) > 1:
        return partial(read_class_audit, classes=[*names, REST] if "unlabeled" in keys else names)
    return partial(read_named_audit, positive=names[0]) if names[0] else read_classes


def _is_positive(key: str) -> bool:
    """Return whether a key of `MetadataColumns.read` is that of a labelled sample."""
    return key.startswith("positive ")


def _values_by_key(name: str, stated: Mapping[str, Any], keys: Sequence[str]) -> dict[str, tuple[str, Any]]:
    """Return the stated values of each sample and its name in messages, by the keys of `MetadataColumns.read`.

    `stated` has the values by "positive", "unlabeled" and "target"; for named classes, "positive" has those by class.
    """
    found = {}
    for sample, values in stated.items():
        if sample == "target":
            found[next(key for key in keys if key.startswith("target "))] = (sample, values)
            continue
        if sample == "unlabeled":
            if sample not in keys:
                raise InputError(f"{name} has values of 'unlabeled', but there are no unlabelled rows; leave them out.")
            found[sample] = (sample, values)
            continue
        classes = [key.removeprefix("positive ") for key in keys if _is_positive(key)]
        if not isinstance(values, Mapping):
            if len(classes) > 1:
                example = "{" + ", ".join(f"{name!r}: values" for name in classes[:2]) + "}"
                raise InputError(f"{name} of 'positive' must be a mapping of classes to values, such as {example}.")
            values = {classes[0]: values}
        for key, class_values in values.items():
            class_name = key if key in classes else target_name(key)
            if class_name not in classes:
                shown = ", ".join(map(repr, classes))
                raise InputError(f"{name} of 'positive' has {key!r}, but the classes are {shown}; correct it.")
            found[f"positive {class_name}"] = (f"class {class_name!r}" if class_name else "positive", class_values)
    return found


def _check_mapping(name: str, stated: Any, samples: Sequence[str]) -> None:
    """Refuse metadata called `name` that is not a mapping from some of `samples` to values."""
    received = f"is of type {type(stated).__name__}"
    if isinstance(stated, Mapping):
        if stated and set(stated) <= set(samples):
            return
        received = f"holds {', '.join(map(repr, stated)) or 'nothing'}"
    examples = ", ".join(f'{{"{sample}": values}}' for sample in samples)
    raise InputError(f"{name} {received}, but it must be the name of a column, or values such as {examples}.")


def metadata_arguments(estimator: Any, metadata: RowMetadata) -> dict[str, Any]:
    """Return metadata as keyword arguments of `fit` or `estimate` of an estimator.

    Stated audits, weights and groups that the estimator cannot use are refused; shared rows and implied groups are
    left out.
    """
    used = {}
    for name in ("shared", "audit", "weights", "groups"):
        value = getattr(metadata, name)
        if value is None:
            continue
        if has_fit_parameter(estimator, name) and getattr(estimator, f"takes_{name}", True):
            used[name] = value
        elif not (name == "shared" or (name == "groups" and metadata.implied_groups)):
            raise InputError(
                f"{type(estimator).__name__} takes no {name}; leave it out, or use WitnessShift, the default."
            )
    return used
