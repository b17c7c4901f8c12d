"""What all parts of a diagnosis share: the fitted data that they start from, and how they print and serialise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from priorshift.formatting import wrap_lines
from priorshift.inference.confidence_curve import ConfidenceCurve, TabulatedCurve
from priorshift.inference.prior_knowledge import DistributionPrior
from priorshift.methods.witness_shift import TargetFit
from priorshift.problem import Source
from priorshift.result_tables import to_plain


@dataclass(frozen=True, eq=False)
class DiagnosisInput:
    """A fitted source and one target: what every part of a diagnosis starts from."""

    source: Source  # with its rows
    fit: TargetFit
    confidence: float = 0.95
    threshold: float | None = None  # a target prior that matters; None compares with the source prior
    prior_from_rows: bool = False  # whether π was estimated from the rows, so that more rows say more about it
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    @property
    def ratio(self) -> float:
        """R̂; NaN where the positives cannot be distinguished from the population, so that R̂ says nothing."""
        return self.fit.test.ratio if self.fit.is_separable else float("nan")

    def target_prior(self, ratio: float, curve: ConfidenceCurve) -> tuple[float, float, float]:
        """Return π̂′ and the ends of its interval for another estimate of R; NaN, 0 and 1 where there is none."""
        if not (np.isfinite(ratio) and curve.is_known):
            return float("nan"), 0.0, 1.0
        prior, source_prior = self.fit.prior, self.fit.estimate.source_prior
        if not isinstance(curve, TabulatedCurve):
            value = min(max(1 - (1 - source_prior) * ratio, 0.0), 1.0)
        elif isinstance(prior, DistributionPrior):
            points, weights = prior.points
            value = curve.mean(np.clip(points + (source_prior - prior.value), 0.0, 1.0), weights)
        else:
            value = curve.mean(source_prior)
        low, high = prior.interval(curve, self.confidence)
        return value, min(low, value), max(high, value)


@dataclass(frozen=True)
class TextReport(ABC):
    """A part of a diagnosis, which prints as text and serialises as plain values."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The sentences of this part, one line each, not wrap_lines."""

    def __str__(self) -> str:
        return wrap_lines(self.text)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON; a number that does not exist is None."""
        return to_plain(asdict(self))
