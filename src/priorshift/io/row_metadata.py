"""What users tell of rows besides their features: which are shared, which were looked up, weights and groups.

Each is the name of a column; what was looked up, weights and groups can also be passed as the columns themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.io.labels import read_classes
from priorshift.io.observations import comparable_ids, read_groups
from priorshift.io.tables import Table
from priorshift.io.weights import read_weights

_SAMPLES = {
    "audit": ("unlabeled", "target"),
    **dict.fromkeys(("weights", "groups"), ("positive", "unlabeled", "target")),
}
Columns = str | Mapping[str, Any] | None


@dataclass(frozen=True, eq=False)
class RowMetadata:
    """What is told of rows.

    Attributes
    ----------
    shared : None, "identical" or str
        How rows that stand in both source tables are recognised; a name is that of an id column of both.
    audit : None, str or mapping
        Classes that were looked up: a column of the unlabelled table, the target or both.
    weights : None, str or mapping
        A column of some tables.
    groups : None, str or mapping
        A column of all tables, which may be that of `shared` too.
    implied : bool
        Whether nobody said `groups`, and they are the ids of `shared`.
    """

    shared: str | None = None
    audit: Columns = None
    weights: Columns = None
    groups: Columns = None
    implied: bool = False

    def checked(self, drop: Sequence[str], **others: Any) -> RowMetadata:
        """Itself, if its parts can be; no column has two uses, nor one of `others` or of `drop`."""
        if self.shared is not None and not isinstance(self.shared, str):
            raise InputError(
                f"shared is {type(self.shared).__name__}, but it must be None, 'identical' or the name of an id "
                "column; to pass ids themselves use TCPU().fit(X, y, shared=ids)."
            )
        for name, samples in _SAMPLES.items():
            _check_columns(name, getattr(self, name), samples)
        uses = {"shared": self._ids, "groups": self.groups, "audit": self.audit, "weights": self.weights, **others}
        named = [(use, column) for use, column in uses.items() if isinstance(column, str)]
        for k, (use, column) in enumerate(named):
            other = next((o for o, c in named[:k] if c == column and {o, use} != {"shared", "groups"}), None)
            other = "dropped" if column in drop else other
            if other:
                raise InputError(f"the column {column!r} is both {use} and {other}; it must be one of them.")
        return self

    @property
    def _ids(self) -> str | None:
        return None if self.shared == "identical" else self.shared

    @property
    def _everywhere(self) -> list[str]:
        return [self.groups] if isinstance(self.groups, str) else []

    @property
    def _of_source_alone(self) -> list[str]:
        return [self._ids] if self._ids and self._ids not in self._everywhere else []

    @property
    def _optional(self) -> list[str]:
        return [column for column in (self.audit, self.weights) if isinstance(column, str)]

    def of_source(self, drop: Sequence[str], aside: Sequence[str] = ()) -> dict[str, list[str]]:
        """How `read_table` takes the columns of a source table; those in `aside` are set aside too."""
        kept = [*self._of_source_alone, *self._everywhere, *aside]
        return {"aside": kept, "drop": list(drop), "optional": self._optional}

    def of_target(self, drop: Sequence[str], aside: Sequence[str] = ()) -> dict[str, list[str]]:
        """The same of a target, which need not have an id."""
        ids = [name for name in self._of_source_alone if name not in aside]
        return {"aside": [*self._everywhere, *aside], "drop": list(drop), "optional": [*self._optional, *ids]}

    def with_implied_groups(self, unlabeled: Table, positive: Table) -> RowMetadata:
        """The same, where an id that several rows of one table have is a group."""
        ids = self._ids
        if ids is None or self.groups is not None:
            return self
        repeated = any(
            len(np.unique(comparable_ids(table.aside[ids]))) < len(table.values) for table in (unlabeled, positive)
        )
        return replace(self, groups=ids, implied=True) if repeated else self

    def completed(self, target: Table) -> Table:
        """One of several targets, with every column that another may have.

        Where it lacks one, its rows count alike, and each is a group of its own. A wrong cell is said to be its.
        """
        rows, aside = len(target.values), dict(target.aside)
        if isinstance(self.weights, str):
            if self.weights in aside:
                read_weights(aside[self.weights], rows, f"column {self.weights!r} of {target.name}")
            aside.setdefault(self.weights, np.ones(rows))
        for ids in (name for name in (self.groups, self._ids) if isinstance(name, str)):
            if ids in aside:
                read_groups(aside[ids], rows, f"column {ids!r} of {target.name}")
            aside.setdefault(ids, np.array([f"row {k} of {target.name}" for k in range(rows)]))
        if isinstance(self.audit, str) and self.audit in aside:
            read_classes(aside[self.audit], rows, f"column {self.audit!r} of {target.name}")
        return replace(target, aside=aside)

    def read_audit(self, unlabeled: Table, positive: Table, target: Table) -> tuple[Floats | None, Floats | None]:
        """Classes of each positive and then each unlabelled row, as `fit` takes them, and of each row of the target."""
        tables = {"positive": positive, "unlabeled": unlabeled, "target": target}
        audit = self.audit
        if audit is None:
            return None, None
        if isinstance(audit, str):
            columns = {key: table.aside[audit] for key, table in tables.items() if audit in table.aside}
            if not {"unlabeled", "target"} & set(columns):
                raise InputError(
                    f"neither {unlabeled.name} nor {target.name} has a column {audit!r}; name the column of the audit."
                )
            names = {key: f"column {audit!r} of {tables[key].name}" for key in columns}
        else:
            columns = {key: values for key, values in audit.items() if values is not None}
            names = {key: f"the audit of {key}" for key in columns}
        classes = {key: read_classes(columns[key], len(tables[key].values), names[key]) for key in columns}
        found = {key: column for key, column in classes.items() if not np.isnan(column).all()}
        if not {"unlabeled", "target"} & set(found):
            raise InputError(f"no row of {' and '.join(names.values()) or 'audit'} has a class; leave audit out.")
        if "unlabeled" not in found:
            return None, found["target"]
        of_positive = found.get("positive", np.full(len(positive.values), np.nan))
        return np.concatenate([of_positive, found["unlabeled"]]), found.get("target")

    def read(
        self, name: str, unlabeled: Table, positive: Table, target: Table
    ) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        """The weights, or the groups, of positives and unlabelled rows, as `fit` takes them, and of the target's."""
        tables, columns = {"positive": positive, "unlabeled": unlabeled, "target": target}, getattr(self, name)
        if columns is None:
            return None, None
        if isinstance(columns, str):
            told = {key: table.aside[columns] for key, table in tables.items() if columns in table.aside}
            if not told:
                raise InputError(f"no table has a column {columns!r}; name the column of the {name}.")
            names = {key: f"column {columns!r} of {tables[key].name}" for key in told}
        else:
            told = {key: values for key, values in columns.items() if values is not None}
            names = {key: f"the {name} of {key}" for key in told}
        read: Any = read_weights if name == "weights" else read_groups
        found = {key: read(values, len(tables[key].values), names[key]) for key, values in told.items()}
        if not {"positive", "unlabeled"} & set(found):
            return None, found.get("target")
        # rows of which nothing is told count alike, and each is a group of its own
        for key in {"positive", "unlabeled"} - set(found):
            rows = len(tables[key].values)
            found[key] = np.ones(rows) if name == "weights" else np.array([f"row {k} of {key}" for k in range(rows)])
        return np.concatenate([found["positive"], found["unlabeled"]]), found.get("target")


def _check_columns(name: str, columns: Any, samples: Sequence[str]) -> None:
    if columns is None or isinstance(columns, str):
        return
    if not (isinstance(columns, Mapping) and columns and set(columns) <= set(samples)):
        got = (
            f"holds {', '.join(map(repr, columns)) or 'nothing'}"
            if isinstance(columns, Mapping)
            else f"is of type {type(columns).__name__}"
        )
        wanted = ", ".join(f'{{"{key}": values}}' for key in samples)
        raise InputError(
            f"{name} {got}, but the name of a column, or {wanted} or several at once are expected; pass these."
        )
