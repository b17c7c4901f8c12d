"""The source prior π of a method: known, or estimated at fit by one of the estimators in this package.

KM1, KM2 and MixturePrior estimate it; users may pass an estimator of their own. Here is what methods use: the estimate
with its error, and the mixin that decides between it and what is known.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from priorshift.errors import DuplicateRowsWarning, EstimatedPriorWarning, InputError
from priorshift.inference.audit_combination import AuditedPrior
from priorshift.inference.prior_knowledge import (
    DistributionPrior,
    MislabeledPrior,
    PointPrior,
    PosteriorPrior,
    PriorKnowledge,
    read_label_error,
    read_prior,
    with_label_error,
)
from priorshift.io.column_checks import FarValueWarning
from priorshift.io.observations import PriorInfluence
from priorshift.io.parameters import is_known, is_number, seeded
from priorshift.problem import Source
from priorshift.source_prior.km import KM2
from priorshift.warning_records import suppress_warnings, warn

LEAST_PRIOR = 1e-3  # replaces an estimate of 0 where odds are needed, and 1 − this an estimate of 1


@dataclass(frozen=True, eq=False)
class EstimatedPrior:
    """A source prior that was estimated at fit."""

    estimator: Any  # fitted
    value: float  # π̂
    influence: PriorInfluence | None  # of each row on the estimate; None where the estimator does not give it
    distribution: Any = None  # the `prior_distribution_` of an estimator that has one
    audited: AuditedPrior | None = None  # the distribution after an audit

    @property
    def name(self) -> str:
        """Name of the estimator's class; it mentions an audit, if one was combined with the estimate."""
        name = type(self.estimator).__name__
        return name if self.audited is None else self.audited.by(name)

    def knowledge(self) -> PriorKnowledge:
        """Return the estimate as knowledge of π: a distribution, or a point where its error is unknown or zero."""
        if self.distribution is not None:
            return PosteriorPrior(self.distribution)
        if self.influence is None or self.influence.variance == 0:
            return PointPrior(self.value)
        error = sqrt(self.influence.variance)
        # a normal distribution, truncated to [0, 1]
        return DistributionPrior(stats.truncnorm(-self.value / error, (1 - self.value) / error, self.value, error))

    def warn_of_error(self) -> None:
        """Warn of errors of π̂ that the interval does not include, or that prevent an interval."""
        if self.distribution is not None:  # which includes all errors
            return
        caveat = getattr(self.estimator, "caveat", "")
        estimate = f"the source prior {self.value:.3f} was estimated by {self.name}"
        if self.influence is None:
            warn(
                f"There is no interval: {estimate}, whose error is unknown (it has no prior_influence_). Pass a known "
                "source_prior.",
                EstimatedPriorWarning,
            )
        elif caveat:
            warn(
                f"The interval includes sampling errors, but not all errors of π: {estimate}, with a standard error of "
                f"{sqrt(self.influence.variance):.2g} and a bias: {caveat}",
                EstimatedPriorWarning,
            )


class SourcePriorMixin:
    """Mixin of estimators whose `source_prior` is known, exactly or roughly, or estimated at fit.

    A known prior may change between two estimates; an estimated one needs another fit. A share `label_error` of the
    labelled rows may not be positive; then an estimate from P and U is that of π/(1−ε).
    """

    source_prior: Any
    label_error: Any
    _settings: dict[str, Any]  # parameters at fit
    _estimated: EstimatedPrior | None  # None where the prior was known at fit

    @property
    def source_prior_(self) -> float:
        """π as set now, or as estimated at fit; the middle of a range, the mean of a distribution."""
        check_is_fitted(self)
        if self._estimated and not is_known(self.source_prior):
            return with_label_error(PointPrior(self._estimated.value), self.label_error, is_relative=True).value
        with suppress(InputError):  # `estimate` raises the error for an impossible value
            return self._known_prior().value
        return self.source_prior

    @property
    def prior_estimator_(self) -> Any:
        """The fitted estimator of π; None where π is known."""
        check_is_fitted(self)
        return self._estimated.estimator if self._estimated and not is_known(self.source_prior) else None

    def _known_prior(self) -> PriorKnowledge:
        """Return `source_prior` as knowledge of π; raise InputError if it is impossible."""
        return read_prior(self.source_prior)

    def _check_label_error(self) -> None:
        """Raise InputError if `label_error` is impossible, or does not go with a known source prior."""
        if self.label_error is not None:
            read_label_error(self.label_error)
            if is_known(self.source_prior):
                with_label_error(read_prior(self.source_prior), self.label_error)

    def _prior_from_fit(self) -> EstimatedPrior | None:
        """Return the prior that was estimated at fit; None where `source_prior` is known.

        Raises InputError where `source_prior` was changed since the fit, so that the estimate does not belong to it.
        """
        if is_known(self.source_prior):
            return None
        before, now = self._settings["source_prior"], self.source_prior
        # two estimators with the same parameters have the same repr
        if self._estimated is None or (now is not before and repr(now) != repr(before)):
            raise InputError(
                f"source_prior was {read_prior(before) if is_known(before) else before} when {type(self).__name__} was "
                f"fitted and is {now!r} now; fit again."
            )
        return self._estimated


