"""Audits with several classes: the true class of some rows, looked up, for the shares of all classes at once.

Each class against all others is the audit of one share (:mod:`priorshift.inference.audit_combination`): the
prediction-assisted mean of its labels, combined with what is known without them. What is new is that the shares of one
audit are dependent. Of the source, the dependence follows from the covariances: with Σ before the audit and S that of
the labels, about that of a multinomial, it is (Σ⁻¹ + S⁻¹)⁻¹. Of a target, whose intervals rely on the labels alone, it
is that of the influences of rows on the audited shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc, xlogy

from priorshift.arrays import Floats, Index, Mask
from priorshift.audit import evaluate_audit
from priorshift.class_source import ClassSource
from priorshift.errors import InputError
from priorshift.inference.affine_mixture import AffineMixture
from priorshift.inference.audit_combination import (
    DOUBT_OF_TARGET,
    AuditedPrior,
    SampleAudit,
    check_prior_uncertain,
    combine_with_audit,
    warn_of_source_audit,
)
from priorshift.inference.class_knowledge import LabelErrors, SourceShares
from priorshift.inference.composition import Composition
from priorshift.inference.prior_knowledge import DistributionPrior, PiecewiseUniform
from priorshift.io.labels import ClassAudit
from priorshift.problem import Target

_STEPS = np.linspace(0, 1, 201)  # of a share, before they are refined where it has probability
_TAIL = 1e-6  # probability beyond which steps are coarse


@dataclass(frozen=True, eq=False)
class ClassSampleAudit:
    """The audit of a sample with several classes."""

    samples: tuple[SampleAudit, ...]  # of each class
    correlation: Floats  # of the audited shares, shape (classes, classes)

    @classmethod
    def from_source(cls, source: ClassSource, audit: ClassAudit, predicted: Floats) -> ClassSampleAudit:
        """Evaluate the audit of a source; `predicted` are scores of the classes at the rows of its base."""
        base, known_class = source.samples[-1], source.known_class
        is_unknown = known_class < 0
        known = np.array([base.mass[known_class == k].sum() for k in range(predicted.shape[1])])
        effect = base.design_effect if not source.source.is_iid else None
        mass, observation = base.mass[is_unknown], base.observation[is_unknown]
        return cls._evaluate(audit, predicted, is_unknown, (mass, observation), base.size, effect, known)

    @classmethod
    def from_target(cls, target: Target, audit: ClassAudit, predicted: Floats) -> ClassSampleAudit:
        """Evaluate the audit of a target; `predicted` are scores of the classes at its rows."""
        everywhere = np.ones(len(target), dtype=bool)
        rows = target.mass, target.observation
        known = np.zeros(predicted.shape[1])
        return cls._evaluate(audit, predicted, everywhere, rows, target.size, target.design_effect, known)

    @classmethod
    def _evaluate(
        cls,
        audit: ClassAudit,
        predicted: Floats,
        is_unknown: Mask,
        rows: tuple[Floats, Index],
        size: float,
        design_effect: Callable[[Floats], float] | None,
        known: Floats,
    ) -> ClassSampleAudit:
        """Evaluate the audit class by class.

        `rows` are the masses and observations of the rows of unknown class; `size` is that of the whole sample, and
        `known` the share of it that is known to be of each class.
        """
        mass, observation = rows
        number = np.unique(observation, return_inverse=True)[1].reshape(-1)
        samples, influences = [], []
        for k in range(predicted.shape[1]):
            share, influence = evaluate_audit(audit.of_class(k), predicted[is_unknown, k], observation, mass)
            effect = 1.0 if design_effect is None else design_effect(predicted[:, k])
            samples.append(SampleAudit(share, size / effect, float(known[k]), float(known.sum() - known[k])))
            influences.append(np.bincount(number, influence))
        return cls(tuple(samples), _correlation(np.stack(influences)))

    @property
    def values(self) -> Floats:
        """Shares of the classes in the population, from the audit alone; they add up to 1."""
        values = np.array([sample.value for sample in self.samples])
        return np.asarray(values / values.sum())

    def p_value(self, shares: Floats) -> float:
        """Return the p-value of the hypothesis that the classes have these shares, by the labels alone.

        The likelihood ratio of as many labels as are as precise as the audit with its predictions.
        """
        labels = min(sample.share.labels for sample in self.samples)
        with np.errstate(divide="ignore"):  # a share of 0 of a class that was found is impossible
            statistic = 2 * labels * float((xlogy(self.values, self.values) - xlogy(self.values, shares)).sum())
        return float(chdtrc(len(shares) - 1, max(statistic, 0.0)))


@dataclass(frozen=True, eq=False)
class AuditedClasses:
    """Shares of the classes in a target by its audit, combined with the tables."""

    audit: ClassSampleAudit
    shares: tuple[AuditedPrior, ...]  # of each class

    @property
    def values(self) -> Floats:
        """Estimated shares, which add up to 1."""
        means = np.array([share.distribution.mean() for share in self.shares])
        return np.asarray(means / means.sum())

    @property
    def covariance(self) -> Floats:
        """Covariance of the estimated shares, shape (classes, classes)."""
        errors = np.array([share.distribution.std() for share in self.shares])
        return np.asarray(self.audit.correlation * np.outer(errors, errors))


def combine_source_audit(
    shares: SourceShares, audit: ClassSampleAudit, names: Sequence[str], label_errors: LabelErrors
) -> tuple[SourceShares, tuple[AuditedPrior, ...]]:
    """Combine what is known of the source priors with an audit of unlabelled rows, and warn of contradictions."""
    _check_label_errors(shares, audit, label_errors)
    audited = []
    for prior, is_estimated, sample, name in zip(
        shares.priors, shares.is_estimated, audit.samples[: len(names)], names, strict=True
    ):
        distribution = check_prior_uncertain(prior).distribution
        audited.append(combine_with_audit(distribution, sample, from_rows=is_estimated))
        warn_of_source_audit(audited[-1], "the tables" if is_estimated else "source_prior", of_class=name)
    priors = tuple(
        replace(prior, distribution=result.distribution)
        for prior, result in zip(shares.priors, audited, strict=True)
        if isinstance(prior, DistributionPrior)
    )
    precision = np.linalg.inv(_label_covariance(audit, len(names)))
    agrees = np.flatnonzero([not result.alone for result in audited])
    before = shares.covariance
    if before is None:
        before = np.diag([prior.error**2 for prior in shares.priors])
    precision[np.ix_(agrees, agrees)] += np.linalg.inv(before[np.ix_(agrees, agrees)])
    combined = np.linalg.inv(precision)
    errors = np.array([prior.error for prior in priors]) / np.sqrt(np.diag(combined))
    return replace(shares, priors=priors, covariance=combined * np.outer(errors, errors), alpha=None), tuple(audited)


def _check_label_errors(shares: SourceShares, audit: ClassSampleAudit, errors: LabelErrors) -> None:
    """Refuse an audit of the source with label errors that would change what it says, as the binary case does."""
    if not errors.cells:
        return
    if any(shares.is_estimated):
        raise InputError(
            "an audit of unlabelled rows cannot be combined with label_error and an estimated source prior. Pass "
            "source_prior of all classes, such as scipy.stats.dirichlet of ones if nothing is known, or leave out one "
            "of the two."
        )
    if any(sample.known > 0 for sample in audit.samples):
        raise InputError(
            "an audit of unlabelled rows cannot be combined with label_error if labelled rows are also rows of the "
            "population, as under scenario='censoring'; leave out one of the two."
        )


def combine_target_audit(
    audit: ClassSampleAudit, mixture: AffineMixture, composition: Composition, names: Sequence[str]
) -> AuditedClasses:
    """Combine an audit of the target with the estimated shares, and warn where they contradict each other.

    If the audit contradicts the estimate of one class, only the audit is used, for all classes.
    """
    cases = composition.region_cases
    combined = [
        combine_with_audit(share_distribution(mixture, cases[:, :, j]), sample, from_rows=True, doubt=DOUBT_OF_TARGET)
        for j, sample in enumerate(audit.samples)
    ]
    reason = "the classes do not look the same in source and target, or a source prior is wrong"
    for name, share in zip(names, combined, strict=True):
        what = f"share of {name!r} in the target"
        share.warn_of_contradiction(what, "the tables", reason)
        share.warn_of_disagreement(what, reason, tests=len(names))
    if not all(share.agrees for share in combined):
        combined = [
            replace(share, distribution=combine_with_audit(None, share.sample, from_rows=True).distribution,
                    agrees=False, rows_prior=None)
            for share in combined
        ]  # fmt: skip
    return AuditedClasses(audit, tuple(combined))


def share_distribution(mixture: AffineMixture, composition: Floats) -> PiecewiseUniform:
    """Return the confidence distribution of the share θ = w·b of a class, averaged over cases (…, samples) of w."""
    curve = mixture.curve(composition)

    def tabulate(edges: Floats) -> PiecewiseUniform:
        """Return the distribution on steps between edges."""
        cumulative = np.maximum.accumulate([curve(float(edge)) for edge in edges])
        return PiecewiseUniform.from_cdf(cumulative, edges)

    low, high = tabulate(_STEPS).ppf([_TAIL, 1 - _TAIL])
    return tabulate(np.unique(np.concatenate([_STEPS, np.linspace(low, high, len(_STEPS))])))


def _label_covariance(audit: ClassSampleAudit, classes: int) -> Floats:
    """Return the covariance of the shares of the first `classes` by the labels alone, about that of a multinomial."""
    labels = min(sample.share.labels for sample in audit.samples)
    smooth = (labels * audit.values + 0.5) / (labels + len(audit.samples) / 2)  # no class has a share of 0
    p = smooth[:classes]
    return np.asarray((np.diag(p) - np.outer(p, p)) / labels)


def _correlation(influences: Floats) -> Floats:
    """Return the correlation of estimates from the influences of observations, shape (estimates, observations).

    An estimate without any influence, of a class that no audited row is of, is uncorrelated.
    """
    covariance = influences @ influences.T
    spread = np.sqrt(np.diag(covariance))
    spread = np.where(spread > 0, spread, 1.0)
    correlation = covariance / np.outer(spread, spread)
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)
