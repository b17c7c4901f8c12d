"""Estimate from samples that are distributed over many machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from priorshift.distributed.exact import estimate_exactly
from priorshift.distributed.summaries import check_weights, count_collections, sketch_collections
from priorshift.methods.tcpu import TCPU
from priorshift.results import PriorEstimate
from priorshift.sketch.estimation import estimate_from_histograms, estimate_from_sketches


def estimate_collections(
    estimator: Any, samples: Mapping[str, Any], drop: Sequence[str], weights: Any, client: Any = None
) -> PriorEstimate:
    """Estimate by WitnessShift or TCPU; rows stay where they are, and each part is summarised there in one pass."""
    check_weights(weights)
    if not isinstance(estimator, TCPU):
        return estimate_from_histograms(estimator, **count_collections(estimator, samples, drop, client))
    if estimator.embedding == "exact":
        return estimate_exactly(samples, estimator, drop, weights, client)
    return estimate_from_sketches(estimator, **sketch_collections(estimator, samples, drop, weights, client))
