"""The problem that every method solves: samples, what is known of their rows, and the source and target made of them.

A :class:`Problem` holds labelled positives, an unlabelled sample of the source population and one target or more. Its
samples are rows in memory, chunks of rows that are streamed, counts of a frozen score (histograms) or moments of random
features (sketches). Of rows, a :class:`Source` and a :class:`Target` are made, once: P and U among the rows of the
source, which rows are one observation, and one scale for all columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import NO_PAIRS, Floats, Index, Mask, Pairs
from priorshift.errors import DuplicateRowsWarning, InputError
from priorshift.io.column_checks import warn_of_far_values
from priorshift.io.labels import Audit, as_audit, read_labels
from priorshift.io.observations import (
    KnownGroups,
    count_alike,
    deal_folds,
    find_copies,
    group_links,
    linked,
    repeats_by_chance,
    row_codes,
    shared_pairs,
)
from priorshift.io.readers import read_numeric_table
from priorshift.io.row_metadata import MetadataColumns, RowMetadata, join_source_metadata
from priorshift.io.sample_checks import (
    FEW_POSITIVES,
    check_distinct_samples,
    check_observations,
    check_sizes,
    warn_of_copies,
    warn_of_few_groups,
    warn_of_few_positives,
)
from priorshift.io.scaling import Rows, Scaling
from priorshift.io.tables import Table, match_columns
from priorshift.io.weights import check_weights, design_effect, distinct_size, effective_size, mass_of
from priorshift.warning_records import warn

Kind = Literal["rows", "chunks", "counts", "moments"]
ROLES = ("positive", "unlabeled", "target")


@dataclass(frozen=True, eq=False)
class Sample:
    """One population's sample: rows in a table, or chunks, counts or moments of rows that are not held."""

    data: Any  # a Table, or Chunks, a Histogram or a Sketch
    kind: Kind = "rows"
    metadata: RowMetadata = field(default_factory=RowMetadata)

    def __len__(self) -> int:
        return len(self.data)

    def take(self, rows: Index, name: str) -> Sample:
        """Return some rows, under another name."""
        return Sample(self.data.take(rows, name), self.kind, self.metadata.take(rows))


@dataclass(frozen=True, eq=False)
class Problem:
    """Labelled positives, an unlabelled sample and one target or more, and what the user stated of their columns."""

    positive: Sample
    unlabeled: Sample
    targets: Mapping[str, Sample]  # by name; a single target has an empty name
    columns: MetadataColumns = field(default_factory=MetadataColumns)
    drop: tuple[str, ...] = ()
    by: str | None = None  # the column that tells the targets or strata apart
    frame: str | None = None  # the data frame library of the input, in which results are returned

    @property
    def kind(self) -> Kind:
        """What the samples are; where they differ, the one that decides how the problem is solved."""
        kinds = [sample.kind for sample in (self.positive, self.unlabeled, *self.targets.values())]
        return max(kinds, key=("rows", "chunks", "counts", "moments").index)

    @property
    def target(self) -> Sample:
        """The only target."""
        [target] = self.targets.values()
        return target

    @property
    def encoded_columns(self) -> dict[str, Any] | None:
        """What became of each column, where columns were encoded."""
        origin = self.unlabeled.data.origin if self.kind == "rows" else None
        return None if origin is None else origin.columns


@dataclass(frozen=True, eq=False)
class Target:
    """Rows of a target, with the columns and the scale of the source."""

    table: Table
    rows: Rows  # scaled
    weights: Floats | None
    observation: Index  # of each row: copies are one observation, and so is a group
    of_source: Index  # the observation of the source that a row's group is; -1 for none
    copies: Index  # how many copies of each row there are, itself included
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
        """The effective sample size, copies counted once and groups not considered."""
        return distinct_size(self.mass, self.copies)

    def design_effect(self, values: Floats) -> float:
        """Return how much larger the variance of the mean of a function is for its groups, given its values."""
        if self.is_even:
            return 1.0
        return design_effect(self.mass * (values - self.mass @ values), self.observation, self.copies)


