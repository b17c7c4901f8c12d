"""What an answer is: an estimate, its interval, and what it rests on."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from priorshift.formatting import decimals
from priorshift.result_tables import to_plain

_STATUS_NOTES = {
    "few positives": ", a guess from few positives",
    "no estimate": ", the data cannot tell",
}


@dataclass(frozen=True)
class Interval:
    """Interval for the target prior, inside [0, 1], or for the ratio of negatives, from 0 on.

    Attributes
    ----------
    low, high : float
        Its ends.
    confidence : float
        The nominal share of samples in which such an interval holds the truth.
    method : str
        How it was made; see :mod:`priorshift.inference.intervals`.

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
    def width(self) -> float:  # numpydoc ignore=RT01
        """Upper less lower end."""
        return self.high - self.low

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class NegativeRatio:
    """Estimated ratio of the shares of negatives, R = (1−π′)/(1−π), which needs no source prior.

    Attributes
    ----------
    value : float
        R̂; 1 is no shift, and NaN where the data give none.
    standard_error : float
        From the influence of every row.
    interval : Interval
        Of R, from 0 on; its upper end can be infinite.
    separation : float
        ‖μ_U − μ_P‖².
    sizes : tuple of three int
        Rows of the positive, the unlabelled and the target sample.

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
        """Give plain numbers and strings, ready for JSON; a number that does not exist is None.

        Returns
        -------
        dict
            With the names of the attributes.
        """
        plain: dict[str, Any] = to_plain(asdict(self))
        return plain

    def __str__(self) -> str:
        if not np.isfinite(self.value):
            return "no estimate of the ratio of negatives"
        digits = decimals(self.interval.width)
        ends = f"{self.interval.low:.{digits}f} to {self.interval.high:.{digits}f}"
        return f"ratio of negatives {self.value:.{digits}f}, {100 * self.interval.confidence:g}% interval {ends}"


@dataclass(frozen=True)
class PriorEstimate:
    """Estimated share of positives in the target population.

    Attributes
    ----------
    value : float
        The estimate of π′, in [0, 1]; NaN where the data give none.
    raw : float
        1 − (1−π)R as it is, before it was brought into [0, 1]: by TCPU to the nearer end, by WitnessShift to the mean
        of what is possible, which differs where R is poorly known.
    interval : Interval or None
        None where none was asked for, or the method cannot tell its error.
    standard_error : float
        Of `raw`, from the influence of every row or a bootstrap of them; NaN where it is not known. It includes the
        spread of a source prior that is a distribution; of a range, it is the sampling error at the middle. With an
        audit of the target, of `value`.
    source_prior : float
        The π that was used, of a range the middle and of a distribution the mean; NaN for a method that needs none.
    negative_ratio : float
        R = (1−π′)/(1−π), the share of negatives in the target over that in the source; NaN for a method without π.
        Of TCPU and WitnessShift it does not depend on π.
    separation : float
        ‖μ_U − μ_P‖², how far the positives lie from the source population, of KM2-LS from the target; NaN for a method
        without a kernel.
    method : str
        Name of the estimator.
    sizes : tuple of three int
        Rows of the positive, the unlabelled and the target sample.
    source_prior_by : str or None
        "given", "range" or "distribution" (whose ends or 2.5 and 97.5% points are the "source_prior_range" of
        `details`), or the name of the estimator that was asked; None for a method that needs no source prior. With an
        audit of the source it ends in "and audit", and is "audit" where that contradicts the rest.
    status : {"ok", "few positives", "no estimate"} or None
        Whether the data determine the prior. "few positives": the value is a guess. "no estimate": positives and
        unlabelled rows cannot be told apart, and every prior is possible. None for a method that does not judge it.
        Whether to publish the number is the verdict of :func:`diagnose`.
    details : dict
        Settings behind the number: kernel, bandwidth, statistic and so on; under "audit", what audits of the source and
        the target told by themselves.
    evidence : object
        What a picture of the estimate is drawn from (:mod:`priorshift.plots`), where that is more than these numbers;
        it is no part of `to_dict`.

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

    def excess(self, gamma: ArrayLike) -> NDArray[np.float64]:
        """Compute the paper's objective above its minimum, L(γ) − min L = ‖a‖²(γ − π̂′)².

        Parameters
        ----------
        gamma : array-like
            Where.

        Returns
        -------
        ndarray
            Of the shape of `gamma`.
        """
        return np.asarray(self.separation * (np.asarray(gamma, dtype=float) - self.raw) ** 2)

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers and strings, ready for JSON; a number that does not exist is None.

        Returns
        -------
        dict
            With the names of the attributes.
        """
        plain: dict[str, Any] = to_plain(asdict(replace(self, evidence=None)))
        del plain["evidence"]
        return plain

    def report(self, path: str | os.PathLike[str], *, title: str | None = None, command: str | None = None) -> None:
        """Write a page that can be forwarded: one HTML file for screen and paper, which needs no network.

        Parameters
        ----------
        path : str or path
            Of the file, which is written whole or not at all.
        title : str or None
            Its heading.
        command : str or None
            What is shown as the command that repeats it.
        """
        from priorshift.report import write

        write(self, path, title=title, command=command)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same: numbers that do not exist are alike, as NaNs by themselves are not."""
        return self.to_dict() == other.to_dict() if isinstance(other, PriorEstimate) else NotImplemented

    def __str__(self) -> str:
        digits = decimals(self.interval.width if self.interval is not None else self.value)
        words = (
            f"target prior {self.value:.{digits}f}" if np.isfinite(self.value) else "no estimate of the target prior"
        )
        if self.interval is not None:
            share = f"{100 * self.interval.confidence:g}%"
            words += f", {share} interval {self.interval.low:.{digits}f} to {self.interval.high:.{digits}f}"
        words += f" ({self._method_in_words()}"
        if np.isfinite(self.source_prior):
            words += f", source prior {self._source_prior_in_words()}"
        return words + _STATUS_NOTES.get(self.status or "", "") + ")"

    def _method_in_words(self) -> str:
        audited = self.details.get("audit", {}).get("target")
        if audited is None:
            return self.method
        alone = self.interval is not None and self.interval.method == "audit"
        return "audit" if alone else f"{self.method} and audit"

    def _source_prior_in_words(self) -> str:
        point, by = f"{self.source_prior:.3g}", self.source_prior_by
        ends, error = (self.details.get(f"source_prior_{name}") for name in ("range", "standard_error"))
        if by == "range" and ends:
            return " to ".join(f"{end:.3g}" for end in ends)
        if by == "distribution" and error:
            return f"{point} ± {error:.2g}"
        return point if by == "given" else f"{point} by {by}"
