"""Joint errors of several targets: their ratios R_k = (q−π′_k)/(q−π) to one source, and strata pooled to one target.

The source's rows move all R̂_k at once, each target's rows only its own, so with ψ_k the influences of the source's
observations on R̂_k,

    Cov(R̂_k, R̂_l) = Σ_i ψ_k(i) ψ_l(i) + [k = l]·(variance from the target's own rows).

A group in two targets, such as a patient in two months, adds the product of its influences on either.

Here q is the purity of the labelled rows, 1 without label errors (:mod:`priorshift.inference.prior_knowledge`).
Common errors cancel in differences: π′_l − π′_k = (q−π)(R_k − R_l). Two targets have the same prior if and only if
R_k = R_l, which is tested without π and q. Errors of π and q are common too: dπ′_k = R_k dπ + (1−R_k) dq − (q−π) dR_k.

Strata of a target add up to π′ = Σ W_k π′_k, W_k the share of stratum k in the target population, of which the target's
rows are a sample. The ends of the interval are at

    θ ± √(Σ_kl ρ_kl w_k d_k w_l d_l + z² Σ w_k (v_k − θ)²/n′),    θ = Σ w_k v_k,

with v_k the estimates, w_k = n′_k/n′ (or the share of the weights) and d_k the distance of v_k from the lower or the
upper end of its interval (the method of variance estimates recovery: skew intervals stay skew). Strata have rows of
their own, so their errors are independent, ρ_kl = 0, unless a group, such as a patient, is in both: then ρ_kl is the
correlation of the groups' influences on either estimate, or 1 where that is not known. The error of one π for all
strata is common to all of them: a range is taken at either end in all strata, and the spread of a distribution is
added up before it is squared. The standard error is computed in the same way, for a range of π at its middle.
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
from scipy.special import chdtrc, fdtrc, ndtr, ndtri, stdtr, stdtrit

from priorshift.arrays import Floats, Index
from priorshift.formatting import format_p
from priorshift.inference.confidence_curve import ConfidenceCurve, prior_from_ratio
from priorshift.inference.prior_knowledge import Case, PriorKnowledge
from priorshift.io.observations import linked
from priorshift.results import Interval, PriorEstimate

_DRAWS, _BLOCK = 2**16, 2**12  # normal vectors, which give a 95% quantile to 0.01, and how many to draw at a time


@dataclass(frozen=True, eq=False)
class GroupInfluence:
    """Influence of each group of a target, such as a patient, on R̂."""

    groups: NDArray[Any]  # distinct names, sorted, shape (groups,)
    influence: Floats  # sum over the rows of each group, shape (groups,)

    @classmethod
    def from_rows(cls, groups: NDArray[Any], influence: Floats) -> GroupInfluence:
        """Add up the influence of each row on R̂ over the rows of its group; both arguments have shape (rows,)."""
        names, code = np.unique(groups, return_inverse=True)
        return cls(names, np.bincount(code.reshape(-1), influence).astype(float))


@dataclass(frozen=True, eq=False)
class RatioInfluence:
    """R̂ of one target, and the parts of its error: Var(R̂) = Σ source_influence² + own_variance."""

    ratio: float  # R̂
    curve: ConfidenceCurve  # confidence distribution of R, with an error of π that is correlated with it
    prior: PriorKnowledge  # what is known of π apart from the curve
    source_influence: Floats  # of each observation of the source on R̂, shape (observations of the source,)
    own_variance: float  # variance of R̂ from the target's own rows
    freedom: float  # Student's degrees of freedom
    # influence of the same observations on an estimate of π, shape (observations of the source,); None where that error
    # is in `prior`, or π is known
    prior_influence: Floats | None = None
    # influence of the target's groups that are not in the source; None where rows are independent
    group_influence: GroupInfluence | None = None
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
    estimate: float  # (q−π)(R̂_first − R̂_second), from raw values
    interval: Interval  # inside [−1, 1]
    standard_error: float
    p_value: float  # of the hypothesis that both have the same prior, which needs no π
    adjusted_p_value: float  # the same, by Holm's rule for all differences in the table
    ratio: float  # of the priors, second over first, from raw values; NaN where one of them is not positive
    ratio_interval: Interval  # its upper end is infinite where the first prior may be 0


@dataclass(frozen=True)
class EqualityTest:
    """Test of the hypothesis that all targets have the same prior."""

    statistic: float  # sum of squared distances of the R̂_k from the best common R, in units of their joint error
    freedom: int  # degrees of freedom: targets − 1
    p_value: float

    def __str__(self) -> str:
        """Return the result as one line."""
        p = format_p(self.p_value, digits=3)
        return f"equal priors: χ² = {self.statistic:.1f} on {self.freedom} degrees of freedom, {p}"


@dataclass(frozen=True, eq=False)
class JointRatios:
    """The ratios of several targets of one source, and their joint error; arrays have shape (targets,)."""

    ratios: Floats  # R̂_k
    covariance: Floats  # of the ratios, shape (targets, targets)
    freedom: Floats  # Student's degrees of freedom of each
    prior: PriorKnowledge  # what is known of π
    source_prior: float  # the one π that differences are computed with
    prior_covariance: Floats  # of the ratios with an estimate of π from the same rows; 0 without one
    prior_variance: float  # of that estimate; the spread of a distribution is in `prior`
    own_variance: Floats  # variance from each target's rows
    observations: Floats  # independent rows, or groups, of each target

    @classmethod
    def from_influences(cls, targets: Sequence[RatioInfluence], source_prior: float) -> JointRatios:
        """Compute the joint error of targets of one source; their own rows are independent, except for common groups.

        Influences of all targets are of the same observations of the source, in the same order. What is known of π, and
        the influence on its estimate, are the same for all targets.
        """
        source = np.stack([target.source_influence for target in targets])  # shape (targets, observations)
        prior_influence = targets[0].prior_influence
        prior_covariance, prior_variance = np.zeros(len(targets)), 0.0
        if prior_influence is not None:
            prior_covariance, prior_variance = source @ prior_influence, float(prior_influence @ prior_influence)
        own_variance = np.array([target.own_variance for target in targets], dtype=float)
        return cls(
            ratios=np.array([target.ratio for target in targets], dtype=float),
            covariance=source @ source.T + np.diag(own_variance) + _common_groups(targets),
            freedom=np.array([target.freedom for target in targets], dtype=float),
            prior=targets[0].prior,
            source_prior=source_prior,
            prior_covariance=prior_covariance,
            prior_variance=prior_variance,
            own_variance=own_variance,
            observations=np.array([target.observations for target in targets], dtype=float),
        )

    def raw_covariance(self, source_prior: float, purity: float = 1.0) -> Floats:
        """Compute the covariance of the raw estimates q − (q−π)R̂_k of all targets, with the errors of π and q.

        `source_prior` is π, `purity` is q. Returns shape (targets, targets).
        """
        factor, R = purity - source_prior, self.ratios
        prior_covariance, estimate_variance = purity * self.prior_covariance, purity**2 * self.prior_variance
        (prior_error, by_prior), *others = self.prior.influences(R)
        cross = np.outer(R, prior_covariance) + np.outer(prior_covariance, R)
        # delta method: dπ′_k = R_k dπ + (1−R_k) dq − (q−π) dR_k. An estimate of π from the rows is q times that of κ
        total = factor**2 * self.covariance - factor * cross
        if self.prior_variance:
            total = total + estimate_variance * np.outer(R, R)
        total = total + prior_error**2 * np.outer(by_prior, by_prior)
        for error, derivative in others:
            total = total + error**2 * np.outer(derivative, derivative)
        return np.asarray(total)

    def single_confidence(self, confidence: float) -> float:
        """Compute the confidence level of each target's interval at which all hold at once with the given confidence.

        From the largest |z_k| of normal errors with the correlation of the raw estimates, by fixed random draws. For a
        range of π, the end that needs the higher level.
        """
        corners = self.prior.corners(self.source_prior)
        critical = max(largest_normal(self.raw_covariance(pi, purity), confidence) for purity, pi in corners)
        return max(float(2 * ndtr(critical) - 1), confidence)

    def difference(self, first: int, second: int, confidence: float) -> tuple[float, Interval, float, float]:
        """Return estimate, interval, standard error and p-value of π′_second − π′_first = (q−π)(R_first − R_second).

        `first` and `second` are positions of targets. The p-value is of R_first = R_second, which needs no π.
        """
        gap = float(self.ratios[first] - self.ratios[second])
        covariance = self.covariance
        variance = covariance[first, first] + covariance[second, second] - 2 * covariance[first, second]
        variance = max(float(variance), 0.0)  # of the gap
        gap_prior_covariance = float(self.prior_covariance[first] - self.prior_covariance[second])
        freedom = float(min(self.freedom[first], self.freedom[second]))

        def standard_error(purity: float, pi: float) -> float:
            """Return the standard error of (q−π)·gap: d((q−π)·gap) = (q−π) d(gap) − gap dπ, where dπ is q dκ."""
            factor, covariance = purity - pi, purity * gap_prior_covariance
            square = factor**2 * variance - 2 * factor * gap * covariance + gap**2 * (purity**2 * self.prior_variance)
            return sqrt(max(square, 0.0))

        in_use = self.prior.purity, self.source_prior
        estimate = (in_use[0] - in_use[1]) * gap
        if self.prior.is_distributed:
            # the error of an estimate of π from the rows is that at the values in use
            error = standard_error(*in_use) / (in_use[0] - in_use[1]) if self.prior_variance else sqrt(variance)
            ends = [_scaled_interval(gap, error, freedom, case, confidence) for case in self.prior.cases]
            low, high = min(low for low, _ in ends), max(high for _, high in ends)
        else:
            t = float(stdtrit(freedom, (1 + confidence) / 2))
            corners = self.prior.corners(self.source_prior)
            low = min((purity - pi) * gap - t * standard_error(purity, pi) for purity, pi in corners)
            high = max((purity - pi) * gap + t * standard_error(purity, pi) for purity, pi in corners)
        low, high = float(np.clip(min(low, estimate), -1, 1)), float(np.clip(max(high, estimate), -1, 1))
        interval = Interval(low, high, confidence, "joint")
        total_error = float(np.hypot(standard_error(*in_use), gap * self.prior.factor_error))
        # if both ratios are equal, rows of both targets have the same variance, as in `equality`
        pair = np.array([first, second])
        variance_if_equal = variance + float((self._common_variance(pair) - self.own_variance[pair]).sum())
        p_value = 1.0 if gap == 0 else 0.0  # without any variance
        if variance_if_equal > 0:
            p_value = float(2 * stdtr(freedom, -abs(gap) / sqrt(variance_if_equal)))
        return estimate, interval, total_error, p_value

    def prevalence_ratio(self, first: int, second: int, confidence: float) -> tuple[float, Interval]:
        """Return estimate and interval of π′_second/π′_first, by Fieller's test of π′_second − ratio·π′_first = 0.

        `first` and `second` are positions of targets. A prior outside [0, 1] counts as the nearer end. For a range of π
        the interval holds for all of it for which neither prior is negative.
        """
        t = float(stdtrit(float(min(self.freedom[first], self.freedom[second])), (1 + confidence) / 2))
        R, corners = self.ratios[[second, first]], self.prior.corners(self.source_prior)
        if len(corners) > 1:  # the ratio is monotone in π where both priors are positive
            highest = max(pi for _, pi in corners)
            share = 1 - 1 / max(float(R.max()), 1.0)  # of q: a π below it would make one of the two priors negative
            corners = tuple((purity, min(max(pi, purity * share), highest)) for purity, pi in corners)
        lows, highs = [], []
        for purity, pi in corners:
            x, y = np.maximum(purity - (purity - pi) * R, 0.0).tolist()
            V = self.raw_covariance(pi, purity)
            # the ratios ρ that are not rejected have aρ² − 2bρ + c ≤ 0
            a, b = y**2 - t**2 * V[first, first], x * y - t**2 * V[first, second]
            c = x**2 - t**2 * V[second, second]
            root = b + sqrt(max(b**2 - a * c, 0.0))
            is_bounded = root > 0 and (a > 0 or b**2 >= a * c)  # for a > 0 the discriminant is not negative
            lows.append(max(float(c / root), 0.0) if is_bounded else 0.0)
            highs.append(max(float(root), 0.0) / a if a > 0 else float("inf"))
        purity = self.prior.purity
        x, y = (purity - (purity - self.source_prior) * R).tolist()
        low, high = sorted((min(lows), max(highs)))  # without any variance, rounding may exchange them
        return x / y if x > 0 and y > 0 else float("nan"), Interval(low, high, confidence, "Fieller")

    def _common_variance(self, targets: Index) -> Floats:
        """Return the variance of each R̂_k from the target's own rows, if rows of these targets have one variance."""
        observations, own_variance = self.observations[targets], self.own_variance[targets]
        if not np.isfinite(observations).all():
            return own_variance
        row_freedom = np.maximum(observations - 1, 0.0)
        row_variance = float(row_freedom @ (observations * own_variance)) / max(float(row_freedom.sum()), 1e-300)
        return np.asarray(row_variance / observations)

    def equality(self) -> EqualityTest:
        """Test whether all ratios are equal, by Wald's statistic.

        If they are, rows of all targets have the same variance, which is estimated from all of them: estimated from
        the few rows of each target it would be too small where R̂ happens to be far off, and many small targets would
        seem to differ. With the error of that variance the χ² distribution becomes an F distribution.
        """
        own_variance = self._common_variance(np.arange(len(self.ratios)))
        inverse = pinvh(self.covariance + np.diag(own_variance - self.own_variance))
        weights = inverse.sum(axis=0)  # generalised least squares
        residual = self.ratios - (weights @ self.ratios) / weights.sum()  # from the best common R
        statistic, freedom = max(float(residual @ inverse @ residual), 0.0), len(residual) - 1
        total_freedom = float((self.observations - 1).sum())
        if np.isfinite(total_freedom):
            p_value = fdtrc(freedom, total_freedom, statistic / freedom)
        else:
            p_value = chdtrc(freedom, statistic)
        return EqualityTest(statistic, freedom, float(p_value))


