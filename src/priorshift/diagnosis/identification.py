"""What a diagnosis starts from, and what the three tables determine: π′, the ratio R alone, or nothing.

R needs no π, and is determined wherever P can be distinguished from U. π′ = 1 − (1−π)R needs π, for which the tables
give an upper bound that is as good as the classes are separated. So there is always R with its interval, and where π is
not known π′ is a range.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from priorshift.errors import PriorShiftWarning
from priorshift.formatting import decimals, format_range, range_decimals, wrap_lines
from priorshift.inference.confidence_curve import ConfidenceCurve, prior_from_ratio
from priorshift.inference.prior_knowledge import MislabeledPrior, PriorKnowledge, RangePrior
from priorshift.methods.witness_shift import TargetFit, WitnessShift
from priorshift.problem import Source
from priorshift.result_tables import text_to_html, to_plain
from priorshift.scores.scored_source import largest_prior
from priorshift.source_prior.mixture_prior import MixturePrior
from priorshift.warning_records import suppress_warnings

_KM2_ROWS = 1000  # largest number of rows of an estimate that only serves for comparison
_BOUND_ERROR = 0.01  # of the upper bound of π, above which a given π contradicts the tables
_MOST_SHARE = 0.5  # of the variance of π̂′: if more comes from π, the tables determine R alone
_NARROW = 0.1  # width of the interval of π′ that is narrow enough, wherever it comes from
_GIVEN = ("given", "range", "distribution")

Level = Literal["prior", "ratio", "nothing"]


@dataclass(frozen=True, eq=False)
class DiagnosisInput:
    """A fitted source and one target, which every part of a diagnosis starts from."""

    source: Source  # with its rows
    fit: TargetFit
    confidence: float = 0.95
    threshold: float | None = None  # a target prior that matters; None compares with the source prior
    prior_from_rows: bool = False  # whether π was estimated from the rows, so that more rows say more about it
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    prior_is_relative: bool = False  # whether π was estimated from P and U alone: then label errors change the estimate
    mixture: MixturePrior | None = None  # the estimator of π, if it is one that can account for label errors

    @property
    def ratio(self) -> float:
        """The estimate of R; NaN where the positives cannot be distinguished from the population."""
        return self.fit.test.ratio if self.fit.test.is_separable else float("nan")

    @property
    def purity(self) -> float:
        """The share of positives among the labelled rows; 1 without label errors."""
        return self.fit.prior.purity

    def target_prior(self, ratio: float, curve: ConfidenceCurve) -> tuple[float, float, float]:
        """Return π̂′ and the ends of its interval, from an estimate of R and its confidence curve.

        These are NaN, 0 and 1 where there is no estimate of R.
        """
        if not (np.isfinite(ratio) and curve.is_known):
            return float("nan"), 0.0, 1.0
        prior, value = self.fit.prior, prior_from_ratio(self.fit.estimate.source_prior, ratio, self.purity)
        low, high = prior.interval(curve, self.confidence)
        return value, min(low, value), max(high, value)  # the interval contains the estimate


@dataclass(frozen=True)
class TextReport(ABC):
    """A part of a diagnosis, which prints as text and serialises as plain values."""

    @property
    @abstractmethod
    def text(self) -> str:
        """Sentences of this part, a line for each topic, not wrapped."""

    def __str__(self) -> str:
        """Return the text, wrapped."""
        return wrap_lines(self.text)

    def _repr_html_(self) -> str:
        return text_to_html(self.text)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON; a number that does not exist is None."""
        return to_plain(asdict(self))


