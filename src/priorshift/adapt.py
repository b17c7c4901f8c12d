"""Decisions for the target population: posterior and threshold, corrected for its prior.

Under label shift the densities of the classes stay, so the odds of the posterior change by the odds of the priors
alone (Saerens, Latinne and Decaestecker 2002):

    P′(Y=1|x) / P′(Y=0|x) = P(Y=1|x) / P(Y=0|x) · [π′/(1−π′)] / [π/(1−π)].

P′(Y=1|x) > ½ therefore means P(Y=1|x) > π(1−π′) / (π(1−π′) + π′(1−π)). The paper prints the numerator as (1−π)π′; that
would raise the threshold when positives become more common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from priorshift.errors import InputError
from priorshift.io.parameters import check_number, check_prior, is_number

__all__ = ["TargetMetrics", "shifted_posterior", "shifted_threshold", "target_metrics"]


def shifted_threshold(source_prior: float, target_prior: float) -> float:
    """Compute the threshold on the source posterior that decides for the target: π(1−π′)/(π(1−π′) + π′(1−π)).

    Parameters
    ----------
    source_prior : float
        π, strictly between 0 and 1.
    target_prior : float
        π′, from 0 to 1, which an estimate can be.

    Returns
    -------
    float
        1 for a target prior of 0, and 0 for one of 1.

    Examples
    --------
    >>> from priorshift.adapt import shifted_threshold
    >>> shifted_threshold(0.2, 0.2)
    0.5
    >>> round(shifted_threshold(0.2, 0.5), 3)  # more positives: decide for them earlier
    0.2
    """
    pi, target = check_prior(source_prior), check_target_prior(target_prior)
    return pi * (1 - target) / (pi * (1 - target) + target * (1 - pi))


def shifted_posterior(p: ArrayLike, source_prior: float, target_prior: float) -> NDArray[np.float64]:
    """Compute the posterior of the target population, P′(Y=1|x).

    Parameters
    ----------
    p : array-like
        The source posterior, P(Y=1|x).
    source_prior, target_prior : float
        π and π′, as in `shifted_threshold`.

    Returns
    -------
    ndarray
        Of the shape of `p`.

    References
    ----------
    Saerens, Latinne and Decaestecker (2002). Adjusting the outputs of a classifier to new a priori probabilities: a
    simple procedure. Neural Computation 14.

    Examples
    --------
    >>> from priorshift.adapt import shifted_posterior
    >>> shifted_posterior([0.0, 0.2, 0.5, 1.0], source_prior=0.2, target_prior=0.5).round(3)
    array([0. , 0.5, 0.8, 1. ])
    """
    posterior = _read_floats("p", p)
    if not ((posterior >= 0) & (posterior <= 1)).all():
        raise InputError("p holds numbers outside [0, 1] or NaN; pass posterior probabilities P(Y=1|x) of the source.")
    pi, target = check_prior(source_prior), check_target_prior(target_prior)
    # Bayes' rule: P′(Y=y|x) is proportional to P(Y=y|x)·P′(y)/P(y)
    positive, negative = posterior * (target / pi), (1 - posterior) * ((1 - target) / (1 - pi))
    total = positive + negative
    # with a prior of 0 or 1 a point that only the other class can have is impossible: it gets the prior
    return np.where(total > 0, positive / np.where(total > 0, total, 1.0), target)


@dataclass(frozen=True)
class TargetMetrics:
    """Metrics of decisions in the target, estimated without its labels.

    Recall and AUC depend on the classes, which do not change under label shift; the others follow from them, the target
    prior and the share decided positive. None is clipped: a value outside [0, 1] means that the prior or the sample
    cannot be right.

    Examples
    --------
    >>> from priorshift.adapt import target_metrics
    >>> positive, target = [0.9, 0.8, 0.4], [0.9, 0.7, 0.6, 0.3, 0.2, 0.1]
    >>> metrics = target_metrics(positive, target, target_prior=0.4, threshold=0.5)
    >>> print(f"recall {metrics.recall:.2f}, precision {metrics.precision:.2f}, accuracy {metrics.accuracy:.2f}")
    recall 0.67, precision 0.53, accuracy 0.63
    """

    target_prior: float
    decided_positive: float
    recall: float
    false_positive_rate: float
    precision: float
    accuracy: float
    auc: float


def target_metrics(positive: ArrayLike, target: ArrayLike, target_prior: float, threshold: float) -> TargetMetrics:
    """Compute metrics of the decision "score > threshold" in the target, without its labels.

    Under label shift the positives' scores have one distribution in source and target, so with q the share of the
    target decided positive, q = π′·recall + (1−π′)·FPR; precision = π′·recall/q, accuracy = 1 − π′ − q + 2π′·recall,
    and P(score of a positive > score of a target row) = π′/2 + (1−π′)·AUC. All depend on π′.

    Parameters
    ----------
    positive : array-like of shape (rows,)
        Scores of positives that the classifier was not fitted on; otherwise recall is too high.
    target : array-like of shape (rows,)
        Scores of target rows.
    target_prior : float
        π′, from 0 to 1.
    threshold : float
        Threshold of the scores.

    Returns
    -------
    TargetMetrics
        A metric that would divide by 0 is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.adapt import target_metrics
    >>> rng = np.random.default_rng(0)
    >>> target = np.concatenate([rng.normal(2, 1, 3000), rng.normal(0, 1, 7000)])
    >>> metrics = target_metrics(rng.normal(2, 1, 3000), target, target_prior=0.3, threshold=1.0)
    >>> print(f"{metrics.recall:.2f} {metrics.accuracy:.2f}")  # both are 0.84 in the end
    0.85 0.84
    """
    prior = check_target_prior(target_prior)
    positive_scores, target_scores = _read_floats("positive", positive).ravel(), _read_floats("target", target).ravel()
    if not np.isfinite(check_number("threshold", threshold)):
        raise InputError(f"threshold is {threshold!r}, but it must be a finite number.")
    for name, scores in (("positive", positive_scores), ("target", target_scores)):
        if not len(scores) or not np.isfinite(scores).all():
            raise InputError(f"{name} must hold at least one score, and only finite ones; leave out other rows.")
    recall, q = float((positive_scores > threshold).mean()), float((target_scores > threshold).mean())
    ordered = np.sort(target_scores)
    below = np.searchsorted(ordered, positive_scores, "left")  # target rows with a lower score than each positive
    not_above = np.searchsorted(ordered, positive_scores, "right")
    # P(score of a positive > score of a target row); ties count one half
    exceeds = (below + not_above).mean() / (2 * len(ordered))
    negatives = 1 - prior if prior < 1 else float("nan")  # rates of the negatives are NaN if there are none
    return TargetMetrics(
        target_prior=prior,
        decided_positive=q,
        recall=recall,
        false_positive_rate=(q - prior * recall) / negatives,
        precision=prior * recall / q if q else float("nan"),
        accuracy=1 - prior - q + 2 * prior * recall,
        auc=float(exceeds - prior / 2) / negatives,
    )


def _read_floats(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return an argument as an array of floats; `name` is its name in the error for other values."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} contains values that are not numbers; pass an array of numbers.") from None


def check_target_prior(prior: Any) -> float:
    """Return the target prior as a float; refuse anything but a number from 0 to 1."""
    if not (is_number(prior) and 0 <= prior <= 1):
        raise InputError(f"target_prior is {prior!r}, but it must be a number from 0 to 1, such as 0.2.")
    return float(prior)
