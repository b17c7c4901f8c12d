"""The library's own estimator of the target prior: source prior and ratio by the mixture of p-values."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from priorshift.arrays import Floats
from priorshift.base import TargetPriorEstimator
from priorshift.errors import InputError, OverlapWarning, PriorShiftWarning
from priorshift.input.parameters import check_prior
from priorshift.input.source import Source, Target
from priorshift.kernel_ratio import KernelRatio
from priorshift.mixture_prior import MixturePrior, mixture_share
from priorshift.result import Interval, NegativeRatio, PriorEstimate, RatioParts
from priorshift.threads import one_blas_thread

_SCORE_NOISE = 1.15  # the bootstrap keeps the fitted scores; their own noise adds so much to a standard error
_FEW_POSITIVES = 4.0  # and with m positives this over m: their own scores are then noise
_LEAST_WEIGHT = 0.01  # of the kernel ratio, below which it is not computed


class MixtureShift(TargetPriorEstimator):
    """Target prior by a mixture of p-values; the library's default where the source prior is not known.

    π comes from :class:`MixturePrior` (or is given), the ratio R = (1−π′)/(1−π) from the joint mixture of population
    and target, whose negatives have one density. Where classes overlap, up to half of the weight moves to TCPU's
    plug-in ratio: R = R_mixture + (1−ω)/2·(R_kernel − R_mixture), with ω of :class:`MixturePrior`; π′ = 1 − (1−π)R.
    Parameters that are not described here are those of :class:`MixturePrior`.

    Parameters
    ----------
    source_prior : float or None
        π, where it is known.
    model : classifier or None
    repeats, folds : int
    guard : bool
    scenario : {"case-control", "censoring"}
    standardize : bool
    confidence : float
        Of the interval: a bootstrap of observations that keeps the scores, widened by 15% for their own noise and by
        4/m with m positives, and never narrower than if the classes of all target rows were known. Where the source
        prior is only an upper bound, it reaches down to what a source prior of 0 would give.
    n_bootstrap : int
    max_rows : int
        Limits the rows of the kernel ratio too.
    verbose : bool
    random_state : int, Generator or None

    Attributes
    ----------
    prior_estimator_ : MixturePrior
    source_prior_ : float
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from priorshift import MixtureShift, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, random_state=0)
    >>> estimate = MixtureShift(random_state=0).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    >>> print(f"{estimate.value:.2f}, {estimate.interval.low:.1f} to {estimate.interval.high:.1f}")
    0.61, 0.6 to 0.6
    """

    label = "Mixture"
    settings_of_estimate: ClassVar[frozenset[str]] = frozenset({"source_prior", "confidence", "verbose"})
    _kernel: KernelRatio | None  # fitted when it is first needed

    def __init__(
        self,
        source_prior: float | None = None,
        *,
        model: Any = None,
        repeats: int = 5,
        folds: int = 5,
        guard: bool = True,
        scenario: Literal["case-control", "censoring"] = "case-control",
        standardize: bool = True,
        confidence: float = 0.95,
        n_bootstrap: int = 60,
        max_rows: int = 4000,
        verbose: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.source_prior = source_prior
        self.model = model
        self.repeats = repeats
        self.folds = folds
        self.guard = guard
        self.scenario = scenario
        self.standardize = standardize
        self.confidence = confidence
        self.n_bootstrap = n_bootstrap
        self.max_rows = max_rows
        self.verbose = verbose
        self.random_state = random_state

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
        target = self._read_target(X_target)
        scored = self.prior_estimator_.scored_
        return scored.target_p_values(scored.score(target.rows, np.random.default_rng(scored.seed)))

    @property
    def source_prior_(self) -> float:  # numpydoc ignore=RT01
        """π as it is set now, or as it was estimated."""
        check_is_fitted(self)
        return self.prior_estimator_.prior_ if self.source_prior is None else self.source_prior

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        known = self.source_prior is not None
        names = ("model", "repeats", "folds", "scenario", "standardize", "n_bootstrap", "max_rows", "random_state")
        prior = MixturePrior(**{name: getattr(self, name) for name in names}, guard=self.guard and not known)
        with warnings.catch_warnings():
            if known:  # what is said of an estimated prior is of no concern
                warnings.simplefilter("ignore", OverlapWarning)
            self.prior_estimator_ = prior.fit_source(source)
        self._source, self._kernel, self._prior_was_known = source, None, known

    def _estimate(self, target: Target) -> PriorEstimate:
        known = self.source_prior is not None
        if self._prior_was_known and not known:
            raise InputError("source_prior was a number when MixtureShift was fitted and is none now; fit again.")
        prior = self.prior_estimator_
        scored, rng = prior.scored_, np.random.default_rng(prior.scored_.seed)
        with one_blas_thread():
            scores = scored.score(target.rows, rng)
            R, replicates, counts = scored.ratio(scores, target.observation, prior.replicates_, rng)
        weight = float(1 - mixture_share(prior.overlap_)) / 2
        kernel = self._kernel_ratio(target.table.values, rng) if weight > _LEAST_WEIGHT else None
        spread = float(replicates.std(ddof=1))
        ratio, widen = R, 1.0
        if kernel and np.isfinite([kernel.value, kernel.standard_error]).all() and spread > 0:
            ratio = R + weight * (kernel.value - R)
            # the two ratios' errors are taken as going together, which their sum cannot exceed
            widen = (1 - weight) + weight * kernel.standard_error / spread
        else:
            weight = 0.0
        ratios = ratio + (replicates - R) * widen
        pi = check_prior(self.source_prior) if known else prior.prior_
        priors = np.full(len(ratios), pi) if known else prior.prior_replicates_
        noise = _SCORE_NOISE * (1 + _FEW_POSITIVES / scored.sizes[0])
        error = noise * float((1 - (1 - priors) * ratios).std(ddof=1))
        raw = 1 - (1 - pi) * ratio
        value = float(np.clip(raw, 0, 1))
        return PriorEstimate(
            value=value,
            raw=float(raw),
            interval=self._interval(value, error, ratio, noise * float(ratios.std(ddof=1)), len(target)),
            standard_error=error,
            source_prior=pi,
            negative_ratio=float(ratio),
            separation=float("nan"),
            method=self.label,
            sizes=(*scored.sizes, len(target)),
            source_prior_by="given" if known else type(prior).__name__,
            verdict=self._verdict(),
            ratio_parts=RatioParts(R, kernel.value if kernel else float("nan"), weight),
            details={
                "scenario": self.scenario,
                "standardize": self.standardize,
                "source_prior_standard_error": None if known else prior.standard_error_,
                "mixture_prior": prior.mixture_prior_,
                "km2_prior": prior.km2_prior_,
                "overlap": prior.overlap_,
            },
            evidence=counts,
        )

    def _kernel_ratio(self, target: Any, rng: np.random.Generator) -> NegativeRatio:
        """TCPU's plug-in ratio, on at most `max_rows` rows of each sample."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PriorShiftWarning)
            if self._kernel is None:
                labeled = self._source.labeled
                fixed = np.random.default_rng(self.prior_estimator_.scored_.seed)
                share = min(1.0, self.max_rows / len(labeled))  # of both: together they may be the population
                samples = np.flatnonzero(labeled), np.flatnonzero(~labeled)
                some = [np.sort(fixed.permutation(part)[: max(2, round(share * len(part)))]) for part in samples]
                rows = np.concatenate(some)
                kernel = KernelRatio(statistic="plug-in", scenario=self.scenario, standardize=self.standardize)
                self._kernel = kernel.fit(self._source.table.values[rows], labeled[rows])
            if len(target) > self.max_rows:
                target = target[np.sort(rng.permutation(len(target))[: self.max_rows])]
            return self._kernel.negative_ratio(target)

    def _interval(self, value: float, error: float, ratio: float, ratio_error: float, n: int) -> Interval:
        """Normal, but never narrower than if the classes of all n target rows were known (Clopper and Pearson)."""
        tail = (1 - self.confidence) / 2
        z = float(stats.norm.ppf(1 - tail))
        k = value * n
        low = min(value - z * error, float(stats.beta.ppf(tail, k, n - k + 1)) if k > 0 else 0.0)
        high = max(value + z * error, float(stats.beta.ppf(1 - tail, k + 1, n - k)) if k < n else 1.0)
        if self._may_be_less():  # any source prior from 0 on is possible
            low = min(low, 1 - (ratio + z * ratio_error))
        if self._verdict() == "nothing":
            low, high = 0.0, 1.0
        return Interval(float(max(low, 0.0)), float(min(high, 1.0)), self.confidence, "bootstrap")

    def _may_be_less(self) -> bool:
        return self.prior_estimator_.upper_bound_ and self.source_prior is None

    def _verdict(self) -> str:
        """What the data can tell: the prior, an upper bound of it, a guess or nothing."""
        found = self.prior_estimator_
        if found.tells_nothing_:
            return "nothing"
        if found.few_positives_:
            return "few positives"
        return "upper bound" if self._may_be_less() else "estimate"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.source_prior is not None:
            check_prior(self.source_prior)  # an estimator belongs to TCPU, whose ratio needs none