@dataclass(frozen=True, eq=False)
class SourceLayout:
    """The columns, the scale and the groups of a source: all that is needed to read a target."""

    columns: Table  # without rows
    scaling: Scaling
    by_chance: bool  # whether rows can be equal by chance
    groups: KnownGroups

    def read(self, X: Any, name: str = "target", **metadata: Any) -> Target:
        """Read a target from what a user passes, with an entry of each metadata for every row."""
        table = read_numeric_table(X, name)
        audit = metadata.pop("audit", None)
        read = RowMetadata.read(len(table), owner=name, **metadata)
        if audit is not None:
            read = replace(read, audit=RowMetadata.read(len(table), audit=audit).audit)
        return self.target(table, read, name)

    def read_rows(self, table: Table, name: str) -> Target:
        """Return rows to be predicted, of which there may be any number, as a target."""
        [_, table] = match_columns([self.columns, table])
        self.scaling.warn_of_left_out(table)
        each, none = np.arange(len(table)), np.full(len(table), -1)
        copies = np.ones(len(table), dtype=np.intp)
        return Target(table, self.scaling.rows(table.values), None, each, none, copies)

    def target(self, table: Table, metadata: RowMetadata, name: str = "target") -> Target:
        """Return a table of numbers as a target, and warn of what is odd about it."""
        [_, table] = match_columns([self.columns, table])
        rows = len(table)
        check_sizes(**{name: rows})
        warn_of_far_values(table)
        self.scaling.warn_of_left_out(table)
        links, copies = NO_PAIRS, np.ones(rows, dtype=np.intp)
        if not self.by_chance:
            links = find_copies(table.values)
            copies = count_alike(linked(rows, links))
        of_source = np.full(rows, -1)
        if metadata.groups is not None:
            links = np.concatenate([links, group_links(metadata.groups)])
            of_source = self.groups.find(metadata.groups)
        observation = linked(rows, links)
        check_observations(name, rows, observation)
        scaled = self.scaling.rows(table.values)
        audit = None if metadata.audit is None else as_audit(metadata.audit)
        target = Target(table, scaled, metadata.weights, observation, of_source, copies, metadata.groups, audit)
        warn_of_copies(copies, f"{table.name} rows")
        if metadata.groups is not None:
            warn_of_few_groups(effective_size(target.mass, observation), table.name)
        return target


