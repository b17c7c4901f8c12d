"""Moments in a file, and what must be true of them if they are sums over rows at all.

‖z‖ = 1 for every row, so that a mean is no longer than 1, the second moment has Σ w² as its trace, of which each pair
of features of one frequency has the same part, and the spread about the mean is not negative in any direction. What
breaks one of these, by more than noise that was added can, is refused; a file whose numbers all fit may still be
wrong, as a table may.

A sample as a sketch: a count, a mean and a second moment of random features, instead of its rows.

Sketches of parts add up to the sketch of the whole, whatever the parts and their order, so that rows can be read once,
in batches, on several machines or at several places, and need not be kept. Three of them, of positives, unlabelled
source and target, give TCPU's estimate and its interval as the rows would (:mod:`priorshift.sketch.estimation`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky

from priorshift import progress
from priorshift.arrays import Floats
from priorshift.embedding.moments import FeatureMoments
from priorshift.errors import InputError
from priorshift.io.chunks import Chunks
from priorshift.io.header_fields import Fields
from priorshift.sketch import container, private
from priorshift.sketch.design import Design, given_settings
from priorshift.sketch.row_reader import read_batches, weighted_rows

_ROUNDING = 1e-9  # of a sum over many rows
_LEAST, _MOST = 1e-150, 1e150  # of sums of weights, and of their squares
_FAR = 10.0  # standard deviations that no noise is away


def to_stored(moments: FeatureMoments) -> tuple[dict[str, Any], dict[str, Floats]]:
    """Give the header and the arrays of a file; of the second moment the upper triangle, row by row.

    Parameters
    ----------
    moments : Moments
        Of a sample.

    Returns
    -------
    header, arrays : dict
    """
    upper = moments.product[np.triu_indices(len(moments.total))]
    sums = np.array([moments.weight, moments.squares])
    arrays = {"weights": sums, "total": moments.total, "squared_total": moments.squared_total, "product": upper}
    return {"rows": moments.rows, "weighted": moments.is_weighted, "noise": moments.noise}, arrays


def from_stored(header: Any, arrays: Mapping[str, NDArray[Any]], size: int) -> FeatureMoments:
    """Make moments of what `to_stored` gave.

    Parameters
    ----------
    header : dict
        Of a file, perhaps of someone else's; it is checked.
    arrays : mapping
        Of the same file.
    size : int
        Number of features, D.

    Returns
    -------
    Moments
    """
    fields = Fields(header, "rows weighted noise", "a sketch's sums")
    shapes = {"weights": (2,), "total": (size,), "squared_total": (size,), "product": (size * (size + 1) // 2,)}
    if arrays.keys() != {*shapes, "frequencies"}:
        raise fields.refused(
            f"it has the arrays {sorted(arrays)} where {sorted([*shapes, 'frequencies'])} are expected"
        )
    for name, shape in shapes.items():
        if arrays[name].shape != shape or arrays[name].dtype != np.float64:
            raise fields.refused(f"its {name!r} is not of {shape} numbers")
    product = np.zeros((size, size))
    upper = np.triu_indices(size)
    product[upper] = arrays["product"]
    product.T[upper] = arrays["product"]
    weight, squares = (float(number) for number in arrays["weights"])
    rows, noise = fields.whole("rows", 1), fields.number("noise", 0.0)
    made = FeatureMoments(rows, weight, squares, arrays["total"], arrays["squared_total"], product, noise)
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers that are refused
        wrong = _wrong(made, fields.flag("weighted"))
    if wrong:
        raise fields.refused(wrong)
    return made


def _wrong(moments: FeatureMoments, weighted: bool) -> str:
    """What cannot be true of sums over rows; nothing where all can."""
    n, w, w2 = moments.rows, moments.weight, moments.squares
    more = 1 + _ROUNDING
    if not (_LEAST < w < _MOST and _LEAST < w2 < _MOST):
        return "its rows have no weight, or too much"
    if weighted != moments.is_weighted:
        return f"{n} rows do not have the weights that it says"
    if w2 > w * w * more or w * w > n * w2 * more:
        return f"{n} rows cannot have weights with the sums that it says"
    if moments.noise and weighted:
        return "it has noise and weights at once"
    D = len(moments.total)
    K, longest = D // 2, moments.noise * (np.sqrt(D) + _FAR)  # of noise in a mean
    lengths = np.linalg.norm(moments.total), np.linalg.norm(moments.squared_total)
    if lengths[0] > w * more + longest or lengths[1] > w2 * more + longest:
        return "its mean is longer than 1"
    if not weighted and np.abs(moments.total - moments.squared_total).max() > _ROUNDING * w:
        return "its two means differ, though all rows count the same"
    diagonal = np.diagonal(moments.product)
    if np.abs(diagonal[:K] + diagonal[K:] - w2 / K).max() > _ROUNDING * w2 + 2 * _FAR * moments.noise:
        return "its second moment has not the trace of its weights"
    spread = moments.product - np.outer(moments.squared_total, moments.squared_total) / w2
    # a symmetric matrix of noise is no longer than 2√D of it, and a mean's noise stands beside the mean twice
    below = moments.noise * (2 * np.sqrt(D) + _FAR) + 2 * longest + longest**2 / w2
    spread[np.diag_indices_from(spread)] += _ROUNDING * w2 + below
    try:
        cholesky(spread, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return "its spread is negative in some direction"
    return ""


KIND = "sketch"
_AT_A_TIME = 4  # batches between two sums: while one is added up, the next is read
DESIGN_ROWS = 65_536  # that fix a design: the error of a mean or a spread is then 0.4 % of the spread


@dataclass(frozen=True, eq=False)
class Sketch:
    """Count, mean and second moment of the random features of a sample.

    Make the first one of the unlabelled source sample, whose columns, encoding and scale are then those of all, and the
    others like it. A row that is there twice counts twice: a sketch cannot tell copies, groups, or rows that
    two samples have in common. (Under ``scenario="censoring"``, where they are known, it need not.)

    Attributes
    ----------
    design : Design
        What it adds up of each row.
    moments : Moments
        The sums.
    own_design : bool
        Whether its rows fixed the design, which tells of them.
    epsilon, delta : float or None
        The budget of a private one.

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift.sketch import Sketch
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=2000, n_target=2000, shared=False, random_state=0)
    >>> unlabeled = Sketch.of(s.unlabeled)
    >>> positive = Sketch.of(s.positive, like=unlabeled)
    >>> print(positive)
    sketch of 333 rows: 512 random features of a gaussian kernel, bandwidth 2.24, 10 columns
    >>> halves = [Sketch.of(rows, like=unlabeled) for rows in (s.target[:500], s.target[500:])]
    >>> len(halves[0].merge(halves[1]))
    2000
    """

    design: Design
    moments: FeatureMoments
    own_design: bool = True
    epsilon: float | None = None
    delta: float | None = None

    @classmethod
    def of(
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
        """Sketch a sample.

        Parameters
        ----------
        sample : array-like, data frame, path, Chunks, or iterable of such tables
            Of which a batch at a time is in memory.
        like : Sketch or None
            One whose design it shall have, so that the two can be merged and answer together; no other setting may
            stand beside it but `weights`. None fixes columns, encoding, scale and bandwidth by 65,536 rows at the most,
            drawn from all of the sample; of an iterator, which can be read once, they are its first.
        weights : None, name of a column or array-like of shape (rows,)
            What each row stands for; an array only of a sample that is one table.
        random_state : int, Generator or None
            Decides the random features; None is 0.
        features : int or None
            How many, two for each frequency; None is 512. More make an estimate vary less. Time and memory go with
            their square.
        bandwidth : float, {"dimension", "median"} or None
            As in :class:`TCPU`; None is "dimension".
        kernel : {"gaussian", "laplace"}, kernel or None
            Which the features are close to; None is "gaussian".
        drop : sequence of str
            Columns that are no features.
        standardize : bool or None
            Whether columns are scaled by their spread; None is True.
        verbose : bool
            Whether a terminal shows how far it is.

        Returns
        -------
        Sketch
        """
        settings = given_settings(
            drop,
            random_state=random_state,
            features=features,
            bandwidth=bandwidth,
            kernel=kernel,
            standardize=standardize,
        )
        batches, design = _begin(sample, like, weights, settings)
        with progress.shown(verbose):
            moments = FeatureMoments.from_rows(design.features, weighted_rows(batches, design.reader, weights))
        return cls(design, moments, own_design=like is None)

    @classmethod
    def growing(
        cls,
        sample: Any,
        *,
        like: Sketch | None = None,
        weights: Any = None,
        after: Sketch | None = None,
        **settings: Any,
    ) -> Iterator[Sketch]:
        """Sketch a sample some batches at a time, so that what is done can be kept, and gone on from.

        Parameters
        ----------
        sample : array-like, data frame, path, Chunks, or iterable of such tables
            As in `of`.
        like : Sketch or None
            As in `of`.
        weights : None, name of a column or array-like of shape (rows,)
            As in `of`.
        after : Sketch or None
            Of the first rows of the sample, as it was given before; it goes on from there.
        **settings : object
            As in `of`.

        Yields
        ------
        Sketch
            Of all rows so far.
        """
        batches, design = _begin(sample, like if after is None else after, weights, settings if after is None else {})
        rows = weighted_rows(batches, design.reader, weights, 0 if after is None else after.rows)
        made = after
        while (more := FeatureMoments.from_rows(design.features, islice(rows, _AT_A_TIME))).rows:
            moments = more if made is None else made.moments + more
            made = cls(design, moments, own_design=like is None if made is None else made.own_design)
            yield made

    def merge(self, other: Sketch) -> Sketch:
        """Give the sketch of both samples together.

        Parameters
        ----------
        other : Sketch
            Of the same design.

        Returns
        -------
        Sketch
        """
        if not isinstance(other, Sketch):
            raise InputError(f"merge takes a Sketch, but got {type(other).__name__}; for rows there is update.")
        self.design.check_same(other.design, "this one", "the other")
        budget = private.merged_budget((self.epsilon, self.delta), (other.epsilon, other.delta))
        return Sketch(self.design, self.moments + other.moments, self.own_design or other.own_design, *budget)

    def update(self, sample: Any, weights: Any = None) -> Sketch:
        """Give the sketch of this sample and more rows; this one stays as it is.

        Parameters
        ----------
        sample : array-like, data frame, path, Chunks, or iterable of such tables
            More rows, with the same columns.
        weights : None, name of a column or array-like of shape (rows,)
            As in `of`.

        Returns
        -------
        Sketch
        """
        return self.merge(Sketch.of(sample, like=self, weights=weights))

    def release(self, epsilon: float, delta: float, random_state: int | np.random.Generator | None = None) -> Sketch:
        """Add noise against one who knows all rows but one: a differentially private sketch to be shared.

        It is (ε, δ)-private if one row is replaced by another (:mod:`priorshift.sketch.private`); so the number of rows
        is public. An estimate includes the noise in its interval. The noise in a mean embedding grows with the number
        of features: make all sketches of few, such as 256. Two releases of the same rows together need the sum of their
        budgets.

        The design is not private. A sketch whose own rows fixed it is refused; make it like one of public rows, or like
        another party's.

        Parameters
        ----------
        epsilon, delta : float
            The budget: less of either hides more, and leaves less. δ must be far below one over the number of rows.
        random_state : int, Generator or None
            None draws from the randomness of the operating system. A seed is for tests: with one that others know,
            nothing is hidden.

        Returns
        -------
        Sketch

        Examples
        --------
        >>> import priorshift as ps
        >>> from priorshift.sketch import Sketch
        >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=2000, n_target=2000, shared=False, random_state=0)
        >>> unlabeled = Sketch.of(s.unlabeled, features=256)
        >>> target = Sketch.of(s.target, like=unlabeled)
        >>> print(target.release(epsilon=1, delta=1e-6, random_state=0))  # doctest: +ELLIPSIS
        sketch of 2,000 rows: 256 random features of a gaussian kernel, ..., private (epsilon 1, delta 1e-06)
        """
        if self.own_design:
            raise InputError(
                "rows of this sketch fixed its columns, scale and encoding, which no noise hides; make it like a "
                "sketch of public rows, or of another party: Sketch.of(sample, like=first).release(…)."
            )
        moments = private.released_moments(self.moments, epsilon, delta, random_state)
        return replace(self, moments=moments, epsilon=float(epsilon), delta=float(delta))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sketch to a file, which holds no row.

        Parameters
        ----------
        path : str or path
            A file that is there already is replaced.
        """
        container.write(path, KIND, *self.to_contents())

    def to_contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Give header and arrays of a file.

        Returns
        -------
        header : dict
        arrays : dict of ndarray
        """
        words, arrays = to_stored(self.moments)
        header = {
            "design": self.design.to_header(),
            "moments": words,
            "own_design": self.own_design,
            "epsilon": self.epsilon,
            "delta": self.delta,
        }
        return header, {"frequencies": self.design.features.frequencies, **arrays}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Sketch:
        """Read a sketch from a file; one that cannot be a sketch of any sample is refused.

        Parameters
        ----------
        path : str or path
            Of a file that `save` wrote.

        Returns
        -------
        Sketch

        Examples
        --------
        >>> import tempfile
        >>> from priorshift.sketch import Sketch
        >>> sketch = Sketch.of([[1.0, 2.0], [3.0, 5.0], [2.0, 2.0]], features=64)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sketch.save(f"{folder}/a.sketch")
        ...     print(Sketch.load(f"{folder}/a.sketch"))
        sketch of 3 rows: 64 random features of a gaussian kernel, bandwidth 1, 2 columns
        """
        return container.load(path, {KIND: cls.from_contents})

    @classmethod
    def from_contents(cls, contents: container.Contents) -> Sketch:
        """Make it of what a file holds.

        Parameters
        ----------
        contents : Contents
            As the container read them; they are checked.

        Returns
        -------
        Sketch
        """
        fields = Fields(contents.header, "design moments own_design epsilon delta", "a sketch")
        design = Design.from_header(contents.header["design"], contents.arrays)
        moments = from_stored(contents.header["moments"], contents.arrays, design.features.size)
        if (moments.noise > 0) != (not fields.is_none("epsilon")):
            raise fields.refused("it has noise without a budget, or a budget without noise")
        budget = private.stored_budget(fields, moments.noise, private.OF_MOMENTS, moments.rows)
        return cls(design, moments, fields.flag("own_design"), *budget)

    @property
    def rows(self) -> int:  # numpydoc ignore=RT01
        """How many rows it is of."""
        return self.moments.rows

    @property
    def kernel(self) -> str:  # numpydoc ignore=RT01
        """Name of the kernel that the features are close to."""
        return self.design.features.kernel.name

    @property
    def bandwidth(self) -> float:  # numpydoc ignore=RT01
        """Of that kernel, h."""
        return self.design.features.bandwidth

    @property
    def features(self) -> int:  # numpydoc ignore=RT01
        """How many random features there are."""
        return self.design.features.size

    @property
    def columns(self) -> tuple[str, ...] | None:  # numpydoc ignore=RT01
        """Names of the columns, in order; None where they have none."""
        return self.design.reader.columns

    @property
    def seed(self) -> int:  # numpydoc ignore=RT01
        """What the random features were drawn by."""
        return self.design.seed

    def __len__(self) -> int:
        return self.moments.rows

    def __str__(self) -> str:
        width = self.design.reader.width
        return (
            f"sketch of {self.rows:,} row{'s' * (self.rows != 1)}{self._weighted()}: {self.features} random features "
            f"of a {self.kernel} kernel, bandwidth {self.bandwidth:.3g}, {width} column{'s' * (width != 1)}"
            f"{private.said_of(self.epsilon, self.delta)}"
        )

    def _weighted(self) -> str:
        return "" if self.moments.is_even else f" (worth {self.moments.size:,.0f} of equal weight)"


def _begin(sample: Any, like: Sketch | None, weights: Any, settings: dict[str, Any]) -> tuple[Chunks, Design]:
    """The sample in batches, and the design, which is another sketch's or fixed by some of the rows."""
    if like is not None:
        design = design_like(like, settings)
        return read_batches(sample, design.reader.drop, weights), design
    drop = settings.get("drop", ())
    if isinstance(weights, str) and weights in drop:
        raise InputError(f"the column {weights!r} is both weights and dropped; it must be one of them.")
    batches = read_batches(sample, drop, weights)
    return batches, Design.of(batches.sample(DESIGN_ROWS, np.random.default_rng(0)), **settings)


def design_like(like: Any, settings: dict[str, Any]) -> Design:
    """Take the design of another sketch, beside which nothing is set.

    Parameters
    ----------
    like : Sketch
        The other one.
    settings : dict
        What was passed besides, by name; anything is refused.

    Returns
    -------
    Design
    """
    if not isinstance(like, Sketch):
        raise InputError(f"like is of type {type(like).__name__}, but it must be a Sketch; pass the first one.")
    for name in settings:
        raise InputError(f"{name} was passed beside like, whose design is taken as it is; leave {name} out.")
    return like.design
