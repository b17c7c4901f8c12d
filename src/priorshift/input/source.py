"""The source as every estimator sees it: its rows, P and U among them, which are one observation, and their scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import NO_PAIRS, Floats, Index, Mask, Pairs
from priorshift.errors import InputError
from priorshift.input.enough import (
    FEW_POSITIVES,
    check_observations,
    check_sizes,
    warn_of_copies,
    warn_of_few_groups,
    warn_of_few_positives,
)
from priorshift.input.far_values import warn_of_far_values
from priorshift.input.labels import read_labels
from priorshift.input.looked_up import Audit, as_audit, read_classes
from priorshift.input.observations import (
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
from priorshift.input.scaling import Rows, Scaling
from priorshift.input.tables import Table, read_table
from priorshift.input.target import NO_LAYOUT, Layout, Target
from priorshift.input.weights import design_effect, distinct_size, effective_size, mass_of, read_weights

__all__ = ["FEW_POSITIVES", "NO_LAYOUT", "Layout", "Source", "Target", "check_sizes", "warn_of_few_positives"]


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
    def worth(self) -> tuple[float, float]:
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
