"""The source prior from the mixture of p-values, guarded by KM2 where classes overlap."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from priorshift import mixture
from priorshift.errors import (
    DuplicateRowsWarning,
    FewPositivesWarning,
    InputError,
    OverlapWarning,
    PriorShiftWarning,
    WeakSeparationWarning,
    warn,
)
from priorshift.estimator import PUEstimator, check_sizes
from priorshift.kernels import Matrix
from priorshift.km import KM2
from priorshift.parameters import check_choice, check_count, check_random_state
from priorshift.progress import Progress
from priorshift.samples import Samples, find_copies
from priorshift.scaling import Scaling
from priorshift.score import check_model, cross_fit
from priorshift.source_prior import ask_prior
from priorshift.threads import one_blas_thread

_SOFT = 0.05  # the overlap at which KM2 begins to count
_UPPER_BOUND = 0.1  # the overlap above which the prior is only an upper bound
_NOTHING = 0.97  # a mixture prior from which on P and U are alike
_FEW = 20
_FAR = 8.0  # standard deviations of the population


class MixturePrior(PUEstimator):
    """Source prior from cross-fitted scores: the share of the population that looks like positives.

    Scores of the population are turned into p-values among the positives' (:mod:`priorshift.mixture`), whose density is
    π + (1−π)g; the fitted π is `mixture_prior_`. Like every such estimator it aims at an upper bound, which is sharp
    where some rows are surely positive; where classes overlap by o (`overlap_`, the implied 1 − AUC), the smaller of it
    and KM2's prior is nearer. With ω = exp(−(o/0.05)²/2), `prior_` = ω·mixture + (1−ω)·min(mixture, KM2).

    Parameters
    ----------
    model : classifier or None
        What gives the scores: None is kernel ridge regression on random features, tuned by cross-validation
        (:mod:`priorshift.score`); a scikit-learn classifier takes its place.
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
        Of the negatives' density; ``mixture.density(weights_)`` is g in each bin.

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
        self.random_state = random_state

    def fit(self, X: Any, y: Any, shared: Any = None) -> MixturePrior:
        """Estimate the prior of the population sample; `shared` as in :class:`TCPU`."""
        self.__dict__.pop("prior_", None)
        self._check_parameters()
        table, source = self._read_samples(X, y, shared)
        rest = np.flatnonzero(~source.labeled)
        self._sizes = len(source.positive), len(rest)
        check_sizes(positive=self._sizes[0], unlabeled=self._sizes[1])
        rng = np.random.default_rng(self.random_state)
        self._seed = int(rng.integers(2**62))
        self._scaling = Scaling.of(table.values, source.population, self.standardize)
        self._scaling.warn_of_left_out(table)
        rows = self._scaling.rows(table.values)[:]
        self._spread = float(np.sqrt(rows[source.population].var(axis=0).mean())) or 1.0
        # within each sample: what P and U have in common is told by `shared`
        copies = np.concatenate([part[find_copies(table.values[part])] for part in (source.positive, rest)])
        source = replace(source, copies=copies)
        with one_blas_thread(), Progress("MixturePrior", 4) as step:
            step()
            self._repetitions = cross_fit(self._scaled(rows), source, self.model, self.repeats, self.folds, rng)
            step()
            km2 = self._ask_km2(rows, source, rng)
            step()
            self._fit_mixture()
            self._combine(km2)
            step()
            self._bootstrap(source, km2, rng)
        self.few_positives_ = self._sizes[0] < _FEW
        self.tells_nothing_ = self.mixture_prior_ > _NOTHING
        self._warn(len(copies))
        return self

    def _fit_mixture(self) -> None:
        self.p_values_ = np.stack([mixture.p_values(r.positive, r.population) for r in self._repetitions])
        self._counts = np.stack([mixture.histogram(v) for v in self.p_values_])
        self._each_prior, self.weights_ = mixture.fit_one(self._counts)
        self.mixture_prior_ = float(self._each_prior.mean())

    def _combine(self, km2: _Guard) -> None:
        self.km2_prior_ = km2.prior
        self.overlap_ = float(mixture.overlap(self.p_values_.mean(axis=1), self._each_prior).mean())
        self.upper_bound_ = self.overlap_ > _UPPER_BOUND
        self.prior_ = float(_guarded(self.mixture_prior_, km2.prior, self.overlap_))

    def _bootstrap(self, source: Samples, km2: _Guard, rng: np.random.Generator) -> None:
        """Replicates of the prior, and what a target's replicates need: weights of the positives, histograms of U."""
        B = self.n_bootstrap
        known = source.observations
        self._weights = np.empty((B, len(source.positive)), dtype=np.uint8)
        ranks = [Ranks(repetition.positive, repetition.population) for repetition in self._repetitions]
        counts = np.empty((B, len(ranks), mixture.BINS))
        means, moved = np.empty(counts.shape[:2]), np.empty(B)
        for b in range(B):
            drawn = rng.poisson(1.0, int(known.max()) + 1)
            w, w_p = (_some(drawn[known[rows]]) for rows in (source.population, source.positive))
            self._weights[b] = w_p
            moved[b] = km2.prior + (w_p - 1) @ km2.of_positive + (w - 1) @ km2.of_population
            for r, ranked in enumerate(ranks):
                v = ranked.p_values(w_p)
                counts[b, r], means[b, r] = mixture.histogram(v, w), (w @ v) / w.sum()
        self._population_counts = counts
        start = mixture.warm(self._each_prior, B), np.broadcast_to(self.weights_, (B, *self.weights_.shape))
        priors, _ = mixture.fit_one(counts, mixture.WARM, start)
        overlap = mixture.overlap(means, priors).mean(axis=1)
        self._priors = _guarded(priors.mean(axis=1), moved, overlap)
        self.standard_error_ = float(self._priors.std(ddof=1))

    def _ask_km2(self, rows: Matrix, source: Samples, rng: np.random.Generator) -> _Guard:
        none = _Guard(float("nan"), np.zeros(len(source.positive)), np.zeros(len(source.population)))
        if not self.guard:
            return none
        km2 = KM2(scenario=self.scenario, max_rows=self.max_rows, random_state=int(rng.integers(2**31)))
        try:
            with warnings.catch_warnings():  # its own doubts are not the user's: the smaller of two estimates is taken
                warnings.simplefilter("ignore", PriorShiftWarning)
                asked = ask_prior(km2, self.scenario, None, rows, source)
        except InputError:  # rows that KM2 cannot use, such as one binary column
            return none
        if asked.influence is None:
            return replace(none, prior=asked.value)
        return _Guard(asked.value, asked.influence.positive, asked.influence.unlabeled)

    def _scaled(self, rows: Matrix) -> Matrix:
        """Without columns that were left out, and of unit spread on average, which the kernel's scales assume.

        Values far outside are cut off: label shift holds for every function of the rows, and random features of a
        point that lies far from all others are noise.
        """
        return np.asarray(np.clip(rows[:, self._scaling.factor != 0] / self._spread, -_FAR, _FAR))

    def _warn(self, copies: int) -> None:
        m, n = self._sizes
        if copies:
            warn(
                f"{copies} of {m + n} source rows are copies of others, in columns that do not repeat by chance; "
                "they are taken as one observation. Leave them out, unless they mean something.",
                DuplicateRowsWarning,
            )
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
                "of negatives is none. Pass a known source_prior, or add features that tell the classes apart.",
                OverlapWarning,
            )

    def _check_parameters(self) -> None:
        check_choice("scenario", self.scenario, ("case-control", "censoring"))
        check_count("repeats", self.repeats, 1)
        check_count("folds", self.folds, 2)
        check_count("n_bootstrap", self.n_bootstrap, 20)
        check_count("max_rows", self.max_rows, 10)
        check_random_state(self.random_state)
        if self.model is not None:
            check_model(self.model)


