"""Combination of estimates by strata to an estimate for the whole target.

π′ = Σ W_k π′_k, W_k the share of stratum k in the target population, of which the target's rows are a sample. The ends
of the interval are at

    θ ± √(Σ_kl ρ_kl w_k d_k w_l d_l + z² Σ w_k (v_k − θ)²/n′),    θ = Σ w_k v_k,

with v_k the estimates, w_k = n′_k/n′ (or the share of the weights) and d_k the distance of v_k from the lower or the
upper end of its interval (the method of variance estimates recovery: what is skew stays skew). Strata have rows of
their own, so their errors are independent, ρ_kl = 0, unless a group, such as a patient, is in both: then ρ_kl is the
correlation of the groups' influences on either estimate, or 1 where that is not known. The error of one π for all
strata is common to all of them: a range is taken at either end in all strata, and the spread of a distribution is
added up before it is squared. The standard error is computed in the same way, for a range of π at its middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtri

from priorshift.arrays import Floats, Index
from priorshift.inference.joint import RatioInfluence
from priorshift.inference.prior_knowledge import RangePrior
from priorshift.io.observations import linked
from priorshift.results import Interval, PriorEstimate

_FROM_ELSEWHERE = "given", "range", "distribution"  # sources of π that are independent of the stratum's rows


@dataclass(frozen=True, eq=False)
class Members:
    """The observations in a stratum."""

    source: NDArray[np.str_]  # names (ids and groups) of rows of P and U; a row may have several
    target: NDArray[np.str_]  # groups of the target's rows
    observation: Index | None = None  # number of each name in `source` in the fit; None where it is not known


def pooled(
    estimates: Sequence[PriorEstimate],
    influences: Sequence[RatioInfluence | None],
    confidence: float,
    shares: Floats,
    rows: float,
    *,
    common_prior: bool = False,
    members: Sequence[Members] | None = None,
) -> PriorEstimate:
    """Combine the estimates of strata with weights `shares`, by the method of Zou and Donner (2008).

    `rows` is the effective number of target rows; `common_prior` tells whether one knowledge of π holds for all strata.
    `members` are None where rows are independent.
    """
    sizes = np.array([estimate.sizes for estimate in estimates])
    w = shares
    values, raw = (np.array([getattr(estimate, name) for estimate in estimates]) for name in ("value", "raw"))
    value = float(w @ values)
    between = float(w @ (values - value) ** 2) / rows
    strata = list(zip(estimates, influences, strict=True))
    spread = np.array([_spread(stratum) for stratum in strata])
    common = spread if common_prior else np.zeros(len(strata))
    correlation = _correlation(strata, members, spread - common) if members else np.eye(len(strata))
    errors = np.array([estimate.standard_error for estimate in estimates])
    errors = np.sqrt(np.maximum(errors**2 - common**2, 0.0))
    more = between + float(w @ common) ** 2
    interval = None
    if all(estimate.interval is not None for estimate in estimates):
        low, high = _ends(strata, w, correlation, more, confidence, bool(common.any()))
        low, high = (min(low, value), max(high, value)) if np.isfinite(value) else (0.0, 1.0)
        interval = Interval(max(low, 0.0), min(high, 1.0), confidence, "strata")
    first = estimates[0]
    return PriorEstimate(
        value=value,
        raw=float(w @ raw),
        interval=interval,
        standard_error=float(np.sqrt(_square(w * errors, correlation) + more)),
        source_prior=np.nan,
        negative_ratio=np.nan,
        separation=np.nan,
        method=f"{first.method}, {len(estimates)} strata",
        sizes=(int(sizes[:, 0].sum()), int(sizes[:, 1].sum()), int(sizes[:, 2].sum())),
        source_prior_by=first.source_prior_by,
        details={"strata": len(estimates)},
    )


_Stratum = tuple[PriorEstimate, RatioInfluence | None]


def _spread(stratum: _Stratum) -> float:
    """Compute the error of π′ that comes from the spread of a given distribution of π."""
    estimate, part = stratum
    return part.ratio * part.prior.error if part is not None and estimate.source_prior_by == "distribution" else 0.0


def _correlation(strata: Sequence[_Stratum], members: Sequence[Members], spread: Floats) -> Floats:
    """Compute the correlation of the strata's errors; `spread` is the independent part of each."""
    count = len(strata)
    stratum = np.repeat(np.arange(count), [len(who.source) + len(who.target) for who in members])
    named = [names for who in members for names in (who.source, who.target)]
    names, code = np.unique(np.concatenate(named), return_inverse=True)
    stands = csr_array((np.ones(len(code)), (stratum, code.reshape(-1))), shape=(count, len(names)))
    meet = (stands @ stands.T).toarray() > 0
    if not (meet & ~np.eye(count, dtype=bool)).any():
        return np.eye(count)
    moves = _moves_of_groups(strata, members, names)
    together = (moves @ moves.T).toarray()
    known = np.diag(together) > 0
    error = np.sqrt(np.where(known, np.diag(together) + spread**2, 1.0))
    made = np.where(np.outer(known, known), together / np.outer(error, error), meet)
    np.fill_diagonal(made, 1.0)
    return np.asarray(made, dtype=np.float64)


