"""Results for several classes in several targets: the shares of each target, and differences between targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

from priorshift import result_tables
from priorshift.class_priors import ClassPriors
from priorshift.errors import InputError
from priorshift.formatting import format_fixed, format_p_cell
from priorshift.inference.joint import EqualityTest, holm
from priorshift.inference.joint_mixtures import JointMixtures
from priorshift.named_results import NamedResults
from priorshift.results import Interval
from priorshift.warning_records import list_names


@dataclass(frozen=True)
class TargetDifference:
    """Difference between the shares of one class in two targets, second less first, and their ratio."""

    name: str  # of the class
    first: str
    second: str
    estimate: float  # from raw values
    interval: Interval  # inside [−1, 1]
    standard_error: float
    p_value: float  # of equal shares
    adjusted_p_value: float  # the same, by Holm's rule for all differences in the table
    ratio: float  # second over first, from raw values; NaN where one of them is not positive
    ratio_interval: Interval  # its upper end is infinite where the first share may be 0


@dataclass(frozen=True, eq=False)
class TargetDifferences:
    """Differences between targets by class, which print as a table."""

    differences: tuple[TargetDifference, ...]
    frame: str | None = None  # library of data frames for `to_frame`

    def __iter__(self) -> Any:
        return iter(self.differences)

    def __len__(self) -> int:
        return len(self.differences)

    def __getitem__(self, index: int) -> TargetDifference:
        return self.differences[index]

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each class and each pair of targets."""
        return [
            {
                "class": pair.name,
                "first": pair.first,
                "second": pair.second,
                "difference": pair.estimate,
                "low": pair.interval.low,
                "high": pair.interval.high,
                "standard_error": pair.standard_error,
                "p_value": pair.p_value,
                "adjusted_p_value": pair.adjusted_p_value,
                "ratio": pair.ratio,
                "ratio_low": pair.ratio_interval.low,
                "ratio_high": pair.ratio_interval.high,
            }
            for pair in self.differences
        ]

    def to_frame(self) -> Any:
        """Return :meth:`records` as a data frame of pandas or polars."""
        return result_tables.to_frame(self.records(), self.frame)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: one entry, "differences", a list of :meth:`records`."""
        return {"differences": [result_tables.to_plain(record) for record in self.records()]}

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Return the header and the cells of the printed table."""
        confidence = self[0].interval.confidence
        header = ("difference", "class", "estimate", f"{100 * confidence:g}% interval", "p", "adjusted p")
        rows = []
        for pair in self.differences:
            numbers = (pair.estimate, pair.interval.low, pair.interval.high)
            estimate, low, high = (format_fixed(number, 3, "+") for number in numbers)
            ps = format_p_cell(pair.p_value), format_p_cell(pair.adjusted_p_value)
            rows.append((f"{pair.second} − {pair.first}", pair.name, estimate, f"{low} to {high}", *ps))
        return header, rows

    def __str__(self) -> str:
        return result_tables.align_columns(*self._table())

    def _repr_html_(self) -> str:
        return result_tables.to_html(*self._table())


