"""Results for several classes: the share of each class in a target, their joint error, and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from priorshift import result_tables
from priorshift.arrays import Floats
from priorshift.class_source import REST
from priorshift.errors import InputError
from priorshift.inference.affine_mixture import AffineMixture
from priorshift.inference.class_audit import AuditedClasses
from priorshift.inference.composition import Composition
from priorshift.inference.contrasts import difference_interval, difference_p_value, ratio_interval
from priorshift.io.parameters import is_number
from priorshift.named_results import NamedResults
from priorshift.results import Interval, PriorEstimate

_SUM = 1e-6  # error of the sum of shares that rounding may leave


@dataclass(frozen=True)
class ClassDifference:
    """Difference between the shares of two classes in one target, first less second, and their ratio."""

    first: str
    second: str
    estimate: float
    interval: Interval  # inside [−1, 1]
    standard_error: float
    p_value: float  # of equal shares
    ratio: float  # first over second; NaN if one of them is not positive
    ratio_interval: Interval  # its upper end is infinite where the second share may be 0


@dataclass(frozen=True, eq=False)
class ClassPriors(NamedResults[PriorEstimate]):
    """Mapping from the names of classes to their shares in the target population, which prints as a table.

    Attributes
    ----------
    results : dict of str to PriorEstimate
        Estimates in the order of the classes; the last is "rest", unless every class is labelled. The values are not
        negative and add up to 1; ``raw`` may be negative.
    band : dict of str to Interval
        Simultaneous intervals, which contain the shares of all classes at once with their confidence.
    covariance : ndarray of shape (classes, classes)
        Covariance of the raw estimates, at the best guess of the source priors.
    by, frame : str or None
        As in :class:`PriorEstimates`.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian_classes({"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1}, random_state=0)
    >>> priors = ps.MulticlassShift({"a": 0.2, "b": 0.3}, random_state=0).fit(s.X, s.y).estimate(s.target)
    >>> print(priors)
    class  rows  estimate    95% interval     all at once  source prior
    a       200     0.501  0.450 to 0.552  0.440 to 0.562           0.2
    b       200     0.146  0.096 to 0.194  0.085 to 0.203           0.3
    rest            0.353  0.302 to 0.411  0.292 to 0.424           0.5
    >>> round(priors["a"].value, 3), priors.contains({"a": 0.5, "b": 0.1})
    (0.501, True)
    """

    band: dict[str, Interval] = field(default_factory=dict)
    covariance: Floats = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    mixture: AffineMixture | None = field(default=None, repr=False)
    composition: Composition | None = field(default=None, repr=False)
    audited: AuditedClasses | None = field(default=None, repr=False)  # the target's audit; None without one

    kind: ClassVar[str] = "class"

    @classmethod
    def from_binary(cls, name: str, estimate: PriorEstimate, frame: str | None = None) -> ClassPriors:
        """Build the result of one labelled class from its estimate: the rest has the share that is missing to 1.

        Parameters
        ----------
        name : str
            Name of the labelled class.
        estimate : PriorEstimate
            Share of this class in the target.
        frame : str or None
            Library of data frames for `to_frame`.

        Returns
        -------
        ClassPriors
        """
        interval, details = estimate.interval, estimate.details
        if interval is not None:
            interval = replace(interval, low=1 - interval.high, high=1 - interval.low)
        rest = replace(
            estimate,
            value=1 - estimate.value,
            raw=1 - estimate.raw,
            interval=interval,
            source_prior=1 - estimate.source_prior,
            sizes=(0, *estimate.sizes[1:]),
            details={key: details[key] for key in ("scenario", "standardize", "columns") if key in details},
            evidence=None,
        )
        covariance = estimate.standard_error**2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
        return cls({name: estimate, REST: rest}, covariance=covariance, frame=frame)

    @property
    def confidence(self) -> float:
        """Confidence level of the intervals."""
        for estimate in self.values():
            if estimate.interval is not None:
                return estimate.interval.confidence
        return float("nan")

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficients b of the target as a mixture of samples, which need no source prior.

        They are those of the labelled classes and, with a rest, of the source population under "source": R = π′_0/π_0
        (under "source population" if a class has that name).
        """
        names = [name for name in self if name != REST]
        if REST in self:
            names.append("source" if "source" not in names else "source population")
        return dict(zip(names, self._joint()[0].coefficients.tolist(), strict=True))

    def p_value(self, shares: Any) -> float:
        """Compute the p-value of the hypothesis that all classes have these shares.

        Parameters
        ----------
        shares : mapping of str to float
            Share of each class; that of one class may be left out, and is then what is missing to 1.

        Returns
        -------
        float
            The joint region of all classes, at the confidence 1 − α, contains the shares whose p-value is at least α.
            For source priors that are uncertain it is the largest p-value of all possible cases, so that the region
            of a range is connected. With an audit of the target it relies on the labels alone.
        """
        values = self._read_shares(shares)
        if self.audited is not None:
            return self.audited.audit.p_value(values)
        mixture, composition = self._joint()
        cases = composition.region_cases  # θ = Wᵀb in each case
        coefficients = np.linalg.solve(np.swapaxes(cases, 1, 2), np.broadcast_to(values, cases.shape[:2])[..., None])
        return float(mixture.p_value(coefficients[..., 0]).max())

    def contains(self, shares: Any) -> bool:
        """Return whether the joint region of all classes contains these shares.

        Parameters
        ----------
        shares : mapping of str to float
            As in :meth:`p_value`.

        Returns
        -------
        bool
        """
        return self.p_value(shares) >= 1 - self.confidence

    def differences(self) -> list[ClassDifference]:
        """Estimate the differences between the shares of all pairs of classes, and their ratios.

        Returns
        -------
        list of ClassDifference
            From raw estimates. Intervals and p-values hold for all source priors that are possible; standard errors are
            those at the best guess. If the target was audited, they are from the audited estimates, with
            the error of labels and tables combined, so that unlike single intervals they also assume label shift.
        """
        names = list(self)
        kind = "raw" if self.audited is None else "value"
        shares = np.array([getattr(estimate, kind) for estimate in self.values()])
        differences = []
        for i, j in combinations(range(len(names)), 2):
            contrast = np.zeros(len(names))
            contrast[[i, j]] = 1, -1
            estimate = float(contrast @ shares)
            error = float(np.sqrt(max(float(contrast @ self.covariance @ contrast), 0.0)))
            ends, ratio_ends, p = self._compare(i, j, shares)
            ratio = float(shares[i] / shares[j]) if min(shares[i], shares[j]) > 0 else float("nan")
            interval = Interval(*ends, self.confidence, "delta")
            ratio_interval = Interval(*ratio_ends, self.confidence, "Fieller")
            differences.append(ClassDifference(names[i], names[j], estimate, interval, error, p, ratio, ratio_interval))
        return differences

    def _compare(self, i: int, j: int, shares: Floats) -> tuple[tuple[float, float], tuple[float, float], float]:
        """Return the intervals of difference and ratio of two classes, and the p-value, in all possible cases."""
        own = next(iter(self.values())).interval
        if self.mixture is None and own is not None and self.audited is None:  # of one class, and the rest
            difference = 2 * own.low - 1, 2 * own.high - 1
            odds = [end / (1 - end) if end < 1 else float("inf") for end in (own.low, own.high)]
            p_value = _p_value_by_interval(float(shares[i] - shares[j]), difference, own.confidence)
            return difference, (odds[0], odds[1]), p_value
        if self.mixture is None or self.composition is None or self.audited is not None:
            b, C = shares, self.covariance
            alternatives: tuple[Floats, ...] = (np.eye(len(shares))[None],)
        else:
            b, C, alternatives = self.mixture.coefficients, self.mixture.covariance, self.composition.alternatives
        ends, ratio_ends = [], []
        for cases in alternatives:
            pair = cases[:, :, [i, j]]
            ends.append(difference_interval(pair[..., 0] - pair[..., 1], b, C, self.confidence))
            covariances = np.einsum("csi,st,ctj->cij", pair, C, pair)
            ratio_ends.append(ratio_interval(np.einsum("csi,s->ci", pair, b), covariances, self.confidence))
        (low, high), (ratio_low, ratio_high) = (
            (min(low for low, _ in found), max(high for _, high in found)) for found in (ends, ratio_ends)
        )
        contrasts = [cases[:, :, i] - cases[:, :, j] for cases in alternatives]
        return (low, high), (ratio_low, ratio_high), difference_p_value(contrasts, b, C)

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each class.

        Returns
        -------
        list of dict
            With "class", "rows" (labelled ones), "estimate", the ends of interval and band, and other numbers.
        """
        nan = float("nan")
        rows = []
        for name, estimate in self.items():
            interval, band = estimate.interval, self.band.get(name)
            rows.append({
                "class": name,
                "rows": estimate.sizes[0],
                "estimate": estimate.value,
                "low": interval.low if interval else nan,
                "high": interval.high if interval else nan,
                "band_low": band.low if band else nan,
                "band_high": band.high if band else nan,
                "standard_error": estimate.standard_error,
                "raw": estimate.raw,
                "source_prior": estimate.source_prior,
            })  # fmt: skip
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; missing numbers are None.

        Returns
        -------
        dict
            "classes", for each name :meth:`PriorEstimate.to_dict` and the band; "covariance"; "coefficients".
        """
        classes = {name: estimate.to_dict() | {"band": None} for name, estimate in self.items()}
        for name, band in self.band.items():
            classes[name]["band"] = [band.low, band.high]
        coefficients = None if self.mixture is None else self.coefficients
        plain = {"classes": classes, "covariance": self.covariance.tolist(), "coefficients": coefficients}
        return dict(result_tables.to_plain(plain))

    def _joint(self) -> tuple[AffineMixture, Composition]:
        """Return the joint estimate of the mixture and what the samples consist of; raise an error without one."""
        if self.mixture is None or self.composition is None:
            raise InputError("one labelled class has no joint error of classes; use its estimate and interval.")
        return self.mixture, self.composition

    def _read_shares(self, shares: Any) -> Floats:
        """Return the share of each class in the order of the result; refuse unknown classes, and a sum other than 1."""
        if not isinstance(shares, Mapping):
            raise InputError(f"shares is {shares!r}, but a mapping of classes to shares is expected.")
        for name, share in shares.items():
            if not is_number(share) or not 0 <= share <= 1:
                raise InputError(f"the share of {name!r} is {share!r}, but a number from 0 to 1 is expected.")
        unknown = [name for name in shares if name not in self]
        missing = [name for name in self if name not in shares]
        if unknown or len(missing) > 1:
            what = f"has {unknown[0]!r}" if unknown else f"lacks {missing[0]!r} and {missing[1]!r}"
            raise InputError(f"shares {what}, but the classes are {', '.join(map(repr, self))}; pass all but one.")
        total = float(sum(shares.values()))
        values = dict(shares) | ({missing[0]: 1 - total} if missing else {})
        if abs(total - 1) > _SUM and (not missing or total > 1):
            raise InputError(f"shares add up to {total:.4g}, but 1 is expected.")
        return np.array([float(values[name]) for name in self])

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Return the header and the cells of the printed table."""
        header = ["class", "rows", "estimate", f"{100 * self.confidence:g}% interval"]
        if self.band:
            header.append("all at once")
        header.append("source prior")
        rows = []
        for name, cells in self.cells().items():
            size, source_prior = self[name].sizes[0], self[name].source_prior
            row = [name, f"{size}" if size else "", *(cells if self.band else cells[:2])]
            rows.append([*row, f"{source_prior:.3g}" if np.isfinite(source_prior) else ""])
        return header, rows

    def cells(self) -> dict[str, tuple[str, str, str]]:
        """Return the estimate, the interval and the band of each class as text for a table.

        Returns
        -------
        dict of str to tuple of three str
            By class.
        """
        found = {}
        is_open = any(estimate.is_left_open for estimate in self.values())
        for name, estimate in self.items():
            interval, band = estimate.interval, self.band.get(name)
            number = "open" if is_open else f"{estimate.value:.3f}" if np.isfinite(estimate.value) else "none"
            ends = f"{interval.low:.3f} to {interval.high:.3f}" if interval else ""
            found[name] = number, ends, f"{band.low:.3f} to {band.high:.3f}" if band else ""
        return found


def _p_value_by_interval(estimate: float, ends: tuple[float, float], confidence: float) -> float:
    """Return the p-value of 0 as if the interval were that of a normal distribution on each side of the estimate."""
    end = ends[0] if estimate > 0 else ends[1]
    if estimate == 0 or end == estimate:
        return 1.0 if estimate == 0 else 0.0
    return float(2 * ndtr(ndtri((1 - confidence) / 2) * abs(estimate / (estimate - end))))
