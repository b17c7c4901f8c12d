"""Combination of a distribution of a class prior with an audit of the sample that it was estimated from.

Let φ be the share of positives among the n rows of the sample itself. An audit estimates φ from the rows that were
looked up at random, without the noise of the n rows: 1/K_φ = 1/K − 1/n of its K labels (:mod:`priorshift.audit`). A
distribution that was estimated from the same rows, such as the posterior of π or the confidence distribution of π′, is
that of φ with this noise added, θ(1−θ)/n, and no estimate from the rows has less. So the distribution is narrowed by
it, multiplied with the audit's likelihood, both of φ, and the noise is added back once: multiplying distributions of
the population's share itself would count the n rows twice.

The distribution depends on label shift and on assumptions about the classes; the labels do not. So the distribution
gets a weight of 95% for π and of 50% for π′, which also depends on label shift, and Jeffreys' prior the rest: an audit
that is unlikely under the distribution gradually takes over. Where the two contradict each other at the level 0.001, a
warning says so, and only the audit is used.

A posterior interval would still be wrong where label shift is violated by less than a small audit can detect. So the
interval of a target's prior relies on the labels alone, and the distribution only decides how the error probability α
is divided between its two sides. A share φ is excluded if the audit's estimate is among the αs lowest or the α(1−s)
highest that φ makes possible. Whatever s is, as long as it does not depend on the labels, the true φ is excluded with
probability α; s(φ) is chosen so that φ is excluded most often if the distribution is right (Pratt 1961; Yu and Hoff
2018). The interval is then up to a sixth shorter than that of the labels alone, with s = ½, and wider where they
disagree.

A distribution from elsewhere, such as that of a survey, is independent of the rows, so Bayes' rule applies directly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv

from priorshift.arrays import Floats
from priorshift.audit import AuditedShare, audited_share
from priorshift.errors import InconsistentInputWarning, InputError, IntervalWarning
from priorshift.formatting import format_p
from priorshift.inference.confidence_curve import TabulatedCurve
from priorshift.inference.prior_knowledge import DistributionPrior, PiecewiseUniform, PriorKnowledge
from priorshift.io.labels import Audit
from priorshift.problem import Source, Target
from priorshift.warning_records import warn

_LEVEL = 0.001  # of the test whether distribution and audit contradict each other
_DOUBTED = 0.05  # p-value of the same test below which a target's audit disagrees with the tables
# weight of Jeffreys' prior in a mixture with a distribution from the same rows: that of π, and that of π′, which also
# depends on label shift
DOUBT_OF_SOURCE, DOUBT_OF_TARGET = 0.05, 0.5
_UPPER_SHARES = np.linspace(0.05, 0.95, 19)  # s, the share of an interval's error probability above its upper end
_STEPS = 150
_TINY = 1e-12
_TAIL = 1e-7  # probability beyond which steps are coarse
_LEAST_SCALE = 1e-3  # factor by which a distribution is narrowed at most
_MOST_LABELS = 100.0  # largest K_φ for each row; an audit of all rows would make it infinite
_TARGET_STEPS = np.linspace(0, 1, 201)  # of π′, before they are refined where it has probability


@dataclass(frozen=True)
class SampleAudit:
    """The audit of a sample."""

    share: AuditedShare  # share of positives among the rows whose class was unknown
    observations: float  # effective size of the whole sample; copies count once
    known: float = 0.0  # share of rows that are known to be positive without an audit
    excluded: float = 0.0  # share of rows that are known not to be positive, as those labelled with other classes are

    @classmethod
    def from_source(cls, source: Source, audit: Audit, predicted: Floats) -> SampleAudit:
        """Evaluate the audit of a source.

        `predicted` are posteriors P(Y=1|x) of the rows of U, predicted without the audit.
        """
        rows = source.unshared  # rows of U whose class is unknown
        is_unknown = np.isin(source.population, rows)
        mass = source.U.mass[is_unknown]
        share = audited_share(audit, predicted[is_unknown], source.observation[rows], mass)
        # the design effect of P is not needed, so its posteriors are left at 0
        _, design_effect_U = source.design_effects(np.zeros(len(source.positive)), predicted)
        return cls(share, source.U.size / design_effect_U, 1 - float(mass.sum()))

    @classmethod
    def from_target(cls, target: Target, audit: Audit, predicted: Floats) -> SampleAudit:
        """Evaluate the audit of a target; `predicted` are posteriors P(Y=1|x) of its rows, without the audit."""
        share = audited_share(audit, predicted, target.observation, target.mass)
        return cls(share, target.size / target.design_effect(predicted))

    @property
    def unknown(self) -> float:
        """Share of rows whose class is not known without an audit."""
        return 1 - self.known - self.excluded

    def to_population(self, share: Any) -> Any:
        """Return the share of positives in the population, given that among rows of unknown class."""
        return self.known + self.unknown * share

    @property
    def value(self) -> float:
        """Share of positives in the population, from the audit alone."""
        return float(self.to_population(self.share.value))

    @property
    def of_rows(self) -> AuditedShare:
        """Share φ of positives among the sample's own rows of unknown class: without their sampling noise."""
        # 1/K_φ = 1/K − 1/n, at least the reciprocal of the largest K_φ
        noise = max(1 / self.share.labels - 1 / self.share.rows[1], 1 / (_MOST_LABELS * self.share.rows[1]))
        return replace(self.share, labels=1 / noise)

    @property
    def of_population(self) -> AuditedShare:
        """Share of positives in the population among rows of unknown class, with the noise of the known share."""
        labels, known, unknown = self.share.labels, self.known, self.unknown
        theta = (labels * self.share.value + 0.5) / (labels + 1)  # posterior mean under Jeffreys' prior
        # variance of known + unknown·θ due to the two shares, relative to unknown²·θ(1−θ)
        spread = known * (1 - known) + theta**2 * unknown * (1 - unknown) - 2 * theta * known * unknown
        noise = spread / (unknown**2 * theta * (1 - theta) * self.observations)
        return replace(self.share, labels=1 / (1 / labels + noise))


