"""Whether samples hold enough to tell anything from: rows, observations, positives and groups.

A target as it is read after a source, with its columns, its scale and its groups.

The source as every estimator sees it: its rows, P and U among them, which are one observation, and their scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import NO_PAIRS, Floats, Index, Mask, Pairs
from priorshift.errors import DuplicateRowsWarning, FewPositivesWarning, InputError, IntervalWarning
from priorshift.io.column_checks import warn_of_far_values
from priorshift.io.labels import Audit, as_audit, read_classes, read_labels
from priorshift.io.observations import (
    KnownGroups,
    comparable_ids,
    count_alike,
    deal_folds,
    find_copies,
    group_links,
    linked,
    read_groups,
    repeats_by_chance,
    shared_pairs,
)
from priorshift.io.scaling import Rows, Scaling
from priorshift.io.tables import Table, match_columns, read_table
from priorshift.io.weights import design_effect, distinct_size, effective_size, mass_of, read_weights
from priorshift.warning_records import warn

FEW_POSITIVES = 20  # or groups


def check_sizes(**rows: int) -> None:
    """Two rows at least of each sample."""
    for name, size in rows.items():
        if size < 2:
            rows_there = f"{size} row{'s' * (size != 1)}"
            raise InputError(f"{name} has {rows_there}, but at least 2 are needed to tell signal from noise; add rows.")


def check_source_apart(positive: Floats, unlabeled: Floats) -> None:
    """Refuse one table as both samples of the source."""
    if positive.shape == unlabeled.shape and np.array_equal(positive, unlabeled):
        raise InputError(
            f"positive and unlabeled are the same {len(positive)} rows, so positives cannot be told from the "
            "population; pass the labelled positives and a sample of the whole population."
        )


def check_observations(name: str, rows: int, observation: Index) -> None:
    """Two at least in each sample."""
    if (observation == observation[0]).all():
        raise InputError(
            f"the {rows} rows of {name} are one observation (copies of one row, or one group), but at least 2 are "
            "needed to tell signal from noise; add rows, or check the groups."
        )


def warn_of_few_positives(rows: int, worth: float) -> None:
    """Say so where an estimate rests on few positives, which are worth so many independent ones."""
    if worth < FEW_POSITIVES:
        but = f", which are worth {worth:.0f} independent ones" if worth < rows - 0.5 else ""
        warn(
            f"The estimate rests on {rows} positive rows{but}; take it as a guess, for all that the interval is wider. "
            f"Label at least {FEW_POSITIVES}.",
            FewPositivesWarning,
        )


def warn_of_copies(
    copies: Index,
    rows: str,
    then: str = "they are taken as one observation. Leave them out, unless they mean something.",
) -> None:
    """Say how many of these rows are copies of others, and what follows; `copies` counts those of each row."""
    again = round(float((1 - 1 / copies).sum()))
    if again:
        warn(
            f"{again} of {len(copies)} {rows} are copies of others, in columns that do not repeat by chance; {then}",
            DuplicateRowsWarning,
        )


def warn_of_few_groups(groups: float, name: str) -> None:
    """Say so where an interval rests on few groups, which are worth so many of equal size."""
    if groups < FEW_POSITIVES:
        warn(
            f"The groups of the {name} are worth {groups:.1f} of equal size; with fewer than {FEW_POSITIVES} an "
            "interval holds less often than it says. Take it as a rough one, or use smaller groups.",
            IntervalWarning,
        )


@dataclass(frozen=True, eq=False)
class Target:
    """Rows that were read after the source, with its columns and its scale.

    Attributes
    ----------
    table : Table
        All rows, as they are.
    rows : Rows
        The same, scaled.
    weights : ndarray or None
        What each row stands for; None is the same for all.
    observation : ndarray of int
        The observation that each row is: copies are one, and so is a group.
    of_source : ndarray of int
        The observation of the source that each row belongs to, whose group is the same; −1 for none.
    copies : ndarray of int
        How many copies of each row there are, itself included.
    groups : ndarray of str or None
        The group of each row, as the user calls it.
    audit : Audit or None
        Rows that were looked up.
    """

    table: Table
    rows: Rows
    weights: Floats | None
    observation: Index
    of_source: Index
    copies: Index
    groups: NDArray[Any] | None = None
    audit: Audit | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def mass(self) -> Floats:
        """What each row counts in a mean, of copies one; the sum is 1."""
        return mass_of(self.weights, self.copies)

    @property
    def is_even(self) -> bool:
        """Whether each row counts the same, and is its own observation."""
        return bool(self.weights is None and len(self) == self.observation.max(initial=-1) + 1)

    @property
    def size(self) -> float:
        """Rows of equal weight, no two alike, that it is worth."""
        return distinct_size(self.mass, self.copies)

    def design_effect(self, values: Floats) -> float:
        """How much larger the variance of the mean of a function is for its groups, given its values."""
        if self.is_even:
            return 1.0
        return design_effect(self.mass * (values - self.mass @ values), self.observation, self.copies)

    def warn_of_copies(self) -> None:
        warn_of_copies(self.copies, f"{self.table.name} rows")

    def warn_of_few_groups(self) -> None:
        if self.groups is not None:
            warn_of_few_groups(effective_size(self.mass, self.observation), self.table.name)


@dataclass(frozen=True, eq=False)
class Layout:
    """The columns and the scale of a source, and its groups: all that is needed to read a target as it was read."""

    columns: Table  # without rows
    scaling: Scaling
    by_chance: bool  # whether its rows can be equal by chance
    groups: KnownGroups

    def read(self, X: Any, name: str = "target", least: int = 2, weights: Any = None, groups: Any = None) -> Target:
        """A table with the source's columns in any order, and at least so many rows."""
        table = match_columns([self.columns, read_table(X, name)])[1]
        rows = len(table.values)
        if least > 1:
            check_sizes(**{name: rows})
            warn_of_far_values(table)
        self.scaling.warn_of_left_out(table)
        read = None if weights is None else read_weights(weights, rows, f"the weights of {name}")
        links, copies = NO_PAIRS, np.ones(rows, dtype=np.intp)
        if least > 1 and not self.by_chance:
            links = find_copies(table.values)
            copies = count_alike(linked(rows, links))
        of_source, ids = np.full(rows, -1), None
        if groups is not None:
            ids = read_groups(groups, rows, f"the groups of {name}")
            links = np.concatenate([links, group_links(ids)])
            of_source = self.groups.find(ids)
        observation = linked(rows, links)
        if least > 1:
            check_observations(name, rows, observation)
        return Target(table, self.scaling.rows(table.values), read, observation, of_source, copies, ids)


