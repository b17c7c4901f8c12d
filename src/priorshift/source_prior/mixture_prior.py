"""MixturePrior: the source prior from the mixture that p-values of scores follow, and its uncertainty."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from priorshift.arrays import Floats
from priorshift.base import PUEstimator
from priorshift.errors import InputError, PriorShiftWarning, WeakSeparationWarning
from priorshift.inference.audit_combination import AuditedPrior, SampleAudit, combine_with_audit, warn_of_source_audit
from priorshift.inference.prior_knowledge import PiecewiseUniform
from priorshift.io.sample_size import FEW_POSITIVES, warn_of_few_positives
from priorshift.problem import Source, Target
from priorshift.progress import track_progress
from priorshift.scores.cross_fitting import FIT_ROWS, check_model
from priorshift.scores.posterior import (
    PopulationCounts,
    TargetEvidence,
    allow_hidden_negatives,
    posterior_counts,
    prior_posterior,
)
from priorshift.scores.scored_source import ScoredSource
from priorshift.source_prior.km import KM2
from priorshift.threads import one_blas_thread
from priorshift.warning_records import suppress_warnings, warn

_OVERLAP = 0.1  # above which a warning gives the range of possible priors
_OPEN = 0.9  # width above which an interval is uninformative
_KM2_LIMIT = 0.4  # largest prior for which KM2's estimate is rarely far below the prior
_KM2_ERROR = 0.07  # scale of KM2's error below the prior
_KM2_FAILS = 0.05  # probability that its estimate is near 0 whatever the prior is, as with few positives


class MixturePrior(PUEstimator):
    """Source prior from cross-fitted scores, with the uncertainty that the tables leave.

    Scores of the population are turned into p-values among the positives', whose density is π + (1−π)g. The density g
    of negatives has a prior distribution, and `prior_distribution_` is the posterior of π
    (:mod:`priorshift.scores.posterior`): narrow where the classes are separated, wide where they overlap, since rows
    that look like positives may then be negatives, however many rows there are. The estimate of KM2 from the same rows
    is rarely far below π for a π of up to 0.4, and can be far above it. So priors above KM2's estimate are made less
    likely, up to 0.4, by a Student density (4 degrees of freedom, scale 0.07), but never by more than a factor of 21:
    with few positives KM2's estimate is near 0 for any π. (Scale and factor were chosen on the data sets of the
    studies.)

    Parameters
    ----------
    model : classifier or None
        Model of the scores. Default None: kernel ridge regression on random features, tuned by cross-validation
        (:mod:`priorshift.scores.cross_fitting`). A scikit-learn classifier replaces it.
    repeats, folds : int
        Numbers of repetitions and of folds of the cross-fitting; the posteriors of the repetitions are averaged.
    use_km2 : bool
        Use the estimate of KM2. Default True.
    scenario : {"case-control", "censoring"}
        As in :class:`TCPU`.
    standardize : bool
        Scale every column by the mean and spread of the population sample.
    max_rows : int
        Largest number of rows for KM2.
    fit_rows : int
        Largest number of rows of P and of U that the score is fitted to, drawn at random; all rows are scored. More
        rows make the estimate hardly more precise (see the guide, "Any size").
    verbose : bool
        Show progress in a terminal.
    random_state : int, Generator or None
        Seed of folds, random features and subsamples.

    Attributes
    ----------
    prior_, standard_error_ : float
        Median and standard deviation of the posterior.
    prior_distribution_ : PiecewiseUniform
        The posterior of π, with ``cdf``, ``ppf``, ``mean`` and ``std``.
    interval_ : tuple of two float
        Its 2.5 and 97.5% points.
    audit_ : AuditedPrior or None
        The posterior combined with an audit, which `prior_distribution_` then is; None without an audit.
    mixture_prior_ : float
        The largest π that the p-values allow: all rows that look like positives are taken as such.
    km2_prior_ : float
        Estimate of KM2; NaN where it was not used, or cannot use the rows.
    overlap_ : float
        Probability that a negative looks more positive than a positive, 1 − AUC, from 0 to ½.
    few_positives_ : bool
        Whether there are fewer than 20 positives: then the prior is a guess, and a warning says so.
    is_uninformative_ : bool
        Whether the interval is wider than 0.9; then a warning says so.
    p_values_ : ndarray of shape (repeats, rows of the population)
        The p-values of the population.
    weights_ : ndarray of shape (repeats, components)
        Weights of the components of the largest mixture's g (:mod:`priorshift.scores.mixture`).
    scored_ : ScoredSource
        The scored source, which targets are compared with.

    References
    ----------
    The proportion of true nulls: Storey (2002). A direct approach to false discovery rates. Journal of the Royal
    Statistical Society B 64. What is identified: Blanchard, Lee and Scott (2010). Semi-supervised novelty detection.
    Journal of Machine Learning Research 11. The likelihood: Qin (1998). Inferences for case-control and semiparametric
    two-sample density ratio models. Biometrika 85.

    Examples
    --------
    >>> from priorshift import MixturePrior, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, random_state=0)
    >>> mixture = MixturePrior(random_state=0).fit(s.X, s.y, shared=s.ids)
    >>> low, high = mixture.interval_
    >>> print(f"{mixture.prior_:.2f}, {low:.2f} to {high:.2f}; overlap {mixture.overlap_:.2f}")
    0.20, 0.16 to 0.24; overlap 0.02
    """

    takes_audit = True
    takes_weights = True
    scored_: ScoredSource
    audit_: AuditedPrior | None
    _scored_before: ScoredSource | None = None  # scores that `fit_scores` passes to `_fit`

    def __init__(
        self,
        *,
        model: Any = None,
        repeats: int = 5,
        folds: int = 5,
        use_km2: bool = True,
        scenario: Literal["case-control", "censoring"] = "case-control",
        standardize: bool = True,
        max_rows: int = 4000,
        fit_rows: int = FIT_ROWS,
        verbose: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.model = model
        self.repeats = repeats
        self.folds = folds
        self.use_km2 = use_km2
        self.scenario = scenario
        self.standardize = standardize
        self.max_rows = max_rows
        self.fit_rows = fit_rows
        self.verbose = verbose
        self.random_state = random_state

    def fit_scores(self, source: Source, scored: ScoredSource) -> Self:
        """Fit the estimator to a source that was already scored."""
        self._scored_before = scored
        try:
            return self.fit_source(source)
        finally:
            self._scored_before = None

    def fit_counts(
        self, counts: PopulationCounts, law: tuple[Floats, Floats], km2_prior: float, sizes: tuple[int, int]
    ) -> Self:
        """Fit the estimator to counts of the population's p-values, without rows.

        `law` is π, shape (repeats,), and w, shape (repeats, components), of the mixture with the largest π that fits;
        `sizes` are the numbers of labelled and of unlabelled rows.
        """
        self._check_parameters()
        self._forget()
        self.km2_prior_ = km2_prior
        self._compute_posterior(counts, law)
        self.few_positives_ = counts.m < FEW_POSITIVES
        self._warn(*sizes)
        self._layout = None  # marks a finished fit; without rows, the columns are not known
        return self

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        """Score the source, estimate KM2's prior, and compute the posterior of π from the counts of p-values."""
        with one_blas_thread(), track_progress("MixturePrior", 3) as step:
            step()
            settings = self.model, self.repeats, self.folds, rng, self.fit_rows
            scored = self.scored_ = self._scored_before or ScoredSource.fit(source, *settings)
            step()
            self.km2_prior_ = self.fit_km2(source, rng) if self.use_km2 else float("nan")
            step()
            predicted = scored.predicted(scored.p_values)
            effect_P, effect_U = 1.0, 1.0  # design effects of groups, for the mean of the predicted posteriors
            if not source.is_iid:  # rows have weights, copies or groups
                positive_ranks = np.stack([scored.ranks(r.positive, r.positive) for r in scored.repetitions])
                effect_P, effect_U = source.design_effects(scored.predicted(positive_ranks), predicted)
            # rows count as many as their effective number, so that the posterior is as wide as it should be
            m, ranked, weights = source.P.size, round(source.P.size), source.U.size / effect_U * source.U.mass
            counts = PopulationCounts(posterior_counts(scored.p_values, ranked, weights), ranked, m / effect_P)
            audit = None if source.audit is None else SampleAudit.from_source(source, source.audit, predicted)
            self._compute_posterior(counts, scored.mixture, audit)
        self.few_positives_ = source.P.observations < FEW_POSITIVES
        warn_of_few_positives(len(source.positive), source.P.observations)
        self._warn(*source.sizes)

    def _compute_posterior(
        self, counts: PopulationCounts, law: tuple[Floats, Floats], audit: SampleAudit | None = None
    ) -> None:
        """Set the posterior of π, and all fitted attributes that follow from it.

        It combines the counts of the population's p-values, KM2's estimate (`km2_prior_`, NaN for none) and an audit.
        `law` is π, shape (repeats,), and w, shape (repeats, components), of the mixture with the largest π that fits.
        """
        model, self.overlap_ = prior_posterior(counts)
        self._law = law
        self._copies: dict[float, Self] = {}  # by label error
        priors, self.weights_ = law
        self.mixture_prior_ = float(priors.mean())
        if np.isfinite(self.km2_prior_):  # KM2 estimates the model's π too: it cannot see hidden negatives either
            model = model.times(_km2_log_likelihood(model.middles, self.km2_prior_))
        self._model_posterior = model
        posterior = allow_hidden_negatives(model, self.overlap_)
        self.audit_ = None
        if audit is not None:
            self.audit_ = combine_with_audit(posterior, audit, from_rows=True)
            posterior = self.audit_.distribution
            warn_of_source_audit(self.audit_, "the tables")
        self.prior_distribution_ = posterior
        self._target_evidence = TargetEvidence(counts, self._model_posterior)
        # the median, since the long tail of hidden negatives moves the mean
        self.prior_, self.standard_error_ = float(posterior.ppf(0.5)), posterior.std()
        low, high = posterior.ppf([0.025, 0.975])
        self.interval_ = float(low), float(high)
        self.is_uninformative_ = high - low > _OPEN

    def with_label_error(self, share: float) -> Self:
        """Return a copy of the fitted estimator as if this share of the labelled rows were negatives.

        It estimates κ = π/(1 − share), the largest share of the population that could be distributed as the labelled
        rows are.
        """
        check_is_fitted(self)
        counts = self._target_evidence.source
        if share == counts.label_error:
            return self
        if share not in self._copies:
            copied = copy(self)
            copied._compute_posterior(replace(counts, label_error=share), self._law)  # noqa: SLF001 (its own class)
            self._copies = {share: copied}
        return self._copies[share]

    def update_with_target(
        self, distribution: PiecewiseUniform, values: Floats, target: Target, ratio: float
    ) -> PiecewiseUniform:
        """Update a distribution of π with a target, as if R were known to be `ratio`.

        `values` are the p-values of the target's rows, shape (repeats, rows). The mean improves, but the spread is too
        small, since R has an error.
        """
        check_is_fitted(self)
        size = target.size / target.design_effect(self.scored_.predicted(values, ratio))
        counts = posterior_counts(values, self._target_evidence.source.ranked, size * target.mass)
        return self.update_with_counts(distribution, counts, ratio)

    def update_with_counts(self, distribution: PiecewiseUniform, counts: Floats, ratio: float) -> PiecewiseUniform:
        """Update a distribution of π with a target's `posterior_counts`, as if R were known to be `ratio`.

        The target informs about the model's π, and so about π as far as the two agree: the distribution is multiplied
        by the ratio of the posteriors of π with and without the target.
        """
        model = self._model_posterior
        with one_blas_thread():
            updated = model.times(self._target_evidence.log_likelihood(counts, ratio, model.middles))
        before, after = (allow_hidden_negatives(posterior, self.overlap_) for posterior in (model, updated))
        log_ratio = np.log(np.maximum(after.probabilities, 1e-300) / np.maximum(before.probabilities, 1e-300))
        return distribution.times(np.interp(distribution.middles, before.middles, log_ratio))

    @property
    def p_values_(self) -> Floats:  # numpydoc ignore=RT01
        """The p-values of the population's rows, in each repetition."""
        return self.scored_.p_values

    def fit_km2(self, source: Source, rng: np.random.Generator) -> float:
        """Return KM2's estimate of the prior; NaN where it cannot use the rows, such as one binary column."""
        seed = int(rng.integers(2**31))
        km2 = _PointKM2(scenario=self.scenario, standardize=False, max_rows=self.max_rows, random_state=seed)
        with suppress_warnings(PriorShiftWarning):  # its errors are part of the likelihood of its estimate
            try:
                return float(km2.fit_source(source).prior_)
            except InputError:
                return float("nan")

    def _warn(self, m: int, n: int) -> None:
        """Warn where the interval is uninformative or the classes overlap; m and n are labelled and unlabelled rows."""
        low, high = self.interval_
        if self.is_uninformative_:
            warn(
                f"{m} positive and {n} unlabelled rows hardly inform about the source prior ({low:.2f} to {high:.2f}): "
                "they are too few, or do not separate the classes. Pass source_prior, or add rows or features.",
                WeakSeparationWarning,
            )
        elif self.overlap_ > _OVERLAP and self.audit_ is None:
            warn(
                f"The classes overlap (one negative in {1 / self.overlap_:.0f} looks more positive than a positive), "
                f"so the source prior could be {low:.2f} to {high:.2f}. A known source_prior, a range, a survey or a "
                "few audited rows would narrow the interval.",
                WeakSeparationWarning,
            )

    def _check_parameters(self) -> None:
        """Raise InputError for a model that gives no scores."""
        super()._check_parameters()
        if self.model is not None:
            check_model(self.model)


class _PointKM2(KM2):
    """KM2 without a standard error, which is not used here and takes time and memory."""

    estimates_error = False


def _km2_log_likelihood(shares: Floats, km2: float) -> Floats:
    """Compute the log-likelihood, up to a constant, of KM2's estimate `km2` given each π in `shares`.

    KM2 estimates an upper bound of π, so its estimate may exceed π by any amount: the likelihood is constant for π
    below it. For π above the estimate it falls by Student's density of the difference, whose scale and degrees of
    freedom were chosen in the studies, but not beyond `_KM2_LIMIT`, above which KM2 is often too low, nor below
    `_KM2_FAILS` times its largest value.
    """
    excess = np.maximum(np.minimum(shares, _KM2_LIMIT) - km2, 0.0)
    student = stats.t(4)
    return np.asarray(np.log(student.pdf(excess / _KM2_ERROR) / student.pdf(0.0) + _KM2_FAILS))
