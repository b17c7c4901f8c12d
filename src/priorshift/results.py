"""Results for one target: an estimate of its prior, its interval, and the ratio of negatives."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from priorshift import result_tables
from priorshift.formatting import decimals, format_range
from priorshift.reportable import Reportable
from priorshift.result_tables import to_plain

_WIDE = 0.2  # width above which an interval can be called open
EMPTY_WIDTH = 0.9  # width above which an interval says nothing
_MAINLY = 1.5  # an interval is left open if it is this many times as wide as with a known source prior
_STATUS_NOTES = {"few positives": ", a guess from few positives", "no estimate": ", the data cannot tell"}


@dataclass(frozen=True)
class Interval:
    """Confidence interval of the target prior, within [0, 1], or of the ratio of negatives, from 0 on.

    Attributes
    ----------
    low, high : float
        Ends of the interval.
    confidence : float
        Confidence level.
    method : str
        How the interval was computed, such as "delta" or "witness".

    Examples
    --------
    >>> from priorshift import Interval
    >>> interval = Interval(0.2, 0.35, confidence=0.95, method="delta")
    >>> 0.3 in interval, round(interval.width, 2)
    (True, 0.15)
    """

    low: float
    high: float
    confidence: float
    method: str

    @property
    def width(self) -> float:
        """Distance between the ends."""
        return self.high - self.low

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class NegativeRatio:
    """Estimated ratio of the shares of negatives in target and source, R = (1−π′)/(1−π), which needs no source prior.

    Attributes
    ----------
    value : float
        Estimate of R. 1 means no shift; NaN if it cannot be estimated.
    standard_error : float
        Standard error of `value`.
    interval : Interval
        Confidence interval of R; its upper end can be infinite.
    separation : float
        Squared distance between the positives and the source population, ‖μ_U − μ_P‖².
    sizes : tuple of three int
        Rows of the positive, unlabeled and target samples.

    Examples
    --------
    >>> from priorshift import KernelRatio, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, random_state=0)
    >>> ratio = KernelRatio().fit(s.X, s.y, shared=s.ids).negative_ratio(s.target)
    >>> print(ratio)
    ratio of negatives 0.493, 95% interval 0.450 to 0.535
    >>> 1 in ratio.interval  # no shift would be 1
    False
    """

    value: float
    standard_error: float
    interval: Interval
    separation: float
    sizes: tuple[int, int, int]

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as plain values for JSON; missing numbers are None.

        Returns
        -------
        dict
        """
        plain: dict[str, Any] = to_plain(asdict(self))
        return plain

    def __str__(self) -> str:
        if not np.isfinite(self.value):
            return "no estimate of the ratio of negatives"
        digits = decimals(self.interval.width)
        ends = f"{self.interval.low:.{digits}f} to {self.interval.high:.{digits}f}"
        return f"ratio of negatives {self.value:.{digits}f}, {100 * self.interval.confidence:g}% interval {ends}"

    def _repr_html_(self) -> str:
        return result_tables.text_to_html(str(self))