def _moves_of_groups(strata: Sequence[_Stratum], members: Sequence[Members], names: NDArray[np.str_]) -> csr_array:
    """Compute the influence of each observation on the estimate of each stratum; 0 if not known."""
    links, at, values, nodes = [np.empty((0, 2), dtype=np.intp)], [], [], len(names)
    for (estimate, part), who in zip(strata, members, strict=True):
        told = part is not None and (estimate.source_prior_by in _FROM_ELSEWHERE or part.of_prior is not None)
        if part is None or not told or who.observation is None or part.own is None:
            at.append(np.empty(0, dtype=np.intp))
            values.append(np.empty(0))
            continue
        of_prior = 0.0 if part.of_prior is None else part.ratio * part.of_prior
        keep = 1 - estimate.source_prior
        links.append(np.stack([np.searchsorted(names, who.source), nodes + who.observation], axis=1))
        own = np.searchsorted(names, part.own.groups)
        at.append(np.concatenate([nodes + np.arange(len(part.source)), own]))
        values.append(np.concatenate([of_prior - keep * part.source, -keep * part.own.influence]))
        nodes += len(part.source)
    cluster = linked(nodes, np.concatenate(links))
    stratum = np.repeat(np.arange(len(strata)), [len(one) for one in at])
    where = stratum, cluster[np.concatenate(at)]
    return csr_array((np.concatenate(values), where), shape=(len(strata), nodes))


def _square(distances: Floats, correlation: Floats) -> float:
    return max(float(distances @ correlation @ distances), 0.0)


def _ends(
    strata: Sequence[_Stratum], w: Floats, correlation: Floats, more: float, confidence: float, at_mean: bool
) -> tuple[float, float]:
    """Compute the ends of the interval before they are clipped to [0, 1]; `more` is an additional variance."""
    far = float(ndtri((1 + confidence) / 2)) ** 2 * more
    given = (np.array([_given(one, end, confidence, at_mean) for one in strata]) for end in (0, 1))
    sides = [_recovered(w, one, correlation, far) for one in given]
    return min(low for low, _ in sides), max(high for _, high in sides)


def _given(stratum: _Stratum, end: int, confidence: float, at_mean: bool) -> tuple[float, float, float]:
    """Return estimate and interval of a stratum, at one end of a range of π, or at the mean of its distribution."""
    estimate, part = stratum
    value, interval = estimate.value, estimate.interval
    if part is not None and isinstance(part.prior, RangePrior):
        pi = part.prior.range[end]
        value = float(np.clip(1 - (1 - pi) * part.ratio, 0, 1))
        low, high = part.curve.interval(pi, confidence)
    elif part is not None and at_mean:
        low, high = part.curve.interval(part.prior.value, confidence)
    elif interval is not None:
        low, high = interval.low, interval.high
    return value, min(low, value), max(high, value)


def _recovered(w: Floats, given: Floats, correlation: Floats, more: float) -> tuple[float, float]:
    """Compute ends for Σ w_k v_k from value, lower and upper end of each; `more` is an additional squared distance."""
    values = given[:, 0]
    below, above = (_square(w * np.abs(values - given[:, side]), correlation) + more for side in (1, 2))
    return float(w @ values) - below**0.5, float(w @ values) + above**0.5
