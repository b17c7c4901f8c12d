"""A sample as a sketch: its size, and the mean and second moment of random features of its rows, instead of the rows.

A sketch has a design: how rows become numbers, and the random features of these. Sketches can be merged, and estimate
together, only if they share one. Frequencies are stored besides their seed, since another version of numpy may draw
others.

Sketches of parts add up to the sketch of the whole, in any order, so that rows can be read once, in chunks, on several
machines or at several places. Three sketches, of positives, unlabelled source and target, give the same estimate and
interval of TCPU as the rows (:mod:`priorshift.sketch.estimation`).

What a file must satisfy: ‖z‖ = 1 for the features z of every row. So a mean is no longer than 1, the trace of the
second moment is Σ w², of which each pair of features of one frequency has the same part, and the covariance has no
negative direction. A file that violates one of these, by more than its noise can, is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky

from priorshift.embedding.moments import FeatureMoments
from priorshift.embedding.random_features import LEAST_FEATURES, RandomFeatures, check_features
from priorshift.errors import InputError
from priorshift.io.chunks import Chunks
from priorshift.io.files import Fields
from priorshift.io.parameters import check_choice, check_random_state, is_number
from priorshift.io.tables import Table
from priorshift.kernels import Gaussian, Laplace
from priorshift.kernels.choice import make_kernel
from priorshift.progress import show_progress
from priorshift.sketch import private
from priorshift.sketch.container import check_arrays
from priorshift.sketch.row_reader import RowReader, open_chunks, weighted_rows

_DESIGN_ROWS = 65_536  # rows that fix a design: the error of a mean or a spread is then 0.4 % of the spread
_KERNELS: dict[str, type[Gaussian] | type[Laplace]] = {"gaussian": Gaussian, "laplace": Laplace}
_RULES = ("dimension", "median")  # for the bandwidth
_MAX_FEATURES = 8192  # whose second moment takes half a gigabyte
_CHUNKS_AT_A_TIME = 4  # between two checkpoints: while one is added up, the next is read

_ROUNDING = 1e-9  # relative error of a sum over many rows
_LEAST, _MOST = 1e-150, 1e150  # of sums of weights, and of their squares
_FAR = 10.0  # standard deviations that noise never exceeds


@dataclass(frozen=True, eq=False)
class Design:
    """How rows become random features, fixed by one sample."""

    reader: RowReader  # rows to numbers
    features: RandomFeatures  # of these numbers
    seed: int  # by which the frequencies were drawn
    bandwidth_by: str | None  # rule that gave the bandwidth
    standardize: bool  # whether the reader scales columns to variance 1

    @classmethod
    def fit(
        cls,
        table: Table,
        *,
        random_state: Any = 0,
        features: int = 512,
        bandwidth: str | float = "dimension",
        kernel: Any = "gaussian",
        drop: Sequence[str] = (),
        standardize: bool = True,
    ) -> Design:
        """Fix a design by some rows; the settings are those of :meth:`Sketch.from_sample`."""
        check_random_state(random_state)
        check_features(features)
        if features > _MAX_FEATURES:
            raise InputError(
                f"features is {features}, but a sketch stores the products of all pairs of them; pass at most "
                f"{_MAX_FEATURES}."
            )
        if isinstance(kernel, str):
            check_choice("kernel", kernel, tuple(_KERNELS))
        elif not isinstance(kernel, (Gaussian, Laplace)):
            raise InputError(f"kernel is {kernel!r}, but a sketch supports 'gaussian' and 'laplace'; pass one of them.")
        if isinstance(bandwidth, str) and bandwidth not in _RULES:
            rules = " or ".join(map(repr, _RULES))
            raise InputError(f"bandwidth is {bandwidth!r}, but a sketch needs a positive number or one of {rules}.")
        reader = RowReader.fit(table, drop=drop, standardize=standardize)
        chosen = make_kernel(kernel, bandwidth, reader(table, table.name), reader.dimension)
        is_seed = is_number(random_state) and random_state < 2**62
        seed = int(random_state if is_seed else np.random.default_rng(random_state).integers(2**62))
        drawn = RandomFeatures.draw(chosen, reader.n_features, features, np.random.default_rng(seed))
        rule = bandwidth if isinstance(kernel, str) and isinstance(bandwidth, str) else None
        return cls(reader, drawn, seed, rule, standardize)

    @classmethod
    def from_chunks(cls, chunks: Chunks, settings: dict[str, Any]) -> Design:
        """Fix a design by a random subsample of a sample."""
        return cls.fit(chunks.sample(_DESIGN_ROWS, np.random.default_rng(0)), **settings)

    def moments(self, chunks: Chunks, weights: Any = None) -> FeatureMoments:
        """Return the moments of the random features of a sample."""
        return FeatureMoments.from_rows(self.features, weighted_rows(chunks, self.reader, weights))

    @property
    def fingerprint(self) -> str:
        """A hash that two designs share only if they give the same features for every row."""
        digest = hashlib.sha256(json.dumps(self.to_header(), sort_keys=True, separators=(",", ":")).encode())
        digest.update(np.ascontiguousarray(self.features.frequencies, dtype="<f8").tobytes())
        return digest.hexdigest()

    def check_same(self, other: Design, name: str, other_name: str) -> None:
        """Refuse another design, and say how it differs."""
        if self.fingerprint == other.fingerprint:
            return
        here, there = self.to_header(), other.to_header()
        here["columns"], there["columns"] = (
            f"{reader.width} without names" if reader.columns is None else list(reader.columns)
            for reader in (self.reader, other.reader)
        )
        names = ("columns", "kernel", "features", "seed", "standardize", "bandwidth")
        differing = next((name for name in names if here[name] != there[name]), None)
        if differing:
            difference = f"{differing}: {here[differing]} and {there[differing]}"
        else:
            difference = "encoding and scale of the columns, or frequencies of the features"
        raise InputError(
            f"{name} and {other_name} are sketches of two designs, which cannot be combined ({difference}). Make all "
            "sketches like one: Sketch.from_sample(sample, like=first)."
        )

    def to_header(self) -> dict[str, Any]:
        """Return everything but the frequencies as JSON values."""
        return {
            "reader": self.reader.to_header(),
            "kernel": self.features.kernel.name,
            "bandwidth": self.features.bandwidth,
            "bandwidth_by": self.bandwidth_by,
            "standardize": self.standardize,
            "features": self.features.size,
            "seed": self.seed,
        }

    @classmethod
    def from_header(cls, header: Any, arrays: Mapping[str, NDArray[Any]]) -> Design:
        """Build a design from what `to_header` returned and the array "frequencies", and check them."""
        fields = Fields(
            header, "reader kernel bandwidth bandwidth_by standardize features seed fingerprint", "a sketch's design"
        )
        reader = RowReader.from_header(header["reader"])
        kernel, size = fields.text("kernel"), fields.whole("features", LEAST_FEATURES, _MAX_FEATURES)
        rule = None if fields.is_none("bandwidth_by") else fields.text("bandwidth_by")
        if kernel not in _KERNELS or rule not in (None, *_RULES) or size % 2:
            raise fields.refused("its kernel, bandwidth rule or number of features does not exist")
        check_arrays(arrays, {"frequencies": (reader.n_features, size // 2)}, fields)
        features = RandomFeatures(_KERNELS[kernel](fields.number("bandwidth", 1e-100, 1e100)), arrays["frequencies"])
        design = cls(reader, features, fields.whole("seed"), rule, fields.flag("standardize"))
        if design.fingerprint != fields.text("fingerprint"):
            raise fields.refused("its fingerprint is of another design")
        return design


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

    design: Design  # what is added up of each row
    moments: FeatureMoments  # the sums
    own_design: bool = True  # whether its rows fixed the design, which then reveals something of them
    epsilon: float | None = None  # budget of a private release
    delta: float | None = None

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
            return cls(design, design.moments(chunks, weights), own_design=like is None)

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
        else:
            chunks, design = _open_sample(sample, resume, weights, {})
        rows = weighted_rows(chunks, design.reader, weights, 0 if resume is None else len(resume))
        total = resume
        while (more := FeatureMoments.from_rows(design.features, islice(rows, _CHUNKS_AT_A_TIME))).rows:
            moments = more if total is None else total.moments + more
            total = cls(design, moments, own_design=like is None if total is None else total.own_design)
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
        budget = self.merged_budget(other)
        return Sketch(self.design, self.moments + other.moments, self.own_design or other.own_design, *budget)

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
        """Add the noise of a private release."""
        if self.own_design:
            raise InputError(
                "rows of this sketch fixed its columns, scale and encoding, which no noise hides. Make it like a "
                "sketch of public rows or of another party, Sketch.from_sample(sample, like=first), and release that."
            )
        moments = private.add_noise_to_moments(self.moments, epsilon, delta, random_state)
        return replace(self, moments=moments, epsilon=float(epsilon), delta=float(delta))

    def to_contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the header and the arrays of a file; of the second moment the upper triangle, row by row."""
        moments = self.moments
        header = {
            "design": self.design.to_header() | {"fingerprint": self.design.fingerprint},
            "moments": {"rows": moments.rows, "weighted": moments.is_weighted, "noise": moments.noise},
            "own_design": self.own_design,
            "epsilon": self.epsilon,
            "delta": self.delta,
        }
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
        fields = Fields(header, "design moments own_design epsilon delta", "a sketch")
        sums = dict(arrays)
        frequencies = {name: sums.pop(name) for name in arrays if name == "frequencies"}
        design = Design.from_header(header["design"], frequencies)
        moments = _read_moments(header["moments"], sums, design.features.size)
        if (moments.noise > 0) != (not fields.is_none("epsilon")):
            raise fields.refused("it has noise without a budget, or a budget without noise")
        budget = private.budget_from_fields(fields, moments.noise, private.MOMENTS_SENSITIVITY, moments.rows)
        return cls(design, moments, fields.flag("own_design"), *budget)

    def __len__(self) -> int:
        return self.moments.rows

    def __str__(self) -> str:
        rows, width, features = len(self), self.design.reader.width, self.design.features
        weighted = "" if self.moments.has_equal_weights else f" (effective sample size {self.moments.size:,.0f})"
        return (
            f"sketch of {rows:,} row{'s' * (rows != 1)}{weighted}: {features.size} random features of a "
            f"{features.kernel.name} kernel, bandwidth {features.bandwidth:.3g}, {width} column{'s' * (width != 1)}"
            f"{self.privacy_text}"
        )


