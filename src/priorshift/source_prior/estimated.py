"""The source prior π as an estimator tells it that is asked, and how much of its error is known."""

from __future__ import annotations

from collections.abc import Callable
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
from priorshift.io.estimators import seeded
from priorshift.io.observations import PriorInfluence
from priorshift.io.parameters import is_known, is_number
from priorshift.problem import Source
from priorshift.source_prior.km import KM2
from priorshift.warning_records import suppress_warnings, warn

LEAST_PRIOR = 1e-3  # what an estimate of 0 is taken for where odds are needed, and 1 less this, an estimate of 1


@dataclass(frozen=True, eq=False)
class EstimatedPrior:
    """An estimated source prior.

    Attributes
    ----------
    estimator : estimator
        The one that was asked, fitted.
    value : float
        π̂.
    influence : PriorInfluence or None
        How much each row moves it; None where the estimator cannot tell.
    distribution : distribution or None
        What it leaves open of π, of an estimator with a ``prior_distribution_``.
    audited : AuditedPrior or None
        What an audit made of it.
    """

    estimator: Any
    value: float
    influence: PriorInfluence | None
    distribution: Any = None
    audited: AuditedPrior | None = None

    @property
    def name(self) -> str:  # numpydoc ignore=RT01
        """Of the estimator's class, and its audit."""
        name = type(self.estimator).__name__
        return name if self.audited is None else self.audited.by(name)

    def knowledge(self) -> PriorKnowledge:
        """Give what is known of π as it would be from elsewhere.

        Returns
        -------
        Distributed or Known
            The latter where the estimator cannot tell its error.
        """
        if self.distribution is not None:
            return DistributionPrior(self.distribution)
        error = sqrt(self.influence.variance) if self.influence is not None else 0.0
        if not error:
            return PointPrior(self.value)
        return DistributionPrior(stats.truncnorm(-self.value / error, (1 - self.value) / error, self.value, error))

    def warn_of_error(self) -> None:
        """Say what an interval with this prior includes; no interval pretends that π̂ is π."""
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
    """An estimator whose `source_prior` is known, exactly or roughly, or is asked of another estimator at fit.

    Knowledge may take the place of what was asked, or of other knowledge, between two estimates; but nothing is asked
    without a fit.
    """

    source_prior: Any
    _estimated: EstimatedPrior | None  # None where the prior was known at fit
    _source_prior_at_fit: tuple[Any, str]

    @property
    def source_prior_(self) -> float:  # numpydoc ignore=RT01
        """π as it is set now, or as it was estimated at fit; of a range the middle, of a distribution the mean."""
        check_is_fitted(self)
        if self._estimated and not is_known(self.source_prior):
            return self._estimated.value
        with suppress(InputError):  # what cannot be is refused by `estimate`, not by a look
            return self._knowledge().value
        return self.source_prior

    @property
    def prior_estimator_(self) -> Any:  # numpydoc ignore=RT01
        """What was asked for π; None where it is known."""
        check_is_fitted(self)
        return self._estimated.estimator if self._estimated and not is_known(self.source_prior) else None

    def _knowledge(self) -> PriorKnowledge:
        """What the user knows of π."""
        return read_prior(self.source_prior)

    def _set_source_prior(self, ask: Callable[[], EstimatedPrior]) -> None:
        known = is_known(self.source_prior)
        words = str(read_prior(self.source_prior)) if known else repr(self.source_prior)
        self._source_prior_at_fit = self.source_prior, words
        self._estimated = None if known else ask()

    def _answer(self) -> EstimatedPrior | None:
        """What was asked at fit; None where π is known now."""
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
    """Fit an estimator of the prior to the source's scaled rows.

    Parameters
    ----------
    estimator : estimator or None
        Anything with ``fit(X, y)`` and then ``prior_``; None is :class:`KM2`.
    source : Source
        The population is that of its scenario.
    random_state : int, Generator or None
        Decides what is random in the estimator where it was given no random_state.

    Returns
    -------
    EstimatedPrior
    """
    if estimator is None:
        estimator = KM2(scenario=source.scenario, standardize=False, random_state=random_state)  # type: ignore[arg-type]
    else:
        estimator = clone(estimator, safe=False)
        if random_state is not None and hasattr(estimator, "get_params"):
            seeded(estimator, random_state)
    name = type(estimator).__name__
    check_scenario(estimator, source.scenario)
    told = _fit_arguments(estimator, source)
    with suppress_warnings(FarValueWarning, DuplicateRowsWarning):  # they were said of the source as it is
        estimator.fit(source.rows[:], source.labeled, **told)
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
    """Refuse an estimator that would be asked about another population.

    Parameters
    ----------
    source_prior : float, estimator or None
        Only an estimator can have a scenario.
    scenario : str
        Of who asks.
    """
    own = getattr(source_prior, "scenario", scenario)
    if own != scenario:
        raise InputError(
            f"{type(source_prior).__name__} has scenario={own!r} but is asked for the prior under {scenario!r}; the "
            "population is the same, so set both alike."
        )


def _fit_arguments(estimator: Any, source: Source) -> dict[str, Any]:
    """Return the arguments of an estimator's fit that it takes, and warn where it takes no weights."""
    told = {}
    if source.shared_argument is not None and has_fit_parameter(estimator, "shared"):
        told["shared"] = source.shared_argument
    if source.weights is not None:
        if getattr(estimator, "takes_weights", True) and has_fit_parameter(estimator, "weights"):
            told["weights"] = source.weights
        else:
            warn(
                f"The source prior is estimated by {type(estimator).__name__}, which takes no weights, as if every row "
                "counted the same; pass a known source_prior, or an estimator whose fit takes weights.",
                EstimatedPriorWarning,
            )
    if source.groups is not None and has_fit_parameter(estimator, "groups"):
        told["groups"] = source.groups
    return told


def _prior_of(estimator: Any) -> float:
    """The ``prior_`` of a fitted estimator, if it can be a source prior."""
    prior = getattr(estimator, "prior_", None)
    if not (is_number(prior) and 0 <= prior < 1):  # type: ignore[operator]
        raise InputError(
            f"{type(estimator).__name__} gave the source prior {prior!r}, but a number from 0 to below 1 is expected "
            "in its prior_ after fit; pass another estimator or a known source_prior."
        )
    return float(prior)  # type: ignore[arg-type]
