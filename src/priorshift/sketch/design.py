"""The function of a row that one sample fixes and that applies to all others: columns, encoding, scale and features.

Label shift holds for every function of a row as long as it is the same function for all rows. So columns, encoding and
scale are decided once, by the first sample, and are stored with whatever is computed from it. The random features of a
sketch are fixed with them; frequencies are stored besides their seed, since another version of numpy may draw others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index
from priorshift.embedding.moments import Weighted
from priorshift.embedding.random_features import LEAST_FEATURES, RandomFeatures, check_features
from priorshift.errors import ColumnWarning, InputError
from priorshift.io.cells import is_missing
from priorshift.io.chunks import Chunks
from priorshift.io.encoding import TableEncoder, convert_column
from priorshift.io.files import Fields
from priorshift.io.parameters import check_choice, check_settings, is_number
from priorshift.io.readers import read_table
from priorshift.io.sample_size import weights_of_part
from priorshift.io.scaling import Scaling
from priorshift.io.tables import LARGEST, ColumnSelection, Origin, Table, check_dropped, check_finite, match_columns
from priorshift.kernels import Gaussian, Laplace
from priorshift.kernels.kernel import make_kernel
from priorshift.progress import track_progress
from priorshift.sketch.container import check_arrays
from priorshift.warning_records import warn

_FIRST_SAMPLE = "the sample that fixed the columns"  # as messages call it
_DESIGN_ROWS = 65_536  # rows that fix a design: the error of a mean or a spread is then 0.4 % of the spread
_KERNELS: dict[str, type[Gaussian] | type[Laplace]] = {"gaussian": Gaussian, "laplace": Laplace}
_BANDWIDTH_RULES = ("dimension", "median")
_MAX_FEATURES = 8192  # whose second moment takes half a gigabyte


@dataclass(frozen=True, eq=False)
class RowReader:
    """Columns, encoding and scale, as one sample fixed them."""

    columns: tuple[str, ...] | None  # names in order; None where columns have none
    width: int  # number of columns
    drop: tuple[str, ...]  # columns that are left out of every table that has them
    encoder: TableEncoder | None  # None where all columns are numbers
    scaling: Scaling  # of the encoded columns

    @classmethod
    def fit(cls, table: Table, *, drop: Sequence[str] = (), standardize: bool = True) -> RowReader:
        """Fit columns, encoding and scale to the rows of a table.

        `drop` are names of columns to leave out; `standardize` scales columns and leaves out constant ones.
        """
        table = table.without(drop)
        check_dropped([table], drop)
        encoder = TableEncoder().fit(table) if table.cells else None
        numbers = table if encoder is None else encoder.encode_table(encoder.convert(table))
        check_finite(numbers)
        scaling = Scaling.from_rows(numbers.values, np.arange(len(numbers.values)), standardize, numbers.origin)
        return cls(table.columns, table.width, tuple(drop), encoder, scaling)

    @property
    def n_features(self) -> int:
        """Number of features of a row: encoded columns that are not left out."""
        return int(np.count_nonzero(self.scaling.factor))

    @property
    def fingerprint(self) -> str:
        """Hash that two readers share only if they read every row in the same way."""
        text = json.dumps(self.to_header(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def __call__(self, rows: Any, name: str) -> Floats:
        """Convert rows to scaled numbers, of shape (rows, features); named columns may be in any order."""
        return self.scale(self.read(rows, name))

    def read(self, rows: Any, name: str) -> NDArray[Any]:
        """Convert rows to numbers, of shape (rows, features), which are not scaled yet."""
        read = read_table(rows, name, ColumnSelection(drop=self.drop))
        table = self._to_numbers(read.without(self.drop))  # read_table returns a Table unchanged, so drop again
        if self.encoder is not None or read.cells or not table.width:  # `read_table` has checked other tables
            check_finite(table)
        varying = self.scaling.left_out_of(table)  # names of unused columns that vary here
        if varying:
            reason = f"constant in {_FIRST_SAMPLE} but not in {name}"
            message = f"Left out {', '.join(varying)}: {reason}; fix the columns by a sample in which it varies."
            warn(message, ColumnWarning)
        return table.values if self.n_features == table.values.shape[1] else table.values[:, self._used]

    def scale(self, values: NDArray[Any]) -> Floats:
        """Return the numbers of `read`, scaled."""
        scaled = np.subtract(values, self.shift, dtype=np.float64)
        scaled *= self.factor
        return scaled

    def feature_columns(self, table: Table) -> list[str]:
        """Return the name of the column that each feature comes from; its number where columns have no names.

        `table` is one with the columns that the reader was fitted to.
        """
        numbers = self._to_numbers(table.without(self.drop))
        origin = np.arange(numbers.width) if numbers.origin is None else numbers.origin.original_column
        names = self.columns or [str(k) for k in range(self.width)]
        return [names[origin[k]] for k in self._used]

    @property
    def shift(self) -> Floats:
        """What is subtracted from each feature."""
        return self.scaling.shift[self._used]

    @property
    def factor(self) -> Floats:
        """What each feature is then multiplied by."""
        return self.scaling.factor[self._used]

    @property
    def origin(self) -> Origin | None:
        """Which column each feature comes from; None where all columns are numbers."""
        whole = self.scaling.origin
        if whole is None:
            return None
        used = self._used
        return Origin(whole.original_column[used], whole.own_scale[used], whole.columns, whole.line)

    @property
    def _used(self) -> Index:
        """Numbers of the encoded columns that are not left out, whose factor is 0."""
        return np.flatnonzero(self.scaling.factor)

    def in_order(self, table: Table) -> Table:
        """Return a table with its columns in the order of the sample that fixed them; refuse other columns."""
        columns = Table(_FIRST_SAMPLE, np.empty((0, self.width)), self.columns)  # without rows
        return match_columns([columns, table])[1]

    def _to_numbers(self, table: Table) -> Table:
        """Convert a table to numbers, with its columns in the order of the sample that fixed them.

        A table whose columns are not all numbers has them in `cells`, one array for each column.
        """
        if self.encoder is not None:
            converted = self.encoder.convert(table.as_cells(), _FIRST_SAMPLE)
            self._check_missing(converted)
            return self.encoder.encode_table(converted)
        ordered = self.in_order(table)
        if not ordered.cells:
            return ordered
        cells = tuple(
            convert_column(column, "number", ordered, k, _FIRST_SAMPLE) for k, column in enumerate(ordered.cells)
        )
        self._check_missing(replace(ordered, cells=cells, native=None))
        return Table(ordered.name, np.column_stack(cells), ordered.columns, ordered.extra, ordered.dropped)

    def _check_missing(self, table: Table) -> None:
        """Raise InputError for missing numbers and dates in columns where the first sample had none.

        A value to fill in is known only for columns that had gaps; in columns of categories, missing is a category.
        """
        for k, cells in enumerate(table.cells):
            column = None if self.encoder is None else self.encoder.summary_.columns[k]
            if column is not None and (column.has_missing or not column.is_quantity):
                continue
            missing = is_missing(cells)
            if missing.any():
                raise InputError(
                    f"{table.name} has no value in row {missing.argmax()} (counting from 0), {table.column(k)}, but "
                    f"{_FIRST_SAMPLE} has no missing value there. Fill it in, leave the row out, or drop the column "
                    "from all samples; in memory (stream=False), it is filled in."
                )

    def to_header(self) -> dict[str, Any]:
        """Return columns, encoding and scale as JSON values."""
        return {
            "columns": None if self.columns is None else list(self.columns),
            "width": self.width,
            "drop": list(self.drop),
            "encoder": None if self.encoder is None else self.encoder.to_header(),
            "shift": self.scaling.shift.tolist(),
            "factor": self.scaling.factor.tolist(),
            "constant": self.scaling.value.tolist(),
        }

    @classmethod
    def from_header(cls, header: Any) -> RowReader:
        """Build a reader from the result of `to_header`, which may come from an untrusted file and is checked."""
        fields = Fields(header, "columns width drop encoder shift factor constant", "how rows are read")
        columns, width = None if fields.is_none("columns") else fields.texts("columns"), fields.whole("width", 1)
        if columns is not None and len(columns) != width:
            raise fields.refused(f"it has {len(columns)} names for {width} columns")
        encoder = None if fields.is_none("encoder") else TableEncoder.from_header(header["encoder"])
        origin = None if encoder is None else encoder.origin
        if encoder is not None and (encoder.n_features_in_, encoder.names) != (width, columns):
            raise fields.refused("its encoding is of other columns")
        encoded_width = width if origin is None else len(origin.original_column)  # columns after encoding
        shift, factor = fields.numbers("shift", encoded_width), fields.numbers("factor", encoded_width)
        if (factor < 0).any() or not factor.any() or max(factor.max(), np.abs(shift).max()) > LARGEST:
            raise fields.refused("its factors are not those of a scale")
        constant = np.flatnonzero(factor == 0)  # columns that are left out
        scaling = Scaling(shift, factor, constant, fields.numbers("constant", len(constant)), origin)
        return cls(columns, width, fields.texts("drop"), encoder, scaling)


@dataclass(frozen=True, eq=False)
class Design:
    """How rows become random features, fixed by one sample."""

    reader: RowReader  # rows to numbers
    features: RandomFeatures  # of these numbers
    seed: int  # by which the frequencies were drawn
    bandwidth_by: str | None  # rule that gave the bandwidth, "dimension" or "median"; None for a number
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
        """Fit the reader to some rows and draw random features; settings are as in :meth:`Sketch.from_sample`."""
        check_settings({"random_state": random_state})
        check_features(features)
        if features > _MAX_FEATURES:
            raise InputError(f"features is {features}, but a sketch can have at most {_MAX_FEATURES}; pass fewer.")
        if not isinstance(kernel, (Gaussian, Laplace)):
            check_choice("kernel", kernel, tuple(_KERNELS))
        if isinstance(bandwidth, str) and bandwidth not in _BANDWIDTH_RULES:
            raise InputError(f"bandwidth is {bandwidth!r}, but it must be a positive number, 'dimension' or 'median'.")
        reader = RowReader.fit(table, drop=drop, standardize=standardize)
        kernel_with_bandwidth = make_kernel(kernel, bandwidth, reader(table, table.name), reader.scaling.features)
        can_store = is_number(random_state) and random_state < 2**62  # a larger seed does not fit into a file
        seed = int(random_state if can_store else np.random.default_rng(random_state).integers(2**62))
        rng = np.random.default_rng(seed)
        drawn_features = RandomFeatures.draw(kernel_with_bandwidth, reader.n_features, features, rng)
        rule = bandwidth if isinstance(kernel, str) and isinstance(bandwidth, str) else None
        return cls(reader, drawn_features, seed, rule, standardize)

    @classmethod
    def from_chunks(cls, chunks: Chunks, settings: dict[str, Any]) -> Design:
        """Fit a design to a random subsample of a sample; `settings` are the keyword arguments of `fit`."""
        return cls.fit(chunks.sample(_DESIGN_ROWS, np.random.default_rng(0)), **settings)

    @property
    def fingerprint(self) -> str:
        """Hash that two designs share only if they give the same features for every row."""
        digest = hashlib.sha256(json.dumps(self.to_header(), sort_keys=True, separators=(",", ":")).encode())
        digest.update(np.ascontiguousarray(self.features.frequencies, dtype="<f8").tobytes())
        return digest.hexdigest()

    def check_same(self, other: Design, name: str, other_name: str) -> None:
        """Raise InputError if the other design differs; the message names both sketches and the first difference."""
        if self.fingerprint == other.fingerprint:
            return
        difference = "encoding and scale of the columns, or frequencies of the features"
        here, there = self.to_header(), other.to_header()
        for header, reader in ((here, self.reader), (there, other.reader)):
            header["columns"] = reader.columns or f"{reader.width} without names"
        for key in ("columns", "kernel", "features", "seed", "standardize", "bandwidth"):
            if here[key] != there[key]:
                difference = f"{key}: {here[key]} and {there[key]}"
                break
        raise InputError(
            f"{name} and {other_name} are sketches of two designs ({difference}), which cannot be combined. Make all "
            "sketches like one: Sketch.from_sample(sample, like=first)."
        )

    def to_header(self) -> dict[str, Any]:
        """Return the design without its frequencies as JSON values."""
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
        """Build a design from the result of `to_header` and the array "frequencies" in a file, and check them."""
        fields = Fields(
            header, "reader kernel bandwidth bandwidth_by standardize features seed fingerprint", "a sketch's design"
        )
        reader = RowReader.from_header(header["reader"])
        kernel, size = fields.text("kernel"), fields.whole("features", LEAST_FEATURES, _MAX_FEATURES)
        rule = None if fields.is_none("bandwidth_by") else fields.text("bandwidth_by")
        if kernel not in _KERNELS or rule not in (None, *_BANDWIDTH_RULES) or size % 2:
            raise fields.refused("its kernel, bandwidth rule or number of features does not exist")
        check_arrays(arrays, {"frequencies": (reader.n_features, size // 2)}, fields)
        features = RandomFeatures(_KERNELS[kernel](fields.number("bandwidth", 1e-100, 1e100)), arrays["frequencies"])
        design = cls(reader, features, fields.whole("seed"), rule, fields.flag("standardize"))
        if design.fingerprint != fields.text("fingerprint"):
            raise fields.refused("its fingerprint is of another design")
        return design


def columns_to_drop(streams: Mapping[str, Chunks], drop: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return those of the columns `drop` that at least one of the samples `names` has, by its first rows.

    `streams` are all samples by their names. InputError is raised for a column to drop that none of them has.
    """
    if not drop:
        return []
    first = {name: chunks.first().without(drop) for name, chunks in streams.items()}
    check_dropped(list(first.values()), drop)
    return [column for column in drop if any(column in first[name].dropped for name in names)]


