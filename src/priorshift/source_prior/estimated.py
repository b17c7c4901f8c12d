"""The source prior π as an estimator gives it, and how much of its error is known."""

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
from priorshift.inference.prior_knowledge import DistributionPrior, PointPrior, PriorKnowledge, read_prior
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
    influence: PriorInfluence | None  # how much each row moves it; None where the estimator does not know
    distribution: Any = None  # the `prior_distribution_` of an estimator that has one
    audited: AuditedPrior | None = None  # what an audit made of it

    @property
    def name(self) -> str:
        """The class of the estimator, with its audit."""
        name = type(self.estimator).__name__
        return name if self.audited is None else self.audited.by(name)

    def knowledge(self) -> PriorKnowledge:
        """Return it as knowledge of π; a point where the estimator does not know its error."""
        if self.distribution is not None:
            return DistributionPrior(self.distribution)
        error = sqrt(self.influence.variance) if self.influence is not None else 0.0
        if not error:
            return PointPrior(self.value)
        return DistributionPrior(stats.truncnorm(-self.value / error, (1 - self.value) / error, self.value, error))

    def warn_of_error(self) -> None:
        """Warn of errors of π̂ that the interval does not include, or that prevent an interval."""
        caveat = getattr(self.estimator, "caveat", "")
        if self.distribution is not None:
            return
        if self.influence is None:
            warn(
                f"No interval: the source prior {self.value:.3f} was estimated by {self.name}, which cannot tell its "
                "error here (prior_influence_), and an interval without it would pretend. Pass a known source_prior.",
                EstimatedPriorWarning,
            )
        elif caveat:
            error = sqrt(self.influence.variance)
            warn(
                f"The source prior {self.value:.3f} was estimated by {self.name}. The interval includes the sampling "
                f"error of the three samples and of that estimate ({error:.2g}), but not its bias: {caveat}",
                EstimatedPriorWarning,
            )


class SourcePriorMixin:
    """An estimator whose `source_prior` is known, exactly or roughly, or estimated by another estimator at fit.

    What is known may change between two estimates; what is estimated needs another fit.
    """

    source_prior: Any
    _estimated: EstimatedPrior | None  # None where the prior was known at fit
    _source_prior_at_fit: tuple[Any, str]

    @property
    def source_prior_(self) -> float:
        """π as it is set now, or as it was estimated at fit; of a range the middle, of a distribution the mean."""
        check_is_fitted(self)
        if self._estimated and not is_known(self.source_prior):
            return self._estimated.value
        with suppress(InputError):  # an impossible value is refused by `estimate`
            return self._known_prior().value
        return self.source_prior

    @property
    def prior_estimator_(self) -> Any:
        """The fitted estimator of π; None where π is known."""
        check_is_fitted(self)
        return self._estimated.estimator if self._estimated and not is_known(self.source_prior) else None

    def _known_prior(self) -> PriorKnowledge:
        return read_prior(self.source_prior)

    def _set_source_prior(self, estimated: EstimatedPrior | None) -> None:
        """Remember the prior at fit; `estimated` is None where it is known."""
        words = repr(self.source_prior) if estimated else str(read_prior(self.source_prior))
        self._source_prior_at_fit = self.source_prior, words
        self._estimated = estimated

    def _prior_from_fit(self) -> EstimatedPrior | None:
        """The prior that was estimated at fit; None where it is known now."""
        if is_known(self.source_prior):
            return None
        given, words = self._source_prior_at_fit
        if self._estimated is None or (self.source_prior is not given and repr(self.source_prior) != words):
            raise InputError(
                f"source_prior was {words} when {type(self).__name__} was fitted and is {self.source_prior!r} now; "
                "fit again."
            )
        return self._estimated


def estimate_source_prior(estimator: Any, source: Source, random_state: Any = None) -> EstimatedPrior:
    """Fit an estimator of the prior (None is KM2) to the source's scaled rows."""
    if estimator is None:
        estimator = KM2(scenario=source.scenario, standardize=False, random_state=random_state)  # type: ignore[arg-type]
    else:
        estimator = clone(estimator, safe=False)
        if random_state is not None and hasattr(estimator, "get_params"):
            seeded(estimator, random_state)
    name = type(estimator).__name__
    check_scenario(estimator, source.scenario)
    arguments = _fit_arguments(estimator, source)
    with suppress_warnings(FarValueWarning, DuplicateRowsWarning):  # given for the source already
        estimator.fit(source.rows[:], source.labeled, **arguments)
    value = _prior_of(estimator)
    influence = getattr(estimator, "prior_influence_", None)
    if influence is None:
        return EstimatedPrior(estimator, value, None, getattr(estimator, "prior_distribution_", None))
    influence = np.asarray(influence, dtype=float)
    if influence.shape != source.labeled.shape:
        raise InputError(
            f"{name} has a prior_influence_ of shape {influence.shape}, but one number for each of "
            f"{len(source.labeled)} rows is expected."
        )
    if not np.isfinite(influence).all():
        return EstimatedPrior(estimator, value, None)
    # under censoring a labelled row is in both samples, and its influence counts once, with the population's
    alone = source.scenario == "case-control"
    of_positive = influence[source.positive] if alone else np.zeros(len(source.positive))
    of_samples = of_positive, influence[source.population]
    numbers = source.observation[source.positive], source.observation[source.population]
    return EstimatedPrior(estimator, value, PriorInfluence(*of_samples, *numbers))


def check_scenario(source_prior: Any, scenario: str) -> None:
    """Refuse an estimator of the prior of another population."""
    own = getattr(source_prior, "scenario", scenario)
    if own != scenario:
        raise InputError(
            f"{type(source_prior).__name__} has scenario={own!r} but is used under {scenario!r}; the "
            "population is the same, so set both to the same scenario."
        )


def _fit_arguments(estimator: Any, source: Source) -> dict[str, Any]:
    """Return the arguments of an estimator's fit that it takes, and warn where it takes no weights."""
    arguments = {}
    if source.shared_argument is not None and has_fit_parameter(estimator, "shared"):
        arguments["shared"] = source.shared_argument
    if source.weights is not None:
        if getattr(estimator, "takes_weights", True) and has_fit_parameter(estimator, "weights"):
            arguments["weights"] = source.weights
        else:
            warn(
                f"The source prior is estimated by {type(estimator).__name__}, which takes no weights, as if every row "
                "counted the same; pass a known source_prior, or an estimator whose fit takes weights.",
                EstimatedPriorWarning,
            )
    if source.groups is not None and has_fit_parameter(estimator, "groups"):
        arguments["groups"] = source.groups
    return arguments


def _prior_of(estimator: Any) -> float:
    """The ``prior_`` of a fitted estimator, if it can be a source prior."""
    prior = getattr(estimator, "prior_", None)
    if not (is_number(prior) and 0 <= prior < 1):  # type: ignore[operator]
        raise InputError(
            f"{type(estimator).__name__} gave the source prior {prior!r}, but a number from 0 to below 1 is expected "
            "in its prior_ after fit; pass another estimator or a known source_prior."
        )
    return float(prior)  # type: ignore[arg-type]
