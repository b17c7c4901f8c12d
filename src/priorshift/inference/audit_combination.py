"""What is believed of a share of positives, put together with an audit of the sample that it is believed from.

Let φ be the share of positives among the n rows of the sample itself. An audit tells of φ by the rows that were looked
up at random, without the noise of the n rows: 1/K_φ = 1/K − 1/n of its K labels (:mod:`priorshift.audit`). A belief
that was read from the same rows, such as the posterior of π or the confidence distribution of π′, is that of φ with
this noise added, θ(1−θ)/n, and no estimate from the rows has less. So the belief is made narrower by it, multiplied
with the audit's likelihood, both of φ, and the noise is put back once: to multiply beliefs of the population's share
itself would count the n rows twice.

A belief rests on label shift and on how classes may look; the labels rest on nothing. So the belief counts for 95%,
and Jeffreys' prior for the rest: an audit that the belief makes unlikely takes over, little by little. Where the two
differ so much that it would happen once in 1000 times, a warning says so, and the audit alone is used.

A belief from elsewhere, such as a survey's, is independent of the rows, and Bayes' rule is all there is to it.

What an audit makes of the two priors: of π by unlabelled rows of the source, of π′ by rows of the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv

from priorshift.arrays import Floats
from priorshift.audit import AuditedShare, audited_share
from priorshift.errors import InconsistentInputWarning, InputError
from priorshift.inference.confidence_curve import TabulatedCurve
from priorshift.inference.prior_knowledge import DistributionPrior, PiecewiseUniform, PriorKnowledge, RangePrior
from priorshift.io.labels import Audit
from priorshift.problem import Source, Target
from priorshift.warning_records import warn

LEVEL = 0.001  # of the test whether belief and audit contradict each other
_DOUBT = 0.05  # what Jeffreys' prior counts beside a belief from the same rows
_STEPS = 150
_TAIL = 1e-7  # beyond which steps are coarse
_NARROWEST = 1e-3  # what is left at least of a belief's spread
_MOST = 100.0  # labels of K_φ for each row; an audit of all rows leaves φ no doubt at all


@dataclass(frozen=True)
class SampleAudit:
    """What an audit tells of a sample.

    Attributes
    ----------
    share : AuditedShare
        Of positives among the rows whose class was not known before.
    observations : float
        That all rows of the sample are; copies are one.
    known : float
        The share of rows that are known to be positive without an audit.
    """

    share: AuditedShare
    observations: float
    known: float = 0.0

    @classmethod
    def from_source(cls, source: Source, predicted: Floats) -> SampleAudit | None:
        """Read the audit of a source.

        Parameters
        ----------
        source : Source
            With an audit or without.
        predicted : ndarray
            Posteriors of U's rows, made without the audit.

        Returns
        -------
        AuditedSample or None
            None where nothing was looked up.
        """
        if source.audit is None:
            return None
        rows = source.unknown
        among = np.isin(source.population, rows)
        mass = source.population_mass[among]
        share = audited_share(source.audit, predicted[among], source.observation[rows], mass)
        observations = source.effective_sizes[1] / source.design_effects(np.zeros(len(source.positive)), predicted)[1]
        return cls(share, observations, 1 - float(mass.sum()))

    @classmethod
    def from_target(cls, target: Target, audit: Audit, predicted: Floats) -> SampleAudit:
        """Read the audit of a target.

        Parameters
        ----------
        target : Target
            All rows.
        audit : Audit
            Of some.
        predicted : ndarray
            Posteriors of all, made without the audit.

        Returns
        -------
        AuditedSample
        """
        share = audited_share(audit, predicted, target.observation, target.mass)
        return cls(share, target.size / target.design_effect(predicted))

    @property
    def value(self) -> float:  # numpydoc ignore=RT01
        """The share of positives in the population, by the audit alone."""
        return self.known + (1 - self.known) * self.share.value

    @property
    def of_rows(self) -> AuditedShare:  # numpydoc ignore=RT01
        """The share among the very rows, whose own noise is left out."""
        noise = max(1 / self.share.labels - 1 / self.share.rows[1], 1 / (_MOST * self.share.rows[1]))
        return replace(self.share, labels=1 / noise)

    @property
    def of_population(self) -> AuditedShare:  # numpydoc ignore=RT01
        """The share in the population among rows that are not known, where those that are known are noise besides."""
        K, c = self.share.labels, self.known
        theta = (K * self.share.value + 0.5) / (K + 1)
        noise = c * (1 - theta) / ((1 - c) * theta * self.observations)  # of c, over θ(1−θ)
        return replace(self.share, labels=1 / (1 / K + noise))


@dataclass(frozen=True, eq=False)
class AuditedPrior:
    """A belief after an audit.

    Attributes
    ----------
    distribution : ShareDistribution
        Of the share of positives in the population.
    sample : AuditedSample
        What the audit told.
    before : tuple of three float or None
        Mean, 0.05 and 99.95% points of the belief before; None where there was none.
    agrees : bool
        Whether belief and audit may both be right; if not, `distribution` is the audit's alone.
    """

    distribution: PiecewiseUniform
    sample: SampleAudit
    before: tuple[float, float, float] | None
    agrees: bool

    @property
    def alone(self) -> bool:  # numpydoc ignore=RT01
        """Whether `distribution` rests on the audit and nothing else."""
        return self.before is None or not self.agrees

    def by(self, believed: str) -> str:
        """Say what the distribution rests on.

        Parameters
        ----------
        believed : str
            Who believed without the audit.

        Returns
        -------
        str
        """
        return "audit" if self.alone else f"{believed} and audit"

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers.

        Returns
        -------
        dict
            Rows looked up and all rows that could have been; the audit's own share, its standard error, the part of
            the labels' variance that scores explain; whether it agrees with the belief.
        """
        share, kept = self.sample.share, 1 - self.sample.known
        return {
            "rows": list(share.rows),
            "value": self.sample.value,
            "standard_error": kept * share.standard_error,
            "explained": share.explained,
            "agrees": self.agrees,
        }

    def warn(self, what: str, believed: str, otherwise: str) -> None:
        """Say that belief and audit contradict each other, if they do.

        Parameters
        ----------
        what : str
            The share that is meant.
        believed : str
            Who believes, as the subject of a sentence.
        otherwise : str
            What must then be wrong.
        """
        if self.agrees or self.before is None:
            return
        (k, n), (mean, low, high) = self.sample.share.rows, self.before
        ends = self.distribution.ppf([LEVEL / 2, 1 - LEVEL / 2])
        warn(
            f"The audit of {k} of {n} rows contradicts what {believed}: the {what} is {self.sample.value:.3f} by the "
            f"audit (99.9% interval {ends[0]:.3f} to {ends[1]:.3f}), and {mean:.3f} ({low:.3f} to {high:.3f}) without "
            f"it. The audit alone is used; if its rows were drawn at random, {otherwise}.",
            InconsistentInputWarning,
        )


