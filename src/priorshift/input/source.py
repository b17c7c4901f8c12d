"""The source as every estimator sees it: its rows, P and U among them, which are one observation, and their scale."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import NO_PAIRS, Floats, Index, Mask, Pairs
from priorshift.errors import DuplicateRowsWarning, FewPositivesWarning, InputError, warn
from priorshift.input.labels import read_labels
from priorshift.input.looked_up import Audit, as_audit, read_classes
from priorshift.input.observations import deal_folds, find_copies, linked, shared_pairs
from priorshift.input.scaling import Rows, Scaling
from priorshift.input.tables import Table, match_columns, read_table

_FEW = 20  # positives


@dataclass(frozen=True, eq=False)
class Target:
    """Rows that were read after the source, with its columns and its scale."""

    table: Table
    rows: Rows
    audit: Audit | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def observation(self) -> Index:
        """The observation that each row is: copies are one."""
        return linked(len(self), find_copies(self.table.values))

    @property
    def weights(self) -> Floats:
        """What each row counts where copies count once."""
        return _once(self.observation)


@dataclass(frozen=True, eq=False)
class Layout:
    """The columns and the scale of a source: all that is needed to read a target as it was read."""

    columns: Table  # without rows
    scaling: Scaling

    def read(self, X: Any, name: str = "target", least: int = 2) -> Target:
        """A table with the source's columns in any order, and at least so many rows."""
        table = match_columns([self.columns, read_table(X, name)])[1]
        if least > 1:
            check_sizes(**{name: len(table.values)})
        self.scaling.warn_of_left_out(table)
        return Target(table, self.scaling.rows(table.values))


