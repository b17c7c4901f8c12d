"""The source with several labelled classes: the samples of the classes, their base, and which rows are one observation.

The base is the unlabelled sample, in which a rest that nobody labelled occurs as well. If every class is labelled and
there is no rest, the base is the last class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from priorshift.arrays import Floats, Folds, Index, Mask
from priorshift.errors import InputError
from priorshift.io import sample_size
from priorshift.io.labels import REST, ClassAudit, read_class_audit, read_class_labels
from priorshift.io.observations import count_copies, find_copies
from priorshift.io.readers import read_table
from priorshift.io.row_hashes import content_codes, count_distinct
from priorshift.io.row_metadata import RowMetadata, join_metadata
from priorshift.io.sample_size import RowMass
from priorshift.io.source_encoder import SourceEncoder
from priorshift.io.tables import Table, check_numbers
from priorshift.io.targets import target_name
from priorshift.problem import Sample, Source

__all__ = ["REST", "ClassSource", "check_class_names", "name_classes"]

_FEWEST = 2  # labelled classes; one is the problem of positives and unlabelled rows


def name_classes(classes: Mapping[Any, Any]) -> dict[str, Any]:
    """Return samples of labelled classes by the names of the classes as text; refuse names that cannot be used."""
    if not classes:
        raise InputError("positive has no class, but at least one is expected; pass {class: sample}.")
    names = [target_name(key) for key in classes]
    check_class_names(names)
    return dict(zip(names, classes.values(), strict=True))


def check_class_names(names: Sequence[str]) -> None:
    """Refuse empty and repeated names of labelled classes, and the name of all other classes."""
    if "" in names:
        raise InputError("the name of a labelled class is empty, or means no value as nan does; rename it.")
    if REST in names:
        raise InputError(f"a labelled class is called {REST!r}, which is the name of all others; rename it.")
    repeated = [name for k, name in enumerate(names) if name in names[:k]]
    if repeated:
        raise InputError(f"two labelled classes are called {repeated[0]!r}; give every class its own name.")


@dataclass(frozen=True)
class ClassSizes:
    """Names of the labelled classes of a source, whether there is a rest, and how many rows the samples have."""

    names: tuple[str, ...]
    has_rest: bool
    sizes: tuple[int, ...]  # of the samples, the base last; under "censoring" the base includes all labelled rows

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of all classes; with a rest, that is the last."""
        return (*self.names, REST) if self.has_rest else self.names


