"""The library's own estimator of the target prior: the ratio by its efficient witness."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.special import ndtri

from priorshift.arrays import Floats
from priorshift.base import TargetPriorEstimator
from priorshift.errors import InputError, OutOfRangeWarning, WeakSeparationWarning
from priorshift.formatting import format_fixed
from priorshift.inference.audit_combination import (
    AuditedPrior,
    SampleAudit,
    check_prior_uncertain,
    combine_target_audit,
    combine_with_audit,
    warn_of_source_audit,
)
from priorshift.inference.joint import GroupInfluence, RatioInfluence
from priorshift.inference.prior_knowledge import (
    DistributionPrior,
    PosteriorPrior,
    PriorKnowledge,
    read_label_error,
    read_prior,
    warn_of_label_error,
    with_label_error,
)
from priorshift.io.parameters import is_known
from priorshift.io.sample_size import FEW_POSITIVES, warn_of_few_positives
from priorshift.problem import Source, Target
from priorshift.progress import track_progress
from priorshift.results import Interval, NegativeRatio, PriorEstimate
from priorshift.scores.counts import ScoreCounts, SourceCounts
from priorshift.scores.cross_fitting import FIT_ROWS, check_model, choose_score_device
from priorshift.scores.mixture import histogram
from priorshift.scores.ratio_test import RatioTest, warn_not_separable
from priorshift.scores.scored_source import ScoredSource, WitnessEvidence, warn_if_swapped
from priorshift.scores.witness import Witness
from priorshift.source_prior import (
    EstimatedPrior,
    SourcePriorMixin,
    check_scenario,
    estimate_source_prior,
    label_error_details,
)
from priorshift.source_prior.mixture_prior import MixturePrior
from priorshift.threads import one_blas_thread
from priorshift.warning_records import suppress_warnings, warn


@dataclass(frozen=True, eq=False)
class TargetFit:
    """Target with its estimate by a fitted :class:`WitnessShift`, and everything the estimate was computed from."""

    target: Target
    estimate: PriorEstimate
    test: RatioTest
    p_values: Floats  # of its rows in each repetition of the cross-fitting, shape (repeats, rows)
    prior: PriorKnowledge  # what is known of π without the target, and of label errors
    witness: Witness


@dataclass(frozen=True, eq=False)
class _TestedTarget:
    """Target for which every ratio R was tested: rows with their p-values, or counts of p-values."""

    test: RatioTest
    sample: Target | ScoreCounts
    evidence: WitnessEvidence  # data for plots
    p_values: Floats  # of the rows, shape (repeats, rows); empty for counts
    audit: SampleAudit | None = None


@dataclass(frozen=True, eq=False)
class _PriorInUse:
    """What is known of π without the target, and where it comes from."""

    # a number, a range or a distribution of π, which includes the audit; an estimate is that of π/(1−ε) if there are
    # label errors
    knowledge: PriorKnowledge
    origin: str  # as in `PriorEstimate.source_prior_by`
    estimated: EstimatedPrior | None = None  # the estimate at `fit`; None where π is given
    audited: AuditedPrior | None = None  # result of an audit of unlabelled rows of the source; None without one
    error_is_known: bool = True  # False for an estimate without influence values and without a distribution


class WitnessShift(SourcePriorMixin, TargetPriorEstimator):
    """Target prior by the efficient witness of the ratio; the library's default.

    Label shift says E_T h = (1−R)·E_P h + R·E_U h for every function h of a row, R = (1−π′)/(1−π). Every ratio is
    tested with the h that is most precise for it, which depends on a cross-fitted score alone
    (:mod:`priorshift.scores.witness`); the tests are the confidence distribution of R, which needs no π. Combined with
    what is known of π (a number, a range, a distribution or the posterior of :class:`MixturePrior`), it becomes the
    confidence distribution of π′ = 1 − (1−π)R. If a share ε of the labelled rows is not positive, R is the same and
    π′ = (1−ε) − (1−ε−π)R.

    Parameters
    ----------
    source_prior : float, (low, high), distribution, estimator or None
        π: a number, a range that contains it, or a frozen ``scipy.stats`` distribution, such as a survey's Beta; or an
        estimator, which is fitted at `fit`. Default None: :class:`MixturePrior`, with the same scores.
    label_error : float, (low, high), distribution or None
        ε, the share of the labelled rows that are not positive; in other respects these rows look like other negatives.
        A number from 0 to below 1; a range that contains it, for which the interval holds at every ε; or a frozen
        distribution of scipy.stats, such as ``stats.beta(3.5, 47.5)`` if 3 of 50 labelled rows that were checked at
        random are wrong (``stats.beta(k + 0.5, n - k + 0.5)`` for k of n), whose spread the interval includes. 1 − ε
        must be larger than π. Under ``scenario="censoring"`` it is the share among the labelled rows, too. Default
        None: no errors.
    model : classifier or None
        Model of the scores. Default None: kernel ridge regression on random features, tuned by cross-validation
        (:mod:`priorshift.scores.cross_fitting`). A scikit-learn classifier replaces it.
    repeats, folds : int
        Repetitions and folds of the cross-fitting.
    scenario : {"case-control", "censoring"}
        As in :class:`TCPU`.
    standardize : bool
        Whether to scale every column by the mean and spread of the population sample.
    confidence : float
        Confidence level of the interval, which contains every π′ that is not rejected by the test of its ratio.
    max_rows : int
        Largest number of rows for KM2, which :class:`MixturePrior` uses.
    fit_rows : int
        Largest number of rows of P, and of U, to which the score is fitted; all rows are scored. More rows hardly
        improve the precision (see the guide, "Any size").
    device : str
        Device that scores rows: "cpu", or a GPU such as "cuda", which needs torch. Default "auto": a GPU if torch finds
        one and there are at least 500,000 rows.
    keep_rows : bool
        Whether `fit` keeps the rows of the source, from which :func:`diagnose` can then diagnose later targets. A
        stored file then holds them too. Default False.
    verbose : bool
        Whether to show progress on a terminal.
    random_state : int, Generator or None
        Seed of folds, random features and subsamples.

    Attributes
    ----------
    prior_estimator_ : estimator or None
        Fitted estimator of π; None if π is known.
    source_prior_ : float
        π as given, or as estimated from the source alone; the `source_prior` of an estimate also uses the target.
    scored_ : ScoredSource
        Scores and p-values of the source.
    witness_ : Witness
        The witness, which tests every ratio R.
    reference_ : SourceReference
        The source with its rows, if `keep_rows`.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from priorshift import WitnessShift, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, random_state=0)
    >>> witness = WitnessShift(source_prior=0.2, random_state=0).fit(s.X, s.y, shared=s.ids)
    >>> print(witness.estimate(s.target))
    target prior 0.607, 95% interval 0.578 to 0.636 (Witness, source prior 0.2)
    >>> print(witness.set_params(source_prior=(0.15, 0.25)).estimate(s.target))
    target prior 0.607, 95% interval 0.551 to 0.659 (Witness, source prior 0.15 to 0.25)

    An audit of the target, of the source or of both is a column of classes, NaN for rows that were not audited.

    >>> import numpy as np
    >>> audit = np.where(np.arange(len(s.target)) < 100, s.target_labels, np.nan)  # the rows are in random order
    >>> print(witness.estimate(s.target, audit=audit))
    target prior 0.613, 95% interval 0.578 to 0.658 (Witness and audit, source prior 0.15 to 0.25)
    """

    label = "Witness"
    takes_uncertain_prior = True
    takes_audit = True
    takes_weights = True
    settings_of_estimate: ClassVar[frozenset[str]] = frozenset(
        {"source_prior", "label_error", "confidence", "device", "verbose"}
    )
    scored_: ScoredSource
    witness_: Witness
    _audit: SampleAudit | None  # of unlabelled rows of the source

    def __init__(
        self,
        source_prior: Any = None,
        *,
        label_error: Any = None,
        model: Any = None,
        repeats: int = 5,
        folds: int = 5,
        scenario: Literal["case-control", "censoring"] = "case-control",
        standardize: bool = True,
        confidence: float = 0.95,
        max_rows: int = 4000,
        fit_rows: int = FIT_ROWS,
        device: str = "auto",
        keep_rows: bool = False,
        verbose: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.source_prior = source_prior
        self.label_error = label_error
        self.model = model
        self.repeats = repeats
        self.folds = folds
        self.scenario = scenario
        self.standardize = standardize
        self.confidence = confidence
        self.max_rows = max_rows
        self.fit_rows = fit_rows
        self.device = device
        self.keep_rows = keep_rows
        self.verbose = verbose
        self.random_state = random_state

    def negative_ratio(self, X_target: Any, weights: Any = None, groups: Any = None) -> NegativeRatio:
        """Estimate R = (1−π′)/(1−π), the ratio of the shares of negatives, which needs no source prior.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Unlabelled rows with the columns of the source.
        weights, groups : None or array-like of shape (rows,)
            As in `fit`, for the rows of the target.

        Returns
        -------
        NegativeRatio
            If P cannot be distinguished from U, ``value`` is NaN, with a warning. ``separation`` is NaN, since there is
            no kernel.
        """
        target = self.read_target(X_target, None, weights, groups)
        with one_blas_thread():
            test = self.witness_.test(self.scored_.score(target, self.device).p_values, target)
        sizes = (*self._sizes, len(target))
        if not test.is_separable:
            warn_not_separable(test, self._sizes, "every ratio is possible")
            return NegativeRatio(np.nan, np.nan, Interval(0.0, np.inf, self.confidence, "none"), np.nan, sizes)
        low, high = test.curve.quantiles(self.confidence)
        interval = Interval(float(low), float(high), self.confidence, "witness")
        return NegativeRatio(test.ratio, test.ratio_error, interval, float("nan"), sizes)

    def p_values(self, X_target: Any) -> Floats:
        """Return the p-values of a target's rows: the ranks of their scores among those of the positives.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Unlabelled rows with the columns of the source.

        Returns
        -------
        ndarray of shape (repeats, rows)
            Uniformly distributed for positives, small for negatives.
        """
        target = self.read_target(X_target)
        with one_blas_thread():
            return self.scored_.score(target, self.device).p_values

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        """Score the source by cross-fitting, fit the witness to the scores, and estimate π unless it is known."""
        choose_score_device(self.device, len(source.labeled))  # refuse a missing device before the work
        known = is_known(self.source_prior)
        if known and source.audit is not None:
            check_prior_uncertain(read_prior(self.source_prior))
        with one_blas_thread(), track_progress("WitnessShift", 2) as step:
            step()
            self.scored_ = ScoredSource.fit(source, self.model, self.repeats, self.folds, rng, self.fit_rows)
            step()
            self.witness_ = Witness.from_scores(self.scored_, source.without_rows(), *self.scored_.mixture)
        warn_if_swapped(self.scored_)
        self._sizes, self._few_positives = source.sizes, source.P.observations < FEW_POSITIVES
        self._audit = None
        if source.audit is not None:
            posteriors = self.scored_.predicted(self.scored_.p_values)  # P(Y=1|p-value) of the rows of U
            self._audit = SampleAudit.from_source(source, source.audit, posteriors)
        self._estimated = None if known else self._estimate_source_prior(source)
        if self._estimated is None or not isinstance(self._estimated.estimator, MixturePrior):
            warn_of_few_positives(len(source.positive), source.P.observations)

    def _estimate_source_prior(self, source: Source) -> EstimatedPrior:
        """Estimate π by MixturePrior with the same scores, or by the estimator that the user passed as `source_prior`.

        The estimate of a user's estimator is combined with an audit of unlabelled rows; MixturePrior does so itself.
        """
        if self.source_prior is None:
            names = ("model", "repeats", "folds", "scenario", "standardize", "max_rows", "fit_rows", "random_state")
            mixture = MixturePrior(**{name: getattr(self, name) for name in names}).fit_scores(source, self.scored_)
            return EstimatedPrior(mixture, mixture.prior_, None, mixture.prior_distribution_, audited=mixture.audit_)
        if self._audit is None:
            return estimate_source_prior(self.source_prior, source, self.random_state)
        with suppress_warnings(WeakSeparationWarning):  # the audit narrows what the estimator leaves open
            estimated = estimate_source_prior(self.source_prior, source, self.random_state)
        if estimated.distribution is None:
            raise InputError(
                f"{estimated.name} has no prior_distribution_, which is needed to combine its source prior "
                f"{estimated.value:.3g} with an audit of unlabelled rows; leave one of them out."
            )
        audited = combine_with_audit(estimated.distribution, self._audit, from_rows=True)
        warn_of_source_audit(audited, estimated.name)
        combined = audited.distribution
        return replace(estimated, value=combined.mean(), distribution=combined, influence=None, audited=audited)

    def fit_counts(self, source: SourceCounts) -> Self:
        """Fit the estimator to a source of which only counts of p-values are given, without its rows."""
        self._check_parameters()
        self._forget()
        self._audit = None
        self._sizes, self._few_positives = source.sizes, source.positive.rows < FEW_POSITIVES
        self._count_witness, self._source_counts = source.witness, source
        self._estimated = None
        if not is_known(self.source_prior):
            if self.source_prior is not None:
                raise InputError(
                    f"{type(self.source_prior).__name__} needs the rows of the source, but they were counted; pass "
                    "source_prior as a number, a range or a distribution, or leave it out."
                )
            mixture = MixturePrior(scenario=self.scenario)
            mixture.fit_counts(source.posterior_counts, source.law, source.km2_prior, source.sizes)
            self._estimated = EstimatedPrior(mixture, mixture.prior_, None, mixture.prior_distribution_)
        warn_of_few_positives(source.positive.rows, float(source.positive.rows))
        self._settings = self.get_params()
        self._layout = None  # marks a finished fit; without rows, the columns are not known
        return self

    def estimate_counts(self, target: ScoreCounts) -> PriorEstimate:
        """Estimate the prior of a target from counts of its p-values, by the model that counted the source."""
        with one_blas_thread():
            test = self._count_witness.test(target, self._least_ratio())
        priors, weights = self._source_counts.law  # of the mixture that was fitted to the source, in each repetition
        evidence = WitnessEvidence(self._source_counts.population.counts, target.counts, priors, weights, scores=None)
        return self._conclude(_TestedTarget(test, target, evidence, p_values=np.empty((0, 0))))[0]

    def fit_target(self, target: Target) -> TargetFit:
        """Estimate the prior of a target, and return everything that the estimate was computed from."""
        with one_blas_thread():
            scored = self.scored_.score(target, self.device)
            p_values = scored.p_values  # shape (repeats, rows)
            test = self.witness_.test(p_values, target, self._least_ratio())
        row_weights = None if target.is_iid else target.size * target.mass
        counts = np.stack([histogram(v, row_weights) for v in p_values])  # one histogram for each repetition
        priors, weights = self.scored_.mixture  # of the mixture that was fitted to the source, in each repetition
        evidence = WitnessEvidence(self.scored_.counts, counts, priors, weights, scored.scores)
        audit = None
        if target.audit is not None:
            posteriors = self.scored_.predicted(p_values, test.ratio if np.isfinite(test.ratio) else 1.0)
            audit = SampleAudit.from_target(target, target.audit, posteriors)
        estimate, prior = self._conclude(_TestedTarget(test, target, evidence, p_values, audit))
        return TargetFit(target, estimate, test, p_values, prior, self.witness_)

    def _estimate(self, target: Target) -> PriorEstimate:
        """Estimate the prior of a target that was read and checked."""
        return self.fit_target(target).estimate

    def _estimate_jointly(self, target: Target) -> tuple[PriorEstimate, RatioInfluence | None]:
        """Return the estimate of a target's prior and the influence of rows on R̂, for comparing targets."""
        fit = self.fit_target(target)
        return fit.estimate, self.influence(fit)

    def influence(self, fit: TargetFit) -> RatioInfluence | None:
        """Return the influence of each row on R̂, for comparing targets.

        None if the target was audited, or if there is no interval or no estimate.
        """
        target, test = fit.target, fit.test
        if target.audit is not None or fit.estimate.interval is None or not test.is_separable:
            return None
        with one_blas_thread():
            influence = self.witness_.influence(test.ratio, fit.p_values, target, fit.prior.least_ratio)
        by_group = None if target.groups is None else GroupInfluence.from_rows(target.groups, influence.target)
        return RatioInfluence(
            ratio=test.ratio,
            curve=test.curve,
            prior=fit.prior,
            source_influence=influence.source,
            own_variance=influence.own_variance,
            freedom=influence.freedom,
            group_influence=by_group,
            observations=target.size,
        )

    def _conclude(self, tested: _TestedTarget) -> tuple[PriorEstimate, PriorKnowledge]:
        """Estimate π′ = q − (q−π)R from the curve of R, what is known of π and q = 1 − ε, and an audit of the target.

        Returns the estimate, and what is known of π and q without the target.
        """
        test, curve, prior = tested.test, tested.test.curve, self._prior_in_use()
        knowledge = self._with_label_error(prior, prior.knowledge)
        refined = knowledge
        if prior.estimated:
            refined = self._with_label_error(prior, self._refine_prior(prior, tested))
        if prior.estimated and tested.audit is None:
            prior.estimated.warn_of_error()
        warn_of_label_error(knowledge)
        status = self._status(tested, knowledge)
        # mean of π′ under the confidence distribution of R and, where there are any, the distributions of π and ε
        mean = refined.mean(curve)
        value = refined.target_prior(test.ratio) if test.is_separable else mean
        interval, error = None, float("nan")
        if prior.error_is_known:
            (low, high), by = (0.0, 1.0), "none"
            if test.is_separable:
                (low, high), by = knowledge.interval(curve, self.confidence), "witness"
            interval = Interval(min(low, value), max(high, value), self.confidence, by)
            # delta method of q − (q−π)R, where π, q and R are independent
            from_ratio = (refined.purity - refined.value) * test.ratio_error
            error = float(np.hypot(from_ratio, knowledge.spread(test.ratio)))
        audited = None
        if tested.audit is not None:
            is_usable = prior.error_is_known and test.is_separable  # otherwise the audit alone counts
            audited = combine_target_audit(tested.audit, curve, refined if is_usable else None)
            value, error = audited.distribution.mean(), audited.distribution.std()
            mean = value
            low, high = audited.interval(self.confidence)
            interval = Interval(low, high, self.confidence, audited.by("witness"))
            status = "ok" if status == "no estimate" else status
        estimate = PriorEstimate(
            value=value,
            raw=refined.raw(test.ratio),
            interval=interval,
            standard_error=error,
            source_prior=refined.value,
            negative_ratio=test.ratio,
            separation=np.nan,  # always the same object, so that equal estimates compare equal
            method=self.label,
            sizes=(*self._sizes, tested.sample.rows if isinstance(tested.sample, ScoreCounts) else len(tested.sample)),
            source_prior_by=prior.origin,
            status=status,
            details={**self._details(test, prior, knowledge, audited), "mean": mean},
            evidence=tested.evidence,
        )
        return estimate, knowledge

    def _with_label_error(self, prior: _PriorInUse, knowledge: PriorKnowledge) -> PriorKnowledge:
        """Combine what is known of π with `label_error`; refuse an audit of the source that does not go with it."""
        audit = self._audit
        if self.label_error is not None and audit is not None:
            if prior.estimated is not None:
                raise InputError(
                    "an audit of unlabelled rows cannot be combined with label_error and an estimated source prior. "
                    "Pass source_prior, such as scipy.stats.uniform(0, 1) if nothing is known, or leave out one of "
                    "the two."
                )
            if audit.known > 0:
                raise InputError(
                    "an audit of unlabelled rows cannot be combined with label_error if labelled rows are also rows of "
                    "the population, as under scenario='censoring'; leave out one of the two."
                )
        return with_label_error(knowledge, self.label_error, is_relative=prior.estimated is not None)

    def _least_ratio(self) -> float:
        """Return the smallest R that is tested: below 0 if labels may be wrong."""
        if self.label_error is None:
            return 0.0
        prior = self._prior_in_use()
        return self._with_label_error(prior, prior.knowledge).least_ratio

    def _audited_source_prior(self, audit: SampleAudit) -> AuditedPrior:
        """Combine the given source prior, a range or a distribution, with an audit of unlabelled rows."""
        distribution = check_prior_uncertain(read_prior(self.source_prior)).distribution
        return combine_with_audit(distribution, audit, from_rows=False)

    def _known_prior(self) -> PriorKnowledge:
        """Return the given source prior, combined with an audit of unlabelled rows where there is one."""
        if self._audit is None:
            return read_prior(self.source_prior)
        return DistributionPrior(self._audited_source_prior(self._audit).distribution)

    def _prior_in_use(self) -> _PriorInUse:
        """Return what is known of π under the current settings, combined with an audit of unlabelled source rows."""
        estimated = None if is_known(self.source_prior) else self._prior_from_fit()
        if estimated is not None and isinstance(estimated.estimator, MixturePrior) and self.label_error is not None:
            corrected = estimated.estimator.with_label_error(read_label_error(self.label_error).value)
            estimated = replace(
                estimated, estimator=corrected, value=corrected.prior_, distribution=corrected.prior_distribution_
            )
        if estimated is not None:
            error_is_known = estimated.influence is not None or estimated.distribution is not None
            return _PriorInUse(estimated.knowledge(), estimated.name, estimated, estimated.audited, error_is_known)
        if self._audit is None:
            known = read_prior(self.source_prior)
            return _PriorInUse(known, known.by)
        audited = self._audited_source_prior(self._audit)
        warn_of_source_audit(audited, "source_prior")
        combined = DistributionPrior(audited.distribution)
        return _PriorInUse(combined, audited.by(combined.by), None, audited)

    def _refine_prior(self, prior: _PriorInUse, tested: _TestedTarget) -> PriorKnowledge:
        """Update MixturePrior's distribution of π with the target, as if R were R̂; return other knowledge unchanged.

        The interval uses it only with an audit of the target: otherwise it would be too narrow, since R̂ is an estimate.
        """
        knowledge, sample = prior.knowledge, tested.sample
        estimator = prior.estimated.estimator if prior.estimated else None
        if not isinstance(estimator, MixturePrior) or not isinstance(knowledge, DistributionPrior):
            return knowledge
        if not tested.test.is_separable or (prior.audited and prior.audited.alone):
            return knowledge
        # A MixturePrior with other scores ranks rows differently. After a fit to counts neither has scores.
        if getattr(estimator, "scored_", None) is not getattr(self, "scored_", None):
            return knowledge
        distribution, ratio = knowledge.distribution, max(tested.test.ratio, 0.0)
        if isinstance(sample, Target):
            return PosteriorPrior(estimator.update_with_target(distribution, tested.p_values, sample, ratio))
        if sample.noise or self._count_witness.is_noisy:  # noisy counts have no levels
            return knowledge
        return PosteriorPrior(estimator.update_with_counts(distribution, sample.levels, ratio))

    def _status(self, tested: _TestedTarget, prior: PriorKnowledge) -> str:
        """Return the status of the estimate, "ok", "few positives" or "no estimate"; warn if R contradicts π.

        "no estimate" means that P cannot be distinguished from U, of which it also warns.
        """
        test, curve = tested.test, tested.test.curve
        if not test.is_separable:
            by_audit = "the estimate is that of the audit alone"
            warn_not_separable(test, self._sizes, by_audit if tested.audit else "every prior in [0, 1] is possible")
            return "no estimate"
        if tested.audit is None and curve.quantiles(self.confidence) == (curve.ratios[0], float("inf")):
            warn(
                f"The positives are {test.separation:.1f} standard errors from the population, which is too little for "
                "this target: no ratio of negatives can be excluded. Add rows, or features that distinguish classes.",
                WeakSeparationWarning,
            )
        highest = prior.range[1]
        level = (1 + self.confidence) / 2
        # `curve(r)` is the confidence that R ≤ r, and `curve.levels(r)` its normal quantile. π′ > 1 if R < (q−1)/(q−π),
        # and π′ < 0 if R > q/(q−π), even at the highest π
        factors = [(q, max(q - pi, 1e-12)) for q, pi in prior.extremes_of_purity]
        is_above_one = all(curve.levels((q - 1) / factor) > ndtri(level) for q, factor in factors)
        is_below_zero = all(1 - curve(q / factor, smallest=(q - 1) / factor) > level for q, factor in factors)
        if is_above_one or is_below_zero:
            purity, factor = prior.purity, prior.purity - highest
            warn(
                f"The raw estimate {format_fixed(purity - factor * test.ratio, 3)} lies outside [0, 1] by more than "
                f"its sampling error ({factor * test.ratio_error:.2g}); check the source prior ({prior}) and "
                "whether the classes look the same in source and target.",
                OutOfRangeWarning,
            )
        return "few positives" if self._few_positives else "ok"

    def _details(
        self, test: RatioTest, prior: _PriorInUse, knowledge: PriorKnowledge, audited: AuditedPrior | None
    ) -> dict[str, Any]:
        """Return the `details` of an estimate: settings, how π was obtained, and audits of source and target.

        `knowledge` is what is known of π and of label errors; `audited` is the result of the target's audit, None
        without one.
        """
        estimator = prior.estimated.estimator if prior.estimated else None
        details: dict[str, Any] = {
            "scenario": self.scenario,
            "standardize": self.standardize,
            "source_prior_range": None if knowledge.is_point else list(knowledge.range),
            "source_prior_standard_error": knowledge.error or None,
            "separation_over_error": test.separation,
            "negative_ratio_interval": list(test.curve.quantiles(self.confidence)) if test.is_separable else None,
        }
        if isinstance(estimator, MixturePrior):
            details |= {name: getattr(estimator, f"{name}_") for name in ("mixture_prior", "km2_prior", "overlap")}
        details |= label_error_details(knowledge)
        audits = {"source": prior.audited, "target": audited}
        results = {name: audit.to_dict() for name, audit in audits.items() if audit is not None}
        return details | {"audit": results} if results else details

    def _check_parameters(self) -> None:
        """Raise InputError for a setting that cannot be used; also checks the estimator of π and `model`."""
        super()._check_parameters()
        self._check_label_error()
        if not is_known(self.source_prior):
            check_scenario(self.source_prior, self.scenario)
        if self.model is not None:
            check_model(self.model)