@dataclass(frozen=True, eq=False)
class Source:
    """What is read of the source, once.

    Attributes
    ----------
    table : Table
        All rows, as they are.
    classes : ndarray of shape (2,)
        The two values of y; the larger one means labelled positive.
    labeled : ndarray of bool
        Whether each row is a labelled positive.
    positive, population : ndarray of int
        The rows that make up P and U.
    shared : ndarray of shape (pairs, 2)
        Positions in P and in U of one observation.
    scenario : {"case-control", "censoring"}
        Whether the unlabelled rows, or all rows, are U. Under "censoring" every labelled row is shared.
    shared_by : None, "identical" or array-like
        How shared rows are recognised, as the user said it.
    scaling : Scaling
        From U.
    audit : Audit or None
        Which rows were looked up, by their positions in `unknown`, and what was found.
    """

    table: Table
    classes: NDArray[Any]
    labeled: Mask
    positive: Index
    population: Index
    shared: Pairs
    scenario: str
    shared_by: Any
    scaling: Scaling
    audit: Audit | None = None

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any,
        shared: Any,
        audit: Any = None,
        *,
        scenario: str,
        standardize: bool,
        words: bool = False,
    ) -> Source:
        """X, y, shared and audit as `fit` takes them; with `words`, the labels may be text."""
        table = read_table(X, "X")
        labeled, classes = read_labels(y, len(table.values), classifier=words)
        positive, rest = np.flatnonzero(labeled), np.flatnonzero(~labeled)
        check_sizes(positive=len(positive), unlabeled=len(rest))
        population, pairs = rest, NO_PAIRS
        if scenario == "censoring":
            if shared is not None:
                raise InputError("shared is known under scenario='censoring' (every labelled row); leave it out.")
            population, pairs = np.arange(len(labeled)), np.stack([np.arange(len(positive)), positive], axis=1)
        elif shared is not None:
            pairs = shared_pairs(table.values, positive, rest, shared)
        looked_up = None if audit is None else _read_audit(audit, positive, population, pairs)
        scaling = Scaling.of(table.values, population, standardize)
        scaling.warn_of_left_out(table)
        return cls(table, classes, labeled, positive, population, pairs, scenario, shared, scaling, looked_up)

    @property
    def sizes(self) -> tuple[int, int]:
        """Labelled and unlabelled rows."""
        return len(self.positive), len(self.labeled) - len(self.positive)

    @property
    def unknown(self) -> Index:
        """Rows of U that are no observation of P: the class of the others is known without an audit."""
        return np.setdiff1d(self.population, self.population[self.shared[:, 1]])

    @property
    def audit_column(self) -> Floats | None:
        """The audit as `fit` takes it."""
        if self.audit is None:
            return None
        column = np.full(len(self.labeled), np.nan)
        column[self.unknown[self.audit.index]] = self.audit.positive
        return column

    @property
    def rows(self) -> Rows:
        """All rows, scaled."""
        return self.scaling.rows(self.table.values)

    @property
    def layout(self) -> Layout:
        empty = np.empty((0, self.table.values.shape[1]))
        return Layout(Table("the fitted source", empty, self.table.columns), self.scaling)

    @cached_property
    def copies(self) -> Pairs:
        """Pairs of rows that are copies of each other, within P and within the unlabelled rows.

        What the two have in common is said by `shared`.
        """
        samples = self.positive, np.flatnonzero(~self.labeled)
        return np.concatenate([rows[find_copies(self.table.values[rows])] for rows in samples])

    @cached_property
    def observation(self) -> Index:
        """The observation that each row is: shared rows are one, and so are copies."""
        links = np.stack([self.positive[self.shared[:, 0]], self.population[self.shared[:, 1]]], axis=1)
        return linked(len(self.labeled), np.concatenate([links, self.copies]))

    @cached_property
    def population_weights(self) -> Floats:
        """What each row of U counts where copies count once."""
        return _once(self.observation[self.population])

    @property
    def effective_positives(self) -> int:
        """Observations in P."""
        return len(np.unique(self.observation[self.positive]))

    def deal(self, folds: int, rng: np.random.Generator) -> Index:
        """The fold of each row; rows of one observation are never apart."""
        return deal_folds(self.observation, self.positive, self.population, folds, rng)

    @property
    def few_positives(self) -> bool:
        """Whether what rests on them is a guess."""
        return len(self.positive) < _FEW

    def warn_of_few_positives(self) -> None:
        """A guess is called one."""
        if self.few_positives:
            warn(
                f"The estimate rests on {len(self.positive)} positive rows; take it as a guess, for all that the "
                f"interval is wider. Label at least {_FEW}.",
                FewPositivesWarning,
            )

    def warn_of_copies(self) -> None:
        """Copies count as one observation, which changes what a standard error says."""
        if len(self.copies):
            warn(
                f"{len(self.copies)} of {len(self.labeled)} source rows are copies of others, in columns that do not "
                "repeat by chance; they are taken as one observation. Leave them out, unless they mean something.",
                DuplicateRowsWarning,
            )


def _read_audit(values: Any, positive: Index, population: Index, shared: Pairs) -> Audit:
    """Of those rows of U that are no observation of P; of the others it can say nothing new."""
    classes = read_classes(values, len(np.union1d(positive, population)), "audit")
    again = population[shared[:, 1]]
    for rows, what in ((positive, "is labelled positive"), (again, "is the same observation as a labelled positive")):
        denied = rows[classes[rows] == 0]
        if len(denied):
            raise InputError(
                f"audit holds 0 in row {denied[0]} (counting from 0), which {what}; correct one of the two."
            )
    return as_audit(classes[np.setdiff1d(population, again)], "the audit of unlabelled rows")


def _once(observation: Index) -> Floats:
    _, at, count = np.unique(observation, return_inverse=True, return_counts=True)
    return np.asarray(1 / count[at])


def check_sizes(**rows: int) -> None:
    """Two rows at least of each sample."""
    for name, size in rows.items():
        if size < 2:
            raise InputError(f"{name} has {size} row, but at least 2 are needed to tell signal from noise; add rows.")
