"""Results for several targets: an estimate for each, and their differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any, overload

import numpy as np

from priorshift import plots, result_tables
from priorshift.errors import InputError
from priorshift.formatting import format_fixed, format_p_cell
from priorshift.inference.joint import Difference, EqualityTest, JointRatios, holm
from priorshift.io.parameters import check_settings
from priorshift.named_results import NamedResults
from priorshift.results import Interval, PriorEstimate
from priorshift.warning_records import list_names


@dataclass(frozen=True, eq=False)
class Differences(Sequence[Difference]):
    """Differences between targets, which print as a table."""

    differences: tuple[Difference, ...]
    frame: str | None = None  # library of data frames for `to_frame`

    @overload
    def __getitem__(self, index: int) -> Difference: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Difference]: ...
    def __getitem__(self, index: int | slice) -> Difference | Sequence[Difference]:
        return self.differences[index]

    def __len__(self) -> int:
        return len(self.differences)

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each difference."""
        return [
            {
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
            for pair in self
        ]

    def to_frame(self) -> Any:
        """Return :meth:`records` as a data frame of pandas or polars."""
        return result_tables.to_frame(self.records(), self.frame)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: one entry, "differences", a list of :meth:`records`."""
        return {"differences": [result_tables.to_plain(record) for record in self.records()]}

    def __str__(self) -> str:
        return result_tables.align_columns(*self._table())

    def _repr_html_(self) -> str:
        return result_tables.to_html(*self._table())

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Return the header and the cells of the printed table."""
        header = ("difference", "estimate", f"{100 * self[0].interval.confidence:g}% interval", "p", "adjusted p")
        rows = []
        for pair in self:
            estimate, low, high = (
                format_fixed(number, 3, "+") for number in (pair.estimate, pair.interval.low, pair.interval.high)
            )
            ps = format_p_cell(pair.p_value), format_p_cell(pair.adjusted_p_value)
            rows.append((f"{pair.second} − {pair.first}", estimate, f"{low} to {high}", *ps))
        return header, rows


@dataclass(frozen=True, eq=False)
class PriorEstimates(NamedResults[PriorEstimate]):
    """Mapping from the names of several targets to their estimates, which prints as a table.

    Attributes
    ----------
    results : dict of str to PriorEstimate
        Estimates in the order of the targets.
    joint : JointRatios or None
        Joint error of targets of one source; None if the method has none, an estimate has no interval, or the targets
        are strata.
    band : dict of str to Interval, or None
        Simultaneous intervals, which contain all target priors at once with their confidence.
    by : str or None
        Column whose values are the names of the targets.
    pooled : PriorEstimate or None
        Estimate of the whole target, if the targets are its strata.
    frame : str or None
        Library of data frames for :meth:`to_frame`, "pandas" or "polars". Default: what is installed.

    Examples
    --------
    >>> import priorshift as ps
    >>> source = ps.simulate.gaussian(0.2, 0.5, n_source=1000, n_target=2, shared=False, random_state=0)
    >>> months = {f"2024-{k:02}": ps.simulate.gaussian(0.2, prior, 10, 600, shared=False, random_state=k).target
    ...           for k, prior in enumerate((0.2, 0.2, 0.5), start=1)}
    >>> estimates = ps.estimate_priors(source.positive, source.unlabeled, months, source_prior=0.2, random_state=0)
    >>> print(estimates)
    target   rows  estimate    95% interval     all at once
    2024-01   600     0.186  0.131 to 0.239  0.119 to 0.250
    2024-02   600     0.201  0.146 to 0.255  0.134 to 0.266
    2024-03   600     0.477  0.425 to 0.528  0.414 to 0.539
    >>> print(estimates.differences(consecutive=True))
    difference         estimate      95% interval        p  adjusted p
    2024-02 − 2024-01    +0.015  −0.041 to +0.070    0.598       0.598
    2024-03 − 2024-02    +0.276  +0.212 to +0.340  < 0.001     < 0.001
    >>> print(estimates.equality_test())
    equal priors: χ² = 104.2 on 2 degrees of freedom, p < 0.0001
    """

    joint: JointRatios | None = field(default=None, repr=False)
    band: dict[str, Interval] | None = None
    pooled: PriorEstimate | None = None

    @property
    def confidence(self) -> float:
        """Confidence level of the intervals; NaN if there are none."""
        for estimate in self.values():
            if estimate.interval is not None:
                return estimate.interval.confidence
        return float("nan")

    def differences(
        self, reference: Any = None, *, consecutive: bool = False, confidence: float | None = None
    ) -> Differences:
        """Estimate differences between the priors of pairs of targets, and their ratios.

        The error of the source is common to all targets and largely cancels, so that a difference is often more precise
        than either estimate. Targets must be independent samples without common rows.

        Parameters
        ----------
        reference : str or None
            Target that all others are compared with. Default: all pairs.
        consecutive : bool
            Compare each target with the one before it instead.
        confidence : float or None
            Confidence level of each interval. Default: that of the estimates.

        Returns
        -------
        Differences
            With p-values of equality, which need no source prior, also adjusted by Holm's rule.
        """
        joint = self._require_joint("differences")
        names = list(self)
        position = {name: k for k, name in enumerate(names)}
        if consecutive and reference is not None:
            raise InputError("reference and consecutive exclude each other; pass one of them.")
        if reference is not None:
            if reference not in self:
                raise InputError(
                    f"reference is {reference!r}, but the targets are {list_names(names)}; pass one of them."
                )
            first = self._key(reference)
            pairs = [(first, name) for name in names if name != first]
        else:
            pairs = list(pairwise(names)) if consecutive else list(combinations(names, 2))
        if confidence is None:
            confidence = self.confidence
        else:
            check_settings({"confidence": confidence})
        compared = [joint.difference(position[first], position[second], confidence) for first, second in pairs]
        adjusted_ps = holm([p for _, _, _, p in compared])
        differences = []
        for (first, second), numbers, adjusted_p in zip(pairs, compared, adjusted_ps, strict=True):
            ratio = joint.prevalence_ratio(position[first], position[second], confidence)
            differences.append(Difference(first, second, *numbers, adjusted_p, *ratio))
        return Differences(tuple(differences), self.frame)

    def equality_test(self) -> EqualityTest:
        """Test whether all targets have the same prior, which needs no source prior.

        Returns
        -------
        EqualityTest
            Wald's χ² of the ratios of negatives.
        """
        return self._require_joint("a test of equality").equality()

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each target.

        Returns
        -------
        list of dict
            With "target", "rows", "estimate", the ends of interval and band, and other numbers of the estimate.
        """
        nan = float("nan")
        rows = []
        for name, estimate in self.items():
            interval, band = estimate.interval, self.band[name] if self.band else None
            rows.append({
                "target": name,
                "rows": estimate.sizes[2],
                "estimate": estimate.value,
                "low": interval.low if interval else nan,
                "high": interval.high if interval else nan,
                "band_low": band.low if band else nan,
                "band_high": band.high if band else nan,
                "standard_error": estimate.standard_error,
                "raw": estimate.raw,
                "negative_ratio": estimate.negative_ratio,
                "source_prior": estimate.source_prior,
            })  # fmt: skip
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; missing numbers are None.

        Returns
        -------
        dict
            "by"; "targets", for each name :meth:`PriorEstimate.to_dict` and the band; "equality", the test or None;
            "pooled", the estimate of the whole target or None.
        """
        targets = {name: estimate.to_dict() | {"band": None} for name, estimate in self.items()}
        for name, band in (self.band or {}).items():
            targets[name]["band"] = [band.low, band.high]
        is_comparable = self.joint is not None and len(self) > 1
        test = self.equality_test() if is_comparable else None
        return {
            "by": self.by,
            "targets": targets,
            "equality": None if test is None else result_tables.to_plain(vars(test)),
            "pooled": None if self.pooled is None else self.pooled.to_dict(),
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the estimates as a series with intervals and band.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Where to draw. Default: a new figure.

        Returns
        -------
        matplotlib Axes
        """
        return plots.series(self, ax)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the cells of the printed table; the last row, "all", is the whole target of strata."""
        header, rows = [self.by or "target", "rows", "estimate"], []
        has_intervals = np.isfinite(self.confidence)
        if has_intervals:
            header.append(f"{100 * self.confidence:g}% interval")
        if self.band:
            header.append("all at once")
        has_open = any(estimate.is_left_open for estimate in self.values())
        if has_open:  # the source prior leaves targets open, and the ratio does not need it
            header.append("ratio of negatives")
        named_estimates = list(self.items())
        if self.pooled is not None:
            named_estimates.append(("all", self.pooled))
        for name, estimate in named_estimates:
            value, interval = estimate.value, estimate.interval
            number = "open" if estimate.is_left_open else f"{value:.3f}" if np.isfinite(value) else "none"
            row = [name, f"{estimate.sizes[2]}", number]
            if has_intervals:
                row.append(f"{interval.low:.3f} to {interval.high:.3f}" if interval else "")
            if self.band:
                band = None if estimate is self.pooled else self.band.get(name)
                row.append(f"{band.low:.3f} to {band.high:.3f}" if band else "")
            if has_open:
                ends = estimate.details.get("negative_ratio_interval")
                row.append(f"{estimate.negative_ratio:.3f}, {ends[0]:.3f} to {ends[1]:.3f}" if ends else "")
            rows.append(row)
        return header, rows

    def _require_joint(self, purpose: str) -> JointRatios:
        """Return the joint error of the targets; raise an error without one, which says that `purpose` needs it."""
        if self.pooled is not None:
            raise InputError(
                f"{purpose} need targets of one source, but each stratum has its own; compare their intervals."
            )
        if self.joint is None:
            first, *_ = self.values()
            raise InputError(
                f"{purpose} need the joint error of all targets, which these estimates by {first.method} do not have; "
                "use method 'witness' or 'tcpu' with an interval and without pairs, and leave out targets that are "
                "audited or have no estimate."
            )
        if len(self) < 2:
            [only] = self
            raise InputError(f"{purpose} need at least two targets, but there is only {only!r}; pass more.")
        return self.joint