def given_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of a design that were given, with the columns to drop as a tuple."""
    drop = settings.get("drop", ())
    given = {**settings, "drop": tuple([drop] if isinstance(drop, str) else drop) or None}
    return {name: value for name, value in given.items() if value is not None}


def design_like(like: Any, settings: dict[str, Any]) -> Design:
    """Return the design of another sketch; refuse further settings."""
    if not isinstance(like, Sketch):
        raise InputError(f"like is of type {type(like).__name__}, but it must be a Sketch; pass the first one.")
    for name in settings:
        raise InputError(f"{name} was passed together with like, whose design is used unchanged; leave {name} out.")
    return like.design


def _open_sample(sample: Any, like: Sketch | None, weights: Any, settings: dict[str, Any]) -> tuple[Chunks, Design]:
    """Open a sample, and take the design of another sketch or fix one by some rows."""
    if like is not None:
        design = design_like(like, settings)
        return open_chunks(sample, design.reader.drop, weights), design
    drop = settings.get("drop", ())
    if isinstance(weights, str) and weights in drop:
        raise InputError(f"the column {weights!r} is both weights and dropped; it must be one of them.")
    chunks = open_chunks(sample, drop, weights)
    return chunks, Design.from_chunks(chunks, settings)


def _read_moments(header: Any, arrays: Mapping[str, NDArray[Any]], size: int) -> FeatureMoments:
    """Read the moments of `size` features in a file, and check that they can be sums over rows."""
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
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers that are refused
        problem = _contradiction(moments, fields.flag("weighted"))
    if problem:
        raise fields.refused(problem)
    return moments


def _contradiction(moments: FeatureMoments, weighted: bool) -> str:
    """Return what cannot be true of sums over rows; empty where everything can."""
    n, w, w2 = moments.rows, moments.weight, moments.squares
    more = 1 + _ROUNDING
    if not (_LEAST < w < _MOST and _LEAST < w2 < _MOST):
        return "the sums of its weights are too small or too large"
    if weighted != moments.is_weighted:
        return f"{n} rows do not have the weights that it says"
    if w2 > w * w * more or w * w > n * w2 * more:
        return f"{n} rows cannot have weights with the sums that it says"
    if moments.noise and weighted:
        return "it has both noise and weights"
    D = len(moments.total)
    K, longest = D // 2, moments.noise * (np.sqrt(D) + _FAR)  # of noise in a mean
    lengths = np.linalg.norm(moments.total), np.linalg.norm(moments.squared_total)
    if lengths[0] > w * more + longest or lengths[1] > w2 * more + longest:
        return "its mean is longer than 1"
    if not weighted and np.abs(moments.total - moments.squared_total).max() > _ROUNDING * w:
        return "its two means differ, although all rows have the same weight"
    diagonal = np.diagonal(moments.product)
    if np.abs(diagonal[:K] + diagonal[K:] - w2 / K).max() > _ROUNDING * w2 + 2 * _FAR * moments.noise:
        return "the trace of its second moment does not match its weights"
    spread = moments.product - np.outer(moments.squared_total, moments.squared_total) / w2
    # the norm of a symmetric matrix of noise is at most 2√D times the noise; the mean's noise enters twice
    below = moments.noise * (2 * np.sqrt(D) + _FAR) + 2 * longest + longest**2 / w2
    spread[np.diag_indices_from(spread)] += _ROUNDING * w2 + below
    try:
        cholesky(spread, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return "its covariance has a negative direction"
    return ""
