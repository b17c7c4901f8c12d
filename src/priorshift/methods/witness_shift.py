"""The library's own estimator of the target prior: the ratio by its efficient witness."""

from __future__ import annotations

from collections.abc import Callable
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
from priorshift.inference.confidence_curve import TabulatedCurve
from priorshift.inference.joint import GroupInfluence, RatioInfluence
from priorshift.inference.prior_knowledge import (
    DistributionPrior,
    PiecewiseUniform,
    PointPrior,
    PriorKnowledge,
    read_prior,
)
from priorshift.io.parameters import is_known
from priorshift.io.sample_checks import FEW_POSITIVES, warn_of_few_positives
from priorshift.problem import Source, Target
from priorshift.progress import track_progress
from priorshift.results import Interval, NegativeRatio, PriorEstimate
from priorshift.scores.counts import ScoreCounts, SourceCounts
from priorshift.scores.cross_fitting import FIT_ROWS, check_model, choose_score_device
from priorshift.scores.mixture import histogram
from priorshift.scores.ratio_test import RatioTest, warn_not_separable
from priorshift.scores.scored_source import ScoredSource, ScoredTarget, WitnessEvidence, warn_if_swapped
from priorshift.scores.witness import Witness
from priorshift.source_prior.estimated import EstimatedPrior, SourcePriorMixin, check_scenario, estimate_source_prior
from priorshift.source_prior.mixture_prior import MixturePrior
from priorshift.threads import one_blas_thread
from priorshift.warning_records import suppress_warnings, warn


@dataclass(frozen=True, eq=False)
class TargetFit:
    """A target as a fitted :class:`WitnessShift` sees it.

    Attributes
    ----------
    target : Target
        Its rows.
    estimate : PriorEstimate
        Of its prior.
    test : RatioTest
        Of every ratio R.
    curve : TabulatedCurve
        The confidence distribution of R.
    p_values : ndarray of shape (repeats, rows)
        The p-values of its rows.
    prior : PriorKnowledge
        What is known of π.
    witness : Witness
        That tested it.
    is_separable : bool
        Whether P can be told from U at all.
    """

    target: Target
    estimate: PriorEstimate
    test: RatioTest
    curve: TabulatedCurve
    p_values: Floats
    prior: PriorKnowledge
    witness: Witness
    is_separable: bool


@dataclass(frozen=True, eq=False)
class _Tested:
    """A target whose ratio was tested, from rows or from counts.

    `evidence` is what pictures show; `told` is what it tells of π, `looked_up` its audit.
    """

    test: RatioTest
    curve: TabulatedCurve
    rows: int
    evidence: WitnessEvidence
    told: Callable[[MixturePrior, PiecewiseUniform], PiecewiseUniform]
    looked_up: SampleAudit | None = None


