"""The library's own estimator of the target prior: source prior and ratio by the mixture of p-values."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from priorshift import mixture
from priorshift.errors import InputError, OverlapWarning, PriorShiftWarning
from priorshift.estimator import PUEstimator, check_sizes
from priorshift.kernels import Matrix
from priorshift.mixture_prior import MixturePrior, Ranks, soft
from priorshift.parameters import check_confidence, check_prior
from priorshift.result import Interval, PriorEstimate
from priorshift.samples import find_copies, linked
from priorshift.source_prior import is_known
from priorshift.tcpu import TCPU
from priorshift.threads import one_blas_thread

_SCORE_NOISE = 1.15  # the bootstrap keeps the fitted scores; their own noise adds so much to a standard error
_FEW_POSITIVES = 4.0  # and with m positives this over m: their own scores are then noise
_LEAST_WEIGHT = 0.01  # of the kernel ratio, below which it is not computed
_MOST_PRIOR = 0.99


class MixtureShift(PUEstimator):
    """Target prior by a mixture of p-values; the library's default where the source prior is not known.

    π comes from :class:`MixturePrior` (or is given), the ratio R = (1−π′)/(1−π) from the joint mixture of population
    and target, whose negatives have one density. Where classes overlap, up to half of the weight moves to TCPU's
    plug-in ratio: R = R_mixture + (1−ω)/2·(R_kernel − R_mixture), with ω of :class:`MixturePrior`; π′ = 1 − (1−π)R.

    Parameters
    ----------
    source_prior : float or None
        π, where it is known.
    model, repeats, folds, guard, scenario, standardize, n_bootstrap, max_rows, random_state
        As in :class:`MixturePrior`; `max_rows` limits the rows of the kernel ratio too.
    confidence : float
        Of the interval: a bootstrap of observations that keeps the scores, widened by 15% for their own noise and by
        4/m with m positives, and never narrower than if the classes of all target rows were known. Where the source
        prior is only an upper bound, it reaches down to what a source prior of 0 would give.

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
        self.random_state = random_state

    def fit(self, X: Any, y: Any, shared: Any = None) -> MixtureShift:
        """Fit the scores and the source prior, once for all targets; `shared` as in :class:`TCPU`."""
        self.__dict__.pop("prior_estimator_", None)
        check_confidence(self.confidence)
        known = self.source_prior is not None
        if known:
            check_prior(self.source_prior)  # an estimator belongs to TCPU, whose ratio needs none
        table, labeled = self._read_source(X, y)
        names = ("model", "repeats", "folds", "scenario", "standardize", "n_bootstrap", "max_rows", "random_state")
        found = MixturePrior(**{name: getattr(self, name) for name in names}, guard=self.guard and not known)
        with warnings.catch_warnings():
            if known:  # what is said of an estimated prior is of no concern
                warnings.simplefilter("ignore", OverlapWarning)
            found.fit(table, labeled.astype(int), **({} if shared is None else {"shared": shared}))
        self._rows, self._labeled = table.values, labeled
        self._kernel: TCPU | None = None
        self.source_prior_ = check_prior(self.source_prior) if known else found.prior_
        self._estimated = not known
        self.prior_estimator_ = found
        return self

    def estimate(self, X_target: Any) -> PriorEstimate:
        """Estimate the prior of the population that `X_target` is a sample of."""
        check_is_fitted(self, "prior_estimator_")
        check_confidence(self.confidence)
        table = self._read_target(X_target)
        check_sizes(target=len(table.values))
        found = self.prior_estimator_
        found._scaling.warn_of_left_out(table)
        rng = np.random.default_rng(found._seed)
        with one_blas_thread():
            rows = found._scaled(found._scaling.rows(table.values)[:])
            scores = [repetition.target(rows, rng) for repetition in found._repetitions]
            R, replicates = self._ratio(scores, linked(len(rows), find_copies(table.values)), rng)
        weight = float(1 - soft(found.overlap_)) / 2
        kernel, kernel_error = self._kernel_ratio(table.values, rng) if weight > _LEAST_WEIGHT else (np.nan, np.nan)
        spread = float(replicates.std(ddof=1))
        ratio, widen = R, 1.0
        if np.isfinite(kernel) and np.isfinite(kernel_error) and spread > 0:
            ratio = R + weight * (kernel - R)
            # the two ratios' errors are taken as going together, which their sum cannot exceed
            widen = (1 - weight) + weight * kernel_error / spread
        else:
            weight = 0.0
        ratios = ratio + (replicates - R) * widen
        known = is_known(self.source_prior)
        if not (known or self._estimated):
            raise InputError("source_prior was a number when MixtureShift was fitted and is none now; fit again.")
        pi = check_prior(self.source_prior) if known else found.prior_
        priors = np.full(len(ratios), pi) if known else found._priors
        noise = _SCORE_NOISE * (1 + _FEW_POSITIVES / found._sizes[0])
        error = noise * float((1 - (1 - priors) * ratios).std(ddof=1))
        raw = 1 - (1 - pi) * ratio
        value = float(np.clip(raw, 0, 1))
        return PriorEstimate(
            value=value,
            raw=float(raw),
            interval=self._interval(value, error, ratio, noise * float(ratios.std(ddof=1)), len(table.values)),
            standard_error=error,
            source_prior=pi,
            negative_ratio=float(ratio),
            separation=float("nan"),
            method="Mixture",
            sizes=(*found._sizes, len(table.values)),
            details={
                "scenario": self.scenario,
                "standardize": self.standardize,
                "source_prior_by": "given" if known else "MixturePrior",
                "source_prior_standard_error": None if known else found.standard_error_,
                "mixture_prior": found.mixture_prior_,
                "km2_prior": found.km2_prior_,
                "overlap": found.overlap_,
                "ratio_of_mixture": R,
                "ratio_of_kernel": float(kernel),
                "kernel_weight": weight,
                "verdict": self._verdict(),
            },
        )

    def p_values(self, X_target: Any) -> Matrix:
        """Of the target's rows, (repeats, rows): what `plots.mixture` draws."""
        check_is_fitted(self, "prior_estimator_")
        found = self.prior_estimator_
        rng = np.random.default_rng(found._seed)
        rows = found._scaled(found._scaling.rows(self._read_target(X_target).values)[:])
        return np.stack([mixture.p_values(r.positive, r.target(rows, rng)) for r in found._repetitions])

    def _ratio(
        self, scores: list[Matrix], observation: NDArray[np.intp], rng: np.random.Generator
    ) -> tuple[float, Matrix]:
        """R of the mixture, the mean over repetitions, and its bootstrap replicates."""
        found = self.prior_estimator_
        counts = np.stack(
            [
                mixture.histogram(mixture.p_values(r.positive, s))
                for r, s in zip(found._repetitions, scores, strict=True)
            ]
        )
        pi, new, w = mixture.fit_two(found._counts, counts)
        B = len(found._weights)
        ranks = [Ranks(r.positive, s) for r, s in zip(found._repetitions, scores, strict=True)]
        resampled = np.empty((B, *counts.shape))
        for b in range(B):
            drawn = rng.poisson(1.0, int(observation.max()) + 1)
            weights = (drawn if drawn.any() else np.ones_like(drawn))[observation]
            for r, ranked in enumerate(ranks):
                resampled[b, r] = mixture.histogram(ranked.p_values(found._weights[b]), weights)
        start = mixture.warm(pi, B), mixture.warm(new, B), np.broadcast_to(w, (B, *w.shape))
        again = mixture.fit_two(found._population_counts, resampled, mixture.WARM, start)
        return float(_negatives(pi, new).mean()), _negatives(again[0], again[1]).mean(axis=1)

    def _kernel_ratio(self, target: Any, rng: np.random.Generator) -> tuple[float, float]:
        """TCPU's plug-in ratio and its standard error, on at most `max_rows` rows of each sample."""
        found = self.prior_estimator_

        def some(rows: Any) -> Any:
            return rows if len(rows) <= self.max_rows else rows[np.sort(rng.permutation(len(rows))[: self.max_rows])]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PriorShiftWarning)
            if self._kernel is None:
                fixed = np.random.default_rng(found._seed)
                share = min(1.0, self.max_rows / len(self._labeled))  # of both: together they may be the population
                P, U = (
                    np.sort(fixed.permutation(part)[: max(2, round(share * len(part)))])
                    for part in (np.flatnonzero(self._labeled), np.flatnonzero(~self._labeled))
                )
                made = TCPU(
                    0.5, statistic="plug-in", scenario=self.scenario, standardize=self.standardize, interval=None
                )
                kept = np.concatenate([P, U])
                self._kernel = made.fit(self._rows[kept], self._labeled[kept])
            answer = self._kernel.estimate(some(target))
        return answer.negative_ratio, answer.standard_error / 0.5

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
        return self.prior_estimator_.upper_bound_ and not is_known(self.source_prior)

    def _verdict(self) -> str:
        """What the data can tell: the prior, an upper bound of it, a guess or nothing."""
        found = self.prior_estimator_
        if found.tells_nothing_:
            return "nothing"
        if found.few_positives_:
            return "few positives"
        return "upper bound" if self._may_be_less() else "estimate"


def _negatives(pi: Matrix, new: Matrix) -> Matrix:
    """(1−π′)/(1−π), with priors of one kept from it."""
    return np.asarray((1 - new) / (1 - np.minimum(pi, _MOST_PRIOR)))