@dataclass(frozen=True, eq=False)
class ClassSource:
    """Samples of labelled classes and their base."""

    source: Source  # its labelled rows are those of all samples but the base
    names: tuple[str, ...]  # of the labelled classes, in the order of the samples
    has_rest: bool  # whether the base is a population with a rest; otherwise it is the last class
    rows: tuple[Index, ...]  # rows of the source in each sample, the base last
    samples: tuple[RowMass, ...]  # their masses
    known_class: Index  # number of the class of each row of the base that is also a labelled row; −1 for the others
    audit: ClassAudit | None = None  # of rows of the base, by their positions among those whose class is not known

    @classmethod
    def from_samples(
        cls, classes: Mapping[str, Sample], unlabeled: Sample | None, *, scenario: str, standardize: bool, rest: bool
    ) -> ClassSource:
        """Build the source from a table of each class and, if there is a rest, the unlabelled sample."""
        tables = [*classes.values()]
        if rest:
            if unlabeled is None:
                raise InputError("unlabeled is None, but a rest was not excluded; pass a sample, or rest=False.")
            tables.append(unlabeled)
        sizes = [len(sample.data) for sample in tables]
        metadata = join_metadata([sample.metadata for sample in tables], sizes)
        shown = [f"class {name!r}" for name in classes] + ["unlabeled"] * rest
        for (name, first), (other, second) in combinations(zip(shown, tables, strict=True), 2):
            if np.array_equal(first.data.values, second.data.values):
                raise InputError(f"{name} and {other} are the same {len(first.data)} rows; pass different samples.")
        base = tables[-1].data
        values = np.concatenate([sample.data.values for sample in tables])
        table = Table("the labelled and unlabelled rows", values, base.columns, origin=base.origin)
        sample_of_row = np.repeat(np.arange(len(tables)), sizes)
        return cls._build(table, sample_of_row, tuple(classes), rest, metadata, scenario, standardize)

    @classmethod
    def from_labels(
        cls,
        X: Any,
        y: Any,
        *,
        scenario: str,
        standardize: bool,
        rest: bool,
        unlabeled_label: Any = None,
        **metadata: Any,
    ) -> ClassSource:
        """Build the source from X, y and metadata as `fit` takes them, all with an entry for each row."""
        table = read_table(X, "X")
        if table.columns is None:
            table = check_numbers(table)
        code, names = read_class_labels(y, len(table), unlabeled_label=unlabeled_label, rest=rest)
        sample_of_row = np.where(code < 0, len(names), code)
        labeled = sample_of_row < (len(names) if rest else 0)  # without a rest, all rows decide the encoding
        encoder, table = SourceEncoder.fit(table, labeled)
        audit = metadata.pop("audit", None)
        row_metadata = RowMetadata.read(len(table), **metadata)
        if audit is not None:
            classes = (*names, REST) if rest else names
            row_metadata = replace(row_metadata, audit=read_class_audit(audit, len(table), "audit", classes))
        return cls._build(table, sample_of_row, names, rest, row_metadata, scenario, standardize, encoder)

    @classmethod
    def _build(
        cls,
        table: Table,
        sample_of_row: Index,
        names: tuple[str, ...],
        rest: bool,
        metadata: RowMetadata,
        scenario: str,
        standardize: bool,
        encoder: SourceEncoder | None = None,
    ) -> ClassSource:
        """Build the source from a table of all rows and the number of each row's sample, the base last."""
        count = len(names) + 1 if rest else len(names)
        if len(names) < _FEWEST:
            found = "there is 1 labelled class" if len(names) == 1 else f"there are {len(names)} labelled classes"
            raise InputError(f"{found}, but at least {_FEWEST} are expected.")
        check_class_names(names)
        if scenario == "censoring" and not rest:
            raise InputError("scenario='censoring' needs unlabelled rows, but rest is False; leave one of them out.")
        shown = [f"class {name!r}" for name in names] + ["unlabeled"] * rest
        members = [np.flatnonzero(sample_of_row == k) for k in range(count)]
        sample_size.check_sizes(**{name: len(rows) for name, rows in zip(shown, members, strict=True)})
        distinct = count_distinct(content_codes(table.values))
        if distinct < count:
            raise InputError(
                f"the {len(table)} labelled and unlabelled rows have {distinct} distinct values, with which {count} "
                "samples cannot be distinguished; add columns, or merge classes."
            )
        labeled = sample_of_row < count - 1
        every = None if rest else np.arange(len(labeled))  # the last class alone is no population to scale by
        plain = replace(metadata, audit=None)  # that of a source has one class
        source = Source.build(table, labeled, np.array([0, 1]), plain, scenario, standardize, encoder, every)
        rows = (*members[:-1], source.population)
        masses = []
        for name, sample in zip(shown, rows, strict=True):
            sample_size.check_observations(name, source.observation[sample])
            weights = None if source.weights is None else source.weights[sample]
            copies = source.copies[sample]
            if name != "unlabeled" and not source.repeats_by_chance:  # rows of another class are not its copies
                copies = count_copies(len(sample), find_copies(table.values[sample]))
            masses.append(RowMass.from_weights(weights, source.observation[sample], copies))
        known_class = np.full(len(source.population), -1)
        labeled_rows = source.positive[source.shared[:, 0]]
        known_class[source.shared[:, 1]] = sample_of_row[labeled_rows]
        audit = None
        if metadata.audit is not None:
            if not rest:
                raise InputError("an audit of the source needs unlabelled rows, but rest is False; leave it out.")
            _check_audit(metadata.audit, labeled, sample_of_row, source.population, known_class)
            column = metadata.audit[source.population[known_class < 0]]
            audit = ClassAudit.from_column(column, "the audit of unlabelled rows")
        return cls(source, names, rest, rows, tuple(masses), known_class, audit)

    @property
    def sizes(self) -> ClassSizes:
        """Names of the classes, and the number of rows of each sample."""
        return ClassSizes(self.names, self.has_rest, tuple(len(rows) for rows in self.rows))

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of all classes; with a rest, that is the last."""
        return self.sizes.classes

    def without_rows(self) -> ClassSource:
        """Return a copy for storing, without the rows and the audit."""
        return replace(self, source=self.source.without_rows(), audit=None)

    def binary(self, k: int) -> Source:
        """Return the source of class number `k` alone: its rows, and the unlabelled population."""
        source, labeled = self.source, np.zeros(len(self.source.labeled), dtype=bool)
        labeled[self.rows[k]] = True
        kept = np.flatnonzero(labeled | ~source.labeled)
        if source.scenario == "censoring":  # rows of the other classes belong to the population
            kept = np.arange(len(labeled))
        table, metadata = source.table.take(kept, f"class {self.names[k]!r} and unlabeled"), source.metadata.take(kept)
        is_standardized = bool(np.any(source.scaling.shift != 0))
        return Source.build(table, labeled[kept], np.array([0, 1]), metadata, source.scenario, is_standardized)

    def deal_folds(self, folds: int, rng: np.random.Generator) -> Folds:
        """Return the fold of each row; rows of one observation are in one fold, and each sample is spread evenly."""
        observation = self.source.observation
        first_sample = np.full(int(observation.max()) + 1, len(self.rows) - 1)  # of each observation
        for k in range(len(self.rows) - 2, -1, -1):
            first_sample[observation[self.rows[k]]] = k
        fold_of_observation = np.empty(len(first_sample), dtype=np.int16)
        for k in range(len(self.rows)):
            members = rng.permutation(np.flatnonzero(first_sample == k))
            fold_of_observation[members] = np.arange(len(members)) % folds
        return np.asarray(fold_of_observation[observation])

    def most_folds(self, folds: int) -> int:
        """Return the wanted number of folds, reduced to the number of observations of the smallest sample."""
        observations = [len(np.unique(self.source.observation[rows])) for rows in self.rows]
        return max(2, min(folds, *observations))


def _check_audit(audit: Floats, labeled: Mask, sample_of_row: Index, base: Index, known_class: Index) -> None:
    """Refuse an audit that contradicts the label of a row, or of a labelled row that is the same observation.

    `audit` and `sample_of_row` have the number of a class for each row; `base` are the rows of the base, and
    `known_class` the class of those that are also labelled rows, −1 for the others.
    """
    stated = np.where(labeled, sample_of_row, -1)
    stated[base] = np.maximum(stated[base], known_class)
    contradicting = np.flatnonzero((stated >= 0) & ~np.isnan(audit) & (audit != stated))
    if len(contradicting):
        raise InputError(
            f"audit holds another class than the label of row {contradicting[0]} (counting from 0), or of the labelled "
            "row that is the same observation; correct one of the two."
        )
