"""TCPU: the target prior by projection of mean embeddings (Mielniczuk, Rejchel and Teisseyre 2026).

Letters, once: P, U, T are the positive, the unlabelled (population) and the target sample, of m, n and n′ rows;
π is the source prior, π′ the target prior; a = μ_U − μ_P, b = μ_T − μ_P.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from priorshift import intervals
from priorshift.embeddings import Embeddings, P, PriorInfluence, Source, U
from priorshift.errors import InputError, OutOfRangeWarning, WeakSeparationWarning, warn
from priorshift.estimator import PUEstimator, check_sizes
from priorshift.kernels import make_kernel
from priorshift.pairs import embed_pairs
from priorshift.parameters import (
    check_choice,
    check_confidence,
    check_count,
    check_number,
    check_prior,
    check_random_state,
)
from priorshift.projection import objective, project, separation
from priorshift.result import Interval, PriorEstimate
from priorshift.scaling import Scaling
from priorshift.source_prior import AskedPrior, ask_prior, is_known
from priorshift.tiles import Rows

_REPLICATE_BYTES = 2**25  # of bootstrap counts held at a time
_NO_SEPARATION = 1e-12  # of the kernel's scale: what rounding leaves of a separation that is zero


class TCPU(PUEstimator):
    """Target prior from positive-unlabelled source data under label shift.

    Parameters
    ----------
    source_prior : float, estimator or None
        π, the share of positives in the source population: a number strictly between 0 and 1 is taken as known; an
        estimator is asked (anything with ``fit(X, y)`` and then ``prior_``); None asks :class:`KM2`.
    kernel : {"gaussian", "laplace", "energy"}
        See :mod:`priorshift.kernels`.
    bandwidth : float or {"dimension", "median"}
        h in exp(−‖x−y‖²/(2h²)). ``"dimension"`` is the paper's τ = 1/p, ``"median"`` the median distance
        between rows of the population sample.
    statistic : {"unbiased", "plug-in"}
        Whether pairs of one observation with itself are left out. The paper keeps them (``"plug-in"``), which
        with few positives shrinks the estimate towards no shift.
    scenario : {"case-control", "censoring"}
        Whether the unlabelled rows are a sample of the whole population, or its rest after some positives were
        labelled; then labelled and unlabelled rows together are the population sample.
    standardize : bool
        Scale every column by the mean and standard deviation of the population sample. Columns without spread
        there are left out.
    interval : {"delta", "bootstrap", "paper-bound", "sharp-bound"} or None
        See :mod:`priorshift.intervals`.
    confidence : float
        Of the interval.
    pairs : int or None
        Use this many random pairs in each block of the kernel matrix instead of all (an incomplete
        U-statistic).
    precision : {"float64", "float32"}
        Type of the kernel tiles; sums over tiles are always kept in double precision.
    n_bootstrap : int
        Replicates of the bootstrap.
    weak_separation_fallback : estimator or None
        Asked instead when the separation is below `weak_separation`; anything with
        ``fit(X, y).estimate(X_target)``. The authors' code falls back on KM2-LS.
    weak_separation : float
        See `weak_separation_fallback`; 0.02 is the authors' value.
    random_state : int, Generator or None
        Decides the bootstrap's draws, the sampled pairs and the rows that KM2 thins large data to; nothing else.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two values of y; the larger one means labelled positive.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    kernel_ : Kernel
        The kernel with the bandwidth that was found.
    source_prior_ : float
        π, as given or as estimated by `prior_estimator_`, which is None for a known one.

    Examples
    --------
    >>> from priorshift import TCPU, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, n_source=1000, n_target=1000, random_state=0)
    >>> tcpu = TCPU(source_prior=0.2).fit(s.X, s.y, shared=s.ids)  # y is 1 for the labelled positives
    >>> print(tcpu.estimate(s.target))
    target prior 0.583, 95% interval 0.537 to 0.632 (TCPU, source prior 0.2)
    """

    def __init__(
        self,
        source_prior: Any = None,
        *,
        kernel: str = "gaussian",
        bandwidth: str | float = "dimension",
        statistic: Literal["unbiased", "plug-in"] = "unbiased",
        scenario: Literal["case-control", "censoring"] = "case-control",
        standardize: bool = False,
        interval: Literal["delta", "bootstrap", "paper-bound", "sharp-bound"] | None = "delta",
        confidence: float = 0.95,
        pairs: int | None = None,
        precision: Literal["float64", "float32"] = "float64",
        n_bootstrap: int = 500,
        weak_separation_fallback: Any = None,
        weak_separation: float = 0.02,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.source_prior = source_prior
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.statistic = statistic
        self.scenario = scenario
        self.standardize = standardize
        self.interval = interval
        self.confidence = confidence
        self.pairs = pairs
        self.precision = precision
        self.n_bootstrap = n_bootstrap
        self.weak_separation_fallback = weak_separation_fallback
        self.weak_separation = weak_separation
        self.random_state = random_state

    def fit(self, X: Any, y: Any, shared: Any = None) -> TCPU:
        """Take in the source data; the kernel sums among source rows are computed here, once.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, features)
            Labelled positives and unlabelled rows. An array is kept, not copied, as by scikit-learn's nearest
            neighbours: do not change it in place before `estimate`.
        y : array-like of shape (rows,)
            Two values; the larger one means labelled positive.
        shared : None, "identical" or array-like of shape (rows,)
            Which labelled and unlabelled rows are the same observation: none, those with identical values, or
            those with the same id. (Under ``scenario="censoring"`` this is known and must be left out.)
        """
        self._check_parameters()
        table, source = self._read_samples(X, y, shared)
        positive, population = source.positive, source.population
        self._scaling = Scaling.of(table.values, population, self.standardize)
        self._scaling.warn_of_left_out(table)
        rows = self._scaling.rows(table.values, population)
        self.kernel_ = make_kernel(self.kernel, self.bandwidth, rows, self._scaling.features)
        everything = self._scaling.rows(table.values)
        self._asked: AskedPrior | None = None
        if not is_known(self.source_prior):
            self._asked = ask_prior(self.source_prior, self.scenario, self.random_state, everything[:], source)
        self.prior_estimator_ = self._asked.estimator if self._asked else None
        self.source_prior_ = self._prior_in_use()
        self._source = Source(
            self.kernel_, replace(everything, index=positive), rows, source.shared, np.dtype(self.precision)
        )
        self._fitted_with = {name: getattr(self, name) for name in ("scenario", "standardize", "precision")}
        if self.pairs is None:
            self._source.sums  # noqa: B018 (computed now, kept for every target)
        if self.weak_separation_fallback is not None:
            self.fallback_ = clone(self.weak_separation_fallback).fit(X, y)
        return self

    def estimate(self, X_target: Any) -> PriorEstimate:
        """Estimate the prior of the population that `X_target` is a sample of.

        Returns
        -------
        PriorEstimate
            With ``value`` NaN and the interval [0, 1], and a warning, where the separation is not positive.
        """
        check_is_fitted(self, "kernel_")
        self._check_parameters()
        pi = self._prior_in_use()
        target = self._target(X_target)
        embeddings, rng = self._embed(target)
        raw, R, D = project(embeddings.gram, pi)
        if self.weak_separation_fallback is not None and self.weak_separation > D:
            if not hasattr(self, "fallback_"):
                raise InputError("weak_separation_fallback was set after TCPU was fitted; fit again.")
            answer: PriorEstimate = self.fallback_.estimate(X_target)
            return answer
        scale = float(np.nanmax(np.abs(embeddings.gram)))
        if not _NO_SEPARATION * scale < D:
            return self._no_answer(embeddings, pi, D)
        return PriorEstimate(
            value=float(np.clip(raw, 0, 1)),
            raw=raw,
            interval=self._interval(embeddings, target, pi, raw, rng),
            standard_error=self._standard_error(embeddings, pi),
            source_prior=pi,
            negative_ratio=R,
            separation=D,
            method="TCPU",
            sizes=embeddings.sizes,
            details=self._details(embeddings),
        )

    def objective(self, X_target: Any, gamma: ArrayLike) -> NDArray[np.float64]:
        """The objective L(γ) at each γ; its minimiser is the raw estimate, its minimum a measure of misfit."""
        check_is_fitted(self, "kernel_")
        self._check_parameters()
        pi = self._prior_in_use()
        embeddings, _ = self._embed(self._target(X_target), target_norm=True)
        return objective(embeddings.gram, pi, gamma)

    def _embed(self, target: Rows, *, target_norm: bool = False) -> tuple[Embeddings, np.random.Generator]:
        rng = np.random.default_rng(self.random_state)
        source = self._source
        if self.pairs is None:
            return source.embed(target, self.statistic, target_norm=target_norm, prior=self._prior_influence), rng
        rows = (source.positive, source.unlabeled, target)
        made = embed_pairs(
            source.kernel, rows, source.shared, self.pairs, rng, target_norm=target_norm, prior=self._prior_influence
        )
        return made, rng

    def _interval(
        self, embeddings: Embeddings, target: Rows, pi: float, raw: float, rng: np.random.Generator
    ) -> Interval | None:
        fieller, plausible = intervals.delta(embeddings, pi, self.confidence)
        D, error = float(separation(embeddings.gram)), intervals.separation_error(embeddings)
        if 2 * error > D:
            warn(
                f"Positives and the source population are hardly apart: separation {D:.2g} with a standard error of "
                f"{error:.2g} ({embeddings.sizes[P]} positive, {embeddings.sizes[U]} unlabeled rows). The estimate "
                "rests on noise; rely on the interval, or collect rows or features that tell the classes apart.",
                WeakSeparationWarning,
            )
        elif not plausible:
            warn(
                f"The raw estimate {raw:.3f} lies outside [0, 1] by more than its sampling error "
                f"({intervals.standard_error(embeddings, pi):.2g}); check the source prior ({pi:g}) and whether the "
                "classes look the same in source and target.",
                OutOfRangeWarning,
            )
        if self.interval is None or (self._prior_asked and not self._prior_asked.can_tell(self._source.shared)):
            return None
        if self.interval == "delta":
            return fieller
        if self.interval == "bootstrap":
            batch = max(1, min(self.n_bootstrap, _REPLICATE_BYTES // sum(embeddings.sizes)))
            batches = [min(batch, self.n_bootstrap - k) for k in range(0, self.n_bootstrap, batch)]
            drawn = [self._source.bootstrap(target, self.statistic, b, rng, self._prior_influence) for b in batches]
            grams, moved = (np.concatenate(part) for part in zip(*drawn, strict=True))
            return intervals.bootstrap(
                grams, np.clip(pi + moved, 0.0, 0.999), self.confidence, float(np.clip(raw, 0, 1))
            )
        bound = intervals.paper_bound if self.interval == "paper-bound" else intervals.sharp_bound
        return bound(embeddings, pi, self.confidence)

    def _no_answer(self, embeddings: Embeddings, pi: float, D: float) -> PriorEstimate:
        m, n, _ = embeddings.sizes
        warn(
            f"No estimate: the separation of {m} positive from {n} unlabeled rows is {D:.2g}, not positive, so the "
            "data cannot tell positives from the source population; every prior in [0, 1] is possible. Collect more "
            "positives, or features that tell the classes apart.",
            WeakSeparationWarning,
        )
        nothing = None if self.interval is None else Interval(0.0, 1.0, self.confidence, "none")
        nan = float("nan")
        return PriorEstimate(nan, nan, nothing, nan, pi, nan, D, "TCPU", embeddings.sizes, self._details(embeddings))

    def _details(self, embeddings: Embeddings) -> dict[str, Any]:
        return {
            "kernel": self.kernel_.name,
            "bandwidth": self.kernel_.bandwidth,
            "statistic": self.statistic,
            **self._fitted_with,
            "source_prior_by": self._prior_asked.name if self._prior_asked else "given",
            "source_prior_standard_error": self._prior_influence and sqrt(embeddings.prior_variance),
            "shared_rows": embeddings.shared,
            "pairs": self.pairs,
        }

    @property
    def _prior_asked(self) -> AskedPrior | None:
        """None for a known prior, whatever was asked when TCPU was fitted."""
        return None if is_known(self.source_prior) else self._asked

    @property
    def _prior_influence(self) -> PriorInfluence | None:
        return self._prior_asked.influence if self._prior_asked else None

    def _standard_error(self, embeddings: Embeddings, pi: float) -> float:
        """NaN where the error of an estimated source prior is not known."""
        if self._prior_asked and self._prior_asked.influence is None:
            return float("nan")
        return intervals.standard_error(embeddings, pi)

    def _prior_in_use(self) -> float:
        """π as it is set now: a number may replace what was asked, but nothing is asked again without fit."""
        if is_known(self.source_prior):
            return check_prior(self.source_prior)
        if self._asked is None:
            raise InputError("source_prior was a number when TCPU was fitted and is none now; fit again.")
        return self._asked.value

    def _target(self, X_target: Any) -> Rows:
        table = self._read_target(X_target)
        source = self._source
        check_sizes(positive=len(source.positive), unlabeled=len(source.unlabeled), target=len(table.values))
        self._scaling.warn_of_left_out(table)
        return self._scaling.rows(table.values)

    def _check_parameters(self) -> None:
        check_choice("statistic", self.statistic, ("unbiased", "plug-in"))
        check_choice("scenario", self.scenario, ("case-control", "censoring"))
        check_choice("precision", self.precision, ("float64", "float32"))
        check_choice("interval", self.interval, (*intervals.METHODS, None))
        if self.interval in ("paper-bound", "sharp-bound") and self.kernel == "energy":
            raise InputError(
                f"interval={self.interval!r} needs a bounded kernel, but 'energy' is not; "
                "use 'gaussian' or 'laplace', or interval='delta'."
            )
        check_confidence(self.confidence)
        check_random_state(self.random_state)
        check_number("weak_separation", self.weak_separation)
        fallback = self.weak_separation_fallback
        if fallback is not None and not (hasattr(fallback, "fit") and hasattr(fallback, "estimate")):
            raise InputError(
                f"weak_separation_fallback is {fallback!r}, but it must be None or an estimator with fit and estimate."
            )
        check_count("n_bootstrap", self.n_bootstrap, 20)
        if is_known(self.source_prior):
            check_prior(self.source_prior)
        elif self.interval in ("paper-bound", "sharp-bound"):
            raise InputError(
                f"interval={self.interval!r} is proved for a known source prior, but it is to be estimated; "
                "pass source_prior as a number, or use interval='delta'."
            )
        if self.pairs is not None:
            check_count("pairs", self.pairs, 100)
            if self.statistic != "unbiased":
                raise InputError("pairs gives an incomplete U-statistic, which is unbiased; set statistic='unbiased'.")
            if self.interval not in ("delta", None):
                raise InputError(
                    f"interval={self.interval!r} needs all pairs of rows; leave pairs=None or use interval='delta'."
                )
