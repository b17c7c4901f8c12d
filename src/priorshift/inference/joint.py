"""Joint errors of the ratios R_k = (1−π′_k)/(1−π) of several targets of one source.

The source's rows move all R̂_k at once, each target's rows only its own, so with ψ_k the influences of the source's
observations on R̂_k,

    Cov(R̂_k, R̂_l) = Σ_i ψ_k(i) ψ_l(i) + [k = l]·(variance from the target's own rows).

A group in two targets, such as a patient in two months, adds the product of its influences on either.

Common errors cancel in differences: π′_l − π′_k = (1−π)(R_k − R_l). Two targets have the same prior if and only if
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

_DRAWS, _BLOCK = 2**16, 2**12  # normal vectors, which give a 95% quantile to 0.01, and how many to draw at a time


@dataclass(frozen=True, eq=False)
class GroupInfluence:
    """Influence of each group of a target on R̂."""

    groups: NDArray[Any]  # distinct names
    influence: Floats

    @classmethod
    def from_rows(cls, groups: NDArray[Any], influence: Floats) -> GroupInfluence:
        """Add up the influence of rows over their groups."""
        names, at = np.unique(groups, return_inverse=True)
        return cls(names, np.bincount(at.reshape(-1), influence).astype(float))


@dataclass(frozen=True, eq=False)
class RatioInfluence:
    """R̂ of one target, and the parts of its error."""

    ratio: float  # R̂
    curve: ConfidenceCurve  # confidence distribution of R, with an error of π that is correlated with it
    prior: PriorKnowledge  # what is known of π apart from the curve
    source: Floats  # influence of each observation of the source; squares add up to the variance from the source
    own_variance: float  # variance from the target's rows
    freedom: float  # Student's degrees of freedom
    # influence of the same observations on an estimate of π; None where that error is in `prior`, or π is known
    of_prior: Floats | None = None
    # influence of the target's groups that are not in the source; None where rows are independent
    own: GroupInfluence | None = None
    # independent rows, or groups, of the target; infinite where `own_variance` is known without error
    observations: float = float("inf")

    def interval(self, confidence: float, value: float) -> Interval:
        """Compute the interval of π′, widened if necessary to contain the estimate `value`."""
        low, high = self.prior.interval(self.curve, confidence)
        return Interval(min(low, value), max(high, value), confidence, "curve")


@dataclass(frozen=True)
class Difference:
    """Difference between the priors of two targets, second less first."""

    first: str
    second: str
    estimate: float  # (1−π)(R̂_first − R̂_second), from raw values
    interval: Interval  # inside [−1, 1]
    standard_error: float
    p_value: float  # of the hypothesis that both have the same prior, which needs no π
    adjusted_p_value: float  # the same, by Holm's rule for all differences in the table


@dataclass(frozen=True)
class EqualityTest:
    """Test of the hypothesis that all targets have the same prior."""

    statistic: float  # sum of squared distances of the R̂_k from the best common R, in units of their joint error
    freedom: int  # degrees of freedom: targets − 1
    p_value: float

    def __str__(self) -> str:
        p = format_p(self.p_value, digits=3)
        return f"equal priors: χ² = {self.statistic:.1f} on {self.freedom} degrees of freedom, {p}"


@dataclass(frozen=True, eq=False)
class JointRatios:
    """The ratios of several targets of one source, and their joint error."""

    ratios: Floats  # R̂_k
    covariance: Floats  # of the ratios, shape (targets, targets)
    freedom: Floats  # Student's degrees of freedom of each
    prior: PriorKnowledge  # what is known of π
    source_prior: float  # the one π that differences are computed with
    prior_covariance: Floats  # of the ratios with an estimate of π from the same rows
    prior_variance: float  # of that estimate; the spread of a distribution is in `prior`
    own_variance: Floats  # variance from each target's rows
    observations: Floats  # independent rows, or groups, of each target

    @classmethod
    def from_influences(cls, parts: Sequence[RatioInfluence], source_prior: float) -> JointRatios:
        """Combine targets whose rows are independent, except for common groups."""
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
        """Compute the covariance of the raw estimates 1 − (1−π)R̂_k, with the error of π where it has one."""
        keep, R, c = 1 - source_prior, self.ratios, self.prior_covariance
        spread = self.prior_variance + self.prior.error**2
        cross = np.outer(R, c) + np.outer(c, R)
        return np.asarray(keep**2 * self.covariance - keep * cross + spread * np.outer(R, R))

    def single_confidence(self, confidence: float) -> float:
        """Compute the confidence level of each interval at which all hold at once with the given confidence.

        From the largest |z_k| of normal errors with the correlation of the raw estimates, by fixed random draws. For a
        range of π, the end that needs the higher level.
        """
        critical = max(
            largest_normal(self.raw_covariance(pi), confidence)
            for pi in (self.prior.range if isinstance(self.prior, RangePrior) else (self.source_prior,))
        )
        return max(float(2 * ndtr(critical) - 1), confidence)

    def difference(self, first: int, second: int, confidence: float) -> tuple[float, Interval, float, float]:
        """Return estimate, interval, standard error and p-value of the difference between two targets."""
        gap = float(self.ratios[first] - self.ratios[second])
        C, c = self.covariance, self.prior_covariance
        variance = max(float(C[first, first] + C[second, second] - 2 * C[first, second]), 0.0)
        with_prior = float(c[first] - c[second])
        freedom = float(min(self.freedom[first], self.freedom[second]))

        def error(pi: float) -> float:
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

        If they are, rows of all targets have the same variance, which is estimated from all of them: estimated from
        the few rows of each target it would be too small where R̂ happens to be far off, and many small targets would
        seem to differ. With the error of that variance the χ² distribution becomes an F distribution.
        """
        inverse = pinvh(self.covariance + np.diag(self._pooled() - self.own_variance))
        weights = inverse.sum(axis=0)
        rest = self.ratios - (weights @ self.ratios) / weights.sum()
        statistic, freedom = max(float(rest @ inverse @ rest), 0.0), len(rest) - 1
        others = float((self.observations - 1).sum())
        p = fdtrc(freedom, others, statistic / freedom) if np.isfinite(others) else chdtrc(freedom, statistic)
        return EqualityTest(statistic, freedom, float(p))

    def _pooled(self) -> Floats:
        """Compute the variance from each target's rows, if the rows of all have the same variance."""
        if not np.isfinite(self.observations).all():
            return self.own_variance
        freedom = self.observations - 1
        of_row = float(freedom @ (self.observations * self.own_variance)) / float(freedom.sum())
        return np.asarray(of_row / self.observations)