class WitnessShift(SourcePriorMixin, TargetPriorEstimator):
    """Target prior by the efficient witness of the ratio; the library's default.

    Label shift says E_T h = (1−R)·E_P h + R·E_U h for every function h of a row, R = (1−π′)/(1−π). Every ratio is
    tested with the h that tells it best, which depends on a cross-fitted score alone
    (:mod:`priorshift.scores.witness`); the tests are the confidence distribution of R, which needs no π. What is known
    of π, as a number, a range, a distribution or the posterior of :class:`MixturePrior`, makes of it that of
    π′ = 1 − (1−π)R.

    Parameters
    ----------
    source_prior : float, (low, high), distribution, estimator or None
        π, where it is known, a range that holds it, or a frozen ``scipy.stats`` distribution, such as a survey's Beta;
        an estimator is asked at `fit`; None asks :class:`MixturePrior`, with the same scores.
    model : classifier or None
        What gives the scores: None is kernel ridge regression on random features, tuned by cross-validation
        (:mod:`priorshift.scores.cross_fitting`); a scikit-learn classifier takes its place.
    repeats, folds : int
        Of the cross-fitting.
    scenario : {"case-control", "censoring"}
        As in :class:`TCPU`.
    standardize : bool
        Scale every column by the mean and spread of the population sample.
    confidence : float
        Of the interval: every π′ that is not rejected by the test of its ratio.
    max_rows : int
        Of KM2, which :class:`MixturePrior` asks.
    fit_rows : int
        Of P and of U, at most so many are drawn to fit the score to; all rows are scored. More make the estimate hardly
        more precise (see the guide, "Any size").
    device : str
        Where rows are scored: "cpu", or a GPU such as "cuda", for which torch is needed. "auto" takes a GPU where torch
        sees one and there are 500,000 rows and more.
    verbose : bool
        Whether a terminal shows how far long work is.
    random_state : int, Generator or None
        Decides folds, random features and subsamples.

    Attributes
    ----------
    prior_estimator_ : estimator or None
        What was asked for π; None where it is known.
    source_prior_ : float
        π as it is given, or as it was estimated from the source alone; an estimate's own `source_prior` has seen the
        target's rows too.
    scored_ : ScoredSource
        Scores and p-values of the source.
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

    A few labels of the target, of the source or of both: what was looked up stands in a column, NaN elsewhere.

    >>> import numpy as np
    >>> audit = np.where(np.arange(len(s.target)) < 100, s.target_labels, np.nan)  # the rows are in random order
    >>> print(witness.estimate(s.target, audit=audit))
    target prior 0.613, 95% interval 0.578 to 0.646 (Witness and audit, source prior 0.15 to 0.25)
    """

    label = "Witness"
    takes_uncertain_prior = True
    takes_audit = True
    takes_weights = True
    settings_of_estimate: ClassVar[frozenset[str]] = frozenset({"source_prior", "confidence", "device", "verbose"})
    scored_: ScoredSource
    _audit: SampleAudit | None  # of unlabelled rows of the source

    def __init__(
        self,
        source_prior: Any = None,
        *,
        model: Any = None,
        repeats: int = 5,
        folds: int = 5,
        scenario: Literal["case-control", "censoring"] = "case-control",
        standardize: bool = True,
        confidence: float = 0.95,
        max_rows: int = 4000,
        fit_rows: int = FIT_ROWS,
        device: str = "auto",
        verbose: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.source_prior = source_prior
        self.model = model
        self.repeats = repeats
        self.folds = folds
        self.scenario = scenario
        self.standardize = standardize
        self.confidence = confidence
        self.max_rows = max_rows
        self.fit_rows = fit_rows
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    @property
    def witness(self) -> Witness:  # numpydoc ignore=RT01
        """The function of the scores that tests every ratio, once it is fitted to rows."""
        return self._witness

    def negative_ratio(self, X_target: Any, weights: Any = None, groups: Any = None) -> NegativeRatio:
        """Estimate R = (1−π′)/(1−π), the ratio of the shares of negatives, which needs no source prior.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Unlabelled rows with the columns of the source.
        weights, groups : None or array-like of shape (rows,)
            As in `fit`, of the target's rows.

        Returns
        -------
        NegativeRatio
            With ``value`` NaN and a warning where P cannot be told from U; its ``separation``, of a kernel, is NaN.
        """
        target = self.read_target(X_target, None, weights, groups)
        test, curve, _ = self._test(target)
        sizes = (*self._sizes, len(target))
        if not test.is_separable:
            warn_not_separable(test, self._sizes, "every ratio is possible")
            return NegativeRatio(np.nan, np.nan, Interval(0.0, np.inf, self.confidence, "none"), np.nan, sizes)
        low, high = (float(end) for end in curve.quantiles(self.confidence))
        interval = Interval(low, high, self.confidence, "witness")
        return NegativeRatio(test.ratio, test.ratio_error, interval, float("nan"), sizes)

    def p_values(self, X_target: Any) -> Floats:
        """Rank the scores of a target's rows among those of the positives.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Unlabelled rows with the columns of the source.

        Returns
        -------
        ndarray of shape (repeats, rows)
            Uniform for positives; small for negatives.
        """
        return self._score(self.read_target(X_target)).p_values

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        known = is_known(self.source_prior)
        if known and source.audit is not None:
            check_prior_uncertain(read_prior(self.source_prior))
        with one_blas_thread(), track_progress("WitnessShift", 2) as step:
            step()
            device = choose_score_device(self.device, len(source.labeled))
            settings = self.model, self.repeats, self.folds, rng, self.fit_rows, device
            self.scored_ = ScoredSource.fit(source, *settings)
            step()
            self._witness = Witness.from_scores(self.scored_, source.without_rows(), *self.scored_.mixture)
        warn_if_swapped(self.scored_)
        self._sizes, self._few = source.sizes, source.few_positives
        self._audit = SampleAudit.from_source(source, self.scored_.predicted(self.scored_.p_values))
        self._set_source_prior(lambda: self._ask(source))
        if self._estimated is None or not isinstance(self._estimated.estimator, MixturePrior):
            source.warn_of_few_positives()

    def fit_counts(self, source: SourceCounts) -> Self:
        """Fit the estimator to a source whose p-values were counted, without its rows.

        Parameters
        ----------
        source : SourceCounts
            Counts of P and U by one model.

        Returns
        -------
        Self
            The fitted estimator, which :meth:`estimate_counts` can be asked of.
        """
        self._check_parameters()
        self._forget()
        self._audit = None
        self._sizes, self._few = source.sizes, source.positive.rows < FEW_POSITIVES
        self._counted, self._counts, self._law = source.witness, source.population.counts, source.law

        def _ask() -> EstimatedPrior:
            if self.source_prior is not None:
                raise InputError(
                    f"{type(self.source_prior).__name__} needs the rows of the source, but they were counted; pass "
                    "source_prior as a number, a range or a distribution, or leave it out."
                )
            prior = MixturePrior(scenario=self.scenario)
            prior.fit_counts(source.posterior_counts, source.law, source.km2_prior, source.sizes)
            return EstimatedPrior(prior, prior.prior_, None, prior.prior_distribution_, None)

        self._set_source_prior(_ask)
        warn_of_few_positives(source.positive.rows, float(source.positive.rows))
        self._settings = self.get_params()
        self._layout = None
        return self

    def estimate_counts(self, target: ScoreCounts) -> PriorEstimate:
        """Estimate the prior of a target whose p-values were counted by the source's model.

        Parameters
        ----------
        target : ScoreCounts
            Its counts.

        Returns
        -------
        PriorEstimate
        """
        with one_blas_thread():
            test = self._counted.test(target)
        curve = TabulatedCurve.from_tests(test.ratios, test.statistic, test.freedom)

        def _told(found: MixturePrior, belief: PiecewiseUniform) -> PiecewiseUniform:
            if target.noise or self._counted.is_noisy:  # noisy counts have no levels
                return belief
            return found.update_with_counts(belief, target.levels, max(test.ratio, 0.0))

        evidence = WitnessEvidence(self._counts, target.counts, *self._law, scores=None)
        return self._conclude(_Tested(test, curve, target.rows, evidence, _told))[0]

    def _ask(self, source: Source) -> EstimatedPrior:
        if self.source_prior is not None:
            if self._audit is None:
                return estimate_source_prior(self.source_prior, source, self.random_state)
            with suppress_warnings(WeakSeparationWarning):  # what the estimator leaves open, the audit answers
                estimated = estimate_source_prior(self.source_prior, source, self.random_state)
            if estimated.distribution is None:
                raise InputError(
                    f"{estimated.name} gives the source prior {estimated.value:.3g} without a prior_distribution_ that "
                    "an audit of unlabelled rows could inform; leave one of them out."
                )
            audited = combine_with_audit(estimated.distribution, self._audit, from_rows=True)
            warn_of_source_audit(audited, f"{estimated.name} tells")
            belief = audited.distribution
            return replace(estimated, value=belief.mean(), distribution=belief, influence=None, audited=audited)
        names = ("model", "repeats", "folds", "scenario", "standardize", "max_rows", "fit_rows", "random_state")
        prior = MixturePrior(**{name: getattr(self, name) for name in names}).fit_scores(source, self.scored_)
        return EstimatedPrior(prior, prior.prior_, None, prior.prior_distribution_, prior.audit_)

    def _known_prior(self) -> tuple[PriorKnowledge, AuditedPrior | None]:
        """What the user knows of π, and what an audit of unlabelled rows makes of it."""
        prior = read_prior(self.source_prior)
        if self._audit is None:
            return prior, None
        audited = combine_with_audit(check_prior_uncertain(prior).distribution, self._audit, from_rows=False)
        return DistributionPrior(audited.distribution), audited

    def _knowledge(self) -> PriorKnowledge:
        return self._known_prior()[0]

    def _prior_in_use(self) -> tuple[PriorKnowledge, EstimatedPrior | None, AuditedPrior | None]:
        """π as it is set now, what was asked for it, and what an audit of unlabelled rows made of it."""
        found = self._answer()
        if found is None:
            prior, audited = self._known_prior()
            if audited is not None:
                warn_of_source_audit(audited, "source_prior tells")
            return prior, None, audited
        return found.knowledge(), found, found.audited

    def _score(self, target: Target) -> ScoredTarget:
        with one_blas_thread():
            return self.scored_.score(target, choose_score_device(self.device, len(target)))

    def _test(self, target: Target) -> tuple[RatioTest, TabulatedCurve, ScoredTarget]:
        scored = self._score(target)
        with one_blas_thread():
            test = self._witness.test(scored.p_values, target)
        return test, TabulatedCurve.from_tests(test.ratios, test.statistic, test.freedom), scored

    def _estimate(self, target: Target) -> PriorEstimate:
        return self.fit_target(target).estimate

    def _estimate_jointly(self, target: Target) -> tuple[PriorEstimate, RatioInfluence | None]:
        seen = self.fit_target(target)
        return seen.estimate, self.influence(seen)

    def influence(self, seen: TargetFit) -> RatioInfluence | None:
        """Tell what R̂ of an examined target rests on, by which it is compared with other targets.

        Parameters
        ----------
        seen : Examined
            As :meth:`fit_target` gives it.

        Returns
        -------
        RatioInfluence or None
            None where it was audited, has no interval or tells nothing.
        """
        target, test = seen.target, seen.test
        if target.audit is not None or seen.estimate.interval is None or not test.is_separable:
            return None
        with one_blas_thread():
            moved = self._witness.influence(test.ratio, seen.p_values, target)
        return RatioInfluence(
            test.ratio,
            seen.curve,
            seen.prior,
            moved.source,
            moved.own_variance,
            moved.freedom,
            own=None if target.groups is None else GroupInfluence.from_rows(target.groups, moved.target),
            observations=target.size,
        )

    def fit_target(self, target: Target) -> TargetFit:
        """Estimate the prior of a target that was read before, and keep what the estimate was made of.

        Parameters
        ----------
        target : Target
            As :meth:`read_target` gives it.

        Returns
        -------
        Examined
        """
        test, curve, scored = self._test(target)
        values = scored.p_values

        def _told(found: MixturePrior, belief: PiecewiseUniform) -> PiecewiseUniform:
            return found.update_with_target(belief, values, target, max(test.ratio, 0.0))

        def _looked_up() -> SampleAudit | None:
            if target.audit is None:
                return None
            predicted = self.scored_.predicted(values, test.ratio if np.isfinite(test.ratio) else 1.0)
            return SampleAudit.from_target(target, target.audit, predicted)

        counts = np.stack([histogram(v, None if target.is_even else target.size * target.mass) for v in values])
        evidence = WitnessEvidence(self.scored_.counts, counts, *self.scored_.mixture, scored.scores)
        estimate, prior = self._conclude(_Tested(test, curve, len(target), evidence, _told, _looked_up()))
        return TargetFit(target, estimate, test, curve, values, prior, self._witness, test.is_separable)

    def _conclude(self, tested: _Tested) -> tuple[PriorEstimate, PriorKnowledge]:
        """The estimate, and what is known of π without the target."""
        prior, estimated, audited_source = self._prior_in_use()
        test, curve = tested.test, tested.curve
        R, found, nearer = test.ratio, estimated.estimator if estimated else None, prior
        # a MixturePrior with scores of its own ranks rows otherwise
        same = isinstance(found, MixturePrior) and getattr(found, "scored_", None) is getattr(self, "scored_", None)
        if same and test.is_separable and not (audited_source and audited_source.alone):
            # the target's rows bring π̂ nearer; the interval is as sure of it as before, since R̂ is an estimate too,
            # unless labels of the target stand beside it
            nearer = DistributionPrior(tested.told(found, prior.distribution))  # type: ignore[arg-type, union-attr]
        pi = nearer.value
        mean = curve.mean(*(nearer.points if isinstance(nearer, DistributionPrior) else (pi,)))
        sure = not (estimated and estimated.influence is None and estimated.distribution is None)
        if estimated and tested.looked_up is None:
            estimated.warn_of_error()
        interval = None
        if sure:
            low, high = prior.interval(curve, self.confidence)
            interval = Interval(min(low, mean), max(high, mean), self.confidence, "witness")
        status = self._status(test, curve, prior, audited=tested.looked_up is not None)
        if status == "no estimate" and interval is not None:
            interval = Interval(0.0, 1.0, self.confidence, "none")
        error = float(np.hypot((1 - pi) * test.ratio_error, R * prior.error)) if sure else float("nan")
        audited = None
        if tested.looked_up is not None:
            audited = combine_target_audit(
                tested.looked_up, curve, nearer if sure and status != "no estimate" else None
            )
            mean, error = audited.distribution.mean(), audited.distribution.std()
            low, high = audited.distribution.ppf([(1 - self.confidence) / 2, (1 + self.confidence) / 2])
            interval = Interval(float(low), float(high), self.confidence, audited.by("witness"))
            status = "ok" if status == "no estimate" else status
        by = estimated.name if estimated else prior.by
        if audited_source is not None and not estimated:
            by = audited_source.by(by)
        audits = {"source": audited_source, "target": audited}
        said = ("mixture_prior", "km2_prior", "overlap") if isinstance(found, MixturePrior) else ()
        estimate = PriorEstimate(
            value=mean,
            raw=1 - (1 - pi) * R,
            interval=interval,
            standard_error=error,
            source_prior=pi,
            negative_ratio=R,
            separation=np.nan,  # one and the same, so that equal estimates are equal
            method=self.label,
            sizes=(*self._sizes, tested.rows),
            source_prior_by=by,
            status=status,
            details={
                "scenario": self.scenario,
                "standardize": self.standardize,
                "source_prior_range": None if isinstance(prior, PointPrior) else list(prior.range),
                "source_prior_standard_error": prior.error or None,
                "separation_over_error": test.separation,
                **{name: getattr(found, f"{name}_") for name in said},
                **({"audit": told} if (told := {name: a.to_dict() for name, a in audits.items() if a}) else {}),
            },
            evidence=tested.evidence,
        )
        return estimate, prior

    def _status(self, test: RatioTest, curve: TabulatedCurve, prior: PriorKnowledge, audited: bool) -> str:
        """What the data can tell: the prior, a guess or nothing; a warning says the last."""
        if not test.is_separable:
            left = "the estimate is that of the audit alone" if audited else "every prior in [0, 1] is possible"
            warn_not_separable(test, self._sizes, left)
            return "no estimate"
        most = prior.range[1]
        sure = (1 + self.confidence) / 2
        if curve.level[0] > ndtri(sure) or 1 - curve(1 / max(1 - most, 1e-12)) > sure:  # R < 0, or π′ < 0
            warn(
                f"The raw estimate {format_fixed(1 - (1 - most) * test.ratio, 3)} lies outside [0, 1] by more than its "
                f"sampling error ({(1 - most) * test.ratio_error:.2g}); check the source prior ({prior}) and whether "
                "the classes look the same in source and target.",
                OutOfRangeWarning,
            )
        return "few positives" if self._few else "ok"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_scenario(self.source_prior, self.scenario)
        if self.model is not None:
            check_model(self.model)
