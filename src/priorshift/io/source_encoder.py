"""The encoder of an estimator: fitted on the unlabelled rows of a source, and applied to every later target."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from priorshift.arrays import Mask
from priorshift.errors import ColumnWarning
from priorshift.io.cells import is_missing
from priorshift.io.column_checks import warn_of_levels
from priorshift.io.encoding import EncodedColumn, TableEncoder
from priorshift.io.tables import Table, check_finite, check_numbers
from priorshift.warning_records import warn

_MAX_P_VALUE = 1e-4  # p-value below which chance is ruled out


@dataclass(frozen=True, eq=False)
class SourceEncoder:
    """How the columns of a source with named columns are encoded as numbers."""

    encoder: TableEncoder  # without the names of rare levels, which may identify a person
    rows: int  # unlabelled rows, to which the encoder was fitted
    is_identity: bool  # whether the source holds only numbers, which stay as they are

    @classmethod
    def fit(cls, table: Table, labeled: Mask) -> tuple[SourceEncoder | None, Table]:
        """Fit an encoder to the unlabelled rows of a source, and return it with the source as numbers.

        There is none for columns without names, which must be numbers, and for a table that is encoded already.
        """
        if table.columns is None or table.origin is not None:
            return None, check_numbers(table)
        if not table.cells:
            return cls(_encoder_of_numbers(table, ~labeled), int((~labeled).sum()), is_identity=True), table
        without_native = replace(table, native=None)
        unlabeled = without_native.take(~labeled, "the unlabelled rows of X")
        encoder = TableEncoder().fit(unlabeled)
        converted = encoder.convert(without_native)
        U, P = encoder.convert(unlabeled), converted.take(labeled, "the labelled rows of X")
        warn_of_levels([U, P, U], encoder)
        stored = cls(TableEncoder.from_header(encoder.to_header()), len(unlabeled), is_identity=False)
        return stored, stored._encode(replace(converted, native=table.native))

    @property
    def width(self) -> int:
        """Number of columns before encoding."""
        return int(self.encoder.n_features_in_)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns before encoding."""
        return tuple(self.encoder.feature_names_in_)

    def __call__(self, table: Table) -> Table:
        """Return a table with the columns of the source as numbers, and warn of values that the source lacks."""
        if self.is_identity and not table.cells:
            return table
        converted = self.encoder.convert(table.as_cells(), "the fitted source")
        self._warn_of_unseen(converted)
        return self._encode(replace(converted, native=table.native))

    def _encode(self, converted: Table) -> Table:
        """Encode a table that `TableEncoder.convert` returned; its `native` rows stay as the user passed them."""
        encoded = self.encoder.encode_table(converted)
        return replace(check_finite(encoded), native=converted.native)

    def _warn_of_unseen(self, table: Table) -> None:
        """Warn of columns with levels or missing cells that the unlabelled rows lack, where chance does not explain it.

        The names of rare levels are not known here, so that a column with rare levels may hold any level.
        """
        for k, column in enumerate(self.encoder.summary_.columns):
            if column.is_quantity and not column.has_missing:
                unseen, replaced = int(np.count_nonzero(is_missing(table.cells[k]))), "are replaced by the median"
            elif column.kind == "category" and not column.levels.rare_count:
                unseen, replaced = len(column.levels.unseen(table.cells[k])), "count as none of its levels"
            else:
                continue
            # chance that all these rows are of the target, if it and the unlabelled rows had the same distribution
            if unseen and (len(table) / (self.rows + len(table))) ** unseen < _MAX_P_VALUE:
                what = "no value" if column.is_quantity else "a level that the unlabelled source rows lack"
                warn(
                    f"{unseen} of {len(table)} rows of {table.name} have {what} in {table.column(k)}; they {replaced}. "
                    "Label shift does not allow this: check how the column was made, or drop it.",
                    ColumnWarning,
                )


def _encoder_of_numbers(table: Table, rows: Mask) -> TableEncoder:
    """Return the encoder that is fitted to some rows of a table of numbers, without a copy of the table."""
    encoder = TableEncoder()
    columns = []
    for k, values in enumerate(table.values.T):
        column = EncodedColumn.fit(table.column_name(k), values[rows].astype(np.float64), encoder.min_frequency)
        columns.append(column.to_header())
    return TableEncoder.from_header({"min_frequency": encoder.min_frequency, "named": True, "columns": columns})