def largest_normal(covariance: Floats, confidence: float) -> float:
    """Compute the quantile of the largest of several normal errors, each in units of its standard deviation."""
    spread = np.sqrt(np.diag(covariance))
    spread = np.where(spread > 0, spread, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(spread, spread))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = np.random.default_rng(0)
    blocks = (rng.standard_normal((_BLOCK, len(root))) for _ in range(_DRAWS // _BLOCK))
    largest = np.concatenate([np.abs(z @ root.T).max(axis=1) for z in blocks])
    return float(np.quantile(largest, confidence))


def _common_groups(parts: Sequence[RatioInfluence]) -> Floats:
    """Compute the covariance of targets that comes from groups in two of them."""
    grouped = [(k, part.own) for k, part in enumerate(parts) if part.own is not None]
    if len(grouped) < 2:
        return np.zeros((len(parts), len(parts)))
    names, at = np.unique(np.concatenate([own.groups for _, own in grouped]), return_inverse=True)
    target = np.repeat([k for k, _ in grouped], [len(own.groups) for _, own in grouped])
    values = np.concatenate([own.influence for _, own in grouped])
    matrix = csr_array((values, (target, at.reshape(-1))), shape=(len(parts), len(names)))
    covariance = (matrix @ matrix.T).toarray()
    np.fill_diagonal(covariance, 0.0)
    return np.asarray(covariance)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple testing by Holm's rule (1979)."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return [float(value) for value in adjusted]


def _scaled_interval(
    gap: float, error: float, freedom: float, prior: DistributionPrior, confidence: float
) -> tuple[float, float]:
    """Compute quantiles of (1−π)(R_k − R_l), where π follows its distribution and the other factor Student's."""
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
