"""The ratio of the shares of negatives by projection of mean embeddings, which needs no source prior.

P, U, T are the positive, the unlabelled (population) and the target sample, of m, n and n′ rows; a = μ_U − μ_P,
b = μ_T − μ_P, and under label shift b = Ra with R = (1−π′)/(1−π).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from priorshift.arrays import Index
from priorshift.base import PUEstimator
from priorshift.embedding.gpu_sums import Device, choose_device
from priorshift.embedding.gram import Embeddings, SourceEmbedding, ratio, separation
from priorshift.embedding.random_features import RandomFeatures, check_features, uses_random_features
from priorshift.embedding.samples import BandwidthCurve, choose_bandwidth
from priorshift.errors import InputError, WeakSeparationWarning
from priorshift.formatting import format_short
from priorshift.inference import intervals
from priorshift.io.observations import PriorInfluence, row_codes
from priorshift.kernels import Gaussian, Laplace
from priorshift.kernels.kernel import make_kernel
from priorshift.problem import Source, Target
from priorshift.results import Interval, NegativeRatio
from priorshift.warning_records import warn

_NO_SEPARATION = 1e-12  # relative to the kernel's scale: a separation that rounding cannot tell from zero


@dataclass(frozen=True, eq=False)
class KernelFit:
    """The source embedded by a kernel, computed once for all targets: what KernelRatio and TCPU fit."""

    source: SourceEmbedding
    bandwidths: BandwidthCurve | None  # with bandwidth="variance"
    bandwidth_rule: str | None  # None for a bandwidth that was given, or a kernel without one
    seed: Any  # of what is random in an estimate

    @classmethod
    def from_source(cls, settings: Any, source: Source, rng: np.random.Generator, *, exact: bool = False) -> KernelFit:
        """Choose kernel, device, bandwidth and, for many rows, random features; compute kernel sums among source rows.

        `settings` is an estimator with KernelRatio's parameters; `exact` rules out random features under "auto".
        """
        distinct_rows = source.scaling.rows(source.table.values, _distinct_rows(source))  # of U, scaled
        kernel = make_kernel(settings.kernel, settings.bandwidth, distinct_rows, source.scaling.features)
        by_rule = isinstance(settings.bandwidth, str) and isinstance(settings.kernel, str)
        rule = settings.bandwidth if by_rule and kernel.bandwidth is not None else None
        rows = len(source.labeled)
        device = choose_device(settings.device, kernel, rows)
        embedding = SourceEmbedding.from_source(source, kernel, settings.precision, device)
        bandwidths = None
        if rule == "variance" and isinstance(kernel, (Gaussian, Laplace)):
            bandwidths = choose_bandwidth(kernel, embedding.positive, embedding.unlabeled)
            kernel = replace(kernel, bandwidth=bandwidths.chosen)
            embedding = replace(embedding, kernel=kernel)
        # a callable device computes sums over all pairs, and few pairs are fast without features
        needs_pairs = exact or settings.pairs is not None or callable(device)
        draws_features = uses_random_features(settings.embedding, kernel, rows, str(device), exact=needs_pairs)
        if draws_features and not isinstance(kernel, RandomFeatures):
            used = source.scaling.factor != 0  # constant columns have the factor 0
            # without a random_state the features are always the same, so that the estimate is too
            feature_rng = np.random.default_rng(0) if settings.random_state is None else rng
            features = RandomFeatures.draw(kernel, int(used.sum()), settings.features, feature_rng)
            embedding = replace(embedding, kernel=features.with_unused_columns(used))
        if settings.pairs is None:
            embedding.source_sums  # noqa: B018 (computed now, kept for every target)
        # of subsampled pairs and the bootstrap; chosen at fit, so that `estimate` gives the same answer each time
        seed = int(rng.integers(2**62)) if settings.random_state is None else settings.random_state
        return cls(embedding, bandwidths, rule, seed)

    def embed(
        self,
        target: Target,
        statistic: Literal["unbiased", "plug-in"],
        pairs: int | None,
        *,
        prior: PriorInfluence | None = None,
        target_norm: bool = False,
    ) -> Embeddings:
        """Embed a target with the source, from all pairs of rows, from random features or from some `pairs`.

        `prior` is the influence of the rows on an estimate of π; `target_norm` also computes ⟨μ_T, μ_T⟩.
        """
        sample = self.source.sample(target)
        if pairs is None:
            return self.source.embed(sample, statistic, target_norm=target_norm, prior=prior)
        rng = np.random.default_rng(self.seed)
        return self.source.embed_pairs(sample, pairs, rng, target_norm=target_norm, prior=prior)


def ratio_from_embeddings(embeddings: Embeddings, confidence: float) -> NegativeRatio:
    """Estimate R with Fieller's interval; NaN and a warning where the separation D = ‖μ_U − μ_P‖² is not positive."""
    D, nan = float(separation(embeddings.gram)), float("nan")
    if not is_separated(embeddings):  # every ratio is possible
        return NegativeRatio(nan, nan, Interval(0.0, np.inf, confidence, "none"), D, embeddings.sizes)
    error, interval = intervals.ratio_error_and_interval(embeddings, confidence)
    return NegativeRatio(ratio(embeddings.gram), error, interval, D, embeddings.sizes)


