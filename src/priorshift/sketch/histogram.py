"""A sample as counts of its p-values: what the default method keeps of it, however many rows it has."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.io.chunks import Chunks
from priorshift.io.header_fields import Fields
from priorshift.progress import RowProgress
from priorshift.scores import mixture
from priorshift.scores.counts import GROUPS, ScoreCounts, SourceCounts
from priorshift.scores.cross_fitting import choose_score_device
from priorshift.scores.posterior import posterior_levels
from priorshift.sketch import container, private
from priorshift.sketch.score_model import ScoreModel
from priorshift.threads import map_in_order

KIND = "histogram"
_TOGETHER = 4096  # rows at least that are counted at a time, unless there are no more
_FINGERPRINT = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of the p-values of a sample, by a :class:`ScoreModel`.

    Three of them, of labelled positives, unlabelled rows and a target, are all that :func:`priorshift.estimate_prior`
    needs for its default method, and give the interval that the rows would. Counts add up: those of two parts are those
    of the whole, in any order. (Where most rows are copies by chance, as of a few yes-or-no columns, the place of a row
    decides which of the five models scores it: another order gives other counts, as another seed would.)

    A file of it holds no row. It tells how many rows of the sample look how much like the positives of the model; one
    who knows all rows but one could tell from it how that one ranks. :meth:`release` adds noise against that.

    Attributes
    ----------
    counted : ScoreCounts
        The counts.
    model : str
        The fingerprint of the model.
    ranked, folds : int
        Positives that the model ranks rows among, and its models.
    km2_prior : float
        What KM2 said where the model was fitted.
    fitted : int
        Unlabelled rows that the model was fitted to.
    epsilon, delta : float or None
        How private it is; None where it is not.

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift.sketch import Histogram, ScoreModel
    >>> s = ps.simulate.gaussian(source_prior=0.2, target_prior=0.6, shared=False, random_state=0)
    >>> model = ScoreModel.fit(s.positive, s.unlabeled, random_state=0)
    >>> P, U, T = (Histogram.of(rows, like=model) for rows in (s.positive, s.unlabeled, s.target))
    >>> print(ps.estimate_prior(P, U, T, source_prior=0.2))
    target prior 0.601, 95% interval 0.571 to 0.631 (Witness, source prior 0.2)
    >>> len(T.merge(U)) == len(T) + len(U)
    True
    """

    counted: ScoreCounts
    model: str
    ranked: int
    folds: int
    km2_prior: float
    fitted: int
    epsilon: float | None = None
    delta: float | None = None

    @classmethod
    def of(cls, sample: Any, *, like: ScoreModel, device: str = "auto", start: int = 0) -> Histogram:
        """Count the rows of a sample, in one pass and constant memory.

        Parameters
        ----------
        sample : array-like, data frame, path, Chunks or iterable of tables
            With the columns of the model.
        like : ScoreModel
            What ranks rows.
        device : str
            Where rows are scored, as in :class:`WitnessShift`.
        start : int
            The place of the first row, where these are a part of a sample and others come before.

        Returns
        -------
        Histogram
        """
        return deque(cls.growing(sample, like=like, device=device, start=start), maxlen=1)[0]

    @classmethod
    def growing(
        cls,
        sample: Any,
        *,
        like: ScoreModel,
        device: str = "auto",
        start: int = 0,
        after: Histogram | None = None,
    ) -> Iterator[Histogram]:
        """Count the rows of a sample, batch by batch.

        Parameters
        ----------
        sample : array-like, data frame, path, Chunks or iterable of tables
            As in `of`.
        like : ScoreModel
            What ranks rows.
        device : str
            As in `of`.
        start : int
            As in `of`.
        after : Histogram or None
            Of the first rows of the sample, as it was given before; it goes on from there.

        Yields
        ------
        Histogram
            Of all rows so far.
        """
        if not isinstance(like, ScoreModel):
            raise InputError(f"like is {type(like).__name__}, but a histogram is made by a ScoreModel; pass one.")
        batches = Chunks.of(sample, "sample", drop=like.reader.drop)
        chosen = choose_score_device(device, batches.rows or 0)
        made = None if after is None else after.counted
        with RowProgress("counting", batches.rows) as more:
            more(0 if made is None else made.rows)
            parts = _placed(batches, like, start, 0 if made is None else made.rows)
            for found in map_in_order(lambda part: _counted(like, chosen, *part), parts):
                more(found.rows)
                made = found if made is None else made.merge(found)
                yield cls(made, like.fingerprint, like.ranked, like.folds, like.km2_prior, like.unlabeled_rows)

    def __len__(self) -> int:
        return self.counted.rows

    @property
    def made_by(self) -> tuple[str, int, int, int]:
        """What two histograms share that were made by one model.

        Returns
        -------
        model : str
        ranked, folds, repeats : int
        """
        return self.model, self.ranked, self.folds, len(self.counted.counts)

    def __str__(self) -> str:
        said = private.said_of(self.epsilon, self.delta)
        return f"histogram of {len(self)} rows by a score model of {self.ranked} positives{said}"

    def merge(self, other: Histogram) -> Histogram:
        """Add the rows of another part of the sample.

        Parameters
        ----------
        other : Histogram
            By the same model.

        Returns
        -------
        Histogram
        """
        check_alike(self, other)
        epsilon, delta = private.merged_budget((self.epsilon, self.delta), (other.epsilon, other.delta))
        return replace(self, counted=self.counted.merge(other.counted), epsilon=epsilon, delta=delta)

    def update(self, sample: Any, *, like: ScoreModel) -> Histogram:
        """Add further rows.

        Parameters
        ----------
        sample : array-like, data frame, path, Chunks or iterable of tables
            With the columns of the model.
        like : ScoreModel
            The model that it was made by.

        Returns
        -------
        Histogram
        """
        return self.merge(Histogram.of(sample, like=like, start=len(self)))

    def release(self, epsilon: float, delta: float, random_state: int | np.random.Generator | None = None) -> Histogram:
        """Add noise against one who knows all rows but one: a differentially private histogram to be shared.

        It is (ε, δ)-private if one row is replaced by another (:mod:`priorshift.sketch.private`); so the number of rows
        is public. What it tells beside the number is counts in nine groups of p-values, in each repetition. An estimate
        includes the noise in its interval. Two releases of the same rows together need the sum of their budgets.

        The model itself is not private: it tells of the rows that it was fitted to, and of no others. Noise hides rows
        that it was not fitted to, such as those of the target.

        Parameters
        ----------
        epsilon, delta : float
            The budget: less of either hides more, and leaves less. δ must be far below one over the number of rows.
        random_state : int, Generator or None
            None draws from the randomness of the operating system. A seed is for tests: with one that others know,
            nothing is hidden.

        Returns
        -------
        Histogram

        Examples
        --------
        >>> import priorshift as ps
        >>> from priorshift.sketch import Histogram, ScoreModel
        >>> s = ps.simulate.gaussian(source_prior=0.2, target_prior=0.6, shared=False, random_state=0)
        >>> model = ScoreModel.fit(s.positive, s.unlabeled, random_state=0)
        >>> P, U, T = (Histogram.of(rows, like=model) for rows in (s.positive, s.unlabeled, s.target))
        >>> shared = T.release(epsilon=1, delta=1e-6, random_state=0)
        >>> print(shared)
        histogram of 2000 rows by a score model of 333 positives, private (epsilon 1, delta 1e-06)
        >>> print(ps.estimate_prior(P, U, shared, source_prior=0.2))
        target prior 0.606, 95% interval 0.574 to 0.637 (Witness, source prior 0.2)
        """
        counted = private.released_counts(self.counted, epsilon, delta, random_state)
        return replace(self, counted=counted, epsilon=float(epsilon), delta=float(delta))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it into a file, without code or rows.

        Parameters
        ----------
        path : str or path
            Of the file.
        """
        container.write(path, KIND, *self.to_contents())

    def to_contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Give header and arrays of a file.

        Returns
        -------
        header : dict
        arrays : dict of ndarray
        """
        found = self.counted
        header = {
            "rows": found.rows,
            "model": self.model,
            "ranked": self.ranked,
            "folds": self.folds,
            "km2_prior": self.km2_prior if np.isfinite(self.km2_prior) else None,
            "fitted": self.fitted,
            "noise": found.noise,
            "epsilon": self.epsilon,
            "delta": self.delta,
        }
        if found.pairs is None:
            return header, {"counts": found.grouped}
        return header, {"counts": found.counts, "levels": found.levels, "pairs": found.pairs}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read it from a file, perhaps of someone else; nothing in it is run, and all of it is checked.

        Parameters
        ----------
        path : str or path
            Of the file.

        Returns
        -------
        Histogram
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
        Histogram
        """
        fields = Fields(
            contents.header, "rows model ranked folds km2_prior fitted noise epsilon delta", "the histogram"
        )
        is_private = not fields.is_none("epsilon")
        names = ["counts"] if is_private else ["counts", "levels", "pairs"]
        if list(contents.arrays) != names:
            raise fields.refused(f"it has {list(contents.arrays)} where {names} is expected")
        ranked, rows, noise = fields.whole("ranked", 2), fields.whole("rows", 1), fields.number("noise", 0.0)
        repeats = len(contents.arrays["counts"]) if contents.arrays["counts"].ndim == 2 else 0
        two = repeats * (repeats - 1) // 2
        shapes: dict[str, tuple[int, ...]] = {
            "counts": (repeats, GROUPS if is_private else mixture.BINS),
            "levels": (repeats, posterior_levels(ranked)),
            "pairs": (two, mixture.BINS, mixture.BINS),
        }
        if not repeats or any(a.shape != shapes[name] or a.dtype.kind != "f" for name, a in contents.arrays.items()):
            raise fields.refused("its arrays have other shapes than those of its model")
        if is_private:
            made = ScoreCounts.from_groups(rows, contents.arrays["counts"], noise)
        else:
            made = ScoreCounts(rows, contents.arrays["counts"], contents.arrays["pairs"], contents.arrays["levels"])
        with np.errstate(over="ignore", invalid="ignore"):  # of numbers that are refused
            adds_up = made.adds_up
        if (noise > 0) != is_private or not adds_up:
            raise fields.refused("its counts do not add up")
        km2 = float("nan") if fields.is_none("km2_prior") else fields.number("km2_prior", 0.0, 1.0)
        whole = fields.whole("folds", 2), km2, fields.whole("fitted", 2)
        model = fields.text("model")
        if not _FINGERPRINT.fullmatch(model):
            raise fields.refused("'model' is not the fingerprint of a model")
        budget = private.stored_budget(fields, noise, private.of_counts(repeats), rows)
        return cls(made, model, ranked, *whole, *budget)


def _placed(batches: Chunks, model: ScoreModel, start: int, done: int) -> Iterator[tuple[Floats, int]]:
    """Rows after those that are done, as the model reads them, with the place of the first; of small batches together.

    Counts take far more room than a few rows, so that one batch after the other would take long to add up.
    """
    held: list[Floats] = []
    first = done
    for batch in batches.after(done) if done else batches:
        held.append(model.reader(batch, batch.name))
        done += len(held[-1])
        if done - first >= _TOGETHER:
            yield np.concatenate(held), start + first
            held, first = [], done
    if held:
        yield np.concatenate(held), start + first


def _counted(model: ScoreModel, device: str, rows: Floats, place: int) -> ScoreCounts:
    return ScoreCounts.from_p_values(model.p_values(rows, place, device), model.ranked)


def check_alike(first: Histogram, other: Any) -> None:
    """Refuse what was not made by the same model.

    Parameters
    ----------
    first : Histogram
    other : object
        What stands beside it.
    """
    if not isinstance(other, Histogram):
        raise InputError(
            f"{type(other).__name__} cannot be put beside a histogram; pass another one, of the same model."
        )
    if first.made_by != other.made_by:
        raise InputError(
            f"the histograms of {len(first)} and of {len(other)} rows were made by different score models "
            f"({first.model[:8]} and {other.model[:8]}), so their ranks mean different things; count all samples by "
            "one model."
        )


def counted_source(positive: Histogram, unlabeled: Histogram, scenario: str) -> SourceCounts:
    """Put P and U together as the default method takes them.

    Parameters
    ----------
    positive, unlabeled : Histogram
        By one model.
    scenario : {"case-control", "censoring"}
        As in :class:`TCPU`.

    Returns
    -------
    SourceCounts
    """
    check_alike(positive, unlabeled)
    return SourceCounts(
        positive.counted, unlabeled.counted, positive.ranked, positive.folds, positive.km2_prior, scenario
    )
