"""TCPU: the target prior by projection of mean embeddings (Mielniczuk, Rejchel and Teisseyre 2026).

P, U, T are the positive, the unlabelled (population) and the target sample, of m, n and n′ rows; π is the source
prior, π′ the target prior; a = μ_U − μ_P, b = μ_T − μ_P. From the mean embeddings follow R = ⟨a, b⟩/⟨a, a⟩ and
π̂′ = 1 − (1−π)R. If a share ε of the labelled rows is not positive, π̂′ = q − (q−π)R with their purity q = 1 − ε.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from priorshift.arrays import Floats
from priorshift.base import TargetPriorEstimator
from priorshift.embedding.gpu_sums import Device
from priorshift.embedding.gram import Embeddings, SourceEmbedding, objective, ratio, separation, target_prior
from priorshift.embedding.random_features import kernel_details
from priorshift.errors import InputError, OutOfRangeWarning
from priorshift.formatting import format_fixed
from priorshift.inference import intervals
from priorshift.inference.joint import GroupInfluence, RatioInfluence
from priorshift.inference.prior_knowledge import (
    PointPrior,
    PosteriorPrior,
    PriorKnowledge,
    read_label_error,
    read_prior,
    warn_of_label_error,
    with_label_error,
)
from priorshift.io.observations import PriorInfluence
from priorshift.io.parameters import check_choice, is_known
from priorshift.methods.kernel_ratio import KernelFit, check_kernel_settings, is_separated, ratio_from_embeddings
from priorshift.problem import Source, Target
from priorshift.results import Interval, NegativeRatio, PriorEstimate
from priorshift.source_prior import (
    LEAST_PRIOR,
    EstimatedPrior,
    SourcePriorMixin,
    estimate_source_prior,
    label_error_details,
)
from priorshift.warning_records import warn

_BOOTSTRAP_BYTES = 2**25  # bytes of bootstrap counts in memory at a time


class TCPU(SourcePriorMixin, TargetPriorEstimator):
    """Target prior from positive-unlabelled source data under label shift.

    Parameters
    ----------
    source_prior : float, (low, high), distribution, estimator or None
        π, the share of positives in the source population. A number strictly between 0 and 1 is taken as known. With a
        range within [0, 1] the interval holds for every π in it; estimate and standard error are those of the middle.
        With a frozen distribution of scipy.stats within [0, 1], such as ``stats.beta(37.5, 213.5)`` after 37 positives
        in a survey of 250, interval and standard error include its spread; the estimate is that of the mean. An
        estimator with ``fit(X, y)`` and ``prior_`` is fitted to the source. Default None, which is :class:`KM2`.
        :class:`KernelRatio` estimates R without π.
    label_error : float, (low, high), distribution or None
        Share of the labelled rows that are not positive, as in :class:`WitnessShift`. Default None: no errors.
    kernel : {"gaussian", "laplace", "energy"}, kernel or callable
        A name, an object such as ``kernels.Laplace(3.0)``, or a function k(X, Y) that returns the matrix of all pairs.
    bandwidth : float or {"dimension", "median", "variance"}
        h in exp(−‖x−y‖²/(2h²)). ``"dimension"`` is the paper's τ = 1/p, ``"median"`` the median distance between rows
        of the population sample, ``"variance"`` the multiple of that distance with the smallest expected variance of R,
        chosen from the source alone. A kernel object has its own bandwidth.
    statistic : {"unbiased", "plug-in"}
        Whether pairs of an observation with itself are left out. The paper keeps them (``"plug-in"``), which with few
        positives shrinks the estimate towards no shift.
    scenario : {"case-control", "censoring"}
        Whether the unlabelled rows are a sample of the whole population, or the rest of it after some positives were
        labelled; then labelled and unlabelled rows together are the population sample.
    standardize : bool
        Scale every column by the mean and standard deviation of the population sample. Constant columns are left out.
    interval : {"delta", "bootstrap", "paper-bound", "sharp-bound"} or None
        The delta method, the percentile bootstrap, or a bound that holds at any sample size: the paper's Theorem 2, or
        the sharpest one that its proof gives.
    confidence : float
        Confidence level of the interval. Default 0.95.
    pairs : int or None
        Number of random pairs in each block of the kernel matrix (an incomplete U-statistic). Default None: all pairs.
    precision : {"float64", "float32"}
        Type of the kernel tiles; sums over tiles are always in double precision.
    device : str or callable
        Where kernel sums are computed: "cpu", or a GPU such as "cuda", which needs torch and ignores `precision` (sums
        of a Gaussian kernel have a relative error below 1e-6). "auto" is a GPU where torch finds one and there are at
        least 30,000 rows; ``details["device"]`` says which. A callable computes them elsewhere, as
        :mod:`priorshift.distributed` does.
    embedding : {"auto", "exact", "random-features"}
        Whether kernel sums are over all pairs of rows, or by `features` random features in time linear in rows. Random
        features are a kernel of their own, close to the chosen one: the estimate is consistent with any number of them,
        and its interval holds. "auto" is exact up to 100,000 source rows (4 million on a GPU), for the Laplace kernel
        30,000 (1 million), and for kernels without random features; ``details["embedding"]`` says which.
    features : int
        Number of random features, two for each frequency.
    n_bootstrap : int
        Number of bootstrap replicates.
    verbose : bool
        Show progress in a terminal.
    random_state : int, Generator or None
        Seed of the bootstrap, of sampled pairs, of random features (which are fixed for None), and of the estimator of
        π where it has no random_state of its own.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two values of y; the larger one means labelled positive.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    kernel_ : Kernel
        The kernel with its bandwidth, or random features of it.
    bandwidths_ : BandwidthCurve or None
        With ``bandwidth="variance"``: the ``bandwidths`` that were tried, the expected ``standard_errors`` of R, and
        the ``chosen`` bandwidth.
    source_prior_ : float
        π, given or estimated by `prior_estimator_`, which is None where π is given.

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
    >>> print(tcpu.set_params(source_prior=(0.15, 0.25)).estimate(s.target))
    target prior 0.585, 95% interval 0.510 to 0.656 (TCPU, source prior 0.15 to 0.25)
    """

    label = "TCPU"
    keeps_rows = True  # of P and U, for the kernel's sums with a target
    takes_weights = True
    takes_uncertain_prior = True
    settings_of_estimate: ClassVar[frozenset[str]] = frozenset(
        {"verbose", "statistic", "confidence", "pairs", "source_prior", "label_error", "interval", "n_bootstrap"}
    )

    def __init__(
        self,
        source_prior: Any = None,
        *,
        label_error: Any = None,
        kernel: Any = "gaussian",
        bandwidth: str | float = "dimension",
        statistic: Literal["unbiased", "plug-in"] = "unbiased",
        scenario: Literal["case-control", "censoring"] = "case-control",
        standardize: bool = True,
        interval: Literal["delta", "bootstrap", "paper-bound", "sharp-bound"] | None = "delta",
        confidence: float = 0.95,
        pairs: int | None = None,
        precision: Literal["float64", "float32"] = "float64",
        device: Device = "auto",
        embedding: Literal["auto", "exact", "random-features"] = "auto",
        features: int = 512,
        n_bootstrap: int = 500,
        verbose: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.source_prior = source_prior
        self.label_error = label_error
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.statistic = statistic
        self.scenario = scenario
        self.standardize = standardize
        self.interval = interval
        self.confidence = confidence
        self.pairs = pairs
        self.precision = precision
        self.device = device
        self.embedding = embedding
        self.features = features
        self.n_bootstrap = n_bootstrap
        self.verbose = verbose
        self.random_state = random_state

    def negative_ratio(self, X_target: Any, weights: Any = None, groups: Any = None) -> NegativeRatio:
        """Estimate R = (1−π′)/(1−π), the ratio of the shares of negatives, which needs no π.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Unlabelled rows with the columns of the source.
        weights, groups : None or array-like of shape (rows,)
            As in `estimate`.

        Returns
        -------
        NegativeRatio
            As :meth:`KernelRatio.negative_ratio`.
        """
        target = self.read_target(X_target, weights=weights, groups=groups)
        return ratio_from_embeddings(self._kernel_fit.embed(target, self.statistic, self.pairs), self.confidence)

    def objective(self, X_target: Any, gamma: ArrayLike, weights: Any = None, groups: Any = None) -> Floats:
        """Compute the objective L(γ); its minimiser is the raw estimate, its minimum a measure of misfit.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Unlabelled rows with the columns of the source.
        gamma : array-like
            Target priors to try.
        weights, groups : None or array-like of shape (rows,)
            As in `estimate`.

        Returns
        -------
        ndarray
            Of the shape of `gamma`.
        """
        target = self.read_target(X_target, weights=weights, groups=groups)
        embeddings = self._kernel_fit.embed(target, self.statistic, self.pairs, target_norm=True)
        prior, _ = self._prior_in_use()
        return objective(embeddings.gram, prior.value, gamma, prior.purity)

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        """Embed the source by the kernel, and estimate π unless it is known."""
        is_bound = self.interval in intervals.BOUNDS  # finite-sample bounds hold for the exact kernel only
        self._kernel_fit = KernelFit.from_source(self, source, rng, exact=is_bound)
        embedding = self._kernel_fit.source
        self.kernel_, self.bandwidths_ = embedding.kernel, self._kernel_fit.bandwidths
        if is_bound:
            is_iid = embedding.positive.is_iid and embedding.unlabeled.is_iid
            intervals.check_bound_applies(str(self.interval), self.kernel_, is_iid)
        known = is_known(self.source_prior)
        self._estimated = None if known else estimate_source_prior(self.source_prior, source, self.random_state)

    def _prior_in_use(self) -> tuple[PriorKnowledge, EstimatedPrior | None]:
        """Return what is known of π and of label errors, and the estimate of π at `fit`, or None if π is given.

        The error of an estimate without a distribution enters by its influence values, which are added to those of R
        row by row, so π is a point here. A distribution is treated as independent of the rows.
        """
        estimated = self._prior_from_fit()
        if estimated is None:
            return with_label_error(self._known_prior(), self.label_error), None
        value, distribution = estimated.value, estimated.distribution
        prior: PriorKnowledge = PointPrior(value) if distribution is None else PosteriorPrior(distribution)
        return with_label_error(prior, self.label_error, is_relative=True), estimated

    def _estimate(self, target: Target) -> PriorEstimate:
        """Estimate the prior of a target that was read and checked."""
        return self._project(target).estimate(self)

    def _estimate_jointly(self, target: Target) -> tuple[PriorEstimate, RatioInfluence | None]:
        """Return the estimate of a target's prior and the influence of each observation on R, for comparing targets.

        An observation is a row, or all rows of a group. The influence is None where there is no interval, no standard
        error, or only a sample of pairs.
        """
        projection = self._project(target)
        embeddings, prior, prior_influence = projection.embeddings, projection.prior, projection.prior_influence
        estimate = projection.estimate(self)
        # comparing targets needs an error of R̂, and how much of it comes from each observation
        if estimate.interval is None or not np.isfinite(estimate.standard_error) or embeddings.influence is None:
            return estimate, None
        source = self._kernel_fit.source
        # Influence of each row of P, of U and of T on R: three arrays of shape (rows of the sample,), in the order of
        # its rows. The influence of an observation is the sum over its rows, and their squares add up to Var(R).
        P_influence, U_influence, T_influence = intervals.ratio_influence(embeddings)
        # Number of the observation of each target row. Those of the source are numbered 0 to source.observations − 1.
        observation = source.sample(target).observation
        is_shared = observation < source.observations  # rows of the target whose group is also in the source
        # sums by number: of rows in groups of the source, shape (source.observations,), and of the target's other rows
        shared_influence = np.bincount(observation[is_shared], T_influence[is_shared], source.observations)
        own_influence = np.bincount(observation[~is_shared], T_influence[~is_shared])
        if prior_influence is None:
            curve, influence_on_prior = intervals.curve(embeddings), None
        else:
            curve = intervals.curve_with_prior(embeddings, prior.value / prior.purity)
            influence_on_prior = _sum_by_observation(source, prior_influence.positive, prior_influence.unlabeled)
        own_groups = None  # groups that are not in the source, but may be in another target: they correlate both ratios
        if target.groups is not None:
            own_groups = GroupInfluence.from_rows(target.groups, np.where(is_shared, 0.0, T_influence))
        return estimate, RatioInfluence(
            ratio=estimate.negative_ratio,
            curve=curve,
            prior=prior,
            source_influence=_sum_by_observation(source, P_influence, U_influence) + shared_influence,
            own_variance=float(own_influence @ own_influence),
            freedom=curve.freedom,
            prior_influence=influence_on_prior,
            group_influence=own_groups,
            observations=target.size,  # by which comparisons of small targets pool their variances
        )

    def estimate_embeddings(self, embeddings: Embeddings, details: Mapping[str, Any]) -> PriorEstimate:
        """Estimate the target prior from the mean embeddings of P, U and T, such as those of sketches, without a fit.

        π must be known, exactly or roughly, and there are no rows for a bootstrap. `details` are entries of the
        estimate's details that say how the embeddings were computed.
        """
        self._check_parameters()
        if not is_known(self.source_prior):
            raise InputError(
                f"source_prior is {self.source_prior!r}, but without rows a number, range or distribution is expected."
            )
        if self.interval == "bootstrap":
            raise InputError("interval='bootstrap' needs rows, but there are none here; use interval='delta'.")
        prior = with_label_error(self._known_prior(), self.label_error)
        return _Projection(embeddings, prior, details).estimate(self)

    def _project(self, target: Target) -> _Projection:
        """Embed the target, and combine its embeddings with π and a function that draws bootstrap replicates."""
        prior, estimated = self._prior_in_use()
        prior_influence = estimated.influence if estimated else None
        embeddings = self._kernel_fit.embed(target, self.statistic, self.pairs, prior=prior_influence)
        source, rng = self._kernel_fit.source, np.random.default_rng(self._kernel_fit.seed)

        def draw_replicates() -> tuple[Floats, Floats]:
            """Draw `n_bootstrap` Gram matrices, shape (replicates, 3, 3), and the change of π̂ in each replicate."""
            sample = source.sample(target)
            # a replicate takes a byte for each row, the number of times that the row was drawn
            batch_size = max(1, min(self.n_bootstrap, _BOOTSTRAP_BYTES // sum(embeddings.sizes)))
            grams, prior_changes = [], []
            for drawn in range(0, self.n_bootstrap, batch_size):
                replicates = min(batch_size, self.n_bootstrap - drawn)
                gram, change = source.bootstrap(sample, self.statistic, replicates, rng, prior_influence)
                grams.append(gram)
                prior_changes.append(change)
            return np.concatenate(grams), np.concatenate(prior_changes)

        details = kernel_details(self.kernel_) | {
            "bandwidth_by": self._kernel_fit.bandwidth_rule,
            "standardize": self.standardize,
            "precision": self.precision,
            "device": str(source.device),
            "pairs": self.pairs,
        }
        return _Projection(embeddings, prior, details, estimated, prior_influence, draw_replicates, rng)

    def _check_parameters(self) -> None:
        """Raise InputError for a setting that cannot be used; also checks interval, prior and pairs together."""
        super()._check_parameters()
        self._check_label_error()
        check_kernel_settings(self)
        check_choice("interval", self.interval, (*intervals.METHODS, None))
        if self.interval in intervals.BOUNDS:
            if not is_known(self.source_prior) or read_prior(self.source_prior).is_distributed:
                raise InputError(
                    f"interval={self.interval!r} needs a known source prior, not a distribution or an estimate; pass a "
                    "number or a range, or use interval='delta'."
                )
            if self.label_error is not None and read_label_error(self.label_error).is_distributed:
                raise InputError(
                    f"interval={self.interval!r} needs a known label_error, not a distribution; pass a number or a "
                    "range, or use interval='delta'."
                )
        if self.pairs is not None and self.interval not in ("delta", None):
            raise InputError(f"interval={self.interval!r} needs all pairs of rows; pass pairs=None.")


@dataclass(frozen=True, eq=False)
class _Projection:
    """Everything that an estimate of the target prior is computed from: mean embeddings and what is known of π."""

    embeddings: Embeddings
    prior: PriorKnowledge
    details: Mapping[str, Any]  # how the embeddings were computed
    estimated: EstimatedPrior | None = None  # the estimate of π; None where π is known
    prior_influence: PriorInfluence | None = None  # of the rows on that estimate; None where its error is not known so
    # draws bootstrap replicates: Gram matrices, shape (replicates, 3, 3), and changes of π̂, shape (replicates,)
    draw_replicates: Callable[[], tuple[Floats, Floats]] | None = None
    rng: np.random.Generator | None = None  # generator of the replicates

    def estimate(self, settings: TCPU) -> PriorEstimate:
        """Compute π̂′ = q − (q−π)R with its standard error and interval; NaN where P and U are not separated."""
        embeddings, prior, estimated, method = self.embeddings, self.prior, self.estimated, settings.interval
        pi, R, error, interval = prior.value, float("nan"), float("nan"), None
        if is_separated(embeddings):
            R = ratio(embeddings.gram)
            warn_of_label_error(prior)
            self._warn_if_out_of_range(settings.confidence)
            if estimated and method is not None:
                estimated.warn_of_error()
            # without influence values and without a distribution the error of an estimated π is unknown
            if not estimated or estimated.influence is not None or estimated.distribution is not None:
                # delta method; `prior.spread` is from a π and an ε that are independent of the rows
                error = float(np.hypot(intervals.standard_error(embeddings, pi, prior.purity), prior.spread(R)))
                interval = None if method is None else self._interval(method, settings.confidence, settings.n_bootstrap)
        elif method is not None:
            interval = Interval(0.0, 1.0, settings.confidence, "none")
        raw = prior.raw(R)  # not clipped to [0, 1]
        prior_error = prior.error or None
        if self.prior_influence:
            prior_error = float(np.hypot(prior.purity * sqrt(embeddings.prior_variance), prior.error))
        return PriorEstimate(
            value=float(np.clip(raw, 0, 1)),
            raw=raw,
            interval=interval,
            standard_error=error,
            source_prior=pi,
            negative_ratio=R,
            separation=float(separation(embeddings.gram)),
            method=settings.label,
            sizes=embeddings.sizes,
            source_prior_by=estimated.name if estimated else prior.by,
            details={
                **self.details,
                "statistic": settings.statistic,
                "scenario": settings.scenario,
                "source_prior_range": None if prior.is_point else list(prior.range),
                "source_prior_standard_error": prior_error,
                "shared_rows": embeddings.shared,
                **label_error_details(prior),
            },
        )

    def _warn_if_out_of_range(self, confidence: float) -> None:
        """Warn if the raw estimate q − (q−π)R is outside [0, 1] by more than its error, and P and U are separated."""
        embeddings = self.embeddings
        # a raw estimate outside [0, 1] at the highest π is outside at every other π too
        *others, (purity, highest) = self.prior.extremes_of_purity
        is_plausible = any(intervals.delta(embeddings, pi, confidence, q)[1] for q, pi in (*others, (purity, highest)))
        if not is_plausible and 2 * intervals.separation_error(embeddings) <= separation(embeddings.gram):
            raw = format_fixed(target_prior(embeddings.gram, highest, purity), 3)
            error = intervals.standard_error(embeddings, highest, purity)
            warn(
                f"The raw estimate {raw} lies outside [0, 1] by more than its sampling error ({error:.2g}); check the "
                f"source prior ({self.prior}) and whether the classes look the same in source and target.",
                OutOfRangeWarning,
            )

    def _interval(self, method: str, confidence: float, n_bootstrap: int) -> Interval:
        """Compute the interval of π′ by a `method` of `intervals.METHODS`, for what is known of π and label errors."""
        prior, interval_at = self.prior, self._interval_given_prior(method, confidence)
        if not prior.is_distributed:  # numbers, and ranges: the union of the intervals at their ends
            (purity, pi), *corners = prior.corners(prior.value)
            union = interval_at(pi, purity)
            for purity, pi in corners:
                if union.width < 1:  # otherwise it is [0, 1] already, of which a bound would warn again
                    at_corner = interval_at(pi, purity)
                    union = replace(union, low=min(union.low, at_corner.low), high=max(union.high, at_corner.high))
            return union
        if method == "bootstrap" and self.rng is not None and len(prior.cases) == 1:  # no range
            return interval_at(*prior.draw_shares(n_bootstrap, self.rng))
        curve = intervals.curve(self.embeddings)
        if self.prior_influence is not None:
            curve = intervals.curve_with_prior(self.embeddings, prior.value / prior.purity)
        low, high = prior.interval(curve, confidence)
        # the estimate at the mean of π, which can lie beyond a quantile of a skew distribution
        value = float(np.clip(target_prior(self.embeddings.gram, prior.value, prior.purity), 0, 1))
        return Interval(min(low, value), max(high, value), confidence, "delta")

    def _interval_given_prior(self, method: str, confidence: float) -> Callable[[Any, Any], Interval]:
        """Return a function of π and q that computes the interval; that of the bootstrap also takes arrays of them."""
        gram = self.embeddings.gram
        if method == "delta":
            return lambda pi, purity: intervals.delta(self.embeddings, pi, confidence, purity)[0]
        if method != "bootstrap" or self.draw_replicates is None:
            bound = intervals.paper_bound if method == "paper-bound" else intervals.sharp_bound
            return lambda pi, purity: bound(self.embeddings, pi, confidence, purity)
        replicate_grams, prior_changes = self.draw_replicates()

        def bootstrap(pi: Any, purity: Any) -> Interval:
            """Compute the percentile interval; an estimate of π from the same rows changes with each replicate."""
            priors = pi
            if self.prior_influence is not None:  # which is of κ = π/q
                priors = purity * np.clip(pi / purity + prior_changes, 0.0, 1 - LEAST_PRIOR)
            value = float(np.clip(target_prior(gram, float(np.mean(pi)), float(np.mean(purity))), 0, 1))
            return intervals.bootstrap(replicate_grams, priors, confidence, value, purity)

        return bootstrap


def _sum_by_observation(source: SourceEmbedding, P_values: Floats, U_values: Floats) -> Floats:
    """Sum values of the rows of P and of U over each observation of the source; returns shape (observations,)."""
    P_sums = np.bincount(source.positive.observation, P_values, source.observations)
    return np.asarray(P_sums + np.bincount(source.unlabeled.observation, U_values, source.observations))