def label_error_details(known: PriorKnowledge) -> dict[str, Any]:
    """Return the entries of an estimate's details about label errors; none where there are none."""
    if not isinstance(known, MislabeledPrior):
        return {}
    error = known.label_error
    return {
        "label_error": error.value,
        "label_error_by": error.by,
        "label_error_range": None if error.is_point else list(error.range),
        "label_error_standard_error": error.error or None,
    }


def estimate_source_prior(estimator: Any, source: Source, random_state: Any = None) -> EstimatedPrior:
    """Fit an estimator of the prior (None is KM2) to the source's scaled rows; return its estimate and its error."""
    if estimator is None:
        estimator = KM2(scenario=source.scenario, standardize=False, random_state=random_state)  # type: ignore[arg-type]
    else:
        estimator = clone(estimator, safe=False)
        if random_state is not None and hasattr(estimator, "get_params"):
            seeded(estimator, random_state)
    check_scenario(estimator, source.scenario)
    with suppress_warnings(FarValueWarning, DuplicateRowsWarning):  # these were already given for the source
        estimator.fit(source.rows[:], source.labeled, **_fit_arguments(estimator, source))
    prior: Any = getattr(estimator, "prior_", None)
    if not is_number(prior) or not 0 <= prior < 1:
        raise InputError(
            f"{type(estimator).__name__} has the prior_ {prior!r} after fit, but a number from 0 to below 1 is "
            "expected; pass another estimator or a known source_prior."
        )
    if getattr(estimator, "prior_influence_", None) is None:
        return EstimatedPrior(estimator, float(prior), None, getattr(estimator, "prior_distribution_", None))
    return EstimatedPrior(estimator, float(prior), _read_influence(estimator, source))


def _read_influence(estimator: Any, source: Source) -> PriorInfluence | None:
    """Read the `prior_influence_` of a fitted estimator, one number for each row; None where it is not finite."""
    by_row = np.asarray(estimator.prior_influence_, dtype=float)
    if by_row.shape != source.labeled.shape:
        raise InputError(
            f"{type(estimator).__name__} has a prior_influence_ of shape {by_row.shape}, but one number for each of "
            f"{len(source.labeled)} rows is expected."
        )
    if not np.isfinite(by_row).all():  # KM gives NaN where it found no prior, whose error is then unknown
        return None
    P, U = source.positive, source.population
    # under censoring a labelled row is in both samples, and its influence counts once, with the population's
    on_P = by_row[P] if source.scenario == "case-control" else np.zeros(len(P))
    return PriorInfluence(on_P, by_row[U], source.observation[P], source.observation[U])


def check_scenario(source_prior: Any, scenario: str) -> None:
    """Raise InputError if an estimator of the prior has another `scenario` than the source."""
    estimator_scenario = getattr(source_prior, "scenario", scenario)
    if estimator_scenario != scenario:
        raise InputError(
            f"{type(source_prior).__name__} has scenario={estimator_scenario!r} but is used under {scenario!r}; the "
            "population is the same, so set both to the same scenario."
        )


def _fit_arguments(estimator: Any, source: Source) -> dict[str, Any]:
    """Return the row metadata of the source (shared rows, weights, groups) that the estimator's fit takes.

    Warns where the source has weights but the estimator takes none.
    """
    arguments = {}
    metadata = {"shared": source.shared_argument, "weights": source.weights, "groups": source.groups}
    for name, value in metadata.items():
        # estimators of this library have all arguments, and may declare takes_weights = False
        is_taken = has_fit_parameter(estimator, name) and getattr(estimator, f"takes_{name}", True)
        if value is not None and is_taken:
            arguments[name] = value
    if source.weights is not None and "weights" not in arguments:
        warn(
            f"{type(estimator).__name__} takes no weights, so the source prior is estimated without them; pass a known "
            "source_prior, or an estimator whose fit takes weights.",
            EstimatedPriorWarning,
        )
    return arguments