@dataclass(frozen=True, eq=False)
class Source:
    """The rows of the source: which are P, which are U, which are one observation, and their scale."""

    table: Table  # all rows, not scaled
    classes: NDArray[Any]  # the two values of y; the second one means labelled positive
    labeled: Mask
    positive: Index  # rows that make up P
    population: Index  # rows that make up U
    shared: Pairs  # positions in P and in U of one observation
    scenario: str  # under "censoring" all rows are U, and every labelled row is shared
    scaling: Scaling  # from U
    metadata: RowMetadata
    weights: Floats | None  # None where all are the same
    groups: NDArray[Any] | None
    observation: Index  # of each row: shared rows are one observation, copies are, and so is a group
    copies: Index  # how many copies of each row there are, itself included
    by_chance: bool  # whether rows can be equal by chance
    audit: Audit | None = None  # which rows were looked up, by their positions in `unknown`

    @classmethod
    def from_samples(cls, positive: Sample, unlabeled: Sample, *, scenario: str, standardize: bool) -> Source:
        """Build the source of a problem; its rows are the positives and then the unlabelled rows."""
        P, U = positive.data, unlabeled.data
        check_distinct_samples(P.values, U.values)
        metadata = join_source_metadata(positive.metadata, unlabeled.metadata, (len(P), len(U)))
        values = np.concatenate([P.values, U.values])
        table = Table("the positive and unlabeled rows", values, U.columns, origin=U.origin)
        labeled = np.repeat([True, False], [len(P), len(U)])
        return cls._build(table, labeled, np.array([0, 1]), metadata, scenario, standardize)

    @classmethod
    def from_labels(
        cls,
        X: Any,
        y: Any,
        *,
        scenario: str,
        standardize: bool,
        positive_label: Any = None,
        text_labels: bool = False,
        **metadata: Any,
    ) -> Source:
        """Build a source from X, y and metadata as `fit` takes them."""
        table = read_numeric_table(X, "X")
        labeled, classes = read_labels(y, len(table), classifier=text_labels, positive_label=positive_label)
        check_sizes(positive=int(labeled.sum()), unlabeled=int((~labeled).sum()))
        read = RowMetadata.read(len(table), **metadata)
        return cls._build(table, labeled, classes, read, scenario, standardize)

    @classmethod
    def _build(
        cls, table: Table, labeled: Mask, classes: NDArray[Any], metadata: RowMetadata, scenario: str, standardize: bool
    ) -> Source:
        positive, unlabeled = np.flatnonzero(labeled), np.flatnonzero(~labeled)
        population, pairs, is_stated = unlabeled, NO_PAIRS, metadata.identical or metadata.ids is not None
        if scenario == "censoring":
            if is_stated:
                raise InputError("shared is known under scenario='censoring' (every labelled row); leave it out.")
            population, pairs = np.arange(len(labeled)), np.stack([np.arange(len(positive)), positive], axis=1)
        elif is_stated:
            pairs = shared_pairs(table.values, positive, population, metadata.ids)
        if metadata.weights is not None:
            check_weights(metadata.weights, "weights")
        audit = None if metadata.audit is None else _source_audit(metadata.audit, positive, population, pairs)
        scaling = Scaling.of(table.values, population, standardize, table.origin, metadata.weights)
        scaling.warn_of_left_out(table)
        warn_of_far_values(table)
        by_chance = repeats_by_chance(table.values[population])
        copy_links = NO_PAIRS
        if not by_chance:  # copies within P and within the unlabelled rows; `pairs` are between the two
            copy_links = np.concatenate([rows[find_copies(table.values[rows])] for rows in (positive, unlabeled)])
        links = [np.stack([positive[pairs[:, 0]], population[pairs[:, 1]]], axis=1), copy_links]
        links += [group_links(column) for column in (metadata.groups, metadata.ids) if column is not None]
        observation = linked(len(labeled), np.concatenate(links))
        for name, rows in (("positive", positive), ("unlabeled", population)):
            check_observations(name, len(rows), observation[rows])
        return cls(
            table=table,
            classes=classes,
            labeled=labeled,
            positive=positive,
            population=population,
            shared=pairs,
            scenario=scenario,
            scaling=scaling,
            metadata=metadata,
            weights=metadata.weights,
            groups=metadata.groups,
            observation=observation,
            copies=count_alike(linked(len(labeled), copy_links)),
            by_chance=by_chance,
            audit=audit,
        )

    @property
    def shared_argument(self) -> Any:
        """What is known of shared rows, as `fit` takes it."""
        return self.metadata.ids if self.metadata.ids is not None else "identical" if self.metadata.identical else None

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
    def layout(self) -> SourceLayout:
        """What is needed to read a target."""
        empty = Table("the fitted source", np.empty((0, self.table.width)), self.table.columns)
        return SourceLayout(empty, self.scaling, self.by_chance, KnownGroups.of(self.groups, self.observation))

    def without_rows(self) -> Source:
        """Return which rows are P, U and one observation, without the rows themselves, ids and audit."""
        groups = None if self.groups is None else self.observation.astype(str)
        return replace(self, table=self.layout.columns, audit=None, metadata=RowMetadata(), groups=groups)

    @cached_property
    def positive_mass(self) -> Floats:
        """What each row of P counts in a mean, of copies one; the sum is 1."""
        weights = None if self.weights is None else self.weights[self.positive]
        return mass_of(weights, self.copies[self.positive])

    @cached_property
    def population_mass(self) -> Floats:
        """What each row of U counts in a mean, of copies one; the sum is 1."""
        weights = None if self.weights is None else self.weights[self.population]
        return mass_of(weights, self.copies[self.population])

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
        """Whether an estimate from so few positives is a guess."""
        return self.effective_positives < FEW_POSITIVES

    def warn_of_few_positives(self) -> None:
        """Warn that an estimate rests on few positives."""
        warn_of_few_positives(len(self.positive), self.effective_positives)

    def warn_of_rows(self) -> None:
        """Warn of copies and of few groups, which change what a standard error says."""
        warn_of_copies(self.copies, "source rows")
        if self.groups is not None:
            warn_of_few_groups(self.effective_population, "unlabelled sample")

    def warn_of_unstated_sharing(self) -> None:
        """Warn of positives that are found again among the unlabelled rows, though the user did not say so.

        Most positives in an otherwise distinct sample are hardly there by chance.
        """
        if self.metadata.ids is not None:
            if not len(self.shared):
                warn(
                    "No id is in both source tables, so no row is taken as shared; check the id column, or leave "
                    "shared out.",
                    DuplicateRowsWarning,
                )
            return
        if self.metadata.identical:
            return
        codes, m = row_codes(self.table.values), len(self.positive)
        if len(np.unique(codes[m:])) < 0.9 * (len(codes) - m):
            return  # discrete data repeat themselves
        again = int(np.isin(codes[:m], codes[m:]).sum())
        if again > m / 2:
            warn(
                f"{again} of {m} positive rows are also in the unlabeled table. If they are the same observations, "
                "pass shared='identical' or the name of an id column; otherwise the estimate and its interval are off.",
                DuplicateRowsWarning,
            )


def _source_audit(classes: Floats, positive: Index, population: Index, shared: Pairs) -> Audit:
    """Return the audit of those rows of U that are not observations of P; of the others it says nothing new."""
    again = population[shared[:, 1]]
    for rows, what in ((positive, "is labelled positive"), (again, "is the same observation as a labelled positive")):
        denied = rows[classes[rows] == 0]
        if len(denied):
            raise InputError(
                f"audit holds 0 in row {denied[0]} (counting from 0), which {what}; correct one of the two."
            )
    return as_audit(classes[np.setdiff1d(population, again)], "the audit of unlabelled rows")