@dataclass(frozen=True, eq=False)
class AuditedPrior:
    """The distribution of a class prior, combined with an audit."""

    distribution: PiecewiseUniform  # of the share of positives in the population
    sample: SampleAudit
    # mean, 0.05 and 99.95% points of the distribution before the audit; None where there was none
    before: tuple[float, float, float] | None
    agrees: bool  # whether both may be right; if not, `distribution` is that of the audit alone
    p_value: float = 1.0  # of the hypothesis that both are right
    # distribution of φ before the audit, with Jeffreys' prior mixed in; None where only the audit is used
    rows_prior: PiecewiseUniform | None = None

    def interval(self, confidence: float) -> tuple[float, float]:
        """Compute an interval of a target's prior that holds by the labels alone (see the module)."""
        alpha = 1 - confidence
        if self.rows_prior is None:
            low, high = self.distribution.ppf([alpha / 2, 1 - alpha / 2])
            return float(low), float(high)
        low, high = _assisted_interval(self.rows_prior, self.sample.of_rows, alpha)
        # the rows are a sample of the population: the distances of both intervals' ends from the value are combined
        value, rows = float(np.clip(self.distribution.mean(), low, high)), self.sample.observations
        noise_low, noise_high = betaincinv(rows * value + 0.5, rows * (1 - value) + 0.5, [alpha / 2, 1 - alpha / 2])
        low = value - np.hypot(value - low, max(value - noise_low, 0.0))
        high = value + np.hypot(high - value, max(noise_high - value, 0.0))
        return max(float(low), 0.0), min(float(high), 1.0)

    @property
    def alone(self) -> bool:
        """Whether `distribution` is based on the audit alone."""
        return self.before is None or not self.agrees

    def by(self, method: str) -> str:
        """Return a name for what `distribution` is based on; `method` is what estimated it before the audit."""
        return "audit" if self.alone else f"{method} and audit"

    def to_dict(self) -> dict[str, Any]:
        """Return the audit's results as plain numbers."""
        share = self.sample.share
        return {
            "rows": list(share.rows),
            "value": self.sample.value,
            "standard_error": self.sample.unknown * share.standard_error,
            "explained": share.explained,
            "agrees": self.agrees,
        }

    def warn_of_contradiction(self, what: str, origin: str, reason: str) -> None:
        """Warn if the audit contradicts the distribution before it.

        `what` is the name of the prior, `origin` the basis of the distribution, and `reason` a possible cause.
        """
        if self.agrees or self.before is None:
            return
        (k, n), (mean, low, high) = self.sample.share.rows, self.before
        ends = self.distribution.ppf([_LEVEL / 2, 1 - _LEVEL / 2])
        warn(
            f"The audit of {k} of {n} rows contradicts {origin}: the {what} is {self.sample.value:.3f} by the audit "
            f"(99.9% interval {ends[0]:.3f} to {ends[1]:.3f}), and {mean:.3f} ({low:.3f} to {high:.3f}) without it. "
            f"Only the audit is used; if its rows were drawn at random, {reason}.",
            InconsistentInputWarning,
        )

    def warn_of_disagreement(self, what: str, reason: str, tests: int = 1) -> None:
        """Warn if the audit of a target disagrees with the tables, although it may not contradict them.

        `what` is the name of the prior, `reason` a possible cause, and `tests` the number of such comparisons.
        """
        if not self.agrees or self.before is None or self.p_value >= _DOUBTED / tests:
            return
        k, n = self.sample.share.rows
        warn(
            f"The audit of {k} of {n} rows disagrees with the tables ({format_p(self.p_value)}): the {what} "
            f"is {self.sample.value:.3f} by the audit and {self.before[0]:.3f} without it. The interval holds by the "
            f"audit alone; perhaps {reason}.",
            IntervalWarning,
        )


