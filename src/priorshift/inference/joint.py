"""Several targets of one source: how their ratios R_k = (1−π′_k)/(1−π) err together.

The source's rows move all R̂_k at once, each target's rows only its own, so with ψ_k the influences of the source's
observations on R̂_k,

    Cov(R̂_k, R̂_l) = Σ_i ψ_k(i) ψ_l(i) + [k = l]·(variance from the target's own rows).

A group that stands in two targets, such as a patient in two months, adds the product of what it does to either.

What is common cancels in differences: π′_l − π′_k = (1−π)(R_k − R_l). Two targets have the same prior if and only if
R_k = R_l, which is tested without π. An error of π is common too: dπ′_k = R_k dπ − (1−π) dR_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import pinvh
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import chdtrc, fdtrc, ndtr, stdtr, stdtrit

from priorshift.arrays import Floats
from priorshift.formatting import format_p
from priorshift.inference.confidence_curve import ConfidenceCurve
from priorshift.inference.prior_knowledge import DistributionPrior, PriorKnowledge, RangePrior
from priorshift.results import Interval

_DRAWS, _BLOCK = 2**16, 2**12  # of normal vectors, which know a quantile of 95 % to 0.01; as many at a time


@dataclass(frozen=True, eq=False)
class GroupInfluence:
    """How much each group of a target moves R̂.

    Attributes
    ----------
    groups : ndarray of str
        Their names, each once.
    influence : ndarray of the same shape
        Added up over rows.
    """

    groups: NDArray[Any]
    influence: Floats

    @classmethod
    def from_rows(cls, groups: NDArray[Any], influence: Floats) -> GroupInfluence:
        """Add up what rows do.

        Parameters
        ----------
        groups : ndarray of str
            Of each row.
        influence : ndarray of the same shape
            Of each row.

        Returns
        -------
        GroupInfluence
        """
        names, at = np.unique(groups, return_inverse=True)
        return cls(names, np.bincount(at.reshape(-1), influence).astype(float))


@dataclass(frozen=True, eq=False)
class RatioInfluence:
    """What R̂ of one target rests on.

    Attributes
    ----------
    ratio : float
        R̂.
    curve : ConfidenceCurve
        How sure one can be of R; an error of π that is correlated with it is in it.
    prior : PriorKnowledge
        What is known of π, apart from the curve.
    source : ndarray of shape (observations,)
        How much each observation of the source moves R̂; the sum of squares is the variance that comes from the source.
    own_variance : float
        What comes from the target's rows.
    freedom : float
        Student's degrees of freedom.
    of_prior : ndarray of shape (observations,) or None
        How much the same observations move an estimate of π; None where that error is in `prior`, or π is known.
    own : GroupInfluence or None
        How much groups of the target that the source does not have move R̂; None where rows are independent.
    observations : float
        Independent rows, or groups, of the target; infinite where `own_variance` is known without error.
    """

    ratio: float
    curve: ConfidenceCurve
    prior: PriorKnowledge
    source: Floats
    own_variance: float
    freedom: float
    of_prior: Floats | None = None
    own: GroupInfluence | None = None
    observations: float = float("inf")

    def interval(self, confidence: float, value: float) -> Interval:
        """Compute the interval of π′ at some confidence.

        Parameters
        ----------
        confidence : float
            Its own, not that of several intervals at once.
        value : float
            The estimate, which the interval holds.

        Returns
        -------
        Interval
        """
        low, high = self.prior.interval(self.curve, confidence)
        return Interval(min(low, value), max(high, value), confidence, "curve")


@dataclass(frozen=True)
class Difference:
    """By how much the prior of a second target is above that of a first.

    Attributes
    ----------
    first, second : str
        The two targets.
    estimate : float
        (1−π)(R̂_first − R̂_second), from raw values.
    interval : Interval
        Inside [−1, 1].
    standard_error : float
        Of the estimate.
    p_value : float
        Of the hypothesis that both have the same prior, which needs no π.
    adjusted_p_value : float
        The same, by Holm's rule for all differences that were asked for together.
    """

    first: str
    second: str
    estimate: float
    interval: Interval
    standard_error: float
    p_value: float
    adjusted_p_value: float


@dataclass(frozen=True)
class EqualityTest:
    """Test of the hypothesis that all targets have the same prior.

    Attributes
    ----------
    statistic : float
        The sum of squared distances of the R̂_k from the best common R, in units of their joint error.
    freedom : int
        Its degrees of freedom, one less than targets.
    p_value : float
        The probability of so large a statistic if the priors are equal.
    """

    statistic: float
    freedom: int
    p_value: float

    def __str__(self) -> str:
        p = format_p(self.p_value, digits=3)
        return f"equal priors: χ² = {self.statistic:.1f} on {self.freedom} degrees of freedom, {p}"


@dataclass(frozen=True, eq=False)
class JointRatios:
    """The ratios of several targets of one source, and their joint error.

    Attributes
    ----------
    ratios : ndarray of shape (targets,)
        R̂_k.
    covariance : ndarray of shape (targets, targets)
        Of the ratios.
    freedom : ndarray of shape (targets,)
        Student's degrees of freedom of each.
    prior : PriorKnowledge
        What is known of π.
    source_prior : float
        The one π that differences are computed with.
    prior_covariance : ndarray of shape (targets,)
        Of the ratios with an estimate of π from the same rows.
    prior_variance : float
        Of that estimate; the spread of a distribution is in `prior`.
    own_variance : ndarray of shape (targets,)
        What comes from each target's rows.
    observations : ndarray of shape (targets,)
        Independent rows, or groups, of each target.
    """

    ratios: Floats
    covariance: Floats
    freedom: Floats
    prior: PriorKnowledge
    source_prior: float
    prior_covariance: Floats
    prior_variance: float
    own_variance: Floats
    observations: Floats

    @classmethod
    def from_influences(cls, parts: Sequence[RatioInfluence], source_prior: float) -> JointRatios:
        """Put targets together.

        Parameters
        ----------
        parts : sequence of RatioInfluence
            Of targets whose rows are independent, but for groups.
        source_prior : float
            The one π that differences are computed with.

        Returns
        -------
        JointRatios
        """
        common = np.stack([part.source for part in parts])
        covariance = common @ common.T + np.diag([part.own_variance for part in parts]) + _common_groups(parts)
        moves = parts[0].of_prior
        return cls(
            np.array([part.ratio for part in parts]),
            covariance,
            np.array([part.freedom for part in parts]),
            parts[0].prior,
            source_prior,
            np.zeros(len(parts)) if moves is None else common @ moves,
            0.0 if moves is None else float(moves @ moves),
            np.array([part.own_variance for part in parts]),
            np.array([part.observations for part in parts]),
        )

    def raw_covariance(self, source_prior: float) -> Floats:
        """Compute the covariance of the raw estimates 1 − (1−π)R̂_k, with the error of π where it has one.

        Parameters
        ----------
        source_prior : float
            π.

        Returns
        -------
        ndarray of shape (targets, targets)
        """
        keep, R, c = 1 - source_prior, self.ratios, self.prior_covariance
        spread = self.prior_variance + self.prior.error**2
        cross = np.outer(R, c) + np.outer(c, R)
        return np.asarray(keep**2 * self.covariance - keep * cross + spread * np.outer(R, R))

    def single_confidence(self, confidence: float) -> float:
        """Compute the confidence that each interval must have so that all hold at once.

        The distribution of the largest |z_k| of normal errors with the correlation of the raw estimates, from
        draws that are always the same. Of a range of π, the end that asks for more.

        Parameters
        ----------
        confidence : float
            Of all intervals together.

        Returns
        -------
        float
            At least `confidence`.
        """
        critical = max(
            largest_normal(self.raw_covariance(pi), confidence)
            for pi in (self.prior.range if isinstance(self.prior, RangePrior) else (self.source_prior,))
        )
        return max(float(2 * ndtr(critical) - 1), confidence)

    def difference(self, first: int, second: int, confidence: float) -> tuple[float, Interval, float, float]:
        """Compare two targets.

        Parameters
        ----------
        first, second : int
            Their places.
        confidence : float
            Of the interval.

        Returns
        -------
        estimate, interval, standard_error, p_value
            As in :class:`Difference`.
        """
        gap = float(self.ratios[first] - self.ratios[second])
        C, c = self.covariance, self.prior_covariance
        variance = max(float(C[first, first] + C[second, second] - 2 * C[first, second]), 0.0)
        with_prior = float(c[first] - c[second])
        freedom = float(min(self.freedom[first], self.freedom[second]))

        def error(pi: float) -> float:  # numpydoc ignore=GL08
            keep = 1 - pi
            square = keep**2 * variance - 2 * keep * gap * with_prior + gap**2 * self.prior_variance
            return sqrt(max(square, 0.0))

        estimate = (1 - self.source_prior) * gap
        t = float(stdtrit(freedom, (1 + confidence) / 2))
        if isinstance(self.prior, DistributionPrior):
            low, high = _scaled_interval(gap, sqrt(variance), freedom, self.prior, confidence)
        else:
            ends = self.prior.range if isinstance(self.prior, RangePrior) else (self.source_prior,)
            low = min((1 - pi) * gap - t * error(pi) for pi in ends)
            high = max((1 - pi) * gap + t * error(pi) for pi in ends)
        low, high = (float(np.clip(end, -1, 1)) for end in (min(low, estimate), max(high, estimate)))
        z = abs(gap) / sqrt(variance) if variance > 0 else float(np.where(gap == 0, 0.0, np.inf))
        total = float(np.hypot(error(self.source_prior), gap * self.prior.error))
        return estimate, Interval(low, high, confidence, "joint"), total, float(2 * stdtr(freedom, -z))

    def equality(self) -> EqualityTest:
        """Test whether all ratios are equal, by Wald's statistic.

        If they are, rows of all targets vary alike, so that one variance of a row is estimated from all of them: by
        the few rows of each target alone it would be too small where R̂ happens to be far off, and many small targets
        would seem to differ. Its own error makes an F distribution of the χ².

        Returns
        -------
        EqualityTest
        """
        inverse = pinvh(self.covariance + np.diag(self._pooled() - self.own_variance))
        weights = inverse.sum(axis=0)
        rest = self.ratios - (weights @ self.ratios) / weights.sum()
        statistic, freedom = max(float(rest @ inverse @ rest), 0.0), len(rest) - 1
        others = float((self.observations - 1).sum())
        p = fdtrc(freedom, others, statistic / freedom) if np.isfinite(others) else chdtrc(freedom, statistic)
        return EqualityTest(statistic, freedom, float(p))

    def _pooled(self) -> Floats:
        """What comes from each target's rows, if the rows of all vary alike."""
        if not np.isfinite(self.observations).all():
            return self.own_variance
        freedom = self.observations - 1
        of_row = float(freedom @ (self.observations * self.own_variance)) / float(freedom.sum())
        return np.asarray(of_row / self.observations)


