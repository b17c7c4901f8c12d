"""KM2-LS: the paper's adaptation of KM2 to label shift, KM2 on the positives and the target."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import stats

from priorshift.arrays import Floats, Index
from priorshift.base import TargetPriorEstimator
from priorshift.errors import ColumnWarning, DuplicateRowsWarning, EstimatedPriorWarning
from priorshift.io.parameters import check_bandwidth
from priorshift.problem import Source, Target
from priorshift.results import Interval, PriorEstimate
from priorshift.source_prior.km import KM2
from priorshift.warning_records import suppress_warnings, warn


class KM2LS(TargetPriorEstimator):
    """KM2-LS: KM2 with the target in place of the source population; the paper's second competitor.

    It needs no source prior and uses the unlabelled source rows only to scale columns. Other parameters are as in
    :class:`KM2`.

    Parameters
    ----------
    confidence : float
        Confidence level of the interval, which includes sampling error but not KM2's bias. Default 0.95.
    bandwidth : "search" or float
    standardize : bool
        Scale every column by the mean and spread of the unlabelled source rows.
    components : int or None
    max_rows : int
    verbose : bool
    random_state : int, Generator or None

    References
    ----------
    Mielniczuk, Rejchel and Teisseyre (2026); see :class:`TCPU`.

    Examples
    --------
    >>> import warnings
    >>> from priorshift import KM2LS, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, n_source=500, n_target=500, random_state=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     print(KM2LS().fit(s.X, s.y).estimate(s.target))
    target prior 0.539, 95% interval 0.443 to 0.635 (KM2-LS)
    """

    label = "KM2-LS"
    uses_unlabeled = False
    keeps_rows = True  # the positives; after `estimate` also the target's, for a picture
    takes_weights = True
    settings_of_estimate: ClassVar[frozenset[str]] = frozenset(
        {"bandwidth", "components", "max_rows", "confidence", "verbose"}
    )

    def __init__(
        self,
        *,
        confidence: float = 0.95,
        bandwidth: str | float = "search",
        standardize: bool = True,
        components: int | None = 50,
        max_rows: int = 10_000,
        verbose: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.confidence = confidence
        self.bandwidth = bandwidth
        self.standardize = standardize
        self.components = components
        self.max_rows = max_rows
        self.verbose = verbose
        self.random_state = random_state

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        """Store the labelled positives; shared rows do not matter, since U is not used."""
        self._positive = source.rows[source.positive]
        self._weights = None if source.weights is None else source.weights[source.positive]
        # number of each positive's group; None without groups
        self._observation = None if source.groups is None else source.observation[source.positive]
        self._unlabeled = source.sizes[1]
        self._km2_seed = self._seed(rng)

    def _estimate(self, target: Target) -> PriorEstimate:
        """Apply KM2 to the positives and the target, in place of the unlabelled source rows."""
        sizes = (len(self._positive), self._unlabeled, len(target))
        X, y = np.concatenate([self._positive, target.rows[:]]), np.repeat([1, 0], [sizes[0], sizes[2]])
        settings = {name: getattr(self, name) for name in ("bandwidth", "components", "max_rows")}
        with suppress_warnings(ColumnWarning, DuplicateRowsWarning):  # already issued when each table was read
            km2 = KM2(**settings, standardize=False, random_state=self._km2_seed).fit(
                X, y, weights=self._weights_with(target), groups=self._groups_with(target)
            )
        self.prior_estimator_ = km2
        half_width = stats.norm.ppf((1 + self.confidence) / 2) * km2.standard_error_
        # without a standard error every prior is possible
        low, high = (km2.prior_ - half_width, km2.prior_ + half_width) if np.isfinite(half_width) else (0.0, 1.0)
        warn(
            f"The interval of KM2-LS includes sampling error ({km2.standard_error_:.2g}), not its bias: {km2.caveat}",
            EstimatedPriorWarning,
        )
        return PriorEstimate(
            value=km2.prior_,
            raw=km2.prior_,
            interval=Interval(float(max(low, 0.0)), float(min(high, 1.0)), self.confidence, "delta"),
            standard_error=km2.standard_error_,
            source_prior=float("nan"),
            negative_ratio=float("nan"),
            separation=km2.separation_**2,
            method=self.label,
            source_prior_by=None,
            sizes=sizes,
            details={"kernel": "gaussian", "bandwidth": km2.bandwidth_, "standardize": self.standardize},
            evidence=km2,
        )

    def _weights_with(self, target: Target) -> Floats | None:
        """Combine the weights of positives and target, each scaled to a mean of 1; None if neither has weights."""
        if self._weights is None and target.weights is None:
            return None
        P_weights = np.ones(len(self._positive)) if self._weights is None else self._weights / self._weights.mean()
        T_weights = np.ones(len(target)) if target.weights is None else target.weights / target.weights.mean()
        return np.concatenate([P_weights, T_weights])

    def _groups_with(self, target: Target) -> Index | None:
        """Return the number of each row's group, first of the positives, then of the target; None without groups.

        `target.source_observation` is the number that a target row's group has in the source; −1 for none.
        """
        if self._observation is None and target.is_iid:
            return None
        P_groups = np.arange(len(self._positive)) if self._observation is None else self._observation
        in_source = target.source_observation
        first_new = max(int(P_groups.max()), int(in_source.max())) + 1  # of groups that only the target has
        T_groups = np.where(in_source >= 0, in_source, first_new + target.observation)
        return np.concatenate([P_groups, T_groups])

    def _check_parameters(self) -> None:
        """Raise InputError for a setting that cannot be used; `bandwidth` is "search" or a positive number."""
        super()._check_parameters()
        if not (isinstance(self.bandwidth, str) and self.bandwidth == "search"):
            check_bandwidth(self.bandwidth, "'search'")