def combine_with_audit(belief: Any, sample: SampleAudit, *, from_rows: bool) -> AuditedPrior:
    """Put a belief and an audit together.

    Parameters
    ----------
    belief : distribution or None
        Of the share of positives in the population, with ``cdf`` and ``ppf``; None where nothing is believed.
    sample : AuditedSample
        The audit.
    from_rows : bool
        Whether the belief was read from the rows of the sample, and not from elsewhere.

    Returns
    -------
    AuditedBelief

    Examples
    --------
    >>> from scipy import stats
    >>> from priorshift.audit import AuditedShare
    >>> from priorshift.inference.audit_combination import SampleAudit, combine_with_audit
    >>> share = AuditedShare(0.3, 0.046, 0.0, 0.0, labels=100, rows=(100, 2000))  # 30 of 100 rows, without scores
    >>> audited = combine_with_audit(stats.beta(40, 160), SampleAudit(share, 2000), from_rows=False)
    >>> print(round(audited.distribution.mean(), 3), audited.agrees)  # (40 + 30)/(200 + 100)
    0.233 True
    """
    c = sample.known
    if belief is None:
        return AuditedPrior(_alone(sample), sample, None, True)
    believed = _tabulated(belief)
    mean = believed.mean()
    low, high = believed.ppf([LEVEL / 2, 1 - LEVEL / 2])
    before = mean, float(low), float(high)
    scale, rows = 1.0, float("inf")
    if from_rows:  # noise that the belief has of the rows; it cannot have more than all of its own
        spread = max(believed.std(), 1e-9)
        rows = max(sample.observations, mean * (1 - mean) / spread**2)
        scale = max(np.sqrt(max(1 - mean * (1 - mean) / rows / spread**2, 0.0)), _NARROWEST)
    share = sample.of_rows if from_rows else sample.of_population

    def cdf(theta: Floats) -> Floats:  # numpydoc ignore=GL08
        return believed.cdf(mean + (c + (1 - c) * theta - mean) / scale)

    inner = np.clip((mean + scale * (believed.ppf([_TAIL, 1 - _TAIL]) - mean) - c) / (1 - c), 0.0, 1.0)
    edges = _edges([inner, _beta_ends(share)])
    of_belief = PiecewiseUniform.from_cdf(cdf(edges), edges)  # of φ, among rows that are not known
    if _p_value(of_belief, share) < LEVEL:
        return AuditedPrior(_alone(sample), sample, before, False)
    if from_rows:
        jeffreys = np.diff(betainc(0.5, 0.5, edges))
        of_belief = PiecewiseUniform(edges, (1 - _DOUBT) * of_belief.probabilities + _DOUBT * jeffreys)
    audited = of_belief.times(share.log_likelihood(of_belief.middles))
    return AuditedPrior(_population(audited, c, rows), sample, before, True)


