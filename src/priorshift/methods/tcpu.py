"""From mean embeddings and what is known of π to an estimate of the target prior, with its interval.

Whoever made the embeddings, π̂′ = 1 − (1−π)R and how sure it is are made of them here.

TCPU: the target prior by projection of mean embeddings (Mielniczuk, Rejchel and Teisseyre 2026).

Letters, once: P, U, T are the positive, the unlabelled (population) and the target sample, of m, n and n′ rows;
π is the source prior, π′ the target prior; a = μ_U − μ_P, b = μ_T − μ_P."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from priorshift.arrays import Floats
from priorshift.base import TargetPriorEstimator
from priorshift.embedding.cuda import Device
from priorshift.embedding.gram import Embeddings, objective, ratio, separation, target_prior
from priorshift.embedding.random_features import described
from priorshift.errors import InputError, OutOfRangeWarning
from priorshift.formatting import format_fixed
from priorshift.inference import intervals
from priorshift.inference.joint import GroupInfluence, RatioInfluence
from priorshift.inference.prior_knowledge import DistributionPrior, PointPrior, PriorKnowledge, RangePrior, read_prior
from priorshift.io.parameters import check_choice, is_known
from priorshift.methods.kernel_ratio import KernelRatio
from priorshift.problem import Source, Target
from priorshift.results import Interval, PriorEstimate
from priorshift.source_prior.estimated import LEAST_PRIOR, EstimatedPrior, SourcePriorMixin, estimate_source_prior
from priorshift.warning_records import warn

_REPLICATE_BYTES = 2**25  # of bootstrap counts held at a time


@dataclass(frozen=True, eq=False)
class Replicates:
    """How a bootstrap is drawn.

    Attributes
    ----------
    count : int
        Replicates.
    draw : callable
        Gives so many Gram matrices, and how far each replicate moves an estimated π.
    rng : Generator
        What else is drawn.
    """

    count: int
    draw: Callable[[int], tuple[Floats, Floats]]
    rng: np.random.Generator


def projected_prior(
    embeddings: Embeddings,
    prior: PriorKnowledge,
    interval: str | None,
    confidence: float,
    *,
    apart: bool = True,
    estimated: EstimatedPrior | None = None,
    replicates: Replicates | None = None,
) -> PriorEstimate:
    """Estimate the target prior from mean embeddings, π̂′ = 1 − (1−π)R.

    Parameters
    ----------
    embeddings : Embeddings
        Of the three samples.
    prior : PriorKnowledge
        π, as known or as estimated.
    interval : {"delta", "bootstrap", "paper-bound", "sharp-bound"} or None
        As in :class:`TCPU`.
    confidence : float
        Of the interval.
    apart : bool
        Whether there is a separation to divide by.
    estimated : EstimatedPrior or None
        What was asked for π, where it is an estimate.
    replicates : Replicates or None
        Of the bootstrap.

    Returns
    -------
    PriorEstimate
        Without the name of a method; its `details` are those of π and of shared rows.
    """
    pi, influence = prior.value, estimated.influence if estimated else None
    nan = float("nan")
    R, error = ratio(embeddings.gram), nan
    if apart:
        made = _interval(embeddings, prior, interval, confidence, estimated, replicates)
        if not (estimated and influence is None and isinstance(prior, PointPrior)):  # whose error is not known
            error = float(np.hypot(intervals.standard_error(embeddings, pi), R * prior.error))
    else:
        R = nan
        made = None if interval is None else Interval(0.0, 1.0, confidence, "none")
    raw = 1 - (1 - pi) * R
    return PriorEstimate(
        value=float(np.clip(raw, 0, 1)),
        raw=raw,
        interval=made,
        standard_error=error,
        source_prior=pi,
        negative_ratio=R,
        separation=float(separation(embeddings.gram)),
        method="",
        sizes=embeddings.sizes,
        source_prior_by=estimated.name if estimated else prior.by,
        details={
            "source_prior_range": None if isinstance(prior, PointPrior) else list(prior.range),
            "source_prior_standard_error": sqrt(embeddings.prior_variance) if influence else prior.error or None,
            "shared_rows": embeddings.shared,
        },
    )


def _interval(
    embeddings: Embeddings,
    prior: PriorKnowledge,
    interval: str | None,
    confidence: float,
    estimated: EstimatedPrior | None,
    replicates: Replicates | None,
) -> Interval | None:
    most = prior.range[1]  # the largest π makes the largest raw estimate; one above 1 is so for every π
    _, plausible = intervals.delta(embeddings, most, confidence)
    if not plausible and 2 * intervals.separation_error(embeddings) <= separation(embeddings.gram):
        warn(
            f"The raw estimate {format_fixed(target_prior(embeddings.gram, most), 3)} lies outside [0, 1] by more than "
            f"its sampling error ({intervals.standard_error(embeddings, most):.2g}); check the source prior ({prior}) "
            "and whether the classes look the same in source and target.",
            OutOfRangeWarning,
        )
    if interval is None:
        return None
    if estimated:
        estimated.warn_of_error()
        if estimated.influence is None and isinstance(prior, PointPrior):
            return None
    given = _interval_given_prior(embeddings, interval, confidence, estimated, replicates)
    if isinstance(prior, PointPrior):
        return given(prior.value)
    if isinstance(prior, RangePrior):
        made = given(prior.low)
        other = given(prior.high) if made.width < 1 else made  # nothing is wider, and no warning needed twice
        return replace(made, low=min(made.low, other.low), high=max(made.high, other.high))
    if replicates is not None and interval == "bootstrap":
        return given(prior.draw(replicates.count, replicates.rng))
    low, high = prior.interval(intervals.curve(embeddings), confidence)
    value = _clipped(embeddings, prior.value)  # a mean, which a skew distribution can have beyond a quantile
    return Interval(min(low, value), max(high, value), confidence, "delta")


def _interval_given_prior(
    embeddings: Embeddings,
    interval: str,
    confidence: float,
    estimated: EstimatedPrior | None,
    replicates: Replicates | None,
) -> Callable[[Any], Interval]:
    """The interval that was asked for, as a function of π; the bootstrap's takes one π for each replicate too."""
    if interval == "delta":
        return lambda pi: intervals.delta(embeddings, pi, confidence)[0]
    if replicates is None or interval != "bootstrap":
        bound = intervals.paper_bound if interval == "paper-bound" else intervals.sharp_bound
        return lambda pi: bound(embeddings, pi, confidence)
    batch = max(1, min(replicates.count, _REPLICATE_BYTES // sum(embeddings.sizes)))
    batches = [min(batch, replicates.count - k) for k in range(0, replicates.count, batch)]
    grams, moved = (np.concatenate(part) for part in zip(*map(replicates.draw, batches), strict=True))

    def bootstrap(pi: Any) -> Interval:
        known = estimated is None or estimated.influence is None
        priors = pi if known else np.clip(pi + moved, 0.0, 1 - LEAST_PRIOR)
        return intervals.bootstrap(grams, priors, confidence, _clipped(embeddings, np.mean(pi)))

    return bootstrap


def _clipped(embeddings: Embeddings, source_prior: Any) -> float:
    """The estimate of π′ within [0, 1]."""
    return float(np.clip(target_prior(embeddings.gram, source_prior), 0, 1))


class TCPU(SourcePriorMixin, KernelRatio, TargetPriorEstimator):
    """Target prior from positive-unlabelled source data under label shift.

    Parameters
    ----------
    source_prior : float, (low, high), distribution, estimator or None
        π, the share of positives in the source population. A number strictly between 0 and 1 is taken as known. With a
        range within [0, 1] the interval holds for every π in it; the estimate is that of the middle, and so is its
        standard error, which is of sampling alone. With a frozen distribution of scipy.stats within [0, 1], such as
        ``stats.beta(37.5, 213.5)`` after 37 positives in a survey of 250, interval and standard error include its
        spread; the estimate is that of the mean. An estimator is asked at `fit` (anything with ``fit(X, y)`` and then
        ``prior_``); None asks :class:`KM2`. Where R is all that is wanted, :class:`KernelRatio` asks nobody.
    kernel : {"gaussian", "laplace", "energy"}, kernel or callable
        A name, an object such as ``kernels.Laplace(3.0)``, or a function k(X, Y) that gives the matrix of all pairs.
    bandwidth : float or {"dimension", "median", "variance"}
        h in exp(−‖x−y‖²/(2h²)). ``"dimension"`` is the paper's τ = 1/p, ``"median"`` the median distance
        between rows of the population sample. ``"variance"`` is, of multiples of that distance, the one under which R
        is expected to vary least, found at `fit` from the source alone. A kernel object brings its own.
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
        See :mod:`priorshift.inference.intervals`.
    confidence : float
        Of the interval.
    pairs : int or None
        Use this many random pairs in each block of the kernel matrix instead of all (an incomplete
        U-statistic).
    precision : {"float64", "float32"}
        Type of the kernel tiles; sums over tiles are always kept in double precision.
    device : str or callable
        Where kernel sums are computed: "cpu", or a GPU such as "cuda", for which torch is needed and `precision` is
        not asked (a Gaussian kernel's sums have an error of less than 1e-6). "auto" takes a GPU where torch sees one
        and there are 30,000 rows and more; ``details["device"]`` says what it took. A callable computes them elsewhere,
        as :mod:`priorshift.distributed` does.
    embedding : {"auto", "exact", "random-features"}
        Whether kernel sums are over all pairs of rows, or by `features` random features, in a time that is linear in
        rows. Random features are a kernel of their own, close to the one asked for: the estimate is consistent with any
        number of them, and its interval holds; `precision` is not asked. "auto" is exact up to a source of 100,000 rows
        (4 million on a GPU), of the Laplace kernel 30,000 (1 million), and for kernels that have none;
        ``details["embedding"]`` says what it took.
    features : int
        Random features, two for each frequency.
    n_bootstrap : int
        Replicates of the bootstrap.
    verbose : bool
        Whether a terminal shows how far long work is.
    random_state : int, Generator or None
        Decides the bootstrap's draws, the sampled pairs and what is random in the estimator of π, such as the rows that
        KM2 thins large data to, where it was given no random_state; and the random features, which are those of 0 for
        None. Nothing else.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two values of y; the larger one means labelled positive.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    kernel_ : Kernel
        The kernel with the bandwidth that was found, or random features of it.
    bandwidths_ : BandwidthCurve or None
        With ``bandwidth="variance"``: the ``bandwidths`` that were tried, the ``standard_errors`` of R that were
        predicted for them, and the one ``chosen``.
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
    >>> print(tcpu.set_params(source_prior=(0.15, 0.25)).estimate(s.target))
    target prior 0.585, 95% interval 0.510 to 0.656 (TCPU, source prior 0.15 to 0.25)
    """

    label = "TCPU"
    takes_uncertain_prior = True
    settings_of_estimate: ClassVar[frozenset[str]] = KernelRatio.settings_of_estimate | {
        "source_prior",
        "interval",
        "n_bootstrap",
    }

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
        device: Device = "auto",
        embedding: Literal["auto", "exact", "random-features"] = "auto",
        features: int = 512,
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
            device=device,
            embedding=embedding,
            features=features,
            verbose=verbose,
            random_state=random_state,
        )
        self.source_prior = source_prior
        self.interval = interval
        self.n_bootstrap = n_bootstrap

    def objective(
        self, X_target: Any, gamma: ArrayLike, weights: Any = None, groups: Any = None
    ) -> NDArray[np.float64]:
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
        embeddings, _ = self._embed(self._embedding.sample(target), target_norm=True)
        return objective(embeddings.gram, self._prior_in_use()[0].value, gamma)

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        super()._fit(source, rng)
        if self.interval in ("paper-bound", "sharp-bound"):
            intervals.check_bounded(self.kernel_, self.interval)
            samples = self._embedding.positive, self._embedding.unlabeled
            intervals.check_even(all(sample.is_even for sample in samples), self.interval)
        self._set_source_prior(lambda: estimate_source_prior(self.source_prior, source, self.random_state))

    def _prior_in_use(self) -> tuple[PriorKnowledge, EstimatedPrior | None]:
        """π as it is set now, and what was asked for it."""
        found = self._answer()
        if found is None:
            return self._knowledge(), None
        # an influence adds up with that on R, row by row; a distribution is taken as one from elsewhere
        return PointPrior(found.value) if found.distribution is None else DistributionPrior(found.distribution), found

    def _estimate(self, target: Target) -> PriorEstimate:
        return self._estimate_from(target)[0]

    def _estimate_jointly(self, target: Target) -> tuple[PriorEstimate, RatioInfluence | None]:
        estimate, embeddings, prior, estimated = self._estimate_from(target)
        known = estimate.interval is not None and np.isfinite(estimate.standard_error)
        if not known or embeddings.influence is None:
            return estimate, None
        of_P, of_U, of_T = intervals.ratio_influence(embeddings)
        influence = estimated.influence if estimated else None
        curve = intervals.curve_with_prior(embeddings, prior.value) if influence else intervals.curve(embeddings)
        number = self._embedding.sample(target).observation
        with_source = number < self._embedding.observations
        own = np.bincount(number[~with_source], of_T[~with_source])
        return estimate, RatioInfluence(
            estimate.negative_ratio,
            curve,
            prior,
            self._of_observations(of_P, of_U)
            + np.bincount(number[with_source], of_T[with_source], self._embedding.observations),
            float(own @ own),
            curve.freedom,
            self._of_observations(influence.positive, influence.unlabeled) if influence else None,
            None
            if target.groups is None
            else GroupInfluence.from_rows(target.groups, np.where(with_source, 0.0, of_T)),
            target.size,
        )

    def _of_observations(self, of_P: Floats, of_U: Floats) -> Floats:
        """What rows of P and of U do, added up where they are one observation."""
        samples = (self._embedding.positive, of_P), (self._embedding.unlabeled, of_U)
        sums = [np.bincount(sample.observation, moves, self._embedding.observations) for sample, moves in samples]
        return np.asarray(sums[0] + sums[1])

    def estimate_embeddings(self, embeddings: Embeddings, details: Mapping[str, Any]) -> PriorEstimate:
        """Estimate the target prior from mean embeddings that were made elsewhere, such as by sketches.

        No fit is needed, but π must be known, exactly or roughly, and there are no rows to draw a bootstrap from.

        Parameters
        ----------
        embeddings : Embeddings
            Of the three samples, by the `statistic` and the `scenario` that are set.
        details : mapping
            How they were made.

        Returns
        -------
        PriorEstimate
            As of `estimate`.
        """
        self._check_parameters()
        if not is_known(self.source_prior):
            raise InputError(
                f"source_prior is {self.source_prior!r}, but to estimate it takes the rows of the source; pass a "
                "number, a range or a distribution."
            )
        if self.interval == "bootstrap":
            raise InputError("interval='bootstrap' draws rows, but there are none here; use interval='delta'.")
        return self._projected(embeddings, self._knowledge(), None, None, details)

    def _estimate_from(self, target: Target) -> tuple[PriorEstimate, Embeddings, PriorKnowledge, EstimatedPrior | None]:
        """The estimate, and what it was made of."""
        prior, estimated = self._prior_in_use()
        influence = estimated.influence if estimated else None
        sample = self._embedding.sample(target)
        embeddings, rng = self._embed(sample, influence)

        def draw(count: int) -> tuple[Floats, Floats]:
            return self._embedding.bootstrap(sample, self.statistic, count, rng, influence)

        details = described(self.kernel_) | {
            "bandwidth_by": self._rule,
            "standardize": self.standardize,
            "precision": self.precision,
            "device": str(self._embedding.device),
            "pairs": self.pairs,
        }
        replicates = Replicates(self.n_bootstrap, draw, rng)
        return self._projected(embeddings, prior, estimated, replicates, details), embeddings, prior, estimated

    def _projected(
        self,
        embeddings: Embeddings,
        prior: PriorKnowledge,
        estimated: EstimatedPrior | None,
        replicates: Replicates | None,
        details: Mapping[str, Any],
    ) -> PriorEstimate:
        apart = self._is_apart(embeddings)
        how = self.interval, self.confidence
        made = projected_prior(embeddings, prior, *how, apart=apart, estimated=estimated, replicates=replicates)
        settings = {"statistic": self.statistic, "scenario": self.scenario}
        return replace(made, method=self.label, details={**details, **settings, **made.details})

    def _needs_exact(self) -> bool:
        return super()._needs_exact() or self.interval in ("paper-bound", "sharp-bound")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("interval", self.interval, (*intervals.METHODS, None))
        known = is_known(self.source_prior) and not isinstance(read_prior(self.source_prior), DistributionPrior)
        if not known and self.interval in ("paper-bound", "sharp-bound"):
            what = "a distribution" if is_known(self.source_prior) else "to be estimated"
            raise InputError(
                f"interval={self.interval!r} is proved for a known source prior, but it is {what}; "
                "pass source_prior as a number or a range, or use interval='delta'."
            )
        if self.pairs is not None and self.interval not in ("delta", None):
            raise InputError(
                f"interval={self.interval!r} needs all pairs of rows; leave pairs=None or use interval='delta'."
            )
