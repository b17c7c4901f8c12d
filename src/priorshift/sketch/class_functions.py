"""Functions of rows for several classes: fitted to some rows, their moments summarise any number of rows in one pass.

Every vector of functions h determines the shares of the classes, and the efficient one depends on density ratios of the
classes and on the coefficients b of the target (:mod:`priorshift.scores.class_scores`). Both are estimated here from a
subsample of each sample. An error of either costs precision, not validity, so that one pass with fixed functions is
enough. There are as many functions as classes: counts on a grid would grow exponentially with them, moments do not.

A row that the scores were fitted to is scored by the models that have not seen it. It is recognised by a hash of its
values, and any other row is assigned to a model by this hash. So neither the order of rows nor their partition matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.class_source import ClassSource
from priorshift.embedding.moments import FeatureMoments, Weighted
from priorshift.errors import DuplicateRowsWarning
from priorshift.inference.mixture_moments import parts_of_samples
from priorshift.io.chunks import Chunks
from priorshift.io.row_hashes import Codes, content_codes, fold_of
from priorshift.io.row_metadata import RowMetadata
from priorshift.io.sample_size import check_sizes, effective_size, weights_of_part
from priorshift.io.scaling import Scaling
from priorshift.io.tables import Table, join_tables
from priorshift.methods.multiclass import MulticlassShift
from priorshift.problem import Sample
from priorshift.scores.class_scores import ClassScores, efficient_functions, rows_of_each_sample
from priorshift.sketch.design import RowReader, weighted_rows
from priorshift.sketch.score_model import warn_of_streamed_copies
from priorshift.threads import map_in_order, one_blas_thread
from priorshift.warning_records import record_warnings


@dataclass(frozen=True, eq=False)
class ClassFunctions:
    """Functions h of rows, one for each sample but the base, which do not change any more."""

    reader: RowReader  # rows to numbers
    scaling: Scaling  # of these numbers
    scores: ClassScores
    codes: Codes  # hashes of the rows that the scores were fitted to, in increasing order
    observation: Index  # number of the observation of each of these rows
    coefficients: Floats  # b for which the functions are efficient
    sizes: Floats  # of the samples and, last, of the target, for which they are efficient

    @classmethod
    def fit(
        cls,
        estimator: MulticlassShift,
        names: Sequence[str],
        streams: Mapping[str, Chunks],
        weights_of: Mapping[str, str | None],
        drop: Sequence[str],
    ) -> ClassFunctions:
        """Fit an estimator to some rows of each sample, and fix the functions.

        `names` are those of the classes. `streams` are the samples by their names in messages: of the classes, with a
        rest the unlabelled sample, and last the target. `weights_of` maps the latter names to columns of weights, and
        `drop` are columns to leave out.
        """
        rng = np.random.default_rng(estimator.random_state)
        count = rows_of_each_sample(estimator.fit_rows, len(streams) - 1)
        *drawn, of_target = [
            _Subsample.draw(chunks, count, weights_of.get(name), drop, rng) for name, chunks in streams.items()
        ]
        tables = [subsample.table for subsample in drawn]
        base = tables[-1] if estimator.rest else join_tables(tables, "the labelled classes")
        reader = replace(RowReader.fit(base, standardize=estimator.standardize), drop=tuple(drop))
        contains = parts_of_samples(len(names), rest=estimator.rest, censoring=estimator.scenario == "censoring")
        sizes = contains @ np.array([subsample.size for subsample in drawn])
        if estimator.scenario == "censoring":  # labelled and unlabelled rows together are the population
            drawn = [subsample.represent_all() for subsample in drawn]
        source = _fit_to_subsamples(estimator, names, [subsample.read(reader) for subsample in drawn])
        sample = of_target.read(reader)
        target = replace(source.source.layout.read_rows(sample.data), weights=sample.metadata.weights)
        # the number of rows of an iterator is not known; a wrong one costs precision
        target_size = sizes.max() if of_target.rows is None else of_target.size
        codes = content_codes(source.source.table.values)
        order = np.argsort(codes, kind="stable")
        return cls(
            reader=reader,
            scaling=source.source.scaling,
            scores=estimator.class_scores,
            codes=codes[order],
            observation=source.source.observation[order],
            coefficients=estimator.mixture_of(target).coefficients,
            sizes=np.append(sizes, target_size),
        )

    def __call__(self, rows: Floats) -> Floats:
        """Return h at rows, as `reader` returns them, shape (rows, functions)."""
        codes = content_codes(rows)
        place = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        is_fitted = self.codes[place] == codes
        observation = self.observation[place[is_fitted]]
        folds = []
        for k, (models, fold_of_observation) in enumerate(
            zip(self.scores.models, self.scores.fold_of_observation, strict=True)
        ):
            fold = fold_of(codes, len(models), self.scores.seed + k)
            fold[is_fitted] = fold_of_observation[observation]
            folds.append(fold)
        ratios = self.scores.ratios_by_fold(self.scores.prepare(self.scaling.rows(rows)), folds)
        return efficient_functions(ratios, self.coefficients, self.sizes)

    @property
    def noise(self) -> Floats:
        """Covariance of the noise of the functions, which were learnt from rows."""
        return self.scores.noise(self.coefficients, self.sizes)

    def moments(self, chunks: Chunks, weights: str | None = None) -> FeatureMoments:
        """Compute the moments of h over the rows of a sample, in one pass and constant memory."""

        def summarize(block: Weighted) -> FeatureMoments:
            """Compute the moments of one chunk of rows."""
            rows, row_weights = block
            return FeatureMoments.from_values(self(rows), row_weights)

        with one_blas_thread():
            return reduce(add, map_in_order(summarize, weighted_rows(chunks, self.reader, weights)))


@dataclass(frozen=True, eq=False)
class _Subsample:
    """Some rows of a sample, drawn at random."""

    name: str  # of the sample
    table: Table
    weights: Floats | None  # of the rows; None for equal weights
    rows: int | None  # of the whole sample; None if it is not known

    @classmethod
    def draw(
        cls, chunks: Chunks, count: int, weights: str | None, drop: Sequence[str], rng: np.random.Generator
    ) -> _Subsample:
        """Draw at most `count` rows; `weights` is the column of their weights."""
        table = chunks.sample(count, rng).without(drop)
        check_sizes(**{chunks.name: len(table)})
        values = (
            None if weights is None else weights_of_part(table.extra[weights], len(table), f"weights of {chunks.name}")
        )
        rows = chunks.rows
        if rows is None and chunks.can_repeat:
            rows = sum(map(len, chunks))
        return cls(chunks.name, table, values, rows)

    @property
    def size(self) -> float:
        """Effective size of the whole sample, if its weights are as uneven as those of the drawn rows."""
        share = 1.0 if self.weights is None else effective_size(self.weights) / len(self.weights)
        return share * (self.rows or len(self.table))

    def represent_all(self) -> _Subsample:
        """Return the subsample with weights by which its rows stand for all rows of the sample."""
        drawn = len(self.table)
        weights = np.ones(drawn) if self.weights is None else self.weights
        return replace(self, weights=weights * (self.rows or drawn) / drawn)

    def read(self, reader: RowReader) -> Sample:
        """Convert the rows to numbers."""
        numbers = Table(self.name, reader(self.table, self.name), origin=reader.origin)
        return Sample(numbers, metadata=RowMetadata(weights=self.weights))


def _fit_to_subsamples(estimator: MulticlassShift, names: Sequence[str], samples: Sequence[Sample]) -> ClassSource:
    """Fit an estimator to subsamples of the classes and, with a rest, of the source population; return the source."""
    source = ClassSource.from_samples(
        dict(zip(names, samples, strict=False)),
        samples[-1] if estimator.rest else None,
        scenario=estimator.scenario,
        standardize=False,  # the reader has scaled the columns
        rest=estimator.rest,
    )
    with record_warnings(DuplicateRowsWarning, show=False):
        estimator.fit_classes(source)
    warn_of_streamed_copies(source.source)
    return source
