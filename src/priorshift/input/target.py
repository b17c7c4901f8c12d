"""A target as it is read after a source, with its columns, its scale and its groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import NO_PAIRS, Floats, Index
from priorshift.errors import InputError
from priorshift.input.enough import check_observations, check_sizes, warn_of_copies, warn_of_few_groups
from priorshift.input.far_values import warn_of_far_values
from priorshift.input.looked_up import Audit
from priorshift.input.observations import KnownGroups, count_alike, find_copies, group_links, linked, read_groups
from priorshift.input.scaling import Rows, Scaling
from priorshift.input.tables import Table, match_columns, read_table
from priorshift.input.weights import design_effect, distinct_size, effective_size, mass_of, read_weights


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