def largest_normal(covariance: Floats, confidence: float) -> float:
    """Compute the `confidence` quantile of max |z_k|, z normal with the correlation of this covariance.

    From 2¹⁶ random vectors with a fixed seed.
    """
    spread = np.sqrt(np.diag(covariance))
    spread = np.where(spread > 0, spread, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(spread, spread))
    root = vectors * np.sqrt(np.maximum(values, 0.0))  # root·rootᵀ is the correlation matrix
    rng = np.random.default_rng(0)
    blocks = (rng.standard_normal((_BLOCK, len(root))) for _ in range(_DRAWS // _BLOCK))
    largest = np.concatenate([np.abs(z @ root.T).max(axis=1) for z in blocks])
    return float(np.quantile(largest, confidence))


def _common_groups(targets: Sequence[RatioInfluence]) -> Floats:
    """Compute the covariance of the R̂_k from groups that are in two targets, shape (targets, targets); diagonal 0."""
    grouped = [(k, target.group_influence) for k, target in enumerate(targets) if target.group_influence is not None]
    if len(grouped) < 2:
        return np.zeros((len(targets), len(targets)))
    names, column = np.unique(np.concatenate([part.groups for _, part in grouped]), return_inverse=True)
    row = np.repeat([k for k, _ in grouped], [len(part.groups) for _, part in grouped])
    values = np.concatenate([part.influence for _, part in grouped])
    # line k: influence of every group on R̂_k, 0 if the group is not in target k
    influence = csr_array((values, (row, column.reshape(-1))), shape=(len(targets), len(names)))
    covariance = (influence @ influence.T).toarray()
    np.fill_diagonal(covariance, 0.0)  # a target's own variance is already known
    return np.asarray(covariance)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple testing by Holm's rule (1979): the k-th smallest of n is multiplied by n − k + 1."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return [float(value) for value in adjusted]


def _scaled_interval(gap: float, error: float, freedom: float, case: Case, confidence: float) -> tuple[float, float]:
    """Compute the two quantiles of (q−π)(R_k − R_l) in [−1, 1].

    q and π have the values and probabilities of the `case`; R_k − R_l follows Student's distribution with centre `gap`
    and standard error `error`.
    """
    values, weights, purity = case
    factor = np.maximum(purity - np.asarray(values), 1e-12)

    def excess(x: float, level: float) -> float:
        """Return P((q−π)(R_k − R_l) ≤ x), the mean over the case of Student's distribution function, less `level`."""
        with np.errstate(divide="ignore", invalid="ignore"):  # the error can be 0
            t = np.where(x == factor * gap, 0.0, (x / factor - gap) / error)
        return float(np.average(stdtr(freedom, t), weights=weights)) - level

    quantiles = []
    for level in ((1 - confidence) / 2, (1 + confidence) / 2):
        if excess(-1.0, level) >= 0:
            quantiles.append(-1.0)
        elif excess(1.0, level) <= 0:
            quantiles.append(1.0)
        else:
            quantiles.append(float(brentq(excess, -1.0, 1.0, (level,))))
    return quantiles[0], quantiles[1]


@dataclass(frozen=True, eq=False)
class Members:
    """Names of the observations in a stratum, by which those that are in two strata are recognised."""

    source: NDArray[np.str_]  # names (ids and groups) of rows of P and U; a row may have several
    target: NDArray[np.str_]  # groups of the target's rows
    # for each name in `source`, the position of its observation in `source_influence`; None where it is not known
    observation: Index | None = None


_Stratum = tuple[PriorEstimate, RatioInfluence | None]  # None where the method has no influences


def pooled(
    estimates: Sequence[PriorEstimate],
    influences: Sequence[RatioInfluence | None],
    confidence: float,
    shares: Floats,
    rows: float,
    *,
    common_prior: bool = False,
    members: Sequence[Members] | None = None,
) -> PriorEstimate:
    """Combine the estimates of strata to that of the whole target, by the method of Zou and Donner (2008).

    It adds up the squared distances of the ends of the strata's intervals from their estimates. An influence is None
    where a method has none. `shares` are the strata's shares of the target, which sum to 1; `rows` is the effective
    number of target rows; `common_prior` means that one knowledge of π holds for all strata. `members` name the
    observations of each stratum, of which some may be in several; None where all rows are independent.
    """
    values = np.array([_unclipped(estimate) for estimate in estimates])
    raw = float(shares @ values)
    value = float(np.clip(raw, 0.0, 1.0))
    between = float(shares @ (values - raw) ** 2) / rows  # variance from the sampled shares of the strata
    strata = list(zip(estimates, influences, strict=True))
    # error of each stratum's π′ that comes from the spread of a given distribution of π: dπ′ = R dπ
    prior_error = np.zeros(len(strata))
    for k, (estimate, influence) in enumerate(strata):
        if influence is not None and estimate.source_prior_by == "distribution":
            prior_error[k] = influence.ratio * influence.prior.error
    # that error is common to all strata if they have one π; it is then taken out of each stratum and added once
    common_error = prior_error if common_prior else np.zeros(len(strata))
    correlation = _correlation(strata, members, prior_error - common_error) if members else np.eye(len(strata))
    errors = np.array([estimate.standard_error for estimate in estimates])
    errors = np.sqrt(np.maximum(errors**2 - common_error**2, 0.0))
    added_variance = between + float(shares @ common_error) ** 2
    interval = None
    if all(estimate.interval is not None for estimate in estimates):
        at_mean = bool(common_error.any())  # the strata's intervals are those at the mean π, without its error
        low, high = _pooled_ends(strata, shares, correlation, added_variance, confidence, at_mean)
        # a stratum without an estimate leaves everything open
        low, high = (min(low, value), max(high, value)) if np.isfinite(value) else (0.0, 1.0)
        interval = Interval(max(low, 0.0), min(high, 1.0), confidence, "strata")
    m, n, n_target = np.sum([estimate.sizes for estimate in estimates], axis=0)
    return PriorEstimate(
        value=value,
        raw=raw,
        interval=interval,
        standard_error=float(np.sqrt(_variance_of_sum(shares * errors, correlation) + added_variance)),
        source_prior=np.nan,
        negative_ratio=np.nan,
        separation=np.nan,
        method=f"{estimates[0].method}, {len(estimates)} strata",
        sizes=(int(m), int(n), int(n_target)),
        source_prior_by=estimates[0].source_prior_by,
        details={"strata": len(estimates)},
    )


def _unclipped(estimate: PriorEstimate) -> float:
    """Return `raw`, which is outside [0, 1] by sampling error only and can be averaged.

    Return `value` where there is no estimate of R, and for a range of π, of which a part may be impossible.
    """
    is_range = estimate.source_prior_by == "range"
    return estimate.value if estimate.status == "no estimate" or is_range else estimate.raw


def _correlation(strata: Sequence[_Stratum], members: Sequence[Members], prior_error: Floats) -> Floats:
    """Compute the correlation of the strata's errors, from observations in two strata; shape (strata, strata).

    `prior_error` is a part of each stratum's standard error that is independent of the others. Where influences are not
    known, strata with a common observation have the correlation 1.
    """
    count = len(strata)
    names_by_stratum = [np.concatenate([member.source, member.target]) for member in members]
    stratum = np.repeat(np.arange(count), [len(names) for names in names_by_stratum])
    names, code = np.unique(np.concatenate(names_by_stratum), return_inverse=True)
    contains = csr_array((np.ones(len(code)), (stratum, code.reshape(-1))), shape=(count, len(names)))
    overlaps = (contains @ contains.T).toarray() > 0  # whether two strata have a common name
    if not (overlaps & ~np.eye(count, dtype=bool)).any():
        return np.eye(count)
    influence = _influence_by_cluster(strata, members, names)
    covariance = (influence @ influence.T).toarray()
    is_known = np.diag(covariance) > 0  # strata whose influences are known
    error = np.sqrt(np.where(is_known, np.diag(covariance) + prior_error**2, 1.0))
    correlation = np.where(np.outer(is_known, is_known), covariance / np.outer(error, error), overlaps)
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation, dtype=np.float64)


def _influence_by_cluster(strata: Sequence[_Stratum], members: Sequence[Members], names: NDArray[np.str_]) -> csr_array:
    """Compute the influence of each cluster on the π̂′ of each stratum, shape (strata, nodes); 0 if not known.

    Nodes are the `names`, sorted, then the observations of each stratum's source. An observation and its names (ids and
    groups) are linked; linked nodes are one cluster.
    """
    links, nodes = [np.empty((0, 2), dtype=np.intp)], len(names)
    # nodes with an influence on each stratum, and these influences
    stratum_nodes, values = [np.empty(0, dtype=np.intp)] * len(strata), [np.empty(0)] * len(strata)
    for k, ((estimate, part), member) in enumerate(zip(strata, members, strict=True)):
        if part is None or member.observation is None or part.group_influence is None:
            continue
        # without influences on an estimated prior the error is not known; a given prior is independent of the rows
        if estimate.source_prior_by not in ("given", "range", "distribution") and part.prior_influence is None:
            continue
        # dπ′ = R dπ − (q−π) dR; the influence is on an estimate of κ = π/q
        purity = part.prior.purity
        through_prior = 0.0 if part.prior_influence is None else purity * part.ratio * part.prior_influence
        factor = purity - estimate.source_prior
        links.append(np.stack([np.searchsorted(names, member.source), nodes + member.observation], axis=1))
        group_nodes = np.searchsorted(names, part.group_influence.groups)
        stratum_nodes[k] = np.concatenate([nodes + np.arange(len(part.source_influence)), group_nodes])
        on_source = through_prior - factor * part.source_influence
        values[k] = np.concatenate([on_source, -factor * part.group_influence.influence])
        nodes += len(part.source_influence)
    cluster = linked(nodes, np.concatenate(links))  # number of each node's cluster
    stratum = np.repeat(np.arange(len(strata)), [len(influenced) for influenced in stratum_nodes])
    index = stratum, cluster[np.concatenate(stratum_nodes)]
    return csr_array((np.concatenate(values), index), shape=(len(strata), nodes))  # adds up the nodes of a cluster


def _variance_of_sum(errors: Floats, correlation: Floats) -> float:
    """Return the variance Σ_kl ρ_kl e_k e_l of a sum, from standard errors e_k and correlations ρ_kl; at least 0."""
    return max(float(errors @ correlation @ errors), 0.0)


def _pooled_ends(
    strata: Sequence[_Stratum],
    shares: Floats,
    correlation: Floats,
    added_variance: float,
    confidence: float,
    at_mean: bool,
) -> tuple[float, float]:
    """Compute the ends of the pooled interval before they are clipped to [0, 1], by the formula of the module.

    `added_variance` is not in the strata's intervals; `at_mean` means that these are computed at the mean of a
    distribution of π.
    """
    added_square = float(ndtri((1 + confidence) / 2)) ** 2 * added_variance
    lows, highs = [], []
    for prior_end in (0, 1):  # lower and upper ends of ranges of π, in all strata at once
        intervals = [_interval_given_prior(stratum, prior_end, confidence, at_mean) for stratum in strata]
        values, low, high = np.array(intervals).T
        value = float(shares @ values)
        lows.append(value - (_variance_of_sum(shares * np.abs(values - low), correlation) + added_square) ** 0.5)
        highs.append(value + (_variance_of_sum(shares * np.abs(values - high), correlation) + added_square) ** 0.5)
    return min(lows), max(highs)


def _interval_given_prior(
    stratum: _Stratum, prior_end: int, confidence: float, at_mean: bool
) -> tuple[float, float, float]:
    """Return estimate, lower and upper end of π′ in a stratum, given π.

    π is the lower (`prior_end` 0) or upper (1) end of its range, or with `at_mean` the mean of its distribution;
    otherwise the interval is that of the estimate.
    """
    estimate, influence = stratum
    value, interval = _unclipped(estimate), estimate.interval
    corners = () if influence is None else influence.prior.corners(influence.prior.value)
    if influence is not None and len(corners) > 1:
        purity, pi = corners[prior_end]
        value = prior_from_ratio(pi, influence.ratio, purity)
        low, high = influence.curve.interval(pi, confidence, purity=purity)
    elif influence is not None and at_mean:
        low, high = influence.curve.interval(influence.prior.value, confidence, purity=influence.prior.purity)
    elif interval is not None:
        low, high = interval.low, interval.high
    return value, min(low, value), max(high, value)
