"""A model that scores rows: fitted to some rows of the source, it counts the rows of any sample in one pass."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.io.chunks import Chunks
from priorshift.io.files import Fields
from priorshift.io.observations import repeats_by_chance
from priorshift.io.parameters import check_settings
from priorshift.io.row_hashes import Codes, content_codes, fold_of, mostly_copies, place_codes
from priorshift.io.sample_size import check_sizes, warn_of_copies
from priorshift.io.tables import Table, check_dropped
from priorshift.problem import Sample, Source
from priorshift.scores import cross_fitting
from priorshift.scores.counts import ScoreCounts
from priorshift.scores.cross_fitting import FIT_ROWS, Ridge, has_large_ties
from priorshift.scores.gpu_counts import gpu_counts
from priorshift.scores.mixture import p_values
from priorshift.scores.scored_source import Preparation, ScoredSource, warn_if_swapped
from priorshift.sketch.container import Saveable, check_arrays
from priorshift.sketch.design import RowReader
from priorshift.source_prior.mixture_prior import MixturePrior
from priorshift.threads import map_in_threads, one_blas_thread

_ARRAY_NAMES = ("half", "phase", "twice", "constant", "seeds", "positive")  # attributes that a file stores as arrays
_LARGEST = 1e100  # largest absolute coefficient or score of a model


@dataclass(frozen=True)
class ScoreSettings:
    """Settings of a score model, as in :class:`WitnessShift`."""

    repeats: int = 5
    folds: int = 5
    use_km2: bool = True
    max_rows: int = 4000
    fit_rows: int = FIT_ROWS
    standardize: bool = True
    random_state: int | np.random.Generator | None = 0


@dataclass(frozen=True, eq=False)
class ScoreModel(Saveable):
    """A model of how much a row looks like a labelled positive, and of how it ranks among the positives.

    It is fitted to at most 20,000 positives and 20,000 unlabelled rows: more rows make an estimate hardly more precise
    (see the guide, "Any size"). :meth:`Histogram.from_sample` then scores any number of rows in one pass. The content
    of a row decides which of the five cross-fitted models scores it, so that a row is never scored by a model that was
    fitted to it.

    A saved model holds no row, but what was learnt from rows: means, spreads and levels of columns, coefficients, and
    the scores of the positives that it was fitted to.

    Examples
    --------
    >>> from priorshift import simulate
    >>> from priorshift.sketch import ScoreModel
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, shared=False, random_state=0)
    >>> print(ScoreModel.fit(s.positive, s.unlabeled, random_state=0))
    score model of 10 columns, fitted to 333 positive and 1667 unlabelled rows
    """

    KIND: ClassVar[str] = "score model"

    reader: RowReader  # rows to numbers
    prepare: Preparation  # numbers to what the models take
    # The models are ridge regressions, one for each fold of each repetition: Σ 2r/(1 + tan²((ω·x − φ)/2)) + constant.
    half: Floats  # ω/2, the same for all folds of a repetition; shape (repeats, columns, frequencies)
    phase: Floats  # φ/2, shape (repeats, folds, frequencies)
    twice: Floats  # 2r, shape (repeats, folds, frequencies)
    constant: Floats  # shape (repeats, folds)
    seeds: NDArray[np.int64]  # of the assignment of rows to folds, one for each repetition
    positive: Floats  # scores of the positives in each repetition, in increasing order; shape (repeats, positives)
    by_place: bool  # whether most rows are copies, so that a row's position decides its fold
    km2_prior: float  # KM2's estimate of the source prior; NaN where it was not computed
    unlabeled_rows: int  # number of unlabelled rows to which the model was fitted

    @classmethod
    def fit(cls, positive: Any, unlabeled: Any, *, drop: Sequence[str] = (), **settings: Any) -> ScoreModel:
        """Fit the model to a random subsample of the source.

        Parameters
        ----------
        positive, unlabeled : array-like, data frame, path, Chunks or iterable of tables
            Labelled positives, and a sample of the population, which fixes columns, encoding and scale.
        drop : sequence of str
            Columns that are not features.
        **settings : object
            `repeats`, `folds`, `max_rows`, `standardize` and `random_state` (default 0) as in :class:`WitnessShift`;
            `fit_rows`, the largest number of rows of each sample to fit to (default 20,000); `use_km2`, whether KM2
            estimates the source prior (default True), which is needed only where it is unknown.

        Returns
        -------
        ScoreModel
        """
        options = ScoreSettings(**settings)
        check_settings(vars(options))
        rng = np.random.default_rng(options.random_state)
        reader, P, U = _read_source(positive, unlabeled, [drop] if isinstance(drop, str) else list(drop), options, rng)
        rows = np.concatenate([P, U])
        source = Source.from_samples(
            Sample(Table("positive", P)), Sample(Table("unlabeled", U)), scenario="case-control", standardize=False
        )
        # the reader has left out constant columns
        prepare = Preparation.fit(U, used=np.ones(rows.shape[1], dtype=bool), encoded=reader.encoder is not None)
        by_place, codes = _fold_codes(P, U)
        warn_of_streamed_copies(source)
        seeds = rng.integers(2**53, size=options.repeats)
        next_seed = iter(seeds.tolist())

        def deal(folds: int) -> Any:
            """Assign rows of P and U to folds, by the seed of the next repetition; `cross_fit` calls it for each."""
            return fold_of(codes, folds, next(next_seed))

        with one_blas_thread():
            prepared = prepare(rows, single=not has_large_ties(content_codes(P)))
            repetitions = cross_fitting.cross_fit(
                prepared, source, None, options.repeats, options.folds, rng, fit_rows=options.fit_rows, deal=deal
            )
            scored = ScoredSource.from_repetitions(source, prepare, repetitions, seed=0)
            km2 = MixturePrior(max_rows=options.max_rows).fit_km2(source, rng) if options.use_km2 else float("nan")
        warn_if_swapped(scored)
        ridges: list[list[Ridge]] = [list(repetition.models) for repetition in repetitions]  # type: ignore[arg-type]
        return cls(
            reader,
            prepare,
            half=np.stack([models[0].half for models in ridges]),
            phase=np.array([[model.phase for model in models] for models in ridges]),
            twice=np.array([[model.twice for model in models] for models in ridges]),
            constant=np.array([[model.constant for model in models] for models in ridges]),
            seeds=seeds,
            positive=np.sort([repetition.positive.astype(np.float64) for repetition in repetitions], axis=1),
            by_place=by_place,
            km2_prior=km2,
            unlabeled_rows=len(U),
        )

    @property
    def folds(self) -> int:
        """Number of models in each repetition."""
        return self.phase.shape[1]

    @property
    def ranked(self) -> int:
        """Number of positives among which other rows are ranked."""
        return self.positive.shape[1]

    @cached_property
    def _is_single(self) -> bool:
        """Whether rows are scored in single precision."""
        return not has_large_ties(self.positive[0])

    @cached_property
    def fingerprint(self) -> str:
        """Hash that two models share only if they rank every row in the same way."""
        scalars = self.reader.fingerprint, float(self.prepare.spread), float(self.prepare.far), bool(self.by_place)
        digest = hashlib.sha256(repr(scalars).encode())
        for name in _ARRAY_NAMES:
            digest.update(np.ascontiguousarray(getattr(self, name)).tobytes())
        return digest.hexdigest()

    def p_values(self, rows: Floats, start: int = 0) -> Floats:
        """Return the p-values of rows, ranks of their scores among those of the positives, of shape (repeats, rows).

        `rows` are numbers as `reader` returns them; `start` is the position of the first one in its sample.
        """
        # numbers that decide the fold of a row: equal for equal rows, or by position
        codes: Codes = place_codes(start, len(rows)) if self.by_place else content_codes(rows)
        prepared = self.prepare(rows, single=self._is_single)

        def rank(k: int) -> Floats:
            """Compute the p-values of repetition k; a row is scored by the model that was fitted without its fold."""
            fold = fold_of(codes, self.folds, int(self.seeds[k]))
            scores = cross_fitting.scores_by_fold(prepared, fold, self._models[k])
            return p_values(self.positive[k], scores, in_order=True)

        with one_blas_thread():
            return np.stack(map_in_threads(rank, range(len(self.seeds)), len(rows)))

    def count(self, parts: Sequence[NDArray[Any]], start: int = 0, device: str = "cpu") -> ScoreCounts:
        """Count rows by their p-values.

        `parts` are consecutive rows as `reader.read` returns them; `start` is the position of the first in its sample.
        """
        if device == "cpu":
            rows = np.concatenate([self.reader.scale(part) for part in parts])
            return ScoreCounts.from_p_values(self.p_values(rows, start), self.ranked)
        codes = place_codes(start, sum(map(len, parts))) if self.by_place else None
        scale, models = (self.reader.shift, self.reader.factor), (self.half, self.phase, self.twice, self.constant)
        return gpu_counts(
            parts, scale, codes, self.prepare, self.seeds, models, self.positive, single=self._is_single, device=device
        )

    @cached_property
    def _models(self) -> list[list[Ridge]]:
        """Ridge regressions by repetition and fold; `beta` is empty, since it is not needed to score rows."""
        beta = np.empty(0)
        return [
            [
                Ridge(beta, self.half[k], self.phase[k, fold], self.twice[k, fold], float(self.constant[k, fold]))
                for fold in range(self.folds)
            ]
            for k in range(len(self.seeds))
        ]

    def to_contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the header, JSON values by key, and the arrays by name, of the file that `save` writes."""
        header = {
            "rows": self.reader.to_header(),
            "spread": self.prepare.spread,
            "far": self.prepare.far,
            "by_place": self.by_place,
            "km2_prior": self.km2_prior if np.isfinite(self.km2_prior) else None,
            "unlabeled_rows": self.unlabeled_rows,
        }
        return header, {name: getattr(self, name) for name in _ARRAY_NAMES}

    @classmethod
    def from_contents(cls, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build a model from the header and the arrays of a file, and check them."""
        fields = Fields(header, "rows spread far by_place km2_prior unlabeled_rows", "the score model")
        reader = RowReader.from_header(header["rows"])
        _check_arrays(arrays, reader.n_features, fields)
        prepare = Preparation(
            np.ones(reader.n_features, dtype=bool), fields.number("spread", 1e-300), fields.number("far", 1e-300, 1e200)
        )
        return cls(
            reader,
            prepare,
            **{name: arrays[name] for name in _ARRAY_NAMES},
            by_place=fields.flag("by_place"),
            km2_prior=float("nan") if fields.is_none("km2_prior") else fields.number("km2_prior", 0.0, 1.0),
            unlabeled_rows=fields.whole("unlabeled_rows", 2),
        )

    def __str__(self) -> str:
        """Describe the model in one line."""
        return (
            f"score model of {self.reader.width} columns, fitted to {self.ranked} positive and {self.unlabeled_rows} "
            "unlabelled rows"
        )


def warn_of_streamed_copies(source: Source) -> None:
    """Warn of copies among the rows of a subsample: in a stream they are not recognised."""
    advice = "when streaming each copy counts, so the interval is too narrow. Leave copies out, or pass stream=False."
    warn_of_copies(source.copies, "rows that the score is fitted to", advice)


def _read_source(
    positive: Any, unlabeled: Any, drop: list[str], settings: ScoreSettings, rng: np.random.Generator
) -> tuple[RowReader, Floats, Floats]:
    """Draw at most `fit_rows` rows of each sample, and fit a reader to the unlabelled ones.

    Returns the reader, and the rows of P and of U as numbers, each of shape (rows, features).
    """
    U_table, P_table = (
        Chunks.from_source(sample, name, drop=drop).sample(settings.fit_rows, rng).without(drop)
        for name, sample in (("unlabeled", unlabeled), ("positive", positive))
    )
    check_dropped([U_table, P_table], drop)
    reader = replace(RowReader.fit(U_table, standardize=settings.standardize), drop=tuple(drop))
    U, P = reader(U_table, U_table.name), reader(P_table, P_table.name)
    check_sizes(unlabeled=len(U), positive=len(P))
    return reader, P, U


def _fold_codes(P: Floats, U: Floats) -> tuple[bool, Codes]:
    """Return whether the position of a row decides its fold, and for each row of P, then of U, a code that decides it.

    Copies have the same code and so the same fold, since a model would otherwise score rows that it was fitted to. But
    where most rows have copies, and by chance (as with a few yes-or-no columns), the position of a row decides.
    """
    codes = content_codes(np.concatenate([P, U]))  # equal rows have equal codes
    if mostly_copies(codes) and repeats_by_chance(U):
        return True, np.concatenate([place_codes(0, len(P)), place_codes(0, len(U))])
    return False, codes


def _check_arrays(arrays: Mapping[str, NDArray[Any]], n_features: int, fields: Fields) -> None:
    """Raise InputError for arrays in a file that no fitted model can have."""
    if "phase" not in arrays or "positive" not in arrays or arrays["phase"].ndim != 3 or arrays["positive"].ndim != 2:
        raise fields.refused("it has no models or no positives")
    (repeats, folds, frequencies), positives = arrays["phase"].shape, arrays["positive"].shape[1]
    if not repeats or not frequencies or folds < 2 or positives < 2:
        raise fields.refused("it has fewer than two folds or positives")
    shapes: dict[str, tuple[int, ...]] = {
        "half": (repeats, n_features, frequencies),
        "phase": (repeats, folds, frequencies),
        "twice": (repeats, folds, frequencies),
        "constant": (repeats, folds),
        "seeds": (repeats,),
        "positive": (repeats, positives),
    }
    check_arrays(arrays, shapes, fields, integers=["seeds"])
    if (np.diff(arrays["positive"], axis=1) < 0).any() or (arrays["seeds"] < 0).any() or (arrays["twice"] < 0).any():
        raise fields.refused("its scores are not in order")
    if any(np.abs(arrays[name]).max() > _LARGEST for name in _ARRAY_NAMES if name != "seeds"):
        raise fields.refused("its coefficients are larger than any that can be fitted")
