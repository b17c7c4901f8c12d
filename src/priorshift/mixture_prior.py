"""The source prior from the mixture of p-values, guarded by KM2 where classes overlap."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from priorshift.arrays import Floats
from priorshift.base import PUEstimator
from priorshift.errors import (
    FewPositivesWarning,
    InputError,
    OverlapWarning,
    PriorShiftWarning,
    WeakSeparationWarning,
    warn,
)
from priorshift.input.source import Source
from priorshift.km import KM2
from priorshift.progress import Progress
from priorshift.scores import mixture
from priorshift.scores.cross_fitting import check_model
from priorshift.scores.scored import ScoredSource
from priorshift.source_prior import EstimatedPrior, estimate_source_prior
from priorshift.threads import one_blas_thread

_GUARDED_OVERLAP = 0.05  # the overlap at which KM2 begins to count
_BOUND_OVERLAP = 0.1  # the overlap above which the prior is only an upper bound
_ALIKE_PRIOR = 0.97  # a mixture prior from which on P and U are alike
_FEW = 20  # positives


class MixturePrior(PUEstimator):
    """Source prior from cross-fitted scores: the share of the population that looks like positives.

    Scores of the population are turned into p-values among the positives', whose density is π + (1−π)g
    (:mod:`priorshift.scores.mixture`); the fitted π is `mixture_prior_`. Like every such estimator it aims at an upper
    bound, which is sharp where some rows are surely positive; where classes overlap by o (`overlap_`, the implied
    1 − AUC), the smaller of it and KM2's prior is nearer. With ω = exp(−(o/0.05)²/2),
    `prior_` = ω·mixture + (1−ω)·min(mixture, KM2).

    Parameters
    ----------
    model : classifier or None
        What gives the scores: None is kernel ridge regression on random features, tuned by cross-validation
        (:mod:`priorshift.scores.cross_fitting`); a scikit-learn classifier takes its place.
    repeats, folds : int
        Of the cross-fitting; the answers of the repetitions are averaged.
    guard : bool
        Whether KM2 is asked.
    scenario : {"case-control", "censoring"}
        As in :class:`TCPU`.
    standardize : bool
        Scale every column by the mean and spread of the population sample.
    n_bootstrap : int
        Replicates behind the standard error: observations are resampled, the scores are kept.
    max_rows : int
        KM2 is asked of at most so many rows.
    verbose : bool
        Whether a terminal shows how far long work is.
    random_state : int, Generator or None
        Decides folds, random features, subsamples and replicates.

    Attributes
    ----------
    prior_, standard_error_ : float
    mixture_prior_ : float
        π of the mixture, without the guard.
    km2_prior_ : float
        NaN without the guard, or where KM2 cannot use the rows.
    overlap_ : float
        o.
    upper_bound_ : bool
        o > 0.1: the prior is only an upper bound, and a warning says so.
    few_positives_ : bool
        Fewer than 20: the prior is a guess, and a warning says so.
    tells_nothing_ : bool
        `mixture_prior_` > 0.97, the population looks like the positives: every prior is possible; a warning says so.
    p_values_ : ndarray of shape (repeats, rows of the population)
    weights_ : ndarray of shape (repeats, components)
        Of the components of the negatives' density g.
    prior_replicates_ : ndarray of shape (n_bootstrap,)
        Bootstrap replicates of `prior_`.
    scored_, replicates_ : ScoredSource, Replicates
        What a target is compared with.

    References
    ----------
    The share of true nulls: Storey (2002). A direct approach to false discovery rates. Journal of the Royal
    Statistical Society B 64. What is identified: Blanchard, Lee and Scott (2010). Semi-supervised novelty detection.
    Journal of Machine Learning Research 11.

    Examples
    --------
    >>> from priorshift import MixturePrior, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, random_state=0)
    >>> found = MixturePrior(random_state=0).fit(s.X, s.y, shared=s.ids)
    >>> print(f"{found.prior_:.2f} ± {found.standard_error_:.2f}, overlap {found.overlap_:.2f}")
    0.20 ± 0.01, overlap 0.02
    """

    def __init__(
        self,
        *,
        model: Any = None,
        repeats: int = 5,
        folds: int = 5,
        guard: bool = True,
        scenario: Literal["case-control", "censoring"] = "case-control",
        standardize: bool = True,
        n_bootstrap: int = 60,
        max_rows: int = 4000,
        verbose: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.model = model
        self.repeats = repeats
        self.folds = folds
        self.guard = guard
        self.scenario = scenario
        self.standardize = standardize
        self.n_bootstrap = n_bootstrap
        self.max_rows = max_rows
        self.verbose = verbose
        self.random_state = random_state

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        with one_blas_thread(), Progress("MixturePrior", 4) as step:
            step()
            self.scored_ = ScoredSource.of(source, self.model, self.repeats, self.folds, rng)
            step()
            km2 = self._ask_km2(source, rng)
            self.km2_prior_ = km2.value if km2 else float("nan")
            step()
            priors, self.weights_ = mixture.fit_one(self.scored_.counts)
            self.mixture_prior_ = float(priors.mean())
            self.overlap_ = float(mixture.overlap(self.p_values_.mean(axis=1), priors).mean())
            self.prior_ = float(_guarded(self.mixture_prior_, self.km2_prior_, self.overlap_))
            step()
            self._bootstrap(source, km2, priors, rng)
        self.upper_bound_ = self.overlap_ > _BOUND_OVERLAP
        self.few_positives_ = len(source.positive) < _FEW
        self.tells_nothing_ = self.mixture_prior_ > _ALIKE_PRIOR
        source.warn_of_copies()
        self._warn(*source.sizes)

    @property
    def p_values_(self) -> Floats:  # numpydoc ignore=RT01
        """Of the population's rows, in each repetition."""
        return self.scored_.p_values

    def _bootstrap(self, source: Source, km2: EstimatedPrior | None, priors: Floats, rng: np.random.Generator) -> None:
        """Replicates of the prior, and of what a target is compared with."""
        B = self.n_bootstrap
        self.replicates_ = self.scored_.resample(source, B, rng, km2.influence if km2 else None)
        start = mixture.warm(priors, B), np.broadcast_to(self.weights_, (B, *self.weights_.shape))
        again, _ = mixture.fit_one(self.replicates_.counts, mixture.WARM, start)
        overlap = mixture.overlap(self.replicates_.means, again).mean(axis=1)
        self.prior_replicates_ = _guarded(again.mean(axis=1), self.km2_prior_ + self.replicates_.moved, overlap)
        self.standard_error_ = float(self.prior_replicates_.std(ddof=1))

    def _ask_km2(self, source: Source, rng: np.random.Generator) -> EstimatedPrior | None:
        """None without the guard, or where KM2 cannot use the rows, such as one binary column."""
        if not self.guard:
            return None
        seed = int(rng.integers(2**31))
        km2 = KM2(scenario=self.scenario, standardize=False, max_rows=self.max_rows, random_state=seed)
        with warnings.catch_warnings():  # its own doubts are not the user's: the smaller of two estimates is taken
            warnings.simplefilter("ignore", PriorShiftWarning)
            try:
                return estimate_source_prior(km2, source)
            except InputError:
                return None

    def _warn(self, m: int, n: int) -> None:
        if self.few_positives_:
            warn(
                f"The prior rests on {m} positive rows; take it as a guess, for all that the interval is wider. "
                f"Label at least {_FEW}.",
                FewPositivesWarning,
            )
        if self.tells_nothing_:
            warn(
                f"The {n} unlabelled rows look like the {m} positives (mixture prior {self.mixture_prior_:.2f}): "
                "nothing tells the classes apart, and every prior is possible. Add rows or features.",
                WeakSeparationWarning,
            )
        elif self.upper_bound_:
            warn(
                f"The classes overlap (o = {self.overlap_:.2f}, the implied 1 − AUC), so the source prior "
                f"{self.prior_:.3f} is only an upper bound, and so is a target prior that rests on it; the ratio "
                "of negatives is not affected. Pass a known source_prior, or add features that tell the classes apart.",
                OverlapWarning,
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.model is not None:
            check_model(self.model)


def _guarded(mixed: Any, km2: Any, overlap: Any) -> Floats:
    """ω·mixture + (1−ω)·min(mixture, KM2); without KM2 the mixture alone."""
    km2 = np.clip(km2, 0.0, 1.0)
    smaller = np.where(np.isnan(km2), mixed, np.minimum(mixed, km2))
    share = mixture_share(overlap)
    return np.asarray(share * mixed + (1 - share) * smaller)


def mixture_share(overlap: Any) -> Floats:
    """Compute ω, the share of the mixture: one where classes are apart, falling to zero as they overlap.

    Parameters
    ----------
    overlap : float or ndarray
        o, the implied 1 − AUC.

    Returns
    -------
    ndarray
        exp(−(o/0.05)²/2).
    """
    return np.asarray(np.exp(-((np.asarray(overlap) / _GUARDED_OVERLAP) ** 2) / 2))