def _alone(sample: SampleAudit) -> PiecewiseUniform:
    """Jeffreys' prior times the likelihood of φ, and the noise of the rows."""
    share = sample.of_rows
    edges = _edges([_beta_ends(share)])
    cumulative = np.asarray(betainc(*_beta(share), edges))
    return _population(PiecewiseUniform.from_cdf(cumulative, edges), sample.known, sample.observations)


def _population(of_rows: PiecewiseUniform, known: float, rows: float) -> PiecewiseUniform:
    """From φ among rows that are not known to the share in the population, of which all rows are a sample."""
    edges = known + (1 - known) * of_rows.edges
    if not np.isfinite(rows):
        outer = np.unique(np.concatenate([[0.0], edges, [1.0]]))
        return PiecewiseUniform(edges, of_rows.probabilities).on(outer)
    counts = of_rows.probabilities > 1e-12
    phi, weight = ((edges[1:] + edges[:-1]) / 2)[counts], of_rows.probabilities[counts]
    a, b = rows * phi + 0.5, rows * (1 - phi) + 0.5
    low, high = betaincinv(a[0], b[0], _TAIL), betaincinv(a[-1], b[-1], 1 - _TAIL)
    fine = _edges([(low, high)])
    return PiecewiseUniform.from_cdf(betainc(a, b, fine[:, None]) @ (weight / weight.sum()), fine)


def _tabulated(belief: Any) -> PiecewiseUniform:
    """On steps that are fine wherever it has mass."""
    if isinstance(belief, PiecewiseUniform):
        return belief.on(np.union1d(belief.edges, _edges([belief.ppf([_TAIL, 1 - _TAIL])])))
    levels = np.concatenate([np.geomspace(_TAIL, 0.01, 20), np.linspace(0.01, 0.99, _STEPS)])
    levels = np.concatenate([levels, 1 - levels[19::-1]])
    edges = np.unique(np.concatenate([[0.0, 1.0], np.clip(belief.ppf(levels), 0.0, 1.0)]))
    return PiecewiseUniform.from_cdf(np.asarray(belief.cdf(edges), dtype=float), edges)


