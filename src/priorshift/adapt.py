"""Decisions for the target population: posterior and threshold, corrected for its prior.

Under label shift the densities of the classes stay, so the odds of the posterior change by the odds of the priors
alone (Saerens, Latinne and Decaestecker 2002):

    P′(Y=1|x) / P′(Y=0|x) = P(Y=1|x) / P(Y=0|x) · [π′/(1−π′)] / [π/(1−π)].

P′(Y=1|x) > ½ therefore means P(Y=1|x) > π(1−π′) / (π(1−π′) + π′(1−π)). The paper prints the numerator as (1−π)π′; that
would raise the threshold when positives become more common.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.io.parameters import check_number, check_prior, is_number
from priorshift.result_tables import to_plain
from priorshift.results import Interval

_SUM, _SUM_OF_ROW = 1e-6, 1e-3  # errors of sums that rounding may leave: of shares, and of posteriors in a row
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


def shifted_posterior(
    p: ArrayLike, source_prior: float | ArrayLike, target_prior: float | ArrayLike
) -> NDArray[np.float64]:
    """Compute the posterior of the target population, P′(Y=1|x), or for several classes P′(Y=k|x).

    Parameters
    ----------
    p : array-like
        The source posterior, P(Y=1|x). For several classes P(Y=k|x), with a column for each class; each row adds up
        to 1, as ``predict_proba`` returns them.
    source_prior, target_prior : float or array-like of shape (classes,)
        π and π′, as in `shifted_threshold`. For several classes the shares of all of them, in the order of the columns
        of `p`; they add up to 1.

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

    Three classes, of which the second becomes more common:

    >>> shifted_posterior([[0.6, 0.2, 0.2]], [0.5, 0.2, 0.3], [0.25, 0.6, 0.15]).round(3)
    array([[0.3, 0.6, 0.1]])
    """
    posterior = _read_floats("p", p)
    if not ((posterior >= 0) & (posterior <= 1)).all():
        raise InputError("p holds numbers outside [0, 1] or NaN; pass posterior probabilities P(Y=1|x) of the source.")
    if np.ndim(source_prior) or np.ndim(target_prior):
        return _shifted_posteriors(posterior, source_prior, target_prior)
    pi, target = check_prior(source_prior), check_target_prior(target_prior)
    # Bayes' rule: P′(Y=y|x) is proportional to P(Y=y|x)·P′(y)/P(y)
    positive, negative = posterior * (target / pi), (1 - posterior) * ((1 - target) / (1 - pi))
    total = positive + negative
    # with a prior of 0 or 1 a point that only the other class can have is impossible: it gets the prior
    return np.where(total > 0, positive / np.where(total > 0, total, 1.0), target)


def _shifted_posteriors(posterior: Floats, source_prior: Any, target_prior: Any) -> NDArray[np.float64]:
    """Compute the posteriors of several classes in the target population; a column of `posterior` is a class."""
    shares = {"source_prior": source_prior, "target_prior": target_prior}
    for name, values in shares.items():
        shares[name] = read = _read_floats(name, values)
        if posterior.ndim == 0 or read.shape != posterior.shape[-1:]:
            raise InputError(f"{name} has shape {read.shape}, but p has shape {posterior.shape}; pass a share for each "
                             "column of p.")  # fmt: skip
        if not ((read >= 0) & (read <= 1)).all() or abs(read.sum() - 1) > _SUM:
            raise InputError(f"{name} adds up to {read.sum():.4g}; pass shares from 0 to 1 that add up to 1.")
    if (shares["source_prior"] == 0).any():
        raise InputError("source_prior has a share of 0; leave out classes that the source does not have.")
    if posterior.size and np.abs(posterior.sum(axis=-1) - 1).max() > _SUM_OF_ROW:
        raise InputError("rows of p do not add up to 1; pass a column for each class, as predict_proba returns them.")
    weighted = posterior * (shares["target_prior"] / shares["source_prior"])
    total = weighted.sum(axis=-1, keepdims=True)
    # a row that only classes with a share of 0 can have is impossible: it gets the priors
    return np.where(total > 0, weighted / np.where(total > 0, total, 1.0), shares["target_prior"])


@dataclass(frozen=True)
class TargetMetrics:
    """Metrics of decisions in the target, estimated without its labels.

    Recall and AUC depend on the classes, which do not change under label shift; the others follow from them, the target
    prior and the share decided positive. No metric is clipped: a value outside [0, 1] means that the prior or the
    sample cannot be right. Each has an interval within [0, 1], such as ``precision_interval``, which includes the
    sampling errors of both samples and the interval of the target prior.

    Examples
    --------
    >>> from priorshift.adapt import target_metrics
    >>> positive, target = [0.9, 0.8, 0.4], [0.9, 0.7, 0.6, 0.3, 0.2, 0.1]
    >>> metrics = target_metrics(positive, target, target_prior=0.4, threshold=0.5)
    >>> print(f"recall {metrics.recall:.2f}, precision {metrics.precision:.2f}, accuracy {metrics.accuracy:.2f}")
    recall 0.67, precision 0.53, accuracy 0.63
    >>> print(f"{metrics.recall_interval.low:.2f} to {metrics.recall_interval.high:.2f}")  # of three positives
    0.21 to 0.94
    """

    target_prior: float
    decided_positive: float
    recall: float
    false_positive_rate: float
    precision: float
    accuracy: float
    auc: float
    decided_positive_interval: Interval
    recall_interval: Interval
    false_positive_rate_interval: Interval
    precision_interval: Interval
    accuracy_interval: Interval
    auc_interval: Interval


def target_metrics(
    positive: ArrayLike,
    target: ArrayLike,
    target_prior: float,
    threshold: float,
    *,
    target_prior_interval: Interval | None = None,
) -> TargetMetrics:
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
    target_prior_interval : Interval or None
        Interval of π′, such as the ``interval`` of an estimate; those of the metrics have its confidence. Default None:
        π′ is known exactly, and the confidence is 0.95.

    Returns
    -------
    TargetMetrics
        A metric that would divide by 0 is NaN, and its interval is [0, 1].

    Notes
    -----
    Recall, q, π′ and the probability behind AUC each have an interval: Wilson's for shares, and that of DeLong et al.
    (1988). The distances of the estimate to their ends are combined as for independent errors (Zou and Donner 2008). An
    estimate of π′ from the same target rows is not independent of q: it is too large where q is, which partly cancels
    in these metrics, so that their intervals are rather too wide.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift import Interval
    >>> from priorshift.adapt import target_metrics
    >>> rng = np.random.default_rng(0)
    >>> target = np.concatenate([rng.normal(2, 1, 3000), rng.normal(0, 1, 7000)])
    >>> prior = Interval(0.28, 0.32, 0.95, "witness")
    >>> metrics = target_metrics(rng.normal(2, 1, 3000), target, 0.3, threshold=1.0, target_prior_interval=prior)
    >>> print(f"{metrics.recall:.2f} {metrics.accuracy:.2f}")  # both are 0.84 in the end
    0.85 0.84
    >>> print(f"{metrics.accuracy_interval.low:.2f} to {metrics.accuracy_interval.high:.2f}")
    0.83 to 0.86
    """
    prior = check_target_prior(target_prior)
    positive_scores, target_scores = _read_floats("positive", positive).ravel(), _read_floats("target", target).ravel()
    if not np.isfinite(check_number("threshold", threshold)):
        raise InputError(f"threshold is {threshold!r}, but it must be a finite number.")
    for name, scores in (("positive", positive_scores), ("target", target_scores)):
        if not len(scores) or not np.isfinite(scores).all():
            raise InputError(f"{name} must hold at least one score, and only finite ones; leave out other rows.")
    interval = target_prior_interval or Interval(prior, prior, 0.95, "known")
    if not 0 <= interval.low <= interval.high <= 1:
        raise InputError(f"target_prior_interval is {interval}, but it must lie within [0, 1].")
    z = float(ndtri((1 + interval.confidence) / 2))
    recall, q = float((positive_scores > threshold).mean()), float((target_scores > threshold).mean())
    exceeds, exceeds_error = _probability_to_exceed(positive_scores, target_scores)
    estimate = np.array([prior, q, recall, exceeds])
    lows, highs = np.array([
        (min(interval.low, prior), max(interval.high, prior)),
        _wilson_interval(q, len(target_scores), z),
        _wilson_interval(recall, len(positive_scores), z),
        (exceeds - z * exceeds_error, exceeds + z * exceeds_error),
    ]).T  # fmt: skip
    values = _metrics(*estimate)
    # each metric with one of its four inputs at an end of its interval, shape (2, 4, metrics)
    at_ends = np.array([[_metrics(*np.where(np.arange(4) == k, ends, estimate)) for k in range(4)]
                        for ends in (lows, highs)])  # fmt: skip
    below = np.hypot.reduce(np.maximum(values - at_ends, 0.0).max(axis=0))
    above = np.hypot.reduce(np.maximum(at_ends - values, 0.0).max(axis=0))
    ends = np.clip(np.nan_to_num([values - below, values + above], nan=0.0), 0.0, 1.0)
    ends[:, ~(np.isfinite(values) & np.isfinite(below + above))] = [[0.0], [1.0]]
    intervals = [Interval(low, high, interval.confidence, "delta") for low, high in ends.T.tolist()]
    return TargetMetrics(prior, *values.tolist(), *intervals)


