"""Base of results that are mappings from names to results: several targets, or several classes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from priorshift import result_tables
from priorshift.io.targets import target_name
from priorshift.reportable import Reportable
from priorshift.warning_records import list_names

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class NamedResults(Reportable, Mapping[str, Result]):
    """Results by name, of targets or of classes, which print as a table: the base of PriorEstimates and others."""

    kind: ClassVar[str] = "target"  # what the names are names of

    results: dict[str, Result]
    by: str | None = field(default=None, kw_only=True)  # column whose values are the names of the targets
    frame: str | None = field(default=None, kw_only=True, repr=False)  # library of data frames for `to_frame`

    def __getitem__(self, name: Any) -> Result:
        """Return the result of a name, which may be a number or a date, as in the input."""
        key = self._key(name)
        if key not in self.results:
            plural = "classes" if self.kind == "class" else f"{self.kind}s"
            raise KeyError(f"no {self.kind} {name!r}; the {plural} are {list_names(list(self))}")
        return self.results[key]

    def _key(self, name: Any) -> str:
        """Return a name as it is stored."""
        # a name that is stored stays as it is, since a file may be called NA.csv
        return name if isinstance(name, str) and name in self.results else target_name(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """Return a row for each name.

        Returns
        -------
        list of dict
        """

    @abstractmethod
    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Return the header and the cells of the printed table."""

    def __str__(self) -> str:
        return result_tables.align_columns(*self._table())

    def _repr_html_(self) -> str:
        return result_tables.to_html(*self._table())

    def to_frame(self) -> Any:
        """Return :meth:`records` as a data frame.

        Returns
        -------
        pandas or polars data frame
            Of the library that the tables came in; pandas, if it is installed, for files and arrays.
        """
        return result_tables.to_frame(self.records(), self.frame)

    def to_csv(self, *, separator: str = ",", decimal: str = ".") -> str:
        """Return :meth:`records` as CSV text with a header.

        Parameters
        ----------
        separator : str
            Between cells. Default a comma; Excel expects a semicolon where numbers have decimal commas.
        decimal : str
            Decimal mark of numbers. Default a point.

        Returns
        -------
        str
        """
        return result_tables.to_csv(self.records(), separator, decimal)
