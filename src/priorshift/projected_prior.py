"""From mean embeddings and what is known of π to an estimate of the target prior, with its interval.

Whoever made the embeddings, π̂′ = 1 − (1−π)R and how sure it is are made of them here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from priorshift import intervals
from priorshift.arrays import Floats
from priorshift.embedding.gram import Embeddings
from priorshift.embedding.projection import ratio, separation, target_prior
from priorshift.errors import OutOfRangeWarning, warn
from priorshift.numerals import written
from priorshift.prior_knowledge import Between, Known, PriorKnowledge
from priorshift.result import Interval, PriorEstimate
from priorshift.source_prior import LEAST_PRIOR, EstimatedPrior

_REPLICATE_BYTES = 2**25  # of bootstrap counts held at a time


@dataclass(frozen=True, eq=False)
class Replicates:
    """How a bootstrap is drawn.

    Attributes
    ----------
    count : int
        Replicates.
    draw : callable
        Gives so many Gram matrices, and how far each replicate moves an estimated π.
    rng : Generator
        What else is drawn.
    """

    count: int
    draw: Callable[[int], tuple[Floats, Floats]]
    rng: np.random.Generator


def projected_prior(
    embeddings: Embeddings,
    prior: PriorKnowledge,
    interval: str | None,
    confidence: float,
    *,
    apart: bool = True,
    estimated: EstimatedPrior | None = None,
    replicates: Replicates | None = None,
) -> PriorEstimate:
    """Estimate the target prior from mean embeddings, π̂′ = 1 − (1−π)R.

    Parameters
    ----------
    embeddings : Embeddings
        Of the three samples.
    prior : PriorKnowledge
        π, as known or as estimated.
    interval : {"delta", "bootstrap", "paper-bound", "sharp-bound"} or None
        As in :class:`TCPU`.
    confidence : float
        Of the interval.
    apart : bool
        Whether there is a separation to divide by.
    estimated : EstimatedPrior or None
        What was asked for π, where it is an estimate.
    replicates : Replicates or None
        Of the bootstrap.

    Returns
    -------
    PriorEstimate
        Without the name of a method; its `details` are those of π and of shared rows.
    """
    pi, influence = prior.value, estimated.influence if estimated else None
    nan = float("nan")
    R, error = ratio(embeddings.gram), nan
    if apart:
        made = _interval(embeddings, prior, interval, confidence, estimated, replicates)
        if not (estimated and influence is None and isinstance(prior, Known)):  # whose error is not known
            error = float(np.hypot(intervals.standard_error(embeddings, pi), R * prior.error))
    else:
        R = nan
        made = None if interval is None else Interval(0.0, 1.0, confidence, "none")
    raw = 1 - (1 - pi) * R
    return PriorEstimate(
        value=float(np.clip(raw, 0, 1)),
        raw=raw,
        interval=made,
        standard_error=error,
        source_prior=pi,
        negative_ratio=R,
        separation=float(separation(embeddings.gram)),
        method="",
        sizes=embeddings.sizes,
        source_prior_by=estimated.name if estimated else prior.by,
        details={
            "source_prior_range": None if isinstance(prior, Known) else list(prior.range),
            "source_prior_standard_error": sqrt(embeddings.prior_variance) if influence else prior.error or None,
            "shared_rows": embeddings.shared,
        },
    )


def _interval(
    embeddings: Embeddings,
    prior: PriorKnowledge,
    interval: str | None,
    confidence: float,
    estimated: EstimatedPrior | None,
    replicates: Replicates | None,
) -> Interval | None:
    most = prior.range[1]  # the largest π makes the largest raw estimate; one above 1 is so for every π
    _, plausible = intervals.delta(embeddings, most, confidence)
    if not plausible and 2 * intervals.separation_error(embeddings) <= separation(embeddings.gram):
        warn(
            f"The raw estimate {written(target_prior(embeddings.gram, most), 3)} lies outside [0, 1] by more than its "
            f"sampling error ({intervals.standard_error(embeddings, most):.2g}); check the source prior ({prior}) "
            "and whether the classes look the same in source and target.",
            OutOfRangeWarning,
        )
    if interval is None:
        return None
    if estimated:
        estimated.warn_of_error()
        if estimated.influence is None and isinstance(prior, Known):
            return None
    given = _interval_given_prior(embeddings, interval, confidence, estimated, replicates)
    if isinstance(prior, Known):
        return given(prior.value)
    if isinstance(prior, Between):
        made = given(prior.low)
        other = given(prior.high) if made.width < 1 else made  # nothing is wider, and no warning needed twice
        return replace(made, low=min(made.low, other.low), high=max(made.high, other.high))
    if replicates is not None and interval == "bootstrap":
        return given(prior.draw(replicates.count, replicates.rng))
    low, high = prior.interval(intervals.curve(embeddings), confidence)
    value = _clipped(embeddings, prior.value)  # a mean, which a skew distribution can have beyond a quantile
    return Interval(min(low, value), max(high, value), confidence, "delta")


def _interval_given_prior(
    embeddings: Embeddings,
    interval: str,
    confidence: float,
    estimated: EstimatedPrior | None,
    replicates: Replicates | None,
) -> Callable[[Any], Interval]:
    """The interval that was asked for, as a function of π; the bootstrap's takes one π for each replicate too."""
    if interval == "delta":
        return lambda pi: intervals.delta(embeddings, pi, confidence)[0]
    if replicates is None or interval != "bootstrap":
        bound = intervals.paper_bound if interval == "paper-bound" else intervals.sharp_bound
        return lambda pi: bound(embeddings, pi, confidence)
    batch = max(1, min(replicates.count, _REPLICATE_BYTES // sum(embeddings.sizes)))
    batches = [min(batch, replicates.count - k) for k in range(0, replicates.count, batch)]
    grams, moved = (np.concatenate(part) for part in zip(*map(replicates.draw, batches), strict=True))

    def bootstrap(pi: Any) -> Interval:
        known = estimated is None or estimated.influence is None
        priors = pi if known else np.clip(pi + moved, 0.0, 1 - LEAST_PRIOR)
        return intervals.bootstrap(grams, priors, confidence, _clipped(embeddings, np.mean(pi)))

    return bootstrap


def _clipped(embeddings: Embeddings, source_prior: Any) -> float:
    """The estimate of π′ within [0, 1]."""
    return float(np.clip(target_prior(embeddings.gram, source_prior), 0, 1))
