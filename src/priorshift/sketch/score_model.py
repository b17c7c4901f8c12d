"""The score's model: fitted where the source is, it travels to where rows are, and counts of p-values come back."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.io.chunks import Chunks
from priorshift.io.header_fields import Fields
from priorshift.io.observations import repeats_by_chance
from priorshift.io.parameters import check_settings
from priorshift.io.tables import check_dropped
from priorshift.problem import Source, check_sizes, check_source_apart, warn_of_copies
from priorshift.scores.cross_fitting import (
    FIT_ROWS,
    Codes,
    Ridge,
    content_codes,
    cross_fit,
    fold_of,
    mostly_copies,
    place_codes,
    scores_by_fold,
)
from priorshift.scores.mixture import p_values
from priorshift.scores.scored_source import Preparation, ScoredSource, warn_if_swapped
from priorshift.sketch import container
from priorshift.sketch.row_reader import RowReader, without
from priorshift.source_prior.mixture_prior import MixturePrior
from priorshift.threads import map_in_threads, one_blas_thread

KIND = "score model"
_LARGEST = 1e100  # of the coefficients and scores of a model
_GRID = 2.0**36  # scores are rounded, so that a row has one score however it is read


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """How much a row looks like a labelled positive, and how it ranks among the positives.

    It is fitted to at most 20,000 positives and 20,000 unlabelled rows: its two hundred coefficients are then known so
    well that more rows make the estimate hardly more precise (see the guide, "Any size"). Any number of rows is then
    scored in one pass by :meth:`Histogram.of`. A row is dealt to one of five models by what it holds, to the one that
    was fitted without rows like it.

    A file of it holds no row, but what was learnt from rows: means, spreads and levels of columns, coefficients, and
    the scores of the positives that it was fitted to.

    Attributes
    ----------
    reader : RowReader
        How rows become numbers.
    prepare : Preparation
        And those what the models take.
    half : ndarray of shape (repeats, columns, frequencies)
        Of each repetition, ω/2 of :class:`priorshift.scores.cross_fitting.Ridge`.
    phase, twice : ndarray of shape (repeats, folds, frequencies)
        Of each model.
    constant : ndarray of shape (repeats, folds)
        Of each model.
    seeds : ndarray of shape (repeats,)
        What rows are dealt to folds by.
    positive : ndarray of shape (repeats, positives)
        Scores of the positives that others are ranked among.
    by_place : bool
        Whether most rows are copies, and are dealt by their place.
    km2_prior : float
        What KM2 says of the source prior; NaN where it was not asked.
    unlabeled_rows : int
        That it was fitted to.

    Examples
    --------
    >>> from priorshift import simulate
    >>> from priorshift.sketch import Histogram, ScoreModel
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, shared=False, random_state=0)
    >>> model = ScoreModel.fit(s.positive, s.unlabeled, random_state=0)
    >>> print(model)
    score model of 10 columns, fitted to 333 positive and 1667 unlabelled rows
    """

    reader: RowReader
    prepare: Preparation
    half: Floats
    phase: Floats
    twice: Floats
    constant: Floats
    seeds: NDArray[np.int64]
    positive: Floats
    by_place: bool
    km2_prior: float
    unlabeled_rows: int

    @classmethod
    def fit(
        cls,
        positive: Any,
        unlabeled: Any,
        *,
        repeats: int = 5,
        folds: int = 5,
        use_km2: bool = True,
        max_rows: int = 4000,
        fit_rows: int = FIT_ROWS,
        drop: Sequence[str] = (),
        standardize: bool = True,
        random_state: int | np.random.Generator | None = 0,
    ) -> ScoreModel:
        """Fit the model to a sample of rows of the source.

        Parameters
        ----------
        positive, unlabeled : array-like, data frame, path, Chunks or iterable of tables
            Labelled positives, and a sample of the population; the second one decides columns, encoding and scale.
        repeats, folds : int
            Of the cross-fitting.
        use_km2 : bool
            Whether KM2 is asked for the source prior, which is needed where nobody knows it.
        max_rows : int
            KM2 is asked of at most so many rows.
        fit_rows : int
            Of each of the two samples that the model is fitted to.
        drop : sequence of str
            Columns that are not features.
        standardize : bool
            Scale every column by the mean and spread of the unlabelled rows.
        random_state : int, Generator or None
            Decides which rows it is fitted to, folds and random features.

        Returns
        -------
        ScoreModel
        """
        settings = {"repeats": repeats, "folds": folds, "max_rows": max_rows, "fit_rows": fit_rows, "use_km2": use_km2,
                    "standardize": standardize, "random_state": random_state}  # fmt: skip
        check_settings(settings)
        drop = [drop] if isinstance(drop, str) else list(drop)
        rng = np.random.default_rng(random_state)
        tables = [
            without(Chunks.of(sample, name, drop=drop).sample(fit_rows, rng), drop)
            for sample, name in ((unlabeled, "unlabeled"), (positive, "positive"))
        ]
        check_dropped(tables, drop)
        reader = RowReader.of(tables[0], standardize=standardize).dropping(drop)
        of_U, of_P = (reader(table, table.name) for table in tables)
        check_sizes(unlabeled=len(of_U), positive=len(of_P))
        check_source_apart(of_P, of_U)
        rows = np.concatenate([of_P, of_U])
        source = Source.read(
            rows, np.repeat([1, 0], [len(of_P), len(of_U)]), None, scenario="case-control", standardize=False
        )
        every = np.ones(rows.shape[1], dtype=bool)  # columns without spread are left out by the reader
        prepare = Preparation.from_population(of_U, used=every, encoded=reader.encoder is not None)
        codes = content_codes(rows)
        # copies of rows that do not repeat by chance must stay together: a model would know what it scores
        by_place = mostly_copies(codes) and repeats_by_chance(of_U)
        warn_of_copies(
            source.copies,
            "rows that the score is fitted to",
            "in batches each copy counts, so that the interval is too narrow. Leave copies out, or pass tables that "
            "fit into memory with stream=False.",
        )
        if by_place:
            codes = np.concatenate([place_codes(0, len(of_P)), place_codes(0, len(of_U))])
        seeds = rng.integers(2**53, size=repeats)
        dealt = iter(seeds.tolist())
        with one_blas_thread():
            repetitions = cross_fit(
                prepare(rows),
                source,
                None,
                repeats,
                folds,
                rng,
                fit_rows=fit_rows,
                deal=lambda k: fold_of(codes, k, next(dealt)),
            )
            scored = ScoredSource.from_repetitions(source, prepare, repetitions, seed=0)
            km2 = MixturePrior(max_rows=max_rows).fit_km2(source, rng) if use_km2 else float("nan")
        warn_if_swapped(scored)
        ridges: list[list[Ridge]] = [list(one.models) for one in repetitions]  # type: ignore[arg-type]
        return cls(
            reader,
            prepare,
            np.stack([models[0].half for models in ridges]),
            np.array([[model.phase for model in models] for models in ridges]),
            np.array([[model.twice for model in models] for models in ridges]),
            np.array([[model.constant for model in models] for models in ridges]),
            seeds,
            np.sort(_rounded(np.stack([one.positive for one in repetitions])), axis=1),
            by_place,
            km2,
            len(of_U),
        )

    @property
    def folds(self) -> int:  # numpydoc ignore=RT01
        """Models of each repetition."""
        return self.phase.shape[1]

    @property
    def ranked(self) -> int:  # numpydoc ignore=RT01
        """Positives that others are ranked among."""
        return self.positive.shape[1]

    @cached_property
    def fingerprint(self) -> str:  # numpydoc ignore=RT01
        """A text that two models share only if they rank every row alike."""
        words = self.reader.fingerprint, float(self.prepare.spread), float(self.prepare.far), bool(self.by_place)
        found = hashlib.sha256(repr(words).encode())
        for array in self._arrays().values():
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def p_values(self, rows: Floats, start: int = 0, device: str = "cpu") -> Floats:
        """Rank rows among the positives.

        Parameters
        ----------
        rows : ndarray of shape (rows, features)
            As the reader gives them.
        start : int
            The place of the first one in its sample.
        device : str
            Where they are scored.

        Returns
        -------
        ndarray of shape (repeats, rows)
            Uniform for positives, small for negatives.
        """
        codes: Codes = place_codes(start, len(rows)) if self.by_place else content_codes(rows)
        prepared = self.prepare(rows)

        def _ranks(k: int) -> Floats:
            fold = fold_of(codes, self.folds, int(self.seeds[k]))
            scores = scores_by_fold(prepared, fold, self._models[k], device)
            return p_values(self.positive[k], _rounded(scores), in_order=True)

        with one_blas_thread():
            return np.stack(map_in_threads(_ranks, range(len(self.seeds)), len(rows)))

    @cached_property
    def _models(self) -> list[list[Ridge]]:
        return [
            [Ridge(np.empty(0), half, *model) for model in zip(phase, twice, constant.tolist(), strict=True)]
            for half, phase, twice, constant in zip(self.half, self.phase, self.twice, self.constant, strict=True)
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it into a file, without code or rows.

        Parameters
        ----------
        path : str or path
            Of the file.
        """
        header = {
            "rows": self.reader.to_header(),
            "spread": self.prepare.spread,
            "far": self.prepare.far,
            "by_place": self.by_place,
            "km2_prior": self.km2_prior if np.isfinite(self.km2_prior) else None,
            "unlabeled_rows": self.unlabeled_rows,
        }
        container.write(path, KIND, header, self._arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read it from a file, perhaps of someone else; nothing in it is run, and all of it is checked.

        Parameters
        ----------
        path : str or path
            Of the file.

        Returns
        -------
        ScoreModel
        """
        return container.load(path, {KIND: cls.from_contents})

    @classmethod
    def from_contents(cls, contents: container.Contents) -> Self:
        """Make it of what a file holds.

        Parameters
        ----------
        contents : Contents
            As the container read them.

        Returns
        -------
        ScoreModel
        """
        fields = Fields(contents.header, "rows spread far by_place km2_prior unlabeled_rows", "the score model")
        reader = RowReader.from_header(contents.header["rows"])
        names = ("half", "phase", "twice", "constant", "seeds", "positive")
        if tuple(contents.arrays) != names:
            raise fields.refused(f"it has {list(contents.arrays)} where {list(names)} is expected")
        half, phase, twice, constant, seeds, positive = (contents.arrays[name] for name in names)
        if phase.ndim != 3 or phase.shape[1] < 2 or positive.ndim != 2 or positive.shape[1] < 2:
            raise fields.refused("it has fewer than two folds or positives")
        repeats, folds, frequencies = phase.shape
        expected = {
            "half": (repeats, reader.features, frequencies),
            "phase": (repeats, folds, frequencies),
            "twice": (repeats, folds, frequencies),
            "constant": (repeats, folds),
            "seeds": (repeats,),
            "positive": (repeats, positive.shape[1]),
        }
        for name, shape in expected.items():
            kind = "i" if name == "seeds" else "f"
            if contents.arrays[name].shape != shape or contents.arrays[name].dtype.kind != kind or 0 in shape:
                raise fields.refused(f"its {name} has the shape {contents.arrays[name].shape}, not {shape}")
        if (np.diff(positive, axis=1) < 0).any() or (seeds < 0).any() or (twice < 0).any():
            raise fields.refused("its scores are not in order")
        if any(np.abs(array).max() > _LARGEST for array in (half, phase, twice, constant, positive)):
            raise fields.refused("its coefficients are larger than any that were learnt")
        prepare = Preparation(
            np.ones(reader.features, dtype=bool), fields.number("spread", 1e-300), fields.number("far", 1e-300, 1e200)
        )
        km2 = float("nan") if fields.is_none("km2_prior") else fields.number("km2_prior", 0.0, 1.0)
        rows = fields.whole("unlabeled_rows", 2)
        return cls(reader, prepare, half, phase, twice, constant, seeds, positive, fields.flag("by_place"), km2, rows)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        names = ("half", "phase", "twice", "constant", "seeds", "positive")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        return (
            f"score model of {self.reader.width} columns, fitted to {self.ranked} positive and {self.unlabeled_rows} "
            "unlabelled rows"
        )


def _rounded(scores: Floats) -> Floats:
    return np.asarray(np.round(scores * _GRID) / _GRID)
