"""TCPU: the target prior by projection of mean embeddings (Mielniczuk, Rejchel and Teisseyre 2026).

Letters, once: P, U, T are the positive, the unlabelled (population) and the target sample, of m, n and n′ rows;
π is the source prior, π′ the target prior; a = μ_U − μ_P, b = μ_T − μ_P.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from priorshift import intervals
from priorshift.base import TargetPriorEstimator
from priorshift.embedding.gram import Embeddings
from priorshift.embedding.projection import objective, ratio, separation, target_prior
from priorshift.errors import InputError, OutOfRangeWarning, warn
from priorshift.input.parameters import check_choice, check_prior, is_known
from priorshift.input.scaling import Rows
from priorshift.input.source import Source, Target
from priorshift.kernel_ratio import KernelRatio
from priorshift.result import Interval, PriorEstimate
from priorshift.source_prior import LEAST_PRIOR, EstimatedPrior, estimate_source_prior

_REPLICATE_BYTES = 2**25  # of bootstrap counts held at a time


class TCPU(KernelRatio, TargetPriorEstimator):
    """Target prior from positive-unlabelled source data under label shift.

    Parameters
    ----------
    source_prior : float, estimator or None
        π, the share of positives in the source population: a number strictly between 0 and 1 is taken as known; an
        estimator is asked at `fit` (anything with ``fit(X, y)`` and then ``prior_``); None asks :class:`KM2`. Where R
        is all that is wanted, :class:`KernelRatio` asks nobody.
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
    settings_of_estimate: ClassVar[frozenset[str]] = KernelRatio.settings_of_estimate | {
        "source_prior",
        "interval",
        "n_bootstrap",
    }
    _estimated: EstimatedPrior | None  # None where the prior was known at fit

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
        super().__init__(
            kernel=kernel,
            bandwidth=bandwidth,
            statistic=statistic,
            scenario=scenario,
            standardize=standardize,
            confidence=confidence,
            pairs=pairs,
            precision=precision,
            verbose=verbose,
            random_state=random_state,
        )
        self.source_prior = source_prior
        self.interval = interval
        self.n_bootstrap = n_bootstrap

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
        embeddings, _ = self._embed(self._read_target(X_target).rows, target_norm=True)
        return objective(embeddings.gram, self._prior_in_use()[0], gamma)

    @property
    def source_prior_(self) -> float:  # numpydoc ignore=RT01
        """π as it is set now, or as it was estimated."""
        check_is_fitted(self)
        return self._estimated.value if self._estimated and not is_known(self.source_prior) else self.source_prior

    @property
    def prior_estimator_(self) -> Any:  # numpydoc ignore=RT01
        """What was asked for π; None where it is known."""
        check_is_fitted(self)
        return self._estimated.estimator if self._estimated and not is_known(self.source_prior) else None

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        super()._fit(source, rng)
        if self.interval in ("paper-bound", "sharp-bound"):
            intervals.check_bounded(self.kernel_, self.interval)
        known = is_known(self.source_prior)
        self._estimated = None if known else estimate_source_prior(self.source_prior, source, self.random_state)
        self._asked = repr(self.source_prior)

    def _prior_in_use(self) -> tuple[float, EstimatedPrior | None]:
        """π as it is set now: a number may replace what was asked, but nothing is asked again without fit."""
        if is_known(self.source_prior):
            return check_prior(self.source_prior), None
        if self._estimated is None or repr(self.source_prior) != self._asked:
            raise InputError(
                f"source_prior was {self._asked} when TCPU was fitted and is {self.source_prior!r} now; fit again."
            )
        return self._estimated.value, self._estimated

    def _estimate(self, target: Target) -> PriorEstimate:
        pi, estimated = self._prior_in_use()
        influence = estimated.influence if estimated else None
        embeddings, rng = self._embed(target.rows, influence)
        nan = float("nan")
        R, error = ratio(embeddings.gram), nan
        if self._is_apart(embeddings):
            interval = self._interval(embeddings, target.rows, estimated, pi, rng)
            if not (estimated and influence is None):  # whose error is not known
                error = intervals.standard_error(embeddings, pi)
        else:
            R = nan
            interval = None if self.interval is None else Interval(0.0, 1.0, self.confidence, "none")
        raw = 1 - (1 - pi) * R
        prior_error = sqrt(embeddings.prior_variance) if influence else None
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
                **{name: getattr(self, name) for name in ("statistic", "scenario", "standardize", "precision")},
                "source_prior_standard_error": prior_error,
                "shared_rows": embeddings.shared,
                "pairs": self.pairs,
            },
        )

    def _interval(
        self,
        embeddings: Embeddings,
        target: Rows,
        estimated: EstimatedPrior | None,
        pi: float,
        rng: np.random.Generator,
    ) -> Interval | None:
        fieller, plausible = intervals.delta(embeddings, pi, self.confidence)
        raw = target_prior(embeddings.gram, pi)
        if not plausible and 2 * intervals.separation_error(embeddings) <= separation(embeddings.gram):
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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("interval", self.interval, (*intervals.METHODS, None))
        if not is_known(self.source_prior) and self.interval in ("paper-bound", "sharp-bound"):
            raise InputError(
                f"interval={self.interval!r} is proved for a known source prior, but it is to be estimated; "
                "pass source_prior as a number, or use interval='delta'."
            )
        if self.pairs is not None and self.interval not in ("delta", None):
            raise InputError(
                f"interval={self.interval!r} needs all pairs of rows; leave pairs=None or use interval='delta'."
            )
