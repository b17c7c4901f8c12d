"""A sample as counts of its p-values: all that the default method needs of it, however many rows it has."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.io.chunks import Chunks
from priorshift.io.files import Fields
from priorshift.io.sample_size import check_sizes
from priorshift.methods.witness_shift import WitnessShift
from priorshift.progress import track_progress
from priorshift.results import PriorEstimate
from priorshift.scores import mixture
from priorshift.scores.counts import GROUPS, ScoreCounts, SourceCounts
from priorshift.scores.cross_fitting import choose_score_device
from priorshift.scores.posterior import posterior_levels
from priorshift.sketch import private
from priorshift.sketch.container import check_arrays
from priorshift.sketch.score_model import ScoreModel
from priorshift.threads import map_in_order

_MIN_ROWS = 4096  # counted at a time: counts are large, so that adding up those of many small chunks would take long
_GPU_VALUES = 2**24  # read before a GPU counts them: with fewer, starting its work takes longer than the work
_MAX_REPEATS = 50  # of the score model of a histogram in a file, since memory grows with their square
_FINGERPRINT = re.compile("[0-9a-f]{64}")  # a SHA-256 in hexadecimal


@dataclass(frozen=True, eq=False)
class Histogram(private.Summary):
    """Counts of the p-values of a sample, by a :class:`ScoreModel`.

    Three histograms, of labelled positives, unlabelled rows and a target, are all that
    :func:`priorshift.estimate_prior` needs for its default method, and give the same interval as the rows. The counts
    of two parts add up to those of the whole, in any order. (Where most rows repeat by chance, as with a few yes-or-no
    columns, the position of a row decides which of the five models scores it. Another order then gives other counts, as
    another seed would.)

    A saved histogram holds no row. It reveals how many rows of the sample look how much like the positives of the
    model; :func:`priorshift.experimental.release` adds noise to protect single rows.

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift.sketch import Histogram, ScoreModel
    >>> s = ps.simulate.gaussian(source_prior=0.2, target_prior=0.6, shared=False, random_state=0)
    >>> model = ScoreModel.fit(s.positive, s.unlabeled, random_state=0)
    >>> P, U, T = (Histogram.from_sample(rows, model) for rows in (s.positive, s.unlabeled, s.target))
    >>> print(ps.estimate_prior(P, U, T, source_prior=0.2))
    target prior 0.601, 95% interval 0.571 to 0.631 (Witness, source prior 0.2)
    >>> len(T.merge(U)) == len(T) + len(U)
    True
    """

    KIND: ClassVar[str] = "histogram"

    counted: ScoreCounts  # number of rows, and how many have p-values in each bin
    model: str  # fingerprint of the score model
    ranked: int  # number of positives among which the model ranks rows
    folds: int  # number of cross-fitting folds of the model
    km2_prior: float  # KM2's estimate of the source prior, from the model; NaN if unknown
    fitted: int  # number of unlabelled rows to which the model was fitted
    privacy: private.Privacy | None = None  # of a private release; None without noise

    @classmethod
    def from_sample(cls, sample: Any, model: ScoreModel, *, device: str = "auto", start: int = 0) -> Histogram:
        """Count the rows of a sample, in one pass and constant memory.

        Parameters
        ----------
        sample : array-like, data frame, path, Chunks or iterable of tables
            Rows with the columns of the model.
        model : ScoreModel
            Model that scores and ranks rows.
        device : str
            Where rows are scored, as in :class:`WitnessShift`. Default "auto".
        start : int
            Number of rows of the same sample that come before these. Default 0.

        Returns
        -------
        Histogram
        """
        histograms = cls.checkpoints(sample, model, device=device, start=start)
        return deque(histograms, maxlen=1)[0]  # the last one; earlier ones do not stay in memory

    @classmethod
    def checkpoints(
        cls, sample: Any, model: ScoreModel, *, device: str = "auto", start: int = 0, resume: Histogram | None = None
    ) -> Iterator[Histogram]:
        """Count the rows of a sample chunk by chunk, so that intermediate results can be saved.

        Parameters
        ----------
        sample, model, device : object
            As in `from_sample`.
        start : int
            Position of the first row of `sample`, if it is a part of a larger sample. Default 0.
        resume : Histogram or None
            Histogram of the first rows of `sample`, which are skipped.

        Yields
        ------
        Histogram
            Histogram of all rows so far.
        """
        check_model(model)
        chunks = Chunks.from_source(sample, "sample", drop=model.reader.drop)
        resolved_device = choose_score_device(device, chunks.rows or 0)
        total = None if resume is None else resume.counted
        rows_done = 0 if total is None else total.rows

        def count(block: tuple[list[NDArray[Any]], int]) -> ScoreCounts:
            """Count the p-values of a block: arrays of its rows, and the position of the first in the sample.

            Where most rows are copies of others, their positions decide which model of the cross-fitting scores them.
            """
            parts, first = block
            return model.count(parts, first, resolved_device)

        least_rows = _MIN_ROWS
        if resolved_device != "cpu":
            least_rows = max(_MIN_ROWS, _GPU_VALUES // model.reader.n_features)
        with track_progress("counting", chunks.rows, "rows") as advance:
            advance(rows_done)
            for counted in map_in_order(count, _row_blocks(chunks, model, start, rows_done, least_rows)):
                advance(counted.rows)
                total = counted if total is None else total.merge(counted)
                yield cls(total, model.fingerprint, model.ranked, model.folds, model.km2_prior, model.unlabeled_rows)

    def __len__(self) -> int:
        """Return the number of rows that were counted."""
        return self.counted.rows

    def __str__(self) -> str:
        """Describe the histogram in one line."""
        return f"histogram of {len(self)} rows by a score model of {self.ranked} positives{self.privacy_text}"

    def merge(self, other: Histogram) -> Histogram:
        """Add the counts of another part of the sample.

        Parameters
        ----------
        other : Histogram
            Histogram of other rows, by the same model.

        Returns
        -------
        Histogram
        """
        self.check_same_model(other)
        return replace(self, counted=self.counted.merge(other.counted), privacy=self.merged_privacy(other))

    def update(self, sample: Any, model: ScoreModel) -> Histogram:
        """Add further rows.

        Parameters
        ----------
        sample : array-like, data frame, path, Chunks or iterable of tables
            Rows with the columns of the model.
        model : ScoreModel
            Model by which this histogram was counted.

        Returns
        -------
        Histogram
        """
        return self.merge(Histogram.from_sample(sample, model, start=len(self)))

    def check_same_model(self, other: Any) -> None:
        """Raise InputError unless `other` is a histogram that was counted by the same model."""
        if not isinstance(other, Histogram):
            raise InputError(f"a histogram can be combined only with another one, but got {type(other).__name__}.")
        own_model = self.model, self.ranked, self.folds, len(self.counted.counts)
        if own_model != (other.model, other.ranked, other.folds, len(other.counted.counts)):
            raise InputError(
                f"the histograms of {len(self)} and of {len(other)} rows are by different score models "
                f"({self.model[:8]} and {other.model[:8]}); count all samples by one model."
            )

    def with_noise(self, epsilon: float, delta: float, random_state: Any) -> Histogram:
        """Return a copy with the noise of an (ε, δ)-private release."""
        counted = private.add_noise_to_counts(self.counted, epsilon, delta, random_state)
        return replace(self, counted=counted, privacy=private.Privacy.for_release(epsilon, delta, random_state))

    def to_contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the header and the arrays of a file; `km2_prior` is None if unknown, since JSON has no NaN.

        Counts are whole numbers. Few pairs of bins have rows, and only these are stored: the number of such pairs for
        each first bin, and for each pair its second bin and its rows.
        """
        counted = self.counted
        names = ("model", "ranked", "folds", "fitted")
        header = {"rows": counted.rows, "noise": counted.noise} | {name: getattr(self, name) for name in names}
        header |= self.privacy_header()
        header["km2_prior"] = self.km2_prior if np.isfinite(self.km2_prior) else None
        if counted.pairs is None:  # a private release, which has counts of groups of bins only
            return header, {"counts": counted.grouped}
        if len(counted.counts) > _MAX_REPEATS:
            reason = f"its model has {len(counted.counts)} repetitions, but at most {_MAX_REPEATS} can be saved"
            raise InputError(f"the histogram cannot be saved: {reason}; fit a score model with fewer repeats.")
        occupied = counted.pairs > 0
        arrays = {
            "counts": counted.counts,
            "levels": counted.levels,
            "pairs_per_bin": occupied.sum(axis=2),
            "pair_bins": np.nonzero(occupied)[2],
            "pair_counts": counted.pairs[occupied],
        }
        return header, {name: array.astype(np.int64) for name, array in arrays.items()}

    @classmethod
    def from_contents(cls, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build a histogram from the header and the arrays of a file, and check them."""
        fields = Fields(
            header, "rows model ranked folds km2_prior fitted noise epsilon delta releases", "the histogram"
        )
        counted = _read_counts(arrays, fields)
        model = fields.text("model")
        if not _FINGERPRINT.fullmatch(model):
            raise fields.refused("'model' is not the fingerprint of a model")
        sensitivity = private.counts_sensitivity(repeats=len(arrays["counts"]))
        privacy = private.Privacy.read(fields, counted.noise, sensitivity, counted.rows)
        ranked, folds, fitted = (fields.whole(name, 2) for name in ("ranked", "folds", "fitted"))
        km2_prior = float("nan") if fields.is_none("km2_prior") else fields.number("km2_prior", 0.0, 1.0)
        return cls(counted, model, ranked, folds, km2_prior, fitted, privacy)


def _row_blocks(
    chunks: Chunks, model: ScoreModel, start: int, done: int, least_rows: int
) -> Iterator[tuple[list[NDArray[Any]], int]]:
    """Yield arrays of at least `least_rows` rows together, not scaled yet, with the position of the first row.

    The first `done` rows of `chunks` are skipped; `start` rows of the sample come before `chunks`.
    """
    pending: list[NDArray[Any]] = []  # rows of chunks that are not yielded yet
    first, end = done, done  # the rows `first` to `end` of `chunks` are pending
    for chunk in chunks.after(done) if done else chunks:  # a full pass refuses a sample without rows
        rows = model.reader.read(chunk, chunk.name)
        if not chunks.can_repeat:  # an iterator may use the same memory for its next table
            rows = rows.copy()
        pending.append(rows)
        end += len(rows)
        if end - first >= least_rows:
            yield pending, start + first
            pending, first = [], end
    if pending:
        yield pending, start + first


def _read_counts(arrays: Mapping[str, NDArray[Any]], fields: Fields) -> ScoreCounts:
    """Read and check the counts in a file: of all bins or, where noise was added, of groups of bins.

    `arrays` and `fields` are the arrays and the header of the file.
    """
    is_private = not fields.is_none("epsilon")
    ranked, rows, noise = fields.whole("ranked", 2), fields.whole("rows", 1), fields.number("noise", 0.0)
    if "counts" not in arrays or arrays["counts"].ndim != 2 or not len(arrays["counts"]):
        raise fields.refused("it has no counts")
    repeats = len(arrays["counts"])  # repetitions of the cross-fitting
    if is_private:
        check_arrays(arrays, {"counts": (repeats, GROUPS)}, fields)
        counted = ScoreCounts.from_groups(rows, arrays["counts"], noise)
    else:
        shapes = {
            "counts": (repeats, mixture.BINS),
            "levels": (repeats, posterior_levels(ranked)),
            "pairs_per_bin": (repeats * (repeats - 1) // 2, mixture.BINS),
            "pair_bins": arrays.get("pair_counts", arrays["counts"]).shape[:1],
            "pair_counts": arrays.get("pair_counts", arrays["counts"]).shape[:1],
        }
        check_arrays(arrays, shapes, fields, integers=list(shapes))
        counts, levels = arrays["counts"].astype(float), arrays["levels"].astype(float)
        counted = ScoreCounts(rows, counts, _read_pairs(arrays, fields), levels)
    with np.errstate(over="ignore", invalid="ignore"):  # absurd numbers are refused below, without a numpy warning
        adds_up = counted.adds_up
    if (noise > 0) != is_private or not adds_up:  # noise exactly where there is a budget
        raise fields.refused("its counts do not add up")
    return counted


def _read_pairs(arrays: Mapping[str, NDArray[Any]], fields: Fields) -> Floats:
    """Return the counts of rows in two bins at once, shape (pairs of repetitions, bins, bins), from those above 0."""
    per_bin, second, counts = (arrays[name] for name in ("pairs_per_bin", "pair_bins", "pair_counts"))
    if len(arrays["counts"]) > _MAX_REPEATS:
        raise fields.refused(f"its model has {len(arrays['counts'])} repetitions, more than {_MAX_REPEATS}")
    are_bins = all(((bins >= 0) & (bins <= mixture.BINS)).all() for bins in (per_bin, second + 1))
    if not are_bins or per_bin.sum() != len(counts) or (counts < 1).any():
        raise fields.refused("its counts do not add up")
    pairs = np.zeros((per_bin.size, mixture.BINS))
    pairs[np.repeat(np.arange(per_bin.size), per_bin.ravel()), second] = (
        counts  # a pair that is given twice counts once
    )
    return pairs.reshape(*per_bin.shape, mixture.BINS)


def check_model(model: Any) -> None:
    """Raise InputError unless `model` is a score model."""
    if not isinstance(model, ScoreModel):
        raise InputError(f"model is of type {type(model).__name__}, but a ScoreModel is expected; fit one first.")


def estimate_from_histograms(estimator: Any, *, positive: Any, unlabeled: Any, target: Any) -> PriorEstimate:
    """Estimate the target prior from histograms of P, of the unlabelled rows and of the target, by one score model.

    `estimator` is an unfitted :class:`WitnessShift`, whose settings apply.
    """
    if not isinstance(estimator, WitnessShift):
        other = type(estimator).__name__
        raise InputError(f"histograms are for the default method, WitnessShift, not for {other}; leave method out.")
    samples = {"positive": positive, "unlabeled": unlabeled, "target": target}
    for name, sample in samples.items():
        if not isinstance(sample, Histogram):
            raise InputError(
                f"{name} is of type {type(sample).__name__}, but other samples are histograms. Make a histogram of it "
                "too, by the same model."
            )
        positive.check_same_model(sample)
    check_sizes(**{name: len(sample) for name, sample in samples.items()})
    source = SourceCounts(
        positive.counted, unlabeled.counted, positive.ranked, positive.folds, positive.km2_prior, estimator.scenario
    )
    estimate = estimator.fit_counts(source).estimate_counts(target.counted)
    details = {**estimate.details, "fitted_rows": positive.fitted, **private.privacy_details(**samples)}
    return replace(estimate, details=details)
