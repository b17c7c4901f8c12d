"""The ratio of the shares of negatives by projection of mean embeddings: what needs no source prior.

Letters, once: P, U, T are the positive, the unlabelled (population) and the target sample, of m, n and n′ rows;
a = μ_U − μ_P, b = μ_T − μ_P, and under label shift b = Ra with R = (1−π′)/(1−π).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from priorshift.arrays import Index
from priorshift.base import PUEstimator
from priorshift.embedding.bandwidth import BandwidthCurve, least_variance
from priorshift.embedding.cuda import Device, choose_device
from priorshift.embedding.gram import Embeddings, SourceEmbedding, ratio, separation
from priorshift.embedding.incomplete import embed_pairs
from priorshift.embedding.random_features import RandomFeatures, check_features, uses_random_features
from priorshift.embedding.samples import EmbeddedSample
from priorshift.errors import InputError, WeakSeparationWarning
from priorshift.formatting import format_short
from priorshift.inference import intervals
from priorshift.io.observations import PriorInfluence, row_codes
from priorshift.kernels import Gaussian, Laplace, make_kernel
from priorshift.problem import Source
from priorshift.results import Interval, NegativeRatio
from priorshift.warning_records import warn

_NO_SEPARATION = 1e-12  # of the kernel's scale: what rounding leaves of a separation that is zero


class KernelRatio(PUEstimator):
    """Ratio of the shares of negatives in target and source, R = (1−π′)/(1−π), without a source prior.

    It is what :class:`TCPU` rests on: π′ = 1 − (1−π)R for any π.

    Parameters
    ----------
    kernel : str, kernel or callable
        This and what is not described here are as in :class:`TCPU`.
    bandwidth : float or str
    statistic, scenario : str
    standardize : bool
    confidence : float
        Of the interval, which is Fieller's.
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
        The kernel with the bandwidth that was found.
    bandwidths_ : BandwidthCurve or None
        With ``bandwidth="variance"``: the ``bandwidths`` that were tried, the ``standard_errors`` of R that were
        predicted for them, and the one ``chosen``.
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
    settings_of_estimate: ClassVar[frozenset[str]] = PUEstimator.settings_of_estimate | {
        "statistic",
        "confidence",
        "pairs",
    }

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
            As in `fit`, of the target's rows. A group of the source that stands here again is the same group.

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
        return self.ratio_of_embeddings(self.embed(X_target, weights=weights, groups=groups))

    def embed(self, X_target: Any, weights: Any = None, groups: Any = None) -> Embeddings:
        """Give the mean embeddings of the three samples, which :mod:`priorshift.inference.intervals` are functions of.

        Parameters
        ----------
        X_target : array-like or data frame of shape (rows, features)
            As in `negative_ratio`.
        weights, groups : None or array-like of shape (rows,)
            As in `negative_ratio`.

        Returns
        -------
        Embeddings
        """
        target = self.read_target(X_target, weights=weights, groups=groups)
        return self._embed(self._embedding.sample(target))[0]

    def ratio_of_embeddings(self, embeddings: Embeddings) -> NegativeRatio:
        """Estimate R from mean embeddings that were made elsewhere, such as by sketches; no fit is needed.

        Parameters
        ----------
        embeddings : Embeddings
            Of the three samples.

        Returns
        -------
        NegativeRatio
            As of `negative_ratio`.
        """
        self._check_parameters()
        D, nan = float(separation(embeddings.gram)), float("nan")
        if not self._is_apart(embeddings):
            return NegativeRatio(nan, nan, Interval(0.0, np.inf, self.confidence, "none"), D, embeddings.sizes)
        error, interval = intervals.ratio(embeddings, self.confidence)
        return NegativeRatio(ratio(embeddings.gram), error, interval, D, embeddings.sizes)

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        """The kernel sums among source rows are computed here, once."""
        population = source.scaling.rows(source.table.values, _distinct(source))
        self.kernel_ = make_kernel(self.kernel, self.bandwidth, population, source.scaling.features)
        by_rule = (
            isinstance(self.bandwidth, str) and isinstance(self.kernel, str) and self.kernel_.bandwidth is not None
        )
        self._rule = self.bandwidth if by_rule else None
        device = choose_device(self.device, self.kernel_, len(source.labeled))
        self._embedding = SourceEmbedding.from_source(source, self.kernel_, self.precision, device)
        self.bandwidths_: BandwidthCurve | None = None
        if self._rule == "variance" and isinstance(self.kernel_, (Gaussian, Laplace)):
            self.bandwidths_ = least_variance(self.kernel_, self._embedding.positive, self._embedding.unlabeled)
            self.kernel_ = replace(self.kernel_, bandwidth=self.bandwidths_.chosen)
            self._embedding = replace(self._embedding, kernel=self.kernel_)
        if self._takes_features(len(source.labeled), device):
            columns = source.scaling.factor != 0
            # without a random_state the draw is always the same: nothing else is random in an estimate
            drawn = RandomFeatures.draw(
                self.kernel_,
                int(columns.sum()),
                self.features,
                np.random.default_rng(0) if self.random_state is None else rng,
            )
            self.kernel_ = drawn.among(columns)
            self._embedding = replace(self._embedding, kernel=self.kernel_)
        self._entropy = self._seed(rng)
        if self.pairs is None:
            self._embedding.source_sums  # noqa: B018 (computed now, kept for every target)

    def _takes_features(self, rows: int, device: Device) -> bool:
        if isinstance(self.kernel_, RandomFeatures):  # brought by the user
            return False
        exact = self._needs_exact() or callable(device)  # which is brought for the sake of all pairs
        return uses_random_features(self.embedding, self.kernel_, rows, str(device), exact=exact)

    def _needs_exact(self) -> bool:
        """Whether a setting rests on the kernel itself; few pairs of it are fast as they are."""
        return self.pairs is not None

    def _embed(
        self, target: EmbeddedSample, prior: PriorInfluence | None = None, *, target_norm: bool = False
    ) -> tuple[Embeddings, np.random.Generator]:
        rng, source = np.random.default_rng(self._entropy), self._embedding
        if self.pairs is None:
            return source.embed(target, self.statistic, target_norm=target_norm, prior=prior), rng
        return embed_pairs(source, target, self.pairs, rng, target_norm=target_norm, prior=prior), rng

    def _is_apart(self, embeddings: Embeddings) -> bool:
        """Whether there is a separation to divide by; a warning says so where there is none, or hardly any."""
        (m, n, _), D = embeddings.sizes, float(separation(embeddings.gram))
        scale = float(np.nanmax(np.abs(embeddings.gram)))
        if not _NO_SEPARATION * scale < D:
            warn(
                f"No estimate: the separation of {m} positive from {n} unlabeled rows is {format_short(D)}, not "
                "positive, so the data cannot tell positives from the source population; every prior in [0, 1] is "
                "possible. Collect more positives, or features that tell the classes apart.",
                WeakSeparationWarning,
            )
            return False
        error = intervals.separation_error(embeddings)
        if 2 * error > D:
            warn(
                f"Positives and the source population are hardly apart: separation {D:.2g} with a standard error of "
                f"{error:.2g} ({m} positive, {n} unlabeled rows). The estimate "
                "rests on noise; rely on the interval, or collect rows or features that tell the classes apart.",
                WeakSeparationWarning,
            )
        return True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_features(self.features)
        if self.pairs is not None and self.statistic != "unbiased":
            raise InputError("pairs gives an incomplete U-statistic, which is unbiased; set statistic='unbiased'.")


def _distinct(source: Source) -> Index:
    """Rows of U of which no two are copies: a median distance must not count those between copies."""
    rows = source.population
    copied = np.flatnonzero(source.copies[rows] > 1)
    if not len(copied):
        return rows
    _, first = np.unique(row_codes(source.table.values[rows[copied]]), return_index=True)
    return np.delete(rows, np.delete(copied, first))
