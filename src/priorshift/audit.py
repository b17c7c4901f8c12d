"""The share of positives from an audit: the true class of some rows, looked up, and predictions for all rows.

Of n rows of a sample, k drawn at random were looked up (y), and all have a prediction f that was made without those
labels. The prediction-powered mean (Angelopoulos et al. 2023) corrects the audit's share by the difference between the
predictions of its rows and those of all rows:

    θ̂ = ȳ_k − λ(f̄_k − f̄_n).

It estimates the share θ of the population that the n rows are a sample of. With y − λf for residual, and
r = 1 − Var(y − λf)/Var(y) for the part of the labels' variance that the predictions explain,

    Var(θ̂) = Var(y)/n + (1/k − 1/n)Var(y − λf) = θ(1−θ)/K,    1/K = (1−r)/k + r/n,

so that θ̂ is as precise as K labels: k without predictions, and n with perfect ones. λ = Cov(y, f)/Var(f) makes r the
squared correlation and K the largest, whether f is calibrated, on another scale, or of the wrong sign.

The interval and the likelihood are those of Kθ̂ positives among K labels, as Korn and Graubard (1998) do for surveys;
where λ = 0 they are the binomial ones. An r from few labels of one class is too optimistic, because it ignores
positives that the predictions miss, as long as none of them was audited. So the interval assumes two positives and two
negatives more in the audit that are not explained, as Agresti and Coull (1998) do for a share; where rows come in
clusters, these four belong to clusters of one class.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betainc, xlog1py, xlogy

from priorshift.arrays import Floats, Index
from priorshift.errors import InputError
from priorshift.io.labels import LEAST, Audit, read_audit
from priorshift.io.parameters import check_count, check_number, check_prior, check_settings
from priorshift.io.sample_size import effective_size, read_weights
from priorshift.results import Interval

__all__ = ["audit_size", "audited_share"]

_ADDED_LABELS = 2  # labels of each class that the interval adds to an audit, as not explained by predictions
_LARGEST = 1e100  # predictions below it can be squared


@dataclass(frozen=True)
class AuditedShare:
    """Share of positives from an audit and predictions.

    Attributes
    ----------
    value : float
        θ̂, at least the audited positives' share of all rows, and likewise for the negatives.
    standard_error : float
        √(θ̂(1−θ̂)/K) with the r of the audit: too small with few labels of a class, and 0 with none, unlike the interval.
    weight : float
        λ; 0 where it is uncertain whether the predictions help.
    explained : float
        r, the part of the labels' variance that the predictions explain.
    labels : float
        K of the interval, the number of labels that would be as precise without predictions.
    rows : tuple of two int
        k and n, rows looked up and all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.audit import audited_share
    >>> rng = np.random.default_rng(0)
    >>> ill = rng.random(500) < 0.3
    >>> predicted = np.where(ill, 0.8, 0.1) + 0.1 * rng.random(500)
    >>> looked_up = np.where(np.arange(500) < 50, ill, np.nan)
    >>> share = audited_share(looked_up, predicted)
    >>> print(f"{share.value:.2f}, as precise as {share.labels:.0f} labels; rows {share.rows}")
    0.25, as precise as 231 labels; rows (50, 500)
    """

    value: float
    standard_error: float
    weight: float
    explained: float
    labels: float
    rows: tuple[int, int]

    def interval(self, confidence: float = 0.95) -> Interval:
        """Compute the mid-P interval of the share, from Kθ̂ positives among K labels.

        Parameters
        ----------
        confidence : float
            Confidence level. Default 0.95.

        Returns
        -------
        Interval
            Without predictions, the mid-P interval of the audit alone, a little shorter than Clopper and Pearson's.
        """
        check_settings({"confidence": confidence})
        low, high = _mid_p_interval(self.value, self.labels, confidence)
        return Interval(low, high, confidence, "audit")

    def log_likelihood(self, shares: ArrayLike) -> Floats:
        """Compute the log-likelihood of shares, less that of θ̂: K[θ̂ log θ + (1−θ̂) log(1−θ)].

        Parameters
        ----------
        shares : array-like
            θ, from 0 to 1.

        Returns
        -------
        ndarray
            Of the shape of `shares`; without predictions, the binomial log-likelihood.
        """
        theta = np.asarray(shares, dtype=float)
        if not ((theta >= 0) & (theta <= 1)).all():
            raise InputError("shares hold numbers outside [0, 1] or NaN; pass shares of positives.")
        best = xlogy(self.value, self.value) + xlog1py(1 - self.value, -self.value)  # at θ = θ̂, the maximum
        return np.asarray(self.labels * (xlogy(self.value, theta) + xlog1py(1 - self.value, -theta) - best))


def audited_share(
    audit: Audit | ArrayLike, predicted: ArrayLike, cluster: ArrayLike | None = None, weights: ArrayLike | None = None
) -> AuditedShare:
    """Estimate the share of positives from an audit and predictions for all rows.

    λ is the slope of the labels on the predictions, λ̂, shrunk by its jackknife variance:
    λ̂·(1 − Σ(λ̂₍ᵢ₎ − λ̂)²/λ̂²)₊, which is 0 where it depends on a single label. Var(f) is that of the audited rows, but at
    least half that of all: else a few rows with equal low scores would be extrapolated to the high ones.

    Parameters
    ----------
    audit : array-like of shape (n,)
        True classes of rows drawn at random from the sample: 1 or 0, and missing (NaN, None or empty text) elsewhere.
    predicted : array-like of shape (n,)
        f of all rows of the sample: posteriors or scores on any scale, made without the audit's labels. With a constant
        only the audit counts.
    cluster : array-like of shape (n,), optional
        A number for each row, equal for rows that are not independent, such as copies of one observation.
    weights : array-like of shape (n,), optional
        Sample weights; which rows were looked up must not depend on them. The effective sizes are then (Σ w)²/Σ w², or
        less where weights are correlated with the classes.

    Returns
    -------
    AuditedShare

    References
    ----------
    Angelopoulos, Bates, Fannjiang, Jordan and Zrnic (2023). Prediction-powered inference. Science 382.

    Angelopoulos, Duchi and Zrnic (2023). PPI++: efficient prediction-powered inference. arXiv:2311.01453.

    Korn and Graubard (1998). Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data. Survey Methodology 24.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.audit import audited_share
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(2000) < 0.3
    >>> score = positive + rng.normal(scale=0.5, size=2000)
    >>> column = np.where(np.arange(2000) < 100, positive, np.nan)  # the rows are in random order
    >>> for predicted in (np.zeros(2000), score):
    ...     share = audited_share(column, predicted)
    ...     interval = share.interval()
    ...     print(f"{share.value:.2f}, {interval.low:.2f} to {interval.high:.2f}: {share.labels:.0f} labels")
    0.25, 0.17 to 0.34: 100 labels
    0.26, 0.20 to 0.34: 170 labels
    """
    return evaluate_audit(audit, predicted, cluster, weights)[0]


def evaluate_audit(
    audit: Audit | ArrayLike, predicted: ArrayLike, cluster: ArrayLike | None = None, weights: ArrayLike | None = None
) -> tuple[AuditedShare, Floats]:
    """Return the audited share, and the influence of each row on it; the arguments are those of `audited_share`."""
    # f and w are of all n rows; names that end in _k are of the k audited rows; masses are weights that sum to 1
    f = _read_predictions(predicted)
    audit = audit if isinstance(audit, Audit) else read_audit(audit, len(f))
    k, n = len(audit), len(f)
    if audit.index.max(initial=-1) >= n:
        raise InputError(f"predicted has {n} rows, but row {audit.index.max()} was audited; pass all predictions.")
    w = np.ones(n) if weights is None else read_weights(weights, n)
    f_k, w_k, y = f[audit.index], w[audit.index], audit.positive.astype(float)
    cluster_number = _number_clusters(cluster, n)
    cluster_k = np.unique(cluster_number[audit.index], return_inverse=True)[1].reshape(-1)
    clusters = int(cluster_k.max(initial=-1)) + 1
    if clusters < LEAST:
        raise InputError(f"the audited rows are of {clusters} clusters, but at least {LEAST} are needed.")
    mass, mass_k = w / w.sum(), w_k / w_k.sum()
    share = float(mass_k @ y)  # of positives in the audit
    mean, mean_k = float(mass @ f), float(mass_k @ f_k)
    weight = 0.0  # λ
    if f.std() > 1e-12 * np.abs(f).max() and 0 < share < 1:  # predictions and labels both vary
        slope, slope_variance = _regress_labels(f_k, y, cluster_k, float(f.var()) / 2)
        weight = slope * max(0.0, 1 - slope_variance / slope**2) if slope else 0.0
    raw = share - weight * (mean_k - mean)  # θ̂ = ȳ_k − λ(f̄_k − f̄_n)
    audited_mass = mass[audit.index]
    # the audited positives and negatives are known to be in the sample
    value = min(max(raw, float(audited_mass @ y)), 1 - float(audited_mass @ (1 - y)))

    residual = (y - share) - weight * (f_k - mean_k)
    explained = max(0.0, 1 - float(mass_k @ residual**2) / (share * (1 - share))) if weight else 0.0
    # influence of each row on θ̂: of all predictions, and of the audited labels
    influence = weight * mass * (f - mean)
    influence[audit.index] += mass_k * residual
    size_k, size_n = effective_size(w_k), effective_size(w)
    # the variance of θ̂ if rows were independent, and their weights had nothing to do with their classes
    independent = float(mass_k @ residual**2) / size_k + weight**2 * float(mass @ (f - mean) ** 2) / size_n
    independent += 2 * weight * float(mass_k @ ((f_k - mean) * residual)) / size_n
    effect = _design_effect(influence, cluster_number, independent)
    cluster_masses = np.bincount(cluster_k, mass_k)
    # the design effect if all rows of a cluster were of one class
    one_class_effect = float(cluster_masses @ cluster_masses / (mass_k @ mass_k))
    audit_part = _spread_from_audit(share, size_k)
    # the four labels that the interval adds belong to clusters of one class
    cautious_effect = audit_part * effect + (1 - audit_part) * one_class_effect
    audited = AuditedShare(
        value=value,
        standard_error=sqrt(value * (1 - value) * effect / _effective_labels(size_k, size_n, explained)),
        weight=weight,
        explained=explained,
        labels=_effective_labels(size_k, size_n, audit_part * explained) / cautious_effect,
        rows=(k, n),
    )
    return audited, influence


def audit_size(
    width: float, share: float, *, explained: float = 0.0, rows: int | None = None, confidence: float = 0.95
) -> int:
    """Compute the number of labels to look up for an interval of a given width.

    Parameters
    ----------
    width : float
        Width of the interval, between 0 and 1.
    share : float
        Expected share of positives, strictly between 0 and 1; the farther from ½, the fewer labels.
    explained : float
        The part of the labels' variance that predictions explain, as :attr:`AuditedShare.explained` of a first audit.
    rows : int, optional
        n, all rows of the sample. Default: as many as needed.
    confidence : float
        Confidence level of the interval. Default 0.95.

    Returns
    -------
    int
        The smallest k for which an estimate of `share` has an interval no wider than `width`.

    Examples
    --------
    >>> from priorshift.audit import audit_size
    >>> audit_size(0.1, share=0.2)
    246
    >>> audit_size(0.1, share=0.2, explained=0.6, rows=5000)
    112
    """
    for name, number in {"width": width, "explained": explained}.items():
        check_number(name, number)
    share = check_prior(share, "share")
    check_settings({"confidence": confidence})
    if not 0 < width < 1:
        raise InputError(f"width is {width!r}, but it must lie between 0 and 1; pass the width of the interval.")
    if not 0 <= explained <= 1:
        raise InputError(f"explained is {explained!r}, but it must be a share of the variance, from 0 to 1.")
    n = float("inf") if rows is None else check_count("rows", rows, LEAST)
    # bisection for the smallest k: `too_few` labels are too few, `enough` are enough once the first loop has ended
    too_few, enough = LEAST - 1, LEAST
    while (achieved := _expected_width(share, enough, n, explained, confidence)) > width:
        if enough == n:
            raise InputError(f"width is {width!r}, but with all {rows} rows it is {achieved:.3g}; collect more rows.")
        too_few, enough = enough, int(min(2 * enough, n))
    while enough - too_few > 1:
        k = (too_few + enough) // 2
        if _expected_width(share, k, n, explained, confidence) > width:
            too_few = k
        else:
            enough = k
    return enough


def expected_audit(share: float, looked_up: float, rows: float, explained: float = 0.0) -> AuditedShare:
    """Return the result of a planned audit of `looked_up` of `rows` rows, if `share` of them turn out positive.

    `explained` is the part of the labels' variance that predictions are expected to explain.
    """
    error = sqrt(share * (1 - share) / _effective_labels(looked_up, rows, explained))
    labels = _effective_labels(looked_up, rows, _spread_from_audit(share, looked_up) * explained)
    return AuditedShare(share, error, 1.0, explained, labels, (int(looked_up), int(rows)))


def _read_predictions(predicted: ArrayLike) -> Floats:
    """Return predictions as a 1-D array of finite floats whose squares do not overflow."""
    try:
        f = np.asarray(predicted, dtype=float)
    except (TypeError, ValueError):
        raise InputError("predicted contains values that are not numbers; pass one number for each row.") from None
    if f.ndim != 1:
        raise InputError(f"predicted has shape {f.shape}, but one number for each row of the sample is expected.")
    if not (np.abs(f) < _LARGEST).all():
        raise InputError("predicted holds NaN or numbers too large to square; pass posteriors or scores of all rows.")
    return f


def _number_clusters(cluster: ArrayLike | None, n: int) -> Index:
    """Return the number of the cluster of each of n rows, from 0 on; without clusters, each row is its own."""
    if cluster is None:
        return np.arange(n)
    ids = np.asarray(cluster)
    if ids.shape != (n,):
        raise InputError(f"cluster has shape {ids.shape} but predicted has {n} rows; pass one number for each row.")
    return np.asarray(np.unique(ids, return_inverse=True)[1].reshape(-1))


def _regress_labels(f: Floats, y: Floats, cluster: Index, min_variance: float) -> tuple[float, float]:
    """Return the slope λ̂ = Cov(y, f)/Var(f) of labels y (1 or 0) on predictions f of the same rows, and its variance.

    The variance is the jackknife's, Σ(λ̂ without a cluster − λ̂)²; Var(f) is taken to be at least `min_variance`.
    """
    f, y = f - f.mean(), y - y.mean()
    # sums over the rows of each cluster
    size, f_sum, y_sum = np.bincount(cluster), np.bincount(cluster, f), np.bincount(cluster, y)
    ff_sum, fy_sum = np.bincount(cluster, f * f), np.bincount(cluster, f * y)
    rest = len(f) - size  # rows outside each cluster
    # both are centred, so over these rows Σf = −f_sum and Σy = −y_sum, and Σ(f − f̄)(y − ȳ) = Σfy − f_sum·y_sum/rest
    leave_one_out = fy_sum.sum() - fy_sum - f_sum * y_sum / rest
    leave_one_out /= np.maximum(ff_sum.sum() - ff_sum - f_sum**2 / rest, rest * min_variance)
    slope = float(fy_sum.sum() / max(ff_sum.sum(), len(f) * min_variance))
    return slope, float(((leave_one_out - slope) ** 2).sum())


def _design_effect(influence: Floats, cluster: Index, independent: float) -> float:
    """Return the variance of an estimate divided by `independent`, its variance without clusters; at least 1.

    `influence` is that of each row on the estimate; the variance is the sum of squares of their sums over clusters.
    """
    cluster_sums = np.bincount(cluster, influence)
    ratio = float(cluster_sums @ cluster_sums) / independent if independent > 0 else 1.0
    return ratio if ratio > 1 + 1e-9 else 1.0  # less is noise


def _spread_from_audit(share: float, k: float) -> float:
    """Return the part of Σ(y − ȳ)² that k audited labels have once two positives and two negatives are added to them.

    Predictions explain nothing of the added labels, so what they explain of the variance is multiplied by this.
    """
    spread = share * (1 - share)
    # a positive adds (1 − ȳ)² and a negative ȳ², together 1 − 2ȳ(1−ȳ)
    return k * spread / (k * spread + _ADDED_LABELS * (1 - 2 * spread))


def _effective_labels(k: float, n: float, explained: float) -> float:
    """Return the number K of labels that, without predictions, are as precise as k of n rows with them.

    1/K = (1−r)/k + r/n, where r = `explained` is the part of the labels' variance that the predictions explain.
    """
    return 1 / ((1 - explained) / k + explained / n)


def _expected_width(share: float, k: int, n: float, explained: float, confidence: float) -> float:
    """Return the width of the interval if k of n rows are audited and `share` of them turn out positive."""
    labels = _effective_labels(k, n, _spread_from_audit(share, k) * explained)
    low, high = _mid_p_interval(share, labels, confidence)
    return high - low


def _mid_p_interval(share: float, labels: float, confidence: float) -> tuple[float, float]:
    """Return the ends of the mid-P interval of a probability p, if `share` of K = `labels` labels are positive.

    It holds the p with α/2 ≤ P(X > x) + P(X = x)/2 ≤ 1 − α/2, X binomial(K, p), x = K·share, α = 1 − `confidence`.
    """
    x, tail = share * labels, (1 - confidence) / 2

    def mid_p(p: float) -> float:
        """Return P(X > x) + P(X = x)/2; the incomplete beta function is P(X ≥ x), also for x that are not whole."""
        at_least_x = betainc(x, labels - x + 1, p) if x > 0 else 1.0
        above_x = betainc(x + 1, labels - x, p) if x < labels else 0.0
        return float(at_least_x + above_x) / 2

    def solve(level: float, fallback: float) -> float:
        """Return the p at which the mid-P probability is `level`; `fallback` if there is none within [0, 1]."""
        within = mid_p(0.0) < level < mid_p(1.0)
        return float(brentq(lambda p: mid_p(p) - level, 0.0, 1.0, xtol=1e-15)) if within else fallback

    low, high = solve(tail, 0.0), solve(1 - tail, 1.0)
    return min(low, share), max(high, share)