def combine_with_audit(
    distribution: Any, sample: SampleAudit, *, from_rows: bool, doubt: float = DOUBT_OF_SOURCE
) -> AuditedPrior:
    """Combine a distribution of the share of positives in the population with an audit.

    `distribution` has ``cdf`` and ``ppf``, or is None; `from_rows` means that it was estimated from the same rows.
    Their noise is then taken out of it and added back at the end (see the module), and Jeffreys' prior gets the weight
    `doubt`.
    """
    if distribution is None:
        return AuditedPrior(_from_audit_alone(sample), sample, None, True)
    tabulated = _tabulate(distribution)
    mean, (low, high) = tabulated.mean(), tabulated.ppf([_LEVEL / 2, 1 - _LEVEL / 2])
    before = mean, float(low), float(high)
    share = sample.of_rows if from_rows else sample.of_population
    scale, rows = 1.0, float("inf")  # factor that narrows the distribution; number of rows whose noise is taken out
    if from_rows:  # their noise θ(1−θ)/rows is at most all of the distribution's variance
        spread = max(tabulated.std(), 1e-9)
        rows = max(sample.observations, mean * (1 - mean) / spread**2)
        scale = max(np.sqrt(max(1 - mean * (1 - mean) / rows / spread**2, 0.0)), _LEAST_SCALE)
    # the audit is of the rows of unknown class: φ is a share of them
    narrowed_tails = mean + scale * (tabulated.ppf([_TAIL, 1 - _TAIL]) - mean)
    a, b = _beta(share)
    audit_tails = betaincinv(a, b, [_TAIL, 1 - _TAIL])
    edges = _edges(np.clip((narrowed_tails - sample.known) / sample.unknown, 0.0, 1.0), audit_tails)  # of steps of φ
    narrowed_cdf = tabulated.cdf(mean + (sample.to_population(edges) - mean) / scale)
    narrowed = PiecewiseUniform.from_cdf(narrowed_cdf, edges)  # of φ
    above = float(narrowed.probabilities @ betainc(a, b, narrowed.middles))  # P(distribution above audit)
    p_value = 2 * min(above, 1 - above)
    if p_value < _LEVEL:  # they contradict each other
        return AuditedPrior(_from_audit_alone(sample), sample, before, False, p_value)
    if from_rows:
        jeffreys = np.diff(betainc(0.5, 0.5, edges))
        mixture = (1 - doubt) * narrowed.probabilities + doubt * jeffreys
        narrowed = PiecewiseUniform(edges, mixture)
    posterior = narrowed.times(share.log_likelihood(narrowed.middles))
    return AuditedPrior(_to_population(posterior, sample, rows), sample, before, True, p_value, narrowed)


