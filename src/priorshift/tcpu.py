"""TCPU: the target prior by projection of mean embeddings (Mielniczuk, Rejchel and Teisseyre 2026).

Letters, once: P, U, T are the positive, the unlabelled (population) and the target sample, of m, n and n′ rows;
π is the source prior, π′ the target prior; a = μ_U − μ_P, b = μ_T − μ_P.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from priorshift import intervals
from priorshift.embeddings import NAMES, NO_PAIRS, Embeddings, P, Pairs, Source, U
from priorshift.errors import InputError, OutOfRangeWarning, WeakSeparationWarning
from priorshift.kernels import Matrix, make_kernel
from priorshift.labels import read_labels
from priorshift.pairs import embed_pairs
from priorshift.parameters import check_choice, check_confidence, check_count, check_prior
from priorshift.result import Interval, PriorEstimate
from priorshift.scaling import Scaling
from priorshift.shared_rows import shared_pairs
from priorshift.tables import Table, match_columns, read_table
from priorshift.tiles import Rows

_REPLICATE_BYTES = 2**25  # of bootstrap counts held at a time
_NO_SEPARATION = 1e-12  # of the kernel's scale: what rounding leaves of a separation that is zero


class Projection(NamedTuple):
    """Target prior (unclipped), ratio of negative shares R, separation ‖a‖²."""

    raw: float
    ratio: float
    separation: float


def project(gram: Matrix, source_prior: float) -> Projection:
    """Project b on a: R = ⟨a, b⟩/⟨a, a⟩ = (1−π′)/(1−π), π̂′ = 1 − (1−π)R (the paper's Lemma 2).

    Parameters
    ----------
    gram : ndarray of shape (3, 3)
        Gram matrix of the means of P, U and T; ⟨μ_T, μ_T⟩ is not needed.
    source_prior : float
        π.

    Examples
    --------
    Along a line with the positives at 1 and the negatives at 0, a population's mean is its prior.

    >>> import numpy as np
    >>> from priorshift.tcpu import project
    >>> means = np.array([1.0, 0.2, 0.5])  # P, U with π = 0.2, T with π′ = 0.5
    >>> round(project(np.outer(means, means), source_prior=0.2).raw, 12)
    0.5
    """
    N, D = float(intervals.numerator(gram)), float(intervals.separation(gram))
    R = N / D if D else float("nan")
    return Projection(1 - (1 - source_prior) * R, R, D)


def objective(gram: Matrix, source_prior: float, gamma: ArrayLike) -> NDArray[np.float64]:
    """The paper's objective L(γ) = ‖Δ − γa‖² with Δ = μ_U − πμ_P − (1−π)μ_T (its equation 3).

    `gram` must hold ⟨μ_T, μ_T⟩. With unbiased entries L estimates a squared distance without bias and can
    fall below zero.
    """
    w = np.array([-source_prior, 1.0, -(1 - source_prior)])[:, None] - np.outer([-1.0, 1.0, 0.0], np.ravel(gamma))
    return np.einsum("jg,jk,kg->g", w, gram, w).reshape(np.shape(gamma))


class TCPU(BaseEstimator):
    """Target prior from positive-unlabelled source data under label shift.

    Parameters
    ----------
    source_prior : float or None
        π, the share of positives in the source population, strictly between 0 and 1. It must be known in
        this version; ``None`` is accepted by `fit` and refused by `estimate`.
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
        Decides the bootstrap's draws and the sampled pairs, and nothing else.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two values of y; the larger one means labelled positive.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    kernel_ : Kernel
        The kernel with the bandwidth that was found.

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
        source_prior: float | None = None,
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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # y has two values
        return tags

    def fit(self, X: Any, y: Any, shared: Any = None) -> TCPU:
        """Take in the source data; the kernel sums among source rows are computed here, once.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, features)
            Labelled positives and unlabelled rows.
        y : array-like of shape (rows,)
            Two values; the larger one means labelled positive.
        shared : None, "identical" or array-like of shape (rows,)
            Which labelled and unlabelled rows are the same observation: none, those with identical values, or
            those with the same id. (Under ``scenario="censoring"`` this is known and must be left out.)
        """
        self._check_parameters()
        table = read_table(X, "X")
        labeled, self.classes_ = read_labels(y, len(table.values))
        self._keep_columns(table)
        positive, population = np.flatnonzero(labeled), np.flatnonzero(~labeled)
        pairs: Pairs = NO_PAIRS
        if self.scenario == "censoring":
            if shared is not None:
                raise InputError("shared is known under scenario='censoring' (every labelled row); leave it out.")
            pairs = np.stack([np.arange(len(positive)), positive], axis=1)
            population = np.arange(len(labeled))
        elif shared is not None:
            pairs = shared_pairs(table.values, positive, population, shared)
        self._scaling = Scaling.of(table.values, population, self.standardize)
        self._scaling.warn_of_left_out(table)
        rows = self._scaling.rows(table.values, population)
        self.kernel_ = make_kernel(self.kernel, self.bandwidth, rows)
        self._source = Source(
            self.kernel_, self._scaling.rows(table.values, positive), rows, pairs, np.dtype(self.precision)
        )
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
        pi = self._known_prior()
        target = self._target(X_target)
        embeddings, rng = self._embed(target)
        raw, R, D = project(embeddings.gram, pi)
        if self.weak_separation_fallback is not None and self.weak_separation > D:
            answer: PriorEstimate = self.fallback_.estimate(X_target)
            return answer
        scale = float(np.nanmax(np.abs(embeddings.gram)))
        if not _NO_SEPARATION * scale < D:
            return self._no_answer(embeddings, pi, D)
        return PriorEstimate(
            value=float(np.clip(raw, 0, 1)),
            raw=raw,
            interval=self._interval(embeddings, target, pi, raw, rng),
            standard_error=intervals.standard_error(embeddings, pi),
            source_prior=pi,
            negative_ratio=R,
            separation=D,
            method="TCPU",
            sizes=embeddings.sizes,
            details=self._details(embeddings),
        )

    def objective(self, X_target: Any, gamma: ArrayLike) -> NDArray[np.float64]:
        """The objective L(γ) at each γ; its minimiser is the raw estimate, its minimum a measure of misfit."""
        pi = self._known_prior()
        embeddings, _ = self._embed(self._target(X_target), target_norm=True)
        return objective(embeddings.gram, pi, gamma)

    def _embed(self, target: Rows, *, target_norm: bool = False) -> tuple[Embeddings, np.random.Generator]:
        rng = np.random.default_rng(self.random_state)
        source = self._source
        if self.pairs is None:
            return source.embed(target, self.statistic, target_norm=target_norm), rng
        rows = (source.positive, source.unlabeled, target)
        return embed_pairs(source.kernel, rows, source.shared, self.pairs, rng, target_norm=target_norm), rng

    def _interval(
        self, embeddings: Embeddings, target: Rows, pi: float, raw: float, rng: np.random.Generator
    ) -> Interval | None:
        fieller, plausible = intervals.delta(embeddings, pi, self.confidence)
        D, error = float(intervals.separation(embeddings.gram)), intervals.separation_error(embeddings)
        if 2 * error > D:
            warnings.warn(
                f"Positives and the source population are hardly apart: separation {D:.2g} with a standard error of "
                f"{error:.2g} ({embeddings.sizes[P]} positive, {embeddings.sizes[U]} unlabeled rows). The estimate "
                "rests on noise; rely on the interval, or collect rows or features that tell the classes apart.",
                WeakSeparationWarning,
                stacklevel=4,
            )
        elif not plausible:
            warnings.warn(
                f"The raw estimate {raw:.3f} lies outside [0, 1] by more than its sampling error "
                f"({intervals.standard_error(embeddings, pi):.2g}); check the source prior ({pi:g}) and whether the "
                "classes look the same in source and target.",
                OutOfRangeWarning,
                stacklevel=4,
            )
        if self.interval is None or self.interval == "delta":
            return fieller if self.interval else None
        if self.interval == "bootstrap":
            batch = max(1, min(self.n_bootstrap, _REPLICATE_BYTES // sum(embeddings.sizes)))
            batches = [min(batch, self.n_bootstrap - k) for k in range(0, self.n_bootstrap, batch)]
            grams = np.concatenate([self._source.bootstrap(target, self.statistic, b, rng) for b in batches])
            return intervals.bootstrap(grams, pi, self.confidence, float(np.clip(raw, 0, 1)))
        bound = intervals.paper_bound if self.interval == "paper-bound" else intervals.sharp_bound
        return bound(embeddings, pi, self.confidence)

    def _no_answer(self, embeddings: Embeddings, pi: float, D: float) -> PriorEstimate:
        m, n, _ = embeddings.sizes
        warnings.warn(
            f"No estimate: the separation of {m} positive from {n} unlabeled rows is {D:.2g}, not positive, so the "
            "data cannot tell positives from the source population; every prior in [0, 1] is possible. Collect more "
            "positives, or features that tell the classes apart.",
            WeakSeparationWarning,
            stacklevel=3,
        )
        nothing = None if self.interval is None else Interval(0.0, 1.0, self.confidence, "none")
        nan = float("nan")
        return PriorEstimate(nan, nan, nothing, nan, pi, nan, D, "TCPU", embeddings.sizes, self._details(embeddings))

    def _details(self, embeddings: Embeddings) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "bandwidth": self.kernel_.bandwidth,
            "statistic": self.statistic,
            "scenario": self.scenario,
            "standardize": self.standardize,
            "shared_rows": embeddings.shared,
            "pairs": self.pairs,
            "precision": self.precision,
        }

    def _known_prior(self) -> float:
        check_is_fitted(self, "kernel_")
        self._check_parameters()
        if self.source_prior is None:
            raise InputError(
                "source_prior is None, but this version needs the share of positives in the source population; "
                "pass source_prior, a number between 0 and 1."
            )
        return check_prior(self.source_prior)

    def _target(self, X_target: Any) -> Rows:
        names = tuple(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None
        source = self._source
        fitted = Table("the fitted source", np.empty((0, self.n_features_in_)), names)
        table = match_columns([fitted, read_table(X_target, "target")])[1]
        sizes = (len(source.positive), len(source.unlabeled), len(table.values))
        for name, size in zip(NAMES, sizes, strict=True):
            if size < 2:
                raise InputError(f"{name} has 1 row, but at least 2 are needed to tell signal from noise; add rows.")
        self._scaling.warn_of_left_out(table)
        return self._scaling.rows(table.values)

    def _keep_columns(self, table: Table) -> None:
        """scikit-learn's attributes: how many columns, and their names where there are any."""
        self.n_features_in_ = table.values.shape[1]
        if table.columns:
            self.feature_names_in_ = np.asarray(table.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

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
        check_count("n_bootstrap", self.n_bootstrap, 20)
        if self.source_prior is not None:
            check_prior(self.source_prior)
        if self.pairs is not None:
            check_count("pairs", self.pairs, 100)
            if self.statistic != "unbiased":
                raise InputError("pairs gives an incomplete U-statistic, which is unbiased; set statistic='unbiased'.")
            if self.interval not in ("delta", None):
                raise InputError(
                    f"interval={self.interval!r} needs all pairs of rows; leave pairs=None or use interval='delta'."
                )
