"""TCPU: the target prior by projection of mean embeddings (Mielniczuk, Rejchel and Teisseyre 2026).

Letters, once: P, U, T are the positive, the unlabelled (population) and the target sample, of m, n and n′ rows;
π is the source prior, π′ the target prior; a = μ_U − μ_P, b = μ_T − μ_P.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from priorshift import intervals
from priorshift.base import TargetPriorEstimator
from priorshift.embedding.gram import Embeddings, P, PriorInfluence, SourceEmbedding, U
from priorshift.embedding.incomplete import embed_pairs
from priorshift.embedding.projection import objective, ratio, separation
from priorshift.errors import InputError, OutOfRangeWarning, WeakSeparationWarning, warn
from priorshift.input.parameters import check_choice, check_prior, is_known
from priorshift.input.scaling import Rows
from priorshift.input.source import Source, Target
from priorshift.kernels import make_kernel
from priorshift.result import Interval, NegativeRatio, PriorEstimate
from priorshift.source_prior import LEAST_PRIOR, EstimatedPrior, check_scenario, estimate_source_prior

_REPLICATE_BYTES = 2**25  # of bootstrap counts held at a time
_NO_SEPARATION = 1e-12  # of the kernel's scale: what rounding leaves of a separation that is zero


class TCPU(TargetPriorEstimator):
    """Target prior from positive-unlabelled source data under label shift.

    Parameters
    ----------
    source_prior : float, estimator or None
        π, the share of positives in the source population: a number strictly between 0 and 1 is taken as known; an
        estimator is asked (anything with ``fit(X, y)`` and then ``prior_``); None asks :class:`KM2`. It is asked when
        π is first needed: `negative_ratio` needs none.
    kernel : {"gaussian", "laplace", "energy"}, kernel or callable
        A name, an object such as ``kernels.Laplace(3.0)``, or a function k(X, Y) that gives the matrix of all pairs.
    bandwidth : float or {"dimension", "median"}
        h in exp(−‖x−y‖²/(2h²)). ``"dimension"`` is the paper's τ = 1/p, ``"median"`` the median distance
        between rows of the population sample. A kernel object brings its own.
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
    verbose : bool
        Whether a terminal shows how far long work is.
    random_state : int, Generator or None
        Decides the bootstrap's draws, the sampled pairs and what is random in the estimator of π, such as the rows that
        KM2 thins large data to, where it was given no random_state; nothing else.

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

    References
    ----------
    Mielniczuk, Rejchel and Teisseyre (2026). Prior shift estimation for positive unlabeled data through the lens of
    kernel embedding. AISTATS.

    Examples
    --------
    >>> from priorshift import TCPU, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, n_source=1000, n_target=1000, random_state=0)
    >>> tcpu = TCPU(source_prior=0.2).fit(s.X, s.y, shared=s.ids)  # y is 1 for the labelled positives
    >>> print(tcpu.estimate(s.target))
    target prior 0.585, 95% interval 0.539 to 0.633 (TCPU, source prior 0.2)
    """

    label = "TCPU"
    _asked: tuple[Any, EstimatedPrior] | None  # for which source_prior, and the answer

    def __init__(
        self,
        source_prior: Any = None,
        *,
        kernel: Any = "gaussian",
        bandwidth: str | float = "dimension",
        statistic: Literal["unbiased", "plug-in"] = "unbiased",
        scenario: Literal["case-control", "censoring"] = "case-control",
        standardize: bool = True,
        interval: Literal["delta", "bootstrap", "paper-bound", "sharp-bound"] | None = "delta",
        confidence: float = 0.95,
        pairs: int | None = None,
        precision: Literal["float64", "float32"] = "float64",
        n_bootstrap: int = 500,
        verbose: bool = False,
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
        self.verbose = verbose
        self.random_state = random_state

    def negative_ratio(self, X_target: Any) -> NegativeRatio:
        """Estimate R = (1−π′)/(1−π), the ratio of the shares of negatives; no source prior is used or asked for.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Unlabelled rows with the columns of the source.

        Returns
        -------
        NegativeRatio
            With ``value`` NaN and a warning where the separation is not positive.

        Examples
        --------
        >>> from priorshift import TCPU, simulate
        >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, random_state=0)
        >>> R = TCPU().fit(s.X, s.y, shared=s.ids).negative_ratio(s.target)
        >>> print(f"{R.value:.2f} ± {R.standard_error:.2f}")  # 0.4/0.8 is the truth
        0.49 ± 0.02
        """
        embeddings, _ = self._embed(self._read_target(X_target).rows, None)
        D = float(separation(embeddings.gram))
        if not self._is_apart(embeddings):
            self._warn_of_no_separation(embeddings)
            nothing = Interval(0.0, float("inf"), self.confidence, "none")
            return NegativeRatio(float("nan"), float("nan"), nothing, D, embeddings.sizes)
        error, interval = intervals.ratio(embeddings, self.confidence)
        return NegativeRatio(ratio(embeddings.gram), error, interval, D, embeddings.sizes)

    def objective(self, X_target: Any, gamma: ArrayLike) -> NDArray[np.float64]:
        """Compute the objective L(γ); its minimiser is the raw estimate, its minimum a measure of misfit.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Unlabelled rows with the columns of the source.
        gamma : array-like
            Target priors to try.

        Returns
        -------
        ndarray
            Of the shape of `gamma`.
        """
        embeddings, _ = self._embed(self._read_target(X_target).rows, None, target_norm=True)
        return objective(embeddings.gram, self.source_prior_, gamma)

    @property
    def source_prior_(self) -> float:  # numpydoc ignore=RT01
        """π as it is set now: known, or estimated."""
        check_is_fitted(self)
        estimated = self._estimated_prior
        return estimated.value if estimated else check_prior(self.source_prior)

    @property
    def prior_estimator_(self) -> Any:  # numpydoc ignore=RT01
        """What was asked for π; None where it is known."""
        check_is_fitted(self)
        estimated = self._estimated_prior
        return estimated.estimator if estimated else None

    @property
    def _estimated_prior(self) -> EstimatedPrior | None:
        """None for a known prior; otherwise asked once, and again only if another estimator is set."""
        if is_known(self.source_prior):
            return None
        if self._asked is None or self._asked[0] is not self.source_prior:
            found = estimate_source_prior(self.source_prior, self._source, self.random_state)
            self._asked = self.source_prior, found
        return self._asked[1]

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        """The kernel sums among source rows are computed here, once."""
        check_scenario(self.source_prior, self.scenario)
        population = source.scaling.rows(source.table.values, source.population)
        self.kernel_ = make_kernel(self.kernel, self.bandwidth, population, source.scaling.features)
        self._source = source
        self._embedding = SourceEmbedding.of(source, self.kernel_, self.precision)
        self._asked = None
        self._fitted_with = {name: getattr(self, name) for name in ("scenario", "standardize", "precision")}
        self._entropy = self._seed(rng)
        if self.pairs is None:
            self._embedding.sums  # noqa: B018 (computed now, kept for every target)

    def _estimate(self, target: Target) -> PriorEstimate:
        pi, estimated = self.source_prior_, self._estimated_prior
        embeddings, rng = self._embed(target.rows, estimated.influence if estimated else None)
        R, nan = ratio(embeddings.gram), float("nan")
        raw, interval, error = 1 - (1 - pi) * R, None, nan
        apart = self._is_apart(embeddings)
        if apart:
            interval = self._interval(embeddings, target.rows, estimated, pi, rng)
            if not (estimated and estimated.influence is None):  # whose error is not known
                error = intervals.standard_error(embeddings, pi)
        else:
            self._warn_of_no_separation(embeddings)
            raw = R = nan
            interval = None if self.interval is None else Interval(0.0, 1.0, self.confidence, "none")
        return PriorEstimate(
            value=float(np.clip(raw, 0, 1)),
            raw=raw,
            interval=interval,
            standard_error=error,
            source_prior=pi,
            negative_ratio=R,
            separation=float(separation(embeddings.gram)),
            method=self.label,
            sizes=embeddings.sizes,
            source_prior_by=estimated.name if estimated else "given",
            details={
                "kernel": self.kernel_.name,
                "bandwidth": self.kernel_.bandwidth,
                "statistic": self.statistic,
                **self._fitted_with,
                "source_prior_standard_error": sqrt(embeddings.prior_variance)
                if estimated and estimated.influence
                else None,
                "shared_rows": embeddings.shared,
                "pairs": self.pairs,
            },
        )

    def _embed(
        self, target: Rows, prior: PriorInfluence | None, *, target_norm: bool = False
    ) -> tuple[Embeddings, np.random.Generator]:
        rng, source = np.random.default_rng(self._entropy), self._embedding
        if self.pairs is None:
            return source.embed(target, self.statistic, target_norm=target_norm, prior=prior), rng
        rows = (source.positive, source.unlabeled, target)
        return embed_pairs(
            source.kernel, rows, source.shared, self.pairs, rng, target_norm=target_norm, prior=prior
        ), rng

    def _interval(
        self,
        embeddings: Embeddings,
        target: Rows,
        estimated: EstimatedPrior | None,
        pi: float,
        rng: np.random.Generator,
    ) -> Interval | None:
        fieller, plausible = intervals.delta(embeddings, pi, self.confidence)
        raw = 1 - (1 - pi) * ratio(embeddings.gram)
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
        if self.interval is None:
            return None
        if estimated:
            estimated.warn_of_error(self._embedding.shared)
            if estimated.influence is None:
                return None
        if self.interval == "delta":
            return fieller
        if self.interval == "bootstrap":
            influence = estimated.influence if estimated else None
            batch = max(1, min(self.n_bootstrap, _REPLICATE_BYTES // sum(embeddings.sizes)))
            batches = [min(batch, self.n_bootstrap - k) for k in range(0, self.n_bootstrap, batch)]
            drawn = [self._embedding.bootstrap(target, self.statistic, b, rng, influence) for b in batches]
            grams, moved = (np.concatenate(part) for part in zip(*drawn, strict=True))
            priors = np.clip(pi + moved, 0.0, 1 - LEAST_PRIOR)
            return intervals.bootstrap(grams, priors, self.confidence, float(np.clip(raw, 0, 1)))
        bound = intervals.paper_bound if self.interval == "paper-bound" else intervals.sharp_bound
        return bound(embeddings, pi, self.confidence)

    def _is_apart(self, embeddings: Embeddings) -> bool:
        scale = float(np.nanmax(np.abs(embeddings.gram)))
        return bool(_NO_SEPARATION * scale < separation(embeddings.gram))

    def _warn_of_no_separation(self, embeddings: Embeddings) -> None:
        (m, n, _), D = embeddings.sizes, float(separation(embeddings.gram))
        warn(
            f"No estimate: the separation of {m} positive from {n} unlabeled rows is {D:.2g}, not positive, so the "
            "data cannot tell positives from the source population; every prior in [0, 1] is possible. Collect more "
            "positives, or features that tell the classes apart.",
            WeakSeparationWarning,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("interval", self.interval, (*intervals.METHODS, None))
        if self.interval in ("paper-bound", "sharp-bound") and isinstance(self.kernel, str) and self.kernel == "energy":
            raise InputError(
                f"interval={self.interval!r} needs a bounded kernel, but 'energy' is not; "
                "use 'gaussian' or 'laplace', or interval='delta'."
            )
        if not is_known(self.source_prior) and self.interval in ("paper-bound", "sharp-bound"):
            raise InputError(
                f"interval={self.interval!r} is proved for a known source prior, but it is to be estimated; "
                "pass source_prior as a number, or use interval='delta'."
            )
        if self.pairs is not None:
            if self.statistic != "unbiased":
                raise InputError("pairs gives an incomplete U-statistic, which is unbiased; set statistic='unbiased'.")
            if self.interval not in ("delta", None):
                raise InputError(
                    f"interval={self.interval!r} needs all pairs of rows; leave pairs=None or use interval='delta'."
                )
