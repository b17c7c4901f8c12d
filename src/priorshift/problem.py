"""The problem that every method solves: samples with row metadata, and the source and target built from them.

A :class:`Problem` holds labelled positives, an unlabelled sample of the source population and one or more targets. Its
samples are rows in memory, chunks of rows that are streamed, counts of a frozen score (histograms) or moments of random
features (sketches). From rows, a :class:`Source` and a :class:`Target` are built once: P and U among the rows of the
source, which rows are one observation, and one scale for all columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import NO_PAIRS, Floats, Index, Mask, Pairs
from priorshift.errors import DuplicateRowsWarning, InputError
from priorshift.io.column_checks import warn_of_far_values
from priorshift.io.labels import Audit, as_audit, read_labels
from priorshift.io.observations import (
    KnownGroups,
    find_copies,
    group_links,
    linked,
    repeats_by_chance,
    row_codes,
    shared_pairs,
)
from priorshift.io.readers import read_numeric_table
from priorshift.io.row_metadata import NO_METADATA, MetadataColumns, RowMetadata, join_source_metadata
from priorshift.io.sample_size import (
    RowMass,
    check_distinct_samples,
    check_observations,
    check_sizes,
    check_weights,
    warn_of_copies,
    warn_of_few_groups,
)
from priorshift.io.scaling import Rows, Scaling
from priorshift.io.tables import Table, match_columns
from priorshift.warning_records import warn

Kind = Literal["rows", "chunks", "counts", "moments"]
ROLES = ("positive", "unlabeled", "target")


@dataclass(frozen=True, eq=False)
class Sample:
    """Sample of one population: rows in a table, or chunks, counts or moments of rows that are not in memory."""

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
    """Labelled positives, an unlabelled sample, one or more targets, and the columns with a special use."""

    positive: Sample
    unlabeled: Sample
    targets: Mapping[str, Sample]  # by name; a single target has an empty name
    columns: MetadataColumns = field(default_factory=MetadataColumns)
    drop: tuple[str, ...] = ()
    by: str | None = None  # column that distinguishes the targets or strata
    frame: str | None = None  # data frame library of the input, in which results are returned
    kind: Kind = field(init=False)  # kind of the samples; if they differ, the one that decides which method is used

    def __post_init__(self) -> None:
        """Set the kind of the samples; the later one in this order decides: rows, chunks, counts, moments."""
        kinds = [sample.kind for sample in (self.positive, self.unlabeled, *self.targets.values())]
        object.__setattr__(self, "kind", max(kinds, key=("rows", "chunks", "counts", "moments").index))

    @property
    def target(self) -> Sample:
        """The only target."""
        [target] = self.targets.values()
        return target


@dataclass(frozen=True, eq=False)
class Target:
    """Rows of a target, with the columns and the scale of the source."""

    table: Table
    rows: Rows  # scaled
    weights: Floats | None
    observation: Index  # number of each row's observation: copies are one observation, and so is a group
    of_source: Index  # number of the source's observation with the same group as the row; −1 for none
    copies: Index  # number of copies of each row, itself included
    groups: NDArray[Any] | None = None
    audit: Audit | None = None
    mass: Floats = field(init=False)  # mass of each row in a mean; sums to 1 (as in RowMass)
    size: float = field(init=False)  # effective sample size
    observations: float = field(init=False)  # effective number of observations
    is_even: bool = field(init=False)  # whether each row has the same weight and is its own observation

    def __post_init__(self) -> None:
        """Set the masses, the effective sizes, and whether all rows have the same weight."""
        own = RowMass.from_weights(self.weights, self.observation, self.copies)
        is_even = bool(self.weights is None and len(self.rows) == self.observation.max(initial=-1) + 1)
        for name, value in (("mass", own.mass), ("size", own.size), ("observations", own.observations)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "is_even", is_even)

    def __len__(self) -> int:
        return len(self.rows)

    def design_effect(self, values: Floats) -> float:
        """Return the factor by which groups increase the variance of the mean of `values`, one per row."""
        if self.is_even:
            return 1.0
        return RowMass(self.mass, self.observation, self.copies, self.size, self.observations).design_effect(values)


@dataclass(frozen=True, eq=False)
class SourceLayout:
    """Columns, scale and groups of a source: all that is needed to read a target."""

    columns: Table  # without rows
    scaling: Scaling
    by_chance: bool  # whether rows can be equal by chance
    groups: KnownGroups

    def read(self, X: Any, name: str = "target", **metadata: Any) -> Target:
        """Read a target as a user passes it; `metadata` are arrays with an entry for each row."""
        table = read_numeric_table(X, name)
        audit = metadata.pop("audit", None)  # read separately: messages call it "audit", not "the audit of target"
        read = RowMetadata.read(len(table), owner=name, **metadata)
        if audit is not None:
            read = replace(read, audit=RowMetadata.read(len(table), audit=audit).audit)
        return self.target(table, read, name)

    def read_rows(self, table: Table) -> Target:
        """Return rows to be predicted as a target: any number of rows, each its own observation."""
        [_, table] = match_columns([self.columns, table])
        self.scaling.warn_of_left_out(table)
        own, no_group, one = np.arange(len(table)), np.full(len(table), -1), np.ones(len(table), dtype=np.intp)
        return Target(table, self.scaling.rows(table.values), None, observation=own, of_source=no_group, copies=one)

    def target(self, table: Table, metadata: RowMetadata, name: str = "target") -> Target:
        """Build a target from a table of numbers, and warn of suspicious columns and rows."""
        [_, table] = match_columns([self.columns, table])
        rows = len(table)
        check_sizes(**{name: rows})
        warn_of_far_values(table)
        self.scaling.warn_of_left_out(table)
        links, copies = NO_PAIRS, np.ones(rows, dtype=np.intp)
        if not self.by_chance:  # equal rows are copies of one observation
            links = find_copies(table.values)
            copy_number = linked(rows, links)
            copies = np.bincount(copy_number)[copy_number]
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
            warn_of_few_groups(target.observations, table.name)
        return target


@dataclass(frozen=True, eq=False)
class Source:
    """Rows of the source: which are P, which are U, which are one observation, and their scale."""

    table: Table  # all rows, not scaled
    classes: NDArray[Any]  # the two values of y; the second one means labelled positive
    labeled: Mask
    positive: Index  # rows of P
    population: Index  # rows of U
    shared: Pairs  # positions in P and in U of one observation
    scenario: str  # under "censoring" all rows are U, and every labelled row is shared
    scaling: Scaling  # from U
    metadata: RowMetadata
    weights: Floats | None  # None for equal weights
    groups: NDArray[Any] | None
    observation: Index  # number of each row's observation: of shared rows, of copies, and of a group
    copies: Index  # number of copies of each row, itself included
    by_chance: bool  # whether rows can be equal by chance
    audit: Audit | None = None  # audited rows, by their positions in `unknown`
    P: RowMass = field(init=False)  # of the rows of P
    U: RowMass = field(init=False)  # of the rows of U
    sizes: tuple[int, int] = field(init=False)  # labelled and unlabelled rows
    rows: Rows = field(init=False)  # all rows, scaled

    def __post_init__(self) -> None:
        """Set the masses of P and U, the sizes of the samples, and the scaled rows."""
        for name, rows in (("P", self.positive), ("U", self.population)):
            weights = None if self.weights is None else self.weights[rows]
            mass = RowMass.from_weights(weights, self.observation[rows], self.copies[rows])
            object.__setattr__(self, name, mass)
        object.__setattr__(self, "sizes", (len(self.positive), len(self.labeled) - len(self.positive)))
        object.__setattr__(self, "rows", self.scaling.rows(self.table.values))

    @classmethod
    def from_samples(cls, positive: Sample, unlabeled: Sample, *, scenario: str, standardize: bool) -> Source:
        """Build the source of a problem; the positives come first, then the unlabelled rows."""
        P, U = positive.data, unlabeled.data
        check_distinct_samples(P.values, U.values)
        metadata = NO_METADATA
        if not (positive.metadata is NO_METADATA and unlabeled.metadata is NO_METADATA):
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
        """Build a source from X, y and metadata as `fit` takes them; `text_labels` allows labels that are text."""
        table = read_numeric_table(X, "X")
        labeled, classes = read_labels(y, len(table), classifier=text_labels, positive_label=positive_label)
        check_sizes(positive=int(labeled.sum()), unlabeled=int((~labeled).sum()))
        read = RowMetadata.read(len(table), **metadata)
        return cls._build(table, labeled, classes, read, scenario, standardize)

    @classmethod
    def _build(
        cls, table: Table, labeled: Mask, classes: NDArray[Any], metadata: RowMetadata, scenario: str, standardize: bool
    ) -> Source:
        """Build a source: find shared rows, copies and groups, and compute the scale of the columns."""
        positive, unlabeled = np.flatnonzero(labeled), np.flatnonzero(~labeled)
        population, pairs, is_stated = unlabeled, NO_PAIRS, metadata.identical or metadata.ids is not None
        if scenario == "censoring":
            if is_stated:
                raise InputError("shared is known under scenario='censoring' (every labelled row); leave it out.")
            # U is all rows, so every labelled row is also in U
            population, pairs = np.arange(len(labeled)), np.stack([np.arange(len(positive)), positive], axis=1)
        elif is_stated:
            pairs = shared_pairs(table.values, positive, population, metadata.ids)
        if metadata.weights is not None:
            check_weights(metadata.weights, "weights")
        audit = None if metadata.audit is None else _source_audit(metadata.audit, positive, population, pairs)
        scaling = Scaling.from_rows(table.values, population, standardize, table.origin, metadata.weights)
        scaling.warn_of_left_out(table)
        warn_of_far_values(table)
        by_chance = repeats_by_chance(table.values[population])
        copy_links = NO_PAIRS
        if not by_chance:  # copies within P and within the unlabelled rows; `pairs` are between the two
            copy_links = np.concatenate([rows[find_copies(table.values[rows])] for rows in (positive, unlabeled)])
        # pairs of rows of one observation: shared rows, copies, groups and equal ids
        links = [np.stack([positive[pairs[:, 0]], population[pairs[:, 1]]], axis=1), copy_links]
        links += [group_links(column) for column in (metadata.groups, metadata.ids) if column is not None]
        observation = linked(len(labeled), np.concatenate(links))
        copy_number = linked(len(labeled), copy_links)
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
            copies=np.bincount(copy_number)[copy_number],
            by_chance=by_chance,
            audit=audit,
        )

    @property
    def shared_argument(self) -> Any:
        """The argument `shared` of `fit` for another estimator that gets the same rows."""
        return self.metadata.ids if self.metadata.ids is not None else "identical" if self.metadata.identical else None

    @property
    def unknown(self) -> Index:
        """Rows of U that are not shared with P; the class of shared rows is known without an audit."""
        return np.setdiff1d(self.population, self.population[self.shared[:, 1]])

    @property
    def audit_column(self) -> Floats | None:
        """The argument `audit` of `fit` for another estimator that gets the same rows."""
        if self.audit is None:
            return None
        column = np.full(len(self.labeled), np.nan)
        column[self.unknown[self.audit.index]] = self.audit.positive
        return column

    @property
    def layout(self) -> SourceLayout:
        """The columns, scale and groups that are needed to read a target."""
        groups = KnownGroups() if self.groups is None else KnownGroups.from_rows(self.groups, self.observation)
        columns = Table("the fitted source", np.empty((0, self.table.width)), self.table.columns)
        return SourceLayout(columns, self.scaling, self.by_chance, groups)

    def without_rows(self) -> Source:
        """Return a copy without the values of rows, ids, names of groups and the audit, for storing."""
        groups = None if self.groups is None else self.observation.astype(str)
        columns = Table("the fitted source", np.empty((0, self.table.width)), self.table.columns)
        return replace(self, table=columns, audit=None, metadata=NO_METADATA, groups=groups)

    @property
    def is_even(self) -> bool:
        """Whether each row has the same weight, and is its own observation apart from shared rows."""
        return self.weights is None and self.groups is None and bool((self.copies == 1).all())

    def design_effects(self, values_P: Floats, values_U: Floats) -> tuple[float, float]:
        """Return the design effects of groups on the means of `values_P` over P and of `values_U` over U."""
        if self.is_even:
            return 1.0, 1.0
        return self.P.design_effect(values_P), self.U.design_effect(values_U)

    def deal_folds(self, folds: int, rng: np.random.Generator) -> Index:
        """Return the fold of each row; observations with and without positives are spread evenly over the folds."""
        has_positive = np.zeros(int(self.observation.max()) + 1, dtype=bool)
        has_positive[self.observation[self.positive]] = True
        fold_of_observation = np.empty(len(has_positive), dtype=np.intp)
        for stratum in (has_positive, ~has_positive):
            members = rng.permutation(np.flatnonzero(stratum))
            fold_of_observation[members] = np.arange(len(members)) % folds
        fold: Index = fold_of_observation[self.observation]
        for k in range(folds):
            if not (fold[self.positive] == k).any() or not (fold[self.population] == k).any():
                raise InputError(
                    f"{int(has_positive.sum())} positive and {int((~has_positive).sum())} other observations cannot "
                    f"be split into {folds} folds with both; add rows, or check which rows are shared."
                )
        return fold

    def warn_of_unstated_sharing(self) -> None:
        """Warn if most positives are also unlabelled rows although the user did not state it, or if no id is shared."""
        if self.metadata.ids is not None:
            if not len(self.shared):
                warn("No id is in both source tables; check the id column, or leave shared out.", DuplicateRowsWarning)
            return
        if self.metadata.identical:
            return
        codes, m = row_codes(self.table.values), len(self.positive)
        if len(np.unique(codes[m:])) < 0.9 * (len(codes) - m):
            return  # rows of discrete data repeat by chance
        repeated = int(np.isin(codes[:m], codes[m:]).sum())
        if repeated > m / 2:
            warn(
                f"{repeated} of {m} positive rows are also in the unlabeled table. If they are the same observations, "
                "pass shared='identical' or the name of an id column; otherwise the estimate and its interval are off.",
                DuplicateRowsWarning,
            )


def _source_audit(classes: Floats, positive: Index, population: Index, shared: Pairs) -> Audit:
    """Return the audit of the rows of U that are not shared with P; refuse a 0 for a row that is labelled positive."""
    in_both = population[shared[:, 1]]
    for rows, what in ((positive, "is labelled positive"), (in_both, "is the same observation as a labelled positive")):
        contradicting = rows[classes[rows] == 0]
        if len(contradicting):
            raise InputError(
                f"audit holds 0 in row {contradicting[0]} (counting from 0), which {what}; correct one of the two."
            )
    return as_audit(classes[np.setdiff1d(population, in_both)], "the audit of unlabelled rows")