def _from_audit_alone(sample: SampleAudit) -> PiecewiseUniform:
    """Return the distribution of the population's share from the audit under Jeffreys' prior, with the rows' noise."""
    a, b = _beta(sample.of_rows)
    edges = _edges(betaincinv(a, b, [_TAIL, 1 - _TAIL]))
    return _to_population(PiecewiseUniform.from_cdf(betainc(a, b, edges), edges), sample, sample.observations)


def _assisted_interval(prior: PiecewiseUniform, share: AuditedShare, alpha: float) -> tuple[float, float]:
    """Compute an interval of φ that excludes the true φ with probability `alpha`, and is short if `prior` is right.

    The audit's estimate is about Beta(Kφ + ½, K(1−φ) + ½) with K labels.
    """
    # for each φ, the probability of an estimate at least, or at most, that of the audit (as Clopper and Pearson's)
    found, missed = share.labels * share.value, share.labels * (1 - share.value)
    at_least = betainc(max(found, _TINY), missed + 1, prior.edges)
    at_most = 1 - betainc(found + 1, max(missed, _TINY), prior.edges)
    is_possible = (at_least >= alpha * (1 - _UPPER_SHARES[-1])) & (at_most >= alpha * _UPPER_SHARES[0])
    phi, at_least, at_most = prior.edges[is_possible], at_least[is_possible], at_most[is_possible]
    # cumulative distribution of the estimate if the prior is right
    is_likely = prior.probabilities > 1e-9
    weights = prior.probabilities[is_likely] / prior.probabilities[is_likely].sum()
    cdf = betainc(*_estimate_beta(prior.middles[is_likely], share), prior.edges[:, None]) @ weights
    a, b = _estimate_beta(phi[:, None], share)
    lowest, highest = betaincinv(a, b, alpha * _UPPER_SHARES), betaincinv(a, b, 1 - alpha * (1 - _UPPER_SHARES))
    accepted = np.interp(highest, prior.edges, cdf) - np.interp(lowest, prior.edges, cdf)  # shape (φ, shares)
    s = _UPPER_SHARES[accepted.argmin(axis=1)]
    inside = phi[(at_most >= alpha * s) & (at_least >= alpha * (1 - s))]
    return float(inside.min()), float(inside.max())


def _to_population(of_rows: PiecewiseUniform, sample: SampleAudit, rows: float) -> PiecewiseUniform:
    """Convert the distribution of φ among rows of unknown class to that of the share of positives in the population.

    `rows` is the number of rows, a sample of the population, whose noise is added, or infinite for none.
    """
    edges = np.clip(sample.to_population(of_rows.edges), 0.0, 1.0)
    if not np.isfinite(rows):
        outer = np.unique(np.concatenate([[0.0], edges, [1.0]]))
        return PiecewiseUniform(edges, of_rows.probabilities).on(outer)
    is_likely = of_rows.probabilities > 1e-12
    phi, weight = ((edges[1:] + edges[:-1]) / 2)[is_likely], of_rows.probabilities[is_likely]
    a, b = rows * phi + 0.5, rows * (1 - phi) + 0.5  # the beta distribution of the population's share, given φ
    low, high = betaincinv(a[0], b[0], _TAIL), betaincinv(a[-1], b[-1], 1 - _TAIL)
    fine = _edges((low, high))
    return PiecewiseUniform.from_cdf(betainc(a, b, fine[:, None]) @ (weight / weight.sum()), fine)