@dataclass(frozen=True)
class _Guard:
    """KM2's prior and the influence of each row of P and U on it."""

    prior: float
    of_positive: Matrix
    of_population: Matrix


class Ranks:
    """Where scores stand among the positives', for p-values under any weights of the positives."""

    def __init__(self, positive: Matrix, scores: Matrix) -> None:
        self.order = np.argsort(positive, kind="stable")
        ranked = positive[self.order]
        self.low, self.high = (np.searchsorted(ranked, scores, side) for side in ("left", "right"))

    def p_values(self, weights: NDArray[np.intp]) -> Matrix:
        below = np.concatenate([[0], np.cumsum(weights[self.order])])
        return np.asarray(((below[self.low] + below[self.high]) / 2 + 0.5) / (below[-1] + 1))


def _some(weights: NDArray[np.intp]) -> NDArray[np.intp]:
    """Weights of a replicate; all rows once where none was drawn."""
    return weights if weights.any() else np.ones_like(weights)


def _guarded(mixed: Any, km2: Any, overlap: Any) -> NDArray[np.float64]:
    """ω·mixture + (1−ω)·min(mixture, KM2); without KM2 the mixture alone."""
    km2 = np.clip(km2, 0.0, 1.0)
    smaller = np.where(np.isnan(km2), mixed, np.minimum(mixed, km2))
    share = soft(overlap)
    return np.asarray(share * mixed + (1 - share) * smaller)


def soft(overlap: Any) -> NDArray[np.float64]:
    """ω: one where classes are apart, falling to zero as they overlap."""
    return np.asarray(np.exp(-((np.asarray(overlap) / _SOFT) ** 2) / 2))