def is_separated(embeddings: Embeddings) -> bool:
    """Check that P and U are separated, so that R is defined; warn where they are not, or hardly."""
    (m, n, _), D = embeddings.sizes, float(separation(embeddings.gram))
    scale = float(np.nanmax(np.abs(embeddings.gram)))  # ⟨μ_T, μ_T⟩ may be NaN
    if not _NO_SEPARATION * scale < D:  # `not <` instead of `>=`, so that NaN counts as no separation
        warn(
            f"There is no estimate: the separation of {m} positive from {n} unlabeled rows is {format_short(D)}, not "
            "positive, so every prior in [0, 1] is possible. Add positives, or features that separate the classes.",
            WeakSeparationWarning,
        )
        return False
    error = intervals.separation_error(embeddings)
    if 2 * error > D:
        warn(
            f"Positives and the population are hardly apart: separation {D:.2g}, standard error {error:.2g} ({m} "
            f"positive, {n} unlabeled rows). Rely on the interval, or add rows or features that separate the classes.",
            WeakSeparationWarning,
        )
    return True


def check_kernel_settings(settings: Any) -> None:
    """Raise InputError if an estimator's `features`, or its `pairs` together with its `statistic`, cannot be used."""
    check_features(settings.features)
    if settings.pairs is not None and settings.statistic != "unbiased":
        raise InputError("pairs gives an incomplete U-statistic, which is unbiased; set statistic='unbiased'.")


def _distinct_rows(source: Source) -> Index:
    """Return the numbers of the distinct rows of U, so that a median distance omits the zeros between copies."""
    rows = source.population  # row numbers of U
    copied = np.flatnonzero(source.copies[rows] > 1)  # `copies` is how often each row occurs
    if not len(copied):
        return rows
    _, first = np.unique(row_codes(source.table.values[rows[copied]]), return_index=True)
    return np.delete(rows, np.delete(copied, first))  # delete all but the first of each set of copies


class KernelRatio(PUEstimator):
    """Ratio of the shares of negatives in target and source, R = (1−π′)/(1−π), without a source prior.

    :class:`TCPU` is based on it: π′ = 1 − (1−π)R for any π.

    Parameters
    ----------
    kernel : str, kernel or callable
        The kernel. All parameters are as in :class:`TCPU`.
    bandwidth : float or str
    statistic, scenario : str
    standardize : bool
    confidence : float
        Confidence level of the interval, which is Fieller's. Default 0.95.
    pairs : int or None
    precision : str
    device : str or callable
    embedding : str
    features : int
    verbose : bool
    random_state : int, Generator or None

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its bandwidth.
    bandwidths_ : BandwidthCurve or None
        With ``bandwidth="variance"``: the ``bandwidths`` that were tried, the expected ``standard_errors`` of R, and
        the ``chosen`` bandwidth.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Mielniczuk, Rejchel and Teisseyre (2026), as in :class:`TCPU`.

    Examples
    --------
    >>> from priorshift import KernelRatio, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.2, random_state=0)
    >>> round(KernelRatio().fit(s.X, s.y, shared=s.ids).negative_ratio(s.target).value, 1)  # no shift
    1.0
    """

    keeps_rows = True  # of P and U, for the kernel's sums with a target
    takes_weights = True
    settings_of_estimate: ClassVar[frozenset[str]] = frozenset({"verbose", "statistic", "confidence", "pairs"})

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        bandwidth: str | float = "dimension",
        statistic: Literal["unbiased", "plug-in"] = "unbiased",
        scenario: Literal["case-control", "censoring"] = "case-control",
        standardize: bool = True,
        confidence: float = 0.95,
        pairs: int | None = None,
        precision: Literal["float64", "float32"] = "float64",
        device: Device = "auto",
        embedding: Literal["auto", "exact", "random-features"] = "auto",
        features: int = 512,
        verbose: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.statistic = statistic
        self.scenario = scenario
        self.standardize = standardize
        self.confidence = confidence
        self.pairs = pairs
        self.precision = precision
        self.device = device
        self.embedding = embedding
        self.features = features
        self.verbose = verbose
        self.random_state = random_state

    def negative_ratio(self, X_target: Any, weights: Any = None, groups: Any = None) -> NegativeRatio:
        """Estimate R = (1−π′)/(1−π), the ratio of the shares of negatives.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            Unlabelled rows with the columns of the source.
        weights, groups : None or array-like of shape (rows,)
            As in `fit`, for the target's rows. A group with the same name as one of the source is the same group.

        Returns
        -------
        NegativeRatio
            With ``value`` NaN and a warning where the separation is not positive.

        Examples
        --------
        >>> from priorshift import KernelRatio, simulate
        >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, random_state=0)
        >>> print(KernelRatio().fit(s.X, s.y, shared=s.ids).negative_ratio(s.target))  # 0.4/0.8 is the truth
        ratio of negatives 0.493, 95% interval 0.450 to 0.535
        """
        target = self.read_target(X_target, weights=weights, groups=groups)
        return ratio_from_embeddings(self._kernel_fit.embed(target, self.statistic, self.pairs), self.confidence)

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        """Embed the source by the kernel."""
        self._kernel_fit = KernelFit.from_source(self, source, rng)
        self.kernel_, self.bandwidths_ = self._kernel_fit.source.kernel, self._kernel_fit.bandwidths

    def _check_parameters(self) -> None:
        """Raise InputError for a setting that cannot be used; also checks those of the kernel sums."""
        super()._check_parameters()
        check_kernel_settings(self)
