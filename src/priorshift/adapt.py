"""Decisions for the target population: posterior and threshold, corrected for its prior.

Under label shift the densities of the classes stay, so the odds of the posterior change by the odds of the priors
alone (Saerens, Latinne and Decaestecker 2002):

    P′(Y=1|x) / P′(Y=0|x) = P(Y=1|x) / P(Y=0|x) · [π′/(1−π′)] / [π/(1−π)].

P′(Y=1|x) > ½ therefore means P(Y=1|x) > π(1−π′) / (π(1−π′) + π′(1−π)). The paper prints the numerator as (1−π)π′; that
would raise the threshold when positives become more common.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from priorshift.errors import InputError
from priorshift.parameters import check_prior


def shifted_threshold(source_prior: float, target_prior: float) -> float:
    """Threshold on the source posterior that decides for the target: π(1−π′)/(π(1−π′) + π′(1−π)).

    A target prior of 0 or 1, which an estimate can be, gives 1 or 0.

    Examples
    --------
    >>> from priorshift.adapt import shifted_threshold
    >>> shifted_threshold(0.2, 0.2)
    0.5
    >>> round(shifted_threshold(0.2, 0.5), 3)  # more positives: decide for them earlier
    0.2
    """
    pi, target = check_prior(source_prior), _target_prior(target_prior)
    return pi * (1 - target) / (pi * (1 - target) + target * (1 - pi))


def shifted_posterior(p: ArrayLike, source_prior: float, target_prior: float) -> NDArray[np.float64]:
    """Posterior of the target population, P′(Y=1|x), from the source posterior p = P(Y=1|x).

    Examples
    --------
    >>> from priorshift.adapt import shifted_posterior
    >>> shifted_posterior([0.0, 0.2, 0.5, 1.0], source_prior=0.2, target_prior=0.5).round(3)
    array([0. , 0.5, 0.8, 1. ])
    """
    posterior = np.asarray(p, dtype=float)
    if not ((posterior >= 0) & (posterior <= 1)).all():
        raise InputError("p holds numbers outside [0, 1] or NaN; pass posterior probabilities P(Y=1|x) of the source.")
    pi, target = check_prior(source_prior), _target_prior(target_prior)
    positive, negative = posterior * (target / pi), (1 - posterior) * ((1 - target) / (1 - pi))
    total = positive + negative
    # with a prior of 0 or 1 a point that only the other class can have is impossible: it keeps the prior's verdict
    return np.where(total > 0, positive / np.where(total > 0, total, 1.0), target)


def _target_prior(prior: Any) -> float:
    if isinstance(prior, (int, float, np.number)) and prior in (0, 1):
        return float(prior)
    return check_prior(prior, "target_prior")