@dataclass(frozen=True)
class Identification(TextReport):
    """What the three tables determine of π′."""

    level: Level  # π′ itself, R and a range of π′, or nothing
    separation: float  # of P from U, in standard errors
    overlap: float  # probability that a negative scores above a positive, 1 − AUC
    score_noise: float  # share of noise of the scores in the witness function, 0 to 1; NaN without an estimate
    positives: int  # labelled rows
    effective_positives: float  # effective number of independent labelled rows
    source_prior: float  # π in use; the middle of a range
    source_prior_by: str | None  # as in PriorEstimate
    source_prior_range: tuple[float, float]
    range_from_tables: tuple[float, float]  # 95% range of π from the tables alone
    estimators: dict[str, float]  # estimates of π from the same rows; "largest" is the upper bound by the scores
    largest_prior: float  # upper bound of π by the tables alone, with 99% confidence, whatever the negatives look like
    contradicted: bool  # whether a given π is above that bound; the tables cannot contradict a smaller one
    variance_from_prior: float  # share of π̂′'s variance that comes from π
    ratio: float  # R̂
    ratio_low: float
    ratio_high: float
    target_low: float  # of π′, over all possible π
    target_high: float
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON, and the text as "sentence"."""
        return super().to_dict() | {"sentence": str(self)}

    @property
    def given(self) -> bool:
        """Whether π, a range or a distribution was given, and not estimated from the tables."""
        return self.source_prior_by in _GIVEN

    @property
    def source_prior_text(self) -> str:
        """The source prior as text: the value that was given, or its range."""
        is_point = self.source_prior_by == "given"
        digits = range_decimals(*self.source_prior_range)
        return f"{self.source_prior:.3g}" if is_point else format_range(*self.source_prior_range, f".{digits}f")

    @property
    def largest_text(self) -> str:
        """The upper bound of the source prior as text, rounded up."""
        digits = range_decimals(0.0, self.largest_prior)
        return f"{np.ceil(self.largest_prior * 10**digits - 1e-9) / 10**digits:.{digits}f}"

    @property
    def ratio_text(self) -> str:
        """The estimate of R with its interval as text, as in "0.51 (0.46 to 0.57)"."""
        digits = decimals(self.ratio_high - self.ratio_low)
        return f"{self.ratio:.{digits}f} ({self.ratio_low:.{digits}f} to {self.ratio_high:.{digits}f})"

    @property
    def text(self) -> str:
        """Sentences of this part, a line for each topic, not wrapped."""
        if self.level == "nothing":
            separation = f"their separation is {max(self.separation, 0.0):.1f} standard errors"
            reason = f"The positives can hardly be distinguished from the population ({separation})"
            return f"{reason}, so neither the ratio of negatives nor the target prior can be estimated."
        prior = f"{self.source_prior_text} {'as given' if self.given else f'by {self.source_prior_by}'}"
        text = f"R is {self.ratio_text}. Together with the source prior ({prior}) it determines the target prior."
        if self.level == "ratio":
            text = (
                f"R is {self.ratio_text} whatever the source prior is. The source prior is only known to be {prior}, "
                f"so the target prior is a range, {self.target_low:.2f} to {self.target_high:.2f}."
            )
        if not (self.given or self.contradicted):
            return text
        end = (
            ", which contradicts the given one."
            if self.contradicted
            else "; they cannot distinguish between smaller values."
        )
        return f"{text} By the tables alone, the source prior is at most {self.largest_text}{end}"


def identify(estimator: WitnessShift, inputs: DiagnosisInput) -> Identification:
    """Determine what the tables identify: π′, the ratio R alone, or nothing."""
    fit, source, estimate = inputs.fit, inputs.source, inputs.fit.estimate
    prior, test, interval = fit.prior, fit.test, estimate.interval
    # standard errors of π̂′ = q − (q−π)R̂ that come from R̂, and from π and q
    low, high = (float(end) for end in prior.range)
    ratio_error = test.ratio_error * (prior.purity - prior.value)
    prior_error = spread_with_ranges(prior, test.ratio) if np.isfinite(test.ratio) else 0.0
    variance = ratio_error**2 + prior_error**2
    variance_from_prior = float(prior_error**2 / variance) if np.isfinite(variance) and variance > 0 else 0.0
    target_low, target_high = (interval.low, interval.high) if interval else (0.0, 1.0)
    level: Level = "prior"
    ratio_low, ratio_high = (
        fit.test.curve.quantiles(inputs.confidence) if fit.test.is_separable else (0.0, float("inf"))
    )
    if estimate.status == "no estimate" or (ratio_low, ratio_high) == (min(fit.test.curve.ratios[0], 0.0), np.inf):
        level = "nothing"
    elif interval is None or (variance_from_prior > _MOST_SHARE and target_high - target_low > _NARROW):
        level = "ratio"
    from_tables, other_estimates = _prior_from_tables(estimator, source)
    # with label errors the tables inform about κ = π/q; the bound on π is that at the largest q
    purity, largest_purity = prior.purity, max(q for q, _ in prior.extremes)
    largest = largest_purity * largest_prior(fit.witness.scored, _BOUND_ERROR)
    score_noise = float("nan")
    if np.isfinite(test.ratio):
        score_noise = fit.witness.variance_parts(test.ratio, fit.p_values, fit.target).noise
    contradicted = estimate.source_prior_by in _GIVEN and low > largest
    estimators = {
        "MixturePrior": purity * from_tables.prior_,
        "KM2": purity * from_tables.km2_prior_,
        "largest": purity * from_tables.mixture_prior_,
    }
    table_low, table_high = from_tables.interval_
    range_from_tables = min(q for q, _ in prior.extremes) * table_low, largest_purity * table_high
    return Identification(
        level=level, separation=test.separation, overlap=from_tables.overlap_, score_noise=score_noise,
        positives=len(source.positive),
        effective_positives=source.P.observations, source_prior=estimate.source_prior,
        source_prior_by=estimate.source_prior_by, source_prior_range=(low, high),
        range_from_tables=range_from_tables, estimators=estimators | other_estimates, largest_prior=largest,
        contradicted=contradicted,
        variance_from_prior=variance_from_prior, ratio=test.ratio, ratio_low=ratio_low, ratio_high=ratio_high,
        target_low=target_low, target_high=target_high, confidence=inputs.confidence,
    )  # fmt: skip


def spread_with_ranges(prior: PriorKnowledge, ratio: float) -> float:
    """Compute the standard error of π̂′ that comes from π and label errors; a range counts as a uniform distribution."""
    parts = (prior.prior, prior.label_error) if isinstance(prior, MislabeledPrior) else (prior,)
    total = 0.0
    for part, (error, derivative) in zip(parts, prior.influences(ratio), strict=True):
        from_part = derivative * error
        if isinstance(part, RangePrior):
            from_part = derivative * (part.high - part.low) / np.sqrt(12)
        total = float(np.hypot(total, from_part))
    return total


def _prior_from_tables(estimator: WitnessShift, source: Source) -> tuple[MixturePrior, dict[str, float]]:
    """Return MixturePrior fitted to the tables alone, and estimates of π by name: that of another estimator, if used.

    The estimator's own MixturePrior is returned if it had the same scores and no audit.
    """
    used = estimator.prior_estimator_
    if isinstance(used, MixturePrior) and used.scored_ is estimator.scored_ and used.audit_ is None:
        return used, {}
    names = ("model", "repeats", "folds", "scenario", "standardize", "random_state")
    settings = {name: getattr(estimator, name) for name in names}
    with suppress_warnings(PriorShiftWarning):  # its warnings do not concern the π in use
        fitted = MixturePrior(**settings, max_rows=_KM2_ROWS).fit_scores(replace(source, audit=None), estimator.scored_)
    if used is None or isinstance(used, MixturePrior):
        return fitted, {}
    return fitted, {type(used).__name__: estimator.source_prior_}
