"""Is π′ identified? What the three tables determine: π′, the ratio R alone, or nothing.

R needs no π, and is determined wherever P can be distinguished from U. π′ = 1 − (1−π)R needs π, for which the tables
give an upper bound that is as good as the classes are separated. So there is always R with its interval, and where π is
not known π′ is a range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from priorshift.diagnosis.parts import DiagnosisInput, TextReport
from priorshift.errors import PriorShiftWarning
from priorshift.formatting import decimals, range_decimals
from priorshift.inference.prior_knowledge import PointPrior
from priorshift.methods.witness_shift import WitnessShift
from priorshift.problem import Source
from priorshift.source_prior.mixture_prior import MixturePrior
from priorshift.warning_records import suppress_warnings

_KM2_ROWS = 1000  # of an estimate that only serves for comparison
_TAIL = 0.005  # of the distribution of π from the tables alone, beyond which a given π contradicts them
_MOST_SHARE = 0.5  # of the variance of π̂′: if more comes from π, the tables determine R alone
_NARROW = 0.1  # width of the interval of π′ that is narrow enough, wherever it comes from
_GIVEN = ("given", "range", "distribution")

Level = Literal["prior", "ratio", "nothing"]


@dataclass(frozen=True)
class Identification(TextReport):
    """What the three tables determine of π′."""

    level: Level  # π′ itself, R and a range of π′, or nothing
    separation: float  # of P from U, in standard errors
    overlap: float  # probability that a negative scores above a positive, 1 − AUC
    positives: int  # labelled rows
    effective_positives: float  # effective number of independent labelled rows
    source_prior: float  # π in use; the middle of a range
    source_prior_by: str | None  # as in PriorEstimate
    source_prior_range: tuple[float, float]
    range_from_tables: tuple[float, float]  # 95% range of π from the tables alone
    estimators: dict[str, float]  # estimates of π from the same rows; "largest" is the upper bound by the scores
    contradicted: bool  # whether a given π is hardly possible by the tables alone
    variance_from_prior: float  # share of π̂′'s variance that comes from π
    ratio: float  # R̂
    ratio_low: float
    ratio_high: float
    target_low: float  # of π′, over all possible π
    target_high: float
    confidence: float

    @property
    def disagreement(self) -> float:
        """Difference of the largest and the smallest estimate of π."""
        values = [value for name, value in self.estimators.items() if name != "largest" and np.isfinite(value)]
        return max(values) - min(values) if len(values) > 1 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON, and the text as "sentence"."""
        return super().to_dict() | {"sentence": str(self)}

    @property
    def given(self) -> bool:
        """Whether π, a range or a distribution was given, and not estimated from the tables."""
        return self.source_prior_by in _GIVEN

    @property
    def source_prior_text(self) -> str:
        """The given π, or its range."""
        is_point = self.source_prior_by == "given"
        return f"{self.source_prior:.3g}" if is_point else format_range(self.source_prior_range)

    @property
    def text(self) -> str:
        """The sentences of this part, one line each, not wrap_lines."""
        if self.level == "nothing":
            return (
                "The positives can hardly be distinguished from the population (their separation is "
                f"{max(self.separation, 0.0):.1f} standard errors), so neither the ratio of negatives nor the target "
                "prior can be estimated."
            )
        digits, from_tables = decimals(self.ratio_high - self.ratio_low), format_range(self.range_from_tables)
        ratio = f"R is {self.ratio:.{digits}f} ({self.ratio_low:.{digits}f} to {self.ratio_high:.{digits}f})"
        by = "as given" if self.given else f"by {self.source_prior_by}"
        prior = f"{self.source_prior_text} {by}"
        if self.level == "ratio":
            text = (
                f"{ratio} whatever the source prior is. The source prior is only known to be {prior}, so the target "
                f"prior is a range, {self.target_low:.2f} to {self.target_high:.2f}."
            )
        else:
            text = f"{ratio}. Together with the source prior ({prior}) it determines the target prior."
        alone = f"From the tables alone, the source prior could be {from_tables}"
        if self.contradicted:
            return f"{text} {alone}, which contradicts it."
        return f"{text} {alone}." if self.given else text


def identify(estimator: WitnessShift, inputs: DiagnosisInput) -> Identification:
    """Determine what the tables say about π and π′."""
    fit, source = inputs.fit, inputs.source
    estimate, prior, test = fit.estimate, fit.prior, fit.test
    from_tables, others = _prior_from_tables(estimator, source)
    low, high = (float(end) for end in prior.range)
    ratio_error = test.ratio_error * (1 - prior.value)
    prior_error = test.ratio * prior.error if np.isfinite(test.ratio) else 0.0
    if not isinstance(prior, PointPrior) and prior.error == 0:  # a range, as a uniform distribution
        prior_error = test.ratio * (high - low) / np.sqrt(12)
    total = ratio_error**2 + prior_error**2
    share = float(prior_error**2 / total) if np.isfinite(total) and total > 0 else 0.0
    interval = estimate.interval
    target_low, target_high = (interval.low, interval.high) if interval else (0.0, 1.0)
    level: Level = "prior"
    if not fit.is_separable or estimate.status == "no estimate":
        level = "nothing"
    elif interval is None or (share > _MOST_SHARE and target_high - target_low > _NARROW):
        level = "ratio"
    least, most = (float(end) for end in from_tables.prior_distribution_.ppf([_TAIL, 1 - _TAIL]))
    given = estimate.source_prior_by in _GIVEN
    ratio_low, ratio_high = fit.curve.quantiles(inputs.confidence) if fit.is_separable else (0.0, float("inf"))
    estimates = {
        "MixturePrior": from_tables.prior_,
        "KM2": from_tables.km2_prior_,
        "largest": from_tables.mixture_prior_,
    }
    return Identification(
        level=level,
        separation=test.separation,
        overlap=from_tables.overlap_,
        positives=len(source.positive),
        effective_positives=source.effective_positives,
        source_prior=estimate.source_prior,
        source_prior_by=estimate.source_prior_by,
        source_prior_range=(low, high),
        range_from_tables=from_tables.interval_,
        estimators=estimates | others,
        contradicted=bool(given and (high < least or low > most)),
        variance_from_prior=share,
        ratio=test.ratio,
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        target_low=target_low,
        target_high=target_high,
        confidence=inputs.confidence,
    )


def format_range(ends: tuple[float, float]) -> str:
    """Return "low to high" with as many decimals as distinguish the ends."""
    return " to ".join(f"{end:.{range_decimals(*ends)}f}" for end in ends)


def _prior_from_tables(estimator: WitnessShift, source: Source) -> tuple[MixturePrior, dict[str, float]]:
    """Return MixturePrior fitted to the tables alone, and the estimate of another estimator of π if one was used."""
    used = estimator.prior_estimator_
    if isinstance(used, MixturePrior) and used.scored_ is estimator.scored_ and used.audit_ is None:
        return used, {}
    names = ("model", "repeats", "folds", "scenario", "standardize", "random_state")
    settings = {name: getattr(estimator, name) for name in names}
    with suppress_warnings(PriorShiftWarning):  # π is known from elsewhere
        fitted = MixturePrior(**settings, max_rows=_KM2_ROWS).fit_scores(replace(source, audit=None), estimator.scored_)
    if used is None or isinstance(used, MixturePrior):
        return fitted, {}
    return fitted, {type(used).__name__: estimator.source_prior_}