def _metrics(prior: float, q: float, recall: float, exceeds: float) -> Floats:
    """Return the six metrics from π′, the share decided positive, recall, and P(positive scores above a target row)."""
    negatives = 1 - prior if prior < 1 else float("nan")  # rates of the negatives are NaN if there are none
    return np.array([
        q,
        recall,
        (q - prior * recall) / negatives,
        prior * recall / q if q else float("nan"),
        1 - prior - q + 2 * prior * recall,
        (exceeds - prior / 2) / negatives,
    ])  # fmt: skip


def _probability_to_exceed(positive: Floats, target: Floats) -> tuple[float, float]:
    """Return P(score of a positive > score of a target row), where ties count one half, and its standard error."""

    def shares_below(scores: Floats, others: Floats) -> Floats:
        """Return the share of `others` below each score, ties counted one half."""
        ordered = np.sort(others)
        below, not_above = np.searchsorted(ordered, scores, "left"), np.searchsorted(ordered, scores, "right")
        return np.asarray((below + not_above) / (2 * len(ordered)))

    by_positive, by_target = shares_below(positive, target), 1 - shares_below(target, positive)
    variance = sum(shares.var(ddof=1) / len(shares) if len(shares) > 1 else 0.25 for shares in (by_positive, by_target))
    return float(by_positive.mean()), float(np.sqrt(variance))