def _tabulate(distribution: Any) -> PiecewiseUniform:
    """Tabulate a distribution on [0, 1], with ``cdf`` and ``ppf``, on steps that are fine where it has probability."""
    if isinstance(distribution, PiecewiseUniform):
        return distribution.on(np.union1d(distribution.edges, _edges(distribution.ppf([_TAIL, 1 - _TAIL]))))
    tail = np.geomspace(_TAIL, 0.01, 20)
    levels = np.concatenate([tail, np.linspace(0.01, 0.99, _STEPS), 1 - tail[::-1]])
    edges = np.unique(np.concatenate([[0.0, 1.0], np.clip(distribution.ppf(levels), 0.0, 1.0)]))
    return PiecewiseUniform.from_cdf(np.asarray(distribution.cdf(edges), dtype=float), edges)


def _edges(*ranges: Any) -> Floats:
    """Return sorted edges of steps of [0, 1] that are fine inside each range (low, high), and coarse elsewhere."""
    fine = [np.linspace(low, high, _STEPS + 1) for low, high in ranges]
    return np.unique(np.concatenate([np.linspace(0, 1, 101), *fine]))


def _estimate_beta(phi: Floats, share: AuditedShare) -> tuple[Floats, Floats]:
    """Return a and b of the distribution Beta(a, b) of an audit's estimate of φ."""
    return share.labels * phi + 0.5, share.labels * (1 - phi) + 0.5


def _beta(share: AuditedShare) -> tuple[float, float]:
    """Return a and b of the posterior Beta(a, b) of an audited share under Jeffreys' prior."""
    return share.labels * share.value + 0.5, share.labels * (1 - share.value) + 0.5


def check_prior_uncertain(prior: PriorKnowledge) -> DistributionPrior:
    """Return the prior if it is a distribution; raise InputError for a number or a range, which no audit can inform."""
    if isinstance(prior, DistributionPrior):
        return prior
    raise InputError(
        f"an audit of unlabelled rows estimates the source prior, but it is given as {prior}; leave out one of them, "
        "or pass the prior as a distribution."
    )


def warn_of_source_audit(audited: AuditedPrior, origin: str, of_class: str | None = None) -> None:
    """Warn where an audit of the source contradicts the source prior without it, which came from `origin`.

    `of_class` is the class whose prior it is, if there are several.
    """
    labeled = "labelled positives" if of_class is None else "labelled rows of the class"
    reason = f"that is wrong, or the {labeled} do not look like those among the unlabelled rows"
    what = "source prior" if of_class is None else f"source prior of {of_class!r}"
    audited.warn_of_contradiction(what, origin, reason)


def combine_target_audit(sample: SampleAudit, curve: TabulatedCurve, prior: PriorKnowledge | None) -> AuditedPrior:
    """Combine an audit of the target with the estimate of π′, and warn where they contradict each other.

    `curve` is the confidence distribution of R; without a `prior` for π only the audit is used.
    """
    distribution = target_prior_distribution(curve, prior) if prior else None
    audited = combine_with_audit(distribution, sample, from_rows=True, doubt=DOUBT_OF_TARGET)
    reason = f"the classes do not look the same in source and target, or the source prior ({prior}) is wrong"
    audited.warn_of_contradiction("target prior", "the tables", reason)
    audited.warn_of_disagreement("target prior", reason)
    return audited


def target_prior_distribution(curve: TabulatedCurve, prior: PriorKnowledge) -> PiecewiseUniform:
    """Compute the confidence distribution of π′ from that of R; a range of π counts as uniform."""
    case = prior.whole_case  # values of π and q, and their weights
    coarse = PiecewiseUniform(_TARGET_STEPS, curve.probabilities(_TARGET_STEPS, *case))
    low, high = coarse.ppf([1e-6, 1 - 1e-6])
    edges = np.unique(np.concatenate([_TARGET_STEPS, np.linspace(low, high, len(_TARGET_STEPS))]))
    return PiecewiseUniform(edges, curve.probabilities(edges, *case))