def largest_normal(covariance: Floats, confidence: float) -> float:
    """Compute what the largest of several normal errors, each in units of its own, exceeds with 1 − confidence.

    Parameters
    ----------
    covariance : ndarray of shape (errors, errors)
        Of the errors.
    confidence : float
        That none exceeds it.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.inference.joint import largest_normal
    >>> alike, apart = np.ones((2, 2)), np.eye(2)
    >>> print(f"{largest_normal(alike, 0.95):.2f}, {largest_normal(apart, 0.95):.2f}")
    1.96, 2.24
    """
    spread = np.sqrt(np.diag(covariance))
    spread = np.where(spread > 0, spread, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(spread, spread))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = np.random.default_rng(0)
    blocks = (rng.standard_normal((_BLOCK, len(root))) for _ in range(_DRAWS // _BLOCK))
    largest = np.concatenate([np.abs(z @ root.T).max(axis=1) for z in blocks])
    return float(np.quantile(largest, confidence))


def _common_groups(parts: Sequence[RatioInfluence]) -> Floats:
    """What groups that stand in two targets add to their covariance."""
    found = [(k, part.own) for k, part in enumerate(parts) if part.own is not None]
    made = np.zeros((len(parts), len(parts)))
    if len(found) < 2:
        return made
    names, at = np.unique(np.concatenate([own.groups for _, own in found]), return_inverse=True)
    target = np.repeat([k for k, _ in found], [len(own.groups) for _, own in found])
    values = np.concatenate([own.influence for _, own in found])
    matrix = csr_array((values, (target, at.reshape(-1))), shape=(len(parts), len(names)))
    made = (matrix @ matrix.T).toarray()
    np.fill_diagonal(made, 0.0)
    return np.asarray(made)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for being several, by Holm's rule.

    Parameters
    ----------
    p_values : sequence of float
        In any order.

    Returns
    -------
    list of float
        In the same order; each is at most 1.

    References
    ----------
    Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6.

    Examples
    --------
    >>> from priorshift.inference.joint import holm
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return [float(value) for value in adjusted]


def _scaled_interval(
    gap: float, error: float, freedom: float, prior: DistributionPrior, confidence: float
) -> tuple[float, float]:
    """Quantiles of (1−π)(R_k − R_l), where π follows its distribution and the other factor Student's."""
    values, weights = prior.points
    keep = np.maximum(1 - values, 1e-12)

    def quantile(level: float) -> float:
        def below(x: float) -> float:
            with np.errstate(divide="ignore", invalid="ignore"):
                t = np.where(x == keep * gap, 0.0, (x / keep - gap) / error)
            return float(np.average(stdtr(freedom, t), weights=weights)) - level

        if below(-1.0) >= 0:
            return -1.0
        return 1.0 if below(1.0) <= 0 else float(brentq(below, -1.0, 1.0))

    return quantile((1 - confidence) / 2), quantile((1 + confidence) / 2)
