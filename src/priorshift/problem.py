"""The problem that every method solves: samples with row metadata, and the source and target built from them.

A :class:`Problem` holds labelled positives, or a labelled sample of each of several classes, an unlabelled sample of
the source population and one or more targets. Its samples are rows in memory, chunks of rows that are streamed, counts
of a frozen score (histograms) or moments of random features (sketches). From rows, a :class:`Source` and a
:class:`Target` are built once: P and U among the rows of the source, which rows are one observation, and one scale for
all columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from priorshift import errors
from priorshift.arrays import NO_PAIRS, Floats, Folds, Index, Mask, Pairs
from priorshift.errors import DuplicateRowsWarning, InputError
from priorshift.io import observations, sample_size
from priorshift.io.column_checks import warn_of_far_values
from priorshift.io.labels import Audit, ClassAudit, as_audit, read_labels
from priorshift.io.observations import KnownGroups
from priorshift.io.readers import read_table
from priorshift.io.row_metadata import NO_METADATA, MetadataColumns, RowMetadata, join_metadata
from priorshift.io.sample_size import RowMass
from priorshift.io.scaling import Rows, Scaling
from priorshift.io.source_encoder import SourceEncoder
from priorshift.io.tables import Table, check_numbers, match_columns
from priorshift.warning_records import FormatNotice, WarningRecord, warn

Kind = Literal["rows", "chunks", "counts", "moments"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Sample of one population: rows in a table, or chunks, counts or moments of rows that are not in memory."""

    data: Any  # a Table (of "rows"), Chunks, a Histogram ("counts") or a Sketch ("moments")
    kind: Kind = "rows"
    metadata: RowMetadata = field(default_factory=RowMetadata)

    def take(self, rows: Index, name: str) -> Sample:
        """Return the sample of the rows at some positions, with their metadata; `name` is its name in messages."""
        return Sample(self.data.take(rows, name), self.kind, self.metadata.take(rows))