@dataclass(frozen=True)
class PriorEstimate(Reportable):
    """Estimated share of positives in the target population.

    Attributes
    ----------
    value : float
        Estimate of the target prior π′, in [0, 1]; NaN if it cannot be estimated.
    raw : float
        1 − (1−π)R, which `value` brings into [0, 1]; with a share ε of label errors (1−ε) − (1−ε−π)R. Average `raw`,
        not `value`, over a series of targets near 0 or 1.
    interval : Interval or None
        Confidence interval. None if it was not requested, or the method has no standard error.
    standard_error : float
        Standard error of `raw` (of `value` with an audit of the target); NaN if unknown. It includes the spread of a
        source prior that is a distribution; for a range, it is the sampling error at the middle.
    source_prior : float
        Source prior π that was used: the middle of a range, the mean of a distribution, the median
        of one that was estimated; NaN for a method without one.
    negative_ratio : float
        R = (1−π′)/(1−π), share of negatives in the target divided by that in the source; with label errors
        (1−ε−π′)/(1−ε−π). NaN for a method without π.
    separation : float
        Squared distance ‖μ_U − μ_P‖² between the positives and the source population (the target, for KM2-LS); NaN for
        a method without a kernel.
    method : str
        Name of the estimator.
    sizes : tuple of three int
        Rows of the positive, unlabeled and target samples.
    source_prior_by : str or None
        Origin of the source prior: "given", "range", "distribution" or the name of an estimator; with an audit of the
        source followed by "and audit", or "audit" alone if the two disagree. None for a method without one.
    status : {"ok", "few positives", "no estimate"} or None
        Whether the data determine the prior. "few positives": the value is a guess. "no estimate": positives and
        unlabelled rows cannot be told apart, and every prior is possible. None for a method that does not judge it.
        Whether to publish the number is the verdict of :func:`diagnose`.
    details : dict
        Settings of the method, such as kernel and bandwidth; "source_prior_range": the ends of a range or the 2.5% and
        97.5% points of a distribution; "label_error", "label_error_range" and "label_error_standard_error": the share
        of labelled rows that are not positive, if one was given; "negative_ratio_interval": the ends of the interval of
        R; "mean": the mean of all π′ in [0, 1], each as probable as R and π make it, for decisions; "audit": what the
        audits of source and target show by themselves.
    evidence : object
        Data for the pictures of the estimate (:mod:`priorshift.plots`). Not part of `to_dict`.

    Examples
    --------
    >>> from priorshift import Interval, PriorEstimate
    >>> print(PriorEstimate(
    ...     value=0.3, raw=0.3, interval=Interval(0.25, 0.35, 0.95, "delta"), standard_error=0.025,
    ...     source_prior=0.2, negative_ratio=0.875, separation=0.1, method="TCPU", sizes=(50, 250, 300)))
    target prior 0.300, 95% interval 0.250 to 0.350 (TCPU, source prior 0.2)
    """

    value: float
    raw: float
    interval: Interval | None
    standard_error: float
    source_prior: float
    negative_ratio: float
    separation: float
    method: str
    sizes: tuple[int, int, int]
    source_prior_by: str | None = "given"
    status: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    evidence: Any = field(default=None, repr=False, compare=False)

    @property
    def is_left_open(self) -> bool:
        """Whether an uncertain source prior leaves the target prior open: its interval is wide mainly for that reason.

        The ratio R and the interval are then the result; `value` is that at one of the possible source priors.
        """
        ends = self.details.get("negative_ratio_interval")
        is_audited = self.details.get("audit", {}).get("target") is not None
        if self.interval is None or not ends or None in ends or is_audited:
            return False
        if not self.details.get("source_prior_range"):  # a known source prior
            return False
        purity = 1 - self.details.get("label_error", 0.0)
        width_if_known = (purity - self.source_prior) * (ends[1] - ends[0])
        return bool(self.interval.width > max(_WIDE, _MAINLY * width_if_known))

    def excess(self, gamma: ArrayLike) -> NDArray[np.float64]:
        """Compute TCPU's objective above its minimum, L(γ) − min L = ‖a‖²(γ − π̂′)².

        Parameters
        ----------
        gamma : array-like
            Target priors.

        Returns
        -------
        ndarray
            One number for each target prior.
        """
        return np.asarray(self.separation * (np.asarray(gamma, dtype=float) - self.raw) ** 2)

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as plain values for JSON; missing numbers are None.

        Returns
        -------
        dict
        """
        plain: dict[str, Any] = to_plain(asdict(replace(self, evidence=None)))
        del plain["evidence"]
        return plain

    def numbers(self) -> dict[str, float]:
        """Return all numbers in one flat dictionary, as tools that track experiments take them.

        Returns
        -------
        dict of str to float
            Missing numbers are NaN.

        Examples
        --------
        >>> import priorshift as ps
        >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=200, n_target=200, random_state=0)
        >>> estimate = ps.TCPU(0.2).fit(s.X, s.y, shared=s.ids).estimate(s.target)
        >>> {name: round(number, 2) for name, number in estimate.numbers().items() if name in ("value", "low", "high")}
        {'value': 0.53, 'low': 0.43, 'high': 0.63}
        """
        missing = (np.nan, np.nan)
        low, high = (self.interval.low, self.interval.high) if self.interval is not None else missing
        ratio_low, ratio_high = self.details.get("negative_ratio_interval") or missing
        prior_low, prior_high = self.details.get("source_prior_range") or missing
        numbers = {
            "value": self.value, "low": low, "high": high, "raw": self.raw, "standard_error": self.standard_error,
            "negative_ratio": self.negative_ratio, "negative_ratio_low": ratio_low, "negative_ratio_high": ratio_high,
            "source_prior": self.source_prior, "source_prior_low": prior_low, "source_prior_high": prior_high,
            "rows_positive": self.sizes[0], "rows_unlabeled": self.sizes[1], "rows_target": self.sizes[2],
        }  # fmt: skip
        return {name: float("nan") if number is None else float(number) for name, number in numbers.items()}

    def to_frame(self) -> Any:
        """Return :meth:`numbers` and the method as a data frame of one row.

        Returns
        -------
        pandas or polars data frame
            Of the library that is installed; pandas if both are.
        """
        return result_tables.to_frame([{"method": self.method, "status": self.status, **self.numbers()}])

    def __eq__(self, other: object) -> bool:
        """Compare all attributes; unlike NaN, missing numbers are equal (None in `to_dict`)."""
        return self.to_dict() == other.to_dict() if isinstance(other, PriorEstimate) else NotImplemented

    def __str__(self) -> str:
        digits = decimals(self.interval.width if self.interval is not None else self.value)
        is_empty = self.interval is not None and self.interval.width > EMPTY_WIDTH
        has_value = np.isfinite(self.value) and not is_empty
        text = f"target prior {self.value:.{digits}f}" if has_value else "no estimate of the target prior"
        if self.interval is not None:
            ends, level = f"{self.interval.low:.{digits}f} to {self.interval.high:.{digits}f}", self.interval.confidence
            text += f", {100 * level:g}% interval {ends}"
            if self.is_left_open and not is_empty:
                low, high = self.details["negative_ratio_interval"]
                ratio = f"ratio of negatives {self.negative_ratio:.{digits}f}, {low:.{digits}f} to {high:.{digits}f}"
                if self.interval.high < 1:
                    ends = format_range(round(self.interval.low, digits), self.interval.high, f".{digits}f")
                text = f"target prior {ends} with {100 * level:g}% confidence"
                if "label_error" not in self.details:  # with label errors R is not the ratio of negatives
                    text += f"; {ratio}"
        text += f" ({self._method_in_words()}"
        if np.isfinite(self.source_prior):
            text += f", source prior {self._source_prior_in_words()}"
        if "label_error" in self.details:
            text += f", {self._label_error_in_words()} label errors"
        return text + _STATUS_NOTES.get(self.status or "", "") + ")"

    def _repr_html_(self) -> str:
        text = result_tables.text_to_html(str(self))
        shown = {name: f"{number:.4g}" for name, number in self.numbers().items() if np.isfinite(number)}
        return text + result_tables.to_html((), [(name.replace("_", " "), number) for name, number in shown.items()])

    def _method_in_words(self) -> str:
        """Return the name of the method, "audit" if only an audit of the target was used, or both as "… and audit"."""
        if self.details.get("audit", {}).get("target") is None:
            return self.method
        is_audit_alone = self.interval is not None and self.interval.method == "audit"
        return "audit" if is_audit_alone else f"{self.method} and audit"

    def _label_error_in_words(self) -> str:
        """Return the share of label errors as a percentage, a range of them, or one with its error."""
        value, ends, origin = (self.details[f"label_error{name}"] for name in ("", "_range", "_by"))
        if origin == "range":
            low, high = (f"{100 * end:.3g}" for end in ends)
            return f"at most {high}%" if ends[0] <= 0 else f"{low} to {high}%"
        if origin == "distribution":
            return f"{100 * value:.3g} ± {100 * self.details['label_error_standard_error']:.2g}%"
        return f"{100 * value:.3g}%"

    def _source_prior_in_words(self) -> str:
        """Return the source prior as a number, a range, or a number with its error or its estimator."""
        point, origin = f"{self.source_prior:.3g}", self.source_prior_by
        ends, error = self.details.get("source_prior_range"), self.details.get("source_prior_standard_error")
        if origin == "range" and ends:
            return format_range(*ends)
        if origin == "distribution" and error:
            return f"{point} ± {error:.2g}"
        if self.is_left_open and ends:
            return f"{format_range(ends[0], ends[1], '.2g')} by {origin}"
        return point if origin == "given" else f"{point} by {origin}"