def _wilson_interval(share: float, rows: int, z: float) -> tuple[float, float]:
    """Return Wilson's interval of a share among `rows` rows; `z` is the normal quantile of its confidence."""
    shrinkage = 1 + z**2 / rows
    centre = (share + z**2 / (2 * rows)) / shrinkage
    half_width = z * np.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2)) / shrinkage
    return min(centre - half_width, share), max(centre + half_width, share)


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions on rows by their posterior in the target, and how many of them are expected to be right.

    Expectations are sums of calibrated posteriors. Their intervals hold over the interval of the target prior and
    include the chance in the classes of the rows.

    Attributes
    ----------
    is_positive : ndarray of bool
        Whether each row is decided positive.
    threshold : float
        All rows with a larger posterior P′(Y=1|x) are decided positive, and none with a smaller one.
    true_positives : float
        Expected number of positives among the rows decided positive.
    precision, recall : float
        Expected share of positives among the rows decided positive, and share of all positives that these are; NaN
        where no row, or no positive, is expected.
    true_positives_interval, precision_interval, recall_interval : Interval
        Their intervals.
    """

    is_positive: NDArray[np.bool_]
    threshold: float
    true_positives: float
    precision: float
    recall: float
    true_positives_interval: Interval
    precision_interval: Interval
    recall_interval: Interval

    def to_dict(self) -> dict[str, Any]:
        """Return the expectations as plain values for JSON, without the single decisions."""
        rows = {"decided_positive": int(self.is_positive.sum()), "rows": len(self.is_positive)}
        fields = ("threshold", "true_positives", "precision", "recall")
        ends = {f"{name}_interval": getattr(self, f"{name}_interval") for name in fields[1:]}
        plain: dict[str, Any] = to_plain({
            **rows,
            **{name: getattr(self, name) for name in fields},
            **{name: [interval.low, interval.high] for name, interval in ends.items()},
        })  # fmt: skip
        return plain

    def __str__(self) -> str:
        count, rows = int(self.is_positive.sum()), len(self.is_positive)
        if not count:
            return f"decided positive: none of {rows} rows; no posterior exceeds {self.threshold:.3g}"
        which = f"those with the largest posteriors, down to {self.threshold:.3g}"
        low, high = self.true_positives_interval.low, self.true_positives_interval.high
        parts = [f"about {self.true_positives:.0f} of them are positive ({low:.0f} to {high:.0f})"]
        for name in ("precision", "recall"):
            value, interval = getattr(self, name), getattr(self, f"{name}_interval")
            if np.isfinite(value):
                parts.append(f"{name} {value:.2f} ({interval.low:.2f} to {interval.high:.2f})")
        return f"decided positive: {count} of {rows} rows, {which}: {', '.join(parts)}"


def decide(
    posterior: Floats,
    range_of_posterior: tuple[Floats, Floats],
    confidence: float,
    scores: Floats | None = None,
    *,
    cost_ratio: float | None = None,
    top: int | None = None,
    precision: float | None = None,
    recall: float | None = None,
) -> Decisions:
    """Decide on rows by their posteriors, with at most one of the four rules; the default is a cost ratio of 1.

    `range_of_posterior` are the posteriors at the two ends of the target prior's interval. Rows with equal posteriors
    are ordered by their `scores`, if there are any.
    """
    check_rule(cost_ratio=cost_ratio, top=top, precision=precision, recall=recall)
    order = np.lexsort((-posterior if scores is None else -scores, -posterior))
    expected = np.cumsum(posterior[order])  # positives among the first rows
    count = len(posterior)
    if top is not None:
        count = min(int(top), len(posterior))
    elif precision is not None:  # the mean of the largest posteriors decreases with their number
        count = int((expected / np.arange(1, len(posterior) + 1) >= precision * (1 - 1e-12)).sum())
    elif recall is not None:
        wanted = recall * expected[-1]
        count = int(np.searchsorted(expected, wanted * (1 - 1e-12))) + 1
    threshold = 1 / (1 + (1.0 if cost_ratio is None else cost_ratio))
    if top is None and precision is None and recall is None:
        is_positive = posterior > threshold
    else:
        is_positive = np.zeros(len(posterior), dtype=bool)
        is_positive[order[:count]] = True
        # without any row, the largest posterior is below the wanted precision
        threshold = float(posterior[order[count - 1]]) if count else float(precision or 1.0)
    return expect(is_positive, threshold, (posterior, *range_of_posterior), confidence)


def expect(
    is_positive: NDArray[np.bool_], threshold: float, posteriors: tuple[Floats, Floats, Floats], confidence: float
) -> Decisions:
    """Compute what to expect of decisions; `posteriors` are those at the target prior and at the ends of its interval.

    Given its posterior, the class of a row is a draw, so the number of positives among rows has variance Σp(1−p).
    """
    z, count = float(ndtri((1 + confidence) / 2)), int(is_positive.sum())
    values, lows, highs = [], [], []
    for p in posteriors:
        variance, variance_left = ((p * (1 - p))[mask].sum() for mask in (is_positive, ~is_positive))
        found, total = float(p[is_positive].sum()), float(p.sum())
        share = found / total if total > 0 else float("nan")
        # d(found/total) = ((1 − share)·d(found) − share·d(left))/total
        share_error = np.hypot((1 - share) * np.sqrt(variance), share * np.sqrt(variance_left)) / max(total, 1e-300)
        value = np.array([found, found / count if count else float("nan"), share])
        count_error = z * np.sqrt(variance) + 0.5 * (variance > 0)  # numbers of rows are whole
        error, most = np.array([count_error, count_error / max(count, 1), z * share_error]), np.array([count, 1.0, 1.0])
        low, high = np.clip(value - error, 0.0, most), np.clip(value + error, 0.0, most)
        if total == 0:  # next to a prior of 0, the recall of a handful of positives can be anything
            low[2], high[2] = 0.0, 1.0
        values.append(value)
        lows.append(low)
        highs.append(high)
    ends = zip(np.min(lows, axis=0).tolist(), np.max(highs, axis=0).tolist(), strict=True)
    intervals = [Interval(low, high, confidence, "posterior") for low, high in ends]
    return Decisions(is_positive, threshold, *values[0].tolist(), *intervals)


def check_rule(**rule: float | None) -> None:
    """Raise InputError unless at most one rule of decisions is given, with a possible value."""
    given = {name: value for name, value in rule.items() if value is not None}
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} exclude each other; pass one of them.")
    for name, value in given.items():
        largest, expected = 1.0, "a number above 0, at most 1, such as 0.8"
        if name.endswith("top"):
            largest, expected = sys.float_info.max, "a whole number of rows, such as 500"
        elif name.endswith("ratio"):
            largest, expected = sys.float_info.max, "a positive number, such as 20"
        is_possible = is_number(value) and 0 < value <= largest
        if not is_possible or (name.endswith("top") and not float(value).is_integer()):
            raise InputError(f"{name} is {value!r}, but it must be {expected}.")


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
