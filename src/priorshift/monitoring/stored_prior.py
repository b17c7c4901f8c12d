"""What is known of the source prior in the file of a model: a number, a range, or a tabulated distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError
from priorshift.inference.prior_knowledge import (
    DistributionPrior,
    PiecewiseUniform,
    PointPrior,
    PosteriorPrior,
    PriorKnowledge,
    RangePrior,
    read_prior,
)
from priorshift.io.files import Fields

_TABULATED = 400  # steps of a distribution of π in a file


def prior_to_contents(prior: PriorKnowledge) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what is known of π as a header and arrays; a distribution is tabulated."""
    if isinstance(prior, PointPrior):
        return {"kind": "point", "value": prior.value}, {}
    if isinstance(prior, RangePrior):
        return {"kind": "range", "low": prior.range[0], "high": prior.range[1]}, {}
    if not isinstance(prior, DistributionPrior):
        raise InputError("the source prior of a monitor must be a number, a range, a distribution or None.")
    distribution = prior.distribution
    if not isinstance(distribution, PiecewiseUniform):
        edges = np.unique(np.concatenate([[0.0, 1.0], np.clip(distribution.ppf(np.linspace(0, 1, _TABULATED)), 0, 1)]))
        distribution = PiecewiseUniform.from_cdf(np.asarray(distribution.cdf(edges), dtype=float), edges)
    kind = "posterior" if isinstance(prior, PosteriorPrior) else "distribution"
    return {"kind": kind}, {"prior_edges": distribution.edges, "prior_steps": distribution.probabilities}


def prior_from_contents(header: Any, arrays: Mapping[str, NDArray[Any]], fields: Fields) -> PriorKnowledge:
    """Read what is known of π from the header and the arrays of a file."""
    kind = header.get("kind") if isinstance(header, dict) else None
    if kind in ("point", "range"):
        keys: Sequence[str] = ("value",) if kind == "point" else ("low", "high")
        numbers = Fields(header, " ".join(["kind", *keys]), "the source prior")
        ends = [numbers.number(key, 0.0, 1.0) for key in keys]
        return read_prior(ends[0] if kind == "point" else (ends[0], ends[1]))
    if kind not in ("posterior", "distribution") or not {"prior_edges", "prior_steps"} <= arrays.keys():
        raise fields.refused("its source prior is unknown")
    edges, steps = arrays["prior_edges"], arrays["prior_steps"]
    if edges.ndim != 1 or steps.shape != (len(edges) - 1,) or (np.diff(edges) <= 0).any() or (steps < 0).any():
        raise fields.refused("its source prior is no distribution")
    distribution = PiecewiseUniform(edges, steps)
    return PosteriorPrior(distribution) if kind == "posterior" else DistributionPrior(distribution)