def _edges(ranges: Sequence[Any]) -> Floats:
    """Fine between the two ends of each range, coarse elsewhere."""
    fine = [np.linspace(low, high, _STEPS + 1) for low, high in ranges]
    return np.unique(np.concatenate([np.linspace(0, 1, 101), *fine]))


def _beta(share: AuditedShare) -> tuple[float, float]:
    """Jeffreys' prior times the likelihood."""
    return share.labels * share.value + 0.5, share.labels * (1 - share.value) + 0.5


def _beta_ends(share: AuditedShare) -> tuple[float, float]:
    a, b = _beta(share)
    return float(betaincinv(a, b, _TAIL)), float(betaincinv(a, b, 1 - _TAIL))


def _p_value(belief: PiecewiseUniform, share: AuditedShare) -> float:
    """Of the difference between a share that is believed and the audit's, two-sided."""
    above = float(belief.probabilities @ betainc(*_beta(share), belief.middles))
    return 2 * min(above, 1 - above)


_TARGET_STEPS = np.linspace(0, 1, 201)  # of π′, before they are made finer where it may be
_POINTS = 101  # of a range of π


def check_prior_uncertain(prior: PriorKnowledge) -> DistributionPrior:
    """Refuse what is known of π already, so that an audit of the source cannot inform it.

    Parameters
    ----------
    prior : PriorKnowledge
        What the user says of π.

    Returns
    -------
    Distributed
        The same.
    """
    if isinstance(prior, DistributionPrior):
        return prior
    raise InputError(
        f"an audit of unlabelled rows informs the source prior, which is given already as {prior}; leave one of them "
        "out, or pass what you know of it as a distribution."
    )


def warn_of_source_audit(audited: AuditedPrior, believed: str) -> None:
    """Warn where an audit of the source contradicts what was believed of π.

    Parameters
    ----------
    audited : AuditedBelief
        Both together.
    believed : str
        What tells the belief, with its verb.
    """
    audited.warn(
        "source prior",
        believed,
        "it is wrong, or the labelled positives do not look like those of the unlabelled rows",
    )


def combine_target_audit(sample: SampleAudit, curve: TabulatedCurve, prior: PriorKnowledge | None) -> AuditedPrior:
    """Put an audit of the target together with what the tables tell of π′; a contradiction is warned of.

    Parameters
    ----------
    sample : AuditedSample
        What the audit tells.
    curve : TabulatedCurve
        The confidence distribution of R.
    prior : PriorKnowledge or None
        Of π; None where the tables tell nothing, or not how sure they are.

    Returns
    -------
    AuditedBelief
    """
    audited = combine_with_audit(target_prior_distribution(curve, prior) if prior else None, sample, from_rows=True)
    audited.warn(
        "target prior",
        "the tables tell",
        f"the classes do not look the same in source and target, or the source prior ({prior}) is wrong",
    )
    return audited


def target_prior_distribution(curve: TabulatedCurve, prior: PriorKnowledge) -> PiecewiseUniform:
    """Make the confidence distribution of π′ of that of R.

    Parameters
    ----------
    curve : TabulatedCurve
        That of R.
    prior : PriorKnowledge
        Of π; a range is taken as even.

    Returns
    -------
    ShareDistribution
    """
    points: tuple[Any, ...] = (prior.value,)
    if isinstance(prior, DistributionPrior):
        points = prior.points
    elif isinstance(prior, RangePrior):
        points = (np.linspace(prior.low, prior.high, _POINTS),)
    coarse = PiecewiseUniform(_TARGET_STEPS, curve.probabilities(_TARGET_STEPS, *points))
    low, high = coarse.ppf([1e-6, 1 - 1e-6])
    edges = np.unique(np.concatenate([_TARGET_STEPS, np.linspace(low, high, len(_TARGET_STEPS))]))
    return PiecewiseUniform(edges, curve.probabilities(edges, *points))