class _NoLayout(Layout):
    """Of a source that was counted: it knows no rows, and reads none."""

    def read(self, X: Any, name: str = "target", least: int = 2, weights: Any = None, groups: Any = None) -> Target:
        raise InputError(f"the estimator was fitted to counts, not to rows, so it cannot read {name}; count that too.")


NO_LAYOUT = _NoLayout(
    Table("a counted source", np.empty((0, 0))),
    Scaling(np.empty(0), np.empty(0), np.empty(0, dtype=np.intp), np.empty(0)),
    False,
    KnownGroups.of(None, np.empty(0, dtype=np.intp)),
)


@dataclass(frozen=True, eq=False)
class Source:
    """What is read of the source, once.

    Attributes
    ----------
    table : Table
        All rows, as they are.
    classes : ndarray of shape (2,)
        The two values of y; the second one means labelled positive.
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
    weights : ndarray or None
        What each row stands for; None is the same for all.
    groups : ndarray of str or None
        Rows of one group are not independent.
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
    weights: Floats | None = None
    groups: NDArray[Any] | None = None

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any,
        shared: Any,
        audit: Any = None,
        weights: Any = None,
        groups: Any = None,
        *,
        scenario: str,
        standardize: bool,
        words: bool = False,
        positive_label: Any = None,
    ) -> Source:
        """X, y and what is known of the rows as `fit` takes them; with `words`, the labels may be text."""
        table = read_table(X, "X")
        labeled, classes = read_labels(y, len(table.values), classifier=words, positive_label=positive_label)
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
        of_rows = None if weights is None else read_weights(weights, len(labeled))
        grouped = None if groups is None else read_groups(groups, len(labeled))
        scaling = Scaling.of(table.values, population, standardize, table.origin, of_rows)
        scaling.warn_of_left_out(table)
        warn_of_far_values(table)
        source = cls(
            table, classes, labeled, positive, population, pairs, scenario, shared, scaling, looked_up, of_rows, grouped
        )
        for name, rows in (("positive", positive), ("unlabeled", population)):
            check_observations(name, len(rows), source.observation[rows])
        return source

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
        known = KnownGroups.of(self.groups, self.observation)
        return Layout(Table("the fitted source", empty, self.table.columns), self.scaling, self._by_chance, known)

    def without_rows(self) -> Source:
        """What is left once the rows were read: which of them are P, U and one observation; no row, id or audit."""
        groups = None if self.groups is None else self.observation.astype(str)
        kept = replace(self, table=self.layout.columns, shared_by=None, audit=None, groups=groups)
        vars(kept).update(observation=self.observation, copies=self.copies)
        return kept

    @cached_property
    def _by_chance(self) -> bool:
        return repeats_by_chance(self.table.values[self.population])

    @cached_property
    def _copy_links(self) -> Pairs:
        """Pairs of rows that are copies of each other, within P and within the unlabelled rows.

        What the two have in common is said by `shared`.
        """
        if self._by_chance:
            return NO_PAIRS
        samples = self.positive, np.flatnonzero(~self.labeled)
        return np.concatenate([rows[find_copies(self.table.values[rows])] for rows in samples])

    @cached_property
    def copies(self) -> Index:
        """How many copies of each row there are, itself included."""
        return count_alike(linked(len(self.labeled), self._copy_links))

    @cached_property
    def observation(self) -> Index:
        """The observation that each row is: shared rows are one, copies are, and so is a group."""
        shared = np.stack([self.positive[self.shared[:, 0]], self.population[self.shared[:, 1]]], axis=1)
        links = [shared, self._copy_links]
        if self.groups is not None:
            links.append(group_links(self.groups))
        if self.shared_by is not None and not isinstance(self.shared_by, str):  # an id may have several rows
            links.append(group_links(comparable_ids(np.asarray(self.shared_by))))
        return linked(len(self.labeled), np.concatenate(links))

    @cached_property
    def positive_mass(self) -> Floats:
        """What each row of P counts in a mean, of copies one; the sum is 1."""
        return self._mass(self.positive)

    @cached_property
    def population_mass(self) -> Floats:
        """The same of U."""
        return self._mass(self.population)

    def _mass(self, rows: Index) -> Floats:
        return mass_of(None if self.weights is None else self.weights[rows], self.copies[rows])

    @property
    def is_even(self) -> bool:
        """Whether each row counts the same, and is its own observation but for shared rows."""
        return self.weights is None and self.groups is None and bool((self.copies == 1).all())

    @property
    def effective_positives(self) -> float:
        """Observations in P, of equal weight."""
        return effective_size(self.positive_mass, self.observation[self.positive])

    @property
    def effective_population(self) -> float:
        """Observations in U, of equal weight."""
        return effective_size(self.population_mass, self.observation[self.population])

    @property
    def effective_sizes(self) -> tuple[float, float]:
        """Rows of equal weight, no two alike, that P and U are worth; groups are not asked."""
        masses = (self.positive, self.positive_mass), (self.population, self.population_mass)
        p, u = (distinct_size(mass, self.copies[rows]) for rows, mass in masses)
        return p, u

    def design_effects(self, of_positive: Floats, of_population: Floats) -> tuple[float, float]:
        """How much larger the variances of the means of a function are for the groups of P and of U, given its values.

        What P and U have in common is left out.
        """
        if self.is_even:
            return 1.0, 1.0
        samples = (
            (self.positive, self.positive_mass, of_positive),
            (self.population, self.population_mass, of_population),
        )
        p, u = (
            design_effect(mass * (x - mass @ x), self.observation[rows], self.copies[rows]) for rows, mass, x in samples
        )
        return p, u

    def deal(self, folds: int, rng: np.random.Generator) -> Index:
        """The fold of each row; rows of one observation are never apart."""
        return deal_folds(self.observation, self.positive, self.population, folds, rng)

    @property
    def few_positives(self) -> bool:
        """Whether what rests on them is a guess."""
        return self.effective_positives < FEW_POSITIVES

    def warn_of_few_positives(self) -> None:
        """A guess is called one."""
        warn_of_few_positives(len(self.positive), self.effective_positives)

    def warn_of_few_groups(self) -> None:
        """An interval that rests on few groups is known to be rough."""
        if self.groups is not None:
            warn_of_few_groups(self.effective_population, "unlabelled sample")

    def warn_of_copies(self) -> None:
        """Copies count as one observation, which changes what a standard error says."""
        warn_of_copies(self.copies, "source rows")


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
