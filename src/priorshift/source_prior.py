"""Asking an estimator for the source prior, and how much of its error is known."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from sklearn.base import clone

from priorshift.embeddings import Pairs, PriorInfluence
from priorshift.errors import EstimatedPriorWarning, InputError, warn
from priorshift.estimator import seeded
from priorshift.kernels import Matrix
from priorshift.km import KM2
from priorshift.parameters import is_number
from priorshift.samples import Samples


def is_known(source_prior: Any) -> bool:
    """Anything but None and an estimator is meant as a number, and checked as one."""
    return source_prior is not None and (isinstance(source_prior, type) or not hasattr(source_prior, "fit"))


@dataclass(frozen=True)
class AskedPrior:
    """An estimated source prior; `influence` is None where the estimator cannot tell its error."""

    estimator: Any
    value: float
    influence: PriorInfluence | None

    @property
    def name(self) -> str:
        return type(self.estimator).__name__

    def can_tell(self, shared: Pairs) -> bool:
        """Say what an interval with this prior includes; no interval pretends that π̂ is π."""
        if self.influence is None:
            warn(
                f"No interval: the source prior {self.value:.3f} was estimated by {self.name}, which cannot tell its "
                "error here (prior_influence_), and an interval without it would pretend. Pass a known source_prior.",
                EstimatedPriorWarning,
            )
            return False
        caveat = getattr(self.estimator, "caveat", "")
        if caveat:
            error = sqrt(self.influence.variance(shared))
            warn(
                f"The source prior {self.value:.3f} was estimated by {self.name}. The interval includes the sampling "
                f"error of the three samples and of that estimate ({error:.2g}), but not its bias: {caveat}",
                EstimatedPriorWarning,
            )
        return True


def ask_prior(source_prior: Any, scenario: str, random_state: Any, X: Matrix, source: Samples) -> AskedPrior:
    """Fit the estimator, KM2 where none is given, to the source rows."""
    if source_prior is None:
        estimator: Any = KM2(scenario=scenario, random_state=random_state)  # type: ignore[arg-type]
    else:
        estimator = clone(source_prior, safe=False)
        if random_state is not None and hasattr(estimator, "get_params"):
            seeded(estimator, random_state)
    name = type(estimator).__name__
    if getattr(estimator, "scenario", scenario) != scenario:
        raise InputError(
            f"{name} has scenario={estimator.scenario!r} but is asked for the prior under {scenario!r}; the "
            "population is the same, so set both alike."
        )
    estimator.fit(X, source.labeled)
    value = _estimated_prior(estimator)
    influence = getattr(estimator, "prior_influence_", None)
    if influence is None:
        return AskedPrior(estimator, value, None)
    influence = np.asarray(influence, dtype=float)
    if influence.shape != (len(X),):
        raise InputError(
            f"{name} has a prior_influence_ of shape {influence.shape}, but one number for each of {len(X)} rows "
            "is expected."
        )
    if not np.isfinite(influence).all():
        return AskedPrior(estimator, value, None)
    # under censoring a labelled row is in both samples, and its influence counts once, with the population's
    of_positive = influence[source.positive] if scenario == "case-control" else np.zeros(len(source.positive))
    return AskedPrior(estimator, value, PriorInfluence(of_positive, influence[source.population]))


def _estimated_prior(estimator: Any) -> float:
    """The ``prior_`` of a fitted estimator, if it can be a source prior."""
    prior = getattr(estimator, "prior_", None)
    if not (is_number(prior) and 0 <= prior < 1):  # type: ignore[operator]
        raise InputError(
            f"{type(estimator).__name__} gave the source prior {prior!r}, but a number from 0 to below 1 is expected "
            "in its prior_ after fit; pass another estimator or a known source_prior."
        )
    return float(prior)  # type: ignore[arg-type]
