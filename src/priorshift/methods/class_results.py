"""Results of several classes from a mixture of samples: shares on the simplex, with single and joint intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from priorshift.arrays import Floats
from priorshift.class_priors import ClassPriors
from priorshift.class_source import REST, ClassSizes
from priorshift.errors import OutOfRangeWarning, WeakSeparationWarning
from priorshift.inference.affine_mixture import AffineMixture
from priorshift.inference.audit_combination import AuditedPrior
from priorshift.inference.class_audit import AuditedClasses
from priorshift.inference.composition import Composition
from priorshift.inference.joint import largest_normal
from priorshift.io.sample_size import FEW_POSITIVES
from priorshift.results import Interval, PriorEstimate
from priorshift.warning_records import warn

_OPEN = 0.9  # width of an interval that says nothing


class CentralShares(NamedTuple):
    """Shares of all classes for the central value of what is known of the source."""

    raw: Floats  # may be negative
    covariance: Floats
    values: Floats  # on the simplex


def central_shares(mixture: AffineMixture, composition: Composition) -> CentralShares:
    """Compute the shares of all classes from a mixture of samples."""
    W = composition.central
    raw, covariance = mixture.share(W.T), W.T @ mixture.covariance @ W
    return CentralShares(raw, covariance, nearest_shares(raw, covariance))


def build_class_priors(
    mixture: AffineMixture,
    composition: Composition,
    source: ClassSizes,
    target_rows: int,
    *,
    audited: AuditedClasses | None,
    audited_source: tuple[AuditedPrior, ...],
    prior_origins: Mapping[str, str | None],
    settings: Mapping[str, Any],
    method: str,
    confidence: float,
) -> ClassPriors:
    """Compute the shares of all classes with their intervals, and warn of those that the tables leave open.

    `audited` and `audited_source` are the results of audits of the target and the source, `prior_origins` says where
    the source prior of each class is from, and `settings` become details of the results.
    """
    raw, covariance, values = central_shares(mixture, composition)
    if audited is not None:
        values, covariance = audited.values, audited.covariance
    # max |z| of all classes; each interval then has this higher confidence
    single = float(2 * ndtr(largest_normal(covariance, confidence)) - 1)
    R = float(mixture.coefficients[-1]) if source.has_rest else float("nan")
    results, band = {}, {}
    for j, name in enumerate(source.classes):
        error, interval_method = np.sqrt(max(float(covariance[j, j]), 0.0)), "mixture"
        if audited is None:
            ends = [composition.interval(mixture, j, level) for level in (confidence, single)]
            error = np.hypot(error, abs(R) * composition.shares_error[j]) if source.has_rest else error
        else:
            ends = [audited.shares[j].interval(level) for level in (confidence, single)]
            interval_method = audited.shares[j].by("mixture")
        (low, high), (band_low, band_high) = ends
        value = float(values[j])
        band[name] = Interval(min(band_low, value), max(band_high, value), confidence, "simultaneous")
        rows = 0 if source.has_rest and name == REST else source.sizes[j]
        results[name] = PriorEstimate(
            value=value,
            raw=float(raw[j]),
            interval=Interval(min(low, value), max(high, value), confidence, interval_method),
            standard_error=float(error),
            source_prior=float(composition.central[-1, j]) if source.has_rest else float("nan"),
            negative_ratio=R,
            separation=np.nan,
            method=method,
            sizes=(rows, source.sizes[-1], target_rows),
            source_prior_by=prior_origins[name],
            status="few positives" if 0 < rows < FEW_POSITIVES else "ok",
            details={**settings, **_audit_details(j, audited_source, audited)},
        )
    _warn(results, outside=audited is None)
    return ClassPriors(
        results, band=band, covariance=covariance, mixture=mixture, composition=composition, audited=audited
    )


def _audit_details(j: int, source: tuple[AuditedPrior, ...], target: AuditedClasses | None) -> dict[str, Any]:
    """Return the details of the estimate of class number `j` on audits of source and target."""
    audits = {}
    if j < len(source):
        audits["source"] = source[j].to_dict()
    if target is not None:
        audits["target"] = target.shares[j].to_dict()
    return {"audit": audits} if audits else {}


def _warn(results: Mapping[str, PriorEstimate], *, outside: bool) -> None:
    """Warn of classes whose share can be nearly anything, and, if `outside`, of raw shares outside [0, 1]."""
    is_open = [name for name, estimate in results.items() if estimate.interval and estimate.interval.width > _OPEN]
    if is_open:
        warn(
            f"The tables leave the share of {', '.join(map(repr, is_open))} open: nearly every share is possible. "
            "Add rows, or features that distinguish the classes, state source priors more exactly, or merge classes.",
            WeakSeparationWarning,
        )
    for name, estimate in results.items() if outside else ():
        excess = max(-estimate.raw, estimate.raw - 1)
        if excess > 3 * estimate.standard_error and name not in is_open:
            warn(
                f"The raw share {estimate.raw:.3f} of {name!r} lies outside [0, 1] by more than its sampling error "
                f"({estimate.standard_error:.2g}); check the source prior, and whether the classes look the same in "
                "source and target.",
                OutOfRangeWarning,
            )


def nearest_shares(raw: Floats, covariance: Floats) -> Floats:
    """Return the shares in [0, 1] that add up to 1 and are nearest to raw estimates, in the metric of their errors.

    Negative shares are set to 0 one by one, the most negative first, and the others move as their errors are
    correlated with it.
    """
    shares, at_zero = raw.copy(), np.zeros(len(raw), dtype=bool)
    while (shares < -1e-12).any() and at_zero.sum() < len(raw) - 1:
        at_zero[np.argmin(shares)] = True
        gain = covariance[:, at_zero] @ np.linalg.pinv(covariance[np.ix_(at_zero, at_zero)])
        shares = raw - gain @ raw[at_zero]
        shares[at_zero] = 0.0
    shares = np.maximum(shares, 0.0)
    return np.asarray(shares / shares.sum())