@dataclass(frozen=True, eq=False)
class Problem:
    """Labelled samples, an unlabelled sample, one or more targets, and the columns with a special use."""

    classes: Mapping[str, Sample]  # labelled samples by class; positives without a class name have an empty name
    unlabeled: Sample  # without rows if every class is labelled (`rest` is False)
    targets: Mapping[str, Sample]  # by name; a single target has an empty name
    columns: MetadataColumns = field(default_factory=MetadataColumns)
    drop: tuple[str, ...] = ()
    by: str | None = None  # column that distinguishes the targets or strata
    frame: str | None = None  # data frame library of the input, in which results are returned
    rest: bool = True  # whether the source population may have rows of no labelled class

    @property
    def positive(self) -> Sample:
        """The only labelled sample; several are refused."""
        if len(self.classes) > 1:
            names = ", ".join(map(repr, self.classes))
            raise InputError(
                f"several labelled classes ({names}) are supported by estimate_prior and estimate_priors alone; pass "
                "one sample as positive."
            )
        [positive] = self.classes.values()
        return positive

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the labelled classes; none for positives without a class name."""
        return tuple(name for name in self.classes if name)

    @property
    def kind(self) -> Kind:
        """Kind of the samples; if they differ, the last one of rows, chunks, counts and moments decides the method."""
        kinds = [sample.kind for sample in (*self.classes.values(), self.unlabeled, *self.targets.values())]
        return max(kinds, key=("rows", "chunks", "counts", "moments").index)

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
    weights: Floats | None  # None for equal weights
    observation: Index  # number of each row's observation: copies are one observation, and so is a group
    source_observation: Index  # number of the source's observation with the same group as the row; −1 for none
    copies: Index  # number of copies of each row, itself included
    groups: NDArray[Any] | None = None
    audit: Audit | None = None
    class_audit: ClassAudit | None = None  # if there are several classes
    row_mass: RowMass = field(init=False)  # holds the next three fields
    mass: Floats = field(init=False)  # mass of each row in a mean; sums to 1
    size: float = field(init=False)  # effective sample size
    observations: float = field(init=False)  # effective number of observations
    is_iid: bool = field(init=False)  # whether each row has the same weight and is its own observation

    def __post_init__(self) -> None:
        """Set the fields that follow from the others; the dataclass is frozen, hence object.__setattr__."""
        row_mass = RowMass.from_weights(self.weights, self.observation, self.copies)
        object.__setattr__(self, "row_mass", row_mass)
        for name in ("mass", "size", "observations"):
            object.__setattr__(self, name, getattr(row_mass, name))
        is_own_observation = len(self.rows) == self.observation.max(initial=-1) + 1
        object.__setattr__(self, "is_iid", bool(self.weights is None and is_own_observation))

    def __len__(self) -> int:
        return len(self.rows)

    def design_effect(self, values: Floats) -> float:
        """Return the factor, at least 1, by which groups increase the variance of the mean of `values`, one per row."""
        return 1.0 if self.is_iid else self.row_mass.design_effect(values)


@dataclass(frozen=True, eq=False)
class SourceLayout:
    """Columns, scale and groups of a source: all that is needed to read a target."""

    columns: Table  # without rows
    scaling: Scaling
    repeats_by_chance: bool  # whether equal rows may be different observations, as rows of a few discrete columns are
    groups: KnownGroups
    encoder: SourceEncoder | None = None  # of columns with names; None where columns must be numbers

    def read(self, X: Any, **metadata: Any) -> Target:
        """Read a target as a user passes it; `metadata` are the arrays audit, weights and groups, an entry per row."""
        table = self._encode(read_table(X, "target"))
        return self.target(table, RowMetadata.read(len(table), owner="target", **metadata))

    def _encode(self, table: Table) -> Table:
        """Return a table as numbers, by the encoding of the source."""
        return check_numbers(table) if self.encoder is None else self.encoder(table)

    def read_rows(self, table: Table) -> Target:
        """Return rows whose class is to be predicted as a target: any number of rows, each its own observation."""
        [_, table] = match_columns([self.columns, self._encode(table)])
        self.scaling.warn_of_left_out(table)
        scaled, observation = self.scaling.rows(table.values), np.arange(len(table))
        no_source, copies = np.full(len(table), -1), np.ones(len(table), dtype=np.intp)
        return Target(table, scaled, None, observation, source_observation=no_source, copies=copies)

    def target(self, table: Table, metadata: RowMetadata) -> Target:
        """Build a target from a table of numbers with the source's columns, and warn of suspicious columns and rows.

        Copies of a row are one observation, unless rows repeat by chance, and so are the rows of a group.
        """
        [_, table] = match_columns([self.columns, table])
        rows = len(table)
        sample_size.check_sizes(target=rows)
        warn_of_far_values(table)
        self.scaling.warn_of_left_out(table)
        links = NO_PAIRS if self.repeats_by_chance else observations.find_copies(table.values)
        copies = observations.count_copies(rows, links)
        source_observation = np.broadcast_to(np.intp(-1), rows)  # takes no memory
        if metadata.groups is not None:
            links = np.concatenate([links, observations.group_links(metadata.groups)])
            source_observation = self.groups.find(metadata.groups)
        observation = observations.linked(rows, links)
        sample_size.check_observations("target", observation)
        scaled = self.scaling.rows(table.values)
        audit = None if metadata.audit is None else as_audit(metadata.audit)
        target = Target(
            table, scaled, metadata.weights, observation, source_observation, copies, metadata.groups, audit
        )
        sample_size.warn_of_copies(copies, f"{table.name} rows")
        if metadata.groups is not None:
            sample_size.warn_of_few_groups(target.observations, table.name)
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
    repeats_by_chance: bool  # whether equal rows may be different observations, as in SourceLayout
    audit: Audit | None = None  # audited rows, by their positions in `unshared`
    encoder: SourceEncoder | None = None  # how X was encoded; None where its columns must be numbers
    P: RowMass = field(init=False)  # of the rows of P
    U: RowMass = field(init=False)  # of the rows of U
    sizes: tuple[int, int] = field(init=False)  # labelled and unlabelled rows
    rows: Rows = field(init=False)  # all rows, scaled
    is_iid: bool = field(init=False)  # whether rows have the same weight and, shared ones apart, are observations

    def __post_init__(self) -> None:
        """Set the fields that follow from the others; the dataclass is frozen, hence object.__setattr__."""
        for name, rows in (("P", self.positive), ("U", self.population)):
            weights = None if self.weights is None else self.weights[rows]
            row_mass = RowMass.from_weights(weights, self.observation[rows], self.copies[rows])
            object.__setattr__(self, name, row_mass)
        object.__setattr__(self, "sizes", (len(self.positive), len(self.labeled) - len(self.positive)))
        object.__setattr__(self, "rows", self.scaling.rows(self.table.values))
        has_copies = bool((self.copies > 1).any())
        object.__setattr__(self, "is_iid", self.weights is None and self.groups is None and not has_copies)

    @classmethod
    def from_samples(cls, positive: Sample, unlabeled: Sample, *, scenario: str, standardize: bool) -> Source:
        """Build the source from two tables: the rows of the positives come first, then the unlabelled rows."""
        P, U = positive.data, unlabeled.data
        if P.values.shape == U.values.shape and np.array_equal(P.values, U.values):
            raise InputError(
                f"positive and unlabeled are the same {len(P)} rows; pass the labelled positives and a sample of the "
                "whole population."
            )
        metadata = NO_METADATA
        if not (positive.metadata is NO_METADATA and unlabeled.metadata is NO_METADATA):
            metadata = join_metadata([positive.metadata, unlabeled.metadata], [len(P), len(U)])
        values = np.concatenate([P.values, U.values])
        table = Table("the positive and unlabeled rows", values, U.columns, origin=U.origin)
        labeled = np.repeat([True, False], [len(P), len(U)])
        return cls.build(table, labeled, np.array([0, 1]), metadata, scenario, standardize)

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
        """Build a source from X, y and metadata as `fit` takes them, all with an entry for each row.

        `text_labels` allows a `y` of text; `metadata` are the arguments shared, audit, weights and groups.
        """
        table = read_table(X, "X")
        if table.columns is None:
            table = check_numbers(table)
        labeled, classes = read_labels(y, len(table), classifier=text_labels, positive_label=positive_label)
        sample_size.check_sizes(positive=int(labeled.sum()), unlabeled=int((~labeled).sum()))
        encoder, table = SourceEncoder.fit(table, labeled)
        row_metadata = RowMetadata.read(len(table), **metadata)
        return cls.build(table, labeled, classes, row_metadata, scenario, standardize, encoder)

    @classmethod
    def build(
        cls,
        table: Table,
        labeled: Mask,
        classes: NDArray[Any],
        metadata: RowMetadata,
        scenario: str,
        standardize: bool,
        encoder: SourceEncoder | None = None,
        scaled_by: Index | None = None,
    ) -> Source:
        """Build a source: find the rows of U, shared rows, copies and observations, and compute the scale of columns.

        `labeled` says which rows are labelled positives, `classes` are the two values of y, `encoder` is what encoded
        the table, `scaled_by` are the rows that decide the scale, U by default. Under "censoring" U is all rows, since
        the unlabelled rows are what the labelling left of the population.
        """
        positive, unlabeled = np.flatnonzero(labeled), np.flatnonzero(~labeled)
        states_shared = metadata.identical or metadata.ids is not None
        population, shared = unlabeled, NO_PAIRS
        if scenario == "censoring":
            if states_shared:
                raise InputError("shared is known under scenario='censoring' (every labelled row); leave it out.")
            # U is all rows, so every labelled row is also in U
            population, shared = np.arange(len(labeled)), np.stack([np.arange(len(positive)), positive], axis=1)
        elif states_shared:
            shared = observations.shared_pairs(table.values, positive, population, metadata.ids)
        if metadata.weights is not None:
            sample_size.check_weights(metadata.weights, "weights")
        audit = None if metadata.audit is None else _source_audit(metadata.audit, positive, population, shared)
        reference = population if scaled_by is None else scaled_by
        scaling = Scaling.from_rows(table.values, reference, standardize, table.origin, metadata.weights)
        scaling.warn_of_left_out(table)
        warn_of_far_values(table)
        repeats_by_chance = observations.repeats_by_chance(table.values[population])
        copy_links = NO_PAIRS
        if not repeats_by_chance:  # copies within P and within the unlabelled rows; `shared` are pairs of P and U
            pairs_within = [rows[observations.find_copies(table.values[rows])] for rows in (positive, unlabeled)]
            copy_links = np.concatenate(pairs_within)
        # pairs of rows of one observation: shared rows, copies, groups and equal ids
        links = [np.stack([positive[shared[:, 0]], population[shared[:, 1]]], axis=1), copy_links]
        for names in (metadata.groups, metadata.ids):
            if names is not None:
                links.append(observations.group_links(names))
        observation = observations.linked(len(labeled), np.concatenate(links))
        for name, rows in (("positive", positive), ("unlabeled", population)):
            sample_size.check_observations(name, observation[rows])
        return cls(
            table=table,
            classes=classes,
            labeled=labeled,
            positive=positive,
            population=population,
            shared=shared,
            scenario=scenario,
            scaling=scaling,
            metadata=metadata,
            weights=metadata.weights,
            groups=metadata.groups,
            observation=observation,
            copies=observations.count_copies(len(labeled), copy_links),
            repeats_by_chance=repeats_by_chance,
            audit=audit,
            encoder=encoder,
        )

    @property
    def shared_argument(self) -> Any:
        """The argument `shared` of `fit` for another estimator that gets the same rows: ids, "identical" or None."""
        return self.metadata.shared

    @property
    def unshared(self) -> Index:
        """Sorted positions of the rows of U that are not rows of P as well, whose class is therefore not known."""
        return np.setdiff1d(self.population, self.population[self.shared[:, 1]])

    @property
    def audit_column(self) -> Floats | None:
        """The argument `audit` of `fit` for another estimator: for each row 1 or 0, and NaN if it was not audited."""
        if self.audit is None:
            return None
        column = np.full(len(self.labeled), np.nan)
        column[self.unshared[self.audit.index]] = self.audit.positive
        return column

    @property
    def input_columns(self) -> tuple[int, tuple[str, ...] | None]:
        """Number and names of the columns as the user passed them, before encoding; None without names."""
        passed = self.table if self.encoder is None else self.encoder
        return passed.width, passed.columns

    @property
    def layout(self) -> SourceLayout:
        """The columns, scale and groups that are needed to read a target."""
        groups = KnownGroups() if self.groups is None else KnownGroups.from_rows(self.groups, self.observation)
        columns = Table("the fitted source", np.empty((0, self.table.width)), self.table.columns)
        return SourceLayout(columns, self.scaling, self.repeats_by_chance, groups, self.encoder)

    def without_rows(self) -> Source:
        """Return a copy for storing, without the rows, ids and audit; groups are named by observation numbers."""
        groups = None if self.groups is None else self.observation.astype(str)
        columns = Table("the fitted source", np.empty((0, self.table.width)), self.table.columns)
        # a shallow copy shares the arrays of P and U, which `replace` would compute again
        stored = copy(self)
        changes = {"table": columns, "audit": None, "metadata": NO_METADATA, "groups": groups}
        for name, value in {**changes, "rows": self.scaling.rows(columns.values)}.items():
            object.__setattr__(stored, name, value)
        return stored

    def design_effects(self, values_P: Floats, values_U: Floats) -> tuple[float, float]:
        """Return the design effects of groups on the mean of `values_P` over P and on that of `values_U` over U."""
        if self.is_iid:
            return 1.0, 1.0
        return self.P.design_effect(values_P), self.U.design_effect(values_U)

    @property
    def has_positive(self) -> Mask:
        """Whether each observation has a labelled row."""
        has_positive = np.zeros(int(self.observation.max()) + 1, dtype=bool)
        has_positive[self.observation[self.positive]] = True
        return has_positive

    def deal_folds(self, folds: int, rng: np.random.Generator) -> Folds:
        """Return the fold of each row, 0 to `folds` − 1; rows of one observation are in one fold.

        Observations with and without positives are spread evenly over the folds, and each fold has rows of P and of U.
        """
        has_positive = self.has_positive
        fold_of_observation = np.empty(len(has_positive), dtype=np.int16)
        for stratum in (has_positive, ~has_positive):
            members = rng.permutation(np.flatnonzero(stratum))
            fold_of_observation[members] = np.arange(len(members)) % folds
        fold = np.asarray(fold_of_observation[self.observation])
        for k in range(folds):
            if not (fold[self.positive] == k).any() or not (fold[self.population] == k).any():
                raise InputError(
                    f"{int(has_positive.sum())} positive and {int((~has_positive).sum())} other observations cannot "
                    f"be split into {folds} folds with both; add rows, or check which rows are shared."
                )
        return fold

    def warn_of_unstated_sharing(self) -> None:
        """Warn if most positives are also unlabelled rows although the user did not state it, or if none is as stated.

        Here rows are compared in single precision, so that copies that were rounded to seven digits or more are found.
        """
        if self.metadata.ids is not None:
            if not len(self.shared):
                warn("No id is in both source tables; check the id column, or leave shared out.", DuplicateRowsWarning)
            return
        if self.metadata.identical:
            if not len(self.shared):
                warn(
                    "No row is identical, in every digit, in both source tables. If rows were rounded or stored in "
                    "another precision, use an id column; otherwise leave shared out.",
                    DuplicateRowsWarning,
                )
            return
        m = len(self.positive)  # the positives come first, see `from_samples`
        with np.errstate(over="ignore"):  # numbers beyond single precision become infinite
            values = self.table.values.astype(np.float32)
        repeated = observations.common_rows(values[:m], values[m:])
        if repeated > m / 2:
            warn(
                f"{repeated} of {m} positive rows are also in the unlabeled table, to seven digits. If they are the "
                "same observations, pass shared='identical' or the name of an id column (--identical-rows, "
                "--id-column); otherwise the estimate and its interval are off.",
                DuplicateRowsWarning,
            )


@dataclass(frozen=True, eq=False)
class SourceReference:
    """What a later diagnosis of a target needs of a source besides the fit."""

    source: Source  # with its rows
    warnings: tuple[tuple[str, str], ...]  # class, one of `priorshift.errors`, and message of each warning of the fit

    @classmethod
    def from_fit(cls, source: Source, records: Sequence[WarningRecord]) -> SourceReference:
        """Keep a source with its rows as numbers, and the library's warnings during its fit."""
        warnings = []
        for category, message in records:
            if issubclass(category, FormatNotice):  # no reason to doubt an estimate
                continue
            names = [base.__name__ for base in category.__mro__ if base.__module__ == errors.__name__]
            warnings.append((names[0], message))
        return cls(replace(source, table=replace(source.table, native=None)), tuple(warnings))

    @property
    def records(self) -> list[WarningRecord]:
        """Category and message of each warning of the fit."""
        return [(getattr(errors, name), message) for name, message in self.warnings]


def _source_audit(classes: Floats, positive: Index, population: Index, shared: Pairs) -> Audit:
    """Return the audit of the rows of U that are not shared with P; refuse a 0 for a row that is labelled positive.

    `classes` has an entry for each row of the source: 1, 0, or NaN if it was not audited. `positive` and `population`
    are the rows of P and U, `shared` are pairs of positions in these two.
    """
    shared_rows = population[shared[:, 1]]
    for rows, reason in (
        (positive, "is labelled positive"),
        (shared_rows, "is the same observation as a labelled positive"),
    ):
        contradicting = rows[classes[rows] == 0]
        if len(contradicting):
            raise InputError(
                f"audit holds 0 in row {contradicting[0]} (counting from 0), which {reason}; correct one of the two."
            )
    return as_audit(classes[np.setdiff1d(population, shared_rows)], "the audit of unlabelled rows")
