"""What a sketch adds up of each row, fixed by one sample: how rows become numbers, and the random features of these.

Sketches merge, and answer together, only where their designs are the same. Frequencies are kept as they are beside the
seed that they were drawn by, since another version of numpy may draw others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.embedding.random_features import LEAST_FEATURES, RandomFeatures, check_features
from priorshift.errors import InputError
from priorshift.io.header_fields import Fields
from priorshift.io.mixed_tables import MixedTable
from priorshift.io.parameters import check_choice, check_random_state, is_number
from priorshift.io.tables import Table
from priorshift.kernels import Gaussian, Laplace, make_kernel
from priorshift.sketch.row_reader import RowReader

_KERNELS: dict[str, type[Gaussian] | type[Laplace]] = {"gaussian": Gaussian, "laplace": Laplace}
_RULES = ("dimension", "median")
_MOST_FEATURES = 8192  # whose second moment takes half a gigabyte
_KEYS = "reader kernel bandwidth bandwidth_by standardize features seed fingerprint"


def given_settings(drop: str | Sequence[str], **settings: Any) -> dict[str, Any]:
    """Keep those of a design's settings that a user gave.

    Parameters
    ----------
    drop : str or sequence of str
        Columns that are no features; none are not given.
    **settings : object
        The others, by their names; None is not given.

    Returns
    -------
    dict
        As :meth:`Design.of` takes them.
    """
    given = {"drop": tuple([drop] if isinstance(drop, str) else drop) or None, **settings}
    return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Design:
    """How rows become random features.

    Attributes
    ----------
    reader : RowReader
        How rows become numbers.
    features : RandomFeatures
        Of these.
    seed : int
        What the frequencies were drawn by.
    bandwidth_by : str or None
        The rule that gave the bandwidth.
    standardize : bool
        Whether the reader brings columns to variance 1.
    """

    reader: RowReader
    features: RandomFeatures
    seed: int
    bandwidth_by: str | None
    standardize: bool

    @classmethod
    def of(
        cls,
        table: Table | MixedTable,
        *,
        random_state: Any = 0,
        features: int = 512,
        bandwidth: str | float = "dimension",
        kernel: Any = "gaussian",
        drop: tuple[str, ...] = (),
        standardize: bool = True,
    ) -> Design:
        """Fix a design by rows that stand for all.

        Parameters
        ----------
        table : Table or MixedTable
            Some rows.
        random_state : int or Generator
            This and all else is as in :meth:`Sketch.of`.
        features : int
        bandwidth : float or str
        kernel : str or kernel
        drop : tuple of str
        standardize : bool

        Returns
        -------
        Design
        """
        check_random_state(random_state)
        check_features(features)
        if features > _MOST_FEATURES:
            raise InputError(
                f"features is {features}, but a sketch keeps the products of all pairs of them; pass at most "
                f"{_MOST_FEATURES}."
            )
        if isinstance(kernel, str):
            check_choice("kernel", kernel, tuple(_KERNELS))
        elif not isinstance(kernel, (Gaussian, Laplace)):
            raise InputError(f"kernel is {kernel!r}, but a sketch has features of 'gaussian' or 'laplace'; pass one.")
        if isinstance(bandwidth, str) and bandwidth not in _RULES:
            rules = " or ".join(map(repr, _RULES))
            raise InputError(
                f"bandwidth is {bandwidth!r}, but one sample alone can tell a positive number or one of {rules}."
            )
        reader = RowReader.of(table, drop=drop, standardize=standardize)
        chosen = make_kernel(kernel, bandwidth, reader(table, table.name), reader.dimension)
        is_seed = is_number(random_state) and random_state < 2**62
        seed = int(random_state if is_seed else np.random.default_rng(random_state).integers(2**62))
        drawn = RandomFeatures.draw(chosen, reader.features, features, np.random.default_rng(seed))
        rule = bandwidth if isinstance(kernel, str) and isinstance(bandwidth, str) else None
        return cls(reader, drawn, seed, rule, standardize)

    def dropping(self, drop: Sequence[str]) -> Design:
        """Leave other columns out of the tables that come after the first one.

        Parameters
        ----------
        drop : sequence of str
            All of them.

        Returns
        -------
        Design
        """
        return replace(self, reader=self.reader.dropping(drop))

    @property
    def fingerprint(self) -> str:  # numpydoc ignore=RT01
        """A text that two designs share only if they make the same features of every row."""
        digest = hashlib.sha256(json.dumps(self._words(), sort_keys=True, separators=(",", ":")).encode())
        digest.update(np.ascontiguousarray(self.features.frequencies, dtype="<f8").tobytes())
        return digest.hexdigest()

    def check_same(self, other: Design, name: str, other_name: str) -> None:
        """Refuse another design, and say in which part it differs.

        Parameters
        ----------
        other : Design
            Which must be this one.
        name, other_name : str
            What messages call the two.
        """
        if self.fingerprint == other.fingerprint:
            return
        here, there = self._parts(), other._parts()
        what = next((part for part in here if here[part] != there[part]), None)
        if what in ("encoding and scale of the columns", None):
            said = f"the {what or 'frequencies of their features'} differ"
        else:
            said = f"the {what}: {here[what]} and {there[what]}"
        raise InputError(
            f"{name} and {other_name} are sketches of two designs, which do not add up ({said}); make all of them like "
            "one: Sketch.of(sample, like=first)."
        )

    def _parts(self) -> dict[str, Any]:
        """In words, what can differ; the plainest first."""
        columns = self.reader.columns
        return {
            "columns": f"{self.reader.width} without names" if columns is None else list(columns),
            "kernel": self.features.kernel.name,
            "number of features": self.features.size,
            "random_state": self.seed,
            "standardize": self.standardize,
            "bandwidth": self.features.bandwidth,
            "encoding and scale of the columns": self.reader.fingerprint,
        }

    def _words(self) -> dict[str, Any]:
        return {
            "reader": self.reader.to_header(),
            "kernel": self.features.kernel.name,
            "bandwidth": self.features.bandwidth,
            "bandwidth_by": self.bandwidth_by,
            "standardize": self.standardize,
            "features": self.features.size,
            "seed": self.seed,
        }

    def to_header(self) -> dict[str, Any]:
        """Give all but the frequencies in words and numbers.

        Returns
        -------
        dict
            What JSON can hold.
        """
        return self._words() | {"fingerprint": self.fingerprint}

    @classmethod
    def from_header(cls, header: Any, arrays: Mapping[str, NDArray[Any]]) -> Design:
        """Make a design of what `to_header` gave.

        Parameters
        ----------
        header : dict
            Of a file, perhaps of someone else's; it is checked.
        arrays : mapping
            With "frequencies".

        Returns
        -------
        Design
        """
        fields = Fields(header, _KEYS, "a sketch's design")
        reader = RowReader.from_header(header["reader"])
        kernel, size = fields.text("kernel"), fields.whole("features", LEAST_FEATURES, _MOST_FEATURES)
        rule = None if fields.is_none("bandwidth_by") else fields.text("bandwidth_by")
        if kernel not in _KERNELS or rule not in (None, *_RULES) or size % 2:
            raise fields.refused("its kernel, rule of the bandwidth or number of features is none that there is")
        frequencies = arrays.get("frequencies")
        if frequencies is None or frequencies.dtype != np.float64 or frequencies.shape != (reader.features, size // 2):
            raise fields.refused(f"frequencies of shape {(reader.features, size // 2)} are expected")
        features = RandomFeatures(_KERNELS[kernel](fields.number("bandwidth", 1e-100, 1e100)), frequencies)
        made = cls(reader, features, fields.whole("seed"), rule, fields.flag("standardize"))
        if made.fingerprint != fields.text("fingerprint"):
            raise fields.refused("its fingerprint is of another design")
        return made
