"""What is concluded of π′, and the ratio at which the conclusion turns.

R = (1−π′)/(1−π) is below 1 where π′ lies above π. Without a threshold the conclusion is on which side of π the target
lies; with one, on which side of it. It is open where the interval holds both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from priorshift.errors import InputError
from priorshift.inference.confidence_curve import ConfidenceCurve, TabulatedCurve
from priorshift.inference.prior_knowledge import DistributionPrior, PriorKnowledge
from priorshift.io.parameters import is_number
from priorshift.result_tables import to_plain


@dataclass(frozen=True)
class Conclusion:
    """On which side of a threshold, or of the source prior, the target prior lies.

    Attributes
    ----------
    threshold : float or None
        None is the source prior.
    side : {"above", "below", "open"}
        Where π′ lies; open where its interval holds both sides.
    ratio : float
        R̂.
    critical : float
        The ratio at which the conclusion turns: 1, or (1−t)/(1−π).
    value, low, high : float
        π̂′ and the ends of its interval.
    source_prior : float
        π.
    confidence : float
        Of the interval.
    ends : tuple of two float
        The interval of R that is compared with `critical`; its upper end can be infinite.
    """

    threshold: float | None
    side: Literal["above", "below", "open"]
    ratio: float
    critical: float
    value: float
    low: float
    high: float
    source_prior: float
    confidence: float
    ends: tuple[float, float]

    @property
    def half_width(self) -> float:  # numpydoc ignore=RT01
        """Half of the interval's width, as a difference of R."""
        return (self.high - self.low) / 2 / (1 - self.source_prior)

    @property
    def to_turn(self) -> float | None:  # numpydoc ignore=RT01
        """By how much R̂ must move for the estimate to lie at `critical`; None where there is nothing to turn."""
        if not np.isfinite(self.ratio) or (self.threshold is None and self.side == "open"):
            return None
        return self.critical - self.ratio

    @property
    def to_doubt(self) -> float | None:  # numpydoc ignore=RT01
        """By how much R̂ must move for the interval to reach `critical`; None where it is open already."""
        if self.side == "open":
            return None
        return self.critical - (self.ends[1] if self.side == "above" else self.ends[0])

    def __str__(self) -> str:
        what = "the source prior" if self.threshold is None else f"{self.threshold:g}"
        if self.side == "open":
            return f"whether the target prior lies above or below {what} is open"
        return f"the target prior lies {self.side} {what}"

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers.

        Returns
        -------
        dict
        """
        names = ("threshold", "side", "ratio", "critical", "value", "low", "high", "source_prior", "confidence")
        return to_plain({name: getattr(self, name) for name in names})


def conclusion(
    ratio: float,
    curve: TabulatedCurve,
    prior: PriorKnowledge,
    *,
    source_prior: float | None = None,
    threshold: float | None = None,
    confidence: float = 0.95,
) -> Conclusion:
    """Conclude on which side of a threshold, or of the source prior, the target prior lies.

    Parameters
    ----------
    ratio : float
        R̂.
    curve : TabulatedCurve
        The confidence distribution of R.
    prior : Known, Between or Distributed
        What is known of π.
    source_prior : float or None
        The π that the estimate uses; None is that of `prior`.
    threshold : float or None
        Strictly between 0 and 1; None is the source prior, whose own error does not matter then.
    confidence : float
        Of the interval.

    Returns
    -------
    Conclusion

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.inference.confidence_curve import TabulatedCurve
    >>> from priorshift.diagnosis.conclusion import conclusion
    >>> from priorshift.inference.prior_knowledge import PointPrior
    >>> r = np.linspace(0, 2, 201)
    >>> curve = TabulatedCurve.from_tests(r, statistic=(0.5 - r) / 0.05, freedom=np.full(201, np.inf))
    >>> print(conclusion(0.5, curve, PointPrior(0.2)))
    the target prior lies above the source prior
    >>> found = conclusion(0.5, curve, PointPrior(0.2), threshold=0.5)  # π′ is 0.6 ± 0.08
    >>> print(found, round(found.to_turn, 3), round(found.to_doubt, 3))  # R of 0.625 would turn it
    the target prior lies above 0.5 0.125 0.027
    """
    check_threshold(threshold)
    pi = prior.value if source_prior is None else source_prior
    value, low, high = target_prior(ratio, curve, prior, pi, confidence)
    keep = max(1 - pi, 1e-12)
    if threshold is None:
        critical, ends = 1.0, curve.quantiles(confidence)
    else:
        critical, ends = (1 - threshold) / keep, ((1 - high) / keep, (1 - low) / keep)
    side: Literal["above", "below", "open"] = "open"
    if np.isfinite(ratio):
        side = "above" if ends[1] < critical else "below" if ends[0] > critical else "open"
    return Conclusion(threshold, side, ratio, critical, value, low, high, pi, confidence, ends)


def target_prior(
    ratio: float, curve: ConfidenceCurve, prior: PriorKnowledge, source_prior: float, confidence: float
) -> tuple[float, float, float]:
    """Compute π̂′ and its interval, as an estimate has them.

    Parameters
    ----------
    ratio : float
        R̂.
    curve : ConfidenceCurve
        Of R; of a tabulated one the estimate is its mean inside [0, 1].
    prior : Known, Between or Distributed
        What is known of π.
    source_prior : float
        The π that the estimate uses.
    confidence : float
        Of the interval.

    Returns
    -------
    value, low, high : float
        NaN, 0 and 1 where there is no estimate.
    """
    if not (np.isfinite(ratio) and curve.is_known):
        return float("nan"), 0.0, 1.0
    if isinstance(curve, TabulatedCurve):
        moved = source_prior - prior.value
        if isinstance(prior, DistributionPrior):
            points, weights = prior.points
            value = curve.mean(np.clip(points + moved, 0.0, 1.0), weights)
        else:
            value = curve.mean(source_prior)
    else:
        value = min(max(1 - (1 - source_prior) * ratio, 0.0), 1.0)
    low, high = prior.interval(curve, confidence)
    return value, min(low, value), max(high, value)


def check_threshold(threshold: float | None) -> None:
    """Refuse what is no share.

    Parameters
    ----------
    threshold : float or None
        What was given.
    """
    if threshold is not None and not (is_number(threshold) and 0 < threshold < 1):
        raise InputError(
            f"threshold is {threshold!r}, but it must be a number strictly between 0 and 1, a target prior that "
            "matters, or None for the source prior."
        )
