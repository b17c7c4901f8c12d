"""A sample as a sketch: its size, and the mean and second moment of random features of its rows, instead of the rows.

Sketches can be merged, and estimate together, only if they share one :class:`~priorshift.sketch.design.Design`.
Sketches of parts add up to the sketch of the whole, in any order, so that rows can be read once, in chunks, on several
machines or at several places. Three sketches, of positives, unlabelled source and target, give the same estimate and
interval of TCPU as the rows.

What a file must satisfy: ‖z‖ = 1 for the features z of every row. So a mean is no longer than 1, the trace of the
second moment is Σ w², of which each pair of features of one frequency has the same part, and the covariance has no
negative direction. A file that violates one of these, by more than its noise can, is refused.

Are the sketches of positives and population swapped? The population holds the positives, U = πP + (1−π)N. Let h be any
function of a row, and D = E_U h − E_P h; then N lies D/(1−π) from P, and

    Var_U h = π Var_P h + (1−π) Var_N h + π D²/(1−π),

so that Var_U h is no smaller than π Var_P h + π D²/(1−π). If the two are swapped, and the classes well separated, it
is. The h used is the witness ⟨μ_U − μ_P, z⟩, whose variances follow from second moments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky

from priorshift.embedding.moments import FeatureMoments, embed_moments
from priorshift.embedding.random_features import kernel_details
from priorshift.errors import InconsistentInputWarning, InputError
from priorshift.inference.prior_knowledge import read_prior
from priorshift.io.chunks import Chunks
from priorshift.io.files import Fields
from priorshift.io.parameters import is_known
from priorshift.io.sample_size import check_effective_size, check_sizes
from priorshift.methods.tcpu import TCPU
from priorshift.progress import show_progress
from priorshift.results import PriorEstimate
from priorshift.sketch import private
from priorshift.sketch.container import check_arrays
from priorshift.sketch.design import Design, open_chunks, weighted_rows
from priorshift.warning_records import warn

_CHUNKS_AT_A_TIME = 4  # between two checkpoints: while one is added up, the next is read
_SIGNIFICANT = 3.0  # standard errors below zero that are not due to chance
_KURTOSIS_LESS_1 = 4.0  # n Var(s²)/s⁴ of a sample variance s²: 2 for normal values, and rarely above this

_ROUNDING = 1e-9  # relative error of a sum over many rows
_LEAST_SUM, _LARGEST_SUM = 1e-150, 1e150  # limits of sums of weights, and of their squares
_LARGEST_NOISE = 10.0  # number of standard deviations that noise never exceeds


@dataclass(frozen=True, eq=False)
class Sketch(private.Summary):
    """Count, mean and second moment of the random features of a sample.

    Make the first sketch from the unlabelled source sample, which fixes columns, encoding and scale, and the others
    like it. A sketch cannot recognise copies, groups, or rows that two samples have in common: a row that occurs twice
    counts twice. (Under ``scenario="censoring"``, where shared rows are known, this does no harm.)

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift.sketch import Sketch
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=2000, n_target=2000, shared=False, random_state=0)
    >>> unlabeled = Sketch.from_sample(s.unlabeled)
    >>> positive = Sketch.from_sample(s.positive, like=unlabeled)
    >>> print(positive)
    sketch of 333 rows: 512 random features of a gaussian kernel, bandwidth 2.24, 10 columns
    >>> halves = [Sketch.from_sample(rows, like=unlabeled) for rows in (s.target[:500], s.target[500:])]
    >>> len(halves[0].merge(halves[1]))
    2000
    """

    KIND: ClassVar[str] = "sketch"

    design: Design  # how a row becomes random features
    moments: FeatureMoments  # sums over rows of the features and of their products
    own_design: bool = True  # whether its rows fixed the design, which then reveals something of them
    privacy: private.Privacy | None = None  # of a private release; None without noise

    @classmethod
    def from_sample(
        cls,
        sample: Any,
        *,
        like: Sketch | None = None,
        weights: Any = None,
        random_state: int | np.random.Generator | None = None,
        features: int | None = None,
        bandwidth: str | float | None = None,
        kernel: Any = None,
        drop: Sequence[str] = (),
        standardize: bool | None = None,
        verbose: bool = False,
    ) -> Sketch:
        """Sketch a sample, with one chunk of it in memory at a time.

        Parameters
        ----------
        sample : array-like, data frame, path, Chunks, or iterable of such tables
            Rows of the sample.
        like : Sketch or None
            Sketch whose design to use, so that the two can be merged and estimate together; then no other setting but
            `weights` may be passed. None fixes columns, encoding, scale and bandwidth by at most 65,536 rows, drawn
            from the whole sample (from the first tables of an iterator, which can be read only once).
        weights : None, name of a column or array-like of shape (rows,)
            Weight of each row. An array is allowed only for a single table.
        random_state : int, Generator or None
            Seed of the random features. Default 0.
        features : int or None
            Number of random features, two for each frequency. Default 512. More features make an estimate vary less;
            time and memory grow with their square.
        bandwidth : float, {"dimension", "median"} or None
            As in :class:`TCPU`. Default "dimension".
        kernel : {"gaussian", "laplace"}, kernel or None
            Kernel that the features approximate. Default "gaussian".
        drop : sequence of str
            Columns that are not features.
        standardize : bool or None
            Whether columns are scaled by their spread. Default True.
        verbose : bool
            Whether to show progress in a terminal. Default False.

        Returns
        -------
        Sketch
        """
        settings = {"random_state": random_state, "features": features, "bandwidth": bandwidth, "kernel": kernel,
                    "drop": drop, "standardize": standardize}  # fmt: skip
        chunks, design = _open_sample(sample, like, weights, given_settings(settings))
        with show_progress(verbose):
            return cls.from_chunks(chunks, design, weights, own_design=like is None)

    @classmethod
    def from_chunks(cls, chunks: Chunks, design: Design, weights: Any = None, *, own_design: bool = True) -> Sketch:
        """Sketch a sample by a given design; `own_design` says whether rows of this sample fixed it."""
        rows = weighted_rows(chunks, design.reader, weights)
        return cls(design, FeatureMoments.from_rows(design.features, rows), own_design)

    @classmethod
    def checkpoints(
        cls,
        sample: Any,
        *,
        like: Sketch | None = None,
        weights: Any = None,
        resume: Sketch | None = None,
        **settings: Any,
    ) -> Iterator[Sketch]:
        """Sketch a sample a few chunks at a time, so that intermediate results can be saved.

        Parameters
        ----------
        sample, like, weights : object
            As in `from_sample`.
        resume : Sketch or None
            Sketch of the first rows of the same sample, after which to continue.
        **settings : object
            Further settings, as in `from_sample`.

        Yields
        ------
        Sketch
            Sketch of all rows so far.
        """
        if resume is None:
            chunks, design = _open_sample(sample, like, weights, given_settings(settings))
            rows = weighted_rows(chunks, design.reader, weights)
        else:  # the design is that of the sketch to be continued
            chunks, design = _open_sample(sample, resume, weights, {})
            rows = weighted_rows(chunks, design.reader, weights, skip=len(resume))
        total = resume
        while True:
            moments = FeatureMoments.from_rows(design.features, islice(rows, _CHUNKS_AT_A_TIME))
            if not moments.rows:  # the end of the sample
                return
            if total is None:
                total = cls(design, moments, own_design=like is None)
            else:
                total = replace(total, moments=total.moments + moments)
            yield total

    def merge(self, other: Sketch) -> Sketch:
        """Return the sketch of both samples together.

        Parameters
        ----------
        other : Sketch
            Sketch of other rows, of the same design.

        Returns
        -------
        Sketch
        """
        if not isinstance(other, Sketch):
            raise InputError(f"merge takes a Sketch, but got {type(other).__name__}; use update for rows.")
        self.design.check_same(other.design, "this one", "the other")
        privacy = self.merged_privacy(other)
        return Sketch(self.design, self.moments + other.moments, self.own_design or other.own_design, privacy)

    def update(self, sample: Any, weights: Any = None) -> Sketch:
        """Return the sketch of this sample and further rows.

        Parameters
        ----------
        sample : array-like, data frame, path, Chunks, or iterable of such tables
            Further rows, with the same columns.
        weights : None, name of a column or array-like of shape (rows,)
            As in `from_sample`.

        Returns
        -------
        Sketch
        """
        return self.merge(Sketch.from_sample(sample, like=self, weights=weights))

    def with_noise(self, epsilon: float, delta: float, random_state: Any) -> Sketch:
        """Return a copy with the noise of an (ε, δ)-private release."""
        if self.own_design:
            raise InputError(
                "rows of this sketch fixed its columns, scale and encoding, which no noise hides; release a sketch "
                "that was made like one of public rows: Sketch.from_sample(sample, like=first)."
            )
        moments = private.add_noise_to_moments(self.moments, epsilon, delta, random_state)
        return replace(self, moments=moments, privacy=private.Privacy.for_release(epsilon, delta, random_state))

    def to_contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the header and the arrays of a file; of the second moment the upper triangle, row by row."""
        moments = self.moments
        header = {
            "design": self.design.to_header() | {"fingerprint": self.design.fingerprint},
            "moments": {"rows": moments.rows, "weighted": moments.is_weighted, "noise": moments.noise},
            "own_design": self.own_design,
        } | self.privacy_header()
        return header, {
            "frequencies": self.design.features.frequencies,
            "weights": np.array([moments.weight, moments.squares]),
            "total": moments.total,
            "squared_total": moments.squared_total,
            "product": moments.product[np.triu_indices(len(moments.total))],
        }

    @classmethod
    def from_contents(cls, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build a sketch from the header and the arrays of a file, and check them."""
        fields = Fields(header, "design moments own_design epsilon delta releases", "a sketch")
        design_arrays = {name: array for name, array in arrays.items() if name == "frequencies"}
        moment_arrays = {name: array for name, array in arrays.items() if name != "frequencies"}
        design = Design.from_header(header["design"], design_arrays)
        moments = _read_moments(header["moments"], moment_arrays, design.features.size)
        if (moments.noise > 0) != (not fields.is_none("epsilon")):
            raise fields.refused("it has noise without a budget, or a budget without noise")
        privacy = private.Privacy.read(fields, moments.noise, private.MOMENTS_SENSITIVITY, moments.rows)
        return cls(design, moments, fields.flag("own_design"), privacy)

    def __len__(self) -> int:
        """Return the number of rows of the sample."""
        return self.moments.rows

    def __str__(self) -> str:
        """Describe the sketch in one line."""
        width, features = self.design.reader.width, self.design.features
        rows = "1 row" if len(self) == 1 else f"{len(self):,} rows"
        columns = "1 column" if width == 1 else f"{width} columns"
        weighted = "" if self.moments.has_equal_weights else f" (effective sample size {self.moments.size:,.0f})"
        return (
            f"sketch of {rows}{weighted}: {features.size} random features of a {features.kernel.name} kernel, "
            f"bandwidth {features.bandwidth:.3g}, {columns}{self.privacy_text}"
        )


def given_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a design that a user passed (not None), with the columns to drop as a tuple."""
    drop = settings.get("drop", ())
    columns = (drop,) if isinstance(drop, str) else tuple(drop)
    normalized = {**settings, "drop": columns if columns else None}
    return {name: value for name, value in normalized.items() if value is not None}


def design_like(like: Any, settings: dict[str, Any]) -> Design:
    """Return the design of the sketch `like`; raise InputError for further settings, which it has fixed."""
    if not isinstance(like, Sketch):
        raise InputError(f"like is of type {type(like).__name__}, but it must be a Sketch; pass the first one.")
    for name in settings:
        raise InputError(f"{name} was passed together with like, whose design is used unchanged; leave {name} out.")
    return like.design


def _open_sample(sample: Any, like: Sketch | None, weights: Any, settings: dict[str, Any]) -> tuple[Chunks, Design]:
    """Open a sample for reading in chunks; return it with the design of `like`, or one fixed by some of its rows.

    `settings` are settings of a design that a user passed, which are refused with `like`.
    """
    if like is not None:
        design = design_like(like, settings)
        return open_chunks(sample, design.reader.drop, weights), design
    drop = settings.get("drop", ())
    if isinstance(weights, str) and weights in drop:
        raise InputError(f"the column {weights!r} is both weights and dropped; it must be one of them.")
    chunks = open_chunks(sample, drop, weights)
    return chunks, Design.from_chunks(chunks, settings)


def _read_moments(header: Any, arrays: Mapping[str, NDArray[Any]], size: int) -> FeatureMoments:
    """Read the moments of `size` random features in a file, and check that they can be sums over rows.

    The file holds the upper triangle of the second moment, row by row. "weights" are Σ w and Σ w².
    """
    fields = Fields(header, "rows weighted noise", "a sketch's sums")
    shapes = {"weights": (2,), "total": (size,), "squared_total": (size,), "product": (size * (size + 1) // 2,)}
    check_arrays(arrays, shapes, fields)
    product = np.zeros((size, size))
    upper = np.triu_indices(size)
    product[upper] = arrays["product"]
    product.T[upper] = arrays["product"]
    weight, squares = (float(number) for number in arrays["weights"])
    rows, noise = fields.whole("rows", 1), fields.number("noise", 0.0)
    moments = FeatureMoments(rows, weight, squares, arrays["total"], arrays["squared_total"], product, noise)
    with np.errstate(over="ignore", invalid="ignore"):  # absurd numbers are refused below, without a numpy warning
        problem = _contradiction(moments, fields.flag("weighted"))
    if problem:
        raise fields.refused(problem)
    return moments


def _contradiction(moments: FeatureMoments, weighted: bool) -> str:
    """Return why the moments of a file cannot be sums over rows, for a message; empty if they can.

    The features z of a row have ‖z‖ = 1: cos² + sin² = 1/K for each of K frequencies; the K cosines come first, then
    the K sines. `weighted` is what the file says, whether its rows have different weights.
    """
    n, w, w2 = moments.rows, moments.weight, moments.squares  # n, Σ w and Σ w²
    slack = 1 + _ROUNDING
    if not (_LEAST_SUM < w < _LARGEST_SUM and _LEAST_SUM < w2 < _LARGEST_SUM):
        return "the sums of its weights are too small or too large"
    if weighted != moments.is_weighted:
        return f"{n} rows do not have the weights that it says"
    if w2 > w * w * slack or w * w > n * w2 * slack:  # Σ w² ≤ (Σ w)² ≤ n Σ w², for positive weights
        return f"{n} rows cannot have weights with the sums that it says"
    if moments.noise and weighted:
        return "it has both noise and weights"
    D = len(moments.total)
    K = D // 2  # frequencies
    longest = moments.noise * (np.sqrt(D) + _LARGEST_NOISE)  # largest length of the noise in `total`
    length, squared_length = np.linalg.norm(moments.total), np.linalg.norm(moments.squared_total)  # of Σ wz, Σ w²z
    if length > w * slack + longest or squared_length > w2 * slack + longest:
        return "its mean is longer than 1"
    if not weighted and np.abs(moments.total - moments.squared_total).max() > _ROUNDING * w:
        return "its two means differ, although all rows have the same weight"
    largest = w2 * slack + _LARGEST_NOISE * moments.noise  # |z_i z_j| ≤ 1
    if np.abs(moments.product).max() > largest or np.abs(moments.product - moments.product.T).max() > _ROUNDING * w2:
        return "its second moment is too large or not symmetric"
    diagonal = np.diagonal(moments.product)
    if np.abs(diagonal[:K] + diagonal[K:] - w2 / K).max() > _ROUNDING * w2 + 2 * _LARGEST_NOISE * moments.noise:
        return "the trace of its second moment does not match its weights"
    covariance = moments.product - np.outer(moments.squared_total, moments.squared_total) / w2
    # the norm of a symmetric matrix of noise is at most 2√D times the noise; the mean's noise enters twice
    noise_norm = moments.noise * (2 * np.sqrt(D) + _LARGEST_NOISE) + 2 * longest + longest**2 / w2
    covariance[np.diag_indices_from(covariance)] += _ROUNDING * w2 + noise_norm
    try:  # the factorisation fails unless the matrix is positive definite
        cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return "its covariance has a negative direction"
    return ""


def estimate_from_sketches(estimator: Any, *, positive: Any, unlabeled: Any, target: Any) -> PriorEstimate:
    """Estimate the target prior from three sketches of one design, as TCPU does from rows.

    Kernel, bandwidth, scale and random features are those of the sketches. Under ``scenario="censoring"`` `unlabeled`
    is still the sketch of the unlabelled rows alone.
    """
    samples = {"positive": positive, "unlabeled": unlabeled, "target": target}
    _check_sketches(estimator, samples)
    design, censoring = unlabeled.design, estimator.scenario == "censoring"
    moments = positive.moments, unlabeled.moments, target.moments
    embeddings = embed_moments(design.features, *moments, estimator.statistic, censoring=censoring)
    if not censoring:  # under censoring the population is both samples together
        _warn_if_swapped(positive.moments, unlabeled.moments, read_prior(estimator.source_prior).range[0])
    details = kernel_details(design.features) | {"bandwidth_by": design.bandwidth_by, "standardize": design.standardize}
    details |= {"precision": "float64", "device": "cpu", "pairs": None}
    return estimator.estimate_embeddings(embeddings, details | private.privacy_details(**samples))


def _check_sketches(estimator: Any, samples: Mapping[str, Any]) -> None:
    """Raise InputError for samples that are not sketches of one design, and for settings that need rows."""
    if not isinstance(estimator, TCPU):
        raise InputError(
            f"sketches are for TCPU, but the estimator is of type {type(estimator).__name__}; pass TCPU(…), or use "
            "histograms of a ScoreModel for the default method."
        )
    if not is_known(estimator.source_prior):
        raise InputError(
            "sketches cannot estimate the source prior, for which KM2 needs rows; pass source_prior, or use histograms "
            "of a ScoreModel, the default method."
        )
    for setting, value in (("interval", "bootstrap"), ("embedding", "exact"), ("pairs", estimator.pairs)):
        if value is not None and getattr(estimator, setting) == value:
            raise InputError(f"{setting}={value!r} needs rows, which sketches do not have; leave it out.")
    for name, sketch in samples.items():
        if not isinstance(sketch, Sketch):
            raise InputError(f"{name} is of type {type(sketch).__name__}, but a Sketch is expected; make one of it.")
        if estimator.interval in ("paper-bound", "sharp-bound") and sketch.moments.noise:
            bound = f"interval={estimator.interval!r} holds for means without noise, but {name} is private"
            raise InputError(f"{bound}; use interval='delta'.")
        samples["unlabeled"].design.check_same(sketch.design, "unlabeled", name)
        check_sizes(**{name: len(sketch)})
        check_effective_size(f"the weights of {name}", len(sketch), sketch.moments.size)


def _warn_if_swapped(positive: FeatureMoments, unlabeled: FeatureMoments, prior: float) -> None:
    """Warn if positives and population look swapped: U varies too little to contain a share π of P, but not vice versa.

    `prior` is the least possible π. Samples with weights or noise are not checked.
    """
    if any(sample.noise or sample.is_weighted for sample in (positive, unlabeled)):
        return
    as_labelled, as_swapped = _excess_variance(positive, unlabeled, prior), _excess_variance(unlabeled, positive, prior)
    if as_labelled < -_SIGNIFICANT and as_swapped > -1:
        warn(
            "Positives and unlabelled rows look swapped: the unlabelled rows vary less than a population with a share "
            f"of {prior:.3g} positives does, while the reverse fits. Check which sketch is which.",
            InconsistentInputWarning,
        )


def _excess_variance(positive: FeatureMoments, unlabeled: FeatureMoments, prior: float) -> float:
    """Estimate (1−π) Var_N h = Var_U h − π Var_P h − π D²/(1−π), divided by its standard error.

    h is the witness ⟨μ_U − μ_P, z⟩; the identity is in the module's docstring. A value below 0 is impossible but for
    chance. Without a standard error the result is 0.
    """
    P, U = positive, unlabeled
    a = U.mean - P.mean  # coefficients of h
    var_P, var_U = (
        max(float(a @ sample.product @ a) / sample.rows - float(a @ sample.mean) ** 2, 0.0) for sample in (P, U)
    )
    bias = sum((1 - float(sample.mean @ sample.mean)) / sample.rows for sample in (P, U))  # of ‖a‖², since ‖z‖ = 1
    D, odds = max(float(a @ a) - bias, 0.0), prior / (1 - prior)  # D = E_U h − E_P h = ‖a‖²
    D_error = 2 * sqrt(var_P / P.rows + var_U / U.rows)
    # errors of Var_U h, π Var_P h and π D²/(1−π), as if they were independent
    errors = (
        sqrt(_KURTOSIS_LESS_1 / U.rows) * var_U,
        sqrt(_KURTOSIS_LESS_1 / P.rows) * prior * var_P,
        2 * odds * D * D_error,
    )
    error = sqrt(sum(term**2 for term in errors))
    return (var_U - prior * var_P - odds * D**2) / error if error > 0 else 0.0