def weight_columns(streams: Mapping[str, Chunks], weights: str | None) -> dict[str, str | None]:
    """Return, for each sample, the name of the weight column if its first rows have it, and None otherwise."""
    if weights is None:
        return dict.fromkeys(streams)
    weight_column: dict[str, str | None] = {}
    for name, chunks in streams.items():
        table = chunks.first()
        has_weights = weights in table.extra or weights in (table.columns or ())
        weight_column[name] = weights if has_weights else None
    if all(column is None for column in weight_column.values()):
        raise InputError(f"no table has a column {weights!r}; name the column of the weights.")
    return weight_column


def open_chunks(sample: Any, drop: Sequence[str], weights: Any, name: str = "the sample") -> Chunks:
    """Open a sample for reading in chunks; if `weights` is the name of a column, that column is not a feature."""
    if not isinstance(weights, str):
        return Chunks.from_source(sample, name, drop=drop)
    return Chunks.from_source(sample, name, extra=[weights], drop=[column for column in drop if column != weights])


def weighted_rows(chunks: Chunks, reader: RowReader, weights: Any = None, skip: int = 0) -> Iterator[Weighted]:
    """Yield the rows of each chunk as numbers, shape (rows, features), with their weights, shape (rows,), or None.

    The first `skip` rows of the sample are left out. `weights` is the name of a column, an array with a weight for
    every row of the sample, those left out included, or None for equal weights.
    """
    is_array = not (weights is None or isinstance(weights, str))
    if is_array and chunks.rows is None:
        raise InputError(
            f"weights of {chunks.name} are an array, but its number of rows is not known in advance. Put the weights "
            "into a column, and pass its name."
        )
    all_weights = weights_of_part(weights, chunks.rows or 0) if is_array else None
    done = skip  # rows before the current chunk
    with track_progress(f"sketching {chunks.name}", chunks.rows, "rows") as advance:
        advance(skip)
        for chunk in chunks.after(skip) if skip else chunks:  # a full pass refuses a sample without rows
            rows = reader(chunk, chunk.name)
            advance(len(rows))
            if all_weights is not None:
                yield rows, all_weights[done : done + len(rows)]
            elif weights is None:
                yield rows, None
            elif weights in chunk.extra:
                name = f"the column {weights!r} of {chunk.name}"
                yield rows, weights_of_part(chunk.extra[weights], len(rows), name)
            else:
                raise InputError(f"{chunk.name} has no column {weights!r}, which holds the weights; add it.")
            done += len(rows)