@dataclass(frozen=True, eq=False)
class ClassPriorsByTarget(NamedResults[ClassPriors]):
    """Mapping from the names of several targets to the shares of their classes, which prints as one table.

    Attributes
    ----------
    results : dict of str to ClassPriors
        Shares of the classes by target, in the order of the input, or of the dates or numbers of `by`.
    by, frame : str or None
        As in :class:`PriorEstimates`.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian_classes({"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1}, random_state=0)
    >>> targets = {"2023": s.unlabeled[:500], "2024": s.target}
    >>> known = {"a": 0.2, "b": 0.3}
    >>> priors = ps.estimate_priors(s.classes, s.unlabeled[500:], targets, source_prior=known, random_state=0)
    >>> print(priors)
    target  class  estimate    95% interval     all at once
    2023        a     0.218  0.135 to 0.292  0.118 to 0.307
    2023        b     0.279  0.186 to 0.363  0.166 to 0.379
    2023     rest     0.503  0.414 to 0.616  0.399 to 0.642
    2024        a     0.496  0.437 to 0.553  0.425 to 0.564
    2024        b     0.149  0.084 to 0.207  0.069 to 0.218
    2024     rest     0.355  0.292 to 0.433  0.282 to 0.452
    >>> print(priors.differences())
    difference   class  estimate      95% interval        p  adjusted p
    2024 − 2023      a    +0.278  +0.195 to +0.361  < 0.001     < 0.001
    2024 − 2023      b    −0.130  −0.203 to −0.057  < 0.001     < 0.001
    2024 − 2023   rest    −0.149  −0.238 to −0.059    0.001       0.001
    """

    joint: JointMixtures | None = field(default=None, repr=False)

    @property
    def confidence(self) -> float:
        """Confidence level of the intervals."""
        return next(iter(self.values())).confidence

    def differences(self, reference: Any = None, *, consecutive: bool = False) -> TargetDifferences:
        """Estimate the differences between the shares of each class in pairs of targets, and their ratios.

        The error of the source is common to all targets and largely cancels. Targets must be independent samples, apart
        from common groups.

        Parameters
        ----------
        reference : str or None
            Target that all others are compared with. Default: all pairs.
        consecutive : bool
            Compare each target with the one before it instead.

        Returns
        -------
        TargetDifferences
            By pair and class, with p-values of equal shares, also adjusted by Holm's rule.
        """
        joint, names = self._require_joint("differences"), list(self)
        if consecutive and reference is not None:
            raise InputError("reference and consecutive exclude each other; pass one of them.")
        if reference is not None and reference not in self:
            raise InputError(f"reference is {reference!r}, but the targets are {list_names(names)}; pass one of them.")
        if reference is not None:
            first = self._key(reference)
            pairs = [(first, name) for name in names if name != first]
        else:
            pairs = list(pairwise(names)) if consecutive else list(combinations(names, 2))
        composition = next(iter(self.values())).composition
        if composition is None:
            raise InputError("differences need several labelled classes; for one class pass its sample as positive.")
        compared = []
        for first, second in pairs:
            for k, name in enumerate(self[first]):
                arguments = names.index(first), names.index(second), composition, k, self.confidence
                compared.append((name, first, second, joint.difference(*arguments), joint.ratio(*arguments)))
        adjusted = holm([numbers[-1] for _, _, _, numbers, _ in compared])
        differences = []
        for (name, first, second, numbers, (ratio, ratio_ends)), adjusted_p in zip(compared, adjusted, strict=True):
            estimate, ends, error, p = numbers
            interval = Interval(*ends, self.confidence, "delta")
            ratio_interval = Interval(*ratio_ends, self.confidence, "Fieller")
            differences.append(
                TargetDifference(name, first, second, estimate, interval, error, p, adjusted_p, ratio, ratio_interval)
            )
        return TargetDifferences(tuple(differences), self.frame)

    def equality_test(self) -> EqualityTest:
        """Test whether all targets have the same shares, which needs no source prior.

        Returns
        -------
        EqualityTest
            Wald's χ² of the coefficients of the mixtures.
        """
        return self._require_joint("a test of equality").equality()

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each class of each target.

        Returns
        -------
        list of dict
            With "target", "target_rows" and the columns of :meth:`ClassPriors.records`.
        """
        rows = []
        for target, priors in self.items():
            first = {"target": target, "target_rows": next(iter(priors.values())).sizes[2]}
            rows += [{**first, **record} for record in priors.records()]
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; missing numbers are None.

        Returns
        -------
        dict
            "by"; "targets", for each name :meth:`ClassPriors.to_dict`; "equality", the test of equal shares or None;
            "differences", a list for all pairs of targets or None.
        """
        is_comparable = self.joint is not None and len(self) > 1
        return {
            "by": self.by,
            "targets": {target: priors.to_dict() for target, priors in self.items()},
            "equality": result_tables.to_plain(vars(self.equality_test())) if is_comparable else None,
            "differences": self.differences().to_dict()["differences"] if is_comparable else None,
        }

    def _require_joint(self, purpose: str) -> JointMixtures:
        """Return the joint error of the targets; raise an error without one, which says that `purpose` needs it."""
        if len(self) < 2:
            raise InputError(f"{purpose} need at least two targets, but there is one; pass more.")
        if self.joint is None:
            if any(priors.audited is not None for priors in self.values()):
                raise InputError(f"{purpose} need the joint error of all targets; leave out those that are audited.")
            raise InputError(f"{purpose} need several labelled classes; for one class pass its sample as positive.")
        return self.joint

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Return the header and the cells of the printed table."""
        rows, has_band = [], any(priors.band for priors in self.values())
        for target, priors in self.items():
            for name, cells in priors.cells().items():
                rows.append([target, name, *(cells if has_band else cells[:2])])
        header = [self.by or "target", "class", "estimate", f"{100 * self.confidence:g}% interval"]
        return [*header, "all at once"] if has_band else header, rows
