"""KM2-LS: the paper's adaptation of KM2 to label shift, KM2 on the positives and the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from priorshift.errors import EstimatedPriorWarning, warn
from priorshift.estimator import PUEstimator, check_sizes
from priorshift.km import KM2
from priorshift.parameters import check_confidence
from priorshift.result import Interval, PriorEstimate
from priorshift.scaling import Scaling


class KM2LS(PUEstimator):
    """KM2-LS: KM2 with the target in place of the source population; the paper's second competitor.

    It needs no source prior and does not use the unlabelled source rows, except to scale columns.

    Parameters
    ----------
    confidence : float
        Of the interval, which includes sampling error and not KM2's bias.
    bandwidth, components, max_rows, random_state
        As in :class:`KM2`.
    standardize : bool
        Scale every column by the mean and spread of the unlabelled source rows.

    Examples
    --------
    >>> import warnings
    >>> from priorshift import KM2LS, simulate
    >>> s = simulate.gaussian(source_prior=0.2, target_prior=0.6, n_source=500, n_target=500, random_state=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     print(KM2LS().fit(s.X, s.y).estimate(s.target))
    target prior 0.536, 95% interval 0.440 to 0.631 (KM2-LS)
    """

    def __init__(
        self,
        *,
        confidence: float = 0.95,
        bandwidth: str | float = "search",
        standardize: bool = False,
        components: int | None = 50,
        max_rows: int = 10_000,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.confidence = confidence
        self.bandwidth = bandwidth
        self.standardize = standardize
        self.components = components
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any, shared: Any = None) -> KM2LS:
        """Keep the labelled positives; `shared` is accepted, as by the other estimators, and of no consequence."""
        check_confidence(self.confidence)
        self._km2()._check_parameters()
        table, labeled = self._read_source(X, y)
        self._scaling = Scaling.of(table.values, np.flatnonzero(~labeled), self.standardize)
        self._scaling.warn_of_left_out(table)
        self._positive = self._scaling.rows(table.values, np.flatnonzero(labeled))[:]
        self._unlabeled = int((~labeled).sum())
        return self

    def estimate(self, X_target: Any) -> PriorEstimate:
        """Estimate the prior of the population that `X_target` is a sample of."""
        check_is_fitted(self, "classes_")
        table = self._read_target(X_target)
        self._scaling.warn_of_left_out(table)
        target = self._scaling.rows(table.values)[:]
        sizes = (len(self._positive), self._unlabeled, len(target))
        check_sizes(target=len(target))
        X, y = np.concatenate([self._positive, target]), np.repeat([1, 0], [sizes[0], sizes[2]])
        km2 = self._km2().fit(X, y)
        self.prior_estimator_ = km2
        half = stats.norm.ppf((1 + self.confidence) / 2) * km2.standard_error_
        low, high = (km2.prior_ - half, km2.prior_ + half) if np.isfinite(half) else (0.0, 1.0)
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
            method="KM2-LS",
            sizes=sizes,
            details={"kernel": "gaussian", "bandwidth": km2.bandwidth_, "standardize": self.standardize},
        )

    def _km2(self) -> KM2:
        names = ("bandwidth", "components", "max_rows", "random_state")
        return KM2(**{name: getattr(self, name) for name in names})
